"""Train the small models whose logs stand in this folder: `python examples/make_examples.py` (needs torch).

Each function is one training run with one fault, or none, logged as such runs are logged in life. The text that the
language models learn is PLAYBOOK.md, character by character.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

HERE = Path(__file__).parent
WIDTH, CONTEXT, BATCH = 64, 64, 16
Step = Iterator[dict[str, float]]


class TinyGPT(nn.Module):
    """Two transformer layers that predict the next character: (batch, time) to (batch, time, vocabulary)."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.token = nn.Embedding(vocabulary, WIDTH)
        self.place = nn.Embedding(CONTEXT, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits of the next character at each position."""
        length = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        hidden = self.token(tokens) + self.place(torch.arange(length))
        logits: Tensor = self.head(self.layers(hidden, mask=mask, is_causal=True))
        return logits


def read_text() -> tuple[Tensor, int]:
    """Return the training text as character numbers, and how many characters there are."""
    text = (HERE.parent / "PLAYBOOK.md").read_text(encoding="utf-8")[:60_000]
    characters = sorted(set(text))
    return torch.tensor([characters.index(character) for character in text]), len(characters)


def windows(text: Tensor, generator: torch.Generator) -> Tensor:
    """Return a batch of random windows of the text, (BATCH, CONTEXT + 1)."""
    starts = torch.randint(0, len(text) - CONTEXT - 1, (BATCH,), generator=generator)
    return torch.stack([text[start : start + CONTEXT + 1] for start in starts])


def schedule(step: int, steps: int, peak: float, warmup: int) -> float:
    """Return the learning rate: linear warmup, then a cosine to a tenth of the peak."""
    if step < warmup:
        return peak * (step + 1) / warmup
    return peak * (0.1 + 0.45 * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))))


def train_language_model(
    steps: int, peak: float, warmup: int, spoil: Callable[[int, Tensor], Tensor], clip: float = 1.0
) -> Step:
    """Train a tiny GPT and yield one record per step; `spoil` may change the batch of a step."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    text, vocabulary = read_text()
    model = TinyGPT(vocabulary)
    optimizer = torch.optim.AdamW(model.parameters(), lr=peak)
    for step in range(steps):
        rate = schedule(step, steps, peak, warmup)
        for group in optimizer.param_groups:
            group["lr"] = rate
        batch = spoil(step, windows(text, generator))
        logits = model(batch[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        norm = nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        yield {"step": step + 1, "loss": loss.item(), "grad_norm": norm.item(), "learning_rate": rate}


def untouched(step: int, batch: Tensor) -> Tensor:
    """Leave every batch as it is."""
    del step
    return batch


def healthy() -> None:
    """Nothing is wrong."""
    write_jsonl("healthy", train_language_model(400, 3e-3, 40, untouched), learning_rate=3e-3, warmup_steps=40)


def loss_spike() -> None:
    """One batch holds rubbish: random characters instead of text."""
    rubbish = torch.Generator().manual_seed(1)

    def spoil(step: int, batch: Tensor) -> Tensor:
        return torch.randint(0, 80, batch.shape, generator=rubbish) if step == 249 else batch

    write_jsonl("loss_spike", train_language_model(400, 3e-3, 40, spoil), learning_rate=3e-3, warmup_steps=40)


def divergence() -> None:
    """The learning rate is far too high once warmup is over; the log is what a plain loop prints."""
    records = train_language_model(300, 1.2e-1, 100, untouched, clip=1e9)
    lines = [
        f"iter {record['step']:.0f}: loss {record['loss']:.4f}, lr {record['learning_rate']:.3e}, "
        f"grad_norm {record['grad_norm']:.3f}"
        for record in records
    ]
    write("divergence", "train.log", "\n".join(lines) + "\n")
    write_config(
        "divergence",
        learning_rate=1.2e-1,
        warmup_steps=100,
        max_steps=300,
        vocab_size=read_text()[1],
        optimizer="adamw",
    )


def nan_loss() -> None:
    """A hand-written cross-entropy takes the logarithm of a probability that underflows to zero."""
    torch.manual_seed(0)
    inputs = torch.randn(512, 16)
    labels = (inputs @ torch.randn(16, 4)).argmax(dim=1)
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    rows: list[dict[str, float]] = []
    for step in range(300):
        chosen = torch.randint(0, len(inputs), (32,))
        # The logits are scaled up step by step, as a temperature that is annealed too far would do.
        probabilities = torch.softmax(model(inputs[chosen]) * (1 + step / 4), dim=1)
        loss = -torch.log(probabilities[torch.arange(32), labels[chosen]]).mean()
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        rows.append({"step": step + 1, "train_loss": loss.item(), "grad_norm": norm.item(), "lr": 0.5})
    write_csv("nan_loss", rows)
    write_config("nan_loss", learning_rate=0.5, num_classes=4, max_grad_norm=5.0, optimizer="sgd")


def overfit() -> None:
    """A wide network, 64 examples with some wrong labels, 300 epochs."""
    torch.manual_seed(0)
    teacher = torch.randn(20, 3)
    inputs, unseen = torch.randn(64, 20), torch.randn(256, 20)
    labels, truth = (inputs @ teacher).argmax(dim=1), (unseen @ teacher).argmax(dim=1)
    labels[::6] = torch.randint(0, 3, labels[::6].shape)
    model = nn.Sequential(nn.Linear(20, 256), nn.ReLU(), nn.Linear(256, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    rows: list[dict[str, float]] = []
    for epoch in range(300):
        loss = functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        with torch.no_grad():
            held_out = model(unseen)
        rows.append(
            {
                "epoch": epoch,
                "loss": loss.item(),
                "val_loss": functional.cross_entropy(held_out, truth).item(),
                "val_accuracy": (held_out.argmax(dim=1) == truth).float().mean().item(),
            }
        )
    write_csv("overfit", rows)
    write_config("overfit", learning_rate=1e-3, num_classes=3, num_train_epochs=300, optimizer="adamw")


def write(run: str, name: str, text: str) -> None:
    """Write a file of a run."""
    (HERE / run).mkdir(exist_ok=True)
    (HERE / run / name).write_text(text, encoding="utf-8")


def write_config(run: str, **settings: float | str) -> None:
    """Write the configuration beside a log."""
    write(run, "config.json", json.dumps(settings, indent=2) + "\n")


def write_jsonl(run: str, records: Step, **settings: float | str) -> None:
    """Write a log of one JSON object per step, and the configuration."""
    lines = [json.dumps({key: float(f"{value:.6g}") for key, value in record.items()}) for record in records]
    write(run, "log.jsonl", "\n".join(lines) + "\n")
    write_config(run, **settings, max_steps=len(lines), max_grad_norm=1.0, vocab_size=read_text()[1], optimizer="adamw")


def write_csv(run: str, rows: list[dict[str, float]]) -> None:
    """Write a log as a table."""
    (HERE / run).mkdir(exist_ok=True)
    with (HERE / run / "metrics.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: f"{value:.6g}" for key, value in row.items()} for row in rows)


def main() -> None:
    """Make every example."""
    torch.set_num_threads(2)
    for make in (healthy, loss_spike, divergence, nan_loss, overfit):
        make()
        print(f"{make.__name__}: {make.__doc__}")


if __name__ == "__main__":
    main()
