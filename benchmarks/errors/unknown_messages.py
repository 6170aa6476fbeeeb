"""List the messages that released packages raise and that no entry knows.

    pip download --no-deps --dest wheels trl==1.16.0 accelerate==1.15.0
    pip download --no-deps --only-binary :all: --dest wheels vllm==0.33.0
    FLASH_ATTENTION_SKIP_CUDA_BUILD=TRUE pip download --no-deps --no-binary :all: --dest wheels flash-attn==2.8.3.post2
    python -m benchmarks.errors.unknown_messages wheels/* --top 100

The sources are parsed, never imported. A message is a `raise` statement's text, with `x` for each value in it, or that
of a TORCH_CHECK in C++. Messages that users meet come first: those of the modules that read settings, data and
checkpoints.
"""

from __future__ import annotations

import argparse
import ast
import re
import tarfile
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mldebug_mcp.knowledge.errors import match

PLACEHOLDER = "x"
MIN_WORDS = 4
"""Words of a message that can be told apart from any other."""
USER_FACING = re.compile(
    r"train|config|argument|args|load|data|collat|checkpoint|token|template|quant|accelerator|launch|peft|adapter|engine"
)
"""Modules in which users' settings, data and files are checked."""
NOT_FOR_USERS = re.compile(
    r"(?:^|/)(?:tests?|testing|examples?|docs?|benchmarks?|scripts|_vendor|thirdparty\w*)/|_test\.py$|"
    r"/csrc/(?:cutlass|composable_kernel)/"
)
CPP = (".cpp", ".cu", ".h", ".hpp", ".cuh")
CPP_CHECK = re.compile(r"TORCH_CHECK(?:_\w{1,20})?\((?P<condition>[^;\"]{1,400}?),\s*(?P<text>\"(?:[^\"\\]|\\.)*\")")
"""A check of PyTorch's extensions in C++, with the first piece of its message."""
NOT_AN_ERROR = {"NotImplementedError", "StopIteration", "KeyboardInterrupt", "SystemExit"}


@dataclass(frozen=True, slots=True, order=True)
class Raised:
    """A message that a package raises; the order is the order of the list."""

    rank: int
    package: str
    place: str
    exception: str
    text: str


def sources(archive: Path) -> Iterator[tuple[str, str]]:
    """Yield name and text of each module in Python or C++ of a wheel or source distribution."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for name in wheel.namelist():
                if name.endswith((".py", *CPP)):
                    yield name, wheel.read(name).decode("utf-8", "replace")
        return
    with tarfile.open(archive) as distribution:
        for member in distribution:
            file = distribution.extractfile(member) if member.name.endswith((".py", *CPP)) else None
            if file is not None:
                yield member.name, file.read().decode("utf-8", "replace")


def message_text(node: ast.expr) -> str:
    """Return the text of an expression, with a placeholder for what is only known when it runs."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(map(message_text, parts))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return message_text(left) + message_text(right)
        case ast.BinOp(left=left, op=ast.Mod()):
            return re.sub(r"%[sdrf]", PLACEHOLDER, message_text(left))
        case ast.Call(func=ast.Attribute(value=text, attr="format")):
            return re.sub(r"\{[^{}]*\}", PLACEHOLDER, message_text(text))
    return PLACEHOLDER


def raised(archive: Path) -> Iterator[Raised]:
    """Yield the messages that the modules of an archive raise."""
    package = archive.name.partition("-")[0]
    for name, source in sources(archive):
        if NOT_FOR_USERS.search(name):
            continue
        if name.endswith(CPP):
            yield from checked(package, name, source)
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)
                tree = ast.parse(source)
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                exception = ast.unparse(node.exc.func).rpartition(".")[2]
                text = " ".join(message_text(node.exc.args[0]).split())
                if exception not in NOT_AN_ERROR and len(re.findall(r"[A-Za-z_]{2,}", text)) >= MIN_WORDS:
                    rank = 0 if USER_FACING.search(name) else 1
                    yield Raised(rank, package, f"{name}:{node.lineno}", exception, text)


def checked(package: str, name: str, source: str) -> Iterator[Raised]:
    """Yield the messages of the checks of a module in C++, which Python sees as a RuntimeError."""
    for check in CPP_CHECK.finditer(source):
        text = " ".join(check["text"].strip('"').split())
        if len(re.findall(r"[A-Za-z_]{2,}", text)) >= MIN_WORDS:
            line = source.count("\n", 0, check.start()) + 1
            yield Raised(0, package, f"{name}:{line}", "RuntimeError", text)


def unknown(archives: list[Path]) -> list[Raised]:
    """Return the messages that no entry knows, each once, in the order of their rank."""
    found: dict[tuple[str, str], Raised] = {}
    for archive in archives:
        for message in raised(archive):
            if not match(f"{message.exception}: {message.text}", warnings=True):
                found.setdefault((message.package, message.text), message)
    return sorted(found.values())


def main() -> None:
    """Print the list."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("archives", type=Path, nargs="+", help="wheels or source distributions")
    parser.add_argument("--top", type=int, default=200, help="messages of each package (default: 200)")
    options = parser.parse_args()
    listed: dict[str, int] = {}
    for message in unknown(options.archives):
        listed[message.package] = listed.get(message.package, 0) + 1
        if listed[message.package] <= options.top:
            print(f"{message.package}\t{message.place}\t{message.exception}: {message.text[:300]}")
    for package, count in sorted(listed.items()):
        print(f"# {package}: {count} messages unknown")


if __name__ == "__main__":
    main()
