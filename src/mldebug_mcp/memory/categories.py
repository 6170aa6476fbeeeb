"""The layouts of snapshots, and what each allocation holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import IntEnum
from itertools import repeat
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.limits import checkpoint
from mldebug_mcp.core.text import shorten
from mldebug_mcp.memory.replay import Allocations
from mldebug_mcp.memory.tables import (
    Action,
    Annotation,
    Blocks,
    Bools,
    DeviceTables,
    Events,
    Ints,
    Phase,
    Segments,
    SnapshotTables,
    Stacks,
)

# The object in a snapshot's pickle → tables. Every layout that torch has written, from 2.0 on, and the profiler's.
#
# | layout | what differs | | --- | --- | | 2.0 | blocks have a `history` instead of `frames`, no addresses and no
# `requested_size` | | 2.1 | `frames`, `segment_pool_id`, `is_expandable`, `allocator_settings`, segment_map and
# segment_unmap | | 2.2 | `time_us` of each event | | 2.4 | `compile_context`; `external_annotations` | | 2.8 |
# `user_metadata`; later `pool_id` of each event and fx fields of a frame | | a list | `torch.cuda.memory_snapshot()`:
# segments only | | profiler | `torch.profiler`'s timeline: events with a `category`, segments without a device |


_CODES: Mapping[object, int] = {
    "alloc": Action.ALLOC,
    "free_requested": Action.FREE_REQUESTED,
    "free": Action.FREE_REQUESTED,
    "free_completed": Action.FREE_COMPLETED,
    "segment_alloc": Action.SEGMENT_ALLOC,
    "segment_free": Action.SEGMENT_FREE,
    "segment_map": Action.SEGMENT_MAP,
    "segment_unmap": Action.SEGMENT_UNMAP,
    "oom": Action.OOM,
    "snapshot": Action.SNAPSHOT,
}
_HUGE = 1 << 56
"""Larger sizes cannot be real: 64 PiB."""
MAX_DEVICES = 1024
EVENTS_BETWEEN_CHECKPOINTS = 1_000
"""Roughly: only allocations are looked at one by one."""
MAX_ANNOTATIONS = 200_000


def tables_of(tree: object, path: str, length: int) -> SnapshotTables:
    """Return the tables of a snapshot; a tree that refers to its parts more often than its pickle has bytes is refused.

    Raises:
        InputError: it is not a snapshot.
    """
    if isinstance(tree, list):
        tree = {"segments": tree, "device_traces": []}
    why = _no_snapshot(tree)
    if why or not isinstance(tree, Mapping):
        raise InputError(
            f"{shorten(path, 200)}: a pickle, but not a memory snapshot ({why}); record one with "
            "torch.cuda.memory._record_memory_history() and torch.cuda.memory._dump_snapshot('snapshot.pickle')"
        )
    segments = _dicts(tree.get("segments"))
    traces = [events if isinstance(events, list) else [] for events in _list(tree.get("device_traces"))[:MAX_DEVICES]]
    _check_budget(segments, traces, length, path)
    result = SnapshotTables(path, "snapshot" if any(traces) else "segments only", [], Stacks())
    by_device: dict[int, list[Mapping[str, Any]]] = {}
    for segment in segments:
        by_device.setdefault(_whole_number(segment.get("device")), []).append(segment)
    for device in sorted({*by_device, *(number for number, trace in enumerate(traces) if trace)}):
        trace = traces[device] if 0 <= device < len(traces) else []
        checkpoint(f"device {device}: {len(trace):,} events")
        reader = _DeviceReader(result, device)
        result.devices.append(reader.read(by_device.get(device, []), trace))
    result.annotations = _annotations(tree.get("external_annotations"))
    result.stacks.forget_objects()
    return result


def _no_snapshot(tree: object) -> str:
    """Say why an unpickled object is not a snapshot; "" if it is one."""
    if not isinstance(tree, Mapping) or not ("segments" in tree or "device_traces" in tree):
        return "it has neither segments nor device_traces"
    segment = any("total_size" in dict_ or "blocks" in dict_ for dict_ in _dicts(tree.get("segments")))
    event = any("action" in dict_ for trace in _list(tree.get("device_traces")) for dict_ in _dicts(trace)[:1])
    return "" if segment or event else "it holds neither a segment nor an event"


def _check_budget(segments: Sequence[Mapping[str, Any]], traces: Sequence[list[Any]], length: int, path: str) -> None:
    """Refuse a tree whose parts are shared so often that walking it takes longer than its file could justify."""
    parts = sum(map(len, traces)) + sum(len(_list(segment.get("blocks"))) for segment in segments)
    if parts > length:
        raise InputError(f"{shorten(path, 200)}: {parts:,} entries in {length:,} bytes; not a memory snapshot; refused")


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _dicts(value: object) -> list[Mapping[str, Any]]:
    return [mapping for mapping in _list(value) if isinstance(mapping, Mapping)]


def _whole_number(value: object) -> int:
    return value if isinstance(value, int) and -1 <= value < _HUGE else 0


def _column(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int64)


def _columns(events: list[Any]) -> tuple[Ints, Ints, Ints]:
    """Return action, address and size of each event; raises if one of them is not an event."""
    count = len(events)
    action = np.fromiter(map(_CODES.get, map(itemgetter("action"), events), repeat(Action.OTHER)), np.int64, count)
    size = np.fromiter(map(itemgetter("size"), events), np.int64, count)
    address = _numbers(events, "addr")
    for index in np.flatnonzero(address == 0).tolist():
        address[index] = events[index].get("device_free", 0)
    if count and (size.min() < 0 or size.max() >= _HUGE):
        raise ValueError("impossible sizes")
    return action, address, size


def _numbers(events: list[dict[str, Any]], key: str) -> Ints:
    """Return a column, 0 where it is missing."""
    try:
        return np.fromiter(map(dict.get, events, repeat(key), repeat(0)), np.int64, len(events))
    except (TypeError, ValueError, OverflowError):
        return np.fromiter((_whole_number(event.get(key)) for event in events), np.int64, len(events))


class _DeviceReader:
    def __init__(self, snapshot: SnapshotTables, device: int) -> None:
        self.snapshot = snapshot
        self.device = device
        self.stacks = snapshot.stacks

    def read(self, segments: list[Mapping[str, Any]], trace: list[Any]) -> DeviceTables:
        return DeviceTables(self.device, self._segments(segments), self._blocks(segments), self._events(trace))

    def _segments(self, segments: list[Mapping[str, Any]]) -> Segments:
        return Segments(
            address=_column([_whole_number(segment.get("address")) for segment in segments]),
            size=_column([_whole_number(segment.get("total_size")) for segment in segments]),
            expandable=np.array([segment.get("is_expandable") is True for segment in segments], dtype=np.bool_),
        )

    def _blocks(self, segments: list[Mapping[str, Any]]) -> Blocks:
        rows: list[tuple[int, int, int, bool, bool, int, int]] = []
        for number, segment in enumerate(segments):
            address = _whole_number(segment.get("address"))
            for block in _dicts(segment.get("blocks")):
                size, state = _whole_number(block.get("size")), block.get("state")
                requested, frames = _requested(block, size)
                live = state == "active_allocated"
                pending = isinstance(state, str) and state in ("active_awaiting_free", "active_pending_free")
                where = _whole_number(block.get("address")) or address
                rows.append((where, size, requested, live, pending, self.stacks.add(frames) if live else 0, number))
                address = where + size
        columns = np.array(rows, dtype=np.int64).reshape(-1, 7).T
        return Blocks(columns[0], columns[1], columns[2], columns[3] == 1, columns[4] == 1, columns[5], columns[6])

    def _events(self, trace: list[Any]) -> Events:
        try:
            columns = _columns(trace)
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
            # Something in it is not an event: only then is each one checked.
            trace = self._usable(trace)
            columns = _columns(trace)
        action, address, size = columns
        stack = np.zeros(len(trace), np.int64)
        for index in np.flatnonzero((action == Action.ALLOC) | (action == Action.OOM)).tolist():
            if index % EVENTS_BETWEEN_CHECKPOINTS == 0:
                checkpoint(f"device {self.device}: event {index:,} of {len(trace):,}")
            stack[index] = self.stacks.add(trace[index].get("frames"))
        stated = np.full(len(trace), -1, np.int64)
        if any("category" in event for event in trace[:50]):
            self.snapshot.layout = "profiler timeline"
            stated = np.array([_FROM_PROFILER.get(event.get("category"), -1) for event in trace], np.int64)
        return Events(action, address, size, _numbers(trace, "time_us"), stack, stated)

    def _usable(self, trace: list[Any]) -> list[dict[str, Any]]:
        usable = [
            event
            for event in trace
            if type(event) is dict
            and type(event.get("action")) is str
            and type(size := event.get("size")) is int
            and 0 <= size < _HUGE
            and type(event.get("addr", event.get("device_free"))) is int
        ]
        if len(usable) < len(trace):
            self.snapshot.notes.append(
                f"device {self.device}: {len(trace) - len(usable):,} of {len(trace):,} events lack an action, a "
                "size or an address and were skipped"
            )
        return usable


def _requested(block: Mapping[str, Any], size: int) -> tuple[int, object]:
    """Return the bytes that were asked for and the stack; torch 2.0 keeps both in a history."""
    history = _dicts(block.get("history"))
    if history and "frames" not in block:
        return _whole_number(history[0].get("real_size")) or size, history[0].get("frames")
    return _whole_number(block.get("requested_size", size)), block.get("frames")


def _annotations(entries: object) -> list[Annotation]:
    found = [
        Annotation(
            shorten(str(dict_.get("name", "")), 120),
            _whole_number(dict_.get("time_us")),
            _whole_number(dict_.get("device")),
        )
        for dict_ in _dicts(entries)[:MAX_ANNOTATIONS]
        if str(dict_.get("stage", "START")).upper() == "START"
    ]
    return sorted(found, key=lambda annotation: annotation.time)


# What each allocation holds: by its stack first, by its lifetime and size where the stack leaves it open.
#
# | category | rule | how sure | | --- | --- | --- | | any | torch's profiler wrote it | certain | | optimizer_state |
# allocated where optimizers create state, or by the optimizer and kept beyond the step | high | |
# optimizer_temporary | allocated by the optimizer and freed within the step | high | | collective | allocated inside
# torch.distributed, NCCL, DDP or DeepSpeed's communication | high | | workspace | the buffer that cuBLAS takes once for
# each thread and keeps | medium | | parameters | allocated while the model was built, moved, sharded, copied or loaded,
# and kept | high | | gradients | allocated in backward and kept beyond its end | medium | | logits | allocated by the
# loss; the last results of the forward pass before it, from the same line; their gradients | high; medium | |
# attention_scores | allocated by a function of attention, of another size than its layers' outputs; in backward of the
# same size | high; medium | | activations | allocated in forward | high | | inputs | allocated outside the model and
# alive when a forward pass runs | medium | | temporary | anything else that is freed | medium | | parameters | older
# than the history, without a stack and never freed; with Adam, two of three of one size are its state | low | | unknown
# | the rest | - |
#
# If other allocations have Python frames, one without is taken to be backward: autograd runs the backward pass of a
# device in a thread of its own, which has no Python frames.


MANY_LATER = 20
"""Forward allocations during its life after which a tensor counts as kept for backward. Chosen: without a graph a
tensor outlives the next two or three."""
FRAMES_RECORDED = 0.2
"""Share of the allocations with Python frames above which frames were recorded at all. Chosen by hand: backward alone
takes half of them."""
LEAST_LOGITS = 1024 * 1024
"""Bytes below which sizes coincide by chance too easily."""
SAME_LOGITS = 0.02
"""Relative difference up to which two sizes are those of the same logits: a shift by one token drops a row of many."""
LEAST_SCORES = 1024 * 1024
"""Bytes below which attention scores are not worth a name."""
MANY_SCORES = 4
"""Allocations of one size by plain code in one forward pass after which they count as scores of attention. Chosen: two
layers of at least two each; a matrix of all pairs that a loss needs comes once or twice."""
WORKSPACES = (
    1024 * 1024,
    8 * 1024 * 1024 + 128 * 1024,
    32 * 1024 * 1024,
    76 * 1024 * 1024,
)
"""Bytes that cuBLAS, cuBLASLt and hipBLASLt take for themselves: `parseChosenWorkspaceSize` in
aten/src/ATen/cuda/CublasHandlePool.cpp and the workspaces of CUDABlas.cpp (1 MiB; :4096:2:16:8; 32 MiB from Hopper on;
76 MiB on MI300)."""
ADAM_STATES = 2
"""Tensors of a parameter's size that Adam keeps for it."""


class Category(IntEnum):
    """What memory holds."""

    UNKNOWN = 0
    PARAMETERS = 1
    GRADIENTS = 2
    OPTIMIZER_STATE = 3
    ACTIVATIONS = 4
    LOGITS = 5
    TEMPORARY = 6
    COLLECTIVE = 7
    ATTENTION_SCORES = 8
    OPTIMIZER_TEMPORARY = 9
    INPUTS = 10
    WORKSPACE = 11

    @property
    def label(self) -> str:
        """The name in answers."""
        return self.name.lower()


class Sure(IntEnum):
    """How sure a category is."""

    NOT = 0
    LOW = 1
    MEDIUM = 2
    HIGH = 3
    CERTAIN = 4


_FROM_PROFILER: Mapping[object, int] = {
    "input": Category.INPUTS,
    "temporary": Category.TEMPORARY,
    "activation": Category.ACTIVATIONS,
    "gradient": Category.GRADIENTS,
    "autograd_detail": Category.TEMPORARY,
    "parameter": Category.PARAMETERS,
    "optimizer_state": Category.OPTIMIZER_STATE,
}
"""What each of the categories of torch's profiler (`torch.profiler._memory_profiler.Category`) is here."""


class Categories(NamedTuple):
    """What each allocation holds. All columns have shape (allocations,).

    Args:
        category: Its `Category`, int8.
        sure: Its `Sure`, int8.
        transient: Whether it is a result of a forward pass that goes before backward could use it, bool.
    """

    category: np.ndarray
    sure: np.ndarray
    transient: Bools


class _Assignment:
    """The categories assigned so far: a later rule never overwrites an earlier one."""

    def __init__(self, count: int) -> None:
        self.category = np.zeros(count, np.int8)
        self.sure = np.zeros(count, np.int8)

    @property
    def free(self) -> Bools:
        return np.asarray(self.category == Category.UNKNOWN)

    def give(self, which: Bools, category: Category, sure: Sure) -> None:
        free = which & self.free
        self.category[free] = category
        self.sure[free] = sure


def categorise(allocations: Allocations, events: Events, stacks: Stacks) -> Categories:
    """Return what each allocation holds."""
    count = len(events)
    done = _Assignment(len(allocations))
    if not len(allocations):
        return Categories(done.category, done.sure, np.zeros(0, np.bool_))
    phase = _phases(allocations, stacks)
    start, end = allocations.start, allocations.end
    _take_stated(done, allocations, events)
    timeline = _PhaseTimeline(phase, start, count)
    kept = end == count
    forward = (phase == Phase.FORWARD) | (phase == Phase.LOSS)

    done.give(phase == Phase.OPTIMIZER_STATE, Category.OPTIMIZER_STATE, Sure.HIGH)
    beyond_step = end > timeline.next_of(start, Phase.FORWARD)
    done.give((phase == Phase.OPTIMIZER) & (kept | beyond_step), Category.OPTIMIZER_STATE, Sure.HIGH)
    done.give(phase == Phase.OPTIMIZER, Category.OPTIMIZER_TEMPORARY, Sure.HIGH)
    done.give(phase == Phase.COLLECTIVE, Category.COLLECTIVE, Sure.HIGH)
    _give_workspaces(done, allocations, phase, timeline, count)
    done.give((phase == Phase.SETUP) & kept, Category.PARAMETERS, Sure.HIGH)
    beyond_backward = (phase == Phase.BACKWARD) & (end > timeline.end_of_backward(start))
    done.give(beyond_backward, Category.GRADIENTS, Sure.MEDIUM)
    _give_logits(done, allocations, phase)
    _give_attention_scores(done, allocations, phase, stacks)
    failed = np.append(np.flatnonzero(events.action == Action.OOM), count)
    next_oom = failed[np.minimum(np.searchsorted(failed, start), len(failed) - 1)]
    lives_on = kept | (end > next_oom) | (timeline.forward_between(start, end) >= MANY_LATER)
    used_in_backward = end > timeline.next_of(start, Phase.BACKWARD)
    done.give(forward & (start >= 0), Category.ACTIVATIONS, Sure.HIGH)
    done.give(forward & kept, Category.ACTIVATIONS, Sure.MEDIUM)
    _give_inputs(done, allocations, phase, timeline, stacks)
    copies = np.array([stack.copies for stack in stacks.all])[allocations.stack]
    done.give(copies & (kept | beyond_step), Category.PARAMETERS, Sure.MEDIUM)
    done.give((start >= 0) & ~kept, Category.TEMPORARY, Sure.MEDIUM)
    _give_older(done, allocations, count, stacks)
    transient = forward & (start >= 0) & ~used_in_backward & ~lives_on
    return Categories(done.category, done.sure, np.asarray(transient))


def _phases(allocations: Allocations, stacks: Stacks) -> Ints:
    """Return each allocation's phase; if others have frames, one without belongs to backward."""
    table = np.array([stack.phase for stack in stacks.all], np.int64)
    phase = table[allocations.stack]
    in_history = allocations.start >= 0
    recorded = allocations.stack > 0
    if in_history.any() and recorded[in_history].mean() > FRAMES_RECORDED:
        phase = np.where(in_history & ~recorded, Phase.BACKWARD, phase)
    return phase


def _take_stated(done: _Assignment, allocations: Allocations, events: Events) -> None:
    if not len(events) or not (events.stated >= 0).any():
        return
    stated = np.where(allocations.start >= 0, events.stated[np.maximum(allocations.start, 0)], -1)
    for category in Category:
        done.give(stated == category, category, Sure.CERTAIN)


def _give_workspaces(
    done: _Assignment, allocations: Allocations, phase: Ints, timeline: _PhaseTimeline, count: int
) -> None:
    """Mark what a matrix product leaves once, in the size of a workspace, while training goes on."""
    of_a_product = (phase == Phase.FORWARD) | (phase == Phase.BACKWARD) | (allocations.stack == 0)
    training_went_on = timeline.next_of(timeline.next_of(allocations.start, Phase.BACKWARD), Phase.FORWARD) < count
    likely = np.flatnonzero(
        of_a_product
        & (allocations.end == count)
        & np.isin(allocations.requested, WORKSPACES)
        & ((allocations.start < 0) | training_went_on)
        & done.free
    )
    # Of one stack only one of a size: more of them are parameters, gradients or a leak.
    stack_and_size = np.stack([allocations.stack[likely], allocations.requested[likely]])
    _, which, times = np.unique(stack_and_size, axis=1, return_inverse=True, return_counts=True)
    once = likely[times[which.reshape(-1)] == 1] if len(likely) else likely
    mask = np.zeros(len(allocations), np.bool_)
    mask[once] = True
    done.give(mask, Category.WORKSPACE, Sure.MEDIUM)


def _give_logits(done: _Assignment, allocations: Allocations, phase: Ints) -> None:
    """Mark what the loss allocates, the results of the forward pass that lead to it, and their gradients.

    The stack decides: the logits are what the forward pass makes last before the loss. Their size only ends the
    search: it is that of what the loss allocates, or half or twice that in another precision.
    """
    size = allocations.requested
    of_loss = (phase == Phase.LOSS) & (size >= LEAST_LOGITS)
    done.give(of_loss, Category.LOGITS, Sure.HIGH)
    order = np.argsort(allocations.start, kind="stable")
    order = order[(allocations.start[order] >= 0) & (size[order] >= LEAST_LOGITS)]
    free, loss = done.free, of_loss[order]
    before = order[1:][loss[1:] & ~loss[:-1]]
    lines: dict[int, set[int]] = {}
    gradients = np.zeros(len(allocations), np.bool_)
    place = {int(row): at for at, row in enumerate(order.tolist())}
    for first in before.tolist():
        at = place[first]
        last = at
        while last + 1 < len(order) and loss[last + 1]:
            last += 1
        largest = int(size[order[at : last + 1]].max())
        for row in order[:at][::-1].tolist():
            if phase[row] not in (Phase.FORWARD, Phase.UNKNOWN) or (free[row] and not _same_logits(size[row], largest)):
                break
            if free[row]:
                lines.setdefault(int(allocations.stack[row]), set()).add(int(size[row]))
        for row in order[last + 1 :].tolist():
            if phase[row] != Phase.BACKWARD or (free[row] and not _same_logits(size[row], largest)):
                break
            gradients[row] = free[row]
    for stack, sizes in lines.items():
        done.give((allocations.stack == stack) & np.isin(size, list(sizes)), Category.LOGITS, Sure.HIGH)
    done.give(gradients, Category.LOGITS, Sure.MEDIUM)


def _same_logits(size: int, largest: int) -> bool:
    return any(abs(size - times * largest) <= SAME_LOGITS * largest * times for times in (0.5, 1, 2))


def _give_attention_scores(done: _Assignment, allocations: Allocations, phase: Ints, stacks: Stacks) -> None:
    """Mark scores of length x length: plain code of attention makes them, and no layer has outputs of their size.

    Code that no name tells apart counts where it makes many of one size that is larger than any layer's outputs.
    """
    size = allocations.requested
    layers = np.array([stack.module not in _NO_LAYERS for stack in stacks.all])[allocations.stack]
    named = np.array([stack.attention and stack.module in _NO_LAYERS for stack in stacks.all])[allocations.stack]
    softmax = np.array([stack.softmax for stack in stacks.all])[allocations.stack]
    forward = (phase == Phase.FORWARD) & (allocations.start >= 0) & (size >= LEAST_SCORES)
    outputs = np.unique(size[forward & layers])
    plain = forward & ~layers & ~np.isin(size, outputs) & done.free
    # Half and twice the size of an output is its copy in another precision.
    copies = np.isin(size, np.concatenate([outputs // 2, outputs * 2]))
    scores = plain & ((named & ~copies) | softmax)
    largest = int(outputs.max(initial=0))
    if largest:
        scores |= plain & np.isin(size, _made_often(allocations, plain & (size > largest), stacks))
    # What the same function makes of the same size belongs to the scores too: masked, scaled or dropped ones.
    function = _numbered([stack.function for stack in stacks.all])[allocations.stack]
    key = function * (int(size.max(initial=0)) + 1) + size
    scores = plain & np.isin(key, key[scores])
    done.give(scores, Category.ATTENTION_SCORES, Sure.HIGH)
    backward = (phase == Phase.BACKWARD) & (size >= LEAST_SCORES) & np.isin(size, size[scores])
    done.give(backward & ~np.isin(size, outputs), Category.ATTENTION_SCORES, Sure.MEDIUM)


_NO_LAYERS = frozenset({"", "softmax", "dropout", "scaled_dot_product_attention", "multi_head_attention_forward"})
"""Modules and functions of `torch.nn` whose results are no layer's outputs."""


def _made_often(allocations: Allocations, which: Bools, stacks: Stacks) -> list[int]:
    """Return the sizes that one function made at least `MANY_SCORES` times between two allocations of a loss."""
    ends = np.sort(allocations.start[np.array([stack.phase is Phase.LOSS for stack in stacks.all])[allocations.stack]])
    rows = np.flatnonzero(which)
    found: Counter[tuple[int, int, str]] = Counter()
    for row, run in zip(rows.tolist(), np.searchsorted(ends, allocations.start[rows]).tolist(), strict=True):
        found[int(allocations.requested[row]), run, stacks[int(allocations.stack[row])].function] += 1
    return [size for (size, _, _), times in found.items() if times >= MANY_SCORES]


def _numbered(names: list[str]) -> Ints:
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([numbers[name] for name in names], np.int64)


def _give_inputs(
    done: _Assignment, allocations: Allocations, phase: Ints, timeline: _PhaseTimeline, stacks: Stacks
) -> None:
    """Mark what is made outside the model, is alive when a forward pass runs, and goes."""
    named = np.array([stack.inputs for stack in stacks.all])[allocations.stack]
    done.give(named & (phase == Phase.UNKNOWN), Category.INPUTS, Sure.HIGH)
    outside = (phase == Phase.UNKNOWN) & (allocations.stack > 0) & (allocations.start >= 0)
    goes = allocations.end < timeline.count
    used = allocations.end > timeline.next_of(allocations.start, Phase.FORWARD)
    done.give(outside & goes & used, Category.INPUTS, Sure.MEDIUM)


def _give_older(done: _Assignment, allocations: Allocations, count: int, stacks: Stacks) -> None:
    """Mark what is older than the history, has no stack and stays; of Adam's training two of three are its state."""
    older = (allocations.start < 0) & (allocations.end == count) & (allocations.stack == 0) & done.free
    _give_older_gradients(done, allocations, np.flatnonzero(older))
    older &= done.free
    if not count:
        return
    made_here = ((done.category == Category.OPTIMIZER_STATE) & (allocations.start >= 0)).any()
    adam = any(stack.phase is Phase.OPTIMIZER and "adam" in " ".join(stack.frames).lower() for stack in stacks.all)
    if adam and not made_here and older.any():
        _give_older_of_adam(done, allocations.requested, np.flatnonzero(older))
    done.give(older, Category.PARAMETERS, Sure.LOW)


def _give_older_gradients(done: _Assignment, allocations: Allocations, older: Ints) -> None:
    """Mark what has the sizes of parameters whose stacks are known: of a recorded training only backward has none."""
    size = allocations.requested
    left = Counter(size[(done.category == Category.PARAMETERS) & (allocations.stack > 0)].tolist())
    gradients = np.zeros(len(size), np.bool_)
    for row in older.tolist():
        left[int(size[row])] -= 1
        gradients[row] = left[int(size[row])] >= 0
    done.give(gradients, Category.GRADIENTS, Sure.LOW)


def _give_older_of_adam(done: _Assignment, size: Ints, older: Ints) -> None:
    """Split tensors of one size: a third are parameters, two thirds their state; fewer may be a workspace."""
    state, workspace = np.zeros(len(size), np.bool_), np.zeros(len(size), np.bool_)
    rows = older[np.argsort(size[older], kind="stable")]
    for group in np.split(rows, np.flatnonzero(np.diff(size[rows])) + 1):
        own = len(group) // (1 + ADAM_STATES)
        state[group[own : own * (1 + ADAM_STATES)]] = True
        workspace[group] = len(group) <= ADAM_STATES and int(size[group[0]]) in WORKSPACES
    done.give(state, Category.OPTIMIZER_STATE, Sure.LOW)
    done.give(workspace, Category.WORKSPACE, Sure.LOW)


class _PhaseTimeline:
    """Finds the next allocation of a phase after a given one."""

    def __init__(self, phase: Ints, start: Ints, count: int) -> None:
        self.count = count
        order = np.argsort(start, kind="stable")
        order = order[start[order] >= 0]
        self.start, self.phase = start[order], phase[order]

    def _moments(self, phase: Phase) -> Ints:
        return np.asarray(self.start[self.phase == phase])

    def next_of(self, after: Ints, phase: Phase) -> Ints:
        """Return the event of the next allocation in this phase, or the number of events if none comes."""
        moments = np.append(self._moments(phase), self.count)
        return np.asarray(moments[np.minimum(np.searchsorted(moments, after, side="right"), len(moments) - 1)])

    def end_of_backward(self, after: Ints) -> Ints:
        """Return the last allocation of the stretch of backward that each of these moments lies in."""
        backward = self.phase == Phase.BACKWARD
        if not backward.any():
            return np.full(len(after), self.count, np.int64)
        # Unknown phases (data loading in another thread) do not end backward.
        ends = self.start[
            (self.phase == Phase.FORWARD) | (self.phase == Phase.OPTIMIZER) | (self.phase == Phase.OPTIMIZER_STATE)
        ]
        moments = self.start[backward]
        next_other = np.append(ends, self.count)[np.searchsorted(ends, after, side="right")]
        return np.asarray(moments[np.maximum(np.searchsorted(moments, next_other, side="left") - 1, 0)])

    def forward_between(self, after: Ints, before: Ints) -> Ints:
        """Return how many allocations of the forward pass lie between."""
        moments = self._moments(Phase.FORWARD)
        return np.asarray(np.searchsorted(moments, before) - np.searchsorted(moments, after, side="right"))
