"""The probe on healthy pipelines of unusual kinds, and on faults that only repeated calls tell.

`python -m benchmarks.probe --all` probes each with other seeds.
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from .here import probe_here
from .odd_pipelines import BROKEN, HEALTHY

ENTRIES = Path(__file__).parent / "odd_pipelines.py"


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_pipeline_of_an_unusual_kind_is_memorised(name: str, tmp_path: Path) -> None:
    result = probe_here(tmp_path, entry=f"{ENTRIES}:{name}", seed=0)

    assert (result.verdict, result.causes[0].cause) == ("memorised", "healthy"), result.summary
    assert not [one.summary for one in result.findings if one.state == "present"]


@pytest.mark.parametrize("name", BROKEN)
def test_a_fault_gets_its_cause(name: str, tmp_path: Path) -> None:
    verdicts, cause = BROKEN[name]

    result = probe_here(tmp_path, entry=f"{ENTRIES}:{name}", seed=0)

    assert result.verdict in verdicts, result.summary
    assert result.causes[0].cause == cause, result.causes[:3]
