"""Does a loss of preferences make what is preferred more likely, and not the other?"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.roles import Roles

OF_SCORES = re.compile(r"sim|score|logit|cos|reward|logp|rank", re.IGNORECASE)
"""Names of what is higher for what is preferred; a distance is lower."""
NEAR = 3
"""Lines between two terms of one loss. Chosen: a statement over several lines."""


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
            abs(line - other) <= NEAR and role != turned for other, _, turned, _ in margins
        )  # labels are smoothed
        grows = name in ("softplus", "relu", "clamp", "clamp_min")
        text = "\n".join(roles.script.text.splitlines()[line - 1 : line + 1])
        of_scores = name in ("softplus", "logsigmoid", "log_sigmoid") or bool(OF_SCORES.search(text))
        if both or not of_scores or name == "sigmoid" or grows != (role == "preferred less other"):
            continue
        says = f"{name}() is given the score of what is {role.replace(' less ', ' less that of the ')}"
        yield fault("margin_sign", line, "likely", f"{says}: training prefers the wrong one", lines=(made_at,))
