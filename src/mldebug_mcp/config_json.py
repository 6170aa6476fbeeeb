"""A model's `config.json`, as `save_pretrained` writes it, read from its path or from the folder that holds it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mldebug_mcp.access import is_folder, read_bytes
from mldebug_mcp.errors import InputError
from mldebug_mcp.paths import expanded, unreadable
from mldebug_mcp.text import shorten

MAX_BYTES = 16 * 1024 * 1024
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
        content = json.loads(read_bytes(file, MAX_BYTES, _WANTED))
    except OSError as error:
        raise InputError(f"{unreadable(file, error)}; {_WANTED}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: not valid JSON ({shorten(str(error), 120)}); {_WANTED}") from None
    if not isinstance(content, dict):
        raise InputError(f"{name}: not a JSON object; {_WANTED}")
    return content, name
