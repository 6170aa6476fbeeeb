"""Examples of TensorFlow and members of tar files give the same rows however they were written."""

import io
import struct
import tarfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.batch.test_corpus_formats import example, field, npy, varint, write_tar, write_tfrecord

from mldebug_mcp.batch.read import read_batches
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.protobuf import masked_crc32c_of
from mldebug_mcp.judge.batch import inspect_batch


def rows_of(path: Path) -> list[list[int]]:
    return [
        side.ids.row(row).tolist() for batch in read_batches(path) for side in batch.sides for row in range(side.rows)
    ]


def features(**lists: bytes) -> bytes:
    """Return an Example with these features, in this order; each is the content of a Feature."""
    entries = (field(1, field(1, name.encode()) + field(2, content)) for name, content in lists.items())
    return field(1, b"".join(entries))


def packed(ids: Sequence[int]) -> bytes:
    return field(3, field(1, b"".join(varint(number % 2**64) for number in ids)))


LONG = [[5, 2**14 + 3, 2**21 + 1, 2**27, 7] * 6000, [127, 128], [1, 2, 3]]


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("ids of one to four bytes, more than are decoded at once", LONG),
        ("negative ids", [[-1, 5, 6], [7, 8, 9], [-100, 4]]),
        ("ids beyond four bytes", [[2**28, 2**35 + 5, 1], [2, 3]]),
        ("an empty list", [[1, 2, 3], [], [4, 5, 6]]),
    ],
)
def test_numbers_of_every_width_are_read_as_written(tmp_path: Path, name: str, rows: list[list[int]]) -> None:
    del name
    path = write_tfrecord(tmp_path / "a.tfrecord", [features(input_ids=packed(ids)) for ids in rows])
    assert rows_of(path) == rows


def test_features_in_another_order_are_the_same_rows(tmp_path: Path) -> None:
    one = features(input_ids=packed([1, 2]), source=field(1, field(1, b"web")), weight=field(2, field(1, bytes(4))))
    two = features(weight=field(2, field(1, bytes(4))), input_ids=packed([3, 4]), source=field(1, field(1, b"book")))
    path = write_tfrecord(tmp_path / "a.tfrecord", [one, two, one])
    assert rows_of(path) == [[1, 2], [3, 4], [1, 2]]


def test_numbers_that_are_not_packed_are_read_as_well(tmp_path: Path) -> None:
    apart = field(3, b"".join(b"\x08" + varint(number) for number in (300, 2)))
    path = write_tfrecord(tmp_path / "a.tfrecord", [features(input_ids=packed([9, 1])), features(input_ids=apart)])
    assert rows_of(path)[0] == [9, 1]


def test_a_record_larger_than_a_piece_is_read_whole(tmp_path: Path) -> None:
    large = field(3, field(1, varint(200) * 9_000_000))
    messages = [features(input_ids=ids) for ids in (packed([1, 2, 3]), large, packed([4, 5]))]
    path = tmp_path / "a.tfrecord"
    path.write_bytes(
        b"".join(
            struct.pack("<QI", len(one), masked_crc32c_of(struct.pack("<Q", len(one)))) + one + bytes(4)
            for one in messages
        )
    )
    assert [len(row) for row in rows_of(path)] == [3, 9_000_000, 2]


def test_the_record_that_is_no_example_is_named_by_its_number(tmp_path: Path) -> None:
    messages = [example("input_ids", np.arange(5)) for _ in range(7)]
    messages[4] = b"\x0d\x00\x00\x00\x00"
    with pytest.raises(InputError, match=r"record 4 is not a tf\.train\.Example"):
        inspect_batch(write_tfrecord(tmp_path / "a.tfrecord", messages))
    messages[4] = example("input_ids", np.arange(5))[:-1] + b"\xff"  # the last number goes on
    with pytest.raises(InputError, match=r"record 4 .*a number is cut off"):
        inspect_batch(write_tfrecord(tmp_path / "b.tfrecord", messages))


def test_a_length_beyond_the_file_is_refused(tmp_path: Path) -> None:
    path = write_tfrecord(tmp_path / "a.tfrecord", [example("input_ids", np.arange(5))] * 3)
    content = bytearray(path.read_bytes())
    second = 12 + struct.unpack_from("<Q", content)[0] + 4
    content[second : second + 8] = struct.pack("<Q", 2**40)
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"broken or cut off after {second} bytes"):
        inspect_batch(path)


def record_at(content: bytes | bytearray, number: int) -> int:
    """Return the byte at which a record begins."""
    at = 0
    for _ in range(number):
        at += 12 + struct.unpack_from("<Q", content, at)[0] + 4
    return at


@pytest.mark.parametrize("length", [3, 40, 200, 5000])
def test_a_record_that_does_not_match_its_checksum_is_an_error_with_its_place(tmp_path: Path, length: int) -> None:
    messages = [example("input_ids", np.arange(number, number + length) % 120) for number in range(60)]
    path = write_tfrecord(tmp_path / "a.tfrecord", messages)
    assert "records_corrupt" not in {finding.check for finding in inspect_batch(path).findings}
    content = bytearray(path.read_bytes())
    for number in (7, 31):
        content[record_at(content, number) + 12 + len(messages[number]) - 1] ^= 1  # the last id of the record
    path.write_bytes(content)
    finding = next(one for one in inspect_batch(path).findings if one.check == "records_corrupt")
    assert finding.severity == "error"
    assert finding.rows == [7, 31]
    assert f"a.tfrecord: the record at byte {record_at(content, 7):,} does not match" in finding.summary


def test_rows_of_corrupt_records_are_numbered_over_all_files(tmp_path: Path) -> None:
    messages = [example("input_ids", np.arange(number, number + 20) % 120) for number in range(30)]
    for name in ("a", "b"):
        write_tfrecord(tmp_path / f"{name}.tfrecord", messages)
    second = tmp_path / "b.tfrecord"
    content = bytearray(second.read_bytes())
    content[-5] ^= 1
    second.write_bytes(content)
    finding = next(one for one in inspect_batch(tmp_path).findings if one.check == "records_corrupt")
    assert finding.rows == [59]
    assert finding.summary.startswith("b.tfrecord: ")


def test_a_corrupt_record_that_cannot_be_read_is_refused_with_its_place(tmp_path: Path) -> None:
    path = write_tfrecord(tmp_path / "a.tfrecord", [example("input_ids", np.arange(20))] * 9)
    content = bytearray(path.read_bytes())
    at = record_at(content, 4)
    content[at + 12] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"record 4, at byte {at}, does not match its checksum"):
        inspect_batch(path)


def test_a_length_that_does_not_match_its_checksum_is_refused(tmp_path: Path) -> None:
    path = write_tfrecord(tmp_path / "a.tfrecord", [example("input_ids", np.arange(20))] * 9)
    content = bytearray(path.read_bytes())
    at = record_at(content, 4)
    content[at] -= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"after {at} bytes: the length of the record there does not match"):
        inspect_batch(path)


def named(count: int) -> list[tuple[str, bytes]]:
    return [(f"{place:04}.tokens.npy", npy(np.arange(place + 1, dtype=np.uint16))) for place in range(count)]


@pytest.mark.parametrize("kind", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_tar_files_of_every_kind_give_the_same_rows(tmp_path: Path, kind: int) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w", format=kind) as archive:
        for name, content in [*named(20), ("a" * 90 + "/" + "b" * 80 + ".tokens.npy", npy(np.arange(3)))]:
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(content), 1.5 if kind == tarfile.PAX_FORMAT else 1
            archive.addfile(member, io.BytesIO(content))
    assert [len(row) for row in rows_of(path)] == [*range(1, 21), 3]


def test_links_and_folders_in_a_tar_file_are_no_samples(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as archive:
        for name, content in named(3):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        link = tarfile.TarInfo("0003.tokens.npy")
        link.type, link.linkname = tarfile.SYMTYPE, "0001.tokens.npy"
        archive.addfile(link)
        folder = tarfile.TarInfo("more")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
    assert rows_of(path) == [[0], [0, 1], [0, 1, 2]]


def test_a_damaged_header_in_a_tar_file_is_refused(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", named(3))
    content = bytearray(path.read_bytes())
    content[1024 + 10] ^= 1  # in the name of the second member, whose checksum is then wrong
    path.write_bytes(content)
    with pytest.raises(InputError, match="broken tar file"):
        inspect_batch(path)


def test_arrays_of_other_shapes_and_orders_in_a_tar_file_are_read_by_numpy(tmp_path: Path) -> None:
    members = [("0.tokens.npy", npy(np.array([1, 2, 3], ">u2"))), ("1.tokens.npy", npy(np.array([4, 5], ">u2")))]
    assert rows_of(write_tar(tmp_path / "a.tar", members)) == [[1, 2, 3], [4, 5]]
