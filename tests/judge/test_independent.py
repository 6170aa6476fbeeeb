"""Findings that are no evidence of their own beside others."""

from __future__ import annotations

import pytest

from mldebug_mcp.checks import symptoms
from mldebug_mcp.judge.hypotheses import independent
from mldebug_mcp.models import Finding, State


def kept(**states: State) -> set[str]:
    return {one.symptom for one in independent([Finding(symptom=name, state=state) for name, state in states.items()])}


def test_a_gradient_that_is_nan_where_the_loss_is_counts_once() -> None:
    assert kept(loss_nonfinite=State.PRESENT, grad_norm_nonfinite=State.PRESENT) == {"loss_nonfinite"}
    assert "grad_norm_nonfinite" in kept(loss_nonfinite=State.ABSENT, grad_norm_nonfinite=State.PRESENT)


@pytest.mark.parametrize("other", ["loss_slow", "loss_stall", "loss_constant"])
def test_that_a_slow_stalled_or_constant_loss_is_on_no_plateau_is_no_evidence(other: str) -> None:
    assert kept(loss_plateau=State.ABSENT, **{other: State.PRESENT}) == {other}
    assert "loss_plateau" in kept(loss_plateau=State.ABSENT, **{other: State.ABSENT})
    assert "loss_plateau" in kept(loss_plateau=State.PRESENT, **{other: State.UNKNOWN})


@pytest.mark.parametrize("other", ["loss_constant", "eval_loss_constant", "eval_metric_constant"])
def test_what_stands_still_once_a_loss_has_run_below_zero_is_no_evidence_of_its_own(other: str) -> None:
    assert kept(loss_negative=State.PRESENT, **{other: State.PRESENT}) == {"loss_negative"}


def test_a_fall_at_the_end_of_a_spike_that_recurs_is_no_start_over() -> None:
    assert kept(loss_spikes_recur=State.PRESENT, loss_falls_back=State.PRESENT) == {"loss_spikes_recur"}
    assert "loss_falls_back" in kept(loss_spikes_recur=State.ABSENT, loss_falls_back=State.PRESENT)


def test_symptoms_refer_to_symptoms() -> None:
    known = symptoms()
    assert all({*one.outcome.follows, *one.outcome.instead} <= known.keys() for one in known.values())
