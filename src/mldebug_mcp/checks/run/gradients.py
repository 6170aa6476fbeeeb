"""Is the gradient finite and of usual size, and does it stay so?

Do all parts of the model get one, and how much does clipping take?
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from mldebug_mcp.checks.check import (
    Answers,
    CannotTell,
    Evidence,
    answers_of,
    ask_in_turn,
    by_outcome,
    first_seen,
    known,
    outcome_of,
    question,
    with_attribute,
)
from mldebug_mcp.checks.curve import (
    LEAST_FOR_LEVEL,
    end_level,
    fades_to_zero,
    fails_at,
    finite_of,
    sample,
    start_in_words,
    start_level,
    stretches_of,
    zeros_at_end,
)
from mldebug_mcp.checks.gradients import (
    SMALL_LOSS,
    Part,
    are_skipped,
    ends_of,
    jumps_of,
    label_noise_norm,
    loss_moved,
    lost,
    moved_while_infinite,
    parts_of,
    pinned,
    refuse_uncomputed,
)
from mldebug_mcp.checks.policies import most_earned, rewards_of
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.text import counted, figure
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.names.metrics import CLIPPED_NORM
from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.logs.settings.settings import POLICIES

# Is the gradient finite, and of a size from which such a run can learn?


MAX_ISOLATED_LOST_SHARE = 0.01
"""Share of the steps that a loss scaler loses while it probes. Chosen: one in a hundred."""
MAX_SCALER_SETTLING_STEPS = 20
"""Steps in which a loss scaler comes down from its first scale. Chosen: torch's 2 ** 16 is halved sixteen times."""
MAX_REPORTED_LOST_SHARE = 0.1
"""... and the share of records where each of them is reported as skipped. Chosen: half of what a log shows in vain."""
HIGH: Mapping[str, float] = {"sft": 100.0, "grpo": 10.0}
"""Norms that are unstable, by kind of run. Source: axolotl_stability."""
OF_ANY = 100.0
"""Such a norm of any other kind, times a loss above 1, in at least half of the records. Fitted: 339 healthy runs of
benchmarks stay below 21."""
ANY_SCALE = ("diffusion", "ppo", "rl", "boosting")
"""Kinds whose norms are of any size. Chosen: sums over rows, and targets of any unit, scale them."""
GRADIENT_LEVEL_LOW: Mapping[str, float] = {"sft": 0.002, "grpo": 2e-5}
"""A fiftieth of the least usual norm, by kind of run. Source: axolotl_stability."""
HIGH_SHARE = 0.1
"""Share of the records that must be high. Chosen: fewer are spikes."""
ZERO_SHARE = 0.5
"""Share of the records that must be zero. Chosen: equal rewards give some zeros."""
MAX_TINY_NORM = 1e-6
"""A norm of no averaged loss that is not small itself, for any other kind of run. Chosen: float32 resolves 1e-7."""
MAX_TINY_NORM_OF_FEW = 1e-12
"""The same where fewer are logged than make a level. Chosen: the square, which no noise of single batches reaches."""
BELOW_LABELS = 0.1
"""Share of the gradient that the labels alone give the last bias: a norm below it is far too small. Fitted: on trained
runs, where those that learn slowly have 1.5 times as much and more."""
AS_LABELS = (0.8, 1.2)
"""The same as a range: such a norm is of the labels alone. Fitted: slow learners have 1.5 times as much and more."""
AT_CHANCE = 0.05
"""Share by which a loss may miss ln C, the loss of a uniform guess. Fitted: on trained runs."""
MIN_NORM_FALL_RATIO = 1000.0
"""Times that the norm fell. Chosen: sound norms fall by ten, about as the loss."""
LEAST_ZEROS = 2
"""Norms of zero that are no chance by themselves. Chosen: by hand."""
KINDS_WITHOUT_LABELS = frozenset({"rl", "ppo", "grpo", "preference"})
"""Kinds of training whose loss may be above zero, or anything, where no label counts."""
LOSS_OF_LABELS = 0.1
"""Loss from which on some label has given it. Chosen: losses of other terms are smaller."""
MIN_COURSE_RECORDS = 20
"""Records for a course. Chosen: by hand."""
NORM_START_DIVISOR = 20
"""All records over the first ones, which do not count as high. Chosen: norms are large before the first updates."""


def grad_norm_nonfinite(run: Run) -> Evidence | None:
    """The gradient norm is NaN or infinite.

    Not this when: single steps far apart, or the first steps only, are lost and the loss goes on as before: as with a
    loss scaler (a remark), which may tell that it skipped each of them; none is finite although the loss is learnt on.
    """
    norm = run["grad_norm"]
    gone = lost(norm)
    if gone is None:
        return None
    if gone.bad.all():
        refuse_uncomputed(run, norm, "not finite")
    if (moved_while_infinite(run) or 0) < 0:
        raise CannotTell(f"each {norm.name} is infinite up to the last, yet the loss is learnt on: it is not used")
    records = len(norm)
    later = gone.count if run.step_name != "step" else int((gone.bad & (norm.step > MAX_SCALER_SETTLING_STEPS)).sum())
    sound = "loss" not in run or bool(np.isfinite(run["loss"].value).all())
    rare = later / records <= MAX_ISOLATED_LOST_SHARE or (
        later / records <= MAX_REPORTED_LOST_SHARE and are_skipped(run, norm.step[gone.bad])
    )
    isolated = sound and rare and not bool(gone.bad[-1])
    return Evidence(
        f"grad_norm is {gone.kind} at {run.place(gone.step)}; {gone.count} of {records} values are not finite"
        f"{'; the loss stays finite and the norm recovers each time' if isolated else ''}",
        steps=(gone.step,),
        values={"count": gone.count, "share": gone.count / records},
        present=not isolated,
    )


def grad_norm_never_finite(nonfinite: Evidence, run: Run) -> Evidence | None:
    """No gradient norm is finite from the first record on, and each loss is; or all are infinite from some step on.

    So it is where each step is skipped for overflow, or clipped to zero. Not this when: any later norm is finite; a
    loss is lost as well.
    """
    if "loss" not in run or not bool(np.isfinite(run["loss"].value).all()):
        return None
    stands_still = moved_while_infinite(run) == 0
    return nonfinite if nonfinite.values["share"] == 1 or stands_still else None


def grad_norm_zero(run: Run) -> Evidence | None:
    """The gradient norm is exactly zero in most records, or in all from some step on.

    Not this when: single zeros occur in GRPO, where a group of equal rewards gives no gradient; all are zero although
    the loss moves, so that it is just not computed. One record is enough where the rewards of its groups differ.
    """
    norm = run["grad_norm"].finite
    zero = norm.value == 0
    if len(norm) < LEAST_ZEROS and not rewards_differ(run):
        raise CannotTell(f"{norm.name} has {counted(len(norm), 'value')}, and nothing says that it should not be 0")
    if zero.all():
        refuse_uncomputed(run, norm, "0")
    tail = zeros_at_end(norm.value)
    if fades_to_zero(norm.value) and "loss" in run and fades_to_zero(run["loss"].finite.value):
        raise CannotTell(f"{norm.name} and the loss come down to the last digit that is written: 0 is a small number")
    if zero.mean() < ZERO_SHARE and tail < max(LEAST_FOR_LEVEL - 2, len(zero) * ZERO_SHARE**2):
        return None
    first = float(norm.step[int(np.argmax(zero))])
    summary = f"grad_norm is exactly 0 at {run.place(first)} and in {int(zero.sum())} of {len(zero)} records"
    return Evidence(summary, steps=(first,), values={"share": float(zero.mean()), "records_at_end": tail})


def rewards_differ(run: Run) -> bool:
    """Say whether rewards within groups differ in each record: then a policy that learns gets a gradient."""
    if "frac_reward_zero_std" in run:
        shares = run["frac_reward_zero_std"].finite.value
        return shares.size > 0 and bool(np.all(shares < 1))
    spreads = finite_of(run, "reward_std").value
    return spreads.size > 0 and bool(np.all(spreads > 0))


def labels_give_loss(run: Run) -> bool:
    """Say whether the loss is clearly above zero wherever the gradient norm is exactly zero: so there are labels.

    A loss of preferences is above zero without any, and one of a policy says nothing.
    """
    if run.kind in KINDS_WITHOUT_LABELS or "loss" not in run or "grad_norm" not in run:
        return False
    norm, loss = run["grad_norm"].finite, run["loss"].finite
    loss_there = loss.value[np.isin(loss.step, norm.step[norm.value == 0])]
    return loss_there.size >= LEAST_ZEROS and float(loss_there.min()) > LOSS_OF_LABELS


def grad_norm_vanishing(run: Run) -> Evidence | None:
    """The gradient norm is tiny for this kind of run, or has fallen a thousandfold while the loss has not.

    Tiny is a fiftieth of what is usual, or a tenth of what the labels of a batch give the last bias of a classifier.
    Not this when: the loss is nearly zero; the norm is exactly zero (`grad_norm_zero`).
    """
    norm = run["grad_norm"].finite
    norm = norm.where(norm.value > 0)
    if not len(norm) or (len(norm) < LEAST_FOR_LEVEL and norm.value.max() >= MAX_TINY_NORM_OF_FEW):
        raise CannotTell(f"{len(norm)} positive gradient norms; {LEAST_FOR_LEVEL} are needed")
    rewards = rewards_of(run)
    if rewards is not None and most_earned(rewards) is not None:
        return None  # what earns all that there is has nothing to learn
    moved, of_labels = loss_moved(run), label_noise_norm(run)
    if moved < SMALL_LOSS and run.kind != "grpo":
        return None
    typical, start = median(sample(norm.value[len(norm) // 2 :])), start_level(norm.value)
    stands = (
        of_labels is not None
        and "loss" in run
        and len(run["loss"].finite) >= LEAST_FOR_LEVEL
        and moved > 1 - SMALL_LOSS
    )
    bound = GRADIENT_LEVEL_LOW.get(
        run.kind, max(MAX_TINY_NORM, BELOW_LABELS * of_labels) if stands and of_labels is not None else MAX_TINY_NORM
    )
    if typical >= bound and not (len(norm) >= MIN_COURSE_RECORDS and start > MIN_NORM_FALL_RATIO * typical):
        return None
    below = bound if typical < bound else start / MIN_NORM_FALL_RATIO
    first = float(norm.step[int(np.argmax(norm.value < below))])
    return Evidence(
        f"grad_norm has a median of {figure(typical)} over the later half of {len(norm)} records; "
        f"{start_in_words(norm.value)}; it is below {figure(below)} from {run.place(first)} on",
        steps=(first,),
        values={"median": typical, "start": start, "bound": bound},
    )


def grad_norm_of_labels(run: Run) -> Evidence | None:
    """The loss is that of a uniform guess, and the gradient no larger than what its labels give the last bias alone.

    Of C classes in a batch of B that is sqrt((1 - 1/C) / B): all other weights get next to nothing. Not this when: the
    norm is larger, as where learning is slow; classes or batch are not in the configuration.
    """
    expected, norm, loss = label_noise_norm(run), run["grad_norm"].finite, run["loss"].finite
    if expected is None or run.facts.classes is None or min(len(norm), len(loss)) < LEAST_FOR_LEVEL:
        raise CannotTell(
            f"the classes and the batch are not both configured, or {LEAST_FOR_LEVEL} norms and losses not logged"
        )
    typical, guess = median(sample(norm.value[len(norm) // 2 :])), math.log(run.facts.classes)
    if abs(end_level(loss.value) / guess - 1) > AT_CHANCE or not AS_LABELS[0] <= typical / expected <= AS_LABELS[1]:
        return None
    return Evidence(
        f"grad_norm has a median of {figure(typical)} over the later half, which is what the output bias alone gets "
        f"from the labels of a batch ({figure(expected)}): all other weights get next to no gradient; the loss is that "
        f"of a guess, about {figure(end_level(loss.value))}",
        steps=(float(norm.step[len(norm) // 2]),),
        values={"median": typical, "of_labels": expected},
    )


def grad_norm_high(run: Run) -> Evidence | None:
    """The gradient norm lies above what is stable for this kind of run in a good part of the records.

    Not this when: single records do (`grad_norm_spike`); the loss is as large, as a sum over rows or an error in large
    units. Healthy runs of classic RL, diffusion and fp16 Megatron have norms of 1e4 to 1e6.
    """
    norm, of_kind = run["grad_norm"].finite, HIGH.get(run.kind)
    unscaled = run.kind in ANY_SCALE or run.facts.precision == "fp16" or "loss_scale" in run
    if len(norm) < LEAST_FOR_LEVEL or (of_kind is None and (unscaled or "loss" not in run)):
        raise CannotTell(
            f"no usual gradient norm is known for this kind of run, or fewer than {LEAST_FOR_LEVEL} are logged"
        )
    bound = of_kind if of_kind is not None else OF_ANY * max(1.0, abs(median(run["loss"].finite.value)))
    late = norm.since_record(len(norm) // NORM_START_DIVISOR)
    high = late.value > bound
    if high.mean() < (HIGH_SHARE if of_kind is not None else ZERO_SHARE) or high.sum() <= 2:
        return None
    first = float(late.step[int(np.argmax(high))])
    return Evidence(
        f"grad_norm is above {figure(bound)} in {high.mean():.0%} of {len(late)} records, first at {run.place(first)}; "
        f"its median is {figure(median(late.value))}",
        steps=(first,),
        values={"share": float(high.mean()), "median": median(late.value), "bound": bound},
    )


_SOURCES = ("axolotl_stability",)
_NORM = ("grad_norm",)
ask_in_turn(
    "gradient_level",
    outcome_of(
        grad_norm_nonfinite,
        0.005,
        *_SOURCES,
        needs=_NORM,
        follows=("loss_nonfinite",),
        instead=("grad_norm_growing", "scale_falls_with_loss", "loss_scale_falls", "steps_skipped"),
    ),
    outcome_of(grad_norm_zero, 0.003, *_SOURCES, needs=_NORM, follows=("units_dead",)),
    outcome_of(grad_norm_vanishing, 0.01, *_SOURCES, needs=_NORM, points=2),
    outcome_of(grad_norm_of_labels, 0.002, needs=("grad_norm", "loss"), points=2),
    outcome_of(grad_norm_high, 0.02, *_SOURCES, needs=_NORM, points=2),
    outcome_of(grad_norm_never_finite, 0.1, of="grad_norm_nonfinite", as_chosen=True),
    needs=_NORM,
)


# Does the gradient norm keep its level: does it rise over the run, or jump out of it?


MIN_NORM_GROWTH_RATIO = 4.0
"""Times the early level that a norm comes to at the end. Chosen: healthy norms drift by less than 4."""
MIN_GROWTH_SIGMAS = 6.0
"""Standard errors of a level by which it grows. Chosen: it is chance in thousands of runs."""
RUN_START_SHARE = 0.05
"""Share of the steps that is the beginning. Chosen: norms settle in a twentieth of a run."""
NORM_COURSE_STRETCHES = 12
"""Stretches that the steps behind it are cut into. Chosen: by hand."""
END_STRETCHES = 2
"""Stretches that are the end. Chosen: a level of two stretches outlives an outlier."""
MIN_RISING_PAIR_SHARE = 0.8
"""Share of pairs of stretches where the later is the higher. Chosen: chance gives a half."""
MIN_LATE_GROWTH_SHARE = 0.25
"""Share of the growth that the later half makes. Chosen: the norm of a model that leaves a plateau rises at once."""
MIN_NORM_RECORDS = 12
"""Norms that are needed. Chosen: six before a jump, and some behind."""
USUAL_SHARE = 0.02
"""Jumps, as a share of the records, that are no exceptions. Chosen: then the norm is just noisy."""
MAX_NORM_JUMPS = 5
"""The same in number. Chosen: then the norm is just noisy."""


def grad_norm_growing(run: Run, norm: Series) -> Evidence | None:
    """The gradient norm grows over the run to several times its early level.

    Not this when: it jumps and comes back (`grad_norm_spike`), or grows within the first steps only. Unknown where
    it grows only once the loss rises, which the loss shows already, and for agents.
    """
    if run.kind == "rl":
        raise CannotTell("not judged for a run of kind rl")
    found = _growth(run, norm)
    turn = fails_at(run["loss"]) if found is not None and "loss" in run else None
    if turn is not None and _growth(run, norm.where(norm.step <= turn)) is None:
        raise CannotTell(f"it grows only from {run.place(turn)} on, as the loss does")
    return found


def _growth(run: Run, norm: Series) -> Evidence | None:
    late = (
        norm.where(norm.step >= norm.step[0] + RUN_START_SHARE * (norm.step[-1] - norm.step[0])) if len(norm) else norm
    )
    if len(late) < NORM_COURSE_STRETCHES // 2:
        return None
    cut = stretches_of(Series(late.name, late.step, np.log(late.value)), NORM_COURSE_STRETCHES)
    lowest = int(np.argmin(cut.level[: max(1, len(cut.level) // 2)]))
    after = cut.level[lowest:]
    least, end = float(after[0]), median(after[-END_STRETCHES:])
    rises = (after[None, :] > after[:, None])[np.triu_indices(len(after), 1)]
    still = end - median(after[len(after) // 2 :][:END_STRETCHES]) >= MIN_LATE_GROWTH_SHARE * (end - least)
    if (
        end - least < max(math.log(MIN_NORM_GROWTH_RATIO), MIN_GROWTH_SIGMAS * cut.error)
        or rises.mean() < MIN_RISING_PAIR_SHARE
        or not still
    ):
        return None
    first = float(cut.first[lowest + int(np.argmax(after > least + (end - least) / 4))])
    return Evidence(
        f"grad_norm grows from {figure(math.exp(least))} to {figure(math.exp(end))} from {run.place(first)} on",
        steps=(first,),
        values={"from": math.exp(least), "to": math.exp(end), "factor": math.exp(end - least)},
    )


def grad_norm_spike(run: Run, norm: Series) -> Evidence | None:
    """The gradient norm jumps to many times its recent level.

    Not this when: norms vary by that much all the time; the first steps of a run; a policy with little left to
    learn meets a surprise, and its norm is still no larger than in the first records.
    """
    found = jumps_of(norm)
    if run.kind in POLICIES:
        found = [spike for spike in found if norm.value[spike.peak] > start_level(norm.value)]
    if not found or len(found) > max(MAX_NORM_JUMPS, USUAL_SHARE * len(norm)):
        return None
    worst = max(found, key=lambda spike: spike.height)
    at, top, level = float(norm.step[worst.first]), float(norm.value[worst.peak]), float(np.exp(worst.level))
    highest = float(norm.step[worst.peak])
    begun = f", beginning at {figure(at)}" if highest != at else ""
    after = int(np.argmax(norm.value[worst.first :])) + worst.first
    if worst.recovered is False:
        begun += f", and does not come back; its highest is {figure(norm.value[after])} at {figure(norm.step[after])}"
    more = f"; {len(found)} such jumps in all" if len(found) > 1 else ""
    return Evidence(
        f"grad_norm jumps from about {figure(level)} to {figure(top)} at {run.place(highest)}{begun}{more}",
        steps=(at, *(float(norm.step[spike.first]) for spike in found if spike is not worst))[:10],
        values={"grad_norm_before": level, "peak": top, "factor": float(np.exp(worst.height)), "count": len(found)},
    )


def _positive_norms(run: Run, needed: int) -> Series:
    norm = run["grad_norm"].finite
    norm = norm.where(norm.value > 0)
    if len(norm) < needed:
        raise CannotTell(f"{len(norm)} positive gradient norms; {needed} are needed")
    return norm


@question(
    outcome_of(grad_norm_growing, 0.03, "axolotl_stability"),
    outcome_of(grad_norm_spike, 0.02, "axolotl_stability", as_chosen=True, follows=("loss_spike",)),
    needs=("grad_norm",),
    points=MIN_NORM_RECORDS,
)
def gradient_course(run: Run) -> Answers:
    """Compare the later stretches of the norm with the earlier ones, then each record with those before it."""
    norm = _positive_norms(run, MIN_NORM_RECORDS)
    return first_seen(by_outcome((grad_norm_growing, grad_norm_spike), run, norm))


# Does the gradient norm grow from the first step on as the number of steps does, as a sum of gradients does?


OF_A_SUM = 12
"""Records from the first step on that are looked at. Chosen: a sum of gradients turns back once the loss does."""
SUM_SLOPE = (0.4, 1.35)
"""Power of the number of steps with which the norm grows, where each step is logged. Gradients of one direction add up
with the power 1, and with less once they turn. Fitted: 232 healthy runs stay below 0.4."""
SUM_SLOPE_THINNED = (0.75, 1.3)
"""The same where some steps are logged. Fitted: 232 healthy runs stay below 0.74; at too high a rate it explodes."""
SUM_UNEXPLAINED = 0.15
"""Share of the variance of the logarithm that the power leaves. Fitted: of trained sums 0 to 0.12."""
SUM_TIMES = 2.5
"""Times that the norm grows in these records at least. Fitted: of trained sums 2.8 to 11, of healthy runs up to 1.6."""


def grad_norm_adds_up(run: Run) -> Evidence | None:
    """The gradient norm grows in step with the number of steps from the first step on.

    So gradients of earlier steps are still in it. Not this when: it grows exponentially, or later only. Unknown where
    the log does not begin with the first steps, and for agents.
    """
    norm = _positive_norms(run, OF_A_SUM)
    if run.kind in POLICIES:
        raise CannotTell(f"not judged for a run of kind {run.kind}")
    interval = float(norm.step[1] - norm.step[0])
    if norm.step[0] > max(1.0, interval) or run.resumes or interval <= 0:
        raise CannotTell("the log does not begin with the first steps")
    step, value = norm.step[:OF_A_SUM] - norm.step[0] + interval, norm.value[:OF_A_SUM]
    power, unexplained = _fitted(np.log(step), np.log(value))
    _, exponentially = _fitted(step, np.log(value))
    least, most = SUM_SLOPE if interval <= 1 else SUM_SLOPE_THINNED
    times = float(value[-1] / value[0])
    if not least <= power <= most or unexplained > min(SUM_UNEXPLAINED, exponentially) or times < SUM_TIMES:
        return None
    last = float(norm.step[OF_A_SUM - 1])
    return Evidence(
        f"grad_norm grows with the number of steps from the first on, from {figure(float(value[0]))} to "
        f"{figure(float(value[-1]))} by {run.place(last)}, as a sum of the gradients of all steps does",
        steps=(float(norm.step[0]),),
        values={"power": power, "factor": times},
    )


def _fitted(x: Floats, y: Floats) -> tuple[float, float]:
    """Return the slope of a line, and the share of the variance that it leaves unexplained."""
    slope, level = np.polyfit(x, y, 1)
    return float(slope), float((y - level - slope * x).var()) / max(float(y.var()), MIN_DIVISOR_VARIANCE)


MIN_DIVISOR_VARIANCE = 1e-12
"""Variance that stands for none, as nothing is divided by 0. Chosen: no norm is so even."""


ask_in_turn("gradient_sum", outcome_of(grad_norm_adds_up, 0.003, as_chosen=True), needs=("grad_norm",), points=OF_A_SUM)


# Do all parts of the model get a gradient of comparable size?


GRADIENT_PARTS_LEAST = 3
"""Records. Chosen: with adapters whose second matrix begins at zero the first has no gradient in the first step."""
MIN_DEPTH_FADING_RATIO = 1000.0
"""Times between the first layer and the last. Chosen: layers of sound models differ by a factor of 100 at most."""
MIN_DEPTH_CORRELATION = 0.9
"""Rank correlation with depth that makes a course. Chosen: a layer or two may stand out of it."""
MEANT = ("expert", "router", "bias", "position", "frozen")
"""Parts that may have no gradient in a sound model: experts without tokens, biases before a normalisation."""
MAX_LOST_PART_SHARE = 1e-5
"""Of the norm of the whole: a part with less does not learn. Chosen: in deep sound models it is a hundredth."""
FREEZES = ("freeze", "frozen")


def _part_without_gradient(run: Run, parts: Sequence[Part]) -> Evidence | None:
    """Say whether hardly anything of the gradient of the whole comes to a part, which is not none at all."""
    whole = finite_of(run, "grad_norm").value
    if len(whole) < GRADIENT_PARTS_LEAST:
        return None
    level = median(whole)
    faint = [
        part
        for part in parts
        if 0 < part.level < MAX_LOST_PART_SHARE * level and part.records >= GRADIENT_PARTS_LEAST and not _is_meant(part)
    ]
    if not faint:
        return None
    part = min(faint, key=lambda faint_part: faint_part.level)
    return Evidence(
        f"the median gradient norm is {figure(part.level)} in {part.name} and {figure(level)} in the whole model",
        steps=(run.first_step,),
        values={"first": part.level, "last": level, "layers": float(len(parts))},
    )


def _is_meant(part: Part) -> bool:
    return any(word in part.name.lower() for word in MEANT)


def grad_part_zero(run: Run, parts: Sequence[Part]) -> Evidence | None:
    """The gradient norm of a part of the model is exactly zero in every record, while others are not.

    Not this when: the configuration freezes parts; the part is an expert, a bias or a table of positions; fewer
    than three records have it.
    """
    zero = [part for part in parts if part.zeros == 1 and part.records >= GRADIENT_PARTS_LEAST and not _is_meant(part)]
    alive = any(part.zeros < 1 and part.level > 0 for part in parts)
    if not zero or not alive or any(word in name.lower() for name in run.settings for word in FREEZES):
        return None
    named = ", ".join(part.name for part in zero[:3]) + (", …" if len(zero) > 3 else "")
    summary = f"the gradient norm is exactly 0 in every record of {len(zero)} of {len(parts)} parts: {named}"
    return Evidence(summary, steps=(run.first_step,), values={"parts": len(zero), "of": len(parts)})


def grad_fades_with_depth(run: Run, parts: Sequence[Part]) -> Evidence | None:
    """Gradient norms shrink steadily from the last layer to the first, to a thousandth or less.

    Not this when: layers differ by less, or in no order; neither four layers nor both ends are logged.
    """
    ends = known(ends_of(parts), "the norms of too few layers are logged")
    first, last, layers, order = ends
    if abs(order) < MIN_DEPTH_CORRELATION or first.level / last.level > 1 / MIN_DEPTH_FADING_RATIO:
        return None
    between = f", with {layers - 2} layers in order between" if layers > 2 else ""
    return Evidence(
        f"the median gradient norm is {figure(first.level)} in {first.name} and {figure(last.level)} in {last.name}"
        f"{between}",
        steps=(run.first_step,),
        values={"first": first.level, "last": last.level, "layers": layers},
    )


@question(
    outcome_of(grad_part_zero, 0.03),
    outcome_of(grad_fades_with_depth, 0.01),
    any_of=(Quantity.GRADIENT_NORM,),
    whole=True,
)
def gradient_parts(run: Run) -> Answers:
    """Look for parts without a gradient, then for a course from layer to layer."""
    parts = parts_of(run)
    lost = _part_without_gradient(run, parts)
    if lost is not None:
        return {"grad_fades_with_depth": lost}
    if len(parts) < 2:
        raise CannotTell("no gradient norms of parts of the model are logged")
    return first_seen(by_outcome((grad_part_zero, grad_fades_with_depth), run, parts))


# How much of the gradient does clipping take?


MIN_SHARE_CLIPPED = 0.95
"""Share of the records that are clipped, or are at the threshold. Chosen: nearly every step."""
MIN_TIMES_THRESHOLD = 5.0
"""Times the threshold: far above the 90th percentile of norms, where one clips. Source: tuning_playbook."""
MAX_CLIP_DEVIATION_SHARE = 0.01
"""Share within which a norm is at the threshold. Chosen: logs are rounded."""
MIN_EXTREME_CLIP_RATIO = 50.0
"""Times the threshold. Chosen: 98 % of each gradient is cut off."""
CLIPPING_LOW = 0.05
"""A tiny threshold: practice lies between 0.1, for policies, and 1. Source: axolotl_stability."""


def grad_clip_saturated(threshold: float, norm: Series) -> Evidence | None:
    """The gradient norm lies above the clipping threshold at nearly every step, typically by several times.

    One that is logged after clipping stands exactly at it instead. Not this when: only the first steps are clipped.
    """
    if not len(norm):
        return None
    if len(norm) < LEAST_FOR_LEVEL:
        raise CannotTell(f"grad_norm has {len(norm)} finite values; {LEAST_FOR_LEVEL} are needed")
    clipped, typical, at = norm.value > threshold, median(norm.value), pinned(norm)
    stands = at is not None and abs(at[0] / threshold - 1) < MAX_CLIP_DEVIATION_SHARE and at[1] >= MIN_SHARE_CLIPPED
    if not stands and (clipped.mean() < MIN_SHARE_CLIPPED or typical < MIN_TIMES_THRESHOLD * threshold):
        return None
    return Evidence(
        f"grad_norm is {'at' if stands else 'above'} the clipping threshold {figure(threshold)} in "
        f"{at[1] if stands and at else clipped.mean():.0%} of {len(norm)} records; its median is {figure(typical)}",
        steps=(float(norm.step[0 if stands else int(np.argmax(clipped))]),),
        values={"share": float(clipped.mean()), "median": typical, "threshold": threshold},
    )


def grad_clip_takes_most(saturated: Evidence) -> Evidence | None:
    """The typical gradient norm is fifty times the clipping threshold, or more.

    Not this when: it is a few times above.
    """
    return saturated if saturated.values["median"] >= MIN_EXTREME_CLIP_RATIO * saturated.values["threshold"] else None


def grad_clip_low(threshold: float, norm: Series) -> Evidence | None:
    """The threshold that gradients are clipped to is configured to 0.05 or less.

    Not this when: it is 0, which switches clipping off; the gradient norm that is logged stays below it.
    """
    if threshold > CLIPPING_LOW or (len(norm) and float(norm.value.max()) <= threshold):
        return None
    summary = f"max_grad_norm is {figure(threshold)}; most configurations have 0.1 to 1.0"
    return Evidence(summary, values={"max_grad_norm": threshold})


@question(
    outcome_of(grad_clip_saturated, 0.06, "tuning_playbook", needs=("grad_norm",)),
    outcome_of(grad_clip_takes_most, 0.005, of="grad_clip_saturated"),
    outcome_of(grad_clip_low, 0.01, "axolotl_stability", "opt_175b", as_chosen=True),
)
def clipping(run: Run) -> Answers:
    """Compare the gradient norm with the threshold, then the threshold with what is usual."""
    norm = finite_of(run, "grad_norm")
    threshold = run.facts.clip
    if threshold is None and (cut := pinned(finite_of(run, CLIPPED_NORM))) is not None and cut[1] >= MIN_SHARE_CLIPPED:
        threshold = cut[0]  # both norms are logged: what clipping leaves is the threshold
    if threshold is None:
        return _pinned(norm)
    if math.isinf(threshold):
        return {}
    answers = answers_of(by_outcome((grad_clip_saturated,), threshold, norm))
    if isinstance(answers.get("grad_clip_saturated"), Evidence):
        return with_attribute(answers, "grad_clip_saturated", grad_clip_takes_most)
    return {**answers, **answers_of(by_outcome((grad_clip_low,), threshold, norm))}


def _pinned(norm: Series) -> Answers:
    """Judge a norm without a threshold to compare it with: one that stays at its highest value is cut off there."""
    at = pinned(norm)
    if at is None or len(norm) < LEAST_FOR_LEVEL or at[1] < MIN_SHARE_CLIPPED:
        raise CannotTell("the clipping threshold (max_grad_norm) is not in the configuration")
    value, share, first = at
    saturated = Evidence(
        f"grad_norm stays at {figure(value)} in {share:.0%} of {len(norm)} records and is never above, as "
        "one that is clipped",
        steps=(first,),
        values={"share": share, "threshold": value},
    )
    return {"grad_clip_saturated": saturated, "grad_clip_low": CannotTell("the threshold is not in the configuration")}
