"""A small hand, to copy: trains a classifier with a known fault or none, logs it, and labels it.

    python -m benchmarks.corpus.example --into DIR/example
    python -m benchmarks.faults report --sets own --beside example=DIR/example

A hand is somebody's way to train and to log. It has three parts: a loop that would be right (`train`), faults that
change one thing of it (`FAULTS`), and the files that it leaves (`WAYS`). The label of a run is the fault that was put
in, never what its log looks like.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks.corpus.labels import Label, write_labels
from mldebug_mcp.recorder import Recorder

Record = dict[str, float]
INPUTS, CLASSES, WIDTH = 64, 10, 64
EVALUATED, EVAL_EVERY = 512, 25
APART = 3.0
"""Length of the mean of a class, about which inputs have a standard deviation of 1. Chosen: one row in ten is wrong."""
WATCHDOG = (
    "[rank1]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=417, OpType=ALLREDUCE, NumelIn=8388608, "
    "NumelOut=8388608, Timeout(ms)=600000) ran for 600031 milliseconds before timing out.\n"
)
MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.25 GiB. GPU 0 has a total capacity of 79.15 GiB "
    "of which 1.06 GiB is free.\n"
)


@dataclass(slots=True, kw_only=True)
class Setup:
    """A run before it is trained, as it should be; a fault changes it.

    Args:
        seed: Of the data, the weights and the order.
        rate: Learning rate of AdamW, which falls as a cosine.
        steps: Planned steps.
        batch: Rows of a batch.
        rows: Rows of the training set.
        weight_decay: Of AdamW.
        clip: Largest norm of the gradient; 0 for any.
        trained: Whether the optimizer has the model's parameters.
        labels: Turns the labels of the training set, shape (rows,), into those that are trained on.
        spoil: Turns the inputs of a batch, shape (batch, inputs), into those that are trained on, given the step.
        loss: Turns logits, shape (batch, classes), and labels, shape (batch,), into the loss.
        onset: The step at which the fault begins, if it has one.
        ends_at: The step after which the run stops without having finished; 0 where it runs to its end.
        last_words: What stands in the log after the last record.
        config: Further settings for the configuration file.
        recording: A folder for a recording; None for no recorder.
    """

    seed: int
    rate: float = 3e-3
    steps: int = 300
    batch: int = 32
    rows: int = 4096
    weight_decay: float = 0.01
    clip: float = 1.0
    trained: bool = True
    labels: Callable[[Tensor], Tensor] = lambda labels: labels
    spoil: Callable[[int, Tensor], Tensor] = lambda _, inputs: inputs
    loss: Callable[[Tensor, Tensor], Tensor] = nn.functional.cross_entropy
    onset: int | None = None
    ends_at: int = 0
    last_words: str = ""
    config: Mapping[str, object] = field(default_factory=dict)
    recording: Path | None = None

    def settings(self) -> dict[str, object]:
        """Return what stands in the configuration file."""
        return {
            "learning_rate": self.rate,
            "max_steps": self.steps,
            "batch_size": self.batch,
            "weight_decay": self.weight_decay,
            "max_grad_norm": self.clip,
            "num_classes": CLASSES,
            **self.config,
        }


def train(setup: Setup) -> list[Record]:
    """Train a run and return a record for each step; evaluations stand in the record of their step."""
    torch.manual_seed(setup.seed)
    means = nn.functional.normalize(torch.randn(CLASSES, INPUTS), dim=1) * APART
    inputs, labels = _drawn(means, setup.rows)
    labels = setup.labels(labels)
    held_out = _drawn(means, EVALUATED)
    model = nn.Sequential(
        nn.Linear(INPUTS, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, CLASSES)
    )
    parameters = [*model.parameters()] if setup.trained else [nn.Parameter(torch.zeros(1))]
    optimizer = torch.optim.AdamW(parameters, setup.rate, weight_decay=setup.weight_decay)
    recorder = Recorder(setup.recording).watch(model, optimizer) if setup.recording else None
    records = []
    for step, chosen in enumerate(_batches(setup), start=1):
        rate = setup.rate * (0.05 + 0.475 * (1 + math.cos(math.pi * step / setup.steps)))
        optimizer.param_groups[0]["lr"] = rate
        if recorder:
            recorder.begin(number=step)
        given = setup.spoil(step, inputs[chosen])
        if recorder:
            recorder.take_batch({"inputs": given, "labels": labels[chosen]})
        loss = setup.loss(model(given), labels[chosen])
        loss.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(model.parameters(), setup.clip or math.inf)
        optimizer.step()
        model.zero_grad()
        record = {"step": step, "loss": loss.item(), "grad_norm": norm.item(), "learning_rate": rate}
        records.append(record | {"epoch": step * setup.batch / setup.rows})
        if step % EVAL_EVERY == 0:
            records[-1] |= _evaluated(setup, model, *held_out)
        if recorder:
            recorder.log(**{name: value for name, value in records[-1].items() if name != "step"})
            recorder.end()
    if recorder:
        recorder.close()
    return records


def _drawn(means: Tensor, rows: int) -> tuple[Tensor, Tensor]:
    labels = torch.randint(0, CLASSES, (rows,))
    return means[labels] + torch.randn(rows, INPUTS), labels


def _batches(setup: Setup) -> Iterator[Tensor]:
    """Yield the rows of each batch, shape (batch,): shuffled anew in every pass, up to the last step."""
    order = torch.empty(0, dtype=torch.int64)
    for _ in range(setup.ends_at or setup.steps):
        if len(order) < setup.batch:
            order = torch.randperm(setup.rows)
        yield order[: setup.batch]
        order = order[setup.batch :]


@torch.no_grad()
def _evaluated(setup: Setup, model: nn.Module, inputs: Tensor, labels: Tensor) -> Record:
    logits = model(inputs)
    right = (logits.argmax(dim=1) == labels).float().mean()
    return {"eval_loss": setup.loss(logits, labels).item(), "eval_accuracy": right.item()}


def rate_too_high(setup: Setup) -> None:
    """Multiply the learning rate by a hundred, and clip nothing."""
    setup.rate, setup.clip = setup.rate * 100, 0.0


def rate_too_low(setup: Setup) -> None:
    """Take a thousandth of the learning rate."""
    setup.rate /= 1000


def not_trained(setup: Setup) -> None:
    """Give the optimizer other parameters than the model's."""
    setup.trained = False


def few_rows(setup: Setup) -> None:
    """Train on few rows, many times."""
    setup.rows = 96


def labels_shuffled(setup: Setup) -> None:
    """Give the rows the labels of other rows."""
    setup.labels = lambda labels: labels[torch.randperm(len(labels))]


def bad_batches(setup: Setup) -> None:
    """Multiply the inputs of one batch in the middle by a hundred."""
    at = setup.onset = setup.steps // 2
    setup.spoil = lambda step, inputs: 100 * inputs if step == at else inputs


def not_a_number(setup: Setup) -> None:
    """Take the logarithm of probabilities that are zero in half precision."""

    def loss(logits: Tensor, labels: Tensor) -> Tensor:
        probabilities = torch.softmax(3 * logits, dim=1).half().float()
        return nn.functional.nll_loss(torch.log(probabilities), labels)

    setup.loss = loss


def hangs(setup: Setup) -> None:
    """Stop halfway as a job does whose ranks wait for each other."""
    setup.onset = setup.ends_at = setup.steps // 2
    setup.last_words = WATCHDOG


def runs_out_of_memory(setup: Setup) -> None:
    """Stop early as a job does that asks for more memory than there is."""
    setup.onset = setup.ends_at = setup.steps // 4
    setup.last_words = MEMORY


FAULTS: Mapping[str, tuple[Callable[[Setup], None], tuple[str, ...]]] = {
    "healthy": (lambda _: None, ()),
    "lr_too_high": (rate_too_high, ("exploding_gradients",)),
    "lr_too_low": (rate_too_low, ()),
    "params_not_training": (not_trained, ()),
    "overfitting": (few_rows, ()),
    "no_signal": (labels_shuffled, ("label_noise",)),
    "bad_batch": (bad_batches, ()),
    "invalid_math": (not_a_number, ()),
    "hang": (hangs, ()),
    "out_of_memory": (runs_out_of_memory, ()),
}
"""By cause, as PLAYBOOK.md names it: what changes the setup, and other causes that the same log justifies."""


def json_lines(records: Sequence[Record]) -> str:
    """Return a JSON object a line."""
    return "".join(json.dumps(record) + "\n" for record in records)


def _printed(records: Sequence[Record]) -> str:
    lines = [", ".join(f"{name} {value:.5g}" for name, value in record.items()) for record in records]
    return "".join(f"{line}\n" for line in lines)


WAYS: Mapping[str, Callable[[Sequence[Record]], str]] = {"log.jsonl": json_lines, "train.log": _printed}
"""By file: how its records are written. What a run says at its end stands in a text log alone."""


def make(cause: str, seed: int, folder: Path, *, recorded: bool = False) -> Label:
    """Train a run, write its log and its settings into a folder, and return its label."""
    torch.set_num_threads(1)
    fault, also = FAULTS[cause]
    folder.mkdir(parents=True)
    setup = Setup(seed=seed, recording=folder if recorded else None)
    fault(setup)
    records = train(setup)
    if not recorded:
        file = "train.log" if setup.last_words else [*WAYS][seed % len(WAYS)]
        (folder / file).write_text(WAYS[file](records) + setup.last_words, encoding="utf-8")
    elif setup.last_words:
        (folder / "stderr.log").write_text(setup.last_words, encoding="utf-8")
    (folder / "config.json").write_text(json.dumps(setup.settings(), indent=1), encoding="utf-8")
    return Label(cause, also, setup.onset, setup.steps)


def main() -> None:
    """Make the runs and their index."""
    parser = argparse.ArgumentParser(prog="benchmarks.corpus.example", description=__doc__.partition("\n")[0])
    parser.add_argument("--into", type=Path, required=True, help="a new folder for the runs")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each cause")
    parser.add_argument("--recorded", action="store_true", help="leave recordings in place of logs")
    options = parser.parse_args()
    labels = {
        f"{cause}_{seed}": make(cause, seed, options.into / f"{cause}_{seed}", recorded=options.recorded)
        for cause in FAULTS
        for seed in range(options.seeds)
    }
    write_labels(options.into, labels)


if __name__ == "__main__":
    main()
