"""Chat templates: the markers around each role, and how to find them in text.

A template is recognised by its markers (`FAMILIES`); unknown markers are learnt by rendering a conversation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

PROMPT_ROLES = frozenset({"system", "user", "tool", "developer"})
ASSISTANT = "assistant"
_ROLES = {"model": ASSISTANT, "ipython": "tool", "instruction": "user", "input": "user", "response": ASSISTANT}


@dataclass(frozen=True, slots=True)
class Family:
    """The markers of a kind of template.

    Args:
        name: What people call it.
        header: Matches the marker before a role's text; its group `role` is the role, unless `fixed` maps the text.
        end: Matches the marker after a role's text.
        fixed: Roles of markers that do not spell them.
        plain: The markers are ordinary text by design, so finding them as such is not a fault.
    """

    name: str
    header: re.Pattern[str]
    end: re.Pattern[str]
    fixed: Mapping[str, str] | None = None
    plain: bool = False

    def role(self, found: re.Match[str]) -> str:
        """Return the role whose text follows a header."""
        if self.fixed is not None:
            text = found.group().strip()
            return next(role for marker, role in self.fixed.items() if text.startswith(marker.strip()))
        spelt = found.group("role").lower()
        return _ROLES.get(spelt, spelt)


_R = r"(?P<role>system|user|assistant|tool|developer|model|ipython)"
FAMILIES: tuple[Family, ...] = (
    Family("ChatML", re.compile(rf"<\|im_start\|>{_R}\n"), re.compile(r"<\|im_end\|>")),
    Family(
        "Llama 3",
        re.compile(rf"<\|start_header_id\|>{_R}<\|end_header_id\|>\n{{0,2}}"),
        re.compile(r"<\|(?:eot_id|eom_id|end_of_text)\|>"),
    ),
    Family("Gemma", re.compile(rf"<start_of_turn>{_R}\n"), re.compile(r"<end_of_turn>")),
    Family(
        "Harmony",
        re.compile(rf"<\|start\|>{_R}[^<]*(?:<\|channel\|>\w+)?(?:<\|constrain\|>\w+)?<\|message\|>"),
        re.compile(r"<\|(?:end|return|call)\|>"),
    ),
    Family(
        "Mistral",
        re.compile(r"\[INST\] ?|\[/INST\] ?|\[SYSTEM_PROMPT\] ?"),
        re.compile(r"</s>|\[/SYSTEM_PROMPT\]"),
        {"[INST]": "user", "[/INST]": ASSISTANT, "[SYSTEM_PROMPT]": "system"},
    ),
    Family(
        "DeepSeek",
        re.compile(r"<｜User｜>|<｜Assistant｜>"),
        re.compile(r"<｜end▁of▁sentence｜>"),
        {"<｜User｜>": "user", "<｜Assistant｜>": ASSISTANT},
    ),
    Family("Zephyr", re.compile(rf"<\|{_R}\|>\n?"), re.compile(r"<\|(?:end|endoftext)\|>|</s>")),
    Family(
        "Alpaca",
        re.compile(r"### (?P<role>Instruction|Input|Response):\s?"),
        re.compile(r"</s>|<\|(?:endoftext|end_of_text|im_end|eot_id)\|>|<eos>"),
        plain=True,
    ),
    Family(
        "Vicuna",
        re.compile(r"(?:(?<=^)|(?<=\s)|(?<=>))(?:USER|ASSISTANT): ?"),
        re.compile(r"</s>|<\|(?:endoftext|end_of_text)\|>"),
        {"USER:": "user", "ASSISTANT:": ASSISTANT},
        plain=True,
    ),
)


@dataclass(frozen=True, slots=True)
class Turn:
    """A role's turn, by characters of a text or tokens of a row: its header, its words, and the marker that ends it."""

    role: str
    header: int
    start: int
    stop: int
    end: int


@dataclass(frozen=True, slots=True)
class Template:
    """A tokenizer's chat template: its family, what it writes first, and the token after the assistant's words."""

    family: Family
    opening: str
    end: str
    example: str


def turns_in(text: str, family: Family) -> list[Turn]:
    """Return the turns that a family's markers show in a text, in order."""
    headers = list(family.header.finditer(text))
    found = []
    for number, header in enumerate(headers):
        limit = headers[number + 1].start() if number + 1 < len(headers) else len(text)
        end = family.end.search(text, header.end(), limit)
        stop, after = (end.start(), end.end()) if end is not None else (limit, limit)
        found.append(Turn(family.role(header), header.start(), header.end(), stop, after))
    return found


def family_of(text: str, preferred: Family | None = None) -> Family | None:
    """Return the family whose markers show both a user and an assistant in a text; the preferred one first."""
    known: tuple[Family, ...] = FAMILIES if preferred is None else (preferred, *FAMILIES)
    for family in known:
        roles = {family.role(found) for found in family.header.finditer(text)}
        if "user" in roles and ASSISTANT in roles:
            return family
    return None


def marker_before(words: str) -> Family | None:
    """Return the family with whose marker the words of a turn begin, though the turn has markers of its own."""
    text = words.lstrip()
    return next((family for family in FAMILIES if not family.plain and family.header.match(text)), None)


_ASKED = "Qone"
_ANSWER = "Aone"
_AGAIN = "Qtwo"
_LAST = "Atwo"


def template_of(render: Callable[[Sequence[Mapping[str, object]]], str], special: Mapping[str, int]) -> Template | None:
    """Find out what a chat template writes by rendering two exchanges; None if it cannot render them."""
    turns = [("user", _ASKED), (ASSISTANT, _ANSWER), ("user", _AGAIN), (ASSISTANT, _LAST)]
    try:
        text = render([{"role": role, "content": content} for role, content in turns])
    except Exception:  # noqa: BLE001 - a template is a program and may raise anything
        return None
    places = [text.find(content) for _, content in turns]
    if min(places) < 0 or places != sorted(places):
        return None
    after = text[places[3] + len(_LAST) :]
    end = min((token for token in special if token in after), key=after.find, default="")
    family = family_of(text)
    if family is None:
        family = _learnt(text, places)
    return None if family is None else Template(family, text[: places[0]], end, text)


def _learnt(text: str, places: list[int]) -> Family | None:
    """Return a family with the markers seen around the words of a rendered conversation."""
    first, answer = text[: places[0]], text[places[0] + len(_ASKED) : places[1]]
    between = text[places[1] + len(_ANSWER) : places[2]]
    common = 0
    while common < min(len(first), len(between)) and first[-1 - common] == between[-1 - common]:
        common += 1
    user, end = between[len(between) - common :], between[: len(between) - common]
    if not user.strip() or not answer.strip():
        return None
    either = re.compile(f"{re.escape(answer)}|{re.escape(user)}")
    # If the end marker is only a line break, the next header ends a turn.
    stop = re.compile(re.escape(end)) if end.strip() else re.compile(r"(?!)")
    return Family("the tokenizer's own", either, stop, {answer: ASSISTANT, user: "user"})
