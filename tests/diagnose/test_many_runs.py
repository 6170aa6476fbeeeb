"""A folder of runs is answered in a line each, with what the sick ones share; two kinds of runs are compared."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from mldebug_mcp import InputError, compare_runs, diagnose_run, diagnose_runs
from mldebug_mcp.cli import main
from mldebug_mcp.diagnose.contest import contest
from mldebug_mcp.diagnose.runs import Answered, answered
from mldebug_mcp.diagnose.shared_settings import fisher, shared_settings
from mldebug_mcp.logs.run_folders import RunFolder
from mldebug_mcp.models.runs import RunRow

HIGH, LOW = 0.03, 0.001


def write(folder: Path, seed: int, rate: float = LOW, steps: int = 200, **settings: float) -> Path:
    """Write a run that falls, and at a high rate blows up halfway."""
    random = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    at = np.arange(steps)
    loss = 0.4 + 2 * np.exp(-at / 40) + random.normal(0, 0.02, steps)
    loss += (rate == HIGH) * np.clip(at - steps / 2, 0, None) * 0.05
    rows = [
        {"step": int(step), "loss": float(value), "learning_rate": rate} for step, value in zip(at, loss, strict=True)
    ]
    (folder / "log.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (folder / "config.json").write_text(json.dumps({"learning_rate": rate, "seed": seed, **settings}))
    return folder


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweep")
    for number in range(12):
        write(folder / f"r{number:02}", number, HIGH if number < 5 else LOW, weight_decay=0.1 * (number % 2))
    (folder / "broken").mkdir()
    (folder / "broken" / "train.log").write_text("nothing of use\n")
    return folder


def test_each_run_has_a_row_and_the_sick_come_first_and_what_cannot_be_read_last(sweep: Path) -> None:
    answer = diagnose_runs(sweep)
    assert [row.name for row in answer.rows[-1:]] == ["broken"]
    assert answer.rows[-1].ending == "unread"
    assert "no training log" in answer.rows[-1].note
    assert {row.name for row in answer.rows[:5]} == {f"r{number:02}" for number in range(5)}
    assert {row.cause for row in answer.rows[5:12]} == {"healthy"}
    first = answer.rows[0]
    assert first.onset is not None
    assert first.onset == pytest.approx(100, abs=30)
    assert (first.metric, first.step) == ("loss", 199)


def test_the_setting_that_the_sick_ones_share_is_named_with_counts_and_no_other(sweep: Path) -> None:
    shared = diagnose_runs(sweep).shared
    assert {one.setting for one in shared} == {"learning_rate"}
    assert all(one.sick_with == one.sick == 5 and one.others_with == 0 and one.others == 7 for one in shared[:1])


def test_settings_that_were_dealt_at_random_are_hardly_ever_said_to_be_shared() -> None:
    random = np.random.default_rng(0)
    told = 0
    for _ in range(100):
        answers = [
            Answered(
                str(n),
                RunRow(name=str(n), path="", cause="lr_too_high" if n < 12 else "healthy", probability=0.8),
                {f"s{one}": float(random.integers(4)) for one in range(6)},
            )
            for n in range(40)
        ]
        told += bool(shared_settings(answers))
    assert told <= 5


@pytest.mark.parametrize("table", [(3, 5, 4, 20), (0, 6, 7, 15), (5, 5, 5, 12), (1, 9, 2, 10)])
def test_the_exact_test_is_that_of_scipy(table: tuple[int, int, int, int]) -> None:
    both, marked, drawn, total = table
    cells = [[both, drawn - both], [marked - both, total - marked - drawn + both]]
    assert fisher(*table) == pytest.approx(stats.fisher_exact(cells).pvalue)


def test_more_processes_and_a_kept_answer_say_the_same_and_read_nothing_twice(
    sweep: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "kept.jsonl"
    first = diagnose_runs(sweep, processes=2, cache=cache)
    assert first == diagnose_runs(sweep)

    def never(_: object) -> list[Answered]:
        raise AssertionError("read again")

    monkeypatch.setattr("mldebug_mcp.diagnose.runs.answered", never)
    assert diagnose_runs(sweep, cache=cache) == first


def test_a_row_says_what_the_diagnosis_of_the_run_says(sweep: Path) -> None:
    for row in diagnose_runs(sweep).rows[:7:3]:
        told = diagnose_run(sweep / row.name)
        assert (row.cause, row.seen) == (told.hypotheses[0].cause, [one.symptom for one in told.present])
        assert row.probability == pytest.approx(told.hypotheses[0].probability)


def test_what_was_read_before_an_interruption_is_not_read_again(
    sweep: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, read = answered, []

    def interrupted(place: RunFolder) -> list[Answered]:
        read.append(place.name)
        if len(read) == 5:
            raise KeyboardInterrupt
        return whole(place)

    monkeypatch.setattr("mldebug_mcp.diagnose.runs.answered", interrupted)
    with pytest.raises(KeyboardInterrupt):
        diagnose_runs(sweep, cache=tmp_path / "kept.jsonl")
    diagnose_runs(sweep, cache=tmp_path / "kept.jsonl")
    assert len(read) == 14
    assert len(set(read)) == 13


def test_more_runs_than_a_single_diagnosis_looks_at_are_all_found(sweep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mldebug_mcp.folders.MAX_ENTRIES", 10)
    answer = diagnose_runs(sweep)
    assert (len(answer.rows), answer.notes) == (13, [])


def test_a_run_that_changed_is_read_again_and_a_broken_cache_is_made_anew(tmp_path: Path) -> None:
    cache, folder = tmp_path / "kept.jsonl", tmp_path / "runs"
    write(folder / "a", 1)
    write(folder / "b", 2)
    diagnose_runs(folder, cache=cache)
    with (folder / "a" / "log.jsonl").open("a") as log:
        log.write('{"step": 500, "loss": 0.4}\n')
    assert {row.step for row in diagnose_runs(folder, cache=cache).rows} == {500, 199}
    cache.write_bytes(b"\xff{]\n[1]\n")
    assert len(diagnose_runs(folder, cache=cache).rows) == 2


def test_of_too_many_runs_the_newest_are_read_and_the_note_says_so(sweep: Path) -> None:
    answer = diagnose_runs(sweep, most=3)
    assert len(answer.rows) == 3
    assert "only the newest 3 of 13 runs" in answer.notes[0]


@pytest.mark.parametrize("what", ["file", "empty"])
def test_what_is_no_folder_of_runs_is_refused(tmp_path: Path, what: str) -> None:
    place = tmp_path / "log.jsonl" if what == "file" else tmp_path
    if what == "file":
        place.write_text('{"step": 1, "loss": 2}\n')
    with pytest.raises(InputError, match="not a folder" if what == "file" else "no run found"):
        diagnose_runs(place)


def test_the_command_prints_a_table_writes_csv_and_fails_a_check(
    sweep: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "runs.csv"
    assert main(["runs", str(sweep), "--no-cache", "--processes", "1", "--csv", str(table), "--check"]) == 1
    said = capsys.readouterr().out
    assert "13 runs: a fault leads in 5, 7 healthy, 1 could not be read" in said
    assert "5 of 5 such runs have learning_rate = 0.03, 0 of 7 others" in said
    with table.open(newline="") as file:
        assert [row["name"] for row in csv.DictReader(file)][-1] == "broken"


def test_a_clear_difference_is_told_apart_seed_by_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = [write(tmp_path / f"a{seed}", seed) for seed in range(3)]
    b = [write(tmp_path / f"b{seed}", seed, HIGH) for seed in range(3)]
    answer = compare_runs(a, b)
    assert (answer.paired, answer.verdict, answer.better) == (True, "a is better", "lower")
    assert answer.high < 0
    assert main(["compare", *map(str, a), "--b", *map(str, b)]) == 0
    said = capsys.readouterr().out
    assert "loss, lower is better: A - B is -" in said
    assert said.endswith("a is better\n")


def test_seeds_of_one_recipe_cannot_be_told_apart_and_it_is_said_what_could(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = [write(tmp_path / f"a{seed}", seed) for seed in range(3)]
    b = [write(tmp_path / f"b{seed}", seed + 10) for seed in range(3)]
    answer = compare_runs(a, b)
    assert (answer.paired, answer.verdict) == (False, "cannot tell")
    assert answer.low < 0 < answer.high
    assert answer.detectable > abs(answer.difference)
    assert main(["compare", *map(str, a), "--b", *map(str, b)]) == 0
    said = capsys.readouterr().out
    needed = "" if answer.runs_needed is None else f": about {answer.runs_needed} would be needed for this difference"
    assert f"cannot tell with 3 runs of each{needed}; so few show one of" in said


def test_the_sides_may_be_parted_by_two_dashes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = [str(write(tmp_path / f"a{seed}", seed)) for seed in range(2)]
    b = [str(write(tmp_path / f"b{seed}", seed + 10)) for seed in range(2)]
    assert main(["compare", *a, "--b", *b]) == 0
    said = capsys.readouterr().out
    assert main(["compare", *a, "--", *b]) == 0
    assert capsys.readouterr().out == said


def test_so_many_runs_as_are_said_to_be_needed_show_the_difference_in_four_cases_of_five() -> None:
    needed = contest([0.0, 1.0, 2.0], [1.0, 2.0, 3.0], "loss", higher=False, paired=False).runs_needed
    assert needed is not None
    random = np.random.default_rng(0)
    samples = [(random.normal(0, 1, needed), random.normal(1, 1, needed)) for _ in range(1000)]
    seen = np.mean([stats.ttest_ind(one, two).pvalue < 0.05 for one, two in samples])
    assert seen == pytest.approx(0.8, abs=0.04)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda folder: ([folder / "a"], [folder / "a", folder / "b"]), "A has 1 run"),
        (lambda folder: ([folder / "a", folder / "b"],) * 2, "no accuracy in it; it has"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_the_reason(
    tmp_path: Path, make: Callable[[Path], tuple[list[Path], list[Path]]], said: str
) -> None:
    write(tmp_path / "a", 1)
    write(tmp_path / "b", 2)
    with pytest.raises(InputError, match=said):
        compare_runs(*make(tmp_path), metric="accuracy")


def test_copies_of_one_run_are_said_to_be_copies(tmp_path: Path) -> None:
    runs = [write(tmp_path / name, 1) for name in "abcd"]
    answer = compare_runs(runs[:2], runs[2:])
    assert answer.verdict == "cannot tell"
    assert "copies of one run" in answer.notes[0]


def test_the_next_call_is_left_out_where_the_name_of_a_run_does_not_survive_the_way(tmp_path: Path) -> None:
    write(tmp_path / "sound", 1)
    assert diagnose_runs(tmp_path).next_step is not None
    write(tmp_path / "sick\u202e", 2, HIGH)
    assert diagnose_runs(tmp_path).next_step is None


def test_more_pairs_told_apart_are_better(tmp_path: Path) -> None:
    for name, level in (("a0", 0.9), ("a1", 0.91), ("b0", 0.6), ("b1", 0.61)):
        rows = [{"step": step, "loss": 0.5, "rewards/accuracies": level + 0.001 * (step % 3)} for step in range(30)]
        (tmp_path / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    a, b = ([tmp_path / f"{side}{one}.jsonl" for one in range(2)] for side in "ab")
    assert compare_runs(a, b, "rewards/accuracies").verdict == "a is better"
