"""Check that no input in the repository harms the outside library that reads its format.

    python -m benchmarks.harmless [FOLDER ...]

Each file below `FOLDERS`, and each input that the code of tests and benchmarks makes, goes to the bare library. That
runs in a child process with 2 s of processor time and 512 MiB of memory. An answer and a raised error are harmless. A
crash, a panic, and the end of time or memory are not: then the exit code is 1. With folders, only their files are
checked: the temporary folders of a test run (`pytest --basetemp FOLDER`) hold the inputs that tests write themselves.
"""

# ruff: noqa: E402 - libraries read variables of the environment when they are imported

from __future__ import annotations

import ast
import bz2
import configparser
import csv
import faulthandler
import gc
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from html.parser import HTMLParser
from itertools import chain, islice
from pathlib import Path
from typing import NoReturn

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
FOLDERS = ("tests", "benchmarks", "docs", "examples", "evidence", "references")
"""Where the repository holds files that an outside parser may read."""
CPU_SECONDS = 2
WALL_SECONDS = 120
MEMORY_BYTES = 512 * 1024 * 1024
TOGETHER = 20
"""Inputs that are read in one process first."""
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


def _json_lines(data: bytes) -> None:
    _json(data)
    pl.read_ndjson(data)


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
    reader(data).read_all().to_pylist()


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
    environment.from_string(source).render(messages=CHAT, tools=None)


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
    **dict.fromkeys((".json", ".ipynb"), _json),
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
    ".jsonl": _json_lines,
    ".md": lambda data: MarkdownIt("commonmark").enable("table").render(data.decode()),
    ".npz": _arrays,
    ".safetensors": safetensors.numpy.load,
    ".py": lambda data: ast.parse(data.decode()),
    ".sh": lambda data: shlex.split(data.decode()),
    ".toml": lambda data: tomlkit.parse(data.decode()),
    ".xz": _compressed(lzma.decompress),
    ".zip": _archive,
}


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
    return _harm([(name, data)])


def _harm(inputs: Sequence[tuple[str, bytes]]) -> str:
    """Return what inputs together do to the libraries that read them."""
    child = os.fork()
    if child == 0:
        _read_within_limits(inputs)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        ended = signal.Signals(os.WTERMSIG(status))
        late = ended in (signal.SIGXCPU, signal.SIGKILL, signal.SIGALRM)
        return "more than its time" if late else f"a crash ({ended.name})"
    return {0: "", OUT_OF_MEMORY: "more than its memory", PANIC: "a panic"}.get(os.WEXITSTATUS(status), "an exit")


def _read_within_limits(inputs: Sequence[tuple[str, bytes]]) -> NoReturn:
    """Read inputs and end this process with the code that says what came of it."""
    faulthandler.disable()
    gc.freeze()  # what was imported is not looked through again and again
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    claimed = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    signal.alarm(WALL_SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (claimed + MEMORY_BYTES,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
    for name, data in inputs:
        if (reader := reader_of(name, data)) is not None and (code := _code_of(reader, data)):
            os._exit(code)
    os._exit(0)


def _code_of(reader: Reader, data: bytes) -> int:
    try:
        reader(data)
    except MemoryError:
        return OUT_OF_MEMORY
    except BaseException as error:  # noqa: BLE001 - any other raised error is harmless
        text = f"{type(error).__name__} {error}".lower()
        return PANIC if "panic" in text else OUT_OF_MEMORY if "alloc" in text and "failed" in text else 0
    return 0


def harms(inputs: Sequence[tuple[str, bytes]]) -> dict[str, str]:
    """Return what the harmful ones of some inputs do; each is read in a process of its own if all in one fail."""
    return {name: what for name, data in inputs if (what := harm(name, data))} if _harm(inputs) else {}


def kept_files(folders: Iterable[Path]) -> Iterator[tuple[str, bytes]]:
    """Yield the files below some folders with their names."""
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts:
                yield str(path.relative_to(folder.parent)), path.read_bytes()


def made_inputs() -> Iterator[tuple[str, bytes]]:
    """Yield the inputs that the code of tests and benchmarks makes: where each comes from with a file name, and it."""
    from tests.hostile.files import FILES
    from tests.hostile.new_kinds import KINDS
    from tests.hostile.yaml_texts import TEXTS
    from tests.memory.test_hostile import CALLING, CLAIMING

    from benchmarks.fuzz import corpus
    from benchmarks.fuzz.targets import TARGETS

    yield from ((f"YAML: {name}/args.yaml", text.encode()) for name, text in TEXTS.items())
    yield from ((f"pickle: {name}/hostile.pickle", data) for name, data in (CALLING | CLAIMING).items())
    for name, make in (KINDS | {name: make for name, (_, make) in FILES.items()}).items():
        with tempfile.TemporaryDirectory() as place:
            make(Path(place))
            for file, data in kept_files([Path(place)]):
                yield f"hostile: {name}/{file}", data
    for target in TARGETS:
        for number, data in enumerate((*target.seeds(), *corpus.kept(target.name))):
            yield f"fuzz: {target.name} {number}/{target.file}", target.made(data)


def main() -> int:
    """Print what was checked and what is harmful, and return 1 if anything is."""
    folders = [Path(name).resolve() for name in sys.argv[1:]]
    own = (one for one in kept_files(ROOT / name for name in FOLDERS) if not one[0].endswith(".py"))
    found = kept_files(folders) if folders else chain(own, made_inputs())
    inputs = (one for one in found if reader_of(*one) is not None)
    checked, harmful = Counter[str](), dict[str, str]()
    while together := list(islice(inputs, TOGETHER)):
        checked.update(Path(name).suffix or "none" for name, _ in together)
        harmful |= harms(together)
    print("| suffix | inputs |\n| --- | ---: |")
    for suffix, count in checked.most_common():
        print(f"| {suffix} | {count} |")
    print(f"| all | {checked.total()} |\n\n{len(harmful)} harmful")
    for name, what in harmful.items():
        print(f"{name}: {what}")
    return int(bool(harmful))


if __name__ == "__main__":
    sys.exit(main())
