#!/usr/bin/env bash
# DeepXDE prints a test loss that equals its training loss to the last digit: it is of the same points.
#
# Guess: the column `Test loss` is of points that were not trained on, so that two equal columns mean that nothing is
#        overfitted.
# Seen:  without `num_test` an equation is tested on the very points that it is trained on. At 500 other points the loss
#        of the same run is 1,300, where training is at 1.1, and no column shows it. The curve of the test loss lies on
#        that of training throughout. With `num_test=500` the column shows the gap. Where the solution is known, the
#        metric against it is an error of several hundred percent in both runs.
# With:  deepxde 1.15.0, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q deepxde==1.15.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import os

os.environ["DDE_BACKEND"] = "pytorch"
import deepxde
import numpy
import torch

torch.set_num_threads(1)


def equation(x, y):
    return deepxde.grad.hessian(y, x) + 4 * numpy.pi**2 * torch.sin(2 * numpy.pi * x)


def solution(x):
    return numpy.sin(2 * numpy.pi * x)


interval = deepxde.geometry.Interval(-1, 1)
ends = deepxde.icbc.DirichletBC(interval, lambda x: 0, lambda x, at_end: at_end)
for points in (None, 500):
    deepxde.config.set_random_seed(0)
    data = deepxde.data.PDE(interval, equation, ends, 6, 2, "uniform", solution=solution, num_test=points)
    model = deepxde.Model(data, deepxde.nn.FNN([1, 20, 20, 1], "tanh", "Glorot uniform"))
    model.compile("adam", lr=0.01, metrics=["l2 relative error"], verbose=0)
    history, _ = model.train(iterations=1500, display_every=1500, verbose=0)
    for row, step in enumerate(history.steps):
        if step in (0, 1500):
            losses = sum(history.loss_train[row]), sum(history.loss_test[row])
            print(f"num_test {points} step {step} | training {losses[0]:.2g} test {losses[1]:.2g}", end=" ")
            print(f"metric {history.metrics_test[row][0]:.2g}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
num_test None step 0 | training 6.8e+02 test 6.8e+02 metric 1
num_test None step 1500 | training 1.1 test 1.1 metric 6.6
num_test 500 step 0 | training 6.8e+02 test 7.8e+02 metric 1
num_test 500 step 1500 | training 1.1 test 1.3e+03 metric 6.7
SEEN
