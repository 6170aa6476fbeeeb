#!/usr/bin/env bash
# A row on which a Keras classifier is sure and wrong has no gradient: `Dense(1, "sigmoid")` with "binary_crossentropy".
#
# Guess: the more wrong a row is, the more it moves the weights; sigmoid with cross entropy has a gradient near 1 there.
# Seen:  on PyTorch and JAX, Keras clips the probability to 1e-7. Beyond a logit of -16.1 the loss stands at 16.118 and
#        the weights do not move; so it is with softmax, too. With `from_logits=True` they move. PyTorch's own loss of
#        the same probability has gradient -1.
# With:  keras 3.15.1, torch 2.13.0, jax 0.10.2
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q keras==3.15.1 torch==2.13.0 jax==0.10.2 2>/dev/null
cd "$folder"
cat > train.py <<'PYTHON'
import keras
import numpy
import torch

row, label, losses = numpy.ones((1, 1)), numpy.ones((1, 1)), keras.losses
for name, units, activation, loss in (
    ("sigmoid", 1, "sigmoid", "binary_crossentropy"),
    ("softmax", 2, "softmax", "sparse_categorical_crossentropy"),
    ("logits", 1, None, losses.BinaryCrossentropy(from_logits=True)),
):
    for logit in (-15.0, -17.0):
        model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(units, activation, use_bias=False)])
        start = numpy.array([[0.0, logit][-units:]])
        model.set_weights([start])
        model.compile(keras.optimizers.SGD(1.0), loss)
        history = model.fit(row, label, verbose=0).history["loss"][0]
        moved = float(numpy.abs(model.get_weights()[0] - start).max())
        print(keras.backend.backend(), name, logit, "| loss", round(history, 3), "| weights move by", round(moved, 3))
logit = torch.tensor([-17.0], requires_grad=True)
torch.nn.functional.binary_cross_entropy(torch.sigmoid(logit), torch.ones(1)).backward()
print("PyTorch's own loss, gradient", round(logit.grad.item(), 3))
PYTHON
for backend in torch jax; do
    KERAS_BACKEND=$backend env/bin/python train.py 2>/dev/null
done | tee seen.txt
diff seen.txt - <<'SEEN' && echo "as found"
torch sigmoid -15.0 | loss 15.0 | weights move by 1.0
torch sigmoid -17.0 | loss 16.118 | weights move by 0.0
torch softmax -15.0 | loss 15.0 | weights move by 1.0
torch softmax -17.0 | loss 16.118 | weights move by 0.0
torch logits -15.0 | loss 15.0 | weights move by 1.0
torch logits -17.0 | loss 17.0 | weights move by 1.0
PyTorch's own loss, gradient -1.0
jax sigmoid -15.0 | loss 15.0 | weights move by 1.0
jax sigmoid -17.0 | loss 16.118 | weights move by 0.0
jax softmax -15.0 | loss 15.0 | weights move by 1.0
jax softmax -17.0 | loss 16.118 | weights move by 0.0
jax logits -15.0 | loss 15.0 | weights move by 1.0
jax logits -17.0 | loss 17.0 | weights move by 1.0
PyTorch's own loss, gradient -1.0
SEEN
