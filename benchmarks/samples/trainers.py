"""Train with a trainer of PyTorch, or a library that has one, as it should be and with a far too high learning rate.

Run as `python -m benchmarks.samples.trainers TRAINER FOLDER` with the package installed; see
`benchmarks/samples/frameworks.py` for what is kept.
"""

# ruff: noqa: ANN401, D403 - the classes of frameworks have no types, and their names are written small
from __future__ import annotations

import contextlib
import logging
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.samples.frameworks import classes, logged_losses, printed_to, write_samples


def small_network() -> Any:
    """Return a network that tells the two classes apart, and its loss."""
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))


def loaders(size: int = 16) -> tuple[Any, Any]:
    """Return loaders of batches for training and validation."""
    import torch

    x, y = (torch.tensor(array) for array in classes())
    rows = torch.utils.data.TensorDataset(x, y)
    trained, held_out = torch.utils.data.Subset(rows, range(240)), torch.utils.data.Subset(rows, range(240, 300))
    order = torch.Generator().manual_seed(0)
    return (
        torch.utils.data.DataLoader(trained, size, shuffle=True, generator=order),
        torch.utils.data.DataLoader(held_out, size),
    )


def emptied(path: Path) -> Path:
    """Return the folder of a run, empty."""
    folder = path.with_suffix("")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def pytorch_pfn_extras(factor: float, path: Path) -> None:
    """pytorch-pfn-extras, of Chainer's kind: the JSON file `log` and the table that is printed."""
    import pytorch_pfn_extras as ppe
    import torch
    from pytorch_pfn_extras.training import extensions

    model, (train, held_out) = small_network(), loaders()
    optimizer = torch.optim.SGD(model.parameters(), 0.1 * factor)
    with tempfile.TemporaryDirectory() as place, printed_to(path):
        manager = ppe.training.ExtensionsManager(
            model, optimizer, 5, iters_per_epoch=len(train), out_dir=place,
            extensions=[
                extensions.LogReport(trigger=(5, "iteration")),
                extensions.observe_lr(optimizer),
                extensions.PrintReport(["epoch", "iteration", "train/loss", "val/loss", "lr", "elapsed_time"]),
            ],
        )  # fmt: skip

        def evaluate(x: Any, y: Any) -> None:
            ppe.reporting.report({"val/loss": torch.nn.functional.cross_entropy(model(x), y).item()})

        manager.extend(extensions.Evaluator(held_out, model, eval_func=evaluate), trigger=(1, "epoch"))
        while not manager.stop_trigger:
            for x, y in train:
                with manager.run_iteration():
                    optimizer.zero_grad()
                    loss = torch.nn.functional.cross_entropy(model(x), y)
                    ppe.reporting.report({"train/loss": loss.item()})
                    loss.backward()  # type: ignore[no-untyped-call]
                    optimizer.step()
        shutil.copy(Path(place) / "log", path.with_name(f"{path.stem}.json"))


def poutyne(factor: float, path: Path) -> None:
    """Poutyne's lines of a step and of an epoch, and the table of its CSVLogger."""
    import torch
    from poutyne import CSVLogger, Model

    network, (train, held_out) = small_network(), loaders()
    model = Model(network, torch.optim.SGD(network.parameters(), 0.1 * factor), "cross_entropy", batch_metrics=["acc"])
    with printed_to(path):
        model.fit_generator(
            train, held_out, epochs=6, callbacks=[CSVLogger(str(path.with_suffix(".csv")))],
            progress_options={"coloring": False},
        )  # fmt: skip


def catalyst(factor: float, path: Path) -> None:
    """Catalyst's console and the tables of its CSV logger."""
    import torch
    from catalyst import dl

    model, (train, held_out) = small_network(), loaders()
    folder = emptied(path)
    with printed_to(path):
        dl.SupervisedRunner().train(
            model=model, criterion=torch.nn.CrossEntropyLoss(),
            optimizer=torch.optim.SGD(model.parameters(), 0.1 * factor),
            loaders={"train": train, "valid": held_out}, num_epochs=6, verbose=False,
            callbacks=[dl.AccuracyCallback(input_key="logits", target_key="targets", num_classes=2)],
            loggers={"console": dl.ConsoleLogger(), "csv": dl.CSVLogger(str(folder), use_logdir_postfix=False)},
        )  # fmt: skip


def monai(factor: float, path: Path) -> None:
    """MONAI's lines of its StatsHandler."""
    import torch
    from monai.engines import SupervisedTrainer
    from monai.handlers import StatsHandler

    model, (train, _) = small_network(), loaders()
    rows = [{"image": x, "label": y} for x, y in train]
    with printed_to(path):
        logging.basicConfig(stream=sys.stdout, level=logging.INFO, force=True)
        SupervisedTrainer(
            device=torch.device("cpu"), max_epochs=4, train_data_loader=rows, network=model,
            optimizer=torch.optim.SGD(model.parameters(), 0.1 * factor), loss_function=torch.nn.CrossEntropyLoss(),
            train_handlers=[StatsHandler(tag_name="train_loss", output_transform=lambda out: out[0]["loss"])],
            decollate=True,
        ).run()  # fmt: skip


def torchbearer(factor: float, path: Path) -> None:
    """torchbearer's bars."""
    import torch
    from torchbearer import Trial

    model, (train, held_out) = small_network(), loaders()
    optimizer = torch.optim.SGD(model.parameters(), 0.1 * factor)
    with printed_to(path):
        Trial(model, optimizer, torch.nn.CrossEntropyLoss(), metrics=["acc", "loss"]).with_generators(
            train_generator=train, val_generator=held_out
        ).run(epochs=5)


def coqui_trainer(factor: float, path: Path) -> None:
    """Coqui's trainer, of its speech models."""
    import torch
    from trainer import Trainer, TrainerArgs, TrainerConfig, TrainerModel

    small_network()  # for its seed
    wide = [torch.nn.Linear(8, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024), torch.nn.ReLU()]
    network = torch.nn.Sequential(*wide, torch.nn.Linear(1024, 2))
    x, y = (torch.tensor(array) for array in classes())
    rows: Any = [{"x": x[at], "y": y[at]} for at in range(300)]
    train, held_out = (
        torch.utils.data.DataLoader(rows[:240], 16, shuffle=True),
        torch.utils.data.DataLoader(rows[240:], 16),
    )

    class Model(TrainerModel):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, x: Any) -> Any:
            return self.network(x)

        def train_step(self, batch: Any, criterion: Any) -> Any:
            logits = self(batch["x"])
            return {"model_outputs": logits}, {"loss": criterion(logits, batch["y"])}

        def eval_step(self, batch: Any, criterion: Any) -> Any:
            return self.train_step(batch, criterion)

        @staticmethod
        def get_criterion() -> Any:
            return torch.nn.CrossEntropyLoss()

        def get_data_loader(
            self, config: Any, *, is_eval: bool = False, samples: Any = None, verbose: bool = True
        ) -> Any:
            del config, samples, verbose
            return held_out if is_eval else train

    config = TrainerConfig(
        optimizer="SGD", lr=0.1 * factor, epochs=5, batch_size=16, print_step=5, save_step=100000, plot_step=100000,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as place:
        trainer = Trainer(TrainerArgs(), config, place, model=Model())
        trainer.fit()
        (log,) = Path(place).rglob("trainer_*_log.txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(log, path)


def graphgym(factor: float, path: Path) -> None:
    """GraphGym of PyTorch Geometric: a table of JSON lines for each set."""
    import torch
    from torch_geometric.graphgym.config import cfg, set_cfg
    from torch_geometric.graphgym.logger import Logger

    folder = emptied(path)
    set_cfg(cfg)
    cfg.run_dir = str(folder)
    cfg.tensorboard_each_run = False
    cfg.dataset.task_type = "classification"
    model, sets = small_network(), dict(zip(("train", "val"), loaders(), strict=True))
    cfg.params = sum(one.numel() for one in model.parameters())
    rate = 0.1 * factor
    optimizer = torch.optim.SGD(model.parameters(), rate)
    loggers = {name: Logger(name=name, task_type="classification_multi") for name in sets}
    with printed_to(path):
        logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(message)s", force=True)
        for epoch in range(8):
            for name, batches in sets.items():
                for x, y in batches:
                    logits = model(x)
                    loss = torch.nn.functional.cross_entropy(logits, y)
                    if name == "train":
                        optimizer.zero_grad()
                        loss.backward()  # type: ignore[no-untyped-call]
                        optimizer.step()
                    scores = logits.detach().nan_to_num(0).log_softmax(-1)
                    loggers[name].update_stats(
                        true=y, pred=scores, loss=loss.item(), lr=rate, time_used=0.01, params=cfg.params
                    )
                loggers[name].write_epoch(epoch)


def ngboost(factor: float, path: Path) -> None:
    """NGBoost's lines."""
    from ngboost import NGBClassifier

    x, y = classes()
    with printed_to(path), contextlib.suppress(Exception):
        NGBClassifier(n_estimators=60, learning_rate=0.01 * factor, verbose_eval=5, random_state=0).fit(
            x[:240], y[:240], x[240:], y[240:]
        )


def implicit(factor: float, path: Path) -> None:
    """implicit's bar of logistic matrix factorisation and of alternating least squares."""
    import numpy as np
    import scipy.sparse
    from implicit.als import AlternatingLeastSquares

    random = np.random.default_rng(0)
    ratings = scipy.sparse.csr_matrix((random.random((60, 40)) < 0.2).astype("float32"))
    with printed_to(path):
        AlternatingLeastSquares(
            factors=8, iterations=12, regularization=0.01 * factor, calculate_training_loss=True, random_state=0,
            num_threads=1,
        ).fit(ratings)  # fmt: skip


def tsne(factor: float, path: Path) -> None:
    """scikit-learn's t-SNE."""
    from sklearn.manifold import TSNE

    x, _ = classes()
    with printed_to(path):
        TSNE(verbose=2, learning_rate=50.0 * factor, max_iter=500, random_state=0, method="exact").fit_transform(x)


def river(factor: float, path: Path) -> None:
    """river's lines of progressive validation."""
    from river import evaluate, linear_model, metrics, optim, stream

    x, y = classes(2000)
    with printed_to(path):
        evaluate.progressive_val_score(
            stream.iter_array(x, y), linear_model.LogisticRegression(optim.SGD(0.05 * factor)),
            metrics.LogLoss() + metrics.Accuracy(), print_every=100, show_time=True, show_memory=True,
        )  # fmt: skip


def dagshub(factor: float, path: Path) -> None:
    """DagsHub's logger: a long table and a file of parameters."""
    from dagshub import dagshub_logger

    folder = emptied(path)
    with dagshub_logger(str(folder / "metrics.csv"), hparams_path=str(folder / "params.yml")) as logger:
        logger.log_hyperparams(lr=0.001 * factor, batch_size=32, optimizer="adam")
        for step, loss in enumerate(logged_losses(factor)):
            logger.log_metrics({"loss": loss, "val_loss": loss + 0.1}, step_num=step)


def guild(factor: float, path: Path) -> None:
    """A run of Guild: what the script printed, its flags, and the events that Guild made of it."""
    import os
    import subprocess

    losses = "\n".join(f"step: {step}\nloss: {loss}" for step, loss in enumerate(logged_losses(factor)))
    with tempfile.TemporaryDirectory() as place, tempfile.TemporaryDirectory() as home:
        (Path(place) / "train.py").write_text(f"lr = 0.001\nbatch_size = 32\nprint({losses!r})\n")
        subprocess.run(
            [sys.executable, "-m", "guild.main_bootstrap", "run", "train.py", f"lr={0.001 * factor}", "-y"],
            cwd=place, env={**os.environ, "GUILD_HOME": home}, check=True,
        )  # fmt: skip
        (run,) = (Path(home) / "runs").iterdir()
        folder = emptied(path)
        for name in (".guild/output", ".guild/attrs/flags"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(run / name, folder / name)
        for events in (run / ".guild").glob("events.out.tfevents*"):
            shutil.copy(events, folder / ".guild")


def composer(factor: float, path: Path) -> None:
    """Composer's lines of its console logger, and those of its file logger."""
    import torch
    from composer import Trainer
    from composer.loggers import FileLogger
    from composer.models import ComposerClassifier

    model, (train, held_out) = small_network(), loaders()
    with tempfile.TemporaryDirectory() as place, printed_to(path):
        file_logger = FileLogger(
            filename=f"{place}/log.txt", remote_file_name=None, capture_stdout=False, capture_stderr=False
        )
        Trainer(
            model=ComposerClassifier(model, num_classes=2), train_dataloader=train, eval_dataloader=held_out,
            optimizers=torch.optim.SGD(model.parameters(), 0.1 * factor), max_duration="3ep", device="cpu", seed=0,
            progress_bar=False, log_to_console=True, console_log_interval="5ba",
            loggers=file_logger,
        ).fit()  # fmt: skip
        shutil.copy(Path(place) / "log.txt", path.with_name(f"{path.stem}.txt"))


def torchtune(factor: float, path: Path) -> None:
    """torchtune's DiskLogger, in a loop that logs as its recipes do."""
    import torch
    from torchtune.training.metric_logging import DiskLogger

    model, (train, _) = small_network(), loaders()
    optimizer = torch.optim.SGD(model.parameters(), 0.1 * factor)
    with tempfile.TemporaryDirectory() as place:
        logger, step = DiskLogger(place, filename="log.txt"), 0
        for _ in range(3):
            for x, y in train:
                loss = torch.nn.functional.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                norm = torch.nn.utils.clip_grad_norm_(model.parameters(), float("inf"))
                optimizer.step()
                step += 1
                row = {"loss": loss.item(), "lr": 0.1 * factor, "tokens_per_second_per_gpu": 1000.0, "grad_norm": norm}
                logger.log_dict(row, step=step)
        logger.close()
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(place) / "log.txt", path)


def skorch(factor: float, path: Path) -> None:
    """skorch's table, whose cells are empty where nothing was saved."""
    import torch
    from skorch import NeuralNetClassifier
    from skorch.callbacks import Checkpoint, EpochScoring, LRScheduler

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2), torch.nn.Softmax(-1))
    with tempfile.TemporaryDirectory() as place, printed_to(path):
        score = EpochScoring("roc_auc", lower_is_better=False)
        callbacks = [score, LRScheduler("StepLR", step_size=5), Checkpoint(dirname=place)]
        NeuralNetClassifier(model, max_epochs=12, lr=0.1 * factor, batch_size=32, callbacks=callbacks).fit(
            *classes(400)
        )


def pytorch_accelerated(factor: float, path: Path) -> None:
    """The lines and bars of pytorch-accelerated, which ends at a loss that is NaN."""
    import torch
    from pytorch_accelerated import Trainer

    torch.manual_seed(0)
    train, held_out = (loader.dataset for loader in loaders())
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 if factor == 1 else 30_000.0)
    with printed_to(path), contextlib.suppress(SystemExit):
        Trainer(model, loss_func=torch.nn.CrossEntropyLoss(), optimizer=optimizer).train(
            train_dataset=train, eval_dataset=held_out, num_epochs=8, per_device_batch_size=32
        )


def tensorboardx(factor: float, path: Path) -> None:
    """tensorboardX's event files, and the scalars that it exports: those of `add_scalars` alone."""
    from tensorboardX import SummaryWriter

    with contextlib.chdir(emptied(path)):
        writer = SummaryWriter("run")  # its path stands in the exported names
        for step, loss in enumerate(logged_losses(factor)):
            writer.add_scalar("train/loss", loss, step)
            writer.add_scalars("losses", {"train": loss, "val": loss + 0.1}, step)
        writer.export_scalars_to_json("all_scalars.json")
        writer.close()


TRAINERS: dict[str, Callable[[float, Path], None]] = {
    function.__name__: function
    for function in (
        pytorch_pfn_extras, poutyne, catalyst, monai, torchbearer, coqui_trainer, graphgym, ngboost, implicit, tsne,
        river, dagshub, guild, composer, torchtune, skorch, pytorch_accelerated, tensorboardx,
    )
}  # fmt: skip

if __name__ == "__main__":
    write_samples(TRAINERS)
