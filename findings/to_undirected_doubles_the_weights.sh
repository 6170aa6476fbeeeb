#!/usr/bin/env bash
# Edge weights double each time PyTorch Geometric makes a graph undirected, though it was undirected before.
#
# Guess: `ToUndirected` on a graph whose edges all go both ways changes nothing; distances stay what they are.
# Seen:  it adds each edge backwards and sums the attributes of edges that are then twice there. Weights double at each
#        call: in `pre_transform` and again in `transform`, they are four times as large. Where only some edges
#        went both ways, those weigh twice as much as the others. `reduce="mean"` keeps them.
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
from torch_geometric.transforms import ToUndirected

for name, edges in {"all both ways": [[0, 1, 1, 2], [1, 0, 2, 1]], "one of two": [[0, 1, 1], [1, 0, 2]]}.items():
    for reduce in ({}, {"reduce": "mean"}):
        weights = torch.ones(len(edges[0]))
        graph = Data(edge_index=torch.tensor(edges), edge_attr=weights, num_nodes=3)
        change, seen = ToUndirected(**reduce), []
        for _ in range(2):
            graph = change(graph)
            seen.append(graph.edge_attr.int().tolist())
        print(name, reduce, "| once", seen[0], "| twice", seen[1])
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
all both ways {} | once [2, 2, 2, 2] | twice [4, 4, 4, 4]
all both ways {'reduce': 'mean'} | once [1, 1, 1, 1] | twice [1, 1, 1, 1]
one of two {} | once [2, 2, 1, 1] | twice [4, 4, 2, 2]
one of two {'reduce': 'mean'} | once [1, 1, 1, 1] | twice [1, 1, 1, 1]
SEEN
