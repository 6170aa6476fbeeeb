from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.recorder.kills import ALLOWED, kill


@pytest.mark.parametrize("after", [0.2, 0.9, 1.7])
def test_what_was_recorded_before_the_last_second_outlives_a_kill(tmp_path: Path, after: float) -> None:
    reads, lost = kill(tmp_path / "run", after)
    assert reads
    assert lost <= ALLOWED
