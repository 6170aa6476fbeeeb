from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mldebug_mcp.diagnose import diagnose_run
from mldebug_mcp.models import Comparison


def write_run(folder: Path, *, parts_at: int | None = None, seed: int = 0, **config: float) -> Path:
    """Write a run of 400 steps that leaves the common curve at a step, if one is given."""
    noise = np.random.default_rng(seed).normal(0, 0.02, 400)
    folder.mkdir()
    lines = []
    for step in range(400):
        loss = 1 + 2 * np.exp(-step / 60) + noise[step]
        if parts_at is not None and step >= parts_at:
            loss += min(1.0, (step - parts_at) / 20)
        lines.append(json.dumps({"step": step, "loss": loss, "grad_norm": 1 + noise[-step]}))
    (folder / "log.jsonl").write_text("\n".join(lines))
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def compared(run: Path, reference: Path) -> Comparison:
    comparison = diagnose_run(run, reference=reference).comparison
    assert comparison is not None
    return comparison


@pytest.mark.parametrize("step", [60, 200, 333])
def test_the_step_at_which_two_runs_part_is_found_within_two_percent(tmp_path: Path, step: int) -> None:
    bad, good = write_run(tmp_path / "bad", parts_at=step), write_run(tmp_path / "good", seed=1)
    comparison = compared(bad, good)
    assert comparison.partings[0].metric == "loss"
    assert comparison.partings[0].step == pytest.approx(step, abs=8)
    assert comparison.partings[0].run > comparison.partings[0].reference
    assert comparison.alike == ["grad_norm"]


@pytest.mark.parametrize("seed", range(1, 9))
def test_two_seeds_of_one_recipe_do_not_part(tmp_path: Path, seed: int) -> None:
    assert compared(write_run(tmp_path / "a"), write_run(tmp_path / "b", seed=seed)).partings == []


def test_a_setting_that_differs_speaks_for_the_fault_it_may_be(tmp_path: Path) -> None:
    bad = write_run(tmp_path / "bad", parts_at=150, learning_rate=6e-4, weight_decay=0.1, seed=2)
    good = write_run(tmp_path / "good", learning_rate=3e-5, weight_decay=0.1)
    alone = {one.cause: one.probability for one in diagnose_run(bad).hypotheses}
    beside = {one.cause: one for one in diagnose_run(bad, reference=good).hypotheses}
    assert [one.setting for one in compared(bad, good).settings] == ["learning_rate"]
    assert beside["lr_too_high"].probability > alone["lr_too_high"]
    assert any("learning_rate is" in reason for reason in beside["lr_too_high"].because)


def test_runs_without_common_steps_are_not_compared(tmp_path: Path) -> None:
    late = tmp_path / "late.csv"
    late.write_text("step,loss\n" + "".join(f"{step},{1.0}\n" for step in range(1000, 1100)))
    comparison = compared(late, write_run(tmp_path / "early"))
    assert comparison.partings == []
    assert comparison.alike == []
