"""Learning rate below the usual range for this kind of run."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.beginning import epoch_at
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.tuning import GENEROUS_BELOW, doubt_usual, peak_rate, usual_rates
from mldebug_mcp.text import figure

WARMUP = 0.1
"""Of the first epoch: where warmups end as a rule."""


@symptom(
    needs=(),
    sources=("axolotl_stability", "remote_gpu_trainer", "trl_docs", "smol_playbook", "karpathy_recipe"),
    not_for=("diffusion",),
    background=0.02,
    as_chosen=True,
)
def lr_low(run: Run) -> Evidence | None:
    """The peak learning rate lies far below the range that is usual for this kind of run and tuning.

    Not this when: the log ends within the warmup; the model is so large that a few times less is usual; the optimizer
    is not of the Adam family. A tenth of the lower end counts as far below.
    """
    ranges = usual_rates(run)
    peak, step = peak_rate(run)
    if run.setting("learning_rate") is None and _still_rising(run):
        raise CannotTell("the log may end within the warmup of the learning rate, whose peak is not configured")
    missed = [one for one in ranges if peak < one.low / GENEROUS_BELOW]
    if not missed or peak <= 0:
        doubt_usual(ranges, peak)
        return None
    if len(missed) < len(ranges):
        raise CannotTell(
            f"the peak, {figure(peak)}, is far below what is usual for {missed[-1].usual_for}, but not for "
            f"{ranges[0].usual_for}; the configuration does not tell which it is"
        )
    usual = ranges[0]
    return Evidence(
        f"learning_rate peaks at {figure(peak)} at {run.step_name} {figure(step)}; usual for {usual.usual_for} are "
        f"{figure(usual.low)} to {figure(usual.high)}",
        steps=(step,),
        values={"peak": peak, "usual_low": usual.low, "usual_high": usual.high, "factor": peak / usual.low},
    )


def _still_rising(run: Run) -> bool:
    if "learning_rate" not in run or not len(rate := run["learning_rate"].finite):
        return False
    if len(rate) == 1:
        epoch = epoch_at(run, float(rate.step[0]))
        return epoch is not None and epoch < WARMUP
    return bool(rate.value[-1] > rate.value[0] and rate.value[-1] == rate.value.max() > rate.value[-2])
