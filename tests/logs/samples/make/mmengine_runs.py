"""Make the samples of MMEngine by running it (0.10 was used).

A classifier: the text log and the JSON of the local visualisation backend, in a loop of epochs and one of iterations.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from tests.logs.samples.make.keeping import folder_of, tell, terminal, without_places
from tests.logs.samples.make.lightning_runs import loader

EPOCHS = {"by_epoch": True, "max_epochs": 4, "val_interval": 1}
ITERATIONS = {"by_epoch": False, "max_iters": 60, "val_interval": 20}


def run(place: str, loop: dict[str, Any], interval: int) -> None:
    """Train with MMEngine's Runner."""
    import torch
    from mmengine import evaluator, model, runner
    from torch.nn import functional

    class Classifier(model.BaseModel):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))

        def forward(self, points: Any, labels: Any, mode: str = "tensor") -> Any:
            scores = self.layers(points)
            return {"loss_cls": functional.cross_entropy(scores, labels)} if mode == "loss" else (scores, labels)

    class Accuracy(evaluator.BaseMetric):  # type: ignore[misc]
        def process(self, data_batch: Any, data_samples: Any) -> None:  # noqa: ARG002
            scores, labels = data_samples
            self.results.append({"right": int((scores.argmax(1) == labels).sum()), "all": len(labels)})

        def compute_metrics(self, results: list[dict[str, int]]) -> dict[str, float]:
            return {"accuracy": sum(one["right"] for one in results) / sum(one["all"] for one in results)}

    torch.manual_seed(1)
    runner.Runner(
        Classifier(), work_dir=place, train_dataloader=loader(512, 0), val_dataloader=loader(128, 1),
        train_cfg=loop, log_processor={"by_epoch": loop["by_epoch"]}, val_cfg={}, val_evaluator=[Accuracy()],
        optim_wrapper={"optimizer": {"type": "Adam", "lr": 0.01}, "clip_grad": {"max_norm": 5.0}},
        default_hooks={"logger": {"type": "LoggerHook", "interval": interval}, "checkpoint": None},
        randomness={"seed": 1},
    ).train()  # fmt: skip


if __name__ == "__main__":
    folder = folder_of("mmengine")
    with tempfile.TemporaryDirectory() as place:
        with terminal(folder / "stdout.log"):
            run(place, EPOCHS, 4)
        (scalars,) = Path(place).glob("*/vis_data/2*.json")
        (log,) = Path(place).glob("*/*.log")
        shutil.copy(scalars, folder / "scalars.json")
        shutil.copy(log, folder / "run.log")
        without_places(folder / "run.log")
    with tempfile.TemporaryDirectory() as place:
        with terminal(folder / "iterations.log"):
            run(place, ITERATIONS, 10)
        (scalars,) = Path(place).glob("*/vis_data/2*.json")
        shutil.copy(scalars, folder / "iterations.json")
    tell(folder)
