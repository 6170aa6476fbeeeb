"""What an installation needs besides the entry.

This is the command, the user's environment, the skill, and safe replacement of a file.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
import sysconfig
import tempfile
from collections.abc import Iterable
from datetime import datetime
from importlib.metadata import distribution
from itertools import pairwise
from pathlib import Path

from mldebug_mcp.clients.entries import Scope
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.paths import knowledge_folder

# The command by which a client starts this server.


SCRIPT = "mldebug-mcp"


def launch_command() -> tuple[str, ...]:
    """Return the command of the installation that is running.

    Clients with windows know little of the user's PATH and no virtual environment, so it is an absolute path: that of
    the script now running, as pip, pipx, uv and editable installs make it. Links are not followed, for theirs outlive
    an update. An environment that `uvx` made is in a cache and goes away: there it is `uvx` itself.
    """
    if _made_by_uvx() and (uvx := shutil.which("uvx")):
        return (uvx, "--from", _source(), SCRIPT)
    running = Path(sys.argv[0])
    scripts = Path(sysconfig.get_path("scripts")) / SCRIPT
    for script in (running, scripts, scripts.with_suffix(".exe")):
        if script.stem == SCRIPT and script.is_file():
            return (str(script.absolute()),)
    return (sys.executable, "-m", "mldebug_mcp")


def _made_by_uvx() -> bool:
    parts = Path(sys.prefix).parts
    return any(
        folder == "uv" and child.startswith(("archive-v", "environments-v")) for folder, child in pairwise(parts)
    )


def _source() -> str:
    """Return what `uvx --from` was given: the package's name, with the folder or repository that uv has recorded.

    The record is PEP 610's: https://packaging.python.org/en/latest/specifications/direct-url/
    """
    record = json.loads(distribution(SCRIPT).read_text("direct_url.json") or "{}")
    if not record:
        return SCRIPT
    version_control = record["vcs_info"]["vcs"] + "+" if "vcs_info" in record else ""
    return f"{SCRIPT} @ {version_control}{record['url']}"


# The user's training environment: the one with torch that is active, or that of the project.


AUTO = "auto"
"""What `--python` takes for the active environment."""
_ACTIVE = ("VIRTUAL_ENV", "CONDA_PREFIX")
_OF_PROJECT = "UV_PROJECT_ENVIRONMENT"
"""Where uv keeps the environment of a project, if not in .venv."""


def active_environment() -> Path | None:
    """Return the folder of the environment that is active and has torch; None if there is none, or it is this one."""
    return _first_with_torch(os.environ.get(name) for name in _ACTIVE)


def training_environment(project: Path) -> Path | None:
    """Return the active environment or, if it has no torch, that of a project's folder."""
    return active_environment() or _first_with_torch([str(project / (os.environ.get(_OF_PROJECT) or ".venv"))])


def named_pythons(named: list[str]) -> list[str]:
    """Return the interpreters and environments that a server was started with, `auto` replaced by what is active."""
    active = active_environment() if AUTO in named else None
    return [str(active) if text == AUTO else text for text in named if text != AUTO or active is not None]


def _first_with_torch(places: Iterable[str | None]) -> Path | None:
    folders = (Path(place) for place in places if place)
    return next((folder for folder in folders if not _is_own(folder) and _has_torch(folder)), None)


def _is_own(folder: Path) -> bool:
    return os.path.realpath(folder) == os.path.realpath(sys.prefix)


def _has_torch(folder: Path) -> bool:
    libraries = (*folder.glob("lib/python3*/site-packages"), folder / "Lib" / "site-packages")
    return any((library / "torch" / "__init__.py").is_file() for library in libraries)


# The agent skill for Claude Code: SKILL.md with what it links to.


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


# Read and replace a client's configuration file: whole or not at all, with a backup, through links.


LARGEST = 16 * 2**20
"""Bytes. The largest configuration seen (Claude Code's, with its history) had a few MiB."""


def read_text(path: Path) -> str:
    """Return the file's text, with its line ends and byte order mark as they are; empty without a file.

    Raises:
        InputError: if it is not a readable text file.
    """
    try:
        status = path.stat()  # links that lead in a circle raise here
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
            raise InputError(
                f"{path} is not a configuration file of at most {LARGEST // 2**20} MiB and was left alone; look at "
                "what it is"
            )
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text; it was left alone: save it as UTF-8 first") from None
    except (OSError, RuntimeError) as error:
        raise InputError(f"{path} cannot be read ({error}); it was left alone") from None


def replace_text(path: Path, before: str, after: str) -> Path | None:
    """Replace a file's text and return the backup; None if there was nothing to keep.

    The new text is written next to the file and takes its place at once. A link stays: the file that it leads to is
    replaced. Permissions stay, missing folders are made.

    Raises:
        InputError: if it cannot be written, or if the file has changed since it was read.
    """
    try:
        real = path.resolve()
        real.parent.mkdir(parents=True, exist_ok=True)
        old = real.stat() if real.exists() else None
        new = _write_new_file(real, after, old)
        try:
            if read_text(real) != before:
                raise InputError(f"{path} has just been changed by another program; run the command again")
            backup = keep_copy(path, before)
            new.replace(real)
        finally:
            new.unlink(missing_ok=True)
    except (OSError, RuntimeError) as error:
        raise InputError(f"{path} cannot be written ({error}); use --print and paste it by hand") from None
    return backup


def keep_copy(path: Path, text: str) -> Path | None:
    """Write the text of an existing file to a new name next to it: no backup is ever overwritten."""
    real = path.resolve()
    if not real.exists():
        return None
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    for number in range(1, 1000):
        copy = real.with_name(f"{real.name}.{stamp}{f'-{number}' if number > 1 else ''}.backup")
        if not copy.exists():
            return _write_new_file(real, text, real.stat()).replace(copy)
    raise InputError(f"{real.parent} is full of backups of {real.name}; remove some first")


def _write_new_file(path: Path, text: str, like: os.stat_result | None) -> Path:
    """Write a new file with the owner and permissions of another, or those of any new file."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new = Path(name)
    if like is None:
        withheld = os.umask(0)
        os.umask(withheld)
        new.chmod(0o666 & ~withheld)
        return new
    if sys.platform != "win32" and (like.st_uid, like.st_gid) != (os.getuid(), os.getgid()):
        os.chown(new, like.st_uid, like.st_gid)
    new.chmod(stat.S_IMODE(like.st_mode))
    return new
