"""`name: value`, `name=value` and `name value` in a line of text, with the units and brackets that come with them.

Lines that give numbers by their place are written out with their names first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from mldebug_mcp.core.lazy import regex
from mldebug_mcp.logs.line_prefixes import names_evaluation, names_phase, turns_in
from mldebug_mcp.logs.names import Quantity, role_of
from mldebug_mcp.logs.names.metrics import (
    COUNTERS,
    MAX_CLASSES,
    canonical,
    factor_in,
    is_known,
    is_measured,
    is_of_ranks,
    is_pace,
    is_phase_alone,
    is_telling,
    may_hold_names,
    member_of_rank,
    phase_alone,
    set_of,
)
from mldebug_mcp.logs.names.quantities import OF_UPDATES
from mldebug_mcp.logs.names.words import UPDATE_SYMBOL, WEIGHTS_SYMBOL, pieces_of
from mldebug_mcp.logs.numbers import (
    DURATION,
    MAY_HOLD_NUMBER,
    NUMBER,
    SECONDS_PER,
    parse_number,
    parse_numbers,
    seconds_of,
)

_WRAPPER = r"(?:(?:tf\.)?tensor|array|devicearray|(?:np\.|jnp\.)?float\d+)\("
_WORD = (
    rf"(?:(?!{_WRAPPER})(?:[^\W\d]|↔|\d{{1,4}}_(?=[a-z]))[\w./@()%#↔-]{{0,120}}+"  # "16_h1=0.5"
    r"(?:\+[^\W\d][\w.]{0,40}+){0,5}+"  # "Lp+Lke=0.1"
    r"(?:'s)?"  # LightGBM: "valid_0's l2"
    r"|\((?!nan\)|inf\))[A-Za-z%][\w/%]{0,11}\))"
)
_PAIR_TEXT = (
    rf"(?<![\w.])(?<!\d/)(?P<name>{_WORD}(?: {_WORD}){{0,6}})(?: \((?P<of>[A-Za-z][\w -]{{0,20}})\)(?=\s?[:=]))?"
    rf"(?P<sep>\s*(?:[:=：]|[-=]{{1,2}}>|[→⇒➜])\s*|\s+)(?P<open>\[|{_WRAPPER}\[?|\()?"
    rf"(?P<number>{NUMBER})(?:/(?P<whole>\d{{1,3}}(?:,\d{{3}})+|\d+)(?![\d/]))?"
    rf"(?P<unit>\s?%|\s?(?:ms|us|s)\b|\s?(?:m?secs?|[KMGT]i?B)\b(?!\s?[:=])|x\b|\s?dB\b|[KMGTB]i?B?\b)?"
    rf"(?:\s+\(\s*(?P<mean>{NUMBER})\s*%?\))?"
    r"(?!\w|\.(?!\s|$)|[:-]\d|\s?[:=]\s*\w+=)"  # a full stop may end the sentence
)
_PAIR = regex(_PAIR_TEXT, re.IGNORECASE)
_PAIR_AT_ARROW = regex(_PAIR_TEXT.replace("}+", "}"), re.IGNORECASE)
"""The same where the hyphen of an arrow may be at a word: "lr->0.1"."""
_NOISE_WORDS = frozenset(
    {"info", "debug", "warning", "train", "training", "rank0", "root", "main", "log", "at", "in", "on", "average",
     "avg", "mean", "and", "current", "set", "with", "timesteps", "model", "diverged"}
)  # fmt: skip
_MAX_ABBREVIATION_LETTERS = 3
"""Letters of a word before a full stop that may be part of a name: "std. reward"."""
_NO_METRICS = frozenset(
    {"v_num", "eta", "ETA", "s", "line", "cur_iter", "cuda", "xla", "mps", "npu", "Checkpoint", "GiB", "MiB", "GB",
     "MB"}
)  # fmt: skip
"""Names of numbers that are no metrics: "device='cuda:0'"."""
_TRAIN_IN_NAME = regex(r"^train(?:ing)?\s+|\s+train(?:ing)?$", re.IGNORECASE)
_EVALUATION_WORD = regex(r"(?:valid(?:ation)?|val|eval(?:uation)?|test(?:ing)?|dev)\s", re.IGNORECASE)
_PASSING = frozenset({"curr", "current", "avg", "mean", "running", "higher is better", "lower is better"})
SCALE_IN_NAME = regex(r"[(\[](1e-?\d+)[)\]]$")
"""What the numbers of a metric are to be multiplied with: "lr (1e-4)"."""
_CLOSING = regex(r"^[^\s()]{1,20}\) (?=\w)", needs=")")
"""The end of a remark in brackets whose beginning holds a number: "84.5s(100 iters) Margin: 0.5"."""
_OF_TWO = regex(r"(?P<first>[A-Za-z]\w*) \((?P<second>[A-Za-z]\w*)\)")
_NOT_A_NUMBER_INSIDE = regex(
    r"(?P<name>.+?) (?P<number>nan(?:\.0)?|inf(?:inity|\.0)?)(?: (?P<rest>.+))?",
    re.IGNORECASE,
    needs=(" nan", " inf"),
)
"""What was no number is a word among those of the next name, or stands in front of its mean: "loss nan (2.1)"."""
_ENDS_IN_NONE = regex(
    r"(?P<name>.+) (?P<number>nan(?:\.0)?|[-+]?inf(?:inity|\.0)?)", re.IGNORECASE, needs=(" nan", "inf")
)
"""A value that is NaN or infinite, and behind it a time or a share in brackets: "loss nan (39.5s)"."""
_NULL = regex(r"(?:none|null|nil|n/?a|undefined) ", re.IGNORECASE)
"""A value that is missing stands there, too: "loss=None grad_norm=0.1"."""
_OF_MEAN = regex(r"(?:avg|average|mean)(?![a-z])", re.IGNORECASE)
_PER = regex(r"[a-z]/(?:s|sec|second|min|it|step|batch)$", re.IGNORECASE, needs="/")
_SUPPOSING = frozenset({"when", "if", "until", "unless", "should", "would", "expected", "baseline"})
"""Words before the name of a metric whose number was not measured here: "stop when val_loss: 0.1", "expected loss"."""
_LISTED_WORDS = 5
"""Words of a name in front of "is" or "was", at most, where a sentence lists values."""
_PART_WORDS = 3
"""Words of a name between commas among which an identifier is looked for: "Val r1_count_xml_mean"."""
_HEAD_OF_PART = regex(
    rf"\s*(?P<head>[A-Za-z][\w-]{{0,30}})(?:\s?:)?(?:\s+(?P<name>[A-Za-z][\w./-]{{0,30}}))?\s*[:=]?\s*{NUMBER}",
    re.IGNORECASE,
)
_REST_OF_PART = regex(rf"(?:\s+[A-Za-z][\w./-]{{0,30}}\s{NUMBER}){{0,20}}+\s*", re.IGNORECASE)
MOST_WORDS_BETWEEN_BARS = 3
"""Words of a name that stands with its number between two bars. Chosen: a sentence has more."""
_LISTS = regex(r"[,;:|]\s?$")
_ARTICLES = frozenset({"the", "this", "that", "it", "there", "a", "an", "which", "what"})
_BEHIND_NUMBER = regex(r"\d[KMGTB]?\s{1,2}$", re.IGNORECASE)
_ALONE = regex(
    rf"(?:(?<=[|,(\t])|(?<=/sec(?=\s))|^)[ \t]{{0,20}}(?P<number>{NUMBER})\s?"
    r"(?:(?P<rate>[a-z]{2,12}/s(?:ec(?:ond)?)?)|(?P<pace>s(?:ec(?:ond)?)?/(?:step|it|iter|batch))|ms)"
    r"(?=[ \t]{0,20}(?:[|,)\t]|$)|\s{1,8}\d|\s{3})",
    re.IGNORECASE,
)
"""A part of a line that is nothing but a number and its unit: of a rate, or of the time of a step."""
_COST = regex(r"([\w ]{0,20})cost", re.IGNORECASE)
_SIZES = frozenset({"MB", "MiB", "GB", "GiB"})
_NO_MEMORY = frozenset({
    "read", "written", "write", "wrote", "sent", "received", "recv", "downloaded", "download", "seen", "processed",
    "io", "traffic", "data", "dataset", "log", "ckpt", "checkpoint", "saved", "file", "files", "disk", "text", "corpus",
    "size", "model", "weights", "weight", "params", "parameters", "total", "in", "of", "shard", "shards", "loaded",
})  # fmt: skip
"""Words of a number of bytes that no process holds, or that never change."""
_UNITS_ALONE = ("/s", "ms", "/it", "/batch")
"""One of these stands in each line with such a part."""
_OF_DATA = regex(r"(?:sample|example|image|row|file|shard|document|sequence|token|batch)(?:e?s)?", re.IGNORECASE)
"""What is counted through the data: "sample=72/5608" is the 72nd of them, and no share as "correct=72/100" is."""
_MAX_LISTED = 10_000
"""Characters of a list of values, one per class, that are read."""
_LEFT_OF_SPLIT = 0.01
"""What the shares of a split may lack to 1, as they are printed."""
_SECONDS = {"ms": 1e-3, "us": 1e-6, "s": 1.0, "sec": 1.0, "secs": 1.0, "msec": 1e-3, "msecs": 1e-3}


_SET = regex(
    r"(?<![\w./@-])(?P<set>[^\W\d][\w-]{0,20})(?: (?P<of>[A-Za-z][\w-]{0,20}(?: [A-Za-z][\w-]{0,20})?))?"
    r"\s{0,3}[:=]?\s{0,4}-?\d{1,9}\.\d{1,12}(?:e[-+]?\d{1,3})?"
    r"(?![\w.]|\s?(?:%|(?:m?s|secs?|mins?|h|[KMG]i?B|seconds|minutes)\b))",
    needs=".",
)
"""A set by its phase and a number with decimals: "trn 2.1", "held out 2.2", "dev legal 2.5"; no time, and no share."""


def measures_sets(line: str) -> bool:
    """Say whether a line gives numbers with decimals of sets by their phase alone, and not the shares of a split."""
    numbers = [
        parse_number(found[0].rpartition(" ")[2].lstrip(":="))
        for found in _SET.finditer(line)
        if set_of(f"{found['set']} {found['of']}" if found["of"] else found["set"])
    ]
    known = [number for number in numbers if number is not None]
    return bool(numbers) and not (len(known) > 1 and math.isclose(sum(known), 1.0, abs_tol=_LEFT_OF_SPLIT))


def _is_change(name: str, behind: str | None) -> bool:
    """Say whether the number in brackets behind a value is how far it has moved: "avg_loss: 0.64 (-0.07)"."""
    return behind is not None and (behind.startswith("+") or _OF_MEAN.match(name) is not None)


class _Found(NamedTuple):
    """A number of a line, its name, where the name stands, and where the number ends."""

    name: str
    number: float
    at: int
    end: int


def pairs_in(line: str, *, evaluation: bool = False) -> dict[str, float]:
    """Return the numbers of a line by name.

    Where the whole line speaks of an `evaluation`, its metrics are named `eval_...`.
    """
    record: dict[str, float] = {}
    named: set[str] = set()
    shared, turns = "", turns_in(line)
    carried = leads = again_here = False
    of_ranks = {len(_BETWEEN.split(found["listed"])) for found in _lists_of_ranks(line)}
    found: list[_Found] = []
    without_unit_until = -1
    for match in _pairs(line):
        turned = (turn.evaluation for turn in reversed(turns) if turn.at <= match.start())
        of_evaluation = next(turned, evaluation)
        named_before = 0 <= without_unit_until <= match.start() and line[without_unit_until : match.start()].isspace()
        phrase = match["name"] if named_before else _without_unit(line, match)
        ended = _ENDS_IN_NONE.fullmatch(phrase) if match["open"] in ("(", "[") else None
        phrase = ended["name"] if ended else phrase
        # "loss 2.1 tokens/s 900": no loss has that unit
        without_unit_until = match.end("number") if _has_no_pace(match["name"]) else -1
        explicit = _is_explicit(line, match, phrase)
        prose = _supposes(phrase) or (not explicit and _is_prose(phrase))
        name = None if prose else _metric_name(phrase, explicit=explicit, of=match["of"])
        # "Loss 6.91 (6.89)": of this batch, and the mean so far. At the end of an evaluation the mean is meant.
        mean = _mean_behind(line, match, phrase) if of_evaluation else None
        number = parse_number(mean or match["number"])
        if (failed := _NOT_A_NUMBER_INSIDE.fullmatch(phrase)) and is_telling(failed["name"]):  # "loss nan lr 0.1"
            lost, rest = parse_number(failed["number"]) or math.nan, failed["rest"]
            record |= {failed["name"]: lost} if rest and failed["name"] not in record else {}
            name = _metric_name(rest, explicit=explicit, of=match["of"]) if rest else failed["name"]
            number = number if rest or of_evaluation else lost
        number = (parse_number(ended["number"]) or math.nan) if ended else number
        counts = match["open"] == "[" and match["whole"] and not is_telling(name or "")  # "Test: EMA [0/5]"
        if name is None or number is None or name in _NO_METRICS or name.endswith(".py") or counts or not phrase:
            continue
        name = _of_set_before(line, match, name, found)
        if shared and names_phase(name):  # "loss train: 1.7, val: 1.9"
            name = f"{name} {shared}"
        trained = "train" in name.lower()
        shared = _TRAIN_IN_NAME.sub("", name) if trained and _TRAIN_IN_NAME.search(name) else ""
        classes = _members(line, match, name, of_ranks)
        name, number = (name, number) if ended else _measured(line, match, name, number)
        name = _with_number_in_brackets(record, line, match, name)
        known = canonical(name)
        carried = carried and not ((role := role_of(name)) and role.quantity in OF_UPDATES)
        if known.startswith("eval_") or (trained and name.lower().startswith("train")):
            carried, again_here = known.startswith("eval_"), False
        elif of_evaluation or (carried and (known in named or ((leads or again_here) and is_telling(known)))):
            # "train loss 1.7 acc 0.6, val loss 1.9 acc 0.5 f1 0.5", "VALIDATION loss=1.9 acc=0.5"
            name, again_here = evaluation_name(name), carried
            classes = {evaluation_name(score): value for score, value in classes.items()}
        leads = leads or (not named and carried and _begins_evaluation(line, match["name"]))
        named.add(known)
        record.setdefault(name, number)
        found.append(_Found(name, number, match.start(), match.end()))
        record |= classes
    return _with_heads(line, record, found)


def _with_repeated(line: str, record: Mapping[str, float], found: Sequence[_Found]) -> dict[str, float]:
    """Return the numbers of a line that repeats names: a name in two parts stands with what heads each.

    That is the word before the first name between two bars, or a phase: "gn body 0.4 head 0.1 | wn body 5.4 head 2.8",
    "loss 2.1 acc 0.5 val 2.2 acc 0.4".
    """
    first = {pair.name: pair for pair in reversed(found)}
    again = {pair.name: pair.number for pair in reversed(found) if pair is not first[pair.name]}
    numbered = next((name for name in record if name.lower() in _EACH and again.get(name) == record[name] + 1), "")
    if numbered:  # "client 0: loss 0.5 | client 1: loss 0.6"
        return _of_each(numbered, record, found)
    if len(again) > 1 and list(reversed(again)) == list(record):  # CenterNet: training, and behind it an evaluation
        return {**record, **{evaluation_name(name): again[name] for name in record}}
    alone = [pair.at for pair in found if names_evaluation(pair.name)]
    bars = sorted({0, *(bar.end() for bar in re.finditer(r"\|", line)), *alone, len(line)})
    part_of = {pair: next(part for part in pairwise(bars) if part[0] <= pair.at < part[1]) for pair in found}
    several = {pair.name for pair in found if part_of[pair] != part_of[first[pair.name]]}
    apart: dict[str, float] = {}
    for pair in found:
        name, head = pair.name, _head_of(line[slice(*part_of[pair])])
        if name in several and head:
            name = evaluation_name(name) if names_evaluation(head) else f"{head} {name}"
        apart.setdefault(name, pair.number)
    return {**{name: number for name, number in record.items() if name not in first}, **apart}


_EACH = frozenset({"client", "worker", "agent", "site", "party", "participant", "learner", "peer", "silo"})
"""What takes part in one training with others and is numbered among them."""


def _of_each(numbered: str, record: Mapping[str, float], found: Sequence[_Found]) -> dict[str, float]:
    """Return the numbers of a line with the number of the client, worker or agent that each is of: `client_1/loss`."""
    start = next(pair.at for pair in found if pair.name == numbered)
    named = {name: value for name, value in record.items() if name not in {pair.name for pair in found}}
    head, last = "", ""
    for pair in found:
        if pair.name == numbered:
            head, last = f"{numbered}_{pair.number:.0f}/", ""
        elif pair.at > start and last and f"{head}{pair.name}" in named:
            head = ""  # what all of them have: "| global: loss 0.5"
        if pair.name != numbered:
            last = pair.name
            named.setdefault(f"{head}{pair.name}", pair.number)
    return named


_NUMBERED = regex(r"(?:(?P<head>.*\S)[ /])?(?P<stem>[A-Za-z_@.]{1,12})(?P<number>\d{1,4})")


def _with_heads(line: str, record: Mapping[str, float], found: Sequence[_Found]) -> dict[str, float]:
    """Return the numbers of a line with what heads them, and those that have a unit alone."""
    if len(found) > len({pair.name for pair in found}):
        record = _with_repeated(line, record, found)
    elif len(found) > 2:
        record = _by_place(record, found)
    return {**_by_unit_alone(line, record), **record} if record else {}


def _by_place(record: Mapping[str, float], found: Sequence[_Found]) -> dict[str, float]:
    """Return the numbers of a line, those of a numbered place with the words that head the first of its kind.

    So "dL/dh t39 0.07 t30 0.002 t0 3e-8" has the names `dL/dh/t39`, `dL/dh/t30` and `dL/dh/t0`.
    """
    heads: dict[str, str] = {}
    names: dict[str, str] = {}
    for pair in found:
        place = _NUMBERED.fullmatch(pair.name)
        head = place["head"] or heads.get(place["stem"], "") if place else ""
        if place is None or not head or is_known(pair.name):
            continue
        heads = {place["stem"]: head}
        stem = "layer" if place["stem"] in "lL" else place["stem"]  # "l2" is a norm, too
        names[pair.name] = f"{head}/{stem}{place['number']}"
    return {names.get(name, name) if len(names) > 2 else name: number for name, number in record.items()}


def _head_of(part: str) -> str:
    """Return the word before the first name of a part, or the phase that its first number is of; "" if it has none."""
    words = _HEAD_OF_PART.match(part)
    if words is None or not (words["name"] or names_phase(words["head"])):
        return ""
    return words["head"]


def _pairs(line: str) -> Iterator[re.Match[str]]:
    """Yield the pairs of a line; behind its last number, where there are none, nothing is tried."""
    pattern, at = _PAIR_AT_ARROW if ">" in line else _PAIR, 0
    while MAY_HOLD_NUMBER.search(line, at) and (match := pattern.search(line, at)):
        yield match
        at = match.end()


def _begins_evaluation(line: str, name: str) -> bool:
    """Say whether the first name of a line says that all of it is of an evaluation."""
    return _EVALUATION_WORD.match(name) is not None and "train" not in line.lower()


def _has_no_pace(name: str) -> bool:
    """Say whether the number of a metric has no unit of a pace, so that one behind it is the next name."""
    return (is_telling(name) and not is_pace(name)) or (is_known(name) and not is_measured(name))


def before_metrics(text: str) -> str:
    """Return a text up to the first metric that is known in it."""
    return next((text[: match.start()] for match in _pairs(text) if is_known(match["name"])), text)


def _is_explicit(line: str, match: re.Match[str], phrase: str) -> bool:
    """Say whether what stands before a number is its name, by a mark or by how both stand in the line."""
    return (
        match["sep"].strip() != ""
        or _is_listed(line, match.start(), phrase)
        or _is_part(line, match)
        or _is_between_bars(line, match)
        or _is_of_set(match)
    )


def _is_listed(line: str, start: int, phrase: str) -> bool:
    """Say whether a phrase of a few words begins a part of a list of sentences: ", d real is 0.98"."""
    words = phrase.split(" ")
    listed = (
        words[-1] in ("is", "was") and len(words) <= _LISTED_WORDS and _LISTS.search(line, max(0, start - 3), start)
    )
    return bool(listed) and words[0].lower() not in _ARTICLES


def _is_part(line: str, match: re.Match[str]) -> bool:
    """Say whether an identifier and its number are a whole part between commas: ", r1_count_xml mean 0.281,"."""
    named = any("_" in word for word in match["name"].split(" ")[:_PART_WORDS])
    return named and line[: match.start()].endswith(", ") and line[match.end() : match.end() + 2] in (", ", "")


def _is_between_bars(line: str, match: re.Match[str]) -> bool:
    """Say whether two or three words and their number stand between two bars of a record: "| max gnorm 0.2 |".

    More names of one word may follow there, with their numbers: "| wn body 5.4 head 2.8 |".
    """
    words = match["name"].lower().split(" ")
    if (
        not 1 < len(words) <= MOST_WORDS_BETWEEN_BARS
        or words[0] in _ARTICLES
        or not line[: match.start()].endswith("| ")
    ):
        return False
    rest = line[match.end() :].partition("|")[0]
    return _REST_OF_PART.fullmatch(rest) is not None and may_hold_names(line)


def _mean_behind(line: str, match: re.Match[str], phrase: str) -> str | None:
    """Return the number in brackets behind a value of an evaluation, where it is the mean so far."""
    is_other = match["whole"] or _is_share_behind(line, match) or _is_change(phrase, match["mean"])
    return None if is_other else match["mean"]


def _with_number_in_brackets(record: dict[str, float], line: str, match: re.Match[str], name: str) -> str:
    """Return the name of a value, and record what stands in brackets behind it where that is another measure."""
    both = _OF_TWO.fullmatch(name) if match["mean"] else None
    if both:  # "time (data): 0.365 (0.002)"
        record.setdefault(both["second"], float(match["mean"]))
        return both["first"]
    if is_phase_alone(name) and _is_share_behind(line, match):
        record.setdefault(f"{name}_2", float(match["mean"]) / 100)
    return name


def _is_share_behind(line: str, match: re.Match[str]) -> bool:
    """Say whether a percentage in brackets stands behind a number that is none: another measure, "val 2.9 (45.0%)"."""
    behind = line[match.end("mean") : match.end("mean") + 2].strip() if match["mean"] else ""
    return behind[:1] == "%" and (match["unit"] or "").strip() != "%"


def _is_of_set(match: re.Match[str]) -> bool:
    """Say whether a number with decimals stands behind a phase and the name of a part: "dev legal 2.48"."""
    return "." in match["number"] and not (match["unit"] or match["open"]) and set_of(match["name"]) != ""


def _of_set_before(line: str, match: re.Match[str], name: str, found: Sequence[_Found]) -> str:
    """Return a name of one word with the phase of the part of a set right before it: "dev legal 2.4  code 3.1"."""
    before = found[-1] if found else None
    phase = set_of(before.name) if before else ""
    if before is None or phase in ("", before.name) or "." not in match["number"] or match["unit"]:
        return name
    is_next = not line[before.end : match.start()].strip(" ,;/")
    is_part = " " not in name and role_of(name) is None and not is_phase_alone(name)
    return f"{phase} {name}" if is_next and is_part else name


def _without_unit(line: str, match: re.Match[str]) -> str:
    """Return the name without the unit of the number before it: "187 samples/sec loss=1.7".

    Where nothing else is named, it is empty: "187 samples/sec 8556 tokens/sec", and an option, "--lr 0.1".
    """
    name, start = match["name"], match.start()
    if missing := _NULL.match(name):
        name = name[missing.end() :]
    if line[max(0, start - 2) : start] in ("--", " -"):
        return ""
    unit, _, rest = name.partition(" ")
    if _PER.search(unit) is None or _BEHIND_NUMBER.search(line, max(0, start - 4), start) is None:
        return name
    return rest or (name if match["sep"].strip() else "")


def _measured(line: str, match: re.Match[str], name: str, number: float) -> tuple[str, float]:
    """Return name and number of a metric without the scale, the whole, the list and the unit next to it."""
    scale = SCALE_IN_NAME.search(name)
    if scale:
        name, number = name[: scale.start()], number * float(scale[1])
    whole = parse_number(match["whole"] or "")
    if whole and not _OF_DATA.fullmatch(name):
        number /= whole
    if (
        match["open"] == "["
        and canonical(name) not in (*COUNTERS, Quantity.LEARNING_RATE)
        and len(several := _listed(line, match.start("number"))) > 1
    ):
        name, number = f"mean {name}", float(np.nanmean(several)) if np.isfinite(several).any() else math.nan
    return _in_units(name, number, (match["unit"] or "").strip())


def _by_unit_alone(line: str, named: Iterable[str]) -> dict[str, float]:
    """Return what its unit alone gives, and by no name: "| 405.42 ms | 837 tok/s"."""
    found: dict[str, float] = {}
    known = set(map(canonical, named))
    for match in _ALONE.finditer(line) if any(map(line.__contains__, _UNITS_ALONE)) else ():
        number = parse_number(match["number"])
        name = match["rate"] or "step_time"
        if number is not None and is_measured(name) and canonical(name) not in known:
            found.setdefault(name, number * (1.0 if match["rate"] or match["pace"] else _SECONDS["ms"]))
    return found


def _listed(line: str, start: int) -> list[float]:
    """Return the values of a list from its first one on, empty if they are not all numbers."""
    inside, closed, _ = line[start : start + _MAX_LISTED].partition("]")
    return (parse_numbers(inside) if closed else None) or []


def _members(line: str, match: re.Match[str], name: str, of_ranks: Container[int]) -> dict[str, float]:
    """Return the values of a list one by one: by rank, else numbered from 0 as those of classes are.

    A score that no row has is NaN, and left out.
    """
    if match["open"] != "[" or canonical(name) in (*COUNTERS, Quantity.LEARNING_RATE):
        return {}
    values = _listed(line, match.start("number"))
    if not 1 < len(values) <= MAX_CLASSES:
        return {}
    if len(values) in of_ranks:
        return {member_of_rank(name, rank): value for rank, value in enumerate(values)}
    return {f"{name}/{at}": value for at, value in enumerate(values) if not math.isnan(value)}


def evaluation_name(name: str) -> str:
    """Return the name that a metric has as one of evaluation; that of a counter stays.

    A metric of averaged weights keeps its name, as that of the trained ones may stand in the same line; and so does a
    set by its phase, "dev legal". A learning rate is that of training wherever it stands: "test: loss=1.7 (lr 0.01)".
    """
    if phase_alone(set_of(name)) == "eval":
        return name
    known, role = canonical(name), role_of(name)
    if known == "learning_rate":
        return known
    if role is not None and role.statistic == "ema" and not known.startswith("eval_"):
        return f"eval_{name}"
    return known if known.startswith("eval_") or known in COUNTERS else f"eval_{known}"


def _in_units(name: str, number: float, unit: str) -> tuple[str, float]:
    """Return a metric and its number without the unit behind it, in the unit that the metric is read in."""
    if unit.lower() in _SECONDS:
        name = "time" if name.lower() == "in" else name  # scikit-learn: "val loss: 0.54, in 0.007s"
        if name.lower() == "time" and unit.lower() == "ms":  # nanoGPT: the time of one step
            name = "step_time"
        elif name.lower() == "cost":  # what it cost, in time
            name = "elapsed"
        elif name in ("total", "remaining"):  # CatBoost's
            return name, number * _SECONDS[unit.lower()]
        elif canonical(f"{name}_s") == Quantity.DATA_TIME and role_of(name) is None:
            return f"{name}_s", number * _SECONDS[unit.lower()]  # "data=88ms": the unit makes it a wait
    if unit[-1:] == "B" and (of := _COST.fullmatch(name)):  # what it cost, in memory: "GPU cost: 3.25 GB"
        name = f"{of[1]}memory"
    elif unit in _SIZES and not is_known(name) and _NO_MEMORY.isdisjoint(pieces_of(name)):
        name = f"{name} memory"  # "proc 283 MiB": the unit tells what it is
    role = role_of(name) if unit == "%" else None
    is_amount = role is not None and (role.quantity.is_memory or role.quantity is Quantity.SKIPPED_STEPS)
    if unit == "%" and (canonical(name) in COUNTERS or (is_amount and role is not None and not role.unit)):
        name = f"{name} (%)"  # a share is no size, and no count
    # A product is a number of its own: one and the same NaN in two records would make them equal.
    return name, number * (factor_in(name, unit) if unit else 1.0)


def _supposes(phrase: str) -> bool:
    """Say whether a phrase before a number tells that it was not measured here: "stop when val_loss"."""
    return " " in phrase and not _SUPPOSING.isdisjoint(phrase.lower().split(" "))


def _is_prose(phrase: str) -> bool:
    """Say whether a phrase before a number is surely prose, at a glance: several words of one sentence, no name."""
    several = " " in phrase and ". " not in phrase and not phrase.endswith((" is", " was"))
    return several and not may_hold_names(phrase)


def _metric_name(phrase: str, *, explicit: bool, of: str | None = None) -> str | None:
    """Return the metric that a phrase before a number names, or None if it is prose.

    `explicit` says that a colon or an equals sign stands between them. Without one, a phrase counts only if the table
    of names knows it, or if it is a single word; of a longer phrase the counter at its end counts ("finished step
    100"). `of` is what stands in brackets behind it ("loss (train)").
    """
    if ". " in phrase and not is_known(phrase):
        before, _, phrase = phrase.rpartition(". ")  # "epoch 3 done. loss: 1.7"
        phrase = f"approx {phrase}" if before.lower().endswith("approx") else phrase
    phrase = _CLOSING.sub("", phrase.removesuffix(" is").removesuffix(" was"))
    if of is not None:
        phrase = f"{of} {phrase}" if names_phase(of) else phrase if of in _PASSING else f"{phrase} ({of})"
    if phrase.lower() == "loss train":
        return "train loss"
    if re.match(r"train(?:ing)? (?!loss|acc|err)", phrase, re.IGNORECASE) and explicit:
        phrase = phrase.split(" ", 1)[1]
    phrase = _without_stop(phrase)
    if is_known(phrase):
        return phrase
    whole = words = phrase.split(" ")
    if explicit and len(words) > 1 and words[-1] == words[-2]:  # f"train_ppl {train_ppl=}"
        return words[-1]
    while len(words) > 1 and words[0].lower().strip("[]()") in _NOISE_WORDS:
        words = words[1:]
        if is_known(" ".join(words)):
            return " ".join(words)
    if _stands_alone(words, explicit=explicit):
        return words[-1]
    known = explicit or len(whole) == 1 or (len(whole) < 4 and (is_telling(phrase) or is_measured(phrase)))
    return phrase if known else None


def _stands_alone(words: list[str], *, explicit: bool) -> bool:
    """Say whether the last word is the name, without those before it: a counter, an identifier ("info cv_loss 7.6")."""
    if canonical(words[-1]) in COUNTERS:
        return words[-2:-1] not in (["fps"], ["per"], ["episode"], ["search"], ["this"])
    return not explicit and "_" in words[-1] and is_known(words[-1])


def _without_stop(phrase: str) -> str:
    """Return what follows a sentence ("done. Loss"), or the name without the full stop in it ("val. loss")."""
    before, stop, after = phrase.rpartition(". ")
    if not stop:
        return phrase
    name = f"{before} {after}"
    if is_known(name):
        return name
    ends = is_known(after) and len(before.split(" ")[-1]) > _MAX_ABBREVIATION_LETTERS
    return after if ends else phrase


# Lines that give numbers by their place, or names in a way of their own: written out, so that all lines read alike.

Meant = str | Callable[[re.Match[str]], str]


def _of_norm(found: re.Match[str]) -> str:
    if found["ratio"]:
        return "update_ratio"
    return f"update_norm({found['update'].replace('*', '.')})" if found["update"] else "weight_norm"


class _Form(NamedTuple):
    """A way of writing lines.

    Args:
        marks: What stands in each such line, or one of several.
        meant: What is written in the place of what its pattern finds.
        pattern: What it looks like.
        flags: Those of the pattern.
        needs: What it needs besides, as `regex` takes it, where the marks stand in many lines.
    """

    marks: str | tuple[str, ...]
    meant: Meant
    pattern: str
    flags: int = re.IGNORECASE
    needs: tuple[str, ...] = ()


def _of_edsr(line: re.Match[str]) -> str:
    losses = line["losses"].replace("[", " ").replace(": ", "_loss=").replace("]", ",")
    return f"batch [{line['batch']}] {losses} batch_time={line['model']} data_time={line['data']}"


_AGAIN_OF_SAME = (
    r"^.{0,60}\b(?:checkpoint|ckpt|weights|final|best|last|same)\b[^:=]{0,80}?"
    r"\b(?:pass|repeat|repetition|again|turn)[ (#]{1,2}(?P<turn>\d{1,2})(?:(?: of |/)\d{1,2}|(?=[:|,)]| [|-]))\)?\s?:?"
)
PASS_OF_SAME = regex(_AGAIN_OF_SAME, re.IGNORECASE, needs=("pass", "repe", "again", "turn"))
"""A line of one of several evaluations of the same weights."""
_BEHIND = (
    r" (?:at|after|in|for) (?:the )?"
    r"(?P<counter>(?:(?:global|training)[ -])?(?:step|iteration|epoch|episode|update|batch|round) ?#?\d[\d,]*)"
)
_AT_COUNTER = regex(_BEHIND, re.IGNORECASE, needs=(" at ", " after ", " in ", " for "))
_AT = regex(
    rf"^\W*(?P<name>[a-z][\w /.-]{{0,60}}?)(?: \([^()\d]*\))?{_BEHIND}"
    r"(?:\s*[:=]\s*|,? (?:is|was) )(?=[-+.]?\d|nan|[-+]?inf)",
    re.IGNORECASE,
)
"""The value after the counter: "Cost after iteration 100: 0.69", "Training loss (for one batch) at step 0: 2.3"."""
_ASIDE = regex(
    r"(?<=\w)(?: \((?![^()]{0,80}\b(?:train|val|valid|test|eval|dev))[^()=:]{0,40} [^()=:]{0,40}\)"
    r"| (?:over|of|in) (?:the )?(?:last )?\d+ (?:test |eval(?:uation)? |training |consecutive )?(?:episodes|games)"
    r"| (?:over|of|on|across) (?:the |all )?(?:last )?\d[\d,]{0,12}"
    r"(?P<phase> (?:train(?:ing)?|val(?:idation)?|test|eval))? "
    r"(?:(?:mini-?)?batch(?:es)?|samples|examples|images|rows|sequences|sentences|utterances|users|folds)"
    r"| \([a-z]\w{0,20}=(?:True|False|None)\))"
    r"(?=\s*[:=]\s*(?:[-+.\d]|nan\b|inf\b))",
    re.IGNORECASE,
)
"""What a metric's name says aside.

"Avg Reward (last 10): 21.5", "Mean test loss of 40 batches: 0.7", "val loss (train=False): 0.7"."""
_COUNTS_ROWS = regex(r"\d [a-z -]{0,20}(?:s|es|batch)\s*[:=]", re.IGNORECASE, needs=(":", "="))
"""Stands in each name that says of how many rows, batches or episodes it is."""
_VITS = ("loss_disc", "loss_gen", "loss_fm", "loss_mel", "loss_dur", "loss_kl")
_QUOTED = regex(
    rf"""(['"])([\w./@ -]{{1,80}})\1\s*(?:[:=]\s*['"]?(?=[-+.\dnNiI])|,\s*(?=[-+.]?\d|(?:nan|[-+]?inf)\b|{_WRAPPER}))"""
)
"""PaddleDetection up to 2.0: "iter: 20, lr: 0.01, 'loss': '1.26'"; tuples: "('step', 20, 'loss', 1.26)", and those
of PFRL, with numbers of NumPy and NaN."""
_QUOTED_NUMBER = regex(rf"""(?<=\w=)(['"])({NUMBER})\1""", re.IGNORECASE)
"""Attributes as in XML: step="20" loss="1.26"."""
_PART_OF_DURATION = regex(r"(\d+(?:\.\d+)?) (day|hour|minute|second)")


_TERSE = regex(
    r"\s*(?:(?P<phase>[VT])[ :]\s?)?(?=[EISBU])(?:E(?P<epoch>\d{1,6})(?:/\d{1,6})?[ ,:|]{1,3})?"
    r"(?:[ISBU](?P<step>\d{1,9})(?:/\d{1,9})?[ ,:|]{1,3})?(?=[A-Za-z_][\w/.]{0,60}\s?=\s?[-+]?(?:\.?\d|nan\b|inf\b))",
    needs="=",
)
"""Counters of one letter, glued to their number, before metrics: "E001 I00012 L=2.136", "V E001 I00012 L=2.0"."""
_TERSE_LOSS = regex(r"(?<!\S)L(?=\s?=)")


_GROUP = regex(
    r"(?P<name>[A-Za-z][\w./-]{0,60}) ?(?:\[(?P<listed>[^\[\]()]{3,600})\]|\((?P<called>[^\[\]()]{3,600})\))"
)
"""Members in brackets behind a name: "tot_loss[loss=0.60, simple_loss=0.59, over 375.00 frames. ]"."""
_MEMBER = regex(rf"(?<![\w./-])(?P<name>[A-Za-z][\w./-]{{0,60}})(?=\s?[=:]\s?{NUMBER}(?!\w))", re.IGNORECASE)
_OVER = regex(r"\bover (?=\d[\d.,]* [a-z]+\b)")


def _grouped(line: str) -> str:
    """Put the name of its group before each member where groups have members of the same names, but "loss[loss=1]"."""
    groups = [(group, {member["name"] for member in _MEMBER.finditer(group[0])}) for group in _GROUP.finditer(line)]
    groups = [(group, names) for group, names in groups if names]
    shared = {name for at, (_, names) in enumerate(groups) for _, others in groups[:at] for name in names & others}
    for group, names in reversed(groups):
        if shared.isdisjoint(names):
            continue
        inside = _OVER.sub("", group["listed"] or group["called"])
        if group["name"] not in names:
            inside = _MEMBER.sub(rf"{group['name']}/\g<name>", inside)
        line = f"{line[: group.start()]}{inside}{line[group.end() :]}"
    return line


def _terse(line: str) -> str:
    """Write out counters of one letter: of an epoch, of an iteration, step, batch or update; V is of validation."""
    found = _TERSE.match(line)
    if found is None or not (found["epoch"] or found["step"]):
        return line
    rest = _TERSE_LOSS.sub("loss", line[found.end() :])
    if not found["step"] and rest == line[found.end() :]:
        return line
    counted = [f"{name} {found[name]}" for name in ("epoch", "step") if found[name]]
    return f"{'val: ' if found['phase'] == 'V' else ''}{' '.join(counted)} | {rest}"


def _seconds(duration: re.Match[str]) -> str:
    """Write "3 hours, 11 minutes and 16.97 seconds" (ESPnet) in seconds."""
    parts = _PART_OF_DURATION.findall(duration[0])
    return f"{sum(float(number) * SECONDS_PER[f'{unit}s'] for number, unit in parts):.10g}s"


def _named(listed: re.Match[str]) -> str:
    """Name what VITS and its children print as a list: the losses, the step and the learning rate."""
    losses = listed[1].rstrip(", ").split(", ") if listed[1] else []
    names = _VITS if len(losses) == len(_VITS) else [f"loss_{number}" for number in range(1, len(losses) + 1)]
    named = "".join(f"{name}={value}, " for name, value in zip(names, losses, strict=True))
    return f"step {listed[2]}: {named}lr={listed[3]}"


def _of_darknet(line: re.Match[str]) -> str:
    """Name what darknet prints; its classifier tells the epoch too: "3, 0.600: 0.64, 0.62 avg, ..."."""
    step, epoch, *values = line.groups()
    names = ("loss", "average_loss", "learning_rate", "step_time", "samples_seen")
    pairs = ", ".join(f"{name}={value}" for name, value in zip(names, values, strict=True) if value is not None)
    return f"step {step}: {f'epoch {epoch}, ' if epoch else ''}{pairs},"


_NO_OBJECT = -1.0
"""The score where no object is of that size."""
_LIST_OF_PARTS = rf"\[({NUMBER}(?:, {NUMBER}){{0,60}})\]"
_STATISTIC = r"(?:min|max|mean|avg|median|std|p\d{1,2})"
_EACH_STATISTIC = regex(rf"(?P<statistic>{_STATISTIC}) (?=[-+.\dni])", re.IGNORECASE)


def _of_an_adaptation(found: re.Match[str]) -> str:
    """Write the name of a column before each of its two values; a phase alone is of what the first name is."""
    name, (phase, *measured) = found["name"], (found.re.search(found.string) or found)["name"].split()
    if names_phase(name.rpartition("-")[2]) and names_phase(phase.rpartition("-")[2]):
        name = " ".join([name, *measured])
    return f"{name} {found['first']}={found['low']} {name} {found['then']}={found['high']}"


_NAMES_BOTH = regex(r"[A-Za-z]/[A-Za-z]{1,20} $")


def _both_named(found: re.Match[str]) -> str:
    """Write two values behind one name apart; the words before it name both in "mean/median reward 30.5/29.0"."""
    named = _NAMES_BOTH.search(found.string, max(0, found.start() - 24), found.start())
    return found[0] if named else f"{found['pair']}, {found['name']}_2: {found['second']}"


def _of_coco(row: re.Match[str]) -> str:
    """Name the score of a row of COCO's evaluation: AP over thresholds, AP50, AP_small, average_recall_10."""
    if parse_number(row["score"]) == _NO_OBJECT:
        return ""
    area = "" if row["area"] == "all" else f"_{row['area']}"
    if row["which"].lower() == "recall":
        return f"eval_average_recall{area or '_' + row['most']} = {row['score']}"
    return f"eval_AP{'' if row['range'] else row['overlap']}{area} = {row['score']}"


def _of_deepxde(row: re.Match[str]) -> str:
    """Name the losses of a row of DeepXDE, the sums of their parts."""
    train, test = (sum(parse_numbers(row[place]) or [math.nan]) for place in (2, 3))
    return f"step {row[1]}: train loss = {train:.10g}, test loss = {test:.10g}"


def _of_kaldi(found: re.Match[str]) -> str:
    """Name a logarithm of a probability that Kaldi computes per frame: the loss is what it lacks to 0."""
    part, value = (found["part"] or "").lstrip("-"), parse_number(found["value"]) or 0.0
    return f"step {found['step']} | {found['of']} {part + '_' if part else ''}loss = {-value:.10g}"


def _of_parts(losses: re.Match[str]) -> str:
    """Name a loss and its parts."""
    parts = "".join(f", loss_{at}={part.strip()}" for at, part in enumerate(losses["parts"].split("+"), start=1))
    return f"{losses['phase']} loss={losses['sum']}{parts}"


_NAME_FIRST = r"\3=\1 \2"
_VALUE_AND_NAME = regex(rf"({NUMBER}) (ms |GB )?([A-Za-z]\w{{0,20}})", re.IGNORECASE)
_LETTERS = regex(r"(?<![\w.])([A-Z]{1,2})(?=: ?[-\d])")
_MEANT_BY_LETTERS = {"E": "episode", "I": "step", "F": "frame_count", "L": "episode_length", "R": "episode_reward"}


def _of_letters(line: re.Match[str]) -> str:
    """Name what letters stand for; S are steps where frames are counted too, else a success."""
    meant = {**_MEANT_BY_LETTERS, "S": "step" if "F: " in line["letters"] else "success"}
    named = _LETTERS.sub(lambda letter: meant.get(letter[1], letter[1]), line["letters"])
    return f"{line['phase']}: {named}"


def _of_build_nanogpt(line: re.Match[str]) -> str:
    """Name the loss of a phase, or the score of HellaSwag."""
    name = f"{line['phase']} loss" if line["phase"] else "eval_hellaswag_accuracy"
    return f"step {line['step']}: {name} = {line['value']}"


_A_SET = r"(?:train(?:ing)?|val(?:id(?:ation)?)?|test(?:ing)?|eval(?:uation)?|dev)"
_FORMS = (
    # A row that pycocotools prints: "Average Precision  (AP) @[ IoU=0.50:0.95 | area= small | maxDets=100 ] = 0.125".
    _Form("@[", _of_coco, r"\bAverage (?P<which>Precision|Recall)\s{1,8}\(A[PR]\)\s{0,4}"
          r"@\[\s?IoU=0?\.(?P<overlap>\d\d)(?P<range>:[\d.]{1,6})?\s{0,12}\|"
          r"\s?area=\s{0,6}(?P<area>[a-z]{1,10})\s?\|\s?maxDets=\s{0,6}(?P<most>\d{1,5})\s?\]"
          rf"\s?=\s?(?P<score>{NUMBER})"),
    # A number of the same rows by something else: "(export probe, same rows: 3.09 3.09)".
    _Form(", same ", r"\g<by> same \g<of>",
          r"(?<=\()(?P<by>[A-Za-z][\w -]{1,30}), same (?P<of>[a-z]{3,12})(?=\s?[:=])"),
    # The set that a record is of, as a value among others: "Epoch: 3, Phase: val, Loss: 0.5"; ML.NET says both.
    _Form(("hase", "ode", "tage", "plit", "set"), r"\g<set> | \g<before>\g<behind>",
          rf"^(?=.{{0,200}}\b(?:epoch|step|iter(?:ation)?)\b)(?P<before>.{{0,200}}?)(?<![\w./-])"
          r"(?:phase\s?[:=]\s?\w{4,10},\s{1,4})?(?:phase|mode|stage|split|(?:data|sub)?set(?: used)?)\s?[:=]\s{0,12}"
          rf"(?P<set>{_A_SET})(?:\s?[,;|\t]\s{{0,4}}|\s{{1,4}}(?=[a-z][\w./-]{{0,40}}\s?[=:]))(?P<behind>\S.*)$"),
    # The same at the end of a line, or in brackets there: "epoch 3 loss 0.5 split: val", "epoch 3 loss 0.5 [val]".
    _Form(("hase", "ode", "tage", "plit", "set", "]"), r"\g<set> | \g<before>",
          rf"^(?=.{{0,200}}\b(?:epoch|step|iter(?:ation)?)\b)(?P<before>(?:(?!\b{_A_SET}\b).){{10,400}}?)[\s,;|]{{1,6}}"
          rf"(?P<open>\[)?(?(open)|(?:phase|mode|stage|split|(?:data|sub)?set)\s?[:=]\s{{0,4}})"
          rf"(?P<set>{_A_SET})(?(open)\])\s*$"),
    # The same without its name, behind the epoch: "Epoch 3, val, loss: 0.5", "Epoch 3 val, loss = 0.5".
    _Form(", ", r"\g<set> | \g<epoch>, ",
          rf"^(?P<epoch>\W{{0,4}}epoch\b[^,;:=|]{{0,4}}[\d/ ]{{1,14}}),?\s?(?P<set>{_A_SET}),\s(?=[a-z])"),
    # A loss called by its letter in front of its parts: "L: 20.5, L_crf: 4.25, L_selection: 16.25".
    _Form("L: ", "loss: ", rf"(?<![\w./-])L: (?={NUMBER}, L_[a-z])", flags=0),
    # DL4J, whose score is the loss: "o.d.o.l.ScoreIterationListener - Score at iteration 10 is 1.25".
    _Form("ScoreIterationListener", r"iteration \1 loss=",
          r"^.{0,200}\bScoreIterationListener\W{1,6}Score at iteration (\d{1,9}) is {1,4}", flags=0),
    # Spark and Breeze: "Val and Grad Norm: 0.5 (rel: 0.1) 0.02".
    _Form("Val and Grad Norm", r"loss=\1 relative_change=\2 grad_norm=",
          rf"\bVal and Grad Norm: ({NUMBER}) \(rel: ({NUMBER})\) ", flags=0),
    # Trax: "Step    500: eval  CrossEntropyLoss |  0.25".
    _Form(" | ", r"\g<phase> \g<name> = ",
          r"(?<=: )(?P<phase>train|eval) {1,30}(?P<name>[A-Z]\w{2,40}) \| {1,6}(?=[-+.\d]|nan\b)", flags=0),
    # MatConvNet: "train: epoch 02:   5/ 20: 123.4 (120.2) Hz objective: 1.25 top1err: 0.5".
    _Form(" Hz ", r"samples_per_second=\1, loss: ", rf"{NUMBER} \(({NUMBER})\) Hz obj(?:ective)?: ", flags=0),
    # MALLET: "<10> LL/token: -9.25"; OpenNLP: "  1:  ... loglikelihood=-1250.5  0.25", "  1:  . (4500/5000) 0.9".
    _Form("> LL/", r"step \1: objf=", r"^\s{0,4}<(\d{1,7})> LL/token: (?=[-\d])", flags=0),
    _Form(":  .", lambda line: f"step {line['step']}: {'objf=' + line['sum'] if line['sum'] else ''} accuracy=",
          rf"^\s{{0,8}}(?P<step>\d{{1,6}}): {{1,2}}\.{{1,3}} "
          rf"(?:loglikelihood=(?P<sum>{NUMBER})|\(\d{{1,12}}/\d{{1,12}}\))\s{{1,4}}(?=\d)", flags=0),
    # DeepFaceLab: "[10:20:30][#001500][0640ms][0.45][0.25]"; faceswap: "[#00150] face_A: 0.05, face_B: 0.04".
    _Form("[#", r"step \1: step_time=\2 loss_src=\3 loss_dst=\4",
          rf"^\[#(\d{{1,9}})\]\[([\d.]{{1,9}}m?s)\]\[({NUMBER})\]\[({NUMBER})\]\s{{0,4}}$", flags=0),
    _Form("[#", r"step \g<step>: loss_A=\g<first>, loss_B=\g<second>",
          rf"^\[#(?P<step>\d{{1,9}})\] (?:Loss |face_)A: (?P<first>{NUMBER}), (?:Loss |face_)B: (?P<second>{NUMBER})"),
    # A part of a loss by its number, as in neural style transfer: "Style 2 loss: 40.5".
    _Form(" loss", r"\g<part>_\g<number>_",
          r"(?P<part>\b(?:style|content|layer|level|stage|scale|head|task|branch|exit|output|component|term)s?) "
          r"(?P<number>\d{1,3}) (?=loss\s?[:=])"),
    # lingua, behind the step: its micro-batches so far, "step: 20  acc: 0  loss: 9.5"; an accuracy has a decimal point.
    _Form(" acc: ", r"\1  accumulated: ", r"(step: \d{1,9}) {1,4}acc: (?=\d{1,4} {2})", flags=0),
    # DARTS and its children, of the epoch so far: "train 050 1.250000e+00 50.500000 75.250000".
    _Form("train ", r"train batch \1 loss=\2 top1=\3 top5=\4",
          r"^\s?train (\d{3,6}) (\d\.\d{6}e[-+]\d\d|nan) (\d{1,3}\.\d{3,6}) (\d{1,3}\.\d{3,6})\s*$", flags=0),
    # open_clip counts epochs from 0 in training, and in an evaluation those that are over: "Eval Epoch: 1 clip_val_..".
    _Form("Eval Epoch: ", lambda line: f"Eval Epoch: {int(line['over']) - 1} {line['scores']}",
          r"\bEval Epoch: (?P<over>[1-9]\d{0,5}) (?P<scores>.{1,4000}?)\t?\bepoch: (?P=over)\.0000(?=\t|\s*$)",
          flags=0),
    # The examples of OGB, of shares that are right: "Loss: 1.25, Train: 50.25%, Valid: 25.5% Test: 24.5%".
    _Form("rain: ", r"\g<phase> accuracy: ",
          rf"\b(?P<phase>Train|Valid|Val|Test): (?={NUMBER}%(?:,? (?:Valid|Val|Test): {NUMBER}%){{0,2}}\s*$)", flags=0),
    # Lightning, of a score by which it keeps weights: "Epoch 0, global step 9: 'val_loss' reached 0.5 (best 0.5), ...".
    _Form(" reached ", r"\g<name>=\g<score>",
          rf"(?P<open>'?)(?P<name>[A-Za-z][\w./-]{{0,80}})(?P=open) reached (?P<score>{NUMBER}) "
          rf"(?:\(best {NUMBER}\))?, "
          r"saving model to .{1,400} as top \d{1,4}\s*$"),
    # EDSR and its children: "[1600/16000]\t[L1: 12.25][VGG: 0.5]\t35.2+12.4s".
    _Form("\t[", _of_edsr,
          rf"^\[(?P<batch>\d{{1,9}}/\d{{1,9}})\]\t(?P<losses>(?:\[\w{{1,20}}: {NUMBER}\]){{1,12}})"
          rf"\t(?P<model>{NUMBER})\+(?P<data>{NUMBER})s\s*$", flags=0),
    # EAST: "Epoch is [1/600], mini-batch is [2/125], time consumption is 1.25, batch_loss is 0.5".
    _Form(" is [", r"Epoch [\1], batch [\2], step_time is ",
          r"^Epoch is \[(\d{1,9}/\d{1,9})\], mini-batch is \[(\d{1,9}/\d{1,9})\], time consumption is ", flags=0),
    # SRGAN, beside the bar of an evaluation: "[converting LR images to SR images] PSNR: 22.5 dB SSIM: 0.5".
    _Form("[converting ", "val: ", r"^\[converting LR images to SR images\] (?=PSNR: )", flags=0),
    # L-BFGS-B: "At iterate    5    f=  1.25D+02    |proj g|=  4.0D-01".
    _Form("At iterate", r"iter \1 loss=", r"^\s{0,8}At iterate +(\d{1,9}) +f= *", flags=0),
    # R's `optim` and `nnet`: "initial  value 90.5", "iter  10 value 40.25".
    _Form(" value ", lambda line: f"iter {line['step'] or 0} loss={line['loss']}",
          rf"^(?:iter +(?P<step>\d{{1,9}})|initial) +value +(?P<loss>{NUMBER})\s*$"),
    # CNTK, of the epoch: "Finished Evaluation [3]: Minibatch[1-79]: metric = 4.5% * 10000;".
    _Form("inished E", r"eval epoch \1: ",
          r"\bFinished Evaluation \[(\d{1,9})\]: (?:Minibatch\[[\d-]{1,20}\]: )?", flags=0),
    # CNTK, in training: " Epoch[ 1 of 9]-Minibatch[ 101- 200, 40.00%]: CrossEntropyWithSoftmax = 1.25 * 6400".
    _Form("Minibatch[", r"batch [\1]: ", r"\bMinibatch\[ *\d{1,9}- *(\d{1,9})(?:, *[\d.]{1,9}%)?\]: ", flags=0),
    # SupContrast and its children, the times of a batch and of its data: "BT 0.512 (0.600)  DT 0.001 (0.010)".
    _Form("BT ", r"batch_time \1 data_time ", rf"\bBT ({NUMBER} \({NUMBER}\))\s+DT (?={NUMBER} \()"),
    # build-nanogpt's log.txt: "250 val 6.4012", "250 hella 0.2512", "250 train 6.412345".
    _Form((" train ", " val ", " hella "), _of_build_nanogpt,
          rf"^(?P<step>\d{{1,9}}) (?:(?P<phase>train|val)|(?P<score>hella)) (?P<value>{NUMBER})\s*$"),
    # MAPPO and its children: "updates 5/300 episodes, total num timesteps 16000/960000, FPS 850".
    _Form("num timesteps ", r"update \1, fps: \2",
          r"^.{0,200}?\bupdates (\d{1,9}/\d{1,9}) episodes, total num timesteps \d{1,12}/\d{1,12}, FPS (\d{1,9})\b",
          flags=0),
    # gensim's topic models: "-7.5 per-word bound, 181.0 perplexity estimate based on a held-out corpus of 9 documents".
    _Form(" per-word bound", r"eval_log_likelihood=\1, eval_perplexity=\2",
          rf"({NUMBER}) per-word bound, ({NUMBER}) perplexity estimate based on a held-out corpus\b.*$"),
    # tinygrad's examples: "  5  120.5 ms run,  1.25 loss, 0.01 LR, 0.5 GB used".
    _Form(" loss, ", lambda line: f"step {line['step']}: {_VALUE_AND_NAME.sub(_NAME_FIRST, line['parts'])}",
          rf"^\s{{0,8}}(?P<step>\d{{1,9}}) {{1,8}}(?P<parts>(?:{NUMBER} (?:ms |GB )?[A-Za-z]\w{{0,20}}, +){{2,12}}"
          rf"{NUMBER} (?:ms |GB )?[A-Za-z]\w{{0,20}})\s*$"),
    # Loggers of DrQ and TD-MPC: " eval    E: 5   I: 2,500   R: 40.5", "| train | F: 500 | S: 250 | E: 1 | R: 5.5".
    _Form(" R: ", _of_letters,
          r"^\W{0,4}(?P<phase>train|eval) [| ]{1,10}(?P<letters>[A-Z]{1,2}: ?[\d,.-]{1,20}[| ].{0,400}\bR: ?-?\d.*)$",
          flags=0),
    # nnU-Net: "lr is now (scheduler) 0.0003".
    _Form(" is now ", ": ", r"(?<=\w) is now (?:\([a-z ]{1,20}\) )?(?=[-+.]?\d)"),
    # JiGen and its children: "Accuracies on val: class : 88.5".
    _Form(" on ", r"\g<phase> accuracy_\g<of>: ",
          r"^\W{0,8}accurac(?:y|ies) on (?P<phase>val(?:idation)?|test|dev|eval): "
          r"(?P<of>[A-Za-z]\w{0,30}) ?: ?(?=\.?\d)"),
    # RandLA-Net: "Step 00000050 L_out=1.25 Acc=0.75 ---  250.5 ms/batch".
    _Form("L_out", "loss", r"(?<!\S)L_out(?=\s?=)", flags=0),
    # pytorch-a2c-ppo-acktr: "mean/median reward 30.5/29.0, min/max reward 11.5/42.0".
    _Form("/", r"\g<first>_\g<name>=\g<low>, \g<second>_\g<name>=\g<high>",
          rf"\b(?P<first>mean|avg|min)/(?P<second>median|std|max) (?P<name>[a-z]\w{{0,20}}) "
          rf"(?P<low>{NUMBER})/(?P<high>{NUMBER})"),
    _Form(" episodes: ", "", r"\blast \d{1,6} (?:training |test )?episodes: "),
    # What a schedule says of its rate: "Updating learning rate to 5e-05", "Adjust lr to  0.0005".
    _Form(" to", r"\g<name>: ",
          r"(?:\b[a-z]{2,9}ing |\b(?:adjust|set|change|reduce|decrease|decay) )?(?:the )?\b"
          r"(?P<name>learning[ _]rate|lr) {1,2}(?:(?:annealed|decayed|reduced|set) )?to:? {1,2}(?=\.?\d)"),
    # A speed in seconds is the time of a step: "speed: 0.322s / iter".
    _Form("peed: ", "step_time: ", rf"\bspeed: (?={NUMBER} ?s ?/ ?it(?:er)?\b)"),
    # NGCF and its children, of the loss and its parts: "Epoch 1 [60.2s]: train==[103.31=102.82 + 0.49]".
    _Form("=[", _of_parts,
          rf"\b(?P<phase>train|val|test)==?\[(?P<sum>{NUMBER})=(?P<parts>{NUMBER}(?: ?\+ ?{NUMBER}){{1,6}})\]"),
    # A row of DeepXDE below names that are cut off: the step, the parts of the loss, and those of the test loss.
    _Form("]  ", _of_deepxde,
          rf"^\s{{0,8}}(\d{{1,9}})\s{{2,20}}{_LIST_OF_PARTS}\s{{2,20}}{_LIST_OF_PARTS}"
          r"\s{2,20}\[[^\[\]]{0,200}\]\s*$"),
    # Kaldi's grep of its logs: ".../compute_prob_valid.20.log:LOG (...) Overall log-probability for 'output' is -0.5".
    _Form("compute_prob_", _of_kaldi,
          rf"^.{{0,300}}?compute_prob_(?P<of>valid|train)\.(?P<step>\d{{1,9}})\.log:.{{0,200}}?"
          rf"Overall log-\w{{4,12}} for "
          rf"'output(?P<part>-\w{{1,20}})?' is (?:{NUMBER} \+ {NUMBER} = )?(?P<value>{NUMBER}) per frame.*$"),
    # Sample Factory: "Fps is (10 sec: 902.5, 60 sec: 901.1, 300 sec: 899.0). Total num frames: 81920. Throughput: ...".
    _Form("Fps is (", r"\2, fps: \1",
          rf"\bFps is \(10 sec: ({NUMBER}), [^()]{{0,80}}\)\. (Total num frames: \d{{1,15}})\b.{{0,200}}$"),
    # The same, of its first policy: "Avg episode reward: [(0, '4.25')]".
    _Form("episode reward: [", r"Avg episode reward: \1", rf"\bAvg episode reward: \[\(0, '({NUMBER})'\).{{0,400}}\]"),
    # WeNet, in an evaluation: "CV Batch 4/100 loss 30.5 loss_ctc 46.2 history loss 28.1", of the batch and so far.
    _Form("history loss ", r"\2", rf"(?<=\bloss )({NUMBER})(?= .{{0,300}} history loss ({NUMBER}))"),
    # The arguments of a TensorBoard writer, printed: "losses/q1_loss 65.25 193000".
    _Form("/", r"step \g<step>: \g<tag> = \g<value>",
          rf"^\s{{0,8}}(?P<tag>[A-Za-z]\w{{0,40}}/[\w./-]{{1,80}}) \[?(?P<value>{NUMBER})\]? "
          rf"(?P<step>\d{{1,12}})\s{{0,8}}$"),
    # CatBoost, before 2018: "0:  learn 0.635passed: 17.4 sec  total: 3m 13s", with the time of the step behind a score.
    _Form("passed: ", lambda score: f"{score[1]}: {score[2]}{' step_time: ' * score[0].endswith(': ')}",
          rf"\b(learn|test) ({NUMBER})(?:passed: (?=\d))?", flags=0),
    # GluonTS calls so the loss of training too: "Evaluation metric 'epoch_loss'=0.3"; see `validation_epoch_loss`.
    _Form("valuation metric '", r"\1 = ", r"\bEvaluation metric '(\w{1,60})'\s?=\s?", flags=0),
    # Caffe, before 2015: "Test score #0: 0.75".
    _Form(" #", r"_\1", r"(?:(?<=score)|(?<=loss)|(?<=metric)) #(\d{1,3})(?=\s?[:=]\s?[-+.\d])"),
    # MACE with several heads, a line for each: "Epoch 1: head: default, loss= 0.5, RMSE_F= 40.5 meV / A".
    _Form("head: ", r"[\1] ", r"\bhead: (\w{1,40}), (?=loss\s?=)", flags=0),
    # The units of MACE's errors.
    _Form(" meV", "", r"(?<=\d) meV(?: / A(?:\^\d)?)?(?=,|$)", flags=0),
    # A number as NumPy writes it since version 2, in a list: "Pseudo dice [np.float32(0.87), np.float32(0.8)]".
    _Form("float", r"\1", rf"(?<![\w.])(?:np\.|numpy\.)float\d{{1,3}}\(({NUMBER})\)"),
    # Of how many rows a mean is, as icefall prints it: "validation: loss=1.25, over 1639044.00 frames.".
    _Form(" over ", "", rf",\s{{0,3}}over {NUMBER} [a-z]{{3,20}}\b(?!\s?[:=])(?:\.(?=\s?[\])]))?"),
    # rsl_rl, of the time of an iteration: "Computation: 96704 steps/s (collection: 0.812s, learning 0.191s)".
    _Form("steps/s (", r"steps/s: \1, collection_time: \2, learning_time: \3",
          rf"^\s*Computation: ({NUMBER}) steps/s \(collection: ({NUMBER}) ?s, learning ({NUMBER}) ?s\)"),
    # Statistics behind the one name that they are of: "| sigma min 1.05 mean 1.15 |".
    _Form(("| ", ", "), lambda found: _EACH_STATISTIC.sub(rf"{found['name']} \g<statistic>=", found["of"]),
          rf"(?<=[|,;] )(?P<name>[A-Za-z]\w{{0,30}}(?: [A-Za-z]\w{{0,30}})?) (?P<of>{_STATISTIC} {NUMBER}"
          rf"(?:,? {_STATISTIC} {NUMBER}){{0,6}})(?=\s?(?:[|,;]|$))"),
    # Values before and after an adaptation behind one name: "| train loss pre 4 post 2 | val (9 tasks) pre 4 post 2".
    _Form("| ", _of_an_adaptation,
          rf"(?<=[|,;] )(?P<name>[A-Za-z][\w-]{{0,30}}(?: [A-Za-z]\w{{0,30}}){{0,3}}?):?(?: \([^()|]{{1,40}}\))? "
          rf"(?P<first>pre|before) (?P<low>{NUMBER}),? (?P<then>post|after) (?P<high>{NUMBER})(?=\s?(?:[|,;]|$))",
          needs=("post ", "after ")),
    # A value that the one who pasted the log marked.
    _Form("**", r"\1\2", rf"(?<=[=:])(\s?)\*\*({NUMBER})\*\*"),
    # Dots that lead from a name to its value: "training loss.....: 3.7", "loss ........ 3.7".
    _Form("..", "",
          r"(?<=[\w)%]) ?\.{2,200}(?=\s?[:=])|(?<=[A-Za-z_)%]) ?\.{2,200}(?=\s[-+]?(?:\.?\d|nan\b|inf(?:inity)?\b))"),
    # The first of several rows, or of another list: "chunk[0]=6792".
    _Form("]", r"_\1", r"(?<=[a-z_])(?<!epoch)(?<!rank)(?<!gpu)\[(\d{1,3})\](?=\s?=\s?[-+.\d])"),
    # How far down a ranking is looked: "NDCG(k=20): 0.25".
    _Form("(", r"@\1", r"(?<=[a-z1]) ?\((?:k|n|top_?k?) ?= ?(\d{1,5})\)(?=\s*[:=])"),
    # How many rows an evaluation takes at once, as SpeechBrain prints it: "batch size 8 - test loss: 1.25".
    _Form("batch size", "batch_size=",
          r"\bbatch size (?=\d{1,6}\b(?!\s?[:=]).{0,80}\b(?:valid(?:ation)?|val|test|dev|eval(?:uation)?)\b)"),
    # The same in front of all values: "[bs 8] val_loss=1.25", "eval (bs=8): loss 1.25", "bsz 8 | eval loss 1.25".
    _Form("b", r"\g<head>batch_size=\g<rows>, ",
          r"^(?=.{0,80}\b(?:valid(?:ation)?|val|test|dev|eval(?:uation)?)(?:\b|_))(?P<head>[^\d=|:\[({]{0,40}?)"
          r"(?<![^\W_])[\[(]?(?:batch[ _]?size|bsz?)(?: ?[=:] ?| )(?P<rows>\d{1,6})(?:[\])]? ?[:|,]|[\])])\s"),
    # A phase behind the level that stands apart from its metrics: "INFO - val    loss: 0.52  acc: 0.84".
    _Form("- ", r"\g<phase> ", r"(?<=- )(?P<phase>val|valid|eval|test) {2,}(?=[a-z]{2,}\w*[:=] ?\d)"),
    # Which evaluation of the same weights a line is of: "Re-validating last.pth (2/4): loss 0.45", "..., pass 2: ...".
    _Form("e", r"evaluated_again=\g<time>\g<pass>, ",
          r"^\W{0,8}re-?(?:valid|eval|test|scor|check|runn)[a-z]{1,9}\b[^:=]{0,80}?(?:[ (](?P<time>\d{1,2})/\d{1,2}"
          r"|\b(?:pass|repeat|repetition|time|turn|round)[ #]{1,2}(?P<pass>\d{1,2}))\)?\s?:"),
    # The same in other words: "final - checkpoint step 640 pass 2/4 val_loss=0.45".
    _Form(("pass", "Pass", "repe", "again", "turn"), r"evaluated_again=\g<turn>, ", _AGAIN_OF_SAME),
    # The mean over thresholds from 0.5 to 0.95 holds a colon: "mAP@0.50:0.95: 0.31".
    _Form("@", "50-95", r"(?<=[a-z])@\[?\.?(?:IoU=)?0?\.?50?:0?\.95\]?(?=\s*[:=|,]|\s+[\d.])"),
    # The norm of the gradient, as optimizers print it: "f 8.6e+01 |g| 1.0e+01"; of a part: "|gD|=0.4 |g_enc| 0.2".
    _Form(("g|", "|g", "|G"),
          lambda norm: f"grad_norm/{norm['part'] or norm['player']}" if norm["part"] or norm["player"] else "grad_norm",
          r"\|{1,2}(?:proj )?(?:[gG]|[gG]rad|GRAD)(?:_(?P<part>[A-Za-z]\w{0,20})|(?P<player>[A-Z]))?\|{1,2}"
          r"(?=\s?[=:]|\s+[-+.\d])", flags=0),
    # A count out of a number that comes with it: "uniq 16 of 128", "exact 24 out of 30".
    _Form(" of ", r"\g<name> \g<count>/\g<whole>",
          r"(?<![\w./-])(?P<name>(?!step|iter|epoch|batch|fold|rank|round|part|page|layer|of\b)[A-Za-z][\w-]{1,30})"
          r" ?[=:]? ?(?P<count>\d{1,9}) (?:out )?of (?P<whole>\d{1,9})(?![\w.,]|\s?[=:])"),
    # The spread of a mean and how many it is of: "r 0.188 +- 0.392 over 128".
    _Form("+-", r"\g<pair>",
          rf"(?P<pair>(?<![\w./-])[A-Za-z][\w-]{{0,30}} ?[=:]? ?{NUMBER}) \+- {NUMBER} over \d{{1,9}}\b"),
    # Two norms of an update behind its sign in bars: "|step| asked 1.5e-03 got 4.7e-04", "|update| meant=.. done=..".
    _Form("|", r"update_norm(\g<first>) \g<low> update_norm(\g<then>) ",
          rf"(?<![\w|])\|{{1,2}}(?:step|upd|{UPDATE_SYMBOL})\|{{1,2}} ?:? ?"
          rf"(?P<first>[a-z]{{2,12}}) ?[=:]? ?(?P<low>{NUMBER})"
          rf",? ?(?:vs\.? |and |/ )?(?P<then>[a-z]{{2,12}})(?: ?[=:] ?| )(?={NUMBER})"),
    # The norm of the weights and of an update, in symbols: "|lr*u| 1.4e-03 |w-w_prev| 3.5e-04", "|dw|/|w|=0.01".
    _Form("|", _of_norm,
          rf"(?<![\w|])\|{{1,2}}(?:(?P<update>{UPDATE_SYMBOL})|(?:w|θ|theta))\|{{1,2}}"
          rf"(?P<ratio>\s?/\s?\|{{1,2}}{WEIGHTS_SYMBOL}\|{{1,2}})?(?=\s?[=:]|\s+[-+.\d])"),
    _Form(" avg", _of_darknet,
          r"^\s*(\d+)(?:, (\d+\.\d+))?: ([\d.naif-]+), ([\d.naif-]+) avg(?: loss)?, ([\d.eE+-]+) rate,"
          r"(?: ([\d.]+) seconds, (\d+) images)?"),
    _Form(" second", _seconds,
          r"(?<=[=: ])(?:\d+ days?,? )?(?:\d+ hours?,? )?(?:\d+ minutes?,? )?(?:and )?\d+(?:\.\d+)? seconds?\b",
          flags=0),
    _Form("m", lambda duration: f"{seconds_of(duration):.10g}s",
          rf"(?<=[=: ])(?=\d{{1,6}}[dhm]\s?\d){DURATION}(?<=[hms])(?![\w:]|\s?\d)", flags=0),
    # SageMaker: "train total_loss <loss>=1.26".
    _Form(">=", "", r" <[\w ]{1,40}>(?==)", flags=0),
    # Two phases and one name: "(train/val) loss: 1.26/1.34".
    _Form("/", r"\g<train> \g<name>: \g<first>, \g<eval> \g<name>: \g<second>",
          rf"\(?\b(?P<train>train(?:ing)?)\s?/\s?(?P<eval>val(?:id(?:ation)?)?|test|eval|dev)\b\)?\s+"
          rf"(?P<name>[A-Za-z][\w ]{{0,30}}?)(?:\s*[:=]\s*|\s+)(?P<first>{NUMBER})\s?/\s?(?P<second>{NUMBER})"),
    # The same behind the numbers: "ce 1.26/1.34 tr/va".
    _Form("/", r"\g<train> \g<name>: \g<first>, \g<eval> \g<name>: \g<second>",
          rf"(?<![\w./-])(?P<name>[A-Za-z]\w{{0,30}})\s?[:=]?\s?(?P<first>{NUMBER})\s?/\s?(?P<second>{NUMBER})\s"
          r"[(\[]?(?P<train>tr(?:n|ain)?)\s?/\s?(?P<eval>va(?:l(?:id)?)?|test|eval|dev)\b[)\]]?"),
    # The same behind the name: "loss (train/val): 1.26 / 1.34".
    _Form("/", r"\g<train> \g<name>: \g<first>, \g<eval> \g<name>: \g<second>",
          rf"(?<![\w./-])(?P<name>[A-Za-z][\w ]{{0,30}}?)\s?[(\[](?P<train>train(?:ing)?)\s?/\s?"
          rf"(?P<eval>val(?:id(?:ation)?)?|test|eval|dev)[)\]]\s*[:=]\s*"
          rf"(?P<first>{NUMBER})(?:\s?/\s?|,\s?|\s+)(?P<second>{NUMBER})"),
    # How a value was measured, in brackets in front of it: "fit (drop .25 on) 4.469, dev (off) 4.414".
    _Form(") ", "",
          r"(?<=[a-z]) \((?:(?:drop\w{0,4} |aug\w{0,10} |noise )?(?:on|off)"
          r"|(?:drop|aug|noise)\w{0,10} [\d.]{1,6}(?: on)?)\)(?= -?\d{1,9}\.\d)"),
    # Two values behind one name, as PyTorch's DCGAN prints them: "D(G(z)): 0.58 / 0.01". A share of a total has a unit.
    _Form("/", _both_named,
          r"(?<![\w(/])(?P<pair>(?P<name>[A-Za-z][\w@()/]{0,30})(?:\s{0,2}[:=]\s{0,2}|\s)-?\d{1,12}\.\d{1,12})\s?/\s?"
          r"(?P<second>-?\d{1,12}\.\d{1,12})(?![\w.%/]|\s?(?:[KMGT]i?B|s|ms|sec)\b)", flags=0),
    # The rows of a record, from the first to the last: "docs=[0..99]", "rows 100..199", "ids (0-99)".
    _Form(("..", "–", "=[", "=("), r"\g<name>_first=\g<first> \g<name>_last=\g<last>",
          r"(?<![\w./-])(?P<name>(?!batch|step|iter|epoch|layer|block)[A-Za-z][\w-]{0,30})"
          r" ?[=: ] ?(?P<open>[\[(])?(?P<first>\d{1,12}) ?(?:\.{2,3}|–|(?(open)[-:]|\.\.)) ?(?P<last>\d{1,12})"
          r"(?(open)[\])])(?![\w.])"),
    # The version of the weights between separators: "served 64 answers, v45, mean reward 0.5".
    _Form("v", r"version=\g<version>", r"(?<=[,;|] )v(?:ersion)? ?(?P<version>\d{1,9})(?= ?(?:[,;|]|$))"),
    # The evaluation in brackets: "loss: 1.26 (val: 1.34)".
    _Form((")", "]"), r"\g<pair>, \g<eval> \g<name>: \g<second>",
          rf"(?<![\w./-])(?P<pair>(?P<name>[A-Za-z]\w{{0,30}})(?:\s?[=:]\s?|\s){NUMBER}(?:\s?%)?)\s?"
          rf"[(\[](?P<eval>val(?:id(?:ation)?)?|test|eval|dev)\s?[=:]?\s?(?P<second>{NUMBER}(?:\s?%)?)[)\]]"),
    # What a value was before: "loss 2.50 -> 2.19".
    _Form(("->", "→"), "",
          rf"(?<=[=:\w] ){NUMBER}\s?(?:->|=>|[→⇒➜])\s?(?={NUMBER})|(?<=[=:]){NUMBER}\s?(?:->|[→⇒➜])\s?(?={NUMBER})",
          flags=0),
    # The counter in a sentence: "After 20 steps the training loss is 1.26".
    _Form("fter ", r"\g<before>\g<unit> \g<count>: ",
          r"^(?P<before>\W{0,8})after (?P<count>\d[\d,]*) (?P<unit>steps?|iterations?|updates?|epochs?|episodes?)\b"),
)  # fmt: skip
"""Ways of writing lines that are written out, in this order; `_LAST_FORMS` follow once groups and asides are."""
_LAST_FORMS = (
    _Form("fit progress: (", r"round \1, eval_loss: \2, ", r"\bfit progress: \((\d+), ([\d.e+-]+|nan|inf), ", flags=0),
    # NVIDIA's Tacotron 2: "Train loss 7 5.797815 Grad Norm ...", "Validation loss 0: 37.061010".
    _Form(("oss ", "OSS "), r"\1: step \2 | \1 = ",
          r"^\s*((?:train(?:ing)?|valid(?:ation)?|val|test) loss) (\d+):? +(?=[-+]?\d+\.\d|nan\b|inf\b)"),
    _Form("verage objective", r"step \1 | objf = ",
          r"^.{0,200}verage objective function for '[\w-]+' for minibatches (\d+)-\d+ is ", flags=0),
    # How long an epoch is: no counter.
    _Form("1 ", "", r"\b1 epoch ~?= [\d.,]+ (?:batches|steps|iter\w*|updates)"),
    _Form("[", _named, rf"^\s*\[((?:{NUMBER}, ){{0,12}})(\d+), (\d(?:\.\d+)?(?:e-\d+)?)\]\s*$"),
    # fastText and pytorch-accelerated, which end at once.
    _Form("NaN", "loss=nan",
          r"^\W{0,8}Encountered NaN\b\.?|\b[Ss]topping training due to NaN loss\b(?: in training step)?", flags=0),
    # torchvision, DETR: "Loss is nan, stopping training"; detectron2: "Loss became infinite or NaN at iteration=9!".
    _Form(("oss ", "OSS "), "loss=", r"\bLoss (?:is (?=-?(?:nan|inf)\b)|became infinite or (?=nan\b))"),
)  # fmt: skip


def _rules(forms: Iterable[_Form]) -> list[tuple[str, re.Pattern[str], Meant]]:
    """Return forms as rules, one for each mark: to look for a mark takes less time than to try a pattern."""
    compiled = ((form.marks, regex(form.pattern, form.flags, needs=form.needs), form.meant) for form in forms)
    return [
        (mark, pattern, meant)
        for marks, pattern, meant in compiled
        for mark in ((marks,) if isinstance(marks, str) else marks)
    ]


_RULES, _LAST_RULES = _rules(_FORMS), _rules(_LAST_FORMS)


_NAMES_RANKS = regex(r"rank|local|gpu|worker|device|node|host|replica|\b[rg]0", re.IGNORECASE)
_LIST = regex(
    rf"(?<![\w/.-])(?P<name>[A-Za-z][\w./-]{{0,60}}+(?: [A-Za-z][\w./-]{{0,30}}+){{0,3}})\s?[:=]?\s?(?P<open>[\[(]?)\s?"
    rf"(?P<listed>{NUMBER}(?P<between>,\s{{0,2}}|\s{{1,3}}|\s?[/|;]\s?)"
    rf"{NUMBER}(?:(?P=between){NUMBER}){{0,{MAX_CLASSES - 2}}})(?!\w|[/|;]?\s?{NUMBER})\s?(?P<close>[\])]?)",
    re.IGNORECASE,
)
_A_RANK = r"(?:rank|gpu|r|g)_?"
_RANK_BY_RANK = regex(
    rf"(?<![\w/.-])(?P<name>[A-Za-z][\w./-]{{0,60}}+)\s?[:=]?\s?(?P<open>[\[(]?)"
    rf"(?P<values>{_A_RANK}0\s?[:= ]\s?{NUMBER}"
    rf"(?:[\s,|;]{{1,3}}{_A_RANK}\d{{1,3}}\s?[:= ]\s?{NUMBER}){{1,{MAX_CLASSES - 1}}})(?P<close>[\])]?)(?![\w.])",
    re.IGNORECASE,
)
_OF_A_RANK = regex(rf"{_A_RANK}\d{{1,3}}\s?[:= ]\s?", re.IGNORECASE)
_BETWEEN = regex(r"[\s,/|;]+")
_BY_RANK = regex(
    rf"(?<![\w./-])(?P<name>[A-Za-z][\w./-]{{0,40}}+(?: [A-Za-z][\w./-]{{0,30}}+)?)(?P<mean>\s?[:=]?\s?{NUMBER}),? "
    r"\(?(?P<by>(?:by|per) (?:rank|gpu|worker|device|node|host|replica)s?)(?=\s?[:=]?\s?[\[(])",
    re.IGNORECASE,
)
"""A mean and what each rank has of it: "loss 2.059 by rank [2.064 2.093]"."""


def _lists_of_ranks(line: str) -> list[re.Match[str]]:
    """Return the lists of a line that have a value for each rank: called so, or as long as one that is."""
    if _NAMES_RANKS.search(line) is None:
        return []
    lists = [(found, len(_BETWEEN.split(found["listed"]))) for found in _LIST.finditer(line)]
    counts = {count for found, count in lists if is_of_ranks(found["name"])}
    return [found for found, count in lists if count in counts and bool(found["open"]) == bool(found["close"])]


def _ranks_in_brackets(line: str) -> str:
    """Write lists with a value for each rank alike: "ms r0 0.5 r1 0.7" and "ms/rank 0.5/0.7" as "... [0.5, 0.7]"."""
    if _NAMES_RANKS.search(line) is None:
        return line
    line = _BY_RANK.sub(r"\g<name>\g<mean> \g<name> \g<by>", line)
    line = _RANK_BY_RANK.sub(
        lambda found: f"{found['name']}_by_rank {found['open']}{_OF_A_RANK.sub('', found['values'])}{found['close']}",
        line,
    )
    return _in_brackets(line, _lists_of_ranks(line))


def _in_brackets(line: str, lists: Sequence[re.Match[str]]) -> str:
    """Return a line with lists behind their names written as "name=[0.5, 0.7]"."""
    for found in reversed(lists):
        inside = ", ".join(_BETWEEN.split(found["listed"]))
        line = f"{line[: found.start()]}{found['name']}=[{inside}]{line[found.end() :]}"
    return line


# Values that stand together behind a name, or below a record: each is named by what heads it and what it is of.

_ITEM = rf"[A-Za-z][\w./-]{{0,40}}+\s?[ =:]\s?{NUMBER}%?(?![\w/])"
_ITEMS = rf"{_ITEM}(?:[,;|\s]{{1,4}}{_ITEM})"
_GROUP_OF_LINE = regex(
    rf"(?P<indent>\s{{2,80}})(?P<head>[A-Za-z√|‖][\w()/ .|*-]{{0,60}}?)(?:\s?:\s{{1,8}}|(?<![\s\d])\s{{2,8}})"
    rf"(?P<members>{_ITEMS}{{1,39}})\s*",
    re.IGNORECASE,
)
"""An indented line of values under one head: "    update rms: emb 0.4 ln 0.6 head 0.8", "   IoU   car 0.4  bus 0.6"."""
_MORE_OF_LINE = regex(
    rf"(?<=[\d%)\]])\s{{2,12}}(?P<head>[A-Za-z]{{2,20}} [A-Za-z ,_/-]{{2,40}}):\s{{1,4}}"
    rf"(?P<members>{_ITEM}(?:[,;|\s%]{{1,4}}{_ITEM}){{0,9}}[\s%]{{0,8}})$",
    re.IGNORECASE,
    needs=":",
)
"""More values behind those of a line, under a head of their own: "val: nll 1.73   second pass: nll 1.70"."""
_HEADED = regex(rf"(?P<name>[A-Za-z][\w./-]{{0,40}}+)\s?[ =:]\s?(?={NUMBER})", re.IGNORECASE)
_BRACKETED = regex(
    rf"(?<![\w.])(?P<name>[A-Za-z][\w./@-]{{0,40}}+(?: [A-Za-z][\w./@-]{{0,30}}+){{0,3}})\s{{0,8}}[:=]?\s{{0,8}}"
    rf"[\[(]\s?(?P<listed>{NUMBER}(?:(?:,\s{{0,3}}|\s{{1,4}}){NUMBER}){{1,255}})\s?[\])]",
    re.IGNORECASE,
)
_BELOW = regex(
    r"(?P<indent>\s{2,80})(?P<name>[A-Za-z][\w./-]{0,30}+(?: [A-Za-z][\w./-]{0,30}+){1,3})\s{1,8}"
    r"(?P<number>-?\d{0,6}\.\d{1,9}(?:e[-+]?\d{1,3})?%?)\s*",
    re.IGNORECASE,
)
"""An indented line of one value with a decimal point, behind a few words: "    staff probe 0.760"."""
OF_SENTENCES = frozenset({"is", "was", "are", "at", "in", "to", "from", "about", "of", "for", "by", "with", "after"})
_FEW_ITEMS = regex(rf"{_ITEMS}{{0,9}}", re.IGNORECASE)


def _lists_of_line(line: str) -> list[re.Match[str]]:
    """Return the lists of a line that holds nothing but lists behind names, and a few values by name."""
    found = list(_BRACKETED.finditer(line)) if "[" in line or "(" in line else []
    rest = _BRACKETED.sub(" ", line).strip(" \t,;|") if found else ""
    return found if not rest or _FEW_ITEMS.fullmatch(rest) else []


def _heads_members(head: str, members: str) -> bool:
    """Say whether a head is that of values whose names are known for nothing themselves: of layers or groups."""
    names = [item["name"] for item in _HEADED.finditer(members)]
    known = any(is_known(name) or is_telling(name) or canonical(name) in COUNTERS for name in names)
    return not known and not any(map(names_phase, (*names, *head.split())))


def is_group(line: str) -> bool:
    """Say whether a line holds nothing but lists behind names, or values under one head, as below a record."""
    headed = _GROUP_OF_LINE.fullmatch(line)
    is_headed = headed is not None and _heads_members(headed["head"], headed["members"])
    return is_headed or bool(_lists_of_line(line)) or _named_below(line) is not None


def _named_below(line: str) -> re.Match[str] | None:
    found = _BELOW.fullmatch(line)
    words = set(found["name"].lower().split()) if found else set()
    return found if words.isdisjoint(OF_SENTENCES | _ARTICLES | _SUPPOSING) else None


def _group_written_out(line: str) -> str:
    """Write the name of its group before each value of a line, and the names of lists so that they are found."""
    if (headed := _GROUP_OF_LINE.fullmatch(line)) and _heads_members(headed["head"], headed["members"]):
        head = headed["head"].replace("|", "")
        named = _HEADED.sub(lambda item: f"{head}/{item['name']}=", headed["members"])
        return f"{headed['indent']}{named}"
    if (found := _named_below(line)) is not None:
        return f"{found['indent']}{found['name']}={found['number']}"
    if (more := _MORE_OF_LINE.search(line)) and not any(map(names_phase, re.split(r"\W+", more["head"]))):
        before = {item["name"] for item in _HEADED.finditer(line, 0, more.start())}
        if not before.isdisjoint(item["name"] for item in _HEADED.finditer(more["members"])):  # not the same number
            head = "_".join(more["head"].partition(",")[0].split())
            named = _HEADED.sub(lambda item: f"{head}_{item['name']}=", more["members"])
            return f"{line[: more.start()]}  {named}"
    return _in_brackets(line, _lists_of_line(line))


_PART = r"[A-Za-z][\w@.%+-]{0,20}"
_PARTS = rf"{_PART}(?:\s?[/,|]\s?{_PART}){{1,6}}"
_TUPLE = (
    rf"(?:[\"']?[A-Za-z][\w./-]{{0,40}}+[\"']?\s?[:=]?\s?)?"
    rf"(?:[\[(]\s?{NUMBER}(?:(?:\s?[/,|]\s?|\s){NUMBER}){{1,6}}\s?[\])]"
    rf"|{NUMBER}(?:\s?[/|]\s?{NUMBER}){{1,6}})"
)
_TUPLES = regex(
    rf"(?<![\w.])(?:(?P<name>[A-Za-z][\w./-]{{0,40}}+(?: [A-Za-z][\w./-]{{0,30}}+){{0,2}})\s?)?"
    rf"[\[(](?P<parts>{_PARTS})[\])]\s?[:=]?\s?"
    rf"\{{?\s?(?P<tuples>{_TUPLE}(?:[\s,;|]{{1,3}}{_TUPLE}){{0,15}})"
    rf"(?P<unit>\s?(?:ms|us|s|%)(?!\w))?(?![\w/])(?:\s?\}})?",
    re.IGNORECASE,
)
"""Names in brackets, and as many values behind them: "ratio[min/max]=0.2/1.9", 'dev [acc, gap] {"qa": [0.7, 0.4]}'."""
_ONE_TUPLE = regex(
    rf"(?:[\"']?(?P<key>[A-Za-z][\w./-]{{0,40}}+)[\"']?\s?[:=]?\s?)?"
    rf"[\[(]?\s?(?P<values>{NUMBER}(?:[\s/,|]{{1,3}}{NUMBER}){{1,6}})[\])]?",
    re.IGNORECASE,
)
_PARTED = regex(r"[\s/,|]+")
_SLASHED = r"-?\d{1,9}\.\d{1,9}(?:\s?/\s?-?\d{1,9}\.\d{1,9}){1,6}"
_JOINED = regex(
    rf"(?<![\w./])(?:(?P<name>[A-Za-z][\w.-]{{0,40}}+) )?(?P<parts>{_PART}(?:/{_PART}){{1,6}})\s?[:=]\s?"
    rf"(?P<tuples>(?:[A-Za-z][\w./-]{{0,40}}+\s?[:=]?\s?)?{_SLASHED}"
    rf"(?:[\s,;|]{{1,3}}[A-Za-z][\w./-]{{0,40}}+\s?[:=]?\s?{_SLASHED}){{0,15}})"
    r"(?P<unit>\s?(?:ms|us|s|%)(?!\w))?(?![\w/])",
    re.IGNORECASE,
)
"""Names that slashes join, and as many values: "fwd/bwd/opt: 0.1/1.9/0.3 ms", "dev acc/gap: qa 0.7/0.4, b 0.8/0.5"."""


def _tuples_named(found: re.Match[str]) -> str:
    """Write each value of tuples with its name: what they are of, the key of the tuple, and the part."""
    parts = _PARTED.split(found["parts"].strip())
    tuples = [(each["key"], _PARTED.split(each["values"])) for each in _ONE_TUPLE.finditer(found["tuples"])]
    fit = all(len(values) == len(parts) for _, values in tuples)
    if not fit or any(names_phase(part) or is_of_ranks(part) or canonical(part) in COUNTERS for part in parts):
        return found[0]
    unit = (found["unit"] or "").strip()
    of_name, behind = (f"_{unit}", "") if unit in _SECONDS else ("", unit)
    return ", ".join(
        f"{'/'.join(filter(None, (found['name'], key, part)))}{of_name}={value}{behind}"
        for key, values in tuples
        for part, value in zip(parts, values, strict=True)
    )


_DECIMAL = r"-?\d{1,9}\.\d{1,9}"
_UNNAMED = regex(
    rf"(?<=[\d\])|,;%A-Z]\s)\s{{0,8}}(?P<values>{_DECIMAL}(?:/{_DECIMAL}){{2,11}})(?:\s?(?P<unit>ms|us|s|%))?(?=[\s,;|]|$)",
    needs="/",
)
"""Values that slashes join and no name heads: "loss 3.1  0.1/1.9/3.1 ms"."""


_UNITS_OF_PARTS = ("", "ms", "us", "s", "%")


def _part_of(place: int, count: int, unit: str) -> str:
    return f"part{place}of{count}{f'_{unit}' if unit else ''}"


def _places_named(found: re.Match[str]) -> str:
    values, unit = found["values"].split("/"), found["unit"] or ""
    pairs = (f"{_part_of(at, len(values), unit)}={value}" for at, value in enumerate(values, start=1))
    return f" {', '.join(pairs)}"


_PART_LISTED = r"[A-Za-z][\w-]{0,20}"
_NAMES_OF_PARTS = regex(
    rf"(?<![\w/.~-])(?P<joined>{_PART_LISTED}(?:\s?[/|]\s?{_PART_LISTED}){{2,11}})(?![\w/.])"
    rf"|[\[(](?P<listed>{_PART_LISTED}(?:,\s?{_PART_LISTED}){{2,11}})[\])]",
)


def names_of_parts(line: str) -> list[list[str]]:
    """Return the names that a line joins by slashes or bars, or lists in brackets: "ms per step: get/fwd/bwd"."""
    return [_PARTED.split((found["joined"] or found["listed"]).strip()) for found in _NAMES_OF_PARTS.finditer(line)]


def named_parts(names: Sequence[str]) -> dict[str, str]:
    """Return names for the columns of as many values that no name heads, by the names that these columns have."""
    return {
        _part_of(place, len(names), unit): f"{name}_{unit}" if unit else name
        for place, name in enumerate(names, start=1)
        for unit in _UNITS_OF_PARTS
    }


def written_out(line: str) -> str:
    """Return a line with plain names before its numbers; a line that has them comes back as it is."""
    if "/" in line or "," in line:
        line = _JOINED.sub(_tuples_named, line) if "/" in line else line
        line = _TUPLES.sub(_tuples_named, line) if "[" in line or "(" in line else line
        line = _UNNAMED.sub(_places_named, line)
    line = _by_rules(_RULES, _terse(_ranks_in_brackets(_group_written_out(line))))
    if line.count("[") + line.count("(") > 1 and ("=" in line or ":" in line):
        line = _grouped(line)
    if "(" in line or _COUNTS_ROWS.search(line):
        line = _ASIDE.sub(lambda aside: aside["phase"] or "", line)
    if _AT_COUNTER.search(line):
        line = _AT.sub(r"\g<counter>: \g<name>: ", line)
    if "{" not in line and ("'" in line or '"' in line):
        line = _QUOTED.sub(r"\2: ", _QUOTED_NUMBER.sub(r"\2 ", line))
    return _by_rules(_LAST_RULES, line)


def _by_rules(rules: Iterable[tuple[str, re.Pattern[str], Meant]], line: str) -> str:
    for mark, pattern, meant in rules:
        if mark in line:
            line = pattern.sub(meant, line)
    return line
