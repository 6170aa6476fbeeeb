"""A diagnosis that still knows its run: what a notebook shows of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import PrivateAttr

from mldebug_mcp.logs import Run
from mldebug_mcp.models import Diagnosis

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
        from mldebug_mcp.report.diagnosis_plot import diagnosis_figure

        return diagnosis_figure(self, self._run, self._reference)

    def _repr_html_(self) -> str:
        from mldebug_mcp.report.notebook_html import notebook_html

        return notebook_html(self, self._run, self._reference)
