"""The agent skill over MCP (SEP-2640, `io.modelcontextprotocol/skills`): its files as resources, and its manifest.

A host learns from `skills/list` which files the skill has, with their digests, and reads them as resources under
`skill://mldebug/`. The files are those at the root of the repository, or the copies that the wheel carries.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from mcp.server import MCPServer
from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.extension import Extension, MethodBinding, ResourceBinding
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp.server.mcpserver.resources import FunctionResource
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CacheableResult, PaginatedRequestParams, PaginatedResult, RequestParams

from mldebug_mcp.files import knowledge_folder

NAME = "mldebug"
ROOT = f"skill://{NAME}/"
URI = f"{ROOT}SKILL.md"
TTL_MS = 3_600_000
"""How long a host may keep the manifest: the files change only with the installed version."""

_MARKDOWN = "text/markdown"
_PLAYBOOK = "Menus of hypotheses by situation, and a page for each cause"
_PAGE = "A reference page of the skill"


class ListSkillsResult(PaginatedResult, CacheableResult):
    """The answer of `skills/list`."""

    result_type: Literal["complete"] = "complete"
    skills: list[dict[str, Any]]


class GetSkillParams(RequestParams):
    """The parameters of `skills/get`."""

    uri: str


class GetSkillResult(CacheableResult):
    """The answer of `skills/get`."""

    result_type: Literal["complete"] = "complete"
    skill: dict[str, Any]


class SkillExtension(Extension):
    """Serves this package's one skill."""

    identifier = "io.modelcontextprotocol/skills"

    def resources(self) -> Sequence[ResourceBinding]:
        """The skill, the playbook and the reference pages; the evidence records are a template."""
        folder = knowledge_folder()
        pages = [folder / "SKILL.md", folder / "PLAYBOOK.md", *sorted((folder / "references").glob("*.md"))]
        return [ResourceBinding(_resource(path.relative_to(folder).as_posix())) for path in pages]

    def methods(self) -> Sequence[MethodBinding]:
        """`skills/list` and `skills/get`."""
        return [
            MethodBinding("skills/list", PaginatedRequestParams, _list_skills),
            MethodBinding("skills/get", GetSkillParams, _get_skill),
        ]


def add_evidence(server: MCPServer[Any]) -> None:
    """Offer the evidence records, which the skill's citations link to, on a server."""

    @server.resource(
        f"{ROOT}evidence/{{record}}",
        name="evidence",
        title="Evidence records",
        description="The record of a source, with its quotes: SOURCE.md",
        mime_type=_MARKDOWN,
    )
    def evidence(record: str) -> str:
        from mldebug_mcp.knowledge import catalogue

        if record != "README.md" and record.removesuffix(".md") not in catalogue().sources:
            raise ResourceNotFoundError("no such record; read mldebug://sources for the ids, and append .md")
        return _text(f"evidence/{record}")


def _text(name: str) -> str:
    return (knowledge_folder() / name).read_bytes().decode("utf-8")


def _resource(name: str) -> FunctionResource:
    return FunctionResource(
        uri=ROOT + name,
        name=NAME if name == "SKILL.md" else name,
        title=name,
        description={"SKILL.md": _described(), "PLAYBOOK.md": _PLAYBOOK}.get(name, _PAGE),
        mime_type=_MARKDOWN,
        fn=lambda: _text(name),
    )


@lru_cache(maxsize=1)
def _described() -> str:
    """Return the description in the skill's frontmatter: one quoted line, read without importing YAML at the start."""
    line = next(line for line in _text("SKILL.md").splitlines() if line.startswith("description: "))
    return str(json.loads(line.removeprefix("description: ")))


@lru_cache(maxsize=1)
def _manifest() -> dict[str, Any]:
    """Return the skill's entry: its frontmatter and all its files with digest and size."""
    import yaml

    folder = knowledge_folder()
    pages = [path for part in ("references", "evidence") for path in sorted((folder / part).glob("*.md"))]
    names = ["SKILL.md", "PLAYBOOK.md", *(path.relative_to(folder).as_posix() for path in pages)]
    frontmatter = yaml.safe_load(_text("SKILL.md").split("---\n", 2)[1])
    return {"uri": URI, "frontmatter": frontmatter, "resources": [_file(folder, name) for name in names]}


def _file(folder: Path, name: str) -> dict[str, Any]:
    content = (folder / name).read_bytes()
    return {"uri": ROOT + name, "digest": f"sha256:{hashlib.sha256(content).hexdigest()}", "size": len(content)}


async def _list_skills(context: ServerRequestContext[Any, Any], params: PaginatedRequestParams) -> HandlerResult:
    del context, params
    return ListSkillsResult(skills=[_manifest()], ttl_ms=TTL_MS, cache_scope="public")


async def _get_skill(context: ServerRequestContext[Any, Any], params: GetSkillParams) -> HandlerResult:
    del context
    if params.uri != URI:
        raise MCPError(code=INVALID_PARAMS, message=f"no such skill; this server serves {URI}")
    return GetSkillResult(skill=_manifest(), ttl_ms=TTL_MS, cache_scope="public")
