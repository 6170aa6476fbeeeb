"""Configuration files: reading one, and finding those that belong to a log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from mldebug_mcp.access import is_file, is_folder
from mldebug_mcp.errors import InputError
from mldebug_mcp.folders import entries
from mldebug_mcp.logs.settings.forms import MAX_YAML_BYTES, UnreadableError, values_in
from mldebug_mcp.logs.settings.settings import Settings
from mldebug_mcp.logs.source import LogFile
from mldebug_mcp.text import shorten

MAX_CONFIG_BYTES = 4 * 1024 * 1024
MAX_LOOKED_AT = 40
"""Files beside a log that are looked at; a folder with more is no run's own."""
MAX_OTHER_BYTES = 64 * 1024
"""Bytes of a file that is looked at because its name ends like that of a configuration."""
LEAST_KNOWN = 4
"""Known settings that make such a file a configuration; chosen by hand: results name a rate and a batch too."""

FILE_NAMES = (
    "config.json", "config.yaml", "config.yml", "training_args.json", "train_args.json", "training_config.json",
    "args.json", "args.yaml", "hparams.yaml", "hparams.json", "params.json", "train_config.yaml", "train_config.json",
    "training_args.yaml", "run_config.json", ".hydra/config.yaml", "adapter_config.json", "config.toml", "config.ini",
    "ds_config.json", "deepspeed_config.json", "args.txt", "opt.txt", "train_opt.txt", "cmd.txt", "command.txt",
    "command", "cmd", "cmd.sh", "command.sh", ".hydra/overrides.yaml", "overrides.yaml", "wandb-metadata.json",
    "training_args.bin",
)  # fmt: skip
"""Where trainers leave their configuration, in the order in which they are believed."""

_SUFFIXES = frozenset({".json", ".yaml", ".yml", ".toml", ".ini", ".cfg"})
_NOT_SETTINGS = re.compile(
    r"trainer_state|tokenizer|vocab|special_tokens|added_tokens|merges|generation_config|index\.json|results|metrics|package"
    r"|preprocessor|lock|requirements|environment|dataset_info|pyproject|setup\.cfg|summary"
)


def read_settings(path: Path) -> Settings:
    """Return the settings in a file of any form; raises InputError, with what is wrong, if there are none."""
    if path.suffix == ".bin":
        from mldebug_mcp.logs.settings.pickled import read_pickled  # what it imports is seldom needed

        return Settings.of(read_pickled(path), path.name, path.stem)
    file = LogFile.open(path)
    most = MAX_YAML_BYTES if path.suffix in (".yaml", ".yml") else MAX_CONFIG_BYTES
    if file.size > most:
        raise InputError(
            f"{file.name}: {file.size:,} bytes is too large for a configuration; name the training configuration"
        )
    try:
        values = values_in(file.text(), path.suffix)
    except UnreadableError as error:
        raise InputError(
            f"{file.name}: no settings could be read from it ({shorten(str(error), 120)}); "
            "mend it or name another configuration (JSON, YAML, TOML, INI, a command line)"
        ) from None
    return Settings.of(values, path.name, path.stem)


def find_settings(places: Iterable[Path], logs: Sequence[Path] = (), texts: Sequence[Path] = ()) -> tuple[Path, ...]:
    """Return the files that hold the configuration of a run, in the order in which they are believed.

    Those in the first folder that has some: under a usual name, else under the name of the log, else the only one with
    settings in it.

    Args:
        places: Folders, those nearest to the run first.
        logs: The run's own logs.
        texts: Text that was printed beside them and holds no metrics, whatever its name ends in.
    """
    for place in dict.fromkeys(places):
        found = tuple(place / name for name in FILE_NAMES if is_file(place / name)) or _others(place, logs, texts)
        if found:
            return found
    return ()


def read_found(paths: Sequence[Path]) -> tuple[Settings, tuple[str, ...]]:
    """Return the settings in files that nobody named, and notes on them: a broken one is left out."""
    found, notes = [], []
    for path in paths:
        try:
            settings = read_settings(path)
        except InputError as error:
            notes.append(f"read without its configuration: {error}")
            continue
        found.append(settings)
        notes.append(f"configuration read from {shorten(path.name, 80)}")
    merged = Settings.merged(*found)
    return merged, (*notes, *merged.notes)


def _others(place: Path, logs: Sequence[Path], texts: Sequence[Path]) -> tuple[Path, ...]:
    """Return the file of a folder that is a configuration by what is in it: the log's namesake, else the only one."""
    return _only(place, logs, texts, _SUFFIXES) or _only(place, logs, (), frozenset({".py"}))


def _only(place: Path, logs: Sequence[Path], texts: Sequence[Path], suffixes: frozenset[str]) -> tuple[Path, ...]:
    candidates = (
        [] if not is_folder(place) else list(islice(_candidates(place, logs, texts, suffixes), MAX_LOOKED_AT + 1))
    )
    stems = {log.stem for log in logs}
    if len(candidates) > MAX_LOOKED_AT:
        candidates = [path for path in candidates if path.stem in stems]
    found = [path for path in candidates if _holds_settings(path)]
    namesakes = [path for path in found if path.stem in stems]
    return tuple(namesakes[:1] or (found if len(found) == 1 else ()))


def _candidates(place: Path, logs: Sequence[Path], texts: Sequence[Path], suffixes: frozenset[str]) -> Iterator[Path]:
    try:
        listed = entries(place)
    except (OSError, InputError):
        return
    for path in listed:
        if path in texts or (
            path.suffix.lower() in suffixes
            and path not in logs
            and not _NOT_SETTINGS.search(path.name.lower())
            and is_file(path)
        ):
            yield path


def _holds_settings(path: Path) -> bool:
    try:
        if path.stat().st_size > MAX_OTHER_BYTES:
            return False
        return len(read_settings(path).known) >= LEAST_KNOWN
    except (InputError, OSError):
        return False
