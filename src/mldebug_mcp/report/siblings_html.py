"""A run among the other runs of its sweep: what is set otherwise in each, and how it ends."""

from __future__ import annotations

from html import escape

from mldebug_mcp.logs import Run
from mldebug_mcp.measure.run_result import Result, result_of
from mldebug_mcp.report.shown import otherwise
from mldebug_mcp.text import figure, shorten

MOST = 12
"""Rows: those that end best, and the run itself."""
LONGEST_NAME = 60


def siblings_html(run: Run) -> str:
    """Return a table of the run and its siblings, best first; nothing without siblings or results."""
    own = result_of(run)
    if own is None or not run.siblings:
        return ""
    named = [(one.name, otherwise(one), result_of(one.run, own.metric)) for one in run.siblings]
    found = [("this run", "", own), *((name, set_, told) for name, set_, told in named if told is not None)]
    ordered = sorted(found, key=lambda one: one[2].last, reverse=own.higher_is_better)
    place = next(at for at, one in enumerate(ordered) if one[2] is own)
    shown = ordered[:MOST] if place < MOST else [*ordered[: MOST - 1], ordered[place]]
    metric = escape(shorten(own.metric, LONGEST_NAME))
    cells = ("run", "set otherwise", f"{metric} at the end", "best", "at")
    head = "".join(f"<th scope=col>{cell}</th>" for cell in cells)
    rows = "".join(_row(*one, is_own=one[2] is own) for one in shown)
    left = f"<p class=dim>{len(ordered) - len(shown)} more</p>" if len(ordered) > len(shown) else ""
    return f"<div class=wide><table class=sweep><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{left}"


def _row(name: str, settings: str, told: Result, *, is_own: bool) -> str:
    shown = escape(shorten(name, LONGEST_NAME))
    numbers = "".join(f"<td class=number>{figure(one)}</td>" for one in (told.last, told.best, told.best_step))
    return f"<tr><td>{f'<b>{shown}</b>' if is_own else shown}</td><td>{escape(settings)}</td>{numbers}</tr>"
