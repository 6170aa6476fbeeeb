"""Small files that stand for much, or that a library works on for ever: each is made below a folder, with its call."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.batch.kit import make_hf

Arguments = dict[str, Any]
MESSAGES = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
POWER = "{% set n = messages|length + 7 %}{{ (9**(n**n)) }}"
HUGE = "{% set x = range(90000)|list %}{% for a in x %}{% for b in x %}"
TEMPLATES = {
    "power": POWER,
    "sort": "{% set x = ('ab' * 50000000)|list %}{{ (x|sort)|length }}",
    "pprint": "{{ (range(99999)|list * 900)|pprint|length }}",
    "unique": "{{ (('ab' * 90000000)|unique|list)|length }}",
    "lipsum": "{{ lipsum(n=9999999) }}",
    "strftime": "{{ strftime_now('%Y' * 900000000) }}",
    "repetition": "{{ 'a' * 99999999999 }}",
    "loop": HUGE + "{% endfor %}{% endfor %}",
}


def template(name: str) -> Callable[[Path], Arguments]:
    """A tokenizer whose chat template is a program of its own."""

    def make(folder: Path) -> Arguments:
        hf = make_hf("chatml")
        hf.chat_template = TEMPLATES[name]
        hf.save_pretrained(folder / "tokenizer")
        (folder / "chats.jsonl").write_text(json.dumps({"messages": MESSAGES}) + "\n")
        return {"path": str(folder / "chats.jsonl"), "tokenizer": str(folder / "tokenizer")}

    return make


def normalizers(folder: Path) -> Arguments:
    """Two replacements that write a megabyte for each character."""
    make_hf("chatml").save_pretrained(folder / "tokenizer")
    file = folder / "tokenizer" / "tokenizer.json"
    settings = json.loads(file.read_text())
    step = [{"type": "Replace", "pattern": {"Regex": "."}, "content": "a" * 1000}] * 3
    settings["normalizer"] = {"type": "Sequence", "normalizers": step}
    file.write_text(json.dumps(settings))
    (folder / "texts.jsonl").write_text(json.dumps({"text": "many words " * 100}) + "\n")
    return {"path": str(folder / "texts.jsonl"), "tokenizer": str(folder / "tokenizer")}


def expanded_tensor(folder: Path) -> Arguments:
    """A tensor of one number that says it has a billion."""
    import torch

    torch.save({"input_ids": torch.zeros(1, dtype=torch.int64).expand(1024, 1_000_000)}, folder / "batch.pt")
    return {"path": str(folder / "batch.pt")}


def empty_lists(folder: Path) -> Arguments:
    """Sixteen million empty lists."""
    (folder / "batch.json").write_text('{"input_ids": [' + "[]," * 16_000_000 + "[]]}")
    return {"path": str(folder / "batch.json")}


def npz(folder: Path) -> Arguments:
    """Zeros, which take a thousandth of their size when they are compressed."""
    import numpy as np

    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<i8", "fortran_order": False, "shape": (128, 160_000)})
    with (
        zipfile.ZipFile(folder / "batch.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("input_ids.npy", "w", force_zip64=True) as member,
    ):
        member.write(header.getvalue())
        for _ in range(128):
            member.write(bytes(160_000 * 8))
    return {"path": str(folder / "batch.npz")}


def parquet_of_one_value(folder: Path) -> Arguments:
    """Rows that take no bytes: one value, two hundred million times."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    value = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000_000, pa.int32()), pa.array([3.5]))
    table = pa.table({"loss": value.cast(pa.float64())})
    with pq.ParquetWriter(folder / "batch.parquet", table.schema, compression="zstd") as writer:
        for _ in range(200):
            writer.write_table(table, row_group_size=1_000_000)
    return {"path": str(folder / "batch.parquet")}


def parquet_of_lists(folder: Path) -> Arguments:
    """Rows of token ids that are all one list, which the file holds once."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"input_ids": pa.array([[7] * 4096] * 8192)})
    with pq.ParquetWriter(folder / "batch.parquet", table.schema, compression="zstd") as writer:
        for _ in range(8):
            writer.write_table(table)
    return {"path": str(folder / "batch.parquet")}


def gzipped_pickle(folder: Path) -> Arguments:
    """Three hundred kilobytes of a pickle that holds sixty million empty lists, as many as are let through."""
    body = b"\x80\x02}q\x00(X\x08\x00\x00\x00segmentsq\x01]q\x02("
    with gzip.open(folder / "snapshot.pickle.gz", "wb") as file:
        file.write(body)
        for _ in range(300):
            file.write(b"]K\x01K\x01" * 200_000)
        file.write(b"eX\x0d\x00\x00\x00device_tracesq\x03]q\x04u.")
    return {"path": str(folder / "snapshot.pickle.gz")}


BATCHES: dict[str, Callable[[Path], Arguments]] = {
    **{f"template {name}": template(name) for name in TEMPLATES},
    "normalizers": normalizers,
    "expanded tensor": expanded_tensor,
    "empty lists": empty_lists,
    "npz": npz,
    "parquet of one value": parquet_of_one_value,
    "parquet of lists": parquet_of_lists,
}
LOGS = {"parquet log of one value": parquet_of_one_value}
SNAPSHOTS = {"gzipped pickle": gzipped_pickle}
