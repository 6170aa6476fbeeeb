"""Is the peak learning rate one at which such runs learn?"""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.optimizers import Family, family_of
from mldebug_mcp.measure.rate import reach_of
from mldebug_mcp.symptoms.beginning import epoch_at
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.symptoms.tuning import GENEROUS_ABOVE, GENEROUS_BELOW, Range, peak_rate, unjudged, usual_rates
from mldebug_mcp.text import figure

EXTREME = 15.0
"""Times the upper end of what is usual: three times the margin that makes a rate high. Chosen by hand."""
SMALLEST_MODELS = 3e-3
"""... and above this: a model of a few layers, trained from scratch, takes a rate far too high for a large one."""
WARMUP = 0.1
"""Of the first epoch: where warmups end as a rule."""
REACH = {"pretraining": 1e-4, "supervised": 1e-4, "sft": 1e-5}
LEAST_REACH = 1e-6
"""Distances that Adam has to carry a weight, by kind of run, or else: weights begin at about 0.02 to 0.1, and what is
tuned moves by a thousandth of that where it learns at all; policies by less. Chosen by hand, an order below."""
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
        "lr_reach_small",
        """The planned steps are too few, at their rate, for Adam to move a weight by a thousandth of its size.

        Adam moves a weight by about the rate in a step, so that the sum of the rates bounds the way. Not this when: the
        plan is not known; the optimizer is of another family. The bounds were chosen by hand.
        """,
        background=0.01,
        as_chosen=True,
    ),
    not_for=("diffusion",),
)
def rate_level(run: Run) -> Answers:
    """Compare the peak rate with the ranges that are usual for such a run, and the way that it carries a weight."""
    ranges = usual_rates(run)
    peak, step = peak_rate(run)
    high = _far_above(run, ranges, peak, step)
    if isinstance(high, Evidence):
        extreme = high.values["factor"] > EXTREME and peak > SMALLEST_MODELS
        return {"lr_high": high, "lr_extreme": high} if extreme else {"lr_high": high}
    low = _far_below(run, ranges, peak, step)
    if isinstance(low, Evidence):
        return {"lr_low": low}
    answers = {"lr_high": high, "lr_low": low, "lr_reach_small": _reach(run, peak)}
    return {name: said for name, said in answers.items() if said is not None}


def _far_above(run: Run, ranges: tuple[Range, ...], peak: float, step: float) -> Evidence | CannotTell | None:
    exceeded = [one for one in ranges if peak > GENEROUS_ABOVE * one.high]
    if not exceeded:
        return unjudged(ranges, peak)
    if len(exceeded) < len(ranges):
        return CannotTell(
            f"the peak, {figure(peak)}, is far above what is usual for {exceeded[0].usual_for}, but not for "
            f"{ranges[-1].usual_for}; the configuration does not tell which it is"
        )
    return _beside(run, peak, step, ranges[-1], peak / ranges[-1].high)


def _far_below(run: Run, ranges: tuple[Range, ...], peak: float, step: float) -> Evidence | CannotTell | None:
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
