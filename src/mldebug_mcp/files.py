"""Where the knowledge files are: inside an installed package, or at the root of the repository."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parent


def knowledge_folder() -> Path:
    """Return the folder of SKILL.md, PLAYBOOK.md, references and evidence."""
    installed = _PACKAGE / "data"
    return installed if installed.is_dir() else _PACKAGE.parent.parent
