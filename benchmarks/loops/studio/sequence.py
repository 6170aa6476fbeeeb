"""Time series forecasting and speech-like sequences with CTC."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.studio import data
from benchmarks.loops.studio.core import Values
from benchmarks.loops.studio.loop import Batch, Bench, LossFn, MetricFn


class Recurrent(nn.Module):
    """A recurrent net that predicts the next value at every moment."""

    def __init__(self, width: int = 24, kind: str = "gru", gain: float = 0.0, *, both: bool = False) -> None:
        super().__init__()
        self.rnn: nn.RNNBase
        if kind == "rnn":
            self.rnn = nn.RNN(1, width, batch_first=True, bidirectional=both, nonlinearity="relu")
        else:
            self.rnn = nn.GRU(1, width, batch_first=True, bidirectional=both)
        self.out = nn.Linear(width * (1 + both), 1)
        if gain:
            nn.init.orthogonal_(self.rnn.get_parameter("weight_hh_l0"), gain)

    def forward(self, x: Tensor) -> Tensor:
        """Predictions (B,T) from values (B,T)."""
        out: Tensor = self.out(self.rnn(x[..., None])[0])[..., 0]
        return out


class Attention(nn.Module):
    """A small causal Transformer over time, with the norm before or after each part."""

    def __init__(self, width: int = 24, depth: int = 2, *, post: bool = False) -> None:
        super().__init__()
        self.embed = nn.Linear(1, width)
        self.place = nn.Parameter(0.1 * torch.randn(64, width))
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 2 * width, 0.0, batch_first=True, norm_first=not post)
            for _ in range(depth)
        )
        self.out = nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Predictions (B,T) from values (B,T)."""
        h = self.embed(x[..., None]) + self.place[: x.shape[1]]
        size = x.shape[1]
        mask = torch.full((size, size), float("-inf")).triu(1)
        for block in self.blocks:
            h = block(h, src_mask=mask)
        out: Tensor = self.out(h)[..., 0]
        return out


def next_value(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    """Squared error of the next value."""
    x = batch[0]
    return {"loss": functional.mse_loss(model(x[:, :-1])[:, 4:], x[:, 5:])}


def same_value(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    """Squared error against the values that were put in."""
    x = batch[0][:, :-1]
    return {"loss": functional.mse_loss(model(x)[:, 4:], x[:, 4:])}


def rollout(model: nn.Module, x: Tensor, ahead: int = 6) -> Tensor:
    """Forecast the last values from the model's own outputs."""
    seen = x[:, :-ahead]
    for _ in range(ahead):
        seen = torch.cat([seen, model(seen)[:, -1:]], 1)
    return seen[:, -ahead:]


def errors(loss: LossFn = next_value, horizon: bool = True) -> MetricFn:
    """Metrics: the loss, and MAE and MAPE of a forecast of six values."""

    def metrics(model: nn.Module, batch: Batch) -> Values:
        x = batch[0]
        out = {"loss": loss(model, batch)["loss"].item()}
        if horizon:
            made, want = rollout(model, x), x[:, -6:]
            out["mae_h6"] = (made - want).abs().mean().item()
            out["mape_h6"] = 100 * ((made - want).abs() / (want.abs() + 0.5)).mean().item()
        return out

    return metrics


def forecast(
    seed: int,
    net: nn.Module | None = None,
    *,
    count: int = 500,
    loss: LossFn = next_value,
    horizon: bool = True,
    noise: float = 0.15,
    length: int = 24,
) -> Bench:
    """Next-value training on windows of waves."""
    torch.manual_seed(seed)
    x, e = data.series(count, seed, length, noise), data.series(200, seed + 5000, length, noise)
    return Bench(
        net or Recurrent(),
        (x,),
        {"val": (e,)},
        loss,
        errors(loss, horizon),
        {"model": "gru_forecaster" if net is None else "seq_forecaster", "context": length, "horizon": 6},
    )


class Listener(nn.Module):
    """A recurrent acoustic model with CTC outputs; class 0 is the blank."""

    def __init__(self, width: int = 32, symbols: int = 7) -> None:
        super().__init__()
        self.front = nn.Linear(8, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, symbols)

    def forward(self, x: Tensor) -> Tensor:
        """Frames (B,T,8) to log-probabilities (B,T,S)."""
        return functional.log_softmax(self.out(self.rnn(functional.relu(self.front(x)))[0]), -1)


def ctc_loss(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    """CTC, as the sum over the utterance (mean over the batch)."""
    x, y, frames, length = batch
    cut = int(frames.max())
    logp = model(x[:, :cut])
    return {"loss_ctc_": functional.ctc_loss(logp.transpose(0, 1), y, frames, length, reduction="sum") / len(x)}


def plain_ctc(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    """The CTC loss under the key that is trained on."""
    return {"loss": ctc_loss(model, batch)["loss_ctc_"]}


def greedy(logp: Tensor, frames: Tensor, blank: int = 0) -> list[list[int]]:
    """Best path without repeats and blanks."""
    out = []
    for whole, count in zip(logp.argmax(-1).tolist(), frames.tolist(), strict=True):
        row = whole[:count]
        kept = [s for i, s in enumerate(row) if s != blank and (i == 0 or s != row[i - 1])]
        out.append(kept)
    return out


def edits(a: list[int], b: list[int]) -> int:
    """Edit distance."""
    line = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, line[0] = line[0], i
        for j, y in enumerate(b, 1):
            last, line[j] = line[j], min(line[j] + 1, line[j - 1] + 1, last + (x != y))
    return line[-1]


def ctc(
    seed: int,
    count: int = 400,
    *,
    low: int = 3,
    high: int = 6,
    blank: int = 0,
    shuffle: bool = False,
) -> Bench:
    """Utterances of a few symbols; the metric is the error rate of symbols."""
    torch.manual_seed(seed)
    train = data.speech(count, seed, low=low, high=high)
    if shuffle:
        train = (train[0], train[1][torch.randperm(count)], *train[2:])

    def metrics(model: nn.Module, batch: Batch) -> Values:
        x, y, frames, length = batch
        made = greedy(model(x), frames, blank)
        want = [row[:n] for row, n in zip(y.tolist(), length.tolist(), strict=True)]
        wrong = sum(edits(a, b) for a, b in zip(made, want, strict=True))
        return {"loss": plain_ctc(model, batch)["loss"].item(), "cer": wrong / int(length.sum())}

    return Bench(
        Listener(),
        train,
        {"val": data.speech(120, seed + 5000, low=low, high=high)},
        plain_ctc,
        metrics,
        {"model": "gru_ctc", "vocab": 7, "blank_id": 0},
    )
