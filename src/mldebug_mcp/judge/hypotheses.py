"""The ranked causes as hypotheses, and the numbers from labelled runs that weigh them.

Each hypothesis shows what it rests on, its quotes, and what ties it with others.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from mldebug_mcp.checks import probe_effects, symptoms
from mldebug_mcp.checks.check import Symptom
from mldebug_mcp.core.lazy import dataclass
from mldebug_mcp.core.text import plain
from mldebug_mcp.judge.evidence import findings_to_judge
from mldebug_mcp.judge.likeness import OF_TRAITS
from mldebug_mcp.judge.next_steps import (
    CHECK_SENSITIVITY,
    COST,
    FALSE_CONFIRMATION,
    Likelihood,
    applies,
    looks_up_a_message,
    possible_call,
    worth,
)
from mldebug_mcp.judge.ranking import (
    LEAST_SHOWN,
    MIN_SPEAKING_BITS,
    SYMPTOM_WEIGHT,
    Candidate,
    CauseEvidence,
    Kind,
    Ranked,
    Trust,
    credence,
    in_bits,
    not_too_sure,
    rank,
    weigh,
    with_traits,
)
from mldebug_mcp.judge.what_to_log import MIN_SEPARATED_PROBABILITY as WHAT_TO_LOG_LEADING
from mldebug_mcp.judge.what_to_log import metrics_that_split
from mldebug_mcp.knowledge import Catalogue, Cause, Quote, catalogue
from mldebug_mcp.knowledge.catalogue import Frequency, Link, counts
from mldebug_mcp.logs import Run
from mldebug_mcp.models import Finding, Hypothesis, NextStep, Reason, State, Tie
from mldebug_mcp.models.base import NO_FAULTS, SOUND

# Numbers from labelled runs: frequencies, backgrounds, how evidence is weighed and how sharp; the classifier.
#
# The words in `links.csv` are where a frequency starts; runs with a known cause move it:
#
# frequency = (seen + 4 * word) / (runs + 4).
#
# `runs` are those with the cause in which the symptom could be judged, and `seen` those that showed it. So a word
# counts as much as four runs. What runs with a cause showed is linked with it without a word, too: chance stands for
# the word then, and counts as twelve runs. The background of a symptom is moved in the same way by healthy runs. The
# trust in each question is that under which the labelled causes are likeliest; the sharpness the one under which
# probabilities are closest to how often they are right. `links.csv` holds the words and what was counted, `fitted.json`
# the powers and on what both rest; `python -m benchmarks.faults fit` writes the counts and the powers.


WORD_COUNTS_AS = 4
"""Runs that a word of `links.csv`, or a background chosen by hand, counts as."""
MIN_RUNS_SHOWN = 1.0
"""Runs with a cause that showed a symptom, from which they are linked without a word. Chosen: one run;
with two, the runs of authors whom the fit never saw have their cause among three a little less often."""
CHANCE_COUNTS_AS = 12
"""Runs that chance counts as where no word says how often a cause shows a symptom. Chosen: with four, as a word, runs
of authors whom the fit never saw have their cause first less often, and probabilities are less often right."""
LEAST_COUNTED = 1.0
"""Runs with a cause in which a symptom could be judged, from which their link counts as counted. Chosen: one run."""
FITTED_FILE = Path(__file__).parent / "fitted.json"

Counts = dict[str, tuple[float, float]]
"""By symptom: runs that showed it, and runs in which it could be judged; versions of one run share its one."""


@dataclass(frozen=True, slots=True)
class Powers:
    """How far evidence is trusted, and how sharp the probabilities are that it makes; see `Trust` and `rank`."""

    weight: float = SYMPTOM_WEIGHT
    missed: float = 0.0
    unlisted: float = 0.0
    absent: float | None = None
    questions: dict[str, float] = field(default_factory=dict)
    sharpness: float = 1.0

    @property
    def trust(self) -> Trust:
        """How far findings are trusted."""
        return Trust(self.weight, self.missed, self.unlisted, self.absent, self.questions)


@dataclass(frozen=True, slots=True)
class Fitted:
    """What was counted, with which links (their `fingerprint`), and the powers that were fitted.

    `with_findings` are the powers where the numbers of a run count with its findings; `alone` where findings speak
    alone. The counts of `causes` and of `healthy` runs are kept in `links.csv`.
    """

    provenance: str
    links: str = ""
    with_findings: Powers = field(default_factory=Powers)
    alone: Powers = field(default_factory=Powers)
    among_faults: float = 1.0
    causes: dict[str, Counts] = field(default_factory=dict)
    healthy: Counts = field(default_factory=dict)

    def powers(self, evidence: Iterable[CauseEvidence]) -> Powers:
        """Return the powers for what is known of a run besides its findings."""
        return (
            self.with_findings if any(cause_evidence.kind == "numbers" for cause_evidence in evidence) else self.alone
        )

    def counted(self, cause: str, symptom: str) -> bool:
        """Say whether runs with a cause were counted in which a symptom could be judged.

        Where nothing at all was counted, the words stand for counts.
        """
        return not self.causes or self.causes.get(cause, {}).get(symptom, (0, 0))[1] >= LEAST_COUNTED

    def shown_by(self, cause: str, chance: Mapping[str, float]) -> dict[str, float]:
        """Return how often a cause shows each symptom that counted runs with it showed: links that need no word.

        `chance` says how often each symptom is seen by chance, where its frequency starts.
        """
        counted = self.causes.get(cause, {})
        shown = [
            symptom for symptom, (present, _) in counted.items() if present >= MIN_RUNS_SHOWN and symptom in chance
        ]
        return {text: moved(counted[text], chance[text], CHANCE_COUNTS_AS) for text in shown}

    def frequency(self, cause: str, symptom: str, word: float) -> float:
        """Return how often a cause shows a symptom: its word in numbers, moved by what was counted."""
        return moved(self.causes.get(cause, {}).get(symptom, (0, 0)), word)

    def background(self, symptom: str, chosen: float) -> float:
        """Return how often a healthy run shows a symptom: the number chosen by hand, moved by what was counted.

        It is moved down to an eighth at most, because other healthy runs have oddities that the counted ones lack.
        """
        return max(moved(self.healthy.get(symptom, (0, 0)), chosen), chosen / 8)


def moved(counted: tuple[float, float], start: float, counts_as: float = WORD_COUNTS_AS) -> float:
    """Return a share that starts at `start`, which counts as so many runs, and is moved by `(seen, runs)`."""
    present, runs = counted
    return (present + counts_as * start) / (runs + counts_as)


@lru_cache(maxsize=1)
def fitted() -> Fitted:
    """Return the numbers that ship with the package."""
    written: dict[str, Any] = json.loads(FITTED_FILE.read_text(encoding="utf-8"))
    causes: dict[str, Counts] = counts(catalogue().links)
    healthy = causes.pop(SOUND, {})
    written |= {name: Powers(**written[name]) for name in ("with_findings", "alone") if name in written}
    return Fitted(**written, causes=causes, healthy=healthy)


# The ranked causes as hypotheses. Each shows what it rests on, its quotes, and what ties it with others.


# Which quotes go with a hypothesis: those on what is seen in this run, in the domain of this run.


MAX_CITATIONS = 3
SPECIAL = frozenset({"rl", "vision", "diffusion", "vlm"})
"""Domains whose practice says little on runs of another one."""
DOMAINS = {
    "pretraining": frozenset({"llm"}),
    "sft": frozenset({"llm", "vlm"}),
    "preference": frozenset({"llm", "vlm"}),
    "grpo": frozenset({"llm", "rl"}),
    "ppo": frozenset({"llm", "rl"}),
    "rl": frozenset({"rl"}),
    "supervised": frozenset({"vision"}),
    "diffusion": frozenset({"diffusion", "vision"}),
}
"""By kind of run: the domains that it may belong to."""
TECHNIQUES = {
    "dpo": ("preference",),
    "rlhf": ("ppo", "grpo", "preference"),
    "grpo": ("grpo", "ppo"),
    "ppo": ("ppo", "grpo", "rl"),
}
"""Topics of quotes that say something of these kinds of run alone."""
OTHER_DOMAIN = 2


def quotes_for(cause: Cause, supporting: Collection[str], kind: str, present: Collection[str] = ()) -> tuple[str, ...]:
    """Return the ids of the quotes to show with a cause, at most `MAX_CITATIONS`.

    A section cites quotes for single symptoms and for the cause as a whole. One on a symptom that is not seen would
    read as if it were, so it is left out: as is one that contradicts the cause. So is one of another domain; where the
    kind of run is not known, only if there is another quote. A quote on a symptom that is present comes before others
    on the cause.
    """
    shown = [quote for effect in cause.effects if effect.symptom in supporting for quote in effect.quotes]
    elsewhere = {quote for effect in cause.effects for quote in effect.quotes} - set(shown)
    unfit = elsewhere | set(cause.contrary)
    whole = [quote for quote in (*cause.on_cause, *cause.quotes) if quote not in unfit]
    known = catalogue().quotes

    def fitness(quote: str) -> tuple[bool, bool, int]:
        filed = {*known[quote].topics, *known[quote].situations}
        return quote not in shown, filed.isdisjoint(present), _citations_distance(known[quote], kind)

    ranked = sorted(dict.fromkeys([*shown, *whole]), key=fitness)
    near = [quote for quote in ranked if _citations_distance(known[quote], kind) < OTHER_DOMAIN]
    return tuple(near if near or kind in DOMAINS else ranked)[:MAX_CITATIONS]


def _citations_distance(quote: Quote, kind: str) -> int:
    """Return how far a quote is from such a run: 0 of its domain or of all, 1 near it, `OTHER_DOMAIN` of another."""
    domains, own = set(quote.domains), DOMAINS.get(kind, frozenset({"llm"}))
    if kind not in TECHNIQUES.get(next((topic for topic in quote.topics if topic in TECHNIQUES), ""), (kind,)):
        return OTHER_DOMAIN
    if "general" in domains or domains <= own:
        return 0
    return 1 if domains & own or domains - SPECIAL else OTHER_DOMAIN


# Causes that a log cannot tell apart, and the one thing to log or run that would.


MAX_BITS_BETWEEN_TIES = 1.0
"""The evidence for two causes is the same if it differs by at most this many bits, summed over all findings."""
LEAST_FOR = 1.0
"""Bits that must support a cause: two causes without evidence are not tied. Both chosen by hand."""
LOGGING_COST = 3.0
"""The cost of logging a metric, on the scale of `COST`: the run has to be repeated, which is often done anyway."""


def tied(ranked: Sequence[Ranked]) -> dict[str, list[str]]:
    """Return, for each leading cause, those that the evidence cannot tell from it.

    If one of them is ahead, it is because it is more common, not because of this log.
    """
    supported = [cause for cause in ranked if sum(bits for bits in cause.bits.values() if bits > 0) >= LEAST_FOR]
    leading = [cause for cause in supported if cause.probability >= WHAT_TO_LOG_LEADING]
    return {
        cause.id: [
            other.id
            for other in leading
            if other.id != cause.id and _ties_distance(cause, other) <= MAX_BITS_BETWEEN_TIES
        ]
        for cause in leading
        if cause.id not in NO_FAULTS
    }


def _ties_distance(cause: Ranked, other: Ranked) -> float:
    known = cause.bits.keys() | other.bits.keys()
    return sum(abs(cause.bits.get(what, 0.0) - other.bits.get(what, 0.0)) for what in known)


def describe_ties(
    run: Run, findings: Sequence[Finding], hypotheses: Sequence[Hypothesis], likelihood: Likelihood
) -> list[Tie]:
    """Say which of the hypotheses are tied, and what would split them."""
    ties: list[Tie] = []
    for hypothesis in hypotheses:
        group = {other.cause: other for other in hypotheses if other.cause in (hypothesis.cause, *hypothesis.tied_with)}
        if len(group) > 1 and not any(set(group) & set(tie.causes) for tie in ties):
            split = _split(group, run, findings, likelihood)
            ties.append(
                Tie.model_construct(
                    causes=list(group), summary=f"the log cannot tell these apart: {', '.join(group)}; {split}"
                )
            )
    return ties


def _split(group: Mapping[str, Hypothesis], run: Run, findings: Sequence[Finding], likelihood: Likelihood) -> str:
    """Return the one thing that splits a group best for what it costs, in words."""
    shares = {cause: hypothesis.probability for cause, hypothesis in group.items()}
    options = [
        (split.bits / LOGGING_COST, f"to split them, log {split.metric}: {split.how}")
        for split in metrics_that_split(shares, run, findings, likelihood)[:1]
    ]
    for step, about in _checks(group):
        chances = np.array([[CHECK_SENSITIVITY if cause in about else FALSE_CONFIRMATION] for cause in group])
        bits = worth(list(shares.values()), chances).bits
        options.append((bits / COST[step.cost], f"to split them: {step.action} ({step.cost})"))
    return max(options)[1] if options else "nothing that we know of tells them apart"


def _checks(group: Mapping[str, Hypothesis]) -> list[tuple[NextStep, set[str]]]:
    """Return the checks of the group's hypotheses, each with those of them that it is about."""
    steps: dict[str, tuple[NextStep, set[str]]] = {}
    for cause, hypothesis in group.items():
        for step in hypothesis.next_steps:
            steps.setdefault(step.call or step.action, (step, set()))[1].add(cause)
    return list(steps.values())


# The causes, ranked on the findings of a run or of a probe, as hypotheses that show what they rest on.


MIN_LEADING_PROBABILITY = 0.02
"""Hypotheses below this probability are listed without fix, next steps and citations."""
MAX_STEPS_EACH = 3
MIN_USUAL_SHARE = 0.1
"""Share of healthy runs that show a symptom from which on it is usual. Chosen."""
NO_ERROR = "error_message"
"""The symptom whose absence says that the log was searched for errors, and has none that is known."""
UNKNOWN_ERROR = "ends_in_error"
"""The symptom of one that is not known."""


def judge_causes(
    findings: Sequence[Finding],
    kind: str,
    evidence: Sequence[CauseEvidence],
    path: str,
    only: Collection[str] | None = None,
) -> list[Hypothesis]:
    """Rank the causes, all or `only` some, on these findings, of a log or of a probe.

    `evidence` is what is known besides the findings.
    """
    known = catalogue()
    probed = any(finding.symptom not in symptoms() for finding in findings)
    judged = [candidate for candidate in candidates(kind, probed=probed) if only is None or candidate.id in only]
    # Weight and sharpness are fitted on logs; a probe measures one thing at a time, so its symptoms are independent.
    numbers = fitted() if only is None else Fitted(provenance="a probe: as chosen")
    counted = independent(findings_to_judge(findings, evidence))
    traits = [each for each in evidence if each.about == OF_TRAITS]
    rest = [each for each in evidence if each.about != OF_TRAITS]
    powers = numbers.powers(rest)
    all_evidence = [*weigh(judged, counted, backgrounds(probed=probed), powers.trust), *rest]
    priors = {candidate.id: candidate.prior for candidate in judged}
    ranked = not_too_sure(rank(priors, all_evidence, powers.sharpness, numbers.among_faults), all_evidence)
    ranked = with_traits(ranked, traits)
    ties = tied(ranked)
    unusual = [
        finding.symptom
        for finding in counted
        if finding.state is State.PRESENT and finding.symptom not in usual_symptoms()
    ]
    by_state = {state: {finding.symptom for finding in findings if finding.state is state} for state in State}
    kinds = {cause_evidence.because: cause_evidence.kind for cause_evidence in [*all_evidence, *traits]}
    summaries = {finding.symptom: finding.summary for finding in findings if finding.state is State.PRESENT}
    described = {each.cause: {each.because: each.detail} for each in traits if each.detail}
    return [
        _with_reasons(
            _hypothesis(known, item, path, kind, tied_with=ties.get(item.id, []), states=by_state, unusual=unusual),
            item,
            kinds,
            summaries | described.get(item.id, {}),
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
    effects: Mapping[str, Mapping[str, float]] = probe_effects() if probed else {}
    chance = {symptom.id: symptom.outcome.background for symptom in symptoms().values()}
    known, shares = catalogue(), {word.value: word.share for word in Frequency}
    links: dict[str, list[Link]] = {cause: [] for cause in known.causes}
    for link in known.links:
        if link.word and (link.quotes or numbers.counted(link.cause, link.outcome)):
            links[link.cause].append(link)
    return tuple(
        Candidate(
            cause,
            known.prior(cause, kind),
            numbers.shown_by(cause, chance)
            | {link.outcome: numbers.frequency(cause, link.outcome, shares[link.word]) for link in links[cause]}
            | dict(effects.get(cause, {})),
        )
        for cause in known.causes
    )


def backgrounds(numbers: Fitted | None = None, *, probed: bool = False) -> Mapping[str, float]:
    """Return how often a healthy run shows each symptom, those of a probe included if something was `probed`."""
    if numbers is None:
        return _shipped_backgrounds(probed=probed)
    chosen = {symptom.id: symptom.outcome.background for symptom in symptoms().values()}
    as_chosen = {symptom.id for symptom in symptoms().values() if symptom.outcome.as_chosen}
    if probed:
        chosen |= {symptom.id: symptom.outcome.background for symptom in symptoms("probe").values()}
    return {
        symptom: background if symptom in as_chosen else numbers.background(symptom, background)
        for symptom, background in chosen.items()
    }


@lru_cache(maxsize=2)
def _shipped_backgrounds(*, probed: bool) -> Mapping[str, float]:
    return backgrounds(fitted(), probed=probed)


@lru_cache(maxsize=1)
def usual_symptoms() -> frozenset[str]:
    """Return the symptoms that so many healthy runs show that no cause has to explain them, and none rests on them."""
    return frozenset(symptom for symptom, share in backgrounds().items() if share >= MIN_USUAL_SHARE)


def _unexplained(item: Ranked, unusual: Sequence[str]) -> list[str]:
    """Return what is seen, few healthy runs show and the cause does not bring about, nor does what it brings about."""
    if item.id in NO_FAULTS:
        return []
    known = symptoms()
    explained = {symptom for symptom, bits in item.bits.items() if bits > 0}
    whole = {symptom: known[symptom].outcome.of for symptom in unusual if symptom in known}
    return [symptom for symptom in unusual if symptom not in explained and whole.get(symptom, "") not in explained]


def _hypothesis(
    known: Catalogue,
    item: Ranked,
    path: str,
    kind: str,
    *,
    tied_with: list[str],
    states: Mapping[State, Collection[str]],
    unusual: Sequence[str],
) -> Hypothesis:
    absent = states[State.ABSENT]
    supporting = {symptom for symptom, bits in item.bits.items() if bits > 0 and symptom not in absent}
    speaking = sorted(supporting & set(states[State.PRESENT]), key=lambda symptom: -item.bits[symptom])
    # What is said by the way, in a fraction of a bit, is no ground: where something speaks out, it stands alone.
    speaking = [symptom for symptom in speaking if item.bits[symptom] >= MIN_SPEAKING_BITS] or speaking
    short = Hypothesis.model_construct(
        cause=item.id,
        probability=item.probability,
        credence=credence(item.probability),
        because=in_bits(item, +1, absent),
        against=in_bits(item, -1, absent),
        symptoms=speaking,
        tied_with=tied_with,
    )
    if item.probability < MIN_LEADING_PROBABILITY:
        return short
    cause = known.causes[item.id]  # of few: the others are not loaded
    # The log was searched for errors and has none: that check has been made.
    searched = NO_ERROR in absent and UNKNOWN_ERROR not in states[State.PRESENT]
    fitting = [
        step for step in cause.next_steps if applies(step.action, kind) and not (searched and looks_up_a_message(step))
    ]
    fitting.sort(key=lambda step: COST[step.cost])
    return short.model_copy(
        update={
            "summary": plain(cause.summary),
            "fix": plain(cause.fix),
            "unexplained": _unexplained(item, unusual),
            "next_steps": [
                _filled(step, path, kind, errors=NO_ERROR not in absent) for step in fitting[:MAX_STEPS_EACH]
            ],
            "citations": known.cite(quotes_for(cause, supporting, kind, states[State.PRESENT])),
        }
    )


def _with_reasons(
    hypothesis: Hypothesis, item: Ranked, kinds: Mapping[str, Kind], summaries: Mapping[str, str]
) -> Hypothesis:
    """Return a hypothesis with what weighs for and against it, as facts, strongest first."""
    if item.probability < MIN_LEADING_PROBABILITY:
        return hypothesis
    weighing = sorted(item.bits.items(), key=lambda reason: -abs(reason[1]))
    reasons = [
        Reason.model_construct(
            fact=_fact(what, kinds[what], summaries),
            bits=bits,
            kind=kinds[what],
            symptom=what if kinds[what] == "finding" else "",
        )
        for what, bits in weighing
        if abs(bits) > LEAST_SHOWN
    ]
    return hypothesis.model_copy(update={"reasons": reasons})


def _fact(what: str, kind: Kind, summaries: Mapping[str, str]) -> str:
    """Return what weighs as a fact: of a finding its summary, of one that is absent what it would be."""
    if kind != "finding" or what in summaries:
        return summaries.get(what, what)
    known = symptoms().get(what)
    return f"not seen: {as_clause(known) if known is not None else what}"


def as_clause(symptom: Symptom) -> str:
    """Return what a symptom is, without a capital letter and a full stop."""
    title = symptom.title.rstrip(".")
    return f"{title[:1].lower()}{title[1:]}"


def _filled(step: NextStep, path: str, kind: str, *, errors: bool) -> NextStep:
    return step.model_copy(update={"call": possible_call(step.call, path, kind, errors=errors)})
