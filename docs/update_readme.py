"""Fill the output blocks of README.md and docs/clients by running their commands: `python docs/update_readme.py`.

A block is a comment `<!-- output: COMMAND -->` followed by a fenced block. The tests run the same commands and fail if
a page shows anything else.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs" / "clients").glob("*.md")))
BLOCK = re.compile(
    r"<!-- output: mldebug-mcp (?P<arguments>[^\n]+?) -->\n```(?P<language>\w*)\n(?P<shown>.*?)```\n", re.DOTALL
)


def run(arguments: str) -> str:
    """Return what the command line prints, as in a pipe."""
    command = [sys.executable, "-m", "mldebug_mcp", *shlex.split(arguments)]
    # argparse asks for the width of a terminal even where there is none.
    environment = os.environ | {"COLUMNS": "100", "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    shown = done.stdout.replace(str(Path(sysconfig.get_path("scripts")) / "mldebug-mcp"), "/path/to/mldebug-mcp")
    return "\n".join(line.rstrip() for line in shown.splitlines()) + "\n"


def filled(page: str) -> str:
    """Return a page with every block filled anew."""

    def anew(block: re.Match[str]) -> str:
        head = f"<!-- output: mldebug-mcp {block['arguments']} -->\n```{block['language']}\n"
        return f"{head}{run(block['arguments'])}```\n"

    return BLOCK.sub(anew, page)


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
