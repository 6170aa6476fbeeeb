#!/usr/bin/env bash
# An AdaLoRA run begins at a loss of 5.1 where its base model has 3.5, with the same logits; evaluation says 5.1, too.
#
# Guess: new adapters change nothing, so that the first loss is that of the base, and `eval()` shows the plain loss.
# Seen:  PEFT adds a penalty to the loss that the model returns, for how far the factors are from orthogonal. It is half
#        of a mean norm that grows with the rank. It is there in `eval()` and under `no_grad()`, so that `eval_loss` and
#        its perplexity are of no text. LoRA of the same rank has the loss of the base.
# With:  peft 0.21.2, transformers 5.24.0, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q peft==0.21.2 transformers==5.24.0 accelerate==1.15.0 torch==2.13.0 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
from copy import deepcopy

import torch
from peft import AdaLoraConfig, LoraConfig, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
sizes = {"vocab_size": 32, "n_positions": 16, "n_embd": 32, "n_layer": 2, "n_head": 2}
base = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0)).eval()
rows = torch.randint(0, 32, (4, 8))
common = {"task_type": "CAUSAL_LM", "target_modules": ["c_attn"], "fan_in_fan_out": True}
with torch.no_grad():
    plain = base(rows, labels=rows)
    print("base | loss", round(plain.loss.item(), 1))
    for name, settings in {
        "LoRA of rank 12": LoraConfig(r=12, **common),
        "AdaLoRA of rank 4": AdaLoraConfig(init_r=4, target_r=2, total_step=100, **common),
        "AdaLoRA of rank 12": AdaLoraConfig(init_r=12, total_step=100, **common),
        "AdaLoRA without penalty": AdaLoraConfig(orth_reg_weight=1e-9, total_step=100, **common),
    }.items():
        model = get_peft_model(deepcopy(base), settings).eval()
        seen = model(rows, labels=rows)
        print(name, "| loss", round(seen.loss.item(), 1), "| same logits", bool(torch.equal(seen.logits, plain.logits)))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
base | loss 3.5
LoRA of rank 12 | loss 3.5 | same logits True
AdaLoRA of rank 4 | loss 4.4 | same logits True
AdaLoRA of rank 12 | loss 5.1 | same logits True
AdaLoRA without penalty | loss 3.5 | same logits True
SEEN
