"""Do columns fit the trainer, and are their numbers finite, scaled and not constant?"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from mldebug_mcp.batch.batch import Batch, CellCounts, ImageStats
from mldebug_mcp.batch.columns import (
    CLASS_NAMES,
    COLOUR_CHANNELS,
    FLOAT_INPUTS,
    MAX_SHARE_OUTSIDE,
    SCALED_INSIDE,
    Column,
    Origin,
    Scaling,
    channel_axis,
    is_float,
    is_of_images,
    origin,
    row_count,
    share_outside,
)
from mldebug_mcp.batch.formats.files import HELD_OUT
from mldebug_mcp.batch.sequences import Floats, Ints, Ragged
from mldebug_mcp.checks.batch import NO_ROWS, batch_evidence, in_rows, problems_of, rows_of
from mldebug_mcp.checks.check import Evidence, batch_check
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import counted, quoted, shorten
from mldebug_mcp.models.base import Severity

# Columns do not fit the trainer.


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
def schema_mismatch(batch: Batch) -> Evidence | None:
    """A column that the purpose needs is missing, is there for some rows only, or holds values of another kind.

    Not this when: there are more columns than are needed.
    """
    problems = problems_of(batch, "schema_mismatch")
    summaries = [*_float_classes(batch), *_image_shapes(batch), *_mask_values(batch), *_lacking(batch)]
    summaries += [problem.summary for problem in problems]
    if not summaries:
        return None
    return batch_evidence("; ".join(summaries[:4]), rows_of(problems))


def _lacking(batch: Batch) -> list[str]:
    names = {side.name for side in batch.sides}
    columns = ", ".join(batch.columns[:8])
    if batch.purpose == "dpo" and not {"chosen", "rejected"} <= names:
        return [f"dpo needs chosen and rejected sequences; the columns are {columns}"]
    if batch.purpose in ("sft", "pretraining", "vlm") and batch.purpose_given:
        if "" not in names and "completion" not in names:
            return [f"{batch.purpose} needs input_ids; the columns are {columns}"]
        if batch.classes is not None:
            return [f"{batch.purpose} needs one label for each token; there is one for each row"]
    unlabelled = batch.classes is None and (batch.purpose == "kto" or not batch.trained_sides)
    if batch.purpose in ("classification", "kto") and batch.purpose_given and unlabelled:
        return [f"{batch.purpose} needs labels; the columns are {columns}"]
    if batch.purpose == "generation" and not names:
        return [f"generation needs input_ids; the columns are {columns}"]
    return []


def _image_shapes(batch: Batch) -> list[str]:
    """Return what is wrong with the shape of images for the model: `pixel_values` of Transformers have channels first.

    Reported only where the model's configuration is one of Transformers: networks of Keras and JAX put colours last.
    """
    images = batch.floats.get("pixel_values")
    axis = channel_axis(images) if images is not None and batch.model.given else None
    if images is None or axis is None:
        return []
    shape = f"pixel_values have the shape {images.shape}"
    if axis == images.ndim - 1:
        return [f"{shape}: the {images.shape[-1]} channels are last, and models of Transformers want them first"]
    channels, size, sides = batch.model.channels, batch.model.image_size, images.shape[-2:]
    problems = [f"{shape}, and the model takes {channels} channels"] * (channels not in (None, images.shape[axis]))
    if size is not None and sides != (size, size):
        problems.append(f"{shape}, and the model takes images of {size} by {size}")
    return problems


def _mask_values(batch: Batch) -> list[str]:
    """Return what is wrong with the masks of segments: each pixel is 1 where the segment is, else 0."""
    if batch.masks is None or batch.masks.largest <= 1:
        return []
    return [f"mask_labels hold numbers up to {batch.masks.largest:g}, where 0 and 1 are wanted"]


def _float_classes(batch: Batch) -> list[str]:
    """Return what is wrong with one whole number per row, written as a float, for a model of several classes."""
    classes = batch.model.num_labels
    name = next((name for name in ("labels", "label") if name in batch.floats), None)
    if name is None or classes is None or classes < 2 or batch.model.problem_type == "regression":
        return []
    labels = batch.floats[name]
    if labels.ndim != 1 or len(labels) != batch.rows or not bool(np.all(labels == np.floor(labels))):
        return []
    return [
        f"{name} are floats (such as {labels[0]:.1f}): a model of {classes} classes wants one whole number for each row"
    ]


# Float inputs far from zero mean and unit variance.


MOST_MEAN = 3.0
"""Absolute mean of an input, of unit variance if normalised. Chosen: far from what normalised inputs show."""
MOST_SPREAD = 5.0
"""Standard deviation of an input, 1 if normalised. Chosen: far from what normalised inputs show."""
SERIES_AXES = 3
"""Axes of windows of a series: rows, steps, features. Source: batch_first of torch's recurrent layers."""
MAX_SMALL_INPUT = 100
"""Windows of a series below this are a remark. Chosen: many models of series scale each window by themselves."""
LEAST_VALUES = 16
"""Finite values that an input must have. Chosen: fewer give no mean and deviation."""
LEAST_LARGEST = 0.01
"""Least that the largest absolute value may be. Chosen: a row of length one has larger ones up to ten thousand
features."""
MIN_PEAK_OF_BYTES = 32
"""Greatest number of an image that was left as bytes. Chosen: darker images of bytes are rare."""
MAX_PEAK_SCALED = 8
"""Greatest number of an image that was scaled. Chosen: constants in use give less than 3."""
LEAST_WITHIN = 0.02
"""Deviation within an image. Chosen: a normalised photograph has about 1, one from 0 to 1 a few tenths; black images
have 0, and what was divided by 255 twice some thousandths."""
INPUT_NOT_NORMALIZED_LEAST_ROWS = 8
"""Rows a table must have for its features to be judged one by one. Chosen: fewer give no deviation of a feature."""


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
def input_not_normalized(batch: Batch) -> Evidence | None:
    """An input's mean is beyond 3 or its deviation beyond 5, or it hardly varies, or not within images.

    Images are compared with the constants of the model's processor, and of the processors in use: normalised or
    rescaled twice, with the constants of another processor, or with those of the channels in the opposite order.

    Not this when: images lie between -1 and 1 or 0 and 1 (the latter is a remark); the column holds embeddings,
    rewards or log-probabilities, which are on other scales; a forecasting model scales `past_values` itself, or the
    file holds bytes, which something converts before the first layer (remarks). The bounds were chosen by hand, far
    from what normalised inputs show.
    """
    problems, rows = [], NO_ROWS
    severity: Severity | None = None
    for name, array in batch.floats.items():
        if name not in FLOAT_INPUTS:
            continue
        values = array[np.isfinite(array)]
        if array.ndim == IMAGE_BATCH_AXES and len(raw := _left_as_bytes(array)):
            severity = "warning"
            problems.append(
                f"{name} reaches {array[raw].max():.4g} in {len(raw)} of {counted(len(array), 'image')}, "
                f"and {np.delete(array, raw, axis=0).max():.3g} in the others"
            )
            rows = np.union1d(rows, batch.numbers[raw]) if len(array) == batch.rows else rows
            continue
        problem = _of_processor(array, batch.model.scaling) or _problem(values, array)
        if problem is None:
            continue
        excuse = _excuse(batch, name)
        problems.append(f"{name} {problem[0]}{excuse}")
        grade: Severity = "info" if excuse else problem[1]
        severity = grade if severity in (None, "info") else severity
    return batch_evidence("; ".join(problems), rows, severity=severity) if problems else None


def _left_as_bytes(images: Floats) -> Ints:
    """Return the places of images on the scale of bytes among others that were scaled, or none."""
    flat = images.reshape(len(images), -1)
    peaks = np.abs(flat).max(axis=1)
    raw: Ints = np.flatnonzero(peaks > MIN_PEAK_OF_BYTES)
    scaled = np.setdiff1d(np.arange(len(flat)), raw)
    if not len(raw) or not len(scaled) or not (peaks[scaled] <= MAX_PEAK_SCALED).all():
        return NO_ROWS
    fractions = (flat[scaled] != np.floor(flat[scaled])).any(axis=1)
    return raw if bool(fractions.any()) else NO_ROWS


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


def _of_processor(array: Floats, own: Scaling | None) -> tuple[str, Severity] | None:
    """Return what the numbers of images tell of how they were made of bytes, where it is not as the processor does."""
    way = origin(array, own)
    if way is None:
        share = 0.0 if own is None else share_outside(array, own)
        if share <= MAX_SHARE_OUTSIDE:
            return None
        return f"has {share:.0%} of its numbers outside the range of the model's processor", "warning"
    wrong = _wrong_way(way, own)
    return (wrong, "warning") if wrong else None


def _wrong_way(way: Origin, own: Scaling | None) -> str:
    """Say what is wrong with how bytes became the numbers; empty where nothing is."""
    constants = f"mean {_listed(way.scaling.mean)} and deviation {_listed(way.scaling.deviation)}"
    if way.normalised > 1:
        return f"holds bytes that were normalised twice with {constants}"
    if way.rescaled > 1:
        return f"holds bytes that were divided by 255 twice, then normalised with {constants}"
    if way.is_reversed:
        return f"is normalised with {constants}: {way.scaling.name} has them in the opposite order of channels"
    if own is None or way.scaling.is_same(own):
        return ""
    theirs = f"mean {_listed(own.mean)} and deviation {_listed(own.deviation)}"
    return f"is normalised with {constants}, and the model's processor has {theirs}"


def _listed(numbers: tuple[float, ...]) -> str:
    return f"{numbers[0]:.3g}" if len(set(numbers)) == 1 else ", ".join(f"{number:.3g}" for number in numbers)


def _problem(values: Floats, array: Floats) -> tuple[str, Severity] | None:
    if values.size < LEAST_VALUES:
        return None
    mean, spread = float(values.mean()), float(values.std())
    low, high = float(values.min()), float(values.max())
    description = f"has mean {mean:.3g} and deviation {spread:.3g} (from {low:.3g} to {high:.3g})"
    if spread < 1e-6 * max(1.0, abs(mean)):
        return f"is constant ({mean:.3g})", "warning"
    if max(-low, high) < LEAST_LARGEST:
        return description, "warning"
    if abs(mean) > MOST_MEAN or spread > MOST_SPREAD:
        is_small = array.ndim == SERIES_AXES and max(-low, high) < MAX_SMALL_INPUT
        return description, "info" if is_small else "warning"
    if array.ndim == 2 and len(array) >= INPUT_NOT_NORMALIZED_LEAST_ROWS:
        finite = np.where(np.isfinite(array), array, np.nan)
        finite = finite[:, np.isfinite(array).any(axis=0)]
        columns = np.nanstd(finite, axis=0), np.abs(np.nanmean(finite, axis=0))
        wide = int(((columns[0] > 100 * MOST_SPREAD) | (columns[1] > 100 * MOST_MEAN)).sum())
        return (f"has {counted(wide, 'feature')} on a scale of hundreds", "warning") if wide else None
    return _of_images(array, description, low, high) if array.ndim >= 4 else None


def _of_images(array: Floats, description: str, low: float, high: float) -> tuple[str, Severity] | None:
    if (within := _within_images(array)) < LEAST_WITHIN:
        return f"{description}, but deviates by {within:.2g} at most within any image", "warning"
    if low >= 0 and high <= 1 and high > 0.5:
        return f"{description}: pixels between 0 and 1, not normalised by mean and deviation", "info"
    return None


# Images, or latents of them, of which some are on another scale or have their channels in another order.


MIN_TIMES_SPREAD = 2.5
"""Times by which deviations of the two kinds differ. Chosen: bytes, constants of processors and VAE factors give 3 and
more."""
MIN_TIMES_OF_SOUNDS = 100
"""The same for sounds, which are loud or soft. Chosen: numbers of 16 bits are 32,768 times as large as floats."""
SOUNDS = ("audio", "waveform", "waveforms", "input_values")
"""Columns of sampled sounds."""
MIN_ROWS_OF_KIND = 3
"""Rows of the rarer kind. Chosen: one or two may be damaged."""
MIN_ROWS_OF_SCALES = 16
"""Rows from which two kinds differ from a wide spread. Chosen: of fewer, gaps are large by chance."""
MAX_SMOOTHNESS_APART = 0.25
"""How far correlations of neighbours differ in the two kinds. Chosen: photographs and noise are four times as far."""
MIN_IMAGES_OF_PART = 16
"""Images of a file or a split from which its mean tells its kind. Chosen: fewer are of one scene."""
MAX_SHARE_OF_DISTANCE = 0.25
"""Distance of the means of channels in opposite order, as a share of that in the same one. Chosen: real sets differ."""
MIN_ERRORS_APART = 6
"""Standard errors by which the first channel is off the last, in both. Chosen: no chance among many files."""


@batch_check(
    severity="warning",
    why="The network sees the same content as two different inputs: statistics of its layers fit neither.",
    fix="Give all images to one processor, and all latents the VAE's scaling_factor; OpenCV reads BGR, others RGB.",
    quotes=("slavv_finetune_preprocessing", "karpathy_recipe_visualize_before_net"),
    whole=True,
)
def parts_prepared_apart(batch: Batch) -> Evidence | None:
    """Images of a file or of the evaluation split are on another scale, or have their channels in the opposite order.

    Not this when: a part holds few images; their first and last channel have nearly the same mean.
    """
    summaries = []
    images = {} if batch.overlap is None else batch.overlap.images
    for name in dict.fromkeys(column for column, _ in images):
        parts = [
            (part or "these data", stats)
            for (column, part), stats in images.items()
            if column == name and stats.images >= MIN_IMAGES_OF_PART and stats.deviation
        ]
        for part, stats in parts[1:]:
            if differs := _prepared_apart(parts[0][1], stats):
                summaries.append(f"{name} of {part} {differs} of {parts[0][0]}")
    return batch_evidence("; ".join(summaries[:MAX_SHOWN_COLUMNS])) if summaries else None


def _prepared_apart(stats: ImageStats, other: ImageStats) -> str:
    """Return how the images of another part differ from those of the first one, in words; empty if they do not."""
    here, there = stats.channels, other.channels
    if here.shape != there.shape:
        return ""
    times = max(stats.deviation, other.deviation) / min(stats.deviation, other.deviation)
    if times >= MIN_TIMES_SPREAD:
        return f"deviate by {other.deviation:.3g}, against {stats.deviation:.3g}"
    direct, turned = np.linalg.norm(here - there), np.linalg.norm(here - there[::-1])
    apart = [abs(part.difference) / part.images >= MIN_ERRORS_APART * part.error for part in (stats, other)]
    if len(here) == COLOUR_CHANNELS and all(apart) and turned <= MAX_SHARE_OF_DISTANCE * direct:
        means = ", ".join(f"{mean:.3g}" for mean in there)
        return f"have the channel means {means}, in the opposite order of those"
    return ""


@batch_check(
    severity="warning",
    why="The loss is that of the larger rows alone, and the network learns to tell the two kinds apart.",
    fix="Multiply each latent once by the VAE's scaling_factor, where it is encoded; give all images to one processor.",
    quotes=("slavv_finetune_preprocessing",),
)
def rows_on_two_scales(batch: Batch) -> Evidence | None:
    """The deviations within images or latents fall in two groups, 2.5 times or more apart, and nothing lies between.

    Of sounds it is 100 times.

    Not this when: deviations vary widely in either group; a group has fewer than three rows; one is smooth and the
    other is noise, as images that show nothing are; images of bytes stand among scaled ones (`input_not_normalized`).
    """
    for name, array in batch.floats.items():
        image_like = is_of_images(name) and array.ndim in (IMAGE_BATCH_AXES, VIDEO_BATCH_AXES)
        sound = name in SOUNDS and array.ndim > 1
        if not (image_like or sound) or len(array) != batch.rows or len(array) < MIN_ROWS_OF_SCALES:
            continue
        if image_like and name in FLOAT_INPUTS and len(_left_as_bytes(array)):
            continue
        with np.errstate(invalid="ignore"):
            spread = array.reshape(len(array), -1).std(axis=1)
        places = np.flatnonzero(np.isfinite(spread) & (spread > MIN_SPREAD_OF_IMAGE))
        places = places[np.argsort(spread[places])]
        logs = np.log(spread[places])
        if len(logs) < MIN_ROWS_OF_SCALES:
            continue
        cut = int(np.argmax(np.diff(logs))) + 1
        gap, width = logs[cut] - logs[cut - 1], max(np.ptp(logs[:cut]), np.ptp(logs[cut:]))
        groups = sorted((places[:cut], places[cut:]), key=len)
        if (
            gap < math.log(MIN_TIMES_OF_SOUNDS if sound else MIN_TIMES_SPREAD)
            or width > gap
            or len(groups[0]) < MIN_ROWS_OF_KIND
        ):
            continue
        low, high = (_smoothness(array[group]) for group in groups)
        if abs(low - high) > MAX_SMOOTHNESS_APART:
            continue
        rare, common = (median(spread[group]) for group in groups)
        summary = f"{name} deviate by {rare:.3g} in {{rows}}, and by {common:.3g} in the others"
        return in_rows(batch, batch.numbers[np.sort(groups[0])], summary)
    return None


def _smoothness(images: Floats) -> float:
    """Return the median correlation of neighbouring numbers within images, which no scale changes."""
    centred = images - images.mean(axis=tuple(range(1, images.ndim)), keepdims=True)
    flat = [part.reshape(len(images), -1) for part in (centred[..., 1:], centred[..., :-1], centred)]
    return median((flat[0] * flat[1]).mean(axis=1) / np.square(flat[2]).mean(axis=1))


# Images of one colour.


IMAGE_BATCH_AXES = 4
"""Axes of a batch of images. Source: Transformers' `pixel_values`."""
VIDEO_BATCH_AXES = 5
"""Axes of a batch of films. Source: Transformers' `pixel_values`."""
MIN_SPREAD_OF_IMAGE = 1e-6
"""Deviation of the pixels of an image that is not blank. Chosen: rounding alone gives less."""


@batch_check(
    severity="warning",
    why="The model is taught a class or an answer for an image that shows nothing.",
    fix="Open the files of these rows: a failed download or decoding, a crop that misses the object, a black frame.",
    quotes=("karpathy_recipe_inspect_data", "karpathy_recipe_visualize_before_net"),
)
def blank_images(batch: Batch) -> Evidence | None:
    """Some images have the same value in all pixels of each channel, and others do not.

    Not this when: all images are constant (`input_not_normalized`); the images stand with text, where rows without an
    image get a blank one (a remark).
    """
    for name, images in batch.floats.items():
        if (
            name not in FLOAT_INPUTS
            or images.ndim not in (IMAGE_BATCH_AXES, VIDEO_BATCH_AXES)
            or len(images) != batch.rows
        ):
            continue
        axis = channel_axis(images)
        if axis is None:
            continue
        pixels = tuple(at for at in range(1, images.ndim) if at != axis)
        spread = images.max(axis=pixels) - images.min(axis=pixels)
        blank = np.flatnonzero(spread.max(axis=1) < MIN_SPREAD_OF_IMAGE)
        if 0 < len(blank) < batch.rows:
            return in_rows(
                batch,
                batch.numbers[blank],
                f"{name}: {{rows shows|show}} one colour",
                values={"images": len(blank)},
                severity="info" if batch.sides else None,
            )
    return None


@batch_check(
    severity="error",
    why="One such value makes the loss NaN and, after one step, every weight.",
    fix=(
        "Find the row's source: a division by a zero deviation, a log of zero, a missing value read as NaN; clean "
        "it before the collator."
    ),
    quotes=("axolotl_nan_forward_backward", "karpathy_recipe_visualize_before_net"),
)
def nonfinite_values(batch: Batch) -> Evidence | None:
    """A float input, or a float within a mapping such as a target's boxes, holds NaN or infinity.

    Not this when: a float mask holds minus infinity where attention is forbidden.
    """
    summaries, rows = [], NO_ROWS
    for name, array in batch.floats.items():
        wrong = ~np.isfinite(array)
        if "mask" in name or "bias" in name:
            wrong &= ~np.isneginf(array)
        if bool(wrong.any()):
            summaries.append(f"{name} holds {int(np.isnan(array).sum())} NaN and {int(np.isinf(array).sum())} Inf")
            if len(array) == batch.rows:
                rows = np.union1d(rows, batch.numbers[wrong.reshape(len(array), -1).any(axis=1)])
    for problem in problems_of(batch, "nonfinite_values"):
        if problem.summary.split()[0] not in batch.floats:
            summaries.append(problem.summary)
            rows = np.union1d(rows, problem.rows)
    return batch_evidence("; ".join(summaries), rows.astype(np.int64)) if summaries else None


# A column of a table that never varies.


CONSTANT_COLUMN_LEAST_ROWS = 50
"""Rows from which a constant value is reported. Chosen: in so many it is not an accident."""
MAX_NAME_SHOWN = 30
"""Characters of a column's name that are shown. Chosen: a line holds several."""
MAX_SHOWN_COLUMNS = 4
"""Columns that a sentence names. Chosen: a line holds as many."""


@batch_check(
    severity="warning",
    why="It tells the model nothing, and dividing by its standard deviation of zero makes it NaN.",
    fix="See whether the source lost it (a failed join, a dead sensor, a filter on it); else leave the column out.",
    quotes=("karpathy_recipe_inspect_data",),
    whole=True,
)
def constant_column(batch: Batch) -> Evidence | None:
    """A column of a table of measurements holds the same value in all rows.

    Not this when: the rows are few. Of words and whole numbers, such as a version or a fold, it is only remarked.
    """
    counts = batch.totals.cells if batch.totals is not None else {}
    found = {
        name: cell_counts
        for name, cell_counts in counts.items()
        if cell_counts.constant and cell_counts.rows >= CONSTANT_COLUMN_LEAST_ROWS
    }
    if not found or len(found) == len(counts):
        return None
    listed = ", ".join(
        f"{shorten(name, MAX_NAME_SHOWN)} ({quoted(cell_counts.value)})"
        for name, cell_counts in list(found.items())[:MAX_SHOWN_COLUMNS]
    )
    measured = any(cell_counts.numeric and "." in cell_counts.value for cell_counts in found.values())
    severity: Severity | None = None if measured else "info"
    summary = f"{len(found)} of {len(counts)} columns hold one value in all rows: {listed}"
    return batch_evidence(summary, values={"columns": len(found)}, severity=severity)


@batch_check(
    severity="warning",
    why="If one of them is the target, the model reads the answer from its input and learns nothing else.",
    fix="Leave out the columns that are made of the target or known only after it; of other copies keep one.",
    quotes=("domingos_insidious_contamination",),
    whole=True,
)
def equal_columns(batch: Batch) -> Evidence | None:
    """Two columns of a table of measurements hold the same values in all rows, or an input the target of its row.

    Or a column is empty or 0 wherever the target is 0, and filled in most rows where it is 1: what comes after it.
    Or a history of items ends with the item that is to be foretold.

    Not this when: they never vary (`constant_column`); the rows are few.
    """
    counts = batch.totals.cells if batch.totals is not None else {}
    varying = {
        name: cell_counts
        for name, cell_counts in counts.items()
        if not cell_counts.constant and cell_counts.rows >= CONSTANT_COLUMN_LEAST_ROWS
    }
    alike: dict[int, list[str]] = defaultdict(list)
    for name, cell_counts in varying.items():
        alike[cell_counts.sum].append(shorten(name, MAX_NAME_SHOWN))
    found = [" and ".join(names) for names in alike.values() if len(names) > 1] + _targets_in_inputs(batch)
    filled = [problem.summary for problem in problems_of(batch, "equal_columns")]
    same = [f"{'; '.join(found[:MAX_SHOWN_COLUMNS])} hold the same values in all rows"] if found else []
    filled += _rescaled_targets(batch) + _filled_with_target(varying)
    if not same and not filled:
        return None
    return batch_evidence("; ".join([*same, *filled[:MAX_SHOWN_COLUMNS]]), values={"groups": len(found) + len(filled)})


MIN_SHARE_FILLED = 0.8
"""Share of the rows of the class in which such a column is filled. Chosen: a feature of some of them is none."""
MIN_ROWS_FILLED = 30
"""Rows in which it is filled. Chosen: of fewer that all are of one class, chance may be the reason."""
MAX_SHARE_OF_CLASS = 0.9
"""Share of the rows that are of the class. Chosen: of a commoner one all rows of a column may be by chance."""


def _filled_with_target(counts: Mapping[str, CellCounts]) -> list[str]:
    """Return which columns are filled where the target is 1 alone, by its name or as the last column."""
    found = []
    for target, ones in counts.items():
        positives = ones.filled_with.get(target, 0)
        least = max(MIN_ROWS_FILLED, MIN_SHARE_FILLED * positives)
        for name, cell_counts in counts.items():
            filled = cell_counts.filled
            if name == target or filled != cell_counts.filled_with.get(target) or cell_counts.sum == ones.sum:
                continue
            column, wanted = (shorten(each, MAX_NAME_SHOWN) for each in (name, target))
            if filled == positives:
                found.append(f"{column} is neither empty nor 0 exactly where {wanted} is 1")
            elif filled >= least and positives <= MAX_SHARE_OF_CLASS * ones.rows:
                rows = f"{filled:,} of {positives:,} rows where it is 1"
                found.append(f"{column} is empty or 0 wherever {wanted} is 0, and filled in {rows}")
    return found


def _inputs_and_targets(batch: Batch) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Return the inputs of rows and of windows, and the targets that are one value of each row, by name."""
    inputs = {name: array for name, array in batch.floats.items() if name in FLOAT_INPUTS and array.ndim in (2, 3)}
    targets = {name: array for name, array in batch.floats.items() if name in CLASS_NAMES and array.size == len(array)}
    return inputs, targets


def _targets_in_inputs(batch: Batch) -> list[str]:
    """Return the places of inputs that hold the target of their row in all rows, next to the target's name."""
    inputs, targets = _inputs_and_targets(batch)
    found = []
    for target, values in targets.items():
        flat = values.reshape(-1)
        if len(flat) < CONSTANT_COLUMN_LEAST_ROWS or not np.ptp(flat):
            continue
        for name, array in inputs.items():
            if len(array) == len(flat):
                of_row = array.reshape(len(array), -1)
                places = np.flatnonzero((of_row[:1] == flat[0]).all(axis=0))
                places = places[(of_row[:, places] == flat[:, np.newaxis]).all(axis=0)]
                at = ", ".join(map(str, np.unravel_index(places[0], array.shape[1:]))) if len(places) else ""
                found += [f"{name}[:, {at}] and {target}"] if at else []
    return found


MAX_RESCALED_RESIDUAL = 1e-10
"""Share of the target's variance that the rescaled target leaves. Chosen: rounding to 32 bits leaves a thousandth."""
MIN_KINDS_OF_TARGET = 20
"""Different targets from which a line shows a copy. Chosen: two classes lie on a line with any two values."""


def _rescaled_targets(batch: Batch) -> list[str]:
    """Return the one place of each input that is the target but for shift and scale, as a scaler leaves it.

    Not where an input has several such places: a ramp does, and holds no target.
    """
    inputs, targets = _inputs_and_targets(batch)
    found = []
    for target, values in targets.items():
        wanted = values.reshape(-1) - values.mean(dtype=np.float64)
        for name, array in inputs.items():
            # Of a single input the target may well be a line: toy data for a regression.
            one_input = math.prod(array.shape[1:]) < 2
            if one_input or len(array) != len(wanted) or len(np.unique(wanted)) < MIN_KINDS_OF_TARGET:
                continue
            of_row = array.reshape(len(array), -1).astype(np.float64)
            of_row -= of_row.mean(axis=0)
            with np.errstate(invalid="ignore", divide="ignore"):
                alike = (wanted @ of_row) ** 2 / ((of_row**2).sum(axis=0) * (wanted**2).sum())
            places = np.flatnonzero(1 - alike < MAX_RESCALED_RESIDUAL)
            if len(places) == 1 and not _targets_in_inputs(batch):
                at = ", ".join(map(str, np.unravel_index(places[0], array.shape[1:])))
                found.append(f"{name}[:, {at}] is {target} in another scale")
    return found


# The rows of a series in another order than its times.


TIME_NAMES = frozenset({"timestamp", "time", "date", "datetime", "ts", "ds"})
MIN_ROWS_OF_SERIES = 10
"""Rows of a series, on average, and of all together. Chosen: shorter ones are no series to cut windows from."""
MAX_SHARE_BACK = 0.02
"""Share of the steps of time that go back up to which rows are meant to be in order. Chosen: of shuffled rows half."""
MIN_SHARE_IN_ORDER = 0.8
"""Share of the series that are in order from which on the others are not meant so. Chosen: most show the meaning."""
_ISO_DATE = regex(r"\d{4}-\d\d-\d\d")
SPLIT_NAMES = frozenset({"split", "subset", "set", "fold", "partition"})
MIN_SHARE_REGULAR = 0.9
"""Share of the steps of time that are the usual one, from which rows are one series. Chosen: some times are missing."""


@batch_check(
    severity="warning",
    why="Windows that are cut there mix times, and a split by row puts later values before earlier ones.",
    fix="Sort each series by its time before windows are cut; see how its files were joined.",
    quotes=("karpathy_recipe_inspect_data",),
)
def time_out_of_order(batch: Batch) -> Evidence | None:
    """Time goes back at some rows of a series, and rises at all others.

    Without a column that tells series apart, it is a remark. Or rows of training are later than held-out ones, by a
    column such as `split`, where all rows are one series of regular times.

    Not this when: a time occurs twice in a series, as where a clock is set back or several are joined; more than one
    step in fifty goes back; a series begins.
    """
    for name, column in batch.cells.items():
        times = _times(column) if name.lower() in TIME_NAMES else None
        if times is None or len(times) < MIN_ROWS_OF_SERIES:
            continue
        if SPLIT_NAMES & {*batch.cells} and (late := _later_than_held_out(batch.cells, column)):
            return batch_evidence(late)
        back = np.flatnonzero(times[1:] < times[:-1]) + 1
        if not 0 < len(back) <= len(times) * (MAX_SHARE_BACK + 1 / MIN_ROWS_OF_SERIES):
            continue
        key, starts = _series(batch.cells, name, len(times))
        back = back[~np.isin(back, starts)]
        touched = np.unique(np.searchsorted(starts, back, side="right"))
        if not 0 < len(back) <= MAX_SHARE_BACK * len(times) or not all(
            len(np.unique(part)) == len(part) for part in np.split(times, starts)
        ):
            continue
        count = len(starts) + 1
        if key and len(touched) > (1 - MIN_SHARE_IN_ORDER) * count:
            continue
        where = f" within {len(touched)} of {count} series of {shorten(key, MAX_NAME_SHOWN)}" if key else ""
        summary = f"{shorten(name, MAX_NAME_SHOWN)} goes back at {{rows}}{where}"
        return in_rows(batch, batch.numbers[back], summary, severity=None if key else "info")
    return None


def _times(column: Column) -> Ints | None:
    """Return the ranks of times that can be compared: numbers, or dates that are all written alike; None for others."""
    if isinstance(column, np.ndarray):
        times = column if column.dtype.kind in "iuf" and bool(np.isfinite(column).all()) else None
    elif isinstance(column, Ragged):
        times = None
    else:
        texts = [value for value in column if isinstance(value, str) and _ISO_DATE.match(value)]
        alike = len({*map(len, texts)}) == 1 and len(texts) == row_count(column)
        times = np.array(texts) if alike else None
    return None if times is None else np.unique(times, return_inverse=True)[1].astype(np.int64)


def _later_than_held_out(cells: Mapping[str, Column], times: Column) -> str:
    """Say how many rows of training are later than a held-out one, where rows are one series; empty where none are."""
    splits = next((column for name, column in cells.items() if name in SPLIT_NAMES), [])
    try:
        dates = np.array([str(time)[:19] for time in times], "datetime64[s]") if isinstance(times, list) else times
    except ValueError:  # a month 13
        return ""
    at = np.asarray(dates).astype(np.float64)
    steps = np.diff(np.sort(at))
    if not isinstance(splits, list) or not steps.min() > 0 or (steps == median(steps)).mean() < MIN_SHARE_REGULAR:
        return ""
    train = np.array([str(split).lower().startswith("train") for split in splits], np.bool_)
    held = np.array([HELD_OUT.search(str(split)) is not None for split in splits], np.bool_)
    late = int((at[: len(splits)][train] > at[: len(splits)][held].min(initial=np.inf)).sum())
    return f"{late:,} of {train.sum():,} rows of training are later than the first held-out row" if late else ""


def _series(cells: Mapping[str, Column], time: str, rows: int) -> tuple[str, Ints]:
    """Return the column that names series whose rows stand together, and where each but the first begins."""
    for name, column in cells.items():
        if name == time or isinstance(column, Ragged) or is_float(column):
            continue
        values = np.array([str(value) for value in column])
        starts: Ints = np.flatnonzero(values[1:] != values[:-1]) + 1
        if 0 < len(starts) < rows / MIN_ROWS_OF_SERIES and len(np.unique(values)) == len(starts) + 1:
            return name, starts
    return "", np.empty(0, np.int64)


@batch_check(
    severity="error",
    why="The matching and the loss compare boxes with predictions on another scale: the model learns no positions.",
    fix="DETR: centre x, centre y, width, height as shares of the image (the image processor makes them of COCO "
    "annotations). torchvision: left, top, right, bottom in pixels, right > left and bottom > top.",
    quotes=("karpathy_recipe_visualize_before_net",),
)
def box_out_of_range(batch: Batch) -> Evidence | None:
    """Boxes reach beyond the image, have no width or height, or are corners where centre and size are read.

    Not this when: a box reaches a little over the image's edge; the columns are those of another library.
    """
    if batch.boxes is None:
        return None
    summary, places = batch.boxes.wrong()
    return in_rows(batch, batch.numbers[places], f"{summary}, in {{rows}}")
