"""What holds of the diagnosis of any log: each of our samples is read and diagnosed once for all of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.reading.reads import own_logs
from tests.judge.test_sheet import printed, sheet_of

from mldebug_mcp.checks.check import symptoms
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.judge.diagnosis import diagnose
from mldebug_mcp.logs import Run, Series, read_run
from mldebug_mcp.logs.names.quantities import UTILISATIONS, Quantity
from mldebug_mcp.models import Diagnosis, QuantityFact
from mldebug_mcp.report.concise import length
from mldebug_mcp.report.diagnosis_concise import (
    MAX_DIAGNOSIS_CHARACTERS,
    MAX_HEALTHY_CHARACTERS,
    concise,
    is_clearly_healthy,
)
from mldebug_mcp.report.diagnosis_screen import MAX_SCREEN_LINES

NUMBER = r"[-+]?(?:\d[\d,]*\.?\d*(?:e[-+]?\d+)?|\.\d+)"
VALUE_AT_STEP = re.compile(
    rf"(?<![\w.=])({NUMBER})(%?) (?:at|by) (?:step |epoch |iteration |episode |record )?({NUMBER})(?![\w.%]|-fold)"
)
GAPS = re.compile(r"evaluation - (?:median of (\d+) )?training(?: records)?: (.*)")
ROUNDED = 6e-4
"""Share by which a number of four digits may differ from what it stands for."""
MOST_MOVED = 0.03


@pytest.fixture(scope="module", params=own_logs(), ids=lambda log: log.name)
def run(request: pytest.FixtureRequest) -> Run:
    try:
        return read_run(request.param.path)
    except InputError as refused:
        pytest.skip(str(refused))


@pytest.fixture(scope="module")
def diagnosis(run: Run) -> Diagnosis:
    return diagnose(run)


def test_what_decides_stands_whole_in_every_form_within_its_length(run: Run, diagnosis: Diagnosis) -> None:
    short = concise(diagnosis)

    assert length(short) <= (MAX_HEALTHY_CHARACTERS if is_clearly_healthy(diagnosis) else MAX_DIAGNOSIS_CHARACTERS)
    screen, whole = printed(diagnosis, run, long=False), printed(diagnosis, run, long=True, width=1000)
    assert len(screen.splitlines()) <= MAX_SCREEN_LINES
    for finding in diagnosis.present:
        assert finding.summary in {one.summary for one in short.findings}
        assert finding.symptom in screen
        assert f"{finding.symptom}: {finding.summary}" in whole
    for setting in diagnosis.sheet.settings:
        if setting.usual:
            assert str(setting) in sheet_of(short)
            assert f"{setting.name}=" in screen
            assert str(setting) in whole
    for curve in (curve for one in diagnosis.sheet.quantities if one.decides for curve in one.curves):
        assert curve.text in sheet_of(short)
        assert curve.text in whole
    for reason in (reason for one in short.hypotheses for reason in (*one.because, *one.against)):
        if (named := reason.split(" ")[0]) in symptoms() and " is absent " not in reason:
            assert named in {one.symptom for one in short.findings if one.summary}


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


def test_a_number_beside_a_step_is_logged_there_and_a_gap_is_a_difference_of_logged_values(
    run: Run, diagnosis: Diagnosis
) -> None:
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


def probabilities_of(diagnosis: Diagnosis) -> dict[str, float]:
    return {one.cause: one.probability for one in diagnosis.hypotheses}


def unrelated(count: int) -> dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """Return columns of a constant, noise, a counter, a clock, memory and throughput, each of shape (count,)."""
    rng = np.random.default_rng(1)
    return {
        "zork_constant": np.full(count, 3.0),
        "zork_noise": rng.normal(5, 1, count),
        "zork_counter": np.arange(count, dtype=float),
        "zork/wall_time_s": 1.7e9 + np.cumsum(rng.uniform(9.9, 10.1, count)),
        "zork/gpu_mem_gib": 12 + 0.01 * rng.random(count),
        "zork/samples_per_second": 800 + rng.normal(0, 4, count),
    }


def of_the_machine(run: Run) -> set[str]:
    """Return the columns of a run that are of the machine alone: its temperature, power, utilisation and clock."""
    found = run.with_role(Quantity.TEMPERATURE, Quantity.POWER, *UTILISATIONS, Quantity.TIME_LEFT, parts=True)
    return {one.name for one in found}


def test_each_reason_for_and_against_a_cause_of_any_sample_is_a_fact_in_words(diagnosis: Diagnosis) -> None:
    assert all(reason.fact for hypothesis in diagnosis.hypotheses for reason in hypothesis.reasons)


def test_columns_beside_training_move_no_cause_of_any_sample(run: Run, diagnosis: Diagnosis) -> None:
    step = max((series.step for series in run.series.values()), key=len)
    before, machine = probabilities_of(diagnosis), of_the_machine(run)
    added = {name: Series(name, step, value) for name, value in unrelated(len(step)).items() if name not in run.series}
    fewer = {name: series for name, series in run.series.items() if name not in machine}
    for series in ({**run.series, **added}, *([fewer] if machine else [])):
        after = probabilities_of(diagnose(replace(run, series=series)))
        by = {cause: round(after.get(cause, 0.0) - one, 3) for cause, one in before.items()}
        assert {cause: one for cause, one in by.items() if abs(one) > MOST_MOVED} == {}
