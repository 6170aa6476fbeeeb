from __future__ import annotations

import inspect
import json
from pathlib import Path

import numpy as np
import pytest
from tests.runs import run_of

from mldebug_mcp.judge import diagnose_run
from mldebug_mcp.judge.diagnosis import diagnose
from mldebug_mcp.judge.next_steps import VERBS, applies, filled_batch_call, order_next_steps, possible_call
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.models import Hypothesis, NextStep, State
from mldebug_mcp.server.tools import TOOLS


def step(action: str, cost: str = "minutes", call: str | None = None, cause: str = "") -> NextStep:
    return NextStep.model_validate({"action": action, "cost": cost, "call": call, "for_causes": [cause]})


def hypothesis(cause: str, probability: float, *steps: NextStep) -> Hypothesis:
    return Hypothesis(cause=cause, probability=probability, credence="", next_steps=list(steps))


def test_the_check_that_splits_the_field_comes_before_one_of_a_remote_cause() -> None:
    ordered = order_next_steps(
        [hypothesis("a", 0.5, step("halves")), hypothesis("b", 0.45), hypothesis("c", 0.05, step("remote"))]
    )
    assert [one.action for one in ordered] == ["halves", "remote"]


def test_of_two_checks_that_tell_as_much_the_cheaper_comes_first() -> None:
    ordered = order_next_steps([hypothesis("a", 0.5, step("slow", "hours"), step("quick", "seconds"))])
    assert [one.action for one in ordered] == ["quick", "slow"]


def test_checks_that_make_the_same_call_are_one_check_about_several_causes() -> None:
    call = 'inspect_batch(path="BATCH")'
    ordered = order_next_steps(
        [
            hypothesis("a", 0.3, step("look for masks", call=call, cause="a")),
            hypothesis("b", 0.2, step("look for templates", call=call, cause="b")),
        ]
    )
    assert [(one.action, one.for_causes) for one in ordered] == [("look for masks", ["a", "b"])]


def test_what_to_do_with_a_healthy_run_is_said_only_where_healthy_leads() -> None:
    healthy, fault = hypothesis("healthy", 0.6, step("let it run")), hypothesis("a", 0.4, step("look"))
    assert "let it run" in [one.action for one in order_next_steps([healthy, fault])]
    assert "let it run" not in [one.action for one in order_next_steps([fault, healthy])]


def test_a_call_is_offered_only_if_one_of_our_tools_takes_it() -> None:
    assert possible_call('diagnose_run(path="{path}")', 'a "b".csv') == 'diagnose_run(path="a \\"b\\".csv")'
    assert possible_call('diagnose_run(path="{path}", no_such_argument="x")', "log") is None
    assert possible_call('no_such_tool(path="{path}")', "log") is None


def test_a_cause_of_running_out_of_memory_offers_a_look_at_a_snapshot() -> None:
    calls = {step.call for cause in ("memory_leak", "out_of_memory") for step in catalogue().causes[cause].next_steps}
    assert 'check_memory(path="SNAPSHOT.pickle")' in {possible_call(call, "log.jsonl") for call in calls}


def test_the_calls_that_next_steps_may_make_are_those_of_the_server() -> None:
    offered = {tool.__name__: set(inspect.signature(tool).parameters) for tool in TOOLS}
    assert VERBS.keys() <= offered.keys()
    assert all(arguments <= offered[verb] for verb, arguments in VERBS.items())


def test_a_check_of_reinforcement_learning_is_proposed_to_no_other_run() -> None:
    assert applies("In RL, compare the gradient norm with the scale of rewards.", "rl")
    assert not applies("In RL, compare the gradient norm with the scale of rewards.", "supervised")
    assert not applies("In RL on language models, read the importance ratio.", "rl")
    assert applies("Read the loop.", "unknown")
    actions = [step.action for cause in catalogue().causes.values() for step in cause.next_steps]
    assert sum(not applies(action, "unknown") for action in actions) >= 2


def test_the_message_is_looked_for_in_the_log_itself_where_that_is_text() -> None:
    assert (
        possible_call('explain_error(text="MESSAGE")', "runs/7/train.log") == 'explain_error(text="runs/7/train.log")'
    )
    assert possible_call('explain_error(text="MESSAGE")', "runs/7") == 'explain_error(text="MESSAGE")'


def test_a_message_that_no_log_holds_is_looked_up_last() -> None:
    lookup = step("look up the message", "seconds", 'explain_error(text="MESSAGE")')
    ordered = order_next_steps([hypothesis("a", 0.5, lookup, step("inspect a batch"))])
    assert [one.action for one in ordered] == ["inspect a batch", "look up the message"]


def looked_up(log: Path) -> bool:
    return any("explain_error" in (one.call or "") for one in diagnose_run(log).hypotheses[0].next_steps)


def test_no_message_is_looked_up_again_in_a_log_that_was_searched(tmp_path: Path) -> None:
    rows = "".join(f"step {at} loss 2.3026 grad_norm 0.0\n" for at in range(1, 60))
    text, table = tmp_path / "train.log", tmp_path / "metrics.csv"
    text.write_text(rows)
    table.write_text("step,loss,grad_norm\n" + "".join(f"{at},2.3026,0.0\n" for at in range(1, 60)))
    assert diagnose_run(text).hypotheses[0].cause == diagnose_run(table).hypotheses[0].cause == "params_not_training"
    assert not looked_up(text)
    assert looked_up(table)


def test_a_peak_far_below_the_usual_range_is_raised_to_it_not_by_a_factor() -> None:
    rng = np.random.default_rng(0)
    rates, losses = np.full(300, 1e-6), 4.84 - 1e-4 * np.arange(300) + 0.04 * rng.standard_normal(300)
    ranked = diagnose(run_of(loss=losses, learning_rate=rates)).hypotheses
    fix = next(one.fix for one in ranked if one.cause == "lr_too_low")
    assert fix.startswith("Raise the peak to the usual range, or 2 to 5 times inside it.")


def test_a_fix_that_the_settings_already_have_is_named_and_not_advised(examples: Path) -> None:
    fix = diagnose_run(examples / "loss_spike").hypotheses[0].fix
    assert fix.endswith(" Gradients are clipped at 1 already.")
    assert "Clip gradients" not in fix


@pytest.mark.parametrize(
    ("kind", "purpose"),
    [("sft", ', purpose="sft"'), ("boosting", ', purpose="classification"'), ("diffusion", ""), ("unknown", "")],
)
def test_a_batch_is_looked_at_with_the_purpose_of_the_run_or_none(kind: str, purpose: str) -> None:
    call = filled_batch_call('inspect_batch(path="BATCH", purpose="sft")', "nowhere/log.jsonl", kind)
    assert call == f'inspect_batch(path="BATCH"{purpose})'


@pytest.mark.parametrize(("steps", "first"), [((40, 300), 40), ((1200, 90), 90)])
def test_a_batch_that_the_recorder_saved_is_looked_at_the_first_step_first(
    tmp_path: Path, steps: tuple[int, ...], first: int
) -> None:
    (tmp_path / "batches").mkdir()
    for step in steps:
        (tmp_path / "batches" / f"step-{step}.json").write_text("{}")
    call = filled_batch_call('inspect_batch(path="BATCH")', str(tmp_path), "supervised")
    assert f"step-{first}.json" in call


def test_of_two_checks_that_tell_as_much_one_that_can_be_made_at_once_comes_first() -> None:
    other_run = step("compare", call='diagnose_run(path="a", reference="OTHER_RUN")')
    rows = step("read the rows", call='rows_at(path="a", step=7)')
    ordered = order_next_steps([hypothesis("a", 0.5, step("think"), other_run, rows)])
    assert [check.action for check in ordered] == ["read the rows", "compare", "think"]


@pytest.mark.parametrize("values", ["3 9 3 3 nan nan nan nan nan nan", "3 9 3 2.9 inf nan nan nan nan nan"])
def test_a_fix_of_a_run_whose_loss_is_lost_for_good_goes_back_before_the_loss(values: str) -> None:
    losses = [*np.linspace(4, 3, 40), *map(float, values.split())]
    fix = next(found.fix for found in diagnose(run_of(loss=losses)).hypotheses if found.cause == "bad_batch")
    lost = next(at for at, value in enumerate(losses, start=1) if not np.isfinite(value))
    assert "recovered" not in fix
    assert f"Restart from a checkpoint before step {lost}" in fix


def test_a_fix_of_a_run_that_recovered_needs_no_restart() -> None:
    losses = [*np.linspace(4, 3, 40), 9.0, *np.linspace(3, 2.5, 40)]
    fix = next(found.fix for found in diagnose(run_of(loss=losses)).hypotheses if found.cause == "bad_batch")
    assert "needs no restart" in fix


def recorded(folder: Path, lost: int, *, rows: bool) -> Path:
    """Write a recording whose inputs are not finite from a step on, of which the batch is saved."""
    (folder / "batches").mkdir(parents=True)
    (folder / "batches" / f"step-{lost}.json").write_text('{"input_ids": [[1, 2]]}')
    event = {"step": lost, "event": "nonfinite", "value": "NaN", "batch": "", "began": {"inputs": ["pixel_values"]}}
    records: list[dict[str, object]] = [{"recorder": 1, **({"rows_kind": "index"} if rows else {})}]
    for step in range(1, lost + 60):
        loss = float("nan") if step >= lost else 3 / step + 0.02 * (step % 5)
        fed = {"rows": [step, step + 1]} if rows else {}
        records += [event] if step == lost else []
        records.append({"step": step, "train/loss": loss, "grad_norm": 1.0 if step < lost else loss, **fed})
    (folder / "recorder.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder


@pytest.mark.parametrize("rows", [True, False], ids=["with the rows", "with the batch alone"])
@pytest.mark.parametrize("lost", [60, 130])
def test_of_inputs_that_a_recorder_saw_lost_what_lies_in_the_folder_is_looked_at_first(
    tmp_path: Path, lost: int, rows: bool
) -> None:
    diagnosis = diagnose_run(recorded(tmp_path / "run", lost, rows=rows))
    batch = next(found for found in diagnosis.hypotheses if found.cause == "bad_batch")
    first = next(check for check in diagnosis.next_steps if check.id.startswith("bad_batch."))
    assert first.call is not None
    assert first.call.startswith("rows_at(" if rows else "inspect_batch(")
    assert (f"step={lost}" if rows else f"step-{lost}.json") in first.call
    assert "OTHER_RUN" not in first.call
    assert f"before step {lost}" in batch.fix
    seen = {finding.symptom: finding.summary for finding in diagnosis.findings if finding.state is State.PRESENT}
    assert seen["nonfinite_in_inputs"].endswith("(argument pixel_values)")
