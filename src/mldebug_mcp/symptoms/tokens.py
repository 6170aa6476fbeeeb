"""Whether a language model was trained from scratch among the tokens of text, and why that is not known."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.token_level import LEAST_LN_OF_TEXT, from_scratch
from mldebug_mcp.symptoms.beginning import is_late
from mldebug_mcp.symptoms.registry import CannotTell
from mldebug_mcp.text import figure

EARLY, SOON = 0.005, 10
"""This share of the log, or so many steps, is its start."""


def uniform_of_tokens(run: Run) -> float:
    """Return ln(vocabulary) of a model that starts at a uniform guess; CannotTell if it does not, or none is known."""
    loss = run["loss"].finite
    if not len(loss):
        raise CannotTell("no finite loss")
    step, first = float(loss.step[0]), float(loss.value[0])
    if is_late(run, step, EARLY, SOON):
        raise CannotTell(f"the first loss is logged at {run.step_name} {figure(step)}, too late to speak of the start")
    known = from_scratch(run)
    if known is None or known < LEAST_LN_OF_TEXT:
        raise CannotTell(f"the first loss, {figure(first)}, is not known to be that of a uniform guess among tokens")
    return known
