"""Inspect all samples: `python -m benchmarks.batch_matrix [COLLATOR ...]` prints what is found and what stays quiet.

Those of image processors are named `images`.
"""

from __future__ import annotations

import sys
from collections import Counter
from itertools import chain

from benchmarks.batch_matrix import processors, samples


def main(collators: list[str]) -> None:
    """Print each sample that is not answered rightly, and how many are, for each collator."""
    right: Counter[tuple[str, bool]] = Counter()
    asked: Counter[tuple[str, bool]] = Counter()
    images = map(processors.sample, processors.MADE)
    for sample in chain(samples(), images):
        if collators and sample.collator not in collators:
            continue
        found = sample.inspect()
        kind = (sample.collator, bool(sample.checks))
        asked[kind] += 1
        right[kind] += sample.is_right(found)
        if not sample.is_right(found):
            expected = " or ".join(sample.checks) or "nothing"
            print(f"{sample}: expected {expected}, found {', '.join(found) or 'nothing'}")
    for collator in sorted({name for name, _ in asked}):
        counts = [f"{right[collator, fault]}/{asked[collator, fault]}" for fault in (True, False)]
        print(f"{collator:34} faults found {counts[0]:>6}  healthy quiet {counts[1]:>6}")
    for fault, word in ((True, "faults found"), (False, "healthy quiet")):
        total = [sum(count for (_, is_fault), count in which.items() if is_fault == fault) for which in (right, asked)]
        print(f"{word} {total[0]}/{total[1]}")


if __name__ == "__main__":
    main(sys.argv[1:])
