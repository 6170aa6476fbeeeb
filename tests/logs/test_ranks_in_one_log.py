"""Ranks that print into one log: one of them is the run, and the others are compared with it."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path

import numpy as np
import pytest
from tests.logs.reading import read

from mldebug_mcp import diagnose_run
from mldebug_mcp.judge.diagnosis import diagnose
from mldebug_mcp.logs import read_run
from mldebug_mcp.models import State


def rank_lines(odd: int, level: float) -> str:
    losses = np.random.default_rng(0).normal(2.1, 0.01, (400, 4))
    losses[:, odd] += level
    return "".join(
        f"[rank{rank}] step={41000 + step} local_loss={losses[step, rank]:.4f} data_ms={4 + rank / 10}\n"
        for step in range(400)
        for rank in range(4)
    )


def test_the_losses_of_ranks_that_print_into_one_log_are_compared(tmp_path: Path) -> None:
    run = read(tmp_path, rank_lines(odd=2, level=2.1))
    assert {f"loss/rank_{rank}" for rank in range(4)} <= run.series.keys()
    assert len(run["loss/rank_2"]) == 400
    diagnosis = diagnose(run)
    odd = next(one for one in diagnosis.present if one.summary.startswith("loss of rank 2 is"))
    assert "of the other 3 ranks" in odd.summary
    assert "losses, gradient norms, times and throughputs are compared" in " ".join(run.notes)


def test_ranks_that_print_the_same_are_one(tmp_path: Path) -> None:
    text = "".join(f"[rank{rank}] step={step} loss=2.{step}\n" for step in range(1, 9) for rank in range(3))
    assert [name for name in read(tmp_path, text).series if "rank" in name] == []


RANKS = range(4)
LISTS = {
    "blanks": ("step {step} loss {loss} local gnorm [{norms}] fwdbwd ms [{times}]\n", " ", "fwdbwd ms"),
    "commas": ("step {step} loss {loss} rank_loss=[{norms}] step_ms=[{times}]\n", ", ", "step_ms"),
    "round": ("step {step} loss {loss} | per-rank ms ({times})\n", ", ", "per-rank ms"),
    "slashes": ("step {step} | loss {loss} | t_compute {times} | loss/rank {norms}\n", "/", "t_compute"),
    "without": ("step {step} loss {loss} t_bwd per rank: {times}\n", " ", "t_bwd per rank"),
    "json": ('{{"step": {step}, "loss": {loss}, "gpu_fwd_ms": [{times}]}}\n', ", ", "gpu_fwd_ms"),
}


def listed(style: str, slow: Container[int], since: int = 60) -> str:
    """Return a log with a list for each step: some ranks take twenty times as long from one on, others now and then."""
    form, between, _ = LISTS[style]
    noise = np.random.default_rng(3).uniform(0.5, 0.7, (120, 2, 4)).round(2)
    noise[::9, 1, 1] += 9
    for rank in filter(slow.__contains__, RANKS):
        noise[since:, 1, rank] *= 20
    lines = (
        form.format(
            step=step, loss=round(2 - step / 100, 3),
            norms=between.join(map(str, norms.tolist())), times=between.join(map(str, times.round(2).tolist())),
        )
        for step, (norms, times) in enumerate(noise, start=1)
    )  # fmt: skip
    return "".join(lines)


@pytest.mark.parametrize("style", LISTS)
@pytest.mark.parametrize(("slow", "cause"), [((2,), "hardware_fault"), ((), "healthy"), ((0, 1, 2, 3), None)])
def test_a_list_has_a_value_for_each_rank_in_whatever_brackets(
    style: str, slow: tuple[int, ...], cause: str | None, tmp_path: Path
) -> None:
    log = tmp_path / ("train.jsonl" if style == "json" else "train.log")
    log.write_text(listed(style, slow))
    run = read_run(log)
    name = LISTS[style][2]
    assert all(len(run[f"{name}/rank{rank}"]) == 120 for rank in RANKS)
    assert len(run["loss"]) == 120
    answer = diagnose_run(log)
    assert cause is None or answer.hypotheses[0].cause == cause
    seen = {finding.symptom for finding in answer.findings if finding.state is State.PRESENT}
    assert ("rank_differs" in seen) is (slow == (2,))


def test_values_rank_by_rank_are_those_of_a_list(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("".join(f"step {at} loss 2.0 ms r0 0.5 r1 0.6 r2 {at}\n" for at in range(1, 9)))
    run = read_run(tmp_path / "train.log")
    assert run["ms_by_rank/rank2"].value.tolist() == list(range(1, 9))


def test_a_list_of_no_ranks_keeps_each_value_by_its_number(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("".join(f"step {at} loss 2.0 heads [0.5 {at}]\n" for at in range(1, 9)))
    run = read_run(tmp_path / "train.log")
    assert run["heads/1"].value.tolist() == list(range(1, 9))
    assert run["mean heads"].value[1] == 1.25


def test_a_list_behind_a_counter_is_of_its_record_and_no_history(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("".join(f"step {at} loss {3 - at / 9} gnorm: [0.5, {at}]\n" for at in range(9)))
    run = read_run(tmp_path / "train.log")
    assert len(run["loss"]) == 9
    assert run["gnorm/1"].value.tolist() == list(range(9))
