"""Columns under the names that they were logged with → columns under canonical names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, count

import numpy as np

from mldebug_mcp.logs.columns import Columns
from mldebug_mcp.logs.names import COUNTERS, canonical, factor, rank
from mldebug_mcp.logs.roles import role_of
from mldebug_mcp.text import shorten

_OF_TRAINING = re.compile(r"train(?:ing)? ", re.IGNORECASE)
_BARE = frozenset({"loss", "acc", "accuracy", "acc@1", "top1"})
MAX_NAME = 200
"""Characters of a metric name."""


def join_counters(columns: Columns) -> None:
    """Make one counter of several spellings that take turns, each record having one, if together they ascend."""
    for counter in COUNTERS:
        spellings = sorted((raw for raw in columns if canonical(raw) == counter), key=rank)
        for raw in spellings[1:]:
            joined = columns[spellings[0]].joined(columns[raw])
            if joined is not None and bool(np.all(np.diff(joined.values()) >= 0)):
                columns[spellings[0]] = joined
                del columns[raw]


def join_cut_box(columns: Columns) -> None:
    """Take what stands under no section because the log begins inside of a box for what it is in the later boxes.

    The first record of Stable-Baselines then has a `value_loss`, and all others a `train/value_loss`.
    """
    below: dict[str, list[str]] = {}
    for one in columns:
        if "/" in one:
            below.setdefault(one.rpartition("/")[2], []).append(one)
    for raw in [raw for raw in columns if "/" not in raw and len(columns[raw]) == 1]:
        later = [one for one in below.get(raw, ()) if canonical(one) == canonical(raw)]
        if len(later) == 1 and columns[raw].arrays()[0][0] < columns[later[0]].arrays()[0][0]:
            joined = columns[raw].joined(columns[later[0]])
            if joined is not None:
                columns[later[0]] = joined
                del columns[raw]


def _means_over_epochs(columns: Columns) -> set[str]:
    """Return what is named of training beside the same of a single batch that is told no more often.

    "Train Loss", as it is printed at the end of an epoch, is its mean, and what evaluation is compared with; the loss
    of a bar, or of the batch that is printed once in an epoch, is that of one batch.
    """
    train = {raw for raw in columns if _OF_TRAINING.match(raw) and canonical(raw) in ("loss", "accuracy")}
    bare = {canonical(raw): len(columns[raw]) for raw in columns if raw.lower() in _BARE}
    return {raw for raw in train if bare.get(canonical(raw), len(columns[raw]) + 1) <= len(columns[raw])}


def named_columns(columns: Columns) -> tuple[Columns, list[str]]:
    """Give each column its canonical name; of several that claim one role the closest gets it.

    That is the one whose name is plainest, then the one with most values: the others keep their own names. What stands
    under several namespaces that are not understood are parts, as of an encoder and a decoder.

    Args:
        columns: By the names that they were logged with.

    Returns:
        The columns under their names, in the order in which they came, and notes on what was chosen.
    """
    named: Columns = {}
    notes: list[str] = []
    taken: dict[str, str] = {}
    numbers: dict[str, Iterator[int]] = {}
    means, parts = _means_over_epochs(columns), _in_unknown_places(columns)
    for raw in sorted(
        columns, key=lambda raw: (raw not in means, rank(raw), -len(columns[raw]), raw != canonical(raw))
    ):
        name = shorten(raw if raw in parts else canonical(raw), MAX_NAME)
        if name in named:
            both = f"{shorten(taken[name], 60)!r} and {shorten(raw, 60)!r}"
            notes.append(f"{both} both name the {name}: the first is read as it")
            # Names that differ in what cannot be seen are told apart by a number.
            own = shorten(raw, MAX_NAME)
            further = (f"{own} ({number})" for number in numbers.setdefault(own, count(2)))
            name = next(one for one in chain([own], further) if one not in named)
        taken[name] = raw
        column = columns[raw]
        if canonical(raw) == name and factor(raw) != 1.0:
            column.scale(factor(raw))
        column.logged_as = column.logged_as or (raw if raw != name else "")
        named[name] = column
    order = {id(column): position for position, column in enumerate(columns.values())}
    return dict(sorted(named.items(), key=lambda item: order[id(item[1])])), notes


def _in_unknown_places(columns: Columns) -> set[str]:
    """Return the columns of one role that stand under several namespaces that are not understood."""
    places: dict[str, list[str]] = {}
    for raw in columns:
        role = role_of(raw)
        if role is not None and role.namespace and role.name:
            places.setdefault(role.name, []).append(raw)
    return {raw for several in places.values() if len(several) > 1 for raw in several}
