"""Configuration files: reading one, pickled arguments too, and finding those that belong to a log."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from mldebug_mcp.core.access import entries, is_file, is_folder, open_input
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import dataclass, regex
from mldebug_mcp.core.text import shorten
from mldebug_mcp.logs.log_file import HEAD_BYTES, LogFile
from mldebug_mcp.logs.settings.printed import MAX_YAML_BYTES, UnreadableError, only_assigns, values_in
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
    return _only_one(found, owns_folder)


def _only_one(found: Sequence[Path], owns_folder: Callable[[], bool]) -> tuple[SettingsFile, ...]:
    """Return the only configuration in the folder of a run."""
    is_only = len(found) == 1 and owns_folder()
    return (SettingsFile(found[0], "the only configuration in the folder of the run"),) if is_only else ()


def _source_of(
    source: Sequence[Path], heads: str, logs: Sequence[Path], owns_folder: Callable[[], bool]
) -> tuple[SettingsFile, ...]:
    """Return the Python source of a run: what the log names, its namesake, or the only one that does nothing but set.

    A script in the folder of a log may be another program's. MMEngine leaves a source of assignments alone.
    """
    source = source[:MAX_LOOKED_AT]
    named = [(path, "the log names it") for path in source if _names(heads, path)]
    alike = [(path, "it has the name of the log") for path in source if _is_namesake(path, logs)]
    tied = next((SettingsFile(path, tie) for path, tie in (*named, *alike) if _holds_settings(path)), None)
    if tied is not None:
        return (tied,)
    return _only_one([path for path in source if _only_assigns(path) and _holds_settings(path)], owns_folder)


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
    return path.name in heads and re.search(rf"(?<![\w.-]){re.escape(path.name)}(?![\w.-])", heads) is not None


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


# `training_args.bin` → settings: the opcodes of the pickle are read one by one; nothing is imported or called.


MAX_FILE = 4 * 1024 * 1024
MAX_PICKLE = 1024 * 1024
"""Bytes of the pickle inside; that of TrainingArguments takes some ten thousand."""
MAX_OPCODES = 100_000
MAX_MEMO = 50_000

_PLAIN = frozenset(
    {"NONE", "NEWTRUE", "NEWFALSE", "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "FLOAT", "BINFLOAT",
     "STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"}
)  # fmt: skip
_CONSTANTS: dict[str, object] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_PICKLE_MARK = object()


def _errors_of_damage() -> tuple[type[Exception], ...]:
    """Return what is raised where a file is damaged."""
    import zipfile
    import zlib

    return (
        ValueError, KeyError, IndexError, TypeError, AttributeError, EOFError, OverflowError, RuntimeError,
        zipfile.BadZipFile, NotImplementedError, zlib.error,
    )  # fmt: skip


class _Object:
    """What a pickle would build, without being built: an enumeration's arguments are its value."""

    def __init__(self, arguments: object) -> None:
        self.arguments = arguments
        self.state: object = None


def read_pickled(path: Path, opcodes: int = MAX_OPCODES) -> dict[str, object]:
    """Return the plain values in a saved Namespace, dataclass or dictionary, of so many opcodes at most.

    Raises:
        InputError: it is not such a file, too large, or damaged.
    """
    name = shorten(str(path), 200)
    with open_input(path) as file:
        data = file.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise InputError(
            f"{name}: more than {MAX_FILE // 2**20} MiB are too many for saved arguments; name a JSON or YAML file"
        )
    try:
        found = _plain(_built(_pickle_in(data), opcodes), {})
    except _errors_of_damage() as error:
        raise InputError(
            f"{name}: the saved arguments cannot be read ({shorten(str(error), 100)}); name a JSON or YAML file"
        ) from None
    if not isinstance(found, dict) or not found:
        raise InputError(f"{name}: no settings in it; name a JSON or YAML file")
    return found


MAX_CHECKPOINT_PICKLE = 2 * 1024 * 1024
"""Bytes of the pickle of a checkpoint, without its tensors."""


def plain_values_in_checkpoint(path: Path) -> dict[str, object]:
    """Return the plain values in a file of torch.save; tensors are not read, and stand as None.

    Raises:
        InputError: it is not such a file, damaged, or holds too many values.
        OSError: it cannot be opened.
    """
    try:
        with open_input(path) as file:
            found = _plain(_built(_pickle_in_archive(file, MAX_CHECKPOINT_PICKLE), MAX_OPCODES), {})
    except _errors_of_damage() as error:
        raise InputError(f"{shorten(str(path), 200)}: its values cannot be read ({shorten(str(error), 100)})") from None
    return found if isinstance(found, dict) else {}


def _pickle_in(data: bytes) -> bytes:
    """Return the pickle in a file of torch.save, which is a zip archive, or was a row of pickles before."""
    return _pickle_in_archive(io.BytesIO(data), MAX_PICKLE) if data.startswith(b"PK") else data


def _pickle_in_archive(file: BinaryIO, most: int) -> bytes:
    """Return the pickle in a zip archive; raises ValueError if it has none, or one of more than so many bytes."""
    import zipfile  # few runs have a file of torch.save that is asked

    with zipfile.ZipFile(file) as archive:
        inner = next((entry for entry in archive.infolist() if entry.filename.endswith("data.pkl")), None)
        if inner is None:
            raise ValueError("no data.pkl in it")
        with archive.open(inner) as pickle:
            found = pickle.read(most + 1)
    if len(found) > most:
        raise ValueError("its pickle is too large")
    return found


def _built(data: bytes, opcodes: int) -> object:
    """Follow the opcodes of a pickle on a stack of plain values."""
    machine = _Machine()
    for count, (opcode, argument, _) in enumerate(_opcodes(data)):
        if count > opcodes:
            raise ValueError("too many opcodes")
        if opcode == "STOP":
            return machine.stack.pop()
        machine.take(opcode, argument)
    raise ValueError("cut off")


def _opcodes(data: bytes) -> Iterator[tuple[str, object, int | None]]:
    import pickletools  # few runs have a pickle

    for opcode, argument, at in pickletools.genops(data):
        yield opcode.name, argument, at


_OF_MEMBERS = frozenset({"builtins getattr", "__builtin__ getattr"})
"""What gives a member of an enumeration by its name, as Python 3.11.0 to 3.11.3 write it. Others write its value, which
in Transformers is the name in lower case."""


class _Machine:
    def __init__(self) -> None:
        self.stack: list[object] = []
        self.memo: dict[int, object] = {}

    def take(self, name: str, argument: object) -> None:
        """Take one opcode."""
        if name in _PLAIN:
            self.stack.append(_CONSTANTS.get(name, argument))
        elif name == "MARK":
            self.stack.append(_PICKLE_MARK)
        elif name in ("EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE", "EMPTY_SET"):
            self.stack.append({} if name == "EMPTY_DICT" else [])
        elif name in ("GLOBAL", "PERSID"):
            self.stack.append(str(argument))
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            self._combine(int(name[-1]))
        elif name in ("TUPLE", "LIST", "FROZENSET", "DICT"):
            items = self._to_mark()
            self.stack.append(_paired(items) if name == "DICT" else items)
        elif not (self._memorise(name, argument) or self._fill(name) or self._construct(name) or self._move(name)):
            raise ValueError(f"opcode {name}")

    def _memorise(self, name: str, argument: object) -> bool:
        if name in ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"):
            key = len(self.memo) if name == "MEMOIZE" else int(str(argument))
            if len(self.memo) >= MAX_MEMO:
                raise ValueError("too many objects")
            self.memo[key] = self.stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            self.stack.append(self.memo[int(str(argument))])
        else:
            return False
        return True

    def _fill(self, name: str) -> bool:
        if name in ("SETITEMS", "APPENDS", "ADDITEMS"):
            items = self._to_mark()
        elif name in ("SETITEM", "APPEND"):
            self._combine(2 if name == "SETITEM" else 1)
            items = _as_list(self.stack.pop())
        else:
            return False
        holder = self.stack[-1]
        if isinstance(holder, dict) and name.startswith("SET"):
            holder.update(_paired(items))
        elif isinstance(holder, list):
            holder.extend(items)
        return True

    def _construct(self, name: str) -> bool:
        """Stand in for what calls something: an object without anything but its arguments and its state."""
        if name in ("REDUCE", "NEWOBJ"):
            arguments, called = self.stack.pop(), self.stack[-1]
            if str(called) in _OF_MEMBERS and isinstance(arguments, list) and len(arguments) == 2:
                arguments = [str(arguments[1]).lower()]
            self.stack[-1] = _Object(arguments)
        elif name == "NEWOBJ_EX":
            del self.stack[-2:]
            self.stack[-1] = _Object([])
        elif name in ("OBJ", "INST"):
            self.stack.append(_Object(self._to_mark()))
        elif name == "BUILD":
            state = self.stack.pop()
            if isinstance(self.stack[-1], _Object):
                self.stack[-1].state = state
        else:
            return False
        return True

    def _move(self, name: str) -> bool:
        if name == "STACK_GLOBAL":
            del self.stack[-1]
        elif name == "BINPERSID":
            self.stack[-1] = None
        elif name == "POP":
            self.stack.pop()
        elif name == "POP_MARK":
            self._to_mark()
        elif name == "DUP":
            self.stack.append(self.stack[-1])
        else:
            return name in ("PROTO", "FRAME")
        return True

    def _to_mark(self) -> list[object]:
        items: list[object] = []
        while (item := self.stack.pop()) is not _PICKLE_MARK:
            items.append(item)
        return items[::-1]

    def _combine(self, count: int) -> None:
        if len(self.stack) < count:
            raise ValueError("the stack is empty")
        items = self.stack[-count:]
        self.stack[-count:] = [items]


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _paired(items: list[object]) -> dict[object, object]:
    keys, values = items[::2], items[1::2]
    return {key: value for key, value in zip(keys, values, strict=False) if isinstance(key, (str, int, float, bool))}


def _plain(value: object, done: dict[int, object]) -> object:
    """Return plain values; of an object its state, else its only argument. What occurs twice is made once."""
    if id(value) in done:
        return done[id(value)]
    done[id(value)] = None  # an object inside itself
    done[id(value)] = made = _plain_state(value, done)
    return made


def _plain_state(value: object, done: dict[int, object]) -> object:
    if isinstance(value, _Object):
        state = value.state
        if isinstance(state, list) and len(state) == 2:  # (__dict__, slots)
            state = state[0] or state[1]
        arguments = _as_list(value.arguments)
        inner = state if isinstance(state, dict) else arguments[0] if len(arguments) == 1 else None
        return _plain(inner, done)
    if isinstance(value, dict):
        return {str(key): _plain(item, done) for key, item in value.items() if not str(key).startswith("__")}
    if isinstance(value, list):
        return [_plain(item, done) for item in value]
    return value if isinstance(value, (str, int, float, bool)) else None
