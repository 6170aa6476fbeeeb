"""What settings say of causes that are unusual by themselves, and that no question asks after."""

from __future__ import annotations

import math
from collections.abc import Iterator

from mldebug_mcp.diagnose.ranking import Evidence
from mldebug_mcp.diagnose.setting_faults import faults_of
from mldebug_mcp.logs import Run
from mldebug_mcp.measure.usual import USUAL, Usual, usual_for, usual_instead
from mldebug_mcp.text import figure

UNUSUAL_BITS, MOST_BITS = 2.0, 4.0
"""Bits for a cause that an unusual setting suggests, four to one, and one more for each factor of two beyond, up to
sixteen to one. By hand: recipes that work are unusual, too."""
_ASKED = ("weight_decay", "max_grad_norm", "effective_batch", "beta", "gamma", "adam_epsilon", "adam_beta1",
          "adam_beta2")  # fmt: skip
"""Settings that questions ask after: what is unusual about them is a finding, and weighed as one."""


def told_by_settings(run: Run) -> list[Evidence]:
    """Return the causes that unusual settings suggest."""
    return [
        Evidence(cause, min(MOST_BITS, UNUSUAL_BITS + beyond), said, "log")
        for name, direction, beyond, said in _unusual(run)
        for cause in faults_of(name, direction)
    ]


def _unusual(run: Run) -> Iterator[tuple[str, int, float, str]]:
    """Yield each unusual setting, on which side of the usual it is, how far beyond in factors of two, and in words."""
    for name in (*USUAL, "planned_passes"):
        value = _value(run, name)
        instead = "" if value is None or name in _ASKED else usual_instead(run, name, value)
        if value is not None and instead:
            usual = usual_for(run, name)
            below = usual is not None and value < usual.low
            beyond = _beyond(usual, value) if usual is not None else 0.0
            yield name, -1 if below else +1, beyond, f"{name} is {figure(value)}; usual: {instead}"
    if run.settings.flag("shuffle") is False:
        yield "shuffle", -1, 0.0, "the data are not shuffled, by the configuration"


def _beyond(usual: Usual, value: float) -> float:
    """Return how far a value lies beyond what is marked, in factors of two; 0 where no factor tells it."""
    low, high = usual.marked
    near, far = sorted((abs(value), low if value < low else high))
    return math.log2(far / near) if near > 0 else 0.0


def _value(run: Run, name: str) -> float | None:
    if name == "planned_passes":
        return run.facts.passes_at(run.facts.plan) if run.facts.plan else None
    return run.setting(name)
