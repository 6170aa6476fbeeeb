"""Is the peak learning rate one at which such runs learn?"""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.rate import still_rising
from mldebug_mcp.measure.rewards import TEXT_POLICIES, kept_rise
from mldebug_mcp.measure.usual_rates import GENEROUS_ABOVE, GENEROUS_BELOW, Range, peak_rate, refuse_wide, usual_rates
from mldebug_mcp.symptoms.readings import outcome_of
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, question
from mldebug_mcp.symptoms.telling import by_outcome, first_seen, with_attribute
from mldebug_mcp.text import figure

EXTREME = 15.0
"""Times the upper end of what is usual. Chosen: three times the margin that makes a rate high."""
SMALLEST_MODELS = 3e-3
"""... and above this. Chosen: a model of a few layers, trained from scratch, takes it."""
_SOURCES = ("axolotl_stability", "remote_gpu_trainer", "trl_docs", "smol_playbook", "karpathy_recipe")


def lr_high(run: Run, peak: float, step: float) -> Evidence | None:
    """The peak learning rate lies several times above the range that is usual for this kind of run and tuning.

    Not this when: the optimizer is of a family whose rates have other scales; LoRA is trained, whose are ten times; a
    policy learns and keeps what it has learnt, as those do that are small.
    """
    ranges = usual_rates(run)
    high = [one for one in ranges if peak > GENEROUS_ABOVE * one.high]
    if high and run.kind in TEXT_POLICIES and kept_rise(run) is not None:
        raise CannotTell("the rate would be far too high for a large policy, and this one learns at it")
    return _outside(run, ranges, high, peak, step)


def lr_extreme(high: Evidence) -> Evidence | None:
    """The peak learning rate lies more than an order of magnitude above the range that is usual for such a run.

    Not this when: it is a few times above the range, as for small models (`lr_high` alone); the usual range is not
    known.
    """
    return high if high.values["factor"] > EXTREME and high.values["peak"] > SMALLEST_MODELS else None


def lr_low(run: Run, peak: float, step: float) -> Evidence | None:
    """The peak learning rate lies far below the range that is usual for this kind of run and tuning.

    Not this when: the log ends within the warmup; the optimizer is of a family whose rates have other scales.
    """
    ranges = usual_rates(run)
    if run.setting("learning_rate") is None and still_rising(run):
        raise CannotTell("the log may end within the warmup of the learning rate, whose peak is not configured")
    low = [one for one in ranges if 0 < peak < one.low / GENEROUS_BELOW]
    return _outside(run, ranges, low, peak, step)


def _outside(run: Run, ranges: tuple[Range, ...], left: list[Range], peak: float, step: float) -> Evidence | None:
    """Return the peak beside the farthest of the usual ranges, of which it leaves some; CannotTell if not all."""
    if not left:
        refuse_wide(ranges, peak)
        return None
    above = peak > left[0].high
    near, far = (left[0], ranges[-1]) if above else (left[-1], ranges[0])
    if len(left) < len(ranges):
        raise CannotTell(
            f"the peak, {figure(peak)}, is far {'above' if above else 'below'} what is usual for {near.usual_for}, "
            f"but not for {far.usual_for}; the configuration does not tell which it is"
        )
    factor = peak / (far.high if above else far.low)
    return Evidence(
        f"learning_rate peaks at {figure(peak)} at {run.place(step)}; usual for {far.usual_for} are "
        f"{figure(far.low)} to {figure(far.high)}",
        steps=(step,),
        values={"peak": peak, "usual_low": far.low, "usual_high": far.high, "factor": factor},
    )


@question(
    outcome_of(lr_high, 0.05, *_SOURCES, as_chosen=True),
    outcome_of(lr_extreme, 0.02, *_SOURCES, of="lr_high", as_chosen=True),
    outcome_of(lr_low, 0.02, *_SOURCES, as_chosen=True),
    not_for=("diffusion",),
)
def rate_level(run: Run) -> Answers:
    """Compare the peak rate with the ranges that are usual for such a run, on both sides."""
    answers = first_seen(by_outcome((lr_high, lr_low), run, *peak_rate(run)))
    return with_attribute(answers, "lr_high", lr_extreme)
