"""The verb `check_memory`: read a snapshot, judge it, rank the causes, and say what would save most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from mldebug_mcp.checks import symptoms as symptoms_of
from mldebug_mcp.checks.check import Answer, answer_all
from mldebug_mcp.core.errors import UnknownIdError
from mldebug_mcp.core.text import plain, shorten
from mldebug_mcp.judge.at_a_glance import glance_at_memory
from mldebug_mcp.judge.next_call import after_memory
from mldebug_mcp.judge.ranking import Candidate, Ranked, credence, in_bits, rank, weigh
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.memory.categories import Category, Sure
from mldebug_mcp.memory.read import read_memory
from mldebug_mcp.memory.snapshot import DeviceMemory, History, MemorySnapshot
from mldebug_mcp.memory.tables import Ints
from mldebug_mcp.models import Hypothesis
from mldebug_mcp.models.base import GRAVEST_FIRST, NO_FAULTS
from mldebug_mcp.models.data import (
    CallSite,
    CategoryBytes,
    DeviceSummary,
    Lever,
    MemoryChange,
    MemoryComparison,
    MemoryFinding,
    MemoryReport,
    MemoryTotals,
    OutOfMemoryReport,
    StepMemory,
)
from mldebug_mcp.models.diagnosis import State

MAX_SHOWN_SITES = 10


def compare(snapshot: MemorySnapshot, other: MemorySnapshot) -> MemoryComparison:
    """Return what changed from `other` to `snapshot`, at the peak or the failure of each."""
    before, after = _by_site(other), _by_site(snapshot)
    changes = [
        MemoryChange(
            site=site,
            category=category,
            before_bytes=before[site, category],
            after_bytes=after[site, category],
            change_bytes=after[site, category] - before[site, category],
        )
        for site, category in {**before, **after}
    ]
    categories: Counter[str] = Counter()
    for change in changes:
        categories[change.category] += change.change_bytes
    return MemoryComparison(
        other=other.path,
        allocated_change_bytes=sum(device.allocated for device in snapshot.devices)
        - sum(device.allocated for device in other.devices),
        reserved_change_bytes=sum(device.reserved for device in snapshot.devices)
        - sum(device.reserved for device in other.devices),
        peak_change_bytes=_peak_change(snapshot, other),
        categories={name: change for name, change in categories.most_common() if change},
        sites=sorted(
            (memory_change for memory_change in changes if memory_change.change_bytes),
            key=lambda memory_change: -abs(memory_change.change_bytes),
        )[:MAX_SHOWN_SITES],
    )


def _peak_change(snapshot: MemorySnapshot, other: MemorySnapshot) -> int:
    here, there = (
        _sum(device.known_peaks[0] for device in memory_snapshot.devices) for memory_snapshot in (snapshot, other)
    )
    return here - there if here and there else 0


def _by_site(snapshot: MemorySnapshot) -> Counter[tuple[str, str]]:
    """Return the bytes held by site and category. A site without line numbers joins versions of a file."""
    totals: Counter[tuple[str, str]] = Counter()
    for device in snapshot.devices:
        view = device.view
        if view is None:
            continue
        is_held = view.held
        for stack, category, size in zip(
            view.allocations.stack[is_held].tolist(),
            view.category[is_held].tolist(),
            view.allocations.size[is_held].tolist(),
            strict=True,
        ):
            totals[view.stacks[stack].site, Category(category).label] += size
    return totals


# Each device's part of the answer: totals, categories, steps, and the call sites that hold most.


MAX_STEPS = 200
MAX_FOCUSED_SITES = 20
"""Places of the code that are listed for one category."""
SHOWN_MODULES = 8

_HOW = {
    Category.PARAMETERS: {
        Sure.HIGH: "allocated while the model was built, moved or loaded, and kept",
        Sure.MEDIUM: "copied by copy.deepcopy and kept",
        Sure.LOW: "older than the history and never freed; optimizer state may be among it",
    },
    Category.GRADIENTS: {
        Sure.MEDIUM: "allocated in backward and kept beyond its end",
        Sure.LOW: "older than the history, without a stack as in backward, and in the sizes of the parameters",
    },
    Category.OPTIMIZER_STATE: {
        Sure.HIGH: "allocated by the optimizer and kept beyond the step",
        Sure.LOW: "older than the history; two of three tensors of one size, as Adam keeps them",
    },
    Category.OPTIMIZER_TEMPORARY: {Sure.HIGH: "allocated by the optimizer and freed within the step"},
    Category.ACTIVATIONS: {
        Sure.HIGH: "allocated in the forward pass",
        Sure.MEDIUM: "allocated in the forward pass before the history begins",
    },
    Category.ATTENTION_SCORES: {
        Sure.HIGH: "allocated by attention, of a size that no layer's output has",
        Sure.MEDIUM: "allocated in backward, in the size of attention scores",
    },
    Category.LOGITS: {
        Sure.HIGH: "allocated by the loss, or last in the forward pass before it",
        Sure.MEDIUM: "allocated first in backward, in the size of the logits",
    },
    Category.INPUTS: {
        Sure.HIGH: "allocated by a function that moves batches",
        Sure.MEDIUM: "allocated outside the model, and alive in the forward pass",
    },
    Category.WORKSPACE: {
        Sure.MEDIUM: "kept by cuBLAS since its first product in a thread",
        Sure.LOW: "older than the history, in the size of a workspace of cuBLAS",
    },
    Category.TEMPORARY: {Sure.MEDIUM: "freed before anything could depend on it"},
    Category.COLLECTIVE: {Sure.HIGH: "allocated inside torch.distributed, DDP or NCCL"},
}


def device_summary(device: DeviceMemory) -> DeviceSummary:
    """Return a device's numbers, categories and steps."""
    history, view = device.history, device.view
    moment = history.replay.peak_moment if history else None
    return DeviceSummary(
        device=device.device,
        allocated_bytes=device.allocated,
        reserved_bytes=device.reserved,
        peak_allocated_bytes=device.known_peaks[0] or 0,
        peak_reserved_bytes=device.known_peaks[1] or 0,
        peak_event=moment,
        peak_step=_step_of(history, moment) if history and moment is not None else None,
        capacity_bytes=device.capacity,
        free_split_bytes=device.free.split,
        largest_free_bytes=device.free.largest,
        moment=_moment(device),
        categories=_categories(view) if view else _stated(device),
        steps=_steps(history) if history else [],
        steps_found=len(history.steps) if history else 0,
        steps_from=history.steps.how if history else "",
    )


def _moment(device: DeviceMemory) -> str:
    if device.history is None:
        return "when the snapshot was taken" if device.blocks else "at the peak" if device.stated else ""
    if len(device.history.failures):
        return f"when the allocation failed (event {device.history.moment:,} of {device.history.events:,})"
    return f"at the peak (event {device.history.moment:,} of {device.history.events:,})"


def _step_of(history: History, moment: int) -> int | None:
    step = int(history.steps.of(np.array([moment]))[0]) if len(history.steps) else -1
    return step if step >= 0 else None


def _categories(view: History) -> list[CategoryBytes]:
    totals = view.bytes_by_category(view.held)
    everything = sum(totals.values())
    found = []
    for category, byte_count in sorted(totals.items(), key=lambda item: -item[1]):
        sure = view.surest(view.held, category)
        how = "torch's profiler wrote it" if sure is Sure.CERTAIN else _HOW.get(category, {}).get(sure, "not known")
        found.append(
            CategoryBytes(
                category=category.label,
                bytes=byte_count,
                share=byte_count / everything,
                sure=sure.name.lower(),
                how=how,
                unexplained_share=_unexplained(view, category) / byte_count,
                modules=_modules(view) if category is Category.ACTIVATIONS else {},
            )
        )
    return found


def _stated(device: DeviceMemory) -> list[CategoryBytes]:
    everything = sum(device.stated.values())
    return [
        CategoryBytes(
            category=category.label,
            bytes=byte_count,
            share=byte_count / everything,
            sure=Sure.CERTAIN.name.lower(),
            how="torch's profiler wrote it",
        )
        for category, byte_count in sorted(device.stated.items(), key=lambda item: -item[1])
    ]


def _unexplained(view: History, category: Category) -> int:
    mine = view.held & (view.category == category)
    by_itself = (view.allocations.stack == 0) & (view.sure != Sure.CERTAIN)
    unknown = view.category == Category.UNKNOWN
    return int(view.allocations.size[mine & (by_itself | unknown)].sum())


def _modules(view: History) -> dict[str, int]:
    """Return the bytes of activations by the module of `torch.nn` that made them, the largest first."""
    mine = view.held & (view.category == Category.ACTIVATIONS)
    totals: Counter[str] = Counter()
    for stack, bytes_ in zip(view.allocations.stack[mine].tolist(), view.allocations.size[mine].tolist(), strict=True):
        totals[view.stacks[stack].module or "other"] += bytes_
    return dict(totals.most_common(SHOWN_MODULES))


def _steps(history: History) -> list[StepMemory]:
    starts = history.steps.starts
    if not len(starts):
        return []
    allocated, reserved = history.replay.allocated[1:], history.replay.reserved[1:]
    peaks, most_reserved = np.maximum.reduceat(allocated, starts), np.maximum.reduceat(reserved, starts)
    ends = allocated[np.append(starts[1:], len(allocated)) - 1]
    return [
        StepMemory(
            step=number,
            peak_bytes=int(peaks[number]),
            end_bytes=int(ends[number]),
            reserved_bytes=int(most_reserved[number]),
        )
        for number in np.unique(np.linspace(0, len(starts) - 1, min(len(starts), MAX_STEPS)).astype(int)).tolist()
    ]


def call_sites(snapshot: MemorySnapshot, limit: int, category: Category | None = None) -> list[CallSite]:
    """Return the call sites that hold most at the peak or the failure, over all devices."""
    found = [site for device in snapshot.devices for site in _sites(device, category)]
    return sorted(found, key=lambda call_site: -call_site.bytes)[:limit]


def _sites(device: DeviceMemory, only: Category | None) -> list[CallSite]:
    view = device.view
    if view is None:
        return []
    indices = np.flatnonzero(view.held if only is None else view.held & (view.category == only))
    stack = view.allocations.stack[indices]
    key = stack * len(Category) + view.category[indices]
    order = np.argsort(key, kind="stable")
    groups = np.split(indices[order], np.flatnonzero(np.diff(key[order])) + 1) if len(indices) else []
    return [_site(device.device, view, group) for group in groups]


def _site(device: int, view: History, group: Ints) -> CallSite:
    number = int(view.allocations.stack[group[0]])
    stack, category = view.stacks[number], Category(int(view.category[group[0]]))
    return CallSite(
        id=f"d{device}s{number}.{category.label}",
        site=stack.site,
        caller=stack.caller,
        category=category.label,
        bytes=int(view.allocations.size[group].sum()),
        count=len(group),
        device=device,
        stack=list(stack.frames[:4]),
    )


def focused(snapshot: MemorySnapshot, focus: str) -> list[CallSite]:
    """Return the call sites that a focus names, with whole stacks, sizes and lifetimes.

    Raises:
        UnknownIdError: it names nothing here.
    """
    name = focus.strip().lower()
    if name.upper() in Category.__members__:
        return call_sites(snapshot, MAX_FOCUSED_SITES, Category[name.upper()])
    for device in snapshot.devices:
        view = device.view
        for site in _sites(device, None):
            if view is not None and site.id == name:
                return [_detailed(view, site)]
    categories = ", ".join(category.label for category in Category)
    raise UnknownIdError(
        f"no call site {shorten(focus, 60)!r} in this snapshot; give an id of top_allocations, or a category: "
        f"{categories}"
    )


def _detailed(view: History, site: CallSite) -> CallSite:
    number = int(site.id.partition("s")[2].partition(".")[0])
    allocations = view.allocations
    everything = np.flatnonzero((allocations.stack == number) & (view.category == Category[site.category.upper()]))
    sizes, ended = allocations.size[everything], allocations.end[everything] < view.events
    life = (allocations.end - allocations.start)[everything][ended]
    return site.model_copy(
        update={
            "stack": list(view.stacks[number].frames),
            "details": {
                "allocations_in_all": len(everything),
                "never_freed": int((~ended).sum()),
                "bytes_median": float(np.median(sizes)),
                "bytes_largest": int(sizes.max()),
                "life_in_events_median": float(np.median(life)) if len(life) else float("nan"),
            },
        }
    )


# The usual ways to save memory, and what each would save here: from the bytes that each category holds.


CHECKPOINTED = 32 / 34
"""Share of a layer's activations that full recomputation drops: 34 bytes per token and hidden unit become 2, the
layer's input (Korthikanti et al. 2022, arXiv 2205.05198, equations 1 and 2, without the part that grows with the
square of the length)."""
LOGIT_CHUNKS = 8
"""Pieces in which a fused or chunked loss takes the logits."""
EIGHT_BIT = 3 / 4
"""Two moments of 4 bytes become two of 1 byte (Dettmers et al. 2022, arXiv 2110.02861)."""
MIN_SHOWN_BYTES = 1024 * 1024
"""Bytes that a way to save memory saves at least to be listed."""


def levers(device: DeviceMemory, judged: list[Answer]) -> list[Lever]:
    """Return what would save at least 1 MiB on a device at its peak or failure, best first.

    What is at fault comes first: memory that leaks or lies in pieces is of no use to training, while all else costs
    time, batch size or precision.
    """
    outcomes = [(answer.outcome.id, answer.evidence.allocation) for answer in judged if answer.evidence is not None]
    leaked = max((allocation.bytes for symptom, allocation in outcomes if symptom in _LEAKS), default=0)
    fragmented = any(symptom == "fragmentation" and found.device == device.device for symptom, found in outcomes)
    missing = device.oom.short if device.oom is not None else None
    found = [*_by_settings(device), ("stop_the_leak", leaked, "what earlier steps left behind; see the finding")]
    if device.view is not None:
        found += _by_category(device.view, device.oom.requested if device.oom is not None else 0)
    at_fault = {"stop_the_leak", *(["expandable_segments"] if fragmented else [])}
    return [
        Lever(
            lever=name, saves_bytes=saved, enough=None if missing is None or not missing else saved >= missing, how=how
        )
        for name, saved, how in sorted(found, key=lambda lever: (lever[0] not in at_fault, -lever[1]))
        if saved >= MIN_SHOWN_BYTES
    ]


def _by_category(view: History, request: int) -> list[tuple[str, int, str]]:
    """Return what each lever saves of the bytes that are held, and how; `request` is what a failure asked for."""
    totals: Counter[Category] = Counter(view.bytes_by_category(view.held))
    recomputed = np.array([stack.recomputes for stack in view.stacks.all])[view.allocations.stack]
    kept: Counter[Category] = Counter(view.bytes_by_category(view.held & ~view.transient & ~recomputed))
    for_backward = kept[Category.ACTIVATIONS] + kept[Category.ATTENTION_SCORES]
    activations, logits, scores = (
        totals[category] for category in (Category.ACTIVATIONS, Category.LOGITS, Category.ATTENTION_SCORES)
    )
    parameters, gradients, state = (
        totals[category] for category in (Category.PARAMETERS, Category.GRADIENTS, Category.OPTIMIZER_STATE)
    )
    # What grows with the batch and the length: the request that failed does, too.
    per_token = activations + scores + logits + totals[Category.TEMPORARY] + totals[Category.INPUTS] + request
    return [
        (
            "halve_micro_batch",
            per_token // 2,
            "half of activations, logits and temporary memory; double the accumulation to keep the batch",
        ),
        (
            "halve_sequence_length",
            per_token // 2 + scores // 4,
            "half of the same, and three quarters of attention scores",
        ),
        (
            "fused_attention",
            scores,
            'attn_implementation="sdpa" or FlashAttention, which store no scores of length x length',
        ),
        (
            "activation_checkpointing",
            int(for_backward * CHECKPOINTED),
            "keeps one tensor per layer instead of all; costs one more forward pass",
        ),
        (
            "logits_in_chunks",
            logits - logits // LOGIT_CHUNKS,
            f"a fused or chunked loss holds 1/{LOGIT_CHUNKS} of the logits at a time",
        ),
        (
            "fused_optimizer",
            totals[Category.OPTIMIZER_TEMPORARY],
            "fused=True or foreach=False: the optimizer needs no copy of all parameters at once",
        ),
        (
            "optimizer_in_backward",
            gradients,
            "steps each parameter when its gradient is there and frees that; not with accumulation or clipping",
        ),
        (
            "eight_bit_optimizer",
            int(state * EIGHT_BIT),
            "if the state is float32: two moments of 1 byte instead of 4",
        ),
        ("offload_optimizer", state, "moves the optimizer state to the CPU; slower steps"),
        (
            "shard_over_two_devices",
            (parameters + gradients + state) // 2,
            "FSDP or ZeRO-3 on two devices; N devices save (N-1)/N",
        ),
        (
            "lower_precision",
            (parameters + gradients + activations + scores) // 2,
            "only if they are float32 now: half of parameters, gradients and activations",
        ),
    ]


def _by_settings(device: DeviceMemory) -> list[tuple[str, int, str]]:
    free = device.oom.free if device.oom is not None else device.free
    found = []
    if not device.expandable:
        found.append(
            ("expandable_segments", free.split, "joins free pieces: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True")
        )
    if device.oom is None:
        found.append(
            ("empty_cache", device.free.releasable, "only for other processes: this one reuses its cache by itself")
        )
    return found


MAX_CALL_SITES = 10
MAX_LEVERS = 10
"""Ways to save memory that are listed: those behind save hardly anything. Chosen."""
LEAST_PROBABILITY = 0.02
"""Probability from which a cause is listed."""
_LEAKS = ("leak", "graph_kept_alive")


def check_memory(path: str | Path, against: str | Path | None = None, focus: str | None = None) -> MemoryReport:
    """Say what filled the GPU, what leaks and why it ran out.

    Args:
        path: A memory snapshot (the pickle of `torch.cuda.memory._dump_snapshot()`, or a gzip of it); or a text with an
            out-of-memory message, `torch.cuda.memory_summary()`, the output of `nvidia-smi` or printed numbers
            (allocated, reserved, free); or such a text itself.
        against: An earlier snapshot to compare with.
        focus: The id of a call site in `top_allocations`, or a category: list only that, with whole stacks.

    Raises:
        InputError: a path cannot be used; the message says why and what to do.
        UnknownIdError: `focus` is not in this snapshot.
    """
    snapshot = read_memory(path)
    return report(snapshot, read_memory(against) if against is not None else None, focus)


def report(snapshot: MemorySnapshot, other: MemorySnapshot | None = None, focus: str | None = None) -> MemoryReport:
    """Report on a snapshot that has been read."""
    judged, problems = answer_all("memory", snapshot)
    fullest = max(snapshot.devices, key=lambda device: (device.oom is not None, device.peak_allocated), default=None)
    unknown = [answered for answered in judged if answered.state is State.UNKNOWN]
    notes = [*snapshot.notes, *problems]
    if unknown:
        notes.append(
            f"cannot be judged: {', '.join(f'{answered.outcome.id} ({answered.unknown})' for answered in unknown)}"
        )
    can_be_judged = _can_be_judged(snapshot, judged)
    findings = _findings(judged, healthy_known=can_be_judged)
    if not can_be_judged:
        notes.append("no cause is ranked: without a history, healthy and faulty memory look alike")
    sites = focused(snapshot, focus) if focus else call_sites(snapshot, MAX_CALL_SITES)
    hypotheses = _hypotheses(judged) if can_be_judged else []
    leader = next((hypothesis.cause for hypothesis in hypotheses[:1] if hypothesis.cause not in NO_FAULTS), "")
    answer = MemoryReport(
        snapshot=_totals(snapshot),
        findings=findings,
        top_allocations=sites,
        devices=[device_summary(device) for device in snapshot.devices],
        oom=_oom(fullest),
        levers=levers(fullest, judged)[:MAX_LEVERS] if fullest is not None else [],
        hypotheses=hypotheses,
        comparison=compare(snapshot, other) if other is not None else None,
        next_step=after_memory(snapshot.path, sites, findings, leader=leader, focused=bool(focus)),
        notes=notes,
    )
    return answer.model_copy(update={"at_a_glance": glance_at_memory(answer)})


def _can_be_judged(snapshot: MemorySnapshot, judged: list[Answer]) -> bool:
    """Say whether there is evidence on any cause: a history, a text with what PyTorch holds, or a finding."""
    alarms = any(
        (answer.evidence.severity or answer.outcome.severity) != "info" and answer.outcome.id != "history_missing"
        for answer in judged
        if answer.evidence is not None
    )
    text = snapshot.layout.startswith("text") and any(device.allocated or device.oom for device in snapshot.devices)
    return bool(snapshot.recorded) or text or alarms


def _totals(snapshot: MemorySnapshot) -> MemoryTotals:
    devices = snapshot.devices
    return MemoryTotals(
        path=snapshot.path,
        layout=snapshot.layout,
        devices=len(devices),
        segments=sum(device.segments for device in devices),
        trace_events=sum(device.history.events for device in devices if device.history),
        reserved_bytes=sum(device.reserved for device in devices),
        allocated_bytes=sum(device.allocated for device in devices),
        requested_bytes=sum(device.requested for device in devices),
        peak_allocated_bytes=_sum(device.known_peaks[0] for device in devices),
        peak_reserved_bytes=_sum(device.known_peaks[1] for device in devices),
    )


def _sum(amounts: Iterable[int | None]) -> int:
    """Return the sum of what is known; 0 where nothing is."""
    return sum(amount for amount in amounts if amount is not None)


def _findings(judged: list[Answer], *, healthy_known: bool) -> list[MemoryFinding]:
    known = catalogue()
    found = []
    for answer in judged:
        evidence, symptom = answer.evidence, answer.outcome
        if evidence is None:
            continue
        found.append(
            MemoryFinding(
                finding=symptom.id,
                severity=evidence.severity or symptom.severity,
                summary=evidence.summary,
                bytes=evidence.allocation.bytes,
                device=evidence.allocation.device,
                stack=list(evidence.allocation.stack),
                fix=evidence.fix or symptom.fix,
                values=dict(evidence.values),
                citations=known.cite(symptom.quotes),
            )
        )
    if healthy_known and all(memory_finding.severity == "info" for memory_finding in found):
        open_ids = {answer.outcome.id for answer in judged if answer.state is State.UNKNOWN}
        found.append(MemoryFinding(finding="healthy", severity="info", summary=_nothing_unusual(open_ids)))
    return sorted(
        found,
        key=lambda memory_finding: (
            GRAVEST_FIRST.index(memory_finding.severity),
            memory_finding.finding != "oom",
            -memory_finding.bytes,
        ),
    )


def _nothing_unusual(open_ids: set[str]) -> str:
    """Say what was looked for and not seen, and what cannot be judged."""
    unseen = {"oom": "failure", "leak": "leak", "fragmentation": "fragmentation"}
    absent = [name for symptom, name in unseen.items() if symptom not in open_ids]
    open_names = [name for symptom, name in unseen.items() if symptom in open_ids]
    looked = ", ".join(absent[:-1]) + " or " * (len(absent) > 1) + absent[-1] if absent else "sign of a fault"
    rest = f"; {' and '.join(open_names)} cannot be judged" if open_names else ""
    if open_names == ["leak"]:
        rest = "; whether memory leaks cannot be judged"
    return f"nothing unusual: no {looked} is seen{rest}"


def _oom(device: DeviceMemory | None) -> OutOfMemoryReport | None:
    if device is None or device.oom is None:
        return None
    event = device.oom
    return OutOfMemoryReport(
        device=device.device,
        requested_bytes=event.requested,
        device_free_bytes=event.device_free,
        limit_bytes=event.limit,
        others_bytes=event.others,
        own_bytes=event.own,
        allocated_bytes=event.allocated,
        reserved_bytes=event.reserved,
        free_in_reserved_bytes=event.free.total,
        largest_free_bytes=event.free.largest if event.pieces_known else None,
        missing_bytes=event.short,
        failures=event.count,
        site=event.stack.site if event.stack else "",
        stack=list(event.stack.frames) if event.stack else [],
    )


def _hypotheses(judged: list[Answer]) -> list[Hypothesis]:
    """Rank the causes that list a memory symptom, with `healthy` and `unknown` as rivals."""
    known, symptoms = catalogue(), symptoms_of("memory")
    candidates = [
        Candidate(
            cause.id,
            known.prior(cause.id, "any"),
            {effect.symptom: effect.frequency.share for effect in cause.effects if effect.symptom in symptoms},
        )
        for cause in known.causes.values()
        if cause.id in NO_FAULTS or any(effect.symptom in symptoms for effect in cause.effects)
    ]
    background = {symptom.id: symptom.outcome.background for symptom in symptoms.values()}
    evidence = weigh(candidates, [answer.finding() for answer in judged], background)
    ranked = rank({candidate.id: candidate.prior for candidate in candidates}, evidence)
    absent = {answer.outcome.id for answer in judged if answer.state is State.ABSENT}
    present = {answer.outcome.id for answer in judged if answer.state is State.PRESENT}
    return [
        _hypothesis(ranked_cause, absent, present)
        for ranked_cause in ranked
        if ranked_cause.probability >= LEAST_PROBABILITY
    ]


def _hypothesis(item: Ranked, absent: set[str], present: set[str]) -> Hypothesis:
    speaking = sorted(
        (symptom for symptom in present if item.bits.get(symptom, 0.0) > 0), key=lambda symptom: -item.bits[symptom]
    )
    return Hypothesis(
        symptoms=speaking,
        cause=item.id,
        probability=item.probability,
        credence=credence(item.probability),
        summary=plain(catalogue().causes[item.id].summary),
        because=in_bits(item, +1, absent),
        against=in_bits(item, -1, absent),
    )
