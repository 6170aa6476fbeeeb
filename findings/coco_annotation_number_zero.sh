#!/usr/bin/env bash
# A detector that finds each object, box for box, has a COCO AP of 0.564: one annotation has the id 0.
#
# Guess: ids of annotations are names. Counted from 0 or from 1, boxes that are all right have an AP and AR of 1.0.
# Seen:  pycocotools keeps for each detection the id of what it matched, with 0 for nothing. So the match with
#        annotation 0 counts as a false alarm and as a miss. Of four objects the AR is 0.75; the AP depends on the score
#        of that one detection. Nothing warns of it.
# With:  pycocotools 2.0.11, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q pycocotools==2.0.11 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - <<'PYTHON' | grep "^first id" | tee seen.txt
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

box, images = [0, 0, 10, 10], range(4)


def scores(first: int, surest: int) -> str:
    """Return AP and AR where annotations are counted from `first`, and each image's one object is found."""
    labelled = COCO()
    common = {"category_id": 1, "bbox": box}
    labelled.dataset = {
        "images": [{"id": image} for image in images],
        "categories": [{"id": 1, "name": "cell"}],
        "annotations": [
            {"id": first + image, "image_id": image, "area": 100, "iscrowd": 0, **common} for image in images
        ],
        "info": {},
    }
    labelled.createIndex()
    found = labelled.loadRes(
        [{"image_id": image, "score": 0.9 if image == surest else 0.5 - 0.1 * image, **common} for image in images]
    )
    evaluation = COCOeval(labelled, found, "bbox")
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    return f"AP {evaluation.stats[0]:.3f}, AR {evaluation.stats[8]:.3f}"


for first in (0, 1):
    for surest in (0, 3):
        print("first id", first, "| surest of image", surest, "|", scores(first, surest))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
first id 0 | surest of image 0 | AP 0.564, AR 0.750
first id 0 | surest of image 3 | AP 0.629, AR 0.750
first id 1 | surest of image 0 | AP 1.000, AR 1.000
first id 1 | surest of image 3 | AP 1.000, AR 1.000
SEEN
