#!/usr/bin/env bash
# A PyTorch TransformerEncoder without dropout gives other outputs in evaluation than in training: zeros at padding.
#
# Guess: with dropout 0 the outputs of `train()` and `eval()` are the same, at padding as elsewhere.
# Seen:  in `eval()` under `no_grad()` a fast path leaves padded positions out and fills them with zeros; in training
#        they hold numbers like the rest. A mean over positions without a mask differs, so that a classifier on it is
#        evaluated on inputs that it was not trained on. Without `no_grad()`, or with `enable_nested_tensor=False`,
#        outputs are those of training.
# With:  torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
from contextlib import nullcontext

import torch
from torch.nn import TransformerEncoder, TransformerEncoderLayer

rows, padded = torch.randn(2, 5, 8, generator=torch.manual_seed(0)), torch.arange(5) >= torch.tensor([[3], [5]])
for nested in (True, False):
    torch.manual_seed(0)
    layer = TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    model = TransformerEncoder(layer, 2, enable_nested_tensor=nested)
    trained = model.train()(rows, src_key_padding_mask=padded)
    model.eval()
    for context in (torch.no_grad, nullcontext):
        with context():
            found = model(rows, src_key_padding_mask=padded)
        print(
            f"nested {nested}, {context.__name__} |",
            "same at words", torch.allclose(found[~padded], trained[~padded], atol=1e-5),
            "| zeros at padding", bool((found[padded] == 0).all()),
            "| same mean", torch.allclose(found.mean(1), trained.mean(1), atol=1e-5),
        )
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
nested True, no_grad | same at words True | zeros at padding True | same mean False
nested True, nullcontext | same at words True | zeros at padding False | same mean True
nested False, no_grad | same at words True | zeros at padding False | same mean True
nested False, nullcontext | same at words True | zeros at padding False | same mean True
SEEN
