"""The same runs, diagnosed by other tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.corpus.labels import Label, read_labels
from benchmarks.faults.figures import Rows, share
from benchmarks.faults.others import PACKAGES, TOOLS, Said, lacking
from mldebug_mcp.judge import diagnose
from mldebug_mcp.logs import Run, read_run

OURS = "mldebug-mcp"
LOGS = ("trainer_state.json", "log.jsonl", "metrics.csv", "train.log")
HOW = (
    f"To have them: python -m venv tools && tools/bin/pip install {' '.join(PACKAGES)}, then pass "
    "--tools tools/bin/python."
)


@dataclass(frozen=True)
class Case:
    """A run of which a tool said something, or which it could not read."""

    label: Label
    said: Said | None

    def named(self, findings: int | None) -> bool:
        """Whether the injected cause, or one that justifies the same, is named by the first of its findings, or any."""
        wanted = {self.label.cause, *self.label.also}
        return self.said is not None and any(wanted & set(causes) for causes in self.said.findings[:findings])


def judge(folder: Path, python: Path, sample: int | None, seed: int) -> dict[str, list[Case]]:
    """Return what each tool says, ours first, of the test part: all of it, or a sample."""
    cases = sorted(_test_part(folder).items())
    if sample is not None and sample < len(cases):
        chosen = np.random.default_rng(seed).permutation(len(cases))[:sample]
        cases = [cases[at] for at in sorted(chosen)]
    tools = {name: tool for name, tool in TOOLS.items() if not lacking(python, name)}
    for name in sorted(TOOLS.keys() - tools):
        print(f"{name} is left out: {python} cannot import it. {HOW}")
    judged: dict[str, list[Case]] = {name: [] for name in (OURS, *tools)}
    for name, label in cases:
        log = next(folder / name / file for file in LOGS if (folder / name / file).exists())
        run = read_run(folder / name)
        judged[OURS].append(Case(label, _ours(run)))
        for tool, ask in tools.items():
            judged[tool].append(Case(label, ask(python, run, log)))
    return judged


def compare(judged: Mapping[str, Sequence[Case]]) -> Rows:
    """Return one row per tool.

    A cause counts as named if any finding names it, or among our first three; as named first, if the first finding of
    a tool names it (and perhaps others), or if we rank it first.
    """
    return [_row(tool, ones) for tool, ones in judged.items()]


def by_cause(judged: Mapping[str, Sequence[Case]]) -> Rows:
    """Return one row per injected cause: how often each tool names it."""
    causes = sorted({one.label.cause for ones in judged.values() for one in ones} - {"healthy"})
    rows = []
    for cause in causes:
        of_tools = {tool: [one for one in ones if one.label.cause == cause] for tool, ones in judged.items()}
        named = {tool: share([one.named(None) for one in ones]) for tool, ones in of_tools.items()}
        rows.append({"injected cause": cause, "runs": f"{len(of_tools[OURS])}", **named})
    return rows


def _test_part(folder: Path) -> dict[str, Label]:
    return {name: label for name, label in read_labels(folder).items() if label.shows and not label.tuning}


def _ours(run: Run) -> Said:
    causes = [one.cause for one in diagnose(run).hypotheses[:3]]
    return Said(tuple((cause,) for cause in causes), alarm=causes[0] not in ("healthy", "unknown"))


def _row(tool: str, ones: Sequence[Case]) -> dict[str, str]:
    read = [one for one in ones if one.said is not None]
    faulty = [one for one in read if one.label.cause != "healthy"]
    alarms = [one.said.alarm for one in read if one.label.cause == "healthy" and one.said is not None]
    return {
        "": tool,
        "faulty runs": f"{len(faulty)}",
        "cause named": share([one.named(None) for one in faulty]),
        "named first": share([one.named(1) for one in faulty]),
        "healthy runs": f"{len(alarms)}",
        "false alarms": share(alarms),
        "cannot read": f"{len(ones) - len(read)}",
    }
