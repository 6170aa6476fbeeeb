from __future__ import annotations

import pytest

from mldebug_mcp.recorder import late


@pytest.fixture(autouse=True)
def affordable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each measurement be afforded: its cost counts the time that others take on a busy machine."""
    monkeypatch.setattr(late, "FREE", 3600.0)
