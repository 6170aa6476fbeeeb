"""What the names of metrics say: a grammar of words instead of a list of spellings."""

from __future__ import annotations

from mldebug_mcp.logs.roles import grammar
from mldebug_mcp.logs.roles.given import are_given, given_role
from mldebug_mcp.logs.roles.grammar import Role, normal
from mldebug_mcp.logs.roles.quantities import Quantity

__all__ = ["Quantity", "Role", "may_mean", "normal", "role_of"]


def role_of(name: str) -> Role | None:
    """Return the role of a metric: what the user said that its name means, else what the name says by itself."""
    return given_role(name) or grammar.role_of(name)


def may_mean(text: str) -> bool:
    """Say whether a name in a text may have a role: where not, that is told in a fraction of the time."""
    return are_given() or grammar.may_mean(text)
