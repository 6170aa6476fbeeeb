"""A run for each kind of answer, written into the working directory under a name that stays."""

from __future__ import annotations

import json
import math
import random
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
OUT_OF_MEMORY = """\
Traceback (most recent call last):
  File "train.py", line 81, in <module>
    loss.backward()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 79.15 GiB
"""


@dataclass(frozen=True)
class Asked:
    """What is asked: a path, and the run that it is compared with, if any."""

    path: str
    reference: str = ""


def _example(name: str) -> Asked:
    shutil.copytree(EXAMPLES / name, name)
    return Asked(name)


def _loss(step: int, seed: int = 1) -> float:
    return 0.5 + 2 * math.exp(-step / 60) + random.Random(f"{seed} {step}").gauss(0, 0.02)


def _jsonl(path: str, records: Iterable[Mapping[str, float]]) -> Asked:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    return Asked(path)


def _text(path: str, *lines: str) -> Asked:
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Asked(path)


def _steps(first: int, last: int, seed: int = 1) -> list[str]:
    return [f"step {step}/300 | loss {_loss(step, seed):.4f} | lr 3.0e-04" for step in range(first, last + 1)]


def _too_little_seen() -> Asked:
    return _jsonl("young.jsonl", ({"step": step, "loss": round(_loss(step), 4)} for step in range(1, 4)))


def _no_loss_found() -> Asked:
    return _jsonl("columns.jsonl", ({"step": step, "frobnication": round(_loss(step), 4)} for step in range(1, 201)))


def _refused() -> Asked:
    return _text("notes.txt", "the run was started on Monday", "nobody knows what became of it")


def _several_runs() -> Asked:
    for seed, name in enumerate(("first", "second")):
        steps = range(1, 301)
        _jsonl(f"runs/{name}/log.jsonl", ({"step": step, "loss": round(_loss(step, seed), 4)} for step in steps))
        Path(f"runs/{name}/config.json").write_text(json.dumps({"learning_rate": 3e-4, "seed": seed, "batch_size": 32}))
    return Asked("runs")


def _earlier_attempts() -> Asked:
    died = ["Starting training", *_steps(1, 90), *OUT_OF_MEMORY.splitlines()]
    return _text("restarted.log", *died, "Starting training", *_steps(1, 300, 2), "Training finished")


def _reference_compared() -> Asked:
    _example("healthy")
    return Asked(_example("loss_spike").path, "healthy")


def _ended_by_an_error() -> Asked:
    return _text("crashed.log", *_steps(1, 150), *OUT_OF_MEMORY.splitlines())


KINDS: Mapping[str, Callable[[], Asked]] = {
    "healthy": lambda: _example("healthy"),
    "faulty": lambda: _example("overfit"),
    "too_little_seen": _too_little_seen,
    "no_loss_found": _no_loss_found,
    "refused": _refused,
    "several_runs": _several_runs,
    "earlier_attempts": _earlier_attempts,
    "reference_compared": _reference_compared,
    "ended_by_an_error": _ended_by_an_error,
}
"""By the name of the kind what writes its run; the working directory is a new folder."""
