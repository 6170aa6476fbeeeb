"""The text of a configuration → nested values, whatever form it is written in."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from mldebug_mcp.logs.decoding.json_values import parse_json
from mldebug_mcp.logs.settings.blocks import settings_in_block
from mldebug_mcp.logs.settings.command_line import STARTED, settings_in_command, settings_in_words
from mldebug_mcp.logs.settings.python_source import settings_in_source
from mldebug_mcp.logs.settings.reprs import NotAnObjectError, parse_object
from mldebug_mcp.logs.settings.values import parse_value
from mldebug_mcp.yaml_text import parse_yaml

Values = Mapping[str, object]

MAX_YAML_BYTES = 512 * 1024
"""What YAML may stand for is bounded in `yaml_text`; this bounds what is parsed to count it."""

_SECTION = re.compile(r"^[ \t]{0,80}\[[\w .:/-]{1,200}\][ \t]{0,80}$", re.MULTILINE)
_OBJECT = re.compile(r"\s*(?:[A-Za-z_]\w*\s*=\s*)?(?:[A-Z]\w*\(|\{)")
_FLAGS = re.compile(r"\s*--?[A-Za-z]")
_ASSIGNED = re.compile(r"^[A-Za-z_]\w{0,200}[ \t]{0,80}=(?!=)", re.MULTILINE)


class UnreadableError(ValueError):
    """The text is in none of the forms that its name allows."""


def values_in(text: str, suffix: str) -> Values:
    """Return the values of a configuration.

    Args:
        text: The whole text.
        suffix: The end of the file's name, such as ".yaml"; "" lets the text tell.

    Raises:
        UnreadableError: what is wrong with it.
    """
    forms = _FORMS.get(suffix.lower(), (json, _toml, printed, command, _ini, yaml, block))
    first = ""
    for form in forms:
        try:
            values = form(text)
        except (ValueError, RecursionError) as error:
            first = first or str(error) or type(error).__name__
            continue
        if isinstance(values, list):
            values = settings_in_words([one for one in values if isinstance(one, str)])  # overrides of Hydra
        if isinstance(values, Mapping) and values:
            return {str(key): value for key, value in values.items()}
    raise UnreadableError(first or "no settings in it; a mapping of names to values is needed")


def json(text: str) -> object:
    """Parse JSON; W&B's metadata hold the command line as a list of words."""
    values = parse_json(text)
    if isinstance(values, dict) and isinstance(values.get("args"), list) and "program" in values:
        return {**values, **settings_in_words([str(word) for word in values["args"]])}
    return values


def yaml(text: str) -> object:
    """Parse YAML."""
    if len(text) > MAX_YAML_BYTES:
        raise ValueError(f"more than {MAX_YAML_BYTES:,} bytes of YAML")
    return parse_yaml(text)


def printed(text: str) -> object:
    """Parse what `print` makes of a Namespace, a dataclass or a dictionary."""
    start = _OBJECT.match(text)
    if start is None:
        raise NotAnObjectError("not a printed object")
    return parse_object(text, start.end() - 1 if text[start.end() - 1] == "{" else start.start())[0]


def command(text: str) -> object:
    """Parse a command line or a shell script; a line of options alone is one too."""
    if not STARTED.search(text) and not _FLAGS.match(text):
        raise ValueError("no command line")
    return settings_in_command(text)


def block(text: str) -> object:
    """Parse lines of `key: value` or `key = value`, as many an `opt.txt` holds them."""
    return settings_in_block(text.splitlines()[:5000])[0]


def _toml(text: str) -> object:
    if not _ASSIGNED.search(text):
        raise ValueError("not TOML")
    import tomllib  # seldom needed, as configparser

    return tomllib.loads(text)


def _ini(text: str) -> object:
    if not _SECTION.search(text):
        raise ValueError("no [section]")
    import configparser

    parser = configparser.RawConfigParser(strict=False, inline_comment_prefixes=("#", ";"), allow_no_value=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        parser.read_string(text)
    except (configparser.Error, AttributeError) as error:  # the latter, before 3.13, where a key without value goes on
        raise ValueError(str(error)) from None
    return {**_typed(parser.defaults()), **{name: _typed(dict(parser.items(name))) for name in parser.sections()}}


def _typed(values: Mapping[str, str | None]) -> dict[str, object]:
    return {key: None if value is None else parse_value(value) for key, value in values.items()}


_FORMS: dict[str, tuple[Callable[[str], object], ...]] = {
    ".json": (json,),
    ".yaml": (yaml,), ".yml": (yaml,),
    ".toml": (_toml,),
    ".ini": (_ini, block), ".cfg": (_ini, block), ".conf": (_ini, block),
    ".sh": (command,),
    ".py": (settings_in_source,),
}  # fmt: skip
