"""One run of the plan."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Spec:
    """A task with its options, the training knobs, and the label of the run."""

    cause: str
    task: str  # lm, sft, prefer, embed, tags, translate, multi, tokens, dqn, control
    fact: str
    o: dict[str, Any] = field(default_factory=dict)
    k: dict[str, Any] = field(default_factory=dict)
    also: tuple[str, ...] = ()
    weak: bool = False
    need: tuple[str, ...] = ()  # values that must stay in the log
    hide: tuple[str, ...] = ()  # values that this person does not log
    style: str = ""  # which the roster chooses
    fine: bool = False  # needs a log by step, not by epoch
    final: bool = False  # ends with a test on fresh data
    cfg: dict[str, Any] = field(default_factory=dict)  # further lines of the config
