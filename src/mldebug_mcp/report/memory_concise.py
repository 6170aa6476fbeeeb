"""The short form of a memory report: what an agent needs first, with the calls that return the rest."""

from __future__ import annotations

from mldebug_mcp.models.memory import CallSite, DeviceSummary, MemoryEstimate, MemoryFinding, MemoryReport
from mldebug_mcp.report.fit import rounded
from mldebug_mcp.text import counted, shorten

MAX_FINDINGS = 6
MAX_SITES = 6
MAX_LEVERS = 5
MAX_DEVICES = 3
MAX_HYPOTHESES = 3
MAX_NOTES = 5
MAX_FRAMES = 4
MAX_SENTENCE = 300


def concise_memory(report: MemoryReport) -> MemoryReport:
    """Return the report in at most about 2,500 tokens."""
    fullest = max(report.devices, key=lambda one: one.peak_allocated_bytes, default=None)
    short = {
        "findings": [_finding(one) for one in report.findings[:MAX_FINDINGS]],
        "top_allocations": [_site(one) for one in report.top_allocations[:MAX_SITES]],
        "devices": [_device(one, full=one is fullest) for one in _shown(report.devices, fullest)],
        "levers": report.levers[:MAX_LEVERS],
        "oom": report.oom and report.oom.model_copy(update={"stack": []}),
        "hypotheses": [
            one.model_copy(update={"summary": shorten(one.summary, MAX_SENTENCE // 2), "against": []})
            for one in rounded(report.hypotheses[:MAX_HYPOTHESES])
        ],
        "comparison": report.comparison and report.comparison.model_copy(update={"sites": report.comparison.sites[:5]}),
    }
    left_out = len(report.devices) - len(_shown(report.devices, fullest))
    notes = [shorten(note, MAX_SENTENCE) for note in report.notes[:MAX_NOTES]]
    if left_out > 0:
        notes.append(f"{counted(left_out, 'more device')}")
    if report.top_allocations:
        notes.append(
            "for a whole stack with sizes and lifetimes pass focus=ID of top_allocations; for one category focus=its "
            "name"
        )
    return report.model_copy(update={**short, "notes": notes})


def concise_estimate(estimate: MemoryEstimate) -> MemoryEstimate:
    """Return the estimate without the sources of its formulas."""
    return estimate.model_copy(update={"sources": []})


def _finding(one: MemoryFinding) -> MemoryFinding:
    return one.model_copy(
        update={
            "stack": one.stack[:MAX_FRAMES],
            "fix": shorten(one.fix, MAX_SENTENCE),
            "citations": one.citations[:1] if one.severity != "info" else [],
            "values": {},
        }
    )


def _site(one: CallSite) -> CallSite:
    return one.model_copy(update={} if one.details else {"stack": []})


def _shown(devices: list[DeviceSummary], fullest: DeviceSummary | None) -> list[DeviceSummary]:
    """Return the first devices, and the fullest among them."""
    return [one for place, one in enumerate(devices) if place < MAX_DEVICES - 1 or one is fullest][:MAX_DEVICES]


def _device(one: DeviceSummary, *, full: bool) -> DeviceSummary:
    """Drop the steps; only the fullest device keeps its categories."""
    categories = [part.model_copy(update={"how": ""}) for part in one.categories if full and part.share >= 0.01]
    return one.model_copy(update={"steps": [], "categories": categories})
