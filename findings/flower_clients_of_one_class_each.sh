#!/usr/bin/env bash
# Flower's partitioner for independent, identically distributed clients gives each client one class.
#
# Guess: `IidPartitioner` deals rows out at random, so that each client has about the mix of the whole.
# Seen:  it cuts the rows into consecutive blocks. Of a set that is sorted by class, as one is that was read from folders
#        by class, ten clients have one class each: the hardest split of all under the name of the easiest.
#        `DirichletPartitioner`, which is to skew them, leaves more classes to a client even at alpha = 0.1. Federated
#        averaging then looks broken, or a method for skewed clients looks needless. A shuffle before it, which
#        `FederatedDataset` does and a partitioner that is used by itself does not, puts that right.
# With:  flwr-datasets 0.6.1, datasets 4.8.5, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q flwr-datasets==0.6.1 datasets==4.8.5 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
from datasets import Dataset
from flwr_datasets.partitioner import DirichletPartitioner, IidPartitioner

rows = Dataset.from_dict({"label": [number // 100 for number in range(1000)]})
for name, data in {"sorted by class": rows, "shuffled": rows.shuffle(seed=0)}.items():
    for title, split in {
        "IidPartitioner": IidPartitioner(num_partitions=10),
        "DirichletPartitioner 0.1": DirichletPartitioner(10, partition_by="label", alpha=0.1, seed=0),
        "DirichletPartitioner 100": DirichletPartitioner(10, partition_by="label", alpha=100.0, seed=0),
    }.items():
        split.dataset = data
        classes = [len(set(split.load_partition(client)["label"])) for client in range(10)]
        print(name, "|", title, "| classes of each client", *classes)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
sorted by class | IidPartitioner | classes of each client 1 1 1 1 1 1 1 1 1 1
sorted by class | DirichletPartitioner 0.1 | classes of each client 6 4 6 4 6 2 6 3 5 10
sorted by class | DirichletPartitioner 100 | classes of each client 10 10 10 10 10 10 10 10 10 10
shuffled | IidPartitioner | classes of each client 10 10 10 10 10 10 10 10 10 10
shuffled | DirichletPartitioner 0.1 | classes of each client 6 4 6 4 6 2 6 3 5 10
shuffled | DirichletPartitioner 100 | classes of each client 10 10 10 10 10 10 10 10 10 10
SEEN
