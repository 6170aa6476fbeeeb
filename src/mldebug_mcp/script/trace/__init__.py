"""A script → what happens to its models, optimizers and loaders, in order.

The script is followed over abstract values and never run. Local functions and methods are entered with their arguments.
Both branches of a test are taken unless a constant decides it. Each loop is gone through twice.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Literal

from mldebug_mcp.script.values import Loops, Object, Terms, Value

# What happens in a script: its events in order, and the objects that they happen to.


Action = Literal[
    "make", "forward", "backward", "step", "schedule", "clear", "clip", "train", "eval", "write", "load", "freeze",
    "unfreeze", "attach", "escape", "iterate", "unscale", "gradients", "copy", "policy", "loss", "plan",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens to objects of a script.

    Args:
        action: What happens.
        objects: What it happens to: the optimizer that steps, the models that gradients are computed for.
        node: The part of the script that does it.
        loops: The loops around it, those around callers among them.
        tests: The tests around it that the script does not decide, as parts of the syntax tree.
        gradients: Whether gradients are on; None where that is not known.
        function: The function of the file that it stands in.
        entry: The place where the script begins: 0 for its top, others for functions that it never calls.
        modes: The modes of a model in a forward pass.
        source: What is loaded or attached.
        terms: What a loss is the sum of.
        through: The calls of this file's functions that lead to it, the outermost first.
    """

    action: Action
    objects: frozenset[Object]
    node: ast.AST
    loops: Loops
    tests: tuple[ast.AST, ...]
    gradients: bool | None
    function: str
    entry: int
    modes: frozenset[str] = frozenset()
    source: Object | None = None
    terms: Terms = frozenset()
    through: tuple[ast.AST, ...] = ()

    @property
    def line(self) -> int:
        """The line, from 1."""
        return getattr(self.node, "lineno", 0)

    def is_within(self, other: Event) -> bool:
        """Say whether it happens in the loops around another event, and in the same round of these."""
        return self.entry == other.entry and self.loops[: len(other.loops)] == other.loops

    def concerns(self, model: Object) -> bool:
        """Say whether it happens to a model, to a part of it, or to what it is a part of."""
        return any(affected.is_related_to(model) for affected in self.objects)

    def line_apart(self, other: Event) -> int:
        """Return the line of the first call that leads to it and not to another event: where their order is decided."""
        ways = zip((*self.through, self.node), (*other.through, other.node), strict=False)
        return next((getattr(own, "lineno", self.line) for own, others in ways if own is not others), self.line)

    @property
    def lines(self) -> tuple[int, ...]:
        """Its line, and those of the calls that lead to it."""
        return tuple(getattr(node, "lineno", 0) for node in (*self.through, self.node))

    @property
    def loop_lines(self) -> tuple[int, ...]:
        """The lines of the loops around it."""
        return tuple(line for line, _ in self.loops)


@dataclass(frozen=True, slots=True)
class Registered:
    """A function that is put into a list under a key.

    Args:
        function: The function.
        key: The key; None where that is not known.
        node: What puts it there.
        through: The calls that lead there.
    """

    function: ast.AST
    key: object
    node: ast.AST
    through: tuple[ast.AST, ...]


@dataclass(frozen=True, slots=True)
class Exchanged:
    """What gets a name that says the opposite of its own role, such as a rejected answer that is called chosen.

    Args:
        line: Where it gets the name.
        name: The name.
        made_at: Where it got its role; 0 where that is not known.
        through: The calls that lead there.
    """

    line: int
    name: str
    made_at: int
    through: tuple[ast.AST, ...]


@dataclass(slots=True)
class Trace:
    """What happens in a script.

    Args:
        events: In order.
        objects: All objects, in the order in which they are made or met.
        is_complete: Whether all of the script was followed.
        given: By the identity of a call in the syntax tree, what its first argument was each time.
        called: By the identity of a call, the functions of other files, and the makers of losses and models, that it
            calls.
        lacking: The lines of sums that lost the gradient of a part, for which gradients are computed.
        without_graph: The lines that compute gradients of what was calculated without, each with the line of that.
        settings: By the identity of a call, the values that its keyword arguments had, a `**mapping` among them.
        sides: By the identity of a difference or a call, its two sides or first arguments each time.
        over_another_axis: The lines of softmax along another axis than that along which a line hides places.
        kept: The lines that keep a loss with its graph behind its round, each with those of the calls that lead there.
        reductions: The lines that add the mean over all elements and a sum over all of them, each with that of the sum.
        cut: The models through whose outputs the gradient is cut off somewhere.
        chosen: The texts by which parts of mappings are chosen, each with the line where it is written.
        exchanged: What gets a name of the role opposite to its own.
        margins: The lines of functions of the preferred less the other, or the reverse: with the function, which, and
            the line where the first of the two is made.
        intervals: The schedules that Lightning moves on, each with its interval.
        padding_kept: The lines of masks that are true at padding alone, each with the line of a mean over these places.
        registered: The functions that are put into lists under keys.
        reached: The functions that others call.
        hidden: The lines that hide data or the past from a softmax or maximum, and leave the rest; with which of both.
        softmaxed: The lines of softmax over scores of all pairs, with the line of the scores, and the axis.
        over_one: The lines of softmax along an axis of the size 1.
    """

    events: list[Event] = field(default_factory=list)
    objects: list[Object] = field(default_factory=list)
    is_complete: bool = True
    given: dict[int, list[Value]] = field(default_factory=dict)
    called: dict[int, set[str]] = field(default_factory=dict)
    lacking: list[int] = field(default_factory=list)
    without_graph: list[tuple[int, int]] = field(default_factory=list)
    settings: dict[int, dict[str, list[Value]]] = field(default_factory=dict)
    sides: dict[int, list[tuple[Value, Value]]] = field(default_factory=dict)
    intervals: list[tuple[Object, Value]] = field(default_factory=list)
    kept: list[tuple[int, ...]] = field(default_factory=list)
    reductions: list[tuple[int, int]] = field(default_factory=list)
    cut: set[Object] = field(default_factory=set)
    chosen: set[tuple[str, int]] = field(default_factory=set)
    exchanged: list[Exchanged] = field(default_factory=list)
    margins: list[tuple[int, str, str, int]] = field(default_factory=list)
    registered: list[Registered] = field(default_factory=list)
    reached: set[ast.AST] = field(default_factory=set)
    hidden: list[tuple[int, str]] = field(default_factory=list)
    softmaxed: set[tuple[int, int, int | None]] = field(default_factory=set)
    over_one: list[int] = field(default_factory=list)
    over_another_axis: list[tuple[int, int]] = field(default_factory=list)
    padding_kept: list[tuple[int, int]] = field(default_factory=list)

    def of(self, *actions: Action) -> list[Event]:
        """Return the events of some kinds."""
        return [event for event in self.events if event.action in actions]

    def steps_model(self, step: Event, model: Object) -> bool:
        """Say whether a step may change a model: its optimizer has some of its parameters, or unknown ones."""
        return any(
            stepper.kind == "optimizer" and (not stepper.holds_all or stepper.holds_some_of(model))
            for stepper in step.objects
        )

    def clears_model(self, clear: Event, model: Object) -> bool:
        """Say whether gradients of a model may be cleared."""
        return clear.concerns(model) or any(
            cleared.kind != "model" and (not cleared.holds or not cleared.holds_all or cleared.holds_some_of(model))
            for cleared in clear.objects
        )
