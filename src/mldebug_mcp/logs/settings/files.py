"""Configuration files: reading one, and finding those that belong to a log."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path

from mldebug_mcp.core.access import entries, is_file, is_folder
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import dataclass, regex
from mldebug_mcp.core.text import shorten
from mldebug_mcp.logs.log_file import HEAD_BYTES, LogFile
from mldebug_mcp.logs.settings.forms import MAX_YAML_BYTES, UnreadableError, only_assigns, values_in
from mldebug_mcp.logs.settings.settings import Settings

MAX_CONFIG_BYTES = 4 * 1024 * 1024
MAX_LOOKED_AT = 40
"""Files next to a log that are looked at; a folder with more is not a run's own."""
MAX_OTHER_BYTES = 64 * 1024
"""Bytes of a file that is looked at because its name ends like that of a configuration."""
LEAST_KNOWN = 4
"""Known settings that make such a file a configuration; chosen by hand: results name a rate and a batch too."""

PARAMETERS = {"task.json": "hyperparams", "run.plx.json": "inputs"}
"""Files in which ClearML and Polyaxon describe a run, and where in them its parameters stand."""
FILE_NAMES = (
    "config.json", "config.yaml", "config.yml", "training_args.json", "train_args.json", "training_config.json",
    "args.json", "args.yaml", "hparams.yaml", "hparams.json", "params.json", "params.yaml", "train_config.yaml",
    "train_config.json", "params.yml",
    "training_args.yaml", "run_config.json", ".hydra/config.yaml", "adapter_config.json", "config.toml", "config.ini",
    "ds_config.json", "deepspeed_config.json", "args.txt", "opt.txt", "train_opt.txt", "cmd.txt", "command.txt",
    "command", "cmd", "cmd.sh", "command.sh", ".hydra/overrides.yaml", "overrides.yaml", "wandb-metadata.json",
    ".guild/attrs/flags", "training_args.bin", *PARAMETERS,
)  # fmt: skip
"""Where trainers leave their configuration, in the order in which they are believed."""

_SAYS_WHAT_IT_IS = frozenset(
    {"config", "configuration", "cfg", "conf", "settings", "args", "arguments", "hparams", "params", "opts", "options",
     "log", "train", "training", "run", "metrics", "history", "output", "out", "stdout", "results"}
)  # fmt: skip
"""Words in names of configurations and logs that tell no run from another."""
_SUFFIXES = frozenset({".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".sh", ".sbatch", ".slurm"})
_NOT_SETTINGS = regex(
    r"trainer_state|tokenizer|vocab|special_tokens|added_tokens|merges|generation_config|index\.json|results|metrics|package"
    r"|preprocessor|lock|requirements|environment|dataset_info|pyproject|setup\.cfg|summary"
)


def read_settings(path: Path) -> Settings:
    """Return the settings in a file of any form; raises InputError, with what is wrong, if there are none."""
    if path.suffix == ".bin":
        from mldebug_mcp.logs.settings.pickled import read_pickled  # what it imports is seldom needed

        saved = read_pickled(path)
        if isinstance(steps := saved.get("max_steps"), (int, float)) and steps > 0:
            saved.pop("num_train_epochs", None)  # the Trainer goes by the steps, and leaves the default where it stands
        return Settings.of(saved, path.name, path.stem)
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
    if isinstance(parameters := values.get(PARAMETERS.get(path.name, "")), Mapping):
        values = parameters  # the rest tells what was run, not how
    return Settings.of(values, path.name, path.stem)


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A file with the settings of a run.

    Args:
        path: The file.
        tie: Why it is taken for the configuration of the run.
    """

    path: Path
    tie: str


def find_settings(
    places: Iterable[Path],
    logs: Sequence[Path] = (),
    texts: Sequence[Path] = (),
    owns_folder: Callable[[], bool] = lambda: True,
) -> tuple[SettingsFile, ...]:
    """Return the files that hold the configuration of a run, in the order in which they are believed.

    Those in the first folder that has some. The log names a file, or a file has the name of the log. Where the folder
    holds no other run, a usual name ties a file to it too, and so does being the only configuration there. Python
    source counts where no other file does.

    `owns_folder` says whether the folder holds no other run: it is asked only where that matters.
    """
    for place in dict.fromkeys(places):
        found = _tied_in(place, logs, texts, owns_folder)
        if found:
            return found
    return ()


def read_found(files: Sequence[SettingsFile]) -> tuple[Settings, tuple[str, ...]]:
    """Return the settings in files that nobody named, and notes on them: a broken one is left out."""
    found, notes = [], []
    for file in files:
        try:
            settings = read_settings(file.path)
        except InputError as error:
            notes.append(f"read without its configuration: {error}")
            continue
        found.append(settings)
        notes.append(f"configuration read from {shorten(file.path.name, 80)} ({file.tie})")
    merged = Settings.merged(*found)
    return merged, (*notes, *merged.notes)


def _tied_in(
    place: Path, logs: Sequence[Path], texts: Sequence[Path], owns_folder: Callable[[], bool]
) -> tuple[SettingsFile, ...]:
    usual = tuple(place / name for name in FILE_NAMES if is_file(place / name))
    others = _candidates(place, logs, texts, _SUFFIXES)
    source = _candidates(place, logs, (), frozenset({".py"}))
    if not (usual or others or source):
        return ()
    heads = _heads(logs)
    named = [path for path in (*usual, *others) if _names(heads, path) and _holds_settings(path)]
    found = [SettingsFile(path, "the log names it") for path in named]
    if usual and owns_folder():
        found += [SettingsFile(path, "a usual name in the folder of the run") for path in usual if path not in named]
    return tuple(found) or _tied_by_name(others, logs, owns_folder) or _source_of(source, heads, logs, owns_folder)


def _tied_by_name(
    candidates: Sequence[Path], logs: Sequence[Path], owns_folder: Callable[[], bool]
) -> tuple[SettingsFile, ...]:
    """Return the configuration with the name of a log, else the only one in the folder of the run."""
    namesakes = [path for path in candidates if _is_namesake(path, logs)]
    if len(candidates) > MAX_LOOKED_AT:
        candidates = namesakes
    found = [path for path in candidates if _holds_settings(path)]
    for path in found:
        if path in namesakes:
            return (SettingsFile(path, "it has the name of the log"),)
    if len(found) == 1 and owns_folder():
        return (SettingsFile(found[0], "the only configuration in the folder of the run"),)
    return ()


def _source_of(
    source: Sequence[Path], heads: str, logs: Sequence[Path], owns_folder: Callable[[], bool]
) -> tuple[SettingsFile, ...]:
    """Return the Python source of a run: what the log names, its namesake, or the only one that does nothing but set.

    A script in the folder of a log may be another program's. MMEngine leaves a source of assignments alone.
    """
    source = source[:MAX_LOOKED_AT]
    for path in source:
        if _names(heads, path) and _holds_settings(path):
            return (SettingsFile(path, "the log names it"),)
    for path in source:
        if _is_namesake(path, logs) and _holds_settings(path):
            return (SettingsFile(path, "it has the name of the log"),)
    found = [path for path in source if _only_assigns(path) and _holds_settings(path)]
    if len(found) == 1 and owns_folder():
        return (SettingsFile(found[0], "the only configuration in the folder of the run"),)
    return ()


def _heads(logs: Sequence[Path]) -> str:
    """Return the beginnings of logs of text, in which they may name their configuration."""
    heads = []
    for path in logs[:MAX_LOOKED_AT]:
        try:
            heads.append(LogFile.open(path).head[:HEAD_BYTES])
        except (InputError, OSError):
            continue
    return "\n".join(heads)


def _names(heads: str, path: Path) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(path.name)}(?![\w.-])", heads) is not None


def _is_namesake(path: Path, logs: Sequence[Path]) -> bool:
    """Say whether a file has the name of a log apart from common words: `bert.log`, `config_bert.yml`."""
    own = _name_words(path)
    return any(path.stem == log.stem or (own and own == _name_words(log)) for log in logs)


def _name_words(path: Path) -> list[str]:
    return [word for word in re.findall(r"[^\W_]+", path.stem.lower()) if word not in _SAYS_WHAT_IT_IS]


def _only_assigns(path: Path) -> bool:
    try:
        return only_assigns(LogFile.open(path).text())
    except (InputError, OSError):
        return False


def _candidates(place: Path, logs: Sequence[Path], texts: Sequence[Path], suffixes: frozenset[str]) -> tuple[Path, ...]:
    """Return the files of a folder that may hold settings under a name of their own; at most one beyond the limit."""
    try:
        listed = entries(place) if is_folder(place) else []
    except (OSError, InputError):
        return ()
    found = (
        path
        for path in listed
        if path in texts
        or (
            path.suffix.lower() in suffixes
            and path not in logs
            and path.name not in FILE_NAMES
            and not _NOT_SETTINGS.search(path.name.lower())
            and is_file(path)
        )
    )
    return tuple(islice(found, MAX_LOOKED_AT + 1))


def _holds_settings(path: Path) -> bool:
    try:
        if path.stat().st_size > MAX_OTHER_BYTES:
            return False
        return len(read_settings(path).known) >= LEAST_KNOWN
    except (InputError, OSError):
        return False
