#!/usr/bin/env bash
# A query that may attend to nothing: PyTorch's attention gives NaN or 0 by `need_weights`, Keras and JAX a mean of all.
#
# Guess: a mask without a key, such as that of an empty text, gives NaN, in each library and each call.
# Seen:  `MultiheadAttention` gives NaN, and NaN gradients to its weights, where it returns attention weights, too.
#        Without them, as within a `TransformerEncoderLayer`, it gives 0, as PyTorch's plain function does: a row is NaN
#        only while somebody looks at the weights. With a mask of the lowest number the plain function gives the mean
#        over all the keys that the mask was to hide. So do Keras and JAX, where padding leaks and no NaN shows it.
# With:  torch 2.13.0, keras 3.15.1, jax 0.10.2, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torch==2.13.0 keras==3.15.1 jax==0.10.2 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import os

os.environ["KERAS_BACKEND"] = "torch"
os.environ["KERAS_HOME"] = os.getcwd()
import jax
import keras
import torch
from torch.nn.functional import scaled_dot_product_attention

query, keys = torch.ones(1, 1, 1, 2), torch.tensor([[[[1.0, 0], [2, 0], [6, 0]]]])
nothing = torch.zeros(1, 1, 1, 3, dtype=torch.bool)
lowest = torch.full((1, 1, 1, 3), torch.finfo(torch.float32).min)
for name, mask in (("False", nothing), ("-inf", torch.full_like(lowest, -torch.inf)), ("the lowest number", lowest)):
    found = scaled_dot_product_attention(query, keys, keys, mask)
    print("function of PyTorch, mask of", name, found.flatten().tolist())
for weights in (True, False):
    torch.manual_seed(0)
    attention = torch.nn.MultiheadAttention(2, 1, batch_first=True)
    found, _ = attention(query[0], keys[0], keys[0], key_padding_mask=~nothing[0, 0], need_weights=weights)
    found.sum().backward()
    gradient = attention.in_proj_weight.grad.isfinite().all().item()
    print("MultiheadAttention, need_weights", weights, found.flatten().tolist(), "finite gradient", gradient)
swapped, key_swapped = query.transpose(1, 2), keys.transpose(1, 2)
print("Keras", keras.ops.dot_product_attention(swapped, key_swapped, key_swapped, mask=nothing).flatten().tolist())
found = keras.layers.Attention()([query[0], keys[0]], mask=[None, nothing[0, 0]])
print("Keras' Attention layer", found.flatten().tolist())
arrays = [jax.numpy.asarray(array.numpy()) for array in (swapped, key_swapped, key_swapped)]
print("JAX", jax.nn.dot_product_attention(*arrays, mask=jax.numpy.asarray(nothing.numpy())).flatten().tolist())
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
function of PyTorch, mask of False [0.0, 0.0]
function of PyTorch, mask of -inf [0.0, 0.0]
function of PyTorch, mask of the lowest number [3.0, 0.0]
MultiheadAttention, need_weights True [nan, nan] finite gradient False
MultiheadAttention, need_weights False [0.0, 0.0] finite gradient True
Keras [3.0, 0.0]
Keras' Attention layer [3.0, 0.0]
JAX [3.0, 0.0]
SEEN
