"""mldebug-mcp: why did my training run go wrong? Ranked, cited hypotheses from its log.

The verbs are loaded on first use, so that importing the package, as the server does, is cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldebug_mcp.core.lazy import lazily

if TYPE_CHECKING:
    from mldebug_mcp.api import InteractiveShell, RunDiagnosis, diagnose_run, read_run
    from mldebug_mcp.core.errors import CatalogueError, InputError, MissingExtraError, MLDebugError, UnknownIdError
    from mldebug_mcp.judge.batch import inspect_batch
    from mldebug_mcp.judge.checkpoints import choose_checkpoint
    from mldebug_mcp.judge.diagnosis import update_diagnosis
    from mldebug_mcp.judge.explain_error import explain_error
    from mldebug_mcp.judge.group_comparison import compare_runs
    from mldebug_mcp.judge.memory import check_memory
    from mldebug_mcp.judge.probe import probe_overfit
    from mldebug_mcp.judge.read_metric import read_coverage, read_metric
    from mldebug_mcp.judge.record import read_record, record_check
    from mldebug_mcp.judge.rows import rows_at
    from mldebug_mcp.judge.runs import diagnose_runs
    from mldebug_mcp.judge.script import inspect_script
    from mldebug_mcp.judge.search import explain, search_folklore
    from mldebug_mcp.judge.watch import watch_run
    from mldebug_mcp.logs import Run, Series
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
    from mldebug_mcp.models.data import MemoryEstimate, MemoryReport, RowsAt
    from mldebug_mcp.models.diagnosis import CheckpointChoice
    from mldebug_mcp.models.runs import Contest, Coverage, News, Record, Runs
    from mldebug_mcp.models.script import ScriptReport

__version__ = "0.1.0"

__all__ = [
    "BatchInspection",
    "CatalogueError",
    "CheckpointChoice",
    "Contest",
    "Coverage",
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
    "Record",
    "RowsAt",
    "Run",
    "RunDiagnosis",
    "Runs",
    "ScriptReport",
    "SearchResult",
    "Series",
    "State",
    "UnknownIdError",
    "Update",
    "check_memory",
    "choose_checkpoint",
    "compare_runs",
    "diagnose_run",
    "diagnose_runs",
    "estimate_memory",
    "explain",
    "explain_error",
    "inspect_batch",
    "inspect_script",
    "probe_overfit",
    "read_coverage",
    "read_metric",
    "read_record",
    "read_run",
    "record_check",
    "rows_at",
    "search_folklore",
    "update_diagnosis",
    "watch_run",
]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Add the magic `%diagnose` to IPython or Jupyter: `%load_ext mldebug_mcp`."""
    from mldebug_mcp.api import add_magic

    add_magic(shell)


def __dir__() -> list[str]:
    """Return what there is to call: the names are imported when they are first used."""
    return [*__all__, "__version__"]


if not TYPE_CHECKING:  # a type checker would take every name for one that is there
    __getattr__ = lazily(
        __name__,
        {
            "diagnose_run": "api",
            "inspect_batch": "judge",
            "inspect_script": "judge.script",
            "ScriptReport": "models.script",
            "choose_checkpoint": "judge.checkpoints",
            "read_record": "judge.record",
            "record_check": "judge.record",
            "Record": "models.runs",
            "CheckpointChoice": "models.diagnosis",
            "compare_runs": "judge.group_comparison",
            "diagnose_runs": "judge.runs",
            "rows_at": "judge.rows",
            "RowsAt": "models.data",
            "Contest": "models.runs",
            "Runs": "models.runs",
            "explain": "judge.search",
            "explain_error": "judge.explain_error",
            "check_memory": "judge.memory",
            "estimate_memory": "memory.estimate",
            "MemoryEstimate": "models.data",
            "MemoryReport": "models.data",
            "News": "models.runs",
            "update_diagnosis": "judge.diagnosis",
            "watch_run": "judge.watch",
            "read_coverage": "judge.read_metric",
            "Coverage": "models.runs",
            "read_metric": "judge.read_metric",
            "search_folklore": "judge.search",
            "probe_overfit": "judge.probe",
            "Run": "logs",
            "Series": "logs",
            "read_run": "api",
            "RunDiagnosis": "api",
            "CatalogueError": "core.errors",
            "InputError": "core.errors",
            "MLDebugError": "core.errors",
            "MissingExtraError": "core.errors",
            "UnknownIdError": "core.errors",
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
