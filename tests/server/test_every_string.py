"""No field goes round the door: every string of every answer, with a payload in every place from which text can come.

What may be seen is judged here anew, from Unicode's categories, and not by the code that cleans.
"""

from __future__ import annotations

import contextlib
import io
import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mldebug_mcp.cli import main
from mldebug_mcp.models.base import Model
from tests.server.payloads import FILES, HIDDEN, LONG, MARK, PAYLOAD, Case
from tests.stdio_process import Process, started

IGNORABLE = {0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0}
IGNORABLE |= {*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0000, 0xE1000)}
OURS = {"fix", "fixes", "advice", "action", "confirms", "refutes", "how", "why", "credence", "cause", "symptom"}
"""Fields that an agent takes for our own words."""
LONGEST = 50_000


@pytest.fixture(scope="module")
def server() -> Iterator[Process]:
    with started() as running:
        yield running


def strings(value: object, field: str = "") -> Iterator[tuple[str, str]]:
    """Yield every string with the field that it stands in, keys among them."""
    if isinstance(value, str):
        yield field, value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield f"{field} (key)", key
            yield from strings(one, field if field in OURS else key)
    elif isinstance(value, list):
        for one in value:
            yield from strings(one, field)


def is_hidden(character: str) -> bool:
    if character in "\n\t":
        return False
    kind = unicodedata.category(character)
    return kind[0] == "C" or kind in ("Zl", "Zp") or ord(character) in IGNORABLE


def assert_safe(answer: object, longest: int = LONGEST) -> None:
    for field, text in strings(answer):
        assert not [hex(ord(one)) for one in text if is_hidden(one)], (field, text[:300])
        assert len(text) <= longest, field


def asked(server: Process, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Call a tool, judge all of what comes back, and return its structured content."""
    answer = server.ask("tools/call", name=tool, arguments=arguments)
    # The text of an answer is all of it, as JSON.
    assert_safe({name: one for name, one in answer.items() if name != "id"}, longest=20 * LONGEST)
    result = answer.get("result", {})
    assert_safe(result.get("structuredContent"))
    if "structuredContent" not in result:
        assert len(json.dumps(answer, ensure_ascii=False)) < 2300  # a line, and what is round it
        return {}
    content: dict[str, Any] = result["structuredContent"]
    assert json.loads(result["content"][0]["text"]) == content
    return content


def test_the_payload_holds_characters_of_every_kind_that_is_judged() -> None:
    assert {unicodedata.category(one) for one in HIDDEN if is_hidden(one)} >= {"Cc", "Cf", "Co", "Cn", "Mn", "Lo", "Zl"}


@pytest.mark.parametrize("files", FILES, ids=[one.__name__ for one in FILES])
def test_every_string_of_every_answer_is_safe_with_a_payload_in_every_file(
    server: Process, files: Any, tmp_path: Path
) -> None:
    cases: list[Case] = files(tmp_path)
    told = 0
    for tool, arguments in cases:
        for detail in ("concise", "full"):
            content = asked(server, tool, {**arguments, "detail": detail})
            told += MARK in json.dumps(content)
            for field, text in strings({name: one for name, one in content.items() if name != "next_step"}):
                assert field not in OURS or MARK not in text, (tool, arguments, field, text[:300])
    assert told or files.__name__ == "code"


def arguments_of(tool: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the arguments of a tool with a payload in each, in turn, and in the name of one that it does not have."""
    required = dict.fromkeys(tool["inputSchema"].get("required", ()), LONG)
    for name in (*tool["inputSchema"]["properties"], PAYLOAD, LONG):
        for value in (PAYLOAD, LONG, [PAYLOAD], {PAYLOAD: PAYLOAD}, {"lr_too_high.1": PAYLOAD}):
            yield {**required, name: value}


def test_every_string_of_every_answer_is_safe_with_a_payload_in_every_argument(server: Process) -> None:
    tools = server.ask("tools/list")["result"]["tools"]
    assert len(tools) > 8
    for tool in tools:
        for arguments in arguments_of(tool):
            asked(server, tool["name"], arguments)


@pytest.mark.parametrize("text", [PAYLOAD, LONG], ids=["hidden", "long"])
def test_every_other_request_that_carries_a_payload_is_answered_safely_and_in_short(server: Process, text: str) -> None:
    argument = {"name": text, "value": text}
    for method, params in (
        ("tools/call", {"name": text, "arguments": {}}),
        (text, {}),
        ("resources/read", {"uri": text}),
        ("resources/read", {"uri": f"mldebug://cause/{text}"}),
        ("prompts/get", {"name": text}),
        ("prompts/get", {"name": "debug_training_run", "arguments": {text: text}}),
        (
            "completion/complete",
            {"ref": {"type": "ref/resource", "uri": text}, "argument": argument},
        ),
        ("skills/get", {"uri": text}),
    ):
        answer = server.ask(method, **params)
        assert_safe({name: one for name, one in answer.items() if name != "id"})
        assert len(json.dumps(answer, ensure_ascii=False)) < 5000
    prompt = server.ask("prompts/get", name="debug_training_run", arguments={"path": text})
    assert_safe(prompt["result"])


COMMANDS = {
    "diagnose_run": ["diagnose", "path"],
    "inspect_batch": ["batch", "path"],
    "rows_at": ["rows", "path"],
    "check_memory": ["memory", "path"],
    "estimate_memory": ["estimate", "config"],
    "explain_error": ["error", "text"],
}


@pytest.mark.parametrize("files", FILES[:3], ids=[one.__name__ for one in FILES[:3]])
def test_the_terminal_and_the_pages_show_no_hidden_character(
    files: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    page = tmp_path / "page.html"
    for tool, arguments in files(tmp_path):
        if tool not in COMMANDS or "\n" in arguments.get("text", "") or len(str(arguments)) > 20_000:
            continue
        command, named = COMMANDS[tool]
        options = [f"--{one}={value}" for one, value in arguments.items() if one != named]
        pages = [[f"--html={page}"]] if command in ("diagnose", "batch", "memory") else []
        for more in ([], ["--json"], *pages):
            shown = io.StringIO()
            with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
                main([command, arguments[named], *options, *more])
            assert_safe(shown.getvalue()[:LONGEST])
        if page.exists():
            assert not [hex(ord(one)) for one in page.read_text(encoding="utf-8") if is_hidden(one)]
            page.unlink()


def subclasses(kind: type[Model]) -> Iterator[type[Model]]:
    for one in kind.__subclasses__():
        yield one
        yield from subclasses(one)


def test_text_that_is_legitimate_stays() -> None:
    from mldebug_mcp.models import Finding

    words = "naïve – Übung · 日本語 · 한국어 · العربية · עברית · हिन्दी · ไทย · 👍🏽 ✓ √2 ≤ ⟦x⟧\n\tnext"
    assert Finding(symptom="s", state="present", summary=words).summary == words


def test_no_model_and_no_copy_of_one_keeps_what_it_was_given_unseen() -> None:
    from mldebug_mcp.models.data import BatchSummary, RowView

    row = RowView(row=0, side=LONG, tokens=1, text=LONG * 4)
    assert_safe(row.model_dump(mode="json"))
    assert len(row.side) == 200
    copy = BatchSummary(path=PAYLOAD, formats=(PAYLOAD,), purpose=PAYLOAD).model_copy(update={"columns": [PAYLOAD]})
    assert_safe(copy.model_dump(mode="json"))
    assert MARK in copy.columns[0]
    overridden = [one for one in subclasses(Model) if "model_copy" in vars(one) or "_text_is_safe" in vars(one)]
    assert overridden == []
