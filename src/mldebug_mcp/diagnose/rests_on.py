"""Which of a run's metrics a finding was made from."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Sequence

from mldebug_mcp.logs import Run
from mldebug_mcp.logs.roles.quantities import THROUGHPUTS, Quantity
from mldebug_mcp.models import Finding, Hypothesis
from mldebug_mcp.symptoms.registry import SYMPTOMS

_SHORT = {
    "lr": ("learning_rate",), "grad": ("grad_norm",), "gradient": ("grad_norm*",), "accuracy": ("accuracy",),
    "dpo": ("logps/*", "rewards/*"), "steps": ("loss_scale", "skipped_iterations"), "overflows": ("loss_scale",),
}  # fmt: skip
"""What a symptom's first word stands for, where that is no name of a metric."""


def rests_on(run: Run, finding: Finding) -> list[str]:
    """Return the metrics of a run from which a finding was made."""
    symptom = SYMPTOMS.all().get(finding.symptom)
    patterns = (*symptom.needs, *symptom.question.any_of) if symptom is not None else ()
    if patterns:
        return _matching(run.series, patterns)
    first = finding.symptom.partition("_")[0]  # those that read settings too say it by their name
    matching = _matching(run.series, _SHORT.get(first, (first, f"{first}_*")))
    named = [name for name in matching if (role := run[name].role) is None or not _is_pace(role.quantity)]
    return _told_in(finding.summary, run, named) or [name for name in named if name in _MAIN] or named


_MAIN = ("loss", "eval_loss")
"""What a symptom of losses or evaluations is of, if its summary does not name a metric."""


def _told_in(summary: str, run: Run, names: Sequence[str]) -> list[str]:
    words = set(_WORDS.findall(summary))
    return [name for name in names if name in words or run[name].logged_as in words]


_WORDS = re.compile(r"[\w/.@-]*\w")


def _is_pace(quantity: Quantity) -> bool:
    """Say whether a quantity tells how fast a run is, which evaluations log beside their results."""
    return quantity.is_duration or quantity in THROUGHPUTS


def _matching(names: Iterable[str], patterns: Sequence[str]) -> list[str]:
    return [name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]


def speaks_first(present: Sequence[Finding], hypothesis: Hypothesis) -> float | None:
    """Return the first step of what is seen and speaks for a hypothesis; None where that has no step."""
    steps = [one.steps[0] for one in present if one.symptom in hypothesis.symptoms and one.steps]
    return min(steps, default=None)
