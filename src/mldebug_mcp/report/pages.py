"""The pages on data and on many runs."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path

import numpy as np

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.limits import checkpoint
from mldebug_mcp.core.text import counted, figure, percent, shorten
from mldebug_mcp.judge.at_a_glance import shared_line
from mldebug_mcp.judge.diagnosis import diagnose
from mldebug_mcp.logs import read_run
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.models.base import SOUND
from mldebug_mcp.models.batch import (
    BatchFinding,
    BatchInspection,
    BatchSummary,
    BoxView,
    Corpus,
    RowView,
    TemplateView,
    TokenView,
)
from mldebug_mcp.models.runs import RunRow, Runs
from mldebug_mcp.report.chart import COLOURS, ONSET
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
from mldebug_mcp.report.diagnosis_html import diagnosis_html
from mldebug_mcp.report.runs_terminal import rank_lines, result_of_row, sweep_lines
from mldebug_mcp.report.sections import block_of
from mldebug_mcp.report.web_page import block_html, for_both_widths, prose, web_page, write_file

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
        f"<h1>{escape(batch.path)}</h1>{block_html(block_of(inspection.at_a_glance))}",
        _table(batch),
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


def _table(batch: BatchSummary) -> str:
    lines = [("purpose", batch.purpose + (inferred_purpose(batch))), *numbers(batch)]
    rows = "".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in lines)
    return f"<table>{rows}</table>"


PICTURE_HEIGHT = 120
LETTER = 12
LETTER_WIDTH = 0.62
"""Of the size of a letter: how wide a figure is."""


def _corpus(corpus: Corpus, batch: BatchSummary) -> list[str]:
    """Return what a corpus holds, with the lengths of its documents and its ids drawn as bars."""
    listed = [*corpus_lines(corpus), *(shard_lines(corpus) if len(corpus.shards) > 1 else [])]
    rows = "".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in listed)
    parts = [f"<h2>The corpus</h2><table>{rows}</table>"]
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
    every = max(1, math.ceil((longest + 2) * LETTER_WIDTH * LETTER / each))
    below = PICTURE_HEIGHT + LETTER + 2
    drawn = [f'<text x="0" y="-4">{escape(axes[1])}, at most {most:,}</text>']
    for place, (name, count) in enumerate(named):
        height = PICTURE_HEIGHT * (count / most) ** root
        drawn.append(
            f'<rect x="{place * each:.1f}" y="{PICTURE_HEIGHT - height:.1f}" width="{max(1.0, each - 1):.1f}" '
            f'height="{height:.1f}" fill="{COLOURS[0]}"><title>{escape(name)}: {count:,}</title></rect>'
        )
        if place % every == 0 and place * each + len(name) * LETTER_WIDTH * LETTER <= width:
            drawn.append(f'<text x="{place * each:.1f}" y="{below}">{escape(name)}</text>')
    drawn.append(f'<text x="{width}" y="{below + LETTER + 2}" text-anchor="end">{escape(axes[0])}</text>')
    return (
        f'<svg viewBox="0 {-LETTER - 6} {width} {below + 2 * LETTER + 12}" role="img" font-size="{LETTER}" '
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
WIDTH = 200
"""Width of a small curve."""
HEIGHT = 64
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
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<h2>{escape(title)}</h2><ul>{items}</ul>" if items else ""


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
    x, y = WIDTH * share, HEIGHT * (1 - scales[row.curve_metric].share(np.where(finite, value, 0.0)))
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b, shown in zip(x.tolist(), y.tolist(), finite, strict=True) if shown)
    mark = f'y="11" text-anchor="middle" font-size="12" fill="{ONSET}">\u00d7</text>'
    lost = "".join(f'<text x="{a:.1f}" {mark}' for a in x[~finite].tolist())
    onset = ""
    if row.onset is not None and step[0] <= row.onset <= step[-1]:
        at = WIDTH * (row.onset - step[0]) / (step[-1] - step[0] or 1.0)
        onset = f'<line x1="{at:.1f}" x2="{at:.1f}" y1="0" y2="{HEIGHT}" stroke="{ONSET}" stroke-dasharray="3 3"/>'
    label = f"{row.curve_metric} over {row.step_name}s"
    first, last = figure(float(step[0])), figure(float(step[-1]))
    axis = f"{escape(shorten(row.curve_metric, 40))} over {escape(row.step_name)} {first} to {last}"
    return (
        f'<svg viewBox="0 -2 {WIDTH} {HEIGHT + 4}" role="img" aria-label="{escape(label)}">{onset}'
        f'<polyline fill="none" stroke="{COLOURS[0]}" stroke-width="1.5" stroke-linejoin="round" points="{points}"/>'
        f"{lost}</svg><p class=dim>{axis}</p>"
    )
