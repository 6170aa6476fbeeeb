"""Formats of corpora besides those of `test_pretraining_corpora`: what is read, and what the user states instead."""

from __future__ import annotations

import io
import json
import struct
import sys
import tarfile
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from datasets import Dataset
from mcp import Client
from tests.batch.test_corpora import Document, config, documents, found, write
from tests.batch.test_pretraining_corpora import write_mds, write_megatron
from trl import pack_dataset

from mldebug_mcp.batch import read_batches
from mldebug_mcp.cli import main
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.protobuf import masked_crc32c_of
from mldebug_mcp.judge import inspect_batch
from mldebug_mcp.server import make_server


def field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + varint(len(content)) + content


def varint(value: int) -> bytes:
    found = bytearray()
    while True:
        found.append(value & 127 | (128 if value > 127 else 0))
        value >>= 7
        if not value:
            return bytes(found)


def example(name: str, ids: Document) -> bytes:
    """Return a tf.train.Example that holds whole numbers."""
    listed = field(3, field(1, b"".join(map(varint, ids.tolist()))))
    return field(1, field(1, field(1, name.encode()) + field(2, listed)))


def write_tfrecord(path: Path, messages: Sequence[bytes]) -> Path:
    with path.open("wb") as file:
        for message in messages:
            length = struct.pack("<Q", len(message))
            sums = [struct.pack("<I", masked_crc32c_of(part)) for part in (length, message)]
            file.write(length + sums[0] + message + sums[1])
    return path


def write_tar(path: Path, members: Sequence[tuple[str, bytes]]) -> Path:
    with tarfile.open(path, "w") as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def npy(ids: Document) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, ids)
    return buffer.getvalue()


def assert_read(path: Path, corpus: Sequence[Document], name: str) -> None:
    batch = next(iter(read_batches(path)))
    assert np.array_equal(batch.sides[0].ids.row(7), corpus[7])
    answer = inspect_batch(path)
    assert (answer.batch.rows, answer.batch.formats) == (len(corpus), [name])
    assert (answer.batch.purpose, found(answer)) == ("pretraining", [])


def test_tfrecord_is_read_example_by_example(tmp_path: Path) -> None:
    corpus = documents(100)
    path = write_tfrecord(tmp_path / "train.tfrecord", [example("input_ids", document) for document in corpus])
    assert_read(path, corpus, "tfrecord")
    assert_read(path.rename(tmp_path / "of-any-name"), corpus, "tfrecord")


def test_tfrecord_that_is_cut_off_or_holds_something_else_is_refused(tmp_path: Path) -> None:
    messages = [example("input_ids", document) for document in documents(10)]
    path = write_tfrecord(tmp_path / "cut.tfrecord", messages)
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(InputError, match="broken or cut off"):
        inspect_batch(path)
    with pytest.raises(InputError, match=r"record 0 is not a tf\.train\.Example"):
        inspect_batch(write_tfrecord(tmp_path / "other.tfrecord", [b"\x0d\x00\x00\x00\x00"]))


def test_tar_files_of_webdataset_are_read_sample_by_sample(tmp_path: Path) -> None:
    corpus = documents(100)
    folder = tmp_path / "shards"
    folder.mkdir()
    for number, half in enumerate((corpus[:50], corpus[50:])):
        members = [(f"{number}/{place:04}.tokens.npy", npy(document)) for place, document in enumerate(half)]
        write_tar(folder / f"shard-{number:06}.tar", members)
    assert_read(folder, corpus, "webdataset")
    members = [(f"{place}.json", json.dumps({"input_ids": one.tolist()}).encode()) for place, one in enumerate(corpus)]
    assert_read(write_tar(tmp_path / "json.tar", members), corpus, "webdataset")


def test_a_tar_file_without_token_ids_is_refused_by_its_members(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"without members of token ids or text \(\.jpg\)"):
        inspect_batch(write_tar(tmp_path / "images.tar", [("1.jpg", b"image")]))


@pytest.mark.skipif(not find_spec("array_record"), reason="array_record is an extra")
def test_array_record_is_read_example_by_example(tmp_path: Path) -> None:
    from array_record.python.array_record_module import ArrayRecordWriter

    corpus = documents(100)
    path = tmp_path / "train.array_record"
    writer = ArrayRecordWriter(str(path), "group_size:1")
    for document in corpus:
        writer.write(example("inputs", document))
    writer.close()
    assert_read(path, corpus, "arrayrecord")


@pytest.mark.skipif(not find_spec("array_record"), reason="array_record is an extra")
@pytest.mark.parametrize("kept", [0.5, 0.999])
def test_an_array_record_that_is_cut_off_is_refused(kept: float, tmp_path: Path) -> None:
    from array_record.python.array_record_module import ArrayRecordWriter

    path = tmp_path / "train.array_record"
    writer = ArrayRecordWriter(str(path), "group_size:1")
    for document in documents(100):
        writer.write(example("inputs", document))
    writer.close()
    path.write_bytes(path.read_bytes()[: int(kept * path.stat().st_size)])
    with pytest.raises(InputError, match="a broken ArrayRecord"):
        inspect_batch(path)


def test_raw_ids_named_npy_are_read_as_olmo_writes_them(tmp_path: Path) -> None:
    path = tmp_path / "part-000-00000.npy"
    path.write_bytes(np.concatenate(documents(200)).astype("<u2").tobytes())
    answer = inspect_batch(path, None, config(tmp_path))
    assert (answer.batch.formats, found(answer)) == (["tokens"], [])


@pytest.mark.parametrize("packing", ["zstd", "gz"])
def test_packed_shards_of_mds_are_unpacked(packing: str, tmp_path: Path) -> None:
    corpus = documents(100)
    folder = write_mds(tmp_path / "train", corpus, "ndarray:uint16", "<u2")
    shard, index = folder / "shard.00000.mds", json.loads((folder / "index.json").read_text())
    name = "gzip" if packing == "gz" else "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    (folder / f"shard.00000.mds.{packing}").write_bytes(import_module(name).compress(shard.read_bytes()))
    shard.unlink()
    zipped = {"basename": f"shard.00000.mds.{packing}"}
    index["shards"][0] |= {"zip_data": zipped, "compression": f"{packing}:3" if packing == "zstd" else packing}
    (folder / "index.json").write_text(json.dumps(index))
    assert_read(folder, corpus, "mds")


@pytest.mark.parametrize("stated", [-1, 0, 2**32])
def test_a_packed_shard_of_mds_that_stands_for_too_much_is_refused(stated: int, tmp_path: Path) -> None:
    folder = write_mds(tmp_path / "train", documents(10), "ndarray:uint16", "<u2")
    (folder / "shard.00000.mds").rename(folder / "shard.00000.mds.gz")
    index = json.loads((folder / "index.json").read_text())
    index["shards"][0] |= {"zip_data": {"basename": "shard.00000.mds.gz"}, "compression": "gz"}
    index["shards"][0]["raw_data"]["bytes"] = stated
    (folder / "index.json").write_text(json.dumps(index))
    with pytest.raises(InputError, match="by its index; write the shard again"):
        inspect_batch(folder)


def test_a_prefix_names_the_files_of_a_corpus(tmp_path: Path) -> None:
    corpus = documents(100)
    path = write_megatron(tmp_path, corpus)
    assert_read(path.with_suffix(""), corpus, "megatron")
    assert inspect_batch(tmp_path / "text").batch.rows == 100
    (tmp_path / "text_other.bin").write_bytes(b"other")
    with pytest.raises(InputError, match="stands for 3 files"):
        inspect_batch(tmp_path / "text")


def pack(corpus: Sequence[Document], width: int) -> dict[str, np.ndarray]:
    """Pack documents into rows as Grain does: padded with 0, their segments numbered from 1."""
    rows: list[list[list[int]]] = [[[], [], []]]
    for document in corpus:
        if len(rows[-1][0]) + len(document) > width:
            rows.append([[], [], []])
        ids, segments, positions = rows[-1]
        segments += [max(segments, default=0) + 1] * len(document)
        ids += document.tolist()
        positions += range(len(document))
    names = ("inputs", "inputs_segment_ids", "inputs_positions")
    return {
        name: np.array([row[place] + [0] * (width - len(row[place])) for row in rows])
        for place, name in enumerate(names)
    }


def test_rows_that_grain_packs_are_cut_at_their_documents(tmp_path: Path) -> None:
    path = tmp_path / "packed.npz"
    np.savez(path, **pack(documents(200), 512))  # type: ignore[arg-type]
    for model in (None, config(tmp_path)):
        answer = inspect_batch(path, None, model)
        assert (answer.batch.purpose, found(answer)) == ("pretraining", [])
        assert answer.corpus is not None
        assert answer.corpus.documents == 200
    np.savez(path, **pack(documents(200, end=None), 512))  # type: ignore[arg-type]
    assert found(inspect_batch(path, None, config(tmp_path))) == ["document_end_missing"]


def test_batches_of_maxtext_are_healthy(tmp_path: Path) -> None:
    packed = pack(documents(200), 512)
    segments = packed["inputs_segment_ids"]
    following = np.pad(segments[:, 1:], ((0, 0), (0, 1)))
    np.savez(
        tmp_path / "batch.npz",
        inputs=packed["inputs"],
        inputs_segmentation=segments,
        inputs_position=packed["inputs_positions"],
        targets=np.pad(packed["inputs"][:, 1:], ((0, 0), (0, 1))),
        targets_segmentation=np.where(segments == following, segments, 0),
        targets_position=packed["inputs_positions"],
    )
    answer = inspect_batch(tmp_path / "batch.npz", None, config(tmp_path))
    assert (answer.batch.purpose, found(answer)) == ("pretraining", [])


@pytest.mark.parametrize("strategy", ["bfd", "bfd_split", "wrapped"])
def test_rows_that_trl_packs_are_healthy(strategy: str, tmp_path: Path) -> None:
    rows = Dataset.from_dict({"input_ids": [document.tolist() for document in documents(200)]})
    pack_dataset(rows, 256, strategy=strategy).save_to_disk(str(tmp_path / "packed"))
    for model in (None, config(tmp_path)):
        answer = inspect_batch(tmp_path / "packed", None, model)
        assert [check for check in found(answer) if check != "packing_without_position_reset"] == []
        assert answer.corpus is not None
        assert answer.corpus.documents == (None if strategy == "wrapped" and model is None else 200)


@pytest.mark.parametrize(("strategy", "severity"), [("bfd_split", "info"), ("bfd", "info"), (None, "warning")])
def test_long_documents_that_a_packer_may_have_split_are_a_remark(
    strategy: str | None, severity: str, tmp_path: Path
) -> None:
    ids = [document.tolist() for document in documents(400)]
    rows = Dataset.from_dict({"input_ids": ids if strategy else [document[:128] for document in ids]})
    kept = pack_dataset(rows, 128, strategy=strategy) if strategy else rows
    kept.save_to_disk(str(tmp_path / "kept"))
    findings = inspect_batch(tmp_path / "kept", None, config(tmp_path)).findings
    assert [finding.severity for finding in findings if finding.check == "documents_truncated"] == [severity]


# What the user states.


def test_a_stated_type_is_used_in_place_of_the_inferred_one(tmp_path: Path) -> None:
    corpus = documents(200)
    path = write(tmp_path, "raw", corpus, "stream", "<u4")
    flat = np.concatenate(corpus)
    answer = inspect_batch(path, dtype="uint16")
    assert answer.batch.tokens == 2 * len(flat) // 1024 * 1024
    assert found(answer) == ["dtype_misread"]
    other = path.rename(tmp_path / "tokens.dat")
    answer = inspect_batch(other, format="tokens", dtype="uint32")
    assert (answer.batch.tokens, found(answer)) == (len(flat) // 1024 * 1024, [])
    assert any("as you state" in note for note in answer.notes)


def test_a_stated_type_or_format_that_does_not_exist_or_fit_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "stated", documents(50))
    with pytest.raises(InputError, match="megatron states the type of its ids"):
        inspect_batch(path, dtype="uint16")
    with pytest.raises(InputError, match="dtype 'float8' does not exist; use one of: uint8"):
        inspect_batch(path, format="tokens", dtype="float8")
    with pytest.raises(InputError, match="format 'zarr' does not exist; use one of: arrayrecord"):
        inspect_batch(path, format="zarr")


def test_columns_are_named_by_the_user(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(json.dumps({"codes": one.tolist(), "id": n}) for n, one in enumerate(documents(50))))
    with pytest.raises(InputError):
        inspect_batch(path)
    assert inspect_batch(path, names={"input_ids": "codes"}).batch.rows == 50
    with pytest.raises(InputError, match="no column is called 'code'; the file has codes, id"):
        inspect_batch(path, names={"input_ids": "code"})
    assert main(["batch", str(path), "--names", "input_ids=codes", "--purpose", "pretraining"]) == 0
    assert "50" in capsys.readouterr().out


@pytest.mark.anyio
async def test_agents_state_format_type_and_names_as_people_do(tmp_path: Path) -> None:
    corpus = documents(200)
    raw = write(tmp_path, "raw", corpus, "stream").rename(tmp_path / "tokens.dat")
    rows = tmp_path / "rows.jsonl"
    rows.write_text("\n".join(json.dumps({"codes": document.tolist()}) for document in corpus))
    async with Client(make_server(), raise_exceptions=True) as client:
        stated = {"path": str(raw), "format": "tokens", "dtype": "uint16", "sample": 10, "against": str(raw)}
        raw_answer = await client.call_tool("inspect_batch", stated)
        named = {"path": str(rows), "names": {"input_ids": "codes"}}
        named_answer = await client.call_tool("inspect_batch", named)
    assert raw_answer.structured_content["batch"]["formats"] == ["tokens"]
    assert raw_answer.structured_content["batch"]["sampled"]
    assert named_answer.structured_content["batch"]["rows"] == 200


def test_what_is_stated_holds_for_the_other_set_where_it_fits(tmp_path: Path) -> None:
    corpus = documents(200)
    names = {"input_ids": "codes"}
    for place, column in (("train", "codes"), ("validation", "input_ids")):
        text = "\n".join(json.dumps({column: document.tolist()}) for document in corpus)
        (tmp_path / f"{place}.jsonl").write_text(text)
    train, other = tmp_path / "train.jsonl", tmp_path / "validation.jsonl"
    assert "split_leakage" in found(inspect_batch(train, names=names, against=other))
    raw = write(tmp_path, "raw", corpus, "stream").rename(tmp_path / "tokens.dat")
    assert "split_leakage" in found(
        inspect_batch(raw, format="tokens", dtype="uint16", against=write_megatron(tmp_path, corpus))
    )
