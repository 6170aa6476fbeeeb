"""Train all runs: python -m benchmarks.loops.language --into FOLDER."""

import argparse
import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from benchmarks.loops.language.work import attempt, catalogue


def main() -> int:
    """Make the runs and write labels.jsonl."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, required=True, help="folder for a folder per run and labels.jsonl")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--only", default="*", help="pattern of keys such as 'char_lm/ok/*'")
    parser.add_argument("--missing", action="store_true", help="only runs that have no folder yet")
    parser.add_argument("--records", type=Path, help="also keep the logged numbers of each run, for plots")
    args = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    args.into.mkdir(parents=True, exist_ok=True)
    keys = [run.key for run in catalogue(args.only) if not (args.missing and (args.into / run.name).is_dir())]
    failed = 0
    with ProcessPoolExecutor(args.processes, mp_context=get_context("spawn")) as pool:
        for line in pool.map(attempt, keys, [args.into] * len(keys), [args.records] * len(keys)):
            failed += line.startswith("FAILED")
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
    labels = [json.dumps(run.label()) for run in catalogue() if (args.into / run.name).is_dir()]
    (args.into / "labels.jsonl").write_text("\n".join(labels) + "\n", encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
