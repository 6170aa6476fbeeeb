"""Train a library for text, speech, series or tables as it should be and with a far too high learning rate.

Run as `python -m benchmarks.samples.libraries LIBRARY FOLDER` with the package installed; see
`benchmarks/samples/frameworks.py` for what is kept.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.samples.frameworks import classes, logged_losses, printed_to, write_samples
from benchmarks.samples.trainers import emptied

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
  normalization: tokens, scheduling: exponential, decrease_factor: 0.99, epochs: 6, validation_freq: 20,
  logging_freq: 5, early_stopping_metric: loss,
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
    """JoeyNMT's lines and the validations between them, without the configuration and the bars of decoding."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        written_pairs(folder)
        (folder / "c.yaml").write_text(JOEYNMT.replace("RATE", str(0.003 * factor)))
        run = [sys.executable, "-m", "joeynmt", "train", "c.yaml", "--skip-test"]
        with printed_to(path):
            subprocess.run(run, cwd=folder, check=False)
    lines = path.read_bytes().decode().splitlines(keepends=True)
    kept = (line for line in lines if "joeynmt.config" not in line and "Predicting" not in line)
    path.write_bytes("".join(kept).encode())


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


def record_keeper(factor: float, path: Path) -> None:
    """record-keeper's tables, of PyTorch Metric Learning: the losses are those of the trackers."""
    from record_keeper import RecordKeeper, RecordWriter

    folder = emptied(path)
    keeper = RecordKeeper(record_writer=RecordWriter(str(folder)))
    for step, loss in enumerate(logged_losses(factor)):
        keeper.update_records({"loss": loss, "val_loss": loss + 0.1}, step, parent_name="training")
    keeper.save_records()


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
    model.compile(
        torch.optim.Adam(model.parameters(), 0.003 * factor),
        "binary_crossentropy",
        metrics=["binary_crossentropy", "auc"],
    )
    with printed_to(path), contextlib.suppress(ValueError):  # its measures refuse NaN
        model.fit(
            {name: np.asarray(x[:, at]) for at, name in enumerate(names)}, y.astype("float32"), batch_size=32,
            epochs=8, verbose=2, validation_split=0.2,
        )  # fmt: skip


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


OPENNMT = """
save_data: .
src_vocab: vocab
tgt_vocab: vocab
data: {corpus: {path_src: train.a, path_tgt: train.b}, valid: {path_src: dev.a, path_tgt: dev.b}}
save_model: model
train_steps: 120
valid_steps: 30
report_every: 10
save_checkpoint_steps: 1000
seed: 1
num_workers: 0
batch_type: sents
batch_size: 16
bucket_size: 320
optim: adam
learning_rate: RATE
decay_method: none
encoder_type: transformer
decoder_type: transformer
layers: 1
heads: 2
hidden_size: 16
word_vec_size: 16
transformer_ff: 32
dropout: [0.0]
attention_dropout: [0.0]
"""


def written_pairs(folder: Path) -> None:
    """Write sentences of three words and the same from back to front, for training and validation."""
    for name, count in (("train", 320), ("dev", 32)):
        rows = [[f"w{(i * k) % 9}" for k in (1, 2, 3)] for i in range(count)]
        (folder / f"{name}.a").write_text("".join(" ".join(row) + "\n" for row in rows))
        (folder / f"{name}.b").write_text("".join(" ".join(reversed(row)) + "\n" for row in rows))


def opennmt(factor: float, path: Path) -> None:
    """OpenNMT-py's lines, of a program of its own."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        written_pairs(folder)
        (folder / "vocab").write_text("".join(f"w{i}\t100\n" for i in range(9)))
        (folder / "c.yaml").write_text(OPENNMT.replace("RATE", str(0.003 * factor)))
        with printed_to(path):
            subprocess.run([sys.executable, "-m", "onmt.bin.train", "-config", "c.yaml"], cwd=folder, check=False)


def neuralforecast(factor: float, path: Path) -> None:
    """NeuralForecast's MLP, with the table of Lightning's logger."""
    import lightning.pytorch as lightning
    import numpy as np
    import pandas as pd
    from neuralforecast import NeuralForecast
    from neuralforecast.models import MLP

    frame = pd.DataFrame(
        {"unique_id": "a", "ds": pd.date_range("2020-01-01", periods=300), "y": np.sin(np.arange(300) / 5) + 2}
    )
    folder = emptied(path)
    model = MLP(
        h=7, input_size=14, max_steps=80, learning_rate=1e-3 * factor, num_layers=1, hidden_size=16, batch_size=4,
        val_check_steps=20, early_stop_patience_steps=-1, accelerator="cpu", enable_progress_bar=False,
        log_every_n_steps=5, logger=lightning.loggers.CSVLogger(str(folder), name="", version=""), random_seed=0,
    )  # fmt: skip
    with printed_to(path):
        NeuralForecast(models=[model], freq="D").fit(frame, val_size=14)
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)


def setfit(factor: float, path: Path) -> None:
    """SetFit's lines, of a network made here: no weights are fetched."""
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer, models
    from setfit import SetFitHead, SetFitModel, Trainer, TrainingArguments
    from tokenizers import Tokenizer, pre_tokenizers
    from tokenizers.models import WordLevel
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "bad", *(f"w{i}" for i in range(20))]
    special = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token"), words, strict=False))
    tokenizer = Tokenizer(WordLevel({word: at for at, word in enumerate(words)}, unk_token=special["unk_token"]))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    texts = [f"{'good' if i % 2 else 'bad'} w{i % 20} w{i * 7 % 20}" for i in range(40)]
    rows = Dataset.from_dict({"text": texts, "label": [i % 2 for i in range(40)]})
    with tempfile.TemporaryDirectory() as place:
        PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(place)
        BertModel(
            BertConfig(
                vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
            )
        ).save_pretrained(place)
        transformer = models.Transformer(place)
        body = SentenceTransformer(modules=[transformer, models.Pooling(16)], device="cpu")
        model = SetFitModel(model_body=body, model_head=SetFitHead(16, 2), labels=[0, 1])
        with printed_to(path):
            Trainer(
                model,
                TrainingArguments(
                    output_dir=place, batch_size=16, num_epochs=1, num_iterations=4, body_learning_rate=1e-3 * factor,
                    logging_steps=2, eval_strategy="steps", eval_steps=5, save_strategy="no", report_to="none", seed=0,
                ),
                rows, rows,
            ).train()  # fmt: skip


LIBRARIES: dict[str, Callable[[float, Path], None]] = {
    function.__name__: function
    for function in (
        joeynmt, gluonts, record_keeper, ctgan, deepctr_torch, stanza, opennmt,
        neuralforecast, setfit,
    )
}  # fmt: skip

if __name__ == "__main__":
    write_samples(LIBRARIES)
