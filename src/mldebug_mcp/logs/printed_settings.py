"""The configuration that a script printed at the head of its log: Megatron's arguments, argparse's Namespace."""

from __future__ import annotations

import ast
import re

from mldebug_mcp.logs.config import settings
from mldebug_mcp.logs.numbers import parse_number
from mldebug_mcp.logs.run import Scalar

_DOTTED = re.compile(r"^(?:\[[^\]\n]{0,40}\]:?)?\s*([A-Za-z_]\w{0,80}) \.{3,} (\S{1,200})\s*$", re.MULTILINE)
_NAMESPACE = re.compile(r"\bNamespace\(([^\n]{1,20000})")
_ARGUMENT = re.compile(r"([A-Za-z_]\w{0,80})=('[^'\n]{0,200}'|[^\s,()\[\]{}'\"]{1,80})(?=[,)])")
MIN_ARGUMENTS = 5
"""Fewer lines of the kind are no list of arguments."""


def printed_settings(head: str) -> dict[str, Scalar]:
    """Return the configuration printed in the beginning of a log, under canonical names; empty if there is none."""
    found = _DOTTED.findall(head)
    namespace = _NAMESPACE.search(head)
    if namespace:
        found += _ARGUMENT.findall(namespace[1])
    if len(found) < MIN_ARGUMENTS:
        return {}
    return settings({name: value for name, text in found if (value := _value(text)) is not None})


def _value(text: str) -> Scalar:
    if text in ("True", "False"):
        return text == "True"
    number = parse_number(text)
    if number is not None:
        return int(number) if number.is_integer() and text.isdigit() else number
    if text == "None":
        return None
    try:
        return str(ast.literal_eval(text)) if text.startswith("'") else text
    except (ValueError, SyntaxError):
        return text
