"""The data set of trained runs: archives that unpack to labelled runs, and hands that add to it."""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.corpus import archive
from benchmarks.corpus.archive import AUTHORS, OWN, RECORDED, SETS, archive_of, folder_of, pack
from benchmarks.corpus.labels import INDEX, Label, read_labels, write_labels
from benchmarks.faults.report import judge

from mldebug_mcp import diagnose_run
from mldebug_mcp.knowledge import catalogue

LARGEST = 12e6
"""Bytes of all archives together."""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    into = tmp_path_factory.mktemp("corpus")
    return {name: folder_of(name, into) for name in SETS}


def _folder(place: Path, **labels: Label) -> Path:
    place.mkdir()
    for name in labels:
        (place / name).mkdir()
        (place / name / "log.jsonl").write_text("".join(f'{{"step": {at}, "loss": 1.0}}\n' for at in range(9)))
    write_labels(place, labels)
    return place


def test_the_archives_are_small() -> None:
    assert sum(archive_of(name).stat().st_size for name in SETS) < LARGEST


def test_every_run_has_a_cause_that_the_playbook_names(unpacked: dict[str, Path]) -> None:
    known = {*catalogue().causes, "healthy"}
    for folder in unpacked.values():
        labels = read_labels(folder)
        assert labels
        assert {cause for label in labels.values() for cause in (label.cause, *label.also)} <= known
        assert {run.name for run in folder.iterdir()} == {*labels, INDEX, archive.STAMP}


def test_every_author_has_healthy_runs_and_many_causes(unpacked: dict[str, Path]) -> None:
    for author in AUTHORS:
        causes = [label.cause for label in read_labels(unpacked[author]).values()]
        assert causes.count("healthy") >= 10
        assert len({*causes}) >= 20


def test_every_cause_of_our_own_is_injected_in_both_parts(unpacked: dict[str, Path]) -> None:
    labels = read_labels(unpacked[OWN]).values()
    parts = [{label.cause for label in labels if label.tuning is tuning} for tuning in (True, False)]
    assert parts[0] == parts[1]
    assert sum(label.cause == "healthy" for label in labels) >= len(labels) / 4


def test_a_recording_is_another_log_of_a_run_of_our_own(unpacked: dict[str, Path]) -> None:
    own = read_labels(unpacked[OWN])
    for label in read_labels(unpacked[RECORDED]).values():
        assert replace(label, of="") == own[label.of]


@pytest.mark.parametrize("author", AUTHORS)
def test_runs_of_an_author_are_judged(unpacked: dict[str, Path], tmp_path: Path, author: str) -> None:
    labels = read_labels(unpacked[author])
    few = dict([*labels.items()][:3])
    for name in few:
        (unpacked[author] / name).rename(tmp_path / name)
    write_labels(tmp_path, few)
    judged = judge(tmp_path, author, processes=1)
    for name in few:
        (tmp_path / name).rename(unpacked[author] / name)
    assert [one.name for one in judged] == [f"{author}-{label.cause}-{name}" for name, label in few.items()]
    assert all(one.states and one.loops == author for one in judged)


def test_what_is_packed_is_what_is_unpacked_and_gives_the_same_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = {"a": Label("bad_batch", ("lr_too_high",), onset=5, steps=9, shows=False), "b": Label("healthy")}
    made = _folder(tmp_path / "made", **labels)
    monkeypatch.setattr(archive, "CORPUS", tmp_path)
    pack(made, tmp_path / "made.tar.xz")
    folder = folder_of("made", tmp_path / "into")
    assert read_labels(folder) == labels
    assert {file.read_bytes() for file in folder.rglob("log.jsonl")} == {(made / "a" / "log.jsonl").read_bytes()}
    given, wanted = (diagnose_run(place / "a").hypotheses for place in (folder, made))
    assert [(one.cause, one.probability) for one in given] == [(one.cause, one.probability) for one in wanted]


def test_the_same_runs_make_the_same_archive(tmp_path: Path) -> None:
    for place in ("one", "another"):
        pack(_folder(tmp_path / place, b=Label("healthy"), a=Label("hang")), tmp_path / f"{place}.tar.xz")
    assert (tmp_path / "one.tar.xz").read_bytes() == (tmp_path / "another.tar.xz").read_bytes()


def test_an_archive_that_changed_is_unpacked_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "CORPUS", tmp_path)
    pack(_folder(tmp_path / "one", a=Label("healthy")), tmp_path / "set.tar.xz")
    assert [*read_labels(folder_of("set", tmp_path / "into"))] == ["a"]
    pack(_folder(tmp_path / "another", b=Label("hang")), tmp_path / "set.tar.xz")
    assert [*read_labels(folder_of("set", tmp_path / "into"))] == ["b"]


def test_an_archive_writes_nothing_outside_of_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "CORPUS", tmp_path)
    with tarfile.open(tmp_path / "set.tar.xz", "w:xz") as packed:
        packed.addfile(tarfile.TarInfo("../outside"), io.BytesIO())
    with pytest.raises(tarfile.TarError):
        folder_of("set", tmp_path / "into")
    assert not (tmp_path / "into" / "outside").exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"cause": "hang"}, "line 1: not an object with `run` and `cause`"),
        ({"run": "a"}, "line 1: not an object with `run` and `cause`"),
        ({"run": "elsewhere", "cause": "hang"}, "line 1: elsewhere is not there"),
    ],
)
def test_an_index_that_is_wrong_is_refused_with_its_line(tmp_path: Path, line: dict[str, str], said: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / INDEX).write_text(json.dumps(line))
    with pytest.raises(SystemExit, match=said):
        read_labels(tmp_path)


def test_a_set_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(SystemExit, match="no such set; there are own, recorded, vision"):
        folder_of("elsewhere")
