"""The short form of a probe's answer."""

from __future__ import annotations

from mldebug_mcp.diagnose.probe import is_sound
from mldebug_mcp.models import ProbeResult, State
from mldebug_mcp.report.fit import rounded

MAX_CAUSES = 8
MAX_HYPOTHESES = 3
MAX_STEPS = 3
MAX_POINTS = 30
"""Points of the curve, and at most as many again."""
LEAST = 0.05
"""Hypotheses below this probability for which nothing speaks are left out."""


def concise_probe(result: ProbeResult) -> ProbeResult:
    """Return the answer with the findings that are present, the leading causes, and the curve thinned."""
    present = [one for one in result.findings if one.state is State.PRESENT]
    every = max(1, len(result.curve) // MAX_POINTS)
    leading = [one for one in result.hypotheses if one.probability > LEAST or one.because]
    return result.model_copy(
        update={
            "findings": present,
            "causes": rounded(result.causes[:MAX_CAUSES]),
            "hypotheses": [] if is_sound(result) else rounded(leading[:MAX_HYPOTHESES]),
            "next_steps": [] if is_sound(result) else result.next_steps[:MAX_STEPS],
            "curve": result.curve[::every],
        }
    )
