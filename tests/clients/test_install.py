"""`mldebug-mcp install`: files of clients are edited whole or not at all, and nothing in them is lost."""

from __future__ import annotations

import json
import re
import stat
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from mldebug_mcp.cli import main
from mldebug_mcp.clients.entries import CLIENTS
from mldebug_mcp.clients.launch import launch_command

FAKE_CLAUDE = """\
#!/usr/bin/env python3
import json, pathlib, sys
path = pathlib.Path.home() / ".claude.json"
settings = json.loads(path.read_text()) if path.exists() else {}
servers = settings.setdefault("mcpServers", {})
action, words = sys.argv[2], sys.argv[3:]
assert words[:2] == ["--scope", "user"], words
name = words[2]
if action == "remove":
    del servers[name]
elif name in servers:
    sys.exit(f"MCP server {name} already exists in user config")
elif action == "add":
    assert words[3] == "--"
    servers[name] = {"type": "stdio", "command": words[4], "args": words[5:], "env": {}}
else:
    servers[name] = json.load(sys.stdin)
path.write_text(json.dumps(settings))
"""


ENVIRONMENTS = ("VIRTUAL_ENV", "CONDA_PREFIX", "UV_PROJECT_ENVIRONMENT")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of nobody's, the working directory in it, and no clients on PATH."""
    folder = tmp_path / "home"
    project = folder / "project"
    project.mkdir(parents=True)
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", *ENVIRONMENTS):
        monkeypatch.delenv(name, raising=False)
    return folder


def environment(folder: Path, *, torch: bool = True) -> Path:
    """Make what looks like an environment."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    if torch:
        library = folder / "lib" / "python3.12" / "site-packages" / "torch"
        library.mkdir(parents=True)
        (library / "__init__.py").touch()
    return folder


def arguments_of_codex(home: Path) -> list[str]:
    entry = tomllib.loads((home / ".codex" / "config.toml").read_text())["mcp_servers"]["mldebug"]
    return list(entry["args"])


@pytest.fixture
def claude(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that keeps servers as `claude mcp` does."""
    script = home / "bin" / "claude"
    script.parent.mkdir()
    script.write_text(FAKE_CLAUDE)
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:{Path(sys.executable).parent}:/usr/bin:/bin")
    return home / ".claude.json"


def backups(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.backup"))


USER_FILES = {
    "claude-desktop": ".config/Claude/claude_desktop_config.json",
    "codex": ".codex/config.toml",
    "cursor": ".cursor/mcp.json",
    "gemini": ".gemini/settings.json",
    "vscode": ".config/Code/User/mcp.json",
    "windsurf": ".codeium/windsurf/mcp_config.json",
    "zed": ".config/zed/settings.json",
}
PROJECT_FILES = {
    "claude-code": ".mcp.json",
    "codex": ".codex/config.toml",
    "cursor": ".cursor/mcp.json",
    "gemini": ".gemini/settings.json",
    "vscode": ".vscode/mcp.json",
    "zed": ".zed/settings.json",
}


@pytest.mark.parametrize("client", sorted(USER_FILES))
def test_the_users_file_is_made_where_the_client_reads_it(
    client: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["install", client]) == 0
    path = home / USER_FILES[client]
    shown = capsys.readouterr().out
    assert main(["install", client, "--print"]) == 0
    printed = capsys.readouterr()
    assert path.read_text() == printed.out
    assert str(path) in printed.err
    assert str(path) in shown
    assert f"+++ {path} after" in shown
    assert backups(path.parent) == []


@pytest.mark.parametrize("client", sorted(PROJECT_FILES))
def test_a_projects_file_is_made_in_the_working_directory(client: str) -> None:
    assert main(["install", client, "--scope", "project"]) == 0
    assert launch_command()[0] in Path(PROJECT_FILES[client]).read_text()


@pytest.mark.parametrize("client", sorted(set(CLIENTS) - set(PROJECT_FILES)))
def test_a_client_without_project_files_says_so(client: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["install", client, "--scope", "project"]) == 2
    assert "--scope user" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("platform", "client", "file"),
    [
        ("darwin", "claude-desktop", "Library/Application Support/Claude/claude_desktop_config.json"),
        ("darwin", "vscode", "Library/Application Support/Code/User/mcp.json"),
        ("darwin", "zed", ".config/zed/settings.json"),
        ("win32", "claude-desktop", "AppData/Roaming/Claude/claude_desktop_config.json"),
        ("win32", "vscode", "AppData/Roaming/Code/User/mcp.json"),
        ("win32", "zed", "AppData/Roaming/Zed/settings.json"),
    ],
)
def test_files_of_other_systems(
    platform: str, client: str, file: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.delenv("APPDATA", raising=False)
    assert CLIENTS[client].user_file() == home / file


def test_claude_desktop_of_the_windows_package_reads_its_own_folder(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(home / "Local"))
    folder = home / "Local/Packages/Claude_abc/LocalCache/Roaming/Claude"
    folder.mkdir(parents=True)
    assert CLIENTS["claude-desktop"].user_file() == folder / "claude_desktop_config.json"


def test_the_file_as_it_was_is_kept_and_a_second_run_does_nothing(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = home / ".gemini" / "settings.json"
    path.parent.mkdir()
    path.write_text('{\n  // mine\n  "theme": "x"\n}\n')
    path.chmod(0o640)

    assert main(["install", "gemini"]) == 0
    [backup] = backups(path.parent)
    assert backup.read_text() == '{\n  // mine\n  "theme": "x"\n}\n'
    assert [stat.S_IMODE(one.stat().st_mode) for one in (path, backup)] == [0o640, 0o640]
    assert str(backup) in capsys.readouterr().out

    written = path.read_bytes()
    assert main(["install", "gemini"]) == 0
    assert "nothing to do" in capsys.readouterr().out
    assert path.read_bytes() == written
    assert sorted(path.parent.iterdir()) == sorted([path, backup])


def test_no_backup_is_written_over(home: Path) -> None:
    for name in ("one", "two", "three"):
        assert main(["install", "cursor", "--name", name]) == 0
    kept = [json.loads(one.read_text())["mcpServers"] for one in backups(home / ".cursor")]
    assert sorted(map(len, kept)) == [1, 2]


def test_a_link_stays_a_link(home: Path) -> None:
    real = home / "dotfiles" / "cursor.json"
    real.parent.mkdir()
    real.write_text("{}")
    link = home / ".cursor" / "mcp.json"
    link.parent.mkdir()
    link.symlink_to(real)
    assert main(["install", "cursor"]) == 0
    assert link.is_symlink()
    assert "mldebug" in real.read_text()
    assert backups(real.parent)
    assert not backups(link.parent)


def test_a_broken_file_is_left_alone(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text('{\n  "mcpServers": {,}\n}\n')
    assert main(["install", "cursor"]) == 2
    assert f"{path}:2:" in capsys.readouterr().err
    assert path.read_text() == '{\n  "mcpServers": {,}\n}\n'
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("content", [b"\xff\xfe{\x00}\x00", b"{" + b" " * (17 * 2**20) + b"}"])
def test_a_file_that_is_no_configuration_is_left_alone(
    content: bytes, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_bytes(content)
    assert main(["install", "cursor"]) == 2
    assert "left alone" in capsys.readouterr().err
    assert path.read_bytes() == content


def test_a_file_in_the_place_of_a_folder_is_an_error(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / ".cursor").write_text("")
    assert main(["install", "cursor"]) == 2
    assert "cannot be" in capsys.readouterr().err


def test_links_that_lead_in_a_circle_are_an_error(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").symlink_to(home / ".cursor" / "mcp.json")
    assert main(["install", "cursor"]) == 2
    assert "cannot be" in capsys.readouterr().err


def test_roots_and_the_name_reach_the_entry(home: Path) -> None:
    (home / "runs").mkdir()
    assert main(["install", "codex", "--root", "../runs", "--root", str(home), "--name", "debug"]) == 0
    entry = tomllib.loads((home / ".codex" / "config.toml").read_text())["mcp_servers"]["debug"]
    assert entry["args"][-5:] == ["serve", "--root", str(home / "runs"), "--root", str(home)]


def test_a_named_interpreter_reaches_the_entry_and_stays_until_another_is_named(home: Path) -> None:
    one, two = environment(home / "one", torch=False), environment(home / "two")
    assert main(["install", "codex", "--python", str(one / "bin" / "python"), "--root", str(home)]) == 0
    kept = ["--root", str(home), "--python", str(one / "bin" / "python")]
    assert arguments_of_codex(home)[-5:] == ["serve", *kept]
    assert main(["install", "codex", "--root", str(home / "project")]) == 0
    assert arguments_of_codex(home)[-4:] == ["--root", str(home / "project"), *kept[2:]]
    assert main(["install", "codex", "--python", str(two)]) == 0
    assert arguments_of_codex(home)[-5:] == ["serve", "--python", str(two), "--root", str(home / "project")]
    assert main(["install", "codex", "--python", "none"]) == 0
    assert arguments_of_codex(home)[-3:] == ["serve", "--root", str(home / "project")]


@pytest.mark.parametrize("variable", [*ENVIRONMENTS, ".venv"])
def test_the_training_environment_is_found_if_it_has_torch_and_told(
    variable: str, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    training = environment(home / "project" / ".venv" if variable == ".venv" else home / "training")
    monkeypatch.setenv(variable, str(training))
    assert main(["install", "codex"]) == 0
    assert arguments_of_codex(home)[-3:] == ["serve", "--python", str(training)]
    assert f"a probe runs {training}" in capsys.readouterr().err
    monkeypatch.setenv("VIRTUAL_ENV", str(environment(home / "other")))
    assert main(["install", "codex"]) == 0
    assert arguments_of_codex(home)[-1] == str(training)  # what was installed is not exchanged unasked


def test_an_environment_without_torch_and_that_of_the_server_are_not_taken(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", str(environment(home / "training", torch=False)))
    monkeypatch.setenv("CONDA_PREFIX", sys.prefix)
    assert main(["install", "codex"]) == 0
    assert "--python" not in arguments_of_codex(home)
    assert "a probe runs" not in capsys.readouterr().err


def test_the_skill_is_copied_whole_and_nothing_else_is_overwritten(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["install", "claude-code"]) == 0
    assert "--skill" in capsys.readouterr().err
    skill = home / "project" / ".claude" / "skills" / "mldebug"
    for _ in range(2):
        assert main(["install", "claude-code", "--skill"]) == 0
        links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (skill / "SKILL.md").read_text())
        assert links
        assert [link for link in links if not (skill / link).exists()] == []
    (skill / "SKILL.md").write_text("---\nname: another\n---\n")
    assert main(["install", "claude-code", "--skill"]) == 2
    assert "something else" in capsys.readouterr().err
    assert main(["install", "codex", "--skill"]) == 2


@pytest.mark.parametrize("wrong", [["--root", "nowhere"], ["--python", "nowhere"], ["--name", "a b"], ["--name", ""]])
def test_a_wrong_option_writes_nothing(wrong: list[str], home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["install", "cursor", *wrong]) == 2
    assert wrong[0] in capsys.readouterr().err
    assert not (home / ".cursor").exists()


def test_claude_code_is_changed_by_its_own_program(claude: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["install", "claude-code"]) == 0
    assert json.loads(claude.read_text())["mcpServers"]["mldebug"]["command"] == launch_command()[0]
    assert "claude mcp get mldebug" in capsys.readouterr().out
    assert main(["install", "claude-code"]) == 0
    assert "nothing to do" in capsys.readouterr().out


def test_an_update_of_claude_code_keeps_what_the_user_added(claude: Path) -> None:
    old = {"type": "stdio", "command": "/old/mldebug-mcp", "args": [], "env": {"KEY": "1"}}
    claude.write_text(json.dumps({"mcpServers": {"mldebug": old, "other": {"command": "x"}}, "numStartups": 3}))
    assert main(["install", "claude-code"]) == 0
    settings = json.loads(claude.read_text())
    assert settings["mcpServers"]["mldebug"]["command"] == launch_command()[0]
    assert settings["mcpServers"]["mldebug"]["env"] == {"KEY": "1"}
    assert settings["mcpServers"]["other"] == {"command": "x"}
    assert len(backups(claude.parent)) == 1


def test_without_claude_on_the_path_the_project_file_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["install", "claude-code"]) == 0
    assert Path(".mcp.json").exists()
    assert main(["install", "claude-code", "--scope", "user"]) == 2
    assert "claude mcp add --scope user mldebug -- " in capsys.readouterr().err


def test_clients_that_start_servers_elsewhere_get_a_word_about_roots(capsys: pytest.CaptureFixture[str]) -> None:
    for client in ("claude-desktop", "codex"):
        assert main(["install", client]) == 0
        assert ("--root DIR" in capsys.readouterr().out) == (client == "claude-desktop")


def test_the_command_is_the_running_script_or_that_of_uvx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "mldebug-mcp"
    script.touch()
    monkeypatch.setattr(sys, "argv", [str(script)])
    assert launch_command() == (str(script),)

    uvx = tmp_path / "uvx"
    uvx.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "prefix", "/home/you/.cache/uv/archive-v0/abc")
    for record, source in (
        (None, "mldebug-mcp"),
        ('{"url": "file:///src/mldebug", "dir_info": {}}', "mldebug-mcp @ file:///src/mldebug"),
        ('{"url": "https://x.org/y", "vcs_info": {"vcs": "git"}}', "mldebug-mcp @ git+https://x.org/y"),
    ):
        monkeypatch.setattr(metadata.PathDistribution, "read_text", lambda *_, record=record: record)
        assert launch_command() == (str(uvx), "--from", source, "mldebug-mcp")


def test_a_printed_configuration_says_where_a_folder_has_to_be_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["install", "claude-desktop", "--print"]) == 0
    assert "--root DIR" in capsys.readouterr().err
    assert main(["install", "claude-desktop", "--print", "--root", str(tmp_path)]) == 0
    assert "--root DIR" not in capsys.readouterr().err
    assert main(["install", "codex", "--print"]) == 0
    assert "--root DIR" not in capsys.readouterr().err
