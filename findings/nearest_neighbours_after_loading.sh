#!/usr/bin/env bash
# An index of hnswlib has a recall of 1.0 in the run that made it, and of 0.5 once it was saved and loaded.
#
# Guess: a saved index answers as it did before, down to its settings.
# Seen:  `set_ef`, how far a search looks, is not in the file: a loaded index is at 10 again, and says nothing. Half of
#        the ten nearest neighbours are others, so that mined negatives, labels by neighbours and a recall of retrieval
#        differ between the run and its service, as if the model had got worse. A copy by `pickle` keeps it.
#        Resized, or with rows added, an index keeps it, too.
# With:  hnswlib 0.8.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q hnswlib==0.8.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import pickle

import hnswlib
import numpy

draw = numpy.random.default_rng(0)
rows, asked = draw.normal(size=(5000, 64)).astype("float32"), draw.normal(size=(200, 64)).astype("float32")
distances = ((asked[:, None] - rows[None]) ** 2).sum(axis=2)
true = numpy.argsort(distances, axis=1)[:, :10]


def shown(name, index):
    found, _ = index.knn_query(asked, k=10, num_threads=1)
    recall = numpy.mean([len(set(row) & set(best)) / 10 for row, best in zip(found, true)])
    print(f"{name} | ef {index.ef} | recall {recall:.1f}")


made = hnswlib.Index("l2", 64)
made.init_index(5000, ef_construction=200, M=16)
made.add_items(rows, num_threads=1)
made.set_ef(300)
shown("made", made)
made.save_index("index.bin")
loaded = hnswlib.Index("l2", 64)
loaded.load_index("index.bin")
shown("saved and loaded", loaded)
loaded.set_ef(300)
shown("loaded, set again", loaded)
shown("pickled", pickle.loads(pickle.dumps(made)))
made.resize_index(6000)
made.add_items(rows[:1] + 1000, [5000], num_threads=1)
shown("resized, one row added", made)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
made | ef 300 | recall 1.0
saved and loaded | ef 10 | recall 0.5
loaded, set again | ef 300 | recall 1.0
pickled | ef 300 | recall 1.0
resized, one row added | ef 300 | recall 1.0
SEEN
