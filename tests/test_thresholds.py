"""Every number that decides what is measured or seen has a name, and says where it is from.

A threshold is a constant of a module that judges. The docstring below it says what it bounds and in what unit, and ends
with its origin after one of the words of `ORIGINS`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = tuple(ROOT / "src" / "mldebug_mcp" / name for name in ("checks",))
ORIGINS = ("Source", "Fitted", "Chosen")
"""A source of `evidence` or a formula; counted on labelled runs; by hand, for the reason given."""
ORIGIN = re.compile(rf"\b({'|'.join(ORIGINS)}): .")
NEUTRAL = frozenset({-1, 0, 0.5, 1, 2, 100})
"""Numbers that decide nothing by themselves: counting, signs, halves, squares and shares in percent."""
UNNAMED = 326
"""Numbers inside of functions: a bound that may only be lowered."""


@dataclass(frozen=True)
class Threshold:
    """A named number and the word that says where it is from; an empty `origin` where its docstring does not say."""

    where: str
    name: str
    origin: str = ""


def modules(folders: tuple[Path, ...]) -> list[Path]:
    return sorted(path for folder in folders for path in folder.rglob("*.py"))


def thresholds(path: Path) -> Iterator[Threshold]:
    """Return the named numbers of a module."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    for statement, below in zip_longest(body, body[1:]):
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
            continue
        if numbers(statement.value) and not isinstance(statement.value, ast.Call):  # an outcome, a pattern
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            origin = ORIGIN.search(docstring(below))
            yield Threshold(path.name, ast.unparse(target), origin[1] if origin else "")


def unnamed(path: Path) -> list[ast.Constant]:
    """Return the numbers without a name in the functions of a module."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    functions = [statement for statement in body if isinstance(statement, ast.FunctionDef)]
    return [number for function in functions for line in function.body for number in numbers(line)]


def docstring(statement: ast.stmt | None) -> str:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return " ".join(str(statement.value.value).split())
    return ""


def numbers(tree: ast.AST) -> list[ast.Constant]:
    """Return the numbers of a piece of source that decide something."""
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, int | float)
        and not isinstance(node.value, bool)
        and node.value not in NEUTRAL
    ]


def test_every_threshold_says_where_it_is_from() -> None:
    found = [threshold for path in modules(FOLDERS) for threshold in thresholds(path)]
    assert len(found) > 500
    bare = [f"{threshold.where}: {threshold.name}" for threshold in found if not threshold.origin]
    assert not bare, f"end the docstring below with `Source: …`, `Fitted: …` or `Chosen: …`: {', '.join(bare)}"


def test_numbers_without_a_name_do_not_become_more() -> None:
    found = {path: unnamed(path) for path in modules(FOLDERS)}
    count = sum(map(len, found.values()))
    last = max(found, key=lambda path: path.stat().st_mtime)
    lines = ", ".join(f"{number.lineno}: {number.value!r}" for number in found[last])
    assert count <= UNNAMED, f"name the number that is new; {last.name}, changed last, has {lines}"


@pytest.mark.parametrize(
    ("source", "named", "nameless"),
    [
        ('MIN_RECORDS = 7\n"""Records. Chosen: fewer are noise."""\n', [("MIN_RECORDS", "Chosen")], 0),
        ("MIN_RECORDS = 7\n", [("MIN_RECORDS", "")], 0),
        ("def present(value: float) -> bool:\n    return value > 7\n", [], 1),
    ],
)
def test_a_number_is_found_by_its_name_or_by_its_lack_of_one(
    tmp_path: Path, source: str, named: list[tuple[str, str]], nameless: int
) -> None:
    module = tmp_path / "question.py"
    module.write_text(source)
    assert [(threshold.name, threshold.origin) for threshold in thresholds(module)] == named
    assert len(unnamed(module)) == nameless
