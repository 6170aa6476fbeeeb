"""What a recorder does with tensors whose numbers are on a device, tried on a CPU that answers as late as a device."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mldebug_mcp import diagnose_run
from mldebug_mcp.models import State

pytest.importorskip("torch")

import torch
from torch import Tensor, nn

from mldebug_mcp.recorder import Recorder, late
from tests.recorder.loops import classifier, events, steps, train

LOST_AT = 30


class Arrival:
    """An event of a device: it has come when it was asked for often enough."""

    def __init__(self) -> None:
        self.asked = 0

    def query(self) -> bool:
        self.asked += 1
        return self.asked > 2

    def synchronize(self) -> None:
        self.asked = 3


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no tensor be read in the loop, and numbers arrive late."""
    send = late._sent_off
    for module in ("late", "watched"):
        monkeypatch.setattr(f"mldebug_mcp.recorder.{module}.is_here", lambda _tensor: False)
    monkeypatch.setattr(late, "_sent_off", lambda tensors: (send(tensors)[0], Arrival()))


class Calls(nn.Module):
    """Does something else from its thirtieth call on."""

    def __init__(self, change: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.change, self.calls = change, 0

    def forward(self, inputs: Tensor) -> Tensor:
        self.calls += 1
        return self.change(inputs) if self.calls >= LOST_AT else inputs


class Branches(nn.Module):
    """Two branches, of which the second one loses its values in the sum over them."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(16, 16), nn.Sequential(nn.Linear(16, 16), Calls(lambda one: one / 0))

    def forward(self, inputs: Tensor) -> Tensor:
        found: Tensor = self.left(inputs) + self.right(inputs)
        return found


class Broken(torch.autograd.Function):
    """Gives its input back, and a gradient that is not finite."""

    @staticmethod
    def forward(_context: object, inputs: Tensor) -> Tensor:
        return inputs.clone()

    @staticmethod
    def backward(_context: object, gradient: Tensor) -> Tensor:
        return gradient * math.nan


def around(middle: nn.Module) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 16), middle, nn.Linear(16, 4))


def give_up(monkeypatch: pytest.MonkeyPatch, *, most_sent: int) -> None:
    """Let no number arrive before the recording is closed, and copies be given up of which more are on their way."""
    monkeypatch.setattr(late, "MOST_SENT", most_sent)
    monkeypatch.setattr(late, "SEND_EVERY", 0.0)
    monkeypatch.setattr(Arrival, "query", lambda _arrival: False)


def lost(path: Path, model: nn.Module, **options: Any) -> dict[str, Any]:
    """Train with a recorder and return the first event of values that are not finite."""
    with Recorder(path) as recorder:
        train(recorder, model, epochs=5, **options)
    return events(recorder.path)["nonfinite"]


@pytest.mark.parametrize("clip", [0.0, 1.0])
def test_the_module_where_values_were_lost_is_named_though_an_update_has_spoilt_the_weights(
    tmp_path: Path, clip: float
) -> None:
    event = lost(tmp_path, around(Calls(lambda one: one / 0)), clip=clip)

    assert (event["step"], event["began"]["outputs"]) == (LOST_AT, ["1"])
    present = {one.symptom for one in diagnose_run(tmp_path).findings if one.state is State.PRESENT}
    assert "nonfinite_in_forward" in present


def test_the_innermost_module_of_a_branch_is_named_first(tmp_path: Path) -> None:
    event = lost(tmp_path, around(Branches()))

    assert event["began"]["outputs"] == ["1.right.1", "1.right", "1"]


@pytest.mark.parametrize("clip", [0.0, 1.0])
@pytest.mark.parametrize("most_sent", [0, 21, 60])
def test_no_module_is_named_where_values_of_a_step_were_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_sent: int, clip: float
) -> None:
    give_up(monkeypatch, most_sent=most_sent)
    with Recorder(tmp_path) as recorder:
        train(recorder, around(Branches()), epochs=5, clip=clip)

    event = events(recorder.path).get("nonfinite", {})
    is_complete = most_sent > 50
    assert [one["step"] for one in steps(recorder.path)] == list(range(1, 51))
    assert ("train/loss" in steps(recorder.path)[0]) is is_complete
    assert event.get("began", {}).get("outputs") == (["1.right.1", "1.right", "1"] if is_complete else None)
    assert is_complete or not event or event["note"].startswith("where it began is not known")


@pytest.mark.parametrize("lost_at", [1, 30, 31])
def test_no_module_is_named_behind_one_copy_that_never_arrives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost_at: int
) -> None:
    monkeypatch.setattr(late, "SEND_EVERY", 0.0)
    take = late.Late._look

    def look(self: late.Late, draft: late.Draft, *, there: bool) -> None:
        take(self, draft, there=there and draft.values["step"] != lost_at)

    monkeypatch.setattr(late.Late, "_look", look)
    event = lost(tmp_path, around(Branches()))

    assert event["step"] == LOST_AT
    if lost_at > LOST_AT:
        assert event["began"]["outputs"] == ["1.right.1", "1.right", "1"]
    else:
        assert "began" not in event
        assert any("where it began is not known" in str(one) for one in diagnose_run(tmp_path).sheet.events)
        present = {one.symptom for one in diagnose_run(tmp_path).findings if one.state is State.PRESENT}
        assert not {one for one in present if one.startswith("nonfinite_in")}


def test_gradients_of_an_update_that_nobody_clips_are_named_before_the_modules_that_they_spoil(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late.Budget, "allows", lambda *_: False)  # not even the norm of all gradients can be afforded
    event = lost(tmp_path, around(Calls(Broken.apply)), clip=0.0)

    assert (event["step"], event["began"]) == (LOST_AT, {"gradients": ["0"]})


@pytest.mark.parametrize("is_watched", [True, False])
def test_no_module_is_named_where_updates_are_not_seen(tmp_path: Path, *, is_watched: bool) -> None:
    model = around(Calls(Broken.apply))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with Recorder(tmp_path) as recorder:
        recorder.watch(model, optimizer if is_watched else None)
        for _ in range(LOST_AT + 3):
            with recorder.step():
                loss = nn.functional.cross_entropy(model(torch.randn(8, 16)), torch.zeros(8, dtype=torch.long))
                optimizer.zero_grad()
                torch.autograd.backward(loss)
                recorder.log(loss=loss)
            optimizer.step()

    assert "began" not in events(recorder.path)["nonfinite"]


def test_a_model_of_many_modules_is_followed_block_by_block(tmp_path: Path) -> None:
    blocks = [nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 16)) for _ in range(12)]
    blocks[7].append(Calls(lambda one: one * math.inf))

    event = lost(tmp_path, around(nn.Sequential(*blocks)))

    assert event["began"]["outputs"] == ["1.7", "1"]


def test_inputs_that_are_not_finite_are_named_and_no_module(tmp_path: Path) -> None:
    event = lost(tmp_path, classifier(), spoil=lambda step, inputs: inputs / (step != 9))

    assert event["step"] == 9
    assert event["began"]["inputs"] == ["0"]
    assert "outputs" not in event["began"]


def test_gradients_that_are_lost_before_the_loss_are_named_at_their_step(tmp_path: Path) -> None:
    event = lost(tmp_path, around(Calls(Broken.apply)))

    assert (event["step"], event["began"]) == (LOST_AT, {"gradients": ["0"]})


def test_a_loss_that_is_lost_behind_the_model_is_told_from_the_model(tmp_path: Path) -> None:
    model = classifier()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with Recorder(tmp_path) as recorder:
        recorder.watch(model, optimizer)
        for step in range(1, 40):
            with recorder.step():
                shares = model(torch.randn(8, 16)).softmax(dim=1)
                loss = -torch.log(shares * (step != LOST_AT)).mean()
                optimizer.zero_grad()
                torch.autograd.backward(loss)
                optimizer.step()
                recorder.log(loss=loss)

    event = events(recorder.path)["nonfinite"]
    assert event["step"] == LOST_AT
    assert not {"inputs", "outputs"} & event["began"].keys()
    present = {one.symptom for one in diagnose_run(tmp_path).findings if one.state is State.PRESENT}
    assert "nonfinite_in_loss" in present


class Scaler:
    """A loss scaler that is at work."""

    def is_enabled(self) -> bool:
        return True

    def get_scale(self) -> float:
        return 1024.0


def test_gradients_that_a_loss_scaler_answers_for_are_no_event(tmp_path: Path) -> None:
    model = classifier()
    with Recorder(tmp_path) as recorder:
        recorder.watch(model, torch.optim.SGD(model.parameters(), 0.1), Scaler())
        for step in range(1, 40):
            with recorder.step():
                loss = nn.functional.cross_entropy(model(torch.randn(8, 16)), torch.zeros(8, dtype=torch.long))
                torch.autograd.backward(loss * (math.inf if step == LOST_AT else 1.0))
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                model.zero_grad()
                recorder.log(loss=loss)

    assert not math.isfinite(steps(recorder.path)[LOST_AT - 1]["grad_norm"])
    assert "nonfinite" not in events(recorder.path)


def test_records_come_in_order_and_with_all_their_values(tmp_path: Path) -> None:
    with Recorder(tmp_path) as recorder:
        losses = train(recorder, classifier())

    records = steps(recorder.path)
    assert [one["step"] for one in records] == list(range(1, len(losses) + 1))
    assert [one["train/loss"] for one in records] == pytest.approx(losses, rel=1e-5)
    assert {"grad_norm", "clip_factor", "grad_norm/0", "update_ratio/0", "learning_rate"} <= records[0].keys()
