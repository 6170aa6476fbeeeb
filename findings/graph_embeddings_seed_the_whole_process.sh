#!/usr/bin/env bash
# Five random splits are two: karateclub and TabNet set the seed of the whole process each time a model is made or fit.
#
# Guess: a model's `seed` is for its own numbers; what the script draws next differs from repeat to repeat.
# Seen:  `fit` of karateclub seeds NumPy and `random` with 42, and a TabNet that is made seeds PyTorch with 0, unasked.
#        So whatever is drawn from there on is the same in each repeat: a random split, a bootstrap, the noise, the
#        first weights of another model. The first repeat alone differs. The spread over five repeats is that of two,
#        and a search that draws its rates with NumPy tries one rate again and again. scikit-learn leaves the
#        process as it was.
# With:  karateclub 1.3.3, gensim 4.4.0, pytorch-tabnet 4.1.0, torch 2.13.0, scikit-learn 1.9.1, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
# karateclub asks for a NumPy that Python 3.11 lacks, and works with this one
"$folder/env/bin/pip" install -q --no-deps karateclub==1.3.3 pygsp==0.6.1 python-louvain==0.16 2>/dev/null
packages="networkx==3.6.1 gensim==4.4.0 decorator==5.2.1 scikit-learn==1.9.1 pandas==2.3.3"
packages="$packages python-Levenshtein==0.27.5 six==1.17.0"
"$folder/env/bin/pip" install -q $packages pytorch-tabnet==4.1.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python -W ignore - 2>/dev/null <<'PYTHON' | tee seen.txt
import random

import networkx
import numpy
import torch
from karateclub import DeepWalk
from pytorch_tabnet.tab_model import TabNetClassifier
from sklearn.linear_model import SGDClassifier

graph = networkx.karate_club_graph()
rows, labels = numpy.arange(40.0).reshape(20, 2), numpy.arange(20) % 2
makers = {
    "karateclub": lambda: DeepWalk(walk_number=1, walk_length=5, dimensions=4, epochs=1).fit(graph),
    "TabNet": lambda: TabNetClassifier(verbose=0),
    "scikit-learn": lambda: SGDClassifier(random_state=42).fit(rows, labels),
}
draws = {
    "NumPy": lambda: tuple(numpy.random.permutation(100)),
    "random": lambda: tuple(random.sample(range(100), 100)),
    "PyTorch": lambda: tuple(torch.randperm(100).tolist()),
}
for name, make in makers.items():
    splits = {source: set() for source in draws}
    for repeat in range(5):
        for source, draw in draws.items():
            splits[source].add(draw())
        make()
    print(name, "| different splits of 5", *[f"| {source} {len(found)}" for source, found in splits.items()])
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
karateclub | different splits of 5 | NumPy 2 | random 2 | PyTorch 5
TabNet | different splits of 5 | NumPy 5 | random 5 | PyTorch 2
scikit-learn | different splits of 5 | NumPy 5 | random 5 | PyTorch 5
SEEN
