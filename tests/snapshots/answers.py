"""Each kind of answer in each form, through the doors by which users get it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import anyio
from mcp import Client
from mcp_types import TextContent

from mldebug_mcp.cli import main
from mldebug_mcp.server import make_server
from tests.snapshots.outline import outline
from tests.snapshots.runs import KINDS, Asked

PAGE = "page.html"
_MOVES = (
    (re.compile(r"[+-]\d+\.\d bits"), "±N bits"),
    (re.compile(r"(?:[<>] ?)?\d+%"), "N%"),
    (re.compile(r'("(?:probability|bits)": )[\d.e-]+'), r"\1N"),
    (
        re.compile(r"almost certain|(?<![.\w])(highly )?likely|about even|(highly )?unlikely(?! causes)|remote"),
        "so likely",
    ),
    (re.compile(r"\d+ of \d+ symptoms"), "N of N symptoms"),
    (re.compile(r"\d+ (unlikely|other) causes"), r"N \1 causes"),
)
"""What every fit and every new symptom moves: how likely causes are, and how many there are."""
_TITLE = "What it may be"
_CAUSE = re.compile(r"^ +N%  \w+|^    N% |^    < ?N%")
_REASONS = re.compile(r"(for|against)( it)?: .*")
"""Lines with a cause, in the terminal and on a page; and what is said for and against it."""


def answers(kind: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each form and the answer in it."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), patch.dict(os.environ, {"COLUMNS": "100"}):
        asked = KINDS[kind]()
        yield "agent.txt", _still(anyio.run(_agent, asked))
        yield "terminal.txt", _still(_command(asked))
        page = _command(asked, "--html", PAGE) if kind == "refused" else _page(asked)
        yield "page.txt", _still(page)


async def _agent(asked: Asked) -> str:
    arguments = {"path": asked.path} | ({"reference": asked.reference} if asked.reference else {})
    async with Client(make_server()) as client:
        result = await client.call_tool("diagnose_run", arguments)
    (text,) = (one.text for one in result.content if isinstance(one, TextContent))
    return text + "\n" if result.is_error else _lines(json.loads(text))


def _lines(answer: dict[str, Any]) -> str:
    leading, *others = answer["hypotheses"]
    leading = {name: value for name, value in leading.items() if name not in ("because", "against")}
    answer["hypotheses"] = [leading, *(["…"] if others else [])]
    return json.dumps(answer, indent=1, ensure_ascii=False) + "\n"


def _command(asked: Asked, *more: str) -> str:
    out, err = io.StringIO(), io.StringIO()
    reference = ["--reference", asked.reference] if asked.reference else []
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["diagnose", asked.path, *reference, *more])
    return f"{out.getvalue()}{err.getvalue()}exit code {code}\n"


def _page(asked: Asked) -> str:
    _command(asked, "--html", PAGE)
    return outline(Path(PAGE).read_text(encoding="utf-8"))


def _still(text: str) -> str:
    for moves, still in _MOVES:
        text = moves.sub(still, text)
    return "".join(line.rstrip() + "\n" for line in _leading_only(text.splitlines()))


def _leading_only(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines without the causes behind the first and what speaks for them: every fit orders them anew."""
    causes = None
    for line in lines:
        if line.strip().startswith(_TITLE):
            causes = 0
        elif causes is not None and (line.startswith("<h2>") or (line and line[0] not in " <")):
            causes = None
        elif causes is not None and _CAUSE.match(line):
            causes += 1
        if causes is None or causes < 2:
            yield _REASONS.sub(r"\1\2: …", line) if causes else line
        elif causes == 2 and _CAUSE.match(line):
            yield "    …"
