"""Diffusion: does the target of the loss fit what the model is given, and what its scheduler expects?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from mldebug_mcp.script.calls import Call, constant_of, dotted
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.roles import Roles
from mldebug_mcp.script.rules.loss import ELEMENTWISE_LOSSES

Prediction = Literal["noise", "sample", "velocity", "flow", "reversed flow", "difference"]
_OF_SETTING: dict[str, Prediction] = {"epsilon": "noise", "v_prediction": "velocity", "sample": "sample"}
"""What diffusers' schedulers take the output for, by `prediction_type`."""
_NAMES: dict[Prediction, str] = {
    "noise": "the noise", "sample": "the sample without noise", "velocity": "the velocity of get_velocity",
    "flow": "noise - sample", "reversed flow": "sample - noise", "difference": "the difference of both ends",
}  # fmt: skip
SCHEDULER = re.compile(
    r"(?:^|\.)((?:DDPM|DDIM|PNDM|Euler|DPM|UniPC|LMS|Heun|KDPM|FlowMatch)\w{0,40}Scheduler)(\.from_\w{1,20})?$"
)
MAX_NAMES = 3
"""Names that stand for another which are followed."""
DRAWN = re.compile(r"(?:^|\.)(?:randn|randn_like|randn_tensor|normal)$")
_SAME_VALUES = ("float", "to", "detach", "type", "contiguous", "clone")
_Names = Mapping[str, set[str]]
"""By functions: names in them."""
DRAWS_NOISE = ("randn_like", "rand_like")


class _Scheduler(NamedTuple):
    """What the output of the model is taken for, and where that is written; `written` is how."""

    takes: tuple[Prediction, ...]
    line: int
    written: str


def target_of_another_prediction(roles: Roles) -> Iterator[Fault]:
    """The loss compares the output with something else than what the scheduler takes it for when it samples."""
    mixed = _mixed(roles)
    scheduler = _scheduler(roles) or (_integrated(roles) if mixed else None)
    if scheduler is None:
        return
    samples = _noised(roles, mixed)
    for call in roles.script.calls:
        sides = _sides(roles, call)
        targets = [_kind(roles, side, call, samples) for side in sides]
        outputs = [_is_output(roles, side, call, samples) for side in sides]
        for target, is_output in zip(targets, reversed(outputs), strict=True):
            if target is not None and is_output and target not in scheduler.takes:
                says = (
                    f"the target is {_NAMES[target]}, and {scheduler.written} takes the output for "
                    f"{_NAMES[scheduler.takes[0]]}"
                )
                yield fault("target_of_another_prediction", call.line, "likely", says, lines=(scheduler.line,))


def _scheduler(roles: Roles) -> _Scheduler | None:
    """Return what the only scheduler of noise that is made here wants; None where several are, or nothing tells."""
    found: dict[tuple[Prediction, ...], _Scheduler] = {}
    for call in roles.script.calls:
        named = SCHEDULER.search(call.name)
        wanted = None if named is None else _wanted(roles, call, named[1], loaded=bool(named[2]))
        found |= {wanted.takes: wanted} if wanted is not None else {}
    tests = (node for node in ast.walk(roles.script.tree) if isinstance(node, ast.Compare))
    compared = any("prediction_type" in ast.unparse(node) for node in tests) or roles.uses("register_to_config")
    compared = compared or any(
        isinstance(arg, ast.UnaryOp) for call in roles.script.named("step") for arg in call.node.args
    )
    return next(iter(found.values())) if len(found) == 1 and not compared else None


def _wanted(roles: Roles, call: Call, name: str, *, loaded: bool) -> _Scheduler | None:
    """Return what a scheduler wants by its name, its setting or its default; None where a file that it loads says."""
    if name.startswith("FlowMatch"):
        return _Scheduler(("flow",), call.line, name)
    given = roles.keywords(call).get("prediction_type")
    setting = constant_of(roles.spelled_out(given))
    if isinstance(setting, str) and setting in _OF_SETTING:
        return _Scheduler((_OF_SETTING[setting],), call.line, f'prediction_type="{setting}"')
    samples = any(other.owner == owner for owner in _owners(roles, call) for other in roles.script.named("step"))
    known = given is None and not loaded and samples
    return _Scheduler(("noise",), call.line, f"{name}, by default,") if known else None


def _owners(roles: Roles, call: Call) -> set[str]:
    """Return the names that a scheduler is given."""
    return {made.target for made in roles.script.assignments if made.value is call.node}


def _sides(roles: Roles, call: Call) -> tuple[ast.expr, ...]:
    """Return the two sides of a loss of differences, none for other calls."""
    if not roles.loss_named(call, *ELEMENTWISE_LOSSES):
        return squared_sides(call.node) or ()
    given = [call.argument(name, place) for place, name in enumerate(("input", "target"))]
    return tuple(side for side in given if side is not None) if None not in given else ()


def squared_sides(node: ast.Call) -> tuple[ast.expr, ast.expr] | None:
    """Return the sides of `((a - b) ** 2).mean()` and of `(a - b).pow(2).mean()`."""
    inner = node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr == "mean" else None
    inner = node.args[0] if inner is not None and dotted(inner) == "torch" and node.args else inner
    if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Pow):
        inner = inner.left
    elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr in ("pow", "square"):
        inner = inner.func.value
    else:
        return None
    return (inner.left, inner.right) if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub) else None


def _bare(node: ast.expr) -> ast.expr:
    """Return what stands before `.float()`, `.to(...)` and the like."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SAME_VALUES:
        node = node.func.value
    return node


def _kind(roles: Roles, node: ast.expr, call: Call, samples: _Names) -> Prediction | None:
    """Return what a side of a loss holds, None where it does not say."""
    source = _source(roles, node, call, samples)
    if not isinstance(source, ast.BinOp) or not isinstance(source.op, ast.Sub):
        return _plain_kind(source)
    left, right = (_plain_kind(_source(roles, end, call, samples)) or "sample" for end in (source.left, source.right))
    if {left, right} != {"noise", "sample"}:
        return None
    return "flow" if left == "noise" else "reversed flow"


def _plain_kind(source: ast.expr | None) -> Prediction | None:
    if isinstance(source, ast.Name):
        return "sample"
    if not isinstance(source, ast.Call):
        return None
    is_velocity = dotted(source).rpartition(".")[2] == "get_velocity"
    return "velocity" if is_velocity else "noise" if DRAWN.search(dotted(source)) else None


def _source(roles: Roles, node: ast.expr, call: Call, samples: _Names) -> ast.expr | None:
    """Return what a side of a loss was made by; the name of a sample that noise is added to; None if several things."""
    node = _bare(node)
    for _ in range(MAX_NAMES):
        if (
            isinstance(node, ast.Name)
            and node.id in samples.get(call.function, ())
            and not _is_drawn(roles, node, call)
        ):
            return node
        values = roles.values_of(node, call)
        if len(values) > 1:
            return None
        node = _bare(values[0])
    return None if isinstance(node, ast.Name) else node


def _is_drawn(roles: Roles, node: ast.expr, call: Call) -> bool:
    return DRAWN.search(dotted(roles.source_of(node, call))) is not None


def _factors(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    return (node.left, node.right) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) else None


def _noised(roles: Roles, mixed: _Names) -> _Names:
    """Return the names that noise is added to, by a scheduler or on a straight path."""
    found = {function: set(names) for function, names in mixed.items()}
    for call in roles.script.named("add_noise", "scale_noise"):
        found.setdefault(call.function, set()).update(map(dotted, call.node.args[:1]))
    return found


def _mixed(roles: Roles) -> _Names:
    """Return the names that are mixed as `(1 - t) * a + t * b`: the two ends of a straight path."""
    found: dict[str, set[str]] = {}
    for made in roles.script.assignments:
        value = made.value
        if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
            continue
        terms = [_factors(value.left), _factors(value.right)]
        weights = [ast.unparse(term[0]) for term in terms if term is not None]
        ends = [term[1].id for term in terms if term is not None and isinstance(term[1], ast.Name)]
        if len(weights) == len(ends) == 2 and (f"1 - {weights[0]}" == weights[1] or f"1 - {weights[1]}" == weights[0]):
            found.setdefault(made.function, set()).update(ends)
    return found


def _integrated(roles: Roles) -> _Scheduler | None:
    """Return that samples are made by steps `x = x + model(x, t) * dt`, which take the output for a velocity.

    Only where the path of training is a straight one, whose velocity is the difference of its ends.
    """
    for made in roles.script.assignments:
        value = made.value
        added = value if made.adds else None
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.Sub):
            added = value.right if dotted(value.left) == made.target else added
        factors = _factors(added) if added is not None and made.loops else None
        sources = [*(factors or ())]
        for factor in factors or ():
            sources += [other.value for other in roles.assignments_by_name.get((made.function, dotted(factor)), [])]
        if any(isinstance(source, ast.Call) and made.target in map(dotted, source.args) for source in sources):
            return _Scheduler(
                ("difference", "flow", "reversed flow"), made.line, f"the step of {made.target} in a loop"
            )
    return None


def _is_output(roles: Roles, node: ast.expr, call: Call, samples: _Names) -> bool:
    """Say whether a side of a loss is what a model gives, as it is."""
    for _ in range(MAX_NAMES):
        node = _bare(roles.source_of(node, call))
        while isinstance(node, ast.Attribute | ast.Subscript):
            node = _bare(node.value)
    if not isinstance(node, ast.Call) or not node.args:
        return False
    return _kind(roles, node, call, samples) is None and dotted(node).partition(".")[0] not in (
        "torch",
        "F",
        "np",
        "nn",
        "einops",
    )


def target_is_random(roles: Roles) -> Iterator[Fault]:
    """The target of a loss is drawn at random, and nothing that the model sees is made with it."""
    if len(roles.script.named(*DRAWS_NOISE)) < 2:
        return  # what the model is given is made with another draw
    for function in ast.walk(roles.script.tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        drawn = {
            node.targets[0].id: node.value.lineno
            for node in ast.walk(function)
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and dotted(node.value).rpartition(".")[2] in DRAWS_NOISE
        }
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            around = roles.call_of(call)
            drawn_here = [arg for arg in call.args[:2] if dotted(arg).rpartition(".")[2] in DRAWS_NOISE]
            if around is not None and drawn_here and roles.loss_named(around, *ELEMENTWISE_LOSSES):
                says = "the target is drawn here: what the model is given was made with other numbers"
                yield fault("target_is_random", drawn_here[0].lineno, "likely", says)
        for name, line in drawn.items():
            reads = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == name]
            reads = [node for node in reads if isinstance(node.ctx, ast.Load)]
            if len(reads) == 1 and _is_target(roles, function, reads[0]):
                says = f"{name} is drawn here for the loss alone: what the model is given was made with other numbers"
                yield fault("target_is_random", line, "likely", says)


def _is_target(roles: Roles, function: ast.FunctionDef, name: ast.Name) -> bool:
    """Say whether a name stands in a difference to the output of a model, or next to it in a loss."""
    for node in ast.walk(function):
        sides: list[ast.expr] = []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            sides = [node.left, node.right]
        elif isinstance(node, ast.Call):
            call = roles.call_of(node)
            differs = re.search(r"mse|l1|huber", dotted(node), re.IGNORECASE)
            sides = node.args[:2] if differs or (call and roles.loss_named(call, *ELEMENTWISE_LOSSES)) else []
        if len(sides) == 2 and any(side is name for side in sides):
            other = next(side for side in sides if side is not name)
            made = roles.script.assigned(other.id) if isinstance(other, ast.Name) else None
            return isinstance(other if made is None else made.value, ast.Call)
    return False
