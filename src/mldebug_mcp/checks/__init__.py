"""Observation → finding. A file per question; `run/`, `batch/`, `probe/` and `memory/` hold those of a subject."""

from __future__ import annotations

from mldebug_mcp.checks.check import CannotTell, Evidence, Symptom, answer_all, symptoms
from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import Finding

__all__ = ["CannotTell", "Evidence", "Symptom", "examine", "probe_effects", "symptoms"]


def examine(run: Run) -> tuple[list[Finding], list[str]]:
    """Ask every question of a run. Returns the findings, one per symptom, and notes on questions that broke."""
    answers, notes = answer_all("run", run)
    return [given.finding() for given in answers], notes


def probe_effects() -> dict[str, dict[str, float]]:
    """Return, per cause, how often it produces each symptom of a probe."""
    effects: dict[str, dict[str, float]] = {}
    for symptom in symptoms("probe").values():
        for cause, frequency in symptom.outcome.effects.items():
            effects.setdefault(cause, {})[symptom.id] = frequency.share
    return effects
