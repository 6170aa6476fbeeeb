"""A dozen made runs: plausible curves from simple formulas with noise, the same for the same seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from tests.restyle.story import Curve, Quantity, Resume, Setting, Story

Array = NDArray[np.float64]
MIB = 1024.0**2
OUT_OF_MEMORY = """Traceback (most recent call last):
  File "train.py", line 212, in <module>
    main()
  File "train.py", line 148, in main
    loss.backward()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 39.39 GiB of \
which 1.12 GiB is free."""
INTERRUPTED = """Traceback (most recent call last):
  File "train.py", line 212, in <module>
    main()
  File "train.py", line 139, in main
    for batch in loader:
KeyboardInterrupt"""
_SHARED: Mapping[str, Setting] = {
    "learning_rate": 3e-4, "warmup_steps": 20, "schedule": "cosine", "optimizer": "adamw", "betas": (0.9, 0.95),
    "weight_decay": 0.1, "clipping": 1.0, "batch_size": 16, "accumulation": 2, "precision": "bf16", "seed": 1234,
}  # fmt: skip
_TEXT: Mapping[str, Setting] = {
    **_SHARED, "task": "language-modeling", "model": "gpt-small", "dataset": "tiny-stories", "vocabulary": 8192,
    "sequence_length": 256, "dataset_rows": 1600,
}  # fmt: skip
_IMAGES: Mapping[str, Setting] = {
    **_SHARED, "task": "image-classification", "model": "resnet18", "dataset": "flowers", "classes": 102,
    "optimizer": "sgd", "betas": None, "accumulation": 1, "learning_rate": 0.1, "precision": "fp32", "clipping": None,
    "dataset_rows": 800,
}  # fmt: skip
_POLICY: Mapping[str, Setting] = {**_TEXT, "task": "grpo", "learning_rate": 1e-6, "kl_coefficient": 0.04}


class _Maker:
    """Curves over the steps of one run."""

    def __init__(self, seed: int, steps: int, eval_every: int) -> None:
        self.draw = np.random.default_rng(seed)
        self.step = np.arange(1, steps + 1, dtype=np.float64)
        self.eval_every = eval_every
        self.curves: dict[Quantity, Curve] = {}

    def train(self, what: str, values: Array, noise: float = 0.02) -> None:
        noisy = values * (1 + noise * self.draw.standard_normal(len(values)))
        self.curves["train", what] = {i + 1: float(value) for i, value in enumerate(noisy)}

    def eval(self, what: str, values: Array, noise: float = 0.005) -> None:
        noisy = values * (1 + noise * self.draw.standard_normal(len(values)))
        every = self.eval_every
        self.curves["eval", what] = {int(s): float(noisy[int(s) - 1]) for s in self.step if s % every == 0}

    def fall(self, start: float, end: float, rate: float = 5.0) -> Array:
        curve: Array = end + (start - end) * np.exp(-rate * self.step / self.step[-1])
        return curve

    def usual(self, peak: float = 3e-4, warmup: int = 20) -> None:
        """What nearly every run logs beside its loss."""
        warm = np.minimum(self.step / warmup, 1.0)
        self.train("learning_rate", peak * warm * 0.5 * (1 + np.cos(np.pi * self.step / self.step[-1])) + 1e-9, 0.0)
        self.train("gradient_norm", self.fall(4.0, 0.8), 0.15)
        self.train("step_time", np.full(len(self.step), 0.42), 0.03)
        self.train("data_wait", np.full(len(self.step), 0.018), 0.2)
        self.train("throughput", np.full(len(self.step), 19500.0), 0.03)
        self.train("device_memory", np.full(len(self.step), 9216 * MIB), 0.0)
        self.train("host_memory", np.full(len(self.step), 2100 * MIB), 0.01)

    def story(self, name: str, settings: Mapping[str, Setting], resume: Resume | None = None, error: str = "") -> Story:
        steps = len(self.step)
        planned: dict[str, Setting] = {"total_steps": steps, "epochs": -(-steps // self.eval_every)}
        return Story(name, self.curves, {**settings, **planned}, self.eval_every, resume, error)


def _language(seed: int, steps: int) -> _Maker:
    made = _Maker(seed, steps, 50)
    made.usual()
    made.train("loss", made.fall(9.0, 3.1))
    made.eval("loss", made.fall(9.0, 3.2))
    return made


def healthy_language_model(seed: int = 0, steps: int = 300) -> Story:
    """Pretraining that goes well."""
    return _language(seed, steps).story("healthy_language_model", _TEXT)


def healthy_classifier(seed: int = 0, steps: int = 300) -> Story:
    """Images, told by accuracy as well."""
    made = _Maker(seed, steps, 50)
    made.usual(peak=0.1)
    made.train("throughput", np.full(steps, 812.0), 0.03)
    made.train("loss", made.fall(4.6, 0.6))
    made.train("accuracy", 0.9 - made.fall(0.88, 0.05))
    made.eval("loss", made.fall(4.6, 0.8))
    made.eval("accuracy", 0.85 - made.fall(0.83, 0.05))
    return made.story("healthy_classifier", _IMAGES)


def spike(seed: int = 0, steps: int = 300) -> Story:
    """Loss and gradient norm jump once, and the loss settles."""
    made = _language(seed, steps)
    bump = np.where(made.step >= 180, np.exp(-(made.step - 180) / 4), 0.0)
    made.train("loss", made.fall(9.0, 3.1) + 3 * bump)
    made.train("gradient_norm", made.fall(4.0, 0.8) + 40 * bump, 0.15)
    return made.story("spike", _TEXT)


def divergence(seed: int = 0, steps: int = 300) -> Story:
    """The loss turns at two thirds and climbs above where it began, at a rate that is high for such a model."""
    made = _language(seed, steps)
    made.usual(peak=3e-3)
    climb = np.maximum(made.step - 200, 0) / 8
    made.train("loss", made.fall(9.0, 3.1) + climb)
    made.eval("loss", made.fall(9.0, 3.2) + climb)
    made.train("gradient_norm", made.fall(4.0, 0.8) + 5 * climb, 0.15)
    return made.story("divergence", {**_TEXT, "learning_rate": 3e-3})


def not_a_number(seed: int = 0, steps: int = 300) -> Story:
    """From one step on, loss and gradient norm are NaN."""
    made = _language(seed, steps)
    for quantity in (("train", "loss"), ("train", "gradient_norm"), ("eval", "loss")):
        made.curves[quantity] = {s: v if s < 233 else float("nan") for s, v in made.curves[quantity].items()}
    made.train("loss_scale", 65536.0 / 2 ** (made.step // 60), 0.0)
    return made.story("not_a_number", {**_TEXT, "precision": "fp16"})


def overfitting(seed: int = 0, steps: int = 300) -> Story:
    """Training goes on to improve; evaluation turns."""
    made = _Maker(seed, steps, 30)
    made.usual(peak=0.1)
    made.train("loss", made.fall(4.6, 0.02))
    made.train("accuracy", 1.0 - made.fall(0.98, 0.01), 0.003)
    made.eval("loss", made.fall(4.6, 1.6) + np.maximum(made.step - 100, 0) / 100)
    made.eval("accuracy", 0.62 - made.fall(0.6, 0.02))
    return made.story("overfitting", _IMAGES)


def memory_climbs(seed: int = 0, steps: int = 300) -> Story:
    """Host and device memory rise at every step, until there is none left."""
    made = _language(seed, steps)
    made.train("host_memory", (2100 + 12 * made.step) * MIB, 0.003)
    made.train("device_memory", (9216 + 90 * made.step) * MIB, 0.0)
    return made.story("memory_climbs", _TEXT, error=OUT_OF_MEMORY)


def slow_data(seed: int = 0, steps: int = 300) -> Story:
    """Most of each step is a wait for data."""
    made = _language(seed, steps)
    made.train("data_wait", np.full(steps, 1.31), 0.1)
    made.train("step_time", np.full(steps, 1.72), 0.08)
    made.train("throughput", np.full(steps, 4760.0), 0.08)
    return made.story("slow_data", _TEXT)


def proximal_policy(seed: int = 0, steps: int = 200) -> Story:
    """PPO on a game."""
    made = _Maker(seed, steps, 50)
    made.train("learning_rate", np.full(steps, 3e-4), 0.0)
    made.train("reward", 480 - made.fall(460, 10), 0.03)
    made.train("entropy", made.fall(0.69, 0.2))
    made.train("value_loss", made.fall(60, 12), 0.2)
    made.train("policy_loss", -made.fall(0.02, 0.005), 0.3)
    made.train("kl", made.fall(0.012, 0.006), 0.2)
    made.train("clip_fraction", made.fall(0.15, 0.06), 0.2)
    made.train("explained_variance", 0.9 - made.fall(0.85, 0.05), 0.02)
    made.train("loss", made.fall(30, 6), 0.2)
    kept = ("learning_rate", "optimizer", "batch_size", "seed")
    return made.story("proximal_policy", {"task": "ppo", "model": "mlp", **{key: _SHARED[key] for key in kept}})


def group_policy(seed: int = 0, steps: int = 200) -> Story:
    """GRPO on answers."""
    made = _Maker(seed, steps, 50)
    made.train("learning_rate", np.full(steps, 1e-6), 0.0)
    made.train("gradient_norm", made.fall(0.4, 0.2), 0.2)
    made.train("loss", 0.002 + made.fall(0.0001, 0.02), 0.2)
    made.train("reward", 0.8 - made.fall(0.7, 0.1), 0.05)
    made.train("reward_std", made.fall(0.3, 0.15), 0.1)
    made.train("kl", 0.09 - made.fall(0.0895, 0.01), 0.1)
    made.train("entropy", made.fall(1.1, 0.4))
    made.train("completion_length", 180 + made.fall(0, 90), 0.05)
    return made.story("group_policy", _POLICY)


def preference_pairs(seed: int = 0, steps: int = 200) -> Story:
    """DPO."""
    made = _Maker(seed, steps, 50)
    made.usual(peak=5e-7)
    made.train("loss", made.fall(0.693, 0.35))
    made.train("reward_margin", 1.6 - made.fall(1.599, 0.1), 0.05)
    made.train("pair_accuracy", 0.85 - made.fall(0.35, 0.02), 0.03)
    made.eval("loss", made.fall(0.693, 0.42))
    return made.story("preference_pairs", {**_TEXT, "task": "dpo", "learning_rate": 5e-7, "kl_coefficient": 0.1})


def resume_jump(seed: int = 0, steps: int = 300) -> Story:
    """A restart without the state of the optimizer: the loss jumps, and comes back."""
    made = _language(seed, steps)
    jump = np.where(made.step > 160, np.exp(-(made.step - 160) / 15), 0.0)
    made.train("loss", made.fall(9.0, 3.1) + 1.5 * jump)
    before = {("train", "loss"): {s: float(made.fall(9.0, 3.1)[s - 1]) for s in range(161, 181)}}
    return made.story("resume_jump", _TEXT, resume=Resume(at=180, back_to=160, before=before))


STORIES: Mapping[str, Callable[..., Story]] = {
    make.__name__: make
    for make in (
        *(healthy_language_model, healthy_classifier, spike, divergence, not_a_number, overfitting),
        *(memory_climbs, slow_data, proximal_policy, group_policy, preference_pairs, resume_jump),
    )
}
