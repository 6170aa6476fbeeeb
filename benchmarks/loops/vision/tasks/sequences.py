"""Forecasting, CTC speech, tagging and a character language model."""

from typing import Any

import torch
from torch import nn

from benchmarks.loops.vision import data
from benchmarks.loops.vision.config import Config
from benchmarks.loops.vision.task import Batch, Task, accuracy, cross_entropy, first_input
from benchmarks.loops.vision.tasks.layers import CausalTransformer, Each, Last


class TCN(nn.Module):
    """Dilated causal convolutions over (n, time, 1), of which the last place is read."""

    def __init__(self, outputs: int, width: int = 16) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(1 if k == 0 else width, width, 3, dilation=2**k) for k in range(4))
        self.head = nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Maps (n, time, 1) to (n, outputs)."""
        x = x.transpose(1, 2)
        for k, layer in enumerate(self.layers):
            x = torch.relu(layer(nn.functional.pad(x, (2 * 2**k, 0))))
        output: torch.Tensor = self.head(x[:, :, -1])
        return output


def mse(output: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Mean square error against the last tensor of the batch."""
    return nn.functional.mse_loss(output, batch[-1])


def mae(output: torch.Tensor, batch: Batch) -> dict[str, float]:
    """Mean absolute error against the last tensor of the batch."""
    return {"mae": (output - batch[-1]).abs().mean().item()}


def forecast(config: Config) -> Task:
    """The next four values of a mixture of sines, by an LSTM, a plain RNN or a TCN."""
    options: dict[str, Any] = {"cell": "lstm", "hidden": 24} | config.model
    count = config.data.get("n_train", 960)
    past = config.data.get("past", 32)
    train, val = (data.series(n, seed=config.seed + k, past=past) for k, n in ((0, count), (1000, 256)))
    hidden = options["hidden"]
    cells = {"lstm": nn.LSTM, "rnn": nn.RNN, "gru": nn.GRU}
    model = TCN(4, hidden) if options["cell"] == "tcn" else Last(cells[options["cell"]](1, hidden, batch_first=True), 4)
    return Task(model, list(train), list(val), first_input, mse, mae)


def ctc(log_probs: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Connectionist temporal classification (Graves et al. 2006), in nats per symbol; 0 is the blank."""
    _, lengths, target = batch
    spoken = (target > 0).sum(1)
    return nn.functional.ctc_loss(log_probs.transpose(0, 1), target, lengths, spoken, zero_infinity=True)


def symbol_errors(log_probs: torch.Tensor, batch: Batch) -> dict[str, float]:
    """Share of utterances whose greedy decoding is not exactly the target."""
    _, lengths, target = batch
    wrong = 0
    for path, length, symbols in zip(log_probs.argmax(2).tolist(), lengths.tolist(), target.tolist(), strict=True):
        best = path[:length]
        decoded = [s for k, s in enumerate(best) if s and (k == 0 or s != best[k - 1])]
        wrong += decoded != [s for s in symbols if s]
    return {"ser": wrong / len(target)}


def speech(config: Config) -> Task:
    """Symbols from speech-like frames by CTC over a GRU."""
    hidden = config.model.get("hidden", 32)
    count = config.data.get("n_train", 640)
    train, val = (data.utterances(n, seed=config.seed + k) for k, n in ((0, count), (1000, 128)))
    core = nn.GRU(10, hidden, batch_first=True, bidirectional=True)
    model = Each(nn.Identity(), core, nn.Sequential(nn.Linear(2 * hidden, 7), nn.LogSoftmax(dim=2)))
    return Task(model, list(train), list(val), first_input, ctc, symbol_errors)


def tagging(config: Config) -> Task:
    """The tag of each word, by a bidirectional GRU."""
    hidden = config.model.get("hidden", 24)
    count = config.data.get("n_train", 640)
    train, val = (data.tagged(n, seed=config.seed + k) for k, n in ((0, count), (1000, 128)))
    core = nn.GRU(16, hidden, batch_first=True, bidirectional=True)
    model = Each(nn.Embedding(40, 16), core, nn.Linear(2 * hidden, 6))
    return Task(model, list(train), list(val), first_input, cross_entropy, accuracy)


def charlm(config: Config) -> Task:
    """The next character of a text, by a GRU or a Transformer."""
    options: dict[str, Any] = {"cell": "gru", "hidden": 48, "layers": 2, "pre_norm": True} | config.model
    text = dict(config.data)
    count = text.pop("n_train", 960)
    letters = text.get("letters", 20)
    train, val = (data.characters(n, seed=config.seed + k, **text) for k, n in ((0, count), (1000, 128)))
    hidden = options["hidden"]
    core: nn.Module = nn.GRU(hidden, hidden, batch_first=True)
    if options["cell"] == "transformer":
        core = CausalTransformer(hidden, options["layers"], pre_norm=options["pre_norm"])
    model = Each(nn.Embedding(letters, hidden), core, nn.Linear(hidden, letters))
    pairs = [[part[:, :-1].contiguous(), part[:, 1:].contiguous()] for part in (train, val)]
    return Task(model, pairs[0], pairs[1], first_input, cross_entropy, accuracy)
