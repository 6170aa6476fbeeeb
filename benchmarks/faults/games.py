"""Questions with one right answer, as text, and a language model of some thousand parameters that guesses at them."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

SIGNS = ("<pad>", "<eos>", "<end>", *"0123456789+=abcdefghijklmnopqrstuvwxyz>. ")
Row = dict[str, str]


@dataclass(frozen=True)
class Game:
    """A kind of question, all of one length: GPT-2 counts padding among the positions.

    Args:
        name: Its name.
        ask: Makes a question and its answer.
        wrong: Makes a wrong answer from a right one.
        longest: Tokens that an answer may have.
    """

    name: str
    ask: Callable[[random.Random], tuple[str, str]]
    wrong: Callable[[str, random.Random], str]
    longest: int

    def rows(self, dice: random.Random, count: int, known: float = 1.0) -> list[Row]:
        """Return questions, each with a wrong answer and one that is right with the probability `known`."""
        rows = []
        for _ in range(count):
            prompt, answer = self.ask(dice)
            wrong = self.wrong(answer, dice)
            rows.append({"prompt": prompt, "answer": answer if dice.random() < known else wrong, "wrong": wrong})
        return rows


def ask_sum(dice: random.Random) -> tuple[str, str]:
    """Ask for a sum."""
    one, other = dice.randrange(10), dice.randrange(10)
    return f"{one}+{other}=", str(one + other)


def ask_reversal(dice: random.Random) -> tuple[str, str]:
    """Ask for three letters the other way round."""
    word = "".join(dice.choice("abcdefgh") for _ in range(3))
    return f"{word}>", word[::-1]


def off(answer: str, dice: random.Random) -> str:
    """Return another number."""
    return str(int(answer) + dice.randrange(1, 10))


def slipped(answer: str, dice: random.Random) -> str:
    """Exchange one letter."""
    place = dice.randrange(len(answer))
    letter = dice.choice([one for one in "abcdefgh" if one != answer[place]])
    return answer[:place] + letter + answer[place + 1 :]


GAMES = {game.name: game for game in (Game("sum", ask_sum, off, 6), Game("reversal", ask_reversal, slipped, 6))}


def tokenizer(end: str = "<eos>", moved: int = 0) -> Any:  # noqa: ANN401 - its class exists where transformers does
    """Return a tokenizer of single signs; all but the special ones have their numbers `moved`."""
    parts, transformers = import_module("tokenizers"), import_module("transformers")
    plain = SIGNS[3:]
    numbers = {sign: number for number, sign in enumerate((*SIGNS[:3], *plain[moved:], *plain[:moved]))}
    inner = parts.Tokenizer(parts.models.WordLevel(numbers))
    inner.pre_tokenizer = parts.pre_tokenizers.Split("", "isolated")
    inner.decoder = parts.decoders.Fuse()
    special = {"pad_token": SIGNS[0], "eos_token": end}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=inner, padding_side="left", **special)


@lru_cache(maxsize=1)
def folder() -> tempfile.TemporaryDirectory[str]:
    """Return the folder of this process for the models that runs start from."""
    return tempfile.TemporaryDirectory()


@lru_cache(maxsize=32)
def base(game: Game, known: float, seed: int) -> str:
    """Return the folder of a model that was trained on rows of which a share is answered right."""
    transformers = import_module("transformers")
    torch.manual_seed(seed)
    model = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=len(SIGNS), n_positions=32, n_embd=32, n_layer=2, n_head=2, resid_pdrop=0.0, embd_pdrop=0.0,
            attn_pdrop=0.0, initializer_range=0.1, bos_token_id=1, eos_token_id=1, pad_token_id=0,
        )
    )  # fmt: skip
    dice, words = random.Random(seed), tokenizer()  # noqa: S311
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    decline = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.02, 400)
    for _ in range(400):
        lines = [f"{row['prompt']}{row['answer']}<eos>" for row in game.rows(dice, 64, known)]
        given = words(lines, padding=True, padding_side="right", return_tensors="pt")
        labels = given.input_ids.masked_fill(given.attention_mask == 0, -100)
        labels[:, :4] = -100
        loss = model(input_ids=given.input_ids, attention_mask=given.attention_mask, labels=labels).loss
        torch.autograd.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        decline.step()
    place = Path(folder().name, f"{game.name}-{known:g}-{seed}")
    model.save_pretrained(place)
    return str(place)
