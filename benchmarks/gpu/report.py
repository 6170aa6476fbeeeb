"""The page that tells what was measured, from the outcomes as they are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.faults.figures import table
from benchmarks.gpu.card import sections

TITLES = {
    "snapshots": "Memory snapshots",
    "estimates": "Estimates and measured peaks",
    "probes": "The probe on the device",
    "recorder": "The recorder's overhead",
}
ABOUT = {
    "snapshots": "Small models are trained, one workload per finding and sound ones that look odd; torch records their "
    "memory. `check_memory` must tell what is in each snapshot, raise no other alarm, and count as torch does: the "
    "bytes at the end exactly, the peak within 1 %.",
    "estimates": "Models of Transformers are trained for two steps. The estimate must be within 10 % of the most that "
    "tensors held.",
    "probes": "The probe's own pipelines on the device must come to the verdict that they come to on a CPU; a loop of "
    "the probe may take 1.10 times a bare one; a cancelled probe gives the device back, and another process there is "
    "left alone.",
    "recorder": "Steps with and without a recording, in turn, by CUDA events: it may add 3 %, and no call in which the "
    "host waits for the device.",
}
NOT_YET = (
    "**Not yet measured on a GPU by this command.** The first section has the figures of a real card, taken apart from "
    "it. The others are the dry run, on a CPU: torch computes the shapes of the same trainings, and a model of its "
    "allocator records them; the probe and the recorder run on the CPU. It covers every line of the command but those "
    "that only a GPU can run."
)

HOW = (
    "On a machine with a GPU, from the root of the repository, with torch for CUDA, numpy, pydantic and transformers, "
    "in under nine minutes and without a network (`--into FOLDER` writes it elsewhere, with samples of the snapshots; "
    "`--dry` is the dry run):"
)


def page(told: Mapping[str, Any]) -> str:
    """Return the page as Markdown.

    Args:
        told: `machine`, `dry`, `seconds` and `outcomes`, as the command writes them.
    """
    lines = ["# On a GPU", "", *([NOT_YET, ""] if told["dry"] else []), _machine(told["machine"]), ""]
    lines += [HOW, "", "    PYTHONPATH=src:. python -m benchmarks.gpu", "", _summary(told), "", *sections()]
    for part, title in TITLES.items():
        mine = [one for one in told["outcomes"] if one["part"] == part]
        if mine:
            lines += [f"## {title}", "", ABOUT[part], "", table([_row(one) for one in mine]), *_wrong(mine), ""]
    return "\n".join(lines).rstrip() + "\n"


def _machine(machine: Mapping[str, str]) -> str:
    return "; ".join(f"{name} {value}" for name, value in machine.items()) + "."


def _summary(told: Mapping[str, Any]) -> str:
    states = [one["state"] for one in told["outcomes"]]
    counts = [f"{states.count(state)} {state}" for state in ("passed", "failed", "error", "skipped") if state in states]
    return f"{len(states)} cases in {told['seconds']:.0f} s: {', '.join(counts)}."


def _row(one: Mapping[str, Any]) -> dict[str, str]:
    figures = "; ".join(f"{name.replace('_', ' ')} {value}" for name, value in one["figures"].items())
    return {"case": one["case"].replace("_", " "), "": one["state"], "figures": figures or _first_line(one["why"])}


def _first_line(text: str) -> str:
    return text.strip().splitlines()[-1].replace("|", "\\|") if text.strip() else ""


def _wrong(outcomes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what is wrong with each case that failed or broke."""
    wrong = [one for one in outcomes if one["state"] in ("failed", "error")]
    return ["", *(f"- {one['case']}: {' '.join(one['why'].split())[:1500]}" for one in wrong)] if wrong else []
