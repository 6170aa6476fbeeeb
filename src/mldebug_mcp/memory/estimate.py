"""The verb `estimate_memory`: how much memory training takes on each device.

It also says what must change to fit a GPU.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, get_args

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import clean, did_you_mean, nearest, shorten
from mldebug_mcp.memory.formulas import STATES, Setup, kept, parts_of, peak_of, trained_parameters
from mldebug_mcp.memory.model_shape import ModelShape, read_shape
from mldebug_mcp.memory.read import read_memory
from mldebug_mcp.memory.tables import GIB, MIB, size
from mldebug_mcp.models.base import Call
from mldebug_mcp.models.data import (
    Attention,
    Checkpointing,
    FitStep,
    Frozen,
    MemoryEstimate,
    MemoryFit,
    Offload,
    Optimizer,
    Precision,
    Sharding,
)

# What a GPU holds: by name, or as a number of GiB.
#
# Capacities are what `torch.cuda.get_device_properties` counts and PyTorch's out-of-memory messages call the total
# capacity. It is below what the maker prints: part of the memory holds error correction and the firmware's own data,
# and makers count in GB of 10^9 bytes for some.


CAPACITY: Mapping[str, float] = {
    "A100-40GB": 39.4,
    "A100-80GB": 79.1,
    "A10": 22.0,
    "A30": 23.5,
    "A40": 44.4,
    "A4000": 15.6,
    "A5000": 23.5,
    "A6000": 47.4,
    "6000 Ada": 47.4,
    "B200": 178.3,
    "GH200": 94.5,
    "GTX 1080 Ti": 10.9,
    "H100": 79.1,
    "H100 NVL": 93.1,
    "H200": 139.8,
    "L4": 22.0,
    "L40": 44.3,
    "L40S": 44.3,
    "MI210": 63.9,
    "MI250X": 63.9,
    "MI300X": 191.9,
    "MI325X": 255.9,
    "P100": 15.8,
    "RTX 2080 Ti": 10.7,
    "RTX 3060": 11.6,
    "RTX 3080": 9.7,
    "RTX 3090": 23.6,
    "RTX 4060 Ti 16GB": 15.5,
    "RTX 4070": 11.6,
    "RTX 4080": 15.6,
    "RTX 4090": 23.6,
    "RTX 5080": 15.4,
    "RTX 5090": 31.3,
    "T4": 14.5,
    "V100-16GB": 15.7,
    "V100-32GB": 31.7,
}
"""GiB, approximately. Those of the RTX 4090, L40S, A30, A4000, A6000, H100 and B200 are the `total capacity` of
PyTorch's out-of-memory messages; the others are chosen a little below the nominal size. An MI250X is two devices of 64
GiB."""
SMALLEST_FIRST: Mapping[str, str] = {
    "a100": "A100-40GB",
    "v100": "V100-16GB",
    "a10g": "A10",
    "4060ti": "RTX 4060 Ti 16GB",
}
"""Names that stand for several, with the smallest of them, and other names of the same."""
MAX_GPU_GIB = 4096
"""GiB that no GPU has."""
_NUMBER_OF_BYTES = re.compile(r"\s*(?P<number>\d+(?:\.\d+)?)\s*(?:gi?b?)?\s*", re.IGNORECASE)
_MAKER = re.compile(
    r"nvidia|geforce|quadro|tesla|rtx|gtx|amd|instinct|radeon|sxm\d?|pcie|hbm\d?e?|tensor|core|gpu|[^a-z0-9]"
)


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU with its bytes."""

    name: str
    capacity: int


def gpu_of(text: str | float) -> Gpu:
    """Return the GPU that a name or a number of GiB stands for, as "H100", "nvidia a100-sxm4-80gb", "24" or 24.

    Raises:
        InputError: it is neither.
    """
    number = _NUMBER_OF_BYTES.fullmatch(str(text)[:60])
    known = {_plain(name): name for name in CAPACITY}
    known |= SMALLEST_FIRST
    name = known.get(_plain(str(text)[:60]))
    if name is not None:
        return Gpu(name, int(CAPACITY[name] * GIB))
    if number and 0 < float(number["number"]) <= MAX_GPU_GIB:
        return Gpu(f"{float(number['number']):g} GiB", int(float(number["number"]) * GIB))
    near = [known[match] for match in nearest(_plain(str(text)[:60]), known)]
    guess = did_you_mean(list(dict.fromkeys(near)))
    raise InputError(
        f"gpu={shorten(str(text), 60)!r} is not known; {guess}give its memory in GiB (24), or one of "
        f"{', '.join(CAPACITY)}"
    )


def _plain(name: str) -> str:
    """Return a name without its maker, its form and its punctuation; "80gb" of an H100 says nothing more."""
    plain = _MAKER.sub("", name.lower())
    return re.sub(r"^(h100)80gb$|^(h200)141gb$|^(l4|a10|a10g|3090|4090|a5000)24gb$|^(t4)16gb$|^(mi300x)192gb$",
                  lambda match: next(filter(None, match.groups())), plain)  # fmt: skip


# Whether a training fits a GPU, and if not, the least that must change until it does.


CONTEXT = GIB
"""Bytes of CUDA's context and libraries. Source: Bekman, ML Engineering: 0.5 to 2 GiB."""
MAX_ACTIVATION_EXCESS_SHARE = 0.2
"""Share by which activations and logits may exceed the formula. Chosen: what is fused differs from model to model."""
LORA_RANK = 16
"""Rank of the adapters that are proposed. Chosen: the usual one."""
MIN_ROW_TOKENS = 256
"""Tokens below which a length is not halved. Chosen: shorter rows are another task."""
LEAST_SAVED = MIB
"""Bytes below which a change is not worth a line. Chosen: less lies below what the estimate knows."""
MOST_DEVICES = 1024
"""Devices up to which a number is looked for on which the model fits."""
MAX_ROW_TOKENS = 1 << 30
"""Tokens of a row beyond which no length is looked for."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of the settings, and what it costs."""

    lever: str
    settings: Mapping[str, Any]
    costs: str


def fit_of(shape: ModelShape, setup: Setup, gpu: Gpu) -> MemoryFit:
    """Return whether the setup fits a GPU, and the changes that make it fit."""
    needed, margin = _needed(shape, setup)
    fits = needed <= gpu.capacity
    plan = [] if fits else _plan(shape, setup, gpu)
    steps = _steps(shape, setup, plan)
    enough = fits or (bool(steps) and steps[-1].needed_bytes <= gpu.capacity)
    sharded = None if enough else _devices_needed(shape, _changed(setup, plan), gpu)
    longest = largest_length(shape, setup, gpu)
    return MemoryFit(
        gpu=gpu.name,
        capacity_bytes=gpu.capacity,
        needed_bytes=needed,
        verdict="does_not_fit" if not fits else "tight" if needed + margin > gpu.capacity else "fits",
        plan=steps,
        enough=enough,
        devices_needed=sharded,
        largest_length=longest,
        summary=_summary(
            gpu, needed, margin, steps, enough=enough, sharded=sharded, room=_room(shape, setup, gpu, longest)
        ),
    )


def largest_length(shape: ModelShape, setup: Setup, gpu: Gpu) -> int | None:
    """Return the most tokens of a row with which the setup fits a GPU; None where not even one does, or of images.

    Positions that have embeddings bound it. Others are not looked at: they can be extended.
    """
    if shape.patch:
        return None
    most = _most_that_fit(lambda length: _needed(shape, replace(setup, length=length))[0] <= gpu.capacity)
    return min(most, (shape.stated_positions if shape.learned_positions else None) or most) or None


def _most_that_fit(fits: Callable[[int], bool]) -> int:
    """Return the greatest number that fits, `MAX_ROW_TOKENS` at most; 0 where not even 1 does."""
    low, high = 0, 1
    while high <= MAX_ROW_TOKENS and fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def changes(setup: Setup) -> Iterator[Change]:
    """Yield what may be changed, what costs training least first, each to be applied on top of those before.

    What leaves the result as it is comes before what changes numbers, what is trained, or the data.
    """
    if not setup.chunked_loss:
        yield Change("chunked_loss", {"chunked_loss": True}, "nothing: a fused or chunked loss")
    if setup.attention == "eager":
        yield Change("fused_attention", {"attention": "flash"}, "nothing, unless weights or soft caps of it are needed")
    if setup.optimizer == "adamw":
        yield Change("fused_optimizer", {"optimizer": "adamw_fused"}, "nothing: AdamW(fused=True)")
    if setup.devices > 1:
        for stage in range(setup.stage + 1, 4):
            yield Change(f"zero{stage}", {"sharding": f"zero{stage}"}, "traffic between the devices")
    if setup.checkpointing != "full":
        yield Change("checkpointing", {"checkpointing": "full"}, "one more forward pass, about a third more time")
    yield from _smaller_batches(setup)
    yield from _other_optimizers(setup)
    if setup.lora_rank is None:
        yield Change("lora", {"lora_rank": LORA_RANK}, "only adapters are trained, which can learn less")
    if setup.frozen != "4bit":
        yield Change("qlora", {"frozen": "4bit"}, "slower steps, and a base model that is rounded")
    length = setup.length
    while length >= 2 * MIN_ROW_TOKENS:
        length //= 2
        yield Change("shorter_length", {"length": length}, "what lies beyond is cut off")


def _smaller_batches(setup: Setup) -> Iterator[Change]:
    batch, accumulation = setup.batch_size, setup.accumulation
    while batch > 1:
        batch, accumulation = -(-batch // 2), accumulation * 2
        yield Change(
            "smaller_batch", {"batch_size": batch, "accumulation": accumulation}, "smaller matrices, so less speed"
        )


def _other_optimizers(setup: Setup) -> Iterator[Change]:
    if setup.optimizer in ("adamw", "adamw_fused"):
        yield Change("adamw_8bit", {"optimizer": "adamw_8bit"}, "little: the state is quantized by blocks")
    if not setup.optimizer_in_backward and setup.accumulation == setup.batch_size == 1:
        yield Change(
            "optimizer_in_backward", {"optimizer_in_backward": True}, "no accumulation, no clipping by the whole norm"
        )
    if setup.offload == "none":
        yield Change("offload_optimizer", {"offload": "optimizer"}, "slower steps: gradients and weights pass the bus")


def _needed(shape: ModelShape, setup: Setup) -> tuple[int, int]:
    """Return the bytes that a device needs, and how much more it may be."""
    parts = parts_of(shape, setup)
    unsure = sum(parts[name].bytes for name in ("activations", "recomputed_layer", "logits") if name in parts)
    return peak_of(parts, setup) + CONTEXT, int(MAX_ACTIVATION_EXCESS_SHARE * unsure)


def _changed(setup: Setup, plan: list[Change]) -> Setup:
    for change in plan:
        setup = replace(setup, **change.settings)
    return setup


def _plan(shape: ModelShape, setup: Setup, gpu: Gpu) -> list[Change]:
    """Return the changes until it fits, or all, without those that are not needed for that."""
    plan: list[Change] = []
    for change in changes(setup):
        plan.append(change)
        if _needed(shape, _changed(setup, plan))[0] <= gpu.capacity:
            break
    goal = max(gpu.capacity, _needed(shape, _changed(setup, plan))[0] + LEAST_SAVED)
    for change in reversed(plan):
        rest = [other for other in plan if other is not change]
        carries = change.lever == "lora" and any(other.lever == "qlora" for other in rest)
        if not carries and _needed(shape, _changed(setup, rest))[0] <= goal:
            plan = rest
    return list({tuple(change.settings): change for change in plan}.values())


def _steps(shape: ModelShape, setup: Setup, plan: list[Change]) -> list[FitStep]:
    """Return the plan in numbers, in the order in which each change saves most of what is left."""
    steps = []
    before, left = _needed(shape, setup)[0], list(plan)
    while left:
        ready = [change for change in left if change.lever != "qlora" or setup.lora_rank is not None]
        best, after = min(
            ((change, _needed(shape, _changed(setup, [change]))[0]) for change in ready), key=lambda choice: choice[1]
        )
        settings = {name: str(value) for name, value in best.settings.items()}
        steps.append(
            FitStep(
                lever=best.lever, settings=settings, saves_bytes=before - after, needed_bytes=after, costs=best.costs
            )
        )
        setup, before = _changed(setup, [best]), after
        left.remove(best)
    return steps


def _devices_needed(shape: ModelShape, setup: Setup, gpu: Gpu) -> int | None:
    """Return the fewest devices, doubled each time, over which ZeRO-3 makes it fit; None if none of 1,024 do."""
    devices = max(2, setup.devices)
    while devices <= MOST_DEVICES:
        if _needed(shape, replace(setup, devices=devices, sharding="zero3"))[0] <= gpu.capacity:
            return devices
        devices *= 2
    return None


def _room(shape: ModelShape, setup: Setup, gpu: Gpu, length: int | None) -> str:
    """Return what more would fit: longer rows, or more of them where all images have one size."""
    if shape.patch:
        rows = _most_that_fit(lambda batch: _needed(shape, replace(setup, batch_size=batch))[0] <= gpu.capacity)
        return f"; batches of up to {rows:,} images fit" if rows else ""
    if not length:
        return ""
    if length == shape.stated_positions:
        return f"; rows of all its {length:,} positions fit"
    stated = shape.stated_positions or length
    beyond = f", more than the {stated:,} positions of its configuration" if length > stated else ""
    return f"; rows of up to {length:,} tokens fit{beyond}"


def _summary(
    gpu: Gpu,
    needed: int,
    margin: int,
    steps: list[FitStep],
    *,
    enough: bool,
    sharded: int | None,
    room: str,
) -> str:
    need = f"{size(needed)} with CUDA's context, of {size(gpu.capacity)} ({gpu.name})"
    if needed <= gpu.capacity:
        if needed + margin <= gpu.capacity:
            return f"fits: {need}{room}"
        return f"tight: {need}; activations may take {size(margin)} more than the formula says"
    names = ", then ".join(
        f"{step.lever} ({', '.join(f'{name} {value}' for name, value in step.settings.items())})" for step in steps
    )
    if enough:
        return f"does not fit: {need}; fits with {names}: {size(steps[-1].needed_bytes)}"
    left = f"even with {names} it takes {size(steps[-1].needed_bytes)}" if steps else "no setting saves enough"
    more = f"ZeRO-3 over {sharded} such GPUs on top of that would fit" if sharded else "use a smaller model"
    return f"does not fit: {need}; {left}; {more}"


_LEVERS: Mapping[str, tuple[str, str | int | bool]] = {
    "parameters": ("lora_rank", 16),
    "gathered_parameters": ("lora_rank", 16),
    "gradients": ("lora_rank", 16),
    "optimizer_state": ("optimizer", "adamw_8bit"),
    "optimizer_temporary": ("optimizer", "adamw_fused"),
    "activations": ("checkpointing", "full"),
    "recomputed_layer": ("lora_rank", 16),
    "logits": ("chunked_loss", True),
}
"""The setting that saves most of each part."""
_MEANT = {
    **dict.fromkeys(("fsdp", "deepspeed", "fullshard", "stage3", "3"), ("zero3",)),
    **dict.fromkeys(("stage2", "2", "shardgradop"), ("zero2",)),
    **dict.fromkeys(("stage1", "1", "distributedoptimizer"), ("zero1",)),
    **dict.fromkeys(("adam", "adamwtorch"), ("adamw",)),
    **dict.fromkeys(("adamwtorchfused", "fused", "adamfused"), ("adamw_fused",)),
    **dict.fromkeys(("8bit", "adamwbnb8bit", "adam8bit"), ("adamw_8bit",)),
    **dict.fromkeys(("pagedadamw32bit", "pagedadam"), ("paged_adamw",)),
    **dict.fromkeys(("pagedadam8bit",), ("paged_adamw_8bit",)),
    **dict.fromkeys(("adamw4bit", "adam4bit", "adamwtorch4bit"), ("adamw_4bit",)),
    **dict.fromkeys(("adamfp8", "adamwtorch8bit"), ("adamw_fp8",)),
    **dict.fromkeys(("lion32bit", "lionpytorch"), ("lion",)),
    **dict.fromkeys(("cpu", "offloadoptimizer", "zerooffload"), ("optimizer",)),
    **dict.fromkeys(("params", "offloadparam", "zeroinfinity"), ("parameters",)),
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
    "Transformers, modeling_*.py: which results each layer keeps for backward",
    "Dettmers et al. 2022, 8-bit Optimizers, arXiv 2110.02861: state of 1 byte",
    "measured on an H200 with bitsandbytes and torchao: 8-bit Adam 2.033 bytes a parameter, 4-bit 1.063, fp8 2.031, "
    "8-bit Lion 1.017",
    "Ren et al. 2021, ZeRO-Offload, arXiv 2101.06840: the optimizer's state and the gradients on the CPU",
    "Narayanan et al. 2021, Efficient Large-Scale Training, arXiv 2104.04473: pipelines of one forward, one backward",
    "Hu et al. 2021, LoRA, arXiv 2106.09685: rank x (inputs + outputs) trained parameters per linear layer",
    "Dettmers et al. 2023, QLoRA, arXiv 2305.14314: 4 bits and 0.127 bits of constants per frozen weight",
    "Bekman, ML Engineering: 18 bytes per parameter; CUDA's context of 0.5 to 2 GiB",
)
MEASURED_PEAKS = 28
"""Peaks in benchmarks/gpu/peaks.json."""
MEASURED_ERROR = 0.014
"""The largest relative error of the estimate on them."""
MEASURED_ON = "one NVIDIA H200 (four architectures, torch 2.11, Transformers 5.17)"
_NOTES = (
    "CUDA's context and libraries take another 0.5 to 2 GiB, fragmentation a few percent",
    f"on {MEASURED_PEAKS} peaks measured on {MEASURED_ON} the estimate is off by {MEASURED_ERROR:.1%} at most; code "
    "that is not Transformers' own, or compiled, may keep other activations: run two steps with a snapshot and compare",
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
    offload: Offload = "none",
    optimizer_in_backward: bool = False,
) -> MemoryEstimate:
    """Estimate the peak memory of training a transformer, part by part.

    Args:
        config: The model's `config.json`, or the folder that holds it.
        batch_size: Rows per device and forward pass.
        length: Tokens per row; by default the model's longest, 2048 at most.
        precision: mixed (autocast over float32 weights), bf16, fp16 or fp32.
        optimizer: adamw (PyTorch's default, which steps all parameters at once), adamw_fused, adamw_8bit, adamw_4bit,
            adamw_fp8, paged_adamw, paged_adamw_8bit, lion, lion_8bit, paged_lion_8bit, sgd, sgd_momentum or adafactor.
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
        pipeline_parallel: Stages in which the layers are split; the answer is the fullest. In all it takes `devices`
            times both.
        gpu: A GPU's name (H100, A100-80GB, 4090) or its GiB, to see whether it fits there and what would make it.
        snapshot: A memory snapshot whose peak is put next to the estimate.
        offload: What lies on the CPU: none, optimizer (its state, from ZeRO-2 on also the gradients, as ZeRO-Offload
            does), or parameters (all of these, as ZeRO-Infinity does).
        optimizer_in_backward: Whether each parameter is stepped when its gradient is there, which is freed then.

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
        offload,
        optimizer_in_backward,
    )
    _check(setup)
    _check_split(shape, setup)
    place = None if gpu is None else gpu_of(gpu)
    return _estimate(str(config), shape, setup, None if snapshot is None else _peak_in(snapshot), place)


def _peak_in(snapshot: str | Path) -> int:
    """Return the bytes that the fullest device of a memory snapshot held at its peak."""
    known = [peak for device in read_memory(snapshot).devices if (peak := device.known_peaks[0]) is not None]
    if not known:
        raise InputError(f"{shorten(str(snapshot), 200)}: it holds no history, so its peak is not known")
    return max(known)


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
        next_step=_next_call(config, shape, setup, max(parts, key=lambda name: parts[name].bytes), gpu),
        notes=[_peak_summary(total, sum(part.bytes for part in parts.values())), *_notes(shape, setup), *_NOTES],
    )


def _notes(shape: ModelShape, setup: Setup) -> list[str]:
    """Return what of this model and setup the estimate counts in its own way, or does not count."""
    notes = []
    if shape.towers:
        towers = ", ".join(shape.towers)
        counted = (
            f"{towers}: left out, its layers cannot be read"
            if shape.tower is None
            else f"{towers}: about {shape.tower:,} parameters are counted, with the projector"
        )
        notes.append(f"{counted}; its activations are not; add the tokens of images or sound to length")
    if shape.like:
        whose = "a mixture of experts whose" if shape.like == "Mixtral" else "its"
        notes.append(
            f"{shape.name}: {whose} layers are counted as {shape.like}'s; compare its parameters with the "
            f"{shape.parameters:,} that are counted"
        )
    if kept(shape, setup).stores_scores and setup.attention == "flash":
        notes.append(
            "fused attention in float32 takes no grouped keys and values: PyTorch stores scores of length x length; "
            "bf16 does not"
        )
    if shape.attention_softcap and setup.attention == "flash":
        notes.append("fused attention leaves out the soft cap of the scores; attention=eager counts it")
    if setup.sharding == "none" and setup.devices > 1:
        notes.append(
            f"devices={setup.devices} changes nothing here: with sharding=none each one holds the whole state; "
            "sharding=zero1, zero2 or zero3 divides it"
        )
    if STATES[setup.optimizer].paged:
        notes.append("paged state lies outside of PyTorch's allocator and moves to the CPU when the device is full")
    return notes


def _peak_summary(peak: int, parts: int) -> str:
    apart = "; the parts do not all peak at the same moment" if peak < parts else ""
    return f"{size(peak)} on each device at the peak{apart}"


def _next_call(config: str, shape: ModelShape, setup: Setup, largest: str, gpu: Gpu | None) -> Call:
    """Return a call for the same estimate with the plan that makes it fit, or with what saves most; else the menu."""
    place = {} if gpu is None else {"gpu": gpu.name}
    if gpu is not None and _needed(shape, setup)[0] <= gpu.capacity:
        return _menu("what to do where it runs out all the same")
    if gpu is not None and clean(config) == config:
        planned = _changed(setup, _plan(shape, setup, gpu))
        if _needed(shape, planned)[0] <= gpu.capacity:
            return _changed_call(config, planned, place, f"the plan that fits {gpu.name}, in full")
    name, value = _LEVERS.get(largest, ("checkpointing", "full"))
    if name == "lora_rank" and setup.lora_rank is not None:
        name, value = "frozen", "4bit"
    if getattr(setup, name) == value or clean(config) != config:
        return _menu("other ways to save memory")
    return _changed_call(config, setup, {name: value, **place}, f"what that saves of {largest}")


def _menu(why: str) -> Call:
    return Call(tool="explain", arguments={"id": "menu_out_of_memory"}, why=why)


def _changed_call(config: str, setup: Setup, changed: Mapping[str, Any], why: str) -> Call:
    given = {word: setting for word, setting in asdict(setup).items() if setting is not None}
    return Call(tool="estimate_memory", arguments={"config": config, **given, **changed}, why=why)


def _check(setup: Setup) -> None:
    allowed = {
        "precision": get_args(Precision),
        "optimizer": get_args(Optimizer),
        "checkpointing": get_args(Checkpointing),
        "attention": get_args(Attention),
        "sharding": get_args(Sharding),
        "frozen": (None, *get_args(Frozen)),
        "offload": get_args(Offload),
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
    if setup.optimizer_in_backward and setup.accumulation > 1:
        raise InputError(
            "optimizer_in_backward frees each gradient at once, so that none can accumulate; give accumulation 1"
        )
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
