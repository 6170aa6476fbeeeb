"""How symptoms and checks are found: by importing the modules of their package, where each registers itself."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules


def import_modules(package: str) -> None:
    """Import every module of a package."""
    for module in iter_modules(import_module(package).__path__):
        import_module(f"{package}.{module.name}")
