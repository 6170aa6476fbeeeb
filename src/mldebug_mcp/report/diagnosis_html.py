"""A diagnosis as a page, and in a notebook."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from mldebug_mcp.checks.results import Result, result_of
from mldebug_mcp.core.text import clean, figure, percent, shorten
from mldebug_mcp.judge.next_call import as_command
from mldebug_mcp.judge.reader import opinion_lines
from mldebug_mcp.logs import Run
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.models import Citation, Diagnosis, Finding, Hypothesis, MetricToLog, NextStep, State
from mldebug_mcp.models.base import SOUND
from mldebug_mcp.models.diagnosis import SettingFact, Sheet
from mldebug_mcp.report.chart import colours, panel_svg
from mldebug_mcp.report.curves import Curve, Panel, labels, panels
from mldebug_mcp.report.sections import (
    ONCE_CHECKED,
    SHOWN_STEPS,
    Section,
    also_for,
    checkpoint_lines,
    hypotheses_shown,
    leading_citations,
    notes_on,
    other_hypotheses,
    otherwise,
    partings,
    reasons_of,
    settings_apart,
    settings_section,
    title_of,
    verdict_block,
    what_was_read,
    worth_showing,
)
from mldebug_mcp.report.web_page import block_html, prose, web_page

# The sheet of a run as HTML: what ran, its settings, a line per quantity, and what happened when.


SHEET_STYLE = """
.wide { overflow-x: auto; } .sweep th { text-align: left; font-weight: normal; color: var(--dim); }
.sweep th, .sweep td { padding: .1rem 1.2rem .1rem 0; vertical-align: top; }
.ran, .settings, .quantities { padding-left: 1.1rem; } .ran { margin: .3rem 0; }
.settings { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; }
.settings mark { background: none; color: var(--warn); font-weight: bold; }
.quantities li { margin: .35rem 0; overflow-wrap: anywhere; } .quantities p { margin: 0; }
.events th { text-align: left; font-weight: normal; color: var(--dim); }
"""


def list_html(items: Iterable[str], kind: str = "") -> str:
    """Return items that are HTML already as a list of a kind; nothing where there are none."""
    listed = "".join(f"<li>{item}</li>" for item in items)
    return f"<ul{kind and f' class={kind}'}>{listed}</ul>" if listed else ""


def settings_html(sheet: Sheet, shown: Section) -> str:
    """Return the settings: unusual ones marked with what is usual, then those in use, and all of them folded."""
    marked = [_setting(setting) for setting in sheet.settings if setting.usual]
    used = [escape(line) for line in shown.lines if line not in shown.marked]
    every = list_html(map(_setting, sheet.settings), "settings")
    folded = f"<details><summary>all settings</summary>{every}</details>" if every else ""
    return list_html([*marked, *used], "settings") + folded


def quantities_html(sheet: Sheet) -> str:
    """Return a line for each quantity that was logged."""
    lines = (quantity.parts or [quantity.name] for quantity in sheet.quantities)
    return list_html(
        (escape(first) + "".join(f"<p class=dim>{escape(part)}</p>" for part in others) for first, *others in lines),
        "quantities",
    )


def events_html(sheet: Sheet, step_name: str) -> str:
    """Return what happened, in the order in which it did."""
    rows = "".join(
        f"<tr><td class=number>{figure(event.step)}</td><td>{escape(str(event))}</td></tr>" for event in sheet.events
    )
    head = f"<tr><th scope=col>{escape(step_name)}</th><th scope=col>what happened</th></tr>"
    return f"<table class=events><thead>{head}</thead><tbody>{rows}</tbody></table>" if rows else ""


def _setting(setting_fact: SettingFact) -> str:
    shown = f"{escape(setting_fact.name)} = {escape(setting_fact.value)}"
    return (
        f"<mark>{shown}</mark> <span class=dim>(usual: {escape(setting_fact.usual)})</span>"
        if setting_fact.usual
        else shown
    )


MAX_SIBLING_ROWS = 12
"""Rows: those that end best, and the run itself."""
LONGEST_NAME = 60


def siblings_html(run: Run) -> str:
    """Return a table of the run and its siblings, best first; nothing without siblings or results."""
    own = result_of(run)
    if own is None or not run.siblings:
        return ""
    named = [(sibling.name, otherwise(sibling), result_of(sibling.run, own.metric)) for sibling in run.siblings]
    found = [("this run", "", own), *((name, set_, result) for name, set_, result in named if result is not None)]
    ordered = sorted(found, key=lambda row: row[2].last, reverse=own.higher_is_better)
    place = next(at for at, row in enumerate(ordered) if row[2] is own)
    shown = (
        ordered[:MAX_SIBLING_ROWS] if place < MAX_SIBLING_ROWS else [*ordered[: MAX_SIBLING_ROWS - 1], ordered[place]]
    )
    metric = escape(shorten(own.metric, LONGEST_NAME))
    cells = ("run", "set otherwise", f"{metric} at the end", "best", "at")
    head = "".join(f"<th scope=col>{cell}</th>" for cell in cells)
    rows = "".join(_row(*row, is_own=row[2] is own) for row in shown)
    left = f"<p class=dim>{len(ordered) - len(shown)} more</p>" if len(ordered) > len(shown) else ""
    return f"<div class=wide><table class=sweep><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{left}"


def _row(name: str, settings: str, result: Result, *, is_own: bool) -> str:
    shown = escape(shorten(name, LONGEST_NAME))
    numbers = "".join(
        f"<td class=number>{figure(value)}</td>" for value in (result.last, result.best, result.best_step)
    )
    return f"<tr><td>{f'<b>{shown}</b>' if is_own else shown}</td><td>{escape(settings)}</td>{numbers}</tr>"


SIGNIFICANT_DIGITS = 6
"""Significant digits of a value: more than a screen shows."""
LABEL_WIDTH_STEPS = 0.0
"""Steps within which the labels of two marks are put together: only those of one step."""


def panel_json(panel: Panel, run: Run) -> str:
    """Return the panel over the steps of a run, safe inside of an element of HTML.

    Names were cleaned before they get here: what JSON escapes would come to life again.
    """
    data = {
        "across": run.step_name,
        "first": run.first_step,
        "last": run.last_step,
        "low": panel.scale.low,
        "high": panel.scale.high,
        "logarithmic": panel.scale.logarithmic,
        "worst": panel.worst,
        "restarts": list(panel.restarts),
        "marks": [
            {
                "number": number,
                "step": group[0].step,
                "text": "; ".join(mark.words for mark in group),
            }
            for number, group in labels(panel.marks, LABEL_WIDTH_STEPS, LABEL_WIDTH_STEPS)
        ],
        "curves": [_curve(curve, colour) for curve, colour in zip(panel.curves, colours(panel), strict=True)],
    }
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _curve(curve: Curve, colour: str) -> dict[str, object]:
    return {
        "name": curve.title,
        "of": bool(curve.of),
        "colour": colour,
        "lines": [[_rounded(step), _rounded(value)] for step, value in curve.lines],
        "lost": _rounded(curve.lost),
    }


def _rounded(values: Floats) -> list[float]:
    return [
        int(value) if value == int(value) and abs(value) < 1e15 else float(f"{value:.{SIGNIFICANT_DIGITS}g}")
        for value in values.tolist()
    ]


def section(title: str, body: str) -> str:
    """Return a titled part of a page; nothing where there is nothing in it."""
    return f"<h2>{escape(title)}</h2>{body}" if body else ""


def paragraph(text: str, kind: str = "") -> str:
    """Return text of ours as a paragraph."""
    return f'<p class="{kind}">{prose(text)}</p>' if kind else f"<p>{prose(text)}</p>"


def panel_html(panel: Panel, run: Run) -> str:
    """Return a panel whose script shows values, zooms and smooths; without a script it is the picture."""
    name = escape(panel.curves[-1].title)
    picture = panel_svg(panel, run.first_step, run.last_step, run.step_name)
    help_ = "arrow keys move along the curves, plus and minus zoom, 0 shows all"
    return (
        f"<figure class=panel><figcaption>{_key(panel, readings=True)}"
        "<p class=options hidden><label><input type=checkbox class=logarithmic> logarithmic</label></p></figcaption>"
        f'<div class=plot tabindex=0 role=group aria-label="Curves of {name}: {help_}">{picture}</div>'
        f'<script type="application/json">{panel_json(panel, run)}</script></figure>'
    )


def _key(panel: Panel, *, readings: bool = False) -> str:
    """Return which curve has which colour; with `readings`, room for the value of each under the pointer."""
    value = " <output></output>" if readings else ""
    key = "".join(
        f'<bdi><span style="background:{colour}"></span>{escape(curve.title)}{value}</bdi> '
        for curve, colour in zip(panel.curves, colours(panel), strict=True)
    )
    remarks = ["logarithmic scale"] if panel.scale.logarithmic and not readings else []
    if panel.beyond is not None:
        remarks.append(f"values to {figure(panel.beyond)} are beyond the scale")
    if panel.worst is not None:
        remarks.append("▲ the worst event")
    if panel.restarts:
        remarks.append("dotted: restarts")
    if any(len(curve.lost) for curve in panel.curves):
        remarks.append("× is NaN or infinite")
    small_print = f" <small>({'; '.join(remarks)})</small>" if remarks else ""
    return f'<p class="key">{key}{small_print}</p>'


def findings_html(diagnosis: Diagnosis, findings: Sequence[Finding]) -> str:
    """Return the list of what is seen, numbered as in the pictures."""
    items = "".join(_finding(number, finding) for number, finding in enumerate(findings, start=1))
    if findings:
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
    rows = [
        _hypothesis(hypothesis, folded=place > 0)
        for place, hypothesis in enumerate(hypotheses_shown(diagnosis, whole=True))
    ]
    head = "<tr><th scope=col>probability</th><th scope=col class=share>share</th><th scope=col>hypothesis</th></tr>"
    table = f"<table class=likely><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"
    return f"{table}{paragraph(other_hypotheses(diagnosis), 'dim')}"


def _hypothesis(hypothesis: Hypothesis, *, folded: bool) -> str:
    sides = {"for it": reasons_of(hypothesis, +1, whole=True), "against it": reasons_of(hypothesis, -1, whole=True)}
    facts = "".join(
        f"<p class=dim>{side}:</p>{list_html(map(prose, some), 'dim')}" for side, some in sides.items() if some
    )
    title = f": {prose(title_of(hypothesis))}" if title_of(hypothesis) else ""
    fix = paragraph(f"the usual fix: {hypothesis.fix}", "dim") if hypothesis.fix and hypothesis.because else ""
    more = f"{facts}{fix}"
    if folded and more:
        more = f"<details><summary>facts for and against it</summary>{more}</details>"
    return (
        f"<tr><td class=number><b>{percent(hypothesis.probability)}</b><br><span "
        f"class=dim>{escape(hypothesis.credence)}</span></td>"
        f'<td class=share><span class=bar><span class="{"good" if hypothesis.cause == SOUND else "cause"}" '
        f'style="width:{hypothesis.probability:.1%}"></span></span></td>'
        f"<td><b>{escape(hypothesis.cause)}</b>{title}{more}</td></tr>"
    )


def step_html(step: NextStep) -> str:
    """Return a check, how it comes out, and the command that makes it."""
    others = f"; also for {', '.join(also_for(step))}" if also_for(step) else ""
    call = f"<p><code class=call>{escape(as_command(step.call))}</code></p>" if step.call else ""
    return (
        f"<li><p>{prose(step.action)} <span class=dim>({escape(f'{step.id}: {step.cost}{others}')})</span></p>"
        f"{paragraph(f'confirms: {step.confirms}', 'dim')}{paragraph(f'refutes: {step.refutes}', 'dim')}{call}</li>"
    )


def to_log_html(metric_to_log: MetricToLog) -> str:
    """Return a metric that would have helped, and how to log it."""
    return (
        f"<p><b>{escape(metric_to_log.metric)}</b>: {prose(metric_to_log.how)} "
        f"<span class=dim>(bears on {escape(', '.join(metric_to_log.splits))})</span></p>"
    )


def citation_html(citation: Citation) -> str:
    """Return a quote with its source."""
    return (
        f"<blockquote>“{escape(citation.text)}”<cite>— {escape(citation.author)}, "
        f"{escape(citation.title)} [{escape(citation.id)}] "
        f'<a href="{escape(citation.url)}">{escape(citation.url)}</a></cite></blockquote>'
    )


_DIAGNOSIS_HTML_STYLE = """
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


def diagnosis_html(
    diagnosis: Diagnosis,
    run: Run,
    reference: Run | None = None,
    *,
    live: bool = False,
) -> str:
    """Return the page with the reference and siblings drawn behind the run. All text from the log is escaped.

    A `live` page asks the server that it came from for a newer one.
    """
    parts = page_parts(diagnosis, run, reference)
    if live:
        return live_html(diagnosis.run.path, parts)
    return web_page(diagnosis.run.path, parts, _DIAGNOSIS_HTML_STYLE + SHEET_STYLE, _script("numbers.js", "curves.js"))


def live_html(title: str, parts: list[str]) -> str:
    """Return a page that is shown until a server has a newer one."""
    status = "<p id=live class=dim role=status></p>"
    script = _script("numbers.js", "curves.js", "live.js")
    return web_page(title, [status, *parts], _DIAGNOSIS_HTML_STYLE + SHEET_STYLE, script, calls_home=True)


def _script(*names: str) -> str:
    return "\n".join(('"use strict";', *map(_asset, names)))


def _asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="ascii")


def page_parts(diagnosis: Diagnosis, run: Run, reference: Run | None = None) -> list[str]:
    """Return what stands on the page, from top to bottom."""
    noteworthy = worth_showing(diagnosis.findings)
    pictures = [panel_html(panel, run) for panel in panels(run, diagnosis, noteworthy, reference)]
    steps = "".join(map(step_html, diagnosis.next_steps[:SHOWN_STEPS]))
    once = f"<p class=dim>{escape(ONCE_CHECKED)}</p>" if steps else ""
    return [
        f"<h1>{escape(diagnosis.run.title)}</h1>",
        block_html(verdict_block(diagnosis)),
        list_html(map(prose, opinion_lines(diagnosis)), "opinions"),
        list_html(map(escape, diagnosis.sheet.ran), "ran"),
        *([_TOOLS, *pictures] if pictures else []),
        section("Seen in the log", findings_html(diagnosis, noteworthy)),
        section("Tried before", "".join(paragraph(tried.line()) for tried in diagnosis.tried)),
        section("Facts", "".join(paragraph(fact.text) for fact in diagnosis.sheet.facts)),
        section("Which checkpoint to keep", "".join(map(paragraph, checkpoint_lines(diagnosis.checkpoint)))),
        section("What happened when", events_html(diagnosis.sheet, run.step_name)),
        section("What was logged", quantities_html(diagnosis.sheet)),
        section("Settings", settings_html(diagnosis.sheet, settings_section(diagnosis))),
        compared_html(diagnosis),
        section("Other runs of its sweep", siblings_html(run)),
        section("What it may be (hypotheses, not verdicts)", hypotheses_html(diagnosis)),
        section("Check next", f"<ol>{steps}</ol>{once}" if steps else ""),
        section("Tied", "".join(paragraph(tie.summary) for tie in diagnosis.ties)),
        section("Not logged, but would have helped", "".join(map(to_log_html, diagnosis.what_to_log))),
        section("Not judged", "".join(paragraph(text, "dim") for text in diagnosis.sheet.not_judged)),
        section("Practitioners on this", "".join(map(citation_html, leading_citations(diagnosis.hypotheses)))),
        section("Notes", "".join(paragraph(note, "dim") for note in notes_on(diagnosis))),
    ]


# A diagnosis as a notebook shows it below a cell: part of a page that is not ours, without scripts.


SHOWN_PANELS = 3
# The class stands twice where Jupyter has rules of its own for tables: theirs align all cells to the right.
_NOTEBOOK_HTML_STYLE = """
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
    noteworthy = worth_showing(diagnosis.findings)
    pictures = "".join(
        f'<div class="panel">{_key(panel)}{panel_svg(panel, run.first_step, run.last_step, run.step_name)}</div>'
        for panel in panels(run, diagnosis, noteworthy, reference)[:SHOWN_PANELS]
    )
    return clean(
        f"<div class=mldebug><style>{_NOTEBOOK_HTML_STYLE}</style>"
        f"<p><b>{escape(diagnosis.run.title)}</b>: {escape(what_was_read(diagnosis, run))}</p>"
        f"{block_html(verdict_block(diagnosis))}{pictures}"
        f"{findings_html(diagnosis, noteworthy)}{hypotheses_html(diagnosis)}</div>"
    )
