#!/usr/bin/env bash
# A model whose outputs are all NaN has a top-5 accuracy, a hit rate and a mean reciprocal rank of 1.0 in torcheval.
#
# Guess: a metric of NaN is NaN, or the model counts as wrong in each row; an epoch with a record score had numbers.
# Seen:  a rank is the count of classes that score higher than the right one, and no number is higher than NaN. So each
#        rank is the first. A model that gives all classes one number has the same perfect score. Top-1 accuracy counts
#        another way, and is the share of class 0. The AUROC of NaN is 0.62, 0.38 or 0.00 by the order of rows.
#        torchmetrics has chance for the top 5, and the same AUROC. What keeps the best checkpoint keeps the broken
#        model.
# With:  torcheval 0.0.7, torchmetrics 1.9.0, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torcheval==0.0.7 torchmetrics==1.9.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import torch
from torcheval.metrics.functional import binary_auroc, hit_rate, multiclass_accuracy, reciprocal_rank
from torchmetrics.functional.classification import binary_auroc as other_auroc
from torchmetrics.functional.classification import multiclass_accuracy as other_accuracy

labels = torch.arange(20)
half = torch.tensor([1, 0] * 4)
for name, fill in (("NaN", float("nan")), ("one number", 0.5), ("random", None)):
    torch.manual_seed(0)
    outputs = torch.rand(20, 20) if fill is None else torch.full((20, 20), fill)
    accuracy = {k: multiclass_accuracy(outputs, labels, num_classes=20, k=k).item() for k in (1, 5)}
    print(name, f"| top-1 {accuracy[1]:.2f} top-5 {accuracy[5]:.2f}", end=" ")
    ranks = hit_rate(outputs, labels, k=5).mean(), reciprocal_rank(outputs, labels).mean()
    print("hit rate {:.2f} MRR {:.2f}".format(*ranks), end="")
    scores = outputs[0, :8]
    aurocs = [binary_auroc(scores, order).item() for order in (half, half.flip(0), half.sort().values)]
    print(" AUROC", *(f"{value:.2f}" for value in aurocs), end=" | ")
    others = {k: other_accuracy(outputs, labels, num_classes=20, top_k=k).item() for k in (1, 5)}
    print(f"torchmetrics top-1 {others[1]:.2f} top-5 {others[5]:.2f}", end=" ")
    print(f"AUROC {other_auroc(scores, half).item():.2f}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
NaN | top-1 0.05 top-5 1.00 hit rate 1.00 MRR 1.00 AUROC 0.62 0.38 0.00 | torchmetrics top-1 0.05 top-5 0.25 AUROC 0.62
one number | top-1 0.05 top-5 1.00 hit rate 1.00 MRR 1.00 AUROC 0.50 0.50 0.50 | torchmetrics top-1 0.05 top-5 0.25 AUROC 0.50
random | top-1 0.10 top-5 0.30 hit rate 0.30 MRR 0.23 AUROC 0.19 0.81 0.69 | torchmetrics top-1 0.10 top-5 0.30 AUROC 0.19
SEEN
