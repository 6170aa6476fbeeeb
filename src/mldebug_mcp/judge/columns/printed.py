"""What the first and the last lines of a text state: sets that share rows, inputs, and weights that are scored anew."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise, product
from typing import NamedTuple

from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import figure, shorten
from mldebug_mcp.judge.columns import (
    POLICIES,
    Facts,
    derived_fact,
    logged,
    named,
)
from mldebug_mcp.logs import Run
from mldebug_mcp.logs.endings import LAST_LINES
from mldebug_mcp.logs.line_prefixes import without_prefix
from mldebug_mcp.logs.names.lexicon import PHASES
from mldebug_mcp.logs.names.metrics import side_of

LONGEST_LINE = 120
"""Characters of a line that a fact shows. Chosen: two of them make a sentence."""
_WORD = regex(r"[A-Za-z]+")
_TRAINING = frozenset({"feed", "learn", "learning", "loop", "update"})
_HELD_OUT = frozenset({"hold", "check", "tune", "score", "scoring", "serve", "serving"})
"""Words for the sides of training and evaluation in sentences, next to those that name sets."""


_SPREAD_CALLED_DEV = regex(r"(?P<mean>\b(?:mean|avg|average)\W{1,3}[\d.]{1,9}[\s,/]{1,3})dev\b")
"""Next to a mean `dev` is the standard deviation, not a set."""


def _lines(run: Run) -> tuple[str, ...]:
    """Return the first and the last lines of the text, without what a logger writes in front."""
    return _without_prefixes(run.margins)


@lru_cache(maxsize=4)
def _without_prefixes(margins: tuple[str, ...]) -> tuple[str, ...]:
    texts = (without_prefix(line).message for line in margins if not line.lstrip().startswith("{"))
    lines = (_SPREAD_CALLED_DEV.sub(r"\g<mean>std", text).strip() for text in texts)
    return tuple(line for line in lines if line and not line.startswith("{"))


@lru_cache(maxsize=4096)
def _phase(text: str) -> str:
    """Return the phase that words name: "train", "eval", or "" for none or both."""
    words = set(_WORD.findall(text.lower()))
    found = {side_of(word) for word in words} - {""}
    found |= {"train"} if words & _TRAINING else set()
    found |= {"eval"} if words & _HELD_OUT else set()
    return found.pop() if len(found) == 1 else ""


# Sets that share what they are drawn of: the groups of both add up to more than there are.


_COUNT = regex(r"(?<![\w.:/=-])(?P<count>\d{1,3}(?:,\d{3})+|\d{2,9})\s+(?P<noun>[A-Za-z]{3,20})\b")
_NAMED_COUNT = regex(
    r"(?<![\w.])(?P<noun>[A-Za-z]{3,20})\s?(?::|=|\s)\s?(?P<count>\d{1,3}(?:,\d{3})+|\d{2,9})(?![\w.%]|,\d|:)"
)
_NO_GROUPS = frozenset({
    "class", "classe", "label", "categorie", "tag", "type", "taxa", "specie", "word", "token", "column", "feature",
    "channel", "step", "epoch", "batch", "batche", "iteration", "pass", "lap", "update", "param", "parameter",
    "layer", "unit", "user", "item", "movie", "product", "song", "distinct", "unique", "language", "genre",
    "intent", "task", "domain", "source", "second", "hour", "day", "site",
})  # fmt: skip
"""Nouns of what both sets hold by plan."""
_BY_ROWS = regex(r"\b(?:random\w*|shuffled?|by|row|rows)[ _-]?(?:split|rows?|wise)\b|\brandom_split", re.IGNORECASE)
"""How a text says that rows are split, whatever their group: equal numbers alone may be those of classes."""
MIN_GROUPS = 20
"""Groups of a set that are few enough to be met in both by plan. Chosen: folders, sites and classes are fewer."""
ALIKE_ROWS = 1.5
"""Times the rows of a group in evaluation that training has of it. Chosen: groups that are split whole have as many."""


_SEPARATOR = regex(r"[|;]")


MOST_OF_GROUPS = 0.7
"""Of the groups of training that evaluation has, where nothing is known of all. Chosen: fewer are split off whole."""


class _Set(NamedTuple):
    phase: str
    counts: dict[str, float]


def _sets(lines: Sequence[str]) -> Iterator[_Set]:
    """Yield what each stretch of a line that names one set counts, by noun; stretches of no set have totals."""
    for part in (part for line in lines for part in _stretches(line)):
        behind, ahead = (
            {found["noun"]: found["count"] for found in pattern.finditer(part)} for pattern in (_COUNT, _NAMED_COUNT)
        )
        counts = behind if len(behind) >= len(ahead) else ahead
        singular = {noun.lower().removesuffix("s"): float(count.replace(",", "")) for noun, count in counts.items()}
        if singular:
            yield _Set(_phase(part), singular)


@lru_cache(maxsize=1024)
def _stretches(line: str) -> tuple[str, ...]:
    """Return the parts of a line that name one set each: it parts in front of the word for another."""
    parts = []
    for column in _SEPARATOR.split(line):
        starts, last = [0], ""
        for word in _WORD.finditer(column):
            phase = _phase(word[0])
            if phase and last and phase != last:
                starts.append(word.start())
            last = phase or last
        parts += [column[start:end] for start, end in pairwise([*starts, len(column)])]
    return tuple(parts)


def groups_shared(run: Run) -> Facts:
    """Yield that groups of rows, as patients, are in training and in evaluation, by the counts of both and of all.

    Not this where the text counts no groups, or as many rows of each are in both sets, as where whole groups are split.
    """
    lines = () if run.kind in POLICIES else _lines(run)
    sets = list(_sets(lines))
    many = [each for each in sets if len(each.counts) > 1]
    train, evaluation = ([each for each in many if each.phase == phase] for phase in ("train", "eval"))
    for ours, theirs in product(train, evaluation):
        for noun in sorted((ours.counts.keys() & theirs.counts.keys()) - _NO_GROUPS):
            groups, held_out = ours.counts[noun], theirs.counts[noun]
            rows = (ours.counts.keys() & theirs.counts.keys()) - {noun}
            rows = {each for each in rows if ours.counts[each] > groups and theirs.counts[each] >= held_out}
            if not rows or min(groups, held_out) < MIN_GROUPS:
                continue
            if groups == held_out and not any(map(_BY_ROWS.search, lines)):
                continue
            per_group = [max(side.counts[each] for each in rows) / side.counts[noun] for side in (ours, theirs)]
            every = max((each.counts.get(noun, 0.0) for each in sets if not each.phase), default=0.0)
            is_known = every >= max(groups, held_out)
            are_shared = groups + held_out > every if is_known else MOST_OF_GROUPS * groups <= held_out <= groups
            if per_group[0] >= ALIKE_ROWS * per_group[1] and are_shared:
                yield derived_fact(
                    "groups_shared",
                    f"training has {figure(groups)} {noun}s with {figure(per_group[0])} rows of each, and evaluation "
                    f"{figure(held_out)} with {figure(per_group[1])}"
                    f"{f', of {figure(every)} in all' if is_known else ''}. Rows of one {noun} are in both "
                    f"sets, so evaluation says nothing of another {noun}.",
                    {"train": groups, "eval": held_out},
                )


# Inputs of training and of evaluation that are measured once, in two lines or parts of a line that read alike.


_KINDS = {
    **dict.fromkeys(("mean", "avg", "average", "mu", "median", "med", "centre", "center", "mittel"), "centre"),
    **dict.fromkeys(("std", "dev", "sd", "sigma", "stdev", "stddev", "spread"), "spread"),
    **dict.fromkeys(("min", "max", "range", "lo", "hi", "low", "high", "lowest", "highest", "quantiles"), "bounds"),
}
"""What a word says of the numbers behind it."""
_OF_OTHER_THINGS = regex(
    r"\b(?:loss\w*|acc\w*|lengths?|len|tokens?|words?|rows?|labels?|targets?|y|grad\w*|weights?|norm|logits?|"
    r"scores?|times?|seconds|ms|reward\w*|returns?|lr|r2|auc|f1|outputs?|preds?|predictions?|err\w*|bias)\b",
    re.IGNORECASE,
)
_INPUT = regex(
    r"\b(?:inputs?|in|x|batch|feed|fed|pix\w*|px|images?|imgs?|features?|feats?|data|wave\w*|audio|signal|frames?)\b",
    re.IGNORECASE,
)
_LEARNS = regex(r"\b(?:loss|acc\w*|nll|ce|bce|mse)\W{1,4}\d", re.IGNORECASE)
_TOKEN = regex(
    r"(?P<mark>\+-|±|\+/-|\.{2,3}(?=\s?-?\d))|(?P<word>[A-Za-z]\w*)|(?P<number>[-+]?(?:\d+\.?(?!\.)\d*|\.\d+)(?:e[-+]?\d+)?)"
)
OTHER_SPREAD = 2.0
"""Times by which the spread of inputs differs. Chosen: rows of one source differ by less."""
OTHER_BOUNDS = 2.5
"""The same of their range, which depends on a few rows. Chosen."""
OTHER_CENTRE = 1.0
"""Of the larger spread, by which their centre is off. Chosen."""


_Measured = dict[str, list[float]]
"""Values of a centre, of a spread and of bounds."""


def inputs_measured_apart(run: Run) -> Facts:
    """Yield that inputs have another centre, spread or range in evaluation, where both are printed in the same way.

    Not this where lengths, labels or outputs are measured, or the sets are no more apart than rows of one source.
    """
    measured: dict[tuple[str, ...], dict[str, tuple[_Measured, str]]] = {}
    learns = False
    for line in _lines(run):
        learns = learns or _LEARNS.search(line) is not None
        for part in _stretches(line) if _INPUT.search(line) or not learns else ():
            found, phase = _measured_in(part), _phase(part) or _phase(line)
            if phase and found and not _OF_OTHER_THINGS.search(part):
                measured.setdefault(tuple(sorted(found)), {}).setdefault(phase, (found, part.strip()))
    for both in measured.values():
        if len(both) == 2 and _are_apart(both["train"][0], both["eval"][0]):
            train, evaluation = (shorten(both[phase][1], LONGEST_LINE) for phase in ("train", "eval"))
            yield derived_fact(
                "inputs_differ",
                f'the text has "{train}" and "{evaluation}". The inputs of evaluation are prepared in another way, '
                "or of another source.",
            )


def _measured_in(text: str) -> _Measured:
    """Return the centre, spread and bounds that a text gives: `mean 0.1 std 1`, `0.1 +- 1`, `-3..3`."""
    found: _Measured = {}
    names, taken, last = list[str](), 0, None
    for token in _TOKEN.finditer(text):
        if token["number"]:
            last = float(token["number"])
            if names and (taken < len(names) or names[-1] == "bounds"):
                found.setdefault(names[min(taken, len(names) - 1)], []).append(last)
            taken += 1
            continue
        names, taken = (list[str](), 0) if taken else (names, 0)
        if token["mark"] and last is not None:
            kind, then = ("bounds", "bounds") if token["mark"].startswith("..") else ("centre", "spread")
            found.setdefault(kind, []).append(last)
            names = [then]
        elif token["word"] and (kind := _KINDS.get(token["word"].lower(), "")):
            names.append(kind)
    return {kind: values for kind, values in found.items() if kind != "bounds" or len(values) > 1}


def _are_apart(train: _Measured, evaluation: _Measured) -> bool:
    """Say whether two sets of inputs are further apart than two of one source."""
    if "spread" in train:
        low, high = sorted((train["spread"][0], evaluation["spread"][0]))
        off = abs(train["centre"][0] - evaluation["centre"][0]) if "centre" in train else 0.0
        return 0 <= OTHER_SPREAD * low <= high > 0 or off >= OTHER_CENTRE * high > 0
    if "bounds" not in train:
        return False
    (first, last), (lowest, highest) = ((min(side["bounds"]), max(side["bounds"])) for side in (train, evaluation))
    low, high = sorted((last - first, highest - lowest))
    return 0 < OTHER_BOUNDS * low <= high or first > highest > lowest or lowest > last > first


# Weights that are scored again: the same rows have the same answers, in whatever order and however many at once.


_AGAIN = regex(
    r"\b(?:again|once more|(?:a |the )?(?:second|third|2nd|3rd) (?:pass|run|time|scoring)|"
    r"same (?:weights|model|checkpoint|ckpt|file))\b",
    re.IGNORECASE,
)
"""What a line holds that scores the weights of the line above once more, or heads such lines."""
_SCORED_ANEW = regex(
    r"\bre-?(?:scor|eval|valid|check|test)\w*|\bsame (?:rows|data|set|images|clips|samples|examples)\b|"
    r"\b(?:final|checkpoint|ckpt|weights|restored|loaded)\b.{0,60}\b(?:pass|repeat|take|try|draw|round|run) ?#?\d\b",
    re.IGNORECASE,
)
"""What each of several lines holds that score weights anew: the line above may be of others."""
_VALUES_AGAIN = regex(
    r"\b(?:again|once more|second (?:pass|time))\W{1,3}(?P<values>\d{0,6}\.\d+(?:[\s/,]{1,3}\d{0,6}\.\d+)*)",
    re.IGNORECASE,
)
_COUNTER_VALUE = regex(r"\b(?:step|iter\w*|epoch|ep|lap|batch|update)\W{0,3}\d", re.IGNORECASE)
_WEIGHTS = regex(r"\b(?:weights|checkpoint|ckpt|model)\b|\.pth?\b", re.IGNORECASE)
_OTHERWISE = regex(
    r"\b(?:ema|swa|avg'd|averaged|quant\w*|int[48]|fp(?:8|16)|bf16|half|before|after|teacher|student|prun\w*|"
    r"sampl(?:ed|ing)|temperature|beam\w*|greedy|tta|flip\w*|augment\w*|nois\w*|bootstrap\w*|mc|seed|fold|"
    r"resum\w*|merged|adapter|base|init\w*|untrained|thresholds?|calibrat\w*|subset|persist\w*|baseline|naive|"
    r"last (?:value|week|day|hour))\b",
    re.IGNORECASE,
)
"""What explains another score: other weights, other rows, or draws that are meant."""
_EXPORTED = regex(
    r"\b(?:export\w*|onnx|traced?|torchscript|frozen|served?|serving|deploy\w*|standalone|predict\.py|\.eval\(\))",
    re.IGNORECASE,
)
_MEASURED = regex(r"(?<![\w.])(?:\d{1,6}\.\d+|\.\d+)(?:e[-+]\d+)?(?![\w]|\.\d)")
MIN_OFF_AGAIN = 0.005
"""Share of a value by which a second scoring is off. Chosen: kernels that add in another order leave less."""
MAX_LINES_BETWEEN = 6
"""Lines between two scorings of one set. Chosen: those of other sets stand between."""
FAR_BETTER_EXPORTED = 0.85
"""Of the lowest evaluation loss, to which the loss of exported weights comes. Chosen: rows by chance explain less."""


class _Scored(NamedTuple):
    values: tuple[float, ...]
    set: str
    text: str


def scored_again(run: Run) -> Facts:
    """Yield that weights which are scored again score otherwise on the same rows, by the words of the text.

    Not this where other weights, other rows or draws explain it, or the values agree to the last digits.
    """
    if run.kind in (*POLICIES, "diffusion"):
        return
    for first, second in _scored_otherwise(_lines(run)):
        yield derived_fact(
            "evaluated_twice",
            f'the text has "{shorten(first.text, LONGEST_LINE)}" and "{shorten(second.text, LONGEST_LINE)}". The '
            "same weights give equal values on the same rows, unless dropout or statistics of batches are still on.",
            {"first": first.values[0], "second": second.values[0]},
        )
    losses = logged(run, "eval_loss")
    lowest = 0.0 if losses is None else losses.value.min()
    for line in _lines(run)[-LAST_LINES:] if lowest > 0 else ():
        best = min(map(float, _MEASURED.findall(line)), default=lowest)
        is_exported = _EXPORTED.search(line) and _set_of(line) and _phase(line) != "train"
        if losses is not None and is_exported and not _OTHERWISE.search(line) and best < FAR_BETTER_EXPORTED * lowest:
            yield derived_fact(
                "evaluated_twice",
                f'the text has "{shorten(line, LONGEST_LINE)}", and the lowest {named(losses)} is {figure(lowest)}. '
                "Weights that are exported are in evaluation mode: the loop evaluates them in another way.",
                {"exported": best, "lowest": lowest},
            )


def _scored_otherwise(lines: Sequence[str]) -> Iterator[tuple[_Scored, _Scored]]:
    """Yield lines of other values that score the same weights on the same rows, each with the line before."""
    starred = any(not _MEASURED.search(line) and _STARRED_AGAIN.search(line) for line in lines)
    heading, scored = "", list[tuple[int, bool, _Scored]]()
    for at, line in enumerate(line for line in lines if "{" not in line):
        of_set = " ".join(part for part in _stretches(line) if _phase(part) == "eval") or line
        own = _Scored(tuple(map(float, _MEASURED.findall(of_set))), _set_of(of_set), line)
        if not own.values:
            heading = line if _AGAIN.search(line) and _WEIGHTS.search(line) else heading if "  " in line else ""
            scored = [] if heading else scored
            continue
        yield from _in_one_line(line)
        label = _label(line)
        is_anew = bool(heading and not _COUNTER_VALUE.search(line)) or _SCORED_ANEW.search(label) is not None
        is_star = starred and "*" in label
        if (is_anew or is_star or _AGAIN.search(label)) and _phase(line) != "train" and not _OTHERWISE.search(line):
            near = [(of_anew, known) for place, of_anew, known in scored if at - place <= MAX_LINES_BETWEEN]
            alike = [known for of_anew, known in near if known.set == own.set and (of_anew or not is_anew)]
            if is_star:
                alike = [known for known in alike if _label(known.text) == label.replace("*", "")]
            for known in alike[-1:]:
                if not _OTHERWISE.search(known.text) and _are_off(known.values, own.values):
                    yield known, own
        scored.append((at, is_anew, own))


_STARRED_AGAIN = regex(r"(?:^|\s)\*.{0,40}\b(?:again|once more|second pass|same weights)\b", re.IGNORECASE)


def _label(line: str) -> str:
    """Return what stands in front of the first value, in single spaces."""
    return " ".join(_MEASURED.split(line, 1)[0].split())


def _set_of(line: str) -> str:
    return " ".join(sorted({word.lower() for word in _WORD.findall(line) if word.lower() in PHASES}))


def _in_one_line(line: str) -> Iterator[tuple[_Scored, _Scored]]:
    """Yield what stands in front of such a word and behind it: `val 0.41/0.87 again 0.43/0.86`."""
    found = _VALUES_AGAIN.search(line)
    if found is None or _OTHERWISE.search(line):
        return
    second = tuple(map(float, _MEASURED.findall(found["values"])))
    first = tuple(map(float, _MEASURED.findall(line[: found.start()])))[-len(second) :]
    if _are_off(first, second):
        yield _Scored(first, "", line), _Scored(second, "", found[0])


def _are_off(first: Sequence[float], second: Sequence[float]) -> bool:
    """Say whether as many values differ, any of them."""
    same_number = len(first) == len(second)
    return same_number and any(
        abs(one - other) > MIN_OFF_AGAIN * max(one, other) for one, other in zip(first, second, strict=True)
    )
