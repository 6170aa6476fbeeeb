"""The prompts that a user can pick."""

from __future__ import annotations

from typing import Any

from mcp.server import MCPServer


def add_prompts(server: MCPServer[Any]) -> None:
    """Offer the prompts on a server."""

    @server.prompt(title="Debug a training run")
    def debug_training_run(path: str, question: str = "Why does this run not go as it should?") -> str:
        """Debug a training run from its log, step by step, with observations kept apart from hypotheses."""
        return (
            f"{question}\n\nThe log or run folder is {path!r}. Call diagnose_run on it. Report first what is seen, in "
            "numbers with steps; then at least three hypotheses with their probabilities, whether `healthy` is one of "
            "them, and what speaks against each. Run the cheapest next step that tells them apart before you change "
            "anything, and change one thing at a time. Quote practitioners only verbatim, with their source."
        )
