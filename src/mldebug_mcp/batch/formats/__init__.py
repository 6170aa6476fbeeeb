"""The file formats of batches and data sets, listed in `FORMATS`, most particular first.

The formats of one family share a module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mldebug_mcp.batch.formats.files import Format
from mldebug_mcp.batch.formats.sample_shards import LITDATA, MDS, WEBDATASET
from mldebug_mcp.batch.formats.tables import ARROW, CSV, JSON, JSON_LINES, PARQUET, in_folder
from mldebug_mcp.batch.formats.tensors import NPZ, PRINTED, SAFETENSORS, TORCH
from mldebug_mcp.batch.formats.tf_records import ARRAY_RECORD, TFRECORD
from mldebug_mcp.batch.formats.token_ids import (
    DATATROVE,
    DTYPES,
    HEAD_BYTES,
    MEGATRON,
    SHARD_ENDINGS,
    SHARDS,
    TOKENS,
    shards_of,
    tokens_of,
)
from mldebug_mcp.core.access import entries, is_file, is_folder, matching, open_input, require
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.paths import unreadable
from mldebug_mcp.core.text import counted, shorten, some_of

FORMATS: tuple[Format, ...] = (
    LITDATA, MDS, ARROW, PARQUET, NPZ, TORCH, SAFETENSORS, WEBDATASET, ARRAY_RECORD, TFRECORD, MEGATRON, DATATROVE, CSV,
    JSON_LINES, PRINTED, JSON, TOKENS, SHARDS,
    in_folder(JSON_LINES, (".jsonl", ".ndjson")), in_folder(CSV, (".csv", ".tsv")), in_folder(NPZ, (".npz",)),
    in_folder(TORCH, (".pt", ".pth"), may_be_weights=True),
)  # fmt: skip
KNOWN_FORMATS = (
    "JSON, JSONL, CSV, parquet, an Arrow file or save_to_disk folder, safetensors, npz, a .pt of plain tensors, "
    "Megatron's .bin and .idx, datatrove's .ds; a folder of MDS or LitData, WebDataset's .tar, TFRecord, ArrayRecord; "
    "a .bin or raw .npy of token ids, a folder or prefix of such shards; a folder of JSONL, CSV, npz or .pt files; a "
    "text in which a program printed the batch"
)


def other_formats_note(folder: Path, read_as: Format) -> list[str]:
    """Return the note that a folder that is read as one format holds files of others; none if it does not."""
    own = read_as.endings
    foreign = tuple(ending for known in FORMATS for ending in known.endings if ending not in own)
    left = [file.name for file in matching(folder, "") if file.name.endswith(foreign)] if own else []
    if not left:
        return []
    files = counted(len(left), "file")
    return [
        f"left out {files} of other formats than {read_as.name} ({some_of(left)}); give them in a folder of their own"
    ]


@dataclass(frozen=True, slots=True)
class Stated:
    """What the user states of a file instead of having it inferred: the name of its format, the type of raw ids.

    `names` gives our name of a column by the file's; the file must have these columns if `all_named`.
    """

    format: str = ""
    dtype: str = ""
    names: tuple[tuple[str, str], ...] = ()
    all_named: bool = True

    def for_another(self, path: Path) -> Stated:
        """Return what of it holds for another file: its type for raw ids, its format where that cannot be inferred."""
        try:
            name = format_of(path).name
        except InputError:
            return replace(self, all_named=False)
        return replace(self, format="", dtype=self.dtype if name in RAW_IDS else "", all_named=False)


NOTHING_STATED = Stated()
RAW_IDS = frozenset({TOKENS.name, SHARDS.name})
"""Formats that may hold ids of a type that the file does not state."""


def format_of(path: Path, stated: Stated = NOTHING_STATED) -> Format:
    """Return the format of a file or folder.

    Raises:
        InputError: it does not exist, is empty, is in no known format, or what is stated of it does not exist.
    """
    name = shorten(str(path), 200)
    require(path)
    folder = is_folder(path)
    try:
        head = b""
        if not folder:
            with open_input(path) as file:
                head = file.read(HEAD_BYTES)
    except OSError as error:
        raise InputError(f"{unreadable(path, error)}; check the path") from None
    if not folder and not head.strip():
        raise InputError(f"{name}: the file is empty; save the batch again, as {KNOWN_FORMATS}")
    found = (
        format_named(stated.format)
        if stated.format
        else next((known for known in FORMATS if known.matches(path, head)), None)
    )
    if stated.dtype and (found is None or found.name in RAW_IDS):
        if stated.dtype not in DTYPES:
            raise InputError(f"dtype {shorten(stated.dtype, 40)!r} does not exist; use one of: {', '.join(DTYPES)}")
        return shards_of(stated.dtype) if folder else tokens_of(stated.dtype)
    if stated.dtype and found is not None:
        raise InputError(f"{name}: {found.name} states the type of its ids; leave out dtype, or state format tokens")
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


def format_named(name: str) -> Format:
    """Return the format of a name; raises InputError if it does not exist."""
    found = next((known for known in FORMATS if name == known.name), None)
    if found is None:
        known = ", ".join(sorted(known.name for known in FORMATS))
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
