"""Large logs of a run that never was, always the same: a loss that falls, with noise."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np

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
