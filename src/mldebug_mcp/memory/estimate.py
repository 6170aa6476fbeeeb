"""The memory that training a transformer takes on each device, by formula.

| part | bytes | source |
| --- | --- | --- |
| parameters | 4 or 2 each; mixed precision adds a 16-bit copy (2) | Rajbhandari et al. 2020 (ZeRO), section 3.1 |
| gradients | as the parameters | the same |
| optimizer state | AdamW 2 numbers per parameter, in the parameter's precision | the same; torch.optim.adamw |
| activations | per token and layer, what autograd keeps (`bytes_per_token`) | Korthikanti et al. 2022, equations 1 and
2 |
| logits | batch x length x vocabulary: logits, float32 copy, log-probabilities, gradient | torch cross_entropy |
| sharding | state / N; from stage 2 gradients / N; at stage 3 parameters / N | Rajbhandari et al. 2020, figure 1 |

For AdamW in mixed precision this is 4 + 2 + 4 + 8 = 18 bytes per parameter, as Bekman counts (ML Engineering, anatomy
of a model's memory usage).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import get_args

from mldebug_mcp.errors import InputError
from mldebug_mcp.memory.model_shape import ModelShape, read_shape
from mldebug_mcp.memory.read import read_memory
from mldebug_mcp.models.call import Call
from mldebug_mcp.models.memory import (
    Attention,
    Checkpointing,
    MemoryEstimate,
    MemoryPart,
    Optimizer,
    Precision,
    Sharding,
)
from mldebug_mcp.text import clean

LOSS_CHUNKS = 8
_STATES: Mapping[str, float] = {"adamw": 2, "adamw_8bit": 2, "lion": 1, "sgd": 0, "sgd_momentum": 1, "adafactor": 0}
_LEVERS: Mapping[str, tuple[str, str | int | bool]] = {
    "parameters": ("lora_rank", 16),
    "gathered_parameters": ("lora_rank", 16),
    "gradients": ("lora_rank", 16),
    "optimizer_state": ("optimizer", "adamw_8bit"),
    "activations": ("checkpointing", "full"),
    "logits": ("chunked_loss", True),
}
"""The setting that saves most of each part."""
_SOURCES = (
    "Rajbhandari et al. 2020, ZeRO, arXiv 1910.02054: bytes of parameters, gradients and optimizer state; sharding",
    "Korthikanti et al. 2022, Reducing Activation Recomputation, arXiv 2205.05198: activations",
    "Dettmers et al. 2022, 8-bit Optimizers, arXiv 2110.02861: state of 1 byte",
    "Hu et al. 2021, LoRA, arXiv 2106.09685: rank x (inputs + outputs) trained parameters per linear layer",
    "Bekman, ML Engineering: 18 bytes per parameter; CUDA's context of 0.5 to 2 GiB",
)
_NOTES = (
    "CUDA's context and libraries take another 0.5 to 2 GiB, fragmentation a few percent",
    "activations depend on what is fused: expect 20 % more or less; run two steps with a snapshot and compare",
)


@dataclass(frozen=True, slots=True)
class Setup:
    """How a model is trained.

    Args:
        batch_size: Rows per device and forward pass.
        length: Tokens per row.
        precision: mixed (autocast over float32 weights), or all in one.
        optimizer: Which.
        checkpointing: What is recomputed in backward.
        attention: Whether scores are stored (eager).
        accumulation: Micro-batches per step; more than one keeps gradients beside activations.
        devices: Devices that share what `sharding` splits.
        sharding: What they share.
        lora_rank: Rank of adapters on every linear layer, if only those are trained.
        chunked_loss: Whether the loss works on an eighth of the logits at a time.
    """

    batch_size: int
    length: int
    precision: Precision = "mixed"
    optimizer: Optimizer = "adamw"
    checkpointing: Checkpointing = "none"
    attention: Attention = "flash"
    accumulation: int = 1
    devices: int = 1
    sharding: Sharding = "none"
    lora_rank: int | None = None
    chunked_loss: bool = False

    @property
    def tokens(self) -> int:
        """Tokens of a forward pass."""
        return self.batch_size * self.length

    @property
    def weight_bytes(self) -> int:
        """Bytes of a parameter."""
        return 4 if self.precision in ("mixed", "fp32") else 2

    @property
    def compute_bytes(self) -> int:
        """Bytes of an activation."""
        return 4 if self.precision == "fp32" else 2

    @property
    def stage(self) -> int:
        """ZeRO stage."""
        return ("none", "zero1", "zero2", "zero3").index(self.sharding)

    def share(self, stage: int) -> int:
        """Return among how many devices something is split that is split from this stage on."""
        return self.devices if self.stage >= stage else 1


def estimate_memory(
    config: str | Path,
    *,
    batch_size: int = 1,
    length: int | None = None,
    precision: Precision = "mixed",
    optimizer: Optimizer = "adamw",
    checkpointing: Checkpointing = "none",
    attention: Attention = "flash",
    accumulation: int = 1,
    devices: int = 1,
    sharding: Sharding = "none",
    lora_rank: int | None = None,
    chunked_loss: bool = False,
    snapshot: str | Path | None = None,
) -> MemoryEstimate:
    """Estimate the peak memory of training a transformer, part by part.

    Args:
        config: The model's `config.json`, or the folder that holds it.
        batch_size: Rows per device and forward pass.
        length: Tokens per row; by default the model's longest, 2048 at most.
        precision: mixed (autocast over float32 weights), bf16, fp16 or fp32.
        optimizer: adamw, adamw_8bit, lion, sgd, sgd_momentum or adafactor.
        checkpointing: none, selective (attention scores) or full (one tensor per layer is kept).
        attention: flash, or eager, which stores scores of length x length.
        accumulation: Micro-batches per step.
        devices: Devices that share what `sharding` splits.
        sharding: none, zero1 (optimizer state), zero2 (and gradients), zero3 or FSDP (and parameters).
        lora_rank: Rank of the adapters, if only those are trained.
        chunked_loss: Whether the loss is computed in chunks.
        snapshot: A memory snapshot whose peak is put beside the estimate.

    Raises:
        InputError: the configuration or an argument cannot be used.
    """
    shape = read_shape(config)
    setup = Setup(
        batch_size,
        length or min(shape.positions, 2048),
        precision,
        optimizer,
        checkpointing,
        attention,
        accumulation,
        devices,
        sharding,
        lora_rank,
        chunked_loss,
    )
    _check(setup)
    return _estimate(str(config), shape, setup, None if snapshot is None else _peak_in(snapshot))


def _peak_in(snapshot: str | Path) -> int:
    """Return the bytes that the fullest device of a memory snapshot held at its peak."""
    return max((one.peak_allocated for one in read_memory(snapshot).devices), default=0)


def _estimate(config: str, shape: ModelShape, setup: Setup, measured: int | None) -> MemoryEstimate:
    parts, trained = _parts(shape, setup)
    return MemoryEstimate(
        model=shape.name,
        parameters=shape.parameters,
        trained_parameters=trained,
        parts=list(parts.values()),
        total_bytes=_peak(parts, setup),
        settings=_settings(setup),
        measured_peak_bytes=measured,
        sources=list(_SOURCES),
        next_step=_next_call(config, setup, max(parts, key=lambda name: parts[name].bytes)),
        notes=list(_NOTES),
    )


def _next_call(config: str, setup: Setup, largest: str) -> Call:
    """Return a call for the same estimate with the setting that saves most of its largest part, else of the menu."""
    name, value = _LEVERS[largest]
    if getattr(setup, name) == value or clean(config) != config:
        return Call(tool="explain", arguments={"id": "menu_out_of_memory"}, why="other ways to save memory")
    given = {word: one for word, one in asdict(setup).items() if one is not None}
    return Call(
        tool="estimate_memory", arguments={"config": config, **given, name: value}, why=f"what that saves of {largest}"
    )


def _check(setup: Setup) -> None:
    allowed = {
        "precision": get_args(Precision),
        "optimizer": get_args(Optimizer),
        "checkpointing": get_args(Checkpointing),
        "attention": get_args(Attention),
        "sharding": get_args(Sharding),
    }
    for name, values in allowed.items():
        if getattr(setup, name) not in values:
            raise InputError(f"{name}={getattr(setup, name)!r} is not known; use {', '.join(values)}")
    for name in ("batch_size", "length", "accumulation", "devices"):
        if not 0 < getattr(setup, name) < 1 << 40:
            raise InputError(f"{name} must be at least 1, it is {getattr(setup, name)}")
    if setup.lora_rank is not None and setup.lora_rank < 1:
        raise InputError(f"lora_rank must be at least 1, it is {setup.lora_rank}")


def _settings(setup: Setup) -> dict[str, str]:
    names = ("batch_size", "length", "precision", "optimizer", "checkpointing", "attention", "accumulation", "devices")
    more = ("sharding", "lora_rank", "chunked_loss")
    return {name: str(getattr(setup, name)) for name in (*names, *more)}


def _parts(shape: ModelShape, setup: Setup) -> tuple[dict[str, MemoryPart], int]:
    count = shape.parameters
    trained = count
    if setup.lora_rank is not None:
        trained = shape.layers * sum(setup.lora_rank * (a + b) for a, b in shape.linears)
        count += trained
    copies = 2 if setup.precision == "mixed" else 0
    state = 1 if setup.optimizer == "adamw_8bit" else setup.weight_bytes
    numbers = _STATES[setup.optimizer]
    one_layer, formula = bytes_per_token(shape, setup)
    layers, per_token = shape.layers, setup.tokens
    if setup.checkpointing == "full":
        kept = per_token * (shape.hidden * setup.compute_bytes * layers + one_layer)
        formula = f"tokens x (layers x hidden x {setup.compute_bytes} + one layer recomputed: {one_layer:,} bytes)"
    else:
        kept, formula = per_token * one_layer * layers, f"tokens x layers x {one_layer:,} bytes ({formula})"
    logits, logits_formula = _logits(shape, setup)
    shards = {stage: f" / {setup.devices} devices" if setup.share(stage) > 1 else "" for stage in (1, 2, 3)}
    entries = (
        (
            "parameters",
            count * (setup.weight_bytes + copies) // setup.share(3),
            f"{count:,} x {setup.weight_bytes}{' + 2 for the 16-bit copy' if copies else ''}{shards[3]}",
        ),
        (
            "gathered_parameters",
            2 * shape.layer_parameters * setup.compute_bytes if setup.share(3) > 1 else 0,
            "two layers, gathered for use",
        ),
        ("gradients", trained * setup.weight_bytes // setup.share(2), f"{trained:,} x {setup.weight_bytes}{shards[2]}"),
        (
            "optimizer_state",
            int(trained * numbers * state) // setup.share(1),
            f"{trained:,} x {numbers:g} x {state}{shards[1]}",
        ),
        ("activations", kept, formula),
        ("logits", logits, logits_formula),
    )
    return {name: MemoryPart(part=name, bytes=size, formula=text) for name, size, text in entries if size}, trained


def bytes_per_token(shape: ModelShape, setup: Setup) -> tuple[int, str]:
    """Return the bytes that autograd keeps for one token in one layer.

    Inputs and outputs of both norms, queries, keys and values, attention's output, and of the feed-forward part each
    matrix's output and the product's factors. For GPT without dropout these are the 32 bytes x hidden of
    Korthikanti's 34.
    """
    wide = shape.expert_width * shape.active_experts if shape.experts > 1 else shape.feed_forward
    kept = 4 * shape.hidden + 2 * shape.attention_width + 2 * shape.kv_width
    kept += wide * (4 if shape.matrices == 3 else 2)
    size = kept * setup.compute_bytes
    if setup.attention == "eager" and setup.checkpointing == "none":
        return size + 5 * shape.heads * setup.length, "with attention scores: 5 x heads x length"
    return size, f"{kept:,} numbers kept"


def _logits(shape: ModelShape, setup: Setup) -> tuple[int, str]:
    """Return logits, their float32 copy where they are shorter, log-probabilities and gradient."""
    each = 12 if setup.compute_bytes == 4 else 14
    chunks = LOSS_CHUNKS if setup.chunked_loss else 1
    text = f"tokens x {shape.vocabulary:,} x {each}{f' / {chunks} chunks' if chunks > 1 else ''}"
    return setup.tokens * shape.vocabulary * each // chunks, text


def _peak(parts: Mapping[str, MemoryPart], setup: Setup) -> int:
    """Return the peak: at the start of backward, or at its end.

    With one micro-batch per step the gradients replace the activations; with more they are held at the same time.
    """

    def of(*names: str) -> int:
        return sum(parts[name].bytes for name in names if name in parts)

    always = of("parameters", "gathered_parameters", "optimizer_state")
    step = of("activations", "logits")
    return always + (step + of("gradients") if setup.accumulation > 1 else max(step, of("gradients")))
