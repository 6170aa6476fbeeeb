"""Float inputs far from zero mean and unit variance."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.columns import FLOAT_INPUTS, SCALED_INSIDE
from mldebug_mcp.batch.ragged import Floats
from mldebug_mcp.models.base import Severity
from mldebug_mcp.symptoms.batch.registry import (
    BatchEvidence,
    batch_check,
)
from mldebug_mcp.text import counted

MOST_MEAN = 3.0
"""Absolute mean of an input, of unit variance if normalised. Chosen: far from what normalised inputs show."""
MOST_SPREAD = 5.0
"""Standard deviation of an input, 1 if normalised. Chosen: far from what normalised inputs show."""
LEAST_VALUES = 16
"""Finite values that an input must have. Chosen: fewer give no mean and deviation."""
LEAST_LARGEST = 0.01
"""Least that the largest absolute value may be. Chosen: a row of length one has larger ones up to ten thousand
features."""
LEAST_WITHIN = 0.02
"""Deviation within an image. Chosen: a normalised photograph has about 1, one from 0 to 1 a few tenths; black images
have 0, and what was divided by 255 twice some thousandths."""
LEAST_ROWS = 8
"""Rows that a table must have for its features to be judged one by one. Chosen: fewer give no deviation of a
feature."""


@batch_check(
    severity="warning",
    why=(
        "Inputs in the hundreds saturate the first layers or blow the gradient up; a pretrained network sees values "
        "that it never saw."
    ),
    fix=(
        "Use the model's own processor, or subtract the mean and divide by the deviation of the training set; "
        "images: divide by 255 first."
    ),
    quotes=("slavv_image_range", "slavv_finetune_preprocessing", "sb3_normalize_input"),
)
def input_not_normalized(batch: Batch) -> BatchEvidence | None:
    """An input's mean is beyond 3 or its deviation beyond 5, or it hardly varies, or not within images.

    Not this when: images lie between -1 and 1 or 0 and 1 (the latter is a remark); the column holds embeddings,
    rewards or log-probabilities, which are on other scales; a forecasting model scales `past_values` itself, or the
    file holds bytes, which something converts before the first layer (remarks). The bounds were chosen by hand, far
    from what normalised inputs show.
    """
    said, severity = [], None
    for name, array in batch.floats.items():
        if name not in FLOAT_INPUTS:
            continue
        values = array[np.isfinite(array)]
        problem = _problem(values, array)
        if problem is None:
            continue
        excuse = _excuse(batch, name)
        said.append(f"{name} {problem[0]}{excuse}")
        grade: Severity = "info" if excuse else problem[1]
        severity = grade if severity in (None, "info") else severity
    return BatchEvidence("; ".join(said), severity=severity) if said else None


def _excuse(batch: Batch, name: str) -> str:
    """Return why a scale may be meant, or nothing."""
    if name in SCALED_INSIDE:
        return "; models that scale by themselves take that"
    return "; these are bytes, to be scaled on their way to the model" if name in batch.stored_as_bytes else ""


def _within_images(array: Floats) -> float:
    """Return the largest deviation within a channel of an image, whichever axis the channels are on."""
    channels_last = array.shape[-1] < min(array.shape[-3], array.shape[-2])
    spatial = (-3, -2) if channels_last else (-2, -1)
    finite = np.where(np.isfinite(array), array, np.nan)
    return float(np.nanmax(np.nanstd(finite, axis=spatial), initial=0))


def _problem(values: Floats, array: Floats) -> tuple[str, Severity] | None:
    if values.size < LEAST_VALUES:
        return None
    mean, spread = float(values.mean()), float(values.std())
    low, high = float(values.min()), float(values.max())
    seen = f"has mean {mean:.3g} and deviation {spread:.3g} (from {low:.3g} to {high:.3g})"
    if spread < 1e-6 * max(1.0, abs(mean)):
        return f"is constant ({mean:.3g})", "warning"
    if max(-low, high) < LEAST_LARGEST:
        return seen, "warning"
    if abs(mean) > MOST_MEAN or spread > MOST_SPREAD:
        return seen, "warning"
    if array.ndim == 2 and len(array) >= LEAST_ROWS:
        finite = np.where(np.isfinite(array), array, np.nan)
        columns = np.nanstd(finite, axis=0), np.abs(np.nanmean(finite, axis=0))
        wide = int(((columns[0] > 100 * MOST_SPREAD) | (columns[1] > 100 * MOST_MEAN)).sum())
        return (f"has {counted(wide, 'feature')} on a scale of hundreds", "warning") if wide else None
    return _of_images(array, seen, low, high) if array.ndim >= 4 else None


def _of_images(array: Floats, seen: str, low: float, high: float) -> tuple[str, Severity] | None:
    if (within := _within_images(array)) < LEAST_WITHIN:
        return f"{seen}, but deviates by {within:.2g} at most within any image", "warning"
    if low >= 0 and high <= 1 and high > 0.5:
        return f"{seen}: pixels between 0 and 1, not normalised by mean and deviation", "info"
    return None
