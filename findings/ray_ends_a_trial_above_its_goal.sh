#!/usr/bin/env bash
# A Ray Tune trial that is to stop once its loss is down to 0.1 stops at its first report, at a loss of 0.8.
#
# Guess: `stop={"loss": 0.1}` with `mode="min"` ends a trial whose loss has come down to 0.1.
# Seen:  each number in `stop` is a ceiling, whatever `mode` says: a trial ends where the value is at or above it. So
#        the loss ends all trials at once, unfinished, without error, and the best of a search is the best first report.
#        A trial that explodes ends like one that has just begun. A function as `stop` does what was meant.
# With:  ray 2.60.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q "ray[tune]==2.60.0" 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | grep "^stop" | tee seen.txt
import logging
from pathlib import Path

import ray
from ray import tune

goal = 0.1
ray.init(num_cpus=1, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)


def train(config: dict) -> None:
    """Report a loss that falls by a fifth at each of 20 steps."""
    for step in range(1, 21):
        tune.report({"loss": 0.8**step, "gain": -(0.8**step)})


for name, stop in {
    "{}": {},
    "{'loss': 0.1}": {"loss": goal},
    "{'gain': -0.1}": {"gain": -goal},
    "a function": lambda trial, result: result["loss"] <= goal,
}.items():
    settings = tune.RunConfig(stop=stop, verbose=0, storage_path=str(Path("results").resolve()))
    tuner = tune.Tuner(train, tune_config=tune.TuneConfig(metric="loss", mode="min"), run_config=settings)
    (result,) = tuner.fit()
    reports, loss = result.metrics["training_iteration"], result.metrics["loss"]
    print("stop =", name, "| reports", reports, "| loss", round(loss, 3), "| error", result.error)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
stop = {} | reports 20 | loss 0.012 | error None
stop = {'loss': 0.1} | reports 1 | loss 0.8 | error None
stop = {'gain': -0.1} | reports 11 | loss 0.086 | error None
stop = a function | reports 11 | loss 0.086 | error None
SEEN
