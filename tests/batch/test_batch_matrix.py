"""The newest collators' batches: each fault is found, and healthy batches are left alone."""

from __future__ import annotations

import pytest
from benchmarks.batch_matrix import Sample, samples

SAMPLES = list(samples())
MIN_FAULTS, MIN_HEALTHY = 100, 20


def test_the_matrix_holds_faults_of_each_collator() -> None:
    faults = [sample for sample in SAMPLES if sample.checks]

    assert len(faults) >= MIN_FAULTS
    assert len(SAMPLES) - len(faults) >= MIN_HEALTHY


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_a_batch_of_a_collator_is_judged_rightly(sample: Sample) -> None:
    found = sample.inspect()

    assert sample.is_right(found), found
