"""Tokenized pretraining corpora in the formats of their writers: what is read, and what is refused with a reason."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from tests.batch.test_table_and_token_files import text_like

from mldebug_mcp.batch import read_batches
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.judge import inspect_batch


def write_megatron(folder: Path, documents: list[np.ndarray], code: int = 8, dtype: str = "<u2") -> Path:
    lengths = np.array([len(document) for document in documents], np.int32)
    itemsize = np.dtype(dtype).itemsize
    pointers = (np.cumsum(lengths, dtype=np.int64) - lengths) * itemsize
    head = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, code, len(documents), len(documents) + 1)
    ends = np.arange(len(documents) + 1, dtype=np.int64)
    (folder / "text_document.idx").write_bytes(head + lengths.tobytes() + pointers.tobytes() + ends.tobytes())
    path = folder / "text_document.bin"
    path.write_bytes(np.concatenate(documents).astype(dtype).tobytes())
    return path


@pytest.mark.parametrize(("code", "dtype"), [(8, "<u2"), (4, "<i4"), (5, "<i8")])
@pytest.mark.parametrize("ending", [".bin", ".idx"])
def test_megatron_is_read_document_by_document(code: int, dtype: str, ending: str, tmp_path: Path) -> None:
    documents = np.split(text_like(5000, 30_000), range(50, 5000, 50))
    path = write_megatron(tmp_path, documents, code, dtype).with_suffix(ending)
    batch = next(iter(read_batches(path)))
    assert (batch.rows, batch.purpose) == (100, "pretraining")
    assert np.array_equal(batch.sides[0].ids.row(7), documents[7])
    assert inspect_batch(path).batch.formats == ["megatron"]


def test_megatron_data_shorter_than_its_index_promises_is_refused(tmp_path: Path) -> None:
    path = write_megatron(tmp_path, [text_like(500, 30_000)] * 2)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match="its index promises 2,000"):
        inspect_batch(path)


def test_ids_of_eight_bytes_are_read_as_such(tmp_path: Path) -> None:
    ids = text_like(4096, 50_000)
    path = tmp_path / "train.bin"
    path.write_bytes(ids.astype("<i8").tobytes())
    assert np.array_equal(next(iter(read_batches(path))).sides[0].ids.flat, ids)
    assert any("8 bytes (inferred" in note for note in inspect_batch(path).notes)


def llm_c(magic: int, promised: int, tokens: np.ndarray) -> bytes:
    header = np.zeros(256, np.int32)
    header[:3] = magic, 1, promised
    return header.tobytes() + tokens.astype("<u2").tobytes()


def test_a_header_that_promises_more_tokens_than_there_are_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "train.bin"
    path.write_bytes(llm_c(20240520, 10_000, text_like(5000, 50_000)))
    with pytest.raises(InputError, match="promises 10,000 tokens, but 5,000 are there"):
        inspect_batch(path)


def test_an_evaluation_file_is_not_read_as_training_text(tmp_path: Path) -> None:
    path = tmp_path / "hellaswag_val.bin"
    path.write_bytes(llm_c(20240522, 10, text_like(5000, 50_000)))
    with pytest.raises(InputError, match=r"evaluation file of llm\.c"):
        inspect_batch(path)


def test_a_chunk_of_litdata_and_plain_text_are_not_read_as_token_ids(tmp_path: Path) -> None:
    items = [text_like(40, 30_000).astype("<i4").tobytes()] * 60
    offsets = 4 * (len(items) + 2) + np.concatenate([[0], np.cumsum([len(item) for item in items])])
    path = tmp_path / "chunk-0-0.bin"
    path.write_bytes(struct.pack("<I", len(items)) + offsets.astype("<u4").tobytes() + b"".join(items))
    with pytest.raises(InputError, match="not a format of batches"):
        inspect_batch(path)
    path.write_text("It was the best of times, it was the worst of times. " * 200)
    with pytest.raises(InputError, match="not a format of batches"):
        inspect_batch(path)


def write_datatrove(folder: Path, documents: list[np.ndarray], dtype: str) -> Path:
    path = folder / "00000_unshuffled.ds"
    path.write_bytes(np.concatenate(documents).astype(dtype).tobytes())
    ends = np.cumsum([len(document) for document in documents])
    (folder / f"{path.name}.index").write_bytes(ends.astype("<u8").tobytes())
    (folder / f"{path.name}.metadata").write_text(f"gpt2|{np.dtype(dtype).itemsize}\n{ends[-1]}\n5 kT")
    return path


@pytest.mark.parametrize("dtype", ["<u2", "<u4"])
def test_datatrove_is_read_document_by_document(dtype: str, tmp_path: Path) -> None:
    documents = np.split(text_like(5000, 50_000), range(50, 5000, 50))
    path = write_datatrove(tmp_path, documents, dtype)
    batch = next(iter(read_batches(path)))
    assert (batch.rows, batch.purpose) == (100, "pretraining")
    assert np.array_equal(batch.sides[0].ids.row(7), documents[7])


def test_datatrove_whose_index_contradicts_its_tokens_is_refused(tmp_path: Path) -> None:
    path = write_datatrove(tmp_path, [text_like(500, 50_000)] * 2, "<u2")
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match="ends at token 1,000"):
        inspect_batch(path)


def test_an_array_without_rows_is_a_corpus_cut_into_windows(tmp_path: Path) -> None:
    ids = text_like(45_777, 50_000)
    path = tmp_path / "shard_00000.npy"
    np.save(path, ids.astype(np.uint16))
    batch = next(iter(read_batches(path)))
    assert (batch.rows, batch.purpose) == (44, "pretraining")
    assert np.array_equal(batch.sides[0].ids.flat, ids[: 44 * 1024])
    answer = inspect_batch(path)
    assert not answer.findings
    assert answer.corpus is not None
    assert answer.corpus.tokens == len(ids)


def test_copies_among_rows_of_ids_alone_are_reported(tmp_path: Path) -> None:
    rows = text_like(100 * 64, 50_000).reshape(100, 64)
    path = tmp_path / "rows.npy"
    np.save(path, rows)
    healthy = inspect_batch(path)
    assert healthy.batch.purpose == "pretraining"
    assert not healthy.findings
    np.save(path, np.concatenate([rows, rows[:50]]))
    assert "duplicate_rows" in {finding.check for finding in inspect_batch(path).findings}


@pytest.mark.parametrize("dtype", [">u2", ">u4", ">i8"])
def test_ids_whose_most_significant_byte_comes_first_are_read_as_such_and_stated(dtype: str, tmp_path: Path) -> None:
    ids = text_like(8192, 50_000)
    path = tmp_path / "train.bin"
    path.write_bytes(ids.astype(dtype).tobytes())
    assert np.array_equal(next(iter(read_batches(path))).sides[0].ids.flat, ids)
    assert any("most significant byte first" in note for note in inspect_batch(path).notes)


@pytest.mark.parametrize("dtype", [">u2", ">u4", ">i8"])
def test_an_array_that_states_its_byte_order_is_healthy(dtype: str, tmp_path: Path) -> None:
    ids = text_like(8192, 50_000)
    path = tmp_path / "train.npy"
    np.save(path, ids.astype(dtype))
    assert np.array_equal(next(iter(read_batches(path))).sides[0].ids.flat, ids)
    answer = inspect_batch(path)
    assert "dtype_misread" not in {finding.check for finding in answer.findings}
    assert answer.corpus is not None
    assert answer.corpus.stored == np.dtype(dtype).name


def test_an_array_that_holds_fewer_numbers_than_its_header_states_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "train.npy"
    np.save(path, text_like(8192, 50_000).astype(np.uint16))
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(InputError, match="8,192 numbers are promised, and 7,692 are there"):
        inspect_batch(path)


@pytest.mark.parametrize("vocabulary", [60, 256, 30_000, 65_000])
@pytest.mark.parametrize("dtype", ["<u2", "<u4", "<i8"])
def test_ids_in_the_usual_order_are_not_turned_round(vocabulary: int, dtype: str, tmp_path: Path) -> None:
    ids = text_like(8192, vocabulary)
    path = tmp_path / "train.bin"
    path.write_bytes(ids.astype(dtype).tobytes())
    assert np.array_equal(next(iter(read_batches(path))).sides[0].ids.flat, ids)


def write_litdata(folder: Path, items: list[np.ndarray], data_format: str = "no_header_tensor:16") -> Path:
    folder.mkdir()
    chunks = [items[: len(items) // 2], items[len(items) // 2 :]]
    for number, chunk in enumerate(chunks):
        stored = [item.astype("<i4").tobytes() for item in chunk]
        offsets = 4 * (len(stored) + 2) + np.concatenate([[0], np.cumsum([len(item) for item in stored])])
        content = struct.pack("<I", len(stored)) + offsets.astype("<u4").tobytes() + b"".join(stored)
        (folder / f"chunk-0-{number}.bin").write_bytes(content)
    listed = [{"filename": f"chunk-0-{n}.bin", "chunk_size": len(chunk)} for n, chunk in enumerate(chunks)]
    config = {"data_format": [data_format], "compression": None, "encryption": None, "item_loader": "TokensLoader"}
    (folder / "index.json").write_text(json.dumps({"chunks": listed, "config": config}))
    return folder


def documents_like_text(count: int) -> list[np.ndarray]:
    chance = np.random.default_rng(0)
    return [chance.integers(0, 30_000, int(length)) for length in chance.integers(20, 90, count)]


def test_a_folder_of_litdata_is_read_item_by_item_over_its_chunks(tmp_path: Path) -> None:
    documents = documents_like_text(100)
    answer = inspect_batch(write_litdata(tmp_path / "healthy", documents))
    assert (answer.batch.rows, answer.batch.purpose, answer.batch.formats) == (100, "pretraining", ["litdata"])
    assert not answer.findings
    answer = inspect_batch(write_litdata(tmp_path / "twice", documents + documents))
    assert [finding.check for finding in answer.findings] == ["duplicate_rows"]


def test_a_folder_of_litdata_without_tensors_of_ids_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"LitData with items of \['jpeg'\].*save the token ids .* as parquet"):
        inspect_batch(write_litdata(tmp_path / "images", documents_like_text(10), "jpeg"))


def test_a_chunk_of_litdata_that_contradicts_its_index_is_refused(tmp_path: Path) -> None:
    folder = write_litdata(tmp_path / "cut", documents_like_text(10))
    chunk = folder / "chunk-0-1.bin"
    chunk.write_bytes(chunk.read_bytes()[:-4])
    with pytest.raises(InputError, match="its offsets do not fit 5 items"):
        inspect_batch(folder)


def write_mds(folder: Path, documents: list[np.ndarray], encoding: str, dtype: str) -> Path:
    folder.mkdir()
    samples = []
    for number, document in enumerate(documents):
        shape = b"" if encoding == "bytes" else bytes([1 << 2, len(document)])
        cell, key = shape + document.astype(dtype).tobytes(), f"document {number}".encode()
        samples.append(struct.pack("<II", len(key), len(cell)) + key + cell)
    header = b'{"column_names": ["id", "tokens"]}'
    start = 4 * (len(samples) + 2) + len(header)
    offsets = start + np.concatenate([[0], np.cumsum([len(sample) for sample in samples])])
    content = struct.pack("<I", len(samples)) + offsets.astype("<u4").tobytes() + header + b"".join(samples)
    (folder / "shard.00000.mds").write_bytes(content)
    shard = {
        "column_encodings": ["str", encoding], "column_names": ["id", "tokens"], "column_sizes": [None, None],
        "compression": None, "format": "mds", "raw_data": {"basename": "shard.00000.mds", "bytes": len(content)},
        "samples": len(samples), "version": 2, "zip_data": None,
    }  # fmt: skip
    (folder / "index.json").write_text(json.dumps({"shards": [shard], "version": 2}))
    return folder


@pytest.mark.parametrize(("encoding", "dtype"), [("ndarray:uint16", "<u2"), ("ndarray:int64", "<i8"), ("bytes", "<i8")])
def test_a_folder_of_mds_is_read_sample_by_sample(encoding: str, dtype: str, tmp_path: Path) -> None:
    documents = documents_like_text(100)
    folder = write_mds(tmp_path / "train", documents, encoding, dtype)
    assert np.array_equal(next(iter(read_batches(folder))).sides[0].ids.row(7), documents[7])
    answer = inspect_batch(folder)
    assert (answer.batch.rows, answer.batch.purpose, answer.findings) == (100, "pretraining", [])


def test_a_folder_of_mds_without_token_ids_or_with_packed_shards_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"MDS whose columns are id \(str\), tokens \(jpeg\)"):
        inspect_batch(write_mds(tmp_path / "images", documents_like_text(10), "jpeg", "<u2"))
    folder = write_mds(tmp_path / "packed", documents_like_text(10), "ndarray:uint16", "<u2")
    (folder / "shard.00000.mds").rename(folder / "shard.00000.mds.zstd")
    index = json.loads((folder / "index.json").read_text())
    index["shards"][0] |= {"zip_data": {"basename": "shard.00000.mds.zstd"}, "compression": "zstd"}
    (folder / "index.json").write_text(json.dumps(index))
    with pytest.raises(InputError, match="shard of MDS is there only compressed"):
        inspect_batch(folder)


def write_shards(folder: Path, kind: str, corpus: list[list[np.ndarray]]) -> Path:
    folder.mkdir()
    for number, documents in enumerate(corpus):
        if kind == "megatron":
            path = write_megatron(folder, documents)
            for ending in (".bin", ".idx"):
                path.with_suffix(ending).rename(folder / f"part_{number}{ending}")
        elif kind == "npz":
            np.save(folder / f"part_{number}.npy", np.stack([document[:20] for document in documents]))
        else:
            path = write_datatrove(folder, documents, "<u2")
            for name in (".ds", ".ds.index", ".ds.metadata"):
                (folder / f"00000_unshuffled{name}").rename(folder / f"part_{number}{name}")
    return folder


@pytest.mark.parametrize("kind", ["megatron", "datatrove", "npz"])
def test_a_folder_of_shards_is_one_corpus_in_which_copies_between_shards_are_found(kind: str, tmp_path: Path) -> None:
    documents = documents_like_text(100)
    answer = inspect_batch(write_shards(tmp_path / "healthy", kind, [documents[:50], documents[50:]]))
    assert (answer.batch.rows, answer.batch.purpose, answer.findings) == (100, "pretraining", [])
    assert any(f"one corpus of 2 shards ({kind})" in note for note in answer.notes)
    answer = inspect_batch(write_shards(tmp_path / "twice", kind, [documents[:50], documents[:50]]))
    assert [finding.check for finding in answer.findings] == ["duplicate_rows"]


def test_validation_documents_that_stand_in_a_corpus_of_shards_are_found(tmp_path: Path) -> None:
    documents = documents_like_text(100)
    train = write_shards(tmp_path / "train", "megatron", [documents[:40], documents[40:80]])
    leaking = write_shards(tmp_path / "leaking", "datatrove", [documents[30:50], documents[80:]])
    apart = write_shards(tmp_path / "apart", "datatrove", [documents[80:90], documents[90:]])
    assert not inspect_batch(train, against=apart).findings
    assert len(inspect_batch(train, against=leaking).findings) == 1
