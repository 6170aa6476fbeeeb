from __future__ import annotations

import pytest

from mldebug_mcp.checks.check import Answers, CannotTell, Evidence, Outcome, Question, answer
from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import Finding, State
from tests.runs import run_of

OUTCOMES = (
    Outcome("warm", "Warm."),
    Outcome("cold", "Cold."),
    Outcome("scorching", "Scorching.", of="warm"),
    Outcome("humid", "Humid.", needs=("humidity",)),
)


def asked(seen: Answers, metric: str = "loss") -> tuple[dict[str, Finding], str | None]:
    def ask(_: Run) -> Answers:
        return seen

    weather = Question("weather", OUTCOMES, ask, ("loss",), whole=True)
    answers, note = answer(weather, run_of(metrics={"loss": [1.0, 2.0], metric: [1.0, 2.0]}))
    return {one.outcome.id: one.finding() for one in answers}, note


def states(answers: Answers, metric: str = "loss") -> dict[str, State]:
    return {name: one.state for name, one in asked(answers, metric)[0].items()}


def test_the_outcome_that_is_seen_leaves_the_others_unknown() -> None:
    seen = states({"warm": Evidence("it is 25 degrees")})
    assert seen["warm"] is State.PRESENT
    assert seen["cold"] is State.UNKNOWN


def test_where_nothing_is_seen_every_outcome_that_could_be_judged_is_absent() -> None:
    seen = states({"cold": CannotTell("no thermometer below zero")})
    assert (seen["warm"], seen["cold"]) == (State.ABSENT, State.UNKNOWN)


def test_an_attribute_is_told_only_beside_its_outcome() -> None:
    hot = Evidence("it is 45 degrees")
    assert states({"scorching": hot})["scorching"] is State.UNKNOWN
    assert states({"warm": hot})["scorching"] is State.ABSENT
    assert states({"warm": hot, "scorching": hot})["scorching"] is State.PRESENT


@pytest.mark.parametrize(("metric", "state"), [("loss", State.UNKNOWN), ("humidity", State.ABSENT)])
def test_an_outcome_may_need_what_its_question_does_not(metric: str, state: State) -> None:
    assert states({}, metric)["humid"] is state


def test_two_outcomes_at_once_are_a_broken_question_and_no_evidence() -> None:
    findings, note = asked({"warm": Evidence("25 degrees"), "cold": Evidence("-5 degrees")})
    assert {one.state for one in findings.values()} == {State.UNKNOWN}
    assert note is not None
    assert "warm, cold" in note
