"""Is the peak learning rate one at which such runs learn?"""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.beginning import epoch_at
from mldebug_mcp.measure.usual_rates import (
    GENEROUS_ABOVE,
    GENEROUS_BELOW,
    Range,
    peak_rate,
    unjudged,
    usual_rates,
)
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.text import figure

EXTREME = 15.0
"""Times the upper end of what is usual. Chosen: three times the margin that makes a rate high."""
SMALLEST_MODELS = 3e-3
"""... and above this. Chosen: a model of a few layers, trained from scratch, takes it."""
WARMUP = 0.1
"""Share of the first epoch in which the log may still warm up. Chosen: where warm-ups end as a rule."""
_SOURCES = ("axolotl_stability", "remote_gpu_trainer", "trl_docs", "smol_playbook", "karpathy_recipe")


@question(
    Outcome(
        "lr_high",
        """The peak learning rate lies several times above the range that is usual for this kind of run and tuning.

        Not this when: the optimizer is of a family whose rates have other scales; LoRA is trained, whose are ten times.
        """,
        background=0.05,
        sources=_SOURCES,
        as_chosen=True,
    ),
    Outcome(
        "lr_extreme",
        """The peak learning rate lies more than an order of magnitude above the range that is usual for such a run.

        Not this when: it is a few times above the range, as for small models (`lr_high` alone); the usual range is not
        known.
        """,
        background=0.004,
        sources=_SOURCES,
        of="lr_high",
        as_chosen=True,
    ),
    Outcome(
        "lr_low",
        """The peak learning rate lies far below the range that is usual for this kind of run and tuning.

        Not this when: the log ends within the warmup; the optimizer is of a family whose rates have other scales.
        """,
        background=0.02,
        sources=_SOURCES,
        as_chosen=True,
    ),
    not_for=("diffusion",),
)
def rate_level(run: Run) -> Answers:
    """Compare the peak rate with the ranges that are usual for such a run, on both sides."""
    peak, step = peak_rate(run)
    try:
        ranges: tuple[Range, ...] | CannotTell = usual_rates(run)
    except CannotTell as why:
        ranges = why
    high, low = _far_above(run, ranges, peak, step), _far_below(run, ranges, peak, step)
    if isinstance(high, Evidence):
        extreme = high.values["factor"] > EXTREME and peak > SMALLEST_MODELS
        return {"lr_high": high, "lr_extreme": high} if extreme else {"lr_high": high}
    if isinstance(low, Evidence):
        return {"lr_low": low}
    said = {"lr_high": high, "lr_low": low}
    return {name: one for name, one in said.items() if one is not None}


def _far_above(
    run: Run, ranges: tuple[Range, ...] | CannotTell, peak: float, step: float
) -> Evidence | CannotTell | None:
    if isinstance(ranges, CannotTell):
        return ranges
    exceeded = [one for one in ranges if peak > GENEROUS_ABOVE * one.high]
    if not exceeded:
        return unjudged(ranges, peak)
    if len(exceeded) < len(ranges):
        return CannotTell(
            f"the peak, {figure(peak)}, is far above what is usual for {exceeded[0].usual_for}, but not for "
            f"{ranges[-1].usual_for}; the configuration does not tell which it is"
        )
    return _beside(run, peak, step, ranges[-1], peak / ranges[-1].high)


def _far_below(
    run: Run, ranges: tuple[Range, ...] | CannotTell, peak: float, step: float
) -> Evidence | CannotTell | None:
    if isinstance(ranges, CannotTell):
        return ranges
    if run.setting("learning_rate") is None and _still_rising(run):
        return CannotTell("the log may end within the warmup of the learning rate, whose peak is not configured")
    missed = [one for one in ranges if peak < one.low / GENEROUS_BELOW]
    if not missed or peak <= 0:
        return unjudged(ranges, peak)
    if len(missed) < len(ranges):
        return CannotTell(
            f"the peak, {figure(peak)}, is far below what is usual for {missed[-1].usual_for}, but not for "
            f"{ranges[0].usual_for}; the configuration does not tell which it is"
        )
    return _beside(run, peak, step, ranges[0], peak / ranges[0].low)


def _beside(run: Run, peak: float, step: float, usual: Range, factor: float) -> Evidence:
    return Evidence(
        f"learning_rate peaks at {figure(peak)} at {run.step_name} {figure(step)}; usual for {usual.usual_for} are "
        f"{figure(usual.low)} to {figure(usual.high)}",
        steps=(step,),
        values={"peak": peak, "usual_low": usual.low, "usual_high": usual.high, "factor": factor},
    )


def _still_rising(run: Run) -> bool:
    if "learning_rate" not in run or not len(rate := run["learning_rate"].finite):
        return False
    if len(rate) == 1:
        epoch = epoch_at(run, float(rate.step[0]))
        return epoch is not None and epoch < WARMUP
    return bool(rate.value[-1] > rate.value[0] and rate.value[-1] == rate.value.max() > rate.value[-2])
