"""`mldebug-mcp install`: put the server into a client's configuration, or print what to put there."""

from __future__ import annotations

import argparse
import difflib
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from mldebug_mcp.clients import jsonc
from mldebug_mcp.clients.entries import CLIENTS, Entry, Scope, is_toml, put_entry, snippet
from mldebug_mcp.clients.launch import (
    copy_skill,
    keep_copy,
    launch_command,
    read_text,
    replace_text,
    skill_folder,
    training_environment,
)
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import clean

NO_PYTHON = "none"
"""What `--python` takes for no interpreter but the server's own."""
_ELSEWHERE = (
    "{client} may start it outside your project; if so, run this again with --root DIR, the folder of your runs"
)


def install(options: argparse.Namespace) -> None:
    """Write or print a client's configuration."""
    pythons = [_python(path) for path in options.python if path != NO_PYTHON] if options.python else None
    found = None if options.python else training_environment(Path.cwd())
    entry = Entry(
        CLIENTS[options.client], _name(options.name), launch_command(), [_root(path) for path in options.root], pythons,
        None if found is None else str(found.absolute()),
    )  # fmt: skip
    if options.skill and options.client != "claude-code":
        raise InputError(
            "--skill is for claude-code; give other clients SKILL.md and the folders that it names by hand"
        )
    claude = shutil.which("claude") if options.client == "claude-code" else None
    # Without the `claude` program its user file is left alone: a running Claude Code may rewrite it at any time.
    scope: Scope = options.scope or ("project" if options.client == "claude-code" and not claude else "user")
    if options.print:
        _print_configuration(entry, scope)
    elif options.client == "claude-code" and scope == "user":
        _add_by_claude(entry, claude)
    else:
        _write(entry, scope)
    if found is not None:
        print(f"a probe runs {found}, which has torch; else --python PATH or --python {NO_PYTHON}", file=sys.stderr)
    if options.skill and not options.print:
        _put_skill(scope)
    elif options.client == "claude-code":
        print("the skill, which says when to use which tool, comes with --skill", file=sys.stderr)


def _put_skill(scope: Scope) -> None:
    folder = skill_folder(scope, Path.cwd())
    copy_skill(folder)
    print(f"the skill is in {folder}")


def _python(python: str) -> str:
    path = Path(python).expanduser().absolute()  # not resolved: an environment's interpreter is a link
    if not path.exists():
        raise InputError(f"--python {python}: no such interpreter or folder; name one that exists")
    if not str(path).isprintable():
        raise InputError(f"--python {python!a}: its name has characters that a configuration cannot hold; use a link")
    return str(path)


def _name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise InputError(
            f"--name {name!r}: only letters, digits, - and _ are allowed, because clients build tool names from it"
        )
    return name


def _root(root: str) -> str:
    folder = Path(root).expanduser().resolve()
    if not folder.is_dir():
        raise InputError(f"--root {root}: no such folder; name one that exists")
    if not str(folder).isprintable():
        raise InputError(
            f"--root {root!a}: this folder's name has characters that a configuration cannot hold; rename it or use a "
            "link"
        )
    return str(folder)


def _print_configuration(entry: Entry, scope: Scope) -> None:
    if entry.client.id == "claude-code" and scope == "user":
        print(shlex.join(_claude_arguments(entry)))
        return
    print(f"for {_file(entry, scope)}:", file=sys.stderr)
    if _may_start_elsewhere(entry, scope):
        print(_ELSEWHERE.format(client=entry.client.title), file=sys.stderr)
    print(snippet(entry), end="")


def _file(entry: Entry, scope: Scope) -> Path:
    path = entry.client.file(scope, Path.cwd())
    if path is None:
        raise InputError(f"{entry.client.title} has no configuration of its own for a project: use --scope user")
    return path


def _write(entry: Entry, scope: Scope) -> None:
    path = _file(entry, scope)
    before = read_text(path)
    after = put_entry(before, entry, str(path), toml_file=is_toml(path))
    if after == before:
        print(f"{path} already has the server {entry.name}: nothing to do")
        return
    backup = replace_text(path, before, after)
    _show_difference(path, before, after)
    print(f"\nwritten to {path}" + (f"; as it was: {backup}" if backup else ", a new file"))
    if scope == "project":
        print("the command in it is for this machine: others who share the file run the same `install` on theirs")
    _tell_what_is_next(entry, scope)


def _show_difference(path: Path, before: str, after: str) -> None:
    # One line of context: the neighbours are other servers' entries, which may hold keys.
    sides = before.splitlines(), after.splitlines()
    for line in difflib.unified_diff(*sides, f"{path} before", f"{path} after", n=1, lineterm=""):
        print(clean(line))


def _tell_what_is_next(entry: Entry, scope: Scope) -> None:
    print(f"next: {entry.client.then.format(name=entry.name)}")
    if _may_start_elsewhere(entry, scope):
        print(_ELSEWHERE.format(client=entry.client.title))


def _may_start_elsewhere(entry: Entry, scope: Scope) -> bool:
    return scope == "user" and not entry.client.in_project and not entry.roots


def _claude_arguments(entry: Entry) -> list[str]:
    fields = entry.fields()
    return ["claude", "mcp", "add", "--scope", "user", entry.name, "--", fields["command"], *fields["args"]]


def _add_by_claude(entry: Entry, claude: str | None) -> None:
    """Change Claude Code's user file through its own program: a running one may rewrite it at any time."""
    if claude is None:
        command = shlex.join(_claude_arguments(entry))
        raise InputError(f"`claude` is not on PATH; run `{command}` where it is, or use --scope project")
    path = entry.client.user_file()
    before = read_text(path)
    after = put_entry(before, entry, str(path), toml_file=False)
    if after == before:
        print(f"{path} already has the server {entry.name}: nothing to do")
        return
    backup = keep_copy(path, before)
    known = jsonc.read(before, str(path)).get(entry.client.servers, {})
    if entry.name in known:
        # What the user has added to the entry, such as variables, must outlive the update.
        merged = jsonc.read(after, str(path))[entry.client.servers][entry.name]
        _run([claude, "mcp", "remove", "--scope", "user", entry.name], backup)
        _run([claude, "mcp", "add-json", "--scope", "user", entry.name, "-"], backup, json.dumps(merged))
    else:
        _run([claude, *_claude_arguments(entry)[1:]], backup)
    _show_difference(path, before, after)
    print(f"\nadded to {path} by `claude mcp add`" + (f"; as it was: {backup}" if backup else ""))
    _tell_what_is_next(entry, "user")


def _run(command: Sequence[str], backup: Path | None, text: str = "") -> None:
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
        problem = (done.stderr or done.stdout).strip() if done.returncode else ""
    except (OSError, subprocess.TimeoutExpired) as error:
        problem = str(error)
    if problem:
        kept = f"; the configuration as it was: {backup}" if backup else ""
        raise InputError(f"{shlex.join(command)} failed: {problem}{kept}")
