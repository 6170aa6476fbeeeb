"""Trainings with nothing wrong, of the kinds whose memory looks odd."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.gpu.decoder import Sizes, Training
from benchmarks.gpu.faulty import evaluate
from benchmarks.gpu.workload import Workload


def training(device: torch.device) -> object:
    """Train."""
    plain = Training(device)
    plain.train(5)
    return plain


def interrupted(device: torch.device) -> object:
    """Evaluate under `no_grad` after some of the steps."""
    plain = Training(device)
    losses = []
    for number in plain.steps(6):
        if number % 3 == 2:
            with torch.no_grad():
                losses += evaluate(plain, batches=3)
    return plain, losses


def checkpointing(device: torch.device) -> object:
    """Compute layers again in backward."""
    plain = Training(device, Sizes(rows=8, recomputed=True))
    plain.train(5)
    return plain


def accumulation(device: torch.device) -> object:
    """Make a step of four batches, and keep the gradients' memory."""
    plain = Training(device, Sizes(rows=1))
    for _ in range(5):
        for _ in range(4):
            torch.autograd.backward(plain.loss(plain.batch()))
        plain.optimizer.step()
        plain.optimizer.zero_grad(set_to_none=False)
    return plain


def last_copies(device: torch.device) -> object:
    """Keep the last three copies of the model's state, as trainings do that go back to one."""
    plain = Training(device)
    kept: list[dict[str, torch.Tensor]] = []
    for number in plain.steps(12):
        if number % 2:
            kept = [*kept[-2:], {name: value.clone() for name, value in plain.model.state_dict().items()}]
    return plain, kept


def lengths(device: torch.device) -> object:
    """Train on batches of many lengths."""
    plain = Training(device, Sizes(vocabulary=2000))
    for number in range(8):
        plain.step(128 * (1 + (number * 7) % 5))
    return plain


def mixed_precision(device: torch.device) -> object:
    """Train weights of 32 bits under autocast."""
    plain = Training(device, Sizes(rows=2), torch.float32)
    for _ in range(5):
        with torch.autocast(device.type, torch.bfloat16):
            loss = plain.loss(plain.batch())
        torch.autograd.backward(loss)
        plain.optimizer.step()
        plain.optimizer.zero_grad()
    return plain


def inference(device: torch.device) -> object:
    """Predict alone."""
    plain = Training(device)
    with torch.inference_mode():
        for _ in range(10):
            plain.model(plain.batch())
    return plain


def graphs(device: torch.device) -> object:
    """Capture a whole step as a CUDA graph and replay it, as the notes on CUDA graphs do."""
    plain = Training(device, Sizes(rows=2))
    optimizer = torch.optim.AdamW(plain.model.parameters(), 1e-4, foreach=True, capturable=True)
    ids = plain.batch()

    def step() -> None:
        torch.autograd.backward(plain.loss(ids))
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
        ids.copy_(plain.batch())
        graph.replay()
    return plain, optimizer, graph, ids


def streams(device: torch.device) -> object:
    """Copy batches to the device in a stream of their own while the step before computes."""
    plain = Training(device)
    side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    main = torch.cuda.current_stream(device)
    for _ in range(10):
        with torch.cuda.stream(side):
            ids = plain.batch()
            noise = torch.randn(8 << 20, device=device)
        main.wait_stream(side)
        ids.record_stream(main)
        noise.record_stream(main)
        loss = plain.loss(ids) + 0 * noise.sum()
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(plain.model.parameters(), 1.0)
        plain.optimizer.step()
        plain.optimizer.zero_grad()
        del ids, noise, loss
    return plain


def pools(device: torch.device) -> object:
    """Make buffers that live on in a pool of their own."""
    plain = Training(device)
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        buffers = [torch.zeros(24 << 20, dtype=torch.uint8, device=device) for _ in range(4)]
    plain.train(5)
    return plain, buffers, pool


SOUND = (
    Workload("training", training),
    Workload("evaluation", interrupted),
    Workload("checkpointing", checkpointing),
    Workload("accumulation", accumulation),
    Workload("last_copies", last_copies),
    Workload("lengths", lengths),
    Workload("mixed_precision", mixed_precision),
    Workload("inference", inference),
    Workload("expandable_segments", training, expandable=True),
    Workload("graphs", graphs, needs_cuda=True),
    Workload("streams", streams, needs_cuda=True),
    Workload("pools", pools, needs_cuda=True),
)
