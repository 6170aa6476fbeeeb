"""Each kind of answer is what it was, until somebody means to change it: then `python -m tests.snapshots` renews it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.snapshots.answers import answers
from tests.snapshots.runs import KINDS

KEPT = Path(__file__).parent / "kept"


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_is_what_it_was(kind: str) -> None:
    for form, answer in answers(kind):
        kept = (KEPT / f"{kind}.{form}").read_text(encoding="utf-8")
        assert answer == kept, f"{kind}.{form} has changed; if that is meant: python -m tests.snapshots"


def test_each_kept_answer_is_one_that_is_still_given() -> None:
    assert {path.name.partition(".")[0] for path in KEPT.iterdir()} == set(KINDS)
