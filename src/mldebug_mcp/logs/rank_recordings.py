"""The recordings of the ranks of one run → one run, with what PyTorch's flight recorder dumped.

The run is that of the first rank, with what the others hold of the same steps under names such as `loss/rank_1`. A
dump tells which rank is behind, in which collective operation, at which line.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath

from mldebug_mcp.core.access import entries, open_input
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import dataclass, regex, replace
from mldebug_mcp.core.text import clean, shorten
from mldebug_mcp.logs.run import RECORDER, Ending, Incident, Message, Run
from mldebug_mcp.logs.settings.files import MAX_FILE, read_pickled

# Dumps of PyTorch's flight recorder → which rank is behind, in which collective operation, at which line.
#
# Each rank dumps the collective operations that it has entered, `nccl_trace_rank_N`, as a pickle of plain values or as
# JSON. Ranks enter the operations of a group in one order, so the one that has entered fewest keeps the others waiting.
#
# Source: https://docs.pytorch.org/tutorials/unstable/flight_recorder_tutorial.html

MAX_RANKS = 256
MAX_OPCODES = 2_000_000
"""Opcodes of a dump: two thousand operations with their stacks take half of them."""
MAX_SHOWN_RANKS = 4
_NAME = regex(r"(?:.*[_.-])?rank[_.-]?(\d{1,5})")
_OURS = regex(r"torch|c10d|distributed|recorder")
"""Words in the path of a frame that is none of the user's."""


@dataclass(frozen=True, slots=True)
class _Last:
    """The last operation of a group that a rank has entered."""

    number: int
    name: str
    state: str
    line: str


def flight_lines(folder: Path) -> list[str]:
    """Return what the dumps in a folder say of ranks that wait for each other, a line per group; none without dumps."""
    groups: dict[str, dict[int, _Last]] = defaultdict(dict)
    for file in _dumps(folder):
        rank = int(found[1]) if (found := _NAME.fullmatch(file.name)) else 0
        for group, last in _last_of(_read(file)).items():
            groups[group][rank] = last
    return [line for group, ranks in sorted(groups.items()) if (line := _waiting_ranks(group, ranks))]


def _dumps(folder: Path) -> list[Path]:
    try:
        found = [
            entry for entry in entries(folder) if entry.name.startswith("nccl_trace") and _NAME.fullmatch(entry.name)
        ]
    except (OSError, InputError):
        return []
    return found[:MAX_RANKS]


def _read(file: Path) -> object:
    """Return a dump as plain values; nothing where it cannot be read."""
    try:
        with open_input(file) as stream:
            data = stream.read(MAX_FILE + 1)
        if len(data) > MAX_FILE:
            return None
        return json.loads(data) if data[:1] == b"{" else read_pickled(file, MAX_OPCODES)
    except (OSError, ValueError, RecursionError, InputError):
        return None


def _last_of(dump: object) -> dict[str, _Last]:
    """Return the last operation of each group in a dump."""
    found: dict[str, _Last] = {}
    listed = dump.get("entries") if isinstance(dump, dict) else None
    for entry in listed if isinstance(listed, list) else []:
        if not isinstance(entry, dict) or entry.get("is_p2p"):
            continue
        number = entry.get("collective_seq_id")
        group = _group(entry.get("process_group"))
        if isinstance(number, int) and (group not in found or number > found[group].number):
            name = _clean(entry.get("profiling_name")).partition(":")[2] or "an operation"
            found[group] = _Last(number, name, _clean(entry.get("state")), _line(entry.get("frames")))
    return found


def _group(named: object) -> str:
    return _clean(named[1] or named[0]) if isinstance(named, list | tuple) and len(named) > 1 else ""


def _line(frames: object) -> str:
    """Return the innermost line that is the user's own."""
    for frame in frames if isinstance(frames, list) else []:
        if isinstance(frame, dict) and not _OURS.search(str(frame.get("filename", "")).lower()):
            return f"{PurePath(_clean(frame.get('filename'))).name}:{_clean(frame.get('line'))}"
    return ""


def _waiting_ranks(group: str, ranks: Mapping[int, _Last]) -> str:
    """Say which ranks have entered fewer operations than the others, or another one; "" where all are as far."""
    if len(ranks) < 2:
        return ""
    farthest = max(rank.number for rank in ranks.values())
    behind = {rank: last for rank, last in ranks.items() if last.number < farthest}
    waiting = next(rank for rank in ranks.values() if rank.number == farthest)
    if behind:
        some = next(iter(behind.values()))
        its = f", its last is {some.name} {some.number}{_place_suffix(some)}"
        return (
            f"{_ranks(behind)} behind in group {group}: not in {waiting.name} {farthest}, in which "
            f"{len(ranks) - len(behind)} of {len(ranks)} wait{_place_suffix(waiting)}{its}"
        )
    names = {rank.name for rank in ranks.values()}
    if len(names) > 1:
        operations = ", ".join(
            f"rank {rank} in {last.name}{_place_suffix(last)}" for rank, last in list(ranks.items())[:MAX_SHOWN_RANKS]
        )
        return f"ranks of group {group} are in different operations at number {farthest}: {operations}"
    return ""


def _ranks(behind: Mapping[int, _Last] | Sequence[int]) -> str:
    numbers = [str(rank) for rank in behind]
    shown = ", ".join(numbers[:MAX_SHOWN_RANKS]) + (
        f" and {len(numbers) - MAX_SHOWN_RANKS} more" if len(numbers) > MAX_SHOWN_RANKS else ""
    )
    return f"rank {shown} is" if len(numbers) == 1 else f"ranks {shown} are"


def _place_suffix(last: _Last) -> str:
    return f" at {last.line}" if last.line else ""


def _clean(value: object) -> str:
    return shorten(clean(str(value if value is not None else "")), 120)


# The recordings of the ranks of one run → one run: the first rank's, with what the others tell of the same steps.
#
# Each rank writes a recording of its own, `NAME.rank0.jsonl` and so on. Beside the metrics of the first one stand the
# loss, the gradient norm and the times of each rank under names such as `loss/rank_1`.

SERIES_OF_RANKS = {
    "loss": "loss", "grad_norm": "grad_norm", "step_time": "step_time_s", "data_time": "data_time_s",
    "time/forward_s": "forward_time_s",
}  # fmt: skip
"""What is kept of each rank: the name of the series in its recording, and the beginning of that in the whole."""
TIMEOUT_MESSAGE = "collective operation timeout, by the flight recorder"
"""How the message of ranks that wait for each other begins ..."""
WENT_ON = "steps went on"
"""... where the recording does not say last that they went on: how it says so."""
NO_STEP = "no step for"
"""How a recording says that no step came for long."""
_RANK = regex(r"(?P<of>.+)\.rank(?P<rank>\d{1,5})\.jsonl")

Named = tuple[str, Run]


def joined_ranks(runs: Sequence[Named]) -> list[Named]:
    """Return logs, the recordings of several ranks of a run joined under the name of the first of them."""
    ranks: dict[str, dict[int, Named]] = defaultdict(dict)
    for name, run in runs:
        found = _RANK.fullmatch(PurePath(name).name)
        if found and run.formats == (RECORDER,):
            ranks[found["of"]][int(found["rank"])] = (name, run)
    several = {of: dict(sorted(each.items())) for of, each in ranks.items() if len(each) > 1}
    taken = {name for each in several.values() for name, _ in each.values()}
    return [*(_joined(each) for each in several.values()), *(item for item in runs if item[0] not in taken)]


def with_its_hang(run: Run, folder: Path) -> Run:
    """Return a recording with how it ends where steps came no more, by its watchdog and by flight recorders.

    Those of its ranks are read that stand in its folder.
    """
    if run.formats != (RECORDER,):
        return run
    lines = flight_lines(folder)
    incidents = [Incident(run.last_step, f"flight recorder: {line}") for line in lines]
    went_on = bool(run.incidents) and run.incidents[-1].text.startswith(WENT_ON)
    ended = [] if went_on else [Message(0, f"{TIMEOUT_MESSAGE}: {line}", run.records) for line in lines]
    stood = "" if went_on else next((incident.text for incident in run.incidents if _is_last_step(incident, run)), "")
    ending = Ending("silence", stood) if stood and run.ending.how in ("open", "cut") else run.ending
    return replace(run, incidents=(*run.incidents, *incidents), messages=(*run.messages, *ended), ending=ending)


def _is_last_step(incident: Incident, run: Run) -> bool:
    return NO_STEP in incident.text and incident.step >= run.last_step


def _joined(ranks: Mapping[int, Named]) -> Named:
    name, lead = next(iter(ranks.values()))
    added = {
        f"{prefix}/rank_{rank}": replace(run[metric], name=f"{prefix}/rank_{rank}", logged_as="")
        for rank, (_, run) in ranks.items()
        for metric, prefix in SERIES_OF_RANKS.items()
        if metric in run
    }
    others = [(rank, run) for rank, (_, run) in ranks.items() if run is not lead]
    incidents = [
        replace(incident, text=f"rank {rank}: {incident.text}") for rank, run in others for incident in run.incidents
    ]
    notes = [f"rank {rank}: {note}" for rank, run in others for note in run.notes if note not in lead.notes]
    run = replace(
        lead,
        series={**lead.series, **added},
        segments=tuple(segment.with_series(added) for segment in lead.segments),
        messages=tuple(message for _, run in ranks.values() for message in run.messages),
        incidents=(*lead.incidents, *incidents),
        notes=(*lead.notes, f"joined the recordings of {len(ranks)} ranks: loss, gradient norm and times", *notes),
    )
    return name, run
