"""The call that an answer suggests can be made as it stands, and is worth making."""

from __future__ import annotations

import json
import pickle
import random
from pathlib import Path

from tests.memory import scenarios

from mldebug_mcp import check_memory, diagnose_run, explain_error, search_folklore, update_diagnosis
from mldebug_mcp.judge.next_call import after_ranking
from mldebug_mcp.judge.script import inspect_script
from mldebug_mcp.models import Call, Hypothesis, NextStep
from mldebug_mcp.report.diagnosis_concise import concise
from mldebug_mcp.report.sections import verdict_block


def lines_with_nan(count: int = 300) -> list[str]:
    draw = random.Random(0)
    losses = [f"{2 / at**0.3 + draw.gauss(0, 0.02):.4f}" if at < 200 else "nan" for at in range(1, count)]
    return [f"step {at}: loss {loss} grad_norm 1.{at % 7}" for at, loss in enumerate(losses, start=1)]


def after(answer: object) -> Call:
    call = getattr(answer, "next_step", None)
    assert isinstance(call, Call)
    return call


def test_a_log_that_holds_no_error_is_not_to_be_searched_for_one(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("\n".join(lines_with_nan()), encoding="utf-8")
    diagnosis = diagnose_run(log)
    assert str(log) not in "".join(
        step.call or "" for step in diagnosis.next_steps if "explain_error" in str(step.call)
    )
    assert after(diagnosis).tool != "explain_error"


def test_a_log_that_holds_an_error_is_to_be_searched_for_it(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    error = 'Traceback (most recent call last):\n  File "t.py", line 3, in main\n'
    error += "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    log.write_text("\n".join([*lines_with_nan(150), error]), encoding="utf-8")
    assert "explain_error" in [str(step.call).partition("(")[0] for step in diagnose_run(log).next_steps]


def test_of_a_snapshot_the_line_that_leaks_is_looked_at_and_not_the_largest(tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshot.pickle"
    snapshot.write_bytes(pickle.dumps(scenarios.snapshot_of(scenarios.leak())))
    report = check_memory(snapshot)
    leak = next(one for one in report.findings if one.finding == "leak")
    focus = after(report).arguments["focus"]
    assert next(one for one in report.top_allocations if one.id == focus).site == leak.stack[0]


def test_who_asks_for_practice_is_told_to_read_the_source_and_not_a_cause_on_which_no_quote_bears() -> None:
    answer = search_folklore("what should I log during training")
    assert after(answer).arguments == {"id": answer.quotes[0].source}
    ill = search_folklore("loss is nan after a few steps")
    assert after(ill).arguments == {"id": ill.entries[0].id}


def test_an_error_of_which_nothing_is_known_is_not_searched_for_in_vain() -> None:
    assert explain_error("FrobnicateError: grommet zyzzyva at quux").next_step is None


def test_every_call_about_a_run_that_was_asked_for_names_it(tmp_path: Path) -> None:
    rows = [f'{{"step": {step}, "loss": {3 - step / 100}, "run": "{run}"}}' for run in "ab" for step in range(100)]
    log = tmp_path / "two.jsonl"
    log.write_text("\n".join(rows), encoding="utf-8")
    diagnosis = diagnose_run(log, run="a")
    assert (diagnosis.run.title, diagnosis.run.runs_in_folder) == (f"{log}, run a", 2)
    assert "--run a --reference OTHER_RUN" in verdict_block(diagnosis).command
    again = [step.call for step in diagnosis.next_steps if str(step.call).startswith("diagnose_run(")]
    assert again
    assert all(call is not None and ', run="a", reference=' in call for call in again)


def test_a_run_of_a_folder_is_asked_for_again_by_its_name_and_its_configuration(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.log").write_text("\n".join(lines_with_nan()), encoding="utf-8")
    settings = tmp_path / "settings.yaml"
    settings.write_text("learning_rate: 0.001\n", encoding="utf-8")
    diagnosis = diagnose_run(tmp_path, settings, run="one")
    assert diagnosis.run.runs_in_folder == 2
    assert "2 runs in this folder" not in diagnosis.verdict.headline
    outcome = update_diagnosis({}, {"lr_too_high.1": "refutes"}, path=tmp_path, config=settings, run="one")
    for command in (verdict_block(diagnosis).command, outcome.at_a_glance.command if outcome.at_a_glance else ""):
        assert f"--run one --config {settings}" in command or "diagnose" not in command


def test_the_next_call_is_about_the_check_that_the_verdict_names() -> None:
    def step(cause: str, call: str | None) -> NextStep:
        return NextStep(id=f"{cause}.1", action="Look.", cost="seconds", confirms="", refutes="", call=call)

    first, made = step("no_reward_variance", None), step("entropy_collapse", 'explain(id="kl_blowup")')
    leading = [Hypothesis(cause="entropy_collapse", probability=0.9, credence="likely")]
    assert after_ranking([first, made], leading).arguments == {"id": "no_reward_variance"}
    assert after_ranking([made, first], leading).arguments == {"id": "kl_blowup"}
    assert after_ranking([step("entropy_collapse", None)], leading).arguments == {"id": "entropy_collapse"}


def test_the_short_answer_on_a_doubted_healthy_run_asks_for_the_same_check_as_the_screen(tmp_path: Path) -> None:
    log = tmp_path / "train.jsonl"
    draw = random.Random(0)
    losses = [2.1 + 5 * 0.97**at + draw.gauss(0, 0.02) for at in range(240)]
    rows = [json.dumps({"step": 100 * at, "loss": loss, "max_steps": 250000}) for at, loss in enumerate(losses, 1)]
    log.write_text("\n".join(rows), encoding="utf-8")
    (tmp_path / "config.json").write_text('{"max_steps": 250000}', encoding="utf-8")
    diagnosis = diagnose_run(log)
    short, check = concise(diagnosis), verdict_block(diagnosis).check
    assert diagnosis.verdict.kind == "healthy"
    assert check is not None
    assert [step.id for step in short.next_steps] == [check.id]
    assert short.verdict.next == diagnosis.verdict.next
    assert (short.run.steps, short.run.last_step) == (240, 24000)


def test_an_unknown_error_is_not_sent_to_a_search_whose_answers_hold_few_of_its_words() -> None:
    log = 'Traceback (most recent call last):\n  File "/me/a.py", line 3, in f\n    assert a == b, f"{a} vs {b}"\n'
    answer = explain_error(f"{log}AssertionError: torch.Size([32, 10]) vs torch.Size([31])")
    assert answer.next_step is None
    assert answer.at_a_glance is not None
    assert (answer.at_a_glance.command, "line of your code" in answer.at_a_glance.next) == ("", True)


def test_a_log_without_an_error_is_to_be_diagnosed_and_the_sentence_above_the_command_says_so(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("epoch 1 done\nAll good. No error occurred.\n", encoding="utf-8")
    glance = explain_error(str(log)).at_a_glance
    assert glance is not None
    assert (glance.command, glance.next[:26]) == (f"mldebug-mcp diagnose {log}", "See what its metrics show.")


def test_a_fault_in_a_script_that_no_cause_describes_is_not_explained_as_unknown(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "from transformers import TrainingArguments\n"
        "args = TrainingArguments(output_dir='o', eval_strategy='steps', save_strategy='epoch',\n"
        "                         load_best_model_at_end=True)\n",
        encoding="utf-8",
    )
    answer = inspect_script(script)
    assert [finding.cause for finding in answer.findings] == ["unknown"]
    assert answer.next_step is None
    assert answer.at_a_glance is not None
    assert answer.at_a_glance.command == f"mldebug-mcp diagnose LOG --script {script}"
