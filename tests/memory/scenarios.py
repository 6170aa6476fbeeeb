"""Simulated workloads on the allocator's model: what a training step, a leak or an evaluation asks of it, in order.

Sizes are those of a small decoder: parameters once, activations kept from forward to backward, gradients until
`zero_grad`, AdamW's two moments from the first `optimizer.step()` on, logits and their float32 copy around the loss.
Backward allocations carry no Python frame, because autograd runs them in a thread of its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.memory.allocator import MIB, Allocator, Frame, OutOfMemory, snapshot

_TORCH = "/opt/env/lib/python3.11/site-packages/torch"
_FRAMES: dict[tuple[str, int, str], Frame] = {}


def stack(*places: tuple[str, int, str]) -> list[Frame]:
    """Return a stack, innermost first; equal frames are one object, as in torch's own snapshots."""
    return [_FRAMES.setdefault(place, {"name": place[2], "filename": place[0], "line": place[1]}) for place in places]


MAIN = ("/home/me/train.py", 90, "main")
STEP = ("/home/me/train.py", 60, "train_step")
CALL = (f"{_TORCH}/nn/modules/module.py", 1775, "_call_impl")
LINEAR = (f"{_TORCH}/nn/modules/linear.py", 125, "forward")
INIT = stack(
    (f"{_TORCH}/nn/modules/module.py", 1335, "convert"),
    (f"{_TORCH}/nn/modules/module.py", 915, "_apply"),
    (f"{_TORCH}/nn/modules/module.py", 1350, "to"),
    ("/home/me/train.py", 20, "build_model"),
    MAIN,
)
BACKWARD: list[Frame] = []
OPTIMIZER = stack(
    (f"{_TORCH}/optim/adam.py", 180, "_init_group"),
    (f"{_TORCH}/optim/adam.py", 236, "step"),
    (f"{_TORCH}/optim/optimizer.py", 493, "wrapper"),
    ("/home/me/train.py", 66, "train_step"),
    MAIN,
)
FOREACH = stack(
    (f"{_TORCH}/optim/adam.py", 620, "_multi_tensor_adam"),
    (f"{_TORCH}/optim/adam.py", 246, "step"),
    (f"{_TORCH}/optim/optimizer.py", 493, "wrapper"),
    ("/home/me/train.py", 66, "train_step"),
    MAIN,
)
CROSS_ENTROPY = stack(
    (f"{_TORCH}/nn/functional.py", 3479, "cross_entropy"), ("/home/me/model.py", 80, "loss"), STEP, MAIN
)
LOGITS = stack(LINEAR, CALL, ("/home/me/model.py", 75, "forward"), STEP, MAIN)
FLOAT_LOGITS = stack(("/home/me/model.py", 78, "loss"), STEP, MAIN)
BATCH = stack(("/home/me/train.py", 55, "to_device"), STEP, MAIN)


def layer(line: int, caller: tuple[str, int, str] = STEP) -> list[Frame]:
    return stack(
        LINEAR, CALL, ("/home/me/model.py", line, "forward"), CALL, ("/home/me/model.py", 70, "forward"), caller, MAIN
    )


@dataclass
class Decoder:
    """A decoder's memory on one allocator, in bytes."""

    gpu: Allocator
    layers: int = 4
    hidden: int = 1024
    vocab: int = 8000
    batch: int = 4
    length: int = 512
    width: int = 2
    fp32_logits: bool = True
    params: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    state: list[int] = field(default_factory=list)
    grads: list[int] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        return self.batch * self.length

    def build(self) -> Decoder:
        per_layer = [3 * self.hidden**2, self.hidden**2, 4 * self.hidden**2, 4 * self.hidden**2]
        self.sizes = [self.width * n for n in [self.vocab * self.hidden, *(per_layer * self.layers)]]
        self.params = [self.gpu.malloc(size, INIT) for size in self.sizes]
        return self

    def forward(self, caller: tuple[str, int, str] = STEP) -> list[int]:
        """Return what autograd keeps of a forward pass through the layers."""
        kept = []
        unit = self.tokens * self.hidden * self.width
        for _ in range(self.layers):
            for line, size in ((31, unit), (32, 3 * unit), (33, unit), (35, 4 * unit), (36, 4 * unit)):
                kept.append(self.gpu.malloc(size, layer(line, caller)))
            self.gpu.free(self.gpu.malloc(unit, layer(37, caller)))
        return kept

    def loss(self) -> list[int]:
        logits = self.gpu.malloc(self.tokens * self.vocab * self.width, LOGITS)
        kept = [logits]
        if self.fp32_logits:
            kept.append(self.gpu.malloc(self.tokens * self.vocab * 4, FLOAT_LOGITS))
        kept.append(self.gpu.malloc(self.tokens * self.vocab * 4, CROSS_ENTROPY))
        kept.append(self.gpu.malloc(4, CROSS_ENTROPY))
        return kept

    def backward(self, kept: list[int], loss: list[int]) -> None:
        gradient = self.gpu.malloc(self.tokens * self.vocab * 4, BACKWARD)
        for address in reversed(loss[:-1]):
            self.gpu.free(address)
        self.gpu.free(gradient)
        new = not self.grads
        unit = self.tokens * self.hidden * self.width
        per_layer = len(kept) // self.layers
        for index in reversed(range(self.layers)):
            flowing = self.gpu.malloc(unit, BACKWARD)
            for address in reversed(kept[index * per_layer : (index + 1) * per_layer]):
                self.gpu.free(address)
            if new:
                self.grads += [self.gpu.malloc(size, BACKWARD) for size in self.sizes[1 + 4 * index : 5 + 4 * index]]
            self.gpu.free(flowing)
        if new:
            self.grads.append(self.gpu.malloc(self.sizes[0], BACKWARD))
        self.gpu.free(loss[-1])

    def optimizer_step(self) -> None:
        if not self.state:
            for size in self.sizes:
                self.state += [self.gpu.malloc(size // self.width * 4, OPTIMIZER) for _ in range(2)]
        update = self.gpu.malloc(self.sizes[1], FOREACH)
        self.gpu.free(update)

    def zero_grad(self) -> None:
        for address in self.grads:
            self.gpu.free(address)
        self.grads = []

    def train_step(self) -> None:
        batch = self.gpu.malloc(self.tokens * 8, BATCH)
        self.backward(self.forward(), self.loss())
        self.optimizer_step()
        self.zero_grad()
        self.gpu.free(batch)


def training(steps: int = 6, gpu: Allocator | None = None, **sizes: int) -> Allocator:
    """A healthy training run from the first parameter on."""
    model = Decoder(gpu or Allocator(), **sizes).build()  # type: ignore[arg-type]
    for step in range(steps):
        model.gpu.annotate(f"ProfilerStep#{step}")
        model.train_step()
    return model.gpu


LEAK = stack(("/home/me/train.py", 71, "remember"), STEP, MAIN)


def leak(steps: int = 8, each: int = 8 * MIB) -> Allocator:
    """One tensor of each step is put in a list and stays."""
    model = Decoder(Allocator()).build()
    for _ in range(steps):
        model.train_step()
        model.gpu.malloc(each, LEAK)
    return model.gpu


def graph_kept(steps: int = 8) -> Allocator:
    """Each step's loss is accumulated as a tensor, so that its whole graph stays."""
    model = Decoder(Allocator(), batch=1).build()
    for _ in range(steps):
        model.train_step()
        model.forward()
    return model.gpu


EVALUATE = ("/home/me/train.py", 40, "evaluate")


def evaluation_without_no_grad(steps: int = 4, batches: int = 4) -> Allocator:
    """Evaluation builds graphs and keeps them for all its batches."""
    model = Decoder(Allocator()).build()
    for _ in range(steps):
        model.train_step()
    kept = [model.forward(EVALUATE) for _ in range(batches)]
    for graph in kept:
        for address in graph:
            model.gpu.free(address)
    return model.gpu


PREDICT = ("/home/me/train.py", 45, "evaluate")
KEPT_OUTPUTS = ((80, 12 * MIB), (81, 8 * MIB), (82, 6 * MIB))
"""Lines of the model that give what an evaluation keeps of each batch: logits, a hidden state, attentions."""


def evaluation_under_no_grad(steps: int = 4, batches: int = 20, *, kept: bool = False) -> Allocator:
    """Several layers' activations one after another, two at a time; with `kept`, outputs of all batches in a list."""
    model = Decoder(Allocator(), layers=8).build()
    for _ in range(steps):
        model.train_step()
    unit = model.tokens * model.hidden * model.width
    for _ in range(batches):
        batch = model.gpu.malloc(model.tokens * 8, stack(("/home/me/train.py", 55, "to_device"), PREDICT, MAIN))
        alive = [batch, model.gpu.malloc(unit, layer(30, PREDICT))]
        for _ in range(model.layers):
            for line, size in ((31, unit), (32, 3 * unit), (33, unit), (35, 4 * unit), (36, 4 * unit), (37, unit)):
                alive.append(model.gpu.malloc(size, layer(line, PREDICT)))
                if len(alive) > 2:
                    model.gpu.free(alive.pop(0))
        outputs = [model.gpu.malloc(size, layer(line, PREDICT)) for line, size in KEPT_OUTPUTS]
        for address in (*alive, *(() if kept else outputs)):
            model.gpu.free(address)
    return model.gpu


def data_parallel(steps: int = 3) -> tuple[Allocator, Allocator]:
    """Two replicas; the logits of both batches are gathered on the first device, where the loss is computed."""
    gather = stack(
        (f"{_TORCH}/nn/parallel/comm.py", 252, "gather"),
        (f"{_TORCH}/nn/parallel/_functions.py", 105, "forward"),
        (f"{_TORCH}/nn/parallel/scatter_gather.py", 130, "gather_map"),
        (f"{_TORCH}/nn/parallel/data_parallel.py", 218, "gather"),
        (f"{_TORCH}/nn/parallel/data_parallel.py", 195, "forward"),
        CALL,
        STEP,
        MAIN,
    )
    first, second = Decoder(Allocator(0)).build(), Decoder(Allocator(1)).build()
    for _ in range(steps):
        passes = [(model, model.forward(), model.gpu.malloc(96 * MIB, LOGITS)) for model in (first, second)]
        gathered = first.gpu.malloc(2 * 96 * MIB, gather)
        loss = first.gpu.malloc(4, CROSS_ENTROPY)
        for model, activations, logits in passes:
            model.backward(activations, [logits, loss if model is first else model.gpu.malloc(4, BACKWARD)])
            model.optimizer_step()
            model.zero_grad()
        first.gpu.free(gathered)
    return first.gpu, second.gpu


def inference(batches: int = 6) -> Allocator:
    """Forward passes under no_grad: each activation goes as soon as the next exists."""
    model = Decoder(Allocator()).build()
    for _ in range(batches):
        for address in no_grad(model):
            model.gpu.free(address)
    return model.gpu


def no_grad(model: Decoder) -> Iterator[int]:
    unit = model.tokens * model.hidden * model.width
    last: int | None = None
    for _ in range(model.layers):
        for line, size in ((31, unit), (32, 3 * unit), (33, unit), (35, 4 * unit), (36, unit)):
            new = model.gpu.malloc(size, layer(line))
            if last is not None:
                yield last
            last = new
    logits = model.gpu.malloc(model.batch * model.vocab * model.width, LOGITS)
    assert last is not None
    yield last
    yield logits


def out_of_memory(capacity: int = 800 * MIB, **sizes: int) -> Allocator:
    """A micro-batch that does not fit: the forward pass fails, and frees what it held."""
    gpu = Allocator(capacity=capacity)
    model = Decoder(gpu, **sizes).build()  # type: ignore[arg-type]
    with contextlib.suppress(OutOfMemory):
        for _ in range(4):
            model.train_step()
            model.batch *= 2
    return gpu


def fragmented(*, expandable: bool = False, rounds: int = 24) -> Allocator:
    """Each batch leaves a small tensor in the middle of a segment of its own; then a larger batch finds no place."""
    gpu = Allocator(capacity=1200 * MIB, expandable=expandable)
    Decoder(gpu, layers=1).build()
    for address in [gpu.malloc(40 * MIB, layer(31)) for _ in range(rounds)]:
        gpu.free(address)
    held = []
    for number in range(rounds):
        gpu.malloc((2 + number % 3) * MIB, BATCH)
        held.append(gpu.malloc((38 - number % 3) * MIB, layer(32)))
    for address in held:
        gpu.free(address)
    with contextlib.suppress(OutOfMemory):
        gpu.malloc(400 * MIB, layer(31))
    return gpu


def two_models(steps: int = 4) -> Allocator:
    """A policy that trains beside a frozen reference model."""
    gpu = Allocator()
    policy, reference = Decoder(gpu).build(), Decoder(gpu).build()
    for _ in range(steps):
        for address in no_grad(reference):
            gpu.free(address)
        policy.train_step()
    return gpu


def snapshot_of(*gpus: Allocator, layout: str = "2.13", frames: bool = True) -> dict[str, Any]:
    return snapshot(*gpus, layout=layout, frames=frames)
