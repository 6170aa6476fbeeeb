"""The command by which a client starts this server."""

from __future__ import annotations

import shutil
import sys
import sysconfig
from itertools import pairwise
from pathlib import Path

SCRIPT = "mldebug-mcp"


def launch_command() -> tuple[str, ...]:
    """Return the command of the installation that is running.

    Clients with windows know little of the user's PATH and no virtual environment, so it is an absolute path: that of
    the script now running, as pip, pipx, uv and editable installs make it. Links are not followed, for theirs outlive
    an update. An environment that `uvx` made is in a cache and goes away: there it is `uvx` itself.
    """
    if _made_by_uvx() and (uvx := shutil.which("uvx")):
        return (uvx, "--from", SCRIPT, SCRIPT)
    running = Path(sys.argv[0])
    scripts = Path(sysconfig.get_path("scripts")) / SCRIPT
    for script in (running, scripts, scripts.with_suffix(".exe")):
        if script.stem == SCRIPT and script.is_file():
            return (str(script.absolute()),)
    return (sys.executable, "-m", "mldebug_mcp")


def _made_by_uvx() -> bool:
    parts = Path(sys.prefix).parts
    return any(one == "uv" and two.startswith(("archive-v", "environments-v")) for one, two in pairwise(parts))
