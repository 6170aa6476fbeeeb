"""Names that frameworks and practitioners give to metrics, each with what a practitioner takes it for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mldebug_mcp.logs.names import Role, role_of

NAMES = Path(__file__).with_name("metric_names.txt")


def expected() -> Iterator[tuple[str, str]]:
    """Yield names and what they are."""
    for line in NAMES.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            meant, _, names = line.partition(" <- ")
            yield from ((name, meant) for name in names.split(" | "))


def told(role: Role | None) -> str:
    """Return a role in the words of the list."""
    if role is None:
        return "nothing"
    phase, statistic = "eval" if role.is_evaluation else "", "" if role.is_level else role.statistic
    return " ".join(filter(None, [phase, statistic, role.quantity.name.lower(), role.part and f"of {role.part}"]))


def test_names_of_many_frameworks_are_read_as_a_practitioner_reads_them() -> None:
    names = list(expected())
    assert [(name, meant, told(role_of(name))) for name, meant in names if told(role_of(name)) != meant] == []
    assert len(names) >= 1_800
    assert len(dict(names)) == len(names)
