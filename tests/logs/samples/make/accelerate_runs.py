"""Make the sample of Accelerate's TensorBoard tracker by running it (Accelerate 1.15 was used)."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from tests.logs.samples.make.keeping import folder_of, tell
from tests.logs.samples.make.lightning_runs import loader

if __name__ == "__main__":
    import torch
    from accelerate import Accelerator
    from accelerate.utils import set_seed
    from torch.nn import functional

    folder = folder_of("accelerate")
    with tempfile.TemporaryDirectory() as place:
        set_seed(1)
        accelerator = Accelerator(log_with="tensorboard", project_dir=place, cpu=True)
        accelerator.init_trackers("sample", config={"lr": 0.01, "batch_size": 32})
        layers = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
        model, optimizer, batches = accelerator.prepare(
            layers, torch.optim.Adam(layers.parameters(), 0.01), loader(512, 0)
        )
        step = 0
        for epoch in range(4):
            for points, labels in batches:
                loss = functional.cross_entropy(model(points), labels)
                accelerator.backward(loss)
                norm = accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
                step += 1
                accelerator.log({"train_loss": loss.item(), "grad_norm": norm.item(), "epoch": epoch}, step=step)
        accelerator.end_training()
        (events,) = Path(place, "sample").glob("events.out.tfevents.*")
        shutil.copy(events, folder / "events.out.tfevents.sample")
    tell(folder)
