"""Whole verbs, as the server's helpers do them: a damaged file among good ones → the reply that a client would get."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.fuzz import seeds
from benchmarks.fuzz.promises import BrokenPromiseError, check_text, texts

Signature = object
"""What tells inputs apart that led to different places: hashable."""
Parse = Callable[[bytes], Signature]
Content = bytes | Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class Verb:
    """A call of the server on a damaged file.

    Args:
        call: The name of the call.
        file: What the damaged file is called, below a folder of its own.
        arguments: Of the call: paths are relative to that folder, "FILE" is the damaged file, "TEXT" what is in it.
        beside: Other files, which are as they should be.
    """

    call: str
    file: str
    arguments: Mapping[str, Any]
    beside: Mapping[str, Content] = field(default_factory=dict)

    def prepare(self, folder: Path) -> None:
        """Write the files that are as they should be."""
        for name, content in self.beside.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content())
        (folder / self.file).parent.mkdir(parents=True, exist_ok=True)

    def given(self, folder: Path, data: bytes) -> dict[str, Any]:
        """Write an input, and return the arguments of the call on it."""
        (folder / self.file).write_bytes(data)
        text = data.decode(errors="replace")
        special = {"FILE": str(folder / self.file), "TEXT": text, "FOLDER": str(folder)}

        def value(name: str, given: Any) -> Any:  # noqa: ANN401 - JSON
            if isinstance(given, list):
                return [value(name, one) for one in given]
            if not isinstance(given, str):
                return given
            return special.get(given, str(folder / given) if name in _PATHS else given)

        return {name: value(name, given) for name, given in self.arguments.items()}

    def __call__(self, folder: Path) -> Parse:
        """Return the function that does the call on an input in this process, and checks the reply."""
        from mldebug_mcp.server import calls

        calls.prepare()
        call = calls.CALLS[self.call]
        self.prepare(folder)

        def parse(data: bytes) -> Signature:
            arguments = self.given(folder, data)
            answer = call(**arguments) if self.call == "read_probe_batch" else call(arguments, None)
            return check_reply(answer)

        return parse


_PATHS = ("path", "config", "reference", "against", "tokenizer", "model", "snapshot", "data", "a", "b")


def check_reply(reply: Any) -> Signature:  # noqa: ANN401 - JSON
    """Check everything that a client would get, and return what it is about."""
    if "structuredContent" not in reply:  # the columns of a probe, which stay inside
        return tuple(reply.get("columns", ())), len(reply.get("notes", ()))
    json.dumps(reply, allow_nan=False)
    answer = reply["structuredContent"]
    shown = [part["text"] for part in reply["content"] if part["type"] == "text"]
    if answer is not None and json.loads(shown[0]) != answer:
        raise BrokenPromiseError("text and structured content differ")
    for text in texts(answer):
        check_text(text)
    told = [str(one.get("symptom", one.get("check", one.get("finding")))) for one in answer.get("findings", ())]
    matches = [str(one.get("id")) for one in answer.get("matches", ())]
    rows = {(one.get("ending"), str(one.get("cause"))) for one in answer.get("rows", ())}
    whole = (answer.get("source"), answer.get("row_count"), str(answer.get("verdict"))[:20], reply.get("isError"))
    return tuple(sorted(told)), tuple(matches), frozenset(rows), len(answer.get("notes", ())), whole


def _tokenizer() -> bytes:
    return seeds.tokenizers()[0]


def _chats() -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in seeds.TALK)


LOG: Mapping[str, Content] = {"train.jsonl": lambda: seeds.json_lines()[0]}
MODEL: Mapping[str, Content] = {"config.json": lambda: seeds.configurations()[1]}


def diagnosed(name: str, *, detail: str = "concise") -> Verb:
    """Return the diagnosis of a log that has a good configuration beside it, and a good run to compare with."""
    config = b'{"learning_rate": 0.001, "max_steps": 11, "per_device_train_batch_size": 4, "optim": "adamw"}'
    arguments = {"path": "FILE", "config": "good/config.json", "reference": "good/train.jsonl", "detail": detail}
    return Verb("diagnose_run", name, arguments, {"good/config.json": config, "good/train.jsonl": LOG["train.jsonl"]})


def configured(name: str) -> Verb:
    """Return the diagnosis of a good log with a configuration that is named."""
    return Verb("diagnose_run", name, {"path": "train.jsonl", "config": "FILE"}, LOG)


def run_folder(name: str) -> Verb:
    """Return the diagnosis of a folder of several logs, one file of which is damaged."""
    good: dict[str, Content] = {
        "run/trainer_state.json": lambda: seeds.json_logs()[0],
        "run/train.log": lambda: seeds.text_logs()[5],
        "run/config.yaml": lambda: seeds.configurations()[2],
        "run/train.log.1": lambda: seeds.text_logs()[5][:400],
    }
    return Verb("diagnose_run", f"run/{name}", {"path": "run", "detail": "full"}, good)


def inspected(name: str, **more: str) -> Verb:
    """Return the inspection of a batch."""
    return Verb("inspect_batch", name, {"path": "FILE", **more}, MODEL)


def by_blocks(name: str) -> Callable[[Path], Parse]:
    """Return the diagnosis of a log that is read as large ones are: by blocks, in compiled code."""

    def opened(folder: Path) -> Parse:
        from mldebug_mcp.logs import log_file

        vars(log_file)["FAST_BYTES"] = 1
        return diagnosed(name)(folder)

    return opened


TOKENIZED = Verb(
    "inspect_batch", "tokenizer/tokenizer.json", {"path": "rows.jsonl", "tokenizer": "tokenizer"},
    {"rows.jsonl": _chats, "tokenizer/tokenizer_config.json": b'{"eos_token": "<s>", "model_max_length": 9}'},
)  # fmt: skip
TOKENIZER_CONFIG = Verb(
    "inspect_batch", "tokenizer/tokenizer_config.json",
    {"path": "rows.jsonl", "tokenizer": "tokenizer", "model": "config.json", "detail": "full"},
    {"rows.jsonl": _chats, "tokenizer/tokenizer.json": _tokenizer, **MODEL},
)  # fmt: skip
TEMPLATE = Verb(
    "inspect_batch", "tokenizer/chat_template.jinja", {"path": "rows.jsonl", "tokenizer": "tokenizer"},
    {"rows.jsonl": _chats, "tokenizer/tokenizer.json": _tokenizer,
     "tokenizer/tokenizer_config.json": b'{"bos_token": "<s>", "eos_token": "<s>", "unk_token": "[UNK]"}'},
)  # fmt: skip
ESTIMATE = Verb("estimate_memory", "config.json", {"config": "FILE", "batch_size": 4, "length": 128, "lora_rank": 8})
COMPARED = Verb("check_memory", "oom.txt", {"path": "FILE", "against": "FILE", "detail": "full"})
COMPARED_SNAPSHOT = Verb("check_memory", "snapshot.pickle", COMPARED.arguments)
MODELLED = Verb(
    "inspect_batch",
    "config.json",
    {"path": "batch.json", "model": "FILE"},
    {"batch.json": lambda: seeds.json_batches()[0]},
)
UPDATED = Verb(
    "update_diagnosis", "crash.log", {"error": "TEXT", "outcomes": {"lr_too_high.1": "refutes"}}
)  # fmt: skip
ERROR = Verb("explain_error", "error.txt", {"text": "TEXT"})
CRASHED = Verb("explain_error", "crash.log", {"text": "FILE", "detail": "full"})
PROBED = Verb("read_probe_batch", "batch.json", {"path": "FILE"})


CONFIG: dict[str, Content] = {f"runs/{name}/config.yaml": b"learning_rate: 0.1\nseed: 1\n" for name in "abc"}
LOGS: dict[str, Content] = {f"runs/{name}/train.jsonl": lambda: seeds.json_lines()[0] for name in "ab"}
ROWS: dict[str, Content] = {
    "run/recorder.jsonl": lambda: seeds.recordings()[0],
    "data.jsonl": lambda: b"".join(b'{"text": "row %d of these"}\n' % row for row in range(30)),
}


RECORDING = diagnosed("recorder.jsonl")
DUMPED = Verb(
    "diagnose_run", "run/nccl_trace_rank_1", {"path": "run", "detail": "full"},
    {"run/recorder.jsonl": lambda: seeds.recordings()[0], "run/nccl_trace_rank_0": lambda: seeds.flight_dumps()[0]},
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
