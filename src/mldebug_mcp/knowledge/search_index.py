"""An index in memory over all that can be found: a question is put in the words of entries, and looked up."""

from __future__ import annotations

import difflib
import json
import math
import re
import sqlite3
import threading
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy import float32, float64, int8, int64
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
MIN_SPELLING_LIKENESS = 0.83
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
        return next(iter(difflib.get_close_matches(word, near, n=1, cutoff=MIN_SPELLING_LIKENESS)), word)

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
ALONE_MARK = "."
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
    yield from (f"{ALONE_MARK}{word}" for word in each)
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

    with np.load(Path(__file__).parent / LEARNT_FILE, allow_pickle=False) as arrays:
        names, causes = (bytes(arrays[name]).decode().split("\n") for name in ("features", "causes"))
        rows = {name: row for row, name in enumerate(names)}
        return Learnt(tuple(causes), rows, arrays["weights"], arrays["scale"], arrays["rarity"], arrays["bias"])


# How people ask for an entry, or tell of what it is about, in words that the entry itself does not use.
#
# `asked.jsonl` holds a line for each thing asked about: `about`, tags that entries are filed under or their own ids,
# and `asked`, phrases. They are searched beside the words of the entry and never shown.


FILE = "asked.jsonl"


@lru_cache(maxsize=1)
def asked() -> Mapping[str, tuple[str, ...]]:
    """Return the phrases for each tag or id."""
    phrases: dict[str, list[str]] = {}
    for line in (Path(__file__).parent / FILE).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        for tag in row["about"]:
            phrases.setdefault(tag, []).extend(row["asked"])
    return {tag: tuple(texts) for tag, texts in phrases.items()}


def asked_for(tags: Iterable[str]) -> tuple[str, ...]:
    """Return the phrases for any of some tags and ids, each once."""
    return tuple(dict.fromkeys(phrase for tag in tags for phrase in asked().get(tag, ())))


# Numbers that mean something: the loss of a uniform guess, and the bounds of number formats and of clipped logarithms.
#
# A loss is recognised by its formula, so that 2.302, 2.3026 and 2.303 are all the logarithm of ten.


CLASSES = (*range(2, 21), 26, 37, 50, 100, 101, 128, 200, 256, 365, 500, 512, 1000, 1024, 10_000, 21_841)
"""Numbers of classes, and batch sizes of contrastive losses, that are usual. Chosen: of others, logarithms lie too near
to each other to be recognised."""
VOCABULARIES = (30_522, 32_000, 32_768, 50_257, 50_304, 65_536, 100_352, 128_256, 151_936, 256_000)
"""Tokens of usual tokenizers. Source: the configurations of BERT, Llama 2, GPT-2, Llama 3, Qwen and Gemma."""
ROUND_CLASS_COUNTS = (2, 10, 1000)
"""Classes whose loss is recognised with one digit after the point. Chosen: one digit does not distinguish others."""
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
"""What a number is, and the symptom or cause that it supports. Source: IEEE 754, and the defaults of Keras."""
DATA_SETS = {"cifar-?10\\b": 10, "mnist": 10, "cifar-?100": 100, "imagenet": 1000}
"""Classes of data sets that are named instead of their number. Source: their own pages."""
MOST_ABOVE = 30.0
"""Times the loss of a uniform guess, up to which a first loss counts as above it (chosen: what is more is not a cross
entropy)."""
_LEAST_ABOVE = 1.05
"""Times the loss of a guess from which on a loss lies above it."""
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
_NUMBER_IN_QUESTION = re.compile(r"(?<![\w.,])\d{1,5}(?:\.\d{1,8})?(?![\w.%]|[.,]\d)")
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
    for match in _NUMBER_IN_QUESTION.finditer(question):
        number = match[0]
        meaning = _bound(number) or _floor(number, question, named) or _logarithm(number, question, named)
        meaning = meaning or _above(match, question, named)
        if meaning is not None:
            yield meaning


def counts(question: str) -> Iterator[int]:
    """Yield the numbers of classes, tokens or candidates that a question in lower case names, above none."""
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
    known = (
        sorted({count for count in (*named, *ROUND_CLASS_COUNTS, 100) if count > 1}) if _FLOOR.search(question) else ()
    )
    for count in known if len(number.partition(".")[2]) > 1 else ():
        if _equals(number, math.log(1 + (count - 1) / math.e)):
            is_ = f"ln(1 + {count - 1}/e), the least cross entropy of {count} classes where a softmax is applied twice"
            return Meaning(number, is_, OF_SOFTMAX)
    return None


def _logarithm(number: str, question: str, named: Collection[int]) -> Meaning | None:
    """Return that a number is the loss of a uniform guess: rounded or cut off behind its last digit."""
    digits = len(number.partition(".")[2])
    usual = (*CLASSES, *VOCABULARIES) if digits > 1 else ROUND_CLASS_COUNTS if digits and "loss" in question else ()
    known = (*(sorted(candidate for candidate in named if candidate > 1) if digits else ()), *usual)
    count = next((candidate for candidate in known if _equals(number, math.log(candidate))), None)
    if count is None:
        return None
    is_ = f"ln {count}, the cross entropy of a uniform guess among {count}"
    if count == 2 and _PAIRS.search(question):
        return Meaning(number, f"{is_}: chosen and rejected are not distinguished", OF_PAIRS)
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


# What can be searched, and what a search finds.


@dataclass(frozen=True, slots=True)
class Document:
    """Something that can be found.

    Args:
        kind: quote, cause, symptom, menu or error.
        id: Its id.
        summary: A sentence that an answer shows.
        text: All its text.
        tags: What it is filed under.
        domains: Domains it belongs to; empty for all.
        generality: 1 holds for almost any run, 5 for one setting of one tool.
        source: Who wrote it.
        asked: How people ask for it, besides what `asked.jsonl` has on its tags.
        leads_to: Ids of the causes that it supports.
    """

    kind: str
    id: str
    summary: str
    text: str
    tags: tuple[str, ...]
    domains: tuple[str, ...] = ()
    generality: int = 3
    source: str = ""
    asked: tuple[str, ...] = ()
    leads_to: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """A document with its score: higher is better."""

    document: Document
    score: float

    @property
    def key(self) -> str:
        """Its kind and id."""
        return f"{self.document.kind}:{self.document.id}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found, the words of the question that nothing here knows, where they make up much of it, and numbers."""

    found: list[Found]
    unknown: list[str]
    numbers: tuple[Meaning, ...] = ()


# BM25 over texts of several columns, in memory: SQLite's FTS5 cuts words and stems them, and NumPy adds up.
#
# What each word counts in each text does not depend on the question, so it is computed once; a question then adds a few
# arrays, in a tenth of the time that FTS5 takes to rank. The scores are those of FTS5. Source: SQLite, FTS5, "The
# bm25() function" (k1 1.2, b 0.75; a word in more than half of the texts counts next to nothing; a column's weight
# multiplies how often the word stands in it).


K1 = 1.2
"""How soon further occurrences of a word count less. Source: the usual value of BM25."""
BM25_LENGTH_WEIGHT = 0.75
"""How much the length of a document counts. Source: the usual value of BM25."""
LEAST_IDF = 1e-6
"""Rarity of a word that most documents have, above zero so that it still counts."""
MOST_HELD = 5_000
"""Stems that are remembered of words in no text (chosen: beyond, a question's words are stemmed anew)."""
_TOKENIZE = "tokenize='porter unicode61'"
_POINT = re.compile(r"(?<=\d)\.(?=\d)")


class Stems:
    """The stem of each word, as FTS5 makes it. Threads may share it."""

    def __init__(self, words: Iterable[str]) -> None:
        """Stem the words of the texts at once; others are stemmed as they are asked for."""
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        _create(self._connection, 1)
        known = sorted(words)
        self._connection.executemany("INSERT INTO texts VALUES (?)", ((_one_number(word),) for word in known))
        found: dict[int, list[str]] = defaultdict(list)
        for row, term in self._connection.execute("SELECT doc, term FROM terms"):
            found[row].append(term)
        self._stems = {word: _single_stem(found[row]) for row, word in enumerate(known, start=1)}
        self._most = len(known) + MOST_HELD

    def of(self, word: str) -> str:
        """Return the stem of a word; nothing for anything but a single word."""
        stem = self._stems.get(word)
        if stem is None:
            with self._lock:
                self._connection.execute("DELETE FROM texts")
                self._connection.execute("INSERT INTO texts VALUES (?)", (_one_number(word),))
                stem = _single_stem([term for (term,) in self._connection.execute("SELECT term FROM terms")])
                if len(self._stems) < self._most:
                    self._stems[word] = stem
        return stem


class Bm25:
    """Texts, each of the same columns. It is only read after it was built, so threads may share it."""

    def __init__(self, rows: Sequence[Sequence[str]], weights: Sequence[float], stems: Stems) -> None:
        """Count the words of texts; `weights` has what a word counts in each column."""
        import numpy as np

        connection = sqlite3.connect(":memory:")
        _create(connection, len(weights))
        places = ", ".join("?" * len(weights))
        statement = f"INSERT INTO texts VALUES ({places})"  # noqa: S608  (question marks)
        connection.executemany(statement, ([_one_number(text) for text in row] for row in rows))
        counted: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        lengths = np.zeros(len(rows))
        by_column = {f"c{place}": weight for place, weight in enumerate(weights)}
        for term, row, column in connection.execute("SELECT term, doc, col FROM terms"):
            counted[term][row - 1] += by_column[column]
            lengths[row - 1] += 1
        connection.close()
        self._stems = stems
        self._size = len(rows)
        saturation = (
            K1 * (1 - BM25_LENGTH_WEIGHT + BM25_LENGTH_WEIGHT * lengths / max(lengths.mean(), 1e-9))
            if rows
            else lengths
        )
        self._held: dict[str, tuple[NDArray[int64], NDArray[float64]]] = {}
        for term, often in counted.items():
            counts_of_words = np.fromiter(often, dtype=np.int64)
            times = np.fromiter(often.values(), dtype=np.float64)
            rarity = max(math.log((len(rows) - len(counts_of_words) + 0.5) / (len(counts_of_words) + 0.5)), LEAST_IDF)
            self._held[term] = counts_of_words, rarity * times * (K1 + 1) / (times + saturation[counts_of_words])

    def holders(self, word: str) -> NDArray[int64]:
        """Return the places of the texts that hold a word in any form."""
        import numpy as np

        postings = self._held.get(self._stems.of(word))
        return np.empty(0, dtype=np.int64) if postings is None else postings[0]

    def ranked(self, words: Iterable[str], most: int) -> list[tuple[int, float]]:
        """Return the places of the texts that hold any of some words with their scores, best first; `most` at most."""
        import numpy as np

        scores = np.zeros(self._size)
        for stem in map(self._stems.of, words):
            if stem in self._held:
                postings, counts = self._held[stem]
                scores[postings] += counts
        return [(place, score) for place, score in highest(scores, most) if score > 0]


def highest(scores: NDArray[Any], most: int) -> list[tuple[int, float]]:
    """Return the places of the highest scores with them, highest first; equal ones in their order."""
    import numpy as np

    places = np.sort(np.argpartition(scores, -most)[-most:]) if most < len(scores) else np.arange(len(scores))
    places = places[np.argsort(-scores[places], kind="stable")]
    return list(zip(places.tolist(), scores[places].tolist(), strict=True))


def _create(connection: sqlite3.Connection, columns: int) -> None:
    names = ", ".join(f"c{place}" for place in range(columns))
    connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5({names}, {_TOKENIZE})")
    connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(texts, 'instance')")


def _one_number(text: str) -> str:
    """Return a text in which a number with a point is one word."""
    return _POINT.sub("d", text)


def _single_stem(stems: list[str]) -> str:
    return stems[0] if len(stems) == 1 else ""


# An index in memory over all that can be found: causes are ranked by what was learnt, other entries by their words.


GENERALITY_STEP = 0.06
"""Share of the score per level of generality, fitted on the first half of benchmarks/search."""
OTHER_DOMAIN = 0.55
"""What is left of the score of an entry of a special domain that nobody asked for (fitted as above)."""
COVERED_COUNTS = 0.2
"""A score is multiplied by this and the share of the question that an entry covers (fitted as above)."""
MIN_COVERED_SHARE = 0.12
"""Below this share of a question, an entry does not answer it (fitted as above, and on questions of other fields)."""
COVERED_BY_WORDS = 0.5
"""The same where the question names nothing that the field has a word for."""
NAMED_ENTRY_FACTOR = 1.35
"""Times the score of a symptom or an error that the question names (fitted on half of the plain questions)."""
NAMEABLE = ("symptom", "error")
REPEATED_SOURCE_WEIGHT = 0.85
"""What each further quote of one source counts of the one before (chosen: an answer is of several)."""
MAX_RANKED_DOCUMENTS = 120
"""Documents that are looked at, best first (measured: more changes no answer of benchmarks/search)."""
LEADING_CAUSE_FACTOR = 1.5
"""Times the score of the best other entry that the likeliest cause has."""
EQUAL_CAUSE_FACTOR = 1.0
"""The same of a cause that is not likelier than the others."""
LEADING_CAUSES = 3
"""Causes that lead so, the likeliest ones (chosen: an answer's first five hold other entries too)."""
FURTHER_CAUSE_FACTOR = 0.5
"""The same for the causes that follow (chosen)."""
MAX_FOUND_CAUSES = 8
"""Causes that are found at most (chosen: the others are hardly likely)."""
WORDS_COUNT = 0.3
"""What the words of a cause's entry count next to how likely it is (fitted on half of the plain questions)."""
SCORE_WITHOUT_OTHERS = 10.0
"""Score of the best other entry where there is none (chosen: that of a middling one)."""
MIN_FIELD_EVIDENCE = 24.0
"""What has to support a cause for a question to be of this field (fitted on files that were left out: of the
questions of `askers.jsonl` one in two hundred has less, of those of other fields five in six)."""
_COUNT = re.compile(r"\d+[a-z]?")
"""A number, with a unit or without: 100, 4k, 30B, 5s. No entry is about one, except with a point in it."""
UNKNOWN = 1 / 3
"""From this share of a question on, its unknown words are named: chosen, so that a stray word is not."""
_WEIGHTS = (2.0, 1.0, 1.5, 2.0, 0.4, 1.0)
"""Of the columns: title, text, words of the tags, tags as single tokens, source, how people ask. Fitted as above."""


class Index:
    """Documents, searchable. It is only read after it was built, one query at a time, so threads may share it."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self.documents: Mapping[str, Document] = {f"{document.kind}:{document.id}": document for document in documents}
        self.words = frozenset(re.findall(r"[^\W\d_]+", " ".join(map(_full_text, self.documents.values())).lower()))
        tags = {tag for document in self.documents.values() for tag in document.tags}
        stems = Stems({*self.words, *map(_token, tags)})
        self._stems = stems
        self._keys = tuple(self.documents)
        self._texts = Bm25([_row(document) for document in self.documents.values()], _WEIGHTS, stems)
        self._held: dict[str, frozenset[str]] = {}

    def find(self, query: str, shown: Collection[str] = ()) -> Answer:
        """Return the documents that answer a question, best first; equal scores in the order of their keys.

        Args:
            query: The question.
            shown: Keys of documents that are known to be meant, such as an error whose message the question holds.
        """
        question = spelt(reworded(query), self.words)
        question_words = _words(question)
        words = [word for word in question_words if self._holders(word) or not _is_name(word)]
        numbers = tuple(meanings(question))
        named = _tags(question, numbers)
        tags = {tag: naming for tag, naming in named.items() if self._holders(_token(tag))}
        reading = learnt().read(self._stemmed(question_words), list(named), question, query)
        covered, unknown = self._coverage(words, tags)
        if not shown and reading.evidence < MIN_FIELD_EVIDENCE:
            return Answer([], unknown)
        least = MIN_COVERED_SHARE if tags else COVERED_BY_WORDS
        wanted = {name for name, pattern in DOMAINS.items() if pattern.search(question)}
        specific = STACK.search(question) is not None
        found = []
        for place, rank in self._texts.ranked((*words, *map(_token, tags)), MAX_RANKED_DOCUMENTS):
            key = self._keys[place]
            share = covered.get(key, 0.0)
            if share >= least or key in shown:
                document = self.documents[key]
                fitness = _fitness(document, wanted, specific=specific) * (COVERED_COUNTS + share)
                fitness *= NAMED_ENTRY_FACTOR if _is_named(document, words, tags) else 1.0
                found.append(Found(document, rank * fitness))
        with_causes = self._with_causes(found, reading.likely, shown)
        contrary = _contrary(question)
        answers = _ordered(_varied(_ordered(cause for cause in with_causes if cause.key not in contrary)))
        return Answer(answers, unknown, numbers)

    def known_by(self, query: str) -> tuple[list[str], list[str], str, str]:
        """Return what `learnt` knows a question by."""
        question = spelt(reworded(query), self.words)
        return self._stemmed(_words(question)), list(_tags(question, meanings(question))), question, query

    def _stemmed(self, words: Iterable[str]) -> list[str]:
        return [self._stems.of(word) or word for word in words]

    def _with_causes(
        self, found: Iterable[Found], likely: Mapping[str, float], shown: Collection[str]
    ) -> Iterator[Found]:
        """Yield what was found, the causes by how likely they are: the likeliest first, and with it what is shown.

        Messages of errors that the question does not hold come behind them: most are of something else.
        """
        others = [hit for hit in found if hit.document.kind != "cause"]
        most = max(likely.values(), default=1.0)
        scores = {f"cause:{cause}": share / most for cause, share in likely.items()}
        by_words = {hit.key: hit.score for hit in found if hit.document.kind == "cause"}
        highest = max(by_words.values(), default=1.0)
        for key in scores:
            scores[key] += WORDS_COUNT * by_words.get(key, 0.0) / highest
        best = max((other.score for other in others if other.document.kind != "error"), default=SCORE_WITHOUT_OTHERS)
        ranked = sorted((-score, key) for key, score in scores.items() if key in self.documents)[:MAX_FOUND_CAUSES]
        for place, (score, key) in enumerate(ranked):
            share = score / ranked[0][0]
            counts = (
                EQUAL_CAUSE_FACTOR + (LEADING_CAUSE_FACTOR - EQUAL_CAUSE_FACTOR) * share
                if place < LEADING_CAUSES
                else FURTHER_CAUSE_FACTOR * share
            )
            yield Found(self.documents[key], best * counts)
        most_like = max((other.score for other in others if other.document.kind == "error"), default=best)
        lowered = min(1.0, EQUAL_CAUSE_FACTOR * best / max(most_like, 1e-9))
        for other in others:
            if other.key in shown:
                yield Found(other.document, LEADING_CAUSE_FACTOR * best)
            else:
                yield Found(other.document, lowered * other.score) if other.document.kind == "error" else other

    def _holders(self, term: str) -> frozenset[str]:
        found = self._held.get(term)
        if found is None:
            found = frozenset(self._keys[place] for place in self._texts.holders(term))
            if len(self._held) < MOST_HELD:
                self._held[term] = found
        return found

    def _coverage(self, words: list[str], tags: Mapping[str, set[str]]) -> tuple[dict[str, float], list[str]]:
        """Return which share of the question each document is about, rare words counting more, and what is unknown.

        That is the unknown words, if they make up much of the question.
        """
        weights = dict.fromkeys(words, 0.0)
        shares: dict[str, float] = {}
        unknown = []
        for word in words:
            named = [self._holders(_token(tag)) for tag, naming in tags.items() if word in naming]
            holders = self._holders(word)
            weights[word] = math.log(1 + len(self.documents) / (1 + len(holders)))
            about = holders.union(*named)
            if not about:
                unknown.append(word)
            for key in about:
                shares[key] = shares.get(key, 0.0) + weights[word]
        whole = sum(weights.values()) or 1.0
        missing = sum(weights[word] for word in unknown) / whole
        about_each = {key: share / whole for key, share in shares.items()}
        return about_each, unknown if missing >= UNKNOWN else []


def _ordered(found: Iterable[Found]) -> list[Found]:
    return sorted(found, key=lambda hit: (-hit.score, hit.document.kind, hit.document.id))


def _varied(found: Iterable[Found]) -> Iterator[Found]:
    """Yield what was found, further quotes of one source with less than their score."""
    by_source: Counter[str] = Counter()
    for hit in found:
        source = hit.document.source
        yield Found(hit.document, hit.score * REPEATED_SOURCE_WEIGHT ** by_source[source]) if source else hit
        by_source[source] += 1


def _is_named(document: Document, words: list[str], tags: Mapping[str, set[str]]) -> bool:
    own = document.id.lower().split("_")
    return document.kind in NAMEABLE and (document.id in tags or set(own) <= set(words))


def _row(document: Document) -> tuple[str, str, str, str, str, str]:
    return (
        document.id.replace("_", " "),
        document.text,
        " ".join(document.tags).replace("_", " "),
        " ".join(map(_token, document.tags)),
        document.source,
        _asked(document),
    )


def _asked(document: Document) -> str:
    return ". ".join((*asked_for((*document.tags, document.id)), *document.asked))


def _full_text(document: Document) -> str:
    tags = " ".join(document.tags).replace("_", " ")
    return f"{document.id.replace('_', ' ')} {document.text} {tags} {_asked(document)}"


def _token(tag: str) -> str:
    """Return a tag as one token that no word of a text equals."""
    return "q" + tag.replace("_", "") + "q"


def _words(question: str) -> list[str]:
    found = re.findall(r"\d+\.\d+|[^\W_]+", question)
    return list(dict.fromkeys(word for word in found if word not in STOPWORDS and not _COUNT.fullmatch(word)))


def _is_name(word: str) -> bool:
    """Tell whether a word is a number or names a model, a data set or a device: those with a digit in them are many."""
    return word in NAMES or any(map(str.isdigit, word))


def _tags(question: str, numbers: Iterable[Meaning]) -> dict[str, set[str]]:
    """Return the tags that a question names, each with the words or numbers that name it."""
    tags: dict[str, set[str]] = {}
    for number in numbers:
        for tag in number.tags:
            tags.setdefault(tag, set()).update(_words(number.number))
    for concept in concepts():
        for match in concept.pattern.finditer(question):
            end = re.match(r"[^\W_]*", question[match.end() :])
            phrase = match[0] + (end[0] if end else "")
            for tag in concept.tags:
                tags.setdefault(tag, set()).update(_words(phrase))
    return tags


def _contrary(question: str) -> set[str]:
    """Return the keys of the causes that a question denies."""
    return {
        f"cause:{text}"
        for concept in concepts()
        if concept.against and concept.pattern.search(question)
        for text in concept.against
    }


def _fitness(document: Document, wanted: set[str], *, specific: bool) -> float:
    level = document.generality if specific else 6 - document.generality
    special = {name for name in document.domains if name in DOMAINS}
    asked_for = not special or "general" in document.domains or bool(special & wanted)
    return (1 + GENERALITY_STEP * level) * (1.0 if asked_for else OTHER_DOMAIN)
