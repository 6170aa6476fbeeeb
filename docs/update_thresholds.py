"""Write the table of thresholds, docs/thresholds.md: `python docs/update_thresholds.py`.

A threshold is a number that decides what is measured or seen: a constant of a module in `symptoms` or `measure`. The
docstring below it says what it is and in what unit, and ends with where it is from, after one of the words of
`ORIGINS`. The tests fail on a number without one, and if the page differs from the source.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "thresholds.md"
FOLDERS = tuple(ROOT / "src" / "mldebug_mcp" / name for name in ("symptoms", "measure"))
ORIGINS = {
    "Source": "a source of `evidence`, or a formula",
    "Fitted": "counted on labelled runs",
    "Chosen": "by hand, for the reason that stands there",
}
ORIGIN = re.compile(rf"\b(?P<word>{'|'.join(ORIGINS)}): (?P<where>.+)$", re.DOTALL)
NEUTRAL = frozenset({-1, 0, 0.5, 1, 2, 100})
"""Numbers that decide nothing by themselves: counting, signs, halves, squares and shares in percent."""


@dataclass(frozen=True)
class Threshold:
    """A named number, and where it is from; an empty `origin` where its docstring does not say."""

    where: str
    name: str
    value: str
    about: str
    origin: str = ""
    reason: str = ""


def thresholds() -> list[Threshold]:
    """Return all of them, in the order of their modules."""
    return [one for path in modules() for one in _constants(path)]


def modules() -> list[Path]:
    """Return the modules in which they stand."""
    return sorted(path for folder in FOLDERS for path in folder.rglob("*.py"))


def unnamed(path: Path) -> list[str]:
    """Return the numbers in the functions of a module that have no name: each with its line."""
    functions = [one for one in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(one, ast.FunctionDef)]
    return [
        f"{path.relative_to(ROOT)}:{number.lineno}: {number.value!r}"
        for function in functions
        for line in function.body
        for number in _numbers(line)
    ]


def _constants(path: Path) -> Iterator[Threshold]:
    body = ast.parse(path.read_text(encoding="utf-8")).body
    for statement, below in zip_longest(body, body[1:]):
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            if _numbers(statement.value) and not isinstance(statement.value, ast.Call):  # an outcome, a pattern
                name, value = ast.unparse(target), ast.unparse(statement.value)
                yield _threshold(str(path.relative_to(ROOT / "src" / "mldebug_mcp")), name, value, _docstring(below))


def _threshold(where: str, name: str, value: str, doc: str) -> Threshold:
    origin = ORIGIN.search(doc)
    if origin is None:
        return Threshold(where, name, value, doc)
    return Threshold(where, name, value, doc[: origin.start()].strip(), origin["word"], origin["where"])


def _docstring(statement: ast.stmt | None) -> str:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return " ".join(str(statement.value.value).split())
    return ""


def _numbers(tree: ast.AST) -> list[ast.Constant]:
    """Return the numbers of a piece of source that decide something."""
    return [
        one
        for one in ast.walk(tree)
        if isinstance(one, ast.Constant)
        and isinstance(one.value, int | float)
        and not isinstance(one.value, bool)
        and one.value not in NEUTRAL
    ]


def page(ones: Sequence[Threshold]) -> str:
    """Return the page."""
    counted = Counter(one.origin for one in ones)
    rows = [f"| {word} | {means} | {counted[word]} |" for word, means in ORIGINS.items()]
    table = [_row(one) for one in ones]
    return "\n".join(
        [
            "# Thresholds",
            "",
            "Every number that decides what is measured or seen, with where it is from. Written by",
            "`python docs/update_thresholds.py`.",
            "",
            "| origin | what that means | numbers |",
            "| --- | --- | --- |",
            *rows,
            "",
            "| module | name | value | what it is | where it is from |",
            "| --- | --- | --- | --- | --- |",
            *table,
            "",
        ]
    )


def _row(one: Threshold) -> str:
    return f"| `{one.where}` | `{one.name}` | `{_short(one.value)}` | {_cell(one.about)} | {_origin(one)} |"


def _origin(one: Threshold) -> str:
    return f"{one.origin}: {_cell(one.reason)}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _short(value: str, longest: int = 60) -> str:
    return _cell(value if len(value) <= longest else f"{value[:longest]}…")


if __name__ == "__main__":
    PAGE.write_text(page(thresholds()), encoding="utf-8")
