"""Do the experts of a mixture share the tokens, or does the router send most of them to a few?"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.checks.check import CannotTell, Evidence, symptom, too_few
from mldebug_mcp.checks.curve import departure, end_level, start_level
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import figure
from mldebug_mcp.logs.run import Run, Series

MIN_ROUTING_RECORDS = 20
"""Records that show a course. Chosen: by hand."""
MOST_DROPPED = 0.2
"""Share of the tokens that are dropped by the end. Chosen: a capacity factor above 1 drops some per cent."""
MOST_OVER = 5.0
"""Times its fair share by which the fullest expert is over it (MaxVio). Chosen: balanced routers stay below 1 or 2."""
GROWN = 4.0
"""Times what it was at the start. Chosen: at the very start a router may be as uneven."""
PER_CENT = 100.0
_DROPPED = regex(r"(?i)drop(?:ped)?[ _/-]?tokens?|tokens?[ _/-]{1,3}drop(?:ped)?")
_OVER = regex(r"(?i)max[ _-]?vio")
_OF_LOAD = regex(r"(?i)(?:expert|load|routing|router)s?[ _/-](?:load[ _/-])?entropy")


@symptom(background=0.002, as_chosen=True)
def routing_collapses(run: Run) -> Evidence | None:
    """A router comes to send most tokens to a few experts, which drop what is beyond their capacity.

    Not this when: it is as uneven at the start, and gets no worse; only the entropy of single tokens falls, as a router
    that learns gets sure.
    """
    judged = [series for name in run.series if _DROPPED.search(name) or _OVER.search(name) for series in [run[name]]]
    if not judged:
        raise CannotTell("not logged: the share of dropped tokens, or the load of the fullest expert")
    logged = [series.finite for series in judged if len(series.finite) >= MIN_ROUTING_RECORDS]
    if not logged:
        raise too_few(judged[0].name, len(judged[0].finite), MIN_ROUTING_RECORDS)
    seen = [(series, *levels) for series in logged if (levels := _grown(series)) is not None]
    if not seen:
        return None
    series, start, end = seen[0]
    onset = float(series.step[departure(series.value, end)])
    shown = [f"{each.name} goes from about {figure(first)} to about {figure(last)}" for each, first, last in seen]
    shown += [
        f"{name} from about {figure(start_level(values))} to about {figure(end_level(values))}"
        for name in run.series
        if _OF_LOAD.search(name) and len(values := run[name].finite.value)
    ]
    return Evidence(
        f"from {run.place(onset)} on {', '.join(shown)}", steps=(onset,), values={"start": start, "end": end}
    )


def _grown(series: Series) -> tuple[float, float] | None:
    """Return the first and the last level of what has grown too large, else None."""
    start, end = start_level(series.value), end_level(series.value)
    whole = PER_CENT if _DROPPED.search(series.name) and float(np.max(series.value)) > 1 else 1.0
    limit = MOST_DROPPED * whole if _DROPPED.search(series.name) else MOST_OVER
    return (start, end) if end >= limit and end >= GROWN * max(start, 0.0) else None
