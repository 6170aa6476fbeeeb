"""Fill the generated blocks of README.md, docs/*.md and docs/clients: `python docs/update_readme.py`.

A comment `<!-- output: COMMAND -->` and a fenced block show what the command prints; a comment `<!-- figures: NAME -->`
and a table show what `python -m benchmarks.faults report|compare --save` measured last. The tests fail if a page shows
anything else. A comment `<!-- picture: COMMAND -->` stands above a picture that the command draws.
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
sys.path.insert(0, str(ROOT))
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "clients").glob("*.md")))
BLOCK = re.compile(
    r"<!-- output: mldebug-mcp (?P<arguments>[^\n]+?) -->\n```(?P<language>\w*)\n(?P<shown>.*?)```\n", re.DOTALL
)
PICTURE = re.compile(r"<!-- picture: mldebug-mcp (?P<arguments>[^\n]+?) -->\n")
TABLE = re.compile(r"<!-- figures: (?P<name>\w+) -->\n(?:\|[^\n]*\n)*")


def run(arguments: str) -> str:
    """Return what the command line prints, as in a pipe."""
    command = [sys.executable, "-m", "mldebug_mcp", *shlex.split(arguments)]
    # argparse asks for the width of a terminal even where there is none.
    environment = os.environ | {"COLUMNS": "100", "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    shown = done.stdout.replace(str(Path(sysconfig.get_path("scripts")) / "mldebug-mcp"), "/path/to/mldebug-mcp")
    return "\n".join(line.rstrip() for line in shown.splitlines()) + "\n"


def filled(page: str) -> str:
    """Return a page with every generated block up to date."""
    from benchmarks.faults.figures import kept, table

    def current(block: re.Match[str]) -> str:
        head = f"<!-- output: mldebug-mcp {block['arguments']} -->\n```{block['language']}\n"
        return f"{head}{run(block['arguments'])}```\n"

    page = TABLE.sub(lambda block: f"<!-- figures: {block['name']} -->\n{table(kept(block['name']))}\n", page)
    return BLOCK.sub(current, page)


if __name__ == "__main__":
    for path in PAGES:
        page = path.read_text(encoding="utf-8")
        for picture in PICTURE.finditer(page):
            run(picture["arguments"])
        path.write_text(filled(page), encoding="utf-8")
