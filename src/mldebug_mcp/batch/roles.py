"""Which token belongs to which role: rows decoded, with the turns that their markers show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mldebug_mcp.batch.ragged import Ints
from mldebug_mcp.batch.sequences import Sequences
from mldebug_mcp.batch.templates import Family, Span, family_of, spans
from mldebug_mcp.batch.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Turn:
    """A role's turn in a row, as token positions within the row: its header, its words, what ends it."""

    role: str
    header: int
    start: int
    stop: int
    end: int


@dataclass(frozen=True, slots=True)
class RowRoles:
    """A row's text and turns.

    Args:
        side, index: Which row of which set it is.
        number: Its number in the file.
        text: The decoded content, padding left out.
        first: The place in the row of the content's first token.
        edges: The character at which each content token begins, and the text's length.
        family: The kind of template whose markers the text shows, or None.
        turns: The turns, in order.
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
    bare = RowRoles(
        side, index, int(side.numbers[index]), text, start - int(side.ids.offsets[index]), edges, family, ()
    )
    if family is None:
        return bare
    turns = tuple(_turn(bare, span) for span in spans(text, family))
    return RowRoles(side, index, bare.number, text, bare.first, edges, family, turns)


def _turn(row: RowRoles, span: Span) -> Turn:
    return Turn(span.role, *(row.first_token_from(place) for place in (span.header, span.start, span.stop, span.end)))
