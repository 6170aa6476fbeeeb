"""A diagnosis as one HTML file: the verdict, the curves with the onsets marked, then what they rest on."""

from __future__ import annotations

from html import escape
from pathlib import Path

from mldebug_mcp.logs import Run
from mldebug_mcp.models import Diagnosis
from mldebug_mcp.report.curves import panels
from mldebug_mcp.report.diagnosis_concise import worth_showing
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
from mldebug_mcp.report.shown import ONCE_CHECKED, SHOWN_STEPS, leading_citations, notes_on, what_was_read
from mldebug_mcp.report.web_page import web_page
from mldebug_mcp.report.writing import write_file

_STYLE = """
.panel { margin: 1rem 0; }
.seen { list-style: none; padding: 0; }
.seen .number { display: inline-block; min-width: 1.5em; margin-right: .5rem; border-radius: 1em; text-align: center;
  background: #c62828; color: #fff; font-size: .8em; font-weight: bold; }
.seen .harmless { background: #777; }
.bar { display: inline-block; width: 8rem; height: .7rem; border: 1px solid var(--line); border-radius: 2px; }
.bar span { display: block; height: 100%; background: var(--warn); } .bar .good { background: var(--good); }
.likely td { padding-bottom: .7rem; }
.call { color: var(--info); }
"""


def write_diagnosis_html(diagnosis: Diagnosis, run: Run, path: str | Path, reference: Run | None = None) -> None:
    """Write the diagnosis as a page that opens anywhere.

    Raises:
        InputError: the file cannot be written.
    """
    write_file(path, diagnosis_html(diagnosis, run, reference))


def diagnosis_html(diagnosis: Diagnosis, run: Run, reference: Run | None = None) -> str:
    """Return the page. All text from the log is escaped.

    Args:
        diagnosis: In full.
        run: As it was read.
        reference: The run that it was compared with; its curves are drawn behind.
    """
    seen = worth_showing(diagnosis.findings)
    steps = "".join(map(step_html, diagnosis.next_steps[:SHOWN_STEPS]))
    once = f"<p class=dim>{escape(ONCE_CHECKED)}</p>" if steps else ""
    parts = [
        f"<h1>{escape(diagnosis.run.path)}</h1><p class=dim>{escape(what_was_read(diagnosis, run))}</p>",
        verdict_html(diagnosis),
        *(panel_html(one, run) for one in panels(run, diagnosis, seen, reference)),
        section("Seen in the log", seen_html(diagnosis, seen)),
        compared_html(diagnosis),
        section("What it may be (hypotheses, not verdicts)", hypotheses_html(diagnosis)),
        section("Check next", f"<ol>{steps}</ol>{once}" if steps else ""),
        section("Tied", "".join(paragraph(tie.summary) for tie in diagnosis.ties)),
        section("Not logged, but would have helped", "".join(map(to_log_html, diagnosis.what_to_log))),
        section("Practitioners on this", "".join(map(citation_html, leading_citations(diagnosis.hypotheses)))),
        section("Notes", "".join(paragraph(note, "dim") for note in notes_on(diagnosis))),
    ]
    return web_page(diagnosis.run.path, parts, _STYLE)
