"""The parsers below the verbs: functions that all input of a kind goes through, faster fuzzed by themselves."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.fuzz import seeds
from benchmarks.fuzz.oracle import BrokenPromiseError, check_answer, check_text
from benchmarks.fuzz.verbs import Parse, Signature


def mlflow(folder: Path) -> Parse:
    """Points and settings of an MLflow folder."""
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


def settings(folder: Path) -> Parse:
    """A configuration, through every reader of one."""
    from mldebug_mcp.batch.batch import read_model_config
    from mldebug_mcp.core.errors import MLDebugError
    from mldebug_mcp.logs.settings.files import read_settings
    from mldebug_mcp.memory.estimate import estimate_memory
    from mldebug_mcp.probe.host import read_config as read_probe_config

    training, model = (folder / "args.yaml", folder / "args.json"), folder / "config.json"

    def parse(data: bytes) -> Signature:
        for path in (*training, model):
            path.write_bytes(data)
        outcomes: list[object] = []
        reads: tuple[Callable[[], object], ...] = (
            *(lambda path=path: len(read_settings(path)) for path in training),
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


def cleaned(folder: Path) -> Parse:
    """The functions that all text from outside goes through."""
    from mldebug_mcp.core.text import clean, shorten
    from mldebug_mcp.logs.names.metrics import canonical
    from mldebug_mcp.logs.numbers import parse_number

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


def lines(folder: Path) -> Parse:
    """The readers of a line of a text log, each by itself."""
    from mldebug_mcp.logs.line_prefixes import without_prefix
    from mldebug_mcp.logs.text.counters import bar_in, find_counters
    from mldebug_mcp.logs.text.pairs import pairs_in
    from mldebug_mcp.logs.text.parsed_line import dict_in

    del folder

    def parse(data: bytes) -> Signature:
        line = without_prefix(data[:1000].decode(errors="replace")).message
        found = find_counters(line)
        pairs = pairs_in(found.rest)
        return bar_in(line) is None, dict_in(line) is None, tuple(found.values), min(len(pairs), 4)

    return parse


def protobuf(folder: Path) -> Parse:
    """Messages of Protocol Buffers, as event files and W&B's hold them."""
    from mldebug_mcp.core import protobuf

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


def opcodes(folder: Path) -> Parse:
    """The scan of a pickle before it is loaded, and the loading of what passes."""
    from mldebug_mcp.memory.read import scan

    del folder

    def parse(data: bytes) -> Signature:
        return scan(io.BytesIO(data), len(data), "pickle")[0] // 100

    return parse


def knowledge(folder: Path) -> Parse:
    """Pages of the playbook and records of evidence."""
    from mldebug_mcp.core.errors import CatalogueError
    from mldebug_mcp.knowledge.playbook import read_causes, read_evidence, read_menus, read_sections

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
            lambda: sum(len(read_causes(sections)) for sections in read_sections(folder).values()),
            lambda: sum(len(read_menus(sections)) for sections in read_sections(folder).values()),
        )
        for read in reads:
            try:
                outcomes.append(read())
            except CatalogueError as error:
                outcomes.append(type(error).__name__)
        return tuple(outcomes)

    return parse


def probe_result(folder: Path) -> Parse:
    """What the worker of a probe leaves."""
    from mldebug_mcp.judge.probe import interpret
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


def calls(folder: Path) -> Parse:
    """Calls of all tools over the wire; the probe's worker alone is not started."""
    import mldebug_mcp.judge.probe
    from mldebug_mcp.probe.host import RawProbe

    async def no_probe(*_: object) -> RawProbe:
        await asyncio.sleep(0)
        return RawProbe()

    vars(mldebug_mcp.judge.probe)["run_probe"] = no_probe
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


def names() -> list[bytes]:
    """Return a good call of each tool."""
    return [json.dumps(call).encode() for call in seeds.CALLS]


def pages() -> list[bytes]:
    """Return parts of the playbook and of records."""
    folder = seeds.ROOT
    playbook = (folder / "PLAYBOOK.md").read_bytes()
    records = [path.read_bytes()[:3000] for path in sorted((folder / "evidence").glob("*.md"))[:5]]
    return [playbook[:3000], playbook[40_000:43_000], *records]


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
