"""The fix of a cause without what the settings of the run have already."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mldebug_mcp.diagnose.mechanisms import warmed_up
from mldebug_mcp.logs import Run
from mldebug_mcp.measure.usual import USUAL
from mldebug_mcp.models import Hypothesis
from mldebug_mcp.text import figure


@dataclass(frozen=True, slots=True)
class Advice:
    """A piece of advice that a setting can make needless.

    Args:
        words: How it begins, in the fixes of PLAYBOOK.md.
        in_place: What shows that a run does so already, in words; None where it does not, or does not say.
    """

    words: re.Pattern[str]
    in_place: Callable[[Run], str | None]


def _clipped(run: Run) -> str | None:
    clip = run.facts.clip
    works = clip is not None and 0 < clip <= USUAL["max_grad_norm"][0].marked[1]
    return f"gradients are clipped at {figure(clip)} already" if works and clip is not None else None


def _warmed_up(run: Run) -> str | None:
    return f"{seen} already" if (seen := warmed_up(run)) else None


def _shuffled(run: Run) -> str | None:
    return "shuffle is on already" if run.settings.flag("shuffle") else None


def _in_bf16(run: Run) -> str | None:
    return "it computes in bf16 already" if run.facts.precision == "bf16" else None


_ADVICE = (
    Advice(re.compile(r"(?:keep |use )?(?:clip gradients|clip by global norm|gradient clipping|clipping)"), _clipped),
    Advice(re.compile(r"(?:lengthen|longer) warm-?up|warm up over"), _warmed_up),
    Advice(re.compile(r"`shuffle=True`"), _shuffled),
    Advice(re.compile(r"(?:use )?bf16 (?:where|instead)"), _in_bf16),
)
_SETTING = re.compile(r"(?:set |with |by )?\(?`(\w+)=([^`]+)`")
"""A setting that a fix names with its value."""
_PIECES = re.compile(r"((?:; |, |(?<=[.)]) )(?:and |or |then )?)")
_GOES_ON = ("which ", "that ", "as ")
"""How a piece begins that is about the one before."""


def without_what_is_done(run: Run, hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Return the hypotheses, their fixes without what the settings of the run have already."""
    return [one.model_copy(update={"fix": fitting(run, one.fix)}) if one.fix else one for one in hypotheses]


def fitting(run: Run, fix: str) -> str:
    """Return a fix without what is done already, which is named in front of it.

    A fix that is done whole is kept, with the remark: whether it works is then what to look at.
    """
    pieces = _PIECES.split(fix)
    kept: list[str] = []
    done: list[str] = []
    dropped = False
    for text, between in zip(pieces[::2], ["", *pieces[1::2]], strict=True):
        if dropped and text.startswith(_GOES_ON):
            continue
        why = _done(run, text)
        dropped = why is not None
        if why is not None:
            done.append(why)
        else:
            kept += [between, text]
    if not done:
        return fix
    remark = "; ".join(dict.fromkeys(done))
    rest = "".join(kept[1:]) if kept else fix
    return f"{remark[:1].upper()}{remark[1:]}. {_sentence(rest)}"


def _done(run: Run, text: str) -> str | None:
    for advice in _ADVICE:
        if advice.words.match(text):
            return advice.in_place(run)
    named = _SETTING.match(text)
    if named is None:
        return None
    name, value = named.groups()
    there = run.settings.flat.get(name)
    return f"{name} is {value} already" if there is not None and _same(there, value) else None


def _same(there: object, wanted: str) -> bool:
    """Say whether a setting has the value that a fix names."""
    try:
        return math.isclose(float(str(there)), float(wanted))
    except ValueError:
        return str(there).strip("\"'").lower() == wanted.strip("\"'").lower()


def _sentence(text: str) -> str:
    text = re.sub(r"^(?:and|or|then) ", "", text)
    return f"{text[:1].upper()}{text[1:]}"
