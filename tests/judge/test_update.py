from __future__ import annotations

from pathlib import Path

import pytest

from mldebug_mcp import diagnose_run, update_diagnosis
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import percent
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.models import Update
from mldebug_mcp.report.diagnosis_concise import concise_update

SEEN = {"loss_divergence": "present", "loss_spike": "absent"}


def probability(update: Update, cause: str) -> float:
    return next(one.probability for one in update.hypotheses if one.cause == cause)


def test_an_outcome_moves_its_cause_the_right_way() -> None:
    before = probability(update_diagnosis(SEEN, {}), "lr_too_high")
    assert probability(update_diagnosis(SEEN, {"lr_too_high.1": "confirms"}), "lr_too_high") > before
    assert probability(update_diagnosis(SEEN, {"lr_too_high.1": "refutes"}), "lr_too_high") < before


def test_an_outcome_counts_in_a_diagnosis_as_in_its_update(examples: Path) -> None:
    run, outcomes = examples / "loss_spike", {"bad_batch.1": "refutes"}
    diagnosis = diagnose_run(run, outcomes=outcomes)  # type: ignore[arg-type]
    update = update_diagnosis({}, outcomes, path=run)  # type: ignore[arg-type]
    assert diagnosis.hypotheses == update.hypotheses
    assert "bad_batch.1" not in [step.id for step in diagnosis.next_steps]
    (against,) = (one.against for one in diagnosis.hypotheses if one.cause == "bad_batch")
    assert against[0] == "check bad_batch.1 refutes it (-2.1 bits)"


def test_a_finding_whose_state_alone_is_given_is_a_fact_in_words(examples: Path) -> None:
    outcomes, seen = {"bad_batch.1": "confirms"}, {"loss_spike": "present"}
    alone = update_diagnosis(seen, outcomes)  # type: ignore[arg-type]
    assert alone.at_a_glance.facts[0] == "the training loss jumps far above its recent level and comes back"
    with_run = update_diagnosis(seen, outcomes, path=examples / "loss_spike")  # type: ignore[arg-type]
    assert with_run.at_a_glance.facts[0].startswith("loss jumps from about 2.416 to 6.616 at step 250")


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


def test_the_error_that_ended_the_run_counts_as_in_the_diagnosis(tmp_path: Path) -> None:
    error = "ValueError: Attempting to unscale FP16 gradients."
    log = tmp_path / "train.log"
    records = [f"{{'loss': {3 - step / 100:.4f}, 'epoch': {step / 100}}}" for step in range(1, 101)]
    log.write_text("\n".join([*records, "Traceback (most recent call last):", error]), encoding="utf-8")
    diagnosis = diagnose_run(log)
    states = {finding.symptom: finding.state for finding in diagnosis.findings}
    updated = update_diagnosis(states, {}, diagnosis.run.kind, error=error)
    assert {one.cause: one.probability for one in updated.hypotheses} == pytest.approx(
        {one.cause: one.probability for one in diagnosis.hypotheses}, abs=0.03
    ), "but for what the numbers of the log say, which findings do not hold"
    forgotten = update_diagnosis(states, {}, diagnosis.run.kind)
    assert forgotten.hypotheses[0].probability != pytest.approx(updated.hypotheses[0].probability)


def test_a_run_that_is_named_is_diagnosed_again_with_all_that_was_known(examples: Path) -> None:
    run, reference = examples / "divergence", examples / "healthy"
    diagnosis = diagnose_run(run, reference=reference)
    again = update_diagnosis({}, {}, path=run, reference=reference)
    assert [(one.cause, one.probability) for one in again.hypotheses] == [
        (one.cause, one.probability) for one in diagnosis.hypotheses
    ]
    alone = update_diagnosis({}, {}, path=run)
    assert alone.hypotheses[0].probability != again.hypotheses[0].probability


def test_what_is_given_stands_against_what_the_run_shows(examples: Path) -> None:
    run = examples / "loss_spike"
    assert update_diagnosis({}, {}, path=run).hypotheses[0].cause == "bad_batch"
    seen = {"loss_spike": "absent", "loss_spike_single": "absent", "loss_spike_high": "absent"}
    assert update_diagnosis(seen, {}, path=run).hypotheses[0].cause == "healthy"


def test_a_run_that_cannot_be_read_is_told_and_the_findings_count(tmp_path: Path) -> None:
    gone = tmp_path / "gone.jsonl"
    update = update_diagnosis(SEEN, {}, path=gone)
    assert probability(update, "lr_too_high") == probability(update_diagnosis(SEEN, {}), "lr_too_high")
    assert "only the findings passed in" in update.notes[0]
    assert "gone.jsonl" in update.notes[0]
    with pytest.raises(InputError, match=r"gone\.jsonl"):
        update_diagnosis({}, {"lr_too_high.1": "confirms"}, path=gone)


def test_an_error_that_is_not_known_says_nothing() -> None:
    plain = update_diagnosis({"loss_spike": "present"}, {})
    assert update_diagnosis({"loss_spike": "present"}, {}, error="no such error") == plain


def test_outcomes_without_a_run_or_findings_are_said_to_tell_of_any_run() -> None:
    assert "nothing but the outcomes is known" in update_diagnosis({}, {"overfitting.1": "confirms"}).notes[0]
    assert not any("nothing but" in note for note in update_diagnosis(SEEN, {"overfitting.1": "confirms"}).notes)


def test_of_each_cause_that_was_checked_it_is_said_how_far_it_moved() -> None:
    update = update_diagnosis(SEEN, {"lr_too_high.1": "confirms"})
    before, after = probability(update_diagnosis(SEEN, {}), "lr_too_high"), probability(update, "lr_too_high")
    assert before < after
    assert update.notes == [f"lr_too_high: {percent(before)} before the checks, {percent(after)} after"]


def test_the_short_form_has_few_digits_and_still_sums_to_one() -> None:
    shown = [one.probability for one in concise_update(update_diagnosis(SEEN, {})).hypotheses]
    assert all(probability == round(probability, 4) for probability in shown)
    assert sum(shown) == pytest.approx(1, abs=1e-9)
