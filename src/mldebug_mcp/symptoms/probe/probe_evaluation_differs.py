"""The batch is memorised in training mode and lost in evaluation mode."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure


@probe_symptom(
    needs=("outcome",),
    effects={"eval_mode_bug": "often"},
    background=0.002,
)
def probe_evaluation_differs(seen: Measured) -> Evidence | None:
    """The batch is memorised in training mode and lost in evaluation mode.

    Not this when: BatchNorm's running statistics only lag; they are given time to settle before this is judged.
    """
    assert seen.outcome is not None
    train, evaluation = seen.outcome.train, seen.outcome.evaluation
    if not seen.memorised:
        raise CannotTell("the batch was not memorised in training mode")
    lost = evaluation.loss > 5 * max(train.loss, seen.goal or 0.0, 1e-3)
    if not lost or (train.accuracy is not None and (evaluation.accuracy or 0.0) > train.accuracy - 0.2):
        return None
    return Evidence(
        f"the loss is {figure(train.loss)} in training mode and {figure(evaluation.loss)} in evaluation mode"
    )
