"""Logs that are text: of the logging module, of tqdm and rich, and of some well-known scripts' manner."""

import logging
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from rich.console import Console
from tqdm import tqdm  # type: ignore[import-untyped]

from benchmarks.loops.vision.loggers.base import Logger, Row, number

LINE_NUMBERS = {"step": 118, "epoch": 141, "say": 37}


def evaluation(row: Row) -> Row:
    """The measured values of an epoch's row."""
    return {k: v for k, v in row.items() if k not in ("epoch", "step", "lr", "epoch_time")}


class TextLogger(Logger):
    """One text file."""

    name = "train.log"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.out: TextIO = (folder / self.name).open("w")

    def say(self, text: str) -> None:
        """A line of its own."""
        self.out.write(text + "\n")

    def close(self) -> None:
        """Closes the file."""
        self.out.close()


class PythonLogging(TextLogger):
    """The standard library's logging with a time, a name and a level."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        handler = logging.StreamHandler(self.out)
        handler.setFormatter(logging.Formatter("%(asctime)s - %(name)s - %(levelname)s - %(message)s"))
        self.logger = logging.Logger("train", logging.INFO)
        self.logger.addHandler(handler)

    def say(self, text: str) -> None:
        """Through the logger, like the rest."""
        self.logger.info(text)

    def step(self, row: Row) -> None:
        """Epoch and batch in brackets, then the values."""
        values = " ".join(f"{k}: {number(v)}" for k, v in self.picked(row).items())
        place = f"Epoch [{row['epoch'] + 1:.0f}/{self.epochs}] Step [{row['batch'] + 1:.0f}/{self.per_epoch}]"
        self.logger.info("%s %s", place, values)

    def epoch(self, row: Row) -> None:
        """The means of the epoch."""
        values = ", ".join(f"{k}: {number(v)}" for k, v in evaluation(row).items())
        self.logger.info("Epoch %d finished in %.1fs - %s", row["epoch"] + 1, row["epoch_time"], values)


class Loguru(TextLogger):
    """Loguru's default layout."""

    name = "run.log"

    def _write(self, where: str, text: str) -> None:
        now = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3]
        self.out.write(f"{now} | INFO     | __main__:{where}:{LINE_NUMBERS[where]} - {text}\n")

    def say(self, text: str) -> None:
        """Under the same head as the rest."""
        self._write("say", text)

    def step(self, row: Row) -> None:
        """Pairs of name and value."""
        self._write("step", f"step={row['step']:.0f} " + " ".join(f"{k}={v:.5g}" for k, v in self.picked(row).items()))

    def epoch(self, row: Row) -> None:
        """Pairs of name and value."""
        self._write(
            "epoch", f"epoch={row['epoch']:.0f} " + " ".join(f"{k}={v:.5g}" for k, v in evaluation(row).items())
        )


class Tqdm(TextLogger):
    """A progress bar for each epoch, caught in a file, with a line of means below."""

    name = "nohup.out"
    bar: "tqdm[None] | None" = None

    def step(self, row: Row) -> None:
        """Moves the bar to this batch."""
        if self.bar is None:
            self.bar = tqdm(
                total=self.per_epoch, desc=f"Epoch {row['epoch']:.0f}", file=self.out, mininterval=0, ncols=110
            )
        self.bar.set_postfix({k: f"{v:.4g}" for k, v in self.picked(row).items()}, refresh=False)
        self.bar.update(int(row["batch"]) + 1 - self.bar.n)

    def epoch(self, row: Row) -> None:
        """Ends the bar and writes the means."""
        if self.bar is not None:
            self.bar.update(self.per_epoch - self.bar.n)
            self.bar.close()
            self.bar = None
        self.out.write(
            " | ".join(f"{k} {number(v)}" for k, v in ({"epoch": row["epoch"]} | evaluation(row)).items()) + "\n"
        )


class RichConsole(TextLogger):
    """rich's console log with its column of times."""

    name = "console.txt"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.console = Console(file=self.out, width=150, log_path=False)

    def step(self, row: Row) -> None:
        """One line each."""
        values = "  ".join(f"{k} {number(v)}" for k, v in self.picked(row).items())
        self.console.log(f"epoch {row['epoch']:.0f} step {row['step']:.0f}  {values}")

    def epoch(self, row: Row) -> None:
        """One line each."""
        values = "  ".join(f"{k} {number(v)}" for k, v in evaluation(row).items())
        self.console.log(f"[bold]epoch {row['epoch']:.0f} done[/bold]  {values}")


class Prints(TextLogger):
    """Bare prints in the manner of a first tutorial: a running mean since the last print."""

    name = "output.txt"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.say(f"started {time.strftime('%c')}")

    def step(self, row: Row) -> None:
        """Epoch, batch, loss; the other columns behind."""
        values = self.picked(row)
        more = "".join(f" {k}: {number(v)}" for k, v in values.items() if k != "loss")
        self.say(f"[{row['epoch'] + 1:.0f}, {row['batch'] + 1:5.0f}] loss: {row['loss']:.3f}{more}")

    def epoch(self, row: Row) -> None:
        """One sentence for each measure."""
        values = ", ".join(f"{k.replace('_', ' ')} {v:.4f}" for k, v in evaluation(row).items())
        self.say(f"==> epoch {row['epoch'] + 1:.0f}: {values}")


class MetricLines(TextLogger):
    """Epoch lines with a smoothed value and the mean so far in parentheses, and a Test line."""

    name = "log.txt"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.seen: dict[str, list[float]] = {}

    def step(self, row: Row) -> None:
        """The median of the last 20 values and the mean of the epoch."""
        cells = []
        for name, value in self.picked(row).items():
            if name == "lr":
                cells.append(f"lr: {value:.6f}")
                continue
            values = self.seen.setdefault(name, [])
            values.append(value)
            cells.append(
                f"{name}: {sorted(values[-20:])[len(values[-20:]) // 2]:.4f} ({sum(values) / len(values):.4f})"
            )
        left = (self.per_epoch - row["batch"]) * row["time"]
        eta = f"{int(left // 3600)}:{int(left // 60) % 60:02d}:{int(left) % 60:02d}"
        head = f"Epoch: [{row['epoch']:.0f}]  [{row['batch']:3.0f}/{self.per_epoch}]  eta: {eta}"
        self.say(
            "  ".join(
                [head, *cells, f"time: {row['time']:.4f}", f"data: {row['data']:.4f}", f"max mem: {row['mem']:.0f}"]
            )
        )

    def epoch(self, row: Row) -> None:
        """The total time and the test line."""
        self.seen.clear()
        self.say(f"Epoch: [{row['epoch']:.0f}] Total time: {row['epoch_time']:.2f} s")
        values = {k.removeprefix("val_"): v for k, v in evaluation(row).items() if k != "train_loss"}
        self.say("Test:  " + "  ".join(f"{k}: {v:.4f}" for k, v in values.items()))


class Keras(TextLogger):
    """The two lines an epoch of a `fit` call with verbose=2."""

    name = "fit.log"

    def step(self, row: Row) -> None:
        """Nothing: epochs alone are told."""

    def epoch(self, row: Row) -> None:
        """Epoch k of n, then steps, time and measures."""
        took = row["epoch_time"]
        values = {"loss" if k == "train_loss" else k: v for k, v in evaluation(row).items()}
        self.say(f"Epoch {row['epoch'] + 1:.0f}/{self.epochs}")
        head = f"{self.per_epoch}/{self.per_epoch} - {took:.0f}s - {1000 * took / self.per_epoch:.0f}ms/step"
        self.say(
            " - ".join([head, *(f"{k}: {number(v)}" for k, v in values.items()), f"learning_rate: {row['lr']:.4e}"])
        )
