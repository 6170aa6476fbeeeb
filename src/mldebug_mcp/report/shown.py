"""What people are shown of a diagnosis, in a terminal and on a page alike."""

from __future__ import annotations

from mldebug_mcp.logs import Run
from mldebug_mcp.logs.run import Sibling
from mldebug_mcp.models import Citation, Comparison, Diagnosis, Hypothesis, NextStep
from mldebug_mcp.models.base import SOUND
from mldebug_mcp.text import counted, figure, shorten

SHOWN_HYPOTHESES = 5
SHOWN_STEPS = 3
SHOWN_SETTINGS, LONGEST_VALUE = 3, 24
CITED = 0.1
"""Probability below which a hypothesis other than the leader has no quote shown (chosen)."""
ONCE_CHECKED = "Once a check is made, run the same command with --outcome CHECK=confirms or =refutes"


def what_was_read(diagnosis: Diagnosis, run: Run) -> str:
    """Return how much was read, of what format and kind."""
    read = diagnosis.run
    return (
        f"{counted(read.records, 'record')} ({', '.join(read.formats)}), {read.step_name}s {figure(run.first_step)} to "
        f"{figure(run.last_step)}, kind of run: {read.kind}"
    )


def otherwise(sibling: Sibling) -> str:
    """Return what is set otherwise in another run of a sweep."""
    told = [f"{name}={shorten(str(value), LONGEST_VALUE)}" for name, value in sibling.settings.items()]
    return ", ".join(told[:SHOWN_SETTINGS]) + (", …" if len(told) > SHOWN_SETTINGS else "")


def also_for(step: NextStep) -> list[str]:
    """Return the causes that a check bears on besides its own."""
    return [cause for cause in step.for_causes if not step.id.startswith(f"{cause}.")]


def leading_citations(hypotheses: list[Hypothesis]) -> list[Citation]:
    """Return one citation for each hypothesis that some fact supports: for the leader, and for those near it."""
    leading = [
        one
        for place, one in enumerate(hypotheses[:SHOWN_HYPOTHESES])
        if one.citations and (one.because or one.cause == SOUND) and (place == 0 or one.probability >= CITED)
    ]
    return list({one.citations[0].id: one.citations[0] for one in leading}.values())[:3]


def partings(comparison: Comparison, step_name: str) -> list[str]:
    """Return where metrics depart from those of the reference run, how they end, and which do not depart."""
    lines = [
        f"{one.metric} parts at {step_name} {figure(one.step)}: {figure(one.run)}, in the good run "
        f"{figure(one.reference)}; it ends at {figure(one.run_at_end)}, there at {figure(one.reference_at_end)}"
        + (f": {one.ends}" if one.ends else "")
        for one in comparison.partings
    ]
    return lines + ([f"no difference beyond the noise: {', '.join(comparison.alike)}"] if comparison.alike else [])


def settings_apart(comparison: Comparison) -> list[str]:
    """Return the settings that differ from those of the reference run, with how many times."""
    return [
        f"{one.setting} {_value(one.run)}, in the good run {_value(one.reference)}{_times(one.factor)}"
        for one in comparison.settings
    ]


def _times(factor: float | None) -> str:
    if factor is None:
        return ""
    return f": {figure(factor)} times" if factor > 1 else f": 1/{figure(1 / factor)}"


def _value(value: str | float | None) -> str:
    return "not set" if value is None else value if isinstance(value, str) else figure(value)
