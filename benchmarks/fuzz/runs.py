"""Verbs on several runs, recordings, archives and single metrics, one file of which is damaged."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from argparse import Namespace
from pathlib import Path

from benchmarks.fuzz import seeds, settings_seeds
from benchmarks.fuzz.verbs import Content, Parse, Signature, Verb, check_reply, diagnosed

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
CONFIG: dict[str, Content] = {f"runs/{name}/config.yaml": b"learning_rate: 0.1\nseed: 1\n" for name in "abc"}
LOGS: dict[str, Content] = {f"runs/{name}/train.jsonl": lambda: seeds.json_lines()[0] for name in "ab"}
ROWS: dict[str, Content] = {
    "run/recorder.jsonl": lambda: recordings()[0],
    "data.jsonl": lambda: b"".join(b'{"text": "row %d of these"}\n' % row for row in range(30)),
}


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
    return [*(pickle.dumps(value, protocol) for protocol in (0, 2, 4)), *settings_seeds.pickled()]


def zipped(data: bytes) -> bytes:
    """Return an archive of two logs; the first line is the name of the first one, what follows is in it."""
    name, _, content = data.partition(b"\n")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(name.decode(errors="replace") or "a", content)
        packed.writestr("b/train.jsonl", content)
    return buffer.getvalue()


def packed_logs() -> list[bytes]:
    """Return what `zipped` takes: a name, and a log."""
    named = (b"a/train.jsonl", b"train.log", b"../out.jsonl", b"a/config.yaml")
    return [name + b"\n" + log for name in named for log in (seeds.json_lines()[0], seeds.text_logs()[5][:400])]


def archives() -> list[bytes]:
    """Return archives of logs."""
    return [zipped(one) for one in packed_logs()[:4]]


URLS = (
    b"zip://b::file://FOLDER/runs.zip", b"zip://a/train.jsonl::FOLDER/runs.zip", b"file://FOLDER/runs.zip",
    b"FOLDER/runs.zip", b"zip://::file:///etc/runs.zip", b"s3://bucket/runs.zip", b"zip://::memory://runs.zip",
    b"file://FOLDER/runs", b"gs://bucket/a", b"file://localhost/FOLDER/runs.zip", b"https://x.example/runs.zip",
)  # fmt: skip


def located(folder: Path) -> Parse:
    """The diagnosis of what a path or a URL names, in a server that may read one folder alone."""
    from mldebug_mcp.core.access import Access, confined
    from mldebug_mcp.server import calls

    calls.prepare()
    folder = folder.resolve()
    (folder / "runs.zip").write_bytes(archives()[0])

    def parse(data: bytes) -> Signature:
        path = data.decode(errors="replace").replace("FOLDER", str(folder))
        with confined(Access((str(folder),))):
            return check_reply(calls.CALLS["diagnose_run"]({"path": path}, None))

    return parse


def metric_asked(folder: Path) -> Parse:
    """`read_metric` of a good log, with the lines of the input for names and its length for the steps."""
    from mldebug_mcp.server import calls

    calls.prepare()
    log = folder / "train.jsonl"
    log.write_bytes(seeds.json_lines()[0])

    def parse(data: bytes) -> Signature:
        names = data.decode(errors="replace").split("\n")
        steps = {"first": len(data) % 7 - 1.5, "last": len(data) % 13 - 0.5} if len(data) % 3 else {}
        arguments = {"path": str(log), "names": names, "points": 4 + len(data) % 9, **steps}
        return check_reply(calls.CALLS["read_metric"](arguments, None))

    return parse


NAMES = (b"loss\ngrad_norm", b"learning_rate", b"train/loss", b"eval_loss\nloss\nepoch", b"reward", b"los")
RECORDING = diagnosed("recorder.jsonl")
DUMPED = Verb(
    "diagnose_run", "run/nccl_trace_rank_1", {"path": "run", "detail": "full"},
    {"run/recorder.jsonl": lambda: recordings()[0], "run/nccl_trace_rank_0": lambda: seeds.flight_dumps()[0]},
)  # fmt: skip
METRIC_FILE = Verb(
    "diagnose_run", "run/val_kl.txt", {"path": "run", "detail": "full"},
    {f"run/{name}.txt": lambda: seeds.metric_files()[0] for name in ("train_loss", "train_beta", "val_loss")}
    | {"run/opts.txt": b"--model vae\n--epochs 28\n--batch_size 64\n--optimizer adam\n--lr 0.003\n"},
)  # fmt: skip
ARCHIVE = diagnosed("runs.zip")
METRIC = Verb("read_metric", "train.jsonl", {"path": "FILE", "names": ["loss", "learning_rate", "train/loss"]})
MANY = Verb("diagnose_runs", "runs/c/train.jsonl", {"path": "runs", "detail": "full"}, {**LOGS, **CONFIG})
MANY_SETTINGS = Verb(
    "diagnose_runs", "runs/b/config.yaml", {"path": "runs"}, LOGS | {"runs/a/config.yaml": CONFIG["runs/a/config.yaml"]}
)
CONTEST = Verb(
    "compare_runs",
    "c.jsonl",
    {"a": ["runs/a/train.jsonl", "FILE"], "b": ["runs/b/train.jsonl", "runs/a/train.jsonl"], "metric": "loss"},
    LOGS,
)
FED = Verb("rows_at", "run/recorder.jsonl", {"path": "run", "step": 5, "data": "data.jsonl", "detail": "full"}, ROWS)
DRAWN = Verb("rows_at", "run/recorder.jsonl", {"path": "run", "step": 2, "first_step": 1})
SHOWN = Verb("rows_at", "data.jsonl", {"path": "run", "step": 3, "data": "FILE"}, ROWS)
TRAINED = Verb(
    "rows_at", "run/training_args.bin", {"path": "run", "step": 3, "rows": 36},
    {"run/trainer_state.json": lambda: seeds.json_logs()[0]},
)  # fmt: skip
