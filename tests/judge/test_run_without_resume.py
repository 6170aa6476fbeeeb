"""What a log that shows no resume says of causes that need one."""

from __future__ import annotations

import numpy as np
import pytest
from tests.runs import decay, noisy, run_of, run_of_records

from mldebug_mcp.judge.diagnosis import OF_RESUMES, gather


@pytest.mark.parametrize(
    ("config", "start", "weakened"),
    [
        ({"vocab_size": 50257}, 10.9, True),  # as of a uniform guess: nothing was learnt before
        ({"vocab_size": 50257}, 3.1, False),
        ({}, 12.4, True),  # above the guess of any vocabulary
        ({}, 7.0, False),  # of which vocabulary, nobody knows
    ],
)
def test_a_run_that_starts_from_nothing_and_shows_no_resume_lost_nothing_in_one(
    config: dict[str, float], start: float, weakened: bool
) -> None:
    loss = np.concatenate([[start, 3.0 * start], decay(60, 2.5 * start, start)])
    late = dict(zip(range(500, 562), loss.tolist(), strict=True))
    evidence = gather(run_of(loss=late, config=config, kind="pretraining")).evidence
    against = [one.cause for one in evidence if one.cause in OF_RESUMES and one.kind == "log" and one.bits < 0]
    assert against == (list(OF_RESUMES) if weakened else [])
    assert not any(one.cause in OF_RESUMES and one.kind != "numbers" and one.bits >= 0 for one in evidence)


def test_a_log_that_begins_with_the_run_and_shows_no_resume_lost_nothing_in_one() -> None:
    evidence = gather(run_of(loss=decay(60, 3.1, 2.0), kind="pretraining")).evidence
    assert {one.cause for one in evidence if one.bits < 0} >= set(OF_RESUMES)


def test_a_run_that_was_resumed_may_have_lost_something() -> None:
    loss = noisy(decay(120, 10.9, 3.0), 0.02)
    steps = [*range(1, 81), *range(70, 110)]
    rows = [{"step": step, "loss": float(value)} for step, value in zip(steps, loss, strict=True)]
    evidence = gather(run_of_records(rows, config={"vocab_size": 50257}, kind="pretraining")).evidence
    assert not any(one.cause in OF_RESUMES and one.kind != "numbers" for one in evidence)
