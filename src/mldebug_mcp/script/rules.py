"""The rules: what in a script is a fault for certain, likely, or depending on what the script does not show.

Each rule looks at the calls in their order. None runs anything. A rule that is not sure says so by its certainty. What
the script does right is found as well, as it rules causes out.
"""

from __future__ import annotations

import ast
import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from mldebug_mcp.script.calls import Assignment, Call, calls_in, constant_of, dotted, names_in
from mldebug_mcp.script.roles import EVALUATES, MODULE, NO_GRAD, ONE_CALL_TRAINERS, Roles

Certainty = Literal["certain", "likely", "depends"]


@dataclass(frozen=True, slots=True)
class Fault:
    """Something in a script that is wrong, or may be.

    Args:
        rule: Its id.
        line: The line, from 1.
        certainty: "certain", "likely", or "depends" on what the script does not show.
        cause: The cause of PLAYBOOK.md that it is.
        says: What stands there, and why that is wrong.
        shows: What it would show in a log.
        fix: What to write instead.
    """

    rule: str
    line: int
    certainty: Certainty
    cause: str
    says: str
    shows: str
    fix: str


FAULTS_FILE = Path(__file__).parent / "faults.csv"


@lru_cache(maxsize=1)
def kinds() -> dict[str, tuple[str, str, str]]:
    """Return, by the id of a rule, the cause of what it finds, what that would show in a log, and the fix."""
    with FAULTS_FILE.open(encoding="utf-8", newline="") as file:
        return {row["rule"]: (row["cause"], row["shows"], row["fix"]) for row in csv.DictReader(file)}


def fault(rule: str, line: int, certainty: Certainty, says: str, *, cause: str = "", fix: str = "") -> Fault:
    """Return a fault of a rule; what it shows comes from `faults.csv`, and cause and fix where none is given."""
    usual_cause, shows, usual_fix = kinds()[rule]
    return Fault(rule, line, certainty, cause or usual_cause, says, shows, fix or usual_fix)


Rule = Callable[[Roles], Iterator[Fault]]
RULES: list[Rule] = []


def _rule(function: Rule) -> Rule:
    RULES.append(function)
    return function


def faults_of(roles: Roles) -> list[Fault]:
    """Return what is wrong in a script, by line; of one rule a line is named once."""
    found = {(fault.rule, fault.line): fault for rule in RULES for fault in rule(roles)}
    return sorted(found.values(), key=lambda fault: (fault.line, fault.rule))


# The order of zero_grad, backward, clipping and step.


@_rule
def gradients_never_cleared(roles: Roles) -> Iterator[Fault]:
    """Gradients are never cleared, or only once a pass."""
    if not roles.backwards or not roles.steps or _clears_otherwise(roles):
        return
    cleared = roles.script.named("zero_grad")
    if not cleared:
        step = roles.steps[0]
        says = f"{step.name}() changes the weights, and nothing in the file clears the gradients (zero_grad)"
        yield fault("gradients_never_cleared", step.line, "certain", says)
        return
    for step in roles.steps:
        same = [one for one in cleared if one.function == step.function]
        outside = [
            one for one in same if len(one.loops) < len(step.loops) and one.loops == step.loops[: len(one.loops)]
        ]
        if same and len(outside) == len(same) and not _in_closure(step):
            says = f"zero_grad() stands outside the loop in which {step.name}() is called"
            yield fault("gradients_cleared_outside", same[0].line, "certain", says)
    owners = {one.owner for one in cleared}
    if len(roles.optimizers) > 1 and owners <= set(roles.optimizers):
        for step in roles.steps:
            if step.owner in roles.optimizers and step.owner not in owners and step.loops:
                says = f"{step.owner} is stepped, and only {', '.join(sorted(owners))} clears gradients"
                yield fault("one_optimizer_not_cleared", step.line, "likely", says)


def _clears_otherwise(roles: Roles) -> bool:
    by_hand = any(one.target.endswith(".grad") for one in roles.script.assignments)
    return by_hand or roles.uses("grad.zero_", "clear_grad", "manual_backward", "deepspeed.initialize", "engine.step")


def _in_closure(step: Call) -> bool:
    return bool(step.node.args) and not step.owner.lower().endswith("scaler")


@_rule
def gradients_cleared_before_use(roles: Roles) -> Iterator[Fault]:
    """Gradients are cleared between backward and step; or the step comes between clearing and backward."""
    for backward in roles.backwards:
        unit = [one for one in roles.unit(backward) if one.loops == backward.loops]
        steps = [one for one in unit if one in roles.steps]
        cleared = [one for one in unit if one.method == "zero_grad"]
        after = [one for one in steps if one.order > backward.order]
        for clear in cleared:
            step = next((one for one in after if one.order > clear.order), None)
            again = step is not None and any(clear.order < one.order < step.order for one in roles.backwards)
            if clear.order > backward.order and step is not None and not again and not clear.conditions:
                if clear.owner in roles.optimizers and step.owner in roles.optimizers and clear.owner != step.owner:
                    continue
                says = "zero_grad() stands between backward() and step(): each step is made without a gradient"
                yield fault("cleared_before_step", clear.line, "certain", says)
        if (
            steps
            and not after
            and cleared
            and not any(one in roles.backwards for one in unit if one.order < steps[0].order)
        ) and (max(one.order for one in cleared if True) and cleared[0].order < steps[0].order):
            says = "step() stands before backward() and after zero_grad(): it is made without a gradient"
            yield fault("step_before_backward", steps[0].line, "certain", says)


@_rule
def nothing_is_stepped(roles: Roles) -> Iterator[Fault]:
    """Gradients are computed and no optimizer uses them, or a call lacks its parentheses."""
    bare = [
        node.value
        for node in ast.walk(roles.script.tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Attribute) and node.value.attr in _UNCALLED
    ]
    for name in bare:
        says = f"{dotted(name)} is named and not called: its parentheses are missing"
        yield fault(
            "not_called", name.lineno, "certain", says, cause=_UNCALLED[name.attr], fix=f"write {dotted(name)}()"
        )
    if bare:
        return
    by_hand = any(one.target.endswith(".data") or ".grad" in ast.unparse(one.value) for one in roles.script.assignments)
    others = [one for one in roles.script.named("step", "minimize") if one not in roles.schedule_steps]
    if roles.backwards and not others and not by_hand and not roles.uses("autograd.grad", "sub_", "add_", "copy_"):
        yield fault(
            "no_step", roles.backwards[0].line, "likely", "gradients are computed, and no optimizer makes a step"
        )
    if roles.steps and not roles.backwards and not roles.uses("backward", "Trainer", "fit"):
        says = f"{roles.steps[0].name}() is called, and nothing computes a gradient (backward)"
        yield fault("no_backward", roles.steps[0].line, "likely", says)


_UNCALLED = {
    "zero_grad": "missing_zero_grad",
    "eval": "eval_mode_bug",
    "train": "eval_mode_bug",
    "backward": "params_not_training",
    "step": "params_not_training",
}
"""Methods that do nothing without their parentheses, and the cause that they are then."""


@_rule
def clipping_without_effect(roles: Roles) -> Iterator[Fault]:
    """Gradients are clipped where that has no effect, or while they are scaled."""
    for clip in roles.script.named("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm"):
        unit = [one for one in roles.script.calls if one.function == clip.function and one.loops == clip.loops]
        backwards = [one for one in unit if one in roles.backwards]
        steps = [one for one in unit if one in roles.steps]
        if not backwards or not steps:
            continue
        if all(one.order < clip.order for one in steps) or all(one.order > clip.order for one in backwards):
            where = "after step()" if clip.order > steps[-1].order else "before backward()"
            says = f"gradients are clipped {where}: that has no effect"
            yield fault("clip_too_late", clip.line, "certain", says)
        scaled = any("scaler.scale" in one.name or one.name.endswith("scale") for one in unit if "scaler" in one.name)
        unscaled = any(one.method == "unscale_" and one.order < clip.order for one in unit)
        if scaled and not unscaled:
            says = (
                "gradients are clipped while the scaler has them scaled up: the limit is thousands of times too tight"
            )
            yield fault("clip_scaled", clip.line, "certain", says)


@_rule
def scaler_half_used(roles: Roles) -> Iterator[Fault]:
    """The loss is scaled, and the optimizer steps past the scaler."""
    scaled = [one for one in roles.script.calls if one.method == "scale" and "scaler" in one.owner.lower()]
    if not scaled:
        return
    steps = [one for one in roles.steps if "scaler" in one.owner.lower()]
    own = [one for one in roles.steps if "scaler" not in one.owner.lower()]
    if own and not steps:
        says = "the loss is scaled by the scaler, and the optimizer steps past it with scaled gradients"
        yield fault("step_past_scaler", own[0].line, "certain", says)
    elif steps and not [one for one in roles.script.named("update") if "scaler" in one.owner.lower()]:
        says = "scaler.update() is never called: the scale stays, also where gradients overflow"
        yield fault("scaler_never_updated", steps[0].line, "certain", says)


# Schedules of the learning rate.


@_rule
def schedule_out_of_step(roles: Roles) -> Iterator[Fault]:
    """A schedule is stepped before the optimizer, at the wrong pace, or never."""
    if not roles.trains_by_hand:
        return
    for step in roles.schedule_steps:
        unit = [one for one in roles.steps if one.function == step.function and one.loops == step.loops]
        if unit and all(one.order > step.order for one in unit):
            says = "scheduler.step() stands before optimizer.step(): the first value of the schedule is skipped"
            yield fault("schedule_first", step.line, "certain", says)
    for name, made in roles.schedules.items():
        yield from _pace(roles, name, made)


def _pace(roles: Roles, name: str, made: Assignment) -> Iterator[Fault]:
    steps = [one for one in roles.schedule_steps if one.owner.rpartition(".")[2] == name.rpartition(".")[2]]
    kind, text = dotted(made.value), ast.unparse(made.value)
    handed_on = [
        one for one in roles.script.calls if name in {dotted(arg) for arg in one.node.args} and one.line != made.line
    ]
    if not steps:
        named = {dotted(value) for one in roles.script.calls for value in one.keywords.values()}
        returned = any(isinstance(node, ast.Return) and name in names_in(node) for node in ast.walk(roles.script.tree))
        if not handed_on and name not in named and not returned and not name.startswith("self."):
            says = f"{name} is made and never stepped: the learning rate stays at its first value"
            yield fault("schedule_never_stepped", made.line, "certain", says, fix=f"call {name}.step()")
        return
    depth = max(len(one.loops) for one in roles.backwards)
    inside = [one for one in steps if _is_of_batches(roles, one)]
    by_epoch = re.search(r"\b(?:n_|num_|max_)?epochs?\b", text, re.IGNORECASE) and not re.search(
        r"len\(|steps|batches|iters", text
    )
    if inside and by_epoch and "Plateau" not in kind:
        says = f"{name} counts epochs ({text[:80]}), and is stepped at every batch: it is through after as many batches"
        yield fault("schedule_per_batch", inside[0].line, "certain", says)
    per_batch = "OneCycle" in kind or re.search(
        r"len\(\s*\w*loader|total_steps|num_training_steps|steps_per_epoch", text
    )
    if per_batch and not inside and depth >= 1 and any(one.loops for one in roles.backwards):
        says = f"{name} counts batches ({text[:80]}), and is stepped once a pass"
        yield fault("schedule_per_epoch", steps[0].line, "certain", says)
    gamma = (
        next((constant_of(one.value) for one in made.value.keywords if one.arg == "gamma"), None)
        if isinstance(made.value, ast.Call)
        else None
    )
    if inside and "Exponential" in kind and isinstance(gamma, float) and gamma < 0.999:
        says = f"{name} multiplies the learning rate by {gamma} at every batch"
        yield fault("schedule_decays_per_batch", inside[0].line, "likely", says)


def _is_of_batches(roles: Roles, step: Call) -> bool:
    """Say whether a schedule is stepped in the loop in which gradients are computed."""
    return any(
        one.function == step.function and one.loops and step.loops[: len(one.loops)] == one.loops
        for one in roles.backwards
    )


# Accumulated gradients.


@_rule
def accumulation(roles: Roles) -> Iterator[Fault]:
    """Gradients of several batches are added: is the loss divided, are they cleared too often?"""
    if roles.uses("accumulate", "Accelerator", "manual_backward") and roles.uses("accelerator.accumulate"):
        return
    for step in roles.steps:
        every = next((one for one in step.conditions if "%" in one and "not (" not in one), None)
        backward = next(
            (
                one
                for one in roles.backwards
                if one.function == step.function and one.loops == step.loops and every not in one.conditions
            ),
            None,
        )
        if every is None or backward is None or not step.loops:
            continue
        unit = roles.unit(backward)
        cleared = [one for one in unit if one.method == "zero_grad"]
        if cleared and all(not any("%" in test for test in one.conditions) for one in cleared):
            says = (
                f"zero_grad() is called at every batch, and step() only where {every}: all but the last batch are lost"
            )
            yield fault("accumulation_cleared", cleared[0].line, "certain", says)
        if not _is_divided(roles, backward):
            says = (
                f"step() is called where {every}, and the loss is not divided by the number of batches that are added"
            )
            yield fault("accumulation_not_divided", backward.line, "likely", says)
        leftover = "len(" in every or any("len(" in test for test in step.conditions)
        later = [one for one in roles.steps if one.order > step.order and len(one.loops) < len(step.loops)]
        if not leftover and not later:
            says = "batches that are left at the end of a pass make no step, and their gradients stay for the next pass"
            yield fault("accumulation_leftover", step.line, "depends", says)


def _is_divided(roles: Roles, backward: Call) -> bool:
    expressions: list[ast.expr] = [backward.node.func, *backward.node.args]
    names = set[str]().union(*(names_in(one) for one in expressions))
    expressions += [
        one.value
        for one in roles.script.assignments
        if one.target in names and one.function == backward.function and one.order <= backward.order
    ]
    if any(
        isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) for one in expressions for node in ast.walk(one)
    ):
        return True
    return any(
        isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div | ast.Mult) and dotted(node.target) in names
        for node in ast.walk(roles.script.tree)
    ) or any("mean" in name for one in expressions for name in calls_in(one) if "accum" in ast.unparse(one))


# Training and evaluation mode.


@_rule
def modes(roles: Roles) -> Iterator[Fault]:
    """Is the model in evaluation mode where it is evaluated, and in training mode where it trains?"""
    if not roles.trains_by_hand:
        return
    evals = [one for one in roles.script.named("eval") if one.owner and not one.node.args]
    trains = [one for one in roles.script.named("train") if "trainer" not in one.owner.lower() and one.owner]
    training = {one.function for one in roles.backwards}
    if evals and not trains and _comes_again(roles, evals[0]) and not roles.uses("set_grad_mode"):
        says = (
            f"{evals[0].name}() is called between passes, and train() nowhere: dropout and batch statistics stay off "
            "after the first evaluation"
        )
        yield fault("never_back_to_training", evals[0].line, "certain", says)
    for train in trains:
        later = [
            one
            for one in evals
            if one.function == train.function and one.order > train.order and len(one.loops) > len(train.loops)
        ]
        again = [one for one in trains if (one.loops and one.order != train.order) or one.function != train.function]
        helper = [one for one in evals if one.function != train.function and EVALUATES.search(one.function)]
        called = any(
            one.method == evaluated.function and one.loops and one.function == train.function
            for evaluated in helper
            for one in roles.script.calls
        )
        if (
            not train.loops
            and not again
            and (later or called)
            and train.function in training
            and any(one.loops for one in roles.backwards)
        ):
            says = (
                f"{train.name}() is called once before the loop, and the model is put into evaluation mode inside of it"
            )
            yield fault("never_back_to_training", train.line, "certain", says)
    if not evals:
        yield from _evaluates_in_training_mode(roles)
    for call in roles.script.calls:
        functional = re.search(r"(?:^|\.)(?:F|functional)\.(?:alpha_|feature_alpha_)?dropout\d?d?$", call.name)
        if functional and "training" not in call.keywords and len(call.node.args) < 3:
            says = f"{call.name}() drops units in evaluation as well: its `training` is true unless it is given"
            yield fault(
                "dropout_always_on", call.line, "certain", says, fix=f"{call.name}(x, p, training=self.training)"
            )


def _comes_again(roles: Roles, call: Call) -> bool:
    """Say whether a call comes again while training goes on: in a loop with training, or in a function called there."""
    if call.loops and any(one.loops[:1] == call.loops[:1] for one in roles.backwards):
        return True
    return any(one.loops and one.method == call.function.rpartition(".")[2] for one in roles.script.calls)


def _evaluates_in_training_mode(roles: Roles) -> Iterator[Fault]:
    """Yield where a model with layers of two modes is evaluated without `eval()`."""
    if roles.uses("Lightning", "Trainer"):
        return
    evaluations = [
        one
        for one in roles.script.calls
        if one.function not in {other.function for other in roles.backwards}
        and EVALUATES.search(one.function)
        and re.search(r"(?:^|\.)(?:model|net|network|self)$", one.name)
    ]
    inline = [
        one
        for one in roles.script.calls
        if any(NO_GRAD.search(guard) for guard in one.guards) and re.search(r"(?:^|\.)(?:model|net|network)$", one.name)
    ]
    first = next(iter([*evaluations, *inline]), None)
    if first is None:
        return
    modal = roles.uses("from_pretrained", "resnet", "torchvision.models", "create_model") or any(
        re.search(r"^(?:\w*Dropout\d?d?|\w*BatchNorm\d?d?|Transformer\w*Layer)$", call.method)
        and call.constant("dropout") != 0
        for call in roles.script.calls
    )
    certainty: Certainty = "certain" if modal else "depends"
    says = "the model is evaluated, and eval() is called nowhere: dropout and batch statistics stay on"
    yield fault("evaluates_in_training_mode", first.line, certainty, says)


@_rule
def gradients_of_evaluation(roles: Roles) -> Iterator[Fault]:
    """Evaluation keeps the graph."""
    if not roles.trains_by_hand:
        return
    for call in roles.script.calls:
        evaluates = EVALUATES.search(call.function) and call.function not in {one.function for one in roles.backwards}
        off = any(NO_GRAD.search(guard) for guard in call.guards) or roles.uses("set_grad_enabled", "inference_mode")
        if evaluates and not off and call.loops and re.search(r"(?:^|\.)(?:model|net|network)$", call.name):
            says = "the model is evaluated with gradients on: memory is held for them"
            yield fault("gradients_in_evaluation", call.line, "depends", says)
            return


# The loss.


@_rule
def activation_twice(roles: Roles) -> Iterator[Fault]:
    """A softmax or sigmoid stands before a loss that takes one itself; or none stands where one is needed."""
    for call in roles.script.calls:
        if not call.node.args:
            continue
        given = roles.source_of(call.node.args[0], call)
        through = _activation(roles, given)
        if roles.is_cross_entropy(call) and through == "softmax":
            yield _twice(call.line, "cross-entropy takes the softmax itself, and is given one already")
        elif roles.loss_named(call, "BCEWithLogitsLoss", "binary_cross_entropy_with_logits") and through == "sigmoid":
            yield _twice(call.line, "this loss takes the sigmoid itself, and is given one already")
        elif roles.loss_named(call, "NLLLoss", "nll_loss") and through == "softmax":
            says = "the negative log-likelihood takes log-probabilities, and is given probabilities"
            yield fault("nll_of_probabilities", call.line, "certain", says)
        elif (
            roles.loss_named(call, "BCELoss", "binary_cross_entropy")
            and not through
            and not roles.uses("sigmoid", "Sigmoid")
        ):
            says = "binary cross-entropy takes probabilities, and nothing in the file makes any (sigmoid)"
            yield fault("bce_of_logits", call.line, "likely", says)


def _twice(line: int, says: str) -> Fault:
    return fault("activation_twice", line, "certain", says)


def _activation(roles: Roles, given: ast.expr) -> str:
    """Return which activation an expression ends in: "softmax", "sigmoid" or ""; that of a model by its class."""
    outer = _outermost(given)
    last = outer.rpartition(".")[2].lower()
    if last in ("softmax", "sigmoid"):
        return last
    if last in ("log_softmax", "logsoftmax") or not isinstance(given, ast.Call):
        return ""
    if len(roles.modules) == 1 or re.search(r"(?:^|\.)(?:model|net|network|classifier)$", outer):
        ends = {_ends_in(one) for one in roles.modules} - {""}
        own = _sequential_end(roles)
        return next(iter(ends), "") if len(ends) == 1 else own
    return _sequential_end(roles)


def _outermost(node: ast.expr) -> str:
    """Return the name of the outermost call of an expression, past reshaping."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr not in (
            "view",
            "reshape",
            "flatten",
            "squeeze",
            "float",
            "contiguous",
            "transpose",
            "permute",
            "to",
        ):
            break
        node = node.func.value
    if isinstance(node, ast.Call):
        return dotted(node.func)
    return ""


def _ends_in(module: ast.ClassDef) -> str:
    """Return which activation the forward of a model ends in."""
    forward = next((one for one in module.body if isinstance(one, ast.FunctionDef) and one.name == "forward"), None)
    if forward is None:
        return ""
    for node in reversed(list(ast.walk(forward))):
        if isinstance(node, ast.Return) and node.value is not None:
            value = node.value
            if isinstance(value, ast.Name):
                assigned = [
                    one.value for one in ast.walk(forward)
                    if isinstance(one, ast.Assign) and any(dotted(target) == value.id for target in one.targets)
                ]  # fmt: skip
                value = assigned[-1] if assigned else value
            last = _outermost(value).rpartition(".")[2].lower()
            if last in ("softmax", "sigmoid"):
                return last
            called = _outermost(value)
            return _attribute_end(module, called)
    return ""


def _attribute_end(module: ast.ClassDef, called: str) -> str:
    """Return the activation at the end of a layer of a model, such as `self.net = nn.Sequential(..., nn.Softmax())`."""
    for node in ast.walk(module):
        if isinstance(node, ast.Assign) and any(dotted(target) == called for target in node.targets):
            return _module_end(node.value)
    return ""


def _module_end(node: ast.expr) -> str:
    if not isinstance(node, ast.Call):
        return ""
    name = dotted(node.func).rpartition(".")[2]
    if name == "Sequential" and node.args:
        return _module_end(node.args[-1])
    return name.lower() if name in ("Softmax", "Sigmoid") else ""


def _sequential_end(roles: Roles) -> str:
    """Return the activation at the end of a model that is one `nn.Sequential`."""
    models = [
        one for one in roles.script.assignments if dotted(one.value).endswith("Sequential") and "." not in one.target
    ]
    return _module_end(models[-1].value) if len(models) == 1 else ""


@_rule
def loss_without_graph(roles: Roles) -> Iterator[Fault]:
    """The loss is cut off from the weights before backward."""
    for backward in roles.backwards:
        if any(NO_GRAD.search(guard) for guard in backward.guards):
            says = "backward() stands under no_grad: there is no graph to go through"
            yield fault("backward_without_graph", backward.line, "certain", says)
        given = (
            backward.node.args[0]
            if backward.node.args
            and "." in backward.name
            and backward.owner in ("accelerator", "self", "fabric", "scaler")
            else None
        )
        if isinstance(backward.node.func, ast.Attribute):
            given = given or backward.node.func.value
        if given is None:
            continue
        source = roles.source_of(given, backward)
        cut = [name for name in calls_in(source) if name.rpartition(".")[2] in ("item", "detach", "numpy", "tolist")]
        made = re.search(r"(?:^|\.)(?:tensor|Tensor|Variable|as_tensor)$", _outermost(source) or "")
        if (cut and not made) or (
            made and isinstance(source, ast.Call) and source.args and not isinstance(source.args[0], ast.List)
        ):
            says = f"backward() is called on a value that is cut off from the model: {ast.unparse(source)[:80]}"
            yield fault("loss_cut_off", backward.line, "certain", says)
    for call in roles.script.calls:
        computes = call.name in roles.losses or re.search(
            r"(?:^|\.)(?:F|functional)\.\w*(?:loss|entropy)\w*$", call.name
        )
        if computes and call.node.args and call.function in {one.function for one in roles.backwards}:
            source = roles.source_of(call.node.args[0], call)
            if _last_method(source) in ("detach", "data", "argmax", "round") and call.loops:
                says = f"the loss is computed on outputs that are cut off from the model: {ast.unparse(source)[:80]}"
                yield fault("loss_cut_off", call.line, "certain", says, fix="give the loss the outputs themselves")


def _last_method(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return dotted(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""


@_rule
def losses_kept(roles: Roles) -> Iterator[Fault]:
    """Losses are kept with their graphs."""
    lost = {name for one in roles.backwards for name in names_in(one.node.func)} | {
        name for one in roles.backwards for arg in one.node.args for name in names_in(arg)
    }
    for call in roles.script.named("append"):
        arg = call.node.args[0] if call.node.args else None
        if isinstance(arg, ast.Name) and arg.id in lost and call.loops and not _is_detached(roles, arg.id, call):
            says = f"{call.owner} keeps {arg.id} with its graph"
            yield fault("losses_kept", call.line, "certain", says, fix=f"{call.owner}.append({arg.id}.item())")
    for one in roles.script.assignments:
        if not one.adds or not one.loops or one.target in lost:
            continue
        names = names_in(one.value) & lost
        cut = any(
            name.rpartition(".")[2] in ("item", "detach", "float", "numpy", "tolist") for name in calls_in(one.value)
        )
        attribute = any(
            isinstance(node, ast.Attribute) and node.attr in ("data", "shape") for node in ast.walk(one.value)
        )
        if names and not cut and not attribute and any(back.function == one.function for back in roles.backwards):
            says = f"{one.target} adds up {', '.join(sorted(names))} with its graph"
            yield fault("losses_kept", one.line, "certain", says, fix="add loss.item(), or loss.detach()")


def _is_detached(roles: Roles, name: str, call: Call) -> bool:
    source = roles.source_of(ast.Name(name), call)
    return any(one.rpartition(".")[2] in ("item", "detach") for one in calls_in(source))


@_rule
def labels_shifted(roles: Roles) -> Iterator[Fault]:
    """Labels are shifted twice, or not at all."""
    for call in roles.script.calls:
        labels, ids = call.keywords.get("labels"), call.keywords.get("input_ids")
        ids = ids if ids is not None else call.node.args[0] if call.node.args else None
        if (
            labels is not None
            and ids is not None
            and _cut(roles, labels, call) == "first"
            and _cut(roles, ids, call) == "last"
        ):
            says = "labels are shifted by one here, and a model that takes `labels` shifts them again"
            yield fault("shifted_twice", call.line, "certain", says)
    for call in roles.script.calls:
        if not roles.is_cross_entropy(call) or len(call.node.args) < 2:
            continue
        outputs, targets = (roles.source_of(_base(one), call) for one in call.node.args[:2])
        target = _base(call.node.args[1])
        parts = (*call.node.args[:2], outputs, targets)
        sliced = any("[" in ast.unparse(part) for part in parts)
        if sliced or not isinstance(outputs, ast.Call) or not isinstance(target, ast.Name):
            continue
        inputs = {dotted(one) for one in (*outputs.args, *(keyword.value for keyword in outputs.keywords))}
        if target.id in inputs and not roles.uses("roll", "mask_tokens", "mlm"):
            says = f"the model is given {target.id}, and the loss asks it for {target.id} itself: nothing is shifted"
            yield fault("not_shifted", call.line, "likely", says)


def _base(node: ast.expr) -> ast.expr:
    """Return what is reshaped in an expression."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in (
        "view", "reshape", "flatten", "contiguous", "float", "long", "to", "transpose", "permute",
    ):  # fmt: skip
        node = node.func.value
    return node


def _cut(roles: Roles, node: ast.expr, call: Call) -> str:
    """Return which end a slice along time leaves out: "first", "last" or ""."""
    text = ast.unparse(roles.source_of(node, call)).replace(" ", "")
    if re.search(r"\[(?:[^\]]*,)?1:\]", text):
        return "first"
    return "last" if re.search(r"\[(?:[^\]]*,)?:-1\]", text) else ""


@_rule
def shapes_broadcast(roles: Roles) -> Iterator[Fault]:
    """Outputs of shape (n, 1) meet targets of shape (n,), which makes an n by n matrix of differences."""
    for call in roles.script.calls:
        regression = roles.loss_named(
            call, "MSELoss", "mse_loss", "L1Loss", "l1_loss", "SmoothL1Loss", "smooth_l1_loss", "HuberLoss"
        )
        if not regression or len(call.node.args) < 2:
            continue
        one, other = (ast.unparse(roles.source_of(arg, call)) + ast.unparse(arg) for arg in call.node.args[:2])
        flat = re.compile(r"squeeze\((?:-1|1|dim=-1)?\)|flatten\(\)|view\(-1\)|reshape\(-1\)|\[:, 0\]|\[\.\.\., 0\]")
        tall = re.compile(r"unsqueeze\((?:-1|1|dim=1|dim=-1)\)|view\(-1, 1\)|reshape\(-1, 1\)|\[:, None\]")
        if (flat.search(one) and tall.search(other)) or (tall.search(one) and flat.search(other)):
            says = "one side of the loss has shape (n,) and the other (n, 1): the difference is a matrix of n by n"
            yield fault("shapes_broadcast", call.line, "certain", says)
        elif (
            _one_output(roles)
            and not flat.search(one)
            and not tall.search(other)
            and not tall.search(ast.unparse(roles.script.tree))
            and not flat.search(ast.unparse(roles.script.tree))
        ):
            says = "the model has one output, of shape (n, 1), and nothing in the file gives the targets that shape"
            yield fault("shapes_may_broadcast", call.line, "depends", says)


def _one_output(roles: Roles) -> bool:
    linear = [one for one in roles.script.named("Linear") if one.constant("out_features", 1) is not None]
    return bool(linear) and linear[-1].constant("out_features", 1) == 1


# Data.


@_rule
def data_order(roles: Roles) -> Iterator[Fault]:
    """Training data come in a fixed order, or always the first batch comes."""
    trained = {text for one in roles.backwards for line in one.loops for text in [roles.script.loops.get(line, "")]}
    for name, made in roles.loaders.items():
        if not isinstance(made.value, ast.Call):
            continue
        given = {one.arg: one.value for one in made.value.keywords}
        over = any(re.search(rf"\b{re.escape(name)}\b", text) for text in trained)
        trains = over or ("train" in name.lower() and roles.trains_by_hand)
        ordered = "shuffle" not in given or constant_of(given["shuffle"]) is False
        sampled = {"sampler", "batch_sampler"} & set(given) or len(made.value.args) > 2
        streamed = re.search(r"Iterable|stream|shuffle\(|WebDataset|permutation", ast.unparse(roles.script.tree))
        if trains and ordered and not sampled and not streamed and not EVALUATES.search(name):
            says = f"{name} gives the training data in one order: shuffle is not on"
            yield fault("not_shuffled", made.line, "likely", says)
    if roles.uses("DistributedSampler") and not roles.script.named("set_epoch") and roles.trains_by_hand:
        line = next(one.line for one in roles.script.calls if "DistributedSampler" in one.name)
        says = "a DistributedSampler is used, and set_epoch() is never called: each pass has the same order"
        yield fault("set_epoch_missing", line, "certain", says)
    for call in roles.script.named("next"):
        again = call.loops and any(
            one.function == call.function and one.loops[: len(call.loops)] == call.loops for one in roles.backwards
        )
        if again and "iter" in calls_in(call.node):
            says = "an iterator is made anew at each step: without shuffling the first batch comes every time"
            yield fault("always_first_batch", call.line, "likely", says)


@_rule
def evaluation_data(roles: Roles) -> Iterator[Fault]:
    """Training and evaluation share data."""
    loaders = [
        (name, made) for name, made in roles.loaders.items() if isinstance(made.value, ast.Call) and made.value.args
    ]
    for name, made in loaders:
        for other, trained in loaders:
            if not EVALUATES.search(name) or EVALUATES.search(other) or name == other:
                continue
            if isinstance(made.value, ast.Call) and isinstance(trained.value, ast.Call):
                same = ast.unparse(made.value.args[0]) == ast.unparse(trained.value.args[0])
                if same and _assigned_once(roles, made.value.args[0]):
                    says = f"{name} and {other} read the same data: {ast.unparse(made.value.args[0])}"
                    yield fault("same_data", made.line, "certain", says)
    splits = [one for one in roles.script.calls if one.method in ("train_test_split", "random_split")]
    fitted = re.compile(r"(?:Scaler|Vectorizer|PCA|Imputer|Encoder|SelectKBest|Normalizer|Transformer)$")
    for call in roles.script.named("fit_transform", "fit"):
        maker = roles.script.assigned(call.owner)
        source = dotted(maker.value) if maker is not None else call.owner
        if (
            fitted.search(source)
            and "Label" not in source
            and splits
            and call.order < splits[0].order
            and call.function == splits[0].function
        ):
            says = (
                f"{call.owner} is fitted on all rows, and these are split afterwards: it knows those of the evaluation"
            )
            yield fault("fitted_before_split", call.line, "certain", says)
    for line, through in roles.script.loops.items():
        within = [one for one in roles.script.calls if line in one.loops]
        function = within[0].function if within else ""
        if (
            EVALUATES.search(function)
            and re.search(r"(?<![a-z])train_?(?:loader|dl|data\w*|set)\b", through)
            and not any(one in roles.backwards for one in within)
        ):
            says = f"{function} goes through {through}"
            yield fault("evaluates_training_data", line, "likely", says)


def _assigned_once(roles: Roles, node: ast.expr) -> bool:
    return not isinstance(node, ast.Name) or sum(one.target == node.id for one in roles.script.assignments) <= 1


@_rule
def metrics_told_wrongly(roles: Roles) -> Iterator[Fault]:
    """A mean over batches is divided by rows; a class is looked for along the wrong axis."""
    tree = roles.script.tree
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and isinstance(node.left, ast.Name):
            by_rows = re.fullmatch(r"len\([\w.]*\.dataset\)", ast.unparse(node.right))
            added = [one for one in roles.script.assignments if one.adds and one.target == node.left.id]
            means = [
                one
                for one in added
                if "item" in ast.unparse(one.value)
                and "*" not in ast.unparse(one.value)
                and "loss" in ast.unparse(one.value)
            ]
            summed = "reduction='sum'" in ast.unparse(tree)
            if by_rows and means and len(means) == len(added) and not summed:
                says = f"{node.left.id} adds up means of batches, and is divided by the number of rows"
                yield fault("mean_of_means", node.lineno, "certain", says)
        if isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in ("argmax",):
            axis = next((constant_of(one.value) for one in node.keywords if one.arg in ("dim", "axis")), None)
            functional = dotted(node.func) in ("torch.argmax", "np.argmax")
            place = 1 if functional else 0
            axis = axis if axis is not None else constant_of(node.args[place]) if len(node.args) > place else None
            text = ast.unparse(node)
            if axis == 0 and not isinstance(axis, bool) and re.search(r"logit|output|pred|model|out\b|score", text):
                says = f"the class is looked for along the batch: {text[:60]}"
                yield fault("argmax_over_batch", node.lineno, "likely", says)


# What the optimizer is given.


@_rule
def parameters_left_out(roles: Roles) -> Iterator[Fault]:
    """Parameters that the optimizer does not know, or that are frozen."""
    for name, made in roles.optimizers.items():
        text = ast.unparse(made.value)
        model = next(iter(re.findall(r"(\w[\w.]*)\.parameters\(\)", text)), "")
        for one in roles.script.assignments:
            later = one.order > made.order and one.function == made.function
            layer = MODULE.search(dotted(one.value) or "") and one.target.startswith(f"{model}.")
            wrapped = one.target == model and re.search(r"get_peft_model|prepare_model_for", dotted(one.value) or "")
            if model and later and (layer or wrapped):
                says = f"{one.target} is made after {name}, which does not know its parameters"
                yield fault("made_after_optimizer", one.line, "certain", says)
        again = made.loops and any(
            one.function == made.function and one.loops[: len(made.loops)] == made.loops for one in roles.backwards
        )
        nested = made.loops and any(len(one.loops) > len(made.loops) for one in roles.backwards)
        if again and not _is_sweep(roles, made):
            certainty: Certainty = "likely" if nested else "certain"
            says = f"{name} is made anew inside the loop: its moments are lost each time"
            yield fault("optimizer_made_anew", made.line, certainty, says)
    for module in roles.modules:
        for node in ast.walk(module):
            if not isinstance(node, ast.Assign) or not any(
                dotted(target).startswith("self.") for target in node.targets
            ):
                continue
            listed = isinstance(node.value, ast.List | ast.ListComp | ast.Dict | ast.DictComp)
            if (
                listed
                and any(MODULE.search(name) for name in calls_in(node.value))
                and not _wrapped_later(module, dotted(node.targets[0]))
            ):
                says = f"{dotted(node.targets[0])} keeps layers in a plain list: the model does not know them"
                yield fault("layers_in_a_list", node.lineno, "certain", says)
    yield from _frozen(roles)


def _is_sweep(roles: Roles, made: Assignment) -> bool:
    """Say whether a model is made in the same loop: each round is a training of its own."""
    return any(
        one.loops == made.loops and one.function == made.function and re.search(r"model|net", one.target)
        and isinstance(one.value, ast.Call) and not re.search(r"\.to$|\.cuda$|\.train$", dotted(one.value))
        for one in roles.script.assignments
    )  # fmt: skip


def _wrapped_later(module: ast.ClassDef, name: str) -> bool:
    text = ast.unparse(module)
    return bool(
        re.search(rf"(?:ModuleList|ModuleDict|Sequential)\(\*?{re.escape(name)}\)|add_module|register_module", text)
    )


def _frozen(roles: Roles) -> Iterator[Fault]:
    frozen = [
        one
        for one in roles.script.assignments
        if one.target.endswith(".requires_grad") and constant_of(one.value) is False
    ]
    freed = any(
        one.target.endswith(".requires_grad") and constant_of(one.value) is True for one in roles.script.assignments
    )
    calls = [one for one in roles.script.named("requires_grad_") if one.constant("requires_grad", 0) is False]
    freed = freed or any(one.constant("requires_grad", 0) is not False for one in roles.script.named("requires_grad_"))
    for one in frozen:
        through = roles.script.loops.get(one.loops[-1], "") if one.loops else ""
        model = re.fullmatch(r"(\w+)\.(?:named_)?parameters\(\)", through)
        replaced = model and any(
            other.order > one.order
            and other.target.startswith(f"{model[1]}.")
            and MODULE.search(dotted(other.value) or "")
            for other in roles.script.assignments
        )
        used = model and any(
            f"{model[1]}.parameters()" in ast.unparse(made.value) for made in roles.optimizers.values()
        )
        if model and used and not replaced and not freed and not roles.uses("get_peft_model"):
            says = f"all parameters of {model[1]} are frozen, and the optimizer is given those alone"
            yield fault("all_frozen", one.line, "certain", says)
    for call in calls:
        used = any(f"{call.owner}.parameters()" in ast.unparse(made.value) for made in roles.optimizers.values())
        replaced = any(
            one.order > call.order and one.target.startswith(f"{call.owner}.") for one in roles.script.assignments
        )
        if used and not replaced and not freed:
            says = f"all parameters of {call.owner} are frozen, and the optimizer is given those alone"
            yield fault("all_frozen", call.line, "certain", says)


# Settings in the script.


HIGHEST_ADAM, HIGHEST_SGD = 0.05, 10.0
"""Learning rates above which a script is likely wrong. Chosen: published recipes with Adam stay below 0.01, with SGD
below 5."""
TIGHTEST_CLIP = 0.01
"""Limit of the gradient norm below which it is likely wrong. Chosen: recipes use 0.1 to 10."""


@_rule
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


def trains_elsewhere(roles: Roles) -> bool:
    """Say whether a trainer of a framework makes the loop."""
    return any(ONE_CALL_TRAINERS.search(one.name) for one in roles.script.calls)


# What a script does right, and so rules out.


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
    found = [one for one in _cleared(roles) if one.cause not in named]
    return list({one.cause: one for one in found}.values())


def _cleared(roles: Roles) -> Iterator[Cleared]:
    backward = roles.backwards[0]
    for clear in roles.script.named("zero_grad"):
        if any(one.function == clear.function and one.loops == clear.loops for one in roles.steps):
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
            and not _activation(roles, roles.source_of(call.node.args[0], call))
        ):
            yield Cleared("double_softmax", call.line, "cross-entropy is given outputs without a softmax")
        if call.method == "clip_grad_norm_" and call.order > backward.order:
            yield Cleared("exploding_gradients", call.line, "gradients are clipped between backward and step")
    for name, made in roles.loaders.items():
        given = {one.arg: one.value for one in made.value.keywords} if isinstance(made.value, ast.Call) else {}
        if "shuffle" in given and constant_of(given["shuffle"]) is True:
            yield Cleared("unshuffled_data", made.line, f"{name} shuffles")
    if not any("%" in test for step in roles.steps for test in step.conditions):
        yield Cleared("grad_accum_scaling", backward.line, "each batch makes a step: no gradients are accumulated")
