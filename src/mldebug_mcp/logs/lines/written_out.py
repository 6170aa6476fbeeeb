"""Lines that give numbers by their place, or names in a way of their own: written out, so that all lines read alike."""

from __future__ import annotations

import re
from collections.abc import Callable

from mldebug_mcp.logs.numbers import NUMBER

_DARKNET = re.compile(r"^\s*(\d+): ([\d.naif-]+), ([\d.naif-]+) avg(?: loss)?, ([\d.]+) rate,", re.IGNORECASE)
_BEHIND = (
    r" (?:at|after|in|for) (?:the )?"
    r"(?P<counter>(?:(?:global|training)[ -])?(?:step|iteration|epoch|episode|update|batch|round) ?#?\d[\d,]*)"
)
_AT_COUNTER = re.compile(_BEHIND, re.IGNORECASE)
_AT = re.compile(
    rf"^\W*(?P<name>[a-z][\w /.-]{{0,60}}?)(?: \([^()\d]*\))?{_BEHIND}"
    r"(?:\s*[:=]\s*|,? (?:is|was) )(?=[-+.]?\d|nan|[-+]?inf)",
    re.IGNORECASE,
)
"""The value after the counter: "Cost after iteration 100: 0.69", "Training loss (for one batch) at step 0: 2.3"."""
_FLOWER = re.compile(r"\bfit progress: \((\d+), ([\d.e+-]+|nan|inf), ")
_ASIDE = re.compile(
    r"(?<=\w)(?: \((?![^()]{0,80}\b(?:train|val|valid|test|eval|dev))[^()=:]{0,40} [^()=:]{0,40}\)"
    r"| (?:over|of|in) (?:the )?(?:last )?\d+ (?:test |eval(?:uation)? |training )?(?:episodes|games))"
    r"(?=\s*[:=]\s*[-+.\d])",
    re.IGNORECASE,
)
"""What a metric's name says aside: "Avg Reward (last 10): 21.5"."""
_COUNTED = re.compile(
    r"^\s*((?:train(?:ing)?|valid(?:ation)?|val|test) loss) (\d+):? +(?=[-+]?\d+\.\d|nan\b|inf\b)", re.IGNORECASE
)
"""NVIDIA's Tacotron 2: "Train loss 7 5.797815 Grad Norm ...", "Validation loss 0: 37.061010"."""
_KALDI = re.compile(r"^.{0,200}verage objective function for '[\w-]+' for minibatches (\d+)-\d+ is ")
_LISTED = re.compile(rf"^\s*\[((?:{NUMBER}, ){{0,12}})(\d+), (\d(?:\.\d+)?(?:e-\d+)?)\]\s*$", re.IGNORECASE)
_VITS = ("loss_disc", "loss_gen", "loss_fm", "loss_mel", "loss_dur", "loss_kl")
_LENGTH = re.compile(r"\b1 epoch ~?= [\d.,]+ (?:batches|steps|iter\w*|updates)", re.IGNORECASE)
"""How long an epoch is: no counter."""

_QUOTED = re.compile(r"""(['"])([\w./@ -]{1,80})\1\s*(?:[:=]\s*['"]?(?=[-+.\dnNiI])|,\s*(?=[-+.]?\d))""")
"""PaddleDetection up to 2.0: "iter: 20, lr: 0.01, 'loss': '1.26'"; tuples: "('step', 20, 'loss', 1.26)"."""
_QUOTED_NUMBER = re.compile(rf"""(?<=\w=)(['"])({NUMBER})\1""", re.IGNORECASE)
"""Attributes as in XML: step="20" loss="1.26"."""
_TAGGED = re.compile(r" <[\w ]{1,40}>(?==)")
"""SageMaker: "train total_loss <loss>=1.26"."""
_BOTH = re.compile(
    rf"\(?\b(?P<train>train(?:ing)?)\s?/\s?(?P<eval>val(?:id(?:ation)?)?|test|eval|dev)\b\)?\s+"
    rf"(?P<name>[A-Za-z][\w ]{{0,30}}?)(?:\s*[:=]\s*|\s+)(?P<first>{NUMBER})\s?/\s?(?P<second>{NUMBER})",
    re.IGNORECASE,
)
"""Two phases and one name: "(train/val) loss: 1.26/1.34"."""
_AFTER = re.compile(
    r"^(?P<before>\W{0,8})after (?P<count>\d[\d,]*) (?P<unit>steps?|iterations?|updates?|epochs?|episodes?)\b",
    re.IGNORECASE,
)
"""The counter in a sentence: "After 20 steps the training loss is 1.26"."""
_FAILED = re.compile(r"\bLoss (?:is (?=-?(?:nan|inf)\b)|became infinite or (?=nan\b))", re.IGNORECASE)
"""torchvision, DETR: "Loss is nan, stopping training"; detectron2: "Loss became infinite or NaN at iteration=9!"."""


_BOLD = re.compile(rf"(?<=[=:])(\s?)\*\*({NUMBER})\*\*", re.IGNORECASE)
"""A value that the one who pasted the log marked."""
_THRESHOLDS = re.compile(r"(?<=[a-z])@\[?\.?(?:IoU=)?0?\.?50?:0?\.95\]?(?=\s*[:=|,]|\s+[\d.])", re.IGNORECASE)
"""The mean over thresholds from 0.5 to 0.95 holds a colon: "mAP@0.50:0.95: 0.31"."""
_AT_RANK = re.compile(r"(?<=[a-z1])\((?:k|n|top_?k?) ?= ?(\d{1,5})\)(?=\s*[:=])", re.IGNORECASE)
"""How far down a ranking is looked: "NDCG(k=20): 0.25"."""
_DURATION = re.compile(
    r"(?<=[=: ])(?:\d+ days?,? )?(?:\d+ hours?,? )?(?:\d+ minutes?,? )?(?:and )?\d+(?:\.\d+)? seconds?\b"
)
_PART_OF_DURATION = re.compile(r"(\d+(?:\.\d+)?) (day|hour|minute|second)")
_SECONDS_IN = {"day": 86_400.0, "hour": 3600.0, "minute": 60.0, "second": 1.0}


_LEADERS = re.compile(r"(?<=[\w)%]) ?\.{2,200}(?=\s?[:=])")
"""Dots that lead from a name to its value: "training loss.....: 3.7"."""
_TERSE = re.compile(
    r"\s*(?:(?P<phase>[VT])[ :]\s?)?(?=[EISBU])(?:E(?P<epoch>\d{1,6})(?:/\d{1,6})?[ ,:|]{1,3})?"
    r"(?:[ISBU](?P<step>\d{1,9})(?:/\d{1,9})?[ ,:|]{1,3})?(?=[A-Za-z_][\w/.]{0,60}\s?=\s?[-+]?(?:\.?\d|nan\b|inf\b))"
)
"""Counters of one letter, glued to their number, before metrics: "E001 I00012 L=2.136", "V E001 I00012 L=2.0"."""
_TERSE_LOSS = re.compile(r"(?<!\S)L(?=\s?=)")


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
    return f"{sum(float(number) * _SECONDS_IN[unit] for number, unit in parts):g}s"


def _named(listed: re.Match[str]) -> str:
    """Name what VITS and its children print as a list: the losses, the step and the learning rate."""
    losses = listed[1].rstrip(", ").split(", ") if listed[1] else []
    names = _VITS if len(losses) == len(_VITS) else [f"loss_{number}" for number in range(1, len(losses) + 1)]
    named = "".join(f"{name}={value}, " for name, value in zip(names, losses, strict=True))
    return f"step {listed[2]}: {named}lr={listed[3]}"


_FORMS: tuple[tuple[str, re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    ("**", _BOLD, r"\1\2"),
    ("..", _LEADERS, ""),
    ("(", _AT_RANK, r"@\1"),
    ("@", _THRESHOLDS, "50-95"),
    (" second", _DURATION, _seconds),
    (">=", _TAGGED, ""),
    ("/", _BOTH, r"\g<train> \g<name>: \g<first>, \g<eval> \g<name>: \g<second>"),
    ("fter ", _AFTER, r"\g<before>\g<unit> \g<count>: "),
    (" avg", _DARKNET, r"\1: loss=\2, average_loss=\3, rate=\4,"),
)
"""What stands in each line of a form, its pattern, and what it is written out as."""


def written_out(line: str) -> str:
    """Return a line with plain names before its numbers; a line that has them comes back as it is."""
    line = _terse(line)
    for mark, form, meant in _FORMS:
        if mark in line:
            line = form.sub(meant, line)
    if "(" in line or "episodes" in line or "games" in line:
        line = _FLOWER.sub(r"round \1, eval_loss: \2, ", _ASIDE.sub("", line))
    if _AT_COUNTER.search(line):
        line = _AT.sub(r"\g<counter>: \g<name>: ", line)
    line = _COUNTED.sub(r"\1: step \2 | \1 = ", line)
    if "verage objective" in line:
        line = _KALDI.sub(r"step \1 | objf = ", line)
    if "1 " in line:
        line = _LENGTH.sub("", line)
    line = _LISTED.sub(_named, line)
    if "{" not in line and ("'" in line or '"' in line):
        line = _QUOTED.sub(r"\2: ", _QUOTED_NUMBER.sub(r"\2 ", line))
    return _FAILED.sub("loss=", line) if "loss " in line.lower() else line
