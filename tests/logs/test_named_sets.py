"""A field that names the rows of a record tells sets of evaluation apart, whatever else stands in their names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mldebug_mcp.logs import read_run


@pytest.mark.parametrize("field", ["split", "subset", "eval_set"])
@pytest.mark.parametrize("is_nested", [False, True])
def test_records_of_two_named_sets_are_two_columns_of_evaluation(tmp_path: Path, field: str, is_nested: bool) -> None:
    def record(step: int, of: str, loss: float) -> str:
        return json.dumps({"step": step, field: of, "loss": {"mean": loss} if is_nested else loss})

    lines = [record(step, "train", 3 - step / 20) for step in range(1, 41)]
    lines += [record(step, "dev_clean", 3.1 - step / 20) for step in (10, 20, 30, 40)]
    lines += [record(step, "dev-other", 3.4 - step / 20) for step in (10, 20, 30, 40)]
    path = tmp_path / "metrics.jsonl"
    path.write_text("\n".join(lines) + "\n")
    run = read_run(path)
    evaluated = [series for series in run.series.values() if series.role is not None and series.role.is_evaluation]
    assert {round(float(series.value[-1]), 2) for series in evaluated} == {1.1, 1.4}
    assert len(run["loss"]) == 40


def test_a_set_that_is_named_as_an_evaluation_alone_is_the_evaluation(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    lines = [{"step": step, "split": of, "loss": 3 - step / 20} for step in range(1, 9) for of in ("train", "dev_set")]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    run = read_run(path)
    assert len(run["loss"]) == len(run["eval_loss"]) == 8


def test_a_word_with_each_measure_of_training_and_evaluation_names_a_further_set(tmp_path: Path) -> None:
    rows = "".join(
        f"{at},{0.5 - at / 50:.4f},{0.8 + at / 200:.4f},{0.51 - at / 50:.4f},{0.79 + at / 200:.4f},"
        f"{0.5 + at / 50:.4f},{0.78 - at / 200:.4f}\n"
        for at in range(20)
    )
    for word, is_set in (("later", True), ("best", False)):
        head = f"epoch,train bce,train auc,valid bce,valid auc,{word} bce,{word} auc\n"
        (tmp_path / "train.csv").write_text(head + rows)
        run = read_run(tmp_path / "train.csv")
        assert (f"eval_{word}/bce" in run and f"eval_{word}/auc" in run) is is_set
        assert run["eval_loss"].value[0] == 0.51
