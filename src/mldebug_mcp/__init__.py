"""mldebug-mcp: why did my training run go wrong? Ranked, cited hypotheses from its log.

The verbs are loaded on first use, so that importing the package, as the server does, is cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldebug_mcp.lazy import lazily

if TYPE_CHECKING:
    from mldebug_mcp.diagnose.batch import inspect_batch
    from mldebug_mcp.diagnose.contest import compare_runs
    from mldebug_mcp.diagnose.explain import explain
    from mldebug_mcp.diagnose.explain_error import explain_error
    from mldebug_mcp.diagnose.memory import check_memory
    from mldebug_mcp.diagnose.probe import probe_overfit
    from mldebug_mcp.diagnose.read_metric import read_metric
    from mldebug_mcp.diagnose.rows import rows_at
    from mldebug_mcp.diagnose.runs import diagnose_runs
    from mldebug_mcp.diagnose.search import search_folklore
    from mldebug_mcp.diagnose.update import update_diagnosis
    from mldebug_mcp.diagnose.watch import watch_run
    from mldebug_mcp.errors import CatalogueError, InputError, MissingExtraError, MLDebugError, UnknownIdError
    from mldebug_mcp.library import diagnose_run, read_run
    from mldebug_mcp.logs import Run, Series
    from mldebug_mcp.magic import InteractiveShell
    from mldebug_mcp.memory.estimate import estimate_memory
    from mldebug_mcp.models import (
        BatchInspection,
        Diagnosis,
        ErrorExplanation,
        Explanation,
        Finding,
        Hypothesis,
        MetricReading,
        NextStep,
        ProbeResult,
        SearchResult,
        State,
        Update,
    )
    from mldebug_mcp.models.memory import MemoryEstimate, MemoryReport
    from mldebug_mcp.models.rows import RowsAt
    from mldebug_mcp.models.runs import Contest, Runs
    from mldebug_mcp.models.watching import News
    from mldebug_mcp.report.run_diagnosis import RunDiagnosis

__version__ = "0.1.0"

__all__ = [
    "BatchInspection",
    "CatalogueError",
    "Contest",
    "Diagnosis",
    "ErrorExplanation",
    "Explanation",
    "Finding",
    "Hypothesis",
    "InputError",
    "MLDebugError",
    "MemoryEstimate",
    "MemoryReport",
    "MetricReading",
    "MissingExtraError",
    "News",
    "NextStep",
    "ProbeResult",
    "RowsAt",
    "Run",
    "RunDiagnosis",
    "Runs",
    "SearchResult",
    "Series",
    "State",
    "UnknownIdError",
    "Update",
    "check_memory",
    "compare_runs",
    "diagnose_run",
    "diagnose_runs",
    "estimate_memory",
    "explain",
    "explain_error",
    "inspect_batch",
    "probe_overfit",
    "read_metric",
    "read_run",
    "rows_at",
    "search_folklore",
    "update_diagnosis",
    "watch_run",
]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Add the magic `%diagnose` to IPython or Jupyter: `%load_ext mldebug_mcp`."""
    from mldebug_mcp.magic import add_magic

    add_magic(shell)


def __dir__() -> list[str]:
    """Return what there is to call: the names are imported when they are first used."""
    return [*__all__, "__version__"]


if not TYPE_CHECKING:  # a type checker would take every name for one that is there
    __getattr__ = lazily(
        __name__,
        {
            "diagnose_run": "library",
            "inspect_batch": "diagnose",
            "compare_runs": "diagnose.contest",
            "diagnose_runs": "diagnose.runs",
            "rows_at": "diagnose.rows",
            "RowsAt": "models.rows",
            "Contest": "models.runs",
            "Runs": "models.runs",
            "explain": "diagnose.explain",
            "explain_error": "diagnose.explain_error",
            "check_memory": "diagnose.memory",
            "estimate_memory": "memory.estimate",
            "MemoryEstimate": "models.memory",
            "MemoryReport": "models.memory",
            "News": "models.watching",
            "update_diagnosis": "diagnose.update",
            "watch_run": "diagnose.watch",
            "read_metric": "diagnose.read_metric",
            "search_folklore": "diagnose.search",
            "probe_overfit": "diagnose.probe",
            "Run": "logs",
            "Series": "logs",
            "read_run": "library",
            "RunDiagnosis": "report.run_diagnosis",
            "CatalogueError": "errors",
            "InputError": "errors",
            "MLDebugError": "errors",
            "MissingExtraError": "errors",
            "UnknownIdError": "errors",
            "BatchInspection": "models",
            "Diagnosis": "models",
            "ErrorExplanation": "models",
            "Explanation": "models",
            "Finding": "models",
            "Hypothesis": "models",
            "MetricReading": "models",
            "NextStep": "models",
            "ProbeResult": "models",
            "SearchResult": "models",
            "State": "models",
            "Update": "models",
        },
    )
