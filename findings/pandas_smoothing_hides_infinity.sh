#!/usr/bin/env bash
# A smoothed curve of pandas shows an epoch with an infinite loss as 1.0; polars shows all later epochs as NaN.
#
# Guess: an average over an infinite loss is infinite. A moving average recovers when its window has passed, and an
#        exponential one never does; both libraries do the same.
# Seen:  `ewm`, `rolling` and `expanding` of pandas take infinity for a missing value: the smoothed loss is 1.0
#        throughout, and so is the largest value of a window, though `mean` and `max` of the same column are inf. In
#        polars `ewm_mean` is inf once, then NaN to the end, so that a run that recovered looks lost.
# With:  pandas 2.3.3, polars 2.1.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q pandas==2.3.3 polars==2.1.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import math

import pandas
import polars

LOSSES = [1.0, 1.0, math.inf, 1.0, 1.0, 1.0]
first, second = pandas.Series(LOSSES), polars.Series(LOSSES)
window = {"window": 2, "min_periods": 1}
print("pandas mean, max    ", first.mean(), first.max())
print("pandas ewm          ", *first.ewm(alpha=0.5).mean())
print("pandas rolling mean ", *first.rolling(**window).mean())
print("pandas rolling max  ", *first.rolling(**window).max())
print("pandas expanding    ", *first.expanding().mean())
print("polars mean, max    ", second.mean(), second.max())
print("polars ewm          ", *second.ewm_mean(alpha=0.5))
print("polars rolling mean ", *second.rolling_mean(2, min_samples=1))
print("polars rolling max  ", *second.rolling_max(2, min_samples=1))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
pandas mean, max     inf inf
pandas ewm           1.0 1.0 1.0 1.0 1.0 1.0
pandas rolling mean  1.0 1.0 1.0 1.0 1.0 1.0
pandas rolling max   1.0 1.0 1.0 1.0 1.0 1.0
pandas expanding     1.0 1.0 1.0 1.0 1.0 1.0
polars mean, max     inf inf
polars ewm           1.0 1.0 inf nan nan nan
polars rolling mean  1.0 1.0 inf inf 1.0 1.0
polars rolling max   1.0 1.0 inf inf 1.0 1.0
SEEN
