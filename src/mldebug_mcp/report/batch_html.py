"""An inspection as one HTML file: no scripts, nothing loaded."""

from __future__ import annotations

from html import escape
from pathlib import Path

from mldebug_mcp.models.batch import BatchFinding, BatchInspection, BatchSummary, RowView, TemplateView, TokenView
from mldebug_mcp.report.batch_numbers import numbers, row_heading
from mldebug_mcp.report.quotes import quoted_once
from mldebug_mcp.report.writing import write_file

STYLE = """
:root { color-scheme: light dark; --line: #8884; --quiet: #777; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; } td { padding: .1rem 1.2rem .1rem 0; } td:first-child { color: var(--quiet); }
.finding { border-left: .3rem solid var(--line); padding: .2rem 0 .2rem 1rem; margin: 1rem 0; }
.error { border-color: #c33; } .warning { border-color: #c80; } .info { border-color: #38c; }
.finding p { margin: .3rem 0; } blockquote { margin: .3rem 0; font-style: italic; color: var(--quiet); }
.row, pre { font: 13px/1.7 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
.row { border: 1px solid var(--line); padding: .5rem; margin: .3rem 0 1.2rem; }
.row span { border-radius: 2px; } .trained { background: #3a36; } .masked { color: var(--quiet); }
.special { font-weight: bold; outline: 1px solid #85c8; } .padding { color: #a5a; font-style: italic; }
.role { float: right; color: var(--quiet); font-size: .8em; }
""".strip()


def write_page(inspection: BatchInspection, path: str | Path) -> None:
    """Write the inspection as a page.

    Raises:
        InputError: the file cannot be written.
    """
    write_file(path, page(inspection))


def page(inspection: BatchInspection) -> str:
    """Return the page. All text from the batch is escaped."""
    batch = inspection.batch
    findings = "".join(map(_finding, quoted_once(inspection.findings))) or "<p>Nothing wrong.</p>"
    parts = [
        f"<h1>{escape(batch.path)}</h1>",
        _table(batch),
        f"<h2>Found</h2>{findings}",
        "<h2>Rows</h2><p class=legend><span class=trained>trained on</span> · <span class=masked>masked</span> · "
        "<span class=special>special</span> · <span class=padding>padding</span></p>",
        *(_row(row, batch.unit) for row in inspection.rows),
    ]
    if inspection.template is not None:
        parts.append(f"<h2>The chat template on two exchanges</h2><pre>{_template(inspection.template)}</pre>")
    parts += [f"<p class=masked>{escape(note)}</p>" for note in inspection.notes]
    return (
        '<!doctype html>\n<html lang=en><head><meta charset=utf-8><meta name=viewport content="width=device-width">'
        "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(batch.path)}</title><style>{STYLE}</style></head>\n<body>{''.join(parts)}</body></html>\n"
    )


def _table(batch: BatchSummary) -> str:
    lines = [("purpose", batch.purpose + (" (inferred)" if batch.purpose_inferred else "")), *numbers(batch)]
    rows = "".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in lines)
    return f"<table>{rows}</table>"


def _finding(finding: BatchFinding) -> str:
    fixes = "".join(f"<p>{escape(name)}: {escape(fix)}</p>" for name, fix in finding.fixes.items())
    quotes = "".join(
        f"<blockquote>{escape(one.text)} — <cite>{escape(one.author)}, {escape(one.title)}</cite></blockquote>"
        for one in finding.citations
    )
    return (
        f'<div class="finding {finding.severity}"><p><b>{escape(finding.check)}</b> ({finding.severity}): '
        f"{escape(finding.summary)}</p><p>{escape(finding.why)}</p>"
        f"<p><b>Fix:</b> {escape(finding.fix)}</p>{fixes}{quotes}</div>"
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
