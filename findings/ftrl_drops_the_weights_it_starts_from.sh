#!/usr/bin/env bash
# One step of FTRL at a rate of 0.000001 takes a trained model from a loss of 0.0 to 5.9: it forgets where it starts.
#
# Guess: at a tiny learning rate a trained model hardly moves, with whichever optimizer. What has no gradient stays.
# Seen:  FTRL knows gradients alone, and makes each weight anew of the gradients it has seen. At the first step a weight
#        without a gradient is exactly 0; one with a small gradient nearly so, at each rate. So a model that is tuned
#        further, or an embedding whose words are not in the batch, is gone. Adagrad, which it extends, keeps them.
# With:  keras 3.15.1, pytorch-optimizer 4.1.0, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q keras==3.15.1 pytorch-optimizer==4.1.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
KERAS_BACKEND=torch env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import keras
import numpy
import pytorch_optimizer
import torch

trained = numpy.array([[1.0], [2.0], [1.0], [3.0]], "float32")
inputs = numpy.random.default_rng(0).normal(size=(256, 4)).astype("float32")
inputs[:, 3] = 0
targets = inputs @ (trained + 0.01)
for kind in (keras.optimizers.Adagrad, keras.optimizers.Ftrl):
    for rate in (1e-1, 1e-6):
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, use_bias=False)])
        model.set_weights([trained])
        model.compile(kind(rate), "mse")
        losses = [model.evaluate(inputs, targets, verbose=0)]
        for _ in range(3):
            model.train_on_batch(inputs, targets)
            losses.append(model.evaluate(inputs, targets, verbose=0))
        weights = model.get_weights()[0].ravel()
        print("Keras", kind.__name__, rate, "| losses", *(f"{loss:.2f}" for loss in losses), end=" | ")
        print("weights", *(f"{weight:.2f}" for weight in weights))
for kind in (torch.optim.Adagrad, pytorch_optimizer.FTRL):
    weight = torch.nn.Parameter(torch.tensor([1.0, 2.0, 1.0, 3.0]))
    weight.grad = torch.tensor([0.1, 0.001, 0.1, 0.0])
    kind([weight], lr=1e-6).step()
    print(kind.__module__.split(".")[0], kind.__name__, 1e-6, "| weights", *(f"{part:.2f}" for part in weight.tolist()))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
Keras Adagrad 0.1 | losses 0.00 0.00 0.00 0.00 | weights 1.01 2.01 1.01 3.00
Keras Adagrad 1e-06 | losses 0.00 0.00 0.00 0.00 | weights 1.00 2.00 1.00 3.00
Keras Ftrl 0.1 | losses 0.00 5.85 5.07 4.58 | weights 0.17 0.18 0.18 0.00
Keras Ftrl 1e-06 | losses 0.00 5.90 5.90 5.90 | weights 0.00 0.00 0.00 0.00
torch Adagrad 1e-06 | weights 1.00 2.00 1.00 3.00
pytorch_optimizer FTRL 1e-06 | weights 1.00 2.00 1.00 0.00
SEEN
