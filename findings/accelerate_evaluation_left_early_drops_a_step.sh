#!/usr/bin/env bash
# A validation that is left early makes Accelerate skip the last step of the epoch: its gradients come late, or never.
#
# Guess: a `break` in an evaluation loop ends it. Gradients of ten batches, accumulated by four, make three steps an
#        epoch, the last one of two batches, as without evaluation.
# Seen:  Accelerate keeps a list of the loaders in use, and a loader that is left early stays on it. The end of the
#        training loader is then no end: no step is made for the last two batches. Their gradients go into the first
#        step of the next epoch, and are lost where the epoch is the last. An evaluation that runs to its end changes
#        nothing. Two epochs have five steps rather than six, and nothing warns.
# With:  accelerate 1.15.0, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q accelerate==1.15.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(gradient_accumulation_steps=4, cpu=True)


def loader(rows):
    return DataLoader(TensorDataset(torch.ones(rows, 1)), batch_size=1)


def train(epochs, evaluated):
    """Return the batches in each step, and how far the weight goes at a gradient of 1 per batch and a rate of 4."""
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=4.0)
    model, optimizer, rows, validation = accelerator.prepare(model, optimizer, loader(10), loader(6))
    seen, parts = 0, []
    for _ in range(epochs):
        for number, (batch,) in enumerate(rows):
            with accelerator.accumulate(model):
                seen += 1
                accelerator.backward(model(batch).mean())
                optimizer.step()
                optimizer.zero_grad()
                if accelerator.sync_gradients:
                    parts.append(seen)
                    seen = 0
            if number == 4 and evaluated:
                for count, _ in enumerate(validation, 1):
                    if count == evaluated:
                        break
    return parts, -model.weight.item()


for epochs in (1, 2):
    for title, evaluated in (("no evaluation", 0), ("evaluation of all batches", 99), ("evaluation of two batches", 2)):
        accelerator.gradient_state._reset_state()
        accelerator = Accelerator(gradient_accumulation_steps=4, cpu=True)
        parts, moved = train(epochs, evaluated)
        print(f"{epochs} epochs, {title}: {len(parts)} steps of", *parts, f"batches | moved {moved:.0f}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
1 epochs, no evaluation: 3 steps of 4 4 2 batches | moved 10
1 epochs, evaluation of all batches: 3 steps of 4 4 2 batches | moved 10
1 epochs, evaluation of two batches: 2 steps of 4 4 batches | moved 8
2 epochs, no evaluation: 6 steps of 4 4 2 4 4 2 batches | moved 20
2 epochs, evaluation of all batches: 6 steps of 4 4 2 4 4 2 batches | moved 20
2 epochs, evaluation of two batches: 5 steps of 4 4 4 4 4 batches | moved 20
SEEN
