"""A diagnosis as one HTML file: the verdict, the curves with the onsets marked, then what they rest on."""

from __future__ import annotations

from html import escape
from pathlib import Path

from mldebug_mcp.logs import Run
from mldebug_mcp.models import Diagnosis
from mldebug_mcp.report.curves import panels
from mldebug_mcp.report.diagnosis_parts import (
    citation_html,
    compared_html,
    hypotheses_html,
    panel_html,
    paragraph,
    section,
    seen_html,
    step_html,
    to_log_html,
    verdict_html,
)
from mldebug_mcp.report.sections import notes_on, settings_section, worth_showing
from mldebug_mcp.report.sheet_html import SHEET_STYLE, events_html, quantities_html, ran_html, settings_html
from mldebug_mcp.report.shown import ONCE_CHECKED, SHOWN_STEPS, leading_citations
from mldebug_mcp.report.siblings_html import siblings_html
from mldebug_mcp.report.web_page import web_page
from mldebug_mcp.report.writing import write_file

_STYLE = """
.verdict { font-size: 1.1rem; border-left: .35rem solid var(--line); padding: .5rem 1rem; margin: 1rem 0; }
.verdict { font-size: 1rem; } .verdict > p { font-size: 1.15rem; } .verdict.fault { border-color: var(--warn); }
.verdict.healthy { border-color: var(--good); }
.verdict dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .2rem .8rem; margin: .6rem 0 0; }
.verdict dt { font-weight: bold; } .verdict dd { margin: 0; } .verdict dd p { margin: 0 0 .2rem; }
.verdict code { overflow-wrap: anywhere; }
.panel { margin: 1rem 0; } figcaption { display: flex; flex-wrap: wrap; justify-content: space-between; }
.key output { color: var(--dim); } .options { margin: 0; font-size: .85rem; }
#tools { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; font-size: .85rem; margin: 1rem 0; }
#tools button { font: inherit; min-height: 1.8rem; padding: 0 .7rem; }
#tools[hidden], .options[hidden] { display: none; } input[type=range] { vertical-align: middle; }
.plot { touch-action: pan-y; cursor: crosshair; overflow-x: auto; user-select: none; }
.plot svg { font: 11px system-ui, sans-serif; fill: currentColor; display: block; }
.plot svg[width] { width: auto; } .plot svg:not([width]) { min-width: 40rem; }
.curve { fill: none; stroke-width: 1.6; stroke-linejoin: round; } .curve.other { stroke-width: .9; }
.grid { stroke: #8884; } .restart { stroke: #8a8a8a; stroke-dasharray: 1 3; } .cursor { stroke: currentColor; }
.mark line { stroke: #c62828; stroke-dasharray: 4 3; } .mark rect { fill: #c62828; }
.mark text { fill: #fff; font-weight: bold; } .worst { fill: #c62828; }
.selection { fill: var(--info); opacity: .2; }
.seen { list-style: none; padding: 0; }
.seen .number { display: inline-block; min-width: 1.5em; margin-right: .5rem; border-radius: 1em; text-align: center;
  background: #c62828; color: #fff; font-size: .8em; font-weight: bold; }
.seen .harmless { background: #6b6b6b; }
.bar { display: inline-block; width: 8rem; height: .7rem; border: 1px solid var(--line); border-radius: 2px; }
.bar span { display: block; height: 100%; background: var(--warn); } .bar .good { background: var(--good); }
.likely th { text-align: left; font-weight: normal; color: var(--dim); padding-right: 1rem; }
.likely td { padding-bottom: .7rem; }
.call { color: var(--info); overflow-wrap: anywhere; }
@media (max-width: 40rem) { .likely .share { display: none; } ol { padding-left: 1.2rem; } body { margin: 1rem auto; } }
"""
_TOOLS = (
    "<div id=tools hidden><label>smoothing <input id=smoothing type=range min=0 max=0.98 step=0.02 value=0></label>"
    "<button id=closer type=button>zoom in</button><button id=wider type=button>zoom out</button>"
    "<button id=whole type=button disabled>whole run</button>"
    "<span class=dim>drag over the curves to zoom</span></div>"
)


def write_diagnosis_html(
    diagnosis: Diagnosis,
    run: Run,
    path: str | Path,
    reference: Run | None = None,
) -> None:
    """Write the diagnosis as a page that opens anywhere.

    Raises:
        InputError: the file cannot be written.
    """
    write_file(path, diagnosis_html(diagnosis, run, reference))


def diagnosis_html(
    diagnosis: Diagnosis,
    run: Run,
    reference: Run | None = None,
    *,
    live: bool = False,
) -> str:
    """Return the page. All text from the log is escaped.

    Args:
        diagnosis: In full.
        run: As it was read; the curves of its siblings are drawn behind.
        reference: The run that it was compared with, drawn behind, too.
        live: Whether it asks the server that it came from for a newer one.
    """
    parts = page_parts(diagnosis, run, reference)
    return (
        live_html(diagnosis.run.path, parts)
        if live
        else web_page(diagnosis.run.path, parts, _STYLE + SHEET_STYLE, _script())
    )


def live_html(title: str, parts: list[str]) -> str:
    """Return a page that is shown until a server has a newer one."""
    status = "<p id=live class=dim role=status></p>"
    return web_page(
        title, [status, *parts], _STYLE + SHEET_STYLE, f"{_script()}\n{_beside('live.js')}", calls_home=True
    )


def _script() -> str:
    """Return the script that draws the curves of a page."""
    return f'"use strict";\n{_beside("numbers.js")}\n{_beside("curves.js")}'


def _beside(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="ascii")


def page_parts(diagnosis: Diagnosis, run: Run, reference: Run | None = None) -> list[str]:
    """Return what stands on the page, from top to bottom."""
    seen = worth_showing(diagnosis.findings)
    pictures = [panel_html(one, run) for one in panels(run, diagnosis, seen, reference)]
    steps = "".join(map(step_html, diagnosis.next_steps[:SHOWN_STEPS]))
    once = f"<p class=dim>{escape(ONCE_CHECKED)}</p>" if steps else ""
    return [
        f"<h1>{escape(diagnosis.run.path)}</h1>",
        verdict_html(diagnosis),
        ran_html(diagnosis.sheet),
        *([_TOOLS, *pictures] if pictures else []),
        section("Seen in the log", seen_html(diagnosis, seen)),
        section("What happened when", events_html(diagnosis.sheet, run.step_name)),
        section("What was logged", quantities_html(diagnosis.sheet)),
        section("Settings", settings_html(diagnosis.sheet, settings_section(diagnosis))),
        compared_html(diagnosis),
        section("Other runs of its sweep", siblings_html(run)),
        section("What it may be (hypotheses, not verdicts)", hypotheses_html(diagnosis)),
        section("Check next", f"<ol>{steps}</ol>{once}" if steps else ""),
        section("Tied", "".join(paragraph(tie.summary) for tie in diagnosis.ties)),
        section("Not logged, but would have helped", "".join(map(to_log_html, diagnosis.what_to_log))),
        section("Not judged", "".join(paragraph(one, "dim") for one in diagnosis.sheet.not_judged)),
        section("Practitioners on this", "".join(map(citation_html, leading_citations(diagnosis.hypotheses)))),
        section("Notes", "".join(paragraph(note, "dim") for note in notes_on(diagnosis))),
    ]
