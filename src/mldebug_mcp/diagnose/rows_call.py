"""The call of `rows_at` that a diagnosis suggests: where the files of the run tell the rows of the step in question."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mldebug_mcp.access import is_file, is_folder
from mldebug_mcp.diagnose.rows_settings import SamplerOptions, settle
from mldebug_mcp.diagnose.rows_trainer import trainer_folder
from mldebug_mcp.errors import MLDebugError
from mldebug_mcp.logs import Run
from mldebug_mcp.models import Finding, Hypothesis, NextStep, State
from mldebug_mcp.paths import expanded
from mldebug_mcp.rows.recording import read_recording, recordings_in
from mldebug_mcp.text import quoted

OF_ROWS = ("bad_batch", "bad_data_pocket")
"""Causes that lie in the rows of a step."""
MOMENTS = ("loss_spike", "grad_norm_spike", "loss_nonfinite", "grad_norm_nonfinite")
"""Symptoms with a step at which it happened, in the order in which they are asked for it."""
_ASKS = 'inspect_batch(path="BATCH"'


def with_rows(run: Run, findings: Sequence[Finding], hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Return the hypotheses; a check that asks for the batch of a step calls `rows_at` where that can be answered."""
    asking = [one for one in hypotheses if one.cause in OF_ROWS and any(map(_asks, one.next_steps))]
    call = _call(run, findings) if asking else None
    if call is None:
        return list(hypotheses)
    return [
        one.model_copy(
            update={
                "next_steps": [
                    step.model_copy(update={"call": call}) if _asks(step) else step for step in one.next_steps
                ]
            }
        )
        if one in asking
        else one
        for one in hypotheses
    ]


def _asks(step: NextStep) -> bool:
    return step.call is not None and step.call.startswith(_ASKS)


def _call(run: Run, findings: Sequence[Finding]) -> str | None:
    steps = {one.symptom: one.steps[0] for one in findings if one.state == State.PRESENT and one.steps}
    moment = next((steps[symptom] for symptom in MOMENTS if symptom in steps), None)
    if moment is None or moment != int(moment) or moment < 0 or run.siblings or run.step_name != "step":
        return None
    return f"rows_at(path={quoted(run.path)}, step={int(moment)})" if _can_tell(run, int(moment)) else None


def _can_tell(run: Run, step: int) -> bool:
    """Return whether a recording has the rows of a step, or the arguments of a Trainer let them be drawn again."""
    try:
        place = expanded(run.path)
        if not is_file(place) and not is_folder(place):
            return False
        files = recordings_in(place)
        if files and step in read_recording(files, range(step, step + 1)).fed:
            return True
        return trainer_folder(place) is not None and bool(settle(SamplerOptions(), Path(place), run, {}, None))
    except (MLDebugError, OSError, ValueError):
        return False
