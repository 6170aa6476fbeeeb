"""A server's entry in a client's configuration: made, written as text to paste, and put into a file's text."""

from __future__ import annotations

import copy
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from mldebug_mcp.clients import jsonc
from mldebug_mcp.clients.table import Client
from mldebug_mcp.core.errors import InputError

BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True)
class Entry:
    """The server under a name, for one client."""

    client: Client
    name: str
    command: Sequence[str]
    roots: Sequence[str] = ()
    pythons: Sequence[str] | None = None
    """None: as before, else `found_python`."""
    found_python: str | None = None

    def fields(self, kept: Sequence[str] = ()) -> dict[str, Any]:
        """Return what identifies the server: these are kept up to date. `kept` are options that it had before."""
        program, *arguments = self.command
        options = [part for root in self.roots for part in ("--root", root)]
        options += [part for python in self.pythons or () for part in ("--python", python)]
        options += kept
        if self.pythons is None and self.found_python and "--python" not in options:
            options += ["--python", self.found_python]
        arguments += ["serve", *options] if options else []
        return {**dict(self.client.kind), "command": program, "args": arguments}

    def new(self) -> dict[str, Any]:
        """Return a whole new entry."""
        return {**self.fields(), **dict(self.client.limits)}


def snippet(entry: Entry) -> str:
    """Return the configuration as text to paste into an empty file."""
    return put_entry("", entry, "a new file", toml_file=is_toml(entry.client.user_file()))


def is_toml(path: PurePath) -> bool:
    """Return whether the client's file is TOML; all others are JSON, some with comments."""
    return path.suffix == ".toml"


def put_entry(text: str, entry: Entry, where: str, *, toml_file: bool) -> str:
    """Return the text of a configuration with the entry in it; the same text if it stands there already.

    All else stays as it is, comments too, and so do settings that the user has added to the entry.

    Args:
        text: The file as it is.
        entry: What to put.
        where: The file's name, for errors.
        toml_file: The text is TOML, not JSON.

    Raises:
        InputError: if the text cannot be read or cannot be edited without changing something else, or if another
            server has the name.
    """
    mark = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""
    text = text.removeprefix(mark)
    read, put = (_read_toml, _put_toml) if toml_file else (jsonc.read, jsonc.put)
    before = read(text, where)
    path = (entry.client.servers, entry.name)
    old = _find(before, path, where)
    if old is None:
        changes: dict[tuple[str, ...], object] = {path: entry.new()}
    else:
        _refuse_another(old, entry, where)
        fields = entry.fields(_kept_options(old, entry))
        changes = {(*path, key): value for key, value in fields.items() if old.get(key) != value}
    for place, value in changes.items():
        text = put(text, place, value, where)
    _refuse_loss(read(text, where), before, changes, where)
    return mark + text


def _find(document: Mapping[str, Any], path: Sequence[str], where: str) -> Mapping[str, Any] | None:
    found: Any = document
    for number, key in enumerate(path):
        if key not in found:
            return None
        found = found[key]
        if not isinstance(found, Mapping):
            raise InputError(
                f"{where}: {'.'.join(path[: number + 1])} is not a table of settings; fix it by hand first"
            )
    assert isinstance(found, Mapping)  # noqa: S101 - the loop has just seen to it
    return found


def _refuse_another(old: Mapping[str, Any], entry: Entry, where: str) -> None:
    called = json.dumps([old.get("command"), old.get("args")], default=str)
    if "mldebug" not in called:
        raise InputError(
            f"{where} has another server named {entry.name} ({called}), which is left alone; choose another with --name"
        )


def _kept_options(old: Mapping[str, Any], entry: Entry) -> list[Any]:
    """Return the options of an entry's server, such as roots that were given before: they stay unless given again."""
    arguments = old.get("args")
    if not isinstance(arguments, list) or "serve" not in arguments:
        return []
    options = arguments[arguments.index("serve") + 1 :]
    anew = {"--root"} if entry.roots else set()
    anew |= set() if entry.pythons is None else {"--python"}
    return [
        option
        for before, option in zip([None, *options], options, strict=False)
        if option not in anew and before not in anew
    ]


def _refuse_loss(
    after: Mapping[str, Any], before: Mapping[str, Any], changes: Mapping[tuple[str, ...], object], where: str
) -> None:
    """Hold the new text to what was asked: nothing but the changes may differ."""
    expected = copy.deepcopy(dict(before))
    for place, value in changes.items():
        parent = expected
        for key in place[:-1]:
            parent = parent.setdefault(key, {})
        parent[place[-1]] = value
    # As JSON, for a NaN in TOML is not equal to itself.
    if json.dumps(after, default=str, sort_keys=True) != json.dumps(expected, default=str, sort_keys=True):
        raise InputError(f"{where} cannot be edited without changing other settings; paste what --print shows by hand")


# TOML, with comments and layout kept by tomlkit.


def _read_toml(text: str, where: str) -> dict[str, Any]:
    """Return the settings.

    Raises:
        InputError: with the line, if the text is not TOML.
    """
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{where} is not valid TOML and was left alone: {error}") from None


def _put_toml(text: str, path: Sequence[str], value: object, where: str) -> str:
    """Return the text with the value at a path of keys; tables that lack are added at the end.

    Raises:
        InputError: if tomlkit cannot edit the text.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        parent: Any = document
        for key in path[:-1]:
            if key not in parent:
                parent[key] = tomlkit.table(is_super_table=True)
            parent = parent[key]
        parent[path[-1]] = value
        return tomlkit.dumps(document)
    except TOMLKitError as error:
        raise InputError(f"{where} cannot be edited: {error}; paste what --print shows by hand") from None
