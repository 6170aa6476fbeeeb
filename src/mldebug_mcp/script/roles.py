"""What the names of a script stand for: optimizers, schedules, losses, loaders, models."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from mldebug_mcp.script.calls import (
    Assignment,
    Call,
    Script,
    called_name,
    calls_in,
    constant_of,
    dotted,
    fields_in,
    is_operation,
    keywords_of,
    last_name,
    last_part,
    names_in,
    walk,
)
from mldebug_mcp.script.library import CUT, EVALUATES, NO_GRADIENTS, OPTIMIZERS, SCHEDULES
from mldebug_mcp.script.trace import Trace
from mldebug_mcp.script.trace.follower import trace_of
from mldebug_mcp.script.values import constant_in

ONE_CALL_TRAINERS = re.compile(r"(?:Trainer|Seq2SeqTrainer|SFTTrainer|fit|Learner|train_model)$")
CROSS_ENTROPY = re.compile(
    r"(?:^|\.)(?:CrossEntropyLoss|cross_entropy|softmax_cross_entropy(?:_with_integer_labels)?)$"
)
MAX_NAMES_FOLLOWED = 4
"""Names that are followed, one after the other, to what a value is made of."""
MAX_VALUES = 4
"""Values that a name may hold which are followed."""
MAX_RUNS = 20
"""Ways that lead to a call which are followed."""


@dataclass(frozen=True, slots=True)
class Run:
    """Where a call runs, with its callers of this file.

    Args:
        function: The outermost function.
        loops: All loops around it, the outermost first, by their lines.
        conditions: All conditions around it.
        guards: All `with` blocks and decorators around it.
        order: The place of the outermost caller among all calls, of the next, and so on to the call.
    """

    function: str
    loops: tuple[int, ...]
    conditions: tuple[str, ...]
    guards: tuple[str, ...]
    order: tuple[int, ...]

    def inside(self, outer: Run) -> Run:
        """Return the same with what is around its caller."""
        return Run(
            outer.function,
            (*outer.loops, *self.loops),
            (*outer.conditions, *self.conditions),
            (*outer.guards, *self.guards),
            (*outer.order, *self.order),
        )


def names_with_graph(node: ast.AST) -> set[str]:
    """Return the names that an expression reads, those apart whose graph it leaves behind."""
    if isinstance(node, ast.Call) and last_name(node) in CUT:
        return set()
    own = {node.id} if isinstance(node, ast.Name) else set()
    return own.union(*(names_with_graph(part) for part in ast.iter_child_nodes(node)))


@dataclass(frozen=True)
class Roles:
    """What the names of a script stand for.

    Args:
        script: The script.
    """

    script: Script

    @cached_property
    def trace(self) -> Trace:
        """What happens to its models, optimizers and loaders, in order."""
        return trace_of(self.script.tree)

    @cached_property
    def loops_by_line(self) -> dict[int, str]:
        """What the `for` loops are over, by their lines: "epoch in range(3)"."""
        return {
            node.lineno: f"{ast.unparse(node.target)} in {ast.unparse(node.iter)}"
            for node in walk(self.script.tree, ast.For)
        }

    @cached_property
    def loop_names(self) -> set[str]:
        """The names that `for` loops set."""
        loops = (node.target for node in walk(self.script.tree, ast.For))
        return set[str]().union(*map(names_in, loops))

    @cached_property
    def optimizers(self) -> dict[str, Assignment]:
        """By name: what an optimizer was made by."""
        return self._made_by(OPTIMIZERS)

    @cached_property
    def schedules(self) -> dict[str, Assignment]:
        """By name: what a schedule of the learning rate was made by."""
        return self._made_by(SCHEDULES)

    @cached_property
    def losses(self) -> dict[str, Assignment]:
        """By name: the loss functions that are modules."""
        return self._made_by(re.compile(r"(?:^|\.)\w+Loss$"))

    @cached_property
    def loaders(self) -> dict[str, Assignment]:
        """By name: the loaders of data."""
        return self._made_by(re.compile(r"(?:^|\.)DataLoader$"))

    def _made_by(self, pattern: re.Pattern[str]) -> dict[str, Assignment]:
        return {made.target: made for made in self.script.assignments if pattern.search(made.made_by)}

    @cached_property
    def backwards(self) -> list[Call]:
        """The calls that compute gradients."""
        named = self.script.named("backward", "manual_backward")
        return [call for call in named if isinstance(call.node.func, ast.Attribute) or call.node.args]

    @cached_property
    def accumulating(self) -> list[Call]:
        """The calls of Accelerate by which it divides the loss and holds steps back: `accelerator.accumulate(...)`."""
        made = self._made_by(re.compile(r"(?:^|\.)Accelerator$"))
        named = self.script.named("accumulate")
        return [call for call in named if call.owner in made or call.owner.endswith("accelerator")]

    @cached_property
    def steps(self) -> list[Call]:
        """The calls that change the weights."""
        return [call for call in self.script.named("step") if self.is_optimizer_step(call)]

    @cached_property
    def schedule_steps(self) -> list[Call]:
        """The calls that move a schedule on."""
        return [call for call in self.script.named("step") if self._is_schedule(call.owner)]

    def is_optimizer_step(self, call: Call) -> bool:
        """Say whether a call `x.step()` is of an optimizer, or of a scaler that steps one."""
        owner = last_part(call.owner).lower()
        if call.owner in self.optimizers or self.is_scaler(call.owner):
            return True
        return not self._is_schedule(call.owner) and ("opt" in owner or owner in ("trainer_d", "trainer_g"))

    def is_scaler(self, owner: str) -> bool:
        """Say whether a name is that of a scaler of losses in half precision, or was made as one."""
        return "scaler" in last_part(owner).lower() or owner in self._scalers

    @cached_property
    def _scalers(self) -> dict[str, Assignment]:
        return self._made_by(re.compile(r"(?:^|\.)\w*GradScaler$"))

    def _is_schedule(self, owner: str) -> bool:
        last = last_part(owner).lower()
        return owner in self.schedules or "sched" in last or last in ("lr_scheduler", "warmup")

    def unit(self, call: Call) -> list[Call]:
        """Return the calls of the same round: in the same function, inside the loops that are around a call."""
        return [other for other in self.script.calls if other.is_within(call)]

    @cached_property
    def trains_by_hand(self) -> bool:
        """Whether the script has a loop of its own."""
        return bool(self.backwards)

    @cached_property
    def trains_elsewhere(self) -> bool:
        """Whether a trainer of a framework makes the loop."""
        return bool(self.trainer_calls)

    @cached_property
    def trainer_calls(self) -> list[Call]:
        """The calls of a framework that train a model by themselves."""
        return [call for call in self.script.calls if ONE_CALL_TRAINERS.search(call.name)]

    @cached_property
    def source(self) -> str:
        """The script without comments, written anew."""
        return ast.unparse(self.script.tree)

    def is_repeated(self, call: Call, depth: int = 3) -> bool:
        """Say whether a call comes again and again in this file: in a loop, or in a function that a loop calls."""
        if call.loops:
            return True
        return depth > 0 and any(self.is_repeated(caller, depth - 1) for caller in self.callers(call.function))

    @cached_property
    def text(self) -> str:
        """The names of all that is called, a line each."""
        return "\n".join(call.name for call in self.script.calls)

    def is_cross_entropy(self, call: Call) -> bool:
        """Say whether a call computes the cross-entropy."""
        return self._is_loss(call, CROSS_ENTROPY)

    def _is_loss(self, call: Call, pattern: re.Pattern[str]) -> bool:
        made = self.losses.get(call.name) or self.losses.get(f"self.{call.name}")
        name = call.name if made is None else dotted(made.value)
        is_function = made is not None or call.method[:1].islower()
        if bool(pattern.search(name)) and is_function and name not in self.definitions:
            return True
        called = self.trace.called.get(id(call.node), set())
        return bool(called) and all(map(pattern.search, called))

    def loss_named(self, call: Call, *names: str) -> bool:
        """Say whether a call computes one of these losses: "MSELoss" and "mse_loss" alike."""
        wanted = "|".join(names)
        return self._is_loss(call, re.compile(rf"(?:^|\.)(?:{wanted})$"))

    def source_of(self, node: ast.expr, call: Call | Assignment) -> ast.expr:
        """Return what a name was assigned last before a call in its function, or once outside of all functions.

        Another expression is returned as it is.
        """
        if not isinstance(node, ast.Name):
            return node
        found = [made for made in self.made_before(node.id, call) if not made.adds]
        if found:
            return found[-1].value
        outside = [made for made in self.script.made(node.id) if not made.function]
        return outside[0].value if len(outside) == 1 and not self.is_parameter(node.id, call.function) else node

    def values_of(self, node: ast.expr, call: Call | Assignment) -> list[ast.expr]:
        """Return all that a name may hold at a call of its function, and what is added to it; others as they are.

        These are its last assignment that is made for certain, and those after it under conditions or in loops.
        """
        before = self.made_before(node.id, call) if isinstance(node, ast.Name) else []
        values: list[ast.expr] = []
        for made in reversed(before):
            values.append(made.value)
            surely = set(made.conditions) <= set(call.conditions) and made.loops == call.loops[: len(made.loops)]
            if surely and not made.adds:
                break
        return values[:MAX_VALUES] or [self.source_of(node, call)]

    def goes_on_elsewhere(self, call: Call) -> bool:
        """Say whether a call is in a method of a class whose base is of another file, which may do the rest."""
        owner = self.definitions.get(call.function.partition(".")[0])
        if not isinstance(owner, ast.ClassDef):
            return False
        bases = [last_name(base) for base in owner.bases]
        return owner.name.endswith("Mixin") or any(
            base not in self.definitions and base not in ("object", "ABC", "Protocol", "Generic") for base in bases
        )

    def scope_of(self, function: str) -> ast.AST:
        """Return the definition of a function; the whole file outside of functions."""
        return self.definitions.get(last_part(function), self.script.tree)

    def is_parameter(self, name: str, function: str) -> bool:
        """Say whether a name is a parameter of a function; of one that is not known it may be."""
        definition = self.definitions.get(last_part(function))
        if not isinstance(definition, ast.FunctionDef):
            return True
        return name in {parameter.arg for parameter in (*definition.args.args, *definition.args.kwonlyargs)}

    @cached_property
    def modules(self) -> list[ast.ClassDef]:
        """The classes of models, those that inherit from another of this file as well."""
        classes = [*walk(self.script.tree, ast.ClassDef)]
        found: dict[str, ast.ClassDef] = {}
        for node in classes:
            bases = [last_name(base) for base in node.bases]
            if any(re.search(r"(?<!Data)Module$|^PreTrainedModel$", base) or base in found for base in bases):
                found[node.name] = node
        return list(found.values())

    @cached_property
    def sequentials(self) -> dict[str, ast.expr]:
        """The models that are one `nn.Sequential`, by name."""
        made = {assignment.target: assignment.value for assignment in self.script.assignments}
        return {name: value for name, value in made.items() if dotted(value).endswith("Sequential") and "." not in name}

    def class_of(self, name: str) -> ast.ClassDef | None:
        """Return the class of a model in this file that made what has a name; None where it comes from elsewhere."""
        classes = {module.name: module for module in self.modules}
        last = last_part(name)
        for assignment in self.script.assignments:
            if assignment.last == last:
                made = next((classes[called] for called in calls_in(assignment.value) if called in classes), None)
                if made is not None:
                    return made
        return None

    def value_of(self, node: ast.expr | None) -> object:
        """Return the value of a constant, or of a name that the file gives one constant; None for anything else."""
        if isinstance(node, ast.Name):
            found = [assignment.value for assignment in self.script.made(node.id)]
            node = found[0] if len(found) == 1 else None
        return constant_of(node)

    def spelled_out(self, node: ast.expr | None) -> ast.expr | None:
        """Return what a name stands for, or the default of a setting such as `args.epochs`; others as they are.

        A default is what the author had in mind, and not what each run has.
        """
        if isinstance(node, ast.Name):
            found = [assignment.value for assignment in self.script.made(node.id)]
            return found[0] if len(found) == 1 else self.settings.get(node.id) if not found else None
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
            return self.settings.get(node.attr, node)
        return node

    def number_of(self, node: ast.expr) -> float | None:
        """Return a number that is written out, the default of a setting, or a sum or difference of such."""
        if is_operation(node, ast.Add, ast.Sub):
            left, right = self.number_of(node.left), self.number_of(node.right)
            if left is None or right is None:
                return None
            return left + right if isinstance(node.op, ast.Add) else left - right
        value = constant_of(self.spelled_out(node))
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    @cached_property
    def settings(self) -> dict[str, ast.expr]:
        """The defaults of settings by name: of `argparse` and click, and of fields of classes; unique names alone."""
        found: dict[str, list[ast.expr]] = {}
        for call in self.script.calls:
            flags = [constant_of(arg) for arg in call.node.args]
            names = [flag.lstrip("-").replace("-", "_") for flag in flags if isinstance(flag, str) and flag[:2] == "--"]
            if call.method in ("add_argument", "option") and names and "default" in call.keywords:
                found.setdefault(names[0], []).append(call.keywords["default"])
        for definition in walk(self.script.tree, ast.ClassDef):
            for name, value in fields_in(definition).items():
                found.setdefault(name, []).extend([value] if value is not None else [])
        defaults = {id(value) for values in found.values() for value in values}
        assigned = {assignment.last for assignment in self.script.assignments if id(assignment.value) not in defaults}
        return {name: values[0] for name, values in found.items() if len(values) == 1 and name not in assigned}

    def keywords(self, call: Call) -> dict[str, ast.expr]:
        """Return the keyword arguments of a call, with those of a `**mapping` that this file writes out."""
        given: dict[str, ast.expr] = {}
        for keyword in call.node.keywords:
            if keyword.arg is None:
                given |= entries_of(self.source_of(keyword.value, call))
        return given | dict(call.keywords)

    def setting_of(self, call: Call, name: str) -> object:
        """Return the constant that a keyword argument has each time the call is made; None where it has none such."""
        values = self.trace.settings.get(id(call.node), {}).get(name, [])
        constants = set(map(constant_in, values))
        return constants.pop() if len(constants) == 1 else None

    @cached_property
    def definitions(self) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
        """The functions, methods and classes of this file by name."""
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        return {node.name: node for node in ast.walk(self.script.tree) if isinstance(node, kinds)}

    @cached_property
    def imported(self) -> set[str]:
        """The names that imports give, those of modules by their first part."""
        aliases = walk(self.script.tree, ast.alias)
        return {(alias.asname or alias.name).partition(".")[0] for alias in aliases}

    @cached_property
    def functions(self) -> dict[str, ast.FunctionDef]:
        """The functions and methods of this file by name."""
        return {name: node for name, node in self.definitions.items() if isinstance(node, ast.FunctionDef)}

    def helper(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | None:
        """Return the function, method or class of this file that an expression calls; None for other expressions."""
        return self.definitions.get(called_name(node))

    def is_handed_on(self, name: str, *, except_to: re.Pattern[str]) -> bool:
        """Say whether something of a name is given to a call of another file, whose name does not match a pattern."""
        return any(
            name in {last_name(arg) for arg in (*call.node.args, *call.keywords.values())}
            and (call.method not in self.definitions or self._is_other_class(call))
            and not except_to.search(call.name)
            for call in self.script.calls
        )

    def _is_other_class(self, call: Call) -> bool:
        """Say whether a class of another module is called, under the name of one of this file."""
        return bool(call.owner) and isinstance(self.definitions.get(call.method), ast.ClassDef)

    def is_kept(self, name: str) -> bool:
        """Say whether something of a name is returned, or put into a list or mapping."""
        return any(
            name in {last_name(part) for part in ast.walk(node)}
            for node in ast.walk(self.script.tree)
            if isinstance(node, ast.Return | ast.Yield | ast.List | ast.Tuple | ast.Dict)
            and not (isinstance(node, ast.Tuple | ast.List) and isinstance(node.ctx, ast.Store))
        )

    def parameters_for(self, name: str) -> set[tuple[str, str]]:
        """Return the functions of this file that are given something of a name, each with its parameter for it."""
        found = set()
        for call in self.script.calls:
            definition = self.definitions.get(call.method)
            if isinstance(definition, ast.FunctionDef):
                parameters = [parameter.arg for parameter in definition.args.args if parameter.arg != "self"]
                given = [*zip(parameters, call.node.args, strict=False), *call.keywords.items()]
                found |= {(call.method, parameter) for parameter, arg in given if dotted(arg) == name}
        return found

    def also_called(self, name: str) -> set[str]:
        """Return the last parts of the names of something: its own, and those of parameters it is given as."""
        names, new = {last_part(name)}, {name}
        while new:
            found = {parameter for known in new for _, parameter in self.parameters_for(known)}
            new = found - names
            names |= new
        return names

    @cached_property
    def model_names(self) -> set[str]:
        """The last parts of the names of models: what parameters, modes or weights are asked of."""
        asked = self.script.named("parameters", "named_parameters", "eval", "train", "state_dict", "zero_grad")
        optimizers = {last_part(name) for name in (*self.optimizers, *self.schedules)}
        names = {last_part(call.owner) for call in asked if call.owner and not call.node.args}
        made = {assignment.last for assignment in self.script.assignments if self._makes_model(assignment.value)}
        others = {name for name in names if re.search(r"opt|sched|scaler|trainer", name.lower())}
        return {*names, *made} - optimizers - others - {"self", ""}

    def _makes_model(self, node: ast.expr) -> bool:
        called = dotted(node.func) if isinstance(node, ast.Call) else ""
        return called.endswith("Sequential") or called in {module.name for module in self.modules}

    @cached_property
    def _calls_by_node(self) -> dict[int, Call]:
        return {id(call.node): call for call in self.script.calls}

    def call_of(self, node: ast.AST | None) -> Call | None:
        """Return the call that a part of the syntax tree is; None for other parts, and inside a lambda."""
        return self._calls_by_node.get(id(node))

    def evaluates(self, function: str) -> bool:
        """Say whether a function evaluates: it says so by its name, or by eval(), and computes no gradients."""
        by_name = bool(EVALUATES.search(last_part(function)))
        return bool(function) and function not in self.trained_in and (by_name or function in self._switched_in)

    @cached_property
    def trained_in(self) -> set[str]:
        """The functions that compute gradients."""
        return {backward.function for backward in self.backwards}

    @cached_property
    def _switched_in(self) -> set[str]:
        return {call.function for call in self.script.named("eval") if call.owner}

    @cached_property
    def assignments_by_name(self) -> dict[tuple[str, str], list[Assignment]]:
        """The assignments in order, by function and name."""
        found: dict[tuple[str, str], list[Assignment]] = {}
        for made in self.script.assignments:
            found.setdefault((made.function, made.target), []).append(made)
        return found

    def holders_of(self, node: ast.AST) -> list[Assignment]:
        """Return the assignments in whose value a part of the syntax tree stands."""
        return [made for made in self.script.assignments if any(part is node for part in ast.walk(made.value))]

    def loops_at(self, lines: Sequence[int]) -> list[ast.For]:
        """Return the `for` loops that begin in some lines."""
        return [loop for loop in walk(self.script.tree, ast.For) if loop.lineno in lines]

    def path_of(self, name: str) -> str:
        """Return a function's name dotted with its class, as far as a call in it says it."""
        return next((call.function for call in self.script.calls if last_part(call.function) == name), name)

    def made_before(self, name: str, place: Call | Assignment) -> list[Assignment]:
        """Return the assignments of a name in a function up to a call or assignment in it."""
        made = self.assignments_by_name.get((place.function, name), [])
        return [assignment for assignment in made if assignment.order <= place.order]

    @cached_property
    def sides(self) -> dict[tuple[str, str], Literal["lower", "higher", ""]]:
        """On which side values are better that were asked after, by function and name."""
        return {}

    @cached_property
    def reads(self) -> dict[str, list[tuple[ast.expr, ast.AST]]]:
        """Where names are read outside of functions that nothing calls, each with what is around, by the last part."""
        dead = self.dead_functions
        found: dict[str, list[tuple[ast.expr, ast.AST]]] = {}
        stack: list[ast.AST] = [self.script.tree]
        while stack:
            parent = stack.pop()
            for node in ast.iter_child_nodes(parent):
                if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
                    found.setdefault(last_name(node), []).append((node, parent))
                if not (isinstance(node, ast.FunctionDef) and node.name in dead):
                    stack.append(node)
        return found

    @cached_property
    def dead_functions(self) -> set[str]:
        """Return the functions that this file defines and never names, where it is run and not imported."""
        if not any(not call.function and call.method in self.definitions for call in self.script.calls):
            return set()
        named = {node.id for node in walk(self.script.tree, ast.Name)}
        named |= {node.attr for node in walk(self.script.tree, ast.Attribute)}
        return {
            name
            for name, node in self.definitions.items()
            if not isinstance(node, ast.ClassDef)
            and name not in named
            and all(NO_GRADIENTS.search(dotted(decorator)) for decorator in node.decorator_list)
        } - {"__init__", "__call__", "forward"}

    def calls_model(self, node: ast.Call) -> bool:
        """Say whether a call is the forward pass of a model."""
        name = dotted(node.func)
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("forward", "module"):
            name = dotted(node.func.value)
        return name == "self" or last_part(name) in self.model_names

    def precise_callers(self, function: str) -> list[Call]:
        """Return the calls of a function, or of a method on `self` or on an instance that this file makes."""
        if function not in self._callers:
            self._callers[function] = self._find_callers(function)
        return self._callers[function]

    @cached_property
    def _callers(self) -> dict[str, list[Call]]:
        return {}

    def _find_callers(self, function: str) -> list[Call]:
        owner, _, name = function.rpartition(".")
        if not name:
            return []
        if owner not in self.definitions:
            return [call for call in self.script.named(name) if call.name == name and call.function != function]
        return [
            call
            for call in self.script.named(name)
            if call.function != function and self._is_of_class(call.owner, owner, call.function)
        ]

    def _is_of_class(self, owner: str, name: str, function: str) -> bool:
        if owner in ("self", "cls"):
            return function.startswith(f"{name}.")
        if owner == name:
            return True
        last = last_part(owner)
        return any(made.last == last for made in self.script.assignments if made.made_by == name)

    def runs(self, call: Call, depth: int = 3) -> list[Run]:
        """Return where a call runs: in its function, or in the callers of this file that lead to it."""
        here = Run(call.function, call.loops, call.conditions, call.guards, (call.order,))
        callers = self.precise_callers(call.function)[:MAX_RUNS] if depth else []
        found = [here.inside(outer) for caller in callers for outer in self.runs(caller, depth - 1)]
        return found[:MAX_RUNS] or [here]

    def gradients_off(self, call: Call) -> bool:
        """Say whether a call runs without gradients: in a block, under a decorator, or where all callers are."""
        if self.uses("set_grad_enabled"):
            return True
        return all(self.turned_off(run.guards) for run in self.runs(call))

    def turned_off(self, guards: Sequence[str]) -> bool:
        """Say whether `with` blocks and decorators turn gradients off: the innermost that switches them decides."""
        for guard in reversed(guards):
            if guard.endswith("enable_grad"):
                return False
            if self._turns_gradients_off(guard):
                return True
        return False

    def _turns_gradients_off(self, guard: str) -> bool:
        if NO_GRADIENTS.search(guard):
            return True
        decorator = self.definitions.get(last_part(guard))
        if decorator is None:
            return False
        names = [dotted(node) for node in walk(decorator, ast.Attribute, ast.Name)]
        return any(NO_GRADIENTS.search(name) for name in names)

    def reaches_backward(self, made: Assignment) -> bool:
        """Say whether gradients are computed of what is made from a value in its function, with the graph behind it."""
        reached = {made.target}
        for other in self.script.assignments:
            later = other.function == made.function and other.order >= made.order and other is not made
            if later and reached & names_with_graph(other.value):
                reached.add(other.target)
        return any(
            backward.function == made.function
            and backward.order >= made.order
            and reached & names_with_graph(backward.node)
            for backward in self.backwards
        )

    def is_imported_from(self, library: str, name: str) -> bool:
        """Say whether a name may be of a library: no import of the file says that it is of another."""
        for node in walk(self.script.tree, ast.Import, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    module = node.module or "." if isinstance(node, ast.ImportFrom) else alias.name
                    return module.partition(".")[0] == library
        return True

    def callers(self, function: str) -> list[Call]:
        """Return the calls of a function or method of this file."""
        name = last_part(function)
        return self.script.named(name) if name else []

    def uses(self, *words: str) -> bool:
        """Say whether one of these words stands in the name of anything that is called."""
        return any(word in self.text for word in words)


def entries_of(node: ast.AST) -> dict[str, ast.expr]:
    """Return the entries of a mapping that is written out: `dict(a=1)` or `{"a": 1}`."""
    if isinstance(node, ast.Call) and dotted(node.func) == "dict":
        return keywords_of(node)
    if isinstance(node, ast.Dict):
        pairs = ((constant_of(key), value) for key, value in zip(node.keys, node.values, strict=True))
        return {key: value for key, value in pairs if isinstance(key, str)}
    return {}
