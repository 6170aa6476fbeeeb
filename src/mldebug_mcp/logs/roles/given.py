"""Names that the user explains, for what no grammar can know: `L` is the loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

from mldebug_mcp.errors import InputError
from mldebug_mcp.logs.roles.grammar import Role
from mldebug_mcp.logs.roles.quantities import Quantity
from mldebug_mcp.text import shorten

TARGETS: Mapping[str, Role] = {
    name: Role(quantity, phase)
    for quantity in Quantity
    if quantity.is_named
    for phase, name in (("", str(quantity)), ("eval", f"eval_{quantity}"))
    if not phase or quantity.is_result
}
"""What a name can be said to be: canonical names of metrics, those of evaluation with `eval_`."""

_given: ContextVar[Mapping[str, Role]] = ContextVar("given", default=MappingProxyType({}))


def given_role(name: str) -> Role | None:
    """Return what the user said that a name is, None if nothing."""
    return _given.get().get(name)


def are_given() -> bool:
    """Say whether the user said anything of names."""
    return bool(_given.get())


@contextmanager
def given_names(names: Mapping[str, str]) -> Iterator[None]:
    """Read names as the user says, such as {"L": "loss"}, for as long as the block runs.

    Raises:
        InputError: a target is no canonical name.
    """
    wrong = [target for target in names.values() if target not in TARGETS]
    if wrong:
        raise InputError(
            f"{shorten(wrong[0], 60)!r} is no metric that a name can stand for; allowed are {', '.join(TARGETS)}"
        )
    token = _given.set({name: TARGETS[target] for name, target in names.items()})
    try:
        yield
    finally:
        _given.reset(token)
