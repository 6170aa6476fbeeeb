from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from mldebug_mcp.judge import diagnose_run
from mldebug_mcp.models import Comparison, Diagnosis


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


def write_losses(folder: Path, end: float, seed: int = 0, **config: float) -> Path:
    """Write a run of 400 steps whose loss falls from 3 to `end`."""
    noise = np.random.default_rng(seed).normal(0, 0.005, 400)
    folder.mkdir()
    losses = [end + (3 - end) * np.exp(-step / 40) + abs(noise[step]) for step in range(400)]
    rows = [{"step": step, "loss": loss, "grad_norm": 1 + noise[-step]} for step, loss in enumerate(losses)]
    (folder / "log.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_the_one_setting_that_differs_is_the_likeliest_cause_of_a_result_that_is_worse(tmp_path: Path) -> None:
    bad = write_losses(tmp_path / "bad", 1.6, per_device_train_batch_size=1, weight_decay=0.1)
    good = write_losses(tmp_path / "good", 1.2, seed=1, per_device_train_batch_size=64, weight_decay=0.1)
    diagnosis = diagnose_run(bad, reference=good)
    assert diagnosis.comparison is not None
    (parting,) = diagnosis.comparison.partings
    assert (parting.worse, round(parting.run_at_end, 1), round(parting.reference_at_end, 1)) == (True, 1.6, 1.2)
    assert diagnosis.hypotheses[0].cause == "batch_too_small"
    healthy = next(one for one in diagnosis.hypotheses if one.cause == "healthy")
    assert any("loss ends at 1.6" in reason for reason in healthy.against)


@pytest.mark.parametrize(("end", "reference"), [(0.02, 0.01), (1.0, 1.2)])
def test_a_result_that_is_better_or_worse_by_next_to_nothing_leaves_a_run_healthy(
    end: float, reference: float, tmp_path: Path
) -> None:
    run = write_losses(tmp_path / "run", end, learning_rate=2e-4)
    diagnosis = diagnose_run(run, reference=write_losses(tmp_path / "good", reference, seed=1, learning_rate=1e-4))
    assert diagnosis.comparison is not None
    assert not any(one.worse for one in diagnosis.comparison.partings)
    assert diagnosis.hypotheses[0].cause == "healthy"


def test_runs_without_common_steps_are_not_compared(tmp_path: Path) -> None:
    late = tmp_path / "late.csv"
    late.write_text("step,loss\n" + "".join(f"{step},{1.0}\n" for step in range(1000, 1100)))
    comparison = compared(late, write_run(tmp_path / "early"))
    assert comparison.partings == []
    assert comparison.alike == []


def test_runs_whose_records_lie_far_apart_are_not_said_to_part(tmp_path: Path) -> None:
    few = tmp_path / "few.csv"
    few.write_text("step,loss\n" + "".join(f"{step},{1.0}\n" for step in (-4000, 1, 4000)))
    many = tmp_path / "many.csv"
    many.write_text("step,loss\n" + "".join(f"{step},{1.0}\n" for step in range(200, 260)))
    assert compared(few, many).partings == []


def test_rates_that_only_the_logs_tell_are_compared_as_settings(tmp_path: Path) -> None:
    def log(name: str, rate: float) -> Path:
        path = tmp_path / name
        rows = [{"step": step, "loss": 3 - step / 200, "learning_rate": rate} for step in range(1, 60)]
        path.write_text("\n".join(map(json.dumps, rows)))
        return path

    comparison = compared(log("bad.jsonl", 0.1), log("good.jsonl", 0.001))
    (one,) = comparison.settings
    assert (one.setting, one.run, one.reference) == ("learning_rate", 0.1, 0.001)
    assert one.factor == pytest.approx(100)


def test_settings_that_are_known_to_matter_come_first_the_largest_factor_before_others(tmp_path: Path) -> None:
    bad = write_run(tmp_path / "bad", learning_rate=0.1, weight_decay=0.02, zoom=1, seed=2)
    good = write_run(tmp_path / "good", learning_rate=0.001, weight_decay=0.01, zoom=1000, seed=3)
    assert [one.setting for one in compared(bad, good).settings] == ["learning_rate", "weight_decay", "zoom"]


def test_a_few_evaluations_that_end_worse_are_no_likeness(tmp_path: Path) -> None:
    def log(name: str, losses: list[float]) -> Path:
        path = tmp_path / name
        path.write_text("\n".join(json.dumps({"step": 100 * at, "eval_loss": one}) for at, one in enumerate(losses)))
        return path

    comparison = compared(log("bad.jsonl", [2.3, 2.2, 2.2]), log("good.jsonl", [2.3, 1.1, 0.6]))
    (one,) = comparison.partings
    assert (one.metric, one.ends) == ("eval_loss", "worse")
    assert comparison.alike == []


def test_timing_and_memory_are_no_results(tmp_path: Path) -> None:
    def log(name: str, seconds: float) -> Path:
        path = tmp_path / name
        rows = [
            {"step": step, "loss": 3 - step / 200, "step_time": seconds, "gpu_memory_gb": seconds}
            | {"eta": seconds * (100 - step)}
            for step in range(1, 100)
        ]
        path.write_text("\n".join(map(json.dumps, rows)))
        return path

    comparison = compared(log("slow.jsonl", 2.0), log("fast.jsonl", 0.5))
    assert comparison.partings == []
    assert comparison.alike == ["loss"]


def write_jump(folder: Path, noise_seed: int, *, at: int | None = 210, **config: float) -> Path:
    """Write a run of 400 steps whose loss jumps for one record at a step, if one is given."""
    noise = np.random.default_rng(noise_seed).normal(0, 0.02, 400)
    folder.mkdir()
    losses = [3 + 2 * np.exp(-step / 60) + noise[step] + 4 * (step == at) for step in range(400)]
    rows = [{"step": step, "loss": float(loss)} for step, loss in enumerate(losses)]
    (folder / "log.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "config.json").write_text(json.dumps({"learning_rate": 3e-4, **config}))
    return folder


def share(answer: Diagnosis, cause: str) -> float:
    return next(hypothesis.probability for hypothesis in answer.hypotheses if hypothesis.cause == cause)


def test_a_jump_at_the_same_step_of_two_runs_confirms_a_bad_batch(tmp_path: Path) -> None:
    run, other = write_jump(tmp_path / "run", 0), write_jump(tmp_path / "other", 1)
    alone, answer = diagnose_run(run), diagnose_run(run, reference=other)
    assert answer.comparison is not None
    (jump,) = answer.comparison.jumps
    assert (jump.step, jump.both) == (210, True)
    assert share(answer, "bad_batch") > share(alone, "bad_batch")
    assert all("OTHER_RUN" not in (step.call or "") for step in answer.next_steps[:1])


@pytest.mark.parametrize(("seed", "lowers"), [(None, False), (7, True)])
def test_a_reference_that_passes_a_jump_is_not_alike_and_refutes_a_bad_batch_of_the_same_rows(
    tmp_path: Path, seed: int | None, *, lowers: bool
) -> None:
    config = {} if seed is None else {"seed": seed}
    run, other = write_jump(tmp_path / "run", 0, **config), write_jump(tmp_path / "other", 1, at=None, **config)
    alone, answer = diagnose_run(run), diagnose_run(run, reference=other)
    assert answer.comparison is not None
    assert [(jump.step, jump.both) for jump in answer.comparison.jumps] == [(210, False)]
    assert answer.comparison.jumps[0].reference == pytest.approx(3 + 2 * np.exp(-210 / 60), abs=0.1)
    assert share(answer, "healthy") == pytest.approx(share(alone, "healthy"), abs=0.1 if lowers else 1e-6)
    assert (share(answer, "bad_batch") < share(alone, "bad_batch")) is lowers
    checks = [step for hypothesis in answer.hypotheses for step in hypothesis.next_steps if step.id == "bad_batch.1"]
    assert "passes step 210 without a jump" in checks[0].answer


def test_a_reference_that_is_the_same_run_says_nothing(tmp_path: Path) -> None:
    run, copy = write_jump(tmp_path / "run", 0), write_jump(tmp_path / "copy", 0)
    alone, answer = diagnose_run(run), diagnose_run(run, reference=copy)
    assert answer.comparison is not None
    assert answer.comparison.same_losses
    assert [one.probability for one in answer.hypotheses] == [one.probability for one in alone.hypotheses]


def test_a_rate_in_single_precision_is_no_other_rate(tmp_path: Path) -> None:
    for name, kind in (("a", np.float64), ("b", np.float32)):
        rows = [{"step": step, "loss": 3 - step / 200, "learning_rate": float(kind(0.0029))} for step in range(1, 60)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert compared(tmp_path / "a.jsonl", tmp_path / "b.jsonl").settings == []


def test_an_answer_warns_that_a_fault_leads_in_the_run_that_it_is_compared_with(tmp_path: Path) -> None:
    def write(name: str, losses: Sequence[float]) -> Path:
        log = tmp_path / name
        log.write_text("".join(json.dumps({"step": step, "loss": loss}) + "\n" for step, loss in enumerate(losses)))
        return log

    noise = np.random.default_rng(0).normal(0, 0.02, 300)
    falls = [0.5 + 2.5 * 0.98**step + noise[step] for step in range(300)]
    good, bad = write("good.jsonl", falls), write("bad.jsonl", [*falls[:60], *[math.nan] * 240])
    run = write("run.jsonl", [loss + 0.005 for loss in falls])
    assert any("the reference run may not be a good one" in fact for fact in diagnose_run(run, None, bad).verdict.facts)
    assert not any("may not be a good one" in fact for fact in diagnose_run(run, None, good).verdict.facts)
