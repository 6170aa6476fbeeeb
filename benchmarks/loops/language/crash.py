"""A training process that really dies or really stops: python -m benchmarks.loops.language.crash KIND."""

import argparse
import faulthandler
import os
import queue
import resource
import sys
import threading
import time
from collections.abc import Iterator
from datetime import timedelta

import torch
from torch import Tensor, nn

from benchmarks.loops.language import nets
from benchmarks.loops.language.loop import memory_mb
from benchmarks.loops.language.settings import Settings
from benchmarks.loops.language.task import token_loss
from benchmarks.loops.language.tasks_lm import CharLM

STEPS = 400


def say(text: str) -> None:
    """A line on the console."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


class LongDocuments(CharLM):
    """Documents of their own lengths; attention scores are made in full. One document is a whole library."""

    def __init__(self, s: Settings, *, at: int, length: int) -> None:
        super().__init__(s)
        self.at, self.length = at, length

    def batch(self, index: int) -> tuple[Tensor, ...]:
        """The usual rows, or the long one."""
        ids = super().batch(index)[0]
        return (ids[:1].repeat(1, self.length // ids.shape[1]) if index == self.at else ids,)

    def loss(self, batch: tuple[Tensor, ...]) -> tuple[Tensor, dict[str, float]]:
        """Cross-entropy, with the squared scores of all positions as a penalty."""
        ids = batch[0]
        inputs, labels = ids[:, :-1], ids[:, 1:]
        penalty = torch.empty(len(ids), 4, inputs.shape[1], inputs.shape[1]).zero_().mean()
        return token_loss(self.model(inputs), labels) + penalty, {"seqlen": float(inputs.shape[1])}


class BigVocabulary(CharLM):
    """Ids of a tokenizer with more words than the embedding has."""

    def batch(self, index: int) -> tuple[Tensor, ...]:
        """A new word turns up after a while."""
        ids = super().batch(index)[0]
        if index >= 33:
            ids[0, 5] = 131
        return (ids,)


def prefetched(task: CharLM, stop: int) -> Iterator[tuple[Tensor, ...]]:
    """Batches from a thread that takes a lock twice at batch `stop` and never gives another."""
    ready: queue.Queue[tuple[Tensor, ...]] = queue.Queue(2)
    lock = threading.Lock()

    def work() -> None:
        for index in range(STEPS):
            with lock:
                if index == stop:
                    lock.acquire()
                ready.put(task.batch(index))

    threading.Thread(target=work, daemon=True, name="prefetch").start()
    while True:
        yield ready.get()


class Stuck(torch.utils.data.IterableDataset[Tensor]):
    """A data set whose reading blocks at one sample, as a dead mount does."""

    def __init__(self, task: CharLM, stop: int) -> None:
        self.task, self.stop = task, stop

    def __iter__(self) -> Iterator[Tensor]:
        """Rows of the task."""
        for index in range(STEPS):
            if index == self.stop:
                time.sleep(3600)
            yield self.task.batch(index)[0]


def batches(kind: str, task: CharLM, stop: int) -> Iterator[tuple[Tensor, ...]]:
    """The data of this kind of run."""
    if kind.startswith("hang_lock"):
        yield from prefetched(task, stop)
    elif kind == "hang_loader":
        for ids in torch.utils.data.DataLoader(Stuck(task, stop), batch_size=None, num_workers=1, timeout=3):
            yield (ids,)
    else:
        for index in range(STEPS):
            yield task.batch(index)


def task_of(kind: str, s: Settings, stop: int) -> CharLM:
    """The task of this kind of run."""
    if kind == "oom_long":
        return LongDocuments(s, at=stop, length=900_000)
    if kind == "vocab":
        return BigVocabulary(s)
    return CharLM(s)


def limit(megabytes: int) -> None:
    """Let this process have no more than this above what it holds, as a container does."""
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - not a path of ours
        held = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + megabytes * 2**20,) * 2)


def train(kind: str, stop: int) -> None:
    """One process."""
    s = Settings(steps=STEPS, batch_size=8, n_layer=1, n_embd=32, block_size=32)
    torch.manual_seed(s.seed)
    task = task_of(kind, s, stop)
    optimizer = torch.optim.AdamW(task.model.parameters(), lr=s.lr)
    say(f"config: {s.as_dict()}")
    kept: list[Tensor] = []
    if kind == "oom_leak":
        limit(500)
    total = torch.zeros(())
    for step, batch in enumerate(batches(kind, task, stop)):
        begun = time.perf_counter()
        loss, _ = task.loss(batch)
        if kind == "oom_leak":
            kept.append(task.model(batch[0]).repeat(1, 8, 1))
            total = total + loss
        if kind == "nan_abort":
            loss = loss + 0.0 * torch.log(torch.clamp(loss - 3.0, min=0.0)) / torch.clamp(loss - 3.0, min=0.0)
        if not torch.isfinite(loss):
            message = f"Loss is {loss.item()} at step {step}, stopping training"
            raise FloatingPointError(message)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        norm = float(nn.utils.clip_grad_norm_(task.model.parameters(), 1.0))
        optimizer.step()
        spent = (time.perf_counter() - begun) * 1000
        say(
            f"step {step}/{STEPS} loss {loss.item():.4f} grad_norm {norm:.3f} lr {s.lr:.1e} {spent:.1f}ms "
            f"mem {memory_mb():.0f}MB"
        )
        if kind == "oom_vocab" and step == stop:
            say("growing the embedding for new tokens")
            task.model.tok = nn.Embedding(2**33, 512)


def rank_loop(kind: str, rank: int, world: int, store: str, stop: int) -> None:
    """One of several data-parallel processes that meet by a file."""
    from torch import distributed

    distributed.init_process_group("gloo", f"file://{store}", timedelta(seconds=5), world, rank)
    s = Settings(steps=STEPS, batch_size=8, n_layer=1, n_embd=32, block_size=32, seed=rank)
    torch.manual_seed(0)
    model = nets.Transformer(96, s)
    task = CharLM(s)
    task.model = model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(70):
        begun = time.perf_counter()
        loss, _ = task.loss(task.batch(step))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if rank == 1 and kind == "rank_slow" and step >= stop:
            time.sleep(0.12)
        if rank == 1 and kind == "rank_nan" and step == stop:
            break_weight(model)
        if rank == 1 and kind == "rank_hang" and step == stop:
            time.sleep(20)
        compute = time.perf_counter() - begun
        for parameter in model.parameters():
            if parameter.grad is not None:
                distributed.all_reduce(parameter.grad)
                parameter.grad /= world
        norm = float(nn.utils.clip_grad_norm_(model.parameters(), 1.0))
        optimizer.step()
        spent = time.perf_counter() - begun
        say(
            f"[rank{rank}] step {step} local_loss {loss.item():.4f} grad_norm {norm:.4f} "
            f"compute_ms {compute * 1e3:.1f} allreduce_ms {(spent - compute) * 1e3:.1f} step_ms {spent * 1e3:.1f}"
        )
    distributed.destroy_process_group()


def break_weight(model: nn.Module) -> None:
    """Flip the highest exponent bit of a weight of this process alone."""
    weight = next(p for name, p in model.named_parameters() if "qkv.weight" in name).detach().view(-1)
    bits = weight[3:4].view(torch.int32)
    bits ^= 1 << 30
    weight[3] *= 1e3


def main() -> None:
    """Run the kind that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind")
    parser.add_argument("--stop", type=int, default=40)
    parser.add_argument("--rank", type=int, default=-1)
    parser.add_argument("--store", default="")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.kind.endswith("_dump"):
        faulthandler.enable()
    if args.rank >= 0:
        rank_loop(args.kind, args.rank, 2, args.store, args.stop)
    else:
        train(args.kind, args.stop)
    os._exit(0)


if __name__ == "__main__":
    main()
