"""`Settings`: a configuration as facts, typed, by canonical name, each with where it stands."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from operator import attrgetter

from mldebug_mcp.core.lazy import dataclass, regex, replace
from mldebug_mcp.core.text import shorten
from mldebug_mcp.logs.names.settings import (
    ANY,
    FLAG,
    NUMBER,
    OPTIMIZERS,
    PHRASES,
    TEXT,
    Match,
    plain_name,
    settings_of,
    words_of,
)
from mldebug_mcp.logs.settings.values import MAX_ITEMS, MAX_TEXT, Scalar, Value, flag_of, number_of, value_in

MAX_KEYS = 2000
MAX_NODES = 50_000
"""Values and mappings looked at: YAML's aliases let a small file stand for a huge object."""
MAX_DEPTH = 12
LEAST_LISTED = 16
"""Mappings in a list that are looked into, such as groups of parameters."""
MAX_NOTES = 5
MAX_LEARNING_RATE = 10.0
"""Largest number that is a learning rate where its key may mean something else. Chosen: usual ones are below 1."""
_WITH_ITS_RATE = regex(
    r"(?P<name>[A-Za-z]{3,12})[ ,@:(]{1,3}(?:lr ?=? ?)?(?P<rate>\d[\d.eE+-]{0,20}|\.\d[\deE+-]{0,20})\)?"
)
"""An optimizer with its learning rate: "adam 2e-3"."""
_ADAM = ("adam_beta1", "adam_beta2")
_SWITCH = regex(r"/enabled?$", re.IGNORECASE)
"""The last part of the key that switches its section on or off."""
_ADAPTERS_SWITCH = regex(r"(?:(?<=/)|^)(?:use_|enable_|with_)?(?:lora|peft)$", re.IGNORECASE)
"""The same of adapters, whose settings stand next to it and begin with one of these words."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    Args:
        name: Canonical name; the key itself where the setting is not known.
        value: Its value: typed where the setting is known. None is an explicit null.
        key: The key as it was written, nested parts joined by "/".
        source: The file, or the line of the log, that it was read from.
        known: Whether it is a setting that is known.
    """

    name: str
    value: Value
    key: str
    source: str
    known: bool = False


_OF_AN_UPDATE = {
    "num_iterations": "num_iterations",
    "clip": "clip_range",
    **dict.fromkeys(("n_steps", "num_steps"), "n_steps"),
    **dict.fromkeys(("n_epochs", "ppo_epochs", "num_ppo_epochs"), "update_epochs"),
}
"""Names by which trainers of policies set an update, and the plan of a run elsewhere. Sources: the configurations of
TRL, Stable-Baselines3 and CleanRL."""


@dataclass(frozen=True)
class Settings(Mapping[str, Setting]):
    """The settings of a run by canonical name, unknown ones by their key.

    Args:
        items_by_name: The settings.
        notes: What was left out, and which of several keys for one setting was taken.
    """

    items_by_name: Mapping[str, Setting] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, values: Mapping[str, object], source: str = "", within: str = "") -> Settings:
        """Read a configuration, nested anywhere.

        Of several keys for one setting the plainest stands (`max_steps` before `iterations`), then the outermost; a
        null only where no other exists. A section that is switched off sets nothing.

        Args:
            values: Names to values, mappings and lists.
            source: Where it stands, for people.
            within: The name of its file, which may say what its keys are of.
        """
        leaves, notes = _leaves(values)
        claims: dict[str, list[_Claim]] = {}
        off = _switched_off(leaves)
        for depth, key, value in leaves:
            is_off = off and _SWITCH.search(key) is None and any(key.startswith(section) for section in off)
            claimed = [_unknown(key, value, source, depth)] if is_off else _claims(key, value, source, depth, within)
            for claim in claimed:
                claims.setdefault(claim.setting.name, []).append(claim)
        found: dict[str, Setting] = {}
        for name, each in claims.items():
            chosen, *others = sorted(each, key=attrgetter("rank"))
            found[name] = chosen.setting
            unknown = [claim.setting for claim in others if not claim.setting.known]
            found |= {
                shorten(setting.key, 120): replace(setting, name=shorten(setting.key, 120)) for setting in unknown
            }
            other = next((claim.setting for claim in others if _differs(claim.setting, chosen.setting)), None)
            if other is not None and chosen.setting.known and len(notes) < MAX_NOTES:
                notes.append(f"{name} is read from {_shown(chosen.setting)}; {_shown(other)} is left out")
        return cls(found, tuple(notes))

    def of_a_policy(self, records: int) -> Settings:
        """Return the settings of a policy's trainer, whose steps and epochs may be those of one update.

        A rollout has `n_steps`, and one batch of them is learnt from `n_epochs` or `num_iterations` times; iterations
        are a plan where they are more than were logged.

        `records` are those of the log.
        """
        found: dict[str, Setting] = {}
        for name, setting in self.items_by_name.items():
            own = _OF_AN_UPDATE.get(re.split(r"[/.]", setting.key)[-1].lower(), name)
            planned = own == "num_iterations" and isinstance(setting.value, int | float) and setting.value >= records
            new = name if own == name or planned or own in self.items_by_name else own
            found[new] = replace(setting, name=new)
        return Settings(found, self.notes)

    @classmethod
    def merged(cls, *settings: Settings) -> Settings:
        """Return the settings of several sources; what an earlier one says stands."""
        found: dict[str, Setting] = {}
        for setting in reversed(settings):
            found.update(setting.items_by_name)
        return cls(found, tuple(dict.fromkeys(note for setting in settings for note in setting.notes)))

    def __getitem__(self, name: str) -> Setting:
        return self.items_by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.items_by_name)

    def __len__(self) -> int:
        return len(self.items_by_name)

    def __repr__(self) -> str:
        return f"<Settings {', '.join(f'{name}={setting.value!r}' for name, setting in self.items_by_name.items())}>"

    @cached_property
    def flat(self) -> Mapping[str, Scalar]:
        """The plain values by name; a list of one value is that value, longer lists are left out."""
        flat: dict[str, Scalar] = {}
        for name, setting in self.items_by_name.items():
            if not isinstance(setting.value, tuple):
                flat[name] = setting.value
            elif len(setting.value) == 1:
                flat[name] = setting.value[0]
        return flat

    @property
    def known(self) -> tuple[Setting, ...]:
        """The settings that are known."""
        return tuple(setting for setting in self.items_by_name.values() if setting.known)

    def number(self, *names: str) -> float | None:
        """Return the first of some settings that is a number."""
        for name in names:
            number = number_of(self.flat.get(name))
            if number is not None:
                return float(number)
        return None

    def flag(self, name: str) -> bool | None:
        """Return whether a setting is true; None where it is not there, null or no truth."""
        return flag_of(self.flat.get(name))

    def text(self, *names: str) -> str:
        """Return the first of some settings that is a text, in lower case; "" where there is none."""
        for name in names:
            value = self.flat.get(name)
            if isinstance(value, str) and value:
                return value.lower()
        return ""

    def numbers(self, name: str) -> tuple[float, ...]:
        """Return the numbers of a setting that is a list or a number."""
        setting = self.items_by_name.get(name)
        values = () if setting is None else setting.value if isinstance(setting.value, tuple) else (setting.value,)
        return tuple(float(number) for value in values if (number := number_of(value)) is not None)


@dataclass(frozen=True, slots=True)
class _Claim:
    setting: Setting
    rank: tuple[bool, bool, bool, int, int]


def _claims(key: str, value: Value, source: str, depth: int, within: str) -> Iterator[_Claim]:
    by_optimizer = _of_an_optimizer(key, value)
    for name, set_to in by_optimizer.items():
        yield _Claim(Setting(name, set_to, key, source, known=True), (False, True, True, depth, 0))
    if "learning_rate" in by_optimizer:
        return
    for match in settings_of(key, within):
        if depth and match.weak and match.name == "learning_rate" and match.words < 2 and not _is_in_optimizer(key):
            continue  # `data/rate` is that of something else
        typed = _typed(match, value)
        for name, typed_value in (typed or {}).items():
            setting = Setting(name, typed_value, key, source, known=True)
            yield _Claim(
                setting, (typed_value is None or typed_value == -1, match.weak, match.words < 2, depth, -match.words)
            )
        if typed is not None:
            return
    yield _unknown(key, value, source, depth)


def _is_in_optimizer(key: str) -> bool:
    around = words_of(key.rpartition("/")[0])
    return "optimizer" in around or not OPTIMIZERS.isdisjoint(around)


def _of_an_optimizer(key: str, value: Value) -> dict[str, Value]:
    """Return the optimizer and its learning rate where a key or a value gives both.

    `adam: 0.002`, `opt: sgd 0.03`, and the optimizer that its section is called by: `adam/lr`.
    """
    *around, last = key.lower().split("/")
    if last in OPTIMIZERS:
        rate = number_of(value)
        if rate is not None and 0 < rate <= MAX_LEARNING_RATE:
            return {"optim": last, "learning_rate": rate}
        return {"optim": last} if value is True else {}
    both = _WITH_ITS_RATE.fullmatch(value) if isinstance(value, str) else None
    if both is not None and both["name"].lower() in OPTIMIZERS:
        rate = number_of(both["rate"])
        if rate and any(match.name == "optim" for match in settings_of(key)):
            return {"optim": both["name"], "learning_rate": rate}
    is_of_section = (
        around and around[-1] in OPTIMIZERS and any(match.name == "learning_rate" for match in settings_of(key))
    )
    return {"optim": around[-1]} if is_of_section else {}


def _unknown(key: str, value: Value, source: str, depth: int) -> _Claim:
    return _Claim(Setting(shorten(plain_name(key), 120), value, key, source), (False, False, False, depth, 0))


def _switched_off(leaves: Sequence[tuple[int, str, Value]]) -> tuple[str, ...]:
    """Return how keys begin that a configuration switches off.

    Detectron2's `CLIP_GRADIENTS` with `ENABLED: false`, and `lora_rank` with `lora: false`.
    """
    off = [key for _, key, value in leaves if flag_of(value) is False]
    sections = [_SWITCH.sub("/", key) for key in off if _SWITCH.search(key)]
    adapters = [_ADAPTERS_SWITCH.sub("", key) for key in off if _ADAPTERS_SWITCH.search(key)]
    return (*sections, *(f"{place}{word}_" for place in adapters for word in ("lora", "peft")))


def _typed(match: Match, value: Value) -> dict[str, Value] | None:
    """Return the settings that a value stands for, None for other values."""
    kind = PHRASES[match.name].kind
    if isinstance(value, str) and kind != TEXT:
        value = _plain(value_in(value))  # stores keep "None", "[0.9, 0.95]" and "True" as text
    if value is None or (isinstance(value, str) and value.lower() == "auto"):
        return {match.name: value}
    if match.name == "betas":
        return dict(zip(_ADAM, _listed(value), strict=False)) or None
    if kind == NUMBER:
        return _typed_number(match, _listed(value))
    if kind == FLAG:
        flag = flag_of(value)
        return None if flag is None else {match.name: flag}
    several = value if isinstance(value, tuple) else (value,)
    is_text = bool(several) and all(isinstance(item, str) for item in several)
    return {match.name: value} if kind == ANY or is_text else None


def _typed_number(match: Match, numbers: tuple[int | float, ...]) -> dict[str, Value] | None:
    name = match.name
    if len(numbers) != 1:
        return {name: numbers} if numbers else None
    (number,) = numbers
    if name == "train_rows" and (number < 2 or number % 1):
        return None  # `train: 0.8` is a share, and `train: 1` a switch
    if name == "learning_rate" and match.weak and not 0 < number <= MAX_LEARNING_RATE:
        return None  # `rate: 16000` is of a sound, and `step_size: 30` of a schedule
    is_share = name == "warmup_steps" and isinstance(number, float) and 0 < number < 1
    return {"warmup_ratio" if is_share else name: number}


def _listed(value: Value) -> tuple[int | float, ...]:
    """Return the numbers of a value, () if any of it is none."""
    values: Sequence[Scalar] = value if isinstance(value, tuple) else (value,)
    numbers = tuple(number for item in values if (number := number_of(item)) is not None)
    return numbers if len(numbers) == len(values) else ()


def _differs(setting: Setting, other: Setting) -> bool:
    return setting.value is not None and setting.value not in (-1, other.value)


def _shown(setting: Setting) -> str:
    return f"{shorten(setting.key, 60)!r} ({shorten(str(setting.value), 40)})"


def _leaves(values: Mapping[str, object]) -> tuple[list[tuple[int, str, Value]], list[str]]:
    """Return the depth, key and value of all plain values, outermost first, and notes on what was left out."""
    found: list[tuple[int, str, Value]] = []
    level: list[tuple[str, object]] = [("", values)]
    nodes, deep = 0, 0
    for depth in range(MAX_DEPTH + 1):
        below: list[tuple[str, object]] = []
        for prefix, holder in level:
            for key, raw in _entries(holder):
                nodes += 1
                if nodes > MAX_NODES or len(found) >= MAX_KEYS:
                    return found, [f"only the first {MAX_KEYS:,} keys of a configuration are read"]
                name = f"{prefix}{shorten(str(key), 200)}"
                value = _unwrapped(raw)
                plain = _plain(value)
                if plain is not None or value is None:
                    found.append((depth, name, plain))
                elif isinstance(value, (Mapping, list, tuple)) and value:
                    below.append((f"{name}/", value))
        level, deep = below, depth
        if not level:
            return found, []
    return found, [f"keys of a configuration below {deep} levels are not read"]


def _entries(holder: object) -> Iterator[tuple[object, object]]:
    if isinstance(holder, Mapping):
        yield from ((key, value) for key, value in holder.items() if not str(key).startswith("_wandb"))
    elif isinstance(holder, (list, tuple)):
        yield from enumerate(holder[:LEAST_LISTED])


_AROUND_A_VALUE = frozenset({"value", "desc", "sort", "description", "name", "section", "type"})
"""What stands around a value in the configuration of a tracker."""


def _unwrapped(value: object) -> object:
    """Configurations of W&B, SwanLab and ClearML wrap each value: {"lr": {"value": 0.1, "desc": null}}."""
    if isinstance(value, Mapping) and "value" in value and set(value) <= _AROUND_A_VALUE:
        return value["value"]
    return value


def _plain(value: object) -> Value:
    """Return a plain value or list of plain values, None for anything else; what no float can hold is infinite."""
    if isinstance(value, (bool, int, float)):
        return value if isinstance(value, float) or abs(value) < 1 << 1000 else math.inf
    if isinstance(value, str):
        return shorten(value, MAX_TEXT)
    if isinstance(value, (list, tuple)) and value:
        items = [_plain(raw) if not isinstance(raw, (list, tuple)) else None for raw in value[:MAX_ITEMS]]
        if all(item is not None or raw is None for item, raw in zip(items, value, strict=False)):
            return tuple(item for item in items if not isinstance(item, tuple))
    return None
