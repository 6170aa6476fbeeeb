"""What every manner of logging does."""

import json
from pathlib import Path

import yaml

from benchmarks.loops.vision.config import Config

Row = dict[str, float]
PLACES = ("epoch", "batch", "step")


class Logger:
    """Writes one run into a folder. Subclasses say how; `columns` names what is logged per step beside its place.

    `epochs` and `per_epoch` (batches) are known before the first step.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.columns: tuple[str, ...] = ("loss",)
        self.epochs = self.per_epoch = 0

    def picked(self, row: Row) -> Row:
        """The columns asked for, in the order asked for."""
        return {name: row[name] for name in self.columns if name in row}

    def settings(self, config: Config, form: str) -> None:
        """Leaves the settings in the form of this run: args, cmd, yaml, json or hydra."""
        if form == "yaml":
            (self.folder / "config.yaml").write_text(yaml.safe_dump(config.flat(), sort_keys=False))
        elif form == "json":
            (self.folder / "args.json").write_text(json.dumps(config.flat(), indent=2))
        elif form == "hydra":
            (self.folder / ".hydra").mkdir()
            (self.folder / ".hydra" / "config.yaml").write_text(yaml.safe_dump(config.nested(), sort_keys=False))
            (self.folder / ".hydra" / "overrides.yaml").write_text(f"- optim.lr={config.lr}\n- task={config.task}\n")
        elif form == "cmd":
            self.say("$ python train.py " + " ".join(f"--{k.replace('_', '-')} {v}" for k, v in config.flat().items()))
        else:
            self.say("Namespace(" + ", ".join(f"{k}={v!r}" for k, v in config.flat().items()) + ")")

    def say(self, text: str) -> None:
        """Leaves a line of free text; by default in a text file beside the numbers."""
        with (self.folder / "stdout.txt").open("a") as out:
            out.write(text + "\n")

    def step(self, row: Row) -> None:
        """One optimizer step."""

    def epoch(self, row: Row) -> None:
        """One epoch with its evaluation."""

    def close(self) -> None:
        """The run is over."""


def number(value: float) -> str:
    """A number as most people print it: four decimals, or an exponent where those say too little."""
    return f"{value:.4f}" if value == 0 or 1e-2 <= abs(value) < 1e5 else f"{value:.3e}"
