#!/usr/bin/env bash
# The mean of a LoRA adapter with itself is twice that adapter in PEFT, where adapters are combined by "linear".
#
# Guess: weights of 0.5 and 0.5 give the mean of both updates, and of an adapter with itself the adapter.
# Seen:  "linear" adds the factors, each times the root of its weight, and multiplies then. That adds products of one
#        factor of each, which no adapter learnt: a mean of two is 56 percent too large, and off by more than its own
#        size. "cat" is exact at twice the rank. "dare_linear" and "magnitude_prune" do as "linear" does.
# With:  peft 0.21.2, transformers 5.24.0, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q peft==0.21.2 transformers==5.24.0 accelerate==1.15.0 torch==2.13.0 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import torch
from peft import LoraConfig, get_peft_model

torch.manual_seed(0)
settings = LoraConfig(r=4, lora_alpha=8, target_modules=["0"], init_lora_weights=False)
model = get_peft_model(torch.nn.Sequential(torch.nn.Linear(8, 8)), settings, adapter_name="a")
model.add_adapter("b", settings)
layer = model.base_model.model[0]
for kind in ("linear", "dare_linear", "magnitude_prune", "svd", "cat"):
    options = {"density": 1.0} if "_" in kind else {}
    found = []
    for other in "ba":
        name = kind + other
        model.add_weighted_adapter(["a", other], [0.5, 0.5], name, combination_type=kind, **options)
        mean = (layer.get_delta_weight("a") + layer.get_delta_weight(other)) / 2
        update, rank = layer.get_delta_weight(name), len(layer.lora_A[name].weight)
        size, error = (round(float(size / mean.norm()), 2) for size in (update.norm(), (update - mean).norm()))
        found.append(f"a and {other}: size {size} error {error}")
    print(kind, "| rank", rank, "|", " | ".join(found))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
linear | rank 4 | a and b: size 1.56 error 1.02 | a and a: size 2.0 error 1.0
dare_linear | rank 4 | a and b: size 1.56 error 1.02 | a and a: size 2.0 error 1.0
magnitude_prune | rank 4 | a and b: size 1.56 error 1.02 | a and a: size 2.0 error 1.0
svd | rank 4 | a and b: size 0.98 error 0.2 | a and a: size 1.0 error 0.0
cat | rank 8 | a and b: size 1.0 error 0.0 | a and a: size 1.0 error 0.0
SEEN
