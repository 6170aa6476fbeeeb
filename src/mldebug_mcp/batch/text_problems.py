"""What is wrong with text and conversations as they were written, and what of them does not reach the model."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from typing import TypeVar

from mldebug_mcp.batch.batch import Problem
from mldebug_mcp.batch.columns import ASKED_AND_SAID, CONTRASTED, Table, find, ragged_or_none
from mldebug_mcp.batch.conversations import CHATS, STEPS, NotAConversationError, messages_of, step_marks
from mldebug_mcp.batch.templates import ASSISTANT, marker_before
from mldebug_mcp.batch.tokenizer import Tokenizer
from mldebug_mcp.core.errors import is_failure
from mldebug_mcp.core.text import shorten

# What is wrong with conversations and pairs as they were written: questions that differ, calls of tools, images.


_ANSWER = re.compile(r"\n\s*(?:Assistant|ASSISTANT|AI|Response) ?:")
"""What stands before the answer where a pair is one text with plain markers, as Anthropic's HH data."""
PLACEHOLDER = "<image>"
_IMAGES = ("images", "image")
Messages = Sequence[Mapping[str, object]]
Texts = Mapping[str, list[object]]
"""Columns of strings or conversations by name."""


def asks_apart(chosen: object, rejected: object) -> bool:
    """Return whether the two sides of a pair answer different questions."""
    text, other = _asked(chosen), _asked(rejected)
    return text is not None and other is not None and text != other


def _asked(value: object) -> str | None:
    """Return the user's message before the last answer; None if it is unknown."""
    if isinstance(value, str):
        found = _ANSWER.search(value)
        return value[: found.start()].strip() if found else None
    chat = messages(value)
    if not chat:
        return None
    questions = [str(mapping.get("content")) for mapping in chat[:-1] if mapping.get("role") == "user"]
    return "\n".join(questions) if questions else None


def messages(value: object) -> Messages:
    """Return a conversation's messages; none for other values."""
    if not isinstance(value, list):
        return ()
    try:
        return messages_of(value)
    except NotAConversationError:
        return ()


def breaks_calls(chat: Messages) -> bool:
    """Return whether a call of a tool has arguments that are no JSON, or a result answers a call that nobody made."""
    made: set[object] = set()
    for message in chat:
        for call in _calls(message):
            made.add(call.get("id"))
            function = call.get("function")
            arguments = function.get("arguments") if isinstance(function, dict) else None
            if isinstance(arguments, str) and not _is_json(arguments):
                return True
        answered = message.get("tool_call_id")
        if message.get("role") == "tool" and answered is not None and made - {None} and answered not in made:
            return True
    return False


def _calls(message: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    calls = message.get("tool_calls")
    if message.get("role") == ASSISTANT and isinstance(calls, list):
        yield from (call for call in calls if isinstance(call, dict))


def _is_json(text: str) -> bool:
    try:
        json.loads(text or "{}")
    except ValueError:
        return False
    return True


def missing_placeholders(chats: Sequence[object], images: Sequence[object]) -> list[int]:
    """Return the places of the rows whose text names more or fewer images than they have.

    Only where most rows mark the place of an image in the text, as LLaVA's data do.
    """
    marked = [sum(str(message.get("content")).count(PLACEHOLDER) for message in messages(chat)) for chat in chats]
    given = [len(image) if isinstance(image, list) else int(bool(image)) for image in images]
    if 2 * sum(map(bool, marked)) <= sum(map(bool, given)):
        return []
    return [place for place, pair in enumerate(zip(marked, given, strict=False)) if pair[0] != pair[1]]


# Text that was decoded with the wrong encoding: its bytes are UTF-8 and were read as Latin-1 or Windows-1252.


_BYTES = {
    bytes([byte]).decode("cp1252"): byte for byte in range(128, 256) if byte not in (0x81, 0x8D, 0x8F, 0x90, 0x9D)
}
_BYTES |= {chr(byte): byte for byte in range(128, 256)}
"""The byte of a character in either encoding."""


def _bytes_in(first: int, last: int) -> str:
    return "[" + re.escape("".join(character for character, byte in _BYTES.items() if first <= byte <= last)) + "]"


_GOES_ON = _bytes_in(0x80, 0xBF)
_SEQUENCE = re.compile(
    rf"{_bytes_in(0xC2, 0xDF)}{_GOES_ON}|{_bytes_in(0xE0, 0xEF)}{_GOES_ON}{{2}}|{_bytes_in(0xF0, 0xF4)}{_GOES_ON}{{3}}"
)
"""Two to four characters that are the bytes of one character in UTF-8."""
SURE = re.compile(rf"[ÃÂ]{_GOES_ON}|â[€\x80]{_GOES_ON}|ð[Ÿ\x9f]{_GOES_ON}{{2}}|\N{{REPLACEMENT CHARACTER}}{{2}}")
"""Sequences that no language writes: accented letters, quotation marks and emoji read wrongly, and lost characters."""
MIN_RECURRING_SEQUENCES = 3
"""Other sequences have to recur: an accented letter may stand before a sign, as in "fini…”". Chosen by hand."""


def is_garbled(text: str) -> bool:
    """Return whether a text shows characters that come from reading UTF-8 with another encoding."""
    if text.isascii():
        return False
    if SURE.search(text):
        return True
    return (
        sum(1 for _ in zip(_SEQUENCE.finditer(text), range(MIN_RECURRING_SEQUENCES), strict=False))
        == MIN_RECURRING_SEQUENCES
    )


# What is wrong with text as it was written, before it is rendered and tokenized: rows, and what they show in words.
#
# A tokenizer turns all of this into ordinary ids, so it can be seen only here.


MIN_SHARE_OF_CONVERSATIONS = 0.5
"""Share of the conversations above which a shared form is not an accident, as one quoted marker is. Chosen by hand."""
MIN_REPEATED_CHATS = 2
ANSWERS = ("completion", "chosen", "response", "output", "answer", "solution")
"""Columns of text that the model is to write. A rejected one may be cut off on purpose."""
MAX_COMMON_ANSWER_CHARACTERS = 100
"""Characters above which it is not an accident that many answers are of the same length, to the character."""
MIN_CUT_ANSWERS_SHARE = 0.05
"""Share of the answers that end there. Both chosen by hand: natural lengths hardly ever agree at the greatest one."""
EXCHANGED = "open with the assistant's turn and end with the user's"
OF_SOME = ".some"
"""Stands behind the check where it is so of some rows and not of most."""
MIN_ROWS_ANSWERED = 4
"""Rows that are no accident. Chosen: fewer may be short answers that repeat the end of the question."""
MIN_SHARE_ANSWERED = 0.9
"""Share of the rows whose prompt ends with the answer. Chosen: of options in a prompt, the last is seldom right."""
MIN_WORDS_ANSWERED = 8
MIN_SHARE_OF_LONG = 0.05
"""Words of a long answer, and the share of rows that end with one. Chosen: passages seldom end with the answer."""
_FINISHED = re.compile(r"[.!?…。！？:;)\]}\"'”’»`>|*]\s*$")
_REASONING = re.compile(r"\s*<(think|thinking|thought|reasoning|scratchpad)>")
_OPENING = ("user", ASSISTANT)
_TextProblem = tuple[str, str, list[int]]
"""A check, what it reports, and the places of the rows in the table."""


def written_problems(table: Table, tokenizer: Tokenizer | None, first: int) -> Iterator[Problem]:
    """Yield what the text of a table shows, whose first row has the number `first`, and what of it is lost."""
    for check, summary, places in chain(
        _text_problems(table),
        _chat_problems(table, tokenizer),
        _lost_text(table, tokenizer),
        _other_ids(table, tokenizer),
    ):
        if places:
            yield Problem.at(check, summary, places, table, first)


def _text_problems(table: Table) -> Sequence[_TextProblem]:
    texts = _texts_of(table)
    exchanged = _each_chat(texts, _is_exchanged)
    of_some = exchanged != _common(texts, _is_exchanged)
    return (
        ("garbled_text", "", _rows(texts, _is_garbled)),
        ("truncated_completion", "open the reasoning of the answer and never close it", _rows(texts, _breaks_off)),
        ("truncated_completion", "end unfinished at the same greatest length of the answers", _cut(texts)),
        ("wrong_role_in_loss", EXCHANGED, exchanged if not of_some else []),
        ("wrong_role_in_loss" + OF_SOME, f"{EXCHANGED}, unlike the others", exchanged if of_some else []),
        ("target_equals_source", "", _answered_in_prompt(texts)),
        ("prompt_missing", "", _asking_apart(texts)),
        ("tool_call_invalid", "", _each_chat(texts, breaks_calls)),
        ("image_tokens_truncated", "", _unplaced(table)),
        ("schema_mismatch", f"some rows have not one label for each step of {STEPS}", _unequal_steps(table)),
        ("chat_template_mismatch", "have role markers inside the words of their turns", _common(texts, _is_marked)),
    )


def _unequal_steps(table: Table) -> list[int]:
    """Return the places of the rows with more or fewer labels than steps."""
    rows = step_marks(table) or []
    return [place for place, (steps, labels) in enumerate(rows) if len(steps) != len(labels)]


def _texts_of(table: Table) -> Texts:
    """Return the columns that hold strings or conversations."""
    columns = {name: column for name, column in table.columns.items() if isinstance(column, list)}
    first = {name: next(filter(None, column), None) for name, column in columns.items()}
    return {
        name: column
        for name, column in columns.items()
        if isinstance(value := first[name], str) or (isinstance(value, list) and isinstance(value[0], dict))
    }


def _rows(texts: Texts, judge: Callable[[str, object], bool]) -> list[int]:
    """Return the places of the rows where some column is judged so."""
    found = {
        place for name, column in texts.items() for place, value in enumerate(column) if value and judge(name, value)
    }
    return sorted(found)


def _common(texts: Texts, judge: Callable[[Messages], bool]) -> list[int]:
    """Return the places of the conversations that are judged so, if most of a column are."""
    for column in texts.values():
        chats = list(_conversations(column))
        places = [place for place, chat in chats if judge(chat)]
        if len(places) >= max(MIN_REPEATED_CHATS, MIN_SHARE_OF_CONVERSATIONS * len(chats)):
            return places
    return []


def _asking_apart(texts: Texts) -> list[int]:
    """Return the places of the pairs whose sides answer different questions."""
    if "prompt" in texts:
        return []
    pairs = enumerate(zip(texts.get("chosen", ()), texts.get("rejected", ()), strict=False))
    return [place for place, pair in pairs if asks_apart(*pair)]


def _each_chat(texts: Texts, judge: Callable[[Messages], bool]) -> list[int]:
    found = {place for column in texts.values() for place, chat in _conversations(column) if judge(chat)}
    return sorted(found)


def _unplaced(table: Table) -> list[int]:
    """Return the places of the conversations that name more or fewer images than their rows have."""
    chats, images = (next(_lists(table, names), None) for names in (CHATS, _IMAGES))
    return [] if chats is None or images is None else missing_placeholders(chats, images)


def _lists(table: Table, names: Iterable[str]) -> Iterator[list[object]]:
    """Yield the columns of these names that are lists of values."""
    yield from (column for name in names if isinstance(column := table.columns.get(name), list))


def _conversations(column: Iterable[object]) -> Iterator[tuple[int, Messages]]:
    """Yield the conversations of a column with their places; other values are left out."""
    yield from ((place, chat) for place, chat in enumerate(map(messages, column)) if chat)


def _is_garbled(_: str, value: object) -> bool:
    return any(map(is_garbled, strings_in(value)))


def strings_in(value: object) -> Iterator[str]:
    """Yield the texts of a value: of a message its content and reasoning, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from strings_in(part)
    elif isinstance(value, dict):
        for name in ("content", "value", "text", "reasoning_content"):
            yield from strings_in(value.get(name))


def _breaks_off(name: str, value: object) -> bool:
    """Return whether an answer opens its reasoning and ends before it closes it."""
    if isinstance(value, str):
        return name in ANSWERS and _is_open(value)
    chats = () if name in ("rejected", "prompt") else tuple(_conversations([value]))
    answers = (mapping.get("content") for _, chat in chats for mapping in chat if mapping.get("role") == ASSISTANT)
    return any(isinstance(words, str) and _is_open(words) for words in answers)


def _cut(texts: Texts) -> list[int]:
    """Return the places of the answers that a number of characters cut off."""
    for name, column in texts.items():
        answers = [(place, words) for place, words in _answers(name, column) if words.strip()]
        if not answers:
            continue
        longest = max(len(words) for _, words in answers)
        at = [(place, words) for place, words in answers if len(words) == longest]
        cut = [place for place, words in at if not _FINISHED.search(words)]
        enough = max(5, MIN_CUT_ANSWERS_SHARE * len(answers))
        many = len(at) >= enough and len(cut) >= MIN_SHARE_OF_CONVERSATIONS * len(at)
        if longest >= MAX_COMMON_ANSWER_CHARACTERS and many:
            return cut
    return []


def _answers(name: str, column: list[object]) -> Iterator[tuple[int, str]]:
    """Yield the last words of the model in each row."""
    if name in ANSWERS:
        yield from _strings(column)
    for place, chat in _conversations(column) if name not in ("rejected", "prompt") else ():
        words = chat[-1].get("content")
        if isinstance(words, str) and chat[-1].get("role") == ASSISTANT:
            yield place, words


def _is_open(words: str) -> bool:
    tag = _REASONING.match(words)
    # A tag with nothing behind it opens the answer that is to be generated.
    return tag is not None and f"</{tag[1]}" not in words and bool(words[tag.end() :].strip())


def _is_exchanged(chat: Messages) -> bool:
    roles = [mapping.get("role") for mapping in chat if mapping.get("role") in _OPENING]
    return len(roles) > 1 and (roles[0], roles[-1]) == (ASSISTANT, "user")


def _strings(column: Iterable[object]) -> Iterator[tuple[int, str]]:
    """Yield the texts of a column with their places."""
    yield from ((place, value) for place, value in enumerate(column) if isinstance(value, str))


def _answered_in_prompt(texts: Texts) -> list[int]:
    """Return the places of the rows whose prompt ends with the whole answer, if answers differ.

    Of short answers nearly all have to; of long ones some, where the other rows are not asked to correct a text.
    """
    asked = [(place, *pair) for place, pair in _asked_and_answered(texts) if all(pair)]
    found = [(place, answer) for place, prompt, answer in asked if re.search(rf"\W{re.escape(answer)}\Z", prompt)]
    ends = {place for place, _ in found}
    long = [place for place, answer in found if len(answer.split()) >= MIN_WORDS_ANSWERED]
    others = [(set(answer.split()), prompt.split()) for place, prompt, answer in asked if place not in ends]
    corrected = sum(2 * len(words.intersection(prompt)) >= len(words) for words, prompt in others)
    some = len(long) >= MIN_SHARE_OF_LONG * len(asked) and 2 * corrected <= len(others)
    least = max(MIN_ROWS_ANSWERED, 0 if some else MIN_SHARE_ANSWERED * len(asked))
    return sorted(ends) if len(ends) >= least and len({words for _, words in found}) > 1 else []


def _asked_and_answered(texts: Texts) -> Iterator[tuple[int, tuple[str, str]]]:
    """Yield the last words before the answer of each row, and the answer: of columns, or of a conversation's turns."""
    names = next((pair for pair in (("prompt", "completion"), *ASKED_AND_SAID) if texts.keys() >= set(pair)), None)
    if names is not None:
        given = texts.get("input", []) if names[0] == "instruction" else []
        for place, pair in enumerate(zip_longest(*(texts[name] for name in names), given)):
            yield place, (_last_words(pair[2]) or _last_words(pair[0]), _last_words(pair[1]))
        return
    for name in CHATS:
        for place, chat in _conversations(texts.get(name, ())):
            if len(chat) > 1 and chat[-1].get("role") == ASSISTANT:
                yield place, (_last_words(chat[:-1]), _last_words(chat[-1:]))


def _last_words(value: object) -> str:
    """Return the end of a text, or of the last message of a conversation."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        last = value[-1] if value else None
        value = last.get("content") if isinstance(last, Mapping) else None
    return value.strip() if isinstance(value, str) else ""


def _is_marked(chat: Messages) -> bool:
    return any(
        isinstance(words := mapping.get("content"), str) and mapping.get("role") in _OPENING and marker_before(words)
        for mapping in chat
    )


# What a chat template or a pair of texts loses: tool calls, answers, the positives that share a prompt.


MAX_RENDERED = 64
"""Conversations that are rendered: a template drops calls of all rows or of none. Chosen."""
COMPARED_CHARACTERS = 40
"""Characters of a system message, or of a part of a text, that are looked for in the rendered text."""
MIN_SHARE_OF_ONE_POSITIVE = 0.1
"""Share of the pairs with the same positive from which a usual batch holds it twice. Chosen."""
MIN_PAIRS = 8
"""Pairs with one positive that are no accident. Chosen."""
THINKING = re.compile(r"<(?:think|thinking|thought|reasoning)>")
_OPENS_THINKING = re.compile(r"\s*<(?:think|thinking|thought|reasoning)>")
MIN_SHARE_EMPTY = 0.9
"""Share of the texts with blocks of reasoning in which all are empty. Chosen: mixed data hold both on purpose."""
_EVERY_BLOCK_EMPTY = "every block of reasoning is empty"
EMPTY_THINKING = re.compile(r"<(think|thinking|thought|reasoning)>\s{0,20}</\1>")
Chats = Sequence[tuple[int, Messages]]


def _chat_problems(table: Table, tokenizer: Tokenizer | None) -> Iterator[_TextProblem]:
    """Yield what the conversations and pairs of a table show."""
    yield from _pairs(table)
    yield from _empty_sides(table)
    chats = chats_of(table)
    given = [place for tools in _lists(table, ("tools",)) for place, row_tools in enumerate(tools) if row_tools]
    silent = [place for place, chat in chats if any(map(_says_nothing, chat))]
    yield "empty_row", "an assistant's turn is empty: the model learns to end at once", silent
    for check, summary, places in _rendering(chats, tokenizer, given):
        looked = MAX_RENDERED if len(places) <= MAX_RENDERED else len(chats)
        yield check, summary + _of_first(looked, len(chats)), places
    yield from _empty_reasoning(table)


def _of_first(looked: int, conversations: int) -> str:
    """Return the words for a summary that only the first conversations were looked at; nothing where all were."""
    return f" (seen in the first {looked:,} conversations; the others were left out)" if conversations > looked else ""


def chats_of(table: Table) -> Chats:
    """Return the conversations of a table, a prompt together with what answers it."""
    columns = list(islice(_lists(table, CHATS), 1))
    if not columns:
        answers = [name for name in ("completion", "chosen") if name in table.columns][:1]
        columns = list(_lists(table, ("prompt", *answers)))
    return [
        (place, chat)
        for place, parts in enumerate(zip(*columns, strict=False))
        if (chat := [message for part in parts for message in messages(part)])
    ]


def _empty_reasoning(table: Table) -> Iterator[_TextProblem]:
    """Yield the answers that are plain text and begin with an empty block of reasoning, if nearly all with one do."""
    for column in _lists(table, ANSWERS):
        texts = list(_strings(column))
        opened = [(place, text) for place, text in texts if _OPENS_THINKING.match(text)]
        empty = [place for place, text in opened if EMPTY_THINKING.match(text.lstrip())]
        if empty and 2 * len(opened) > len(texts) and len(empty) >= MIN_SHARE_EMPTY * len(opened):
            yield "empty_thinking", _EVERY_BLOCK_EMPTY, empty


def _empty_sides(table: Table) -> Iterator[_TextProblem]:
    """Yield the preference pairs where an answer, written as a conversation, is empty."""
    empty = {
        side: [place for column in _lists(table, (side,)) for place, chat in _conversations(column)
               if _says_nothing(chat[-1])]
        for side in ("chosen", "rejected")
    }  # fmt: skip
    names = [side for side, places in empty.items() if places]
    places = sorted({place for side in names for place in empty[side]})
    yield "empty_row", f"the {' and the '.join(names)} answer is empty", places


def _says_nothing(message: Mapping[str, object]) -> bool:
    """Return whether an assistant's turn says nothing and calls nothing."""
    if message.get("role") != ASSISTANT or message.get("tool_calls") or message.get("function_call"):
        return False
    content = message.get("content") or ""
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
        content = "".join(map(str, texts)) if len(texts) == len(content) else "not text"
    return isinstance(content, str) and not content.strip() and not message.get("reasoning_content")


def _rendering(chats: Chats, tokenizer: Tokenizer | None, given: list[int]) -> Iterator[_TextProblem]:
    template = None if tokenizer is None else tokenizer.chat_template
    texts = [(place, chat, rendered_text(chat, tokenizer)) for place, chat in chats[:MAX_RENDERED]]
    opened = [place for place, _, text in texts if THINKING.search(text)]
    thinking = [place for place, chat, text in texts if _only_empty_thinking(chat, text)]
    if thinking and 2 * len(thinking) > len(texts) and len(thinking) >= MIN_SHARE_EMPTY * len(opened):
        yield "empty_thinking", _EVERY_BLOCK_EMPTY, thinking
    if template is None:
        return
    silent = [place for place, chat, text in texts if text and any(words not in text for words in _instructions(chat))]
    yield "system_prompt_dropped", "the chat template does not render the system message", silent
    dropped = [place for place, chat, text in texts if text and any(name not in text for name in _called(chat))]
    if dropped:
        turns = [message for _, chat, _ in texts for message in chat if message.get("role") == ASSISTANT]
        calls = sum(any(True for _ in _called([message])) for message in turns)
        lost = "" if not given or "tools" in template else "; the column tools is not rendered either"
        yield (
            "tool_calls_dropped",
            f"the chat template does not render tool_calls: {calls} of {len(turns)} assistant turns lose them{lost}",
            dropped,
        )
    elif not re.search(r"\btools\b", template):
        yield "tool_calls_dropped", "the chat template does not render the column tools", given


def rendered_text(chat: Messages, tokenizer: Tokenizer | None) -> str:
    """Return a conversation as the template renders it; without one, as it is written; empty where it fails."""
    if tokenizer is None or tokenizer.chat_template is None:
        return "\n".join(str(message.get("content", "")) for message in chat)
    try:
        return tokenizer.render(chat)
    except BaseException as error:
        if not is_failure(error):
            raise
        return ""


def _only_empty_thinking(chat: Messages, text: str) -> bool:
    """Return whether each answer's block of reasoning is empty, as many as there are answers."""
    answers = sum(message.get("role") == ASSISTANT for message in chat)
    blocks = len(THINKING.findall(text))
    return answers > 0 and blocks > 0 and len(EMPTY_THINKING.findall(text)) == blocks


def _instructions(chat: Messages) -> Iterator[str]:
    """Yield how each system message begins; templates leave out at most the spaces around it."""
    for message in chat:
        content = message.get("content")
        if message.get("role") in ("system", "developer") and isinstance(content, str) and content.strip():
            yield content.strip()[:COMPARED_CHARACTERS]


def _called(chat: Messages) -> Iterator[str]:
    """Yield the names of the functions that the messages call."""
    for message in chat:
        calls = message.get("tool_calls")
        older = message.get("function_call")
        for call in [*(calls if isinstance(calls, list) else []), *([older] if older else [])]:
            function = call.get("function", call) if isinstance(call, dict) else None
            name = function.get("name") if isinstance(function, dict) else None
            if isinstance(name, str) and name:
                yield name


def _pairs(table: Table) -> Iterator[_TextProblem]:
    """Yield the pairs for embeddings that share their positive, or whose two texts are the same."""
    names = next((group[:2] for group in CONTRASTED if set(group[:2]) <= table.columns.keys()), None)
    if names is None:
        return
    columns = list(_lists(table, names))
    pairs = enumerate(zip(*columns, strict=False) if len(columns) == len(names) else ())
    texts = [
        (place, pair[0].strip(), pair[1].strip())
        for place, pair in pairs
        if isinstance(pair[0], str) and isinstance(pair[1], str)
    ]
    counts = Counter(positive for _, _, positive in texts)
    shared = {text for text, n in counts.items() if n >= max(MIN_PAIRS, MIN_SHARE_OF_ONE_POSITIVE * len(texts))}
    if shared:
        places = [place for place, _, positive in texts if positive in shared]
        anchors_of_them = {anchor for _, anchor, positive in texts if positive in shared}
        if len(anchors_of_them) > len(shared):
            yield "positives_shared", f"{len(places)} pairs share {len(shared)} positive text(s)", places
    same = [place for place, anchor, positive in texts if anchor == positive and anchor]
    yield "anchor_equals_positive", f"{len(same)} of {len(texts)} pairs", same


# Token ids next to the text that they were made of.


TEXT_OF_IDS = ("text", "content", "document")
"""Columns of the text that ids were made of."""
MIN_ROWS_OF_OTHER_IDS = 3
"""Rows whose ids are of another text. Chosen: one or two may be damaged."""
COMPARED_TOKENS = 32
"""Tokens at the beginning of a row that are compared. Chosen: a sentence."""
MIN_SHARE_OF_SAME_TOKENS = 0.5
"""Share of them that a row's own text gives again. Chosen: a cleaned or cut text keeps most of its words."""


def _other_ids(table: Table, tokenizer: Tokenizer | None) -> Iterator[_TextProblem]:
    """Yield the rows from whose text this tokenizer makes other ids, where it makes those of most rows."""
    name = find(table.columns, "", "ids")
    texts = next((table.columns[column] for column in TEXT_OF_IDS if column in table.columns), None)
    ids = None if name is None else ragged_or_none(table.columns[name])
    if tokenizer is None or ids is None or not isinstance(texts, list) or len(texts) != ids.rows:
        return
    every = range(0, ids.rows, max(1, -(-ids.rows // MAX_COMPARED)))
    places = [place for place in every if isinstance(texts[place], str) and texts[place]]
    other = [place for place in places if not _are_ids_of(str(texts[place]), ids.row(place).tolist(), tokenizer)]
    if MIN_ROWS_OF_OTHER_IDS <= len(other) <= MIN_SHARE_OF_CONVERSATIONS * len(places):
        summary = f"this tokenizer makes other ids from the text of {len(other)} of {len(places)} rows compared"
        yield "tokenizer_mismatch", summary, other


def _are_ids_of(text: str, ids: Sequence[int], tokenizer: Tokenizer) -> bool:
    """Return whether most ids at the beginning of a row are those of a text, or make it again."""
    mine = [number for number in ids if number not in tokenizer.special_ids][:COMPARED_TOKENS]
    wanted = tokenizer.encode(text[: len(mine) * MAX_CHARACTERS_OF_TOKEN], special=False)
    same = sum((Counter(mine) & Counter(wanted[: len(mine)])).values())
    if same >= MIN_SHARE_OF_SAME_TOKENS * len(mine):
        return True
    here = "".join(text.split()).casefold()
    there = "".join(tokenizer.text(ids[: MAX_COMPARED_TOKENS * COMPARED_TOKENS]).split()).casefold()
    return here[:COMPARED_TOKENS] in there or there[:COMPARED_TOKENS] in here


MAX_COMPARED_TOKENS = 32
"""Times as many tokens in which the beginning of the text is sought, behind a template or an instruction. Chosen."""
MAX_CHARACTERS_OF_TOKEN = 32
"""Characters of a token. Chosen: longer ones are rare."""


# What of the text as it was written does not reach the model: parts of messages, a first indent, characters.


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


def _lost_text(table: Table, tokenizer: Tokenizer | None) -> Iterator[_TextProblem]:
    """Yield what a chat template or tokenizer leaves out of the text of a table."""
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
                looked = MAX_COMPARED if len({loss.place for loss in losses}) == MAX_COMPARED else len(chats)
                summary = found[0].summary + _of_first(looked, len(chats))
                yield check + behind, summary, sorted({loss.place for loss in found})


def _exchanges(table: Table) -> Chats:
    """Return the conversations that a question and an answer in columns of their own are taken for."""
    for asked, answered in ASKED_AND_SAID:
        questions, answers = table.columns.get(asked), table.columns.get(answered)
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
    for place, chat, parts in _chats_with_findings(chats, _texts_in_parts):
        text = rendered_text(chat, tokenizer)
        for is_answer, words in parts if text else ():
            shown = repr(shorten(words.strip(), MAX_EXAMPLE))
            mark = next((mark for mark in _WRITTEN_OUT if mark in text and mark not in words), "")
            if mark:
                start = max(text.rfind(mark, 0, max(text.find(words), 0)), text.find(mark))
                written = shorten(text[start : start + 2 * MAX_EXAMPLE].strip(), MAX_EXAMPLE)
                yield _Loss(place, is_answer, f"the chat template writes the list of parts out: {shown} as {written}")
            elif words.strip()[:COMPARED_CHARACTERS] not in text:
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
    for place, chat, indented in _chats_with_findings(chats, _indented):
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


def _chats_with_findings(
    chats: Chats, look: Callable[[Messages], list[_Item]]
) -> Iterator[tuple[int, Messages, list[_Item]]]:
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
    for name in sorted(_TRAINED | _READ):
        for column in _lists(table, (name,)):
            yield from ((place, name in _TRAINED, text) for place, text in _strings(column))
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
