"""The catalogue and the agent skill as resources, and the prompts that users can pick."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.extension import Extension, MethodBinding, ResourceBinding
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp.server.mcpserver.resources import FunctionResource
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CacheableResult,
    Completion,
    CompletionArgument,
    CompletionContext,
    GetPromptResult,
    InputRequiredResult,
    PaginatedRequestParams,
    PaginatedResult,
    PromptReference,
    RequestParams,
    ResourceTemplateReference,
)
from pydantic import Field

from mldebug_mcp.core.errors import MLDebugError
from mldebug_mcp.core.paths import knowledge_folder
from mldebug_mcp.core.text import plain, shorten
from mldebug_mcp.models.diagnosis import JUDGING_RULES

# The catalogue as resources: lists, and templates with completion.


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
        return "\n".join(f"- {entry}: {summary}" for entry, summary in _entries(name))

    return entries


def _entries(name: str) -> Iterator[tuple[str, str]]:
    """Return the ids of a list of `LISTS`, each with its summary."""
    from mldebug_mcp.checks import symptoms
    from mldebug_mcp.knowledge import catalogue
    from mldebug_mcp.knowledge.errors import known_errors

    known = catalogue()
    match name:
        case "causes":
            return ((cause.id, plain(cause.summary)) for cause in known.causes.values())
        case "menus":
            return ((menu.id, plain(menu.summary)) for menu in known.menus.values())
        case "symptoms":
            return ((symptom.id, symptom.title) for symptom in symptoms().values())
        case "quotes":
            return ((quote.id, f"{quote.source.authors}, {quote.source.title}") for quote in known.quotes.values())
        case "sources":
            return (
                (source.id, f"{source.authors}, {source.title} ({source.year}) {source.url}")
                for source in known.sources.values()
            )
        case _:
            return ((error.id, error.message or error.cause) for error in known_errors().values())


def _reader(kind: str) -> Callable[[str], str]:
    def read(id: str) -> str:  # noqa: A002 - the variable of the URI template
        from mldebug_mcp.judge.search import explain as look_up

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
    from mldebug_mcp.checks import symptoms
    from mldebug_mcp.knowledge import catalogue
    from mldebug_mcp.knowledge.errors import known_errors

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


# The prompts that users can pick in a client, and the server that says what is wrong with a request for one.


WHY = "Why is this run not going as it should?"
_Path = Annotated[str, Field(description="A training log or a run folder")]


class PromptServer(MCPServer[Any]):
    """The SDK's server, which itself answers a prompt asked for in the wrong way with "internal server error"."""

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[Any, Any] | None = None
    ) -> GetPromptResult | InputRequiredResult:
        """Return a prompt; a name or arguments that it does not have are an error of one line."""
        offered = {prompt.name: prompt.arguments or [] for prompt in await self.list_prompts()}
        if name not in offered:
            raise MCPError(INVALID_PARAMS, f"no prompt {shorten(name, 60)!r}; there are: {', '.join(offered)}")
        given, required = (
            set(arguments or {}),
            {prompt_argument.name: prompt_argument.required for prompt_argument in offered[name]},
        )
        wrong = [f"has no argument {shorten(text, 60)!r}" for text in sorted(given - set(required))]
        wrong += [
            f"needs the argument {argument!r}"
            for argument, needed in required.items()
            if needed and argument not in given
        ]
        if wrong:
            takes = ", ".join(argument if needed else f"{argument} (optional)" for argument, needed in required.items())
            raise MCPError(INVALID_PARAMS, f"the prompt {name} {wrong[0]}; it takes: {takes}")
        return await super().get_prompt(name, arguments, context)


def add_prompts(server: MCPServer[Any]) -> None:
    """Offer the prompts on a server."""

    @server.prompt(title="Debug a training run")
    def debug_training_run(
        path: _Path,
        question: Annotated[str, Field(description="What is to be found out")] = WHY,
    ) -> str:
        """Debug a training run from its log, step by step, with observations kept apart from hypotheses."""
        rules = "\n".join(f"- {rule}" for rule in JUDGING_RULES)
        return (
            f"{question}\n\nThe log or run folder is {path!r}. Call diagnose_run on it. Read the sheet first, and look "
            "with read_metric at curves that leave you in doubt. Report what is seen, in numbers with steps, and your "
            "own view of it; take the ranking as a second opinion. Then give at least three hypotheses with their "
            "probabilities, whether `healthy` is one of them, and what contradicts each. Run the cheapest next step "
            "that tells them apart before you change anything, and change one thing at a time. Quote practitioners "
            f"only verbatim, with their source.\n\nJudge by these rules:\n{rules}"
        )

    @server.prompt(title="Why did my loss spike?")
    def why_did_my_loss_spike(
        path: _Path, step: Annotated[str, Field(description="About where the spike is")] = ""
    ) -> str:
        """Find out why the loss of a run spiked, and whether anything has to be done about it."""
        where = f" The spike is near step {step}." if step else ""
        return (
            f"Why did my loss spike? The log or run folder is {path!r}.{where} Call diagnose_run on it, and "
            "read_metric for loss and grad_norm around the spike. First say whether the loss recovered by itself, how "
            "many spikes there are and how far apart; say what the gradient norm and learning rate did in the steps "
            "before. Then read mldebug://menu/menu_loss_spiked and weigh at least three hypotheses, among them a "
            "harmless spike. If a batch can be saved, say which one. Name the cheapest check that tells the leaders "
            "apart, and what each of them predicts for it, before any change."
        )

    @server.prompt(title="Before you train")
    def before_you_train(
        task: Annotated[str, Field(description="What is to be trained, on what, to do what")],
        config: Annotated[str, Field(description="The training configuration, or its file")] = "",
    ) -> str:
        """Check a training run before it starts: data, first loss, overfitting one batch, schedule, memory, logging."""
        with_config = f" The configuration is {config!r}." if config else ""
        return (
            f"I am about to train: {task}.{with_config} Go through what is cheap to check first, and say for each "
            "what is expected: one batch decoded with its labels (inspect_batch, where there is one), the first loss "
            "against that of a uniform guess; overfitting one small batch (probe_overfit), which parameters train; the "
            "learning rate schedule against the number of optimizer steps, memory at the largest batch "
            "(estimate_memory); an evaluation and a resume early on, and what is logged. Ask search_folklore what "
            "practitioners warn about in this kind of run, and quote it with its source."
        )


# The agent skill over MCP (SEP-2640, `io.modelcontextprotocol/skills`): its files as resources, and its manifest.
#
# A host learns from `skills/list` which files the skill has, with their digests, and reads them as resources under
# `skill://mldebug/`. The files are those at the root of the repository, or the copies that the wheel carries.


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
