"""What makes the package start fast: names, dataclasses and patterns that are made when they are first used.

A short command loads a hundred modules and needs a small part of what stands in them.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from operator import attrgetter
from threading import RLock
from typing import TYPE_CHECKING, Any, AnyStr

__all__ = ["dataclass", "lazily", "regex"]


def lazily(package: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """Return the `__getattr__` of a package that imports names when they are first asked for (PEP 562).

    Args:
        package: The package, by its full name.
        modules: By name, the module of the package in which it is defined.
    """

    def find(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{modules[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return find


# Dataclasses. The standard library compiles six methods for each when its module is loaded: half a millisecond, and
# there are two hundred. Here those that compare and show are shared, and the others are compiled on first use.


_COMPLETING = RLock()


class _Fields:
    """The fields of a class that is not complete: asking for them completes it."""

    def __init__(self, complete: Callable[[], None]) -> None:
        self.complete = complete

    def __get__(self, instance: object, owner: type) -> object:
        self.complete()
        return owner.__dataclass_fields__  # type: ignore[attr-defined]


def _put_off(cls: type, options: Mapping[str, bool]) -> type:
    """Give a class shared methods, and stubs in place of what is compiled; the first use of a stub completes it."""

    def complete() -> None:
        with _COMPLETING:
            if cls.__dict__.get("__init__") is not construct:
                return  # another thread has done it
            del cls.__init__, cls.__dataclass_fields__  # type: ignore[misc, attr-defined]
            cls.__doc__ = cls.__doc__ or cls.__name__  # else the signature is made, which takes long
            dataclasses.dataclass(**dict(options), repr=False, eq=False)(cls)

    def construct(self: object, *values: object, **fields: object) -> None:
        complete()
        cls.__init__(self, *values, **fields)  # type: ignore[misc]

    shared: dict[str, object] = {}
    if options.get("repr", True):
        shared["__repr__"] = _repr
    if options.get("eq", True):
        shared |= {"__eq__": _equal, "__hash__": _hash if options.get("frozen") else None}
    for name, method in shared.items():
        if name not in cls.__dict__:
            setattr(cls, name, method)
    options = {name: value for name, value in options.items() if name not in ("repr", "eq", "slots")}
    cls.__init__, cls.__dataclass_fields__ = construct, _Fields(complete)  # type: ignore[misc, attr-defined]
    return cls


def _repr(self: Any) -> str:  # noqa: ANN401 - of any dataclass
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _equal(self: Any, other: object) -> object:  # noqa: ANN401 - of any dataclass
    compared = _compared(self.__class__)
    if other.__class__ is not self.__class__:
        return NotImplemented
    return bool(compared(self) == compared(other))


def _hash(self: Any) -> int:  # noqa: ANN401 - of any dataclass
    return hash(_compared(self.__class__)(self))


@cache
def _compared(kind: Any) -> Callable[[object], object]:  # noqa: ANN401 - any dataclass
    """Return what gives the values by which instances are compared."""
    names = [field.name for field in dataclasses.fields(kind) if field.compare]
    return attrgetter(*names) if names else lambda _: ()


if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls: type | None = None, /, **options: bool) -> object:
        """Return a dataclass as `dataclasses.dataclass` makes it, but sooner.

        It has no slots, for which the class would have to be made again. Where there are very many instances the
        standard library's is better.
        """
        return _put_off(cls, options) if cls is not None else lambda made: _put_off(made, options)


# Patterns. Most logs need a few of three hundred.


class _Pattern:
    """A regular expression that is compiled when it is first used; each method of it is looked up once."""

    def __init__(self, source: str | bytes, flags: int) -> None:
        self._source, self._flags = source, flags

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        value = getattr(re.compile(self._source, self._flags), name)
        setattr(self, name, value)
        return value


def regex(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return what works as `re.compile` of the same and is compiled on first use."""
    return _Pattern(source, flags)  # type: ignore[return-value]
