"""What a recorder sees of rows, inputs, outputs and the loss, and what a diagnosis makes of it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from mldebug_mcp import diagnose_run, read_run
from mldebug_mcp.models import Finding, State

pytest.importorskip("torch")

import torch
from torch import Tensor, nn

from mldebug_mcp.recorder import Recorder
from tests.recorder.loops import BATCH, classifier, head, loader, steps, train

Loss = Callable[[Tensor, Tensor], Tensor]


def seen(path: Path) -> Mapping[str, Finding]:
    return {one.symptom: one for one in diagnose_run(path).findings if one.state is State.PRESENT}


def trained(path: Path, model: nn.Module, loss: Loss, *, evaluated: Tensor | None = None, show: bool = True) -> Path:
    """Train for three passes, looked into at every step, and return the file."""
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with Recorder(path, every=1) as recorder:
        recorder.watch(model, optimizer)
        if evaluated is not None:
            with torch.no_grad():
                model.eval()(evaluated)
        model.train()
        for _ in range(3):
            for inputs, labels in loader():
                with recorder.step((inputs, labels) if show else None):
                    optimizer.zero_grad()
                    value = loss(model(inputs), labels)
                    torch.autograd.backward(value)
                    optimizer.step()
                    recorder.log(loss=value)
    return recorder.path


def cross_entropy(scores: Tensor, labels: Tensor) -> Tensor:
    return nn.functional.cross_entropy(scores, labels)


def test_the_cross_entropy_of_outputs_and_labels_is_worked_out_beside_the_logged_loss(tmp_path: Path) -> None:
    looks = [one for one in steps(trained(tmp_path, classifier(), cross_entropy)) if "recomputed/once" in one]
    assert len(looks) > 3
    assert all(math.isclose(one["recomputed/once"], one["train/loss"], rel_tol=1e-5) for one in looks)
    assert not seen(tmp_path).keys() & {"loss_multiplied", "softmax_taken_twice", "loss_unlike_outputs"}


def test_a_summed_loss_is_seen_as_a_multiple(tmp_path: Path) -> None:
    trained(tmp_path, classifier(), lambda scores, labels: 8 * cross_entropy(scores, labels))
    assert seen(tmp_path)["loss_multiplied"].values["factor"] == pytest.approx(8, rel=1e-3)


def test_probabilities_that_are_given_to_a_loss_of_logits_are_seen(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 4), nn.Unflatten(1, (4,)))
    with torch.no_grad():
        model[0].weight.mul_(20)  # type: ignore[operator]
    trained(tmp_path, model, lambda scores, labels: cross_entropy(scores.softmax(dim=1), labels))
    assert "softmax_taken_twice" in seen(tmp_path)


def test_labels_that_do_not_count_and_classes_in_the_second_place_are_understood(tmp_path: Path) -> None:
    model, optimizer = nn.Conv1d(1, 3, 1), None
    labels = torch.randint(0, 3, (4, 9))
    labels[:, 4:] = -100
    with Recorder(tmp_path, every=1) as recorder:
        recorder.watch(model, optimizer)
        inputs = torch.randn(4, 1, 9)
        for _ in range(3):
            with recorder.step({"inputs": inputs, "labels": labels}):
                recorder.log(loss=cross_entropy(model(inputs), labels))
    looks = steps(recorder.path)
    assert [one["recomputed/once"] for one in looks] == pytest.approx([one["train/loss"] for one in looks], rel=1e-5)
    assert head(recorder.path)["settings"]["num_classes"] == 3


@pytest.mark.parametrize("batch", [None, torch.zeros(BATCH, 4), (torch.zeros(BATCH, 16), torch.zeros(BATCH, 2))])
def test_without_labels_that_are_whole_numbers_nothing_is_worked_out(tmp_path: Path, batch: Any) -> None:
    model = classifier()
    with Recorder(tmp_path, every=1) as recorder:
        recorder.watch(model)
        with recorder.step(batch):
            recorder.log(loss=model(torch.randn(BATCH, 16)).square().mean())
    assert not any("recomputed/once" in one for one in steps(recorder.path))


def test_labels_out_of_range_break_neither_the_training_nor_the_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = classifier()
    with Recorder(tmp_path, every=1) as recorder:
        recorder.watch(model)
        with recorder.step((torch.randn(BATCH, 16), torch.full((BATCH,), 99))):
            recorder.log(loss=model(torch.randn(BATCH, 16)).mean())
    assert len(steps(recorder.path)) == 1
    assert capsys.readouterr().err == ""


def test_what_the_last_layer_reads_and_the_number_of_classes_are_told(tmp_path: Path) -> None:
    narrow = nn.Sequential(nn.Linear(16, 2), nn.ReLU(), nn.Linear(2, 4))
    settings = head(trained(tmp_path, narrow, cross_entropy))["settings"]
    assert (settings["features"], settings["num_classes"]) == (2, 4)
    assert "features_few" in seen(tmp_path)


@pytest.mark.parametrize(("scale", "expected"), [(1.0, False), (5.0, True)])
def test_inputs_of_evaluation_on_another_scale_are_seen(tmp_path: Path, scale: float, *, expected: bool) -> None:
    evaluated = scale * torch.randn(64, 16, generator=torch.Generator().manual_seed(1))
    trained(tmp_path, classifier(), cross_entropy, evaluated=evaluated, show=False)
    assert ("inputs_differ" in seen(tmp_path)) is expected


def test_a_batch_of_zeros_is_odd(tmp_path: Path) -> None:
    with Recorder(tmp_path) as recorder:
        train(recorder, classifier(), spoil=lambda step, inputs: inputs * (step != 17))
    assert seen(tmp_path)["inputs_odd"].steps == [17]


def test_inputs_that_are_not_finite_have_no_spread(tmp_path: Path) -> None:
    with Recorder(tmp_path) as recorder:
        train(recorder, classifier(), spoil=lambda step, inputs: inputs / (step != 9))
    assert "inputs_spread" not in steps(recorder.path)[8]
    assert "inputs_spread" in steps(recorder.path)[7]


@pytest.mark.parametrize(("momentum", "expected"), [(0.1, False), (0.0, True)])
def test_running_statistics_that_never_follow_are_seen(tmp_path: Path, momentum: float, *, expected: bool) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32, momentum=momentum), nn.Linear(32, 4))
    with torch.no_grad():
        model[0].weight.mul_(4)  # type: ignore[operator]
    trained(tmp_path, model, cross_entropy)
    assert ("running_statistics_stale" in seen(tmp_path)) is expected


def test_tokens_have_neither_a_spread_nor_another_scale(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Embedding(50, 8), nn.Linear(8, 50))
    with Recorder(tmp_path, every=1) as recorder:
        recorder.watch(model)
        with torch.no_grad():
            model.eval()(torch.zeros(8, 40, dtype=torch.long))
        model.train()
        for _ in range(3):
            tokens = torch.randint(0, 50, (8, 40))
            with recorder.step({"input_ids": tokens, "labels": tokens}):
                recorder.log(loss=cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()))
    assert all(not {"inputs_spread", "inputs_apart"} & one.keys() for one in steps(recorder.path))


def resumed(path: Path, rows: Callable[[int], int], *, second: int = 31) -> None:
    """Make thirty steps and, in another process, thirty more from a step on; of each step its one row."""
    for first, steps_made in ((1, range(1, 31)), (second, range(second, second + 30))):
        with Recorder(path) as recorder:
            for number in steps_made:
                recorder.begin(number=number)
                recorder.take_batch(torch.tensor([[rows(number if first == 1 else number + 1000)]]))
                recorder.log(loss=2 / math.sqrt(number))
                recorder.end()


def test_a_process_that_goes_on_is_a_resume_and_rows_that_start_over_there_are_seen(tmp_path: Path) -> None:
    resumed(tmp_path, lambda number: number if number < 1000 else number - 1030)
    assert read_run(tmp_path).resumes == (31,)
    finding = seen(tmp_path)["rows_come_again"]
    assert finding.steps == [31]
    assert finding.values["distance"] == 30


def test_rows_that_go_on_behind_a_resume_are_new(tmp_path: Path) -> None:
    resumed(tmp_path, lambda number: number)
    assert read_run(tmp_path)["row_again"].value.max() == 0
    assert "rows_come_again" not in seen(tmp_path)


def test_lost_steps_that_are_made_again_are_no_rows_that_start_over(tmp_path: Path) -> None:
    resumed(tmp_path, lambda number: number % 1000, second=21)
    assert "rows_come_again" not in seen(tmp_path)


def test_a_second_training_that_begins_at_the_first_step_is_no_resume(tmp_path: Path) -> None:
    resumed(tmp_path, lambda number: number, second=1)
    assert read_run(tmp_path).resumes == ()


def test_a_recording_that_lists_no_rows_for_a_step_is_read(tmp_path: Path) -> None:
    records = [{"step": one, "rows": [], "train/loss": 1 / one} for one in range(1, 9)]
    lines = [json.dumps(one) for one in ({"recorder": 1, "time": 1.0}, *records)]
    (tmp_path / "recorder.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert "row_again" not in read_run(tmp_path)


def test_a_loop_that_never_clears_gradients_is_named_with_what_is_left_of_earlier_updates(tmp_path: Path) -> None:
    path = updated(tmp_path, clears=False)
    finding = seen(path)["gradients_kept"]
    assert finding.steps == [2]
    assert "gradients are not zero before the backward pass" in finding.summary
    assert diagnose_run(path).hypotheses[0].cause == "missing_zero_grad"


@pytest.mark.parametrize("loop", ["accumulates", "sets zeros", "has another backward pass in between"])
def test_a_loop_that_clears_gradients_once_between_updates_is_none_that_keeps_them(tmp_path: Path, loop: str) -> None:
    path = updated(tmp_path, clears=True, loop=loop)
    states = {one.symptom: one.state for one in diagnose_run(path).findings}
    assert states["gradients_kept"] is State.ABSENT


def updated(path: Path, *, clears: bool, loop: str = "") -> Path:
    """Train for thirty steps and return the file."""
    torch.manual_seed(0)
    model = classifier()
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    with Recorder(path, every=1) as recorder:
        recorder.watch(model, optimizer)
        batches = [one for _ in range(30) for one in loader()][:30]
        for inputs, labels in batches:
            with recorder.step():
                if clears:
                    optimizer.zero_grad(set_to_none=loop != "sets zeros")
                for _ in range(3 if loop == "accumulates" else 1):
                    value = cross_entropy(model(inputs), labels)
                    torch.autograd.backward(value)
                optimizer.step()
                if loop == "has another backward pass in between":
                    torch.autograd.backward(cross_entropy(model(inputs), labels))
                recorder.log(loss=value)
    return recorder.path
