"""A sample of the inputs through a real stdio server, where the limits of helper processes count.

After each call the server has to answer a ping. A call that the limits ended counts as refused: that is what they are
for. What a ping takes beside such a call is measured by `benchmarks.load --hostile`.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.stdio_process import Process, started

from benchmarks.fuzz import corpus
from benchmarks.fuzz.engine import Outcome
from benchmarks.fuzz.mutate import Mutator
from benchmarks.fuzz.promises import BrokenPromiseError, check_text, texts
from benchmarks.fuzz.targets import Target
from benchmarks.fuzz.verbs import Verb

UNEXPECTED = "Error executing tool"


def serve(targets: Sequence[Target], inputs: int, seed: str, keep: Path) -> Outcome:
    """Give a server that many inputs of the verbs among the targets, in turn, and what fuzzing found before."""
    outcome = Outcome("over stdio")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        made = [
            (target, target.open, _mutator(target, seed, keep))
            for target in targets
            if isinstance(target.open, Verb) and target.open.call != "read_probe_batch"
        ]
        with started(folder) as server:
            for number in range(inputs):
                target, verb, mutator = made[number % len(made)]
                own = folder / corpus.slug(f"{verb.call} {verb.file}")
                own.mkdir(exist_ok=True)
                verb.prepare(own)
                _give(server, outcome, target, verb.given(own, target.made(mutator.make())), keep)
    return outcome


def _mutator(target: Target, seed: str, keep: Path) -> Mutator:
    seeds = [*target.seeds(), *corpus.read(corpus.found_file(target.name, keep))]
    return Mutator(seeds, f"{seed} served {target.name}", in_place=target.in_place, maker=target.maker)


def _give(server: Process, outcome: Outcome, target: Target, arguments: dict[str, Any], keep: Path) -> None:
    verb = target.open
    assert isinstance(verb, Verb)
    begun = time.monotonic()
    answer = server.ask("tools/call", name=verb.call, arguments=arguments)
    took = time.monotonic() - begun
    server.ask("ping")
    outcome.inputs, outcome.seconds = outcome.inputs + 1, outcome.seconds + took
    outcome.slowest = max(outcome.slowest, (took, target.name))
    try:
        refused = _is_refused(answer)
        outcome.refused, outcome.answered = outcome.refused + refused, outcome.answered + (not refused)
    except Exception as error:  # noqa: BLE001 - what came out is what is looked for
        what = f"{type(error).__name__} {target.name}"
        file = keep / corpus.slug(f"served {what} {outcome.inputs}")
        damaged = next((value for value in arguments.values() if str(value).endswith(verb.file)), None)
        file.write_bytes(Path(damaged).read_bytes() if damaged else str(arguments).encode(errors="replace"))
        outcome.broken.setdefault(what, f"{file}: {' '.join(str(error).split())[:300]}")


def _is_refused(answer: dict[str, Any]) -> bool:
    """Say whether a call was refused; raise BrokenPromiseError where its answer breaks what is promised."""
    if "result" not in answer:
        raise BrokenPromiseError(f"no result: {str(answer)[:300]}")
    result = answer["result"]
    told = str(result["content"][0]["text"])
    for text in texts(result.get("structuredContent")):
        check_text(text)
    if not result.get("isError"):
        return False
    check_text(told)
    if told.startswith(UNEXPECTED) and ":" not in told:
        raise BrokenPromiseError(told)
    return True
