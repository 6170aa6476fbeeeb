from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mldebug_mcp.judge.ranking import (
    SUREST_ALONE,
    Candidate,
    CauseEvidence,
    Kind,
    Ranked,
    Trust,
    credence,
    not_too_sure,
    rank,
    weigh,
)
from mldebug_mcp.models import Finding, State

SYMPTOMS = ("spike", "nan", "plateau", "zero")
SHARES = st.floats(0.01, 0.95)


def findings(**states: State) -> list[Finding]:
    return [Finding(symptom=symptom, state=state) for symptom, state in states.items()]


def ranked_on(
    candidates: list[Candidate],
    states: dict[str, State],
    background: dict[str, float],
    *,
    weight: float = 0.85,
    missed: float = 0.0,
    sharpness: float = 1.0,
) -> list[Ranked]:
    evidence = weigh(candidates, findings(**states), background, Trust(weight, missed))
    return rank({one.id: one.prior for one in candidates}, evidence, sharpness)


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[Candidate], dict[str, float], dict[str, State]]:
    background = {symptom: draw(st.floats(0.001, 0.5)) for symptom in SYMPTOMS}
    candidates = [
        Candidate(
            f"cause_{number}", draw(st.floats(0.1, 300)), draw(st.dictionaries(st.sampled_from(SYMPTOMS), SHARES))
        )
        for number in range(draw(st.integers(1, 5)))
    ]
    return candidates, background, {symptom: draw(st.sampled_from(State)) for symptom in SYMPTOMS}


def brute_force(
    candidates: list[Candidate], background: dict[str, float], states: dict[str, State]
) -> dict[str, float]:
    """Bayes' rule by summing the joint distribution over every state of the world that agrees with what was seen.

    A world says for each symptom whether the cause produced it and whether the background did; it shows if either did.
    """
    joint = dict.fromkeys((candidate.id for candidate in candidates), 0.0)
    for candidate in candidates:
        for world in itertools.product([False, True], repeat=2 * len(SYMPTOMS)):
            mass = candidate.prior
            agrees = True
            for number, symptom in enumerate(SYMPTOMS):
                by_cause, by_chance = world[2 * number], world[2 * number + 1]
                frequency = candidate.frequency.get(symptom, 0.0)
                mass *= (frequency if by_cause else 1 - frequency) * (
                    background[symptom] if by_chance else 1 - background[symptom]
                )
                seen = {State.PRESENT: True, State.ABSENT: False}.get(states[symptom])
                agrees &= seen is None or seen == (by_cause or by_chance)
            joint[candidate.id] += mass if agrees else 0.0
    total = sum(joint.values())
    return {cause: mass / total for cause, mass in joint.items()}


@given(problems())
def test_the_ranking_equals_brute_force_bayes(
    problem: tuple[list[Candidate], dict[str, float], dict[str, State]],
) -> None:
    candidates, background, states = problem
    expected = brute_force(candidates, background, states)
    for item in ranked_on(candidates, states, background, weight=1.0):
        assert item.probability == pytest.approx(expected[item.id], rel=1e-6, abs=1e-12)


@given(problems())
def test_probabilities_sum_to_one_and_come_best_first(
    problem: tuple[list[Candidate], dict[str, float], dict[str, State]],
) -> None:
    candidates, background, states = problem
    ranked = ranked_on(candidates, states, background)
    assert math.fsum(item.probability for item in ranked) == pytest.approx(1.0)
    assert [item.probability for item in ranked] == sorted((item.probability for item in ranked), reverse=True)


def test_a_symptom_that_is_seen_speaks_for_the_cause_that_produces_it_and_one_that_is_absent_against() -> None:
    candidates = [Candidate("bad_batch", 10, {"spike": 0.95}), Candidate("healthy", 300, {})]
    background = {"spike": 0.02}
    seen, missing = (ranked_on(candidates, {"spike": state}, background) for state in (State.PRESENT, State.ABSENT))
    assert {item.id: item.bits for item in seen}["bad_batch"]["spike"] > 0
    assert {item.id: item.bits for item in missing}["bad_batch"]["spike"] < 0
    assert {item.id: item.bits for item in seen}["healthy"] == {}


def test_what_was_not_logged_changes_nothing() -> None:
    candidates = [Candidate("bad_batch", 10, {"spike": 0.95}), Candidate("healthy", 30, {})]
    ranked = ranked_on(candidates, {"spike": State.UNKNOWN}, {"spike": 0.02})
    assert {item.id: item.probability for item in ranked} == pytest.approx({"healthy": 0.75, "bad_batch": 0.25})


@pytest.mark.parametrize(
    ("probability", "words"),
    [(0.99, "almost certain"), (0.856, "almost certain"), (0.71, "highly likely"), (0.6, "likely"), (0.5, "about even"),
     (0.4, "unlikely"), (0.2, "highly unlikely"), (0.01, "remote")],
)  # fmt: skip
def test_credence_uses_the_words_of_estimative_probability(probability: float, words: str) -> None:
    assert credence(probability) == words


@given(problems(), st.floats(0.5, 2.0))
def test_sharpness_raises_probabilities_to_a_power_and_changes_no_order(
    problem: tuple[list[Candidate], dict[str, float], dict[str, State]], sharpness: float
) -> None:
    candidates, background, states = problem
    plain = ranked_on(candidates, states, background)
    sharp = {item.id: item.probability for item in ranked_on(candidates, states, background, sharpness=sharpness)}
    total = sum(item.probability**sharpness for item in plain)
    for item in plain:
        assert sharp[item.id] == pytest.approx(item.probability**sharpness / total, abs=1e-9)


def test_each_question_is_trusted_by_itself_and_what_is_absent_by_one_number_for_all() -> None:
    candidates = [Candidate("bad_batch", 1.0, {"loss_spike": 0.8, "loss_zero": 0.8})]
    background = {"loss_spike": 0.1, "loss_zero": 0.1}

    def told(trust: Trust, **states: State) -> float:
        return sum(one.bits for one in weigh(candidates, findings(**states), background, trust))

    spike, zero = {"loss_spike": State.PRESENT}, {"loss_zero": State.PRESENT}
    halved = Trust(1.0, absent=0.25, questions={"loss_events": 0.5})
    assert told(halved, **spike) == pytest.approx(0.5 * told(Trust(1.0), **spike))
    assert told(halved, **zero) == pytest.approx(told(Trust(1.0), **zero))
    gone = {"loss_spike": State.ABSENT}
    assert told(halved, **gone) == pytest.approx(0.25 * told(Trust(1.0), **gone))


def test_faults_are_told_apart_more_sharply_while_the_odds_of_any_fault_stay() -> None:
    priors = {"bad_batch": 20.0, "lr_too_high": 10.0, "healthy": 60.0, "unknown": 10.0}
    plain = {item.id: item.probability for item in rank(priors, [])}
    parted = {item.id: item.probability for item in rank(priors, [], among_faults=2.0)}
    assert (parted["healthy"], parted["unknown"]) == pytest.approx((plain["healthy"], plain["unknown"]))
    assert parted["bad_batch"] == pytest.approx(0.3 * 4 / 5)
    assert parted["lr_too_high"] == pytest.approx(0.3 * 1 / 5)


def seen(cause: str, *bits: float, kind: Kind = "finding") -> list[CauseEvidence]:
    return [CauseEvidence(cause, one, f"finding {n}", kind, f"question {n}") for n, one in enumerate(bits)]


PRIORS = {"bad_batch": 10.0, "lr_too_high": 10.0, "healthy": 300.0, "unknown": 10.0}


def first(evidence: list[CauseEvidence]) -> Ranked:
    ranked = not_too_sure(rank(PRIORS, evidence), evidence)
    assert math.fsum(one.probability for one in ranked) == pytest.approx(1.0)
    return ranked[0]


def test_a_fault_for_which_one_question_alone_speaks_is_not_nearly_sure() -> None:
    alone, two = (first(seen("bad_batch", *bits)) for bits in ((14.0,), (7.0, 7.0)))
    assert alone.id == two.id == "bad_batch"
    assert alone.probability == pytest.approx(SUREST_ALONE)
    assert two.probability > 0.95


def test_two_answers_to_one_question_are_no_agreement() -> None:
    twice = [
        CauseEvidence("bad_batch", 7.0, what, "finding", "loss_events") for what in ("loss_spike", "loss_spike_high")
    ]
    assert first(twice).probability == pytest.approx(SUREST_ALONE)


def test_the_error_that_ended_a_run_needs_no_second_question() -> None:
    assert first(seen("bad_batch", 14.0, kind="error")).probability > 0.95


@given(problems(), st.floats(0.01, 0.5))
def test_where_faults_are_missed_all_that_is_absent_refutes_no_further_than_that(
    problem: tuple[list[Candidate], dict[str, float], dict[str, State]], missed: float
) -> None:
    candidates, background, states = problem
    absent = {one for one, state in states.items() if state is State.ABSENT}
    for item in ranked_on(candidates, states, background, missed=missed):
        against = sum(bits for symptom, bits in item.bits.items() if symptom in absent)
        assert math.log2(missed) <= against <= 0


def test_what_a_cause_does_not_list_speaks_for_it_as_it_does_for_causes_in_general_and_against_healthy() -> None:
    causes = [
        Candidate("bad_batch", 10, {"spike": 0.8}),
        Candidate("lr_too_high", 10, {"nan": 0.8}),
        Candidate("healthy", 300, {}),
    ]
    told, untold = (
        {
            one.id: one
            for one in rank(
                {cause.id: cause.prior for cause in causes},
                weigh(causes, findings(spike=State.PRESENT), {"spike": 0.02, "nan": 0.02}, Trust(unlisted=unlisted)),
            )
        }
        for unlisted in (0.5, 0.0)
    )
    assert told["lr_too_high"].probability > 3 * untold["lr_too_high"].probability
    assert told["bad_batch"].bits["spike"] > 0 > told["healthy"].bits["spike"]
    assert told["lr_too_high"].bits == {}
