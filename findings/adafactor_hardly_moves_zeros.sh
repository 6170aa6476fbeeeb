#!/usr/bin/env bash
# PyTorch's Adafactor moves a matrix of zeros, such as LoRA's B, at a thousandth of the learning rate that is logged.
#
# Guess: the first step is about as large as the learning rate, as Adam's is, whatever the weights are.
# Seen:  each step is multiplied by the size of the weights, which counts as 0.001 where they are smaller. LoRA's B,
#        zero at first, moves by 1e-5 at a rate of 1e-2. The rate is also held below 1 / sqrt(step): 0.1 is 0.022 at
#        step 2,001. The optimizer's `lr` shows neither. transformers' own class, as the Trainer sets it up, moves B by
#        1e-2.
# With:  torch 2.13.0, peft 0.21.2, transformers 5.24.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torch==2.13.0 peft==0.21.2 transformers==5.24.0 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import peft
import torch
import transformers

makers = {
    "torch AdamW": lambda weights: torch.optim.AdamW(weights, lr=1e-2),
    "torch Adafactor": lambda weights: torch.optim.Adafactor(weights, lr=1e-2),
    "transformers Adafactor": lambda weights: transformers.optimization.Adafactor(
        weights, lr=1e-2, scale_parameter=False, relative_step=False
    ),
}
for name, make in makers.items():
    torch.manual_seed(0)
    base = torch.nn.Sequential(torch.nn.Linear(64, 64))
    model = peft.get_peft_model(base, peft.LoraConfig(r=8, target_modules=["0"], init_lora_weights=True))
    (lora_b,) = (weights for key, weights in model.named_parameters() if "lora_B" in key)
    optimizer = make([weights for weights in model.parameters() if weights.requires_grad])
    (model(torch.randn(32, 64)) ** 2).mean().backward()
    optimizer.step()
    print(name, "| first move of B", f"{lora_b.detach().square().mean().sqrt().item():.0e}")
weights = torch.nn.Parameter(torch.ones(8, 8))
optimizer = torch.optim.Adafactor([weights], lr=0.1)
for step in range(1, 2002):
    weights.data.fill_(1.0)
    weights.grad = torch.randn(8, 8)
    optimizer.step()
moved = (weights.detach() - 1).square().mean().sqrt().item()
print("step 2,001 | lr", optimizer.param_groups[0]["lr"], "| moves by at most", round(2001**-0.5, 3), moved < 0.023)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
torch AdamW | first move of B 1e-02
torch Adafactor | first move of B 1e-05
transformers Adafactor | first move of B 1e-02
step 2,001 | lr 0.1 | moves by at most 0.022 True
SEEN
