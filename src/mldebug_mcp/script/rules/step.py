"""Do gradients change the weights, by which steps, and at the learning rate that a schedule is to give?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal

from mldebug_mcp.models.script import Certainty
from mldebug_mcp.script.calls import (
    Assignment,
    Call,
    argument_of,
    arguments_of,
    called_name,
    calls_in,
    constant_of,
    dotted,
    exclude,
    is_operation,
    last_name,
    last_names,
    last_part,
    names_in,
    only_value,
    parameters_of,
    part_of,
    values_returned,
    walk,
)
from mldebug_mcp.script.facts import ACCUMULATED, COUNTS, ROWS_OF_BATCH, DataKind, Facts, divided
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.library import LOADER
from mldebug_mcp.script.roles import Roles, Run
from mldebug_mcp.script.trace import Event, Trace
from mldebug_mcp.script.values import Constant, Object, facts_of, objects_in

GIVES_GRADIENTS = re.compile(
    r"backward|Trainer|(?:model|learn\w*|trainer)\.fit$|(?:^|[._])scaler$|autograd\.grad$|train\w*_(?:batch|step)|engine",
)
"""Calls of other files that compute gradients, or may."""
OPTIMIZER_NAME = re.compile(r"(?:^|\.)_?(?:\w*optim\w*|opt|opt_\w+|\w+_opt)$")
DOES_NOT_STEP = re.compile(
    r"LR\w*$|schedule\w*$|(?:prepare|setup|isinstance|print|len|GradScaler|Plateau|Annealing\w*)$"
)
_UNCALLED = {
    "zero_grad": "missing_zero_grad",
    "eval": "eval_mode_bug",
    "train": "eval_mode_bug",
    "backward": "params_not_training",
    "step": "params_not_training",
}
"""Methods that do nothing without their parentheses, and the cause that they are then."""
OF_AN_ENGINE = re.compile(r"(?:accel\w*|fabric)\.autocast$")
"""Blocks of mixed precision that Accelerate and Fabric make."""
ACCUMULATES = re.compile(r"accum|micro|grad_acc|acc_steps", re.IGNORECASE)
"""What names of numbers of batches whose gradients are added have in them."""


def gradients_never_cleared(roles: Roles) -> Iterator[Fault]:
    """Gradients are never cleared, or only once a pass."""
    if not roles.backwards or not roles.steps or _clears_otherwise(roles):
        return
    cleared = [call for call in roles.script.calls if "zero_grad" in call.method]
    repeated = [step for step in roles.steps if roles.is_repeated(step) or _runs_closure(roles, step)]
    repeated = [step for step in repeated if not roles.goes_on_elsewhere(step) and not _is_of_its_round(roles, step)]
    if not cleared and repeated:
        step = repeated[0]
        says = f"{step.name}() changes the weights, and nothing in the file clears the gradients (zero_grad)"
        yield fault("gradients_never_cleared", step.line, "certain", says)
        return
    for step in roles.steps:
        same = [call for call in cleared if call.function == step.function]
        outside = [
            call for call in same if len(call.loops) < len(step.loops) and call.loops == step.loops[: len(call.loops)]
        ]
        if same and len(outside) == len(same) and (not step.node.args or step.owner.lower().endswith("scaler")):
            says = f"zero_grad() stands outside the loop in which {step.name}() is called"
            yield fault("gradients_cleared_outside", same[0].line, "certain", says)


def _is_of_its_round(roles: Roles, step: Call) -> bool:
    """Say whether an optimizer is made in the round of its one step, as is the model of a test."""
    made = roles.optimizers.get(step.owner)
    return made is not None and made.function == step.function and made.loops == step.loops


def _clears_otherwise(roles: Roles) -> bool:
    by_hand = any(assignment.target.endswith(".grad") for assignment in roles.script.assignments)
    return by_hand or roles.uses("grad.zero_", "clear_grad", "manual_backward", "deepspeed.initialize", "engine.step")


def _runs_closure(roles: Roles, step: Call) -> bool:
    """Say whether a step is given a function of this file that computes gradients: it calls it several times."""
    given = {last_name(arg) for arg in step.node.args}
    return any(last_part(backward.function) in given for backward in roles.backwards)


def nothing_is_stepped(roles: Roles) -> Iterator[Fault]:
    """Gradients are computed and no optimizer uses them, or a call lacks its parentheses."""
    bare = [
        node.value
        for node in walk(roles.script.tree, ast.Expr)
        if isinstance(node.value, ast.Attribute) and node.value.attr in _UNCALLED
    ]
    for name in bare:
        says = f"{dotted(name)} is named and not called: its parentheses are missing"
        yield fault(
            "not_called", name.lineno, "certain", says, cause=_UNCALLED[name.attr], fix=f"write {dotted(name)}()"
        )
    if bare:
        return
    by_hand = any(
        assignment.target.endswith(".data") or ".grad" in ast.unparse(assignment.value)
        for assignment in roles.script.assignments
    )
    yield from _optimizer_never_stepped(roles)
    steps = [call for call in roles.script.calls if re.search(r"step|minimize", call.method)]
    others = [call for call in steps if call not in roles.schedule_steps]
    repeated = [backward for backward in roles.backwards if roles.is_repeated(backward)]
    cleared = {call.owner for call in roles.script.named("zero_grad")}
    if (
        repeated
        and not all(map(_is_of_another, cleared or roles.optimizers))
        and not others
        and not by_hand
        and not roles.goes_on_elsewhere(repeated[0])
        and not roles.uses("autograd.grad", "sub_", "add_", "copy_", "hook")
    ):
        yield fault("no_step", repeated[0].line, "likely", "gradients are computed, and no optimizer makes a step")


def nothing_gives_gradients(roles: Roles) -> Iterator[Fault]:
    """An optimizer makes steps, and nothing computes gradients for it."""
    if not roles.steps or roles.backwards or _writes_gradients(roles):
        return
    given = any(step.node.args and not roles.is_scaler(step.owner) for step in roles.steps)
    foreign = [call.name for call in roles.script.calls if call.method not in roles.definitions]
    elsewhere = any(GIVES_GRADIENTS.search(name) for name in foreign)
    own = [step for step in roles.steps if not roles.goes_on_elsewhere(step) and _is_training(roles, step)]
    if not given and not elsewhere and any(roles.is_repeated(step) for step in own):
        says = f"{roles.steps[0].name}() is called, and nothing computes a gradient (backward)"
        yield fault("no_backward", roles.steps[0].line, "likely", says)


def _is_training(roles: Roles, step: Call) -> bool:
    """Say whether a step is to train: a model or loss is called, no function that is given may compute gradients.

    A loop over optimizers steps each of them once.
    """
    if any("optim" in roles.script.loops.get(line, "") for line in step.loops[-1:]):
        return False
    given = [call for call in roles.unit(step) if call.name == call.method and call.method not in roles.definitions]
    if any(roles.is_parameter(call.name, step.function) and step.function for call in given):
        return False
    near = {step.function, *(caller.function for caller in roles.callers(step.function))}
    called = {call.method for call in roles.script.calls if call.function in near}
    return any(
        roles.calls_model(call.node) or call.name in roles.losses or re.search(r"loss|entropy|criterion", call.method)
        for call in roles.script.calls
        if (call.function in near or last_part(call.function) in called) and not call.method[:1].isupper()
    )


def _writes_gradients(roles: Roles) -> bool:
    """Say whether the script writes gradients itself, as evolution strategies and empty first steps do."""
    written = [made for made in roles.script.assignments if made.target.endswith(".grad")]
    into = any(re.search(r"\.grad(?:\.data)?$", call.owner) for call in roles.script.named("copy_", "add_", "sub_"))
    return into or any(ast.unparse(made.value) != "None" for made in written)


def _optimizer_never_stepped(roles: Roles) -> Iterator[Fault]:
    """Yield optimizers whose gradients are cleared, or that are made here, and that never make a step."""
    repeated = [backward for backward in roles.backwards if roles.is_repeated(backward)]
    cleared = {call.owner: call.line for call in roles.script.named("zero_grad") if OPTIMIZER_NAME.search(call.owner)}
    made = {name: assignment.line for name, assignment in roles.optimizers.items()}
    assigned = {assignment.last for assignment in roles.script.assignments if isinstance(assignment.value, ast.Call)}
    stepped = {last_part(call.owner) for call in roles.script.calls if "step" in call.method}
    given = {last_name(arg) for call in roles.script.named("step") for arg in call.node.args}
    for name, line in {**made, **cleared}.items() if repeated else ():
        last, names = last_part(name), roles.also_called(name)
        handed_on = any(roles.is_handed_on(known, except_to=DOES_NOT_STEP) for known in names)
        if names & (stepped | given) or last not in assigned or handed_on or _is_of_another(name):
            continue
        looped = any(re.search(rf"\b{last}\b", through) for through in roles.script.loops.values())
        followed = {stepper.line for step in roles.trace.of("step") for stepper in step.objects}
        if not roles.is_kept(last) and not looped and line not in followed and not _is_alias(roles, name):
            yield fault("no_step", line, "likely", f"{name} never makes a step: its parameters stay as they are")


def _is_of_another(name: str) -> bool:
    """Say whether an optimizer is an attribute of an object that the class has: `self.learner.optimizer`."""
    return "." in name.removeprefix("self.")


def _is_alias(roles: Roles, name: str) -> bool:
    """Say whether something else is given the value of a name: `self.optimizer = optimizer`."""
    last = last_part(name)
    return any(dotted(made.value) == name and made.last != last for made in roles.script.assignments)


def clipping_of_scaled_gradients(roles: Roles) -> Iterator[Fault]:
    """Gradients are clipped while they are scaled."""
    scaled, clips = False, list[Event]()
    for event in roles.trace.of("backward", "unscale", "clip", "step"):
        match event.action:
            case "backward":
                scaled, clips = _is_scaled(event.node), []
            case "unscale":
                scaled = False
            case "clip" if scaled:
                clips.append(event)
            case "step" if clips and roles.is_scaler(dotted(event.node).rpartition(".")[0]):
                says = (
                    "gradients are clipped while the scaler has them scaled up: the limit is thousands of times too "
                    "tight"
                )
                yield from (fault("clip_scaled", clip.line_apart(event), "certain", says) for clip in clips)
                clips = []


def _is_scaled(backward: ast.AST) -> bool:
    """Say whether what gradients are computed of is scaled: `scaler.scale(loss).backward()`."""
    function = backward.func if isinstance(backward, ast.Call) else None
    return called_name(getattr(function, "value", None)) == "scale"


def _is_autocast(roles: Roles, guard: str) -> bool:
    """Say whether a `with` block is autocast, by a name that it was given as well."""
    made = roles.script.assigned(guard)
    helper = roles.definitions.get(last_part(guard))
    returned = values_returned(helper)
    values = [*([made.value] if made is not None else []), *filter(None, returned)]
    names = [guard, *(name for value in values for name in calls_in(value))]
    return any(last_part(name) == "autocast" for name in names)


def autocast_around_the_loop(roles: Roles) -> Iterator[Fault]:
    """One block of autocast holds a loop that steps: later forward passes see weights that were cast before the steps.

    Source: `torch.autocast` keeps the weights that it casts until the outermost block ends, unless `cache_enabled` is
    false (findings/autocast_around_the_loop.sh).
    """
    kept = roles.uses("clear_autocast_cache") or re.search(r"\.(?:half|bfloat16)\(\)", roles.source)
    for line, block, body in _autocasts(roles) if not kept else ():
        settings = {keyword.arg: constant_of(keyword.value) for keyword in block.keywords}
        step = None if False in (settings.get("cache_enabled"), settings.get("enabled")) else _stepped(roles, body)
        if step is not None:
            says = (
                f"one autocast block holds the loop that steps (line {step.line}), and keeps the weights that it cast: "
                "each later forward pass sees those of the first"
            )
            # that of an engine is nothing at all where the user asks for full precision
            certainty: Certainty = "depends" if OF_AN_ENGINE.search(dotted(block.func)) else "likely"
            yield fault("autocast_around_the_loop", line, certainty, says, lines=(step.line,))
            return


def _autocasts(roles: Roles) -> Iterator[tuple[int, ast.Call, Sequence[ast.stmt]]]:
    """Yield the lines of the blocks and functions under autocast, each with what makes it and what it holds."""
    for node in walk(roles.script.tree, ast.With, ast.FunctionDef):
        around = [item.context_expr for item in node.items] if isinstance(node, ast.With) else node.decorator_list
        for expr in around:
            made = roles.script.assigned(dotted(expr)) if isinstance(expr, ast.Name | ast.Attribute) else None
            block = expr if made is None else made.value
            if isinstance(block, ast.Call) and last_name(block) == "autocast":
                yield expr.lineno, block, node.body


def _stepped(roles: Roles, body: Sequence[ast.stmt]) -> Call | None:
    """Return a step that statements make again and again: in a loop, or in a function of this file that has one."""
    callers = {id(call.node): step for step in roles.steps for call in roles.precise_callers(step.function)}
    once = callers | {id(step.node): step for step in roles.steps}
    for part in (part for node in body for part in ast.walk(node)):
        if isinstance(part, ast.For | ast.While):
            found = [once[id(call)] for call in walk(part, ast.Call) if id(call) in once]
        else:
            found = [callers[id(part)]] if id(part) in callers and callers[id(part)].loops else []
        if found:
            return found[0]
    return None


def backward_in_autocast(roles: Roles) -> Iterator[Fault]:
    """Gradients are computed under autocast."""
    if any(autocast_around_the_loop(roles)):
        return
    for backward in roles.backwards:
        if any(_is_autocast(roles, guard) for guard in backward.guards):
            says = f"{backward.name}() stands under autocast, which is for the forward pass and the loss alone"
            by_engine = any(map(OF_AN_ENGINE.search, backward.guards))
            # that of an engine is nothing at all where the user asks for full precision
            yield fault("backward_in_autocast", backward.line, "depends" if by_engine else "likely", says)
            return


def scaler_half_used(roles: Roles) -> Iterator[Fault]:
    """The loss is scaled, and the optimizer steps past the scaler."""
    scaled = [call for call in roles.script.calls if call.method == "scale" and roles.is_scaler(call.owner)]
    if not scaled:
        return
    steps = [step for step in roles.steps if roles.is_scaler(step.owner)]
    own = [step for step in roles.steps if not roles.is_scaler(step.owner)]
    unscaled = _backward_of_unscaled(roles) if steps else None
    if unscaled is not None:
        says = "gradients are those of the unscaled loss, and scaler.step() divides them by the scale"
        yield fault("scale_not_used", unscaled.line, "certain", says)
    if own and not steps and not roles.uses("unscale"):
        says = "the loss is scaled by the scaler, and the optimizer steps past it with scaled gradients"
        yield fault("step_past_scaler", own[0].line, "certain", says)
    elif steps and not [call for call in roles.script.named("update") if roles.is_scaler(call.owner)]:
        says = "scaler.update() is never called: the scale stays, also where gradients overflow"
        yield fault("scaler_never_updated", steps[0].line, "certain", says)


def _backward_of_unscaled(roles: Roles) -> Call | None:
    """Return the one backward() of a loss that the scaler did not scale, where a scaler steps."""
    scaled = {
        made.target
        for made in roles.script.assignments
        if any("scale" in last_part(name) for name in calls_in(made.value))
    }
    for backward in roles.backwards:
        given = [backward.node.func, *backward.node.args]
        by_scaler = any(last_part(name) == "scale" for node in given for name in calls_in(node))
        names = {dotted(part) for node in given for part in ast.walk(node)}
        given_one = any(roles.is_parameter(name, backward.function) for name in names if name) and backward.function
        if by_scaler or given_one or names & scaled or backward.owner.endswith(("accelerator", "engine", "fabric")):
            return None
    return roles.backwards[0] if len(roles.backwards) == 1 else None


def accumulation(roles: Roles) -> Iterator[Fault]:
    """Gradients of several batches are added: is the loss divided once, and are they cleared only with the step?"""
    yield from _divided_twice(roles)
    if roles.accumulating:
        return
    for step in roles.steps:
        window = next(filter(None, (_window(roles, run) for run in roles.runs(step))), None)
        if window is not None:
            yield from _accumulated(roles, step, *window)
    yield from _inner_loop_not_divided(roles)


def _window(roles: Roles, run: Run) -> tuple[Run, str, Call] | None:
    """Return where a step comes in every n-th round alone: its run, its test, the backward of each round."""
    every = next((test for test in run.conditions if _is_every_nth(roles, test, run)), None)
    if every is None or not run.loops:
        return None
    rounds = [
        (backward, other)
        for backward in roles.backwards
        for other in roles.runs(backward)
        if other.function == run.function and other.loops[: len(run.loops)] == run.loops
    ]
    own_backward = any(every in other.conditions for _, other in rounds)
    backward = next((backward for backward, other in rounds if other.loops == run.loops), None)
    return None if own_backward or backward is None else (run, every, backward)


def _is_every_nth(roles: Roles, test: str, run: Run) -> bool:
    """Say whether a test holds in every n-th round: a remainder, or a count that starts again when it is full."""
    if "%" in test:
        node = ast.parse(test, mode="eval").body
        is_zero = isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.BinOp)
        return is_zero or "not (" not in test
    full = re.fullmatch(r"(\w+) (?:==|>=) (\w[\w.]*)", test)
    counted = [
        made for made in roles.script.assignments if full and made.target == full[1] and made.function == run.function
    ]
    inside = [made for made in counted if made.loops == run.loops]
    added = any(made.adds and test not in made.conditions for made in inside)
    return added and any(constant_of(made.value) == 0 and test in made.conditions for made in inside)


def _accumulated(roles: Roles, step: Call, run: Run, every: str, backward: Call) -> Iterator[Fault]:
    """Yield what is wrong where a step is made from the gradients of several batches."""
    cleared = [call for call in roles.unit(backward) if call.method == "zero_grad"]
    if cleared and not any("%" in test or test == every for clear in cleared for test in clear.conditions):
        says = f"zero_grad() is called at every batch, and step() only where {every}: all but the last batch are lost"
        yield fault("accumulation_cleared", cleared[0].line, "certain", says)
    clips = [call for call in roles.unit(backward) if call.method.startswith("clip_grad_") and not call.conditions]
    if clips and clips[0].order > backward.order and clips[0].loops == backward.loops:
        says = f"gradients are clipped at every batch, and step() comes only where {every}: earlier batches weigh less"
        yield fault("clipped_at_every_batch", clips[0].line, "likely", says)
    if not _is_divided(roles, backward) and not _gradients_are_divided(roles):
        says = f"step() is called where {every}, and the loss is not divided by the number of batches that are added"
        yield fault("accumulation_not_divided", backward.line, "likely", says)
    ends = any("len(" in test or " or " in test for test in run.conditions)
    later = [other for other in roles.steps if other.order > step.order and len(other.loops) < len(step.loops)]
    passes = len(run.loops) > 1 or any(caller.loops for caller in roles.callers(step.function))
    if passes and not ends and not later and not _begins_cleared(roles, run) and _restarts(roles, every, run):
        says = "batches that are left at the end of a pass make no step with the others of their window"
        yield fault("accumulation_leftover", step.line, "depends", says)


def _begins_cleared(roles: Roles, run: Run) -> bool:
    """Say whether gradients are cleared where a pass begins, so that those of batches that are left go nowhere."""
    outer = run.loops[:-1]
    return any(
        other.loops == outer and other.function == run.function
        for call in roles.script.named("zero_grad")
        for other in roles.runs(call)
    )


def window_thrown_away(roles: Roles) -> Iterator[Fault]:
    """Gradients are cleared where a pass begins, and those of a last window that is not full go with them."""
    trace = roles.trace
    for clear in trace.of("clear"):
        depth = len(clear.loops)
        inside = [event for event in trace.of("backward", "step") if depth and event.is_within(clear)]
        backwards = [event for event in inside if event.action == "backward" and len(event.loops) > depth]
        steps = [event for event in inside if event.action == "step"]
        before = trace.events.index(clear)
        first = next((event for event in trace.events[before:] if event.action in ("backward", "step")), None)
        seldom = steps and all(
            len(step.loops) > depth and set(step.tests) - {test for event in backwards for test in event.tests}
            for step in steps
        )
        if clear.tests or not backwards or first not in backwards or not seldom:
            continue
        if not any(_flushes(roles, test) for step in steps for test in step.tests):
            says = "gradients are cleared where a pass begins: those of its last batches, a window not full, are lost"
            yield fault("window_thrown_away", steps[0].line, "depends", says, lines=(*clear.lines, *steps[0].lines))
            return


def _flushes(roles: Roles, test: ast.AST) -> bool:
    """Say whether a test may hold at the last batch of a pass as well, in the function that it asks as well."""
    asked = test.test if isinstance(test, ast.If | ast.IfExp) else test
    helpers = [roles.definitions.get(last_part(name)) for name in calls_in(asked)]
    text = "\n".join(ast.unparse(part) for part in (asked, *helpers) if part is not None)
    return bool(re.search(r"len\(|\bor\b|last|final|isfinite|isnan|\bend", text))


def _restarts(roles: Roles, every: str, run: Run) -> bool:
    """Say whether the number that a test counts by starts again in each pass; where it goes on, no batch is left.

    A loop that is left early may stop at the last full window.
    """
    names = names_in(ast.parse(every, mode="eval"))
    loops = roles.loops_at(run.loops[-1:])
    if any(isinstance(node, ast.Break) for loop in loops for node in ast.walk(loop)):
        return False
    if any(names & names_in(loop.target) for loop in loops):
        return True
    counted = [made for made in roles.script.assignments if made.target in names and made.adds]
    return not counted or any(
        made.target in {count.target for count in counted} and not made.adds and made.loops == run.loops[:-1] != ()
        for made in roles.script.assignments
    )


def _inner_loop_not_divided(roles: Roles) -> Iterator[Fault]:
    """Yield where a loop over micro-batches adds gradients for a step after it, and nothing divides them."""
    for backward, step in pairwise(roles.trace.of("backward", "step", "clear")):
        depth, call = len(step.loops), roles.call_of(backward.node)
        inside = step.entry == backward.entry and step.loops == backward.loops[:depth] != backward.loops
        if call is None or (backward.action, step.action, inside) != ("backward", "step", True):
            continue
        through = map(ast.unparse, _gone_through(roles, backward, backward.loop_lines[depth]))
        several = next(filter(ACCUMULATES.search, through), "")
        if not several or _gradients_are_divided(roles):
            continue
        joins = any(other.method == "cat" for other in roles.unit(call))  # each loss is that of all micro-batches
        if not joins and not _is_divided(roles, call) and not _is_given_divided(roles, backward):
            says = (
                f"gradients of all of `{several[:60]}` are added for one step, and nothing divides them by their number"
            )
            yield fault("accumulation_not_divided", backward.line, "likely", says, lines=backward.lines)


def _gone_through(roles: Roles, event: Event, line: int) -> Iterator[ast.expr]:
    """Yield what a loop or comprehension around an event goes through, and what its name was given."""
    for node in ast.walk(roles.script.tree):
        at = node if isinstance(node, ast.For) else getattr(node, "elt", None)
        for loop in getattr(node, "generators", [node]) if getattr(at, "lineno", 0) == line else ():
            yield loop.iter
            name = dotted(loop.iter)
            yield from (made.value for made in roles.script.assignments if name and made.target == name)
            for call in (part for part in event.through if isinstance(part, ast.Call)):
                callee = roles.definitions.get(last_name(call))
                names = [arg.arg for arg in callee.args.args] if isinstance(callee, ast.FunctionDef) else []
                if name in names:
                    yield from call.args[names.index(name) - ("self" in names) :][:1]


def _is_given_divided(roles: Roles, event: Event) -> bool:
    callers = [roles.call_of(node) for node in event.through if isinstance(node, ast.Call)]
    given = [roles.source_of(arg, call) for call in callers if call is not None for arg in call.node.args]
    return any(
        isinstance(node, ast.Div) or getattr(node, "attr", "") == "div" for arg in given for node in ast.walk(arg)
    )


def _gradients_are_divided(roles: Roles) -> bool:
    by_method = re.search(r"\.grad(?:\.data)?\.(?:div_|mul_)", roles.text)
    return bool(by_method) or any(".grad" in assignment.target for assignment in roles.script.assignments)


def _divided_twice(roles: Roles) -> Iterator[Fault]:
    """Yield where a loss is divided by hand, and a framework that accumulates divides it, too."""
    makers = [call for call in roles.script.calls if call.method == "Accelerator"]
    divides = roles.accumulating or any("gradient_accumulation_steps" in maker.keywords for maker in makers)
    own = {made.target for made in roles.script.assignments if dotted(made.value).endswith("Accelerator")}
    windows = {constant_of(maker.keywords.get("gradient_accumulation_steps")) for maker in makers} - {None, 1}
    for backward in roles.backwards:
        by_engine = backward.owner.endswith("engine") and roles.uses("deepspeed.initialize")
        by_accelerator = divides and (backward.owner.endswith("accelerator") or backward.owner in own)
        if not (by_engine or by_accelerator):
            continue
        divisor = next(iter(_divisors(roles, backward)), None)
        if divisor is not None and (ACCUMULATES.search(ast.unparse(divisor)) or constant_of(divisor) in windows):
            says = f"the loss is divided by {ast.unparse(divisor)}, and {backward.name}() divides it once more"
            yield fault("divided_twice", divisor.lineno, "certain", says)


def _divisors(roles: Roles, backward: Call) -> Iterator[ast.expr]:
    """Yield what a loss is divided by, or multiplied with, before its gradients are computed."""
    expressions: list[ast.expr] = [backward.node.func, *backward.node.args]
    names = set[str]().union(*(names_in(expression) for expression in expressions))
    scaled = (made.value for made in roles.script.assignments if made.target in names and "scale" in dotted(made.value))
    names = names.union(*map(names_in, scaled))
    expressions += [
        assignment.value
        for assignment in roles.script.assignments
        if assignment.target in names
        and assignment.function == backward.function
        and assignment.order <= backward.order
        and not any(exclude(test, other) for test in assignment.conditions for other in backward.conditions)
    ]
    for node in (node for expression in expressions for node in ast.walk(expression)):
        if is_operation(node, ast.Div):
            yield node.right
        elif isinstance(node, ast.Call) and last_name(node) in ("div", "div_", "mul", "true_divide"):
            yield from node.args
        elif is_operation(node, ast.Mult) and constant_of(node.left) is None:
            yield node.right
    yield from _divisors_in_helpers(roles, expressions)


def _divisors_in_helpers(roles: Roles, expressions: Sequence[ast.expr]) -> Iterator[ast.expr]:
    """Yield what functions of this file that make a loss divide by, where a name of it refers to accumulation."""
    for name in {last_part(called) for expression in expressions for called in calls_in(expression)}:
        helper = roles.definitions.get(name)
        for node in ast.walk(helper) if isinstance(helper, ast.FunctionDef) else ():
            by = node.right if is_operation(node, ast.Div) else None
            if by is not None and ACCUMULATES.search(ast.unparse(by)):
                yield by


def _is_divided(roles: Roles, backward: Call) -> bool:
    if next(_divisors(roles, backward), None) is not None:
        return True
    given = [backward.node.func, *backward.node.args]
    return any("mean" in name for node in given for name in calls_in(node) if "accum" in ast.unparse(node))


def stepped_twice(roles: Roles) -> Iterator[Fault]:
    """An optimizer makes a step by the scaler and one by itself, with the same gradients."""
    for step in roles.steps:
        if not roles.is_scaler(step.owner) or not step.node.args:
            continue
        name = dotted(step.node.args[0])
        for other in roles.unit(step):
            same = other.name == f"{name}.step" and other.loops == step.loops and other.conditions == step.conditions
            if name and same:
                says = f"{name} makes a step by the scaler in line {step.line}, and another one here"
                yield fault("stepped_twice", other.line, "certain", says)


def state_not_detached(roles: Roles) -> Iterator[Fault]:
    """The hidden state of the batch before is kept with its graph."""
    for made in roles.script.assignments:
        value = made.value
        if made.place is None or not made.loops or not isinstance(value, ast.Call) or not roles.calls_model(value):
            continue
        given = {dotted(part) for arg in arguments_of(value) for part in ast.walk(arg)}
        back = any((each.function, each.loops) == (made.function, made.loops) for each in roles.backwards)
        if made.target not in given or not back:
            continue
        again = [
            other
            for other in roles.assignments_by_name[made.function, made.target]
            if other is not made and other.loops
        ]
        cut = any(
            call.owner == made.target and call.method in ("detach_", "detach", "data", "zero_", "fill_")
            for call in roles.script.calls
        )
        if not again and not cut and f"{made.target}.data" not in roles.source:
            says = f"{made.target} goes on to the next batch with its graph: backward() goes through all batches before"
            yield fault("state_not_detached", made.line, "certain", says, fix=f"{made.target} = {made.target}.detach()")


def steps_without_gradient(roles: Roles) -> Iterator[Fault]:
    """Gradients are cleared between backward and step; or the step comes between clearing and backward."""
    trace = roles.trace
    found: dict[int, Event | None] = {}
    for place, step in enumerate(trace.events):
        optimizer = _optimizer_of(step)
        if optimizer is None or not step.loops:
            continue
        last = _last_for(trace, trace.events[:place], step, optimizer)
        empty = last is not None and last.action == "clear" and set(last.tests) <= set(step.tests)
        found[id(step.node)] = last if empty and found.get(id(step.node), last) is not None else None
    lines = {id(step.node): step.line for step in trace.of("step")}
    for node, clear in found.items():
        if clear is None:
            continue
        if _is_preceded_by_backward(trace, clear):
            says = "zero_grad() stands between backward() and step(): each step is made without a gradient"
            yield fault("cleared_before_step", clear.line, "certain", says)
        elif any(event.entry == clear.entry and event.loop_lines == clear.loop_lines for event in trace.of("backward")):
            says = "step() stands before backward() and after zero_grad(): it is made without a gradient"
            yield fault("step_before_backward", lines[node], "certain", says)


def _optimizer_of(step: Event) -> Object | None:
    """Return the optimizer that makes a step, where it is known with all its models."""
    steppers = step.objects if step.action == "step" and len(step.objects) == 1 else ()
    return next((each for each in steppers if each.kind == "optimizer" and each.holds and each.holds_all), None)


def _last_for(trace: Trace, before: Sequence[Event], step: Event, optimizer: Object) -> Event | None:
    """Return what last gave gradients to the models of an optimizer, took them away, or may have done so."""
    for event in reversed(before):
        if event.entry != step.entry:
            return None
        if event.action == "backward" or (event.action in ("escape", "gradients") and _is_about(event, optimizer)):
            return event
        if event.action == "clear" and any(trace.clears_model(event, model) for model in optimizer.holds):
            known = all(cleared.kind == "model" or cleared.holds for cleared in event.objects)
            return event if known else None  # another optimizer, of models that are not known, may have cleared others
    return None


def _is_about(event: Event, optimizer: Object) -> bool:
    return optimizer in event.objects or any(event.concerns(model) for model in optimizer.holds)


def _is_preceded_by_backward(trace: Trace, clear: Event) -> bool:
    """Say whether the gradients that are cleared were computed in the same round, and no step used them."""
    place = next(place for place, event in enumerate(trace.events) if event is clear)
    for event in reversed(trace.events[:place]):
        if event.entry != clear.entry or event.action in ("step", "backward"):
            return event.action == "backward" and event.entry == clear.entry and event.loops == clear.loops
    return False


def clips_without_effect(roles: Roles) -> Iterator[Fault]:
    """Gradients are clipped where there are none, or after the step that used them."""
    trace = roles.trace
    useless: dict[int, bool] = {}
    clips: dict[int, Event] = {}
    for place, clip in enumerate(trace.events):
        if clip.action != "clip" or not clip.objects or not clip.loops:
            continue
        before = next((event for event in reversed(trace.events[:place]) if _moves_gradients(trace, event, clip)), None)
        after = next((event for event in trace.events[place + 1 :] if _moves_gradients(trace, event, clip)), None)
        if after is None:
            continue
        none_left = (before is None and bool(clip.entry == 0)) or (
            before is not None and before.action in ("step", "clear") and set(before.tests) <= set(clip.tests)
        )
        is_useless = none_left and after.action in ("backward", "clear")
        useless[id(clip.node)] = useless.get(id(clip.node), True) and is_useless
        clips[id(clip.node)] = clip
    for node, is_useless in useless.items():
        if is_useless:
            says = "gradients are clipped where none are left, or none are there yet: that has no effect"
            yield fault("clip_too_late", clips[node].line, "certain", says)


def _moves_gradients(trace: Trace, event: Event, clip: Event) -> bool:
    """Say whether something gives the clipped models gradients, uses or clears them, or may do so."""
    if event.entry != clip.entry:
        return False
    if event.action == "backward":
        return True
    if event.action in ("escape", "gradients"):
        return any(event.concerns(model) for model in clip.objects)
    if event.action == "step":
        return any(trace.steps_model(event, model) for model in clip.objects) or not all(
            stepper.holds for stepper in event.objects
        )
    return event.action == "clear" and any(trace.clears_model(event, model) for model in clip.objects)


def schedules_before_optimizer(roles: Roles) -> Iterator[Fault]:
    """A schedule is stepped before its optimizer makes its first step."""
    trace = roles.trace
    judged_schedules: set[Object] = set()
    for place, event in enumerate(trace.events):
        schedule = next(iter(event.objects)) if event.action == "schedule" else None
        if schedule is None or schedule in judged_schedules:
            continue
        judged_schedules.add(schedule)
        steps = [
            (at, step)
            for at, step in enumerate(trace.events)
            if step.action == "step" and schedule.given[:1] == tuple(step.objects)[:1]
        ]
        first = steps[0] if steps else None
        if first is None or first[0] < place or first[1].entry != event.entry:
            continue
        if event.loops and first[1].loops == event.loops and set(event.tests) <= set(first[1].tests):
            says = "scheduler.step() stands before optimizer.step(): the first value of the schedule is skipped"
            yield fault("schedule_first", event.line, "certain", says)


def never_cleared(roles: Roles) -> Iterator[Fault]:
    """An optimizer makes steps in a loop, and nothing clears the gradients of its models."""
    trace = roles.trace
    clears = trace.of("clear", "gradients", "escape")
    named: set[Object] = set()
    for step in trace.events if trace.is_complete else ():
        optimizer = _optimizer_of(step)
        if optimizer is None or optimizer in named or not step.loops or optimizer.loops == step.loops:
            continue
        named.add(optimizer)
        cleared = any(
            _is_about(clear, optimizer)
            or any(other.kind != "model" and not other.holds for other in clear.objects if clear.action == "clear")
            for clear in clears
        )
        cleared = cleared or any(
            hold.is_related_to(model)
            for clear in clears
            if clear.action == "clear"
            for other in clear.objects
            for hold in other.holds
            for model in optimizer.holds
        )
        if not cleared and any(event.action == "backward" and event.entry == step.entry for event in trace.events):
            says = f"{optimizer.label}.step() changes the weights, and nothing clears the gradients of its parameters"
            rule = "one_optimizer_not_cleared" if trace.of("clear") else "gradients_never_cleared"
            yield fault(rule, step.line, "likely" if trace.of("clear") else "certain", says)


# Is the schedule of the learning rate as long as it moves, and counted in what it moves by?


FEWEST_BATCHES = 100
"""Steps to the first change of a schedule below which it counts passes. Chosen: tutorials use 2 to 90 epochs."""
SLOWEST_DECAY = 0.999
"""Factor a batch above which an exponential decay lasts for a run. Chosen: 0.999 halves the learning rate in 693."""
ACCUMULATION = re.compile(r"//?\s*\(?[\w.]*accum|//?\s*[\w.]*grad_acc|updates", re.IGNORECASE)
DIVIDED = re.compile(r"//?\s{0,4}\(?[\w.]{0,80}accum", re.IGNORECASE)
"""How the number of updates is written where it is computed from that of batches."""
HANDS_BACK = re.compile(r"(?:prepare|print|len|isinstance)$")
"""Calls that are given a schedule and do not step it."""
KERAS_LENGTHS = ("decay_steps", "first_decay_steps", "warmup_steps")
COUNT_BATCHES = "count the batches, not the updates"
READS_ONLY = ("get_last_lr", "get_lr", "state_dict", "load_state_dict")
MAX_CALLERS = 3
"""How far up the calls of functions are followed."""
LENGTH = re.compile(r"warm|total|t_max|training_steps|(?:max|num|n)_(?:steps|iters|updates)|horizon|decay_steps", re.I)
"""Names of the lengths of a schedule."""
DATASET = re.compile(r"data_?set|(?:^|_)ds$", re.IGNORECASE)
KEEPS_UNIT = ("int", "round", "ceil", "floor", "float", "max", "min")
SHARES = re.compile(r"world|process|gpus|devices", re.IGNORECASE)
"""Names of how many processes share the work."""
BY_PLACE = {"CosineAnnealingLR": (1,), "OneCycleLR": (2,)}
"""The places of lengths among the arguments of schedules of PyTorch."""
MAX_STEPS_FOLLOWED = 8
"""Assignments and calls that a number is followed through to what it counts."""
HANDLERS = re.compile(r"call|cbs?\b|hook|sched|handler|plugin", re.IGNORECASE)
"""What loops go through that call each handler of an event once."""


def schedule_out_of_step(roles: Roles) -> Iterator[Fault]:
    """A schedule is stepped at the wrong pace, or never."""
    if not roles.trains_by_hand:
        return
    for name, made in roles.schedules.items():
        yield from _pace(roles, name, made)


def _pace(roles: Roles, name: str, made: Assignment) -> Iterator[Fault]:
    steps = [call for call in roles.schedule_steps if _steps_schedule(roles, call, name, made)]
    if any(step.node.args for step in steps):
        return  # it is given its place
    kind = dotted(made.value)
    if not steps:
        own = name.startswith("self.")
        if (own or "." not in name) and not _is_used(roles, name, made):
            says = f"{name} is made and never stepped: the learning rate stays at its first value"
            certainty: Certainty = "likely" if own else "certain"
            yield fault("schedule_never_stepped", made.line, certainty, says, fix=f"call {name}.step()")
        return
    often = [step for step in steps if not any(re.search(r"%|len\(", test) for test in step.conditions)]
    per_batch = next((step for step in often if _is_of_batches(roles, step)), None)
    through_data = per_batch is not None and _is_over_data(roles, per_batch)
    first = _first_change(roles, made)
    around = [roles.script.loops.get(line, "") for line in (per_batch.loops[:-1] if per_batch is not None else ())]
    of_passes = 0 < first < FEWEST_BATCHES or any(f"range({first})" in through for through in around)
    if per_batch is not None and through_data and of_passes:
        says = f"{name} counts epochs ({ast.unparse(made.value)[:80]}), and is stepped at every batch"
        yield fault("schedule_per_batch", per_batch.line, "likely", says)
    yield from _schedule_of_accumulated(roles, name, made, steps)
    gamma = _second_argument(roles, made, "gamma")
    if per_batch is not None and "Exponential" in kind and isinstance(gamma, float) and gamma < SLOWEST_DECAY:
        says = f"{name} multiplies the learning rate by {gamma} at every batch"
        yield fault("schedule_decays_per_batch", per_batch.line, "likely", says)


def _steps_schedule(roles: Roles, step: Call, name: str, made: Assignment) -> bool:
    """Say whether a call steps this schedule, and not one of its name that another function made for itself."""
    last = last_part(name)
    if last_part(step.owner) != last:
        return False
    own = roles.assignments_by_name.get((step.function, step.owner), [])
    return step.function == made.function or not any(isinstance(other.value, ast.Call) for other in own)


def _schedule_of_accumulated(roles: Roles, name: str, made: Assignment, steps: Sequence[Call]) -> Iterator[Fault]:
    """Yield a schedule that counts updates of several batches, and is stepped at each batch."""
    by_engine = roles.uses("accumulate", "Accelerator", "deepspeed")
    if by_engine or not ACCUMULATION.search(_spelled(roles, made.value, made.function)):
        return
    for step in steps:
        updates = [update for update in roles.steps if update.function == step.function and update.conditions]
        seldom = [update for update in updates if any("%" in test for test in update.conditions)]
        if not seldom or not step.loops or step.loops[: len(seldom[0].loops)] != seldom[0].loops:
            continue
        if not step.conditions:
            says = f"{name} counts updates of several batches each, and is stepped at every batch"
            yield fault("schedule_per_batch", step.line, "likely", says)


def _spelled(roles: Roles, node: ast.expr, function: str, depth: int = 4) -> str:
    text = ast.unparse(node)
    names = {part.id for part in walk(node, ast.Name)} if depth else set()
    for name in sorted(names):
        known = roles.assignments_by_name.get((function, name), []) + roles.assignments_by_name.get(("", name), [])
        if known and known[-1].value is not node and not isinstance(known[-1].value, ast.Call | ast.Lambda):
            text += f" {_spelled(roles, known[-1].value, function, depth - 1)}"
    return text


def _is_used(roles: Roles, name: str, made: Assignment) -> bool:
    """Say whether anything may step a schedule: a call of it, another file that is given it, a list that holds it."""
    last, names = last_part(name), roles.also_called(name)
    for call in roles.script.calls:
        of_it = call.method in names or (last_part(call.owner) in names and call.method not in READS_ONLY)
        if of_it and call.line != made.line:
            return True
    if any(roles.is_handed_on(known, except_to=HANDS_BACK) for known in names) or roles.is_kept(last):
        return True
    others = [other for other in roles.script.assignments if other.last != last]
    return any(dotted(other.value) == name for other in others)


def _first_change(roles: Roles, made: Assignment) -> int:
    """Return after how many steps a schedule of epochs changes first, or is through; 0 where that is not known."""
    kind = last_name(made.value)
    argument = {"StepLR": "step_size", "CosineAnnealingLR": "T_max", "MultiStepLR": "milestones"}.get(kind)
    value = _second_argument(roles, made, argument) if argument else None
    return value if isinstance(value, int) else 0


def _second_argument(roles: Roles, made: Assignment, name: str) -> object:
    """Return the value of an argument of a schedule, by its name or as the second; of a list its first."""
    call = made.value
    if not isinstance(call, ast.Call):
        return None
    given = roles.spelled_out(argument_of(call, name, 1))
    if isinstance(given, ast.List | ast.Tuple) and given.elts:
        given = given.elts[0]
    return constant_of(given)


def _is_of_batches(roles: Roles, step: Call, depth: int = MAX_CALLERS) -> bool | None:
    """Say whether a schedule is stepped once a batch; None where the file does not tell."""
    updates = roles.steps or roles.backwards
    same = [update for update in updates if update.function == step.function]
    if any(update.loops and step.loops[: len(update.loops)] == update.loops for update in same):
        return True
    if any(update.loops for update in same):
        return False
    inside = {call.method for call in roles.script.calls if step.loops and call.loops[: len(step.loops)] == step.loops}
    called = [update for update in updates if last_part(update.function) in inside]
    if called:
        return not any(update.loops for update in called)
    callers = roles.callers(step.function) if depth and not step.loops else []
    answers = {_is_of_batches(roles, caller, depth - 1) for caller in callers}
    return answers.pop() if len(answers) == 1 else None


def _is_over_data(roles: Roles, step: Call) -> bool:
    """Say whether the innermost loop around a call goes through data, and not through numbers of epochs or steps."""
    lines = step.loops or next((caller.loops for caller in roles.callers(step.function) if caller.loops), ())
    through = roles.script.loops.get(lines[-1], "") if lines else ""
    return bool(through) and not re.search(r"^(?:tqdm\()?t?range\(|epoch", through)


def schedule_of_another_optimizer(roles: Roles) -> Iterator[Fault]:
    """Two schedules move one optimizer, and another optimizer, made for the second of them, has none."""
    trace = roles.trace
    schedules = [schedule for schedule in trace.objects if schedule.kind == "schedule"]
    optimizers = [optimizer for optimizer in trace.objects if optimizer.kind == "optimizer"]
    if (
        len(optimizers) < 2
        or len(schedules) != len(optimizers)
        or len({schedule.made_by for schedule in schedules}) > 1
    ):
        return
    moved = [next((part for part in schedule.given if isinstance(part, Object)), None) for schedule in schedules]
    owners = [owner for owner in moved if owner is not None]
    free = [optimizer for optimizer in optimizers if optimizer not in owners]
    twice = [schedule for schedule, owner in zip(schedules, owners, strict=False) if owners.count(owner) > 1]
    if len(owners) == len(schedules) and free and twice:
        wrong = twice[-1]
        says = f"{wrong.label} moves {owners[-1].label} a second time, and {free[0].label} has no schedule"
        yield fault("schedule_of_another", wrong.line, "likely", says)


def made_for_lightning_alone(roles: Roles) -> Iterator[Fault]:
    """A schedule is made for Lightning and not returned to it."""
    for name, made in roles.schedules.items():
        if last_part(made.function) != "configure_optimizers":
            continue
        if "." not in name and not _is_used(roles, name, made):
            says = f"{name} is made and not returned: Lightning does not step it"
            yield fault("schedule_never_stepped", made.line, "certain", says, fix="return it with the optimizer")


def schedule_counts_another_unit(roles: Roles) -> Iterator[Fault]:
    """A schedule is as long as there are rows or batches, and moves on once an update; or the reverse."""
    for made in roles.script.assignments:
        steps = _steps_of(roles, made)
        if not steps or not isinstance(made.value, ast.Call):
            continue
        lengths = {_unit(roles, node, made.function): node for node in _lengths(roles, made.value)}
        paces = {_unit_of_step(roles, step) for step in steps}
        name = made.target
        if "rows" in lengths and not _one_row_a_batch(roles):
            written = ast.unparse(lengths["rows"])[:60]
            says = f"`{written}` counts rows, and {name} moves on once a step: this is as many times too long"
            yield fault("schedule_units", _line_of(roles, lengths["rows"], made.function), "likely", says)
        elif "batches" in lengths and paces == {"updates"}:
            written = ast.unparse(lengths["batches"])[:60]
            says = f"`{written}` counts batches, and {name} moves on once for several of them, with the weights"
            line = _line_of(roles, lengths["batches"], made.function)
            yield fault("schedule_units", line, _certainty(roles, steps[0]), says)
        elif "updates" in lengths and paces == {"batches"}:
            says = f"{name} counts updates of several batches each, and is stepped at every batch"
            yield fault("schedule_per_batch", steps[0].line, "likely", says)


def schedule_at_another_pace(roles: Roles) -> Iterator[Fault]:
    """A schedule whose lengths count passes moves on at each step, or one that counts steps moves on once a pass."""
    trace = roles.trace
    named: set[Object] = set()
    for schedule, interval in trace.intervals if not roles.uses("lr_scheduler_step", "lr_schedulers") else ():
        pace = interval.value if isinstance(interval, Constant) else ""
        facts = _counted(schedule, "epochs" if pace == "step" else "steps" if pace == "epoch" else "")
        if facts is not None and schedule not in named:
            named.add(schedule)
            line = facts_of(interval).line or schedule.line
            yield _at_another_pace(schedule, facts, schedule.line, pace == "step", (line,))
    for event in trace.of("schedule"):
        outer = next(iter(event.objects))
        given = isinstance(event.node, ast.Call) and bool(event.node.args)  # its place
        pace = "" if given else _pace_of(roles, event, outer)
        for schedule in {outer, *_inside(outer)} - named:
            facts = _counted(schedule, "epochs" if pace == "step" else "steps" if pace == "pass" else "")
            if facts is not None:
                named.add(schedule)
                yield _at_another_pace(schedule, facts, event.line, pace == "step", event.lines)


def _inside(schedule: Object) -> Iterator[Object]:
    yield from (part for value in schedule.given for part in objects_in(value) if part.kind == "schedule")


def keras_counts_batches(roles: Roles) -> Iterator[Fault]:
    """A schedule of Keras counts updates of several batches, and Keras asks it by batches.

    Source: findings/keras_accumulation_hastens_the_schedule.sh.
    """
    for call in roles.script.calls:
        several = call.argument("gradient_accumulation_steps")
        rate = call.argument("learning_rate", 0) if several is not None else None
        schedule = roles.source_of(rate, call) if rate is not None else None
        given = schedule.keywords if isinstance(schedule, ast.Call) else []
        for length in (keyword.value for keyword in given if keyword.arg in KERAS_LENGTHS):
            if DIVIDED.search(_spelled(roles, length, call.function)):
                written = ast.unparse(length)[:60]
                says = (
                    f"`{written}` counts updates, and Keras moves the schedule on at each of the batches between them"
                )
                yield fault("schedule_units", length.lineno, "likely", says, fix=COUNT_BATCHES, lines=(call.line,))


def lengths_differ(roles: Roles) -> Iterator[Fault]:
    """A schedule is given one length in batches and another in updates of several batches."""
    for schedule in roles.trace.objects:
        kinds = {facts.kind: facts.line for facts in schedule.lengths}
        if {"batches", "updates"} <= set(kinds):
            says = f"one length of {schedule.label or 'this schedule'} counts batches, and another updates of several"
            yield fault("schedule_units", schedule.line, "likely", says, lines=(*kinds.values(),))


def _at_another_pace(schedule: Object, facts: Facts, line: int, is_each_step: bool, lines: Sequence[int]) -> Fault:
    counts, moves = ("epochs", "at every batch") if is_each_step else ("batches", "once a pass")
    says = f"{schedule.label} counts {counts} (line {facts.line}), and is stepped {moves}"
    rule = "schedule_per_batch" if is_each_step else "schedule_per_epoch"
    return fault(rule, line, "certain", says, lines=(*lines, facts.line, schedule.line))


def _counted(schedule: Object, what: Literal["epochs", "steps", ""]) -> Facts | None:
    """Return what a schedule counts where all that is known of it counts epochs, or steps."""
    known = [facts for facts in schedule.lengths if facts.kind in COUNTS]
    kinds = {facts.kind for facts in known}
    same = {"epochs": {"epochs"}, "steps": {"batches", "updates", "steps"}, "": set[str]()}[what]
    return known[0] if known and kinds <= same else None


def _pace_of(roles: Roles, event: Event, schedule: Object) -> Literal["step", "pass", ""]:
    """Return whether a schedule moves on with each step of its optimizer, or once for all those of a pass."""
    moved = [part for value in schedule.given[:1] for part in objects_in(value)]
    steps = [step for step in roles.trace.of("step") if step.entry == event.entry and step.loops]
    steps = [step for step in steps if not moved or not step.objects.isdisjoint(moved)]
    if any(set(event.tests) - set(step.tests) for step in steps) or "Plateau" in schedule.made_by:
        return ""
    depths = {len(step.loops) for step in steps}
    if len(depths) != 1:
        return ""
    depth, own = depths.pop(), event.loop_lines
    shared = max(_shared(own, step.loop_lines) for step in steps)
    through = [roles.script.loops.get(line, "") for line in own]
    if not all(map(HANDLERS.search, through[shared:])):
        return ""
    if shared == depth > 1:
        return "" if re.search(r"range\(.{0,80}epoch", through[shared - 1], re.IGNORECASE) else "step"
    return "pass" if 0 < shared < depth else ""


def _shared(loops: Sequence[int], others: Sequence[int]) -> int:
    """Return how many of the outermost loops are the same."""
    pairs = zip(loops, others, strict=False)
    return next((place for place, (loop, other) in enumerate(pairs) if loop != other), min(len(loops), len(others)))


def _steps_of(roles: Roles, made: Assignment) -> list[Call]:
    if not isinstance(made.value, ast.Call) or made.place is not None:
        return []
    if made.target not in roles.schedules and "sched" not in made.target.lower():
        return []
    names = roles.also_called(made.target)
    calls = [call for call in roles.schedule_steps if last_part(call.owner) in names]
    return [call for call in calls if not call.node.args and not call.node.keywords]


def _lengths(roles: Roles, call: ast.Call) -> Iterator[ast.expr]:
    """Yield the lengths that a schedule is given, or that the function reads which it is given."""
    name = last_name(call)
    for keyword in call.keywords:
        if keyword.arg and LENGTH.search(keyword.arg):
            yield keyword.value
    places = (1, 2) if re.fullmatch(r"get_\w+_with_warmup", name) else BY_PLACE.get(name, ())
    yield from (call.args[place] for place in places if place < len(call.args))
    parameters = parameters_of(roles.definitions.get(name))
    yield from (arg for parameter, arg in zip(parameters, call.args, strict=False) if LENGTH.search(parameter))
    if name == "LambdaLR" and len(call.args) > 1:
        given = call.args[1]
        body = given if isinstance(given, ast.Lambda) else roles.definitions.get(last_name(given))
        for node in ast.walk(body) if body is not None else ():
            if isinstance(node, ast.Name | ast.Attribute) and LENGTH.search(last_name(node)):
                yield node


def _unit_of_step(roles: Roles, step: Call) -> DataKind:
    """Return what a schedule is stepped once for: an update of several batches, a batch, or what is not known."""
    if roles.uses("accumulate", "deepspeed", "Accelerator"):
        return ""
    runs = roles.runs(step)
    if all(any("%" in test and ACCUMULATED.search(test) for test in run.conditions) for run in runs):
        return "updates"
    updates = [update for update in roles.steps if update.function == step.function]
    seldom = [update for update in updates if any(map(ACCUMULATED.search, update.conditions))]
    same = any(step.loops == update.loops and step.loops and not step.conditions for update in seldom)
    return "batches" if same else ""


def _certainty(roles: Roles, step: Call) -> Certainty:
    """Return how sure it is that several batches make an update: the default of a setting may be one."""
    tests = [ast.parse(test, mode="eval") for run in roles.runs(step) for test in run.conditions]
    parts = [part for test in tests for part in walk(test, ast.Name, ast.Attribute)]
    counts = [roles.number_of(part) for part in parts if ACCUMULATED.search(last_name(part))]
    return "depends" if 1 in counts else "likely"


def _one_row_a_batch(roles: Roles) -> bool:
    """Say whether a loader is given no size, so that a batch may be one row."""
    loaders = roles.script.named("DataLoader")
    return not loaders or any(
        len(call.node.args) < 2 and not (call.is_spread or {"batch_size", "batch_sampler"} & {*call.keywords})
        for call in loaders
    )


def _unit(roles: Roles, node: ast.expr, function: str, depth: int = MAX_STEPS_FOLLOWED) -> DataKind:
    """Return what a number counts; empty where that is not known."""
    unit: DataKind = ""
    if depth == 0:
        return unit
    match node:
        case ast.Name() | ast.Attribute():
            unit = _unit_of_name(roles, node, function, depth)
        case ast.Call():
            unit = _unit_of_call(roles, node, function, depth)
        case ast.BinOp(op=ast.Div() | ast.FloorDiv()):
            names = last_names(node.right)
            plain = constant_of(node.right) is not None or any(map(SHARES.search, names))
            unit = divided(_unit(roles, node.left, function, depth - 1), node.right, plain=plain)
        case ast.BinOp(op=ast.Mult()):
            unit = _multiplied(roles, node, function, depth - 1)
        case ast.BinOp(op=ast.Add() | ast.Sub()):
            sides = {_unit(roles, side, function, depth - 1) for side in (node.left, node.right)} - {""}
            unit = sides.pop() if len(sides) == 1 else ""
        case ast.UnaryOp():  # the ceiling of a quotient is written as -(-n // k)
            unit = _unit(roles, node.operand, function, depth - 1)
    return unit


def _multiplied(roles: Roles, node: ast.BinOp, function: str, depth: int) -> DataKind:
    """Return what a product counts: that of one factor, unless the other is a number of rows or batches."""
    left, right = (_unit(roles, side, function, depth) for side in (node.left, node.right))
    if left and right:
        return ""
    other = node.right if left else node.left
    names = last_name(other)
    if ACCUMULATED.search(names) or ROWS_OF_BATCH.search(names):
        return ""
    return left or right


def _unit_of_call(roles: Roles, node: ast.Call, function: str, depth: int) -> DataKind:
    name = last_name(node)
    if name == "len" and len(node.args) == 1:
        return _unit_of_length(roles, node.args[0], function, depth)
    if name in KEEPS_UNIT:
        units = {_unit(roles, arg, function, depth - 1) for arg in node.args} - {""}
        return units.pop() if len(units) == 1 else ""
    return _unit_returned(roles, name, None, depth - 1)


def _unit_of_length(roles: Roles, node: ast.expr, function: str, depth: int) -> DataKind:
    """Return what the length of something is: the batches of a loader, the rows of a data set."""
    name = dotted(node)
    last = last_part(name)
    if name in roles.loaders or LOADER.search(last):
        return "batches"
    read = [call.node.args[0] for call in roles.script.named("DataLoader") if call.node.args]
    if last and (any(dotted(part) == name for part in read if not isinstance(part, ast.Call)) or DATASET.search(last)):
        return "rows"
    for given, caller in _arguments_for(roles, name, function):
        return _unit_of_length(roles, given, caller, depth - 1) if depth else ""
    return ""


def _unit_of_name(roles: Roles, node: ast.Name | ast.Attribute, function: str, depth: int) -> DataKind:
    """Return what the value of a name counts: as it was assigned, or as all callers give it."""
    name = dotted(node)
    made = roles.assignments_by_name.get((function, name), [])
    if not made and name.startswith("self."):
        made = roles.script.made(name)
    if not made and not (function and roles.is_parameter(name, function)):
        outer = function.rpartition(".")[0]
        made = roles.assignments_by_name.get((outer, name), []) or roles.assignments_by_name.get(("", name), [])
    if made:
        last = made[-1]
        if last.place is None:
            return _unit(roles, last.value, last.function, depth - 1) if not last.adds else ""
        return _unit_returned(roles, called_name(last.value), last.place, depth - 1)
    units = {_unit(roles, given, caller, depth - 1) for given, caller in _arguments_for(roles, name, function)}
    return units.pop() if len(units) == 1 else ""


def _unit_returned(roles: Roles, name: str, place: int | None, depth: int) -> DataKind:
    """Return what a number counts that a function of this file gives."""
    returned = _returned(roles, name, place)
    return _unit(roles, *returned, depth) if returned is not None else ""


def _returned(roles: Roles, name: str, place: int | None) -> tuple[ast.expr, str] | None:
    """Return what a function of this file gives, as the part of a tuple where a place is asked, and its full name."""
    helper = roles.definitions.get(name)
    if not isinstance(helper, ast.FunctionDef):
        return None
    value = part_of(only_value(helper), place)
    return (value, roles.path_of(name)) if value is not None else None


def _line_of(roles: Roles, node: ast.expr, function: str, depth: int = MAX_STEPS_FOLLOWED) -> int:
    """Return where a length is computed: in the helper that gives it, or where a name gets it."""
    made = roles.assignments_by_name.get((function, dotted(node)), []) if isinstance(node, ast.Name) else []
    if not made or not depth:
        return node.lineno
    called = last_name(made[-1].value.func) if isinstance(made[-1].value, ast.Call) else ""
    returned = _returned(roles, called, made[-1].place)
    if returned is not None:
        return _line_of(roles, *returned, depth - 1)
    return made[-1].line


def _arguments_for(roles: Roles, parameter: str, function: str) -> list[tuple[ast.expr, str]]:
    """Return what callers of this file give a function for a parameter, each with the function of the caller."""
    name = last_part(function)
    owner = roles.definitions.get(last_part(function.rpartition(".")[0]))
    called = owner.name if name == "__init__" and isinstance(owner, ast.ClassDef) else name
    parameters = parameters_of(owner if called != name else roles.definitions.get(name))
    if parameter not in parameters:
        return []
    given = [(call.argument(parameter, parameters.index(parameter)), call) for call in roles.script.named(called)]
    return [(value, call.function) for value, call in given if value is not None]
