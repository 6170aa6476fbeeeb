"""Which rank is behind, from the numbers that NCCL's watchdog prints: each process group counts its collectives."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

_WAITED = re.compile(
    r"(?:\[PG (?:ID )?(?P<group>[\w ()]{1,60}?) )?\[?Rank (?P<rank>\d{1,6})\].{0,160}?SeqNum=(?P<number>\d{1,12})"
)
"""A rank's report; newer versions name the process group before it."""
MAX_NAMED = 8


def behind(texts: Iterable[str]) -> str | None:
    """Return which ranks wait in an earlier collective than the others of their group, or None if none does.

    Ranks of one group make the same collectives in the same order, so one that waits at a lower number took another
    path, such as one batch fewer or a branch of its own (PyTorch's flight recorder compares the same numbers).
    """
    reached: dict[str, dict[str, int]] = defaultdict(dict)
    for text in texts:
        for found in _WAITED.finditer(text):
            ranks, rank = reached[found["group"] or ""], found["rank"]
            ranks[rank] = max(int(found["number"]), ranks.get(rank, 0))
    for group, ranks in reached.items():
        least, most = min(ranks.values()), max(ranks.values())
        if least < most:
            late = sorted((rank for rank, number in ranks.items() if number == least), key=int)
            named = ", ".join(late[:MAX_NAMED])
            they = "they" if group else "if they are of one process group, they"
            return (
                f"rank {named} waits in collective {least}, others as far as {most}: {they} do not make the same "
                "collectives (uneven batches, or a branch that only some ranks take)"
            )
    return None
