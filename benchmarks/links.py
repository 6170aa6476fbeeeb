"""What each link from a cause to a symptom rests on: a quote, a count from labelled runs, or neither.

    python -m benchmarks.links [--list]

A link is a row of `links.csv` with a word. It is quoted where the row cites a quote, and counted where runs of
`benchmarks/faults` with that cause, in which the symptom can be judged, are in the fit. A link with neither weighs only
for a memory snapshot, of which no runs are counted. With `--list` these are printed, by cause: find a source for them,
or inject the cause and fit anew.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

from mldebug_mcp.judge.hypotheses import fitted
from mldebug_mcp.knowledge import catalogue


@dataclass(frozen=True, slots=True)
class Link:
    """A row of the table, and what it rests on."""

    cause: str
    symptom: str
    frequency: str
    quotes: tuple[str, ...]
    counted: bool


def links() -> Iterator[Link]:
    """Yield the links of all causes in file order."""
    numbers = fitted()
    for cause in catalogue().causes.values():
        for effect in cause.effects:
            counted = numbers.counted(cause.id, effect.symptom)
            yield Link(cause.id, effect.symptom, effect.frequency.value, effect.quotes, counted)


def main() -> None:
    """Print how many links rest on what, and those that rest on nothing."""
    parser = argparse.ArgumentParser("benchmarks.links", description="What each link of cause and symptom rests on.")
    parser.add_argument("--list", action="store_true", help="list the links with neither a quote nor a count")
    listed = parser.parse_args().list
    found = list(links())
    neither = [one for one in found if not one.quotes and not one.counted]
    print("| links | quoted | counted | both | neither |\n| --- | --- | --- | --- | --- |")
    quoted, counted = (sum(map(bool, each)) for each in zip(*((one.quotes, one.counted) for one in found), strict=True))
    both = sum(bool(one.quotes) and one.counted for one in found)
    print(f"| {len(found)} | {quoted} | {counted} | {both} | {len(neither)} |")
    if listed:
        print("\n| cause | links with neither |\n| --- | --- |")
        for cause in dict.fromkeys(one.cause for one in neither):
            rows = [f"{one.symptom} ({one.frequency})" for one in neither if one.cause == cause]
            print(f"| {cause} | {', '.join(rows)} |")


if __name__ == "__main__":
    main()
