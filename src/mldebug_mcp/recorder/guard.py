"""A recording never ends a training: what goes wrong in it is said once, and left out from then on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
Owner = TypeVar("Owner")

_FAILED: set[tuple[int, str]] = set()


def guarded(function: Callable[Concatenate[Owner, P], None]) -> Callable[Concatenate[Owner, P], None]:
    """Make a method that says on stderr what it failed of, once, and does nothing afterwards."""

    @wraps(function)
    def call(owner: Owner, /, *args: P.args, **kwargs: P.kwargs) -> None:
        if _FAILED and (id(owner), function.__name__) in _FAILED:
            return
        try:
            function(owner, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 - models, optimizers and loaders can be anything
            _FAILED.add((id(owner), function.__name__))
            where = function.__name__.strip("_").replace("_", " ")
            sys.stderr.write(
                f"mldebug_mcp.recorder: {where}: {type(error).__name__}: {error}; "
                "this is not recorded from here on, training goes on\n"
            )

    return call
