"""YAML that stands for a little more than is read of it: PyYAML alone reads each text, or raises an error, at once."""

from __future__ import annotations

from mldebug_mcp.core.config_files import MAX_CONFIG_DEPTH, MAX_DIGITS


def nested_merges(levels: int, a_level: int = 9) -> str:
    """Each level merges the one below it `a_level` times."""
    lines = ["a0: &a0 {x: 1}"]
    for level in range(1, levels + 1):
        merged = ", ".join([f"*a{level - 1}"] * a_level)
        lines.append(f"a{level}: &a{level} {{<<: [{merged}]}}")
    return "\n".join(lines)


def aliases(levels: int, a_level: int = 9) -> str:
    """Each level is a list that names the one below it `a_level` times."""
    lines = (f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * a_level)}]" for level in range(1, levels + 1))
    return "\n".join(["a0: &a0 [x]", *lines])


LONG_NUMBER = ":".join(["1"] * (MAX_DIGITS // 2 + 1))
TEXTS = {
    "merges": nested_merges(4, 12),
    "aliases": aliases(5),
    "an alias inside of itself": "a: &a [*a]",
    "a merge of itself": "a: &a {<<: *a}",
    "deep lists": "a: " + "[" * (MAX_CONFIG_DEPTH + 1) + "]" * (MAX_CONFIG_DEPTH + 1),
    "a number in base 60": f"a: {LONG_NUMBER}",
    "a number in base 60, tagged": f"a: !!int '{LONG_NUMBER}'",
    "a bool that is none": "a: !!bool foo",
    "an int of nothing": "a: !!int ''",
    "a time that is none": "a: !!timestamp foo",
    "a list as key": "? [a, b]\n: 1",
    "a call": "a: !!python/object/apply:os.system ['true']",
}
