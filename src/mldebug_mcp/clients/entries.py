"""The clients: which file each reads its MCP servers from, and a server's entry there, made and put into its text."""

from __future__ import annotations

import copy
import json
import os
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Literal

from mldebug_mcp.clients import jsonc
from mldebug_mcp.core.errors import InputError

Scope = Literal["user", "project"]


@dataclass(frozen=True)
class Client:
    """One client, according to its documentation as of November 2026.

    Attributes:
        id: The word on the command line.
        title: Its name as people write it.
        servers: The key that the entries stand under.
        user_file: Where the user's own configuration stands on this machine.
        project_file: The same for one project, relative to its folder; None where the client has no such file.
        kind: What an entry says of itself besides command and arguments, where the client asks for it.
        limits: Settings of a new entry that let long calls end; later changes by the user stay.
        then: What the user does next.
        in_project: It starts servers in the folder of the project; others in the home folder, in / or do not say.
    """

    id: str
    title: str
    servers: str
    user_file: Callable[[], Path]
    project_file: str | None
    then: str
    kind: tuple[tuple[str, str], ...] = ()
    limits: tuple[tuple[str, int], ...] = ()
    in_project: bool = False

    def file(self, scope: Scope, folder: Path) -> Path | None:
        """Return the file for the scope; None if the client has none."""
        if scope == "user":
            return self.user_file()
        return folder / self.project_file if self.project_file else None


def _home(*parts: str) -> Path:
    return Path.home().joinpath(*parts)


def _settings_folder() -> Path:
    """Return where programs with windows keep their settings on this system."""
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or _home("AppData", "Roaming"))
    if sys.platform == "darwin":
        return _home("Library", "Application Support")
    return _xdg_folder()


def _xdg_folder() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or _home(".config"))


def _claude_code() -> Path:
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or _home()) / ".claude.json"


def _claude_desktop() -> Path:
    name = "claude_desktop_config.json"
    # The Windows package reads a private copy of the folder: https://github.com/anthropics/claude-code/issues/26073
    packages = Path(os.environ.get("LOCALAPPDATA") or _home("AppData", "Local")) / "Packages"
    for found in sorted(packages.glob("Claude_*/LocalCache/Roaming/Claude")) if sys.platform == "win32" else ():
        return found / name
    return _settings_folder() / "Claude" / name


def _codex() -> Path:
    return Path(os.environ.get("CODEX_HOME") or _home(".codex")) / "config.toml"


def _zed() -> Path:
    if sys.platform == "win32":
        return _settings_folder() / "Zed" / "settings.json"
    # On macOS, too, Zed keeps its settings below ~/.config.
    return (_home(".config") if sys.platform == "darwin" else _xdg_folder()) / "zed" / "settings.json"


STDIO = (("type", "stdio"),)

CLIENTS = {
    client.id: client
    for client in (
        Client(
            "claude-code", "Claude Code", "mcpServers", _claude_code, ".mcp.json",
            "restart Claude Code; `claude mcp get {name}` or /mcp shows whether it is connected",
            STDIO, in_project=True,
        ),
        Client(
            "claude-desktop", "Claude Desktop", "mcpServers", _claude_desktop, None,
            "quit Claude Desktop and start it again; Settings > Developer shows whether the server runs",
        ),
        Client(
            "codex", "Codex", "mcp_servers", _codex, ".codex/config.toml",
            "restart Codex; /mcp shows whether the server runs",
            limits=(("startup_timeout_sec", 30), ("tool_timeout_sec", 600)), in_project=True,
        ),
        Client(
            "cursor", "Cursor", "mcpServers", lambda: _home(".cursor", "mcp.json"), ".cursor/mcp.json",
            "switch the server on in Cursor's settings for MCP, which show its state",
        ),
        Client(
            "gemini", "Gemini CLI", "mcpServers", lambda: _home(".gemini", "settings.json"), ".gemini/settings.json",
            "restart Gemini CLI in a trusted folder; /mcp shows whether the server is connected",
            in_project=True,
        ),
        Client(
            "vscode", "VS Code", "servers", lambda: _settings_folder() / "Code" / "User" / "mcp.json",
            ".vscode/mcp.json", "run `MCP: List Servers` from the command palette and start the server", STDIO,
        ),
        Client(
            "windsurf", "Windsurf", "mcpServers", lambda: _home(".codeium", "windsurf", "mcp_config.json"), None,
            "refresh the servers in Cascade's MCP settings",
        ),
        Client(
            "zed", "Zed", "context_servers", _zed, ".zed/settings.json",
            "look at the server's dot in the settings of the Agent Panel: green means that it runs",
        ),
    )
}  # fmt: skip
"""By id."""


# An entry of one client: made, written as text to paste, and put into a file's text.


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
