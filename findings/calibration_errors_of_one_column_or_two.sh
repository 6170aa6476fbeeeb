#!/usr/bin/env bash
# One classifier of two classes has a calibration error of 0.10 in one column, and of 0.00 in two.
#
# Guess: the calibration error is that of the answers given, so `p` for the second class and `1 - p, p` for both classes
#        are one model, and have one error.
# Seen:  one column is held against the share of class 1, and two columns against the share of right answers. Where a
#        model is too low for both classes, the two errors cancel in the second: answers of 0.8 that come true in 0.9 of
#        rows, and of 0.2 that do in 0.3, make an accuracy of 0.8 at a confidence of 0.8. A bias towards one class is so
#        not seen in two columns, and vice versa a model without a bias has the same value in both. Neither the number
#        of bins nor the norm changes that.
# With:  torchmetrics 1.9.0, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torchmetrics==1.9.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import torch
from torchmetrics.classification import BinaryCalibrationError, MulticlassCalibrationError

# Ten thousand rows with an answer of 0.8, and as many with 0.2.
answers = torch.tensor([0.8, 0.2]).repeat_interleave(10_000)


def labels(high, low):
    """Return labels of which so large a share is of class 1 at answers of 0.8, and at answers of 0.2."""
    place = torch.arange(10_000)
    return torch.cat([place < 10_000 * high, place < 10_000 * low]).long()


for name, high, low in (
    ("class 1 is a tenth more frequent than said", 0.9, 0.3),
    ("class 1 is a tenth less frequent than said", 0.7, 0.1),
    ("too sure of both", 0.7, 0.3),
    ("not sure enough of both", 0.9, 0.1),
    ("right", 0.8, 0.2),
):
    truth = labels(high, low)
    print(name, end=":")
    for norm in ("l1", "max"):
        for bins in (10, 15):
            one = BinaryCalibrationError(n_bins=bins, norm=norm)(answers, truth)
            columns = torch.stack([1 - answers, answers], 1)
            two = MulticlassCalibrationError(2, n_bins=bins, norm=norm)(columns, truth)
            print(f" {norm} of {bins} bins {abs(float(one)):.2f} and {abs(float(two)):.2f}", end=";")
    print(f" accuracy {float(((answers > 0.5) == truth).float().mean()):.2f}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
class 1 is a tenth more frequent than said: l1 of 10 bins 0.10 and 0.00; l1 of 15 bins 0.10 and 0.00; max of 10 bins 0.10 and 0.00; max of 15 bins 0.10 and 0.00; accuracy 0.80
class 1 is a tenth less frequent than said: l1 of 10 bins 0.10 and 0.00; l1 of 15 bins 0.10 and 0.00; max of 10 bins 0.10 and 0.00; max of 15 bins 0.10 and 0.00; accuracy 0.80
too sure of both: l1 of 10 bins 0.10 and 0.10; l1 of 15 bins 0.10 and 0.10; max of 10 bins 0.10 and 0.10; max of 15 bins 0.10 and 0.10; accuracy 0.70
not sure enough of both: l1 of 10 bins 0.10 and 0.10; l1 of 15 bins 0.10 and 0.10; max of 10 bins 0.10 and 0.10; max of 15 bins 0.10 and 0.10; accuracy 0.90
right: l1 of 10 bins 0.00 and 0.00; l1 of 15 bins 0.00 and 0.00; max of 10 bins 0.00 and 0.00; max of 15 bins 0.00 and 0.00; accuracy 0.80
SEEN
