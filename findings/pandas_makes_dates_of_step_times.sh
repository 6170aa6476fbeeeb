#!/usr/bin/env bash
# pandas reads the durations of steps in a JSON log as dates, if all of them are large enough.
#
# Guess: a column of integers stays one; only what looks like a date, or is named in `convert_dates`, becomes a date.
# Seen:  a name that ends with `_time` or `_at`, or begins with `timestamp`, is enough. `step_time` of 350 ms in
#        nanoseconds is a day in 1981, as if it were seconds. One step below 31,536,000 (a year's seconds), here 31.5
#        ms, and the column stays numbers: two runs of one script have two types.
# With:  pandas 3.1.1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q pandas==3.1.1 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import json
from pathlib import Path

import pandas

for name, times in {"slow": [350_000_000, 351_000_000], "one fast": [350_000_000, 31_500_000]}.items():
    rows = [{"step": step, "step_time": time, "step_ns": time} for step, time in enumerate(times)]
    Path("log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    log = pandas.read_json("log.jsonl", lines=True)
    print(name, "step_time", log["step_time"].dtype.kind, log["step_time"][0], "step_ns", log["step_ns"].dtype.kind)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
slow step_time M 1981-02-02 22:13:20 step_ns i
one fast step_time i 350000000 step_ns i
SEEN
