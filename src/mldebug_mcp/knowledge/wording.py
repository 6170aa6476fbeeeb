"""A question as people type it, in the words that entries use, and which causes it is about."""

from __future__ import annotations

import difflib
import json
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import float32, int8
    from numpy.typing import NDArray

# The field's ways to say the same thing: what people write in a question → the tags that entries are filed under.
#
# `concepts.jsonl` holds a concept per line: `said`, patterns over the question in lower case, and `tags`: topics and
# situations of quotes, ids of symptoms, causes and menus. `against` are ids of causes that are told of in the same
# words, and of which the question says the contrary.


CONCEPTS_FILE = "concepts.jsonl"


@dataclass(frozen=True, slots=True)
class Concept:
    """A thing that people ask about."""

    pattern: re.Pattern[str]
    tags: tuple[str, ...]
    against: tuple[str, ...] = ()


@lru_cache(maxsize=1)
def concepts() -> tuple[Concept, ...]:
    """Return the concepts in file order."""
    lines = (Path(__file__).parent / CONCEPTS_FILE).read_text(encoding="utf-8").splitlines()
    rows = map(json.loads, lines)
    return tuple(
        Concept(_concepts_pattern(row["said"]), tuple(row["tags"]), tuple(row.get("against", ()))) for row in rows
    )


def _concepts_pattern(phrases: list[str]) -> re.Pattern[str]:
    """Return a pattern that begins with a word, so that `hang` is not found in `change`."""
    return re.compile(rf"(?<![^\W_])(?:un|re|non-?|pre|mis)?(?:{'|'.join(phrases)})")


DOMAINS = {
    "rl": re.compile(
        r"\brl\b|rlhf|reward|policy|agent|\bppo\b|grpo|dapo|rollout|critic|episode|entropy|exploration|advantage|\bkl\b"
    ),
    "vision": re.compile(
        r"image|pixel|box|cnn|resnet|\bvit\b|unet|yolo|detect|segment|miou|\bmap\b|vision|background|augment|conv|batch-?norm|backbone"
    ),
    "diffusion": re.compile(
        r"diffusion|denois|ddpm|sdxl|stable diffusion|timestep|\bema\b|\bvae\b|dreambooth|samples?\b|blurry|latent"
    ),
    "vlm": re.compile(r"vision[- ]language|\bvlm\b|projector|image tokens?|llava|ignores? the image"),
}
"""Domains that an entry has to be asked for, with the words that ask for them."""

STACK = re.compile(
    r"\bvllm|\blora|qlora|\bpeft|\btrl\b|axolotl|unsloth|deepspeed|\bfsdp|megatron|nccl|lightning|keras|\bjax|flash|ollama"
    r"|bitsandbytes|\bgrpo|\bdpo\b|\bppo\b|fp8|fp16|bf16|torch\.compile|\bddp\b|mmdet|sdxl|dreambooth|llava|batch-?norm"
)
"""Words that name a stack: with one of them the specific entries come first, without one the general ones."""

_STOPPED = """
a about actually after again all also always am an and another any anybody anyone anything are as ask at away back
basically be because been being best better bit but by call called came can cannot cant come comes could dear did didn
didnt do does doesn doesnt doing don done dont each either else etc even ever every everything find for from get gets
getting give gives go goes going gone good got great had happen happened happening happens has have having he hello
help here hey hi how however i if im in instead into is isn isnt it its ive just keep keeps kind know let like look
looking looks lot lots made make makes making many may maybe me mean means might more most much must my need needed
needs no nope not nothing now of off ok okay on one only or other our out over people per percent perhaps please ppl
put puts quite rather really right said same say says see seem seems seen should since so some somebody someone
something sometimes still such sure take tell than thank thanks that the their them then there these they thing things
think this those though to too tried tries try trying up us use used user using usually versus very vs want wants was
wasn way we well went were weren what whats when where whether which while who whole why will with without won wont work
worried would yeah yes yet you your
aber alle als am an auch auf aus bei beim bin bitte das dass dem den der des die dies diese doch durch ein eine einem
einen einer er erkenne es für ganz gibt habe haben hat ich ihr im immer in ist kann kein keine man mein meine mich mir
mit nach nicht noch nur ob oder ohne schon sein seine sich sie sind so soll sollte trotz trotzdem um und uns vom von
vor war warum was weil wenn werden wie wieder wieso wir wird wo woran wurde zu zum zur über
"""
STOPWORDS = frozenset(_STOPPED.split())
"""Words that say nothing on what is asked."""

_NAMED_THINGS = """
albert alexnet alpaca bart bert bloom cifar coco colab cuda deberta deepseek densenet detr distilbert efficientnet
electra falcon flux geforce gemma gpt imagenet inception internlm kaggle llama llava mamba maskrcnn mistral mixtral
mnist mobilenet nvidia olmo opt palm phi qwen resnet resnext retinanet roberta rtx rwkv segformer squad swin titan tpu
unet vgg vicuna vit whisper xception yolo
"""
NAMES = frozenset(_NAMED_THINGS.split())
"""Names of models, data sets and hardware: where no entry speaks of them they are no words of another field."""


# A question as people type it → the same in the words that entries use.
#
# `wording.jsonl` holds what people say instead, one meaning per line: `said`, patterns over the question in lower case,
# and `means`, English words that stand in entries; abbreviations, slang, German and Chinese. Words that no entry knows
# but that nearly equal one that some entry knows are taken for misspelt.


WORDING_FILE = "wording.jsonl"

SHORTEST_MISSPELT = 6
"""In letters: shorter words are too near to too many others."""
LIKENESS = 0.83
"""Of difflib: one letter in six wrong, doubled, left out or swapped with its neighbour."""
_HAN = r"[\u3400-\u9fff]"
_WORDING_WORD = re.compile(r"[^\W\d_]+")
_CAMEL = re.compile(r"(?<=[a-z]{3})(?=[A-Z][a-z]{2})|(?<=[a-z])(?=Of[A-Z])|(?<=[a-z]Of)(?=[A-Z])")
"""Between the words of an identifier such as OutOfMemoryError; not in names such as PyTorch."""


@dataclass(frozen=True, slots=True)
class Wording:
    """A way to say something."""

    pattern: re.Pattern[str]
    means: str


@lru_cache(maxsize=1)
def wordings() -> tuple[Wording, ...]:
    """Return the wordings in file order: longer ones stand before those they hold."""
    lines = (Path(__file__).parent / WORDING_FILE).read_text(encoding="utf-8").splitlines()
    return tuple(Wording(_pattern(row["said"]), f" {row['means']} ") for row in map(json.loads, lines))


def _pattern(beginnings: list[str]) -> re.Pattern[str]:
    """Return a pattern for words that begin so; Chinese is written without spaces, so that it may stand anywhere."""
    if re.search(_HAN, beginnings[0]):
        return re.compile("|".join(beginnings))
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(beginnings)})[^\W\d_]*")


def reworded(question: str) -> str:
    """Return a question in lower case and in the words that entries use."""
    text = unicodedata.normalize("NFKC", question).replace("\u2019", "'")
    text = _CAMEL.sub(" ", text).lower()
    text = re.sub(rf"(?<={_HAN})(?=[a-z0-9])|(?<=[a-z0-9])(?={_HAN})", " ", text)
    for wording in wordings():
        text = wording.pattern.sub(wording.means, text)
    return " ".join(text.split())


def spelt(question: str, known: Collection[str]) -> str:
    """Return a question with its misspelt words as entries spell them.

    Args:
        question: In lower case.
        known: All words of all entries.
    """
    by_letter = _by_first_letter(frozenset(known))

    def put_right(match: re.Match[str]) -> str:
        word = match[0]
        if len(word) < SHORTEST_MISSPELT or word in known or word in STOPWORDS or word in NAMES:
            return word
        near = [text for text in by_letter.get(word[0], ()) if abs(len(text) - len(word)) <= 2]
        return next(iter(difflib.get_close_matches(word, near, n=1, cutoff=LIKENESS)), word)

    return _WORDING_WORD.sub(put_right, question)


@lru_cache(maxsize=1)
def _by_first_letter(known: frozenset[str]) -> dict[str, list[str]]:
    letters: dict[str, list[str]] = {}
    for word in sorted(known - STOPWORDS):
        letters.setdefault(word[0], []).append(word)
    return letters


# Which causes a question is about, learnt from phrases and questions whose causes are known.
#
# `learnt.npz` holds a linear model (a softmax over the causes, and classes for what leads to none and for questions of
# other fields): how much each word, each tag that the question names, each pair of words that stand near each other and
# each piece of a word speaks for each cause. `python -m benchmarks.search.learn` fits it anew.


LEARNT_FILE = "learnt.npz"
MAX_WORDS_APART = 3
"""Words at most so far from each other are a pair (fitted on half of the questions of benchmarks/search)."""
ALONE = "."
"""What a feature begins with that is a word as it was put."""
NEXT = "_"
"""What a feature begins with that is two such words in a row."""
PIECE = "~"
"""What a feature begins with that is a piece of a word."""
PIECES = (4, 5)
"""Characters of a piece (fitted as above)."""
_LEARNT_WORD = re.compile(r"(?<!\d)[^\W\d_]+")
"""A word, but no unit of a number."""
OTHER = ""
"""The class of questions of other fields."""
NO_CAUSE = "*"
"""The class of what is known here and leads to no cause, such as some errors."""


def features(words: Sequence[str], tags: Sequence[str], question: str, put: str) -> Iterator[str]:
    """Yield what the model knows a question by.

    Args:
        words: The stems of its words that say something, in their order.
        tags: The tags that it names.
        question: The question in the words that entries use: its small words tell `all the same` from `not the same`.
        put: The question as it was put: the pieces of its words bring together those of one root, of languages that are
            alike, and misspelt ones.
    """
    yield from words
    yield from (f"#{tag}" for tag in tags)
    for place, word in enumerate(words):
        yield from (" ".join(sorted((word, near))) for near in words[place + 1 : place + 1 + MAX_WORDS_APART])
    each = _letters(question)
    yield from (f"{ALONE}{word}" for word in each)
    yield from (f"{NEXT}{letter} {other}" for letter, other in pairwise(each))
    for word in _letters(put):
        whole = f"<{word}>"
        for length in PIECES if len(word) >= min(PIECES) else ():
            yield from (f"{PIECE}{whole[start : start + length]}" for start in range(len(whole) - length + 1))


def _letters(text: str) -> list[str]:
    """Return the words of a text without its numbers, and without names of models and the like."""
    found = _LEARNT_WORD.findall(unicodedata.normalize("NFKC", text).lower())
    return [word for word in found if word not in NAMES]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a question is about.

    Args:
        likely: The probability of each cause.
        evidence: How much its words support a cause more than for a question of another field.
    """

    likely: Mapping[str, float]
    evidence: float


@dataclass(frozen=True, slots=True)
class Learnt:
    """The model. It is only read, so threads may share it."""

    causes: tuple[str, ...]
    rows: Mapping[str, int]
    weights: NDArray[int8]
    scale: NDArray[float32]
    rarity: NDArray[float32]
    bias: NDArray[float32]

    def read(self, words: Sequence[str], tags: Sequence[str], question: str, put: str) -> Reading:
        """Return what a question is about: how likely each cause is, and how much supports it being of this field.

        Args:
            words: As for `features`, and so are the others.
            tags: As there.
            question: As there.
            put: As there.
        """
        import numpy as np

        known = sorted({self.rows[feature] for feature in features(words, tags, question, put) if feature in self.rows})
        if not known:
            return Reading({}, 0.0)
        rarity = self.rarity[known]
        speaks = (rarity * self.scale[known]) @ self.weights[known].astype(np.float32)
        scores = speaks / np.linalg.norm(rarity) + self.bias
        shares = np.exp(scores - scores.max())
        by_cause = zip(self.causes, (shares / shares.sum()).tolist(), strict=True)
        likely = {cause: share for cause, share in by_cause if cause not in (OTHER, NO_CAUSE)}
        other = self.causes.index(OTHER) if OTHER in self.causes else None
        return Reading(likely, float(speaks.max() - (0.0 if other is None else speaks[other])))


@lru_cache(maxsize=1)
def learnt() -> Learnt:
    """Load the model."""
    import numpy as np

    with np.load(Path(__file__).parent / LEARNT_FILE, allow_pickle=False) as held:
        names, causes = (bytes(held[name]).decode().split("\n") for name in ("features", "causes"))
        rows = {name: row for row, name in enumerate(names)}
        return Learnt(tuple(causes), rows, held["weights"], held["scale"], held["rarity"], held["bias"])
