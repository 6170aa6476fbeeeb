"""Text becomes tokens as the trainer would make them, with chat template, completion masks and end tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from mldebug_mcp.batch.columns import (
    ASKED,
    ASKED_AND_SAID,
    CLASS_NAMES,
    CONTRASTED,
    MARGIN,
    MARKS,
    RAW,
    REFERENCES,
    SCORES,
    VALUES_LOOKED_AT,
    Column,
    Table,
    depth,
    first_value,
    has_known_texts,
    holds_classes,
    holds_text,
    marks,
    row_count,
    running_texts,
    score_names,
)
from mldebug_mcp.batch.roles import Encoder, Words
from mldebug_mcp.batch.sequences import Ragged
from mldebug_mcp.batch.templates import ASSISTANT
from mldebug_mcp.core.conventions import IGNORED_LABEL
from mldebug_mcp.core.errors import InputError, is_failure
from mldebug_mcp.core.text import shorten

# One conversation → a row of tokens, with the assistant's turns trained on.
#
# If the template has {% generation %} marks, these decide; otherwise each turn is found by rendering the conversation
# up to it, as TRL and Axolotl do.


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
        return [token if use else IGNORED_LABEL for token, use in zip(self.ids, self.trained, strict=True)]


def messages_of(value: object) -> list[dict[str, object]]:
    """Return a conversation as messages with role and content; ShareGPT's from and value are taken too."""
    if not isinstance(value, list) or not value:
        raise NotAConversationError("holds no list of messages")
    found: list[dict[str, object]] = []
    for message in value:
        if not isinstance(message, dict):
            raise NotAConversationError("a message is not an object")
        if "role" in message:
            found.append({key: content for key, content in message.items() if content is not None})
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


def shared(ids: list[int], other: list[int]) -> list[int]:
    """Return what two rows begin with."""
    least = min(len(ids), len(other))
    return ids[: next((place for place in range(least) if ids[place] != other[place]), least)]


# Text → tokens as the trainer would make them: chat template, completion masks, an end token where TRL adds one.


Message = Mapping[str, object]
CHATS = ("messages", "conversations", "conversation")
"""Columns of conversations."""


def tokenize(table: Table, tokenizer: Encoder, purpose: str | None) -> Table:
    """Return the table with token ids and labels in place of its text.

    Raises:
        InputError: the columns or the rows have a form that no trainer takes, or the chat template fails.
    """
    names = {name for name, column in table.columns.items() if holds_text(column)}
    if (made := _of_rewards(table, names, tokenizer)) is not None:
        return made
    if not has_known_texts(names):
        return _running_texts(table, tokenizer, purpose)
    if {"chosen", "rejected"} <= names:
        return _preferences(table, tokenizer)
    if contrasted := next((group for group in CONTRASTED if set(group[:2]) <= names), None):
        apart = [name for name in contrasted if name in names]
        return _encoded_columns(
            table, apart, tokenizer, f"took {', '.join(apart)} each on its own, as sentence-transformers does"
        )
    if names & RAW == {"text"} and (labels := _classes(table, "text")) and purpose in (None, "classification"):
        rows = _built_rows(table, ("text",), lambda row: Row(tokenizer.encode(_words(row["text"]))))
        return _encoded_table(table, {"input_ids": [row.ids for row in rows]}, "took the text with its classes", labels)
    make, how = _maker(names, tokenizer)
    return _answers(table, names, make, how, purpose)


def _answers(table: Table, names: set[str], make: Callable[[Message], Row], how: str, purpose: str | None) -> Table:
    """Return rows with answers, and what marks or rates these."""
    rows = _built_rows(table, tuple(names), make)
    if (strange := _strange_roles(table)) and not any(any(row.trained or ()) for row in rows):
        how += f"; no turn is the assistant's: the roles are {strange}"
    columns = {"input_ids": [row.ids for row in rows]}
    if purpose in (None, "kto") and (marked := _marks(table, names)) is not None:
        name, wanted = marked
        columns["completion_mask"] = [[int(use) for use in row.trained or [True] * len(row.ids)] for row in rows]
        made = _encoded_table(table, columns, f"{how}; {name} marks which completions are desired, as for KTO")
        return replace(made, columns={**made.columns, "label": wanted})
    if rating := _rating(table):
        how += rating
    if purpose != "generation":
        columns["labels"] = [row.labels for row in rows]
    return _encoded_table(table, columns, how)


def _of_rewards(table: Table, names: set[str], tokenizer: Encoder) -> Table | None:
    """Return prompts that wait for an answer, or whose answers have a mark for each step; None for other tables."""
    if (steps := step_marks(table)) is not None:
        return _stepwise(table, steps, tokenizer)
    if not (asked := _asked(table, names)):
        return None
    rows = _built_rows(table, (asked,), lambda row: Row(_prompt(row[asked], tokenizer)))
    other = ", ".join(shorten(name, 30) for name in table.columns if name != asked)
    note = f"took the column {asked} as prompts for generation" + (
        f"; other columns: {shorten(other, 200)}" if other else ""
    )
    made = _encoded_table(table, {"input_ids": [row.ids for row in rows]}, note)
    return replace(made, suggests=("generation", f"its {asked} column waits for an answer"))


def _asked(table: Table, names: set[str]) -> str:
    """Return the column of prompts that no column answers, "" where there is none or answers stand with it.

    Conversations are prompts where all end with the user's turn, and a column holds what to compare answers with.
    """
    if "prompt" in names and not names & {"completion", "response", "messages", "text", "chosen", "rejected"}:
        return "prompt"
    compared = any(name in table.columns or any(each.startswith(f"{name}.") for each in names) for name in REFERENCES)
    chat = next((name for name in CHATS if name in names), "")
    if not compared or names & {"completion", "response", "output", "chosen", "rejected", "text"}:
        return ""
    if chat:
        return chat if all(map(_waits, _listed(table.columns[chat]))) else ""
    return next((name for name in ASKED if name in names and not names & {"answer", "solution"}), "")


def _waits(chat: object) -> bool:
    """Whether a conversation ends with the user's turn."""
    last = chat[-1] if isinstance(chat, list) and chat else None
    return isinstance(last, dict) and _SPEAKERS.get(str(last.get("role", last.get("from")))) == "user"


def _marks(table: Table, names: set[str]) -> tuple[str, list[object]] | None:
    """Return the column that says which completions are desired, and for each row 1 or 0; None without such marks."""
    of_answers = "prompt" in names and bool(names & {"completion", "response"})
    if not of_answers and not names.intersection(CHATS):
        return None
    found = ((name, marks(name, table.columns[name], of_answers=of_answers)) for name in MARKS if name in table.columns)
    return next(((name, wanted) for name, wanted in found if wanted is not None), None)


def _rating(table: Table) -> str:
    """Return what is to be known of a column that rates each answer, "" where there is none."""
    rated = [name for name in sorted(SCORES & table.columns.keys()) if depth(table.columns[name]) == 1]
    return f"; {rated[0]} rates the rows, and training on answers takes all of them alike" if rated else ""


STEPS = "completions"


def step_marks(table: Table) -> list[tuple[list[str], list[int]]] | None:
    """Return the steps of each row's answer and their marks, as TRL's PRMTrainer takes them; None for other tables."""
    prompts, steps, labels = (table.columns.get(name) for name in ("prompt", STEPS, "labels"))
    if not isinstance(prompts, list) or not isinstance(steps, list) or labels is None or depth(labels) != 2:
        return None
    if not _all_words([row for row in steps if row]):
        return None
    rows = [labels.row(row).tolist() for row in range(labels.rows)] if isinstance(labels, Ragged) else labels
    lists = [[] if row is None else row for row in rows]
    if not all(
        isinstance(row, list) and all(isinstance(mark, int) and mark in (0, 1) for mark in row) for row in lists
    ):
        return None
    marked = [[int(mark) for mark in cast("list[int]", row)] for row in lists]
    return list(zip([cast("list[str]", row or []) for row in steps], marked, strict=False))


def _stepwise(table: Table, rows: list[tuple[list[str], list[int]]], tokenizer: Encoder) -> Table:
    """Return prompts with the steps of their answers; the last token of each step carries its mark."""
    columns: dict[str, list[list[int]]] = {"input_ids": [], "labels": []}
    for prompt, (steps, marked) in zip(_listed(table.columns["prompt"]), rows, strict=False):
        ids = _prompt(prompt, tokenizer)
        labels = [IGNORED_LABEL] * len(ids)
        for place, step in enumerate(steps):
            tokens = tokenizer.encode(step, special=False)
            ids = [*ids, *tokens]
            labels += [IGNORED_LABEL] * len(tokens)
            labels[-1] = marked[place] if tokens and place < len(marked) else labels[-1]
        columns["input_ids"].append(ids)
        columns["labels"].append(labels)
    made = _encoded_table(
        table, columns, "took each prompt with the steps of its answer, as for process rewards", STEPS
    )
    return replace(made, suggests=("classification", f"each step of its {STEPS} has a label"))


def _strange_roles(table: Table) -> str:
    """Return the roles of the first conversations, if there are any."""
    chats = next((_listed(table.columns[name]) for name in CHATS if name in table.columns), [])
    messages = [
        message for chat in chats[:100] if isinstance(chat, list) for message in chat if isinstance(message, dict)
    ]
    roles = dict.fromkeys(str(message.get("role", message.get("from"))) for message in messages)
    return ", ".join(shorten(role, 30) for role in list(roles)[:8])


def _maker(names: set[str], tokenizer: Encoder) -> tuple[Callable[[Message], Row], str]:
    chat = next((name for name in CHATS if name in names), None)
    if chat is not None:
        note = (
            "masked all but the assistant's turns of the conversations; TRL does so with assistant_only_loss=True, and "
            "without it trains on every token"
        )
        if not tokenizer.marks_generation:
            note += (
                "; this chat template has no {% generation %} marks, which assistant_only_loss=True needs: the turns "
                "were found by rendering the conversation up to each of them"
            )
        return (lambda row: conversation_row(row[chat], tokenizer)), note
    if {"prompt", "completion"} <= names:
        return (lambda row: _completion(row["prompt"], row["completion"], tokenizer)), (
            "masked the prompt of prompt and completion, as TRL does"
        )
    exchange = next((pair for pair in ASKED_AND_SAID if set(pair) <= names), None)
    if exchange is not None:
        asked, answer = exchange
        return (lambda row: _exchange(row, asked, answer, tokenizer)), f"took {asked} and {answer} as a conversation"
    if "text" in names:
        return (
            lambda row: _text(row["text"], tokenizer)
        ), "added the end token to the text, as TRL does; nothing is masked"
    raise InputError(
        "no trainer takes these text columns; give messages, prompt and completion, chosen and rejected, or text"
    )


def _built_rows(table: Table, names: tuple[str, ...], make: Callable[[Message], Row]) -> list[Row]:
    columns = {name: _listed(table.columns[name]) for name in names}
    count = max(map(len, columns.values()), default=0)
    rows = []
    for number in range(count):
        record = {name: column[number] for name, column in columns.items() if number < len(column)}
        try:
            rows.append(make(record))
        except NotAConversationError as error:
            raise InputError(f"row {number}: {error}; give messages with role and content") from None
        except BaseException as error:
            if not is_failure(error):
                raise
            problem = shorten(str(error), 160) or type(error).__name__
            raise InputError(f"row {number}: the chat template or tokenizer failed: {problem}") from None
    return rows


def _listed(column: Column) -> Sequence[object]:
    return column if isinstance(column, list) else [None] * row_count(column)


def _encoded_table(table: Table, columns: Mapping[str, list[list[int]]], note: str, *kept: str) -> Table:
    made: dict[str, Column] = {name: Ragged.of(rows) for name, rows in columns.items()}
    made |= {name: table.columns[name] for name in kept}
    return Table(made, notes=[*table.notes, note], numbers=table.numbers)


def _classes(table: Table, text: str) -> str | None:
    """Return the column that holds a class for each row of a text, if there is one."""
    rows = row_count(table.columns[text])
    return next(
        (name for name in CLASS_NAMES if name in table.columns and holds_classes(table.columns[name], rows)), None
    )


def _running_texts(table: Table, tokenizer: Encoder, purpose: str | None) -> Table:
    """Return texts in columns of other names: together where rows have classes, else each on its own."""
    names = running_texts(table.columns)
    listed = ", ".join(shorten(name, 30) for name in names[:8])
    labels = _classes(table, names[0])
    if labels is not None and purpose in (None, "classification"):
        rows = _built_rows(
            table,
            tuple(names),
            lambda row: Row([token for name in names for token in tokenizer.encode(_words(row[name]))]),
        )
        made = _encoded_table(
            table, {"input_ids": [row.ids for row in rows]}, f"took {listed} with their classes", labels
        )
    else:
        note = f"the names of the columns do not say what they are for: {listed} were judged each on its own"
        made = _encoded_columns(table, names, tokenizer, note)
    made.others = tuple(name for name in table.columns if name not in (*names, labels))
    made.columns |= {name: table.columns[name] for name in made.others}
    return made


def _encoded_columns(table: Table, names: list[str], tokenizer: Encoder, note: str) -> Table:
    columns: dict[str, list[list[int]]] = {}
    for name in names:

        def make(row: Message, name: str = name) -> Row:
            return Row(tokenizer.encode(_words(row[name])))

        columns[f"{name}_input_ids"] = [row.ids for row in _built_rows(table, (name,), make)]
    return _encoded_table(table, columns, note)


def _prompt(value: object, tokenizer: Encoder) -> list[int]:
    return (
        rendered(messages_of(value), tokenizer, prompt=True)
        if isinstance(value, list)
        else tokenizer.encode(_words(value))
    )


def _completion(prompt: object, completion: object, tokenizer: Encoder) -> Row:
    first = _prompt(prompt, tokenizer)
    if isinstance(prompt, list):
        whole = rendered([*messages_of(prompt), *messages_of(completion)], tokenizer)
    elif isinstance(tokenizer, Words):  # a word ends with the prompt, whether or not a space follows
        whole = _ended([*first, *tokenizer.encode(_words(completion))], tokenizer)
    else:
        whole = _ended(tokenizer.encode(_words(prompt) + _words(completion)), tokenizer)
    masked = len(shared(first, whole))
    return Row(whole, [place >= masked for place in range(len(whole))])


def _exchange(row: Message, asked: str, answer: str, tokenizer: Encoder) -> Row:
    more = row.get("input")
    prompt = _words(row[asked]) + (f"\n{more}" if isinstance(more, str) and more else "")
    return conversation_row(
        [{"role": "user", "content": prompt}, {"role": ASSISTANT, "content": _words(row[answer])}], tokenizer
    )


def _text(value: object, tokenizer: Encoder) -> Row:
    return Row(_ended(tokenizer.encode(_words(value)), tokenizer))


def _words(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise NotAConversationError("a text column holds no text")
    return value


def _ended(ids: list[int], tokenizer: Encoder) -> list[int]:
    """Return the row with the end token, which TRL's SFTTrainer adds where it is missing."""
    return ids if tokenizer.eos is None or ids[-1:] == [tokenizer.eos] else [*ids, tokenizer.eos]


def _preferences(table: Table, tokenizer: Encoder) -> Table:
    # Beside whole conversations a prompt says nothing more, as in UltraFeedback.
    explicit = "prompt" in table.columns and not (_is_chat(table, "chosen") and not _is_chat(table, "prompt"))
    scores = (*score_names(table), *((MARGIN,) if MARGIN in table.columns else ()))
    columns: dict[str, list[list[int]]] = {}
    for side in ("chosen", "rejected"):
        names = ("prompt", side) if explicit else (side,)

        def make(row: Message, side: str = side) -> Row:
            if explicit:
                return _completion(row["prompt"], row[side], tokenizer)
            return (
                conversation_row(row[side], tokenizer) if isinstance(row[side], list) else _text(row[side], tokenizer)
            )

        rows = _built_rows(table, names, make)
        columns[f"{side}_input_ids"] = [row.ids for row in rows]
        if explicit:
            columns[f"{side}_labels"] = [row.labels for row in rows]
    return _encoded_table(table, columns, "took both sides of each pair as TRL does", *scores)


def _is_chat(table: Table, name: str) -> bool:
    return isinstance(first_value(_listed(table.columns[name])), list)


# Text inside lists and objects as columns of text: words with a tag each, as of CoNLL; translations by language.


def with_plain_texts(table: Table) -> Table:
    """Return the table with lists of words joined, and objects of texts as one column for each of their names."""
    columns: dict[str, Column] = {}
    notes: list[str] = []
    for name, column in table.columns.items():
        rows = column if isinstance(column, list) else []
        values = [value for value in rows[:VALUES_LOOKED_AT] if value]
        if _all_words(values) and not (name == STEPS and depth(table.columns.get("labels", [])) == 2):
            new = name if name != "tokens" else "words"
            columns[new] = [" ".join(map(str, value)) if isinstance(value, list) else "" for value in rows]
            notes.append(f"joined the texts in each list of {shorten(name, 40)}; tags next to them were not checked")
        elif languages := _shared_names(values):
            for language in languages:
                columns[f"{name}.{language}"] = [_text_of(value, language) for value in rows]
        else:
            columns[name] = column
    return replace(table, columns=columns, notes=[*table.notes, *notes])


def _all_words(values: list[object]) -> bool:
    return bool(values) and all(
        isinstance(value, list) and all(isinstance(word, str) for word in value) for value in values
    )


def _shared_names(values: list[object]) -> tuple[str, ...]:
    """Return the names under which every one of these objects holds a text, if they hold nothing else."""
    first = values[0] if values else None
    if not isinstance(first, dict) or not all(
        isinstance(value, dict)
        and value.keys() == first.keys()
        and all(isinstance(item, str) for item in value.values())
        for value in values
    ):
        return ()
    return tuple(map(str, first))


def _text_of(value: object, name: str) -> str:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""
