"""Whole verbs, as the server's helpers do them: a damaged file among good ones → the reply that a client would get."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.fuzz import programs, seeds, settings_seeds
from benchmarks.fuzz.oracle import BrokenPromiseError, check_text, texts

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


def looked_at(folder: Path) -> Parse:
    """`watch`: a log that grows by pieces, is cut off, and goes on as another run."""
    from mldebug_mcp.judge.watch import Watch

    path = folder / "train.log"

    def parse(data: bytes) -> Signature:
        path.unlink(missing_ok=True)
        now = 0.0
        watch, told = Watch(path, clock=lambda: now), []
        for end in (len(data) // 3, len(data) // 2, len(data), len(data), len(data) // 4):
            path.write_bytes(data[:end] or b"\n")
            now += 400.0
            news = watch.look()
            for one in news:
                for text in texts(json.loads(one.to_json())):
                    check_text(text)
            told += [one.what for one in news]
        check_text(watch.status)
        return tuple(told), watch.finished

    return parse


def asked(folder: Path) -> Parse:
    """Search, and the explanation of an id that nobody gave."""
    from mldebug_mcp.core.errors import MLDebugError
    from mldebug_mcp.judge.search import explain, search_folklore

    del folder

    def parse(data: bytes) -> Signature:
        text = data.decode(errors="surrogateescape")
        answer = search_folklore(text, limit=1 + len(data) % 20)
        for one in texts(json.loads(answer.to_json())):
            check_text(one)
        try:
            known = bool(explain(text))
        except MLDebugError:
            known = False
        return len(answer.quotes), len(answer.entries), known

    return parse


QUESTIONS = (
    b"loss spikes after warmup", b"reward stays at zero in PPO", "перплексия растёт".encode(), b"loss_spike",
    b"lr_too_high", b"what is a good learning rate for LoRA?", b"NCCL watchdog timeout", b"GAN mode collapse",
)  # fmt: skip


def named_settings() -> list[bytes]:
    """Return settings in the forms whose text tells which."""
    return [*settings_seeds.forms(), *seeds.configurations()]


def tokenizer_configs() -> list[bytes]:
    """Return the configurations of tokenizers, with tokens and templates in every form."""
    token = {"content": "<s>", "lstrip": False, "special": True, "__type": "AddedToken"}
    template = programs.SEEDS[0].decode()
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
