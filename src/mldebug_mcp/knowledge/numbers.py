"""Numbers that mean something: the loss of a uniform guess, and the bounds of number formats and of clipped logarithms.

A loss is recognised by its formula, so that 2.302, 2.3026 and 2.303 are all the logarithm of ten.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator
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
OF_SOFTMAX = ("double_softmax",)
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
DATA_SETS = {"cifar-?10\\b": 10, "mnist": 10, "cifar-?100": 100, "imagenet": 1000}
"""Classes of data sets that are named instead of their number. Source: their own pages."""
MOST_ABOVE = 30.0
"""Times the loss of a uniform guess, up to which a first loss is told to be above it (chosen: what is more is no cross
entropy)."""
_LEAST_ABOVE = 1.05
_HOW_MANY = r"(\d{1,3}(?:[,_]\d{3})+|\d{1,6})(k)?"
_OF_WHAT = r"class|categor|way\b|label|vocab|words|negatives?|candidates?|logits|outputs"
_COUNTED = re.compile(
    rf"(?<![\w.]){_HOW_MANY}[ -](?:different |possible |token )?(?:{_OF_WHAT})"
    rf"|(?:vocab(?:ulary)?|batch|classes)(?: size)?(?: of| is| ?[=:])? ?{_HOW_MANY}(?![\w.]|\.\d)"
)
_FIRST = re.compile(r"first|initial|start|begin|step 0|fresh|untrained|at init")
_LOSS_OF = re.compile(r"(?:loss|entropy)[^\d]{0,30}$")
_FLOOR = re.compile(r"softmax|under|below|lower|converge|plateau|floor|bottom")
_IN_WORDS = {"two": 2, "three": 3, "four": 4, "five": 5, "ten": 10, "hundred": 100, "thousand": 1000}
_NUMBER = re.compile(r"(?<![\w.,])\d{1,5}(?:\.\d{1,8})?(?![\w.%]|[.,]\d)")
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
    named = frozenset(counts(question))
    for match in _NUMBER.finditer(question):
        number = match[0]
        meaning = _bound(number) or _floor(number, question, named) or _logarithm(number, question, named)
        meaning = meaning or _above(match, question, named)
        if meaning is not None:
            yield meaning


def counts(question: str) -> Iterator[int]:
    """Yield the numbers of classes, tokens or candidates that a question in lower case names."""
    for match in _COUNTED.finditer(question):
        digits, thousands = (match[1], match[2]) if match[1] else (match[3], match[4])
        count = int(re.sub("[,_]", "", digits))
        if count:
            yield count * 1000 if thousands else count
    yield from (
        count for word, count in _IN_WORDS.items() if re.search(rf"\b{word}[ -](?:class|way|categor)", question)
    )
    yield from (count for name, count in DATA_SETS.items() if re.search(name, question))


def _bound(number: str) -> Meaning | None:
    digits = len(number.partition(".")[2])
    for value, (is_, *tags) in BOUNDS.items():
        if abs(float(number) - value) < 10.0**-digits and (digits > 1 or value == float(number)):
            return Meaning(number, is_, tuple(tags))
    return None


def _floor(number: str, question: str, named: Collection[int]) -> Meaning | None:
    """Return that a number is the least cross entropy of scores that went through a softmax already."""
    known = sorted({count for count in (*named, *SHORT, 100) if count > 1}) if _FLOOR.search(question) else ()
    for count in known if len(number.partition(".")[2]) > 1 else ():
        if _equals(number, math.log(1 + (count - 1) / math.e)):
            is_ = f"ln(1 + {count - 1}/e), the least cross entropy of {count} classes where a softmax is applied twice"
            return Meaning(number, is_, OF_SOFTMAX)
    return None


def _logarithm(number: str, question: str, named: Collection[int]) -> Meaning | None:
    """Return that a number is the loss of a uniform guess: rounded or cut off behind its last digit."""
    digits = len(number.partition(".")[2])
    usual = (*CLASSES, *VOCABULARIES) if digits > 1 else SHORT if digits and "loss" in question else ()
    known = (*(sorted(one for one in named if one > 1) if digits else ()), *usual)
    count = next((one for one in known if _equals(number, math.log(one))), None)
    if count is None:
        return None
    is_ = f"ln {count}, the cross entropy of a uniform guess among {count}"
    if count == 2 and _PAIRS.search(question):
        return Meaning(number, f"{is_}: of chosen and rejected, nothing is told apart", OF_PAIRS)
    stands = _STANDS.search(question) is not None
    return Meaning(number, is_, AT_START if count in VOCABULARIES and not stands else AT_CHANCE)


def _above(match: re.Match[str], question: str, named: Collection[int]) -> Meaning | None:
    """Return that a first loss is above that of a uniform guess among what the question counts."""
    count, number = max(named, default=1), match[0]
    guess = math.log(count) * _LEAST_ABOVE
    if not guess < float(number) < guess * MOST_ABOVE:
        return None
    if not (_FIRST.search(question) and _LOSS_OF.search(question[: match.start()])):
        return None
    return Meaning(number, f"above ln {count}, the cross entropy of a uniform guess among {count}", AT_START)


def _equals(number: str, value: float) -> bool:
    """Tell whether a number is a value: rounded or cut off behind its last digit."""
    unit = 10.0 ** -len(number.partition(".")[2])
    return -unit / 2 <= value - float(number) < unit
