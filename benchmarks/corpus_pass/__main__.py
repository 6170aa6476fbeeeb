"""Pass over a tokenized corpus beside numpy and, where it is installed, Megatron's own reader, in one run.

    python -m benchmarks.corpus_pass [MILLIONS_OF_TOKENS]

The bare pass maps the same file into memory and counts its ids (`np.memmap` and `np.bincount`). The counts are those of
`CorpusCounts`: ids, lengths, ends, order. The whole is `inspect_batch`, which looks for copies too, and against another
corpus. What counts are the ratios of the processor times: the counts should take at most 1.5 times the bare pass.
"""

from __future__ import annotations

import argparse
import json
import resource
import struct
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mldebug_mcp.batch.corpus import CorpusCounts, unpacked
from mldebug_mcp.batch.read import open_data
from mldebug_mcp.judge.batch import inspect_batch

END = 50_256
CHUNK = 1024**2
"""Ids that numpy counts at a time. Chosen by trial: with fewer or more it is slower."""
MEAN_LENGTH = 1000


def documents(tokens: int, seed: int) -> npt.NDArray[np.uint16]:
    """Return tokens that are as unevenly common as those of text, in documents of about `MEAN_LENGTH`."""
    chance = np.random.default_rng(seed)
    some = np.minimum(chance.zipf(1.3, min(tokens, 10_000_000)), END - 1).astype(np.uint16)
    ids = np.concatenate([chance.permutation(some) for _ in range(-(-tokens // len(some)))])[:tokens]
    ids[np.cumsum(chance.integers(20, 2 * MEAN_LENGTH, tokens // MEAN_LENGTH)) % tokens] = END
    ids[-1] = END
    return ids


def write(raw: Path, data: Path, tokens: int, seed: int) -> None:
    """Write a corpus as a raw file and as Megatron's two."""
    ids = documents(tokens, seed)
    raw.write_bytes(ids.tobytes())
    data.write_bytes(ids.tobytes())
    write_index(data, ids)


def write_index(data: Path, ids: npt.NDArray[np.uint16]) -> None:
    """Write Megatron's index of a corpus, whose documents end with `END`."""
    lengths = np.diff(np.flatnonzero(ids == END), prepend=-1).astype(np.int32)
    starts = (np.cumsum(lengths, dtype=np.int64) - lengths) * 2
    head = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, len(lengths), len(lengths) + 1)
    ends = np.arange(len(lengths) + 1, dtype=np.int64)
    data.with_suffix(".idx").write_bytes(head + lengths.tobytes() + starts.tobytes() + ends.tobytes())


def bare_pass(paths: Iterable[Path], dtype: str = "uint16") -> int:
    """Count the ids of mapped files; return how many they are."""
    counts = np.zeros(65_536, np.int64)
    for path in paths:
        mapped = np.memmap(path, dtype, "r")
        for first in range(0, len(mapped), CHUNK):
            counts += np.bincount(mapped[first : first + CHUNK], minlength=len(counts))
    return int(counts.sum())


def count(path: Path, model: Path | None) -> int:
    """Count what a corpus holds, without looking for copies; return its tokens."""
    counts = CorpusCounts()
    for batch in open_data(path, None, model).batches():
        rows = unpacked(batch.sides[0], batch.document_lengths)
        counts.add(rows, batch.stored, batch.shard, windows=batch.windows)
        counts.add_tail(batch.tail, batch.shard)
    return counts.tokens


def megatron_pass(path: Path) -> None:
    """Read each sequence with Megatron's own reader and count its ids."""
    from megatron.core.datasets.indexed_dataset import IndexedDataset

    counts = np.zeros(65_536, np.int64)
    for sequence in IndexedDataset(str(path.with_suffix(""))):
        counts += np.bincount(sequence, minlength=len(counts))


def main() -> None:
    """Print each pass, its ratio to the bare one, and the memory."""
    parser = argparse.ArgumentParser("benchmarks.corpus_pass", description="Time a pass over a corpus beside numpy's.")
    parser.add_argument("millions", type=int, nargs="?", default=200, help="tokens, in millions (default 200)")
    tokens = parser.parse_args().millions * 1_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        raw, data, other = folder / "train.bin", folder / "text_document.bin", folder / "validation.bin"
        with ProcessPoolExecutor(1) as apart:  # so that the memory of making them is not counted
            apart.submit(write, raw, data, tokens, 0).result()
            apart.submit(write, other, folder / "other_document.bin", tokens // 20, 1).result()
        model = folder / "config.json"
        model.write_text(json.dumps({"vocab_size": END + 1, "eos_token_id": END}))
        passes: dict[str, Callable[[], object]] = {
            "np.memmap, np.bincount": lambda: bare_pass([raw]),
            "counts, windows": lambda: count(raw, None),
            "counts, cut at ends": lambda: count(raw, model),
            "counts, Megatron": lambda: count(data, model),
            "all, windows": lambda: inspect_batch(raw),
            "all, Megatron": lambda: inspect_batch(data, None, model),
            "all, against": lambda: inspect_batch(raw, None, model, against=other),
            "Megatron's own reader": lambda: megatron_pass(data),
        }
        bare_pass([raw])
        count(other, model)  # so that no import is timed
        base = 0.0
        for what, run in passes.items():
            start = time.process_time()
            try:
                run()
            except ImportError:
                print(f"{what:24} not installed")
                continue
            seconds = time.process_time() - start
            base = base or seconds
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            print(
                f"{what:24} {seconds:7.2f} s of processor, {tokens / seconds / 1e6:7.1f} M tokens/s, "
                f"{seconds / base:6.2f} times numpy, peak {memory} MiB"
            )


if __name__ == "__main__":
    main()
