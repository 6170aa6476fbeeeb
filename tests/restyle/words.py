"""What people call what they log: words, the order and case they come in, and units."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from tests.restyle.story import OWN, Quantity

WORDS: Mapping[str, tuple[str, ...]] = {
    "loss": ("loss", "total loss", "avg loss", "ce loss", "lm loss", "loss mean"),
    "accuracy": ("accuracy", "acc", "top1 acc", "mean accuracy", "acc1"),
    "perplexity": ("ppl", "perplexity"),
    "gradient_norm": ("grad norm", "gradient norm", "gnorm", "total grad norm", "global grad norm", "grad l2 norm"),
    "learning_rate": ("learning rate", "lr", "current lr"),
    "weight_norm": ("weight norm", "param norm", "parameter norm"),
    "loss_scale": ("loss scale", "grad scale", "amp scale"),
    "data_wait": ("data time", "data wait", "dataloader time", "fetch time", "t data", "data loading time"),
    "step_time": ("step time", "iter time", "time per step", "batch time", "t step", "iteration time"),
    "throughput": ("throughput",),
    "host_memory": ("rss", "host memory", "cpu mem", "ram used", "process rss", "host rss"),
    "device_memory": ("gpu mem", "cuda memory", "peak memory", "max memory allocated", "vram", "gpu memory allocated"),
    "reward": ("reward", "mean reward", "episode reward mean", "reward mean", "avg reward"),
    "reward_std": ("reward std", "std reward", "reward stddev"),
    "kl": ("kl", "approx kl", "mean kl", "kl divergence"),
    "entropy": ("entropy", "policy entropy", "mean entropy"),
    "value_loss": ("value loss", "vf loss", "critic loss", "v loss"),
    "policy_loss": ("policy loss", "pg loss", "actor loss", "policy gradient loss"),
    "clip_fraction": ("clip fraction", "clipfrac", "clip frac"),
    "explained_variance": ("explained variance", "explained var"),
    "completion_length": ("completion length", "response length", "mean response length", "completion len"),
    "reward_margin": ("reward margin", "rewards margins", "margin"),
    "pair_accuracy": ("rewards accuracies", "reward accuracy", "preference accuracy"),
}
RATES: Mapping[str, tuple[str, ...]] = {
    "tokens": ("tokens per sec", "tokens per second", "tok per sec", "tps"),
    "rows": ("samples per sec", "samples per second", "examples per sec", "img per sec"),
}
"""Throughput, by what is counted."""
DIMENSION: Mapping[str, str] = {
    "accuracy": "share", "data_wait": "duration", "step_time": "duration",
    "host_memory": "size", "device_memory": "size",
}  # fmt: skip
GROUP: Mapping[str, str] = {
    "data_wait": "pace", "step_time": "pace", "throughput": "pace",
    "host_memory": "machine", "device_memory": "machine",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit as written.

    Args:
        scale: What one of it is in seconds, bytes or shares of 1.
        word: How it is written in a name.
        sign: How it is written behind a number.
        also: Other scales that the word could stand for, as MB does for 10^6 and 2^20 bytes.
    """

    scale: float
    word: str
    sign: str
    also: tuple[float, ...] = ()


BARE = Unit(1.0, "", "")
UNITS: Mapping[str, Unit] = {
    "s": Unit(1.0, "s", "s"),
    "sec": Unit(1.0, "sec", " sec"),
    "ms": Unit(1e-3, "ms", "ms"),
    "B": Unit(1.0, "bytes", "B"),
    "MB": Unit(2.0**20, "mb", "MB", (1e6,)),
    "MiB": Unit(2.0**20, "mib", "MiB"),
    "GB": Unit(2.0**30, "gb", "GB", (1e9,)),
    "GiB": Unit(2.0**30, "gib", "GiB"),
    "pct": Unit(1e-2, "pct", "%"),
}
BARE_SIZE = Unit(2.0**20, "", "", (1.0, 1e6, 1e9, 2.0**30))
"""A size without a unit, in MiB here: any scale is a fair reading."""

CASES: Mapping[str, Callable[[list[str]], str]] = {
    "snake": "_".join,
    "kebab": "-".join,
    "lower": " ".join,
    "upper": lambda words: "_".join(words).upper(),
    "pascal": lambda words: "".join(map(str.capitalize, words)),
    "camel": lambda words: words[0] + "".join(map(str.capitalize, words[1:])),
    "title": lambda words: " ".join(word.upper() if len(word) <= 2 else word.capitalize() for word in words),
}


@dataclass(frozen=True, slots=True)
class Naming:
    """How a name is put together.

    Args:
        case: A key of `CASES`.
        phase: Where train and eval stand: "/", ".", ":" or "_" in front of the name, "end" behind it, "" where the
            record says it in a field of its own, and "eval" where only evaluation is marked.
        train: Word for training.
        eval: Word for evaluation.
        groups: Namespaces of what has no phase: "pace" and "machine"; `common` those of all.
        units: Unit by dimension; a dimension that is missing has none (seconds, MiB, shares).
        unit_at: "name", "brackets" (behind the name), or "value".
        seed: Which of the words are chosen; 0 takes the first of each.
        any_loss: The loss may be any: no word says which.
    """

    case: str = "snake"
    phase: str = "eval"
    train: str = "train"
    eval: str = "eval"
    groups: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    unit_at: str = "name"
    seed: int = 0
    any_loss: bool = False

    def unit(self, quantity: Quantity) -> Unit:
        """The unit that values of a quantity are written in."""
        dimension = DIMENSION.get(quantity[1], "")
        if dimension in self.units:
            return UNITS[self.units[dimension]]
        return BARE_SIZE if dimension == "size" else BARE

    def name(self, quantity: Quantity, counted: str = "tokens") -> str:
        """The name of a quantity; `counted` is what throughput counts."""
        phase, what = quantity
        if what.startswith(OWN):
            return self._own(phase, what.removeprefix(OWN))
        words = self._choose(what, self._known(what, counted)).split()
        unit = self.unit(quantity).word
        if unit and self.unit_at == "name":
            words = [*(words[:-1] if words[-1] == "time" and unit == "ms" else words), unit]
        group = self.groups.get(GROUP.get(what, ""), "")
        marks, word = self._marks(phase), self.eval if phase == "eval" else self.train
        if group:
            name = f"{group}{self.phase if self.phase in '/.:' and self.phase else '/'}{self.cased(words)}"
        elif not marks:
            name = self.cased(words)
        elif self.phase == "end":
            name = self.cased([*words, word])
        elif self.phase in {"_", "eval"}:
            name = self.cased([word, *words])
        else:
            name = f"{word}{self.phase}{self.cased(words)}"
        return f"{name} ({self.unit(quantity).sign.strip()})" if unit and self.unit_at == "brackets" else name

    def _known(self, what: str, counted: str) -> tuple[str, ...]:
        """The words for a quantity."""
        if what == "throughput":
            return RATES[counted]
        return ("loss", "total loss", "avg loss", "loss mean") if what == "loss" and self.any_loss else WORDS[what]

    def _own(self, phase: str, name: str) -> str:
        """The name of a quantity that keeps its words: its rooms stay where they are."""
        rooms, word = [room.split("_") for room in name.split("/")], self.eval if phase == "eval" else self.train
        front = ""
        if self._marks(phase) and self.phase == "end":
            rooms[-1].append(word)
        elif self._marks(phase) and self.phase in {"_", "eval"}:
            rooms[0].insert(0, word)
        elif self._marks(phase):
            front = f"{word}{self.phase}"
        return front + "/".join(map(self.cased, rooms))

    def _marks(self, phase: str) -> bool:
        """Whether the name says which phase it is of."""
        return self.phase not in {"", "eval"} or (self.phase == "eval" and phase == "eval")

    def cased(self, words: list[str]) -> str:
        """The words in this naming's case."""
        return CASES[self.case](words)

    def _choose(self, what: str, among: tuple[str, ...]) -> str:
        return among[0] if not self.seed else Random(f"{self.seed} {what}").choice(among)
