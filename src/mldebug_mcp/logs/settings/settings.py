"""`Settings`: a configuration as facts, typed, by canonical name, each with where it stands.

Values are read from their text first; what follows from the settings of a run together stands last.
"""

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
from mldebug_mcp.logs.numbers import special_number

# One tolerant parser reads dictionaries, JSON, and what `print` makes of a Namespace, a dataclass or TrainingArguments:
# nothing is evaluated.


# Values of settings: what configurations and command lines spell as text becomes flags, numbers, lists and text.

Scalar = str | float | int | bool | None
Value = Scalar | tuple[Scalar, ...]
"""A setting's value; a list of plain values is kept as a tuple."""

MAX_TEXT = 500
"""Characters of a value that are kept."""
MAX_ITEMS = 64
"""Items of a list that are kept."""

_WORDS: dict[str, bool | None] = {
    "true": True, "false": False, "none": None, "null": None, "~": None,
}  # fmt: skip
_FLAGS = {"yes": True, "on": True, "no": False, "off": False, "1": True, "0": False}
_NUMBER_WITH_UNIT = regex(r"([-+]?(?:\d[\d_]*(?:,\d{3})*(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,4})?)\s?([kKmMbBgG%]?)")
_FACTORS = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "%": 0.01}
MAX_DIGITS = 64


def parse_value(text: str) -> Scalar:
    """Return what a bare text stands for: None, a flag, a number, or the text without its quotes.

    Letters for thousands ("2k") are left to `number_of`: "16b" may be a name.
    """
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return shorten(text[1:-1], MAX_TEXT)
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    found = _NUMBER_WITH_UNIT.fullmatch(text) if len(text) <= MAX_DIGITS else None
    return shorten(text, MAX_TEXT) if found is None or found[2] else _as_number(found[1])


def number_of(value: object) -> int | float | None:
    """Return the number that a value spells ("3e-4", "100_000", "2k", "0.1%" = 0.001), None if it spells none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return value if isinstance(value, float) or abs(value) < 1 << 1000 else None
    if not isinstance(value, str) or len(value) > MAX_DIGITS:
        return None
    text = value.strip().strip("'\"")
    found = _NUMBER_WITH_UNIT.fullmatch(text)
    if found is None:
        return special_number(text.lower())
    number, factor = _as_number(found[1]), _FACTORS[found[2].lower()]
    return number if factor == 1 else number * factor


def flag_of(value: object) -> bool | None:
    """Return the truth that a value spells (true, "False", 1, "no"), None if it spells none."""
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return bool(value) if value in (0, 1) else None
    text = value.strip().lower() if isinstance(value, str) else ""
    return _FLAGS.get(text, _WORDS.get(text))


def _as_number(digits: str) -> int | float:
    plain = digits.replace("_", "").replace(",", "")
    return int(plain) if plain.lstrip("+-").isdigit() else float(plain)


# Printed objects: dictionaries, JSON, and what `print` makes of a Namespace, a dataclass or TrainingArguments.

MAX_OBJECT_DEPTH = 20
MAX_OBJECT = 200_000
"""Characters of a printed object that are read."""

_SPACE = regex(r"\s*")
_STRING = regex(r"[rbuf]?(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\")", re.DOTALL)
_NAMED = regex(r"([A-Za-z_][\w.]{0,120})\s*\(")
_KEYWORD = regex(r"([A-Za-z_]\w{0,120})\s*=(?!=)\s*")
_ENUM = regex(r"<[\w.]+(?::\s*([^<>\n]{1,200}))?>")
_BARE = regex(r"[^,(){}\[\]\n:=]*(?::(?!\s)[^,(){}\[\]\n]*)?")
_BARE_ITEM = regex(r"[^,)}\]\n]*")
_ESCAPED = regex(r"\\(.)", re.DOTALL)
_CLOSING = {"{": "}", "[": "]", "(": ")"}


class NotAnObjectError(ValueError):
    """The text is not a printed object."""


def parse_object(text: str, start: int = 0) -> tuple[object, int]:
    """Return the object printed at a place of a text, and where it ends.

    `Namespace(lr=0.1)` and `{'lr': 0.1}` are mappings, `(0.9, 0.95)` is a list, `<Strategy.STEPS: 'steps'>` is "steps".

    Raises:
        NotAnObjectError: there is none, it is cut off, or it is nested too deeply.
    """
    return _Parser(text[: start + MAX_OBJECT]).value(start, 0)


def mapping_at(text: str, start: int = 0) -> dict[str, object]:
    """Return the mapping that is printed at a place of a text, empty where there is none or it is cut off."""
    try:
        value, _ = parse_object(text, start)
    except NotAnObjectError:
        return {}
    return value if isinstance(value, dict) else {}


def value_in(text: str) -> object:
    """Return what the text behind a key stands for: a plain value, or a printed list or mapping."""
    if text[:1] and text[:1] in "[({":
        try:
            return parse_object(text)[0]
        except NotAnObjectError:
            return text
    return parse_value(text)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text

    def value(self, at: int, depth: int) -> tuple[object, int]:
        if depth > MAX_OBJECT_DEPTH:
            raise NotAnObjectError("nested too deeply")
        at = self._skip(at)
        sign = self._text[at : at + 1]
        if sign == "{":
            return self._items(at + 1, "}", depth)
        if sign and sign in "[(":
            return self._items(at + 1, _CLOSING[sign], depth)
        string = _STRING.match(self._text, at)
        if string:
            raw = string[1] if string[1] is not None else string[2]
            return shorten(_ESCAPED.sub(r"\1", raw), MAX_TEXT) if raw else "", string.end()
        named = _NAMED.match(self._text, at)
        if named:
            inner, end = self._items(named.end(), ")", depth)
            return _of_a_call(named[1], inner), end
        enum = _ENUM.match(self._text, at)
        if enum:
            return parse_value(enum[1] or enum[0]), enum.end()
        bare = _BARE_ITEM.match(self._text, at)
        assert bare is not None  # noqa: S101 - it matches nothing too
        return parse_value(bare[0]), bare.end()

    def _items(self, at: int, closing: str, depth: int) -> tuple[object, int]:
        """Read what stands between brackets: pairs make a mapping, values a list."""
        pairs: dict[str, object] = {}
        values: list[object] = []
        while True:
            at = self._skip(at)
            if at >= len(self._text):
                raise NotAnObjectError("cut off")
            if self._text[at] == closing:
                holds = closing == ")" and values and isinstance(values[0], float | int | list)  # array([1], dtype=...)
                return (values if holds else pairs or (values if closing != "}" else {})), at + 1
            if self._text[at] == ",":
                at += 1
                continue
            before = at
            keyword = _KEYWORD.match(self._text, at) if closing == ")" else None
            if keyword:
                pairs[keyword[1]], at = self.value(keyword.end(), depth + 1)
            elif closing == "}":
                key, at = self._key(at, depth)
                pairs[key], at = self.value(at, depth + 1)
            else:
                value, at = self.value(at, depth + 1)
                values.append(value)
            if at == before:
                raise NotAnObjectError("a bracket that was not opened")

    def _key(self, at: int, depth: int) -> tuple[str, int]:
        string = _STRING.match(self._text, at)
        if string:
            key, at = str(string[1] if string[1] is not None else string[2]), string.end()
        elif self._text[at] in "(<":
            value, at = self.value(at, depth + 1)
            key = str(value)
        else:
            bare = _BARE.match(self._text, at)
            assert bare is not None  # noqa: S101 - it matches nothing too
            key, at = bare[0].strip(), bare.end()
        at = self._skip(at)
        if self._text[at : at + 1] != ":":
            raise NotAnObjectError("a key without a value")
        return key, at + 1

    def _skip(self, at: int) -> int:
        space = _SPACE.match(self._text, at)
        return at if space is None else space.end()


def _of_a_call(name: str, inner: object) -> object:
    """Return the arguments of a printed object; of one with a single value, as `PosixPath('x')`, that value."""
    if isinstance(inner, dict) and inner:
        return inner
    if isinstance(inner, list) and len(inner) == 1:
        return inner[0]
    return inner or name


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

    @property
    def last_part(self) -> str:
        """The last part of its key: `lr` of "optimizer/lr" and of "optimizer.lr"."""
        return re.split(r"[/.]", self.key)[-1]


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
            # Of two widths, `emsize` and `nhid`, one is the hidden size, and the other keeps its own name.
            own = [claim.setting for claim in others if not claim.setting.known or claim.is_another(chosen)]
            keys = {shorten(setting.key, 120): setting for setting in own}
            found |= {key: replace(setting, name=key, known=False) for key, setting in keys.items()}
            differing = (claim.setting for claim in others if _differs(claim.setting, chosen.setting))
            other = next((setting for setting in differing if setting not in own), None)
            if other is not None and chosen.setting.known and len(notes) < MAX_NOTES:
                notes.append(f"{name} is read from {_setting_text(chosen.setting)}; {_setting_text(other)} is left out")
        return cls(found, tuple(notes))

    def of_a_policy(self, records: int) -> Settings:
        """Return the settings of a policy's trainer, whose steps and epochs may be those of one update.

        A rollout has `n_steps`, and one batch of them is learnt from `n_epochs` or `num_iterations` times; iterations
        are a plan where they are more than were logged.

        `records` are those of the log.
        """
        found: dict[str, Setting] = {}
        for name, setting in self.items_by_name.items():
            own = _OF_AN_UPDATE.get(setting.last_part.lower(), name)
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

    def is_another(self, chosen: _Claim) -> bool:
        """Whether the key only resembles the names of the setting and has another value than the one that is taken."""
        return self.setting.known and self.rank[1] and _differs(self.setting, chosen.setting)


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


PLAIN_WORDS = 2
"""Words from which on a key says what steps it counts: `max_steps`, and not `STEPS`."""
_COUNTS_OF_STEPS = frozenset({"max_steps", "n_steps"})
"""Where several numbers stand for one of these, they are the steps at which the learning rate falls."""


def _typed_number(match: Match, numbers: tuple[int | float, ...]) -> dict[str, Value] | None:
    name = match.name
    if len(numbers) != 1:
        is_count = name in _COUNTS_OF_STEPS and match.words < PLAIN_WORDS
        name = "lr_milestones" if is_count or name == "lr_decay_steps" else name
        return {name: numbers} if numbers else None
    (number,) = numbers
    if name in ("train_rows", "eval_rows") and (number < 2 or number % 1):
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


def _setting_text(setting: Setting) -> str:
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


# What follows from the settings of a run, and from its settings and metrics together; None is not known.


LANGUAGE_MODELS = frozenset({"pretraining", "sft", "preference", "grpo", "ppo"})
POLICIES = frozenset({"grpo", "ppo", "rl"})
"""Kinds of run whose model predicts tokens: a number of classes is only a default of some library."""

_HALF = frozenset({"fp16", "float16", "half", "16", "16 mixed", "fp16 mixed", "16 true", "torch float16", "f16"})
_BRAIN = frozenset({"bf16", "bfloat16", "bf16 mixed", "bf16 true", "torch bfloat16"})
_SINGLE = frozenset(
    {"no", "false", "none", "fp32", "float32", "32", "32 true", "single", "full", "tf32", "torch float32", "64",
     "float64", "fp64", "double"}
)  # fmt: skip
_HOW = frozenset({"pure", "only", "weights", "params", "autocast", "amp"})
"""Words that say for what a number format is used."""
_EIGHT = ("fp8", "float8", "e4m3", "transformer engine")
_PRECISIONS = ("mixed_precision", "precision", "amp_dtype", "compute_type", "dtype")


@dataclass(frozen=True, slots=True)
class Schedule:
    """The schedule of the learning rate as configured.

    Args:
        kind: Its name, in lower case.
        peak: Its highest rate.
        floor: Its last rate.
        warmup_steps: Steps until the peak, from their number, or from their share of the plan or of a pass.
    """

    kind: str | None
    peak: float | None
    floor: float | None
    warmup_steps: float | None


@dataclass(frozen=True, slots=True)
class Optimizer:
    """The optimizer as configured."""

    name: str | None
    betas: tuple[float | None, float | None]
    epsilon: float | None
    momentum: float | None
    weight_decay: float | None


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a run besides its curves.

    Args:
        classes: Classes that a classifier tells apart; None in a language model, whatever its configuration says.
        tokens: Tokens that a language model predicts; None in anything else.
        effective_batch: Rows of one update: per device x accumulation x world.
        steps_per_update: Steps of the log in one update: 1, or the rows of a batch where the log counts rows.
        steps_per_pass: Steps of the log in one pass over the data.
        plan: Steps of the log that are planned.
        precision: "fp16", "bf16", "fp8" or "fp32"; "not fp16" where no more is known.
        schedule: The schedule as configured.
        optimizer: The optimizer as configured.
        clip: Norm to which gradients are clipped; infinity where clipping is explicitly off.
    """

    classes: float | None
    tokens: float | None
    effective_batch: float | None
    steps_per_update: float
    steps_per_pass: float | None
    plan: float | None
    precision: str | None
    schedule: Schedule
    optimizer: Optimizer
    clip: float | None

    def passes_at(self, step: float) -> float | None:
        """Return how many passes over the data were made at a step."""
        return None if not self.steps_per_pass else step / self.steps_per_pass


def facts_of(
    settings: Settings, kind: str, steps_per_epoch: float | None = None, axis: tuple[float, float] = (0.0, 1.0)
) -> Facts:
    """Derive the facts of a run.

    Args:
        settings: Its configuration.
        kind: Its kind.
        steps_per_epoch: Steps in an epoch as the log counts them, where it counts both.
        axis: The last step of the log, and the usual distance of two records.
    """
    is_language = kind in LANGUAGE_MODELS
    rows, batch = _positive(settings, "train_rows"), effective_batch(settings)
    counted = -(-rows // batch) if rows and batch else None
    updates = _positive(settings, "steps_per_epoch") or counted
    planned = _plan(settings, updates or steps_per_epoch)
    counts_rows = kind not in POLICIES and batch is not None and _counts_rows(
        batch, updates, planned, steps_per_epoch, axis
    )  # fmt: skip
    unit = batch if counts_rows and batch else 1.0
    per_pass = steps_per_epoch if counts_rows else _positive(settings, "steps_per_epoch") or steps_per_epoch
    per_pass = per_pass or (rows if counts_rows else None) or (updates * unit if updates else None)
    plan = _plan(settings, per_pass / unit if per_pass else None)
    warmup = _warmup(settings, plan, per_pass / unit if per_pass else None, batch)
    return Facts(
        classes=None if is_language else _positive(settings, "num_labels"),
        tokens=_positive(settings, "vocab_size") if is_language or kind == "unknown" else None,
        effective_batch=batch,
        steps_per_update=unit,
        steps_per_pass=per_pass,
        plan=plan * unit if plan else None,
        precision=precision_of(settings),
        schedule=Schedule(
            kind=settings.text("lr_scheduler_type") or None,
            peak=settings.number("learning_rate"),
            floor=settings.number("min_learning_rate"),
            warmup_steps=warmup * unit if warmup else warmup,
        ),
        optimizer=Optimizer(
            name=settings.text("optim") or None,
            betas=(settings.number("adam_beta1"), settings.number("adam_beta2")),
            epsilon=settings.number("adam_epsilon"),
            momentum=settings.number("momentum"),
            weight_decay=settings.number("weight_decay"),
        ),
        clip=_clip(settings, kind),
    )


NEAR_ROWS, BEYOND_PLAN = 0.05, 1.05
"""Share by which the steps of an epoch differ from the rows of a pass where a log counts rows. Times the planned
updates beyond which its steps are no updates. Chosen: the last batch of a pass is smaller."""


def _counts_rows(
    batch: float, updates: float | None, planned: float | None, per_epoch: float | None, axis: tuple[float, float]
) -> bool:
    """Say whether the steps of a log count rows instead of updates.

    `updates` are those of a pass, `planned` those of the plan; `axis` is the last step and the distance of two records.
    """
    last, interval = axis
    if batch < 2 or interval < batch or interval % batch:
        return False
    if per_epoch is not None and updates is not None:
        return abs(per_epoch / (updates * batch) - 1) < NEAR_ROWS + 1 / updates
    return planned is not None and BEYOND_PLAN * planned < last <= BEYOND_PLAN * planned * batch


def precision_of(settings: Settings) -> str | None:
    """Return in what precision a run computes: an explicit false refutes, what is not named is not known."""
    for flag in ("fp8", "fp16", "bf16"):
        if settings.flag(flag):
            return flag
    named = [_precision_named(str(settings[name].value)) for name in _PRECISIONS if _is_given(settings, name)]
    found = next((text for text in named if text is not None), None)
    if found is not None:
        return found
    refuted = [settings.flag(flag) is False for flag in ("fp16", "bf16")]
    if settings.flag("amp") is False or settings.flag("mixed_precision") is False or all(refuted):
        # Weights in half precision are computed with as they are where no autocast is asked for.
        return _precision_named(settings.text("torch_dtype")) or "fp32"
    return _precision_named(settings.text("torch_dtype")) or ("not fp16" if refuted[0] else None)


_KEPT_IN = regex(r"(?:dtype|precision)$", re.IGNORECASE, needs=("dtype", "precision"))


def formats_kept_in(settings: Settings) -> list[tuple[str, str]]:
    """Return the settings that name a number format, each with the format: `ema_dtype`, `state_precision`."""
    named = [
        (setting.key, _precision_named(str(setting.value)))
        for setting in settings.values()
        if _KEPT_IN.search(setting.key)
    ]
    return [(key, precision) for key, precision in named if precision is not None]


def _precision_named(text: str) -> str | None:
    words = " ".join(text.lower().replace("-", " ").replace("_", " ").replace(".", " ").split())
    if any(name in words for name in _EIGHT):
        return "fp8"
    kept = " ".join(word for word in words.split() if word not in _HOW) or words
    for name, known in (("fp16", _HALF), ("bf16", _BRAIN), ("fp32", _SINGLE)):
        if words in known or kept in known:
            return name
    return None


def _is_given(settings: Settings, name: str) -> bool:
    return name in settings and settings[name].value is not None


def _positive(settings: Settings, name: str) -> float | None:
    number = settings.number(name)
    return number if number is not None and 0 < number < float("inf") else None


def effective_batch(settings: Settings) -> float | None:
    """Return the rows of one update: per device x accumulation x world; None where the settings do not say."""
    whole = _positive(settings, "global_batch_size")
    if whole:
        return whole
    each = _positive(settings, "per_device_train_batch_size")
    if not each:
        return None
    nodes = _positive(settings, "nnodes") or 1.0
    processes = (_positive(settings, "nproc_per_node") or 0.0) * nodes
    world = max(_positive(settings, "world_size") or 1.0, processes)  # Transformers' n_gpu is that of one process
    accumulation = _positive(settings, "gradient_accumulation_steps")
    if accumulation is None and "update_freq" in settings and isinstance(settings["update_freq"].value, tuple):
        accumulation = _positive(settings, "update_freq")  # fairseq's: a list, of one number for all epochs
    return each * (accumulation or 1.0) * world


def _plan(settings: Settings, per_pass: float | None) -> float | None:
    steps = _positive(settings, "max_steps")
    epochs = _positive(settings, "num_train_epochs")
    return steps or (epochs * per_pass if epochs and per_pass else None)


def _warmup(settings: Settings, plan: float | None, per_pass: float | None, batch: float | None) -> float | None:
    """Return the steps of warm-up; in TrainingArguments a number of steps goes before a share."""
    steps = settings.number("warmup_steps")
    ratio, epochs, rows = (settings.number(f"warmup_{unit}") for unit in ("ratio", "epochs", "samples"))
    if steps:
        return steps
    if ratio is not None and 0 < ratio <= 1 and plan:
        return ratio * plan
    if epochs and per_pass:
        return epochs * per_pass
    return rows / batch if rows and batch else steps if not ratio else None


def _clip(settings: Settings, kind: str) -> float | None:
    """Return where gradients are clipped; a bare `clip` of who trains a policy is that of the policy's ratio."""
    if "max_grad_norm" not in settings:
        return None
    if kind in POLICIES and settings["max_grad_norm"].key.rpartition("/")[2].lower() == "clip":
        return None
    clip = settings.number("max_grad_norm")
    return clip if clip is not None and clip > 0 else float("inf")
