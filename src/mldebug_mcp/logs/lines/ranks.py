"""Lines that several ranks of one training print alike: those of the first that printed them are read."""

from __future__ import annotations

from collections import Counter

from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.lines.parsed import Parsed


class Ranks:
    """Knows which rank's lines are read, of each kind of line, and counts those of the others."""

    def __init__(self) -> None:
        self._owner: dict[tuple[str, ...], int] = {}
        self._others: Counter[int] = Counter()

    def is_echo(self, like: Parsed) -> bool:
        """Say whether lines like this one are what another rank prints too."""
        return like.telling and like.rank is not None and self._owner.get(tuple(like.metrics), like.rank) != like.rank

    def echoes(self, parsed: Parsed) -> bool:
        """Take a line that was parsed; return whether it is left out."""
        if not parsed.telling or parsed.rank is None:
            return False
        self._owner.setdefault(tuple(parsed.metrics), parsed.rank)
        if not self.is_echo(parsed):
            return False
        self.leave_out(parsed, 1)
        return True

    def leave_out(self, like: Parsed, count: int) -> None:
        """Count lines of another rank."""
        self._others[like.rank or 0] += count

    def end(self, builder: RunBuilder) -> None:
        """Say what was left out."""
        if self._others:
            builder.note(
                f"left out {sum(self._others.values())} line(s) that {len(self._others)} other rank(s) printed alike: "
                "one rank's records are read"
            )
