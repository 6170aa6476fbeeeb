"""Does a classifier or a regression give every row the same answer, and does its loss agree with its accuracy?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.checks.check import CannotTell, Evidence, answer_of, ask_in_turn, outcome_of
from mldebug_mcp.checks.curve import aligned, end_level, finite_of, first_finite, start_level, true_at_end
from mldebug_mcp.checks.evaluation import (
    LEAST_FOR_HALVES,
    MOST_BEYOND_ONE,
    MOSTLY_RIGHT,
    SCORES_OF_A_CLASS,
    as_share,
    as_shares,
    is_auc,
    last_share,
    share_of_right_answers,
)
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.lazy import dataclass, regex
from mldebug_mcp.core.text import counted, figure
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.names.words import pieces_of
from mldebug_mcp.logs.run import Run, Series

# Where the metrics of a classifier or regression are exactly those of one answer that is given to every row.
#
# With one answer for all, and accuracy a over C classes: the recall of one class is 1 and that of the others 0;
# balanced accuracy is 1/C; macro F1 is 2a / (1 + a) / C, for the F1 of the class that is given is 2a / (1 + a); of a
# class that is looked for, either F1 and recall are 0, or recall is 1 and precision equals accuracy; the correlation
# with the truth (Matthews) is 0. Given with the frequency of two classes, it costs their entropy, H(a) = -a ln a - (1 -
# a) ln(1 - a). R² of the mean of the targets is 0.


MAX_SHARE_ROUNDING = 6e-5
"""How far a share may be off. Chosen: half of a unit in the fourth digit, to which they are printed, and a bit more."""
MAX_RELATIVE_COUNT_ERROR = 2e-3
"""Of a number of classes: how far one may be from a whole one. Chosen: shares are printed with four digits."""
MOST_CLASSES = 20
"""Classes, where their number is not configured. Chosen: of more, nearly every share is near to one of so many."""
OF_ONE_CLASS = 2
"""Classes up to which a bare F1 is that of one of them."""
ONE_ANSWER_APART = 0.02
"""A balanced accuracy or macro F1 lies so far below the accuracy. Chosen: else it says no more than accuracy."""
OF_THE_MEAN = (-0.05, 0.01)
"""R² of a constant: held-out targets have a mean some hundredths of their spread away. Chosen: by hand."""
NEAR_ENTROPY = 0.02
"""Of the entropy: so near is the loss of an answer by frequency, where the accuracy has 3 digits. Chosen: by hand."""
_MEANS = frozenset({"macro", "balanced", "unweighted"})
_NO_CLASS = frozenset({*_MEANS, "micro", "weighted", "mean", "avg", "average", "top", "at", "per", "samples"})
_AT_RANK = regex(r"@|at_?\d")
Holds = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class OneAnswer:
    """At which evaluations the metrics are those of one answer for all.

    Args:
        description: What they are and what one answer would have, in words.
        steps: The evaluations, shape (n,).
        holds: Whether they agree, shape (n,).
    """

    description: str
    steps: Floats
    holds: Holds

    @property
    def until_the_end(self) -> int:
        """At how many evaluations up to the last they agree without a break."""
        return true_at_end(self.holds)

    @property
    def since(self) -> float:
        """The step of the first evaluation of those that agree up to the end, or the last step."""
        return float(self.steps[len(self.steps) - max(1, self.until_the_end)])


def one_answer(run: Run) -> list[OneAnswer]:
    """Return what each identity that the log allows says, those of classes first; empty where none can be tested."""
    tests: tuple[Callable[[Run], OneAnswer | None], ...] = (
        _by_recalls,
        _by_balanced_accuracy,
        _by_macro_f1,
        _by_what_is_found,
        _by_precision,
        _by_correlation,
        _by_entropy,
        _by_r2,
    )
    return [answer for test in tests if (answer := test(run)) is not None]


def recalls_by_class(run: Run) -> list[Series]:
    """Return the share that is found of each class, one series for each; empty without two named classes."""
    found: dict[str, Series] = {}
    for series in run.with_role(Quantity.RECALL, Quantity.ACCURACY, parts=True):
        part = series.role.part if series.role is not None and series.role.phase != "train" else ""
        is_class = part and _NO_CLASS.isdisjoint(part.split()) and _AT_RANK.search(series.name) is None
        if is_class and (series.role is None or series.role.quantity is Quantity.RECALL or part.startswith("class")):
            found.setdefault(part, series.finite)
    return list(found.values()) if len(found) > 1 else []


def _by_recalls(run: Run) -> OneAnswer | None:
    recalls = recalls_by_class(run)
    if not recalls:
        return None
    steps = recalls[0].step
    if not len(steps) or any(not np.array_equal(recall.step, steps) for recall in recalls):
        return None
    table = np.stack([as_shares(recall.value) for recall in recalls])
    given, missed = table >= 1 - MAX_SHARE_ROUNDING, table <= MAX_SHARE_ROUNDING
    holds = (given.sum(axis=0) == 1) & (given | missed).all(axis=0)
    right = _accuracy(run)
    if right is not None:  # of a set with one class in it, all is right
        _, share, _ = aligned(right, recalls[0])
        holds = holds & (share < 1) if len(share) == len(holds) else holds
    name = recalls[int(np.argmax(table[:, -1]))].name
    return OneAnswer(f"{name} is 1 and that of the other {len(recalls) - 1} classes 0", steps, holds)


def _by_balanced_accuracy(run: Run) -> OneAnswer | None:
    pair = _beside_accuracy(run, _mean_over_classes(run, Quantity.ACCURACY, Quantity.RECALL))
    if pair is None:
        return None
    name, steps, balanced, right = pair
    classes = 1 / np.maximum(balanced, 1e-9)
    holds = _is_count(classes, run) & (np.abs(balanced * np.round(classes) - 1) <= MAX_RELATIVE_COUNT_ERROR)
    holds &= right - balanced > ONE_ANSWER_APART
    return OneAnswer(f"{name} is {figure(balanced[-1])}, one in {figure(round(classes[-1]))}", steps, holds)


def _by_macro_f1(run: Run) -> OneAnswer | None:
    """Compare the macro F1; one of an unknown mean, where it is that of three classes or more."""
    macro = _mean_over_classes(run, Quantity.F1)
    pair = _beside_accuracy(run, macro if macro is not None else first_finite(run.with_role(Quantity.F1, phase="eval")))
    if pair is None:
        return None
    name, steps, f1, right = pair
    classes = 2 * right / (1 + right) / np.maximum(f1, 1e-9)
    if macro is None and float(np.round(classes[-1])) <= OF_ONE_CLASS:
        return None
    description = (
        f"{name} is {figure(f1[-1])} where the accuracy is {figure(right[-1])}, just what one answer for "
        f"{figure(min(round(classes[-1]), 10**6))} classes has"
    )
    return OneAnswer(description, steps, _is_count(classes, run) & (right - f1 > ONE_ANSWER_APART))


def _by_what_is_found(run: Run) -> OneAnswer | None:
    found = first_finite(run.with_role(Quantity.F1, Quantity.RECALL, phase="eval"))
    pair = _beside_accuracy(run, found)
    if pair is None:
        return None
    name, steps, value, right = pair
    return OneAnswer(
        f"{name} is 0 where the accuracy is {figure(right[-1])}", steps, (value == 0) & (right > ONE_ANSWER_APART)
    )


def _by_precision(run: Run) -> OneAnswer | None:
    precision = first_finite(run.with_role(Quantity.PRECISION, phase="eval"))
    recall = first_finite(run.with_role(Quantity.RECALL, phase="eval"))
    pair = _beside_accuracy(run, precision)
    if pair is None or recall is None or precision is None:
        return None
    name, steps, value, right = pair
    _, found, _ = aligned(recall, precision)
    if len(found) != len(value):
        return None
    holds = (
        (as_shares(found) >= 1 - MAX_SHARE_ROUNDING)
        & (np.abs(value - right) <= 2 * MAX_SHARE_ROUNDING)
        & (right < 1 - ONE_ANSWER_APART)
    )
    return OneAnswer(f"recall is 1 and {name} {figure(value[-1])}, the accuracy itself", steps, holds)


def _by_correlation(run: Run) -> OneAnswer | None:
    series = run.with_role(Quantity.CORRELATION, phase="eval", parts=True)
    correlation = first_finite(
        metric for metric in series if metric.role is not None and metric.role.part in ("", "matthews")
    )
    pair = _beside_accuracy(run, correlation)
    if pair is None:
        return None
    name, steps, value, right = pair
    return OneAnswer(f"{name} is 0 where the accuracy is {figure(right[-1])}", steps, value == 0)


def _by_entropy(run: Run) -> OneAnswer | None:
    pair = _beside_accuracy(run, first_finite(run.with_role(Quantity.LOSS, phase="eval")))
    if pair is None or (run.facts.classes or 2) != 2:
        return None
    name, steps, loss, right = pair
    sure = np.clip(right, MAX_SHARE_ROUNDING, 1 - MAX_SHARE_ROUNDING)
    entropy = -sure * np.log(sure) - (1 - sure) * np.log(1 - sure)
    holds = (right == right[-1]) & (right > 0.5 + ONE_ANSWER_APART) & (right < 1 - ONE_ANSWER_APART)
    holds &= np.abs(loss - entropy) <= NEAR_ENTROPY * entropy
    description = (
        f"{name} is {figure(loss[-1])} where the accuracy is {figure(right[-1])}, and the entropy of that share "
    )
    return OneAnswer(f"{description}{figure(entropy[-1])}", steps, holds)


def _by_r2(run: Run) -> OneAnswer | None:
    series = first_finite(run.with_role(Quantity.R2, phase="eval"))
    if series is None:
        return None
    holds = (series.value >= OF_THE_MEAN[0]) & (series.value <= OF_THE_MEAN[1])
    return OneAnswer(
        f"{series.name} is {figure(series.value[-1])}, and that of the mean of the targets 0", series.step, holds
    )


def _accuracy(run: Run) -> Series | None:
    return first_finite(run.with_role(Quantity.ACCURACY, phase="eval"))


def _mean_over_classes(run: Run, *quantities: Quantity) -> Series | None:
    return first_finite(
        series
        for series in run.with_role(*quantities, phase="eval", parts=True)
        if series.role is not None and not _MEANS.isdisjoint(series.role.part.split())
    )


def _beside_accuracy(run: Run, series: Series | None) -> tuple[str, Floats, Floats, Floats] | None:
    """Return the name, steps and shares of a metric where it stands with the accuracy of evaluation, and that."""
    right = _accuracy(run)
    if series is None or right is None:
        return None
    is_loss = series.role is not None and series.role.quantity is Quantity.LOSS
    steps, shares, value = aligned(_as_shares(right), series if is_loss else _as_shares(series))
    return (series.name, steps, value, shares) if len(steps) else None


def _as_shares(series: Series) -> Series:
    """Return a metric that is a share as such, where it may be logged in per cent."""
    return Series(series.name, series.step, as_shares(series.value), series.logged_as)


def _is_count(classes: Floats, run: Run) -> Holds:
    """Say which of the numbers are the configured number of classes or, where none is, a small whole one."""
    known = run.facts.classes
    whole = np.full(len(classes), known) if known else np.round(classes)
    near: Holds = np.abs(classes - whole) <= MAX_RELATIVE_COUNT_ERROR * whole
    return near & (whole >= 2) if known else near & (whole >= 2) & (whole <= MOST_CLASSES)


# What tells how well a classifier does by class: the recall of each, means over them, scores of the one looked for.


_RECALL = regex(
    r"(?:eval_)?(?:.*[_/])?(?:recall(?:[_/].+)?|(?:f1|acc(?:uracy)?)[_/]class[_/]?\w+)", needs=("recall", "class")
)
_MEAN = regex(r"macro|balanced|mean|avg|average|weighted|micro|recall$|@|at_?\d")
_OVER_CLASSES = regex(r"eval_.*(?:macro|balanced).*", needs=("macro", "balanced"))
_OF_THE_POSITIVE = ("eval_f1", "eval_recall", "eval_sensitivity", "eval_dice")
"""Of two classes these measure the one that is looked for; of many, a mean over those that are no background."""
_BACKGROUND = frozenset({"background", "bg", "negative", "neg", "0"})


def recalls_of_classes(run: Run) -> list[Series]:
    """Return the recall of each class, or its accuracy or F1, where they are logged by class."""
    found = [series for series in recalls_by_class(run) if len(series) >= LEAST_FOR_HALVES]
    if len(found) > 1:
        return found
    return _long_series(run, (name for name in run.series if _RECALL.fullmatch(name) and not _MEAN.search(name)))


def scores_by_class(run: Run) -> list[Series]:
    """Return the IoU, Dice or F1 of each class, of the first of them that is logged for several classes."""
    for quantity in (Quantity.IOU, Quantity.DICE, Quantity.F1):
        logged = [series for series in run.with_role(quantity, parts=True) if series.role and series.role.part]
        of_classes = [
            series.finite
            for series in logged
            if series.role and series.role.phase != "train" and _NO_CLASS.isdisjoint(series.role.part.split())
        ]
        if len(found := [series for series in of_classes if len(series) >= LEAST_FOR_HALVES]) > 1:
            return found
    return []


def scores_of_the_positive(run: Run) -> list[Series]:
    """Return the scores that, of two classes, measure the one that is looked for, by its name where it has one."""
    if bare := _long_series(run, (name for name in _OF_THE_POSITIVE if name in run)):
        return bare
    named = {name: series.role.part for name, series in run.series.items() if _is_of_a_class(series) and series.role}
    classes = set(named.values()) - _BACKGROUND
    return _long_series(run, (name for name, part in named.items() if part in classes)) if len(classes) == 1 else []


def _is_of_a_class(series: Series) -> bool:
    role = series.role
    return role is not None and role.is_evaluation and bool(role.part) and role.quantity in SCORES_OF_A_CLASS


def _long_series(run: Run, names: Iterable[str]) -> list[Series]:
    return [series for series in (run[name].finite for name in names) if len(series) >= LEAST_FOR_HALVES]


# What the answers of a classifier are like, as its accuracy, recalls and means over classes tell.


MIN_LASTING_EVALUATION_SHARE = 0.5
"""Share of the evaluations, at the end. Chosen: a model that learns gives the commonest answer at first as well."""
MIN_WELL_FOUND_SCORE = 0.9
"""Score of the best class, or the accuracy where no class is logged, from which on others are missed. Chosen: where
little is found at all, all classes share that."""
MAX_MISSED_CLASS_SCORE = 0.1
"""Recall of a class that is as good as never predicted. Chosen: by hand."""
MAX_NEVER_FOUND_SCORE = 0.01
"""Score of a class that is never found. Chosen: a pixel here and there is found by chance."""
MIN_SHARE_OF_CLASSES_MISSED = 0.3
"""Of the other classes: so many are missed. Chosen: by hand."""
CLASS_ANSWERS_APART = 0.35
"""How far a mean over classes lies below the accuracy where some are not learnt at all. Chosen: by hand."""
MIN_RANKING_AUC = 0.7
"""Area under the curve from which on the scores tell rows apart, only never beyond the threshold. Chosen: by hand."""


def minority_missed(run: Run) -> Evidence | None:
    """Some classes are hardly ever found at evaluation, to the end, while another nearly always is.

    Judged by the recall, IoU, Dice or F1 of each class. Else by a mean over classes, an F1 or a recall far below the
    accuracy.
    Not this when: all classes are found in the end, or all is right; the model finds none of them well.
    """
    accuracy = share_of_right_answers(run)
    recalls = recalls_of_classes(run)
    if len(recalls) >= 2:
        return None if accuracy == 1 else _by_class(recalls, "recall")
    if scores := scores_by_class(run):
        return _by_class(scores, "score")
    means = _long_series(run, (name for name in run.series if _OVER_CLASSES.fullmatch(name)))
    found = scores_of_the_positive(run)
    if not accuracy or not (means or found):
        raise CannotTell("not logged: the recall of each class, or a mean over classes with the accuracy")
    series = (means or found)[0]
    if 1 < float(series.value.max()) <= MOST_BEYOND_ONE:
        raise CannotTell(
            f"{series.name} goes up to {figure(float(series.value.max()))}: in per cent, or counted wrongly"
        )
    here = last_share(series) if means else float(as_shares(series.value)[len(series) // 2 :].max())
    if (
        (accuracy < MIN_WELL_FOUND_SCORE or accuracy - here < CLASS_ANSWERS_APART)
        if means
        else (here > MAX_MISSED_CLASS_SCORE or accuracy < MOSTLY_RIGHT)
    ):
        return None
    description = f"{series.name} is about {figure(here)} at the end while the accuracy is {figure(accuracy)}"
    return Evidence(description, steps=(float(series.step[0]),), values={"found": here, "accuracy": accuracy})


def _by_class(scores: list[Series], what: str) -> Evidence | None:
    """Judge by the recall, or another score, of each class."""
    last = {score.name: last_share(score) for score in scores}
    missed = [name for name, value in last.items() if value < MAX_MISSED_CLASS_SCORE]
    never = [score.name for score in scores if float(as_shares(score.value).max()) <= MAX_NEVER_FOUND_SCORE]
    best = max(last, key=lambda name: last[name])
    mostly = last[best] >= MIN_WELL_FOUND_SCORE and len(missed) >= MIN_SHARE_OF_CLASSES_MISSED * (len(last) - 1)
    if not missed or not (mostly or (never and len(last) <= MOST_CLASSES and last[best] >= MOSTLY_RIGHT)):
        return None
    shown = never[0] if never else missed[0]
    until = f", at none of {len(scores[0])} evaluations above {figure(MAX_NEVER_FOUND_SCORE)}" if never else ""
    return Evidence(
        f"at the end {len(missed)} of {len(last)} classes have a {what} below {MAX_MISSED_CLASS_SCORE:g} "
        f"(such as {shown}: {figure(last[shown])}{until}), while {best} is {figure(last[best])}",
        steps=(float(scores[0].step[0]),),
        values={"classes": len(last), "missed": len(missed), "never": len(never), "best": last[best]},
    )


def one_answer_for_all(run: Run) -> Evidence | None:
    """The metrics of evaluation are to the digit those of one answer for all rows, over the later half and to the end.

    Balanced accuracy is one in C, the Matthews correlation is 0, R² is 0 and the like. Not this when: the evaluations
    end otherwise; all is right; an area under the ROC curve says that the scores rank rows well (a remark).
    """
    tested = one_answer(run)
    if not tested or all(len(answer.holds) < LEAST_FOR_HALVES for answer in tested):
        raise CannotTell(
            f"what shows one answer for all, such as balanced accuracy, is not logged {LEAST_FOR_HALVES} times"
        )
    lasting = next(
        (
            answer
            for answer in tested
            if answer.until_the_end >= max(LEAST_FOR_HALVES, MIN_LASTING_EVALUATION_SHARE * len(answer.holds))
        ),
        None,
    )
    if lasting is None:
        return None
    auc = next((series.finite for series in run.series.values() if is_auc(series) and len(series.finite)), None)
    ranks = auc is not None and float(auc.value[-1]) > MIN_RANKING_AUC
    auc_clause = f"; {auc.name} is {figure(auc.value[-1])}" if ranks and auc is not None else ""
    return Evidence(
        f"{lasting.description}: at {counted(lasting.until_the_end, 'evaluation')} of {len(lasting.holds)}, from "
        f"{run.place(lasting.since)} to the end, which one answer for all rows gives{auc_clause}",
        steps=(lasting.since,),
        values={"evaluations": lasting.until_the_end, "of": len(lasting.holds)},
        present=not ranks,
    )


ask_in_turn(
    "class_answers",
    outcome_of(minority_missed, 0.01, "focal_loss_2017"),
    outcome_of(
        one_answer_for_all, 0.003, not_for=("pretraining", "sft"), follows=("loss_nonfinite", "eval_loss_constant")
    ),
    not_for=("grpo", "ppo", "rl", "preference"),
    whole=True,
)


# A loss beside an accuracy of the same answers, and the highest loss that a calibrated model so often right has.
#
# With accuracy a over C classes a calibrated model's cross-entropy is at most H(a) + (1 - a) ln(C - 1), reached where
# its mistakes are spread evenly.


PAIRS = (("eval_loss", "eval_accuracy"), ("loss", "accuracy"))
LEAST_SHARE = 1.1
"""Times the loss of a calibrated model with the same accuracy: far above it from here on. Chosen: by hand."""
LEAST_GAP = 0.05
"""... and this much more, in nats. Chosen: near an accuracy of 1 a tenth of the loss is nothing."""
MIN_ALL_RIGHT_ACCURACY = 0.98
"""Accuracy of answers that are as good as all right. Chosen: such losses come within 0.01 of the floor."""
AT_REST = 0.02
"""Share of its level by which a loss at rest moves. Chosen: by hand."""
MAX_OFF_WHOLE_CLASSES = 0.05
"""How far a number of classes from a loss is from a whole one. Chosen: such losses come within 0.01 of the floor."""
LEAST_ACCURACY = 0.5
"""Accuracy from which on it bounds the loss. Chosen: below, most answers are wrong."""
MIN_PRETRAINED_ACCURACY = 0.75
"""Accuracy at the first evaluation of a model that was trained before. Chosen: by hand."""
MAX_PRETRAINED_LOSS_RATIO = 1.25
"""First loss of such a model as a multiple of the last. Chosen: by hand."""
MAX_GUESSING_LOSS_RATIO = 1.25
"""Times the loss of a calibrated model as accurate as at first. Chosen: above it first answers are right and far from
sure, as those of a contrastive model, and no guesses of a classifier."""
MOST_CLASSES_OF_LOSS = 1000
"""Classes up to which their number is read from the first loss. Chosen: ImageNet's, which few classifiers exceed."""


@dataclass(frozen=True, slots=True)
class LossBesideAccuracy:
    """A loss and an accuracy on the same data.

    Args:
        loss, accuracy: Their names.
        first: The first step at which both stand.
        level: The loss wherever both stand, shape (n,).
        shares: The accuracy there, as a share, shape (n,).
        end: Where the loss has come to.
        share: Where the accuracy has come to, as a share.
        classes: How many there are; 0 where nothing tells.
        counted: Words for the number of classes, if it is not the configured one.
    """

    loss: str
    accuracy: str
    first: float
    level: Floats
    shares: Floats
    end: float
    share: float
    classes: int
    counted: str

    @property
    def level_known(self) -> bool:
        """Whether the accuracy and the number of classes bound the loss."""
        return LEAST_ACCURACY <= self.share <= 1 and self.classes >= 2

    @property
    def calibrated(self) -> float:
        """The highest loss of a calibrated model of this accuracy."""
        return calibrated_loss(self.share, self.classes)

    @property
    def far_above_calibrated(self) -> bool:
        """Whether the loss is far above that of any calibrated model of this accuracy."""
        return self.level_known and self.end >= max(LEAST_SHARE * self.calibrated, self.calibrated + LEAST_GAP)


def losses_beside_accuracies(run: Run) -> list[LossBesideAccuracy]:
    """Return the losses and accuracies on the same data that stand together often enough, those of evaluation first."""
    compared = (_compared(run, finite_of(run, loss), finite_of(run, accuracy)) for loss, accuracy in PAIRS)
    return [loss_beside_accuracy for loss_beside_accuracy in compared if loss_beside_accuracy is not None]


def _compared(run: Run, loss: Series, accuracy: Series) -> LossBesideAccuracy | None:
    if len(loss) < LEAST_FOR_HALVES or len(accuracy) < LEAST_FOR_HALVES:
        return None
    _, right, level = aligned(accuracy, loss)
    right = as_shares(right)
    if len(level) < LEAST_FOR_HALVES:
        return None
    share, end = end_level(right), end_level(level)
    classes = _classes(
        run, knows=float(right[0]) > MIN_PRETRAINED_ACCURACY and float(level[0]) < MAX_PRETRAINED_LOSS_RATIO * end
    )
    configured = run.setting("num_labels") == classes
    if not configured:
        classes = _fewest_classes(classes, _classes_at_floor(level, right))
    counted = "" if configured else ", estimated from the losses,"
    return LossBesideAccuracy(loss.name, accuracy.name, float(loss.step[0]), level, right, end, share, classes, counted)


def _classes_at_floor(level: Floats, right: Floats) -> float:
    """Return of how many classes a loss at rest is that of right answers in scores between 0 and 1, not rounded.

    That is ln(e + C - 1) - accuracy; 0 where the loss does not rest or answers are wrong.
    """
    later = level[len(level) // 2 :]
    end = end_level(level)
    if float(right[len(right) // 2 :].min()) < MIN_ALL_RIGHT_ACCURACY or float(np.ptp(later)) > AT_REST * end:
        return 0.0
    return math.exp(min(end + end_level(right), math.log(MOST_CLASSES_OF_LOSS))) - math.e + 1


def _fewest_classes(classes: int, at_floor: float) -> int:
    """Return the number of classes from the first loss and from the floor; 0 where neither tells.

    The first loss may be that of a model that has learnt already, and then counts too few. The floor alone tells only
    by a whole number.
    """
    nearest = round(at_floor)
    if classes:
        return nearest if classes < nearest <= math.ceil(MAX_CLASS_COUNT_RATIO * classes) else classes
    return nearest if nearest >= 2 and abs(at_floor - nearest) <= MAX_OFF_WHOLE_CLASSES else 0


def calibrated_loss(share: float, classes: int) -> float:
    """Return the highest cross-entropy of a calibrated model that is right so often."""
    wrong = 1 - share
    return -sum(value * math.log(value) for value in (share, wrong) if value > 0) + wrong * math.log(
        max(classes - 1, 1)
    )


def _classes(run: Run, *, knows: bool) -> int:
    """Return the number of classes: configured, or where a guess has the first loss; 0 where neither tells.

    A model that knows its task from the first evaluation on did not begin by guessing.
    """
    configured = run.setting("num_labels")
    if configured is not None and configured >= 2:
        return int(configured)
    if knows:
        return 0
    first: Series = run["loss"].finite
    # The first step teaches much already, and so does a first epoch: what was before may be more, and is no less.
    means = run.step_name == "epoch"
    start = max(float(first.value[0]), 0.0 if means else start_level(first.value[: max(3, len(first) // 20)]))
    count = round(math.exp(min(start, math.log(2 * MOST_CLASSES_OF_LOSS))))
    near = np.abs(math.log(max(count, 2)) - start) < 0.05 * max(start, 1e-9)
    return count if 2 <= count <= MOST_CLASSES_OF_LOSS and near and _guesses(run, start, count) else 0


def _guesses(run: Run, start: float, classes: int) -> bool:
    """Say whether the training accuracy at the first loss, if any, is that of a model that guesses."""
    right = aligned(finite_of(run, "accuracy"), run["loss"].finite)[1]
    return not len(right) or start <= MAX_GUESSING_LOSS_RATIO * calibrated_loss(as_share(float(right[0])), classes)


# The loss beside what the accuracy of the same answers allows.


MIN_LOSS_RISE_SHARE = 0.05
"""A loss above its lowest by more than this share rises. Chosen: it is then grown sure, as in overfitting."""
MIN_ACCURACY_FOR_SMOOTHING = 0.9
"""Accuracy from which on smoothing of labels would show. Chosen: by hand."""
MAX_LABEL_SMOOTHING = 0.2
"""What labels are smoothed by. Chosen: most recipes smooth by 0.1."""
MAX_NATS_BELOW_FLOOR = 0.03
"""Nats below the floor. Fitted: benchmarks/faults, softmaxes before the loss lie -0.01 to 0.1 from it."""
MAX_NATS_ABOVE_FLOOR = 0.06
"""Nats above the floor. Fitted: benchmarks/faults, softmaxes before the loss lie -0.01 to 0.1 from it."""
MIN_SHARE_AT_FLOOR = 0.7
"""Of the later half of the records, so many keep to the floor. Chosen: they rise and fall with the accuracy."""
MIN_RATIO_TO_CALIBRATED = 1.15
"""Times the loss of a calibrated model. Chosen: by hand."""
MAX_CLASS_COUNT_RATIO = 1.2
"""Times the classes that the first loss tells. Chosen: it may have fallen."""
MIN_SHARE_OF_COST = 0.05
"""Of what wrong answers cost at least. Chosen: a focal loss (alpha 0.25, gamma 2) leaves a 16th."""
MIN_WRONG_ANSWER_SHARE = 0.3
"""Share of wrong answers. Chosen: a few rows that the loss leaves out would do."""
SMOOTHED_BY = ("label_smoothing", "label_smoothing_factor", "smoothing")


def loss_above_accuracy(run: Run) -> Evidence | None:
    """The loss is higher than a calibrated classifier of this accuracy can have, H(a) + (1 - a) ln(C - 1), and rests.

    Not this when: it still falls; it rises (overfitting); labels are smoothed or mixed, by the settings or possibly.
    """
    if any(run.setting(name) for name in (*SMOOTHED_BY, "mixup")):
        raise CannotTell("label smoothing or mixed labels keep the loss up")
    return _first_of(run, _above)


def _above(found: LossBesideAccuracy) -> Evidence | None:
    if not found.level_known:
        return None
    falls = end_level(found.level[: -max(1, len(found.level) // 4)]) - found.end > LEAST_GAP * found.end
    rises = found.end > (1 + MIN_LOSS_RISE_SHARE) * float(found.level.min())
    if falls or rises or not found.far_above_calibrated:
        return None
    if found.share >= MIN_ACCURACY_FOR_SMOOTHING and found.end - found.calibrated <= (
        smoothed := _smoothed(found.classes)
    ):
        raise CannotTell(
            f"{found.loss} is {figure(found.end)} where {found.accuracy} is {figure(found.share)}, no more than "
            f"{figure(smoothed)} above that of a calibrated model, and label smoothing may leave as much"
        )
    return Evidence(
        f"{found.loss} is {figure(found.end)} where {found.accuracy} is {figure(found.share)}: a calibrated model over "
        f"{found.classes} classes{found.counted} that is right as often has at most {figure(found.calibrated)}",
        steps=(found.first,),
        values={
            "loss": found.end,
            "accuracy": found.share,
            "calibrated_at_most": found.calibrated,
            "classes": float(found.classes),
        },
    )


def _first_of(run: Run, judge: Callable[[LossBesideAccuracy], Evidence | None]) -> Evidence | None:
    """Return what is seen of the evaluation, else of training: a loss may be wrong in one of them alone."""
    found = losses_beside_accuracies(run)
    if not found:
        raise CannotTell("a loss and an accuracy on the same data do not stand together at 4 steps")
    answers = [answer_of(partial(judge, loss_beside_accuracy)) for loss_beside_accuracy in found]
    judged = [answer for answer in answers if isinstance(answer, Evidence)]
    unsure = [answer for answer in answers if isinstance(answer, CannotTell)]
    if len(unsure) == len(answers):
        raise unsure[0]
    return judged[0] if judged else None


def _smoothed(classes: int) -> float:
    """Return the least cross-entropy against labels that are smoothed as far as `MAX_LABEL_SMOOTHING`."""
    other = MAX_LABEL_SMOOTHING / classes
    right = 1 - other * (classes - 1)
    return -right * math.log(right) - (classes - 1) * other * math.log(other)


def loss_at_softmax_floor(run: Run) -> Evidence | None:
    """The loss is that of an answer as often right, given in scores that lie between 0 and 1: ln(e + C - 1) - accuracy.

    Not this when: a calibrated model of that accuracy has much the same loss; the number of classes is not known.
    """
    if any(not _OF_PAIRS.isdisjoint(pieces_of(name)) for name in run.series):
        raise CannotTell("the loss compares answers in pairs, and has no classes")
    return _first_of(run, _at_floor)


_OF_PAIRS = frozenset({"chosen", "rejected"})


def _at_floor(found: LossBesideAccuracy) -> Evidence | None:
    if found.classes < 2:
        raise CannotTell("the number of classes is not configured")
    low = math.log(math.e + found.classes - 1) - found.share
    high = math.log(math.e + found.classes * (MAX_CLASS_COUNT_RATIO if found.counted else 1.0) - 1) - found.share
    if not found.far_above_calibrated or found.end < MIN_RATIO_TO_CALIBRATED * found.calibrated:
        return None
    off = (found.level + found.shares - found.share)[len(found.level) // 2 :]
    holds = float(np.mean((low - MAX_NATS_BELOW_FLOOR <= off) & (off <= high + MAX_NATS_ABOVE_FLOOR)))
    if not low - MAX_NATS_BELOW_FLOOR <= found.end <= high + MAX_NATS_ABOVE_FLOOR or holds < MIN_SHARE_AT_FLOOR:
        return None
    return Evidence(
        f"{found.loss} is {figure(found.end)} where {found.accuracy} is {figure(found.share)}: scores between 0 and 1 "
        f"over {found.classes} classes{found.counted} have {figure(low)} at that accuracy, ln(e + "
        f"{found.classes - 1}) - {figure(found.share)}",
        steps=(found.first,),
        values={"loss": found.end, "accuracy": found.share, "floor": low, "classes": float(found.classes)},
    )


def loss_below_accuracy(run: Run) -> Evidence | None:
    """A mean cross-entropy is at least (1 - accuracy) ln 2, for a wrong answer has half of the probability at most.

    The loss is far below. Not this when: few answers are wrong; the loss is merely a focal one.
    """
    aligned_pairs = [(loss, *aligned(finite_of(run, accuracy), finite_of(run, loss))) for loss, accuracy in PAIRS]
    judged = [joined for joined in aligned_pairs if len(joined[1]) >= LEAST_FOR_HALVES]
    if not judged:
        raise CannotTell(f"no loss and accuracy of the same answers stand together at {LEAST_FOR_HALVES} steps")
    for name, steps, accuracy, loss in judged:
        later = slice(len(loss) // 2, None)
        right, level = as_share(median(accuracy[later])), median(loss[later])
        least = (1 - right) * math.log(2)
        if 1 - right >= MIN_WRONG_ANSWER_SHARE and 0 < level < MIN_SHARE_OF_COST * least:
            return Evidence(
                f"{name} is {figure(level)} and the accuracy {figure(right)} in the later half of {len(loss)} records; "
                f"a mean cross-entropy with so many wrong answers is at least {figure(least)}",
                steps=(float(steps[0]),),
                values={"loss": level, "accuracy": right, "least": least},
            )
    return None
