"""One run: what is trained, with which fault, and how it is logged."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.loops.vision.config import Config
from benchmarks.loops.vision.gan import STEPS, Gan
from benchmarks.loops.vision.gridworld import Gridworld
from benchmarks.loops.vision.loggers import STYLES
from benchmarks.loops.vision.tasks import TASKS
from benchmarks.loops.vision.trainer import Trainer

TRACEBACK = (
    'Traceback (most recent call last):\n  File "train.py", line 214, in <module>\n    main(args)\nRuntimeError: '
)


@dataclass(frozen=True)
class Run:
    """A labelled run.

    `columns` are logged per step; `settings` is the form the settings are left in, or none ("").
    """

    cause: str
    config: Config
    style: str
    fact: str
    settings: str = ""
    columns: tuple[str, ...] = ("loss",)
    faults: tuple[Callable[[Any], None], ...] = ()
    also: tuple[str, ...] = ()
    weak: bool = False

    def label(self, name: str) -> dict[str, Any]:
        """The line for `labels.jsonl`."""
        line: dict[str, Any] = {"run": name, "cause": self.cause, "also": list(self.also), "task": self.config.task}
        line |= {"style": self.style, "settings": self.settings or "none", "fact": self.fact}
        return line | ({"weak": True} if self.weak else {})


def execute(run: Run, name: str, folder: Path) -> None:
    """Trains the run and leaves its log in `folder`; the seed hangs on the name, an error ends the log."""
    folder.mkdir(parents=True)
    config = replace(run.config, seed=run.config.seed or zlib.crc32(name.encode()) % 10_000)
    torch.manual_seed(config.seed)
    log = STYLES[run.style](folder)
    log.columns, log.epochs = run.columns, config.epochs
    loop: Gan | Gridworld | Trainer
    if config.task == "gan":
        loop, log.per_epoch = Gan(config, log), STEPS
    elif config.task == "gridworld":
        loop, log.per_epoch = Gridworld(config, log), 10
    else:
        loop = Trainer(TASKS[config.task](config), config, log)
        log.per_epoch = loop.batches_per_epoch
    for plant in run.faults:
        plant(loop)
    if run.settings:
        log.settings(config, run.settings)
    try:
        loop.fit()
    except RuntimeError as error:
        log.say(TRACEBACK + str(error))
    log.close()
