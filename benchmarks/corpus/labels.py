"""What is known of a run, and the index of a folder of runs: `labels.jsonl`, one object a line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any

INDEX = "labels.jsonl"


@dataclass(frozen=True)
class Label:
    """What is known of a run.

    Args:
        cause: The injected cause, as PLAYBOOK.md names it, or "healthy".
        also: Other causes that the same log justifies.
        onset: The step at which the fault begins, if it has one.
        steps: Steps of the run.
        shows: Whether the log shows the fault.
        tuning: Whether numbers are fitted on the run; the others test them.
        settings_decide: Whether a log without the run's settings shows the fault no longer.
        restyled: The style that the run was written anew in; empty where the log is the one of its training.
        of: The name of the trained run that this is another log of; empty where it is that run.
        style_seen: Whether runs of the tuning part may be written in that style.
    """

    cause: str
    also: tuple[str, ...] = ()
    onset: float | None = None
    steps: int = 1
    shows: bool = True
    tuning: bool = True
    settings_decide: bool = False
    restyled: str = ""
    of: str = ""
    style_seen: bool = True


_DEFAULTS: Mapping[str, Any] = {one.name: one.default for one in fields(Label) if one.default is not MISSING}


def read_labels(folder: Path) -> dict[str, Label]:
    """Return the label of each run that the index of a folder lists, by the name of the run's folder or file.

    Raises:
        SystemExit: there is no index, or one that cannot be read, or it names a run that is not there.
    """
    index = folder / INDEX
    if not index.is_file():
        raise SystemExit(f"{folder}: no {INDEX} in it; benchmarks/corpus/README.md says what it holds")
    found: dict[str, Label] = {}
    for number, line in enumerate(index.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            name, label = _read(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            raise SystemExit(f"{index}, line {number}: not an object with `run` and `cause` ({error!r})") from None
        if not (folder / name).exists() or name in found:
            raise SystemExit(f"{index}, line {number}: {name} is {'listed twice' if name in found else 'not there'}")
        found[name] = label
    return found


def write_labels(folder: Path, labels: Mapping[str, Label]) -> None:
    """Write the index of a folder; what a field holds by default is left out."""
    lines = [json.dumps(_row(name, label)) for name, label in sorted(labels.items())]
    (folder / INDEX).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _read(row: Mapping[str, Any]) -> tuple[str, Label]:
    """Return the run and its label; what else its author noted, such as the task and the style, is for readers."""
    given = {name: row[name] for name in _DEFAULTS if name in row}
    return row["run"], Label(row["cause"], **given | {"also": tuple(row.get("also", ()))})


def _row(name: str, label: Label) -> dict[str, Any]:
    return {"run": name} | {key: value for key, value in asdict(label).items() if value != _DEFAULTS.get(key, MISSING)}
