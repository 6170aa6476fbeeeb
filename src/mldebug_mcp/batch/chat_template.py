"""Chat templates rendered as transformers renders them: in Jinja's sandbox, with the names and tags that it documents.

Source: https://huggingface.co/docs/transformers/chat_templating_writing
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

import numpy as np
from jinja2 import Environment, TemplateError, nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

Spans = list[tuple[int, int]]
_REASONING = ("reasoning_content", "thinking", "reasoning")
"""The names under which messages hold what was thought, by precedence."""


class ChatTemplate:
    """A compiled chat template. Rendering it keeps state: not for several threads at once."""

    def __init__(self, source: str) -> None:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
        )
        environment.filters["tojson"] = _to_json
        environment.globals |= {
            "raise_exception": _raise,
            "strftime_now": _now,
            "dict": _Dicts(),
            "namespace": _Namespace,
        }
        self._template = environment.from_string(source)
        self._generation = next(one for one in environment.extensions.values() if isinstance(one, _Generation))

    def render(
        self, messages: Sequence[Mapping[str, object]], names: Mapping[str, str], *, add_generation_prompt: bool = False
    ) -> tuple[str, Spans]:
        """Return a conversation as text, and the characters of it that stand inside {% generation %} marks.

        Args:
            messages: The conversation; at least one message.
            names: The special tokens by name, such as bos_token, which templates write.
            add_generation_prompt: End with what an answer begins with.

        Raises:
            ValueError: there is no message.
            Exception: whatever the template raises.
        """
        if not messages:
            raise ValueError("there is no message to render")
        self._generation.begin()
        for part in self._template.generate(
            messages=[_message(one) for one in messages],
            tools=None,
            documents=None,
            add_generation_prompt=add_generation_prompt,
            **names,
        ):
            self._generation.written.append(part)
        return "".join(self._generation.written), self._generation.spans


def trained_tokens(offsets: Sequence[tuple[int, int]], spans: Spans) -> list[bool]:
    """Return which tokens stand inside spans of characters, as transformers' assistant mask has it.

    Args:
        offsets: The first character and the one behind the last of each token.
        spans: The same of each span.
    """
    token_at: dict[int, int] = {}
    for token, (start, stop) in enumerate(offsets):
        for place in range(start, stop):
            token_at.setdefault(place, token)
    mask = [False] * len(offsets)
    for start, stop in spans:
        first, last = token_at.get(start), token_at.get(stop - 1)
        if first is None:
            break
        # Also if the last token is the first of all, the mask goes to the end: training with transformers has it so.
        end = last + 1 if last else len(mask)
        mask[first:end] = [True] * (end - first)
    return mask


class _Generation(Extension):
    """The tag {% generation %}, which marks what the assistant says."""

    tags = {"generation"}  # noqa: RUF012 - as Jinja declares it

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.begin()

    def begin(self) -> None:
        """Forget what was rendered before."""
        self.written: list[str] = []
        self.spans: Spans = []

    def parse(self, parser: Parser) -> nodes.Node:
        """Take the tag as a call with what it encloses."""
        tag = next(parser.stream)
        inside = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("said"), [], [], inside).set_lineno(tag.lineno)

    def said(self, caller: Macro) -> str:
        """Return what is enclosed, and note where it stands."""
        text = str(caller())
        before = sum(map(len, self.written))
        self.spans.append((before, before + len(text)))
        return text


class _Dicts:
    """`dict` without its attributes, which would lead out of the sandbox."""

    def __call__(self, *given: Any, **named: Any) -> dict[Any, Any]:  # noqa: ANN401 - whatever a template says
        return dict(*given, **named)

    def fromkeys(self, keys: Iterable[Any], value: Any = None) -> dict[Any, Any]:  # noqa: ANN401
        return dict.fromkeys(keys, value)


class _Namespace(Namespace):
    """`namespace` without names that begin with an underscore, which are Python's own."""

    def __init__(*args: Any, **named: Any) -> None:  # noqa: ANN401 - `self` may be among the names
        for name in dict(*args[1:], **named):
            _check_name(name)
        Namespace.__init__(*args, **named)

    def __setitem__(self, name: str, value: Any) -> None:  # noqa: ANN401
        _check_name(name)
        super().__setitem__(name, value)


def _check_name(name: object) -> None:
    if str(name).startswith("_"):
        raise SecurityError(f"a namespace of a chat template may hold no name like {name!r}; rename it")


def _raise(message: object) -> NoReturn:
    raise TemplateError(str(message))


def _now(form: str) -> str:
    return datetime.now().strftime(form)


def _to_json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    # Jinja's own filter writes < and > for HTML.
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _message(message: Mapping[str, object]) -> dict[str, object]:
    """Return a message as templates get it: without what is None, of plain types, its reasoning by each name in use."""
    plain = {str(key): _plain(value) for key, value in message.items() if value is not None}
    thought = next((plain[name] for name in _REASONING if name in plain), None)
    return plain if thought is None else {"thinking": thought, **plain, "reasoning_content": thought}


def _plain(value: object) -> object:
    """Return a value built of plain types alone: an object of any other has methods that a template could call."""
    if isinstance(value, Mapping):
        return {_plain(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, tuple):
        return tuple(_plain(one) for one in value)
    if isinstance(value, np.generic):
        value = value.item()
    return value if value is None or type(value) in (str, int, float, bool) else f"<{type(value).__name__}>"
