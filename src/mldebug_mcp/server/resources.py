"""The catalogue as resources: lists, and templates with completion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp_types import Completion, CompletionArgument, CompletionContext, PromptReference, ResourceTemplateReference

from mldebug_mcp.errors import MLDebugError

MARKDOWN = "text/markdown"
LISTS = {
    "causes": "Every cause that a run can be diagnosed with",
    "symptoms": "Every symptom that is looked for",
    "quotes": "Every quote: its id and source",
    "sources": "Every source that is quoted",
    "menus": "What to think of, by situation",
    "errors": "Every error message that is known",
}
"""The lists by name, with their descriptions."""


def add_resources(server: MCPServer[Any]) -> None:
    """Offer the catalogue on a server: its lists, and each entry by its id, with completion."""
    for name, description in LISTS.items():
        server.resource(
            f"mldebug://{name}", name=name, title=name.title(), description=description, mime_type=MARKDOWN
        )(_lister(name))
    for kind in ("cause", "symptom", "quote", "source", "menu", "error"):
        server.resource(
            f"mldebug://{kind}/{{id}}",
            name=kind,
            title=kind.title(),
            description=f"One {kind}, in full",
            mime_type=MARKDOWN,
        )(_reader(kind))
    server.completion()(_complete)  # type: ignore[no-untyped-call] # the SDK leaves it untyped


def _lister(name: str) -> Callable[[], str]:
    def entries() -> str:
        return "\n".join(f"- {one}: {summary}" for one, summary in _entries(name))

    return entries


def _entries(name: str) -> Iterator[tuple[str, str]]:
    """Return the ids of a list of `LISTS`, each with its summary."""
    from mldebug_mcp.knowledge import catalogue
    from mldebug_mcp.knowledge.errors import known_errors
    from mldebug_mcp.knowledge.playbook import plain
    from mldebug_mcp.symptoms import symptoms

    known = catalogue()
    match name:
        case "causes":
            return ((one.id, plain(one.summary)) for one in known.causes.values())
        case "menus":
            return ((one.id, plain(one.summary)) for one in known.menus.values())
        case "symptoms":
            return ((one.id, one.title) for one in symptoms().values())
        case "quotes":
            return ((one.id, f"{one.source.authors}, {one.source.title}") for one in known.quotes.values())
        case "sources":
            return ((one.id, f"{one.authors}, {one.title} ({one.year}) {one.url}") for one in known.sources.values())
        case _:
            return ((one.id, one.message or one.cause) for one in known_errors().values())


def _reader(kind: str) -> Callable[[str], str]:
    def read(id: str) -> str:  # noqa: A002 - the variable of the URI template
        from mldebug_mcp.diagnose.explain import explain as look_up

        try:
            entry = look_up(id)
        except MLDebugError as error:
            raise ResourceNotFoundError(str(error)) from None
        if entry.kind != kind:
            raise ResourceNotFoundError(f"{entry.id} is a {entry.kind}: read mldebug://{entry.kind}/{entry.id}")
        return entry.text

    return read


async def _complete(
    reference: PromptReference | ResourceTemplateReference,
    argument: CompletionArgument,
    context: CompletionContext | None,
) -> Completion | None:
    del context
    if not isinstance(reference, ResourceTemplateReference):
        return None
    from mldebug_mcp.knowledge import catalogue
    from mldebug_mcp.knowledge.errors import known_errors
    from mldebug_mcp.symptoms import symptoms

    known = catalogue()
    ids: dict[str, Iterable[str]] = {
        "mldebug://cause": known.causes,
        "mldebug://symptom": symptoms(),
        "mldebug://quote": known.quotes,
        "mldebug://source": known.sources,
        "mldebug://menu": known.menus,
        "mldebug://error": known_errors(),
        "skill://mldebug/evidence": [f"{source}.md" for source in known.sources],
    }
    kind = reference.uri.rpartition("/")[0]
    matching = [name for name in ids.get(kind, ()) if argument.value.lower() in name]
    return Completion(values=matching[:100], total=len(matching), has_more=len(matching) > 100)
