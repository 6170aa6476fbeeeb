"""Do rewards rise with what is wanted, and does the entropy count alike in the target and in the policy?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mldebug_mcp.script.calls import dotted, names_in, values_returned
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.metrics import Better, better_of, with_functions
from mldebug_mcp.script.roles import Roles
from mldebug_mcp.script.rules.reinforcement import is_critic

REWARD = re.compile(r"reward|(?:^|_)fitness$", re.IGNORECASE)
NOT_A_REWARD = re.compile(r"penalt|cost|loss|normali|scale|shape|log_", re.IGNORECASE)
"""Names of functions that give a reward, and of others with that word."""
ANSWERS = re.compile(r"completion|answer|response|pred|output|generat|hyp", re.IGNORECASE)
"""Names of what a model gives, for which it gets a reward."""
TEMPERATURE = re.compile(r"alpha|temp|ent(?:ropy)?_?(?:coef|weight|beta)", re.IGNORECASE)
LOG_PROBABILITY = re.compile(r"log_?p", re.IGNORECASE)


def reward_is_a_distance(roles: Roles) -> Iterator[Fault]:
    """A function of a reward returns how far an answer is from what is wanted: the worse it is, the more it earns."""
    for path, function in with_functions(roles.script.tree):
        if not isinstance(function, ast.FunctionDef) or not REWARD.search(function.name):
            continue
        if NOT_A_REWARD.search(function.name):
            continue
        values = list(_given_back(function))
        wrong = [value for value in values if _side(roles, function, value, path) == "lower"]
        if wrong and len(wrong) == len([value for value in values if _side(roles, function, value, path)]):
            source = _made(function, wrong[0])
            says = (
                f"`{ast.unparse(source)[:60]}` is larger the worse the answer is, and is what {function.name}() gives"
            )
            yield fault("loss_sign", source.lineno, "likely", says, lines=(function.lineno, wrong[0].lineno))


def _given_back(function: ast.FunctionDef) -> Iterator[ast.expr]:
    """Yield what a function returns, one by one where it returns a list that it fills or writes out."""
    returned = [*filter(None, values_returned(function))]
    lists = {node.id for node in returned if isinstance(node, ast.Name)}
    for value in returned:
        yield value.elt if isinstance(value, ast.ListComp) else value
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and dotted(node.func).removesuffix(".append") in lists and node.args:
            yield node.args[0]


def _made(function: ast.FunctionDef, value: ast.expr) -> ast.expr:
    """Return what the last name in a value was assigned, where it is one name alone in calls of other functions."""
    names = names_in(value)
    made = [
        node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and dotted(node.targets[0]) in names and isinstance(node.targets[0], ast.Name)
    ]
    return made[-1] if made else value


def _side(roles: Roles, function: ast.FunctionDef, value: ast.expr, path: str) -> Better:
    """Return on which side what a function gives is better; a difference by the side which has the answer."""
    known = better_of(roles, value, path)
    source = _made(function, value)
    parts = [part for part in ast.walk(source) if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Sub)]
    answers = _about(function) if parts and not known else set[str]()
    for part in parts if answers else ():
        left, right = (better_of(roles, side, path) for side in (part.left, part.right))
        of_answer = [bool(names_in(side) & answers) for side in (part.left, part.right)]
        if left == right == "lower" and of_answer.count(True) == 1:
            return "lower" if of_answer[0] else "higher"
    return known


def _about(function: ast.FunctionDef) -> set[str]:
    """Return the names of a function that come from the answers that it is given."""
    own = [parameter.arg for parameter in function.args.args if ANSWERS.search(parameter.arg)][:1]
    reached = set(own)
    for node in ast.walk(function):
        if isinstance(node, ast.For | ast.comprehension) and isinstance(node.iter, ast.Call):
            targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
            given = node.iter.args if dotted(node.iter) == "zip" else [node.iter]
            reached |= {dotted(name) for name, part in zip(targets, given, strict=False) if names_in(part) & reached}
        elif isinstance(node, ast.Assign) and names_in(node.value) & reached:
            reached |= {dotted(target) for target in node.targets}
    return reached - {""}


def entropy_of_target(roles: Roles) -> Iterator[Fault]:
    """A soft target adds the log-probability that the loss of the policy charges: entropy is punished in one of both.

    Source: Haarnoja et al. 2018, equations 2 and 7: the value is Q - alpha * log pi, and the policy makes
    alpha * log pi - Q smaller.
    """
    charged = {
        _factors(node.left)
        for node in ast.walk(roles.script.tree)
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Sub)
        and _factors(node.left)
        and _is_value(node.right)
    }
    for node in ast.walk(roles.script.tree):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
            continue
        for weighed, other in ((node.right, node.left), (node.left, node.right)):
            factors = _factors(weighed)
            named = any(map(TEMPERATURE.search, factors)) and any(map(LOG_PROBABILITY.search, factors))
            if factors and _is_value(other) and (factors in charged or named) and not _is_negative(weighed):
                says = f"`{ast.unparse(node)[:60]}` adds the log-probability, which the value of a state is to lose"
                yield fault("loss_sign", node.lineno, "likely", says)


def _factors(node: ast.expr) -> frozenset[str]:
    """Return the names of the two factors of a product; none for anything else."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
        node = node.func.value
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return frozenset()
    names = [".".join(dotted(side).split(".")[-2:]) for side in (node.left, node.right)]
    return frozenset(names) if all(names) else frozenset()


def _is_value(node: ast.expr) -> bool:
    """Say whether an expression is the value of a critic, by its name."""
    text = [node.func] if isinstance(node, ast.Call) else [node]
    text += node.args if isinstance(node, ast.Call) else []
    named = [dotted(part).split(".") for part in text]
    words = [word for parts in named for word in parts]
    return (isinstance(node, ast.Call) and is_critic(node)) or any(map(VALUE.search, words))


VALUE = re.compile(r"critic|(?:^|_)q(?:f|s|_?\d)?(?:$|_)|^(?:min|next|target)_?(?:q|v|value)", re.IGNORECASE)
"""Names of values of actions or states."""


def _is_negative(node: ast.expr) -> bool:
    return any(isinstance(part, ast.USub) for part in ast.walk(node))
