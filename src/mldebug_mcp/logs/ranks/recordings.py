"""The recordings of the ranks of one run → one run: the first rank's, with what the others tell of the same steps.

Each rank writes a recording of its own, `NAME.rank0.jsonl` and so on. Beside the metrics of the first one stand the
loss, the gradient norm and the times of each rank under names such as `loss/rank_1`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath

from mldebug_mcp.logs.attempt import Ending, Message
from mldebug_mcp.logs.flight import flight_lines
from mldebug_mcp.logs.run import Incident, Run, Segment, Series

FORMAT = "recorder"
"""The format of the logs that are joined here."""
TOLD = {
    "loss": "loss", "grad_norm": "grad_norm", "step_time": "step_time_s", "data_time": "data_time_s",
    "time/forward_s": "forward_time_s",
}  # fmt: skip
"""What is told of each rank: the name of the series in its recording, and the beginning of that in the whole."""
STOPPED = "collective operation timeout, by the flight recorder"
"""How the message of ranks that wait for each other begins ..."""
WENT_ON = "steps went on"
"""... where the recording does not say last that they went on: how it says so."""
STANDS = "no step for"
"""How a recording says that no step came for long."""
_RANK = re.compile(r"(?P<of>.+)\.rank(?P<rank>\d{1,5})\.jsonl")

Named = tuple[str, Run]


def joined_ranks(runs: Sequence[Named]) -> list[Named]:
    """Return logs, the recordings of several ranks of a run joined under the name of the first of them."""
    ranks: dict[str, dict[int, Named]] = defaultdict(dict)
    for name, run in runs:
        found = _RANK.fullmatch(PurePath(name).name)
        if found and run.formats == (FORMAT,):
            ranks[found["of"]][int(found["rank"])] = (name, run)
    several = {of: dict(sorted(each.items())) for of, each in ranks.items() if len(each) > 1}
    taken = {name for each in several.values() for name, _ in each.values()}
    return [*(_joined(each) for each in several.values()), *(item for item in runs if item[0] not in taken)]


def with_its_hang(run: Run, folder: Path) -> Run:
    """Return a recording with how it ends where steps came no more, by its watchdog and by flight recorders.

    Those of its ranks are read that stand in its folder.
    """
    if run.formats != (FORMAT,):
        return run
    lines = flight_lines(folder)
    told = [Incident(run.last_step, f"flight recorder: {line}") for line in lines]
    went_on = bool(run.incidents) and run.incidents[-1].text.startswith(WENT_ON)
    ended = [] if went_on else [Message(0, f"{STOPPED}: {line}", run.records) for line in lines]
    stood = "" if went_on else next((one.text for one in run.incidents if _is_last_step(one, run)), "")
    ending = Ending("silence", stood) if stood and run.ending.how in ("open", "cut") else run.ending
    return replace(run, incidents=(*run.incidents, *told), messages=(*run.messages, *ended), ending=ending)


def _is_last_step(incident: Incident, run: Run) -> bool:
    return STANDS in incident.text and incident.step >= run.last_step


def _joined(ranks: Mapping[int, Named]) -> Named:
    name, lead = next(iter(ranks.values()))
    added = {
        f"{told}/rank_{rank}": replace(run[metric], name=f"{told}/rank_{rank}", logged_as="")
        for rank, (_, run) in ranks.items()
        for metric, told in TOLD.items()
        if metric in run
    }
    others = [(rank, run) for rank, (_, run) in ranks.items() if run is not lead]
    incidents = [replace(one, text=f"rank {rank}: {one.text}") for rank, run in others for one in run.incidents]
    notes = [f"rank {rank}: {note}" for rank, run in others for note in run.notes if note not in lead.notes]
    run = replace(
        lead,
        series={**lead.series, **added},
        segments=tuple(_with(segment, added) for segment in lead.segments),
        messages=tuple(one for _, run in ranks.values() for one in run.messages),
        incidents=(*lead.incidents, *incidents),
        notes=(*lead.notes, f"joined the recordings of {len(ranks)} ranks: loss, gradient norm and times", *notes),
    )
    return name, run


def _with(segment: Segment, added: Mapping[str, Series]) -> Segment:
    inside = {name: one.between(segment.first_step, segment.last_step) for name, one in added.items()}
    return replace(segment, series={**segment.series, **{name: one for name, one in inside.items() if len(one)}})
