from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import Curve, decay, run_of, state

NAME = "held_out_sets_part"
AT = range(10, 201, 20)


def curve(first: float, last: float) -> dict[int, float]:
    return dict(zip(AT, np.geomspace(first, last, len(AT)), strict=True))


def test_a_validation_that_follows_training_while_the_test_does_not_is_present() -> None:
    curves: dict[str, Curve] = {
        "loss": decay(200, 1.6, 0.001),
        "val_loss": curve(0.8, 0.001),
        "test_loss": curve(0.95, 1.2),
    }
    run = run_of(curves, kind="supervised")
    assert state(NAME, run) is State.PRESENT


@pytest.mark.parametrize("test", [curve(0.9, 0.0015), curve(4.0, 0.004)], ids=["alike", "on another scale"])
def test_sets_that_go_the_same_way_are_not(test: dict[int, float]) -> None:
    run = run_of({"loss": decay(200, 1.6, 0.001), "val_loss": curve(0.8, 0.001), "test_loss": test}, kind="supervised")
    assert state(NAME, run) is State.ABSENT


@pytest.mark.parametrize(("web", "news"), [("train_loss_web", "train_loss_news")])
def test_rows_of_a_kind_that_training_knows_no_better_are_only_harder(web: str, news: str) -> None:
    def told(of_training: float) -> State:
        curves: dict[str, Curve] = {
            "loss": decay(200, 2.0, 0.6),
            web: decay(200, 2.0, of_training),
            news: decay(200, 2.0, 0.3),
            f"eval_{web.replace('train_', '')}": curve(2.0, 1.7),
            f"eval_{news.replace('train_', '')}": curve(1.9, 0.3),
        }
        return state(NAME, run_of(curves, kind="supervised"))

    assert told(1.5) is not State.PRESENT
    assert told(0.4) is State.PRESENT


def test_both_far_above_training_is_overfitting() -> None:
    run = run_of({"loss": decay(200, 1.6, 0.001), "val_loss": curve(0.8, 0.4), "test_loss": curve(0.9, 1.4)})
    assert state(NAME, run) is State.ABSENT


def test_one_set_alone_cannot_tell() -> None:
    assert state(NAME, run_of({"loss": decay(200), "val_loss": curve(3.0, 1.0)})) is State.UNKNOWN


def test_two_kinds_of_rows_of_one_set_are_no_two_sets() -> None:
    text, digits = curve(2.0, 0.28), curve(3.0, 2.8)
    whole = {step: 0.6 * text[step] + 0.4 * digits[step] for step in AT}
    curves: dict[str, Curve] = {
        "loss": decay(200, 3.0, 1.2),
        "val_loss": whole,
        "val_loss_a": text,
        "val_loss_b": digits,
    }
    assert state(NAME, run_of(curves, kind="supervised")) is State.UNKNOWN


@pytest.mark.parametrize(
    ("name", "course"),
    [("ema_val_loss", curve(0.8, 0.8)), ("val_loss_swa", curve(0.8, 0.7)), ("test_loss", curve(0.8, 0.8))],
    ids=["an average that stands still", "an average that lags", "a column that never moves"],
)
def test_averaged_weights_and_what_never_moves_are_no_second_set(name: str, course: dict[int, float]) -> None:
    curves: dict[str, Curve] = {"loss": decay(200, 1.6, 0.001), "val_loss": curve(0.8, 0.001), name: course}
    assert state(NAME, run_of(curves, kind="supervised")) is State.UNKNOWN
