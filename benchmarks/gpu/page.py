"""The page of what was measured: the outcomes as they are kept, and the snapshots and peaks of a real card."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.faults.figures import table
from mldebug_mcp.memory.estimate import estimate_memory

PACKAGES = ("torch", "transformers", "bitsandbytes", "numpy")


def described() -> dict[str, str]:
    """Return the date, the device, the driver's CUDA and the versions, as far as they are there."""
    found = {"date": time.strftime("%Y-%m-%d", time.gmtime()), "device": "none: a dry run on the CPU"}
    if torch.cuda.is_available():
        properties = torch.cuda.get_device_properties(0)
        found["device"] = f"{properties.name}, {properties.total_memory / 2**30:.0f} GiB"
        found["devices"] = str(torch.cuda.device_count())
        found["cuda"] = str(torch.version.cuda)
    found["python"] = platform.python_version()
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


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
    lines += [
        HOW,
        "",
        "    PYTHONPATH=src:. python -m benchmarks.gpu",
        "",
        _summary(told),
        "",
        *_of_the_card(),
    ]
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


HERE = Path(__file__).parent
SNAPSHOTS, PEAKS = HERE / "card.json", HERE / "peaks.json"
"""Snapshots with what was found in them; and measured peaks with the models and settings that they belong to."""


def _of_the_card() -> list[str]:
    """Return the part of the page about the card as lines of Markdown."""
    card, peaks = (json.loads(path.read_text(encoding="utf-8")) for path in (SNAPSHOTS, PEAKS))
    read = [one for one in card["snapshots"] if one["peak_read"]]
    worst = max(abs(one["peak_read"] / one["peak"] - 1) for one in read)
    errors = [abs(_error(peaks, one)) for one in peaks["peaks"]]
    count = len(card["snapshots"])
    return [
        "## On a real card",
        "",
        f"{card['device']}; torch {card['torch']}; Python {card['python']}.",
        "",
        f"`check_memory` reads {count} of {count} snapshots of workloads whose truth was fixed before they ran. It "
        "finds what must be found, and nothing that must not. Bytes allocated, reserved and requested at the end equal "
        f"torch's in all of them. The peak equals torch's to {worst:.2%} where there is a history; without one it is "
        "not known.",
        "",
        table([_snapshot(one) for one in card["snapshots"]]),
        "",
        f"`estimate` is off by {max(errors):.1%} at most on {len(errors)} peaks of real training steps "
        f"({peaks['device']}; torch {peaks['torch']}; Transformers {peaks['transformers']}). The table shows estimate "
        "against measured peak.",
        "",
        table(_estimates(peaks)),
        "",
    ]


def _snapshot(one: Mapping[str, Any]) -> dict[str, str]:
    peak = f"{one['peak_read'] / one['peak'] - 1:+.2%}" if one["peak_read"] else "not known"
    shares = ", ".join(f"{name.replace('_', ' ')} {share:.0%}" for name, share in list(one["shares"].items())[:4])
    return {
        "snapshot": one["snapshot"].replace("_", " "),
        "truth": one["truth"].replace("|", "\\|"),
        "found": ", ".join(one["found"]),
        "peak": peak,
        "what it holds": shares,
    }


def _estimates(peaks: Mapping[str, Any]) -> list[dict[str, str]]:
    errors = {(one["config"], one["set"]): _error(peaks, one) for one in peaks["peaks"]}
    return [
        {"model": model, **{name.replace("_", " "): f"{errors[model, name]:+.1%}" for name in peaks["settings"]}}
        for model in peaks["configs"]
    ]


def _error(peaks: Mapping[str, Any], one: Mapping[str, Any]) -> float:
    """Return the relative error of the estimate of one measured training."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.json"
        config.write_text(json.dumps(peaks["configs"][one["config"]]), encoding="utf-8")
        settings = peaks["settings"][one["set"]]
        estimate = estimate_memory(config, batch_size=one["batch"], length=one["length"], **settings)
    return float(estimate.total_bytes / one["peak"] - 1)
