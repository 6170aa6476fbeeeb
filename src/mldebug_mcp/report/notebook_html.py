"""A diagnosis as a notebook shows it below a cell: part of a page that is not ours, without scripts."""

from __future__ import annotations

from html import escape

from mldebug_mcp.logs import Run
from mldebug_mcp.models import Diagnosis
from mldebug_mcp.report.curves import panels
from mldebug_mcp.report.diagnosis_parts import hypotheses_html, picture_html, seen_html, verdict_html
from mldebug_mcp.report.sections import worth_showing
from mldebug_mcp.report.shown import what_was_read
from mldebug_mcp.text import clean

SHOWN_PANELS = 3
# The class stands twice where Jupyter has rules of its own for tables: theirs align all cells to the right.
_STYLE = """
.mldebug { max-width: 60rem; font-size: 14px; line-height: 1.45; }
.mldebug svg { width: 100%; height: auto; } .mldebug p { margin: .3rem 0; } .mldebug .dim { opacity: .75; }
.mldebug .verdict dt { font-weight: bold; } .mldebug .verdict dd { margin: 0 0 .2rem 1rem; }
.mldebug .verdict { border-left: .3rem solid #888; padding: .3rem .8rem; }
.mldebug .verdict.fault { border-color: #b26a00; } .mldebug .verdict.healthy { border-color: #2e7d32; }
.mldebug .key span { display: inline-block; width: 11px; height: 11px; margin: 0 4px 0 12px; }
.mldebug .seen { list-style: none; padding: 0; }
.mldebug .seen .number { display: inline-block; min-width: 1.5em; margin-right: .5rem; border-radius: 1em;
  text-align: center; background: #c62828; color: #fff; font-size: .8em; font-weight: bold; }
.mldebug .seen .harmless { background: #666; }
.mldebug.mldebug table td, .mldebug.mldebug table th { text-align: left; vertical-align: top; white-space: normal;
  padding: .2rem .8rem .2rem 0; }
.mldebug.mldebug table td.number { text-align: right; white-space: nowrap; }
.mldebug .bar { display: inline-block; width: 6rem; height: .7rem; border: 1px solid #8888; }
.mldebug .bar span { display: block; height: 100%; background: #b26a00; } .mldebug .bar .good { background: #2e7d32; }
""".strip()


def notebook_html(diagnosis: Diagnosis, run: Run, reference: Run | None = None) -> str:
    """Return what is shown: the verdict, the first curves, what is seen, and the causes.

    Its colours are those of the notebook, light or dark; its rules hold for itself alone.
    """
    seen = worth_showing(diagnosis.findings)
    drawn = panels(run, diagnosis, seen, reference)[:SHOWN_PANELS]
    return clean(
        f"<div class=mldebug><style>{_STYLE}</style>"
        f"<p><b>{escape(diagnosis.run.path)}</b>: {escape(what_was_read(diagnosis, run))}</p>"
        f"{verdict_html(diagnosis)}{''.join(picture_html(one, run) for one in drawn)}"
        f"{seen_html(diagnosis, seen)}{hypotheses_html(diagnosis)}</div>"
    )
