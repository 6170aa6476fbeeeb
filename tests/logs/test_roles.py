"""Names are parsed, not looked up: every name that can be composed of known words is read as what it says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

import pytest

from mldebug_mcp.logs.names import Quantity, Role, normal, role_of
from mldebug_mcp.logs.names.lexicon import IDIOMS

NEWCOMERS = {
    "weights_changed": (Quantity.CHANGED_WEIGHTS, ""),
    "frac_params_updated": (Quantity.CHANGED_WEIGHTS, ""),
    "wnorm_encoder": (Quantity.WEIGHT_NORM, "encoder"),
    "rollout/weights_age_updates": (Quantity.POLICY_AGE, ""),
    "policy/ess_frac": (Quantity.EFFECTIVE_SAMPLES, ""),
    "policy/frac_ratio_outside_0.2": (Quantity.CLIP_FRACTION, "0 2"),
    "train/tokens_in_loss": (Quantity.LOSS_TOKENS, ""),
    "n_target_tokens": (Quantity.LOSS_TOKENS, ""),
    "train/tokens_in_batch": (Quantity.BATCH_TOKENS, ""),
    "rm_score": (Quantity.REWARD, ""),
    "human_rubric": (Quantity.SCORE, "human"),
    "eval/answer_exact": (Quantity.ACCURACY, "completion exact"),
    "token_loss": (Quantity.LOSS, "token"),
}
PLACES = ("", "perf", "metrics", "system", "charts")
PHASES = {"": "", "train": "train", "val": "eval", "eval": "eval", "test": "eval"}
LEVELS = ("", "avg", "mean", "last")
MEMORIES = {"": 1.0, "mb": 2.0**-10, "gib": 1.0, "bytes": 2.0**-30}
TIMES = {"": 1.0, "s": 1.0, "ms": 1e-3, "sec": 1.0}
SHARES = {"": 1.0, "pct": 0.01}

MEASURED: Mapping[Quantity, tuple[str, ...]] = {
    Quantity.LOSS: ("loss",),
    Quantity.ACCURACY: ("accuracy", "acc"),
    Quantity.PERPLEXITY: ("perplexity", "ppl"),
    Quantity.REWARD: ("reward", "episode reward", "return"),
    Quantity.ENTROPY: ("entropy", "policy entropy"),
    Quantity.KL: ("kl", "kl div"),
    Quantity.VALUE_LOSS: ("value loss", "critic loss", "loss vf"),
    Quantity.POLICY_LOSS: ("policy loss", "actor loss"),
    Quantity.EXPLAINED_VARIANCE: ("explained variance",),
    Quantity.F1: ("f1", "f1 score"),
    Quantity.AUC: ("auc", "auroc"),
    Quantity.BLEU: ("bleu",),
    Quantity.PSNR: ("psnr",),
    Quantity.WORD_ERROR_RATE: ("wer",),
    Quantity.ABSOLUTE_ERROR: ("mae",),
    Quantity.EPISODE_LENGTH: ("episode length", "ep len"),
    Quantity.COMPLETION_LENGTH: ("completion length", "response length"),
}
TRAINED: Mapping[Quantity, tuple[tuple[str, ...], Mapping[str, float]]] = {
    Quantity.GRADIENT_NORM: (("grad norm", "gradient norm", "norm grad", "total grad norm", "gnorm"), {"": 1.0}),
    Quantity.LEARNING_RATE: (("learning rate", "lr", "current lr"), {"": 1.0}),
    Quantity.WEIGHT_NORM: (("weight norm", "param norm", "params norm"), {"": 1.0}),
    Quantity.LOSS_SCALE: (("loss scale", "grad scale"), {"": 1.0}),
    Quantity.CLIP_FRACTION: (("clip fraction", "clip frac", "clip ratio"), SHARES),
    Quantity.STEP_TIME: (("step time", "iter time", "batch time", "time per step", "iteration duration"), TIMES),
    Quantity.DATA_TIME: (("data time", "time data", "data wait", "data loading time", "dataloader time"), TIMES),
    Quantity.FORWARD_TIME: (("forward time", "fwd time"), TIMES),
    Quantity.BACKWARD_TIME: (("backward time", "bwd time"), TIMES),
    Quantity.OPTIMIZER_TIME: (("optimizer time",), TIMES),
    Quantity.DEVICE_MEMORY: (("memory", "gpu mem", "mem allocated", "gpu memory reserved", "vram"), MEMORIES),
    Quantity.HOST_MEMORY: (("rss", "host memory", "cpu mem", "ram", "memory rss"), MEMORIES),
    Quantity.TOKENS_PER_SECOND: (("tokens per second", "tok per sec", "tokens per s"), {"": 1.0}),
    Quantity.SAMPLES_PER_SECOND: (("samples per second", "imgs per sec", "examples per s"), {"": 1.0}),
    Quantity.STEPS_PER_SECOND: (("steps per second", "iters per sec", "it per s"), {"": 1.0}),
}


def _written(words: list[str]) -> Iterator[str]:
    """Write words in the ways in which names are written."""
    for mark in ("_", "-", ".", "/", " "):
        yield mark.join(words)
    yield words[0] + "".join(word.capitalize() for word in words[1:])
    yield "_".join(words).upper()


def composed() -> Iterator[tuple[str, Role]]:
    """Return names and the roles that they were composed of."""
    for place, phase, level in product(PLACES, PHASES, LEVELS):
        for quantity, bases in MEASURED.items():
            for base in bases:
                parts = [place, phase, level, *base.split(" ")]
                role = Role(quantity, PHASES[phase])
                yield from ((name, role) for name in _written([part for part in parts if part]))
    for place, level, (quantity, (bases, units)) in product(PLACES, LEVELS, TRAINED.items()):
        for base, (unit, factor) in product(bases, units.items()):
            for parts in ([place, level, *base.split(" "), unit], [place, *base.split(" "), level, unit]):
                role = Role(quantity, unit=unit, factor=factor)
                yield from ((name, role) for name in _written([part for part in parts if part]))


def test_twenty_thousand_names_are_read_as_what_they_were_composed_of() -> None:
    names = {name: role for name, role in composed() if normal(name) not in IDIOMS}
    wrong = [
        (name, meant, read)
        for name, meant in names.items()
        if (read := role_of(name)) is None
        or (read.quantity, read.phase, read.part, read.factor) != (meant.quantity, meant.phase, "", meant.factor)
    ]
    assert wrong[:5] == []
    assert len(names) >= 20_000


@pytest.mark.parametrize(
    "name",
    [
        "loss_weight", "memory_length", "replay_memory", "time_limit", "learning_rate_decay", "reward_model_lr",
        "warmup_loss_weight", "max_steps", "total_steps", "lr_decay", "max_lr", "grad_norm_clip", "kl_coef",
        "entropy_coef", "memory_limit_mb", "target_accuracy", "initial_loss", "loss_type", "num_epochs", "data",
        "batch", "val", "train", "free_memory_gb", "summary/train_loss", "loss_at_100", "time_budget_s", "clip_range",
        "x" * 500, "", "//",
        "how the loss of the model of the day came to be what it was at the end of it all, and so on",
    ],
)  # fmt: skip
def test_a_near_miss_has_no_role(name: str) -> None:
    assert role_of(name) is None


def test_a_loss_scale_is_no_loss() -> None:
    read = role_of("train/loss_scale")
    assert read is not None
    assert (read.quantity, read.is_whole) == (Quantity.LOSS_SCALE, True)


@pytest.mark.parametrize(
    ("name", "quantity", "part", "statistic"),
    [
        ("box_loss", Quantity.LOSS, "box", ""),
        ("val/contrastive_loss", Quantity.LOSS, "contrastive", ""),
        ("rewards/format_reward_func/std", Quantity.REWARD, "format reward func", "std"),
        ("rewards/accuracy_reward/mean", Quantity.REWARD, "accuracy reward", "mean"),
        ("grad_norm/first_layer", Quantity.GRADIENT_NORM, "first layer", ""),
        ("f1/class_3", Quantity.F1, "class 3", ""),
        ("acc@5", Quantity.ACCURACY, "5", ""),
        ("loss_q1", Quantity.LOSS, "q 1", ""),
        ("completions/max_length", Quantity.COMPLETION_LENGTH, "", "max"),
        ("step_time_p95", Quantity.STEP_TIME, "", "p95"),
        ("mse_med", Quantity.SQUARED_ERROR, "", "median"),
        ("gpu.1.memory", Quantity.DEVICE_MEMORY, "1", ""),
        ("clip_ratio/low_mean", Quantity.CLIP_FRACTION, "low", "mean"),
        ("layer1/weight_norm", Quantity.WEIGHT_NORM, "layer 1", ""),
    ],
)
def test_parts_and_extremes_are_told_from_the_whole(name: str, quantity: Quantity, part: str, statistic: str) -> None:
    read = role_of(name)
    assert read is not None
    assert (read.quantity, read.part, read.statistic) == (quantity, part, statistic)
    assert read.name == ""


@pytest.mark.parametrize(
    ("name", "quantity", "factor"),
    [
        ("perf/data_time_s", Quantity.DATA_TIME, 1.0),
        ("fetch_ms", Quantity.DATA_TIME, 1e-3),
        ("t_data", Quantity.DATA_TIME, 1.0),
        ("Data Time (ms)", Quantity.DATA_TIME, 1e-3),
        ("timing.data.mean", Quantity.DATA_TIME, 1.0),
        ("perf/rss_mb", Quantity.HOST_MEMORY, 2.0**-10),
        ("system/proc.memory.rssMB", Quantity.HOST_MEMORY, 2.0**-10),
        ("GPU memory (MiB)", Quantity.DEVICE_MEMORY, 2.0**-10),
        ("s/it", Quantity.STEP_TIME, 1.0),
        ("ms/batch", Quantity.STEP_TIME, 1e-3),
        ("tok/s", Quantity.TOKENS_PER_SECOND, 1.0),
        ("samples/min", Quantity.SAMPLES_PER_SECOND, 1 / 60),
        ("elapsed (min)", Quantity.ELAPSED, 60.0),
        ("val acc (%)", Quantity.ACCURACY, 0.01),
        ("tokens_seen_m", Quantity.TOKENS_SEEN, 1e6),
        ("GNorm", Quantity.GRADIENT_NORM, 1.0),
        ("trainLossAvg", Quantity.LOSS, 1.0),
        ("ourtool/step_time", Quantity.STEP_TIME, 1.0),
    ],
)
def test_one_quantity_in_any_unit_is_one_role(name: str, quantity: Quantity, factor: float) -> None:
    read = role_of(name)
    assert read is not None
    assert (read.quantity, read.is_whole) == (quantity, True)
    assert read.factor == pytest.approx(factor)


@pytest.mark.parametrize(("name", "expected"), NEWCOMERS.items())
def test_names_that_newcomers_gave_are_read_as_what_they_say(name: str, expected: tuple[Quantity, str]) -> None:
    role = role_of(name)
    assert role is not None
    assert (role.quantity, role.part) == expected


def test_a_share_of_spreadless_groups_below_the_reward_is_no_reward() -> None:
    assert role_of("reward/zero_std_groups") is None
