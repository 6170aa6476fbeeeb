"""An answer that is cut to a length keeps whole what is of no use in parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from mldebug_mcp import diagnose_run
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.models import Diagnosis
from mldebug_mcp.report.concise import fitted, length
from mldebug_mcp.report.diagnosis_concise import concise

LIMITS = (9_000, 7_500, 6_000, 5_000)


@pytest.fixture(scope="module")
def diagnosis() -> Diagnosis:
    return concise(diagnose_run(Path(__file__).parent.parent / "examples" / "nan_loss"))


@pytest.mark.parametrize("limit", LIMITS)
def test_a_quote_is_whole_or_left_out(diagnosis: Diagnosis, limit: int) -> None:
    short = fitted(diagnosis, limit)
    assert length(short) <= limit
    quotes = [one for hypothesis in short.hypotheses for one in hypothesis.citations]
    assert all(one.text == catalogue().quotes[one.id].text for one in quotes)


@pytest.mark.parametrize("limit", LIMITS)
def test_ids_and_calls_are_whole(diagnosis: Diagnosis, limit: int) -> None:
    short = fitted(diagnosis, limit)
    whole = {step.id: step.call for step in diagnosis.next_steps}
    assert {step.id: step.call for step in short.next_steps}.items() <= whole.items()
    assert {one.cause for one in short.hypotheses} == {one.cause for one in diagnosis.hypotheses}


def test_a_call_on_a_path_that_is_far_too_long_is_left_out(diagnosis: Diagnosis) -> None:
    steps = [step.model_copy(update={"call": f'diagnose_run(path="{"x" * 3_000}")'}) for step in diagnosis.next_steps]
    short = fitted(diagnosis.model_copy(update={"next_steps": steps}), 6_000)
    assert {step.call for step in short.next_steps} == {None}
