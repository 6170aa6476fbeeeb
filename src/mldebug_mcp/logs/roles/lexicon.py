"""The words that names of metrics are made of; the words themselves stand in `words.json`.

Each word stands there once, with what it means: usually itself in its plain form, sometimes several words. What is not
there is not understood, and a name with such a word is of a quantity only where the quantity has parts (`Loss` and
`box_loss`). A new word goes into the `synonyms` of the file, a new quantity into its `quantities`.
"""

from __future__ import annotations

from mldebug_mcp.logs.roles import languages
from mldebug_mcp.logs.roles.word_lists import METRIC_GROUPS, METRICS, all_of, grouped

PHASES = grouped(METRIC_GROUPS["phases"])
PHASES |= languages.PHASES
PARTS_OF_A_MODEL = all_of(METRICS["parts_of_a_model"])
"""Words that name a part of a model and nothing else, below what is measured of it."""
STATISTICS = grouped(METRIC_GROUPS["statistics"]) | {
    one: one for one in ("p05", "p10", "p25", "p75", "p90", "p95", "p99")
}
STATISTICS |= languages.STATISTICS

SECONDS = {
    "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0,
    "ms": 1e-3, "msec": 1e-3, "msecs": 1e-3, "millis": 1e-3, "millisecond": 1e-3, "milliseconds": 1e-3,
    "us": 1e-6, "µs": 1e-6, "usec": 1e-6, "microseconds": 1e-6, "ns": 1e-9, "nanoseconds": 1e-9,
    "min": 60.0, "mins": 60.0, "minute": 60.0, "minutes": 60.0,
    "h": 3600.0, "hr": 3600.0, "hrs": 3600.0, "hour": 3600.0, "hours": 3600.0,
}  # fmt: skip
GIB = {
    "b": 2.0**-30, "byte": 2.0**-30, "bytes": 2.0**-30, "kb": 2.0**-20, "kib": 2.0**-20, "mb": 2.0**-10,
    "mib": 2.0**-10, "megabytes": 2.0**-10, "gb": 1.0, "gib": 1.0, "g": 1.0, "gigabytes": 1.0, "tb": 2.0**10,
    "tib": 2.0**10,
}  # fmt: skip
"""Loggers write MB and GB and divide by powers of 1024, as `torch.cuda` and `nvidia-smi` do: all are binary."""
SHARES = {"%": 0.01, "pct": 0.01, "percent": 0.01, "percentage": 0.01}
THOUSANDS = {
    "k": 1e3, "m": 1e6, "million": 1e6, "millions": 1e6, "thousand": 1e3, "b": 1e9, "billion": 1e9,
    "billions": 1e9, "万": 1e4,
}  # fmt: skip
UNITS = SECONDS.keys() | GIB.keys() | SHARES.keys() | THOUSANDS.keys()
SHORT_UNITS = frozenset({"s", "b", "h", "g", "k", "m", "min", "us"})
"""... that are other words elsewhere: they count as units only at the end of a name."""

NAMESPACES = all_of(METRICS["namespaces"])
"""Where a metric stands, which says nothing of what it is."""
SOFT = all_of(METRICS["soft"])
"""Words that a name may have besides those of its quantity and still be that of the whole."""
SPOILERS = all_of(METRICS["spoilers"])
"""Words that make a setting, or something else, of a name that would be that of a part."""

SYNONYMS = grouped(METRIC_GROUPS["synonyms"])
SYNONYMS |= {word: meaning for word, meaning in languages.SYNONYMS.items() if word not in SYNONYMS}
"""Word → what it means: one word or several."""

PHRASES = {tuple(phrase.split()): meaning for phrase, meaning in METRIC_GROUPS["phrases"].items()}
"""Words that stand one after another → those that they mean."""
AXIS = all_of(METRICS["axis"])
"""Words after which a name says what it is drawn over: "lm loss vs samples"."""
PLACES = all_of(METRICS["places"])
"""Words of quantities under which loggers also gather what is measured beside them: `throughput/mfu`."""

NEGATED = all_of(METRICS["negated"])
"""Words for what is maximised: Kaldi's objective function is a log-probability per frame, minus a loss."""
SET_ASIDE = ("summary/", "epoch_mean/")
"""Where the readers put averages over a run or an epoch: they are no series of it, whatever their names say."""
EMPTY = NAMESPACES | {"per", "of", "in", "the", "this", "to", "from"}
"""Words that say nothing, but for those that are part of a quantity too."""
