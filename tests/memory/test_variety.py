"""Sound workloads of other shapes than those that the thresholds were chosen on: none may raise an alarm."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from mldebug_mcp.judge.memory import check_memory
from tests.memory import scenarios
from tests.memory.allocator import MIB, Allocator
from tests.memory.conftest import Save


def accumulating() -> Allocator:
    """Four micro-batches per step; the gradients stay allocated for good (set_to_none=False)."""
    model = scenarios.Decoder(Allocator()).build()
    for _ in range(6):
        for _ in range(4):
            model.backward(model.forward(), model.loss())
        model.optimizer_step()
    return model.gpu


def generating() -> Allocator:
    """Generation: keys and values grow by concatenation and are freed at the end of each sequence."""
    model = scenarios.Decoder(Allocator()).build()
    gpu = model.gpu
    for _ in range(4):
        cache: list[int] = []
        for token in range(40):
            new = [gpu.malloc(MIB // 8 * (token + 1), scenarios.layer(33)) for _ in range(2 * model.layers)]
            for address in cache:
                gpu.free(address)
            cache = new
            gpu.free(gpu.malloc(model.vocab * 4, scenarios.LOGITS))
        for address in cache:
            gpu.free(address)
    return gpu


def prefetching() -> Allocator:
    """The next two batches are on the device already."""
    model = scenarios.Decoder(Allocator()).build()
    ahead = [model.gpu.malloc(4 * MIB, scenarios.BATCH) for _ in range(2)]
    for _ in range(8):
        ahead.append(model.gpu.malloc(4 * MIB, scenarios.BATCH))
        model.train_step()
        model.gpu.free(ahead.pop(0))
    return model.gpu


def averaging() -> Allocator:
    """An average of the weights is made once, after some steps, and kept."""
    model = scenarios.Decoder(Allocator()).build()
    for step in range(8):
        model.train_step()
        if step == 3:
            for size in model.sizes:
                model.gpu.malloc(size, scenarios.LEAK)
    return model.gpu


def evaluating() -> Allocator:
    """An evaluation under no_grad after every third step."""
    model = scenarios.Decoder(Allocator()).build()
    for step in range(9):
        model.train_step()
        if step % 3 == 2:
            for _ in range(3):
                for address in scenarios.no_grad(model):
                    model.gpu.free(address)
    return model.gpu


def logging_scalars() -> Allocator:
    """Each step leaves a scalar in a list: a leak in words, nothing in bytes."""
    model = scenarios.Decoder(Allocator()).build()
    for _ in range(20):
        model.train_step()
        model.gpu.malloc(4, scenarios.LEAK)
    return model.gpu


def sgd() -> Allocator:
    """No optimizer state at all."""
    model = scenarios.Decoder(Allocator()).build()
    for _ in range(6):
        batch = model.gpu.malloc(MIB, scenarios.BATCH)
        model.backward(model.forward(), model.loss())
        model.zero_grad()
        model.gpu.free(batch)
    return model.gpu


def random_lengths() -> Allocator:
    """Lengths drawn anew for each step."""
    draw = random.Random(3)
    model = scenarios.Decoder(Allocator(), vocab=2000).build()
    for _ in range(25):
        model.length = draw.randrange(64, 512)
        model.train_step()
    return model.gpu


def wrapped() -> Allocator:
    """A history that lost its beginning."""
    gpu = scenarios.training(steps=12)
    gpu.max_entries = 1000
    return gpu


def two_players() -> Allocator:
    """Two models of small tensors take turns, each with an optimizer: the pieces between steps are those of a step."""
    gpu = Allocator()
    for _ in range(12):
        gpu.malloc(8 * MIB, scenarios.INIT)
    made = False
    for _ in range(10):
        batch = gpu.malloc(6 * MIB, scenarios.BATCH)
        for line in (31, 32):
            kept = [gpu.malloc(12 * MIB, scenarios.layer(line)) for _ in range(6)]
            grads = [gpu.malloc(8 * MIB, scenarios.BACKWARD) for _ in range(6)]
            for address in kept:
                gpu.free(address)
            if not made:
                for _ in range(12):
                    gpu.malloc(8 * MIB, scenarios.OPTIMIZER)
            gpu.free(gpu.malloc(8 * MIB, scenarios.FOREACH))
            for address in grads:
                gpu.free(address)
        made = True
        gpu.free(batch)
    return gpu


def one_pass() -> Allocator:
    """A history of the first forward pass of a deep model alone: each layer keeps what backward will want."""
    model = scenarios.Decoder(Allocator(), layers=40).build()
    model.gpu.events.clear()
    model.forward()
    return model.gpu


def building() -> Allocator:
    """Layers are made on the device one after the other, each by way of a draft that goes."""
    gpu = Allocator()
    block, model = ("/home/me/model.py", 44, "__init__"), ("/home/me/train.py", 10, "main")
    for _ in range(60):
        for line in (20, 21, 22):
            gpu.malloc(4 * MIB, scenarios.stack(("/home/me/model.py", line, "__init__"), block, model))
        gpu.free(gpu.malloc(4 * MIB, scenarios.stack(("/home/me/model.py", 33, "draw"), block, model)))
    return gpu


def unrolling() -> Allocator:
    """A long sequence is unrolled in the user's own loop, late in a training: no backward yet in what is recorded."""
    model = scenarios.Decoder(Allocator()).build()
    model.train_step()
    model.gpu.events.clear()
    caller = (("/home/me/train.py", 40, "unroll"), ("/home/me/train.py", 90, "main"))
    cell, readout = (scenarios.stack(("/home/me/cell.py", line, "update"), *caller) for line in (12, 14))
    for _ in range(60):
        draft = model.gpu.malloc(24 * MIB, scenarios.stack(("/home/me/cell.py", 11, "update"), *caller))
        model.gpu.malloc(4 * MIB, cell)
        model.gpu.malloc(2 * MIB, readout)
        model.gpu.free(draft)
    return model.gpu


def decoding() -> Allocator:
    """One text is written token by token, and keys and values are appended to lists."""
    model = scenarios.Decoder(Allocator()).build()
    call = ("/home/me/talk.py", 30, "generate")
    for _ in range(60):
        draft = model.gpu.malloc(24 * MIB, scenarios.layer(34, call))
        for line in (31, 32):
            model.gpu.malloc(2 * MIB, scenarios.layer(line, call))
        model.gpu.free(draft)
        model.gpu.free(model.gpu.malloc(MIB, scenarios.stack(("/home/me/talk.py", 34, "pick"), call, scenarios.MAIN)))
    return model.gpu


SOUND: dict[str, Callable[[], Allocator]] = {
    one.__name__: one
    for one in (
        accumulating,
        generating,
        prefetching,
        averaging,
        evaluating,
        logging_scalars,
        sgd,
        random_lengths,
        wrapped,
        two_players,
        one_pass,
        building,
    )
}


@pytest.mark.parametrize("frames", [True, False])
@pytest.mark.parametrize("workload", SOUND)
def test_a_sound_workload_of_another_shape_raises_no_alarm(workload: str, frames: bool, save: Save) -> None:
    report = check_memory(save(scenarios.snapshot_of(SOUND[workload](), frames=frames)))

    assert [one.summary for one in report.findings if one.severity != "info"] == []


@pytest.mark.parametrize("workload", [unrolling, decoding])
def test_a_loop_inside_one_pass_that_keeps_its_results_is_no_leak(
    workload: Callable[[], Allocator], save: Save
) -> None:
    report = check_memory(save(scenarios.snapshot_of(workload())))

    assert [one.summary for one in report.findings if one.severity != "info"] == []


@pytest.mark.parametrize("missing", ["free_requested", "free_completed", "segment_alloc"])
def test_actions_that_were_not_recorded_change_no_verdict(missing: str, save: Save) -> None:
    for workload, expected in ((scenarios.training, False), (scenarios.leak, True)):
        tree = scenarios.snapshot_of(workload())
        tree["device_traces"] = [[event for event in tree["device_traces"][0] if event["action"] != missing]]

        report = check_memory(save(tree))

        assert ("leak" in {one.finding for one in report.findings}) is expected
        assert report.snapshot.peak_allocated_bytes > 900 * MIB
