#!/usr/bin/env bash
# The steps of Lightning's CSV logger begin at 0 again after each hundredth value that Fabric logs without a step.
#
# Guess: a value without a step gets the next one: 250 losses stand at the steps 0 to 249.
# Seen:  the step is the number of rows that are not yet written. Each time rows are written, after 100 of them or as
#        often as `flush_logs_every_n_steps` says, it is 0 again. The file has three losses at step 7, like three runs
#        or one that was begun anew. All rows are there, in their order. TensorBoard's logger puts all at step 0.
# With:  lightning 2.6.6, tensorboard 2.20.0, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q lightning==2.6.6 torch==2.13.0 numpy==2.4.6 tensorboard==2.20.0 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import csv
from pathlib import Path

from lightning.fabric import Fabric
from lightning.fabric.loggers import CSVLogger, TensorBoardLogger
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

for name, options in (("as it comes", {}), ("written each 10", {"flush_logs_every_n_steps": 10})):
    fabric = Fabric(accelerator="cpu", loggers=CSVLogger(name, **options))
    for number in range(250):
        fabric.log("loss", 250.0 - number)
    fabric.logger.finalize("success")
    rows = list(csv.DictReader(next(Path(name).rglob("metrics.csv")).open()))
    steps = [int(row["step"]) for row in rows]
    print(name, "|", len(rows), "rows | highest step", max(steps), "| losses of step 7", end=" ")
    print(*[row["loss"] for row in rows if row["step"] == "7"][:3], "| times at step 0", steps.count(0))
fabric = Fabric(accelerator="cpu", loggers=TensorBoardLogger("board"))
for number in range(250):
    fabric.log("loss", 250.0 - number)
fabric.logger.finalize("success")
steps = [event.step for event in EventAccumulator(fabric.logger.log_dir).Reload().Scalars("loss")]
print("TensorBoard |", len(steps), "rows | highest step", max(steps), "| times at step 0", steps.count(0))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
as it comes | 250 rows | highest step 99 | losses of step 7 243.0 143.0 43.0 | times at step 0 3
written each 10 | 250 rows | highest step 9 | losses of step 7 243.0 233.0 223.0 | times at step 0 25
TensorBoard | 250 rows | highest step 0 | times at step 0 250
SEEN
