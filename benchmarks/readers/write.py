"""The folders that readers get, and the key to them."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

import anyio

from benchmarks.readers.answer import Asked, ask
from benchmarks.readers.draw import Drawn, copied
from mldebug_mcp.knowledge import catalogue

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
