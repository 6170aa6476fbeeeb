"""Which family an optimizer is of: how far one step goes at a learning rate follows from it."""

from __future__ import annotations

from enum import StrEnum

from mldebug_mcp.logs.run import Run


class Family(StrEnum):
    """Optimizers whose steps scale alike.

    ADAM moves each weight by about the rate, whatever the gradient's size; LION by exactly the rate; MUON each matrix
    by the rate; SGD by rate times gradient; SELF_SET finds its own rate.
    """

    ADAM = "Adam"
    SGD = "SGD"
    LION = "Lion"
    MUON = "Muon"
    ADAFACTOR = "Adafactor"
    RMSPROP = "RMSprop"
    ADAGRAD = "Adagrad"
    SELF_SET = "an optimizer that sets its own rate"


_NAMED = (
    (("prodigy", "dadapt", "d adapt", "schedulefree prodigy"), Family.SELF_SET),
    (("muon",), Family.MUON),
    (("lion",), Family.LION),
    (("adafactor",), Family.ADAFACTOR),
    (("rmsprop",), Family.RMSPROP),
    (("adagrad", "sophia"), Family.ADAGRAD),
    (("adam", "lamb"), Family.ADAM),
    (("sgd", "momentum"), Family.SGD),
)
_TRAINERS = frozenset({"hf_trainer_state", "transformers"})
"""Formats of the Trainer, whose default is AdamW: its logs need not name it."""


def family_of(run: Run) -> Family | None:
    """Return the family of a run's optimizer, None where neither the configuration nor the trainer tells."""
    name = (run.facts.optimizer.name or "").lower()
    for parts, family in _NAMED:
        if any(part in name for part in parts):
            return family
    return Family.ADAM if not name and not _TRAINERS.isdisjoint(run.formats) else None
