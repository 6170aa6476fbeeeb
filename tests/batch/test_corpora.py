"""What a pretrainer asks of a tokenized corpus: each planted fault is found, and a healthy corpus is left alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from tests.batch.test_pretraining_corpora import write_datatrove, write_megatron

from mldebug_mcp.judge import inspect_batch
from mldebug_mcp.models.data import BatchInspection
from mldebug_mcp.report.pages import page

Document = npt.NDArray[np.int64]
END = 50_256


def documents(
    count: int, seed: int = 0, end: int | None = END, vocabulary: int = 50_000, longest: int = 200
) -> list[Document]:
    """Make documents whose ids are as unevenly common as those of text."""
    chance = np.random.default_rng(seed)
    order = np.random.default_rng(99).permutation(vocabulary)
    order[:1000].sort()  # common ids are small, as byte pairs are merged in the order in which they are common
    made = []
    for length in chance.integers(20, longest, count):
        text = order[np.minimum(chance.zipf(1.2, length) - 1, vocabulary - 1) % vocabulary]
        made.append(text if end is None else np.append(text, end))
    return made


def write(folder: Path, name: str, corpus: Sequence[Document], kind: str = "megatron", dtype: str = "<u2") -> Path:
    place = folder / name
    place.mkdir()
    if kind == "megatron":
        return write_megatron(place, list(corpus), {"<u2": 8, "<i4": 4, "<i8": 5}[dtype], dtype)
    if kind == "datatrove":
        return write_datatrove(place, list(corpus), dtype)
    path = place / "train.bin"
    path.write_bytes(np.concatenate(corpus).astype(dtype).tobytes())
    return path


def config(folder: Path, vocabulary: int = 50_257, end: int = END) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps({"vocab_size": vocabulary, "eos_token_id": end, "max_position_embeddings": 256}))
    return path


def found(answer: BatchInspection) -> list[str]:
    return [finding.check for finding in answer.findings]


KINDS = ("megatron", "datatrove", "stream")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("given", [True, False])
def test_a_healthy_corpus_is_left_alone(kind: str, given: bool, tmp_path: Path) -> None:
    path = write(tmp_path, "healthy", documents(400), kind)
    assert found(inspect_batch(path, None, config(tmp_path) if given else None)) == []


def test_the_answer_says_what_the_corpus_holds(tmp_path: Path) -> None:
    corpus = documents(400)
    answer = inspect_batch(write(tmp_path, "healthy", corpus), None, config(tmp_path))
    held, tokens = answer.corpus, sum(map(len, corpus))
    assert held is not None
    assert (held.rows_are, held.documents, held.tokens, held.stored) == ("documents", 400, tokens, "uint16")
    assert [(end.id, end.documents) for end in held.expected_ends] == [(END, 400)]
    assert (held.last[0].id, held.last[0].documents) == (END, 400)
    assert held.ids_never_used == 50_257 - len(np.unique(np.concatenate(corpus)))
    assert (sum(held.id_bands), held.id_limit, held.ids_outside) == (tokens, 50_257, 0)
    ends = np.cumsum([len(document) for document in corpus])
    starts = ends - [len(document) for document in corpus]
    assert held.crossing_documents == int((starts // 256 != (ends - 1) // 256).sum())
    assert held.left_over_tokens == tokens % 256
    assert (held.length_order, held.source_order) == ("", False)
    assert "The corpus" in page(answer)
    assert page(answer).count("<svg") == 2 * 2  # each for a wide and for a narrow page


@pytest.mark.parametrize("kind", KINDS)
def test_a_corpus_without_ends_of_documents_is_reported(kind: str, tmp_path: Path) -> None:
    path = write(tmp_path, "open", documents(400, end=None), kind)
    assert found(inspect_batch(path, None, config(tmp_path))) == ["document_end_missing"]
    if kind != "stream":
        assert found(inspect_batch(path)) == ["document_end_missing"]


@pytest.mark.parametrize("kind", ["megatron", "datatrove"])
def test_another_token_in_place_of_the_end_is_reported_with_its_id(kind: str, tmp_path: Path) -> None:
    answer = inspect_batch(write(tmp_path, "wrong", documents(400, end=0), kind), None, config(tmp_path))
    assert found(answer) == ["document_end_wrong"]
    assert "id 0 ends documents (400 in all) 400 times" in answer.findings[0].summary


@pytest.mark.parametrize("kind", KINDS)
def test_documents_that_stand_twice_are_reported(kind: str, tmp_path: Path) -> None:
    corpus = documents(200)
    path = write(tmp_path, "twice", corpus + corpus, kind)
    assert found(inspect_batch(path, None, config(tmp_path))) == ["duplicate_rows"]
    assert found(inspect_batch(path)) == (["passages_repeated"] if kind == "stream" else ["duplicate_rows"])


def test_long_passages_that_repeat_are_reported_and_copies_of_documents_are_not_counted_again(tmp_path: Path) -> None:
    notice = documents(1, seed=7, end=None, longest=21)[0]
    notice = np.concatenate([notice, *(documents(3, seed=8, end=None))])[:100]
    path = write(tmp_path, "notices", [np.append(notice, document) for document in documents(300)])
    assert found(inspect_batch(path, None, config(tmp_path))) == ["passages_repeated"]


def test_a_shard_that_stands_twice_is_named(tmp_path: Path) -> None:
    shards = [documents(100, seed) for seed in (0, 1, 0)]
    for number, shard in enumerate(shards):
        (tmp_path / f"shard_{number}.bin").write_bytes(np.concatenate(shard).astype("<u2").tobytes())
    for model in (None, config(tmp_path)):
        answer = inspect_batch(tmp_path, None, model)
        assert found(answer) == ["duplicate_rows"]
        assert "shard_2.bin is shard_0.bin" in answer.findings[0].summary
        assert answer.corpus is not None
        assert [shard.copy_of for shard in answer.corpus.shards] == ["", "", "shard_0.bin"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("given", [True, False])
def test_validation_documents_in_training_are_found_wherever_rows_are_cut(
    kind: str, given: bool, tmp_path: Path
) -> None:
    corpus = documents(400)
    model = config(tmp_path) if given else None
    path = write(tmp_path, "train", corpus, kind)
    leaking = write(tmp_path, "leaking", documents(60, seed=1) + corpus[100:140], kind)
    apart = write(tmp_path, "apart", documents(100, seed=2), kind)
    assert found(inspect_batch(path, None, model, against=leaking)) == ["split_leakage"]
    answer = inspect_batch(path, None, model, against=apart)
    assert found(answer) == []
    assert any("in other words" in note for note in answer.notes)
    assert answer.leakage is not None
    assert answer.leakage.shared_passages == 0 < answer.leakage.passages


@pytest.mark.parametrize(("dtype", "says"), [("<u2", "stored as uint16"), ("<i4", "and none above")])
def test_ids_that_wrapped_at_two_bytes_are_reported(dtype: str, says: str, tmp_path: Path) -> None:
    corpus = documents(400, end=128_001, vocabulary=128_000)
    model = config(tmp_path, 128_256, 128_001)
    assert found(inspect_batch(write(tmp_path, "right", corpus, dtype="<i4"), None, model)) == []
    answer = inspect_batch(write(tmp_path, "wrapped", [one % 65_536 for one in corpus], dtype=dtype), None, model)
    assert found(answer) == ["ids_wrapped"]
    assert says in answer.findings[0].summary
    assert "id 62465, which is the end token 128001 less 65,536" in answer.findings[0].summary


@pytest.mark.parametrize("misread", ["wide as narrow", "narrow as wide", "other byte order"])
def test_ids_read_in_another_width_or_order_are_reported(misread: str, tmp_path: Path) -> None:
    flat = np.concatenate(documents(400))
    flat = flat[: len(flat) // 2 * 2]
    dtype = "<i8" if misread == "narrow as wide" else "<u2"
    if misread == "wide as narrow":
        flat = flat.astype("<u4").view("<u2").astype(np.int64)
    elif misread == "narrow as wide":
        flat = flat.astype("<u2").view("<u4").astype(np.int64)
    else:
        flat = flat.astype("<u2").byteswap().astype(np.int64)
    cuts = np.cumsum(np.random.default_rng(0).integers(20, 200, len(flat) // 110))
    path = write(tmp_path, "misread", np.split(flat, cuts[cuts < len(flat)]), dtype=dtype)
    assert "dtype_misread" in found(inspect_batch(path))


def test_documents_cut_at_one_length_are_counted_as_truncated(tmp_path: Path) -> None:
    rows = [document[:128].tolist() for document in documents(200, longest=156)]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(json.dumps({"input_ids": row}) for row in rows))
    cut = sum(len(row) == 128 for row in rows)
    for model in (None, config(tmp_path)):
        answer = inspect_batch(path, None, model)
        assert found(answer) == ["documents_truncated"]
        assert answer.batch.truncated_rows == cut > 20


def test_documents_sorted_by_length_are_reported(tmp_path: Path) -> None:
    corpus = sorted(documents(400), key=len)
    answer = inspect_batch(write(tmp_path, "rising", corpus), None, config(tmp_path))
    assert found(answer) == ["corpus_sorted"]
    assert answer.corpus is not None
    assert answer.corpus.length_order == "shortest first"
    assert found(inspect_batch(write(tmp_path, "falling", corpus[::-1]))) == ["corpus_sorted"]


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_sources_that_follow_each_other_are_reported_and_mixed_ones_are_not(share: float, tmp_path: Path) -> None:
    corpus = documents(600)
    for number in range(int(600 * share)):
        text = corpus[number][:-1]
        corpus[number] = np.append((text * 7 + 13) % 50_000, END)
    assert found(inspect_batch(write(tmp_path, "sorted", corpus), None, config(tmp_path))) == ["corpus_sorted"]
    mixed = [corpus[place] for place in np.random.default_rng(0).permutation(600)]
    assert found(inspect_batch(write(tmp_path, "mixed", mixed), None, config(tmp_path))) == []


def test_a_mask_of_ones_beside_many_rows_of_ids_makes_no_prompts_of_them(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [document.tolist() for document in documents(100)]
    path.write_text("\n".join(json.dumps({"input_ids": row, "attention_mask": [1] * len(row)}) for row in rows * 2))
    answer = inspect_batch(path, None, config(tmp_path))
    assert (answer.batch.purpose, found(answer)) == ("pretraining", ["duplicate_rows"])


def test_tokens_behind_the_last_whole_row_are_counted(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for shard, count in enumerate((5000, 3333)):
        ids = np.minimum(rng.zipf(1.2, size=count), 50_000)
        ids.astype(np.uint16).tofile(tmp_path / f"train_{shard}.bin")
    corpus = inspect_batch(tmp_path, dtype="uint16").corpus
    assert corpus is not None
    assert corpus.tokens == 8333
    assert [shard.tokens for shard in corpus.shards] == [5000, 3333]
