"""An inspection as one HTML file: what was found, and the rows with what is trained on."""

from __future__ import annotations

from html import escape
from pathlib import Path

from mldebug_mcp.models.batch import BatchFinding, BatchInspection, BatchSummary, RowView, TemplateView, TokenView
from mldebug_mcp.report.batch_numbers import in_sample, nothing_wrong, numbers, row_heading
from mldebug_mcp.report.quotes import quoted_once
from mldebug_mcp.report.web_page import prose, web_page
from mldebug_mcp.report.writing import write_file

_STYLE = """
td:first-child { color: var(--dim); }
.finding { border-left: .3rem solid var(--line); padding: .2rem 0 .2rem 1rem; margin: 1rem 0; }
.finding.error { border-color: #c33; } .finding.warning { border-color: #c80; } .finding.info { border-color: #38c; }
.row, pre { font: 13px/1.7 ui-monospace, monospace; white-space: pre-wrap;
  overflow-wrap: anywhere; }
.row { border: 1px solid var(--line); padding: .5rem; margin: .3rem 0 1.2rem; }
.row span { border-radius: 2px; } .trained { background: #3a36; } .masked { color: var(--dim); }
.special { font-weight: bold; outline: 1px solid #85c8; } .padding { color: #a5a; font-style: italic; }
.role { float: right; color: var(--dim); font-size: .8em; }
"""


def write_page(inspection: BatchInspection, path: str | Path) -> None:
    """Write the inspection as a page.

    Raises:
        InputError: the file cannot be written.
    """
    write_file(path, page(inspection))


def page(inspection: BatchInspection) -> str:
    """Return the page. All text from the batch is escaped."""
    batch = inspection.batch
    findings = (
        "".join(map(_finding, quoted_once(inspection.findings))) or f"<p>{nothing_wrong(batch).capitalize()}.</p>"
    )
    parts = [
        f"<h1>{escape(batch.path)}</h1>",
        _table(batch),
        f"<h2>{in_sample('Found', batch)}</h2>{findings}",
        "<h2>Rows</h2><p class=legend><span class=trained>trained on</span> · <span class=masked>masked</span> · "
        "<span class=special>special</span> · <span class=padding>padding</span></p>",
        *(_row(row, batch.unit) for row in inspection.rows),
    ]
    if inspection.template is not None:
        parts.append(f"<h2>The chat template on two exchanges</h2><pre>{_template(inspection.template)}</pre>")
    parts += [f"<p class=masked>{escape(note)}</p>" for note in inspection.notes]
    return web_page(batch.path, parts, _STYLE)


def _table(batch: BatchSummary) -> str:
    lines = [("purpose", batch.purpose + (" (inferred)" if batch.purpose_inferred else "")), *numbers(batch)]
    rows = "".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in lines)
    return f"<table>{rows}</table>"


def _finding(finding: BatchFinding) -> str:
    fixes = "".join(f"<p>{escape(name)}: {prose(fix)}</p>" for name, fix in finding.fixes.items())
    quotes = "".join(
        f"<blockquote>{escape(one.text)} — <cite>{escape(one.author)}, {escape(one.title)}</cite></blockquote>"
        for one in finding.citations
    )
    return (
        f'<div class="finding {finding.severity}"><p><b>{escape(finding.check)}</b> ({finding.severity}): '
        f"{escape(finding.summary)}</p><p>{escape(finding.why)}</p>"
        f"<p><b>Fix:</b> {prose(finding.fix)}</p>{fixes}{quotes}</div>"
    )


def _template(template: TemplateView) -> str:
    """Return the rendered template with the words of each role marked."""
    parts, place = [], 0
    for span in template.spans:
        words = escape(template.text[span.start : span.stop])
        kind = "trained" if span.role == "assistant" else "special"
        parts.append(
            f'{escape(template.text[place : span.start])}<span class={kind} title="{escape(span.role)}">{words}</span>'
        )
        place = span.stop
    return "".join(parts) + escape(template.text[place:])


def _row(row: RowView, unit: str) -> str:
    name, counts = row_heading(row, unit)
    pieces = "".join(map(_token, row.pieces)) if row.pieces else escape(row.text)
    return f"<div><b>{escape(name)}</b>: {counts}<div class=row>{pieces}</div></div>"


def _token(token: TokenView) -> str:
    title = f"{token.kind}, id {token.id}" + (f", {token.role}" if token.role else "")
    return f'<span class="{" ".join(token.kind.split())}" title="{escape(title)}">{escape(token.text)}</span>'
