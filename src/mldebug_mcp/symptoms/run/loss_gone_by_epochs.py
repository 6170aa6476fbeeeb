"""Training loss near zero after some epochs, with no evaluation."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.symptoms.evaluation import evaluation_losses
from mldebug_mcp.symptoms.quality import quality_metrics
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

LEFT = 0.05
"""Of what it was at first."""
EPOCHS = 3.0
"""At least this many epochs: rows that are seen for the first time are not memorised. Both chosen by hand."""


@symptom(
    needs=("loss",),
    sources=("goodfellow_ch11",),
    points=4,
    not_for=("grpo", "ppo", "rl", "diffusion"),
    whole_run=True,
    background=0.1,
    follows=("loss_zero", "loss_constant"),
)
def loss_gone_by_epochs(run: Run) -> Evidence | None:
    """The training loss is near zero after several epochs, and no held-out rows are evaluated.

    Not this when: there is an evaluation, which tells learning from memorising; there are fewer than three epochs.
    """
    if _evaluated(run):
        raise CannotTell("an evaluation tells more")
    if run.step_name != "epoch" and "epoch" not in run:
        raise CannotTell("not logged: epoch")
    loss = run["loss"].finite
    epochs = run.last_step if run.step_name == "epoch" else float(np.max(run["epoch"].finite.value, initial=0.0))
    edge = max(1, len(loss) // 20)  # of a handful of records the first alone tells where it began
    start, end = median(loss.value[:edge]), median(loss.value[-edge:])
    if epochs < EPOCHS or start <= 0 or not 0 <= end < LEFT * start:
        return None
    onset = float(loss.step[int(np.argmax(loss.value < LEFT * start))])
    return Evidence(
        f"loss goes from {figure(start)} to {figure(end)} in {figure(epochs)} epochs, with no evaluation logged",
        steps=(onset,),
        values={"start": start, "end": end, "epochs": epochs},
    )


def _evaluated(run: Run) -> bool:
    for of_evaluation in (evaluation_losses, quality_metrics):
        try:
            if any(len(series.finite) for series in of_evaluation(run)):
                return True
        except CannotTell:
            continue
    return False
