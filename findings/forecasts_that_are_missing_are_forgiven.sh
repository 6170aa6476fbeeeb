#!/usr/bin/env bash
# A model that forecasts NaN on the hard day has an error of 0.1 in utilsforecast on pandas, and of NaN on polars.
#
# Guess: the table's library changes the speed, not the score; a forecast that is missing is no good forecast.
# Seen:  on pandas a row without a forecast is left out, so that the model that gives up on the outlier beats the one
#        that tries: 0.1 to 3.1. On polars it makes the mean NaN. MAPE leaves a day of zero sales out on pandas, and is
#        NaN for the whole series on polars, for a perfect forecast as well.
# With:  utilsforecast 0.2.17, pandas 2.3.3, polars 2.1.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q utilsforecast==0.2.17 pandas==2.3.3 polars==2.1.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import math

import pandas
import polars
from utilsforecast.evaluation import evaluate
from utilsforecast.losses import mae, mape, rmse

DAYS = {
    "unique_id": ["shop"] * 5,
    "ds": [1, 2, 3, 4, 5],
    "y": [1.0, 2.0, 0.0, 4.0, 20.0],
    "tries": [1.1, 2.1, 0.1, 4.1, 5.0],
    "gives_up": [1.1, 2.1, 0.1, 4.1, math.nan],
    "perfect": [1.0, 2.0, 0.0, 4.0, 20.0],
}
for library in (pandas, polars):
    scores = evaluate(library.DataFrame(DAYS), metrics=[mae, rmse, mape])
    for place, metric in enumerate(scores["metric"]):
        values = (f"{name} {float(scores[name][place]):.3f}" for name in ("tries", "gives_up", "perfect"))
        print(library.__name__, "|", metric, "|", *values)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
pandas | mae | tries 3.080 gives_up 0.100 perfect 0.000
pandas | rmse | tries 6.709 gives_up 0.100 perfect 0.000
pandas | mape | tries 0.231 gives_up 0.058 perfect 0.000
polars | mae | tries 3.080 gives_up nan perfect 0.000
polars | rmse | tries 6.709 gives_up nan perfect 0.000
polars | mape | tries nan gives_up nan perfect nan
SEEN
