"""JSON documents of loops of one's own, which nest the records of a run, its settings and other runs as they like."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.logs.reading import points

from mldebug_mcp.logs import Run, read_run

LOSS = {float(step): round(2 - step / 50, 3) for step in range(5, 65, 5)}
EVALUATED = {float(step): round(2.1 - step / 60, 3) for step in range(20, 80, 20)}
RATE = 0.05
SETTINGS: dict[str, object] = {"lr": RATE, "batch_size": 16, "optimizer": "sgd", "features": 4, "reference_acc": 0.9}
TRAIN: list[dict[str, object]] = [
    {"step": step, "scores": {"loss": loss}, "optim": {"grad_norm": 1.5}} for step, loss in LOSS.items()
]
VALID: list[dict[str, object]] = [{"step": step, "scores": {"loss": loss}} for step, loss in EVALUATED.items()]
BY_PHASE: dict[str, object] = {"train": TRAIN, "val": VALID}
COLUMNS: dict[str, object] = {
    "train": {"step": list(LOSS), "loss": list(LOSS.values())},
    "val": {"step": list(EVALUATED), "loss": list(EVALUATED.values())},
}
DOCUMENTS: dict[str, object] = {
    "phases below a history": {"run": {"id": "a1", "config": SETTINGS}, "history": BY_PHASE},
    "two levels deeper": {"experiment": {"meta": {"hparams": SETTINGS}, "results": {"logs": BY_PHASE}}},
    "at the top": {"settings": SETTINGS, **BY_PHASE},
    "constants at the top": {**SETTINGS, "logs": BY_PHASE},
    "other names": {"params": SETTINGS, "train_steps": TRAIN, "eval_steps": VALID},
    "a word for evaluations": {"config": SETTINGS, "history": {"steps": TRAIN, "evaluations": VALID}},
    "columns below a history": {"run": {"config": SETTINGS}, "history": COLUMNS},
    "points of each metric": {
        "config": SETTINGS,
        "metrics": {
            "train_loss": [{"step": step, "value": loss} for step, loss in LOSS.items()],
            "val_loss": [{"step": step, "value": loss} for step, loss in EVALUATED.items()],
        },
    },
    "pairs of each metric": {
        "config": SETTINGS,
        "metrics": {"train": {"loss": list(LOSS.items())}, "val": {"loss": list(EVALUATED.items())}},
    },
    "records of one metric": {
        "config": SETTINGS,
        "log": {
            "entries": [
                {"metric": name, "step": step, "value": loss}
                for name, values in (("train_loss", LOSS), ("val_loss", EVALUATED))
                for step, loss in values.items()
            ]
        },
    },
    "records by their step": {
        "config": SETTINGS,
        "history": {
            name: {f"{step:.0f}": {"loss": loss} for step, loss in values.items()}
            for name, values in (("train", LOSS), ("val", EVALUATED))
        },
    },
    "lists that hold no records": {
        "config": SETTINGS | {"layers": [{"size": 8}, {"size": 4}]},
        "checkpoints": [{"step": 20, "path": "a"}, {"step": 40, "path": "b"}],
        "best": {"step": 60, "val_loss": 1.1},
        "history": BY_PHASE,
    },
}


def _read(folder: Path, document: object, indent: int | None = 1, run: str = "") -> Run:
    path = folder / "history.json"
    path.write_text(json.dumps(document, indent=indent))
    return read_run(path, run=run)


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("form", DOCUMENTS)
def test_records_and_settings_are_found_at_any_depth_of_a_document(
    form: str, indent: int | None, tmp_path: Path
) -> None:
    run = _read(tmp_path, DOCUMENTS[form], indent)
    assert (run.step_name, len(run.segments)) == ("step", 1)
    assert points(run, "loss") == LOSS
    assert points(run, "eval_loss") == EVALUATED
    assert run.settings["learning_rate"].value == RATE
    assert run.settings["per_device_train_batch_size"].value == 16
    assert not any("batch_size" in name or "reference" in name for name in run.series)


def test_lists_without_counters_are_laid_side_by_side(tmp_path: Path) -> None:
    losses = [3.0, 2.5, 2.0, 1.5]
    run = _read(tmp_path, {"logs": {"train": [{"loss": one} for one in losses], "val": [{"loss": 2.7}, {"loss": 1.7}]}})
    assert run["loss"].value.tolist() == losses
    assert run["eval_loss"].value.tolist() == [2.7, 1.7]
    assert run["eval_loss"].step[-1] >= run["loss"].step[-1]


@pytest.mark.parametrize("is_list", [True, False])
def test_a_document_of_several_runs_gives_the_one_that_was_asked_for(is_list: bool, tmp_path: Path) -> None:
    runs = [
        {"name": name, "config": {**SETTINGS, "lr": rate}, "history": {"train": TRAIN[:records], "val": VALID}}
        for name, rate, records in (("wide", RATE, 12), ("deep", 0.2, 6))
    ]
    document = {"runs": runs if is_list else {str(run["name"]): run for run in runs}}
    longest, other = _read(tmp_path, document), _read(tmp_path, document, run="deep")
    assert (points(longest, "loss"), longest.settings["learning_rate"].value) == (LOSS, RATE)
    assert (len(other["loss"]), other.settings["learning_rate"].value) == (6, 0.2)
    assert any("longest of 2 runs" in note for note in longest.notes)
