"""The short form of an inspection: what an agent needs first. The notes say what was left out."""

from __future__ import annotations

from mldebug_mcp.models.batch import BatchFinding, BatchInspection, RowView, TemplateView
from mldebug_mcp.report.quotes import quoted_once
from mldebug_mcp.text import shorten

MAX_ROWS_NAMED = 20
SHOWN_ROWS = 3
MAX_ROW_TEXT = 700
MAX_TEMPLATE = 400
MAX_COLUMNS = 20
MAX_NOTES = 8
DETAILED = 6
"""Findings that keep the fixes of all frameworks, places and a citation."""


def concise_inspection(inspection: BatchInspection) -> BatchInspection:
    """Return the inspection with bounded rows, texts and lists; about 10,000 characters at most."""
    notes = list(inspection.notes[:MAX_NOTES])
    if inspection.rows[SHOWN_ROWS:] or any(one.row_count > MAX_ROWS_NAMED for one in inspection.findings):
        notes.append("not all rows and row numbers are listed here")
    findings = quoted_once(inspection.findings, most=1)
    batch = inspection.batch.model_copy(update={"columns": inspection.batch.columns[:MAX_COLUMNS]})
    return inspection.model_copy(
        update={
            "batch": batch,
            "findings": [_short(one, detailed=number < DETAILED) for number, one in enumerate(findings)],
            "rows": [_row(row) for row in inspection.rows[:SHOWN_ROWS]],
            "template": _template(inspection.template),
            "notes": notes,
        }
    )


def _template(template: TemplateView | None) -> TemplateView | None:
    if template is None or len(template.text) <= MAX_TEMPLATE:
        return template
    return TemplateView(text=_cut(template.text, MAX_TEMPLATE))


def _short(finding: BatchFinding, *, detailed: bool) -> BatchFinding:
    update: dict[str, object] = {"rows": finding.rows[:MAX_ROWS_NAMED]}
    if not detailed:
        update |= {"fixes": {}, "places": [], "citations": []}
    else:
        update["places"] = [place.model_copy(update={"text": shorten(place.text, 80)}) for place in finding.places[:1]]
    return finding.model_copy(update=update)


def _row(row: RowView) -> RowView:
    return row.model_copy(update={"text": _cut(row.text, MAX_ROW_TEXT)})


def _cut(text: str, limit: int) -> str:
    """Return the two ends of a text: a row usually goes wrong at its beginning or its end."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]} ‹{len(text) - 2 * half} characters left out› {text[-half:]}"
