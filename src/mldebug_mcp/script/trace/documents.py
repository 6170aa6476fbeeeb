"""Texts in a script that hold a configuration: YAML, JSON or TOML, as the values that they stand for."""

from __future__ import annotations

import tomllib

from mldebug_mcp.script.facts import Facts
from mldebug_mcp.script.values import DATA, Constant, Items, Value

MAX_CHARACTERS = 20_000
"""Length of a configuration in a script. Chosen: five hundred lines."""
MAX_BRACKETS = 200
"""Lists and mappings in brackets in it: the parser is slow where they stand in each other. Chosen."""


def parsed(text: str, line: int) -> Value:
    """Return the value of a text in YAML, JSON or TOML that begins in a line; data where it is none of them."""
    import yaml

    if len(text) > MAX_CHARACTERS or any(text.count(bracket) > MAX_BRACKETS for bracket in "[{"):
        return DATA
    try:
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text)):  # an alias may stand for very much
            return DATA
        return _value(yaml.compose(text, yaml.SafeLoader), line)
    except (yaml.YAMLError, ValueError):  # a date may have a month that there is not
        pass
    except RecursionError:
        return DATA
    try:
        return _of_mapping(tomllib.loads(text), line)
    except (tomllib.TOMLDecodeError, RecursionError):
        return DATA


def _value(node: object, line: int) -> Value:
    import yaml

    match node:
        case yaml.MappingNode():
            values = tuple(_value(part, line) for _, part in node.value)
            keys = (key.value if isinstance(key, yaml.ScalarNode) else None for key, _ in node.value)
            return Items(values, tuple(keys))
        case yaml.SequenceNode():
            return Items(tuple(_value(part, line) for part in node.value))
        case yaml.ScalarNode():
            plain = yaml.safe_load(node.value) if node.style is None and len(node.value) < MAX_NUMBER else node.value
            return _constant(plain, line + node.start_mark.line)
    return DATA


MAX_NUMBER = 40
"""Characters of a plain scalar that may be a number."""


def _of_mapping(value: object, line: int) -> Value:
    if isinstance(value, dict):
        return Items(tuple(_of_mapping(part, line) for part in value.values()), tuple(value))
    if isinstance(value, list):
        return Items(tuple(_of_mapping(part, line) for part in value))
    return _constant(value, line)


def _constant(value: object, line: int) -> Constant:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return Constant(value, Facts("number" if is_number else "", line=line))
