"""The newest collators' batches: each fault is found, and healthy batches are left alone."""

from __future__ import annotations

import pytest
from tests.batch.matrix import Sample, samples

SAMPLES = list(samples())
FAULTS, HEALTHY = 148, 25
"""So many stand in docs/accuracy.md."""


def test_the_matrix_holds_faults_of_each_collator() -> None:
    faults = [sample for sample in SAMPLES if sample.checks]

    assert (len(faults), len(SAMPLES) - len(faults)) == (FAULTS, HEALTHY)


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_a_batch_of_a_collator_is_judged_rightly(sample: Sample) -> None:
    found = sample.inspect()

    assert sample.is_right(found), found
