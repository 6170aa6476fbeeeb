#!/usr/bin/env bash
# One forecast has a sMAPE of 66.67, 0.667 or 0.333, and a quantile loss of 2.2 or 0.367, by library.
#
# Guess: sMAPE is between 0 and 1, or between 0 and 100; the quantile loss is a mean, and at 0.5 half of the MAE.
# Seen:  sMAPE ends at 200 in Darts, at 2 in sktime and GluonTS, and at 1 in utilsforecast, so that 0.4 is good or bad.
#        A zero that is forecast as zero is no error for three of them; in GluonTS it makes the whole mean NaN. The
#        quantile loss of GluonTS is twice a sum, so it grows with the length of the series.
# With:  u8darts 0.41.0, sktime 1.2.0, utilsforecast 0.2.17, gluonts 0.17.0, scikit-learn 1.7.2
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
packages="u8darts==0.41.0 sktime==1.2.0 utilsforecast==0.2.17 gluonts==0.17.0 scikit-learn==1.7.2 pandas==2.3.3"
"$folder/env/bin/pip" install -q $packages 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import numpy
import pandas
from darts import TimeSeries
from darts.metrics import smape as of_darts
from gluonts.evaluation import metrics as of_gluonts
from sklearn.metrics import mean_pinball_loss
from sktime.performance_metrics.forecasting import mean_absolute_percentage_error
from utilsforecast.losses import quantile_loss, smape


def show(**values):
    print(", ".join(f"{name} {round(float(value), 3)}" for name, value in values.items()))


known = {"close": [[1, 3], [2, 2], [3, 1]], "worst": [[1, 0], [2, 0]], "with a zero": [[1, 3], [0, 0]]}
for name, days in known.items():
    truth, forecast = numpy.array(days, float).T
    table = pandas.DataFrame({"unique_id": 1, "y": truth, "model": forecast})
    print(name, end=" | sMAPE: ")
    show(
        darts=of_darts(*map(TimeSeries.from_values, (truth, forecast))),
        sktime=mean_absolute_percentage_error(truth, forecast, symmetric=True),
        gluonts=of_gluonts.smape(truth, forecast),
        utilsforecast=smape(table, ["model"])["model"][0],
    )
for times in (1, 4):
    truth, forecast = numpy.tile([1.0, 2.0, 3.0], times), numpy.tile([3.0, 2.0, 2.0], times)
    table = pandas.DataFrame({"unique_id": 1, "y": truth, "model": forecast})
    print("quantile loss at 0.9 over", 3 * times, "days", end=" | ")
    show(
        gluonts=of_gluonts.quantile_loss(truth, forecast, 0.9),
        utilsforecast=quantile_loss(table, {"model": "model"}, q=0.9)["model"][0],
        sklearn=mean_pinball_loss(truth, forecast, alpha=0.9),
    )
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
close | sMAPE: darts 66.667, sktime 0.667, gluonts 0.667, utilsforecast 0.333
worst | sMAPE: darts 200.0, sktime 2.0, gluonts 2.0, utilsforecast 1.0
with a zero | sMAPE: darts 50.0, sktime 0.5, gluonts nan, utilsforecast 0.25
quantile loss at 0.9 over 3 days | gluonts 2.2, utilsforecast 0.367, sklearn 0.367
quantile loss at 0.9 over 12 days | gluonts 8.8, utilsforecast 0.367, sklearn 0.367
SEEN
