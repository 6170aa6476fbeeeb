"""Is the peak learning rate one at which such runs learn?"""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.beginning import epoch_at
from mldebug_mcp.measure.optimizers import Family, family_of
from mldebug_mcp.measure.rate import reach_of
from mldebug_mcp.measure.usual_rates import (
    ADAPTERS,
    GENEROUS_ABOVE,
    GENEROUS_BELOW,
    Range,
    peak_rate,
    tuning,
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
REACH = {"pretraining": 1e-4, "supervised": 1e-4, "sft": 1e-5}
"""Distance that Adam has to carry a weight, by kind of run. Chosen: a thousandth of what weights begin at."""
LEAST_REACH = 1e-6
"""... of any other kind. Chosen: policies move by less."""
TYPICAL = 0.02
"""Size of a typical weight. Source: transformers_docs, `initializer_range`."""
HALF_SPACING = {"bf16": 2.0**-9, "fp16": 2.0**-12}
"""Half the distance between neighbours over the number. Source: IEEE 754, 8 and 11 bits of precision."""
KEPT = ("kahan", "stochastic", "master", "anyprecision")
"""Parts of names of optimizers that keep what rounding loses."""
_SOURCES = ("axolotl_stability", "remote_gpu_trainer", "trl_docs", "smol_playbook", "karpathy_recipe")


@question(
    Outcome(
        "lr_high",
        """The peak learning rate lies several times above the range that is usual for this kind of run and tuning.

        Not this when: the optimizer is of a family whose rates have other scales; LoRA is trained, for which ten times
        the rate of full fine-tuning is usual. Five times the upper end counts as far above.
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

        Not this when: the log ends within the warmup; the model is so large that a few times less is usual; the
        optimizer is of a family whose rates have other scales. A tenth of the lower end counts as far below.
        """,
        background=0.02,
        sources=_SOURCES,
        as_chosen=True,
    ),
    Outcome(
        "updates_below_rounding",
        """Weights are kept in bf16 or fp16, and Adam's step at the peak rate is below the rounding of a typical weight.

        By itself this says little: the smallest weights still learn. Not this when: only activations are in half
        precision (autocast), adapters are trained, or an engine keeps weights in fp32 beside them.
        """,
        background=0.1,
        as_chosen=True,
    ),
    Outcome(
        "lr_reach_small",
        """The planned steps are too few, at their rate, for Adam to move a weight by a thousandth of its size.

        Adam moves a weight by about the rate in a step, so that the sum of the rates bounds the way. Not this when: the
        plan is not known; the optimizer is of another family.
        """,
        background=0.01,
        as_chosen=True,
    ),
    not_for=("diffusion",),
)
def rate_level(run: Run) -> Answers:
    """Compare the peak rate with the ranges that are usual for such a run, then what it does to a weight."""
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
    reach = _reach(run, peak)
    rounding = None if isinstance(reach, Evidence) else _below_rounding(run, peak, step)
    said = {"lr_high": high, "lr_low": low, "lr_reach_small": reach, "updates_below_rounding": rounding}
    return {name: one for name, one in said.items() if one is not None}


def _below_rounding(run: Run, peak: float, step: float) -> Evidence | CannotTell | None:
    kept, name = _weights(run), (run.facts.optimizer.name or "").lower()
    if kept is None:
        return CannotTell("the configuration does not tell in which type weights are kept")
    if kept == "fp32":
        return None
    if tuning(run) is ADAPTERS or run.setting("zero_stage") is not None or any(part in name for part in KEPT):
        return CannotTell("adapters, or an engine or optimizer that may keep weights in fp32 as well")
    if family_of(run) not in (Family.ADAM, Family.LION):
        return CannotTell("how far a step goes is known for Adam and Lion only")
    bound = TYPICAL * HALF_SPACING[kept]
    if not 0 < peak < bound:
        return None
    return Evidence(
        f"weights are kept in {kept}, and learning_rate peaks at {figure(peak)}; below {figure(bound)} a step is less "
        f"than half the distance between two such numbers at {figure(TYPICAL)}",
        steps=(step,),
        values={"peak": peak, "bound": bound},
    )


def _weights(run: Run) -> str | None:
    """Return the type in which weights are kept, None where the settings speak of computing only."""
    words = (run.settings.text("torch_dtype"), run.settings.text("precision"))
    for name, spellings in (("bf16", ("bfloat16", "bf16-true")), ("fp16", ("float16", "16-true", "half"))):
        if any(spelling in word for word in words for spelling in spellings):
            return name
    return "fp32" if any("32" in word for word in words) else None


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


def _reach(run: Run, peak: float) -> Evidence | CannotTell | None:
    reach = reach_of(run, peak)
    if reach is None or family_of(run) not in (Family.ADAM, Family.LION):
        return CannotTell("the planned steps are not known, or the optimizer is not of the Adam family")
    least = REACH.get(run.kind, LEAST_REACH)
    if reach.distance >= least or peak <= 0:
        return None
    return Evidence(
        f"{figure(reach.steps)} steps at rates of up to {figure(peak)} can move a weight by {figure(reach.distance)}; "
        f"{figure(least)} is the least for such a run",
        values={"distance": reach.distance, "least": least, "steps": reach.steps},
    )
