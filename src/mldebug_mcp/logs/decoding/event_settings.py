"""The configuration in event files: what the hparams plugin keeps, and texts that say settings.

A text is a JSON object, as the Trainer's, a Markdown table, as CleanRL's, one printed as in any log, or a single value
under the setting's name.
Schemas: summary.proto, hparams/plugin_data.proto and google/protobuf/struct.proto.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from mldebug_mcp.logs.decoding import protobuf
from mldebug_mcp.logs.decoding.json_values import parse_object
from mldebug_mcp.logs.decoding.protobuf import BYTES, Field
from mldebug_mcp.logs.settings import Settings, settings_printed_in
from mldebug_mcp.logs.settings.printed import is_configuration

MAX_TEXT = 200_000
_TAG, _TENSOR, _METADATA = 1, 8, 9
_PLUGIN, _PLUGIN_CONTENT = 1, 2
_SESSION_START, _HPARAMS = 3, 1
_STRING_VALUES = 8
_NUMBER, _STRING, _BOOL = 2, 3, 4
_TEXTS_OF_TORCH = "/text_summary"
_ROW = re.compile(r"^\s*\|(?P<key>[^|]+)\|(?P<value>[^|]*)\|\s*$", re.MULTILINE)
_RULE = re.compile(r"\s*:?-+:?\s*")


def settings_of_summary(event: bytes, start: int, end: int) -> Iterator[Settings]:
    """Yield the settings in the values of a summary.

    Raises:
        ValueError: it is broken.
    """
    for value in _messages(event, start, end, 1):
        name = "".join(protobuf.text(event, one) for one in _messages(event, value.start, value.end, _TAG))
        for metadata in _messages(event, value.start, value.end, _METADATA):
            yield from _hyperparameters(event, metadata)
        for tensor in _messages(event, value.start, value.end, _TENSOR):
            for string in _messages(event, tensor.start, tensor.end, _STRING_VALUES):
                text = protobuf.text(event, string)[:MAX_TEXT]
                yield from _of_text(name.removesuffix(_TEXTS_OF_TORCH), text)


def _messages(data: bytes, start: int, end: int, number: int) -> Iterator[Field]:
    return (one for one in protobuf.fields(data, start, end) if one.number == number and one.wire == BYTES)


def _hyperparameters(data: bytes, metadata: Field) -> Iterator[Settings]:
    """Yield what the hparams plugin says at the start of a session."""
    for plugin in _messages(data, metadata.start, metadata.end, _PLUGIN):
        for content in _messages(data, plugin.start, plugin.end, _PLUGIN_CONTENT):
            for start in _messages(data, content.start, content.end, _SESSION_START):
                entries = _messages(data, start.start, start.end, _HPARAMS)
                yield Settings.of(dict(_entry(data, one) for one in entries), "TensorBoard hparams")


def _entry(data: bytes, entry: Field) -> tuple[str, object]:
    """Return the key and the value of an entry of a map."""
    key, value = "", None
    for part in protobuf.fields(data, entry.start, entry.end):
        if part.number == 1 and part.wire == BYTES:
            key = protobuf.text(data, part)
        elif part.number == 2 and part.wire == BYTES:
            value = _value(data, part)
    return key, value


def _value(data: bytes, message: Field) -> object:
    for part in protobuf.fields(data, message.start, message.end):
        if part.number == _NUMBER and part.wire == protobuf.FIXED64:
            (number,) = struct.unpack("<d", data[part.start : part.end])
            return int(number) if number.is_integer() else float(number)
        if part.number == _STRING and part.wire == BYTES:
            return protobuf.text(data, part)
        if part.number == _BOOL and part.wire == protobuf.VARINT:
            return bool(part.value)
    return None


def _of_text(name: str, text: str) -> Iterator[Settings]:
    """Yield the settings that a text says, if any."""
    source = f"TensorBoard text {name!r}"
    values = parse_object(text) or _table(text)
    if values and is_configuration(values):
        yield Settings.of(values, source)
    elif not values and "\n" in text:
        yield settings_printed_in(text.splitlines())
    elif not values and (alone := Settings.of({name: text.strip()}, source)).known:
        yield alone


def _table(text: str) -> dict[str, object]:
    """Return the rows of a Markdown table of two columns, without its heading."""
    rows = [(row["key"].strip().strip("`*"), row["value"].strip().strip("`*")) for row in _ROW.finditer(text)]
    body = next((number + 1 for number, (key, _) in enumerate(rows) if _RULE.fullmatch(key)), 0)
    return dict(rows[body:])
