"""A training run as facts, before anybody has written them down."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

Quantity = tuple[str, str]
"""Phase ("train" or "eval") and what was measured, as ("train", "gradient_norm")."""
Curve = Mapping[int, float]
"""Value by step, which counts from 1. Durations in seconds, sizes in bytes, shares from 0 to 1."""
Setting = str | int | float | bool | tuple[float, ...] | None

WHAT = (
    *("loss", "accuracy", "perplexity", "gradient_norm", "learning_rate", "weight_norm", "loss_scale"),
    *("data_wait", "step_time", "throughput", "host_memory", "device_memory"),
    *("reward", "reward_std", "kl", "entropy", "value_loss", "policy_loss", "clip_fraction", "explained_variance"),
    *("completion_length", "reward_margin", "pair_accuracy"),
)
"""What a curve can be of. Throughput is in tokens per second where settings have a sequence length, else in rows."""
OWN = "own:"
"""In front of the name of any other quantity, which has the same words in every style."""
SETTINGS = (
    *("task", "model", "dataset", "dataset_rows", "vocabulary", "classes", "sequence_length", "seed"),
    *("learning_rate", "warmup_steps", "schedule", "optimizer", "betas", "weight_decay", "clipping"),
    *("batch_size", "accumulation", "precision", "epochs", "total_steps", "kl_coefficient"),
)
"""What a setting can be. Precision is "bf16", "fp16" or "fp32"; the optimizer a lower-case name."""


@dataclass(frozen=True, slots=True)
class Resume:
    """A restart after step `at`, from the checkpoint of step `back_to`: the steps between are done twice.

    Args:
        at: The last step before the restart.
        back_to: The step of the checkpoint.
        before: What was measured at the steps between when they were done first; the same as later where not given.
    """

    at: int
    back_to: int
    before: Mapping[Quantity, Curve] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Story:
    """One training run.

    Args:
        name: What happens in it.
        curves: What was measured. Evaluation has fewer steps than training.
        settings: The configuration, under the names of `SETTINGS`; None where a setting is off.
        steps_per_epoch: Optimizer steps in one pass over the data.
        resume: A restart inside the run.
        error: Text of the traceback that ends it; empty where it ran to its end.
        extra: Further settings, under keys that are the same in every style.
        finished: Whether the log may say at its end that training is finished.
    """

    name: str
    curves: Mapping[Quantity, Curve]
    settings: Mapping[str, Setting] = field(default_factory=dict)
    steps_per_epoch: int = 50
    resume: Resume | None = None
    error: str = ""
    extra: Mapping[str, object] = field(default_factory=dict)
    finished: bool = True

    def __post_init__(self) -> None:
        named = {what for _, what in self.curves if not what.startswith(OWN)}
        unknown = sorted(named - {*WHAT}) + sorted(self.settings.keys() - {*SETTINGS})
        if unknown:
            raise ValueError(f"{', '.join(unknown)}: not a quantity or setting of a story; allowed: {WHAT}, {SETTINGS}")

    @property
    def steps(self) -> int:
        """The last step."""
        return max(max(curve) for curve in self.curves.values() if curve)

    @property
    def rows_per_step(self) -> int:
        """Rows in one optimizer step."""
        return self._whole("batch_size", 8) * self._whole("accumulation", 1)

    @property
    def tokens_per_step(self) -> int:
        """Tokens in one optimizer step; rows where there are no tokens."""
        return self.rows_per_step * self._whole("sequence_length", 1)

    def _whole(self, name: str, default: int) -> int:
        value = self.settings.get(name)
        return value if isinstance(value, int) else default


def story_from_records(
    rows: Iterable[Mapping[str, float]],
    settings: Mapping[str, Setting],
    *,
    name: str = "recorded",
    steps_per_epoch: int = 50,
) -> Story:
    """Make a story of a run that was really trained.

    Args:
        rows: Records with "step" and quantities as "train/loss" or "eval/accuracy"; a value of None is left out.
        settings: The configuration under the names of `SETTINGS`.
        name: What the story is called.
        steps_per_epoch: Optimizer steps in one pass over the data.

    Raises:
        ValueError: a row has no step, or a name is not one of `WHAT` behind "train/" or "eval/".
    """
    curves: dict[Quantity, dict[int, float]] = {}
    for row in rows:
        if "step" not in row:
            raise ValueError(f"row {dict(row)} has no step")
        for key, value in row.items():
            if key == "step" or value is None:
                continue
            phase, slash, what = key.partition("/")
            if not slash or phase not in {"train", "eval"}:
                raise ValueError(f"{key!r}: write a quantity as 'train/loss' or 'eval/loss'")
            curves.setdefault((phase, what), {})[int(row["step"])] = float(value)
    return Story(name, curves, settings, steps_per_epoch)


def epoch_of(step: int, steps_per_epoch: int) -> int:
    """The pass over the data, from 1, that a step belongs to."""
    return math.ceil(step / steps_per_epoch)
