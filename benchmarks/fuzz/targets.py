"""The parsers that are fuzzed, each with its seeds and the way in."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.fuzz import seeds
from benchmarks.fuzz.oracle import BrokenPromiseError, check_answer, check_text

Signature = object
"""What tells inputs apart that led to different places: hashable."""
Parse = Callable[[bytes], Signature]


@dataclass(frozen=True, slots=True)
class Target:
    """A parser.

    Args:
        name: What it is called in the table.
        share: Its part of all inputs: quick parsers get more.
        seeds: Inputs as they should be.
        open: Makes, in an empty folder, the function that parses an input and checks the answer.
        wrap: Makes a file of a damaged input, with the checksums that its format demands.
        in_place: Whether places in the file are numbered, so that most damage should move nothing.
    """

    name: str
    share: float
    seeds: Callable[[], Sequence[bytes]]
    open: Callable[[Path], Parse]
    wrap: Callable[[bytes], bytes] | None = None
    in_place: bool = False


DIAGNOSED = 50
"""One of so many logs that can be read is diagnosed too, and its whole answer looked at."""


def _log(name: str) -> Callable[[Path], Parse]:
    def opened(folder: Path) -> Parse:
        from mldebug_mcp.diagnose import diagnose
        from mldebug_mcp.logs import read_run

        path, count = folder / name, 0

        def parse(data: bytes) -> Signature:
            nonlocal count
            path.write_bytes(data)
            run = read_run(path)
            for text in (*run.notes, *run.series, *(message.text for message in run.messages), *run.config):
                check_text(text)
            count += 1
            if count % DIAGNOSED == 0:
                check_answer(diagnose(run))
            return run.formats, min(run.records, 3), len(run.series) > 3, len(run.notes), bool(run.messages)

        return parse

    return opened


def _large(name: str) -> Callable[[Path], Parse]:
    """Logs as they are read when they are large: by blocks, in compiled code."""

    def opened(folder: Path) -> Parse:
        from mldebug_mcp.logs.decoding import blocks

        vars(blocks)["FAST_BYTES"] = 1
        return _log(name)(folder)

    return opened


def _tail(folder: Path) -> Parse:
    """A log that grows by pieces, is cut off, and goes on as another."""
    from mldebug_mcp.errors import InputError
    from mldebug_mcp.logs.tail import LogTail

    path = folder / "train.jsonl"

    def parse(data: bytes) -> Signature:
        path.unlink(missing_ok=True)
        path.write_bytes(data[: len(data) // 3] or b"\n")
        tail, read = LogTail(path), 0
        for end in (len(data) // 2, len(data), len(data) // 4):
            path.write_bytes(data[:end] or b"\n")
            try:
                run = tail.read()
            except InputError:
                continue
            read += 1
            for text in (*run.notes, *run.series):
                check_text(text)
        return read

    return parse


def _mlflow(folder: Path) -> Parse:
    from mldebug_mcp.logs import read_run

    run = folder / "mlruns" / "0" / "abc"
    for part in ("metrics", "params", "tags"):
        (run / part).mkdir(parents=True)
    (run / "meta.yaml").write_text("run_id: abc\n")

    def parse(data: bytes) -> Signature:
        half = len(data) // 2
        (run / "metrics" / "loss").write_bytes(data[:half])
        (run / "metrics" / "lr").write_bytes(data[half:])
        (run / "params" / "lr").write_bytes(data[-40:])
        (run / "tags" / "mlflow.runName").write_bytes(data[:40])
        answer = read_run(folder)
        for text in (*answer.notes, *answer.series, *answer.config):
            check_text(text)
        return min(answer.records, 3), len(answer.notes)

    return parse


def _settings(folder: Path) -> Parse:
    from mldebug_mcp.batch.model_config import read_model_config
    from mldebug_mcp.errors import MLDebugError
    from mldebug_mcp.logs.config import read_config
    from mldebug_mcp.memory.estimate import estimate_memory
    from mldebug_mcp.probe.job import read_config as read_probe_config

    training, model = (folder / "args.yaml", folder / "args.json"), folder / "config.json"

    def parse(data: bytes) -> Signature:
        for path in (*training, model):
            path.write_bytes(data)
        outcomes: list[object] = []
        reads: tuple[Callable[[], object], ...] = (
            *(lambda path=path: len(read_config(path)) for path in training),
            lambda: read_model_config(model).given,
            lambda: check_answer(estimate_memory(model)),
            lambda: len(read_probe_config(model)) > 3,
        )
        for read in reads:
            try:
                outcomes.append(read())
            except MLDebugError as error:
                outcomes.append(type(error).__name__)
        return tuple(outcomes)

    return parse


def _batch(name: str) -> Callable[[Path], Parse]:
    def opened(folder: Path) -> Parse:
        from mldebug_mcp.diagnose.batch import inspect_batch

        path = folder / name

        def parse(data: bytes) -> Signature:
            path.write_bytes(data)
            answer = inspect_batch(path)
            check_answer(answer)
            return tuple(finding.check for finding in answer.findings), len(answer.notes)

        return parse

    return opened


def _tokenizer(folder: Path) -> Parse:
    from mldebug_mcp.diagnose.batch import inspect_batch

    rows, place = folder / "rows.jsonl", folder / "tokenizer.json"
    rows.write_text('{"text": "two and two ab"}\n{"text": "four"}\n')

    def parse(data: bytes) -> Signature:
        place.write_bytes(data)
        answer = inspect_batch(rows, place)
        check_answer(answer)
        return tuple(finding.check for finding in answer.findings)

    return parse


def _memory(name: str) -> Callable[[Path], Parse]:
    def opened(folder: Path) -> Parse:
        from mldebug_mcp.diagnose.memory import check_memory

        path = folder / name

        def parse(data: bytes) -> Signature:
            path.write_bytes(data)
            answer = check_memory(path)
            check_answer(answer)
            return answer.snapshot.layout, tuple(finding.finding for finding in answer.findings), len(answer.notes)

        return parse

    return opened


def _text(folder: Path) -> Parse:
    """The functions that all text from outside goes through."""
    from mldebug_mcp.logs.names import canonical
    from mldebug_mcp.logs.numbers import parse_number
    from mldebug_mcp.text import clean, shorten

    del folder

    def parse(data: bytes) -> Signature:
        text = data.decode(errors="surrogateescape")
        check_text(clean(text))
        line = shorten(text, 200)
        check_text(line)
        if len(line) > 200 or "\n" in line:
            raise BrokenPromiseError(f"not one short line: {line!r}")
        return len(line) > 190, parse_number(text[:40]) is None, canonical(line) == line

    return parse


def _lines(folder: Path) -> Parse:
    """The readers of a line of a text log, each by itself."""
    from mldebug_mcp.logs.lines.bars import bar_in
    from mldebug_mcp.logs.lines.counters import find_counters
    from mldebug_mcp.logs.lines.dicts import dict_in
    from mldebug_mcp.logs.lines.pairs import pairs_in
    from mldebug_mcp.logs.lines.prefixes import without_prefix

    del folder

    def parse(data: bytes) -> Signature:
        line = without_prefix(data[:1000].decode(errors="replace")).message
        found = find_counters(line)
        pairs = pairs_in(found.rest)
        return bar_in(line) is None, dict_in(line) is None, tuple(found.values), min(len(pairs), 4)

    return parse


def _protobuf(folder: Path) -> Parse:
    """Messages of Protocol Buffers, as event files and W&B's hold them."""
    from mldebug_mcp.logs.decoding import protobuf

    del folder

    def parse(data: bytes) -> Signature:
        numbers, data = [], data[:400]
        try:
            for part in protobuf.fields(data, 0, len(data)):
                numbers.append(part.number)
                if part.wire == protobuf.BYTES:
                    protobuf.text(data, part).encode()
        except ValueError:
            return "refused", min(len(numbers), 3)
        return tuple(numbers[:2])

    return parse


def _opcodes(folder: Path) -> Parse:
    """The scan of a pickle before it is loaded, and the loading of what passes."""
    from mldebug_mcp.memory.pickle_scan import scan

    del folder

    def parse(data: bytes) -> Signature:
        return scan(io.BytesIO(data), len(data), "pickle") // 100

    return parse


def _error(folder: Path) -> Parse:
    from mldebug_mcp.diagnose.explain_error import explain_error

    del folder

    def parse(data: bytes) -> Signature:
        answer = explain_error(data.decode(errors="surrogateescape"))
        check_answer(answer)
        return tuple(match.id for match in answer.matches)

    return parse


def _knowledge(folder: Path) -> Parse:
    from mldebug_mcp.errors import CatalogueError
    from mldebug_mcp.knowledge.evidence import read_evidence
    from mldebug_mcp.knowledge.menus import read_menus
    from mldebug_mcp.knowledge.playbook import read_causes, read_sections

    records = folder / "evidence"
    records.mkdir()
    page = folder / "PLAYBOOK.md"

    def parse(data: bytes) -> Signature:
        text = data.decode(errors="replace")
        (records / "one.md").write_text(text, encoding="utf-8")
        page.write_text(text, encoding="utf-8")
        outcomes: list[object] = []
        reads: tuple[Callable[[], int], ...] = (
            lambda: len(list(read_evidence(records))),
            lambda: sum(len(read_causes(sections)) for sections in read_sections(page).values()),
            lambda: sum(len(read_menus(sections)) for sections in read_sections(page).values()),
        )
        for read in reads:
            try:
                outcomes.append(read())
            except CatalogueError as error:
                outcomes.append(type(error).__name__)
        return tuple(outcomes)

    return parse


def _probe_result(folder: Path) -> Parse:
    from mldebug_mcp.diagnose.probe import interpret
    from mldebug_mcp.probe.host import read_result

    path = folder / "result.json"

    def parse(data: bytes) -> Signature:
        path.write_bytes(data)
        raw = read_result(path, "python")
        raw.output = data.decode(errors="replace")
        answer = interpret(raw)
        check_answer(answer)
        return answer.verdict, len(answer.findings), len(answer.notes)

    return parse


def _calls(folder: Path) -> Parse:
    """Calls of all tools over the wire; the probe's worker alone is not started."""
    import mldebug_mcp.diagnose.probe
    from mldebug_mcp.probe.host import RawProbe

    async def no_probe(*_: object) -> RawProbe:
        await asyncio.sleep(0)
        return RawProbe()

    vars(mldebug_mcp.diagnose.probe)["run_probe"] = no_probe
    for name, content in (
        ("run.jsonl", seeds.json_lines()[0]),
        ("batch.json", seeds.json_batches()[0]),
        ("config.json", seeds.configurations()[1]),
        ("oom.txt", seeds.MEMORY_TEXTS[0]),
    ):
        (folder / name).write_bytes(content)
    call, known = _client(), {one["name"] for one in seeds.CALLS}

    def parse(data: bytes) -> Signature:
        try:
            asked = json.loads(data.decode(errors="replace").encode(errors="replace"))
            name, arguments = str(asked["name"]), dict(asked["arguments"])
            name = name if name in known else seeds.CALLS[len(data) % len(seeds.CALLS)]["name"]
        except (ValueError, TypeError, KeyError, RecursionError):
            text = data[:4000].decode(errors="replace")
            name, arguments = seeds.CALLS[len(data) % len(seeds.CALLS)]["name"], {}
            arguments = {"path": text, "query": text, "text": text, "id": text, "config": text}
        return call(name, arguments)

    return parse


def _client() -> Callable[[str, dict[str, Any]], Signature]:
    from anyio.from_thread import start_blocking_portal
    from mcp import Client

    from mldebug_mcp.server import make_server

    # The manager has to live as long as what it manages: the portal ends with it.
    manager = start_blocking_portal()
    portal = manager.__enter__()
    client = portal.wrap_async_context_manager(Client(make_server())).__enter__()

    def call(name: str, arguments: dict[str, Any]) -> Signature:
        assert manager
        try:
            answer = portal.call(client.call_tool, name, arguments)
        except UnicodeError:
            return "the client cannot send it"
        told = [part.text for part in answer.content if part.type == "text"]
        for text in told:
            check_text(text[:20_000])
        if answer.is_error and told[0] == f"Error executing tool {name}":
            raise BrokenPromiseError(f"{name}: {told[0][:300]}")
        return name, answer.is_error, told[0][:40] if answer.is_error else len(told[0]) // 1000

    return call


def _names() -> list[bytes]:
    return [json.dumps(call).encode() for call in seeds.CALLS]


def _pages() -> list[bytes]:
    folder = seeds.ROOT
    playbook = (folder / "PLAYBOOK.md").read_bytes()
    records = [path.read_bytes()[:3000] for path in sorted((folder / "evidence").glob("*.md"))[:5]]
    return [playbook[:3000], playbook[40_000:43_000], *records]


def _results() -> list[bytes]:
    measured = {
        "initial_loss": 4.6, "goal": 0.1, "device": "cpu", "targets": "tokens",
        "reference": {"uniform": 4.6, "unigram": 4.0, "least": 0.0, "contradicting_rows": [1]},
        "curve": {"losses": [4.6, 2.0, 0.1], "learning_rate": 0.01},
        "gradients": {"norm": 1.0, "trainable": 10, "none": ["a.weight"], "none_share": 0.5},
        "first_nonfinite": {"op": "exp", "module": "head", "frames": [{"op": "mul"}]},
    }  # fmt: skip
    return [json.dumps({"measured": measured, "stage": "training", "notes": ["a"], "done": True}).encode()]


def _mlflow_points() -> list[bytes]:
    return [b"".join(b"1700000000%03d %.4f %d\n" % (step, 3 / (step + 1), step) for step in range(20))]


TARGETS: tuple[Target, ...] = (
    Target("log: text", 1, seeds.text_logs, _log("train.log")),
    Target("log: JSON lines", 2, seeds.json_lines, _log("train.jsonl")),
    Target("log: JSON", 4, seeds.json_logs, _log("trainer_state.json")),
    Target("log: CSV, TSV, columns", 2, seeds.tables, _log("metrics.csv")),
    Target("log: JSON lines by blocks", 1, seeds.json_lines, _large("train.jsonl")),
    Target("log: CSV by blocks", 1, seeds.tables, _large("metrics.csv")),
    Target("log: TensorBoard", 0.5, seeds.event_payloads, _log("events.out.tfevents.1"), seeds.event_file),
    Target("log: W&B", 2, seeds.wandb_payloads, _log("run.wandb"), seeds.wandb_file),
    Target("log: SQLite", 2, seeds.databases, _log("mlflow.db"), in_place=True),
    Target("log: parquet", 0.01, seeds.parquet_files, _log("history.parquet"), in_place=True),
    Target("log: MLflow folder", 0.5, _mlflow_points, _mlflow),
    Target("log that grows", 0.5, seeds.json_lines, _tail),
    Target("configurations", 2, seeds.configurations, _settings),
    Target("batch: JSON", 4, seeds.json_batches, _batch("batch.json")),
    Target("batch: text", 2, seeds.texts, _batch("batch.jsonl")),
    Target("batch: CSV", 1, seeds.data_tables, _batch("batch.csv")),
    Target("batch: raw token ids", 1, seeds.token_ids, _batch("batch.bin")),
    Target("batch: npy, npz", 2, seeds.arrays, _batch("batch.npz"), seeds.archive, in_place=True),
    Target("batch: safetensors", 4, seeds.safetensors, _batch("batch.safetensors"), in_place=True),
    Target("batch: parquet", 0.5, seeds.parquet_files, _batch("batch.parquet"), in_place=True),
    Target("batch: Arrow", 0.5, seeds.arrow_files, _batch("batch.arrow"), in_place=True),
    Target("batch: torch.save", 0.5, seeds.torch_files, _batch("batch.pt"), in_place=True),
    Target("tokenizer.json", 0.1, seeds.tokenizers, _tokenizer),
    Target("memory snapshot", 2, seeds.snapshots, _memory("snapshot.pickle"), seeds.zipped, in_place=True),
    Target("memory texts", 4, lambda: seeds.MEMORY_TEXTS, _memory("oom.txt")),
    Target("text and numbers", 36, lambda: (*seeds.ERRORS, *seeds.MEMORY_TEXTS), _text),
    Target("lines of text logs", 46, seeds.log_lines, _lines),
    Target("protobuf messages", 20, seeds.messages, _protobuf),
    Target("opcodes of pickles", 20, seeds.snapshots, _opcodes, in_place=True),
    Target("error text", 4, lambda: seeds.ERRORS, _error),
    Target("knowledge pages", 0.5, _pages, _knowledge),
    Target("probe result", 1, _results, _probe_result),
    Target("MCP calls", 0.3, _names, _calls),
)


def by_name(name: str) -> Target:
    """Return the target of a name."""
    return next(target for target in TARGETS if target.name == name)


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in a folder, so that relative paths mean files there."""
    import os

    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
