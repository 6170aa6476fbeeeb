"""The command by which a client starts this server."""

from __future__ import annotations

import json
import shutil
import sys
import sysconfig
from importlib.metadata import distribution
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
        return (uvx, "--from", _source(), SCRIPT)
    running = Path(sys.argv[0])
    scripts = Path(sysconfig.get_path("scripts")) / SCRIPT
    for script in (running, scripts, scripts.with_suffix(".exe")):
        if script.stem == SCRIPT and script.is_file():
            return (str(script.absolute()),)
    return (sys.executable, "-m", "mldebug_mcp")


def _made_by_uvx() -> bool:
    parts = Path(sys.prefix).parts
    return any(one == "uv" and two.startswith(("archive-v", "environments-v")) for one, two in pairwise(parts))


def _source() -> str:
    """Return what `uvx --from` was given: the package's name, with the folder or repository that uv has recorded.

    The record is PEP 610's: https://packaging.python.org/en/latest/specifications/direct-url/
    """
    record = json.loads(distribution(SCRIPT).read_text("direct_url.json") or "{}")
    if not record:
        return SCRIPT
    version_control = record["vcs_info"]["vcs"] + "+" if "vcs_info" in record else ""
    return f"{SCRIPT} @ {version_control}{record['url']}"
