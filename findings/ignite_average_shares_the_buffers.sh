#!/usr/bin/env bash
# To count the statistics of an Ignite average anew ruins the model that is trained: a loss of 0.06 becomes 6.57.
#
# Guess: `handle_buffers="copy"` copies the running means of batch normalization to the average after each step, and a
#        warm-up of its momentum works whatever name it is attached under.
# Seen:  the average gets the very tensors of the model, not their numbers. `update_bn` of the average sets the running
#        means of the model, too; a pass through the model in training mode, or a checkpoint that is loaded into it,
#        sets those of the average. "update" keeps its own. The warm-up sets `ema_momentum` alone: attached as
#        "average", as two averages of one run need two names, the momentum is at its end value from the first step on,
#        and the average is at 1.43 where it should be at 12.76. Nothing is said of either.
# With:  pytorch-ignite 0.5.5, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q pytorch-ignite==0.5.5 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import copy

import torch
from ignite.engine import Engine, Events
from ignite.handlers import EMAHandler
from torch.optim.swa_utils import update_bn

for handling in ("copy", "update"):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
    first = copy.deepcopy(model.state_dict())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(engine, rows):
        loss = (model.train()(rows) - rows[:, :1]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def losses(average):
        """Return the losses of the model and of the average in evaluation."""
        rows = torch.randn(512, 4, generator=torch.Generator().manual_seed(1)) * 3 + 5
        values = ((part.eval()(rows) - rows[:, :1]).square().mean() for part in (model, average))
        return " and ".join(f"{float(value.detach()):.2f}" for value in values)

    trainer = Engine(step)
    handler = EMAHandler(model, momentum=0.1, handle_buffers=handling)
    handler.attach(trainer)
    trainer.run([torch.randn(64, 4) * 3 + 5 for _ in range(100)], max_epochs=1)
    print(f"{handling}: loss of the model and of its average {losses(handler.ema_model)}")
    update_bn([torch.randn(64, 4) * 9 for _ in range(10)], handler.ema_model)
    print("  after update_bn of the average with other rows:", losses(handler.ema_model))
    model.load_state_dict(first)
    print("  after the first weights were loaded into the model:", losses(handler.ema_model))

for name in ("ema_momentum", "average"):
    model = torch.nn.Linear(1, 1, bias=False)
    model.weight.data.fill_(1)
    trainer = Engine(lambda engine, row: model.weight.data.fill_(engine.state.iteration))
    handler = EMAHandler(model, momentum=0.001, momentum_warmup=0.5, warmup_iters=20)
    handler.attach(trainer, name=name)
    momenta = []
    trainer.add_event_handler(Events.ITERATION_COMPLETED, lambda engine: momenta.append(getattr(engine.state, name)))
    trainer.run(range(30), max_epochs=1)
    shown = " ".join(f"{momentum:.3f}" for momentum in momenta[::5])
    print(f"warm-up as {name}: momentum {shown}, average of a weight from 1 to 30: {float(handler.ema_model.weight):.2f}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
copy: loss of the model and of its average 0.06 and 0.02
  after update_bn of the average with other rows: 6.57 and 6.54
  after the first weights were loaded into the model: 59.33 and 279.74
update: loss of the model and of its average 0.06 and 0.01
  after update_bn of the average with other rows: 0.06 and 6.54
  after the first weights were loaded into the model: 59.33 and 6.54
warm-up as ema_momentum: momentum 0.500 0.369 0.237 0.106 0.001 0.001, average of a weight from 1 to 30: 12.76
warm-up as average: momentum 0.001 0.001 0.001 0.001 0.001 0.001, average of a weight from 1 to 30: 1.43
SEEN
