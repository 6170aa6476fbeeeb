"""What of the text as it was written does not reach the model: parts of messages, a first indent, characters."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from mldebug_mcp.batch.batch import Problem
from mldebug_mcp.batch.columns import ASKED_AND_SAID, CONTRASTED, Table
from mldebug_mcp.batch.templates import ASSISTANT
from mldebug_mcp.batch.text_problems import (
    ANSWERS,
    COMPARED,
    Chats,
    Messages,
    chats_of,
    problem_at,
    rendered_text,
    strings_in,
)
from mldebug_mcp.batch.tokenizer import Tokenizer
from mldebug_mcp.core.errors import is_failure
from mldebug_mcp.core.text import shorten

MAX_COMPARED = 1000
"""Conversations of a piece of the data that are rendered and compared. Chosen: a second of work."""
MAX_CHARACTERS = 2000
"""Different characters of a piece of the data that are tokenized alone. Chosen: alphabets have fewer."""
EXAMPLE_MARGIN = 24
"""Characters that an example shows on either side. Chosen: a few words."""
MAX_EXAMPLE = 60
"""Characters of an example. Chosen: half a line."""
MAX_NAMED = 10
"""Characters without a token that a sentence names."""
AS_SPACES = "\ufffd\u2581"
"""What stands for lost bytes already, and for a space in the tokens of SentencePiece."""
ASKED = ".asked"
"""Stands behind the check where nothing is lost of what the model is to write."""
_TRAINED = {*ANSWERS, "text"}.union(*CONTRASTED)
_READ = {"prompt", "instruction", "input", "question", "query", "system", "rejected"}
"""Columns whose text is trained on, and those that the model reads alone."""
_Item = TypeVar("_Item")
_WRITTEN_OUT = ("'type': 'text'", '"type": "text"')


@dataclass(frozen=True, slots=True)
class _Loss:
    place: int
    is_answer: bool
    summary: str


def lost_text(table: Table, tokenizer: Tokenizer | None, first: int = 0) -> Iterator[Problem]:
    """Yield what a chat template or tokenizer leaves out of the text of a table, whose first row is number `first`."""
    if tokenizer is None:
        return
    chats = chats_of(table) or _exchanges(table)
    for check, losses in (
        ("message_parts_lost", list(_parts(chats, tokenizer))),
        ("first_indent_lost", list(_indents(chats, tokenizer))),
        ("characters_without_token", list(_characters(table, tokenizer))),
    ):
        for behind, is_answer in (("", True), (ASKED, False)):
            found = [loss for loss in losses if loss.is_answer is is_answer]
            if found:
                places = sorted({loss.place for loss in found})
                yield problem_at(check + behind, found[0].summary, places, table, first)


def _exchanges(table: Table) -> Chats:
    """Return the conversations that a question and an answer in columns of their own are taken for."""
    for asked, said in ASKED_AND_SAID:
        questions, answers = table.columns.get(asked), table.columns.get(said)
        if isinstance(questions, list) and isinstance(answers, list):
            pairs = enumerate(zip(questions, answers, strict=False))
            return [
                (place, [{"role": "user", "content": question}, {"role": ASSISTANT, "content": answer}])
                for place, (question, answer) in pairs
                if isinstance(question, str) and isinstance(answer, str)
            ]
    return []


def _parts(chats: Chats, tokenizer: Tokenizer) -> Iterator[_Loss]:
    """Yield the messages whose text is given in parts that the template leaves out, or writes out as a list."""
    for place, chat, parts in _with_some(chats, _texts_in_parts):
        text = rendered_text(chat, tokenizer)
        for is_answer, words in parts if text else ():
            shown = repr(shorten(words.strip(), MAX_EXAMPLE))
            mark = next((mark for mark in _WRITTEN_OUT if mark in text and mark not in words), "")
            if mark:
                start = max(text.rfind(mark, 0, max(text.find(words), 0)), text.find(mark))
                written = shorten(text[start : start + 2 * MAX_EXAMPLE].strip(), MAX_EXAMPLE)
                yield _Loss(place, is_answer, f"the chat template writes the list of parts out: {shown} as {written}")
            elif words.strip()[:COMPARED] not in text:
                yield _Loss(place, is_answer, f"the chat template leaves out text that is given in parts: {shown}")


def _texts_in_parts(chat: Messages) -> list[tuple[bool, str]]:
    return [
        (message.get("role") == ASSISTANT, part["text"])
        for message in chat
        if isinstance(content := message.get("content"), list)
        for part in content
        if isinstance(part, dict) and isinstance(part.get("text"), str) and part["text"].strip()
    ]


def _indents(chats: Chats, tokenizer: Tokenizer) -> Iterator[_Loss]:
    """Yield the messages whose first line loses its indent, so that it does not stand with the lines below it."""
    for place, chat, indented in _with_some(chats, _indented):
        text = rendered_text(chat, tokenizer)
        for is_answer, words, indent in indented if text else ():
            inside = words.strip()
            if inside in text and indent + inside not in text:
                line = shorten(inside.partition("\n")[0], MAX_EXAMPLE)
                says = f"the chat template trims the first indent: {indent + line!r} becomes {line!r}"
                yield _Loss(place, is_answer, says)


def _indented(chat: Messages) -> list[tuple[bool, str, str]]:
    return [
        (message.get("role") == ASSISTANT, content, indent)
        for message in chat
        if isinstance(content := message.get("content"), str) and (indent := _first_indent(content))
    ]


def _first_indent(words: str) -> str:
    """Return the spaces before the first line with words, where a line below it is indented as well."""
    before = words[: len(words) - len(words.lstrip())].rpartition("\n")[2]
    below = words.strip().split("\n")[1:] if before else []
    return before if any(line[:1] in (" ", "\t") and line.strip() for line in below) else ""


def _with_some(chats: Chats, look: Callable[[Messages], list[_Item]]) -> Iterator[tuple[int, Messages, list[_Item]]]:
    """Yield the first conversations in which something is found."""
    looked = ((place, chat, look(chat)) for place, chat in chats)
    yield from islice((each for each in looked if each[2]), MAX_COMPARED)


def _characters(table: Table, tokenizer: Tokenizer) -> Iterator[_Loss]:
    """Yield the texts with letters, digits or signs that become no token at all, or not all of their bytes."""
    texts = list(_texts(table))
    known = set[str]().union(*(text for _, _, text in texts))
    signs = [sign for sign in sorted(known) if unicodedata.category(sign)[0] in "LNPS"][:MAX_CHARACTERS]
    lost = {sign for sign in signs if sign not in AS_SPACES and _is_lost(sign, tokenizer)}
    for place, is_answer, text in texts if lost else ():
        found = sorted(lost & set(text))
        if found:
            start = max(text.index(found[0]) - EXAMPLE_MARGIN, 0)
            example = text[start : start + 2 * EXAMPLE_MARGIN]
            after = tokenizer.text(tokenizer.encode(example, special=False))
            after = after if example.startswith(" ") else after.removeprefix(" ")  # some put a space in front
            named = ", ".join(map(repr, found[:MAX_NAMED])) + (
                f" and {len(found) - MAX_NAMED} more" if found[MAX_NAMED:] else ""
            )
            yield _Loss(place, is_answer, f"the tokenizer has no token for {named}: {example!r} becomes {after!r}")


def _texts(table: Table) -> Iterator[tuple[int, bool, str]]:
    """Yield the texts of a table that are tokenized, with their places, and whether the model is to write them."""
    for name in sorted((_TRAINED | _READ) & table.columns.keys()):
        column = table.columns[name]
        for place, value in enumerate(column) if isinstance(column, list) else ():
            if isinstance(value, str):
                yield place, name in _TRAINED, value
    for place, chat in chats_of(table):
        for message in chat:
            yield from ((place, message.get("role") == ASSISTANT, text) for text in strings_in(dict(message)))


def _is_lost(sign: str, tokenizer: Tokenizer) -> bool:
    """Say whether a character alone becomes no token, though no token stands for what is unknown."""
    try:
        ids = tokenizer.encode(sign, special=False)
        text = tokenizer.text(ids)
    except BaseException as error:
        if not is_failure(error):
            raise
        return False
    return tokenizer.unknown not in ids and (not text.strip() or "\ufffd" in text)
