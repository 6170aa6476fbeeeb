"""The record of what was tried on a run: hypotheses, checks and changes, and what came, as JSON lines beside it."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from mldebug_mcp import InputError, diagnose_run, diagnose_runs, read_record, record_check, update_diagnosis
from mldebug_mcp.cli import main
from mldebug_mcp.core.paths import append_line
from mldebug_mcp.report.diagnosis_html import diagnosis_html

EXAMPLES = Path(__file__).parents[2] / "examples"
NAME = "mldebug-record.jsonl"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    shutil.copytree(EXAMPLES / "divergence", tmp_path / "divergence")
    return tmp_path / "divergence"


def log(folder: Path, level: float, seed: int) -> Path:
    """Write a short run that ends at a level."""
    folder.mkdir(parents=True)
    noise = np.random.default_rng(seed).normal(0, 0.01, 100)
    lines = [
        json.dumps({"step": step, "loss": level + 2 * float(np.exp(-step / 20)) + float(noise[step])})
        for step in range(100)
    ]
    (folder / "log.jsonl").write_text("\n".join(lines))
    (folder / "config.json").write_text(json.dumps({"seed": seed, "learning_rate": 1e-4, "max_steps": 100}))
    return folder


def test_a_check_is_kept_with_what_it_predicted_what_was_measured_and_how_it_moved_the_cause(run: Path) -> None:
    record = record_check(run, check="lr_too_high.1", outcome="refutes", measured={"loss": 37.1}, note="same at lr/3")
    (entry,) = record.tried
    assert (entry.cause, entry.outcome, entry.measured) == ("lr_too_high", "refutes", {"loss": 37.1})
    assert entry.predicted
    assert entry.predicted_otherwise
    assert entry.before is not None
    assert entry.after is not None
    assert entry.after < entry.before
    assert (record.ruled_out, record.contradicted) == ([], ["lr_too_high"])
    (line,) = (run / NAME).read_text().splitlines()
    assert json.loads(line)["check"] == "lr_too_high.1"


def test_the_probabilities_are_those_of_update_diagnosis(run: Path) -> None:
    (entry,) = record_check(run, check="lr_too_high.1", outcome="refutes", measured={"loss": 37.1}).tried
    updated = update_diagnosis({}, {"lr_too_high.1": "refutes"}, path=run)
    after = next(one.probability for one in updated.hypotheses if one.cause == "lr_too_high")
    assert entry.after == pytest.approx(after)


def test_a_verdict_without_a_measurement_is_refused_and_nothing_is_written(run: Path) -> None:
    with pytest.raises(InputError, match="a verdict needs a measurement"):
        record_check(run, check="lr_too_high.1", outcome="refutes", note="I am sure")
    assert not (run / NAME).exists()
    assert main(["record", str(run), "--check", "lr_too_high.1", "--outcome", "confirms"]) == 2


def test_a_measurement_is_a_number(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["record", str(run), "--check", "lr_too_high.1", "--outcome", "refutes", "--measured", "loss=low"])
    assert "NAME=NUMBER" in capsys.readouterr().err
    with pytest.raises(InputError, match="a measurement is a number"):
        record_check(run, check="lr_too_high.1", measured={"loss": "low"})  # type: ignore[dict-item]


def test_a_check_without_a_verdict_is_open_until_it_has_one(run: Path) -> None:
    assert record_check(run, check="lr_too_high.1").open == ["lr_too_high.1"]
    record = record_check(run, check="lr_too_high.1", outcome="confirms", measured={"loss at lr/3": 2.3})
    assert (record.open, record.confirmed) == ([], ["lr_too_high"])
    assert len(record.tried) == 2


def test_the_last_verdict_on_a_cause_stands(run: Path) -> None:
    record_check(run, check="lr_too_high.1", outcome="refutes", measured={"loss": 1.0})
    record = record_check(run, check="lr_too_high.2", outcome="confirms", measured={"loss": 2.0})
    assert (record.ruled_out, record.confirmed) == ([], ["lr_too_high"])


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "name either a check"),
        ({"check": "lr_too_high.1", "change": "lr/3"}, "name either a check"),
        ({"check": "no_such.1"}, "there is no check 'no_such.1'"),
        ({"change": "lr/3"}, "--cause ID"),
        ({"change": "lr/3", "cause": "gremlins"}, "there is no cause 'gremlins'"),
    ],
)
def test_what_cannot_be_recorded_says_what_to_name(run: Path, given: dict[str, str], says: str) -> None:
    with pytest.raises(InputError, match=says):
        record_check(run, **given)  # type: ignore[arg-type]


def test_a_change_is_compared_by_seeds_and_a_verdict_that_they_do_not_support_is_refused(tmp_path: Path) -> None:
    without = [log(tmp_path / f"a{seed}", 2.0 + 0.01 * seed, seed) for seed in range(3)]
    better = [log(tmp_path / f"b{seed}", 1.5 + 0.015 * (seed % 2), seed) for seed in range(3)]
    same = [log(tmp_path / f"c{seed}", 2.0 + 0.012 * (2 - seed), seed) for seed in range(3)]
    record = record_check(
        without[0], change="learning_rate 1e-4 to 3e-4", cause="lr_too_low", predicts="the loss ends lower",
        outcome="confirms", against=better, baseline=without[1:],
    )  # fmt: skip
    (entry,) = record.tried
    assert "better with the change" in entry.compared
    assert entry.measured["loss difference"] == pytest.approx(-0.5, abs=0.05)
    assert (entry.predicted, record.confirmed) == ("the loss ends lower", ["lr_too_low"])
    with pytest.raises(InputError, match="does not support a verdict"):
        record_check(without[0], change="another seed", cause="lr_too_low", outcome="refutes", against=same,
                     baseline=without[1:])  # fmt: skip


def test_one_run_of_each_is_a_measurement_that_says_that_seeds_are_not_known(tmp_path: Path) -> None:
    one, other = log(tmp_path / "a", 2.0, 0), log(tmp_path / "b", 1.5, 1)
    (entry,) = record_check(one, change="lr times 3", cause="lr_too_low", outcome="confirms", against=[other]).tried
    assert "does not show what seeds do" in entry.compared
    assert entry.measured["loss with"] < entry.measured["loss without"]


def test_the_diagnosis_in_all_its_forms_says_what_was_ruled_out_and_its_ranking_stays(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = diagnose_run(run)
    record_check(run, check="lr_too_high.1", outcome="refutes", measured={"loss": 37.1})
    after = diagnose_run(run)
    assert [one.probability for one in after.hypotheses] == [one.probability for one in before.hypotheses]
    assert [(one.cause, one.outcome) for one in after.tried] == [("lr_too_high", "refutes")]
    assert any("was contradicted on" in note and "--outcome lr_too_high.1=refutes" in note for note in after.notes)
    assert "contradicted on" in diagnosis_html(after, after.log)
    assert main(["diagnose", str(run)]) == 0
    assert "lr_too_high: contradicted on" in " ".join(capsys.readouterr().out.split())
    assert main(["diagnose", str(run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tried"][0]["measured"] == {"loss": 37.1}


@pytest.mark.parametrize(("cause", "verdict"), [("lr_too_high", "contradicted"), ("bad_batch", "ruled out")])
def test_a_cause_is_called_ruled_out_only_where_hardly_a_chance_is_left(run: Path, cause: str, verdict: str) -> None:
    (entry,) = record_check(run, check=f"{cause}.1", outcome="refutes", measured={"loss": 3.0}).tried
    assert entry.after is not None
    assert (entry.after < 0.1) == (verdict == "ruled out")
    record = read_record(run)
    assert (cause in record.ruled_out, cause in record.contradicted) == (verdict == "ruled out", verdict != "ruled out")
    assert entry.line().startswith(f"{cause}: {verdict} on ")


@pytest.mark.parametrize("example", ["divergence", "overfit"])
def test_what_the_record_refutes_is_said_before_what_leads_by_the_log(tmp_path: Path, example: str) -> None:
    shutil.copytree(EXAMPLES / example, tmp_path / "run")
    before = diagnose_run(tmp_path / "run")
    check = f"{before.leader}.2"
    record_check(tmp_path / "run", check=check, outcome="refutes", measured={"found": 0})
    after = diagnose_run(tmp_path / "run")
    first, _, by_log = after.verdict.headline.partition(" By the log alone: ")
    assert f"by check {check}, says the record next to the run" in first
    assert by_log.lower() == before.verdict.headline.lower()
    assert check not in {step.id for step in after.next_steps}
    counted = diagnose_run(tmp_path / "run", outcomes={check: "refutes"})
    assert "By the log alone" not in counted.verdict.headline


def test_the_record_is_no_log_of_the_run(run: Path) -> None:
    before = diagnose_run(run).run
    record_check(run, check="lr_too_high.1", outcome="refutes", measured={"loss": 37.1})
    assert diagnose_run(run).run == before


def test_a_folder_of_runs_shows_it_and_a_cached_answer_too(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(EXAMPLES / "healthy", tmp_path / "healthy")
    cache = tmp_path.parent / f"{tmp_path.name}-cache"
    assert all(not row.tried for row in diagnose_runs(tmp_path, cache=cache).rows)
    record_check(run, check="lr_too_high.1", outcome="refutes", measured={"loss": 37.1})
    rows = {row.name: row.tried for row in diagnose_runs(tmp_path, cache=cache).rows}
    assert rows["healthy"] == []
    assert rows["divergence"][0].startswith("lr_too_high: contradicted on")
    assert main(["runs", str(tmp_path), "--no-cache", "--processes", "1"]) == 0
    assert "divergence: lr_too_high: contradicted on" in " ".join(capsys.readouterr().out.split())


def test_logs_of_several_runs_in_one_folder_have_records_of_their_own(tmp_path: Path) -> None:
    for name, level in (("first", 2.0), ("second", 1.0)):
        lines = [json.dumps({"step": step, "loss": level + 1 / (1 + step)}) for step in range(100)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    record = record_check(tmp_path / "first.jsonl", check="lr_too_high.1", outcome="refutes", measured={"loss": 2.0})
    assert record.file == str(tmp_path / f"first.jsonl.{NAME}")
    assert len(diagnose_run(tmp_path / "first.jsonl").tried) == 1
    assert diagnose_run(tmp_path / "second.jsonl").tried == []
    with pytest.raises(InputError, match="name the log file"):
        record_check(tmp_path, check="lr_too_high.1")
    rows = {row.name: row.tried for row in diagnose_runs(tmp_path).rows}
    assert [bool(rows[name]) for name in sorted(rows)] == [True, False]


def test_the_log_file_and_the_folder_of_a_run_share_its_record(run: Path) -> None:
    file = next(one for one in run.iterdir() if one.suffix in (".log", ".txt", ".jsonl"))
    record_check(file, check="lr_too_high.1", outcome="refutes", measured={"loss": 37.1})
    assert read_record(run).contradicted == ["lr_too_high"]


def test_a_damaged_line_is_named_and_the_others_are_read(run: Path) -> None:
    record_check(run, check="lr_too_high.1", outcome="refutes", measured={"loss": 37.1})
    with (run / NAME).open("a") as file:
        file.write('{"at": "2026-01-01T00:00:00+00:00", "cause": "bad_ba')
    record = record_check(run, check="bad_batch.1", outcome="confirms", measured={"loss": float("nan")})
    assert [one.cause for one in record.tried] == ["lr_too_high", "bad_batch"]
    assert record.notes == [f"1 damaged line is left out of {NAME}: line 2"]
    assert any("damaged line" in note for note in diagnose_run(run).notes)


def test_a_record_that_is_no_text_costs_no_diagnosis(run: Path) -> None:
    (run / NAME).write_bytes(bytes(range(256)) * 8)
    answer = diagnose_run(run)
    assert answer.tried == []
    assert any("damaged" in note for note in answer.notes)


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_link_in_the_place_of_the_record_is_not_followed(run: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("mine\n")
    (run / NAME).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="no link"):
        record_check(run, check="lr_too_high.1")
    assert (tmp_path / "elsewhere").read_text() == "mine\n"


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_says_so(run: Path) -> None:
    run.chmod(0o555)
    try:
        with pytest.raises(InputError, match="must be writable"):
            record_check(run, check="lr_too_high.1")
    finally:
        run.chmod(0o755)


def _write(file: Path, writer: int) -> None:
    for number in range(50):
        append_line(file, json.dumps({"writer": writer, "number": number, "filler": "x" * 5000}))


def test_concurrent_writers_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / NAME
    with ProcessPoolExecutor(4, mp_context=multiprocessing.get_context("spawn")) as pool:
        list(pool.map(_write, [file] * 4, range(4)))
    entries = [json.loads(line) for line in file.read_text().splitlines()]
    assert {(one["writer"], one["number"]) for one in entries} == {(a, b) for a in range(4) for b in range(50)}
    assert len(entries) == 200


def test_the_record_holds_no_text_of_the_log_and_no_path(tmp_path: Path) -> None:
    one, other = log(tmp_path / "secret_a", 2.0, 0), log(tmp_path / "secret_b", 1.5, 1)
    record_check(one, change="lr times 3", cause="lr_too_low", outcome="confirms", against=[other])
    assert "secret" not in (one / NAME).read_text()


def test_the_command_prints_the_record(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", str(run)]) == 0
    assert "nothing is recorded" in capsys.readouterr().out
    arguments = ["record", str(run), "--check", "lr_too_high.1", "--outcome", "refutes", "--measured", "loss=37.1"]
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["contradicted"] == ["lr_too_high"]
    assert main(["record", str(run)]) == 0
    printed = capsys.readouterr().out
    assert "predicted:" in printed
    assert "contradicted, and possible all the same: lr_too_high" in printed
    assert main(["record", str(run), "--outcome", "refutes"]) == 2
