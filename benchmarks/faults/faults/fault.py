"""A fault: one change to an experiment, at several severities, and the cause that it stands for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.faults.experiment import Record

CLASSIFIED = ("gpt", "sft", "tabular", "images", "sequences", "pixels", "two_tower")
VECTORS = ("tabular", "regression", "diffusion")
SMALL = ("tabular", "regression", "images", "sequences")
ALL = (*CLASSIFIED, "regression", "diffusion")


@dataclass(frozen=True)
class Fault:
    """A fault.

    Args:
        id: Its name.
        cause: The cause of the playbook that it injects; `healthy` for runs that only look odd.
        apply: Changes an experiment; the second argument is the severity. A fault knows the class of its tasks.
        severities: From mild to gross.
        tasks: The tasks that it makes sense for.
        also: Other causes that the same observables justify.
        shown: Says whether the log shows it, where being different from a sound run is not enough: a leak that leaves
            the evaluation where training is looks like success, unless the configuration tells.
        seeds: One run is made for each; by default there is one, of healthy runs two.
    """

    id: str
    cause: str
    apply: Callable[[Any, float], None]
    severities: tuple[float, ...]
    tasks: tuple[str, ...] = ALL
    also: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    shown: Callable[[Sequence[Record], Sequence[Record]], bool] | None = None


def evaluation_below(records: Sequence[Record], _: Sequence[Record]) -> bool:
    """Say whether the evaluation loss of the last half lies well below the training loss."""
    late = records[len(records) // 2 :]
    evaluation = [record["eval_loss"] for record in late if "eval_loss" in record]
    return median(evaluation) < 0.8 * median(record["loss"] for record in late if "loss" in record)


def starts_badly(records: Sequence[Record], untrained: Sequence[Record]) -> bool:
    """Say whether the first losses lie well above those of a model that has learnt nothing yet."""
    first, guess = (median(record["loss"] for record in each[:3] if "loss" in record) for each in (records, untrained))
    return first > 1.25 * guess
