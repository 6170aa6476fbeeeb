"""A fault: one change to an experiment, at several severities, and the cause that it stands for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
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
        shown: Says whether the log shows it, given what is logged of the run and of the same run without the fault,
            where being different is not enough: a leak that leaves the evaluation where training is looks like
            success, unless the configuration tells.
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
    evaluation = _values(late, "eval_loss")
    return bool(evaluation) and median(evaluation) < 0.8 * median(_values(late, "loss"))


def starts_badly(records: Sequence[Record], untrained: Sequence[Record]) -> bool:
    """Say whether the first losses lie well above those of a model that has learnt nothing yet."""
    first, guess = (median(_values(each[:3], "loss")) for each in (records, untrained))
    return first > 1.25 * guess


def rate_is_logged(records: Sequence[Record], _: Sequence[Record]) -> bool:
    """Say whether the learning rate is logged, in which alone an odd schedule can be seen."""
    return bool(_values(records, "learning_rate"))


def explodes(records: Sequence[Record], usual: Sequence[Record]) -> bool:
    """Say whether the loss or the gradient norm goes far beyond all that it comes to without the fault."""
    return any(
        not all(map(isfinite, values)) or max(values) > 5 * max(_values(usual, name))
        for name in ("loss", "grad_norm")
        if (values := _values(records, name))
    )


def _values(records: Sequence[Record], name: str) -> list[float]:
    return [record[name] for record in records if name in record]
