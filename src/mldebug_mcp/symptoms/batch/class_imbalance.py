"""One class dominates."""

from __future__ import annotations

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.symptoms.batch.registry import (
    BatchEvidence,
    batch_check,
)
from mldebug_mcp.text import quoted

LEAST_LABELS = 8
"""Labels from which all of one class are told, and twice as many from which most are. Chosen: of fewer, chance explains
it."""
DOMINANT = 0.9
"""Share of the labels that are of one class. Source: karpathy_recipe, which calls a ratio of 1 to 10 imbalanced."""


@batch_check(
    severity="warning",
    why=(
        "Predicting the common class is a good answer to the loss: the rare ones are never learnt, and accuracy "
        "hides it."
    ),
    fix=(
        "Weight the loss or sample by class; watch recall of each class; start the last bias at the log of the "
        "class shares."
    ),
    quotes=("slavv_class_imbalance", "karpathy_recipe_init_bias", "slavv_shuffle"),
    purposes=("classification",),
    whole=True,
)
def class_imbalance(batch: Batch) -> BatchEvidence | None:
    """At least nine labels in ten are of one class (among 16 or more), or all of them (among 8 or more).

    Not this when: the batch is so small that chance explains it. One in ten is the ratio that karpathy_recipe names.
    """
    if batch.totals is None or batch.totals.labels < LEAST_LABELS:
        return None
    classes, labels = batch.totals.classes, batch.totals.labels
    common = max(classes, key=classes.__getitem__)
    share = classes[common] / labels
    only = len(classes) == 1
    if not (only or (share >= DOMINANT and labels >= 2 * LEAST_LABELS)):
        return None
    what = "all" if only else f"{share:.0%} of"
    name = quoted(batch.class_names[common]) if common in batch.class_names else common
    return BatchEvidence(
        f"{what} {labels} labels are class {name}",
        values={"share": share, "class": common, "classes": len(classes)},
    )
