"""Faults of optimizer, schedule, accumulation and resume."""

from collections.abc import Callable
from copy import deepcopy

import torch

from benchmarks.loops.vision.faults.data import Fault
from benchmarks.loops.vision.trainer import Trainer


def keep_gradients(trainer: Trainer) -> None:
    """Gradients are never set to zero."""
    trainer.zero_grad = lambda: None


def keep_gradients_within_epoch(trainer: Trainer) -> None:
    """Gradients are set to zero at the start of an epoch alone."""
    trainer.zero_grad = lambda: None
    trainer.at_epoch.append(lambda _epoch: trainer.optimizer.zero_grad())


def never_step(trainer: Trainer) -> None:
    """The optimizer's step is not called."""
    trainer.update = lambda: None


def foreign_optimizer(trainer: Trainer) -> None:
    """The optimizer holds the weights of a copy of the model, made before the model was moved."""
    build, model = trainer.build_optimizer, trainer.model

    def make() -> torch.optim.Optimizer:
        trainer.model = deepcopy(model)
        optimizer = build()
        trainer.model = model
        return optimizer

    trainer.make_optimizer = make


def frozen(keep: int) -> Fault:
    """All weights are frozen but the last `keep` tensors."""

    def plant(trainer: Trainer) -> None:
        for weight in list(trainer.model.parameters())[: -keep or None]:
            weight.requires_grad_(False)

    return plant


def graph_cut(trainer: Trainer) -> None:
    """The loss is taken of a detached copy of the outputs, which needs gradients of its own."""
    forward = trainer.forward

    def cut(model: torch.nn.Module, batch: list[torch.Tensor]) -> torch.Tensor:
        output: torch.Tensor = forward(model, batch).detach().requires_grad_()
        return output

    trainer.forward = cut


def unscaled_accumulation(trainer: Trainer) -> None:
    """The loss is not divided by the number of micro-batches."""
    trainer.backward = lambda loss: loss.backward()  # type: ignore[no-untyped-call]


def summed_log(trainer: Trainer) -> None:
    """Loss and gradients are summed over the micro-batches, and so is what the log shows."""
    criterion, share = trainer.criterion, trainer.config.accumulate
    trainer.criterion = lambda output, batch: (
        criterion(output, batch) * share if trainer.model.training else criterion(output, batch)
    )


def factor(change: Callable[[int, int], float]) -> Fault:
    """The schedule is `change` of the step and of the batches in an epoch."""

    def plant(trainer: Trainer) -> None:
        trainer.factor = lambda step: change(step, trainer.batches_per_epoch)

    return plant


def scaled_steps(times: float) -> Fault:
    """The configured schedule is advanced `times` for each optimizer step."""

    def plant(trainer: Trainer) -> None:
        wanted = trainer.factor
        trainer.factor = lambda step: wanted(min(int(step * times), trainer.total_steps))

    return plant


def resume(at: int, *, optimizer: bool = True, schedule: bool = True) -> Fault:
    """At the start of epoch `at` the run is built anew from a checkpoint; what is False is not restored."""

    def plant(trainer: Trainer) -> None:
        skipped = [0]
        wanted = trainer.factor
        trainer.factor = lambda step: wanted(step - skipped[0])

        def restart(epoch: int) -> None:
            if epoch != at:
                return
            saved = trainer.checkpoint()
            trainer.log.say(
                f"=> loaded checkpoint 'checkpoint_{at - 1:02d}.pth' (epoch {at - 1}, step {trainer.steps})"
            )
            trainer.optimizer = trainer.make_optimizer()
            if optimizer:
                trainer.optimizer.load_state_dict(saved["optimizer"])
            if not schedule:
                skipped[0] = trainer.steps

        trainer.at_epoch.append(restart)

    return plant


def interrupted(batches: int, *, replay: bool) -> Fault:
    """The first epoch breaks off after some batches; after the resume it goes on behind them, or from the start."""

    def plant(trainer: Trainer) -> None:
        draw, rows = trainer.draw, batches * trainer.config.batch_size

        def broken(epoch: int) -> torch.Tensor:
            if epoch == 0:
                return draw(0)[:rows]
            if epoch == 1:
                return draw(0) if replay else draw(0)[rows:]
            return draw(epoch - 1)

        def tell(epoch: int) -> None:
            if epoch == 1:
                trainer.log.say(f"Resuming from last.ckpt at global step {trainer.steps}")

        trainer.draw = broken
        trainer.at_epoch.append(tell)

    return plant
