"""Short forms of answers for agents, each within a given length."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TypeVar

import numpy as np

from mldebug_mcp.checks.curve import thinned
from mldebug_mcp.core.text import counted, shorten
from mldebug_mcp.judge.probe import is_sound
from mldebug_mcp.judge.sweep import SWEPT_LEVEL
from mldebug_mcp.logs import Series
from mldebug_mcp.models import (
    BatchFinding,
    Call,
    Citation,
    ErrorExplanation,
    Explanation,
    Finding,
    Hypothesis,
    Model,
    ProbeResult,
    RankedCause,
    RunVerdict,
    State,
)
from mldebug_mcp.models.base import Glance
from mldebug_mcp.models.data import (
    BatchInspection,
    Corpus,
    DeviceSummary,
    MemoryEstimate,
    MemoryFinding,
    MemoryReport,
    RowsAt,
    TemplateView,
)
from mldebug_mcp.models.runs import MetricReading, MetricValues, Runs
from mldebug_mcp.models.script import SUREST_FIRST, ScriptReport

# Making any answer fit a number of characters: long texts and lists are cut, evenly, until it does.
#
# Two things are whole or not there: a quote, which is verbatim or none, and what other calls take, such as an id.


_ROOM = (
    (4000, 200), (2000, 80), (1200, 50), (800, 30), (500, 24), (350, 18), (250, 14), (180, 11), (120, 9), (80, 8),
    (60, 7), (48, 6),
)  # fmt: skip
"""Characters of a text and entries of a list or mapping that are kept, in the order in which they are tried. Inside
a list, texts get half of the characters and lists a third of the entries: that they are there counts more."""
LEAST_CHARACTERS = 24
"""Characters that a cut text keeps at least."""
PASSED_ON = frozenset({"id", "cause", "symptom", "check", "call"})
"""Fields that an agent passes on as they stand: ids, and calls to make."""
LONGEST_PASSED_ON = 300
"""In characters: no id is so long, and a call only where a path is."""
REASONS = frozenset({"because", "against"})
"""Lists of facts, each whole or left out: half a fact may say the opposite of the whole."""
_WHOLE = (Call, Hypothesis, RankedCause)
"""Lists of these are never cut: a call must stay complete, and probabilities sum to 1."""

PROBABILITY_DECIMALS = 4
"""Of a probability: more would say more than anybody knows."""

Answer = TypeVar("Answer", bound=Model)
Judged = TypeVar("Judged", Hypothesis, RankedCause)


def rounded(causes: Sequence[Judged]) -> list[Judged]:
    """Return causes with as many digits of their probabilities as mean something."""
    return [
        cause.model_copy(update={"probability": round(cause.probability, PROBABILITY_DECIMALS)}) for cause in causes
    ]


def fitted(answer: Answer, limit: int, measure: Callable[[Answer], int] | None = None) -> Answer:
    """Return the answer, cut as little as makes it at most `limit` characters long, as `measure` counts them."""
    for characters, entries in _ROOM:
        if (measure or length)(answer) <= limit:
            return answer
        answer = _cut_model(answer, characters, entries)
    return answer


def most_telling_first(answer: Answer) -> Answer:
    """Return an answer whose findings begin with those that are present and end with those that are not known."""
    findings = getattr(answer, "findings", None)
    if not isinstance(findings, list) or not all(isinstance(finding, Finding) for finding in findings):
        return answer
    order = (State.PRESENT, State.ABSENT, State.UNKNOWN)
    return answer.model_copy(update={"findings": sorted(findings, key=lambda finding: order.index(finding.state))})


def length(answer: Model) -> int:
    """Return the characters of the answer in the longest of the usual forms of JSON: spaced, and ASCII only."""
    return len(json.dumps(as_json(answer)))


def as_json(answer: Model) -> dict[str, object]:
    """Return the answer as it is sent; what a short form did not set is left out."""
    return answer.model_dump(mode="json", exclude_unset=True)


def _cut_model(answer: Answer, characters: int, entries: int) -> Answer:
    cut = {
        name: _cut_field(name, value, characters, entries) for name, value in answer if name in answer.model_fields_set
    }
    return answer.model_copy(update=cut)


def _cut_field(name: str, value: object, characters: int, entries: int) -> object:
    """Return a field, cut; what is passed on to other calls is of no use in parts."""
    if name in REASONS and isinstance(value, list):
        return [item for item in value[:entries] if len(str(item)) <= characters]
    if name not in PASSED_ON or not isinstance(value, str):
        return _cut(value, characters, entries)
    if len(value) <= LONGEST_PASSED_ON:
        return value
    return None if name == "call" else _cut(value, characters, entries)


def _cut(value: object, characters: int, entries: int) -> object:
    if isinstance(value, str):
        return _beginning(value, characters)
    if isinstance(value, Call | RunVerdict | Glance):  # what tells what to do is whole; a verdict bounds itself
        return value
    if isinstance(value, Model):
        return _cut_model(value, characters, entries)
    if isinstance(value, list):
        return _cut_list(value, characters, entries)
    if isinstance(value, dict):
        return {
            _cut(key, characters, entries): _cut(item, characters, entries)
            for key, item in list(value.items())[:entries]
        }
    return value


def _beginning(text: str, characters: int) -> str:
    """Return at most so many characters of a text; one that is cut ends with an ellipsis."""
    return text if len(text) <= characters else f"{text[: characters - 1]}…"


def _cut_list(values: list[object], characters: int, entries: int) -> list[object]:
    if values and isinstance(values[0], Citation):
        return [value for value in values[:entries] if isinstance(value, Citation) and len(value.text) <= characters]
    kept = values if values and isinstance(values[0], _WHOLE) else values[:entries]
    return [_cut(item, max(LEAST_CHARACTERS, characters // 2), entries // 3) for item in kept]


# Quotes in a report: each stands once, with the first finding or hypothesis that it belongs to.


Quoting = TypeVar("Quoting", BatchFinding, Hypothesis, MemoryFinding)


def quoted_once(items: Iterable[Quoting], most: int | None = None) -> list[Quoting]:
    """Return the items with those of their quotes that no earlier item has, at most `most` each."""
    quoted: set[str] = set()
    once = []
    for item in items:
        new = [citation for citation in item.citations if citation.id not in quoted][:most]
        quoted.update(citation.id for citation in new)
        once.append(item if new == item.citations else item.model_copy(update={"citations": new}))
    return once


MAX_ROWS_NAMED = 20
SHOWN_ROWS = 3
MAX_ROW_TEXT = 700
MAX_TEMPLATE = 400
MAX_COLUMNS = 20
MAX_SHARDS = 8
BATCH_CONCISE_MAX_NOTES = 8
DETAILED_FINDINGS = 6
"""Findings that keep the fixes of all frameworks, places and a citation."""


def concise_inspection(inspection: BatchInspection) -> BatchInspection:
    """Return the inspection with bounded rows, texts and lists; about 10,000 characters at most."""
    notes = list(inspection.notes[:BATCH_CONCISE_MAX_NOTES])
    if inspection.rows[SHOWN_ROWS:] or any(finding.row_count > MAX_ROWS_NAMED for finding in inspection.findings):
        notes.append("not all rows and row numbers are listed here")
    findings = quoted_once(inspection.findings, most=1)
    batch = inspection.batch.model_copy(update={"columns": inspection.batch.columns[:MAX_COLUMNS]})
    return inspection.model_copy(
        update={
            "batch": batch,
            "findings": [
                _short_finding(batch_finding, detailed=number < DETAILED_FINDINGS)
                for number, batch_finding in enumerate(findings)
            ],
            "rows": [
                row.model_copy(update={"text": _two_ends(row.text, MAX_ROW_TEXT)})
                for row in inspection.rows[:SHOWN_ROWS]
            ],
            "corpus": None if inspection.corpus is None else _corpus(inspection.corpus),
            "template": _template(inspection.template),
            "notes": notes,
        }
    )


def _corpus(corpus: Corpus) -> Corpus:
    """Return what a corpus holds with a few of its files, copies first."""
    shards = sorted(corpus.shards, key=lambda shard: not shard.copy_of)[:MAX_SHARDS]
    return corpus.model_copy(update={"shards": shards, "id_bands": []})


def _template(template: TemplateView | None) -> TemplateView | None:
    if template is None or len(template.text) <= MAX_TEMPLATE:
        return template
    return TemplateView(text=_two_ends(template.text, MAX_TEMPLATE))


def _short_finding(finding: BatchFinding, *, detailed: bool) -> BatchFinding:
    update: dict[str, object] = {"rows": finding.rows[:MAX_ROWS_NAMED]}
    if not detailed:
        update |= {"fixes": {}, "places": [], "citations": []}
    else:
        update["places"] = [place.model_copy(update={"text": shorten(place.text, 80)}) for place in finding.places[:1]]
    return finding.model_copy(update=update)


def _two_ends(text: str, limit: int) -> str:
    """Return the two ends of a text: a row usually goes wrong at its beginning or its end."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]} ‹{len(text) - 2 * half} characters left out› {text[-half:]}"


MAX_TEXT = 5000
MAX_CITATIONS = 3
MAX_RELATED = 15


def concise_explanation(entry: Explanation) -> Explanation:
    """Return the beginning of a long entry, with some of its citations."""
    text = entry.text if len(entry.text) <= MAX_TEXT else f"{entry.text[:MAX_TEXT]}…"
    notes = list(entry.notes)
    if len(text) < len(entry.text) or len(entry.citations) > MAX_CITATIONS or len(entry.related) > MAX_RELATED:
        notes.append(
            f"{len(entry.text)} characters, {len(entry.citations)} citations, {len(entry.related)} related ids in all"
        )
    return entry.model_copy(
        update={
            "text": text,
            "citations": entry.citations[:MAX_CITATIONS],
            "related": entry.related[:MAX_RELATED],
            "notes": notes,
        }
    )


def concise_error(answer: ErrorExplanation) -> ErrorExplanation:
    """Return the likeliest match whole and the others as what they say the cause is."""
    others = [
        match.model_copy(update={"message": shorten(match.message, 80), "fix": "", "mistaken_for": ""})
        for match in answer.matches[1:]
    ]
    return answer.model_copy(update={"matches": [*answer.matches[:1], *others]})


MAX_FINDINGS = 6
MAX_SITES = 5
MAX_LEVERS = 4
MAX_DEVICES = 3
MAX_HYPOTHESES = 3
MEMORY_CONCISE_MAX_NOTES = 5
MAX_FRAMES = 4
MAX_SENTENCE = 300


def concise_memory(report: MemoryReport) -> MemoryReport:
    """Return the report in at most about 2,500 tokens."""
    fullest = max(
        report.devices, key=lambda device: device.peak_allocated_bytes or device.allocated_bytes, default=None
    )
    shown = [device for place, device in enumerate(report.devices) if place < MAX_DEVICES - 1 or device is fullest][
        :MAX_DEVICES
    ]
    fix = report.at_a_glance.fix
    short = {
        "findings": [_finding(finding, fix_above=fix) for finding in report.findings[:MAX_FINDINGS]],
        "top_allocations": [
            site if site.details else site.model_copy(update={"stack": []})
            for site in report.top_allocations[:MAX_SITES]
        ],
        "devices": [_device(device, full=device is fullest) for device in shown],
        "levers": report.levers[:MAX_LEVERS],
        "oom": report.oom and report.oom.model_copy(update={"stack": []}),
        "hypotheses": [
            hypothesis.model_copy(
                update={
                    "summary": shorten(hypothesis.summary, MAX_SENTENCE // 2),
                    "against": [],
                    "symptoms": [],
                    "fix": "" if fix else hypothesis.fix,
                }
            )
            for hypothesis in rounded(report.hypotheses[:MAX_HYPOTHESES])
        ],
        "comparison": report.comparison and report.comparison.model_copy(update={"sites": report.comparison.sites[:5]}),
    }
    left_out = len(report.devices) - len(shown)
    notes = [shorten(note, MAX_SENTENCE) for note in report.notes[:MEMORY_CONCISE_MAX_NOTES]]
    if left_out > 0:
        notes.append(f"{counted(left_out, 'more device')}")
    if report.top_allocations:
        notes.append(
            "for a whole stack with sizes and lifetimes pass focus=ID of top_allocations; for one category focus=its "
            "name"
        )
    return report.model_copy(update={**short, "notes": notes})


def concise_estimate(estimate: MemoryEstimate) -> MemoryEstimate:
    """Return the estimate without the sources of its formulas."""
    return estimate.model_copy(update={"sources": []})


def _finding(memory_finding: MemoryFinding, *, fix_above: str) -> MemoryFinding:
    """Return a finding in short; its fix is left out where the answer already begins with it."""
    return memory_finding.model_copy(
        update={
            "stack": memory_finding.stack[:MAX_FRAMES],
            "fix": ""
            if memory_finding.fix.rstrip(".") == fix_above.rstrip(".")
            else shorten(memory_finding.fix, MAX_SENTENCE),
            "citations": memory_finding.citations[:1] if memory_finding.severity != "info" else [],
            "values": {},
        }
    )


def _device(device_summary: DeviceSummary, *, full: bool) -> DeviceSummary:
    """Drop the steps; only the fullest device keeps its categories."""
    categories = [
        part.model_copy(update={"how": ""}) for part in device_summary.categories if full and part.share >= 0.01
    ]
    return device_summary.model_copy(update={"steps": [], "categories": categories})


MAX_READING_CHARACTERS = 9000
"""Characters of a reading, below those at which clients put an answer into a file."""
METRIC_CONCISE_LEAST = 4
MOST_OTHERS = 20


def concise_reading(reading: MetricReading) -> MetricReading:
    """Return the reading with fewer points of each curve, where it would be too long."""
    short = reading.model_copy(update={"others": reading.others[:MOST_OTHERS]})
    most = max((len(series.points) for series in reading.series), default=0)
    while length(short) > MAX_READING_CHARACTERS and most > METRIC_CONCISE_LEAST:
        most = most * 2 // 3
        short = short.model_copy(update={"series": [_fewer(series, most) for series in reading.series]})
    return short


def _fewer(values: MetricValues, most: int) -> MetricValues:
    step, value = (np.array(column, dtype=np.float64) for column in zip(*values.points, strict=True))
    fewer = thinned(Series(values.metric, step, value), max(1, most // 4))
    return values.model_copy(update={"points": list(zip(fewer.step.tolist(), fewer.value.tolist(), strict=True))})


MAX_CAUSES = 8
MAX_STEPS = 3
MAX_POINTS = 30
"""Points of the curve, and at most as many again."""
PROBE_CONCISE_LEAST = 0.05
"""Hypotheses below this probability for which nothing speaks are left out."""


def concise_probe(result: ProbeResult) -> ProbeResult:
    """Return the answer with the findings that are present, the leading causes, and the curve thinned."""
    present = [finding for finding in result.findings if finding.state is State.PRESENT]
    every = max(1, len(result.curve) // MAX_POINTS)
    leading = [
        hypothesis
        for hypothesis in result.hypotheses
        if hypothesis.probability > PROBE_CONCISE_LEAST or hypothesis.because
    ]
    return result.model_copy(
        update={
            "findings": present,
            "causes": rounded(result.causes[:MAX_CAUSES]),
            "hypotheses": [] if is_sound(result) else rounded(leading[:MAX_HYPOTHESES]),
            "next_steps": [] if is_sound(result) else result.next_steps[:MAX_STEPS],
            "curve": result.curve[::every],
        }
    )


ROWS_CONCISE_MOST_ROWS = 12
MOST_IDS = 64
MOST_BATCHES = 16
LONGEST_TEXT = 600


def concise_rows(answer: RowsAt) -> RowsAt:
    """Return the first micro-batches and rows; the notes say how many there are."""
    batches = [batch.model_copy(update={"rows": batch.rows[:MOST_IDS]}) for batch in answer.batches[:MOST_BATCHES]]
    rows = [
        row.model_copy(update={"text": _beginning(row.text, LONGEST_TEXT)})
        for row in answer.rows[:ROWS_CONCISE_MOST_ROWS]
    ]
    shown = sum(len(batch.rows) for batch in batches)
    notes = list(answer.notes)
    if len(rows) < len(answer.rows):
        notes.insert(0, f"{counted(len(answer.rows) - len(rows), 'row')} more, not listed")
    if shown < answer.row_count:
        notes.insert(0, f"{shown} of {answer.row_count:,} rows fed are listed here")
    return answer.model_copy(update={"batches": batches, "rows": rows, "notes": notes})


SCRIPT_CONCISE_MOST_FINDINGS = 12


def concise_script(report: ScriptReport) -> ScriptReport:
    """Return the surest findings, and of the others how many there are."""
    more = len(report.findings) - SCRIPT_CONCISE_MOST_FINDINGS
    if more <= 0:
        return report
    surest = sorted(report.findings, key=lambda finding: SUREST_FIRST.index(finding.certainty))
    notes = [f"{counted(more, 'finding')} more, not listed", *report.notes]
    return report.model_copy(update={"findings": surest[:SCRIPT_CONCISE_MOST_FINDINGS], "notes": notes})


RUNS_CONCISE_MOST_ROWS = 25
MOST_SEEN = 3
MOST_SETTINGS = 6
"""Settings that are shown of a run, of a sweep, and of those that the sick ones share: the clearest."""


def concise_runs(answer: Runs) -> Runs:
    """Return the first rows, with the count of all in front of the notes, and the settings that matter."""
    rows = [
        row.model_copy(
            update={"seen": row.seen[:MOST_SEEN], "settings": dict(islice(row.settings.items(), MOST_SETTINGS))}
        )
        for row in answer.rows[:RUNS_CONCISE_MOST_ROWS]
    ]
    sweep = answer.sweep
    clear = [] if sweep is None else [setting for setting in sweep.settings if setting.p <= SWEPT_LEVEL]
    return answer.model_copy(
        update={
            "rows": rows,
            "shared": answer.shared[:MOST_SETTINGS],
            "sweep": sweep and sweep.model_copy(update={"settings": clear[:MOST_SETTINGS]}),
        }
    )
