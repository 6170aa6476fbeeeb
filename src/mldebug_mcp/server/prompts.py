"""The prompts that users can pick in a client, and the server that says what is wrong with a request for one."""

from __future__ import annotations

from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, GetPromptResult, InputRequiredResult
from pydantic import Field

from mldebug_mcp.text import shorten

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
        given, required = set(arguments or {}), {one.name: one.required for one in offered[name]}
        wrong = [f"has no argument {shorten(one, 60)!r}" for one in sorted(given - set(required))]
        wrong += [f"needs the argument {one!r}" for one, needed in required.items() if needed and one not in given]
        if wrong:
            takes = ", ".join(one if needed else f"{one} (optional)" for one, needed in required.items())
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
        return (
            f"{question}\n\nThe log or run folder is {path!r}. Call diagnose_run on it. Read the sheet first, and look "
            "with read_metric at curves that leave you in doubt. Report what is seen, in numbers with steps, and your "
            "own view of it; take the ranking as a second opinion. Then give at least three hypotheses with their "
            "probabilities, whether `healthy` is one of them, and what speaks against each. Run the cheapest next step "
            "that tells them apart before you change anything, and change one thing at a time. Quote practitioners "
            "only verbatim, with their source."
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
            "many spikes there are and how far apart, and what the gradient norm and learning rate did in the steps "
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
            "against that of a uniform guess, overfitting one small batch (probe_overfit), which parameters train, the "
            "learning rate schedule against the number of optimizer steps, memory at the largest batch "
            "(estimate_memory), an evaluation and a resume early on, and what is logged. Ask search_folklore what "
            "practitioners warn about in this kind of run, and quote it with its source."
        )
