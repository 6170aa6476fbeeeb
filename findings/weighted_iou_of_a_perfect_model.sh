#!/usr/bin/env bash
# A perfect segmentation has an IoU of 0.25 in segmentation_models_pytorch, once its four classes are given weights.
#
# Guess: weights of classes make a weighted mean: a model that is right at each pixel has 1.0, whatever the weights.
# Seen:  the weights are brought to a sum of 1, and the mean over classes divides by their number once more. So
#        "weighted-imagewise" cannot exceed 0.25 with four classes and 0.05 with twenty, and neither can "macro" and
#        "macro-imagewise" with `class_weights`; "weighted" alone is right. F1, recall and accuracy do the same. A run
#        that has learned all seems to stand still near zero, and thresholds on the score are never met.
# With:  segmentation-models-pytorch 0.6.0, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torch==2.13.0 numpy==2.4.6 2>/dev/null
"$folder/env/bin/pip" install -q --no-deps segmentation-models-pytorch==0.6.0 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import importlib.util
import sys
import types

import torch

# The package loads its encoders first, which need timm and torchvision; its metrics need torch alone.
package = types.ModuleType("segmentation_models_pytorch")
package.__path__ = importlib.util.find_spec(package.__name__).submodule_search_locations
sys.modules[package.__name__] = package
from segmentation_models_pytorch import metrics  # noqa: E402

torch.manual_seed(0)
for classes in (2, 4, 20):
    truth = torch.randint(0, classes, (3, 32, 32))
    counts = metrics.get_stats(truth, truth, mode="multiclass", num_classes=classes)
    weights = torch.rand(classes).tolist()
    print(classes, "classes, all right")
    for reduction in ("macro", "macro-imagewise", "weighted", "weighted-imagewise"):
        scores = []
        for score in (metrics.iou_score, metrics.f1_score, metrics.recall, metrics.accuracy):
            scores.append(f"{float(score(*counts, reduction=reduction, class_weights=weights)):.2f}")
        plain = metrics.iou_score(*counts, reduction=reduction) if reduction.startswith("macro") else 1.0
        print(f"  {reduction}: IoU, F1, recall, accuracy", *scores, f"| without weights {float(plain):.2f}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
2 classes, all right
  macro: IoU, F1, recall, accuracy 0.50 0.50 0.50 0.50 | without weights 1.00
  macro-imagewise: IoU, F1, recall, accuracy 0.50 0.50 0.50 0.50 | without weights 1.00
  weighted: IoU, F1, recall, accuracy 1.00 1.00 1.00 1.00 | without weights 1.00
  weighted-imagewise: IoU, F1, recall, accuracy 0.50 0.50 0.50 0.50 | without weights 1.00
4 classes, all right
  macro: IoU, F1, recall, accuracy 0.25 0.25 0.25 0.25 | without weights 1.00
  macro-imagewise: IoU, F1, recall, accuracy 0.25 0.25 0.25 0.25 | without weights 1.00
  weighted: IoU, F1, recall, accuracy 1.00 1.00 1.00 1.00 | without weights 1.00
  weighted-imagewise: IoU, F1, recall, accuracy 0.25 0.25 0.25 0.25 | without weights 1.00
20 classes, all right
  macro: IoU, F1, recall, accuracy 0.05 0.05 0.05 0.05 | without weights 1.00
  macro-imagewise: IoU, F1, recall, accuracy 0.05 0.05 0.05 0.05 | without weights 1.00
  weighted: IoU, F1, recall, accuracy 1.00 1.00 1.00 1.00 | without weights 1.00
  weighted-imagewise: IoU, F1, recall, accuracy 0.05 0.05 0.05 0.05 | without weights 1.00
SEEN
