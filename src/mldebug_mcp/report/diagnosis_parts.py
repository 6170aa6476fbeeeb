"""The parts of a diagnosis as HTML, for pages and notebooks alike. All text from the log is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from mldebug_mcp.logs import Run
from mldebug_mcp.models import Citation, Diagnosis, Finding, Hypothesis, MetricToLog, NextStep, State
from mldebug_mcp.models.base import SOUND
from mldebug_mcp.report.commands import as_command
from mldebug_mcp.report.curves import Panel
from mldebug_mcp.report.panel_json import panel_json
from mldebug_mcp.report.sections import (
    Check,
    hypotheses_shown,
    other_hypotheses,
    reasons_of,
    title_of,
    verdict_block,
)
from mldebug_mcp.report.shown import (
    also_for,
    partings,
    settings_apart,
)
from mldebug_mcp.report.svg import colours, panel_svg
from mldebug_mcp.report.web_page import prose
from mldebug_mcp.text import figure, percent


def verdict_html(diagnosis: Diagnosis) -> str:
    """Return the verdict block: what leads, why, the next check with its command, the fix."""
    block = verdict_block(diagnosis)
    rows = [("Why", "".join(f"<p>{prose(fact)}</p>" for fact in block.facts))]
    rows += [("Next", _check_html(block.check))] if block.check is not None else []
    rows += [("Fix", f"<p>{prose(block.fix)}</p>")] if block.fix else []
    lines = "".join(f"<dt>{name}</dt><dd>{body}</dd>" for name, body in rows if body)
    kind = block.kind.replace(" ", "-")
    more = f"<dl>{lines}</dl>" if lines else ""
    return f'<div class="verdict {kind}"><p><b>{prose(block.headline)}</b></p>{more}</div>'


def _check_html(check: Check) -> str:
    outcome = f"confirms: {check.confirms}; refutes: {check.refutes}." if check.confirms else ""
    rest = " ".join([*([outcome] if outcome else []), *([f"({check.needs})"] if check.needs else [])])
    return (
        f"<p>{prose(check.action)} <span class=dim>({escape(check.id)}: {check.cost})</span></p>"
        f"<p><code class=call>{escape(check.command)}</code></p>{paragraph(rest, 'dim') if rest else ''}"
    )


def section(title: str, body: str) -> str:
    """Return a titled part of a page; nothing where there is nothing in it."""
    return f"<h2>{escape(title)}</h2>{body}" if body else ""


def paragraph(text: str, kind: str = "") -> str:
    """Return text of ours as a paragraph."""
    return f'<p class="{kind}">{prose(text)}</p>' if kind else f"<p>{prose(text)}</p>"


def picture_html(panel: Panel, run: Run) -> str:
    """Return a panel with the key to its curves."""
    return f'<div class="panel">{_key(panel)}{panel_svg(panel, run.first_step, run.last_step, run.step_name)}</div>'


def panel_html(panel: Panel, run: Run) -> str:
    """Return a panel whose script shows values, zooms and smooths; without a script it is the picture."""
    name = escape(panel.curves[-1].title)
    picture = panel_svg(panel, run.first_step, run.last_step, run.step_name)
    help_ = "arrow keys move along the curves, plus and minus zoom, 0 shows all"
    return (
        f"<figure class=panel><figcaption>{_key(panel, readings=True)}"
        "<p class=options hidden><label><input type=checkbox class=logarithmic> logarithmic</label></p></figcaption>"
        f'<div class=plot tabindex=0 role=group aria-label="Curves of {name}: {help_}">{picture}</div>'
        f'<script type="application/json">{panel_json(panel, run.first_step, run.last_step)}</script></figure>'
    )


def _key(panel: Panel, *, readings: bool = False) -> str:
    """Return which curve has which colour; with `readings`, room for the value of each under the pointer."""
    value = " <output></output>" if readings else ""
    key = "".join(
        f'<bdi><span style="background:{colour}"></span>{escape(one.title)}{value}</bdi> '
        for one, colour in zip(panel.curves, colours(panel), strict=True)
    )
    remarks = ["logarithmic scale"] if panel.scale.logarithmic and not readings else []
    if panel.beyond is not None:
        remarks.append(f"values to {figure(panel.beyond)} are beyond the scale")
    if panel.worst is not None:
        remarks.append("▲ the worst event")
    if panel.restarts:
        remarks.append("dotted: restarts")
    if any(len(one.lost) for one in panel.curves):
        remarks.append("× is NaN or infinite")
    told = f" <small>({'; '.join(remarks)})</small>" if remarks else ""
    return f'<p class="key">{key}{told}</p>'


def seen_html(diagnosis: Diagnosis, seen: Sequence[Finding]) -> str:
    """Return the list of what is seen, numbered as in the pictures."""
    items = "".join(_finding(number, one) for number, one in enumerate(seen, start=1))
    if seen:
        return f"<ul class=seen>{items}</ul>"
    return "" if diagnosis.verdict.kind == "not judged" else paragraph("nothing unusual")


def _finding(number: int, finding: Finding) -> str:
    harmless = finding.state is not State.PRESENT
    kind = "number harmless" if harmless else "number"
    return (
        f'<li><span class="{kind}">{number}</span><b>{escape(finding.symptom)}</b>: {escape(finding.summary)}'
        f"{' (harmless)' if harmless else ''}</li>"
    )


def compared_html(diagnosis: Diagnosis) -> str:
    """Return how a run differs from its reference; nothing without one."""
    comparison = diagnosis.comparison
    if comparison is None:
        return ""
    lines = [*partings(comparison, diagnosis.run.step_name), *settings_apart(comparison)]
    return section(f"Compared with {comparison.reference}", "".join(map(paragraph, lines)))


def hypotheses_html(diagnosis: Diagnosis) -> str:
    """Return the leading hypotheses as a table, with the facts for and against each."""
    rows = [_hypothesis(one, folded=place > 0) for place, one in enumerate(hypotheses_shown(diagnosis, whole=True))]
    head = "<tr><th scope=col>probability</th><th scope=col class=share>share</th><th scope=col>hypothesis</th></tr>"
    table = f"<table class=likely><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"
    return f"{table}{paragraph(other_hypotheses(diagnosis), 'dim')}"


def _hypothesis(one: Hypothesis, *, folded: bool) -> str:
    sides = {"for it": reasons_of(one, +1, whole=True), "against it": reasons_of(one, -1, whole=True)}
    facts = "".join(
        f"<p class=dim>{side}:</p><ul class=dim>{''.join(f'<li>{prose(fact)}</li>' for fact in some)}</ul>"
        for side, some in sides.items()
        if some
    )
    title = f": {prose(title_of(one))}" if title_of(one) else ""
    fix = paragraph(f"the usual fix: {one.fix}", "dim") if one.fix and one.because else ""
    more = f"{facts}{fix}"
    if folded and more:
        more = f"<details><summary>facts for and against it</summary>{more}</details>"
    return (
        f"<tr><td class=number><b>{percent(one.probability)}</b><br><span class=dim>{escape(one.credence)}</span></td>"
        f'<td class=share><span class=bar><span class="{"good" if one.cause == SOUND else "cause"}" '
        f'style="width:{one.probability:.1%}"></span></span></td>'
        f"<td><b>{escape(one.cause)}</b>{title}{more}</td></tr>"
    )


def step_html(step: NextStep) -> str:
    """Return a check, how it comes out, and the command that makes it."""
    others = f"; also for {', '.join(also_for(step))}" if also_for(step) else ""
    call = f"<p><code class=call>{escape(as_command(step.call))}</code></p>" if step.call else ""
    return (
        f"<li><p>{prose(step.action)} <span class=dim>({escape(f'{step.id}: {step.cost}{others}')})</span></p>"
        f"{paragraph(f'confirms: {step.confirms}', 'dim')}{paragraph(f'refutes: {step.refutes}', 'dim')}{call}</li>"
    )


def to_log_html(one: MetricToLog) -> str:
    """Return a metric that would have helped, and how to log it."""
    return (
        f"<p><b>{escape(one.metric)}</b>: {prose(one.how)} "
        f"<span class=dim>(bears on {escape(', '.join(one.splits))})</span></p>"
    )


def citation_html(one: Citation) -> str:
    """Return a quote with its source."""
    return (
        f"<blockquote>“{escape(one.text)}”<cite>— {escape(one.author)}, {escape(one.title)} [{escape(one.id)}] "
        f'<a href="{escape(one.url)}">{escape(one.url)}</a></cite></blockquote>'
    )
