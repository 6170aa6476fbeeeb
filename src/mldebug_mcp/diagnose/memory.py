"""The verb `check_memory`: read a snapshot, judge it, rank the causes, and say what would save most."""

from __future__ import annotations

from pathlib import Path

from mldebug_mcp.diagnose.memory_compare import compare
from mldebug_mcp.diagnose.memory_devices import call_sites, device_summary, focused
from mldebug_mcp.diagnose.memory_levers import levers
from mldebug_mcp.diagnose.next_call import after_memory
from mldebug_mcp.diagnose.ranking import Ranked, credence, in_bits, rank
from mldebug_mcp.diagnose.weighing import Candidate, weigh
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.knowledge.playbook import plain
from mldebug_mcp.memory.read import read_memory
from mldebug_mcp.memory.snapshot import DeviceMemory, MemorySnapshot
from mldebug_mcp.models import Hypothesis
from mldebug_mcp.models.base import GRAVEST_FIRST, NO_FAULTS
from mldebug_mcp.models.diagnosis import State
from mldebug_mcp.models.memory import Lever, MemoryFinding, MemoryReport, MemoryTotals, OutOfMemoryReport
from mldebug_mcp.symptoms.memory import Judged, examine_memory, memory_symptoms

TOP = 10
LEAST_PROBABILITY = 0.02
_LEAKS = ("leak", "graph_kept_alive")


def check_memory(path: str | Path, against: str | Path | None = None, focus: str | None = None) -> MemoryReport:
    """Say what filled the GPU, what leaks and why it ran out.

    Args:
        path: A memory snapshot (the pickle of `torch.cuda.memory._dump_snapshot()`, or a gzip of it), or a text with an
            out-of-memory message, `torch.cuda.memory_summary()` or the output of `nvidia-smi`.
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
    judged, problems = examine_memory(snapshot)
    fullest = max(snapshot.devices, key=lambda one: (one.oom is not None, one.peak_allocated), default=None)
    unknown = [one for one in judged if one.state is State.UNKNOWN]
    notes = [*snapshot.notes, *problems]
    if unknown:
        notes.append(f"cannot be judged: {', '.join(f'{one.symptom.id} ({one.reason})' for one in unknown)}")
    findings = _findings(judged)
    sites = focused(snapshot, focus) if focus else call_sites(snapshot, TOP)
    return MemoryReport(
        snapshot=_totals(snapshot),
        findings=findings,
        top_allocations=sites,
        devices=[device_summary(device) for device in snapshot.devices],
        oom=_oom(fullest),
        levers=_levers(fullest, judged) if fullest is not None else [],
        hypotheses=_hypotheses(judged),
        comparison=compare(snapshot, other) if other is not None else None,
        next_step=after_memory(snapshot.path, sites, findings, focused=bool(focus)),
        notes=notes,
    )


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
        peak_allocated_bytes=sum(device.peak_allocated for device in devices),
        peak_reserved_bytes=sum(device.peak_reserved for device in devices),
    )


def _findings(judged: list[Judged]) -> list[MemoryFinding]:
    known = catalogue()
    found = []
    for one in judged:
        evidence, symptom = one.evidence, one.symptom
        if evidence is None:
            continue
        found.append(
            MemoryFinding(
                finding=symptom.id,
                severity=evidence.severity or symptom.severity,
                summary=evidence.summary,
                bytes=evidence.bytes,
                device=evidence.device,
                stack=list(evidence.stack),
                fix=evidence.fix or symptom.fix,
                values=dict(evidence.values),
                citations=known.cite(symptom.quotes),
            )
        )
    if all(one.severity == "info" for one in found):
        open_leak = any(one.symptom.id == "leak" and one.state is State.UNKNOWN for one in judged)
        found.append(
            MemoryFinding(
                finding="healthy",
                severity="info",
                summary="nothing unusual: no failure or fragmentation is seen; whether memory leaks cannot be judged"
                if open_leak
                else "nothing unusual: no failure, leak or fragmentation is seen",
            )
        )
    return sorted(found, key=lambda one: (GRAVEST_FIRST.index(one.severity), one.finding != "oom", -one.bytes))


def _levers(device: DeviceMemory, judged: list[Judged]) -> list[Lever]:
    fragmented = any(
        one.symptom.id == "fragmentation" and one.evidence is not None and one.evidence.device == device.device
        for one in judged
    )
    return levers(device, _leaked(judged), fragmented=fragmented)


def _leaked(judged: list[Judged]) -> int:
    return max((one.evidence.bytes for one in judged if one.evidence and one.symptom.id in _LEAKS), default=0)


def _oom(device: DeviceMemory | None) -> OutOfMemoryReport | None:
    if device is None or device.oom is None:
        return None
    event = device.oom
    return OutOfMemoryReport(
        device=device.device,
        requested_bytes=event.requested,
        device_free_bytes=event.device_free,
        allocated_bytes=event.allocated,
        reserved_bytes=event.reserved,
        free_in_reserved_bytes=event.free.total,
        largest_free_bytes=event.free.largest if event.pieces_known else None,
        missing_bytes=event.short,
        failures=event.count,
        site=event.stack.site if event.stack else "",
        stack=list(event.stack.frames) if event.stack else [],
    )


def _hypotheses(judged: list[Judged]) -> list[Hypothesis]:
    """Rank the causes that list a memory symptom, with `healthy` and `unknown` as rivals."""
    known, symptoms = catalogue(), memory_symptoms()
    candidates = [
        Candidate(
            cause.id,
            cause.prior_for("any"),
            {effect.symptom: effect.frequency.share for effect in cause.effects if effect.symptom in symptoms},
        )
        for cause in known.causes.values()
        if cause.id in NO_FAULTS or any(effect.symptom in symptoms for effect in cause.effects)
    ]
    background = {one.id: one.background for one in symptoms.values()}
    evidence = weigh(candidates, [one.finding() for one in judged], background)
    ranked = rank({one.id: one.prior for one in candidates}, evidence)
    absent = {one.symptom.id for one in judged if one.state is State.ABSENT}
    return [_hypothesis(one, absent) for one in ranked if one.probability >= LEAST_PROBABILITY]


def _hypothesis(item: Ranked, absent: set[str]) -> Hypothesis:
    return Hypothesis(
        cause=item.id,
        probability=item.probability,
        credence=credence(item.probability),
        summary=plain(catalogue().causes[item.id].summary),
        because=in_bits(item, +1, absent),
        against=in_bits(item, -1, absent),
    )
