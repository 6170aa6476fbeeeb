"""What a line holds by itself, whatever came before it.

It may be a drawing of a bar, a printed dict, a printed history, or counters and metrics.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from itertools import islice

from mldebug_mcp.core.lazy import dataclass, regex
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.json_yaml import is_column, objects_in
from mldebug_mcp.logs.line_prefixes import (
    MPIRUN,
    ROW_MARK,
    is_of_evaluation,
    names_evaluation,
    names_phase,
    without_prefix,
)
from mldebug_mcp.logs.names import role_of
from mldebug_mcp.logs.names.lexicon import PHASES
from mldebug_mcp.logs.names.metrics import (
    COUNTERS,
    UNNAMED,
    canonical,
    is_abbreviated,
    is_amount,
    is_evaluation,
    is_known,
    is_long,
    is_telling,
    may_hold_names,
    phase_in,
    set_of,
    settled,
    tells_kind,
)
from mldebug_mcp.logs.numbers import (
    MAY_HOLD_NUMBER,
    NUMBER,
    parse_number,
    seconds_of,
    to_number,
    whole_number,
    without_underscores,
)
from mldebug_mcp.logs.settings.settings import mapping_at
from mldebug_mcp.logs.text.counters import ONE_MEASURE, Bar, Counters, bar_in, bars_apart, find_counters
from mldebug_mcp.logs.text.pairs import (
    PASS_OF_SAME,
    before_metrics,
    evaluation_name,
    is_group,
    measures_sets,
    pairs_in,
    written_out,
)
from mldebug_mcp.logs.text.tables import record_in_box

# One line of text, read: its counters, its metrics, the rank that printed it.

_VALID_SUBSET = regex(r"\| valid on '[^']{1,80}' subset\s+(\d+) / (\d+)")
"""fairseq, before 2019: an evaluation under way."""
_PROSE = regex(
    r"\b(?:best|final|finally|lowest|highest|improved from|decreased \(|did not improve|early[ _-]?stopping|previous"
    r"|minimum|epoch n-1)\b"
    r"(?!\s*:\s*\d)",  # CatBoost's "best: 0.6"
    re.IGNORECASE,
)
_HINTS_OF_PROSE = (
    "best", "final", "lowest", "highest", "improve", "decreased (", "early", "previous", "minimum", "n-1",
)  # fmt: skip
"""One of these stands in every line that `_PROSE` finds: most lines are dismissed without a regular expression."""
_SO_FAR = regex(rf"(?<=[\d,;|] )best [\w @]{{1,40}}[:=] ?{NUMBER}\s*[,;|](?=.*\btrain\w*[ _]loss\b)", re.IGNORECASE)
"""The best value so far, in front of those of this record: "epoch 210 best test acc: 0.91, train loss: 1.36"."""
_SO_FAR_BETWEEN = regex(
    rf"(?:(?<=[\d,;|] )|(?<=[%,;|]  ))best [\w@]{{1,40}}(?: [A-Za-z]{{1,20}}){{0,2}}[:= ]{{1,2}}{NUMBER}%?\s{{0,3}}"
    r"(?:(?:[,;|]?\s{1,3})"
    r"(?=(?!(?:at|in|from|on|of|so|by|is|was|epoch|ep|step|iter\w{0,10})\b)[A-Za-z][\w./-]{0,40}[:= ]{1,3}[-+]?\d)"
    r"|[,;|]\s{1,3}(?=(?:average|mean|train|valid|test|grad\w{0,5}) [a-z]{1,20}(?: [a-z]{1,20})?[:= ]{1,3}[-+]?\d))",
    re.IGNORECASE,
)
"""The same between others of this record: "loss 0.71 best dice 0.2 lr 1e-3", and not "best loss 0.5 at epoch 3"."""
_ASIDE = regex(r"\((?:best|lowest|highest|previous|minimum)\b[^()]{0,60}\)", re.IGNORECASE)
_GLUED = regex(r"(?<![A-Za-z])loss(?=\d+\.\d)", re.IGNORECASE)
"""LightGCN: "EPOCH[1/1000] loss0.693-|Sample:9.8|"."""
_BLANKS = regex(r"\s{3,}")
_WORDS = regex(r"[A-Za-z]\w+")
_LONG_WORDS = regex(r"[A-Za-z]{3,}")
_NO_MEASURE = regex(
    r"time|took|elapsed|seconds|size|number|num|count|total|sample|image|batch|file|seed|rank|gpu|device", re.IGNORECASE
)
"""What an evaluation takes, and to be made of."""
_LABEL = regex(
    r"[\s|:,*=#>-]{0,20}+(?:\[(?P<inside>[A-Za-z][^\[\]:=|,]{1,50})(?:,[^\[\]]{0,60})?\]"
    r"|(?P<words>[A-Za-z][\w-]{0,20}(?: [\w-]{1,20}){1,7})(?: \([^()]{1,40}\))? ?[|:](?![|:]))"
    r"[\s:|>-]{1,8}(?=[A-Za-z])(?!nan\b|inf\b|none\b)(?=.{0,1000}[\d%)\]][\s,;|-]{0,20}$)",
    re.IGNORECASE,
    needs=("[", "|", ":"),
)
"""A word before a colon alone may be what a program puts before all of its lines; a sentence goes on behind numbers."""
_ROW_LABEL = regex(
    r"\s{2,}(?P<words>[A-Za-z][\w./+-]{0,30}(?: [\w-]{1,20}){0,2}(?=  )|[A-Za-z][\w./-]{0,30}[@*][\w*]{0,10})"
    r"\s{1,8}(?=(?P<next>[A-Za-z][\w|@./-]{0,30})(?: [A-Za-z]\w{0,20})?"
    r"\s{0,3}[:=]?\s{0,8}[-+]?(?:\d|\.\d|nan\b|inf\b))",
    re.IGNORECASE,
)
"""What begins an indented row of a list, by itself: "  text tower   norm 5.71  grad_norm 2.57"."""
_OF_TEST = regex(r"[\W\d_]*test(?:ing)?(?=[\s:|,_()\[\]>-]|$)", re.IGNORECASE)
"""What begins a line, or a name, of the test set, which is not the validation set of the lines around it."""
MOST_WORDS = 4
"""Words besides the names of its metrics that such a line has. Chosen: "val" and what it was on."""
MAX_LINE = 20_000
"""Characters of a line that are searched for pairs."""


@dataclass(slots=True)
class Parsed:
    """What a line says.

    Args:
        counters: Where the run is.
        metrics: Numbers by name.
        rank: The rank that printed it, None if it does not say.
        telling: It reports a metric that only training or evaluation prints.
        evaluation: It speaks of an evaluation.
        drawn: It is a drawing of a bar.
        label: What stands in words before its metrics, in brackets or a part of its own: "[blind set, n=1500] loss: 2".
        labels_row: The label begins an indented row of a list.
        goes_on: It is indented, or of a list, and holds nothing but numbers by name: of the record above, known or not.
    """

    counters: Counters
    metrics: dict[str, float] = field(default_factory=dict)
    rank: int | None = None
    telling: bool = False
    evaluation: bool = False
    drawn: bool = False
    label: str = ""
    labels_row: bool = False
    goes_on: bool = False

    @property
    def sums_up(self) -> bool:
        """Whether the line, or one of its metrics, is of an evaluation."""
        return self.evaluation or any(map(is_evaluation, self.metrics))


_GOES_ON = regex(
    rf"\s{{2,80}}(?:[A-Za-z][\w/.@-]{{0,40}}+(?: [a-z]{{1,20}})?\s?[:=]?\s?{NUMBER}%?s?"
    r"\s{0,3}(?:[,;|]\s{0,3})?+){2,40}+",
    re.IGNORECASE,
)
"""faster-rcnn.pytorch, below a record: "\t\t\trpn_cls: 0.25, rpn_box: 0.5, rcnn_box 0.75"."""
_ONE_BELOW = regex(
    r"\s{3,80}[A-Za-z][\w-]{0,30}(?: [A-Za-z]\w{0,20}){0,2}\s?[:=]\s?-?\d{1,9}\.\d{1,12}\s*", needs=(":", "=")
)
"""An indented line of one name and its number with decimals: "     greedy x64: 97.5"."""
_ROW_OF_SETS = regex(
    rf"[\s|>*-]{{0,12}}(?:[A-Za-z][\w-]{{0,20}}(?: [A-Za-z][\w-]{{0,20}}){{0,2}}\s?[:=]?\s{{0,4}}(?<!\w){NUMBER}"
    r"\s{0,3}(?:[,;|/]\s{0,3})?+){1,40}+(?:\([^()]{1,80}\))?\s*",
    re.IGNORECASE,
)
"""A line of nothing but names and numbers, and a remark behind them."""
_OF_LIST = regex(
    rf"(?:[A-Za-z][\w/.-]{{0,80}} {NUMBER} / ){{1,40}}+(?:[A-Za-z][\w/.-]{{0,80}} {NUMBER} )?",
    re.IGNORECASE,
    needs=" / ",
)
"""A line of a list that is as wide as the terminal (Dreamer): "train/adv_mag 0.5 / train/adv_mean 0.1 /"."""
_OF_MXNET = ("Train-", "Validation-")
"""How MXNet's Speedometer begins the name of each metric, known or not: "Train-SmoothL1=1.5"."""
_ROUND_OF_MXNET = regex(r"\s{0,8}\[\d{1,9}\] (?:Train|Validation)-", needs="]")
"""What MXNet for R prints at the end of an epoch: "[3] Train-accuracy=0.7"."""
_OF_BATCHES = ("", "batch", "batches")
"""What a counter is called, or not, that may count the batches of an evaluation."""
MAX_PREFIX = 100
"""Characters in which the level of a line is looked for."""
_DEBUGS = regex(r"\b(?:DEBUG|TRACE)\b")
"""Lines at this level in which no metric is named hold pairs for those who mend a library: "retry=0 took=0.1s"."""
_QUOTED = regex(r'\bhttps?://\S{1,2000}|"[^"]{0,500}"')


def parse_line(line: str, *, evaluation: bool = False) -> Parsed:
    """Read a line by itself; bars, boxes, dicts and tables are other modules' work.

    `evaluation` says that it stands under a heading of one.
    """
    # Patterns for counters allow blanks in several places: thousands of them in a row would take hours.
    rank, whole, evaluates = without_prefix(_BLANKS.sub("  ", line[:MAX_LINE]))
    if _SAMPLE.match(whole) is not None:
        return Parsed(find_counters(""), {}, rank)
    whole = _without_asides(_without_text(whole))
    message = _without_prose(whole)
    prose = whole[len(message) :]
    message = written_out(_GLUED.sub("loss ", message))
    counters = find_counters(message)
    named = names_evaluation(counters.phase or "") or evaluates or is_of_evaluation(message)
    evaluation = named or (evaluation and not counters.values)
    if under_way := _VALID_SUBSET.search(message):
        evaluation, counters.batch = True, (whole_number(under_way[1]), whole_number(under_way[2]))
    if named and counters.total and counters.values.keys() == {"step"} and counters.step_name.strip() in _OF_BATCHES:
        counters.batch, counters.values = (int(counters.values["step"]), counters.total), {}  # "dev: [25/25] loss 2.1"
        counters.phase = counters.phase or (None if message.lstrip().startswith(("[", "(", "<")) else "eval")
    is_counted = bool(counters.values)
    if _DEBUGS.search(line[:MAX_PREFIX]) and not (is_counted or counters.batch or _names_metric(counters.rest)):
        return Parsed(counters, {}, rank)
    metrics = pairs_in(counters.rest, evaluation=evaluation)
    for name in [name for name in metrics if canonical(name) in COUNTERS and not (is_counted and is_abbreviated(name))]:
        if canonical(name) == "step" and "step" not in counters.values:
            counters.step_name = name
        counters.values.setdefault(canonical(name), metrics.pop(name))
        counters.weak = bool(metrics) or len(_WORDS.findall(counters.rest + prose)) > 5
    if not counters.values and counters.batch is None:
        counters.values = {name: metrics.pop(name) for name in list(metrics) if is_amount(name)}
    counters.weak = counters.weak and not any(name.lower() in ("fps", "sps") for name in metrics)
    counters.rest += prose
    # A step that was skipped for overflow has no loss, but it is a record of training.
    skipping = "step" in counters.values and any(canonical(name) == "skipped_iterations" for name in metrics)
    by_phase = (not counters.values and _is_row_of_phases(metrics)) or any(
        name.startswith(_OF_MXNET) for name in metrics
    )
    if counters.values.keys() == {"step"} and _ROUND_OF_MXNET.match(message):
        counters.values, counters.ends_epoch = {"epoch": counters.values["step"]}, True
    telling = skipping or by_phase or any(map(is_telling, metrics)) or UNNAMED in metrics
    telling = telling or (bool(metrics) and _is_row_of_sets(counters, message, metrics))
    telling = telling or (evaluation and _holds_measures_alone(counters, metrics))
    label = _label_in(counters.rest) if telling else ""
    if telling and not label and any(map(_OF_TEST.match, (message, next(iter(metrics), "")))):
        label = "test"
    text = line[:MAX_LINE].rstrip()
    is_below = any(form.fullmatch(text) is not None for form in (_GOES_ON, _ONE_BELOW)) or is_group(text)
    goes_on = not (telling or is_counted) and is_below
    goes_on = bool(metrics) and (goes_on or _OF_LIST.fullmatch(f"{text} ") is not None)
    measured = len(metrics) > 1 or any(map(role_of, metrics))
    goes_on = goes_on or (not telling and bool(metrics) and ONE_MEASURE.fullmatch(message) is not None)
    goes_on = goes_on or (named and measured and not (telling or is_counted) and _are_measures_alone(counters, metrics))
    return Parsed(
        counters,
        metrics,
        rank,
        telling,
        evaluation,
        label=label,
        labels_row=_ROW_LABEL.match(counters.rest) is not None,
        goes_on=goes_on,
    )


def closing_figures(lines: Iterable[str]) -> dict[str, float]:
    """Return what lines without a counter give of metrics: those of a set that is named with its name in front."""
    found: dict[str, float] = {}
    for line in lines:
        parsed = parse_line(line)
        if parsed.telling and not (parsed.counters.values or parsed.counters.batch):
            head = f"{parsed.label}/" if parsed.label else ""
            found = {f"{head}{name}": value for name, value in parsed.metrics.items()} | found
    return found


def lines_joined(line: str) -> list[str]:
    """Return the lines that a bar, which ends in no line end, has joined; [] where only one of them tells anything.

    A message behind a bar belongs to the step of the bar; a record of its own counters does not.
    """
    parts: list[str] = []
    for part in bars_apart(line):
        if parts and not _tells_step(part):
            parts[-1] += part
        else:
            parts.append(part)
    return parts if len(parts) > 1 else []


def _tells_step(part: str) -> bool:
    if "%|" in part and bar_in(part) is not None:
        return True
    parsed = parse_line(part)
    return parsed.telling and bool(parsed.counters.values)


def _names_metric(message: str) -> bool:
    """Say whether a metric may be named in a message, outside addresses and quotations."""
    return may_hold_names(_QUOTED.sub(" ", message) if '"' in message or "://" in message else message)


def _label_in(rest: str) -> str:
    """Return what stands in words before the metrics of a line without its counters, "" for training and for a name."""
    if row := _ROW_LABEL.match(rest):  # "norm  |w| 17.9", but no "loss  train 2.1"
        is_named = names_phase(row["words"]) or names_phase(row["next"])
        return "" if is_named or phase_in(row["words"]) == "train" else row["words"]
    found = _LABEL.match(rest)
    label = "" if found is None else found["inside"] or found["words"]
    words = label.split()
    if len(words) > MOST_WORDS:  # a sentence, but for rows of one set that go the way of the other
        return "eval on train rows" if {"train", "eval"} <= set(map(PHASES.get, words)) else ""
    return "" if phase_in(label) == "train" or is_known(label) or is_telling(label) else label


def _holds_measures_alone(counters: Counters, metrics: Mapping[str, float]) -> bool:
    """Say whether a line of evaluation, with a counter, tells nothing but measures: "VAL iter 200: swd=1.2"."""
    counted = bool(counters.values) and counters.batch is None and not counters.weak
    return counted and _are_measures_alone(counters, metrics) and all(role_of(name) is None for name in metrics)


def _are_measures_alone(counters: Counters, metrics: Mapping[str, float]) -> bool:
    bare = len(_LONG_WORDS.findall(counters.rest)) <= MOST_WORDS + len(metrics)
    return bare and bool(metrics) and all(map(_is_measure, metrics))


def _is_row_of_phases(metrics: Mapping[str, float]) -> bool:
    """Say whether a line gives a measure of several phases, by their names alone: "Train: 0.8, Val: 0.7"."""
    return len(metrics) > 1 and all(map(names_phase, metrics))


def _is_row_of_sets(counters: Counters, message: str, metrics: Mapping[str, float]) -> bool:
    """Say whether a line measures sets by their phase alone, behind its counter or as all that it tells."""
    if not any(map(set_of, metrics)) or not measures_sets(counters.rest):
        return False
    leads = not counters.weak or message.lstrip(" [(<#")[:1].isdigit()
    return leads if counters.values else _ROW_OF_SETS.fullmatch(message) is not None


def _is_measure(name: str) -> bool:
    role = role_of(name)
    if role is not None:
        return role.quantity.is_result
    return _NO_MEASURE.search(name) is None and " " not in name.removeprefix("eval_mean ")  # of a list


def is_remark(parsed: Parsed) -> bool:
    """Say whether a line with a counter but no metric is a remark ("saving the model at step 10"), no heading."""
    adjacent = not parsed.counters.weak or (parsed.counters.rest.strip(" |:-") == "")
    return not adjacent or len(_LONG_WORDS.findall(parsed.counters.rest)) > 5


_TEXT_VALUE = regex(
    r"""(?<![\w'"])[A-Za-z_]\w{0,40}\s?[=:]\s?(?P<quote>['"])(?P<text>(?:(?!(?P=quote)(?:[\s,;|)]|$)).){2,500})"""
    r"""(?P=quote)(?=[\s,;|)]|$)""",
    needs=("'", '"'),
)
"""A text behind a name: "last=' the grass is'"."""
_WORDS_OF_TEXT = 3
"""Words of a text in the midst of a line that is none of its own terms: "stage='train' loss=2.1" is one of these."""
_SAMPLE = regex(
    r"(?:\W{0,4}\w{1,12}\]\s{0,3})?\W{0,4}(?:sample|example|prompt|completion|response)\b[^'\"{}]{0,60}['\"]",
    re.IGNORECASE,
    needs=("'", '"'),
)
"""A line that shows a row: its numbers are of one row, or of the text itself."""


def _without_text(line: str) -> str:
    """Return a line without the texts that it quotes behind names: numbers in a sample are no metrics."""
    if "{" in line:
        return line

    def left_of(found: re.Match[str]) -> str:
        is_text = found.end() == len(line.rstrip()) or len(found["text"].split()) >= _WORDS_OF_TEXT
        return "" if is_text and any(map(str.isalpha, found["text"])) else found[0]

    return _TEXT_VALUE.sub(left_of, line)


def _without_asides(line: str) -> str:
    """Return a line without what it says of other records in brackets: "val acc: 0.2 (best 0.3), test acc: 0.1"."""
    line = _SO_FAR_BETWEEN.sub("", _SO_FAR.sub("", line)) if "best" in line else line
    return _ASIDE.sub("", line) if "(" in line else line


_FINAL_OF_SET = regex(
    r"\W{0,8}final[\s,:-]{1,4}(?=(?P<set>[A-Za-z][\w-]{0,20}(?: [\w-]{1,20}){1,3})(?: \([^()]{1,40}\))?\s?:\s)",
    re.IGNORECASE,
)
"""The first word of a line that gives the figures of a set at the end: "final  cohort B: logloss 1.37 auc 0.75"."""
_OF_THE_RUN = frozenset(
    {"results", "result", "metrics", "scores", "performance", "model", "epoch", "step", "loss", "evaluation",
     "validation", "val", "valid", "train", "training", "checkpoint", "weights", "summary", "stats", "report"}
)  # fmt: skip
"""Words of what a line calls final without naming a set: it says again what the last record does."""


def _without_prose(line: str) -> str:
    """Return a line up to where it repeats an earlier record ("best loss so far", "improved from").

    One of several evaluations of the same weights repeats none: "final - pass 2/4 val_loss=0.45". Nor does one of a set
    of its own: "final cohort B: auc 0.75".
    """
    if (final := _FINAL_OF_SET.match(line)) is not None and _OF_THE_RUN.isdisjoint(final["set"].lower().split()):
        return line[final.end() :]
    prose = _PROSE.search(line) if any(map(line.lower().__contains__, _HINTS_OF_PROSE)) else None
    return line if prose is None or PASS_OF_SAME.search(line) else line[: prose.start()]


# Dicts that were printed: by the Trainer (Python's spelling) and by loggers that write JSON into a line of text.

MAX_LINES = 200
"""Lines over which one printed dict may be wrapped."""

_BRACES = regex(r"\{[^{}]*(?:\}|$)")
_NESTED = regex(r"\{[^{}]*\{")
_TEXT_FIELD = regex(r"""['"]([\w./]{1,60})['"]\s{0,4}:\s{0,4}['"][A-Za-z]""")
"""The name of a field of text."""
_NAMES_ITS_ONE = regex(r"""['"](?:metric|name|tag|key)['"]\s{0,4}:\s{0,4}['"][A-Za-z].{0,200}['"]value['"]\s{0,4}:""")
"""A dict of one metric, by its name and value."""
_PAIR = regex(
    r"""['"]([^'"\n]{1,200})['"]\s*:\s*(?:(?:np\.|numpy\.)?(?:float\d+|array)\(|tensor\()?\[?['"]?"""
    # The only number of a list, not several, which may look like thousands, and not the first word of a sentence.
    rf"""(?!\d{{1,3}}(?:,\d{{3}})+\])({NUMBER})(?![\w.]|\s*,[^'"\[]*\]|\s[A-Za-z]+\s(?!per\b))""",
    re.IGNORECASE,
)

MAX_LABEL = 60
"""Characters before a dict in which the phase that it is of is looked for."""
_PHASE_BEFORE = regex(
    r"(?:^|[\s|,;:})\]\[(-])(?P<phase>train(?:ing)?|val(?:id(?:ation)?)?|test|eval(?:uation)?|dev)"
    r"(?:[ _](?:metrics?|results?|stats?|scores?|set|dict|logs?))?[)\]]?\s{0,3}[:=]?\s{0,3}$",
    re.IGNORECASE,
)
_LOSSES_BEFORE = regex(r"\blosses(?: at [\w ]{1,20} \d{1,9})?\s{0,3}[:=-]?\s{0,3}$", re.IGNORECASE)
"""spaCy's examples: "Losses {'ner': 12.5}"."""
_BARE_PAIR = regex(
    rf"(?:^|[{{,\s])([A-Za-z_$][\w$]{{0,80}})\s{{0,4}}:\s{{0,4}}({NUMBER})(?=\s*(?:,|\}}|$))", re.IGNORECASE
)
"""A pair of an object as JavaScript prints it: its keys have no quotation marks."""
_COUNT_BEFORE = regex(r"(?:[A-Za-z]{1,20}\W{1,3})?(?P<count>\d{1,9})\W{0,3}")
"""What may stand before such an object: "3 {", "Epoch 3: {"."""


def is_bare_pair(line: str) -> bool:
    """Say whether a line is one pair of an object that JavaScript printed over several."""
    return _BARE_PAIR.match(line.strip()) is not None


def begins_object(message: str) -> bool:
    """Say whether a line ends in the brace of an object of its own, behind nothing or behind a counter."""
    before, _, behind = message.rpartition("{")
    return not behind.strip() and (not before.strip() or _COUNT_BEFORE.fullmatch(before.strip()) is not None)


def object_in(line: str) -> dict[str, object]:
    """Return what the one object of a line or of several lines holds that JavaScript printed, empty if there is none.

    A number alone before it counts epochs where the object reports an evaluation, else steps.
    """
    before, brace, inside = line.partition("{")
    before, counted = before.strip(), _COUNT_BEFORE.fullmatch(before.strip())
    if not brace or "{" in inside or (before and counted is None):
        return {}
    record: dict[str, object] = {name: parse_number(text) for name, text in _BARE_PAIR.findall(f"{{{inside}")}
    if not record or counted is None:
        return record
    if not before.isdigit():
        return {**parse_line(before).counters.values, **record}
    return {"epoch" if any(map(is_evaluation, record)) else "step": float(counted["count"]), **record}


_CLOCK = regex(
    r"""(?<=: )(['"])(?:(?P<days>\d{1,4}) days?, )?(?P<hours>\d{1,3}):(?P<minutes>\d\d):(?P<seconds>\d\d)\1"""
)
"""A duration as text: "eta": "8:54:59", "1 day, 14:35:48"."""
_OF_EPOCHS = regex(r"""(?<=epoch['"]: )(['"])(?P<epoch>\d{1,9})/\d{1,9}\1""", needs="epoch")
_OF_BATCHES_TEXT = regex(r"""(['"])(?:cur_)?iter\1: (['"])(?P<batch>\d{1,12})/(?P<batches>\d{1,12})\2""", needs="iter")
"""An epoch and a batch of it, each of how many, as texts: "epoch": "2/50", "iter": "80/100" (PySlowFast)."""


def _with_numbers(line: str) -> str:
    """Return a line of a dict with numbers in place of durations, and of a batch of an epoch that count from 1."""
    line = _CLOCK.sub(lambda clock: f"{seconds_of(clock):.10g}", line)
    epoch = _OF_EPOCHS.search(line)
    line = _OF_EPOCHS.sub(r"\g<epoch>", line)
    batch = _OF_BATCHES_TEXT.search(line)
    if epoch is None or batch is None or not int(epoch["epoch"]):
        return line
    step = (int(epoch["epoch"]) - 1) * int(batch["batches"]) + int(batch["batch"])
    return f'{line[: batch.start()]}"step": {step}{line[batch.end() :]}'


def dict_in(line: str) -> dict[str, object]:
    """Return what the dicts of a line hold, empty if there are none. A dict cut off at the line's end counts."""
    if "/" in line or ":" in line:
        line = _with_numbers(line)
    start = line.find('{"')
    if start >= 0 and line.find("{", start + 1) > 0:  # nested: only a JSON parser sees what belongs where
        values: Mapping[str, object] = next(objects_in(line, start), {})
        if values:
            return dict(values)
    if numbers := _named_by_texts(line):
        return dict(numbers)
    record: dict[str, object] = {}
    if _NESTED.search(line):
        return _nested_in(line)
    for braces in _BRACES.finditer(line):
        label = _PHASE_BEFORE.search(line, max(0, braces.start() - MAX_LABEL), braces.start())
        evaluates = label is not None and names_evaluation(label["phase"])
        of_losses = _LOSSES_BEFORE.search(line, max(0, braces.start() - MAX_LABEL), braces.start()) is not None
        for name, text in _PAIR.findall(braces[0]):
            number = parse_number(text)
            if number is not None:
                known = f"{name}_loss" if of_losses and not is_known(name) else name
                record[evaluation_name(known) if evaluates else known] = number
    return record


def _named_by_texts(line: str) -> dict[str, float]:
    """Return the numbers of a dict with a field of text that says their phase or metric: "{'split': 'val', ...}"."""
    fields = _TEXT_FIELD.findall(line) if line.count("{") == 1 else []
    if not any(tells_kind(field) or is_long((field, "value")) for field in fields):
        return {}
    return settled(mapping_at(line, line.find("{")))


def _nested_in(line: str) -> dict[str, object]:
    """Return what nested dicts hold; those of a phase keep its name: "{'train': {'loss': 1}, 'val': {'loss': 2}}"."""
    start = line.find("{")
    pairs = _PAIR.findall(line, start)
    values = mapping_at(line, start)
    are_sets = any(isinstance(value, Mapping) and names_phase(str(name)) for name, value in values.items())
    numbers = dict(_numbers_in(values, are_sets=are_sets))
    if len(numbers) >= len(pairs):
        return dict(numbers)
    record: dict[str, object] = {}
    for name, text in pairs:
        record.setdefault(name, parse_number(text))
    return record


def _numbers_in(
    values: Mapping[str, object], phase: str = "", depth: int = 3, *, are_sets: bool = False
) -> Iterator[tuple[str, float]]:
    """Yield numbers by name; what a metric is split into, and a set that stands next to a phase, keep its name."""
    for name, value in values.items():
        if isinstance(value, Mapping) and depth > 0:
            text = str(name)
            is_set = are_sets and any(is_telling(str(inside)) for inside in value)
            keeps = names_phase(text) or is_telling(text) or is_set
            yield from _numbers_in(value, text if keeps else phase, depth - 1)
        elif (number := to_number(value)) is not None:
            yield (f"{phase}/{name}" if phase else str(name)), number


def opens_dict(line: str) -> bool:
    """Say whether a dict begins in this line and goes on in the next."""
    brace = line.rfind("{")
    return brace >= 0 and "}" not in line[brace:] and (line[brace + 1 :].strip()[:1] in ("'", '"', ""))


# Printed lists of values → records: a history such as `{'loss': [2.3, 1.9, …], 'val_loss': […]}` or `losses = […]`.
#
# Mostly they are printed at the end and repeat what the lines above said one by one: they are read where no line did.

History = Mapping[str, object]

MIN_VALUES_OF_HISTORY = 3
"""Values of a list that may be a history: lists of two are pairs of something else."""
MAX_HISTORIES = 20
"""Histories of the same metric in a log; with more, each is a record of something else. Chosen by hand."""
MAX_CHARACTERS_BEFORE_LIST = 100
"""Characters before a list in which its name is looked for."""
MAX_LISTS_IN_TEXT = 100
"""Lists of a text whose names are looked at."""
MAX_VALUES = 1_000_000
"""Values that are kept of all histories of a log."""
_NAME = r"[A-Za-z][\w /.-]{0,80}"
_CALL = r"(?:[\w.]{1,30}\()?"
_MARK = regex(rf"[:=]\s{{0,4}}{_CALL}\[\s{{0,80}}{_CALL}(?:{NUMBER}|None|null)[\s,)\]]", re.IGNORECASE)
"""What follows a name where a list of numbers begins; arrays and tensors are calls."""
_BEFORE = regex(rf"(?:^|['\"{{,;(\s])({_NAME}?)['\"]?\s{{0,4}}$")
_ASSIGNED = regex(rf"""("{_NAME}"|'{_NAME}'|\b{_NAME}?)\s{{0,4}}[:=]\s{{0,4}}(?={_CALL}\[)""")
_COUNTED = regex(
    r"\b(?:step|iter\w{0,6}|it|epoch|ep|update|batch|round|episode)\W{0,4}\d|^\W{0,3}\[\s{0,8}\d", re.IGNORECASE
)
"""A counter in front of a list: its values are those of one record, and no history."""
_OPEN = regex(rf"[:=]\s{{0,4}}{_CALL}\[[^\]{{}}]*$")


def history_in(message: str) -> History:
    """Return the columns of the history in a text, empty if there is none, or if it is cut off."""
    if "[" not in message or not begins_history(message):
        return {}
    inside = message.find("{")
    if not 0 <= inside < message.index("["):
        assigned = _ASSIGNED.search(message)
        if assigned is None:
            return {}
        message, inside = f"{{{assigned[1]}: {message[assigned.end() :]}}}", 0
    values = mapping_at(message, inside)
    return values if _is_history(values) else {}


def opens_history(message: str) -> bool:
    """Say whether a list of a history begins in a text and goes on in the next line."""
    return _OPEN.search(message) is not None and begins_history(f"{message.rstrip()} 0,")


def begins_history(message: str) -> bool:
    """Say whether a list of numbers with the name of a metric that only training or evaluation has begins in a text."""
    if _COUNTED.search(message[: message.find("[", 1)]) is not None:
        return False
    before = (
        _BEFORE.search(message[max(0, mark.start() - MAX_CHARACTERS_BEFORE_LIST) : mark.start()])
        for mark in _MARK.finditer(message)
    )
    return any(name is not None and is_telling(name[1]) for name in islice(before, MAX_LISTS_IN_TEXT))


def _is_history(values: Mapping[str, object]) -> bool:
    """Say whether values are columns of metrics, by themselves or by phase, with no number next to them."""
    columns = [column for value in values.values() for column in _columns(value)]
    return any(len(column) >= MIN_VALUES_OF_HISTORY for column in columns) and not any(
        isinstance(value, float | int) for value in values.values()
    )


def _columns(value: object) -> list[list[object]]:
    if isinstance(value, dict):
        return [column for column in value.values() if isinstance(column, list) and is_column(column)]
    return [value] if isinstance(value, list) and is_column(value) else []


class Histories:
    """Gathers the histories of a text and gives them to the builder where it has no other records."""

    def __init__(self) -> None:
        self._parts: list[dict[str, object]] = []
        self._values = 0

    def take(self, history: History) -> None:
        """Take a history. One that begins as an earlier one is the same, printed again later on."""
        self._values += sum(len(column) for value in history.values() for column in _columns(value))
        if self._values > MAX_VALUES or len(self._parts) > MAX_HISTORIES:
            return
        last = self._parts[-1] if self._parts else {}
        if self._parts and all(_goes_on(last[name], history[name]) for name in last.keys() & history.keys()):
            last.update(history)
        else:
            self._parts.append(dict(history))

    def end(self, builder: RunBuilder) -> None:
        """Give the histories to the builder."""
        if not self._parts or builder.records:
            return
        if self._values > MAX_VALUES or len(self._parts) > MAX_HISTORIES:
            builder.note(
                f"left out printed lists: more than {MAX_HISTORIES}, or than {MAX_VALUES:,} values, are no history"
            )
            return
        from mldebug_mcp.logs.documents import records_in

        for part in self._parts:
            builder.new_part()
            for record in records_in(part):
                builder.record(record)


def _goes_on(before: object, after: object) -> bool:
    if isinstance(before, list) and isinstance(after, list):
        return after[: len(before)] == before
    return before == after


# What a line says by itself, whatever came before it: a drawing of a bar, a printed dict, counters and metrics.

_LOST_BRACE = regex(
    r"""\s{0,20}['"]?[\w./@()-]{1,200}(?P<mark>['"]):\s?(?P<quote>['"]?)[^{}'"]{1,200}(?P=quote),"""
    r"""\s{0,4}(?P=mark)[\w./@()-]{1,200}(?P=mark):\s?[^{]*+$""",
    needs=("'", '"'),
)
"""A printed dict without its first brace, and the quotation mark behind it, as where it is selected by hand.

It has two keys and more in one line.
"""
_STRAIGHT = str.maketrans("‘’“”", "''\"\"")
"""Quotation marks as word processors and forums set them, in dicts that were copied from there."""
_SKIPPED = regex(
    rf"Skipping step.{{0,200}}?loss scale: {NUMBER}(?:.{{0,200}}?reducing to (?P<scale>{NUMBER}))?"
    rf"|overflow detected.{{0,200}}?setting loss scale to: (?P<set>{NUMBER})"  # fairseq
    rf"|Skipping step.{{0,200}}?reducing loss scale to (?P<apex>{NUMBER})",
    re.IGNORECASE,
)
_END_OF_BAR = regex(r"\s*+\|?\s*+\d{1,12}/\d{1,12} \[\d{1,3}:\d\d(?::\d\d)?<")
"""What is left of a drawing whose beginning is cut off: its values may be of a step before."""
_IN_HEAD = regex(r"(?<![\w.])[-+]?\.?\d[\d.]*(?:e[-+]?\d+)?", re.IGNORECASE)


@dataclass(slots=True)
class Drawing:
    """One drawing of a progress bar.

    Args:
        bar: The bar; its texts are read.
        words: Its head without the numbers in it, which are `head`: both together tell bars apart.
        head: Those numbers, as far as they stand before metrics or count.
        counters: Counters that stand in its head.
        metrics: What it reports.
        evaluation: It is drawn by an evaluation.
        from_zero: Its epochs count from 0 (Lightning).
        telling: It reports a metric that only training or evaluation has.
        planned: How many epochs there are to be, where its head says so.
    """

    bar: Bar
    words: str
    head: tuple[float, ...]
    counters: dict[str, float]
    metrics: dict[str, float]
    evaluation: bool
    from_zero: bool
    telling: bool
    planned: tuple[tuple[str, int], ...] = ()


@dataclass(slots=True)
class LineContent:
    """What a line says; of several things that stand in one line, a bar comes first.

    Args:
        drawing: A progress bar.
        record: The dict that stands in it, if it is one of metrics.
        opens: A dict begins in it, and goes on below.
        history: The lists of values that stand in it, by the names of their metrics.
        skipped: A step was skipped for overflow: what that says, mostly the new loss scale.
        plain: Its counters and metrics.
        text: What `plain` was read from, or words without a number.
    """

    drawing: Drawing | None = None
    record: dict[str, object] | None = None
    opens: str = ""
    history: History = field(default_factory=dict)
    skipped: dict[str, float] | None = None
    plain: Parsed | None = None
    text: str = ""

    @property
    def head(self) -> str:
        """The text that its counters and metrics are read from; of a bar what stands before it."""
        return self.text if self.drawing is None else self.drawing.bar.head

    @property
    def is_nothing(self) -> bool:
        """Whether the line says nothing."""
        holds_numbers = (
            self.drawing is not None or self.record is not None or self.skipped is not None or self.plain is not None
        )
        return not holds_numbers and not self.opens and not self.history


def straightened(line: str) -> str:
    """Return a line with straight quotation marks around the keys of a dict, and with the braces that it lost."""
    if "{" in line:
        return line if line.isascii() else line.translate(_STRAIGHT)
    found = _LOST_BRACE.match(line)
    if found is None:
        return line
    inside = line.strip().rstrip("},")
    return f"{{{inside}}}" if inside[0] in "'\"" else f"{{{found['mark']}{inside}}}"


_ORDERED = regex(r"\bOrderedDict\(\[((?:\('[\w@.-]{1,60}', \[[^\[\]]*\]\)(?:, )?){1,50})\]\)")
"""Columns as Python prints them before version 3.12: "OrderedDict([('rmse', [2.5, 2.1])])"."""
_RETURNED = regex(r"^\s*+\{(?:'booster': <[^<>]{1,200}>, )?'history': (\{.{1,10000}\})\}\s*+$")
"""What `xgboost.dask.train` returns, the booster and its history."""
_COLUMN = regex(r"\(('[\w@.-]{1,60}'), (\[[^\[\]]*\])\)")


def content_of(line: str, *, evaluation: bool = False) -> LineContent:
    """Read a line outside a box or a table.

    `evaluation` says that it stands under a heading of one.
    """
    line = without_underscores(line)
    if line.startswith(ROW_MARK):
        return LineContent(record=dict(record_in_box(line)))
    if "OrderedDict(" in line:
        line = _ORDERED.sub(lambda found: "{" + _COLUMN.sub(r"\1: \2", found[1]) + "}", line)
        line = _RETURNED.sub(r"\1", line)
    bar = bar_in(line)
    message = without_prefix(line).message if bar is None else bar.around
    content = LineContent(drawing=None if bar is None else drawing_of(bar), text=line if bar is None else message)
    if bar is not None and _is_row_in_head(content.drawing):
        content.drawing, content.text, bar = None, bar.head, None
    if "{" in message:
        _read_dict(content, message)
    elif "[" in message and opens_history(message):
        content.opens = message
    if "[" in message and content.record is None and not content.opens:
        content.history = history_in(message)
    if content.record is not None or content.opens or content.history:
        return content
    skipped = _SKIPPED.search(message) if "kipping" in message or "overflow" in message else None
    if skipped is not None:
        scale = parse_number(skipped["scale"] or skipped["set"] or skipped["apex"] or "")
        content.skipped = {"overflow": 1.0, **({} if scale is None else {"loss_scale": scale})}
    elif (bar is None or message.strip()) and MAY_HOLD_NUMBER.search(content.text) and not _END_OF_BAR.match(line):
        content.plain = parse_line(content.text, evaluation=evaluation)
    return content


_LAUNCHER = regex(rf"^[\s`]*{MPIRUN}")
_EPOCH_OF_BAR = regex(
    r"[\[(]?(?P<epoch>\d{1,6})\s?/\s?\d{1,6}[\])]?(?:\s?\((?P<phase>[a-z]{1,12})\))?\s?:?", re.IGNORECASE
)
"""A bar that is headed by nothing but an epoch, of how many, and torchbearer's letter for training or validation."""


def drawing_of(bar: Bar) -> Drawing:
    """Read the texts of a bar."""
    bar_head = written_out(_LAUNCHER.sub("", bar.head))
    counters = find_counters(bar_head)
    evaluation = is_of_evaluation(bar_head)
    if (epoch := _EPOCH_OF_BAR.fullmatch(bar_head)) and not bar.keras:
        counters = Counters({"epoch": float(epoch["epoch"])})
        evaluation = names_evaluation(epoch["phase"] or "") or epoch["phase"] in ("v", "e")
    metrics = {
        name: value
        for name, value in pairs_in(f"{counters.rest} | {written_out(bar.metrics)}", evaluation=evaluation).items()
        if canonical(name) not in ("step", "epoch")
    }
    words = _IN_HEAD.sub("0", bar.head)
    head = tuple(_number(text) for text in _IN_HEAD.findall(before_metrics(bar_head)))
    if counters.values:
        head = (*head, *counters.values.values())
    telling = any(map(is_telling, metrics))
    from_zero = "v_num" in bar.metrics
    return Drawing(bar, words, head, counters.values, metrics, evaluation, from_zero, telling, counters.planned)


def _is_row_in_head(drawing: Drawing | None) -> bool:
    """Say whether a bar is headed by an epoch and its numbers by phase: "Epoch 3 | Train 0.9 | Val 1.1 |  30%|"."""
    return drawing is not None and bool(drawing.counters) and not drawing.telling and _is_row_of_phases(drawing.metrics)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:  # "1.2.3"
        return 0.0


def _read_dict(content: LineContent, message: str) -> None:
    """Read the dict in a line, if one of metrics stands or begins in it."""
    record = dict_in(message)
    if not record and is_record(printed := object_in(message)) and "}" in message:
        content.record = printed
        return
    begun = bool(record) or begins_object(message)
    if opens_dict(message) and (begun or begins_history(message)):
        content.opens = message
        return
    if not record:
        return
    before = parse_line(message.partition("{")[0])
    in_front = {name: value for name, value in before.metrics.items() if is_telling(name)}
    if before.evaluation:  # GraphGym: "val: {'epoch': 0, 'loss': 0.65}"
        record = {evaluation_name(name): value for name, value in record.items()}
    values: dict[str, object] = {**before.counters.values, **in_front, **record}
    if is_record(values) or (len(values) > 1 and _NAMES_ITS_ONE.search(message)):
        content.record = values


def is_record(record: Mapping[str, object]) -> bool:
    """Say whether a dict is a record of metrics, in dicts of its own too, or the Trainer's last one."""
    return any(map(is_telling, record)) or "train_runtime" in record or any(map(_holds_measure, record.values()))


def _holds_measure(value: object, depth: int = 3) -> bool:
    """Say whether a value is a dict that holds a number of a metric that only training or evaluation has."""
    return isinstance(value, Mapping) and any(
        (is_telling(name) and to_number(part) is not None) or (depth > 0 and _holds_measure(part, depth - 1))
        for name, part in value.items()
    )
