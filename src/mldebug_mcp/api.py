"""The verbs that Python offers beyond those of the server.

They take data in memory as well as paths, and `%diagnose` in a notebook.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import PrivateAttr

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import replace
from mldebug_mcp.core.paths import expanded
from mldebug_mcp.judge.diagnosis import diagnose, inspected
from mldebug_mcp.judge.next_steps import Outcome
from mldebug_mcp.judge.reader import Reader, reader_of, with_reader
from mldebug_mcp.logs import Run
from mldebug_mcp.logs.in_memory import Data, run_of_data
from mldebug_mcp.logs.kinds import concluded
from mldebug_mcp.logs.read import read_run as read_path
from mldebug_mcp.logs.settings import Settings
from mldebug_mcp.logs.settings.files import read_settings
from mldebug_mcp.models import Diagnosis, Finding

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# A diagnosis that still knows its run: what a notebook shows of it.


class RunDiagnosis(Diagnosis):
    """The answer of `diagnose_run` in Python: as JSON a `Diagnosis`, in a notebook its causes and curves."""

    _run: Run = PrivateAttr()
    _reference: Run | None = PrivateAttr(default=None)

    @classmethod
    def of(cls, answer: Diagnosis, run: Run, reference: Run | None = None) -> RunDiagnosis:
        """Return the answer with the run that it is of, and the run that was compared."""
        made = cls.model_construct(answer.model_fields_set, **dict(answer))
        made._run, made._reference = run, reference
        return made

    @property
    def log(self) -> Run:
        """The run as it was read: its metrics, its settings, how it ends."""
        return self._run

    def plot(self) -> Figure:
        """Draw the curves with the onset of what is seen in them, on a figure of matplotlib.

        Raises:
            InputError: no curve can be drawn.
            MissingExtraError: matplotlib is not installed.
        """
        from mldebug_mcp.report.chart import diagnosis_figure

        return diagnosis_figure(self, self._run, self._reference)

    def _repr_html_(self) -> str:
        from mldebug_mcp.report.diagnosis_html import notebook_html

        return notebook_html(self, self._run, self._reference)


# The verbs that Python offers beyond those of the server: they take data in memory as well as paths.


def diagnose_run(
    path: str | Path | Data,
    config: str | Path | None = None,
    reference: str | Path | Data | None = None,
    findings: Sequence[Finding] = (),
    run: str = "",
    *,
    settings: Mapping[str, Any] | None = None,
    outcomes: Mapping[str, Outcome] | None = None,
    names: Mapping[str, str] | None = None,
    reader: Reader | str | None = None,
    script: str | Path | None = None,
) -> RunDiagnosis:
    """Say what is seen in a training log, which causes fit it, and what to check next.

    Args:
        path: A log file or a run folder; or what was logged, in memory: a DataFrame of pandas or polars, a dict of
            lists, or records such as {"step": 1, "loss": 2.3}. A step is found by its name, as in files.
        config: The training configuration (JSON or YAML), if it is not next to the log.
        reference: A run that went well, to compare with, in any of these forms.
        findings: What other verbs found on the same run; they replace findings on the same symptom.
        run: Which run to read, if the path holds several; by default the one with most records.
        settings: The training configuration as a dict, such as {"learning_rate": 3e-4}; it stands before what is
            found next to the log.
        outcomes: How checks of an earlier diagnosis turned out: by the id of a next step (such as "lr_too_high.1")
            whether it "confirms" or "refutes".
        names: What names of the log mean that do not say it: column → metric, such as {"L": "loss"}.
        reader: What judges the run as well: a function from a prompt to a reply, or a command such as "claude -p". It
            gets the prompt on its input and prints the reply. By default the command of MLDEBUG_MCP_READER, if any.
        script: The training script; what it does wrong or right counts. It is read and never run.

    Returns:
        Every symptom with its state, every cause with its probability (0 to 1), best first, and the next steps in
        order. A notebook shows it with its curves.

    Raises:
        InputError: a path or data cannot be used, or a check does not exist; the message says why and what to do.
    """
    good = read_run(reference) if reference is not None else None
    own = read_run(path, config, run, names, settings=settings)
    asked = reader if callable(reader) else reader_of(reader)
    return RunDiagnosis.of(with_reader(diagnose(own, good, findings, outcomes, inspected(script)), asked), own, good)


def read_run(
    path: str | Path | Data,
    config: str | Path | None = None,
    run: str = "",
    names: Mapping[str, str] | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
) -> Run:
    """Read a log, a run folder or data in memory; see `diagnose_run` for the arguments.

    Raises:
        InputError: it cannot be used; the message says why and what to do.
    """
    if isinstance(path, str | PathLike):
        read = read_path(path, config, run, names)
    elif run:
        raise InputError("run= names one of several runs of a folder or a file; for data in memory leave it out")
    else:
        read = run_of_data(path, names)
        if config is not None:
            read = _with_settings(read, read_settings(expanded(config)))
    return read if settings is None else _with_settings(read, Settings.of(settings, "settings="))


def _with_settings(run: Run, settings: Settings) -> Run:
    """Return a run with more settings, and with what follows from them."""
    return concluded(replace(run, settings=Settings.merged(settings, run.settings)))


# `%diagnose` in IPython and Jupyter: the diagnosis of a path, or of a variable of the notebook.


USAGE = "%diagnose PATH or VARIABLE [--reference PATH or VARIABLE]"


class InteractiveShell(Protocol):
    """What is asked of IPython's shell."""

    user_ns: dict[str, Any]

    def register_magic_function(self, func: Callable[[str], Any], magic_kind: str, magic_name: str) -> None:
        """Add a magic."""


def add_magic(shell: InteractiveShell) -> None:
    """Add `%diagnose` to a shell."""

    def diagnose(line: str) -> RunDiagnosis:

        words = shlex.split(line)
        reference = words[2] if len(words) == 3 and words[1] == "--reference" else None
        if len(words) != 1 and reference is None:
            raise InputError(f"%diagnose: {line.strip()!r} is not understood; write {USAGE}")
        compared = None if reference is None else shell.user_ns.get(reference, reference)
        return diagnose_run(shell.user_ns.get(words[0], words[0]), reference=compared)

    diagnose.__doc__ = f"Diagnose a run: {USAGE}."
    shell.register_magic_function(diagnose, "line", "diagnose")
