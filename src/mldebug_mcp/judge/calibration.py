"""Numbers counted on labelled runs: frequencies, backgrounds, how evidence is weighed, how sharp probabilities are.

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
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from mldebug_mcp.judge.ranking import WEIGHT, CauseEvidence, Trust
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.knowledge.catalogue import counts
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
