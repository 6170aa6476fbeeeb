"""A diagnosis as one HTML file: the curves with the onsets marked, then what is seen, what it may be, what to check."""

from __future__ import annotations

from html import escape
from pathlib import Path

from mldebug_mcp.logs import Run
from mldebug_mcp.models import Citation, Diagnosis, Finding, Hypothesis, MetricToLog, NextStep, State
from mldebug_mcp.report.commands import as_command
from mldebug_mcp.report.curves import Panel, panels
from mldebug_mcp.report.diagnosis_concise import worth_showing
from mldebug_mcp.report.shown import (
    ONCE_CHECKED,
    SHOWN_HYPOTHESES,
    SHOWN_STEPS,
    also_for,
    in_a_sentence,
    leading_citations,
    notes_on,
    nothing_seen,
    others_together,
    partings,
    settings_apart,
    what_was_read,
)
from mldebug_mcp.report.svg import MAX_NAME, colours, panel_svg
from mldebug_mcp.report.web_page import prose, web_page
from mldebug_mcp.report.writing import write_file
from mldebug_mcp.text import figure, percent, shorten

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
    findings = "".join(_finding(number, one) for number, one in enumerate(seen, start=1))
    steps = "".join(map(_step, diagnosis.next_steps[:SHOWN_STEPS]))
    once = f"<p class=dim>{escape(ONCE_CHECKED)}</p>" if steps else ""
    parts = [
        f"<h1>{escape(diagnosis.run.path)}</h1><p class=dim>{escape(what_was_read(diagnosis, run))}</p>",
        *(_panel(one, run) for one in panels(run, diagnosis, seen, reference)),
        _section("Seen in the log", f"<ul class=seen>{findings}</ul>" if seen else _paragraph(nothing_seen(diagnosis))),
        _compared(diagnosis),
        _section("What it may be (hypotheses, not verdicts)", _hypotheses(diagnosis)),
        _section("Check next", f"<ol>{steps}</ol>{once}" if steps else ""),
        _section("Tied", "".join(_paragraph(tie.summary) for tie in diagnosis.ties)),
        _section("Not logged, but would have helped", "".join(map(_to_log, diagnosis.what_to_log))),
        _section("Practitioners on this", "".join(map(_citation, leading_citations(diagnosis.hypotheses)))),
        _section("Notes", "".join(_paragraph(note, "dim") for note in notes_on(diagnosis))),
    ]
    return web_page(diagnosis.run.path, parts, _STYLE)


def _section(title: str, body: str) -> str:
    return f"<h2>{escape(title)}</h2>{body}" if body else ""


def _paragraph(text: str, kind: str = "") -> str:
    return f'<p class="{kind}">{prose(text)}</p>' if kind else f"<p>{prose(text)}</p>"


def _panel(panel: Panel, run: Run) -> str:
    key = "".join(
        f'<span style="background:{colour}"></span>{escape(shorten(one.name, MAX_NAME))}'
        f"{' of the reference run' if one.is_reference else ''}"
        for one, colour in zip(panel.curves, colours(panel), strict=True)
    )
    remarks = ["logarithmic scale"] if panel.scale.logarithmic else []
    if panel.beyond is not None:
        remarks.append(f"values to {figure(panel.beyond)} are beyond the scale")
    if panel.restarts:
        remarks.append("dotted: restarts")
    if any(len(one.lost) for one in panel.curves):
        remarks.append("× is NaN or infinite")
    told = f" <small>({'; '.join(remarks)})</small>" if remarks else ""
    picture = panel_svg(panel, run.first_step, run.last_step, run.step_name)
    return f'<div class="panel"><p class="key">{key}{told}</p>{picture}</div>'


def _finding(number: int, finding: Finding) -> str:
    harmless = finding.state is not State.PRESENT
    kind = "number harmless" if harmless else "number"
    return (
        f'<li><span class="{kind}">{number}</span><b>{escape(finding.symptom)}</b>: {escape(finding.summary)}'
        f"{' (harmless)' if harmless else ''}</li>"
    )


def _compared(diagnosis: Diagnosis) -> str:
    comparison = diagnosis.comparison
    if comparison is None:
        return ""
    lines = [*partings(comparison, diagnosis.run.step_name), *settings_apart(comparison)]
    return _section(f"Compared with {comparison.reference}", "".join(map(_paragraph, lines)))


def _hypotheses(diagnosis: Diagnosis) -> str:
    rest, words = others_together(diagnosis)
    rows = [_hypothesis(one) for one in diagnosis.hypotheses[:SHOWN_HYPOTHESES]]
    rows.append(f"<tr><td class=number>{percent(rest)}</td><td></td><td class=dim>{escape(words)}</td></tr>")
    return f"<table class=likely>{''.join(rows)}</table>"


def _hypothesis(one: Hypothesis) -> str:
    reasons = {"for it": one.because, "against it": one.against[:3]}
    told = "".join(_paragraph(f"{side}: {', '.join(said)}", "dim") for side, said in reasons.items() if said)
    said = f": {prose(in_a_sentence(one))}" if one.summary else ""
    fix = _paragraph(f"the usual fix: {one.fix}", "dim") if one.fix and one.because else ""
    return (
        f"<tr><td class=number><b>{percent(one.probability)}</b><br><span class=dim>{escape(one.credence)}</span></td>"
        f'<td><span class=bar><span class="{"good" if one.cause == "healthy" else "cause"}" '
        f'style="width:{one.probability:.1%}"></span></span></td>'
        f"<td><b>{escape(one.cause)}</b>{said}{told}{fix}</td></tr>"
    )


def _step(step: NextStep) -> str:
    others = f"; also for {', '.join(also_for(step))}" if also_for(step) else ""
    call = f"<p><code class=call>{escape(as_command(step.call))}</code></p>" if step.call else ""
    return (
        f"<li><p>{prose(step.action)} <span class=dim>({escape(f'{step.id}: {step.cost}{others}')})</span></p>"
        f"{_paragraph(f'confirms: {step.confirms}', 'dim')}{_paragraph(f'refutes: {step.refutes}', 'dim')}{call}</li>"
    )


def _to_log(one: MetricToLog) -> str:
    return (
        f"<p><b>{escape(one.metric)}</b>: {prose(one.how)} "
        f"<span class=dim>(bears on {escape(', '.join(one.splits))})</span></p>"
    )


def _citation(one: Citation) -> str:
    return (
        f"<blockquote>“{escape(one.text)}”<cite>— {escape(one.author)}, {escape(one.title)} [{escape(one.id)}] "
        f'<a href="{escape(one.url)}">{escape(one.url)}</a></cite></blockquote>'
    )
