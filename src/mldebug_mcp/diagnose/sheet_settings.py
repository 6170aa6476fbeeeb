"""The settings that matter, each marked with what is usual where it is not."""

from __future__ import annotations

import math
from collections.abc import Iterator

from mldebug_mcp.logs import Run
from mldebug_mcp.logs.settings.settings import Setting
from mldebug_mcp.logs.settings.values import Value
from mldebug_mcp.logs.settings.vocabulary import PHRASES
from mldebug_mcp.measure.scale import uniform_loss
from mldebug_mcp.measure.usual import usual_instead
from mldebug_mcp.measure.usual_rates import usual_rates
from mldebug_mcp.models.sheet import SettingFact
from mldebug_mcp.symptoms.registry import CannotTell
from mldebug_mcp.text import figure, shorten

MOST_OTHERS = 30
"""Settings that are not known by name and are told all the same."""
LONGEST_VALUE, LONGEST_OTHER = 60, 30
SLACK = 2.0
"""How far outside of a usual range a learning rate lies to be marked. Chosen: half of what makes it a symptom."""
_LAST = ("logging_steps", "eval_steps", "save_steps", "eval_strategy", "seed", "local_rank", "num_workers", "dataset",
         "per_device_eval_batch_size", "eval_rows", "framework", "tokenizer", "nnodes", "nproc_per_node")  # fmt: skip
"""Known settings that say least of how training goes."""
_TRIVIAL = ("path", "dir", "url", "host", "port", "run_id", "run_name", "tags", "notes", "date", "time", "wandb", "hub",
            "token", "version", "cache", "report_to", "user", "file", "prefix", "push", "save", "logging", "debug",
            "display", "verbose", "project", "name", "eos", "bos", "pad_", "ddp", "fsdp", "deepspeed")  # fmt: skip
"""Parts of names of settings that are not known and say nothing of how training goes."""


def setting_facts(run: Run) -> list[SettingFact]:
    """Return the settings: unusual ones first, then what follows from several, the known, and some of the others."""
    facts = [*_derived(run), *_known(run), *_others(run)]
    return sorted(facts, key=lambda one: not one.usual)


def _derived(run: Run) -> Iterator[SettingFact]:
    facts = run.facts
    if facts.effective_batch:
        usual = "" if run.kind == "rl" else usual_instead(run, "effective_batch", facts.effective_batch)
        yield SettingFact(name="effective_batch", value=figure(facts.effective_batch), usual=usual)
    uniform = uniform_loss(run)
    if uniform is not None:
        yield SettingFact(name="loss_of_a_uniform_guess", value=f"{figure(uniform)} = ln({figure(math.exp(uniform))})")
    if facts.precision:
        yield SettingFact(name="computes_in", value=facts.precision)
    passes = facts.passes_at(facts.plan) if facts.plan else None
    if passes is not None:
        usual = usual_instead(run, "planned_passes", passes)
        yield SettingFact(name="planned_passes", value=figure(passes), usual=usual)


def _known(run: Run) -> Iterator[SettingFact]:
    order = {name: at for at, name in enumerate(PHRASES)}
    known = [one for one in run.settings.known if not _is_path(one.value)]
    for one in sorted(known, key=lambda one: (one.name in _LAST, order.get(one.name, len(order)))):
        yield SettingFact(name=one.name, value=_shown(one.value), usual=_usual(run, one))


def _is_path(value: Value) -> bool:
    return isinstance(value, str) and "/" in value and len(value) > LONGEST_VALUE


def _others(run: Run) -> list[SettingFact]:
    """Return settings that are not known: switches and numbers before words, without what says where things are."""
    others = [
        one
        for one in run.settings.values()
        if not one.known and one.value is not None and not any(word in one.name.lower() for word in _TRIVIAL)
    ]
    others.sort(key=lambda one: (isinstance(one.value, str), one.key.count("/")))
    return [SettingFact(name=one.name, value=shorten(_shown(one.value), LONGEST_OTHER)) for one in others[:MOST_OTHERS]]


def _usual(run: Run, setting: Setting) -> str:
    value = setting.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "true" if setting.name == "shuffle" and value is False else ""
    if setting.name == "learning_rate":
        return _usual_rate(run, float(value))
    return usual_instead(run, setting.name, float(value))


def _usual_rate(run: Run, rate: float) -> str:
    try:
        ranges = usual_rates(run)
    except CannotTell:
        return ""
    if any(one.low / SLACK <= rate <= one.high * SLACK for one in ranges):
        return ""
    return " or ".join(f"{figure(one.low)} to {figure(one.high)} for {one.usual_for}" for one in ranges)


def _shown(value: Value) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(_shown(one) for one in value[:8]) + ("" if len(value) <= 8 else ", …") + "]"
    if isinstance(value, bool) or value is None:
        return "null" if value is None else str(value).lower()
    return figure(float(value)) if isinstance(value, int | float) else shorten(value, LONGEST_VALUE)
