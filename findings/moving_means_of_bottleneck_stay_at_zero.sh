#!/usr/bin/env bash
# After one loss of 1e17 the moving mean of bottleneck is 0, and after an infinite one NaN, to the end of the run.
#
# Guess: a moving mean of two steps has forgotten a spike two steps later, as in pandas and polars.
# Seen:  bottleneck adds what comes and takes away what goes: what the spike swallowed is lost for good. Losses of 0.4
#        have a mean of 0.0, a curve that converged; after a spike of 1e15 it is 0.375. One inf
#        leaves NaN. xarray, whose `rolling` uses bottleneck when asked to, has both answers for one curve.
# With:  bottleneck 1.6.0, pandas 2.3.3, polars 2.1.0, xarray 2026.9.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q bottleneck==1.6.0 pandas==2.3.3 polars==2.1.0 xarray==2026.9.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import math

import bottleneck
import numpy
import pandas
import polars
import xarray

for spike in (1e15, 1e17, math.inf):
    losses = numpy.array([0.4, 0.4, spike, 0.4, 0.4, 0.4, 0.4])
    curve = xarray.DataArray(losses, dims="step")
    means = {
        "bottleneck": bottleneck.move_mean(losses, 2),
        "pandas": pandas.Series(losses).rolling(2).mean(),
        "polars": polars.Series(losses).rolling_mean(2),
    }
    for chosen in (True, False):
        with xarray.set_options(use_bottleneck=chosen):
            means[f"xarray, bottleneck {chosen}"] = curve.rolling(step=2).mean().values
    for name, values in means.items():
        print(f"spike {spike} | {name} | last means", *[float(value) for value in list(values)[-3:]])
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
spike 1000000000000000.0 | bottleneck | last means 0.375 0.375 0.375
spike 1000000000000000.0 | pandas | last means 0.4 0.4 0.4
spike 1000000000000000.0 | polars | last means 0.4 0.4 0.4
spike 1000000000000000.0 | xarray, bottleneck True | last means 0.375 0.375 0.375
spike 1000000000000000.0 | xarray, bottleneck False | last means 0.4 0.4 0.4
spike 1e+17 | bottleneck | last means 0.0 0.0 0.0
spike 1e+17 | pandas | last means 0.4 0.4 0.4
spike 1e+17 | polars | last means 0.4 0.4 0.4
spike 1e+17 | xarray, bottleneck True | last means 0.0 0.0 0.0
spike 1e+17 | xarray, bottleneck False | last means 0.4 0.4 0.4
spike inf | bottleneck | last means nan nan nan
spike inf | pandas | last means 0.4 0.4 0.4
spike inf | polars | last means 0.4 0.4 0.4
spike inf | xarray, bottleneck True | last means nan nan nan
spike inf | xarray, bottleneck False | last means 0.4 0.4 0.4
SEEN
