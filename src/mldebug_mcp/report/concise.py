"""The short form of an answer: what an agent needs first, with what was left out told in the notes."""

from __future__ import annotations

from mldebug_mcp.models import Diagnosis, Finding, Hypothesis, State

LEAST = 0.02
"""Hypotheses below this probability are counted under `unknown`."""
DETAILED = 3
"""Hypotheses that keep their next steps, fix and citations."""
MAX_FINDINGS = 20
MAX_METRICS = 40
MAX_NOTES = 10


def worth_showing(findings: list[Finding]) -> list[Finding]:
    """Return the findings that are present, then the remarks on what is harmless."""
    seen = [finding for finding in findings if finding.state is State.PRESENT]
    return seen + [finding for finding in findings if finding.state is State.ABSENT and finding.summary]


def concise(diagnosis: Diagnosis) -> Diagnosis:
    """Return the diagnosis with the findings that are present and the hypotheses that matter.

    The probabilities still sum to 1: the causes left out are counted under `unknown`, and a note says how many they are.
    """
    kept = [one for one in diagnosis.hypotheses if one.probability >= LEAST or one.cause in ("healthy", "unknown")]
    left_out = [one for one in diagnosis.hypotheses if one not in kept]
    folded = sum(one.probability for one in left_out)
    leading = {one.cause for one in kept[:DETAILED]} - {"healthy"}
    hypotheses = [_short(one, folded if one.cause == "unknown" else 0.0, detailed=one.cause in leading) for one in kept]
    findings = worth_showing(diagnosis.findings)[:MAX_FINDINGS]
    metrics = diagnosis.run.metrics
    notes = list(diagnosis.notes[:MAX_NOTES])
    if left_out:
        notes.append(f"{len(left_out)} causes below {LEAST:.0%} ({folded:.0%} together) are counted under unknown")
    if len(metrics) > MAX_METRICS or len(diagnosis.notes) > MAX_NOTES:
        notes.append(f"{len(metrics)} metrics and {len(diagnosis.notes)} notes in all; detail='full' lists them")
    healthy = bool(hypotheses) and hypotheses[0].cause == "healthy"
    return diagnosis.model_copy(
        update={
            "run": diagnosis.run.model_copy(update={"metrics": metrics[:MAX_METRICS]}),
            "findings": findings,
            "hypotheses": sorted(hypotheses, key=lambda one: -one.probability),
            "next_steps": diagnosis.next_steps[: 1 if healthy else 3],
            "notes": notes,
        }
    )


def _short(hypothesis: Hypothesis, extra: float, *, detailed: bool) -> Hypothesis:
    update: dict[str, object] = {"probability": hypothesis.probability + extra}
    if detailed:
        update |= {"next_steps": [], "citations": hypothesis.citations[:2]}
    else:
        update |= {"summary": "", "fix": "", "next_steps": [], "citations": [], "against": []}
    return hypothesis.model_copy(update=update)
