#!/usr/bin/env bash
# A line of JSON with NaN, as Python writes it, stops polars and is a number for pandas, Arrow and DuckDB.
#
# Guess: either all readers of JSON lines refuse NaN and Infinity, which the standard lacks, or ignore_errors passes
#        over them.
# Seen:  pandas, pyarrow and DuckDB read them as numbers; polars raises, with ignore_errors=True as well.
# With:  polars 2.1.0, pandas 3.1.1, pyarrow 25.0.1, duckdb 2.0.1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q polars==2.1.0 pandas==3.1.1 pyarrow==25.0.1 duckdb==2.0.1 2>/dev/null
cd "$folder"
env/bin/python - <<'PYTHON' | tee seen.txt
import json
from pathlib import Path

import duckdb
import pandas
import polars
import pyarrow.json

lines = [json.dumps({"step": step, "loss": loss}) for step, loss in enumerate([2.5, float("nan"), float("inf")])]
Path("metrics.jsonl").write_text("\n".join(lines) + "\n")
print("pandas", pandas.read_json("metrics.jsonl", lines=True)["loss"].tolist())
print("pyarrow", pyarrow.json.read_json("metrics.jsonl")["loss"].to_pylist())
print("duckdb", [row[0] for row in duckdb.sql("select loss from read_json('metrics.jsonl')").fetchall()])
for ignore in (False, True):
    try:
        print("polars", polars.read_ndjson("metrics.jsonl", ignore_errors=ignore)["loss"].to_list())
    except polars.exceptions.ComputeError:
        print("polars raises ComputeError, ignore_errors", ignore)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
pandas [2.5, nan, inf]
pyarrow [2.5, nan, inf]
duckdb [2.5, nan, inf]
polars raises ComputeError, ignore_errors False
polars raises ComputeError, ignore_errors True
SEEN
