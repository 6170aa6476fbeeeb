from __future__ import annotations

import pytest
from benchmarks.faults.counts import LabelledRun, count, fingerprint, fit_sharpness
from hypothesis import given
from hypothesis import strategies as st

from mldebug_mcp.checks import symptoms
from mldebug_mcp.judge.hypotheses import Fitted, backgrounds, candidates, fitted, moved
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.models import State

PRESENT, ABSENT, UNKNOWN = State.PRESENT, State.ABSENT, State.UNKNOWN


def test_counts_keep_apart_what_was_seen_what_was_judged_and_who_is_healthy() -> None:
    causes, healthy = count(
        [
            LabelledRun(("bad_batch", "lr_too_high"), {"loss_spike": PRESENT, "loss_zero": ABSENT}),
            LabelledRun(("bad_batch",), {"loss_spike": ABSENT, "loss_zero": UNKNOWN}),
            LabelledRun(("healthy",), {"loss_spike": ABSENT}),
        ]
    )
    assert causes == {"bad_batch": {"loss_spike": (1, 2), "loss_zero": (0, 1)}}
    assert healthy == {"loss_spike": (0, 1)}


def test_a_run_counts_as_one_for_each_symptom_that_any_of_its_versions_lets_be_judged() -> None:
    bare = LabelledRun(("bad_batch",), {"loss_spike": PRESENT, "nonfinite_in_inputs": UNKNOWN}, "a")
    recorded = LabelledRun(("bad_batch",), {"loss_spike": ABSENT, "nonfinite_in_inputs": PRESENT}, "a")
    causes, _ = count([bare, recorded])
    assert causes == {"bad_batch": {"loss_spike": (0.5, 1), "nonfinite_in_inputs": (1, 1)}}


@given(st.integers(0, 50), st.integers(0, 50), st.floats(0.001, 0.95))
def test_a_share_lies_between_the_word_and_what_was_counted(seen: int, more: int, word: float) -> None:
    runs = seen + more
    share = moved((seen, runs), word)
    counted = seen / runs if runs else word
    assert min(word, counted) - 1e-12 <= share <= max(word, counted) + 1e-12


def test_a_word_counts_as_much_as_four_runs() -> None:
    assert moved((4, 4), 0.5) == pytest.approx(0.75)
    assert moved((0, 0), 0.5) == 0.5


def test_the_sharpness_under_which_credences_are_best_calibrated_is_found() -> None:
    assert fit_sharpness(lambda sharpness: abs(sharpness - 1.1)) == pytest.approx(1.1)


def test_numbers_that_were_counted_move_what_the_ranking_uses() -> None:
    name = "loss_spike_single"
    numbers = Fitted(provenance="a test", causes={"bad_batch": {name: (0, 96)}}, healthy={name: (96, 96)})
    by_hand = {one.id: one for one in candidates("any", Fitted(provenance="none"))}
    counted = {one.id: one for one in candidates("any", numbers)}
    assert counted["bad_batch"].frequency[name] < 0.05 < by_hand["bad_batch"].frequency[name]
    assert backgrounds(numbers)[name] > 0.9


def test_a_link_that_is_neither_quoted_nor_counted_does_not_weigh() -> None:
    effects = catalogue().causes["missing_zero_grad"].effects
    quoted = {effect.symptom for effect in effects if effect.quotes}
    guessed = next(effect.symptom for effect in effects if not effect.quotes)
    numbers = Fitted(provenance="a test", causes={"missing_zero_grad": {guessed: (1, 2)}})
    weighing = {one.id: set(one.frequency) for one in candidates("any", numbers)}
    assert weighing["missing_zero_grad"] == quoted | {guessed}


def test_the_numbers_that_ship_name_only_causes_and_symptoms_that_exist_and_where_they_come_from() -> None:
    numbers = fitted()
    assert numbers.provenance
    assert numbers.causes.keys() <= catalogue().causes.keys()
    assert {symptom for seen in (*numbers.causes.values(), numbers.healthy) for symptom in seen} <= symptoms().keys()


def test_a_link_more_or_another_word_makes_counted_numbers_stale() -> None:
    causes = list(catalogue().causes.values())
    first = causes[0]
    fewer = first.model_copy(update={"effects": first.effects[1:]})
    assert fingerprint([fewer, *causes[1:]]) != fingerprint(causes)
    assert fingerprint(reversed(causes)) == fingerprint(causes)
