"""Runs that are spread over sub-folders: TensorBoard's `add_scalars`, and folders of curves, one file for each."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import NamedTuple

from mldebug_mcp.core.access import entries, head_of, is_folder
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.logs.names import role_of
from mldebug_mcp.logs.names.records import phase_in

CURVES = {".tsv": ("plots", "metrics"), ".plx": ("events", "metric")}
"""The folders in which DVCLive and Polyaxon keep their curves, by the ending of the tables.

The path of a table below them is the metric's name.
"""
CATBOOST = "catboost_training.json"
"""What CatBoost calls the file that holds every measure of every set."""
REPEATS = regex(r"(?:(?:learn|test\d*)/events\.out\.tfevents|(?:learn|test)_error\.tsv|time_left\.tsv)")
"""The files next to it that repeat it, by their path below its folder."""
HEAD_BYTES = 64 * 1024
"""Bytes of an event file in which its first tag is looked for."""
MAX_LINE_BYTES = 200
"""Bytes of the first line of a table of one curve without a header: three numbers take no more."""
BARE = "curves"
"""The format of tables that are named after their metrics."""
_BARE_ROW = regex(rb"\d{1,18},(?:\d{1,18},)?(?:[-+]?\d[\d.eE+-]{0,40}|[-+]?(?:nan|inf))\r?\n", re.IGNORECASE)
"""A row of such a table: d3rlpy's epoch, step and value, torchrl's step and value."""
_PARAMETER_HEADER = regex(rb"epoch,step,[\w,]+\r?\n")
"""The header of a table that d3rlpy writes of a parameter's gradient, next to those of one curve."""
_OF_CURVE = {
    **dict.fromkeys(("step", "steps", "global step", "iteration", "iterations", "iter"), "step"),
    **dict.fromkeys(("wall time", "time", "timestamp"), "time"),
    "value": "value",
}
"""The columns of a table that TensorBoard exports of one tag, and of those written alike."""
_EVENTS = regex(r"events\.out\.tfevents\.\d+\.(?P<writer>.+\.\d+)\.\d+")
"""What event files are called: the time, then the machine and the process that wrote them, then a number."""


def may_hold_curves(folder: Path) -> bool:
    """Say whether a folder called `plots` or `events` holds curves, and not pictures."""
    return any(folder.name == outer and is_folder(folder / inner) for outer, inner in CURVES.values())


def curve_name(path: PurePath) -> str:
    """Return the metric of a table of one curve by its path, such as "train/loss"; "" if it is none."""
    parts, folders = path.parts, CURVES.get(path.suffix)
    at = next((at for at in range(len(parts) - 2) if parts[at : at + 2] == folders), None)
    if at is None:
        return ""
    return "/".join((*parts[at + 2 : -1], path.stem))


def bare_curves(files: Iterable[Path]) -> list[list[Path]]:
    """Return the tables of one curve without a header that stand together, by folder: those of one run.

    d3rlpy and torchrl write `loss.csv` with rows of counters and a value. The name of the file is the metric's.
    """
    places: dict[Path, dict[Path, bytes]] = {}
    for path in files:
        if path.suffix == ".csv" and (line := _first_line(path)):
            places.setdefault(path.parent, {})[path] = line
    tables = [
        [path for path, line in lines.items() if _BARE_ROW.fullmatch(line) or _PARAMETER_HEADER.fullmatch(line)]
        for lines in places.values()
        if sum(_BARE_ROW.fullmatch(line) is not None for line in lines.values()) > 1
    ]
    return [some for some in tables if some]


_TRIPLES = regex(rb"\s{0,20}\[\s{0,20}\[\s{0,20}\d{9,10}(?:\.\d{1,9})?,\s{0,20}\d{1,15},\s{0,20}[-+\dNI\"]")
"""A list of times in seconds, steps and values: what TensorBoard gives of one tag as JSON."""
JSON = "json"


class CurveColumns(NamedTuple):
    """The delimiter of a table of one curve, `JSON` for a list, and what each column is: "step", "value" or "time"."""

    delimiter: str
    names: tuple[str, ...]


def curve_columns(path: Path) -> CurveColumns | None:
    """Return the columns of a table whose header calls its metric "value": its name is that of the metric.

    One that TensorBoard exports has the run in its name too, `run-a-tag-loss.csv`, and is read by itself.
    """
    if "-tag-" in path.name:
        return None
    if path.suffix == ".json" and _TRIPLES.match(head_of(path, MAX_LINE_BYTES)):
        return CurveColumns(JSON, ("time", "step", "value"))
    if path.suffix not in (".csv", ".tsv"):
        return None
    line = _first_line(path).decode("utf-8", errors="replace").strip()
    delimiter = next((mark for mark in ",;\t" if mark in line), ",")
    names = [_OF_CURVE.get(name.strip('" ').lower().replace("_", " "), "") for name in line.split(delimiter)]
    known = len(set(names)) == len(names) and {"step", "value"} <= set(names) <= set(_OF_CURVE.values())
    return CurveColumns(delimiter, tuple(names)) if known else None


def is_phase_of_metric(path: Path) -> bool:
    """Say whether a table of one curve is named after a phase in the folder of its metric, `loss/train.csv`."""
    return phase_in(path.stem) != "" and role_of(path.parent.name) is not None and curve_columns(path) is not None


def curves_by_tag(files: Iterable[Path]) -> dict[Path, str]:
    """Return such tables of one run with the metrics that their files and folders name; empty where these name none.

    Files that are named after runs, `small.csv`, hold the same metric. What all begin with is the run, `gcn_` of
    `gcn_val_loss.csv`.
    """
    tables = [path for path in files if curve_columns(path) is not None]
    if len(tables) < 2:
        return {}
    above = Path(os.path.commonpath([path.parent for path in tables]))
    is_part = phase_in(above.name) or any(path.parent == above and is_phase_of_metric(path) for path in tables)
    above = above.parent if is_part else above
    tags = {path: path.relative_to(above).with_suffix("").as_posix() for path in tables}
    if not _name_metrics(tags.values()):
        first, last = min(tags.values()), max(tags.values())
        alike = next((at for at, (own, its) in enumerate(zip(first, last, strict=False)) if own != its), len(first))
        of_run = max(first.rfind(mark, 0, alike) for mark in "_-./") + 1
        tags = {path: tag[of_run:] for path, tag in tags.items()}
    return tags if _name_metrics(tags.values()) else {}


def _name_metrics(tags: Iterable[str]) -> bool:
    """Say whether tags are of several metrics."""
    return len({role.name for tag in tags if (role := role_of(tag)) is not None}) > 1


def _first_line(path: Path) -> bytes:
    head = head_of(path, MAX_LINE_BYTES)
    return head.partition(b"\n")[0] + b"\n" if head else b""


def home_of_curve(path: Path) -> Path | None:
    """Return the folder of the run whose curve a table is, None for other tables."""
    name = curve_name(path)
    return path.parents[name.count("/") + len(CURVES[path.suffix])] if name else None


def scalars_tag(path: Path) -> str:
    """Return the tag that `SummaryWriter.add_scalars` made the folder of an event file for, "" if it did not.

    Such a folder is called after the tag and the key of the dictionary, `loss_train`. Its events carry the tag, and
    the same process wrote those of the folder above it.
    """
    name = _EVENTS.fullmatch(path.name)
    above = [_EVENTS.fullmatch(entry.name) for entry in entries(path.parent.parent)] if name else []
    if name is None or not any(match is not None and match["writer"] == name["writer"] for match in above):
        return ""
    head, folder = head_of(path, HEAD_BYTES), path.parent.name
    for end in (match.start() for match in re.finditer("_", folder)):
        tag = folder[:end].encode()
        if len(tag) > 127:  # its length takes one byte
            return ""
        pattern = b"\x0a" + re.escape(bytes([len(tag)])) + b"(" + re.escape(tag).replace(b"_", b"[_/]") + b")"
        if (found := re.search(pattern, head, re.DOTALL)) is not None:
            return found[1].decode(errors="replace")
    return ""


def scalars_name(path: Path) -> str:
    """Return what the metric of an event file that `add_scalars` made is called: "loss/train"; "" if it is none."""
    tag = scalars_tag(path)
    return f"{tag}/{path.parent.name[len(tag) + 1 :]}" if tag else ""
