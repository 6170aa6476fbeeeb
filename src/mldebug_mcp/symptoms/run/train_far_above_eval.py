"""A language model's training loss is several times its evaluation loss, at every evaluation."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.evaluation import compared
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.scale import predicts_tokens
from mldebug_mcp.symptoms.statistics import median
from mldebug_mcp.text import figure

TIMES = 2.0
"""Dropout and other rows move the two apart by tenths. Chosen by hand."""
LEAST_EVALUATIONS = 3


@symptom(
    needs=("loss", "eval_loss"),
    sources=("hf_gradacc_blog",),
    not_for=("grpo", "ppo", "rl", "preference", "supervised", "diffusion", "boosting"),
    whole_run=True,
    background=0.001,
    follows=("loss_scale_suspicious", "loss_divergence", "loss_nonfinite"),
)
def train_far_above_eval(run: Run) -> Evidence | None:
    """A language model's training loss is more than twice its evaluation loss at every evaluation.

    Both are nats per token, if they are computed alike over rows alike. Not this when: the quotient is the number of
    accumulated micro-batches (`loss_scale_suspicious`); it comes about in training (`eval_below_train`).
    """
    if not predicts_tokens(run):
        raise CannotTell("it is not known that this run trains a language model")
    both = compared(run, LEAST_EVALUATIONS)
    if not (both.evaluation > 0).all():
        raise CannotTell("an evaluation loss is not above zero")
    times = both.train / both.evaluation
    if float(times.min()) < TIMES:
        return None
    first = float(both.steps[0])
    return Evidence(
        f"the training loss is {figure(float(times.min()))} to {figure(float(times.max()))} times the evaluation loss "
        f"at all {len(times)} evaluations, from {run.step_name} {figure(first)} on",
        steps=(first,),
        values={"times": median(times), "evaluations": len(times)},
    )
