"""Every regular expression of the product on strings made to trap it.

    python -m benchmarks.fuzz.patterns [--seconds 0.5]

All patterns that the modules compile are collected while they are imported. Each is searched for in strings that repeat
what its own parts match, and what they nearly match; one that takes longer than that many seconds of processor time on
64 KiB is quadratic or worse there. That alone is no fault: most are given lines or names of bounded length. So what is
slow is then written into a log, its names, a configuration and an error message of a mebibyte, and verbs are timed.

A string is tried at a KiB first. Each longer one is tried only if what it takes so far does not tell that the whole is
quick, should it grow as the square of the length.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import TYPE_CHECKING, TypeVar

from benchmarks.fuzz.promises import SECONDS, Cost, TooLargeError, TooSlowError, metered, stopped_after

if TYPE_CHECKING:
    from benchmarks.fuzz.verbs import Parse

LENGTH = 64 * 1024
LENGTHS = (LENGTH // 64, LENGTH // 16, LENGTH // 4, LENGTH)
SLOW_UNITS = 3
"""Of one pattern: others that it is slow on most likely make the same verbs slow."""
TOLD_EVERY = 2.0
"""Seconds between two lines of progress."""
T = TypeVar("T")
PLAIN = (
    " ", "\n", "\t", "a", "1", ".", "-", "_", "/", "[", "(", "'", '"', "\\", ":", "=", "a ", "1 ", "a\n", "a.", "1.",
    "a=", "a:1,", "a_1", "<a", "[a", "'a", "\\'", "--a ", "1e", "1/", " |", "| ", "\x1b[", "#", "{'a'", "Aa",
)  # fmt: skip


def main() -> int:
    """Print the slow pairs of pattern and string, and the verbs that they make slow."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.5)
    limit = parser.parse_args().seconds
    found = collected()
    slow = slow_units(found, limit)
    patterns = {pattern for those in slow.values() for pattern in those}
    print(f"{len(found)} patterns; {len(patterns)} slow on 64 KiB of something, of {len(slow)} texts")
    for unit, those in slow.items():
        print(f"  {unit!r}:")
        for pattern, seconds in those.items():
            print(f"    {found[pattern]} {pattern.pattern[:80]!r} {seconds:.1f} s")
    sys.stdout.flush()
    broken = False
    for trap in traps(list(slow)):
        broken = True
        print(trap, flush=True)
    if not broken:
        print(f"no verb takes {SECONDS:g} s on a mebibyte of any of them")
    return int(broken)


def slow_units(found: dict[re.Pattern[str], str], limit: float) -> dict[str, dict[re.Pattern[str], float]]:
    """Return the texts that patterns are slow on, with those patterns and the seconds that each would take at least."""
    slow: dict[str, dict[re.Pattern[str], float]] = {}
    for pattern in watched(list(found), "patterns"):
        left = SLOW_UNITS
        for unit in dict.fromkeys(map(root, (*units(pattern), *PLAIN))):
            seconds = timed(pattern, unit, limit)
            if seconds > limit:
                slow.setdefault(unit, {})[pattern] = seconds
                left -= 1
            if not left:
                break
    return slow


def watched(things: Sequence[T], what: str) -> Iterator[T]:
    """Yield the things, and tell on standard error how far it is."""
    last = time.monotonic()
    for number, thing in enumerate(things, 1):
        if time.monotonic() - last > TOLD_EVERY:
            last = time.monotonic()
            print(f"{what}: {number} of {len(things)}, {time.process_time():.0f} CPU s", file=sys.stderr)
        yield thing


def root(unit: str) -> str:
    """Return the shortest text that gives a unit when it is repeated: one text for all units that make the same."""
    period = (unit + unit).find(unit, 1)
    return unit[:period] if len(unit) % period == 0 else unit


def collected() -> dict[re.Pattern[str], str]:
    """Return the patterns that the product compiles when it is imported, with the module that does."""
    found: dict[re.Pattern[str], str] = {}
    compile_ = re.compile

    def recorded(pattern: str | re.Pattern[str], flags: int = 0) -> re.Pattern[str]:
        made = compile_(pattern, flags)
        module = sys._getframe(1).f_globals.get("__name__", "")
        if module.startswith("mldebug_mcp") and isinstance(made.pattern, str):
            found.setdefault(made, module)
        return made

    re.compile = recorded  # type: ignore[assignment]
    try:
        import mldebug_mcp

        for one in pkgutil.walk_packages(mldebug_mcp.__path__, "mldebug_mcp."):
            if not one.name.endswith("__main__"):
                with suppress(ImportError):
                    importlib.import_module(one.name)
        from mldebug_mcp.knowledge import catalogue

        catalogue()
    finally:
        re.compile = compile_
    return found


def units(pattern: re.Pattern[str]) -> list[str]:
    """Return texts that parts of a pattern match: each part alone, and each behind those before it."""
    made = list(_examples(_parser.parse(pattern.pattern, pattern.flags)))
    return [one for one in dict.fromkeys(made) if one and len(one) < 200]


def _examples(parts: Iterable[tuple[object, object]]) -> Iterator[str]:
    before = ""
    for part in parts:
        one = _example(part)
        yield from (one, one + " ", before + one, before + one + " ")
        for inner in _inner(part):
            yield from _examples(inner)
        before += one


def _inner(part: tuple[object, object]) -> list[Iterable[tuple[object, object]]]:
    name, value = part
    if name in (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT):
        return [value[2]]  # type: ignore[index]
    if name is _constants.SUBPATTERN:
        return [value[3]]  # type: ignore[index]
    if name is _constants.BRANCH:
        return list(value[1])  # type: ignore[index]
    return []


def _example(part: tuple[object, object]) -> str:  # noqa: PLR0911 - one for each kind of part
    """Return a short text that a part of a pattern matches."""
    name, value = part
    if name is _constants.LITERAL:
        return chr(value)  # type: ignore[arg-type]
    if name is _constants.IN:
        return _of_a_class(value)  # type: ignore[arg-type]
    if name in (_constants.ANY, _constants.NOT_LITERAL):
        return "a"
    if name in (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT):
        repeated: str = "".join(map(_example, value[2])) * max(1, value[0])  # type: ignore[index]
        return repeated
    if name is _constants.SUBPATTERN:
        return "".join(map(_example, value[3]))  # type: ignore[index]
    if name is _constants.BRANCH:
        return "".join(map(_example, value[1][0]))  # type: ignore[index]
    return ""


def _of_a_class(parts: list[tuple[object, object]]) -> str:
    known = {_constants.CATEGORY_DIGIT: "1", _constants.CATEGORY_SPACE: " ", _constants.CATEGORY_WORD: "a"}
    for name, value in parts:
        if name is _constants.LITERAL:
            return chr(value)  # type: ignore[arg-type]
        if name is _constants.RANGE:
            return chr(value[0])  # type: ignore[index]
        if name is _constants.CATEGORY:
            return str(known.get(value, "a"))
    return "a"


def timed(pattern: re.Pattern[str], unit: str, limit: float) -> float:
    """Return the seconds that a pattern takes to be found in, and at the start of, 64 KiB of a text and its end.

    Where a shorter text tells that it is quick, they are what follows from that. The clock on the wall tells it, as
    that of processor time may stand still for milliseconds; where other work holds it up, a longer text is tried.
    """
    for length in LENGTHS:
        text = unit * (length // len(unit)) + "\0"
        started, on_the_wall = time.process_time(), time.perf_counter()
        try:
            with stopped_after(limit):
                for _ in pattern.finditer(text):
                    pass
                pattern.match(text)
        except TooSlowError:
            return max(limit * 1.01, time.process_time() - started)
        square = (time.perf_counter() - on_the_wall) * (LENGTH // length) ** 2
        if square < limit / 8:
            return square
    return time.process_time() - started


def traps(texts: Sequence[str]) -> Iterator[str]:
    """Yield where whole verbs take too long on a mebibyte of a text: in lines of each length, and in metrics' names."""
    from benchmarks.fuzz.verbs import CRASHED, ERROR, configured, diagnosed

    verbs = [
        diagnosed("train.log"),
        configured("args.txt"),
        configured("args.ini"),
        configured("args.toml"),
        ERROR,
        CRASHED,
    ]
    records = diagnosed("train.jsonl")
    with tempfile.TemporaryDirectory() as place:
        opened = [(verb, verb(Path(place))) for verb in (*verbs, records)]
        for text in watched(texts, "texts in verbs"):
            lines, names = in_lines(text), {"names": in_names(text)}
            for verb, parse in opened:
                for shape, data in (names if verb is records else lines).items():
                    broken = promise_broken(parse, data)
                    if broken:
                        yield f"{text!r} as {shape} in {verb.call} {verb.file}: {broken}"


def in_lines(text: str) -> dict[str, bytes]:
    """Return a mebibyte of a text in lines of a KiB, of 64 KiB and in one, by what they are called."""
    head = b'step 1 loss 2.5\nlr: 0.1\n{"step": 2, "loss": 2.0}\n'
    short, long = ((text * (size // len(text))).encode(errors="replace") for size in (1024, LENGTH))
    shapes = {"short lines": (short + b"\n") * 1024, "long lines": (long + b"\n") * 16, "one line": long * 16}
    return {shape: head + data for shape, data in shapes.items()}


def in_names(text: str) -> bytes:
    """Return records of metrics whose names repeat a text: 16 of 64 KiB and as many of a KiB."""
    names = [f"{text * (size // len(text))}{number}" for size in (1024, LENGTH) for number in range(16)]
    records = [{"step": step, "loss": 2.5, name: 1.5} for step, name in enumerate(names, 1)]
    return "".join(f"{json.dumps(one)}\n" for one in records).encode()


def promise_broken(parse: Parse, data: bytes) -> str:
    """Return how a verb breaks its promise on an input; "" where it answers or refuses within its limits."""
    from mldebug_mcp.core.errors import MLDebugError

    try:
        with suppress(MLDebugError), metered(Cost()):
            parse(data)
    except (TooSlowError, TooLargeError, Exception) as error:  # noqa: BLE001 - what is looked for
        return f"{type(error).__name__} {error}"
    return ""


if __name__ == "__main__":
    sys.exit(main())
