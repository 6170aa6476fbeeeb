"""Options that a command line leaves open → what the user prefers."""

from __future__ import annotations

import argparse
import sys


def prefer(options: argparse.Namespace) -> None:
    """Fill the options of a command, in place, from the files of preferences.

    Raises:
        InputError: a file of preferences is wrong.
    """
    if not hasattr(options, "names"):
        return
    from mldebug_mcp.preferences import find_preferences

    preferred, notes = find_preferences()
    for note in notes:
        print(f"mldebug-mcp: {note}", file=sys.stderr)
    options.names = {**preferred.names, **options.names}
    alarms = preferred.alarms
    for name, value in {
        "every": alarms.every, "alarm_at": alarms.probability, "alarm_looks": alarms.looks,
        "on_alarm": alarms.command, "webhook": alarms.webhook, "notify": alarms.notify,
    }.items():  # fmt: skip
        if value is not None and not getattr(options, name, True):
            setattr(options, name, value)
