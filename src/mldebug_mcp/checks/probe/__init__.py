"""What an overfit probe shows: one small file per symptom, each with the causes that produce it."""

from __future__ import annotations

from collections.abc import Mapping

from mldebug_mcp.checks.probe.registry import SYMPTOMS, ProbeSymptom, judge
from mldebug_mcp.models import Finding
from mldebug_mcp.probe.measured import Measured

__all__ = ["ProbeSymptom", "examine_probe", "probe_effects", "probe_symptoms"]


def probe_symptoms() -> Mapping[str, ProbeSymptom]:
    """Return every symptom of a probe by id; the modules beside this one are imported on the first call."""
    return SYMPTOMS.all()


def examine_probe(seen: Measured) -> tuple[list[Finding], list[str]]:
    """Judge every symptom on what a probe measured. Returns the findings and notes on symptoms that broke."""
    judged = [judge(one, seen) for one in probe_symptoms().values()]
    return [finding for finding, _ in judged], [note for _, note in judged if note is not None]


def probe_effects() -> dict[str, dict[str, float]]:
    """Return, per cause, how often it produces each symptom of a probe."""
    effects: dict[str, dict[str, float]] = {}
    for one in probe_symptoms().values():
        for cause, frequency in one.effects.items():
            effects.setdefault(cause, {})[one.id] = frequency.share
    return effects
