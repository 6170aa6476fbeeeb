"""The benchmark of known faults: trained runs are judged, counted and compared."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.corpus.archive import folder_of
from benchmarks.corpus.labels import Label, read_labels, write_labels
from benchmarks.faults import fit
from benchmarks.faults.ablation import ablate
from benchmarks.faults.compare import RUNMEDIC, RUNWISE, by_cause, compare
from benchmarks.faults.compare import judge as ask
from benchmarks.faults.counts import fingerprint
from benchmarks.faults.figures import table
from benchmarks.faults.report import Judged, judge, report
from benchmarks.faults.trust import Weighed, fit_trust
from benchmarks.faults.young import judge_young

from mldebug_mcp.checks import symptoms
from mldebug_mcp.judge.hypotheses import Fitted
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.knowledge.catalogue import counts, read_links
from mldebug_mcp.models import State

GROSS = ("not_in_optimizer", "hang", "reward_constant", "agent_reward_constant")
"""Faults that any log shows."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some runs of our own, of the test part: the grossest of each of these faults."""
    into = tmp_path_factory.mktemp("corpus")
    own = folder_of("own", into)
    labels = {name: label for name, label in read_labels(own).items() if not label.tuning and label.shows}
    few = {fault: [name for name in labels if name.split("-")[1] == fault][-1] for fault in GROSS}
    write_labels(own, {name: labels[name] for name in few.values()})
    return own


def test_gross_faults_are_named_among_the_first_three(folder: Path) -> None:
    judged = judge(folder)
    assert [one.name for one in judged if not one.right(3)] == []
    assert f"| faulty runs whose log shows it | {len(GROSS)} |" in report(judged)


def test_findings_of_other_tools_count_as_causes_that_exist() -> None:
    mapped = {cause for causes in (*RUNMEDIC.values(), *RUNWISE.values()) for cause in causes}
    assert mapped <= set(catalogue().causes)


def test_a_comparison_goes_on_without_the_other_tools_and_says_how_to_get_them(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = ask(folder, folder / "no_such_python", sample=2, seed=0)
    rows = compare(said)
    assert [row[""] for row in rows] == ["mldebug-mcp"]
    assert "pip install runmedic" in capsys.readouterr().out
    assert table(rows).startswith("| | faulty runs |")
    assert sum(int(row["runs"]) for row in by_cause(said)) == int(rows[0]["faulty runs"])


def test_a_report_shows_further_runs_in_a_column_of_their_own(folder: Path) -> None:
    judged = judge(folder)
    shown = report(judged, {"once more": judged})
    assert "| once more |" in shown.splitlines()[0]
    assert "## once more part" in shown


def test_taking_away_the_questions_that_tell_of_a_fault_loses_it(folder: Path) -> None:
    judged = [replace(one, numbers={}) for one in judge(folder)]  # what its numbers tell is not lost
    rows = {row["question"]: row for row in ablate(judged, processes=1)}
    assert set(rows) == {symptom.question.id for symptom in symptoms().values()}
    shown = {name for name, row in rows.items() if int(row["runs that show one"])}
    assert any(int(rows[name]["first"]) < 0 for name in shown)
    assert all(int(row["tasks"]) <= int(row["runs that show one"]) for row in rows.values())


def test_healthy_runs_are_judged_while_they_are_young(tmp_path: Path) -> None:
    run = tmp_path / "calm"
    run.mkdir()
    run.joinpath("log.jsonl").write_text(
        "".join(json.dumps({"step": step, "loss": 3 * 0.99**step}) + "\n" for step in range(1, 31))
    )
    write_labels(tmp_path, {"calm": Label("healthy")})
    assert [(one.records, one.accused) for one in judge_young(tmp_path)] == [(5, False), (10, False), (20, False)]


def _judged(loops: str, cause: str, *, spikes: bool) -> Judged:
    state = State.PRESENT if spikes else State.ABSENT
    return Judged(
        f"{loops or 'task'}-{cause}", Label(cause), [cause], 0.5, {"loss_spike": state}, "any", [], 1, loops=loops
    )


OURS = [_judged("", "bad_batch", spikes=True)] * 9 + [_judged("", "healthy", spikes=False)] * 9


def test_runs_of_an_author_are_judged_with_numbers_that_others_gave() -> None:
    left = fit.without_each(
        [*OURS, _judged("other", "bad_batch", spikes=True), _judged("another", "healthy", spikes=False)]
    )
    assert {name: [one.causes[0] for one in ones] for name, ones in left.items()}.keys() == {"other", "another"}
    assert left["another"][0].causes[0] == "healthy"
    assert "bad_batch" in left["other"][0].causes[:3]


def test_what_is_fitted_is_written_as_the_package_reads_it(tmp_path: Path) -> None:
    authors = [_judged(author, "healthy", spikes=False) for author in ("other", "another")] * 9
    fit.write(*fit.fit([replace(one, numbers={"loss: last / first": 0.5}) for one in (*OURS, *authors)]), tmp_path)
    links = Fitted(**json.loads((tmp_path / "fitted.json").read_text())).links
    assert links == fingerprint(catalogue().causes.values())
    assert counts(read_links(tmp_path))["bad_batch"]["loss_spike"][0] > 0
    assert (tmp_path / "likeness.bin").stat().st_size > 0


def _weighed(good: float, bad: float, right: str) -> Weighed:
    """A run of two causes, for the first of which two questions have these bits."""
    seen = np.array([[good, bad], [0.0, 0.0]])
    return Weighed(np.zeros(2), seen, np.zeros(2), np.array([right == "first", right == "second"], dtype=float), 1.0)


def test_a_question_that_is_mostly_right_is_trusted_more_than_one_that_is_not() -> None:
    runs = [_weighed(good, bad, "first") for good in (1, 1, 1, -1) for bad in (1, -1)]
    runs += [_weighed(-good, bad, "second") for good in (1, 1, 1, -1) for bad in (1, -1)]
    powers = fit_trust(runs, ["good", "bad"]).questions
    assert powers["good"] == pytest.approx(np.log2(3), rel=0.2), "three of four are right: odds of three"
    assert powers["bad"] < 0.5 * powers["good"]
