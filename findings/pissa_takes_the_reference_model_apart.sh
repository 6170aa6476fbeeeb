#!/usr/bin/env bash
# A reference model made by `disable_adapter()` has a loss of 1.8 where its base has 0.0, with PiSSA or OLoRA.
#
# Guess: with adapters disabled, or unloaded, a PEFT model is its base again, as with LoRA: no base weight is trained.
# Seen:  PiSSA and OLoRA take the adapter they begin with out of the base: its largest parts, or its first directions.
#        Together both are the base model, so the first loss is right. Without the adapter the rest is left, a model
#        that nobody trained. Preference tuning that takes it for its reference begins far from it, before any step.
# With:  peft 0.21.2, transformers 5.24.0, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q peft==0.21.2 transformers==5.24.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import copy

import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
base = LlamaForCausalLM(LlamaConfig(vocab_size=64, **sizes))
text = torch.randint(64, (8, 16))
optimizer = torch.optim.AdamW(base.parameters(), lr=0.01)
for _ in range(150):
    optimizer.zero_grad()
    base(text, labels=text).loss.backward()
    optimizer.step()


@torch.no_grad()
def outputs(model) -> tuple[torch.Tensor, float]:
    """Return the log probabilities of all words, and the loss."""
    result = model(text, labels=text)
    return result.logits.log_softmax(-1), result.loss.item()


print(f"base | loss below 0.3: {outputs(base)[1] < 0.3}")
for start in (True, "gaussian", "pissa", "olora"):
    config = LoraConfig(r=8, lora_alpha=8, target_modules="all-linear", init_lora_weights=start)
    model = get_peft_model(copy.deepcopy(base), config).eval()
    policy, loss = outputs(model)
    with model.disable_adapter():
        reference, loss_of_reference = outputs(model)
    divergence = (policy.exp() * (policy - reference)).sum(-1).mean().item()
    unloaded = outputs(model.unload())[1]
    print("LoRA started by", start, "| as base:", abs(loss - outputs(base)[1]) < 0.001, end=" | ")
    print(f"without adapter {loss_of_reference:.1f} unloaded {unloaded:.1f} | divergence {divergence:.1f}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
base | loss below 0.3: True
LoRA started by True | as base: True | without adapter 0.0 unloaded 0.0 | divergence 0.0
LoRA started by gaussian | as base: True | without adapter 0.0 unloaded 0.0 | divergence 0.0
LoRA started by pissa | as base: True | without adapter 1.8 unloaded 1.8 | divergence 1.9
LoRA started by olora | as base: True | without adapter 1.5 unloaded 1.5 | divergence 1.5
SEEN
