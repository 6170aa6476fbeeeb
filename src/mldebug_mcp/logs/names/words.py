"""A name of a metric → its words, each as the lexicon knows it, sorted by what they are for.

Accents, alphabets, symbols of mathematics and abbreviations with marks become plain words first.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import field
from functools import lru_cache

from mldebug_mcp.core.lazy import dataclass, regex
from mldebug_mcp.logs.names import lexicon

# How names are written: accents, alphabets, symbols of mathematics and abbreviations with marks → plain words.

_AT = regex(r"(?<=[a-z0-9])[_ -]at[_ -](?=\d)", re.IGNORECASE)
_OF_RANKS = {
    "r": "recall", "p": "precision", "h": "hit", "hr": "hit", "b": "bleu", "n": "ndcg", "f": "f1",
    "knn": "knn_accuracy",
}  # fmt: skip
_AT_RANK = regex(rf"(?<![^\W_])({'|'.join(sorted(_OF_RANKS, key=len, reverse=True))})(?=@\.?\d)", re.IGNORECASE)
"""What is measured over the first k: `R@10`, `hr@20`."""
_RANKED = regex(
    r"(?:recall|precision|hits?|ndcg|map|ap|mrr|acc\w*|top|pass|f1|hr|[rp])[_ -]at[_ -]\d",
    re.IGNORECASE,
    needs=("_at", "-at", " at"),
)
_BARS = regex(r"[|‖]+([^|‖]+)[|‖]+(2|_2|²)?", needs="|")
_IN_BARS = {
    **dict.fromkeys(("g", "grad", "grads", "gradient", "gradients", "∇", "∇l", "∇loss", "∇θ", "∇w", "dl"), "grad_norm"),
    **dict.fromkeys(("w", "θ", "theta", "params", "param", "weights", "p", "q"), "weight_norm"),
}
"""The norm of what, by the symbol between the bars."""
_PART_IN_BARS = regex(
    r"(?:‖|\|\|)(?!(?:upd|delta|diff|step|act|logit|hid|out|inp|state|err|resid|feat|emb|lat|adv|noise|pert)[a-z]*[‖|])"
    r"[A-Za-z][a-z0-9_.]{2,30}(?:‖|\|\|)"
)
"""The norm of a part of a model, by its name between double bars: ‖conv1‖. Of an output or an update it is none."""
WEIGHTS_SYMBOL = r"(?:w|θ|theta|params?|weights?)"
UPDATE_SYMBOL = (
    rf"(?:(?:(?:lr|eta|η|α)[*·.])?(?:u|upd|update)|(?:lr|eta|η|α)[*·.](?:g|grad|m)|(?:d|Δ|∆|δ|delta_?){WEIGHTS_SYMBOL}"
    rf"|{WEIGHTS_SYMBOL}(?:_?(?:t|new|now))?[-−–]{WEIGHTS_SYMBOL}_?(?:prev|old|last|before))"
)
"""How loops of one's own write the weights, and how far an update moves them: `lr*u`, `dw`, `w-w_prev`."""
_UPDATE = regex(
    rf"[|‖]*{UPDATE_SYMBOL}[|‖]*[/:][|‖]*{WEIGHTS_SYMBOL}[|‖]*|(?P<norm>[|‖]+{UPDATE_SYMBOL}[|‖]+|update_norm\(.{{1,20}}\))",
    re.IGNORECASE,
    needs=("/", ":", "|", "‖", "norm("),
)
_OF_PART = regex(
    r"(?=‖|\|\||∇)(?P<bars>‖|\|\|)?(?P<gradient>∇)?(?P<part>[^\W\d_][\w.]+)(?(bars)(?:‖|\|\|))", needs=("‖", "||", "∇")
)
"""The size of a part of a model or of its gradient, by signs alone: `‖head‖`, `∇head`. A norm may be of activations."""
_OF_PAIRS = regex(r"(?<![^\W_])(logp|logps|logprob|logprobs|rew|reward)_?([+-])$", re.IGNORECASE)
_AVERAGE_PRECISION = regex(r"average[_ ]?precision", re.IGNORECASE, needs="precision")
_LISTED = regex(r"(?<![^/])\d+\.(?=[A-Za-z])")
"""The number of an item before its name, as `2.Workers/6.Learning_rate` has it."""
_HELD_OUT = regex(r"(?<![^\W_])h/o(?![^\W_])", re.IGNORECASE)
_PIECES_OF_TEXT = frozenset({"char", "character", "token", "tokens", "byte", "symbol", "word"})
"""What the loss of a language model is a mean over."""


def plain(name: str) -> str:
    """Return a name with what signs in it mean written out: `|θ|` is weight_norm, `recall_at_10` recall@10."""
    if name.isalpha() and name.isascii():
        return name
    if (update := _UPDATE.fullmatch(name.strip())) is not None:
        return "update_norm" if update["norm"] else "update_ratio"
    if (symbol := _by_symbol(name.strip())) is not None:
        return symbol
    if _RANKED.search(name) is not None:
        name = _AT.sub("@", name)
    if "@" in name:
        name = _AT_RANK.sub(lambda match: _OF_RANKS[match[1].lower()], name)
    if name[-1] in "+-":
        name = _OF_PAIRS.sub(lambda match: f"{match[1]}_{'chosen' if match[2] == '+' else 'rejected'}", name)
    if name[0].isdecimal() or "/" in name:
        name = _HELD_OUT.sub("holdout", _LISTED.sub("", name))
    return _AVERAGE_PRECISION.sub("map", name)


def _by_symbol(name: str) -> str | None:
    """Return the size of what a name has between bars or behind a nabla, in words; None where it has neither."""
    bars = _BARS.fullmatch(name)
    known = _IN_BARS.get((bars[1] if bars else name if name[:1] == "∇" else "").strip().lower())
    if known is not None:
        return known
    part = _OF_PART.fullmatch(name)
    if part is None or not (part["bars"] or part["gradient"]):
        return name if bars else None
    if _PART_IN_BARS.fullmatch(name) is not None:
        return f"weight_norm/{part['part']}"
    return f"{part['part']} {'grad_norm' if part['gradient'] else 'norm'}"


def folded(text: str) -> str:
    """Return a text with Latin letters without their accents: `Época` is Epoca; other letters stay as they are."""
    if text.isascii():
        return text
    return "".join(map(_bare, unicodedata.normalize("NFC", text)))


def _bare(letter: str) -> str:
    base = unicodedata.normalize("NFD", letter)[0]
    return base if base.isascii() and base.isalpha() else letter


# A name of a metric → its words, each as the lexicon knows it, sorted by what they are for.

_SEGMENT = regex(r"[/:|]+|\.(?!\d)|(?<=[^\W\d])\.(?=\d)")
_CHUNK = regex(r"[^\W_]+|[%²]")
_HUMP = regex(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ALPHABETS = regex(r"[A-Za-z0-9]+|[^A-Za-z0-9]+")
_DIGITS = regex(r"(?<=\D)(?=\d)|(?<=\d)(?=\D)")
_VALUE_OF_LOSS = regex(r"(?<=loss)[_ -]?values?$", re.IGNORECASE)
_LEAST_GLUED = 3
"""Letters of a word that may be glued to others without a separator: `gradnorm`, `clipfrac`."""
_LONGEST_GLUED = 40
"""Letters of a word that is taken apart: no name glues more together, and each part costs a call."""
_SHORT_GLUED = frozenset({"ep", "kl", "lr"})

_FIRST_LOADER = ["data", "load", "index", "0"]
"""What Lightning adds to the names of all evaluations where there are several: the first stands for them."""

PHASE, STATISTIC, UNIT, NOTHING = "phase", "statistic", "unit", "nothing"


@dataclass(slots=True)
class Words:
    """The words of a name by what they are for.

    Args:
        base: What is measured, and of what, in the order of the name.
        leading: Those of them in the segments before the last one that has any.
        last: Those of that last one.
        phase: "train", "eval" or "".
        phases: How many more phases it names, which are other ones.
        phase_follows: Whether it stands behind what is measured: `loss_val`.
        statistic: "mean", "max", …, or "".
        unit_leads: Whether the unit stands before all that is measured.
        unit: As written, in lower case, or "".
        per_time: Whether something is counted per unit of time.
        numbers: Numbers in the name.
        extra: Words that say nothing of the role.
        sign: What values are multiplied by for what is maximised.
    """

    base: list[str] = field(default_factory=list)
    leading: list[str] = field(default_factory=list)
    last: list[str] = field(default_factory=list)
    phase: str = ""
    phase_follows: bool = False
    phases: int = 0
    statistic: str = ""
    unit: str = ""
    unit_leads: bool = False
    per_time: bool = False
    numbers: list[str] = field(default_factory=list)
    extra: int = 0
    sign: float = 1.0


def segments_of(name: str) -> list[list[str]]:
    """Return the words of each segment of a name that has any; a word that means several is those."""
    segments: list[list[str]] = []
    for part in _SEGMENT.split(name):
        if segments and segments[-1] == ["learner"]:
            segments.pop()  # RLlib: the name of the policy that it learns
        elif words := _words_of(part):
            segments.append(words)
    if segments[-1:] == [_FIRST_LOADER]:
        segments.pop()
    if len(segments) > 2 and segments[-1] == ["gpu"] and ["gpu"] in segments[:-1]:
        segments[-1].append("utilisation")  # Weights & Biases: `system.gpu.0.gpu`
    if len(segments) == 4 and segments[:2] == [["system"], ["gpu"]] and segments[-1] == ["memory"]:
        segments[-1].append("utilisation")  # ... and how busy its memory is: `system.gpu.0.memory`
    if segments and segments[-1][-1] == "per":
        segments[-1][-1] = "wer"  # the phone error rate of speech
    return segments


def sorted_out(segments: list[list[str]]) -> Words:
    """Sort the words of a name by what they are for."""
    words = Words()
    for number, segment in enumerate(segments):
        mine: list[str] = []
        for position, word in enumerate(segment):
            is_unit = _KINDS.get(word) == UNIT or (
                word in lexicon.SHORT_UNITS and _is_unit_here(segments, number, position)
            )
            if is_unit:
                words.unit_leads |= not (words.unit or words.base or mine)
                words.unit = words.unit or word
                if word in lexicon.SECONDS:
                    words.per_time |= is_per_time(segment, position, [*words.base, *mine])
            else:
                _sort(words, word, mine)
        if mine:
            words.leading += words.last
            words.last = mine
            words.base += mine
    if words.extra and any("nats" in segment for segment in segments) and _PIECES_OF_TEXT.issuperset(words.base):
        words.base = words.last = ["loss"]  # "nats", "held nats/char"
    return words


def _sort(words: Words, word: str, mine: list[str]) -> None:
    """Put a word that is not a unit to its like; `mine` are the base words of its segment so far."""
    kind = _KINDS.get(word)
    if kind == PHASE:
        if words.phase not in ("", word) and mine:
            words.phases += 1  # two in one segment are two names
        words.phase = "eval" if words.phase == "eval" else word
        words.phase_follows = not lexicon.SOFT.issuperset(mine)
    elif kind == STATISTIC:
        words.statistic = words.statistic or word
        words.extra += 1 if word in ("mean", "median") else 2  # of two, the smoother is the metric
    elif kind == NOTHING:
        words.extra += word != "per"
    elif word.isdecimal():
        if words.statistic != "last":  # over how many: `goal_rate_last20`
            words.numbers.append(word)
    elif word in lexicon.NEGATED:
        words.sign = -1.0
        mine.append("loss")
    else:
        mine.append(word)


def is_per_time(segment: list[str], position: int, base: list[str]) -> bool:
    """Say whether a unit of time is what something is counted by: "tokens per s", "tok/s"."""
    if segment[position - 1 : position] == ["per"]:
        return any(text in lexicon.RATES for text in base)
    if len(segment) == position + 1 == 2 and base == [segment[0]]:
        return base[0] in ("token", "tokens", "samples")  # `tok_s`, but `step_s`
    if base[:-1] == ["throughput"]:
        return base[-1] in lexicon.RATES
    return len(segment) == 1 and "time" not in base and base[-1:] != [] and base[-1] in lexicon.RATES


def _is_unit_here(segments: list[list[str]], number: int, position: int) -> bool:
    """Say whether a short word that is not the last one is a unit: of `timing_s/step`, "s/it", `s_per_step`."""
    segment = segments[number]
    if number + 1 == len(segments) and position + 1 == len(segment):
        return False
    before, after = segment[max(0, position - 1) : position], segment[position + 1 : position + 2]
    return (
        (len(segment) == 1 and segment[position] in lexicon.SECONDS)
        or (segment == ["s", *after] and after in (["step"], ["steps"], ["batch"]))
        or after == ["per"]
        or before in (["time"], ["per"])
    )


def _words_of(segment: str) -> list[str]:
    """Return the words of a segment as the lexicon knows them, in lower case where it does not."""
    return _in_phrases(words_in(_VALUE_OF_LOSS.sub("", segment.replace("^", ""))))


def words_in(text: str) -> list[str]:
    """Return the words of a text one by one, as the lexicon knows them, in lower case where it does not."""
    pieces = [text] if text.isalpha() and text.islower() and text.isascii() else pieces_of(text)
    return [word for piece in pieces for word in _KNOWN.get(piece) or _glued(piece) or _ended(piece) or (piece,)]


def chunks_in(text: str) -> list[str]:
    """Return the parts of a text between its separators, each of letters and digits."""
    chunks: list[str] = _CHUNK.findall(text.replace("^", ""))
    return chunks


def pieces_of(text: str) -> list[str]:
    """Return the words of a name as they are written, in lower case: `ValRecall0` is val, recall and 0."""
    pieces: list[str] = []
    for chunk in _alphabets_apart(_CHUNK.findall(folded(text))):
        low = chunk.lower()
        if low in _KNOWN:
            pieces.append(low)
        elif (bare := low.rstrip("0123456789")) in _KNOWN:
            pieces += [bare, low[len(bare) :]]  # "mAP50"
        else:
            for hump in map(str.lower, _HUMP.split(chunk)):
                pieces += [hump] if hump in _KNOWN else _DIGITS.split(hump)
    return pieces


_MEANS = frozenset({"mean", "avg", "average"})


@lru_cache(4096)
def in_words(name: str, *, with_means: bool = True) -> str:
    """Return the words of a name in one spelling, without the phase: `TrainLogits/Max` is logits_max."""
    pieces = (piece for piece in pieces_of(name) if lexicon.PHASES.get(piece) != "train")
    return "_".join(piece for piece in pieces if with_means or piece not in _MEANS)


def _alphabets_apart(chunks: list[str]) -> Iterator[str]:
    """Yield chunks with what is written in another alphabet apart, but for those that are a word: 验证F1, but R²."""
    for chunk in chunks:
        if chunk.isascii() or chunk.lower() in _KNOWN:
            yield chunk
        else:
            yield from _ALPHABETS.findall(chunk)


def _in_phrases(words: list[str]) -> list[str]:
    """Return words with phrases as what they mean, and without the axis that they are drawn over."""
    axis = next((position for position, word in enumerate(words) if word in lexicon.AXIS and position), len(words))
    found = words[:axis]
    for phrase, meaning in _PHRASES:
        for start in range(len(found) - len(phrase) + 1) if phrase[0] in found else ():
            if tuple(found[start : start + len(phrase)]) == phrase:
                found[start : start + len(phrase)] = meaning.split()
    return found


def _glued(word: str) -> tuple[str, ...] | None:
    """Return the known words that one is made of, None if it is not: `eprewmean`."""
    begins = word[:_LEAST_GLUED] in _BEGIN_GLUED or word[:2] in _SHORT_GLUED or not word.isascii()
    return _taken_apart(word) if begins and len(word) <= _LONGEST_GLUED else None


def _ended(word: str) -> tuple[str, ...] | None:
    """Return the words that an inflected or compounded one is made of, None if its end or beginning is not known."""
    if "а" <= word[:1] <= "я":
        return _inflected(word)
    ending = next((text for text in lexicon.COMPOUNDED if word.endswith(text) and word != text), None)
    return None if ending is None else (word.removesuffix(ending), *_KNOWN[ending])


def _inflected(word: str) -> tuple[str, ...] | None:
    """Return what a Russian word means in any of its forms, None if its stem is not known."""
    longest = range(min(len(word), lexicon.MOST_OF_A_STEM), 0, -1)
    stem = next((word[:end] for end in longest if word[:end] in lexicon.STEMS), "")
    ending = len(word) - len(stem)
    known = stem and (not ending or len(stem) >= lexicon.LEAST_INFLECTED)
    return (lexicon.STEMS[stem],) if known and ending <= lexicon.MOST_OF_AN_ENDING else None


@lru_cache(maxsize=4096)
def _taken_apart(word: str) -> tuple[str, ...] | None:
    least = 2 if word.isascii() else 1  # one letter of Chinese may be a word
    for end in range(len(word) - least, least - 1, -1):
        first, rest = word[:end], word[end:]
        if first in _GLUE:
            after = _KNOWN[rest] if rest in _GLUE else _taken_apart(rest)
            if after is not None:
                return (*_KNOWN[first], *after)
    return None


_PHRASES = sorted(lexicon.PHRASES.items(), key=lambda item: -len(item[0]))
_KNOWN: dict[str, tuple[str, ...]] = {
    **{folded(word): tuple(meaning.split()) or (word,) for word, meaning in lexicon.SYNONYMS.items()},
    **{word: (meaning,) for word, meaning in (*lexicon.PHASES.items(), *lexicon.STATISTICS.items())},
    **{word: (word,) for word in (*lexicon.UNITS, *lexicon.NAMESPACES, *lexicon.NEGATED, "sofar")},
    "learners": ("learner",),
}
_KINDS = {
    **dict.fromkeys(lexicon.EMPTY - lexicon.CONCEPTS, NOTHING),
    **dict.fromkeys(lexicon.UNITS - lexicon.SHORT_UNITS, UNIT),
    **dict.fromkeys(lexicon.STATISTICS.values(), STATISTIC),
    **dict.fromkeys(lexicon.PHASES.values(), PHASE),
}
_GLUE = frozenset(
    word
    for word in (*lexicon.SYNONYMS, *lexicon.PHASES, *lexicon.STATISTICS, "sofar")
    if len(word) >= _LEAST_GLUED or word in _SHORT_GLUED or not word.isascii()
)
_BEGIN_GLUED = frozenset(word[:_LEAST_GLUED] for word in _GLUE)
