"""Where people type: completion in shells, the magic of notebooks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import mldebug_mcp
from mldebug_mcp.cli import main
from mldebug_mcp.core.errors import InputError

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script_that_completes_the_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "mldebug-mcp" in script
    assert "_ARGCOMPLETE" in script or "argcomplete" in script


@pytest.mark.parametrize(
    ("line", "offered"), [("mldebug-mcp diag", "diagnose"), ("mldebug-mcp watch x --web", "--webhook")]
)
def test_commands_and_options_are_completed(line: str, offered: str, tmp_path: Path) -> None:
    told = tmp_path / "completions"
    environment = os.environ | {
        "_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_STDOUT_FILENAME": str(told),
    }  # fmt: skip
    subprocess.run([sys.executable, "-c", "from mldebug_mcp.cli import main; main()"], env=environment, check=False)
    assert offered in told.read_text()


class Shell:
    """Stands for IPython."""

    def __init__(self) -> None:
        self.user_ns: dict[str, Any] = {}
        self.magics: dict[str, Any] = {}

    def register_magic_function(self, func: Any, magic_kind: str, magic_name: str) -> None:
        self.magics[f"{magic_kind} {magic_name}"] = func


def test_the_magic_diagnoses_a_path_or_a_variable() -> None:
    shell = Shell()
    mldebug_mcp.load_ipython_extension(shell)
    diagnose = shell.magics["line diagnose"]
    assert diagnose(f"{EXAMPLES / 'divergence'}").hypotheses[0].cause == "lr_too_high"
    shell.user_ns["history"] = {"loss": [3 - step / 100 for step in range(200)]}
    assert diagnose(f"history --reference {EXAMPLES / 'healthy'}").run.records == 200
    with pytest.raises(InputError, match="%diagnose PATH"):
        diagnose("a b")
