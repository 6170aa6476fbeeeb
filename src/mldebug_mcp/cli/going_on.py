"""The commands on a run that is still going: `watch` it, `open` its page."""

from __future__ import annotations

import argparse
import math
import sys
import time
from typing import TYPE_CHECKING

from mldebug_mcp.cli.commands import DONE, FOUND, Commands, add_reader, count, reader_from, show_line, verb
from mldebug_mcp.cli.one_run import add_reading

if TYPE_CHECKING:
    from mldebug_mcp.cli.alarm import Alarm


def add_watch(verbs: Commands) -> None:
    """Add the command with its options."""
    watch = verb(verbs, "watch", "look at a run that is still going again and again, and tell what is new")
    watch.add_argument("path", metavar="PATH", help="a log file or a run folder; it may come into being later")
    add_reading(watch)
    add_reader(watch)
    watch.add_argument("--every", type=_positive, metavar="SECONDS", help="seconds between two looks (default 30)")
    watch.add_argument("--for", type=_positive, metavar="MINUTES", dest="minutes", help="stop after so many minutes")
    watch.add_argument(
        "--until-alarm", action="store_true",
        help="exit with 1 once another cause than `healthy` leads at two looks, or no loss is found at two",
    )  # fmt: skip
    watch.add_argument(
        "--on-alarm", metavar="COMMAND",
        help="run this command of the shell at an alarm; it gets the alarm as JSON on its input and in MLDEBUG_TEXT",
    )  # fmt: skip
    watch.add_argument("--notify", action="store_true", help="show an alarm on the desktop, too")
    watch.add_argument(
        "--webhook", metavar="URL", help="send an alarm to this address, as JSON that Slack and others take"
    )
    watch.add_argument(
        "--alarm-at", type=_share, metavar="SHARE", help="the least probability of the leading fault (default 0)"
    )
    watch.add_argument(
        "--alarm-looks", type=count, metavar="N", help="looks in a row at which the fault leads (default 2)"
    )
    watch.add_argument("--json", action="store_true", help="print each piece of news as a line of JSON")
    watch.set_defaults(command=do_watch)


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


def _share(text: str) -> float:
    value = _positive(text)
    if value > 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a probability: give a number above 0, at most 1")
    return value


def do_watch(options: argparse.Namespace) -> int:
    """Watch a run until it ends, the time is over, or a cause leads and that is what was waited for."""
    from mldebug_mcp.judge.watch import EVERY, LOOKS, Watch
    from mldebug_mcp.report.runs_terminal import print_news, print_status, what_now

    alarms = _alarms(options)
    watch = Watch(
        options.path, options.config, options.run, names=options.names, at=options.alarm_at or 0.0,
        looks=options.alarm_looks or LOOKS, reader=reader_from(options),
    )  # fmt: skip
    every = options.every or EVERY
    until = time.monotonic() + 60 * options.minutes if options.minutes else math.inf
    try:
        while True:
            news = watch.look()
            show_line("")
            for item in news:
                print(item.to_json(), flush=True) if options.json else print_news(item)
                for alarm in alarms if item.alarm else ():
                    alarm(item)
            if watch.has_grown and not options.json and not sys.stderr.isatty():
                print_status(watch.status)
            if options.until_alarm and any(entry.alarm for entry in news):
                if not options.json:
                    print(what_now(options.path))
                return FOUND
            if watch.finished or time.monotonic() + every > until:
                return DONE
            show_line(watch.status)
            time.sleep(every)
    finally:
        show_line("")


def _alarms(options: argparse.Namespace) -> list[Alarm]:
    """Return what is done at an alarm."""
    from mldebug_mcp.cli.alarm import notifying, running, sending

    alarms = [running(options.on_alarm, options.path)] if options.on_alarm else []
    alarms += [notifying(options.path)] if options.notify else []
    return alarms + ([sending(options.webhook, options.path)] if options.webhook else [])


def add_open(verbs: Commands) -> None:
    """Add the command with its options."""
    opened = verb(verbs, "open", "show the diagnosis in the browser, anew as the run goes on")
    opened.add_argument("path", metavar="PATH", help="a log file or a run folder; it may come into being later")
    add_reading(opened)
    opened.add_argument("--reference", metavar="PATH", help="a run that went well, to compare with")
    opened.add_argument(
        "--no-browser", action="store_false", dest="browser", help="only print the address, for a browser of your own"
    )
    opened.set_defaults(command=do_open)


def do_open(options: argparse.Namespace) -> int:
    """Show the page of a run in the browser until nobody looks at it any more."""
    from mldebug_mcp.cli.live_page import LivePage, PageServer
    from mldebug_mcp.logs import read_run
    from mldebug_mcp.logs.follow import FollowedRun

    reference = read_run(options.reference) if options.reference else None
    page = LivePage(options.path, FollowedRun(options.path, options.config, options.run, options.names), reference)
    with PageServer(page.html) as server:
        print(f"{server.url}\nends by itself when the page is closed; Ctrl+C ends it now", file=sys.stderr, flush=True)
        if options.browser:
            import webbrowser

            webbrowser.open(server.url)
        server.serve()
    return DONE
