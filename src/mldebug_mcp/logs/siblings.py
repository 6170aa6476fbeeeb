"""Runs of one sweep: beside one another, with most settings in common, or the same metrics over as many steps."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath

from mldebug_mcp.logs.run import Run, Scalar, Sibling

SHARED = 0.7
"""Share of the settings of two runs, or of their metrics, that are the same in runs of one sweep. Chosen by hand."""
AS_LONG = 3.0
"""Times as many steps that the longer of two runs with the same metrics may have. Chosen by hand."""
MAX_SIBLINGS = 50
_FIRST_WORD = re.compile(r"[^\W\d_]+")


def siblings_of(name: str, run: Run, others: Sequence[tuple[str, Run]]) -> tuple[Sibling, ...]:
    """Return which of other runs belong to the same sweep, with what is set otherwise in them.

    Args:
        name: The name of the run.
        run: The run.
        others: Other runs, by name.
    """
    found = [
        Sibling(other_name, other.path, _otherwise(run.config, other.config), other)
        for other_name, other in others
        if _share_settings(run.config, other.config) or (_may_be_one_sweep(name, other_name) and _log_alike(run, other))
    ]
    return tuple(found[:MAX_SIBLINGS])


def _may_be_one_sweep(name: str, other: str) -> bool:
    """Say whether the names of two runs allow that they are of one sweep: logs of one folder have to begin alike."""
    here, there = PurePath(name), PurePath(other)
    if here.parent != there.parent or not (here.suffix and there.suffix):
        return True
    first, other_first = (_FIRST_WORD.match(path.name) for path in (here, there))
    return first is not None and other_first is not None and first[0] == other_first[0]


def _otherwise(own: Mapping[str, Scalar], other: Mapping[str, Scalar]) -> dict[str, Scalar]:
    names = dict.fromkeys((*own, *other))
    return {name: other.get(name) for name in names if own.get(name) != other.get(name)}


def _share_settings(own: Mapping[str, Scalar], other: Mapping[str, Scalar]) -> bool:
    names = own.keys() | other.keys()
    same = sum(name in own and name in other and own[name] == other[name] for name in names)
    return same > 1 and same >= SHARED * len(names)


def _log_alike(run: Run, other: Run) -> bool:
    names = run.series.keys() | other.series.keys()
    if run.step_name != other.step_name or len(run.series.keys() & other.series.keys()) < SHARED * len(names):
        return False
    short, long = sorted((run.last_step, other.last_step))
    return bool(names) and long <= AS_LONG * short
