#!/usr/bin/env bash
# Optax clips float16 gradients of 300 to a norm of 1 by making them 0: from then on nothing is learnt.
#
# Guess: `clip_by_global_norm` keeps the direction, as PyTorch's `clip_grad_norm_` does: 300 becomes 0.5 in each of
#        four.
# Seen:  the squares are summed in float16, where 300 squared is infinite. The norm is inf, each gradient is divided by
#        it, and the update is 0, not NaN: a loss that stands still looks like a rate that is too low. From a norm of
#        256 on all updates are lost. The norm in the log is inf. In bf16 it is right.
# With:  optax 0.2.8, jax 0.10.2, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q optax==0.2.8 jax==0.10.2 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import jax.numpy as jnp
import optax

clip = optax.clip_by_global_norm(1.0)
for kind in ("float32", "bfloat16", "float16"):
    for size in (30, 100, 300):
        gradients = {"layer": jnp.full(4, size, kind)}
        clipped, _ = clip.update(gradients, clip.init(gradients))
        norm = float(optax.global_norm(gradients))
        print(kind, "| gradient", size, "| norm", norm, "| clipped", *clipped["layer"].round(2).tolist())
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
float32 | gradient 30 | norm 60.0 | clipped 0.5 0.5 0.5 0.5
float32 | gradient 100 | norm 200.0 | clipped 0.5 0.5 0.5 0.5
float32 | gradient 300 | norm 600.0 | clipped 0.5 0.5 0.5 0.5
bfloat16 | gradient 30 | norm 60.0 | clipped 0.5 0.5 0.5 0.5
bfloat16 | gradient 100 | norm 200.0 | clipped 0.5 0.5 0.5 0.5
bfloat16 | gradient 300 | norm 600.0 | clipped 0.5 0.5 0.5 0.5
float16 | gradient 30 | norm 60.0 | clipped 0.5 0.5 0.5 0.5
float16 | gradient 100 | norm 200.0 | clipped 0.5 0.5 0.5 0.5
float16 | gradient 300 | norm inf | clipped 0.0 0.0 0.0 0.0
SEEN
