"""Corpora that the real libraries wrote (benchmarks/corpora/make.py): planted faults are found, healthy ones left.

The tests need none of those libraries, but for ArrayRecord's, which is an extra.
"""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
from benchmarks.corpora.__main__ import EXPECTED, UNSEEN, found
from benchmarks.corpora.make import KEPT, KEPT_DOCUMENTS, WRITERS, documents
from benchmarks.corpus.archive import unpack

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.judge import inspect_batch

FAULTS = ("end missing", "end wrong", "shard twice", "ids wrapped", "width misread", "validation inside")
FORMATS = [
    pytest.param(
        name, marks=pytest.mark.skipif(name == "array_record" and not find_spec("array_record"), reason="an extra")
    )
    for name in WRITERS
]


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpora")
    unpack(Path(__file__).parent / "corpora.tar.xz", folder)
    return folder


def test_the_archive_holds_each_corpus_in_each_format(corpora: Path) -> None:
    assert all((corpora / name / corpus).is_dir() for name in WRITERS for corpus in KEPT)


@pytest.mark.parametrize("name", FORMATS)
def test_a_healthy_corpus_is_read_whole_and_left_alone(name: str, corpora: Path) -> None:
    for model in (None, corpora / "config.json"):
        answer = inspect_batch(corpora / name / "healthy", None, model)
        assert [finding.check for finding in answer.findings] == []
        assert answer.corpus is not None
        assert answer.corpus.tokens == sum(map(len, documents(KEPT_DOCUMENTS, 0)))
    assert answer.corpus is not None
    assert answer.corpus.documents == KEPT_DOCUMENTS


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", FORMATS)
def test_a_planted_fault_is_found(name: str, fault: str, corpora: Path) -> None:
    checks, _ = found(corpora / name, fault)
    if name in UNSEEN.get(fault, (frozenset(), ""))[0]:
        assert checks == frozenset()
    else:
        assert checks & EXPECTED[fault]


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_of_one_format_is_never_read_as_another(name: str, corpora: Path, tmp_path: Path) -> None:
    content = max((corpora / name / "healthy").iterdir(), key=lambda file: file.stat().st_size)
    read = set()
    for ending in (".bin", ".idx", ".npy", ".ds", ".mds", ".tar", ".tfrecord", ".arrow", ".parquet", ".npz", ".dat"):
        path = tmp_path / f"renamed{ending}"
        shutil.copy(content, path)
        try:
            answer = inspect_batch(path)
        except InputError:
            continue
        read.add((answer.batch.formats[0], answer.batch.vocabulary_used))
    assert len(read) <= 1
