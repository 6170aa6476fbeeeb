"""Rewards, policies, values and preferences: is what is better made more likely, by values that are cut off?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mldebug_mcp.models.script import Certainty
from mldebug_mcp.script.calls import (
    Assignment,
    Call,
    calls_in,
    constant_of,
    dotted,
    is_operation,
    last_name,
    last_part,
    method_of,
    names_in,
    names_read,
    names_set,
    values_returned,
    walk,
)
from mldebug_mcp.script.facts import axis_of
from mldebug_mcp.script.faults import MAX_JUDGED, Fault, fault
from mldebug_mcp.script.metrics import Better, better_of, with_functions
from mldebug_mcp.script.roles import Roles, names_with_graph
from mldebug_mcp.script.rules.loss import returned
from mldebug_mcp.script.values import COST, sign_of

DISCOUNT = re.compile(r"(?:^|[._])(?:gamma|discount)\w*$", re.IGNORECASE)
DONE = re.compile(
    r"done|term|trunc|mask|(?:^|_)end(?:$|_|s)|not_last|nonterm|alive|final|(?:^|_)d(?:$|_)|cont", re.IGNORECASE
)
"""Names of flags that end an episode, and of masks made from them."""
RECURS = re.compile(r"ret|run|acc|gae|adv|(?:^|_)[gGRr](?:$|_)|cum|total|disc|value|target", re.IGNORECASE)
MAX_ASSIGNMENTS_FOLLOWED = 60
"""Assignments that are followed to what a value is made of."""
_CUT_OFF = re.compile(r"detach|no_grad|stop_gradient")
_OLD = re.compile(r"(?:^|_)(?:old|prev|behavio\w+|b)(?:$|_)|old", re.IGNORECASE)
_LOG_PROBABILITY = re.compile(r"log_?p|lp|logp", re.IGNORECASE)
OF_REFERENCE = re.compile(r"(?:^|[._])(?:ref|base|init|sft)", re.IGNORECASE)
CONTINUOUS = re.compile(
    r"(?:^|\.)(?:\w*Normal|Independent|MultivariateNormal|TransformedDistribution|Laplace|Beta|Cauchy|Uniform|StudentT)$"
)
"""Distributions of PyTorch whose `rsample` has a gradient."""
LOG_PROBABILITY = re.compile(r"log_?p", re.IGNORECASE)
REWARDS = re.compile(r"^(?:r|rew|rewards?|scores?|rm_scores?)$")
COMPARED = re.compile(r"rew|score|adv|return|baseline|(?:^|_)r(?:$|_)", re.IGNORECASE)
GROUP = re.compile(
    r"group|generations|completions|per_prompt|num_return|(?:num|n)_(?:samples|gens?|rollouts|answers|candidates)$",
    re.IGNORECASE,
)
"""Names of the number of completions that each prompt has."""
COUNTS_PROMPTS = re.compile(r"prompts|questions|queries|problems|groups$", re.IGNORECASE)
"""Names of the number of prompts, or of groups."""
REPEATED = re.compile(r"prompt|question|quer|problem|context|input|ids|answer|truth|target|batch|group", re.IGNORECASE)
"""What is repeated for several completions, by its name."""
REWARD = re.compile(r"reward|(?:^|_)fitness$", re.IGNORECASE)
NOT_A_REWARD = re.compile(r"penalt|cost|loss|normali|scale|shape|log_", re.IGNORECASE)
"""Names of functions that give a reward, and of others with that word."""
ANSWERS = re.compile(r"completion|answer|response|pred|output|generat|hyp", re.IGNORECASE)
"""Names of what a model gives, for which it gets a reward."""
TEMPERATURE = re.compile(r"alpha|temp|ent(?:ropy)?_?(?:coef|weight|beta)", re.IGNORECASE)
VALUE = re.compile(r"critic|(?:^|_)q(?:f|s|_?\d)?(?:$|_)|^(?:min|next|target)_?(?:q|v|value)", re.IGNORECASE)
"""Names of values of actions or states."""
OF_SCORES = re.compile(r"sim|score|logit|cos|reward|logp|rank", re.IGNORECASE)
"""Names of what is higher for what is preferred; a distance is lower."""
MAX_LINES_BETWEEN_TERMS = 3
"""Lines between two terms of one loss. Chosen: a statement over several lines."""


def returns_past_the_end(roles: Roles) -> Iterator[Fault]:
    """Returns or targets go on past the end of an episode, as nothing masks what comes after it."""
    if not re.search(r"\b(?:dones?|terminated|truncated|terminations|terms?|trunc|terminals?)\b", roles.source):
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


def _is_discounted(node: ast.expr) -> bool:
    """Say whether a value is `reward + gamma * next`."""
    sides = (node.left, node.right) if is_operation(node, ast.Add) else ()
    products = [side for side in sides if is_operation(side, ast.Mult)]
    return any(DISCOUNT.search(dotted(part)) for side in products for part in walk(side, ast.Name, ast.Attribute))


def _names(node: ast.AST) -> set[str]:
    """Return the last parts of names in an expression; of `self.args.gamma` it is "gamma"."""
    names = {last_name(part) for part in walk(node, ast.Name, ast.Attribute)}
    return names | {str(part.value) for part in walk(node, ast.Constant) if part.value}


def _is_masked(roles: Roles, made: Assignment) -> bool:
    """Say whether a flag of the end goes into a value, by whatever names, or decides about it."""
    same = [assignment for assignment in roles.script.assignments if assignment.function == made.function]
    reached: list[Assignment] = [made]
    names = _names(made.value)
    for assignment in reached:
        if any(DONE.search(test) for test in assignment.conditions) or _reads_end(assignment.value):
            return True
        read = _names(assignment.value)
        new = [other for other in same if other.last in read and other not in reached]
        reached += new[: MAX_ASSIGNMENTS_FOLLOWED - len(reached)]
        names |= read
    return bool(names & _set_at_ends(roles))


def _names_an_end(node: ast.AST) -> bool:
    return any(map(DONE.search, _names(node)))


def _reads_end(node: ast.expr) -> bool:
    masks = re.search(r"\bwhere\(|~|\b1(?:\.0)? - |\bnot ", ast.unparse(node))
    return bool(masks) or _names_an_end(node)


def _set_at_ends(roles: Roles) -> set[str]:
    """Return the names of what has items set under a mask of ends: `values[done] = 0`."""
    return {
        last_name(target.value)
        for node in walk(roles.script.tree, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Subscript) and _names_an_end(target.slice)
    }


def _recurs(made: Assignment) -> bool:
    """Say whether a value goes on from itself: `g = r + gamma * g`."""
    return made.target in {dotted(part) for part in ast.walk(made.value)} and bool(
        RECURS.search(made.last) or len(made.target) <= 2
    )


def _is_backwards(roles: Roles, made: Assignment) -> bool:
    through = roles.script.loops.get(made.loops[-1], "")
    return bool(re.search(r"reversed|::-1|, -1, -1|flip", through)) and not re.search(r"episode\b|traj\b", through)


def _rollouts_cross_episodes(roles: Roles) -> bool:
    """Say whether a rollout goes on after an episode ends: it resets inside of its loop, or has many environments.

    A rollout that ends with its episode has no reward after it.
    """
    vector = re.search(r"make_vec|VectorEnv|VecEnv|num_envs|n_envs", roles.source)
    tests = [node for node in walk(roles.script.tree, ast.If, ast.While) if _names_an_end(node.test)]
    until = any(isinstance(node, ast.While) for node in tests)
    branches = [node for node in tests if isinstance(node, ast.If)]
    stops = any(isinstance(part, ast.Break | ast.Return) for node in branches for part in ast.walk(node))
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
    definition = roles.definitions.get(last_part(made.function))
    if isinstance(definition, ast.FunctionDef):
        parameters = {argument.arg for argument in definition.args.args}
        flags |= {name for name in parameters if re.fullmatch(r"dones?|terms?|terminated|terminals?", name)}
        body: ast.AST = definition
    else:
        body = roles.script.tree
    return bool(flags) and not flags & names_read(body)


def target_with_gradient(roles: Roles) -> Iterator[Fault]:
    """The target of a value goes through the network that learns it, and is not cut off."""
    for made in roles.script.assignments:
        value = _target_in(made.value)
        if not _is_discounted(value) or _CUT_OFF.search(ast.unparse(value)) or _adds_a_penalty(made):
            continue
        computed = [value, *_sources(roles, value, made)]
        nodes = [node for part in computed for node in walk(part, ast.Call)]
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
    sources = [_value_of(roles, ast.Name(name), made) for name in sorted(names_in(value))]
    return [source for source in sources if not _CUT_OFF.search(ast.unparse(source))]


def _target_in(node: ast.expr) -> ast.expr:
    """Return the target in a difference to it, such as `reward + gamma * after - value`; others as they are."""
    return node.left if is_operation(node, ast.Sub) else node


def _is_given_to_loss(roles: Roles, made: Assignment) -> bool:
    names = ("MSELoss", "mse_loss", "SmoothL1Loss", "smooth_l1_loss", "HuberLoss", "huber_loss")
    return any(
        call.function == made.function and call.order >= made.order and roles.loss_named(call, *names)
        for call in roles.script.calls
        if any(dotted(argument) == made.target for argument in call.node.args)
    )


def old_log_probability_with_gradient(roles: Roles) -> Iterator[Fault]:
    """The ratio of a policy to its old self is made of two values with gradients, and so is always one."""
    for node, made in _old_log_probabilities(roles):
        call = roles.call_of(made.value)
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


def _old_log_probabilities(roles: Roles) -> Iterator[tuple[ast.BinOp, Assignment]]:
    """Yield the differences of log-probabilities to old ones, and where the old ones are computed."""
    for node in ast.walk(roles.script.tree):
        if not is_operation(node, ast.Sub):
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
    loops = [loop for loop in roles.loops_at(made.loops) if "range(" in ast.unparse(loop.iter)]
    return any(
        any(loop.lineno in update.loops for update in updates) and not _rows_of(made.value) & _names_set_in(loop)
        for loop in loops
    )


def _rows_of(node: ast.AST) -> set[str]:
    """Return the names of what calls are given, without their places in brackets: "obs" of `policy(obs[index])`."""
    given = [part for call in walk(node, ast.Call) for part in call.args]
    return {dotted(part).partition(".")[0] for part in given}


def _names_set_in(loop: ast.For) -> set[str]:
    """Return the names that get another value inside of a loop, and those that a call may fill."""
    stored = names_set(loop)
    filled = {
        dotted(part.value.func).partition(".")[0] for part in walk(loop, ast.Expr) if isinstance(part.value, ast.Call)
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
        negative = [sign_of(side) < 0 for side in sides]
        takes_highest = call.method.startswith("max")
        if (takes_highest and not any(negative)) or (not takes_highest and all(negative)):
            says = f"{call.name}() takes the better of the two objectives: the clipping of PPO has no effect"
            yield fault("clipped_the_wrong_way", call.line, "likely", says)


def divergence_is_rewarded(roles: Roles) -> Iterator[Fault]:
    """The divergence from the reference is added to the reward, which it is to be taken off."""
    for node in ast.walk(roles.script.tree):
        if not (is_operation(node, ast.Add) and REWARDS.search(last_name(node.left))):
            continue
        if is_operation(node.right, ast.Mult):
            factors = [node.right.left, node.right.right]
            names = [last_name(factor) for factor in factors]
            signs = [constant_of(roles.spelled_out(factor)) for factor in factors]
            negative = any(isinstance(sign, int | float) and sign < 0 for sign in signs)
            negative = negative or any(_is_negative_divergence(roles, name) for name in names)
            charged = any(re.search(r"^kls?$|^kl_(?!coef|weight|beta)|_kl$", name) for name in names)
            if (charged or any(map(_is_divergence, factors))) and not negative:
                says = f"`{ast.unparse(node)[:60]}` rewards the distance from the reference instead of charging for it"
                yield fault("loss_sign", node.lineno, "likely", says)


def _is_divergence(node: ast.expr) -> bool:
    """Say whether a value is the log-probability of a policy less that of its reference, by their names."""
    if not is_operation(node, ast.Sub):
        return False
    left, right = (ast.unparse(side) for side in (node.left, node.right))
    of_both = all(re.search(r"log_?p|logits", text) for text in (left, right))
    return of_both and bool(OF_REFERENCE.search(right)) and not OF_REFERENCE.search(left)


def _is_negative_divergence(roles: Roles, name: str) -> bool:
    """Say whether a name is the log-probability of the reference less that of the policy, or has a minus."""
    for made in roles.script.assignments:
        if made.last == name:
            value = made.value
            left = ast.unparse(value.left) if is_operation(value, ast.Sub) else ""
            if re.search(r"ref|base|init|sft", left) or sign_of(value) < 0:
                return True
    return False


def value_of_own_actions_made_smaller(roles: Roles) -> Iterator[Fault]:
    """The loss of an actor is the value of its own actions, without the minus that makes them better."""
    for made in roles.script.assignments:
        inner = made.value
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr == "mean":
            inner = inner.func.value
        if not isinstance(inner, ast.Call) or inner is made.value or not is_critic(inner):
            continue
        inside = [part for given in inner.args for part in walk(given, ast.Call)]
        by_actor = any(re.search(r"actor|policy|(?:^|_)pi$", last_name(part)) for part in inside)
        is_cost = COST.search(dotted(inner)) or _is_negated(roles, made)
        if by_actor and roles.reaches_backward(made) and not is_cost:
            says = f"{made.target} is the value of the actor's own actions: training makes that smaller"
            yield fault("loss_sign", made.line, "likely", says)


def _is_negated(roles: Roles, made: Assignment) -> bool:
    """Say whether a value gets a minus later in its function."""
    scope = roles.definitions.get(last_part(made.function), roles.script.tree)
    for node in ast.walk(scope):
        negated: ast.expr | None = None
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            negated = node.operand
        elif is_operation(node, ast.Sub):
            negated = node.right
        elif is_operation(node, ast.Mult) and sign_of(node) < 0:
            negated = node
        if negated is not None and made.target in names_in(negated):
            return True
    return False


def is_critic(call: ast.Call) -> bool:
    """Say whether a call is that of a critic, by its name."""
    return bool(re.search(r"critic|^q(?:f|_?net|_?function)?_?[12]?$", last_name(call), re.IGNORECASE))


def policy_moves_its_critic(roles: Roles) -> Iterator[Fault]:
    """A log-probability is weighted by a value that has a gradient of its own, as an advantage that is not detached."""
    # what calls of functions that are not in the file return need not have a gradient
    moved = [event for event in roles.trace.of("policy") if any(made.kind == "model" for made in event.objects)]
    for line in sorted({event.line for event in moved}):
        says = "the log-probability is weighted by a value with a gradient, which then moves to please the policy"
        yield fault("advantage_with_gradient", line, "likely", says)


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
        of_density = any(LOG_PROBABILITY.search(last_part(name)) for name in calls_in(other.value))
        if later and not of_density and reached & names_with_graph(other.value):
            reached.add(other.target)
    return reached


def _given_by(roles: Roles, drawn: Assignment) -> Iterator[Assignment]:
    """Yield what callers get of a function that returns a drawn value, or what is computed from it."""
    owner, _, name = drawn.function.rpartition(".")
    function = roles.definitions.get(name) if not owner else method_of(roles.definitions.get(last_part(owner)), name)
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
            if same or (name not in ("forward", "__call__") and last_part(called) == name):
                yield made


def _learns_by(roles: Roles, action: Assignment) -> bool:
    """Say whether a loss is the value of an action, and the optimizer that then steps is not that of the critic."""
    reached = _reached(roles, action)
    for loss in roles.script.assignments:
        if loss.function != action.function or loss.order < action.order or not roles.reaches_backward(loss):
            continue
        for value in (node for node in walk(loss.value, ast.Call)):
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
        if inside and isinstance(node, ast.Call) and last_name(node) == "detach":
            return True
        if inside and is_operation(node, ast.Mult):
            other = node.right if any(part is value for part in ast.walk(node.left)) else node.left
            names = [*names_in(other), *calls_in(other)]
            if any(LOG_PROBABILITY.search(name) for name in names):
                return True
    return False


def _actor_steps(roles: Roles, loss: Assignment, value: ast.Call) -> bool:
    """Say whether the first step after a loss is of an optimizer that is known not to have the critic."""
    steps: list[Call] = [step for step in roles.steps if step.function == loss.function and step.order >= loss.order]
    made = roles.optimizers.get(steps[0].owner) if steps else None
    critic = last_name(value)
    return made is not None and critic not in re.findall(r"\w+", ast.unparse(made.value))


@dataclass(frozen=True, slots=True)
class _Repeats:
    """How a script lays out several completions for each prompt.

    Args:
        counts: What it repeats by, as text and as the last parts of names.
        together: Whether the completions of a prompt stand next to each other.
        in_turn: Whether all prompts stand there once, then all of them again.
    """

    counts: frozenset[str]
    together: bool
    in_turn: bool


def compared_across_prompts(roles: Roles) -> Iterator[Fault]:
    """Rewards are compared along the wrong axis: completions of one prompt are set against those of others."""
    repeats = _repeats(roles)
    for made in (*roles.script.assignments, *returned(roles)):
        for node in ast.walk(made.value):
            if is_operation(node, ast.Sub):
                yield from _centred(roles, node, made, repeats)


def _centred(roles: Roles, node: ast.BinOp, made: Assignment, repeats: _Repeats) -> Iterator[Fault]:
    """Yield a fault where a table has its mean over the wrong axis taken off."""
    axis = _axis_of_mean(roles, node.right, node.left, made)
    sizes = _sizes_of_table(roles, node.left, made)
    if axis is None or sizes is None or not _is_of_rewards(roles, node.left, made):
        return
    groups = [_counts_completions(size, repeats) for size in sizes]
    if groups.count(True) != 1:
        return
    within, written = groups.index(True), ast.unparse(node)[:60]
    if axis != within:
        says = f"`{written}` takes the mean over the prompts, and not over the completions of each"
        yield fault("compared_across_prompts", node.lineno, "likely", says)
    elif within == 0 and repeats.together and not repeats.in_turn:
        says = f"the completions of a prompt stand next to each other, and `{written}` takes its groups across prompts"
        yield fault("compared_across_prompts", node.lineno, "likely", says)


def _is_of_rewards(roles: Roles, table: ast.expr, made: Assignment) -> bool:
    """Say whether a table is of rewards, by its name, that of what it is a view of, or that of its function."""
    names = (dotted(table), dotted(_value_of(roles, table, made)), made.target, last_part(made.function))
    return any(COMPARED.search(name) for name in names)


def _value_of(roles: Roles, node: ast.expr, made: Assignment) -> ast.expr:
    """Return what a name was assigned last in its function; others as they are."""
    known = roles.made_before(node.id, made) if isinstance(node, ast.Name) else []
    before = [assignment for assignment in known if assignment is not made]
    return before[-1].value if before else node


def _axis_of_mean(roles: Roles, node: ast.expr, table: ast.expr, made: Assignment) -> int | None:
    """Return the axis, 0 or 1, over which a value is the mean of a table of two axes; None where it is none."""
    value = _value_of(roles, node, made)
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute) or value.func.attr != "mean":
        return None
    functional = dotted(value.func.value) in ("torch", "np", "numpy")
    of_what = value.args[0] if functional and value.args else value.func.value
    if ast.unparse(of_what) != ast.unparse(table):
        return None
    axis = axis_of(value.args[functional:], value)
    return {0: 0, 1: 1, -1: 1, -2: 0}.get(axis) if axis is not None else None


def _sizes_of_table(roles: Roles, table: ast.expr, made: Assignment) -> list[ast.expr] | None:
    """Return the two sizes that a table was given by `view` or `reshape`; None for another value."""
    value = _value_of(roles, table, made)
    if not isinstance(value, ast.Call) or last_name(value) not in ("view", "reshape"):
        return None
    functional = dotted(value.func).partition(".")[0] in ("torch", "np", "numpy")
    sizes = value.args[1:] if functional else value.args
    if len(sizes) == 1 and isinstance(sizes[0], ast.Tuple | ast.List):
        sizes = sizes[0].elts
    return list(sizes) if len(sizes) == 2 else None


def _counts_completions(size: ast.expr, repeats: _Repeats) -> bool:
    """Say whether a size is the number of completions of a prompt: by its name, or as prompts are repeated by it."""
    last = last_name(size)
    if constant_of(size) == -1:
        return False
    if ast.unparse(size) in repeats.counts or (last and last in repeats.counts):
        return True
    return bool(GROUP.search(last)) and not COUNTS_PROMPTS.search(last)


def _repeats(roles: Roles) -> _Repeats:
    counts: set[str] = set()
    together = in_turn = False
    for call in roles.script.calls:
        first = call.node.args[0] if call.node.args else call.keywords.get("repeats")
        if call.method in ("repeat_interleave", "repeat") and call.owner in ("torch", "np", "numpy"):
            first = call.node.args[1] if len(call.node.args) > 1 else call.keywords.get("repeats")
        if call.method == "repeat_interleave" or (call.method == "repeat" and call.owner in ("np", "numpy")):
            counts |= _names_of_count(roles, first)
            together = together or bool(REPEATED.search(ast.unparse(call.node)))
        elif call.method in ("repeat", "tile"):
            in_turn = in_turn or bool(REPEATED.search(ast.unparse(call.node)))
        elif "num_return_sequences" in call.keywords:
            counts |= _names_of_count(roles, call.keywords["num_return_sequences"])
            together = True
    for node in ast.walk(roles.script.tree):
        if isinstance(node, ast.ListComp) and len(node.generators) == 2:
            inner = node.generators[1].iter
            if isinstance(inner, ast.Call) and dotted(inner.func) == "range" and len(inner.args) == 1:
                counts |= _names_of_count(roles, inner.args[0])
                together = together or bool(REPEATED.search(ast.unparse(node)))
    return _Repeats(frozenset(counts), together, in_turn)


def _names_of_count(roles: Roles, count: ast.expr | None) -> set[str]:
    """Return a number as text, and the last parts of the names that it has in functions that it is given to."""
    if count is None:
        return set()
    name = dotted(count) if isinstance(count, ast.Name | ast.Attribute) else ""
    return {ast.unparse(count)} | (roles.also_called(name) if name else set())


def reward_is_a_distance(roles: Roles) -> Iterator[Fault]:
    """A function of a reward returns how far an answer is from what is wanted: the worse it is, the more it earns."""
    for path, function in with_functions(roles.script.tree):
        if not isinstance(function, ast.FunctionDef) or not REWARD.search(function.name):
            continue
        if NOT_A_REWARD.search(function.name):
            continue
        values = list(_given_back(function))
        wrong = [value for value in values if _better_side(roles, function, value, path) == "lower"]
        if wrong and len(wrong) == len([value for value in values if _better_side(roles, function, value, path)]):
            source = _value_made(function, wrong[0])
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


def _value_made(function: ast.FunctionDef, value: ast.expr) -> ast.expr:
    """Return what the last name in a value was assigned, where it is one name alone in calls of other functions."""
    names = names_in(value)
    made = [
        node.value
        for node in walk(function, ast.Assign)
        if dotted(node.targets[0]) in names and isinstance(node.targets[0], ast.Name)
    ]
    return made[-1] if made else value


def _better_side(roles: Roles, function: ast.FunctionDef, value: ast.expr, path: str) -> Better:
    """Return on which side what a function gives is better; a difference by the side which has the answer."""
    known = better_of(roles, value, path)
    source = _value_made(function, value)
    parts = [part for part in walk(source, ast.BinOp) if isinstance(part.op, ast.Sub)]
    answers = _names_of_answers(function) if parts and not known else set[str]()
    for part in parts if answers else ():
        left, right = (better_of(roles, side, path) for side in (part.left, part.right))
        of_answer = [bool(names_in(side) & answers) for side in (part.left, part.right)]
        if left == right == "lower" and of_answer.count(True) == 1:
            return "lower" if of_answer[0] else "higher"
    return known


def _names_of_answers(function: ast.FunctionDef) -> set[str]:
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
        for node in walk(roles.script.tree, ast.BinOp)
        if isinstance(node.op, ast.Sub) and _factors(node.left) and _is_value(node.right)
    }
    for node in walk(roles.script.tree, ast.BinOp):
        if not isinstance(node.op, ast.Add):
            continue
        for weighed, other in ((node.right, node.left), (node.left, node.right)):
            factors = _factors(weighed)
            named = any(map(TEMPERATURE.search, factors)) and any(map(LOG_PROBABILITY.search, factors))
            if factors and _is_value(other) and (factors in charged or named) and not any(walk(weighed, ast.USub)):
                says = f"`{ast.unparse(node)[:60]}` adds the log-probability, which the value of a state is to lose"
                yield fault("loss_sign", node.lineno, "likely", says)


def _factors(node: ast.expr) -> frozenset[str]:
    """Return the names of the two factors of a product; none for anything else."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
        node = node.func.value
    if not is_operation(node, ast.Mult):
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


def roles_exchanged(roles: Roles) -> Iterator[Fault]:
    """What is preferred gets the name of what is not, or the other way round, on the way to the loss."""
    for exchanged in dict.fromkeys(roles.trace.exchanged):
        says = f"{exchanged.name} is given here what is named the opposite where it is made"
        says += f" (line {exchanged.made_at})" if exchanged.made_at not in (0, exchanged.line) else ""
        lines = (exchanged.made_at, *(getattr(node, "lineno", 0) for node in exchanged.through))
        yield fault("roles_exchanged", exchanged.line, "likely", says, lines=lines)


def margin_has_wrong_sign(roles: Roles) -> Iterator[Fault]:
    """A loss of a difference of scores makes that of the other higher than that of the preferred."""
    margins = roles.trace.margins if roles.trains_by_hand or roles.trains_elsewhere else []
    for line, name, role, made_at in dict.fromkeys(margins):
        both = any(
            abs(line - other) <= MAX_LINES_BETWEEN_TERMS and role != turned for other, _, turned, _ in margins
        )  # labels are smoothed
        grows = name in ("softplus", "relu", "clamp", "clamp_min")
        text = "\n".join(roles.script.text.splitlines()[line - 1 : line + 1])
        of_scores = name in ("softplus", "logsigmoid", "log_sigmoid") or bool(OF_SCORES.search(text))
        if both or not of_scores or name == "sigmoid" or grows != (role == "preferred less other"):
            continue
        says = f"{name}() is given the score of what is {role.replace(' less ', ' less that of the ')}"
        yield fault("margin_sign", line, "likely", f"{says}: training prefers the wrong one", lines=(made_at,))
