"""TOML, with comments and layout kept by tomlkit."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any

from mldebug_mcp.core.errors import InputError


def read(text: str, where: str) -> dict[str, Any]:
    """Return the settings.

    Raises:
        InputError: with the line, if the text is not TOML.
    """
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{where} is not valid TOML and was left alone: {error}") from None


def put(text: str, path: Sequence[str], value: object, where: str) -> str:
    """Return the text with the value at a path of keys; tables that lack are added at the end.

    Raises:
        InputError: if tomlkit cannot edit the text.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        parent: Any = document
        for key in path[:-1]:
            if key not in parent:
                parent[key] = tomlkit.table(is_super_table=True)
            parent = parent[key]
        parent[path[-1]] = value
        return tomlkit.dumps(document)
    except TOMLKitError as error:
        raise InputError(f"{where} cannot be edited: {error}; paste what --print shows by hand") from None
