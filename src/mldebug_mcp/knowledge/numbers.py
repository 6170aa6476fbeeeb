"""Numbers that mean something: the loss of a uniform guess, and the bounds of number formats and of clipped logarithms.

A loss is recognised by its formula, so that 2.302, 2.3026 and 2.303 are all the logarithm of ten.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

CLASSES = (*range(2, 21), 26, 37, 50, 100, 101, 128, 200, 256, 365, 500, 512, 1000, 1024, 10_000, 21_841)
"""Numbers of classes, and batch sizes of contrastive losses, that are usual. Chosen: of others, logarithms lie too near
to each other to be recognised."""
VOCABULARIES = (30_522, 32_000, 32_768, 50_257, 50_304, 65_536, 100_352, 128_256, 151_936, 256_000)
"""Tokens of usual tokenizers. Source: the configurations of BERT, Llama 2, GPT-2, Llama 3, Qwen and Gemma."""
SHORT = (2, 10, 1000)
"""Classes whose loss is recognised with one digit after the point. Chosen: others are not told apart by one."""
AT_CHANCE = ("loss_at_chance", "no_signal", "params_not_training", "lr_too_low", "loss_stuck_near_ln_c")
AT_START = ("init_loss", "wrong_initial_loss", "initial_loss_high", "bad_init")
OF_PAIRS = ("no_preference_signal", "dpo_margin_flat", "dpo_collapse")
BOUNDS = {
    87.3365: (
        "the negative logarithm of the smallest normal float32, where a softmax has a zero",
        "loss_at_clip",
        "lr_too_high",
        "bad_init",
    ),
    16.118: ("the negative logarithm of 1e-7, where Keras clips a probability", "loss_at_clip", "lr_too_high"),
    18.4207: ("the negative logarithm of 1e-8, where some losses clip a probability", "loss_at_clip"),
    65504.0: ("the largest number of fp16", "fp16_overflow"),
}
"""What a number is, and the symptom or cause that it speaks for. Source: IEEE 754, and the defaults of Keras."""
_NUMBER = re.compile(r"(?<![\w.])\d{1,5}(?:\.\d{1,8})?(?![\w.%]|\.\d)")
_STANDS = re.compile(
    r"stuck|stay|stand|constant|not (?:move|change|decrease|go)|n.?t (?:move|change|decrease|go)|around"
)
_PAIRS = re.compile(r"\bdpo\b|preference|reward model|margin|chosen|\bkto\b|\borpo\b")


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a number in a question means.

    Args:
        number: As it is written.
        is_: What it is, in words.
        tags: What entries on it are filed under.
    """

    number: str
    is_: str
    tags: tuple[str, ...]


def meanings(question: str) -> Iterator[Meaning]:
    """Yield what the numbers of a question in lower case mean, where they mean something."""
    for match in _NUMBER.finditer(question):
        meaning = _bound(match[0]) or _logarithm(match[0], question)
        if meaning is not None:
            yield meaning


def _bound(number: str) -> Meaning | None:
    digits = len(number.partition(".")[2])
    for value, (is_, *tags) in BOUNDS.items():
        if abs(float(number) - value) < 10.0**-digits and (digits > 1 or value == float(number)):
            return Meaning(number, is_, tuple(tags))
    return None


def _logarithm(number: str, question: str) -> Meaning | None:
    """Return that a number is the loss of a uniform guess: rounded or cut off behind its last digit."""
    digits = len(number.partition(".")[2])
    known = (*CLASSES, *VOCABULARIES) if digits > 1 else SHORT if digits and "loss" in question else ()
    unit = 10.0**-digits
    count = next((one for one in known if -unit / 2 <= math.log(one) - float(number) < unit), None)
    if count is None:
        return None
    is_ = f"ln {count}, the cross entropy of a uniform guess among {count}"
    if count == 2 and _PAIRS.search(question):
        return Meaning(number, f"{is_}: of chosen and rejected, nothing is told apart", OF_PAIRS)
    stands = _STANDS.search(question) is not None
    return Meaning(number, is_, AT_START if count in VOCABULARIES and not stands else AT_CHANCE)
