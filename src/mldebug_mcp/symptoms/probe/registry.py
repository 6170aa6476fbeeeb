"""What a symptom of a probe is, and how it is judged.

Unlike those of a log, these name their causes themselves: a probe measures one thing at a time, so what a measurement
can mean stands best beside it. The frequencies are chosen, in the words of `links.csv`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mldebug_mcp.knowledge.entries import Frequency
from mldebug_mcp.models import Finding, State
from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.asking import judged
from mldebug_mcp.symptoms.discovery import Documented, Registry
from mldebug_mcp.symptoms.registry import Evidence

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


SYMPTOMS: Registry[ProbeSymptom] = Registry("mldebug_mcp.symptoms.probe")


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
