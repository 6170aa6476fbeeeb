"""Losses and shares next to what a guess has, and to what the data and the format of numbers allow."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise, permutations

import numpy as np

from mldebug_mcp.checks.curve import aligned, at_common_steps, positive, true_at_end
from mldebug_mcp.checks.evaluation import (
    ERRORS_OF_VALUES,
    KNOWN_PERPLEXITY,
    MOST_BEYOND_ONE,
    as_shares,
    below_baseline,
    beside_training,
    is_auc,
)
from mldebug_mcp.checks.progress import CLASSES, CROSS_ENTROPY, passes_at, uniform_loss
from mldebug_mcp.checks.run.loss_level import silences_at_end
from mldebug_mcp.checks.run.loss_start import is_past_start, part_of_guess
from mldebug_mcp.checks.run.settings import SETTINGS, places_counted, prompts_counted
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.paths import knowledge_folder
from mldebug_mcp.core.text import counted, figure, percent
from mldebug_mcp.judge.columns import (
    LEAST_PAIRS,
    LOSSES,
    MIN_RECORDS_FOR_LEVEL,
    NOT_BY_LOSS,
    POLICIES,
    Facts,
    Losses,
    are_shares,
    by_key,
    called,
    columns_of,
    derived_fact,
    from_to,
    given_loss,
    given_losses,
    last_level,
    last_third,
    learns,
    logged,
    named,
    tail,
    training_loss,
    whole_column,
)
from mldebug_mcp.logs import Run, Series
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.names.lexicon import PHASES
from mldebug_mcp.logs.names.words import pieces_of
from mldebug_mcp.logs.settings.settings import Setting, flag_of

# Saturation: a column rests at a bound.


MAX_BOUND_DIFFERENCE_SHARE = 0.004
"""Share of a bound within which a loss rests at it. Chosen: the noise of a loss that learns nothing."""
RESTS_FOR = 0.3
"""Share of the records for which it rests. Chosen."""
MOST_ACTIONS = 18
"""Actions of an agent. Chosen: Atari has so many."""


def at_bounds(run: Run) -> Facts:
    """Yield losses that rest at the loss of a guess, and shares that are at their ceiling from their first record."""
    uniform, bounds = uniform_loss(run), dict[float, str]()
    if not any(run.with_role(*ERRORS_OF_VALUES, parts=True)):  # else values are predicted, and no classes are guessed
        bounds = {math.log(2): "ln 2", **({} if uniform is None else {uniform: f"ln {round(math.exp(uniform)):,}"})}
        bounds |= {math.log(guess): f"ln {guess}" for guess in _guesses(run)}
    resting = by_key(
        (bound, series)
        for series in columns_of(run, *LOSSES)
        for bound in [bound for bound in bounds if _rests_at(series, bound)][:1]
    )
    for bound, several in resting.items():
        series = several[0]
        stays = true_at_end(~(np.abs(series.value / bound - 1) > 5 * MAX_BOUND_DIFFERENCE_SHARE))
        since, off = float(series.step[-max(1, stays)]), abs(last_level(series) / bound - 1)
        text = (
            f"{' and '.join(map(named, several[:2]))} {'rests' if len(several) == 1 else 'rest'} at "
            f"{figure(last_level(series))} = {bounds[bound]} to within {100 * off:.2g} % from {run.place(since)} "
            "on. That is the loss of equal probabilities for all classes"
        )
        (share, _), fact = share_of_ones(run), "rests_at_bound"
        if bound == math.log(2) and share is not None and loss_of_guess(share) < (1 - RESTS_FOR) * bound:
            fact, entropy = "worse_than_constant", figure(loss_of_guess(share))
            text += f"; with {percent(share)} of the labels 1, the constant guess alone reaches {entropy}"
        yield derived_fact(fact, text + ".", {"bound": bound, "off": off}, at=since)
    if run.kind in POLICIES or "loss" not in run:
        return
    for series in columns_of(run, Quantity.AUC, Quantity.ACCURACY, phase="eval", least=LEAST_PAIRS):
        if series.value.min() == 1.0:
            yield derived_fact(
                "at_ceiling",
                f"{named(series)} is exactly 1 at all {len(series)} evaluations, from {run.place(series.step[0])} on. "
                "A score that is learnt begins below it, and few tasks end there.",
                at=series.step[0],
            )


_AT_MOST_ONE = (
    Quantity.ACCURACY, Quantity.TOKEN_ACCURACY, Quantity.F1, Quantity.IOU, Quantity.DICE, Quantity.AUC,
    Quantity.PRECISION, Quantity.RECALL, Quantity.AVERAGE_PRECISION,
)  # fmt: skip
OF_A_SHARE = 0.3
"""What another score reaches below one, so that the log has shares and no per cent. Chosen."""
FAR_OUTSIDE = 0.05
"""How far below zero a score is wrong, and as a share of 100 how far above. Chosen: rounding goes less far."""
MAX_PER_CENT = 100.0
"""The most that a share in per cent can be."""
NOT_COMPUTED = -1.0
"""What trainers log in place of a score that they did not compute."""


def beyond_one(run: Run) -> Facts:
    """Yield a score above one, the most that it can be, where other scores of its phase or of its kind are shares."""
    scores = columns_of(run, *_AT_MOST_ONE, least=LEAST_PAIRS)
    below = [series for series in scores if OF_A_SHARE <= series.value.max() <= 1]
    for series in scores:
        last, most = last_level(series), series.value.max()
        both = [(share, share.role, series.role) for share in below if share.role and series.role]
        shares = [
            share for share, role, own in both
            if role.quantity is own.quantity or (role.is_evaluation and own.is_evaluation)
        ]  # fmt: skip
        if shares and last > 1 and 1 + MAX_BOUND_DIFFERENCE_SHARE < most <= MOST_BEYOND_ONE:
            yield derived_fact(
                "beyond_one",
                f"{named(series)} goes up to {figure(most)} and is about {figure(last)} at the end. It is at most "
                f"1, and {named(shares[0])} is a share of one as well ({figure(shares[0].value[-1])}).",
                {"highest": most, "last": last},
            )


def outside_of_shares(run: Run) -> Facts:
    """Yield a score that is far below zero or above 100 per cent, which no share of rows is.

    Not this where it is counted in whole numbers, or negated, or -1, as COCO's evaluation writes what it has not.
    """
    for series in columns_of(run, *_AT_MOST_ONE, least=LEAST_PAIRS):
        known = series.value[series.value != NOT_COMPUTED]
        low, high = known.min(initial=0.0), known.max(initial=0.0)
        is_outside = low < -FAR_OUTSIDE or high > MAX_PER_CENT * (1 + FAR_OUTSIDE)
        if not is_outside or high <= 0 or not np.any(known % 1):
            continue
        bound, value = ("below 0", low) if low < -FAR_OUTSIDE else ("above 100 %", high)
        step = series.step[int(np.argmax(series.value == value))]
        yield derived_fact(
            "outside_of_shares",
            f"{named(series)} is {figure(value)} at {run.place(step)}, {bound}. No share of rows is.",
            {"value": value},
            at=step,
        )


def uniform_policy(run: Run) -> Facts:
    """Yield that the entropy of an agent rests at that of equal probabilities for all actions."""
    columns = columns_of(run, Quantity.ENTROPY, phase="train", least=MIN_RECORDS_FOR_LEVEL)
    for series in columns if run.kind == "rl" else ():
        actions = next((count for count in range(2, MOST_ACTIONS + 1) if _rests_at(series, math.log(count))), 0)
        if actions:
            yield derived_fact(
                "uniform_policy",
                f"{named(series)} rests at {figure(last_level(series))} = ln {actions}, the entropy of equal "
                f"probabilities for {actions} actions: the agent acts at random. Where it learns, that falls.",
                {"actions": actions, "entropy": last_level(series)},
            )


def _guesses(run: Run) -> list[int]:
    """Return numbers of classes that a share which never moves tells: 0.1 of ten, where it is exact."""
    found = []
    for series in columns_of(run, Quantity.ACCURACY, phase="eval", least=LEAST_PAIRS):
        level = median(series.value)
        if np.ptp(series.value) <= 0.02 and 0 < level <= 0.5:
            found += [count for count in CLASSES if abs(level * count - 1) <= 0.05]
    return found


def _rests_at(series: Series, bound: float) -> bool:
    later = tail(series)
    if len(series) < LEAST_PAIRS or abs(median(later) / bound - 1) > MAX_BOUND_DIFFERENCE_SHARE:
        return False
    return bool(np.quantile(np.abs(later / bound - 1), 0.9) <= 3 * MAX_BOUND_DIFFERENCE_SHARE)


def loss_of_guess(share: float, classes: int = 2) -> float:
    """Return the cross-entropy in nats of a guess that gives one class its share, and the others equal parts."""
    return -share * math.log(share) + (1 - share) * (math.log(classes - 1) - math.log(1 - share))


_ONES_OF_LABELS = regex(
    r"(?:^|[/_.-])(?:gt|labels?|masks?|targets?|truth)[/_.-](?:fg|foreground|ones|pos(?:itives?)?)[/_.-]"
    r"(?:frac(?:tion)?|mean|ratio|share)$",
    re.IGNORECASE,
    needs=("fg", "foreground", "ones", "pos"),
)
"""A column that says which share of the labels is 1, or of the pixels is of the foreground."""


def share_of_ones(run: Run) -> tuple[float | None, str]:
    """Return which share of the labels is 1, and what says so: a column of shares that never moves."""
    for name, series in run.series.items():
        is_mean = "label" in name.lower() and "mean" in name.lower()
        if (is_mean or _ONES_OF_LABELS.search(name)) and len(series.finite):
            share = median(series.finite.value)
            return (share, "the mean of the labels" if is_mean else named(series)) if 0 < share < 1 else (None, "")
    return None, ""


_POSITIVE = regex(
    r"(?:^|[/_.-])(?:pos(?:itives?)?[_-](?:share|rate|frac(?:tion)?|ratio)|prevalence)$",
    re.IGNORECASE,
    needs=("pos", "prevalence"),
)
"""A setting that says which share of the labels is 1."""
AS_MAJORITY = 0.01
"""How far an accuracy is off the share of the larger class. Chosen: the error of 2,000 rows."""
CLEAR_MAJORITY = 0.6
"""The least share of the larger class. Chosen: answers by chance come near a smaller one."""
MAX_RARE_CLASS_SHARE = 0.1
"""Share of a class that is rare. Chosen: a model that learns nothing else answers with the other class."""
MIN_CLASSES = 3
"""Members of lists that stand for classes. Chosen: two that add up alike are any share and its rest."""
SAME_SUM = 1e-3
"""Share by which sums differ that are equal but for rounding."""
LEAST_UNANSWERED_SHARE = 0.01
"""Share of the rows in classes that are hardly ever answered. Chosen: fewer rows teach and cost little."""
OF_RARE = 0.1
"""Share of the rare class by which an accuracy is off at most where that class is never answered. Chosen."""


def majority(run: Run) -> Facts:
    """Yield an accuracy that stays at the share of the larger of two classes."""
    share, source = share_of_ones(run)
    if share is None:
        share, source = _configured_share(run)
    larger, evaluation = 0.0 if share is None else max(share, 1 - share), logged(run, "eval_loss")
    loss_text = "" if evaluation is None else f", and {named(evaluation)} ends at {figure(evaluation.value[-1])}"
    for series in columns_of(run, Quantity.ACCURACY, phase="eval", least=LEAST_PAIRS):
        later = as_shares(series.value)[len(series) // 2 :]
        off = np.abs(later - larger).max()
        if share is None or larger < CLEAR_MAJORITY or off > AS_MAJORITY:
            continue
        is_rare = 1 - larger <= MAX_RARE_CLASS_SHARE and off <= OF_RARE * (1 - larger)
        yield derived_fact(
            "rare_class_unanswered" if is_rare else "accuracy_of_majority",
            f"{named(series)} is {from_to(later)} in the later half of {len(series)} evaluations; {source} is "
            f"{figure(share)}, so one answer for all rows is right in {figure(larger)}. Guessed by that share it "
            f"has a loss of {figure(loss_of_guess(share))}{loss_text}.",
            {"larger": larger, "last": later[-1]},
        )


def classes_unanswered(run: Run) -> Facts:
    """Yield that answers by class leave classes out which the labels have: both add up alike, and labels never move."""
    groups: dict[str, dict[str, Series]] = {}
    for name, series in run.series.items():
        *head, member = pieces_of(name) or [""]
        if head and series.role is None and len(series.finite) == len(series) >= LEAST_PAIRS:
            groups.setdefault(" ".join(head), {})[member] = series
    alike = [(head, group) for head, group in groups.items() if len(group) >= MIN_CLASSES]
    for (named_labels, labels), (named_answers, answers) in permutations(alike, 2):
        steps = next(iter(labels.values())).step
        both = (*labels.values(), *answers.values())
        if labels.keys() != answers.keys() or not all(np.array_equal(series.step, steps) for series in both):
            continue
        fixed, given = (np.array([group[member].value for member in labels]) for group in (labels, answers))
        total, rows = fixed.sum(axis=0), fixed[:, 0]
        if np.ptp(fixed, axis=1).any() or not np.ptp(given) or min(fixed.min(), given.min()) < 0:
            continue
        if not np.allclose(total, given.sum(axis=0), rtol=SAME_SUM) or not positive(total):
            continue
        late = np.array([median(last_third(answered)) for answered in given])
        missed = (rows > 0) & (late <= OF_RARE * rows)
        share = float(rows[missed].sum() / total[0])
        if share >= LEAST_UNANSWERED_SHARE:
            yield derived_fact(
                "classes_unanswered",
                f"{named_answers} ends at {', '.join(map(figure, late.tolist()))}, where {named_labels} is "
                f"{', '.join(map(figure, rows.tolist()))} in all {len(steps)} records. Both add up to "
                f"{figure(total[0])}, so they count the same rows, and hardly any answer is one of "
                f"{int(missed.sum())} classes that have {percent(share)} of them. A share of right answers hides that.",
                {"classes": missed.sum(), "share": share},
                at=steps[-1],
            )


def _configured_share(run: Run) -> tuple[float | None, str]:
    """Return which share of the labels is 1 by the settings, and the name of the setting."""
    for name in run.settings:
        value = run.setting(name) if _POSITIVE.search(name) else None
        if value is not None and 0 < value < 1:
            return value, name
    return None, ""


# What passes over the data, guesses and the format of numbers allow.


FAR_BELOW = 0.08
"""Share of ln(vocabulary) that no model of text reaches on new rows. Chosen: good ones keep a sixth."""
NOTHING_LEFT = 0.02
"""Share of ln(vocabulary) that no text leaves after a few passes over other rows. Chosen: made-up ones keep more."""
MOST_PASSES = 5.0
"""Passes over the data in which held-out rows are not known as well. Chosen."""
MOST_CLASSES = 1000
"""Classes of a classifier, where they are unknown. Chosen: ImageNet's."""
LEAST_RIGHT = 0.5
"""Share of right answers from which the loss of a classifier is compared. Chosen."""
MOST_RIGHT = 0.95
"""Share of right answers up to which it is. Chosen: where nearly all is right, other terms exceed a guess."""
BEYOND_GUESS = 1.6
"""Times the loss of a guess. Chosen: overfitted models stay below."""
_OF_TWO_CLASSES = ("binary", "logloss", "log_loss")
"""Parts of names of a loss that is a mean over two classes; `bce` often is a sum over pixels or parts."""
OF_CONSTANT = 0.97
"""Share of a constant guess's loss that bounds evaluation where nothing is learnt. Chosen: by the mean of 500 rows."""
NEAR_FLOOR = 0.05
"""Share of the floor by which a loss that has come near it lies above. Chosen."""
MOST_OF_WAY = 2 / 3
"""Share of the way to the floor that it has come. Chosen."""
BELOW_FLOOR = 0.9
"""Share of the floor below which no evaluation comes by chance. Chosen."""
_BEST = regex(
    r"(?:^|[_/ (])(?:oracle|bayes|irreducible|floor)(?:[_/ ()]|$)",
    re.IGNORECASE,
    needs=("oracle", "bayes", "irreducible", "floor"),
)
"""What the name of a column holds that says what the best of all models reaches."""


def _floor_of_best(run: Run) -> tuple[float, str]:
    """Return a loss that the log gives for the best of all models, the same at each evaluation, and its name."""
    for name, series in run.series.items():
        of_loss = series.quantity in (None, *LOSSES)
        value = series.finite.value
        if of_loss and _BEST.search(name) and len(value) >= LEAST_PAIRS and np.ptp(value) == 0 and value[0] > 0:
            return float(value[0]), named(series)
    return 0.0, ""


@given_loss(not_of=NOT_BY_LOSS)
def data_floor(run: Run, loss: Series) -> Facts:
    """Yield how the loss of evaluation ends at the least that the log says any model of the data can have."""
    set_to = run.setting("loss_floor")
    floor, source = (set_to, "the entropy of the data") if set_to else _floor_of_best(run)
    evaluation = logged(run, "eval_loss")
    if not floor or evaluation is None:
        return
    start, end = loss.value[0], evaluation.value[-1]
    text = f"{named(evaluation)} ends at {figure(end)}, and {source} is {figure(floor)} by the log."
    values = {"floor": floor, "end": end, "start": start}
    if end < BELOW_FLOOR * floor and set_to:
        why = " On new rows no model gets below it: the answers are in its input, or the rows in its training data."
        yield derived_fact("below_data_floor", text + why, values)
    elif end - floor <= NEAR_FLOOR * floor and start - end >= MOST_OF_WAY * (start - floor):
        way = f" That is {percent((start - end) / (start - floor))} of the way from {figure(start)}: little is left."
        yield derived_fact("near_data_floor", text + way, values)


def better_than_baseline(run: Run) -> Facts:
    """Yield that evaluation ends below all baselines in the settings."""
    if beaten := below_baseline(run):
        text = f"{beaten}. So the inputs tell of the labels; how much is left to learn, the curves do not say."
        yield derived_fact("better_than_baseline", text)


_ANSWERS_ALONE = regex(
    r"(?:completions?|assistants?|answers?|responses?|repl(?:y|ies))_only(?:_loss)?|mask_(?:prompt|input)s?",
    re.IGNORECASE,
    needs=("_only", "mask_"),
)
"""What a flag is called that leaves all but answers out of the loss."""
_PROMPTS_TOO = regex(
    r"(?:train|loss)_on_(?:inputs?|prompts?|sources?|instructions?|questions?)", re.IGNORECASE, needs="_on_"
)
"""What a flag is called by which prompts count in the loss as well."""
_LOSS_ON = regex(r"(?:loss|train|trained)_on", re.IGNORECASE, needs="_on")
_OF_ANSWERS = regex(r"(?:answers?|completions?|responses?|assistants?|repl(?:y|ies))(?:[ _-]?only)?", re.IGNORECASE)
"""The value of a setting that says what the loss is on, where that is answers alone."""


def prompts_count_unmeant(run: Run) -> Facts:
    """Yield that the loss counts padding, or more than the answers that a setting or evaluation counts alone."""
    meant = [
        setting
        for setting in run.settings.values()
        if (_ANSWERS_ALONE.fullmatch(setting.last_part) and flag_of(setting.value))
        or (_PROMPTS_TOO.fullmatch(setting.last_part) and flag_of(setting.value) is False)
        or (_LOSS_ON.fullmatch(setting.last_part) and _OF_ANSWERS.fullmatch(str(setting.value)))
    ]
    counts = None if run.kind in POLICIES else prompts_counted(run) or (places_counted(run) if meant else None)
    if counts is None:
        return
    is_padding = "without_padding" in counts.values
    apart = "" if meant or is_padding else _answers_apart(run)
    if meant or is_padding or apart or counts.values.get("by_evaluation"):
        but = f" But {meant[0].key} is {str(meant[0].value).lower()}." if meant else apart
        fact = "padding_counts" if is_padding else "prompts_count_unmeant"
        yield derived_fact(fact, f"{counts.summary}.{but}", counts.values)


_WHOLE_ANSWERS = frozenset({"exact", "em", "exactmatch"})
"""Words of a score of evaluation that has an answer right as a whole."""
ANSWERS_HARDER = 0.2
"""Share of tokens right in training above that of evaluation, where only the latter leaves prompts out. Chosen."""


def _answers_apart(run: Run) -> str:
    """Return that evaluation counts answers alone, by an exact match, and has far fewer tokens right; "" if not."""
    scores = columns_of(run, Quantity.ACCURACY, phase="eval")
    whole, training = logged(run, "eval_accuracy"), logged(run, "accuracy")
    if whole is None or training is None or all(_WHOLE_ANSWERS.isdisjoint(pieces_of(score.name)) for score in scores):
        return ""
    _, train, evaluation = beside_training(training, whole)
    if len(train) < LEAST_PAIRS or (train - evaluation).min() < ANSWERS_HARDER:
        return ""
    return (
        f" Evaluation asks for exact answers, and {named(whole)} is {figure(evaluation[0])} at first and "
        f"{figure(evaluation[-1])} at the end, where training has {figure(train[0])} and {figure(train[-1])}."
    )


_COUNTED_IN_LOSS = frozenset(
    {"counted", "trained", "loss", "label", "labels", "target", "targets", "supervised", "unmasked", "scored"}
)
_OF_ANSWER = frozenset(
    {"answer", "answers", "reply", "replies", "completion", "completions", "response", "responses", "assistant"}
)
_TOKENS = frozenset({"tok", "toks", "token", "tokens", "counted"})
"""Words of counts of tokens: of those that count in the loss, and of those that answers have."""
NEAR_LENGTH = 0.06
"""Share by which the tokens of a row are off the mean of all rows. Chosen: a few hundred rows are."""
MOST_ARE_PROMPTS = 0.5
"""Share of the tokens that answers have where most are prompts. Chosen: the half."""
MOST_COUNTED = 0.9
"""Share of all tokens that count where prompts do, at least. Chosen: padding and ends of rows are less."""


def _counts_of_tokens(run: Run, words: frozenset[str]) -> list[Series]:
    """Return the whole numbers of training tokens that are called by some words."""
    found = []
    for series in (each.finite for each in run.series.values() if len(each.finite) >= LEAST_PAIRS):
        pieces = set(pieces_of(named(series)))
        is_called = not pieces.isdisjoint(words) and not pieces.isdisjoint(_TOKENS)
        is_counted = words is _COUNTED_IN_LOSS and series.quantity is Quantity.LOSS_TOKENS
        is_of_training = not any(PHASES.get(piece) == "eval" for piece in pieces)
        if (is_called or is_counted) and is_of_training and series.value.min() > 1 and not np.any(series.value % 1):
            found.append(series)
    return found


def both_sides_count(run: Run) -> Facts:
    """Yield that most tokens count in the loss, where the log says that answers have few of them."""
    for counts in _counts_of_tokens(run, _COUNTED_IN_LOSS):
        yield from _beyond_answers(run, counts)
        yield from _beyond_lengths(run, counts)


def _beyond_answers(run: Run, counts: Series) -> Facts:
    """Yield that more tokens count than those of answers, which are counted as well: since the start, or of all."""
    seen = whole_column(run, Quantity.TOKENS_SEEN, Quantity.BATCH_TOKENS, phase="train", least=LEAST_PAIRS)
    for answers in _counts_of_tokens(run, _OF_ANSWER):
        steps, counted_there, answered = at_common_steps(counts, answers)
        if len(steps) < LEAST_PAIRS or np.any(answered >= MOST_ARE_PROMPTS * counted_there):
            continue
        grow = bool(np.all(np.diff(counted_there) > 0) and np.all(np.diff(answered) > 0))
        _, some, every = at_common_steps(counts, seen) if seen is not None else (steps, np.zeros(0), np.zeros(0))
        if grow or (len(some) and np.all(some >= MOST_COUNTED * every)):
            yield derived_fact(
                "both_sides_count",
                f"{named(counts)} is {figure(counted_there[-1])} at {run.place(steps[-1])}, where {named(answers)} is "
                f"{figure(answered[-1])}: {figure(counted_there[-1] / answered[-1])} times as many tokens count in the "
                "loss as answers have.",
                {"counted": counted_there[-1], "answers": answered[-1]},
                at=steps[0],
            )


def _beyond_lengths(run: Run, counts: Series) -> Facts:
    """Yield that as many tokens count as prompts and answers have together, by their lengths in the settings."""
    prompt, answer, rows = run.setting("prompt_tokens"), run.setting("answer_tokens"), run.facts.effective_batch
    if not prompt or not answer or answer >= MOST_ARE_PROMPTS * (prompt + answer):
        return
    share, lengths = answer / (prompt + answer), f"Prompts have {figure(prompt)} tokens on average and answers"
    seen = whole_column(run, Quantity.TOKENS_SEEN, phase="train", least=LEAST_PAIRS)
    steps, some, every = at_common_steps(counts, counts if seen is None else seen)
    if seen is not None and len(steps) >= LEAST_PAIRS and np.all(some >= MOST_COUNTED * every):
        yield derived_fact(
            "both_sides_count",
            f"{named(counts)} is {figure(some[-1])} of {figure(every[-1])} {named(seen)}. {lengths} {figure(answer)}: "
            f"were answers alone to count, {percent(share)} of them would.",
            {"share": some[-1] / every[-1], "answers": share},
            at=steps[0],
        )
    grows = bool(np.all(np.diff(counts.value) > 0))
    of_update = median(np.diff(counts.value) / np.diff(counts.step) if grows else counts.value)
    if rows and abs(of_update / rows / (prompt + answer) - 1) <= NEAR_LENGTH:
        yield derived_fact(
            "both_sides_count",
            f"{named(counts)} gives {figure(of_update / rows)} tokens for each of {figure(rows)} rows of an update. "
            f"{lengths} {figure(answer)}: all of both count in the loss, and not the {figure(answer)} of answers "
            "alone.",
            {"of_row": of_update / rows, "prompt": prompt, "answer": answer},
        )


_PARTS_OF_ROWS = regex(
    r"(?:^|[/_.])(?:columns?|features?|fields?|column_names)$", re.IGNORECASE, needs=("column", "feature", "field")
)
"""Settings that name what rows consist of."""


def prompts_count_by_setting(run: Run) -> Facts:
    """Yield that a setting has prompts count where the trainer leaves them out by itself.

    Not this where rows are not known to hold answers apart from prompts: then TRL's setting may change nothing.
    """
    name = next((name for name in SETTINGS if flag_of(run.config.get(name)) is SETTINGS[name]), "")
    parts = next((each.value for each in run.settings.values() if _PARTS_OF_ROWS.search(each.key)), ())
    words = list(map(str, parts if isinstance(parts, tuple) else (parts,)))
    is_parted = len(words) > 1 and any(map(_OF_ANSWERS.fullmatch, words))
    if name and run.kind == "sft" and (is_parted or SETTINGS[name]):
        rows = f"Rows are {' and '.join(words)}, and {name}" if is_parted else name
        yield derived_fact(
            "prompts_count_by_setting",
            f"{rows} is {str(SETTINGS[name]).lower()}. By default the answers alone count in the loss of such rows.",
        )


_HOLDS_PROMPTS = regex(
    r"prompt|instruct|chat|conversation|messages|system|context_tokens",
    re.IGNORECASE,
    needs=("prompt", "instruct", "chat", "conversation", "messages", "system", "context_tokens"),
)
"""Settings of rows that hold more than answers."""
MAX_APART_FROM_ANSWERS = 1.25
"""Times by which a loss on answers and another measure of them differ. Chosen: means of rows and of tokens."""
MAX_APART_FROM_TRAINING = 1.15
"""Times by which training and evaluation of the same measure differ at the end. Chosen: by hand."""


def loss_apart_from_answers(run: Run) -> Facts:
    """Yield that evaluation measures answers apart, far from the evaluation loss, which is that of training.

    Not this where a policy learns, nor where nothing says that rows hold more than answers.
    """
    prompted = run.kind == "sft" or any(_HOLDS_PROMPTS.search(key) for key in run.settings)
    if run.kind in POLICIES or not prompted or not {"loss", "eval_loss"} <= run.series.keys():
        return
    evaluation, trained = run["eval_loss"].finite, run["loss"].finite
    for series in run.series.values():
        role = series.role
        if role is None or role.quantity is not Quantity.LOSS or not _OF_ANSWER & set(role.part.split()):
            continue
        steps, whole, answers = aligned(evaluation, series.finite)
        if len(steps) < LEAST_PAIRS or not (answers > 0).all() or len(series) > 2 * len(evaluation):
            continue
        apart = np.maximum(whole / answers, answers / whole)
        _, losses, _ = aligned(trained, evaluation)
        same = bool(len(losses)) and abs(math.log(losses[-1] / whole[-1])) <= math.log(MAX_APART_FROM_TRAINING)
        if same and median(apart[-LEAST_PAIRS:]) >= MAX_APART_FROM_ANSWERS:
            yield derived_fact(
                "loss_apart_from_answers",
                f"{named(run['eval_loss'])} is {figure(whole[-1])} at {run.place(steps[-1])}, near "
                f"{named(run['loss'])}, where {named(series)} is {figure(answers[-1])}. A loss on answers alone "
                "would be near it: other tokens count as well.",
                {"whole": whole[-1], "answers": answers[-1]},
                at=steps[-1],
            )


@given_loss(MIN_RECORDS_FOR_LEVEL, not_of=NOT_BY_LOSS)
def too_low_for_one_pass(run: Run, loss: Series) -> Facts:
    """Yield a loss on tokens that no model has on rows that it has not seen before: in training, or held out."""
    uniform, passes = uniform_loss(run), passes_at(run, loss.step[-1:])
    if uniform is None or run.facts.tokens is None or passes is None:
        return
    made, rows, low, most = float(passes[0]), loss, last_level(loss), FAR_BELOW * uniform
    why = "No row was seen twice, and on new text good models keep a tenth or more"
    held_out = logged(run, "eval_loss", LEAST_PAIRS) if run.kind == "pretraining" else None
    if made > 1:
        if held_out is None or made > MOST_PASSES:
            return
        rows, why = held_out, "On text that was held out good models keep a tenth or more"
        low, most = median(rows.value[-LEAST_PAIRS:]), NOTHING_LEFT * uniform
    if 0 < low < most:
        yield derived_fact(
            "too_low_for_one_pass",
            f"{named(rows)} comes down to {figure(low)}, {percent(low / uniform)} of ln {round(math.exp(uniform)):,}, "
            f"within {figure(made)} passes over the data. {why} of that.",
            {"loss": low, "passes": made},
        )


REPEATED = 8
"""Times that a character comes in a row at the end of a sample. Chosen: texts have three."""
REPEATED_WORDS = 6
"""... and a word."""
_SAMPLE = regex(
    r"(?:^|[^a-z])(?:samples?|gen(?:erat\w{1,4})?|outputs?|completions?|greedy|decoded|prompt|text|prediction)\b",
    re.IGNORECASE,
)
_RUNS_ON = regex(
    rf"(?:([^\W\d_])\1{{{REPEATED - 1},300}}|\b([^\W\d_]{{1,20}})(?: \2){{{REPEATED_WORDS - 1},300}})\W{{0,4}}$"
)
"""What a text ends with that says one thing again and again."""
NEXT_KNOWN = math.log(KNOWN_PERPLEXITY)
"""Cross-entropy of tokens up to which the next is mostly known."""
OFTEN_KNOWN = math.log(2)
"""The same from which on a sample is looked at: that of a choice of two. Later samples alike are not kept."""


@given_losses(LEAST_PAIRS, not_of=NOT_BY_LOSS)
def repeats_itself(run: Run, losses: Losses) -> Facts:
    """Yield that a sample says one thing again and again, where the loss says that nearly each next token is known."""
    for low in [series for series in losses[::-1] if last_level(series) <= NEXT_KNOWN][:1]:
        known_from = low.step[int(np.argmax(low.value <= OFTEN_KNOWN))]
        for line in run.text_lines:
            if line.step < known_from or (found := _RUNS_ON.search(line.text)) is None:
                continue
            if line.text[: found.start()][-1:].isalpha() or _SAMPLE.search(line.text):
                yield derived_fact(
                    "repeats_itself",
                    f"the sample in line {line.line} ends with {found[1] or found[2]} again and again, where "
                    f"{named(low)} is {figure(np.interp(line.step, low.step, low.value))}. A model that knows nearly "
                    "each next token of real text writes like it, unless it sees the token that it is to predict.",
                    {"loss": low.value[-1]},
                    at=line.step,
                )


_NO_LETTERS = regex(r"[^a-z ]+")
LEAST_OF_SAMPLE = 40
"""Characters of a sample of text. Chosen: eight words."""
LEAST_SAMPLES = 2
"""Samples that show it. Chosen: one may be a line of noise."""
LAST_SAMPLES = 6
"""Samples that are looked at. Chosen: early ones are noise."""
LETTERS_OF_SAMPLE = 0.8
"""Share of its characters that are small letters and blanks. Chosen: prose has more."""
BLANKS_OF_TEXT = (0.08, 0.4)
"""Share of its characters that are blanks. Chosen: around the fifth of English."""
LEAST_DISTINCT = 12
"""Distinct letters of the samples. Chosen: toy alphabets and bases of genes are fewer."""
LIKE_NEXT_BUT_ONE = 0.4
"""Nats of a pair by which it is likelier two places apart in English. Chosen: texts of all languages are below zero."""
LIKE_ANY_LETTERS = 0.05
"""Nats by which they may be less likely so than letters in no order. Chosen: random letters are 0.1 and more."""


@lru_cache(maxsize=1)
def _pairs_of_english() -> tuple[Counter[str], Counter[str], Counter[str], int]:
    """Return how often letters follow each other in English, stand two places apart, and are there at all."""
    text = " ".join(
        _NO_LETTERS.sub(" ", (knowledge_folder() / "PLAYBOOK.md").read_text(encoding="utf-8").lower()).split()
    )
    next_to, two_apart = (Counter(map("".join, zip(text, text[places:], strict=False))) for places in (1, 2))
    return next_to, two_apart, Counter(text), len(text)


def _two_places_apart(sample: str) -> tuple[float, float]:
    """Return by how many nats neighbours are likelier two places apart than as neighbours, and than in no order."""
    next_to, two_apart, letters, total = _pairs_of_english()
    pairs = list(map("".join, pairwise(sample)))
    as_apart = np.array([two_apart[pair] + 0.5 for pair in pairs])
    in_no_order = np.array([letters[pair[0]] * letters[pair[1]] / total for pair in pairs])
    as_next = np.array([next_to[pair] + 0.5 for pair in pairs])
    return float(np.log(as_apart / as_next).mean()), float(np.log(as_apart / in_no_order).mean())


@given_loss(LEAST_PAIRS, not_of=NOT_BY_LOSS)
def skips_letters(run: Run, _: Series) -> Facts:
    """Yield that neighbouring letters of samples are those which stand two places apart in English text."""
    texts = ((line, line.text.lower().replace("\\n", " ")) for line in run.text_lines)
    letters = ((line, len(text), " ".join(_NO_LETTERS.sub(" ", text).split())) for line, text in texts)
    samples = [
        (line, sample) for line, length, sample in letters
        if len(sample) >= max(LEAST_OF_SAMPLE, LETTERS_OF_SAMPLE * length)
    ][-LAST_SAMPLES:]  # fmt: skip
    text = "\n".join(sample for _, sample in samples)
    least, most = BLANKS_OF_TEXT
    is_prose = len(set(text)) >= LEAST_DISTINCT and least <= text.count(" ") / len(text) <= most
    if len(samples) < LEAST_SAMPLES or not is_prose:
        return
    beyond = [_two_places_apart(sample) for _, sample in samples]
    beyond_next, beyond_any = (median(np.array(nats)) for nats in zip(*beyond, strict=True))
    if beyond_next < LIKE_NEXT_BUT_ONE or beyond_any < -LIKE_ANY_LETTERS:
        return
    last = samples[-1][0]
    yield derived_fact(
        "skips_letters",
        f"the last samples, such as line {last.line}, are hardly words. Their neighbouring letters are those that "
        f"stand two places apart in English, by {figure(beyond_next)} nats a pair. A model that learns the character "
        "after the next one writes so.",
        {"nats": beyond_next, "samples": len(samples)},
        at=last.step,
    )


AT_CHANCE = 0.05
"""Share by which a first loss is off that of a guess. Chosen: a new head is so near."""
_LOADED = regex(
    r"(?:^|[/_.-])(?:init_from|(?:fine_?tuned?|load|warm_?start|initiali[sz]ed?)_from|model_name_or_path|"
    r"(?:init|initial|base|pretrained)_(?:checkpoint|weights|ckpt|model))$",
    re.IGNORECASE,
    needs=("_from", "model", "checkpoint", "weights", "ckpt"),
)
"""Settings that name the weights that a model begins with."""
_NOTHING = ("", "scratch", "none", "null", "random", "false", "0")


def loading_setting(run: Run) -> Setting | None:
    """Return the setting that names the weights with which a model begins; None where they are new, or not named.

    A model's name alone may be that of its architecture.
    """
    loaded = [setting for setting in run.settings.values() if _LOADED.search(setting.key)]
    return next((setting for setting in loaded if str(setting.value).lower() not in _NOTHING), None)


@given_loss(not_of=NOT_BY_LOSS)
def untrained(run: Run, loss: Series) -> Facts:
    """Yield that a model which settings say comes trained begins with the loss of a guess."""
    loaded_from, uniform, first, step = loading_setting(run), uniform_loss(run), loss.value[0], loss.step[0]
    if loaded_from is None or uniform is None or abs(first / uniform - 1) > AT_CHANCE:
        return
    of_first_pass = run.step_name == "epoch" and step <= 1  # a mean over it is lower yet
    if not of_first_pass and is_past_start(run, step):
        return
    head = "" if run.facts.tokens else ", unless its last layer is new"
    yield derived_fact(
        "starts_untrained",
        f"by the setting {loaded_from.key} the model comes trained, and the first {named(loss)} is "
        f"{figure(first)} at {run.place(step)}, that of a guess: ln {math.exp(uniform):,.0f} = {figure(uniform)}. A "
        f"trained model begins below{head}.",
        {"first": first, "uniform": uniform},
        at=step,
    )


_LOSS_AS_LOADED = regex(
    r"(?:^|[/_.-])(?:(?:init|initial|ckpt|checkpoint|pretrained)[/_.-](?:[a-z]{1,12}[/_.-]){0,3}|"
    r"(?:base|parent|source|loaded|start|stage_?\d)[/_.-](?:[a-z]{1,12}[/_.-]){0,2}"
    r"(?:val|valid|validation|eval|dev|test|held_?out)[/_.-](?:[a-z]{1,12}[/_.-]){0,1})(?:loss|nll)$",
    re.IGNORECASE,
    needs=("loss", "nll"),
)
"""A setting that says what loss the weights have with which a run begins."""
MIN_OVERSURE_LOSS_RATIO = 1.3
"""Times a guess's loss beyond which wrong answers are sure. Chosen: weights that were not loaded begin within it."""
SURER_AS_LOADED = 1.06
"""... where the loss of the weights that are loaded is known. Chosen: weights that are new begin at it by less."""
MIN_OVERSURE_AS_LOADED = 1.2
"""The same from which on no new layer explains it. Chosen: by hand."""


@given_loss(not_of=NOT_BY_LOSS)
def above_checkpoint(run: Run, loss: Series) -> Facts:
    """Yield that a run whose weights are known to be good begins far above the loss of a guess.

    Weights that were not loaded begin at a guess, which `untrained` states.
    """
    stated = ((name, run.setting(name)) for name in run.settings if _LOSS_AS_LOADED.search(name))
    name, before = next(((name, loss) for name, loss in stated if loss and loss > 0), ("", 0.0))
    loaded_from = None if before or run.facts.tokens is None else loading_setting(run)
    signs = run.setting("alphabet_size") if before else None
    uniform = uniform_loss(run) or (math.log(signs) if signs and signs > 1 else None)
    if not (before or loaded_from) or uniform is None or before > uniform:
        return
    series = min([loss, *columns_of(run, Quantity.LOSS, phase="eval")], key=lambda series: series.step[0])
    first, step = series.value[0], series.step[0]
    least, known = SURER_AS_LOADED, f"{name} is {figure(before)}"
    if loaded_from is not None:
        least, known = MIN_OVERSURE_LOSS_RATIO, f"by the setting {loaded_from.key} the model comes trained"
        if first >= TIMES_A_GUESS * uniform:
            return  # outputs on too large a scale, not surer ones
    if is_past_start(run, step) or first < least * uniform:
        return
    yield derived_fact(
        "surer_than_guess_as_loaded" if before and first >= MIN_OVERSURE_AS_LOADED * uniform else "surer_than_guess",
        f"{known}, and the first {named(series)} is {figure(first)} at {run.place(step)}. "
        f"Weights that were not loaded begin at that of a guess, {figure(uniform)}. A trained model that is so "
        "sure of wrong tokens is given other ids for them than those it learnt.",
        {"before": before, "first": first, "uniform": uniform},
        at=step,
    )


MANY_UNKNOWN = 0.1
"""Share of tokens that a vocabulary of other texts lacks. Chosen: those of words lack a few per cent, others fewer."""
_SHARE_OF_UNKNOWN = regex(
    r"(?:unk|oov|(?:unknown|out_of_vocab(?:ulary)?)_(?:tok(?:en)?|word|char|id)s?)s?_(?:tok(?:en)?s?_)?"
    r"(?:frac(?:tion)?|share|ratio|rate|(?P<per_cent>pct|percent))$",
    needs=("unk", "oov", "out_of_vocab"),
)


def unknown_tokens(run: Run) -> Facts:
    """Yield that the vocabulary lacks many of the tokens throughout."""
    for name in run.series:
        match = _SHARE_OF_UNKNOWN.search("_".join(pieces_of(name)))
        is_evaluated = any(PHASES.get(piece) == "eval" for piece in pieces_of(name))  # other texts than in training
        if match is None or is_evaluated or len(series := run[name].finite) < LEAST_PAIRS:
            continue
        shares = series.value / 100 if match["per_cent"] else as_shares(series.value)
        least, level = shares.min(), median(shares)
        if least >= MANY_UNKNOWN:
            yield derived_fact(
                "unknown_tokens",
                f"{named(series)} is about {percent(level)}, and {percent(least)} or more in all {len(series)} "
                "records: the vocabulary lacks so many of the tokens. One that was made of such texts lacks few.",
                {"least": least, "level": level},
            )
    yield from _unknown_in_samples(run)


NEAR_AT_START = 0.15
"""Share by which another score of the same text is off the held-out loss at first. Chosen: untrained, both guess."""
FAR_AT_END = 1.5
"""Times its own lowest level at which it ends where the two part. Chosen."""
_OF_A_SCORER = frozenset({"scorer", "score", "scored", "nll", "ce", "xent", "lm", "loss"})
"""Words of a score of text; logits and norms are none, and may begin near a loss by chance."""
PAST_GUESS = 1.2
"""Times the loss of a uniform guess beyond which no text of the kind that is learnt comes. Chosen."""
LEAST_LEARNT = 0.5
"""Share of its start that the held-out loss comes down to at most. Chosen: then much is learnt of something."""


@given_losses(LEAST_PAIRS, not_of=NOT_BY_LOSS)
def scored_apart(run: Run, losses: Losses) -> Facts:
    """Yield that another score of text begins at the held-out loss and rises above its start while that loss falls."""
    guess = uniform_loss(run) if run.facts.tokens else None
    for other in _of_scorer(run) if guess and last_level(losses[1]) <= LEAST_LEARNT * losses[1].value[0] else ():
        steps, evaluated, scored = at_common_steps(losses[1], other)
        if guess is None or len(steps) < LEAST_PAIRS or min(evaluated[0], scored[0]) <= 0:
            continue
        is_near = abs(scored[0] / evaluated[0] - 1) <= NEAR_AT_START
        if is_near and scored[-1] > PAST_GUESS * guess and scored[-1] >= FAR_AT_END * scored.min():
            yield derived_fact(
                "scored_apart",
                f"{named(other)} begins at {figure(scored[0])}, as {named(losses[1])} does at "
                f"{figure(evaluated[0])}, and ends at {figure(scored[-1])}, beyond the "
                f"{figure(guess)} of a uniform guess, where that has come to {figure(evaluated[-1])}. What "
                "training and its evaluation learn is something else than what this score asks for.",
                {"scored": scored[-1], "evaluated": evaluated[-1]},
                at=steps[-1],
            )


def _of_scorer(run: Run) -> Iterator[Series]:
    """Yield the scores of text by another program: they name no set."""
    for series in called(run, _OF_A_SCORER, but=PHASES.keys(), any_quantity=True):
        if series.name not in ("loss", "eval_loss"):
            yield series


ABOVE_AT_END = 1.4
"""Times the last held-out loss from which on another score of it is far above. Chosen: other rows cost less."""
FAR_BELOW_GUESS = 0.75
"""Share of the loss of a uniform guess that a held-out loss has at most where much is learnt. Chosen."""


@given_losses(LEAST_PAIRS, not_of=NOT_BY_LOSS)
def scored_apart_at_end(run: Run, losses: Losses) -> Facts:
    """Yield that a score of text behind the last evaluation is far above the held-out loss, and nearer to a guess."""
    guess = uniform_loss(run) if run.facts.tokens else None
    last, step = float(losses[1].value[-1]), losses[1].step[-1]
    for once in _of_scorer(run) if guess and 0 < last <= FAR_BELOW_GUESS * guess else ():
        if len(once) == 1 and once.step[0] >= step and once.value[0] >= ABOVE_AT_END * last:
            yield derived_fact(
                "scored_apart_at_end",
                f"{named(once)} is {figure(once.value[0])} behind the last evaluation, where {named(losses[1])} is "
                f"{figure(last)}. Text of one kind has one loss by the same weights. So training and its evaluation "
                "learn something else than what this score asks for, or it reads the text otherwise.",
                {"scored": once.value[0], "evaluated": last},
                at=once.step[0],
            )


_ENDS_BY_ITSELF = frozenset({"stopped", "stops", "ended", "ends", "eos", "finished", "terminated", "complete"})
"""Words for answers that end by themselves, before a limit cuts them."""
MOST_END = 0.5
"""Share of the answers that ended at first. Chosen: a model that was fine-tuned before ends most."""
NONE_END = 0.1
"""Share of the answers that end at last where none does any longer. Chosen: one of ten by chance."""


@given_loss(MIN_RECORDS_FOR_LEVEL, not_of=POLICIES)
def answers_no_longer_end(run: Run, loss: Series) -> Facts:
    """Yield that answers ended by themselves at first, and no longer do, while the loss falls."""
    for ended in called(run, _ENDS_BY_ITSELF, least=LEAST_PAIRS) if learns(loss) else ():
        shares = as_shares(ended.value)
        if not are_shares(shares) or shares[0] < MOST_END or median(shares[-2:]) > NONE_END:
            continue
        yield derived_fact(
            "answers_no_longer_end",
            f"{named(ended)} is {percent(float(shares[0]))} at {run.place(ended.step[0])} and "
            f"{percent(float(shares[-1]))} at {run.place(ended.step[-1])}, while {named(loss)} falls from "
            f"{figure(loss.value[0])} to {figure(last_level(loss))}. Answers go on to their limit: rows "
            "with the end token that generation waits for would teach to end.",
            {"first": shares[0], "last": shares[-1]},
            at=ended.step[int(np.argmax(shares <= NONE_END))],
        )


_SIGNS = regex(r"\u2047|<unk>|\[unk\]", re.IGNORECASE)
"""What tokenizers write for a token that the vocabulary lacks."""
_ALIKE_UP_TO = 8
"""Characters in which lines of samples begin alike. Chosen: "sample: "."""
OF_CHARACTERS = 0.05
"""Share of the characters of a sample that are unknown, where each stands for one or more. Chosen: one in twenty."""
OF_WORDS = 0.2
"""Share of its words. Chosen: vocabularies of frequent words lack one word in ten of common corpora."""


def _unknown_in_samples(run: Run) -> Facts:
    """Yield that most samples which the log prints are full of the sign for an unknown token."""
    lines = [line for line in run.text_lines if _SIGNS.search(line.text)]
    alike = [line for line in run.text_lines if lines and line.text[:_ALIKE_UP_TO] == lines[0].text[:_ALIKE_UP_TO]]
    if len(lines) < LEAST_PAIRS or 2 * len(lines) < len(alike):
        return
    sign = _SIGNS.findall(lines[-1].text)[-1]
    units, least = ("words", OF_WORDS) if set("<[") & set(lines[-1].text) else ("characters", OF_CHARACTERS)
    texts = [line.text.split() if units == "words" else "".join(line.text.split()) for line in lines]
    shares = [len(_SIGNS.findall(line.text)) / max(1, len(text)) for line, text in zip(lines, texts, strict=True)]
    if median(shares) >= least:
        yield derived_fact(
            "unknown_tokens",
            f"{len(lines)} samples in the log hold {sign}, the sign for what the vocabulary lacks, as "
            f"{percent(median(shares))} of their {units}. A vocabulary that was made of such texts lacks hardly any.",
            {"level": median(shares), "samples": len(lines)},
            at=lines[0].step,
        )


TIMES_A_GUESS = 10.0
"""A first loss so many times that of a guess. Chosen: a trained model has two to five on tokens that do not fit."""
CLASSES_TO_A_UNIT = 4.0
"""Classes to each unit of a layer, from which on it is narrow. Chosen: units whose values order classes tell a few."""
FEW_UNITS = 8.0
"""Units of a model of tokens up to which it is narrow. Chosen: logits of so few directions order no vocabulary."""
LEARNT_OF_GUESS = (0.3, 0.95)
"""Share of the loss of a guess that is left, where something is learnt and much is not. Chosen: by hand."""


@given_loss(MIN_RECORDS_FOR_LEVEL, not_of=NOT_BY_LOSS)
def narrow_layer(run: Run, loss: Series) -> Facts:
    """Yield that a layer has far fewer units than classes or tokens, where training rows keep much of the loss.

    Not this where nothing is learnt, which has many reasons. Good models of tokens have far fewer units than tokens.
    """
    tokens, uniform, widths = run.facts.tokens, uniform_loss(run), run.settings.numbers("hidden_size")
    classes = tokens or run.setting("num_labels")
    if not widths or not classes or uniform is None:
        return
    narrowest, left = min(widths), last_level(loss) / uniform
    is_narrow = 0 < narrowest * CLASSES_TO_A_UNIT <= classes and (not tokens or narrowest <= FEW_UNITS)
    if is_narrow and LEARNT_OF_GUESS[0] <= left <= LEARNT_OF_GUESS[1]:
        yield derived_fact(
            "narrow_layer",
            f"{run.settings['hidden_size'].key} is {', '.join(map(figure, widths))}: all that tells {figure(classes)} "
            f"{'tokens' if tokens else 'classes'} apart goes through {counted(round(narrowest), 'unit')}. "
            f"{named(loss)} is {figure(left * uniform)} in the last third, {percent(left)} of that of a guess.",
            {"units": narrowest, "classes": classes, "left": left},
        )


TIMES_AS_WIDE = 8.0
"""Times the units of a layer that the layers on both sides of it have, from which on it is narrow. Chosen."""
EXPLAINED = (0.05, 0.6)
"""R² of a fit that tells something and leaves much. Chosen."""
RESTS_BY = 0.03
"""R² by which it changes at most from the middle of the log on. Chosen."""
SAME_FIT = 0.15
"""Share of the training loss by which evaluation differs at most where neither is learnt by heart. Chosen."""


@given_losses(MIN_RECORDS_FOR_LEVEL, not_of=NOT_BY_LOSS)
def narrow_between(run: Run, losses: Losses) -> Facts:
    """Yield that a layer is far narrower than those on both sides, where R² rests far below 1 on rows of both kinds.

    Not this where a KL term keeps codes near a prior.
    """
    widths = run.settings.numbers("hidden_size")
    between = [
        width for at, width in enumerate(widths[1:-1], 1)
        if 0 < width * TIMES_AS_WIDE <= min(max(widths[:at]), max(widths[at + 1 :]))
    ]  # fmt: skip
    if not between or any(run.with_role(Quantity.KL, parts=True)):
        return
    train, held_out = map(last_level, losses)
    for explained in columns_of(run, Quantity.R2, phase="eval", least=2 * LEAST_PAIRS)[:1]:
        middle, end = explained.value[len(explained) // 2], last_level(explained)
        rests = EXPLAINED[0] <= end <= EXPLAINED[1] and abs(end - middle) <= RESTS_BY
        if rests and abs(held_out - train) <= SAME_FIT * train:
            yield derived_fact(
                "narrow_between",
                f"{run.settings['hidden_size'].key} is {', '.join(map(figure, widths))}: what a fit knows of a row "
                f"goes through {counted(round(min(between)), 'unit')}. {named(explained)} rests at {figure(end)}, and "
                f"{named(losses[0])} is {figure(train)} next to {figure(held_out)} in evaluation.",
                {"units": min(between), "explained": end},
            )


def far_beyond_guess(run: Run) -> Facts:
    """Yield that the first loss is many times that of a guess, as of outputs on far too large a scale."""
    uniform = None if training_loss(run, not_of=NOT_BY_LOSS) is None else uniform_loss(run)
    loss = None if uniform is None else part_of_guess(run, uniform)
    if uniform is None or loss is None or loss.value[0] < TIMES_A_GUESS * uniform or is_past_start(run, loss.step[0]):
        return
    first = loss.value[0]
    yield derived_fact(
        "first_loss_far_beyond_guess",
        f"the first {named(loss)} is {figure(first)} at {run.place(loss.step[0])}, "
        f"{figure(first / uniform)} times that of a guess, {figure(uniform)}. Tokens or labels that do not fit "
        "leave a few times that of a guess. So much takes outputs on far too large a scale, or a sum as the loss.",
        {"first": first, "uniform": uniform},
        at=loss.step[0],
    )


def base_rate(run: Run) -> Facts:
    """Yield that no evaluation is better than the constant guess of the share of ones in the labels."""
    (share, _), evaluation = share_of_ones(run), logged(run, "eval_loss", LEAST_PAIRS)
    if share is None or evaluation is None:
        return
    entropy, best, last = loss_of_guess(share), evaluation.value.min(), evaluation.value[-1]
    if not OF_CONSTANT * entropy <= best <= 2 * entropy:
        return
    areas = [series for series in columns_of(run, Quantity.AUC, phase="eval", least=LEAST_PAIRS) if is_auc(series)]
    also = f"; {named(areas[0])} ends at {figure(areas[0].value[-1])}, and chance has 0.5" if areas else ""
    yield derived_fact(
        "no_better_than_constant",
        f"{figure(100 * share)} % of the labels are 1, so the constant guess has a loss of {figure(entropy)}; "
        f"{named(evaluation)} is {figure(best)} at its best and {figure(last)} at the end{also}. Inputs that tell "
        "of the labels bring it below.",
        {"constant": entropy, "best": best},
    )


def beyond_guess(run: Run) -> Facts:
    """Yield a loss that stays far above that of a guess whose answers are as often right, whatever the classes.

    Its name has to say that it is a mean cross-entropy: a plain loss may hold sums over parts, CTC or penalties.
    """
    losses = columns_of(run, *LOSSES, least=MIN_RECORDS_FOR_LEVEL) if run.kind not in NOT_BY_LOSS else []
    of_two = [series for series in losses if any(word in named(series).lower() for word in _OF_TWO_CLASSES)]
    stated = [(series, math.log(2), "two classes that are guessed have") for series in of_two]
    for series in losses:
        right = logged(run, "eval_accuracy" if _is_evaluation(series) else "accuracy")
        share = last_level(right) if right is not None and CROSS_ENTROPY.search(named(series)) else 0.0
        if LEAST_RIGHT <= share <= MOST_RIGHT:
            guess = f"answers of which {percent(share)} are right have, over {MOST_CLASSES:,} classes and guessed,"
            stated.append((series, loss_of_guess(share, MOST_CLASSES), guess))
    for series, bound, guess in stated:
        later = series.value[len(series) // 2 :]
        if np.all(later > BEYOND_GUESS * bound):
            yield derived_fact(
                "evaluation_worse_than_any_guess" if _is_evaluation(series) else "worse_than_any_guess",
                f"{named(series)} is {figure(later.min())} to {figure(later.max())} in the later half of {len(series)} "
                f"records; {guess} {figure(bound)} at most. Weights that are too large make wrong answers so sure.",
                {"lowest": later.min(), "guess": bound},
            )


def _is_evaluation(series: Series) -> bool:
    return series.role is not None and series.role.is_evaluation


MIN_SILENT_RECORDS = 5
"""Records that are exactly 0 decibels. Chosen: rounding makes single ones of any level."""


def answers_with_silence(run: Run) -> Facts:
    """Yield that a ratio of signal and noise comes to rest at exactly 0 decibels, which is that of silence."""
    for series in run.series.values():
        silent = silences_at_end(series)
        if MIN_SILENT_RECORDS <= silent < len(series):
            yield derived_fact(
                "answers_with_silence",
                f"{named(series)} is {figure(series.value[-silent - 1])} in the record before and exactly 0 in the "
                f"last {silent} records, from {run.place(series.step[-silent])} on. An output of zeros has 0 decibels "
                "in common libraries, more than a noisy one: the model answers with silence.",
                {"records": silent},
                at=series.step[-silent],
            )
