from __future__ import annotations

import pytest

from mldebug_mcp.recorder.late import Budget


@pytest.fixture(autouse=True)
def affordable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each measurement be afforded when it is due: on a busy machine it costs more than a short run has."""
    monkeypatch.setattr(Budget, "allows", lambda budget, step, _seconds: step >= budget.next_step)
