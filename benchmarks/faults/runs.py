"""Which runs there are, how each is logged, and what is known of it."""

from __future__ import annotations

import json
import math
import sys
import zlib
from collections.abc import Container, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch

from benchmarks.faults import dqn, grpo, lightning_runs, loop, ppo, preference, trainer, trl_runs
from benchmarks.faults.experiment import Experiment, Record, Subject
from benchmarks.faults.faults import FAULTS, HEALTHY, Fault
from benchmarks.faults.faults.machine import clock
from benchmarks.faults.logs import write_log
from benchmarks.faults.other_tasks import LIKE
from mldebug_mcp.measure.statistics import noise

SLOW = ("gpt", "sft", "reverse")
"""Tasks of the plain loop whose model is a transformer: a run takes several seconds, where the others take one."""
OTHER_SEED = 701
CLOCK = ("step_time", "data_time", "memory")
_MODULES = (loop, grpo, preference, ppo, dqn, trainer, trl_runs, lightning_runs)
SUBJECTS: dict[str, Subject] = {subject.name: subject for module in _MODULES for subject in module.SUBJECTS}
"""Everything that can be trained, by name. Those with `tuning=False` are the test part."""


@dataclass(frozen=True)
class Case:
    """A run: what is trained, what is wrong with it, and how it is logged."""

    task: str
    fault: str
    severity: float
    seed: int

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"{self.task}-{self.fault}-{self.severity:g}-{self.seed}"

    @property
    def choice(self) -> int:
        """A number that depends on the name alone: how the run is logged is drawn from it."""
        return zlib.crc32(self.name.encode())

    @property
    def rules(self) -> Fault:
        """The fault."""
        return FAULTS.get(self.fault) or HEALTHY[self.fault]

    @property
    def tuning(self) -> bool:
        """Whether it belongs to the part that numbers are fitted on."""
        return self.subject.tuning

    @property
    def subject(self) -> Subject:
        """What is trained."""
        return SUBJECTS[self.task]

    @property
    def trainable(self) -> bool:
        """Whether the packages that it needs are installed."""
        return all(find_spec(package) for package in self.subject.needs)


@dataclass(frozen=True)
class Label:
    """What is known of a run.

    Args:
        cause: The injected cause.
        also: Other causes that the same observables justify.
        onset: The step at which the fault begins, if it has one.
        steps: Steps of the run.
        shows: Whether the logged metrics differ from those of the same run without the fault.
        tuning: Whether the run belongs to the tuning part.
        style: The style that the run was written anew in; empty where the log is the one of its training.
        of: The name of the trained run that this is a version of; empty where it is that run.
        style_seen: Whether runs of the tuning part may be written in that style.
    """

    cause: str
    also: tuple[str, ...]
    onset: float | None
    steps: int
    shows: bool
    tuning: bool
    style: str = ""
    of: str = ""
    style_seen: bool = True


def cases(*, subset: bool = False, fresh: int = 0) -> Iterator[Case]:
    """Yield every run that can be trained here; tell which packages the others need.

    Args:
        subset: One severity and one seed of each fault, on one task of each part, and of the tuning part alone where a
            framework trains it.
        fresh: The test part alone, with seeds moved by this number.
    """
    lacking = set()
    for case in (*_faulty(subset=subset), *_healthy(subset=subset)):
        if fresh and case.tuning:
            continue
        if case.trainable:
            yield replace(case, seed=case.seed + fresh)
        else:
            lacking.add((case.task, " and ".join(case.subject.needs)))
    for task, packages in sorted(lacking):
        print(f"runs of {task} are left out: they need {packages}", file=sys.stderr)


def other_cases() -> Iterator[Case]:
    """Yield runs of tasks that nothing was fitted on: each fault that suits them, at its mildest and its grossest."""
    for fault in (*FAULTS.values(), *HEALTHY.values()):
        for task in (task for task, like in LIKE.items() if like in fault.tasks):
            for severity in dict.fromkeys((fault.severities[0], fault.severities[-1])):
                yield Case(task, fault.id, severity, OTHER_SEED)


def _faulty(*, subset: bool) -> Iterator[Case]:
    for fault in FAULTS.values():
        for task in _few(fault.tasks) if subset else fault.tasks:
            for severity in fault.severities[-1:] if subset else fault.severities:
                for seed in (1,) if subset else fault.seeds or (1,):
                    yield Case(task, fault.id, severity, seed)


def _healthy(*, subset: bool) -> Iterator[Case]:
    for fault in HEALTHY.values():
        for task in _few(fault.tasks) if subset else fault.tasks:
            for severity in fault.severities[:1] if subset else fault.severities:
                for seed in (1,) if subset else fault.seeds or (1, 2):
                    yield Case(task, fault.id, severity, seed)


def _few(tasks: Sequence[str]) -> list[str]:
    """Return a task of each part, a fast one if there is one; of what frameworks train, a task of the tuning part."""
    fast = sorted(tasks, key=lambda task: task in SLOW)
    parts = [[task for task in fast if SUBJECTS[task].tuning is tuning] for tuning in (True, False)]
    return [task for part in parts for task in part[:1] if SUBJECTS[task].tuning or SUBJECTS[task].needs == ("torch",)]


def make(case: Case, folder: Path) -> str:
    """Train a run, write its log, its configuration and its label, and return its name."""
    torch.set_num_threads(1)  # runs are trained side by side, one in each process
    experiment = case.subject.usual(case.seed)
    case.rules.apply(experiment, case.severity)
    records = experiment.train()
    hidden = left_out(case, experiment)
    logged = thinned(records, case, experiment, hidden)
    configured = bool(experiment.ends_at) or case.choice // 7 % 10 < 7  # that a run ended early is seen beside its plan
    shows = case.rules.cause == "healthy" or shown(case, experiment, records, configured=configured)
    label = Label(case.rules.cause, case.rules.also, experiment.onset, experiment.steps, shows, case.tuning)
    run = folder / case.name
    run.mkdir(parents=True, exist_ok=True)
    kind = "text" if experiment.ends_at or experiment.last_words else _format(case, experiment)
    write_log(run, kind, logged, experiment)
    if configured:
        (run / "config.json").write_text(json.dumps(experiment.settings(), indent=1), encoding="utf-8")
    (folder / f"{case.name}.label.json").write_text(json.dumps(asdict(label)), encoding="utf-8")
    return case.name


@lru_cache(maxsize=256)
def twin(task: str, seed: int, steps: int, *, clocked: bool) -> list[Record]:
    """Train the same run without its fault; with the clock of an even machine, if the run logs one."""
    usual = SUBJECTS[task].usual(seed)
    usual.steps = steps
    if clocked and isinstance(usual, loop.Setup):
        clock(usual, lambda _step, record, _generator: record)
    return usual.train()


def left_out(case: Case, experiment: Experiment) -> tuple[str, ...]:
    """Return the metrics that this run does not log."""
    return experiment.left_out[case.choice // 4 % len(experiment.left_out)]


def shown(case: Case, experiment: Experiment, records: list[Record], *, configured: bool) -> bool:
    """Say whether the fault shows in what is logged, or in the configuration where that is written too."""
    if experiment.ends_at:
        return True
    last = list({record["step"]: record for record in records}.values())  # of steps made again after a resume
    usual = twin(case.task, case.seed, experiment.steps, clocked=any(name in records[0] for name in CLOCK))
    hidden = left_out(case, experiment)
    both = [thinned(each, case, experiment, hidden) for each in (last, usual)]
    if not differs(both[0], both[1], experiment):
        return False
    told = configured and bool(experiment.config)
    return case.rules.shown is None or told or case.rules.shown(*both)


def differs(logged: list[Record], usual: list[Record], experiment: Experiment) -> bool:
    """Say whether what is logged differs visibly from the log of the same run without the fault."""
    names = {name for record in (*logged, *usual) for name in record if name != "step"}
    names = names.intersection(experiment.telling) or names
    return any(_apart(name, logged, usual) for name in names)


def _apart(name: str, records: list[Record], usual: list[Record]) -> bool:
    ours = np.array([record.get(name, math.nan) for record in records])
    theirs = np.array([record.get(name, math.nan) for record in usual])
    logged = np.isfinite(theirs)
    if not logged.any():
        return bool(np.isfinite(ours).any())
    if len(ours) != len(theirs) or not np.isfinite(ours[logged]).all():
        return True
    ours, theirs = ours[logged], theirs[logged]
    if name in CLOCK:  # their jitter is drawn anew
        return bool(ours.max() > 1.05 * theirs.max())
    span = max(float(np.ptp(theirs)), 1e-9)
    apart = np.abs(ours - theirs) / span
    least = max(0.2, 6 * noise(theirs) / span)
    return bool(np.median(apart[-max(1, len(apart) // 5) :]) > 0.15 or apart.max() > least)


def thinned(records: list[Record], case: Case, experiment: Experiment, hidden: Container[str]) -> list[Record]:
    """Return the records as they are logged: every step, or the mean loss of some steps as the Trainer does."""
    every = experiment.intervals[case.choice // 16 % len(experiment.intervals)]
    if len(records) // every < 40:
        every = 1
    out = []
    for start in range(0, len(records), every):
        window = records[start : start + every]
        merged = {name: value for record in window for name, value in record.items() if name not in hidden}
        if "loss" in merged:
            merged["loss"] = float(np.mean([record["loss"] for record in window if "loss" in record]))
        out.append(merged)
    return out


def _format(case: Case, experiment: Experiment) -> str:
    return experiment.formats[case.choice % len(experiment.formats)]
