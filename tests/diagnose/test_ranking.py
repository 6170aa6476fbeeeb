from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mldebug_mcp.diagnose.ranking import Candidate, credence, rank
from mldebug_mcp.models import Finding, State

SYMPTOMS = ("spike", "nan", "plateau", "zero")
SHARES = st.floats(0.01, 0.95)


def findings(**states: State) -> list[Finding]:
    return [Finding(symptom=symptom, state=state) for symptom, state in states.items()]


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
    for item in rank(candidates, findings(**states), background, weight=1.0):
        assert item.probability == pytest.approx(expected[item.id], rel=1e-6, abs=1e-12)


@given(problems())
def test_probabilities_sum_to_one_and_come_best_first(
    problem: tuple[list[Candidate], dict[str, float], dict[str, State]],
) -> None:
    candidates, background, states = problem
    ranked = rank(candidates, findings(**states), background)
    assert math.fsum(item.probability for item in ranked) == pytest.approx(1.0)
    assert [item.probability for item in ranked] == sorted((item.probability for item in ranked), reverse=True)


def test_a_symptom_that_is_seen_speaks_for_the_cause_that_produces_it_and_one_that_is_absent_against() -> None:
    candidates = [Candidate("bad_batch", 10, {"spike": 0.95}), Candidate("healthy", 300, {})]
    background = {"spike": 0.02}
    seen, missing = (rank(candidates, findings(spike=state), background) for state in (State.PRESENT, State.ABSENT))
    assert {item.id: item.bits for item in seen}["bad_batch"]["spike"] > 0
    assert {item.id: item.bits for item in missing}["bad_batch"]["spike"] < 0
    assert {item.id: item.bits for item in seen}["healthy"] == {}


def test_what_was_not_logged_changes_nothing() -> None:
    candidates = [Candidate("bad_batch", 10, {"spike": 0.95}), Candidate("healthy", 30, {})]
    ranked = rank(candidates, findings(spike=State.UNKNOWN), {"spike": 0.02})
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
    plain = rank(candidates, findings(**states), background)
    sharp = {
        item.id: item.probability for item in rank(candidates, findings(**states), background, sharpness=sharpness)
    }
    total = sum(item.probability**sharpness for item in plain)
    for item in plain:
        assert sharp[item.id] == pytest.approx(item.probability**sharpness / total, abs=1e-9)
