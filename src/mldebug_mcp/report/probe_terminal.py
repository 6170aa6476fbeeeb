"""A probe's answer as text for a person."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from rich.console import Console
from rich.text import Text

from mldebug_mcp.logs import Series
from mldebug_mcp.models import ProbeResult, State
from mldebug_mcp.models.base import NO_FAULTS
from mldebug_mcp.probe import Progress
from mldebug_mcp.report.console import bullets, print_section
from mldebug_mcp.report.sparkline import sparkline
from mldebug_mcp.text import figure, percent

STYLE = {"memorised": "bold green", "failed": "bold magenta"}
SHOWN_CAUSES = 4
SHOWN_STEPS = 3


def print_probe(console: Console, result: ProbeResult) -> None:
    """Print the verdict, the curve, what was seen, what it may be and what to do next; of a failure, the failure."""
    console.print(Text.assemble((result.verdict, STYLE.get(result.verdict, "bold red")), ": ", result.summary))
    if result.verdict == "failed":  # nothing was measured: a list of what was not seen would read as an all-clear
        _print_lines(console, "Last lines of the probed code", result.output.splitlines())
        print_section(console, "Notes", bullets(result.notes))
        return
    _print_numbers(console, result)
    present = [one for one in result.findings if one.state is State.PRESENT]
    seen = [f"{one.symptom}: {one.summary}" for one in present] or ["nothing unusual"]
    _print_lines(console, "Seen by the probe", seen)
    bad = result.first_nonfinite
    if bad is not None:
        _print_lines(console, "On the way to the first non-finite value", list(bad.before))
    causes = [f"{percent(one.probability):>4}  {one.cause}" for one in result.causes[:SHOWN_CAUSES]]
    _print_lines(console, "What it may be (hypotheses, not verdicts)", causes)
    leading = next((one for one in result.hypotheses if one.cause not in NO_FAULTS), None)
    if leading is not None and result.causes and result.causes[0].cause == leading.cause:
        _print_lines(console, "Fix", [leading.fix])
    _print_lines(console, "Check next", [f"{one.action} ({one.cost})" for one in result.next_steps[:SHOWN_STEPS]])
    rows = [f"row {one.row}: {figure(one.accuracy)} right {one.why}".rstrip() for one in result.resisting_rows]
    _print_lines(console, "Rows that were not memorised", rows)
    print_section(console, "Notes", bullets(result.notes))


def _print_numbers(console: Console, result: ProbeResult) -> None:
    if len(result.curve) > 1:
        steps = np.array([point.step for point in result.curve], float)
        losses = np.array([point.loss for point in result.curve], float)
        bars, _ = sparkline(Series("loss", steps, losses), console.width - 40)
        line = Text.assemble("loss ", figure(losses[0]), " ", (bars, "cyan"), " ", figure(losses[-1]))
        console.print(line, no_wrap=True)
    told = {
        "first loss": result.initial_loss,
        "uniform guess": result.expected_initial_loss,
        "label frequencies": result.unigram_loss,
        "memorised at": result.goal,
        "learning rate": result.learning_rate,
    }
    parts = [f"{name} {figure(value)}" for name, value in told.items() if value is not None]
    parts += [] if result.accuracy is None else [f"{percent(result.accuracy)} of the labels right"]
    console.print(Text(f"{', '.join(parts)}; {result.device or 'no device'}, {result.seconds:.1f} s", style="dim"))


def _print_lines(console: Console, title: str, lines: Sequence[str]) -> None:
    print_section(console, title, [Text(line) for line in lines])


@contextmanager
def show_progress() -> Iterator[Callable[[Progress], None] | None]:
    """Yield a function that shows the progress on standard error; None if that is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    console = Console(stderr=True)
    with console.status("starting the probe") as status:
        yield lambda progress: status.update(str(progress))
