"""The main curves of a run in bars of text, the worst event marked below them."""

from __future__ import annotations

from rich.text import Text

from mldebug_mcp.diagnose.rests_on import rests_on
from mldebug_mcp.logs import Run
from mldebug_mcp.models import Diagnosis, State
from mldebug_mcp.report.sparkline import sparkline
from mldebug_mcp.text import figure, shorten

CURVES = ("loss", "eval_loss", "reward", "grad_norm")
MOST_CURVES = 4
NARROW = 72
"""Columns below which curves have lines of their own."""
_NAME = 13


def curve_lines(run: Run, diagnosis: Diagnosis, width: int) -> list[Text]:
    """Return a line of bars for each main curve, and the worst event below the first of those that it moved."""
    names = [name for name in CURVES if name in run and len(run[name]) > 1]
    names += [one.name for one in diagnosis.sheet.quantities if one.matters and len(run[one.name]) > 1]
    lines: list[Text] = []
    marked = False
    for name in list(dict.fromkeys(names))[:MOST_CURVES]:
        step = None if marked else worst_step(run, diagnosis, name)
        lines += _curve(run, name, step, width)
        marked = marked or step is not None
    return lines


def worst_step(run: Run, diagnosis: Diagnosis, name: str) -> float | None:
    """Return the step of the worst event that a curve took part in: its largest jump, else where a finding begins."""
    logged = run[name].logged_as or name
    jumps = [one for one in diagnosis.sheet.events if one.size and f"{logged} " in one.text]
    if jumps:
        worst = max(jumps, key=lambda one: (len(one.findings) > 0, one.size))
        return float(worst.step if worst.worst_at is None else worst.worst_at)
    begins = (
        one.steps[0]
        for one in diagnosis.findings
        if one.state is State.PRESENT and one.steps and name in rests_on(run, one)
    )
    return next(begins, None)


def _curve(run: Run, name: str, step: float | None, width: int) -> list[Text]:
    wide = width >= NARROW
    bars, column = sparkline(run[name], width - (45 if wide else 4), step)
    first, last = figure(float(run[name].value[0])), figure(float(run[name].value[-1]))
    if wide:
        lines = [Text.assemble(f"{shorten(name, _NAME):>{_NAME}} {first:>9} ", (bars, "cyan"), f" {last}")]
    else:
        lines = [Text(shorten(f"{name} from {first} to {last}", width)), Text(f"  {bars}", style="cyan")]
    if step is not None and column is not None:
        mark, indent = f"{run.step_name} {figure(step)}", (_NAME + 11 if wide else 2) + column
        fits = indent + len(mark) + 2 <= width
        # Where there is no room on the right, the words stand on the left of the arrow.
        line = " " * indent + f"▲ {mark}" if fits else f"{mark} ▲".rjust(indent + 1)
        lines.append(Text(line[-width:] if len(line) > width else line, style="bold red"))
    return lines
