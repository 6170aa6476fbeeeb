"""Made-up text: little worlds of facts, code, sums and noise, in words or characters."""

from __future__ import annotations

import numpy as np

NOUNS = [
    "apple",
    "boat",
    "chair",
    "door",
    "engine",
    "fence",
    "glove",
    "hammer",
    "island",
    "jacket",
    "kettle",
    "ladder",
    "mirror",
    "needle",
    "oven",
    "pencil",
    "quilt",
    "rope",
    "spoon",
    "table",
    "umbrella",
    "vase",
    "wagon",
    "bottle",
    "candle",
    "drum",
    "flag",
    "basket",
]
COLORS = ["red", "blue", "green", "white", "black", "yellow", "brown", "grey"]
PLACES = ["london", "paris", "oslo", "rome", "cairo", "lima", "delhi", "tokyo"]
NAMES = ["anna", "ben", "clara", "david", "eva", "frank", "greta", "henry", "ida", "jonas"]
VERBS = ["sees", "takes", "paints", "sells", "finds", "wants", "holds", "drops"]
SPECIAL = ["<pad>", "<bos>", "<eos>", "<unk>", "user", "assistant", ":", "?", ".", ","]
FILL = [
    "the",
    "a",
    "is",
    "in",
    "and",
    "what",
    "where",
    "who",
    "color",
    "lives",
    "not",
    "very",
    "old",
    "new",
    "it",
    "says",
    "that",
    "of",
]
WORDS = SPECIAL + FILL + COLORS + PLACES + NAMES + VERBS + NOUNS
ID = {word: index for index, word in enumerate(WORDS)}
PAD, BOS, EOS = 0, 1, 2
CHARS = "\n abcdefghijklmnopqrstuvwxyz0123456789.,:;()=+-*_?"
CHAR_ID = {char: index for index, char in enumerate(CHARS)}


def color_of(noun: str) -> str:
    """The one color of a thing in this world."""
    return COLORS[(NOUNS.index(noun) * 5 + 3) % len(COLORS)]


def place_of(name: str) -> str:
    """The one place where a person lives in this world."""
    return PLACES[(NAMES.index(name) * 3 + 1) % len(PLACES)]


def sentence(rng: np.random.Generator) -> str:
    """One sentence about the world, words parted by spaces."""
    noun, name = str(rng.choice(NOUNS)), str(rng.choice(NAMES))
    kind = int(rng.integers(0, 5))
    if kind == 0:
        return f"the {noun} is {color_of(noun)} ."
    if kind == 1:
        return f"{name} lives in {place_of(name)} ."
    if kind == 2:
        return f"{name} {rng.choice(VERBS)} the {color_of(noun)} {noun} ."
    if kind == 3:
        return f"{name} says that the {noun} is {color_of(noun)} and {rng.choice(['old', 'new'])} ."
    return f"in {place_of(name)} , {name} {rng.choice(VERBS)} a {noun} ."


def code_line(rng: np.random.Generator) -> str:
    """A line that looks like a program."""
    name = str(rng.choice(["run", "load", "step", "save"]))
    return f"def {name}_{rng.integers(0, 9)}(x): return x{rng.choice(['+', '*', '-'])}{rng.integers(0, 99)}"


def sum_line(rng: np.random.Generator) -> str:
    """A line with a sum."""
    left, right = int(rng.integers(0, 50)), int(rng.integers(0, 50))
    return f"{left}+{right}={left + right};"


def noise_line(rng: np.random.Generator) -> str:
    """A line of random characters."""
    return "".join(rng.choice(list(CHARS[1:]), size=40))


MAKERS = {"text": sentence, "code": code_line, "sums": sum_line, "noise": noise_line}


def characters(domain: str, size: int, seed: int) -> np.ndarray:
    """`size` characters of one domain as ids."""
    rng = np.random.default_rng(seed)
    parts: list[str] = []
    length = 0
    while length < size:
        line = MAKERS[domain](rng) + "\n"
        parts.append(line)
        length += len(line)
    return np.array([CHAR_ID[c] for c in "".join(parts)[:size]], dtype=np.int64)


def words(size: int, seed: int) -> np.ndarray:
    """`size` word ids of running text, sentences parted by the end token."""
    rng = np.random.default_rng(seed)
    ids: list[int] = []
    while len(ids) < size:
        ids += [BOS] + [ID[w] for w in sentence(rng).split()] + [EOS]
    return np.array(ids[:size], dtype=np.int64)


def question(rng: np.random.Generator, things: tuple[int, int]) -> tuple[list[int], list[int]]:
    """A prompt and its right answer; `things` bounds which nouns are asked for."""
    low, high = things
    if rng.random() < 0.75:
        noun = NOUNS[int(rng.integers(low, high))]
        ask = [f"what color is the {noun} ?", f"what is the color of the {noun} ?"][int(rng.integers(0, 2))]
        answer = f"the {noun} is {color_of(noun)} ."
    else:
        name = str(rng.choice(NAMES))
        ask, answer = f"where lives {name} ?", f"{name} lives in {place_of(name)} ."
    prompt = ["<bos>", "user", ":", *ask.split(), "assistant", ":"]
    return [ID[w] for w in prompt], [ID[w] for w in answer.split()] + [EOS]


def spoil(answer: list[int], rng: np.random.Generator) -> list[int]:
    """A wrong answer: the last fact is replaced by another of its kind."""
    wrong = list(answer)
    fact = WORDS[answer[-3]]
    pool = COLORS if fact in COLORS else PLACES
    wrong[-3] = ID[str(rng.choice([w for w in pool if w != fact]))]
    return wrong
