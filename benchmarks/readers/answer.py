"""What an agent is told of a run over MCP, whole and without the ranking."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp import Client
from mcp_types import TextContent

from mldebug_mcp.judge.diagnosis import HARDLY_JUDGED
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.report.diagnosis_concise import NOTHING
from mldebug_mcp.server import make_server

OBSERVED = ("run", "sheet", "findings", "notes")
"""The fields of a diagnosis that hold observations; all others hold hypotheses or rest on them."""
_ON_RANKING = (NOTHING, HARDLY_JUDGED)
"""Notes that tell of the ranking without naming a cause."""


@dataclass(frozen=True)
class Asked:
    """The answer to a run.

    Args:
        text: As an agent reads it; of a run that is refused, why.
        causes: The tool's ranking, best first; empty for a run that is refused.
    """

    text: str
    causes: tuple[str, ...]

    @property
    def hidden(self) -> str:
        """The text without the ranking."""
        return _without_ranking(json.loads(self.text)) if self.causes else self.text


async def ask(path: Path) -> Asked:
    """Ask the server about a run as an agent does, from the folder that it lies in, so that no other path is told."""
    with contextlib.chdir(path.parent):
        async with Client(make_server()) as client:
            short = await client.call_tool("diagnose_run", {"path": path.name})
            whole = await client.call_tool("diagnose_run", {"path": path.name, "detail": "full"})
    (told,) = (one.text for one in short.content if isinstance(one, TextContent))
    ranking = (whole.structured_content or {}).get("hypotheses", ())
    return Asked(told, tuple(one["cause"] for one in ranking))


def _without_ranking(answer: Mapping[str, Any]) -> str:
    causes = catalogue().causes.keys()
    shown = {name: value for name, value in answer.items() if name in OBSERVED}
    shown["notes"] = [one for one in shown["notes"] if one not in _ON_RANKING and not _names(one, causes)]
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":"))


def _names(note: str, causes: Collection[str]) -> bool:
    return not set(re.findall(r"\w+", note)).isdisjoint(causes)
