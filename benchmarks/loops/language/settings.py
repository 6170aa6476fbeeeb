"""What a run is told to do (its settings) and what is wrong in its code (its plant)."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Settings:
    """Hyper-parameters of a supervised run, as its author would write them down."""

    lr: float = 1e-3
    steps: int = 160
    batch_size: int = 10
    warmup: int = 20
    schedule: str = "cosine"
    min_lr_ratio: float = 0.1
    optimizer: str = "adamw"
    weight_decay: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.95
    eps: float = 1e-8
    clip: float = 1.0
    accum: int = 1
    dropout: float = 0.0
    dtype: str = "float32"
    n_layer: int = 2
    n_embd: int = 48
    n_head: int = 4
    block_size: int = 48
    train_samples: int = 0
    log_every: int = 5
    eval_every: int = 50
    seed: int = 1337
    extra: dict[str, float | int | str | bool] = field(default_factory=dict)

    def as_dict(self) -> dict[str, object]:
        """The settings that are worth saving, with the task's own ones at the end."""
        plain = {name: value for name, value in vars(self).items() if name != "extra"}
        if not self.train_samples:
            del plain["train_samples"]
        return plain | self.extra


@dataclass(frozen=True)
class Plant:
    """Mistakes in the training loop itself, which no settings file shows."""

    keep_grads: bool = False
    accum_sum: bool = False
    frozen: str = ""
    never_step: bool = False
    schedule: str = ""
    bad_steps: tuple[int, ...] = ()
    negate: bool = False
    resume: int = 0
    lose: tuple[str, ...] = ()
    bf16_weights: bool = False
    start_scale: float = 2.0**16
    leak: int = 0
    slow: float = 0.0
    stall: float = 0.0
    eval_in_train_mode: bool = False
    flip_bit: int = 0
