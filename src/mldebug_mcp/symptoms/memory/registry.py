"""What a memory symptom is, and how one is judged: as the symptoms of a run, but on a snapshot."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules

from mldebug_mcp.memory.snapshot import MemorySnapshot
from mldebug_mcp.models import Finding, State
from mldebug_mcp.models.base import Severity
from mldebug_mcp.progress import checkpoint
from mldebug_mcp.symptoms.registry import CannotTell
from mldebug_mcp.text import shorten


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
class MemorySymptom:
    """A registered memory symptom; see `memory_symptom` for the fields."""

    id: str
    severity: Severity
    fix: str
    quotes: tuple[str, ...]
    history: bool
    background: float
    detect: Detector

    @property
    def doc(self) -> str:
        """The documentation: the docstring of the function."""
        return inspect.getdoc(self.detect) or ""


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


_SYMPTOMS: dict[str, MemorySymptom] = {}


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
        name = detect.__name__
        assert name not in _SYMPTOMS, name  # noqa: S101 - a programming error
        _SYMPTOMS[name] = MemorySymptom(name, severity, fix, quotes, history, background, detect)
        return detect

    return register


@lru_cache(maxsize=1)
def memory_symptoms() -> Mapping[str, MemorySymptom]:
    """Return every memory symptom by id; the modules of this package are found and imported once."""
    package = import_module("mldebug_mcp.symptoms.memory")
    for module in iter_modules(package.__path__):
        import_module(f"{package.__name__}.{module.name}")
    return dict(sorted(_SYMPTOMS.items()))


def examine_memory(snapshot: MemorySnapshot) -> tuple[list[Judged], list[str]]:
    """Judge every memory symptom on a snapshot. Returns them all, and notes on those that broke."""
    judged: list[Judged] = []
    notes: list[str] = []
    for symptom in memory_symptoms().values():
        checkpoint(f"looking for {symptom.id}")
        if symptom.history and not snapshot.recorded:
            judged.append(Judged(symptom, State.UNKNOWN, reason="no allocation history"))
            continue
        try:
            evidence = symptom.detect(snapshot)
        except CannotTell as why:
            judged.append(Judged(symptom, State.UNKNOWN, reason=str(why)))
        except Exception as error:  # noqa: BLE001 - a broken symptom is a note, never a failed answer
            notes.append(f"{symptom.id} could not be judged: {type(error).__name__}: {shorten(str(error), 200)}")
            judged.append(Judged(symptom, State.UNKNOWN, reason="the check failed; see the notes"))
        else:
            judged.append(Judged(symptom, State.PRESENT if evidence else State.ABSENT, evidence))
    return judged, notes
