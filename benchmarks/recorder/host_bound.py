"""What a recorded step costs a loop that is bound by Python, in microseconds, compared with another build of ours.

Each build has a process of its own, and they take turns in one run, block by block. In each process a bare step and a
recorded one are made in turn, in an order that chance decides. Python's own work fills the time before each step, so
that nothing of torch or of the recorder is in the caches of the core. What is timed is the step alone.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from copy import copy
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks.faults.figures import Rows

STEPS = (10, 20)
"""Milliseconds of a step."""
LOOPS = ("plain loop", "watched model", "loader, no clipping", "Trainer's callback")
BLOCKS = 10
"""Blocks of each build, after one that is not counted."""
PAIRS = 60
"""Pairs of steps of a block."""
NUMBERS = 20_000
"""Numbers that Python's own work goes through: more than the caches of a core hold."""


class Work:
    """Python's own work: it goes through numbers that lie far apart."""

    def __init__(self) -> None:
        self._numbers = {str(number): float(number) for number in range(NUMBERS)}
        self._names = list(self._numbers)
        random.Random(0).shuffle(self._names)  # noqa: S311 - no secret
        self.count = 0

    def do(self) -> None:
        """Go through as many numbers as a step has the time for."""
        for at in range(self.count):
            name = self._names[at % NUMBERS]
            self._numbers[name] = self._numbers[name] * 0.5 + 1

    def fill(self, seconds: float) -> None:
        """Let it take so long."""
        self.count = NUMBERS
        began = time.thread_time()
        self.do()
        self.count = max(0, round(NUMBERS * seconds / (time.thread_time() - began)))


HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")
"""Where torch keeps the hooks of a model and of an optimizer."""


class Loop:
    """A loop whose steps are recorded or bare: with one model, as two of them differ by where they lie in memory.

    Importing torch and the build under test is left to the process that measures.
    """

    def __init__(self, kind: str, folder: str) -> None:
        import torch
        from torch import nn

        from mldebug_mcp import recorder

        torch.manual_seed(0)
        hidden = [layer for _ in range(8) for layer in (nn.Linear(32, 32), nn.ReLU())]
        self._kind, self._torch = kind, torch
        self._model = nn.Sequential(*hidden, nn.Linear(32, 10))
        self._optimizer = torch.optim.AdamW(self._model.parameters(), 1e-4)
        data = torch.utils.data.TensorDataset(torch.randn(512, 32), torch.randint(0, 10, (512,)))
        self._loader, bare = (torch.utils.data.DataLoader(data, 16, shuffle=True) for _ in range(2))
        self._state = SimpleNamespace(global_step=0, epoch=0.0)
        self._made = 0
        self.recorder: Any = None
        self._callback: Any = None
        self._clip_grad = torch.nn.utils.clip_grad
        self._switches = {False: self._hooks()}
        if kind == "Trainer's callback":
            self._callback = recorder.trainer_callback(folder)
            objects = {"model": self._model, "optimizer": self._optimizer, "train_dataloader": self._loader}
            self._callback.on_train_begin(Arguments(), self._state, None, **objects)
            self.recorder = self._callback.recorder
        else:
            self.recorder = recorder.Recorder(folder)
            if kind != "plain loop":
                self.recorder.watch(self._model, self._optimizer)
        self._switches[True] = self._hooks()
        self._batches = {False: self._endless(bare), True: self._endless(self._loader)}

    def switch(self, *, records: bool) -> None:
        """Put the hooks in their places, or take them away."""
        for owner, name, hooks in self._switches[records]:
            setattr(owner, name, hooks)

    def step(self, *, records: bool) -> None:
        """Make a step."""
        batch = next(self._batches[records])
        if self._kind == "Trainer's callback":
            if records:
                self._callback.on_step_begin(None, self._state, None, model=self._model)
            self._train(batch, clips=True)
            self._state.global_step += 1
            self._state.epoch += 1 / 32
            if records:
                self._callback.on_step_end(None, self._state, None, model=self._model)
        elif self._kind == "loader, no clipping":
            loss = self._train(batch, clips=False)
            if records:
                self.recorder.log(loss=loss)
        elif not records:
            self._logged(batch)
        else:
            with self.recorder.step(batch if self._kind == "watched model" else None):
                self.recorder.log(loss=self._logged(batch))

    def settle(self, seconds: float, *, spends: bool) -> None:
        """Let the recorder count a step as so long, without what is done between two steps.

        Args:
            seconds: Of a step.
            spends: Whether what may be spent at once at the start of a run is spent.
        """
        self._made += 1
        if hasattr(self.recorder, "seconds"):
            self.recorder.seconds = self._made * seconds
        for watched in self.recorder._watched:
            for name in ("_normed", "_spread_at"):  # of older builds
                if hasattr(watched, name):
                    setattr(watched, name, max(getattr(watched, name), time.perf_counter() - seconds))
            if spends:
                watched._norms._left = watched._spreads._left = 0.0

    def _hooks(self) -> list[tuple[Any, str, Any]]:
        """Return the hooks that are there now: what holds them, under which name, and they themselves."""
        held: list[tuple[Any, str]] = [
            (owner, name) for owner in (self._model, self._optimizer) for name in HOOKS if hasattr(owner, name)
        ]
        held.append((self._clip_grad, "_clip_grads_with_norm_"))
        return [(owner, name, copy(getattr(owner, name))) for owner, name in held]

    def _endless(self, loader: Any) -> Iterator[Any]:  # noqa: ANN401 - a DataLoader
        is_given = loader is self._loader and self._kind == "loader, no clipping"
        while True:
            yield from self.recorder.steps(loader) if is_given else loader

    def _logged(self, batch: Any) -> Any:  # noqa: ANN401 - a tensor or a number
        loss = self._train(batch, clips=True)
        return loss.item() if self._kind == "plain loop" else loss

    def _train(self, batch: Any, *, clips: bool) -> Any:  # noqa: ANN401 - a tensor
        nn = self._torch.nn
        loss = nn.functional.cross_entropy(self._model(batch[0]), batch[1])
        self._torch.autograd.backward(loss)
        if clips:
            nn.utils.clip_grad_norm_(self._model.parameters(), 1.0)
        self._optimizer.step()
        self._optimizer.zero_grad()
        return loss.detach()


class Arguments:
    """Stands for TrainingArguments."""

    ignore_data_skip, gradient_accumulation_steps = False, 1

    def to_sanitized_dict(self) -> dict[str, object]:
        """Return nothing."""
        return {}


def measure(kind: str, milliseconds: int) -> None:
    """Answer each line of stdin with the times of a block of pairs, of this thread and of those beside it."""
    import torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        work, loop = Work(), Loop(kind, folder)
        loop.switch(records=False)
        began = time.thread_time()
        for _ in range(50):
            loop.step(records=False)
        work.fill(milliseconds / 1000 - (time.thread_time() - began) / 50)
        order = random.Random(0)  # noqa: S311 - no secret
        for block, _ in enumerate(sys.stdin):
            pairs: list[tuple[float, float]] = []
            beside = time.process_time() - time.thread_time()
            for number in range(PAIRS):
                times = {}
                for records in order.sample([False, True], 2):
                    loop.switch(records=records)
                    if records:
                        loop.settle(milliseconds / 1000, spends=not number and not block)
                    work.do()
                    began = time.thread_time()
                    loop.step(records=records)
                    times[records] = time.thread_time() - began
                pairs.append((times[False], times[True]))
            beside = time.process_time() - time.thread_time() - beside
            sys.stdout.write(json.dumps({"pairs": pairs, "beside": beside}) + "\n")
            sys.stdout.flush()
        loop.recorder.close()


class Build:
    """A process that measures one build.

    Args:
        source: Its folder `src`.
        kind: The loop.
        milliseconds: Of a step.
    """

    def __init__(self, source: Path, kind: str, milliseconds: int) -> None:
        root = Path(__file__).parent.parent.parent
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.recorder.host_bound", kind, str(milliseconds)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{root}", "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        self._pairs: list[tuple[float, float]] = []
        self._beside = 0.0
        self.block()
        self._pairs, self._beside = [], 0.0

    def block(self) -> None:
        """Measure a block."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        self._pairs += answer["pairs"]
        self._beside += answer["beside"]

    def close(self) -> dict[str, float]:
        """End the process, and return what a step took more, in microseconds."""
        self._process.communicate()
        added = [1e6 * (recorded - bare) for bare, recorded in self._pairs]
        bare, recorded = (min(pair[at] for pair in self._pairs) for at in (0, 1))
        return {
            "median": statistics.median(added),
            "mean": statistics.mean(added),
            "of the fastest": 1e6 * (recorded - bare),
            "beside the loop": 1e6 * self._beside / len(self._pairs),
        }


def host_bound(against: Path) -> Rows:
    """Return a row for each loop and length of a step: what this build adds, the other one, and their ratio."""
    builds = {"here": Path(__file__).parent.parent.parent / "src", "there": against}
    found: list[dict[str, str]] = []
    for kind in LOOPS if find_spec("transformers") else LOOPS[:-1]:
        for milliseconds in STEPS:
            running = {name: Build(source, kind, milliseconds) for name, source in builds.items()}
            for number in range(BLOCKS):
                for name in sorted(running, reverse=number % 2 == 0):
                    running[name].block()
            took = {name: build.close() for name, build in running.items()}
            found.append(
                {"loop": kind, "step": f"{milliseconds} ms", **_row(took["here"], took["there"], milliseconds)}
            )
    return found


def _row(here: dict[str, float], there: dict[str, float], milliseconds: int) -> dict[str, str]:
    """Return both builds side by side; "there / here" is how often less this one costs, its thread included."""
    whole = [took["median"] + took["beside the loop"] for took in (there, here)]
    return {
        **{name: f"{there[name]:.0f} to {here[name]:.0f} µs" for name in here},
        "there / here": f"{whole[0] / whole[1]:.1f}",
        "added": f"{whole[0] / milliseconds / 10:+.2f}% to {whole[1] / milliseconds / 10:+.2f}%",
    }


if __name__ == "__main__":
    measure(sys.argv[1], int(sys.argv[2]))
