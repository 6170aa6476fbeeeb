"""`python -m tests.restyle.report [STYLE...]`: what the reader gets back of each style, and its failures by kind."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.logs import read_run
from tests.restyle.compare import Miss, misses
from tests.restyle.stories import STORIES
from tests.restyle.style import random_style
from tests.restyle.styles import STYLES
from tests.restyle.write import Written, write


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line per style and a line per kind of failure, those first that hit most styles."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("styles", nargs="*", help="names of styles; all by default")
    parser.add_argument("--stories", nargs="*", default=["healthy_language_model", "healthy_classifier"])
    parser.add_argument("--random", type=int, default=0, help="this many random styles instead of the named ones")
    asked = parser.parse_args(arguments)
    named = [random_style(seed) for seed in range(asked.random)] or list(STYLES.values())
    styles = [style for style in named if not asked.styles or style.name in asked.styles]
    hits: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for style in styles:
        for story in asked.stories:
            with tempfile.TemporaryDirectory() as folder:
                written = write(STORIES[story](), style, Path(folder))
                found = list(read_back(written))
            for miss in found:
                hits[miss.kind, miss.what].setdefault(style.name, miss.detail)
            sys.stdout.write(_line(f"{style.name} {story}", written, found))
    whole = len(styles) - len({style for where in hits.values() for style in where})
    sys.stdout.write(f"\n{whole} of {len(styles)} styles read without a miss\n")
    for (kind, what), where in sorted(hits.items(), key=lambda item: -len(item[1])):
        examples = "; ".join(f"{style} ({detail[:160]})" for style, detail in list(where.items())[:3])
        sys.stdout.write(f"{len(where):3} {kind}: {what}: {examples}\n")


def read_back(written: Written) -> Iterator[Miss]:
    """What is not read back; one miss where nothing is."""
    try:
        run = read_run(written.path)
    except InputError as refused:
        yield Miss("refused", "log", str(refused))
        return
    yield from misses(run, written)


def _line(name: str, written: Written, found: Sequence[Miss]) -> str:
    by_kind: dict[str, int] = defaultdict(int)
    for miss in found:
        by_kind[miss.kind] += 1
    total = len(written.series)
    read = 0 if "refused" in by_kind else total - by_kind["not found"]
    told = ", ".join(f"{count} {kind}" for kind, count in by_kind.items() if count and kind != "not found")
    return f"{name:52} {read:2} of {total:2} quantities{'; ' if told else ''}{told}\n"


if __name__ == "__main__":
    main()
