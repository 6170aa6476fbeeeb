"""Make the samples of Ultralytics' results.csv and timm's summary.csv by running their writers.

Both packages import torchvision; their writers do not need it. So the writers alone are run (Ultralytics 8.4: the
method `BaseTrainer.save_metrics`; timm 1.0: `timm.utils.summary`), on the numbers of curves that fall.
"""

from __future__ import annotations

import ast
import importlib.util
import math
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.logs.samples.make.keeping import folder_of, tell


def source_of(package: str, file: str) -> Path:
    """Return a file of an installed package, which is not imported."""
    found = importlib.util.find_spec(package)
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / file


def falling(start: float, end: float, epoch: int) -> float:
    """Return a point of a curve that falls, with a ripple."""
    return end + (start - end) * math.exp(-epoch / 4) * (1 + 0.02 * math.sin(5 * epoch))


def ultralytics(kept: Path) -> None:
    """Write the results of eight epochs of a detector."""
    tree = ast.parse(source_of("ultralytics", "engine/trainer.py").read_text())
    trainer = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "BaseTrainer")
    method = next(node for node in trainer.body if isinstance(node, ast.FunctionDef) and node.name == "save_metrics")
    names: dict[str, Any] = {"time": time}
    exec(compile(ast.Module([method], []), "trainer.py", "exec"), names)  # noqa: S102 - the package's own function
    for epoch in range(8):
        state = SimpleNamespace(
            csv=kept / "results.csv", epoch=epoch, train_time_start=time.time() - 12.5 * (epoch + 1)
        )
        losses = {"box_loss": (1.6, 0.9), "cls_loss": (3.2, 0.7), "dfl_loss": (1.5, 1.05)}
        metrics = {f"train/{name}": round(falling(*ends, epoch), 5) for name, ends in losses.items()}
        scores = {"precision(B)": 0.71, "recall(B)": 0.64, "mAP50(B)": 0.69, "mAP50-95(B)": 0.47}
        metrics |= {f"metrics/{name}": 1 - falling(1.0, 1 - end, epoch) for name, end in scores.items()}
        metrics |= {f"val/{name}": 1.1 * falling(*ends, epoch) for name, ends in losses.items()}
        rates = {f"lr/pg{group}": 0.01 * min((epoch + 1) / 3, 1 - 0.99 * epoch / 8) for group in range(3)}
        names["save_metrics"](state, {**metrics, **rates})


def timm(kept: Path) -> None:
    """Write the summary of eight epochs of a classifier."""
    spec = importlib.util.spec_from_file_location("timm_summary", source_of("timm", "utils/summary.py"))
    assert spec is not None
    assert spec.loader is not None
    summary = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(summary)
    for epoch in range(8):
        summary.update_summary(
            epoch,
            {"loss": falling(6.9, 2.4, epoch)},
            {
                "loss": falling(6.8, 2.1, epoch),
                "top1": 55 - falling(54.5, 5, epoch),
                "top5": 80 - falling(79, 4, epoch),
            },
            kept / "summary.csv",
            lr=0.001 * min((epoch + 0.1) / 3, (1 + math.cos(math.pi * epoch / 8)) / 2),
        )


if __name__ == "__main__":
    for name, write in (("ultralytics", ultralytics), ("timm", timm)):
        folder = folder_of(name)
        write(folder)
        tell(folder)
