"""What a log holds of evaluation.

These are its losses, the metrics that measure quality, and the terms that a training loss has beyond them.
"""

from __future__ import annotations

import math
import re

import numpy as np

from mldebug_mcp.checks.check import CannotTell, some
from mldebug_mcp.checks.curve import MEDIAN_ERROR, blocks, finite_of, noise, row_medians, start_level
from mldebug_mcp.checks.progress import LANGUAGE_MODELS
from mldebug_mcp.core.arrays import are_whole, median, median_gap
from mldebug_mcp.core.lazy import dataclass, regex
from mldebug_mcp.core.text import figure
from mldebug_mcp.logs.columns import Floats, ascends
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.names.lexicon import NAMED_LOSSES
from mldebug_mcp.logs.names.words import pieces_of
from mldebug_mcp.logs.run import Run, Series

# A log's evaluation losses, and what compares them with the training loss.


LEAST_FOR_MEDIAN = 3
"""Evaluations that are a level, and records next to them. Chosen: their median stands against one stray value."""
LEAST_FOR_HALVES = 4
"""Evaluations that show a course. Chosen: both halves then hold two."""
MAX_RECORDS_PER_EVALUATION = 5
"""Training records whose median stands for the loss at an evaluation. Chosen: earlier ones are out of date."""
MAX_SHORT_LOG_RECORDS = 20
"""In a log of fewer records, mostly one to an epoch, the first three hold much of the learning. Chosen: by hand."""
MAX_FIRST_EVAL_INTERVALS = 3.5
"""Intervals of evaluations until the first: one or two are usual, three in a warm-up. Chosen: by hand."""
MIN_EXPLODED_LOSS_RATIO = 100.0
"""Times the first loss: no evaluation of first or better weights comes there. Chosen: by hand."""
IN_STEP = 1.35
"""How far ratios of both losses lie apart where they are one quantity on two scales. Chosen: by hand."""
MIN_OTHER_SCALE_RATIO = 3.0
"""The ratio of evaluation and training loss, at least, where both are one quantity on two scales. Chosen: by hand."""
MIN_SUMMED_LOSS_RATIO = 3.0
"""Times the logarithm of its perplexity that a loss summed over tokens is, at least. Chosen: by hand."""
LEAST_PER_TOKEN = 1.0
"""Nats per token from which on a perplexity tells the unit of a loss. Chosen: label smoothing adds much to less."""
MIN_FALL_OF_BOTH = 2.0
"""How many times both losses fall where they are one quantity on two scales. Chosen: by hand."""
MANY_TIMES = 10.0
"""The ratio from which it is enough that evaluation falls less. Chosen: no held-out set is so much harder."""
EVALUATION_FALLS = 1.3
"""How many times evaluation then falls. Chosen: by hand."""
SUM_OF_BATCHES = 4.0
"""Times the evaluation loss: dropout and augmentation do not raise a training loss so far. Chosen: by hand."""
EVALUATION_STANDS = 0.01
"""Share of its level within which an evaluation loss does not move. Chosen: a fixed set has no sampling noise."""
EVALUATION_EARLY = 0.2
"""Share of the run within which the first of those evaluations lies. Chosen: by hand."""
ERRORS_OF_VALUES = (Quantity.SQUARED_ERROR, Quantity.ROOT_SQUARED_ERROR, Quantity.ABSOLUTE_ERROR)
_COMPONENTS = frozenset(["box", "bbox", "cls", "dfl", "obj", "kl", "aux", "value", "policy", "reward"])
"""Parts of a detector's or a VAE's loss, which move by rules of their own."""
ROWS_AT_ONCE = regex(r"(?:^| )bs(?: (\d{1,6}))?$")
"""How the part of a name ends that says how many rows are evaluated at once: those of a set that is logged without."""


def evaluation_losses(run: Run) -> list[Series]:
    """Return the evaluation losses: `eval_loss` and those of named sets such as `eval_g0_loss`.

    Raises CannotTell if there is none.
    """
    return some(_of_whole_sets(run, Quantity.LOSS), "not logged: eval_loss")


AVERAGED_WEIGHTS = frozenset({"ema", "swa", "polyak", "teacher"})
"""Words for weights that are an average over training: a metric of theirs is of the same rows, and lags."""


def is_of_averaged_weights(series: Series) -> bool:
    """Say whether a metric is named for weights that are an average over training: `ema_val_loss`, `val_loss_swa`."""
    role = series.role
    return role is not None and not AVERAGED_WEIGHTS.isdisjoint((role.statistic, *role.part.split(" ")))


def held_out_losses(run: Run, least: int) -> list[Series]:
    """Return the evaluation losses of sets of rows, each of `least` finite values or more.

    A loss of averaged weights is of no set of its own. Neither is a loss that never moves: it is not measured anew.
    """
    losses = [loss.finite for loss in evaluation_losses(run)]
    long = [loss for loss in losses if len(loss) >= least and not is_of_averaged_weights(loss)]
    return [loss for loss in long if float(np.ptp(loss.value)) > 0]


def _of_whole_sets(run: Run, *quantities: Quantity) -> list[Series]:
    """Return what is measured at evaluation on a whole set, `eval_loss` first: of no component of a loss."""
    found = [
        series
        for series in run.with_role(*quantities, phase="eval", parts=True)
        if series.role is not None
        and _COMPONENTS.isdisjoint(series.role.part.split(" "))
        and ROWS_AT_ONCE.search(series.role.part) is None
    ]
    found.sort(key=lambda series: (series.name != "eval_loss", series.name))
    return [series for series in found if _is_measured_as(series, found[0])]


_MEASURES = NAMED_LOSSES | {"loss", "logloss", "nll"}
"""Words for what a loss of a set is."""


def _is_measured_as(series: Series, other: Series) -> bool:
    """Say whether losses may be one measure of two sets: no `chain_nll` next to a `loss`."""
    own, its = (_MEASURES.intersection(pieces_of(each.logged_as or each.name)) for each in (series, other))
    return not own or not its or not own.isdisjoint(its)


LEAST_THIRD = 5
"""Values of a third from which its median is compared. Chosen: by hand."""
DRIFT_STANDARD_ERRORS = 2.0
"""Standard errors of what a third may be apart from another. Chosen: 1 in 40 is beyond."""
MAX_RESTING_DRIFT_SHARE = 0.05
"""Share of the level that this may come to. Chosen: what a run that learns gains at least."""


def evaluation_stands(run: Run) -> bool:
    """Say whether an evaluation loss or error, which has hardly any noise, stands still from early on to the end."""
    for logged in _of_whole_sets(run, Quantity.LOSS, *ERRORS_OF_VALUES):
        series = logged.finite
        if len(series) >= LEAST_FOR_HALVES and series.step[0] <= EVALUATION_EARLY * run.last_step:
            level = abs(median(series.value))
            return float(np.ptp(series.value)) <= EVALUATION_STANDS * level or _rests_in_its_noise(series.value, level)
    return False


def _rests_in_its_noise(values: Floats, level: float) -> bool:
    """Say whether many noisy values go nowhere: what their first and last third may be apart is little."""
    third = len(values) // 3
    if third < LEAST_THIRD:
        return False
    apart = abs(median(values[:third]) - median(values[-third:]))
    return (
        apart + DRIFT_STANDARD_ERRORS * noise(values) * MEDIAN_ERROR * math.sqrt(2 / third)
        <= MAX_RESTING_DRIFT_SHARE * level
    )


def begins_late(evaluation: Series) -> bool:
    """Say whether a log begins after evaluations that it does not hold: the first comes far later than one interval."""
    step = evaluation.finite.step
    return len(step) > 2 and float(step[0]) > MAX_FIRST_EVAL_INTERVALS * median_gap(step)


def refuse_after_explosion(run: Run, evaluation: Series) -> None:
    """Raise CannotTell if training exploded before the first evaluation, and that shows the ruins.

    What evaluation does from there on, on weights that are far out, cannot be compared with training.
    """
    if "loss" not in run:
        return
    loss, first = run["loss"].finite, evaluation.finite
    before = loss.value[loss.step <= first.step[0]] if len(first) else loss.value[:0]
    start = start_level(loss.value[:3]) if len(before) else 0.0
    if (
        start > 0
        and before.max() > MIN_EXPLODED_LOSS_RATIO * start
        and first.value[0] > MIN_EXPLODED_LOSS_RATIO * start
    ):
        raise CannotTell(
            f"the training loss had gone from {figure(start)} to {figure(before.max())} before the first "
            f"evaluation, which is {figure(first.value[0])}: it shows what the explosion left"
        )


def beside_training(loss: Series, evaluation: Series) -> tuple[Floats, Floats, Floats]:
    """Return steps, training level and evaluation loss at each evaluation that training precedes, each (n,).

    The level is the median of the last records since the evaluation before, at most `MAX_RECORDS_PER_EVALUATION`.
    Where training is logged once between two evaluations it is that record, for earlier ones are out of date.
    """
    evaluation = evaluation.finite
    if evaluation.step is loss.step and ascends(loss.step):
        return loss.step, loss.value, evaluation.value
    until = np.searchsorted(loss.step, evaluation.step, side="right")
    keep = until > 0
    ends = until[keep]
    since = np.maximum(np.concatenate([[0], ends[:-1]]), ends - MAX_RECORDS_PER_EVALUATION)
    count = ends - np.minimum(since, ends - 1)
    train = np.empty(len(ends))
    for many in range(1, MAX_RECORDS_PER_EVALUATION + 1):
        here = count == many
        train[here] = row_medians(loss.value[ends[here, np.newaxis] - np.arange(many, 0, -1)])
    return evaluation.step[keep], train, evaluation.value[keep]


def refuse_other_unit(run: Run) -> None:
    """Raise CannotTell if the perplexity of evaluation is that of a far smaller loss: its loss is a sum over tokens."""
    perplexity, loss = next(run.with_role(Quantity.PERPLEXITY, phase="eval"), None), evaluation_losses(run)[0].finite
    if perplexity is None:
        return
    _, of_loss, of_perplexity = np.intersect1d(loss.step, perplexity.finite.step, return_indices=True)
    value, per_token = loss.value[of_loss], np.log(np.maximum(perplexity.finite.value[of_perplexity], 1.0))
    surely = per_token > LEAST_PER_TOKEN
    if surely.any() and float((value[surely] / per_token[surely]).min()) > MIN_SUMMED_LOSS_RATIO:
        raise CannotTell(
            f"{loss.name} is {figure(value[surely][0])} where the perplexity of evaluation is that of a loss of "
            f"{figure(per_token[surely][0])} per token: it is in another unit than a training loss per token"
        )


def refuse_another_scale(train: Floats, evaluation: Floats) -> None:
    """Raise CannotTell if both losses fall by the same factor all the way, and far or from far apart.

    What is learnt then serves held-out rows as well: one is the sum over more rows, or in another unit.
    """
    if len(train) < LEAST_FOR_HALVES or not ((train > 0) & (evaluation > 0)).all():
        return
    times = evaluation / train
    if evaluation[0] < (EVALUATION_FALLS if float(times.min()) > MANY_TIMES else MIN_FALL_OF_BOTH) * evaluation[-1]:
        return
    if float(times.min()) > max(MIN_OTHER_SCALE_RATIO, float(times.max()) / IN_STEP):
        raise CannotTell(
            f"both losses fall by the same factor, and their ratio stays between {figure(times.min())} and "
            f"{figure(times.max())}: they may be on different scales"
        )


def refuse_sums_of_epochs(run: Run) -> None:
    """Raise CannotTell if the training loss of each epoch is many times that of evaluation: it may be a sum.

    Loops of one's own often add up the loss of an epoch's batches and print that. Such a sum is as many times as large
    from the first epoch on. A configured accumulation, or a language model, has other reasons for a multiple.
    """
    if run.step_name != "epoch" or run.kind in LANGUAGE_MODELS or run.setting("gradient_accumulation_steps"):
        return
    if "loss" not in run or "eval_loss" not in run:
        return
    _, train, evaluation = beside_training(run["loss"].finite, run["eval_loss"])
    if not len(train) or not (evaluation > 0).all():
        return
    times = train / evaluation
    if min(median(times), float(times[0])) > SUM_OF_BATCHES:
        raise CannotTell(
            f"the training loss is {figure(median(times))} times the evaluation loss (median of {len(train)} epochs): "
            "it may be the sum over an epoch's batches"
        )


_BY_FASTAI = {"loss": "train_loss", "eval_loss": "valid_loss"}
"""Names in fastai's table of epochs. Its `Recorder` keeps 0.98 of a training loss at each batch (`AvgSmoothLoss`), and
goes on with it from epoch to epoch. Source: fastai.learner."""


def is_running_mean(run: Run) -> bool:
    """Say whether the training loss is a mean over batches long past, by its name or in fastai's table of epochs."""
    if "loss" not in run:
        return False
    role = run["loss"].role
    by_name = role is not None and role.statistic == "ema"
    of_epochs = run.step_name == "epoch" and all(
        name in run and run[name].logged_as == logged_as for name, logged_as in _BY_FASTAI.items()
    )
    # Its times have colons, and are no numbers: those of skorch, which has the same names, stand in a column.
    of_epochs = of_epochs and all(
        name == "loss" or series.role is None or series.role.phase == "eval" for name, series in run.series.items()
    )
    return by_name or of_epochs


def refuse_running_mean(run: Run) -> None:
    """Raise CannotTell if the training loss may lag behind the model that is evaluated, so that it is above."""
    if is_running_mean(run):
        loss = run["loss"].logged_as or "loss"
        raise CannotTell(f"{loss} may be a running mean over earlier epochs, as fastai logs it: it lags behind")


@dataclass(frozen=True, slots=True)
class Compared:
    """Training and evaluation at each evaluation, and where both have come to.

    Args:
        steps: Steps of the evaluations that training precedes, shape (n,).
        train: Training level at each (`beside_training`), shape (n,).
        evaluation: Evaluation loss at each, shape (n,).
        start: What the training loss was at first.
        later: The later half of the evaluations.
    """

    steps: Floats
    train: Floats
    evaluation: Floats
    start: float
    later: slice

    @property
    def train_level(self) -> float:
        """The median training level of the later half."""
        return median(self.train[self.later])

    @property
    def eval_level(self) -> float:
        """The median evaluation loss of the later half."""
        return median(self.evaluation[self.later])


def compared(run: Run, least: int) -> Compared:
    """Compare `eval_loss` with the training loss.

    Raises CannotTell if fewer than `least` evaluations stand behind a record of training.
    """
    loss = run["loss"].finite
    steps, train, evaluation = beside_training(loss, run["eval_loss"])
    if len(steps) < least:
        raise CannotTell(f"{len(steps)} evaluations that training precedes; {least} are needed")
    return Compared(steps, train, evaluation, start_of(run, loss), slice(len(steps) // 2, None))


def start_of(run: Run, loss: Series) -> float:
    """Return what a training loss began with."""
    start = start_level(loss.value)
    if (
        len(loss) < MAX_SHORT_LOG_RECORDS or run.step_name == "epoch"
    ):  # means over epochs, of which the first few hold the learning
        return max(start, float(loss.value[0]))
    return start


# Accuracies as shares of one, whether they are logged so or in per cent.


def as_share(accuracy: float) -> float:
    """Return an accuracy as a share; above 1 it is in per cent."""
    return accuracy / 100 if accuracy > 1 else accuracy


def as_shares(accuracies: Floats) -> Floats:
    """Return the values of one accuracy as shares: if any is above 1, all are in per cent, the small ones too."""
    return accuracies / 100 if len(accuracies) and float(np.nanmax(accuracies)) > 1 else accuracies


SCORES_OF_A_CLASS = frozenset({Quantity.RECALL, Quantity.PRECISION, Quantity.F1, Quantity.DICE, Quantity.IOU})
"""What answers of the commonest class alone leave at zero, where it measures another."""
MOST_BEYOND_ONE = 3.0
"""The most that a score in shares is by a mistake of counting. Chosen: more may be per cent."""
MOSTLY_RIGHT = 0.6
"""An accuracy that answers of the commonest class alone reach. Chosen: by hand."""


def is_beyond_one(run: Run, accuracy: Series) -> bool:
    """Say whether an accuracy goes above one where that of training is a share: it is counted wrongly."""
    trained = finite_of(run, "accuracy").value
    return 1 < float(accuracy.value.max()) <= MOST_BEYOND_ONE and len(trained) > 0 and float(trained.max()) <= 1


def last_share(series: Series) -> float:
    """Return a score at the end as a share of one, 0 where it has no values."""
    return median(as_shares(series.value)[-LEAST_FOR_MEDIAN:]) if len(series) else 0.0


def share_of_right_answers(run: Run) -> float:
    """Return the accuracy of evaluation at the end, of pixels where those are the answers; 0 where none is logged."""
    of = {
        series.role.part: series for series in run.with_role(Quantity.ACCURACY, phase="eval", parts=True) if series.role
    }
    series = of.get("", of.get("pixel"))
    return last_share(series.finite) if series is not None else 0.0


# Which of a log's metrics measure quality at evaluation: accuracies, scores of classes, rankings, texts.


ACCURACIES = ("eval_accuracy", "accuracy")
"""What accuracies are called, that of evaluation first."""
# "metrics/mAP50(B)" is what Ultralytics measures on the validation set, "bbox/AP" what detectron2 does, "coco/bbox_mAP"
# MMDetection, "Pseudo dice" nnU-Net, a number for each class.
_BY_NAME = regex(
    r"eval_|metrics/(?:precision|recall|mAP|accuracy)|mean (?:Average global foreground|Pseudo) [Dd]ice$"
    r"|(?:bbox|segm|keypoints)/AP(?:50|75)?$|coco/\w+_mAP"
    r"|(?i:(?:sacre)?bleu(?:[-_@]?\d)?|chrf\+*|rouge[-_]?(?:\d|l|lsum))$",
    needs=("eval_", "metrics/", "mean ", "bbox", "segm", "keypoints", "coco/", "bleu", "chrf", "rouge"),
)
"""By its name, or as what nobody measures while training: BLEU of whole outputs."""
_OF_A_CLASS = (Quantity.DICE, Quantity.IOU, Quantity.F1)
"""Measured in training too by Keras, which logs both; with an evaluation loss alone it is of evaluation."""
_RANKINGS = (Quantity.NDCG, Quantity.MRR, Quantity.HIT_RATE)
"""What recommenders and search are measured by, whatever is logged next to it."""
_AT_RANKS = (Quantity.RECALL, Quantity.PRECISION, Quantity.AVERAGE_PRECISION, Quantity.F1, Quantity.CORRELATION)
_AT_RANK = regex(r"(?:@|_at_)[_ ]?\d")
"""... and what is a ranking where the name says of how many; without that it counts with one of the sure ones."""
NEAR_AUC = 0.04
"""How far above 0.5 the AUC of a guess may be. Chosen: the error over some hundred rows."""
LEAST_AUC = 8
"""Evaluations of an AUC that is a guess. Chosen: by hand."""
LOW_AUC = 0.4
"""An AUC below which a model is wrong more often than a guess. Chosen: hundreds of rows bring a guess nearer."""
QUALITY_EARLY = 4
"""Part of the evaluations in which the frequencies of classes are learnt. Chosen: frequencies come first."""
MIN_LOSS_FALL_SHARE = 0.03
"""Share by which a loss falls at all. Chosen: beyond noise."""
MAX_SCORE = 100.0
"""Beyond it a score of evaluation is none. Chosen: scores are shares, in percent at most."""
_CLOCKS = regex(
    r"time|second|per_s|speed|throughput|steps?$|epoch|samples|num_|_num|count|total|size|tokens|flos|memory|mem_|lr$"
    r"|learning_rate|momentum|weight_decay|length|ppl_max|std|support|threshold"
)
_OF_DATA = regex(
    r"(?:^|[_/ (])(?:entropy|floor|baseline|chance|bayes|oracle|majority|prior|random|persistence|naive|climatology)"
    r"(?:[_/ ()]|$)",
    needs=(
        "entropy",
        "floor",
        "baseline",
        "chance",
        "bayes",
        "oracle",
        "major",
        "prior",
        "rand",
        "persist",
        "naive",
        "clim",
    ),
)
"""Numbers that are known of the data before a model is trained, logged next to what the model reaches."""
_OF_INPUTS = regex(r"[_/ ](?:noisy|inputs?|mix(?:ture)?|unprocessed|degraded|bicubic)(?=[_/ ]|$)")
"""What a metric is called that is measured on the inputs as they are, before a model makes them better."""


def quality_metrics(run: Run) -> list[Series]:
    """Return the metrics of evaluation that measure quality: no losses, clocks, counts or sizes.

    A score of a class, such as Dice or F1, also without the word where it is logged with the evaluation loss alone.

    Raises CannotTell if there is none.
    """
    rankings = {metric.name for metric in ranking_metrics(run)}
    found = [
        series
        for name, series in run.series.items()
        if (name in rankings or _is_quality(run, name)) and not _is_a_count(series.finite.value)
    ]
    if not found:
        raise CannotTell("not logged: a metric of evaluation other than the loss")
    return found


def _is_a_count(value: Floats) -> bool:
    """Say whether a number is the same whole one throughout, beyond any score: of the frames that were evaluated."""
    return len(value) > 0 and float(np.ptp(value)) == 0 and value[0] > MAX_SCORE and float(value[0]).is_integer()


_BASELINE = regex(
    r"(?:^|[_/. -])(?:baselines?|naive|persistence|climatology)(?=[_/. -]|$)",
    re.IGNORECASE,
    needs=("baseline", "naive", "persistence", "climatology"),
)
"""What a setting is called that says what an answer without a model reaches."""
_OF_A_TERM = frozenset({"coef", "coeff", "weight", "scale", "factor", "alpha", "lr", "rate"})
"""Words of settings that weigh a term of a loss."""
BETTER_THAN_BASELINE = 0.05
"""Share of a baseline by which evaluation ends below it. Chosen: a chance of rows makes less."""


def below_baseline(run: Run) -> str:
    """Return, in words, that evaluation ends below all that settings give as baselines of it; "" where it does not."""
    measures = {"loss": "eval_loss", run.settings.text("loss_type"): "eval_loss"}
    errors = {series.name.removeprefix("eval_"): series.name for series in run.with_role(*ERRORS_OF_VALUES)}
    found: dict[str, list[tuple[float, str]]] = {}
    for setting in run.settings.values():
        value = run.setting(setting.name) if _BASELINE.search(setting.key) else None
        words = pieces_of(setting.key)
        names = [name for word, name in {**errors, **measures}.items() if word in words and name in run]
        if value is not None and value > 0 and len(names) == 1 and _OF_A_TERM.isdisjoint(words):
            found.setdefault(names[0], []).append((value, setting.key))
    for name, baselines in found.items():
        (least, key), evaluation = min(baselines), run[name].finite.value
        last = evaluation[-LEAST_FOR_MEDIAN:]
        if len(last) == LEAST_FOR_MEDIAN and float(last.max()) <= (1 - BETTER_THAN_BASELINE) * least:
            return f"{name} ends at {figure(last[-1])}, below {figure(least)}, which settings give as {key}"
    return ""


def ranking_metrics(run: Run) -> list[Series]:
    """Return how well the run ranks, such as nDCG or recall@20: of whole rankings, so of evaluation by any name."""
    at_rank = [series for series in run.with_role(*_AT_RANKS, parts=True) if _AT_RANK.search(series.name)]
    sure = [*run.with_role(*_RANKINGS, parts=True), *at_rank]
    if not sure:
        return []
    found = {series.name for series in (*sure, *run.with_role(*_AT_RANKS))}
    return [series for name, series in run.series.items() if name in found]


def all_zero(series: Series) -> bool:
    """Say whether a metric is exactly zero wherever it is logged: then it was not measured, or measured wrongly."""
    return not series.finite.value.any()


def _is_quality(run: Run, name: str) -> bool:
    role = run[name].role
    if role is not None and role.quantity in _OF_A_CLASS and role.is_whole and not role.is_evaluation:
        if "eval_loss" not in run or f"eval_{name.lower()}" in run:
            return False
        return np.array_equal(run[name].step, run["eval_loss"].step)
    if _BY_NAME.match(name) is None or "loss" in name or _CLOCKS.search(name) or _OF_DATA.search(name):
        return False
    return not _is_of_inputs(run, name)


def _is_of_inputs(run: Run, name: str) -> bool:
    """Say whether a metric is one number, that of the inputs, next to the same of what the model makes of them.

    So is one of no known quantity that is another number at all records of training: no update moves it.
    """
    of_model, trained = _OF_INPUTS.sub("", name), name.removeprefix("eval_")
    value = _only_value(run[name])
    if value is None:
        return False
    other = _only_value(run[trained]) if trained != name and trained in run else None
    is_fixed = run[name].role is None and other is not None and other != value
    return is_fixed or (of_model != name and of_model in run)


def _only_value(series: Series) -> float | None:
    """Return the one finite value of a metric; None where it has none or several."""
    values = series.finite.value
    return float(values[0]) if len(values) and values.min() == values.max() else None


_MIXED = regex(
    r"(?:mix_?up|cut_?mix|(?:label_)?smooth(?:ing)?)(?:_(?:alpha|factor|val))?", re.IGNORECASE, needs=("mix", "smooth")
)
"""Settings of training, in timm's words and others', and augmentations, that evaluation goes without."""


def mixes_labels(run: Run) -> bool:
    """Say whether settings mix or smooth the labels of training alone, which keeps its loss up."""
    for setting in run.settings.values():
        values = setting.value if isinstance(setting.value, tuple) else (setting.value,)
        named = _MIXED.fullmatch(setting.last_part) is not None
        if any((named and value) or (isinstance(value, str) and _MIXED.fullmatch(value)) for value in values):
            return True
    return False


_AUGMENTATION = regex(r"(?:data|train|auto|rand|image|spec)?_?aug(?:ment(?:s|ations?)?)?", re.IGNORECASE)
"""What a setting is called that says how training rows are changed."""
_NO_AUGMENTATION = ("none", "off", "no", "false")
"""What it says where they are not."""
MUCH_DROPOUT = 0.3
"""Share that is dropped from which on training does far worse. Chosen: a tenth costs little."""


def harder_in_training(run: Run) -> list[str] | None:
    """Return what makes training rows harder than those of evaluation by the settings; None where these do not say."""
    rate = run.setting("dropout")
    augmented = [setting for setting in run.settings.values() if _AUGMENTATION.fullmatch(setting.last_part)]
    found = [each.key for each in augmented if each.value and str(each.value).lower() not in _NO_AUGMENTATION]
    if rate is not None and rate >= MUCH_DROPOUT:
        found.append(f"dropout of {figure(rate)}")
    return found if found or (rate == 0 and augmented) else None


_OF_PRECISION = regex(r"auc?[_/ .-]?pr|prc?[_/ .-]?auc", re.IGNORECASE)
"""The area under the curve of precision and recall, where a guess has the share of positive rows: `pr_auc`, `auprc`."""


def is_auc(series: Series) -> bool:
    """Say whether a metric is an area under the ROC curve, also of a set with a name or a number of its own."""
    is_area = series.role is not None and series.role.quantity is Quantity.AUC
    return is_area and _OF_PRECISION.search(series.name) is None


def auc_of(run: Run) -> Series | None:
    """Return the area under the ROC curve without what is not finite, that of evaluation first; None if none is."""
    aucs = sorted(
        (series for series in run.series.values() if is_auc(series)),
        key=lambda series: not series.name.startswith("eval_"),
    )
    return aucs[0].finite if aucs else None


def is_of_a_guess(auc: Series) -> bool:
    """Say whether an area of evaluation stays at one half, which is that of any ranking without the inputs.

    Below it lies, down to `LOW_AUC`, what fits the training rows and says nothing of others.
    """
    if not auc.name.startswith("eval_") or len(auc) < LEAST_AUC:
        return False
    later = median(auc.value[len(auc) // 2 :])
    return LOW_AUC <= later <= 0.5 + NEAR_AUC and float(auc.value.max()) <= 0.5 + 2 * NEAR_AUC


def goes_on_falling(run: Run) -> bool:
    """Say whether the evaluation loss falls beyond its first evaluations, in which class frequencies are learnt."""
    loss = finite_of(run, "eval_loss").value
    after = loss[len(loss) // QUALITY_EARLY :]
    return (
        len(loss) >= LEAST_FOR_HALVES
        and after[0] > 0
        and float(after[-2:].max()) < (1 - MIN_LOSS_FALL_SHARE) * after[0]
    )


# Whether any answer of an evaluation is right, by scores of whole answers and by error rates.


ANSWERS_LEAST = 5
"""Evaluations. Chosen: a translator or recogniser that learns may need some until anything is right."""
MIN_ERROR_RATE = 0.98
"""An error rate from which on all answers are wrong. Chosen: that of empty answers."""
EARLY_EVALUATIONS_SHARE = 0.2
"""The first share of the evaluations, in which the rate may be lower. Chosen: that of random answers at first."""
PER_CENT = 5.0
"""Above this an error rate is in per cent. Chosen: insertions alone make one of five hundred per cent."""
ANSWERS_STANDS = 0.05
"""Of the loss: a training loss that moves by no more over the later three quarters stands. Chosen: by hand."""
ANSWERS_FALLS = 0.5
"""... and one that ends at this share of what it was at the first evaluation has fallen far. Chosen by hand."""
MIN_ERROR_FALL_SHARE = 0.02
"""A share of wrong answers that falls by so much of itself still gets better. Chosen: by hand."""
OF_THE_MEAN = 0.02
"""R² of answers that tell nothing, at most. Chosen: held-out targets have a mean of their own."""
FAR_WORSE = -1.0
"""R² of answers that tell nothing, at least. Chosen: with twice the variance of targets they are no one answer."""
_SCORES = (Quantity.BLEU, Quantity.CHRF)


def is_error_rate(series: Series) -> bool:
    """Say whether a metric is the rate of wrong characters, words, phones or units, which is best at zero."""
    return series.role is not None and series.role.quantity is Quantity.WORD_ERROR_RATE


def is_written_score(series: Series) -> bool:
    """Say whether a metric scores answers as they are written, which is zero where none is right."""
    return series.role is not None and series.role.quantity in _SCORES


def nothing_right(run: Run) -> Series | None:
    """Return a score of whole answers that is zero throughout, or an error rate that stays at 100 %, or None."""
    for name in run.series:
        series = run[name].finite
        if len(series) < ANSWERS_LEAST:
            continue
        if is_written_score(series) and not series.value.any():
            return series
        if is_error_rate(series) and _all_wrong(series):
            return series
    return None


KNOWN_PERPLEXITY = 1.5
"""Perplexity up to which the next token is mostly known, given those before it. Chosen: two of three then are."""


def next_token_known(run: Run) -> Series | None:
    """Return the perplexity that ends so low that the next token is mostly known, that of evaluation first; or None."""
    for phase in ("eval", "train"):
        for series in run.with_role(Quantity.PERPLEXITY, phase=phase):
            value = series.finite.value
            if len(value) and float(value.min()) >= 1 and median(value[-ANSWERS_LEAST:]) <= KNOWN_PERPLEXITY:
                return series.finite
    return None


def no_better_than_the_mean(run: Run) -> Series | None:
    """Return the R² of evaluations that is about that of one answer for all, the mean of the targets; or None."""
    for series in run.with_role(Quantity.R2, phase="eval"):
        value = series.finite.value
        if len(value) >= ANSWERS_LEAST and float(value.max()) <= OF_THE_MEAN and median(value) > FAR_WORSE:
            return series.finite
    return None


def worst_written(run: Run) -> Series | None:
    """Return the lowest score of written answers as a share that is wrong, 1 for all, or None if none is logged."""
    written = [
        (series.finite, is_error_rate(series))
        for series in run.series.values()
        if is_error_rate(series) or is_written_score(series)
    ]
    shares = [
        Series(series.name, series.step, _wrong(series.value, rate))
        for series, rate in written
        if len(series) >= ANSWERS_LEAST
    ]
    return max(shares, key=lambda share: median(share.value[-ANSWERS_LEAST:]), default=None)


def still_gains(wrong: Series, since: float) -> bool:
    """Say whether less than half is wrong (`worst_written`) at the end, and clearly less than at a step."""
    before, end = wrong.at(since), float(wrong.value[-2:].max())
    return before is not None and end < min(0.5, (1 - MIN_ERROR_FALL_SHARE) * before)


def _wrong(values: Floats, rate: bool) -> Floats:
    if rate:
        return values / 100 if float(values.max()) > PER_CENT else values
    return 1 - (values / 100 if float(values.max()) > 1 else values)


def _all_wrong(rate: Series) -> bool:
    later = rate.value[round(EARLY_EVALUATIONS_SHARE * len(rate)) :]
    if float(later.max()) > PER_CENT:
        return float(later.min()) >= 100 * MIN_ERROR_RATE
    # One per cent throughout is that of a model which knows all: a share of one is what comes again and again.
    return float(later.min()) >= MIN_ERROR_RATE and abs(median(later) - 1) < 1 - MIN_ERROR_RATE


def has_settled(loss: Series) -> bool:
    """Say whether a training loss hardly moves after the first quarter of its records."""
    level = blocks(loss.value[len(loss) // 4 :], 10).level
    return float(np.ptp(level)) <= ANSWERS_STANDS * abs(float(level[-1]))


def has_fallen_far(loss: Series, since: float) -> bool:
    """Say whether a training loss has fallen by half and more since a step."""
    before = loss.between(0, since).value
    return len(before) > 0 and 0 <= float(loss.value[-3:].mean()) <= ANSWERS_FALLS * float(before[-1])


# Terms of a loss: those that set in during a run, as planned, and those that outweigh what evaluation measures.


TERMS_LEAST = 5
"""Records in a row at zero, from the first on, and then others mostly not. Chosen: terms are delayed by more."""
MIN_RECORDS_NEAR_ONSET = 2
"""Records by which a loss is seen to rise after a term set in. Chosen: it may grow."""
SHORTLY_OF_RUN = 0.02
"""The same as a share of the records. Chosen: it may grow."""
MAX_PLAN_STRIDES = 3
"""Different strides that a plan takes at most. Chosen: rounding makes two of one, and the last is cut short."""
MIN_PLAN_RISE_RATIO = 1.2
"""Times what it was that a plan raises it to. Chosen: by hand."""
NEAR_LOG = 0.4
"""Logarithms by which a term and the evaluation loss that it is may differ. Chosen: dropout moves it so far."""
_TERM = regex(r"loss|weight|factor|coef|penalty|(?:^|[/_.])(?:adv|disc|gan|kl|reg|beta|lambda)", re.IGNORECASE)
_NO_TERM = regex(r"^eval_|^(?:loss|learning_rate|weight_decay|loss_scale|grad_norm)$|scale|skip|weight_norm")


@dataclass(frozen=True, slots=True)
class SetsIn:
    """A term that is zero up to some step, and not from there on.

    Args:
        name: What it is called.
        last_zero: The last step at which it is zero.
        step: The first at which it is not.
    """

    name: str
    last_zero: float
    step: float


def terms_set_in(run: Run) -> list[SetsIn]:
    """Return the terms of the loss that set in: before and after, the loss is not the same quantity."""
    names = (name for name in run.series if _TERM.search(name) and not _NO_TERM.search(name))
    return [term for name in names if (term := _sets_in(run[name].finite)) is not None]


def refuse_new_terms(run: Run) -> None:
    """Raise CannotTell if a term of the loss sets in during the run: its levels before and after do not compare."""
    if terms := terms_set_in(run):
        sets_in = terms[0]
        raise CannotTell(f"{sets_in.name} sets in at {run.place(sets_in.step)}: the loss is another one from there")


def term_set_in(run: Run, step: float) -> SetsIn | None:
    """Return the term that sets in where the loss begins to rise at a step, if one does: shortly before, or next to it.

    The loss is then another one from there on, and what it does there says nothing of the weights.
    """
    steps = run["loss"].finite.step
    at, near = int(np.searchsorted(steps, step)), max(MIN_RECORDS_NEAR_ONSET, round(SHORTLY_OF_RUN * len(steps)))
    earliest, latest = float(steps[max(0, at - near)]), float(steps[min(len(steps) - 1, at + 1)])
    return next(
        (sets_in for sets_in in terms_set_in(run) if sets_in.last_zero <= latest and sets_in.step >= earliest), None
    )


def planned_rise(run: Run, onset: float, end: float) -> Series | None:
    """Return what a plan raises between two steps, such as the weight of a term or a margin, if anything is.

    A plan has no noise: it takes few strides, all upward. Counters, clocks and rates, which are planned too, are none
    of it, but a margin may be one.
    """
    for series in run.series.values():
        if series.role is not None and series.role.quantity is not Quantity.MARGIN:
            continue
        value, step = series.finite.value, series.finite.step
        strides = np.diff(value)
        if len(value) < 2 * TERMS_LEAST or not (strides >= 0).all() or _counts(step, value):
            continue
        wide = strides[strides > 0]
        if len(wide) < TERMS_LEAST or len({f"{stride:.2g}" for stride in wide}) > MAX_PLAN_STRIDES:
            continue
        before, after = series.finite.at(onset), series.finite.at(end)
        if before is not None and after is not None and after > MIN_PLAN_RISE_RATIO * before >= 0:
            return series
    return None


def _counts(step: Floats, value: Floats) -> bool:
    """Say whether values count records or steps, by whatever name: whole numbers in one stride all the way."""
    strides = np.diff(value)
    is_even = bool((strides == strides[0]).all()) or bool(
        np.allclose(strides * (step[1] - step[0]), strides[0] * np.diff(step))
    )
    return bool(step[-1] == value[-1]) or (is_even and are_whole(value))


def measured_term(run: Run) -> Series | None:
    """Return the term of the training loss that evaluation measures alone; None where it measures the whole."""
    if "eval_loss" not in run or "loss" not in run or _has_same_size(run["loss"], run["eval_loss"]):
        return None
    terms = (series for series in run.with_role(Quantity.LOSS, phase="train", parts=True) if series.name != "loss")
    return next((term.finite for term in terms if _has_same_size(term, run["eval_loss"])), None)


def _has_same_size(loss: Series, evaluation: Series) -> bool:
    _, train, held_out = beside_training(loss.finite, evaluation)
    sound = (train > 0) & (held_out > 0)
    return bool(sound.any() and sound.all()) and abs(np.log(median(train / held_out))) < NEAR_LOG


def _sets_in(series: Series) -> SetsIn | None:
    there = np.flatnonzero(series.value)
    if len(there) < TERMS_LEAST or there[0] < TERMS_LEAST or 2 * len(there) < len(series) - there[0]:
        return None
    first = int(there[0])
    return SetsIn(series.name, float(series.step[first - 1]), float(series.step[first]))
