"""What columns of a table state about each other, and the rows in which they disagree."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice

import numpy as np
import numpy.typing as npt

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

Array = npt.NDArray[np.generic]
Found = tuple[str, str, Ints | None]
"""A check, what it reports, and the places of the rows in the table; None where it is about no rows."""
MAX_SHARE_OFF = 0.5
"""Share of the rows up to which they break what the columns state. Chosen: beyond it the columns mean otherwise."""


def relation_problems(table: Table, first: int) -> Iterator[Problem]:
    """Yield what the columns of a table disagree in, whose first row has the number `first`."""
    for look in (
        _long_targets, _negatives, _last_items, _transitions, _splits, _edges, _answers, _languages,
    ):  # fmt: skip
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


# Histories of items, and the item that is to be foretold from them.

_HISTORY = re.compile(r"(?<![a-z])(?:hist(?:ory)?|seqs?|sequences?|sessions?)(?![a-z])")
_NEXT_ITEMS = ("target_item", "target", "next_item", "label", "labels", "item_id", "positive_item", "pos_item")


def histories(table: Table) -> Iterator[tuple[str, Ragged]]:
    """Yield the columns of each row's items so far, by their names."""
    for name, column in table.columns.items():
        if _HISTORY.search(name) and depth(column) == len(("rows", "items")) and not is_float(column):
            rows = ragged_or_none(column)
            yield from [] if rows is None else [(name, rows)]


def _last_items(table: Table) -> Iterator[Found]:
    """Yield the histories that end with the item to be foretold in nearly all rows; 0 is padding."""
    wanted = _numbers(table, _NEXT_ITEMS)
    for name, rows in histories(table) if wanted is not None else ():
        if wanted is not None and len(wanted) == rows.rows >= MIN_TRANSITIONS and rows.lengths.all():
            same = int(((rows.flat[rows.offsets[1:] - 1] == wanted) & (wanted != 0)).sum())
            if same >= MIN_SHARE_COPIED * len(wanted):
                yield "equal_columns", f"{name} ends with the target in {same:,} of {len(wanted):,} rows", None


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


# Arrays of training and of evaluation next to each other: masks of nodes, edges, and images.

_INPUTS = re.compile(r"(?:train_)?(?:x|im|in|feat|data)", re.IGNORECASE)
_HELD_OUT_WORDS = ("val", "valid", "validation", "dev", "test")


def _splits(table: Table) -> Iterator[Found]:
    """Yield what arrays such as `x_train` and `x_test` share; edges of training may pass messages in both."""
    arrays = {name: column for name, column in table.columns.items() if isinstance(column, np.ndarray)}
    pairs = [(name, name.replace("train", word)) for name in arrays if "train" in name for word in _HELD_OUT_WORDS]
    for name, other in (pair for pair in pairs if pair[1] in arrays):
        held, what = arrays[other], "edges" if "edge" in name else "rows"
        here, there = _keys_of_both(name, arrays[name], held)
        shared = np.isin(there, here)
        if shared.any() and (what == "rows" or np.isin(here, there).mean() < MIN_SHARE_COPIED):
            rows = np.unique(there[shared] // (held.size // len(held))) if name == "train_mask" else None
            total = len(held) if held.ndim > 2 else len(there)
            yield "split_leakage", f"{shared.sum()} of {total} {what} of {other} are in {name} as well", rows


def _keys_of_both(name: str, *arrays: Array) -> list[Ints]:
    """Return what tells rows apart, or edges: by their way round too where only some are there both ways."""
    if name == "train_mask":
        return [np.flatnonzero(array) for array in arrays]
    if "edge" in name and all(len(array) == 2 and array.dtype.kind in "iu" for array in arrays):
        ends = [array.astype(np.int64) for array in arrays]
        unordered = [np.minimum(*pair) << 32 | np.maximum(*pair) for pair in ends]
        times = len(unordered[0]) / max(1, len(np.unique(unordered[0])))
        return unordered if times in (1, 2) else [pair[0] << 32 | pair[1] for pair in ends]
    if _INPUTS.match(name) and all(array.ndim > 2 for array in arrays):
        return [np.array([hash(row.tobytes()) for row in array if row.min() < row.max()]) for array in arrays]
    return [np.empty(0, np.int64) for _ in arrays]


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


# The language that a row names, and that of its words.

_LANGUAGES = ("lang", "language", "lang_code", "locale")
_TEXTS = ("text", "content", "document", "sentence", "output", "response", "answer", "completion")
_NOT_SPOKEN = re.compile(r"(?:js|ts|py|rb|rs|go|md|sh|c|r)$|.*(?:java|python|script|sql|html|shell|\+|#)")
_SPEECH = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\d_]+")
WORDS_LOOKED_AT = 100
MIN_ROWS_OF_LANGUAGE = 100
MIN_SHARE_OF_COMMON = 0.05
"""Rows of a language, and the share of them in which a word is common. Chosen: its articles and particles are."""
MIN_COMMON_WORDS = 5
MIN_NATS_OF_WORD = 0.8
"""Common words of a row, and by how much each is likelier in the other language. Chosen: less between domains."""
MIN_SHARE_OF_OTHER = 0.03
"""Share of the rows of a language that are in another one. Chosen: collections from the web hold 0.01 to 0.02."""


def _languages(table: Table) -> Iterator[Found]:
    """Yield the rows whose common words are those of another language of the table; code mixes languages anyway."""
    named, texts = (
        next((column for name in names if isinstance(column := table.columns.get(name), list)), [])
        for names in (_LANGUAGES, _TEXTS)
    )
    marks = [re.split(r"[-_]", str(mark).lower())[0] for mark in named]
    totals = {mark: count for mark, count in Counter(marks).items() if count >= MIN_ROWS_OF_LANGUAGE}
    if len(marks) != len(texts) or any(map(_NOT_SPOKEN.match, set(marks))):
        return
    words = [set(islice((word[0] for word in _SPEECH.finditer(str(text).lower())), WORDS_LOOKED_AT)) for text in texts]
    counts = {mark: Counter[str]() for mark in totals}
    for mark, found in zip(marks, words, strict=True):
        if mark in counts:
            counts[mark].update(found)
    common = {word for mark in totals for word, n in counts[mark].items() if n >= MIN_SHARE_OF_COMMON * totals[mark]}
    nats = {mark: {word: math.log((counts[mark][word] + 0.5) / totals[mark]) for word in common} for mark in totals}
    wrong: dict[tuple[str, str], list[int]] = {}
    for place, (mark, found) in enumerate(zip(marks, words, strict=True)):
        known = found & common
        sums = {other: sum(of_word[word] for word in known) for other, of_word in nats.items()}
        best = max(sums, key=sums.__getitem__, default=mark)
        if len(known) >= MIN_COMMON_WORDS and sums[best] - sums.get(mark, math.inf) >= MIN_NATS_OF_WORD * len(known):
            wrong.setdefault((mark, best), []).append(place)
    for (mark, best), places in wrong.items():
        if len(places) >= MIN_SHARE_OF_OTHER * totals[mark]:
            yield "language_mismatch", f"{len(places)} of {totals[mark]} rows of {mark} are in {best}", np.array(places)
