"""The probe's verdict: a decision tree, each leaf with its evidence in words.

the process did not get to a loss                      → failed
a token id has no embedding, or no label is trained on → cannot_learn
the loss, at the start or later, is not finite         → not_finite
the loss came down to the goal                         → memorised
it was still falling when steps or time were up        → too_slow
its steps are tiny, and larger ones memorise the batch → too_slow
otherwise                                              → cannot_learn
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mldebug_mcp.models import Finding, State
from mldebug_mcp.models.probe import Verdict
from mldebug_mcp.probe.measured import Failure, Measured
from mldebug_mcp.symptoms.probe.common import FEW_STEPS, still_falling
from mldebug_mcp.text import figure


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict and why."""

    word: Verdict
    why: str


def decide(seen: Measured, failure: Failure | None, findings: Sequence[Finding]) -> Decision:
    """Return the verdict on what was measured."""
    present = {one.symptom: one.summary for one in findings if one.state is State.PRESENT}
    for blocking in ("probe_vocabulary_small", "probe_labels_masked"):
        if blocking in present:
            return Decision("cannot_learn", f"nothing can be learnt: {present[blocking]}")
    if failure is not None:
        return Decision("failed", failure.message + (f"\n{failure.where}" if failure.where else ""))
    losses = [loss for loss in (seen.initial_loss, *(seen.curve.losses if seen.curve else ())) if loss is not None]
    bad = next((step for step, loss in enumerate(losses) if not math.isfinite(loss)), None)
    if bad is not None:
        first = present.get("probe_nonfinite_operation") or present.get("probe_low_precision_only") or ""
        return Decision(
            "not_finite", f"the loss is {figure(losses[bad])} at step {bad}" + (f"; {first}" if first else "")
        )
    if "probe_graph_detached" in present and seen.curve is None:
        return Decision("cannot_learn", f"nothing can be learnt: {present['probe_graph_detached']}")
    if seen.gradients is not None and seen.gradients.nonfinite_count and not seen.memorised:
        return Decision(
            "not_finite", f"the loss is finite, its gradient is not: {', '.join(seen.gradients.nonfinite[:3])}"
        )
    return _learning(seen, present)


def _learning(seen: Measured, present: dict[str, str]) -> Decision:
    losses = seen.curve.losses if seen.curve else []
    if not losses:
        return Decision("failed", "the probe did not get to training")
    story = f"the loss went from {figure(losses[0])} to {figure(losses[-1])} in {len(losses)} steps"
    for blocking in ("probe_loss_negated", "probe_rows_contradict", "probe_inputs_constant"):
        if blocking in present:
            return Decision("cannot_learn", f"{story}; {present[blocking]}")
    if seen.memorised:
        return Decision("memorised", story)
    out_of_time = seen.curve is not None and seen.curve.ended == "time"
    if still_falling(losses) or (out_of_time and len(losses) < FEW_STEPS):
        return Decision(
            "too_slow", f"{story} {'when time was up' if out_of_time else 'and was falling'}; {_goal(seen)}"
        )
    if (tiny := _tiny_steps(seen, present)) is not None:
        return Decision("too_slow", f"{story}; {tiny}; {_goal(seen)}")
    return Decision("cannot_learn", f"{story} and stays there; {_goal(seen)}")


def _tiny_steps(seen: Measured, present: dict[str, str]) -> str | None:
    """Return what shows that only the size of the steps stands in the way, or None."""
    if not seen.update_ratio or seen.contrast is None or not seen.contrast.memorised:
        return None
    small = present.get("probe_update_small")
    return None if small is None else f"{small}; {present['probe_own_optimizer_learns']}"


def _goal(seen: Measured) -> str:
    return (
        f"memorised would be {figure(seen.goal)}"
        if seen.goal is not None and math.isfinite(seen.goal)
        else "it has no floor that is known"
    )
