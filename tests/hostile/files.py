"""Files that take a little more than a server with lowered limits allows; their libraries alone read them at once."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.batch.kit import make_hf

Arguments = dict[str, Any]
MESSAGES = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
SECONDS, BYTES = 0.4, 64 * 1024 * 1024
LOWERED = f"""
from mldebug_mcp.core import limits
limits.BASE_CALL_SECONDS, limits.BASE_CALL_BYTES = {SECONDS}, {BYTES}
"""


def lowered(folder: Path) -> dict[str, str]:
    """Return variables of an environment in which a call may use `SECONDS` and `BYTES`; writes what sets them."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(LOWERED)
    return {"PYTHONPATH": os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))}


def template(folder: Path, rounds: int = 1500) -> Arguments:
    """A tokenizer whose chat template counts in two loops, which takes longer where each line is traced."""
    hf = make_hf("chatml")
    numbers = f"range({rounds})"
    hf.chat_template = f"{{% for a in {numbers} %}}{{% for b in {numbers} %}}{{% endfor %}}{{% endfor %}}"
    hf.save_pretrained(folder / "tokenizer")
    (folder / "chats.jsonl").write_text(json.dumps({"messages": MESSAGES}) + "\n")
    return {"path": str(folder / "chats.jsonl"), "tokenizer": str(folder / "tokenizer")}


def normalizer(folder: Path) -> Arguments:
    """A tokenizer that replaces each of a thousand letters by a thousand."""
    hf = make_hf("chatml")
    made = json.loads(hf.backend_tokenizer.to_str())
    made["normalizer"] = {"type": "Replace", "pattern": {"String": "z"}, "content": " " * 1000}
    hf.save_pretrained(folder / "tokenizer")
    (folder / "tokenizer" / "tokenizer.json").write_text(json.dumps(made))
    messages = [{"role": "user", "content": "z" * 1000}, MESSAGES[1]]
    (folder / "chats.jsonl").write_text(json.dumps({"messages": messages}) + "\n")
    return {"path": str(folder / "chats.jsonl"), "tokenizer": str(folder / "tokenizer")}


def parquet(folder: Path) -> Arguments:
    """Rows of token ids that are all one list, which the file holds once."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"input_ids": pa.array([[7] * 4096] * 2048)})
    pq.write_table(table, folder / "batch.parquet", compression="zstd")
    return {"path": str(folder / "batch.parquet")}


def gzipped_pickle(folder: Path) -> Arguments:
    """A pickle of a million empty lists, in five kilobytes."""
    body = b"\x80\x02}q\x00(X\x08\x00\x00\x00segmentsq\x01]q\x02("
    end = b"eX\x0d\x00\x00\x00device_tracesq\x03]q\x04u."
    (folder / "snapshot.pickle.gz").write_bytes(gzip.compress(body + b"]K\x01K\x01" * 1_000_000 + end))
    return {"path": str(folder / "snapshot.pickle.gz")}


FILES: dict[str, tuple[str, Callable[[Path], Arguments]]] = {
    "chat template": ("inspect_batch", template),
    "normalizer": ("inspect_batch", normalizer),
    "parquet": ("inspect_batch", parquet),
    "gzipped pickle": ("check_memory", gzipped_pickle),
}
"""Each with the tool that reads it."""
