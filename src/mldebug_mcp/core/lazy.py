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

__all__ = ["dataclass", "lazily", "regex", "replace"]


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


# Dataclasses. The standard library compiles several methods for each when its module is loaded: half a millisecond, and
# there are three hundred. Here the methods are shared; what asks for the fields completes a class as usual.


MIN_INSTANCES_TO_COMPILE = 300
"""Instances of a class from which on compiling its `__init__` pays: it takes a third of a millisecond. Measured."""
_COMPLETING = RLock()


class _Fields:
    """The fields of a class that is not complete: asking for them completes it."""

    def __init__(self, complete: Callable[[], None]) -> None:
        self.complete = complete

    def __get__(self, instance: object, owner: type) -> object:
        self.complete()
        return owner.__dataclass_fields__  # type: ignore[attr-defined]


def _put_off(cls: type, options: Mapping[str, bool]) -> type:
    """Give a class shared methods in place of those that would be compiled for it."""

    def complete() -> None:
        with _COMPLETING:
            if not isinstance(cls.__dict__["__dataclass_fields__"], _Fields):
                return  # another thread has done it
            # A twin is made, so that other threads never meet a class that is half done.
            own = {name: value for name, value in cls.__dict__.items() if name in copied or name in cls.__annotations__}
            own["__doc__"] = cls.__name__  # without one the signature is made for it, which takes long
            twin: Any = type(cls.__name__, cls.__bases__, own)
            dataclasses.dataclass(**dict(options), repr=False, eq=False)(twin)
            for name in ("__dataclass_params__", "__match_args__", "__init__", "__dataclass_fields__"):
                setattr(cls, name, getattr(twin, name))

    def complete_and_construct(self: object, *values: object, **given: object) -> None:
        complete()
        cls.__init__(self, *values, **given)  # type: ignore[misc]

    copied = ("__annotations__", "__module__", "__qualname__", "__post_init__")
    for name, method in _shared_methods(cls, options).items():
        setattr(cls, name, method)
    options = {name: value for name, value in options.items() if name not in ("repr", "eq", "slots")}
    construct = _plain_init(cls, complete_and_construct) or complete_and_construct
    cls.__init__, cls.__dataclass_fields__ = construct, _Fields(complete)  # type: ignore[misc, attr-defined]
    return cls


def _shared_methods(cls: type, options: Mapping[str, bool]) -> dict[str, object]:
    """Return the methods of a dataclass that need not be its own, without those that it defines."""
    frozen = options.get("frozen", False)
    shared: dict[str, object] = {}
    if options.get("repr", True):
        shared["__repr__"] = _repr
    if options.get("eq", True):
        shared |= {"__eq__": _equal, "__hash__": _hash if frozen else None}
    if frozen:
        shared |= {"__setattr__": _refuse, "__delattr__": _refuse}
    return {name: method for name, method in shared.items() if name not in cls.__dict__}


def _plain_init(cls: type, other: Callable[..., None]) -> Callable[..., None] | None:
    """Return an `__init__` for which nothing is compiled; None where fields are inherited or not simply arguments.

    Args:
        cls: The class.
        other: The `__init__` that raises the error where the arguments are wrong, and serves many instances.
    """
    names = [name for name, kind in cls.__annotations__.items() if not kind.startswith("ClassVar")]
    given_values = {name: cls.__dict__[name] for name in names if name in cls.__dict__}
    special = {name: value for name, value in given_values.items() if isinstance(value, dataclasses.Field)}
    inherits = any("__dataclass_fields__" in base.__dict__ for base in cls.__mro__)
    if inherits or not all(value.init and value.default is dataclasses.MISSING for value in special.values()):
        return None
    defaults = {name: value for name, value in given_values.items() if name not in special}
    factories: list[tuple[str, Any]] = [(name, value.default_factory) for name, value in special.items()]
    expected, checks, left = frozenset(names), hasattr(cls, "__post_init__"), MIN_INSTANCES_TO_COMPILE

    def construct(self: Any, *values: object, **given: object) -> None:  # noqa: ANN401 - of any dataclass
        nonlocal left
        left -= 1
        made = {**defaults, **dict(zip(names, values, strict=False)), **given}
        for name, factory in factories:
            if name not in made:
                made[name] = factory()
        twice = given and not given.keys().isdisjoint(names[: len(values)])
        if made.keys() != expected or twice or len(values) > len(names) or left < 0:
            return other(self, *values, **given)
        self.__dict__.update(made)
        if checks:
            self.__post_init__()
        return None

    return construct


def _refuse(self: object, name: str, *_: object) -> None:
    """Refuse the change of an instance that is frozen."""
    raise dataclasses.FrozenInstanceError(f"{type(self).__name__} is frozen: {name} stays as it is")


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
def _arguments(kind: type) -> tuple[str, ...]:
    """Return the fields that a dataclass is made of, those that it inherits first."""
    classes = [base for base in reversed(kind.__mro__) if "__dataclass_fields__" in base.__dict__]
    written = {name: text for base in classes for name, text in base.__annotations__.items()}
    return tuple(name for name, text in written.items() if not text.startswith("ClassVar"))


@cache
def _compared(kind: Any) -> Callable[[object], object]:  # noqa: ANN401 - any dataclass
    """Return what gives the values by which instances are compared."""
    names = [field.name for field in dataclasses.fields(kind) if field.compare]
    return attrgetter(*names) if names else lambda _: ()


if TYPE_CHECKING:
    from dataclasses import dataclass, replace
else:

    def dataclass(cls: type | None = None, /, **options: bool) -> object:
        """Return a dataclass as `dataclasses.dataclass` makes it, but sooner.

        It has no slots, for which the class would have to be made again. Where there are very many instances the
        standard library's is better.
        """
        return _put_off(cls, options) if cls is not None else lambda made: _put_off(made, options)

    def replace(made: object, /, **changes: object) -> object:
        """Return a copy with other values, as `dataclasses.replace` does, without completing the class."""
        kept = {name: getattr(made, name) for name in _arguments(type(made)) if name not in changes}
        return type(made)(**kept, **changes)


# Patterns. Most logs need a few of three hundred.

MAX_TEXTS_LOOKED_AT = 1000
"""Texts in which what a match needs is looked for before the pattern is compiled all the same. Chosen: that many looks
take as long as compiling a dear pattern, and compiled ones refuse a text sooner."""


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


class _NeedyPattern(_Pattern):
    """A regular expression that is compiled when a text first holds something that each match of it contains."""

    def __init__(self, source: str, flags: int, needs: tuple[str, ...]) -> None:
        super().__init__(source, flags)
        self._needs, self._texts_left = needs, MAX_TEXTS_LOOKED_AT

    def _cannot_match(self, text: str) -> bool:
        self._texts_left -= 1
        # Where case is ignored, a few other letters match those of ASCII.
        if self._texts_left >= 0 and text.isascii():
            lowered = text.lower()
            for need in self._needs:
                if need in lowered:
                    break
            else:
                return True
        compiled = re.compile(self._source, self._flags)
        for name in ("search", "match", "fullmatch", "finditer", "findall", "sub"):
            setattr(self, name, getattr(compiled, name))
        return False

    def search(self, text: str, *bounds: int) -> object:
        return None if self._cannot_match(text) else self.search(text, *bounds)

    def match(self, text: str, *bounds: int) -> object:
        return None if self._cannot_match(text) else self.match(text, *bounds)

    def fullmatch(self, text: str, *bounds: int) -> object:
        return None if self._cannot_match(text) else self.fullmatch(text, *bounds)

    def finditer(self, text: str, *bounds: int) -> object:
        return iter(()) if self._cannot_match(text) else self.finditer(text, *bounds)

    def findall(self, text: str, *bounds: int) -> object:
        return [] if self._cannot_match(text) else self.findall(text, *bounds)

    def sub(self, by: object, text: str, count: int = 0) -> object:
        return text if self._cannot_match(text) else self.sub(by, text, count)


def regex(source: AnyStr, flags: int = 0, *, needs: str | tuple[str, ...] = ()) -> re.Pattern[AnyStr]:
    """Return what works as `re.compile` of the same and is compiled on first use.

    Args:
        source: The expression.
        flags: Those of `re.compile`.
        needs: Texts in lower case, without letters beyond ASCII: whatever the expression matches in a text of ASCII
            lies in one that contains at least one of them, in whatever case. Until a text does, nothing is compiled.
    """
    if needs and isinstance(source, str):
        return _NeedyPattern(source, flags, (needs,) if isinstance(needs, str) else needs)  # type: ignore[return-value]
    return _Pattern(source, flags)  # type: ignore[return-value]
