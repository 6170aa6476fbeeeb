#!/usr/bin/env bash
# The metric that MLflow shows for a run is that of its highest step, not the one that was logged last.
#
# Guess: `run.data.metrics` and the table of runs hold "the metric value with the latest timestamp", as the docstring
#        of `RunData.metrics` has it.
# Seen:  the highest step wins, whenever it was logged. A run that went back to a checkpoint, or whose second fold
#        counts epochs anew, shows its old loss until it passes that step: here 0.9 in place of 0.2.
# With:  mlflow 3.17.2
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q mlflow==3.17.2 2>/dev/null
cd "$folder"
GIT_PYTHON_REFRESH=quiet env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import mlflow

mlflow.set_tracking_uri("sqlite:///store.db")
with mlflow.start_run() as run:
    for second, (step, loss) in enumerate([(80, 0.5), (100, 0.9), (81, 0.4), (82, 0.3), (83, 0.2)], 1):
        mlflow.log_metric("loss", loss, step=step, timestamp=1000 * second)
print("of the run", mlflow.get_run(run.info.run_id).data.metrics["loss"])
print("in the table", mlflow.search_runs()["metrics.loss"].item())
history = mlflow.MlflowClient().get_metric_history(run.info.run_id, "loss")
print("of the latest timestamp", max(history, key=lambda metric: metric.timestamp).value)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
of the run 0.9
in the table 0.9
of the latest timestamp 0.2
SEEN
