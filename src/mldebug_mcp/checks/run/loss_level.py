"""Is the training loss at a level that a healthy run can have?"""

from __future__ import annotations

import math
import re

import numpy as np

from mldebug_mcp.checks.check import (
    NO_PROGRESS,
    CannotTell,
    Evidence,
    all_known,
    ask_in_turn,
    finite_loss,
    outcome_of,
    some,
    symptom,
)
from mldebug_mcp.checks.curve import end_level, finite_of, last_decimal, noise, start_level, true_at_end
from mldebug_mcp.checks.evaluation import (
    ACCURACIES,
    LEAST_FOR_HALVES,
    as_shares,
    auc_of,
    evaluation_losses,
    has_settled,
    next_token_known,
    no_better_than_the_mean,
    nothing_right,
)
from mldebug_mcp.checks.progress import (
    LANGUAGE_MODELS,
    MAX_LN_VOCABULARY,
    MAX_STARTING_PASSES,
    epoch_at,
    passes_at,
    predicts_tokens,
    uniform_loss,
)
from mldebug_mcp.checks.run import classification, loss_start
from mldebug_mcp.checks.run.loss_course import creeps_below
from mldebug_mcp.checks.run.loss_start import NEARLY_ZERO, loss_scale_suspicious
from mldebug_mcp.core.arrays import are_whole, median
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import counted, figure, fits, percent
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.run import Run, Series

# A loss that rests where an answer that says nothing has it: a uniform guess, a constant, one embedding for all.


LOSS_BY_GUESS_NEAR = 0.03
"""Within this share of ln(n) the loss is that of a guess. Chosen: unigram statistics of text lie far below."""
MAX_NATS_FROM_GUESS = 0.01
"""Nats off ln 2 where the number of classes is not known. Chosen: by hand."""
FROM_TWO = 0.2
"""Share of ln 2 off which it began. Chosen: a loss that falls from far may come by."""
NEAR_BY_ACCURACY = 0.08
"""... of ln 2 where the accuracy keeps to a half. Chosen: labels that are noise leave a loss a little above it."""
MIN_SHARE_BELOW_GUESS = 0.2
"""Share below a guess of an evaluation that knows more. Chosen: whatever dropout adds in training."""
MOST_ABOVE = 1.5
"""Times its start up to which a loss counts as a guess. Chosen: higher ones have blown up."""
MOST_OF_GUESS = 3.0
"""Times a guess up to which a loss counts as one. Chosen: higher ones have blown up."""
BY_CHANCE = 0.05
"""So much more than a guess may be right. Chosen: on a small set."""
MAX_CHANCE_ACCURACY_DEVIATION = 0.02
"""So far from a half is the accuracy of a guess between two classes. Chosen: over some thousand rows."""
LEAST_RECORDS = 10
"""Fewer records tell only where nearly all are near a guess. Chosen: means of epochs are."""
MAX_STANDING_CHANGE_SHARE = 0.01
"""Share of a guess within which they then are. Chosen: means of epochs are."""
LOSS_BY_GUESS_LEAST = 8
"""Records of the loss of an embedding. Chosen: half of them are a level."""
TRIPLET = ("*triplet*",)
CONTRASTIVE = ("*contrastive*", "*infonce*", "*info_nce*", "nce", "nce_loss", "*_nce_loss", "*nt_xent*", "*ntxent*")
USUAL_MARGINS = (0.1, 0.2, 0.3, 0.5, 1.0, math.log(2))
"""Usual margins of a triplet loss. Source: triplet_reid_issue_30; ln 2 is that of the soft margin, ln(1 + exp(0))."""
USUAL_BATCHES = tuple(2**power for power in range(3, 17))
"""Numbers of rows that a batch usually has. Chosen: from 8 to 65,536."""
AT_LEVEL = 0.005
"""How near to its level an embedding's loss stays. Chosen: hard triplets go up and down about it."""
MAX_COLLAPSED_SPREAD_SHARE = 0.01
"""How little it varies there. Chosen: hard triplets go up and down about it."""
MAX_VANISHED_NATS = 0.02
"""Nats below which a divergence from the prior is gone. Chosen: a code in use has more."""
MAX_VANISHED_PEAK_SHARE = 0.25
"""Share of its highest below which a divergence from the prior is gone. Chosen: a code in use has more."""
_DIVERGENCE = regex(r"(?:train[_/])?(?:vae_)?kl(?:d|_loss|_div(?:ergence)?(?:_loss)?)?", needs="kl")
_RECONSTRUCTION = regex(r"recon|(?:^|_)rec(?:_|$)|vae_r_loss")


def loss_at_chance(run: Run) -> Evidence | None:
    """The training loss ends at ln(classes or tokens), that of a uniform guess, or up to three times that.

    Or it rests while no answer is ever right, or R² never shows more than the mean of the targets. Not this when: it is
    summed or has risen; evaluation is better; the perplexity shows that the next token is mostly known.
    """
    loss = run["loss"].finite
    if (of_the_mean := no_better_than_the_mean(run)) is not None:
        return Evidence(
            f"{of_the_mean.name} is {figure(median(of_the_mean.value))} (median) and never above "
            f"{figure(of_the_mean.value.max())} in {len(of_the_mean)} evaluations, and the mean of the targets has 0",
            steps=(float(of_the_mean.step[0]),),
            values={"end": end_level(loss.value), "r2": median(of_the_mean.value)},
        )
    wrong = nothing_right(run)
    if wrong is not None and has_settled(loss) and next_token_known(run) is None:
        return _never_right(run, loss, wrong)
    start, end = start_level(loss.value), end_level(loss.value)
    known = uniform_loss(run)
    uniform = known if known is not None else _of_two(run, start, end)
    near = LOSS_BY_GUESS_NEAR if known is not None else NEAR_BY_ACCURACY
    _refuse_few(run, loss, end, uniform)
    if abs(end - uniform) > near * uniform and (known is None or not _worse(run, start, end, known)):
        return None
    evaluation = finite_of(run, "eval_loss").value
    knows_more = len(evaluation) > 0 and float(evaluation[-1]) < (1 - MIN_SHARE_BELOW_GUESS) * uniform
    if knows_more or creeps_below(run, uniform):
        return None
    return Evidence(
        f"loss is about {figure(end)} at the end, {run.place(loss.step[-1])}; a uniform guess has "
        f"{figure(uniform)} = ln({math.exp(uniform):.0f})",
        steps=(float(loss.step[0]),),
        values={"end": end, "uniform_guess": uniform},
    )


def _never_right(run: Run, loss: Series, wrong: Series) -> Evidence:
    end = end_level(loss.value)
    return Evidence(
        f"loss is about {figure(end)} at the end, {run.place(loss.step[-1])}, and has hardly moved "
        f"for three quarters of the log; {wrong.name} shows no right answer in {len(wrong)} evaluations",
        steps=(float(wrong.step[0]),),
        values={"end": end},
    )


def _refuse_few(run: Run, loss: Series, end: float, uniform: float) -> None:
    """Raise CannotTell for few records, unless they are means of epochs that stand, or of a model at rest."""
    if len(loss) >= LEAST_RECORDS:
        return
    of_epochs = run.step_name == "epoch" and are_whole(loss.step)
    stand = bool(np.all(np.abs(loss.value[1:] - uniform) <= MAX_STANDING_CHANGE_SHARE * uniform))
    late = (epoch_at(run, float(loss.step[0])) or 0.0) > MAX_STARTING_PASSES and float(
        np.ptp(loss.value)
    ) <= MAX_STANDING_CHANGE_SHARE * end
    if not late and not (of_epochs and stand):
        raise CannotTell(f"fewer than {LEAST_RECORDS} records, which are not at the loss of a guess")


def _worse(run: Run, start: float, end: float, uniform: float) -> bool:
    """Say whether a loss ends above that of a guess, and neither has blown up nor is a sum."""
    if not uniform < end < MOST_OF_GUESS * uniform:
        return False
    fell = end < start * (1 + LOSS_BY_GUESS_NEAR) or (end < MOST_ABOVE * start and _guesses(run, uniform))
    return fell and loss_scale_suspicious(run) is None


def _accuracies(run: Run) -> Floats:
    """Return the accuracies that are logged as shares, those of evaluation if there are enough of them."""
    found = [as_shares(run[name].finite.value) for name in ACCURACIES if name in run]
    return next((array for array in found if len(array) >= LEAST_FOR_HALVES), np.empty(0))


def _guesses(run: Run, uniform: float) -> bool:
    """Say whether the accuracy stays that of a guess, however rough the loss."""
    right, guess = _accuracies(run), math.exp(-uniform)
    return len(right) > 0 and float(right.max()) <= guess + BY_CHANCE * (1 - guess)


def _of_two(run: Run, start: float, end: float) -> float:
    """Return ln 2 where the loss stands there, or the accuracy at a half, from start to end.

    Among how many others a model guesses neither a loss nor an accuracy tells: 2.08 is near ln 8 in ten classes too.
    """
    if run.kind in LANGUAGE_MODELS:
        raise CannotTell("a language model guesses among its tokens, and the size of its vocabulary is not known")
    two, right = math.log(2), _accuracies(run)
    halves = len(right) > 0 and float(np.abs(right - 1 / 2).max()) <= MAX_CHANCE_ACCURACY_DEVIATION
    near = abs(end - two) <= MAX_NATS_FROM_GUESS and abs(start - two) <= FROM_TWO * two
    if near or (halves and abs(start - end) <= MAX_STANDING_CHANGE_SHARE * end) or _rests_at(run, two):
        return two
    raise CannotTell("the number of classes or tokens is not known")


def _rests_at(run: Run, level: float) -> bool:
    """Say whether the loss is at a level throughout its later half, in a run whose AUC says that it has two classes."""
    later = run["loss"].finite.value[len(run["loss"].finite) // 2 :]
    return auc_of(run) is not None and len(later) > 0 and float(np.abs(later - level).max()) <= MAX_NATS_FROM_GUESS


def loss_at_collapse(run: Run) -> Evidence | None:
    """A triplet loss stays at its margin, a contrastive one at ln(candidates), or a VAE's divergence vanishes.

    So it is where all inputs have one embedding. Not this when: the loss varies about it, or goes on from there.
    """
    found = None
    for name, series in run.series.items():
        levels, vanishing, finite = _levels(run, name), _is_divergence(run, name), series.finite
        if not (levels or vanishing) or len(finite) < LOSS_BY_GUESS_LEAST:
            continue
        found = finite
        later = finite.value[len(finite) // 2 :]
        level = median(later)
        if vanishing:
            if _vanishes(finite.value, later):
                return _collapsed(run, finite, later, 0.0)
            continue
        plain_level = next((each for each in levels if abs(level - each) <= AT_LEVEL * each), None)
        if plain_level is not None and level > 0 and float(np.ptp(later)) <= MAX_COLLAPSED_SPREAD_SHARE * level:
            return _collapsed(run, finite, later, plain_level)
    if found is None:
        raise CannotTell(f"no loss of an embedding has {LOSS_BY_GUESS_LEAST} finite values")
    return None


def _is_divergence(run: Run, name: str) -> bool:
    """Say whether a metric is the divergence of a variational autoencoder's code from its prior."""
    if _DIVERGENCE.fullmatch(name.lower()) is None:
        return False
    return any(_RECONSTRUCTION.search(other.lower()) for other in run.series)


def _vanishes(value: Floats, later: Floats) -> bool:
    highest = float(value.max())
    gone = float(later.min()) >= 0 and float(later.max()) <= min(MAX_VANISHED_NATS, MAX_VANISHED_PEAK_SHARE * highest)
    return highest > 0 and gone and float(value[-1]) <= 2 * median(later)


def _levels(run: Run, name: str) -> tuple[float, ...]:
    """Return the losses that equal embeddings would have, none if the metric is not the loss of an embedding."""
    lowered = name.lower()
    if any(fits(lowered, pattern) for pattern in TRIPLET):
        margin = run.setting("margin")
        return (margin,) if margin else USUAL_MARGINS
    if any(fits(lowered, pattern) for pattern in CONTRASTIVE):
        rows = run.setting("batch_size") or run.setting("per_device_train_batch_size")
        # Against the rows of the other view, or against all rows of both views but itself (SimCLR).
        return tuple(math.log(each) for size in ((rows,) if rows else USUAL_BATCHES) for each in (size, 2 * size - 1))
    return ()


def _collapsed(run: Run, loss: Series, later: Floats, plain_level: float) -> Evidence:
    first = float(loss.step[len(loss) - len(later)])
    what = "equal embeddings have" if plain_level else f"it was {figure(loss.value.max())}, and equal codes have"
    return Evidence(
        f"{loss.name} is about {figure(median(later))} from {run.place(first)} to the end, between "
        f"{figure(later.min())} and {figure(later.max())}: {what} {figure(plain_level)}",
        steps=(first,),
        values={"level": median(later), "of_equal_embeddings": plain_level, "spread": float(np.ptp(later))},
    )


# Losses that are exactly, or by their size alone, what no sound training gives: zero, below it, huge, clipped.


MIN_HUGE_LOSS = 1e15
"""Size from which a loss is huge. Chosen: squared errors of prices that nobody scaled come to some 1e12."""
MAX_ZERO_ONSET_SHARE = 0.1
"""Share of the records by which it is zero. Chosen: learning takes longer."""
MIN_ZERO_RECORD_SHARE = 0.5
"""Share of the records from there on that are zero. Chosen: by hand."""
AT_ONCE = 0.05
"""Of the loss at the start: what it comes from. Chosen: from less it may have come down by learning, and rounding."""
LEAST_MOVE = 0.05
"""Share of its highest by which a small loss of its own units moves. Chosen: by hand."""
LEAST_GUESS = 0.1
"""Nats below which no cross-entropy begins. Chosen: a seventh of ln 2."""
LAST_DIGITS = 2.5
"""Units of the last decimal from which a loss is not rounded to zero. Chosen: progress of a record is less."""
MIN_WHOLE_LOG_RECORDS = 10
"""An excerpt has fewer records; a single zero is enough in it. Chosen: excerpts are cut to show it."""
FROM_SHORT = 0.5
"""Share of the start from which that zero is reached. Chosen: excerpts are cut to show it."""
MIN_SHARE_BELOW_ZERO = 0.1
"""Share of the records below zero. Chosen: single ones may be of a regulariser."""
BEYOND_NOISE = 2.0
"""Standard deviations of its noise that a loss has to fall. Chosen: that of a policy crosses zero all the time."""
MIN_RUNAWAY_LOSS_RATIO = 20.0
"""Times its first size of a loss that has no bound. Chosen: by hand."""
MIN_LATER_FALL_SHARE = 0.4
"""Share of the fall in the later half of such a loss. Chosen: a straight line has a half, an exponential a quarter."""
LOSS_EXACT_LEAST = 3
"""First records that are a level. Chosen: single ones scatter."""
OVERLAP = regex(r"dice|iou|jaccard", re.IGNORECASE, needs=("dice", "iou", "jaccard"))
_RATIO_IN_DECIBELS = regex(
    r"(?:^|[_/. -]|si)-?_?(?:s[dn]|si)r(?:i|_?db)?(?:[_/. \d-]|$)", re.IGNORECASE, needs=("sdr", "snr", "sir")
)
"""Names of ratios of signal and noise: SDR, SNR, SI-SDR, SIR. Libraries give silence exactly 0 decibels."""
_VARIANCE = regex(r"(?:^|[_/.])(?:log_?)?(?:sigma|var(?:iance)?)(?:[_/.\d]|$)", re.IGNORECASE)
"""Names of what scales an error and is learnt with it: the logarithm of it is in the loss."""


def loss_huge(run: Run) -> Evidence | None:
    """A finite loss is so large that its numbers are near overflow, or made of uninitialised memory.

    Not this when: targets of a regression are large and nobody scaled them. One record is enough.
    """
    loss = finite_loss(run)
    huge = np.abs(loss.value) >= MIN_HUGE_LOSS
    if not huge.any():
        return None
    at = int(np.argmax(np.abs(loss.value)))
    top = float(loss.value[at])
    return Evidence(
        f"loss is {figure(top)} at {run.place(loss.step[at])}",
        steps=(float(loss.step[int(np.argmax(huge))]),),
        values={"largest": top, "records": float(np.count_nonzero(huge))},
    )


def silences_at_end(series: Series) -> int:
    """Return how many values at the end of a ratio of signal and noise are exactly zero; 0 of any other column."""
    if _RATIO_IN_DECIBELS.search(series.logged_as or series.name) is None:
        return 0
    return true_at_end(series.value == 0)


def loss_drops_to_zero(run: Run) -> Evidence | None:
    """The training loss is well above zero, and exactly zero from the next record on, as filtered NaN are printed.

    Not this when: it is zero from the first record, or may be rounded; the gradient norm stays above zero; a ratio of
    signal and noise is exactly 0 decibels as well, as that of silence is.
    """
    loss = run["loss"]
    zero = loss.value == 0
    zeros = true_at_end(zero)
    short = zeros < 2
    if not zeros or zeros == len(zero) or (short and len(zero) >= MIN_WHOLE_LOG_RECORDS):
        return None
    last = len(zero) - zeros - 1
    before, start = float(loss.value[last]), float(loss.value[0])
    if not np.isfinite(before) or abs(before) < (FROM_SHORT if short else AT_ONCE) * abs(start):
        return None
    if abs(before) < LAST_DIGITS * last_decimal(loss.value):
        raise CannotTell(f"the loss stays at {figure(before)} in its last decimal before: it may be rounded to zero")
    first = float(loss.step[last + 1])
    if any(map(silences_at_end, run.series.values())):
        raise CannotTell("a ratio of signal and noise is exactly 0 decibels at the end, as that of silence is")
    if bool(np.any(finite_of(run, "grad_norm").between(first, run.last_step).value > 0)):
        raise CannotTell("the gradient norm is above zero where the loss reads zero")
    return Evidence(
        f"loss is {figure(before)} at {run.place(loss.step[last])}, exactly 0 at {figure(first)} "
        f"and in all {counted(zeros, 'record')} from there on",
        steps=(first,),
        values={"before": before, "zeros": float(zeros)},
    )


def loss_zero(run: Run) -> Evidence | None:
    """The training loss is zero, or nearly, from early on, and did not get there by learning.

    Not this when: it falls record by record; margins of preferences are so wide; it has small units of its own.
    """
    loss = finite_loss(run)
    no_gradient = "grad_norm" in run and not (run["grad_norm"].finite.value > 0).any()
    if len(loss) == 1 and not no_gradient:
        raise CannotTell("a single loss was logged")
    zero = np.abs(loss.value) < NEARLY_ZERO
    start = int(np.argmax(zero))
    share = float(zero[start:].mean())
    if not zero.any() or start > max(1, MAX_ZERO_ONSET_SHARE * len(loss)) or share < MIN_ZERO_RECORD_SHARE:
        return None
    if start > 2 and loss.value[:start].min() < AT_ONCE * median(loss.value[:LOSS_EXACT_LEAST]):
        return None
    if (not start or loss.value[0] < LEAST_GUESS) and _has_its_own_units(run, loss):
        raise CannotTell("the loss is small and never zero: squares of small numbers are, which are no cross-entropy")
    first = float(loss.step[start])
    if run.kind == "preference" and _is_told_apart(run, first):
        return None
    return Evidence(
        f"loss is {figure(loss.value[start])} at {run.place(first)} and below {NEARLY_ZERO:g} in "
        f"{share:.0%} of the records from there on",
        steps=(first,),
        values={"share": share, "median": median(loss.value[start:])},
    )


def _is_cross_entropy(run: Run) -> bool:
    """Say whether the settings or an accuracy make the loss one of classes or tokens."""
    return predicts_tokens(run) or uniform_loss(run) is not None or any(name in run for name in ACCURACIES)


def _has_its_own_units(run: Run, loss: Series) -> bool:
    """Say whether a loss moves above zero throughout, and nothing shows that it is one of classes or tokens."""
    moves = float(np.ptp(loss.value)) > LEAST_MOVE * float(loss.value.max()) and float(loss.value.min()) > 0
    return moves and not _is_cross_entropy(run) and run.kind in ("unknown", "supervised")


def _is_told_apart(run: Run, step: float) -> bool:
    """Say whether the pairs of a preference run are separated so well that the loss, -log sigmoid(margin), is zero."""
    margin = finite_of(run, "rewards/margins").at(step)
    return margin is not None and margin > -math.log(NEARLY_ZERO)


def loss_negative(run: Run) -> Evidence | None:
    """The training loss is negative where it must be a cross-entropy, or falls below zero without a bound.

    Not this when: the curve bends, as that of a log-density or of decibels does; a variance is learnt with the rest;
    the loss stays above -20 with a Dice.
    """
    loss = run["loss"].finite
    below = loss.value < 0
    if below.mean() < MIN_SHARE_BELOW_ZERO:
        return None
    first, half = float(loss.step[int(np.argmax(below))]), len(loss) // 2
    start, middle, end = start_level(loss.value), start_level(loss.value[half:]), end_level(loss.value)
    masks = any(OVERLAP.search(name) for name in run.series)
    bound = MIN_RUNAWAY_LOSS_RATIO * (1.0 if masks else max(1.0, abs(float(loss.value[0]))))
    fallen = start - end
    goes_on = end < 0 and fallen > BEYOND_NOISE * noise(loss.value) and middle - end > MIN_LATER_FALL_SHARE * fallen
    learnt_with_it = any(_VARIANCE.search(name) for name in run.series)
    endless = (goes_on and not learnt_with_it) or end < -bound
    wrong = endless or _is_cross_entropy(run)
    return Evidence(
        f"loss is below zero from {run.place(first)} on, in {below.mean():.0%} of the records; the lowest "
        f"is {figure(loss.value.min())}{'' if wrong else ': a log-density or a ratio in decibels may be'}",
        steps=(first,),
        values={"share": float(below.mean()), "lowest": float(loss.value.min()), "start": start, "end": end},
        present=bool(wrong),
    )


# Where does the training loss stand, beside what it can be?


LOSS = ("loss",)
POLICIES = ("grpo", "ppo", "rl")
NOT_CLASSES = (*POLICIES, "preference", "diffusion")
ask_in_turn(
    "loss_level",
    outcome_of(loss_huge, 0.002, "axolotl_stability", needs=LOSS, follows=("loss_nonfinite",)),
    outcome_of(loss_drops_to_zero, 0.001, needs=LOSS, points=2, not_for=(*POLICIES, "preference")),
    outcome_of(loss_zero, 0.002, "unsloth_faq", needs=LOSS, not_for=POLICIES),
    outcome_of(loss_negative, 0.01, needs=LOSS, points=5, not_for=(*POLICIES, "diffusion")),
    outcome_of(
        classification.loss_at_softmax_floor,
        0.003,
        needs=LOSS,
        points=4,
        not_for=(*NOT_CLASSES, "boosting"),
        follows=("loss_falls_back", "loss_nonfinite"),
    ),
    outcome_of(
        loss_at_chance,
        0.002,
        "karpathy_recipe",
        needs=LOSS,
        points=4,
        settled=True,
        not_for=(*POLICIES, "preference"),
        follows=("eval_loss_constant",),
        instead=NO_PROGRESS,
    ),
    outcome_of(
        classification.loss_above_accuracy,
        needs=LOSS,
        points=4,
        not_for=NOT_CLASSES,
        follows=("loss_falls_back", "train_lags_eval"),
    ),
    outcome_of(
        classification.loss_below_accuracy,
        0.003,
        needs=LOSS,
        points=LEAST_FOR_HALVES,
        not_for=(*POLICIES, "preference", "pretraining", "sft"),
    ),
    outcome_of(loss_start.terms_outweigh, 0.002, needs=LOSS, points=4, not_for=POLICIES),
    outcome_of(loss_at_collapse, 0.002, "triplet_reid_issue_30", not_for=(*POLICIES, "preference")),
)


# How far the loss of a language model that starts from scratch has come down, on the scale of its vocabulary.


LEAST_LN_OF_TEXT = math.log(30_000)
"""Tokenizers of text have 30,000 tokens (BERT's) or more; nothing else has so many classes, as a rule. Characters and
made-up languages may hold no more than their frequencies."""
LEAST_LN_OF_CHARACTERS = math.log(60)
"""A text of one script has some 60 characters; made-up languages, whose next token may well be certain, have fewer."""
TOKEN_LEVEL_NEAR = 0.05
"""Share of ln(vocabulary) within which a new model guesses uniformly. Chosen: by hand."""
MAX_FIRST_FALL_SHARE = 0.25
"""Share of ln(vocabulary) by which a mean of first steps is below it. Chosen: a trained model has less than half."""
FRESH_PASSES = 1.5
"""Passes over the data up to which rows count as new. Chosen: by hand."""


def from_scratch(run: Run) -> float | None:
    """Return ln(vocabulary) of a model whose first loss is that of a uniform guess among tokens, None if it is not.

    Where the configuration does not tell the vocabulary, a first loss between ln(30,000) and ln(262,144) does. A first
    record after step 1 is a mean over steps that learnt already.
    """
    loss = finite_of(run, "loss")
    if not len(loss):
        return None
    first, known = float(loss.value[0]), uniform_loss(run)
    if known is None and LEAST_LN_OF_TEXT <= first <= MAX_LN_VOCABULARY:
        known = first
    below = TOKEN_LEVEL_NEAR if loss.step[0] <= 1 else MAX_FIRST_FALL_SHARE
    return known if known is not None and -below <= first / known - 1 <= TOKEN_LEVEL_NEAR else None


# Is the loss of a language model lower than text allows?


MIN_EARLY_LOSS_SHARE = 0.1
"""Share of ln(vocabulary) that no model comes to soon. Chosen: with batches of a million tokens the best have 3 nats on
prose by then, 1.5 on code."""
MAX_EARLY_STEPS = 1000
"""Steps within which no model comes there. Chosen: with batches of a million tokens the best have 3 nats on prose by
then, 1.5 on code."""
MAX_STEPS_OF_NOTHING_LEARNT = 2.0
"""Optimizer steps in which no model learns to copy what it is to predict. Chosen: that takes tens."""
FALL_TO_NOTHING = 1000.0
"""Times by which a loss falls that is gone. Chosen: by hand."""
MIN_TOKEN_LOSS_NATS = 0.1
"""Nats per token below which a loss is low. Chosen: the best models have 0.5 on running text."""
LOW_OF_ANSWERS = 0.02
"""The same where answers alone are trained on. Chosen: labels and calls of functions may come to 0.05."""
LOW_OF_TEXT = 0.4
"""The same of text from scratch. Chosen: the best models have 0.5 on running text."""
SHARE_OF_CHARACTERS = 0.04
"""Of ln(vocabulary). Chosen: the best have some 0.6 on prose and 0.3 on code, byte by byte."""


@symptom(
    needs=("loss",),
    sources=("axolotl_stability", "karpathy_recipe"),
    not_for=("grpo", "ppo", "rl", "preference", "diffusion", "supervised"),
    background=0.01,
)
def loss_too_low(run: Run) -> Evidence | None:
    """The loss of a language model over rows that are new to it is lower than text allows, or than so few steps give.

    Not this when: only rows that come again are that low; answers are a word or a label; few tokens; a scaled loss.
    """
    uniform = from_scratch(run) or 0.0
    if not predicts_tokens(run) and uniform < LEAST_LN_OF_TEXT:
        raise CannotTell("it is not known that this run trains a language model")
    vocabulary = uniform_loss(run)
    if vocabulary is not None and vocabulary < LEAST_LN_OF_CHARACTERS:
        raise CannotTell(f"a vocabulary of {round(math.exp(vocabulary))} is not that of a text")
    return _too_soon(run, uniform) or _too_low(run, uniform)


def _too_soon(run: Run, uniform: float) -> Evidence | None:
    """Judge the lowest evaluation loss or, where there is none, the training loss of a first pass over the data."""
    if not predicts_tokens(run) or uniform < LEAST_LN_OF_CHARACTERS or run.step_name != "step":
        return None
    evaluations, passes = all_known(evaluation_losses, run), passes_at(run, np.array([run.last_step]))
    fresh = not evaluations and passes is not None and float(passes[0]) <= FRESH_PASSES
    losses = [loss.finite for loss in ([run["loss"]] if fresh else evaluations) if len(loss.finite) > 1]
    lowest = min(losses, key=lambda series: end_level(series.value), default=None)
    end = end_level(lowest.value) if lowest is not None else 0.0
    if lowest is None or end <= 0:
        return None
    first = len(lowest) - true_at_end(lowest.value < MIN_EARLY_LOSS_SHARE * uniform)
    if first == len(lowest) or lowest.step[first] > MAX_EARLY_STEPS:
        return None
    below = float(lowest.step[first])
    return Evidence(
        f"{lowest.name} is about {figure(end)} at the end and below {figure(MIN_EARLY_LOSS_SHARE * uniform)} from "
        f"step {figure(below)} on, where a uniform guess has {figure(uniform)}: {percent(end / uniform)} of it",
        steps=(below,),
        values={"end": end, "share": end / uniform, "uniform_guess": uniform},
    )


def _too_low(run: Run, uniform: float) -> Evidence | None:
    losses = some(_over_new_rows(run, uniform), "no evaluation loss was logged twice")
    lowest = min(losses, key=lambda series: end_level(series.value))
    end, low = end_level(lowest.value), _bound(run, uniform)
    if not 0 <= end < low or median(lowest.value) == 0:
        return None
    first = int(np.argmax(lowest.value < low))
    onset = float(lowest.step[first])
    _refuse_gone_at_once(run, lowest, first)
    summary = (
        f"{lowest.name} is about {figure(end)} nats per token at the end and below {low:g} from {run.place(onset)} on"
    )
    return Evidence(summary, steps=(onset,), values={"end": end, "bound": low})


def _refuse_gone_at_once(run: Run, loss: Series, at: int) -> None:
    """Raise CannotTell if a loss is gone within a step or two: nothing is learnt so soon, not even to copy."""
    if not at or run.step_name != "step" or loss.step[at] - loss.step[at - 1] > MAX_STEPS_OF_NOTHING_LEARNT:
        return
    before, after = float(loss.value[at - 1]), float(loss.value[at])
    if before > LEAST_LN_OF_TEXT and before > FALL_TO_NOTHING * after:
        raise CannotTell(
            f"{loss.name} goes from {figure(before)} to {figure(after)} by {run.place(float(loss.step[at]))}: no model "
            "learns to copy so soon, so look at what the loss counts and whether all tokens are alike"
        )


def _bound(run: Run, uniform: float) -> float:
    """Return the nats per token that no language model of this kind comes below on rows that are new to it."""
    if run.kind == "sft":
        return LOW_OF_ANSWERS
    if uniform >= LEAST_LN_OF_TEXT:
        return LOW_OF_TEXT
    return (
        max(MIN_TOKEN_LOSS_NATS, SHARE_OF_CHARACTERS * uniform)
        if uniform >= LEAST_LN_OF_CHARACTERS
        else MIN_TOKEN_LOSS_NATS
    )


def _over_new_rows(run: Run, uniform: float) -> list[Series]:
    """Return the evaluation losses or, where a run of pretraining has none, its training loss in the first pass."""
    pretrains = run.kind == "pretraining" or (run.kind == "unknown" and uniform >= LEAST_LN_OF_TEXT)
    if any(name.startswith("eval_") for name in run.series) or not pretrains:
        return [
            evaluation
            for evaluation in (series.finite for series in all_known(evaluation_losses, run))
            if len(evaluation) > 1
        ]
    loss = run["loss"].finite
    return [loss] if (epoch_at(run, run.last_step) or 0.0) <= MAX_STARTING_PASSES and len(loss) > 1 else []
