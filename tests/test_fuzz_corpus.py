"""Every target of the fuzzer answers or refuses its seeds, the inputs kept of earlier runs, and some damaged ones."""

from __future__ import annotations

import warnings
from itertools import islice
from pathlib import Path

import pytest
from benchmarks.fuzz import corpus
from benchmarks.fuzz.mutate import Mutator
from benchmarks.fuzz.promises import Cost, check_error, metered
from benchmarks.fuzz.targets import TARGETS, Target, inside

from mldebug_mcp.core.errors import MLDebugError

DAMAGED = 6
"""Inputs of each target; `python -m benchmarks.fuzz` makes many more."""


@pytest.mark.parametrize("target", TARGETS, ids=[target.name for target in TARGETS])
def test_every_target_answers_or_refuses_good_kept_and_damaged_inputs_as_promised(
    tmp_path: Path, target: Target
) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    seeds, kept = list(target.seeds()), corpus.kept(target.name)
    mutator = Mutator([*seeds, *kept], "tests", in_place=target.in_place, maker=target.maker)
    with inside(tmp_path), warnings.catch_warnings(action="ignore"):
        parse = target.open(tmp_path)
        for data in (*islice(seeds, 3), *kept, *(mutator.make() for _ in range(DAMAGED))):
            with metered(Cost()):  # raises where one takes too long
                try:
                    parse(target.made(data))
                except MLDebugError as error:
                    check_error(error)


def test_only_short_readable_harmless_inputs_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "KEPT", tmp_path / "corpus.json")
    corpus.KEPT.write_text('{"settings: TOML": ["a = 1"]}')
    (target,) = [target for target in TARGETS if target.name == "settings: JSON, YAML"]
    found = [b"lr: 1\n", b"\x80\x02", b"a: " + b"b" * 300, b"lr: [1", b"a: 1", b"seed: 7"]
    corpus.write(corpus.found_file(target.name, tmp_path), found)
    corpus.save([target], tmp_path)
    assert corpus.kept(target.name) == [b"a: 1", b"lr: 1\n", b"lr: [1"]
    assert corpus.kept("settings: TOML") == [b"a = 1"]


def test_inputs_that_a_run_found_are_read_again_byte_for_byte(tmp_path: Path) -> None:
    inputs = [bytes(range(256)), "перплексия".encode(), b""]
    corpus.write(tmp_path / "found.json", inputs)
    assert corpus.read(tmp_path / "found.json") == inputs
