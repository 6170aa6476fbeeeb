"""The loss of the tokens that count is the evaluation loss of a language model, where it is the only one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.logs.reading import points, read

STEPS = range(10, 210, 10)
EVALUATED = {float(step): 3 - step / 100 for step in STEPS if step % 50 == 0}


def _history(*evaluated: str, trained: tuple[str, ...] = ("train/loss",)) -> str:
    records = [{"step": step, **dict.fromkeys(trained, 4 - step / 100)} for step in STEPS]
    records += [{"step": step, **dict.fromkeys(evaluated, loss)} for step, loss in EVALUATED.items()]
    return "".join(json.dumps(record) + "\n" for record in sorted(records, key=lambda record: record["step"]))


@pytest.mark.parametrize(
    "name",
    [
        "eval/response_loss",
        "val_completion_loss",
        "eval/assistant_loss",
        "validation/answer_nll",
        "test/next_token_nll",
    ],
)
def test_the_only_loss_of_evaluation_is_that_of_answers(name: str, tmp_path: Path) -> None:
    run = read(tmp_path, _history(name), "history.jsonl")
    assert points(run, "eval_loss") == pytest.approx(EVALUATED)
    assert run["eval_loss"].logged_as == name
    assert any(name in note and "eval_loss" in note for note in run.notes)


def test_training_and_evaluation_of_the_same_tokens_go_together(tmp_path: Path) -> None:
    run = read(tmp_path, _history("eval/answer_loss", trained=("train/answer_loss",)), "history.jsonl")
    assert points(run, "eval_loss") == pytest.approx(EVALUATED)
    assert run["loss"].value[0] == pytest.approx(3.9)


@pytest.mark.parametrize(
    ("evaluated", "trained"),
    [
        (("eval/answer_loss", "eval/prompt_loss"), ("train/loss",)),
        (("eval/answer_loss",), ("train/loss", "train/answer_loss")),
        (("eval/kl_loss",), ("train/loss",)),
        (("eval/nll",), ("train/loss",)),
        (("eval/box_loss",), ("train/loss",)),
    ],
)
def test_parts_stay_parts(evaluated: tuple[str, ...], trained: tuple[str, ...], tmp_path: Path) -> None:
    run = read(tmp_path, _history(*evaluated, trained=trained), "history.jsonl")
    assert "eval_loss" not in run
    assert set(evaluated) <= {curve.logged_as or name for name, curve in run.series.items()}


def test_what_a_harness_measures_in_a_line_of_text_is_an_evaluation(tmp_path: Path) -> None:
    text = "".join(
        f"iter {step}: loss {4 - step / 100}\n"
        + (f"iter {step}: harness next-token nll {EVALUATED[step]}\n" if step in EVALUATED else "")
        for step in STEPS
    )
    run = read(tmp_path, text)
    assert points(run, "eval_loss") == pytest.approx(EVALUATED)
    assert len(run["loss"]) == len(STEPS)
