"""The grammar of names: what the names of metrics and the keys of settings mean.

`lexicon` holds the words, `grammar` reads a name, `metrics` answers what readers ask of names,
`settings` reads keys. `conventions` gives the columns of a log their canonical names.
"""

from __future__ import annotations

from mldebug_mcp.logs.names import grammar
from mldebug_mcp.logs.names.grammar import Role, are_given, given_role, normal
from mldebug_mcp.logs.names.quantities import Quantity

__all__ = ["Quantity", "Role", "may_mean", "normal", "role_of"]


def role_of(name: str) -> Role | None:
    """Return the role of a metric: the user's meaning of its name, else the name's own."""
    return given_role(name) or grammar.role_of(name)


def may_mean(text: str) -> bool:
    """Say whether a name in a text may have a role: a negative answer takes a fraction of the time."""
    return are_given() or grammar.may_mean(text)
