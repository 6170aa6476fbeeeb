"""The frameworks whose printed lines are known by sight: it says only whose they are; all are read alike."""

from __future__ import annotations

import re

from mldebug_mcp.logs.builder import RunBuilder

_LINES: tuple[tuple[str, str], ...] = (
    (
        "megatron",
        r"iteration\s+\d+\s*/\s*\d+\s*\|.*elapsed time per iteration|validation loss at (?:the end of )?iteration",
    ),
    ("nanogpt", r"^\s*iter \d+: loss [\d.naif]+, time|^\s*step \d+: train loss .*val loss"),
    ("nanochat", r"^\s*step \d+(?:/\d+)? \([\d.]+%\) \| (?:train )?loss: .*\| (?:grad norm: .*\| )?lrm: "),
    ("modded-nanogpt", r"\bstep:\d+/\d+ (?:train_loss|val_loss|train_time):"),
    ("llm.c", r"^\s*step\s+\d+/\d+ \| (?:train )?loss [\d.naif]+.*\| norm |^\s*s:\d+ (?:trl|tel|eval):"),
    ("litgpt", r"\biter \d+ (?:\| )?step \d+.*loss train:"),
    ("torchtitan", r"\bstep:\s*\d+\s+loss:\s*[\d.naif]+.*\btps:"),
    ("torchtune", r"^\s*\d+\|\d+\|Loss:|^Step \d+ \| loss:[\d.naif]+ "),
    ("verl", r"\bstep:\d+ - [\w/.()-]+:[\d.naif-]+ - "),
    ("fairseq", r"\| (?:train|train_inner|valid) \| (?:\{|epoch \d+)|\| epoch \d+ \| (?:valid|loss)"),
    ("mmengine", r"\b(?:Epoch|Iter)\(train\)\s*\["),
    ("mmcv", r"\bEpoch \[\d+\]\[\d+/\d+\]\s+lr:|\bIter \[\d+/\d+\]\s+lr:"),
    ("detectron2", r"\biter: \d+\s+total_loss:"),
    ("timm", r"^\s*(?:Train|Test): ?\d* \[\s*\d+/\d+.*Loss:"),
    ("lerobot", r"\bstep:\S+ smpl:\S+ ep:"),
    ("deepspeed", r"\bstep=\d+, skipped=\d+, lr=\["),
    ("keras", r"^\s*\d+/\d+ (?:\[[=>.]{5,}\]|[━─]{5,}|- \d+m?s\b.* - \w*loss: )"),
    ("lightning", r"\bEpoch \d+:.{0,300}\[[^\]]{0,300}\bv_num[=:]"),
    ("transformers", r"\{'(?:eval_|train_)?(?:loss|runtime)': .*'epoch': "),
    ("fairseq", r"\[train(?:_inner)?\]\[INFO\] - \{.*\"(?:num_updates|wps)\""),
    ("vits", r"\[(?:[\d.naif-]+, ){3,12}\d+, [\d.e-]+\]\s*$"),
    ("darknet", r"^\s*\d+: [\d.naif-]+, [\d.naif-]+ avg"),
)
_PATTERNS = tuple((name, re.compile(pattern)) for name, pattern in _LINES)
_LOOKED_AT = 2000
"""Characters of a line that are looked at: on a longer one the patterns, which try every place, would take minutes."""


def framework_of(line: str) -> str | None:
    """Return the framework that printed a line, or None."""
    line = line[:_LOOKED_AT]
    return next((name for name, pattern in _PATTERNS if pattern.search(line)), None)


_CONVENTIONS = {
    "fairseq": "fairseq logs its losses in bits (base 2): a nat is 1.44 bits",
    "vits": "lists without names are read as VITS prints them (guessed): losses, step, learning rate",
}
"""What is to be said of a framework's numbers."""


def name_framework(builder: RunBuilder, line: str) -> None:
    """Add the framework that a line is of to the formats of a run, and what is to be said of its numbers."""
    name = framework_of(line)
    if name is not None and name not in builder.formats:
        builder.formats.append(name)
        if name in _CONVENTIONS:
            builder.note(_CONVENTIONS[name])
