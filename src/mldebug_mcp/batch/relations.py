"""What columns of a table state about each other, and the rows in which they disagree."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import numpy as np

from mldebug_mcp.batch.batch import Problem
from mldebug_mcp.batch.columns import (
    INPUT_LENGTHS,
    REFERENCES,
    TARGET_LENGTHS,
    Table,
    class_labels,
    depth,
    find,
    is_float,
    numbers,
    ragged_or_none,
    row_count,
)
from mldebug_mcp.batch.sequences import Bools, Ints, Ragged

Found = tuple[str, str, Ints | None]
"""A check, what it reports, and the places of the rows in the table; None where it is about no rows."""
MAX_SHARE_OFF = 0.5
"""Share of the rows up to which they break what the columns state. Chosen: beyond it the columns mean otherwise."""


def relation_problems(table: Table, first: int) -> Iterator[Problem]:
    """Yield what the columns of a table disagree in, whose first row has the number `first`."""
    for look in (_long_targets, _negatives, _transitions, _split_masks, _edges, _answers):
        for check, summary, places in look(table):
            if places is None or len(places):
                yield Problem.at(check, summary, () if places is None else places, table, first)


def _numbers(table: Table, names: tuple[str, ...]) -> Ints | None:
    """Return the first column of these names that holds a whole number for each row."""
    columns = (table.columns[name] for name in names if name in table.columns)
    return next((values for column in columns if (values := class_labels(column, row_count(column))) is not None), None)


# Transcripts that are longer than what the model puts out for them.


def _long_targets(table: Table) -> Iterator[Found]:
    """Yield the rows whose symbols, with a blank between equal ones, do not fit their frames.

    Where most do not, the lengths are those of text and speech that is made of it.
    """
    frames, symbols = _numbers(table, INPUT_LENGTHS), _numbers(table, TARGET_LENGTHS)
    if frames is None or symbols is None or len(frames) != len(symbols):
        return
    name = find(table.columns, "", "labels")
    rows = None if name is None else ragged_or_none(table.columns[name])
    blanks = np.zeros(len(symbols), np.int64)
    if rows is not None and rows.rows == len(symbols):
        rows = rows.up_to(symbols)
        again = np.flatnonzero(rows.flat[1:] == rows.flat[:-1])
        row = rows.row_of(again)
        blanks = np.bincount(row[row == rows.row_of(again + 1)], minlength=rows.rows)
    long: Ints = np.flatnonzero(symbols + blanks > frames)
    if len(long) <= MAX_SHARE_OFF * len(frames):
        yield "target_longer_than_input", "", long


# Items that were drawn as negatives and are the positive one.

_NEGATIVE = re.compile(r"neg(?:ative)?(?=_|s?$)")
_OF_ITEMS = re.compile(r"item|ids?(?![a-z])")
"""What a column of one drawn item for each row has in its name: other pairs of such columns may be counts."""


def drawn_items(table: Table) -> Iterator[tuple[Ints, Ragged]]:
    """Yield the positive item of each row, and those that were drawn against it."""
    for name, column in table.columns.items():
        if not _NEGATIVE.search(name) or is_float(column) or depth(column) > len(("rows", "drawn")):
            continue
        drawn = ragged_or_none(column)
        if drawn is None or (depth(column) == 1 and not _OF_ITEMS.search(name)):
            continue
        stem = _NEGATIVE.sub(lambda word: {"neg": "pos", "negative": "positive"}[word[0]], name)
        stem = re.sub(r"s$", "", stem)
        positives = (table.columns[other] for other in (stem, f"{stem}s") if other in table.columns)
        items = next((found for other in positives if (found := class_labels(other, drawn.rows)) is not None), None)
        if items is not None:
            yield items, drawn


def _negatives(table: Table) -> Iterator[Found]:
    for items, drawn in drawn_items(table):
        same = np.flatnonzero(drawn.flat == np.repeat(items, drawn.lengths))
        yield "positive_equals_negative", "", np.unique(drawn.row_of(same))


# Transitions of episodes, for offline reinforcement learning.

_ENDS = ("terminals", "terminal", "timeouts", "timeout", "dones", "done", "terminated", "truncated", "truncations",
         "terminations", "is_last", "episode_ends")  # fmt: skip
"""Columns that mark the last step of an episode, as D4RL, Gymnasium, Minari, and RLDS name them."""
MIN_TRANSITIONS = 16
"""Rows from which steps are compared. Chosen: fewer show no order."""
MIN_SHARE_COPIED = 0.9
"""Share of the rows that are their own successor from which the whole column is a copy. Chosen."""


MIN_SHARE_SAME = 0.01
"""Share of such steps. Chosen: a few may be where a file was joined."""
MIN_SHARE_SAME_WITHOUT_ENDS = 0.05
"""The same where no column marks ends: an agent may stand still in the last step of an episode. Chosen by hand."""


def _transitions(table: Table) -> Iterator[Found]:
    """Yield the steps whose next observation is their own, where the row behind them goes on from another."""
    for name, column in table.columns.items():
        after = table.columns.get(f"next_{name}")
        if after is None or row_count(column) < MIN_TRANSITIONS:
            continue
        now, then = numbers(column), numbers(after)
        if now is None or then is None or now.shape != then.shape or len(now) != row_count(column):
            continue
        own = (now == then).reshape(len(now), -1).all(axis=1)
        follows = (then[:-1] == now[1:]).reshape(len(now) - 1, -1).all(axis=1)
        ends = _episode_ends(table, len(now))
        inside = ~ends[:-1]
        least = (MIN_SHARE_SAME if ends.any() else MIN_SHARE_SAME_WITHOUT_ENDS) * len(now)
        summary = f"next_{name} is the {name} of the same row"
        wrong: Ints = np.flatnonzero(inside & own[:-1] & ~follows)
        in_order = inside.any() and follows[inside].mean() > MAX_SHARE_OFF
        if (in_order or own.mean() >= MIN_SHARE_COPIED) and len(wrong) >= least:
            yield "next_observation_same", summary, wrong


def _episode_ends(table: Table, rows: int) -> Bools:
    ends = np.zeros(rows, np.bool_)
    for name in _ENDS:
        column = table.columns.get(name)
        if column is not None and (marks := class_labels(column, rows)) is not None:
            ends |= marks != 0
    return ends


# Masks of a graph's nodes that divide them into splits.

_TRAIN_MASK = "train_mask"
_HELD_OUT_MASKS = ("val_mask", "valid_mask", "validation_mask", "test_mask")


def _split_masks(table: Table) -> Iterator[Found]:
    """Yield the nodes that a mask of training and one of evaluation both hold."""
    train = table.columns.get(_TRAIN_MASK)
    for name in _HELD_OUT_MASKS:
        held = table.columns.get(name)
        if not isinstance(train, np.ndarray) or not isinstance(held, np.ndarray) or train.shape != held.shape:
            continue
        both = ((train != 0) & (held != 0)).reshape(len(train), -1).any(axis=1)
        summary = f"{int(both.sum())} of {int((held != 0).sum())} rows of {name} are in {_TRAIN_MASK} as well"
        yield "split_leakage", summary, np.flatnonzero(both)


def _edges(table: Table) -> Iterator[Found]:
    """Yield the numbers of nodes in edges that the features of nodes do not reach."""
    edges, nodes = table.columns.get("edge_index"), table.columns.get("x")
    if not isinstance(edges, np.ndarray) or edges.dtype.kind not in "iu" or nodes is None or 2 not in edges.shape:
        return
    count, ends = row_count(nodes), edges.astype(np.int64)
    outside = int(((ends < 0) | (ends >= count)).sum())
    if outside:
        summary = f"{outside:,} of {ends.size:,} numbers in edge_index are no node: x has {count:,} nodes, from 0 on"
        yield "edge_out_of_range", f"{summary}, and the greatest number is {int(ends.max()):,}", None


# The answer of a problem, and the last result of its worked solution.

_SOLUTIONS = ("solution", "rationale", "worked_solution", "extra_info.answer")
_ANSWERS = ("answer", *REFERENCES, "reward_model.ground_truth")
"""Columns of worked solutions, and of the answers alone; the last of each as verl writes them."""
_RESULT_MARKS = (("####", "\n"), ("\\boxed{", "}"))
"""What stands before and behind the result: in GSM8K, and in LaTeX."""
MAX_ROUNDING = 0.01
"""Share by which an answer with a fraction may be rounded. Chosen: two digits."""
MIN_ANSWERS_OFF = 3
"""Answers that are no slip of the pen. Chosen: collections hold a few."""


def _answers(table: Table) -> Iterator[Found]:
    """Yield the rows whose answer is another number than their solution ends with; rated rows have the model's own."""
    if "reward" in table.columns:
        return
    solutions = next((table.columns[name] for name in _SOLUTIONS if name in table.columns), None)
    answers = next((table.columns[name] for name in _ANSWERS if name in table.columns), None)
    if not isinstance(solutions, list) or not isinstance(answers, list):
        return
    pairs = [
        (place, given, result)
        for place, (solution, answer) in enumerate(zip(solutions, answers, strict=False))
        if (result := _number(_result(solution))) is not None and (given := _number(answer)) is not None
    ]
    off = [place for place, given, result in pairs if not _is_same(given, result)]
    if MIN_ANSWERS_OFF <= len(off) <= MAX_SHARE_OFF * len(pairs):
        yield "answer_contradicts_solution", f"of {len(pairs)} answers that their solution states", np.array(off)


def _is_same(given: float, result: float) -> bool:
    whole = given.is_integer() and result.is_integer()
    return given == result or (not whole and math.isclose(given, result, rel_tol=MAX_ROUNDING))


def _result(solution: object) -> str:
    """Return what stands behind the last mark of a result."""
    for mark, end in _RESULT_MARKS:
        _, found, behind = solution.rpartition(mark) if isinstance(solution, str) else ("", "", "")
        if found:
            return behind.partition(end)[0]
    return ""


def _number(value: object) -> float | None:
    """Return an answer as a number; None if it is none."""
    text = str(value).strip().strip("$").replace(",", "").removesuffix(".")
    try:
        return float(text)
    except ValueError:
        return None
