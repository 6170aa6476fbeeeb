#!/usr/bin/env bash
# A trained LoRA model of loralib has the loss of its base again, if it is loaded in another mode than it was saved in.
#
# Guess: `train()` and `eval()` do not change weights, so that a checkpoint may be saved and loaded in either mode.
# Seen:  `eval()` adds the update to the frozen weights, and `train()` takes it out. Saved in evaluation and loaded in
#        training, the update counts twice, which errs by as much as none at all. The other way round it is never added,
#        and taken out at the next `train()`. The adapters alone may be saved in either mode, and come back in training
#        only. Nothing is said: all keys and shapes fit, and the loss stays at that of the base, 3.16 in place of 0.07.
# With:  loralib 0.1.2, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q loralib==0.1.2 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import loralib
import torch

torch.manual_seed(0)
rows, rule = torch.randn(64, 4), torch.randn(4, 4)


def base():
    """Return the base model, with new adapters."""
    torch.manual_seed(1)
    return loralib.Linear(4, 4, r=4)


def loss(model):
    """Return the mean squared error."""
    return torch.nn.functional.mse_loss(model(rows), rows @ rule)


model = base()
print("base", f"{loss(model).item():.2f}", end=" | ")
loralib.mark_only_lora_as_trainable(model)
optimizer = torch.optim.Adam([part for part in model.parameters() if part.requires_grad], 0.02)
for _ in range(600):
    optimizer.zero_grad()
    loss(model).backward()
    optimizer.step()
print("trained", f"{loss(model).item():.2f}")
for kind, state in {"all weights": torch.nn.Module.state_dict, "adapters": loralib.lora_state_dict}.items():
    for saved in ("training", "evaluation"):
        model.train(saved == "training")
        kept = {name: values.clone() for name, values in state(model).items()}
        for loaded in ("training", "evaluation"):
            new = base()
            new.train(loaded == "training")
            new.load_state_dict(kept, strict=False)
            losses = []
            for mode in (loaded == "training", True, False):
                new.train(mode)
                losses.append(f"{loss(new).item():.2f}")
            print(kind, "saved in", saved, "loaded in", loaded, "| loss", *losses)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
base 3.16 | trained 0.07
all weights saved in training loaded in training | loss 0.07 0.07 0.07
all weights saved in training loaded in evaluation | loss 3.16 3.16 3.16
all weights saved in evaluation loaded in training | loss 3.16 3.16 3.16
all weights saved in evaluation loaded in evaluation | loss 0.07 0.07 0.07
adapters saved in training loaded in training | loss 0.07 0.07 0.07
adapters saved in training loaded in evaluation | loss 3.16 3.16 3.16
adapters saved in evaluation loaded in training | loss 0.07 0.07 0.07
adapters saved in evaluation loaded in evaluation | loss 3.16 3.16 3.16
SEEN
