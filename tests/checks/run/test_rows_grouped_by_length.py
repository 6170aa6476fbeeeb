from __future__ import annotations

import pytest

from mldebug_mcp.logs.settings import Scalar
from mldebug_mcp.models import State
from tests.runs import run_of, state


@pytest.mark.parametrize(
    ("config", "answer"),
    [
        ({"group_by_length": True}, State.PRESENT),
        ({"group_by_length": "true"}, State.PRESENT),
        ({"group_by_length": False}, State.ABSENT),
        ({"packing": True}, State.UNKNOWN),
    ],
)
def test_the_setting_is_read(config: dict[str, Scalar], answer: State) -> None:
    assert state("rows_grouped_by_length", run_of(loss=[1.0, 0.9], config=config, kind="sft")) is answer
