#!/usr/bin/env bash
# Two metrics of a torchmetrics collection are one for the rest of the run, if the first batch makes their counts equal.
#
# Guess: each metric of a `MetricCollection` counts for itself, so that F1 at a threshold of 0.9 has its own value.
# Seen:  after the first batch, metrics whose counts are equal are taken for one, and share the counts of the first.
#        A first batch without scores from 0.5 to 0.9 makes F1 at 0.9 that at 0.5: 0.44 in place of 1.0. A first batch
#        without class 0 does it to an accuracy that leaves class 0 out. `reset` keeps it, so that a batch of a sanity
#        check is enough, and it depends on the order of rows. `compute_groups=False` counts each for itself.
# With:  torchmetrics 1.9.0, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torchmetrics==1.9.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
from torch import tensor
from torchmetrics import MetricCollection
from torchmetrics.classification import BinaryF1Score, MulticlassAccuracy

kinds = {
    "F1": lambda: {f"at_{tenths}": BinaryF1Score(threshold=tenths / 10) for tenths in (5, 9)},
    "accuracy": lambda: {
        "all": MulticlassAccuracy(3, average="micro"),
        "without_0": MulticlassAccuracy(3, average="micro", ignore_index=0),
    },
}
batches = {
    "F1": [([0.1, 0.2, 0.95], [0, 0, 1]), ([0.6, 0.7, 0.8, 0.95], [0, 0, 0, 1])],
    "accuracy": [([1, 2], [1, 2]), ([0, 0, 0, 2], [0, 0, 0, 1])],
}
for kind, metrics in kinds.items():
    (usual, clear) = (tuple(map(tensor, batch)) for batch in reversed(batches[kind]))
    for name, first, options in (
        ("the clear batch first", clear, {}),
        ("another batch first", usual, {}),
        ("the clear batch first, no groups", clear, {"compute_groups": False}),
    ):
        collection = MetricCollection(metrics(), **options)
        collection.update(*first)
        collection.reset()
        for batch in (clear, *[usual] * 5):
            collection.update(*batch)
        print(kind, "|", name, "|", {key: round(float(value), 2) for key, value in collection.compute().items()})
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
F1 | the clear batch first | {'at_5': 0.44, 'at_9': 0.44}
F1 | another batch first | {'at_5': 0.44, 'at_9': 1.0}
F1 | the clear batch first, no groups | {'at_5': 0.44, 'at_9': 1.0}
accuracy | the clear batch first | {'all': 0.77, 'without_0': 0.77}
accuracy | another batch first | {'all': 0.77, 'without_0': 0.29}
accuracy | the clear batch first, no groups | {'all': 0.77, 'without_0': 0.29}
SEEN
