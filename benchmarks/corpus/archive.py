"""The archives of trained runs: one `tar.xz` for each set, and where it is unpacked to."""

from __future__ import annotations

import hashlib
import io
import shutil
import tarfile
import tempfile
from pathlib import Path

from benchmarks.corpus.labels import INDEX, read_labels

CORPUS = Path(__file__).parent
UNPACKED = CORPUS / "unpacked"
OWN, RECORDED = "own", "recorded"
AUTHORS = ("vision", "language", "science", "industry", "studio", "dialogue")
LATER, HABITS = "later", "habits"
"""Runs of authors who came later. Only the likeness of traits is fitted on them."""
SETS = (OWN, RECORDED, *AUTHORS, LATER, HABITS)
STAMP = "archive.sha256"
"""In an unpacked folder: the archive that it is of."""


def archive_of(name: str) -> Path:
    """Return where the archive of a set lies."""
    return CORPUS / f"{name}.tar.xz"


def digest_of(name: str) -> str:
    """Return the SHA-256 of the archive of a set."""
    return hashlib.sha256(archive_of(name).read_bytes()).hexdigest()


def folder_of(name: str, into: Path = UNPACKED) -> Path:
    """Return the folder of the runs of a set; unpack it first where that is not done yet or the archive is another.

    Raises:
        SystemExit: there is no such set.
    """
    if not archive_of(name).is_file():
        raise SystemExit(
            f"{name}: no such set; there are {', '.join(one for one in SETS if archive_of(one).is_file())}"
        )
    folder, digest = into / name, digest_of(name)
    stamp = folder / STAMP
    if not stamp.is_file() or stamp.read_text(encoding="utf-8") != digest:
        into.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=into) as scratch:  # so that no other command reads half of a set
            fresh = Path(scratch) / name
            unpack(archive_of(name), fresh)
            (fresh / STAMP).write_text(digest, encoding="utf-8")
            shutil.rmtree(folder, ignore_errors=True)
            fresh.rename(folder)
    return folder


def unpack(archive: Path, folder: Path) -> None:
    """Write the files of an archive into a folder.

    Raises:
        tarfile.TarError: a member would be written outside of the folder, or is neither a file nor a folder.
    """
    with tarfile.open(archive) as packed:
        if hasattr(tarfile, "data_filter"):
            packed.extractall(folder, filter="data")
            return
        for member in packed:  # Python before 3.11.4 has no filters
            inside = (folder / member.name).resolve().is_relative_to(folder.resolve())
            if not inside or not (member.isfile() or member.isdir()):
                raise tarfile.TarError(f"{archive}: {member.name} does not belong into the folder")
        packed.extractall(folder)  # noqa: S202 - looked at above


def pack(folder: Path, archive: Path) -> None:
    """Write the runs that the index of a folder lists, and the index, into an archive.

    The same runs give the same bytes. Runs are sorted by the names of their files, as logs of one form next to each
    other compress best.

    Raises:
        SystemExit: the index cannot be read.
    """
    files = [file for run in read_labels(folder) for file in _files(folder / run)]
    files.sort(key=lambda file: (file.suffix, file.name, str(file)))
    with tarfile.open(archive, "w:xz", preset=9) as packed:
        for file in (folder / INDEX, *files):
            content = file.read_bytes()
            entry = tarfile.TarInfo(file.relative_to(folder).as_posix())
            entry.size = len(content)
            packed.addfile(entry, io.BytesIO(content))


def _files(run: Path) -> list[Path]:
    return [file for file in run.rglob("*") if file.is_file()] if run.is_dir() else [run]
