#!/usr/bin/env bash
# A Mixtral whose `router_aux_loss_coef` is 10 trains with the very loss and gradients of one whose coefficient is 0.
#
# Guess: the coefficient weighs a loss that balances the experts, as soon as it is above 0: its default is 0.001.
# Seen:  that loss is left out unless `output_router_logits=True`, which is off; no warning says so.
#        Switched on, the loss is in what `eval()` returns, too. A well balanced router adds about 2 times the
#        coefficient, so that `eval_loss` is no cross entropy.
# With:  transformers 5.24.0, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q transformers==5.24.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import torch
from transformers import MixtralConfig, MixtralForCausalLM

sizes = {"vocab_size": 32, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2}
heads = {"num_attention_heads": 2, "num_key_value_heads": 1}
rows = torch.randint(0, 32, (4, 8), generator=torch.manual_seed(0))


def loss_and_gradient(training: bool, **settings: object) -> tuple[float, torch.Tensor]:
    """Return the loss of one and the same model and rows, and the gradient of its first router."""
    torch.manual_seed(0)
    model = MixtralForCausalLM(MixtralConfig(**sizes, **heads, **settings)).train(training)
    loss = model(rows, labels=rows).loss
    loss.backward()
    return loss.item(), model.model.layers[0].mlp.gate.weight.grad


for training in (True, False):
    for settings in ({}, {"output_router_logits": True}):
        plain, gradient = loss_and_gradient(training, router_aux_loss_coef=0.0, **settings)
        weighed, changed = loss_and_gradient(training, router_aux_loss_coef=10.0, **settings)
        same = torch.equal(gradient, changed)
        print("training", training, settings, "| loss more by", round(weighed - plain), "| same gradient", same)
print("default", MixtralConfig().router_aux_loss_coef, MixtralConfig().output_router_logits)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
training True {} | loss more by 0 | same gradient True
training True {'output_router_logits': True} | loss more by 20 | same gradient False
training False {} | loss more by 0 | same gradient True
training False {'output_router_logits': True} | loss more by 20 | same gradient False
default 0.001 False
SEEN
