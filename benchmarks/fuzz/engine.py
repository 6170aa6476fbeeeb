"""Gives one target many inputs, and says what came of them."""

from __future__ import annotations

import json
import mmap
import re
import tempfile
import time
import traceback
import warnings
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.fuzz import corpus
from benchmarks.fuzz.mutate import LONGEST, Mutator
from benchmarks.fuzz.promises import Cost, TooLargeError, TooSlowError, bound_memory, check_error, metered
from benchmarks.fuzz.targets import Target, by_name, inside
from benchmarks.fuzz.verbs import Parse
from mldebug_mcp.core.errors import MLDebugError

_CHANGING = re.compile(r"'[^']*'|\S*/\S*|[\d.,]+|\([^)]*\)")
"""What differs between two messages of one kind."""

Extreme = tuple[float, str]
"""Seconds or MiB of an input, and the file that holds it."""


@dataclass(slots=True)
class Outcome:
    """What came of the inputs of one target."""

    name: str
    inputs: int = 0
    answered: int = 0
    refused: int = 0
    paths: int = 0
    seconds: float = 0.0
    slowest: Extreme = (0.0, "")
    largest: Extreme = (0.0, "")
    broken: dict[str, str] = field(default_factory=dict)

    def add(self, other: Outcome) -> None:
        """Take the inputs of a later round in."""
        for name in ("inputs", "answered", "refused", "paths", "seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("slowest", "largest"):
            setattr(self, name, max(tuple(getattr(self, name)), tuple(getattr(other, name))))
        self.broken |= other.broken


class Fuzzer:
    """One target in this process.

    Args:
        target: What is given inputs.
        keep: The folder for the inputs that broke a promise, took most, or led somewhere new.
    """

    def __init__(self, target: Target, keep: Path) -> None:
        self._target, self._keep = target, keep
        self.outcome = Outcome(target.name)
        self._seen = Counter[object]()
        self._new: list[bytes] = []

    def run(self, inputs: int, seed: str) -> Outcome:
        """Give the target that many inputs, after its seeds and what led somewhere new in earlier rounds."""
        warnings.simplefilter("ignore")
        target, pool = self._target, corpus.found_file(self._target.name, self._keep)
        before = corpus.read(pool) or corpus.kept(target.name)
        mutator = Mutator([*target.seeds(), *before], seed, in_place=target.in_place, maker=target.maker)
        last = _shared(last_of(self._keep, target))
        with tempfile.TemporaryDirectory() as place, inside(Path(place)):
            parse = target.open(Path(place))
            for data in (*target.seeds(), *before):
                self._one(parse, data, last)
            self.outcome, self._new = Outcome(target.name), []
            bound_memory()
            begun = time.process_time()
            for _ in range(inputs):
                data = mutator.make()
                if self._one(parse, data, last):
                    mutator.keep(data)
            self.outcome.seconds = time.process_time() - begun
        self.outcome.inputs, self.outcome.paths = inputs, len(self._new)
        corpus.write(pool, [*before, *self._new][:2000])
        return self.outcome

    def _one(self, parse: Parse, data: bytes, last: mmap.mmap) -> bool:
        """Give the target an input, and return whether it led somewhere new."""
        made = self._target.made(data)
        last[:] = made.ljust(len(last), b"\0")[: len(last)]
        cost = Cost()
        try:
            with metered(cost):
                signature = self._outcome_of(parse, made)
        except (TooSlowError, TooLargeError) as error:
            signature = self._note(made, error)
        self._extremes(cost, made)
        self._seen[signature] += 1
        if self._seen[signature] > 1:
            return False
        self._new.append(data)
        return True

    def _outcome_of(self, parse: Parse, made: bytes) -> object:
        try:
            signature = parse(made)
        except MLDebugError as error:
            self.outcome.refused += 1
            try:
                check_error(error)
            except Exception as broken:  # noqa: BLE001
                return self._note(made, broken)
            return _CHANGING.sub("", str(error))[:80]
        except Exception as error:  # noqa: BLE001 - what came out is what is looked for
            return self._note(made, error)
        self.outcome.answered += 1
        return signature

    def _extremes(self, cost: Cost, data: bytes) -> None:
        """Keep an input that took most so far."""
        for name, amount in (("slowest", cost.seconds), ("largest", cost.growth / (1 << 20))):
            if amount > getattr(self.outcome, name)[0]:
                file = self._keep / f"{corpus.slug(self._target.name)}_{name}"
                file.write_bytes(data)
                setattr(self.outcome, name, (amount, file.name))

    def _note(self, data: bytes, error: BaseException) -> str:
        """Keep an input that broke a promise, one for each place."""
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "mldebug_mcp" in frame.filename]
        where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
        what = f"{type(error).__name__} {where}"
        if what not in self.outcome.broken:
            file = self._keep / re.sub(r"\W+", "_", f"{self._target.name} {what}")
            file.write_bytes(data)
            self.outcome.broken[what] = f"{file}: {' '.join(str(error).split())[:300]}"
        return what


def run_round(name: str, inputs: int, seed: str, keep: Path, result: Path) -> None:
    """Give a target, named, that many inputs in this process, and leave what came of it in a file."""
    done = Fuzzer(by_name(name), keep).run(inputs, seed)
    result.write_text(json.dumps(asdict(done)), encoding="utf-8")


def last_of(keep: Path, target: Target) -> Path:
    """Return the file that holds the last input of a target, should its process die of it."""
    return keep / f"last_of_{corpus.slug(target.name)}"


def _shared(path: Path) -> mmap.mmap:
    """Return memory that outlives this process as a file."""
    path.write_bytes(bytes(2 * LONGEST))
    with path.open("r+b") as file:
        return mmap.mmap(file.fileno(), 0)
