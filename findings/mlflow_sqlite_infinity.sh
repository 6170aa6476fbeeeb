#!/usr/bin/env bash
# A loss that became infinite is a finite number in MLflow when its store is a database.
#
# Guess: get_metric_history returns what log_metric was given: inf is inf, nan is nan.
# Seen:  with a SQLite store inf comes back as 1.7976931348623157e+308 and -inf as its negative; nan stays nan.
# With:  mlflow 3.17.2
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q mlflow==3.17.2 2>/dev/null
cd "$folder"
env/bin/python - <<'PYTHON' | tee seen.txt
import logging
import os

os.environ["GIT_PYTHON_REFRESH"] = "quiet"
logging.disable(logging.CRITICAL)
import mlflow

mlflow.set_tracking_uri("sqlite:///store.db")
with mlflow.start_run() as run:
    for step, loss in enumerate([2.5, float("inf"), float("-inf"), float("nan")]):
        mlflow.log_metric("loss", loss, step=step)
for metric in mlflow.MlflowClient().get_metric_history(run.info.run_id, "loss"):
    print(metric.step, metric.value)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
0 2.5
1 1.7976931348623157e+308
2 -1.7976931348623157e+308
3 nan
SEEN
