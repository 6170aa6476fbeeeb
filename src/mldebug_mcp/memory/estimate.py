"""The verb `estimate_memory`: how much memory training a transformer takes on each device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import get_args

from mldebug_mcp.errors import InputError
from mldebug_mcp.memory.fit import fit_of
from mldebug_mcp.memory.formulas import Setup, parts_of, peak_of, trained_parameters
from mldebug_mcp.memory.gpus import Gpu, gpu_of
from mldebug_mcp.memory.model_shape import ModelShape, read_shape
from mldebug_mcp.memory.read import read_memory
from mldebug_mcp.memory.sizes import size
from mldebug_mcp.models.call import Call
from mldebug_mcp.models.memory import Attention, Checkpointing, Frozen, MemoryEstimate, Optimizer, Precision, Sharding
from mldebug_mcp.suggest import did_you_mean, nearest
from mldebug_mcp.text import clean, shorten

_LEVERS: Mapping[str, tuple[str, str | int | bool]] = {
    "parameters": ("lora_rank", 16),
    "gathered_parameters": ("lora_rank", 16),
    "gradients": ("lora_rank", 16),
    "optimizer_state": ("optimizer", "adamw_8bit"),
    "activations": ("checkpointing", "full"),
    "recomputed_layer": ("lora_rank", 16),
    "logits": ("chunked_loss", True),
}
"""The setting that saves most of each part."""
_MEANT = {
    **dict.fromkeys(("fsdp", "deepspeed", "fullshard", "stage3", "3"), ("zero3",)),
    **dict.fromkeys(("stage2", "2", "shardgradop"), ("zero2",)),
    **dict.fromkeys(("stage1", "1", "distributedoptimizer"), ("zero1",)),
    **dict.fromkeys(("adam", "adamwtorch", "adamwtorchfused", "fused"), ("adamw",)),
    **dict.fromkeys(("8bit", "adamwbnb8bit", "adam8bit", "pagedadamw8bit", "pagedadamw"), ("adamw_8bit",)),
    **dict.fromkeys(("momentum", "nesterov"), ("sgd_momentum",)),
    **dict.fromkeys(("yes", "true", "on", "gradient"), ("full",)),
    **dict.fromkeys(("sdpa", "flashattention2", "memoryefficient", "xformers"), ("flash",)),
    **dict.fromkeys(("math", "naive", "standard"), ("eager",)),
    **dict.fromkeys(("nf4", "qlora", "int4", "fp4", "4"), ("4bit",)),
    **dict.fromkeys(("int8", "fp8", "8"), ("8bit",)),
    **dict.fromkeys(("bfloat16", "half"), ("bf16", "16bit")),
    **dict.fromkeys(("float16",), ("fp16", "16bit")),
    **dict.fromkeys(("float32", "float", "full", "32"), ("fp32", "32bit")),
    **dict.fromkeys(("amp", "autocast"), ("mixed",)),
}
"""What frameworks call the same settings."""
_SOURCES = (
    "Rajbhandari et al. 2020, ZeRO, arXiv 1910.02054: bytes of parameters, gradients and optimizer state; sharding",
    "Korthikanti et al. 2022, Reducing Activation Recomputation, arXiv 2205.05198: activations, tensor parallelism",
    "Dettmers et al. 2022, 8-bit Optimizers, arXiv 2110.02861: state of 1 byte",
    "Narayanan et al. 2021, Efficient Large-Scale Training, arXiv 2104.04473: pipelines of one forward, one backward",
    "Hu et al. 2021, LoRA, arXiv 2106.09685: rank x (inputs + outputs) trained parameters per linear layer",
    "Dettmers et al. 2023, QLoRA, arXiv 2305.14314: 4 bits and 0.127 bits of constants per frozen weight",
    "Bekman, ML Engineering: 18 bytes per parameter; CUDA's context of 0.5 to 2 GiB",
)
_NOTES = (
    "CUDA's context and libraries take another 0.5 to 2 GiB, fragmentation a few percent",
    "activations depend on what is fused: expect 20 % more or less; run two steps with a snapshot and compare",
)


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
    frozen: Frozen | None = None,
    tensor_parallel: int = 1,
    pipeline_parallel: int = 1,
    gpu: str | float | None = None,
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
        frozen: How the frozen base model of a LoRA is held: 32bit, 16bit, 8bit or 4bit (QLoRA); by default 16bit, or
            32bit with precision fp32.
        tensor_parallel: Devices among which each layer is split, with sequence parallelism as in Megatron.
        pipeline_parallel: Stages in which the layers are split; what is told is the fullest. In all it takes `devices`
            times both.
        gpu: A GPU's name (H100, A100-80GB, 4090) or its GiB, to be told whether it fits there and what would make it.
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
        frozen,
        tensor_parallel,
        pipeline_parallel,
    )
    _check(setup)
    _check_split(shape, setup)
    place = None if gpu is None else gpu_of(gpu)
    return _estimate(str(config), shape, setup, None if snapshot is None else _peak_in(snapshot), place)


def _peak_in(snapshot: str | Path) -> int:
    """Return the bytes that the fullest device of a memory snapshot held at its peak."""
    return max((one.peak_allocated for one in read_memory(snapshot).devices), default=0)


def _estimate(config: str, shape: ModelShape, setup: Setup, measured: int | None, gpu: Gpu | None) -> MemoryEstimate:
    parts = parts_of(shape, setup)
    total = peak_of(parts, setup)
    fit = None if gpu is None else fit_of(shape, setup, gpu)
    return MemoryEstimate(
        model=shape.name,
        parameters=shape.parameters,
        trained_parameters=trained_parameters(shape, setup),
        parts=list(parts.values()),
        total_bytes=total,
        settings={name: str(value) for name, value in asdict(setup).items() if value is not None},
        measured_peak_bytes=measured,
        fit=fit,
        sources=list(_SOURCES),
        next_step=_next_call(config, setup, max(parts, key=lambda name: parts[name].bytes)),
        notes=[_in_all(total, sum(part.bytes for part in parts.values())), *_NOTES],
    )


def _in_all(peak: int, parts: int) -> str:
    apart = "; the parts do not all peak at the same moment" if peak < parts else ""
    return f"{size(peak)} on each device at the peak{apart}"


def _next_call(config: str, setup: Setup, largest: str) -> Call:
    """Return a call for the same estimate with the setting that saves most of its largest part, else of the menu."""
    name, value = _LEVERS[largest]
    if name == "lora_rank" and setup.lora_rank is not None:
        name, value = "frozen", "4bit"
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
        "frozen": (None, *get_args(Frozen)),
    }
    for name, values in allowed.items():
        if getattr(setup, name) not in values:
            given, known = getattr(setup, name), list(filter(None, values))
            near = did_you_mean(nearest(str(given), known, meanings=_MEANT))
            raise InputError(f"{name}={shorten(str(given), 60)!r} is not known; {near}use {', '.join(known)}")
    for name in ("batch_size", "length", "accumulation", "devices", "tensor_parallel", "pipeline_parallel"):
        if not 0 < getattr(setup, name) < 1 << 40:
            raise InputError(f"{name} must be at least 1, it is {getattr(setup, name)}")
    if setup.frozen is not None and setup.lora_rank is None:
        raise InputError("frozen says how the base model of a LoRA is held; give lora_rank too")
    if setup.lora_rank is not None and setup.lora_rank < 1:
        raise InputError(f"lora_rank must be at least 1, it is {setup.lora_rank}")


def _check_split(shape: ModelShape, setup: Setup) -> None:
    if shape.heads % setup.tensor_parallel:
        raise InputError(
            f"tensor_parallel={setup.tensor_parallel} must divide the {shape.heads} attention heads of the model"
        )
    if setup.pipeline_parallel > shape.all_layers:
        raise InputError(
            f"pipeline_parallel={setup.pipeline_parallel} is more than the model's {shape.all_layers} layers"
        )
