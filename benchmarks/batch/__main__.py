"""Inspect a tokenized data set and pass over the same arrays in numpy, side by side in one run.

    python -m benchmarks.batch [MILLIONS_OF_TOKENS]

The bare pass reads the same parquet file through pyarrow and does for each column what anybody would: least and
greatest id, share of trained labels, share of attended positions, tokens per row. The ratio of the processor times is
what counts; it should be at most 5.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.cost import cost_of

ROWS_AT_ONCE = 16_384
MEAN_LENGTH = 512
VOCABULARY = 32_000
BARE = ("from benchmarks.batch.__main__ import bare_pass", "answer = bare_pass(sys.argv[1])")
OURS = (
    "from mldebug_mcp.judge.batch import inspect_batch",
    "answer = inspect_batch(sys.argv[1], None, sys.argv[2], 'sft').batch.tokens",
)
"""The imports of a pass, and the pass."""


def write(path: Path, tokens: int) -> None:
    """Write rows of log-normal length whose first third is masked."""
    chance = np.random.default_rng(0)
    writer: pq.ParquetWriter | None = None
    left = tokens
    while left > 0:
        lengths = np.clip(chance.lognormal(np.log(MEAN_LENGTH) - 0.18, 0.6, 8192), 8, 8192).astype(np.int64)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        ids = chance.integers(3, VOCABULARY, int(offsets[-1]), dtype=np.int32)
        ids[offsets[1:] - 1] = 2
        place = np.arange(len(ids)) - np.repeat(offsets[:-1], lengths)
        labels = np.where(place < np.repeat(lengths // 3, lengths), np.int32(-100), ids)
        mask = np.ones(len(ids), np.int8)
        columns = {
            name: pa.ListArray.from_arrays(offsets, values)
            for name, values in (("input_ids", ids), ("labels", labels), ("attention_mask", mask))
        }
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
        writer.write_table(table)
        left -= len(ids)
    assert writer is not None
    writer.close()


def bare_pass(path: Path | str) -> int:
    """Read the file and do the least that any look at it does; returns the tokens."""
    tokens = 0
    with pq.ParquetFile(path) as file:
        for piece in file.iter_batches(batch_size=ROWS_AT_ONCE):
            ids, labels, mask = (
                piece.column(name).values.to_numpy() for name in ("input_ids", "labels", "attention_mask")
            )
            lengths = np.diff(piece.column("input_ids").offsets.to_numpy())
            tokens += int(lengths.sum())
            assert int(ids.min()) >= 0
            assert int(ids.max()) < VOCABULARY
            assert int((labels != -100).sum()) <= len(ids)
            assert int((mask != 0).sum()) <= len(ids)
    return tokens


def main() -> None:
    """Print the two times, their ratio and the memory."""
    parser = argparse.ArgumentParser("benchmarks.batch", description="Time a pass over a data set beside numpy's.")
    parser.add_argument("millions", type=int, nargs="?", default=100, help="tokens, in millions (default 100)")
    millions = parser.parse_args().millions
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        config = Path(folder) / "config.json"
        config.write_text('{"vocab_size": 32000, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}')
        write(path, millions * 1_000_000)
        bare_pass(path)
        bare, ours = cost_of(*BARE, path), cost_of(*OURS, path, config)
    assert ours.answer == bare.answer
    for name, cost in (("numpy", bare), ("inspect_batch", ours)):
        speed = cost.answer / cost.seconds / 1e6
        print(
            f"{name:14} {cost.cpu:7.2f} s of processor, {cost.seconds:7.2f} s, {speed:7.1f} M tokens/s, "
            f"{cost.memory:5.0f} MiB"
        )
    print(f"ratio {ours.cpu / bare.cpu:.2f} (processor), {ours.seconds / bare.seconds:.2f} (wall); target 5")


if __name__ == "__main__":
    main()
