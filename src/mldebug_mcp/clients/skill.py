"""The agent skill for Claude Code: SKILL.md with what it links to."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from mldebug_mcp.clients.table import Scope
from mldebug_mcp.errors import InputError
from mldebug_mcp.files import knowledge_folder

NAME = "mldebug"
"""The folder's name has to be that of the skill."""
_FILES = ("SKILL.md", "PLAYBOOK.md")
_FOLDERS = ("references", "evidence")


def skill_folder(scope: Scope, project: Path) -> Path:
    """Return where Claude Code looks for the skill: of the user, or of a project's folder."""
    mine = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")
    return (mine if scope == "user" else project / ".claude") / "skills" / NAME


def copy_skill(folder: Path) -> None:
    """Copy the skill, in the place of an older copy of it.

    Raises:
        InputError: something else is there, or it cannot be written.
    """
    if folder.exists() and f"name: {NAME}\n" not in _text(folder / "SKILL.md"):
        raise InputError(f"{folder}: there is something else than this skill; move it away first")
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name in _FILES:
            shutil.copy(knowledge_folder() / name, folder / name)
        for name in _FOLDERS:
            shutil.copytree(knowledge_folder() / name, folder / name)
    except OSError as error:
        raise InputError(f"{folder}: the skill cannot be written ({error.strerror or error})") from None


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeError):
        return ""
