"""The short form of a reading: as many points as fit, the extremes among them."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs import Series
from mldebug_mcp.measure.thinned import thinned
from mldebug_mcp.models.metric import MetricReading, MetricValues
from mldebug_mcp.report.fit import length

ROOM = 9000
"""Characters of a reading, below those at which clients put an answer into a file."""
LEAST = 4
MOST_OTHERS = 20


def concise_reading(reading: MetricReading) -> MetricReading:
    """Return the reading with fewer points of each curve, where it would be too long."""
    short = reading.model_copy(update={"others": reading.others[:MOST_OTHERS]})
    most = max((len(one.points) for one in reading.series), default=0)
    while length(short) > ROOM and most > LEAST:
        most = most * 2 // 3
        short = short.model_copy(update={"series": [_fewer(one, most) for one in reading.series]})
    return short


def _fewer(values: MetricValues, most: int) -> MetricValues:
    step, value = (np.array(one, dtype=np.float64) for one in zip(*values.points, strict=True))
    fewer = thinned(Series(values.metric, step, value), max(1, most // 4))
    return values.model_copy(update={"points": list(zip(fewer.step.tolist(), fewer.value.tolist(), strict=True))})
