"""What each command does: call the library, print the answer, return the exit code.

Each imports what it needs when it runs, so that the server starts without loading reports.
"""

from __future__ import annotations

import argparse
import gc
import math
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING, Any

from mldebug_mcp.cli.progress import show_line, shown_progress
from mldebug_mcp.errors import InputError
from mldebug_mcp.text import LONGEST_ERROR, shorten

if TYPE_CHECKING:
    from mldebug_mcp.access import Access
    from mldebug_mcp.cli.alarm import Alarm
    from mldebug_mcp.logs import Run
    from mldebug_mcp.models import Diagnosis, Model

DONE, FOUND, UNUSABLE = 0, 1, 2
_TO_A_PERSON = """\
mldebug-mcp: this is the MCP server; it waits for the messages of a client on standard input (Ctrl+C ends it).
  mldebug-mcp diagnose PATH    says what happened in a training run, from its log
  mldebug-mcp install CLIENT   connects a coding agent
  mldebug-mcp help             lists all commands"""
_USUAL_THRESHOLD = gc.get_threshold()


def do_diagnose(options: argparse.Namespace) -> int:
    """Diagnose a run, or several in a line each."""
    from mldebug_mcp.cli.several import matching

    paths = matching(options.paths)
    if len(paths) > 1 or options.short:
        return _diagnose_several(paths, options)
    answer, run, reference = _diagnosed(paths[0], options)
    if options.png:
        from mldebug_mcp.report.diagnosis_plot import plot_diagnosis

        plot_diagnosis(answer, run, options.png, reference)
    if options.html:
        from mldebug_mcp.report.diagnosis_html import write_diagnosis_html

        write_diagnosis_html(answer, run, options.html, reference)
    if options.json:
        _print_json(answer)
    else:
        from mldebug_mcp.report.console import console_for
        from mldebug_mcp.report.diagnosis_screen import print_screen
        from mldebug_mcp.report.diagnosis_terminal import print_diagnosis

        (print_diagnosis if options.long else print_screen)(console_for(), answer, run, bits=options.bits)
    return FOUND if options.check and answer.hypotheses[0].cause != "healthy" else DONE


def _diagnose_several(paths: Sequence[str], options: argparse.Namespace) -> int:
    """Print a line for each run; one that cannot be read is told on standard error, and the others go on."""
    if options.html or options.png or "-" in paths:
        told = "--html" if options.html else "--png" if options.png else "- (standard input)"
        raise InputError(f"{told} takes one run at a time; name one, without --short")
    from mldebug_mcp.report.diagnosis_short import short_line

    codes = {DONE}
    for path in paths:
        try:
            answer, _, _ = _diagnosed(path, options)
        except InputError as error:
            print(f"mldebug-mcp: {shorten(str(error), LONGEST_ERROR)}", file=sys.stderr)
            codes.add(UNUSABLE)
            continue
        print(answer.to_json() if options.json else short_line(answer), flush=True)
        codes.add(FOUND if options.check and answer.hypotheses[0].cause != "healthy" else DONE)
    return max(codes)


def _diagnosed(path: str, options: argparse.Namespace) -> tuple[Diagnosis, Run, Run | None]:
    """Return the diagnosis of a run, the run, and the one that it was compared with."""
    from mldebug_mcp.logs import read_run

    with shown_progress():
        with _preparing_diagnosis():
            run = _run_of(path, options)
        from mldebug_mcp.diagnose import diagnose

        reference = read_run(options.reference) if options.reference else None
        return diagnose(run, reference, outcomes=dict(options.outcomes)), run, reference


def _run_of(path: str, options: argparse.Namespace) -> Run:
    """Read the run that is to be diagnosed: a path, or `-` for standard input."""
    from mldebug_mcp.logs import read_run

    if path != "-":
        return read_run(path, options.config, options.run, options.names)
    from mldebug_mcp.cli.standard_input import STANDARD_INPUT, kept_input

    with kept_input() as kept:
        return replace(read_run(kept, options.config, options.run, options.names), path=STANDARD_INPUT)


@contextmanager
def _preparing_diagnosis() -> Iterator[None]:
    """Load what a diagnosis needs in a thread while the log is read inside.

    Compiled code parses a large log, so Python is free meanwhile. The thread starts at the reader's first checkpoint,
    when the reader has loaded what it needs itself.
    """
    from mldebug_mcp.progress import listening

    thread = Thread(target=_prepare_diagnosis)
    with listening(lambda _: None if thread.ident else thread.start()):
        yield
    if thread.ident:
        thread.join()


def _prepare_diagnosis() -> None:
    with suppress(Exception):  # raised again, and reported, by the diagnosis itself
        from mldebug_mcp.diagnose.diagnosis import prepare

        prepare()
        import_module("mldebug_mcp.report.diagnosis_screen")


def do_read(options: argparse.Namespace) -> int:
    """Print values of metrics."""
    from mldebug_mcp.diagnose.read_metric import read_curves, require_points

    require_points(options.points)
    with shown_progress():
        run = _run_of(options.path, options)
        answer = read_curves(run, options.metrics, options.first, options.last, options.points)
    if options.json:
        _print_json(answer)
    else:
        from mldebug_mcp.report.console import console_for
        from mldebug_mcp.report.metric_terminal import print_reading

        print_reading(console_for(), answer)
    return DONE


def do_watch(options: argparse.Namespace) -> int:
    """Watch a run until it ends, the time is over, or a cause leads and that is what was waited for."""
    from mldebug_mcp.diagnose.watch import Watch
    from mldebug_mcp.report.watch_terminal import print_news, print_status, what_now

    alarms = _alarms(options)
    watch = Watch(options.path, options.config, options.run, names=options.names)
    until = time.monotonic() + 60 * options.minutes if options.minutes else math.inf
    try:
        while True:
            news = watch.look()
            show_line("")
            for one in news:
                print(one.to_json(), flush=True) if options.json else print_news(one)
                for alarm in alarms if one.alarm else ():
                    alarm(one)
            if watch.has_grown and not options.json and not sys.stderr.isatty():
                print_status(watch.status)
            if options.until_alarm and any(one.alarm for one in news):
                if not options.json:
                    print(what_now(options.path))
                return FOUND
            if watch.finished or time.monotonic() + options.every > until:
                return DONE
            show_line(watch.status)
            time.sleep(options.every)
    finally:
        show_line("")


def _alarms(options: argparse.Namespace) -> list[Alarm]:
    """Return what is done at an alarm."""
    from mldebug_mcp.cli.alarm import notifying, running

    commands = [running(options.on_alarm, options.path)] if options.on_alarm else []
    return [*commands, *([notifying(options.path)] if options.notify else [])]


def do_open(options: argparse.Namespace) -> int:
    """Show the page of a run in the browser until nobody looks at it any more."""
    from mldebug_mcp.cli.live_page import LivePage
    from mldebug_mcp.cli.page_server import PageServer
    from mldebug_mcp.logs import read_run
    from mldebug_mcp.logs.followed import FollowedRun

    reference = read_run(options.reference) if options.reference else None
    page = LivePage(options.path, FollowedRun(options.path, options.config, options.run, options.names), reference)
    with PageServer(page.html) as server:
        print(f"{server.url}\nends by itself when the page is closed; Ctrl+C ends it now", file=sys.stderr, flush=True)
        if options.browser:
            import webbrowser

            webbrowser.open(server.url)
        server.serve()
    return DONE


def do_batch(options: argparse.Namespace) -> int:
    """Inspect a batch or data set."""
    from mldebug_mcp.diagnose.batch import inspect_batch

    with shown_progress():
        answer = inspect_batch(
            options.path,
            options.tokenizer,
            options.model,
            options.purpose,
            sample=options.sample,
            against=options.against,
            ray=options.ray,
        )
    if options.html:
        from mldebug_mcp.report.batch_html import write_page

        write_page(answer, options.html)
    if options.json:
        _print_json(answer)
    else:
        from mldebug_mcp.report.batch_terminal import print_inspection
        from mldebug_mcp.report.console import console_for

        print_inspection(console_for(), answer)
    return FOUND if options.check and any(one.severity != "info" for one in answer.findings) else DONE


def do_search(options: argparse.Namespace) -> int:
    """Search the catalogue."""
    from mldebug_mcp.diagnose.search import search_folklore

    answer = search_folklore(" ".join(options.query), options.domain, options.topic, options.kind, options.limit)
    if options.json:
        _print_json(answer)
    else:
        from mldebug_mcp.report.console import console_for
        from mldebug_mcp.report.knowledge_terminal import print_search

        print_search(console_for(), answer)
    return DONE


def do_explain(options: argparse.Namespace) -> int:
    """Explain an id."""
    from mldebug_mcp.diagnose.explain import explain

    answer = explain(options.id)
    if options.json:
        _print_json(answer)
    else:
        from mldebug_mcp.report.console import console_for
        from mldebug_mcp.report.explanation_terminal import print_explanation

        print_explanation(console_for(), answer)
    return DONE


def do_error(options: argparse.Namespace) -> int:
    """Explain an error message."""
    from mldebug_mcp.diagnose.explain_error import explain_error, explain_lines

    text = " ".join(options.text)
    with shown_progress():
        answer = explain_lines(line.rstrip("\r\n") for line in sys.stdin) if text == "-" else explain_error(text)
    if options.json:
        _print_json(answer)
    else:
        from mldebug_mcp.report.console import console_for
        from mldebug_mcp.report.knowledge_terminal import print_error

        print_error(console_for(), answer)
    return DONE


def do_verify(options: argparse.Namespace) -> int:
    """Verify the evidence."""
    from pathlib import Path

    from mldebug_mcp.knowledge.verification import verify

    with shown_progress():
        copies = Path(options.copies) if options.copies else None
        answer = verify(copies, offline=options.offline or (copies is None and not options.online))
    if options.json:
        _print_json(answer)
    else:
        from mldebug_mcp.report.console import console_for
        from mldebug_mcp.report.knowledge_terminal import print_evidence

        print_evidence(console_for(), answer)
    return FOUND if options.check and (answer.changed or answer.problems) else DONE


def do_memory(options: argparse.Namespace) -> int:
    """Check a memory snapshot."""
    from mldebug_mcp.diagnose.memory import report
    from mldebug_mcp.memory.read import read_memory

    with shown_progress():
        snapshot = read_memory(options.path)
        answer = report(snapshot, read_memory(options.against) if options.against else None, options.focus)
    if options.png:
        from mldebug_mcp.report.memory_plot import plot_memory

        plot_memory(snapshot, options.png)
    if options.html:
        from mldebug_mcp.report.memory_html import write_memory_html

        write_memory_html(snapshot, answer, options.html)
    if options.json:
        _print_json(answer)
    else:
        from mldebug_mcp.report.console import console_for
        from mldebug_mcp.report.memory_terminal import print_memory

        print_memory(console_for(), answer)
    worth_acting_on = any(one.severity != "info" for one in answer.findings)
    return FOUND if options.check and worth_acting_on else DONE


def do_estimate(options: argparse.Namespace) -> int:
    """Estimate training memory."""
    from mldebug_mcp.memory.estimate import estimate_memory

    settings = {name: value for name, value in vars(options).items() if name not in ("command", "json", "config")}
    answer = estimate_memory(options.config, **settings)
    if options.json:
        _print_json(answer)
    else:
        from mldebug_mcp.report.console import console_for
        from mldebug_mcp.report.memory_terminal import print_estimate

        print_estimate(console_for(), answer)
    return DONE


def do_probe(options: argparse.Namespace) -> int:
    """Probe whether a batch can be memorised."""
    from mldebug_mcp.diagnose.probe import is_sound, probe_overfit
    from mldebug_mcp.report.console import console_for
    from mldebug_mcp.report.probe_terminal import print_probe, show_progress

    settings = {
        name: getattr(options, name)
        for name in ("device", "dtype", "steps", "learning_rate", "optimizer", "time_limit")
    }
    with show_progress() as told:
        answer = probe_overfit(
            options.batch, options.model, options.entry, options.python,
            memory_gb=options.memory_limit, on_progress=told, **settings,
        )  # fmt: skip
    if options.plot:
        from mldebug_mcp.report.probe_plot import plot_probe

        plot_probe(answer, options.plot)
    if options.json:
        _print_json(answer)
    else:
        print_probe(console_for(), answer)
    if answer.verdict == "failed":
        return UNUSABLE
    return FOUND if options.check and not is_sound(answer) else DONE


def do_help(parser: argparse.ArgumentParser) -> int:
    """Show the help of the program or of a command."""
    parser.print_help()
    return DONE


def do_install(options: argparse.Namespace) -> int:
    """Write or print a client's configuration."""
    from mldebug_mcp.cli.install import install

    install(options)
    return DONE


def do_serve(options: argparse.Namespace) -> int:
    """Serve MCP over standard input and output, or over HTTP."""
    from mldebug_mcp.access import access_from
    from mldebug_mcp.server import serve_stdio

    access = access_from(getattr(options, "server_roots", ()), getattr(options, "server_pythons", ()))
    # Almost everything is loaded: from here on garbage is collected as usual, but not in what is loaded.
    gc.freeze()
    gc.set_threshold(*_USUAL_THRESHOLD)
    names = ("host", "port", "token", "allowed_hosts", "allowed_origins")
    settings = {name: value for name in names if (value := getattr(options, name, None)) is not None}
    if getattr(options, "http", False):
        _serve_http(access, settings)
    elif settings:
        raise InputError(f"--{next(iter(settings)).replace('_', '-').removesuffix('s')} is for HTTP: add --http")
    else:
        if sys.stdin.isatty():
            print(_TO_A_PERSON, file=sys.stderr, flush=True)
        serve_stdio(access)
    return DONE


def _serve_http(access: Access, settings: dict[str, Any]) -> None:
    from mldebug_mcp.server import helpers, make_server
    from mldebug_mcp.server.http import serve_http
    from mldebug_mcp.server.listener import listen

    listener = listen(**settings)
    lines = [f"MCP at {listener.url}; Ctrl+C ends it", *listener.warnings]
    if listener.made:
        lines.append(f"clients send the header Authorization: Bearer {listener.token} (new at each start, shown once)")
    for line in lines:
        print(f"mldebug-mcp: {line}", file=sys.stderr, flush=True)
    pool = helpers(access)
    try:
        serve_http(make_server(access, pool), listener)
    finally:
        pool.close()


def _print_json(answer: Model) -> None:
    print(answer.to_json(indent=2))
