"""News of a run that is watched, a line each."""

from __future__ import annotations

import time

from rich.text import Text

from mldebug_mcp.models.watching import News
from mldebug_mcp.report.console import console_for
from mldebug_mcp.text import figure, quoted

_STYLES = {
    "finding": "bold red",
    "leader": "bold yellow",
    "silent": "bold yellow",
    "no_result": "bold yellow",
    "finished": "bold green",
}


def print_news(news: News) -> None:
    """Print a line with the time of day, how far the run has come, and what is new."""
    come = "" if news.step is None else f"{news.step_name} {figure(news.step)} "
    style = "bold green" if news.what == "leader" and not news.alarm else _STYLES.get(news.what, "bold")
    line = Text.assemble(
        (f"{time.strftime('%H:%M:%S')} ", "dim"), come, (f"{news.symptom or news.what}: ", style), news.text
    )
    console_for().print(line, soft_wrap=True)


def print_status(status: str) -> None:
    """Print how far the run has come, and what leads, at a look."""
    console_for().print(Text(f"{time.strftime('%H:%M:%S')} {status}", style="dim"), soft_wrap=True)


def what_now(path: str) -> str:
    """Return the command that tells more after an alarm."""
    return f"mldebug-mcp diagnose {quoted(path)} says what speaks for it, and what to check next"
