"""The short form of a diagnosis: what an agent needs first. The notes say what was left out."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

from mldebug_mcp.diagnose.diagnosis import HARDLY_JUDGED
from mldebug_mcp.diagnose.ranking import credence
from mldebug_mcp.diagnose.what_to_log import LEAST_STEPS
from mldebug_mcp.models import Diagnosis, Finding, Hypothesis, RunSummary, State, Update
from mldebug_mcp.report.fit import DIGITS, rounded
from mldebug_mcp.report.quotes import quoted_once
from mldebug_mcp.text import shorten

LEAST = 0.02
"""Hypotheses below this probability are counted under `unknown`."""
MAX_HYPOTHESES = 30
DETAILED = 3
"""Hypotheses that keep their next steps, fix and citations."""
LEAST_DETAILED = 0.05
"""... if they are at least so probable: advice on what is hardly so is in the way (chosen)."""
MAX_CITATIONS = 2
MAX_STEPS = 3
MAX_SENTENCE = 400
"""Characters of a summary or a fix; `explain` returns them in full."""
MAX_FINDINGS = 20
MAX_METRICS = 40
MAX_NOTES = 10
MAX_TO_LOG = 2
MAX_PATH = 30
"""Characters of a path above which only its name is given, in the answer for a run with nothing wrong."""
CLEARLY_HEALTHY = 0.5
RIVAL = 0.1
"""The answer takes a few lines if `healthy` is at least this probable, and no named cause more than this. Chosen by
hand: so it is for nearly all healthy runs, simulated and real, and none of their other causes is worth a look."""
MAX_USUAL, MAX_USUAL_SUMMARY = 2, 120
"""If `healthy` leads all the same, this many findings are named, in a sentence each."""
USUAL = ("loss", "eval_loss", "grad_norm", "learning_rate")
"""Metrics whose absence is noted if nothing was found."""


def is_clearly_healthy(diagnosis: Diagnosis) -> bool:
    """Return whether `healthy` leads by far, no named cause comes near, and little is seen that needs explaining."""
    leader, *others = diagnosis.hypotheses
    rivals = (one.probability for one in others if one.cause != "unknown")
    return (
        (leader.cause == "healthy" and leader.probability >= CLEARLY_HEALTHY and max(rivals, default=0.0) <= RIVAL)
        and bool(diagnosis.run.last)
        and diagnosis.run.steps >= LEAST_STEPS
        and HARDLY_JUDGED not in diagnosis.notes
        and len(worth_showing(diagnosis.findings)) <= MAX_USUAL
    )


def worth_showing(findings: list[Finding]) -> list[Finding]:
    """Return the findings that are present, then the remarks on harmless things."""
    seen = [finding for finding in findings if finding.state is State.PRESENT]
    return seen + [finding for finding in findings if finding.state is State.ABSENT and finding.summary]


def concise(diagnosis: Diagnosis) -> Diagnosis:
    """Return the diagnosis with the findings that are present and the hypotheses that matter.

    The probabilities still sum to 1: causes that are left out are counted under `unknown`, and a note says how many.
    A run that is clearly healthy is answered in a few lines.
    """
    if is_clearly_healthy(diagnosis) and diagnosis.comparison is None:
        return _healthy(diagnosis)
    hypotheses, note = _likely(diagnosis.hypotheses)
    metrics = diagnosis.run.metrics
    notes = [*diagnosis.notes[:MAX_NOTES], *note]
    if len(metrics) > MAX_METRICS or len(diagnosis.notes) > MAX_NOTES:
        notes.append(f"{len(metrics)} metrics and {len(diagnosis.notes)} notes in all")
    return Diagnosis(
        run=diagnosis.run.model_copy(update={"metrics": metrics[:MAX_METRICS]}),
        findings=worth_showing(diagnosis.findings)[:MAX_FINDINGS],
        hypotheses=hypotheses,
        next_steps=diagnosis.next_steps[: 1 if diagnosis.hypotheses[0].cause == "healthy" else MAX_STEPS],
        next_step=diagnosis.next_step,
        notes=notes,
        **_filled(ties=diagnosis.ties, what_to_log=diagnosis.what_to_log[:MAX_TO_LOG], comparison=diagnosis.comparison),
    )


def _healthy(diagnosis: Diagnosis) -> Diagnosis:
    """Return what was read, that nothing stands out, and what was not logged; other fields are left unset."""
    seen = worth_showing(diagnosis.findings)
    leader = round(diagnosis.hypotheses[0].probability, 2)
    missing = [name for name in USUAL if name not in diagnosis.run.metrics]
    notes = [
        "nothing stands out" if not seen else "seen in healthy runs too",
        *([f"not logged: {', '.join(missing)}"] if missing else []),
    ]
    return Diagnosis(
        run=_brief(diagnosis.run, most=len(USUAL)),
        findings=[
            Finding(symptom=one.symptom, state=one.state, summary=shorten(one.summary, MAX_USUAL_SUMMARY))
            for one in seen
        ],
        hypotheses=[
            Hypothesis(cause="healthy", probability=leader, credence=credence(leader)),
            Hypothesis(cause="unknown", probability=round(1 - leader, 2), credence=credence(1 - leader)),
        ],
        next_steps=[],
        notes=notes + _first_words(diagnosis.notes),
    )


def _first_words(notes: list[str]) -> list[str]:
    """Return the beginning of the first note, and how many there are."""
    more = [f"{len(notes)} notes in all"] if len(notes) > 1 else []
    return [*(shorten(note, MAX_USUAL_SUMMARY) for note in notes[:1]), *more]


def _brief(run: RunSummary, most: int) -> RunSummary:
    """Return what was read, with at most this many last values; the next call has the whole path."""
    path = run.path if len(run.path) <= MAX_PATH else shorten(Path(run.path).name, MAX_PATH)
    last = {name: float(f"{value:.3g}") for name, value in islice(run.last.items(), most)}
    return RunSummary(path=path, formats=run.formats, steps=run.steps, metrics=list(last), last=last)


def concise_update(update: Update) -> Update:
    """Return the update with the hypotheses that matter; causes that are left out are counted under `unknown`."""
    hypotheses, note = _likely(update.hypotheses)
    return update.model_copy(
        update={
            "hypotheses": hypotheses,
            "next_steps": update.next_steps[:MAX_STEPS],
            "notes": [*update.notes, *note],
        }
    )


def _likely(hypotheses: list[Hypothesis]) -> tuple[list[Hypothesis], list[str]]:
    """Return the hypotheses that matter, in their short form, best first, and a note on those left out, if any are."""
    left_out, folded = _unlikely(hypotheses)
    kept = [one for one in hypotheses if one.cause not in left_out]
    shown = quoted_once(_short(one, folded, detailed=place < DETAILED) for place, one in enumerate(kept))
    note = f"{len(left_out)} unlikely causes ({folded:.0%} together) are counted under unknown"
    return _best_first(shown), [note] if left_out else []


def _best_first(hypotheses: list[Hypothesis]) -> list[Hypothesis]:
    """Return the hypotheses in order, with as many digits as mean something; they still sum to 1."""
    leader, *others = sorted(hypotheses, key=lambda one: -one.probability)
    others = rounded(others)
    rest = round(1 - sum(one.probability for one in others), DIGITS)
    return [leader.model_copy(update={"probability": rest}), *others]


def _unlikely(hypotheses: list[Hypothesis]) -> tuple[set[str], float]:
    """Return the causes to leave out, least likely first, and their probability.

    They are counted under `unknown`. Fewer are left out if `unknown` would then overtake the leader, unless more than
    `MAX_HYPOTHESES` are left: if that many are about as likely, there is no leader.
    """
    leader, unknown = hypotheses[0], next(one for one in hypotheses if one.cause == "unknown")
    room = 1.0 if leader is unknown else leader.probability - unknown.probability
    left_out: set[str] = set()
    folded = 0.0
    for one in reversed(hypotheses):
        if one.cause in ("healthy", "unknown"):
            continue
        unlikely = one.probability < LEAST and folded + one.probability < room
        if not unlikely and len(hypotheses) - len(left_out) <= MAX_HYPOTHESES:
            break
        left_out.add(one.cause)
        folded += one.probability
    return left_out, folded


def _short(hypothesis: Hypothesis, folded: float, *, detailed: bool) -> Hypothesis:
    probability = hypothesis.probability + (folded if hypothesis.cause == "unknown" else 0.0)
    always: dict[str, Any] = {"cause": hypothesis.cause, "probability": probability, "credence": credence(probability)}
    always |= {"because": hypothesis.because[:1], "against": [], "next_steps": [], "citations": []}
    if not detailed or hypothesis.cause == "healthy" or probability < LEAST_DETAILED:
        return Hypothesis(**always, **_filled(tied_with=hypothesis.tied_with))
    always |= {"because": hypothesis.because, "against": hypothesis.against}
    always |= {"citations": hypothesis.citations[:MAX_CITATIONS]}
    summary, fix = shorten(hypothesis.summary, MAX_SENTENCE), shorten(hypothesis.fix, MAX_SENTENCE)
    return Hypothesis(**always, **_filled(summary=summary, fix=fix, tied_with=hypothesis.tied_with))


def _filled(**fields: object) -> dict[str, Any]:
    """Return the fields that hold something: an empty one is left unset, and so out of the answer."""
    return {name: value for name, value in fields.items() if value}
