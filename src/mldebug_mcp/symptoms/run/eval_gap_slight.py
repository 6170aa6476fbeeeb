"""Evaluation loss of a language model rises by a few per cent."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.run.eval_gap_grows import is_slight, rise_of_evaluation


@symptom(
    needs=(),
    sources=("axolotl_stability",),
    not_for=("grpo", "ppo", "rl"),
    background=0.06,
    as_chosen=True,
    follows=("eval_gap_grows", "loss_zero", "eval_learns_nothing", "loss_divergence", "loss_nonfinite"),
    instead=("eval_gap_grows",),
)
def eval_gap_slight(run: Run) -> Evidence | None:
    """A language model's evaluation loss ends 1 to 5 % above its minimum, while the training loss goes on falling.

    So much is usual in the third epoch of fine-tuning. Not this when: it rises by more, or at four evaluations in a
    row (`eval_gap_grows`). Judged only where evaluation rises.
    """
    found = rise_of_evaluation(run)
    if found is None:
        raise CannotTell("the evaluation loss does not rise")
    return found if is_slight(run, found) else None
