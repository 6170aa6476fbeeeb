"""A sample of the inputs through a real stdio server, where the limits of helper processes count.

After each call the server has to answer a ping; a call that the limits ended is counted, and is no failure: that is
what they are for.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.stdio_process import Process

from benchmarks.fuzz import corpus
from benchmarks.fuzz.mutate import Mutator
from benchmarks.fuzz.promises import BrokenPromiseError, check_text, texts
from benchmarks.fuzz.targets import Target
from benchmarks.fuzz.verbs import Verb

PING_SECONDS = 0.1
ENDED = ("than its size explains", "a library crashed on this input")
"""What a client reads of a call that was ended."""
UNEXPECTED = "Error executing tool"


@dataclass(slots=True)
class Served:
    """What came of the inputs that a server was given."""

    inputs: int = 0
    refused: int = 0
    ended: int = 0
    slowest: tuple[float, str] = (0.0, "")
    longest_ping: float = 0.0
    late_pings: int = 0
    largest: int = 0
    broken: dict[str, str] = field(default_factory=dict)

    def table(self) -> str:
        """Return the figures as Markdown."""
        return (
            "| over stdio | refused | ended by limits | slowest (s) | longest ping (ms) | pings above 100 ms "
            "| largest helper (MiB) | broken |\n| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
            f"| {self.inputs:,} | {self.refused:,} | {self.ended:,} | {self.slowest[0]:.1f} ({self.slowest[1]}) "
            f"| {self.longest_ping * 1000:.0f} | {self.late_pings} | {self.largest} | {len(self.broken)} |\n"
        )


def serve(targets: Sequence[Target], inputs: int, seed: str, keep: Path) -> Served:
    """Give a server that many inputs of the verbs among the targets, in turn, and what fuzzing found before."""
    served = Served()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        made = [_inputs(target, seed, keep) for target in targets if isinstance(target.open, Verb)]
        for verb, *_ in made:
            own = folder / corpus.slug(f"{verb.call} {verb.file}")
            own.mkdir(exist_ok=True)
            verb.prepare(own)
        server = Process(folder)
        with server.process:
            server.start()
            for number in range(inputs):
                verb, mutator, target = made[number % len(made)]
                own = folder / corpus.slug(f"{verb.call} {verb.file}")
                if verb.call != "read_probe_batch":
                    _one(server, served, target, verb.given(own, target.made(mutator.make())), keep)
            server.process.kill()
    return served


def _inputs(target: Target, seed: str, keep: Path) -> tuple[Verb, Mutator, Target]:
    verb = target.open
    assert isinstance(verb, Verb)
    found = corpus.read(corpus.found_file(target.name, keep))
    mutator = Mutator(
        [*target.seeds(), *found], f"{seed} served {target.name}", in_place=target.in_place, maker=target.maker
    )
    return verb, mutator, target


def _one(server: Process, served: Served, target: Target, arguments: dict[str, Any], keep: Path) -> None:
    assert isinstance(target.open, Verb)
    verb = target.open
    begun = time.monotonic()
    answer = server.ask("tools/call", name=verb.call, arguments=arguments)
    served.slowest = max(served.slowest, (time.monotonic() - begun, target.name))
    pinged = time.monotonic()
    server.ask("ping")
    waited = time.monotonic() - pinged
    served.longest_ping = max(served.longest_ping, waited)
    served.late_pings += waited > PING_SECONDS
    served.inputs += 1
    served.largest = max([served.largest, *_peaks(server.process.pid)])
    try:
        _check(served, answer)
    except Exception as error:  # noqa: BLE001 - what came out is what is looked for
        what = f"{type(error).__name__} {target.name}"
        file = keep / corpus.slug(f"served {what} {served.inputs}")
        damaged = next((value for value in arguments.values() if str(value).endswith(verb.file)), None)
        file.write_bytes(Path(damaged).read_bytes() if damaged else str(arguments).encode(errors="replace"))
        served.broken.setdefault(what, f"{file}: {' '.join(str(error).split())[:300]}")


def _check(served: Served, answer: dict[str, Any]) -> None:
    if "result" not in answer:
        raise BrokenPromiseError(f"no result: {str(answer)[:300]}")
    result = answer["result"]
    told = str(result["content"][0]["text"])
    for text in texts(result.get("structuredContent")):
        check_text(text)
    if result.get("isError"):
        served.refused += 1
        check_text(told)
        if told.startswith(UNEXPECTED) and ":" not in told:
            raise BrokenPromiseError(told)
        served.ended += any(one in told for one in ENDED)


def _peaks(process: int) -> list[int]:
    """Return the most that the helpers of a server have held, in MiB, where the system tells."""
    found = []
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        for child in children:
            status = Path(f"/proc/{child}/status").read_text()
            found.append(int(status.split("VmHWM:")[1].split()[0]) // 1024)
    except (OSError, IndexError):
        pass
    return found
