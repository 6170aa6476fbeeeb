"""What a script does right, and so which causes it rules out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mldebug_mcp.script.calls import Call, constant_of
from mldebug_mcp.script.faults import Fault
from mldebug_mcp.script.roles import Roles
from mldebug_mcp.script.rules.loss import activation_of


@dataclass(frozen=True, slots=True)
class Cleared:
    """A cause that the script rules out, or makes unlikely.

    Args:
        cause: The cause.
        line: The line that says so.
        says: What stands there.
    """

    cause: str
    line: int
    says: str


def cleared_by(roles: Roles, faults: Sequence[Fault]) -> list[Cleared]:
    """Return what a script of its own loop does right; a cause that one of its faults names is not among them."""
    if not roles.trains_by_hand:
        return []
    named = {fault.cause for fault in faults}
    found = [cleared for cleared in _cleared(roles) if cleared.cause not in named]
    return list({cleared.cause: cleared for cleared in found}.values())


def _cleared(roles: Roles) -> Iterator[Cleared]:
    backward = roles.backwards[0]
    for clear in roles.script.named("zero_grad"):
        if any(step.function == clear.function and step.loops == clear.loops for step in roles.steps):
            yield Cleared("missing_zero_grad", clear.line, "gradients are cleared in the loop that steps")
    evals, trains = roles.script.named("eval"), roles.script.named("train")
    if evals and trains:
        yield Cleared(
            "eval_mode_bug", evals[0].line, "the model is put into evaluation mode and back into training mode"
        )
    for call in roles.script.calls:
        if (
            roles.is_cross_entropy(call)
            and call.node.args
            and activation_of(roles, roles.source_of(call.node.args[0], call), call) in ("", "logits")
        ):
            yield Cleared("double_softmax", call.line, "cross-entropy is given outputs without a softmax")
        if call.method == "clip_grad_norm_" and call.order > backward.order:
            yield Cleared("exploding_gradients", call.line, "gradients are clipped between backward and step")
    for name, made in roles.loaders.items():
        given = (
            {keyword.arg: keyword.value for keyword in made.value.keywords} if isinstance(made.value, ast.Call) else {}
        )
        if "shuffle" in given and constant_of(given["shuffle"]) is True:
            yield Cleared("unshuffled_data", made.line, f"{name} shuffles")
    yield from _accumulation(roles)


HOLDS_BACK = re.compile(r"accum(?:ulat|[^a-z])|grad_acc|acc_steps|no_sync|sync_gradients|deepspeed", re.IGNORECASE)
"""What is written in a script whose steps may wait for several batches, by its own code or by that of a framework."""


def _steps_at_once(roles: Roles, backward: Call) -> bool:
    """Whether no step that follows in the same function waits for more rounds of the loop of a backward."""
    steps = [step for step in roles.steps if step.function == backward.function]
    return all(
        len(step.loops) >= len(backward.loops) and set(step.conditions) <= set(backward.conditions) for step in steps
    )


def _accumulation(roles: Roles) -> Iterator[Cleared]:
    if roles.accumulating:
        says = "accelerator.accumulate divides the loss and steps at the last batch of each window"
        yield Cleared("grad_accum_scaling", roles.accumulating[0].line, says)
    elif all(_steps_at_once(roles, each) for each in roles.backwards) and not HOLDS_BACK.search(roles.source):
        yield Cleared(
            "grad_accum_scaling", roles.backwards[0].line, "each batch makes a step: no gradients are accumulated"
        )
