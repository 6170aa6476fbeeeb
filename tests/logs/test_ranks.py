"""The files that ranks of one job wrote are one run, and which rank failed first or is slow is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mldebug_mcp import diagnose_run, diagnose_runs
from mldebug_mcp.cli import main
from mldebug_mcp.logs.files import jobs_in, runs_in

RANKS = 12
OOM = (
    'Traceback (most recent call last):\n  File "train.py", line 8, in <module>\n    loss = model(batch)\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
)
ECHO = (
    "[rank{rank}]:[E1123 09:10:{rank:02}.000000 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective "
    "operation timeout\n"
)
Name = Callable[[int], str]


def log(rank: int, *, steps: int = 60, forward: float = 0.2, said: str = "", clock: int = 8) -> str:
    lines = [
        f"2026-11-23 {clock:02}:{step // 60:02}:{step % 60:02},{rank:03} INFO step {step} | loss {1 + 2 / step:.4f} | "
        f"forward_time {forward + step % 3 / 1000:.4f} s\n"
        for step in range(1, steps + 1)
    ]
    return "".join(lines) + said


def write(folder: Path, name: Name, make: Callable[[int], str] = log, ranks: int = RANKS) -> Path:
    for rank in range(ranks):
        path = folder / name(rank)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(make(rank))
    return folder


SPELLINGS: list[Name] = [
    lambda rank: f"rank{rank}.log",
    lambda rank: f"log_rank_{rank:04}.txt",
    lambda rank: f"train.rank={rank}.log",
    lambda rank: f"worker-{rank}/stdout",
    lambda rank: f"none_ab12cd/attempt_0/{rank}/stderr.log",
    lambda rank: f"ranks/{rank}.log",
    lambda rank: f"node{rank // 4}/gpu{rank % 4}.log",
    lambda rank: f"logs/host-{rank // 4:02}_local_rank_{rank % 4}.out",
]


@pytest.mark.parametrize("name", SPELLINGS)
def test_files_of_ranks_are_one_run_however_they_are_called(tmp_path: Path, name: Name) -> None:
    answer = diagnose_runs(write(tmp_path, name))
    assert len(answer.rows) == 1
    row = answer.rows[0]
    assert row.ranks is not None
    assert (row.ranks.count, row.step, row.ranks.failed, row.ranks.straggler) == (RANKS, 60, 0, "")


def test_files_that_call_themselves_by_the_number_in_their_name_are_ranks_without_a_word_for_it(tmp_path: Path) -> None:
    write(tmp_path, lambda rank: f"out.{rank}.log", lambda rank: f"[rank{rank}] starting\n{log(rank)}")
    assert [row.ranks.count for row in diagnose_runs(tmp_path).rows if row.ranks is not None] == [RANKS]


def test_the_runs_of_a_sweep_are_no_ranks(tmp_path: Path) -> None:
    write(tmp_path / "plain", lambda run: f"run_{run}/train.log")
    write(tmp_path / "numbers", lambda run: f"{run}.log", lambda run: log(0).replace("loss 1.", f"loss {run}."))
    write(tmp_path / "on_gpus", lambda run: f"gpu{run}/train.log")
    for run in range(RANKS):
        (tmp_path / f"on_gpus/gpu{run}/config.json").write_text(json.dumps({"learning_rate": 0.1 / (run + 1)}))
    rows = diagnose_runs(tmp_path).rows
    assert len(rows) == 3 * RANKS
    assert all(row.ranks is None for row in rows)


def test_the_rank_that_failed_first_is_named_though_others_report_what_followed(tmp_path: Path) -> None:
    def make(rank: int) -> str:
        said = f"2026-11-23 09:00:00,000 ERROR failed\n{OOM}" if rank == 7 else ECHO.format(rank=rank)
        return log(rank, said=said)

    told = diagnose_runs(write(tmp_path, SPELLINGS[0], make)).rows[0].ranks
    assert told is not None
    assert (told.first_failed, told.failed) == ("7", RANKS)
    assert "CUDA out of memory" in " ".join(told.told)


def test_of_real_errors_the_earliest_is_the_first(tmp_path: Path) -> None:
    def make(rank: int) -> str:
        minute = 1 if rank == 5 else 2
        return log(rank, said=f"2026-11-23 09:{minute:02}:00,000 ERROR ValueError: bad batch\n" if rank > 3 else "")

    told = diagnose_runs(write(tmp_path, SPELLINGS[4], make)).rows[0].ranks
    assert told is not None
    assert (told.first_failed, told.failed) == ("5", RANKS - 4)


def test_an_error_that_training_went_on_after_is_no_failure(tmp_path: Path) -> None:
    made = write(tmp_path, SPELLINGS[0], lambda rank: f"ImportError: no flash attention, falling back\n{log(rank)}")
    told = diagnose_runs(made).rows[0].ranks
    assert told is not None
    assert (told.failed, told.first_failed) == (0, "")


def test_an_error_of_a_rank_that_logs_no_steps_is_found_in_a_long_log(tmp_path: Path) -> None:
    def make(rank: int) -> str:
        return (
            log(rank) if rank == 0 else f"{'waiting for data ' * 20_000}\n{OOM if rank == 3 else ''}{'x ' * 50_000}\n"
        )

    told = diagnose_runs(write(tmp_path, SPELLINGS[0], make)).rows[0].ranks
    assert told is not None
    assert told.first_failed == "3"


def test_the_slow_rank_and_the_one_that_is_behind_are_named_and_alike_ones_are_not(tmp_path: Path) -> None:
    slow = write(tmp_path / "slow", SPELLINGS[3], lambda rank: log(rank, forward=0.3 if rank == 9 else 0.2))
    late = write(tmp_path / "late", SPELLINGS[3], lambda rank: log(rank, steps=50 if rank == 4 else 60))
    told = [diagnose_runs(folder).rows[0].ranks for folder in (slow, late)]
    assert [one.straggler for one in told if one is not None] == ["9", "4"]
    assert told[0] is not None
    assert "rank 9 (stdout) is slow: forward_time 0.3" in " ".join(told[0].told)


def test_a_rank_without_a_file_is_missed(tmp_path: Path) -> None:
    write(tmp_path, SPELLINGS[0])
    (tmp_path / "rank6.log").unlink()
    told = diagnose_runs(tmp_path).rows[0].ranks
    assert told is not None
    assert "no file of rank 6, though higher ones are there" in told.told


def test_a_diagnosis_of_the_folder_tells_of_its_ranks_and_of_the_first_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = write(tmp_path, SPELLINGS[0], lambda rank: log(rank, steps=60 - 9 * (rank == 11), said=OOM * (rank == 11)))
    answer = diagnose_run(made)
    assert any("line 52 of rank11.log (error, after 51 records)" in line for line in answer.sheet.ran)
    assert any("the log ends in an error: line 55 of rank11.log" in line for line in answer.sheet.ran)
    assert any("12 ranks in 12 files are one run" in note for note in answer.notes)
    assert any("rank 11 (rank11.log) is the first of 1 to fail" in note for note in answer.notes)
    assert answer.hypotheses[0].cause == "out_of_memory"
    assert main(["runs", str(made), "--no-cache", "--processes", "1"]) == 0
    assert "rank 11 (rank11.log) is the first" in " ".join(capsys.readouterr().out.split())


ILLEGAL = (
    "[rank2]: Traceback (most recent call last):\n"
    + "".join(
        f'[rank2]:   File "/app/model_{depth}.py", line {depth}, in forward\n[rank2]:     x = f(x)\n' * 9
        for depth in range(9)
    )
    + "[rank2]: RuntimeError: CUDA error: an illegal memory access was encountered\n"
)


def crashed(folder: Path, *, error: str = ILLEGAL) -> Path:
    return write(
        folder,
        lambda rank: f"job/rank{rank}.log",
        lambda rank: log(rank, said=error if rank == 2 else ECHO.format(rank=rank)),
        ranks=4,
    )


def test_a_crashed_job_leads_with_the_first_error_of_any_rank_its_meaning_and_its_fix(tmp_path: Path) -> None:
    answer = diagnose_run(crashed(tmp_path) / "job")
    verdict = answer.verdict
    assert verdict.headline == (
        "It ended in an error of rank 2: RuntimeError: CUDA error: an illegal memory access was encountered "
        "[illegal_memory]"
    )
    assert "line 224 of rank2.log" in verdict.facts[0]
    assert "A kernel read outside its memory" in verdict.facts[1]
    assert "CUDA_LAUNCH_BLOCKING" in verdict.fix
    assert answer.next_step is not None
    assert answer.next_step.tool == "explain_error"
    assert str(answer.next_step.arguments["text"]).endswith("rank2.log")
    assert any("line 224 of rank2.log" in line for line in answer.sheet.ran)


def test_the_note_on_the_first_rank_to_fail_quotes_its_exception_and_not_a_frame(tmp_path: Path) -> None:
    notes = diagnose_run(crashed(tmp_path) / "job").notes
    assert (
        "rank 2 (rank2.log) is the first of 4 to fail: RuntimeError: CUDA error: an illegal memory access was "
        "encountered"
    ) in notes


@pytest.mark.parametrize(
    "error", [ILLEGAL, "[rank2]: Traceback (most recent call last):\n[rank2]: LookupError: shard\n"]
)
def test_a_job_that_died_of_an_error_is_to_be_looked_at(tmp_path: Path, error: str) -> None:
    answer = diagnose_runs(crashed(tmp_path, error=error))
    glance = answer.at_a_glance
    assert answer.rows[0].ending == "error"
    assert glance.kind == "fault"
    assert "1 ended in an error" in glance.headline
    assert "job ended in an error at step 60 of rank 2: " in glance.facts[0]
    assert "Nothing has to be done" not in glance.next
    assert glance.next.startswith("Look at job")


def test_an_unknown_error_of_one_process_leads_too(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(
        log(0, said="Traceback (most recent call last):\n  File \"a.py\", line 3\n    x\nKeyError: 'text'\n")
    )
    verdict = diagnose_run(path).verdict
    assert verdict.headline.startswith("It ended in an error: KeyError: 'text'")
    assert "There is no key `text`." in verdict.facts[1]


def straggler(folder: Path, column: str, slow: float, usual: float) -> Path:
    """Write the logs of four ranks, the second of which has another level in a column."""

    def make(rank: int) -> str:
        level = slow if rank == 1 else usual
        return "".join(
            f"step {step} loss {1 + 2 / step + rank / 1000:.4f} | step_time 0.50{step % 5} "
            f"| {column} {level * (1 + step % 7 / 100):.4f}\n"
            for step in range(1, 121)
        )

    return write(folder, SPELLINGS[0], make, ranks=4)


@pytest.mark.parametrize(
    ("column", "slow", "usual", "cause"),
    [
        ("data_time", 0.3, 0.02, "dataloader_bottleneck"),
        ("compute_time", 0.48, 0.3, "hardware_fault"),
        ("tok/s", 400.0, 1000.0, "hardware_fault"),
    ],
)
def test_a_rank_that_is_much_slower_is_a_finding_and_no_run_with_one_is_healthy(
    tmp_path: Path, column: str, slow: float, usual: float, cause: str
) -> None:
    answer = diagnose_run(straggler(tmp_path, column, slow, usual))
    (finding,) = [finding for finding in answer.findings if finding.symptom == "rank_differs"]
    assert finding.state == "present"
    assert finding.summary.startswith(f"{column} of rank 1 is ")
    assert finding.values["level"] == pytest.approx(1.03 * slow, rel=0.02)
    assert finding.values["others"] == pytest.approx(1.03 * usual, rel=0.02)
    assert answer.hypotheses[0].cause == cause
    assert f"{column} of rank 1" in answer.verdict.facts[0]


def test_a_wait_that_is_a_small_part_of_the_step_is_none_to_repair(tmp_path: Path) -> None:
    answer = diagnose_run(straggler(tmp_path, "data_time", 0.004, 0.001))
    assert {finding.symptom: finding.state for finding in answer.findings}["rank_differs"] == "absent"


def test_of_many_ranks_the_ends_of_their_files_show_the_slow_one(tmp_path: Path) -> None:
    made = write(tmp_path, SPELLINGS[0], lambda rank: log(rank, forward=0.9 if rank == 9 else 0.2))
    (finding,) = [finding for finding in diagnose_run(made).findings if finding.symptom == "rank_differs"]
    assert finding.state == "present"
    assert finding.summary.startswith("forward_time of rank 9 is 0.901 in the median")


def test_a_loss_that_one_rank_alone_loses_may_be_its_data_or_gradients_that_are_not_shared(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(
        "".join(
            f"[rank {rank}] step {step} | loss {'nan' if rank == 3 and step > 120 else 100 / (50 + step) + rank / 99}\n"
            for step in range(200)
            for rank in range(4)
        )
    )
    shares = {hypothesis.cause: hypothesis for hypothesis in diagnose_run(path).hypotheses}
    assert shares["hardware_fault"].probability < 0.6
    assert shares["bad_data_pocket"].probability > 0.1
    assert shares["unknown"].probability > 0.2
    assert any("may not be synchronised" in reason.fact for reason in shares["unknown"].reasons)


def test_attempts_of_a_job_are_runs_of_their_own(tmp_path: Path) -> None:
    for attempt in range(2):
        write(tmp_path, lambda rank, attempt=attempt: f"job/attempt_{attempt}/{rank}/stdout.log")  # type: ignore[misc]
    assert sorted(row.name for row in diagnose_runs(tmp_path).rows) == ["job/attempt_0", "job/attempt_1"]


def test_two_jobs_in_one_folder_are_told_apart(tmp_path: Path) -> None:
    for name in "ab":
        write(tmp_path, lambda rank, name=name: f"{name}_rank{rank}.log")  # type: ignore[misc]
    assert [len(place.ranks) for place in runs_in(tmp_path, [])] == [RANKS, RANKS]


def test_a_rank_whose_file_cannot_be_read_or_is_empty_is_no_error(tmp_path: Path) -> None:
    write(tmp_path, SPELLINGS[0])
    (tmp_path / "rank1.log").write_bytes(b"")
    (tmp_path / "rank2.log").write_bytes(bytes(range(256)) * 100)
    told = diagnose_runs(tmp_path).rows[0].ranks
    assert told is not None
    assert told.count == RANKS


def test_rotated_parts_are_of_their_rank_and_event_files_of_hosts_are_no_ranks(tmp_path: Path) -> None:
    write(tmp_path, SPELLINGS[0])
    write(tmp_path, lambda rank: f"rank{rank}.log.1")
    events = [tmp_path / f"events.out.tfevents.1700000000.node{rank}.7.0" for rank in range(3)]
    (job,) = jobs_in(tmp_path, [*sorted(tmp_path.iterdir()), *events])
    assert [len(files) for files in job.ranks.values()] == [2] * RANKS


def test_one_file_alone_is_no_job(tmp_path: Path) -> None:
    write(tmp_path, SPELLINGS[0], ranks=1)
    assert jobs_in(tmp_path, list(tmp_path.iterdir())) == []
