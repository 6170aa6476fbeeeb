"""YAML and JSON of configurations, read within limits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from mldebug_mcp.core.access import is_folder, read_bytes
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.paths import expanded, unreadable
from mldebug_mcp.core.text import shorten

if TYPE_CHECKING:
    import yaml

# YAML of strangers: counted as it is parsed, before anything is built of it.
#
# An alias stands for all that its anchor holds, and a merge key copies it: a few hundred bytes can stand for more than
# any memory holds. So the nodes are counted as if each alias were written out.


MAX_NODES = 50_000
"""Scalars, lists and mappings with aliases written out: the longest configurations in use have some thousand."""
MAX_CONFIG_DEPTH = 64
MAX_DIGITS = 1000
"""Characters of a number; those that are written in base 60 take time in proportion to the square of their length."""
_NUMBER_CHARACTERS = regex(r"[-+0-9_.:]+")


def parse_yaml(text: str) -> object:
    """Return what a YAML document says, in plain dicts, lists and scalars.

    What a tag would make an object of, as PyYAML writes tuples and paths, is read as what it is made of: Lightning's
    hparams.yaml is full of such tags. Nothing is called.

    Raises:
        ValueError: it is not YAML, says too much, or a tag does not fit its value; the message says which.
    """
    import yaml

    base = cast("type[yaml.SafeLoader]", getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    try:
        _count(yaml.parse(text, base))
        return yaml.load(text, _plain_loader(base))  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(str(error)) from None
    except (ArithmeticError, AttributeError, LookupError, TypeError) as error:
        # PyYAML's constructors: a key that cannot be one, a tag like !!bool on what is none.
        raise ValueError(f"a value does not fit its tag or place ({error})") from None


def _plain_loader(base: type[yaml.SafeLoader]) -> type[yaml.SafeLoader]:
    """Return a loader that reads tagged values as plain ones."""
    import yaml

    def plain(loader: yaml.SafeLoader, _tag: str, node: yaml.Node) -> object:
        if isinstance(node, yaml.MappingNode):
            return loader.construct_mapping(node, deep=True)
        if isinstance(node, yaml.SequenceNode):
            return loader.construct_sequence(node, deep=True)
        return loader.construct_scalar(cast("yaml.ScalarNode", node))

    loader = cast("type[yaml.SafeLoader]", type("Loader", (base,), {}))
    loader.add_multi_constructor("", plain)
    return loader


class _Counter:
    """Counts the nodes of a document as if each alias were written out."""

    def __init__(self) -> None:
        self.total = 0
        self.open: list[tuple[str | None, int]] = []
        self.sizes: dict[str | None, int] = {}
        """The nodes below each anchor; 0 while it is open."""

    def alias(self, anchor: str | None) -> None:
        size = self.sizes.get(anchor, 1)
        if not size:
            raise ValueError(f"the alias *{anchor} stands inside of what it stands for")
        self.total += size

    def begin(self, anchor: str | None) -> None:
        self.open.append((anchor, self.total))
        self.sizes[anchor] = 0
        self.total += 1
        if len(self.open) > MAX_CONFIG_DEPTH:
            raise ValueError(f"nested more than {MAX_CONFIG_DEPTH} deep")

    def end(self) -> None:
        anchor, before = self.open.pop()
        self.sizes[anchor] = self.total - before

    def scalar(self, event: yaml.ScalarEvent) -> None:
        self.total += 1
        self.sizes[event.anchor] = 1
        if len(event.value) > MAX_DIGITS and _may_be_number(event):
            raise ValueError(f"a number of {len(event.value):,} characters; at most {MAX_DIGITS:,} are read")


def _count(events: Iterator[yaml.Event]) -> None:
    """Raise ValueError if a document says too much; see the limits above."""
    import yaml

    counter = _Counter()
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            counter.alias(event.anchor)
        elif isinstance(event, yaml.CollectionStartEvent):
            counter.begin(event.anchor)
        elif isinstance(event, yaml.CollectionEndEvent):
            counter.end()
        elif isinstance(event, yaml.ScalarEvent):
            counter.scalar(event)
        if counter.total > MAX_NODES:
            raise ValueError(f"more than {MAX_NODES:,} values, with its aliases written out")


def _may_be_number(event: yaml.ScalarEvent) -> bool:
    plain = not event.style and _NUMBER_CHARACTERS.fullmatch(event.value) is not None
    return plain or (event.tag is not None and event.tag.endswith((":int", ":float")))


# A model's `config.json`, as `save_pretrained` writes it, read from its path or from the folder that holds it.


MAX_CONFIG_BYTES = 16 * 1024 * 1024
_WANTED = "name a model's config.json (nothing is downloaded)"


def read_config_json(path: str | Path) -> tuple[dict[str, Any], str]:
    """Return the content of a model's `config.json`, and the file's name for messages.

    Raises:
        InputError: it cannot be read, or is not a JSON object.
    """
    file = expanded(path)
    file = file / "config.json" if is_folder(file) else file
    name = shorten(str(file), 200)
    try:
        content = json.loads(read_bytes(file, MAX_CONFIG_BYTES, _WANTED))
    except OSError as error:
        raise InputError(f"{unreadable(file, error)}; {_WANTED}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: not valid JSON ({shorten(str(error), 120)}); {_WANTED}") from None
    if not isinstance(content, dict):
        raise InputError(f"{name}: not a JSON object; {_WANTED}")
    return content, name
