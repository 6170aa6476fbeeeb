"""All runs of the set."""

from __future__ import annotations

from benchmarks.loops.studio.catalog import (
    generative,
    healthy,
    healthy2,
    images,
    images2,
    images3,
    images4,
    sequences,
    systems,
    tables,
    tables2,
)
from benchmarks.loops.studio.core import Spec

SPECS: list[Spec] = [
    *healthy.SPECS,
    *healthy2.SPECS,
    *images.SPECS,
    *images2.SPECS,
    *images3.SPECS,
    *images4.SPECS,
    *generative.SPECS,
    *sequences.SPECS,
    *tables.SPECS,
    *tables2.SPECS,
    *systems.SPECS,
]
