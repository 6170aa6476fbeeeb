"""Several logs of one run → one Run: each metric once, from the log that tells it best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from mldebug_mcp.logs.attempt import SURVIVED
from mldebug_mcp.logs.continued import goes_further
from mldebug_mcp.logs.names import canonical
from mldebug_mcp.logs.run import Message, Run, Segment, Series
from mldebug_mcp.logs.settings import Settings

LEAST_BOTH = 3
"""Records that tell step and epoch, by which epochs are placed."""


def merged(runs: Sequence[tuple[str, Run]]) -> Run:
    """Merge the logs of one run by step.

    The fullest log leads. From the others come the metrics that it lacks, where both count the same steps or the
    leading log tells the epoch of its steps, the error lines and the configuration. A metric that several logs hold is
    taken from one of them: nothing is counted twice.

    Args:
        runs: What was read, with the name of each file; at least one.
    """
    ordered = sorted(runs, key=lambda item: _weight(item[1]), reverse=True)
    # A Trainer's state ends at its last checkpoint.
    further = next((item for item in ordered[1:] if goes_further(ordered[0][1], item[1])), None)
    if further is not None:
        ordered = [further, *(item for item in ordered if item is not further)]
    name, lead = ordered[0]
    notes = list(lead.notes)
    series, settings, messages, formats = dict(lead.series), lead.settings, list(lead.messages), list(lead.formats)
    segments, ending = list(lead.segments), lead.ending
    taken, skipped = [name], []
    for other_name, other in ordered[1:]:
        messages += _placed(other, lead)
        ending = other.ending if ending.how == "open" else ending
        settings = Settings.merged(settings, other.settings)
        placed = _on_the_axis_of(lead, other)
        added = {metric: one for metric, one in placed.items() if metric not in series}
        if not added:
            skipped.append(other_name)
            continue
        series |= added
        segments = [_with(segment, added, alone=len(segments) == 1) for segment in segments]
        formats += other.formats
        taken.append(other_name)
        notes += [note for note in other.notes if note not in notes]
    if len(taken) > 1:
        notes.append(f"merged by {lead.step_name}: {', '.join(taken)}")
    elif len(ordered) > 1:
        notes.append(f"read {name}")
    if skipped:
        notes.append(f"not merged, as they repeat it or count otherwise: {', '.join(skipped[:6])}; name one to read it")
    return replace(
        lead,
        series=series,
        settings=settings,
        segments=tuple(segments),
        ending=ending,
        formats=tuple(dict.fromkeys(formats)),
        messages=tuple(messages),
        incidents=tuple(one for _, run in ordered for one in run.incidents),
        notes=tuple(dict.fromkeys(notes)),
    )


def _placed(other: Run, lead: Run) -> list[Message]:
    """Return the error lines of a log as they stand to the records of another: those that ended it are at the end."""
    before = max(0, lead.records - SURVIVED - 1)
    return [
        replace(one, records=lead.records if one in other.fatal else min(one.records, before)) for one in other.messages
    ]


def _on_the_axis_of(lead: Run, other: Run) -> Mapping[str, Series]:
    """Return the metrics of a log by the steps of another; empty where the two have no axis in common.

    A log that counts epochs is placed by the records of the other that tell both: an evaluation stands where its epoch
    ended.
    """
    if other.step_name == lead.step_name:
        return other.series if other.step_name != "record" and other.first_step <= lead.last_step else {}
    if other.step_name != "epoch" or "epoch" not in lead or len(lead["epoch"]) < LEAST_BOTH:
        return {}
    step, epoch = lead["epoch"].step, lead["epoch"].value
    if bool(np.any(epoch[1:] < epoch[:-1])):
        return {}
    # Where one counts its epochs from 0 and the other from 1, the last ones tell.
    counted_on = other.first_step == 1 and epoch[0] == 0 and other.last_step == epoch[-1] + 1
    placed = {}
    for name, one in other.series.items():
        at = np.searchsorted(epoch, one.step - counted_on, side="right") - 1
        if bool(np.all(at >= 0)):
            placed[name] = Series(name, step[at], one.value)
    return placed


def of_evaluation(run: Run) -> Run:
    """Return a log of evaluations alone with its metrics named as such: `loss` is `eval_loss`.

    What was named as that of another set, such as `test_loss`, then keeps its own name.
    """

    def renamed(series: Mapping[str, Series]) -> dict[str, Series]:
        bare = {name: canonical(f"eval_{name}") for name in series if not name.startswith("eval_")}
        taken = set(bare.values())
        names = {
            name: bare.get(name) or (one.logged_as or name if name in taken else name) for name, one in series.items()
        }
        return {names[name]: replace(one, name=names[name]) for name, one in series.items()}

    segments = tuple(replace(segment, series=renamed(segment.series)) for segment in run.segments)
    return replace(run, series=renamed(run.series), segments=segments)


def _weight(run: Run) -> tuple[bool, int, bool, int]:
    """A Trainer's own history leads; else the log with the most points of the loss, then the most records."""
    loss = max((len(run.series[name]) for name in ("loss", "reward", "eval_loss") if name in run.series), default=0)
    return ("hf_trainer_state" in run.formats, loss, run.step_name == "step", run.records)


def _with(segment: Segment, added: Mapping[str, Series], *, alone: bool) -> Segment:
    inside = {name: one if alone else one.between(segment.first_step, segment.last_step) for name, one in added.items()}
    return replace(segment, series={**segment.series, **{name: one for name, one in inside.items() if len(one)}})
