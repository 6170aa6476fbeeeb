"""Every regular expression of the product on strings made to trap it.

    python -m benchmarks.fuzz.patterns [--seconds 0.5]

All patterns that the modules compile are collected while they are imported. Each is searched for in strings of 64 KiB
that repeat what its own parts match, and what they nearly match; one that takes longer than that many seconds of
processor time is quadratic or worse there. That alone is no fault: most are given lines or names of bounded length. So
every string that is slow is then written into a log, a configuration and an error message, and the whole verbs are
timed.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from re import _constants, _parser  # type: ignore[attr-defined]

from benchmarks.fuzz.meter import SECONDS, Cost, TooLargeError, TooSlowError, metered

LENGTH = 64 * 1024
SHORT = LENGTH // 16
"""A first look: what takes long on this needs no second."""
PLAIN = (
    " ",
    "\n",
    "\t",
    "a",
    "1",
    ".",
    "-",
    "_",
    "/",
    "[",
    "(",
    "'",
    '"',
    "\\",
    ":",
    "=",
    "a ",
    "1 ",
    "a\n",
    "a.",
    "1.",
    "a=",
    "a:1,",
    "a_1",
    "<a",
    "[a",
    "'a",
    "\\'",
    "--a ",
    "1e",
    "1/",
    " |",
    "| ",
    "\x1b[",
    "#",
    "{'a'",
    "Aa",
)


def main() -> int:
    """Print the slow pairs of pattern and string, and the verbs that they make slow."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.5)
    limit = parser.parse_args().seconds
    found = collected()
    slow: dict[str, list[str]] = {}
    for pattern, place in found.items():
        for unit in dict.fromkeys((*units(pattern), *PLAIN)):
            seconds = timed(pattern, unit)
            if seconds > limit:
                slow.setdefault(unit, []).append(f"{place} {pattern.pattern[:80]!r} {seconds:.1f} s")
                break
    print(f"{len(found)} patterns; {sum(map(len, slow.values()))} slow on 64 KiB of something")
    for unit, told in slow.items():
        print(f"  {unit!r}:", *told, sep="\n    ")
    broken = list(traps(slow))
    print("\n".join(broken) or f"no verb takes {SECONDS:g} s on a mebibyte of any of them")
    return int(bool(broken))


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
        yield from (one, one + " ", before + one)
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


def timed(pattern: re.Pattern[str], unit: str) -> float:
    """Return the seconds that a pattern takes to be found in, and at the start of, 64 KiB of a text and its end."""
    seconds = 0.0
    for length in (SHORT, LENGTH):
        text = unit * (length // len(unit)) + "\0"
        started = time.process_time()
        for _ in pattern.finditer(text):
            pass
        pattern.match(text)
        seconds = time.process_time() - started
        if length == SHORT and seconds < 0.002:  # a quadratic one would take 256 times that on the whole
            return seconds
        if length == SHORT and seconds > 0.5:
            return seconds * 256
    return seconds


def traps(texts: Iterable[str]) -> Iterator[str]:
    """Yield where whole verbs take too long on a mebibyte of a text, in lines of 64 KiB and in one."""
    from benchmarks.fuzz.verbs import CRASHED, ERROR, configured, diagnosed
    from mldebug_mcp.errors import MLDebugError

    head = b'step 1 loss 2.5\nlr: 0.1\n{"step": 2, "loss": 2.0}\n'
    verbs = [
        diagnosed("train.log"),
        configured("args.txt"),
        configured("args.ini"),
        configured("args.toml"),
        ERROR,
        CRASHED,
    ]
    with tempfile.TemporaryDirectory() as place:
        opened = [(verb, verb(Path(place))) for verb in verbs]
        for text in texts:
            line = (text * (LENGTH // len(text))).encode(errors="replace")
            for shape, data in (("lines", b"\n".join([line] * 16)), ("one line", line * 16)):
                for verb, parse in opened:
                    cost = Cost()
                    try:
                        with suppress(MLDebugError), metered(cost):
                            parse(head + data)
                    except (TooSlowError, TooLargeError, Exception) as error:  # noqa: BLE001 - what is looked for
                        yield f"{text!r} as {shape} in {verb.call} {verb.file}: {type(error).__name__} {error}"


if __name__ == "__main__":
    sys.exit(main())
