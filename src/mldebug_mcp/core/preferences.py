"""What a user prefers, from files: `mldebug.toml`, or `[tool.mldebug]` of a `pyproject.toml`.

Two files count. The project's is the nearest in the working directory or above it. The user's is `mldebug.toml` in the
folder of configurations (`XDG_CONFIG_HOME`, else `~/.config`), or the file that `MLDEBUG_MCP_CONFIG` names. The
project's wins, but anybody may have written it. So what runs a command, sends something or widens what a server reads
counts in the user's file alone. Options of the command line win over both.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import shorten

VARIABLE = "MLDEBUG_MCP_CONFIG"
READER_VARIABLE = "MLDEBUG_MCP_READER"
"""The command that judges runs as well, where no option names one."""
NAME = "mldebug.toml"
MAX_PREFERENCES_BYTES = 1_000_000
"""Bytes of a file of preferences. Chosen: a larger one is something else."""
MAX_PARENTS = 40
"""Folders above the working directory that are looked at. Chosen: deeper trees are rare."""


_OUR_KEY = regex(rb"mldebug[\].=\s\"']")
"""The key of our table in a `pyproject.toml`: without it no parser is loaded, which takes longer than all else here."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)  # most commands find no file to check


class Alarms(_Strict):
    """When `watch` raises an alarm, and what it does then."""

    probability: float | None = Field(default=None, ge=0, le=1)
    """The least probability of the leading fault."""
    looks: int | None = Field(default=None, ge=1, le=1000)
    """Looks in a row at which it leads."""
    every: float | None = Field(default=None, gt=0)
    """Seconds between two looks."""
    command: str | None = None
    """A command of the shell; of the user's file alone."""
    webhook: str | None = None
    """An address that the alarm is sent to; of the user's file alone."""
    notify: bool | None = None
    """Show it on the desktop."""


class Preferences(_Strict):
    """All that a file may say."""

    names: dict[str, str] = Field(default_factory=dict)
    """What names of a log mean, such as {"L": "loss"}."""
    roots: tuple[str, ...] = ()
    """Folders that a server may read; of the user's file alone."""
    reader: str | None = None
    """A command that judges runs as well, as `--reader` takes it; of the user's file alone."""
    alarms: Alarms = Alarms.model_construct()


OF_THE_USER = (("roots",), ("reader",), ("alarms", "command"), ("alarms", "webhook"))
"""Keys that count in the user's own file alone."""


class Found(NamedTuple):
    """The preferences that count, and what was left out of a project's file."""

    preferences: Preferences
    notes: tuple[str, ...]


def find_preferences() -> Found:
    """Return what the user's file and the project's, in the working directory or above, say together.

    Raises:
        InputError: a file cannot be read, is not TOML, or says something that is not known.
    """
    merged: dict[str, Any] = {}
    notes: list[str] = []
    for file, of_user in _files(Path.cwd()):
        table = _read(file)
        for path in () if of_user else OF_THE_USER:
            if _has_key(table, path):
                table = _without_key(table, path)
                notes.append(f"{file}: left out {'.'.join(path)}: it counts in {_user_folder() / NAME} alone")
        merged = _merged(merged, table)
    return Found(Preferences.model_validate(merged) if merged else Preferences.model_construct(), tuple(notes))


def _files(folder: Path) -> Iterator[tuple[Path, bool]]:
    """Yield the files that count, the weaker first, and whether each is the user's own."""
    named = os.environ.get(VARIABLE)
    own = Path(named) if named else _user_folder() / NAME
    if named and not own.is_file():
        raise InputError(f"{VARIABLE}: no such file: {shorten(named, 200)}; name a TOML file, or unset it")
    if own.is_file():
        yield own, True
    for place in (folder, *folder.parents[:MAX_PARENTS]):
        for file in (place / NAME, place / "pyproject.toml"):
            if file.is_file() and not (own.is_file() and file.samefile(own)) and _table(file):
                yield file, False
                return


def _user_folder() -> Path:
    folder = os.environ.get("XDG_CONFIG_HOME")
    return Path(folder) if folder else Path(os.path.expanduser("~")) / ".config"  # noqa: PTH111 - no error without a home


@lru_cache(maxsize=16)
def _table(file: Path) -> dict[str, Any]:
    """Return what a file says to us; empty if a `pyproject.toml` has no table of ours."""
    try:
        with file.open("rb") as opened:
            text = opened.read(MAX_PREFERENCES_BYTES + 1)
        if len(text) > MAX_PREFERENCES_BYTES:
            raise InputError(f"{file}: more than {MAX_PREFERENCES_BYTES} bytes; a file of preferences is short")
        if file.name == "pyproject.toml" and not _OUR_KEY.search(text):
            return {}
        import tomllib

        table = tomllib.loads(text.decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        if file.name != NAME:  # another tool's file: it is theirs to mend
            return {}
        raise InputError(f"{file}: cannot be read as TOML: {shorten(str(error), 200)}") from None
    found = table.get("tool", {}).get("mldebug", {}) if file.name == "pyproject.toml" else table
    return found if isinstance(found, dict) else {}


def _read(file: Path) -> dict[str, Any]:
    """Return what a file says to us, once it is known to be right."""
    table = _table(file)
    try:
        Preferences.model_validate(table)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(map(str, problem["loc"]))
        known = ", ".join([*Preferences.model_fields, *(f"alarms.{name}" for name in Alarms.model_fields)])
        raise InputError(f"{file}: {shorten(key, 60)}: {problem['msg'].lower()}; known keys: {known}") from None
    return table


def _has_key(table: dict[str, Any], path: tuple[str, ...]) -> bool:
    inner = table.get(path[0])
    return inner is not None if len(path) == 1 else isinstance(inner, dict) and _has_key(inner, path[1:])


def _without_key(table: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    """Return the table without a key in it."""
    if len(path) == 1:
        return {key: value for key, value in table.items() if key != path[0]}
    return table | {path[0]: _without_key(table[path[0]], path[1:])}


def _merged(weaker: dict[str, Any], stronger: dict[str, Any]) -> dict[str, Any]:
    """Return both tables as one, tables inside of them merged as well."""
    both = dict(weaker)
    for key, value in stronger.items():
        inner = both.get(key)
        both[key] = _merged(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return both
