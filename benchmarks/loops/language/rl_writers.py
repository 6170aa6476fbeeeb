"""Logs of reinforcement learning: verl's lines, CleanRL's prints and boards, Stable-Baselines' tables, JSON lines."""

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

from benchmarks.loops.language import saved
from benchmarks.loops.language.task import Record


class RlWriter(ABC):
    """A log folder of an agent."""

    file = "train.log"

    def __init__(self, folder: Path, args: str = "") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.args = folder, args
        self.begun = time.perf_counter()
        self.history: list[Record] = []

    def line(self, text: str) -> None:
        """Add a line to the log file."""
        with (self.folder / self.file).open("a", encoding="utf-8") as file:
            file.write(text + "\n")

    def start(self, settings: Mapping[str, object]) -> None:
        """Save the settings."""
        if self.args:
            saved.save(self.folder, self.args, "rl", dict(settings), self.line)

    def row(self, step: int, record: Record) -> None:
        """Log one record."""
        self.history.append({"step": float(step)} | record)
        self.write(step, record)

    @abstractmethod
    def write(self, step: int, record: Record) -> None:
        """Write one record."""

    def close(self) -> None:  # noqa: B027 - most have nothing to finish
        """Finish the files."""


class Verl(RlWriter):
    """step:n - name:value - ..."""

    def write(self, step: int, record: Record) -> None:
        """All metrics in one line."""
        self.line(f"step:{step} - " + " - ".join(f"{name}:{value:.6g}" for name, value in record.items()))


class Lines(RlWriter):
    """JSON lines."""

    file = "metrics.jsonl"

    def write(self, step: int, record: Record) -> None:
        """One object per record."""
        self.line(json.dumps({"step": step} | {name: round(value, 6) for name, value in record.items()}))


class CleanRl(RlWriter):
    """Prints of returns and speed, and a TensorBoard file with the rest."""

    file = "stdout.txt"

    def start(self, settings: Mapping[str, object]) -> None:
        """Open the board, with the settings as a text table where they are saved."""
        from torch.utils.tensorboard import SummaryWriter

        self.board = SummaryWriter(str(self.folder))
        super().start(settings)
        if self.args:
            table = "\n".join(f"|{name}|{value}|" for name, value in settings.items())
            self.board.add_text("hyperparameters", f"|param|value|\n|-|-|\n{table}")

    def write(self, step: int, record: Record) -> None:
        """Scalars, and a print of the return."""
        for name, value in record.items():
            self.board.add_scalar(name, value, step)
        if "charts/episodic_return" in record:
            self.line(f"global_step={step}, episodic_return={record['charts/episodic_return']:.4f}")
        self.line(f"SPS: {int(step / max(1e-9, time.perf_counter() - self.begun))}")

    def close(self) -> None:
        """Flush the board."""
        self.board.close()


class Tables(RlWriter):
    """Boxes of sections and values, as Stable-Baselines prints them."""

    file = "monitor_stdout.log"

    def write(self, step: int, record: Record) -> None:
        """One box."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, value in (record | {"time/total_timesteps": float(step)}).items():
            section, _, key = name.partition("/")
            known = {"charts": "rollout", "losses": "train"}.get(section, section)
            key = {"episodic_return": "ep_rew_mean", "episodic_length": "ep_len_mean"}.get(key, key)
            shown = f"{value:.0f}" if value == int_of(value) and abs(value) < 1e7 else f"{value:.3g}"
            sections.setdefault(f"{known}/", []).append((key, shown))
        wide = max(len(key) for rows in sections.values() for key, _ in rows) + 5
        rule = "-" * (wide + 19)
        self.line(rule)
        for section in sorted(sections):
            self.line(f"| {section:<{wide}} | {'':<11} |")
            for key, shown in sections[section]:
                self.line(f"| {'   ' + key:<{wide}} | {shown:<11} |")
        self.line(rule)


def int_of(value: float) -> float:
    """The whole part; NaN and infinity have none."""
    return float(int(value)) if abs(value) < 1e15 else float("nan")
