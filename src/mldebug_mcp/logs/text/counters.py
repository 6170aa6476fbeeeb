"""How far the run is: steps, epochs, episodes and batches as they are printed, with and without their totals."""

from __future__ import annotations

import re
from dataclasses import field

from mldebug_mcp.core.lazy import dataclass, regex
from mldebug_mcp.logs.line_prefixes import is_of_evaluation, names_evaluation
from mldebug_mcp.logs.names.metrics import is_known
from mldebug_mcp.logs.numbers import whole_number

_WHOLE = r"\d[\d,]*(?:\.0+(?!\d)|\.\d+(?=[KM](?!\w)))?"
_STEP_WORD = (
    r"(?:global[_ ]?steps?|learning iteration|iterations?|iters?|steps?|batch(?:es)?|updates?|num_updates|total_steps?"
    r"|timesteps?|(?:total_time|cumulative_)steps|rollout|itr|it|rounds?|frames?|шаг|ステップ|스텝|步数|up\.|t(?=\s*[=:]\s*\d+\s*/))"
)
_SPLIT = r"(?:\s?\((?P<phase>(?:train|val|test|eval)\w*)\))?"  # MMEngine: "Iter(val)"; "Batch (t)" is a time
_SINCE = r"(?:(?<=\[)\d+-(?=\d+\]))?"  # MXNet: "Batch [20-40]"
_OF = r"(?:\s*+(?:/|(?:out )?of)\s*+(?P<total>\d[\d,]*))?"

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
        r"\(?(?:mini)?[ _-]?(?:step|batch|iter(?:ation)?)s?\s*+[:=#]?\s*+\[?\s*+"
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
_FRACTION = regex(r"\d\s*+(?:/|of\b)\s*+\d")
"""Stands in each line with the batch inside an epoch."""
_OF_LEARNING = r"(?:loss|acc|mse|mae|nll|ppl|perplexity|bce|elbo|auc|psnr|dice|iou|\bf1|\blr\b)"
_EPOCH = regex(
    r"(?<![\w/])(?<!over )(?<!per )"
    rf"(?:epochs?|num_epochs?|ep(?=\s{{0,4}}=?\s?\d{{1,4}}(?:\.\d{{1,6}}|/\d{{1,4}})?[\s,:](?!.{{0,300}}(?:reward|return|score))(?:.{{1,300}}{_OF_LEARNING}|\s?iter\b|\s?it\b))|epch|epoche|[eé]poca|[eé]poque|эпоха|エポック|에포크|轮次|ep\.)"
    r"(?:\s?\((?P<phase>\w+)\))?\s*+(?:[:=#]|\.{3}|-(?=\s?\d{1,6}\s?/))?\s*+[\[(]?\s*+"
    r"(?P<epoch>\d+(?:\.\d+)?)(?![\w%-])(?:\s*+(?:/|\(?(?:out )?of)\s*+(?P<epochs>\d+)(?:\.\d+)?)?\s*+\]?",
    re.IGNORECASE,
)
_EPISODE = regex(
    r"(?<![\w/])(?:episode|i_episode|episodio|эпизод|エピソード|에피소드|回合|ep\.?(?=.{1,200}(?:reward|return|score)))\s*+[:=#]?\s*+[\[(]?\s*+"
    r"(?P<episode>\d[\d,]*)(?![\w%-]|\.\d)(?:\s*+(?:/|(?:out )?of)\s*+(?P<episodes>\d[\d,]*))?\s*+[\])]?",
    re.IGNORECASE,
)
_CHINESE = regex(r"第\s*(?:(?P<epoch>\d+)\s*(?:轮|个?epoch)|(?P<episode>\d+)\s*回合|(?P<step>\d+)\s*步)", re.IGNORECASE)
_STEP_WORDS = regex(
    r"(?<![\w/])(?<!per )(?<!fps )(?<!episode )(?:(?P<before>val(?:id(?:ation)?)?|eval(?:uation)?|test)[ _])?"
    rf"{_STEP_WORD}"
    rf"{_SPLIT}\s*+(?:[:=#]|\.{{3}})?\s*+[\[(]?\s*+{_SINCE}(?P<step>{_WHOLE})"
    rf"(?P<unit>[KM](?!\w))?(?![\w%-]|\.\d){_OF}(?:\s*+\(\s*+[\d.]+\s*+%\))?\s*+[\])]?",
    re.IGNORECASE,
)
_PLURAL = regex(r"(?:steps|iters|iterations|batches|updates|epochs|frames)\b", re.IGNORECASE)
_BARE = regex(
    r"\s*+(?:(?:(?P<colon>\d{1,9})\s*+[:|]"
    r"|\[\s{0,8}(?P<bracket>\d{1,9}|\d{1,3}(?:,\d{3}){1,3})(?:/(?P<brackets>\d{1,9}))?\])\s++"
    r"(?=[\d.]+,|[A-Za-z]|\d+ [a-z])"
    r"|#(?P<hash>\d{1,9})[:|]?\s++(?=[A-Za-z])"
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
    rf"(?<![^\s\])>|:])(?<!,\s)(?:(?<![^\W\d]\s)|{_BEHIND_PHASE})(?:[\[(<#@]\s{{0,8}})?(?P<lone>\d{{1,9}})(?:\s?/\s?(?P<lones>\d{{1,9}}))?(?:it\b)?\s{{0,8}}"
    r"[\])>]?[-:,|;]{0,2}(?=\s|$)(?!\s{1,4}[A-Z]\w{0,60}\()",
    re.IGNORECASE,
)
"""A whole number that stands alone: "[40/1000] - loss: 0.2", "(40) loss 0.2", "<40>", "#40", "40it", "40 | 0.2".

Behind a word it is the word's, "mse (2), iou_norm: 0.75", if that names no phase: "eval [40] loss: 0.2"."""
_OWN_COUNTER = regex(
    r"(?:n_?iter|tr_step|upd|[iknstu])\s?[=:]?\s?(?P<step>\d{1,9})(?=[-:,|;]{0,2}(?:\s|$))", re.IGNORECASE
)
"""A letter that counts, in front of all values: "i=40, loss=0.2", "u0040 loss=0.2"."""
_BEHIND_EPOCH = regex(
    r"^[^\d=]{0,60}\|\s{1,4}[,:|;-]?\s{0,4}"
    r"(?:\[\s{0,8}(?P<step>\d{1,9})\s?\]|(?:n_?iter|[iknt])\s?[=:#]\s?(?P<number>\d{1,9}))"
    r"(?=[-:,|;]{0,2}\s{1,4}(?:[-:,|;]\s{1,4})?[^\W\d])",
    re.IGNORECASE,
)
"""A number behind an epoch, whose place a separator took: "epoch 3 [40] loss: 0.2", "epoch: 3 i: 40 loss"."""
_BEFORE_EPISODE = regex(r"\s*+(?P<step>\d{1,12})\s?/\s?(?P<total>\d{1,12})\s*+:\s++(?=episode\b)", re.IGNORECASE)
_EPOCH_COMMA_BATCH = regex(r"\s*+[\[(](?P<epoch>\d{1,6}),\s++(?P<step>\d{1,9})[\])](?=:?\s\D*loss)", re.IGNORECASE)
_WENET = regex(r"\s*+(?:(?P<phase>CV)|TRAIN)\b(?: \|[^|]{0,40}\|)? Batch (?P<epoch>\d{1,6})/(?P<inner>\d{1,9})(?=\s)")
"""WeNet: "TRAIN Batch 4/203700 loss 12.6", of the epoch and the batch inside it."""
_OF_RUN = regex(r"\s*+(?P<step>\d{1,9})/(?P<total>\d{1,9})(?=\s\(epoch\b|\s?[:|]\s|\s[A-Za-z_][\w/]{0,40}=)")
_GLOBAL = regex(rf"(?<![\w/])global[_ ]?(?:step|iter)s?\s*+[:=#]?\s*+(?P<step>{_WHOLE})(?![\w%-]|\.\d)", re.IGNORECASE)
_ESPNET = regex(r"\s*+(?P<epoch>\d+)epoch(?::(?P<phase>\w+):\d+-(?P<step>\d+)batch:| results:)")
_SHORT = regex(r"\s*+s:(?P<step>\d+)(?=\s(?:trl|tel|eval))")
_TIMM = regex(r"train: \d+ \[", re.IGNORECASE)
_TORCHTUNE = regex(r"\s*+(?P<epoch>\d+)\|(?P<step>\d+)\|(?=\w)")
_LOGGABLE = regex(r"(?:\s*+[\w :|]{0,80}?\s)?(?P<step>\d{1,9})it/(?P<total>\d{1,9})it(?=\srate:)")
"""tqdm-loggable: "Progress on:train 10it/240it rate:2.1it/s"."""
_COUNT_BEFORE_WORD = regex(
    r"\s*+[^\w\s]{0,8}\s*+(?P<step>\d{1,9})\s?(?:its?|iters?|iterations?|steps?|updates?)\s?[:|]\s++(?=[A-Za-z])",
    re.IGNORECASE,
)
"""A count before its word: ">> 100 it: loss=0.2"."""
_PHASE_AND_EPOCH = regex(
    r"\s*+(?P<phase>train|val|test)\w*\s\((?P<epoch>\d{1,6})/(?P<epochs>\d{1,6})\)(?=\s[A-Za-z])", re.IGNORECASE
)
"""Catalyst: "valid (3/24) loss: 1.2"."""
_AT_BEGINNING = (
    _LOGGABLE, _PHASE_AND_EPOCH, _TORCHTUNE, _SHORT, _ESPNET, _WENET, _OF_RUN, _BEFORE_EPISODE, _EPOCH_COMMA_BATCH,
    _COUNT_BEFORE_WORD,
)  # fmt: skip
_OF_COUNTER = regex(r"(?<=\w)\s++(?:after|at|in|for|of|on)(?: the)?(?: end of)?(?: the)?\s*+$", re.IGNORECASE)
_VALUE = regex(r"\s*+(?:[:=]|(?:is|was)\b:?)\s*+(?=[-+]?\.?\d|nan\b|[-+]?inf\b)", re.IGNORECASE)
_NO_WORD = regex(r"[^A-Za-z_ ]|^ +| +$")
_UNITS = {"k": 1e3, "m": 1e6}
_TOTALS = (("epoch", "epochs"), ("episode", "episodes"), ("step", "total"), ("step", "brackets"), ("step", "lones"))
"""Counters, and the groups that hold how many there are of them."""


_BARE_COUNTERS = ("colon", "bracket", "hash", "number", "lone")
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


def find_counters(line: str) -> Counters:
    """Find the counters of a line."""
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
    """Return a number that counts by its place: in front of all values, or behind the epoch of training."""
    if not found.values:
        return _without_a_word(found)
    is_of_training = not (found.batch or names_evaluation(found.phase or ""))
    return _BEHIND_EPOCH.search(found.rest) if is_of_training and found.values.keys() == {"epoch"} else None


def _without_a_word(found: Counters) -> re.Match[str] | None:
    """Return the number that counts in a line without any word for a counter: it stands in front of its values.

    One with a total is surer than others, and the last of several is nearest to what was measured there.
    """
    line, bare = found.rest, _BARE.match(found.rest)
    value = _FIRST_VALUE.search(line)
    if value is None or found.batch is not None:
        return bare
    if match := _OWN_COUNTER.match(line.lstrip()) or _OWN_COUNTER.match(line, value.start()):
        return match
    lone = list(_LONE.finditer(line, 0, value.start()))
    if is_of_evaluation(line):  # "Test: EMA [0/5]" is of a part of it
        lone = [match for match in lone if not match["lones"] or _stands_behind_phase(line, match.start())]
    if not any(is_known(name[0].rstrip(" =:")) for name in _FIRST_VALUE.finditer(line)):
        lone = [match for match in lone if not match[0].strip().isdigit()]  # a list of layers: "12 conv 64"
    return next((match for match in lone if match["lones"]), lone[-1] if lone else bare)


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
        found.values["step"] = float(groups["step"].replace(",", "")) * (_UNITS[unit.lower()] if unit else 1.0)
        found.rounded = unit is not None
        found.total = _integer(groups["total"]) if groups.get("total") else None
        found.step_name = found.step_name or _NO_WORD.sub("", match[0]).lower()
    found.weak = found.weak or match.re in (_BARE, _LONE, _OWN_COUNTER) or _PLURAL.search(match[0]) is not None
    found.phase = found.phase or phase or None
    if _TIMM.match(match[0]):
        found.first_epoch = 0.0
    found.rest = _without(found.rest, match)


def _take_inner(found: Counters, batch: str, *, evaluation: bool) -> None:
    """Take the batch of an epoch of unknown length; of an evaluation it is under way: another line tells the mean."""
    if evaluation:
        found.batch = (0, whole_number(batch) + 2)
    else:
        found.values["step"] = float(batch)


def _without(line: str, match: re.Match[str]) -> str:
    """Return a line without a counter."""
    before, after = line[: match.start()], line[match.end() :]
    of, value = _OF_COUNTER.search(before), _VALUE.match(after)
    if of and value:  # "Loss after epoch 3: 0.52"
        return f"{before[: of.start()]}: {after[value.end() :]}"
    return f"{before} | {after}"  # a separator in its place keeps what stood on both sides apart


def _integer(text: str) -> int:
    return int(float(text.replace(",", "")))
