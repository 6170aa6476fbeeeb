"""Does a line speak of training or of evaluation? By a word at its beginning, in a part of its own, or in a heading."""

from __future__ import annotations

import re
from typing import NamedTuple

_TRAINING = r"train(?:ing)?"
_EVALUATION = r"valid(?:ation|ate)?|val|eval(?:uation|uate)?|test(?:ing)?|dev|cv"
_WHOLE = r"(?:set|results?|metrics?|phase)"
"""What such a word may stand before without meaning anything else."""

_WORD = re.compile(rf"{_TRAINING}|(?P<eval>{_EVALUATION})", re.IGNORECASE)
_BEGINNING = re.compile(rf"[\W\d]*(?:{_EVALUATION})(?:\s+{_WHOLE})?(?=[\s:|\-(\[\]]|$)", re.IGNORECASE)
_PART = re.compile(rf"\|\s*+(?:{_EVALUATION})(?: on [\w' ]{{1,40}}| set)?\s*+\|", re.IGNORECASE)
"""A part of the line that only names the phase: fairseq's "| epoch 001 | valid on 'valid' subset | loss 3.2"."""
_EVALUATING = re.compile(
    rf"\bevaluating (?:val|test|eval)\w*:|\b(?:{_EVALUATION})\s+epoch\b|^\W{{3,9}}evaluating\b", re.IGNORECASE
)
"""... the last of them a heading in stars: DeepSpeed-Chat's "***** Evaluating perplexity, Epoch 1/16 *****"."""
_ON_DATA = re.compile(
    rf"[^:=]{{1,60}}\bon (?:the )?(?:held[- ]?out|unseen|{_EVALUATION}) (?:data(?:set)?|set|split|part|examples)\s?:",
    re.IGNORECASE,
)
"""A sentence that says on which data: "After epoch 1 on held-out data: swd is 0.8"."""
_STARRED = re.compile(r"\s*\*\s")
"""ImageNet's example closes an evaluation with " * Acc@1 ..."."""
_HEADING = re.compile(
    rf"[\W_]*(?:{_TRAINING}|(?P<eval>{_EVALUATION}))(?: (?:{_WHOLE}|errors?|loss(?:es)?|performance)){{0,2}}[\W_]*",
    re.IGNORECASE,
)
_TURN = re.compile(
    rf"(?<![\w./-])(?:{_TRAINING}|(?P<eval>{_EVALUATION}))"
    rf"(?: {_WHOLE})?(?:\s*:\s*\(?|\s*\|\s*|\s+-+\s+|\s*\(|[\])]\s*:?\s*)"
    r"(?!n/?an?\b|inf\b|none\b)(?=[a-z])",
    re.IGNORECASE,
)
"""Where a line turns to training or evaluation: "Train: loss 1.7, acc 0.6 | Val: loss 1.9, acc 0.5"."""


class Turn(NamedTuple):
    """A place in a line from which on it speaks of training, or of evaluation."""

    at: int
    evaluation: bool


def names_phase(word: str) -> bool:
    """Say whether a word names a phase: "train", "val", "test"."""
    return _WORD.fullmatch(word) is not None


def names_evaluation(word: str) -> bool:
    """Say whether a word names an evaluation: "val", "validation", "test"."""
    found = _WORD.fullmatch(word)
    return found is not None and found["eval"] is not None


def is_of_evaluation(line: str) -> bool:
    """Say whether a line begins with the name of an evaluation or has it in a part of its own."""
    return (
        _BEGINNING.match(line) is not None
        or _STARRED.match(line) is not None
        or _is_under_way(line)
        or (" on " in line and _ON_DATA.match(line) is not None)
        or ("|" in line and _PART.search(line) is not None)
    )


def _is_under_way(line: str) -> bool:
    low = line.lower()
    return ("epoch" in low or "evaluating" in low) and _EVALUATING.search(line) is not None


def heads_evaluation(line: str) -> bool | None:
    """Say of a line that is nothing but a heading ("Test Error:", "Training:") whether an evaluation follows."""
    match = _HEADING.fullmatch(line)
    return None if match is None else match["eval"] is not None


def turns_in(line: str) -> list[Turn]:
    """Return where a line turns from one phase to another, in order."""
    return [Turn(turn.end(), turn["eval"] is not None) for turn in _TURN.finditer(line)]
