#!/usr/bin/env bash
# Class weights do nothing in batches of one row, and gradients that are accumulated do not bring them back.
#
# Guess: eight batches of one row, accumulated and divided by eight, give the gradient of one batch of eight rows.
# Seen:  PyTorch divides the weighted mean by the weights of the labels in the batch. Of one row the weight cancels:
#        the accumulated gradient is that without weights. Keras, which divides by rows, keeps `class_weight`.
# With:  torch 2.13.0, keras 3.15.1 on its torch backend
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torch==2.13.0 keras==3.15.1 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import os

os.environ["KERAS_BACKEND"] = "torch"
import keras
import torch

torch.manual_seed(0)
model, rows, labels = torch.nn.Linear(3, 2), torch.randn(8, 3), torch.tensor([0, 0, 0, 0, 0, 0, 0, 1])


def gradient(size, weight):
    model.zero_grad()
    for batch, wanted in zip(rows.split(size), labels.split(size)):
        loss = torch.nn.functional.cross_entropy(model(batch), wanted, weight=weight)
        (loss * size / len(rows)).backward()
    return model.weight.grad.clone()


weight = torch.tensor([1.0, 9.0])
print("torch: batches of one are the batch", torch.allclose(gradient(1, weight), gradient(8, weight), atol=1e-6))
print("torch: batches of one are unweighted", torch.allclose(gradient(1, weight), gradient(8, None), atol=1e-6))
rare = rows[7:].numpy(), labels[7:].numpy()
network = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
network.compile(keras.optimizers.SGD(0.0), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
plain = network.fit(*rare, verbose=0).history["loss"][0]
weighted = network.fit(*rare, verbose=0, class_weight={0: 1.0, 1: 9.0}).history["loss"][0]
print("keras: one row of weight 9 has", round(weighted / plain, 3), "times the loss")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
torch: batches of one are the batch False
torch: batches of one are unweighted True
keras: one row of weight 9 has 9.0 times the loss
SEEN
