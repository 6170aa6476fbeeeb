#!/usr/bin/env bash
# The loss that spaCy prints jumps from 0.25 to 12.50 in a run that learns nothing and loses nothing.
#
# Guess: LOSS is a mean over the batches since the last row, so a model that stands still has one value in each row.
# Seen:  it is the sum since the last row. The first row, at step 0, is of one batch; the second of all batches up to
#        the next evaluation: each healthy run seems to explode there. With an evaluation each 10 steps in place of 50
#        the same run has a fifth of the loss, and runs of different intervals cannot be held against each other.
# With:  spacy 3.8.18
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q spacy==3.8.18 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | grep -E "^ *[0-9]|^interval" | tee seen.txt
import sys

import spacy
from spacy.cli.init_config import init_config
from spacy.tokens import DocBin
from spacy.training.initialize import init_nlp
from spacy.training.loop import train

language = spacy.blank("en")
for name in ("train", "dev"):
    rows = DocBin()
    for number in range(200):
        row = language("a good film" if number % 2 else "a bad film")
        row.cats = {"good": float(number % 2), "bad": float(1 - number % 2)}
        rows.add(row)
    rows.to_disk(f"{name}.spacy")
for interval in (50, 20):
    config = init_config(lang="en", pipeline=["textcat"], optimize="efficiency")
    config["paths"].update(train="train.spacy", dev="dev.spacy")
    config["training"].update(max_steps=100, eval_frequency=interval)
    config["training"]["optimizer"]["learn_rate"] = 0.0
    print("interval", interval, flush=True)
    train(init_nlp(config), None, stdout=sys.stdout)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
interval 50
  0       0          0.25       33.33    0.33
  8      50         12.50       33.33    0.33
 16     100         12.50       33.33    0.33
interval 20
  0       0          0.25       33.33    0.33
  3      20          5.00       33.33    0.33
  6      40          5.00       33.33    0.33
 10      60          5.00       33.33    0.33
 13      80          5.00       33.33    0.33
 16     100          5.00       33.33    0.33
SEEN
