from __future__ import annotations

import copy
import gzip
import pickle
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from torch.cuda import _memory_viz

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.judge.memory import check_memory
from mldebug_mcp.memory.read import read_memory
from mldebug_mcp.memory.replay import free_at
from tests.memory import scenarios
from tests.memory.allocator import MIB, Allocator
from tests.memory.conftest import Save

LAYOUTS = ("2.0", "2.1", "2.3", "2.6", "2.13")
WORKLOADS: dict[str, Callable[[], Allocator]] = {
    "training": scenarios.training,
    "leak": scenarios.leak,
    "graph_kept": scenarios.graph_kept,
    "evaluation": scenarios.evaluation_without_no_grad,
    "inference": scenarios.inference,
    "out_of_memory": scenarios.out_of_memory,
    "fragmented": scenarios.fragmented,
    "expandable": lambda: scenarios.fragmented(expandable=True),
    "two_models": scenarios.two_models,
}


def torch_total(text: str, name: str) -> float:
    """Return a total that torch prints, in bytes."""
    match = re.search(rf"{name}: ([\d.]+)(\w*)B", text)
    assert match is not None
    return float(match[1]) * {"": 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}[match[2]]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("workload", WORKLOADS)
def test_torch_accepts_every_generated_snapshot_and_our_totals_are_its(workload: str, layout: str, save: Save) -> None:
    tree = scenarios.snapshot_of(WORKLOADS[workload](), layout=layout)

    printed = _memory_viz.segsum(tree)  # type: ignore[no-untyped-call]
    _memory_viz.trace(copy.deepcopy(tree))  # type: ignore[no-untyped-call]
    ours = check_memory(save(tree)).snapshot

    assert ours.reserved_bytes == sum(segment["total_size"] for segment in tree["segments"])
    assert ours.reserved_bytes == pytest.approx(torch_total(printed, "total_reserved"), rel=0.06)
    assert ours.requested_bytes == pytest.approx(torch_total(printed, "total_allocated"), rel=0.06)
    assert ours.allocated_bytes == sum(segment["allocated_size"] for segment in tree["segments"])
    assert ours.segments == len(tree["segments"])
    assert ours.trace_events == len(tree["device_traces"][0])


@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_replayed_history_ends_where_the_blocks_say(workload: str, save: Save) -> None:
    gpu = WORKLOADS[workload]()

    device = read_memory(save(scenarios.snapshot_of(gpu))).devices[0]

    assert device.history is not None
    assert int(device.history.replay.allocated[-1]) == device.allocated
    assert int(device.history.replay.reserved[-1]) == gpu.reserved
    assert device.history.replay.unmatched == 0
    at_end = free_at(device.history.tables, device.history.allocations, device.history.events - 1)
    assert (at_end.total, at_end.largest) == (device.free.total, device.free.largest)


def test_the_peak_is_the_largest_sum_of_live_blocks_at_any_event(save: Save) -> None:
    tree = scenarios.snapshot_of(scenarios.training(steps=3))
    live: dict[int, int] = {}
    highest = 0
    for event in tree["device_traces"][0]:
        if event["action"] == "alloc":
            live[event["addr"]] = -(-max(event["size"], 1) // 512) * 512
        elif event["action"] == "free_requested":
            del live[event["addr"]]
        highest = max(highest, sum(live.values()))

    # A block can be up to 1 MiB larger than asked for, where the rest was not worth splitting off.
    assert check_memory(save(tree)).snapshot.peak_allocated_bytes == pytest.approx(highest, rel=0.005)


def test_reserved_memory_over_time_never_falls_below_what_is_allocated(save: Save) -> None:
    for workload in WORKLOADS.values():
        history = read_memory(save(scenarios.snapshot_of(workload()))).devices[0].history
        assert history is not None
        assert np.all(history.replay.reserved >= history.replay.allocated)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_pickle_protocol_reads_the_same(protocol: int, save: Save) -> None:
    tree = scenarios.snapshot_of(scenarios.training(steps=2))

    answer = check_memory(save(tree, "a.pickle", protocol))

    assert answer.snapshot.trace_events == len(tree["device_traces"][0])
    assert answer.top_allocations == check_memory(save(tree, "b.pickle")).top_allocations


@pytest.mark.parametrize("protocol", [2, 4])
def test_a_pair_of_numbers_in_each_event_and_segment_is_no_reason_to_refuse(protocol: int, save: Save) -> None:
    pairs = [(number % 300, number // 300) for number in range(7_000)]
    segments = [{"device": 0, "address": 1, "total_size": 512, "segment_pool_id": pair, "blocks": []} for pair in pairs]
    trace = [{"action": "alloc", "addr": 1, "size": 512, "pool_id": pair, "time_us": 1} for pair in pairs]

    answer = check_memory(save({"segments": segments, "device_traces": [trace]}, protocol=protocol))

    assert (answer.snapshot.segments, answer.snapshot.trace_events) == (7_000, 7_000)


def test_a_gzip_of_a_snapshot_reads_the_same(tmp_path: Path, save: Save) -> None:
    plain = save(scenarios.snapshot_of(scenarios.leak()))
    packed = tmp_path / "snapshot.pickle.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))

    one, two = check_memory(plain), check_memory(packed)

    assert two.findings == one.findings
    assert two.devices == one.devices


def test_segments_alone_are_a_snapshot_without_history(save: Save) -> None:
    tree = scenarios.snapshot_of(scenarios.training(steps=2))

    answer = check_memory(save(tree["segments"]))

    assert answer.snapshot.layout == "segments only"
    assert "history_missing" in [one.finding for one in answer.findings]
    assert {one.category for one in answer.top_allocations} >= {"parameters", "optimizer_state"}


def test_a_history_that_began_late_knows_what_was_held_before(save: Save) -> None:
    whole = scenarios.training(steps=4)
    late = Allocator()
    late.recording = False
    model = scenarios.Decoder(late).build()
    model.train_step()
    late.recording = True
    for _ in range(3):
        model.train_step()

    answer = check_memory(save(scenarios.snapshot_of(late)))

    assert (
        answer.snapshot.peak_allocated_bytes
        == check_memory(save(scenarios.snapshot_of(whole))).snapshot.peak_allocated_bytes
    )


def test_every_device_is_read_and_devices_without_memory_are_left_out(save: Save) -> None:
    tree = scenarios.snapshot_of(
        scenarios.training(steps=1, gpu=Allocator(0)), scenarios.training(steps=1, gpu=Allocator(1))
    )
    tree["device_traces"] += [[], []]

    answer = check_memory(save(tree))

    assert [one.device for one in answer.devices] == [0, 1]
    assert answer.snapshot.devices == 2


def test_free_memory_of_private_pools_counts_as_free(save: Save) -> None:
    gpu = Allocator()
    scenarios.Decoder(gpu).build()
    gpu.pool = (0, 3)
    gpu.free(gpu.malloc(64 * MIB, scenarios.LEAK, stream=7))

    device = read_memory(save(scenarios.snapshot_of(gpu))).devices[0]

    assert device.free.releasable == 64 * MIB


def test_the_profilers_timeline_states_categories(save: Save) -> None:
    events = [
        {"action": "alloc", "addr": 4096, "size": 5000, "stream": 0, "frames": [], "category": "parameter"},
        {"action": "alloc", "addr": 16384, "size": 300, "stream": 0, "frames": [], "category": "activation"},
        {"action": "free_requested", "addr": 16384, "size": 300, "stream": 0, "frames": []},
        {"action": "free_completed", "addr": 16384, "size": 300, "stream": 0, "frames": []},
    ]
    block = {"size": 5000, "state": "active_allocated", "requested_size": 5000, "frames": []}
    tree = {
        "segments": [{"device": 0, "address": 4096, "total_size": 5000, "stream": 0, "blocks": [block]}],
        "device_traces": [events],
    }

    answer = check_memory(save(tree))

    assert answer.snapshot.layout == "profiler timeline"
    assert answer.snapshot.peak_allocated_bytes == 5300
    assert [(one.category, one.sure) for one in answer.devices[0].categories] == [
        ("parameters", "certain"),
        ("activations", "certain"),
    ]


def test_frames_of_generated_code_lead_back_to_the_models_source(save: Save) -> None:
    gpu = Allocator()
    source = 'File "/home/me/net.py", line 12, in forward\n    x = self.up(x)'
    gpu.malloc(
        MIB,
        [
            {
                "filename": "<eval_with_key>.7",
                "line": 5,
                "name": "forward",
                "fx_node_name": "linear",
                "fx_original_trace": source,
            }
        ],
    )

    assert check_memory(save(scenarios.snapshot_of(gpu))).top_allocations[0].site == "me/net.py:12 forward"


@pytest.mark.parametrize(
    "broken",
    [
        {
            "segments": [None, 3, {"blocks": [1, {"size": "x"}]}],
            "device_traces": [[{"action": 3}, None, {"action": "alloc"}]],
        },
        {
            "segments": [
                {"total_size": -5, "address": 2**60, "blocks": [{"size": 2**62, "state": "active_allocated"}]}
            ],
            "device_traces": [],
        },
        {"segments": [], "device_traces": [[{"action": "free_completed", "addr": 1, "size": 10}] * 3]},
        {
            "segments": [],
            "device_traces": [[{"action": "alloc", "addr": 1, "size": 10, "frames": [7, {}, {"name": 3}]}]],
        },
        {
            "segments": [],
            "device_traces": [[{"action": "oom", "device_free": -1, "size": 10}]],
            "external_annotations": 3,
        },
    ],
)
def test_a_malformed_snapshot_is_answered(broken: object, save: Save) -> None:
    answer = check_memory(save(broken))

    assert answer.findings
    assert answer.snapshot.allocated_bytes >= 0


@pytest.mark.parametrize(
    ("tree", "why"),
    [
        ({"model": [1, 2, 3]}, "neither segments nor device_traces"),
        ([1, 2, 3], "neither a segment nor an event"),
        ([{"loss": 0.3, "step": 1}], "neither a segment nor an event"),
        ({"segments": 7, "device_traces": "x"}, "neither a segment nor an event"),
        ({"segments": [], "device_traces": [[]]}, "neither a segment nor an event"),
    ],
)
def test_a_pickle_of_something_else_is_refused_and_says_how_to_record_a_snapshot(
    tree: object, why: str, save: Save
) -> None:
    with pytest.raises(InputError, match=rf"not a memory snapshot \(it .*{why}.*_record_memory_history"):
        check_memory(save(tree))


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "empty"), (b"PK\x03\x04rest", "torch.save"), (b"just words\n", "neither a memory snapshot")],
)
def test_a_file_that_is_no_snapshot_is_told_apart(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)

    with pytest.raises(InputError, match=said):
        check_memory(path)


def test_a_missing_file_and_a_folder_are_clear_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        check_memory(tmp_path / "none.pickle")
    with pytest.raises(InputError, match="not a regular file"):
        check_memory(tmp_path)
