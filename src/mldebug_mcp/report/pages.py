"""The pages on data, on many runs and on a memory snapshot, with its picture by Matplotlib."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.limits import checkpoint
from mldebug_mcp.core.text import counted, figure, percent, shorten
from mldebug_mcp.judge.at_a_glance import shared_line
from mldebug_mcp.judge.diagnosis import diagnose
from mldebug_mcp.logs import read_run
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.memory.categories import Category
from mldebug_mcp.memory.snapshot import MemorySnapshot, Timeline, timeline_of
from mldebug_mcp.memory.tables import GIB, MIB, Ints, size
from mldebug_mcp.models.base import SOUND
from mldebug_mcp.models.data import (
    BatchFinding,
    BatchInspection,
    BatchSummary,
    BoxView,
    Corpus,
    MemoryReport,
    MemoryTotals,
    RowView,
    TemplateView,
    TokenView,
)
from mldebug_mcp.models.runs import RunRow, Runs
from mldebug_mcp.report.chart import COLOURS, GRID, ONSET, figure_class, png_of, points_of
from mldebug_mcp.report.concise import quoted_once
from mldebug_mcp.report.curves import Scale, scale_of
from mldebug_mcp.report.data_terminal import (
    corpus_lines,
    found_title,
    inferred_purpose,
    nothing_wrong,
    numbers,
    row_heading,
    shard_lines,
)
from mldebug_mcp.report.diagnosis_html import diagnosis_html, list_html, section
from mldebug_mcp.report.runs_terminal import rank_lines, result_of_row, sweep_lines
from mldebug_mcp.report.sections import block_of
from mldebug_mcp.report.web_page import WIDE_PICTURE_WIDTH, block_html, for_both_widths, prose, web_page, write_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BATCH_HTML_STYLE = """
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


def page(inspection: BatchInspection) -> str:
    """Return the page. All text from the batch is escaped."""
    batch = inspection.batch
    findings = (
        "".join(map(_finding, quoted_once(inspection.findings))) or f"<p>{nothing_wrong(batch).capitalize()}.</p>"
    )
    parts = [
        f"<h1>{escape(batch.path)}</h1>{block_html(block_of(inspection.at_a_glance))}",
        _table([("purpose", batch.purpose + inferred_purpose(batch)), *numbers(batch)]),
        f"<h2>{found_title(batch)}</h2>{findings}",
        "<h2>Rows</h2><p class=legend><span class=trained>trained on</span> · <span class=masked>masked</span> · "
        "<span class=special>special</span> · <span class=padding>padding</span></p>",
        *(_row(row, batch.unit) for row in inspection.rows),
    ]
    if inspection.corpus is not None:
        parts[3:3] = _corpus(inspection.corpus, batch)
    if inspection.template is not None:
        parts.append(f"<h2>The chat template on two exchanges</h2><pre>{_template(inspection.template)}</pre>")
    parts += [f"<p class=masked>{escape(note)}</p>" for note in inspection.notes]
    return web_page(batch.path, parts, _BATCH_HTML_STYLE)


def _table(rows: Iterable[Sequence[str]], kind: str = "") -> str:
    """Return a table whose first column is of a kind, such as number."""
    lines = (
        f"<tr><td{kind and f' class={kind}'}>{escape(first)}</td>{''.join(f'<td>{escape(cell)}</td>' for cell in rest)}"
        "</tr>"
        for first, *rest in rows
    )
    return f"<table>{''.join(lines)}</table>"


PICTURE_HEIGHT = 120
FONT_SIZE = 12
LETTER_WIDTH = 0.62
"""Of the size of a letter: how wide a figure is."""


def _corpus(corpus: Corpus, batch: BatchSummary) -> list[str]:
    """Return what a corpus holds, with the lengths of its documents and its ids drawn as bars."""
    listed = [*corpus_lines(corpus), *(shard_lines(corpus) if len(corpus.shards) > 1 else [])]
    parts = [f"<h2>The corpus</h2>{_table(listed)}"]
    lengths = {span: count for span, count in batch.lengths.histogram.items() if count}
    if corpus.rows_are == "documents" and len(lengths) > 1:
        parts.append("<h3>Documents by their tokens</h3>" + _bars(list(lengths.items()), "tokens", "documents"))
    if corpus.id_bands:
        width = corpus.id_limit / len(corpus.id_bands)
        named = [(f"{round(place * width):,}", count) for place, count in enumerate(corpus.id_bands)]
        parts.append(
            "<h3>Tokens by their id</h3>" + _bars(named, "token id", "tokens, as their fourth root", root=0.25)
        )
    return parts


def _bars(named: list[tuple[str, int]], across: str, up: str, root: float = 1.0) -> str:
    """Return bars as SVG with the names of both axes, each bar with its count as a title.

    A bar is as high as its count to the power `root`.
    """
    return for_both_widths(lambda width: _bars_of_width(named, (across, up), root, width))


def _bars_of_width(named: list[tuple[str, int]], axes: tuple[str, str], root: float, width: int) -> str:
    most = max(count for _, count in named) or 1
    each = width / len(named)
    longest = max(len(name) for name, _ in named)
    every = max(1, math.ceil((longest + 2) * LETTER_WIDTH * FONT_SIZE / each))
    below = PICTURE_HEIGHT + FONT_SIZE + 2
    drawn = [f'<text x="0" y="-4">{escape(axes[1])}, at most {most:,}</text>']
    for place, (name, count) in enumerate(named):
        height = PICTURE_HEIGHT * (count / most) ** root
        drawn.append(
            f'<rect x="{place * each:.1f}" y="{PICTURE_HEIGHT - height:.1f}" width="{max(1.0, each - 1):.1f}" '
            f'height="{height:.1f}" fill="{COLOURS[0]}"><title>{escape(name)}: {count:,}</title></rect>'
        )
        if place % every == 0 and place * each + len(name) * LETTER_WIDTH * FONT_SIZE <= width:
            drawn.append(f'<text x="{place * each:.1f}" y="{below}">{escape(name)}</text>')
    drawn.append(f'<text x="{width}" y="{below + FONT_SIZE + 2}" text-anchor="end">{escape(axes[0])}</text>')
    return (
        f'<svg viewBox="0 {-FONT_SIZE - 6} {width} {below + 2 * FONT_SIZE + 12}" role="img" font-size="{FONT_SIZE}" '
        f'aria-label="{escape(axes[1])} by {escape(axes[0])}" fill="currentColor">{"".join(drawn)}</svg>'
    )


def _finding(finding: BatchFinding) -> str:
    fixes = "".join(f"<p>{escape(name)}: {prose(fix)}</p>" for name, fix in finding.fixes.items())
    quotes = "".join(
        f"<blockquote>{escape(citation.text)} — <cite>{escape(citation.author)}, "
        f"{escape(citation.title)}</cite></blockquote>"
        for citation in finding.citations
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


def _boxes(boxes: Iterable[BoxView]) -> str:
    """Return the boxes of an image, drawn on an empty one."""
    drawn = "".join(
        f'<rect x="{100 * min(box.left, box.right):.2f}" y="{100 * min(box.top, box.bottom):.2f}" '
        f'width="{100 * abs(box.right - box.left):.2f}" height="{100 * abs(box.bottom - box.top):.2f}" fill="none" '
        f'stroke="currentColor"><title>{escape(box.name)}</title></rect>'
        for box in boxes
    )
    if not drawn:
        return ""
    edge = '<rect width="100" height="100" fill="none" stroke="currentColor" stroke-dasharray="2"/>'
    return f'<svg viewBox="-25 -25 150 150" width="300" role="img" aria-label="boxes">{edge}{drawn}</svg> '


def _row(row: RowView, unit: str) -> str:
    name, counts = row_heading(row, unit)
    pieces = "".join(map(_token, row.pieces)) if row.pieces else _boxes(row.boxes) + escape(row.text)
    return f"<div><b>{escape(name)}</b>: {counts}<div class=row>{pieces}</div></div>"


def _token(token: TokenView) -> str:
    title = f"{token.kind}, id {token.id}" + (f", {token.role}" if token.role else "")
    return f'<span class="{" ".join(token.kind.split())}" title="{escape(title)}">{escape(token.text)}</span>'


MOST_PAGES = 500
"""Runs that get a page of their own. Chosen: each takes a diagnosis."""
MOST_CARDS = 3_000
"""Runs that are drawn: a browser shows so many without delay (chosen)."""
CURVE_WIDTH = 200
"""Width of a small curve."""
CURVE_HEIGHT = 64
"""Height of a small curve."""
_RUNS_STYLE = """
body { max-width: 90rem; }
#runs { list-style: none; padding: 0; display: grid; gap: .8rem;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 13rem), 1fr)); }
#runs li { border: 1px solid var(--line); border-left: .3rem solid var(--line); padding: .4rem .6rem; min-width: 0;
  overflow-wrap: anywhere; font-size: .85rem; }
#runs li[hidden] { display: none; }
#runs .sick { border-left-color: var(--bad); } #runs .healthy { border-left-color: var(--good); }
#runs .unclear { border-left-color: var(--warn); }
#runs p { margin: .1rem 0; } #runs h3 { font-size: .95rem; margin: 0; } #runs svg { display: block; margin: .2rem 0; }
#filters { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; margin: 1rem 0; font-size: .9rem; }
#filters[hidden] { display: none; }
#filters input, #filters select { font: inherit; min-height: 1.8rem; max-width: 100%; }
"""


def write_runs_html(answer: Runs, path: str | Path) -> None:
    """Write the runs as a page that opens anywhere; into a folder, as `index.html` with a page for each run.

    Raises:
        InputError: the file cannot be written.
    """
    if not is_page_folder(path):
        write_file(path, runs_html(answer))
        return
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{shorten(str(path), 200)}: cannot be made ({error.strerror}); name another folder") from None
    pages = {}
    for number, row in enumerate(answer.rows[:MOST_PAGES], start=1):
        checkpoint(f"page {number} of {min(len(answer.rows), MOST_PAGES)}")
        if page := _page_of(row, answer.path):
            pages[row.name] = f"run-{number}.html"
            write_file(folder / pages[row.name], page)
    write_file(folder / "index.html", runs_html(answer, pages))


def is_page_folder(path: str | Path) -> bool:
    """Say whether a path names a folder: one that is there, or a new name without an ending."""
    place = Path(path)
    return place.is_dir() or not (place.exists() or place.suffix)


def _page_of(row: RunRow, root: str) -> str:
    """Return the page of a run; nothing where it cannot be read by its name."""
    if row.ending == "unread":
        return ""
    try:
        run = read_run(root, run=row.name)
    except InputError:
        return ""
    return diagnosis_html(diagnose(run), run)


def runs_html(answer: Runs, pages: Mapping[str, str] | None = None) -> str:
    """Return the page, whose cards link to the page of each run. All text from logs and names is escaped."""
    rows = answer.rows[:MOST_CARDS]
    values = _values(rows)
    scales = {metric: scale_of([some]) for metric, some in values.items()}
    cards = "".join(_card(row, scales, (pages or {}).get(row.name, "")) for row in rows)
    left = len(answer.rows) - len(rows)
    if pages is None:
        linked = "for a page of each run: mldebug-mcp runs FOLDER --html PAGES (a folder)"
    else:
        linked = f"only the first {MOST_PAGES} runs have a page" if len(answer.rows) > MOST_PAGES else ""
    more = [linked] if linked else []
    more += [f"{counted(left, 'further run')} not drawn: --json or --csv FILE has all"] if left else []
    parts = [
        f"<h1>{escape(answer.path)}</h1>{block_html(block_of(answer.at_a_glance))}",
        _section("Ranks", rank_lines(answer)),
        _section("What they share", [shared_line(shared_setting) for shared_setting in answer.shared]),
        _section("Best settings", sweep_lines(answer.sweep)),
        _filters(rows),
        f"<h2>Runs</h2><p class=dim>{escape(_scales_in_words(values, scales))}</p><ul id=runs>{cards}</ul>",
        _section("Notes", [*more, *answer.notes]),
    ]
    return web_page(answer.path, parts, _RUNS_STYLE, Path(__file__).with_name("runs.js").read_text(encoding="ascii"))


def _section(title: str, lines: Iterable[str]) -> str:
    return section(title, list_html(map(escape, lines)))


def _filters(rows: Iterable[RunRow]) -> str:
    causes, endings = Counter(row.cause for row in rows), Counter(row.ending for row in rows)
    return (
        "<div id=filters hidden><label>name, setting or symptom <input id=search type=search></label>"
        f"{_choice('cause', causes)}{_choice('ending', endings)}"
        "<label>order <select id=order><option value=attention>attention first<option value=best>best result first"
        "<option value=worst>worst result first<option value=name>name</select></label>"
        "<output id=count class=dim></output></div>"
    )


def _choice(name: str, counts: Counter[str]) -> str:
    options = "".join(
        f'<option value="{escape(option)}">{escape(option)} ({count})'
        for option, count in counts.most_common()
        if option
    )
    return f'<label>{name} <select id={name}><option value="">any{options}</select></label>'


def _values(rows: Iterable[RunRow]) -> dict[str, Floats]:
    """Return the finite values of each metric in all runs, shape (n,)."""
    values: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        values[row.curve_metric] += [value for _, value in row.curve if np.isfinite(value)]
    return {metric: np.array(some) for metric, some in values.items()}


def _scales_in_words(values: dict[str, Floats], scales: dict[str, Scale]) -> str:
    ranges = [
        f"{metric} from {figure(values[metric].min())} to {figure(values[metric].max())}"
        f"{', logarithmic' if scale.logarithmic else ''}"
        for metric, scale in scales.items()
        if len(values[metric])
    ]
    return f"All curves of a metric have one scale: {'; '.join(ranges)}." if ranges else "No run has a curve."


def _card(row: RunRow, scales: dict[str, Scale], page: str) -> str:
    state = "sick" if row.is_sick else "healthy" if row.cause == SOUND else "unclear"
    rank = row.last if row.last is None or row.better != "higher" else -row.last
    since = "" if row.onset is None else f" since {figure(row.onset)}"
    lines = [
        f"<p><b>{escape(row.cause)}</b> {percent(row.probability)}{since}</p>" if row.cause else "",
        "" if row.last is None else f"<p>{escape(result_of_row(row))}, best {figure(row.best or 0.0)}</p>",
        f"<p class=dim>{escape(_settings(row))}</p>" if row.settings else "",
        f"<p class=dim>{escape(', '.join(row.seen))}</p>" if row.seen else "",
        "".join(f"<p>{escape(shorten(text, 300))}</p>" for text in row.tried),
        f"<p class=dim>{escape(shorten(row.note, 200))}</p>" if row.note else "",
    ]
    name = escape(shorten(row.name, 80))
    name = f'<a href="{page}">{name}</a>' if page else name
    step = "" if row.step is None else f", {escape(row.step_name)} {figure(row.step)}"
    return (
        f'<li class={state} data-cause="{escape(row.cause)}" data-ending="{escape(row.ending)}" '
        f'data-name="{escape(row.name)}" data-result="{"" if rank is None else rank}">'
        f"<h3>{name}</h3>{_curve(row, scales)}{''.join(lines)}"
        f"<p class=dim>{escape(row.ending)}{step}</p></li>"
    )


def _settings(row: RunRow) -> str:
    return ", ".join(
        f"{name} {figure(value) if isinstance(value, float) else value}" for name, value in row.settings.items()
    )


def _curve(row: RunRow, scales: dict[str, Scale]) -> str:
    """Return the small curve of a run; × stands where a value was not finite."""
    if len(row.curve) < 2:
        return ""
    step, value = np.array(row.curve, float).T
    share = (step - step[0]) / (step[-1] - step[0] or 1.0)
    finite = np.isfinite(value)
    x, y = CURVE_WIDTH * share, CURVE_HEIGHT * (1 - scales[row.curve_metric].share(np.where(finite, value, 0.0)))
    mark = f'y="11" text-anchor="middle" font-size="12" fill="{ONSET}">\u00d7</text>'
    lost = "".join(f'<text x="{a:.1f}" {mark}' for a in x[~finite].tolist())
    onset = ""
    if row.onset is not None and step[0] <= row.onset <= step[-1]:
        at = CURVE_WIDTH * (row.onset - step[0]) / (step[-1] - step[0] or 1.0)
        onset = (
            f'<line x1="{at:.1f}" x2="{at:.1f}" y1="0" y2="{CURVE_HEIGHT}" stroke="{ONSET}" stroke-dasharray="3 3"/>'
        )
    label = f"{row.curve_metric} over {row.step_name}s"
    first, last = figure(float(step[0])), figure(float(step[-1]))
    axis = f"{escape(shorten(row.curve_metric, 40))} over {escape(row.step_name)} {first} to {last}"
    return (
        f'<svg viewBox="0 -2 {CURVE_WIDTH} {CURVE_HEIGHT + 4}" role="img" aria-label="{escape(label)}">{onset}'
        f'<polyline fill="none" stroke="{COLOURS[0]}" stroke-width="1.5" stroke-linejoin="round" '
        f'points="{points_of(x[finite], y[finite])}"/>'
        f"{lost}</svg><p class=dim>{axis}</p>"
    )


# The page on a memory snapshot, and its picture by Matplotlib.


CATEGORY_COLOURS = {
    Category.PARAMETERS: "#4c78a8",
    Category.OPTIMIZER_STATE: "#72b7b2",
    Category.GRADIENTS: "#54a24b",
    Category.COLLECTIVE: "#9d755d",
    Category.WORKSPACE: "#79706e",
    Category.INPUTS: "#d67195",
    Category.ATTENTION_SCORES: "#b279a2",
    Category.OPTIMIZER_TEMPORARY: "#83bcb6",
    Category.ACTIVATIONS: "#f58518",
    Category.LOGITS: "#e45756",
    Category.TEMPORARY: "#eeca3b",
    Category.UNKNOWN: "#bab0ac",
}
"""One colour per category, distinct for people with colour blindness too (Vega's tableau10)."""
MAX_DEVICES = 8
MAX_STEP_LINES = 60


def timelines(snapshot: MemorySnapshot) -> list[Timeline]:
    """Return the timelines to draw; raises InputError where nothing was recorded."""
    found = [timeline for device in snapshot.devices[:MAX_DEVICES] if (timeline := timeline_of(device)) is not None]
    if not found:
        raise InputError(
            f"{snapshot.path}: no history to draw; record one with torch.cuda.memory._record_memory_history()"
        )
    return found


def memory_png(snapshot: MemorySnapshot) -> bytes:
    """Return a PNG with one panel per device.

    Raises:
        InputError: nothing was recorded.
        MissingExtraError: matplotlib is not installed.
    """
    drawn = timelines(snapshot)
    figure = figure_class()(figsize=(11, 1.2 + 3.6 * len(drawn)), dpi=110, layout="constrained")
    axes = figure.subplots(len(drawn), 1, squeeze=False)[:, 0]
    for timeline, panel in zip(drawn, axes, strict=True):
        _draw(panel, timeline)
    axes[-1].set_xlabel("event of the allocator")
    return png_of(figure)


def _draw(panel: Axes, timeline: Timeline) -> None:
    unit, name = (GIB, "GiB") if timeline.peak_bytes >= GIB else (MIB, "MiB")
    panel.stackplot(
        timeline.moments,
        [byte_counts / unit for byte_counts in timeline.held.values()],
        labels=[category.label.replace("_", " ") for category in timeline.held],
        colors=[CATEGORY_COLOURS[category] for category in timeline.held],
        linewidth=0,
    )
    panel.plot(timeline.moments, timeline.reserved / unit, color="black", linewidth=1, linestyle="--", label="reserved")
    top = float(np.max(timeline.reserved, initial=timeline.peak_bytes)) / unit
    if len(timeline.steps) <= MAX_STEP_LINES:
        panel.vlines(timeline.steps, 0, top * 1.02, color="white", linewidth=0.6, alpha=0.8)
    _mark_peak(panel, timeline, timeline.peak_bytes / unit, top)
    _mark_failures(panel, timeline)
    panel.set_ylim(0, top * 1.18)
    panel.set_xlim(0, max(1, timeline.events))
    panel.set_ylabel(name)
    panel.set_title(
        f"device {timeline.device}: {timeline.events:,} events, {len(timeline.steps)} steps", loc="left", fontsize=10
    )
    panel.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8, reverse=True)
    panel.spines[["top", "right"]].set_visible(False)


def _mark_peak(panel: Axes, timeline: Timeline, height: float, top: float) -> None:
    late = timeline.peak > 0.7 * timeline.events
    panel.plot([timeline.peak], [height], marker="v", color="black", markersize=8, clip_on=False, zorder=5)
    panel.annotate(
        f"peak {size(timeline.peak_bytes)}",
        (timeline.peak, top),  # above the reserved curve, which would strike it through
        xytext=(-6 if late else 6, 6),
        textcoords="offset points",
        fontweight="bold",
        ha="right" if late else "left",
    )


def _mark_failures(panel: Axes, timeline: Timeline) -> None:
    for moment in timeline.failures[:20]:
        panel.axvline(float(moment), color="#b00020", linewidth=2)
    if len(timeline.failures):
        panel.annotate(
            "out of memory",
            (float(timeline.failures[0]), 0),
            xytext=(-4, 6),
            textcoords="offset points",
            color="#b00020",
            fontweight="bold",
            rotation=90,
            ha="right",
        )


TIMELINE_HEIGHT = 300
TIMELINE_LEFT_MARGIN = 76
TIMELINE_BOTTOM_MARGIN = 24
_STYLE = """
p, li { overflow-wrap: anywhere; }
@media (max-width: 40rem) { td { overflow-wrap: anywhere; display: block; padding: 0; }
  td.number { text-align: left; font-weight: bold; }
  tr { display: block; margin-bottom: .6rem; } }
"""
GRID_LINES = 4


def memory_html(snapshot: MemorySnapshot, report: MemoryReport) -> str:
    """Return the page."""
    read = report.snapshot
    pictures = [
        _picture(timeline)
        for device in snapshot.devices
        if (timeline := timeline_of(device, WIDE_PICTURE_WIDTH)) is not None
    ]
    parts = [
        f"<h1>GPU memory: {escape(read.path)}</h1>{block_html(block_of(report.at_a_glance))}",
        f"<p class=dim>{escape(read.layout)}; {counted(read.devices, 'device')}, {read.trace_events:,} events; "
        f"{_peak(read)}</p>",
        *pictures,
        "<h2>Seen</h2>",
        *(
            f"<p class={finding.severity}><b>{escape(finding.finding)}</b>: "
            f"{escape(finding.summary)}<br><span class=dim>"
            f"{prose(finding.fix)}</span></p>"
            for finding in report.findings
        ),
        "<h2>Who holds it</h2>",
        _table(
            (
                (size(held.bytes), f"{held.count}×", held.category, " ← ".join(held.stack) or held.site)
                for held in report.top_allocations
            ),
            "number",
        ),
        "<h2>What would save how much</h2>",
        _table(((size(lever.saves_bytes), lever.lever, lever.how, "") for lever in report.levers), "number"),
        *(f"<p class=dim>{escape(note)}</p>" for note in report.notes),
    ]
    return web_page(f"GPU memory: {read.path}", parts, _STYLE)


def _peak(read: MemoryTotals) -> str:
    if not read.peak_allocated_bytes:
        return "the peak is not known, without a history"
    return f"peak {size(read.peak_allocated_bytes)} allocated, {size(read.peak_reserved_bytes)} reserved"


def _picture(timeline: Timeline) -> str:
    """Return the timeline drawn for a wide and for a narrow page: letters of one size in both."""
    key = "".join(
        f'<bdi><span style="background:{CATEGORY_COLOURS[category]}"></span>{category.label.replace("_", " ")}</bdi> '
        for category in timeline.held
    )
    pictures = for_both_widths(lambda width: _drawn(timeline, width))
    return (
        f"<h2>Device {timeline.device}</h2>{pictures}"
        f"<p class=key>{key}<span></span>- - reserved; {timeline.events:,} events, {len(timeline.steps)} steps</p>"
    )


def _drawn(timeline: Timeline, width: int) -> str:
    top = float(np.max(timeline.reserved, initial=max(1, timeline.peak_bytes))) * 1.08
    across, below = _x(timeline, timeline.moments, width), np.zeros(len(timeline.moments), np.int64)
    shapes = []
    for category, byte_counts in timeline.held.items():
        name = category.label.replace("_", " ")
        points = points_of(np.append(across, across[::-1]), _y(np.append(below + byte_counts, below[::-1]), top))
        title = f"{name}: up to {size(int(byte_counts.max()))}"
        shapes.append(
            f'<polygon fill="{CATEGORY_COLOURS[category]}" points="{points}"><title>{title}</title></polygon>'
        )
        below = below + byte_counts
    line = points_of(across, _y(timeline.reserved, top))
    shapes.append(f'<polyline fill="none" stroke="currentColor" stroke-dasharray="4 3" points="{line}"/>')
    grid = [_grid_line(top * number / GRID_LINES, top, width) for number in range(GRID_LINES + 1)]
    marks = [_failure(x) for x in _x(timeline, timeline.failures[:20], width).tolist()]
    x, y = float(_x(timeline, np.array(timeline.peak), width)), float(_y(np.array(timeline.peak_bytes), top))
    anchor = "end" if x > width * 0.7 else "start"
    marks.append(
        f'<path d="M{x:.1f} {y:.1f} l-5 -9 h10 z" fill="currentColor"/><text x="{x:.1f}" y="{y - 12:.1f}" '
        f'text-anchor="{anchor}" '
        f'class="over" font-weight="bold">peak {size(timeline.peak_bytes)}</text>'
    )
    bottom = TIMELINE_HEIGHT + TIMELINE_BOTTOM_MARGIN
    return (
        f"<svg viewBox='0 -14 {width} {bottom + 14}' fill='currentColor' font-size='12' role='img' "
        f"aria-label='memory held over the events of the allocator'>{''.join(grid + shapes + marks)}"
        f"<text x='{TIMELINE_LEFT_MARGIN}' y='{bottom - 6}'>0: events of the allocator</text>"
        f"<text x='{width}' y='{bottom - 6}' text-anchor='end'>{timeline.events:,}</text></svg>"
    )


def _failure(x: float) -> str:
    line = f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{TIMELINE_HEIGHT}" stroke="#b00020" stroke-width="2"/>'
    place = f'x="{max(TIMELINE_LEFT_MARGIN + 90, x - 6):.1f}" y="{TIMELINE_HEIGHT - 8}" text-anchor="end" class="over"'
    return f"{line}<text {place}>out of memory</text>"


def _x(timeline: Timeline, moments: Ints, width: int) -> Floats:
    return TIMELINE_LEFT_MARGIN + (width - TIMELINE_LEFT_MARGIN) * np.maximum(0, moments) / max(1, timeline.events)


def _y(byte_counts: Ints | Floats, top: float) -> Floats:
    return TIMELINE_HEIGHT * (1 - byte_counts / top)


def _grid_line(byte_count: float, top: float, width: int) -> str:
    y = TIMELINE_HEIGHT * (1 - byte_count / top)
    return (
        f'<line x1="{TIMELINE_LEFT_MARGIN}" x2="{width}" y1="{y:.1f}" y2="{y:.1f}" stroke="{GRID}"/>'
        f'<text x="{TIMELINE_LEFT_MARGIN - 6}" y="{y + 4:.1f}" text-anchor="end">{size(byte_count)}</text>'
    )
