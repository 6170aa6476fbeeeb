"""Write where a release comes from: `python packaging/provenance.py dist/* > provenance.json`.

An in-toto statement (https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md) with a SLSA provenance
(https://slsa.dev/spec/v1.0/provenance): which files by SHA-256, of which commit, built by which Python, with which
pinned packages. It is not signed: it lets everybody build again and compare, and proves nothing of who built it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BUILT = "python -m build"
PINNED = ("requirements.lock", "constraints.txt")


def main() -> None:
    """Print the statement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, help="what was built: wheel, source archive, bundle")
    json.dump(statement(parser.parse_args().files), sys.stdout, indent=2)
    print()


def statement(files: list[Path]) -> dict[str, Any]:
    """Return the statement on built files.

    Raises:
        SystemExit: a file is not there, or the working tree differs from its commit.
    """
    missing = [str(file) for file in files if not file.is_file()]
    if missing:
        raise SystemExit(f"{', '.join(missing)}: no such file; build first, with {BUILT}")
    if changed := git("status", "--porcelain", "--untracked-files=no"):
        raise SystemExit(f"files differ from the commit, so it does not say what was built; commit first:\n{changed}")
    source = {"name": "source", "digest": {"gitCommit": git("rev-parse", "HEAD")}}
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [described(file) for file in files],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "https://packaging.python.org/en/latest/tutorials/packaging-projects/",
                "externalParameters": {"command": BUILT},
                "internalParameters": {"python": platform.python_version(), "system": platform.system()},
                "resolvedDependencies": [source, *(described(ROOT / name) for name in PINNED)],
            },
            "runDetails": {"builder": {"id": "by-hand"}},
        },
    }


def described(file: Path) -> dict[str, Any]:
    """Return a file by name and hash."""
    return {"name": file.name, "digest": {"sha256": hashlib.sha256(file.read_bytes()).hexdigest()}}


def git(*command: str) -> str:
    """Return what git says of this repository."""
    done = subprocess.run(["git", "-C", str(ROOT), *command], capture_output=True, text=True, check=False)  # noqa: S607 - as the shell finds it
    if done.returncode:
        raise SystemExit(f"git says nothing of {ROOT} ({done.stderr.strip()}); run this in a clone")
    return done.stdout.strip()


if __name__ == "__main__":
    main()
