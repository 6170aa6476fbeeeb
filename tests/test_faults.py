"""The benchmark of known faults: runs are made, labelled and judged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")

from benchmarks.faults.ablation import ablate
from benchmarks.faults.compare import by_cause, compare
from benchmarks.faults.compare import judge as ask
from benchmarks.faults.figures import table
from benchmarks.faults.others import RUNMEDIC, RUNWISE
from benchmarks.faults.report import judge, report
from benchmarks.faults.runs import SUBJECTS, Case, cases, make, other_cases

from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.symptoms import symptoms

MADE = (
    Case("tabular", "not_in_optimizer", 1, 1),
    Case("tabular", "hang", 2, 1),
    Case("grpo_sum", "reward_constant", 1, 1),
    Case("ppo_chain", "agent_reward_constant", 1, 1),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("made")
    for case in MADE:
        make(case, place)
    return place


def test_each_run_has_a_log_and_a_label_with_the_injected_cause(folder: Path) -> None:
    causes = {file.name.split("-")[1]: json.loads(file.read_text())["cause"] for file in folder.glob("*.label.json")}
    assert causes == {
        "not_in_optimizer": "params_not_training",
        "hang": "hang",
        "reward_constant": "reward_broken",
        "agent_reward_constant": "reward_broken",
    }


def test_gross_faults_are_named_among_the_first_three(folder: Path) -> None:
    judged = judge(folder)
    assert [one.name for one in judged if not one.right(3)] == []
    assert f"| faulty runs whose log shows it | {len(MADE)} |" in report(judged)


def test_a_run_that_stops_has_its_last_words_and_its_plan_in_the_folder(folder: Path) -> None:
    run = folder / "tabular-hang-2-1"
    assert "Watchdog caught collective operation timeout" in (run / "train.log").read_text()
    assert json.loads((run / "config.json").read_text())["max_steps"] == 400


def test_every_cause_is_injected_in_both_parts_and_names_are_unique() -> None:
    every = [case for case in cases(subset=False) if case.subject.needs == ("torch",)]
    parts = [{case.rules.cause for case in every if case.tuning is tuning} for tuning in (True, False)]
    assert parts[0] == parts[1]
    assert len({case.name for case in every}) == len(every)


def test_at_least_one_run_in_four_is_healthy_and_there_are_six_hundred() -> None:
    every = [case for case in cases(subset=False) if case.subject.needs == ("torch",)]
    assert len(every) >= 600
    assert sum(case.rules.cause == "healthy" for case in every) >= len(every) / 4


def test_what_lacks_its_package_is_left_out_with_a_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("benchmarks.faults.runs.find_spec", lambda name: name if name == "torch" else None)
    made = {case.task for case in cases(subset=True)}
    assert made
    assert all(SUBJECTS[task].needs == ("torch",) for task in made)
    told = capsys.readouterr().err
    assert "runs of hf_gpt2 are left out: they need transformers and accelerate" in told
    assert "runs of lightning_tabular are left out: they need pytorch_lightning" in told
    assert "runs of trl_sft_reversal are left out: they need transformers and accelerate and trl" in told


def test_the_subset_has_each_fault() -> None:
    every, few = (
        {case.fault for case in cases(subset=subset) if case.subject.needs == ("torch",)} for subset in (False, True)
    )
    assert every == few


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


def test_other_tasks_get_every_kind_of_fault_and_share_no_task_with_the_two_parts() -> None:
    others = list(other_cases())
    assert {case.task for case in others}.isdisjoint({case.task for case in cases(subset=False)})
    assert len({case.rules.cause for case in others}) > 40
    assert {"healthy"} < {case.rules.cause for case in others if case.task == "ctr"}
    assert not any(case.tuning for case in others)


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
