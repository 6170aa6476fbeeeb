"""The whole path, through the library: a log in, a ranked diagnosis out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.runs import noisy

from mldebug_mcp.checks import symptoms
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.paths import knowledge_folder
from mldebug_mcp.judge import diagnose_run
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.models import Diagnosis, State
from mldebug_mcp.models.base import NO_FAULTS

CASES = [
    ("loss_spike", "loss_spike", 250, {"bad_batch", "bad_data_pocket"}),
    ("divergence", "loss_divergence", 78, {"lr_too_high"}),
    ("nan_loss", "loss_nonfinite", 61, {"invalid_math", "exploding_gradients", "lr_too_high"}),
    ("overfit", "eval_gap_grows", 55, {"overfitting"}),
]


def present(diagnosis: Diagnosis) -> dict[str, list[float]]:
    return {finding.symptom: finding.steps for finding in diagnosis.findings if finding.state is State.PRESENT}


@pytest.mark.parametrize(("run", "symptom", "onset", "causes"), CASES, ids=[case[0] for case in CASES])
def test_an_example_shows_its_symptom_at_its_step_and_leads_with_a_right_cause(
    examples: Path, run: str, symptom: str, onset: int, causes: set[str]
) -> None:
    diagnosis = diagnose_run(examples / run)
    assert present(diagnosis)[symptom][0] == pytest.approx(onset, abs=5)
    assert diagnosis.hypotheses[0].cause in causes


@pytest.mark.parametrize("records", [3, 4, 5, 8, 12])
@pytest.mark.parametrize("times", [20.0, 3000.0])
def test_a_loss_that_explodes_from_its_first_records_on_has_too_high_a_rate(
    tmp_path: Path, records: int, times: float
) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps({"step": at, "loss": 2.3 * times**at}) + "\n" for at in range(records)))
    diagnosis = diagnose_run(log)
    assert present(diagnosis)["loss_divergence"] == [1]
    assert diagnosis.hypotheses[0].cause == "lr_too_high"


def test_a_loss_that_triples_once_in_three_records_is_not_judged(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps({"step": at, "loss": loss}) + "\n" for at, loss in enumerate([2.3, 7.0, 21.0])))
    assert diagnose_run(log).verdict.kind == "not judged"


def test_the_healthy_example_is_called_healthy_and_shows_nothing(examples: Path) -> None:
    diagnosis = diagnose_run(examples / "healthy")
    assert diagnosis.hypotheses[0].cause == "healthy"
    assert present(diagnosis) == {}


def test_a_diagnosis_judges_every_symptom_and_every_cause(examples: Path) -> None:
    diagnosis = diagnose_run(examples / "loss_spike")
    assert [finding.symptom for finding in diagnosis.findings] == list(symptoms())
    assert {one.cause for one in diagnosis.hypotheses} == set(catalogue().causes) >= {"healthy", "unknown"}
    assert sum(one.probability for one in diagnosis.hypotheses) == pytest.approx(1.0)


def test_the_json_has_the_fields_of_the_contract(examples: Path) -> None:
    answer = json.loads(diagnose_run(examples / "loss_spike").to_json())
    assert {"run", "findings", "hypotheses", "next_steps", "notes"} <= answer.keys()
    assert {"path", "formats", "steps", "metrics"} <= answer["run"].keys()
    assert {"symptom", "state", "summary", "steps", "values"} <= answer["findings"][0].keys()
    assert {"cause", "probability", "credence", "because", "against", "next_steps", "citations"} <= answer[
        "hypotheses"
    ][0].keys()


def test_observations_name_no_cause(examples: Path) -> None:
    for run in ("loss_spike", "divergence", "nan_loss", "overfit"):
        for finding in diagnose_run(examples / run).findings:
            assert not any(cause in finding.summary for cause in catalogue().causes)


def test_every_citation_of_an_answer_is_a_quote_of_the_catalogue_verbatim(examples: Path) -> None:
    citations = [one for hypothesis in diagnose_run(examples / "divergence").hypotheses for one in hypothesis.citations]
    assert citations
    for citation in citations:
        assert citation.text == catalogue().quotes[citation.id].text


def test_a_configuration_given_by_hand_is_used(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(
        "".join(json.dumps({"step": step, "loss": 9 / step, "grad_norm": 40.0 + step}) + "\n" for step in range(1, 40))
    )
    config = tmp_path / "elsewhere" / "run.yaml"
    config.parent.mkdir()
    config.write_text("max_grad_norm: 1.0\n")
    assert "grad_clip_saturated" not in present(diagnose_run(log))
    assert "grad_clip_saturated" in present(diagnose_run(log, config))


def test_what_lacks_its_metric_is_unknown_and_says_what_is_missing(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("step,loss\n" + "".join(f"{step},{2 + 1 / step}\n" for step in range(1, 50)))
    states = {finding.symptom: finding for finding in diagnose_run(log).findings}
    assert states["grad_norm_spike"].state is State.UNKNOWN
    assert "grad_norm" in states["grad_norm_spike"].summary
    assert states["loss_spike"].state is State.ABSENT


@pytest.mark.parametrize("depth", [0, 1])
def test_unusable_input_is_a_one_line_error_that_says_what_to_do(tmp_path: Path, depth: int) -> None:
    path = tmp_path if depth else tmp_path / "missing.jsonl"
    with pytest.raises(InputError) as caught:
        diagnose_run(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_what_a_nan_brings_with_it_counts_once(tmp_path: Path) -> None:
    rows = [{"step": step, "loss": 3.0 - step / 100, "grad_norm": 1.0} for step in range(1, 40)]
    broken = [{"step": step, "loss": "nan", "grad_norm": 1.0} for step in range(40, 60)]
    alone, beside = tmp_path / "alone.jsonl", tmp_path / "beside.jsonl"
    alone.write_text("\n".join(json.dumps(row) for row in (*rows, *broken)), encoding="utf-8")
    broken = [row | {"grad_norm": "nan"} for row in broken]
    beside.write_text("\n".join(json.dumps(row) for row in (*rows, *broken)), encoding="utf-8")
    one, other = diagnose_run(alone), diagnose_run(beside)
    assert {finding.symptom: finding.state for finding in other.findings}["grad_norm_nonfinite"] is State.PRESENT
    bits = {said.split()[0] for hypothesis in other.hypotheses for said in hypothesis.because}
    assert "loss_nonfinite" in bits
    assert "grad_norm_nonfinite" not in bits
    assert one.hypotheses[0].cause == other.hypotheses[0].cause


def test_labels_learnt_by_heart_are_no_slow_progress(tmp_path: Path) -> None:
    rows = ["epoch,loss,val_loss,val_accuracy"]
    rows += [f"{at},{2.32 - 0.018 * at + 0.003 * (at % 3):.4f},{2.30 + 0.004 * at:.4f},0.1" for at in range(1, 26)]
    (tmp_path / "history.csv").write_text("\n".join(rows))
    diagnosis = diagnose_run(tmp_path / "history.csv")
    assert {"eval_learns_nothing", "loss_slow"} <= present(diagnosis).keys()
    assert diagnosis.hypotheses[0].cause == "no_signal"
    assert not any("loss_slow" in reason for hypothesis in diagnosis.hypotheses for reason in hypothesis.because)


def test_a_usual_loop_that_writes_its_evaluation_by_epoch_to_tensorboard_is_healthy(tmp_path: Path) -> None:
    writer = pytest.importorskip("torch.utils.tensorboard").SummaryWriter(str(tmp_path))
    losses = noisy(2.3 / (1 + np.arange(200) / 15), 0.03)
    for step in range(200):
        writer.add_scalar("Loss/train", losses[step], step, walltime=1000.0 + step)
        if step % 20 == 19:
            writer.add_scalar("Loss/test", 2.4 / (1 + step / 15) + 0.05, step // 20, walltime=1000.5 + step)
    writer.close()
    assert diagnose_run(tmp_path).hypotheses[0].cause == "healthy"


@pytest.mark.parametrize("records", [20, 60, 120, 200, 300])
def test_a_healthy_run_that_is_still_going_is_accused_of_nothing(records: int, tmp_path: Path) -> None:
    """Its log stops before the plan, as that of a run that ran out of memory does; no message says so."""
    lines = (knowledge_folder() / "examples" / "healthy" / "log.jsonl").read_text().splitlines()
    (tmp_path / "log.jsonl").write_text("\n".join(lines[:records]) + "\n")
    (tmp_path / "config.json").write_text((knowledge_folder() / "examples" / "healthy" / "config.json").read_text())
    assert diagnose_run(tmp_path).hypotheses[0].cause in NO_FAULTS
