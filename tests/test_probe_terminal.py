from __future__ import annotations

import pytest

from mldebug_mcp.models.data import ProbeResult
from mldebug_mcp.report.console import console_for
from mldebug_mcp.report.data_terminal import print_probe


def test_of_a_probe_that_failed_the_failure_is_printed_alone(capsys: pytest.CaptureFixture[str]) -> None:
    failed = ProbeResult(
        verdict="failed", summary="KeyError: 'labels'\ntrain.py:7", causes=[], seconds=1.0, output="loading\nKeyError"
    )
    print_probe(console_for(), failed)
    printed = capsys.readouterr().out

    assert printed.splitlines()[0] == "failed: KeyError: 'labels'"
    assert "Last lines of the probed code" in printed
    for measured in ("Seen by the probe", "nothing unusual", "no device", "What it may be", "Check next"):
        assert measured not in printed


def test_a_probe_that_measured_something_says_what_it_saw(capsys: pytest.CaptureFixture[str]) -> None:
    print_probe(console_for(), ProbeResult(verdict="memorised", summary="it did", causes=[]))

    assert "nothing unusual" in capsys.readouterr().out
