"""Make the samples of fastai by running it (2.8 was used, with fastprogress 1.0).

A classifier fitted with one cycle: what was printed, with bars and without, and the history of CSVLogger.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from tests.logs.samples.make.keeping import folder_of, tell, terminal
from tests.logs.samples.make.lightning_runs import loader


def learner(place: str) -> Any:
    """Return a learner of the points of the Lightning sample."""
    import torch
    from fastai import basics
    from fastai.callback import progress

    layers = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
    return basics.Learner(
        basics.DataLoaders(loader(512, 0), loader(128, 1)), layers, loss_func=torch.nn.functional.cross_entropy,
        metrics=[basics.accuracy, basics.error_rate], cbs=[progress.CSVLogger()], path=place,
    )  # fmt: skip


if __name__ == "__main__":
    import fastai.callback.schedule  # noqa: F401 - gives learners fit_one_cycle
    from fastai.torch_core import set_seed

    folder = folder_of("fastai")
    with tempfile.TemporaryDirectory() as place:
        with terminal(folder / "stdout.log"):
            set_seed(1)
            learner(place).fit_one_cycle(5, 1e-2)
        shutil.copy(Path(place) / "history.csv", folder / "history.csv")
        with terminal(folder / "without_bars.log"):
            set_seed(1)
            quiet = learner(place)
            with quiet.no_bar():
                quiet.fit_one_cycle(5, 1e-2)
    tell(folder)
