"""Which of a run's metrics a finding was made from."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

from mldebug_mcp.logs import Run
from mldebug_mcp.models import Finding, Hypothesis
from mldebug_mcp.symptoms.registry import SYMPTOMS

_SHORT = {"lr": "learning_rate", "eval": "eval_loss", "grad": "grad_norm"}
"""What a symptom's first word stands for."""


def rests_on(run: Run, finding: Finding) -> list[str]:
    """Return the metrics of a run from which a finding was made."""
    symptom = SYMPTOMS.all().get(finding.symptom)
    patterns = (*symptom.needs, *symptom.question.any_of) if symptom is not None else ()
    if not patterns:  # those that read settings too say it by their name
        first = finding.symptom.partition("_")[0]
        patterns = (_SHORT.get(first, first), f"{first}_*")
    return [name for name in run.series if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]


def speaks_first(present: Sequence[Finding], hypothesis: Hypothesis) -> float | None:
    """Return the first step of what is seen and speaks for a hypothesis; None where that has no step."""
    said = [text.partition(" ")[0] for text in hypothesis.because]
    steps = [one.steps[0] for one in present if one.symptom in said and one.steps]
    return min(steps, default=None)
