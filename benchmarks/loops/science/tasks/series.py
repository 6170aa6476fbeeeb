"""Sequences of numbers: forecasts of demand, the adding problem, a spiral's differential equation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from benchmarks.loops.science.task import Rows, Task, Terms, bug
from benchmarks.loops.science.tasks.tables import mlp


class Recurrent(nn.Module):
    """A recurrent layer, read out at its last step."""

    def __init__(self, inputs: int, hidden: int, outputs: int, cell: str) -> None:
        super().__init__()
        kind = nn.RNN if cell == "rnn" else nn.GRU
        self.cell = kind(inputs, hidden, batch_first=True)
        self.head = nn.Linear(hidden, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Return one vector a sequence."""
        last: Tensor = self.head(self.cell(x)[0][:, -1])
        return last


@dataclass
class Forecast(Task):
    """Hourly demand with a day, a week and a trend: 24 hours in, `horizon` out."""

    name: ClassVar[str] = "demand_forecast"
    rows: int = 768
    cell: str = "gru"
    hidden: int = 24
    horizon: int = 6
    noise: float = 0.15
    mape_loss: bool = False
    copied_target: bool = bug(default=False)
    raw_held: bool = bug(default=False)
    leaked: bool = bug(default=False)

    def setup(self, seed: int) -> None:
        """Draw the series, cut windows, and draw the model."""
        torch.manual_seed(seed)
        self.model = Recurrent(1, self.hidden, self.horizon, self.cell)
        hours = torch.arange(self.rows + 400).float()
        self.series = torch.sin(hours * 2 * torch.pi / 24) + 0.5 * torch.sin(hours * 2 * torch.pi / 168)
        self.series += hours / 800 + self.noise * torch.randn(len(hours))
        starts = torch.arange(self.rows)
        self.data = self._windows(starts)
        later = starts[-256:] - 3 if self.leaked else torch.arange(self.rows + 24, self.rows + 280)
        self.held = self._windows(later)
        if self.raw_held:
            self.held["x"] = self.held["x"] * 6 + 20

    def _windows(self, starts: Tensor) -> Rows:
        offset = 24 - self.horizon if self.copied_target else 24
        x = self.series[starts[:, None] + torch.arange(24)]
        y = self.series[starts[:, None] + torch.arange(offset, offset + self.horizon)]
        return {"x": x[..., None], "y": y}

    def loss(self, rows: Rows) -> tuple[Tensor, Terms]:
        """Return the squared, or the relative absolute, error."""
        guess = self.model(rows["x"])
        if self.mape_loss:
            return ((guess - rows["y"]) / rows["y"].round(decimals=1)).abs().mean(), {}
        return (guess - rows["y"]).square().mean(), {}

    def measure(self, rows: Rows) -> dict[str, float]:
        """Add MAE, and MASE against the value of the last hour."""
        miss = (self.model(rows["x"]) - rows["y"]).abs().mean()
        naive = (rows["x"][:, -1] - rows["y"]).abs().mean()
        return super().measure(rows) | {"mae": float(miss), "mase": float(miss / naive)}


@dataclass
class Adding(Task):
    """The adding problem: the sum of two marked numbers in a sequence; the guess of 1 costs 0.167."""

    name: ClassVar[str] = "adding_problem"
    rows: int = 1024
    length: int = 20
    cell: str = "gru"
    hidden: int = 32
    gain: float = bug(default=1.0)

    def setup(self, seed: int) -> None:
        """Draw the rows and the model."""
        torch.manual_seed(seed)
        self.model = Recurrent(2, self.hidden, 1, self.cell)
        for name, parameter in self.model.named_parameters():
            if "weight_hh" in name:
                parameter.data.mul_(self.gain)
        self.data, self.held = self._rows(self.rows), self._rows(256)

    def _rows(self, count: int) -> Rows:
        values, marks = torch.rand(count, self.length), torch.zeros(count, self.length)
        first = torch.randint(0, self.length // 2, (count, 1))
        second = torch.randint(self.length // 2, self.length, (count, 1))
        marks.scatter_(1, first, 1.0).scatter_(1, second, 1.0)
        return {"x": torch.stack([values, marks], 2), "y": (values * marks).sum(1)}

    def loss(self, rows: Rows) -> tuple[Tensor, Terms]:
        """Return the squared error."""
        return (self.model(rows["x"])[:, 0] - rows["y"]).square().mean(), {}

    def measure(self, rows: Rows) -> dict[str, float]:
        """Add the share of sums within 0.1."""
        close = (self.model(rows["x"])[:, 0] - rows["y"]).abs() < 0.1
        return super().measure(rows) | {"within_0.1": float(close.float().mean())}


@dataclass
class Spiral(Task):
    """A neural differential equation of a damped spiral, integrated by Runge-Kutta of order four."""

    name: ClassVar[str] = "neural_ode"
    rows: int = 256
    hidden: int = 32
    solver_steps: int = 8
    dt: float = 0.15
    rate: float = 1.0

    def setup(self, seed: int) -> None:
        """Draw the trajectories and the model."""
        torch.manual_seed(seed)
        self.model = mlp(2, self.hidden, 2, 2, activation="tanh")
        turn = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
        starts = torch.rand(self.rows + 64, 2) * 4 - 2
        path = self._solve(starts, lambda z: z.pow(3) @ turn.T * 0.3)
        noisy = path + 0.02 * torch.randn_like(path)
        self.data = {"x": starts[:-64], "y": noisy[:-64]}
        self.held = {"x": starts[-64:], "y": noisy[-64:]}

    def _solve(self, state: Tensor, field: Callable[[Tensor], Tensor]) -> Tensor:
        path, step = [], self.dt * self.rate
        for _ in range(self.solver_steps):
            a = field(state)
            b = field(state + step / 2 * a)
            c = field(state + step / 2 * b)
            state = state + step / 6 * (a + 2 * b + 2 * c + field(state + step * c))
            path.append(state)
        return torch.stack(path, 1)

    def loss(self, rows: Rows) -> tuple[Tensor, Terms]:
        """Return the squared distance to the observed path."""
        return (self._solve(rows["x"], self.model) - rows["y"]).square().mean(), {}

    def measure(self, rows: Rows) -> dict[str, float]:
        """Add the distance at the path's end."""
        last = self._solve(rows["x"], self.model)[:, -1]
        return super().measure(rows) | {"final_rmse": float((last - rows["y"][:, -1]).square().mean().sqrt())}
