"""The scales of `measure`, under the name by which detectors know them."""

from __future__ import annotations

from mldebug_mcp.measure.scale import (
    LANGUAGE_MODELS,
    LEAST_LN_VOCABULARY,
    MAX_LN_VOCABULARY,
    comes_trained,
    knows_nothing,
    nats_per_unit,
    predicts_tokens,
    uniform_loss,
)

__all__ = [
    "LANGUAGE_MODELS",
    "LEAST_LN_VOCABULARY",
    "MAX_LN_VOCABULARY",
    "comes_trained",
    "knows_nothing",
    "nats_per_unit",
    "predicts_tokens",
    "uniform_loss",
]
