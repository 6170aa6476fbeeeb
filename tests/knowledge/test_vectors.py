"""Search by what is meant, where the package with the vectors of words is installed."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, pre_tokenizers

from mldebug_mcp.knowledge import vectors as module
from mldebug_mcp.knowledge.documents import Document
from mldebug_mcp.knowledge.search_index import Index
from mldebug_mcp.knowledge.vectors import Neighbours, Vectors

MEANINGS = {
    "freezes": (1, 0, 0), "hang": (1, 0, 0), "waits": (0.9, 0.1, 0),
    "explodes": (0, 1, 0), "diverges": (0, 1, 0), "blows": (0, 0.9, 0.1),
    "recipe": (0, 0, 1), "bread": (0, 0, 1), "dough": (0, 0, 1),
}  # fmt: skip


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Return a folder as the package's, with vectors of a few words."""
    (tmp_path / "weights").mkdir()
    (tmp_path / "tokenizers").mkdir()
    rows = np.array([(0.01, 0.01, 0.01), *MEANINGS.values()], dtype=np.float16)
    save_file({"embedding.weight": rows}, tmp_path / module.WEIGHTS)
    known = {"[UNK]": 0} | {word: place for place, word in enumerate(MEANINGS, start=1)}
    tokenizer = Tokenizer(models.WordLevel(known, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / module.TOKENIZER))
    return tmp_path


@pytest.fixture
def installed(package: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    spec = ModuleSpec(module.PACKAGE, None, is_package=True)
    spec.submodule_search_locations = [str(package)]
    monkeypatch.setattr(module, "find_spec", lambda name: spec if name == module.PACKAGE else None)
    module.vectors.cache_clear()
    yield
    module.vectors.cache_clear()


CAUSES = (
    Document(kind="cause", id="hang", title="hang", summary="", text="A rank waits.", tags=("hang",), asked=("hang",)),
    Document(
        kind="cause",
        id="lr_too_high",
        title="lr_too_high",
        summary="",
        text="It diverges.",
        tags=("lr_too_high",),
        asked=("diverges",),
    ),
)


def first(question: str) -> str:
    found = Index(CAUSES).find(question).found
    return found[0].document.id if found else ""


@pytest.mark.usefixtures("installed")
def test_a_question_is_answered_though_it_shares_no_word_with_the_answer() -> None:
    assert first("freezes") == "hang"
    assert first("explodes") == "lr_too_high"


@pytest.mark.usefixtures("installed")
def test_a_question_of_another_field_is_answered_with_nothing() -> None:
    assert first("bread dough") == ""


@pytest.mark.usefixtures("installed")
def test_without_the_files_of_the_package_only_words_count(package: Path) -> None:
    (package / module.WEIGHTS).unlink()
    assert first("freezes") == ""


def test_the_nearest_text_has_the_whole_share_and_its_cosine_is_told(package: Path) -> None:
    texts = [("cause:hang", "hang"), ("cause:hang", "waits"), ("cause:lr", "diverges"), ("cause:lr", "blows")]
    near, cosine = Neighbours(texts, Vectors(package)).nearest("freezes")
    assert near["cause:hang"] == 1.0
    assert near["cause:lr"] < 0.1
    assert cosine == pytest.approx(1.0, abs=0.05)
