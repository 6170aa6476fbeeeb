"""How far the run is: steps, epochs, episodes and batches as they are printed, and as progress bars show them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from itertools import pairwise
from typing import Generic, NamedTuple, Protocol, TypeVar

from mldebug_mcp.core.lazy import dataclass, regex
from mldebug_mcp.logs.line_prefixes import is_of_evaluation, names_evaluation, without_prefix
from mldebug_mcp.logs.names.lexicon import THOUSANDS
from mldebug_mcp.logs.names.metrics import is_known, is_telling
from mldebug_mcp.logs.numbers import HUGE, NUMBER, whole_number
from mldebug_mcp.logs.text.pairs import measures_sets

_WHOLE = r"\d[\d,]*(?:\.0+(?!\d)|\.\d+(?=[KM](?!\w)))?"
_STEP_WORD = (
    r"(?:global[_ ]?steps?|learning iteration|iterations?|iters?|steps?|batch(?:es)?|updates?|num_updates|total_steps?"
    r"|timesteps?|(?:total_time|cumulative_)steps|rollout|itr|it|rounds?|frames?|tree(?=\s\d+\sof\s\d)|шаг|ステップ|스텝|步数|up\.|t(?=\s*[=:]\s*\d+\s*/))"
)
_SPLIT = r"(?:\s?\((?P<phase>(?:train|val|test|eval)\w*)\))?"  # MMEngine: "Iter(val)"; "Batch (t)" is a time
_SINCE = r"(?:(?<=\[)\d+-(?=\d+\]))?"  # MXNet: "Batch [20-40]"
_OF = r"(?:\s*+(?:/|(?:out )?of)\s*+(?P<total>\d[\d,]*+)(?!/\d))?"  # "9/12/15" counts three things, to no end

# The first that fits is taken: an epoch together with the batch inside it, of how many, then each by itself.
_EPOCH_AND_BATCH = tuple(
    regex(pattern, re.IGNORECASE)
    for pattern in (
        # mmcv "Epoch [1][50/7330]", ImageNet "Epoch: [0][ 10/5005]", timm "Train: 0 [   0/1251 (  0%)]",
        # MNIST "Train Epoch: 1 [640/60000 (1%)]", MiniMind "Epoch:[1/6](100/44160)"
        r"\b(?:epoch|train)(?:\s?\((?P<phase>\w+)\))?\s*+:?\s*+\[?\s*+(?P<epoch>\d+)(?:/(?P<epochs>\d+))?(?:\s*+\([\s\d]+%\))?\s*+\]?\s*+"
        r"[\[(]\s*+(?P<batch>\d+)\s*+/\s*+(?P<batches>\d+)(?:\s*+\([\s\d.]+%\))?\s*+[\])]",
        # DINOv2: "Training  [  40/5000000]"
        r"^\s*+train\w*\s*+:?\s*+\[\s*+(?P<batch>\d+)\s*+/\s*+(?P<batches>\d+)\s*+\]",
        # PyTorch's DCGAN: "[0/5][50/1583]", or without the number of epochs "[1][  0/37]"
        r"^\s*+\[\s*+(?P<epoch>\d{1,6})(?:/(?P<epochs>\d+))?\s*+\]\s?\[\s*+(?P<batch>\d+)\s*+/\s*+(?P<batches>\d+)\s*+\]",
        # JiGen and its children: "30/42 of epoch 1/30"
        r"^\s*+(?P<batch>\d+)/(?P<batches>\d+) of epoch (?P<epoch>\d{1,6})/(?P<epochs>\d+)(?=\s)",
        # CREStereo: "[2/100:5/500]"
        r"\[\s*+(?P<epoch>\d{1,6})/(?P<epochs>\d+)\s*+[:,;|]\s*+(?P<batch>\d+)\s*+/\s*+(?P<batches>\d+)\s*+\]",
        # CenterNet: "val: [125][1/6]"
        r"\b(?P<phase>test|val|eval)\w*\s*+:?\s*+\[\s*+(?P<epoch>\d+)(?:/(?P<epochs>\d+))?\s*+\]\s*+"
        r"\[\s*+(?P<batch>\d+)\s*+/\s*+(?P<batches>\d+)\s*+\]",
        # timm and ImageNet in evaluation: "Test: [  48/48]"
        r"^\s*+(?P<phase>test|val|eval)\w*\s*+(?:\(\w+\))?:?\s*+"
        r"\[\s*+(?P<batch>\d+)\s*+/\s*+(?P<batches>\d+)(?:\s*+\([\s\d.]+%\))?\s*+\]",
        # fairseq "epoch 001:    100 / 1000", OpenNMT-py "Epoch  1,   50/725;", PyTorch's word language model
        # "| epoch   1 |   200/ 2983 batches", MiniMind "Epoch:[0/19](100/24681)"
        r"\bepoch\s*+:?\s*+\[?\s*+(?P<epoch>\d+)(?:\s*+/\s*+(?P<epochs>\d+))?+(?:\s*+\])?+(?:\s*+[:,|]\s*+|\s++|(?=\())\(?"
        r"(?P<batch>\d+)\s*+/\s*+(?P<batches>\d+)(?![\d.%]|\s*+/)\)?(?:\s*+batches\b)?",
        # "Epoch [1/10], Step [100/600]", "Epoch 1/10 | Batch 20/100"
        r"\bepoch\s*+[:=]?\s*+\[?\s*+(?P<epoch>\d+)(?:\s*+/\s*+(?P<epochs>\d+))?\s*+\]?\s*+[,|;-]?\s*+"
        r"[\[(]?(?:mini)?[ _-]?(?:step|batch|iter(?:ation)?)s?\s*+[:=#]?\s*+\[?\s*+"
        r"(?P<batch>\d+)\s*+(?:/|of\b)\s*+(?P<batches>\d+)\s*+\]?",
        # "E3 |  20/100 | loss: 0.2", "E3 [20/100] loss: 0.2"
        r"^\s*+E(?P<epoch>\d{1,6})(?:/(?P<epochs>\d+))?[\s|:,-]{1,6}+\[?\s*+(?P<batch>\d+)\s*+/\s*+(?P<batches>\d+)"
        r"(?:\s*+\])?(?=[\s|:,])",
        # PyTorch's quickstart "loss: 2.302  [ 6400/60000]"
        r"\[\s*+(?P<batch>\d+)\s*+/\s*+(?P<batches>\d+)\s*+\]\s*+$",
    )
)
_EPOCH_ENDS = regex(r"[\s:,.)\]!-]{0,4}(?:(?:is|has|was) )?(?:finished|done|completed?|ended)\b", re.IGNORECASE)
_END_BEFORE = regex(r"\b(?:finished|completed|ended|end of)(?: the)?(?: training)?\W{0,3}$", re.IGNORECASE)
"""An epoch that ends: "Epoch 3 finished.", "End of epoch 3"."""
_BANNER = regex(r"\s*\*{3,80}\s?epoch ?[=:]? ?\d{1,6} end\s?\*{3,80}\s*", re.IGNORECASE)
"""RecBox and FuxiCTR end an epoch so and begin the next one without a word: "*** Epoch=3 end ***"."""
_FRACTION = regex(r"\d\s*+(?:/|of\b)\s*+\d")
"""Stands in each line with the batch inside an epoch."""
_OF_LEARNING = r"(?:loss|acc|mse|mae|nll|ppl|perplexity|bce|elbo|auc|psnr|dice|iou|\bf1|\blr\b)"
_EPOCH = regex(
    r"(?<![\w/])(?<!over )(?<!per )"
    rf"(?:epochs?|num_epochs?|ep(?=\s{{0,4}}=?\s?\d{{1,4}}(?:\.\d{{1,6}}|/\d{{1,4}})?[\s,:|\]](?!.{{0,300}}(?:reward|return|score))(?:.{{1,300}}{_OF_LEARNING}|\s?iter\b|\s?it\b))|epch|epoche|[eé]poca|[eé]poque|эпоха|エポック|에포크|轮次|ep\.)"
    r"(?:\s?\((?P<phase>\w+)\))?\s*+(?:[:=#]|\.{3}|-(?=\s?\d{1,6}\s?/))?\s*+[\[(]?\s*+"
    r"(?P<epoch>\d++(?:\.\d++)?+)(?![\w%-])(?:\s*+(?:/|\(?(?:out )?of)\s*+(?P<epochs>\d+)(?:\.\d+)?)?\s*+\]?",
    re.IGNORECASE,
)
_EPISODE = regex(
    r"(?<![\w/])(?:episode|i_episode|episodio|эпизод|エピソード|에피소드|回合|ep\.?(?=.{1,200}(?:reward|return|score)))\s*+[:=#]?\s*+[\[(]?\s*+"
    r"(?P<episode>\d[\d,]*)(?![\w%-]|\.\d)(?:\s*+(?:/|(?:out )?of)\s*+(?P<episodes>\d[\d,]*))?\s*+[\])]?",
    re.IGNORECASE,
    needs=("episod", "reward", "return", "score"),
)
_CHINESE = regex(r"第\s*(?:(?P<epoch>\d+)\s*(?:轮|个?epoch)|(?P<episode>\d+)\s*回合|(?P<step>\d+)\s*步)", re.IGNORECASE)
_STEP_WORDS = regex(
    r"(?<![\w/])(?<!per )(?<!fps )(?<!episode )(?<!search )(?<!this )"
    r"(?:(?P<before>val(?:id(?:ation)?)?|eval(?:uation)?|test)[ _])?"
    rf"{_STEP_WORD}"
    rf"{_SPLIT}\s*+(?:[:=#]|\.{{3}})?\s*+[\[(]?\s*+{_SINCE}(?P<step>{_WHOLE})"
    rf"(?P<unit>[KM](?!\w))?(?![\w%-]|\.\d|\s{{1,4}}%){_OF}(?:\s*+\(\s*+[\d.]+\s*+%\))?\s*+[\])]?",
    re.IGNORECASE,
)
_PLURAL = regex(r"(?:steps|iters|iterations|batches|updates|epochs|frames)\b", re.IGNORECASE)
_BARE = regex(
    r"\s*+(?:(?:(?P<colon>\d{1,9})\s*+[:|]"
    r"|\[\s{0,8}(?P<bracket>\d{1,9}|\d{1,3}(?:,\d{3}){1,3})(?:/(?P<brackets>\d{1,9}))?\])\s++"
    r"(?=[\d.]+,|[A-Za-z]|\d+ [a-z])"
    r"|#(?P<hash>\d{1,9})[:|]?(?:\s++(?=[A-Za-z])|\s{0,8}$)"
    r"|(?:\[\s{0,8}|[=*~-]{2,80}\s)(?P<alone>\d{1,9})(?:\s{0,8}\]|\s[=*~-]{2,80})\s{0,8}$"  # a heading: "[100]"
    r"|(?P<number>\d{1,9})\s(?=\[[A-Za-z][\w ]{0,30}:))"  # Keras-GAN: "0 [D loss: 0.7, acc.: 50.00%]"
)
_FIRST_VALUE = regex(
    r"(?<![\w.])(?!(?:rank|gpu|cuda|pid|tid|worker|node|host|device|dev|proc|process|thread|shard|replica|seed|fold|INFO|DEBUG"
    r"|WARNING|TRACE)s?\b)[^\W\d][\w./@%|-]{0,60}+\s{0,3}(?:[=:]\s{0,3})?(?=[-+]?\.?\d|nan\b|[-+]?inf\b|(?:tensor|array)\()",
    re.IGNORECASE,
)
"""Where the values of a line begin: a name that says neither who printed it nor how important it is."""
_BEHIND_PHASE = "|".join(
    rf"(?<=\b{word}\s)"
    for word in ("train", "training", "val", "valid", "validation", "eval", "evaluation", "test", "dev", "out")
)
_LONE = regex(
    rf"(?<![^\s\])>|:])(?<!,\s)(?:(?<![^\W\d]\s)|{_BEHIND_PHASE})(?:[\[(<#@]\s{{0,8}})?(?P<lone>\d{{1,3}}(?:,\d{{3}}){{1,3}}(?![\d.,])|\d{{1,9}})(?:\s?/\s?(?P<lones>\d{{1,9}}))?(?:it\b)?\s{{0,8}}"
    r"[\])>]?[-:,|;]{0,2}(?=\s|$)(?!\s{1,4}[A-Z]\w{0,60}\()",
    re.IGNORECASE,
)
"""A whole number that stands alone: "[40/1000] - loss: 0.2", "(40) loss 0.2", "<40>", "#40", "40it", "40 | 0.2".

Behind a word it is the word's, "mse (2), iou_norm: 0.75", if that names no phase: "eval [40] loss: 0.2"."""
ONE_MEASURE = regex(
    r"\s{0,12}\d{1,9}\s{1,8}[A-Za-z][\w-]{0,30}\s?[:=]?\s{1,8}-?\d{1,9}\.\d{1,12}(?:\s{1,4}\([^()\d]{1,80}\))?\s*"
)
"""A counter, a word and a number with decimals, and a remark: "100 scorer 4.1 (a script of its own)"."""
_OWN_COUNTER = regex(
    r"(?:(?:n_?iter|tr_step|upd|ver|[iknstu])\s?[=:]?\s?|v(?=\d))(?P<step>\d{1,9})(?=[-:,|;]{0,2}(?:\s|$))",
    re.IGNORECASE,
)
"""A letter that counts, in front of all values: "i=40, loss=0.2", "u0040 loss=0.2"."""
_ROWS_OF_SET = regex(r"n\b", re.IGNORECASE)
_PLAIN_WORD = regex(r"\b[a-z]{3,}\b")
"""A letter that counts the rows of what words before it name: "final test of last.pt: n=300 loss 0.2"."""
_BEHIND_EPOCH = regex(
    r"^[^\d=]{0,60}\|\s{1,4}[,:|;-]?\s{0,4}"
    r"(?:\[\s{0,8}(?P<step>\d{1,9})\s?\]|(?:n_?iter|[iknt])\s?[=:#]\s?(?P<number>\d{1,9}))"
    r"(?=[-:,|;]{0,2}\s{1,4}(?:[-:,|;]\s{1,4})?[^\W\d])",
    re.IGNORECASE,
)
"""A number behind an epoch, whose place a separator took: "epoch 3 [40] loss: 0.2", "epoch: 3 i: 40 loss"."""
_BEFORE_EPOCH = regex(
    r"^\s{0,8}[\[(]\s{0,8}(?P<step>\d{1,9})\s?/\s?(?P<total>\d{2,9})\s?[\])]\s{0,4}[\[(|,-]?\s{0,4}\|"
)
"""A number of many in front of an epoch, whose place a separator took: "[ 40/360] epoch 3 loss: 0.2"."""
_EP_BEHIND_COUNT = regex(
    r"^(\s{0,8}[\[(]\s{0,8}\d{1,9}\s?/\s?\d{2,9}\s?[\])]\s{1,4})ep(?=[ =:]{0,2}\d)", re.IGNORECASE, needs="ep"
)
"""An epoch behind a step of many: by itself "ep" next to a reward is an episode."""
_EPOCH_COMMA_BATCH = regex(
    r"\s*+[\[(](?P<epoch>\d{1,6}),\s++(?P<step>\d{1,9})[\])](?=:?\s\D*loss)", re.IGNORECASE, needs=("[", "(")
)
_EPOCH_SPACE_BATCH = regex(r"\s*+(?P<epoch>\d{1,6}) (?P<step>\d{1,9}) (?=\w{0,20}loss\s?[=:])", re.IGNORECASE)
"""Two numbers in front of the loss: "12 40 Loss=0.2 Time=0.04"."""
_EPOCH_LETTER_BATCH = regex(
    r"\s*+[\[(]?ep?\.?(?P<epoch>\d{1,6})[\s,:/|.-]{1,3}(?:b|it?|s|u)\.?(?P<step>\d{1,9})[\])]?(?=[\s:|])(?!\s?(?:/|of\b))",
    re.IGNORECASE,
)
"""Both by their letters in front of all values: "[e00 b010] loss=0.2", "e3:s40 loss 0.2"."""
_WENET = regex(
    r"\s*+(?:(?P<phase>CV)|TRAIN)\b(?: \|[^|]{0,40}\|)? Batch (?P<epoch>\d{1,6})/(?P<inner>\d{1,9})(?=\s)",
    needs="batch",
)
"""WeNet: "TRAIN Batch 4/203700 loss 12.6", of the epoch and the batch inside it."""
_OF_RUN = regex(r"\s*+(?P<step>\d{1,9})/(?P<total>\d{1,9})(?=\s\(epoch\b|\s?[:|]\s|\s[A-Za-z_][\w/]{0,40}=)", needs="/")
_GLOBAL = regex(rf"(?<![\w/])global[_ ]?(?:step|iter)s?\s*+[:=#]?\s*+(?P<step>{_WHOLE})(?![\w%-]|\.\d)", re.IGNORECASE)
_ESPNET = regex(r"\s*+(?P<epoch>\d+)epoch(?::(?P<phase>\w+):\d+-(?P<step>\d+)batch:| results:)")
_TIMM = regex(r"train: \d+ \[", re.IGNORECASE)
_TORCHTUNE = regex(r"\s*+(?P<epoch>\d+)\|(?P<step>\d+)\|(?=\w)")
_LOGGABLE = regex(r"(?:\s*+[\w :|]{0,80}?\s)?(?P<step>\d{1,9})it/(?P<total>\d{1,9})it(?=\srate:)")
"""tqdm-loggable: "Progress on:train 10it/240it rate:2.1it/s"."""
_COUNT_BEFORE_WORD = regex(
    r"\s*+[^\w\s]{0,8}\s*+(?P<step>\d{1,9})\s?(?:its?|iters?|iterations?|steps?|updates?)\s?[:|]\s++(?=[A-Za-z])",
    re.IGNORECASE,
    needs=(":", "|"),
)
"""A count before its word: ">> 100 it: loss=0.2"."""
_IN_BRACKETS = regex(
    r"\s*+\[(?:upd?|u|n|k|t|s|i|gs|mb)\.?[ :=#]{0,2}(?P<step>\d{1,9})(?:/(?P<total>\d{1,9}))?\]\s++(?=[A-Za-z])",
    re.IGNORECASE,
    needs="[",
)
"""A short counter in brackets, in front of all values: "[up 20] nll 3.15"."""
_PHASE_AND_EPOCH = regex(
    r"\s*+(?P<phase>train|val|test)\w*\s\((?P<epoch>\d{1,6})/(?P<epochs>\d{1,6})\)(?=\s[A-Za-z])",
    re.IGNORECASE,
    needs="(",
)
"""Catalyst: "valid (3/24) loss: 1.2"."""
_PASS = regex(
    r"[\W_]{0,12}(?:pass|sweep|lap)\s?[:=#]?\s?(?P<epoch>\d{1,6})(?:\s?(?:/|of)\s?(?P<epochs>\d{1,6}))?[\W_]{0,12}$",
    re.IGNORECASE,
    needs=("pass", "sweep", "lap"),
)
"""A heading of nothing but a pass over the data: "--- pass 7"."""
_AT_BEGINNING = (
    _LOGGABLE, _PHASE_AND_EPOCH, _TORCHTUNE, _ESPNET, _WENET, _OF_RUN, _EPOCH_COMMA_BATCH,
    _EPOCH_SPACE_BATCH, _EPOCH_LETTER_BATCH, _COUNT_BEFORE_WORD, _PASS, _IN_BRACKETS,
)  # fmt: skip
_OF_COUNTER = regex(r"(?<=\w)\s++(?:after|at|in|for|of|on)(?: the)?(?: end of)?(?: the)?\s*+$", re.IGNORECASE)
_VALUE = regex(r"\s*+(?:[:=]|(?:is|was)\b:?)\s*+(?=[-+]?\.?\d|nan\b|[-+]?inf\b)", re.IGNORECASE)
_NO_WORD = regex(r"[^A-Za-z_ ]|^ +| +$")
_TOTALS = (("epoch", "epochs"), ("episode", "episodes"), ("step", "total"), ("step", "brackets"), ("step", "lones"))
"""Counters, and the groups that hold how many there are of them."""


_BARE_COUNTERS = ("colon", "bracket", "hash", "alone", "number", "lone")
"""The groups of a counter without a word for it."""


@dataclass(slots=True)
class Counters:
    """What a line says about where the run is.

    Args:
        values: "step", "epoch" and "episode", those of them that were found.
        batch: Batch of the epoch, and how many there are, where the line counts inside an epoch.
        phase: "train", "val" or "test" where the counter names it ("Epoch(val)").
        rounded: The step was printed as "6K".
        weak: Only a metric next to it makes this a counter: "steps: 1000" alone is a setting, "0: text" a list.
        first_epoch: The number of the first epoch, where the framework is known: that of Lightning and timm is 0.
        rest: The line without its counters.
        step_name: What the step is called in the line, in lower case.
        total: How many steps there are of it, where the line says so ("step 5/240").
        planned: How many epochs, steps or episodes there are to be, where the line says so ("Epoch 3/10").
        ends_epoch: The epoch ends here ("Epoch 3 finished").
        length_is_known: The line says how many batches there are, where it counts one of an evaluation.
    """

    values: dict[str, float] = field(default_factory=dict)
    batch: tuple[int, int] | None = None
    phase: str | None = None
    rounded: bool = False
    weak: bool = False
    first_epoch: float | None = None
    rest: str = ""
    step_name: str = ""
    total: int | None = None
    planned: tuple[tuple[str, int], ...] = ()
    ends_epoch: bool = False
    length_is_known: bool = True


def find_counters(line: str) -> Counters:
    """Find the counters of a line."""
    line = _EP_BEHIND_COUNT.sub(r"\1epoch", line)
    found = Counters(rest=line)
    for pattern in (*_AT_BEGINNING, *_EPOCH_AND_BATCH) if _FRACTION.search(line) else _AT_BEGINNING:
        match = pattern.search(line) if pattern in _EPOCH_AND_BATCH else pattern.match(line)
        if match:
            _take(found, match)
            break
    if "第" in line and (match := _CHINESE.search(found.rest)):
        _take(found, match)
    low = line.lower()
    if "ep" in low or not line.isascii():
        if "epoch" not in found.values and (match := _EPOCH.search(found.rest)):
            before, behind = found.rest[: match.start()], found.rest[match.end() :]
            found.ends_epoch = bool(_EPOCH_ENDS.match(behind) or _END_BEFORE.search(before))
            _take(found, match)
            found.values["epoch"] += _BANNER.fullmatch(line) is not None
        if match := _EPISODE.search(found.rest):
            _take(found, match)
    if "step" not in found.values and "global" in low and (match := _GLOBAL.search(found.rest)):
        _take(found, match)
        found.rest = _STEP_WORDS.sub("|", found.rest, count=1)  # that one counts inside the epoch
    if "step" not in found.values and (match := _STEP_WORDS.search(found.rest)):
        _take(found, match)
    if match := _without_a_step_word(found):
        _take(found, match)
    return found


def _without_a_step_word(found: Counters) -> re.Match[str] | None:
    """Return a number that counts by its place: in front of all values, or next to the epoch of training."""
    if not found.values:
        return _without_a_word(found)
    if found.batch or names_evaluation(found.phase or "") or found.values.keys() != {"epoch"}:
        return None
    return _BEHIND_EPOCH.search(found.rest) or _BEFORE_EPOCH.match(found.rest)


def _without_a_word(found: Counters) -> re.Match[str] | None:
    """Return the number that counts in a line without any word for a counter: it stands in front of its values.

    One with a total is surer than others, and the last of several is nearest to what was measured there.
    """
    line, bare = found.rest, _BARE.match(found.rest)
    value = _FIRST_VALUE.search(line)
    if value is None or found.batch is not None:
        return bare
    if match := _OWN_COUNTER.match(line.lstrip()):
        return match
    of_words = is_of_evaluation(line) or len(_PLAIN_WORD.findall(line, 0, value.start())) > 1
    if not (of_words and _ROWS_OF_SET.match(line, value.start())) and (
        match := _OWN_COUNTER.match(line, value.start())
    ):
        return match
    lone = list(_LONE.finditer(line, 0, value.start()))
    if is_of_evaluation(line):  # "Test: EMA [0/5]" is of a part of it
        lone = [match for match in lone if not match["lones"] or _stands_behind_phase(line, match.start())]
    is_measured = any(map(_is_metric, _FIRST_VALUE.findall(line)))
    if not (is_measured or measures_sets(line) or ONE_MEASURE.fullmatch(line)):
        lone = [match for match in lone if not match[0].strip().isdigit()]  # a list of layers: "12 conv 64"
    return next((match for match in lone if match["lones"]), lone[-1] if lone else bare)


def _is_metric(name: str) -> bool:
    name = name.rstrip(" =:")
    return is_known(name) or is_telling(name)


def _stands_behind_phase(line: str, at: int) -> bool:
    """Say whether the name of an evaluation stands right before a place: "dev: [25/25]"."""
    return names_evaluation(line[:at].strip(" :|>-[]()").rpartition(" ")[2])


def _take(found: Counters, match: re.Match[str]) -> None:
    groups = match.groupdict()
    phase = groups.get("phase") or groups.get("before") or ""
    evaluation = names_evaluation(phase)
    if groups.get("inner"):
        _take_inner(found, groups["inner"], evaluation=evaluation)
    if groups.get("epoch"):
        found.values["epoch"] = float(groups["epoch"])
    if groups.get("episode"):
        found.values["episode"] = float(groups["episode"].replace(",", ""))
    if groups.get("batch"):
        found.batch = (whole_number(groups["batch"]), whole_number(groups["batches"]))
    found.planned += tuple(
        (name, _integer(groups[total])) for name, total in _TOTALS if groups.get(total) and not evaluation
    )
    bare = next(filter(None, map(groups.get, _BARE_COUNTERS)), None)
    if bare:
        found.values["step"] = float(bare.replace(",", ""))  # river: "[1,000] LogLoss: 0.3"
        total = groups.get("lones") or groups.get("brackets")
        found.total = _integer(total) if total else None
    if groups.get("step") and groups.get("total") and evaluation:
        found.batch = (_integer(groups["step"]), _integer(groups["total"]))  # MMEngine: "Iter(val) [4/4]"
    elif groups.get("step") and evaluation and "[" in match[0]:
        found.batch = (_integer(groups["step"]),) * 2  # mmcv: "Iter(val) [500]", the batches of the evaluation
    elif groups.get("step"):
        unit = groups.get("unit")
        found.values["step"] = float(groups["step"].replace(",", "")) * (THOUSANDS[unit.lower()] if unit else 1.0)
        found.rounded = unit is not None
        found.total = _integer(groups["total"]) if groups.get("total") else None
        found.step_name = found.step_name or _NO_WORD.sub("", match[0]).lower()
    found.weak = found.weak or match.re in (_BARE, _LONE, _OWN_COUNTER) or _PLURAL.search(match[0]) is not None
    found.phase = found.phase or phase or None
    if _TIMM.match(match[0]):
        found.first_epoch = 0.0
    found.rest = _without_counter(found.rest, match)


def _take_inner(found: Counters, batch: str, *, evaluation: bool) -> None:
    """Take the batch of an epoch of unknown length; of an evaluation it is under way: another line tells the mean."""
    if evaluation:
        found.batch, found.length_is_known = (whole_number(batch), whole_number(batch) + 2), False
    else:
        found.values["step"] = float(batch)


def _without_counter(line: str, match: re.Match[str]) -> str:
    """Return a line without a counter."""
    before, after = line[: match.start()], line[match.end() :]
    of, value = _OF_COUNTER.search(before), _VALUE.match(after)
    if of and value:  # "Loss after epoch 3: 0.52"
        return f"{before[: of.start()]}: {after[value.end() :]}"
    return f"{before} | {after}"  # a separator in its place keeps what stood on both sides apart


def _integer(text: str) -> int:
    return int(float(text.replace(",", "")))


# Progress bars of tqdm, Keras, fastprogress and Rich, and which batch the metrics belong to that one shows.
#
# Hugging Face, diffusers, kohya, Lightning, torchtune and Ultralytics draw with tqdm. A bar is redrawn many times for
# one step. The last drawing for a step counts.


_TQDM = regex(
    r"(?P<percent>\d{1,3})%\s?(?:\|[^|\[]{0,400}\|)?\s*(?P<count>\d+(?:\.\d+)?[kM]?)/(?P<total>\d+(?:\.\d+)?[kM]?)\s*"
    r"\[(?P<inside>(?:[^\[\]]|\[\d{1,12}-\d{1,12}\]){0,2000})(?P<end>\]|$|(?=\[))"
)
_OVER_RANGE = regex(r"(?<=[A-Za-z]) \[\d{1,12}-\d{1,12}\](?=:)")
"""The steps that a mean is over, in its name, as NumPyro writes it: "avg. loss [381-400]: 102.5"."""
_COUNT_FIRST = regex(
    r"(?P<head>.{0,200}?)\[(?P<count>\d+)/(?P<total>\d+)\]\s{0,4}\d{1,3}%\|[^|,\[\]]{0,400}"
    r"(?:,\s?(?P<rest>[^\[\]]{0,2000}))?\[[\d:?]{1,20}<[\d:?]{1,20}\]\s*$"
)
"""tqdm as Ignite draws it: "Epoch [1/3]: [2/16]  12%|█▎        , loss=0.76 [00:00<00:00]"."""
_MAX_HEAD_CHARACTERS = 300
MAX_METRICS = 20_000
"""Characters behind a bar that are read."""
_KERAS = regex(
    r"\s*(?P<count>\d+)/(?P<total>\d+)\s*(?:(?P<drawn>\[[=>.]{5,}\]|[━─]{5,})|(?=- \d+m?s\b))\s*-?\s*(?P<rest>.*)$",
)
_KERAS_AGAIN = regex(
    r"(?:(?<=\.\d{4})|(?<=e[-+]\d\d)|(?<![\d.]))\s*(?P<count>\d{1,9})/(?P<total>\d{1,9})\s*(?:\[[=>.]{5,}\]|[━─]{5,})"
)
"""Where Keras' bar stands again behind itself, as the control characters are lost: "loss: 0.250080/99 [==>..]"."""
_KERAS_EPOCH = regex(
    r"(?:(?<=\.\d{4})|(?<=e[-+]\d\d)|(?<![\w.]))(?P<heading>Epoch \d{1,6}/\d{1,6})\s*"
    r"(?=\d{1,9}/\d{1,9}\s*(?:\[[=>.]{5,}\]|[━─]{5,}))",
    needs="epoch ",
)
"""The heading of an epoch right before Keras' bar, where line ends are lost."""
_ARROWS = regex(
    r"(?P<head>[A-Za-z][^\[\]{}]{0,80})?\s*\[[>=#.\- ]{5,200}\]\s*(?P<count>\d+)/(?P<total>\d+)\b,?\s*(?P<rest>.*)$"
)
_FRAMED = regex(
    r"(?P<head>[A-Za-z][^|\[\]{}]{0,80}?)\s*\|(?=[^|]{0,200}[#=█▉▊▋▌▍▎▏∙░▒▓◉◯■□▪])[#=>\-. █▉▊▋▌▍▎▏∙░▒▓◉◯■□▪]{4,200}\|"
    r"\s*\(?(?P<count>\d+)/(?P<total>\d+)\)?(?![\d/%])\s*(?P<rest>.*)$"
)
"""The bars of the package progress: "Processing |########    | (370/3700) Loss: 0.1"."""
_WITH_HEAD = (("<", _COUNT_FIRST), ("]", _ARROWS), ("|", _FRAMED))
"""What stands in each bar with a head, and its pattern; the second is "Training [>>>  ] 300/1000, loss=0.1"."""
_SIGNED = regex(r"\b((?:gen|disc)\w{0,20})\.? \(([+-]\d{1,12}\.\d{1,12}|[+-]?(?:nan|inf))\)", re.IGNORECASE)
"""The losses that CTGAN shows before its bar: "Gen. (+00.77) | Discrim. (-00.12): "."""
_STEP_AND_LOSS = regex(rf"\s{{0,4}}(?P<step>\d{{1,9}}), (?P<loss>{NUMBER})\s{{0,8}}", re.IGNORECASE)
"""What a callback prints behind the bar of its step, without a name: "20, 2.2377"."""
_FASTPROGRESS = regex(r"(?:Epoch \d+/\d+ :)?\s*\|[█-]{10,}\|\s*[\d.]+%\s*\[\d+/\d+[^\]]*\]", needs="|")
_FASTPROGRESS_HEAD = regex(r"Epoch \d+/\d+ :")
_RATE = regex(
    r"^\s*\d[\d:]{0,30}(?:\s*<\s*[\d:?]{1,30}(?: day[^,]{0,30})?)?\s*,?\s*[\d.?]{1,30}\s*\w{1,30}/\w+\s*,?"
    r"|^\s*\d[\d:]*<[\d:?]+,?\s*"
)
_KERAS_TIME = regex(r"^(?:\s*-?\s*(?:ETA:\s*)?[\d:.]+(?:us|ms|s|m|h)?(?:/step|/epoch|/sample)?)+\s*-?\s*")


class Bar(NamedTuple):
    """One drawing of a progress bar.

    Args:
        head: The text before it: a description, sometimes with an epoch.
        at: How far it is.
        total: Where it ends.
        metrics: The text that reports metrics, without the times.
        around: The line without the bar.
        keras: A bar of Keras, or the line that it prints in its place (verbose=2): it belongs to the epoch whose
            heading came before.
        line: That line, which is never drawn again.
    """

    head: str
    at: int
    total: int
    metrics: str
    around: str
    keras: bool = False
    line: bool = False


def bar_in(line: str) -> Bar | None:
    """Return the last bar drawn in a line, or None."""
    if "/" not in line:
        return None
    if "%" in line:
        drawn = list(_TQDM.finditer(line))
        if drawn:
            return _tqdm(line, drawn)
    for mark, pattern in _WITH_HEAD:
        found = pattern.match(line) if mark in line else None
        if found is not None:
            at, total = whole_number(found["count"]), whole_number(found["total"])
            return Bar((found["head"] or "").strip(), at, total, (found["rest"] or "")[:MAX_METRICS], "")
    keras = _KERAS.match(line)
    if keras is None:
        return None
    *_, last = [keras, *(again for again in _KERAS_AGAIN.finditer(line) if again["total"] == keras["total"])]
    keras = _KERAS.match(line[last.start() :]) or keras
    at, total = whole_number(keras["count"]), whole_number(keras["total"])
    rest = _KERAS_TIME.sub("", keras["rest"][:MAX_METRICS])
    return Bar("", at, total, rest, "", keras=True, line=keras["drawn"] is None)


_SHORT_HEAD = 4
"""Characters of a head from which on it is a description: below them, what stands before a bar is not its own."""


def keras_epochs_in(line: str) -> list[str]:
    """Return the headings and bars of a line that holds several epochs of Keras, [] for others."""
    headings = list(_KERAS_EPOCH.finditer(line))
    if len(headings) < 2:
        return []
    ends = [*(heading.start() for heading in headings[1:]), len(line)]
    parts = [(heading["heading"], line[heading.end() : end]) for heading, end in zip(headings, ends, strict=True)]
    return [line[: headings[0].start()], *(text for part in parts for text in part)]


_REPORTS = regex(rf"\s{{1,4}}[A-Za-z]\w{{0,30}}\s?[:=]\s?{NUMBER}[,;|\s]", re.IGNORECASE)
"""What begins the description of the next drawing, behind a blank: a metric and its value."""


def bars_apart(line: str) -> list[str]:
    """Return the parts of a line that holds one drawing of a bar after another without a line end, [] for others.

    Drawings of one bar begin alike, even where the terminal cut each off: "| epoch 1:  5%| | 1/20 [0:01, lo| epoch 1:".
    Another bar or a line of text begins right behind the bracket of the bar above it: "[00:32<53:42, 3.2s/it]Iter 20:".
    A bar that reports its metrics in front begins behind a blank too: "1.19s/it] loss: 4.25, epoch 0:  1%|".
    """
    drawn = list(_TQDM.finditer(line)) if "%|" in line else []
    if not drawn:
        return []
    head = line[: drawn[0].start()].strip()
    again = re.finditer(rf"{re.escape(head)}(?=\s{{0,8}}\d{{1,3}}%\|)", line) if len(head) >= _SHORT_HEAD else []
    starts = {found.start() for found in again} - {line.find(head)}
    starts |= {bar.end() for bar in drawn if bar["end"] and line[bar.end() : bar.end() + 1].strip()}
    starts |= {bar.end() for bar, after in pairwise(drawn) if _REPORTS.match(line, bar.end(), after.start())}
    edges = [0, *sorted(starts), len(line)]
    return [line[first:last] for first, last in pairwise(edges)] if starts else []


def is_fastprogress(line: str) -> bool:
    """Say whether a line is a drawing of fastai's bar, or blanks over one: it tells nothing that the table does not."""
    text = line.strip()
    if _FASTPROGRESS_HEAD.fullmatch(text):
        return line.endswith(" " * 20)
    return text == "█" or _FASTPROGRESS.fullmatch(text) is not None


def _tqdm(line: str, drawn: list[re.Match[str]]) -> Bar:
    match = drawn[-1]
    before = drawn[-2].end() if len(drawn) > 1 else 0
    head = line[max(before, match.start() - _MAX_HEAD_CHARACTERS) : match.start()]
    tail, brace, rest = line[match.end() :].partition("{")
    if "[" in tail or without_prefix(tail).message != tail:  # a message of another logger on the same line
        tail, rest = "", line[match.end() :]
        brace = ""
    pair = _STEP_AND_LOSS.fullmatch(tail)
    if pair and int(pair["step"]) in (_count(match["count"]) - 1, _count(match["count"])):
        tail = f"loss={pair['loss']}"
    whole = match["inside"] if match["end"] else match["inside"].rpartition(",")[0]  # cut where the terminal ended
    inside = _OVER_RANGE.sub("", _RATE.sub("", whole))
    if "(+" in head or "(-" in head:
        inside = ", ".join([f"{name}_loss={value}" for name, value in _SIGNED.findall(head)] + [inside])
        head = _SIGNED.sub(r"\1", head)
    return Bar(head.strip(), _count(match["count"]), _count(match["total"]), f"{inside} | {tail}", f"{brace}{rest}")


def _count(text: str) -> int:
    unit = {"k": 1000, "M": 1_000_000}.get(text[-1])
    return int(min(HUGE, float(text[:-1]) * unit if unit else float(text)))


# Lightning's bar as Rich draws it: the metrics behind it are wrapped over the lines below, in their own column.

_BAR = regex(
    r"Epoch (?P<epoch>\d+)/(?:\d+|-\d+)\s+(?:[━╸╺─]+\s+)?(?P<at>\d+)/(?P<total>\d+)\s+\d+:\d\d:\d\d\s+•\s+[-:\d]+"
    r"\s+[\d.]+(?:it|s)/(?:s|it)\s*(?P<metrics>.*)"
)
_COLUMN = " " * 20
MAX_LINES = 100
"""Lines over which the metrics of one bar may be wrapped."""


class RichBar:
    """Gathers a bar and the lines of its metrics. `take` a line; when the bar has ended, `done` holds it."""

    def __init__(self) -> None:
        self._bar: Bar | None = None
        self._metrics: list[str] = []
        self.done: Bar | None = None

    @property
    def open(self) -> bool:
        """Whether metrics of a bar may follow."""
        return self._bar is not None

    def take(self, line: str) -> bool:
        """Take a line if it belongs to a bar."""
        if self._bar is not None and line.startswith(_COLUMN) and len(self._metrics) < MAX_LINES:
            self._metrics.append(line.strip())
            return True
        self.end()
        match = _BAR.match(line) if line.startswith("Epoch ") else None
        if match is None:
            return False
        self._bar = Bar(f"Epoch {match['epoch']}:", int(match["at"]), int(match["total"]), "", "")
        self._metrics = [match["metrics"]]
        return True

    def end(self) -> None:
        """End the bar that is open, if one is."""
        if self._bar is not None:
            self.done = self._bar._replace(metrics=" ".join(self._metrics)[:MAX_METRICS])
        self._bar, self._metrics = None, []


# Which batch the metrics belong to that a progress bar shows at a count.
#
# tqdm counts in one call and shows metrics in another, and draws at both; drawings differ by the order of the two. A
# loop that counts first (`update`, then `set_postfix`) draws the metrics of a batch at its own count, last. A loop
# that shows metrics first draws them at the count before. Where it iterates over the bar, it draws many batches at one
# count, as tqdm then counts on at intervals of time alone: how far the next count is tells how many batches these
# were.

MAX_REDRAWS = 20_000
"""Drawings at one count that wait for the next count; with more, the first one alone is read."""
MIN_BATCHES_AT_COUNT = 3
"""Different metrics below the first ones at one count, from which on they are of several batches. Chosen by hand."""
MIN_COUNTS_OF_ORDER = 8
"""Counts without such drawings after which a loop is taken for one that counts first. Chosen by hand."""


class Shown(Protocol):
    """What a drawing shows."""

    @property
    def metrics(self) -> Mapping[str, float]:
        """The metrics by name."""


S = TypeVar("S", bound=Shown)


class Placed(NamedTuple, Generic[S]):
    """A drawing and the count that its metrics belong to."""

    at: int
    shown: S


@dataclass(slots=True)
class Order:
    """In which order the loops behind bars of one description count and show metrics.

    Args:
        shows_first: Metrics are shown before their batch is counted; None while that is not known.
        is_dense: Each batch shows its metrics, as far as is known.
        drawings: How often each batch then draws; 0 while that is not known.
        counts: Counts that were drawn.
        are_single: Each count was drawn once, and they lie apart.
        lengths: How far apart the first counts lie.
        interval: The least count between two drawings of new metrics.
        shown: The metrics that were shown last.
        lag: Batches that lie at most between what is shown and its count.
    """

    shows_first: bool | None = None
    is_dense: bool = True
    drawings: int = 0
    counts: int = 0
    are_single: bool = True
    lengths: set[int] = field(default_factory=set)
    interval: float = math.inf
    shown: Mapping[str, float] = field(default_factory=dict)
    lag: int = 0

    def begins(self, metrics: Mapping[str, float]) -> None:
        """Take metrics that a bar shows before anything is counted; zeros only keep the place of some."""
        if metrics != self.shown and any(metrics.values()):
            self.shows_first = True


class BarCounts(Generic[S]):
    """Gathers the drawings of a bar at one count; `take` and `pause` yield those whose batch is known.

    `total` is where the bar ends, `first` its first drawing that shows metrics.
    """

    def __init__(self, order: Order, total: int, first: Placed[S]) -> None:
        self._order = order
        self._total = total
        self.at = first.at
        self._own: S | None = None if order.shows_first and not first.at else first.shown
        self._first: S | None = None  # of a bar that is drawn from here on, what it showed first here is not known
        self._again: list[S] = [] if self._own is not None else [first.shown]
        self._drawn = len(self._again)
        self._done = 0
        self._changes = 0
        self._is_carried = False
        self._last_new = first.at
        self._is_placed = False
        self._held: list[Placed[S]] = []  # what shows the first metrics again, until it is known how seldom they change
        order.shown = first.shown.metrics

    @property
    def is_finished(self) -> bool:
        """Whether the bar has reached its end."""
        return self.at >= self._total

    def take(self, at: int, shown: S) -> Iterator[Placed[S]]:
        """Take the next drawing of the bar; it does not count back."""
        order = self._order
        is_carried = shown.metrics == order.shown
        if at == self.at:
            self._take_again(shown)
        else:
            pending = None
            for placed in self._leave(at, is_carried=is_carried):
                if placed.at == at:
                    pending = placed.shown
                else:
                    yield placed
            self.at, self._done, self._drawn, self._again, self._is_carried = at, 0, 0, [], is_carried
            self._changes = 0
            self._own = self._first = shown
            if order.shows_first and pending is not None and not is_carried:
                self._own = pending
                self._take_again(shown)
        if at > self._last_new and not is_carried:
            order.interval = min(order.interval, at - self._last_new)
            self._last_new = at
            self._held.clear()
        order.shown = shown.metrics

    @property
    def waits(self) -> bool:
        """Whether what was drawn at the last count is not known to be all of it yet."""
        return self._own is not None

    def pause(self) -> Iterator[Placed[S]]:
        """Yield what is known of the drawings when something else comes below them, or the log ends."""
        yield from self._held
        self._held.clear()
        if self._own is not None and not self._is_old():
            yield self._placed(self.at, self._own)
        self._own = None
        order, rest = self._order, self._total - self.at
        if not order.shows_first or not self._again or rest <= 0:
            self._done, self._again = self._drawn, []
            return
        drawings = order.drawings or (self._drawn // rest if _fits(self._drawn, rest) else 0)
        if drawings and order.is_dense:
            yield from self._spread(self._total, drawings)
        elif not self._is_placed:
            order.lag = max(order.lag, self._drawn)
            yield self._placed(self.at + self._drawn, self._again[-1])
        self._done, self._again = self._drawn, []

    def passes(self, at: int, metrics: Mapping[str, float], drawn: int = 0) -> None:
        """Take note of drawings up to a count, the last ones at this count, that were read without this bar."""
        self.at, self._last_new, self._own, self._again, self._drawn, self._done = at, at, None, [], drawn, drawn
        self._order.shown = metrics

    def _take_again(self, shown: S) -> None:
        self._drawn += 1
        self._changes += shown.metrics != self._order.shown
        if self._drawn <= MAX_REDRAWS:
            self._again.append(shown)
        if self._order.shows_first is None and self._changes >= MIN_BATCHES_AT_COUNT:
            self._order.shows_first, self._own = True, self._first
        if not self._order.shows_first or self.at >= self._total:
            self._own = shown

    def _leave(self, at: int, *, is_carried: bool) -> Iterator[Placed[S]]:
        """Yield what was drawn at the last count.

        What is carried was shown last at this count: tqdm drew it as it counted.
        """
        order, counted = self._order, at - self.at
        self._learn(counted)
        if not order.shows_first:
            if self._own is not None and not self._is_old():
                self._held.append(self._placed(self.at, self._own))
                is_known = order.interval < math.inf or not self._may_be_old()
                if is_known or not is_carried or len(self._held) > MAX_REDRAWS:
                    yield from self._held
                    self._held.clear()
            return
        if self._own is not None:
            if self._is_carried and order.is_dense and _fits(self._drawn + 1, counted) > _fits(self._drawn, counted):
                self._again.insert(0, self._own)  # the first drawing is of the next batch, which shows the same numbers
                self._drawn += 1
            yield self._placed(self.at, self._own)
        if is_carried and not _fits(self._drawn, counted):
            self._again = self._distinct()
            self._drawn = self._done + len(self._again)
        if _fits(self._drawn, counted) and (is_carried or counted == 1):
            order.drawings = self._drawn // counted
            yield from self._spread(at, order.drawings)
            return
        order.is_dense = order.is_dense and self._drawn >= counted
        order.lag = max(order.lag, math.ceil(counted / max(1, self._drawn)))
        if self._drawn == 1 and self._again:
            yield self._placed(at, self._again[0])

    def _learn(self, counted: int) -> None:
        """Learn the order of the loop from how many drawings there were until so many batches were counted."""
        order = self._order
        if order.shows_first is not None:
            return
        order.counts += 1
        order.are_single = order.are_single and not self._drawn and counted > 1
        order.lengths.add(counted)
        if order.counts >= MIN_COUNTS_OF_ORDER:
            order.shows_first = False
            # Drawn as time passes alone, it may be drawn before the metrics of its batch are set.
            order.lag = int(order.are_single and len(order.lengths) > 1)

    def _distinct(self) -> list[S]:
        """Return the drawings at this count that differ from the one before: `tqdm.write` draws the bar once more."""
        before = [self._own, *self._again]
        return [shown for shown, last in zip(self._again, before, strict=False) if shown.metrics != _metrics_of(last)]

    def _is_old(self) -> bool:
        """Say whether this count shows nothing but what was set at one before, where metrics are set seldom."""
        return self._may_be_old() and self.at - self._last_new < self._order.interval < math.inf

    def _may_be_old(self) -> bool:
        """Say whether this count shows nothing but what was shown before."""
        return not self._order.shows_first and not self._drawn and self._is_carried

    def _spread(self, until: int, drawings: int) -> Iterator[Placed[S]]:
        """Yield the last drawing of each batch up to a count, where each batch has as many."""
        for number, shown in enumerate(self._again, start=self._done + 1):
            if number % drawings == 0 and self.at + number // drawings <= until:
                yield self._placed(self.at + number // drawings, shown)

    def _placed(self, at: int, shown: S) -> Placed[S]:
        self._is_placed = True
        return Placed(at, shown)


def _metrics_of(shown: Shown | None) -> Mapping[str, float] | None:
    return None if shown is None else shown.metrics


def _fits(drawn: int, counted: int) -> bool:
    """Say whether each of the batches that were counted can have drawn as often."""
    return 0 < drawn <= MAX_REDRAWS and drawn % counted == 0
