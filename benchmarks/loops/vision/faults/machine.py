"""Faults of memory and time."""

import torch

from benchmarks.loops.vision.faults.data import Fault
from benchmarks.loops.vision.trainer import Trainer


def kept_tensors(megabytes: float) -> Fault:
    """Each step's activations are kept in a list for a plot that nobody makes."""

    def plant(trainer: Trainer) -> None:
        kept: list[torch.Tensor] = []
        trainer.after_step.append(lambda: kept.append(torch.ones(int(megabytes * 2**18))))

    return plant


def kept_graphs(copies: int) -> Fault:
    """The running loss is summed as a tensor, so each step's graph stays alive."""

    def plant(trainer: Trainer) -> None:
        criterion = trainer.criterion
        sums: list[torch.Tensor] = []

        def keep(output: torch.Tensor, batch: list[torch.Tensor]) -> torch.Tensor:
            wide = output.repeat(copies, *[1] * (output.dim() - 1)) * 1.0
            loss = criterion(output, batch) + 0.0 * wide.sigmoid().square().mean()
            sums.append(sums[-1] + loss.clone() if sums else loss.clone())
            return loss

        trainer.criterion = keep
        trainer.backward = lambda loss: loss.backward(retain_graph=True)  # type: ignore[no-untyped-call]

    return plant


def growing_work(per_step: int) -> Fault:
    """A running statistic is computed anew over all that was ever seen."""

    def plant(trainer: Trainer) -> None:
        seen: list[float] = []
        update = trainer.update

        def slow() -> None:
            update()
            seen.extend(float(k % 97) for k in range(per_step))
            sorted(seen, key=lambda value: -value)

        trainer.update = slow

    return plant


def pairwise_matrix(at: int, side: int) -> Fault:
    """From step `at` on a regulariser builds a matrix of all pairs, of `side` rows."""

    def plant(trainer: Trainer) -> None:
        criterion = trainer.criterion

        def paired(output: torch.Tensor, batch: list[torch.Tensor]) -> torch.Tensor:
            loss = criterion(output, batch)
            if trainer.micro_steps >= at:
                loss = loss + 0.01 * torch.empty(side, side, output.shape[-1], dtype=output.dtype).mean()
            return loss

        trainer.criterion = paired

    return plant
