#!/usr/bin/env bash
# A Hyperopt search of learning rates from 0.00001 to 0.1 tries rates from 1.00 to 1.11, and no other.
#
# Guess: `loguniform(name, low, high)` draws between its bounds, like `suggest_float(log=True)` and `tune.loguniform`.
# Seen:  its bounds are exponents of e, and nothing checks them. `quniform` from 1 in steps of 4 leaves its bounds: it
#        rounds to a multiple of 4, and tries 0 layers. `fmin` returns 2 for the batch size 64: the index of a choice.
# With:  hyperopt 0.3.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q hyperopt==0.3.0 numpy==2.4.6 setuptools==80.9.0 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
from math import log

import numpy
from hyperopt import fmin, hp, rand, space_eval

trials = []


def loss(trial):
    """Keep what is tried, and like large batches."""
    trials.append(trial)
    return -trial["batch"]


space = {
    "rate": hp.loguniform("rate", 1e-5, 1e-1),
    "meant": hp.loguniform("meant", log(1e-5), log(1e-1)),
    "layers": hp.quniform("layers", 1, 10, 4),
    "batch": hp.choice("batch", [16, 32, 64]),
}
draw = numpy.random.default_rng(0)
best = fmin(loss, space, rand.suggest, max_evals=1000, rstate=draw, verbose=False, show_progressbar=False)
rates, meant = ([trial[name] for trial in trials] for name in ("rate", "meant"))
print(f"rates from {min(rates):.2f} to {max(rates):.2f}")
print(f"with logarithms, rates from {min(meant):.5f} to {max(meant):.2f}")
print("layers tried", sorted({float(trial["layers"]) for trial in trials}))
print("batch sizes tried", sorted({trial["batch"] for trial in trials}), end=" | ")
print("best of fmin", best["batch"], "| best of space_eval", space_eval(space, best)["batch"])
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
rates from 1.00 to 1.11
with logarithms, rates from 0.00001 to 0.10
layers tried [0.0, 4.0, 8.0]
batch sizes tried [16, 32, 64] | best of fmin 2 | best of space_eval 64
SEEN
