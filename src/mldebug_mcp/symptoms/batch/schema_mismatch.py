"""Columns do not fit the trainer."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.symptoms.batch.registry import (
    BatchEvidence,
    batch_check,
)

CHANNELS = (1, 3, 4)
"""Lengths of an axis that may be colours. Chosen: grey, colour, and colour with transparency."""


@batch_check(
    severity="error",
    why="The trainer fails on a missing column, or drops the columns that it does not know and trains on the rest.",
    fix=(
        "Give the columns that the trainer wants: input_ids and labels (SFT), prompt, chosen and rejected (DPO), "
        "prompt (GRPO), whole numbers for classes; remove_unused_columns=False where a collator needs more."
    ),
    fixes={
        "Axolotl": "type: and field_* under datasets: must name the columns.",
        "LLaMA-Factory": "map the columns in dataset_info.json.",
        "Unsloth": "dataset_text_field or formatting_func must fit the columns.",
    },
    quotes=("hfcourse_removed_columns", "hfcourse_walk_pipeline"),
)
def schema_mismatch(batch: Batch) -> BatchEvidence | None:
    """A column that the purpose needs is missing, is there for some rows only, or holds values of another kind.

    Not this when: there are more columns than are needed.
    """
    told = [problem for problem in batch.problems if problem.check == "schema_mismatch"]
    said = [*_float_classes(batch), *_channels_last(batch), *_lacking(batch), *(problem.summary for problem in told)]
    if not said:
        return None
    rows = np.unique([row for problem in told for row in problem.rows]).astype(np.int64)
    return BatchEvidence("; ".join(said[:4]), rows)


def _lacking(batch: Batch) -> list[str]:
    """Return what the purpose needs and the batch lacks."""
    names = {side.name for side in batch.sides}
    seen = ", ".join(batch.columns[:8])
    if batch.purpose == "dpo" and not {"chosen", "rejected"} <= names:
        return [f"dpo needs chosen and rejected sequences; the columns are {seen}"]
    if batch.purpose in ("sft", "pretraining", "vlm") and batch.purpose_given:
        if "" not in names and "completion" not in names:
            return [f"{batch.purpose} needs input_ids; the columns are {seen}"]
        if batch.classes is not None:
            return [f"{batch.purpose} needs one label for each token; there is one for each row"]
    if batch.purpose == "classification" and batch.purpose_given and batch.classes is None and not batch.trained_sides:
        return [f"classification needs labels; the columns are {seen}"]
    if batch.purpose == "generation" and not names:
        return [f"generation needs input_ids; the columns are {seen}"]
    return []


def _channels_last(batch: Batch) -> list[str]:
    """Return what is wrong with images whose last axis is the colours: `pixel_values` of Transformers have them first.

    Said only where the model's configuration is one of Transformers: networks of Keras and JAX want the colours last.
    """
    images = batch.floats.get("pixel_values")
    if images is None or images.ndim != 4 or not batch.model.given:
        return []
    rows, first, height, last = images.shape
    if last not in CHANNELS or first in CHANNELS:
        return []
    return [
        f"pixel_values have the shape ({rows}, {first}, {height}, {last}): the {last} channels are last, and models of "
        f"Transformers want them first, as ({rows}, {last}, {first}, {height})"
    ]


def _float_classes(batch: Batch) -> list[str]:
    """Return what is wrong with one whole number per row, written as a float, for a model of several classes."""
    classes = batch.model.num_labels
    name = next((name for name in ("labels", "label") if name in batch.floats), None)
    if name is None or classes is None or classes < 2:
        return []
    labels = batch.floats[name]
    if labels.ndim != 1 or len(labels) != batch.rows or not bool(np.all(labels == np.floor(labels))):
        return []
    return [
        f"{name} are floats (such as {labels[0]:.1f}): a model of {classes} classes wants one whole number for each row"
    ]
