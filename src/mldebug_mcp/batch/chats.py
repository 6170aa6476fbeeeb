"""One conversation → a row of tokens, with the assistant's turns trained on.

If the template has {% generation %} marks, these decide; otherwise each turn is found by rendering the conversation up
to it, as TRL and Axolotl do.
"""

from __future__ import annotations

from dataclasses import dataclass

from mldebug_mcp.batch.sequences import IGNORE
from mldebug_mcp.batch.templates import ASSISTANT
from mldebug_mcp.batch.words import Encoder

_SPEAKERS = {
    "human": "user",
    "user": "user",
    "gpt": ASSISTANT,
    "assistant": ASSISTANT,
    "model": ASSISTANT,
    "system": "system",
}


_OTHER_WORDS = ("Qone", "~", "7")
"""Words that no answer has in common with all of its beginning: what stands before them is the template's."""


class NotAConversationError(ValueError):
    """A row's messages do not form a conversation. The message says why."""


@dataclass(frozen=True, slots=True)
class Row:
    """A tokenized row and, where it is known, what is trained on."""

    ids: list[int]
    trained: list[bool] | None = None

    @property
    def labels(self) -> list[int]:
        """The labels: every token that is not known to be masked."""
        if self.trained is None:
            return self.ids
        return [token if use else IGNORE for token, use in zip(self.ids, self.trained, strict=True)]


def messages_of(value: object) -> list[dict[str, object]]:
    """Return a conversation as messages with role and content; ShareGPT's from and value are taken too."""
    if not isinstance(value, list) or not value:
        raise NotAConversationError("holds no list of messages")
    found: list[dict[str, object]] = []
    for message in value:
        if not isinstance(message, dict):
            raise NotAConversationError("a message is not an object")
        if "role" in message:
            found.append({key: one for key, one in message.items() if one is not None})
        elif "from" in message and "value" in message:
            speaker = str(message["from"])
            found.append({"role": _SPEAKERS.get(speaker, speaker), "content": message["value"]})
        else:
            raise NotAConversationError("a message has neither role and content nor from and value")
    return found


def rendered(messages: list[dict[str, object]], tokenizer: Encoder, *, prompt: bool = False) -> list[int]:
    """Return a conversation as the tokens that the chat template makes of it; `prompt` asks for the answer's marker."""
    if tokenizer.chat_template is None:
        raise NotAConversationError("the tokenizer has no chat template to render messages with")
    return tokenizer.encode(tokenizer.render(messages, add_generation_prompt=prompt), special=False)


def conversation_row(value: object, tokenizer: Encoder) -> Row:
    """Return a conversation rendered and tokenized, with the assistant's turns trained on.

    Raises NotAConversationError if the messages do not form one.
    """
    if value is None or value == []:
        return Row([], [])
    messages = messages_of(value)
    ids = rendered(messages, tokenizer)
    marked = tokenizer.generation_mask(messages)
    if marked is not None and len(marked) == len(ids):
        return Row(ids, marked)
    trained = [False] * len(ids)
    for number, message in enumerate(messages):
        if message.get("role") != ASSISTANT:
            continue
        before = (
            len(shared(rendered(messages[:number], tokenizer, prompt=True), ids)) if number else _header(tokenizer, ids)
        )
        after = len(shared(rendered(messages[: number + 1], tokenizer), ids))
        trained[before:after] = [True] * (after - before)
    return Row(ids, trained)


def _header(tokenizer: Encoder, ids: list[int]) -> int:
    """Return how many tokens stand before the words of an assistant who speaks first."""
    others = [rendered([{"role": ASSISTANT, "content": words}], tokenizer) for words in _OTHER_WORDS]
    return min(len(shared(other, ids)) for other in others)


def shared(one: list[int], two: list[int]) -> list[int]:
    """Return what two rows begin with."""
    least = min(len(one), len(two))
    return one[: next((place for place in range(least) if one[place] != two[place]), least)]
