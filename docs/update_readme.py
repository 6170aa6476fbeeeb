"""Fill the output blocks of README.md by running their commands: `python docs/update_readme.py`.

A block is a comment `<!-- output: COMMAND -->` followed by a fenced block. The tests run the same commands and fail if
the README shows anything else.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"<!-- output: mldebug-mcp (?P<arguments>[^\n]+?) -->\n```\n(?P<shown>.*?)```\n", re.DOTALL)


def run(arguments: str) -> str:
    """Return what the command line prints, as in a pipe."""
    command = [sys.executable, "-m", "mldebug_mcp", *shlex.split(arguments)]
    # argparse asks for the width of a terminal even where there is none.
    environment = os.environ | {"COLUMNS": "100", "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return "\n".join(line.rstrip() for line in done.stdout.splitlines()) + "\n"


def filled(readme: str) -> str:
    """Return the README with every block filled anew."""
    return BLOCK.sub(
        lambda block: f"<!-- output: mldebug-mcp {block['arguments']} -->\n```\n{run(block['arguments'])}```\n", readme
    )


if __name__ == "__main__":
    path = ROOT / "README.md"
    path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
