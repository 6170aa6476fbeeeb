#!/usr/bin/env bash
# A token that was added without a new row in the embedding is NaN in Flax, and the last word in Equinox and Haiku.
#
# Guess: a number beyond the table raises an error, as in PyTorch; or all libraries on JAX do the same with it.
# Seen:  Keras and Flax give NaN: the first text with the token makes the loss NaN, and the weights behind it. Equinox
#        and Haiku take the last row. Equinox trains that row for each new word, so that the loss falls as usual and one
#        known word is spoiled; Haiku gives it no gradient. Haiku's one-hot form gives zeros. A padding of -1 is the
#        last word in all but that form, and trains it. Nothing warns of any of these.
# With:  keras 3.15.1, flax 0.12.8, equinox 0.13.8, dm-haiku 0.0.17, jax 0.10.2, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
packages="keras==3.15.1 flax==0.12.8 equinox==0.13.8 dm-haiku==0.0.17 jax==0.10.2 numpy==2.4.6"
"$folder/env/bin/pip" install -q $packages 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import os

os.environ["KERAS_BACKEND"] = "jax"

import equinox
import flax.linen
import haiku
import jax
import jax.numpy as jnp
import keras
import numpy
from flax import nnx

TABLE = jnp.array([[1.0], [2.0], [3.0]])


def keras_embedding(table, words):
    layer = keras.layers.Embedding(3, 1)
    layer.build()
    return layer.stateless_call([table], [], words)[0]


def linen(table, words):
    return flax.linen.Embed(3, 1).apply({"params": {"embedding": table}}, words)


def flax_nnx(table, words):
    layer = nnx.Embed(3, 1, rngs=nnx.Rngs(0))
    layer.embedding = nnx.Param(table)
    return layer(words)


def equinox_embedding(table, words):
    return jax.vmap(equinox.nn.Embedding(weight=table))(words)


def haiku_embedding(style):
    def embed(table, words):
        layer = haiku.transform(lambda numbers: haiku.Embed(3, 1, lookup_style=style)(numbers))
        return layer.apply({"embed": {"embeddings": table}}, None, words)

    return embed


for name, embed in {
    "Keras on JAX": keras_embedding,
    "Flax linen": linen,
    "Flax nnx": flax_nnx,
    "Equinox": equinox_embedding,
    "Haiku": haiku_embedding("ARRAY_INDEX"),
    "Haiku one-hot": haiku_embedding("ONE_HOT"),
}.items():
    print(name, end="")
    for meaning, word in (("last word", 2), ("new word", 3), ("later one", 9), ("padding", -1)):
        words = jnp.array([word])
        gradient = jax.grad(lambda table: embed(table, words).sum())(TABLE)
        found = numpy.ravel(embed(TABLE, words))[0]
        print(f" | {meaning} {word}: {found:.0f}, gradient", *(f"{value:.0f}" for value in gradient.ravel()), end="")
    print()
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
Keras on JAX | last word 2: 3, gradient 0 0 1 | new word 3: nan, gradient 0 0 0 | later one 9: nan, gradient 0 0 0 | padding -1: 3, gradient 0 0 1
Flax linen | last word 2: 3, gradient 0 0 1 | new word 3: nan, gradient 0 0 0 | later one 9: nan, gradient 0 0 0 | padding -1: 3, gradient 0 0 1
Flax nnx | last word 2: 3, gradient 0 0 1 | new word 3: nan, gradient 0 0 0 | later one 9: nan, gradient 0 0 0 | padding -1: 3, gradient 0 0 1
Equinox | last word 2: 3, gradient 0 0 1 | new word 3: 3, gradient 0 0 1 | later one 9: 3, gradient 0 0 1 | padding -1: 3, gradient 0 0 1
Haiku | last word 2: 3, gradient 0 0 1 | new word 3: 3, gradient 0 0 0 | later one 9: 3, gradient 0 0 0 | padding -1: 3, gradient 0 0 1
Haiku one-hot | last word 2: 3, gradient 0 0 1 | new word 3: 0, gradient 0 0 0 | later one 9: 0, gradient 0 0 0 | padding -1: 0, gradient 0 0 0
SEEN
