"""How fast and in how much memory large logs are read, beside the readers that people would use otherwise.

    python -m benchmarks.logs.speed [--scale 1.0] [--repeat 3] [--folder FOLDER]

The data is made once, from a fixed seed: a million JSONL records, a Megatron log and a TensorBoard event file. Each
command runs in a process of its own, in turn with what it is compared with, after one start that does not count; the
figures are medians, the memory is the largest. `s` and `MB/s` are those of the work alone, `process` is what a user
waits for: the whole command, with the start of the interpreter and all imports. `diagnose` is the command line. On a
busy machine CPU seconds, those of the whole process too, say more than what the clock shows. The last rows show that
the cost grows with the size and no faster, and how long a run of ten thousand steps takes once everything is imported.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import struct
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from benchmarks.cost import Cost, cost_of

from mldebug_mcp.core.protobuf import masked_crc32c_of
from mldebug_mcp.logs.columns import Floats

SEED = 0
_HEADERS: dict[int, bytes] = {}


def _loss(count: int) -> Floats:
    random = np.random.default_rng(SEED)
    return 2 + 8 * np.exp(-np.arange(count) / (count / 5)) + random.normal(0, 0.02, count)


def make_jsonl(path: Path, count: int) -> Path:
    """Write records of eight metrics, about 160 bytes each; every thousandth is an evaluation."""
    if path.exists():
        return path
    random = np.random.default_rng(SEED + 1)
    loss, norm, entropy = _loss(count), np.abs(random.normal(1, 0.1, count)), random.random(count)
    with path.open("w") as file:
        for step in range(count):
            file.write(
                f'{{"step": {step}, "epoch": {step / count:.5f}, "loss": {loss[step]:.6f}, '
                f'"grad_norm": {norm[step]:.5f}, "learning_rate": {1e-4 * (1 - step / count):.6e}, '
                f'"entropy": {entropy[step]:.5f}, "reward": {loss[step] / 7:.5f}, "num_tokens": {step * 2048}}}\n'
            )
            if step % 1000 == 999:
                file.write(f'{{"step": {step}, "eval_loss": {loss[step] + 0.1:.6f}}}\n')
    return path


def make_megatron(path: Path, count: int) -> Path:
    """Write iterations as Megatron-LM prints them, with a validation every thousand of them."""
    if path.exists():
        return path
    loss = _loss(count)
    with path.open("w") as file:
        for step in range(1, count + 1):
            value = loss[step - 1]
            file.write(
                f" iteration {step:8d}/{count:8d} | consumed samples: {step * 1024:12d} | "
                f"elapsed time per iteration (ms): {22000 + value:.1f} | learning rate: {1e-4:.3E} | "
                f"global batch size: {1024:5d} | lm loss: {value:.6E} | "
                f"loss scale: 65536.0 | grad norm: {value / 3:.3f} | num zeros: 0.0 | number of skipped iterations: "
                f"{0:3d} | number of nan iterations: {0:3d} |\n"
            )
            if step % 1000 == 0:
                rule = "-" * 100
                file.write(
                    f"{rule}\n validation loss at iteration {step} | lm loss value: {value:.6E} | "
                    f"lm loss PPL: {np.exp(value):.6E} | \n{rule}\n"
                )
    return path


def make_events(path: Path, count: int) -> Path:
    """Write scalars of four tags as PyTorch writes them, `count` in all."""
    if path.exists():
        return path
    loss = _loss(count).astype("<f4")
    with path.open("wb") as file:
        for start in range(0, count, 4):
            for number, tag in enumerate((b"train/loss", b"train/grad_norm", b"train/lr", b"train/acc")):
                value = b"\x0a" + bytes([len(tag)]) + tag + b"\x15" + loss[start].tobytes()
                summary = b"\x0a" + bytes([len(value)]) + value
                step = _varint(start // 4 + 1)
                time = struct.pack("<d", 1e9 + start + number / 10)
                event = b"\x09" + time + b"\x10" + step + b"\x2a" + bytes([len(summary)]) + summary
                file.write(_record(event))
    return path


def make_steps(path: Path, metrics: int) -> Path:
    """Write ten thousand records: three metrics that symptoms look at, and others."""
    if not path.exists():
        draw = np.random.default_rng(SEED)
        with path.open("w") as file:
            for step in range(10_000):
                known = {"loss": 2 + 8 / (1 + step / 500), "grad_norm": draw.lognormal(0, 0.2), "epoch": step / 3000}
                more = {f"layer{layer}/norm": draw.normal(1, 0.1) for layer in range(metrics - len(known))}
                file.write(json.dumps({"step": step, **known, **more}) + "\n")
    return path


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _record(event: bytes) -> bytes:
    header = _HEADERS.get(len(event))
    if header is None:
        length = struct.pack("<Q", len(event))
        header = _HEADERS[len(event)] = length + struct.pack("<I", masked_crc32c_of(length))
    return header + event + struct.pack("<I", masked_crc32c_of(event))


READ = ("from mldebug_mcp.logs import read_run", "answer = read_run(sys.argv[1]).records")
WAYS: dict[str, tuple[str, str]] = {
    "polars": ("import polars", "polars.read_ndjson(sys.argv[1])"),
    "read": READ,
    "diagnose": ("from mldebug_mcp.cli import main", "main(['diagnose', sys.argv[1]])"),
    "EventAccumulator": (
        "from tensorboard.backend.event_processing.event_accumulator import EventAccumulator",
        "EventAccumulator(sys.argv[1], size_guidance={'scalars': 0}).Reload()",
    ),
    "diagnose again": (
        "import sys\nfrom mldebug_mcp import diagnose_run\ndiagnose_run(sys.argv[1])",
        "diagnose_run(sys.argv[1])",
    ),
}
"""What is done before the clock starts, and what is measured."""
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3"}


def measure(ways: tuple[str, ...], path: Path, repeat: int) -> dict[str, Cost]:
    """Run the ways in turn, and return the medians; of the memory the most."""
    runs = [{way: cost_of(*WAYS[way], path, variables=QUIET) for way in ways} for _ in range(repeat + 1)][1:]
    return {way: _middle([one[way] for one in runs]) for way in ways}


def _middle(ones: Sequence[Cost]) -> Cost:
    names = ("seconds", "cpu", "process", "process_cpu")
    medians = {name: statistics.median(getattr(one, name) for one in ones) for name in names}
    return replace(ones[0], **medians, memory=max(one.memory for one in ones))


def show(title: str, path: Path, costs: dict[str, Cost], ratios: tuple[tuple[str, str], ...]) -> None:
    """Print what was measured."""
    size = path.stat().st_size / 1e6
    print(f"\n{title} ({size:.0f} MB)")
    for way, cost in costs.items():
        print(
            f"  {way:<18}{cost.seconds:8.3f} s {size / cost.seconds:6.0f} MB/s   process {cost.process:7.3f} s "
            f"{cost.process_cpu:7.3f} CPU s {cost.memory:6.0f} MB"
        )
    for one, other in ratios:
        here, there = costs[one], costs[other]
        print(
            f"  {one} / {other}: {here.seconds / there.seconds:.2f}; "
            f"processes {here.process / there.process:.2f} (CPU {here.process_cpu / there.process_cpu:.2f})"
        )


def main() -> None:
    """Make the data and print the table."""
    parser = argparse.ArgumentParser(description="Measure how large logs are read.")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the data; 1 is a million JSONL records")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the data is kept (default: a temporary folder)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        count = int(1_000_000 * options.scale)
        jsonl = make_jsonl(folder / f"{count}.jsonl", count)
        costs = measure(("polars", "read", "diagnose"), jsonl, options.repeat)
        show("JSON lines", jsonl, costs, (("read", "polars"), ("diagnose", "polars")))
        megatron = make_megatron(folder / f"megatron{count}.log", int(640_000 * options.scale))
        show("Megatron log", megatron, measure(("read", "diagnose"), megatron, options.repeat), ())
        if importlib.util.find_spec("tensorboard"):
            events = make_events(folder / f"events.out.tfevents.{count}", int(400_000 * options.scale))
            costs = measure(("EventAccumulator", "read"), events, options.repeat)
            show("TensorBoard scalars", events, costs, (("EventAccumulator", "read"),))
        for part in (0.25, 0.5, 1.0):
            some = make_jsonl(folder / f"{int(count * part)}.jsonl", int(count * part))
            show(f"JSON lines, {part:.0%}", some, measure(("read",), some, 1), ())
        for metrics in (5, 20, 100):
            steps = make_steps(folder / f"steps{metrics}.jsonl", metrics)
            show(f"10,000 steps of {metrics} metrics", steps, measure(("diagnose again",), steps, options.repeat), ())


if __name__ == "__main__":
    main()
