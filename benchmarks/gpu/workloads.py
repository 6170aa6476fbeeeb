"""Trainings whose memory is recorded: with one finding each, as people write them by mistake, or such as look odd."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.gpu.decoder import Sizes, Training, build_model

MIB = 1 << 20
MANY_ENTRIES = 200_000
AT_FAILURE = "large_allocation logits_dominate activations_dominate fragmentation"
"""What else may be found where memory ran out: what filled it, and that some of it lay in pieces."""
Start = Callable[[torch.device], object]


@dataclass(frozen=True, slots=True)
class Workload:
    """A training whose memory is recorded.

    Args:
        name: What it is called.
        start: Runs it on a device, and returns whatever has to live until the snapshot is taken.
        shows: Findings that there must be.
        may: Further findings, of a warning or an error, that there may be.
        limit: Bytes that the process may take, two or three steps' worth; 0 for all that there are.
        expandable: Whether the allocator's segments are expandable.
        history: Whether events are recorded.
        entries: The most of them that are kept.
        devices: How many devices it takes.
        needs_cuda: Whether it uses what no model of the allocator has.
    """

    name: str
    start: Start
    shows: frozenset[str] = frozenset()
    may: frozenset[str] = frozenset()
    limit: int = 0
    expandable: bool = False
    history: bool = True
    entries: int = MANY_ENTRIES
    devices: int = 1
    needs_cuda: bool = False


WORKLOADS: dict[str, Workload] = {}


def entered(shows: str = "", may: str = "", *, name: str = "", **more: Any) -> Callable[[Start], Start]:  # noqa: ANN401 - fields of Workload
    """Enter a workload under the name of its function, or another one."""

    def enter(start: Start) -> Start:
        known_as = name or getattr(start, "__name__", "")
        WORKLOADS[known_as] = Workload(known_as, start, frozenset(shows.split()), frozenset(may.split()), **more)
        return start

    return enter


def trained(sizes: Sizes) -> Start:
    """Return a training of a few steps and nothing more."""

    def start(device: torch.device) -> object:
        training = Training(device, sizes)
        training.train(5)
        return training

    return start


# --- one finding each -------------------------------------------------------------------------------------------------


@entered("leak")
def leak(device: torch.device) -> object:
    """Keep the embeddings of each batch in a list."""
    training = Training(device)
    kept: list[Tensor] = []
    for _ in training.steps(7):
        with torch.no_grad():
            kept.append(training.model.embedding(training.batch()))
    return training, kept


@entered("leak oom", AT_FAILURE, limit=1800 * MIB)
def leak_until_full(device: torch.device) -> object:
    """Keep them until the device is full."""
    training = Training(device)
    kept: list[Tensor] = []
    with contextlib.suppress(torch.OutOfMemoryError):
        for _ in training.steps(200):
            with torch.no_grad():
                kept += [training.model.embedding(training.batch()) for _ in range(16)]
    return training, kept


@entered("leak")
def copies_of_the_state(device: torch.device) -> object:
    """Keep a copy of the model's state on the device after every second step."""
    training = Training(device)
    kept = [copy.deepcopy(training.model.state_dict()) for number in training.steps(10) if number % 2]
    return training, kept


@entered("leak", "graph_kept_alive")
def recurrent_state(device: torch.device) -> object:
    """Carry a state from batch to batch without detaching it, so that the graph of all batches stays."""
    cell, head = nn.Linear(512, 512, device=device), nn.Linear(512, 512, device=device)
    optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], 1e-3)
    state = torch.zeros(2048, 512, device=device)
    for _ in range(8):
        for _ in range(6):
            state = 0.9 * state + torch.tanh(cell(torch.randn(2048, 512, device=device)))
        loss = functional.mse_loss(head(state), torch.randn(2048, 512, device=device))
        torch.autograd.backward(loss, retain_graph=True)
        optimizer.step()
        optimizer.zero_grad()
    return cell, head, optimizer, state


@entered("graph_kept_alive", "leak")
def losses_kept_as_tensors(device: torch.device) -> object:
    """Add up the loss of one more batch after each step, with the graph that made it."""
    training = Training(device, Sizes(rows=1))
    total = torch.zeros((), device=device)
    for _ in training.steps(6):
        total = total + training.loss(training.batch())
    return training, total


@entered("graph_kept_alive", "leak")
def evaluation_with_graphs(device: torch.device) -> object:
    """Evaluate without `no_grad`, and keep the losses of all batches."""
    training = Training(device, Sizes(rows=1))
    training.train(3)
    return training, [training.loss(training.batch()) for _ in range(6)]


entered("logits_dominate", name="large_vocabulary")(trained(Sizes(width=512, vocabulary=64_000)))
LARGE_BATCH, SMALL_BATCH = trained(Sizes(rows=16, vocabulary=1000)), trained(Sizes(rows=1, length=64))
entered("activations_dominate", name="large_batch")(LARGE_BATCH)
entered("optimizer_state_jump", name="small_batch")(SMALL_BATCH)


@entered("large_allocation")
def mask_of_all_pairs(device: torch.device) -> object:
    """Make a mask of length x length in full precision before a training begins."""
    mask = torch.ones(16_384, 16_384, device=device).tril()
    training = Training(device)
    training.train(4)
    return training, mask


@entered("cached_not_released")
def cached_after_a_phase(device: torch.device) -> object:
    """Train with a large batch, drop all of it, and go on with a small model that only predicts."""
    training = Training(device, Sizes(rows=32))
    training.train(3)
    del training
    model = build_model(device, Sizes(width=256))
    with torch.inference_mode():
        for _ in range(60):
            model(torch.zeros(4, 128, dtype=torch.long, device=device))
    return model


@entered("fragmentation oom", "large_allocation", limit=1200 * MIB)
def pieces(device: torch.device) -> object:
    """Keep a little of each batch, made before its activations, so that a larger one finds no room in one piece."""
    model = build_model(device, Sizes(layers=1))
    rounds = 24
    del [torch.empty(40 * MIB, dtype=torch.uint8, device=device) for _ in range(rounds)][:]
    kept: list[Tensor] = []
    held: list[Tensor] = []
    for number in range(rounds):
        few = 2 + number % 3
        kept.append(torch.empty(few * MIB, dtype=torch.uint8, device=device))
        held.append(torch.empty((40 - few) * MIB, dtype=torch.uint8, device=device))
    held.clear()
    with contextlib.suppress(torch.OutOfMemoryError):
        torch.empty(400 * MIB, dtype=torch.uint8, device=device)
    return model, kept


@entered("oom", AT_FAILURE, limit=1500 * MIB)
def out_of_memory(device: torch.device) -> object:
    """Double the batch until it no longer fits."""
    training = None
    with contextlib.suppress(torch.OutOfMemoryError):
        for rows in (1, 2, 4, 8, 16, 32):
            del training
            training = Training(device, Sizes(rows=rows))
            training.train(3)
    return training


@entered("uneven_steps")
def one_long_batch(device: torch.device) -> object:
    """Train on short rows, one batch of which is long."""
    training = Training(device, Sizes(rows=2, length=256))
    for number in range(10):
        training.step(4096 if number == 7 else 256)
    return training


entered("history_missing", name="state_alone", history=False)(SMALL_BATCH)
entered("history_truncated", name="short_history", entries=1000)(LARGE_BATCH)


@entered("device_imbalance", devices=2, needs_cuda=True)
def uneven_devices(device: torch.device) -> object:
    """Put nearly all of a model on the first of two devices."""
    training = Training(device)
    second = build_model(torch.device("cuda", 1), Sizes(layers=1, vocabulary=1000))
    training.train(4)
    return training, second


# --- nothing wrong ----------------------------------------------------------------------------------------------------

entered(name="training")(trained(Sizes()))


@entered()
def evaluation(device: torch.device) -> object:
    """Evaluate under `no_grad` after some of the steps."""
    training = Training(device)
    losses = []
    for number in training.steps(6):
        if number % 3 == 2:
            with torch.no_grad():
                losses += [training.loss(training.batch()) for _ in range(3)]
    return training, losses


entered(name="checkpointing")(trained(Sizes(rows=8, recomputed=True)))


@entered()
def accumulation(device: torch.device) -> object:
    """Make a step of four batches, and keep the gradients' memory."""
    training = Training(device, Sizes(rows=1))
    for _ in range(5):
        for _ in range(4):
            torch.autograd.backward(training.loss(training.batch()))
        training.optimizer.step()
        training.optimizer.zero_grad(set_to_none=False)
    return training


@entered()
def last_copies(device: torch.device) -> object:
    """Keep the last three copies of the model's state, as trainings do that go back to one."""
    training = Training(device)
    kept: list[dict[str, Tensor]] = []
    for number in training.steps(12):
        if number % 2:
            kept = [*kept[-2:], {name: value.clone() for name, value in training.model.state_dict().items()}]
    return training, kept


@entered()
def lengths(device: torch.device) -> object:
    """Train on batches of many lengths."""
    training = Training(device, Sizes(vocabulary=2000))
    for number in range(8):
        training.step(128 * (1 + (number * 7) % 5))
    return training


@entered()
def mixed_precision(device: torch.device) -> object:
    """Train weights of 32 bits under autocast."""
    training = Training(device, Sizes(rows=2), torch.float32)
    for _ in range(5):
        with torch.autocast(device.type, torch.bfloat16):
            loss = training.loss(training.batch())
        torch.autograd.backward(loss)
        training.optimizer.step()
        training.optimizer.zero_grad()
    return training


@entered()
def inference(device: torch.device) -> object:
    """Predict alone."""
    training = Training(device)
    with torch.inference_mode():
        for _ in range(10):
            training.model(training.batch())
    return training


entered(name="expandable_segments", expandable=True)(trained(Sizes()))


@entered(needs_cuda=True)
def graphs(device: torch.device) -> object:
    """Capture a whole step as a CUDA graph and replay it, as the notes on CUDA graphs do."""
    training = Training(device, Sizes(rows=2))
    optimizer = torch.optim.AdamW(training.model.parameters(), 1e-4, foreach=True, capturable=True)
    ids = training.batch()

    def step() -> None:
        torch.autograd.backward(training.loss(ids))
        optimizer.step()

    side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(side):
        for _ in range(3):
            optimizer.zero_grad(set_to_none=True)
            step()
    torch.cuda.current_stream(device).wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        step()
    for _ in range(10):
        ids.copy_(training.batch())
        graph.replay()
    return training, optimizer, graph, ids


@entered(needs_cuda=True)
def streams(device: torch.device) -> object:
    """Copy batches to the device in a stream of their own while the step before computes."""
    training = Training(device)
    side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    main = torch.cuda.current_stream(device)
    for _ in range(10):
        with torch.cuda.stream(side):
            ids = training.batch()
            noise = torch.randn(8 << 20, device=device)
        main.wait_stream(side)
        ids.record_stream(main)
        noise.record_stream(main)
        loss = training.loss(ids) + 0 * noise.sum()
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(training.model.parameters(), 1.0)
        training.optimizer.step()
        training.optimizer.zero_grad()
        del ids, noise, loss
    return training


@entered(needs_cuda=True)
def pools(device: torch.device) -> object:
    """Make buffers that live on in a pool of their own."""
    training = Training(device)
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        buffers = [torch.zeros(24 << 20, dtype=torch.uint8, device=device) for _ in range(4)]
    training.train(5)
    return training, buffers, pool
