"""Make the samples of PyTorch Lightning by running it (2.6 was used).

A classifier with a validation in each epoch: the CSV logger's metrics.csv and hparams.yaml, and both progress
bars, that of tqdm and that of Rich, which keeps one bar for each epoch.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from tests.logs.samples.make.keeping import folder_of, tell, terminal


def module() -> Any:
    """Return a module that logs as the documentation shows it."""
    import pytorch_lightning as lightning
    import torch
    from torch.nn import functional

    class Classifier(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self, lr: float) -> None:  # noqa: ARG002 - kept by save_hyperparameters
            super().__init__()
            self.save_hyperparameters()
            self.layers = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))

        def training_step(self, batch: Any, index: int) -> Any:  # noqa: ARG002
            loss = functional.cross_entropy(self.layers(batch[0]), batch[1])
            self.log("train_loss", loss, on_step=True, on_epoch=True, prog_bar=True)
            return loss

        def validation_step(self, batch: Any, index: int) -> None:  # noqa: ARG002
            scores = self.layers(batch[0])
            self.log("val_loss", functional.cross_entropy(scores, batch[1]), prog_bar=True)
            self.log("val_acc", (scores.argmax(1) == batch[1]).float().mean(), prog_bar=True)

        def configure_optimizers(self) -> Any:
            optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams["lr"])
            return [optimizer], [torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8)]

    return Classifier(1e-2)


def loader(count: int, seed: int) -> Any:
    """Return batches of points and which of three directions they lie in, one label in ten at random."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    points = torch.randn(count, 8, generator=generator)
    labels = points[:, :3].argmax(dim=1)
    turned = torch.rand(count, generator=generator) < 0.1
    labels[turned] = torch.randint(0, 3, (int(turned.sum()),), generator=generator)
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(points, labels), batch_size=32)


def fit(place: str, bar: Any) -> Any:
    """Fit with a progress bar and return the logger."""
    import pytorch_lightning as lightning

    lightning.seed_everything(1)
    logger = lightning.loggers.CSVLogger(place)
    trainer = lightning.Trainer(
        max_epochs=4, logger=logger, callbacks=[lightning.callbacks.LearningRateMonitor(), bar], log_every_n_steps=4,
        accelerator="cpu", enable_checkpointing=False, default_root_dir=place,
    )  # fmt: skip
    trainer.fit(module(), loader(512, 0), loader(128, 1))
    return logger


if __name__ == "__main__":
    from pytorch_lightning import callbacks

    folder = folder_of("lightning")
    bars = {"stdout": callbacks.TQDMProgressBar(refresh_rate=4), "rich": callbacks.RichProgressBar(leave=True)}
    for name, bar in bars.items():
        with tempfile.TemporaryDirectory() as place:
            with terminal(folder / f"{name}.log"):
                logger = fit(place, bar)
            for file in ("metrics.csv", "hparams.yaml"):
                shutil.copy(Path(logger.log_dir) / file, folder / file)
    tell(folder)
