"""Inputs as they should be, for each parser: the samples of the tests, and files written here."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import pickle
import sqlite3
import struct
import sys
import tempfile
import zipfile
import zlib
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from tests.logs.drawn_logs import drawn_log
from tests.memory import scenarios

from benchmarks.fuzz import grammars
from benchmarks.fuzz.mutate import LONGEST

ROOT = Path(__file__).parent.parent.parent
SAMPLES = ROOT / "tests" / "logs" / "samples"
RECORDS = [
    {"step": step, "epoch": step / 9, "loss": 3 / step, "grad_norm": 1.0 + step % 3, "learning_rate": 1e-3}
    for step in range(1, 12)
]  # fmt: skip
ROWS: dict[str, Any] = {
    "input_ids": [[1, 5, 6, 7, 2], [1, 8, 9, 2, 0]],
    "attention_mask": [[1, 1, 1, 1, 1], [1, 1, 1, 1, 0]],
    "labels": [[-100, -100, 6, 7, 2], [-100, 8, 9, 2, -100]],
}
DRAWN = 40
"""Logs that are drawn, of all kinds."""
TALK = [{"messages": [{"role": "user", "content": "two and two"}, {"role": "assistant", "content": "four"}]}] * 3


@cache
def drawn(kind: str, suffix: str = "") -> list[bytes]:
    """Return the beginnings of drawn logs of a kind, in no framework's form; of files of one ending, if wished."""
    logs = [drawn_log(number, 0) for number in range(DRAWN)]
    chosen = [log for log in logs if log.kind == kind and log.suffix.endswith(suffix)]
    return ["\n".join([*log.lines, ""]).encode()[:1500] for log in chosen]


def text_logs() -> list[bytes]:
    """Return the text logs of many trainers, their first lines, and those of loops of one's own."""
    files = [path for pattern in ("*.log", "*/*.log") for path in sorted(SAMPLES.glob(pattern))]
    return [*(path.read_bytes()[:1500] for path in files), *drawn("phases"), *drawn("counters"), *drawn("blocks")]


def yaml_records() -> list[bytes]:
    """Return lists of records, flat, in mappings and under a key, and with lines that are none."""
    flat, *others = drawn("blocks", ".yaml")
    keyed = b"config:\n  epochs: 80\n  data:\n    - name: a\nhistory:\n  " + flat[:-1].replace(b"\n", b"\n  ")
    return [flat, *others, keyed + b"\nended: normally\n", flat + b"Traceback: {a: [1, 2]}\n- - &x *x\n"]


def tables() -> list[bytes]:
    """Return logs that are tables, in text and in files of cells."""
    return drawn("tables")


def compressed_logs() -> list[bytes]:
    """Return text logs of some trainers, compressed in each way that can be read here."""
    packers: list[Callable[[bytes], bytes]] = [gzip.compress, bz2.compress, lzma.compress]
    with suppress(ImportError):
        module = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
        packers.append(import_module(module).compress)
    return [pack(text) for text in text_logs()[:4] for pack in packers]


def notebooks() -> list[bytes]:
    """Return notebooks with what their cells printed."""
    return [path.read_bytes() for path in sorted((SAMPLES / "notebook").glob("*.ipynb"))]


def evaluations() -> list[bytes]:
    """Return the evaluations that Stable-Baselines3 keeps of an agent."""
    return [(SAMPLES / "stable_baselines3" / "evaluated" / "evaluations.npz").read_bytes()]


def json_lines() -> list[bytes]:
    """Return logs of JSON lines: of records, of those of MMEngine and mmcv, and of lines of text that they wrap."""
    lines = ["\n".join(json.dumps(record) for record in RECORDS), '{"loss": NaN, "step": 1}\n{"loss": Infinity}\n']
    wrapped = [{"log": f"step {one['step']} loss {one['loss']:.4f}\n", "stream": "stdout"} for one in RECORDS]
    modes = [{"mode": "val" if at % 3 == 2 else "train", "epoch": 1, "iter": at, "loss": 3 / at} for at in range(1, 9)]
    named = [{"metric": "val/loss", "value": 3 / at, "split": "val", "data": {"step": at}} for at in range(1, 9)]
    lines += ["\n".join(map(json.dumps, records)) for records in (wrapped, modes, named)]
    files = [SAMPLES / "fairseq_json.log", *sorted((SAMPLES / "mmengine").glob("*.json"))]
    return [*(text.encode() for text in lines), *(path.read_bytes()[:1500] for path in files), *drawn("records")]


def json_logs() -> list[bytes]:
    """Return logs that are one JSON value."""
    state = {"log_history": RECORDS, "global_step": 11, "max_steps": 11, "best_metric": None}
    golden = {"lm loss": {"start_step": 0, "end_step": 3, "step_interval": 1, "values": {"1": 3.0, "2": 2.0}}}
    keras = {"history": {"loss": [3, 2, 1], "val_loss": [3, 2.5, 2]}, "epoch": [0, 1, 2], "params": {"epochs": 3}}
    values = [state, RECORDS, {"loss": [3, 2, 1], "step": [1, 2, 3]}, golden, {"runs": {"a": RECORDS}}, keras]
    return [json.dumps(value).encode() for value in values]


def metric_files() -> list[bytes]:
    """Return files of one metric each, as a loop of one's own leaves them: with and without steps."""
    stepped = "".join(f"{16 * at} {5.5 / at:.4f}\n" for at in range(1, 30))
    return [
        stepped.encode(),
        stepped.replace(" ", ",").encode(),
        b"1 2.5\n2 2.0\nsaving model to a.pt\n3 1.5\n4 1.25\n",
    ]


def flight_dumps() -> list[bytes]:
    """Return dumps of PyTorch's flight recorder: as JSON, and as the pickle of plain values that a rank writes."""
    frames = [{"name": "step", "filename": "train.py", "line": 7}, {"name": "f", "filename": "torch/a.py", "line": 1}]
    listed = [
        {"collective_seq_id": at, "process_group": ["0", "default_pg"], "profiling_name": "nccl:all_reduce",
         "state": "scheduled" if at == 4 else "completed", "frames": frames, "is_p2p": False}
        for at in range(1, 5)
    ]  # fmt: skip
    dump = {"version": "2.9", "entries": listed}
    return [json.dumps(dump).encode(), *(pickle.dumps(dump, protocol) for protocol in (0, 2, 4))]


def parquet_files() -> list[bytes]:
    """Return parquet files: a history, and rows of token ids."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def written(columns: dict[str, Any]) -> bytes:
        buffer = io.BytesIO()
        pq.write_table(pa.table(columns), buffer)
        return buffer.getvalue()

    history = {name: [record[name] for record in RECORDS] for name in RECORDS[0]}
    return [written(history), written(ROWS), written({"messages": [row["messages"] for row in TALK]})]


def arrow_files() -> list[bytes]:
    """Return Arrow files and streams."""
    import pyarrow as pa

    table = pa.table(ROWS)
    written = []
    for make in (pa.ipc.new_file, pa.ipc.new_stream):
        buffer = io.BytesIO()
        with make(buffer, table.schema) as writer:
            writer.write_table(table)
        written.append(buffer.getvalue())
    return written


def event_payloads() -> list[bytes]:
    """Return the records of TensorBoard files, joined with their lengths; `event_file` gives them their checksums."""
    files = [path.read_bytes()[:2000] for path in sorted(SAMPLES.glob("events.*"))]
    return [b"".join(struct.pack("<I", len(one)) + one for one in _event_records(data)) for data in files]


def _event_records(data: bytes) -> Iterator[bytes]:
    at = 0
    while at + 12 <= len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        yield data[at + 12 : at + 12 + length]
        at += 16 + length


def event_file(payload: bytes) -> bytes:
    """Return a TensorBoard file with right checksums, so that damage reaches what stands in the records."""
    from mldebug_mcp.core.protobuf import masked_crc32c_of

    made, at = [], 0
    while at + 4 <= len(payload):
        (length,) = struct.unpack_from("<I", payload, at)
        record = payload[at + 4 : at + 4 + min(length, 4096)]
        size = struct.pack("<Q", len(record))
        made += [
            size,
            struct.pack("<I", masked_crc32c_of(size)),
            record,
            struct.pack("<I", masked_crc32c_of(record or b"\0")),
        ]
        at += 4 + len(record)
    return b"".join(made)


def wandb_payloads() -> list[bytes]:
    """Return the records of a W&B file without their frames; `wandb_file` frames them again."""
    data = (SAMPLES / "run.wandb").read_bytes()
    records, at = [], 7
    while at + 7 <= len(data):
        _, length, kind = struct.unpack_from("<IHB", data, at)
        if kind == 0:
            break
        records.append(data[at + 7 : at + 7 + length])
        at += 7 + length
    return [b"".join(struct.pack("<I", len(one)) + one for one in records)[:2000], data[:2000]]


def wandb_file(payload: bytes) -> bytes:
    """Return a W&B file whose frames have right checksums."""
    if payload.startswith(b":W&B"):
        return payload
    made, at, size = [b":W&B\x9e\xbe\x00"], 0, 7
    while at + 4 <= len(payload):
        (length,) = struct.unpack_from("<I", payload, at)
        record = payload[at + 4 : at + 4 + min(length, 4096)]
        if 32_768 - size % 32_768 < 7 + len(record):
            break
        made.append(struct.pack("<IHB", zlib.crc32(b"\1" + record), len(record), 1) + record)
        at, size = at + 4 + len(record), size + 7 + len(record)
    return b"".join(made)


def databases() -> list[bytes]:
    """Return small databases of MLflow and Trackio."""
    return [_small_database(SAMPLES / name) for name in ("mlflow.db", "trackio.db")]


def _small_database(path: Path) -> bytes:
    """Return a copy of a database with the few tables that are read, in small pages."""
    wanted = ("metrics", "runs", "params", "configs")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.db"
        source, target = sqlite3.connect(path), sqlite3.connect(copy)
        target.execute("PRAGMA page_size = 512")
        for (name,) in source.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            if name in wanted:
                columns = [column for (column,) in source.execute(f"SELECT name FROM pragma_table_info('{name}')")]  # noqa: S608
                target.execute(f"CREATE TABLE {name} ({','.join(columns)})")
                for row in source.execute(f"SELECT * FROM {name} LIMIT 40"):  # noqa: S608 - names of our own
                    target.execute(f"INSERT INTO {name} VALUES ({','.join('?' * len(row))})", row)  # noqa: S608
        target.commit()
        source.close()
        target.close()
        return copy.read_bytes()


def configurations() -> list[bytes]:
    """Return training configurations and models' configurations."""
    nested = {"learning_rate": 1e-4, "optimizer": {"name": "adamw", "lr": {"value": 3e-4}}, "warmup_steps": 100}
    model = {
        "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100,
        "intermediate_size": 128, "max_position_embeddings": 64, "eos_token_id": [2, 3], "bos_token_id": 1,
        "id2label": {"0": "a"}, "text_config": {"hidden_size": 8}, "vision_config": {"spatial_merge_size": 2},
    }  # fmt: skip
    yaml = b"lr: 1e-4\noptim: &o {name: adamw, betas: [0.9, 0.95]}\nother: *o\nepochs: 3\ntext: >\n  folded\n"
    return [json.dumps(nested).encode(), json.dumps(model).encode(), yaml, b"a: [1, 2]\nb:\n  c: {d: 1.5e-3}\n"]


def texts() -> list[bytes]:
    """Return conversations, preference pairs and triplets as JSON lines."""
    said = {"role": "assistant", "content": "Seven."}
    rows: list[dict[str, object]] = [
        {"messages": [{"role": "user", "content": "A prime?"}, said]},
        {"prompt": "A prime?", "chosen": "Seven.", "rejected": "Nine.", "score_chosen": 8.0, "score_rejected": 2.5},
        {"anchor": "prime", "positive": "seven", "negative": "nine"},
        {"text": "Seven is a prime number.", "label": 1},
    ]
    return [(json.dumps(row) + "\n").encode() * 4 for row in rows]


def data_tables() -> list[bytes]:
    """Return CSV files of text and of numbers."""
    return [b'text,label\n"Seven, a prime.",1\nNine.,0\n' * 2, b"width\theight\n0.5\t1\n0.25\t\n"]


def token_ids() -> list[bytes]:
    """Return raw token ids of two bytes, and with the header of llm.c."""
    ids = b"".join((one * one % 97).to_bytes(2, "little") for one in range(3000))
    return [ids, (20240520).to_bytes(4, "little") + bytes(1020) + ids]


def json_batches() -> list[bytes]:
    """Return batches as JSON and JSON lines."""
    pairs = {
        "chosen_input_ids": [[1, 2]],
        "rejected_input_ids": [[1, 3]],
        "chosen_labels": [[-100, 2]],
        "rejected_labels": [[-100, 3]],
    }
    floats = {"pixel_values": [[0.5, 1.5], [0.1, float("nan")]], "labels": [0, 1]}
    rows = [dict(zip(ROWS, row, strict=True)) for row in zip(*ROWS.values(), strict=True)]
    values = [ROWS, rows, {"batch": ROWS}, pairs, floats]
    return [*(json.dumps(value).encode() for value in values), "\n".join(map(json.dumps, rows)).encode()]


def arrays() -> list[bytes]:
    """Return a bare array, and the members of an archive, which `archive` packs."""
    buffer = io.BytesIO()
    np.save(buffer, np.array(ROWS["input_ids"]))
    return [buffer.getvalue()]


def archive(data: bytes) -> bytes:
    """Return an .npz whose members are one damaged array, with checksums that are right; every other one stays bare."""
    if len(data) % 2:
        return data
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("input_ids.npy", data)
        packed.writestr("labels.npy", data)
    return buffer.getvalue()


def safetensors() -> list[bytes]:
    """Return batches as safetensors."""
    ids = np.array(ROWS["input_ids"], "<i8").tobytes()
    header = {
        "input_ids": {"dtype": "I64", "shape": [2, 5], "data_offsets": [0, len(ids)]},
        "labels": {"dtype": "I64", "shape": [2, 5], "data_offsets": [len(ids), 2 * len(ids)]},
        "x": {"dtype": "BF16", "shape": [2, 2], "data_offsets": [2 * len(ids), 2 * len(ids) + 8]},
    }
    text = json.dumps(header).encode()
    return [struct.pack("<Q", len(text)) + text + ids + ids + b"\0\x3f" * 4]


def torch_files() -> list[bytes]:
    """Return batches of `torch.save`."""
    import torch

    buffer = io.BytesIO()
    torch.save({name: torch.tensor(rows) for name, rows in ROWS.items()}, buffer)
    old = io.BytesIO()
    torch.save({"input_ids": torch.ones(2, 3)}, old, _use_new_zipfile_serialization=False)
    return [buffer.getvalue(), old.getvalue()]


@cache
def snapshots() -> list[bytes]:
    """Return small memory snapshots of several layouts."""
    made: list[Callable[[], Any]] = [
        lambda: scenarios.snapshot_of(scenarios.training(steps=1), layout="2.13"),
        lambda: scenarios.snapshot_of(scenarios.inference(batches=2), layout="2.1"),
        lambda: scenarios.snapshot_of(scenarios.inference(batches=1), layout="2.0"),
    ]
    written = []
    for make in made:
        tree = make()
        tree["device_traces"] = [trace[-20:] for trace in tree["device_traces"]]
        written += [pickle.dumps(tree), pickle.dumps(tree, protocol=0)]
    return [one for one in written if len(one) <= LONGEST] or [one[:LONGEST] for one in written]


def zipped(data: bytes) -> bytes:
    """Return every fourth input compressed, the others as they are."""
    return gzip.compress(data, 1) if len(data) % 4 == 0 else data


MEMORY_TEXTS = (
    b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity "
    b"of 79.15 GiB of which 8.75 MiB is free. Process 1 has 79.14 GiB memory in use. Of the allocated memory 77.90 GiB "
    b"is allocated by PyTorch, and 760.13 MiB is reserved by PyTorch but unallocated.",
    b"|   0  NVIDIA A100-SXM4-80GB  On  | 00000000:07:00.0 Off | 0 |\n| N/A 30C P0 60W / 400W | 1234MiB / 81920MiB |\n",
    b"| PyTorch CUDA memory summary, device ID 0 |\n| CUDA OOMs: 1 | cudaMalloc retries: 1 |\n"
    b"| Metric | Cur Usage | Peak Usage | Tot Alloc | Tot Freed |\n| Allocated memory | 100 MiB | 200 MiB | 300 B |\n",
)

ERRORS = (
    b'Traceback (most recent call last):\n  File "/home/me/train.py", line 7, in <module>\n    main()\n'
    b'  File "/x/site-packages/torch/nn/modules/linear.py", line 125, in forward\n    return F.linear(x)\n'
    b"RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x8 and 16x2)\n",
    b'[rank3]: Traceback (most recent call last):\n[rank3]:   File "t.py", line 1, in f\n[rank3]: ValueError: bad\n'
    b"[rank0]:[E ProcessGroupNCCL.cpp:607] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5)\n",
    b"\x1b[1;31mtorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\x1b[0m\nstep 5 loss 1.0\n",
    b"ImportError: libcudart.so.12: cannot open shared object file: No such file or directory",
    b"  + Exception Group Traceback (most recent call last):\n  | ExceptionGroup: two (2 sub-exceptions)\n"
    b"  +-+--- 1 ---\n    | KeyError: 'x'\n\n"
    b"During handling of the above exception, another exception occurred:\n\nTypeError: y\n",
)

CALLS: tuple[dict[str, Any], ...] = (
    {"name": "diagnose_run", "arguments": {"path": "run.jsonl", "detail": "full", "run": "a", "config": "config.json"}},
    {"name": "update_diagnosis", "arguments": {"findings": {"loss_spike": "present"}, "outcomes": {}}},
    {"name": "inspect_batch", "arguments": {"path": "batch.json", "purpose": "sft", "sample": 3, "against": "b.json"}},
    {"name": "check_memory", "arguments": {"path": "oom.txt", "focus": "logits", "against": "oom.txt"}},
    {"name": "estimate_memory", "arguments": {"config": "config.json", "batch_size": 4, "length": 128, "lora_rank": 8}},
    {"name": "search_folklore", "arguments": {"query": "loss spikes", "kind": "any", "limit": 3, "domain": "llm"}},
    {"name": "explain", "arguments": {"id": "loss_spike"}},
    {"name": "explain_error", "arguments": {"text": "CUDA out of memory"}},
    {"name": "probe_overfit", "arguments": {"batch": "batch.json", "steps": 5, "time_limit": 1.5, "device": "cpu"}},
)  # fmt: skip


def tokenizers() -> list[bytes]:
    """Return tokenizers: of whole words, and of byte pairs."""
    added = [
        {
            "id": 0,
            "content": "<s>",
            "special": True,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
        }
    ]
    shared = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
    }  # fmt: skip
    words = {"type": "WordLevel", "vocab": {"<s>": 0, "two": 1, "and": 2, "four": 3, "[UNK]": 4}, "unk_token": "[UNK]"}
    pairs = {"type": "BPE", "vocab": {"<s>": 0, "a": 1, "b": 2, "ab": 3}, "merges": ["a b"], "unk_token": None}
    return [json.dumps({**shared, "model": model}).encode() for model in (words, pairs)]


RECORDED = {
    "recorder": 1, "time": 1.5, "rows_kind": "index", "data_length": 30, "settings": {"learning_rate": 0.001},
    "sampler": {"kind": "torch.DistributedSampler", "seed": 4, "batch_size": 3, "world": 1, "rank": 0},
}  # fmt: skip


EVENTS = (
    {"step": 3, "event": "spike", "value": 9.5, "batch": "batch_3.pt"},
    {"step": 5, "event": "nonfinite", "value": float("nan"), "began": {"gradients": ["head.weight"], "loss": []}},
    {"step": 6, "event": "hang", "value": 60.0, "at": ["train.py:7 in main"], "stacks": "stacks.txt"},
    {"step": 7, "event": "went_on", "value": 61.0},
    {"step": 9, "event": "exception", "error": "RuntimeError: CUDA out of memory"},
)


def recordings() -> list[bytes]:
    """Return recordings: with numbers of rows, keys of their tokens, two starts, and all that is looked at."""
    steps = [{"step": step, "train/loss": 3 / step, "rows": [3 * step % 30, [step, 7]]} for step in range(1, 10)]
    keyed = [{"step": step, "rows": [f"{step:016x}"]} for step in range(1, 6)]
    seen = {"inputs_spread": 0.9, "inputs_apart": 0.2, "recomputed/once": 2.3, "recomputed/twice": 2.2,
            "grad_norm/head": 1.5, "update_ratio/head": 1e-3, "units_dead/head": 0.1, "entropies/head": 0.5,
            "logits_max": 9.5, "time/data": 0.1, "memory/peak": 1e9, "train/loss": 2.3}  # fmt: skip
    looked_at = [{"step": step, **seen, "eval/loss": 2.5 + step / 9, "rows": [step]} for step in range(1, 8)]
    written = (
        [RECORDED, *steps, *EVENTS],
        [RECORDED | {"rows_kind": "hash"}, *keyed],
        [RECORDED, *steps[:4], RECORDED, *steps[2:], RECORDED | {"continued": True}, *EVENTS[:2]],
        [RECORDED, {"step": 9, "rows": [1]}],
        [RECORDED | {"world": 2}, *looked_at[:4], RECORDED | {"time": 9.5, "world": 2}, *looked_at[2:], *EVENTS[1:3]],
    )
    return ["".join(json.dumps(one) + "\n" for one in lines).encode() for lines in written]


def arguments() -> list[bytes]:
    """Return saved arguments of a Trainer that tell how rows are drawn."""
    sampler = Namespace(use_seedable_sampler=True, split_batches=False, even_batches=True)
    told = {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 2, "num_train_epochs": 3.0, "_n_gpu": 1}
    value = Namespace(seed=42, data_seed=None, max_steps=-1, accelerator_config=vars(sampler), **told)
    return [*(pickle.dumps(value, protocol) for protocol in (0, 2, 4)), *grammars.pickled()]


def packed(data: bytes) -> bytes:
    """Return an archive of two logs; the first line is the name of the first one, what follows is in it."""
    name, _, content = data.partition(b"\n")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(name.decode(errors="replace") or "a", content)
        packed.writestr("b/train.jsonl", content)
    return buffer.getvalue()


def packed_logs() -> list[bytes]:
    """Return what `packed` takes: a name, and a log."""
    named = (b"a/train.jsonl", b"train.log", b"../out.jsonl", b"a/config.yaml")
    return [name + b"\n" + log for name in named for log in (json_lines()[0], text_logs()[5][:400])]


def archives() -> list[bytes]:
    """Return archives of logs."""
    return [packed(one) for one in packed_logs()[:4]]


URLS = (
    b"zip://b::file://FOLDER/runs.zip", b"zip://a/train.jsonl::FOLDER/runs.zip", b"file://FOLDER/runs.zip",
    b"FOLDER/runs.zip", b"zip://::file:///etc/runs.zip", b"s3://bucket/runs.zip", b"zip://::memory://runs.zip",
    b"file://FOLDER/runs", b"gs://bucket/a", b"file://localhost/FOLDER/runs.zip", b"https://x.example/runs.zip",
)  # fmt: skip


NAMES = (b"loss\ngrad_norm", b"learning_rate", b"train/loss", b"eval_loss\nloss\nepoch", b"reward", b"los")


QUESTIONS = (
    b"loss spikes after warmup", b"reward stays at zero in PPO", "перплексия растёт".encode(), b"loss_spike",
    b"lr_too_high", b"what is a good learning rate for LoRA?", b"NCCL watchdog timeout", b"GAN mode collapse",
)  # fmt: skip


def named_settings() -> list[bytes]:
    """Return settings in the forms whose text tells which."""
    return [*grammars.forms(), *configurations()]


def tokenizer_configs() -> list[bytes]:
    """Return the configurations of tokenizers, with tokens and templates in every form."""
    token = {"content": "<s>", "lstrip": False, "special": True, "__type": "AddedToken"}
    template = grammars.TEMPLATES[0].decode()
    plain = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<s>", "chat_template": template}
    named = {"bos_token": token, "added_tokens_decoder": {"0": token}, "model_max_length": 1e30,
             "chat_template": [{"name": "default", "template": template}], "padding_side": "left"}  # fmt: skip
    return [json.dumps(plain).encode(), json.dumps(named).encode()]


def mllog() -> list[bytes]:
    """Return lines of MLPerf's logging, with others between."""
    line = ':::MLLOG {"namespace": "", "time_ms": 17%02d, "event_type": "POINT_IN_TIME", "key": "%s", "value": %s, '
    line += '"metadata": {"file": "a.py", "step_num": %d, "epoch_num": %d}}'
    events = [
        ("global_batch_size", "8"),
        ("opt_base_learning_rate", "0.1"),
        ("eval_accuracy", "0.5"),
        ("train_loss", "2.5"),
    ]
    made = [line % (step, key, value, step, step) for step in range(1, 4) for key, value in events]
    return ["\n".join(made).encode(), "\n".join(f"0: {one}" for one in made).encode()]


def shaped_tables() -> list[bytes]:
    """Return tables of one row for each value, and of very many columns."""
    long = "\n".join(
        f"{step},{tag},{value}" for step in range(9) for tag, value in (("loss", 3 - step / 9), ("lr", 0.1))
    )
    names = ",".join(f"layer.{number}.grad_norm" for number in range(300))
    rows = "\n".join(",".join([str(step), *["0.5"] * 300]) for step in range(3))
    return [f"step,tag,value\n{long}\n".encode(), f"step,{names}\n{rows}\n".encode()[:6000]]


def names() -> list[bytes]:
    """Return a good call of each tool."""
    return [json.dumps(call).encode() for call in CALLS]


def results() -> list[bytes]:
    """Return what a probe measured."""
    measured = {
        "initial_loss": 4.6, "goal": 0.1, "device": "cpu", "targets": "tokens",
        "reference": {"uniform": 4.6, "unigram": 4.0, "least": 0.0, "contradicting_rows": [1]},
        "curve": {"losses": [4.6, 2.0, 0.1], "learning_rate": 0.01},
        "gradients": {"norm": 1.0, "trainable": 10, "none": ["a.weight"], "none_share": 0.5},
        "first_nonfinite": {"op": "exp", "module": "head", "frames": [{"op": "mul"}]},
    }  # fmt: skip
    return [json.dumps({"measured": measured, "stage": "training", "notes": ["a"], "done": True}).encode()]


def mlflow_points() -> list[bytes]:
    """Return points of a metric."""
    return [b"".join(b"1700000000%03d %.4f %d\n" % (step, 3 / (step + 1), step) for step in range(20))]
