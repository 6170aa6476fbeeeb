#!/usr/bin/env bash
# A shuffled stream of LitData gives batches of one class, and its train_test_split a test set of two classes of ten.
#
# Guess: `shuffle=True` mixes rows over the whole set, or over a large buffer, and a split draws rows at random.
# Seen:  chunks are drawn in a random order, and the rows within each; chunks are read one after the other. Of a set
#        that was written sorted by class, most batches have one class, as without a shuffle: batch normalization
#        sees one class, and the loss goes in waves. `train_test_split` deals whole chunks out, so that the test set has
#        the classes, or the recordings, of a few chunks, and training lacks them. Both are well if the rows were mixed
#        as the set was written.
# With:  litdata 0.2.76, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q litdata==0.2.76 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
cat > rows.py <<'PYTHON'
import random

import litdata
from torch.utils.data import DataLoader


def row(number):
    return {"class": number // 100, "number": number}


def mean_classes(batches):
    kinds = [len(set(batch["class"].tolist())) for batch in batches]
    return sum(kinds) / len(kinds)


def main():
    order = list(range(1000))
    for name in ("sorted by class", "mixed"):
        if name == "mixed":
            random.Random(0).shuffle(order)
        folder = name.replace(" ", "_")
        litdata.optimize(fn=row, inputs=order, output_dir=folder, num_workers=1, chunk_size=100, verbose=False)
        for shuffle in (False, True):
            stream = litdata.StreamingDataset(folder, shuffle=shuffle)
            classes = mean_classes(litdata.StreamingDataLoader(stream, batch_size=20))
            print(f"{name} | litdata, shuffle {shuffle} | mean classes of a batch {classes:.0f}")
        classes = mean_classes(DataLoader([row(number) for number in order], batch_size=20, shuffle=True))
        print(f"{name} | PyTorch, shuffle True | mean classes of a batch {classes:.0f}")
        parts = litdata.train_test_split(litdata.StreamingDataset(folder), splits=[0.8, 0.2])
        kinds = [len({row["class"] for row in part}) for part in parts]
        print(f"{name} | litdata, train_test_split | classes in training {kinds[0]} | in the test {kinds[1]}")


if __name__ == "__main__":
    main()
PYTHON
env/bin/python -W ignore rows.py 2>/dev/null | grep " | " | tee seen.txt
diff seen.txt - <<'SEEN' && echo "as found"
sorted by class | litdata, shuffle False | mean classes of a batch 1
sorted by class | litdata, shuffle True | mean classes of a batch 1
sorted by class | PyTorch, shuffle True | mean classes of a batch 9
sorted by class | litdata, train_test_split | classes in training 8 | in the test 2
mixed | litdata, shuffle False | mean classes of a batch 9
mixed | litdata, shuffle True | mean classes of a batch 9
mixed | PyTorch, shuffle True | mean classes of a batch 9
mixed | litdata, train_test_split | classes in training 10 | in the test 10
SEEN
