"""The rules: what in a script is wrong for certain, likely, or depending on what the script does not show.

Each module asks about one topic; its first line says what. A rule is a public function of such a module that takes the
roles and yields faults; a new one stands with its topic, and in a row of `faults.csv`. None runs anything. A rule that
is not sure says so by its certainty. What the script does right is found as well, as it rules causes out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mldebug_mcp.models.script import SUREST_FIRST
from mldebug_mcp.script.calls import Call, constant_of, keywords_of
from mldebug_mcp.script.faults import Fault, Rule
from mldebug_mcp.script.roles import Roles
from mldebug_mcp.script.rules import evaluation, gradients, loss, policies, rows, step, trainers

HOLDS_BACK = re.compile(r"accum(?:ulat|[^a-z])|grad_acc|acc_steps|no_sync|sync_gradients|deepspeed", re.IGNORECASE)
"""What is written in a script whose steps may wait for several batches, by its own code or by that of a framework."""
TOPICS = (rows, loss, gradients, policies, step, evaluation, trainers)
SIGNATURE = {"roles": "Roles", "return": "Iterator[Fault]"}
"""What every rule takes and gives, as it is annotated."""
RULES: tuple[Rule, ...] = tuple(
    function
    for topic in TOPICS
    for name, function in vars(topic).items()
    if getattr(function, "__annotations__", None) == SIGNATURE and not name.startswith("_")
)


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


def faults_of(roles: Roles) -> list[Fault]:
    """Return what is wrong in a script, by line; of one rule a line is named once."""
    found: dict[tuple[str, int], Fault] = {}
    for fault in (fault for rule in RULES for fault in rule(roles)):
        same = found.get((fault.rule, fault.line), fault)
        surest = min(same, fault, key=lambda known: SUREST_FIRST.index(known.certainty))
        found[fault.rule, fault.line] = replace(surest, lines=tuple(dict.fromkeys((*same.lines, *fault.lines))))
    return sorted(found.values(), key=lambda fault: (fault.line, fault.rule))


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
        given = roles.source_of(call.node.args[0], call) if call.node.args and roles.is_cross_entropy(call) else None
        if given is not None and loss.activation_of(roles, given, call) in ("", "logits"):
            yield Cleared("double_softmax", call.line, "cross-entropy is given outputs without a softmax")
        if call.method == "clip_grad_norm_" and call.order > backward.order and _clips_where_it_steps(roles, call):
            yield Cleared("exploding_gradients", call.line, "gradients are clipped between backward and step")
    for name, made in roles.loaders.items():
        if constant_of(keywords_of(made.value).get("shuffle")) is True:
            yield Cleared("unshuffled_data", made.line, f"{name} shuffles")
    yield from _warm_up_of_optimizer(roles)
    yield from _steps_without_accumulation(roles)


WARMUPS_OF_OPTIMIZERS = ("warmup_steps", "warmup_length")
"""Parameters by which optimizers such as those of schedulefree and heavyball warm up, unseen in the learning rate."""


def _warm_up_of_optimizer(roles: Roles) -> Iterator[Cleared]:
    """Yield the optimizers that are given the parameters of a model and a warm-up of their own."""
    for call in roles.script.calls:
        steps = next((call.keywords[name] for name in WARMUPS_OF_OPTIMIZERS if name in call.keywords), None)
        made_of = " ".join(ast.unparse(argument) for argument in (*call.node.args, *call.keywords.values()))
        is_off = isinstance(steps, ast.Constant) and not steps.value
        if steps is None or is_off or ".parameters(" not in made_of:
            continue
        says = f"{call.name} warms up by itself over {ast.unparse(steps)} steps, which the learning rate does not show"
        yield Cleared("insufficient_warmup", call.line, says)


def _clips_where_it_steps(roles: Roles, clip: Call) -> bool:
    """Whether gradients are clipped only where a step of the same function follows, not at each micro-batch."""
    steps = [step for step in roles.steps if step.function == clip.function]
    return not steps or any(set(step.conditions) <= set(clip.conditions) for step in steps)


def _steps_at_once(roles: Roles, backward: Call) -> bool:
    """Whether no step that follows in the same function waits for more rounds of the loop of a backward."""
    steps = [step for step in roles.steps if step.function == backward.function]
    return all(
        len(step.loops) >= len(backward.loops) and set(step.conditions) <= set(backward.conditions) for step in steps
    )


def _steps_without_accumulation(roles: Roles) -> Iterator[Cleared]:
    if roles.accumulating:
        says = "accelerator.accumulate divides the loss and steps at the last batch of each window"
        yield Cleared("grad_accum_scaling", roles.accumulating[0].line, says)
    elif all(_steps_at_once(roles, each) for each in roles.backwards) and not HOLDS_BACK.search(roles.source):
        yield Cleared(
            "grad_accum_scaling", roles.backwards[0].line, "each batch makes a step: no gradients are accumulated"
        )
