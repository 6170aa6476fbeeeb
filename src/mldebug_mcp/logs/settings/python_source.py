"""Settings in Python source: a configuration that is one, as MMEngine's, or a call that holds them.

Nothing is run: the source is parsed, and what stands there as a literal is taken.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

LEAST_ARGUMENTS = 4
"""Named arguments that make a call at the top of a file one of settings."""
MAX_DEPTH = 20
MAX_CHARACTERS = 512 * 1024
"""Of a source: a megabyte of numbers takes three seconds and half a gigabyte to parse. Settings take some kilobytes."""


def settings_in_source(text: str) -> dict[str, object]:
    """Return what the top of a Python file assigns as literals, and the named arguments of the calls there.

    Raises:
        ValueError: it is no Python, or very much of it.
    """
    return dict(pair for statement in _statements(text) for pair in _told(statement))


def only_assigns(text: str) -> bool:
    """Say whether a Python file does nothing but import and assign, as a configuration does and a program does not."""
    try:
        statements = _statements(text)
    except ValueError:
        return False
    return all(
        isinstance(one, ast.Import | ast.ImportFrom | ast.Assign | ast.AnnAssign)
        or (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
        for one in statements
    )


def _statements(text: str) -> list[ast.stmt]:
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"{len(text):,} characters of Python are too many for settings")
    try:
        return ast.parse(text).body
    except (SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError(f"no Python source ({type(error).__name__})") from None


def _told(statement: ast.stmt) -> Iterator[tuple[str, object]]:
    if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr) or statement.value is None:
        return
    value = _literal(statement.value, 0)
    if value is not None and not isinstance(statement, ast.Expr):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        yield from ((target.id, value) for target in targets if isinstance(target, ast.Name))
    elif isinstance(statement.value, ast.Call):
        arguments = _arguments(statement.value, 0)
        if len(arguments) >= LEAST_ARGUMENTS:
            yield from arguments.items()


def _literal(node: ast.expr, depth: int) -> object:
    """Return the value of a literal, with calls of `dict` in it; None for what is no literal."""
    if depth > MAX_DEPTH:
        return None
    if isinstance(node, ast.Call):
        is_dict = isinstance(node.func, ast.Name) and node.func.id == "dict" and not node.args
        return _arguments(node, depth) if is_dict else None
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {key.value: _literal(value, depth + 1) for key, value in pairs if isinstance(key, ast.Constant)}
    if isinstance(node, ast.List | ast.Tuple):
        return [_literal(one, depth + 1) for one in node.elts]
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError):
        return None


def _arguments(node: ast.Call, depth: int) -> Mapping[str, object]:
    values = {one.arg: _literal(one.value, depth + 1) for one in node.keywords if one.arg}
    return {name: value for name, value in values.items() if value is not None}
