"""What every type of the contract shares: numbers that may be NaN, text that is safe to show.

Numbers may be NaN or infinite, because a NaN is often exactly what was found. JSON has no such numbers, so
`Number` writes them as the strings "nan", "inf" and "-inf", and the schema says so. All text is cleaned on the way
out: control, bidirectional and invisible characters and lone surrogates cannot reach a terminal or a client.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from threading import RLock
from typing import Annotated, Any, Literal

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

Severity = Literal["error", "warning", "info"]
GRAVEST_FIRST: tuple[Severity, ...] = ("error", "warning", "info")

_BUILDING = RLock()


class Frozen(BaseModel):
    """Immutable, without unknown fields, and built on first use: a call needs only some of the types."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    @classmethod
    def model_rebuild(
        cls,
        *,
        force: bool = False,
        raise_errors: bool = True,
        _parent_namespace_depth: int = 2,
        _types_namespace: Mapping[str, Any] | None = None,
    ) -> bool | None:
        """Build the type, once, from the names of its module alone.

        By default pydantic also looks at the local variables of the first user, which crashes CPython 3.13.0 in a
        comprehension; and before pydantic 2.14 two threads could build one type at once, and break it.
        """
        with _BUILDING:
            return super().model_rebuild(
                force=force, raise_errors=raise_errors, _parent_namespace_depth=0, _types_namespace=_types_namespace
            )


class Model(Frozen):
    """Base of the contract."""

    def to_json(self, indent: int | None = None) -> str:
        """Return the model as JSON, exactly as the MCP server sends it."""
        return self.model_dump_json(indent=indent)
