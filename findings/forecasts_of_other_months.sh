#!/usr/bin/env bash
# A forecast for the wrong months has an error of 0 in sktime, and one that meets one month of twelve 0 in Darts.
#
# Guess: both series have an index, so an error is between values of the same month; months that only one of them has
#        raise an error or count as missing.
# Seen:  sktime takes the values by their position and leaves the index: a forecast that is one month late has no error,
#        and a perfect one whose rows are turned around has 6. Darts matches months, and leaves out what only one of the
#        two has: twelve months that meet the year in one are judged by that one. Without a month in common
#        it is NaN.
# With:  sktime 1.2.0, u8darts 0.41.0, pandas 2.3.3, scikit-learn 1.7.2
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q sktime==1.2.0 u8darts==0.41.0 pandas==2.3.3 scikit-learn==1.7.2 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import pandas
from darts import TimeSeries, metrics
from sktime.performance_metrics.forecasting import mean_absolute_error

months = pandas.date_range("2026-01-01", periods=12, freq="MS")
truth = pandas.Series(range(12), months, dtype=float)
for name, forecast in (
    ("right", truth),
    ("a month late", truth.set_axis(months.shift(1))),
    ("rows turned around", truth[::-1]),
    ("right in one month, then 100 a month", pandas.Series([11.0] + [100.0] * 11, months.shift(11))),
    ("of the next year", truth.set_axis(months.shift(12))),
):
    print(name, "| sktime", round(float(mean_absolute_error(truth, forecast)), 2), end=" | ")
    print("Darts", round(float(metrics.mae(TimeSeries.from_series(truth), TimeSeries.from_series(forecast))), 2))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
right | sktime 0.0 | Darts 0.0
a month late | sktime 0.0 | Darts 1.0
rows turned around | sktime 6.0 | Darts 0.0
right in one month, then 100 a month | sktime 87.08 | Darts 0.0
of the next year | sktime 0.0 | Darts nan
SEEN
