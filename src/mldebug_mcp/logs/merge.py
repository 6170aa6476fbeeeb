"""Several logs of one run → one Run: each metric once, from the log that tells it best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from mldebug_mcp.logs.continued import goes_further
from mldebug_mcp.logs.kinds import kind_of_run
from mldebug_mcp.logs.names import canonical
from mldebug_mcp.logs.run import Run, Segment, Series

RESULTS = ("loss", "eval_loss", "reward")
"""Metrics that no two runs share number by number."""
LEAST_COMMON, ALIKE = 3, 1e-3
"""Steps that two logs must share to be compared, and the relative difference that rounding makes. Chosen."""


def merged(runs: Sequence[tuple[str, Run]]) -> Run:
    """Merge the logs of one run by step.

    The fullest log leads. From the others come the metrics that it lacks, where both count the same steps, the error
    lines and the configuration. A metric that several logs hold is taken from one of them: nothing is counted twice.
    From a log of the same format with other results at the same steps, which is of another run, come the error lines
    alone.

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
    series, config, messages, formats = dict(lead.series), dict(lead.config), list(lead.messages), list(lead.formats)
    segments = list(lead.segments)
    taken, skipped, others = [name], [], []
    for other_name, other in ordered[1:]:
        messages += other.messages
        if _is_another(lead, other):
            others.append(other_name)
            continue
        config = {**other.config, **config}
        added = {metric: one for metric, one in other.series.items() if metric not in series}
        fits = other.step_name == lead.step_name and other.first_step <= lead.last_step and other.step_name != "record"
        if not added or not fits:
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
    if others:
        notes.append(f"of another run, as the results differ: {', '.join(others[:6])}; name one to read it")
    return replace(
        lead,
        series=series,
        config=config,
        segments=tuple(segments),
        kind=kind_of_run(series, config),
        formats=tuple(dict.fromkeys(formats)),
        messages=tuple(messages),
        notes=tuple(dict.fromkeys(notes)),
    )


def _is_another(one: Run, other: Run) -> bool:
    """Return whether two logs tell different results for the same steps; another format may have averaged them."""
    if one.formats != other.formats:
        return False
    return any(_differ(one[name], other[name]) for name in RESULTS if name in one and name in other)


def _differ(one: Series, other: Series) -> bool:
    steps, here, there = np.intersect1d(one.step, other.step, return_indices=True)
    if len(steps) < LEAST_COMMON:
        return False
    alike = np.isclose(one.value[here], other.value[there], rtol=ALIKE, atol=0, equal_nan=True)
    return bool(np.mean(alike) < 0.5)


def of_evaluation(run: Run) -> Run:
    """Return a log of evaluations alone with its metrics named as such: `loss` is `eval_loss`."""

    def renamed(series: Mapping[str, Series]) -> dict[str, Series]:
        names = {name: name if name.startswith("eval_") else canonical(f"eval_{name}") for name in series}
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
