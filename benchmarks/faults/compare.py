"""The same runs, diagnosed by other tools."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.faults.others import PACKAGES, TOOLS, Said, lacking
from benchmarks.faults.report import share
from benchmarks.faults.runs import Label
from mldebug_mcp.diagnose import diagnose
from mldebug_mcp.logs import Run, read_run

OURS = "mldebug-mcp"
LOGS = ("trainer_state.json", "log.jsonl", "metrics.csv", "train.log")
HOW = (
    f"To have them: python -m venv tools && tools/bin/pip install {' '.join(PACKAGES)}, then pass "
    "--tools tools/bin/python."
)


@dataclass(frozen=True)
class Row:
    """How often a tool is right.

    Args:
        tool: Its name.
        faulty: Runs with a fault that it could read.
        named: Share of these whose cause it names at all; of ours, among the first three.
        first: Share whose cause its first finding names; of ours, whose cause is ranked first.
        healthy: Healthy runs that it could read.
        alarms: Share of these of which it says that something is wrong.
        unread: Runs that it could not read.
    """

    tool: str
    faulty: int
    named: str
    first: str
    healthy: int
    alarms: str
    unread: int


@dataclass(frozen=True)
class _Case:
    label: Label
    said: Said | None

    def named(self, findings: int | None) -> bool:
        wanted = {self.label.cause, *self.label.also}
        return self.said is not None and any(wanted & set(causes) for causes in self.said.findings[:findings])


def compare(folder: Path, python: Path, sample: int | None, seed: int) -> list[Row]:
    """Return one row per tool, ours first, over the test part: all of it, or a sample."""
    cases = sorted(_test_part(folder).items())
    if sample is not None and sample < len(cases):
        chosen = np.random.default_rng(seed).permutation(len(cases))[:sample]
        cases = [cases[at] for at in sorted(chosen)]
    tools = {name: tool for name, tool in TOOLS.items() if not lacking(python, name)}
    for name in sorted(TOOLS.keys() - tools):
        print(f"{name} is left out: {python} cannot import it. {HOW}")
    judged: dict[str, list[_Case]] = {name: [] for name in (OURS, *tools)}
    for name, label in cases:
        log = next(folder / name / file for file in LOGS if (folder / name / file).exists())
        run = read_run(folder / name)
        judged[OURS].append(_Case(label, _ours(run)))
        for tool, ask in tools.items():
            judged[tool].append(_Case(label, ask(python, run, log)))
    return [_row(tool, ones) for tool, ones in judged.items()]


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a table in Markdown."""
    names = ("", "faulty runs", "cause named", "named first", "healthy runs", "false alarms", "cannot read")
    lines = [f"| {' | '.join(names)} |", "| --- |" + " --- |" * (len(names) - 1)]
    return "\n".join([*lines, *(f"| {' | '.join(map(str, asdict(row).values()))} |" for row in rows)])


def _test_part(folder: Path) -> dict[str, Label]:
    labels = {
        file.name.removesuffix(".label.json"): Label(**json.loads(file.read_text(encoding="utf-8")))
        for file in folder.glob("*.label.json")
    }
    return {name: label for name, label in labels.items() if label.shows and not label.tuning}


def _ours(run: Run) -> Said:
    causes = [one.cause for one in diagnose(run).hypotheses[:3]]
    return Said(tuple((cause,) for cause in causes), alarm=causes[0] not in ("healthy", "unknown"))


def _row(tool: str, ones: Sequence[_Case]) -> Row:
    read = [one for one in ones if one.said is not None]
    faulty = [one for one in read if one.label.cause != "healthy"]
    alarms = [one.said.alarm for one in read if one.label.cause == "healthy" and one.said is not None]
    return Row(
        tool,
        len(faulty),
        share([one.named(None) for one in faulty]),
        share([one.named(1) for one in faulty]),
        len(alarms),
        share(alarms),
        len(ones) - len(read),
    )
