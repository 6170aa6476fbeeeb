"""Write small tokenized corpora with the real libraries: in each format one healthy, and one with each planted fault.

    python benchmarks/corpora/make.py FOLDER [ARCHIVE]

With an archive, a few smaller ones are written and packed: `tests/batch/corpora.tar.xz` holds the samples of the
tests. Run it where the libraries are installed: megatron-core 0.16.1, mosaicml-streaming 0.13.0, litdata 0.2.76,
datatrove 0.10.1, webdataset 1.0.2, tfrecord 1.14.6, array_record 0.8.6, datasets 5.2.0. A format whose library is
missing is left out; if they do not go together, run it in several environments. nanoGPT, llm.c and OLMo write arrays
of NumPy as they are, by the few lines that stand here. It needs nothing of the package, so that the libraries may pin
what they like.
"""

from __future__ import annotations

import json
import sys
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Document = npt.NDArray[np.int64]
Shards = Sequence[Sequence[Document]]

END = 50_256
LARGE_END = 128_001
DOCUMENTS = 300
FAULTS = (
    "end missing", "end wrong", "documents twice", "shard twice", "validation inside", "ids wrapped", "width misread",
    "truncated", "sorted by length", "sorted by source",
)  # fmt: skip
KEPT = ("healthy", "end missing", "end wrong", "shard twice", "ids wrapped", "width misread", "validation")
"""Those of the archive: their faults cost most, a whole training."""
KEPT_DOCUMENTS = 120


def documents(count: int, seed: int, end: int | None = END, vocabulary: int = 50_000) -> list[Document]:
    """Make documents whose ids are as unevenly common as those of text, the common ones small."""
    chance = np.random.default_rng(seed)
    order = np.random.default_rng(99).permutation(vocabulary)
    order[:1000].sort()
    made = []
    for length in chance.integers(20, 200, count):
        text = order[np.minimum(chance.zipf(1.2, length) - 1, vocabulary - 1)]
        made.append(text if end is None else np.append(text, end))
    return made


def planted(fault: str, count: int = DOCUMENTS) -> list[list[Document]]:
    """Return three shards of a corpus of so many documents with a fault; "healthy" has none."""
    third, corpus = count // 3, documents(count, 0)
    if fault == "end missing":
        corpus = documents(count, 0, None)
    elif fault == "end wrong":
        corpus = documents(count, 0, 0)
    elif fault == "documents twice":
        corpus = corpus[: count // 2] + corpus[count // 4 : 3 * count // 4]
    elif fault == "shard twice":
        return [corpus[:third], corpus[third : 2 * third], corpus[:third]]
    elif fault == "ids wrapped":
        corpus = [document % 65_536 for document in documents(count, 0, LARGE_END, 128_000)]
    elif fault == "width misread":
        flat = np.concatenate(corpus).astype("<u4").view("<u2").astype(np.int64)
        ends = np.cumsum(np.array([len(document) for document in corpus])) * 2
        corpus = np.split(flat, ends[:-1])
    elif fault == "truncated":
        corpus = [document[:128] for document in corpus]
    elif fault == "sorted by length":
        corpus = sorted(corpus, key=len)
    elif fault == "sorted by source":
        half = count // 2
        corpus[:half] = [np.append((document[:-1] * 7 + 13) % 50_000, END) for document in corpus[:half]]
    return [corpus[:third], corpus[third : 2 * third], corpus[2 * third :]]


def validation(count: int = DOCUMENTS) -> list[list[Document]]:
    """Return a validation corpus of which a third stands in the healthy one of so many documents."""
    third = count // 3
    return [documents(4 * third // 5, 1) + documents(count, 0)[third : third + 2 * third // 5]]


def _raw(folder: Path, shards: Shards, ending: str = ".bin", header: bool = False) -> None:
    for number, shard in enumerate(shards):
        ids = np.concatenate(shard).astype("<u2")
        head = np.zeros(256, "<i4")
        head[:3] = 20_240_520, 1, len(ids)
        content = (head.tobytes() if header else b"") + ids.tobytes()
        (folder / f"train_{number:06}{ending}").write_bytes(content)


def nanogpt(folder: Path, shards: Shards) -> None:
    """As prepare.py: `arr = np.memmap(filename, dtype=np.uint16, mode='w+')`."""
    _raw(folder, shards)


def llm_c(folder: Path, shards: Shards) -> None:
    """As dev/data/data_common.py of llm.c, and modded-nanogpt after it: a header of 256 numbers."""
    _raw(folder, shards, header=True)


def olmo(folder: Path, shards: Shards) -> None:
    """As OLMo: memory-mapped numbers under the name of an array, without its header."""
    _raw(folder, shards, ".npy")


def npy(folder: Path, shards: Shards) -> None:
    """As fineweb.py of build-nanogpt: arrays of one dimension."""
    for number, shard in enumerate(shards):
        np.save(folder / f"train_{number:06}.npy", np.concatenate(shard).astype(np.uint16))


def megatron(folder: Path, shards: Shards) -> None:
    """As preprocess_data.py."""
    from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder

    for number, shard in enumerate(shards):
        prefix = folder / f"train_{number:06}"
        builder = IndexedDatasetBuilder(f"{prefix}.bin", dtype=np.uint16)
        import torch

        for document in shard:
            builder.add_document(torch.from_numpy(document), [len(document)])
        builder.finalize(f"{prefix}.idx")


def datatrove(folder: Path, shards: Shards) -> None:
    """As DocumentTokenizer, without its tokenizer."""
    from datatrove.pipeline.tokens.tokenizer import TokenizedFile

    for number, shard in enumerate(shards):
        file = TokenizedFile(str(folder), f"{number:05}_unshuffled.ds", save_index=True, token_size=2)
        for document in shard:
            file.write(document.tolist(), None)
        file.close()


def _mds(folder: Path, shards: Shards, compression: str | None, shard_bytes: int) -> None:
    from streaming import MDSWriter

    with MDSWriter(
        out=str(folder), columns={"tokens": "ndarray:uint16"}, compression=compression, size_limit=shard_bytes
    ) as writer:
        for shard in shards:
            for document in shard:
                writer.write({"tokens": document.astype(np.uint16)})


def mds(folder: Path, shards: Shards, shard_bytes: int = 1 << 14) -> None:
    """As convert_dataset_hf.py of llm-foundry."""
    _mds(folder, shards, None, shard_bytes)


def mds_zstd(folder: Path, shards: Shards, shard_bytes: int = 1 << 14) -> None:
    """The same, compressed."""
    _mds(folder, shards, "zstd", shard_bytes)


def litdata(folder: Path, shards: Shards, chunk_tokens: int = 4096) -> None:
    """As litgpt's data modules: a tensor for each document, for the TokensLoader."""
    import torch
    from litdata.streaming.cache import Cache
    from litdata.streaming.item_loader import TokensLoader

    cache = Cache(str(folder), chunk_size=chunk_tokens, item_loader=TokensLoader(block_size=1))
    place = 0
    for shard in shards:
        for document in shard:
            cache[place] = torch.from_numpy(document.astype(np.int32))
            place += 1
    cache.done()
    cache.merge()


def webdataset(folder: Path, shards: Shards) -> None:
    """Samples of one array."""
    from webdataset import TarWriter

    for number, shard in enumerate(shards):
        with TarWriter(str(folder / f"train-{number:06}.tar")) as writer:
            for place, document in enumerate(shard):
                writer.write({"__key__": f"{place:06}", "tokens.npy": document.astype(np.uint16)})


def tfrecord(folder: Path, shards: Shards) -> None:
    """Examples with one list of numbers."""
    from tfrecord.writer import TFRecordWriter

    for number, shard in enumerate(shards):
        writer = TFRecordWriter(str(folder / f"train-{number:05}.tfrecord"))
        for document in shard:
            writer.write({"input_ids": (document.tolist(), "int")})
        writer.close()


def array_record(folder: Path, shards: Shards) -> None:
    """Examples with one list of numbers, one in a group, as Grain reads them."""
    from array_record.python.array_record_module import ArrayRecordWriter
    from tfrecord import example_pb2

    for number, shard in enumerate(shards):
        writer = ArrayRecordWriter(str(folder / f"train-{number:05}.array_record"), "group_size:1")
        for document in shard:
            ids = example_pb2.Feature(int64_list=example_pb2.Int64List(value=document.tolist()))
            features = example_pb2.Features(feature={"inputs": ids})
            writer.write(example_pb2.Example(features=features).SerializeToString())
        writer.close()


def saved_to_disk(folder: Path, shards: Shards) -> None:
    """A data set of `datasets` with one column."""
    from datasets import Dataset

    rows = [document.tolist() for shard in shards for document in shard]
    Dataset.from_dict({"input_ids": rows}).save_to_disk(str(folder), num_shards=len(shards))


WRITERS: Mapping[str, Callable[[Path, Shards], Any]] = {
    writer.__name__: writer
    for writer in (
        megatron, nanogpt, llm_c, olmo, npy, datatrove, mds, mds_zstd, litdata, webdataset, tfrecord, array_record,
        saved_to_disk,
    )
}  # fmt: skip


def write(out: Path, corpora: Sequence[str] = ("healthy", *FAULTS, "validation"), count: int = DOCUMENTS) -> None:
    """Write these corpora of so many documents in each format below a folder, and configurations of models.

    Formats that are there already are left as they are: not all libraries go together in one environment.
    """
    for name, writer in WRITERS.items():
        if (out / name / corpora[-1]).is_dir():
            continue
        try:
            for corpus in corpora:
                folder = out / name / corpus
                folder.mkdir(parents=True)
                writer(folder, validation(count) if corpus == "validation" else planted(corpus, count))
            print(f"{name}: written")
        except ImportError as error:
            print(f"{name}: left out ({error})")
    for name, vocabulary, end in (("config.json", END + 1, END), ("large.json", 128_256, LARGE_END)):
        (out / name).write_text(json.dumps({"vocab_size": vocabulary, "eos_token_id": end}))


def pack(folder: Path, archive: Path) -> None:
    """Pack what was written. Raises SystemExit if a library was missing."""
    lacking = [name for name in WRITERS if not (folder / name / KEPT[-1]).is_dir()]
    if lacking:
        sys.exit(f"the libraries of {', '.join(lacking)} are missing; install them and run this again")
    with tarfile.open(archive, "w:xz", preset=9) as packed:
        # Corpora of one kind stand next to each other, so that the same ids are packed once.
        for corpus in KEPT:
            for name in WRITERS:
                packed.add(folder / name / corpus, f"{name}/{corpus}", filter=_anonymous)
        for config in ("config.json", "large.json"):
            packed.add(folder / config, config, filter=_anonymous)


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Return a member without the owner and time of the machine."""
    member.mtime = member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def main(folder: Path, archive: Path | None = None) -> None:
    """Write the corpora, or the smaller ones of the archive and pack them."""
    if archive is None:
        write(folder)
    else:
        write(folder, KEPT, KEPT_DOCUMENTS)
        pack(folder, archive)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
