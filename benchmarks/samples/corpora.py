"""Write small corpora in each format with the real libraries, and keep them as the samples of the tests.

    python -m benchmarks.samples.corpora FOLDER tests/batch/corpora.tar.xz

Run it where the libraries are installed that `benchmarks/corpora/make.py` names, at their versions. If they do not go
together, run it in several environments: what is in FOLDER already stays, and the last run packs the archive. One
archive holds them all, as the same ids stand in each format, which packs them to a few kilobytes for each corpus.
"""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path

from benchmarks.corpora.make import WRITERS, write

CORPORA = (
    "healthy", "end missing", "end wrong", "shard twice", "ids wrapped", "width misread", "validation",
)  # fmt: skip
"""Those whose faults cost most: a whole training."""
DOCUMENTS = 120


def anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Return a member without the owner and time of the machine."""
    member.mtime = member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def main() -> None:
    """Write the archive. Raises SystemExit if a library is missing."""
    folder, out = map(Path, sys.argv[1:])
    write(folder, CORPORA, DOCUMENTS)
    lacking = [name for name in WRITERS if not (folder / name / CORPORA[-1]).is_dir()]
    if lacking:
        sys.exit(f"the libraries of {', '.join(lacking)} are missing; install them and run this again")
    with tarfile.open(out, "w:xz", preset=9) as archive:
        # Corpora of one kind stand next to each other, so that their ids are packed once.
        for corpus in CORPORA:
            for name in WRITERS:
                archive.add(folder / name / corpus, f"{name}/{corpus}", filter=anonymous)
        for config in ("config.json", "large.json"):
            archive.add(folder / config, config, filter=anonymous)


if __name__ == "__main__":
    main()
