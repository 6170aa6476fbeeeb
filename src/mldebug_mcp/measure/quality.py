"""Which of a log's metrics measure quality at evaluation: accuracies, scores of classes, rankings, texts."""

from __future__ import annotations

import re

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.shares import as_share, as_shares
from mldebug_mcp.measure.unknown import CannotTell

__all__ = [
    "ACCURACIES", "all_zero", "as_share", "as_shares", "auc_of", "goes_on_falling", "is_auc", "is_of_a_guess",
    "quality_metrics", "ranking_metrics",
]  # fmt: skip

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
_OF_A_CLASS = (Quantity.DICE, Quantity.IOU, Quantity.F1)
"""Measured in training too by Keras, which logs both; beside an evaluation loss alone it is of evaluation."""
_RANKINGS = (Quantity.NDCG, Quantity.MRR, Quantity.HIT_RATE)
"""What recommenders and search are measured by, whatever is logged beside it."""
_AT_RANKS = (Quantity.RECALL, Quantity.PRECISION, Quantity.AVERAGE_PRECISION, Quantity.F1, Quantity.CORRELATION)
_AT_RANK = re.compile(r"@[_ ]?\d")
"""... and what is a ranking where the name says of how many; without that it counts beside one of the sure ones."""
NEAR_AUC, LEAST_AUC = 0.04, 8
"""How far from 0.5 the AUC of a guess may be, over so many evaluations. Chosen: the error over some hundred rows."""
EARLY, FALL, LEAST_LOSSES = 4, 0.03, 4
"""Part of the evaluations in which the frequencies of classes are learnt, the share by which a loss falls at all, and
evaluations. Chosen: a quarter, as frequencies come first; beyond noise; both halves then hold two."""
_CLOCKS = re.compile(
    r"time|second|per_s|speed|throughput|steps?$|epoch|samples|num_|_num|count|total|size|tokens|flos|memory|mem_|lr$"
    r"|learning_rate|length|ppl_max|std|support|threshold"
)


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
    at_rank = [one for one in run.with_role(*_AT_RANKS, parts=True) if _AT_RANK.search(one.name)]
    sure = [*run.with_role(*_RANKINGS, parts=True), *at_rank]
    if not sure:
        return []
    found = {one.name for one in (*sure, *run.with_role(*_AT_RANKS))}
    return [one for name, one in run.series.items() if name in found]


def all_zero(series: Series) -> bool:
    """Say whether a metric is exactly zero wherever it is logged: then it was not measured, or measured wrongly."""
    return not series.finite.value.any()


def _is_quality(run: Run, name: str) -> bool:
    role = run[name].role
    if role is not None and role.quantity in _OF_A_CLASS and role.is_whole and not role.is_evaluation:
        return _stands_beside(run, name)
    return _BY_NAME.match(name) is not None and not _CLOCKS.search(name) and "loss" not in name


def _stands_beside(run: Run, name: str) -> bool:
    """Say whether a metric is logged with the evaluation loss each time, and none of its name for evaluation."""
    if "eval_loss" not in run or f"eval_{name.lower()}" in run:
        return False
    return np.array_equal(run[name].step, run["eval_loss"].step)


def is_auc(series: Series) -> bool:
    """Say whether a metric is an area under the ROC curve, also of a set with a name or a number of its own."""
    return series.role is not None and series.role.quantity is Quantity.AUC


def auc_of(run: Run) -> Series | None:
    """Return the area under the ROC curve without what is not finite, that of evaluation first; None if none is."""
    aucs = sorted((one for one in run.series.values() if is_auc(one)), key=lambda one: not one.name.startswith("eval_"))
    return aucs[0].finite if aucs else None


def is_of_a_guess(auc: Series) -> bool:
    """Say whether an area of evaluation stays at one half, which is that of any ranking without the inputs."""
    if not auc.name.startswith("eval_") or len(auc) < LEAST_AUC:
        return False
    later = float(np.median(auc.value[len(auc) // 2 :]))
    return abs(later - 0.5) <= NEAR_AUC and float(auc.value.max()) <= 0.5 + 2 * NEAR_AUC


def goes_on_falling(run: Run) -> bool:
    """Say whether the evaluation loss falls beyond its first evaluations, in which class frequencies are learnt."""
    loss = run["eval_loss"].finite.value if "eval_loss" in run else np.empty(0)
    after = loss[len(loss) // EARLY :]
    return len(loss) >= LEAST_LOSSES and after[0] > 0 and float(after[-2:].max()) < (1 - FALL) * after[0]
