#!/usr/bin/env bash
# Where Keras accumulates gradients, its learning rate schedule runs by batches, not by updates.
#
# Guess: a schedule over 20 steps covers 20 updates, which is what `optimizer.iterations` counts.
# Seen:  with `gradient_accumulation_steps=4` the schedule is asked with the number of batches. A cosine over 20 steps
#        is at 0 after five updates, which move a weight by 2.25 in place of 4.82.
# With:  keras 3.15.1 on torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q keras==3.15.1 torch==2.13.0 2>/dev/null
cd "$folder"
KERAS_BACKEND=torch env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import keras
import torch

for accumulated in (None, 4):
    schedule = keras.optimizers.schedules.CosineDecay(1.0, 20)
    optimizer = keras.optimizers.SGD(schedule, gradient_accumulation_steps=accumulated)
    weight = keras.Variable([0.0])
    optimizer.build([weight])
    for batch in range(20):
        optimizer.apply([torch.tensor([-1.0])])
    updates = int(optimizer.iterations)
    by_update = sum(float(schedule(update)) for update in range(updates))
    print("accumulated", accumulated, "| updates", updates, "| rate", round(float(optimizer.learning_rate), 2), end=" ")
    print("| moved", round(float(weight.value.detach()[0]), 2), "| by a schedule of updates", round(by_update, 2))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
accumulated None | updates 20 | rate 0.0 | moved 10.5 | by a schedule of updates 10.5
accumulated 4 | updates 5 | rate 0.0 | moved 2.25 | by a schedule of updates 4.82
SEEN
