#!/usr/bin/env bash
# PyTorch Geometric adds the number of nodes to a target whose name has "index" in it, from the second graph on.
#
# Guess: `edge_index` is moved on as graphs are joined to a batch; other fields of a graph are put together as they are.
# Seen:  each name that holds "index" is moved on: a class in `class_index` of 1, 1, 1 is 1, 4, 7 in a batch of graphs
#        with three nodes. In batches of one graph nothing happens. In `y` or `target` the classes stay what they are.
#        Nothing is said until a class is beyond the outputs; with as many outputs the model trains on these numbers.
# With:  torch-geometric 2.8.1, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torch-geometric==2.8.1 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

edges, one = torch.tensor([[0, 1], [1, 2]]), torch.tensor([1])
fields = {name: one for name in ("y", "target", "class_index", "index_of_class", "indexed_label")}
graphs = [Data(x=torch.zeros(3, 1), edge_index=edges, **fields) for _ in range(3)]
for size in (1, 3):
    for batch in DataLoader(graphs, batch_size=size):
        found = {name: batch[name].tolist() for name in fields}
    print("batches of", size, found)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
batches of 1 {'y': [1], 'target': [1], 'class_index': [1], 'index_of_class': [1], 'indexed_label': [1]}
batches of 3 {'y': [1, 1, 1], 'target': [1, 1, 1], 'class_index': [1, 4, 7], 'index_of_class': [1, 4, 7], 'indexed_label': [1, 4, 7]}
SEEN
