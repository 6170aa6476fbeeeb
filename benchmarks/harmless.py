"""Check that no input in the tests and benchmarks harms the outside library that reads its format.

    python -m benchmarks.harmless [FOLDER ...]

Each file below `tests` and `benchmarks`, and each input that their code makes, goes to the bare library in a child
process that may use 2 s of processor time and 512 MiB of memory. An answer and a raised error are harmless. A crash, a
panic, and the end of time or memory are not: then the exit code is 1. With folders, only their files are checked: the
temporary folders of a test run (`pytest --basetemp FOLDER`) hold the inputs that tests write themselves.
"""

from __future__ import annotations

import ast
import bz2
import configparser
import csv
import gzip
import io
import json
import lzma
import os
import pickle
import resource
import shlex
import signal
import sqlite3
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path

for _pool in ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ.setdefault(_pool, "1")  # each thread claims address space
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import safetensors.numpy
import tokenizers
import tomlkit
import torch
import yaml
from backports import zstd
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[1]
CPU_SECONDS = 2
WALL_SECONDS = 120
MEMORY_BYTES = 512 * 1024 * 1024
OUT_OF_MEMORY, PANIC = 3, 4
"""Exit codes of a child."""
CHAT = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
Reader = Callable[[bytes], object]


def _json(data: bytes) -> None:
    lines = data.splitlines()
    for text in (data, *lines) if len(lines) > 1 else (data,):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        for output in _html_in(value):
            HTMLParser().feed(output)


def _html_in(notebook: object) -> Iterator[str]:
    """Yield the HTML that cells of a notebook print."""
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    for cell in cells if isinstance(cells, list) else ():
        for output in cell.get("outputs") or () if isinstance(cell, dict) else ():
            if isinstance(output, dict) and isinstance(output.get("data"), dict):
                yield str(output["data"].get("text/html"))


def _yaml(data: bytes) -> None:
    for loader in (yaml.CSafeLoader, yaml.SafeLoader):
        yaml.load(data, loader)  # noqa: S506 - both are safe loaders


def _table(data: bytes) -> None:
    for _ in csv.reader(io.StringIO(data.decode(errors="replace"))):
        pass
    pl.read_csv(data, ignore_errors=True)


def _arrays(data: bytes) -> None:
    loaded = np.load(io.BytesIO(data))
    for name in getattr(loaded, "files", ()):
        loaded[name]


def _arrow(data: bytes) -> None:
    reader = pa.ipc.open_file if data.startswith(b"ARROW1") else pa.ipc.open_stream
    reader(data).read_all().validate(full=True)


def _parquet(data: bytes) -> None:
    pl.read_parquet(io.BytesIO(data))
    pq.read_table(io.BytesIO(data))


def _archive(data: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.infolist():
            content = archive.read(member)
            if (reader := reader_of(member.filename, content)) is not None:
                reader(content)


def _torch(data: bytes) -> None:
    torch.load(io.BytesIO(data), weights_only=True)


def _database(data: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file, closing(sqlite3.connect(file.name)) as database:
        Path(file.name).write_bytes(data)
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall():
            for _ in database.execute(f'SELECT * FROM "{name}"'):  # noqa: S608 - of the database itself
                pass


def _template(data: bytes) -> None:
    environment = ImmutableSandboxedEnvironment(extensions=[loopcontrols])
    environment.globals |= {"raise_exception": ValueError, "strftime_now": str}
    source = data.decode(errors="replace").replace("endgeneration", "endset").replace("generation", "set _said")
    environment.from_string(source).render(messages=CHAT, bos_token="<s>", eos_token="</s>", tools=None)


def _tokenizer(data: bytes) -> None:
    tokenizers.Tokenizer.from_buffer(data).encode("many words " * 100)


def _compressed(unpack: Reader) -> Reader:
    def read(data: bytes) -> None:
        content = unpack(data)
        assert isinstance(content, bytes)
        if (reader := reader_of("", content)) is not None:
            reader(content)

    return read


BY_BEGINNING: Mapping[bytes, Reader] = {
    b"\x1f\x8b\x08": _compressed(gzip.decompress),
    b"BZh": _compressed(bz2.decompress),
    b"\xfd7zXZ\0": _compressed(lzma.decompress),
    b"\x28\xb5\x2f\xfd": _compressed(zstd.decompress),
    b"SQLite format 3\0": _database,
    b"\x93NUMPY": _arrays,
    b"PAR1": _parquet,
    b"ARROW1": _arrow,
    **{bytes([0x80, protocol]): pickle.loads for protocol in range(2, 6)},
}
BY_SUFFIX: Mapping[str, Reader] = {
    **dict.fromkeys((".json", ".jsonl", ".ipynb"), _json),
    **dict.fromkeys((".yaml", ".yml"), _yaml),
    **dict.fromkeys((".csv", ".tsv"), _table),
    **dict.fromkeys((".pt", ".pth"), _torch),
    **dict.fromkeys((".pickle", ".pkl"), pickle.loads),
    ".arrow": _arrow,
    ".bin": _torch,
    ".db": _database,
    ".html": lambda data: HTMLParser().feed(data.decode()),
    ".ini": lambda data: configparser.ConfigParser().read_string(data.decode()),
    ".jinja": _template,
    ".md": lambda data: MarkdownIt("commonmark").enable("table").render(data.decode()),
    ".npz": _arrays,
    ".safetensors": safetensors.numpy.load,
    ".settings.py": lambda data: ast.parse(data.decode()),
    ".sh": lambda data: shlex.split(data.decode()),
    ".toml": lambda data: tomlkit.parse(data.decode()),
    ".xz": _compressed(lzma.decompress),
    ".zip": _archive,
}
"""A script of Python is an input only where a generator writes it."""


def reader_of(name: str, data: bytes) -> Reader | None:
    """Return the outside parser of a file; None for what this project parses itself."""
    if Path(name).name == "tokenizer.json":
        return _tokenizer
    for beginning, reader in BY_BEGINNING.items():
        if data.startswith(beginning):
            return reader
    suffix = next((suffix for suffix in BY_SUFFIX if name.endswith(suffix)), "")
    return BY_SUFFIX.get(suffix, _archive if data.startswith(b"PK\x03\x04") else None)


def harm(name: str, data: bytes) -> str:
    """Return what an input does to the bare library that reads its format; "" if it answers or raises an error.

    Args:
        name: The name of the file, whose suffix says the format where its beginning does not.
        data: What is in it.
    """
    reader = reader_of(name, data)
    if reader is None:
        return ""
    child = os.fork()
    if child == 0:
        _read_within_limits(reader, data)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        ended = signal.Signals(os.WTERMSIG(status))
        late = ended in (signal.SIGXCPU, signal.SIGKILL, signal.SIGALRM)
        return "more than its time" if late else f"a crash ({ended.name})"
    return {0: "", OUT_OF_MEMORY: "more than its memory", PANIC: "a panic"}.get(os.WEXITSTATUS(status), "an exit")


def _read_within_limits(reader: Reader, data: bytes) -> None:
    """Read an input and end this process with the code that says what came of it."""
    code = 0
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (1, 2):
            os.dup2(nowhere, descriptor)
        signal.alarm(WALL_SECONDS)
        claimed = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (claimed + MEMORY_BYTES,) * 2)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
        reader(data)
    except MemoryError:
        code = OUT_OF_MEMORY
    except BaseException as error:  # noqa: BLE001 - any raised error is harmless
        text = f"{type(error).__name__} {error}".lower()
        code = PANIC if "panic" in text else OUT_OF_MEMORY if "alloc" in text and "failed" in text else 0
    os._exit(code)


def kept_files(folders: Iterable[Path]) -> Iterator[tuple[str, bytes]]:
    """Yield the files below some folders with their names."""
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts:
                yield str(path.relative_to(folder.parent)), path.read_bytes()


def made_inputs() -> Iterator[tuple[str, bytes]]:
    """Yield the inputs that the code of tests and benchmarks makes, each with where it comes from and its file name."""
    from tests.hostile.files import BATCHES, LOGS, SNAPSHOTS
    from tests.hostile.new_kinds import KINDS
    from tests.hostile.yaml_texts import TEXTS
    from tests.memory.test_hostile import EXECUTING, EXHAUSTING

    from benchmarks.fuzz import corpus
    from benchmarks.fuzz.targets import TARGETS
    from benchmarks.fuzz.verbs import Verb

    yield from ((f"yaml_texts: {name}/args.yaml", text.encode()) for name, text in TEXTS.items())
    for name, data in (EXECUTING | EXHAUSTING).items():
        yield f"memory/test_hostile: {name}/hostile.pickle", data
    for name, make in (BATCHES | LOGS | SNAPSHOTS | KINDS).items():
        with tempfile.TemporaryDirectory() as place:
            make(Path(place))
            for file, data in kept_files([Path(place)]):
                yield f"hostile: {name}/{file}".replace(".py", ".settings.py"), data
    for target in TARGETS:
        file = target.open.file if isinstance(target.open, Verb) else ""
        for number, seed in enumerate((*target.seeds(), *corpus.read(corpus.archive_of(target.name)))):
            data = target.wrap(seed) if target.wrap is not None else seed
            yield f"fuzz: {target.name} {number}/{file}".replace(".py", ".settings.py"), data


def main() -> int:
    """Print what was checked and what is harmful, and return 1 if anything is."""
    folders = [Path(name).resolve() for name in sys.argv[1:]]
    inputs = kept_files(folders) if folders else (*kept_files([ROOT / "tests", ROOT / "benchmarks"]), *made_inputs())
    checked, harmful = Counter[str](), dict[str, str]()
    for name, data in inputs:
        if reader_of(name, data) is None:
            continue
        checked["".join(Path(name).suffixes[-1:]) or "none"] += 1
        if what := harm(name, data):
            harmful[name] = what
            print(f"{name}: {what}", flush=True)
    print("\n| suffix | inputs |\n| --- | ---: |")
    for suffix, count in checked.most_common():
        print(f"| {suffix} | {count} |")
    print(f"| all | {checked.total()} |\n\n{len(harmful)} harmful")
    return int(bool(harmful))


if __name__ == "__main__":
    sys.exit(main())
