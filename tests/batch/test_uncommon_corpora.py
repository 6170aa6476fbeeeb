"""Corpora as people really keep them: sequences, trees, masks, held out and hidden files, cut ends, ends twice."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from datasets import Dataset
from tests.batch.kit import tokenizer_of
from tests.batch.test_corpora import END, Document, config, documents, found
from tests.batch.test_corpus_formats import example, npy, write_tar, write_tfrecord
from tests.batch.test_pretraining_corpora import write_datatrove, write_mds, write_megatron

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.judge import inspect_batch


def raw(path: Path, corpus: Sequence[Document], dtype: str = "<u2") -> Path:
    path.write_bytes(np.concatenate(corpus).astype(dtype).tobytes())
    return path


def write_tree(folder: Path, items: Sequence[dict[str, Document]], *, plain: bool = False) -> Path:
    """Write a chunk of LitData, whose items are trees of arrays: the bytes of each array, then the arrays."""
    folder.mkdir()
    cells = [[array.astype("<i8").tobytes() for array in item.values()] for item in items]
    packed = [struct.pack(f"<{len(cell)}I", *map(len, cell)) + b"".join(cell) for cell in cells]
    offsets = 4 * (len(packed) + 2) + np.concatenate([[0], np.cumsum([len(item) for item in packed])])
    content = struct.pack("<I", len(packed)) + offsets.astype("<u4").tobytes() + b"".join(packed)
    (folder / "chunk-0-0.bin").write_bytes(content)
    leaf: dict[str, object] = {"type": None, "context": None, "children_spec": []}
    keys = list(items[0])
    tree = {"type": "builtins.dict", "context": json.dumps(keys), "children_spec": [leaf] * len(keys)}
    listed = {
        "data_format": ["no_header_tensor:18"] * len(keys),
        "data_spec": json.dumps([1, leaf if plain else tree]),
        "compression": None,
        "item_loader": "PyTreeLoader",
    }
    index = {"chunks": [{"filename": "chunk-0-0.bin", "chunk_size": len(items)}], "config": listed}
    (folder / "index.json").write_text(json.dumps(index))
    return folder


def test_a_document_of_several_sequences_is_one_document(tmp_path: Path) -> None:
    corpus = documents(300)
    sentences = [part for document in corpus for part in np.array_split(document, 3)]
    index = write_megatron(tmp_path, sentences).with_suffix(".idx")
    content = index.read_bytes()
    head = 34 + 12 * len(sentences)
    firsts = np.arange(0, len(sentences) + 1, 3, dtype="<i8")
    index.write_bytes(content[:26] + struct.pack("<Q", len(firsts)) + content[34:head] + firsts.tobytes())
    answer = inspect_batch(index, None, config(tmp_path))
    assert (answer.batch.rows, found(answer)) == (300, [])
    assert any("300 documents in 900 sequences" in note for note in answer.notes)
    index.write_bytes(content[:26] + struct.pack("<Q", len(firsts)) + content[34:head] + firsts[::-1].tobytes())
    with pytest.raises(InputError, match="its documents do not begin at sequences from 0 to 900"):
        inspect_batch(index)


@pytest.mark.parametrize("plain", [True, False])
def test_items_of_litdata_that_are_trees_are_read_by_their_names(plain: bool, tmp_path: Path) -> None:
    corpus = documents(100)
    items = [{"tokens": one} if plain else {"weight": one[:1], "input_ids": one, "labels": one} for one in corpus]
    answer = inspect_batch(write_tree(tmp_path / "tree", items, plain=plain), None, config(tmp_path))
    assert (answer.batch.rows, answer.batch.tokens, found(answer)) == (100, sum(map(len, corpus)), [])


def test_a_mask_of_the_loss_beside_tokens_of_datatrove_is_heeded(tmp_path: Path) -> None:
    corpus = documents(100)
    path = write_datatrove(tmp_path, corpus, "<u2")
    loss = path.with_name(f"{path.name}.loss")
    masks = [np.arange(len(document)) >= len(document) // 2 for document in corpus]
    loss.write_bytes(np.concatenate(masks).astype(np.uint8).tobytes())
    answer = inspect_batch(path, None, config(tmp_path))
    assert (answer.batch.trained_tokens, found(answer)) == (sum(int(mask.sum()) for mask in masks), [])
    loss.write_bytes(bytes(sum(map(len, corpus))))
    assert "all_labels_masked" in found(inspect_batch(path, None, config(tmp_path)))
    loss.write_bytes(b"1")
    with pytest.raises(InputError, match="holds 1 bytes for"):
        inspect_batch(path)


@pytest.mark.parametrize("held_out", ["val.bin", "fineweb_val_000000.bin", "c4-validation.0.bin", "test-0.bin"])
def test_shards_named_as_held_out_are_left_out_of_the_training_corpus(held_out: str, tmp_path: Path) -> None:
    folder, model = tmp_path / "data", config(tmp_path)
    folder.mkdir()
    corpus = documents(300)
    raw(folder / "train_0.bin", corpus[:200])
    raw(folder / "latest_1.bin", corpus[200:])
    other = raw(folder / held_out, corpus[:60])
    answer = inspect_batch(folder, None, model)
    assert (answer.batch.rows, found(answer)) == (300, [])
    assert any(f"held out ({held_out})" in note for note in answer.notes)
    assert found(inspect_batch(folder, None, model, against=other)) == ["split_leakage"]
    for name in ("train_0.bin", "latest_1.bin"):
        (folder / name).unlink()
    assert inspect_batch(folder, None, model).batch.rows == 60


def test_hidden_files_are_no_shards(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    (folder / ".cache").mkdir(parents=True)
    corpus = documents(300)
    raw(folder / "train_0.bin", corpus)
    raw(folder / ".cache" / "train_0.bin", corpus)
    (folder / "._train_0.bin").write_bytes(b"\0\5\x16\7" * 30)
    answer = inspect_batch(folder, None, config(tmp_path))
    assert (answer.batch.rows, found(answer)) == (300, [])


def test_all_shards_are_read_as_the_type_that_the_largest_shows(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    raw(folder / "a.bin", [np.tile([900, 3], 600)])  # alone it looks like ids of four bytes
    raw(folder / "b.bin", documents(300))
    answer = inspect_batch(folder)
    assert answer.corpus is not None
    assert answer.corpus.stored == "uint16"
    assert answer.corpus.shards[0].tokens == 1200
    assert any("1 shard of 2 alone would be read as another type" in note for note in answer.notes)


@pytest.mark.parametrize(("dtype", "left"), [("<u2", 1), ("<u4", 3)])
def test_a_file_that_ends_inside_an_id_is_reported(dtype: str, left: int, tmp_path: Path) -> None:
    path = raw(tmp_path / "train.bin", documents(300), dtype)
    path.write_bytes(path.read_bytes()[: left - np.dtype(dtype).itemsize])
    answer = inspect_batch(path, None, config(tmp_path))
    assert found(answer) == ["dtype_misread"]
    assert f"ends {left} byte" in answer.findings[0].summary


def test_no_token_is_lost_behind_the_pieces_in_which_a_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mldebug_mcp.batch.formats.files.CHUNK_WINDOWS", 4)
    for tokens in (4 * 1024, 4 * 1024 + 1, 8 * 1024 - 1, 9 * 1024 + 5):
        path = raw(tmp_path / "train.bin", [np.resize(documents(100)[0], tokens)])
        answer = inspect_batch(path)
        assert answer.corpus is not None
        assert answer.corpus.tokens == tokens


@pytest.mark.parametrize("kind", ["megatron", "stream"])
def test_ends_that_stand_twice_are_reported(kind: str, tmp_path: Path) -> None:
    corpus = [np.append(document, END) for document in documents(300)]
    path = write_megatron(tmp_path, corpus) if kind == "megatron" else raw(tmp_path / "train.bin", corpus)
    answer = inspect_batch(path, None, config(tmp_path))
    assert (answer.batch.rows, found(answer)) == (300, ["document_end_twice"])
    assert "of 300 documents" in answer.findings[0].summary


def test_first_tokens_that_stand_twice_are_reported(tmp_path: Path) -> None:
    corpus = [np.concatenate([[1, 1], document]) for document in documents(300, end=2, vocabulary=31_000)]
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"vocab_size": 32_000, "bos_token_id": 1, "eos_token_id": 2}))
    assert "document_end_twice" in found(inspect_batch(write_megatron(tmp_path, corpus), None, path))


def test_an_end_token_before_each_document_is_healthy_as_in_corpora_of_llm_c(tmp_path: Path) -> None:
    corpus = [np.insert(document, 0, END) for document in documents(300, end=None)]
    answer = inspect_batch(raw(tmp_path / "train.bin", corpus), None, config(tmp_path))
    assert (answer.batch.rows, found(answer)) == (300, [])
    assert found(inspect_batch(write_megatron(tmp_path, corpus), None, config(tmp_path))) == []


def test_a_few_empty_documents_are_a_remark_and_many_a_warning(tmp_path: Path) -> None:
    corpus = documents(300)
    corpus[7] = corpus[9] = np.array([END])
    few = inspect_batch(write_megatron(tmp_path, corpus), None, config(tmp_path))
    assert {finding.severity for finding in few.findings} == {"info"}
    corpus[::3] = [np.array([END])] * 100
    many = inspect_batch(write_megatron(tmp_path, corpus), None, config(tmp_path))
    assert "warning" in {finding.severity for finding in many.findings if finding.check == "empty_row"}


def test_the_end_of_a_document_may_stand_in_its_targets_alone(tmp_path: Path) -> None:
    rows = []
    for first in range(0, 300, 3):
        few = documents(300)[first : first + 3]
        inputs, targets = (np.concatenate([one[part] for one in few]) for part in (slice(-1), slice(1, None)))
        segments = np.concatenate([np.full(len(one) - 1, number + 1) for number, one in enumerate(few)])
        width = 640 - len(inputs)
        rows.append([np.pad(column, (0, width)) for column in (inputs, targets, segments)])
    names = ("inputs", "targets", "inputs_segmentation")
    columns = {name: np.stack([row[place] for row in rows]) for place, name in enumerate(names)}
    columns["targets_segmentation"] = columns["inputs_segmentation"]
    np.savez(tmp_path / "batch.npz", **columns)  # type: ignore[arg-type]
    answer = inspect_batch(tmp_path / "batch.npz", None, config(tmp_path))
    assert found(answer) == []
    assert answer.corpus is not None
    assert answer.corpus.expected_ends[0].documents == 300


def test_starts_of_sequences_tell_the_documents_of_packed_rows(tmp_path: Path) -> None:
    corpus = documents(300)
    rows = [corpus[first : first + 3] for first in range(0, 300, 3)]
    starts = [np.cumsum([0, *map(len, row)])[:-1].tolist() for row in rows]
    ids = [np.concatenate(row).tolist() for row in rows]
    Dataset.from_dict({"input_ids": ids, "seq_start_id": starts}).to_parquet(str(tmp_path / "packed.parquet"))
    answer = inspect_batch(tmp_path / "packed.parquet", None, config(tmp_path))
    assert found(answer) == []
    assert answer.corpus is not None
    assert answer.corpus.documents == 300


def test_an_index_whose_data_are_missing_is_refused_alone_and_among_others(tmp_path: Path) -> None:
    alone, among = tmp_path / "alone", tmp_path / "among"
    for folder in (alone, among):
        folder.mkdir()
        write_megatron(folder, documents(30)).unlink()
    with pytest.raises(InputError, match=r"indexes of Megatron, whose \.bin files are missing"):
        inspect_batch(alone)
    (among / "text_document.idx").rename(among / "other.idx")
    write_megatron(among, documents(30))
    with pytest.raises(InputError, match=r"other\.bin: this file is missing next to its index"):
        inspect_batch(among)


def test_a_packed_file_is_refused_with_the_name_of_its_packing(tmp_path: Path) -> None:
    path = write_tfrecord(tmp_path / "train.tfrecord", [example("input_ids", one) for one in documents(10)])
    path.write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(InputError, match="packed by gzip: unpack it first"):
        inspect_batch(path)
    path.rename(tmp_path / "train.tar.gz")
    with pytest.raises(InputError, match="a folder of packed files: unpack them first"):
        inspect_batch(tmp_path)


def test_labels_of_mds_are_heeded(tmp_path: Path) -> None:
    folder = tmp_path / "train"
    folder.mkdir()
    samples = []
    for document in documents(60):
        labels = np.where(np.arange(len(document)) < len(document) // 2, -100, document)
        cells = [bytes([1 << 2, len(one)]) + one.astype("<i4").tobytes() for one in (document, labels)]
        samples.append(struct.pack("<II", *map(len, cells)) + b"".join(cells))
    offsets = 4 * (len(samples) + 2) + np.concatenate([[0], np.cumsum([len(sample) for sample in samples])])
    content = struct.pack("<I", len(samples)) + offsets.astype("<u4").tobytes() + b"".join(samples)
    (folder / "shard.00000.mds").write_bytes(content)
    shard = {
        "column_encodings": ["ndarray:int32"] * 2, "column_names": ["input_ids", "labels"],
        "column_sizes": [None, None], "compression": None, "format": "mds", "samples": len(samples), "version": 2,
        "raw_data": {"basename": "shard.00000.mds", "bytes": len(content)}, "zip_data": None,
    }  # fmt: skip
    (folder / "index.json").write_text(json.dumps({"shards": [shard], "version": 2}))
    answer = inspect_batch(folder, None, config(tmp_path))
    trained = sum(len(one) - len(one) // 2 for one in documents(60))
    assert (answer.batch.purpose, answer.batch.trained_tokens) == ("sft", trained)


def test_an_index_of_mds_may_name_shards_in_folders_below_and_none_outside(tmp_path: Path) -> None:
    corpus = documents(60)
    folder = write_mds(tmp_path / "train", corpus, "ndarray:uint16", "<u2")
    index = json.loads((folder / "index.json").read_text())
    (folder / "0").mkdir()
    (folder / "shard.00000.mds").rename(folder / "0" / "shard.00000.mds")
    for basename, refused in (
        ("0/shard.00000.mds", ""),
        ("1/shard.00000.mds", "No such file"),
        ("../other.mds", "not an index of MDS"),
    ):
        index["shards"][0]["raw_data"]["basename"] = basename
        (folder / "index.json").write_text(json.dumps(index))
        if refused:
            with pytest.raises(InputError, match=refused):
                inspect_batch(folder)
        else:
            answer = inspect_batch(folder)
            assert answer.batch.rows == 60
            assert answer.corpus is not None
            assert [shard.name for shard in answer.corpus.shards] == [basename]


def test_whole_numbers_stored_as_fractions_are_a_corpus_and_others_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "ids.npy"
    ids = np.concatenate(documents(100)).astype(np.float32)
    np.save(path, ids)
    answer = inspect_batch(path, None, config(tmp_path))
    assert (answer.batch.purpose, answer.batch.rows) == ("pretraining", 100)
    np.save(path, ids + 0.5)
    with pytest.raises(InputError, match="fractions where token ids"):
        inspect_batch(path)


def test_a_folder_that_is_no_corpus_says_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "shards").mkdir()
    raw(tmp_path / "shards" / "a.bin", documents(30))
    with pytest.raises(InputError, match=r"with folders \(shards\): give one of them"):
        inspect_batch(tmp_path)
    np.save(tmp_path / "shards" / "b.npy", documents(1)[0])
    with pytest.raises(InputError, match=r"a folder of \.bin and \.npy files"):
        inspect_batch(tmp_path / "shards")


def test_a_shard_of_another_width_than_the_others_is_found(tmp_path: Path) -> None:
    shards = tmp_path / "shards"
    shards.mkdir()
    for number in range(5):
        count, width = (100, "<u4") if number == 3 else (300, "<u2")  # all are read as the largest one shows
        raw(shards / f"train_{number}.bin", documents(count, number), width)
    answer = inspect_batch(shards, None, config(tmp_path))
    misread = next(finding for finding in answer.findings if finding.check == "dtype_misread")
    assert "in train_3.bin every second token is 0" in misread.summary


def test_empty_documents_do_not_count_as_documents_without_their_end(tmp_path: Path) -> None:
    corpus = [part for document in documents(300) for part in (document, document[:0])]
    answer = inspect_batch(write_megatron(tmp_path, corpus), None, config(tmp_path))
    assert found(answer) == ["empty_row"]


def test_a_packed_file_among_records_is_refused_with_the_name_of_its_packing(tmp_path: Path) -> None:
    shards = tmp_path / "shards"
    shards.mkdir()
    messages = [example("input_ids", document) for document in documents(20)]
    write_tfrecord(shards / "a.tfrecord", messages)
    packed = write_tfrecord(tmp_path / "b.tfrecord", messages)
    (shards / "b.tfrecord.gz").write_bytes(gzip.compress(packed.read_bytes()))
    with pytest.raises(InputError, match=r"b\.tfrecord\.gz: packed by gzip: unpack it first"):
        inspect_batch(shards)


def test_samples_of_a_tar_file_without_token_ids_are_reported(tmp_path: Path) -> None:
    members = [
        (f"{place}.json", b'{"url": "a"}') if place % 10 == 0 else (f"{place}.tokens.npy", npy(document))
        for place, document in enumerate(documents(100))
    ]
    answer = inspect_batch(write_tar(tmp_path / "a.tar", members), None, config(tmp_path))
    lacking = next(finding for finding in answer.findings if finding.check == "schema_mismatch")
    assert "10 row(s) lack tokens" in lacking.summary


def test_shards_that_an_index_does_not_list_are_named(tmp_path: Path) -> None:
    folder = write_mds(tmp_path / "train", documents(60), "ndarray:uint16", "<u2")
    assert not any("does not list" in note for note in inspect_batch(folder).notes)
    (folder / "shard.00001.mds").write_bytes((folder / "shard.00000.mds").read_bytes())
    assert "left out 1 shard that the index does not list (shard.00001.mds)" in inspect_batch(folder).notes
    tree = write_tree(tmp_path / "tree", [{"input_ids": document, "labels": document} for document in documents(20)])
    (tree / "chunk-9-9.bin").write_bytes(b"0")
    assert "left out 1 shard that the index does not list (chunk-9-9.bin)" in inspect_batch(tree).notes


def test_documents_cut_before_their_end_token_was_added_are_reported(tmp_path: Path) -> None:
    corpus = [np.append(document[:-1][:127], END) for document in documents(300, longest=160)]
    answer = inspect_batch(write_megatron(tmp_path, corpus), None, config(tmp_path))
    assert found(answer) == ["documents_truncated"]
    assert (
        "exactly 128 tokens, the greatest length, and the end token is the last of them" in answer.findings[0].summary
    )


@pytest.mark.parametrize("kinds", [12, 40])
def test_documents_of_few_lengths_may_be_sorted_by_length_too(kinds: int, tmp_path: Path) -> None:
    lengths = np.sort(np.random.default_rng(0).integers(20, 20 + kinds, 2000))
    corpus = [np.append(document[: length - 1], END) for document, length in zip(documents(2000), lengths, strict=True)]
    corpus = [document for document in corpus if len(document) >= 20]
    answer = inspect_batch(write_megatron(tmp_path, sorted(corpus, key=len)), None, config(tmp_path))
    assert "corpus_sorted" in found(answer)
    mixed = [corpus[place] for place in np.random.default_rng(1).permutation(len(corpus))]
    (tmp_path / "mixed").mkdir()
    answer = inspect_batch(write_megatron(tmp_path / "mixed", mixed), None, config(tmp_path))
    assert "corpus_sorted" not in found(answer)


@pytest.mark.parametrize(("names", "severity"), [(("train_0", "train_1"), "warning"), (("code", "web"), "info")])
def test_sources_in_files_of_their_names_are_a_remark(names: tuple[str, str], severity: str, tmp_path: Path) -> None:
    shards = tmp_path / "shards"
    shards.mkdir()
    for number, name in enumerate(names):
        texts = [document * (7 if number else 1) % 50_000 for document in documents(300, number, end=None)]
        data = write_megatron(shards, [np.append(text, END) for text in texts])
        data.with_suffix(".idx").rename(shards / f"{name}.idx")
        data.rename(shards / f"{name}.bin")
    answer = inspect_batch(shards, None, config(tmp_path))
    ordered = next(finding for finding in answer.findings if finding.check == "corpus_sorted")
    assert ordered.severity == severity


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_padding_inside_of_a_stream_is_reported(share: float, tmp_path: Path) -> None:
    tokenizer = tokenizer_of("llama3")
    end, pad = tokenizer.eos, tokenizer.pad
    assert end is not None
    assert pad is not None
    texts = [document + len(tokenizer.special) for document in documents(300, end=None, vocabulary=200)]
    filled = [np.concatenate([text, [end], np.full(int(share * len(text)), pad)]) for text in texts]
    answer = inspect_batch(raw(tmp_path / "train.bin", filled), tokenizer)
    assert ("padding_inside_documents" in found(answer)) == bool(share)


def test_a_padding_token_between_documents_is_no_padding(tmp_path: Path) -> None:
    tokenizer = tokenizer_of("chatml")  # whose padding token ended documents when its model was pretrained
    texts = [document + len(tokenizer.special) for document in documents(300, end=None, vocabulary=200)]
    assert tokenizer.pad is not None
    corpus = [np.append(text, tokenizer.pad) for text in texts]
    assert "padding_inside_documents" not in found(inspect_batch(raw(tmp_path / "train.bin", corpus), tokenizer))


def test_files_of_other_formats_in_a_folder_are_named(tmp_path: Path) -> None:
    shards = tmp_path / "shards"
    shards.mkdir()
    write_tfrecord(shards / "a.tfrecord", [example("input_ids", document) for document in documents(20)])
    assert not any("other formats" in note for note in inspect_batch(shards).notes)
    raw(shards / "b.bin", documents(20))
    assert any("left out 1 file of other formats than tfrecord (b.bin)" in note for note in inspect_batch(shards).notes)


def test_an_index_of_datatrove_whose_tokens_are_missing_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        data = write_datatrove(tmp_path / name, documents(20), "<u2")
        for file in (data, data.with_name(f"{data.name}.index")):
            file.rename(tmp_path / file.name.replace(data.name, f"{name}.ds"))
    (tmp_path / "b.ds").unlink()
    with pytest.raises(InputError, match=r"b\.ds: this file is missing next to its index"):
        inspect_batch(tmp_path)


def test_a_shard_without_the_header_that_others_have_is_named(tmp_path: Path) -> None:
    head = np.zeros(256, "<i4")
    for number in range(3):
        ids = np.concatenate(documents(200, number)).astype("<u2")
        head[:3] = 20_240_520, 1, len(ids)
        (tmp_path / f"train_{number}.bin").write_bytes((b"" if number == 1 else head.tobytes()) + ids.tobytes())
    notes = inspect_batch(tmp_path).notes
    assert any("1 shard of 3 lack the header of llm.c that the others have (train_1.bin)" in note for note in notes)


def test_a_header_that_promises_fewer_than_no_tokens_is_refused(tmp_path: Path) -> None:
    head = np.zeros(256, "<i4")
    head[:3] = 20_240_520, 1, -1
    path = tmp_path / "train.bin"
    path.write_bytes(head.tobytes() + np.concatenate(documents(50)).astype("<u2").tobytes())
    with pytest.raises(InputError, match="promises -1 tokens"):
        inspect_batch(path)


def test_a_token_that_stands_in_runs_is_no_padding_where_windows_begin_inside_of_one(tmp_path: Path) -> None:
    chance = np.random.default_rng(0)
    texts = (chance.integers(100, 50_000, 900) for _ in range(600))
    stream = np.concatenate([part for text in texts for part in (text, np.full(int(chance.integers(3, 12)), 7))])
    path = tmp_path / "rows.npy"
    np.save(path, stream[: len(stream) // 512 * 512].reshape(-1, 512))
    answer = inspect_batch(path)
    assert answer.batch.padding_tokens == 0
    assert not {"padding_side_wrong", "padding_excessive"} & set(found(answer))
