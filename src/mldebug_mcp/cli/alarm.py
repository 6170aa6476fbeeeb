"""What is done at an alarm: a command of the user's, a notification on the desktop.

News may quote a log. They reach a command as its input and in variables, never as words of its own line, and a
notification as one argument.
"""

from __future__ import annotations

import html
import os
import shutil
import subprocess
import sys
from collections.abc import Callable

from mldebug_mcp.errors import InputError
from mldebug_mcp.models.watching import News
from mldebug_mcp.text import shorten

PATIENCE = 60.0
"""Seconds that a command may take: the watch waits for it."""
LONGEST = 200
_TITLE = "mldebug-mcp"
_ON_MAC = ("on run argv", "display notification (item 2 of argv) with title (item 1 of argv)", "end run")

Alarm = Callable[[News], None]


def running(command: str, path: str) -> Alarm:
    """Return what runs a command of the shell at an alarm.

    The alarm is its input, as a line of JSON, and stands in MLDEBUG_TEXT; the run in MLDEBUG_PATH.
    """

    def run(news: News) -> None:
        told = os.environ | {"MLDEBUG_TEXT": news.text, "MLDEBUG_PATH": path}
        try:
            done = subprocess.run(  # noqa: S602 - the user's own command, and nothing else in it
                command, shell=True, env=told, input=news.to_json(), text=True, timeout=PATIENCE, check=False
            )
            failed = f"it ended with {done.returncode}" if done.returncode else ""
        except subprocess.TimeoutExpired:
            failed = f"it took more than {PATIENCE:.0f} s"
        if failed:
            print(f"mldebug-mcp: --on-alarm {shorten(command, LONGEST)}: {failed}", file=sys.stderr)

    return run


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
