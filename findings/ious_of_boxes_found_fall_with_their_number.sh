#!/usr/bin/env bash
# A detector that finds ten objects exactly, box for box, has an IoU of 0.1 in torchmetrics, and a GIoU of -0.5.
#
# Guess: the IoU of an image is the mean over the pairs that match: 1.0 for boxes that are all right.
# Seen:  `IntersectionOverUnion` takes the mean over all pairs of a box found and a box to find that share a label. Of n
#        equal objects n pairs in n * n are matches, so that the perfect IoU is 1/n. GIoU, DIoU and CIoU are below zero
#        for the pairs that are not meant. If each object has a class of its own, or an `iou_threshold` is set, the same
#        boxes have 1.0; so a data set of many classes hides it, and one of crowds looks like a model that fails.
# With:  torchmetrics 1.9.0, torchvision 0.28.0, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torchmetrics==1.9.0 torchvision==0.28.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import torch

try:
    import torchvision
except RuntimeError:  # a torch without CUDA next to a torchvision with it lacks two operators, which no metric needs
    for name in ("nms", "qnms"):
        torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
from torchmetrics import detection


def score(metric, boxes, labels):
    """Return the score of boxes that are found exactly."""
    there = {"boxes": boxes, "labels": labels}
    metric.update([{**there, "scores": torch.ones(len(boxes))}], [there])
    return next(iter(metric.compute().values())).item()


for number in (1, 2, 5, 10):
    boxes = torch.tensor([[20.0 * column, 0.0, 20.0 * column + 10, 10.0] for column in range(number)])
    alike, apart = torch.zeros(number, dtype=int), torch.arange(number)
    print(number, "objects, all found |", end=" ")
    for kind in ("Intersection", "GeneralizedIntersection", "DistanceIntersection", "CompleteIntersection"):
        metric = getattr(detection, f"{kind}OverUnion")
        print(f"{kind} {score(metric(), boxes, alike):.2f}", end=" | ")
    print(f"of different classes {score(detection.IntersectionOverUnion(), boxes, apart):.2f}", end=" | ")
    print(f"iou_threshold=0.5 {score(detection.IntersectionOverUnion(iou_threshold=0.5), boxes, alike):.2f}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
1 objects, all found | Intersection 1.00 | GeneralizedIntersection 1.00 | DistanceIntersection 1.00 | CompleteIntersection 1.00 | of different classes 1.00 | iou_threshold=0.5 1.00
2 objects, all found | Intersection 0.50 | GeneralizedIntersection 0.33 | DistanceIntersection 0.30 | CompleteIntersection 0.30 | of different classes 1.00 | iou_threshold=0.5 1.00
5 objects, all found | Intersection 0.20 | GeneralizedIntersection -0.23 | DistanceIntersection -0.25 | CompleteIntersection -0.25 | of different classes 1.00 | iou_threshold=0.5 1.00
10 objects, all found | Intersection 0.10 | GeneralizedIntersection -0.50 | DistanceIntersection -0.52 | CompleteIntersection -0.52 | of different classes 1.00 | iou_threshold=0.5 1.00
SEEN
