"""Inspect the corpora that `make.py` wrote: which planted faults are found, and whether healthy ones are left alone.

    python -m benchmarks.corpora FOLDER

It also gives a file of each format the name of every other one: it has to be read as what it is, or refused.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from benchmarks.corpora.make import FAULTS, WRITERS
from mldebug_mcp.core.errors import MLDebugError
from mldebug_mcp.judge.batch import inspect_batch

EXPECTED: Mapping[str, frozenset[str]] = {
    "end missing": frozenset({"document_end_missing"}),
    "end wrong": frozenset({"document_end_wrong", "document_end_missing"}),
    "documents twice": frozenset({"duplicate_rows", "passages_repeated"}),
    "shard twice": frozenset({"duplicate_rows"}),
    "validation inside": frozenset({"split_leakage"}),
    "ids wrapped": frozenset({"ids_wrapped"}),
    "width misread": frozenset({"dtype_misread"}),
    "truncated": frozenset({"documents_truncated"}),
    "sorted by length": frozenset({"corpus_sorted"}),
    "sorted by source": frozenset({"corpus_sorted"}),
}
STREAMS = frozenset({"nanogpt", "llm_c", "olmo", "npy"})
RAW = frozenset({"nanogpt", "olmo"})
UNSEEN: Mapping[str, tuple[frozenset[str], str]] = {
    "truncated": (STREAMS, "what lacks its end goes over into the next document"),
    "width misread": (RAW, "the file states no width, so it is inferred, and the ids are read as they were written"),
}
"""Faults that some formats cannot show, with the reason."""
SUFFIXES = (".bin", ".idx", ".npy", ".ds", ".mds", ".tar", ".tfrecord", ".array_record", ".arrow", ".parquet", ".npz")


def found(folder: Path, fault: str) -> tuple[frozenset[str], str]:
    """Return the checks that find something above a remark, or the error, in a corpus of a format."""
    path = folder / ("healthy" if fault == "validation inside" else fault)
    model = folder.parent / ("large.json" if fault == "ids wrapped" else "config.json")
    against = folder / "validation" if fault == "validation inside" else None
    try:
        answer = inspect_batch(path, None, model, against=against)
    except MLDebugError as error:
        return frozenset(), f"refused: {error}"
    checks = frozenset(one.check for one in answer.findings if one.severity != "info")
    return checks, ", ".join(sorted(checks)) or "nothing"


def judge(out: Path) -> None:
    """Print what is found in each corpus, and the shares."""
    counts: Counter[str] = Counter()
    for name in WRITERS:
        folder = out / name
        if not (folder / "healthy").is_dir():
            print(f"{name:14} not written")
            continue
        for fault in ("healthy", *FAULTS):
            checks, said = found(folder, fault)
            if fault == "healthy":
                right = not checks and said == "nothing"
            elif name in UNSEEN.get(fault, (frozenset(), ""))[0]:
                print(f"{name:14} {fault:18} cannot be said: {UNSEEN[fault][1]}")
                continue
            else:
                right = bool(checks & EXPECTED[fault])
            counts[f"{'healthy' if fault == 'healthy' else 'fault'} {'right' if right else 'wrong'}"] += 1
            print(f"{name:14} {fault:18} {'right' if right else 'WRONG'}  {said[:160]}")
    for kind in ("healthy", "fault"):
        total = counts[f"{kind} right"] + counts[f"{kind} wrong"]
        print(f"{kind}: {counts[f'{kind} right']} of {total}")


def rename(out: Path) -> None:
    """Print which formats are taken for another one under another's name."""
    tokens: dict[str, tuple[str, int | None]] = {}
    tried, misread = 0, []
    for name in WRITERS:
        healthy = out / name / "healthy"
        files = sorted(one for one in healthy.glob("*") if one.is_file() and one.suffix in {*SUFFIXES, ".zstd"})
        if not files:
            continue
        content = files[0]
        for suffix in (*SUFFIXES, ".dat"):
            with tempfile.TemporaryDirectory() as place:
                path = Path(place) / f"renamed{suffix}"
                shutil.copy(content, path)
                tried += 1
                try:
                    answer = inspect_batch(path)
                except MLDebugError:
                    continue
                held = (answer.batch.formats[0], answer.batch.vocabulary_used)
                known = tokens.setdefault(name, held)
                if held != known:
                    misread.append(f"{name} as {suffix}: {held}, and elsewhere {known}")
    print(f"files under other names: {tried} tried, {len(misread)} misread")
    print("\n".join(misread))


def main() -> None:
    """Judge all corpora, and rename one file of each."""
    out = Path(sys.argv[1])
    judge(out)
    rename(out)


if __name__ == "__main__":
    main()
