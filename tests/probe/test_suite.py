"""The probe on pipelines with one known fault each, and on healthy ones, all in this process to save time."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")


from .here import probe_here
from .pipelines import BROKEN, HEALTHY

PIPELINES = Path(__file__).parent / "pipelines.py"


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad=True:UserWarning")
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_pipeline_gets_its_verdict_and_its_cause(name: str, tmp_path: Path) -> None:
    verdict, cause = BROKEN[name]

    result = probe_here(tmp_path, entry=f"{PIPELINES}:{name}")

    assert (result.verdict, result.causes[0].cause) == (verdict, cause), result.summary


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad=True:UserWarning")
@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_pipeline_is_memorised_and_called_healthy(name: str, tmp_path: Path) -> None:
    result = probe_here(tmp_path, entry=f"{PIPELINES}:{name}")

    assert (result.verdict, result.causes[0].cause) == ("memorised", "healthy"), result.summary
    assert not [one.summary for one in result.findings if one.state == "present"]
