"""Numbers from labelled runs: frequencies, backgrounds, how evidence is weighed and how sharp; the classifier.

The words in `links.csv` are where a frequency starts; runs with a known cause move it:

    frequency = (seen + 4 * word) / (runs + 4).

`runs` are those with the cause in which the symptom could be judged, and `seen` those that showed it. So a word
counts as much as four runs. What runs with a cause showed is linked with it without a word, too: chance stands for the
word then, and counts as twelve runs. The background of a symptom is moved in the same way by healthy runs. The trust in
each question is that under which the labelled causes are likeliest; the sharpness the one under which probabilities
are closest to how often they are right. `links.csv` holds the words and what was counted, `fitted.json` the powers and
on what both rest; `python -m benchmarks.faults fit` writes the counts and the powers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from mldebug_mcp.checks.course import COMPARED, vector_of
from mldebug_mcp.checks.progress import has_finished
from mldebug_mcp.core.lazy import dataclass
from mldebug_mcp.judge.ranking import WEIGHT, CauseEvidence, Trust
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.knowledge.catalogue import counts
from mldebug_mcp.logs import Run
from mldebug_mcp.logs.kinds import plan_of
from mldebug_mcp.models.base import SOUND

WORD_COUNTS_AS = 4
"""Runs that a word of `links.csv`, or a background chosen by hand, counts as."""
LEAST_SHOWN = 1.0
"""Runs with a cause that showed a symptom, from which they are linked without a word. Chosen: one run;
with two, the runs of authors whom the fit never saw have their cause among three a little less often."""
CHANCE_COUNTS_AS = 12
"""Runs that chance counts as where no word says how often a cause shows a symptom. Chosen: with four, as a word, runs
of authors whom the fit never saw have their cause first less often, and probabilities are less often right."""
LEAST_COUNTED = 1.0
"""Runs with a cause in which a symptom could be judged, from which their link counts as counted. Chosen: one run."""
FITTED_FILE = Path(__file__).parent / "fitted.json"

Counts = dict[str, tuple[float, float]]
"""By symptom: runs that showed it, and runs in which it could be judged; versions of one run share its one."""


class Powers(BaseModel):
    """How far evidence is trusted, and how sharp the probabilities are that it makes; see `Trust` and `rank`."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    weight: float = WEIGHT
    missed: float = 0.0
    unlisted: float = 0.0
    absent: float | None = None
    questions: dict[str, float] = {}
    sharpness: float = 1.0

    @property
    def trust(self) -> Trust:
        """How far findings are trusted."""
        return Trust(self.weight, self.missed, self.unlisted, self.absent, self.questions)


class Fitted(BaseModel):
    """What was counted, with which links (their `fingerprint`), and the powers that were fitted.

    `with_findings` are the powers where the numbers of a run count with its findings; `alone` where findings speak
    alone. The counts of `causes` and of `healthy` runs are kept in `links.csv`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    provenance: str
    links: str = ""
    with_findings: Powers = Powers.model_construct()
    alone: Powers = Powers.model_construct()
    among_faults: float = 1.0
    causes: dict[str, Counts] = {}
    healthy: Counts = {}

    def powers(self, evidence: Iterable[CauseEvidence]) -> Powers:
        """Return the powers for what is known of a run besides its findings."""
        return (
            self.with_findings if any(cause_evidence.kind == "numbers" for cause_evidence in evidence) else self.alone
        )

    def counted(self, cause: str, symptom: str) -> bool:
        """Say whether runs with a cause were counted in which a symptom could be judged.

        Where nothing at all was counted, the words stand for counts.
        """
        return not self.causes or self.causes.get(cause, {}).get(symptom, (0, 0))[1] >= LEAST_COUNTED

    def shown_by(self, cause: str, chance: Mapping[str, float]) -> dict[str, float]:
        """Return how often a cause shows each symptom that counted runs with it showed: links that need no word.

        `chance` says how often each symptom is seen by chance, where its frequency starts.
        """
        counted = self.causes.get(cause, {})
        shown = [symptom for symptom, (present, _) in counted.items() if present >= LEAST_SHOWN and symptom in chance]
        return {text: moved(counted[text], chance[text], CHANCE_COUNTS_AS) for text in shown}

    def frequency(self, cause: str, symptom: str, word: float) -> float:
        """Return how often a cause shows a symptom: its word in numbers, moved by what was counted."""
        return moved(self.causes.get(cause, {}).get(symptom, (0, 0)), word)

    def background(self, symptom: str, chosen: float) -> float:
        """Return how often a healthy run shows a symptom: the number chosen by hand, moved by what was counted.

        It is moved down to an eighth at most, because other healthy runs have oddities that the counted ones lack.
        """
        return max(moved(self.healthy.get(symptom, (0, 0)), chosen), chosen / 8)


def moved(counted: tuple[float, float], start: float, counts_as: float = WORD_COUNTS_AS) -> float:
    """Return a share that starts at `start`, which counts as so many runs, and is moved by `(seen, runs)`."""
    present, runs = counted
    return (present + counts_as * start) / (runs + counts_as)


@lru_cache(maxsize=1)
def fitted() -> Fitted:
    """Return the numbers that ship with the package."""
    written: dict[str, Any] = json.loads(FITTED_FILE.read_text(encoding="utf-8"))
    causes: dict[str, Counts] = counts(catalogue().links)
    healthy = causes.pop(SOUND, {})
    powers = {name: Powers.model_construct(**written[name]) for name in ("with_findings", "alone") if name in written}
    construct: Callable[..., Fitted] = Fitted.model_construct
    return construct(**written | powers | {"causes": causes, "healthy": healthy})


# What all numbers of a run together say of causes: how like they are to those of trained runs with each of them.
#
# A multinomial logistic regression over the numbers of `checks.course`, each as a line through a few knots, so that no
# number decides by a limit. `likeness.npz` holds it; `python -m benchmarks.faults fit` fits it with the findings,
# and with it how far it is trusted:
#
#     bits(c) = trust * (log2 P(c | numbers) - EVEN * log2 P(c))
#
# where P(c) is the share of the cause among the trained runs: how often a fault was injected does not make it suspect.


Floats = NDArray[np.float32]
LIKENESS_FILE = Path(__file__).parent / "likeness.npz"
ABOUT = "likeness"
"""What stands for this among the questions whose trust is fitted."""
EVEN = 0.5
"""Power of the share of a cause that is taken off. Chosen: with less faults, with more healthy runs of authors whom the
fit never saw are named less often."""
RESULTS = frozenset(f"{phase}{quantity}: last / first" for quantity in COMPARED for phase in ("", "eval "))
"""A log holds at least one of these: without the course of a result there is nothing to be like."""
MIN_RECORDS = 12
"""Records of a run that is not known to be over from which its numbers count in full. Chosen: healthy runs of policies
were accused after five records, by their numbers alone, in one of ten cases; with this, in one of a hundred."""
OTHER_STATISTICS = "other statistics of the curves"
"""How this evidence is named in answers: no single number decides."""


@dataclass(frozen=True)
class Likeness:
    """The fitted model.

    Args:
        causes: The causes that runs were trained with, `healthy` among them.
        shares: Their shares among these runs, shape (causes,).
        names: The numbers that are looked at.
        knots: Values of each, ascending, shape (names, knots).
        weights: What a number at a knot adds to the logarithm of each cause, shape (names * knots, causes).
        bias: What stands there before any number, shape (causes,).
    """

    causes: tuple[str, ...]
    shares: Floats
    names: tuple[str, ...]
    knots: Floats
    weights: Floats
    bias: Floats

    @cached_property
    def _number(self) -> Mapping[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    def bits(self, vector: Mapping[str, float]) -> dict[str, float]:
        """Return how much the numbers of a run support each cause, with a trust of one."""
        names = [name for name in vector if name in self._number]
        number = np.array([self._number[name] for name in names], dtype=np.int64)
        values, knots = np.array([vector[name] for name in names]), self.knots[number]
        row, share = between(knots, values)
        row += (number * self.knots.shape[1])[:, None]
        adds = np.einsum("nk,nkc->nc", share, self.weights[row])
        adds -= adds.mean(axis=1, keepdims=True)
        scores = self.bias + adds.sum(axis=0)
        highest = float(scores.max())
        logs = scores - highest - math.log(float(np.exp(scores - highest).sum()))
        bits = (logs - EVEN * np.log(self.shares)) / math.log(2)
        return dict(zip(self.causes, map(float, bits), strict=True))


def between(knots: Floats, values: NDArray[np.float64]) -> tuple[NDArray[np.int64], Floats]:
    """Return between which two knots values lie and how near to each, both of shape (values, 2).

    The knots of each value ascend, shape (values, knots); what lies beyond them counts as at the end.
    """
    clipped = np.clip(values, knots[:, 0], knots[:, -1]).astype(np.float32)
    low = np.clip((knots <= clipped[:, None]).sum(axis=1) - 1, 0, knots.shape[1] - 2)
    rows = np.arange(len(values))
    start, width = knots[rows, low], knots[rows, low + 1] - knots[rows, low]
    part = np.divide(clipped - start, width, out=np.zeros_like(clipped), where=width > 0)
    return np.stack([low, low + 1], axis=1), np.stack([1 - part, part], axis=1)


def evidence_from_classifier(run: Run) -> list[CauseEvidence]:
    """Return what the numbers of a run say about causes, besides its findings."""
    trust = fitted().with_findings.questions.get(ABOUT, 0.0) * _share_done(run)
    return evidence_by_model(shipped(), vector_of(run), trust)


def _share_done(run: Run) -> float:
    """Return how much of a run its log holds, from 0 to 1: the model was fitted on whole runs."""
    if has_finished(run):
        return 1.0
    plan = plan_of(run)
    if plan is not None:
        return 1.0 if plan.is_done else min(1.0, plan.reached / plan.planned)
    return min(1.0, max((len(series) for series in run.series.values()), default=0) / MIN_RECORDS)


def evidence_by_model(model: Likeness, vector: Mapping[str, float], trust: float) -> list[CauseEvidence]:
    """Return what numbers say of causes, in bits multiplied by `trust`; nothing where no result has a course."""
    if not trust or not has_a_course(vector):
        return []
    return [
        CauseEvidence(cause, trust * bits, OTHER_STATISTICS, "numbers", ABOUT)
        for cause, bits in model.bits(vector).items()
    ]


def has_a_course(vector: Mapping[str, float]) -> bool:
    """Say whether a result is among the numbers that has more than a few records."""
    return not RESULTS.isdisjoint(vector)


@lru_cache(maxsize=1)
def shipped() -> Likeness:
    """Return the model that ships with the package."""
    with np.load(LIKENESS_FILE, allow_pickle=False) as arrays:
        return Likeness(
            tuple(arrays["causes"].tolist()),
            arrays["shares"],
            tuple(arrays["names"].tolist()),
            arrays["knots"],
            arrays["weights"].astype(np.float32) * arrays["scale"],
            arrays["bias"],
        )
