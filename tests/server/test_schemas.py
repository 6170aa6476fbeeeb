"""What clients get with the list of tools, and what is published for programs."""

from __future__ import annotations

import copy
import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from mcp import Client

from mldebug_mcp.server import make_server

ROOT = Path(__file__).parent.parent.parent

DEFINITION = 1_075
"""Characters of a tool in the mean, without its output schema: what each session of an agent pays for."""
OUTLINES = 25_000


@pytest.fixture(scope="module")
def update_schemas() -> ModuleType:
    spec = importlib.util.spec_from_file_location("update_schemas", ROOT / "docs" / "update_schemas.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.anyio
async def test_the_definitions_of_all_tools_are_short() -> None:
    async with Client(make_server()) as client:
        tools = (await client.list_tools()).tools
    dumped = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
    outlines = [tool.pop("outputSchema") for tool in dumped]
    assert sum(len(json.dumps(tool, ensure_ascii=False, separators=(",", ":"))) for tool in dumped) <= DEFINITION * len(
        dumped
    )
    assert sum(len(json.dumps(outline, separators=(",", ":"))) for outline in outlines) <= OUTLINES


def test_the_outlines_are_those_of_the_types(update_schemas: ModuleType) -> None:
    outlines = {name: update_schemas.outline(schema) for name, schema in update_schemas.schemas().items()}
    kept = json.loads(update_schemas.SCHEMAS.read_text(encoding="utf-8"))
    assert kept == outlines, "run: python docs/update_schemas.py"


def test_the_published_schemas_are_those_of_the_types_and_only_grow(update_schemas: ModuleType) -> None:
    published = {page.stem: json.loads(page.read_text()) for page in update_schemas.PUBLISHED.glob("*.json")}
    current = update_schemas.schemas()
    assert {name: update_schemas.shrunk(schema, current.get(name, {})) for name, schema in published.items()} == {
        name: [] for name in published
    }
    assert published == current, "run: python docs/update_schemas.py"


def without(schema: dict[str, Any], name: str) -> dict[str, Any]:
    del schema["properties"][name]
    return schema


def with_kind(schema: dict[str, Any], name: str, kind: str) -> dict[str, Any]:
    schema["properties"][name] = {"type": kind}
    return schema


def test_a_field_that_goes_or_changes_its_kind_is_found(update_schemas: ModuleType) -> None:
    schema = update_schemas.schemas()["search_folklore"]
    assert update_schemas.shrunk(schema, without(copy.deepcopy(schema), "quotes")) == [".quotes: is gone"]
    assert update_schemas.shrunk(schema, with_kind(copy.deepcopy(schema), "query", "integer")) == [
        ".query: may be integer now"
    ]
    optional = copy.deepcopy(schema)
    optional["required"].remove("query")
    assert update_schemas.shrunk(schema, optional) == [".query: may be left out now"]
    assert update_schemas.shrunk(schema, with_kind(copy.deepcopy(schema), "more", "string")) == []
