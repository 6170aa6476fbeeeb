"""YAML that is small and stands for much."""

from __future__ import annotations


def nested_merges(levels: int, a_level: int = 9) -> str:
    """Each level merges the one below it `a_level` times."""
    lines = ["a0: &a0 {x: 1}"]
    for level in range(1, levels + 1):
        merged = ", ".join([f"*a{level - 1}"] * a_level)
        lines.append(f"a{level}: &a{level} {{<<: [{merged}]}}")
    return "\n".join(lines)


def aliases(levels: int, a_level: int = 9) -> str:
    """The classic: a list of lists of lists of one."""
    lines = (f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * a_level)}]" for level in range(1, levels + 1))
    return "\n".join(["a0: &a0 [x]", *lines])


TEXTS = {
    "merges, 431 bytes and 34 s": nested_merges(7),
    "merges that never end": nested_merges(12),
    "aliases": aliases(12),
    "an alias inside of itself": "a: &a [*a]",
    "a merge of itself": "a: &a {<<: *a}",
    "deep lists": "a: " + "[" * 100_000,
    "a number in base 60": "a: " + ":".join(["1"] * 100_000),
    "a number in base 60, tagged": "a: !!int " + "'" + ":".join(["1"] * 100_000) + "'",
    "many values": "a: [" + "1, " * 150_000 + "1]",
    "a bool that is none": "a: !!bool foo",
    "an int of nothing": "a: !!int ''",
    "a time that is none": "a: !!timestamp foo",
    "a list as key": "? [a, b]\n: 1",
    "a call": "a: !!python/object/apply:os.system ['true']",
}
