"""The commands for clients: `serve`, and `install`, which tells them of the server."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from typing import TYPE_CHECKING, Any

from mldebug_mcp.cli.commands import EXIT_DONE, Commands, verb
from mldebug_mcp.core.errors import InputError

if TYPE_CHECKING:
    from mldebug_mcp.core.access import Access

_TO_A_PERSON = """\
mldebug-mcp: this is the MCP server; it waits for the messages of a client on standard input (Ctrl+C ends it).
  mldebug-mcp diagnose PATH    says what happened in a training run, from its log
  mldebug-mcp install CLIENT   connects a coding agent
  mldebug-mcp help             lists all commands"""
_USUAL_THRESHOLD = gc.get_threshold()


def add_install(verbs: Commands) -> None:
    """Add the command with its options."""
    from mldebug_mcp.clients.entries import CLIENTS

    install = verbs.add_parser(
        "install",
        help="put the MCP server into a client's configuration",
        description="Put the MCP server into a client's configuration, or print what to put there. Other entries and "
        "comments stay, the file as it was is kept as a backup, and a second run finds nothing to do.",
        epilog="The command written is the absolute path of the mldebug-mcp that is running (in its virtual "
        "environment, pipx or uv folder). Clients do not see your PATH. Run through uvx, it is the command of "
        "uvx. Claude Code's user configuration is changed by `claude mcp add`; without `claude` on PATH, .mcp.json in "
        "the working directory is written.",
    )
    install.add_argument("client", metavar="CLIENT", choices=list(CLIENTS), help=", ".join(CLIENTS))
    install.add_argument(
        "--print", action="store_true", help="print the configuration and where it goes; write nothing"
    )
    install.add_argument(
        "--scope",
        choices=("user", "project"),
        help="user: for all your projects; project: in the working directory's own file (default user)",
    )
    install.add_argument(
        "--root",
        metavar="DIR",
        action="append",
        default=[],
        help="a folder that the server may read; repeat for more (default: the folder in which the client starts it)",
    )
    install.add_argument(
        "--python", metavar="PATH", action="append", default=[],
        help="the interpreter or environment that has torch, which a probe runs (default: the active environment, or "
        "the project's .venv, if it has torch; none: no other than the server's own)",
    )  # fmt: skip
    install.add_argument(
        "--skill", action="store_true", help="with claude-code: also the skill, which says when to use which tool"
    )
    install.add_argument("--name", default="mldebug", help="the server's name in the client (default mldebug)")
    install.set_defaults(command=do_install)


def do_install(options: argparse.Namespace) -> int:
    """Write or print a client's configuration."""
    from mldebug_mcp.cli.install import install

    install(options)
    return EXIT_DONE


def add_serve(verbs: Commands) -> None:
    """Add the command with its options."""
    serve = verb(verbs, "serve", "run the MCP server, over stdio (as without a command) or over HTTP")
    serve.set_defaults(command=do_serve)
    add_access(serve)
    serve.add_argument("--http", action="store_true", help="over streamable HTTP, with a bearer token")
    http = serve.add_argument_group("with --http")
    http.add_argument("--host", metavar="ADDRESS", help="the address to listen at (default 127.0.0.1: this machine)")
    http.add_argument("--port", type=int, help="the port (default 8765; 0: any free port)")
    http.add_argument(
        "--token",
        help="the bearer token (default: the variable MLDEBUG_MCP_TOKEN, which other users cannot see; else a new one)",
    )
    http.add_argument(
        "--allowed-host",
        dest="allowed_hosts",
        metavar="NAME",
        action="append",
        help="a name, with or without port, that clients call besides localhost; may be given several times",
    )
    http.add_argument(
        "--allowed-origin",
        dest="allowed_origins",
        metavar="ORIGIN",
        action="append",
        help="an origin of web pages that may call, such as https://example.org; may be given several times",
    )


def add_access(parser: argparse.ArgumentParser) -> None:
    """Add what the server may read and run. No default, so that `serve` does not undo options given before it."""
    parser.add_argument(
        "--root", action="append", metavar="DIR", default=argparse.SUPPRESS, dest="server_roots",
        help="for the server: a folder that it may read; repeatable "
        "(default: MLDEBUG_MCP_ROOTS, else the working directory)",
    )  # fmt: skip
    parser.add_argument(
        "--python", action="append", metavar="PATH", default=argparse.SUPPRESS, dest="server_pythons",
        help="for the server: an interpreter or environment, also outside its roots, that a probe may run, the first "
        "by default; auto: the active one, if it has torch; repeatable",
    )  # fmt: skip


def do_serve(options: argparse.Namespace) -> int:
    """Serve MCP over standard input and output, or over HTTP."""
    from mldebug_mcp.clients.launch import named_pythons
    from mldebug_mcp.core.access import ROOTS_VARIABLE, access_from
    from mldebug_mcp.core.preferences import find_preferences
    from mldebug_mcp.server import serve_stdio

    roots = getattr(options, "server_roots", ())
    if not roots and not os.environ.get(ROOTS_VARIABLE):
        roots = find_preferences().preferences.roots
    access = access_from(roots, named_pythons(getattr(options, "server_pythons", [])))
    # Almost everything is loaded: from here on garbage is collected as usual, but not in what is loaded.
    gc.freeze()
    gc.set_threshold(*_USUAL_THRESHOLD)
    names = ("host", "port", "token", "allowed_hosts", "allowed_origins")
    settings = {name: value for name in names if (value := getattr(options, name, None)) is not None}
    if getattr(options, "http", False):
        return _serve_http(access, settings)
    if settings:
        raise InputError(f"--{next(iter(settings)).replace('_', '-').removesuffix('s')} is for HTTP: add --http")
    if sys.stdin.isatty():
        print(_TO_A_PERSON, file=sys.stderr, flush=True)
    serve_stdio(access)
    return EXIT_DONE


def _serve_http(access: Access, settings: dict[str, Any]) -> int:
    from mldebug_mcp.server import helpers, make_server
    from mldebug_mcp.server.http import listen, serve_http

    listener = listen(**settings)
    lines = [f"MCP at {listener.url}; Ctrl+C ends it", *listener.warnings]
    if listener.made:
        lines.append(f"clients send the header Authorization: Bearer {listener.token} (new at each start, shown once)")
    for line in lines:
        print(f"mldebug-mcp: {line}", file=sys.stderr, flush=True)
    pool = helpers(access)
    return serve_http(make_server(access, pool), listener, pool.close)
