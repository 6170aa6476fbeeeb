#!/usr/bin/env bash
# The CTC loss of one row is 1.05 in PyTorch and 10.5 in Optax and Keras; a row that cannot be right is finite there.
#
# Guess: CTC loss is the negative log likelihood of the text, so the libraries agree; where the frames do not suffice
#        for the text it is infinite.
# Seen:  PyTorch's mean divides each row by the length of its text. The others do not, so long texts weigh more, and the
#        logged loss is ten or twenty times as high. A text that is longer than its frames is inf in PyTorch. In Optax
#        and Keras it is 100,008: one such row lifts the mean loss of a set without any sign of what it is.
# With:  torch 2.13.0, optax 0.2.8, keras 3.12.0, jax 0.10.2
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torch==2.13.0 optax==0.2.8 keras==3.12.0 jax==0.10.2 numpy==2.4.6 2>/dev/null
cd "$folder"
export KERAS_BACKEND=jax
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import jax.numpy as jnp
import keras
import numpy
import optax
import torch

frames, symbols = 20, 4
logs = numpy.log(numpy.full((1, frames, symbols), 1 / symbols, dtype=numpy.float32))
for length in (5, 10, 19, 25):
    text = numpy.tile([1, 2], frames)[None, :length]
    lengths = torch.tensor([frames]), torch.tensor([length])
    found = {
        "torch": torch.nn.CTCLoss()(torch.tensor(logs).transpose(0, 1), torch.tensor(text), *lengths),
        "optax": optax.ctc_loss(jnp.asarray(logs), jnp.zeros((1, frames)), text, jnp.zeros((1, length))).mean(),
        "keras": keras.losses.CTC()(text, logs),
    }
    print("text of", length, {name: round(float(value), 2) for name, value in found.items()})
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
text of 5 {'torch': 2.55, 'optax': 12.73, 'keras': 12.73}
text of 10 {'torch': 1.05, 'optax': 10.51, 'keras': 10.51}
text of 19 {'torch': 1.27, 'optax': 24.06, 'keras': 24.06}
text of 25 {'torch': inf, 'optax': 100007.8, 'keras': 100007.8}
SEEN
