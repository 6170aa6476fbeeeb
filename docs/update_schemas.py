"""Write the output schemas of the tools: `python docs/update_schemas.py`.

- `schemas.json` in the server: the outline of each answer, which clients get with the list of tools.
- `docs/schemas/VERSION/TOOL.json`: each answer whole, for programs that read `--json`. These only grow: a field that is
  published stays, with its type; what breaks that needs a new version.

The tests fail if a file differs from the types.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from mldebug_mcp.server.calls import SCHEMAS, answer_type
from mldebug_mcp.server.tools import TOOLS

VERSION = 1
PUBLISHED = Path(__file__).parent / "schemas" / str(VERSION)


def schemas() -> dict[str, Any]:
    """Return the whole schema of each tool's answer, by the tool's name."""
    return {tool.__name__: TypeAdapter(answer_type(tool)).json_schema() for tool in TOOLS}


def outline(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that says which fields an answer has and of which kind, without what is inside of them.

    A client gains nothing from the rest: the answer itself shows it, and each session would pay for every token.
    """
    properties = {name: _outlined(field, schema.get("$defs", {})) for name, field in schema["properties"].items()}
    return {"type": "object", "properties": properties, "required": schema.get("required", [])}


def _outlined(field: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    options = [_outlined(option, definitions) for option in field.get("anyOf", ())]
    if options:
        types = list(dict.fromkeys(kind for option in options for kind in _types(option)))
        return {"type": types[0] if len(types) == 1 else types}
    if "$ref" in field:
        return _outlined(definitions[field["$ref"].rpartition("/")[2]], definitions)
    if field.get("type") == "array":
        return {"type": "array", "items": _outlined(field.get("items", {}), definitions)}
    return {"type": field["type"]} if "type" in field else {}


def _types(option: dict[str, Any]) -> list[str]:
    kind = option.get("type", [])
    return kind if isinstance(kind, list) else [kind]


def shrunk(published: dict[str, Any], current: dict[str, Any], at: str = "") -> list[str]:
    """Return what a published schema promises and the current one no longer does.

    Args:
        published: A schema, or a part of one, with its `$defs`.
        current: The same part as it is now.
        at: Where the part stands.
    """
    gone: list[str] = []
    for name, definition in published.get("$defs", {}).items():
        if name in current.get("$defs", {}):
            gone += shrunk(definition, current["$defs"][name], f"{at}/{name}")
        else:
            gone.append(f"{at}/{name}: is gone")
    fields = current.get("properties", {})
    for name, field in published.get("properties", {}).items():
        if name not in fields:
            gone.append(f"{at}.{name}: is gone")
        elif more := _kinds(fields[name]) - _kinds(field):
            gone.append(f"{at}.{name}: may be {', '.join(sorted(more))} now")
    optional = set(published.get("required", [])) - set(current.get("required", []))
    return gone + [f"{at}.{name}: may be left out now" for name in sorted(optional & set(fields))]


def _kinds(field: dict[str, Any]) -> set[str]:
    """Return the kinds of values that a reader of a field must expect."""
    options = field.get("anyOf", [field])
    return {str(option.get("$ref") or option.get("type")) for option in options}


if __name__ == "__main__":
    whole = schemas()
    outlines = {name: outline(schema) for name, schema in whole.items()}
    SCHEMAS.write_text(json.dumps(outlines, separators=(",", ":")) + "\n", encoding="utf-8")
    PUBLISHED.mkdir(parents=True, exist_ok=True)
    for name, schema in whole.items():
        page = PUBLISHED / f"{name}.json"
        lost = shrunk(json.loads(page.read_text(encoding="utf-8")), schema) if page.exists() else []
        if lost:
            sys.exit(f"{page.name} may only grow: {'; '.join(lost)}")
        page.write_text(json.dumps(schema, indent=1) + "\n", encoding="utf-8")
