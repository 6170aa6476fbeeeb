"""SFT, DPO and GRPO by the trainers of TRL themselves, from models made on the spot; their own state is the log."""

from __future__ import annotations

import contextlib
import io
import random
import tempfile
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

import torch

from benchmarks.faults.experiment import Experiment, Record, Settings, Subject
from benchmarks.faults.games import GAMES, Game, Row, base, tokenizer
from benchmarks.faults.trainer import trained

UNIT = 1000.0
"""A model of this size needs a learning rate about a thousand times that of a language model. The trainer is given, and
logs, the rate of a language model; the optimizer multiplies it."""
NEEDS = ("transformers", "accelerate", "trl", "datasets", "tokenizers")
Reward = Callable[[str, str, random.Random], float]
"""The reward of a completion, beside the right answer."""


class Scaled(torch.optim.AdamW):
    """AdamW at `UNIT` times the learning rate that it is told."""

    def step(self, closure: Any = None) -> Any:  # noqa: ANN401
        """Make a step."""
        for group in self.param_groups:
            group["lr"] *= UNIT
        out = super().step(closure)
        for group in self.param_groups:
            group["lr"] /= UNIT
        return out


def correct(completion: str, answer: str, _: random.Random) -> float:
    """Reward the right answer with 1 and one of the right length with a tenth."""
    return float(completion == answer) + 0.1 * (len(completion) == len(answer))


@dataclass(slots=True, kw_only=True)
class TrlRun(Experiment):
    """A run of one of TRL's trainers.

    Args:
        game: What is asked.
        known: Share of right answers in what the first model was trained on.
        slips: Share of the answers that are wrong by nature, in evaluation too.
        examples: Rows of the training set.
        batch: Rows per step; completions per step in GRPO.
        warmup: Steps of the warmup.
        options: Further arguments of the trainer's configuration.
        spoil: Changes the rows; told whether they are those of the evaluation.
        end: The end token of the tokenizer.
        moved: By how much the tokenizer's numbers are off.
    """

    formats = ("own", "own", "jsonl", "csv")
    intervals = (1,)
    left_out = ((), (), ("grad_norm",), ("learning_rate", "entropy", "num_tokens", "mean_token_accuracy"))

    game: Game
    known: float = 0.6
    slips: float = 0.0
    examples: int = 1200
    batch: int = 16
    warmup: int = 10
    options: dict[str, Any] = field(default_factory=dict)
    spoil: Callable[[list[Row], random.Random, bool], list[Row]] | None = None
    end: str = "<eos>"
    moved: int = 0

    def train(self) -> list[Record]:
        """Train with TRL and return its history; its state is kept as the log of the run."""
        # TRL and transformers write bars and hints to stderr.
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
            import_module("transformers").utils.logging.set_verbosity_error()
            import_module("datasets").disable_progress_bars()
            trainer = self.trainer(folder)
            trainer.optimizer = Scaled(trainer.model.parameters(), lr=self.lr, weight_decay=0.0)
            records, self.own_log = trained(trainer, folder)
        # The last record sums the run up.
        return [record for record in records if "loss" in record or "eval_loss" in record]

    def rows(self, *, evaluation: bool) -> list[Row]:
        """Return the rows of training or evaluation."""
        dice = random.Random(10_000 + self.seed if evaluation else self.seed)  # noqa: S311
        rows = self.game.rows(dice, 64 if evaluation else self.examples, 1 - self.slips)
        return self.spoil(rows, dice, evaluation) if self.spoil else rows

    @abstractmethod
    def trainer(self, folder: str) -> Any:  # noqa: ANN401 - its class exists where TRL does
        """Return the trainer."""

    def arguments(self, folder: str) -> dict[str, Any]:
        """Return what each trainer's configuration is given."""
        return {
            "output_dir": folder, "seed": self.seed, "max_steps": self.steps, "learning_rate": self.lr,
            "per_device_train_batch_size": self.batch, "warmup_steps": self.warmup, "report_to": [], "use_cpu": True,
            "bf16": False, "gradient_checkpointing": False, "save_strategy": "no", "disable_tqdm": True,
            "log_level": "error", **self.options,
        }  # fmt: skip

    def start(self) -> dict[str, Any]:
        """Return the model and the tokenizer."""
        return {
            "model": base(self.game, self.known, self.seed),
            "processing_class": tokenizer(self.end, self.moved),
        }

    def settings(self) -> Settings:
        """Return the arguments that the trainer was given."""
        return {
            "learning_rate": self.lr,
            "max_steps": self.steps,
            "warmup_steps": self.warmup,
            "per_device_train_batch_size": self.batch,
            **{name: value for name, value in self.options.items() if isinstance(value, (int, float, str))},
            **self.config,
        }


def dataset(rows: list[dict[str, Any]]) -> Any:  # noqa: ANN401
    """Return rows as the trainers take them."""
    return import_module("datasets").Dataset.from_list(rows)


@dataclass(slots=True, kw_only=True)
class SftRun(TrlRun):
    """A run of the SFTTrainer."""

    @classmethod
    def usual(cls, game: Game, seed: int) -> SftRun:
        """Return the healthy run."""
        return cls(game=game, seed=seed, lr=2e-6, steps=120, slips=0.125)

    def trainer(self, folder: str) -> Any:  # noqa: ANN401
        """Return the trainer."""
        trl = import_module("trl")
        parts = [dataset([self.shown(row) for row in self.rows(evaluation=evaluation)]) for evaluation in (False, True)]
        arguments = trl.SFTConfig(
            **{"logging_steps": 2, "eval_strategy": "steps", "eval_steps": 10, **self.arguments(folder)}
        )
        return trl.SFTTrainer(args=arguments, train_dataset=parts[0], eval_dataset=parts[1], **self.start())

    def shown(self, row: Row) -> dict[str, Any]:
        """Return a row as the trainer takes it."""
        return {"prompt": row["prompt"], "completion": row["answer"]}


@dataclass(slots=True, kw_only=True)
class DpoRun(TrlRun):
    """A run of the DPOTrainer."""

    beta: float = 0.1

    @classmethod
    def usual(cls, game: Game, seed: int) -> DpoRun:
        """Return the healthy run."""
        return cls(game=game, seed=seed, lr=1e-6, steps=120)

    def trainer(self, folder: str) -> Any:  # noqa: ANN401
        """Return the trainer."""
        trl = import_module("trl")
        parts = [
            dataset(
                [
                    {"prompt": row["prompt"], "chosen": row["answer"], "rejected": row["wrong"]}
                    for row in self.rows(evaluation=evaluation)
                ]
            )
            for evaluation in (False, True)
        ]
        arguments = trl.DPOConfig(
            **{
                "logging_steps": 2, "eval_strategy": "steps", "eval_steps": 10, "beta": self.beta,
                **self.arguments(folder),
            }
        )  # fmt: skip
        return trl.DPOTrainer(args=arguments, train_dataset=parts[0], eval_dataset=parts[1], **self.start())

    def settings(self) -> Settings:
        """Return the arguments that the trainer was given."""
        return {"trainer_type": "dpo", "beta": self.beta, **TrlRun.settings(self)}


@dataclass(slots=True, kw_only=True)
class GrpoRun(TrlRun):
    """A run of the GRPOTrainer."""

    beta: float = 0.02
    group: int = 8
    reward: Reward = correct

    @classmethod
    def usual(cls, game: Game, seed: int) -> GrpoRun:
        """Return the healthy run."""
        return cls(game=game, seed=seed, lr=1e-6, steps=100, batch=64)

    def trainer(self, folder: str) -> Any:  # noqa: ANN401
        """Return the trainer."""
        trl = import_module("trl")
        dice = random.Random(self.seed)  # noqa: S311

        def judged(completions: list[str], answer: list[str], **_: object) -> list[float]:
            return [self.reward(given, right, dice) for given, right in zip(completions, answer, strict=True)]

        arguments = trl.GRPOConfig(
            **{
                "logging_steps": 1, "beta": self.beta, "num_generations": self.group,
                "max_completion_length": self.game.longest, **self.arguments(folder),
            }
        )  # fmt: skip
        rows = dataset([{"prompt": row["prompt"], "answer": row["answer"]} for row in self.rows(evaluation=False)])
        return trl.GRPOTrainer(args=arguments, reward_funcs=judged, train_dataset=rows, **self.start())

    def settings(self) -> Settings:
        """Return the arguments that the trainer was given."""
        return {
            "trainer_type": "grpo", "beta": self.beta, "num_generations": self.group,
            "max_completion_length": self.game.longest, **TrlRun.settings(self),
        }  # fmt: skip


KINDS: Mapping[str, Callable[[Game, int], TrlRun]] = {
    "sft": SftRun.usual,
    "dpo": DpoRun.usual,
    "grpo": GrpoRun.usual,
}
SUBJECTS = tuple(
    Subject(f"trl_{kind}_{game.name}", partial(usual, game), tuning=game.name == "reversal", needs=NEEDS)
    for kind, usual in KINDS.items()
    for game in GAMES.values()
)
