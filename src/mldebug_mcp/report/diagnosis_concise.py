"""The short form of a diagnosis for agents, with as much of the sheet as fits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import figure, shorten
from mldebug_mcp.judge.ranking import credence
from mldebug_mcp.judge.run_verdict import whole_clauses, whole_sentences
from mldebug_mcp.judge.sheet import USUAL, lines_of
from mldebug_mcp.judge.what_to_log import LEAST_STEPS
from mldebug_mcp.models import Comparison, Diagnosis, Finding, Hypothesis, NextStep, RunSummary, RunVerdict, Update
from mldebug_mcp.models.base import OTHER, SOUND
from mldebug_mcp.models.diagnosis import CheckpointChoice, CurveFact, QuantityFact, Sheet, Tried
from mldebug_mcp.report.concise import PROBABILITY_DECIMALS, fitted, length, quoted_once, rounded
from mldebug_mcp.report.sections import verdict_block, worth_showing

# The sheet in as many characters as there are: what decides is kept, the rest is shortened, named or counted.


SHORT_NAME = 40
LONGEST_LINE = 600
LINE_LESS = 40
LEAST_EVENTS = 4
LONGEST_EVENT = 160
LONGEST_FACT = 240
Step = Callable[[Sheet], Sheet]
_CHARACTERS_BETWEEN_LINES = 2
"""Characters between two lines in JSON, besides their quotation marks."""
_ALSO = "also logged (read_metric shows them): "
_LAST_VALUES = regex(r"(?s)(?<=; )([^;:]*): [^;]*((?:; [^;:]*)*)$")
MAX_ALSO_LOGGED = 1200
"""Characters of that line, with the values at both ends."""
MIN_SHARE_BEYOND_ENDS = 0.3
"""Share of its range by which a curve goes beyond its ends where that is stated. Chosen: by hand."""
LEAST_NAMED = 60
"""Characters of that line where room is short."""


def lines_within(sheet: Sheet, room: int) -> list[str]:
    """Return the lines of a sheet that fit into so many characters of JSON.

    What no finding rests on and no setting marks goes first: settings that are not known by name, the course of columns
    that are not results, jumps without a finding, from the least on. Only where what decides is itself too much,
    lines are cut.
    """
    lines = lines_of(sheet)
    for shorter in _shorter(sheet):
        if _length(lines) <= room:
            return lines
        lines = lines_of(shorter)
    for longest in (*range(LONGEST_LINE, SHORT_NAME, -LINE_LESS), 0):
        if _length(lines) <= room:
            break
        lines = [shorten(line, longest) for line in lines] if longest else _leading_lines(lines, room)
    return lines


def least_room(sheet: Sheet) -> int:
    """Return the characters of JSON that what decides takes: the lines of the sheet when nothing else is left."""
    return _length(lines_of([sheet, *_shorter(sheet)][-1]))


def _leading_lines(lines: list[str], room: int) -> list[str]:
    """Return as many of the lines as there is room for."""
    return next(lines[:count] for count in range(len(lines), -1, -1) if _length(lines[:count]) <= max(0, room))


def _shorter(sheet: Sheet) -> Iterator[Sheet]:
    """Yield the sheet shorter and shorter."""
    for step in _STEPS:
        for _ in range(60):
            sheet, before = step(sheet), sheet
            if sheet == before:
                break
            yield sheet


def _briefly(kept: Callable[[QuantityFact], bool], sheet: Sheet) -> Sheet:
    """Tell the last quantity that is not kept by its first and last values alone."""
    for place, quantity_fact in reversed(list(enumerate(sheet.quantities))):
        if not kept(quantity_fact) and (short := _sheet_lines_brief(quantity_fact)) != quantity_fact:
            quantities = [*sheet.quantities[:place], short, *sheet.quantities[place + 1 :]]
            return sheet.model_copy(update={"quantities": quantities})
    return sheet


def _sheet_lines_brief(quantity: QuantityFact) -> QuantityFact:
    curves = [curve.model_copy(update={"text": _ends(curve)}) for curve in quantity.curves]
    return quantity.model_copy(update={"curves": curves, "gap": ""})


def _ends(curve: CurveFact) -> str:
    """Return a curve by its first and last values, with an extreme that lies beyond both by a share of the way."""
    name = shorten(curve.name, SHORT_NAME) + (f" in {curve.unit}" if curve.unit else "")
    first, last, low, high = curve.first, curve.last, curve.low, curve.high
    beyond = [
        (distance, word, value, step)
        for distance, word, value, step in (
            (min(first, last) - low, "low", low, curve.low_at), (high - max(first, last), "high", high, curve.high_at)
        )
        if distance > MIN_SHARE_BEYOND_ENDS * (high - low)
    ]  # fmt: skip
    turn = ""
    if beyond:
        _, word, value, step = max(beyond)
        turn = f" ({word} {figure(value)} at {figure(step)})"
    ends = figure(last) if first == last else f"{figure(first)} to {figure(last)}"
    return f"{name}: {ends}{turn}"


def _without_columns(kept: Callable[[QuantityFact], bool], sheet: Sheet) -> Sheet:
    """Leave out the last quantity that is not kept, and name it."""
    for place, quantity_fact in reversed(list(enumerate(sheet.quantities))):
        if not kept(quantity_fact):
            left = [*sheet.quantities[:place], *sheet.quantities[place + 1 :]]
            named = _also_logged(_ends(quantity_fact.curves[0]), sheet.not_judged)
            return sheet.model_copy(update={"quantities": left, "not_judged": named})
    return sheet


def _also_logged(ends: str, lines: Iterable[str]) -> list[str]:
    """Return what was not judged with the first and last values of one more column."""
    others = [line.removeprefix(_ALSO) for line in lines if line.startswith(_ALSO)]
    also = _ALSO + "; ".join([ends, *others])
    return [*(line for line in lines if not line.startswith(_ALSO)), shorten(also, MAX_ALSO_LOGGED)]


def _fewer_settings(least: int, sheet: Sheet) -> Sheet:
    """Leave out the last setting whose value is usual, but for so many."""
    usual = [at for at, setting_fact in enumerate(sheet.settings) if not setting_fact.usual]
    if len(usual) <= least:
        return sheet
    settings = [setting_fact for at, setting_fact in enumerate(sheet.settings) if at != usual[-1]]
    return sheet.model_copy(update={"settings": settings})


def _fewer_events(least: int, sheet: Sheet) -> Sheet:
    """Leave out the smallest jump at which no finding begins, but for so many."""
    jumps = [event for event in sheet.events if not event.findings and event.size]
    if len(jumps) <= least:
        return sheet
    smallest = min(jumps, key=lambda jump: jump.size)
    return sheet.model_copy(update={"events": [event for event in sheet.events if event is not smallest]})


def _shorter_events(sheet: Sheet) -> Sheet:
    events = [event.model_copy(update={"text": shorten(event.text, LONGEST_EVENT)}) for event in sheet.events]
    return sheet.model_copy(update={"events": events})


def _shorter_facts(sheet: Sheet) -> Sheet:
    facts = [fact.model_copy(update={"text": whole_sentences(fact.text, LONGEST_FACT)}) for fact in sheet.facts]
    return sheet.model_copy(update={"facts": facts})


def _fewer_values(sheet: Sheet) -> Sheet:
    """Leave out the values of the last of the columns that are logged too, and keep its name."""
    lines = [_LAST_VALUES.sub(r"\1\2", line) if line.startswith(_ALSO) else line for line in sheet.not_judged]
    return sheet.model_copy(update={"not_judged": lines})


def _fewer_names(sheet: Sheet) -> Sheet:
    """Name only the first of the columns that are logged too."""
    lines = [shorten(line, LEAST_NAMED) if line.startswith(_ALSO) else line for line in sheet.not_judged]
    return sheet.model_copy(update={"not_judged": lines})


def _matters(quantity_fact: QuantityFact) -> bool:
    return quantity_fact.matters


def _is_decisive(quantity_fact: QuantityFact) -> bool:
    return quantity_fact.decides


def _decides(quantity_fact: QuantityFact) -> bool:
    return quantity_fact.decides or quantity_fact.name in ("loss", "reward")


_STEPS: tuple[Step, ...] = (
    partial(_fewer_settings, 36), partial(_briefly, _matters), partial(_fewer_settings, 20),
    partial(_fewer_events, LEAST_EVENTS), partial(_without_columns, _matters), partial(_fewer_settings, 12),
    _shorter_events, _shorter_facts, partial(_briefly, _decides), partial(_fewer_events, 1),
    partial(_fewer_settings, 4), partial(_without_columns, _decides), partial(_briefly, _is_decisive),
    _fewer_values, _fewer_names,
)  # fmt: skip
"""What is left out, in this order."""


def _length(lines: list[str]) -> int:
    return sum(len(json.dumps(line)) + _CHARACTERS_BETWEEN_LINES for line in lines)


MIN_LISTED_PROBABILITY = 0.02
"""Hypotheses below this probability are counted under `unknown`."""
MAX_CAUSES = 5
"""Causes that are shown."""
MAX_HYPOTHESES = 30
"""Causes that are shown if many are about as likely, so that none leads."""
MAX_FOR = 2
MAX_AGAINST = 1
MAX_FACT = 120
QUOTED_HYPOTHESES = 1
"""Hypotheses that keep a quote."""
LEAST_DETAILED = 0.05
"""... if they are at least so probable: advice on what is hardly so is in the way (chosen)."""
MAX_QUOTE = 240
MAX_STEPS = 2
MAX_FINDINGS = 20
MAX_NOTES = 4
MAX_NOTE = 200
MAX_TO_LOG = 2
MAX_HOW = 160
MAX_FINDING_STEPS = 3
MAX_METRICS = 8
MAX_METRIC_NAME = 40
MAX_SETTINGS = 8
MAX_PARTINGS = 6
MAX_AS_GOOD = 4
MAX_TRIED = 4
MAX_PATH = 120
"""Characters of a path above which only its name is given."""
MAX_DIAGNOSIS_CHARACTERS = 6000
"""Characters of the answer: what a reader takes in at once."""
MAX_HEALTHY_CHARACTERS = 2500
"""Characters of the answer for a run with nothing wrong."""
NOTE_ROOM = 290
"""Characters that are kept for the note on how to get the rest."""
LEAST_ROOM = (4500, 1300)
"""Characters that all but the sheet may take next to a long sheet, and where nothing is wrong."""
CLEARLY_HEALTHY = 0.5
"""Probability from which a healthy run needs no long answer."""
MAX_RIVAL_PROBABILITY = 0.2
"""The answer takes a few lines if `healthy` is at least this probable, and no named cause more than this. Chosen by
hand: so it is for nearly all healthy runs, simulated and real, and none of their other causes is worth a look."""
MAX_USUAL = 2
"""If `healthy` leads all the same, this many findings are named, in a sentence each."""
MAX_USUAL_SUMMARY = 120
"""Characters of such a sentence."""
NOTHING = "nothing unusual"
"""What an answer notes that shows no finding."""


def is_clearly_healthy(diagnosis: Diagnosis) -> bool:
    """Return whether `healthy` leads by far, no named cause comes near, and little is seen that needs explaining."""
    leader, *others = diagnosis.hypotheses
    rivals = (other.probability for other in others if other.cause != OTHER)
    seen = worth_showing(diagnosis.findings)
    return (
        leader.cause == SOUND
        and leader.probability >= CLEARLY_HEALTHY
        and max(rivals, default=0.0) <= MAX_RIVAL_PROBABILITY
        and bool(diagnosis.run.last)
        and diagnosis.run.steps >= LEAST_STEPS
        and diagnosis.verdict.kind != "not judged"
        and len(seen) <= MAX_USUAL
        and all(len(finding.summary) <= MAX_USUAL_SUMMARY for finding in seen)
    )


def concise(diagnosis: Diagnosis) -> Diagnosis:
    """Return the sheet of a run with the findings that are present and the hypotheses that matter.

    The probabilities still sum to 1: causes that are left out are counted under `unknown`, and a note says how many.
    It takes `MAX_DIAGNOSIS_CHARACTERS` characters at most, and `MAX_HEALTHY_CHARACTERS` where a run is clearly healthy.
    """
    healthy = is_clearly_healthy(diagnosis) and diagnosis.comparison is None
    room = (MAX_HEALTHY_CHARACTERS if healthy else MAX_DIAGNOSIS_CHARACTERS) - NOTE_ROOM
    room_left = max(LEAST_ROOM[healthy], room - _length(lines_of(diagnosis.sheet)))
    short = fitted(_healthy(diagnosis) if healthy else _judged_within_room(diagnosis), room_left)
    lines = lines_within(diagnosis.sheet, room - length(short))
    return short.model_copy(update={"sheet": Sheet(lines=lines)}) if lines else short


@dataclass(frozen=True)
class _AnswerLimits:
    """How much of what is not an observation a short answer holds."""

    steps: int
    citations: int
    remarks: int
    separates: int
    fix: bool = False
    to_log: int = MAX_TO_LOG


_FORMS = (
    _AnswerLimits(steps=2, citations=1, remarks=MAX_FINDINGS, separates=MAX_CAUSES),
    _AnswerLimits(steps=1, citations=1, remarks=MAX_FINDINGS, separates=MAX_CAUSES),
    _AnswerLimits(steps=1, citations=1, remarks=MAX_FINDINGS, separates=1),
    _AnswerLimits(steps=1, citations=0, remarks=MAX_FINDINGS, separates=1),
    _AnswerLimits(steps=1, citations=0, remarks=0, separates=1),
    _AnswerLimits(steps=1, citations=0, remarks=0, separates=0),
    _AnswerLimits(steps=1, citations=0, remarks=0, separates=0, to_log=0),
)
"""What gives way to observations on which the hypotheses rest, in this order."""


def _judged_within_room(diagnosis: Diagnosis) -> Diagnosis:
    """Return findings and hypotheses with as much else as leaves room for the lines of the sheet that decide."""
    room = min(LEAST_ROOM[0], MAX_DIAGNOSIS_CHARACTERS - NOTE_ROOM - least_room(diagnosis.sheet))
    each = (_judged(diagnosis, most) for most in _FORMS)
    return next((form for form in each if length(form) <= room), _judged(diagnosis, _FORMS[-1]))


def _asked_first(diagnosis: Diagnosis) -> list[NextStep]:
    """Return the next steps; the check that the verdict asks for comes first."""
    check = verdict_block(diagnosis).check
    return sorted(diagnosis.next_steps, key=lambda step: check is not None and step.id != check.id)


def _judged(diagnosis: Diagnosis, most: _AnswerLimits) -> Diagnosis:
    hypotheses, note = _likely(diagnosis.hypotheses, most)
    notes = [shorten(text, MAX_NOTE) for text in diagnosis.notes[:MAX_NOTES]]
    if len(diagnosis.notes) > MAX_NOTES:
        notes.append(f"{len(diagnosis.notes)} notes in all")
    steps = _asked_first(diagnosis)[: min(most.steps, 1 if diagnosis.hypotheses[0].cause == SOUND else MAX_STEPS)]
    shown = worth_showing(diagnosis.findings)[: max(len(diagnosis.present), most.remarks)][:MAX_FINDINGS]
    return Diagnosis(
        verdict=diagnosis.verdict,
        run=_brief(diagnosis.run),
        findings=[
            Finding(symptom=seen.symptom, state=seen.state, summary=seen.summary, steps=seen.steps[:MAX_FINDING_STEPS])
            for seen in shown
        ],
        hypotheses=hypotheses,
        next_steps=steps,
        next_step=diagnosis.next_step,
        notes=[*notes, *note],
        **_filled(
            ties=diagnosis.ties,
            what_to_log=[
                metric_to_log.model_copy(update={"how": whole_clauses(metric_to_log.how, MAX_HOW)})
                for metric_to_log in diagnosis.what_to_log[: most.to_log]
            ],
            comparison=_brief_comparison(diagnosis.comparison),
            checkpoint=_brief_choice(diagnosis.checkpoint),
            tried=_brief_tried(diagnosis.tried),
        ),
    )


def _brief_choice(choice: CheckpointChoice | None) -> CheckpointChoice | None:
    """Return which checkpoint to keep without the list of all of them; its fields that say nothing are left unset."""
    if choice is None:
        return None
    return CheckpointChoice(
        **_filled(
            keep=choice.keep,
            verdict=choice.verdict,
            summary=choice.summary,
            metric=choice.metric,
            as_good=choice.as_good[:MAX_AS_GOOD],
            notes=[shorten(note, MAX_NOTE) for note in choice.notes[:MAX_USUAL]],
        ),
        best_saved=choice.best_saved,
    )


def _brief_tried(tried: list[Tried]) -> list[Tried]:
    """Return what was tried, the newest, without what it predicted."""
    newest = sorted(tried, key=lambda entry: entry.at, reverse=True)[:MAX_TRIED]
    return [
        Tried(
            at=entry.at,
            cause=entry.cause,
            done=shorten(entry.done, MAX_FACT),
            outcome=entry.outcome,
            **_filled(check=entry.check, measured=entry.measured, compared=shorten(entry.compared, MAX_NOTE)),
        )
        for entry in newest
    ]


def _brief_comparison(comparison: Comparison | None) -> Comparison | None:
    if comparison is None:
        return None
    return comparison.model_copy(
        update={
            "settings": comparison.settings[:MAX_SETTINGS],
            "partings": comparison.partings[:MAX_PARTINGS],
            "alike": comparison.alike[:MAX_PARTINGS],
        }
    )


def _healthy(diagnosis: Diagnosis) -> Diagnosis:
    """Return what was read, that nothing is unusual, and what was not logged; other fields are left unset."""
    doubted = verdict_block(diagnosis).check is not None
    noteworthy = worth_showing(diagnosis.findings)
    leader = round(diagnosis.hypotheses[0].probability, 2)
    missing = [name for name in USUAL if name not in diagnosis.run.metrics]
    notes = [
        NOTHING if not noteworthy else "seen in healthy runs too",
        "all other causes are counted under unknown",
        *([f"not logged: {', '.join(missing)}"] if missing else []),
    ]
    return Diagnosis(
        verdict=RunVerdict(
            kind=diagnosis.verdict.kind,
            headline=diagnosis.verdict.headline,
            **_filled(next=diagnosis.verdict.next if doubted else ""),
        ),
        run=_brief(diagnosis.run),
        findings=[
            Finding(symptom=finding.symptom, state=finding.state, summary=finding.summary) for finding in noteworthy
        ],
        hypotheses=[
            Hypothesis(cause=SOUND, probability=leader, credence=credence(leader)),
            Hypothesis(cause=OTHER, probability=round(1 - leader, 2), credence=credence(1 - leader)),
        ],
        next_steps=_asked_first(diagnosis)[:1] if doubted else [],
        next_step=diagnosis.next_step,
        notes=notes + _first_words(diagnosis.notes),
        **_filled(checkpoint=_brief_choice(diagnosis.checkpoint), tried=_brief_tried(diagnosis.tried)),
    )


def _first_words(notes: list[str]) -> list[str]:
    """Return the beginning of the first note, and how many there are."""
    more = [f"{len(notes)} notes in all"] if len(notes) > 1 else []
    return [*(shorten(note, MAX_USUAL_SUMMARY) for note in notes[:1]), *more]


def _brief(run: RunSummary) -> RunSummary:
    """Return what was read, with the main metrics alone: the sheet has the others, the next call the whole path."""
    path = run.path if len(run.path) <= MAX_PATH else shorten(Path(run.path).name, MAX_PATH)
    last = {name: float(f"{value:.4g}") for name, value in islice(run.last.items(), len(USUAL))}
    others = (metric for metric in run.metrics if metric not in last)
    metrics = [shorten(name, MAX_METRIC_NAME) for name in (*last, *others)]
    return RunSummary(
        path=path,
        formats=run.formats[:3],
        kind=run.kind,
        steps=run.steps,
        metrics=metrics[:MAX_METRICS],
        last=last,
        last_step=run.last_step,
        **_filled(name=run.name, config_file=run.config_file),
    )


def concise_update(update: Update) -> Update:
    """Return the update with the hypotheses that matter; causes that are left out are counted under `unknown`."""
    hypotheses, note = _likely(update.hypotheses, replace(_FORMS[0], fix=True))  # it has no verdict to hold the fix
    return update.model_copy(
        update={
            "hypotheses": hypotheses,
            "next_steps": update.next_steps[:MAX_STEPS],
            "notes": [*update.notes, *note],
        }
    )


def _likely(hypotheses: list[Hypothesis], most: _AnswerLimits) -> tuple[list[Hypothesis], list[str]]:
    """Return the hypotheses that matter, in their short form, best first, and a note on those left out, if any are."""
    left_out, folded = _unlikely(hypotheses)
    kept = [hypothesis for hypothesis in hypotheses if hypothesis.cause not in left_out]
    shown = quoted_once(_short(hypothesis, folded, most, place) for place, hypothesis in enumerate(kept))
    note = f"{len(left_out)} unlikely causes ({folded:.0%} together) are counted under unknown"
    return _best_first(shown), [note] if left_out else []


def _best_first(hypotheses: list[Hypothesis]) -> list[Hypothesis]:
    """Return the hypotheses in order, with as many digits as mean something; they still sum to 1."""
    leader, *others = sorted(hypotheses, key=lambda hypothesis: -hypothesis.probability)
    others = rounded(others)
    rest = round(1 - sum(other.probability for other in others), PROBABILITY_DECIMALS)
    return [leader.model_copy(update={"probability": rest}), *others]


def _unlikely(hypotheses: list[Hypothesis]) -> tuple[set[str], float]:
    """Return the causes to leave out, least likely first, and their probability.

    They are counted under `unknown`. Fewer are left out if `unknown` would then overtake the leader, unless more than
    `MAX_HYPOTHESES` are left: if that many are about as likely, none leads.
    """
    leader, unknown = hypotheses[0], next(hypothesis for hypothesis in hypotheses if hypothesis.cause == OTHER)
    room = 1.0 if leader is unknown else leader.probability - unknown.probability
    named = [hypothesis for hypothesis in hypotheses if hypothesis.cause not in (SOUND, OTHER)]
    left_out: set[str] = set()
    folded = 0.0
    for place, hypothesis in reversed(list(enumerate(named))):
        unlikely = (
            hypothesis.probability < MIN_LISTED_PROBABILITY or place >= MAX_CAUSES
        ) and folded + hypothesis.probability < room
        if not unlikely and len(hypotheses) - len(left_out) <= MAX_HYPOTHESES:
            break
        left_out.add(hypothesis.cause)
        folded += hypothesis.probability
    return left_out, folded


def _short(hypothesis: Hypothesis, folded: float, most: _AnswerLimits, place: int) -> Hypothesis:
    """Return a hypothesis in its short form; that in the first place has a quote, and the verdict its fix."""
    probability = hypothesis.probability + (folded if hypothesis.cause == OTHER else 0.0)
    always: dict[str, Any] = {"cause": hypothesis.cause, "probability": probability, "credence": credence(probability)}
    facts = hypothesis.because[:MAX_FOR], hypothesis.against[:MAX_AGAINST]
    if probability < MIN_LISTED_PROBABILITY:
        facts = [], []
    because, against = ([shorten(text, MAX_FACT) for text in texts] for texts in facts)
    always |= {"because": because, "against": against, "next_steps": [], "citations": []}
    if hypothesis.cause == SOUND or probability < LEAST_DETAILED:
        return Hypothesis(**always, **_filled(tied_with=hypothesis.tied_with))
    separates = hypothesis.separates if place < most.separates else ""
    ties = _filled(tied_with=hypothesis.tied_with, separates=separates)
    if place >= QUOTED_HYPOTHESES:
        return Hypothesis(**always, **ties)
    always["citations"] = [citation for citation in hypothesis.citations if len(citation.text) <= MAX_QUOTE][
        : most.citations
    ]
    return Hypothesis(**always, **ties, **_filled(fix=hypothesis.fix if most.fix else ""))


def _filled(**fields: object) -> dict[str, Any]:
    """Return the fields that hold something: an empty one is left unset, and so out of the answer."""
    return {name: value for name, value in fields.items() if value}
