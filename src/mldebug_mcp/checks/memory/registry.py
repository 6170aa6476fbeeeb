"""What a memory symptom is, and how one is judged: as the symptoms of a run, but on a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from mldebug_mcp.checks.asking import BROKEN, note_on
from mldebug_mcp.checks.check import CannotTell, Documented, Registry
from mldebug_mcp.memory.snapshot import DeviceMemory, MemorySnapshot
from mldebug_mcp.models import Finding, State
from mldebug_mcp.models.base import Severity


@dataclass(frozen=True, slots=True)
class MemoryEvidence:
    """What a memory symptom saw.

    Args:
        summary: One sentence in numbers. An observation.
        bytes: How much memory it is about.
        device: Where.
        stack: Who asked, innermost first.
        values: The numbers behind the summary.
        severity: Where it differs from the symptom's usual one.
        fix: Where it differs from the symptom's usual one.
    """

    summary: str
    bytes: int = 0
    device: int | None = None
    stack: tuple[str, ...] = ()
    values: Mapping[str, float] = field(default_factory=dict)
    severity: Severity | None = None
    fix: str | None = None


Detector = Callable[[MemorySnapshot], MemoryEvidence | None]


@dataclass(frozen=True, slots=True)
class MemorySymptom(Documented):
    """A registered memory symptom; see `memory_symptom` for the fields."""

    id: str
    severity: Severity
    fix: str
    quotes: tuple[str, ...]
    history: bool
    background: float
    detect: Detector


@dataclass(frozen=True, slots=True)
class Judged:
    """A memory symptom judged on a snapshot."""

    symptom: MemorySymptom
    state: State
    evidence: MemoryEvidence | None = None
    reason: str = ""

    def finding(self) -> Finding:
        """Return it as the ranking takes it."""
        summary = self.evidence.summary if self.evidence else self.reason
        values = dict(self.evidence.values) if self.evidence else {}
        return Finding(symptom=self.symptom.id, state=self.state, summary=summary, values=values)


SYMPTOMS: Registry[MemorySymptom] = Registry("mldebug_mcp.checks.memory")


def memory_symptom(
    *,
    severity: Severity,
    fix: str = "",
    quotes: tuple[str, ...] = (),
    history: bool = False,
    background: float = 0.02,
) -> Callable[[Detector], Detector]:
    """Register a function as the memory symptom of its name.

    Args:
        severity: error, warning or info.
        fix: What to do about it.
        quotes: Ids of quotes that say so.
        history: Whether it can be judged only with a recorded history.
        background: How often a healthy run shows it, between 0 and 1.
    """

    def register(detect: Detector) -> Detector:
        SYMPTOMS.add(MemorySymptom(detect.__name__, severity, fix, quotes, history, background, detect))
        return detect

    return register


def judge(symptom: MemorySymptom, snapshot: MemorySnapshot) -> tuple[Judged, str | None]:
    """Judge a symptom on a snapshot. The second value is a note, if the symptom itself broke."""
    if symptom.history and not snapshot.recorded:
        return Judged(symptom, State.UNKNOWN, reason="no allocation history"), None
    try:
        evidence = symptom.detect(snapshot)
    except CannotTell as why:
        return Judged(symptom, State.UNKNOWN, reason=str(why)), None
    except Exception as error:  # noqa: BLE001 - a broken symptom is a note, never a failed answer
        return Judged(symptom, State.UNKNOWN, reason=BROKEN), note_on(symptom.id, error)
    return Judged(symptom, State.PRESENT if evidence else State.ABSENT, evidence), None


def on_worst_device(
    devices: Iterable[DeviceMemory], detect: Callable[[DeviceMemory], MemoryEvidence | None]
) -> MemoryEvidence | None:
    """Return the evidence that is about most memory, of the devices that show some; None if none does."""
    found = [evidence for device in devices if (evidence := detect(device)) is not None]
    return max(found, key=lambda one: one.bytes, default=None)
