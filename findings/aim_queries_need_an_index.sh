#!/usr/bin/env bash
# Aim's queries find no run before an index is made, and its values are listed by hashes of their steps.
#
# Guess: once a script has closed its run, `Repo.query_metrics` yields its metrics, and `values.sparse_list()` gives
#        steps with values.
# Seen:  the query yields nothing until `aim storage reindex` (or the server of `aim up`) has made the index.
#        `values.sparse_list()` then gives hashes as the steps; `data.items_list()` gives the steps.
# With:  aim 3.29.1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q aim==3.29.1 2>/dev/null
mkdir "$folder/project"
cd "$folder/project"
"$folder/env/bin/aim" init >/dev/null 2>&1
cat > log.py <<'PYTHON'
from aim import Run
run = Run(capture_terminal_logs=False, system_tracking_interval=None)
for step in range(5):
    run.track(2.5 * 0.9**step, name="loss", step=step)
run.close()
PYTHON
"$folder/env/bin/python" log.py >/dev/null 2>&1
cat > query.py <<'PYTHON'
import aim
metrics = [metric for run in aim.Repo(".").query_metrics("True").iter_runs() for metric in run]
print("metrics", len(metrics))
for metric in metrics:
    print("sparse_list counts from 0", sorted(metric.values.sparse_list()[0]) == [0, 1, 2, 3, 4])
    print("items_list counts from 0", list(metric.data.items_list()[0]) == [0, 1, 2, 3, 4])
PYTHON
"$folder/env/bin/python" query.py 2>/dev/null | tee ../seen.txt
(yes || true) | "$folder/env/bin/aim" storage reindex >/dev/null 2>&1
"$folder/env/bin/python" query.py 2>/dev/null | tee -a ../seen.txt
diff ../seen.txt - <<'SEEN' && echo "as found"
metrics 0
metrics 1
sparse_list counts from 0 False
items_list counts from 0 True
SEEN
