#!/usr/bin/env bash
# The JSON file that tensorboardX exports holds no value of `add_scalar`, and only what came after the last export.
#
# Guess: export_scalars_to_json writes all scalars of the writer, so one call at each checkpoint keeps the curve so far.
# Seen:  only `add_scalars` is kept for it. A loss logged with `add_scalar` is not in the file, and nothing is said of
#        it. Each call also forgets what it wrote: a second call to the same path loses the beginning of the curve.
# With:  tensorboardX 2.6.5
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q tensorboardX==2.6.5 2>/dev/null
cd "$folder"
env/bin/python - <<'PYTHON' | tee seen.txt
import json
from pathlib import Path

from tensorboardX import SummaryWriter

writer = SummaryWriter("run")
for step in range(6):
    writer.add_scalar("loss", 1 / (step + 1), step)
    writer.add_scalars("both", {"train": 1 / (step + 1), "valid": 2 / (step + 1)}, step)
    if step in (2, 5):
        writer.export_scalars_to_json("scalars.json")
        curves = json.loads(Path("scalars.json").read_text())
        print(step, {name: [point[1] for point in curve] for name, curve in curves.items()})
writer.close()
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
2 {'run/both/train': [0, 1, 2], 'run/both/valid': [0, 1, 2]}
5 {'run/both/train': [3, 4, 5], 'run/both/valid': [3, 4, 5]}
SEEN
