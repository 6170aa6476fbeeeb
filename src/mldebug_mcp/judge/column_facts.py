"""How columns stand to one another, to bounds, to the steps of events and to settings: facts with what is expected.

What is asked is the quantity that a column holds, and arithmetic. The mean of the labels alone goes by its name. A fact
names no cause.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.checks.check import CannotTell
from mldebug_mcp.checks.curve import aligned, mad, sample
from mldebug_mcp.checks.evaluation import as_shares, beside_training, refuse_another_scale
from mldebug_mcp.checks.progress import is_late, passes_at, uniform_loss
from mldebug_mcp.checks.run.loss_by_accuracy import PAIRS
from mldebug_mcp.checks.run.loss_start import AT_ONCE, LOSS_START_FIRST_STEPS
from mldebug_mcp.checks.run.resume import restart_of_data
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import figure, percent
from mldebug_mcp.judge.ranking import CauseEvidence
from mldebug_mcp.logs import Run, Series
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.names.quantities import LOSSES as EVERY_LOSS
from mldebug_mcp.logs.names.quantities import THROUGHPUTS
from mldebug_mcp.models import Finding, State
from mldebug_mcp.models.diagnosis import DerivedFact

MIN_RECORDS_FOR_LEVEL = 8
"""Records that tell of a level or a line. Chosen: a half of them is then a level."""
LOSSES = tuple(sorted(EVERY_LOSS))
POLICIES = ("grpo", "ppo", "rl")
"""Kinds of runs whose losses are no measure of what was learnt, and whose models come trained."""
NOT_BY_LOSS = (*POLICIES, "preference")
"""Kinds of runs whose training loss is not the cross-entropy of answers."""
MOST_FACTS = 6
"""Facts of one run. Chosen: what an answer has room for."""


def column_facts(run: Run) -> list[DerivedFact]:
    """Return how the columns of a run stand to one another, to bounds and to settings, the sharpest kinds first."""
    with np.errstate(all="ignore"):
        found: Iterable[DerivedFact] = (
            fact
            for kind in (
                _nothing_trained,
                _subtracted, _around_resumes, _untrained, _far_beyond_guess, _training_rows_evaluated,
                _below_accuracy, _multiples, _arithmetic, _within_first_pass,
                _evaluation_beyond_start, _base_rate, _beyond_guess, _one_jump_a_pass, _logps_multiplied,
                _entropy_lowered, _much_clipped, _rising_parts, _parts, _at_bounds, _uniform_policy, _contradictions,
                _majority, _training_behind, _at_limit, _growing, _frozen, _at_first_evaluation, _periods,
            )
            for fact in kind(run)
        )  # fmt: skip
        return list(found)[:MOST_FACTS]


_SUGGESTS: Mapping[str, Mapping[str, float]] = {
    "nothing_trained": {"all_labels_masked": 9.0},
    "part_subtracted": {"wrong_loss": 6.0},
    "entropy_lowered": {"entropy_collapse": 6.0},
    "starts_untrained": {"bad_init": 4.0},
    "first_loss_far_beyond_guess": {"bad_init": 4.0, "grad_accum_scaling": 3.0, "tokenizer_mismatch": -3.0},
    "evaluation_differs": {"eval_mode_bug": 5.0, "train_eval_mismatch": 3.0, "overfitting": -6.0},
    "gap_between_rows": {"overfitting": 3.0, "eval_mode_bug": -4.0},
    "loss_contradicts_accuracy": {"metric_bug": 6.0, "eval_mode_bug": 3.0},
    "much_clipped": {"off_policy_staleness": 5.0, "kl_blowup": 3.0, "entropy_collapse": 3.0},
    "moves_at_resume": {"resume_state_lost": 3.0, "resume_data_replayed": 1.0},
    "rises_at_resume": {"resume_state_lost": 3.0, "resume_data_replayed": -4.0},
    "loss_multiple": {"grad_accum_scaling": 8.0},
    "part_stays": {"params_not_training": 9.0, "wrong_loss": 6.0},
    "scores_contradict": {"metric_bug": 7.0},
    "majority_alone": {"class_imbalance": 2.0},
    "cut_at_limit": {"completion_limit_low": 5.0},
    "update_below_spacing": {"low_precision_update": 10.0},
    "too_low_for_one_pass": {"label_shift_error": 4.0, "causal_mask_missing": 4.0},
    "worse_than_constant": {"double_softmax": 6.0},
    "training_behind": {"label_noise": 6.0},
    "apart_within_first_pass": {"resume_data_replayed": 7.0, "duplicated_data": 6.0},
    "no_better_than_constant": {"no_signal": 4.0},
    "uniform_policy": {"exploration_failure": 3.0, "no_signal": 3.0},
    "worse_than_any_guess": {"lr_too_high": 5.0, "missing_zero_grad": 4.0, "wrong_loss": 4.0, "bad_init": 3.0},
    "evaluation_worse_than_any_guess": {"lr_too_high": 3.0},
    "one_jump_a_pass": {"bad_data_pocket": 5.0, "bad_batch": 4.0},
    "evaluation_beyond_start": {"train_eval_mismatch": 6.0, "eval_mode_bug": 5.0, "metric_bug": 3.0},
    "logps_multiplied": {"dpo_collapse": 5.0, "lr_too_high": 4.0},
}
"""Bits for the causes that explain a fact. By hand: eight where a half of the runs with the cause show it and one in
five hundred healthy ones. Of 407 healthy runs of the data set none shows a multiple or a contradiction. None shows
training that is behind or a loss too low for one pass. What two causes explain counts less for each,
and arithmetic without a way out most. What three or more healthy runs show, such as a norm that grows, is stated and
does not weigh. Of 650 healthy runs, public ones among them, none has a part that is subtracted or an entropy that is
lowered. None has a start from scratch, a loss that contradicts its accuracy, much clipping or a move at a resume. Of
runs with a fault, 3 of 44 of `wrong_loss`, 4 of 26 of `entropy_collapse` and 2 of 31 of `bad_init` show the first
three. The others show in 6 of 33 of `metric_bug`, 6 of 13 of `off_policy_staleness` and 10 of 24 of
`resume_state_lost`. A resume itself is known, so a move at one weighs less. A loss that jumps up at one tells against
rows that come again, as those were learnt: 1 of 23 runs that lost their state has it, none of 22 with such rows. A
first loss of ten times a guess is in 4 of 31 runs of `bad_init` and 3 of `grad_accum_scaling`. It is in five of
other causes, none of them with tokens that do not fit, and in none of 650 healthy ones."""


_STATED_BY: Mapping[str, Collection[str]] = {
    "loss_multiple": ("loss_scale_suspicious",),
    "one_jump_a_pass": ("loss_spikes_regular",),
    "entropy_lowered": ("entropy_bonus_negative",),
    "loss_contradicts_accuracy": ("loss_below_accuracy", "eval_metric_zero", "eval_score_behind_loss"),
    "much_clipped": ("clip_ratio_high",),
    "moves_at_resume": (
        "loss_jump_at_resume",
        "loss_falls_back",
        "epoch_starts_over",
        "state_missing_at_resume",
        "lr_jump_at_resume",
    ),
    "cut_at_limit": ("completions_truncated", "completions_reach_limit"),
    "training_behind": ("train_lags_eval",),
    "scores_contradict": ("eval_metric_zero", "eval_score_behind_loss"),
    "apart_within_first_pass": ("eval_gap_in_first_pass",),
    "worse_than_any_guess": ("loss_rises", "loss_divergence", "loss_huge"),
    "evaluation_worse_than_any_guess": ("eval_gap_grows", "eval_bad_from_start", "eval_never_improves", "loss_rises"),
}
"""Symptoms that say the same as a fact: what one phenomenon says counts once."""
_REPEATS = ("apart_within_first_pass", "worse_than_any_guess", "evaluation_worse_than_any_guess")
"""Facts that add next to nothing to what the symptom that says the same states."""


def not_repeated(facts: Sequence[DerivedFact], findings: Sequence[Finding]) -> list[DerivedFact]:
    """Return the facts without one whose numbers a finding has."""
    present = {finding.symptom for finding in findings if finding.state is State.PRESENT}
    return [fact for fact in facts if fact.fact not in _REPEATS or present.isdisjoint(_STATED_BY[fact.fact])]


def evidence_from_columns(facts: Sequence[DerivedFact], findings: Sequence[Finding] = ()) -> list[CauseEvidence]:
    """Return what the facts on the columns of a run say about the causes that explain them.

    A fact that a finding states, too, is left out.
    """
    present = {finding.symptom for finding in findings if finding.state is State.PRESENT}
    return [
        CauseEvidence(cause, bits, fact.text, "log", fact.fact)
        for fact in facts
        if present.isdisjoint(_STATED_BY.get(fact.fact, ()))
        for cause, bits in _SUGGESTS.get(fact.fact, {}).items()
    ]


def _name(series: Series) -> str:
    return series.logged_as or series.name


def _of(run: Run, *quantities: Quantity, phase: str = "", least: int = 1) -> list[Series]:
    """Return the finite values of columns of some quantities, in the unit of the quantity: of so many records."""
    found = run.with_role(*quantities, phase=phase, parts=True)
    return [series.finite for series in found if series is run[series.name] and len(series.finite) >= least]


def _loss(run: Run, least: int = 1, *, not_of: Collection[str] = ()) -> Series | None:
    """Return the finite training losses; None where they are fewer, or the run is of one of some kinds."""
    if run.kind in not_of or "loss" not in run:
        return None
    loss = run["loss"].finite
    return loss if len(loss) >= least else None


def _losses(run: Run, least: int = 1, *, not_of: Collection[str] = ()) -> tuple[Series, Series] | None:
    """Return the finite losses of training, so many at least, and of evaluation; None where either is too short."""
    loss = _loss(run, least, not_of=not_of)
    if loss is None or "eval_loss" not in run or len(evaluation := run["eval_loss"].finite) < LEAST_PAIRS:
        return None
    return loss, evaluation


def _tail(series: Series) -> Floats:
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


def _multiples(run: Run) -> Iterator[DerivedFact]:
    """Yield that the training loss is a multiple of the evaluation loss all the way, though their accuracies agree."""
    if (losses := _losses(run, MIN_RECORDS_FOR_LEVEL)) is None:
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
    where = f"{low} to {high} times {_name(evaluation)} at {len(times)} evaluations"
    set_to = f"; {near[0][0]} is {figure(near[0][1] or 0)}" if near else ""
    agree = ", and accuracies of training and evaluation agree" if _accuracies_agree(run) else ""
    yield DerivedFact(
        fact="loss_multiple" if near and near[0][0] in _SUMMED else "loss_on_another_scale",
        text=f"{_name(loss)} is {where}{set_to}{agree}. About 1 is expected where both are the same mean.",
        values={"factor": factor, "low": float(times.min()), "high": float(times.max())},
        steps=[float(evaluation.step[within][0])],
    )


BEYOND_START = 5.0
"""Times the highest training loss above which every evaluation lies. Chosen: rows that nobody learnt from have about
the first training loss, and rows known by heart make held-out ones dearer by less."""


def _evaluation_beyond_start(run: Run) -> Iterator[DerivedFact]:
    """Yield that each evaluation loss is many times what the training loss ever was, and not by one factor."""
    if (losses := _losses(run, not_of=NOT_BY_LOSS)) is None:
        return
    loss = losses[0]
    steps, train, evaluation = beside_training(*losses)
    if len(train) < LEAST_PAIRS or not (train > 0).all():
        return
    try:
        refuse_another_scale(train, evaluation)
    except CannotTell:
        return
    highest, lowest = max(float(train.max()), float(loss.value[0])), float(evaluation.min())
    if lowest < BEYOND_START * highest or train[-1] > train[0]:
        return
    yield DerivedFact(
        fact="evaluation_beyond_start",
        text=(
            f"{_name(run['eval_loss'])} is {figure(lowest)} or more at all {len(evaluation)} evaluations, at least "
            f"{figure(lowest / highest)} times the highest {_name(loss)}. A model that has learnt nothing has "
            "about the first training loss on held-out rows."
        ),
        values={"lowest": lowest, "highest_train": highest},
        steps=[float(steps[0])],
    )


def _around(series: Series, steps: Floats) -> Floats:
    """Return the median of the three values around each step, shape (n,)."""
    at = np.clip(np.searchsorted(series.step, steps), 1, len(series) - 2)
    levels: Floats = np.median(series.value[at[:, np.newaxis] + np.arange(-1, 2)], axis=1)
    return levels


def _accuracies_agree(run: Run) -> bool:
    shares = [_of(run, Quantity.ACCURACY, Quantity.TOKEN_ACCURACY, phase=phase) for phase in ("train", "eval")]
    if not all(shares):
        return False
    return abs(median(_tail(shares[0][0])) - median(_tail(shares[1][0]))) < SAME_SHARES


# Jumps and passes over the data: rows that are bad come once in each pass, in whatever order.


LEAST_JUMPS = 4
"""Jumps of the loss that are compared with its passes. Chosen: as usual."""
MOST_CHANCE = 0.02
"""The chance at most that no two of them fall into one pass. Chosen: as usual."""
AROUND = 11
"""Records whose median is the level of one."""
JUMPS_BY = 20.0
"""Deviations from that level that make a jump. Chosen: noise has none."""
LEAST_JUMP = 3.0
"""Times the size of that level that makes a jump. Chosen: noise has none."""
MOST_RECORDS = 200_000
"""Records that are looked at: a bound on what it costs."""


def _one_jump_a_pass(run: Run) -> Iterator[DerivedFact]:
    """Yield that the loss jumps once in each pass over the data, or in nearly each, and never twice."""
    loss = _loss(run, AROUND + 1, not_of=POLICIES)
    ends = passes_at(run, loss.step[[0, -1]]) if loss is not None and len(loss) <= MOST_RECORDS else None
    if loss is None or ends is None:
        return
    at = loss.step[_jumps(loss.value)]
    passes = passes_at(run, at) if len(at) >= LEAST_JUMPS else None
    if passes is None:
        return
    own, (first, last) = np.maximum(1, np.ceil(passes)), np.maximum(1, np.ceil(ends)).tolist()
    count = round(last - first) + 1
    chance = math.prod(1 - number / count for number in range(len(at))) if len(at) <= count else 0.0
    if len(np.unique(own)) < len(at) or not 0 < chance <= MOST_CHANCE:
        return
    yield DerivedFact(
        fact="one_jump_a_pass",
        text=(
            f"{_name(loss)} jumps {len(at)} times in {count} passes over the data, and never twice in one. At "
            f"random that has a chance of {figure(chance)}; the same rows come once in each pass."
        ),
        values={"jumps": float(len(at)), "passes": float(count), "chance": chance},
        steps=[float(at[0])],
    )


def _jumps(values: Floats) -> NDArray[np.int64]:
    """Return where single records, or a few in a row, begin to lie far above the level around them."""
    padded = np.pad(values, AROUND // 2, mode="edge")
    level = np.median(np.lib.stride_tricks.sliding_window_view(padded, AROUND), axis=1)
    above = (values - level) / np.maximum(np.abs(level), 1e-12)
    far = above > max(JUMPS_BY * mad(above), LEAST_JUMP)
    return np.flatnonzero(far & ~np.concatenate([[False], far[:-1]]))


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


def _parts(run: Run) -> Iterator[DerivedFact]:
    """Yield a weighted sum of parts in which one part is nearly all, or one stays where the rest falls."""
    if (total := _loss(run, not_of=POLICIES)) is None:
        return
    parts = _parts_of(run, total, *LOSSES)
    summed = _weights(total, parts)
    if len(parts) < 2 or summed is None:
        return
    weights, _ = summed
    columns = np.stack([part.value for part in parts], axis=1)
    early, late = (np.median(columns[piece] * weights, axis=0) for piece in (slice(0, 3), slice(-3, None)))
    shares = late / late.sum()
    equation = " + ".join(f"{figure(float(w))} x {_name(series)}" for w, series in zip(weights, parts, strict=True))
    most = int(np.argmax(shares))
    steady = (early - late <= STAYS * np.abs(early)) & (late - early <= RISES * np.abs(early))
    rest_falls = [float(early.sum() - early[k]) * (1 - FALLS) > float(late.sum() - late[k]) for k in range(len(parts))]
    for k, series in enumerate(parts):
        if steady[k] and rest_falls[k] and weights[k] > 0 and early[k] > 0:
            level = figure(float(np.median(series.value[-3:])))
            text = f"{_name(total)} = {equation}; {_name(series)} stays at {level} while the other parts fall."
            expected = " A part that is trained falls, too."
            yield DerivedFact(fact="part_stays", text=text + expected, values={"share": float(shares[k])})
    if RULES < float(shares[most]) <= 1 + FITS and float(weights.min()) > FITS * float(weights.max()):
        text = f"{_name(total)} = {equation}; at the end {_name(parts[most])} is {percent(float(shares[most]))} of it."
        yield DerivedFact(
            fact="part_rules",
            text=f"{text} The other parts have next to no gradient.",
            values={"share": float(shares[most])},
        )


def _parts_of(run: Run, total: Series, *quantities: Quantity) -> list[Series]:
    """Return the columns of some quantities that are logged in the records of the total."""
    found = _of(run, *quantities, phase="train")
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


def _subtracted(run: Run) -> Iterator[DerivedFact]:
    """Yield that the total loss holds a part with a negative factor, so that training makes that part larger."""
    if (total := _loss(run, not_of=NOT_BY_LOSS)) is None:
        return
    for quantities in (LOSSES, (*LOSSES, Quantity.KL)):
        parts, weighted_parts = _weighted_parts(run, total, *quantities)
        for part, weight, first, last in weighted_parts if len(parts) > 1 else ():
            if weight > 0:
                continue
            yield DerivedFact(
                fact="part_subtracted",
                text=(
                    f"{_name(total)} holds {_name(part)} with the factor {figure(weight)} (least squares over "
                    f"{len(total)} records and {len(parts)} parts): it is subtracted. {_name(part)} goes from about "
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


def _entropy_lowered(run: Run) -> Iterator[DerivedFact]:
    """Yield that the loss of a policy grows with its entropy, where a bonus has to lower it."""
    if run.kind not in POLICIES or (total := _loss(run)) is None:
        return
    _, weighted_parts = _weighted_parts(run, total, *LOSSES, Quantity.KL, Quantity.ENTROPY)
    for part, weight, first, last in weighted_parts:
        if part.role is None or part.role.quantity is not Quantity.ENTROPY or weight < 0:
            continue
        yield DerivedFact(
            fact="entropy_lowered",
            text=(
                f"{_name(total)} holds the entropy with the factor +{figure(weight)} (least squares over {len(total)} "
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


def _rising_parts(run: Run) -> Iterator[DerivedFact]:
    """Yield a part of the loss that rises while the total falls."""
    total = _loss(run, LEAST_PART_RECORDS, not_of=NOT_BY_LOSS)
    if total is None or any(_subtracted(run)):
        return
    tenth = max(LEAST_PAIRS, len(total) // 10)
    began, ends = median(total.value[:tenth]), median(total.value[-tenth:])
    if began - ends <= LOSS_FALLS * abs(began):
        return
    for part in _parts_of(run, total, *LOSSES):
        first, last = median(part.value[:tenth]), median(part.value[-tenth:])
        if not 0 < PART_GROWS * first < last or _order(part.value) < PART_ORDERED:
            continue
        yield DerivedFact(
            fact="part_rises",
            text=(
                f"{_name(part)} rises from about {figure(first)} to about {figure(last)} (medians of {tenth} records) "
                f"while {_name(total)} falls from about {figure(began)} to about {figure(ends)}. Parts that are "
                "trained together fall together, or one is given up for another."
            ),
            values={"from": first, "to": last},
        )
        return


def _order(values: Floats) -> float:
    """Return the rank correlation of values with their place."""
    some = sample(values)
    return float(np.corrcoef(np.argsort(np.argsort(some)), np.arange(len(some)))[0, 1])


# Saturation: a column rests at a bound.


EXACT = 0.004
"""Share of a bound within which a loss rests at it. Chosen: the noise of a loss that learns nothing."""
RESTS_FOR = 0.3
"""Share of the records for which it rests. Chosen."""
MOST_ACTIONS = 18
"""Actions of an agent. Chosen: Atari has so many."""
_GUESSED = (2, 3, 4, 5, 10, 100, 1000)
"""Usual numbers of classes."""


def _at_bounds(run: Run) -> Iterator[DerivedFact]:
    """Yield losses that rest at the loss of a guess, and shares that are at their ceiling from their first record."""
    uniform = uniform_loss(run)
    bounds = {math.log(2): "ln 2", **({} if uniform is None else {uniform: f"ln {round(math.exp(uniform)):,}"})}
    bounds |= {math.log(guess): f"ln {guess}" for guess in _guesses(run)}
    resting: dict[float, list[Series]] = {}
    for series in _of(run, *LOSSES):
        for bound in [bound for bound in bounds if _rests_at(series, bound)][:1]:
            resting.setdefault(bound, []).append(series)
    for bound, several in resting.items():
        series = several[0]
        since, off = _since(series, bound), abs(median(_tail(series)) / bound - 1)
        text = (
            f"{' and '.join(map(_name, several[:2]))} {'rests' if len(several) == 1 else 'rest'} at "
            f"{figure(median(_tail(series)))} = {bounds[bound]} to within {100 * off:.2g} % from "
            f"{run.place(since)} on. "
            "That is the loss of equal probabilities for all classes"
        )
        share, fact = _share_of_ones(run), "rests_at_bound"
        if bound == math.log(2) and share is not None:
            entropy = _loss_of_guess(share)
            if entropy < (1 - RESTS_FOR) * bound:
                fact = "worse_than_constant"
                text += f"; with {percent(share)} of the labels 1, the constant guess alone reaches {figure(entropy)}"
        yield DerivedFact(fact=fact, text=text + ".", values={"bound": bound, "off": off}, steps=[since])
    if run.kind in POLICIES or "loss" not in run:
        return
    for series in _of(run, Quantity.AUC, Quantity.ACCURACY, phase="eval", least=LEAST_PAIRS):
        if float(series.value.min()) == 1.0:
            first = float(series.step[0])
            yield DerivedFact(
                fact="at_ceiling",
                text=(
                    f"{_name(series)} is exactly 1 at all {len(series)} evaluations, from {run.place(first)} on. A "
                    "score that is learnt begins below it, and few tasks end there."
                ),
                steps=[first],
            )


def _uniform_policy(run: Run) -> Iterator[DerivedFact]:
    """Yield that the entropy of an agent rests at that of equal probabilities for all actions."""
    if run.kind != "rl":
        return
    for series in _of(run, Quantity.ENTROPY, phase="train", least=MIN_RECORDS_FOR_LEVEL):
        actions = next((count for count in range(2, MOST_ACTIONS + 1) if _rests_at(series, math.log(count))), 0)
        if actions:
            level = median(_tail(series))
            yield DerivedFact(
                fact="uniform_policy",
                text=(
                    f"{_name(series)} rests at {figure(level)} = ln {actions}, the entropy of equal probabilities for "
                    f"{actions} actions: the agent acts at random. Where it learns, that falls."
                ),
                values={"actions": float(actions), "entropy": level},
            )
            return


def _guesses(run: Run) -> list[int]:
    """Return numbers of classes that a share which never moves tells: 0.1 of ten, where it is exact."""
    found = []
    for series in _of(run, Quantity.ACCURACY, phase="eval", least=LEAST_PAIRS):
        level = median(series.value)
        if np.ptp(series.value) <= 0.02 and 0 < level <= 0.5:
            found += [count for count in _GUESSED if abs(level * count - 1) <= 0.05]
    return found


def _rests_at(series: Series, bound: float) -> bool:
    later = _tail(series)
    if len(series) < LEAST_PAIRS or abs(median(later) / bound - 1) > EXACT:
        return False
    return bool(np.quantile(np.abs(later / bound - 1), 0.9) <= 3 * EXACT)


def _since(series: Series, bound: float) -> float:
    """Return the step from which a column stays near a bound."""
    away = np.flatnonzero(np.abs(series.value / bound - 1) > 5 * EXACT)
    first = 0 if not len(away) else min(int(away[-1]) + 1, len(series) - 1)
    return float(series.step[first])


def _loss_of_guess(share: float, classes: int = 2) -> float:
    """Return the cross-entropy in nats of a guess that gives one class its share, and the others equal parts."""
    return -share * math.log(share) + (1 - share) * (math.log(classes - 1) - math.log(1 - share))


def _share_of_ones(run: Run) -> float | None:
    """Return the mean of the labels where it is logged as such: a column of shares that never moves."""
    found = [
        median(series.finite.value)
        for name, series in run.series.items()
        if "label" in name.lower() and "mean" in name.lower() and len(series.finite)
    ]
    return found[0] if found and 0 < found[0] < 1 else None


# Two scores of one evaluation that cannot both be right.


MIN_GOOD_SCORE = 0.9
"""Share of right answers of a good model. Chosen."""
MAX_HOPELESS_SCORE = 0.05
"""Share of right answers of a hopeless model. Chosen."""
_SCORES = (
    Quantity.ACCURACY, Quantity.TOKEN_ACCURACY, Quantity.F1, Quantity.IOU, Quantity.DICE, Quantity.AVERAGE_PRECISION,
)  # fmt: skip


def _contradictions(run: Run) -> Iterator[DerivedFact]:
    """Yield a score near 1 next to another of the same evaluation near 0 that does not rise with it."""
    for score, other in combinations(_of(run, *_SCORES, phase="eval", least=LEAST_PAIRS), 2):
        good, bad = sorted((score, other), key=lambda series: -float(series.value[-1]))
        if float(good.value[-1]) < MIN_GOOD_SCORE or not 0 <= float(bad.value.max()) < MAX_HOPELESS_SCORE:
            continue
        if not np.array_equal(good.step, bad.step) or float(bad.value[-1]) > float(bad.value[0]):
            continue
        is_majority = bool(np.all(bad.value == bad.value[0])) and good.role is not None
        yield DerivedFact(
            fact="majority_alone" if is_majority else "scores_contradict",
            text=(
                f"{_name(good)} rises to {figure(float(good.value[-1]))} while {_name(bad)} is "
                f"{figure(float(bad.value[0]))} at first and {figure(float(bad.value[-1]))} at the end. Both measure "
                "the same answers and are expected to rise together."
            ),
            values={"good": float(good.value[-1]), "bad": float(bad.value[-1])},
        )
        return


_POSITIVE = regex(r"(?:^|[/_.-])(?:pos(?:itives?)?[_-](?:share|rate|frac(?:tion)?|ratio)|prevalence)$", re.IGNORECASE)
"""A setting that says which share of the labels is 1."""
AS_MAJORITY = 0.01
"""How far an accuracy is off the share of the larger class. Chosen: the error of 2,000 rows."""
CLEAR_MAJORITY = 0.6
"""The least share of the larger class. Chosen: answers by chance come near a smaller one."""


def _majority(run: Run) -> Iterator[DerivedFact]:
    """Yield an accuracy that stays at the share of the larger of two classes."""
    share, source = _share_of_ones(run), "the mean of the labels"
    if share is None:
        share, source = _configured_share(run)
    larger = 0.0 if share is None else max(share, 1 - share)
    if share is None or larger < CLEAR_MAJORITY:
        return
    for series in _of(run, Quantity.ACCURACY, phase="eval", least=LEAST_PAIRS):
        later = as_shares(series.value)[len(series) // 2 :]
        if float(np.abs(later - larger).max()) > AS_MAJORITY:
            continue
        loss_text = ""
        if "eval_loss" in run and len(evaluation := run["eval_loss"].finite):
            loss_text = f", and {_name(evaluation)} ends at {figure(float(evaluation.value[-1]))}"
        yield DerivedFact(
            fact="accuracy_of_majority",
            text=(
                f"{_name(series)} is {_from_to(later)} in the later half of {len(series)} evaluations; {source} is "
                f"{figure(share)}, so one answer for all rows is right in {figure(larger)}. Guessed by that share it "
                f"has a loss of {figure(_loss_of_guess(share))}{loss_text}."
            ),
            values={"larger": larger, "last": float(later[-1])},
        )
        return


def _from_to(values: Floats) -> str:
    low, high = figure(float(values.min())), figure(float(values.max()))
    return low if low == high else f"{low} to {high}"


def _configured_share(run: Run) -> tuple[float | None, str]:
    """Return which share of the labels is 1 by the settings, and the name of the setting."""
    for name in run.settings:
        value = run.setting(name) if _POSITIVE.search(name) else None
        if value is not None and 0 < value < 1:
            return value, name
    return None, ""


# A cross-entropy that the accuracy of the same answers contradicts.


OF_LEAST = 0.5
"""Share of the least cross-entropy below which a loss lies. Chosen: of 650 healthy runs none does."""
MIN_WRONG = 0.05
"""Share of wrong answers. Chosen, as the others."""
SHARE_OF_RECORDS_BELOW = 0.8
"""Share of the later records that lie below. Chosen, as the others."""
_OF_WHOLES = regex(r"exact|subset|seq(?:uence)?_|sentence|joint|all_", re.IGNORECASE)
"""What a score of several answers at once is called: its loss is a mean over single ones."""


def _below_accuracy(run: Run) -> Iterator[DerivedFact]:
    """Yield a cross-entropy below what so many wrong answers cost at least: -ln(1/2) each."""
    if run.kind in NOT_BY_LOSS:
        return
    for loss_name, score_name in PAIRS:
        if loss_name not in run or score_name not in run or _OF_WHOLES.search(_name(run[score_name])):
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
        yield DerivedFact(
            fact="loss_contradicts_accuracy",
            text=(
                f"{_name(run[loss_name])} is about {figure(median(level))} and {_name(run[score_name])} about "
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


def _training_behind(run: Run) -> Iterator[DerivedFact]:
    """Yield that evaluation answers nearly all while training answers far fewer at the same time."""
    for quantity in (Quantity.ACCURACY, Quantity.TOKEN_ACCURACY):
        train, evaluation = (_of(run, quantity, phase=phase) for phase in ("train", "eval"))
        if not train or not evaluation or len(train[0]) < MIN_RECORDS_FOR_LEVEL or len(evaluation[0]) < LEAST_PAIRS:
            continue
        low, high = median(_tail(train[0])), median(_tail(evaluation[0]))
        if high < GOOD or high - low < AHEAD or high > 1:
            continue
        yield DerivedFact(
            fact="training_behind",
            text=(
                f"{_name(evaluation[0])} is {figure(high)} and {_name(train[0])} {figure(low)} (medians of the last "
                "third). The same model answers training rows at least as well where both are asked and scored alike."
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


def _training_rows_evaluated(run: Run) -> Iterator[DerivedFact]:
    """Yield how rows of training do in evaluation: as in training, or no better than rows that were held out."""
    for quantity in (Quantity.ACCURACY, Quantity.TOKEN_ACCURACY, Quantity.LOSS):
        evaluated = _of(run, quantity, phase="eval", least=LEAST_PAIRS)
        again = [series for series in evaluated if series.role and _OF_TRAINING.search(series.role.part)]
        held_out = [series for series in evaluated if series.role and not series.role.part]
        train = _of(run, quantity, phase="train", least=LEAST_PAIRS)
        if not again or not held_out or not train:
            continue
        low, middle, high = (median(_tail(series)) for series in (train[0], again[0], held_out[0]))
        if abs(high - low) < LEAST_GAP * max(abs(high), abs(low)):
            continue
        way = (middle - low) / (high - low)
        if AS_NEAR < way < 1 - AS_NEAR:
            continue
        fact, expected = "gap_between_rows", "They do as well as in training, so the gap is one between rows."
        if way >= 1 - AS_NEAR:
            fact = "evaluation_differs"
            expected = "They do no better than rows held out, so evaluation treats rows otherwise than training."
        yield DerivedFact(
            fact=fact,
            text=(
                f"{_name(train[0])} is {figure(low)}, {_name(again[0])} {figure(middle)} and {_name(held_out[0])} "
                f"{figure(high)} (medians of the last third). The second is of rows that training has seen. {expected}"
            ),
            values={"train": low, "train_rows": middle, "eval": high},
        )
        return


# A length that stands at its limit.


NEAR_LIMIT = 0.85
"""Share of the limit that the mean length comes to. Chosen."""
MANY_CUT = 0.3
"""Share of completions that are cut. Chosen."""
ALL_CUT = 0.97
"""Share of completions that are cut from which on hardly one ends by itself, which no limit explains. Chosen."""


def _at_limit(run: Run) -> Iterator[DerivedFact]:
    """Yield that completions reach their limit, with the share that is cut."""
    cut = _of(run, Quantity.CLIPPED_COMPLETIONS, phase="train")
    lengths = _of(run, Quantity.COMPLETION_LENGTH, phase="train")
    limit = run.setting("max_completion_length")
    if not cut or len(cut[0]) < MIN_RECORDS_FOR_LEVEL or median(cut[0].value) < MANY_CUT:
        return
    text = f"{percent(median(cut[0].value))} of the completions are cut at their limit (median of {len(cut[0])} records"
    text += f"; {percent(median(_tail(cut[0])))} lately)"
    if lengths:
        text += f"; the mean length is {figure(median(_tail(lengths[0])))}" + (
            f" of at most {figure(limit)}" if limit else ""
        )
    longer = _of(run, Quantity.COMPLETION_LENGTH, phase="eval")
    if longer and lengths and median(longer[0].value) > median(lengths[0].value) / NEAR_LIMIT:
        text += f", and {figure(median(longer[0].value))} in evaluation"
    yield DerivedFact(
        fact="cut_at_limit" if median(cut[0].value) < ALL_CUT else "none_ends",
        text=f"{text}. What is cut before its answer earns nothing; a few per cent are expected.",
        values={"share": median(cut[0].value)},
    )


# How much of a policy's ratios is clipped, against what healthy policies have.


MOST_CLIPPED = 0.15
"""Median share from which on a policy is clipped more than any healthy one of the data set."""
HEALTHY_CLIPPED = (56, 0.044, 0.13)
"""Healthy policies of the data set that log it, the 95 % quantile of their medians, and the highest. Counted."""


def _much_clipped(run: Run) -> Iterator[DerivedFact]:
    """Yield a share of clipped ratios that no healthy policy of the data set has."""
    columns = _of(run, Quantity.CLIP_FRACTION, phase="train", least=MIN_RECORDS_FOR_LEVEL)
    most = max(columns, key=lambda series: median(series.value), default=None)
    if most is None or median(most.value) < MOST_CLIPPED:
        return
    count, usual, highest = HEALTHY_CLIPPED
    yield DerivedFact(
        fact="much_clipped",
        text=(
            f"{_name(most)} is about {figure(median(most.value))} (median of {len(most)} records): so many ratios to "
            f"the policy that sampled are clipped. Of {count} healthy policies that were trained for comparison 95 % "
            f"have a median of at most {figure(usual)}, and none above {figure(highest)}."
        ),
        values={"share": median(most.value), "usual": usual},
    )


# What grows all the way: by the same amount at each step, or ever more slowly.


ORDERED = 0.9
"""Rank correlation with the step. Chosen."""
STRAIGHT = 0.95
"""Share of the variance that a straight line explains. Chosen."""
GROWS = 3.0
"""Factor of the growth. Chosen."""


def _growing(run: Run) -> Iterator[DerivedFact]:
    """Yield gradient norms that grow all the way while the loss does not rise."""
    if (loss := _loss(run, MIN_RECORDS_FOR_LEVEL, not_of=POLICIES)) is None:
        return
    began, ends = median(loss.value[:LEAST_PAIRS]), median(loss.value[-LEAST_PAIRS:])
    if ends > began:
        return
    for series in _of(run, Quantity.GRADIENT_NORM, least=2 * MIN_RECORDS_FOR_LEVEL):
        if series.role is None or not series.role.is_whole:
            continue
        ordered = _order(series.value)
        tenth = max(LEAST_PAIRS, len(series) // 10)
        first, last = median(series.value[:tenth]), median(series.value[-tenth:])
        if ordered < ORDERED or first <= 0 or last < GROWS * first:
            continue
        line = np.polyval(np.polyfit(series.step, series.value, 1), series.step)
        explained = 1 - float(np.var(series.value - line) / np.var(series.value))
        how = "in a straight line" if explained >= STRAIGHT else "nearly without a break"
        yield DerivedFact(
            fact="norm_grows",
            text=(
                f"{_name(series)} grows {how} from {figure(first)} to {figure(last)} (medians of {tenth} records, rank "
                f"correlation with the step {ordered:.2f}) while the loss goes from {figure(began)} to {figure(ends)}. "
                "The gradient of fresh rows keeps its size or shrinks as the loss falls; a sum that is carried from "
                "step to step grows."
            ),
            values={"from": first, "to": last, "order": ordered},
        )


# Frozen values: exactly the same while others move.


FROZEN_FOR = 0.5
"""Share of the records for which a value is the same. Chosen."""
NEARLY_ALL = 0.9
"""Share of right answers from which on few are left to change. Chosen."""
_FREEZES = (
    Quantity.ACCURACY, Quantity.TOKEN_ACCURACY, Quantity.F1, Quantity.AUC, Quantity.IOU, Quantity.DICE,
    Quantity.EXPLAINED_VARIANCE, *LOSSES,
)  # fmt: skip


def _frozen(run: Run) -> Iterator[DerivedFact]:
    """Yield scores and losses that are exactly the same over many records while the training loss moves."""
    if (loss := _loss(run, MIN_RECORDS_FOR_LEVEL)) is None:
        return
    frozen = []
    for series in _of(run, *_FREEZES, least=MIN_RECORDS_FOR_LEVEL // 2):
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
        more = f" (so are {', '.join(_name(other) for other, _, _ in frozen[1:3])})" if frozen[1:] else ""
        moved = loss.value[loss.step >= step].tolist()
        yield DerivedFact(
            fact="frozen",
            text=(
                f"{_name(series)} is exactly {figure(float(series.value[-1]))} in the last {records} of its "
                f"{len(series)} records, from {run.place(step)} on, while {_name(loss)} goes from {figure(moved[0])} "
                f"to {figure(moved[-1])}{more}. New weights give other answers to some rows."
            ),
            values={"value": float(series.value[-1]), "records": float(records)},
            steps=[step],
        )


# Does training come to a stop, with neither a loss nor a gradient?


LEAST_IDLE = 5
"""Records at the end without loss and gradient. Chosen: one or two may be batches without a label."""


def _nothing_trained(run: Run) -> Iterator[DerivedFact]:
    """Yield since when loss and gradient norm are both exactly zero, where they were not before."""
    loss = _loss(run, not_of=POLICIES)
    if loss is None or "grad_norm" not in run:
        return
    norm = run["grad_norm"].finite
    ends = [_zeros_at_end(series.value) for series in (loss, norm)]
    if min(ends) < LEAST_IDLE or len(loss) == ends[0] or len(norm) == ends[1]:
        return
    step = max(float(loss.step[-ends[0]]), float(norm.step[-ends[1]]))
    yield DerivedFact(
        fact="nothing_trained",
        text=(
            f"{_name(loss)} and {_name(norm)} are exactly 0 in all {min(ends)} records since {run.place(step)}, and "
            "were not before. Nothing is trained there, as where no label is counted: what is learnt well has a small "
            "gradient."
        ),
        values={"records": float(min(ends))},
        steps=[step],
    )


def _zeros_at_end(values: Floats) -> int:
    return len(values) if not values.any() else int(np.argmax(values[::-1] != 0))


# What a curve does where a run goes on from a checkpoint, and right after the first evaluation.


BEFORE = 8
"""Records before an event. Chosen."""
AFTER = 4
"""Records after an event. Chosen."""
SIGMAS = 5.0
"""Standard errors by which those records part. Chosen."""
LEAST_MOVE = 0.1
"""Share of the level by which those records part. Chosen."""
MOST_RESUMES = 2
"""Resumes that are stated. Chosen: the first one is the purest."""
SHOWN_AFTER = 3
"""Values after a resume that are stated. Chosen."""
JUMPS = 1.5
"""Times the value before by which a rate or a loss scale jumps. Chosen."""
ON_COURSE = 1.25
"""Times the value before by which a rate or a loss scale goes on. Chosen: a schedule does."""
_STATE = (Quantity.LEARNING_RATE, Quantity.LOSS_SCALE)
_COUNTS = (Quantity.EPOCH, Quantity.SAMPLES_SEEN, Quantity.TOKENS_SEEN)
_PACE = (Quantity.STEP_TIME, *sorted(THROUGHPUTS))


def _around_resumes(run: Run) -> Iterator[DerivedFact]:
    """Yield what rate, scale, loss, gradient norm, counters and pace are before and after a resume, in one line."""
    restart = restart_of_data(run)
    steps = {*run.resumes, *(segment.first_step for segment in run.segments[1:])}
    steps |= set() if restart is None else {restart.step}
    for step in sorted(steps)[:MOST_RESUMES]:
        pace = next((quantity for quantity in _PACE if _sides(run, quantity, step)), Quantity.STEP_TIME)
        wanted = (*_STATE, Quantity.LOSS, Quantity.GRADIENT_NORM, *_COUNTS, pace)
        sides = {quantity: pair for quantity in wanted if (pair := _sides(run, quantity, step)) is not None}
        if not sides:
            continue
        off_course = [quantity for quantity, pair in sides.items() if _leaves_course(quantity, *pair)]
        first = sorted(sides, key=lambda quantity: quantity not in off_course)
        lines = [_side_by_side(quantity, *sides[quantity]) for quantity in first]
        moved = [_name(sides[quantity][0]) for quantity in off_course]
        off = f" Off course: {', '.join(moved)}." if moved else ""
        rises = Quantity.LOSS in off_course and _is_above(*sides[Quantity.LOSS])
        yield DerivedFact(
            fact="rises_at_resume" if rises else "moves_at_resume" if moved else "around_resume",
            text=(
                f"Up to {BEFORE} records before | the first after the resume at {run.place(step)}: {'; '.join(lines)}."
                f"{off} A whole state goes on where it was."
            ),
            values={"moved": float(len(moved))},
            steps=[step],
        )
        if not moved:
            return


def _is_above(before: Series, after: Series) -> bool:
    """Say whether a curve goes on above all of its last values: rows that were seen before would let a loss fall."""
    return float(after.value[0]) > float(before.value[-BEFORE:].max())


def _sides(run: Run, quantity: Quantity, step: float) -> tuple[Series, Series] | None:
    """Return the values of a quantity before a resume and after it; None where it is not logged on both sides."""
    found = next((series for series in _of(run, quantity, phase="train") if series.role and series.role.is_whole), None)
    if found is None:
        return None
    again = next((at for at, segment in enumerate(run.segments) if at and segment.first_step == step), 0)
    before, after = found, found
    if again:
        old, new = (run.segments[at].series.get(found.name) for at in (again - 1, again))
        if old is None or new is None:
            return None
        before, after = old.finite, new.finite
    before, after = before.where(before.step < step), after.where(after.step >= step)
    return (before, after) if len(before) >= LEAST_PAIRS and len(after) else None


def _side_by_side(quantity: Quantity, before: Series, after: Series) -> str:
    is_exact = quantity in (*_STATE, *_COUNTS)
    level = figure(float(before.value[-1])) if is_exact else _from_to(before.value[-BEFORE:])
    shown = [figure(value) for value in after.value[:SHOWN_AFTER].tolist()]
    return f"{_name(before)} {level} | {', '.join(shown if len(set(shown)) > 1 else shown[:1])}"


def _leaves_course(quantity: Quantity, before: Series, after: Series) -> bool:
    """Say whether a quantity jumps, a counter falls back, or a curve parts from its line."""
    if quantity in _COUNTS:
        return float(after.value[0]) < float(before.value[-2])
    if quantity in _STATE:
        course = np.abs(np.concatenate([before.value[-LEAST_PAIRS:], after.value[:AFTER]]))
        times = np.abs(np.diff(np.log(np.maximum(course, 1e-30))))
        at = LEAST_PAIRS - 1
        return bool(times[:at].max() <= math.log(ON_COURSE) and times[at:].max() >= math.log(JUMPS))
    parted = _parts_from_line(before, after) if quantity in (Quantity.LOSS, Quantity.GRADIENT_NORM) else None
    return parted is not None and (parted[1] - parted[0]) * parted[2] > 0


def _at_first_evaluation(run: Run) -> Iterator[DerivedFact]:
    """Yield that the loss rises from its line right after the first evaluation."""
    loss = _loss(run)
    if loss is None or "eval_loss" not in run or len(run["eval_loss"]) < 2:
        return
    step = float(run["eval_loss"].step[0])
    resumes = {*run.resumes, *(segment.first_step for segment in run.segments[1:])}
    moved = _parts_from_line(loss.where(loss.step <= step), loss.where(loss.step > step))
    if step in resumes or moved is None or moved[2] < 0 or moved[1] < moved[0]:
        return  # a fall that quickens, or one that slows down: both are usual
    yield DerivedFact(
        fact="moves_at_event",
        text=(
            f"{_name(loss)} is {figure(moved[0])} in the {BEFORE} records before the first evaluation at "
            f"{run.place(step)} and {figure(moved[1])} in the {AFTER} after it, {figure(moved[2])} off its line. An "
            "evaluation changes nothing of training."
        ),
        values={"before": moved[0], "after": moved[1], "off": moved[2]},
        steps=[step],
    )


def _parts_from_line(before: Series, after: Series) -> tuple[float, float, float] | None:
    """Return the means before and after, and how far the line through the records before is missed, if it is."""
    if len(before) < BEFORE or len(after) < AFTER:
        return None
    step, value = before.step[-BEFORE:], before.value[-BEFORE:]
    later, value_after = after.step[:AFTER], after.value[:AFTER]
    slope, start = np.polyfit(step, value, 1)
    noise = float(np.std(value - (start + slope * step), ddof=2))
    spread = float(np.sum((step - step.mean()) ** 2))
    error = noise * math.sqrt(1 / AFTER + 1 / BEFORE + float(later.mean() - step.mean()) ** 2 / spread)
    off = float(np.mean(value_after - (start + slope * later)))
    level = abs(float(value.mean()))
    from_level = abs(float(value_after.mean()) - float(value.mean()))
    if abs(off) <= max(SIGMAS * error, LEAST_MOVE * level) or from_level <= LEAST_MOVE * level:
        return None
    return float(value.mean()), float(value_after.mean()), off


# Saw-teeth: what recurs with a period, and which setting has it.


CYCLES = 4
"""Periods in a log. Chosen."""
EXPLAINS = 0.5
"""Share of the variance without the trend that the place in the period explains. Chosen: of noise it explains period /
records, a quarter at most."""
LEAST_PERIOD = 3
"""Records of the shortest period. Chosen."""
MOST_OF_PERIODS = 4000
"""Records at the end that are looked at: a bound on what it costs."""
LONGEST_PERIOD = 200
"""Records of the longest period: a bound on what it costs."""
_PERIODS = (
    "steps_per_epoch", "eval_steps", "save_steps", "gradient_accumulation_steps", "n_steps", "num_iterations",
    "sync_steps", "update_interval",
)  # fmt: skip
_SAWS = (
    *LOSSES, Quantity.GRADIENT_NORM, Quantity.KL, Quantity.APPROXIMATE_KL, Quantity.CLIP_FRACTION,
    Quantity.POLICY_RATIO, Quantity.ENTROPY, Quantity.REWARD, Quantity.COMPLETION_LENGTH,
)  # fmt: skip


def _periods(run: Run) -> Iterator[DerivedFact]:
    """Yield columns that go up and down with a period, with the setting of that period."""
    found = [(series, period) for series in _of(run, *_SAWS, phase="train") if (period := _period(series)) is not None]
    if not found:
        return
    series, (records, explained) = max(found, key=lambda item: item[1][1])
    interval = median(np.diff(series.step))
    steps = records * interval
    known = {name: run.setting(name) for name in _PERIODS} | {"a pass over the data": run.facts.steps_per_pass}
    same = [name for name, value in known.items() if value and abs(value - steps) <= 0.5 * interval]
    named = f"; {same[0]} is as long" if same else ""
    others = [_name(other) for other, (length, _) in found if other is not series and length == records][:2]
    yield DerivedFact(
        fact="recurs_with_period",
        text=(
            f"{_name(series)}{''.join(f' and {other}' for other in others)} goes up and down every {figure(steps)} "
            f"{run.step_name}s (the place in that period explains {percent(explained)} of what it varies by){named}. "
            "Rows in a new order each time leave no period."
        ),
        values={"period": steps, "explained": explained},
    )


def _period(series: Series) -> tuple[int, float] | None:
    """Return the period in records, and the share of the variance that it explains; None where nothing recurs."""
    count = len(series)
    value, step = series.value[-MOST_OF_PERIODS:], series.step[-MOST_OF_PERIODS:]
    if count < CYCLES * LEAST_PERIOD + MIN_RECORDS_FOR_LEVEL or np.ptp(np.diff(step)) > 0:
        return None
    half = max(2, len(value) // 20)
    trend = np.convolve(np.pad(value, half, mode="edge"), np.ones(2 * half + 1) / (2 * half + 1), mode="valid")
    left = value - trend
    if float(np.std(left)) <= 1e-12 * (1 + float(np.max(np.abs(value)))):
        return None
    best: tuple[int, float] | None = None
    for period in range(LEAST_PERIOD, min(len(left) // CYCLES, LONGEST_PERIOD) + 1):
        whole = left[: len(left) // period * period].reshape(-1, period)
        explained = float(np.var(whole.mean(axis=0)) / np.var(whole))
        beyond = explained - 3 * (period / whole.size)
        if beyond > EXPLAINS and (best is None or explained > best[1] + 0.1):
            best = (period, explained)
    return best


# Arithmetic: what numbers of one run cannot be at once.


MANY_PASSES = 10.0
"""Passes over the data after which rows are known by heart. Chosen."""
AS_LOW = 1.15
"""Evaluation over training that is as low. Chosen."""
LEARNT = 0.05
"""Share of its start that training has come down to. Chosen."""
FAR_BELOW = 0.08
"""Share of ln(vocabulary) that no model of text reaches on new rows. Chosen: good ones keep a sixth."""
ONE_PASS = 0.99
"""Passes by which no row came twice. Chosen."""
TOGETHER = 0.15
"""Share of the evaluation loss by which training is off it at most while both are one. Chosen: fresh rows differ from
evaluation by their noise alone."""
APART = 0.6
"""Share of the evaluation loss that training is of it once they part. Chosen."""
MOST_CLASSES = 1000
"""Classes of a classifier, where they are unknown. Chosen: ImageNet's."""
LEAST_RIGHT = 0.5
"""Share of right answers from which the loss of a classifier is compared. Chosen."""
MOST_RIGHT = 0.95
"""Share of right answers up to which it is. Chosen: where nearly all is right, other terms of a loss exceed that of a
guess."""
BEYOND_GUESS = 1.6
"""Times the loss of a guess. Chosen: overfitted models stay below."""
_OF_TWO_CLASSES = ("binary", "logloss", "log_loss")
"""Parts of names of a loss that is a mean over two classes; `bce` often is a sum over pixels or parts."""
_CROSS_ENTROPY = regex(r"cross_?entropy|xent|(?:^|[/_.])(?:ce|nll)(?:$|[/_.])|mlogloss", re.IGNORECASE)
"""What the name of a mean cross-entropy holds."""
TIMES_AS_UNLIKELY = 2.0
"""Times the nats of chosen answers from which on they are lost. Chosen: see the text of the fact."""
LEAST_NATS = 50.0
"""Nats more from which on they are lost. Chosen: see the text of the fact."""
OF_CONSTANT = 0.97
"""Share of the loss of the constant guess that no evaluation goes below where nothing was learnt. Chosen: the error of
the label mean of 500 rows."""
SPACING = {"bf16": 2.0**-8, "fp16": 2.0**-11}
"""Distance of a number from the next as a share of it, at most: 8 and 11 bits of precision (IEEE 754, bfloat16)."""
_PURE = ("pure", "full", "true", "weights")
"""Words that say that the weights themselves are kept in half precision."""


def _arithmetic(run: Run) -> Iterator[DerivedFact]:
    """Yield what passes over the data and the spacing of the number format do not allow."""
    yield from _evaluation_after_passes(run)
    yield from _too_low_for_one_pass(run)
    precision = run.facts.precision
    kept_in = str(run.settings["precision"].value).lower() if "precision" in run.settings else ""
    spacing = SPACING.get(precision or "", 0.0) if any(word in kept_in for word in _PURE) else 0.0
    for ratio in _of(run, Quantity.UPDATE_RATIO):
        if spacing and ratio.role is not None and ratio.role.is_whole and 0 < median(ratio.value) < spacing / 2:
            yield DerivedFact(
                fact="update_below_spacing",
                text=(
                    f"{_name(ratio)} is {figure(median(ratio.value))} (median) and the weights are kept in {kept_in}. "
                    f"{precision} rounds a change below {figure(spacing / 2)} of a weight away, so most updates "
                    "have no effect."
                ),
                values={"ratio": median(ratio.value), "spacing": spacing},
            )


def _too_low_for_one_pass(run: Run) -> Iterator[DerivedFact]:
    uniform, loss = uniform_loss(run), _loss(run, MIN_RECORDS_FOR_LEVEL)
    if uniform is None or run.facts.tokens is None or loss is None:
        return
    low, passes = median(_tail(loss)), passes_at(run, loss.step[-1:])
    if passes is None or float(passes[0]) > 1 or not 0 < low < FAR_BELOW * uniform:
        return
    yield DerivedFact(
        fact="too_low_for_one_pass",
        text=(
            f"{_name(loss)} comes down to {figure(low)}, {percent(low / uniform)} of ln {round(math.exp(uniform)):,}, "
            f"within {figure(float(passes[0]))} passes over the data. No row was seen twice, and on new text good "
            "models keep a tenth or more of that."
        ),
        values={"loss": low, "passes": float(passes[0])},
    )


AT_CHANCE = 0.05
"""Share by which a first loss is off that of a guess. Chosen: a new head is so near."""
_LOADED = regex(
    r"(?:^|[/_.-])(?:init_from|(?:fine_?tuned?|load|warm_?start|initiali[sz]ed?)_from|model_name_or_path|"
    r"(?:init|initial|base|pretrained)_(?:checkpoint|weights|ckpt|model))$",
    re.IGNORECASE,
)
"""Settings that name the weights that a model begins with."""
_NOTHING = ("", "scratch", "none", "null", "random", "false", "0")


def _untrained(run: Run) -> Iterator[DerivedFact]:
    """Yield that a model which settings say comes trained begins with the loss of a guess."""
    loaded = [setting for name, setting in run.settings.items() if _LOADED.search(name)]
    loading_setting = next((setting for setting in loaded if str(setting.value).lower() not in _NOTHING), None)
    uniform, loss = uniform_loss(run), _loss(run, not_of=NOT_BY_LOSS)
    if loading_setting is None or uniform is None or loss is None or abs(loss.value[0] / uniform - 1) > AT_CHANCE:
        return
    of_first_pass = run.step_name == "epoch" and float(loss.step[0]) <= 1  # a mean over it is lower yet
    if not of_first_pass and is_late(run, float(loss.step[0]), AT_ONCE, LOSS_START_FIRST_STEPS):
        return
    first, count = float(loss.value[0]), f"{math.exp(uniform):,.0f}"
    head = "" if run.facts.tokens else ", unless its last layer is new"
    yield DerivedFact(
        fact="starts_untrained",
        text=(
            f"by the setting {loading_setting.name} the model comes trained, and the first {_name(loss)} is "
            f"{figure(first)} at {run.place(float(loss.step[0]))}, that of a guess: ln {count} = {figure(uniform)}. A "
            f"trained model begins below{head}."
        ),
        values={"first": first, "uniform": uniform},
        steps=[float(loss.step[0])],
    )


TIMES_A_GUESS = 10.0
"""A first loss so many times that of a guess. Chosen: a trained model has two to five times as much on tokens that do
not fit."""


def _far_beyond_guess(run: Run) -> Iterator[DerivedFact]:
    """Yield that the first loss is many times that of a guess, as of outputs on far too large a scale."""
    uniform, loss = uniform_loss(run), _loss(run, not_of=NOT_BY_LOSS)
    if uniform is None or loss is None or loss.value[0] < TIMES_A_GUESS * uniform:
        return
    if is_late(run, float(loss.step[0]), AT_ONCE, LOSS_START_FIRST_STEPS):
        return
    first = float(loss.value[0])
    yield DerivedFact(
        fact="first_loss_far_beyond_guess",
        text=(
            f"the first {_name(loss)} is {figure(first)} at {run.place(float(loss.step[0]))}, "
            f"{figure(first / uniform)} times that of a guess, {figure(uniform)}. Tokens or labels that do not fit "
            "leave a few times that of a guess. So much takes outputs on far too large a scale, or a sum as the loss."
        ),
        values={"first": first, "uniform": uniform},
        steps=[float(loss.step[0])],
    )


def _within_first_pass(run: Run) -> Iterator[DerivedFact]:
    """Yield that training parts from evaluation before a pass is over, as if it had seen its rows before."""
    if (losses := _losses(run, MIN_RECORDS_FOR_LEVEL, not_of=POLICIES)) is None:
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
    yield DerivedFact(
        fact="apart_within_first_pass",
        text=(
            f"at {run.place(at)}, after {figure(made)} passes over the data, {_name(loss)} is about {figure(train)} "
            f"and {_name(evaluation)} {figure(evaluated)}; at {run.place(first[0])} they were {figure(first[1])} and "
            f"{figure(first[2])}. Rows that are met for the first time are no easier than those of evaluation: rows "
            "come again, or resemble those just before."
        ),
        values={"train": train, "eval": evaluated, "passes": made},
        steps=[at],
    )


def _base_rate(run: Run) -> Iterator[DerivedFact]:
    """Yield that no evaluation is better than the constant guess of the share of ones in the labels."""
    share = _share_of_ones(run)
    if share is None or "eval_loss" not in run or len(run["eval_loss"].finite) < LEAST_PAIRS:
        return
    evaluation = run["eval_loss"].finite
    entropy = _loss_of_guess(share)
    best, last = float(evaluation.value.min()), float(evaluation.value[-1])
    if not OF_CONSTANT * entropy <= best <= 2 * entropy:
        return
    areas = _of(run, Quantity.AUC, phase="eval", least=LEAST_PAIRS)
    also = f"; {_name(areas[0])} ends at {figure(float(areas[0].value[-1]))}, and chance has 0.5" if areas else ""
    yield DerivedFact(
        fact="no_better_than_constant",
        text=(
            f"{figure(100 * share)} % of the labels are 1, so the constant guess has a loss of {figure(entropy)}; "
            f"{_name(evaluation)} is {figure(best)} at its best and {figure(last)} at the end{also}. Inputs that tell "
            "of the labels bring it below."
        ),
        values={"constant": entropy, "best": best},
    )


def _beyond_guess(run: Run) -> Iterator[DerivedFact]:
    """Yield a loss that stays far above that of a guess whose answers are as often right, whatever the classes.

    Its name has to say that it is a mean cross-entropy: a plain loss may hold sums over parts, CTC or penalties.
    """
    if run.kind in NOT_BY_LOSS:
        return
    losses = _of(run, *LOSSES)
    stated = [
        (series, math.log(2), "two classes that are guessed have")
        for series in losses
        if any(word in _name(series).lower() for word in _OF_TWO_CLASSES)
    ]
    for series in losses:
        score = "eval_accuracy" if _is_evaluation(series) else "accuracy"
        if score in run and len(run[score].finite) and _CROSS_ENTROPY.search(_name(series)):
            share = median(_tail(run[score].finite))
            if LEAST_RIGHT <= share <= MOST_RIGHT:
                most = _loss_of_guess(share, MOST_CLASSES)
                guess = f"answers of which {percent(share)} are right have, over {MOST_CLASSES:,} classes and guessed,"
                stated.append((series, most, guess))
    for series, bound, guess in stated:
        later = series.value[len(series) // 2 :]
        if len(series) < MIN_RECORDS_FOR_LEVEL or not bool(np.all(later > BEYOND_GUESS * bound)):
            continue
        yield DerivedFact(
            fact="evaluation_worse_than_any_guess" if _is_evaluation(series) else "worse_than_any_guess",
            text=(
                f"{_name(series)} is {figure(float(later.min()))} to {figure(float(later.max()))} in the later half of "
                f"{len(series)} records; {guess} {figure(bound)} at most. Weights that are too large make wrong "
                "answers so sure."
            ),
            values={"lowest": float(later.min()), "guess": bound},
        )
        return


def _is_evaluation(series: Series) -> bool:
    return series.role is not None and series.role.is_evaluation


def _logps_multiplied(run: Run) -> Iterator[DerivedFact]:
    """Yield log-probabilities of chosen answers that sink to a multiple of what they began with."""
    if run.kind != "preference":
        return
    for series in (run[name].finite for name in ("logps/chosen", "eval_logps/chosen") if name in run):
        if len(series) < LEAST_PAIRS:
            continue
        first, last = float(series.value[0]), median(series.value[-LEAST_PAIRS:])
        if not (first < 0 and last < TIMES_AS_UNLIKELY * first and first - last > LEAST_NATS):
            continue
        yield DerivedFact(
            fact="logps_multiplied",
            text=(
                f"{_name(series)} sinks from {figure(first)} to about {figure(last)}, {figure(last / first)} times as "
                "many nats: the model hardly writes the answers that it is to prefer. They lose a few nats where "
                "preferences are learnt."
            ),
            values={"first": first, "last": last},
        )
        return


def _evaluation_after_passes(run: Run) -> Iterator[DerivedFact]:
    if (losses := _losses(run, MIN_RECORDS_FOR_LEVEL)) is None:
        return
    loss = losses[0]
    steps, train, evaluated = beside_training(*losses)
    passes = passes_at(run, steps[-1:]) if len(steps) else None
    if passes is None or float(passes[0]) < MANY_PASSES:
        return
    low, start = median(train[-LEAST_PAIRS:]), float(np.median(loss.value[:3]))
    late = median(evaluated[-LEAST_PAIRS:])
    if not 0 < low < LEARNT * start or late > AS_LOW * low:
        return
    yield DerivedFact(
        fact="evaluation_as_low",
        text=(
            f"after {figure(float(passes[0]))} passes over the data the training loss is {figure(low)} and the "
            f"evaluation loss {figure(late)}. Rows that were seen so often are known better than new ones, so "
            "evaluation is expected above."
        ),
        values={"passes": float(passes[0]), "train": low, "eval": late},
        steps=[float(steps[-1])],
    )
