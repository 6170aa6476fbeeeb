"""A fault: one change to an experiment, at several severities, and the cause that it stands for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
    """

    id: str
    cause: str
    apply: Callable[[Any, float], None]
    severities: tuple[float, ...]
    tasks: tuple[str, ...] = ALL
    also: tuple[str, ...] = ()
