"""What a chat template or a pair of texts loses: tool calls that are not rendered, empty answers, shared positives."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from mldebug_mcp.batch.batch import Problem
from mldebug_mcp.batch.columns import CONTRASTED
from mldebug_mcp.batch.table import Table
from mldebug_mcp.batch.templates import ASSISTANT
from mldebug_mcp.batch.text_problems import ANSWERS, CHATS, messages, problem_at
from mldebug_mcp.batch.tokenizer import Tokenizer
from mldebug_mcp.core.errors import is_failure

MAX_RENDERED = 64
"""Conversations that are rendered: a template drops calls of all rows or of none. Chosen."""
COMPARED = 40
"""Characters of a system message that are looked for in the rendered text."""
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

_Chats = Sequence[tuple[int, Sequence[Mapping[str, object]]]]


def chat_problems(table: Table, tokenizer: Tokenizer | None, first: int = 0) -> Iterator[Problem]:
    """Yield what the conversations and pairs of a table show, whose first row has the number `first`."""
    found = [*_pairs(table), *_empty_sides(table)]
    chats = _conversations(table)
    tools = table.columns.get("tools")
    given = [place for place, row_tools in enumerate(tools) if row_tools] if isinstance(tools, list) else []
    found += [*_empty_answers(chats), *_rendering(chats, tokenizer, given), *_empty_reasoning(table)]
    for check, summary, places in found:
        yield problem_at(check, summary, places, table, first)


_Found = tuple[str, str, list[int]]


def _conversations(table: Table) -> _Chats:
    """Return the conversations of a table, a prompt together with what answers it."""
    names = [name for name in CHATS if isinstance(table.columns.get(name), list)][:1]
    if not names:
        answers = [name for name in ("completion", "chosen") if name in table.columns][:1]
        names = [name for name in ("prompt", *answers) if isinstance(table.columns.get(name), list)]
    columns = [table.columns[name] for name in names]
    rows = zip(*(column for column in columns if isinstance(column, list)), strict=False)
    return [
        (place, chat)
        for place, parts in enumerate(rows)
        if (chat := [message for part in parts for message in messages(part)])
    ]


def _empty_reasoning(table: Table) -> Iterator[_Found]:
    """Yield the answers that are plain text and begin with an empty block of reasoning, if nearly all with one do."""
    for name in ANSWERS:
        column = table.columns.get(name)
        texts = (
            [(place, text) for place, text in enumerate(column) if isinstance(text, str)]
            if isinstance(column, list)
            else []
        )
        opened = [(place, text) for place, text in texts if _OPENS_THINKING.match(text)]
        empty = [place for place, text in opened if EMPTY_THINKING.match(text.lstrip())]
        if empty and 2 * len(opened) > len(texts) and len(empty) >= MIN_SHARE_EMPTY * len(opened):
            yield "empty_thinking", _EVERY_BLOCK_EMPTY, empty


def _empty_answers(chats: _Chats) -> Iterator[_Found]:
    """Yield the conversations in which an assistant's turn says nothing and calls nothing."""
    places = [place for place, chat in chats if any(map(_says_nothing, chat))]
    if places:
        yield "empty_row", "an assistant's turn is empty: the model learns to end at once", places


def _empty_sides(table: Table) -> Iterator[_Found]:
    """Yield the preference pairs where an answer, written as a conversation, is empty."""
    empty = {}
    for side in ("chosen", "rejected"):
        column = table.columns.get(side)
        chats = enumerate(map(messages, column)) if isinstance(column, list) else ()
        empty[side] = [place for place, chat in chats if chat and _says_nothing(chat[-1])]
    names = [side for side, places in empty.items() if places]
    if names:
        places = sorted({place for side in names for place in empty[side]})
        yield "empty_row", f"the {' and the '.join(names)} answer is empty", places


def _says_nothing(message: Mapping[str, object]) -> bool:
    if message.get("role") != ASSISTANT or message.get("tool_calls") or message.get("function_call"):
        return False
    content = message.get("content") or ""
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
        content = "".join(map(str, texts)) if len(texts) == len(content) else "not text"
    return isinstance(content, str) and not content.strip() and not message.get("reasoning_content")


def _rendering(chats: _Chats, tokenizer: Tokenizer | None, given: list[int]) -> Iterator[_Found]:
    template = None if tokenizer is None else tokenizer.chat_template
    texts = [(place, chat, _text(chat, tokenizer)) for place, chat in chats[:MAX_RENDERED]]
    opened = [place for place, _, text in texts if THINKING.search(text)]
    thinking = [place for place, chat, text in texts if _only_empty_thinking(chat, text)]
    if thinking and 2 * len(thinking) > len(texts) and len(thinking) >= MIN_SHARE_EMPTY * len(opened):
        yield "empty_thinking", _EVERY_BLOCK_EMPTY, thinking
    if template is None:
        return
    silent = [place for place, chat, text in texts if text and any(words not in text for words in _instructions(chat))]
    if silent:
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
    elif given and not re.search(r"\btools\b", template):
        yield "tool_calls_dropped", "the chat template does not render the column tools", given


def _text(chat: Sequence[Mapping[str, object]], tokenizer: Tokenizer | None) -> str:
    """Return a conversation as the template renders it; without one, as it is written; empty where it fails."""
    if tokenizer is None or tokenizer.chat_template is None:
        return "\n".join(str(message.get("content", "")) for message in chat)
    try:
        return tokenizer.render(chat)
    except BaseException as error:
        if not is_failure(error):
            raise
        return ""


def _only_empty_thinking(chat: Sequence[Mapping[str, object]], text: str) -> bool:
    """Return whether each answer's block of reasoning is empty, as many as there are answers."""
    answers = sum(message.get("role") == ASSISTANT for message in chat)
    blocks = len(THINKING.findall(text))
    return answers > 0 and blocks > 0 and len(EMPTY_THINKING.findall(text)) == blocks


def _instructions(chat: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """Yield how each system message begins; templates leave out at most the spaces around it."""
    for message in chat:
        content = message.get("content")
        if message.get("role") in ("system", "developer") and isinstance(content, str) and content.strip():
            yield content.strip()[:COMPARED]


def _called(chat: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """Yield the names of the functions that the messages call."""
    for message in chat:
        calls = message.get("tool_calls")
        older = message.get("function_call")
        for call in [*(calls if isinstance(calls, list) else []), *([older] if older else [])]:
            function = call.get("function", call) if isinstance(call, dict) else None
            name = function.get("name") if isinstance(function, dict) else None
            if isinstance(name, str) and name:
                yield name


def _pairs(table: Table) -> Iterator[_Found]:
    """Yield the pairs for embeddings that share their positive, or whose two texts are the same."""
    names = next((group[:2] for group in CONTRASTED if set(group[:2]) <= table.columns.keys()), None)
    if names is None:
        return
    anchors, positives = (table.columns[name] for name in names)
    if not isinstance(anchors, list) or not isinstance(positives, list):
        return
    texts = [
        (place, str(anchor).strip(), str(positive).strip())
        for place, (anchor, positive) in enumerate(zip(anchors, positives, strict=False))
        if isinstance(anchor, str) and isinstance(positive, str)
    ]
    counts = Counter(positive for _, _, positive in texts)
    shared = {text for text, n in counts.items() if n >= max(MIN_PAIRS, MIN_SHARE_OF_ONE_POSITIVE * len(texts))}
    if shared:
        places = [place for place, _, positive in texts if positive in shared]
        anchors_of_them = {anchor for _, anchor, positive in texts if positive in shared}
        if len(anchors_of_them) > len(shared):
            yield "positives_shared", f"{len(places)} pairs share {len(shared)} positive text(s)", places
    same = [place for place, anchor, positive in texts if anchor == positive and anchor]
    if same:
        yield "anchor_equals_positive", f"{len(same)} of {len(texts)} pairs", same
