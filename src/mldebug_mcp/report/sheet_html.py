"""The sheet of a run as HTML: what ran, its settings, a line per quantity, and what happened when."""

from __future__ import annotations

from html import escape

from mldebug_mcp.models.sheet import EventFact, QuantityFact, SettingFact, Sheet
from mldebug_mcp.report.sections import Section
from mldebug_mcp.text import figure

SHEET_STYLE = """
.wide { overflow-x: auto; } .sweep th { text-align: left; font-weight: normal; color: var(--dim); }
.sweep th, .sweep td { padding: .1rem 1.2rem .1rem 0; vertical-align: top; }
.ran, .settings, .quantities { padding-left: 1.1rem; } .ran { margin: .3rem 0; }
.settings { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; }
.settings mark { background: none; color: var(--warn); font-weight: bold; }
.quantities li { margin: .35rem 0; overflow-wrap: anywhere; } .quantities p { margin: 0; }
.events th { text-align: left; font-weight: normal; color: var(--dim); }
"""


def ran_html(sheet: Sheet) -> str:
    """Return what ran, how much of the plan, and how the log ends."""
    lines = "".join(f"<li>{escape(line)}</li>" for line in sheet.ran)
    return f"<ul class=ran>{lines}</ul>" if lines else ""


def settings_html(sheet: Sheet, shown: Section) -> str:
    """Return the settings: unusual ones marked with what is usual, then those in use, and all of them folded."""
    marked = "".join(f"<li>{_setting(one)}</li>" for one in sheet.settings if one.usual)
    used = "".join(f"<li>{escape(line)}</li>" for line in shown.lines if line not in shown.marked)
    items = f"<ul class=settings>{marked}{used}</ul>" if marked or used else ""
    every = "".join(f"<li>{_setting(one)}</li>" for one in sheet.settings)
    return f"{items}<details><summary>all settings</summary><ul class=settings>{every}</ul></details>" if every else ""


def quantities_html(sheet: Sheet) -> str:
    """Return a line for each quantity that was logged."""
    items = "".join(f"<li>{_quantity(one)}</li>" for one in sheet.quantities)
    return f"<ul class=quantities>{items}</ul>" if items else ""


def events_html(sheet: Sheet, step_name: str) -> str:
    """Return what happened, in the order in which it did."""
    rows = "".join(map(_event, sheet.events))
    head = f"<tr><th scope=col>{escape(step_name)}</th><th scope=col>what happened</th></tr>"
    return f"<table class=events><thead>{head}</thead><tbody>{rows}</tbody></table>" if rows else ""


def _setting(one: SettingFact) -> str:
    shown = f"{escape(one.name)} = {escape(one.value)}"
    return f"<mark>{shown}</mark> <span class=dim>(usual: {escape(one.usual)})</span>" if one.usual else shown


def _quantity(one: QuantityFact) -> str:
    first, *others = one.parts or [one.name]
    rest = "".join(f"<p class=dim>{escape(part)}</p>" for part in others)
    return f"{escape(first)}{rest}"


def _event(one: EventFact) -> str:
    return f"<tr><td class=number>{figure(one.step)}</td><td>{escape(str(one))}</td></tr>"
