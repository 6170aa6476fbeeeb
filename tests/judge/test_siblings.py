"""The other runs of a sweep tell what is normal for its recipe."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mldebug_mcp import diagnose_run
from mldebug_mcp.core.text import percent
from mldebug_mcp.models import Diagnosis


def _sweep(folder: Path, ends: dict[str, float], rates: dict[str, float]) -> None:
    """Write runs whose losses fall from 3.0 to an end of their own; the names are those of the runs."""
    for number, (name, end) in enumerate(ends.items()):
        noise = np.random.default_rng(number).normal(0, 0.01, 200)
        losses = end + (3.0 - end) * np.exp(-np.arange(200) / 30) + noise
        place = folder / name
        place.mkdir(parents=True)
        rows = [{"step": at, "loss": round(float(loss), 4)} for at, loss in enumerate(losses)]
        (place / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        settings = {"learning_rate": rates[name], "weight_decay": 0.1, "seed": number, "warmup_steps": 9, "layers": 4,
                    "hidden": 64, "max_steps": 200}  # fmt: skip
        (place / "config.json").write_text(json.dumps(settings))


def _probability(told: Diagnosis, cause: str) -> float:
    return next(one.probability for one in told.hypotheses if one.cause == cause)


ENDS = {"a": 1.50, "b": 1.52, "c": 1.48, "d": 1.51, "odd": 2.6}
RATES = {"a": 1e-3, "b": 1e-3, "c": 2e-3, "d": 5e-4, "odd": 1e-6}


def test_a_run_that_ends_far_above_its_siblings_is_not_called_healthy_and_its_own_setting_is_named(
    tmp_path: Path,
) -> None:
    _sweep(tmp_path, ENDS, RATES)
    alone, beside = diagnose_run(tmp_path / "odd"), diagnose_run(tmp_path, run="odd")
    assert _probability(beside, "healthy") < _probability(alone, "healthy")
    assert _probability(beside, "lr_too_low") > 2 * _probability(alone, "lr_too_low")
    slow = next(one for one in beside.hypotheses if one.cause == "lr_too_low")
    assert any("learning_rate is 1e-06, in 4 siblings 0.0005 to 0.002" in said for said in slow.because)
    sound = next(one for one in beside.hypotheses if one.cause == "healthy")
    assert any("in 4 siblings at 1.5" in said for said in sound.against)


def test_an_answer_says_what_the_siblings_of_a_run_changed_and_what_leads_by_its_own_log(tmp_path: Path) -> None:
    _sweep(tmp_path, ENDS, RATES)
    alone, beside = diagnose_run(tmp_path / "odd"), diagnose_run(tmp_path, run="odd")
    share = f"by its own log alone {alone.leader} leads with {percent(alone.hypotheses[0].probability)}"
    assert any("in 4 siblings at 1.5" in fact and share in fact for fact in beside.verdict.facts)
    assert not any("siblings" in fact for fact in diagnose_run(tmp_path, run="b").verdict.facts)


def test_a_setting_that_two_runs_share_which_end_far_above_the_others_is_named(tmp_path: Path) -> None:
    _sweep(tmp_path, {**ENDS, "odd2": 2.62}, {**RATES, "odd2": 1e-6})
    slow = next(one for one in diagnose_run(tmp_path, run="odd").hypotheses if one.cause == "lr_too_low")
    assert any("learning_rate is 1e-06, in 4 better siblings 0.0005 to 0.002" in said for said in slow.because)


def test_a_run_that_ends_as_its_siblings_do_is_judged_as_if_it_were_alone(tmp_path: Path) -> None:
    _sweep(tmp_path, ENDS, RATES)
    alone, beside = diagnose_run(tmp_path / "b"), diagnose_run(tmp_path, run="b")
    assert _probability(beside, "healthy") == pytest.approx(_probability(alone, "healthy"))
    assert any("4 sibling runs" in line and "in 4 of them 1.5" in line for line in beside.sheet.ran)


def test_two_siblings_do_not_say_what_is_normal(tmp_path: Path) -> None:
    few = ("a", "b", "odd")
    _sweep(tmp_path, {name: ENDS[name] for name in few}, RATES)
    alone, beside = diagnose_run(tmp_path / "odd"), diagnose_run(tmp_path, run="odd")
    assert _probability(beside, "healthy") == pytest.approx(_probability(alone, "healthy"))


def test_siblings_that_ended_early_are_not_compared_with(tmp_path: Path) -> None:
    _sweep(tmp_path, ENDS, RATES)
    for name in "abcd":
        log = tmp_path / name / "metrics.jsonl"
        log.write_text("".join(f"{line}\n" for line in log.read_text().splitlines()[:120]))
    alone, beside = diagnose_run(tmp_path / "odd"), diagnose_run(tmp_path, run="odd")
    assert _probability(beside, "healthy") == pytest.approx(_probability(alone, "healthy"))


def test_siblings_of_unknown_settings_are_named_without_empty_brackets(tmp_path: Path) -> None:
    for name in ("run1", "run2"):
        rows = [{"step": step, "loss": 3 - step / 100 + (name == "run2") * step % 7 / 50} for step in range(100)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ran = diagnose_run(tmp_path).sheet.ran
    assert any(line.startswith("1 sibling run: run") and "(" not in line for line in ran), ran


def test_a_note_names_the_log_at_the_top_of_a_folder_that_is_read(tmp_path: Path) -> None:
    for folder, losses in ((tmp_path, 100), (tmp_path / "below", 60)):
        folder.mkdir(exist_ok=True)
        rows = [{"step": step, "loss": 3 - step / 100 + losses / 100} for step in range(losses)]
        (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (note,) = [note for note in diagnose_run(tmp_path).notes if "a run of its own" in note]
    assert "a run of its own, train.jsonl, which is read" in note
