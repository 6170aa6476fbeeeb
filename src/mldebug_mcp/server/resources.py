"""The catalogue as resources: lists, and templates with completion."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp_types import Completion, CompletionArgument, CompletionContext, PromptReference, ResourceTemplateReference

from mldebug_mcp.errors import MLDebugError
from mldebug_mcp.text import clean


def _listing(entries: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"- {name}: {summary}" for name, summary in entries)


MARKDOWN = "text/markdown"


def add_resources(server: MCPServer[Any]) -> None:
    """Offer the catalogue on a server: its lists, and each entry by its id, with completion."""
    _add_lists(server)
    for kind in ("cause", "symptom", "quote", "source", "menu", "error"):
        server.resource(
            f"mldebug://{kind}/{{id}}",
            name=kind,
            title=kind.title(),
            description=f"One {kind}, in full",
            mime_type=MARKDOWN,
        )(_reader(kind))
    server.completion()(_complete)  # type: ignore[no-untyped-call] # the SDK leaves it untyped


def _add_lists(server: MCPServer[Any]) -> None:

    @server.resource(
        "mldebug://causes",
        title="Causes",
        description="Every cause that a run can be diagnosed with",
        mime_type=MARKDOWN,
    )
    def causes() -> str:
        from mldebug_mcp.knowledge import catalogue
        from mldebug_mcp.knowledge.playbook import plain

        return _listing((cause.id, plain(cause.summary)) for cause in catalogue().causes.values())

    @server.resource(
        "mldebug://symptoms", title="Symptoms", description="Every symptom that is looked for", mime_type=MARKDOWN
    )
    def all_symptoms() -> str:
        from mldebug_mcp.symptoms import symptoms

        return _listing((one.id, one.doc.split("\n", 1)[0]) for one in symptoms().values())

    @server.resource(
        "mldebug://quotes", title="Quotes", description="Every quote: its id and source", mime_type=MARKDOWN
    )
    def quotes() -> str:
        from mldebug_mcp.knowledge import catalogue

        return _listing(
            (quote.id, f"{quote.source.authors}, {quote.source.title}") for quote in catalogue().quotes.values()
        )

    @server.resource(
        "mldebug://sources", title="Sources", description="Every source that is quoted", mime_type=MARKDOWN
    )
    def sources() -> str:
        from mldebug_mcp.knowledge import catalogue

        return _listing(
            (one.id, f"{one.authors}, {one.title} ({one.year}) {one.url}") for one in catalogue().sources.values()
        )

    @server.resource("mldebug://menus", title="Menus", description="What to think of, by situation", mime_type=MARKDOWN)
    def menus() -> str:
        from mldebug_mcp.knowledge import catalogue
        from mldebug_mcp.knowledge.playbook import plain

        return _listing((menu.id, plain(menu.summary)) for menu in catalogue().menus.values())

    @server.resource(
        "mldebug://errors", title="Errors", description="Every error message that is known", mime_type=MARKDOWN
    )
    def errors() -> str:
        from mldebug_mcp.knowledge.errors import known_errors

        return _listing((error.id, error.message or error.cause) for error in known_errors().values())


def _reader(kind: str) -> Callable[[str], str]:
    def read(id: str) -> str:  # noqa: A002 - the variable of the URI template
        from mldebug_mcp.diagnose.explain import explain as look_up

        try:
            entry = look_up(id)
        except MLDebugError as error:
            raise ResourceNotFoundError(clean(str(error))) from None
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
