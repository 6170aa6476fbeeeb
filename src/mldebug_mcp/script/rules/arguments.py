"""Do arguments of optimizers and trainers contradict each other, or lie far outside of what is used?"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mldebug_mcp.script.calls import Call
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.roles import Roles

HIGHEST_ADAM, HIGHEST_SGD = 0.05, 10.0
"""Learning rates above which a script is likely wrong. Chosen: published recipes with Adam stay below 0.01, with SGD
below 5."""
TIGHTEST_CLIP = 0.01
"""Limit of the gradient norm below which it is likely wrong. Chosen: recipes use 0.1 to 10."""


def settings_contradict(roles: Roles) -> Iterator[Fault]:
    """Arguments of trainers and optimizers that contradict each other or lie far outside of what is used."""
    for call in roles.script.calls:
        if re.search(r"(?:Arguments|Config)$", call.name):
            yield from _arguments(call)
        rate = (
            call.constant("lr", 1)
            if call.method in ("Adam", "AdamW", "SGD", "NAdam", "RAdam", "Lion")
            else call.constant("learning_rate")
            if re.search(r"(?:Arguments|Config)$", call.name)
            else None
        )
        highest = HIGHEST_SGD if call.method == "SGD" else HIGHEST_ADAM
        if isinstance(rate, int | float) and rate > highest:
            says = f"{call.name} has a learning rate of {rate}"
            yield fault("rate_far_too_high", call.line, "likely", says)
        decay = call.constant("weight_decay")
        if isinstance(decay, int | float) and not isinstance(decay, bool) and decay >= 1:
            says = f"{call.name} has a weight decay of {decay}"
            yield fault("decay_far_too_high", call.line, "likely", says)
        limit = call.constant("max_norm", 1) if call.method == "clip_grad_norm_" else call.constant("max_grad_norm")
        if isinstance(limit, int | float) and not isinstance(limit, bool) and 0 < limit < TIGHTEST_CLIP:
            says = f"gradients are clipped at {limit}"
            yield fault("clip_far_too_tight", call.line, "likely", says)


def _arguments(call: Call) -> Iterator[Fault]:
    given = call.keywords
    if call.constant("fp16") is True and call.constant("bf16") is True:
        says = "fp16 and bf16 are both on, and exclude each other"
        yield fault("two_precisions", call.line, "certain", says)
    warmup, steps = call.constant("warmup_steps"), call.constant("max_steps")
    if isinstance(warmup, int) and isinstance(steps, int) and 0 < steps <= warmup:
        says = f"warmup_steps={warmup} takes all of max_steps={steps}: the learning rate never reaches its peak"
        yield fault("warmup_beyond_plan", call.line, "certain", says)
    if call.constant("load_best_model_at_end") is True:
        saves = call.constant("save_strategy") or "steps"
        judges = (
            call.constant("eval_strategy")
            or call.constant("evaluation_strategy")
            or ("no" if "eval_strategy" not in given and "evaluation_strategy" not in given else None)
        )
        if judges is not None and (judges == "no" or (saves not in (judges, "best"))):
            says = f"load_best_model_at_end needs one strategy for both: eval {judges}, save {saves}"
            yield fault("best_model_unknown", call.line, "certain", says)
    generations = call.constant("num_generations")
    if isinstance(generations, int) and generations == 1:
        says = "num_generations=1: a group of one has no reward above or below its mean"
        yield fault("group_of_one", call.line, "certain", says)
