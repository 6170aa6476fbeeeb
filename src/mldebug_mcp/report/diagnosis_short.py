"""A diagnosis in one line, for many runs below each other."""

from __future__ import annotations

from mldebug_mcp.models import Diagnosis
from mldebug_mcp.text import figure, shorten

SHOWN = 4
LONGEST = 300


def short_line(diagnosis: Diagnosis) -> str:
    """Return the run, how far it came, what leads, and what is seen."""
    run = diagnosis.run
    come = "" if run.last_step is None else f" ({run.step_name} {figure(run.last_step)})"
    seen = [one.symptom for one in diagnosis.present]
    more = f" and {len(seen) - SHOWN} more" if len(seen) > SHOWN else ""
    told = f"; seen: {', '.join(seen[:SHOWN])}{more}" if seen else ""
    return shorten(f"{run.path}{come}: {diagnosis.verdict.headline}{told}", LONGEST)
