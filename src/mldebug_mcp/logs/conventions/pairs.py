"""Metrics of pairs of answers under names that mean something else in the training of a policy."""

from __future__ import annotations

from mldebug_mcp.logs.columns import Columns
from mldebug_mcp.logs.roles import Quantity, Role, role_of
from mldebug_mcp.logs.roles.quantities import PAIRS

_OF_POLICIES = frozenset({
    Quantity.REWARD, Quantity.REWARD_SPREAD, Quantity.KL, Quantity.APPROXIMATE_KL, Quantity.ENTROPY,
    Quantity.COMPLETION_LENGTH, Quantity.POLICY_LOSS, Quantity.VALUE_LOSS, Quantity.EPISODE_LENGTH,
})  # fmt: skip
"""What is logged where a policy is rewarded: an accuracy of the reward is then one of its rewards."""


def pairs(columns: Columns) -> str | None:
    """`reward_accuracy` is how often the chosen answer has the higher reward, and `train-margin` by how much."""
    roles = {name: role for name in columns if (role := role_of(name)) is not None}
    quantities = {role.quantity for role in roles.values() if role.is_whole}
    if PAIRS.isdisjoint(quantities) and not _OF_POLICIES.isdisjoint(quantities):
        return None
    told = []
    for old, role in roles.items():
        new = _name(role)
        if new and new not in columns:
            columns[new] = columns.pop(old)
            told.append(f"{old!r} is read as {new}, of pairs of answers")
    return "; ".join(told) or None


def _name(role: Role) -> str:
    """Return the name that a metric of pairs has elsewhere, "" if it is none or has it."""
    phase = "eval_" if role.is_evaluation else ""
    if role.quantity is Quantity.ACCURACY and role.part == "reward" and role.is_level:
        return f"{phase}{Quantity.REWARD_ACCURACY}"
    return f"{phase}{Quantity.MARGIN}" if role.quantity is Quantity.MARGIN and role.is_whole else ""
