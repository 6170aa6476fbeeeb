"""What every type of the contract shares.

These are numbers that may be NaN, text that is safe to show, quotes, and calls ready to send.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import count
from threading import RLock
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema

from mldebug_mcp.core.text import cut, figure, shorten

# What every type of the contract shares: numbers that may be NaN, text that is safe to show.
#
# Numbers may be NaN or infinite, because a NaN is often exactly what was found. JSON has no such numbers, so `Number`
# writes them as the strings "nan", "inf" and "-inf", and the schema says so.
#
# `Model` is the one door for text: whatever string a type of the contract is given, in whatever field, list or mapping,
# is cleaned and cut there. A field need not ask for it and cannot go round it; it can only ask for more room.


def _number_in(value: object) -> object:
    return float(value) if isinstance(value, str) and value in ("nan", "inf", "-inf") else value


def _number_out(value: float) -> float | int | str:
    if not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return int(value) if value == int(value) and abs(value) < 2**53 else float(f"{value:.6g}")


Number = Annotated[
    float,
    BeforeValidator(_number_in),
    PlainSerializer(_number_out, return_type=float | int | str),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"enum": ["nan", "inf", "-inf"], "type": "string"}]}),
]
"""A float that may be NaN or infinite; in JSON those are strings. Written with six significant digits."""


class Room(NamedTuple):
    """How many characters the strings of a field may have."""

    characters: int


LONGEST_NAME = 200
"""Characters of a plain `str` and of the keys of mappings: ids, names, states. Chosen: twice our longest id."""
Text = Annotated[str, Room(5000)]
"""Sentences, lines of logs, paths (at most 4,096 characters)."""
Page = Annotated[str, Room(50_000)]
"""A whole document: an entry of the catalogue, a row of a batch. Clients put answers beyond 45,000 into a file."""

MOST_TOLD = 5
"""Fields in the line that stands for a model in a console (chosen)."""
LONGEST_TOLD = 80
"""Characters of one field in that line (chosen)."""
LONGEST_REPR = 240
"""Characters of the whole line (chosen)."""

SOUND = "healthy"
"""The hypothesis that nothing is wrong."""
OTHER = "unknown"
"""The hypothesis that a cause is at work which has no name here."""
NO_FAULTS = (SOUND, OTHER)
Severity = Literal["error", "warning", "info"]
GRAVEST_FIRST: tuple[Severity, ...] = ("error", "warning", "info")

_BUILDING = RLock()


def empty_list() -> list[Any]:
    """Return a new list, for `default_factory`: pydantic reads its signature, which takes long for `list` itself."""
    return []


class Frozen(BaseModel):
    """Immutable, without unknown fields, and built on first use: a call needs only some of the types."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    @classmethod
    def model_rebuild(
        cls,
        *,
        force: bool = False,
        raise_errors: bool = True,
        _parent_namespace_depth: int = 2,
        _types_namespace: Mapping[str, Any] | None = None,
    ) -> bool | None:
        """Build the type, once, from the names of its module alone.

        By default pydantic also looks at the local variables of the first user, which crashes CPython 3.13.0 in a
        comprehension; and before pydantic 2.14 two threads could build one type at once, and break it.
        """
        with _BUILDING:
            return super().model_rebuild(
                force=force, raise_errors=raise_errors, _parent_namespace_depth=0, _types_namespace=_types_namespace
            )


class Model(Frozen):
    """Base of the contract. Its strings are safe to show, however it is built.

    The parts of a diagnosis are made by `model_construct`. Our own code gives their values, whose types mypy checks; to
    build the schemas that check them again takes a twelfth of a short command. What is parsed is validated as usual.
    """

    def model_post_init(self, context: Any, /) -> None:  # noqa: ANN401, ARG002 - as pydantic calls it
        """Make the text safe: once, when it is built, and not again where it becomes part of another model."""
        attributes = self.__dict__
        for name, room in _with_text(type(self)):
            if attributes[name]:  # most fields of most models are empty
                attributes[name] = _safe(attributes[name], room)

    if not TYPE_CHECKING:  # for mypy the plugin of pydantic gives each model this method with its own fields

        @classmethod
        def model_construct(cls, _fields_set: set[str] | None = None, **values: Any) -> Self:  # noqa: ANN401 - any field
            """Return a model of values known to be right, with its defaults: pydantic takes long for each of these."""
            plain, factories = _defaults(cls)
            made = {name: make() for name, make in factories.items() if name not in values}
            return super().model_construct(set(values) if _fields_set is None else _fields_set, **plain | made | values)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with other fields, whose text is made safe, too: pydantic does not validate them."""
        return super().model_copy(update=_safe_fields(type(self), update or {}), deep=deep)

    def __repr__(self) -> str:
        """Return a line, as a console shows a value; `to_json` has all of it."""
        field_texts = [_field_text(name, getattr(self, name)) for name in type(self).model_fields]
        shown = ", ".join([text for text in field_texts if text][:MOST_TOLD])
        return shorten(f"<{type(self).__name__} {shown}", LONGEST_REPR - 1) + ">"

    __str__ = __repr__

    def to_json(self, indent: int | None = None) -> str:
        """Return the model as JSON, exactly as the MCP server sends it."""
        return self.model_dump_json(indent=indent)


def _field_text(name: str, value: object) -> str:
    """Return a field for a line: short values themselves, of long ones how many there are."""
    if value is None or value == "" or isinstance(value, Model):
        return ""
    if isinstance(value, list | tuple | dict):
        return f"{len(value)} {name}" if value else ""
    if isinstance(value, float):
        return f"{name}={figure(value)}" if math.isfinite(value) else f"{name}={value}"
    return f"{name}={shorten(str(value), LONGEST_TOLD)}"


@cache
def _defaults(kind: type[Model]) -> tuple[dict[str, Any], dict[str, Callable[[], Any]]]:
    """Return the defaults of the fields that have one, and what makes those that are not shared."""
    optional = {name: field for name, field in kind.model_fields.items() if not field.is_required()}
    factories: dict[str, Any] = {name: field.default_factory for name, field in optional.items()}
    made = {name: factory for name, factory in factories.items() if factory is not None}
    return {name: field.default for name, field in optional.items() if name not in made}, made


@cache
def _with_text(kind: type[Model]) -> tuple[tuple[str, int], ...]:
    """Return the fields that may hold text of another's, once their types were checked, each with its room."""
    fields = kind.model_fields.items()
    return tuple((name, _room(kind, name)) for name, field in fields if _may_hold_text(field.annotation))


def _may_hold_text(annotation: object) -> bool:
    """Say whether a type may hold text that nothing else made safe: all but numbers, words of ours and other models."""
    if get_origin(annotation) is Literal:
        return False
    parts = get_args(annotation)
    if parts:
        return any(map(_may_hold_text, parts[:1] if get_origin(annotation) is Annotated else parts))
    plain = (int, float, type(None), Model)
    return annotation is not ... and not (isinstance(annotation, type) and issubclass(annotation, plain))


def _safe_fields(kind: type[Model], fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _safe(value, _room(kind, name)) for name, value in fields.items()}


@cache
def _room(kind: type[Model], name: str) -> int:
    """Return how many characters the strings of a field may have."""
    field = kind.model_fields[name]
    return max((room.characters for room in _rooms(field.annotation, field.metadata)), default=LONGEST_NAME)


def _rooms(annotation: object, metadata: Iterable[object] = ()) -> Iterable[Room]:
    yield from (room for room in (*metadata, *getattr(annotation, "__metadata__", ())) if isinstance(room, Room))
    for part in get_args(annotation):
        yield from _rooms(part)


def _safe(value: object, room: int) -> object:
    """Return a value of a field with its strings cleaned and cut; models in it have done that themselves."""
    if isinstance(value, str):
        return cut(value, room)
    if isinstance(value, list | tuple):
        return type(value)(_safe(item, room) for item in value)
    if isinstance(value, dict):
        return _safe_mapping(value, room)
    return value


def _safe_mapping(mapping: Mapping[Any, Any], room: int) -> dict[Any, Any]:
    """Return a mapping made safe; of keys that become the same, the later ones get a number."""
    safe: dict[Any, Any] = {}
    for key, value in mapping.items():
        name = _safe(key, LONGEST_NAME)
        if name in safe:
            name = next(numbered for number in count(2) if (numbered := f"{name} ({number})") not in safe)
        safe[name] = _safe(value, room)
    return safe


# A call that an answer suggests, ready to send.


Argument = Text | int | float | bool | dict[str, Text]


class Call(Model):
    """A call of one of our tools that can be made as it stands: it has no placeholders."""

    tool: str = Field(description="Its name.")
    arguments: dict[str, Argument] = Field(default_factory=dict, description="By name, as the tool takes them.")
    why: Text = Field("", description="What it will show.")

    def __str__(self) -> str:
        given = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in self.arguments.items())
        return f"{self.tool}({given})"


class Glance(Model):
    """What to read first of an answer: what is wrong, what that rests on, what to run next, and the fix."""

    kind: Literal["fault", "healthy", "unclear", "not judged"] = Field(
        "unclear", description="healthy: nothing is wrong in what was looked at. not judged: nothing could be."
    )
    headline: Text = Field("", description="What is wrong; where nothing is, what was looked at.")
    facts: list[Text] = Field(default_factory=empty_list, description="Two or three facts that it rests on.")
    next: Text = Field("", description="What to do next.")
    command: Text = Field("", description="The command line for that, whole; empty where there is none.")
    fix: Text = Field("", description="What usually helps.")


AtAGlance = Annotated[Glance, Field(description="What to read first.")]
NextCall = Annotated[Call | None, Field(description="The call to make next, ready to send.")]


class RankedCause(Model):
    """A cause and how probable it is."""

    cause: str = Field(description="Its id; `explain` gives it whole.")
    probability: float = Field(description="From 0 to 1.")


class Citation(Model):
    """A practitioner's words, verbatim, and where they are published."""

    id: str = Field(description="Of the quote, for `explain`.")
    text: Text = Field(description="Verbatim.")
    source: str = Field(description="Id of the source, for `explain`.")
    author: Text = Field(description="Who wrote it.")
    title: Text = Field(description="Of the source.")
    year: str = Field("", description="When it was published; `undated` where nobody says.")
    regime: Text = Field("", description="What was trained, where the source is about one kind of run.")
    url: Text = Field(description="Where it is published.")
    locator: Text = Field("", description="The section or page there.")
