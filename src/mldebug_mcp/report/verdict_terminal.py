"""The verdict block in a terminal: verdict, why, next check, fix; each wraps, none is cut."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from mldebug_mcp.models import Diagnosis
from mldebug_mcp.report.sections import Block, Check, verdict_block

MAX_ROWS = 12
"""Rows of the block, as far as fewer facts can do it: the first fact, the check and the fix are whole. Chosen."""
MIN_FACTS = 2
_STYLES = {"fault": "bold red", "healthy": "bold green", "unclear": "bold yellow", "not judged": "bold yellow"}
_INDENT = 6


def print_verdict(console: Console, diagnosis: Diagnosis) -> int:
    """Print the block and return its lines; a command is one line to copy, however wide the terminal is."""
    lines = verdict_lines(verdict_block(diagnosis), console.width)
    for line in lines:
        console.print(line, no_wrap=True, crop=False, overflow="ignore")
    return len(lines)


def verdict_lines(block: Block, width: int) -> list[Text]:
    """Return the block on lines of the width; a command keeps to one line, which a terminal may wrap."""
    head = [Text(line, style=_STYLES[block.kind]) for line in _wrap(block.headline, width)]
    check = _check_lines(block.check, width) if block.check is not None else []
    fix = _labelled("Fix", [block.fix], width, "green") if block.fix else []
    facts = list(block.facts)
    why = _labelled("Why", facts, width)
    while len(facts) > MIN_FACTS and len(head) + len(why) + len(check) + len(fix) > MAX_ROWS:
        facts.pop()
        why = _labelled("Why", facts, width)
    return [*head, *why, *check, *fix]


def _check_lines(check: Check, width: int) -> list[Text]:
    action = _labelled("Next", [f"{check.action} ({check.id}: {check.cost})"], width)
    command = Text.assemble(" " * _INDENT, (check.command, "cyan"))
    outcome = [f"confirms: {check.confirms}; refutes: {check.refutes}."] if check.confirms else []
    rest = " ".join([*outcome, *([f"({check.needs})"] if check.needs else [])])
    return [*action, command, *(Text(" " * _INDENT + line, style="dim") for line in _wrap(rest, width - _INDENT))]


def _labelled(label: str, texts: Iterable[str], width: int, style: str = "") -> list[Text]:
    """Return texts below each other, the label in front of the first."""
    lines = []
    for text in texts:
        for line in _wrap(text, width - _INDENT):
            lines.append(Text.assemble((f"{'' if lines else label:<{_INDENT}}", "bold"), (line, style)))
    return lines


def _wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(_INDENT, width), break_on_hyphens=False)
