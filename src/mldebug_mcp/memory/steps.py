"""Where the steps of a training loop begin in a history.

From annotations of the program, else from the optimizer's steps, else from what repeats, else from backward.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from mldebug_mcp.memory.tables import Action, Annotation, Bools, Events, Ints, Phase, Stack, Stacks

LEAST_STEPS = 3
REGULAR = 0.3
"""Largest relative spread of the distances between repetitions. Chosen on simulated loops: calls once per step vary by
less, calls once per layer by far more, because they stop between forward passes."""
SPAN = 0.5
"""Of the history that the calls must span: building a model repeats too, but only at its beginning."""
FREED = 0.8
"""Of the allocations that must be freed in the history: what only piles up tells no step from a loop that fills a
list."""
BURST = 2.0
"""How many times longer the pause between two steps must be than between two calls of one step. Chosen: within a pass
calls of one line follow each other layer by layer, and the rest of the step lies between passes."""
MIN_SHARE_AFTER_STEPS = 0.5
"""Share of the allocations after the last of a training that an evaluation must have made."""
MAX_KEYS = 400
EVALUATION = 2
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
    annotated = _annotated(
        events, [annotation for annotation in annotations if not _OPTIMIZER_NAME.match(annotation.name)]
    )
    if annotated is not None:
        return annotated
    by_optimizer = _by_optimizer(
        events, stacks, [annotation for annotation in annotations if _OPTIMIZER_STEP.match(annotation.name)]
    )
    if by_optimizer is not None:
        return by_optimizer
    repeated, by_backward = _repeated(events, freed, stacks), _by_backward(events, stacks)
    # Each step has a backward pass at least: calls that come more often belong to something within a step.
    if by_backward is not None and (repeated is None or len(repeated) > len(by_backward)):
        return by_backward
    return repeated or Steps(np.empty(0, np.int64), "none found")


def _by_optimizer(events: Events, stacks: Stacks, annotations: Sequence[Annotation]) -> Steps | None:
    """Return the steps that end with a step of the optimizer, by torch's own annotation of it or by its frames."""
    code = _Code(events, stacks)
    if annotations and events.time.any():
        times = sorted(annotation.time for annotation in annotations)
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


def _by_backward(events: Events, stacks: Stacks) -> Steps | None:
    """Return the steps that end with a backward pass, where nothing shows an optimizer."""
    code = _Code(events, stacks)
    ends = code.stretches(code.backward)[1]
    return code.steps_after(ends, "passes of backward") if len(ends) >= LEAST_STEPS else None


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
                if _regular(starts, clock) and (rank == EVALUATION or _mostly_with(starts, trained))
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
    return [(name, moments) for name, moments in rarest if is_freed[moments].mean() >= FREED]


def _rank(who: Stack) -> int:
    return EVALUATION if who.evaluation else 0 if who.phase is Phase.OPTIMIZER else 1


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
    training = [(np.cumsum(allocations & ~evaluation), EVALUATION - 1)] if evaluation.any() else []
    return [*training, (np.cumsum(allocations), EVALUATION)]


def _singly(moments: Ints, _clock: Ints) -> Ints:
    return moments


def _in_bursts(moments: Ints, clock: Ints) -> Ints:
    """Return the first moment of each burst: where the pauses before differ most in length from those within."""
    gaps = np.diff(clock[moments])
    lengths = np.unique(gaps[gaps > 0])
    ratios = lengths[1:] / lengths[:-1]
    if not len(ratios) or ratios.max() < BURST:
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
    return bool(gaps.std() <= REGULAR * gaps.mean() and gaps.sum() >= SPAN * int(clock[-1]))
