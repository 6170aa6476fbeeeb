"""Loops of other authors train runs with known faults, which the figures count."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.faults.fit import without_each
from benchmarks.faults.report import Judged, judge
from benchmarks.faults.runs import Label
from benchmarks.loops.labels import made_by

from mldebug_mcp.models import State

pytest.importorskip("torch")
pytest.importorskip("transformers")


@pytest.mark.parametrize(
    ("loops", "only", "cause"),
    [
        ("vision", "params_not_training", "params_not_training"),
        ("language", "char_lm/ok/few", "healthy"),
        ("science", "params_not_training recommender", "params_not_training"),
        ("industry", "params_not_training churn_04", "params_not_training"),
        ("studio", "params_not_training transfer", "params_not_training"),
        ("dialogue", "too_few_epochs translate", "too_few_epochs"),
    ],
)
def test_a_run_of_other_loops_is_trained_listed_and_judged(tmp_path: Path, loops: str, only: str, cause: str) -> None:
    folder = tmp_path / loops
    command = [sys.executable, "-m", f"benchmarks.loops.{loops}", "--into", str(folder), "--only", only]
    subprocess.run(command, check=True, capture_output=True, cwd=Path(__file__).parent.parent)
    made = made_by(folder)
    assert {one.label.cause for one in made} == {cause}
    judged = judge(folder, processes=1)
    assert [one.name.split("-")[:2] for one in judged] == [[loops, cause]] * len(made)
    assert all(one.states and one.loops == loops for one in judged)


def test_runs_of_an_author_are_judged_with_numbers_that_others_gave() -> None:
    def run(loops: str, cause: str, spikes: bool) -> Judged:
        state = State.PRESENT if spikes else State.ABSENT
        label = Label(cause=cause, also=(), onset=None, steps=1, shows=True, tuning=True)
        return Judged(
            f"{loops or 'task'}-{cause}", label, [cause], 0.5, {"loss_spike": state}, "any", [], 1, loops=loops
        )

    own = [run("", "bad_batch", spikes=True)] * 9 + [run("", "healthy", spikes=False)] * 9
    left = without_each([*own, run("other", "bad_batch", spikes=True), run("another", "healthy", spikes=False)])
    assert {name: [one.causes[0] for one in ones] for name, ones in left.items()}.keys() == {"other", "another"}
    assert left["another"][0].causes[0] == "healthy"
    assert "bad_batch" in left["other"][0].causes[:3]
