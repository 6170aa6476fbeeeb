"""Trained runs are written anew: what a version tells, what its label says, and what it counts."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from benchmarks.corpus.labels import INDEX, Label, read_labels, write_labels
from benchmarks.faults.deciding import SETTINGS, still_shown
from benchmarks.faults.figures import calibration_error
from benchmarks.faults.fit import fit
from benchmarks.faults.invariance import Answer, Pair, by_change, by_finding, worst_styles
from benchmarks.faults.recorded import recorded, steps_per_pass, story
from benchmarks.faults.report import Judged, by_part
from benchmarks.faults.restyle import HELD, content, poorer, restyle, suited, with_interval

from mldebug_mcp.logs import read_run
from mldebug_mcp.models import State
from tests.restyle.styles import STYLES

LOSS, NORM = ("train", "loss"), ("train", "gradient_norm")
STEPS = range(1, 201)
RECORDS = [
    {"step": s, "loss": 3 - s / 100, "grad_norm": 1.5, "learning_rate": 1e-3, "epoch": s / 50} for s in range(1, 201)
]
NAME = "tabular-as_usual-1-1"


def _made(folder: Path, name: str = NAME, label: Label | None = None, *, config: bool = True) -> Path:
    run = folder / name
    run.mkdir(parents=True)
    records = [r | ({"eval_loss": 3.1 - r["step"] / 100} if r["step"] % 25 == 0 else {}) for r in RECORDS]
    (run / "log.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    if config:
        (run / "config.json").write_text(json.dumps({"learning_rate": 1e-3, "max_steps": 200, "gamma": 0.9}))
    there = read_labels(folder) if (folder / INDEX).exists() else {}
    write_labels(folder, there | {name: label or Label("healthy", steps=200)})
    return folder


def test_a_log_of_the_benchmark_becomes_a_story_with_all_that_it_tells(tmp_path: Path) -> None:
    run = recorded(_made(tmp_path) / NAME)
    told = story(run, NAME)
    assert told.curves[LOSS][200] == pytest.approx(1.0)
    assert sorted(told.curves["eval", "loss"]) == list(range(25, 201, 25))
    assert told.settings == {"learning_rate": 1e-3, "total_steps": 200}
    assert told.extra == {"gamma": 0.9}
    assert steps_per_pass(run.records) == 50


def test_steps_that_were_made_twice_are_those_of_a_resume(tmp_path: Path) -> None:
    run = recorded(_made(tmp_path) / NAME)
    again = [*run.records[:100], *({**record, "loss": 9.0} for record in run.records[80:])]
    resume = story(replace(run, records=again), NAME).resume
    assert resume is not None
    assert (resume.at, resume.back_to) == (100, 80)
    assert resume.before[LOSS][90] == pytest.approx(2.1)
    with pytest.raises(ValueError, match="resumed 2 times"):
        story(replace(run, records=[*again, *run.records[150:]]), NAME)


def test_each_version_can_be_read_and_its_label_says_whose_it_is(tmp_path: Path) -> None:
    restyle(_made(tmp_path / "made"), tmp_path / "styled", versions=3)
    found = read_labels(tmp_path / "styled")
    assert [*found] == [f"{NAME}-v{number}" for number in (1, 2, 3)]
    for name, label in found.items():
        assert (label.cause, label.of, label.tuning, label.style_seen) == ("healthy", NAME, True, True)
        assert "loss" in read_run(tmp_path / "styled" / name)
    assert len({label.restyled for label in found.values()}) > 1


def test_versions_are_the_same_each_time_they_are_drawn(tmp_path: Path) -> None:
    made = _made(tmp_path / "made")
    for place in ("a", "b"):
        restyle(made, tmp_path / place)
    assert read_labels(tmp_path / "a") == read_labels(tmp_path / "b")


def test_only_the_test_part_is_written_in_the_styles_that_are_held_back(tmp_path: Path) -> None:
    for task, tuning in (("tabular", True), ("images", False)):
        for seed in range(6):
            label = Label("healthy", steps=200, tuning=tuning)
            _made(tmp_path / "made", f"{task}-as_usual-1-{seed}", label)
    restyle(tmp_path / "made", tmp_path / "styled")
    found = [*read_labels(tmp_path / "styled").values()]
    assert all(label.style_seen for label in found if label.tuning)
    assert {label.style_seen for label in found if not label.tuning} == {True, False}
    named = [label for label in found if label.restyled in STYLES]
    assert all((STYLES[label.restyled].form in HELD) is not label.style_seen for label in named)


def test_a_run_whose_settings_decide_keeps_them_in_every_version(tmp_path: Path) -> None:
    kept = {}
    for decide in (True, False):
        made = tmp_path / f"made {decide}"
        for seed in range(8):
            _made(made, f"tabular-rate_low-1-{seed}", Label("lr_too_low", steps=200, settings_decide=decide))
        restyle(made, tmp_path / f"{decide}")
        versions = [tmp_path / f"{decide}" / name for name in read_labels(tmp_path / f"{decide}")]
        kept[decide] = [
            any(b"gamma" in file.read_bytes() for file in run.rglob("*") if file.is_file()) for run in versions
        ]
    assert all(kept[True])
    assert not all(kept[False])


def test_a_poorer_log_keeps_its_loss_and_lacks_something(tmp_path: Path) -> None:
    whole = content(recorded(_made(tmp_path) / NAME), NAME)
    label = Label("healthy", steps=200)
    drawn = [poorer(whole, label, Random(seed)) for seed in range(40)]
    assert all(max(one.story.curves[LOSS]) == 200 and len(one.story.curves[LOSS]) >= 40 for one in drawn)
    assert all(("eval", "loss") in one.story.curves for one in drawn)
    assert any(NORM not in one.story.curves for one in drawn)
    assert any(not one.told for one in drawn)
    assert {one.digits for one in drawn} >= {"", ".3g", ".4g"}
    brief = replace(label, cause="bad_batch")
    assert all(len(poorer(whole, brief, Random(seed)).story.curves[LOSS]) == 200 for seed in range(20))


def test_a_longer_interval_logs_the_mean_loss_and_the_rest_as_it_is_then(tmp_path: Path) -> None:
    whole = content(recorded(_made(tmp_path) / NAME), NAME).story
    half = with_interval(whole, 2)
    assert half.curves[LOSS][2] == pytest.approx((2.99 + 2.98) / 2)
    assert sorted(half.curves[NORM]) == list(range(2, 201, 2))
    assert half.curves["eval", "loss"] == whole.curves["eval", "loss"]


def test_passes_over_the_data_are_not_made_up(tmp_path: Path) -> None:
    whole = content(recorded(_made(tmp_path) / NAME), NAME)
    without = replace(whole, passes=False)
    assert suited(STYLES["imagenet_example"], without, Random(0)) is None
    told = suited(STYLES["csv_lightning"], without, Random(0))
    assert told is not None
    assert told.axis == "step"


def test_a_fault_shows_no_longer_where_what_decides_about_it_is_gone() -> None:
    before = {"train/loss", "eval/loss", "train/gradient_norm", "train/learning_rate", SETTINGS}
    assert not still_shown("vanishing_gradients", before, before - {"train/gradient_norm"})
    assert still_shown("overfitting", before, before - {"train/gradient_norm"})
    assert not still_shown("overfitting", before, before - {"eval/loss"})
    assert still_shown("lr_too_low", before, before - {"train/learning_rate"})
    assert not still_shown("lr_too_low", before, before - {"train/learning_rate", SETTINGS})
    assert not still_shown("overfitting", before, before - {SETTINGS}, also={SETTINGS})
    assert still_shown("vanishing_gradients", {"train/loss"}, {"train/loss"})


def _judged(name: str, of: str, state: State, *, cause: str = "healthy", seen: bool = True) -> Judged:
    label = Label(cause, steps=200, restyled="csv" if of else "", of=of, style_seen=seen)
    return Judged(name, label, [cause], 0.9, {"loss_spike": state}, "any", [], 1.0)


def test_three_logs_of_one_run_count_as_one_run() -> None:
    logs = [_judged("tabular-a-1-1", "", State.PRESENT), _judged("tabular-a-1-1-v1", "tabular-a-1-1", State.PRESENT)]
    logs += [_judged("tabular-a-1-1-v2", "tabular-a-1-1", State.ABSENT), _judged("gpt-a-1-1", "", State.ABSENT)]
    numbers, _ = fit(logs)
    assert numbers.healthy["loss_spike"] == pytest.approx((2 / 3, 2))
    assert numbers.provenance.startswith("counted on 4 logs of 2 runs")


def test_answers_weigh_in_the_calibration_error_as_much_as_they_count() -> None:
    right, wrong = _judged("a-a-1-1", "", State.ABSENT), replace(_judged("a-a-1-2", "", State.ABSENT), causes=["hang"])
    assert calibration_error([right, wrong]) == pytest.approx(0.4)
    assert calibration_error([right, wrong], weights=[1, 0]) == pytest.approx(0.1)
    assert math.isnan(calibration_error([]))


def test_runs_that_were_written_anew_stand_in_columns_of_their_own() -> None:
    trained, version = _judged("t-a-1-1", "", State.ABSENT), _judged("t-a-1-1-v1", "t-a-1-1", State.ABSENT)
    held = replace(version, label=replace(version.label, tuning=False, style_seen=False))
    parts = by_part([trained], {"styled": [version, held], "other tasks": [trained]})
    assert [*parts] == ["tuning", "tuning, styles the fit saw", "test, styles it never saw", "other tasks"]


def test_the_share_of_answers_that_stay_is_counted_by_what_was_changed() -> None:
    healthy, spike = Answer("healthy", frozenset()), Answer("bad_batch", frozenset({"loss_spike"}))
    ones = [Pair("r", "style", "csv", healthy, healthy), Pair("r", "style", "csv", healthy, spike)]
    ones.append(Pair("r", "four digits", "jsonl_plain", healthy, healthy))
    assert [(row["changed"], row["same first cause"]) for row in by_change(ones)] == [
        ("style", "0.500"),
        ("four digits", "1.000"),
    ]
    assert [row["findings that changed"] for row in worst_styles(ones)] == ["loss_spike (1)"]
    assert by_finding(ones)[0]["for example"] == "r, style, csv: healthy → bad_batch"
