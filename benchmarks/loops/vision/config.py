"""The settings of one training run."""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Config:
    """What a practitioner would put on the command line or in a configuration file.

    `betas` and `eps` reach Adam alone, `momentum` SGD alone. `warmup_steps` counts optimizer steps. `accumulate` is the
    number of micro-batches of `batch_size` per optimizer step. `model` and `data` hold what one task alone understands.
    """

    task: str
    epochs: int = 10
    batch_size: int = 32
    lr: float = 1e-3
    optimizer: str = "adam"
    momentum: float = 0.9
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    schedule: str = "constant"
    warmup_steps: int = 0
    grad_clip: float | None = None
    accumulate: int = 1
    precision: str = "fp32"
    shuffle: bool = True
    seed: int = 0
    log_every: int = 10
    model: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)

    def flat(self) -> dict[str, Any]:
        """All settings on one level, as argparse would hold them, without those the optimizer does not take."""
        values: dict[str, Any] = asdict(self)
        own: dict[str, Any] = values.pop("model") | values.pop("data")
        for name in ("betas", "eps") if self.optimizer == "sgd" else ("momentum",):
            values.pop(name)
        if "betas" in values:
            values["beta1"], values["beta2"] = values.pop("betas")
        if self.schedule == "constant" and not self.warmup_steps:
            values.pop("warmup_steps")
        return values | own

    def nested(self) -> dict[str, Any]:
        """All settings in the groups that Hydra users make."""
        values = self.flat()
        groups = {
            "optim": (
                "optimizer",
                "lr",
                "momentum",
                "beta1",
                "beta2",
                "eps",
                "weight_decay",
                "schedule",
                "warmup_steps",
            ),
            "trainer": ("epochs", "grad_clip", "accumulate", "precision", "log_every"),
            "data": ("batch_size", "shuffle", *self.data),
            "model": tuple(self.model),
        }
        nested: dict[str, Any] = {"task": values.pop("task"), "seed": values.pop("seed")}
        for group, names in groups.items():
            nested[group] = {name: values[name] for name in names if name in values}
        return nested
