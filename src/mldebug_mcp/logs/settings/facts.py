"""What follows from the settings of a run, and from its settings and metrics together; None is not known."""

from __future__ import annotations

from mldebug_mcp.core.lazy import dataclass
from mldebug_mcp.logs.settings.settings import Settings

LANGUAGE_MODELS = frozenset({"pretraining", "sft", "preference", "grpo", "ppo"})
POLICIES = frozenset({"grpo", "ppo", "rl"})
"""Kinds of run whose model predicts tokens: a number of classes is only a default of some library."""

_HALF = frozenset({"fp16", "float16", "half", "16", "16 mixed", "fp16 mixed", "16 true", "torch float16", "f16"})
_BRAIN = frozenset({"bf16", "bfloat16", "bf16 mixed", "bf16 true", "torch bfloat16"})
_SINGLE = frozenset(
    {"no", "false", "none", "fp32", "float32", "32", "32 true", "single", "full", "tf32", "torch float32", "64",
     "float64", "fp64", "double"}
)  # fmt: skip
_HOW = frozenset({"pure", "only", "weights", "params", "autocast", "amp"})
"""Words that say for what a number format is used."""
_EIGHT = ("fp8", "float8", "e4m3", "transformer engine")
_PRECISIONS = ("mixed_precision", "precision", "amp_dtype", "compute_type", "dtype")


@dataclass(frozen=True, slots=True)
class Schedule:
    """The schedule of the learning rate as configured.

    Args:
        kind: Its name, in lower case.
        peak: Its highest rate.
        floor: Its last rate.
        warmup_steps: Steps until the peak, from their number, or from their share of the plan or of a pass.
    """

    kind: str | None
    peak: float | None
    floor: float | None
    warmup_steps: float | None


@dataclass(frozen=True, slots=True)
class Optimizer:
    """The optimizer as configured."""

    name: str | None
    betas: tuple[float | None, float | None]
    epsilon: float | None
    momentum: float | None
    weight_decay: float | None


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a run besides its curves.

    Args:
        classes: Classes that a classifier tells apart; None in a language model, whatever its configuration says.
        tokens: Tokens that a language model predicts; None in anything else.
        effective_batch: Rows of one update: per device x accumulation x world.
        steps_per_update: Steps of the log in one update: 1, or the rows of a batch where the log counts rows.
        steps_per_pass: Steps of the log in one pass over the data.
        plan: Steps of the log that are planned.
        precision: "fp16", "bf16", "fp8" or "fp32"; "not fp16" where no more is known.
        schedule: The schedule as configured.
        optimizer: The optimizer as configured.
        clip: Norm to which gradients are clipped; infinity where clipping is explicitly off.
    """

    classes: float | None
    tokens: float | None
    effective_batch: float | None
    steps_per_update: float
    steps_per_pass: float | None
    plan: float | None
    precision: str | None
    schedule: Schedule
    optimizer: Optimizer
    clip: float | None

    def passes_at(self, step: float) -> float | None:
        """Return how many passes over the data were made at a step."""
        return None if not self.steps_per_pass else step / self.steps_per_pass


def facts_of(
    settings: Settings, kind: str, steps_per_epoch: float | None = None, axis: tuple[float, float] = (0.0, 1.0)
) -> Facts:
    """Derive the facts of a run.

    Args:
        settings: Its configuration.
        kind: Its kind.
        steps_per_epoch: Steps in an epoch as the log counts them, where it counts both.
        axis: The last step of the log, and the usual distance of two records.
    """
    is_language = kind in LANGUAGE_MODELS
    rows, batch = _positive(settings, "train_rows"), effective_batch(settings)
    counted = -(-rows // batch) if rows and batch else None
    updates = _positive(settings, "steps_per_epoch") or counted
    planned = _plan(settings, updates or steps_per_epoch)
    counts_rows = kind not in POLICIES and batch is not None and _counts_rows(
        batch, updates, planned, steps_per_epoch, axis
    )  # fmt: skip
    unit = batch if counts_rows and batch else 1.0
    per_pass = steps_per_epoch if counts_rows else _positive(settings, "steps_per_epoch") or steps_per_epoch
    per_pass = per_pass or (rows if counts_rows else None) or (updates * unit if updates else None)
    plan = _plan(settings, per_pass / unit if per_pass else None)
    warmup = _warmup(settings, plan, per_pass / unit if per_pass else None, batch)
    return Facts(
        classes=None if is_language else _positive(settings, "num_labels"),
        tokens=_positive(settings, "vocab_size") if is_language or kind == "unknown" else None,
        effective_batch=batch,
        steps_per_update=unit,
        steps_per_pass=per_pass,
        plan=plan * unit if plan else None,
        precision=precision_of(settings),
        schedule=Schedule(
            kind=settings.text("lr_scheduler_type") or None,
            peak=settings.number("learning_rate"),
            floor=settings.number("min_learning_rate"),
            warmup_steps=warmup * unit if warmup else warmup,
        ),
        optimizer=Optimizer(
            name=settings.text("optim") or None,
            betas=(settings.number("adam_beta1"), settings.number("adam_beta2")),
            epsilon=settings.number("adam_epsilon"),
            momentum=settings.number("momentum"),
            weight_decay=settings.number("weight_decay"),
        ),
        clip=_clip(settings, kind),
    )


NEAR_ROWS, BEYOND_PLAN = 0.05, 1.05
"""Share by which the steps of an epoch differ from the rows of a pass where a log counts rows. Times the planned
updates beyond which its steps are no updates. Chosen: the last batch of a pass is smaller."""


def _counts_rows(
    batch: float, updates: float | None, planned: float | None, per_epoch: float | None, axis: tuple[float, float]
) -> bool:
    """Say whether the steps of a log count rows instead of updates.

    `updates` are those of a pass, `planned` those of the plan; `axis` is the last step and the distance of two records.
    """
    last, interval = axis
    if batch < 2 or interval < batch or interval % batch:
        return False
    if per_epoch is not None and updates is not None:
        return abs(per_epoch / (updates * batch) - 1) < NEAR_ROWS + 1 / updates
    return planned is not None and BEYOND_PLAN * planned < last <= BEYOND_PLAN * planned * batch


def precision_of(settings: Settings) -> str | None:
    """Return in what precision a run computes: an explicit false refutes, what is not named is not known."""
    for flag in ("fp8", "fp16", "bf16"):
        if settings.flag(flag):
            return flag
    named = [_precision_named(str(settings[name].value)) for name in _PRECISIONS if _is_given(settings, name)]
    found = next((text for text in named if text is not None), None)
    if found is not None:
        return found
    refuted = [settings.flag(flag) is False for flag in ("fp16", "bf16")]
    if settings.flag("amp") is False or settings.flag("mixed_precision") is False or all(refuted):
        # Weights in half precision are computed with as they are where no autocast is asked for.
        return _precision_named(settings.text("torch_dtype")) or "fp32"
    return _precision_named(settings.text("torch_dtype")) or ("not fp16" if refuted[0] else None)


def _precision_named(text: str) -> str | None:
    words = " ".join(text.lower().replace("-", " ").replace("_", " ").replace(".", " ").split())
    if any(name in words for name in _EIGHT):
        return "fp8"
    kept = " ".join(word for word in words.split() if word not in _HOW) or words
    for name, known in (("fp16", _HALF), ("bf16", _BRAIN), ("fp32", _SINGLE)):
        if words in known or kept in known:
            return name
    return None


def _is_given(settings: Settings, name: str) -> bool:
    return name in settings and settings[name].value is not None


def _positive(settings: Settings, name: str) -> float | None:
    number = settings.number(name)
    return number if number is not None and 0 < number < float("inf") else None


def effective_batch(settings: Settings) -> float | None:
    """Return the rows of one update: per device x accumulation x world; None where the settings do not say."""
    whole = _positive(settings, "global_batch_size")
    if whole:
        return whole
    each = _positive(settings, "per_device_train_batch_size")
    if not each:
        return None
    nodes = _positive(settings, "nnodes") or 1.0
    processes = (_positive(settings, "nproc_per_node") or 0.0) * nodes
    world = max(_positive(settings, "world_size") or 1.0, processes)  # Transformers' n_gpu is that of one process
    return each * (_positive(settings, "gradient_accumulation_steps") or 1.0) * world


def _plan(settings: Settings, per_pass: float | None) -> float | None:
    steps = _positive(settings, "max_steps")
    epochs = _positive(settings, "num_train_epochs")
    return steps or (epochs * per_pass if epochs and per_pass else None)


def _warmup(settings: Settings, plan: float | None, per_pass: float | None, batch: float | None) -> float | None:
    """Return the steps of warm-up; in TrainingArguments a number of steps goes before a share."""
    steps = settings.number("warmup_steps")
    ratio, epochs, rows = (settings.number(f"warmup_{unit}") for unit in ("ratio", "epochs", "samples"))
    if steps:
        return steps
    if ratio is not None and 0 < ratio <= 1 and plan:
        return ratio * plan
    if epochs and per_pass:
        return epochs * per_pass
    return rows / batch if rows and batch else steps if not ratio else None


def _clip(settings: Settings, kind: str) -> float | None:
    """Return where gradients are clipped; a bare `clip` of who trains a policy is that of the policy's ratio."""
    if "max_grad_norm" not in settings:
        return None
    if kind in POLICIES and settings["max_grad_norm"].key.rpartition("/")[2].lower() == "clip":
        return None
    clip = settings.number("max_grad_norm")
    return clip if clip is not None and clip > 0 else float("inf")
