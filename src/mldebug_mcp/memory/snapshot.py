"""What the memory symptoms judge: the numbers of each device and, where it was recorded, its history and steps."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np

from mldebug_mcp.core.limits import checkpoint
from mldebug_mcp.memory.categories import Categories, Category, Sure, categorise
from mldebug_mcp.memory.replay import Allocations, FreeMemory, Replay, free_at, free_at_end, held_over_time, replay
from mldebug_mcp.memory.tables import (
    Action,
    Annotation,
    Bools,
    DeviceTables,
    Events,
    Ints,
    Phase,
    SnapshotTables,
    Stack,
    Stacks,
    bytes_of,
)

# Where the steps of a training loop begin in a history: from annotations of the program, else from the optimizer's
# steps, else from what repeats, else from backward.


LEAST_STEPS = 3
"""Marks of steps from which on they divide the history. Chosen: two have a single distance."""
MAX_GAP_SPREAD_RATIO = 0.3
"""Largest relative spread of the distances between repetitions. Chosen on simulated loops: calls once per step vary by
less, calls once per layer by far more, because they stop between forward passes."""
MIN_HISTORY_SPAN_SHARE = 0.5
"""Of the history that the calls must span: building a model repeats too, but only at its beginning."""
MIN_FREED_SHARE = 0.8
"""Of the allocations that must be freed in the history: what only piles up tells no step from a loop that fills a
list."""
MIN_PAUSE_RATIO = 2.0
"""How many times longer the pause between two steps must be than between two calls of one step. Chosen: within a pass
calls of one line follow each other layer by layer, and the rest of the step lies between passes."""
MIN_SHARE_AFTER_STEPS = 0.5
"""Share of the allocations after the last of a training that an evaluation must have made."""
MAX_KEYS = 400
EVALUATION_RANK = 2
"""The rank of calls of an evaluation; those of the optimizer have 0, all others 1."""
_STEP_NAME = re.compile(
    r"ProfilerStep|optimizer\.step|train\w*[ _.]?step|(?:^|[^a-z])(?:step|iteration|iter|batch)(?:[^a-z]|$)",
    re.IGNORECASE,
)
_OPTIMIZER_NAME = re.compile(r"Optimizer\.\w+#")
_OPTIMIZER_STEP = re.compile(r"Optimizer\.step#")
"""What torch annotates in each optimizer: `Optimizer.step#AdamW.step`, `Optimizer.zero_grad#AdamW.zero_grad`."""
FRAMES_RECORDED = 0.2
"""Share of the allocations with frames above which one without belongs to backward, as in `categories`."""
_PASS = re.compile(
    r":(?:_call_impl|_wrapped_call_impl|\w*forward|backward|_engine_run_backward)$|torch::autograd::Engine"
)
"""Functions that pass through a model: a loop inside one goes over layers, and not over batches."""
_GENERATION = re.compile(r":_?(?:generat\w*|\w*sampl(?:e|ing)(?:_loop)?|greedy_search|beam_search|decode|translate)$")
"""Functions that write a sequence: a loop inside one goes over tokens or denoising steps, whose caches grow."""
_TRAINING = (Phase.BACKWARD, Phase.OPTIMIZER, Phase.OPTIMIZER_STATE)
LEAST_WITH_BACKWARD = 0.5
"""Share of the steps of a training that must hold something of backward or the optimizer. Chosen: a loop without any
goes over time steps of an unrolled network or over rollouts; a step that is found in the wrong place still has its
neighbours'."""
_MAKING = re.compile(
    r":(?:__init__|from_pretrained|_apply|fully_shard|\w*load\w*|quantize\w*|\w*get_peft_model\w*)$"
    r"|:(?:build|create|init)_?\w*model\w*$"
    r"|/optim/.*:(?:\w*step\w*|_init_group|_?(?:multi|single)_tensor_\w+)$"
)
"""Functions that make, load or change a model: a loop inside one goes over layers or parameters. Programs may run whole
trainings inside them too (LightningCLI inside `__init__`, Lightning inside the optimizer's `step`)."""


@dataclass(frozen=True, slots=True)
class Steps:
    """The index of the event with which each step of a history begins, if any, and what the steps were found by."""

    starts: Ints
    how: str

    def __len__(self) -> int:
        return len(self.starts)

    def of(self, moments: Ints) -> Ints:
        """Return which step each moment lies in; -1 before the first."""
        return np.searchsorted(self.starts, moments, side="right") - 1


def find_steps(events: Events, freed: Ints, stacks: Stacks, annotations: Sequence[Annotation]) -> Steps:
    """Return the steps of a device's history; `freed` are the events that made what was freed later."""
    own = [annotation for annotation in annotations if not _OPTIMIZER_NAME.match(annotation.name)]
    if (annotated := _annotated(events, own)) is not None:
        return annotated
    code = _Code(events, stacks)
    times = sorted(annotation.time for annotation in annotations if _OPTIMIZER_STEP.match(annotation.name))
    if (by_optimizer := _by_optimizer(events, code, times)) is not None:
        return by_optimizer
    # Each step has a backward pass at least: calls that come more often belong to something within a step.
    passes = code.stretches(code.backward)[1]
    by_backward = code.steps_after(passes, "passes of backward") if len(passes) >= LEAST_STEPS else None
    repeated = _repeated(events, freed, stacks)
    if by_backward is not None and (repeated is None or len(repeated) > len(by_backward)):
        return by_backward
    return repeated or Steps(np.empty(0, np.int64), "none found")


def _by_optimizer(events: Events, code: _Code, times: Sequence[int]) -> Steps | None:
    """Return the steps that end with a step of the optimizer: at the times that torch annotates, or by its frames."""
    if times and events.time.any():
        ends = [int(place) for place in np.searchsorted(events.time, times) if 0 < place < len(events)]
        how = "steps of the optimizer, as torch annotates them"
    else:
        ends = code.stretches(code.optimizer)[0]
        how = "frames of the optimizer"
        if len(ends) < LEAST_STEPS:
            return None
    ends = _of_one_line(ends, code)
    return code.steps_after(ends, how) if ends else None


def _of_one_line(ends: list[int], code: _Code) -> list[int]:
    """Return the steps of one optimizer, where several take turns: of those that step most often, the last."""
    lines = [code.optimizer_line(end, following) for end, following in pairwise([*ends, len(code.phase)])]
    counts = Counter(line for line in lines if line)
    if len(counts) < 2 or sum(counts.values()) < len(ends):
        return ends
    most = max(counts.values())
    chosen = next(line for line in reversed(lines) if counts[line] == most)
    return [end for end, line in zip(ends, lines, strict=True) if line == chosen]


class _Code:
    """What the program was doing at each event that allocates."""

    def __init__(self, events: Events, stacks: Stacks) -> None:
        phase = np.array([stack.phase for stack in stacks.all], np.int64)
        aside = np.array([stack.evaluation or stack.recomputes for stack in stacks.all])
        allocates = events.action == Action.ALLOC
        self.stacks, self.stack = stacks, events.stack
        self.phase = np.where(allocates, phase[events.stack], Phase.UNKNOWN)
        recorded = allocates & (events.stack > 0)
        has_frames = allocates.any() and recorded.sum() > FRAMES_RECORDED * allocates.sum()
        unframed = allocates & (events.stack == 0) & bool(has_frames)
        self.optimizer = np.isin(self.phase, (Phase.OPTIMIZER, Phase.OPTIMIZER_STATE))
        self.backward = (self.phase == Phase.BACKWARD) | unframed
        self.forward = np.isin(self.phase, (Phase.FORWARD, Phase.LOSS)) & ~aside[events.stack]

    def stretches(self, which: Bools) -> tuple[list[int], list[int]]:
        """Return the first and the last event of each stretch of these events that no forward pass interrupts."""
        moments, forward = np.flatnonzero(which), np.flatnonzero(self.forward)
        if not len(moments):
            return [], []
        parts = np.diff(np.searchsorted(forward, moments)) > 0
        return moments[np.append(True, parts)].tolist(), moments[np.append(parts, True)].tolist()

    def optimizer_line(self, first: int, end: int) -> str:
        """Return the line that calls the optimizer between two events; "" where the optimizer allocates nothing."""
        span = slice(first, end)
        at = np.flatnonzero(self.optimizer[span])
        return self.stacks[int(self.stack[span][at[0]])].site if len(at) else ""

    def steps_after(self, ends: Sequence[int], how: str) -> Steps | None:
        """Return the steps that begin with the first forward pass after each of these moments, and the one before."""
        forward = np.flatnonzero(self.forward)
        optimizer = np.flatnonzero(self.optimizer)
        if not len(forward):
            return None
        found = [int(forward[0])] if forward[0] < ends[0] else [0]
        for end, following in pairwise([*ends, len(self.phase)]):
            # What the optimizer allocates comes after its step begins.
            within = optimizer[(optimizer >= end) & (optimizer < following)]
            after = int(np.searchsorted(forward, int(within[-1]) if len(within) else end, side="right"))
            if after < len(forward):
                found.append(int(forward[after]))
        return Steps(np.unique(np.array(found, np.int64)), how)


def find_evaluation(events: Events, freed: Ints, stacks: Stacks) -> Steps | None:
    """Return the batches of an evaluation with which a history ends, after the last of a training; None without one.

    Takes what `find_steps` takes. The steps of the training say nothing of what happens within the last of them.
    """
    trained = _trained(events, stacks)
    if trained is None or not len(trained):
        return None
    begin = int(trained[-1]) + 1
    rest = events.since(begin)
    evaluation = np.array([stack.evaluation for stack in stacks.all])[rest.stack]
    made = rest.action == Action.ALLOC
    if not made.any() or evaluation[made].mean() <= MIN_SHARE_AFTER_STEPS:
        return None
    found = _repeated(rest, freed[freed >= begin] - begin, stacks)
    return None if found is None else Steps(found.starts + begin, "batches of an evaluation")


def _annotated(events: Events, annotations: Sequence[Annotation]) -> Steps | None:
    groups: dict[str, list[int]] = {}
    for annotation in annotations:
        name = re.sub(r"[\d#]+", "", annotation.name).strip()
        if _STEP_NAME.search(annotation.name):
            groups.setdefault(name, []).append(annotation.time)
    usable = {name: sorted(times) for name, times in groups.items() if len(times) >= LEAST_STEPS}
    if not usable or not len(events) or not events.time.any():
        return None
    name = next(
        (text for text in usable if text.startswith("ProfilerStep")), min(usable, key=lambda text: len(usable[text]))
    )
    starts = np.unique(np.searchsorted(events.time, usable[name]))
    starts = starts[starts < len(events)]
    return Steps(starts, f"annotations {name!r}") if len(starts) >= LEAST_STEPS else None


def _repeated(events: Events, freed: Ints, stacks: Stacks) -> Steps | None:
    """Find calls that come once per step, or in one burst per step: those that repeat at regular distances.

    The rarest count. Calls of the optimizer come first; those of an evaluation only where nothing else repeats. What
    repeats within one forward pass, or while a model is built or loaded, goes over layers and is not a step.
    """
    at = np.flatnonzero(events.action == Action.ALLOC)
    if len(at) < LEAST_STEPS:
        return None
    stack = events.stack[at]
    by_stack = bool((stack > 0).mean() > 0.2)
    key = stack if by_stack else events.size[at]
    if by_stack:
        at, key = at[key > 0], key[key > 0]
    is_freed = np.zeros(len(events), np.bool_)
    is_freed[freed[freed >= 0]] = True
    groups = _freed_groups(at, key, is_freed)

    def is_loop_over_steps(starts: Ints) -> bool:
        if not by_stack:
            return not _mostly_kept(starts, events, is_freed)
        return not _inside_one_call(starts, events, stacks)

    trained = _trained(events, stacks) if by_stack else None

    ranks = [_rank(stacks[name]) if by_stack else 1 for name, _ in groups]
    for clock, worst in _clocks(events, stacks):
        usable = [(rank, moments) for rank, (_, moments) in zip(ranks, groups, strict=True) if rank <= worst]
        for split in (_singly, _in_bursts):
            repeated = [(rank, split(moments, clock)) for rank, moments in usable]
            regular = [
                (rank, starts)
                for rank, starts in repeated
                if _regular(starts, clock) and (rank == EVALUATION_RANK or _mostly_with(starts, trained))
            ]
            found = _best(regular, is_loop_over_steps)
            if found is not None:
                return Steps(found, f"{'calls' if by_stack else 'sizes'} that repeat once per step")
    return None


def _freed_groups(at: Ints, key: Ints, is_freed: Bools) -> list[tuple[int, Ints]]:
    """Return each key with the moments of its allocations, rarest first: those that come often and are mostly freed."""
    names, counts = np.unique(key, return_counts=True)
    groups = np.split(at[np.argsort(key, kind="stable")], np.cumsum(counts)[:-1])
    often = [
        (name, moments) for name, moments in zip(names.tolist(), groups, strict=True) if len(moments) >= LEAST_STEPS
    ]
    rarest = sorted(often, key=lambda group: len(group[1]))[:MAX_KEYS]
    return [(name, moments) for name, moments in rarest if is_freed[moments].mean() >= MIN_FREED_SHARE]


def _rank(who: Stack) -> int:
    return EVALUATION_RANK if who.evaluation else 0 if who.phase is Phase.OPTIMIZER else 1


def _best(regular: list[tuple[int, Ints]], accept: Callable[[Ints], bool]) -> Ints | None:
    """Return the rarest of the best rank that is accepted; of those that come as often, the earliest.

    It marks the beginning of the step best. What is accepted is costly to ask, and of what spans less never true where
    it is false of what spans more.
    """
    if not regular:
        return None
    spans = np.array([(starts[0], starts[-1]) for _, starts in regular])
    if not accept(np.array([spans[:, 0].min(), spans[:, 1].max()])):
        return None
    ordered = sorted(regular, key=lambda candidate: (candidate[0], len(candidate[1]), int(candidate[1][0])))
    best = next((candidate for candidate in ordered if accept(candidate[1])), None)
    if best is None:
        return None
    rank, count = best[0], len(best[1])
    alike = (starts for place, starts in regular if len(starts) == count and place <= max(rank, 1))
    return next(starts for starts in sorted(alike, key=lambda array: int(array[0])) if accept(starts))


def _clocks(events: Events, stacks: Stacks) -> list[tuple[Ints, int]]:
    """Return how many allocations came before each event, and the worst rank of a call that may be measured by it.

    First without those of evaluations, by which steps are as far apart across an evaluation as elsewhere.
    """
    allocations = events.action == Action.ALLOC
    evaluation = np.array([stack.evaluation for stack in stacks.all])[events.stack]
    training = [(np.cumsum(allocations & ~evaluation), EVALUATION_RANK - 1)] if evaluation.any() else []
    return [*training, (np.cumsum(allocations), EVALUATION_RANK)]


def _singly(moments: Ints, _clock: Ints) -> Ints:
    return moments


def _in_bursts(moments: Ints, clock: Ints) -> Ints:
    """Return the first moment of each burst: where the pauses before differ most in length from those within."""
    gaps = np.diff(clock[moments])
    lengths = np.unique(gaps[gaps > 0])
    ratios = lengths[1:] / lengths[:-1]
    if not len(ratios) or ratios.max() < MIN_PAUSE_RATIO:
        return moments
    return moments[np.concatenate(([True], gaps > lengths[int(ratios.argmax())]))]


def _trained(events: Events, stacks: Stacks) -> Ints | None:
    """Return the moments at which backward or the optimizer allocates; None where the snapshot shows no training.

    Backward on a GPU runs in a thread without Python frames.
    """
    training = np.array([stack.phase in _TRAINING for stack in stacks.all])
    if not training.any():
        return None
    return np.flatnonzero((events.action == Action.ALLOC) & (training[events.stack] | (events.stack == 0)))


def _mostly_with(starts: Ints, moments: Ints | None) -> bool:
    """Tell whether most steps hold one of these moments; true where there is nothing to hold."""
    if moments is None:
        return True
    before = np.searchsorted(moments, starts)
    return bool((np.diff(before) > 0).mean() >= LEAST_WITH_BACKWARD)


def _inside_one_call(starts: Ints, events: Events, stacks: Stacks) -> bool:
    """Tell whether all that is allocated between these moments comes from one pass through a model, or its making."""
    between = slice(int(starts[0]), int(starts[-1]))
    mine = np.flatnonzero(np.bincount(events.stack[between][events.action[between] == Action.ALLOC])).tolist()
    shared = stacks.shared(mine)
    if any(_PASS.search(function) or _GENERATION.search(function) for function in shared):
        return True
    runs = any(stacks[number].phase in (Phase.FORWARD, Phase.LOSS) for number in mine)
    return not runs and any(_MAKING.search(function) for function in shared)


def _mostly_kept(starts: Ints, events: Events, is_freed: Bools) -> bool:
    """Tell whether most of what is allocated between these moments stays, as in one forward pass and in no whole step.

    Where no stacks are recorded this alone tells layers from steps.
    """
    between = np.arange(int(starts[0]), int(starts[-1]))
    mine = between[events.action[between] == Action.ALLOC]
    return bool(events.size[mine[~is_freed[mine]]].sum() > events.size[mine].sum() / 2)


def _regular(moments: Ints, clock: Ints) -> bool:
    if len(moments) < LEAST_STEPS or np.diff(moments).mean() < 4:
        return False
    gaps = np.diff(clock[moments]).astype(float)
    return bool(
        gaps.std() <= MAX_GAP_SPREAD_RATIO * gaps.mean() and gaps.sum() >= MIN_HISTORY_SPAN_SHARE * int(clock[-1])
    )


@dataclass(frozen=True, slots=True)
class OutOfMemoryEvent:
    """An allocation that failed. Bytes throughout.

    Args:
        requested: What was asked for.
        device_free: What the device still had.
        allocated: What tensors held.
        reserved: What the allocator held.
        free: Free memory inside what was reserved, in the pool that the request comes from; pieces unknown from text.
        stack: Who asked.
        count: How many allocations failed in the history.
        pieces_known: Whether `free` knows the largest piece.
        others: What other processes held, if it is given.
        own: What this process held beyond the allocator, as CUDA's context and libraries, if it is given.
        limit: What the process may take of the device, if it is given.
    """

    requested: int
    device_free: int
    allocated: int
    reserved: int
    free: FreeMemory
    stack: Stack | None = None
    count: int = 1
    pieces_known: bool = True
    others: int = 0
    own: int = 0
    limit: int | None = None

    @property
    def limited(self) -> bool:
        """Whether the process may take less than the device has: a limit is given, or the device had enough left.

        Only a history is sure of the latter; with a text another process may have held it for a moment.
        """
        return self.limit is not None or (self.pieces_known and self.device_free >= self.requested > 0)

    @property
    def room(self) -> int:
        """Bytes that the process could still get from the device.

        0 where the device had enough for the request: the process may take only a share of it
        (`set_per_process_memory_fraction`), which the allocator does not record.
        """
        return self.device_free if self.device_free < self.requested else 0

    @property
    def short(self) -> int:
        """Bytes that were missing, at most."""
        return max(0, self.requested - self.room)


class History:
    """A device's history, replayed, with what can be inferred from it."""

    def __init__(self, tables: DeviceTables, snapshot: SnapshotTables) -> None:
        self.tables = tables
        self.without_phases = snapshot.layout.startswith("JAX")
        self.stacks: Stacks = snapshot.stacks
        self.replay: Replay = replay(tables)
        here = [annotation for annotation in snapshot.annotations if annotation.device == tables.device]
        self.steps: Steps = find_steps(tables.events, self._freed, snapshot.stacks, here or snapshot.annotations)

    @property
    def allocations(self) -> Allocations:
        """Every allocation known."""
        return self.replay.allocations

    @property
    def _freed(self) -> Ints:
        """The events that allocated what was freed later."""
        return self.allocations.start[self.allocations.end < len(self.tables.events)]

    @cached_property
    def evaluation(self) -> Steps | None:
        """The batches of an evaluation that the history ends with."""
        return find_evaluation(self.tables.events, self._freed, self.stacks)

    @property
    def events(self) -> int:
        """How many events were recorded."""
        return len(self.tables.events)

    @cached_property
    def _categories(self) -> Categories:
        if self.without_phases:
            count = len(self.allocations)
            return Categories(np.zeros(count, np.int8), np.zeros(count, np.int8), np.zeros(count, np.bool_))
        return categorise(self.allocations, self.tables.events, self.stacks)

    @property
    def category(self) -> np.ndarray:
        """Each allocation's `Category`, shape (allocations,)."""
        return self._categories.category

    @property
    def sure(self) -> np.ndarray:
        """Each allocation's `Sure`, shape (allocations,)."""
        return self._categories.sure

    @property
    def transient(self) -> Bools:
        """Which allocations a forward pass makes that go before backward could use them, shape (allocations,)."""
        return self._categories.transient

    @cached_property
    def failures(self) -> Ints:
        """The events at which an allocation failed."""
        return np.flatnonzero(self.tables.events.action == Action.OOM)

    @cached_property
    def moment(self) -> int:
        """The moment to look at: when the last allocation failed, else when most was allocated."""
        return int(self.failures[-1]) if len(self.failures) else self.replay.peak_moment

    @cached_property
    def held(self) -> Bools:
        """Which allocations were held at that moment."""
        return self.allocations.alive(self.moment)

    def bytes_by_category(self, which: Bools) -> dict[Category, int]:
        """Return the bytes of these allocations by category, without the empty ones."""
        totals = np.bincount(self.category[which], self.allocations.size[which], len(Category)).astype(np.int64)
        return {Category(number): int(total) for number, total in enumerate(totals) if total}

    def surest(self, which: Bools, category: Category) -> Sure:
        """Return how sure the category is for most of the bytes of these allocations."""
        mine = which & (self.category == category)
        totals = np.bincount(self.sure[mine], self.allocations.size[mine], len(Sure))
        return Sure(int(totals.argmax()))

    @property
    def frames_recorded(self) -> bool:
        """Whether stacks were recorded."""
        return len(self.stacks) > 1


@dataclass(slots=True)
class DeviceMemory:
    """One device in numbers, from a snapshot or a text. Bytes throughout.

    Args:
        device: Its number.
        allocated: What tensors hold.
        reserved: What the allocator holds.
        requested: What was asked for, without rounding; 0 if unknown.
        peak_allocated: The most that tensors held, as far as the history or the statistics go.
        peak_reserved: The most that the allocator held.
        free: Free memory inside what is reserved.
        capacity: The device's memory, if it is given.
        oom: The last allocation that failed.
        history: The recorded history; None if there is none.
        blocks: The blocks of the snapshot, without a history.
        segments: Segments held.
        expandable: Whether the segments are expandable.
        stated: Bytes by category at the peak, where a file tells them and no allocations.
    """

    device: int
    allocated: int = 0
    reserved: int = 0
    requested: int = 0
    peak_allocated: int = 0
    peak_reserved: int = 0
    free: FreeMemory = field(default_factory=FreeMemory)
    capacity: int | None = None
    oom: OutOfMemoryEvent | None = None
    history: History | None = None
    blocks: History | None = None
    segments: int = 0
    expandable: bool = False
    stated: Mapping[Category, int] = field(default_factory=dict)

    @property
    def known_peaks(self) -> tuple[int | None, int | None]:
        """What tensors and the allocator held at most; None where there is neither a history nor a text with them."""
        if self.blocks is not None or not (self.peak_allocated or self.peak_reserved):
            return None, None
        return self.peak_allocated, self.peak_reserved

    @property
    def view(self) -> History | None:
        """What is known about single allocations: the history, or the blocks at the end."""
        return self.history or self.blocks


@dataclass(slots=True)
class MemorySnapshot:
    """A snapshot, or what a text says, ready to be judged."""

    path: str
    layout: str
    devices: list[DeviceMemory]
    notes: list[str] = field(default_factory=list)

    @property
    def recorded(self) -> list[DeviceMemory]:
        """The devices with a history."""
        return [device for device in self.devices if device.history is not None]

    @property
    def from_text(self) -> bool:
        """Whether it was read from text or a timeline, which know totals only."""
        return self.layout.startswith(("text", "memory timeline"))

    @property
    def of_one_moment(self) -> bool:
        """Whether it holds by its kind what was alive at one moment, without a history."""
        return self.layout.startswith("JAX")


def snapshot_of(tables: SnapshotTables) -> MemorySnapshot:
    """Return the snapshot that these tables describe."""
    result = MemorySnapshot(tables.path, tables.layout, [], tables.notes)
    for device in tables.devices:
        checkpoint(f"device {device.device}: following {len(device.events):,} events")
        result.devices.append(_device(device, tables))
        view = result.devices[-1].view
        if view is not None and view.replay.unmatched:
            result.notes.append(
                f"device {device.device}: {view.replay.unmatched:,} allocation(s) of the history are neither "
                "freed in it nor among the blocks at the end; they count as held"
            )
    return result


def _device(device: DeviceTables, tables: SnapshotTables) -> DeviceMemory:
    history = History(device, tables)
    live = device.blocks.live
    allocated = int(device.blocks.size[live].sum())
    recorded = _is_history(device)
    oom = _last_failure(history) if recorded else None
    return DeviceMemory(
        device=device.device,
        allocated=allocated,
        reserved=int(device.segments.size.sum()),
        requested=int(device.blocks.requested[live].sum()),
        peak_allocated=max(history.replay.peak, allocated),
        peak_reserved=int(history.replay.reserved.max()),
        free=free_at_end(device),
        capacity=oom.reserved + oom.room if oom else None,
        oom=oom,
        history=history if recorded else None,
        blocks=None if recorded else history,
        segments=len(device.segments.size),
        expandable=bool(device.segments.expandable.any()),
    )


def _is_history(device: DeviceTables) -> bool:
    """Say whether events were recorded: `_record_memory_history("state")` keeps one alone, the last."""
    return int((device.events.action != Action.SNAPSHOT).sum()) > 1


def _last_failure(history: History) -> OutOfMemoryEvent | None:
    if not len(history.failures):
        return None
    events, moment = history.tables.events, int(history.failures[-1])
    request = int(events.size[moment])
    return OutOfMemoryEvent(
        requested=request,
        device_free=max(0, int(events.address[moment])),
        allocated=int(history.replay.allocated[moment + 1]),
        reserved=int(history.replay.reserved[moment + 1]),
        free=free_at(history.tables, history.allocations, moment, request),
        stack=history.stacks[int(events.stack[moment])],
        count=len(history.failures),
    )


# A device's history as stacked curves of few points, and allocations that survive step after step.


ORDER = (
    Category.PARAMETERS,
    Category.OPTIMIZER_STATE,
    Category.GRADIENTS,
    Category.COLLECTIVE,
    Category.WORKSPACE,
    Category.INPUTS,
    Category.ACTIVATIONS,
    Category.ATTENTION_SCORES,
    Category.LOGITS,
    Category.OPTIMIZER_TEMPORARY,
    Category.TEMPORARY,
    Category.UNKNOWN,
)
"""From the bottom: what stays first, so that the floor of the picture is what does not change."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Memory over time. All curves have shape (points,); bytes.

    `held` are the bytes of each category, in the order in which they are stacked. Moments, peak, failures and steps are
    indices of events.
    """

    device: int
    moments: Ints
    held: Mapping[Category, Ints]
    reserved: Ints
    peak: int
    peak_bytes: int
    failures: Ints
    steps: Ints
    events: int


def timeline_of(device: DeviceMemory, points: int = 800) -> Timeline | None:
    """Return a device's timeline, or None without a history.

    Of the events that fall on one point, the one with most allocated stands for all, so that a peak of one event is
    seen.
    """
    history = device.history
    if history is None:
        return None
    allocated, count = history.replay.allocated, history.events
    edges = np.unique(np.linspace(0, count + 1, min(points, count + 1) + 1).astype(np.int64))
    at = np.array([a + int(np.argmax(allocated[a:b])) for a, b in pairwise(edges)], np.int64)
    by_category = {
        category: held_over_time(history.allocations, count, mine)[at]
        for category in ORDER
        if (mine := history.category == category).any()
    }
    return Timeline(
        device=device.device,
        moments=at,
        held=by_category,
        reserved=history.replay.reserved[at],
        peak=history.replay.peak_moment,
        peak_bytes=history.replay.peak,
        failures=history.failures,
        steps=history.steps.starts,
        events=count,
    )


MIN_TIMELINE_STEPS = 4
"""Steps in which memory can be seen to grow. Chosen: the first ones allocate what stays."""
LEAST_SHARE = 0.7
"""Of the steps between the first and the last, in which a site must have left something. Chosen: a prefetch or a
buffer that is swapped leaves something in the last steps only, optimizer state in the first only."""
MAX_PERIOD_DIFFERENCE_SHARE = 0.1
"""Relative difference of the distances between copies that are made every so many steps. Chosen: steps are counted."""


@dataclass(frozen=True, slots=True)
class Grower:
    """A call site whose memory grows.

    `per_step` is the median of what is left per step, or the mean where not each step leaves something. `steps` left
    something, `of` so many.
    """

    stack: Stack
    per_step: int
    total: int
    steps: int
    of: int


def growers(history: History, steps: Steps) -> list[Grower]:
    """Return the call sites that leave something from most steps, largest growth first.

    Sites without a stack are distinguished by size.
    """
    if len(steps) < MIN_TIMELINE_STEPS:
        return []
    moment = history.events - 1 if not len(history.failures) else int(history.failures[-1])
    allocations = history.allocations
    left = np.flatnonzero(allocations.alive(moment) & (allocations.start >= int(steps.starts[0])))
    key = np.where(allocations.stack[left] > 0, allocations.stack[left], -allocations.size[left])
    found: list[Grower] = []
    order = np.argsort(key, kind="stable")
    for group in np.split(left[order], np.flatnonzero(np.diff(key[order])) + 1):
        if len(group) >= MIN_TIMELINE_STEPS - 1:
            grower = _grower(history, steps, group)
            if grower is not None:
                found.append(grower)
    return sorted(found, key=lambda site: -site.total)


def _grower(history: History, steps: Steps, group: Ints) -> Grower | None:
    allocations = history.allocations
    count = len(steps)
    per_step = np.bincount(steps.of(allocations.start[group]), allocations.size[group], count)
    # Neither the first step (state is created there) nor the last two (still in use) say anything.
    inner = per_step[1 : count - 2] if count >= 6 else per_step[1 : count - 1]
    some = inner > 0
    each_step = (
        len(inner) >= 2 and some.mean() >= LEAST_SHARE and some[: max(1, len(some) // 2)].mean() >= LEAST_SHARE / 2
    )
    if not each_step and not _at_even_distances(per_step):
        return None
    total = int(allocations.size[group].sum())
    # Most of it must have come after the first step: state that is created once and topped up does not count.
    if per_step[0] > total / 2 and count > 3:
        return None
    return Grower(
        stack=history.stacks[int(allocations.stack[group[0]])],
        per_step=int(np.median(inner)) if each_step else int(per_step.mean()),
        total=total,
        steps=int((per_step > 0).sum()),
        of=count,
    )


def _at_even_distances(per_step: Ints) -> bool:
    """Tell whether every so many steps leave something, from the beginning to the end: a copy every second step.

    A ring of the last few copies holds nothing of the first ones.
    """
    at = np.flatnonzero(per_step > 0)
    if len(at) < MIN_TIMELINE_STEPS:
        return False
    gaps = np.diff(at)
    period = int(np.median(gaps))
    even = bool((np.abs(gaps - period) <= max(1, MAX_PERIOD_DIFFERENCE_SHARE * period)).all())
    return even and at[0] <= period and at[-1] >= len(per_step) - 1 - 2 * period


def of_forward(grower: Grower) -> bool:
    """Tell whether a site allocates in a forward pass or in the loss."""
    return grower.stack.phase in (Phase.FORWARD, Phase.LOSS)


# Lines that a script prints with allocated, reserved and free memory → the same numbers as a snapshot's.


_NUMBER = r"(?P<number>\d{1,15}(?:[.,_]\d{1,15}){0,4})\s{0,4}(?P<unit>[KMGTkmgt]i?[Bb]?|[Bb]ytes|B)?(?![\w.])"
_NAMES = (
    (
        "peak_allocated",
        r"(?:max|peak)(?:imum)?[_ ](?:memory[_ ])?allocated|peak memory|allocated_bytes\.all\.peak|peak_bytes_in_use|"
        r"(?-i:Max_MA)",
    ),
    (
        "peak_reserved",
        r"(?:max|peak)(?:imum)?[_ ](?:memory[_ ])?(?:reserved|cached)|reserved_bytes\.all\.peak|(?-i:Max_CA)",
    ),
    (
        "reserved",
        r"(?:memory[_ ])?(?:reserved|cached)(?:[_ ]memory)?|reserved_bytes\.all\.current|driver_allocated_memory|"
        r"(?-i:CA)",
    ),
    (
        "allocated",
        r"(?:memory[_ ])?alloc(?:ated)?(?:[_ ]memory)?|allocated_bytes\.all\.current|bytes_in_use|(?-i:MA)",
    ),
    ("free", r"(?<!largest_)(?:memory[_ ])?free(?:[_ ]memory)?"),
    ("capacity", r"total(?:[_ ](?:memory|capacity))?|capacity"),
    ("limit", r"bytes_limit"),
)
"""A number → the names that PyTorch's, JAX's and DeepSpeed's functions, and those who print them, give it; the longer
name first."""
_BETWEEN = r"[\"'()\[\]\w ]{0,24}?\s{0,4}[:=]\s{0,8}|(?:\(\))?\s{1,8}"
"""What stands between a name and its number: a unit in brackets, a colon, an equals sign."""
_NAMED = r"(?i:(?<![a-z])(?:" + "|".join(f"(?P<{name}>{words})" for name, words in _NAMES) + r"))"
_PRINTED_PAIR = re.compile(
    _NAMED + r"(?:[_ ]?[(\[]?(?P<named_unit>[KMGT]i?B|[MG]i?b|bytes)[)\]]?)?(?:" + _BETWEEN + ")" + _NUMBER
)
_NUMBER_FIRST = re.compile(
    r"(?<![\w.])(?P<number>\d{1,15}(?:[.,_]\d{1,15}){0,4})\s{0,4}(?P<unit>[KMGTkmgt]i?[Bb]|[Bb]ytes)\s{1,4}(?:is |of )?"
    + _NAMED
    + r"(?![a-z_])"
)
"""A number with its unit, then its name: 2.47 GB allocated."""
_LINE_UNIT = re.compile(r"[Mm]em(?:ory)? ?[(\[]([KMGT]i?B)[)\]] ?[|:]")
"""The unit of all numbers of a line, as Megatron writes it: memory (MB) | allocated: 2529.3 | ..."""
_DEVICE = re.compile(r"(?:cuda:|GPU |device |[Rr]ank ?)(\d{1,4})\b")
MIN_BYTES = 2**20
"""A smaller sum is a count of something else: no GPU's memory is below one MiB."""


def printed_numbers(text: str) -> list[DeviceMemory]:
    """Return the last numbers that lines of a text print for each device, in bytes; nothing without "allocated".

    A number without a unit counts as bytes where it is at least one MiB; another one is left out.
    """
    found: dict[int, dict[str, int]] = {}
    device = 0
    for line in text.splitlines():
        if (named := _DEVICE.search(line[:400])) is not None:
            device = int(named[1])
        unit = heading[1] if (heading := _LINE_UNIT.search(line[:400])) is not None else ""
        for pair in _pairs(line[:2_000]):
            size = _bytes(pair["number"], pair["unit"] or pair.groupdict().get("named_unit") or unit)
            if size is not None:
                name = next(name for name, _ in _NAMES if pair[name])
                found.setdefault(device, {})[name] = size
    return [_printed_device(number, sizes) for number, sizes in sorted(found.items()) if _can_be_judged(sizes)]


def _pairs(line: str) -> list[re.Match[str]]:
    """Return the names with their numbers, in the order that pairs more of them."""
    named, numbered = list(_PRINTED_PAIR.finditer(line)), list(_NUMBER_FIRST.finditer(line))
    return numbered if len(numbered) > len(named) else named


def _can_be_judged(sizes: dict[str, int]) -> bool:
    """Return whether there is what PyTorch holds, and something to compare it with."""
    names = sizes.keys()
    return bool(names & {"allocated", "peak_allocated"}) and bool(
        names & {"reserved", "peak_reserved", "free", "limit"}
    )


def _bytes(number: str, unit: str) -> int | None:
    plain = number.replace("_", "")
    # A comma groups digits by three; before fewer or more of them it begins the decimals.
    plain = plain.replace(",", "") if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", plain) else plain.replace(",", ".")
    try:
        value = float(plain)
    except ValueError:
        return None
    if not unit and value < MIN_BYTES:
        return None
    return bytes_of(value, unit)


def _printed_device(number: int, sizes: dict[str, int]) -> DeviceMemory:
    allocated = sizes.get("allocated", sizes.get("peak_allocated", 0))
    reserved = max(sizes.get("reserved", sizes.get("peak_reserved", allocated)), allocated)
    capacity = sizes.get("capacity", sizes.get("limit"))
    unused = reserved - allocated
    return DeviceMemory(
        number,
        allocated=allocated,
        reserved=reserved,
        peak_allocated=max(sizes.get("peak_allocated", 0), allocated),
        peak_reserved=max(sizes.get("peak_reserved", 0), reserved),
        free=FreeMemory(total=unused, split_known=False),
        capacity=capacity,
    )
