"""What a symptom of a probe is, and how it is judged.

Unlike those of a log, these name their causes themselves: a probe measures one thing at a time, so what a measurement
can mean stands best beside it. The frequencies are chosen, in the words of `links.csv`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mldebug_mcp.checks.asking import judged
from mldebug_mcp.checks.check import Documented, Evidence, Registry
from mldebug_mcp.knowledge.catalogue import Frequency
from mldebug_mcp.models import Finding, State
from mldebug_mcp.probe.measured import Measured

DEFAULT_BACKGROUND = 0.00002
"""How often a healthy probe shows a symptom. Chosen: far lower than in logs, as most measure one fault exactly."""

Detector = Callable[[Measured], Evidence | None]


@dataclass(frozen=True, slots=True)
class ProbeSymptom(Documented):
    """A registered symptom; see `probe_symptom` for the fields."""

    id: str
    needs: tuple[str, ...]
    effects: Mapping[str, Frequency]
    sources: tuple[str, ...]
    background: float
    detect: Detector


SYMPTOMS: Registry[ProbeSymptom] = Registry("mldebug_mcp.checks.probe")


def probe_symptom(
    *,
    needs: tuple[str, ...],
    effects: Mapping[str, str],
    sources: tuple[str, ...] = (),
    background: float = DEFAULT_BACKGROUND,
) -> Callable[[Detector], Detector]:
    """Register a function as the symptom of its name.

    Args:
        needs: Fields of `Measured` without which it cannot be judged.
        effects: The causes that produce it, and how often: always, usually, often, sometimes, rarely.
        sources: Ids of the sources of its thresholds.
        background: How often a healthy probe shows it.
    """

    def register(detect: Detector) -> Detector:
        words = {cause: Frequency(word) for cause, word in effects.items()}
        SYMPTOMS.add(ProbeSymptom(detect.__name__, needs, words, sources, background, detect))
        return detect

    return register


def judge(symptom: ProbeSymptom, seen: Measured) -> tuple[Finding, str | None]:
    """Judge a symptom. The second value is a note, if the symptom itself broke."""
    missing = [name for name in symptom.needs if getattr(seen, name) is None]
    if missing:
        reason = f"not measured: {', '.join(missing)}"
        return Finding(symptom=symptom.id, state=State.UNKNOWN, summary=reason), None
    return judged(symptom.id, lambda: symptom.detect(seen))


# What several symptoms of a probe ask.


FALLING = 0.03
"""Relative fall over the last quarter that counts as still falling. Chosen: noise of a full batch is far below."""
FEW_STEPS = 50
"""Steps that a loop must have made in its time. Chosen: fewer say nothing of what it could have learnt."""
SMALL_UPDATE = 3e-5
"""Of the weights that a step changes them by. Chosen: a thirtieth of the 1e-3 that cs231n_nn3 gives."""


def still_falling(losses: Sequence[float]) -> bool:
    """Tell whether a curve that was given many steps was still falling in its last quarter."""
    if len(losses) < 8 or not all(map(math.isfinite, losses)):
        return False
    quarter = len(losses) // 4
    before = sum(losses[-2 * quarter : -quarter]) / quarter
    last = sum(losses[-quarter:]) / quarter
    return before - last > FALLING * abs(before) and last < losses[0]


def was_cut_short(seen: Measured) -> bool:
    """Tell whether time was up before a loop of the probe's own had learnt what it could: its rate is not to blame.

    A loop of the user's has a rate of the user's, which may well be what makes it slow.
    """
    curve = seen.curve
    if curve is None or curve.learning_rate is None or curve.ended != "time":
        return False
    return len(curve.losses) < FEW_STEPS or still_falling(curve.losses)


def steps_are_tiny(seen: Measured) -> bool:
    """Tell whether the user's steps change the weights by next to nothing, where that was measured."""
    return seen.watched is not None and seen.update_ratio is not None and seen.update_ratio < SMALL_UPDATE


def low_precision_alone(seen: Measured) -> bool:
    """Tell whether a non-finite value of the first pass is gone in 32 bits."""
    full = seen.full_precision
    return full is not None and full.loss is not None and math.isfinite(full.loss) and full.gradients_finite is True
