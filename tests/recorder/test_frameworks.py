from __future__ import annotations

import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

from mldebug_mcp import read_run
from mldebug_mcp.recorder import accelerate_tracker, keras_callback, lightning_callback, trainer_callback
from tests.recorder.loops import events, head, loader, steps

SEQUENCE = 8


def tokens(count: int) -> list[dict[str, list[int]]]:
    """Return rows of which each begins with its own number."""
    generator = torch.Generator().manual_seed(0)
    rows = torch.randint(0, 64, (count, SEQUENCE), generator=generator).tolist()
    return [{"input_ids": [at, *row[1:]], "labels": [at, *row[1:]]} for at, row in enumerate(rows)]


class Seen(nn.Module):
    """A GPT-2 that notes the rows which it is trained on."""

    def __init__(self) -> None:
        super().__init__()
        transformers = import_module("transformers")
        torch.manual_seed(0)
        self.config = transformers.GPT2Config(
            vocab_size=64,
            n_positions=SEQUENCE,
            n_embd=16,
            n_layer=2,
            n_head=2,
            bos_token_id=0,
            eos_token_id=0,
            tie_word_embeddings=False,
        )
        self.inner = transformers.GPT2LMHeadModel(self.config)
        self.rows: list[list[int]] = []

    def forward(self, input_ids: torch.Tensor, labels: torch.Tensor | None = None, **kwargs: Any) -> Any:
        if self.training:
            self.rows.append(input_ids[:, 0].tolist())
        return self.inner(input_ids=input_ids, labels=labels, **kwargs)


def trained(folder: Path, model: nn.Module, resume: bool = False, **options: Any) -> Any:
    transformers = pytest.importorskip("transformers")
    arguments = transformers.TrainingArguments(
        output_dir=str(folder / "out"), per_device_train_batch_size=4, report_to=[], use_cpu=True, disable_tqdm=True,
        log_level="error", seed=3, **{"logging_steps": 5, "save_strategy": "no", "num_train_epochs": 2, **options},
    )  # fmt: skip
    trainer = transformers.Trainer(
        model=model, args=arguments, train_dataset=tokens(50), eval_dataset=tokens(8),
        callbacks=[trainer_callback(folder / "recording")],
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer.train(resume_from_checkpoint=resume or None)
    return trainer


def test_a_trainer_is_recorded_step_by_step_with_its_rows_and_settings(tmp_path: Path) -> None:
    model = Seen()
    trainer = trained(tmp_path, model, eval_strategy="steps", eval_steps=10, warmup_steps=3)
    file = tmp_path / "recording" / "recorder.jsonl"
    records = [one for one in steps(file) if "time/step_s" in one]
    assert [one["step"] for one in records] == list(range(1, 27))
    assert [one["rows"] for one in records] == model.rows
    logged = [one["loss"] for one in trainer.state.log_history if "loss" in one]
    means = [sum(one["train/loss"] for one in records[at : at + 5]) / 5 for at in range(0, 25, 5)]
    assert means == pytest.approx(logged, abs=2e-3)
    run = read_run(tmp_path / "recording")
    assert run.setting("learning_rate") == 5e-5
    assert run.setting("warmup_steps") == 3
    assert run["eval_loss"].step.tolist() == [10.0, 20.0, 26.0]
    norms = [one["grad_norm"] for one in trainer.state.log_history if "grad_norm" in one]
    assert [records[at - 1]["grad_norm"] for at in range(5, 26, 5)] == pytest.approx(norms, rel=1e-4)
    assert "grad_norm/inner.transformer.h.0.mlp.c_fc" in records[0]
    assert head(file)["rows_kind"] == "index"


def test_rows_of_accumulated_batches_are_those_that_were_fed(tmp_path: Path) -> None:
    model = Seen()
    trained(tmp_path, model, gradient_accumulation_steps=3)
    records = [one for one in steps(tmp_path / "recording" / "recorder.jsonl") if "time/step_s" in one]
    assert [row for one in records for row in one["rows"]] == [row for rows in model.rows for row in rows]
    assert [len(one["rows"]) for one in records] == [12, 12, 12, 12, 2] * 2


def test_rows_after_a_resume_are_those_that_were_fed(tmp_path: Path) -> None:
    first = Seen()
    trained(tmp_path, first, save_strategy="steps", save_steps=17, max_steps=17, num_train_epochs=2)
    again = Seen()
    (tmp_path / "recording" / "recorder.jsonl").unlink()
    trained(tmp_path, again, resume=True)
    records = [one for one in steps(tmp_path / "recording" / "recorder.jsonl") if "time/step_s" in one]
    assert [one["step"] for one in records] == list(range(18, 27))
    assert [one["rows"] for one in records] == again.rows


def test_accelerate_s_values_are_recorded_at_their_steps(tmp_path: Path) -> None:
    accelerate = pytest.importorskip("accelerate")
    tracker = accelerate_tracker(tmp_path)
    accelerator = accelerate.Accelerator(log_with=[tracker], cpu=True)
    accelerator.init_trackers("a", config={"learning_rate": 0.5})
    for step in range(1, 12):
        accelerator.log({"train_loss": 1 / step, "note": "text"}, step=step)
    accelerator.end_training()
    run = read_run(tmp_path)
    assert run["loss"].step.tolist() == list(range(1, 12))
    assert run.setting("learning_rate") == 0.5


@pytest.mark.skipif(not find_spec("lightning"), reason="lightning is not installed")
def test_lightning_is_recorded_with_its_rows(tmp_path: Path) -> None:
    lightning = import_module("lightning.pytorch")

    class Module(lightning.LightningModule):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Linear(16, 4)

        def training_step(self, batch: Any, _number: int) -> torch.Tensor:
            return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), 0.1)

    trainer = lightning.Trainer(
        max_epochs=2, callbacks=[lightning_callback(tmp_path / "recording")], logger=False, accelerator="cpu",
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, gradient_clip_val=1.0,
        accumulate_grad_batches=2, default_root_dir=tmp_path,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer.fit(Module(), loader())
    records = steps(tmp_path / "recording" / "recorder.jsonl")
    assert [one["step"] for one in records] == list(range(1, 11))
    assert all(len(one["rows"]) == 64 and one["grad_norm"] > 0 and 0 < one["train/loss"] < 5 for one in records)


@pytest.mark.skipif(not find_spec("keras"), reason="keras is not installed")
def test_keras_is_recorded_with_the_loss_of_each_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        keras = import_module("keras")
        model = keras.Sequential([keras.layers.Dense(8, activation="relu"), keras.layers.Dense(1)])
        model.compile(optimizer=keras.optimizers.Adam(1e-2), loss="mse")
        inputs = torch.randn(64, 4).numpy()
        model.fit(
            inputs, inputs.sum(axis=1), batch_size=16, epochs=3, verbose=0, validation_split=0.25,
            callbacks=[keras_callback(tmp_path)],
        )  # fmt: skip
    run = read_run(tmp_path)
    assert run["loss"].step.tolist() == list(range(1, 10))
    assert run["eval_loss"].step.tolist() == [3.0, 6.0, 9.0]
    assert run.setting("learning_rate") is None or run["learning_rate"].value[0] == pytest.approx(1e-2)


def test_a_recorded_trainer_that_fails_says_so(tmp_path: Path) -> None:
    class Failing(Seen):
        def forward(self, input_ids: torch.Tensor, labels: torch.Tensor | None = None, **kwargs: Any) -> Any:
            if len(self.rows) == 7:
                raise RuntimeError("CUDA error: device-side assert triggered")
            return super().forward(input_ids, labels, **kwargs)

    model = Failing()
    with pytest.raises(RuntimeError) as failed:
        trained(tmp_path, model)
    frame = next(one for one in failed.traceback if one.name == "trained").frame
    callbacks = frame.f_locals["trainer"].callback_handler.callbacks
    recorder = next(one.recorder for one in callbacks if hasattr(one, "recorder"))
    recorder.__exit__(RuntimeError, failed.value, None)
    file = tmp_path / "recording" / "recorder.jsonl"
    assert [one["step"] for one in steps(file)] == list(range(1, 9))
    assert "device-side assert" in events(file)["exception"]["error"]
    assert any("device-side assert" in one.text for one in read_run(tmp_path / "recording").messages)
