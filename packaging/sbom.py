"""Write the software bill of materials of an installed mldebug-mcp: `python packaging/sbom.py > sbom.cdx.json`.

CycloneDX 1.6 (https://cyclonedx.org/docs/1.6/json/), made from the metadata of what is installed: the package and all
that it requires here, with the extras that are named. The hashes of the files are in requirements.lock.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import Any

from packaging.requirements import Requirement

PACKAGE = "mldebug-mcp"


def main() -> None:
    """Print the bill."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--extra", action="append", default=[], help="an extra that is installed, too: batch, plot ...")
    json.dump(bill(parser.parse_args().extra), sys.stdout, indent=2)
    print()


def bill(extras: list[str]) -> dict[str, Any]:
    """Return the bill as CycloneDX has it."""
    found = required(PACKAGE, extras)
    components = [component(one) for name, (one, _) in sorted(found.items()) if name != PACKAGE]
    needs = [
        {"ref": purl(one), "dependsOn": sorted(purl(found[name][0]) for name in names)} for one, names in found.values()
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**component(found[PACKAGE][0]), "type": "application"}},
        "components": components,
        "dependencies": sorted(needs, key=lambda one: str(one["ref"])),
    }


def required(package: str, extras: list[str]) -> dict[str, tuple[Distribution, list[str]]]:
    """Return what is installed of a package and all that it requires, by name, each with the names that it requires."""
    found: dict[str, tuple[Distribution, list[str]]] = {}
    pending = [(package, frozenset(extras))]
    seen = set(pending)
    while pending:
        name, chosen = pending.pop()
        try:
            one = distribution(name)
        except PackageNotFoundError:
            if name == package:
                raise SystemExit(f"{name} is not installed here: pip install {name}") from None
            continue  # wanted by an extra of another package, or on another system
        needed = [
            (normal(need.name), frozenset(need.extras))
            for need in map(Requirement, one.requires or ())
            if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in ("", *chosen))
        ]
        names = found.setdefault(name, (one, []))[1]
        names += [need for need, _ in needed if need not in names and is_installed(need)]
        pending += [need for need in needed if need not in seen]
        seen |= set(needed)
    return found


def is_installed(name: str) -> bool:
    """Return whether a package is installed."""
    try:
        return bool(distribution(name))
    except PackageNotFoundError:
        return False


def component(one: Distribution) -> dict[str, Any]:
    """Return a package as a component of the bill."""
    told = one.metadata
    licence = told["License-Expression"] or told["License"] or ""
    known = {"licenses": [{"license": {"name": licence.splitlines()[0][:80]}}]} if licence.strip() else {}
    return {
        "type": "library",
        "bom-ref": purl(one),
        "name": one.name,
        "version": one.version,
        "purl": purl(one),
        **known,
    }


def purl(one: Distribution) -> str:
    """Return the package URL (https://github.com/package-url/purl-spec) of a package."""
    return f"pkg:pypi/{normal(one.name)}@{one.version}"


def normal(name: str) -> str:
    """Return the normalized name of a package (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    main()
