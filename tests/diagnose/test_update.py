from __future__ import annotations

import pytest

from mldebug_mcp import update_diagnosis
from mldebug_mcp.errors import InputError
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.models import Update

SEEN = {"loss_divergence": "present", "loss_spike": "absent"}


def probability(update: Update, cause: str) -> float:
    return next(one.probability for one in update.hypotheses if one.cause == cause)


def test_an_outcome_moves_its_cause_the_right_way() -> None:
    before = probability(update_diagnosis(SEEN, {}), "lr_too_high")
    assert probability(update_diagnosis(SEEN, {"lr_too_high.1": "confirms"}), "lr_too_high") > before
    assert probability(update_diagnosis(SEEN, {"lr_too_high.1": "refutes"}), "lr_too_high") < before


def test_a_check_that_was_made_is_not_proposed_again() -> None:
    before = update_diagnosis(SEEN, {})
    leading = before.next_steps[0].id
    after = update_diagnosis(SEEN, {leading: "refutes"})
    assert leading not in [step.id for one in after.hypotheses for step in one.next_steps]


def test_probabilities_still_sum_to_one() -> None:
    update = update_diagnosis(SEEN, {"lr_too_high.1": "confirms", "bad_init.1": "refutes"}, kind="pretraining")
    assert sum(one.probability for one in update.hypotheses) == pytest.approx(1)


def test_every_next_step_has_its_own_id() -> None:
    ids = [step.id for cause in catalogue().causes.values() for step in cause.next_steps]
    assert len(ids) == len(set(ids))
    assert all(ids)


@pytest.mark.parametrize(
    ("findings", "outcomes", "told"),
    [
        ({"loss_spik": "present"}, {}, "no symptom 'loss_spik'"),
        ({"loss_spike": "seen"}, {}, "use present, absent or unknown"),
        ({}, {"lr_too_high.99": "confirms"}, "no check 'lr_too_high.99'"),
        ({}, {"lr_too_high.1": "passed"}, "use confirms or refutes"),
    ],
)
def test_what_does_not_exist_is_refused_with_what_does(
    findings: dict[str, str], outcomes: dict[str, str], told: str
) -> None:
    with pytest.raises(InputError, match=told):
        update_diagnosis(findings, outcomes)  # type: ignore[arg-type]
