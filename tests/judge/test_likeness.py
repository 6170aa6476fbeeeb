"""What all numbers of a run say of causes: learnt from runs, told in bits, and with no single number named."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.faults.likeness import Numbered, fit_likeness, write

from mldebug_mcp import diagnose_run
from mldebug_mcp.judge import likeness
from mldebug_mcp.judge.likeness import Likeness, between, evidence_by_model

CHANCE = np.random.default_rng(3)
EXAMPLES = Path(__file__).parents[2] / "examples"
FALLEN, RISEN = ({"loss: last / first": 0.1, "eval loss: last": end} for end in (0.3, 3.0))


@pytest.fixture(scope="module")
def model() -> Likeness:
    """Runs of two authors: with overfitting the evaluation loss ends high, the loss of both tells nothing."""
    runs = []
    for at in range(120):
        cause = ("healthy", "overfitting")[at % 2]
        ends = 0.3 if cause == "healthy" else 3.0
        vector = {
            "loss: last / first": CHANCE.uniform(0, 1),
            "eval loss: last": ends * CHANCE.uniform(0.7, 1.4),
            "own": 1.0,
        }
        author = "one" if at < 60 else "another"
        runs.append(Numbered(vector if author == "one" else vector | {"mine": 2.0}, (cause,), author, 1.0))
    return fit_likeness(runs)


def bits(model: Likeness, vector: dict[str, float]) -> dict[str, float]:
    return {one.cause: one.bits for one in evidence_by_model(model, vector, 1.0)}


def test_the_cause_whose_runs_have_such_numbers_gets_the_most_bits(model: Likeness) -> None:
    well, badly = bits(model, FALLEN), bits(model, RISEN)
    assert well["healthy"] > well["overfitting"] + 1
    assert badly["overfitting"] > badly["healthy"] + 1


def test_trust_scales_the_bits_and_no_trust_tells_nothing(model: Likeness) -> None:
    assert [one.bits for one in evidence_by_model(model, RISEN, 0.5)] == [
        0.5 * one.bits for one in evidence_by_model(model, RISEN, 1.0)
    ]
    assert evidence_by_model(model, RISEN, 0.0) == []


def test_nothing_is_told_where_no_result_has_a_course(model: Likeness) -> None:
    assert evidence_by_model(model, {"grad_norm: last / first": 3.0, "loss: first": 2.0}, 1.0) == []


def test_what_one_author_alone_logs_and_what_lies_beyond_the_known_runs_moves_nothing_further(model: Likeness) -> None:
    assert bits(model, RISEN | {"mine": 5.0}) == bits(model, RISEN)
    assert bits(model, RISEN | {"eval loss: last": 1e30}) == pytest.approx(
        bits(model, RISEN | {"eval loss: last": 9.0})
    )


def test_a_number_between_two_knots_counts_for_both_by_how_near_it_is() -> None:
    row, share = between(np.array([[0.0, 1.0, 3.0, 3.0]], dtype=np.float32), np.array([2.0]))
    assert (row.tolist(), share.tolist()) == ([[1, 2]], [[0.5, 0.5]])


def test_what_is_written_tells_the_same_when_read(
    model: Likeness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(model, tmp_path / "likeness.bin")
    monkeypatch.setattr(likeness, "LIKENESS_FILE", tmp_path / "likeness.bin")
    likeness.shipped.cache_clear()
    try:
        again = likeness.shipped()
    finally:
        likeness.shipped.cache_clear()
    assert bits(again, RISEN) == pytest.approx(bits(model, RISEN), abs=0.1)


def test_what_all_curves_together_weigh_is_named_as_that_and_no_feature_is() -> None:
    diagnosis = diagnose_run(EXAMPLES / "overfit")
    reasons = [one for cause in diagnosis.hypotheses for one in (*cause.because, *cause.against)]
    assert any(one.startswith("other statistics of the curves (") for one in reasons)
    assert not any(" / " in one.partition(" (")[0] for one in reasons)


def test_a_log_without_any_result_gets_its_causes_from_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text("".join(json.dumps({"step": at, "grad_norm": 1.0}) + "\n" for at in range(9)))
    said = [one for cause in diagnose_run(tmp_path).hypotheses for one in (*cause.because, *cause.against)]
    assert not [one for one in said if one.startswith("other statistics")]
