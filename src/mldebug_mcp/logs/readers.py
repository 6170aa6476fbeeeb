"""The list of readers.

Their order matters: the first whose `matches` holds reads the file, so the most particular come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mldebug_mcp.logs import (
    bare_columns,
    golden_values,
    hf_trainer_state,
    json_file,
    jsonl,
    megatron,
    mmcv_json,
    mmengine_json,
    parquet,
    sqlite_store,
    table,
    tensorboard,
    text_log,
    wandb_file,
)
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.printed_settings import printed_settings
from mldebug_mcp.logs.source import LogFile


class Reader(Protocol):
    """What a format's module offers."""

    NAME: str

    def matches(self, file: LogFile) -> bool:
        """Say from its name and first bytes whether a file has this format."""

    def read(self, file: LogFile, builder: RunBuilder) -> None:
        """Put the file's records into the builder."""


READERS: tuple[Reader, ...] = (
    tensorboard,
    wandb_file,
    sqlite_store,
    parquet,
    hf_trainer_state,
    golden_values,
    mmcv_json,
    mmengine_json,
    jsonl,
    json_file,
    megatron,
    table,
    bare_columns,
    text_log,
)
"""Every format, most particular first; `text_log` takes any text."""


def read_file(file: LogFile, builder: RunBuilder) -> None:
    """Read a file with the first reader that knows its format."""
    reader = next(reader for reader in READERS if reader.matches(file))
    builder.formats.append(reader.NAME)
    reader.read(file, builder)
    builder.configure(printed_settings(file.head))
    if file.skipped_lines:
        builder.note(f"skipped {file.skipped_lines} line(s) of more than 4 MiB")


def read_files(files: Sequence[LogFile], builder: RunBuilder) -> None:
    """Read a file, or the event files of one run together."""
    if len(files) > 1 and all(map(tensorboard.matches, files)):
        builder.formats.append(tensorboard.NAME)
        tensorboard.read_together(files, builder)
    else:
        for file in files:
            read_file(file, builder)
