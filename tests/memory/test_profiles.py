"""Memory profiles of other tools than torch's allocator, and files that are none."""

from __future__ import annotations

import contextlib
import gzip
import json
import pickle
import sqlite3
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.judge.memory import check_memory
from mldebug_mcp.models.data import MemoryReport
from tests.memory import scenarios
from tests.memory.conftest import Save

DATA = Path(__file__).parent / "data"
"""Profiles that `jax.profiler.save_device_memory_profile` of JAX 0.10.2 wrote on a CPU: three weights of 256 x 256 and
a batch of 64 x 256 in float32; the second has the results of four more steps."""
KIB = 1024


def test_a_profile_of_jax_tells_the_live_buffers_by_line_and_device() -> None:
    report = check_memory(DATA / "jax_before.prof")

    assert report.snapshot.layout == "JAX device memory profile"
    assert report.snapshot.allocated_bytes >= (3 * 256 * 256 + 64 * 256) * 4
    weights = [one for one in report.top_allocations if one.site.startswith("jaxrun/train.py:8 ")]
    assert sum(one.bytes for one in weights) == 3 * 256 * KIB
    assert sum(one.count for one in weights) == 3
    assert report.findings == []
    assert report.hypotheses == []
    assert any("cpu:0" in note for note in report.notes)


def test_two_profiles_of_jax_are_compared_by_line() -> None:
    comparison = check_memory(DATA / "jax_after.prof", DATA / "jax_before.prof").comparison

    assert comparison is not None
    assert comparison.allocated_change_bytes == 4 * 64 * KIB
    assert comparison.sites[0].change_bytes == 4 * 64 * KIB
    assert comparison.sites[0].site.startswith("jaxrun/train.py:21")


def test_a_profile_of_jax_may_be_unpacked_and_cut_off(tmp_path: Path) -> None:
    whole = gzip.decompress((DATA / "jax_before.prof").read_bytes())
    path = tmp_path / "memory.pb"
    path.write_bytes(whole)
    assert check_memory(path).snapshot == check_memory(DATA / "jax_before.prof").snapshot.model_copy(
        update={"path": str(path)}
    )

    path.write_bytes(whole[: len(whole) // 3])
    with pytest.raises(InputError, match="pprof"):
        check_memory(path)


@pytest.fixture(scope="module")
def timelines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write what torch's profiler exports of two steps on a CPU, in all its forms."""
    torch = pytest.importorskip("torch")
    from torch.profiler import ProfilerActivity, profile

    folder = tmp_path_factory.mktemp("timelines")
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256))
    optimizer = torch.optim.AdamW(model.parameters())
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True, with_stack=True) as trace:
        for _ in range(2):
            torch.autograd.backward(model(torch.randn(128, 256)).square().mean())
            optimizer.step()
            optimizer.zero_grad()
    for name in ("plain.json", "packed.json.gz", "each.raw.json.gz"):
        trace.export_memory_timeline(str(folder / name), device="cpu")
    trace.export_chrome_trace(str(folder / "trace.json"))
    return folder


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["plain.json", "packed.json.gz", "each.raw.json.gz"])
def test_a_timeline_of_torchs_profiler_tells_the_peak_by_category(timelines: Path, name: str) -> None:
    report = check_memory(timelines / name)

    held = {one.category: one.bytes for one in report.devices[0].categories}
    parameters = (256 * 512 + 512 + 512 * 256 + 256) * 4
    assert held["optimizer_state"] == pytest.approx(2 * parameters, rel=0.01)
    assert held["gradients"] == pytest.approx(parameters, rel=0.01)
    assert sum(held.values()) == report.snapshot.peak_allocated_bytes
    assert {one.sure for one in report.devices[0].categories} == {"certain"}
    assert report.hypotheses == []


@pytest.mark.filterwarnings("ignore")
def test_a_trace_is_named_for_what_it_is(timelines: Path) -> None:
    with pytest.raises(InputError, match=r"a trace of torch\.profiler"):
        check_memory(timelines / "trace.json")


def test_a_snapshot_of_an_xpu_is_read_as_one_of_cuda(save: Save) -> None:
    gpu = scenarios.leak()
    tree = scenarios.snapshot_of(gpu, layout="2.1")
    for name in ("allocator_settings", "external_annotations"):
        tree.pop(name, None)
    for segment in tree["segments"]:
        for name in ("segment_pool_id", "is_expandable", "frames", "requested_size"):
            segment.pop(name, None)

    report = check_memory(save(tree))

    assert "leak" in {one.finding for one in report.findings}
    assert report.snapshot.allocated_bytes == sum(
        block["size"] for one in tree["segments"] for block in one["blocks"] if block["state"] == "active_allocated"
    )


def _database(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("create table kernels (name text)")
    connection.commit()
    connection.close()


def _notebook(path: Path) -> None:
    path.write_text(json.dumps({"nbformat": 4, "cells": []}))


def _configuration(path: Path) -> None:
    path.write_text(json.dumps({"model_type": "llama", "hidden_size": 64}))


def _safetensors(path: Path) -> None:
    header = json.dumps({"weight": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))


def _checkpoint(path: Path) -> None:
    path.write_bytes(pickle.dumps(OrderedDict(weight=1)))


def _packed_json(path: Path) -> None:
    path.write_bytes(gzip.compress(json.dumps({"step": 1, "loss": 2.0}).encode()))


def _other_pprof(path: Path) -> None:
    # Types of values "samples" and "cpu", and the texts that they name.
    texts = b"".join(b"\x32" + bytes([len(one)]) + one for one in (b"", b"samples", b"count", b"cpu"))
    path.write_bytes(gzip.compress(b"\x0a\x04\x08\x01\x10\x02" + b"\x0a\x02\x08\x03" + texts))


def _web_page(path: Path) -> None:
    path.write_text("<html>\n<head><title>GPU Memory Timeline HTML</title></head></html>")


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (_web_page, "a web page"),
        (_database, "an SQLite database"),
        (_notebook, "a notebook"),
        (_configuration, "`estimate`"),
        (_safetensors, "safetensors"),
        (_checkpoint, "objects of classes, as checkpoints"),
        (_packed_json, "JSON, an object with the keys loss, step"),
        (_other_pprof, "a pprof profile of samples, cpu"),
    ],
)
def test_another_valid_file_is_named_for_what_it_is(write: Any, said: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    write(path)

    with pytest.raises(InputError) as refused:
        check_memory(path)

    assert said in str(refused.value)
    assert "hostile" not in str(refused.value)


@pytest.mark.parametrize(
    "tree",
    [
        [[1, 2], [[0] * 9, [0] * 8]],
        [[1, 2], [[0] * 9, "x"]],
        [[1, 9, 4, 0]],
        [[1, 2, 1 << 70, 0]],
        [[1.5, 2, 4, 0]],
        [],
        [[], []],
        [[True]],
    ],
)
def test_a_timeline_with_impossible_rows_is_a_clear_error(tree: object, tmp_path: Path) -> None:
    path = tmp_path / "timeline.json"
    path.write_text(json.dumps(tree))

    with pytest.raises(InputError, match="not a memory profile"):
        check_memory(path)


def test_a_profile_with_any_byte_changed_is_answered_or_refused(tmp_path: Path) -> None:
    whole = gzip.decompress((DATA / "jax_before.prof").read_bytes())
    path = tmp_path / "changed.pb"
    answers = 0
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        with contextlib.suppress(InputError):
            answers += isinstance(check_memory(path), MemoryReport)
    assert answers > 0
