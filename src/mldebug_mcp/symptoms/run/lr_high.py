"""Learning rate above the usual range for this kind of run."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.tuning import GENEROUS_ABOVE, doubt_usual, peak_rate, usual_rates
from mldebug_mcp.text import figure

EXTREME = 15.0
"""Times the upper end of what is usual: three times the margin that makes a rate high. Chosen by hand."""
SMALLEST_MODELS = 3e-3
"""... and above this: a model of a few layers, trained from scratch, takes a rate far too high for a large one."""


@symptom(
    needs=(),
    sources=("axolotl_stability", "remote_gpu_trainer", "trl_docs", "smol_playbook", "karpathy_recipe"),
    not_for=("diffusion",),
    background=0.05,
    as_chosen=True,
)
def lr_high(run: Run) -> Evidence | None:
    """The peak learning rate lies several times above the range that is usual for this kind of run and tuning.

    Not this when: the optimizer is not of the Adam family, whose rates have other scales; LoRA is trained, for which
    ten times the rate of full fine-tuning is usual. Five times the upper end counts as far above. Where it is so far
    above that `lr_extreme` says more, this is unknown.
    """
    found = too_high(run)
    if found is not None and extreme(found):
        raise CannotTell("it is more than an order of magnitude above, which says more")
    return found


def extreme(found: Evidence) -> bool:
    """Say whether a rate that is too high is so by more than an order of magnitude."""
    return found.values["factor"] > EXTREME and found.values["peak"] > SMALLEST_MODELS


def too_high(run: Run) -> Evidence | None:
    """Return what is seen of a peak rate far above the usual, None if it is not; CannotTell if none is known."""
    ranges = usual_rates(run)
    peak, step = peak_rate(run)
    exceeded = [one for one in ranges if peak > GENEROUS_ABOVE * one.high]
    if not exceeded:
        doubt_usual(ranges, peak)
        return None
    if len(exceeded) < len(ranges):
        raise CannotTell(
            f"the peak, {figure(peak)}, is far above what is usual for {exceeded[0].usual_for}, but not for "
            f"{ranges[-1].usual_for}; the configuration does not tell which it is"
        )
    usual = ranges[-1]
    return Evidence(
        f"learning_rate peaks at {figure(peak)} at {run.step_name} {figure(step)}; usual for {usual.usual_for} are "
        f"{figure(usual.low)} to {figure(usual.high)}",
        steps=(step,),
        values={"peak": peak, "usual_low": usual.low, "usual_high": usual.high, "factor": peak / usual.high},
    )
