"""Runs that die or stop, each in processes of their own."""

import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.loops.language.catalog import Run
from benchmarks.loops.language.task import Record

SILENCE = 6.0


def wait(processes: list[subprocess.Popen[bytes]], logs: list[Path], end: signal.Signals) -> None:
    """Until the processes end; those whose logs have been silent for some seconds get the signal."""
    seen, since = -1, time.monotonic()
    while any(process.poll() is None for process in processes):
        size = sum(log.stat().st_size for log in logs)
        if size != seen:
            seen, since = size, time.monotonic()
        started = size > 300
        if time.monotonic() - since > (SILENCE if started else 90):
            for process in processes:
                process.send_signal(end)
            break
        time.sleep(0.1)
    for process in processes:
        process.wait()


def crash(key: str, cause: str, fact: str, kind: str, *, stop: int = 40, ranks: int = 1, also: tuple[str, ...] = (),
          end: signal.Signals = signal.SIGKILL) -> Run:  # fmt: skip
    """A run of crash.py: its console is the log."""

    def make(folder: Path) -> list[Record]:
        folder.mkdir(parents=True, exist_ok=True)
        names = ["train.log"] if ranks == 1 else [f"rank{rank}.log" for rank in range(ranks)]
        logs = [folder / name for name in names]
        with tempfile.TemporaryDirectory() as place:
            processes = []
            for rank, log in enumerate(logs):
                command = [sys.executable, "-m", "benchmarks.loops.language.crash", kind, "--stop", str(stop)]
                if ranks > 1:
                    command += ["--rank", str(rank), "--store", f"{place}/store"]
                with log.open("wb") as file:
                    processes.append(subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT))
            wait(processes, logs, end)
        return [{"lines": float(len(log.read_text(encoding="utf-8").splitlines()))} for log in logs]

    task = "data_parallel" if ranks > 1 else "char_lm_job"
    return Run(f"{task}/{key}", cause, task, "console", fact, make, also)


RUNS: list[Run] = [
    crash("oom/long", "out_of_memory", "the allocator's message after a document of 900,000 characters", "oom_long",
        stop=60),
    crash("oom/leak", "out_of_memory", "memory grows with each step until the allocator fails", "oom_leak",
        also=("memory_leak",)),
    crash("oom/vocab", "out_of_memory", "the allocator fails as the embedding grows", "oom_vocab", stop=80),
    crash("hang/lock", "hang", "the log stops at step 70 of 400 without a word", "hang_lock", stop=70),
    crash("hang/dump", "hang", "the main thread waits in Queue.get, the prefetch thread for its lock",
        "hang_lock_dump", stop=120, end=signal.SIGABRT),
    crash("hang/loader", "hang", "DataLoader timed out", "hang_loader", stop=50, also=("dataloader_bottleneck",)),
    crash("hang/rank", "hang", "rank 0 times out in a collective, rank 1 is silent", "rank_hang", stop=30, ranks=2,
        also=("hardware_fault",)),
    crash("rank/slow", "hardware_fault",
        "rank 1 computes ten times as long from step 20 on, rank 0 waits in all-reduce", "rank_slow", stop=20, ranks=2,
          also=("throughput_degradation",)),
    crash("rank/nan", "hardware_fault", "rank 1 alone has a broken local loss first", "rank_nan", stop=40, ranks=2),
    crash("vocab/1", "tokenizer_mismatch", "IndexError: index out of range in the embedding", "vocab"),
    crash("nan/1", "invalid_math", "FloatingPointError as the loss passes 3: log(0) times 0", "nan_abort"),
]  # fmt: skip
