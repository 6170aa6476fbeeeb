"""A path → a Run: a single log, or a run folder searched for its logs and its configuration."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from mldebug_mcp.errors import InputError
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.config import FILE_NAMES, find_config, read_config
from mldebug_mcp.logs.readers import read_file
from mldebug_mcp.logs.run import Run
from mldebug_mcp.logs.source import LogFile
from mldebug_mcp.text import shorten

LOG_SUFFIXES = (".jsonl", ".ndjson", ".csv", ".tsv", ".log", ".out", ".txt", ".json")
"""Endings of files in a run folder that may be logs; a file named outright may have any."""
MAX_FILES = 200
"""Files of a folder that are looked at."""

_CHECKPOINT = re.compile(r"checkpoint[-_](\d+)")
_NOT_LOGS = frozenset(
    {Path(name).name for name in FILE_NAMES} | {"package.json", "tokenizer.json", "tokenizer_config.json", "vocab.json"}
)


def read_run(path: str | Path, config: str | Path | None = None) -> Run:
    """Read a log file or a run folder.

    Args:
        path: A log file, or a folder that holds one and, if it has one, the training configuration.
        config: The training configuration (JSON or YAML), where it does not stand beside the log.

    Raises:
        InputError: the path is missing, unreadable, binary, empty, or holds no metrics.
    """
    place = Path(path)
    try:
        log = _choose_log(place) if place.is_dir() else _read_log(place)
        settings_file = Path(config) if config is not None else find_config(place if place.is_dir() else place.parent)
        if settings_file is not None:
            log.configure(read_config(settings_file))
            log.note(f"configuration read from {settings_file.name}")
    except OSError as error:
        raise InputError(f"{shorten(str(path), 200)}: cannot be read ({error.strerror or error})") from None
    except UnicodeError as error:
        raise InputError(f"{shorten(str(path), 200)}: not text in a known encoding ({error})") from None
    except ValueError as error:  # a NUL byte in the path
        raise InputError(f"{shorten(str(path), 200)}: not a usable path ({error})") from None
    return log.build(str(path))


def _read_log(path: Path) -> RunBuilder:
    builder = RunBuilder()
    read_file(LogFile.open(path), builder)
    if not builder.records:
        raise InputError(
            f"{shorten(str(path), 200)}: no metrics found in it (read as {builder.formats[0]}); "
            "name the file that holds the losses, or explain an error message with `mldebug-mcp error`"
        )
    return builder


def _choose_log(folder: Path) -> RunBuilder:
    """Read the logs of a folder and return the fullest; the notes name the others."""
    found: list[tuple[Path, RunBuilder]] = []
    for candidate in _candidates(folder):
        try:
            found.append((candidate, _read_log(candidate)))
        except InputError:
            continue
    if not found:
        raise InputError(
            f"{shorten(str(folder), 200)}: no training log found in this folder "
            f"(looked for trainer_state.json and files ending in {', '.join(LOG_SUFFIXES)}); name the log file itself"
        )
    found.sort(key=lambda item: item[1].records, reverse=True)
    chosen, builder = found[0]
    if len(found) > 1:
        others = ", ".join(shorten(str(path.relative_to(folder)), 80) for path, _ in found[1:6])
        builder.note(f"read {chosen.relative_to(folder)}; other logs here: {others}; name one to read it instead")
    return builder


def _candidates(folder: Path) -> Iterator[Path]:
    """Yield the files of a run folder that may be its log; the newest trainer_state.json alone if there is one."""
    states = [folder / "trainer_state.json", *_checkpoint_states(folder)]
    state = next((path for path in states if path.is_file()), None)
    if state is not None:
        yield state
        return
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in LOG_SUFFIXES and path.is_file())
    yield from [path for path in files if path.name not in _NOT_LOGS][:MAX_FILES]


def _checkpoint_states(folder: Path) -> list[Path]:
    checkpoints = [
        (int(match[1]), path)
        for path in folder.iterdir()
        if (match := _CHECKPOINT.fullmatch(path.name)) and path.is_dir()
    ]
    return [path / "trainer_state.json" for _, path in sorted(checkpoints, reverse=True)]
