#!/usr/bin/env bash
# The run whose score became NaN is the best one, where runs are sorted by score in polars or DuckDB.
#
# Guess: NaN goes last, or its run is left out, so that the first row is the run with the highest accuracy.
# Seen:  polars and DuckDB hold NaN for the largest number: it leads a descending sort, `top_k` and SQL's `arg_max`, as
#        it does NumPy's `argmax` and PyTorch's `topk`. polars' own `arg_max` leaves it out; pandas sorts it last.
#        DuckDB takes NaN in a table of pandas for missing, and sorts it last: one query, two winners.
# With:  polars 2.1.0, duckdb 2.0.1, pandas 3.1.1, numpy 2.4.6, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q polars==2.1.0 duckdb==2.0.1 pandas==3.1.1 numpy==2.4.6 torch==2.13.0 pyarrow==25.0.1 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import duckdb
import numpy
import pandas
import polars
import torch

names, scores = ["good", "diverged", "fair"], [0.9, float("nan"), 0.8]
table_of_polars = polars.DataFrame({"run": names, "score": scores})
frame_of_pandas = pandas.DataFrame({"run": names, "score": scores})
print("pandas sorted", frame_of_pandas.sort_values("score", ascending=False)["run"].tolist())
print("polars sorted", table_of_polars.sort("score", descending=True)["run"].to_list())
print("polars top_k", table_of_polars.top_k(1, by="score")["run"][0], "arg_max", names[table_of_polars["score"].arg_max()])
for rows in ("table_of_polars", "frame_of_pandas"):
    ordered = [row[0] for row in duckdb.sql(f"select run from {rows} order by score desc").fetchall()]
    print("duckdb", rows, ordered, "arg_max", duckdb.sql(f"select arg_max(run, score) from {rows}").fetchall()[0][0])
print("numpy argmax", names[numpy.argmax(scores)], "torch topk", names[torch.tensor(scores).topk(1).indices.item()])
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
pandas sorted ['good', 'fair', 'diverged']
polars sorted ['diverged', 'good', 'fair']
polars top_k diverged arg_max good
duckdb table_of_polars ['diverged', 'good', 'fair'] arg_max diverged
duckdb frame_of_pandas ['good', 'fair', 'diverged'] arg_max good
numpy argmax diverged torch topk diverged
SEEN
