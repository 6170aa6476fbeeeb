"""Build the MCPB bundle for Claude Desktop: `python packaging/mcpb/build.py [FOLDER]` (by default dist).

The bundle carries this package as a wheel; the client's uv installs what it depends on when the bundle is installed.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
MANIFEST = Path(__file__).with_name("manifest.json")

MAIN = '''\
"""Start the server of the package that this bundle carries."""

import sys

from mldebug_mcp.cli import main

sys.exit(main())
'''

PROJECT = """\
[project]
name = "mldebug-mcp-bundle"
version = "{version}"
requires-python = "{python}"
dependencies = ["mldebug-mcp"]

[tool.uv.sources]
mldebug-mcp = {{ path = "{wheel}" }}
"""


def manifest() -> dict[str, Any]:
    """Return the manifest with the icon and the tools that the server has, by the first line of their descriptions."""
    from mldebug_mcp.server import make_server

    tools = asyncio.run(make_server().list_tools())
    known: dict[str, Any] = json.loads(MANIFEST.read_text(encoding="utf-8"))
    return known | {
        "icon": "icon.png",
        "tools": [{"name": tool.name, "description": (tool.description or "").split("\n")[0]} for tool in tools],
    }


def build(folder: Path) -> Path:
    """Build the bundle in a folder and return its file."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    with tempfile.TemporaryDirectory() as made:
        inside = Path(made)
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(inside), str(ROOT)]
        subprocess.run(command, check=True)
        (wheel,) = inside.glob("*.whl")
        (inside / "manifest.json").write_text(json.dumps(manifest(), indent=2) + "\n", encoding="utf-8")
        text = PROJECT.format(version=project["version"], python=project["requires-python"], wheel=wheel.name)
        (inside / "pyproject.toml").write_text(text, encoding="utf-8")
        (inside / "server").mkdir()
        (inside / "server" / "main.py").write_text(MAIN, encoding="utf-8")
        shutil.copy(ROOT / ".claude-plugin" / "icon.png", inside / "icon.png")
        shutil.copy(ROOT / "LICENSE", inside / "LICENSE")
        folder.mkdir(parents=True, exist_ok=True)
        bundle = folder / f"{project['name']}-{project['version']}.mcpb"
        with zipfile.ZipFile(bundle, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(one for one in inside.rglob("*") if one.is_file()):
                archive.write(path, path.relative_to(inside))
    return bundle


if __name__ == "__main__":
    print(build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist"))
