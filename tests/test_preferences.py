"""Files of preferences: the user's own, and a project's, which may come from anybody."""

from __future__ import annotations

from pathlib import Path

import pytest

from mldebug_mcp.cli import main
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.preferences import find_preferences

LOG = "step,L\n" + "".join(f"{step},{3 / (1 + step / 20)}\n" for step in range(100))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory below a project, and a user without preferences."""
    monkeypatch.delenv("MLDEBUG_MCP_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "project" / "runs").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project" / "runs")
    return tmp_path / "project"


def of_user(project: Path, text: str) -> None:
    folder = project.parent / "config"
    folder.mkdir(exist_ok=True)
    (folder / "mldebug.toml").write_text(text)


def test_names_in_a_projects_file_are_used_by_every_command_on_a_log(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "pyproject.toml").write_text('[tool.mldebug.names]\nL = "loss"\n')
    (project / "runs" / "log.csv").write_text(LOG)
    assert main(["read", "log.csv", "loss"]) == 0
    assert "loss" in capsys.readouterr().out


def test_a_projects_file_wins_over_the_users_key_by_key(project: Path) -> None:
    of_user(
        project, '[names]\nL = "loss"\ng = "grad_norm"\n[alarms]\nlooks = 5\nwebhook = "https://example.org/hook"\n'
    )
    (project / "mldebug.toml").write_text('[names]\nL = "eval_loss"\n[alarms]\nprobability = 0.5\n')
    found = find_preferences().preferences
    assert found.names == {"L": "eval_loss", "g": "grad_norm"}
    assert (found.alarms.looks, found.alarms.probability) == (5, 0.5)
    assert found.alarms.webhook == "https://example.org/hook"


@pytest.mark.parametrize(
    "text",
    [
        'roots = ["/"]\n',
        'reader = "true"\n',
        '[alarms]\ncommand = "true"\n',
        '[alarms]\nwebhook = "https://example.org"\n',
    ],
)
def test_a_project_cannot_widen_what_is_read_run_a_command_or_send_anything(project: Path, text: str) -> None:
    (project / "mldebug.toml").write_text(text)
    found = find_preferences()
    preferred = found.preferences
    assert (preferred.roots, preferred.reader, preferred.alarms.command, preferred.alarms.webhook) == ((), *[None] * 3)
    assert len(found.notes) == 1
    assert "left out" in found.notes[0]
    of_user(project, text)
    assert find_preferences().preferences != type(found.preferences)()


def test_what_is_left_out_of_a_projects_file_is_said(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "mldebug.toml").write_text('[alarms]\ncommand = "true"\n')
    (project / "runs" / "log.csv").write_text(LOG.replace("L", "loss"))
    assert main(["read", "log.csv", "loss"]) == 0
    assert "left out alarms.command" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name = 1\n", "known keys: names, roots, reader, alarms"),
        ("[alarms]\nprobability = 2\n", "alarms.probability"),
        ("[alarms\n", "cannot be read as TOML"),
    ],
)
def test_a_wrong_file_is_named_with_what_is_allowed(
    project: Path, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    (project / "mldebug.toml").write_text(text)
    (project / "runs" / "log.csv").write_text(LOG)
    assert main(["read", "log.csv"]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert "mldebug.toml" in error


def test_a_pyproject_of_another_tool_is_left_alone(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.other\n")
    assert find_preferences().preferences.names == {}


def test_a_file_that_the_environment_names_has_to_be_there(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLDEBUG_MCP_CONFIG", str(project / "none.toml"))
    with pytest.raises(InputError, match="MLDEBUG_MCP_CONFIG"):
        find_preferences()
