"""Make the samples of the Trainer of Transformers by running it (5.23 was used).

A GPT-2 of two layers learns to count. The runs: `plain` (no evaluation), `evaluated`, `accumulated` (four micro-batches
in a step, evaluated once in an epoch), `resumed` (stopped at step 30, resumed from its checkpoint of step 20), and
`summed`: four micro-batches again, but with a `compute_loss` of one's own that knows nothing of the items in a batch,
so that what is logged is the sum over the micro-batches.
"""

from __future__ import annotations

import csv
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from tests.logs.samples.make.keeping import folder_of, sentences, tell, terminal

RUNS: dict[str, dict[str, Any]] = {
    "plain": {"max_steps": 60},
    "evaluated": {"max_steps": 60, "eval_strategy": "steps", "eval_steps": 20},
    "accumulated": {
        "num_train_epochs": 4,
        "gradient_accumulation_steps": 4,
        "per_device_train_batch_size": 4,
        "eval_strategy": "epoch",
    },
    "summed": {
        "max_steps": 40,
        "gradient_accumulation_steps": 4,
        "per_device_train_batch_size": 4,
        "eval_strategy": "steps",
        "eval_steps": 20,
    },
    "resumed": {"max_steps": 50, "save_strategy": "steps", "save_steps": 20, "save_only_model": False},
}


def trainer_of(output: Path, *, summed: bool = False, **options: Any) -> Any:
    """Return a Trainer that writes to `output`."""
    import transformers

    transformers.set_seed(1)
    model = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=64, n_positions=32, n_embd=48, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0
        )
    )
    usual = {
        "output_dir": str(output), "learning_rate": 3e-3, "warmup_steps": 10, "logging_steps": 5, "report_to": [],
        "per_device_train_batch_size": 16, "save_strategy": "no", "use_cpu": True, "seed": 1,
    }  # fmt: skip
    rows = [{"input_ids": row, "labels": row} for row in sentences(256, 32)]
    held_out = [{"input_ids": row, "labels": row} for row in sentences(64, 32, seed=1)]
    arguments = transformers.TrainingArguments(**{**usual, **options})

    class WithOwnLoss(transformers.Trainer):  # type: ignore[misc]
        def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, **kwargs: Any) -> Any:  # noqa: ARG002
            outputs = model(**inputs)
            return (outputs.loss, outputs) if return_outputs else outputs.loss

    kind = WithOwnLoss if summed else transformers.Trainer
    return kind(model=model, args=arguments, train_dataset=rows, eval_dataset=held_out)


def run(name: str, options: dict[str, Any], kept: Path) -> None:
    """Train as example scripts do: train, save the results and the state; keep those and what was printed."""
    with tempfile.TemporaryDirectory() as place:
        output = Path(place)
        with terminal(kept / "stdout.log"):
            trainer = trainer_of(output, summed=name == "summed", **options)
            if name == "resumed":
                stop_at(trainer, 30)
                trainer.train()
                trainer = trainer_of(output, **options)
                result = trainer.train(resume_from_checkpoint=str(output / "checkpoint-20"))
            else:
                result = trainer.train()
            trainer.save_metrics("train", result.metrics)
            if "eval_strategy" in options:
                trainer.save_metrics("eval", trainer.evaluate())
            trainer.save_state()
        for name_of_file in ("trainer_state.json", "all_results.json"):
            shutil.copy(output / name_of_file, kept / name_of_file)
    if name == "summed":
        settings = {"gradient_accumulation_steps": 4, "per_device_train_batch_size": 4, "vocab_size": 64}
        (kept / "training_args.json").write_text(json.dumps(settings))
    history = json.loads((kept / "trainer_state.json").read_text())["log_history"]
    names = list(dict.fromkeys(name for record in history for name in record))
    with (kept / "log_history.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, names, lineterminator="\n")
        table.writeheader()
        table.writerows(history)


def stop_at(trainer: Any, step: int) -> None:
    """Have a Trainer stop at a step, as if it had been interrupted."""
    import transformers

    class Stop(transformers.TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002
            control.should_training_stop = state.global_step >= step

    trainer.add_callback(Stop())


if __name__ == "__main__":
    folder = folder_of("trainer")
    for name, options in RUNS.items():
        (folder / name).mkdir()
        run(name, options, folder / name)
    tell(folder)
