"""How the columns of a run stand to one another: losses and their parts, training and evaluation, scores and norms."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.checks.check import CannotTell
from mldebug_mcp.checks.curve import (
    aligned,
    at_common_steps,
    fades_to_zero,
    mad,
    monotone,
    sample,
    true_at_end,
    zeros_at_end,
)
from mldebug_mcp.checks.evaluation import (
    ROWS_AT_ONCE,
    as_shares,
    begins_late,
    beside_training,
    evaluation_losses,
    refuse_another_scale,
)
from mldebug_mcp.checks.progress import passes_at
from mldebug_mcp.checks.run.loss_by_accuracy import PAIRS
from mldebug_mcp.core.arrays import median, quantile
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import figure, percent
from mldebug_mcp.logs import Run, Series
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.names.losses import is_auxiliary
from mldebug_mcp.logs.names.metrics import canonical
from mldebug_mcp.logs.names.quantities import LOSSES as EVERY_LOSS
from mldebug_mcp.logs.names.words import pieces_of
from mldebug_mcp.models.diagnosis import DerivedFact

MIN_RECORDS_FOR_LEVEL = 8
"""Records that tell of a level or a line. Chosen: a half of them is then a level."""
LOSSES = tuple(sorted(EVERY_LOSS))
POLICIES = ("grpo", "ppo", "rl")
"""Kinds of runs whose losses are no measure of what was learnt, and whose models come trained."""
NOT_BY_LOSS = (*POLICIES, "preference")
"""Kinds of runs whose training loss is not the cross-entropy of answers."""


def named(series: Series) -> str:
    """Return the name that the log has for a column, with the unit of its values where the name gives another."""
    return f"{series.logged_as or series.name}{f' in {series.unit}' if series.unit else ''}"


def columns_of(run: Run, *quantities: Quantity, phase: str = "", least: int = 1) -> list[Series]:
    """Return the finite values of columns of some quantities, in the unit of the quantity: of so many records."""
    found = run.with_role(*quantities, phase=phase, parts=True)
    return [series.finite for series in found if series is run[series.name] and len(series.finite) >= least]


def training_loss(run: Run, least: int = 1, *, not_of: Collection[str] = ()) -> Series | None:
    """Return the finite training losses; None where they are fewer, or the run is of one of some kinds."""
    if run.kind in not_of or "loss" not in run:
        return None
    loss = run["loss"].finite
    return loss if len(loss) >= least else None


def both_losses(run: Run, least: int = 1, *, not_of: Collection[str] = ()) -> tuple[Series, Series] | None:
    """Return the finite losses of training, so many at least, and of evaluation; None where either is too short."""
    loss = training_loss(run, least, not_of=not_of)
    if loss is None or "eval_loss" not in run or len(evaluation := run["eval_loss"].finite) < LEAST_PAIRS:
        return None
    return loss, evaluation


def tail(series: Series) -> Floats:
    """Return the values of the last third."""
    return series.value[-max(1, len(series) // 3) :]


# One column is a multiple of another: training and evaluation of the same loss.


LEAST_MULTIPLE = 1.8
"""Factor between two losses that are the same elsewhere. Chosen: dropout and augmentation raise a training loss by
less."""
MOST_SPREAD = 0.2
"""How far the logarithm of that factor varies at most. Chosen: a gap changes while it opens."""
NEAR_SETTING = 0.25
"""How near to a setting the logarithm of the factor must be. Chosen."""
LEAST_PAIRS = 3
"""Evaluations at which the factor is known. Chosen."""
SAME_SHARES = 0.05
"""By how much accuracies of training and evaluation differ at most to be the same. Chosen: the error of 400 rows."""
_SUMMED = ("gradient_accumulation_steps", "world_size")
_FACTORS = ("gradient_accumulation_steps", "world_size", "per_device_train_batch_size", "sequence_length")
"""Settings by which a loss is multiplied where it is summed instead of averaged."""


def multiples(run: Run) -> Iterator[DerivedFact]:
    """Yield that the training loss is a multiple of the evaluation loss all the way, though their accuracies agree."""
    if (losses := both_losses(run, MIN_RECORDS_FOR_LEVEL)) is None:
        return
    loss, evaluation = losses
    within = (evaluation.step >= loss.step[0]) & (evaluation.step <= loss.step[-1]) & (evaluation.value > 0)
    train = _around(loss, evaluation.step[within])
    if len(train) < LEAST_PAIRS or not (train > 0).all():
        return
    times = train / evaluation.value[within]
    factor, spread = median(times), mad(np.log(times))
    far = factor if factor > 1 else 1 / factor
    known = [(name, run.setting(name)) for name in _FACTORS]
    near = [(n, v) for n, v in known if v is not None and v > 1 and abs(math.log(far / v)) < NEAR_SETTING]
    steady = spread <= MOST_SPREAD and np.ptp(np.log(times)) <= 3 * MOST_SPREAD
    # Below 1 it may be a gap that stays as it is, but for accuracies that agree.
    if far < LEAST_MULTIPLE or not steady or not (_accuracies_agree(run) if factor < 1 or not near else near):
        return
    low, high = figure(float(times.min())), figure(float(times.max()))
    where = f"{low} to {high} times {named(evaluation)} at {len(times)} evaluations"
    set_to = f"; {near[0][0]} is {figure(near[0][1] or 0)}" if near else ""
    agree = ", and accuracies of training and evaluation agree" if _accuracies_agree(run) else ""
    yield DerivedFact.model_construct(
        fact="loss_multiple" if near and near[0][0] in _SUMMED else "loss_on_another_scale",
        text=f"{named(loss)} is {where}{set_to}{agree}. About 1 is expected where both are the same mean.",
        values={"factor": factor, "low": float(times.min()), "high": float(times.max())},
        steps=[float(evaluation.step[within][0])],
    )


BEYOND_START = 5.0
"""Times the highest training loss above which every evaluation lies. Chosen: rows that nobody learnt from have about
the first training loss, and rows known by heart make held-out ones dearer by less."""


def evaluation_beyond_start(run: Run) -> Iterator[DerivedFact]:
    """Yield that each evaluation loss is many times what the training loss ever was, and not by one factor."""
    if (losses := both_losses(run, not_of=NOT_BY_LOSS)) is None:
        return
    loss = losses[0]
    steps, train, evaluation = beside_training(*losses)
    if len(train) < LEAST_PAIRS or not (train > 0).all() or begins_late(loss):
        return
    try:
        refuse_another_scale(train, evaluation)
    except CannotTell:
        return
    highest, lowest = max(float(train.max()), float(loss.value[0])), float(evaluation.min())
    if lowest < BEYOND_START * highest or train[-1] > train[0]:
        return
    yield DerivedFact.model_construct(
        fact="evaluation_beyond_start",
        text=(
            f"{named(run['eval_loss'])} is {figure(lowest)} or more at all {len(evaluation)} evaluations, at least "
            f"{figure(lowest / highest)} times the highest {named(loss)}. A model that has learnt nothing has "
            "about the first training loss on held-out rows."
        ),
        values={"lowest": lowest, "highest_train": highest},
        steps=[float(steps[0])],
    )


BELOW_ALL_TRAINING = 0.3
"""Of the lowest training loss, below which each evaluation lies. Chosen: dropout and augmentation cost less."""
IN_STEP = 2.0
"""Times by which the ratio of two losses that fall together changes at most. Chosen: two scales keep one ratio."""


def evaluation_good_at_once(run: Run) -> Iterator[DerivedFact]:
    """Yield that evaluation was far below all that training ever comes to from its first time on, and not in step."""
    if (losses := both_losses(run, not_of=NOT_BY_LOSS)) is None:
        return
    steps, train, evaluation = beside_training(*losses)
    if len(steps) <= LEAST_PAIRS or min(train.min(), evaluation.min()) <= 0:
        return
    learns = median(train[-LEAST_PAIRS:]) < (1 - FALLS) * train[0]
    times = train / evaluation
    in_step = float(times.max()) < IN_STEP * float(times.min())  # a sum over more rows, or another unit
    if not learns or in_step or float(evaluation.max()) > BELOW_ALL_TRAINING * float(train.min()):
        return
    loss, evaluated = map(named, losses)
    yield DerivedFact.model_construct(
        fact="evaluation_good_at_once",
        text=(
            f"{evaluated} is {figure(float(evaluation[0]))} at its first time, {run.place(steps[0])}, where {loss} is "
            f"{figure(float(train[0]))}. That is far below {figure(float(train.min()))}, the lowest that {loss} comes "
            "to. A model that has yet to learn serves no held-out rows like that."
        ),
        values={"first": float(evaluation[0]), "first_train": float(train[0]), "lowest_train": float(train.min())},
        steps=[float(steps[0])],
    )


LEARNT = 0.1
"""Share of its first level that the training loss has lost by the first evaluation, so that the two can differ by what
was learnt. Chosen."""
ALIKE = 0.1
"""Of that loss, by which evaluation lies above training at most to be served alike. Chosen."""
OPENS = 0.2
"""Of the first training loss, by which the gap has opened in the last third. Chosen: less needs no reason."""


def evaluation_began_alike(run: Run) -> Iterator[DerivedFact]:
    """Yield that evaluation was served as training rows were at first, where a gap opens later.

    Rows that are prepared in another way, or evaluated in the wrong mode, are served worse from the start.
    """
    if (losses := both_losses(run, not_of=NOT_BY_LOSS)) is None:
        return
    steps, train, evaluation = beside_training(*losses)
    if len(train) < LEAST_PAIRS:
        return
    start = median(losses[0].value[:LEAST_PAIRS])
    fell, gap = start - float(train[0]), evaluation - train
    if (
        start <= 0
        or fell < LEARNT * start
        or gap[0] > ALIKE * fell
        or median(gap[-max(1, len(gap) // 3) :]) < OPENS * start
    ):
        return
    yield DerivedFact.model_construct(
        fact="evaluation_began_alike",
        text=(
            f"at the first evaluation ({run.place(steps[0])}) {named(run['eval_loss'])} is {figure(evaluation[0])} and "
            f"{named(losses[0])} {figure(train[0])}, down from {figure(start)}. Evaluation came down with training "
            "there, and the gap opened later."
        ),
        values={"evaluation": float(evaluation[0]), "train": float(train[0]), "start": start},
        steps=[float(steps[0])],
    )


AS_IN_TRAINING = 0.1
"""Of the first training loss, by which an evaluation differs from training at most to be served as training rows are.
Chosen."""
ANOTHER_SCALE = 30.0
"""Times the first training loss, beyond which another set is measured by another loss. Chosen."""
FAR_APART = 0.3
"""Of the first training loss, by which another set lies above that evaluation. Chosen: rows of another origin do too,
where much is learnt of them."""


def held_out_sets_disagree(run: Run) -> Iterator[DerivedFact]:
    """Yield that one set of evaluation is served as training rows are, and another far worse."""
    if (losses := both_losses(run, LEAST_PAIRS, not_of=NOT_BY_LOSS)) is None:
        return
    sets = [
        series
        for series in (*evaluation_losses(run), *_scored_sets(run, losses[0]))
        if len(series.finite) >= LEAST_PAIRS
    ]
    start, train = median(losses[0].value[:LEAST_PAIRS]), median(tail(losses[0]))
    ends = sorted((median(tail(series.finite)), series.name) for series in sets)
    if len(ends) < 2 or not 0 <= train < start or not start > 0:
        return
    (low, near), (high, far) = ends[0], ends[-1]
    if abs(low - train) > AS_IN_TRAINING * start or not FAR_APART * start <= high - low <= ANOTHER_SCALE * start:
        return
    yield DerivedFact.model_construct(
        fact="held_out_sets_disagree",
        text=(
            f"{named(run[near])} ends at about {figure(low)}, as {named(losses[0])} at {figure(train)}, and "
            f"{named(run[far])} at about {figure(high)}. Either rows of the first set are in the training data, or "
            "the second set is of another kind."
        ),
        values={"train": train, "near": low, "far": high},
        steps=[float(run[far].finite.step[-1])],
    )


def _scored_sets(run: Run, training: Series) -> list[Series]:
    """Return the losses of sets that have an accuracy at the same steps, though no name says evaluation: `region_b`."""
    scores = {score.role.part: score for score in columns_of(run, Quantity.ACCURACY, phase="eval") if score.role}
    return [
        loss
        for loss in columns_of(run, Quantity.LOSS, phase="train")
        if loss.role and loss.role.part and loss.role.part in scores and len(loss) < len(training)
        and np.array_equal(loss.step, scores[loss.role.part].step)
    ]  # fmt: skip


FEW_ROWS = 8
"""Rows at once that are few. Chosen: with more, their statistics come near those of a set."""
FAR_FROM_ALL = 0.1
"""By how much a share of right answers is lower with few rows at once. Chosen: padding and rounding take less."""


def evaluation_by_rows_at_once(run: Run) -> Iterator[DerivedFact]:
    """Yield that evaluation is far worse where few rows are evaluated at once: rows then depend on one another."""
    for few in columns_of(run, Quantity.ACCURACY, Quantity.TOKEN_ACCURACY, phase="eval", least=LEAST_PAIRS):
        rows = None if few.role is None else ROWS_AT_ONCE.search(few.role.part)
        if few.role is None or rows is None or int(rows[1]) > FEW_ROWS:
            continue
        part = ROWS_AT_ONCE.sub("", few.role.part)
        for many in columns_of(run, few.role.quantity, phase="eval", least=LEAST_PAIRS):
            low, high = (median(as_shares(tail(each))) for each in (few, many))
            if many.role is None or many.role.part != part or high - low < FAR_FROM_ALL:
                continue
            yield DerivedFact.model_construct(
                fact="evaluation_by_rows_at_once",
                text=(
                    f"{named(few)} ends at about {figure(low)} and {named(many)} at {figure(high)}: the same rows, "
                    f"{rows[1]} at a time and more. In evaluation mode the answer to a row depends on no other row. "
                    "Statistics of the batch make it depend on all of them."
                ),
                values={"few": low, "many": high},
            )
            return


def _around(series: Series, steps: Floats) -> Floats:
    """Return the median of the three values around each step, shape (n,)."""
    at = np.clip(np.searchsorted(series.step, steps), 1, len(series) - 2)
    levels: Floats = np.median(series.value[at[:, np.newaxis] + np.arange(-1, 2)], axis=1)
    return levels


def _accuracies_agree(run: Run) -> bool:
    shares = [columns_of(run, Quantity.ACCURACY, Quantity.TOKEN_ACCURACY, phase=phase) for phase in ("train", "eval")]
    if not all(shares):
        return False
    return abs(median(tail(shares[0][0])) - median(tail(shares[1][0]))) < SAME_SHARES


# A total and its parts: what share each has, and which part stays where the others move.


FITS = 0.01
"""Residual of a sum as a share of what the total varies by. Chosen: four printed digits leave less."""
MOST_PARTS = 6
RULES = 0.99
"""Share of the total above which one part rules it. Chosen."""
STAYS = 0.03
"""Share of its level by which a part that stays falls at most. Chosen."""
RISES = 0.1
"""Share of its level by which a part that stays rises at most. Chosen."""
FALLS = 0.3
"""Share by which the rest falls meanwhile. Chosen."""


def weighed_parts(run: Run) -> Iterator[DerivedFact]:
    """Yield a weighted sum of parts in which one part is nearly all, or one stays where the rest falls."""
    if (total := training_loss(run, not_of=POLICIES)) is None:
        return
    parts = _parts_of(run, total, *LOSSES)
    summed = _weights(total, parts)
    if len(parts) < 2 or summed is None:
        return
    weights, _ = summed
    columns = np.stack([part.value for part in parts], axis=1)
    early, late = (np.median(columns[piece] * weights, axis=0) for piece in (slice(0, 3), slice(-3, None)))
    shares = late / late.sum()
    equation = " + ".join(f"{figure(float(w))} x {named(series)}" for w, series in zip(weights, parts, strict=True))
    most = int(np.argmax(shares))
    steady = (early - late <= STAYS * np.abs(early)) & (late - early <= RISES * np.abs(early))
    rest_falls = [float(early.sum() - early[k]) * (1 - FALLS) > float(late.sum() - late[k]) for k in range(len(parts))]
    for k, series in enumerate(parts):
        if steady[k] and rest_falls[k] and weights[k] > 0 and early[k] > 0 and not is_auxiliary(named(series)):
            level = figure(median(series.value[-3:]))
            text = f"{named(total)} = {equation}; {named(series)} stays at {level} while the other parts fall."
            expected = " A part that is trained falls, too."
            yield DerivedFact.model_construct(
                fact="part_stays", text=text + expected, values={"share": float(shares[k])}
            )
    if RULES < float(shares[most]) <= 1 + FITS and float(weights.min()) > FITS * float(weights.max()):
        text = f"{named(total)} = {equation}; at the end {named(parts[most])} is {percent(float(shares[most]))} of it."
        yield DerivedFact.model_construct(
            fact="part_rules",
            text=f"{text} The other parts have next to no gradient.",
            values={"share": float(shares[most])},
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
"""What is left over at most, as a share of what the part varies by. Chosen: where one part is huge, the weights of
small ones are not known."""


def _weights(total: Series, parts: Sequence[Series]) -> tuple[Floats, NDArray[np.bool_]] | None:
    """Return the weights with which parts sum to the total, and which of them are sure; None where they do not."""
    if not parts or len(total) < 3 * len(parts):
        return None
    columns = np.stack([part.value for part in parts], axis=1)
    found, *_ = np.linalg.lstsq(columns, total.value, rcond=None)
    weights: Floats = np.asarray(found, dtype=np.float64)
    left, varies = float(np.std(total.value - columns @ weights)), float(np.std(total.value))
    if not np.isfinite(weights).all() or varies <= 0 or left > FITS * varies:
        return None
    errors = left * np.sqrt(np.maximum(np.diag(np.linalg.pinv(columns.T @ columns)), 0.0))
    is_explained = left <= LEFT_OF_PART * np.abs(weights) * np.std(columns, axis=0)
    return weights, is_explained & (np.abs(weights) > np.maximum(SURE_WEIGHT * errors, LEAST_WEIGHT))


def subtracted(run: Run) -> Iterator[DerivedFact]:
    """Yield that the total loss holds a part with a negative factor, so that training makes that part larger."""
    if (total := training_loss(run, not_of=NOT_BY_LOSS)) is None:
        return
    for quantities in (LOSSES, (*LOSSES, Quantity.KL)):
        parts, weighted_parts = _weighted_parts(run, total, *quantities)
        for part, weight, first, last in weighted_parts if len(parts) > 1 else ():
            if weight > 0:
                continue
            yield DerivedFact.model_construct(
                fact="part_subtracted",
                text=(
                    f"{named(total)} holds {named(part)} with the factor {figure(weight)} (least squares over "
                    f"{len(total)} records and {len(parts)} parts): it is subtracted. {named(part)} goes from about "
                    f"{figure(first)} to about {figure(last)}. A loss that is to fall is added."
                ),
                values={"factor": float(weight), "first": first, "last": last},
            )
            return


def _weighted_parts(
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


def entropy_lowered(run: Run) -> Iterator[DerivedFact]:
    """Yield that the loss of a policy grows with its entropy, where a bonus has to lower it."""
    if run.kind not in POLICIES or (total := training_loss(run)) is None:
        return
    _, weighted_parts = _weighted_parts(run, total, *LOSSES, Quantity.KL, Quantity.ENTROPY)
    for part, weight, first, last in weighted_parts:
        if part.role is None or part.role.quantity is not Quantity.ENTROPY or weight < 0:
            continue
        yield DerivedFact.model_construct(
            fact="entropy_lowered",
            text=(
                f"{named(total)} holds the entropy with the factor +{figure(weight)} (least squares over {len(total)} "
                f"records): training lowers it, from about {figure(first)} to about {figure(last)}. A bonus for "
                "entropy has a negative factor."
            ),
            values={"factor": float(weight), "first": first, "last": last},
        )
        return


PART_GROWS = 1.15
"""Times its start that a part grows to. Chosen: of 650 healthy runs none shows it."""
LOSS_FALLS = 0.1
"""Share of its start by which the total falls. Chosen, as the others."""
PART_ORDERED = 0.6
"""Rank correlation of the part with the step. Chosen, as the others."""
LEAST_PART_RECORDS = 12
"""Records of the part and of the total. Chosen, as the others."""


def rising_parts(run: Run) -> Iterator[DerivedFact]:
    """Yield a part of the loss that rises while the total falls."""
    total = training_loss(run, LEAST_PART_RECORDS, not_of=NOT_BY_LOSS)
    if total is None or any(subtracted(run)):
        return
    tenth = max(LEAST_PAIRS, len(total) // 10)
    began, ends = median(total.value[:tenth]), median(total.value[-tenth:])
    if began - ends <= LOSS_FALLS * abs(began):
        return
    for part in _parts_of(run, total, *LOSSES):
        first, last = median(part.value[:tenth]), median(part.value[-tenth:])
        if not 0 < PART_GROWS * first < last or monotone(sample(part.value)) < PART_ORDERED:
            continue
        yield DerivedFact.model_construct(
            fact="part_rises",
            text=(
                f"{named(part)} rises from about {figure(first)} to about {figure(last)} (medians of {tenth} records) "
                f"while {named(total)} falls from about {figure(began)} to about {figure(ends)}. Parts that are "
                "trained together fall together, or one is given up for another."
            ),
            values={"from": first, "to": last},
        )
        return


# Two scores of one evaluation that cannot both be right.


MIN_GOOD_SCORE = 0.9
"""Share of right answers of a good model. Chosen."""
MAX_HOPELESS_SCORE = 0.05
"""Share of right answers of a hopeless model. Chosen."""
_SCORES = (
    Quantity.ACCURACY, Quantity.TOKEN_ACCURACY, Quantity.F1, Quantity.IOU, Quantity.DICE, Quantity.AVERAGE_PRECISION,
)  # fmt: skip


def _is_of_one_class(series: Series) -> bool:
    """Say whether a score measures one class, which answers of another class alone leave at 0."""
    role = series.role
    if role is None or role.quantity not in (Quantity.F1, Quantity.DICE, Quantity.IOU, Quantity.AVERAGE_PRECISION):
        return False
    return role.quantity is not Quantity.IOU or bool(role.part)


def contradictions(run: Run) -> Iterator[DerivedFact]:
    """Yield a score near 1 next to another of the same evaluation near 0 that does not rise with it."""
    for score, other in combinations(columns_of(run, *_SCORES, phase="eval", least=LEAST_PAIRS), 2):
        good, bad = sorted((score, other), key=lambda series: -float(series.value[-1]))
        if float(good.value[-1]) < MIN_GOOD_SCORE or not 0 <= float(bad.value.max()) < MAX_HOPELESS_SCORE:
            continue
        if not np.array_equal(good.step, bad.step) or float(bad.value[-1]) > float(bad.value[0]):
            continue
        is_majority = bool(np.all(bad.value == bad.value[0])) or _is_of_one_class(bad)
        expected = (
            "Where one class is rare, answers of the other alone give both."
            if is_majority
            else "Both measure the same answers and are expected to rise together."
        )
        yield DerivedFact.model_construct(
            fact="majority_alone" if is_majority else "scores_contradict",
            text=(
                f"{named(good)} is {figure(float(good.value[-1]))} at the end while {named(bad)} is "
                f"{figure(float(bad.value[0]))} at first and {figure(float(bad.value[-1]))} at the end. {expected}"
            ),
            values={"good": float(good.value[-1]), "bad": float(bad.value[-1])},
        )
        return


# A cross-entropy that the accuracy of the same answers contradicts.


OF_LEAST = 0.5
"""Share of the least cross-entropy below which a loss lies. Chosen: of 650 healthy runs none does."""
MIN_WRONG = 0.05
"""Share of wrong answers. Chosen, as the others."""
SHARE_OF_RECORDS_BELOW = 0.8
"""Share of the later records that lie below. Chosen, as the others."""
_OF_WHOLES = regex(r"exact|subset|seq(?:uence)?_|sentence|joint|all_", re.IGNORECASE)
"""What a score of several answers at once is called: its loss is a mean over single ones."""


def below_accuracy(run: Run) -> Iterator[DerivedFact]:
    """Yield a cross-entropy below what so many wrong answers cost at least: -ln(1/2) each."""
    if run.kind in NOT_BY_LOSS:
        return
    for loss_name, score_name in PAIRS:
        if loss_name not in run or score_name not in run or _OF_WHOLES.search(named(run[score_name])):
            continue
        steps, accuracy, loss = aligned(run[score_name].finite, run[loss_name].finite)
        later = slice(len(steps) // 2, None)
        right, level = as_shares(accuracy)[later], loss[later]
        if len(steps) < LEAST_PAIRS + 1 or median(level) <= 0 or 1 - median(right) < MIN_WRONG:
            continue
        if float(np.mean(level < OF_LEAST * (1 - right) * math.log(2))) < SHARE_OF_RECORDS_BELOW:
            continue
        wrong = 1 - median(right)
        least = wrong * math.log(2)
        yield DerivedFact.model_construct(
            fact="loss_contradicts_accuracy",
            text=(
                f"{named(run[loss_name])} is about {figure(median(level))} and {named(run[score_name])} about "
                f"{figure(median(right))} in the later half of {len(steps)} records. Where "
                "an answer is wrong, the right class has a probability of 1/2 at most, which costs -ln(1/2) = 0.6931. "
                f"So a mean over the same answers is at least {figure(wrong)} x 0.6931 = {figure(least)}."
            ),
            values={"loss": median(level), "accuracy": median(right), "least": least},
            steps=[float(steps[0])],
        )
        return


# Training that does worse than evaluation at the same: accuracies on one scale.


AHEAD = 0.2
"""By how much a share of right answers of evaluation is above that of training. Chosen: dropout and augmentation cost
less."""
GOOD = 0.9
"""Share of right answers of evaluation from which on that is stated. Chosen."""


_OF_A_PROBE = regex(r"k_?nn|nearest|linear|probe|retriev", re.IGNORECASE)
"""Scores of another classifier on a model's features: what the model is trained on may be far harder."""


_NO_AUGMENTATION = ("none", "off", "no", "false")
"""What a setting says where training rows are not changed."""


def training_behind(run: Run) -> Iterator[DerivedFact]:
    """Yield that evaluation answers nearly all while training answers far fewer at the same time."""
    for quantity in (Quantity.ACCURACY, Quantity.TOKEN_ACCURACY):
        train, evaluation = (
            [series for series in columns_of(run, quantity, phase=phase) if not _OF_A_PROBE.search(named(series))]
            for phase in ("train", "eval")
        )
        if not train or not evaluation or len(train[0]) < MIN_RECORDS_FOR_LEVEL or len(evaluation[0]) < LEAST_PAIRS:
            continue
        low, high = median(tail(train[0])), median(tail(evaluation[0]))
        if high < GOOD or high - low < AHEAD or high > 1:
            continue
        disturbed = run.setting("dropout") != 0 or run.settings.text("augmentation", "augment") not in _NO_AUGMENTATION
        yield DerivedFact.model_construct(
            fact="training_behind" if disturbed else "undisturbed_training_behind",
            text=(
                f"{named(evaluation[0])} is {figure(high)} and {named(train[0])} {figure(low)} (medians of the last "
                "third). The same model answers training rows at least as well where both are asked and scored alike"
                f"{'' if disturbed else ', and there is neither dropout nor augmentation'}."
            ),
            values={"train": low, "eval": high},
        )
        return


# Rows of training that are evaluated as well: they tell what was learnt by heart from what evaluation does otherwise.


_OF_TRAINING = regex(r"train", re.IGNORECASE)
AS_NEAR = 0.25
"""Share of the way from training to evaluation within which a level counts as one of the two. Chosen."""
LEAST_GAP = 0.15
"""Gap of training and evaluation, as a share of the larger, from which on it is worth telling what makes it. Chosen."""


def training_rows_evaluated(run: Run) -> Iterator[DerivedFact]:
    """Yield how rows of training do in evaluation: as in training, or no better than rows that were held out."""
    for quantity in (Quantity.ACCURACY, Quantity.TOKEN_ACCURACY, Quantity.LOSS):
        evaluated = columns_of(run, quantity, phase="eval", least=LEAST_PAIRS)
        again = [series for series in evaluated if series.role and _OF_TRAINING.search(series.role.part)]
        held_out = [series for series in evaluated if series.role and not series.role.part]
        train = columns_of(run, quantity, phase="train", least=LEAST_PAIRS)
        if not again or not held_out or not train:
            continue
        low, middle, high = (median(tail(series)) for series in (train[0], again[0], held_out[0]))
        if abs(high - low) < LEAST_GAP * max(abs(high), abs(low)):
            continue
        way = (middle - low) / (high - low)
        if AS_NEAR < way < 1 - AS_NEAR:
            continue
        fact, expected = "gap_between_rows", "They do as well as in training, so the gap is one between rows."
        if way >= 1 - AS_NEAR:
            fact = "evaluation_differs"
            expected = "They do no better than rows held out, so evaluation treats rows otherwise than training."
        yield DerivedFact.model_construct(
            fact=fact,
            text=(
                f"{named(train[0])} is {figure(low)}, {named(again[0])} {figure(middle)} and {named(held_out[0])} "
                f"{figure(high)} (medians of the last third). The second is of rows that training has seen. {expected}"
            ),
            values={"train": low, "train_rows": middle, "eval": high},
        )
        return


# An evaluation that is made twice of the same weights.


_AGAIN = regex(
    r"(?:re_?run|re_?eval(?:uated)?|again|repeat(?:ed)?|twice|(?:second|2nd)_(?:pass|run)|(?:pass|run)_?2)",
    re.IGNORECASE,
)
"""What the name of an evaluation holds that was made again."""
AS_EXACT = 0.005
"""Share of a value by which a second evaluation may be off. Chosen: kernels that add in another order leave less."""


def evaluated_twice(run: Run) -> Iterator[DerivedFact]:
    """Yield that an evaluation which is made again of the same weights gives other values each time."""
    found = [pair for name in run.series if (pair := _made_twice(run, name)) is not None]
    if not found:
        return
    off, name, again, (steps, first, second) = max(found, key=lambda pair: pair[0])
    yield DerivedFact.model_construct(
        fact="evaluated_twice",
        text=(
            f"{named(run[again])} is {figure(100 * off)} % off {named(run[name])} (median of {len(steps)} "
            f"evaluations), {figure(second[-1])} and {figure(first[-1])} at the end. The same weights give equal "
            "values on the same rows, unless dropout or statistics of batches are still on."
        ),
        values={"off": off, "first": float(first[-1]), "second": float(second[-1])},
    )


def _made_twice(run: Run, again: str) -> tuple[float, str, str, tuple[Floats, Floats, Floats]] | None:
    """Return how far an evaluation that was made again is off the first, if it is, with both names and their values."""
    if (word := _AGAIN.search(again)) is None:
        return None
    before, after = again[: word.start()], again[word.end() :]
    names = [f"{before}{word[0].replace('2', '1')}{after}", f"{before.rstrip('_/')}{after}", pieces_of(again)[-1]]
    tried = (each for name in names for each in (name, canonical(name), canonical(f"eval_{name}")))
    once = next((name for name in tried if name != again and name in run), None)
    if once is None:
        return None
    steps, first, second = values = at_common_steps(run[once].finite, run[again].finite)
    off = median(np.abs(first - second) / np.maximum(np.abs(first), 1e-12)) if len(steps) >= LEAST_PAIRS else 0.0
    return (off, once, again, values) if off >= AS_EXACT else None


# Frozen values: exactly the same while others move.


FROZEN_FOR = 0.5
"""Share of the records for which a value is the same. Chosen."""
NEARLY_ALL = 0.9
"""Share of right answers from which on few are left to change. Chosen."""
_FREEZES = (
    Quantity.ACCURACY, Quantity.TOKEN_ACCURACY, Quantity.F1, Quantity.AUC, Quantity.IOU, Quantity.DICE,
    Quantity.EXPLAINED_VARIANCE, *LOSSES,
)  # fmt: skip


def frozen_columns(run: Run) -> Iterator[DerivedFact]:
    """Yield scores and losses that are exactly the same over many records while the training loss moves."""
    if (loss := training_loss(run, MIN_RECORDS_FOR_LEVEL)) is None:
        return
    frozen = []
    for series in columns_of(run, *_FREEZES, least=MIN_RECORDS_FOR_LEVEL // 2):
        is_share = series.role is not None and series.role.quantity not in LOSSES
        if not series.value[-1] or (is_share and series.value[-1] >= NEARLY_ALL):
            continue
        same = np.flatnonzero(series.value != series.value[-1])
        since = 0 if not len(same) else int(same[-1]) + 1
        step = float(series.step[since])
        moving = loss.value[loss.step >= step]
        if (
            len(series) - since < max(MIN_RECORDS_FOR_LEVEL // 2, FROZEN_FOR * len(series))
            or len(set(moving.tolist())) < LEAST_PAIRS
        ):
            continue
        frozen.append((series, step, len(series) - since))
    if frozen:
        series, step, records = frozen[0]
        more = f" (so are {', '.join(named(other) for other, _, _ in frozen[1:3])})" if frozen[1:] else ""
        moved = loss.value[loss.step >= step].tolist()
        yield DerivedFact.model_construct(
            fact="frozen",
            text=(
                f"{named(series)} is exactly {figure(float(series.value[-1]))} in the last {records} of its "
                f"{len(series)} records, from {run.place(step)} on, while {named(loss)} goes from {figure(moved[0])} "
                f"to {figure(moved[-1])}{more}. New weights give other answers to some rows."
            ),
            values={"value": float(series.value[-1]), "records": float(records)},
            steps=[step],
        )


# Does training come to a stop, with neither a loss nor a gradient?


LEAST_IDLE = 5
"""Records at the end without loss and gradient. Chosen: one or two may be batches without a label."""
HARDLY_ANY = 0.05
"""Share of the tokens that counted before, up to which hardly any count. Chosen: answers of other rows are longer."""
WITHOUT_ANY = 0.1
"""Share of the records there in which none counts. Chosen: rows with short answers have at least one each."""


def nothing_trained(run: Run) -> Iterator[DerivedFact]:
    """Yield since when hardly a token has a label, or loss and gradient norm are exactly zero; not so before."""
    if (fact := _labels_run_out(run)) is not None:
        yield fact
        return
    loss = training_loss(run, not_of=POLICIES)
    if loss is None or "grad_norm" not in run:
        return
    norm = run["grad_norm"].finite
    ends = [zeros_at_end(series.value) for series in (loss, norm)]
    if min(ends) < LEAST_IDLE or len(loss) == ends[0] or len(norm) == ends[1] or fades_to_zero(loss.value):
        return
    step = max(float(loss.step[-ends[0]]), float(norm.step[-ends[1]]))
    yield DerivedFact.model_construct(
        fact="nothing_trained",
        text=(
            f"{named(loss)} and {named(norm)} are exactly 0 in all {min(ends)} records since {run.place(step)}, and "
            "were not before. Nothing is trained there, as where no label is counted: what is learnt well has a small "
            "gradient."
        ),
        values={"records": float(min(ends))},
        steps=[step],
    )


def _labels_run_out(run: Run) -> DerivedFact | None:
    """Return since when hardly any token counts in the loss, and in many records none; None where that is not so."""
    counts = next(iter(columns_of(run, Quantity.LOSS_TOKENS, phase="train", least=2 * LEAST_IDLE)), None)
    if counts is None or run.kind in POLICIES:
        return None
    usual = quantile(counts.value, 1 - WITHOUT_ANY)
    left = true_at_end(counts.value <= HARDLY_ANY * usual)
    late = counts.value[len(counts) - left :]
    if left < LEAST_IDLE or left == len(counts) or float(np.mean(late == 0)) < WITHOUT_ANY:
        return None
    step = float(counts.step[-left])
    return DerivedFact.model_construct(
        fact="labels_run_out",
        text=(
            f"{named(counts)} is {figure(float(late.max()))} at most in all {left} records since {run.place(step)}, "
            f"and 0 in {np.count_nonzero(late == 0)} of them; before it was about {figure(usual)}. A batch without a "
            "label trains nothing, and one with a few trains on these alone."
        ),
        values={"records": float(left), "most": float(late.max()), "before": usual},
        steps=[step],
    )


# What passes over the data do not allow: evaluation as low as rows known by heart, or training ahead on new ones.


MANY_PASSES = 10.0
"""Passes over the data after which rows are known by heart. Chosen."""
AS_LOW = 1.15
"""Evaluation over training that is as low. Chosen."""
KNOWN_BY_HEART = 0.05
"""Share of its start that training has come down to. Chosen."""
ONE_PASS = 0.99
"""Passes by which no row came twice. Chosen."""
TOGETHER = 0.15
"""Share of the evaluation loss by which training is off it at most while both are one. Chosen: fresh rows differ from
evaluation by their noise alone."""
APART = 0.6
"""Share of the evaluation loss that training is of it once they part. Chosen."""


def within_first_pass(run: Run) -> Iterator[DerivedFact]:
    """Yield that training parts from evaluation before a pass is over, as if it had seen its rows before."""
    if (losses := both_losses(run, MIN_RECORDS_FOR_LEVEL, not_of=POLICIES)) is None:
        return
    loss, evaluation = losses
    steps, levels, values = beside_training(loss, evaluation)
    passes = passes_at(run, steps) if len(steps) else None
    if passes is None:
        return
    pairs = [
        (step, train, value, made)
        for step, train, value, made in np.stack([steps, levels, values, passes], axis=1).tolist()
        if value > 0 and made <= ONE_PASS
    ]
    apart = [pair for pair in pairs if 0 <= pair[1] < APART * pair[2]]
    if len(apart) < 2 or abs(pairs[0][1] / pairs[0][2] - 1) > TOGETHER:
        return
    (at, train, evaluated, made), first = min(apart, key=lambda pair: pair[1] / pair[2]), pairs[0]
    yield DerivedFact.model_construct(
        fact="apart_within_first_pass",
        text=(
            f"at {run.place(at)}, after {figure(made)} passes over the data, {named(loss)} is about {figure(train)} "
            f"and {named(evaluation)} {figure(evaluated)}; at {run.place(first[0])} they were {figure(first[1])} and "
            f"{figure(first[2])}. Rows that are met for the first time are no easier than those of evaluation: rows "
            "come again, or resemble those just before."
        ),
        values={"train": train, "eval": evaluated, "passes": made},
        steps=[at],
    )


def evaluation_after_passes(run: Run) -> Iterator[DerivedFact]:
    """Yield that evaluation is as low as training after so many passes that rows are known by heart."""
    if (losses := both_losses(run, MIN_RECORDS_FOR_LEVEL)) is None:
        return
    loss = losses[0]
    steps, train, evaluated = beside_training(*losses)
    passes = passes_at(run, steps[-1:]) if len(steps) else None
    if passes is None or float(passes[0]) < MANY_PASSES:
        return
    low, start = median(train[-LEAST_PAIRS:]), median(loss.value[:3])
    late = median(evaluated[-LEAST_PAIRS:])
    if not 0 < low < KNOWN_BY_HEART * start or late > AS_LOW * low:
        return
    yield DerivedFact.model_construct(
        fact="evaluation_as_low",
        text=(
            f"after {figure(float(passes[0]))} passes over the data the training loss is {figure(low)} and the "
            f"evaluation loss {figure(late)}. Rows that were seen so often are known better than new ones, so "
            "evaluation is expected above."
        ),
        values={"passes": float(passes[0]), "train": low, "eval": late},
        steps=[float(steps[-1])],
    )
