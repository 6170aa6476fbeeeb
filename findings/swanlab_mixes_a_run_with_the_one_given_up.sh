#!/usr/bin/env bash
# A run that goes back to a checkpoint leaves SwanLab a curve of old and new points in turn.
#
# Guess: steps that are logged again replace the old ones, or stand next to them; or all steps below the last are
#        refused.
# Seen:  a step that has a value keeps it, and each new step is taken, out of order, too. The file of an offline run so
#        holds the old losses at 10 and 20 and the new ones at 15 and 30: a zigzag between two runs. Nothing is said of
#        the two that are dropped. Trackio, with the same calls, keeps all seven.
# With:  swanlab 0.10.3, trackio 0.43.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q swanlab==0.10.3 trackio==0.43.0 2>/dev/null
cd "$folder"
export HF_HUB_OFFLINE=1 TRACKIO_DIR="$folder/trackio" HOME="$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | grep "^logged\|kept" | tee seen.txt
import pathlib
import sqlite3

import swanlab
import trackio
from swanlab.proto.swanlab.record.v1.record_pb2 import Record
from swanlab.sdk.internal.core_python.store import DataStoreReader

POINTS = [(0, 1.0), (10, 0.8), (20, 0.6), (10, 0.3), (15, 0.25), (20, 0.2), (30, 0.1)]

swanlab.init(project="project", mode="offline", logdir="swanlab")
trackio.init(project="project", name="run", embed=False)
for step, loss in POINTS:
    swanlab.log({"loss": loss}, step=step)
    trackio.log({"loss": loss}, step=step)
swanlab.finish()
trackio.finish()

reader, kept = DataStoreReader(), []
reader.open(next(pathlib.Path("swanlab").glob("*/*.swanlab")))
for record in map(Record.FromString, reader):
    if record.HasField("scalar"):
        kept.append((record.scalar.step, record.scalar.value.number))
print("logged      ", *POINTS)
print("SwanLab kept", *sorted(kept))
database = sqlite3.connect(next(pathlib.Path("trackio").glob("*.db")))
print("Trackio kept", *database.execute("select step, metrics ->> 'loss' from metrics"))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
logged       (0, 1.0) (10, 0.8) (20, 0.6) (10, 0.3) (15, 0.25) (20, 0.2) (30, 0.1)
SwanLab kept (0, 1.0) (10, 0.8) (15, 0.25) (20, 0.6) (30, 0.1)
Trackio kept (0, 1.0) (10, 0.8) (20, 0.6) (10, 0.3) (15, 0.25) (20, 0.2) (30, 0.1)
SEEN
