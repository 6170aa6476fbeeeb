"""Tiny text data: Python's own documentation and source code, and made-up sentences."""

import argparse
import inspect
from functools import cache

import numpy as np
import torch
from torch import Tensor

CHARS = "\n" + "".join(chr(code) for code in range(32, 127))
VOCAB = len(CHARS)
TABLE = {char: index for index, char in enumerate(CHARS)}


def encode(text: str) -> Tensor:
    """Character ids; characters outside printable ASCII are dropped."""
    return torch.tensor([TABLE[char] for char in text if char in TABLE], dtype=torch.long)


@cache
def documentation() -> Tensor:
    """The language reference that ships with Python, about half a million characters."""
    from pydoc_data.topics import topics

    return encode("\n".join(topics[name] for name in sorted(topics)))


@cache
def source_code() -> Tensor:
    """The source of argparse: another domain to fine-tune on."""
    return encode(inspect.getsource(argparse))


def rng(*key: int) -> np.random.Generator:
    """A generator that depends on the key alone."""
    return np.random.default_rng(key)


def windows(text: Tensor, starts: np.ndarray, length: int) -> Tensor:
    """Rows of `length` characters that begin at the starts: (len(starts), length)."""
    index = torch.as_tensor(starts, dtype=torch.long)[:, None] + torch.arange(length)
    return text[index]


def order(samples: int, epoch: int, seed: int, *, shuffle: bool = True) -> np.ndarray:
    """In which order an epoch visits the samples."""
    return rng(seed, epoch).permutation(samples) if shuffle else np.arange(samples)


def topic_sentences(
    count: int, classes: int, seed: int, *, length: int = 24, overlap: float = 0.6, shares: list[float] | None = None
) -> tuple[Tensor, Tensor]:
    """Sentences of word ids (count, length) below 200 with their topic (count,).

    A share `overlap` of the words is common to all topics, the rest comes from the topic's own 20 words.
    """
    draw = rng(seed, 77)
    labels = draw.choice(classes, size=count, p=shares)
    common = draw.integers(120, 200, size=(count, length))
    own = labels[:, None] * (120 // classes) + draw.integers(0, min(20, 120 // classes), size=(count, length))
    words = np.where(draw.random((count, length)) < overlap, common, own)
    return torch.as_tensor(words), torch.as_tensor(labels)
