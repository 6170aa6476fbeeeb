"""Sound and biosignals: symbols by CTC, classes of sounds, stages of sleep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.science.metrics import edit_distance
from benchmarks.loops.science.task import Rows, Task, Terms, bug

SYMBOLS = 6


class FrameTagger(nn.Module):
    """A recurrent layer in both directions with a score for each symbol and frame."""

    def __init__(self, inputs: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.cell = nn.GRU(inputs, hidden, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits of each frame."""
        logits: Tensor = self.head(self.cell(x)[0])
        return logits


@dataclass
class Speech(Task):
    """Utterances of three to five symbols, each a few noisy frames of its own spectrum, learnt by CTC."""

    name: ClassVar[str] = "speech_ctc"
    rows: int = 384
    frames: int = 24
    hidden: int = 32
    noise: float = 0.3
    zero_infinity: bool = True
    wrong_blank: bool = bug(default=False)

    def setup(self, seed: int) -> None:
        """Draw the utterances and the model."""
        torch.manual_seed(seed)
        self.model = FrameTagger(8, self.hidden, SYMBOLS + 1)
        self.spectra = torch.randn(SYMBOLS + 1, 8)
        self.data, self.held = self._rows(self.rows), self._rows(64)

    def _rows(self, count: int) -> Rows:
        length = torch.randint(3, 6, (count,))
        text = torch.randint(1, SYMBOLS + 1, (count, 5))
        place = torch.arange(self.frames)[None, :] * 5 // self.frames
        spoken = torch.where(place < length[:, None], text.gather(1, place.expand(count, -1)), 0)
        x = self.spectra[spoken] + self.noise * torch.randn(count, self.frames, 8)
        return {"x": x, "text": text, "length": length}

    def loss(self, rows: Rows) -> tuple[Tensor, Terms]:
        """Return the CTC loss a symbol."""
        scores = self.model(rows["x"]).float().log_softmax(2).transpose(0, 1)
        frames = torch.full_like(rows["length"], self.frames)
        value = functional.ctc_loss(scores, rows["text"], frames, rows["length"], zero_infinity=self.zero_infinity)
        return value, {}

    def measure(self, rows: Rows) -> dict[str, float]:
        """Add the error rate of greedily decoded symbols."""
        best = self.model(rows["x"]).argmax(2)
        blank, wrong = (SYMBOLS if self.wrong_blank else 0), 0
        for path, text, length in zip(best.tolist(), rows["text"].tolist(), rows["length"].tolist(), strict=True):
            spoken = [a for a, b in zip(path, [None, *path], strict=False) if a not in {b, blank}]
            wrong += edit_distance(spoken, text[:length])
        return super().measure(rows) | {"cer": wrong / int(rows["length"].sum())}


@dataclass
class Audio(Task):
    """Ten kinds of sounds (two tones each, in noise), seen as spectra by a small convolution."""

    name: ClassVar[str] = "audio_classification"
    rows: int = 512
    classes: int = 10
    channels: int = 12
    dropout: float = 0.0
    batch_norm: bool = True
    noise: float = 1.0
    softmax_twice: bool = bug(default=False)

    def setup(self, seed: int) -> None:
        """Draw the sounds and the model."""
        torch.manual_seed(seed)
        norm: nn.Module = nn.BatchNorm1d(self.channels) if self.batch_norm else nn.Identity()
        first = nn.Conv1d(1, self.channels, 5, stride=2)
        layers = [first, norm, nn.ReLU(), nn.Flatten(), nn.Dropout(self.dropout)]
        self.model = nn.Sequential(*layers, nn.Linear(self.channels * 30, 48), nn.ReLU(), nn.Linear(48, self.classes))
        self.tones = torch.randint(3, 60, (self.classes, 2)).float()
        self.data, self.held = self._rows(self.rows), self._rows(256)

    def _rows(self, count: int) -> Rows:
        y = torch.randint(0, self.classes, (count,))
        time = torch.arange(128) / 128
        tones = self.tones[y] * (1 + 0.02 * torch.randn(count, 2))
        wave = torch.sin(2 * torch.pi * tones[:, :, None] * time + 6.3 * torch.rand(count, 2, 1)).sum(1)
        wave = wave + self.noise * torch.randn(count, 128)
        return {"x": torch.fft.rfft(wave).abs()[:, 1:].log1p()[:, None] - 2.0, "y": y}

    def loss(self, rows: Rows) -> tuple[Tensor, Terms]:
        """Return the cross-entropy."""
        logits = self.model(rows["x"]).float()
        return functional.cross_entropy(logits.softmax(1) if self.softmax_twice else logits, rows["y"]), {}

    def measure(self, rows: Rows) -> dict[str, float]:
        """Add the accuracy."""
        guess = self.model(rows["x"]).argmax(1)
        return super().measure(rows) | {"acc": float((guess == rows["y"]).float().mean())}


@dataclass
class Sleep(Task):
    """Stages of sleep, one of four a window, in nights of unlike length that are padded to the longest."""

    name: ClassVar[str] = "sleep_staging"
    rows: int = 384
    windows: int = 40
    hidden: int = 16
    ignore_index: int = -100
    noise: float = 1.0
    padding_counts: bool = bug(default=False)
    all_ignored: bool = bug(default=False)

    def setup(self, seed: int) -> None:
        """Draw the nights and the model."""
        torch.manual_seed(seed)
        self.model = FrameTagger(6, self.hidden, 4)
        self.bands = torch.randn(4, 6)
        self.data, self.held = self._rows(self.rows), self._rows(128)

    def _rows(self, count: int) -> Rows:
        change = (torch.rand(count, self.windows) < 0.3).long()
        stage = (change * torch.randint(1, 4, change.shape)).cumsum(1) % 4
        x = self.bands[stage] + self.noise * torch.randn(count, self.windows, 6)
        valid = torch.arange(self.windows) < torch.randint(5, self.windows // 2, (count, 1))
        return {"x": x * valid[..., None], "y": stage, "valid": valid}

    def loss(self, rows: Rows) -> tuple[Tensor, Terms]:
        """Return the cross-entropy over windows that are no padding."""
        target = rows["y"].masked_fill(~rows["valid"], 0 if self.padding_counts else self.ignore_index)
        if self.all_ignored:
            target = target.masked_fill(rows["valid"], self.ignore_index)
        counted = (target != self.ignore_index).float().mean()
        return functional.cross_entropy(self.model(rows["x"]).float().flatten(0, 1), target.flatten()), {
            "label_frac": counted
        }

    def measure(self, rows: Rows) -> dict[str, float]:
        """Add the accuracy over true windows, and Cohen's kappa."""
        guess, truth = self.model(rows["x"]).argmax(2)[rows["valid"]], rows["y"][rows["valid"]]
        agree = float((guess == truth).float().mean())
        shares = [float((guess == k).float().mean()) * float((truth == k).float().mean()) for k in range(4)]
        return super().measure(rows) | {"acc": agree, "kappa": (agree - sum(shares)) / (1 - sum(shares))}
