"""What was measured on a real card: its snapshots as `check_memory` reads them, and its peaks beside the estimates."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.faults.figures import table
from mldebug_mcp.memory.estimate import estimate_memory

HERE = Path(__file__).parent
SNAPSHOTS, PEAKS = HERE / "card.json", HERE / "peaks.json"
"""Snapshots with what was found in them; and measured peaks with the models and settings that they belong to."""


def sections() -> list[str]:
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
