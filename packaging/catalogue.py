"""Hatchling's build hook: make the catalogue of the knowledge files, which the wheel carries so that it starts fast."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CatalogueHook(BuildHookInterface[Any]):
    """Adds `catalogue.jsonl` to a wheel. An editable install makes its own when the sources change."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the catalogue; raises CatalogueError, which names file and line, where a source breaks its grammar."""
        if version == "editable":
            return
        root = Path(self.root)
        sys.path.insert(0, str(root / "src"))
        from mldebug_mcp.knowledge.playbook import read_catalogue
        from mldebug_mcp.knowledge.prepared import SHIPPED, to_lines

        self._made = tempfile.mkdtemp()
        path = Path(self._made) / SHIPPED
        path.write_text(to_lines(read_catalogue(root)), encoding="utf-8")
        build_data["force_include"][str(path)] = f"mldebug_mcp/data/{SHIPPED}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the file that the wheel has a copy of."""
        del version, build_data, artifact_path
        shutil.rmtree(getattr(self, "_made", ""), ignore_errors=True)
