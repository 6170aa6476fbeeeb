"""Which format reads a file; the formats of one family share a module.

A format is a class of static methods, or the module that holds nothing else. It has its `NAME` and how it is read
(`read`), one of text also how it is known (`matches`). A reader is imported when it is asked, so that a log costs only
the readers that come before its own. A format of lines that can be read on as they are written offers `follow` too.
`curve_folders` reads what a format spreads over several files.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Protocol, cast

from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.endings import tail_of
from mldebug_mcp.logs.log_file import LogFile
from mldebug_mcp.logs.run import RECORDER
from mldebug_mcp.logs.settings.printed import settings_in_head

BINARY_READERS = {
    "tensorboard": "tensorboard", "wandb": "trackers.WandbReader", "swanlab": "trackers.SwanlabReader",
    "visualdl": "trackers.VisualdlReader", "sqlite": "trackers.SqliteReader", "parquet": "frames.ParquetReader",
    "npz": "trainer_files.EvaluationsReader",
}  # fmt: skip
"""The reader of each binary format, by what `log_file.binary_format` calls it: its first bytes tell it."""
TEXT_READERS: dict[str, tuple[str, ...]] = {
    "json_records.RecordingReader": ("{",),
    "wrapped_text.NotebookReader": ("{",),
    "wrapped_text.MllogReader": (":::MLL",),
    "trainer_files.TrainerStateReader": ("{",),
    "trainer_files.CatboostReader": ("{",),
    "trainer_files.GoldenValuesReader": ("{",),
    "trainer_files.MmcvReader": ("{",),
    "trainer_files.MmengineReader": ("{",),
    "wrapped_text.WrappedTextReader": ("{",),
    "trackers.ScalarEventsReader": ('"type":',),
    "json_records.JsonLinesReader": ("{",),
    "json_records.JsonDocumentReader": ("{", "["),
    "json_records.YamlReader": (":", "- ", "---", "..."),
    "table.TableReader": ("",),
    "table.BareColumnsReader": ("",),
    "text_log": ("",),
}
"""Readers of the formats of text, most particular first: the first that `matches` reads; `text_log` takes any text.

Next to each are texts: the head of a file that it `matches` contains at least one. Without them its module is not
loaded.
"""


TOO_LONG = "line(s) of more than 4 MiB"


class Reader(Protocol):
    """What a format offers; one of text also says from a file's name and first bytes whether it `matches`."""

    NAME: str

    def matches(self, file: LogFile) -> bool:
        """Say whether it reads a file of text."""

    def read(self, file: LogFile, builder: RunBuilder) -> None:
        """Put the file's records into the builder."""


def reader_of(file: LogFile) -> Reader:
    """Return the first reader that knows a file's format."""
    if file.binary:
        return reader_named(BINARY_READERS[file.binary])
    names = (name for name, needs in TEXT_READERS.items() if any(need in file.head for need in needs))
    return next(reader for reader in map(reader_named, names) if reader.matches(file))


def reader_named(name: str) -> Reader:
    """Return the reader of a name such as "table.TableReader"; its module is imported."""
    module, _, reader = name.partition(".")
    found = import_module(f"mldebug_mcp.logs.formats.{module}")
    return cast("Reader", getattr(found, reader) if reader else found)


def read_file(file: LogFile, builder: RunBuilder) -> None:
    """Read a file with the first reader that knows its format."""
    reader = reader_of(file)
    builder.formats.append(reader.NAME)
    if file.decimal_commas:
        builder.note("numbers are written with decimal commas (0,25)")
    reader.read(file, builder)
    builder.ends(tail_of(file))
    # A JSON document is no log that prints settings, and a recording tells its own.
    has_lines = (
        not file.head.startswith(("{", "[")) or "\n{" in file.head or "text" in (builder.formats[-1], reader.NAME)
    )
    if has_lines and builder.formats[-1] != RECORDER:
        builder.configure(settings_in_head(file.head))
    note_problems(file, builder)


def note_problems(file: LogFile, builder: RunBuilder) -> None:
    """Note what a file holds that no reader takes, once it was read."""
    builder.skipped(file.skipped_lines, TOO_LONG)
    for problem in file.problems:
        builder.note(problem)
    if file.dropped_nuls:
        builder.note(
            f"left out {file.dropped_nuls:,} NUL bytes: what was being written at a crash, or a log that was emptied "
            "while a program wrote to it, leaves them"
        )


def read_files(files: Sequence[LogFile], builder: RunBuilder) -> None:
    """Read a file, or the event files or the curves of one run together."""
    if len(files) > 1 and all(file.binary == "tensorboard" for file in files):
        from mldebug_mcp.logs.formats import tensorboard

        builder.formats.append(tensorboard.NAME)
        tensorboard.read_together(files, builder)
        return
    if len(files) > 1:
        from mldebug_mcp.logs.formats import curve_folders

        if curve_folders.read_together(files, builder):
            return
    for file in files:
        read_file(file, builder)
