"""The probe on losses that each call draws anew, and on entries that return a dict."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")


from .here import probe_here

ENTRIES = Path(__file__).parent / "random_losses.py"


@pytest.mark.parametrize("name", ["labels_drawn_anew", "layers_made_in_forward"])
def test_a_loss_that_each_call_draws_anew_is_observed_and_blamed_on_no_fault(name: str, tmp_path: Path) -> None:
    result = probe_here(tmp_path, entry=f"{ENTRIES}:{name}", steps=200)

    assert any("two calls with nothing changed" in note for note in result.notes)
    assert result.verdict == "cannot_learn"
    assert result.causes[0].cause not in ("wrong_loss", "too_little_capacity", "healthy"), result.causes[:3]


def test_an_entry_may_return_a_dict(tmp_path: Path) -> None:
    result = probe_here(tmp_path, entry=f"{ENTRIES}:returns_a_dict")

    assert (result.verdict, result.causes[0].cause) == ("memorised", "healthy"), result.summary
    assert not [note for note in result.notes if "two calls" in note]


def test_an_incomplete_dict_is_refused_with_what_an_entry_returns(tmp_path: Path) -> None:
    result = probe_here(tmp_path, entry=f"{ENTRIES}:returns_half_a_dict")

    assert result.verdict == "failed"
    assert "returned dict with model; it must return an object or a dict with model" in result.summary
