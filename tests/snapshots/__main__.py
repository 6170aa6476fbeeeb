"""Renew the snapshots: see the package."""

from __future__ import annotations

from tests.snapshots.answers import answers
from tests.snapshots.runs import KINDS
from tests.snapshots.test_snapshots import KEPT

if __name__ == "__main__":
    KEPT.mkdir(exist_ok=True)
    for kind in KINDS:
        for form, answer in answers(kind):
            (KEPT / f"{kind}.{form}").write_text(answer, encoding="utf-8")
