"""What a trainer of a framework is given: a model that can learn, and other rows for evaluation than for training."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mldebug_mcp.script.calls import Call, dotted
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.library import SAME_MODEL
from mldebug_mcp.script.roles import ONE_CALL_TRAINERS, Roles
from mldebug_mcp.script.rules.parameters import freeze_of
from mldebug_mcp.script.values import Object

ADAPTED_BY = ("peft_config", "model_init")
"""What gives a trainer other parameters than those of the model that it is given."""
LEAVES_FROZEN = {*SAME_MODEL, "parameters", "named_parameters", "gradient_checkpointing_enable", "save_pretrained"}
"""Methods of a model that free no parameters and give none of its layers."""
SIDES = (("train_dataset", "eval_dataset"), ("train_dataloaders", "val_dataloaders"))
"""The arguments for the rows of training and of evaluation: of Transformers, and of Lightning, by place as well."""


def trains_frozen_model(roles: Roles) -> Iterator[Fault]:
    """All parameters of a model are frozen when a trainer gets it."""
    events = roles.trace.events
    for call in _trainers(roles):
        given = roles.trace.settings.get(id(call.node), {}).get("model", [])
        place = next((at for at, event in enumerate(events) if event.node is call.node), None)
        model = given[0] if len(given) == 1 else None
        if not isinstance(model, Object) or place is None or set(ADAPTED_BY) & {*roles.keywords(call)}:
            continue
        if {other.method for other in roles.script.calls if other.owner == model.name} - LEAVES_FROZEN:
            continue  # it may add an adapter, or give a layer that is unfrozen
        freeze = freeze_of(events[:place], model, events[place])
        if freeze is not None:
            says = f"all parameters of {model.label} are frozen, and {call.method} trains it (line {call.line})"
            yield fault("all_frozen", freeze.line, "certain", says, lines=(call.line,))


def same_rows_given(roles: Roles) -> Iterator[Fault]:
    """A trainer evaluates the very rows that it trains on."""
    for call in _trainers(roles):
        keywords = roles.keywords(call)
        by_place = call.node.args[1:3] if call.method == "fit" and roles.uses("LightningModule", "Trainer") else []
        pairs = [(keywords.get(train), keywords.get(evaluation)) for train, evaluation in SIDES]
        for train, evaluation in [*pairs, tuple(by_place) if len(by_place) == 2 else (None, None)]:
            if train is None or evaluation is None or not dotted(_owner(train)):
                continue
            if ast.unparse(train) == ast.unparse(evaluation):
                says = f"{call.method} evaluates the rows that it trains on: {ast.unparse(train)}"
                yield fault("same_data", evaluation.lineno, "certain", says)


def _trainers(roles: Roles) -> list[Call]:
    return [call for call in roles.script.calls if ONE_CALL_TRAINERS.search(call.name)]


def _owner(node: ast.expr) -> ast.expr:
    """Return what a part is taken from, such as `data` of `data["train"]`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node
