"""What stands first in an answer: the verdict in words, the facts, the next check and the fix, each whole."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from tests.runs import run_of, run_of_records

from mldebug_mcp.judge import diagnose, diagnose_run
from mldebug_mcp.judge.causes import fitting, of_this_kind
from mldebug_mcp.judge.run_verdict import whole_sentences
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.logs import read_run
from mldebug_mcp.report.diagnosis_screen import screen_lines, verdict_lines
from mldebug_mcp.report.sections import verdict_block

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_every_cause_has_a_name_for_a_sentence() -> None:
    assert catalogue().names.keys() == catalogue().causes.keys()


@pytest.mark.parametrize("example", ["loss_spike", "nan_loss", "overfit", "divergence"])
def test_the_first_lines_hold_verdict_facts_check_and_fix_whole(example: str) -> None:
    diagnosis = diagnose(read_run(EXAMPLES / example))
    lines = verdict_lines(diagnosis, 80)
    printed = " ".join(" ".join(map(str, lines)).split())
    block = verdict_block(diagnosis)
    assert block.check is not None
    for whole in (block.headline, block.facts[0], block.next, block.command, whole_sentences(block.fix, 0)):
        assert " ".join(whole.split()) in printed
    assert "…" not in printed
    assert len(lines) <= 9


def test_a_healthy_run_is_one_sentence_with_what_was_looked_at() -> None:
    block = verdict_block(diagnose(read_run(EXAMPLES / "healthy")))
    assert block.headline.startswith("Healthy (")
    assert "nothing unusual in loss (4.755 to 2.328), grad_norm, learning_rate over 400 records" in block.headline
    assert not block.facts
    assert block.check is None
    assert "eval_loss" in block.next
    assert block.command.endswith("--reference OTHER_RUN")


def test_of_a_few_records_that_nothing_speaks_in_no_fault_is_named_and_no_check_of_one_is_proposed() -> None:
    loss, rate = [0.66, 0.68, 0.67, 0.66, 0.76, 0.75], [4.4e-5, 4.3e-5, 4.2e-5, 4.1e-5, 4e-5, 3.9e-5]
    block = verdict_block(diagnose(run_of(loss=loss, learning_rate=rate)))
    assert block.kind == "healthy"
    assert block.headline.endswith("nothing in the log points to a fault.")
    assert block.check is None
    assert "mldebug-mcp error" not in block.command


def test_what_many_healthy_runs_show_is_no_reason() -> None:
    for example in ("loss_spike", "overfit", "nan_loss"):
        facts = diagnose(read_run(EXAMPLES / example)).verdict.facts
        assert 1 <= len(facts) <= 2
        assert not any("no warm-up" in fact for fact in facts)


@pytest.mark.parametrize(("kind", "kept"), [("sft", "Drop the rows."), ("rl", "Drop the rows. In RL lower the rate.")])
def test_a_fix_names_no_training_of_another_kind(kind: str, kept: str) -> None:
    run = run_of(loss=np.linspace(3, 1, 50), kind=kind)
    assert of_this_kind(run, "Drop the rows. In a VLM set `max_length=None`. In RL lower the rate.") == kept


def test_a_backward_pass_that_fails_on_ordinary_numbers_is_invalid_math_and_clipping_that_is_on_is_not_advised() -> (
    None
):
    diagnosis = diagnose_run(EXAMPLES / "nan_loss")
    assert diagnosis.hypotheses[0].cause == "invalid_math"
    exploding = next(one for one in diagnosis.hypotheses if one.cause == "exploding_gradients")
    assert exploding.fix.startswith("Remove the reason")
    assert exploding.fix.endswith("Gradients are clipped at 5 already.")


def test_a_check_that_a_finding_settles_is_not_proposed() -> None:
    diagnosis = diagnose_run(EXAMPLES / "loss_spike")
    pocket = next(one for one in diagnosis.hypotheses if one.cause == "bad_data_pocket")
    answers = {step.id: step.answer for step in pocket.next_steps}
    assert "is the only one" in answers["bad_data_pocket.1"]
    assert "bad_data_pocket.1" not in {step.id for step in diagnosis.next_steps}


@pytest.mark.parametrize(
    ("config", "fix", "left"),
    [
        ({"max_grad_norm": 1.0}, "drop the rows; clip gradients (`max_grad_norm=1.0`).", "Drop the rows"),
        ({"max_grad_norm": 0}, "drop the rows; clip gradients (`max_grad_norm=1.0`).", "clip gradients"),
        ({"shuffle": True}, "`shuffle=True` in the loader, a large buffer.", "A large buffer"),
        ({"shuffle": True}, "read the rows. `shuffle=True` in the loader, and a large buffer.", "rows. A large buffer"),
    ],
)
def test_what_the_settings_have_already_is_taken_out_of_a_fix(
    config: dict[str, str | float | int | bool | None], fix: str, left: str
) -> None:
    assert left in fitting(run_of(loss=np.linspace(3, 1, 50), config=config), fix)


def test_a_run_without_a_result_says_in_its_first_line_what_to_do() -> None:
    headline = diagnose(run_of({"widgets": np.linspace(1, 2, 50)})).verdict.headline
    assert headline.startswith("Cannot be judged: no loss, score or reward found among widgets")
    assert "--map widgets=loss" in headline


def test_what_is_known_to_be_no_loss_is_not_proposed_as_one() -> None:
    run = run_of({"learning_rate": np.linspace(0.1, 0.2, 9), "consumed samples": np.arange(9.0)}, kind="pretraining")
    headline = diagnose(run).verdict.headline
    assert headline.startswith("Cannot be judged: no loss, score or reward is logged")
    assert "--map" not in headline


def test_of_closing_figures_alone_the_log_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "all_results.json"
    file.write_text('{"epoch": 3.0, "eval_loss": 0.4, "train_loss": 0.3, "train_runtime": 81.2}')
    headline = diagnose_run(file).verdict.headline
    assert headline.startswith("Cannot be judged: only the closing figures of a run are here")


def test_of_printed_closing_figures_alone_the_log_is_asked_for(tmp_path: Path) -> None:
    phases = {"train": ("loss", "0:02:31.40"), "eval": ("accuracy", "1 day, 2:00:11")}
    for several in (["train"], ["eval"], ["train", "eval"]):
        file = tmp_path / "console.log"
        file.write_text(
            "".join(
                f"***** {phase} metrics *****\n  epoch          =        5.0\n  {phase}_{name} =     0.25\n"
                f"  {phase}_runtime  = {runtime}\n"
                for phase, (name, runtime) in phases.items()
                if phase in several
            )
        )
        headline = diagnose_run(file).verdict.headline
        assert headline.startswith("Cannot be judged: only the closing figures of a run are here")
    assert "--map" not in headline


def test_a_gradient_that_is_never_finite_leads_although_no_loss_is_logged() -> None:
    run = run_of({"grad_norm": [np.nan] * 3, "learning_rate": [3e-4] * 3}, kind="pretraining")
    verdict = diagnose(run).verdict
    assert verdict.kind == "fault"
    assert any("grad_norm is NaN" in fact for fact in verdict.facts)


def test_a_fact_that_another_holds_whole_is_not_repeated() -> None:
    value_loss = [65.0, 560.0, 1.9e11, 8e24, np.inf, np.inf]
    run = run_of({"value_loss": value_loss, "reward": [4.0, 4.0, 4.4, 4.1, 4.0, 4.2], "kl": [0.1] * 6}, kind="rl")
    facts = diagnose(run).verdict.facts
    assert sum("value_loss is infinite" in fact for fact in facts) == 1


def test_a_gradient_of_zero_is_not_put_down_to_rewards_that_differ() -> None:
    metrics = {"grad_norm": [0.0], "loss": [0.0], "reward": [0.4], "reward_std": [0.3], "frac_reward_zero_std": [0.1]}
    assert diagnose(run_of(metrics, kind="grpo")).hypotheses[0].cause == "params_not_training"


def test_of_a_folder_of_several_runs_the_first_words_say_that_one_is_judged(tmp_path: Path) -> None:
    for name, log in (("a", EXAMPLES / "loss_spike" / "log.jsonl"), ("b", EXAMPLES / "overfit" / "metrics.csv")):
        (tmp_path / f"{name}{log.suffix}").write_bytes(log.read_bytes())
    block = verdict_block(diagnose_run(tmp_path))
    assert block.headline.startswith("1 of 2 runs in this folder")
    assert block.command == f"mldebug-mcp runs {tmp_path}"


@pytest.mark.parametrize("number", [2, 5])
def test_a_folder_of_several_runs_is_not_called_healthy_by_one_and_leads_to_all(tmp_path: Path, number: int) -> None:
    log = EXAMPLES / "healthy" / "log.jsonl"
    for name in range(number):
        (tmp_path / f"run{name}").mkdir()
        (tmp_path / f"run{name}" / log.name).write_bytes(log.read_bytes())
    diagnosis = diagnose_run(tmp_path)
    assert diagnosis.run.runs_in_folder == number
    assert diagnosis.verdict.kind == "unclear"
    assert diagnosis.next_step is not None
    assert (diagnosis.next_step.tool, diagnosis.next_step.arguments) == ("diagnose_runs", {"path": str(tmp_path)})
    assert diagnose_run(tmp_path, run="run1").verdict.kind == "healthy"


@pytest.mark.parametrize("config", [{}, {"lora_r": 16}], ids=["without LoRA", "with LoRA"])
def test_a_fix_names_lora_to_a_classifier_only_where_it_trains_one(config: dict[str, int]) -> None:
    at = np.arange(60)
    run = run_of(
        loss=0.05 + 2 * np.exp(-at / 15),
        eval_loss=0.6 + np.exp(-at / 4) + at / 60,
        eval_accuracy=0.8 - 0.3 * np.exp(-at / 4),
        config={"num_labels": 10, **config},
    )
    fix = next(one.fix for one in diagnose(run).hypotheses if one.cause == "overfitting")
    assert run.kind == "supervised"
    assert "weight decay 0.01 to 0.1" in fix
    assert "a lower learning rate." in fix
    assert ("lora" in fix.lower()) == bool(config)


def test_a_sentence_whose_last_item_is_left_out_keeps_its_end() -> None:
    run = run_of(loss=np.linspace(3, 1, 50), kind="boosting")
    assert of_this_kind(run, "Use fewer rounds, a smaller LoRA rank. Add data.") == "Use fewer rounds. Add data."
    assert of_this_kind(run, "Lower the LoRA rank.") == "Lower the LoRA rank."


def test_the_records_of_a_healthy_answer_are_those_of_the_run() -> None:
    records: list[dict[str, object]] = []
    for step in range(1, 301):
        records.append({"step": step, "loss": 3 - step / 150})
        records += [{"step": step, "eval_loss": 3.1 - step / 160}] if step % 10 == 0 else []
    assert "over 330 records" in diagnose(run_of_records(records)).verdict.headline


@pytest.mark.parametrize("outcome", ["confirms", "refutes"])
@pytest.mark.parametrize("example", ["loss_spike", "divergence", "nan_loss"])
def test_a_fault_is_called_probable_where_its_credence_says_likely(examples: Path, example: str, outcome: str) -> None:
    leading = diagnose_run(examples / example).leader
    answer = diagnose_run(examples / example, outcomes={f"{leading}.1": outcome})  # type: ignore[dict-item]

    probable = answer.verdict.headline.startswith(("Probably", "Almost certainly"))
    assert probable == (answer.hypotheses[0].credence in ("likely", "highly likely", "almost certain"))


def test_why_begins_with_what_the_cause_is_known_to_show(tmp_path: Path) -> None:
    path = tmp_path / "out.log"
    path.write_text(
        "".join(
            f"{{'loss': {step / 1e5}, 'grad_norm': {(step * 37 % 90 + 9) / 1e5}, 'learning_rate': 1e-06, "
            "'completions/mean_length': 256.0, 'completions/clipped_ratio': 1.0, 'rewards/correct/mean': 0.0, "
            "'rewards/correct/std': 0.0, 'reward': 0.0, 'reward_std': 0.0, 'frac_reward_zero_std': 1.0, "
            f"'kl': {(step * 53 % 40) / 1e5}, 'entropy': 1.2, 'epoch': {step / 500}}}\n"
            for step in range(200)
        )
    )
    answer = diagnose_run(path)
    assert answer.hypotheses[0].cause == "no_reward_variance"
    assert answer.verdict.facts[0].startswith("frac_reward_zero_std is 1 in the later half of the log")


def test_the_screen_prints_no_sentence_of_the_fix_twice_and_none_as_that_of_a_check(tmp_path: Path) -> None:
    log = tmp_path / "train.jsonl"
    losses = [2.5 - step / 100 if step < 50 else 7 + step % 5 for step in range(100)]
    log.write_text("".join(f'{{"step": {step}, "loss": {loss}, "lr": 0.05}}\n' for step, loss in enumerate(losses)))
    diagnosis, run = diagnose_run(log), read_run(log)
    text = " ".join(" ".join(str(line) for line in screen_lines(diagnosis, run, 100)).split())
    fix = verdict_block(diagnosis).fix
    assert fix
    assert [text.count(sentence) for sentence in re.split(r"(?<=\.) ", fix)] == [1] * len(re.split(r"(?<=\.) ", fix))
    assert "fix: " not in text


def test_an_answer_that_sends_to_all_runs_of_a_file_prints_no_check_of_the_one(tmp_path: Path) -> None:
    log = tmp_path / "two.jsonl"
    rows = [(run, step, "NaN" if run == "b" and step > 60 else 2 - step / 100) for run in "ab" for step in range(100)]
    log.write_text("".join(f'{{"run": "{run}", "step": {step}, "loss": {loss}}}\n' for run, step, loss in rows))
    block = verdict_block(diagnose_run(log))
    assert (block.next, block.check) == ("Judge each of the runs.", None)
