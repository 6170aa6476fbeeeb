"""The sheet: what a reader needs to judge a run without its log, in every form in which it is shown."""

from __future__ import annotations

import io
import math
import os
import re
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from tests.runs import run_of

from mldebug_mcp import diagnose_run
from mldebug_mcp.judge.diagnosis import diagnose
from mldebug_mcp.logs import Run, read_run
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.models import Diagnosis
from mldebug_mcp.report.diagnosis_concise import MAX_HEALTHY_CHARACTERS, concise
from mldebug_mcp.report.diagnosis_screen import screen_lines
from mldebug_mcp.report.runs_terminal import print_diagnosis

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
STEP = np.arange(1, 301)


def sheet_of(diagnosis: Diagnosis) -> str:
    return "\n".join(diagnosis.sheet.lines)


def printed(diagnosis: Diagnosis, run: Run, *, long: bool, width: int = 100) -> str:
    if not long:
        return "\n".join(map(str, screen_lines(diagnosis, run, width)))
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False, force_terminal=False)
    print_diagnosis(console, diagnosis, run)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("characters", [5, 40, 120, 200])
def test_a_reason_is_whole_or_left_out_however_long_the_path_of_the_log_is(tmp_path: Path, characters: int) -> None:
    folder = tmp_path / ("x" * characters)
    folder.mkdir()
    (folder / "log.jsonl").write_text("".join(f'{{"step": {at}, "loss": {9**at}}}\n' for at in range(4)))
    diagnosis = diagnose(read_run(folder / "log.jsonl"))
    whole = {reason for one in diagnosis.hypotheses for reason in (*one.because, *one.against)}
    shown = {reason for one in concise(diagnosis).hypotheses for reason in (*one.because, *one.against)}
    assert shown
    assert shown <= whole


def test_what_does_not_decide_gives_way_to_what_does() -> None:
    rng = np.random.default_rng(0)
    others = {f"{word}_{at}": rng.normal(0, 1, 300) for word in ("frob", "zork", "quux") for at in "abcd"}
    results = {f"eval_{name}": np.linspace(0.5, 0.4, 300) for name in ("accuracy", "f1", "auc", "precision", "recall")}
    loss = np.concatenate([3 - STEP[:200] / 100, np.linspace(1, 40, 100)])
    config = {f"strange_setting_{at}": at for at in range(30)}
    diagnosis = diagnose(run_of({"loss": loss, **results, **others}, config=config))
    short = sheet_of(concise(diagnosis))
    loss_line = next(one.curves[0].text for one in diagnosis.sheet.quantities if one.name == "loss")
    assert loss_line in short
    assert diagnosis.sheet.quantities[-1].curves[0].text not in short
    assert diagnosis.sheet.quantities[-1].curves[0].name in short, "it is named, so that it can be read"


def test_observations_name_no_cause() -> None:
    for name in ("loss_spike", "nan_loss", "overfit", "divergence"):
        diagnosis = diagnose(read_run(EXAMPLES / name))
        causes = {one.cause for one in diagnosis.hypotheses} - {"healthy", "unknown"}
        symptoms = {one.symptom for one in diagnosis.findings}
        words = set(re.findall(r"\w+", sheet_of(diagnosis)))
        assert not (causes - symptoms) & words


def test_a_setting_out_of_what_is_usual_is_marked_with_what_is() -> None:
    run = run_of(loss=3 - STEP / 200, config={"adam_beta2": 0.1, "weight_decay": 0.01})
    marked = {one.name: one.usual for one in diagnose(run).sheet.settings if one.usual}
    assert marked == {"adam_beta2": "0.95 to 0.999"}


def test_training_and_evaluation_stand_on_one_line_with_the_gap() -> None:
    evaluated = {step: 2.5 + step / 300 for step in range(50, 301, 50)}
    run = run_of({"loss": 3 - STEP / 200, "eval_loss": evaluated})
    line = next(one for one in diagnose(run).sheet.quantities if one.name == "loss")
    assert [one.name for one in line.curves] == ["loss", "eval_loss"]
    assert line.gap.startswith("evaluation - median of 10 training records: ")
    assert "at 300" in line.gap


def test_hundreds_of_layers_are_told_by_their_extremes() -> None:
    rng = np.random.default_rng(0)
    norms = {f"grad_norm/layer_{at}": 1 + at + rng.normal(0, 0.1, 300) for at in range(200)}
    norms["grad_norm/layer_77"] = np.full(300, 1e-9)
    lines = [one for one in diagnose(run_of({"loss": 3 - STEP / 200, **norms})).sheet.quantities if one.columns > 4]
    (group,) = lines
    assert group.columns == 200
    told = " ".join(one.name for one in group.curves)
    assert "layer_77" in told, "the lowest"
    assert "layer_199" in told, "the highest"


def test_jumps_at_one_distance_are_one_line_of_the_time_line() -> None:
    loss = 2 + np.random.default_rng(0).normal(0, 0.02, 300)
    loss[[59, 119, 179, 239, 299]] += 3
    events = diagnose(run_of(loss=loss)).sheet.events
    again = [one for one in events if "times, at 60, 120, 180, 240" in one.text]
    assert len(again) == 1


def test_a_jump_has_one_level_before_it_wherever_it_is_stated() -> None:
    diagnosis = diagnose_run(EXAMPLES / "loss_spike")

    spike = next(finding for finding in diagnosis.findings if finding.symptom == "loss_spike")
    event = next(event for event in diagnosis.sheet.events if "loss_spike" in event.findings)
    for phrase in re.findall(r"(\S+) (?:jumps|goes) (from about \S+ to \S+)", spike.summary):
        assert " ".join(phrase).rstrip(";") in event.text


def test_a_column_of_unknown_meaning_is_measured_too() -> None:
    run = run_of({"loss": 3 - STEP / 200, "frobnication": np.where(STEP < 200, 1.0, 7.0)})
    line = next(one for one in diagnose(run).sheet.quantities if one.name == "frobnication")
    assert "7" in line.curves[0].course
    assert line.role == ""


def test_a_check_that_the_log_answers_is_answered_and_not_asked() -> None:
    diagnosis = diagnose(read_run(EXAMPLES / "overfit"))
    leader = diagnosis.hypotheses[0]
    answered = {step.id: step.answer for step in leader.next_steps if step.answer}
    assert "evaluation loss is lowest at epoch" in answered["overfitting.1"]
    assert "overfitting.1" not in {step.id for step in diagnosis.next_steps}


def test_bits_are_told_only_when_asked_for() -> None:
    run = read_run(EXAMPLES / "loss_spike")
    diagnosis = diagnose(run)
    for long in (False, True):
        assert " bits)" not in printed(diagnosis, run, long=long)


@pytest.mark.parametrize(
    ("values", "config"),
    [([1e308, -1e308] * 30, {}), ([float("nan")] * 60, {}), ([0.0] * 60, {"learning_rate": float("inf")}), ([5.0], {})],
)
def test_a_hostile_run_has_a_sheet(values: list[float], config: dict[str, float]) -> None:
    assert diagnose(run_of(loss=values, config=config)).sheet.ran


def test_what_is_logged_and_not_finite_is_not_listed_as_not_logged() -> None:
    records = [{"step": step, "loss": 2.0 if step < 3 else math.nan, "grad_norm": math.nan} for step in range(1, 40)]
    (line,) = diagnose_run(records, settings={"lr": 0.1}).sheet.not_judged
    missing = line.partition("not logged: ")[2].split(", ")
    assert not {"loss", "grad_norm"} & {*missing}


def test_each_quantity_that_nothing_rests_on_is_named_with_its_ends_on_one_screen() -> None:
    run = run_of({
        "loss": [0.5, 0.25, 0.5, 0.25],
        "reward": [0.75, 0.75, 0.875, 1.0],
        "kl": [0.0, 0.5, 1.0, 2.0],
        "rewards/format/mean": [0.25, 0.5, 0.75, 1.0],
        "rewards/exact/mean": [0.5, 0.25, 0.125, 0.0],
    })  # fmt: skip
    text = " ".join(printed(diagnose(run), run, long=False).split())
    for ends in ("rewards/format/mean 0.25 to 1", "rewards/exact/mean 0.5 to 0"):
        assert ends in text


def test_the_short_answer_to_a_healthy_run_gives_both_ends_of_columns_that_nothing_rests_on() -> None:
    loss = 2 * np.exp(-STEP / 60) + 0.4 + np.random.default_rng(0).normal(0, 0.02, 300)
    columns: dict[str, Floats] = {"loss": loss, "eval_loss": loss + 0.01}
    columns |= {"grad_norm": np.ones(300), "lr": np.full(300, 1e-3)}
    words = ["oslo", "rome", "lima", "cairo", "quito", "paris", "delhi", "tokyo", "seoul", "accra", "dakar", "sofia"]
    columns |= {f"{word}_probe": np.linspace(at + 0.5, at + 1.5, 300) for at, word in enumerate(words)}
    columns |= {"oracle": np.concatenate([np.linspace(5, 9, 150), np.linspace(9, 7, 150)])}
    short = concise(diagnose(run_of(columns)))
    lines = " ".join(short.sheet.lines)
    assert "oslo_probe: 0.5 to 1.5" in lines
    assert re.search(r"oracle: 5 to 7 \(high 9 at 1(50|51)\)", lines)
    assert len(short.model_dump_json(exclude_defaults=True)) <= MAX_HEALTHY_CHARACTERS


@pytest.mark.parametrize("records", [1, 5, 40])
def test_an_error_is_said_to_stand_behind_all_records_before_it(records: int, tmp_path: Path) -> None:
    lines = [f"step {step}: loss {3 - step / 100}\n" for step in range(1, records + 1)]
    (tmp_path / "train.log").write_text("".join(lines) + "RuntimeError: CUDA error: an illegal memory access\n")
    where = f"line {records + 1} (error, after {records} record{'s' * (records > 1)})"
    assert any(where in line for line in diagnose_run(tmp_path / "train.log").sheet.ran)


@pytest.mark.parametrize(("age", "stated"), [
    (3600.0, "its last line was written 60 min ago; see whether its process lives"),
    (20.0, "the run may be going on"),
])  # fmt: skip
def test_the_age_of_the_last_line_stands_where_its_time_and_that_of_the_file_agree(
    tmp_path: Path, age: float, stated: str
) -> None:
    log, now = tmp_path / "train.log", datetime.now(UTC).timestamp()
    times = [datetime.fromtimestamp(now - age - 2 * (99 - step), UTC) for step in range(100)]
    lines = [f"{time:%Y-%m-%d %H:%M:%S} step {step}/5000 loss {3 - step / 99}" for step, time in enumerate(times)]
    log.write_text("\n".join(lines) + "\n")
    os.utime(log, (now - age, now - age))
    assert stated in sheet_of(diagnose_run(log))
    os.utime(log, (now + 5000, now + 5000))  # as a copy has
    assert "written" not in sheet_of(diagnose_run(log))


def test_a_finding_that_is_cut_on_the_screen_ends_with_a_mark() -> None:
    loss = np.where(STEP == 150, 9.0, 2 + np.sin(STEP) / 100)
    run = run_of(loss=loss, grad_norm=loss / 2, learning_rate=np.full(300, 1e-4))
    lines = printed(diagnose(run), run, long=False, width=60).splitlines()
    start = next(place for place, text in enumerate(lines) if "loss_spike:" in text)
    assert lines[start + 1].endswith("…")
