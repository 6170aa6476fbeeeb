"""A tokenized batch or data set as the checks see it, with boxes, cells and totals."""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeGuard, get_args

import numpy as np
import numpy.typing as npt

from mldebug_mcp.batch.columns import (
    CLASS_NAMES,
    MASK_IMAGES,
    ROW_NUMBERS,
    Column,
    Masks,
    Scaling,
    Table,
    channel_axis,
    depth,
    read_scaling,
    row_count,
)
from mldebug_mcp.batch.roles import END_OF_TURN_ID, Encoder, RowRoles, Words, read_roles
from mldebug_mcp.batch.sequences import Bools, Floats, Ints, Ragged, Sequences, count_into
from mldebug_mcp.batch.tokenizer import Tokenizer
from mldebug_mcp.core.config_files import read_config_json
from mldebug_mcp.core.text import counted, shorten

if TYPE_CHECKING:
    from mldebug_mcp.batch.columns import Rest
    from mldebug_mcp.batch.corpus import CorpusCounts

# Targets of object detectors: one mapping for each image, with its boxes and their classes.


BOX_COLUMNS = ("labels", "targets", "target")
MAX_BOX_OVERHANG_SHARE = 0.02
"""Share of an image by which a box may reach beyond it: rounding."""
MAX_OVERHANG = 0.1
"""Share of an image by which a box of centre and size may reach beyond it: annotators draw what is cut off. Chosen."""
MIN_SHARE_OUTSIDE = 0.05
"""Share of the boxes that leave the image from which they have another form. Chosen."""
LARGEST_SHARE = 1.5
"""Coordinates above this are no shares of the image: a box may reach a little beyond its edge."""
BoxForm = Literal["shares", "corners", "coco"]
"""Centre and size as shares of the image, as for DETR; corners in pixels, as torchvision's detectors want them; left,
top, width and height in pixels, as COCO writes them."""


@dataclass(frozen=True, slots=True)
class Boxes:
    """The boxes of a batch.

    Args:
        values: Four numbers for each box, shape (boxes, 4).
        rows: The place of each box's image.
        classes: Each box's class, shape (boxes,); empty where they do not fit.
        form: What the four numbers are to be.
        sizes: Width and height of each box's image, shape (boxes, 2), NaN where that is not known.
        names: What classes are called.
    """

    values: Floats
    rows: Ints
    classes: Ints
    form: BoxForm
    sizes: Floats
    names: Mapping[int, str] = field(default_factory=dict)

    def wrong(self) -> tuple[str, Ints]:
        """Return what is wrong with boxes, and in which images; empty where nothing is."""
        summary, which = next(((says, which) for says, which in self._faults() if which.any()), ("", self.rows < 0))
        return summary.format(int(which.sum())), np.unique(self.rows[which])

    def corners(self) -> Floats:
        """Return left, top, right and bottom of each box as shares of its image, NaN where its size is not known."""
        return np.hstack(self._edges()) / np.hstack([self._image(), self._image()])

    def _faults(self) -> Iterator[tuple[str, Bools]]:
        """Yield what may be wrong, the surest first, and with which boxes it is."""
        values = self.values
        flat: Bools = np.any(~(values[:, 2:] > (values[:, :2] if self.form == "corners" else 0)), axis=1)
        outside = self._outside(MAX_OVERHANG if self.form == "shares" else MAX_BOX_OVERHANG_SHARE)
        several = bool(outside.mean() > MIN_SHARE_OUTSIDE)

        def all_if(holds: bool) -> Bools:
            return np.full(len(values), holds)

        if self.form == "shares":
            reach = f"boxes reach {values[values > LARGEST_SHARE].max(initial=0):.4g}"
            beyond: Bools = np.any(values > LARGEST_SHARE, axis=1)
            yield f"{reach}, where shares of the image are wanted", beyond
            yield "boxes are read as centre and size, and fit the image only as corners", all_if(self._are_corners())
            yield "{} boxes have no width or height", flat
        elif self.form == "corners":
            yield f"{{}} boxes have no width or height between their corners{self._fit_as_coco(flat)}", flat
            are_shares = bool((values <= LARGEST_SHARE).all())
            yield "boxes are shares of the image, where corners in pixels are wanted", all_if(are_shares)
        else:
            yield "{} boxes have no width or height", flat
            are_shares = not outside.any() and bool((values <= 1).all() and (self.sizes > LARGEST_SHARE).all())
            yield "boxes are shares of the image, where COCO has pixels", all_if(are_shares)
            slack = MAX_BOX_OVERHANG_SHARE * self.sizes
            fits = (values[:, 2:] > values[:, :2]).all() and (values[:, 2:] <= self.sizes + slack).all()
            are_corners = several and bool(fits and (values >= -1).all())
            yield (
                "boxes are read as left, top, width and height, and fit the image only as corners",
                all_if(are_corners),
            )
        yield "{} boxes reach beyond their image", outside & all_if(several or self.form == "coco")

    def _fit_as_coco(self, which: Bools) -> str:
        """Return in words whether boxes, whose corners are mostly exchanged, fit as left, top, width and height."""
        first, second = self.values[which, :2], self.values[which, 2:]
        slack = MAX_BOX_OVERHANG_SHARE * self.sizes[which]
        fits = bool(((second > 0) & (first + second <= self.sizes[which] + slack)).all())
        exchanged = len(second) and (second < first).any(axis=1).mean() > MIN_SHARE_CORNERS
        return "; they fit their images as left, top, width and height" if fits and exchanged else ""

    def _edges(self) -> tuple[Floats, Floats]:
        """Return left and top, and right and bottom of each box, in its own unit."""
        first, second = self.values[:, :2], self.values[:, 2:]
        if self.form == "shares":
            return first - second / 2, first + second / 2
        return first, first + second if self.form == "coco" else second

    def _image(self) -> Floats:
        """Return width and height of each box's image in the unit of the box."""
        return np.ones_like(self.sizes) if self.form == "shares" else self.sizes

    def _outside(self, slack: float) -> Bools:
        """Return which boxes leave the image by more than this share of it."""
        (first, last), image = self._edges(), self._image()
        outside: Bools = np.any((last > image + slack * image) | (first < -slack * image), axis=1)
        return outside

    def _are_corners(self) -> bool:
        """Return whether boxes leave the image as centre and size and lie in it as corners."""
        values, outside = self.values, self._outside(MAX_BOX_OVERHANG_SHARE)
        inside = (values >= -MAX_BOX_OVERHANG_SHARE).all() and (values <= 1 + MAX_BOX_OVERHANG_SHARE).all()
        return bool(inside and (values[:, 2:] > values[:, :2]).all() and outside.mean() > MIN_SHARE_OUTSIDE)


def boxes_of(table: Table) -> Boxes | None:
    """Return the boxes of the targets, or None where no column holds any that can be read."""
    columns = (_flat_targets(table), *(table.columns.get(name) for name in BOX_COLUMNS))
    for column in columns:
        if (
            isinstance(column, list)
            and column
            and all(isinstance(target, Mapping) and "boxes" in target for target in column)
        ):
            targets = [target for target in column if isinstance(target, Mapping)]
            found = list(_boxes_by_image(targets, _image_sizes(table, len(targets))))
            if not found:
                return None
            values, rows, classes, sizes = (np.concatenate(parts) for parts in zip(*found, strict=True))
            fits = len(classes) == len(values)
            named = (target.get("class_names") for target in targets)
            names: dict[int, str] = next((class_names for class_names in named if isinstance(class_names, dict)), {})
            return Boxes(values, rows, classes if fits else classes[:0], _form(targets), sizes, names)
    return None


MIN_SHARE_CORNERS = 0.5
"""Share of boxes that fit as corners, from which all are meant so. Chosen: most show the meaning."""


def _flat_targets(table: Table) -> list[object] | None:
    """Return boxes that are a column of their own as targets; `width` and `height` next to them are their image's."""
    boxes, classes = table.columns.get("boxes"), table.columns.get("labels")
    if not isinstance(boxes, list) or not isinstance(classes, list) or not all(isinstance(row, list) for row in boxes):
        return None
    flat = [box for row in boxes if isinstance(row, list) for box in row if isinstance(box, list) and len(box) == 4]
    if not flat or not all(isinstance(value, (int, float)) for box in flat for value in box):
        return None
    are_corners = sum(box[2] > box[0] and box[3] > box[1] for box in flat) >= MIN_SHARE_CORNERS * len(flat)
    unknown = [math.nan] * len(boxes)
    width, height = (
        column if isinstance(column := table.columns.get(name), list) else unknown for name in ("width", "height")
    )
    return [
        {"boxes": row, "labels": labels, "size": size} | ({} if are_corners else {"box_format": "coco"})
        for row, labels, size in zip(boxes, classes, zip(height, width, strict=False), strict=False)
    ]


def _form(targets: list[Mapping[str, object]]) -> BoxForm:
    if any(target.get("box_format") == "coco" for target in targets):
        return "coco"
    return "shares" if any("class_labels" in target for target in targets) else "corners"


def _image_sizes(table: Table, count: int) -> list[Sequence[float]]:
    """Return height and width of each image as the batch holds it, NaN where it holds none."""
    images = table.columns.get("images")
    if images is None or isinstance(images, Ragged) or len(images) != count:
        return [(np.nan, np.nan)] * count
    sizes: list[Sequence[float]] = []
    for image in images:
        shape = np.asarray(image[0]).shape if isinstance(image, list) and image else np.asarray(image).shape[1:]
        sizes.append(shape if len(shape) == 2 else (np.nan, np.nan))
    return sizes


def _boxes_by_image(
    targets: list[Mapping[str, object]], sizes: list[Sequence[float]]
) -> Iterator[tuple[Floats, Ints, Ints, Floats]]:
    """Yield boxes, their place, classes and image sizes, image by image; images without boxes are left out."""
    for place, target in enumerate(targets):
        try:
            boxes = np.asarray(target["boxes"], np.float64).reshape(-1, 4)
            classes = np.asarray(target.get("class_labels", target.get("labels", [])), np.int64).reshape(-1)
            height, width = np.asarray(target.get("size", sizes[place]), np.float64).reshape(-1)[:2]
        except (TypeError, ValueError, OverflowError):
            continue
        if len(boxes):
            yield boxes, np.full(len(boxes), place), classes, np.tile([width, height], (len(boxes), 1))


def is_coco(value: Mapping[str, object]) -> bool:
    """Say whether a JSON object holds images and the annotations of their boxes."""
    images, annotations = value.get("images"), value.get("annotations")
    if not isinstance(images, list) or not isinstance(annotations, list) or not images:
        return False
    return all(isinstance(image, dict) and "id" in image for image in images) and any(
        isinstance(annotation, dict) and "bbox" in annotation and "image_id" in annotation for annotation in annotations
    )


def coco_table(value: Mapping[str, Any]) -> Table:
    """Return the annotations of COCO as targets, one for each image; what fits no image is counted in a note."""
    of_image: dict[object, list[Mapping[str, Any]]] = {_key(image["id"]): [] for image in value["images"]}
    lost = 0
    for annotation in value["annotations"]:
        boxed = (
            isinstance(annotation, dict) and isinstance(annotation.get("bbox"), list) and len(annotation["bbox"]) == 4
        )
        if boxed and (found := of_image.get(_key(annotation.get("image_id")))) is not None:
            found.append(annotation)
        else:
            lost += 1
    categories = [category for category in value.get("categories") or [] if isinstance(category, dict)]
    names = {
        category["id"]: shorten(str(category.get("name", category["id"])), 40)
        for category in categories
        if _is_whole(category.get("id"))
    }
    unnamed = sum(
        bool(names) and mapping.get("category_id") not in names for found in of_image.values() for mapping in found
    )
    targets: list[object] = [
        {
            "boxes": [mapping["bbox"] for mapping in of_image[_key(image["id"])]],
            "labels": [mapping["category_id"] if _is_whole(mapping.get("category_id")) else -1
                       for mapping in of_image[_key(image["id"])]],
            "size": [image.get("height", np.nan), image.get("width", np.nan)],
            "box_format": "coco",
            "class_names": names,
        }
        for image in value["images"]
    ]  # fmt: skip
    notes = [f"read as annotations of COCO: {len(targets)} images, {len(value['annotations'])} annotations"]
    notes += [f"left out {counted(lost, 'annotation')} without a box, or of an image that is not there"] * bool(lost)
    notes += [f"{unnamed} annotations name a category that is not there"] * bool(unnamed)
    files: list[object] = [str(image.get("file_name", image["id"])) for image in value["images"]]
    return Table({"targets": targets, "file_name": files}, notes=notes)


def _key(number: object) -> object:
    return number if isinstance(number, int | str) else str(number)


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


# A table of measurements: one number or one word for each row and column, and what is counted of each column.


MOST_COLUMNS = 1000
MIN_MEASUREMENT_ROWS = 10
"""Rows from which a file of single numbers is taken for a table of measurements, not for a few settings. Chosen."""
_SPLITMIX_INCREMENT = np.uint64(0x9E3779B97F4A7C15)
"""The odd constant that the generator SplitMix64 adds."""
_MIX = np.uint64(0xBF58476D1CE4E5B9)
"""The odd constant by which SplitMix64 multiplies."""


def cells_of(table: Table) -> dict[str, Column]:
    """Return the columns of a table that has one value for each row and column, else nothing."""
    columns = dict(list(table.columns.items())[:MOST_COLUMNS])
    if len(columns) < 2 or any(isinstance(column, Ragged) or depth(column) != 1 for column in columns.values()):
        return {}
    if len({row_count(column) for column in columns.values()}) != 1:
        return {}
    return {name: column for name, column in columns.items() if name.lower() not in ROW_NUMBERS}


def is_numeric(column: Column) -> bool:
    """Return whether a column of cells holds numbers."""
    return _numbers(column) is not None


def _numbers(column: Column) -> Floats | None:
    """Return the cells as numbers, what is missing as NaN; None if they are words."""
    if isinstance(column, np.ndarray):
        return column.astype(np.float64) if column.dtype.kind in "fiub" else None
    if isinstance(column, Ragged) or not isinstance(next(filter(None, column), 0), (int, float)):
        return None
    try:
        return np.asarray(column, np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


@dataclass(slots=True)
class CellCounts:
    """What is counted of one column; `sum` is equal for columns that hold the same values in the same rows.

    `filled` counts the rows where the cell is neither empty nor 0. `filled_with` counts those of them in which a target
    of 0 and 1, by its name, is 1.
    """

    rows: int = 0
    value: str = ""
    constant: bool = True
    numeric: bool = True
    sum: int = 0
    filled: int = 0
    filled_with: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, column: Column, numbers: Ints, targets: Mapping[str, Bools]) -> CellCounts:
        """Count the cells of one piece; `numbers` are those of its rows, and `targets` say where a target is 1."""
        found = _numbers(column)
        array = _keys(column) if found is None else found
        filled = is_filled(column)
        first = str(column[0]) if len(array) else ""  # type: ignore[index]
        constant = bool(np.all(array == array[:1]))
        both = Counter({name: int((filled & target).sum()) for name, target in targets.items()})
        return cls(len(array), first, constant, found is not None, _sum(array, numbers), int(filled.sum()), both)

    def merge(self, later: CellCounts) -> None:
        """Add the cells of rows further on in the file."""
        if not later.rows:
            return
        self.constant &= later.constant and (not self.rows or self.value == later.value)
        self.value = self.value if self.rows else later.value
        self.numeric &= later.numeric
        self.rows += later.rows
        self.sum = (self.sum + later.sum) % 2**64
        self.filled += later.filled
        self.filled_with.update(later.filled_with)


def is_filled(column: Column) -> Bools:
    """Return where a cell is neither empty nor 0."""
    found = _numbers(column)
    given = found if found is not None else np.array([float(_is_given(value)) for value in column])  # type: ignore[union-attr]
    filled: Bools = ~np.isnan(given) & (given != 0)
    return filled


def _is_given(value: object) -> bool:
    return bool(value) and not (isinstance(value, float) and math.isnan(value))


def targets_of(cells: Mapping[str, Column]) -> dict[str, Bools]:
    """Return the targets of a table that are 0 and 1 alone, by their names or as the last column: where they are 1."""
    last = next(reversed(list(cells)), "")
    found = {name: _numbers(column) for name, column in cells.items() if name == last or name in CLASS_NAMES}
    return {
        name: values == 1
        for name, values in found.items()
        if values is not None and bool(np.isin(values, (0, 1)).all())
    }


def _sum(cells: Floats, numbers: Ints) -> int:
    """Return a sum that depends on each cell and the number of its row."""
    mixed = (cells.view(np.uint64) + numbers.astype(np.uint64) * _SPLITMIX_INCREMENT) * _MIX
    mixed ^= mixed >> np.uint64(29)
    return int((mixed * _SPLITMIX_INCREMENT).sum(dtype=np.uint64))


def _keys(column: Column) -> Floats:
    """Return a number for each text."""
    texts = [repr(value) for value in column]  # type: ignore[union-attr]
    known = {text: float(zlib.crc32(text.encode("utf-8", "surrogatepass"))) for text in set(texts)}
    return np.array([known[text] for text in texts], np.float64)


# What a check needs to know of all rows together, counted piece by piece in bounded memory: lengths and classes.


MAX_LONGEST_ROWS = 10_000
"""Longest rows of each side whose numbers are kept."""
MAX_CLASSES = 1_000_000
"""Classes that are distinguished; with more, the rarer half is forgotten."""


@dataclass(slots=True)
class LengthCounts:
    """Rows by length without padding, and the lengths and numbers of the longest rows seen, perhaps of more."""

    counts: Counter[int] = field(default_factory=Counter)
    longest: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    numbers: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    def add(self, lengths: Ints, numbers: Ints) -> None:
        """Count rows."""
        count_into(self.counts, lengths)
        self._keep(lengths, numbers)

    def merge(self, later: LengthCounts) -> None:
        """Count what rows further on in the file have shown."""
        self.counts.update(later.counts)
        self._keep(later.longest, later.numbers)

    def _keep(self, lengths: Ints, numbers: Ints) -> None:
        lengths, numbers = np.concatenate([self.longest, lengths]), np.concatenate([self.numbers, numbers])
        if len(lengths) > 2 * MAX_LONGEST_ROWS:
            kept = np.lexsort((numbers, -lengths))[:MAX_LONGEST_ROWS]
            lengths, numbers = lengths[kept], numbers[kept]
        self.longest, self.numbers = lengths, numbers


WHITE = 255
"""What stands for the class in masks that are stored as black and white images. Source: the largest byte."""
MAX_PARTS = 1000
"""Parts of the data whose classes are counted. Chosen: more are no shards or sources."""
MAX_PART_NAME = 60
"""Characters of a part's name that are shown. Chosen: half a line of a terminal."""


@dataclass(slots=True)
class PartCounts:
    """The classes of each part of the data, by the file or the source that rows are from.

    `masks` counts, by column, images of three kinds that are not blank: of 0 and 1, of 0 and 255, and all others. Next
    to the counts stands the file of the first image of each kind.
    """

    classes: dict[str, Counter[int]] = field(default_factory=dict)
    masks: dict[str, tuple[Counter[int], dict[int, str]]] = field(default_factory=dict)

    def add(self, batch: Batch) -> None:
        """Count a piece."""
        for part, labels in self._labels(batch):
            if part in self.classes or len(self.classes) < MAX_PARTS:
                count_into(self.classes.setdefault(part, Counter()), labels)
        for name, array in batch.integers.items():
            if name in MASK_IMAGES and array.size:
                self._add_masks(name, array.reshape(len(array), -1), batch.shard)

    def merge(self, later: PartCounts) -> None:
        """Add what rows further on in the file have shown."""
        for part, classes in later.classes.items():
            self.classes.setdefault(part, Counter()).update(classes)
        for name, (counts, where) in later.masks.items():
            known, places = self.masks.setdefault(name, (Counter(), {}))
            known.update(counts)
            places.update(where | places)

    def _labels(self, batch: Batch) -> Iterator[tuple[str, Ints]]:
        if batch.classes is not None and not batch.class_names and len(batch.classes) == batch.rows:
            for name, places in batch.parts():
                labels = batch.classes[places]
                yield name, labels[labels >= 0]

    def _add_masks(self, name: str, masks: Ints, shard: str) -> None:
        counts, where = self.masks.setdefault(name, (Counter(), {}))
        masks = masks[masks.any(axis=1)]
        ones, white = (((masks == kind) | (masks == 0)).all(axis=1) for kind in (1, WHITE))
        for kind, count in ((1, int(ones.sum())), (WHITE, int(white.sum())), (-1, int((~ones & ~white).sum()))):
            counts[kind] += count
            if count:
                where.setdefault(kind, shard)


@dataclass(slots=True)
class Totals:
    """Counts over the pieces seen so far: lengths by side, classes of rows, tokens and parts, cells by column.

    `values` are how many labels with fractions there are, the least and the greatest of them.
    """

    lengths: dict[str, LengthCounts] = field(default_factory=dict)
    classes: Counter[int] = field(default_factory=Counter)
    labels: int = 0
    token_classes: Counter[int] = field(default_factory=Counter)
    values: tuple[int, float, float] = (0, np.inf, -np.inf)
    cells: dict[str, CellCounts] = field(default_factory=dict)
    parts: PartCounts = field(default_factory=PartCounts)

    def add_classes(self, labels: Ints) -> None:
        """Count class labels; negative ones mark rows without one."""
        labels = labels[labels >= 0]
        self.labels += len(labels)
        count_into(self.classes, labels)
        self._forget()

    def add_token_classes(self, labels: Ints) -> None:
        """Count the classes of tokens; negative ones mark tokens without one."""
        count_into(self.token_classes, labels[labels >= 0])
        self._forget()

    def add_values(self, count: int, least: float, greatest: float) -> None:
        """Count labels with fractions."""
        known = self.values
        self.values = (known[0] + count, min(known[1], least), max(known[2], greatest))

    def merge(self, later: Totals) -> None:
        """Add what rows further on in the file have shown."""
        for side, counts in later.lengths.items():
            self.lengths.setdefault(side, LengthCounts()).merge(counts)
        self.labels += later.labels
        self.classes.update(later.classes)
        self.token_classes.update(later.token_classes)
        self.add_values(*later.values)
        for name, cells in later.cells.items():
            self.cells.setdefault(name, CellCounts()).merge(cells)
        self.parts.merge(later.parts)
        self._forget()

    def _forget(self) -> None:
        if len(self.classes) > MAX_CLASSES:
            self.classes = Counter(dict(self.classes.most_common(MAX_CLASSES // 2)))
        if len(self.token_classes) > MAX_CLASSES:
            self.token_classes = Counter(dict(self.token_classes.most_common(MAX_CLASSES // 2)))


def arrays_of(counts: Counter[int]) -> tuple[Ints, Ints]:
    """Return what was counted, in order, and how often each occurs."""
    values = np.array(sorted(counts), np.int64)
    return values, np.array([counts[int(value)] for value in values], np.int64)


def median_of(values: npt.NDArray[np.number], counts: Ints) -> float:
    """Return the median of values with these counts, as `numpy.median` does."""
    order = np.argsort(values)
    sums = np.cumsum(counts[order])
    middle = np.array([(sums[-1] - 1) // 2, sums[-1] // 2])
    found: Floats = values[order][np.searchsorted(sums, middle, side="right")].astype(np.float64)
    return float(found.mean())


@dataclass(slots=True)
class ImageStats:
    """Sums over the images of a column, and over the differences of the first and the last channel of each."""

    images: int = 0
    means: Floats = field(default_factory=lambda: np.zeros(3))
    squares: float = 0.0
    difference: float = 0.0
    difference_squares: float = 0.0

    @classmethod
    def of(cls, images: Floats) -> ImageStats | None:
        """Return the sums of images or latents; None where channels are not clear or a number is not finite."""
        axis = channel_axis(images)
        if axis is None or not images.size or not bool(np.isfinite(images).all()):
            return None
        pixels = tuple(at for at in range(1, images.ndim) if at != axis)
        means = images.mean(axis=pixels)
        apart = means[:, 0] - means[:, -1]
        squares = float(np.square(images).mean(axis=tuple(range(1, images.ndim))).sum())
        return cls(len(images), means.sum(axis=0), squares, float(apart.sum()), float(np.square(apart).sum()))

    def merge(self, later: ImageStats) -> None:
        """Add the sums of further images."""
        if not self.images:
            self.means = np.zeros_like(later.means)
        if self.means.shape == later.means.shape:
            self.images += later.images
            self.means = self.means + later.means
            self.squares += later.squares
            self.difference += later.difference
            self.difference_squares += later.difference_squares

    @property
    def channels(self) -> Floats:
        """The mean of each channel."""
        return self.means / self.images

    @property
    def deviation(self) -> float:
        """The standard deviation of all numbers."""
        return math.sqrt(max(0.0, self.squares / self.images - float(self.channels.mean()) ** 2))

    @property
    def error(self) -> float:
        """The standard error of the mean difference of the first and the last channel."""
        mean = self.difference / self.images
        return math.sqrt(max(0.0, self.difference_squares / self.images - mean**2) / self.images)


@dataclass(frozen=True, slots=True)
class Overlap:
    """What rows share. Pairs are row numbers: a row, and the earlier or other one.

    Args:
        exact, near: Pairs within the data set; near ones are not exact.
        rows: Rows looked at.
        same_text: Near pairs whose letters and digits are the same; other columns of the rows may differ.
        passages, repeated: Passages of rows that are no copies, and how many of them repeat an earlier one.
        example: A row that repeats a passage, and the earlier one; no row where none does.
        against: The other data set's path, or "".
        against_rows: Its rows.
        against_exact, against_near: Pairs of a row of the data set and one of the other.
        against_passages, against_shared: Passages of the other data set, and how many of them are here.
        files: Files of a folder that hold the same rows as an earlier one, each with that one.
        images: Sums over the images of a column in a file, by the names of both; the other data set's have its path.
    """

    exact: Ints
    near: Ints
    rows: int
    same_text: int = 0
    against: str = ""
    against_rows: int = 0
    against_exact: Ints | None = None
    against_near: Ints | None = None
    passages: int = 0
    repeated: int = 0
    example: Ints | None = None
    against_passages: int = 0
    against_shared: int = 0
    files: tuple[tuple[str, str], ...] = ()
    images: Mapping[tuple[str, str], ImageStats] = field(default_factory=dict)


# The model's `config.json`: the few numbers that a batch has to fit.


_IMAGE_TOKEN = ("image_token_id", "image_token_index")
_RELATIVE = ("rope_theta", "rope_scaling", "rope_parameters", "rotary_dim", "rotary_pct", "alibi")
"""Settings of models in which only the distance between tokens counts, so that padding in front moves nothing."""


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """What a batch is checked against. Everything is None, empty or False if the file does not say."""

    vocab_size: int | None = None
    bos: int | None = None
    eos: tuple[int, ...] = ()
    pad: int | None = None
    num_labels: int | None = None
    problem_type: str = ""
    token_types: int | None = None
    max_positions: int | None = None
    positions_after_pad: bool = False
    encoder_decoder: bool = False
    decoder_start: int | None = None
    token_classification: bool = False
    relative_positions: bool = False
    image_token: int | None = None
    image_merge: int | None = None
    image_tokens: int | None = None
    image_size: int | None = None
    channels: int | None = None
    scaling: Scaling | None = None
    given: bool = field(default=False)


def read_model_config(path: str | Path) -> ModelConfig:
    """Read a model's `config.json`, or the one in a folder.

    Raises:
        InputError: it cannot be read, or is not a JSON object.
    """
    settings, _ = read_config_json(path)
    return replace(_config_from(settings), scaling=read_scaling(path))


def _config_from(settings: Mapping[str, object]) -> ModelConfig:
    text = settings.get("text_config")
    inner: Mapping[str, object] = text if isinstance(text, dict) else {}

    def number(*names: str) -> int | None:
        for source in (inner, settings):
            for name in names:
                value = source.get(name)
                if _is_whole(value):
                    return value
        return None

    eos = settings.get("eos_token_id", inner.get("eos_token_id"))
    ends = [eos] if isinstance(eos, int) else eos if isinstance(eos, list) else []
    vision = settings.get("vision_config")
    sight: Mapping[str, object] = vision if isinstance(vision, dict) else {}
    kind = str(settings.get("model_type"))
    return ModelConfig(
        vocab_size=number("vocab_size"),
        bos=number("bos_token_id"),
        eos=tuple(end for end in ends if isinstance(end, int)),
        pad=number("pad_token_id"),
        num_labels=_classes(settings, number("num_labels", "num_classes")),
        problem_type=str(settings.get("problem_type") or ""),
        token_types=number("type_vocab_size"),
        max_positions=number("max_position_embeddings", "n_positions"),
        positions_after_pad=kind in _POSITIONS_AFTER_PAD,
        decoder_start=number("decoder_start_token_id"),
        encoder_decoder=settings.get("is_encoder_decoder") is True,
        token_classification="ForTokenClassification" in str(settings.get("architectures")),
        relative_positions=any(name in source for source in (inner, settings) for name in _RELATIVE),
        image_token=number(*_IMAGE_TOKEN),
        image_merge=_whole_number(sight.get("spatial_merge_size")),
        image_tokens=_image_tokens(settings),
        image_size=_whole_number(settings.get("image_size", sight.get("image_size"))) if kind in _FIXED_SIZE else None,
        channels=_whole_number(settings.get("num_channels", sight.get("num_channels"))),
        given=True,
    )


_POSITIONS_AFTER_PAD = frozenset(
    ("roberta", "xlm-roberta", "xlm-roberta-xl", "roberta-prelayernorm", "camembert", "longformer", "xmod", "ibert",
     "mpnet", "esm", "data2vec-text", "luke", "mluke", "layoutlmv3", "lilt", "markuplm")
)  # fmt: skip
"""Model types whose positions begin at padding_idx + 1 (Transformers, create_position_ids_from_input_ids)."""
_FIXED_SIZE = frozenset(
    ("altclip", "chinese_clip", "clip", "clipseg", "deit", "flava", "git", "groupvit", "ijepa", "metaclip_2", "mgp-str",
     "vit", "vit_mae", "vit_msn", "videomae", "vivit", "xclip")
)  # fmt: skip
"""Model types that refuse images of another size (Transformers, "Input image size ... doesn't match model")."""


def _whole_number(value: object) -> int | None:
    return value if _is_whole(value) else None


def _classes(settings: Mapping[str, object], number: int | None) -> int | None:
    names = settings.get("id2label")
    return len(names) if isinstance(names, dict) and names else number


def _image_tokens(settings: Mapping[str, object]) -> int | None:
    """Return how many placeholders an image takes, where the configuration fixes that."""
    for name in ("image_seq_length", "mm_tokens_per_image", "image_seq_len"):
        if (token := _whole_number(settings.get(name))) is not None:
            return token
    return None


# A tokenized batch or data set, as the checks see it.


Purpose = Literal["sft", "pretraining", "dpo", "kto", "generation", "classification", "embedding", "vlm"]
PURPOSES: tuple[Purpose, ...] = get_args(Purpose)
MAX_ROLE_TOKENS = 200_000
"""Tokens of a batch that are decoded to look for role markers. Decoding runs in Python, not in numpy."""
MAX_PROBLEM_ROWS = 1000
"""Rows that a finding names at most. Chosen: more than anyone looks at."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that was found while reading and that a check reports: in which rows, and in words."""

    check: str
    summary: str
    rows: tuple[int, ...] = ()

    @classmethod
    def at(cls, check: str, summary: str, places: Sequence[int] | Ints, table: Table, first: int) -> Problem:
        """Return a problem of rows at some places of a table, whose first row has the number `first` in the file."""
        return cls(check, summary, tuple(table.numbers_at(places, first).tolist()))


@dataclass(frozen=True)
class Batch:
    """What was read.

    Args:
        path: The file or folder, as the user gave it.
        formats: Names of the readers that read it.
        purpose: What the batch is for, given or inferred.
        purpose_given: Whether the user stated it.
        purpose_because: What suggests it, where it was inferred.
        rows: Rows (preference pairs count once).
        sides: The token rows. A preference batch has "chosen" and "rejected", and "prompt" if there is such a column.
        targets: The labels of an encoder-decoder or of speech, as token rows of their own.
        classes: One class label for each row, if the labels are classes.
        class_names: What the labels stand for, where the file has names and no numbers.
        numbers: The number of each row in the file.
        floats: Float inputs by column name.
        stored_as_bytes: Those of them that the file holds as bytes.
        boxes: The boxes that a detector is to find.
        masks: The masks of segments that are to be found.
        decoder_inputs: What the decoder is shown, where that is a column next to the targets.
        rest: Where there are no token rows, what each row holds that no other field does: text, categories.
        cells: The columns of a table of measurements, with one value for each row.
        columns: The columns of the file.
        tokenizer, model: What was given with the batch.
        words: What the text was split into, where it came without its tokenizer: its ids are words, not tokens.
        problems: What reading found.
        notes: What was skipped or guessed.
        overlap: What rows share, once all of the data has been read.
        totals: Lengths and classes of all rows, once all of the data has been read.
        role_budget: Tokens that may be decoded to look for role markers.
        shard, windows, tail, cut_off: As of the table that was read.
        document_lengths: Tokens of the documents in each row, where a column of that name tells.
        stored: The type of the ids in the file, such as uint16.
        corpus: What a tokenized corpus holds, once all of it has been read.
        is_rated: Whether rows have a reward or an advantage, as rollouts do.
        sources: The column that names where each row is from, and the names.
    """

    path: str
    formats: tuple[str, ...]
    purpose: Purpose
    purpose_given: bool
    rows: int
    numbers: Ints
    purpose_because: str = ""
    sides: tuple[Sequences, ...] = ()
    targets: Sequences | None = None
    classes: Ints | None = None
    class_names: Mapping[int, str] = field(default_factory=dict)
    floats: Mapping[str, npt.NDArray[np.float64]] = field(default_factory=dict)
    stored_as_bytes: frozenset[str] = frozenset()
    integers: Mapping[str, Ints] = field(default_factory=dict)
    boxes: Boxes | None = None
    masks: Masks | None = None
    decoder_inputs: Ragged | None = None
    rest: Rest | None = None
    cells: Mapping[str, Column] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    tokenizer: Tokenizer | None = None
    model: ModelConfig = field(default_factory=ModelConfig)
    words: Words | None = None
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    overlap: Overlap | None = None
    totals: Totals | None = None
    role_budget: int = MAX_ROLE_TOKENS
    shard: str = ""
    tail: npt.NDArray[np.integer] | None = None
    cut_off: int = 0
    windows: bool = False
    document_lengths: Ragged | None = None
    stored: str = ""
    corpus: CorpusCounts | None = None
    is_rated: bool = False
    sources: tuple[str, tuple[str, ...]] = ("", ())

    @property
    def rows_are_for(self) -> Purpose:
        """The purpose that the rows have the form of: prompts with marked completions (kto) have that of answers."""
        return "sft" if self.purpose == "kto" else self.purpose

    def parts(self) -> Iterator[tuple[str, Ints]]:
        """Yield the sources of the rows, or the file where none or too many are named, with the places of its rows."""
        places: dict[str, list[int]] = {}
        for place, name in enumerate(self.sources[1]):
            places.setdefault(name, []).append(place)
        if not 0 < len(places) <= MAX_PARTS:
            places = {self.shard: list(range(self.rows))}
        for name, rows in places.items():
            yield name, np.array(rows, np.int64)

    def side(self, name: str) -> Sequences | None:
        """Return the token rows of this name, or None."""
        return next((side for side in self.sides if side.name == name), None)

    @property
    def trained_sides(self) -> tuple[Sequences, ...]:
        """The token rows for which it is known where the loss is computed."""
        return tuple(side for side in self.sides if side.trained is not None)

    @property
    def labelled(self) -> tuple[Sequences, ...]:
        """The token rows that carry labels: the trained sides, and separate targets."""
        return self.trained_sides if self.targets is None else (*self.trained_sides, self.targets)

    @property
    def full_sides(self) -> tuple[Sequences, ...]:
        """The token rows that begin at the start of a text: not completions whose prompts are in a separate column."""
        prompt = self.side("prompt")
        return self.sides if prompt is None else (prompt,)

    @property
    def bos(self) -> int | None:
        """The token that begins a text, from the tokenizer, else from the model's configuration."""
        if self.words is not None:
            return None
        return self.tokenizer.bos if self.tokenizer is not None else self.model.bos

    @property
    def is_corpus(self) -> bool:
        """Whether it is a piece of a tokenized corpus to pretrain on, whose rows are documents or cuts of a stream."""
        return bool(self.stored) and self.purpose == "pretraining" and [side.name for side in self.sides] == [""]

    @property
    def is_labelled(self) -> bool:
        """Whether labels, masks or positions accompany the ids; they may be wrong in any piece."""
        side = self.sides[0]
        columns = (side.attention, side.positions, side.loss_mask)
        return (side.labels or side.ids) is not side.ids or any(column is not None for column in columns)

    @property
    def texts(self) -> Encoder | None:
        """What knows the text of an id, or None."""
        return self.words if self.tokenizer is None else self.tokenizer

    @property
    def unit(self) -> Literal["tokens", "words"]:
        """What a position of a row is."""
        return "tokens" if self.words is None else "words"

    @property
    def mask(self) -> int | None:
        """The token that hides a word from a masked language model, where the tokenizer tells."""
        return self.tokenizer.mask if self.tokenizer is not None else None

    @cached_property
    def ends(self) -> frozenset[int]:
        """The tokens that end a turn or a text, from the tokenizer and its template, else from the configuration."""
        if self.words is not None:
            return frozenset({END_OF_TURN_ID})
        return self.tokenizer.ends if self.tokenizer is not None else frozenset(self.model.eos)

    @property
    def vocabulary(self) -> int | None:
        """How many token ids the model knows, or else the tokenizer."""
        if self.words is not None:
            return None
        if self.model.vocab_size is not None:
            return self.model.vocab_size
        return self.tokenizer.size if self.tokenizer is not None else None

    @cached_property
    def roles(self) -> tuple[RowRoles, ...]:
        """The rows decoded, with the role spans that their markers show; empty without a tokenizer."""
        found: list[RowRoles] = []
        if self.tokenizer is None:
            return ()
        budget = self.role_budget
        for side in self.sides:
            for index in range(side.rows):
                budget -= int(side.ids.offsets[index + 1] - side.ids.offsets[index])
                if budget < 0:
                    return tuple(found)
                found.append(read_roles(side, index, self.tokenizer))
        return tuple(found)


@dataclass(slots=True)
class Context:
    """What is known besides the file's content; of a piece of a large file `first` is the number of its first row."""

    path: str
    formats: tuple[str, ...] = ()
    purpose: Purpose | None = None
    tokenizer: Tokenizer | None = None
    model: ModelConfig = field(default_factory=ModelConfig)
    first: int = 0
