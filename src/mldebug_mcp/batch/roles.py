"""Which token belongs to which role, and text as words without a tokenizer."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mldebug_mcp.batch.sequences import Ints, Sequences
from mldebug_mcp.batch.templates import ASSISTANT, Family, Turn, family_of, turns_in
from mldebug_mcp.batch.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class RowRoles:
    """A row's text and turns.

    The text is the decoded content, padding left out. `first` is the place of its first token in the row; `edges` are
    the characters at which tokens begin, and the text's length. `family` is the kind of template whose markers it
    shows.
    """

    side: Sequences
    index: int
    number: int
    text: str
    first: int
    edges: Ints
    family: Family | None
    turns: tuple[Turn, ...]

    def words(self, turn: Turn) -> str:
        """Return what a turn says, without its header and its end."""
        start, stop = (
            int(self.edges[min(place - self.first, len(self.edges) - 1)]) for place in (turn.start, turn.stop)
        )
        return self.text[start:stop]

    def token_at(self, character: int) -> int:
        """Return the place in the row of the token in which a character of `text` lies."""
        return self.first + int(np.searchsorted(self.edges, character, side="right")) - 1

    def first_token_from(self, character: int) -> int:
        """Return the place in the row of the first token that begins at a character or after it."""
        return self.first + min(int(np.searchsorted(self.edges, character)), len(self.edges) - 1)


def read_roles(side: Sequences, index: int, tokenizer: Tokenizer) -> RowRoles:
    """Decode a row and find its turns."""
    start, stop = (int(bound[index]) for bound in side.bounds)
    pieces = tokenizer.pieces(side.ids.flat[start:stop].tolist())
    text = "".join(pieces)
    edges = np.concatenate([[0], np.cumsum([len(piece) for piece in pieces])]).astype(np.int64)
    own = tokenizer.template.family if tokenizer.template is not None else None
    family = family_of(text, own)
    first = start - int(side.ids.offsets[index])
    bare = RowRoles(side, index, int(side.numbers[index]), text, first, edges, family, ())
    if family is None:
        return bare
    turns = tuple(
        Turn(turn.role, *map(bare.first_token_from, (turn.header, turn.start, turn.stop, turn.end)))
        for turn in turns_in(text, family)
    )
    return replace(bare, turns=turns)


# Text without its tokenizer, as words: enough for its roles, empty answers, repeats, lengths and equal pairs.
#
# `Words` answers what `conversations` asks of a tokenizer. A word's number is a hash of its text, so the same text has
# the same numbers in every file; each turn is closed by `END_OF_TURN_ID`. What depends on the real tokens (template,
# ends, truncation, vocabulary) cannot be judged of such rows.


END_OF_TURN_ID = 0
"""The number of what closes a turn or a text."""
NOTE = (
    "no tokenizer was given: the text is counted in words, and only roles, empty and repeated texts, leaks, lengths "
    "and equal pairs are judged; templates, first and end tokens, truncation and the trainer's own masks need tokenizer"
)
KEPT_WORDS = 200_000
"""Words whose texts are kept to show rows."""
LONGEST_WORD = 200
"""Letters of a word that are shown: encoded pictures and hashes are single words of megabytes."""
_OPEN = "\x02"
"""Control character before a role's name; it is taken out of the text itself."""
_CLOSE = "\x03"
"""Control character behind a turn; it is taken out of the text itself."""
_BY_LETTER = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Japanese, Chinese and Korean, which are read letter by letter."""
_PIECE = re.compile(rf"\x02[^\x02\n]*\n|\x03|\s*(?:[{_BY_LETTER}]|[^\W{_BY_LETTER}]+|[^\w\s\x02\x03])|\s+", re.UNICODE)
"""A marker, a word or sign with the space before it, or space behind the last one, which counts for nothing."""
_ANSWERING = frozenset({ASSISTANT, "model", "gpt", "function_call"})
_CONTENT_FIELDS = ("reasoning_content", "thinking", "content", "tool_calls", "function_call")
"""The fields of a message that hold its text."""


class Words:
    """Stands in for a tokenizer that was not given: words for tokens, and a plain form of conversations."""

    chat_template = "words"
    marks_generation = True
    eos = END_OF_TURN_ID

    def __init__(self) -> None:
        self._texts: dict[int, str] = {END_OF_TURN_ID: "‹end›"}
        self._numbers: dict[str, int] = {_CLOSE: END_OF_TURN_ID}

    def encode(self, text: str, *, special: bool = True) -> list[int]:
        """Return the numbers of a text's words; `special=False` takes what `render` wrote, with its markers."""
        known = self._numbers
        words = _words(_without_markers(text) if special else text)
        return [known[word] if word in known else self._number(word) for word in words]

    def render(self, messages: Sequence[Mapping[str, object]], **options: object) -> str:
        """Return a conversation as text with a marker before and behind each turn."""
        asked = f"{_OPEN}{ASSISTANT}\n" if options.get("add_generation_prompt") else ""
        return "".join(map(_words_turn, messages)) + asked

    def generation_mask(self, messages: Sequence[Mapping[str, object]]) -> list[bool] | None:
        """Return which numbers of a rendered conversation are the assistant's words and their end."""
        mask: list[bool] = []
        for message in messages:
            count = len(_words(_words_turn(message)))
            mask += [False, *[message.get("role") in _ANSWERING] * (count - 1)]
        return mask

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the text of each word."""
        return [self._texts.get(number, f" ‹word {number}›") for number in ids]

    def folded(self, numbers: npt.NDArray[np.integer]) -> Ints:
        """Return numbers that are the same for words that differ in case or in the space before them."""
        kinds, places = np.unique(numbers, return_inverse=True)
        texts = (self._texts.get(number) for number in kinds.tolist())
        found = [
            number if text is None else _hash(text.strip().casefold())
            for number, text in zip(kinds.tolist(), texts, strict=True)
        ]
        return np.array(found, np.int64)[places]

    def letters(self, numbers: npt.NDArray[np.integer]) -> str:
        """Return the letters and digits of words, in one case: what punctuation and spaces do not change."""
        texts = (self._texts.get(number) or str(number) for number in numbers.tolist())
        return "".join(filter(str.isalnum, "".join(texts).casefold()))

    def _number(self, word: str) -> int:
        number = _hash(word)
        is_long = len(word) > LONGEST_WORD
        if len(self._texts) < KEPT_WORDS:
            shown = f"{word[:LONGEST_WORD]}…" if is_long else word
            self._texts.setdefault(number, f"‹{word[1:-1]}› " if word.startswith(_OPEN) else shown)
        if len(self._numbers) < KEPT_WORDS and not is_long:
            self._numbers[word] = number
        return number


Encoder = Tokenizer | Words


def _hash(word: str) -> int:
    return zlib.crc32(word.encode("utf-8", "surrogatepass")) >> 1 or 1


def _words(text: str) -> list[str]:
    return [word for word in _PIECE.findall(text) if not word.isspace()]


def _words_turn(message: Mapping[str, object]) -> str:
    content = " ".join(filter(None, (_text(message.get(name)) for name in _CONTENT_FIELDS)))
    role = _without_markers(str(message.get("role"))).replace("\n", " ")
    return f"{_OPEN}{role}\n{_without_markers(content).strip()}{_CLOSE}"


def _text(value: object) -> str:
    """Return what a field says: text as it is, the parts of a list one after the other, anything else as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list):
        return " ".join(_part(part) for part in value)
    return json.dumps(value, default=str, ensure_ascii=False)


def _part(part: object) -> str:
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return str(part["text"])
    return part if isinstance(part, str) else json.dumps(part, default=str, ensure_ascii=False)


def _without_markers(text: str) -> str:
    return text.replace(_OPEN, "").replace(_CLOSE, "")
