#!/usr/bin/env bash
# One ranking of patients has a concordance of 0.71 in lifelines and of 0.50 in scikit-survival, if risks are small.
#
# Guess: a concordance index looks at the order alone, so that risks divided by a million have the same one, and both
#        libraries agree, once the sign is turned.
# Seen:  scikit-survival holds risks that differ by less than 1e-8 for equal, and equal ones count half: rates per
#        second, or a network whose last layer begins at zero, score 0.50, and rise with the scale alone. lifelines
#        compares exactly. With `tied_tol=0` both are 0.711.
# With:  scikit-survival 0.26.0, lifelines 0.30.3, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q scikit-survival==0.26.0 lifelines==0.30.3 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import numpy as np
from lifelines.utils import concordance_index
from sksurv.metrics import concordance_index_censored

random = np.random.default_rng(0)
months = random.integers(1, 6, 200).astype(float)
died = random.random(200) < 0.6
risks = -months + random.standard_normal(200) * 2
for scale in (1, 1e-7, 1e-8, 3e-9, 1e-9):
    first = concordance_index(months, -risks * scale, died)
    second = concordance_index_censored(died, months, risks * scale)[0]
    exact = concordance_index_censored(died, months, risks * scale, tied_tol=0)[0]
    print(f"risks times {scale} | lifelines {first:.3f} | scikit-survival {second:.3f} | without tolerance {exact:.3f}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
risks times 1 | lifelines 0.711 | scikit-survival 0.711 | without tolerance 0.711
risks times 1e-07 | lifelines 0.711 | scikit-survival 0.710 | without tolerance 0.711
risks times 1e-08 | lifelines 0.711 | scikit-survival 0.698 | without tolerance 0.711
risks times 3e-09 | lifelines 0.711 | scikit-survival 0.620 | without tolerance 0.711
risks times 1e-09 | lifelines 0.711 | scikit-survival 0.503 | without tolerance 0.711
SEEN
