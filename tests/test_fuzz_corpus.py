"""The inputs that fuzzing kept, as each led somewhere new: every one is still answered or refused as is promised."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from benchmarks.fuzz import corpus
from benchmarks.fuzz.meter import Cost, metered
from benchmarks.fuzz.oracle import check_error
from benchmarks.fuzz.targets import TARGETS, Target, inside

from mldebug_mcp.errors import MLDebugError

KEPT = [target for target in TARGETS if corpus.archive_of(target.name).is_file()]
REPLAYED = 12
"""Inputs of each target; `python -m benchmarks.fuzz` begins with all of them."""


@pytest.mark.parametrize("target", KEPT, ids=[target.name for target in KEPT])
def test_every_input_of_the_corpus_is_answered_or_refused_as_promised(tmp_path: Path, target: Target) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    inputs = corpus.read(corpus.archive_of(target.name))
    assert inputs
    with inside(tmp_path), warnings.catch_warnings(action="ignore"):
        parse = target.open(tmp_path)
        for data in inputs[:: max(1, len(inputs) // REPLAYED)]:
            made = target.wrap(data) if target.wrap is not None else data
            with metered(Cost()):  # raises where one takes too long
                try:
                    parse(made)
                except MLDebugError as error:
                    check_error(error)


def test_the_corpus_is_small() -> None:
    assert 0 < sum(path.stat().st_size for path in corpus.FOLDER.glob("*.zip")) <= 1 << 20
