"""Columns → `Batch`: find out what each column is, compare their lengths, infer the purpose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from mldebug_mcp.batch import columns as names
from mldebug_mcp.batch.batch import Batch, Problem
from mldebug_mcp.batch.boxes import boxes_of
from mldebug_mcp.batch.cells import LEAST_ROWS, cells_of, is_numeric
from mldebug_mcp.batch.columns import Kind, depth, find, row_count
from mldebug_mcp.batch.context import Context
from mldebug_mcp.batch.other_columns import decoder_inputs, float_columns, integer_columns, rest_of
from mldebug_mcp.batch.padding import padding_token
from mldebug_mcp.batch.pair_scores import exchanged_pairs
from mldebug_mcp.batch.preference_rows import split_preference_halves, with_prompt_apart
from mldebug_mcp.batch.purpose import infer_purpose
from mldebug_mcp.batch.ragged import Bools, Ints, Ragged
from mldebug_mcp.batch.sequences import Sequences
from mldebug_mcp.batch.table import Column, Table
from mldebug_mcp.batch.targets import are_classes, are_targets, of_speech, target_rows, with_usual_names
from mldebug_mcp.batch.words import Words
from mldebug_mcp.errors import InputError
from mldebug_mcp.text import shorten

_BESIDE_IDS: tuple[Kind, ...] = ("labels", "attention", "positions", "loss_mask")
MAX_PROBLEM_ROWS = 1000
MAX_NAMES = 1000
MAX_NAME = 80
"""Columns that answers name, and characters of a name."""


@dataclass(slots=True)
class _Found:
    """What building one batch has found so far."""

    table: Table
    context: Context
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    targets: Ragged | None = None
    has_classes: bool = False
    class_names: dict[int, str] = field(default_factory=dict)
    is_words: bool = False

    def problem(self, check: str, summary: str, rows: list[int] | Ints) -> None:
        self.problems.append(Problem(check, summary, tuple(self.number(int(row)) for row in rows[:MAX_PROBLEM_ROWS])))

    def number(self, place: int) -> int:
        """Return the number in the file of a row of the table."""
        return self.context.first + place if self.table.numbers is None else int(self.table.numbers[place])

    def numbers(self, places: Ints) -> Ints:
        """Return the numbers in the file of rows of the table."""
        return places + self.context.first if self.table.numbers is None else self.table.numbers[places]


def build(table: Table, context: Context, words: Words | None = None) -> Batch:
    """Make a batch of a table; `words` is what its text was split into, where it had no tokenizer.

    Raises:
        InputError: no column is one that the checks know, or the token ids are not whole numbers.
    """
    table = with_usual_names(table)
    found = _Found(table, context, notes=list(table.notes), is_words=words is not None)
    wanted = _sides_in(table)
    sides = [side for name in wanted if (side := _side(found, name)) is not None]
    counts = [row_count(table.columns[name]) for side in wanted if (name := find(table.columns, side, "ids"))]
    counts = [1 if _ids_depth(found, wanted[0]) == 1 else count for count in counts]
    classes = _classes(found, sides)
    floats = float_columns(table)
    cells = {} if sides else cells_of(table)
    if not sides and not floats and classes is None and not _are_measurements(cells):
        known = "input_ids, labels, attention_mask, chosen_input_ids, rejected_input_ids, pixel_values"
        seen = ", ".join(shorten(name, 30) for name in list(table.columns)[:8]) or "none"
        raise InputError(
            f"{shorten(context.path, 200)}: none of its columns is one of a batch ({seen}); give some of {known}, ..."
        )
    if not sides:
        found.targets = of_speech(table)
    sides = split_preference_halves(sides, table, context.purpose)
    has_classes = classes is not None or found.has_classes
    purpose = context.purpose or infer_purpose(
        sides, floats, context, table, has_classes=has_classes, has_targets=found.targets is not None
    )
    rows = max([*counts, *([] if counts or classes is None else [len(classes)])], default=0)
    # Images of several sizes are one flat array of numbers, but as many rows as the column has.
    rows = rows or max((row_count(table.columns[name]) for name in (*floats, *cells)), default=0)
    if sides and sides[0].name == "chosen" and wanted == ("",):
        rows //= 2
    _missing(found)
    said, exchanged = exchanged_pairs(table)
    if len(exchanged):
        found.problem("preference_swapped", said, exchanged)
    return Batch(
        path=context.path,
        formats=context.formats,
        purpose=purpose,
        purpose_given=context.purpose is not None,
        rows=rows,
        numbers=found.numbers(np.arange(rows, dtype=np.int64)),
        sides=tuple(with_prompt_apart(sides)),
        targets=_targets(found),
        classes=classes,
        class_names=found.class_names,
        floats=floats,
        stored_as_bytes=frozenset(name for name in floats if names.is_bytes(table.columns[name])),
        integers=integer_columns(table, found.notes),
        boxes=boxes_of(table),
        words=words,
        decoder_inputs=None if found.targets is None else decoder_inputs(table),
        rest=rest_of(table, table.others if sides else tuple(table.columns), floats, rows),
        cells=cells,
        columns=tuple(shorten(name, MAX_NAME) for name in islice(table.columns, MAX_NAMES)),
        tokenizer=context.tokenizer,
        model=context.model,
        problems=tuple(found.problems),
        notes=tuple(found.notes),
    )


def _are_measurements(cells: Mapping[str, Column]) -> bool:
    """Return whether there are several numbers for each of several rows."""
    numeric = sum(map(is_numeric, cells.values()))
    return numeric > 1 and row_count(next(iter(cells.values()))) >= LEAST_ROWS


def _targets(found: _Found) -> Sequences | None:
    if found.targets is None:
        return None
    return target_rows(found.targets, found.numbers(np.arange(found.targets.rows, dtype=np.int64)), found.context)


def _sides_in(table: Table) -> tuple[str, ...]:
    have = {side for side in names.SIDES if find(table.columns, side, "ids")}
    if {"chosen", "rejected"} <= have or ("chosen" in have or "rejected" in have):
        return tuple(side for side in ("prompt", "chosen", "rejected") if side in have)
    if find(table.columns, "", "ids"):
        return ("",)
    return tuple(side for side in ("prompt", "completion") if side in have) or names.sides_of_own(table.columns)


def _read(found: _Found, side: str, kind: Kind) -> Ragged | None:
    """Return a column of a side as rows, or None if there is none or it is of another shape."""
    name = find(found.table.columns, side, kind)
    if name is None or (not side and kind == "loss_mask" and find(found.table.columns, "completion", "ids")):
        return None
    column = found.table.columns[name]
    if kind != "ids" and (depth(column) > 2 or (depth(column) == 1 and _ids_depth(found, side) > 1)):
        if kind == "positions":
            found.notes.append(f"{name} has {depth(column)} dimensions and was not checked")
        return None
    try:
        rows, missing = names.ragged(column)
    except (TypeError, ValueError, OverflowError) as error:
        told = f"{shorten(name, 100)} {error}"
        if kind == "ids":
            raise InputError(
                f"{shorten(found.context.path, 200)}: {told}; give token ids as lists of whole numbers"
            ) from None
        found.problem("schema_mismatch", told, [])
        return None
    if missing:
        found.problem("schema_mismatch", f"{len(missing)} row(s) lack {shorten(name, 100)}", missing)
    return rows


def _ids_depth(found: _Found, side: str) -> int:
    name = find(found.table.columns, side, "ids")
    return 0 if name is None else depth(found.table.columns[name])


def _side(found: _Found, name: str) -> Sequences | None:
    ids = _read(found, name, "ids")
    if ids is None:
        return None
    columns = {kind: _read(found, name, kind) for kind in _BESIDE_IDS}
    if not name and columns["labels"] is not None:
        columns["labels"] = _labels_of_tokens(found, ids, columns["labels"])
    keep = np.ones(ids.rows, np.bool_)
    for kind, column in columns.items():
        if column is None:
            continue
        agreeing = _agreeing(found, name, kind, ids, column)
        if agreeing is None:
            columns[kind] = None
        else:
            keep &= agreeing
    kept = np.flatnonzero(keep)
    if len(kept) < ids.rows:
        ids = ids.take(kept)
        columns = {kind: None if column is None else column.take(kept) for kind, column in columns.items()}
    labels = find(found.table.columns, name, "labels") or ""
    pad, may_end = (
        (None, False) if found.is_words else padding_token(ids, columns["attention"], columns["labels"], found.context)
    )
    return Sequences(
        name=name,
        ids=ids,
        numbers=found.numbers(kept),
        labels=columns["labels"],
        attention=columns["attention"],
        positions=columns["positions"],
        loss_mask=columns["loss_mask"],
        shifted_by_design=labels.removeprefix(f"{name}_") in names.NEXT_TOKEN_NAMES or _is_of_megatron(found, name),
        documents_masked=_documents_masked(found.table, name, columns["attention"]),
        pad=pad,
        pad_may_end=may_end,
    )


def _labels_of_tokens(found: _Found, ids: Ragged, labels: Ragged) -> Ragged | None:
    """Return the labels if they belong to the input's tokens; None if they are classes or separate texts."""
    if are_classes(ids, labels):
        found.has_classes = True
        found.notes.append(f"labels hold a 0 or 1 for each of {int(labels.lengths[0])} classes")
        return None
    known = found.context.model.encoder_decoder or "decoder_input_ids" in found.table.columns
    if not known and not are_targets(ids, labels):
        return labels
    found.targets = labels
    why = "of an encoder-decoder model" if known else "have lengths and texts of their own, as for an encoder-decoder:"
    found.notes.append(f"labels {why} are separate from input_ids and were not compared with them")
    return None


def _agreeing(found: _Found, side: str, kind: Kind, ids: Ragged, column: Ragged) -> Bools | None:
    """Return which rows of a column are as long as their token ids; None if the column as a whole does not fit."""
    name, ids_name = find(found.table.columns, side, kind), find(found.table.columns, side, "ids")
    if column.rows != ids.rows:
        found.problem("length_mismatch", f"{name} has {column.rows} rows, {ids_name} has {ids.rows}", [])
        return None
    wrong = np.flatnonzero(column.lengths != ids.lengths)
    if not len(wrong):
        return np.ones(ids.rows, np.bool_)
    row = int(wrong[0])
    found.problem(
        "length_mismatch",
        f"{name} and {ids_name} differ in length in {len(wrong)} of {ids.rows} row(s): in row "
        f"{found.number(row)} {int(column.lengths[row])} and {int(ids.lengths[row])}",
        wrong,
    )
    return None if 2 * len(wrong) > ids.rows else column.lengths == ids.lengths


def _is_of_megatron(found: _Found, side: str) -> bool:
    """Whether the columns are those that Megatron's data loaders give: their labels are the next tokens."""
    return find(found.table.columns, side, "ids") == "tokens" and "loss_mask" in found.table.columns


def _documents_masked(table: Table, side: str, attention: Ragged | None) -> bool:
    if any(mark in table.columns for mark in names.DOCUMENT_MARKS):
        return True
    if attention is not None:
        # Numbered documents (1 1 1 2 2) in the mask, as Axolotl's multipack writes them.
        return bool(len(attention.flat)) and int(attention.flat.max()) > 1
    name = find(table.columns, side, "attention")
    return name is not None and depth(table.columns[name]) > 2


def _classes(found: _Found, sides: list[Sequences]) -> Ints | None:
    if any(side.labels is not None for side in sides):
        return None
    for name in names.CLASS_NAMES:
        if name not in found.table.columns:
            continue
        column = found.table.columns[name]
        rows = row_count(column)
        if names.is_float(column) or (sides and rows != sides[0].rows):
            continue
        if (labels := names.class_labels(column, rows)) is not None:
            return labels
        if (named := names.named_classes(column, rows)) is not None:
            labels, found.class_names = named
            return labels
    return None


def _missing(found: _Found) -> None:
    """Report columns that some rows have and others lack."""
    known = set(names.FLOAT_INPUTS) | set(names.CLASS_NAMES)
    for kind in _BESIDE_IDS:
        known |= {find(found.table.columns, side, kind) or "" for side in ("", *names.SIDES)}
    reported = " ".join(problem.summary for problem in found.problems)
    for name, rows in found.table.rows_without.items():
        if name in known and f"lack {name}" not in reported:
            found.problems.append(Problem("schema_mismatch", f"{len(rows)} row(s) lack {name}", tuple(rows)))
