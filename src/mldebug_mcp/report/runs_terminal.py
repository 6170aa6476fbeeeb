"""Many runs as a table for a terminal, and what the sick ones share."""

from __future__ import annotations

import math

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mldebug_mcp.diagnose.swept import LEVEL
from mldebug_mcp.models.base import SOUND
from mldebug_mcp.models.runs import BestSetting, RunRow, Runs, SharedSetting, Sweep
from mldebug_mcp.report.console import bullets, print_section
from mldebug_mcp.text import counted, figure, percent, shorten

MOST_ROWS = 40
LONGEST_NAME = 40
LONGEST_NOTE = 60
MOST_JOBS = 12
"""Jobs whose ranks are shown."""


def print_runs(console: Console, answer: Runs, most: int = MOST_ROWS) -> None:
    """Print the runs that need attention first, and what they share.

    Args:
        console: Where to.
        answer: The runs.
        most: Rows that are shown.
    """
    console.print(Text(headline(answer), style="bold"))
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim")
    for title in ("run", "ends", "step", "result", "may be", "since"):
        table.add_column(title, justify="right" if title in ("step", "since") else "left", no_wrap=title != "may be")
    for row in answer.rows[:most]:
        table.add_row(*_cells(row))
    console.print(table)
    left = len(answer.rows) - most
    if left > 0:
        console.print(Text(f"and {counted(left, 'further run')}: --all, --csv FILE or --json", style="dim"))
    print_section(console, "Ranks", bullets(rank_lines(answer)))
    print_section(console, "What they share", [Text(shared_line(one)) for one in answer.shared])
    print_section(console, "Best settings", list(map(Text, sweep_lines(answer.sweep))))
    print_section(console, "Notes", bullets(answer.notes))


def headline(answer: Runs) -> str:
    """Return how many runs there are, and in how many a fault leads."""
    unread = sum(one.ending == "unread" for one in answer.rows)
    sick = sum(one.is_sick for one in answer.rows)
    sound = sum(one.cause == SOUND for one in answer.rows)
    rest = len(answer.rows) - unread - sick - sound
    parts = [f"a fault leads in {sick}", f"{sound} healthy"]
    parts += [f"{rest} unclear"] if rest else []
    parts += [f"{unread} could not be read"] if unread else []
    return f"{counted(len(answer.rows), 'run')}: {', '.join(parts)}"


def shared_line(one: SharedSetting) -> str:
    """Return a setting that goes with a cause, in counts."""
    return (
        f"{one.cause}: {one.sick_with} of {one.sick} such runs have {one.setting} {one.condition}, "
        f"{one.others_with} of {one.others} others (p {figure(one.p)})"
    )


def rank_lines(answer: Runs) -> list[str]:
    """Return what stands out among the ranks of runs, the first runs first."""
    return [f"{one.name}: {'; '.join(one.ranks.told)}" for one in answer.rows if one.ranks is not None][:MOST_JOBS]


def sweep_lines(sweep: Sweep | None) -> list[str]:
    """Return what a sweep says of its settings, a line for each that it says something of."""
    if sweep is None:
        return []
    lines = [f"by {sweep.metric}, {sweep.better} is better, of {counted(sweep.compared, 'run')}:"]
    lines += [line for one in sweep.settings if (line := _setting_line(one))]
    if len(lines) == 1:
        lines.append("no setting stands out from what the runs differ by anyway")
    if sweep.between_seeds is not None and sweep.between_settings is not None:
        lines.append(
            f"between seeds of one setting the result differs by {figure(sweep.between_seeds)} (standard deviation, "
            f"{counted(sweep.seed_groups, 'group')}), between settings by {figure(sweep.between_settings)}"
        )
    return lines + [f"“{one.text}” — {one.author}, {one.title} [{one.id}]" for one in sweep.citations]


def _setting_line(one: BestSetting) -> str:
    """Return the line on a setting; nothing where its levels do not differ beyond chance."""
    if one.p > LEVEL:
        return ""
    line = f"{one.setting}: {one.best} is best of {', '.join(one.tried)}"
    if one.certainty is not None:
        line += f", in {percent(one.certainty)} of draws"
    if one.as_good:
        line += f" ({' or '.join(one.as_good)} may be as good)"
    if one.edge:
        line += (
            f"; best at the edge: {one.at_edge} of {one.top} best runs at the {one.edge} {one.setting} tried, "
            f"{'a smaller' if one.edge == 'lowest' else 'a larger'} one may be better"
        )
    return line


def result_of_row(row: RunRow) -> str:
    """Return the result of a run; of one that ended in NaN also what it was before."""
    if row.last is None:
        return ""
    if row.final is not None and not math.isfinite(row.final):
        return f"{row.metric} {figure(row.final)} (before: {figure(row.last)})"
    return f"{row.metric} {figure(row.last)}"


def _cells(row: RunRow) -> tuple[Text, ...]:
    if row.ending == "unread":
        return Text(shorten(row.name, LONGEST_NAME)), Text("unread", style="dim"), *[Text("")] * 2, Text(
            shorten(row.note, LONGEST_NOTE), style="dim"
        ), Text("")  # fmt: skip
    said = f"{row.cause} {percent(row.probability)}"
    return (
        Text(shorten(row.name, LONGEST_NAME)),
        Text(row.ending, style="red" if row.ending == "error" else ""),
        Text("" if row.step is None else figure(row.step)),
        Text(result_of_row(row)),
        Text(said, style="bold red" if row.is_sick else "green" if row.cause == SOUND else "yellow"),
        Text("" if row.onset is None else figure(row.onset)),
    )
