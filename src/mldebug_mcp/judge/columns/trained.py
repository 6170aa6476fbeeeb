"""What is trained: the parts of a loss and their signs, the weights that move, the labels that train them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import partial
from itertools import permutations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.checks.check import CannotTell
from mldebug_mcp.checks.curve import (
    fades_to_zero,
    monotone,
    positive,
    row_medians,
    sample,
    start_level,
    true_at_end,
    zeros_at_end,
)
from mldebug_mcp.checks.evaluation import AVERAGED_WEIGHTS, is_of_averaged_weights
from mldebug_mcp.checks.gradients import (
    LAST_LAYERS,
    first_lost,
    gradient_norm,
    in_half_precision,
    pinned,
    returns,
    skips_of,
    training_losses,
)
from mldebug_mcp.checks.learning_rate import peak_of
from mldebug_mcp.checks.reference_settings import TRAINERS, Family, family_of
from mldebug_mcp.checks.run.activations import MIN_DEAD_UNIT_SHARE, dead_share_bound
from mldebug_mcp.checks.run.loss_level import loss_at_collapse
from mldebug_mcp.checks.run.not_finite import FP8_NAMES, MIN_LOST_STRETCHES
from mldebug_mcp.core.arrays import has_distinct, median, nearest_sum, quantile
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import figure, percent
from mldebug_mcp.judge.columns import (
    GRADIENT_WORDS,
    HALVED,
    LEAST_PAIRS,
    LOSSES,
    MIN_LEARNING_FALL_SHARE,
    MIN_RECORDS_FOR_LEVEL,
    NOT_BY_LOSS,
    POLICIES,
    Facts,
    are_shares,
    called,
    columns_of,
    derived_fact,
    ends_of,
    from_to,
    given_loss,
    last_level,
    last_third,
    logged,
    named,
    set_scores,
    tail,
    tenth_of,
    training_loss,
    whole_column,
    whole_columns,
)
from mldebug_mcp.judge.columns.guesses import loading_setting
from mldebug_mcp.logs import Run, Series
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.names.lexicon import PARTS_OF_A_MODEL
from mldebug_mcp.logs.names.losses import is_auxiliary
from mldebug_mcp.logs.names.metrics import CLIPPED_NORM
from mldebug_mcp.logs.names.words import pieces_of
from mldebug_mcp.logs.settings.settings import flag_of, formats_kept_in
from mldebug_mcp.models.diagnosis import DerivedFact

# A total and its parts: what share each has, and which part stays where the others move.


MAX_SUM_RESIDUAL_SHARE = 0.01
"""Share of a total by which parts are off it at most. Chosen: four printed digits leave less, a negative part more."""
MIN_RELATIVE_WEIGHT = 0.01
"""Share of the largest weight that the smallest has. Chosen: a part of less is hardly trained, by intention."""
MOST_PARTS = 6
"""Parts of a sum that are looked at. Chosen: more fit any total by chance."""
MIN_RULING_PART_SHARE = 0.99
"""Share of the total above which one part rules it. Chosen."""
MAX_STEADY_FALL_SHARE = 0.03
"""Share of its level by which a part that stays falls at most. Chosen."""
MAX_STEADY_RISE_SHARE = 0.1
"""Share of its level by which a part that stays rises at most. Chosen."""


@given_loss(not_of=POLICIES)
def weighed_parts(run: Run, total: Series) -> Facts:
    """Yield a weighted sum of parts in which one part is nearly all, or one stays where the rest falls."""
    parts = _parts_of(run, total, *LOSSES)
    summed = _weights(total, parts)
    if len(parts) < 2 or summed is None:
        return
    weights, _ = summed
    columns = np.stack([part.value for part in parts], axis=1) * weights
    early, late = (row_medians(columns[piece].T) for piece in (slice(0, 3), slice(-3, None)))
    equation = " + ".join(f"{figure(w)} x {named(series)}" for w, series in zip(weights, parts, strict=True))
    shares, fall = late / late.sum(), early - late
    steady = (fall <= MAX_STEADY_FALL_SHARE * np.abs(early)) & (-fall <= MAX_STEADY_RISE_SHARE * np.abs(early))
    rest_falls = (early.sum() - early) * (1 - MIN_LEARNING_FALL_SHARE) > late.sum() - late
    for k in np.flatnonzero(steady & rest_falls & (weights > 0) & (early > 0)).tolist():
        if not is_auxiliary(named(parts[k])):
            yield derived_fact(
                "part_stays",
                f"{named(total)} = {equation}; {named(parts[k])} stays at {figure(median(parts[k].value[-3:]))} while "
                "the other parts fall. A part that is trained falls, too.",
                {"share": shares[k]},
            )
    most = int(np.argmax(shares))
    is_ruling = MIN_RULING_PART_SHARE < float(shares[most]) <= 1 + MAX_SUM_RESIDUAL_SHARE
    if is_ruling and weights.min() > MIN_RELATIVE_WEIGHT * weights.max():
        yield derived_fact(
            "part_rules",
            f"{named(total)} = {equation}; at the end {named(parts[most])} is {percent(float(shares[most]))} of it. "
            "The other parts have next to no gradient.",
            {"share": shares[most]},
        )


def parts_reduced_apart(run: Run) -> Facts:
    """Yield that by the settings one part of a loss is a sum over its elements, and another a mean over them."""
    reductions: dict[str, str] = {}
    for name, each in run.settings.items():
        value = str(each.value).lower()
        if "reduction" in pieces_of(name.rpartition("/")[2]) and value in ("mean", "sum"):
            reductions.setdefault(value, f"{each.key}={each.value}")
    if len(reductions) > 1:
        yield derived_fact(
            "parts_reduced_apart",
            f"{reductions['mean']} and {reductions['sum']}: one part of the loss is a mean over its elements and the "
            "other a sum. Parts of a likelihood, such as reconstruction and divergence, are summed alike.",
        )


def _parts_of(run: Run, total: Series, *quantities: Quantity) -> list[Series]:
    """Return the columns of some quantities that are logged in the records of the total."""
    found = columns_of(run, *quantities, phase="train")
    return [part for part in found if part.name != total.name and np.array_equal(part.step, total.step)][:MOST_PARTS]


SURE_WEIGHT = 5.0
"""Standard errors that a sure weight is away from 0. Chosen."""
LEAST_WEIGHT = 1e-3
"""Least size of a sure weight. Chosen: bonuses have a hundredth and more."""
LEFT_OF_PART = 0.1
"""What is left over, as a share of what the part varies by. Chosen: a huge part hides the weights of small ones."""


def _weights(total: Series, parts: Sequence[Series]) -> tuple[Floats, NDArray[np.bool_]] | None:
    """Return the weights with which parts sum to the total, and which of them are sure; None where they do not."""
    if not parts or len(total) < 3 * len(parts):
        return None
    columns = np.stack([part.value for part in parts], axis=1)
    (weights, left), varies = nearest_sum(total.value, columns), np.std(total.value)
    if not np.isfinite(weights).all() or varies <= 0 or left > MAX_SUM_RESIDUAL_SHARE * varies:
        return None
    errors = left * np.sqrt(np.maximum(np.diag(np.linalg.pinv(columns.T @ columns)), 0.0))
    is_explained = left <= LEFT_OF_PART * np.abs(weights) * np.std(columns, axis=0)
    return weights, is_explained & (np.abs(weights) > np.maximum(SURE_WEIGHT * errors, LEAST_WEIGHT))


@given_loss(not_of=NOT_BY_LOSS)
def subtracted(run: Run, total: Series) -> Facts:
    """Yield that the total loss holds a part with a negative factor, so that training makes that part larger."""
    for quantities in (LOSSES, (*LOSSES, Quantity.KL)):
        parts, weighted = weighted_parts(run, total, *quantities)
        how = f"least squares over {len(total)} records and {len(parts)} parts"
        for part, weight, first, last in weighted:
            if len(parts) > 1 and weight <= 0:
                yield _subtracts(total, part, weight, how, (first, last))
    yield from _subtracted_by_arithmetic(run, total)


_PENALTIES = frozenset({"reg", "l2", "wd", "decay", "penalty", "regularizer", "regulariser", "regularization",
                        "regularisation"})  # fmt: skip
"""Words of a term of the loss that is of the size of the weights."""
SHRUNK_AT_ONCE = 3.0
"""Times by which it falls before anything is learnt. Chosen: weights of a healthy run hardly shrink."""
HARDLY_LEARNT = 0.75
"""Share of its start that the loss has then. Chosen: by hand."""
EARLY_SHARE = 0.25
"""Share of the records that are early. Chosen: by hand."""


@given_loss(MIN_RECORDS_FOR_LEVEL, not_of=NOT_BY_LOSS)
def penalty_rules(run: Run, loss: Series) -> Facts:
    """Yield that the penalty on the weights falls far before the loss does, and rests above the loss of the data.

    Not this where the loss ends near zero: then any penalty is above it.
    """
    for series in run.series.values():
        penalty = series.finite
        is_penalty = series.quantity in (None, Quantity.LOSS)
        if not is_penalty or _PENALTIES.isdisjoint(pieces_of(series.logged_as or series.name)):
            continue
        if not np.array_equal(penalty.step, loss.step) or not (penalty.value > 0).all():
            continue
        start, end, left = loss.value[0], last_level(loss), last_level(penalty)
        early = 1 + int(EARLY_SHARE * len(loss))
        shrunk = np.flatnonzero(penalty.value[:early] * SHRUNK_AT_ONCE <= penalty.value[0])
        if not len(shrunk) or loss.value[shrunk[0]] < HARDLY_LEARNT * start > 0 or not SMALL_SHARE * start < end < left:
            continue
        at = int(shrunk[0])
        yield derived_fact(
            "penalty_rules",
            f"{named(penalty)} falls from {figure(penalty.value[0])} to {figure(penalty.value[at])} "
            f"by {run.place(loss.step[at])}, where {named(loss)} is still {figure(loss.value[at])} of "
            f"{figure(start)}, and rests at {figure(left)}, above the {figure(end)} of {named(loss)}. Weights "
            "shrink before anything is learnt, and what holds them down weighs more than the data.",
            {"penalty": left, "loss": end},
            at=loss.step[at],
        )


SMALL_SHARE = 0.05
"""Share of its start below which a loss is near zero. Chosen: by hand."""
_GAINS = frozenset({
    "entropy", "ent", "bonus", "reward", "return", "gain", "acc", "accuracy", "ll", "logp", "loglik", "mi", "info",
    "score", "margin", "sim", "similarity", "total", "objective", "overall", "combined", "all", "full", "loss",
    "ema", "avg", "lr", "rate", "time", "step", "steps", "epoch",
})  # fmt: skip
"""Words of what training is to make larger, of sums, and of what never is a part of a loss."""
LEAST_SUM_RECORDS = 10
"""Records in which an unread column and a part make up the total to the last digit. Chosen: none does by chance."""
SUM_DIGITS = 2.0
"""Units of the last printed digit by which it is off at most. Chosen: each of three numbers is rounded."""
MANY_DIGITS = 50.0
"""Times that by which the subtracted part goes. Chosen: the factor is known to a fiftieth."""


def _subtracted_by_arithmetic(run: Run, total: Series) -> Facts:
    """Yield that the total is one column less a share of another, record by record to the last digit.

    The names of these need not be known; the part is never below zero, and is none that is to be made larger.
    """
    if len(total) < LEAST_SUM_RECORDS or total.value[-1] >= total.value[0]:
        return
    columns = [
        series.finite
        for name, series in run.series.items()
        if name != total.name
        and series.quantity in (None, *LOSSES, Quantity.KL)
        and np.array_equal(series.finite.step, total.step)
        and np.ptp(series.finite.value) > 0
        and series.finite.value.min() >= 0
        and bool((series.finite.value % 1).any())
        and _GAINS.isdisjoint(pieces_of(series.logged_as or name))
    ]
    for whole, part in permutations(columns[:MOST_SUMMED], 2):
        unit = max(_last_digit(series.value[:LEAST_SUM_RECORDS].tolist()) for series in (total, whole))
        (factors, _), (first, last) = nearest_sum(total.value - whole.value, part.value[:, None]), part.value[[0, -1]]
        factor = float(factors[0])
        off = total.value - whole.value - factor * part.value
        rounded = SUM_DIGITS * unit + abs(factor) * _last_digit(part.value[:LEAST_SUM_RECORDS].tolist())
        is_exact = np.abs(off).max() <= rounded and abs(factor) * np.ptp(part.value) >= MANY_DIGITS * rounded
        if -1 < factor < 0 and is_exact and last > first:
            yield _subtracts(total, part, factor, f"{named(whole)} is the rest, to the last digit", (first, last))
            return


MOST_SUMMED = 12
"""Columns that are taken in pairs. Chosen: a log has few that stand in every record."""


def _subtracts(total: Series, part: Series, factor: float, how: str, ends: Sequence[float]) -> DerivedFact:
    first, last = map(float, ends)
    return derived_fact(
        "divergence_subtracted" if part.quantity is Quantity.KL else "part_subtracted",
        f"{named(total)} holds {named(part)} with the factor {figure(factor)} ({how}): it is subtracted. "
        f"{named(part)} goes from about {figure(first)} to about {figure(last)}. A loss that is to fall is added.",
        {"factor": factor, "first": first, "last": last},
    )


def weighted_parts(
    run: Run, total: Series, *quantities: Quantity
) -> tuple[list[Series], list[tuple[Series, float, float, float]]]:
    """Return all parts, and those that a total surely holds: each with its factor, and its level at first and at last.

    A part whose level is below zero is left out, as its factor does not tell what is subtracted.
    """
    parts = _parts_of(run, total, *quantities)
    summed = _weights(total, parts)
    if summed is None:
        return parts, []
    return parts, [
        (part, float(weight), median(part.value[:LEAST_PAIRS]), median(part.value[-LEAST_PAIRS:]))
        for part, weight, is_sure in zip(parts, *summed, strict=True)
        if is_sure and median(part.value) > 0
    ]


MEAN_OF_VALUES = 1.0
"""Error of a reconstruction up to which it is a mean over the values of a row. Chosen: a sum over a row has tens."""
COUNTS_IN_FULL = 0.1
"""Factor from which on a divergence counts in full. Chosen: spread over the values of a row it has a hundredth."""


@given_loss(not_of=NOT_BY_LOSS)
def divergence_against_mean(run: Run, total: Series) -> Facts:
    """Yield that a divergence from the prior vanishes which counts in full next to a mean over the values of a row.

    Not this where the reconstruction is a sum over these, or the factor of the divergence makes up for the mean.
    """
    try:
        collapsed = loss_at_collapse(run)
    except CannotTell:
        return
    if collapsed is None or collapsed.values["of_equal_embeddings"]:
        return
    _, weighted = weighted_parts(run, total, *LOSSES, Quantity.KL)
    gone = [each for each in weighted if each[0].quantity is Quantity.KL]
    kept = [each for each in weighted if each[0].quantity is not Quantity.KL]
    if not gone or len(kept) != 1 or kept[0][0].value[0] > MEAN_OF_VALUES or gone[0][1] < COUNTS_IN_FULL * kept[0][1]:
        return
    (divergence, factor, *_), (error, weight, *_) = gone[0], kept[0]
    yield derived_fact(
        "divergence_against_mean",
        f"{named(total)} = {figure(weight)} x {named(error)} + {figure(factor)} x {named(divergence)}. "
        f"{named(error)} starts at {figure(error.value[0])}, so it is a mean over the values of a row, and "
        f"{named(divergence)} ends at {figure(divergence.value[-1])}. The bound sums over the values: in a "
        "mean over N of them the divergence counts N times too much, and codes say nothing.",
        {"factor": factor, "error": error.value[0]},
        steps=collapsed.steps,
    )


PART_GROWS = 1.15
"""Times its start that a part grows to. Chosen: of 650 healthy runs none shows it."""
LOSS_FALLS = 0.1
"""Share of its start by which the total falls. Chosen, as the others."""
PART_ORDERED = 0.6
"""Rank correlation of the part with the step. Chosen, as the others."""
LEAST_PART_RECORDS = 12
"""Records of the part and of the total. Chosen, as the others."""
_MAY_RISE = frozenset({"kl", "kld", "prior", "reg", "penalty", "adv", "advantage", "gan", "gen", "disc", "commit"})
"""Words of parts that a model pays for what it learns, or that an opponent makes: these rise in healthy runs."""


@given_loss(LEAST_PART_RECORDS, not_of=NOT_BY_LOSS)
def rising_parts(run: Run, total: Series) -> Facts:
    """Yield a part of the loss that rises while the total falls, maybe for another part that falls below zero."""
    began, ends = ends_of(total)
    if began - ends <= LOSS_FALLS * abs(began) or any(subtracted(run)):
        return
    parts = [(part, *ends_of(part)) for part in _parts_of(run, total, *LOSSES)]
    lower = [found for found in parts if found[2] < min(0.0, found[1]) and ends < 0]
    below = "".join(
        f" {named(other)} goes from about {figure(start)} to about {figure(end)}: what falls below zero has no end."
        for other, start, end in lower[:1]
    )
    for part, first, last in parts:
        if not 0 < PART_GROWS * first < last or monotone(sample(part.value)) < PART_ORDERED:
            continue
        if _MAY_RISE.isdisjoint(pieces_of(part.name)):
            yield derived_fact(
                "part_given_up" if lower else "part_rises",
                f"{named(part)} rises from about {figure(first)} to about {figure(last)} (medians of "
                f"{tenth_of(total)} records) while {named(total)} falls from about {figure(began)} to about "
                f"{figure(ends)}.{below} Parts that are trained together fall together, or one is given up for "
                "another.",
                {"from": first, "to": last},
            )


# Does training come to a stop, with neither a loss nor a gradient?


LEAST_IDLE = 5
"""Records at the end without loss and gradient. Chosen: one or two may be batches without a label."""
HARDLY_ANY = 0.05
"""Share of the tokens that counted before, up to which hardly any count. Chosen: answers of other rows are longer."""
WITHOUT_ANY = 0.1
"""Share of the records there in which none counts. Chosen: rows with short answers have at least one each."""


def nothing_trained(run: Run) -> Facts:
    """Yield since when hardly a token has a label, or loss and gradient norm are exactly zero; not so before."""
    if run.kind in POLICIES:
        return
    for counts in columns_of(run, Quantity.LOSS_TOKENS, phase="train", least=2 * LEAST_IDLE)[:1]:
        usual = quantile(counts.value, 1 - WITHOUT_ANY)
        left = true_at_end(counts.value <= HARDLY_ANY * usual)
        late = counts.value[len(counts) - left :]
        if left < LEAST_IDLE or left == len(counts) or np.mean(late == 0) < WITHOUT_ANY:
            continue
        yield derived_fact(
            "labels_run_out",
            f"{named(counts)} is {figure(late.max())} at most in all {left} records since "
            f"{run.place(counts.step[-left])}, and 0 in {np.count_nonzero(late == 0)} of them; before it was about "
            f"{figure(usual)}. A batch without a label trains nothing, and one with a few trains on these alone.",
            {"records": left, "most": late.max(), "before": usual},
            at=counts.step[-left],
        )
    loss, norm = training_loss(run), logged(run, "grad_norm")
    if loss is None or norm is None:
        return
    ends = [zeros_at_end(series.value) for series in (loss, norm)]
    if min(ends) < LEAST_IDLE or len(loss) == ends[0] or len(norm) == ends[1] or fades_to_zero(loss.value):
        return
    step = max(loss.step[-ends[0]], norm.step[-ends[1]])
    yield derived_fact(
        "nothing_trained",
        f"{named(loss)} and {named(norm)} are exactly 0 in all {min(ends)} records since {run.place(step)}, and were "
        "not before. Nothing is trained there, as where no label is counted: what is learnt well has a small gradient.",
        {"records": min(ends)},
        at=step,
    )


# A bound on the gradient that every step hits, and by far.


FAR_ABOVE_BOUND, FAR_ABOVE_WHAT_IS_LEFT = 100.0, 10.0
"""Times its bound that the norm of the gradient is, and times what a column says is left of it. Chosen."""
NEARLY_ALL_CLIPPED = 0.95
"""Share of the records in which it is above the bound. Chosen."""


def steps_of_one_length(run: Run) -> Facts:
    """Yield that the bound on the gradient, not the gradient, sets the length of each step of plain descent.

    Not this with Adam and its kin, which divide by the size of the gradient anyway.
    """
    left = pinned(run[CLIPPED_NORM].finite) if CLIPPED_NORM in run else None
    is_logged = left is not None and left[1] >= NEARLY_ALL_CLIPPED
    clip = left[0] if left is not None and is_logged else run.facts.clip
    rate = median(run["learning_rate"].finite.value) if "learning_rate" in run else run.setting("learning_rate")
    plain = "sgd" in (run.facts.optimizer.name or "").lower()
    norm = whole_column(run, Quantity.GRADIENT_NORM, phase="train", least=MIN_RECORDS_FOR_LEVEL)
    if clip is None or not 0 < clip < math.inf or rate is None or not plain or norm is None:
        return
    times, length = median(norm.value) / clip, rate * clip
    is_far = times >= (FAR_ABOVE_WHAT_IS_LEFT if is_logged else FAR_ABOVE_BOUND)
    if is_far and (norm.value > clip).mean() >= NEARLY_ALL_CLIPPED:
        yield derived_fact(
            "steps_of_one_length",
            f"{named(norm)} is about {figure(median(norm.value))} and is cut to {figure(clip)}, 1/{figure(times)} of "
            f"it. With sgd each step is then learning rate x bound = {figure(rate)} x {figure(clip)} = "
            f"{figure(length)} long, whatever the gradient is. A loss falls by as much each time then, and slowly.",
            {"times": times, "length": length},
        )


# A loss that is not a number just where another column is below zero.


def lost_where_negative(run: Run) -> Facts:
    """Yield that a loss is NaN in just those records in which another column is below zero."""
    for loss in run.with_role(*LOSSES, phase="train", parts=True):
        bad = np.isnan(loss.value)
        is_mixed = LEAST_PAIRS <= int(bad.sum()) <= len(loss) - LEAST_PAIRS
        for column in run.series.values() if is_mixed else ():
            if not np.array_equal(column.step, loss.step) or not np.array_equal(column.value < 0, bad):
                continue
            if np.ptp(column.value[bad]):  # else it is one number that stands for none
                yield derived_fact(
                    "lost_where_negative",
                    f"{named(loss)} is NaN in {int(bad.sum())} of {len(loss)} records. In just these "
                    f"{named(column)} is below zero ({figure(column.value[bad].max())} or less), and in no other. "
                    "The logarithm or the root of a number below zero is not a number.",
                    {"records": bad.sum()},
                    steps=loss.step[bad][:20].tolist(),
                )


_OF_UPDATES = (Quantity.GRADIENT_NORM, Quantity.UPDATE_NORM, Quantity.UPDATE_RATIO, Quantity.LEARNING_RATE)
"""What is zero where an update is left out: no reason for that."""
MIN_LOST_SHARE = 0.05
"""Share of the later records in which a norm is lost. Chosen: a loss scale that probes costs one step of hundreds."""


def norm_lost(run: Run) -> Facts:
    """Yield that a norm of gradients or updates is NaN in some records while the loss is finite, and where.

    Not this in half precision, where a loss scale that is too high makes it.
    """
    if "loss" not in run or in_half_precision(run) or "loss_scale" in run:
        return
    for norm in whole_columns(run, Quantity.GRADIENT_NORM, Quantity.UPDATE_NORM, phase="train"):
        whole, loss = run[norm.name], run["loss"].finite
        bad = np.isnan(whole.value)
        later = bad[len(bad) // 2 :]
        if int(later.sum()) < max(LEAST_PAIRS, MIN_LOST_SHARE * len(later)) or later.all():
            continue
        if int((~bad).sum()) < LEAST_PAIRS or not np.isin(whole.step[bad], loss.step).all():
            continue
        zero = next((column for column in run.series.values() if _is_zero_where(column, whole.step, bad)), None)
        where = ""
        if zero is not None:
            where = (
                f" In just these {named(zero)} is 0; in no other is it below {figure(zero.value[~bad].min())}. The "
                "slope of a root, a logarithm or a division at zero is not a number."
            )
        yield derived_fact(
            "norm_lost_where_zero" if where else "norm_lost",
            f"{named(norm)} is NaN in {int(bad.sum())} of {len(whole)} records, in which {named(loss)} is finite."
            f"{where} Such a gradient teaches nothing, and spoils all weights where it is applied.",
            {"records": bad.sum()},
            steps=whole.step[bad][:20].tolist(),
        )


def _is_zero_where(column: Series, steps: Floats, bad: NDArray[np.bool_]) -> bool:
    if (column.quantity in _OF_UPDATES) or not np.array_equal(column.step, steps):
        return False
    others = column.value[~bad]
    is_measured = has_distinct(others, LEAST_PAIRS) and bool((others % 1 != 0).any()) and positive(others)
    return is_measured and not column.value[bad].any()


_OF_THE_LEAST = frozenset({"min", "minimum", "lowest", "smallest"})
"""Words that name the least of several values."""
NEAR_ZERO = 0.1
"""Of its start, what a minimum comes down to that is near zero. Chosen: a step or a few from there cross it."""
USUAL_NORMS = 0.9
"""Quantile of the gradient norms up to which the last is a usual value. Chosen: by hand."""


def _lost_for_good(run: Run) -> tuple[Series, int] | None:
    """Return the loss and its first record that is not finite, where none behind it is."""
    bad = ~np.isfinite(run["loss"].value) if "loss" in run else np.zeros(0, bool)
    return (run["loss"], int(np.argmax(bad))) if bad.any() and bad[int(np.argmax(bad)) :].all() else None


def _lost_as_usual(run: Run, least: int) -> tuple[Series, int, Floats] | None:
    """Return such a loss, and the gradient norms before, where the last loss and norm before are no larger than usual.

    What runs away is large first.
    """
    loss, first = _lost_for_good(run) or (None, 0)
    if loss is None or first < max(least, 1) or loss.value[first - 1] > median(loss.value[:first]):
        return None
    norm = np.zeros(0)
    if "grad_norm" in run:
        norm = run["grad_norm"].where(run["grad_norm"].step < loss.step[first]).finite.value
    return None if len(norm) and norm[-1] > quantile(norm, USUAL_NORMS) else (loss, first, norm)


def lost_near_zero(run: Run) -> Facts:
    """Yield that a minimum came down near zero before the loss was lost for good, while nothing else grew."""
    if (lost := _lost_as_usual(run, MIN_RECORDS_FOR_LEVEL)) is None:
        return
    loss, first, norm = lost
    for column in run.series.values():
        least = column.value[:first]
        if column.role is not None or _OF_THE_LEAST.isdisjoint(pieces_of(column.name)):
            continue
        are_lost = np.array_equal(np.isfinite(column.value), np.isfinite(loss.value))
        if not are_lost or not np.array_equal(column.step, loss.step):
            continue
        start, lowest, end = float(least[0]), least.min(), median(least[-LEAST_PAIRS:])
        if not 0 < lowest <= NEAR_ZERO * start or end > HALVED * start:
            continue
        gradient = f" and {named(run['grad_norm'])} {figure(norm[-1])}" if len(norm) else ""
        yield derived_fact(
            "lost_near_zero",
            f"{named(column)} comes down from {figure(start)} to {figure(lowest)} at the least and "
            f"{figure(least[-1])} in the last record before {named(loss)} is lost, {run.place(loss.step[first])}. "
            f"{named(loss)} is {figure(loss.value[first - 1])}{gradient} there, as usual. What runs away is large "
            "first; the root or the logarithm of what crosses zero is lost at once.",
            {"start": start, "lowest": lowest},
            at=loss.step[first],
        )


def lost_at_once(run: Run) -> Facts:
    """Yield that the loss is lost for good behind a record that is as low as any, with a usual gradient norm."""
    lost = None if run.kind in NOT_BY_LOSS else _lost_as_usual(run, LEAST_PAIRS)
    if lost is None or (last := lost[0].value[lost[1] - 1]) > lost[0].value[0]:
        return
    loss, first, norm = lost
    gradient = f", with a {named(run['grad_norm'])} of {figure(norm[-1])}, as usual" if len(norm) else ""
    yield derived_fact(
        "lost_at_once",
        f"{named(loss)} is lost for good at {run.place(loss.step[first])}. It is {figure(last)} in the record "
        f"before{gradient}, where the median of {first} records is {figure(median(loss.value[:first]))}. "
        "What runs away is large first.",
        {"before": last},
        at=loss.step[first],
    )


MOST_EMPTY = 0.2
"""Share of the records that is lost at most where batches are empty by chance. Chosen: a batch has a few rows."""
MIN_GAP_SPREAD_SHARE = 0.5
"""Share of the mean gap by which gaps vary where chance loses records. Chosen: by chance they vary by the mean."""
MAX_TIMES_EXPECTED = 5.0
"""Times by which the share of empty batches is off e to the power of minus the rows. Chosen: few are counted."""
_BY_CHANCE = regex(
    r"poisson|(?:^|[_/.-])(?:noise_multiplier|target_epsilon|dp_epsilon|secure_mode|opacus|dp_?sgd)(?:$|[_/.-])",
    re.IGNORECASE,
)
"""Settings of private training, which draws each row by itself (Opacus)."""


def lost_by_chance(run: Run) -> Facts:
    """Yield that single records of the loss are NaN at random and leave no trace, as those of empty batches do.

    Not this where half precision or a gradient that is lost as well skips steps.
    """
    loss, norm = first_lost(training_losses(run)), gradient_norm(run)
    levels = None if loss is None or run.kind in POLICIES else returns(loss)
    if loss is None or levels is None or levels[1] > levels[0] or in_half_precision(run) or skips_of(run) is not None:
        return
    begins = np.flatnonzero(np.diff(loss.bad.astype(int), prepend=0) == 1)
    gaps, share = np.diff(begins), loss.count / len(loss.series)
    are_few = loss.count <= (1 + MOST_EMPTY) * len(begins) and share < MOST_EMPTY
    if len(begins) < MIN_LOST_STRETCHES or not are_few or np.std(gaps) < MIN_GAP_SPREAD_SHARE * np.mean(gaps):
        return
    if not np.isnan(loss.series.value[loss.bad]).all() or (norm is not None and not np.isfinite(norm.value).all()):
        return
    setting = next((each for each in run.settings.values() if _BY_CHANCE.search(each.key)), None)
    rows, why = run.facts.effective_batch, ""
    is_as_often = rows is None or math.exp(-rows) >= share / MAX_TIMES_EXPECTED
    if setting is not None and flag_of(setting.value) is not False and is_as_often:
        why = f" {setting.key} is {setting.value}: rows are drawn one by one, and a batch may be empty."
    elif norm is not None and np.isin(loss.series.step[loss.bad], norm.step).all():
        why = f" {named(norm)} is finite in all these records."
    yield derived_fact(
        "empty_batches" if why else "lost_by_chance",
        f"{named(loss.series)} is NaN in {loss.count} of {len(loss.series)} records at random, and goes on as "
        "before. The mean over an empty batch is 0/0 and has no gradient, so it leaves no trace; any other NaN "
        f"that is trained on spoils the weights.{why}",
        {"lost": loss.count, "share": share},
        at=loss.step,
    )


_INVERSE = frozenset({"inv", "inverse"})
"""Words of scales that are written the other way round."""
MOST_LATE = 3
"""Records from the first such value to the loss that is lost. Chosen: scales are made from one of the last steps."""


def lost_by_scale(run: Run) -> Facts:
    """Yield that a tensor in 8-bit floats holds zeros alone just before a loss is lost for good, by its scale.

    Not this where it did before: a tensor that is never used has no values. One that overflows has an infinite one.
    """
    loss, first = _lost_for_good(run) or (None, 0)
    for column in run.series.values() if loss is not None else ():
        if loss is None or column.role is not None:
            continue
        empty = np.flatnonzero(column.value == _of_zeros(column, in_8_bits=run.facts.precision == "fp8"))
        step = column.step[empty[0]] if len(empty) and empty[0] else math.inf
        if not 0 < int(((loss.step >= step) & (loss.step <= loss.step[first])).sum()) <= MOST_LATE:
            continue
        yield derived_fact(
            "lost_by_scale",
            f"{named(column)} is {figure(column.value[empty[0]])} at {run.place(step)}, for the first time, "
            f"and {named(loss)} is lost at {run.place(loss.step[first])}. A scale is the largest number of "
            "the format over the largest value of the tensor: of a tensor of zeros alone it is not finite.",
            at=step,
        )


def _of_zeros(column: Series, *, in_8_bits: bool) -> float:
    """Return what a column holds where a tensor is of zeros alone: its largest value is 0, and its scale infinite."""
    words = set(pieces_of(column.name))
    if "amax" in words:
        return 0.0
    if "scale" not in words or not (in_8_bits or any(name in column.name.lower() for name in FP8_NAMES)):
        return math.nan
    return math.inf if words.isdisjoint(_INVERSE) else 0.0


def lost_with_gradient(run: Run) -> Facts:
    """Yield that the first loss is not a number, and its gradient is not either; which part of the loss still is one.

    Not this where the gradient is zero: the mean over labels that are all ignored is 0/0, and has no gradient.
    """
    loss, norm = run.series.get("loss"), run.series.get("grad_norm")
    if not loss or not norm or norm.step[0] != loss.step[0]:
        return
    if math.isfinite(loss.value[0]) or math.isfinite(norm.value[0]):
        return
    parts = [part for part in run.with_role(*LOSSES, phase="train", parts=True) if len(part) > 1]
    parts = [part for part in parts if math.isfinite(part.value[0]) and not np.isfinite(part.value[1:]).any()]
    still = f" {named(parts[0])} is {figure(parts[0].value[0])} there, and not finite later." if parts else ""
    yield derived_fact(
        "lost_with_gradient",
        f"{named(loss)} and {named(norm)} are not finite in the first record.{still} The mean over labels that are "
        "all ignored is not a number either, but its gradient is exactly 0.",
        at=loss.step[0],
    )


# Norms that stay the same to their last digit.


LEAST_STILL = 10
"""Records of a norm of the weights that tell whether it moves. Chosen."""
FAR_BEYOND = 20.0
"""Times the last logged digit that updates are long together. Chosen: they do not all point outwards."""


def weights_stand_still(run: Run) -> Facts:
    """Yield that the norm of the weights is one number throughout, though gradients and learning rate are not zero.

    Steps of plain gradient descent, learning rate times gradient norm each, would move it by more than its last digit.
    Not this where the loss falls: the norm may be of weights that are frozen.
    """
    gradient, rate = (logged(run, name) for name in ("grad_norm", "learning_rate"))
    loss = training_loss(run, MIN_RECORDS_FOR_LEVEL)
    if gradient is None or rate is None or (loss is not None and _is_learnt(loss, LEAST_STILL)):
        return
    norms = [series.finite for series in run.with_role(Quantity.WEIGHT_NORM) if len(series.finite) >= LEAST_STILL]
    for still in [norm for norm in norms if not np.ptp(norm.value) and norm.value[0] > 0][:1]:
        if _would_move(run, still, gradient):
            yield derived_fact(
                "weights_stand_still",
                f"{named(still)} is exactly {figure(still.value[0])} in all {len(still)} records, while {named(rate)} "
                f"is about {figure(rate.value.mean())} and {named(gradient)} about {figure(median(gradient.value))}. "
                "Updates by such gradients would move it.",
                {"value": still.value[0], "records": len(still)},
            )


def _would_move(run: Run, norm: Series, gradient: Series) -> bool:
    """Say whether plain steps by a gradient and the learning rate go far beyond the last digit of a norm."""
    rate = _values_since_norm(run["learning_rate"], norm) if "learning_rate" in run else np.zeros(0)
    steps = float(norm.step[-1] - norm.step[0]) if run.step_name == "step" else float(len(norm) - 1)
    travelled = steps * rate.mean() * median(_values_since_norm(gradient, norm)) if len(rate) else 0.0
    return travelled >= FAR_BEYOND * _last_digit([float(norm.value[0])])


def _moves_far(norm: Series, still: Series) -> bool:
    """Say whether a norm moves by a share that no rounding makes, or that the digits of one that stays would show."""
    share, sizes = abs(float(norm.value[-1] / norm.value[0]) - 1), [float(norm.value[0]), float(still.value[0])]
    digits = max(_last_digit([size]) / size for size in sizes) if min(sizes) > 0 else 1.0
    return share > MIN_NORM_MOVE_SHARE or share >= FAR_BEYOND * digits


def _values_since_norm(series: Series, norm: Series) -> Floats:
    """Return the finite values of a metric from the first record of a norm on."""
    return series.finite.where(series.finite.step >= norm.step[0]).value


LEAST_RESTING = 0.25
"""Share of the records at the end in which the weights rest. Chosen: by hand."""
FINE_DIGIT = 1e-5
"""Share of the norm that its last digit is at most. Chosen: norms at their level stay the same to four digits."""
LEFT_OF_RATE = 0.1
"""Share of its peak that the learning rate has there. Chosen: schedules end at a tenth and less."""


def weights_come_to_rest(run: Run) -> Facts:
    """Yield that the norm of weights in half precision no longer changes, though gradients and learning rate go on.

    Not this where steps of that length would not move its last digit, or where the rate has come down to its end.
    """
    rates, gradients = (logged(run, name) for name in ("learning_rate", "grad_norm"))
    if run.facts.precision not in SPACING or rates is None or gradients is None:
        return
    for whole in (series.finite for series in run.with_role(Quantity.WEIGHT_NORM)):
        still = true_at_end(whole.value == whole.value[-1]) if len(whole) else 0
        if not max(LEAST_STILL, LEAST_RESTING * len(whole)) <= still < len(whole):
            continue
        norm = whole.since_record(len(whole) - still)
        rate, gradient = (_values_since_norm(series, norm) for series in (rates, gradients))
        if not len(gradient) or not len(rate) or rate.mean() < LEFT_OF_RATE * rates.value.max():
            continue
        if _last_digit(whole.value.tolist()) > FINE_DIGIT * abs(norm.value[0]) or not _would_move(run, norm, gradients):
            continue
        yield derived_fact(
            "weights_come_to_rest",
            f"{named(whole)} is {figure(norm.value[0])} in the last {still} of {len(whole)} records, "
            f"from {run.place(norm.step[0])} on. The learning rate is about {figure(rate.mean())} "
            f"there and {named(gradients)} about {figure(median(gradient))}, so that updates would move it. Weights "
            f"kept in {run.facts.precision} lose a change below {figure(SPACING[run.facts.precision] / 2)} of "
            "themselves.",
            {"value": norm.value[0], "records": still},
            at=norm.step[0],
        )


SETS_SHOWN = 3
"""Scores that are named. Chosen."""
_BOUNDS = (0.0, 1.0, 100.0)
"""What a score is where nothing is left to change, as a share or in per cent."""
LEAST_TRAVELLED = 0.1
"""Length of all plain steps together that moves some answers. Chosen: weights of a layer have a norm of one to ten."""
LEAST_GRADIENT = 0.1
"""Least norm of a gradient that is not logged. Chosen: where nothing is learnt it has more, and Adam divides by it."""
_SCORED = (Quantity.ACCURACY, Quantity.TOKEN_ACCURACY, Quantity.F1, Quantity.AUC, Quantity.IOU, Quantity.DICE)


@given_loss(LEAST_STILL, not_of=NOT_BY_LOSS)
def scores_stand_still(run: Run, loss: Series) -> Facts:
    """Yield that scores of several sets are the same number from the first record on, though steps are long enough.

    Not this where the loss falls, or where a score is at a bound. A column that is called by its set alone is a score.
    """
    rates, norm = logged(run, "learning_rate"), run["grad_norm"].finite if "grad_norm" in run else None
    rate = rates.value.mean() if rates is not None else 0.0 if "learning_rate" in run else run.setting("learning_rate")
    gradient = LEAST_GRADIENT if norm is None else median(norm.value)
    scores = [score for score in (*columns_of(run, *_SCORED), *set_scores(run)) if len(score) >= LEAST_STILL]
    still = [score for score in scores if not np.ptp(score.value) and score.value[0] not in _BOUNDS]
    steps = len(loss) if run.step_name == "epoch" else float(loss.step[-1] - loss.step[0])
    if len(still) < 2 or len(still) < len(scores) or not steps * (rate or 0) * gradient >= LEAST_TRAVELLED:
        return
    if not has_distinct(loss.value, LEAST_PAIRS) or _is_learnt(loss, LEAST_PAIRS):
        return
    values = " and ".join(f"{named(score)} {figure(score.value[0])}" for score in still[:SETS_SHOWN])
    yield derived_fact(
        "scores_stand_still",
        f"{values} are the same number in all {len(still[0])} records, while the learning rate is about "
        f"{figure(rate or 0)}{'' if norm is None else f' and {named(norm)} about {figure(gradient)}'}. "
        f"{named(loss)} stays at about {figure(last_level(loss))}. Weights that go so far change some answers.",
        {"records": len(still[0]), "rate": rate or 0, "gradient": gradient},
    )


def _is_learnt(loss: Series, first: int) -> bool:
    return last_level(loss) < LEAST_KEPT * median(loss.value[:first])


_ON_PURPOSE = regex(r"freez|frozen|linear_?prob|(?:^|[/_.])(?:lora|peft|adapter|vera|dora)", re.IGNORECASE)
"""What settings and norms are called where parts of a model are left as they are on purpose."""
_KEPT = AVERAGED_WEIGHTS | {
    "target", "ref", "reference", "momentum", "base", "prior", "fixed", "random", "rnd", "old", "vgg", "lpips",
    "backbone", "trunk", "body",
}  # fmt: skip
"""Words of parts that no update may be meant to move: of another model, averages, and those that often come trained."""
_TRAINED = frozenset({"encoder", "vision", "visual", "clip", "bert", "vit", "resnet", "features", "extractor",
                      "glove", "pos", "position", "positional"})  # fmt: skip
"""Words of further parts that often come trained, where no setting says so."""
_COMES_TRAINED = regex(r"pretrain|fine_?tun|warm_?start|^weights$", re.IGNORECASE)
"""What settings are called, besides those of `loading_setting`, by which a model or a part of it comes trained."""
MIN_NORM_MOVE_SHARE = 0.01
"""Share of its start by which the norm of another part moves. Chosen: rounding moves none so far."""
_CHANGES = frozenset({"delta", "deltas", "change", "changed", "moved", "update", "updates"})
"""Words of what is logged of how far weights have moved since the record before."""
_OF_NORMS = frozenset({"grad", "gradient", "gradients", "norm", "gnorm", "l2", "g"})
"""Words of a gradient norm beyond those of its part."""
_OF_WEIGHT = frozenset({"weight", "bias", "linear", "fc"})
"""Words of a part that say nothing of where it is."""
_NORMS = frozenset({"norm", "norms", "l2"})
"""Words of a norm whose name says nothing of gradients or activations."""


def part_stands_still(run: Run) -> Facts:
    """Yield that the weights of one part keep their norm to the last digit, or do not change, where another part moves.

    Not this where a setting freezes parts, or adapters are trained in their place. A part that has a gradient all the
    same is not frozen: then its weights are left out of the updates. Nor is the last layer frozen on purpose where what
    is below it learns, nor any part where no weights are loaded.
    """
    changes = [series.finite for series in run.series.values() if _is_change(series)]
    changes = [change for change in changes if len(change) >= LEAST_STILL]
    unchanged = [change for change in changes if not change.value.any()]
    moving = [change for change in changes if median(change.value) > 0] if unchanged else []
    sizes = _weight_norms(run)
    found = unchanged or [norm for norm in sizes if not np.ptp(norm.value) and (_is_named(norm) or _shows_moves(norm))]
    pairs = [(norm, _gradient_of(run, norm)) for norm in found]
    for still, gradient in sorted(pairs, key=lambda pair: pair[1] is None):
        moved = moving or [norm for norm in sizes if _moves_far(norm, still)]
        is_trained = gradient is not None or bool(
            (unchanged or still.value[0])
            and not _leaves_parts(run, moved)
            and (unchanged or _is_named(still) or not _may_be_kept(run, still, moved))
        )
        if moved and is_trained:
            yield _stands_still(run, still, moved[0], gradient)


def _stands_still(run: Run, still: Series, other: Series, gradient: Series | None) -> DerivedFact:
    fact = "new_part_stands_still" if _is_new(run, still, other) else "part_stands_still"
    fact, has, why = "last_layer_stands_still" if _is_last(still) else fact, "", ""
    if gradient is not None:
        fact, has = "part_stands_still_with_gradient", f" {named(gradient)} is about {figure(median(gradient.value))}."
        if kept_in := _weights_in_half(run):
            fact = "part_in_half_stands_still"
            why = f" The weights are kept in {kept_in}, which rounds small changes away."
    return derived_fact(
        fact,
        f"{named(still)} is exactly {figure(still.value[0])} in all {len(still)} records, while {named(other)} "
        f"goes from {figure(other.value[0])} to {figure(other.value[-1])}.{has} Weights that are trained move.{why}",
        {"value": still.value[0], "records": len(still)},
    )


LEAST_SHRUNK = 2
"""Parts that shrink, and half of those that are logged. Chosen: one may be pruned, or begin too large."""
LEAST_KEPT = 0.95
"""Share of its start that a norm, or a loss, keeps which nothing brings down. Chosen: it may dip before it learns."""
SHRUNK_BY = 0.5
"""Share of the log by which they have. Chosen: what shrinks late may be annealed."""


def parts_shrink_apart(run: Run) -> Facts:
    """Yield that the norms of most parts of a model fall to half, and that of another part stays.

    Not this where the norm of the whole is logged, which tells as much.
    """
    if whole_column(run, Quantity.WEIGHT_NORM, least=MIN_RECORDS_FOR_LEVEL) is not None:
        return
    norms = [norm for norm in _weight_norms(run) if norm.value[0] > 0 and (_is_named(norm) or _head_and_part(norm)[0])]
    kept = [norm for norm in norms if last_level(norm) >= LEAST_KEPT * norm.value[0]]
    soon = [
        norm for norm in norms
        for early in [norm.value[: max(LEAST_PAIRS, int(SHRUNK_BY * len(norm)))]]
        if max(last_level(norm), early.min()) <= HALVED * norm.value[0]
    ]  # fmt: skip
    if len(soon) < max(LEAST_SHRUNK, len(norms) / 2) or not kept:
        return
    shown = [f"{named(norm)} from {figure(norm.value[0])} to {figure(norm.value[-1])}" for norm in soon[:3]]
    yield derived_fact(
        "parts_shrink_apart",
        f"{', '.join(shown)}: {len(soon)} of {len(norms)} parts fall to half of their norm and less, while "
        f"{named(kept[0])} goes from {figure(kept[0].value[0])} to {figure(kept[0].value[-1])}. "
        "What is decayed shrinks where the decay outweighs the gradient; what is left out of it does not.",
        {"parts": len(soon)},
        at=soon[0].step[0],
    )


_OF_SIZES = frozenset({"size", "sizes", "norm", "norms", "w", "weight", "weights", "param", "params", "l2", "rms"})
_NOT_OF_WEIGHTS = frozenset({"act", "activation", "activations", "hidden", "logit", "logits", "output", "batch", "step",
                             "update", "updates", "input", "inputs", "rows", "queue", "buffer", "image", "images",
                             "noise", "target", "targets", "latent", "latents"})  # fmt: skip
"""Words of a size that is of something else than weights."""


@given_loss(LEAST_PAIRS, not_of=NOT_BY_LOSS)
def weights_at_zero(run: Run, loss: Series) -> Facts:
    """Yield that most parts have weights of size zero from the first record on, though there is a gradient.

    Not this where the loss is learnt: parts that begin at zero on purpose then move.
    """
    if last_level(loss) < (1 - MIN_NORM_MOVE_SHARE) * loss.value[0]:
        return
    slopes = [*called(run, GRADIENT_WORDS), *columns_of(run, Quantity.GRADIENT_NORM)]
    unread = called(run, _OF_SIZES, but=GRADIENT_WORDS, least=LEAST_PAIRS)
    sizes = [series for series in unread if not _OF_SIZES.isdisjoint(pieces_of(named(series))[:-1])]
    sizes += columns_of(run, Quantity.WEIGHT_NORM, least=LEAST_PAIRS)
    gone = [series for series in sizes if not series.value.any()]
    slope = next((series for series in slopes if positive(series.value)), None)
    if slope is None or len(gone) < max(LEAST_SHRUNK, len(sizes) / 2):
        return
    yield derived_fact(
        "weights_at_zero",
        f"{', '.join(map(named, gone[:3]))}: {len(gone)} of {len(sizes)} parts are of size 0 in all records, though "
        f"{named(slope)} is about {figure(median(slope.value))}, and {named(loss)} stays at {figure(loss.value[-1])}. "
        "What has a gradient moves, unless something takes it back to zero, as a decay of the weights does.",
        {"parts": len(gone)},
        at=gone[0].step[0],
    )


FINE_DIGIT_SHARE = 0.1
"""Share of such a move that the last digit of a size is at most. Chosen: by hand."""
SLOWER_PART = 0.8
"""Share of the records in which a part has a gradient. Chosen: most."""


def _shows_moves(still: Series) -> bool:
    """Say whether a size is written so finely that it would show a tenth of a move; zero shows any."""
    value = abs(float(still.value[0]))
    return value == 0 or _last_digit([value]) <= FINE_DIGIT_SHARE * MIN_NORM_MOVE_SHARE * value


def _is_new(run: Run, still: Series, other: Series) -> bool:
    """Say whether settings load no weights, so that a part is not frozen on purpose, and its last digit is fine enough.

    Another part moves by many times that digit, each in shares of its norm.
    """
    trained = (setting for setting in run.settings.values() if _COMES_TRAINED.search(setting.key))
    is_loaded = (
        loading_setting(run) is not None
        or any(flag_of(each.value) is not False for each in trained)
        or bool(run.resumes)
        or "model_name_or_path" in run.settings
        or _may_be_kept(run, still, [other])
    )
    first, (start, *_, end) = still.value[0], other.value.tolist()
    far = abs(end / start - 1) * first >= FAR_BEYOND * _last_digit([first]) if first and start else False
    return not is_loaded and _KEPT.isdisjoint(_words_of(still)) and far


_PART = regex(r"(?:(?P<head>.*)[/ (:]|(?:‖|\|\|?)(?=[^\W\d_]))(?P<own>[^/ (:)|‖]+)[)|‖]*")
"""A name of a group of columns and of the part: `norm/encoder`, `w(encoder)`, `|encoder|`."""


def _head_and_part(series: Series) -> tuple[str, str]:
    """Return the words that columns of all parts share, and the part; no words for a name of the part alone."""
    name = series.logged_as or series.name
    match = _PART.fullmatch(name)
    return ("", name) if match is None else (match["head"] or "|", match["own"])


def _weight_norms(run: Run) -> list[Series]:
    """Return norms of weights, those that are named by a part of the model alone as well: `norm/encoder`, `encoder`.

    Such a bare name counts where a gradient of the same part is logged, or others next to it name parts.
    """
    norms = columns_of(run, Quantity.WEIGHT_NORM, least=LEAST_STILL)
    unread = [series.finite for series in run.series.values() if series.role is None]
    unread = [series for series in unread if len(series) >= LEAST_STILL * SLOWER_PART and series.value.min() >= 0]
    split = {series.name: _head_and_part(series) for series in unread}
    driven = {own for head, own in split.values() if not GRADIENT_WORDS.isdisjoint(pieces_of(head))}
    bare = {own for head, own in split.values() if not head}
    is_by_part = len(bare) > 2 and any(set(pieces_of(own)) & (PARTS_OF_A_MODEL | LAST_LAYERS) for own in bare)
    sizes = {head for head, _ in split.values() if head == "|" or _is_of_sizes(head)}
    for series in unread:
        head, own = split[series.name]
        is_bare = is_by_part or own in driven or bool(sizes - {"|"})
        is_listed = head in sizes if head else is_bare and not series.name[-1].isdigit()
        is_other = not (_NOT_OF_WEIGHTS - PARTS_OF_A_MODEL - {"hidden"}).isdisjoint(pieces_of(own))
        if _is_norm_of_part(series) or (is_listed and not is_other):
            norms.append(series)
    return [norm for norm in norms if len(norm) >= LEAST_STILL or np.ptp(norm.value)]


def _is_named(norm: Series) -> bool:
    return (norm.quantity is Quantity.WEIGHT_NORM) or _is_norm_of_part(norm)


def _is_of_sizes(head: str) -> bool:
    words = set(pieces_of(head))
    return ("||" in head or "‖" in head or bool(words & _OF_SIZES)) and not words & (GRADIENT_WORDS | _NOT_OF_WEIGHTS)


def _words_of(series: Series) -> set[str]:
    return {word for word in pieces_of(series.name) if not word.isdecimal()}


_BETWEEN_BARS = regex(r"(?:‖|\|\|)[^\W\d_][\w.]+(?:‖|\|\|)", needs=("‖", "||"))
"""A norm of something that is named between bars. Activations do not stand still while what is below them moves."""


def _is_norm_of_part(series: Series) -> bool:
    if _BETWEEN_BARS.fullmatch(series.name) is not None:
        return True
    words = _words_of(series)
    return bool(words & _NORMS) and bool(words - _NORMS) and words - _NORMS <= PARTS_OF_A_MODEL | LAST_LAYERS


def _is_last(series: Series) -> bool:
    """Say whether a norm or a change is of the last layer: no norm of a block that has an output of its own."""
    words = _words_of(series)
    return bool(words & LAST_LAYERS) and not words & (PARTS_OF_A_MODEL - LAST_LAYERS - _OF_WEIGHT)


def _is_change(series: Series) -> bool:
    is_of_weights = series.quantity in (None, Quantity.UPDATE_RATIO, Quantity.CHANGED_WEIGHTS)
    return is_of_weights and not _CHANGES.isdisjoint(pieces_of(series.name))


def _gradient_of(run: Run, part: Series) -> Series | None:
    """Return the gradient norm of a part, where it is above zero in most records; None where none is known."""
    words, (head, own) = set(pieces_of(part.name)), _head_and_part(part)
    for slope in (series.finite for series in run.series.values()):
        above, below = _head_and_part(slope)
        if len(slope) < LEAST_STILL or quantile(slope.value, 1 - SLOWER_PART) <= 0:
            continue
        is_of_part = below == own and not GRADIENT_WORDS.isdisjoint(pieces_of(above))
        if slope.role is not None and slope.quantity is Quantity.GRADIENT_NORM:
            mine = set(pieces_of(slope.role.part or slope.name)) - _OF_NORMS
            is_of_part |= (bool(mine) and mine <= words) or head == above not in ("", "|")
        if is_of_part:
            return slope
    return None


def _may_be_kept(run: Run, still: Series, moving: Sequence[Series]) -> bool:
    """Say whether a part may be frozen on purpose for all that is known: no setting is, and such parts come trained.

    So may all that is below the last layer.
    """
    return not run.settings and (not _words_of(still).isdisjoint(_KEPT | _TRAINED) or all(map(_is_last, moving)))


def _leaves_parts(run: Run, moving: Sequence[Series]) -> bool:
    named_so = any(_ON_PURPOSE.search(norm.name) for norm in moving)
    return named_so or any(
        bool(setting.value) and flag_of(setting.value) is not False
        for setting in run.settings.values()
        if _ON_PURPOSE.search(setting.key) or _ON_PURPOSE.search(str(setting.value))
    )


DECIMALS_OF_DOUBLE = 13
"""Decimals from which a number is taken to be as fine as double precision has it (IEEE 754: 15 to 17 digits)."""


def _last_digit(values: Sequence[float]) -> float:
    """Return the unit of the last digit with which numbers are written, at least that of double precision."""
    places = 0
    for value in values:
        while places < DECIMALS_OF_DOUBLE and round(value, places) != value:
            places += 1
    if places < DECIMALS_OF_DOUBLE:
        return 10.0**-places
    digit = 10.0 ** (1 - DECIMALS_OF_DOUBLE)
    return digit * min(abs(value) for value in values if round(value, places - 1) != value)


# Updates that are smaller than the distance from one number to the next.


SPACING = {"bf16": 2.0**-8, "fp16": 2.0**-11}
"""Distance of a number from the next as a share of it, at most: 8 and 11 bits of precision (IEEE 754, bfloat16)."""
_PURE = ("pure", "full", "true", "weights")
"""Words that say that the weights themselves are kept in half precision."""


def _precision_setting(run: Run) -> str:
    return str(run.settings["precision"].value).lower() if "precision" in run.settings else ""


def _weights_in_half(run: Run) -> str:
    """Return the half-precision format in which settings say that weights are kept; "" where they do not."""
    pure = run.facts.precision if any(word in _precision_setting(run) for word in _PURE) else None
    of_weights = [
        kept for key, kept in formats_kept_in(run.settings) if not _WORDS_OF_WEIGHTS.isdisjoint(pieces_of(key))
    ]
    return next((kept for kept in (pure, *of_weights) if kept in SPACING), "")


_WORDS_OF_WEIGHTS = frozenset({"param", "params", "parameter", "parameters", "weight", "weights", "master"})
"""Words of a format in which weights are kept."""


def update_below_spacing(run: Run) -> Facts:
    """Yield updates below half the distance to the next number, where weights are kept in half precision."""
    precision, kept_in = run.facts.precision, _precision_setting(run)
    spacing = SPACING.get(precision or "", 0.0) if any(word in kept_in for word in _PURE) else 0.0
    for ratio in whole_columns(run, Quantity.UPDATE_RATIO) if spacing else ():
        if 0 < median(ratio.value) < spacing / 2:
            yield derived_fact(
                "update_below_spacing",
                f"{named(ratio)} is {figure(median(ratio.value))} (median) and the weights are kept in {kept_in}. "
                f"{precision} rounds a change below {figure(spacing / 2)} of a weight away, so most updates "
                "have no effect.",
                {"ratio": median(ratio.value), "spacing": spacing},
            )


_APPLIED = frozenset({
    "prev", "old", "last", "before", "applied", "actual", "real", "effective", "moved", "d", "dw", "got", "done",
    "made", "taken",
})  # fmt: skip
"""Words of how far weights have moved; other norms of an update are of one that is meant."""
_MEANT = frozenset({
    "meant", "intended", "planned", "proposed", "ideal", "raw", "asked", "wanted", "computed", "requested", "desired",
    "target", "expected",
})  # fmt: skip
_UPDATE = frozenset({"step", "update", "upd", "dw", "delta", "change", "norm", "size", "length", "w", "l2"})
"""Words of an update, whose norm is known by them."""
_ALONE = frozenset({"asked", "wanted", "computed", "requested", "meant", "got", "taken", "applied", "made"})
"""Words that say this without such a word; a target or what is expected may be of anything."""
MOST_APPLIED = 0.75
"""Share of an update that is applied where much of it is lost, at most. Chosen: weight decay takes a few per cent."""


def update_partly_lost(run: Run) -> Facts:
    """Yield that weights move by far less than the update that is meant, record by record.

    Not this where they are kept in float32, or where the column that is shorter is of what is meant.
    """
    norms = columns_of(run, Quantity.UPDATE_NORM, phase="train", least=LEAST_STILL)
    norms = [norm for norm in norms if norm.role is not None and set(norm.role.part.split()) <= _APPLIED | _MEANT]
    norms += [norm for norm in called(run, _APPLIED | _MEANT, least=LEAST_STILL) if _is_step(norm)]
    for meant, applied in product(norms, norms) if run.facts.precision != "fp32" else ():
        if not _is_applied(applied) or _is_applied(meant) or not np.array_equal(meant.step, applied.step):
            continue
        shares = applied.value / np.where(meant.value > 0, meant.value, math.nan)
        share = median(shares)
        if not 0 < share <= MOST_APPLIED or not np.nanmax(shares) < 1:
            continue
        kept_in = f" The format is {run.facts.precision}." if run.facts.precision in SPACING else ""
        yield derived_fact(
            "update_partly_lost",
            f"{named(applied)} is {percent(share)} of {named(meant)} (median of {len(shares)} records), "
            f"{figure(applied.value[-1])} next to {figure(meant.value[-1])} at the end.{kept_in} Weights move by the "
            "whole update, but for what rounding takes: half precision loses a change below 0.2 to 0.4 % of a weight.",
            {"share": share},
        )


def _is_step(series: Series) -> bool:
    """Say whether words of what is meant or applied stand with those of an update alone, or name one: `step asked`."""
    words = set(pieces_of(series.logged_as or series.name))
    kinds = words & (_APPLIED | _MEANT)
    return words <= kinds | _UPDATE and bool(words & _UPDATE or kinds <= _ALONE)


def _is_applied(norm: Series) -> bool:
    return not _APPLIED.isdisjoint(pieces_of(norm.name)) or "Δ" in norm.name


MIN_RECORDS_OF_STOPPED_SUM = 5
"""Last records whose sums are numbers of the format. Chosen: together with the chance."""
MAX_CHANCE_OF_SUMS = 1e-6
"""Chance with which means of any size times their number are numbers of the format. Chosen: by hand."""
MIN_GROWTH_OF_COUNT = 2.0
"""Times that the number of losses grows while their sum stands still. Chosen: for less a loss may fall so."""
ENOUGH_FOR_DIGITS = 1000
"""Values that show how many digits a column has: by chance all of them end in a zero once in 10^1000 columns."""
_FLOAT32 = 2.0**-24
"""The same of float32 (IEEE 754)."""


@given_loss(MIN_RECORDS_OF_STOPPED_SUM, not_of=NOT_BY_LOSS)
def sum_stops(run: Run, loss: Series) -> Facts:
    """Yield that means of losses times their number are numbers of half precision, for more losses than it can add.

    There, half the distance to the next number is about a loss: a longer sum hardly grows, and its mean falls.
    """
    if run.step_name != "step" or not (loss.value > 0).all():
        return
    unit = _last_digit(sample(loss.value, ENOUGH_FOR_DIGITS).tolist())
    end = slice(-MIN_RECORDS_OF_STOPPED_SUM, None)  # asked first: of a million losses that takes no time and no memory
    found = []
    for counts, name in product((loss.step, np.diff(loss.step, prepend=0)), SPACING):
        sums_of = partial(_sums, unit=unit, spacing=SPACING[name], of_steps=counts is loss.step)
        ends = sums_of(loss.value[end], counts[end]).hold.all()
        if ends and (stops := _stops(run, loss, sums_of(loss.value, counts))):
            found.append((counts, name, stops))
    if not found:
        return
    level = max(run[name].finite.value.max() for name in ("loss", "eval_loss") if name in run)
    counts, precision, (last, sums, apart) = min(found, key=lambda stopped: abs(math.log(stopped[2].apart / 2 / level)))
    of = "step" if counts is loss.step else f"{from_to(counts[-last:])} steps"
    yield derived_fact(
        "sum_stops",
        f"{named(loss)} x {of} is {from_to(sums)} in the last {last} records, from {run.place(loss.step[-last])} on, "
        f"always a number of {precision}. These are {figure(apart)} apart there, and a sum hardly grows by losses "
        f"below {figure(apart / 2)}: the mean falls with the number of losses alone.",
        {"sum": sums[-1], "apart": apart},
        at=loss.step[-last],
    )


class _Stops(NamedTuple):
    """The last means whose sums are numbers of a format: how many, which numbers, and how far apart the largest are."""

    last: int
    sums: Floats
    apart: float


class _Sums(NamedTuple):
    """Means times their numbers: the numbers of a format near them, and where a longer sum could not grow."""

    counts: Floats
    spacing: float
    of_steps: bool
    off: Floats
    near: Floats
    hold: NDArray[np.bool_]


def _sums(values: Floats, counts: Floats, *, unit: float, spacing: float, of_steps: bool) -> _Sums:
    kept_in = (each for each in SPACING.values() if _all_near(values, each, unit))
    rounding = _distance(values, next(kept_in, _FLOAT32))  # of the means themselves
    sums, off = values * counts, counts * (unit + rounding) / 2 * (1 + _FLOAT32)
    near = _one_stop(sums, off, spacing) if of_steps else _nearest(sums, spacing)
    hold = (np.abs(sums - near) <= off) & (values <= _distance(near, spacing) / 2) & (counts >= 1 / spacing)
    return _Sums(counts, spacing, of_steps, off, near, hold)


def _stops(run: Run, loss: Series, sums: _Sums) -> _Stops | None:
    counts, last = sums.counts, true_at_end(sums.hold)
    if last < MIN_RECORDS_OF_STOPPED_SUM:
        return None
    different, at = np.unique(sums.near[-last:], return_index=True)
    apart = _distance(different, sums.spacing)
    if len(different) == 1:
        grows = counts[-1] >= MIN_GROWTH_OF_COUNT * counts[-last]
        return _Stops(last, different, float(apart[-1])) if grows and not _follows(run, loss, last) else None
    rare = np.where(np.log2(different) % 1 == 0, different, apart)  # powers of two, where most sums stop
    chance = float(np.prod(np.minimum(1, 2 * sums.off[-last:][at] / rare)))
    return _Stops(last, different, float(apart[-1])) if chance <= MAX_CHANCE_OF_SUMS else None


def _distance(values: Floats, spacing: float) -> Floats:
    """Return the distance of numbers of a format to the next ones."""
    return np.asarray(2 * spacing * 2 ** np.floor(np.log2(values)))


def _nearest(values: Floats, spacing: float) -> Floats:
    apart = _distance(values, spacing)
    return np.asarray(np.round(values / apart) * apart)


def _all_near(values: Floats, spacing: float, unit: float) -> bool:
    """Say whether values with so small a last digit are all numbers of a format."""
    can_be_seen = unit < _distance(values, spacing).min() / 4
    return bool(can_be_seen and (np.abs(values - _nearest(values, spacing)) <= unit).all())


def _one_stop(sums: Floats, off: Floats, spacing: float) -> Floats:
    """Return the number of a format that the last sums are, as many as are near to one number; shape (n,)."""
    low, high = np.maximum.accumulate((sums - off)[::-1]), np.minimum.accumulate((sums + off)[::-1])
    last = int(np.argmin(low <= high)) or len(sums)
    return np.full(len(sums), _nearest((low + high)[last - 1] / 2, spacing))


def _follows(run: Run, loss: Series, last: int) -> bool:
    """Say whether the evaluation loss falls as the last training losses do, or half so in its logarithm."""
    evaluation = logged(run, "eval_loss")
    value = [] if evaluation is None else evaluation.value[evaluation.step >= loss.step[-last]].tolist()
    return len(value) > 1 and bool(value[-1] / value[0] < math.sqrt(loss.value[-1] / loss.value[-last]))


OF_FIRST_ORDER = 0.25
"""Share of what gradients promise that a loss falls by where updates are lost. Chosen: noisy ones keep less, too."""


@given_loss(MIN_RECORDS_FOR_LEVEL, not_of=NOT_BY_LOSS)
def descent_below_spacing(run: Run, loss: Series) -> Facts:
    """Yield that steps of plain descent are below what half precision rounds away, and the loss falls by far less.

    Not this with momentum or another optimizer, or where a flag or a word of the setting says that the rest is float32.
    """
    spacing, kept_in = SPACING.get(run.facts.precision or "", 0.0), _precision_setting(run)
    gradient = whole_column(run, Quantity.GRADIENT_NORM, least=MIN_RECORDS_FOR_LEVEL)
    norm = whole_column(run, Quantity.WEIGHT_NORM, least=MIN_RECORDS_FOR_LEVEL)
    is_plain = family_of(run) is Family.SGD and not run.facts.optimizer.momentum and run.step_name == "step"
    if not spacing or not kept_in or "mix" in kept_in or gradient is None or norm is None or not is_plain:
        return
    rate = logged(run, "learning_rate")
    rates = run.facts.schedule.peak or 0.0 if rate is None else np.interp(gradient.step, rate.step, rate.value)
    lengths = rates * np.minimum(gradient.value, run.facts.clip or math.inf)
    moved = median(lengths) / median(norm.value)
    updates = float(loss.step[-1] - loss.step[0]) / run.facts.steps_per_update
    promised, fall = float(np.mean(lengths * gradient.value)) * updates, start_level(loss.value) - last_level(loss)
    if not 0 < moved < spacing / 2 or fall > OF_FIRST_ORDER * promised:
        return
    yield derived_fact(
        "descent_below_spacing",
        f"a step moves the weights by {figure(moved)} of their norm (learning rate x {named(gradient)} / "
        f"{named(norm)}). Weights that are kept in {run.facts.precision} lose a change below "
        f"{figure(spacing / 2)} of themselves. To first order such gradients promise a fall of "
        f"{figure(promised)}, and {named(loss)} falls by {figure(fall)}.",
        {"moved": moved, "spacing": spacing, "promised": promised, "fall": fall},
    )


LEAST_LOST = 0.5
"""Share of its own that an average loses against trained weights. Chosen: those that learn differ by less."""
MIN_AVERAGE_LOSS_RATIO = 1.5
"""Times the evaluation loss of the trained weights that the average has at the end at least. Chosen."""


def average_below_spacing(run: Run) -> Facts:
    """Yield that an average of the weights is kept in half precision, moves by too little of it, and is far behind."""
    decay, loss = run.setting("ema_decay"), logged(run, "eval_loss")
    averaged = [series for series in columns_of(run, Quantity.LOSS, phase="eval") if is_of_averaged_weights(series)]
    kept = formats_kept_in(run.settings)
    kept_in = [(key, precision) for key, precision in kept if not AVERAGED_WEIGHTS.isdisjoint(pieces_of(key))]
    if decay is None or not 0 < decay < 1 or loss is None or not averaged or not kept_in:
        return
    (key, precision), mean = kept_in[0], averaged[0]
    lost = SPACING.get(precision, 0.0) / 2 / (1 - decay)
    last, behind = last_level(loss), last_level(mean)
    if lost < LEAST_LOST or behind < MIN_AVERAGE_LOSS_RATIO * last or loss.step[-1] * (1 - decay) < 1:
        return
    yield derived_fact(
        "average_below_spacing",
        f"{key} is {precision} and ema_decay {figure(decay)}: each update moves the average by {figure(1 - decay)} of "
        f"its difference from the trained weights, and {precision} rounds that away where it is below {figure(lost)} "
        f"of a weight. {named(mean)} ends at about {figure(behind)}, and {named(loss)} at {figure(last)}.",
        {"lost": lost, "behind": behind, "last": last},
    )


MOST_MOVED = 0.005
"""Sum of the learning rates up to which weights hardly move. Chosen: new ones are 0.02 and more in size."""
SMALL_NORM = 200.0
"""Norm of all weights of a small language model, at most. Chosen: those that people tune have more than 400."""
SAME_NORM = 1e-3
"""Share by which the norm of weights moves that hardly move. Chosen: weights that learn change it by some per cent."""


@given_loss(MIN_RECORDS_FOR_LEVEL, not_of=(*NOT_BY_LOSS, "sft"))
def weights_hardly_move(run: Run, loss: Series) -> Facts:
    """Yield that Adam moves no weight by more than a part of its first size in all updates, and the loss stays.

    Not this where weights are loaded, as tuning moves them little. Those of a Trainer mostly are, unsaid, and those of
    any run without settings may be, unless their norm is that of a small model. Where the optimizer is not known, plain
    descent moves them little, too.
    """
    norm = _norm_of_small_model(run)
    reached = None if norm is None else peak_of(run)
    peak = run.facts.schedule.peak or (reached.value if reached is not None else None)
    named_weights = loading_setting(run) is not None or "model_name_or_path" in run.settings
    loaded = named_weights or run.resumes or not TRAINERS.isdisjoint(run.formats)
    if not peak or loaded or run.step_name != "step":
        return
    updates = run.last_step / run.facts.steps_per_update
    first, last = start_level(loss.value), last_level(loss)
    if not 0 < peak * updates <= MOST_MOVED or last < (1 - MIN_LEARNING_FALL_SHARE) * first:
        return
    if family_of(run) is not Family.ADAM and not _descent_hardly_moves(run, peak * updates, norm):
        return
    yield derived_fact(
        "weights_hardly_move",
        f"Adam moves a weight by about the learning rate in an update: by {figure(peak)} x {figure(updates)} updates "
        f"= {figure(peak * updates)} at most in all, and new weights are 0.02 and more in size. {named(loss)} goes "
        f"from about {figure(first)} to {figure(last)}. Before weights move it says nothing of the model or the data.",
        {"moved": peak * updates, "first": first, "last": last},
    )


def _norm_of_small_model(run: Run) -> float | None:
    """Return the norm of the weights of a language model that is small, None where it is not or that is not known."""
    if run.kind != "pretraining" and not columns_of(run, Quantity.PERPLEXITY):
        return None
    norms = [median(norm.value) for norm in whole_columns(run, Quantity.WEIGHT_NORM)]
    return min((norm for norm in norms if norm <= SMALL_NORM), default=None)


def _descent_hardly_moves(run: Run, rates: float, norm: float | None) -> bool:
    """Say whether an optimizer that is not named moves weights by a small share of their norm as plain descent, too."""
    gradient = whole_column(run, Quantity.GRADIENT_NORM)
    if run.facts.optimizer.name or norm is None:
        return False
    if gradient is None:
        norms = whole_columns(run, Quantity.WEIGHT_NORM, least=MIN_RECORDS_FOR_LEVEL)
        return any(float(np.ptp(each.value)) <= SAME_NORM * norm for each in norms if median(each.value) == norm)
    return rates * median(gradient.value) <= MOST_MOVED * norm


FEW_CHANGE = 0.1
"""Share of the weights that a step changes, below which most stand still. Chosen: in float32 nearly all move."""
_OF_WEIGHTS = regex(r"param|weight|^(?:torch_)?dtype$", re.IGNORECASE)
"""What the name of a setting holds that gives the type of the weights themselves."""


def few_weights_change(run: Run) -> Facts:
    """Yield that steps change few of the weights where these are kept in half precision, though gradients go on."""
    dtype = run.settings.get("dtype")
    if dtype is None or not _OF_WEIGHTS.search(dtype.key) or run.facts.precision not in SPACING:
        return
    whole = run["of"].finite.value.max() if "of" in run else math.inf
    changes = [(changed, changed.value) for changed in columns_of(run, Quantity.CHANGED_WEIGHTS, least=LEAST_PAIRS)]
    changes += [(same, 1 - same.value) for same in called(run, {"unchanged"}, least=LEAST_PAIRS)]
    for changed, shares in changes:
        parts = shares / whole if shares.max() > 1 else shares
        first, last = parts[0], median(last_third(parts))
        if shares.min() < 0 or shares.max() > whole or not last < FEW_CHANGE:
            continue
        yield derived_fact(
            "few_weights_change",
            f"{named(changed)} goes from {figure(100 * first)} to {figure(100 * last)} % (median of the last "
            f"third), and {dtype.key} is {dtype.value}. That type rounds a change below "
            f"{figure(SPACING[run.facts.precision] / 2)} of a weight away; in float32 nearly every weight moves at "
            "each step.",
            {"first": first, "last": last},
        )


# A layer that has lost most of its units, and a model that is short of them.


MANY_DEAD = 0.5
"""Share of the units of a layer, from which on many are dead. Chosen: sound layers lose a half at most."""
MUCH_LEFT = 0.4
"""Share of its start that a training loss keeps where a model is short of units. Chosen: by hand."""


@given_loss(MIN_RECORDS_FOR_LEVEL, not_of=POLICIES)
def many_units_dead(run: Run, loss: Series) -> Facts:
    """Yield that most units of a layer never fire from early on and none comes back, where much of the loss is left.

    Not this where training learns without them, or zeros are counted and not units.
    """
    columns = (series.finite for name, series in run.series.items() if dead_share_bound(name) == MIN_DEAD_UNIT_SHARE)
    dead = [series for series in columns if len(series) >= LEAST_PAIRS and are_shares(series.value)]
    worst = max(dead, key=last_level, default=None)
    if worst is None or last_level(loss) < MUCH_LEFT * loss.value[0]:
        return
    most = worst.value.max()
    is_for_good = worst.value[len(worst) // 2 :].min() > MANY_DEAD and worst.value[-1] == most
    if is_for_good and most < MIN_DEAD_UNIT_SHARE:
        yield derived_fact(
            "many_units_dead",
            f"{named(worst)} is {figure(worst.value[0])} at first and {figure(most)} at the end: so many units "
            f"give nothing for any row, and none comes back. {named(loss)} goes from {figure(loss.value[0])} to "
            f"{figure(last_level(loss))}. A sound layer loses a half at most.",
            {"first": worst.value[0], "most": most},
            at=worst.step[int(np.argmax(worst.value > MANY_DEAD))],
        )


_OF_ZEROS = frozenset({"zero", "zeros", "sparsity"})
_OF_DEAD = frozenset({"dead", "never", "silent", "inactive"})
_NOT_OF_UNITS = frozenset({
    "weight", "weights", "param", "params", "grad", "grads", "gradient", "mask", "input", "inputs", "label", "labels",
    "target", "attn", "attention", "prune", "pruned", "code", "codes", "reward", "expert", "experts", "loss",
    "advantage", "std", "pred", "row", "rows",
})  # fmt: skip
"""Words of zeros that are of something else than units."""
ALL_SILENT = 0.995
"""Share of zeros that a layer has which gives nothing. Chosen: sparse layers give some for some rows."""
UNLEARNT_SHARE = 0.9
"""Share of the lowest of its first values that a loss keeps where nothing is learnt. Chosen: by hand."""


@given_loss(MIN_RECORDS_FOR_LEVEL, not_of=POLICIES)
def layer_of_zeros(run: Run, loss: Series) -> Facts:
    """Yield that a layer gives zeros alone, or nearly all of its units are dead, and nothing is learnt."""
    if last_level(loss) < UNLEARNT_SHARE * loss.value[:LEAST_PAIRS].min():
        return
    for share in called(run, _OF_ZEROS | _OF_DEAD, but=_NOT_OF_UNITS, least=MIN_RECORDS_FOR_LEVEL):
        of_dead = not _OF_DEAD.isdisjoint(pieces_of(share.logged_as or share.name))
        bound = MIN_DEAD_UNIT_SHARE if of_dead else ALL_SILENT
        if are_shares(share.value) and tail(share).min() >= bound:
            yield derived_fact(
                "layer_of_zeros",
                f"{named(share)} is {figure(share.value[0])} at first and {figure(last_level(share))} over the last "
                f"third, and {named(loss)} stays at about {figure(last_level(loss))}. A layer that gives zeros for "
                "every row passes no gradient on.",
                {"share": last_level(share)},
                at=share.step[int(np.argmax(share.value >= bound))],
            )


# Targets of one shape and answers of another: each answer is then held against the targets of all rows.


_TWO_SHAPES = regex(
    r"target size \(torch\.Size\(\[(?P<targets>\d{1,6})(?P<column>, 1)?\]\)\) that is different to the input size "
    r"\(torch\.Size\(\[(?P<answers>\d{1,6})(?(column)|, 1)\]\)\)",
    needs="different to the input size",
)
"""PyTorch's warning that (N) and (N, 1) are spread to (N, N)."""
RANKS_WELL = 0.5
"""Correlation of answers and targets from which on answers tell rows apart. Chosen."""
LEFT_OF_SPREAD = 0.1
"""Share of its square that answers without spread explain. Chosen: trained by squares they have all of it."""


def answers_of_all_rows(run: Run) -> Facts:
    """Yield that answers and targets have shapes that are spread to one another, or that only their spread is lost."""
    warnings = ((line, _TWO_SHAPES.search(line.text)) for line in run.text_lines)
    spread = [(line, of["answers"]) for line, of in warnings if of and of["targets"] == of["answers"] != "1"]
    for line, rows in spread[:1]:
        yield derived_fact(
            "answers_spread_over_targets",
            f"line {line.line} warns that targets and answers of {rows} rows differ in shape: one "
            "has a second dimension of 1. The loss then holds each answer against the targets of all rows, and "
            "the mean of these serves it best.",
            at=line.step,
        )
    explained = whole_column(run, Quantity.R2, phase="eval", least=LEAST_PAIRS)
    related = whole_column(run, Quantity.CORRELATION, phase="eval", least=LEAST_PAIRS)
    if explained is None or related is None or not np.array_equal(explained.step, related.step):
        return
    share, correlation = last_level(explained), last_level(related)
    if RANKS_WELL <= correlation <= 1 and abs(share) <= LEFT_OF_SPREAD * correlation**2:
        yield derived_fact(
            "related_without_spread",
            f"{named(related)} is about {figure(correlation)} at the end, and {named(explained)} {figure(share)}. "
            f"Trained by squares, answers that go with the targets so well explain {figure(correlation**2)}. These "
            "are all near the mean.",
            {"correlation": correlation, "explained": share},
            at=related.step[-1],
        )
