"""Pixels of images: where their channels stand, and by which constants bytes became the numbers of a batch.

A processor makes of a byte (byte * factor - mean) / deviation. So its numbers lie on a grid whose spacing and place
tell the constants, as long as nothing was blended or resized afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mldebug_mcp.batch.columns import ragged, row_count
from mldebug_mcp.batch.sequences import Floats, Ints, Ragged
from mldebug_mcp.batch.table import Table
from mldebug_mcp.core.access import is_file, is_folder, read_bytes
from mldebug_mcp.core.config_files import MAX_CONFIG_BYTES
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.paths import expanded

COLOURS = 3
CHANNELS = (1, 3, 4)
"""Lengths of an axis that may be colours. Chosen: grey, colour, and colour with transparency."""
MAX_PIXELS_COMPARED = 20_000
"""Pixels of a batch that are compared with a processor's grid, spread evenly. Chosen: more tell no more."""
MIN_PIXELS_COMPARED = 200
"""Pixels that rule out chance. Chosen: a pixel fits a wrong one with a probability of 0.2 in each channel."""
MAX_OFF_GRID = 0.1
"""Distance from a whole byte up to which a number is on the grid. Chosen: numbers written with three decimals are
within."""
MIN_SHARE_ON_GRID = 0.99
"""Share of the numbers that have to be on the grid. Chosen: the rest is padding of another value."""
MIN_BYTES_SEEN = 8
"""Bytes that have to differ. Chosen: a mask of a few values fits many grids."""
MAX_SHARE_OUTSIDE = 0.1
"""Share of the numbers that may lie outside the range of a processor. Chosen: noise put over a third of half of the
images, as random erasing does, has 0.03 there."""
MAX_OVERSHOOT = 0.15
"""Share of the range by which a number may lie outside. Chosen: bicubic resizing overshoots by a tenth."""


def channel_axis(array: Floats) -> int | None:
    """Return the axis of the channels of images or films, or None where it is not clear."""
    if array.ndim not in (4, 5):
        return None
    first, last = array.shape[-3] in CHANNELS, array.shape[-1] in CHANNELS
    return None if first == last else array.ndim - 3 if first else array.ndim - 1


@dataclass(frozen=True, slots=True)
class Scaling:
    """What a processor, called `name`, does to a byte of each channel: (byte * factor - mean) / deviation."""

    name: str
    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    factor: float = 1 / 255

    def bytes(self, numbers: Floats, *, normalised: int = 1, rescaled: int = 1) -> Floats:
        """Return the bytes that became these numbers, of shape (pixels, channels)."""
        for _ in range(normalised):
            numbers = numbers * np.array(self.deviation) + np.array(self.mean)
        return numbers / self.factor**rescaled

    def reversed(self) -> Scaling:
        """Return the same with the constants of its channels in the opposite order."""
        return Scaling(self.name, self.mean[::-1], self.deviation[::-1], self.factor)

    def is_same(self, other: Scaling) -> bool:
        """Return whether the constants are the same, but for rounding."""
        mine, theirs = (np.array([*scaling.mean, *scaling.deviation]) for scaling in (self, other))
        return mine.shape == theirs.shape and bool(np.allclose(mine, theirs, atol=2e-3))

    def normalises(self) -> bool:
        """Return whether it changes rescaled numbers."""
        return set(self.mean) != {0.0} or set(self.deviation) != {1.0}


KNOWN = (
    Scaling("0 and 1", (0.0,) * 3, (1.0,) * 3),
    Scaling("0.5 and 0.5", (0.5,) * 3, (0.5,) * 3),
    Scaling("ImageNet", (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    Scaling("CLIP", (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)),
)
"""Mean and deviation of the processors in use. Source: Transformers, `image_utils`."""


def read_scaling(path: str | Path) -> Scaling | None:
    """Return what the processor next to a model's `config.json` does to a byte; None where there is none to read."""
    place = expanded(path)
    folder = place if is_folder(place) else place.parent
    for name in ("preprocessor_config.json", "processor_config.json"):
        if is_file(folder / name):
            try:
                settings = json.loads(read_bytes(folder / name, MAX_CONFIG_BYTES, "give the processor's own file"))
            except (OSError, ValueError, RecursionError, InputError):
                continue
            inner = settings.get("image_processor") if isinstance(settings, dict) else None
            if (found := _scaling_in(inner if isinstance(inner, dict) else settings)) is not None:
                return found
    return None


def _scaling_in(settings: object) -> Scaling | None:
    if not isinstance(settings, Mapping) or settings.get("do_rescale", True) is not True:
        return None
    factor = settings.get("rescale_factor", 1 / 255)
    if not isinstance(factor, float) or not 0 < factor < 1:
        return None
    if settings.get("do_normalize") is False:
        return Scaling("its processor", (0.0,) * COLOURS, (1.0,) * COLOURS, factor)
    mean, deviation = (settings.get(name) for name in ("image_mean", "image_std"))
    if not isinstance(mean, list) or not isinstance(deviation, list) or len(mean) != len(deviation) or not mean:
        return None
    if not all(isinstance(number, (int, float)) for number in (*mean, *deviation)) or min(deviation) <= 0:
        return None
    return Scaling("its processor", tuple(map(float, mean)), tuple(map(float, deviation)), factor)


@dataclass(frozen=True, slots=True)
class Origin:
    """How often bytes were normalised and rescaled to the numbers of a batch, by which constants.

    They are reversed where the constants are those of the channels in the opposite order.
    """

    scaling: Scaling
    normalised: int = 1
    rescaled: int = 1
    is_reversed: bool = False


def origin(array: Floats, own: Scaling | None) -> Origin | None:
    """Return how bytes became these pixels, the plainest way that fits; None where no way does.

    Args:
        array: Images of three channels: (rows, 3, height, width), films, channels last, or patches (patches, numbers).
        own: What the model's processor does.
    """
    pixels = sample(array)
    if pixels is None:
        return None
    return next((way for way in _ways(own) if _fits(pixels, way)), None)


def sample(array: Floats) -> Floats | None:
    """Return some of the pixels, of shape (pixels, 3), without padding; None where channels are not clear."""
    if array.ndim == 2 and array.shape[1] % COLOURS == 0 and array.shape[1] > COLOURS:
        array = array.reshape(len(array), COLOURS, -1)  # patches, as Qwen's processors flatten them
        axis: int | None = 1
    else:
        axis = channel_axis(array)
    if axis is None or array.shape[axis] != COLOURS:
        return None
    moved = np.moveaxis(array, axis, -1)
    count = moved.size // COLOURS
    places = np.arange(0, count, max(1, count // MAX_PIXELS_COMPARED))
    pixels = moved[np.unravel_index(places, moved.shape[:-1])]  # without a copy of the whole
    pixels = pixels[np.isfinite(pixels).all(axis=1) & pixels.any(axis=1)]
    return pixels if len(pixels) >= MIN_PIXELS_COMPARED else None


def share_outside(array: Floats, own: Scaling) -> float:
    """Return the share of the numbers that lie outside the range of a processor."""
    pixels = sample(array)
    if pixels is None or len(own.mean) != COLOURS:
        return 0.0
    shares = own.bytes(pixels, rescaled=0)
    return float(np.mean((shares < -MAX_OVERSHOOT) | (shares > 1 + MAX_OVERSHOOT)))


def _ways(own: Scaling | None) -> Iterator[Origin]:
    """Yield ways to the numbers, the plainest first."""
    scalings = [*([own] if own is not None and len(own.mean) == COLOURS else []), *KNOWN]
    for scaling in scalings:
        yield Origin(scaling)
    for scaling in scalings:
        if scaling.normalises():
            yield Origin(scaling, normalised=2)
            yield Origin(scaling, rescaled=2)
            if scaling.mean != scaling.mean[::-1]:
                yield Origin(scaling.reversed(), is_reversed=True)


def _fits(pixels: Floats, way: Origin) -> bool:
    """Return whether the numbers are those that bytes become in this way."""
    found = way.scaling.bytes(pixels, normalised=way.normalised, rescaled=way.rescaled)
    whole = np.round(found)
    on_grid = (np.abs(found - whole) <= MAX_OFF_GRID) & (whole >= 0) & (whole <= np.iinfo(np.uint8).max)
    return bool(on_grid.all(axis=1).mean() >= MIN_SHARE_ON_GRID) and len(np.unique(whole)) >= MIN_BYTES_SEEN


@dataclass(frozen=True, slots=True)
class Masks:
    """The class and the place of the image of each mask of a batch, and the largest number in any mask."""

    classes: Ints
    rows: Ints
    largest: float


def masks_of(table: Table) -> Masks | None:
    """Return the masks of the targets, or None where no column holds any that can be read."""
    masks, classes = (table.columns.get(name) for name in ("mask_labels", "class_labels"))
    if masks is None or classes is None or isinstance(masks, Ragged) or row_count(classes) != len(masks):
        return None
    try:
        if not isinstance(classes, Ragged):
            classes, _ = ragged(classes)
        arrays = [np.asarray(mask, np.float64) for mask in masks]
        largest = max((float(mask.max()) for mask in arrays if mask.size), default=0.0)
    except (TypeError, ValueError, OverflowError):
        return None
    return Masks(classes.flat.astype(np.int64), np.repeat(np.arange(classes.rows), classes.lengths), largest)
