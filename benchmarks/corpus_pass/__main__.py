"""Count a corpus in each format, beside numpy's pass over the same ids and the reader of the library that wrote it.

    python -m benchmarks.corpus_pass [MILLIONS_OF_TOKENS]

Run it where the libraries that `benchmarks/corpora/make.py` names are installed; formats without theirs are left out.
Numpy maps a file of the same ids, of the same width, and counts them. All times are of the processor; each is the least
of three.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.corpora import make
from benchmarks.cost import seconds
from mldebug_mcp.batch.corpus import CorpusCounts, unpacked
from mldebug_mcp.batch.read import open_data

CHUNK = 1024**2
"""Ids that numpy counts at a time. Chosen by trial: with fewer or more it is slower."""
TIMES = 3
LENGTHS = (20, 2000)
"""Shortest and longest documents."""
SHARDS = 4
LARGE: Mapping[str, Mapping[str, int]] = {
    "mds": {"shard_bytes": 1 << 26},
    "mds_zstd": {"shard_bytes": 1 << 26},
    "litdata": {"chunk_tokens": 1 << 24},
}
"""Sizes of shards as the libraries have them by default."""
WIDE: Mapping[str, str] = {"litdata": "int32", "tfrecord": "int64", "array_record": "int64", "saved_to_disk": "int64"}
"""Types of ids other than uint16."""


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


def documents(tokens: int) -> make.Shards:
    """Return shards of documents with ids as unevenly common as those of text."""
    chance = np.random.default_rng(0)
    flat = np.minimum(chance.zipf(1.2, tokens) - 1, make.END - 1).astype(np.int64)
    lengths = chance.integers(*LENGTHS, 2 * tokens // sum(LENGTHS))
    ends = np.cumsum(lengths)
    corpus = np.split(flat, ends[ends < len(flat)])
    for document in corpus:
        document[-1] = make.END
    quarter = len(corpus) // SHARDS
    return [corpus[first : first + quarter] for first in range(0, quarter * SHARDS, quarter)]


def _count(arrays: Iterable[Any]) -> None:
    counts = np.zeros(make.END + 1, np.int64)
    for array in arrays:
        counts += np.bincount(np.asarray(array).reshape(-1), minlength=len(counts))


def _few(arrays: Iterable[Any]) -> None:
    """Read, and count nothing: numpy's counts of one document after the other would be most of the time."""
    tokens = sum(len(array) for array in arrays)
    assert tokens


def megatron(folder: Path) -> None:
    """Each sequence by Megatron's own reader."""
    from megatron.core.datasets.indexed_dataset import IndexedDataset

    for path in sorted(folder.glob("*.bin")):
        _few(IndexedDataset(str(path.with_suffix(""))))


def datatrove(folder: Path) -> None:
    """Windows of 1,024 tokens."""
    from datatrove.utils.dataset import DatatroveFileDataset

    for path in sorted(folder.glob("*.ds")):
        data = DatatroveFileDataset(str(path), 1023, token_size=2)
        _few(data[number]["input_ids"] for number in range(len(data)))


def mds(folder: Path) -> None:
    """Each sample."""
    from streaming import LocalDataset

    data = LocalDataset(str(folder))
    _few(data[number]["tokens"] for number in range(len(data)))


def litdata(folder: Path) -> None:
    """Windows of 1,024 tokens."""
    from litdata.streaming import StreamingDataset, TokensLoader

    _few(iter(StreamingDataset(str(folder), item_loader=TokensLoader(block_size=1024), shuffle=False)))


def webdataset(folder: Path) -> None:
    """Each sample, decoded."""
    from webdataset import WebDataset

    files = [str(path) for path in sorted(folder.glob("*.tar"))]
    _few(sample["tokens.npy"] for sample in WebDataset(files, shardshuffle=False).decode())


def tfrecord(folder: Path) -> None:
    """Each example."""
    from tfrecord.reader import tfrecord_loader

    for path in sorted(folder.glob("*.tfrecord")):
        _few(example["input_ids"] for example in tfrecord_loader(str(path), None, {"input_ids": "int"}))


def array_record(folder: Path) -> None:
    """Each example, parsed by protobuf."""
    from array_record.python.array_record_module import ArrayRecordReader
    from tfrecord import example_pb2

    for path in sorted(folder.glob("*.array_record")):
        reader = ArrayRecordReader(str(path))
        for message in reader.read_all():
            example = example_pb2.Example.FromString(message)
            _few([np.array(example.features.feature["inputs"].int64_list.value)])


def saved_to_disk(folder: Path) -> None:
    """Each row, as numpy."""
    from datasets import load_from_disk

    _few(row["input_ids"] for row in load_from_disk(str(folder)).with_format("numpy"))


def npy(folder: Path) -> None:
    """Whole shards."""
    for path in sorted(folder.glob("*.npy")):
        _count(np.array_split(np.load(path), 64))


READERS: Mapping[str, Callable[[Path], None]] = {
    reader.__name__: reader
    for reader in (megatron, datatrove, mds, litdata, webdataset, tfrecord, array_record, saved_to_disk, npy)
}
"""The others are read by numpy, but for packed shards of MDS: its reader first unpacks them into files."""


def main() -> None:
    """Print how long the passes over each format take."""
    parser = argparse.ArgumentParser("benchmarks.corpus_pass", description="Time the formats of corpora.")
    parser.add_argument("millions", type=int, nargs="?", default=50, help="tokens, in millions (default 50)")
    parser.add_argument("--formats", nargs="*", choices=sorted(make.WRITERS), default=sorted(make.WRITERS))
    options = parser.parse_args()
    shards = documents(options.millions * 1_000_000)
    tokens = sum(len(document) for shard in shards for document in shard)
    for name in options.formats:
        with tempfile.TemporaryDirectory() as place:
            raw, folder, model = Path(place) / "raw", Path(place) / name, Path(place) / "config.json"
            folder.mkdir()
            model.write_text(json.dumps({"vocab_size": make.END + 1, "eos_token_id": make.END}))
            dtype = WIDE.get(name, "uint16")
            try:
                make.WRITERS[name](folder, shards, **LARGE.get(name, {}))
            except ImportError as error:
                print(f"{name:14} left out ({error})")
                continue
            with raw.open("wb") as file:
                for shard in shards:
                    file.write(np.concatenate(shard).astype(dtype).tobytes())
            bare, ours = (
                seconds(run, TIMES) for run in (partial(bare_pass, [raw], dtype), partial(count, folder, model))
            )
            reader = READERS.get(name)
            own = "" if reader is None else f"{seconds(partial(reader, folder), TIMES):.2f} s"
            print(
                f"{name:14} numpy {bare:.3f} s, counts {ours:.3f} s: {tokens / ours / 1e6:5.0f} M tokens/s, "
                f"{ours / bare:5.2f} times numpy; own reader {own or 'not timed'}",
                flush=True,
            )


if __name__ == "__main__":
    main()
