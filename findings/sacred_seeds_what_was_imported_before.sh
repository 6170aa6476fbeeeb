#!/usr/bin/env bash
# Two runs of Sacred with seed 0 draw the same numbers in NumPy and others in torch, if the run itself imports torch.
#
# Guess: a run with `seed=0` in its configuration is seeded as a whole, as its record says; or only by one's own calls.
# Seen:  Sacred seeds at the start of a run the libraries that are imported by then. A main function that imports torch,
#        or a module of one's own that does, to start faster, gets other weights each time. The splits of NumPy are the
#        same, and so is the configuration: two runs that should be equal differ by their first loss.
# With:  sacred 0.8.7, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q sacred==0.8.7 "setuptools==79.0.1" torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
cat >run.py <<'PYTHON'
import sys

from sacred import Experiment

if "top" in sys.argv:
    import torch

experiment = Experiment("training", save_git_info=False)


@experiment.main
def main(seed: int) -> None:
    """Draw a split and weights."""
    import numpy
    import torch

    print(seed, numpy.random.permutation(8).tolist(), round(torch.nn.Linear(1, 1).weight.item(), 6), sep=" | ")


experiment.run(config_updates={"seed": 0})
PYTHON
for place in main top; do
    for _ in 1 2 3; do
        env/bin/python run.py "$place" 2>/dev/null
    done >drawn.txt
    echo "torch imported in $place | seeds $(cut -d'|' -f1 drawn.txt | sort -u | wc -l)" \
        "| splits $(cut -d'|' -f2 drawn.txt | sort -u | wc -l) | weights $(cut -d'|' -f3 drawn.txt | sort -u | wc -l)"
done | tee seen.txt
diff seen.txt - <<'SEEN' && echo "as found"
torch imported in main | seeds 1 | splits 1 | weights 3
torch imported in top | seeds 1 | splits 1 | weights 1
SEEN
