"""Which check to make first: the one that best splits the leading hypotheses for its cost."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mldebug_mcp.diagnose.batch_call import filled_batch_call
from mldebug_mcp.diagnose.information import entropy
from mldebug_mcp.models import Hypothesis, NextStep
from mldebug_mcp.models.base import NO_FAULTS
from mldebug_mcp.text import quoted

MAX_STEPS = 5
COST = {"seconds": 1.0, "minutes": 2.0, "hours": 6.0}
"""What a check costs, relative to one that takes seconds. Chosen by hand: far flatter than time itself, because
a decisive check that takes minutes beats a weak one that takes seconds."""
NO_MESSAGE = 3.0
"""Times the cost of a check that looks up a message, where the log is one of metrics alone and holds none."""
SENSITIVITY = 0.8
FALSE_CONFIRMATION = 0.15
"""How often a check confirms a cause that is there, and one that is not. Chosen by hand: checks are read by people."""

ONLY_IN = {"In RL on language models": ("grpo", "ppo"), "In RL": ("grpo", "ppo", "rl")}
"""How a check begins that is for some kinds of run only."""
TEXT_LOGS = (".log", ".txt", ".out", ".err")
"""Endings of logs that hold messages beside metrics."""
VERBS = {
    "diagnose_run": {"path", "config", "reference"},
    "probe_overfit": {"batch", "model", "entry", "python", "device", "steps"},
    "search_folklore": {"query", "domain", "topic", "limit"},
    "explain": {"id"},
    "explain_error": {"text"},
    "inspect_batch": {"path", "tokenizer", "model", "purpose", "sample", "against"},
    "rows_at": {"path", "step", "data", "tokenizer"},
    "check_memory": {"path", "against", "focus"},
    "estimate_memory": {"config", "batch_size", "length", "precision", "optimizer", "checkpointing", "sharding"},
}
"""The tools that a next step can call, and their arguments; of other calls in PLAYBOOK.md only the words are shown."""


def possible_call(call: str | None, path: str, kind: str = "unknown", *, errors: bool = True) -> str | None:
    """Return a call from PLAYBOOK.md with the run's path filled in, or None if none of our tools takes it.

    A log in which no `errors` were found is not to be searched for one again.
    """
    if call is None:
        return None
    verb, _, arguments = call.partition("(")
    if verb not in VERBS or not set(re.findall(r"(\w+)=", arguments)) <= VERBS[verb]:
        return None
    if verb == "inspect_batch":
        return filled_batch_call(call, path, kind)
    if verb == "explain_error" and errors and path.lower().endswith(TEXT_LOGS):
        return call.replace('"MESSAGE"', quoted(path))  # it finds the first error of a log by itself
    return call.replace('"{path}"', quoted(path))


def applies(action: str, kind: str) -> bool:
    """Say whether a check is one for this kind of run: PLAYBOOK.md begins those that are not for all with "In RL"."""
    kinds = next((kinds for beginning, kinds in ONLY_IN.items() if action.startswith(beginning)), None)
    return kinds is None or kind in kinds


def looks_up_a_message(step: NextStep) -> bool:
    """Say whether a check asks for an error message of which nothing is known yet."""
    return step.call is not None and step.call.startswith("explain_error(") and '"MESSAGE"' in step.call


def _cost(step: NextStep) -> float:
    return COST[step.cost] * (NO_MESSAGE if looks_up_a_message(step) else 1.0)


def order_next_steps(hypotheses: Sequence[Hypothesis]) -> list[NextStep]:
    """Return the most useful checks over all hypotheses, best first.

    A check is worth the entropy, in bits, of the answer to "is it one of the causes that this check is about?",
    divided by its cost. Checks that make the same call are one check about several causes. One that looks up an error
    message comes late where the log can hold none. What to do if nothing is wrong, or nothing fits, is included only
    if that leads, and what the log has answered is not asked.
    """
    merged: dict[str, NextStep] = {}
    mass: dict[str, float] = {}
    for hypothesis, step in _steps(hypotheses):
        key = step.call or step.action
        known = merged.get(key)
        merged[key] = known.model_copy(update={"for_causes": [*known.for_causes, hypothesis.cause]}) if known else step
        mass[key] = mass.get(key, 0.0) + hypothesis.probability
    worth = {key: float(entropy([mass[key], 1 - mass[key]])) / _cost(step) for key, step in merged.items()}
    return [merged[key] for key in sorted(merged, key=lambda key: -worth[key])][:MAX_STEPS]


def _steps(hypotheses: Sequence[Hypothesis]) -> Iterator[tuple[Hypothesis, NextStep]]:
    """Yield every hypothesis with its checks; two checks of one hypothesis that make the same call count once."""
    for place, hypothesis in enumerate(hypotheses):
        if hypothesis.cause not in NO_FAULTS or place == 0:
            open_ones = [step for step in hypothesis.next_steps if not step.answer]
            for step in {step.call or step.action: step for step in reversed(open_ones)}.values():
                yield hypothesis, step
