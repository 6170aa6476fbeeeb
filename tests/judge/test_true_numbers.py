"""Every number that an answer states beside a step is the one that the log holds there."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
from benchmarks.labelled import Labelled
from benchmarks.reading.reads import own_logs

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.judge.diagnosis import diagnose
from mldebug_mcp.logs import Run, Series, read_run
from mldebug_mcp.models import Diagnosis, QuantityFact

NUMBER = r"[-+]?(?:\d[\d,]*\.?\d*(?:e[-+]?\d+)?|\.\d+)"
VALUE_AT_STEP = re.compile(
    rf"(?<![\w.=])({NUMBER})(%?) (?:at|by) (?:step |epoch |iteration |episode |record )?({NUMBER})(?![\w.%]|-fold)"
)
GAPS = re.compile(r"evaluation - (?:median of (\d+) )?training(?: records)?: (.*)")
ROUNDED = 6e-4
"""Share by which a number of four digits may differ from what it stands for."""


def number(text: str) -> float:
    return float(text.replace(",", ""))


def sentences(diagnosis: Diagnosis) -> Iterator[str]:
    yield from (finding.summary for finding in diagnosis.present)
    yield from (part for line in diagnosis.sheet.lines for part in line.split(" | ") if not GAPS.search(part))


def records_at(series: Series, step: float) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.flatnonzero(np.isclose(series.step, step, rtol=ROUNDED, atol=1e-9))


def is_logged(run: Run, value: float, step: float) -> bool:
    return any(
        bool(np.isclose(series.value[records_at(series, step)], value, rtol=ROUNDED, atol=1e-12).any())
        for series in run.series.values()
    )


@pytest.mark.parametrize("log", own_logs(), ids=lambda log: log.name)
def test_a_number_beside_a_step_is_logged_there_and_a_gap_is_a_difference_of_logged_values(log: Labelled) -> None:
    try:
        run = read_run(log.path)
    except InputError as refused:
        pytest.skip(str(refused))
    diagnosis = diagnose(run)

    stated = [(text, found) for text in sentences(diagnosis) for found in VALUE_AT_STEP.finditer(text)]
    wrong = [
        f"{found[0]} (in: {text})"
        for text, found in stated
        if not is_logged(run, number(found[1]) / (100 if found[2] else 1), number(found[3]))
    ]
    assert wrong == []
    assert [quantity.gap for quantity in diagnosis.sheet.quantities if not _is_true(run, quantity)] == []


def _is_true(run: Run, quantity: QuantityFact) -> bool:
    """Say whether each stated gap is the difference of the logged values."""
    if (told := GAPS.fullmatch(quantity.gap)) is None:
        return quantity.gap == ""
    train, held = run[quantity.name].finite, run[f"eval_{quantity.name}"].finite
    before = int(told[1] or 1)
    return all(
        any(
            bool(np.isclose(number(gap), held.value[at] - median_before(train, held.step[at], before), rtol=6e-3))
            for at in records_at(held, number(step))
        )
        for gap, step in re.findall(rf"({NUMBER}) at ({NUMBER})", told[2])
    )


def median_before(series: Series, step: float, records: int) -> float:
    return float(np.median(series.value[series.step <= step][-records:]))
