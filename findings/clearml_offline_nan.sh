#!/usr/bin/env bash
# A loss that became NaN or infinite is 0.0 in the files of an offline ClearML task.
#
# Guess: metrics.jsonl has NaN, null or no entry where the loss was not finite.
# Seen:  NaN, inf and -inf are all written as 0.0, which reads like a perfect loss; only a line of log.jsonl says so,
#        once for each kind.
# With:  clearml 2.1.12
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export HOME="$folder" # ClearML keeps its offline sessions there
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q clearml==2.1.12 2>/dev/null
cd "$folder"
env/bin/python - <<'PYTHON' | tail -n 1 | tee seen.txt
import json
import logging

from clearml import Task

Task.set_offline(True)
task = Task.init("project", "task", auto_connect_frameworks=False, auto_resource_monitoring=False)
for step, loss in enumerate([2.5, float("nan"), float("inf"), float("-inf"), 0.5]):
    task.get_logger().report_scalar("loss", "train", loss, step)
folder = task.get_offline_mode_folder()
task.close()
events = [event for line in (folder / "metrics.jsonl").read_text().splitlines() for event in json.loads(line)]
print([(event["iter"], event["value"]) for event in events if event["metric"] == "loss"])
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
[(0, 2.5), (1, 0.0), (2, 0.0), (3, 0.0), (4, 0.5)]
SEEN
