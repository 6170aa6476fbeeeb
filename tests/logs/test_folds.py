"""The folds of a cross-validation in one log are no attempts: each is listed with how far it came."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.logs.reading import points, read

from mldebug_mcp import diagnose_run
from mldebug_mcp.logs import read_run

FOLDS, EPOCHS = 6, 8


def _loss(fold: int, epoch: int) -> float:
    return 2.5 / epoch + fold / 8


def _epoch(fold: int, epoch: int) -> str:
    return f"Epoch {epoch}/{EPOCHS} - loss: {_loss(fold, epoch)} - val_loss: {_loss(fold, epoch) + 0.25}\n"


def _text(heading: Callable[[int], str], before: Callable[[int], str] = lambda _: "") -> str:
    return "".join(
        heading(fold) + "".join(before(fold) + _epoch(fold, epoch) for epoch in range(1, EPOCHS + 1))
        for fold in range(FOLDS)
    )


TEXTS = {
    "heading": _text(lambda fold: f"--- fold {fold + 1} of {FOLDS} ---\n"),
    "sentence": _text(lambda fold: f"2024-05-01 10:00:00 INFO Training on Fold #{fold}\nbuilding the model\n"),
    "summary": _text(lambda fold: f"Fold {fold}: val_loss 0.9\n" * bool(fold) + f"FOLD {fold + 1}\n"),
    "record": _text(lambda _: "", lambda fold: f"[Fold {fold + 1}/{FOLDS}] "),
    "table": "fold,epoch,loss,val_loss\n"
    + "".join(
        f"{fold},{epoch},{_loss(fold, epoch)},{_loss(fold, epoch) + 0.25}\n"
        for fold in range(FOLDS)
        for epoch in range(1, EPOCHS + 1)
    ),
}


@pytest.mark.parametrize("style", TEXTS)
def test_folds_are_listed_as_folds(style: str, tmp_path: Path) -> None:
    name = "log.csv" if style == "table" else "train.log"
    run = read(tmp_path, TEXTS[style], name)
    assert [attempt.records for attempt in run.attempts] == [EPOCHS] * FOLDS
    assert all(attempt.is_fold for attempt in run.attempts)
    assert points(run, "loss") == {epoch: _loss(FOLDS - 1, epoch) for epoch in range(1, EPOCHS + 1)}
    second = read_run(tmp_path / name, run="fold 2")
    assert points(second, "eval_loss") == {epoch: _loss(1, epoch) + 0.25 for epoch in range(1, EPOCHS + 1)}


def test_each_fold_that_reached_its_plan_has_finished_and_what_is_not_shown_is_counted(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(TEXTS["heading"])
    answer = diagnose_run(tmp_path / "train.log")
    listed = next(line for line in answer.sheet.ran if "folds in the log" in line)
    assert listed.startswith("6 folds in the log: ")
    assert listed.count("(finished: epoch 8 of 8)") == 4
    assert listed.endswith("2 more, before these")
    assert any("the log holds 6 folds" in note and "1 before these" in note for note in answer.notes)


def test_a_run_that_begins_its_folds_again_has_attempts(tmp_path: Path) -> None:
    text = "".join(
        f"=== Fold {fold} ===\n" + "".join(_epoch(fold, epoch) for epoch in range(1, 5)) for fold in (1, 2, 1, 2, 3)
    )
    run = read(tmp_path, text)
    assert len(run.attempts) == 5
    assert not any(attempt.is_fold for attempt in run.attempts)
    assert [attempt.ending.how for attempt in run.attempts[:-1]] == ["open"] * 4
