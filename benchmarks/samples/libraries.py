"""Train a library for text, speech, series or tables as it should be and with a far too high learning rate.

Run as `python -m benchmarks.samples.libraries LIBRARY FOLDER` with the package installed; see
`benchmarks/samples/frameworks.py` for what is kept.
"""

# ruff: noqa: ANN401, D403 - the classes of libraries have no types, and their names are written small
from __future__ import annotations

import contextlib
import logging
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.samples.frameworks import classes, logged_losses, printed_to, write_samples
from benchmarks.samples.trainers import emptied, loaders, small_network


def neuralforecast(factor: float, path: Path) -> None:
    """NeuralForecast's CSV of Lightning's logger."""
    import pandas as pd
    from neuralforecast import NeuralForecast
    from neuralforecast.models import MLP

    days = pd.date_range("2020-01-01", periods=200)
    frame = pd.DataFrame({"unique_id": "a", "ds": days, "y": [float(i % 7) for i in range(200)]})
    with printed_to(path):
        model = MLP(h=7, input_size=14, max_steps=60, learning_rate=0.001 * factor, val_check_steps=20, random_seed=0,
                    hidden_size=16, accelerator="cpu", logger=False, enable_checkpointing=False)  # fmt: skip
        NeuralForecast(models=[model], freq="D").fit(frame, val_size=14)


JOEYNMT = """
name: tiny
joeynmt_version: "2.3.0"
model_dir: model
use_cuda: False
fp16: False
data:
  train: train
  dev: dev
  test: dev
  dataset_type: plain
  src: {lang: a, level: word, lowercase: False, max_length: 30, voc_min_freq: 1, voc_limit: 1000}
  trg: {lang: b, level: word, lowercase: False, max_length: 30, voc_min_freq: 1, voc_limit: 1000}
  special_symbols: {unk_token: <unk>, unk_id: 0, pad_token: <pad>, pad_id: 1, bos_token: <s>, bos_id: 2,
    eos_token: </s>, eos_id: 3}
testing: {n_best: 1, beam_size: 1, beam_alpha: 1.0, batch_size: 16, batch_type: sentence, max_output_length: 10,
  eval_metrics: [bleu]}
training: {random_seed: 0, optimizer: adam, learning_rate: RATE, batch_size: 16, batch_type: sentence,
  normalization: tokens, scheduling: exponential, decrease_factor: 0.99, epochs: 6, validation_freq: 20, logging_freq: 5, early_stopping_metric: loss,
  overwrite: True, shuffle: True, print_valid_sents: [0], keep_best_ckpts: 1}
model:
  initializer: xavier_uniform
  embed_initializer: xavier_uniform
  bias_initializer: zeros
  encoder: {type: transformer, num_layers: 1, num_heads: 2, embeddings: {embedding_dim: 16, dropout: 0.0},
    hidden_size: 16, ff_size: 32, dropout: 0.0}
  decoder: {type: transformer, num_layers: 1, num_heads: 2, embeddings: {embedding_dim: 16, dropout: 0.0},
    hidden_size: 16, ff_size: 32, dropout: 0.0}
"""


def joeynmt(factor: float, path: Path) -> None:
    """JoeyNMT's lines, and the validations between them."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, count in (("train", 320), ("dev", 32)):
            rows = [[f"w{(i * k) % 9}" for k in (1, 2, 3)] for i in range(count)]
            (folder / f"{name}.a").write_text("".join(" ".join(row) + "\n" for row in rows))
            (folder / f"{name}.b").write_text("".join(" ".join(reversed(row)) + "\n" for row in rows))
        (folder / "c.yaml").write_text(JOEYNMT.replace("RATE", str(0.003 * factor)))
        run = [sys.executable, "-m", "joeynmt", "train", "c.yaml", "--skip-test"]
        with printed_to(path):
            subprocess.run(run, cwd=folder, check=False)


def gluonts(factor: float, path: Path) -> None:
    """GluonTS's estimator, with the table of Lightning's logger."""
    import lightning.pytorch as lightning
    import numpy as np
    from gluonts.dataset.common import ListDataset
    from gluonts.torch.model.simple_feedforward import SimpleFeedForwardEstimator

    lightning.seed_everything(0)
    values = np.sin(np.arange(300) / 5) + 2
    data = ListDataset([{"start": "2020-01-01", "target": values}], freq="D")
    folder = emptied(path)
    with printed_to(path):
        SimpleFeedForwardEstimator(
            prediction_length=7, context_length=14, lr=1e-3 * factor, batch_size=16, num_batches_per_epoch=20,
            trainer_kwargs={
                "max_epochs": 8, "accelerator": "cpu", "enable_progress_bar": False, "log_every_n_steps": 10,
                "logger": lightning.loggers.CSVLogger(str(folder), name="", version=""),
            },
        ).train(data, data)  # fmt: skip
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)


def recbole(factor: float, path: Path) -> None:
    """RecBole's lines of a recommender."""
    import numpy as np

    for name in ("float_", "complex_", "object_", "unicode_", "bool8"):  # of NumPy 1, which RecBole is written for
        setattr(np, name, getattr(np, name.rstrip("_8") + ("128" if name == "complex_" else "64" if name == "float_" else ""), str))
    from recbole.quick_start import run_recbole

    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "toy").mkdir()
        pairs = sorted({(int(u), int((u + 3 * i) % 40)) for u in range(60) for i in random.integers(0, 14, 12)})
        rows = "".join(f"{user}\t{item}\t{at}\n" for at, (user, item) in enumerate(pairs))
        (Path(place) / "toy" / "toy.inter").write_text("user_id:token\titem_id:token\ttimestamp:float\n" + rows)
        with printed_to(path), contextlib.chdir(place):
            run_recbole(
                model="BPR", dataset="toy",
                config_dict={
                    "data_path": place, "epochs": 10, "learning_rate": 0.01 * factor, "train_batch_size": 64,
                    "use_gpu": False, "show_progress": False, "load_col": {"inter": ["user_id", "item_id"]},
                    "checkpoint_dir": place, "eval_step": 2, "stopping_step": 100,
                },
            )  # fmt: skip


def speechbrain(factor: float, path: Path) -> None:
    """SpeechBrain's `train_log.txt`, written by its FileTrainLogger."""
    import speechbrain as sb
    import torch

    model, (train, held_out) = small_network(), loaders()

    class Brain(sb.Brain):  # type: ignore[misc]
        def compute_forward(self, batch: Any, stage: Any) -> Any:
            del stage
            return self.modules.network(batch[0])

        def compute_objectives(self, predictions: Any, batch: Any, stage: Any) -> Any:
            del stage
            return torch.nn.functional.cross_entropy(predictions, batch[1])

        def on_stage_end(self, stage: Any, stage_loss: float, epoch: int | None) -> None:
            if stage == sb.Stage.TRAIN:
                self.loss_of_epoch = stage_loss
            else:
                logger.log_stats(
                    {"epoch": epoch, "lr": 0.1 * factor},
                    train_stats={"loss": self.loss_of_epoch}, valid_stats={"loss": stage_loss},
                )  # fmt: skip

    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    logger = sb.utils.train_logger.FileTrainLogger(str(path), precision=4)
    Brain(
        {"network": model}, lambda weights: torch.optim.SGD(weights, 0.1 * factor), run_opts={"device": "cpu", "noprogressbar": True}
    ).fit(range(1, 9), train, held_out)  # fmt: skip


def torchtune(factor: float, path: Path) -> None:
    """torchtune's DiskLogger: the losses are those of the trackers."""
    from torchtune.training.metric_logging import DiskLogger

    folder = emptied(path)
    logger = DiskLogger(str(folder))
    for step, loss in enumerate(logged_losses(factor), start=1):
        logger.log_dict({"loss": loss, "lr": 0.001 * factor, "tokens_per_second_per_gpu": 100.0 + step}, step=step)
    logger.close()
    (log,) = folder.iterdir()
    log.rename(folder / "log.txt")


def acme(factor: float, path: Path) -> None:
    """Acme's terminal and table: the losses are those of the trackers."""
    from acme.utils.loggers import CSVLogger, TerminalLogger

    folder = emptied(path)
    with printed_to(path):
        terminal, table = TerminalLogger("learner", print_fn=print), CSVLogger(str(folder), "learner", add_uid=False)
        for step, loss in enumerate(logged_losses(factor)):
            row = {"learner_steps": step, "loss": loss, "learner_walltime": 0.5 * step}
            terminal.write(row)
            table.write(row)
        table.close()


def record_keeper(factor: float, path: Path) -> None:
    """record-keeper's tables, of PyTorch Metric Learning: the losses are those of the trackers."""
    from record_keeper import RecordKeeper, RecordWriter

    folder = emptied(path)
    keeper = RecordKeeper(record_writer=RecordWriter(str(folder)))
    for step, loss in enumerate(logged_losses(factor)):
        keeper.update_records({"loss": loss, "val_loss": loss + 0.1}, step, parent_name="training")
    keeper.save_records()


def composer(factor: float, path: Path) -> None:
    """Composer's console."""
    import torch
    from composer import Trainer
    from composer.loggers import FileLogger
    from composer.models import ComposerClassifier

    model, (train, held_out) = small_network(), loaders()
    with tempfile.TemporaryDirectory() as place, printed_to(path):
        Trainer(
            model=ComposerClassifier(model, num_classes=2), train_dataloader=train, eval_dataloader=held_out,
            max_duration="5ep", optimizers=torch.optim.SGD(model.parameters(), 0.1 * factor), device="cpu",
            progress_bar=False, log_to_console=True, console_log_interval="5ba", seed=0,
            loggers=[FileLogger(filename=f"{place}/log.txt", flush_interval=1)],
        ).fit()  # fmt: skip


def ctgan(factor: float, path: Path) -> None:
    """CTGAN's bar of a generator and a discriminator."""
    import pandas as pd
    import torch
    from ctgan import CTGAN

    torch.manual_seed(0)
    x, y = classes(200, 2)
    frame = pd.DataFrame(x, columns=["a", "b"])
    frame["label"] = y.astype(str)
    with printed_to(path):
        CTGAN(
            epochs=12, batch_size=100, pac=10, verbose=True, generator_lr=2e-4 * factor, discriminator_lr=2e-4 * factor,
            enable_gpu=False,
        ).fit(frame, ["label"])  # fmt: skip


def deepctr_torch(factor: float, path: Path) -> None:
    """DeepCTR-Torch's lines, of Keras' kind."""
    import numpy as np
    import torch
    from deepctr_torch.inputs import DenseFeat
    from deepctr_torch.models import DeepFM

    x, y = classes()
    names = [f"x{at}" for at in range(8)]
    features = [DenseFeat(name, 1) for name in names]
    model = DeepFM(features, features, task="binary", device="cpu", dnn_hidden_units=(16,), seed=0)
    model.compile(torch.optim.Adam(model.parameters(), 0.003 * factor), "binary_crossentropy", metrics=["binary_crossentropy", "auc"])
    with printed_to(path), contextlib.suppress(ValueError):  # its measures refuse NaN
        model.fit(
            {name: np.asarray(x[:, at]) for at, name in enumerate(names)}, y.astype("float32"), batch_size=32,
            epochs=8, verbose=2, validation_split=0.2,
        )  # fmt: skip


def pytorch_widedeep(factor: float, path: Path) -> None:
    """pytorch-widedeep's bars of training and validation."""
    import torch
    from pytorch_widedeep import Trainer
    from pytorch_widedeep.metrics import Accuracy
    from pytorch_widedeep.models import TabMlp, WideDeep

    x, y = classes()
    names = [f"x{at}" for at in range(8)]
    torch.manual_seed(0)
    model = WideDeep(
        deeptabular=TabMlp(column_idx={name: at for at, name in enumerate(names)}, continuous_cols=names, mlp_hidden_dims=[16])
    )
    with printed_to(path):
        Trainer(
            model, objective="binary", metrics=[Accuracy], seed=0, device="cpu", num_workers=0,
            optimizers=torch.optim.SGD(model.parameters(), 0.1 * factor),
        ).fit(X_tab=x, target=y, n_epochs=5, batch_size=32, val_split=0.2)  # fmt: skip


def stanza(factor: float, path: Path) -> None:
    """Stanza's lines of its tagger, a program of its own."""
    words = [("good", "ADJ"), ("dog", "NOUN"), ("bad", "ADJ"), ("cat", "NOUN"), ("runs", "VERB")]
    rows = []
    for at in range(120):
        chosen = [words[(at * step) % 5] for step in (1, 2, 3)]
        rows.append(
            "".join(
                f"{place}\t{word}\t{word}\t{tag}\t{tag}\t_\t{place - 1}\tdep\t_\t_\n"
                for place, (word, tag) in enumerate(chosen, start=1)
            )
        )
    with tempfile.TemporaryDirectory() as place:
        for name, part in (("train", rows[:100]), ("dev", rows[100:])):
            (Path(place) / f"{name}.conllu").write_text("\n".join(part) + "\n")
        with printed_to(path):
            subprocess.run(
                [
                    sys.executable, "-m", "stanza.models.tagger", "--mode", "train", "--train_file", "train.conllu",
                    "--eval_file", "dev.conllu", "--save_dir", ".", "--no_pretrain", "--lr",
                    str(0.003 * factor), "--max_steps", "120", "--eval_interval", "30", "--log_step", "10",
                    "--batch_size", "50", "--cpu", "--hidden_dim", "16", "--lang", "en", "--shorthand", "en_toy",
                    "--output_file", "out.conllu", "--tag_emb_dim", "8", "--word_emb_dim", "8", "--char_emb_dim", "8",
                    "--char_hidden_dim", "8", "--transformed_dim", "8", "--composite_deep_biaff_hidden_dim", "8",
                    "--deep_biaff_hidden_dim", "8",
                ],
                cwd=place, check=False,
            )  # fmt: skip


LIBRARIES: dict[str, Callable[[float, Path], None]] = {
    function.__name__: function
    for function in (
        neuralforecast, joeynmt, gluonts, recbole, speechbrain, torchtune, acme, record_keeper, composer, ctgan,
        deepctr_torch, pytorch_widedeep, stanza,
    )
}  # fmt: skip

if __name__ == "__main__":
    write_samples(LIBRARIES)
