"""A folder of runs is answered in a line each, with what the sick ones share; two kinds of runs are compared."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from mldebug_mcp import InputError, compare_runs, diagnose_run, diagnose_runs
from mldebug_mcp.cli import main
from mldebug_mcp.judge.group_comparison import contest
from mldebug_mcp.judge.runs import answered, code_mark
from mldebug_mcp.judge.sweep import Answered, fisher, shared_settings
from mldebug_mcp.logs.files import RunFolder
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

    monkeypatch.setattr("mldebug_mcp.judge.runs.answered", never)
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

    monkeypatch.setattr("mldebug_mcp.judge.runs.answered", interrupted)
    with pytest.raises(KeyboardInterrupt):
        diagnose_runs(sweep, cache=tmp_path / "kept.jsonl")
    diagnose_runs(sweep, cache=tmp_path / "kept.jsonl")
    assert len(read) == 14
    assert len(set(read)) == 13


def test_more_runs_than_a_single_diagnosis_looks_at_are_all_found(sweep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mldebug_mcp.core.access.MAX_ENTRIES", 10)
    answer = diagnose_runs(sweep)
    assert len(answer.rows) == 13
    assert not any("looked at" in note for note in answer.notes)


def test_answers_that_other_code_of_the_same_version_gave_are_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, folder, package = tmp_path / "kept.jsonl", write(tmp_path / "runs" / "a", 1), tmp_path / "package"
    judged: list[str] = []

    def judge(place: RunFolder) -> list[Answered]:
        judged.append(place.name)
        return answered(place)

    monkeypatch.setattr("mldebug_mcp.judge.runs.answered", judge)
    monkeypatch.setattr("mldebug_mcp.judge.runs._mark_of_code", lambda: code_mark(package))
    (package / "checks").mkdir(parents=True)
    for code, times in (("LIMIT = 1\n", 1), ("LIMIT = 20\n", 2)):
        (package / "checks" / "loss.py").write_text(code, encoding="utf-8")
        for _ in range(2):
            diagnose_runs(folder.parent, cache=cache, processes=1)
            assert len(judged) == times


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


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pair")
    write(folder / "a", 1)
    write(folder / "b", 2, HIGH)
    return folder


OTHER_HOMES = {
    "a file in the way": {"XDG_CACHE_HOME": "{file}"},
    "a folder that cannot be made": {"XDG_CACHE_HOME": "/dev/null/cache"},
    "a home that is no folder": {"HOME": "/dev/null"},
    "a home of nobody": {"MLDEBUG_MCP_CACHE": "~nobody-of-this-name/cache"},
    "a folder that is named and is a file": {"MLDEBUG_MCP_CACHE": "{file}"},
}


@pytest.mark.parametrize("variables", OTHER_HOMES.values(), ids=OTHER_HOMES)
def test_a_cache_that_cannot_be_written_is_a_note_and_the_runs_are_answered(
    pair: Path, tmp_path: Path, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (tmp_path / "file").write_text("in the way")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(file=tmp_path / "file"))
    assert main(["runs", str(pair), "--processes", "1", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert len(answer["rows"]) == 2
    assert any("not kept for the next call" in note and "--no-cache" in note for note in answer["notes"])
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_folder_in_the_place_of_the_cache_is_a_note_and_leaves_no_temporary_file(pair: Path, tmp_path: Path) -> None:
    (tmp_path / "kept.jsonl").mkdir()
    answer = diagnose_runs(pair, cache=tmp_path / "kept.jsonl")
    assert len(answer.rows) == 2
    assert ["cannot be written" in note for note in answer.notes] == [True]
    assert [one.name for one in tmp_path.iterdir()] == ["kept.jsonl"]


def test_a_cache_without_room_is_a_note_and_leaves_no_temporary_file(pair: Path, tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        answer = diagnose_runs(pair, cache=tmp_path / "kept.jsonl")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert len(answer.rows) == 2
    assert "not kept for the next call" in answer.notes[0]
    assert not list(tmp_path.iterdir())


def _entries(text: bytes, change: Callable[[Any], object]) -> bytes:
    """Return a cache whose entries were changed, as if a disk had changed them: valid JSON all the same."""
    return b"\n".join(json.dumps(change(json.loads(line[line.index(b"[") :]))).encode() for line in text.splitlines())


CORRUPT: dict[str, Callable[[bytes], bytes]] = {
    "cut in the middle": lambda text: text[: -len(text) // 4],
    "another number": lambda text: text.replace(b'"step": 199', b'"step": 198'),
    "bytes that are no text": lambda text: b"\xff\x00" + text,
    "nothing": lambda _: b"\n\n",
    "lists in lists": lambda _: b"[" * 500 + b"]" * 500,
    "no rows": lambda text: _entries(text, lambda entry: [entry[0], []]),
    "settings that are none": lambda text: _entries(text, lambda entry: [entry[0], [[*entry[1][0][:2], 3]]]),
    "a name that is none": lambda text: _entries(text, lambda entry: [entry[0], [[7, *entry[1][0][1:]]]]),
    "an unknown cause": lambda text: text.replace(b'"healthy"', b'"nothing"'),
}


@pytest.mark.parametrize("corrupt", CORRUPT.values(), ids=CORRUPT)
def test_a_corrupt_cache_changes_no_answer_and_is_a_note(
    pair: Path, tmp_path: Path, corrupt: Callable[[bytes], bytes]
) -> None:
    cache = tmp_path / "kept.jsonl"
    whole = diagnose_runs(pair, cache=cache)
    cache.write_bytes(corrupt(cache.read_bytes()))
    answer = diagnose_runs(pair, cache=cache)
    assert answer.rows == whole.rows
    assert answer.notes == ["the cache of earlier answers was damaged; runs whose answers were lost are read again"]
    assert diagnose_runs(pair, cache=cache).notes == []


@pytest.mark.parametrize("off", ["--no-cache", "MLDEBUG_MCP_CACHE"])
def test_the_cache_can_be_switched_off(pair: Path, tmp_path: Path, off: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    if off == "MLDEBUG_MCP_CACHE":
        monkeypatch.setenv(off, "off")
    assert main(["runs", str(pair), "--processes", "1", *([off] if off.startswith("-") else [])]) == 0
    assert not list(tmp_path.rglob("*"))


def test_the_cache_lies_where_a_variable_says(pair: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert main(["runs", str(pair), "--processes", "1"]) == 0
    assert [one.suffix for one in (tmp_path / "home" / ".cache" / "mldebug-mcp").iterdir()] == [".jsonl"]
    monkeypatch.setenv("MLDEBUG_MCP_CACHE", str(tmp_path / "moved"))
    assert main(["runs", str(pair), "--processes", "1"]) == 0
    assert [one.suffix for one in (tmp_path / "moved").iterdir()] == [".jsonl"]


def test_runs_whose_ranks_wrote_files_of_their_own_are_kept_too(tmp_path: Path) -> None:
    for rank in range(4):
        write(tmp_path / "runs" / "job" / f"rank{rank}", 1)
    first = diagnose_runs(tmp_path / "runs", cache=tmp_path / "kept.jsonl")
    assert first.rows[0].ranks is not None
    assert diagnose_runs(tmp_path / "runs", cache=tmp_path / "kept.jsonl") == first


def test_of_too_many_runs_the_newest_are_read_and_the_note_says_so(sweep: Path) -> None:
    answer = diagnose_runs(sweep, most=3)
    assert len(answer.rows) == 3
    assert "only the newest 3 of 13 runs" in answer.notes[0]


@pytest.mark.parametrize("what", ["file", "empty"])
def test_what_is_no_folder_of_runs_is_refused(tmp_path: Path, what: str) -> None:
    place = tmp_path / "log.jsonl" if what == "file" else tmp_path
    if what == "file":
        place.write_text('{"step": 1, "loss": 2}\n')
    with pytest.raises(InputError, match="a file of one run" if what == "file" else "no run found"):
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
    assert said.startswith("A is better: loss is 0.")
    assert "(lower is better), more than chance does" in said
    assert "A - B is -" in said


@pytest.mark.parametrize("pairs", [2, 3, 4])
def test_a_comparison_says_what_decides_and_when_no_smaller_p_is_possible(tmp_path: Path, pairs: int) -> None:
    a = [write(tmp_path / f"a{seed}", seed) for seed in range(pairs)]
    b = [write(tmp_path / f"b{seed}", seed, HIGH) for seed in range(pairs)]
    answer = compare_runs(a, b)
    assert answer.p == pytest.approx(2 / 2**pairs)
    facts = " ".join(answer.at_a_glance.facts)
    assert "by Student's t, which decides" in facts
    assert f"and {pairs} pairs can give no smaller one" in facts
    assert not any("different numbers" in note for note in answer.notes)


def test_a_run_that_ended_in_nan_has_no_result_and_is_the_worst(tmp_path: Path) -> None:
    a = [write(tmp_path / f"a{seed}", seed) for seed in range(3)]
    b = [write(tmp_path / f"b{seed}", seed + 10) for seed in range(3)]
    ended_in_nan(a[0])
    answer = compare_runs(a, b)
    assert len(answer.a) == 2
    assert "without a finite loss at the end: 1 of 3 runs of A" in answer.at_a_glance.headline
    assert answer.next_step is not None
    assert "a0" in str(answer.next_step.arguments)

    ended_in_nan(a[1])
    with pytest.raises(InputError, match=r"2 of 3 runs of A .*a0.*a1.*diagnose the others first"):
        compare_runs(a, b)


def ended_in_nan(run: Path) -> None:
    log = next(run.rglob("*.jsonl"))
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    log.write_text("\n".join(json.dumps({**row, "loss": float("nan")} if row is rows[-1] else row) for row in rows))


def test_runs_of_different_lengths_are_compared_with_a_note(tmp_path: Path) -> None:
    a = [write(tmp_path / f"a{seed}", seed) for seed in range(2)]
    b = [write(tmp_path / f"b{seed}", seed) for seed in range(2)]
    for run in b:
        log = next(file for file in run.rglob("*.jsonl"))
        rows = log.read_text().splitlines()
        log.write_text("\n".join(rows[: len(rows) // 2]))
    answer = compare_runs(a, b)
    (note,) = answer.notes
    assert note.startswith("the runs have different numbers of steps: they end at ")


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
    needed = "More runs hardly help" if answer.runs_needed is None else f"Train about {answer.runs_needed} runs of each"
    assert said.startswith("Cannot tell A from B: loss is ")
    assert needed in said


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


@pytest.mark.parametrize("beside", [{}, {"launch.log": "starting on node 3\n"}, {"notes.remarks": "lr: 0.001\n"}])
def test_runs_finds_logs_of_any_ending_as_diagnose_does(tmp_path: Path, beside: dict[str, str]) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        lines = [f"step {step} loss {3 / (1 + step):.4f} lr 0.001" for step in range(60)]
        for file, text in {"worker.trainlog": "\n".join([*lines, ""]), **beside}.items():
            (tmp_path / name / file).write_text(text, encoding="utf-8")
    found = diagnose_runs(tmp_path)
    assert sorted((row.name, row.step, row.ending) for row in found.rows) == [("a", 59, "open"), ("b", 59, "open")]
    assert diagnose_run(tmp_path, run="b").run.last_step == 59


def test_a_run_that_logged_too_little_is_not_counted_as_healthy(tmp_path: Path) -> None:
    for seed in range(2):
        write(tmp_path / f"run{seed}", seed)
    write(tmp_path / "short", 9, steps=2)
    answer = diagnose_runs(tmp_path)
    short = next(row for row in answer.rows if row.name == "short")
    assert diagnose_run(tmp_path / "short").verdict.kind == "not judged"
    assert (short.cause, short.note) == ("", "cannot be judged: too little is logged")
    assert "2 healthy, 1 logged too little to judge" in answer.at_a_glance.headline


def test_diagnosis_of_a_folder_of_runs_says_first_that_it_is_of_one_of_them(tmp_path: Path) -> None:
    for seed in range(3):
        write(tmp_path / f"run{seed}", seed)
    assert diagnose_run(tmp_path).verdict.headline.startswith("1 of 3 runs in this folder; none is longer. ")
    assert not diagnose_run(tmp_path, run="run1").verdict.headline.startswith("1 of 3")


def test_the_table_says_which_values_its_results_are_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"step": at, "loss": 1 / (at + 1)} for at in range(100)]
    (tmp_path / "log.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert main(["runs", str(tmp_path), "--no-cache", "--processes", "1"]) == 0
    shown = capsys.readouterr().out
    assert f"loss {np.median([row['loss'] for row in rows[-10:]]):.4g}" in shown
    assert "result: the median of the last tenth of the values of that metric" in shown
