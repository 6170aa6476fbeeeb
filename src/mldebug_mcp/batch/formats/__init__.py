"""The file formats of batches and data sets, listed in `READERS`, most particular first.

A format is a class of static methods; the formats of one family share a module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, cast

from mldebug_mcp.batch.columns import Part, Table
from mldebug_mcp.batch.formats.sample_shards import LitdataReader, MdsReader, WebdatasetReader
from mldebug_mcp.batch.formats.tables import ArrowReader, CsvReader, JsonLinesReader, JsonReader, ParquetReader
from mldebug_mcp.batch.formats.tensors import NpzReader, PrintedReader, SafetensorsReader, TorchReader
from mldebug_mcp.batch.formats.tf_records import ARRAY_RECORD_ENDINGS, ArrayRecordReader, TfrecordReader
from mldebug_mcp.batch.formats.token_ids import (
    DTYPES,
    HEAD_BYTES,
    SHARD_ENDINGS,
    DatatroveReader,
    MegatronReader,
    ShardsReader,
    TokenFileReader,
)
from mldebug_mcp.core.access import entries, is_file, is_folder, matching, open_input, require
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.paths import unreadable
from mldebug_mcp.core.text import counted, shorten, some_of


class Format(Protocol):
    """What a format offers."""

    NAME: str

    def matches(self, path: Path, head: bytes) -> bool:
        """Say from its name and first bytes whether a file or folder has this format."""

    def rows(self, path: Path) -> int | None:
        """Return how many rows there are, or None where one piece holds them all."""

    def tables(self, path: Path) -> Iterator[Table]:
        """Yield the content piece by piece. Raises InputError, ValueError or OSError if it cannot be read."""


class PartedFormat(Format, Protocol):
    """What a format offers whose parts can be read separately."""

    def parts(self, path: Path) -> list[Part]:
        """Return its parts, in order."""

    def part_tables(self, part: Part) -> Iterator[Table]:
        """Yield the content of a part, in the pieces in which `tables` yields it."""


READERS: tuple[Format, ...] = (
    LitdataReader, MdsReader, ArrowReader, ParquetReader, NpzReader, TorchReader, SafetensorsReader, WebdatasetReader,
    ArrayRecordReader, TfrecordReader, MegatronReader, DatatroveReader, CsvReader, JsonLinesReader, PrintedReader,
    JsonReader, TokenFileReader, ShardsReader,
)  # fmt: skip
IN_PARTS: Mapping[str, PartedFormat] = {reader.NAME: reader for reader in (ArrowReader, ParquetReader)}
"""Readers by name, of the formats whose parts can be read separately."""
FILES_IN: Mapping[str, Callable[[Path], list[Path]]] = {
    reader.NAME: reader.files_in
    for reader in (ParquetReader, WebdatasetReader, ArrayRecordReader, TfrecordReader, ShardsReader)
}
"""By the name of a format: the files of a folder that are read as one corpus, held out ones included."""
ENDINGS_OF: Mapping[str, tuple[str, ...]] = {
    MdsReader.NAME: (".mds", ".mds.zstd", ".mds.gz"),
    LitdataReader.NAME: (".bin",),
    ArrowReader.NAME: (".arrow",),
    ParquetReader.NAME: (".parquet",),
    WebdatasetReader.NAME: (".tar",),
    ArrayRecordReader.NAME: ARRAY_RECORD_ENDINGS,
    TfrecordReader.NAME: (".tfrecord", ".tfrecords"),
    ShardsReader.NAME: (*SHARD_ENDINGS, ".idx"),
}
"""Endings of the files in a folder of each format."""
KNOWN_FORMATS = (
    "JSON, JSONL, CSV, parquet, an Arrow file or save_to_disk folder, safetensors, npz, a .pt of plain tensors, "
    "Megatron's .bin and .idx, datatrove's .ds; a folder of MDS or LitData, WebDataset's .tar, TFRecord, ArrayRecord; "
    "a .bin or raw .npy of token ids, a folder or prefix of such shards; a text in which a program printed the batch"
)


def other_formats_note(folder: Path, name: str) -> list[str]:
    """Return the note that a folder that is read as one format holds files of others; none if it does not."""
    own = ENDINGS_OF.get(name, ())
    others = tuple(ending for endings in ENDINGS_OF.values() for ending in endings if ending not in own)
    left = [file.name for file in matching(folder, "") if file.name.endswith(others)] if own else []
    if not left:
        return []
    files = counted(len(left), "file")
    return [f"left out {files} of other formats than {name} ({some_of(left)}); give them in a folder of their own"]


@dataclass(frozen=True, slots=True)
class Stated:
    """What the user states of a file instead of having it inferred: the name of its reader, the type of raw token ids.

    `names` gives our name of a column by the file's; the file must have these columns if `all_named`.
    """

    format: str = ""
    dtype: str = ""
    names: tuple[tuple[str, str], ...] = ()
    all_named: bool = True

    def for_another(self, path: Path) -> Stated:
        """Return what of it holds for another file: its type for raw ids, its format where that cannot be inferred."""
        try:
            name = format_of(path).NAME
        except InputError:
            return replace(self, all_named=False)
        return replace(self, format="", dtype=self.dtype if name in RAW_IDS else "", all_named=False)


@dataclass(frozen=True, slots=True)
class _OfDtype:
    """The reader of raw token ids whose type the user states."""

    reader: type[ShardsReader | TokenFileReader]
    dtype: str

    @property
    def NAME(self) -> str:  # noqa: N802 - as of the other readers
        return self.reader.NAME

    def matches(self, path: Path, head: bytes) -> bool:
        return self.reader.matches(path, head)

    def rows(self, path: Path) -> int | None:
        return self.reader.rows(path, self.dtype)

    def tables(self, path: Path) -> Iterator[Table]:
        return self.reader.tables(path, self.dtype)


NOTHING_STATED = Stated()
RAW_IDS = frozenset({TokenFileReader.NAME, ShardsReader.NAME})
"""Formats that may hold ids of a type that the file does not state."""


def format_of(path: Path, stated: Stated = NOTHING_STATED) -> Format:
    """Return the reader of a file or folder.

    Raises:
        InputError: it does not exist, is empty, is in no known format, or what is stated of it does not exist.
    """
    name = shorten(str(path), 200)
    require(path)
    folder = is_folder(path)
    try:
        head = b"" if folder else _head(path)
    except OSError as error:
        raise InputError(f"{unreadable(path, error)}; check the path") from None
    if not folder and not head.strip():
        raise InputError(f"{name}: the file is empty; save the batch again, as {KNOWN_FORMATS}")
    found = (
        _named(stated.format)
        if stated.format
        else next((reader for reader in READERS if reader.matches(path, head)), None)
    )
    if stated.dtype and (found is None or found.NAME in RAW_IDS):
        if stated.dtype not in DTYPES:
            raise InputError(f"dtype {shorten(stated.dtype, 40)!r} does not exist; use one of: {', '.join(DTYPES)}")
        return cast("Format", _OfDtype(ShardsReader if folder else TokenFileReader, stated.dtype))
    if stated.dtype and found is not None:
        raise InputError(f"{name}: {found.NAME} states the type of its ids; leave out dtype, or state format tokens")
    if found is None:
        what = _unknown(path, head)
        raise InputError(
            f"{name}: {what}; give {KNOWN_FORMATS}, or save one with mldebug_mcp.capture.save_batch; of raw token ids "
            "state --format tokens and --dtype"
        )
    return found


PACKED: Mapping[bytes, str] = {
    b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"\xfd7zXZ": "xz",
}  # fmt: skip
"""First bytes of files that are packed, and by what."""
MAX_FOLDERS = 1000
PACKED_ENDINGS = (".gz", ".zst", ".zstd", ".bz2", ".xz")


def _unknown(path: Path, head: bytes) -> str:
    """Return what is known of a file or folder that is in no known format."""
    if not is_folder(path):
        packed = next((name for magic, name in PACKED.items() if head.startswith(magic)), None)
        return f"packed by {packed}: unpack it first" if packed else "not a format of batches"
    if matching(path, ".idx"):
        return "a folder with indexes of Megatron, whose .bin files are missing: copy both files into one folder"
    if any(matching(path, ending) for ending in PACKED_ENDINGS):
        return "a folder of packed files: unpack them first"
    endings = [ending for ending in SHARD_ENDINGS if matching(path, ending)]
    if len(endings) > 1:
        return f"a folder of {' and '.join(endings)} files: put those of one ending, which are one corpus, in a folder"
    below = [] if endings else [folder.name for folder in entries(path, MAX_FOLDERS) if is_folder(folder)]
    if below:
        return f"a folder without data, but with folders ({shorten(', '.join(below), 80)}): give one of them"
    return "a folder without Arrow, parquet or JSON lines files"


def _named(name: str) -> Format:
    found = next((reader for reader in READERS if name == reader.NAME), None)
    if found is None:
        known = ", ".join(sorted(reader.NAME for reader in READERS))
        raise InputError(f"format {shorten(name, 40)!r} does not exist; use one of: {known}")
    return found


PREFIX_ENDINGS = (".idx", ".bin", ".ds", ".npy")


def at_prefix(path: Path) -> Path:
    """Return the file that a prefix stands for, as Megatron names its data; the path itself otherwise.

    Raises:
        InputError: the prefix stands for several files.
    """
    if is_folder(path) or is_file(path) or not path.name:
        return path
    exact = [file for ending in PREFIX_ENDINGS if is_file(file := path.with_name(path.name + ending))]
    if exact:
        return exact[0]
    try:
        listed = entries(path.parent)
    except (OSError, InputError):
        return path
    found = [
        entry
        for entry in listed
        if entry.name.startswith(path.name) and entry.suffix in PREFIX_ENDINGS and is_file(entry)
    ]
    if len({entry.with_suffix("") for entry in found}) > 1:
        raise InputError(
            f"{shorten(str(path), 200)}: stands for {len(found)} files (such as {found[0].name} and {found[-1].name}); "
            "give the folder, to read them as one corpus, or one of them"
        )
    return found[0] if found else path


def _head(path: Path) -> bytes:
    with open_input(path) as file:
        return file.read(HEAD_BYTES)
