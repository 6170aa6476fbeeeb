"""All runs in their order, each with the style in which it is written."""

from __future__ import annotations

import json
import random

from benchmarks.loops.dialogue import plan
from benchmarks.loops.dialogue.plan.spec import Spec
from benchmarks.loops.dialogue.styles import EPOCHED, STYLES

RL_STYLES = (
    "sb3 cleanrl plain flat wandb tensorboard bars trl_block hf_lines columns terse logger nested hf_state blocks "
    "csv_long mlflow tsv keras markdown slurm colour excel"
)


def roster() -> dict[str, Spec]:
    """All runs by name, in a mixed order that is always the same."""
    specs = plan.runs()
    random.Random(20).shuffle(specs)  # noqa: S311 - an order, not a secret
    used: dict[str, int] = {}
    for index, spec in enumerate(specs):
        ranks = {style: (used.get(style, 0), _chance(style, index)) for style in _pool(spec)}
        spec.style = min(ranks, key=ranks.__getitem__)
        used[spec.style] = used.get(spec.style, 0) + 1
    return {f"r{index + 1:03d}": spec for index, spec in enumerate(specs)}


def _pool(spec: Spec) -> list[str]:
    if spec.task in ("dqn", "control", "tokens"):
        pool = RL_STYLES.split()
    else:
        pool = [style for style in STYLES if style not in ("sb3", "cleanrl")]
    return [style for style in pool if style not in EPOCHED] if spec.fine else pool


def _chance(style: str, index: int) -> float:
    return random.Random(f"{style}{index}").random()  # noqa: S311 - an order, not a secret


def label(name: str, spec: Spec) -> str:
    """The line of a run in the index."""
    row = {
        "run": name,
        "cause": spec.cause,
        "also": list(spec.also),
        "weak": spec.weak,
        "style": spec.style,
        "task": spec.task,
        "fact": spec.fact,
    }
    return json.dumps(row)
