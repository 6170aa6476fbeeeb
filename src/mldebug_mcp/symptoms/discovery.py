"""How symptoms and checks are found and documented: a module for each, a docstring for each."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Generic, Protocol, TypeVar


class Documented:
    """Something that the docstring of its function documents."""

    __slots__ = ()
    id: str
    detect: Callable[..., object]

    @property
    def doc(self) -> str:
        """The documentation: the docstring of the function."""
        return inspect.getdoc(self.detect) or ""

    @property
    def title(self) -> str:
        """The first line of the documentation."""
        return self.doc.partition("\n")[0]


class Named(Protocol):
    """Something that has an id."""

    @property
    def id(self) -> str:
        """The id."""


Entry = TypeVar("Entry", bound=Named)


class Registry(Generic[Entry]):
    """The symptoms or checks of a package: each of its modules registers its own when it is imported.

    Args:
        package: The package, by its full name.
    """

    def __init__(self, package: str) -> None:
        self._package = package
        self._registered: dict[str, Entry] = {}
        self._found: Mapping[str, Entry] | None = None

    def add(self, one: Entry) -> None:
        """Register one."""
        assert one.id not in self._registered, one.id  # noqa: S101 - a programming error
        self._registered[one.id] = one

    def all(self) -> Mapping[str, Entry]:
        """Return all of them by id, in the order of their ids; the modules are found and imported once."""
        if self._found is None:
            for module in iter_modules(import_module(self._package).__path__):
                import_module(f"{self._package}.{module.name}")
            self._found = dict(sorted(self._registered.items()))
        return self._found
