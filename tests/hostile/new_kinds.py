"""Odd logs, settings and containers, made below a folder, each with the call that reads it.

What an outside library reads of them is answered or refused by it at once.
"""

from __future__ import annotations

import gzip
import io
import json
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mldebug_mcp.logs.settings.printed import MAX_CHARACTERS

Call = tuple[str, dict[str, Any]]
Make = Callable[[Path], Call]
RECORD = '{"step": %d, "loss": 2.5}\n'


def log(text: str | bytes, name: str = "train.log") -> Make:
    """A log of that text."""

    def make(folder: Path) -> Call:
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return "diagnose_run", {"path": str(folder / name)}

    return make


def settings(text: str | bytes, name: str) -> Make:
    """A small log with a configuration of that text."""

    def make(folder: Path) -> Call:
        (folder / "train.jsonl").write_text("".join(RECORD % step for step in range(30)))
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return "diagnose_run", {"path": str(folder / "train.jsonl"), "config": str(folder / name)}

    return make


def _evaluations(shape: tuple[int, ...], body: bytes) -> bytes:
    """Evaluations of Stable-Baselines3 whose arrays all have that header and that body."""
    header = f"{{'descr': '<i8', 'fortran_order': False, 'shape': {shape!r}}}".ljust(117).encode() + b"\n"
    member = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + body
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("timesteps", "results", "ep_lengths"):
            archive.writestr(f"{name}.npy", member)
    return buffer.getvalue()


def _notebook(cells: int) -> str:
    output = {"output_type": "stream", "text": ["step 1 loss 2\n"]}
    cell = {"cell_type": "code", "source": ["train()"], "metadata": {}, "execution_count": 1, "outputs": [output]}
    return json.dumps({"cells": [cell] * cells, "nbformat": 4, "nbformat_minor": 5, "metadata": {}})


def _doubled(levels: int) -> bytes:
    """A pickle whose dictionaries each hold the one below twice."""
    made: object = 1
    for _ in range(levels):
        made = {"a": made, "b": made}
    return pickle.dumps({"learning_rate": made, "seed": 1})


def _under_a_password() -> bytes:
    """An archive with one member whose entry in the directory is marked as encrypted."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a/data.pkl", b".")
    return buffer.getvalue().replace(b"PK\x01\x02\x14\x03\x14\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01")


KINDS: dict[str, Make] = {
    "a name of 50,000 parts": log(json.dumps({"step": 1, "train/" * 50_000 + "loss": 2.5}) + "\n", "a.jsonl"),
    "100,000 columns of JSON": log(json.dumps({f"layer.{i}.grad_norm": i for i in range(100_000)}) + "\n", "a.jsonl"),
    "TOML of deep lists": settings("a = " + "[" * 300 + "]" * 300, "a.toml"),
    "INI of defaults without values": settings("[DEFAULT]\nfp16\nlr\n[train]\nlr = 0.1\n", "a.ini"),
    "text of line ends": settings("\n" * 3_000_000, "args.txt"),
    "Python longer than is read": settings("lr = 1\n#" + "a" * MAX_CHARACTERS, "args.py"),
    "an archive that asks for a password": settings(_under_a_password(), "training_args.bin"),
    "a pickle that doubles": settings(_doubled(20), "training_args.bin"),
    "a duration that is no number": log("step 1 loss 2.5 time: 0.000000.5 seconds\n" * 9),
    "100,000 counters that fall back": log("".join(RECORD % (i % 2) for i in range(100_000)), "a.jsonl"),
    "a counter that always falls": log("".join(RECORD % (100_000 - i) for i in range(100_000)), "a.jsonl"),
    "lines of 64 KiB of words for a record": log(("reward" * 10_900 + "\n") * 16),
    "lines of 64 KiB of words for a run": log(("run " * 16_000 + "\n") * 16),
    "a bar of digits in the place of its times": log(("Loss: 1.9: 0%|   | 3/1617 [00:" + "9" * 1900 + "]\n") * 16),
    "a gzip of 2,000 members": log(gzip.compress(b"x\n") * 2000, "a.log.gz"),
    "a zst whose header asks for a window beyond all limits": log(
        b"\x28\xb5\x2f\xfd\x00\xff" + b"\x01\x00\x00", "a.log.zst"
    ),
    "a notebook of 30,000 cells": log(_notebook(30_000), "a.ipynb"),
    "a notebook of wrong types": log(
        '{"nbformat": 4, "cells": [{"cell_type": "code", "outputs": [1, null, {"text": [1, {}]}, '
        '{"output_type": "error", "traceback": {"a": 1}}]}, 7]}',
        "a.ipynb",
    ),
    "evaluations that claim more than they hold": log(_evaluations((1000, 1000), b"\0" * 64), "evaluations.npz"),
}
"""Those that took longest before, and some of each kind."""
