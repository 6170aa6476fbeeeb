#!/usr/bin/env bash
# polars reads one and the same metric column as text or as numbers, by the row in which a lower-case nan stands.
#
# Guess: polars.read_csv takes nan, which Python, NumPy and C print, for a number, as it does NaN and inf.
# Seen:  within the 100 rows from which types are guessed, nan makes the column text; below them it is read as a
#        number.
# With:  polars 2.1.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q polars==2.1.0 2>/dev/null
cd "$folder"
env/bin/python - <<'PYTHON' | tee seen.txt
import io
import polars

print("polars", polars.__version__)
for name, rows in {
    "NaN in row 2": ["2.5", "NaN", "2.3"],
    "inf in row 2": ["2.5", "inf", "2.3"],
    "nan in row 2": ["2.5", "nan", "2.3"],
    "nan in row 150": ["2.5"] * 149 + ["nan"],
}.items():
    column = polars.read_csv(io.StringIO("loss\n" + "\n".join(rows) + "\n"))["loss"]
    print(name, column.dtype, repr(column[1 if len(rows) < 100 else 149]))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
polars 2.1.0
NaN in row 2 Float64 nan
inf in row 2 Float64 inf
nan in row 2 String 'nan'
nan in row 150 Float64 nan
SEEN
