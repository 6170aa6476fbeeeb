#!/usr/bin/env bash
# Ignite's Checkpoint that is to keep the two best models keeps NaN and 0.7, and saves none of the 0.8 and 0.9 to come.
#
# Guess: a score of NaN is not saved, or is the first to give way to a number: of all scores the two highest stay.
# Seen:  until it has as many models as it may keep it saves each, whatever its score. No number is above NaN, and the
#        lowest of the list decides: as soon as NaN stands there, nothing is saved for the rest of the run, with no
#        word. The files look in order, but for one name. A NaN that comes after three scores is passed over, and with
#        `n_saved=1` so is one that comes second.
# With:  pytorch-ignite 0.5.5, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q pytorch-ignite==0.5.5 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import math
import tempfile
from pathlib import Path

import torch
from ignite.engine import Engine, Events
from ignite.handlers import Checkpoint, DiskSaver

for scores in ([0.5, math.nan, 0.7, 0.8, 0.9], [0.5, 0.6, 0.7, math.nan, 0.9], [math.nan, 0.6, 0.7, 0.8, 0.9]):
    for count in (1, 2, 3):
        with tempfile.TemporaryDirectory() as folder:
            left = iter(scores)
            keep = Checkpoint(
                {"model": torch.nn.Linear(1, 1)},
                DiskSaver(folder),
                n_saved=count,
                score_name="score",
                score_function=lambda engine, left=left: next(left),
            )
            trainer = Engine(lambda engine, batch: None)
            trainer.add_event_handler(Events.EPOCH_COMPLETED, keep)
            trainer.run([0], max_epochs=5)
            files = sorted(path.stem.split("=")[1] for path in Path(folder).iterdir())
            print("scores", *scores, "| to keep", count, "| kept", *files)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
scores 0.5 nan 0.7 0.8 0.9 | to keep 1 | kept 0.9000
scores 0.5 nan 0.7 0.8 0.9 | to keep 2 | kept 0.7000 nan
scores 0.5 nan 0.7 0.8 0.9 | to keep 3 | kept 0.7000 0.8000 nan
scores 0.5 0.6 0.7 nan 0.9 | to keep 1 | kept 0.9000
scores 0.5 0.6 0.7 nan 0.9 | to keep 2 | kept 0.7000 0.9000
scores 0.5 0.6 0.7 nan 0.9 | to keep 3 | kept 0.6000 0.7000 0.9000
scores nan 0.6 0.7 0.8 0.9 | to keep 1 | kept nan
scores nan 0.6 0.7 0.8 0.9 | to keep 2 | kept 0.6000 nan
scores nan 0.6 0.7 0.8 0.9 | to keep 3 | kept 0.6000 0.7000 nan
SEEN
