"""Which of a log's metrics measure quality at evaluation: accuracies, scores of classes, rankings, texts."""

from __future__ import annotations

import re

import numpy as np

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.symptoms.registry import CannotTell

ACCURACIES = ("eval_accuracy", "accuracy")
"""What accuracies are called, that of evaluation first."""
# "metrics/mAP50(B)" is what Ultralytics measures on the validation set, "bbox/AP" what detectron2 does, "coco/bbox_mAP"
# MMDetection, "Pseudo dice" nnU-Net, a number for each class.
_BY_NAME = re.compile(
    r"eval_|metrics/(?:precision|recall|mAP|accuracy)|mean (?:Average global foreground|Pseudo) [Dd]ice$"
    r"|(?:bbox|segm|keypoints)/AP(?:50|75)?$|coco/\w+_mAP"
    r"|(?i:(?:sacre)?bleu(?:[-_@]?\d)?|chrf\+*|rouge[-_]?(?:\d|l|lsum))$"
)
"""By its name, or as what nobody measures while training: BLEU of whole outputs."""
_OF_A_CLASS = re.compile(r"m?(?:dice|iou|jaccard)|f1(?:_score)?|(?:dice|iou)_(?:score|coef)", re.IGNORECASE)
"""Measured in training too by Keras, which logs both; beside an evaluation loss alone it is of evaluation."""
_RANKING = re.compile(
    r"(?:eval_(?:.+[_/])?)?"
    r"(?:(?P<sure>n?dcg|mrr|hr|hit(?:s|_?r(?:ate|atio))?|(?:recall|precision|map|f1|r)(?=@\d))|recall|precision|map|f1)"
    r"(?:[@_]\d+)?",
    re.IGNORECASE,
)
"""What recommenders and search are measured by; a bare recall counts beside one of the sure ones."""
_CLOCKS = re.compile(
    r"time|second|per_s|speed|throughput|steps?$|epoch|samples|num_|_num|count|total|size|tokens|flos|memory|mem_|lr$"
    r"|learning_rate|length|ppl_max|std|support|threshold"
)
_AUC = re.compile(r"(?:eval_)?(?:\w+_)??(?:(?:roc_?)?auc(?:_?roc)?|auroc)", re.IGNORECASE)


def quality_metrics(run: Run) -> list[Series]:
    """Return the metrics of evaluation that measure quality: no losses, clocks, counts or sizes.

    A score of a class, such as Dice or F1, also without the word where it is logged with the evaluation loss alone.

    Raises CannotTell if there is none.
    """
    rankings = {one.name for one in ranking_metrics(run)}
    found = [one for name, one in run.series.items() if name in rankings or _is_quality(run, name)]
    if not found:
        raise CannotTell("not logged: a metric of evaluation other than the loss")
    return found


def ranking_metrics(run: Run) -> list[Series]:
    """Return how well the run ranks, such as nDCG or recall@20: of whole rankings, so of evaluation by any name."""
    found = {name: match for name in run.series if (match := _RANKING.fullmatch(name))}
    return [run[name] for name in found] if any(match["sure"] for match in found.values()) else []


def all_zero(series: Series) -> bool:
    """Say whether a metric is exactly zero wherever it is logged: then it was not measured, or measured wrongly."""
    return not series.finite.value.any()


def as_share(accuracy: float) -> float:
    """Return an accuracy as a share; above 1 it is in per cent."""
    return accuracy / 100 if accuracy > 1 else accuracy


def as_shares(accuracies: Floats) -> Floats:
    """Return the values of one accuracy as shares: if any is above 1, all are in per cent, the small ones too."""
    return accuracies / 100 if len(accuracies) and float(np.nanmax(accuracies)) > 1 else accuracies


def _is_quality(run: Run, name: str) -> bool:
    if _OF_A_CLASS.fullmatch(name):
        return _stands_beside(run, name)
    return _BY_NAME.match(name) is not None and not _CLOCKS.search(name) and "loss" not in name


def _stands_beside(run: Run, name: str) -> bool:
    """Say whether a metric is logged with the evaluation loss each time, and none of its name for evaluation."""
    if "eval_loss" not in run or f"eval_{name.lower()}" in run:
        return False
    return np.array_equal(run[name].step, run["eval_loss"].step)


def is_auc(name: str) -> bool:
    """Say whether a metric is an area under the ROC curve, also of a set with a name or a number of its own."""
    return _AUC.fullmatch(name) is not None
