"""Trainings whose memory shows one finding each, as people write them by mistake."""

from __future__ import annotations

import contextlib
import copy

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.gpu.decoder import Decoder, Sizes, Training, build_model
from benchmarks.gpu.workload import Workload

MIB = 1 << 20


def leak(device: torch.device) -> object:
    """Keep the embeddings of each batch in a list."""
    training = Training(device)
    kept: list[Tensor] = []
    for _ in training.steps(7):
        with torch.no_grad():
            kept.append(training.model.embedding(training.batch()))
    return training, kept


def leak_until_full(device: torch.device) -> object:
    """Keep them until the device is full."""
    training = Training(device)
    kept: list[Tensor] = []
    with contextlib.suppress(torch.OutOfMemoryError):
        for _ in training.steps(200):
            with torch.no_grad():
                kept += [training.model.embedding(training.batch()) for _ in range(16)]
    return training, kept


def copies_of_the_state(device: torch.device) -> object:
    """Keep a copy of the model's state on the device after every second step."""
    training = Training(device)
    kept = [copy.deepcopy(training.model.state_dict()) for number in training.steps(10) if number % 2]
    return training, kept


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


class ScoredLayer(nn.Module):
    """A layer that stores its attention scores, as code without fused attention does."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.mixed, self.joined = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, values: Tensor) -> Tensor:
        """Return values of (rows, length, width)."""
        rows, length, width = values.shape
        heads = self.mixed(values).view(rows, length, 3, width // 32, 32).permute(2, 0, 3, 1, 4)
        scores = (heads[0] @ heads[1].transpose(-1, -2) * 32**-0.5).softmax(-1)
        seen: Tensor = (scores @ heads[2]).transpose(1, 2).reshape(rows, length, width)
        whole: Tensor = values + self.joined(seen)
        return whole


def stored_scores(device: torch.device) -> object:
    """Train with attention whose scores of length x length are stored."""
    with device:
        model = nn.Sequential(nn.Embedding(1000, 256), *(ScoredLayer(256) for _ in range(3)), nn.Linear(256, 1000))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, foreach=True)
    for _ in range(5):
        ids = torch.zeros(4, 1000, dtype=torch.long).to(device, copy=True)
        torch.autograd.backward(functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten()))
        optimizer.step()
        optimizer.zero_grad()
    return model, optimizer


def losses_kept_as_tensors(device: torch.device) -> object:
    """Add up the loss of one more batch after each step, with the graph that made it."""
    training = Training(device, Sizes(rows=1))
    total = torch.zeros((), device=device)
    for _ in training.steps(6):
        total = total + training.loss(training.batch())
    return training, total


def evaluation_with_graphs(device: torch.device) -> object:
    """Evaluate without `no_grad`, and keep the losses of all batches."""
    training = Training(device, Sizes(rows=1))
    training.train(3)
    return training, evaluate(training, batches=6)


def evaluate(training: Training, batches: int) -> list[Tensor]:
    """Return the losses of some batches, as the caller's grad mode has them."""
    return [training.loss(training.batch()) for _ in range(batches)]


def large_vocabulary(device: torch.device) -> object:
    """Train a narrow model with many tokens."""
    training = Training(device, Sizes(width=512, vocabulary=64_000))
    training.train(5)
    return training


def large_batch(device: torch.device) -> object:
    """Train with many rows and few tokens."""
    training = Training(device, Sizes(rows=16, vocabulary=1000))
    training.train(5)
    return training


def small_batch(device: torch.device) -> object:
    """Train with one short row: parameters and optimizer state are all."""
    training = Training(device, Sizes(rows=1, length=64))
    training.train(5)
    return training


def mask_of_all_pairs(device: torch.device) -> object:
    """Make a mask of length x length in full precision before a training begins."""
    mask = torch.ones(16_384, 16_384, device=device).tril()
    training = Training(device)
    training.train(4)
    return training, mask


def cached_after_a_phase(device: torch.device) -> object:
    """Train with a large batch, drop all of it, and go on with a small model that only predicts."""
    training = Training(device, Sizes(rows=32))
    training.train(3)
    del training
    model = build_model(device, Sizes(width=256))
    predict(model, device, batches=60)
    return model


def predict(model: Decoder, device: torch.device, batches: int) -> None:
    """Compute the logits of some batches and drop them."""
    with torch.inference_mode():
        for _ in range(batches):
            model(torch.zeros(4, 128, dtype=torch.long, device=device))


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


def out_of_memory(device: torch.device) -> object:
    """Double the batch until it no longer fits."""
    training = None
    with contextlib.suppress(torch.OutOfMemoryError):
        for rows in (1, 2, 4, 8, 16, 32):
            del training
            training = Training(device, Sizes(rows=rows))
            training.train(3)
    return training


def one_long_batch(device: torch.device) -> object:
    """Train on short rows, one batch of which is long."""
    training = Training(device, Sizes(rows=2, length=256))
    for number in range(10):
        training.step(4096 if number == 7 else 256)
    return training


def uneven_devices(device: torch.device) -> object:
    """Put nearly all of a model on the first of two devices."""
    training = Training(device)
    second = build_model(torch.device("cuda", 1), Sizes(layers=1, vocabulary=1000))
    training.train(4)
    return training, second


AT_FAILURE = frozenset({"large_allocation", "logits_dominate", "activations_dominate", "fragmentation"})
"""What else may be told where memory ran out: what filled it, and that some of it lay in pieces."""
FAULTY = (
    Workload("leak", leak, frozenset({"leak"})),
    Workload("leak_until_full", leak_until_full, frozenset({"leak", "oom"}), AT_FAILURE, limit=1800 * MIB),
    Workload("copies_of_the_state", copies_of_the_state, frozenset({"leak"})),
    Workload("recurrent_state", recurrent_state, frozenset({"leak"}), frozenset({"graph_kept_alive"})),
    Workload("stored_scores", stored_scores, frozenset({"activations_dominate"})),
    Workload("losses_kept_as_tensors", losses_kept_as_tensors, frozenset({"graph_kept_alive"}), frozenset({"leak"})),
    Workload("evaluation_with_graphs", evaluation_with_graphs, frozenset({"graph_kept_alive"}), frozenset({"leak"})),
    Workload("large_vocabulary", large_vocabulary, frozenset({"logits_dominate"})),
    Workload("large_batch", large_batch, frozenset({"activations_dominate"})),
    Workload("small_batch", small_batch, frozenset({"optimizer_state_jump"})),
    Workload("mask_of_all_pairs", mask_of_all_pairs, frozenset({"large_allocation"})),
    Workload("cached_after_a_phase", cached_after_a_phase, frozenset({"cached_not_released"})),
    Workload("pieces", pieces, frozenset({"fragmentation", "oom"}), frozenset({"large_allocation"}), limit=1200 * MIB),
    Workload("out_of_memory", out_of_memory, frozenset({"oom"}), AT_FAILURE, limit=1500 * MIB),
    Workload("one_long_batch", one_long_batch, frozenset({"uneven_steps"})),
    Workload("state_alone", small_batch, frozenset({"history_missing"}), history=False),
    Workload("short_history", large_batch, frozenset({"history_truncated"}), entries=1000),
    Workload("uneven_devices", uneven_devices, frozenset({"device_imbalance"}), devices=2, needs_cuda=True),
)
"""Limits let the process hold two or three steps' worth of memory on any device."""
