"""What all numbers of a run say of causes: learnt from runs, told in bits, and with no single number named."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.corpus.labels import Label
from benchmarks.faults.likeness import Numbered, fit_likeness, write
from benchmarks.faults.traits import Described, fit_traits, left_out
from benchmarks.faults.traits import write as write_traits

from mldebug_mcp import diagnose_run
from mldebug_mcp.judge import likeness
from mldebug_mcp.judge.likeness import OF_TRAITS, Likeness, between, evidence_by_model, traits_as_bytes, traits_of
from mldebug_mcp.judge.ranking import CauseEvidence, rank, with_traits
from mldebug_mcp.judge.sheet import quantity_facts, setting_facts
from mldebug_mcp.logs import read_run

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


@pytest.fixture
def own_habits(tmp_path: Path) -> Path:
    """A run in words of its own."""
    lines = [f"it {at} reward {0.2 + at / 400:.3f} lag {1 + at / 20:.1f} kl {0.01 + at / 900:.4f}" for at in range(60)]
    (tmp_path / "log.txt").write_text("\n".join(lines))
    (tmp_path / "config.json").write_text('{"staleness_limit": 8, "lr": 3e-4}')
    return tmp_path


def test_a_trait_is_a_word_with_what_it_does_and_stands_in_the_numbers_of_the_log(own_habits: Path) -> None:
    run = read_run(own_habits)
    traits = traits_of(run, setting_facts(run), quantity_facts(run, []))
    assert traits["lag rises"] == "lag rises from 1.1 to 4"
    assert {"stalen = below 10", "learni = below 0.02", "role reward rises"} <= traits.keys()
    assert not {"lag falls", "reward falls"} & traits.keys()


def test_traits_order_the_faults_and_leave_healthy_and_unknown_as_they_were() -> None:
    ranked = rank({"healthy": 4, "unknown": 1, "overfitting": 2, "label_noise": 1}, [])
    moved = with_traits(ranked, [CauseEvidence("label_noise", 6.0, "traits", "numbers", OF_TRAITS)])
    was, now = ({item.id: item.probability for item in items} for items in (ranked, moved))
    assert (now["healthy"], now["unknown"]) == (was["healthy"], was["unknown"])
    assert was["overfitting"] > was["label_noise"]
    assert now["label_noise"] > now["overfitting"]
    assert sum(now.values()) == pytest.approx(1)


def test_where_findings_decide_among_the_faults_traits_hardly_count() -> None:
    found = [CauseEvidence("overfitting", 9.0, "a decisive fact", "log")]
    ranked = rank({"healthy": 4, "overfitting": 2, "label_noise": 1}, found)
    moved = with_traits(ranked, [CauseEvidence("label_noise", 8.0, "traits", "numbers", OF_TRAITS)])
    assert moved[0].id == "overfitting"
    assert moved[0].probability == pytest.approx(ranked[0].probability, abs=0.01)


def test_traits_are_learnt_from_several_authors_and_what_one_alone_writes_says_nothing(tmp_path: Path) -> None:
    def described(cause: str, author: str, *traits: str) -> Described:
        return Described(frozenset(traits), Label(cause), author, 1.0)

    runs = [
        one
        for author in ("one", "another", "third")
        for _ in range(20)
        for one in (
            described("overfitting", author, "val rises", f"mine {author}"),
            described("healthy", author, "val falls"),
        )
    ]
    model = fit_traits(runs)
    assert model.traits == ("val falls", "val rises")
    assert model.bits({"val rises"})["overfitting"] > model.bits({"val rises"})["healthy"]
    assert model.bits({"mine one"}) == model.bits(set())
    assert model.telling("overfitting", ["val rises", "val falls"]) == ["val rises"]
    assert left_out(runs, ["one"])[0]["right cause first"] == "1.000"
    write_traits(model, tmp_path)
    assert (tmp_path / "traits.bin").read_bytes() == traits_as_bytes(model)


def test_an_answer_names_the_traits_that_resemble_labelled_runs_of_the_likeliest_fault() -> None:
    healthy = diagnose_run(EXAMPLES / "healthy").hypotheses
    assert healthy[0].cause == "healthy"
    facts = [reason.fact for item in healthy for reason in item.reasons if reason.bits > 0]
    assert sum(fact.startswith("as in labelled runs with it: ") for fact in facts) == 1
