"""The causes, ranked on the findings of a run or of a probe, as hypotheses that show what they rest on."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from mldebug_mcp.diagnose.calibrate import Fitted, fitted
from mldebug_mcp.diagnose.citations import quotes_for
from mldebug_mcp.diagnose.known_errors import beside
from mldebug_mcp.diagnose.next_steps import applies, looks_up_a_message, possible_call
from mldebug_mcp.diagnose.ranking import (
    LEAST_SHOWN,
    SPEAKS,
    Evidence,
    Kind,
    Ranked,
    credence,
    in_bits,
    not_too_sure,
    rank,
)
from mldebug_mcp.diagnose.ties import tied
from mldebug_mcp.diagnose.weighing import Candidate, weigh
from mldebug_mcp.knowledge import Catalogue, catalogue
from mldebug_mcp.knowledge.playbook import plain
from mldebug_mcp.models import Finding, Hypothesis, NextStep, Reason, State
from mldebug_mcp.symptoms import symptoms

LEADING = 0.02
"""Hypotheses below this probability are listed without fix, next steps and citations."""
MAX_STEPS_EACH = 3
NO_ERROR = "error_message"
"""The symptom whose absence says that the log was searched for errors, and has none that is known."""
UNKNOWN_ERROR = "ends_in_error"
"""The symptom of one that is not known."""


def judge_causes(
    findings: Sequence[Finding],
    kind: str,
    told: Sequence[Evidence],
    path: str,
    only: Collection[str] | None = None,
) -> list[Hypothesis]:
    """Rank the causes, all or `only` some, on these findings, of a log or of a probe.

    `told` is what is known beside the findings.
    """
    known = catalogue()
    probed = any(finding.symptom not in symptoms() for finding in findings)
    judged = [one for one in candidates(kind, probed=probed) if only is None or one.id in only]
    # Weight and sharpness are fitted on logs; a probe measures one thing at a time, so its symptoms are independent.
    numbers = fitted() if only is None else Fitted(provenance="a probe: as chosen")
    counted = independent(beside(findings, told))
    powers = numbers.powers(told)
    evidence = [*weigh(judged, counted, backgrounds(probed=probed), powers.trust), *told]
    priors = {one.id: one.prior for one in judged}
    ranked = not_too_sure(rank(priors, evidence, powers.sharpness, numbers.among_faults), evidence)
    ties = tied(ranked)
    by_state = {state: {one.symptom for one in findings if one.state is state} for state in State}
    kinds = {one.because: one.kind for one in evidence}
    summaries = {one.symptom: one.summary for one in findings if one.state is State.PRESENT}
    return [
        _with_reasons(
            _hypothesis(known, item, path, kind, tied_with=ties.get(item.id, []), states=by_state),
            item,
            kinds,
            summaries,
        )
        for item in ranked
    ]


def independent(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings without those that follow from another one: a NaN in the loss makes every metric NaN.

    Nor is a symptom's absence kept that follows from another form of the same trouble: a slow fall is not a plateau.
    """
    present = {finding.symptom for finding in findings if finding.state is State.PRESENT}
    known = symptoms()

    def follows(finding: Finding) -> bool:
        symptom = known.get(finding.symptom)
        others = () if symptom is None else symptom.outcome.follows
        if symptom is not None and finding.state is State.ABSENT:
            others = (*others, *symptom.outcome.instead)
        return not present.isdisjoint(others)

    return [finding for finding in findings if not follows(finding)]


def candidates(kind: str, numbers: Fitted | None = None, *, probed: bool = False) -> Sequence[Candidate]:
    """Return all causes as the ranking sees them, with frequencies as fitted (by default those that ship).

    A symptom that neither a quote nor a counted run says a cause to produce does not weigh: it is a guess. One that
    counted runs with the cause showed weighs by that, listed or not. The symptoms of a probe are included only if
    something was `probed`: for a log alone they are not loaded.
    """
    return _shipped(kind, probed=probed) if numbers is None else _candidates(kind, numbers, probed=probed)


@lru_cache(maxsize=32)
def _shipped(kind: str, *, probed: bool) -> Sequence[Candidate]:
    """Return the causes with the frequencies that ship, once for each of the few kinds of run."""
    return _candidates(kind, fitted(), probed=probed)


def _candidates(kind: str, numbers: Fitted, *, probed: bool) -> Sequence[Candidate]:
    effects: Mapping[str, Mapping[str, float]] = {}
    if probed:
        from mldebug_mcp.symptoms.probe import probe_effects

        effects = probe_effects()
    chance = {one.id: one.outcome.background for one in symptoms().values()}
    return tuple(
        Candidate(
            cause.id,
            cause.prior_for(kind),
            numbers.shown_by(cause.id, chance)
            | {
                effect.symptom: numbers.frequency(cause.id, effect.symptom, effect.frequency.share)
                for effect in cause.effects
                if effect.quotes or numbers.counted(cause.id, effect.symptom)
            }
            | dict(effects.get(cause.id, {})),
        )
        for cause in catalogue().causes.values()
    )


def backgrounds(numbers: Fitted | None = None, *, probed: bool = False) -> dict[str, float]:
    """Return how often a healthy run shows each symptom, those of a probe included if something was `probed`."""
    numbers = numbers or fitted()
    chosen = {one.id: one.outcome.background for one in symptoms().values()}
    as_chosen = {one.id for one in symptoms().values() if one.outcome.as_chosen}
    if probed:
        from mldebug_mcp.symptoms.probe import probe_symptoms

        chosen |= {one.id: one.background for one in probe_symptoms().values()}
    return {
        symptom: background if symptom in as_chosen else numbers.background(symptom, background)
        for symptom, background in chosen.items()
    }


def _hypothesis(
    known: Catalogue,
    item: Ranked,
    path: str,
    kind: str,
    *,
    tied_with: list[str],
    states: Mapping[State, Collection[str]],
) -> Hypothesis:
    cause, absent = known.causes[item.id], states[State.ABSENT]
    seen = {symptom for symptom, bits in item.bits.items() if bits > 0 and symptom not in absent}
    speaking = sorted(seen & set(states[State.PRESENT]), key=lambda symptom: -item.bits[symptom])
    # What is said by the way, in a fraction of a bit, is no ground: where something speaks out, it stands alone.
    speaking = [symptom for symptom in speaking if item.bits[symptom] >= SPEAKS] or speaking
    short = Hypothesis(
        cause=item.id,
        probability=item.probability,
        credence=credence(item.probability),
        because=in_bits(item, +1, absent),
        against=in_bits(item, -1, absent),
        symptoms=speaking,
        tied_with=tied_with,
    )
    if item.probability < LEADING:
        return short
    # The log was searched for errors and has none: that check has been made.
    searched = NO_ERROR in absent and UNKNOWN_ERROR not in states[State.PRESENT]
    fitting = [
        step for step in cause.next_steps if applies(step.action, kind) and not (searched and looks_up_a_message(step))
    ]
    return short.model_copy(
        update={
            "summary": plain(cause.summary),
            "fix": plain(cause.fix),
            "next_steps": [
                _filled(step, path, kind, errors=NO_ERROR not in absent) for step in fitting[:MAX_STEPS_EACH]
            ],
            "citations": known.cite(quotes_for(cause, seen, kind, states[State.PRESENT])),
        }
    )


def _with_reasons(one: Hypothesis, item: Ranked, kinds: Mapping[str, Kind], summaries: Mapping[str, str]) -> Hypothesis:
    """Return a hypothesis with what weighs for and against it, as facts, strongest first."""
    if item.probability < LEADING:
        return one
    weighing = sorted(item.bits.items(), key=lambda told: -abs(told[1]))
    reasons = [
        Reason(
            fact=_fact(what, kinds[what], summaries),
            bits=bits,
            kind=kinds[what],
            symptom=what if kinds[what] == "finding" else "",
        )
        for what, bits in weighing
        if abs(bits) > LEAST_SHOWN
    ]
    return one.model_copy(update={"reasons": reasons})


def _fact(what: str, kind: Kind, summaries: Mapping[str, str]) -> str:
    """Return what weighs as a fact: of a finding its summary, of one that is absent what it would be."""
    if kind != "finding":
        return what
    if what in summaries:
        return summaries[what]
    known = symptoms().get(what)
    title = known.title.rstrip(".") if known is not None else what
    return f"not seen: {title[:1].lower()}{title[1:]}"


def _filled(step: NextStep, path: str, kind: str, *, errors: bool) -> NextStep:
    return step.model_copy(update={"call": possible_call(step.call, path, kind, errors=errors)})
