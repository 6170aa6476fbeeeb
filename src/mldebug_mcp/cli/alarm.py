"""What is done at an alarm: a command of the user's, a notification on the desktop, a message to a webhook.

News may quote a log. They reach a command as its input and in variables, never as words of its own line, and a
notification as one argument.
"""

from __future__ import annotations

import html
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import shorten
from mldebug_mcp.models.runs import News

PATIENCE = 60.0
"""Seconds that a command may take: the watch waits for it."""
PATIENCE_FOR_WEBHOOK = 10.0
"""Seconds that a webhook may take to answer."""
LONGEST = 200
_TITLE = "mldebug-mcp"
_ON_MAC = ("on run argv", "display notification (item 2 of argv) with title (item 1 of argv)", "end run")

Alarm = Callable[[News], None]


def running(command: str, path: str) -> Alarm:
    """Return what runs a command of the shell at an alarm.

    The alarm is its input, as a line of JSON, and stands in MLDEBUG_TEXT; the run in MLDEBUG_PATH.
    """

    def run(news: News) -> None:
        environment = os.environ | {"MLDEBUG_TEXT": news.text, "MLDEBUG_PATH": path}
        try:
            done = subprocess.run(  # noqa: S602 - the user's own command, and nothing else in it
                command, shell=True, env=environment, input=news.to_json(), text=True, timeout=PATIENCE, check=False
            )
            failed = f"it ended with {done.returncode}" if done.returncode else ""
        except subprocess.TimeoutExpired:
            failed = f"it took more than {PATIENCE:.0f} s"
        if failed:
            print(f"mldebug-mcp: --on-alarm {shorten(command, LONGEST)}: {failed}", file=sys.stderr)

    return run


def sending(address: str, path: str) -> Alarm:
    """Return what posts an alarm to an address, as JSON.

    `text` holds the message, as Slack and Mattermost take it; `path` and `alarm` are for programs.

    Raises:
        InputError: the address is not one of http or https.
    """
    if urlsplit(address).scheme not in {"http", "https"} or not urlsplit(address).hostname:
        raise InputError(
            f"--webhook {shorten(address, LONGEST)}: it takes an address that begins with https:// or http://"
        )

    def send(news: News) -> None:
        message = {"text": shorten(f"{path}: {news.text}", LONGEST), "path": path, "alarm": json.loads(news.to_json())}
        request = Request(  # noqa: S310 - its scheme was looked at
            address, json.dumps(message).encode(), {"Content-Type": "application/json", "User-Agent": _TITLE}
        )
        try:
            with urlopen(request, timeout=PATIENCE_FOR_WEBHOOK):  # noqa: S310 - as above
                pass
        except OSError as error:  # an answer that is an error is one, too
            # The address may hold a secret: only its host is shown.
            host = urlsplit(address).hostname
            print(f"mldebug-mcp: --webhook at {host}: {shorten(str(error), LONGEST)}", file=sys.stderr)

    return send


def notifying(path: str) -> Alarm:
    """Return what shows an alarm on the desktop.

    Raises:
        InputError: this machine has no program that does so.
    """
    linux, mac = shutil.which("notify-send"), shutil.which("osascript")
    if linux is None and mac is None:
        raise InputError("--notify needs notify-send (Linux) or osascript (macOS); use --on-alarm COMMAND instead")

    def show(news: News) -> None:
        text = shorten(f"{path}: {news.text}", LONGEST)
        # notify-send reads markup in its text.
        words = [linux, "--", _TITLE, html.escape(text)] if linux else [str(mac), *_script(), _TITLE, text]
        subprocess.run(words, timeout=PATIENCE, check=False, capture_output=True)  # noqa: S603 - no shell

    return show


def _script() -> list[str]:
    return [word for line in _ON_MAC for word in ("-e", line)]
