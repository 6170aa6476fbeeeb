"""Make the samples of notebooks by running them in a kernel (nbclient 0.10, ipykernel 7, Transformers 5.23 were used).

`loops`: a loop that ends in an error, and the loop again with another rate. `trainer`: the Trainer, which shows a table
of its progress, and a table of data, which is no progress.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from tests.logs.samples.make.keeping import folder_of, tell

SETUP = """
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

def train(rate, fails_at=None):
    torch.manual_seed(0)
    x = torch.randn(64, 4)
    y = x @ torch.tensor([1.0, -2.0, 3.0, 0.5])
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for epoch in range(1, 9):
        loss = (model(x)[:, 0] - y).pow(2).mean()
        if epoch == fails_at:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}")
"""
TRAINER = """
rows = [{"input_ids": torch.arange(i, i + 8) % 16, "labels": torch.arange(i, i + 8) % 16} for i in range(64)]
config = GPT2Config(vocab_size=16, n_positions=8, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0)
options = TrainingArguments("out", max_steps=20, logging_steps=5, eval_strategy="steps", eval_steps=5, report_to=[],
                            learning_rate=1e-2, save_strategy="no", use_cpu=True, disable_tqdm=False)
trainer = Trainer(GPT2LMHeadModel(config), options, train_dataset=rows, eval_dataset=rows[:8])
trainer.train()
"""
DATA = """
import pandas
pandas.DataFrame({"epoch": [1, 2], "loss": [0.5, 0.25], "label": ["cat", "dog"]})
"""
NOTEBOOKS = {"loops": (SETUP, "train(0.1, fails_at=6)", "train(0.05)"), "trainer": (SETUP, TRAINER, DATA)}
_PLACE = re.compile(r"/(?:home|root|tmp|Users|work)[\w-]*/[^\s:'\"]*(?=/)")


def make(cells: Sequence[str], kept: Path) -> None:
    """Run a notebook, keep it with its outputs, and take the names of folders out of it."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell.strip()) for cell in cells])
    NotebookClient(notebook, timeout=300, allow_errors=True, kernel_name="python3").execute()
    kept.write_text(_PLACE.sub("", nbformat.writes(notebook)), encoding="utf-8")


if __name__ == "__main__":
    folder = folder_of("notebook")
    for name, cells in NOTEBOOKS.items():
        make(cells, folder / f"{name}.ipynb")
    tell(folder)
