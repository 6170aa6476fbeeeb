"""Which file each client reads its MCP servers from, and what an entry looks like there."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from mldebug_mcp.core.lazy import dataclass

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
