#!/usr/bin/env bash
# A list of records, such as the Trainer's `log_history`, loses `eval_loss` as it becomes a table.
#
# Guess: the table has the keys of all records, with gaps, as a DataFrame of pandas has.
# Seen:  pyarrow and datasets take the keys of the first record alone. polars takes those of the first 100, from a list
#        and from a file of JSON lines, so that an evaluation each 1,000 steps is gone. None of them says so.
#        datasets.load_dataset and DuckDB keep the column of a file.
# With:  pandas 3.1.1, polars 2.1.0, pyarrow 25.0.1, datasets 5.2.0, duckdb 2.0.1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q pandas==3.1.1 polars==2.1.0 pyarrow==25.0.1 datasets==5.2.0 duckdb==2.0.1 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import json
from pathlib import Path

import datasets
import duckdb
import pandas
import polars
import pyarrow

for evaluated in (2, 101):
    log = [{"step": step, "loss": 1 / step} for step in range(1, 151)]
    log[evaluated - 1]["eval_loss"] = 0.5
    file = f"log{evaluated}.jsonl"
    Path(file).write_text("".join(json.dumps(record) + "\n" for record in log))
    from_file = datasets.load_dataset("json", data_files=file, split="train", cache_dir="cache")
    kept = {
        "pandas": pandas.DataFrame(log).columns,
        "polars": polars.DataFrame(log).columns,
        "pyarrow": pyarrow.Table.from_pylist(log).column_names,
        "datasets": datasets.Dataset.from_list(log).column_names,
        "polars, file": polars.read_ndjson(file).columns,
        "datasets, file": from_file.column_names,
        "duckdb, file": duckdb.sql(f"select * from '{file}'").columns,
    }
    print("eval_loss in record", evaluated, {name: "eval_loss" in columns for name, columns in kept.items()})
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
eval_loss in record 2 {'pandas': True, 'polars': True, 'pyarrow': False, 'datasets': False, 'polars, file': True, 'datasets, file': True, 'duckdb, file': True}
eval_loss in record 101 {'pandas': True, 'polars': False, 'pyarrow': False, 'datasets': False, 'polars, file': False, 'datasets, file': True, 'duckdb, file': True}
SEEN
