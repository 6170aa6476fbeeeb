"""Reading a batch, whole, in parts, as a sample, or some rows by their numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

import numpy as np

from mldebug_mcp.batch.batch import (
    MAX_ROLE_TOKENS,
    PURPOSES,
    Batch,
    Context,
    ModelConfig,
    Problem,
    Purpose,
    read_model_config,
)
from mldebug_mcp.batch.build import build, with_usual_names
from mldebug_mcp.batch.columns import (
    Column,
    Part,
    Table,
    depth,
    find,
    from_records,
    is_float,
    is_text,
    numbers,
    row_count,
)
from mldebug_mcp.batch.conversations import tokenize, with_plain_texts
from mldebug_mcp.batch.corpus import BIG_ENDIAN, DocumentCuts
from mldebug_mcp.batch.formats import NOTHING_STATED, Stated, at_prefix, format_named, format_of, other_formats_note
from mldebug_mcp.batch.formats.files import held_out_note
from mldebug_mcp.batch.formats.tables import JSON_LINES, MAX_LINE_BYTES, object_in
from mldebug_mcp.batch.relations import relation_problems
from mldebug_mcp.batch.roles import Words
from mldebug_mcp.batch.sequences import Floats, Ints, Ragged, offsets_of
from mldebug_mcp.batch.text_problems import written_problems
from mldebug_mcp.batch.tokenizer import Tokenizer, load_tokenizer
from mldebug_mcp.core.access import is_folder, open_input
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.limits import checkpoint
from mldebug_mcp.core.paths import expanded
from mldebug_mcp.core.text import counted, figure, shorten

# A sample of a data set: rows spread evenly over it, chosen by a fixed seed, numbered as in the file.


def thinned(tables: Iterator[Table], rows: int | None, sample: int, first: int = 0) -> Iterator[Table]:
    """Yield the tables with about `sample` of their rows; `rows` is None for a file of one piece, which then tells.

    The first row in the file has the number `first`.

    Raises:
        InputError: no row is wanted.
    """
    if sample < 1:
        raise InputError(f"a sample of {sample} rows holds nothing; ask for 1 or more")
    for table in tables:
        here = rows_of(table)
        share = sample / max(rows if rows is not None else here, 1)
        if here < 2 or share >= 1:
            yield part_of(table, np.arange(here), first) if here >= 2 else table
        else:
            # Seeded by where it stands: a piece gives the same rows whether or not others are read before it.
            chance = np.random.default_rng(first)
            places = np.sort(chance.choice(here, size=max(1, round(share * here)), replace=False))
            yield part_of(table, places, first)
        first += here


def rows_of(table: Table) -> int:
    """Return the rows of a table: those of its first column of more than one dimension, else of any."""
    columns = sorted(table.columns.values(), key=lambda column: depth(column) < 2)
    return row_count(columns[0]) if columns else 0


def part_of(table: Table, places: Ints, first: int) -> Table:
    """Return some rows of a table whose first row has a number in the file."""
    here = rows_of(table)
    columns = {
        name: _rows(column, places) if row_count(column) == here else column for name, column in table.columns.items()
    }
    corrupt = {new: table.corrupt[old] for new, old in enumerate(places.tolist()) if old in table.corrupt}
    return replace(table, columns=columns, rows_without={}, numbers=places + first, corrupt=corrupt)


def _rows(column: Column, places: Ints) -> Column:
    if isinstance(column, Ragged):
        return column.take(places)
    if isinstance(column, np.ndarray):
        return column[places]
    return [column[place] for place in places.tolist()]


# Some rows of a data set, by their numbers: of files in parts only the parts that hold them are read.


def count_rows(path: Path) -> int:
    """Return how many rows a data set has; raises InputError if it cannot be read."""
    found = format_of(path)
    if found.part_tables is not None:
        return found.rows(path) or 0
    if found is JSON_LINES:
        return sum(1 for _ in _lines(path))
    return sum(map(rows_of, found.tables(path)))


def picked(path: Path, numbers: Sequence[int]) -> Iterator[Table]:
    """Yield the rows of these numbers (from 0) as one table; those that are not there are left out.

    Raises:
        InputError: none of them is there, or the data cannot be read.
    """
    wanted = np.unique(np.array(numbers, np.int64))
    found = [table for table in _tables_with(path, wanted) if table.numbers is not None and len(table.numbers)]
    if not found:
        raise InputError(
            f"{shorten(str(path), 200)}: none of the rows asked for is in it; it has "
            f"{counted(count_rows(path), 'row')}, numbered from 0"
        )
    yield joined(found)


def joined(tables: Sequence[Table]) -> Table:
    """Return tables of the same file as one; a column that only some have is left out."""
    first, *others = tables
    if not others:
        return first
    shared = [name for name in first.columns if all(name in other.columns for other in others)]
    columns = {name: _joined([table.columns[name] for table in tables]) for name in shared}
    numbers = [table.numbers for table in tables if table.numbers is not None]
    return replace(first, columns=columns, numbers=np.concatenate(numbers), notes=list(first.notes))


def _tables_with(path: Path, wanted: Ints) -> Iterator[Table]:
    found = format_of(path)
    if found is JSON_LINES:
        yield from _of_lines(path, wanted)
        return
    if found.part_tables is None:
        yield from _with_numbers(found.tables(path), wanted, 0)
        return
    parts = found.parts(path)
    ends = [part.first for part in parts[1:]] + [np.iinfo(np.int64).max]
    for part, end in zip(parts, ends, strict=True):
        if np.any((wanted >= part.first) & (wanted < end)):
            yield from _with_numbers(found.part_tables(part), wanted, part.first)


def _with_numbers(tables: Iterator[Table], wanted: Ints, first: int) -> Iterator[Table]:
    for table in tables:
        here = rows_of(table)
        places = wanted[(wanted >= first) & (wanted < first + here)] - first
        if len(places):
            yield part_of(table, places, first)
        first += here
        if first > wanted[-1]:
            return


def _of_lines(path: Path, wanted: Ints) -> Iterator[Table]:
    """Yield the wanted lines; only they are parsed."""
    sought, last = set(wanted.tolist()), int(wanted[-1])
    numbers, records = [], []
    for number, line in enumerate(_lines(path)):
        record = object_in(line) if number in sought else None
        if record is not None:
            numbers.append(number)
            records.append(record)
        if number >= last:
            break
    yield replace(from_records(records), numbers=np.array(numbers, np.int64), rows_without={})


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines that hold rows."""
    with open_input(path) as file:
        while line := file.readline(MAX_LINE_BYTES):
            if line.lstrip(b"\xef\xbb\xbf \t")[:1] == b"{":
                yield line


def _joined(columns: Sequence[Column]) -> Column:
    if all(isinstance(column, Ragged) for column in columns):
        ragged = [column for column in columns if isinstance(column, Ragged)]
        lengths = np.concatenate([part.lengths for part in ragged])
        return Ragged(np.concatenate([part.flat for part in ragged]), offsets_of(lengths))
    arrays = [column for column in columns if isinstance(column, np.ndarray)]
    if len(arrays) == len(columns) and len({array.shape[1:] for array in arrays}) == 1:
        return np.concatenate(arrays)
    return [value for column in columns for value in _values(column)]


def _values(column: Column) -> list[object]:
    if isinstance(column, Ragged):
        return [column.row(index).tolist() for index in range(column.rows)]
    return list(column)


# Rewards and advantages beside the rows of a rollout, read as they are in the file: text keeps none of its columns.


ADVANTAGES = ("advantage", "advantages")
REWARDS = ("reward", "rewards", "returns", *ADVANTAGES)
MIN_ROWS_OF_ADVANTAGES = 4
"""Rows from which advantages of zero are no single group's. Chosen by hand."""
MIN_ROWS_OF_REWARDS = 32
"""Rows from which rewards that never vary are no few hard prompts. Chosen: four groups of eight."""


def _none_rewarded(rewards: Floats) -> bool:
    """Return whether all rewards are the same, and not above 0: answers kept for a reward have a greater one."""
    return bool(rewards[0, 0] <= 0 and (rewards == rewards[0, 0]).all())


SOURCE_NAMES = (
    "source", "data_source", "dataset", "dataset_name", "subset", "domain", "task", "category", "lang", "language",
    "camera", "camera_id", "sensor", "scanner", "device", "site",
)  # fmt: skip
"""Columns that name where a row is from. Sources: verl (`data_source`), TRL and NeMo (`task`), collections of sets."""


def _sources(table: Table, rows: int) -> tuple[str, tuple[str, ...]]:
    """Return the column that says where each row is from, and what it says; empty without any."""
    for name in SOURCE_NAMES:
        column = table.columns.get(name)
        if isinstance(column, (list, np.ndarray)) and len(column) == rows and depth(column) == 1:
            return name, tuple(map(str, column))
    return "", ()


def _unrewarded_sources(table: Table, name: str, rewards: Floats) -> Iterator[tuple[str, Ints]]:
    """Yield a sentence on each source whose rewards never vary and are not above 0, where those of others vary."""
    places: dict[str, list[int]] = {}
    for place, source in enumerate(_sources(table, len(rewards))[1]):
        places.setdefault(source, []).append(place)
    wrong = {
        source: rows
        for source, rows in places.items()
        if rewards[rows].size >= MIN_ROWS_OF_REWARDS and _none_rewarded(rewards[rows])
    }
    for source, rows in wrong.items() if len(wrong) < len(places) else ():
        least = figure(float(rewards[rows[0], 0]))
        yield (
            f"{name} is {least} in all {len(rows)} rows of {shorten(source, 60)}, and varies elsewhere",
            np.array(rows, np.int64),
        )


def rollout_problems(table: Table, first: int = 0) -> tuple[Problem, ...]:
    """Return what the rewards and advantages of a table show, whose first row has the number `first`."""
    found: list[Problem] = []
    for name in REWARDS:
        column = table.columns.get(name)
        values = numbers(column) if column is not None and is_float(column) else None
        if column is None or values is None or len(values) != row_count(column) or not len(values):
            continue
        flat = values.reshape(len(values), -1)
        if name in ADVANTAGES and len(flat) >= MIN_ROWS_OF_ADVANTAGES and flat.size and not flat.any():
            found.append(Problem("advantages_zero", f"{name} are 0 in all {len(flat)} rows"))
        if name == "reward" and len(flat) >= MIN_ROWS_OF_REWARDS and _none_rewarded(flat):
            found.append(Problem("advantages_zero", f"{name} is {figure(float(flat[0, 0]))} in all {len(flat)} rows"))
        elif name in ("reward", "rewards") and flat.size:
            found += [
                Problem.at("advantages_zero", summary, rows, table, first)
                for summary, rows in _unrewarded_sources(table, name, flat)
            ]
        wrong = np.flatnonzero(~np.isfinite(flat).all(axis=1))
        if len(wrong):
            summary = f"{name} is NaN or Inf in {len(wrong)} row(s)"
            found.append(Problem.at("nonfinite_values", summary, wrong, table, first))
    return tuple(found)


# Reading a batch: its format, its columns, and the tokenizer and model configuration given with it.


LATER_ROLE_TOKENS = 10_000
"""Tokens of each piece after the first that are decoded to look for role markers."""


@dataclass(frozen=True, slots=True)
class DataSet:
    """A batch or data set that can be read: the same for all of its parts, on whatever machine they are read.

    About `sample` rows are looked at, spread evenly over the data, or those of the numbers in `chosen`; None means all.
    `rows` is known only if a sample needs it and there is more than one piece.
    """

    file: Path
    context: Context
    purpose_given: bool
    sample: int | None = None
    rows: int | None = None
    chosen: Sequence[int] | None = None
    stated: Stated = NOTHING_STATED

    def batches(self) -> Iterator[Batch]:
        """Yield its pieces: one unless the file is large. Raises InputError if there are no rows."""
        any_rows = False
        for batch in self._built(self._tables(), 0):
            yield batch
            any_rows = True
        if not any_rows:
            raise InputError(f"{shorten(self.context.path, 200)}: holds no rows; save the batch again")

    def _tables(self) -> Iterator[Table]:
        try:
            if self.chosen is not None:
                yield from picked(self.file, self.chosen)
            else:
                yield from format_of(self.file, self.stated).tables(self.file)
        except OSError as error:  # such as a shard that an index names and that is not there
            which = shorten(str(error.filename or self.file.name), 100)
            raise InputError(
                f"{shorten(self.context.path, 200)}: cannot be read ({error.strerror or error}: {which}); check that "
                "all of its files are there"
            ) from None

    def parts(self) -> list[Part]:
        """Return the parts that can be read separately, in order; only one if the format is read in one go."""
        return format_of(self.file, self.stated).parts(self.file)

    def batches_of(self, part: Part) -> Iterator[Batch]:
        """Yield the pieces of a part; none if it holds no rows."""
        read = format_named(self.context.formats[0]).part_tables
        return self.batches() if read is None else self._built(read(part), part.first)

    def _built(self, tables: Iterator[Table], first: int) -> Iterator[Batch]:
        context = replace(self.context, first=first)
        words: Words | None = None
        if self.stated.names:
            tables = (_renamed(table, self.stated) for table in tables)
        if self.chosen is None:
            tables = _as_documents(tables, context)
        if self.sample is not None:
            tables = thinned(tables, self.rows, self.sample, first)
        any_rows = False
        for table in (with_usual_names(with_plain_texts(table)) for table in tables):
            checkpoint(f"reading {shorten(self.file.name, 60)}: row {context.first:,}")
            if not table.columns:
                continue
            words = None if context.tokenizer is not None or not is_text(table.columns) else words or Words()
            stored = _stored(table)
            batch = build(_tokenized(table, context, words), context, words)
            if batch.purpose == "sft" and is_text(table.columns):
                # How much is masked says nothing here: the mask was made for these texts a moment ago.
                batch = replace(batch, purpose_because="its texts hold answers to train on")
            notes = (*batch.notes, *(() if any_rows or first else self._left_out()))
            first = context.first
            written = written_problems(table, context.tokenizer, first)
            found = (*written, *rollout_problems(table, first), *relation_problems(table, first))
            problems = (*batch.problems, *found, *_corrupt(table, first))
            # All pieces take the purpose of the first; and of the later ones, decoding a part is enough.
            budget = LATER_ROLE_TOKENS if any_rows or first else MAX_ROLE_TOKENS
            context = replace(context, first=context.first + batch.rows, purpose=context.purpose or batch.purpose)
            yield replace(
                batch, sources=_sources(table, batch.rows),
                purpose_given=self.purpose_given, role_budget=budget, problems=problems, shard=table.shard,
                windows=table.stream is not None, tail=table.tail, cut_off=table.cut_off, stored=stored, notes=notes,
                document_lengths=_document_lengths(table), is_rated=any(name in table.columns for name in REWARDS),
            )  # fmt: skip
            any_rows = True

    def _left_out(self) -> list[str]:
        """Return the notes on files of the folder that are held out by their names, or of another format."""
        if not is_folder(self.file):
            return []
        found = format_of(self.file, self.stated)
        held_out = held_out_note(found.files_in(self.file)) if found.files_in is not None else []
        return [*held_out, *other_formats_note(self.file, found)]


def open_data(  # noqa: PLR0917 - what a data set is, and how it is read
    path: str | Path,
    tokenizer: str | Path | Tokenizer | None = None,
    model: str | Path | None = None,
    purpose: str = "auto",
    sample: int | None = None,
    stated: Stated = NOTHING_STATED,
) -> DataSet:
    """Find out how to read a batch or data set; the arguments are as in `inspect_batch`.

    Raises:
        InputError: something cannot be used; the message says what.
        MissingExtraError: a format or the tokenizer needs a package that is not installed.
    """
    file = at_prefix(expanded(path))
    found = format_of(file, stated)
    loaded = tokenizer if isinstance(tokenizer, Tokenizer) or tokenizer is None else load_tokenizer(tokenizer)
    config = read_model_config(model) if model is not None else ModelConfig()
    context = Context(str(path), (found.name,), _purpose(purpose), loaded, config)
    rows = None if sample is None else found.rows(file)
    return DataSet(file, context, purpose != "auto", sample, rows, stated=stated)


def read_batches(path: str | Path) -> Iterator[Batch]:
    """Yield a batch or data set, a piece at a time; raises what `open_data` does."""
    return open_data(path).batches()


def _purpose(name: str) -> Purpose | None:
    if name == "auto":
        return None
    found = next((purpose for purpose in PURPOSES if purpose == name), None)
    if found is None:
        raise InputError(
            f"purpose {shorten(name, 40)!r} does not exist; use one of: auto, {', '.join(get_args(Purpose))}"
        )
    return found


def _renamed(table: Table, stated: Stated) -> Table:
    """Return the table with columns of the file under our names. Raises InputError if it has no such column."""
    names = dict(stated.names)
    missing = [name for name in names if name not in table.columns]
    if missing and stated.all_named:
        have = ", ".join(shorten(name, 30) for name in list(table.columns)[:12])
        raise InputError(f"names: no column is called {shorten(missing[0], 60)!r}; the file has {have}")
    return replace(table, columns={names.get(name, name): column for name, column in table.columns.items()})


def _as_documents(tables: Iterator[Table], context: Context) -> Iterator[Table]:
    """Yield the tables of a stream cut at its documents, where tokenizer or configuration name their end."""
    tokenizer, model = context.tokenizer, context.model
    ends = frozenset(model.eos) if tokenizer is None else tokenizer.ends
    cuts, shard = DocumentCuts(ends, model.bos if tokenizer is None else tokenizer.bos), None
    for table in tables:
        ids = table.columns.get("input_ids")
        is_start, shard = table.shard != shard, table.shard
        if table.stream is None or not isinstance(ids, Ragged):
            yield table
            continue
        found = cuts.documents(table.stream, is_start=is_start)
        if found is None:
            yield table
            continue
        note = "cut into documents where the end token of the tokenizer or the configuration stands"
        columns: dict[str, Column] = {"input_ids": found, "labels": found}
        yield replace(table, columns=columns, stream=None, tail=None, notes=[*table.notes, note])


def _document_lengths(table: Table) -> Ragged | None:
    """Return the lengths of the documents of each row, as TRL's packing writes them, or by their starts, as NeMo does.

    Source: https://github.com/NVIDIA/NeMo/blob/main/nemo/utils/sequence_packing_utils.py
    """
    lengths, starts = (table.columns.get(name) for name in ("seq_lengths", "seq_start_id"))
    if isinstance(lengths, Ragged):
        return lengths
    name = find(table.columns, "", "ids")
    ids = None if name is None else table.columns[name]
    if not isinstance(starts, Ragged) or not isinstance(ids, Ragged) or starts.rows != ids.rows:
        return None
    # The lengths are how far apart starts are, the last one of a row to the end of the row.
    places = starts.flat.astype(np.int64) + np.repeat(ids.offsets[:-1], starts.lengths)
    found = np.diff(places, append=ids.offsets[-1:])
    return Ragged(found, starts.offsets) if len(found) and int(found.min()) >= 0 else None


def _stored(table: Table) -> str:
    """Return the type of the token ids of a table, which are turned round if they are not in this machine's order."""
    name = None if is_text(table.columns) else find(table.columns, "", "ids")
    column = None if name is None else table.columns[name]
    if name is None or not isinstance(column, (Ragged, np.ndarray)):
        return "" if name is None else "whole numbers"
    dtype = column.flat.dtype if isinstance(column, Ragged) else column.dtype
    if dtype.isnative:
        return dtype.name
    native = dtype.newbyteorder("=")
    turned = Ragged(column.flat.astype(native), column.offsets) if isinstance(column, Ragged) else column.astype(native)
    for other in [other for other, value in table.columns.items() if value is column]:
        table.columns[other] = turned
    return f"{dtype.name}, {BIG_ENDIAN}"


def _corrupt(table: Table, first: int) -> list[Problem]:
    """Return the records of a table, whose first row has a number in the file, that do not match their checksums."""
    if not table.corrupt:
        return []
    where = f"{shorten(table.shard, 80)}: " if table.shard else ""
    at = next(iter(table.corrupt.values()))
    summary = f"{where}the record at byte {at:,} does not match its checksum"
    return [Problem.at("records_corrupt", summary, list(table.corrupt), table, first)]


def _tokenized(table: Table, context: Context, words: Words | None) -> Table:
    """Return the table with its text rendered and tokenized, or split into words without a tokenizer."""
    encoder = words or context.tokenizer
    if encoder is None or not is_text(table.columns):
        return table
    return tokenize(table, encoder, context.purpose)
