"""Draw labelled runs, ask for each over MCP as an agent does, and write the folders that readers get."""

from __future__ import annotations

import contextlib
import json
import random
import re
import shutil
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp_types import TextContent

from benchmarks.foreign.labels import Labelled, Truth, truth
from mldebug_mcp.judge.diagnosis import HARDLY_JUDGED
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.report.diagnosis_concise import NOTHING
from mldebug_mcp.server import make_server


@dataclass(frozen=True)
class Drawn:
    """A labelled run under the name by which a reader knows it."""

    name: str
    one: Labelled
    truth: Truth


def draw(ones: Sequence[Labelled], count: int, seed: int) -> list[Drawn]:
    """Return so many of the runs whose label says what is right, all of them where there are fewer, in any order."""
    known = [(one, right) for one in sorted(ones, key=lambda one: str(one.path)) if (right := truth(one)) is not None]
    taken = random.Random(seed).sample(known, min(count, len(known)))  # noqa: S311 - a draw that can be repeated
    return [Drawn(f"run-{at:02}", one, right) for at, (one, right) in enumerate(taken, 1)]


def copied(drawn: Drawn, into: Path) -> Path:
    """Copy a run into a folder under its neutral name; of the name of a file the last suffix stays, as it may matter.

    Raises:
        SystemExit: the run is not there.
    """
    source = drawn.one.path
    if source.is_dir():
        return Path(shutil.copytree(source, into / drawn.name))
    if not source.is_file():
        raise SystemExit(f"{source}: no such log, though the index of its folder names it")
    return Path(shutil.copy(source, into / f"{drawn.name}{source.suffix}"))


OBSERVED = ("run", "sheet", "findings", "notes")
"""The fields of a diagnosis that hold observations; all others hold hypotheses or rest on them."""
_ON_RANKING = (NOTHING, HARDLY_JUDGED)
"""Notes that tell of the ranking without naming a cause."""


@dataclass(frozen=True)
class Asked:
    """The answer to a run.

    Args:
        text: As an agent reads it; of a run that is refused, why.
        causes: The tool's ranking, best first; empty for a run that is refused.
    """

    text: str
    causes: tuple[str, ...]

    @property
    def hidden(self) -> str:
        """The text without the ranking."""
        return _without_ranking(json.loads(self.text)) if self.causes else self.text


async def ask(path: Path) -> Asked:
    """Ask the server about a run as an agent does, from the folder that it lies in, so that no other path is told."""
    with contextlib.chdir(path.parent):
        async with Client(make_server()) as client:
            short = await client.call_tool("diagnose_run", {"path": path.name})
            whole = await client.call_tool("diagnose_run", {"path": path.name, "detail": "full"})
    (told,) = (one.text for one in short.content if isinstance(one, TextContent))
    ranking = (whole.structured_content or {}).get("hypotheses", ())
    return Asked(told, tuple(one["cause"] for one in ranking))


def _without_ranking(answer: Mapping[str, Any]) -> str:
    causes = catalogue().causes.keys()
    shown = {name: value for name, value in answer.items() if name in OBSERVED}
    shown["notes"] = [one for one in shown["notes"] if one not in _ON_RANKING and not _names(one, causes)]
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":"))


def _names(note: str, causes: Collection[str]) -> bool:
    return not set(re.findall(r"\w+", note)).isdisjoint(causes)


HIDDEN, SHOWN = "hidden", "shown"
KEY = "key.jsonl"
QUESTIONS = """\
# What went wrong?

Each file `run-NN.json` of this folder says what a tool saw in the log of a training run. {about}

For each run say which cause of `causes.md` is the most likely, which one next, and which third. `healthy` is right
where nothing is wrong with the training, `unknown` where something is that the list has no name for. How many runs
are healthy is not told: judge each by itself. There is no log to look at; guess where you cannot tell.

Write one line per run into a file `answers.jsonl` in this folder, with three different ids of `causes.md`:

    {{"run": "run-01", "first": "lr_too_high", "second": "bad_batch", "third": "healthy"}}
"""
ABOUT = {
    HIDDEN: "These are observations; which cause they speak for is for you to say.",
    SHOWN: "It names hypotheses too; follow them or not.",
}
_LINK = re.compile(r"\s*\(\[[^\]]+\]\([^)]+\)(?:;\s*\[[^\]]+\]\([^)]+\))*\)|\[([^\]]+)\]\([^)]+\)")
_SENTENCE = re.compile(r".+?[.](?=\s|$)", re.DOTALL)


def write(drawn: Sequence[Drawn], folder: Path) -> None:
    """Write the answers to the runs, the questions and the key.

    Raises:
        SystemExit: there is something in the folder already, or a run is not there.
    """
    if folder.exists() and any(folder.iterdir()):
        raise SystemExit(f"{folder}: not empty; name a new folder, as answers to another draw would be counted with it")
    for name, about in ABOUT.items():
        place = folder / name
        place.mkdir(parents=True)
        (place / "causes.md").write_text(causes(), encoding="utf-8")
        (place / "questions.md").write_text(QUESTIONS.format(about=about), encoding="utf-8")
    with tempfile.TemporaryDirectory() as copies, (folder / KEY).open("w", encoding="utf-8") as key:
        for one in drawn:
            asked = anyio.run(ask, copied(one, Path(copies)))
            (folder / SHOWN / f"{one.name}.json").write_text(asked.text, encoding="utf-8")
            (folder / HIDDEN / f"{one.name}.json").write_text(asked.hidden, encoding="utf-8")
            key.write(json.dumps(_entry(one, asked)) + "\n")


def causes() -> str:
    """Return the list of causes, a line each: the id, and the first sentence of what the playbook says."""
    lines = [f"- `{name}`: {_first_sentence(one.summary)}" for name, one in catalogue().causes.items()]
    return "# Causes\n\n" + "\n".join(lines) + "\n"


def _first_sentence(summary: str) -> str:
    plain = _LINK.sub(lambda link: link[1] or "", summary)
    match = _SENTENCE.match(plain)
    return " ".join((match[0] if match else plain).split())


def _entry(drawn: Drawn, asked: Asked) -> dict[str, object]:
    """Return the line of the key for a run; one of the closed half stays without its name."""
    return {
        "run": drawn.name,
        "log": drawn.one.name if drawn.one.shown else "",
        "right": sorted(drawn.truth.right),
        "near": sorted(drawn.truth.near),
        "healthy": drawn.truth.healthy,
        "ranking": list(asked.causes),
    }
