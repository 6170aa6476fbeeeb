"""The arithmetic of the page's script, where node is installed."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import mldebug_mcp.report

NODE = shutil.which("node")
NUMBERS = Path(mldebug_mcp.report.__file__).with_name("numbers.js")

pytestmark = pytest.mark.skipif(NODE is None, reason="needs node")


def evaluated(expression: str) -> Any:
    code = f"{NUMBERS.read_text(encoding='ascii')}\nconsole.log(JSON.stringify({expression}))"
    done = subprocess.run([str(NODE), "-e", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("shown(6.61602)", "6.616"),
        ("shown(123892)", "123892"),
        ("shown(0.00001234567)", "1.235e-5"),
        ("shown(NaN)", "NaN"),
        ("ticks(0, 10, 5, false)", [0, 2, 4, 6, 8, 10]),
        ("ticks(0.5, 2000, 5, true)", [1, 10, 100, 1000]),
        ("ticks(3, 3, 5, false)", [3]),
        ("nearest([1, 2, 10], 5)", 1),
        ("nearest([1, 2, 10], 7)", 2),
        ("nearest([1, 2, 10], -4)", 0),
        ("smoothed([4, 4, 4], 0.9)", [4, 4, 4]),
        ("smoothed([1, 2], 0)", [1, 2]),
    ],
)
def test_numbers_ticks_and_smoothing_come_out_as_expected(expression: str, expected: object) -> None:
    found = evaluated(expression)

    assert found == (pytest.approx(expected) if isinstance(expected, list) else expected)


def test_smoothing_begins_at_the_first_value_and_lags_behind_a_jump() -> None:
    first, *_, last = evaluated("smoothed([4, 4, 4, 8], 0.5)")

    assert first == 4
    assert 4 < last < 8
