"""Numbers as logs spell them, in every kind of log: what is NaN is read as NaN, and nothing else is."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from mldebug_mcp.logs import read_run
from mldebug_mcp.logs.numbers import parse_number

SPELLINGS = {
    "nan": math.nan, "NaN": math.nan, "NAN": math.nan, "-nan": math.nan, "+nan": math.nan, "nan.0": math.nan,
    "-nan(ind)": math.nan, "1.#QNAN": math.nan, "-1.#IND00": math.nan, "tensor(nan)": math.nan,
    "tensor(nan, device='cuda:0', grad_fn=<NllLossBackward0>)": math.nan, "np.float32(nan)": math.nan,
    "inf": math.inf, "-inf": -math.inf, "Infinity": math.inf, "inf.0": math.inf, "1.#INF": math.inf,
    "-1.#INF00": -math.inf, "1,234.5": 1234.5, "12.5%": 12.5, "2.5E+00": 2.5, ".5": 0.5, "5.": 5.0,
    "tensor(2.5)": 2.5, "np.float64(2.5)": 2.5,
}  # fmt: skip
LOGS = {
    "train.log": "step {step}: loss {loss} lr 0.1\n",
    "colons.log": "step: {step}, loss: {loss}, lr: 0.1\n",
    "equals.log": "step={step} loss={loss} lr=0.1\n",
    "dicts.log": "{{'step': {step}, 'loss': {loss}, 'lr': 0.1}}\n",
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("name", LOGS)
def test_a_number_in_text_is_read_however_it_is_spelled(tmp_path: Path, name: str, spelling: str) -> None:
    losses = {1: "3.5", 2: "3.25", 3: spelling, 4: "3.0"}
    (tmp_path / name).write_text("".join(LOGS[name].format(step=step, loss=loss) for step, loss in losses.items()))
    run = read_run(tmp_path / name)
    assert run["loss"].step.tolist() == [1, 2, 3, 4]
    assert run["loss"].value.tolist() == pytest.approx([3.5, 3.25, SPELLINGS[spelling], 3.0], nan_ok=True)
    assert run["learning_rate"].value.tolist() == [0.1] * 4


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_cell_and_a_string_are_read_as_text_is(tmp_path: Path, spelling: str) -> None:
    losses = {1: "3.5", 2: "3.25", 3: spelling, 4: "3.0"}
    table, lines = tmp_path / "a.csv", tmp_path / "b.jsonl"
    table.write_text("step,loss\n" + "".join(f'{step},"{loss}"\n' for step, loss in losses.items()))
    lines.write_text("".join(json.dumps({"step": step, "loss": loss}) + "\n" for step, loss in losses.items()))
    for log in (table, lines):
        expected = [3.5, 3.25, SPELLINGS[spelling], 3.0]
        assert read_run(log)["loss"].value.tolist() == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    "text", ["", "nano", "1.2.3", "12abc", "tensor", "[1, 2]", "1,23", "None", "0x10", "float('nan')"]
)
def test_what_is_no_number_is_none(text: str) -> None:
    assert parse_number(text) is None


def test_the_learning_rate_of_the_only_group_may_stand_in_a_list(tmp_path: Path) -> None:
    rows = [{"step": 1, "loss": 2.5, "lr": [0.001]}, {"step": 2, "loss": 2.0, "lr": [0.002]}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "b.log").write_text("".join(f"{row}\n" for row in rows))
    for name in ("a.jsonl", "b.log"):
        assert read_run(tmp_path / name)["learning_rate"].value.tolist() == [0.001, 0.002]


def test_of_several_numbers_in_a_list_none_is_the_metric(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("{'step': 1, 'loss': 2.5, 'betas': [0.9, 0.95], 'grad_norm': 1.5}\n" * 2)
    assert set(read_run(tmp_path / "a.log").series) == {"loss", "grad_norm"}


def test_an_average_precision_without_samples_is_no_nan_of_the_training(tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text(
        '{"iteration": 19, "total_loss": 2.5}\n{"iteration": 19, "bbox/APs": NaN, "bbox/AP": 11.5}\n'
    )
    run = read_run(tmp_path / "metrics.json")
    assert run["loss"].value.tolist() == [2.5]
    assert run["bbox/AP"].value.tolist() == [11.5]
    assert math.isnan(run["bbox/APs"].value[0])
