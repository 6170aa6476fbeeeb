"""The user's training environment: the one with torch that is active, or that of the project."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

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
    return [str(active) if one == AUTO else one for one in named if one != AUTO or active is not None]


def _first_with_torch(places: Iterable[str | None]) -> Path | None:
    folders = (Path(place) for place in places if place)
    return next((folder for folder in folders if not _is_own(folder) and _has_torch(folder)), None)


def _is_own(folder: Path) -> bool:
    return os.path.realpath(folder) == os.path.realpath(sys.prefix)


def _has_torch(folder: Path) -> bool:
    libraries = (*folder.glob("lib/python3*/site-packages"), folder / "Lib" / "site-packages")
    return any((library / "torch" / "__init__.py").is_file() for library in libraries)
