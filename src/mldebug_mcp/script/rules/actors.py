"""Actors that learn by the value of their own actions: does the gradient of the critic reach them?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mldebug_mcp.script.calls import Assignment, Call, calls_in, dotted, names_in
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.roles import Roles, names_with_graph
from mldebug_mcp.script.rules.reinforcement import is_critic

CONTINUOUS = re.compile(
    r"(?:^|\.)(?:\w*Normal|Independent|MultivariateNormal|TransformedDistribution|Laplace|Beta|Cauchy|Uniform|StudentT)$"
)
"""Distributions of PyTorch whose `rsample` has a gradient."""
LOG_PROBABILITY = re.compile(r"log_?p", re.IGNORECASE)


def action_without_gradient(roles: Roles) -> Iterator[Fault]:
    """The loss of an actor is the value of an action that `sample()` drew, through which no gradient goes."""
    for drawn in roles.script.assignments:
        if not _is_drawn(roles, drawn):
            continue
        actions = [drawn, *_given_by(roles, drawn)]
        if any(_learns_by(roles, action) for action in actions):
            says = f"{dotted(drawn.value)}() cuts off the gradient: that of the critic does not reach the actor"
            yield fault("action_without_gradient", drawn.line, "likely", says)


def _is_drawn(roles: Roles, made: Assignment) -> bool:
    """Say whether a value is drawn from a distribution of PyTorch, made in the same function, with gradients on."""
    call = made.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "sample":
        return False
    around = roles.call_of(call)
    source = roles.source_of(call.func.value, around) if around is not None else call.func.value
    continuous = isinstance(source, ast.Call) and bool(CONTINUOUS.search(dotted(source.func)))
    return continuous and around is not None and not roles.turned_off(around.guards)


def _reached(roles: Roles, made: Assignment) -> set[str]:
    """Return the names of a function whose values are computed from a value, log-probabilities of it apart."""
    reached = {made.target}
    for other in roles.script.assignments:
        later = other.function == made.function and other.order >= made.order and other is not made
        of_density = any(LOG_PROBABILITY.search(name.rpartition(".")[2]) for name in calls_in(other.value))
        if later and not of_density and reached & names_with_graph(other.value):
            reached.add(other.target)
    return reached


def _given_by(roles: Roles, drawn: Assignment) -> Iterator[Assignment]:
    """Yield what callers get of a function that returns a drawn value, or what is computed from it."""
    owner, _, name = drawn.function.rpartition(".")
    function = roles.definitions.get(name) if not owner else _method_of(roles, owner, name)
    reached = _reached(roles, drawn)
    places: set[int | None] = set()
    for node in ast.walk(function) if function is not None else ():
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
            places |= {place for place, part in enumerate(node.value.elts) if names_with_graph(part) & reached}
        elif isinstance(node, ast.Return) and node.value is not None and names_with_graph(node.value) & reached:
            places.add(None)
    for made in roles.script.assignments:
        call = made.value
        if made.place in places and isinstance(call, ast.Call) and made.function != drawn.function:
            called = dotted(call.func)
            of_model = roles.class_of(called) if name in ("forward", "__call__") else None
            same = of_model is not None and of_model.name == owner
            if same or (name not in ("forward", "__call__") and called.rpartition(".")[2] == name):
                yield made


def _method_of(roles: Roles, owner: str, name: str) -> ast.AST | None:
    made = roles.definitions.get(owner.rpartition(".")[2])
    parts = made.body if isinstance(made, ast.ClassDef) else []
    return next((part for part in parts if isinstance(part, ast.FunctionDef) and part.name == name), None)


def _learns_by(roles: Roles, action: Assignment) -> bool:
    """Say whether a loss is the value of an action, and the optimizer that then steps is not that of the critic."""
    reached = _reached(roles, action)
    for loss in roles.script.assignments:
        if loss.function != action.function or loss.order < action.order or not roles.reaches_backward(loss):
            continue
        for value in (node for node in ast.walk(loss.value) if isinstance(node, ast.Call)):
            if not roles.calls_model(value) and not is_critic(value):
                continue
            given = set[str]().union(*map(names_with_graph, value.args)) & reached
            call = roles.call_of(value)
            on = call is not None and not roles.gradients_off(call)
            if given and on and not _is_weight(loss.value, value) and _actor_steps(roles, loss, value):
                return True
    return False


def _is_weight(loss: ast.expr, value: ast.Call) -> bool:
    """Say whether a value is detached, or weights a log-probability, whose gradient is that of the policy."""
    for node in ast.walk(loss):
        inside = any(part is value for part in ast.walk(node))
        if inside and isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] == "detach":
            return True
        if inside and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            other = node.right if any(part is value for part in ast.walk(node.left)) else node.left
            names = [*names_in(other), *calls_in(other)]
            if any(LOG_PROBABILITY.search(name) for name in names):
                return True
    return False


def _actor_steps(roles: Roles, loss: Assignment, value: ast.Call) -> bool:
    """Say whether the first step after a loss is of an optimizer that is known not to have the critic."""
    steps: list[Call] = [step for step in roles.steps if step.function == loss.function and step.order >= loss.order]
    made = roles.optimizers.get(steps[0].owner) if steps else None
    critic = dotted(value.func).rpartition(".")[2]
    return made is not None and critic not in re.findall(r"\w+", ast.unparse(made.value))
