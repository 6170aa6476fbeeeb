"""The tools on many runs: which of them is sick, and whether one kind is better than another."""

from __future__ import annotations

from typing import Annotated

from mcp_types import CallToolResult
from pydantic import Field

from mldebug_mcp.models.runs import Contest, Runs
from mldebug_mcp.server.reply import Detail, reply

MOST_RUNS = 200
"""Runs that a call reads: some twenty seconds' work."""
MOST_COMPARED = 50

Paths = Annotated[list[str], Field(min_length=2, max_length=MOST_COMPARED)]


def diagnose_runs(
    path: Annotated[str, Field(description="A folder of runs", max_length=4096)],
    detail: Detail = "concise",
) -> Annotated[CallToolResult, Runs]:
    """Diagnose every run of a sweep folder: which of these runs failed, and what do the failed ones have in common?

    Use it for a hyperparameter sweep, a grid or a fleet of experiments: which runs are sick, diverged or crashed,
    which setting the bad ones share, an overview table of all runs in a folder, the best value of each setting.
    """
    from mldebug_mcp.diagnose.runs import diagnose_runs as diagnose
    from mldebug_mcp.report.runs_concise import concise_runs

    return reply(diagnose(path, most=MOST_RUNS), detail, concise_runs)


def compare_runs(
    a: Annotated[Paths, Field(description="Runs of one kind, such as the seeds of a recipe")],
    b: Annotated[Paths, Field(description="Runs of the other kind")],
    metric: Annotated[str, Field(description="Default: evaluation loss, reward or score")] = "",
    best: Annotated[bool, Field(description="Best values, not last levels")] = False,
    detail: Detail = "concise",
) -> Annotated[CallToolResult, Contest]:
    """Say whether a difference between two groups of runs is significant: is recipe A better than B, or seed noise?

    Use it for an ablation over seeds: is the improvement real or random variation, how many seeds do I need to tell.
    """
    from mldebug_mcp.diagnose.contest import compare_runs as compare

    return reply(compare(a, b, metric, best=best), detail, lambda answer: answer)
