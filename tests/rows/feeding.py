"""Trains tiny models and writes down the rows that each step was really fed: `python -m tests.rows.feeding FOLDER`.

With RANK and WORLD_SIZE set it is one rank of several, over gloo.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

ROWS = 23
RANK = int(os.environ.get("RANK", "0"))


class Numbered(Dataset[dict[str, Any]]):
    """Rows that hold their own numbers."""

    def __init__(self, rows: int = ROWS) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"x": torch.tensor([float(index)]), "labels": torch.tensor([0.0])}


class Line(torch.nn.Module):
    """The smallest model that a Trainer trains; it writes down the rows that it is fed."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Linear(1, 1)
        self.fed: list[list[int]] = []

    def forward(self, x: Any, labels: Any) -> dict[str, Any]:
        self.fed.append([int(one) for one in x[:, 0].tolist()])
        return {"loss": ((self.weight(x / ROWS) - labels) ** 2).mean()}


TRAINERS: dict[str, dict[str, Any]] = {
    "plain": {},
    "accumulated": {"gradient_accumulation_steps": 3},
    "dropped": {"gradient_accumulation_steps": 2, "dataloader_drop_last": True, "data_seed": 11},
    "in_order": {"train_sampling_strategy": "sequential"},
    "split": {"accelerator_config": {"split_batches": True}, "per_device_train_batch_size": 4},
    "dispatched": {"accelerator_config": {"dispatch_batches": True}, "gradient_accumulation_steps": 2},
}


def train(folder: Path, name: str, resume: bool | None = None, **more: Any) -> None:
    """Train with a Trainer, and write the rows of each of its steps beside its log."""
    from transformers import Trainer, TrainerCallback, TrainingArguments

    model = Line()
    steps: list[list[list[int]]] = []

    class Steps(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, *_: object, **__: object) -> None:
            steps.append(list(model.fed))
            model.fed.clear()

    settings: dict[str, Any] = {
        "per_device_train_batch_size": 3, "num_train_epochs": 3, "seed": 7, "logging_steps": 1, "save_steps": 4,
        "report_to": [], "use_cpu": True, "disable_tqdm": True, "logging_strategy": "steps",
    } | TRAINERS.get(name, {}) | more  # fmt: skip
    arguments = TrainingArguments(str(folder / name), **settings)
    trainer = Trainer(model, arguments, train_dataset=Numbered(), callbacks=[Steps()])
    trainer.train(resume_from_checkpoint=resume)
    trainer.save_state()
    if RANK == 0:
        torch.save(arguments, folder / name / "training_args.bin")
    (folder / name / f"fed.{RANK}.json").write_text(json.dumps(steps))


def configured(folder: Path, log: Path, setting: dict[str, Any]) -> None:
    """Write the arguments of another run beside a log."""
    from transformers import TrainingArguments

    folder.mkdir()
    (folder / "trainer_state.json").write_bytes((log / "trainer_state.json").read_bytes())
    torch.save(TrainingArguments(str(folder), use_cpu=True, report_to=[], **setting), folder / "training_args.bin")


def prepared(folder: Path, name: str, **how: Any) -> None:
    """Go over a loader that Accelerate prepared, and write the rows of each batch."""
    from accelerate import Accelerator
    from accelerate.utils import DataLoaderConfiguration

    accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True, **how))
    torch.manual_seed(5)
    loader = accelerator.prepare(DataLoader(Numbered(), batch_size=4, shuffle=True))
    fed = [[int(one) for one in batch["x"][:, 0].tolist()] for _ in range(2) for batch in loader]
    (folder / name).mkdir(exist_ok=True)
    (folder / name / f"fed.{RANK}.json").write_text(json.dumps([[batch] for batch in fed]))


def main(folder: Path) -> None:
    """Train with every configuration."""
    alone = "RANK" not in os.environ
    if not alone:  # by a file: a port that was free a moment ago may be taken by now
        world = int(os.environ["WORLD_SIZE"])
        torch.distributed.init_process_group("gloo", f"file://{folder}/ranks", rank=RANK, world_size=world)
    for name in TRAINERS:
        train(folder, name)
    if alone:
        train(folder, "resumed", num_train_epochs=2, gradient_accumulation_steps=2)
        for checkpoint in (folder / "resumed").glob("checkpoint-8*"):
            for file in checkpoint.iterdir():
                file.unlink()
            checkpoint.rmdir()
        train(folder, "resumed", resume=True, num_train_epochs=2, gradient_accumulation_steps=2)
        train(folder, "restarted", num_train_epochs=2, max_steps=6)
        train(folder, "restarted", resume=True, num_train_epochs=4, ignore_data_skip=True)
        for name, setting in (
            ("by_length", {"train_sampling_strategy": "group_by_length"}),
            ("unseeded", {"accelerator_config": {"use_seedable_sampler": False}}),
        ):
            configured(folder / name, folder / "plain", setting)
    prepared(folder, "shards")
    prepared(folder, "halves", split_batches=True)
    prepared(folder, "sent", dispatch_batches=True)
    prepared(folder, "sent_halves", dispatch_batches=True, split_batches=True)
    if not alone:
        torch.distributed.barrier()  # a rank that ends while another still waits for its last batch takes it along
        torch.distributed.destroy_process_group()
        os._exit(0)  # all is written; PyTorch's threads may abort an interpreter that ends while they do


if __name__ == "__main__":
    main(Path(sys.argv[1]))
