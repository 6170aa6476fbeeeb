"""The commands on what is known: `search`, `explain`, `error`, and `evidence`, which checks the quotes."""

from __future__ import annotations

import argparse
import sys

from mldebug_mcp.cli.commands import (
    EXIT_DONE,
    EXIT_FOUND,
    Commands,
    add_json,
    count,
    print_answer,
    shown_progress,
    verb,
)


def add_knowledge(verbs: Commands) -> None:
    """Add all four."""
    _add_search(verbs)
    explain = verb(verbs, "explain", "print a symptom, cause, quote or source, whole")
    explain.add_argument("id", help="an id from an answer, such as loss_spike or lr_too_high")
    add_json(explain)
    explain.set_defaults(command=do_explain)
    error = verb(verbs, "error", "say what an error message means and what to do")
    error.add_argument("text", nargs="+", help="the message, a log file, or - for standard input")
    add_json(error)
    error.set_defaults(command=do_error)
    _add_evidence(verbs)


def _add_search(verbs: Commands) -> None:
    search = verb(verbs, "search", "find what practitioners wrote, verbatim and cited")
    search.add_argument("query", nargs="+", help="a question or keywords")
    search.add_argument(
        "--domain", help="only this domain: general, llm, rl, vision, diffusion, vlm, distributed, memory"
    )
    search.add_argument("--topic", help="only this topic, such as loss_spike")
    search.add_argument(
        "--kind",
        choices=["quote", "cause", "symptom", "error", "menu", "any"],
        default="any",
        help="only entries of this kind (default any)",
    )
    search.add_argument("--limit", type=count, default=5, help="at most this many quotes (default 5)")
    add_json(search)
    search.set_defaults(command=do_search)


def do_search(options: argparse.Namespace) -> int:
    """Search the catalogue."""
    from mldebug_mcp.judge.search import search_folklore

    answer = search_folklore(" ".join(options.query), options.domain, options.topic, options.kind, options.limit)
    print_answer(answer, options, "knowledge_terminal.print_search")
    return EXIT_DONE


def do_explain(options: argparse.Namespace) -> int:
    """Explain an id."""
    from mldebug_mcp.judge.search import explain

    answer = explain(options.id)
    print_answer(answer, options, "knowledge_terminal.print_explanation")
    return EXIT_DONE


def do_error(options: argparse.Namespace) -> int:
    """Explain an error message."""
    from mldebug_mcp.judge.explain_error import explain_error, explain_lines

    text = " ".join(options.text)
    with shown_progress():
        answer = explain_lines(line.rstrip("\r\n") for line in sys.stdin) if text == "-" else explain_error(text)
    print_answer(answer, options, "knowledge_terminal.print_error")
    return EXIT_DONE


def _add_evidence(verbs: Commands) -> None:
    evidence = verb(verbs, "evidence", "check the records that all quotes come from")
    actions = evidence.add_subparsers(title="actions", metavar="ACTION", required=True)
    verify = actions.add_parser(
        "verify", help="check the records against each other, or each quote against its source; changes nothing"
    )
    verify.add_argument(
        "--copies", metavar="DIR", help="a folder with copies of the originals, read instead of the web"
    )
    network = verify.add_mutually_exclusive_group()
    network.add_argument("--online", action="store_true", help="fetch each source, and look for the quote in it")
    network.add_argument("--offline", action="store_true", help="only check the records against each other (default)")
    verify.add_argument("--check", action="store_true", help="exit with 1 if a quote changed or the records disagree")
    add_json(verify)
    verify.set_defaults(command=do_verify)


def do_verify(options: argparse.Namespace) -> int:
    """Verify the evidence."""
    from pathlib import Path

    from mldebug_mcp.knowledge.verification import verify

    with shown_progress():
        copies = Path(options.copies) if options.copies else None
        answer = verify(copies, offline=options.offline or (copies is None and not options.online))
    print_answer(answer, options, "knowledge_terminal.print_evidence")
    return EXIT_FOUND if options.check and (answer.changed or answer.problems) else EXIT_DONE
