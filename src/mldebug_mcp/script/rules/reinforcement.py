"""Reinforcement learning: do returns end with their episode, and are old values cut off from the new ones?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from mldebug_mcp.models.script import Certainty
from mldebug_mcp.script.calls import Assignment, Call, constant_of, dotted, names_in
from mldebug_mcp.script.faults import MAX_JUDGED, Fault, fault
from mldebug_mcp.script.roles import Roles
from mldebug_mcp.script.terms import COST

DISCOUNT = re.compile(r"(?:^|[._])(?:gamma|discount)\w*$", re.IGNORECASE)
DONE = re.compile(
    r"done|term|trunc|mask|(?:^|_)end(?:$|_|s)|not_last|nonterm|alive|final|(?:^|_)d(?:$|_)|cont", re.IGNORECASE
)
"""Names of flags that end an episode, and of masks made from them."""
RECURS = re.compile(r"ret|run|acc|gae|adv|(?:^|_)[gGRr](?:$|_)|cum|total|disc|value|target", re.IGNORECASE)


def returns_past_the_end(roles: Roles) -> Iterator[Fault]:
    """Returns or targets go on past the end of an episode, as nothing masks what comes after it."""
    if not _has_ends(roles):
        return
    fixed_length = _rollouts_cross_episodes(roles)
    discounted = [made for made in roles.script.assignments if _is_discounted(made.value)]
    for made in discounted[:MAX_JUDGED]:
        if _is_masked(roles, made):
            continue
        if _recurs(made) and made.loops and _is_backwards(roles, made) and fixed_length:
            says = "returns are added up backwards over several episodes, and nothing stops them at the end of one"
            callers = roles.callers(made.function) if _is_of_parameter(roles, made) else None
            if callers is None or not any(DONE.search(test) for call in callers for test in call.conditions):
                certainty: Certainty = "depends" if callers == [] else "likely"
                yield fault("returns_past_the_end", made.line, certainty, says)
        elif _bootstraps(made.value) and _draws_ends(roles, made):
            says = "the target adds the value of the next state at the end of an episode as well"
            yield fault("returns_past_the_end", made.line, "likely", says)


def _is_of_parameter(roles: Roles, made: Assignment) -> bool:
    """Say whether returns are those of rewards that a function is given: its callers may give one episode each."""
    through = ast.parse(roles.script.loops.get(made.loops[-1], ""), mode="eval")
    return bool(made.function) and any(roles.is_parameter(name, made.function) for name in names_in(through))


def _has_ends(roles: Roles) -> bool:
    """Say whether the file knows where episodes end."""
    return bool(re.search(r"\b(?:dones?|terminated|truncated|terminations|terms?|trunc|terminals?)\b", roles.source))


def _is_discounted(node: ast.expr) -> bool:
    """Say whether a value is `reward + gamma * next`."""
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Add)
        and any(
            isinstance(side, ast.BinOp)
            and isinstance(side.op, ast.Mult)
            and any(
                DISCOUNT.search(dotted(part)) for part in ast.walk(side) if isinstance(part, ast.Name | ast.Attribute)
            )
            for side in (node.left, node.right)
        )
    )


def _names(node: ast.AST) -> set[str]:
    """Return the last parts of names in an expression; of `self.args.gamma` it is "gamma"."""
    names = {dotted(part).rpartition(".")[2] for part in ast.walk(node) if isinstance(part, ast.Name | ast.Attribute)}
    return names | {str(part.value) for part in ast.walk(node) if isinstance(part, ast.Constant) and part.value}


def _is_masked(roles: Roles, made: Assignment) -> bool:
    """Say whether a flag of the end goes into a value, by whatever names, or decides about it."""
    same = [assignment for assignment in roles.script.assignments if assignment.function == made.function]
    reached: list[Assignment] = [made]
    names = _names(made.value)
    for assignment in reached:
        if any(DONE.search(test) for test in assignment.conditions) or _reads_end(assignment.value):
            return True
        read = _names(assignment.value)
        new = [other for other in same if dotted_last(other.target) in read and other not in reached]
        reached += new[: MAX_NAMES_FOLLOWED - len(reached)]
        names |= read
    return bool(names & _set_at_ends(roles))


MAX_NAMES_FOLLOWED = 60
"""Assignments that are followed to what a value is made of."""


def _reads_end(node: ast.expr) -> bool:
    masks = re.search(r"\bwhere\(|~|\b1(?:\.0)? - |\bnot ", ast.unparse(node))
    return bool(masks) or any(DONE.search(name) for name in _names(node))


def dotted_last(name: str) -> str:
    """Return the last part of a dotted name."""
    return name.rpartition(".")[2]


def _set_at_ends(roles: Roles) -> set[str]:
    """Return the names of what has items set under a mask of ends: `values[done] = 0`."""
    return {
        dotted_last(dotted(target.value))
        for node in ast.walk(roles.script.tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Subscript) and any(DONE.search(name) for name in _names(target.slice))
    }


def _recurs(made: Assignment) -> bool:
    """Say whether a value goes on from itself: `g = r + gamma * g`."""
    return made.target in {dotted(part) for part in ast.walk(made.value)} and bool(
        RECURS.search(dotted_last(made.target)) or len(made.target) <= 2
    )


def _is_backwards(roles: Roles, made: Assignment) -> bool:
    through = roles.script.loops.get(made.loops[-1], "")
    return bool(re.search(r"reversed|::-1|, -1, -1|flip", through)) and not re.search(r"episode\b|traj\b", through)


def _rollouts_cross_episodes(roles: Roles) -> bool:
    """Say whether a rollout goes on after an episode ends: it resets inside of its loop, or has many environments.

    A rollout that ends with its episode has no reward after it.
    """
    vector = re.search(r"make_vec|VectorEnv|VecEnv|num_envs|n_envs", roles.source)
    stops = any(
        isinstance(node, ast.If)
        and any(DONE.search(name) for name in _names(node.test))
        and any(isinstance(part, ast.Break | ast.Return) for part in ast.walk(node))
        for node in ast.walk(roles.script.tree)
    )
    until = any(
        isinstance(node, ast.While) and any(DONE.search(name) for name in _names(node.test))
        for node in ast.walk(roles.script.tree)
    )
    resets = any(
        call.method == "reset" and call.loops and any(DONE.search(test) for test in call.conditions)
        for call in roles.script.calls
    )
    return bool(vector or resets) and not stops and not until


def _bootstraps(node: ast.expr) -> bool:
    """Say whether a target has the best or the next value of a network: `r + gamma * q(next).max(1)`."""
    return bool(re.search(r"next|nxt|max\(|amax\(|best|target|_n\b|\b\w+2\b|prime|boot", ast.unparse(node)))


def _draws_ends(roles: Roles, made: Assignment) -> bool:
    """Say whether the function of a target is given flags of the end, and never reads them again."""
    unpacked = [
        other for other in roles.script.assignments if other.function == made.function and other.place is not None
    ]
    flags = {
        other.target for other in unpacked if re.search(r"^(?:dones?|d|terms?|terminated|terminals?)$", other.target)
    }
    definition = roles.definitions.get(dotted_last(made.function))
    if isinstance(definition, ast.FunctionDef):
        parameters = {argument.arg for argument in definition.args.args}
        flags |= {name for name in parameters if re.fullmatch(r"dones?|terms?|terminated|terminals?", name)}
        body: ast.AST = definition
    else:
        body = roles.script.tree
    read = {node.id for node in ast.walk(body) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return bool(flags) and not flags & read


def target_with_gradient(roles: Roles) -> Iterator[Fault]:
    """The target of a value goes through the network that learns it, and is not cut off."""
    for made in roles.script.assignments:
        value = _target_in(made.value)
        if not _is_discounted(value) or _CUT_OFF.search(ast.unparse(value)) or _adds_a_penalty(made):
            continue
        computed = [value, *_sources(roles, value, made)]
        nodes = [node for part in computed for node in ast.walk(part) if isinstance(node, ast.Call)]
        calls = [node for node in nodes if roles.calls_model(node)]
        inside = roles.call_of(calls[0]) if calls else None
        if inside is None or roles.gradients_off(inside):
            continue
        network = dotted(calls[0].func)
        others = [other.value for other in roles.script.assignments if other.function == made.function]
        learned = sum(
            isinstance(node, ast.Call) and dotted(node.func) == network for other in others for node in ast.walk(other)
        )
        if learned > len(calls) and (_is_given_to_loss(roles, made) or roles.reaches_backward(made)):
            says = f"the target goes through {network} with its gradient: the network moves its own target"
            yield fault("target_with_gradient", made.line, "likely", says)


def _adds_a_penalty(made: Assignment) -> bool:
    """Say whether a loss gets a summand, `loss = loss + gamma * penalty`, whose weight is called as a discount is."""
    value = made.value
    return isinstance(value, ast.BinOp) and made.target in (dotted(value.left), dotted(value.right))


def _sources(roles: Roles, value: ast.expr, made: Assignment) -> list[ast.expr]:
    """Return what the names in a value were assigned last before it in their function, where the graph is kept."""
    names = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
    known = [roles.assignments_by_name.get((made.function, name), []) for name in sorted(names)]
    before = [
        [assignment for assignment in several if assignment.order <= made.order and assignment is not made]
        for several in known
    ]
    sources = [several[-1].value for several in before if several]
    return [source for source in sources if not _CUT_OFF.search(ast.unparse(source))]


_CUT_OFF = re.compile(r"detach|no_grad|stop_gradient")


def _target_in(node: ast.expr) -> ast.expr:
    """Return the target in a difference to it, such as `reward + gamma * after - value`; others as they are."""
    return node.left if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) else node


def _is_given_to_loss(roles: Roles, made: Assignment) -> bool:
    """Say whether a value is an argument of a loss of differences."""
    names = ("MSELoss", "mse_loss", "SmoothL1Loss", "smooth_l1_loss", "HuberLoss", "huber_loss")
    return any(
        call.function == made.function and call.order >= made.order and roles.loss_named(call, *names)
        for call in roles.script.calls
        if any(dotted(argument) == made.target for argument in call.node.args)
    )


def old_log_probability_with_gradient(roles: Roles) -> Iterator[Fault]:
    """The ratio of a policy to its old self is made of two values with gradients, and so is always one."""
    for node, made in _old_log_probabilities(roles):
        call = roles.call_of(made.value) if isinstance(made.value, ast.Call) else None
        updates = [backward for backward in roles.backwards if backward.function == made.function]
        if call is None or not updates:
            continue
        if roles.gradients_off(call):
            anew = _made_before_each_update(roles, made, updates) or _made_anew_of_the_same_rows(roles, made, updates)
            if anew and re.search(r"clamp|clip", roles.source):
                says = f"{made.target} is computed anew by the weights that change in this loop: clipping bounds little"
                yield fault("old_log_prob_with_gradient", made.line, "likely", says)
            continue
        detached = any(
            other.target == made.target and _CUT_OFF.search(ast.unparse(other.value))
            for other in roles.script.assignments
        )
        again = any(len(update.loops) > len(made.loops) for update in updates) or made.loops == updates[0].loops
        if again and not detached and "detach" not in ast.unparse(node):
            says = f"{made.target} has a gradient and is of the same weights: the ratio says nothing about the change"
            yield fault("old_log_prob_with_gradient", made.line, "likely", says)


_OLD = re.compile(r"(?:^|_)(?:old|prev|behavio\w+|b)(?:$|_)|old", re.IGNORECASE)
_LOG_PROBABILITY = re.compile(r"log_?p|lp|logp", re.IGNORECASE)


def _old_log_probabilities(roles: Roles) -> Iterator[tuple[ast.BinOp, Assignment]]:
    """Yield the differences of log-probabilities to old ones, and where the old ones are computed."""
    for node in ast.walk(roles.script.tree):
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)):
            continue
        old = node.right.value if isinstance(node.right, ast.Subscript) else node.right
        if isinstance(old, ast.Name) and _OLD.search(old.id) and _LOG_PROBABILITY.search(old.id):
            for made in roles.script.assignments:
                if made.target == old.id and made.line <= node.lineno and dotted(made.value).endswith("log_prob"):
                    yield node, made


def _made_before_each_update(roles: Roles, made: Assignment, updates: Sequence[Call]) -> bool:
    """Say whether a value is made in the loop of the update itself, which goes over the same rows several times."""
    through = roles.script.loops.get(made.loops[-1], "") if made.loops else ""
    several = len(made.loops) > 1 or re.search(r"range\(.*(?:epoch|k_|upd|iters)", through)
    return made.loops == updates[0].loops and bool(several)


def _made_anew_of_the_same_rows(roles: Roles, made: Assignment, updates: Sequence[Call]) -> bool:
    """Say whether a loop that updates the weights makes a value in each round of rows that stay the same in it."""
    loops = [
        node
        for node in ast.walk(roles.script.tree)
        if isinstance(node, ast.For) and node.lineno in made.loops and "range(" in ast.unparse(node.iter)
    ]
    return any(
        any(loop.lineno in update.loops for update in updates) and not _rows_of(made.value) & _names_set_in(loop)
        for loop in loops
    )


def _rows_of(node: ast.AST) -> set[str]:
    """Return the names of what calls are given, without their places in brackets: "obs" of `policy(obs[index])`."""
    given = [part for call in ast.walk(node) if isinstance(call, ast.Call) for part in call.args]
    return {dotted(part).partition(".")[0] for part in given}


def _names_set_in(loop: ast.For) -> set[str]:
    """Return the names that get another value inside of a loop, and those that a call may fill."""
    stored = {part.id for part in ast.walk(loop) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    filled = {
        dotted(part.value.func).partition(".")[0]
        for part in ast.walk(loop)
        if isinstance(part, ast.Expr) and isinstance(part.value, ast.Call)
    }
    return stored | filled | {"self", ""}


def clipped_the_wrong_way(roles: Roles) -> Iterator[Fault]:
    """PPO takes the higher of the two objectives, which takes its limit away."""
    for call in roles.script.calls:
        if call.method not in ("min", "max", "minimum", "maximum") or len(call.node.args) != 2:
            continue
        sides = [roles.source_of(arg, call) for arg in call.node.args]
        texts = [ast.unparse(side) for side in sides]
        clipped = [bool(re.search(r"clamp|clip", text)) for text in texts]
        if clipped.count(True) != 1 or not all(re.search(r"adv|\ba\b|gae", text, re.IGNORECASE) for text in texts):
            continue
        of_ratio = all(re.search(r"ratio|exp\(|\brho\b|\br\b", text) for text in texts)
        if not of_ratio or any(COST.search(text) for text in texts):
            continue
        negative = [_is_negative(side) for side in sides]
        takes_highest = call.method.startswith("max")
        if (takes_highest and not any(negative)) or (not takes_highest and all(negative)):
            says = f"{call.name}() takes the better of the two objectives: the clipping of PPO has no effect"
            yield fault("clipped_the_wrong_way", call.line, "likely", says)


def _is_negative(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return True
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _is_negative(node.left) != _is_negative(node.right)
    value = constant_of(node)
    return isinstance(value, int | float) and value < 0


def divergence_is_rewarded(roles: Roles) -> Iterator[Fault]:
    """The divergence from the reference is added to the reward, which it is to be taken off."""
    for node in ast.walk(roles.script.tree):
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and _is_reward(node.left)):
            continue
        if isinstance(node.right, ast.BinOp) and isinstance(node.right.op, ast.Mult):
            factors = [node.right.left, node.right.right]
            names = [dotted(factor).rpartition(".")[2] for factor in factors]
            signs = [constant_of(roles.spelled_out(factor)) for factor in factors]
            negative = any(isinstance(sign, int | float) and sign < 0 for sign in signs)
            negative = negative or any(_is_negative_divergence(roles, name) for name in names)
            charged = any(re.search(r"^kls?$|^kl_(?!coef|weight|beta)|_kl$", name) for name in names)
            if (charged or any(map(_is_divergence, factors))) and not negative:
                says = f"`{ast.unparse(node)[:60]}` rewards the distance from the reference instead of charging for it"
                yield fault("loss_sign", node.lineno, "likely", says)


def _is_divergence(node: ast.expr) -> bool:
    """Say whether a value is the log-probability of a policy less that of its reference, by their names."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub):
        return False
    left, right = (ast.unparse(side) for side in (node.left, node.right))
    of_both = all(re.search(r"log_?p|logits", text) for text in (left, right))
    return of_both and bool(OF_REFERENCE.search(right)) and not OF_REFERENCE.search(left)


OF_REFERENCE = re.compile(r"(?:^|[._])(?:ref|base|init|sft)", re.IGNORECASE)


def _is_negative_divergence(roles: Roles, name: str) -> bool:
    """Say whether a name is the log-probability of the reference less that of the policy, or has a minus."""
    for made in roles.script.assignments:
        if made.target.rpartition(".")[2] == name:
            value = made.value
            left = ast.unparse(value.left) if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Sub) else ""
            if re.search(r"ref|base|init|sft", left) or _is_negative(value):
                return True
    return False


def _is_reward(node: ast.expr) -> bool:
    return bool(re.search(r"^(?:r|rew|rewards?|scores?|rm_scores?)$", dotted(node).rpartition(".")[2]))


def value_of_own_actions_made_smaller(roles: Roles) -> Iterator[Fault]:
    """The loss of an actor is the value of its own actions, without the minus that makes them better."""
    for made in roles.script.assignments:
        inner = made.value
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr == "mean":
            inner = inner.func.value
        if not isinstance(inner, ast.Call) or inner is made.value or not is_critic(inner):
            continue
        inside = [part for given in inner.args for part in ast.walk(given) if isinstance(part, ast.Call)]
        by_actor = any(re.search(r"actor|policy|(?:^|_)pi$", dotted(part).rpartition(".")[2]) for part in inside)
        is_cost = COST.search(dotted(inner)) or _is_negated(roles, made)
        if by_actor and roles.reaches_backward(made) and not is_cost:
            says = f"{made.target} is the value of the actor's own actions: training makes that smaller"
            yield fault("loss_sign", made.line, "likely", says)


def _is_negated(roles: Roles, made: Assignment) -> bool:
    """Say whether a value gets a minus later in its function."""
    scope = roles.definitions.get(dotted_last(made.function), roles.script.tree)
    for node in ast.walk(scope):
        negated: ast.expr | None = None
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            negated = node.operand
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            negated = node.right
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and _is_negative(node):
            negated = node
        if negated is not None and made.target in names_in(negated):
            return True
    return False


def is_critic(call: ast.Call) -> bool:
    """Say whether a call is that of a critic, by its name."""
    return bool(
        re.search(r"critic|^q(?:f|_?net|_?function)?_?[12]?$", dotted(call.func).rpartition(".")[2], re.IGNORECASE)
    )
