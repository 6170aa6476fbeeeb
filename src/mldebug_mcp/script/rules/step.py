"""Do gradients change the weights: the order of zero_grad, backward, clipping and step; scaler; accumulation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from mldebug_mcp.models.script import Certainty
from mldebug_mcp.script.calls import (
    Call,
    arguments_of,
    called_name,
    calls_in,
    constant_of,
    dotted,
    exclude,
    is_operation,
    last_name,
    last_part,
    names_in,
    values_returned,
    walk,
)
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.roles import Roles, Run
from mldebug_mcp.script.trace import Event, Trace
from mldebug_mcp.script.values import Object

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
    """Say whether a step is to train: a model or loss is called, no function that is given may compute gradients."""
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
    """Say whether the number that a test counts by starts again in each pass; where it goes on, no batch is left."""
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
