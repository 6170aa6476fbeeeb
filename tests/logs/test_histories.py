"""Values that were written together, in lists: printed at the end of a log, and in exports of trackers."""

from __future__ import annotations

import json
import math
from pathlib import Path
from pprint import pformat

import pytest
from tests.logs.reading import points, read

from mldebug_mcp import InputError
from mldebug_mcp.logs import read_run

STEPS = [10.0 * number for number in range(1, 25)]
LOSSES = [round(2.3 * math.exp(-number / 9) + 0.1, 3) for number in range(24)]
EVALUATED = [round(2.3 * math.exp(-number / 10) + 0.2, 3) for number in range(24)]
HISTORY = {"loss": LOSSES, "val_loss": EVALUATED}
PRINTED = {
    "on one line": f"history: {HISTORY}\n",
    "assigned": f"history = {HISTORY}\n",
    "a list on each line": f"{{'loss': {LOSSES},\n 'val_loss': {EVALUATED}}}\n",
    "a value on each line": f"training is done\n{pformat(HISTORY)}\n",
    "JSON": json.dumps(HISTORY, indent=2) + "\nbye\n",
    "a value on each line of an assignment": "losses = [\n"
    + "".join(f"    {one},\n" for one in LOSSES)
    + f"]\nval_losses = {EVALUATED}\n",
    "by phase": f"{{'train': {{'loss': {LOSSES}}}, 'val': {{'loss': {EVALUATED}}}}}\n",
    "a defaultdict": f"defaultdict(<class 'list'>, {{'train_loss': {LOSSES}, 'valid_loss': {EVALUATED}}})\n",
    "numbers of NumPy": f"{{'loss': {[f'np.float32({one})' for one in LOSSES]}, 'val_loss': {EVALUATED}}}\n".replace(
        "'np.", "np."
    ).replace(")'", ")"),
    "tensors": "losses: [" + ", ".join(f"tensor({one}, device='cuda:0')" for one in LOSSES) + "]\n"
    f"val_losses: {EVALUATED}\n",
    "an array": f"train_losses = np.array({LOSSES}, dtype=float32)\nval_losses = array({EVALUATED}, dtype=float32)\n",
    "growing": "".join(f"train_losses = {LOSSES[:end]}\nval_losses = {EVALUATED[:end]}\n" for end in range(3, 25)),
}


@pytest.mark.parametrize("way", PRINTED)
def test_a_history_that_was_printed_is_read_value_by_value(way: str, tmp_path: Path) -> None:
    run = read(tmp_path, f"training\n{PRINTED[way]}")
    assert run["loss"].value.tolist() == LOSSES
    assert run["eval_loss"].value.tolist() == EVALUATED
    assert run.records == len(LOSSES)


def test_a_history_behind_its_epochs_adds_nothing_to_them(tmp_path: Path) -> None:
    epochs = "".join(f"epoch {number} loss {loss}\n" for number, loss in enumerate(LOSSES, 1))
    run = read(tmp_path, f"{epochs}{HISTORY}\n")
    assert points(run, "loss") == dict(enumerate(LOSSES, 1))
    assert "eval_loss" not in run


def test_two_histories_are_two_stretches_of_training(tmp_path: Path) -> None:
    run = read(tmp_path, "{'epoch': [1, 2, 3], 'loss': [3, 2, 1]}\n{'epoch': [4, 5, 6], 'loss': [6, 5, 4]}\n")
    assert points(run, "loss") == {1: 3, 2: 2, 3: 1, 4: 6, 5: 5, 6: 4}


def test_a_value_that_is_none_was_not_logged(tmp_path: Path) -> None:
    run = read(tmp_path, "{'epoch': [1, 2, 3, 4], 'loss': [3, 2, 1, 0.5], 'val_loss': [None, 2.5, None, 1.5]}\n")
    assert points(run, "eval_loss") == {2: 2.5, 4: 1.5}


@pytest.mark.parametrize(
    "line",
    ["betas = [0.9, 0.95, 0.99]", "{'step': 5, 'rewards': [0.5, 0.1, 0.2]}", "loss: [a, b, c]"],
)
def test_other_lists_are_no_history(line: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no metrics"):
        read(tmp_path, f"{line}\n")


CURVES = {
    "ClearML by metric": {
        "loss": {
            "train": {"name": "train", "x": STEPS, "y": LOSSES},
            "val": {"name": "val", "x": STEPS[::6], "y": EVALUATED[::6]},
        },
        ":monitor:gpu": {"gpu_0_mem_used_gb": {"name": "gpu_0_mem_used_gb", "x": STEPS, "y": [3.5] * 24}},
    },
    "ClearML by phase": {
        "train": {"loss": {"name": "loss", "x": STEPS, "y": LOSSES}},
        "eval": {"loss": {"name": "loss", "x": STEPS[::6], "y": EVALUATED[::6]}},
    },
    "Sacred": {
        "loss": {"steps": STEPS, "timestamps": ["2026-01-01T00:00:00"] * 24, "values": LOSSES},
        "val_loss": {"steps": STEPS[::6], "timestamps": ["2026-01-01T00:00:00"] * 4, "values": EVALUATED[::6]},
    },
    "Plotly": {
        "data": [
            {"type": "scatter", "name": "train", "x": STEPS, "y": LOSSES},
            {"type": "scatter", "name": "val", "x": STEPS[::6], "y": EVALUATED[::6]},
        ],
        "layout": {"title": {"text": "Loss"}},
    },
}  # fmt: skip


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("way", CURVES)
def test_curves_with_steps_of_their_own_stand_at_them(way: str, indent: int | None, tmp_path: Path) -> None:
    run = read(tmp_path, json.dumps(CURVES[way], indent=indent), "scalars.json")
    assert run.step_name == "step"
    assert points(run, "loss") == dict(zip(STEPS, LOSSES, strict=True))
    assert points(run, "eval_loss") == dict(zip(STEPS[::6], EVALUATED[::6], strict=True))
    if way == "ClearML by metric":
        assert points(run, "memory") == dict.fromkeys(STEPS, 3.5)


def test_a_value_of_a_curve_that_failed_is_kept_and_one_without_a_place_is_not(tmp_path: Path) -> None:
    curve = {"x": [1, 2, None, 4], "y": [1.0, "NaN", 3.0, 2.0]}
    (tmp_path / "scalars.json").write_text(json.dumps({"loss": {"train": curve}}), encoding="utf-8")
    loss = read_run(tmp_path / "scalars.json")["loss"]
    assert loss.step.tolist() == [1, 2, 4]
    assert loss.value.tolist() == pytest.approx([1, math.nan, 2], nan_ok=True)
