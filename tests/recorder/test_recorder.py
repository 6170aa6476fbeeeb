from __future__ import annotations

import copy
import math
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mldebug_mcp import diagnose_run, read_run
from mldebug_mcp.models import State

pytest.importorskip("torch")

import torch
from torch import Tensor, nn

from mldebug_mcp.recorder import Recorder
from tests.recorder.loops import BATCH, ROWS, classifier, events, head, lines, loader, steps, train


def test_every_step_is_recorded_with_what_the_loop_did(tmp_path: Path) -> None:
    with Recorder(tmp_path) as recorder:
        losses = train(recorder, classifier())
    records = steps(recorder.path)
    assert [one["step"] for one in records] == list(range(1, len(losses) + 1))
    assert [one["train/loss"] for one in records] == pytest.approx(losses, rel=1e-5)
    first = records[0]
    assert first["learning_rate"] == 1e-2
    assert first["time/step_s"] >= first["time/forward_s"] + first["time/backward_s"] + first["time/optimizer_s"]
    assert {"time/data_s", "timestamp", "grad_norm", "clip_factor"} <= first.keys()


def test_the_gradient_norm_is_that_before_clipping_and_no_second_one_is_worked_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    norms: list[float] = []
    clip = nn.utils.clip_grad_norm_

    def told(*args: object) -> object:
        norms.append(float(clip(*args)))  # type: ignore[arg-type]
        return norms[-1]

    monkeypatch.setattr(nn.utils, "clip_grad_norm_", told)
    monkeypatch.setattr("mldebug_mcp.recorder.watched._total_norm", lambda _gradients: pytest.fail("a second norm"))
    with Recorder(tmp_path) as recorder:
        train(recorder, classifier(), clip=0.1)
    records = steps(recorder.path)
    assert [one["grad_norm"] for one in records] == pytest.approx(norms, rel=1e-5)
    assert [one["clip_factor"] for one in records] == pytest.approx(
        [min(1.0, 0.1 / (norm + 1e-6)) for norm in norms], rel=1e-4
    )
    assert head(recorder.path)["settings"]["max_grad_norm"] == 0.1


def test_without_clipping_the_norm_is_worked_out_before_the_optimizer(tmp_path: Path) -> None:
    with Recorder(tmp_path) as recorder:
        train(recorder, classifier(), clip=0.0)
    assert all(one["grad_norm"] > 0 for one in steps(recorder.path)[:3])
    assert "clip_factor" not in steps(recorder.path)[0]


def test_training_is_the_same_with_and_without_a_recorder(tmp_path: Path) -> None:
    with Recorder(tmp_path / "often", every=1) as often, Recorder(tmp_path / "seldom", every=1000) as seldom:
        assert train(often, classifier()) == train(seldom, classifier())


def test_the_model_is_looked_into_layer_by_layer(tmp_path: Path) -> None:
    with Recorder(tmp_path, every=10) as recorder:
        train(recorder, classifier(activation=nn.Tanh))
    looked = [one for one in steps(recorder.path) if "grad_norm/0" in one]
    assert looked[0]["step"] == 1
    assert 2 <= len(looked) <= 4
    for one in looked:
        parts = [one[f"grad_norm/{layer}"] for layer in (0, 2, 4)]
        assert math.hypot(*parts) == pytest.approx(one["grad_norm"], rel=1e-4)
        assert 0 < one["update_ratio/2"] < 1
        assert 0 <= one["saturated_units/1"] <= 1
        assert 0 < one["entropies/output"] <= math.log(4) + 1e-5


def test_units_that_are_dead_for_every_row_are_counted(tmp_path: Path) -> None:
    model = classifier(depth=1)
    with torch.no_grad():
        model[0].get_parameter("bias")[:4] = -1e3
    with Recorder(tmp_path) as recorder:
        train(recorder, model, epochs=1)
    assert steps(recorder.path)[0]["units_dead/1"] >= 4 / 16


@pytest.mark.parametrize("workers", [0, 2])
def test_rows_are_the_indices_that_the_sampler_drew(tmp_path: Path, workers: int) -> None:
    batches = loader(workers=workers)
    data = batches.dataset.tensors[0]  # type: ignore[attr-defined]
    with Recorder(tmp_path) as recorder:
        given = [inputs for _ in range(2) for inputs, _ in recorder.steps(batches)]
    records = steps(recorder.path)
    assert len(records) == 2 * ROWS // BATCH
    assert all(torch.equal(data[one["rows"]], inputs) for one, inputs in zip(records, given, strict=True))
    assert head(recorder.path)["rows_kind"] == "index"
    assert head(recorder.path)["data_length"] == ROWS
    assert head(recorder.path)["sampler"]["kind"] == "torch.RandomSampler"


def test_rows_of_numbers_have_one_key_each_in_whichever_batch_they_are(tmp_path: Path) -> None:
    images = (torch.rand(2000, 8, 8, generator=torch.Generator().manual_seed(0)) > 0.5).float()
    with Recorder(tmp_path) as recorder:
        for given in (images, images[500:], images[7:8]):
            batch = given.clone()
            with recorder.step(batch):
                batch *= 2  # what the loop does with its batch changes no key
    whole, later, alone = (one["rows"] for one in steps(recorder.path))
    assert len(set(whole)) == len({tuple(image.flatten().tolist()) for image in images}) == 2000
    assert all(len(row) == 16 for row in whole)
    assert (later, alone) == (whole[500:], [whole[7]])


@pytest.mark.parametrize("buffers", [1, 3])
def test_rows_of_a_loader_that_uses_its_buffers_again_have_the_keys_that_they_had(tmp_path: Path, buffers: int) -> None:
    batches = torch.randn(20, 4, 8)
    memory = [batch.numpy().copy() for batch in batches[:buffers]]
    found = []
    for reuses in (True, False):
        with Recorder(tmp_path / str(reuses)) as recorder:
            for number, batch in enumerate(batches):
                memory[number % buffers][:] = batch.numpy()
                with recorder.step(torch.from_numpy(memory[number % buffers]) if reuses else batch):
                    memory[number % buffers] *= 2
        found.append([step["rows"] for step in steps(recorder.path)])
    assert found[0] == found[1]


def test_rows_of_one_token_each_have_keys_where_a_mask_is_given(tmp_path: Path) -> None:
    with Recorder(tmp_path) as recorder, recorder.step({"x": torch.arange(5), "attention_mask": torch.ones(5)}):
        pass
    assert len(set(steps(recorder.path)[0]["rows"])) == 5


@pytest.mark.parametrize("kind", [Tensor.to_sparse, Tensor.to_mkldnn])
def test_batches_of_a_kind_that_has_no_array_are_recorded_without_rows(
    tmp_path: Path, kind: Callable[[Tensor], Tensor]
) -> None:
    with Recorder(tmp_path) as recorder:
        for _ in range(3):
            with recorder.step(kind(torch.randn(4, 20))):
                recorder.log(loss=1.0)
    assert [("time/step_s" in step, "rows" in step, "num_tokens" in step) for step in steps(recorder.path)] == [
        (True, False, False)
    ] * 3


def test_how_much_the_inputs_vary_is_recorded_of_every_step_of_a_fast_loop(tmp_path: Path) -> None:
    fed: list[float] = []

    def look(_step: int, inputs: Tensor) -> Tensor:
        fed.append(inputs.std().item())
        return inputs

    with Recorder(tmp_path) as recorder:
        train(recorder, classifier(), epochs=10, spoil=look)
    assert [one["inputs_spread"] for one in steps(recorder.path)] == pytest.approx(fed, rel=1e-5)


def test_a_hook_that_fails_is_left_out_alone_and_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise TypeError("no such gradient")

    monkeypatch.setattr("mldebug_mcp.recorder.watched._total_norm", fail)
    with Recorder(tmp_path) as recorder:
        losses = train(recorder, classifier(), clip=0.0)
    records = steps(recorder.path)
    assert capsys.readouterr().err.count("no such gradient") == 1
    assert len(records) == len(losses)
    assert all({"time/forward_s", "learning_rate", "inputs_spread"} <= one.keys() for one in records)


def test_rows_of_a_loader_without_a_sampler_are_known_by_their_tokens(tmp_path: Path) -> None:
    padded = {"input_ids": torch.tensor([[5, 6, 0], [5, 6, 7]]), "attention_mask": torch.tensor([[1, 1, 0], [1, 1, 1]])}
    alone = {"input_ids": torch.tensor([[5, 6]]), "attention_mask": torch.tensor([[1, 1]])}
    with Recorder(tmp_path) as recorder:
        for _ in recorder.steps([padded, alone]):
            pass
    first, second = steps(recorder.path)
    assert first["rows"][0] == second["rows"][0] != first["rows"][1]
    assert all(len(row) == 16 for row in first["rows"])
    assert head(recorder.path)["rows_kind"] == "hash"
    assert (first["num_tokens"], second["num_tokens"]) == (5, 7)


def test_a_step_of_accumulated_batches_has_all_their_rows_and_the_mean_of_their_losses(tmp_path: Path) -> None:
    with Recorder(tmp_path) as recorder:
        for number, _ in enumerate(recorder.steps(loader(), accumulation=4)):
            recorder.log(loss=float(number))
    records = steps(recorder.path)
    assert [len(one["rows"]) for one in records] == [128, 128, 64]
    assert [one["train/loss"] for one in records] == [1.5, 5.5, 8.5]


def test_a_spike_saves_its_batch_and_has_the_model_looked_into(tmp_path: Path) -> None:
    with Recorder(tmp_path, every=1000) as recorder:
        train(recorder, classifier(), epochs=5, spoil=lambda step, inputs: inputs * (40 if step == 41 else 1))
    event = events(recorder.path)["spike"]
    assert event["step"] == 41
    saved = torch.load(tmp_path / event["batch"], weights_only=True)
    assert saved["inputs"].shape == (BATCH, 16)
    assert saved["labels"].shape == (BATCH,)
    assert "grad_norm/0" in steps(recorder.path)[41]


class Bad(nn.Module):
    """Divides by zero from its thirtieth call on."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(16, 16)
        self.calls = 0

    def forward(self, inputs: Tensor) -> Tensor:
        self.calls += 1
        found: Tensor = self.inner(inputs)
        return found / (0.0 if self.calls >= 30 else 1.0)


def test_the_module_where_values_that_are_not_finite_began_is_named(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 16), Bad(), nn.Linear(16, 4))
    with Recorder(tmp_path) as recorder:
        train(recorder, model, epochs=5)
    event = events(recorder.path)["nonfinite"]
    assert event["step"] == 30
    assert event["began"]["outputs"] == ["1"]
    assert math.isnan(event["value"])
    said = [str(one) for one in diagnose_run(tmp_path).sheet.events]
    assert any("outputs of 1" in one for one in said), said


class Broken(torch.autograd.Function):
    """Gives its input back, and a gradient that is not finite from its thirtieth call on."""

    calls = 0

    @staticmethod
    def forward(_context: object, inputs: Tensor) -> Tensor:
        Broken.calls += 1
        return inputs.clone()

    @staticmethod
    def backward(_context: object, gradient: Tensor) -> Tensor:
        return gradient * (math.inf if Broken.calls >= 30 else 1.0)


class Backward(nn.Module):
    def forward(self, inputs: Tensor) -> Tensor:
        found: Tensor = Broken.apply(inputs)  # type: ignore[no-untyped-call]
        return found


def test_gradients_that_are_lost_before_the_loss_are_told_at_their_step(tmp_path: Path) -> None:
    torch.manual_seed(0)
    with Recorder(tmp_path) as recorder:
        train(recorder, nn.Sequential(nn.Linear(16, 16), Backward(), nn.Linear(16, 4)), epochs=5)
    event = events(recorder.path)["nonfinite"]
    assert event["step"] == 30
    assert event["began"] == {"gradients": ["0"]}
    seen = {one.symptom: one for one in diagnose_run(tmp_path).findings if one.state is State.PRESENT}
    assert "gradients are first not finite (module 0)" in seen["nonfinite_in_backward"].summary


def test_an_exception_in_a_step_is_recorded_and_goes_on(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    with pytest.raises(RuntimeError, match="CUDA out of memory"), recorder.step():
        raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB")
    recorder.close()
    assert events(recorder.path)["exception"]["error"].startswith("RuntimeError: CUDA out of memory")


def test_the_scale_of_a_loss_scaler_and_its_skipped_steps_are_recorded(tmp_path: Path) -> None:
    class Scaler:
        scale = 1024.0

        def is_enabled(self) -> bool:
            return True

        def get_scale(self) -> float:
            return self.scale

    model, scaler = classifier(), Scaler()
    with Recorder(tmp_path) as recorder:
        recorder.watch(model, torch.optim.SGD(model.parameters(), 0.1), scaler)
        for number in range(4):
            with recorder.step():
                scaler.scale = 512.0 if number == 2 else scaler.scale
    assert [one["loss_scale"] for one in steps(recorder.path)] == [1024, 1024, 512, 512]
    assert [one["skipped_steps"] for one in steps(recorder.path)] == [0, 0, 1, 1]


def test_a_loss_of_log_zero_under_a_loss_scaler_is_no_sure_overflow(tmp_path: Path) -> None:
    class Scaler:
        scale = 65536.0

        def is_enabled(self) -> bool:
            return True

        def get_scale(self) -> float:
            return self.scale

    model, scaler = classifier(), Scaler()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with Recorder(tmp_path, settings={"fp16": True}) as recorder:
        recorder.watch(model, optimizer, scaler)
        for step in range(1, 90):
            with recorder.step():
                shares = model(torch.randn(8, 16)).softmax(dim=1)
                loss = -(shares * torch.log(shares * (step < 60))).mean()
                optimizer.zero_grad()
                torch.autograd.backward(loss)
                if step < 60:
                    optimizer.step()
                else:
                    scaler.scale /= 2
                recorder.log(loss=loss)
    answer = diagnose_run(tmp_path)
    present = {one.symptom for one in answer.findings if one.state is State.PRESENT}
    assert "nonfinite_in_loss" in present
    assert not {"loss_scale_falls", "overflows_in_fp16"} & present
    probabilities = {one.cause: one.probability for one in answer.hypotheses}
    assert probabilities["invalid_math"] > 0.05
    assert probabilities["fp16_overflow"] < 0.9


def test_evaluations_between_steps_are_records_at_the_last_one(tmp_path: Path) -> None:
    with Recorder(tmp_path) as recorder:
        for number in range(3):
            with recorder.step():
                recorder.log(loss=1.0)
            if number == 1:
                recorder.log(eval_loss=0.5)
    run = read_run(tmp_path)
    assert (run["eval_loss"].step.tolist(), run["eval_loss"].value.tolist()) == ([2.0], [0.5])
    assert run["loss"].step.tolist() == [1.0, 2.0, 3.0]


def test_what_does_not_fit_a_model_is_said_once_and_training_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise TypeError("no such layout")

    monkeypatch.setattr("mldebug_mcp.recorder.layers.of_outputs", fail)
    with Recorder(tmp_path, every=1) as recorder:
        losses = train(recorder, classifier())
    assert len(steps(recorder.path)) == len(losses)
    assert capsys.readouterr().err.count("no such layout") == 1


@pytest.mark.parametrize("options", [{"every": 0}, {"max_bytes": 0}])
def test_numbers_that_mean_nothing_are_refused(tmp_path: Path, options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="above zero"):
        Recorder(tmp_path, **options)  # type: ignore[arg-type]


def test_a_tensor_of_several_numbers_is_refused_with_what_to_log(tmp_path: Path) -> None:
    with Recorder(tmp_path) as recorder, pytest.raises(ValueError, match="log its mean"):
        recorder.log(loss=torch.ones(3))


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(ValueError, match=r"ends in \.jsonl"):
        Recorder(tmp_path / "notes.txt")


def test_a_layer_without_a_gradient_is_seen_in_the_recording_alone(tmp_path: Path) -> None:
    class Detached(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(16, 16), nn.Linear(16, 4)
            self.side = nn.Linear(16, 16)

        def forward(self, inputs: Tensor) -> Tensor:
            found: Tensor = self.last(torch.relu(self.first(inputs)) + 0 * self.side(inputs))
            return found

    torch.manual_seed(0)
    with Recorder(tmp_path, every=5) as recorder:
        train(recorder, Detached())
    seen = {one.symptom: one for one in diagnose_run(tmp_path).findings if one.state is State.PRESENT}
    assert "grad_norm/side" in seen["grad_part_zero"].summary


def test_gradients_that_fade_with_depth_are_seen_layer_by_layer(tmp_path: Path) -> None:
    with Recorder(tmp_path, every=5) as recorder:
        train(recorder, classifier(depth=12, activation=nn.Sigmoid))
    seen = {one.symptom for one in diagnose_run(tmp_path).findings if one.state is State.PRESENT}
    assert "grad_fades_with_depth" in seen


def test_a_recording_goes_on_in_its_file_after_a_restart(tmp_path: Path) -> None:
    for first in (1, 11):
        with Recorder(tmp_path) as recorder:
            for number in range(first, first + 10):
                recorder.begin(number=number)
                recorder.log(loss=1 / number)
                recorder.end()
    assert read_run(tmp_path)["loss"].step.tolist() == list(range(1, 21))
    assert sum("time" in one for one in lines(recorder.path) if "recorder" in one) == 2


def test_importing_the_recorder_loads_neither_torch_nor_a_dependency_of_ours() -> None:
    import subprocess

    code = "import sys, mldebug_mcp.recorder; print({'torch', 'numpy', 'pydantic', 'polars'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("leaks", [True, False])
def test_rows_of_the_evaluation_that_are_trained_on_are_seen(tmp_path: Path, *, leaks: bool) -> None:
    model = classifier()
    rows = loader().dataset.tensors[0] if leaks else torch.randn(64, 16)  # type: ignore[attr-defined]
    with Recorder(tmp_path, every=3) as recorder:
        recorder.watch(model)
        with torch.no_grad():
            model.eval()(rows[:64])
        train(recorder, model.train())
    seen = {one.symptom: one for one in diagnose_run(tmp_path).findings if one.state is State.PRESENT}
    assert ("rows_evaluated" in seen) is leaks
    if leaks:
        share = [one["rows_evaluated"] for one in steps(recorder.path) if "rows_evaluated" in one]
        assert sum(share) / len(share) == pytest.approx(64 / ROWS, abs=0.1)


def test_a_watched_model_can_be_copied_and_saved_and_its_copy_is_not_recorded(tmp_path: Path) -> None:
    model = classifier()
    with Recorder(tmp_path) as recorder:
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        recorder.watch(model, optimizer)
        average = copy.deepcopy(model)
        torch.save(model, tmp_path / "model.pt")
        loaded = torch.load(tmp_path / "model.pt", weights_only=False)
        for inputs, labels in recorder.steps(loader()):
            loss = nn.functional.cross_entropy(model(inputs), labels)
            average(inputs)
            loaded(inputs)
            torch.autograd.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            recorder.log(loss=loss)
    assert len(steps(recorder.path)) == 10
    assert all(one["time/forward_s"] < one["time/step_s"] for one in steps(recorder.path))
