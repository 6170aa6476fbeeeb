#!/usr/bin/env bash
# OGB gives each model a hits@50 of 1.0 where fewer than 50 negative edges are scored, also one that ranks all wrong.
#
# Guess: with fewer negatives hits are easier, and a model that scores each negative above each positive still has 0.
# Seen:  below 50 negatives the answer is 1.0 without a look at the scores. A trial on a small part of the data is
#        perfect, and with the 50th negative a model that ranks all wrong has 0. From there on a tie is a miss: a model
#        that gives all edges one score has 0 as well, where a random one has 0.97.
# With:  ogb 1.3.6, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q ogb==1.3.6 torch==2.13.0 numpy==2.4.6 setuptools==80.9.0 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import numpy
from ogb.linkproppred import Evaluator

draw = numpy.random.default_rng(0)
evaluator = Evaluator(name="ogbl-collab")
for count in (49, 50, 100, 1000):
    found = {}
    for name, positive, negative in (
        ("all right", numpy.ones(500), numpy.zeros(count)),
        ("random", draw.random(500), draw.random(count)),
        ("all wrong", numpy.zeros(500), numpy.ones(count)),
        ("all equal", numpy.zeros(500), numpy.zeros(count)),
    ):
        found[name] = evaluator.eval({"y_pred_pos": positive, "y_pred_neg": negative})["hits@50"]
    print(count, "negatives", found)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
49 negatives {'all right': 1.0, 'random': 1.0, 'all wrong': 1.0, 'all equal': 1.0}
50 negatives {'all right': 1.0, 'random': 0.974, 'all wrong': 0.0, 'all equal': 0.0}
100 negatives {'all right': 1.0, 'random': 0.524, 'all wrong': 0.0, 'all equal': 0.0}
1000 negatives {'all right': 1.0, 'random': 0.058, 'all wrong': 0.0, 'all equal': 0.0}
SEEN
