"""Whether a training fits a GPU, and if not, the least that must change until it does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mldebug_mcp.memory.formulas import Setup, parts_of, peak_of
from mldebug_mcp.memory.gpus import Gpu
from mldebug_mcp.memory.model_shape import ModelShape
from mldebug_mcp.memory.sizes import GIB, MIB, size
from mldebug_mcp.models.memory import FitStep, MemoryFit

CONTEXT = GIB
"""Bytes of CUDA's context and libraries. Source: Bekman, ML Engineering: 0.5 to 2 GiB."""
UNCERTAIN = 0.2
"""Share by which activations and logits may exceed the formula. Chosen: what is fused differs from model to model."""
LORA_RANK = 16
SHORTEST = 256
"""Tokens below which a length is not halved. Chosen: shorter rows are another task."""
LEAST_SAVED = MIB
"""Bytes below which a change is not worth a line. Chosen: less lies below what the estimate knows."""
MOST_DEVICES = 1024


@dataclass(frozen=True, slots=True)
class Change:
    """One change of the settings.

    Args:
        lever: Its name.
        settings: What is set to what.
        costs: What it costs.
    """

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
    return MemoryFit(
        gpu=gpu.name,
        capacity_bytes=gpu.capacity,
        needed_bytes=needed,
        verdict="does_not_fit" if not fits else "tight" if needed + margin > gpu.capacity else "fits",
        plan=steps,
        enough=enough,
        devices_needed=sharded,
        summary=_summary(gpu, needed, margin, steps, enough=enough, sharded=sharded),
    )


def changes(setup: Setup) -> Iterator[Change]:
    """Yield what may be changed, what costs training least first, each to be applied on top of those before.

    What leaves the result as it is comes before what changes numbers, what is trained, or the data.
    """
    if not setup.chunked_loss:
        yield Change("chunked_loss", {"chunked_loss": True}, "nothing: a fused or chunked loss")
    if setup.devices > 1:
        for stage in range(setup.stage + 1, 4):
            yield Change(f"zero{stage}", {"sharding": f"zero{stage}"}, "traffic between the devices")
    if setup.checkpointing != "full":
        yield Change("checkpointing", {"checkpointing": "full"}, "one more forward pass, about a third more time")
    batch, accumulation = setup.batch_size, setup.accumulation
    while batch > 1:
        batch, accumulation = -(-batch // 2), accumulation * 2
        yield Change(
            "smaller_batch", {"batch_size": batch, "accumulation": accumulation}, "smaller matrices, so less speed"
        )
    if setup.optimizer == "adamw":
        yield Change("adamw_8bit", {"optimizer": "adamw_8bit"}, "little: the state is quantized by blocks")
    if setup.lora_rank is None:
        yield Change("lora", {"lora_rank": LORA_RANK}, "only adapters are trained, which can learn less")
    if setup.frozen != "4bit":
        yield Change("qlora", {"frozen": "4bit"}, "slower steps, and a base model that is rounded")
    length = setup.length
    while length >= 2 * SHORTEST:
        length //= 2
        yield Change("shorter_length", {"length": length}, "what lies beyond is cut off")


def _needed(shape: ModelShape, setup: Setup) -> tuple[int, int]:
    """Return the bytes that a device needs, and how much more it may be."""
    parts = parts_of(shape, setup)
    unsure = sum(parts[name].bytes for name in ("activations", "recomputed_layer", "logits") if name in parts)
    return peak_of(parts, setup) + CONTEXT, int(UNCERTAIN * unsure)


def _changed(setup: Setup, plan: list[Change]) -> Setup:
    for one in plan:
        setup = replace(setup, **one.settings)
    return setup


def _plan(shape: ModelShape, setup: Setup, gpu: Gpu) -> list[Change]:
    """Return the changes until it fits, or all, without those that are not needed for that."""
    plan: list[Change] = []
    for one in changes(setup):
        plan.append(one)
        if _needed(shape, _changed(setup, plan))[0] <= gpu.capacity:
            break
    goal = max(gpu.capacity, _needed(shape, _changed(setup, plan))[0] + LEAST_SAVED)
    for one in reversed(plan):
        rest = [other for other in plan if other is not one]
        carries = one.lever == "lora" and any(other.lever == "qlora" for other in rest)
        if not carries and _needed(shape, _changed(setup, rest))[0] <= goal:
            plan = rest
    return list({tuple(one.settings): one for one in plan}.values())


def _steps(shape: ModelShape, setup: Setup, plan: list[Change]) -> list[FitStep]:
    """Return the plan in numbers, in the order in which each change saves most of what is left."""
    steps = []
    before, left = _needed(shape, setup)[0], list(plan)
    while left:
        ready = [one for one in left if one.lever != "qlora" or setup.lora_rank is not None]
        best, after = min(
            ((one, _needed(shape, _changed(setup, [one]))[0]) for one in ready), key=lambda choice: choice[1]
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


def _summary(gpu: Gpu, needed: int, margin: int, steps: list[FitStep], *, enough: bool, sharded: int | None) -> str:
    need = f"{size(needed)} with CUDA's context, of {size(gpu.capacity)} ({gpu.name})"
    if needed <= gpu.capacity:
        if needed + margin <= gpu.capacity:
            return f"fits: {need}"
        return f"tight: {need}; activations may take {size(margin)} more than the formula says"
    names = ", then ".join(
        f"{one.lever} ({', '.join(f'{name} {value}' for name, value in one.settings.items())})" for one in steps
    )
    if enough:
        return f"does not fit: {need}; fits with {names}: {size(steps[-1].needed_bytes)}"
    left = f"even with {names} it takes {size(steps[-1].needed_bytes)}" if steps else "no setting saves enough"
    more = f"ZeRO-3 over {sharded} such GPUs on top of that would fit" if sharded else "use a smaller model"
    return f"does not fit: {need}; {left}; {more}"
