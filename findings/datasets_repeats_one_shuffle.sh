#!/usr/bin/env bash
# A shuffled stream of `datasets` that is repeated has one and the same order in each pass.
#
# Guess: `shuffle(seed=1).repeat(2)` draws a new order for the second pass, as Grain and tf.data do.
# Seen:  both passes are in the same order, so that each batch comes back with the same neighbours. `set_epoch` on a
#        stream without `repeat` draws a new one. In Grain the same two calls draw two orders.
# With:  datasets 5.2.0, grain 0.2.18
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q datasets==5.2.0 grain==0.2.18 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import datasets
import grain

rows = datasets.Dataset.from_dict({"row": list(range(12))}).to_iterable_dataset().shuffle(seed=1, buffer_size=12)
order = [each["row"] for each in rows.repeat(2)]
print("datasets: second pass is as the first", order[:12] == order[12:], "| whole", sorted(order[:12]) == list(range(12)))
rows.set_epoch(1)
print("datasets: epoch 1 is as epoch 0", [each["row"] for each in rows] == order[:12])
order = list(grain.MapDataset.range(12).shuffle(seed=1).repeat(2))
print("grain: second pass is as the first", order[:12] == order[12:], "| whole", sorted(order[:12]) == list(range(12)))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
datasets: second pass is as the first True | whole True
datasets: epoch 1 is as epoch 0 False
grain: second pass is as the first False | whole True
SEEN
