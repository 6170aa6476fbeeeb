"""Compressed logs are read as what is in them; cut, damaged or hostile ones are read as far as they go, or refused."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import random
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.limits import listening
from mldebug_mcp.logs import LogTail, log_file, read_run
from mldebug_mcp.logs.log_file import replayed

pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")

if sys.version_info >= (3, 14):
    from backports import zstd
else:
    from backports import zstd

SAMPLES = Path(__file__).parent / "samples"
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: 1}),  # as the tool does
}
every_packing = pytest.mark.parametrize("suffix", PACKERS)


def lines(count: int) -> bytes:
    noise = random.Random(1)
    records = [{"step": step, "loss": 2 + noise.gauss(0, 0.1)} for step in range(count)]
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def packed(folder: Path, name: str, content: bytes, suffix: str) -> Path:
    path = folder / f"{name}{suffix}"
    path.write_bytes(PACKERS[suffix](content))
    return path


@every_packing
@pytest.mark.parametrize(
    "sample",
    ["timm.log", "keras/training.csv", "nanogpt.log", "megatron_rank.log", "run.wandb", "events.out.tfevents.simple"],
)
def test_a_compressed_log_says_what_the_log_says(tmp_path: Path, sample: str, suffix: str) -> None:
    content = (SAMPLES / sample).read_bytes()
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / Path(sample).name).write_bytes(content)
    plain = read_run(tmp_path / "plain" / Path(sample).name)
    (tmp_path / "packed").mkdir()
    run = read_run(packed(tmp_path / "packed", Path(sample).name, content, suffix))
    assert run.records == plain.records > 0
    assert run.formats == plain.formats
    assert run.notes == plain.notes
    assert run.series.keys() == plain.series.keys()
    for name, series in plain.series.items():
        np.testing.assert_array_equal(run[name].step, series.step)
        np.testing.assert_array_equal(run[name].value, series.value)


@every_packing
def test_a_json_document_is_known_by_the_name_before_compression(tmp_path: Path, suffix: str) -> None:
    state = {"log_history": [{"step": step, "loss": 1 / step} for step in range(1, 30)]}
    run = read_run(packed(tmp_path, "trainer_state.json", json.dumps(state).encode(), suffix))
    assert (run.formats, run.records) == (("hf_trainer_state",), 29)


@every_packing
def test_a_large_log_is_read_by_blocks_and_says_the_same(tmp_path: Path, suffix: str) -> None:
    path = packed(tmp_path, "log.jsonl", lines(2000), suffix)
    with patch.object(log_file, "FAST_BYTES", 1), patch.object(log_file, "BLOCK_BYTES", 5000):
        fast = read_run(path)
    assert fast.records == 2000
    assert fast["loss"].value.tolist() == read_run(path)["loss"].value.tolist()


@every_packing
def test_members_behind_one_another_are_one_log(tmp_path: Path, suffix: str) -> None:
    pack, content = PACKERS[suffix], lines(300)
    cut = content.index(b"\n", 4000) + 1
    (tmp_path / f"log.jsonl{suffix}").write_bytes(pack(content[:cut]) + pack(content[cut:]))
    assert read_run(tmp_path / f"log.jsonl{suffix}").records == 300


@every_packing
def test_of_a_file_that_is_cut_off_the_beginning_is_read_and_the_notes_say_so(tmp_path: Path, suffix: str) -> None:
    whole = PACKERS[suffix](lines(40_000))
    (tmp_path / f"log.jsonl{suffix}").write_bytes(whole[: len(whole) * 3 // 4])
    run = read_run(tmp_path / f"log.jsonl{suffix}")
    assert 1000 < run.records < 40_000
    assert any("only its beginning could be unpacked (it ends too early)" in note for note in run.notes)


@every_packing
def test_a_file_of_which_nothing_can_be_unpacked_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"log.jsonl{suffix}"
    path.write_bytes(PACKERS[suffix](lines(10))[:9])
    with pytest.raises(InputError, match=r"cannot be unpacked \(.*\); copy it again, whole"):
        read_run(path)


@every_packing
def test_what_is_damaged_in_the_middle_is_read_up_to_there_or_refused(tmp_path: Path, suffix: str) -> None:
    whole = bytearray(PACKERS[suffix](lines(40_000)))
    whole[len(whole) // 2 : len(whole) // 2 + 50] = b"\0" * 50
    (tmp_path / f"log.jsonl{suffix}").write_bytes(whole)
    try:
        told = " ".join(read_run(tmp_path / f"log.jsonl{suffix}").notes)
    except InputError as error:
        told = str(error)
    assert "cannot be unpacked" in told or "only its beginning could be unpacked" in told


@every_packing
def test_a_file_that_swells_beyond_any_log_is_refused_early(tmp_path: Path, suffix: str) -> None:
    path = packed(tmp_path, "even.log", b"loss: 1.0\n" * 400_000, suffix)
    told: list[str] = []
    with (
        patch.object(log_file, "SMALL_BYTES", 2 * log_file.UNPACKED_PIECE_BYTES),
        patch.object(log_file, "MAX_RATIO", 20),
        listening(told.append),
        pytest.raises(InputError, match=r"more than 20 bytes come out for each byte of it.*; unpack it yourself"),
    ):
        read_run(path)
    assert max(int(one.split()[1].replace(",", "")) for one in told) <= 2 * log_file.UNPACKED_PIECE_BYTES


def test_a_file_larger_than_the_limit_is_refused_whatever_its_ratio(tmp_path: Path) -> None:
    path = packed(tmp_path, "log.jsonl", lines(1000), ".gz")
    with patch.object(log_file, "MAX_UNPACKED", 10_000), pytest.raises(InputError, match="more than 10,000 bytes"):
        read_run(path)


def test_an_xz_file_that_asks_for_more_memory_than_allowed_is_refused(tmp_path: Path) -> None:
    path = packed(tmp_path, "log.jsonl", lines(1000), ".xz")
    with patch.object(log_file, "MAX_WINDOW", 4096), pytest.raises(InputError, match="cannot be unpacked"):
        read_run(path)


def test_without_the_extra_a_zstandard_file_is_refused_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = packed(tmp_path, "log.jsonl", lines(10), ".zst")
    monkeypatch.setitem(sys.modules, "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd", None)
    with pytest.raises(InputError, match=r"mldebug-mcp\[zstd\]"):
        read_run(path)


def test_what_is_compressed_twice_an_archive_and_a_compressed_database_are_refused_with_what_to_do(
    tmp_path: Path,
) -> None:
    twice = packed(tmp_path, "log.jsonl.gz", gzip.compress(lines(10)), ".gz")
    database = packed(tmp_path, "mlflow.db", (SAMPLES / "mlflow.db").read_bytes(), ".gz")
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w:gz") as archive:
        archive.add(SAMPLES / "timm.log", "timm.log")
    (tmp_path / "logs.tar.gz").write_bytes(tar.getvalue())
    for path, why in (
        (twice, "compressed more than once"),
        (database, "a compressed sqlite file; unpack it"),
        (tmp_path / "logs.tar.gz", r"an archive \(tar\)"),
    ):
        with pytest.raises(InputError, match=why):
            read_run(path)


def test_a_compressed_log_in_a_run_folder_is_found(tmp_path: Path) -> None:
    packed(tmp_path, "metrics.jsonl", lines(50), ".gz")
    assert read_run(tmp_path).records == 50


def test_a_compressed_log_that_is_followed_is_read_again_when_it_changed(tmp_path: Path) -> None:
    path = packed(tmp_path, "log.jsonl", lines(50), ".gz")
    tail = LogTail(path)
    assert tail.read().records == 50
    packed(tmp_path, "log.jsonl", lines(80), ".gz")
    assert tail.read().records == 80


def test_a_replayed_file_reads_and_seeks_as_a_file_does() -> None:
    content = bytes(range(256)) * 50
    made = replayed(lambda: (content[at : at + 700] for at in range(0, len(content), 700)))
    real = io.BytesIO(content)
    noise = random.Random(2)
    for _ in range(300):
        if noise.random() < 0.5:
            assert made.read(size := noise.randrange(3000)) == real.read(size)
        else:
            place = noise.randrange(len(content) + 500)
            assert made.seek(place) == min(real.seek(place), len(content))
            real.seek(min(place, len(content)))
    assert made.seek(0, io.SEEK_END) == len(content)
