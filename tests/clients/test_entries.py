"""An entry put into the text of a configuration: what is there stays, comments too."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mldebug_mcp.clients import jsonc
from mldebug_mcp.clients.entries import CLIENTS, Entry, put_entry, snippet
from mldebug_mcp.core.errors import InputError

COMMAND = ("/opt/venv/bin/mldebug-mcp",)


def entry(client: str = "cursor", name: str = "mldebug", command: tuple[str, ...] = COMMAND) -> Entry:
    return Entry(CLIENTS[client], name, command)


def put(text: str, client: str = "cursor", **how: Any) -> str:
    return put_entry(text, entry(client, **how), "FILE", toml_file=client == "codex")


ZED = """\
// Zed settings
{
    "theme": "One Dark", // dark
    "context_servers": {
        /* mine */
        "other": { "command": "other", "args": [] }, // keep me
    },
    "vim_mode": true,
}
"""

CODEX = """\
# my settings
model = "gpt-5"   # the big one

[mcp_servers.docs]  # documentation
command = "docs-server"
env = { KEY = "secret" }

[profiles.fast]
model = "mini"
"""


def test_comments_commas_and_indentation_of_jsonc_stay() -> None:
    after = put(ZED, "zed")
    added = [line for line in after.splitlines() if line not in ZED.splitlines()]
    assert [line for line in ZED.splitlines() if line not in after.splitlines()] == []
    assert added[0] == '        "mldebug": {'
    assert jsonc.read(after, "")["context_servers"]["mldebug"] == {"command": COMMAND[0], "args": []}
    assert after.rstrip().endswith("}")
    assert "keep me\n" in after


def test_comments_and_order_of_toml_stay() -> None:
    after = put(CODEX, "codex")
    assert [line for line in CODEX.splitlines() if line not in after.splitlines()] == []
    assert tomllib.loads(after)["mcp_servers"] == {
        "docs": {"command": "docs-server", "env": {"KEY": "secret"}},
        "mldebug": {"command": COMMAND[0], "args": [], "startup_timeout_sec": 30, "tool_timeout_sec": 600},
    }
    assert tomllib.loads(after)["profiles"] == {"fast": {"model": "mini"}}


@pytest.mark.parametrize("client", sorted(CLIENTS))
def test_a_second_time_changes_nothing(client: str) -> None:
    once = put("", client)
    assert put(once, client) == once
    assert COMMAND[0] in once


@pytest.mark.parametrize("client", sorted(CLIENTS))
def test_what_is_printed_is_a_whole_configuration(client: str) -> None:
    text = snippet(entry(client))
    settings = tomllib.loads(text) if client == "codex" else json.loads(text)
    assert settings[CLIENTS[client].servers]["mldebug"]["command"] == COMMAND[0]


@pytest.mark.parametrize(
    "text",
    ["", "\n", "{}", "{ }\n", "{\n}", "// nothing yet\n", "/* a */ {/* b */} // c", '{"a": 1}', '{ "a": 1, }',
     '{"mcpServers": {}}', '{\n\t"mcpServers": {\n\t\t"a": {}\n\t}\n}', '{\r\n  "a": [1, {"b": null}]\r\n}\r\n',
     '{"mcpServers": {"a": {"command": "x"}}, "z": "}{"}', '{"a": 1 // one\n}', '{\n  "a": 1\n  // the end\n}\n',
     "\ufeff{}"],
)  # fmt: skip
def test_any_layout_takes_the_entry_and_keeps_the_rest(text: str) -> None:
    before = jsonc.read(text.removeprefix("\ufeff"), "")
    written = put(text)
    after = jsonc.read(written.removeprefix("\ufeff"), "")
    assert after["mcpServers"].pop("mldebug")["command"] == COMMAND[0]
    before.setdefault("mcpServers", {})
    assert after == before
    assert written.startswith("\ufeff") == text.startswith("\ufeff")
    if "\r\n" in text:
        assert "\n" not in written.replace("\r\n", "")
    if "\t" in text:
        assert '\n\t\t"mldebug": {\n\t\t\t"command"' in written


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(
    settings=st.dictionaries(st.text(max_size=4) | st.just("mcpServers"), json_values, max_size=4),
    indent=st.sampled_from([None, 1, 2, 4, "\t"]),
)
def test_any_json_keeps_its_other_settings(settings: dict[str, Any], indent: int | str | None) -> None:
    servers = settings.get("mcpServers", {})
    text = json.dumps(settings, indent=indent)
    if not isinstance(servers, dict):
        with pytest.raises(InputError):
            put(text)
        return
    after = json.loads(put(text))
    assert after.pop("mcpServers") == servers | {"mldebug": {"command": COMMAND[0], "args": []}}
    assert after == {key: value for key, value in settings.items() if key != "mcpServers"}


@given(settings=st.dictionaries(st.text(max_size=4) | st.just("mcpServers"), json_values, max_size=3), data=st.data())
def test_comments_between_any_two_tokens_stay(settings: dict[str, Any], data: st.DataObject) -> None:
    settings["mcpServers"] = {"other": settings.get("mcpServers")}
    blanks = st.sampled_from(["", " ", "\n", "\t", "\r\n", "/*c*/", "//c\n", " /* } */\n", '// "\n'])
    tokens = [found[0] for found in jsonc.TOKEN.finditer(json.dumps(settings)) if found.lastgroup != "blank"]
    text = "".join(token + data.draw(blanks) for token in ["", *tokens])
    written = put(text)
    after = jsonc.read(written, "")
    assert after["mcpServers"].pop("mldebug")["command"] == COMMAND[0]
    assert after == settings
    assert re.findall(r"//|/\*", written) == re.findall(r"//|/\*", text.replace(COMMAND[0], "")), "no comment is lost"


def test_a_moved_installation_is_updated_and_settings_of_the_users_stay() -> None:
    old = put(CODEX, "codex", command=("/old/bin/python", "-m", "mldebug_mcp")).replace(
        "tool_timeout_sec = 600", "enabled = false"
    )
    new = tomllib.loads(put(old, "codex"))["mcp_servers"]["mldebug"]
    assert new == {"command": COMMAND[0], "args": [], "startup_timeout_sec": 30, "enabled": False}

    old = '{"mcpServers": {"mldebug": {"command": "mldebug-mcp", "env": {"A": "1"}}}}'
    assert json.loads(put(old))["mcpServers"]["mldebug"] == {"command": COMMAND[0], "env": {"A": "1"}, "args": []}


def test_roots_of_an_earlier_install_stay_until_others_are_given() -> None:
    rooted = Entry(CLIENTS["cursor"], "mldebug", COMMAND, ["/runs"])
    text = put_entry("", rooted, "FILE", toml_file=False)
    assert put(text) == text
    moved = json.loads(put(text, command=("/new/mldebug-mcp",)))["mcpServers"]["mldebug"]
    assert moved == {"command": "/new/mldebug-mcp", "args": ["serve", "--root", "/runs"]}
    other = Entry(CLIENTS["cursor"], "mldebug", COMMAND, ["/other"])
    text = put_entry(text, other, "FILE", toml_file=False)
    assert json.loads(text)["mcpServers"]["mldebug"]["args"] == ["serve", "--root", "/other"]


def test_another_server_of_the_same_name_is_left_alone() -> None:
    text = '{"mcpServers": {"mldebug": {"command": "someone-elses"}}}'
    with pytest.raises(InputError, match=r"another server named mldebug .*--name"):
        put(text)
    assert "ml2" in json.loads(put(text, name="ml2"))["mcpServers"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{\n  "a": 1\n  "b": 2\n}', "FILE:3: a comma or } is missing"),
        ("{\n  a: 1\n}", "FILE:2: this is not JSON"),
        ('{"a": 1', "FILE:1: a comma or } is missing"),
        ('{"a": [1 2]}', "FILE:1: a comma or ] is missing"),
        ('{"a": }', "FILE:1: a value is missing"),
        ('{"a": tru}', "FILE:1: this is not JSON"),
        ('{"a": 1}\n{', "FILE:2: more text after the end"),
        ('{\n"a": 1,\n"a": 2}', "FILE:3: the key 'a' stands here a second time"),
        ('{"a": "\\x"}', "a value is missing"),
        ("[1]", r"FILE holds \[1\] where an object"),
        ('{"mcpServers": [1]}', "mcpServers is not a table of settings"),
        ('{"a": ' + "[" * 5000, "more than 200 levels"),
        ("/* open", "FILE:1: this is not JSON"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        put(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = 1\nb = = 2\n", "not valid TOML .*line 2"),
        ("mcp_servers = 3\n", "mcp_servers is not a table"),
        ("a = " + "[" * 5000, "not valid TOML"),
    ],
)
def test_broken_toml_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        put(text, "codex")


@pytest.mark.parametrize(
    "text",
    [
        "mcp_servers = {}\n",
        "[mcp_servers]\n",
        'mcp_servers.docs.command = "x"\n',
        '[mcp_servers.docs]\ncommand = "x"\n[other]\nb = 1\n[mcp_servers.more]\ncommand = "y"\n',
        "a = nan\nd = 2026-11-20T10:00:00Z\n[[lists]]\nb = 1\n[[lists]]\nb = 2\n",
        'a = "\\r\\n"\r\n[b]\r\nc = 1\r\n',
    ],
)
def test_any_spelling_of_toml_takes_the_entry_or_is_refused_whole(text: str) -> None:
    after = tomllib.loads(put(text, "codex"))
    servers = after.pop("mcp_servers")
    assert servers.pop("mldebug")["command"] == COMMAND[0]
    before = tomllib.loads(text)
    assert servers == before.pop("mcp_servers", {})
    assert repr(after) == repr(before)
