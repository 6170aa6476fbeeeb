"""Pass once over a corpus that is larger than memory should hold: shards of nanoGPT, and the same ones of Megatron.

    python -m benchmarks.corpus_pass.large FOLDER [GIGABYTES]

It writes the shards below FOLDER and leaves them there; what is there already is not written again. Each pass runs in a
process of its own, so that its peak memory is its own. One document in fifty of the last shard stands in the first too,
and the validation corpus holds documents of the second.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import struct
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.corpora.make import END
from benchmarks.corpus_pass.__main__ import bare_pass, count
from mldebug_mcp.judge.batch import inspect_batch

MEAN_LENGTH = 1000
SHARD_TOKENS = 250_000_000
COPIED = 50
"""One document in so many of the last shard is one of the first."""
VALIDATION_TOKENS = 5_000_000


def documents(tokens: int, seed: int) -> npt.NDArray[np.uint16]:
    """Return tokens that are as unevenly common as those of text, in documents of about `MEAN_LENGTH`."""
    chance = np.random.default_rng(seed)
    some = np.minimum(chance.zipf(1.3, min(tokens, 10_000_000)), END - 1).astype(np.uint16)
    ids = np.concatenate([chance.permutation(some) for _ in range(-(-tokens // len(some)))])[:tokens]
    ids[np.cumsum(chance.integers(20, 2 * MEAN_LENGTH, tokens // MEAN_LENGTH)) % tokens] = END
    ids[-1] = END
    return ids


def write_index(data: Path, ids: npt.NDArray[np.uint16]) -> None:
    """Write Megatron's index of a corpus, whose documents end with `END`."""
    lengths = np.diff(np.flatnonzero(ids == END), prepend=-1).astype(np.int32)
    starts = (np.cumsum(lengths, dtype=np.int64) - lengths) * 2
    head = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, len(lengths), len(lengths) + 1)
    ends = np.arange(len(lengths) + 1, dtype=np.int64)
    data.with_suffix(".idx").write_bytes(head + lengths.tobytes() + starts.tobytes() + ends.tobytes())


def write(folder: Path, shards: int) -> None:
    """Write the corpora, the validation corpus and the model's configuration."""
    raw, data = folder / "nanogpt", folder / "megatron"
    for place in (raw, data):
        place.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"vocab_size": END + 1, "eos_token_id": END}))
    for number in range(shards):
        path, linked = raw / f"train_{number:06}.bin", data / f"train_{number:06}.bin"
        if linked.with_suffix(".idx").exists():
            continue
        ids = documents(SHARD_TOKENS, number)
        if number == shards - 1:
            first = np.fromfile(raw / "train_000000.bin", np.uint16)
            ends = np.flatnonzero(first == END) + 1
            pieces = [first[a:b] for a, b in zip(ends[:-1:COPIED], ends[1::COPIED], strict=False)]
            copied = np.concatenate(pieces)
            ids[: len(copied)] = copied
        path.write_bytes(ids.tobytes())
        os.link(path, linked)
        write_index(linked, ids)
    some = np.fromfile(raw / "train_000001.bin", np.uint16, VALIDATION_TOKENS // 10)
    fresh = documents(VALIDATION_TOKENS, 10_000)
    np.concatenate([fresh, some[: np.flatnonzero(some == END)[-1] + 1]]).tofile(folder / "validation.bin")


def inspect(folder: Path, model: Path | None, against: Path | None, sample: int | None) -> int:
    """Inspect a corpus; prints what is found, and how often progress was shown."""
    shown = []
    answer = inspect_batch(
        folder, None, model, against=against, sample=sample, progress=lambda *seen: shown.append(seen)
    )
    assert answer.corpus is not None
    print(f"    {[finding.check for finding in answer.findings]}, progress shown {len(shown)} times")
    for finding in answer.findings:
        print(f"    {finding.summary[:150]}")
    return answer.corpus.tokens


def timed(run: Callable[..., int], *given: object) -> None:
    """Print what a pass takes."""
    start, wall = time.process_time(), time.perf_counter()
    tokens = run(*given)
    seconds, wall = time.process_time() - start, time.perf_counter() - wall
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(
        f"    {tokens:,} tokens, {seconds:.1f} s of processor ({wall:.1f} s by the clock), "
        f"{tokens / seconds / 1e6:.1f} M tokens/s, peak {memory} MiB",
        flush=True,
    )


def main() -> None:
    """Write the corpora and pass over them."""
    parser = argparse.ArgumentParser("benchmarks.corpus_pass.large", description="Pass once over a large corpus.")
    parser.add_argument("folder", type=Path, help="where the corpora are written, and kept")
    parser.add_argument("gigabytes", type=float, nargs="?", default=10.0, help="of the corpus (default 10)")
    options = parser.parse_args()
    folder, shards = options.folder, max(2, round(options.gigabytes * 1e9 / 2 / SHARD_TOKENS))
    raw, data, model, other = (folder / name for name in ("nanogpt", "megatron", "config.json", "validation.bin"))
    files = [raw / f"train_{number:06}.bin" for number in range(shards)]
    passes: dict[str, tuple[Callable[..., int], tuple[object, ...]]] = {
        "np.memmap, np.bincount": (bare_pass, (files,)),
        "counts of nanoGPT's shards, cut at end tokens": (count, (raw, model)),
        "counts of nanoGPT's shards in windows": (count, (raw, None)),
        "counts of Megatron's shards": (count, (data, model)),
        "all of nanoGPT's shards": (inspect, (raw, model, None, None)),
        "all of Megatron's shards, against a validation corpus": (inspect, (data, model, other, None)),
        "a sample of 10,000 documents of Megatron's shards": (inspect, (data, model, None, 10_000)),
        "a sample of 10,000 rows of nanoGPT's shards": (inspect, (raw, model, None, 10_000)),
    }
    with ProcessPoolExecutor(1, max_tasks_per_child=1) as apart:
        apart.submit(write, folder, shards).result()
        for what, (run, given) in passes.items():
            print(f"{what} (load {os.getloadavg()[0]:.1f})", flush=True)
            apart.submit(timed, run, *given).result()


if __name__ == "__main__":
    main()
