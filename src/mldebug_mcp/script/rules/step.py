"""Do gradients reach the weights: the order of zero_grad, backward, clipping and step; scaler; accumulation."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mldebug_mcp.script.calls import Call, calls_in, dotted, names_in
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.roles import Roles


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
