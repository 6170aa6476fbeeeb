"""What every type of the contract shares: numbers that may be NaN, text that is safe to show.

Numbers may be NaN or infinite here, because a NaN is often the very thing that was found. JSON has no such numbers, so
`Number` writes them as the strings "nan", "inf" and "-inf", and the schema says so. All text is cleaned on the way
out: control, bidirectional and invisible characters and lone surrogates cannot reach a terminal or a client.
"""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, PlainSerializer, WithJsonSchema

from mldebug_mcp.text import clean


def _number_in(value: object) -> object:
    return float(value) if isinstance(value, str) and value in ("nan", "inf", "-inf") else value


def _number_out(value: float) -> float | int | str:
    if not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return int(value) if value == int(value) and abs(value) < 2**53 else float(f"{value:.6g}")


Number = Annotated[
    float,
    BeforeValidator(_number_in),
    PlainSerializer(_number_out, return_type=float | int | str),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"enum": ["nan", "inf", "-inf"], "type": "string"}]}),
]
"""A float that may be NaN or infinite; in JSON those are strings. Written with six significant digits."""

Text = Annotated[str, AfterValidator(clean)]
"""A string without control characters, invisible characters or lone surrogates."""


class Model(BaseModel):
    """Base of the contract: immutable, no unknown fields."""

    # Built when first used: the server lists its tools without validating anything.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    def to_json(self, indent: int | None = None) -> str:
        """Return the model as JSON, exactly as the MCP server sends it."""
        return self.model_dump_json(indent=indent)
