"""The runs of a folder as a Ray job, on a Ray of this machine."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mldebug_mcp import InputError, diagnose_runs
from mldebug_mcp.cli import main
from mldebug_mcp.core.errors import MissingExtraError

EXAMPLES = Path(__file__).parents[2] / "examples"

# Ray warns of settings of its own.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:ray", "ignore::FutureWarning:ray")


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """A Ray of this machine that all tests here share."""
    pytest.importorskip("ray")
    from mldebug_mcp.judge.ray import connected

    with connected("local"):
        yield "local"


def test_a_ray_job_gives_the_answer_of_one_machine(cluster: str) -> None:
    assert diagnose_runs(EXAMPLES, ray=cluster).to_json() == diagnose_runs(EXAMPLES).to_json()


def test_the_command_line_passes_the_address_on(cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", str(EXAMPLES), "--no-cache", "--ray", cluster, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(diagnose_runs(str(EXAMPLES)).to_json())


def test_paths_are_absolute_where_ray_reads_them(cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES.parent)
    assert [row.name for row in diagnose_runs("examples", ray=cluster).rows] == [
        row.name for row in diagnose_runs("examples").rows
    ]


def test_an_address_where_nobody_answers_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pytest.importorskip("ray"), "is_initialized", lambda: False)
    with pytest.raises(InputError, match="nothing answers"):
        diagnose_runs(EXAMPLES, ray="127.0.0.1:1")


def test_without_ray_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"mldebug-mcp\[ray\]"):
        diagnose_runs(EXAMPLES, ray="local")
