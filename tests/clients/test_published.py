"""What is published for clients says the same everywhere: versions, names, configurations, pages."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest

from mldebug_mcp import __version__
from mldebug_mcp.clients.entries import CLIENTS

ROOT = Path(__file__).parent.parent.parent
REGISTRY_ENTRY: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["$schema", "name", "title", "description", "version", "packages"],
    "properties": {
        "$schema": {"const": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"},
        "name": {"type": "string", "minLength": 3, "maxLength": 200, "pattern": r"^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$"},
        "title": {"type": "string", "minLength": 1, "maxLength": 100},
        "description": {"type": "string", "minLength": 1, "maxLength": 100},
        "version": {"type": "string", "maxLength": 255, "pattern": r"^\d+\.\d+\.\d+$"},
        "packages": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/package"}},
    },
    "$defs": {
        "package": {
            "type": "object",
            "additionalProperties": False,
            "required": ["registryType", "identifier", "version", "transport"],
            "properties": {
                "registryType": {"const": "pypi"},
                "identifier": {"const": "mldebug-mcp"},
                "version": {"type": "string", "pattern": r"^\d+\.\d+\.\d+$"},
                "runtimeHint": {"const": "uvx"},
                "transport": {"const": {"type": "stdio"}},
                "environmentVariables": {"type": "array", "items": {"$ref": "#/$defs/variable"}},
            },
        },
        "variable": {
            "type": "object",
            "additionalProperties": False,
            "required": ["name", "description"],
            "properties": {
                "name": {"type": "string", "pattern": "^[A-Z][A-Z0-9_]*$"},
                "description": {"type": "string", "minLength": 1},
                "format": {"enum": ["string", "number", "boolean", "filepath"]},
                "isRequired": {"type": "boolean"},
                "isSecret": {"type": "boolean"},
            },
        },
    },
}
"""What the documentation of the MCP registry says of the fields that our entry has."""
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "clients").glob("*.md")}


def script(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def manifest(path: str) -> dict[str, Any]:
    known: dict[str, Any] = json.loads((ROOT / path).read_text(encoding="utf-8"))
    return known


def test_every_client_has_a_page_and_the_readme_leads_there() -> None:
    agents = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    assert sorted(PAGES) == sorted(CLIENTS)
    assert "(docs/agents.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert [client for client in CLIENTS if f"(clients/{client}.md)" not in agents] == []


@pytest.mark.parametrize("client", sorted(CLIENTS))
def test_a_page_shows_what_install_prints(client: str) -> None:
    update = script("docs/update_readme.py")
    assert f"<!-- output: mldebug-mcp install {client} " in PAGES[client]
    assert update.filled(PAGES[client]) == PAGES[client], "run: python docs/update_readme.py"


@pytest.mark.parametrize("client", sorted(CLIENTS))
def test_a_page_names_the_files_and_says_how_to_check_limit_and_remove(
    client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    page = PAGES[client]
    assert [
        part for part in ("Check it", "What it may read", "Limits", "Remove it") if f"**{part}.**" not in page
    ] == []
    files = [CLIENTS[client].project_file]
    if client != "claude-code":
        monkeypatch.setattr("sys.platform", "linux")
        files.append(f"~/{CLIENTS[client].user_file().relative_to(Path.home())}")
    assert [file for file in files if file and f"`{file}`" not in page] == []


def test_local_links_of_the_pages_lead_somewhere() -> None:
    links = [link for page in PAGES.values() for link in re.findall(r"\]\((?!http)([^)#]+)\)", page)]
    assert links
    assert [link for link in links if not (ROOT / "docs" / "clients" / link).exists()] == []


def test_every_manifest_has_the_version_of_the_package() -> None:
    registry = manifest("server.json")
    assert {
        manifest(".claude-plugin/plugin.json")["version"],
        manifest("packaging/mcpb/manifest.json")["version"],
        registry["version"],
        *(package["version"] for package in registry["packages"]),
    } == {__version__}


def test_the_registry_entry_has_the_form_that_the_registry_asks_for() -> None:
    entry = manifest("server.json")
    jsonschema.validate(entry, REGISTRY_ENTRY)
    # The registry looks for this line in the package's description.
    assert f"<!-- mcp-name: {entry['name']} -->" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_newest_version_of_the_changelog_is_that_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == project["version"] == __version__


def test_the_plugin_is_the_repository_with_its_skill_and_server() -> None:
    plugin, market = manifest(".claude-plugin/plugin.json"), manifest(".claude-plugin/marketplace.json")
    assert plugin["skills"] == ["./"]
    assert (ROOT / "SKILL.md").is_file()
    script, *arguments = plugin["mcpServers"]["mldebug"]["args"]
    assert (ROOT / script.replace("${CLAUDE_PLUGIN_ROOT}/", "")).is_file()
    assert arguments == ["--python", "auto"]
    [listed] = market["plugins"]
    assert (listed["name"], listed["source"], listed["description"]) == (plugin["name"], "./", plugin["description"])
    assert market["description"]


def fake(folder: Path, name: str) -> None:
    """Put a program on a path that prints its name and arguments."""
    program = folder / name
    program.write_text(f"#!/bin/sh\necho {name} $*\n")
    program.chmod(0o755)


def plugin_script(name: str, path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script of the plugin where only the programs of a folder, and `dirname`, are on PATH."""
    if not (path / "dirname").exists():
        (path / "dirname").symlink_to(str(shutil.which("dirname")))
    command = ["/bin/sh", str(ROOT / "packaging" / "plugin" / name), *arguments]
    return subprocess.run(command, env={"PATH": str(path)}, capture_output=True, text=True, check=False)


def test_the_plugin_starts_the_installed_command_else_uvx_else_says_what_is_missing(tmp_path: Path) -> None:
    missing = plugin_script("serve.sh", tmp_path)
    assert missing.returncode == 127
    assert "pip install" in missing.stderr
    fake(tmp_path, "uvx")
    assert plugin_script("serve.sh", tmp_path, "--python", "auto").stdout == (
        f"uvx --from {ROOT} mldebug-mcp --python auto\n"
    )
    fake(tmp_path, "mldebug-mcp")
    assert plugin_script("serve.sh", tmp_path, "--python", "auto").stdout == "mldebug-mcp --python auto\n"


def test_a_session_of_the_plugin_begins_with_a_line_where_nothing_can_start_the_server(tmp_path: Path) -> None:
    assert "uv" in json.loads(plugin_script("begin.sh", tmp_path).stdout)["systemMessage"]
    for name in ("uvx", "mldebug-mcp"):
        fake(tmp_path, name)
        assert plugin_script("begin.sh", tmp_path).stdout == ""


def test_the_bundle_tells_the_tools_of_the_server_and_asks_for_a_folder() -> None:
    from mldebug_mcp.server.tools import TOOLS

    told = script("packaging/mcpb/build.py").manifest()
    assert [tool["name"] for tool in told["tools"]] == [tool.__name__ for tool in TOOLS]
    assert all(tool["description"] for tool in told["tools"])
    assert told["server"]["type"] == "uv"
    assert told["server"]["mcp_config"]["args"][-3:] == ["serve", "--root", "${user_config.runs}"]
    assert told["user_config"]["runs"]["required"]
