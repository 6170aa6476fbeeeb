"""Audit the pinned packages without a network: `python packaging/audit.py`.

Checked: every line of requirements.lock is one version with hashes; constraints.txt pins the same versions; what is
installed here has these versions; and every installed file is still what its wheel brought (the hashes in RECORD).
Not checked, as it needs a service: known vulnerabilities (`pip-audit -r requirements.lock` asks one), and who published
a package.
"""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).parent.parent
_PIN = re.compile(r"^([A-Za-z0-9][\w.-]*)(?:\[[\w,-]+\])?==([^\s;\\]+)", re.MULTILINE)


def main() -> int:
    """Print what is wrong; return 1 if anything is."""
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pinned = pins(lock)
    problems = [*unlocked(lock), *disagreeing(pinned, pins((ROOT / "constraints.txt").read_text(encoding="utf-8")))]
    installed = 0
    for name, version in pinned.items():
        try:
            one = distribution(name)
        except PackageNotFoundError:
            continue
        installed += 1
        if one.version != version:
            problems.append(f"{name}: {one.version} is installed, {version} is locked")
        problems += changed(one)
    for problem in problems:
        print(problem)
    print(f"{len(pinned)} packages are locked, {installed} of them installed here; {len(problems)} problem(s)")
    return int(bool(problems))


def pins(text: str) -> dict[str, str]:
    """Return the versions that a file pins, by normalized name."""
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in _PIN.findall(text)}


def unlocked(lock: str) -> list[str]:
    """Return the requirements that are not one version with hashes."""
    joined = re.sub(r"\\\n\s*", "", lock)
    lines = [line for line in joined.splitlines() if line.strip() and not line.startswith("#")]
    return [
        f"{line.split(' ')[0]}: not one version with hashes"
        for line in lines
        if not _PIN.match(line) or "--hash=sha256:" not in line
    ]


def disagreeing(lock: dict[str, str], constraints: dict[str, str]) -> list[str]:
    """Return the packages that the two files pin at different versions."""
    return [
        f"{name}: {version} in requirements.lock, {constraints[name]} in constraints.txt"
        for name, version in lock.items()
        if constraints.get(name, version) != version
    ]


def changed(one: Distribution) -> list[str]:
    """Return the installed files that are not what the wheel brought."""
    wrong = []
    for file in one.files or ():
        if file.hash is None:
            continue
        try:
            found = hashlib.new(file.hash.mode, Path(file.locate()).read_bytes()).digest()
        except OSError:
            wrong.append(f"{one.name}: {file} is missing")
            continue
        if base64.urlsafe_b64encode(found).rstrip(b"=").decode() != file.hash.value:
            wrong.append(f"{one.name}: {file} has been changed")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
