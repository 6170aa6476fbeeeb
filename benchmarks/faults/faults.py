"""What is wrong: each fault changes a setup in one way, at several severities, and knows which cause it is."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.faults.loop import Record, Setup, plain_loss
from benchmarks.faults.tasks import Batch, full

CLASSIFIED = ("gpt", "sft", "tabular", "images", "sequences", "pixels", "two_tower")
VECTORS = ("tabular", "regression", "diffusion")
POOLED = ("tabular", "regression", "images", "sequences", "sft")
ALL = (*CLASSIFIED, "regression", "diffusion")


@dataclass(frozen=True)
class Fault:
    """A fault.

    Args:
        id: Its name.
        cause: The cause of the playbook that it injects; `healthy` for runs that only look odd.
        apply: Changes a setup; the second argument is the severity.
        severities: From mild to gross.
        tasks: The tasks that it makes sense for.
        also: Other causes that the same observables justify.
    """

    id: str
    cause: str
    apply: Callable[[Setup, float], None]
    severities: tuple[float, ...]
    tasks: tuple[str, ...] = ALL
    also: tuple[str, ...] = ()


def randomised(batch: Batch, generator: torch.Generator, classes: int) -> Batch:
    """Return the batch with targets that have nothing to do with its inputs."""
    if batch.targets.is_floating_point():
        return Batch(batch.inputs, 3 * torch.randn(batch.targets.shape, generator=generator), batch.mask)
    return Batch(batch.inputs, torch.randint(0, max(2, classes), batch.targets.shape, generator=generator), batch.mask)


def rubbish(setup: Setup, batch: Batch, generator: torch.Generator, scale: float) -> Batch:
    """Return a batch with random targets and, where inputs are numbers, far too large ones."""
    batch = randomised(batch, generator, setup.task.classes)
    inputs = batch.inputs * scale if batch.inputs.is_floating_point() else batch.inputs
    return Batch(inputs, batch.targets * (scale if batch.targets.is_floating_point() else 1), batch.mask)


# Data


def bad_batch(setup: Setup, severity: float) -> None:
    at = int(setup.steps * (0.4 + 0.05 * (setup.seed % 8)))
    setup.onset = at + 1
    setup.spoil = lambda step, batch, generator: rubbish(setup, batch, generator, severity) if step == at else batch


def bad_data_pocket(setup: Setup, severity: float) -> None:
    period, width = setup.steps // 4, int(severity)
    setup.onset = period // 2 + 1

    def spoil(step: int, batch: Batch, generator: torch.Generator) -> Batch:
        return rubbish(setup, batch, generator, 2.0) if period // 2 <= step % period < period // 2 + width else batch

    setup.spoil = spoil


def label_noise(setup: Setup, severity: float) -> None:
    def spoil(step: int, batch: Batch, generator: torch.Generator) -> Batch:
        del step
        wrong = torch.rand(batch.targets.shape, generator=generator) < severity
        other = randomised(batch, generator, setup.task.classes).targets
        return Batch(batch.inputs, torch.where(wrong, other, batch.targets), batch.mask)

    setup.spoil = spoil


def shuffled_labels(setup: Setup, severity: float) -> None:
    del severity
    setup.spoil = lambda step, batch, generator: randomised(batch, generator, setup.task.classes)
    setup.spoil_evaluation = lambda batch, generator: randomised(batch, generator, setup.task.classes)


def zeroed_inputs(setup: Setup, severity: float) -> None:
    del severity
    blank = lambda batch: Batch(torch.zeros_like(batch.inputs), batch.targets, batch.mask)  # noqa: E731
    setup.spoil = lambda step, batch, generator: blank(batch)
    setup.spoil_evaluation = lambda batch, generator: blank(batch)


def unshuffled(setup: Setup, severity: float) -> None:
    setup.examples, setup.shuffle = int(setup.batch * severity), False


def few_examples(setup: Setup, severity: float) -> None:
    setup.examples = int(setup.batch * severity)
    setup.schedule = "constant"
    setup.steps = int(setup.steps * 1.5)


def evaluation_shifted(setup: Setup, severity: float) -> None:
    def spoil(batch: Batch, generator: torch.Generator) -> Batch:
        del generator
        if batch.inputs.is_floating_point():
            return Batch(batch.inputs * severity + severity, batch.targets, batch.mask)
        return Batch((batch.inputs + 1) % max(2, int(batch.inputs.max()) + 1), batch.targets, batch.mask)

    setup.spoil_evaluation = spoil


def batchnorm_never_settles(setup: Setup, severity: float) -> None:
    def prepare(model: nn.Module) -> None:
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.momentum = severity

    setup.prepare = prepare


# Loss


def masked(setup: Setup, severity: float) -> None:
    def loss(logits: Tensor, batch: Batch) -> Tensor:
        nothing = Batch(batch.inputs, batch.targets, torch.zeros_like(batch.mask))
        # A mean over no target is NaN; frameworks that divide by at least one report 0 instead.
        return plain_loss(logits, nothing) if severity > 1 else 0.0 * logits.sum()

    setup.loss = loss


def unshifted(setup: Setup, severity: float) -> None:
    del severity
    setup.spoil = lambda step, batch, generator: Batch(batch.inputs, batch.inputs, full(batch.inputs))


def double_softmax(setup: Setup, severity: float) -> None:
    del severity

    def loss(logits: Tensor, batch: Batch) -> Tensor:
        return plain_loss(logits.softmax(dim=1 if logits.dim() == 4 else -1), batch)

    setup.loss = loss


def wrong_sign(setup: Setup, severity: float) -> None:
    del severity
    setup.loss = lambda logits, batch: -plain_loss(logits, batch)


def unsafe_log(setup: Setup, severity: float) -> None:
    def loss(logits: Tensor, batch: Batch) -> Tensor:
        scores = logits.permute(0, 2, 3, 1) if logits.dim() == 4 else logits
        probabilities = (scores * severity).softmax(dim=-1).flatten(0, -2)[batch.mask.flatten()]
        chosen = probabilities.gather(1, batch.targets[batch.mask].unsqueeze(1))
        return -chosen.log().mean()

    setup.loss = loss
    setup.clip = 0.0


def unsafe_root(setup: Setup, severity: float) -> None:
    at = int(setup.steps * severity)
    setup.onset = at + 1

    def spoil(step: int, batch: Batch, generator: torch.Generator) -> Batch:
        del generator
        return Batch(batch.inputs * (0.0 if step == at else 1.0), batch.targets, batch.mask)

    setup.spoil = spoil
    setup.loss = lambda logits, batch: plain_loss(logits, batch) + 0 * (logits - logits.detach()).norm(dim=-1).mean()


def summed_over_accumulation(setup: Setup, severity: float) -> None:
    setup.accumulation = 1
    setup.loss = lambda logits, batch: severity * plain_loss(logits, batch)
    setup.config["gradient_accumulation_steps"] = severity


# Optimizer and schedule


def rate_times(setup: Setup, severity: float) -> None:
    setup.lr *= severity
    setup.clip = 0.0 if severity > 20 else setup.clip


def sgd_rate_times(setup: Setup, severity: float) -> None:
    setup.optimizer, setup.lr, setup.clip = "sgd", 0.05 * severity, 0.0


def no_warmup(setup: Setup, severity: float) -> None:
    setup.warmup, setup.lr, setup.schedule = 0.0, setup.lr * severity, "linear"
    setup.onset = 1


def schedule_ends_early(setup: Setup, severity: float) -> None:
    end = int(setup.steps * severity)
    setup.onset = end
    setup.rate = lambda step, rate: setup.lr * max(0.0, 1 - step / end)


def schedule_restarts(setup: Setup, severity: float) -> None:
    at = setup.steps // 2
    setup.onset = at + 1
    setup.rate = lambda step, rate: rate if step < at else setup.lr * severity


def frozen(setup: Setup, severity: float) -> None:
    del severity

    def prepare(model: nn.Module) -> None:
        for parameter in model.parameters():
            parameter.requires_grad_(False)

    setup.prepare = prepare


def not_in_optimizer(setup: Setup, severity: float) -> None:
    del severity
    setup.rate = None
    setup.after_backward = lambda step, model: None

    def forget(step: int, model: nn.Module) -> None:
        del step
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.grad = parameter.grad * 0

    setup.after_backward = forget


def never_zeroed(setup: Setup, severity: float) -> None:
    setup.zero_grad, setup.clip, setup.optimizer, setup.lr = False, 0.0, "sgd", 0.02 * severity


def clipped_tight(setup: Setup, severity: float) -> None:
    setup.optimizer, setup.lr, setup.clip = "sgd", 0.05, severity


def exploding(setup: Setup, severity: float) -> None:
    setup.shape.depth, setup.optimizer, setup.lr, setup.clip, setup.shape.norm = 6, "sgd", 0.05 * severity, 0.0, False
    setup.prepare = partial(scale_weights, factor=1.6)


def decay(setup: Setup, severity: float) -> None:
    setup.weight_decay = severity / setup.lr / 100


def tiny_batch(setup: Setup, severity: float) -> None:
    setup.batch, setup.lr = int(severity), setup.lr * 2


def rounded_weights(setup: Setup, severity: float) -> None:
    setup.lr *= severity

    def round_them(step: int, model: nn.Module) -> None:
        del step
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(parameter.bfloat16())

    setup.after_backward = round_them
    setup.config["bf16"] = True


def half_precision(setup: Setup, severity: float) -> None:
    at = int(setup.steps * severity)
    setup.onset = at + 1
    scale = [65536.0]

    def skip(step: int, model: nn.Module) -> None:
        if step >= at:
            for parameter in model.parameters():
                if parameter.grad is not None:
                    parameter.grad = None

    def edit(step: int, record: Record) -> Record:
        if step >= at:
            scale[0] = max(scale[0] / 2, 1e-4)
            record["grad_norm"] = math.inf if step % 3 else math.nan
        return record | {"loss_scale": scale[0]}

    setup.after_backward, setup.edit = skip, edit
    setup.config["fp16"] = True


# Model


def scale_weights(model: nn.Module, factor: float) -> None:
    """Multiply every weight matrix."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(factor)


def large_head(setup: Setup, severity: float) -> None:
    def prepare(model: nn.Module) -> None:
        last = [module for module in model.modules() if isinstance(module, (nn.Linear, nn.Conv2d))][-1]
        with torch.no_grad():
            last.weight.mul_(severity)

    setup.prepare = prepare
    setup.onset = 1


def deep_sigmoid(setup: Setup, severity: float) -> None:
    setup.shape.depth, setup.shape.activation, setup.shape.norm = int(severity), nn.Sigmoid, False


def dead_relu(setup: Setup, severity: float) -> None:
    setup.shape.activation, setup.shape.norm = nn.ReLU, False

    def prepare(model: nn.Module) -> None:
        body = [module for module in model.modules() if isinstance(module, (nn.Linear, nn.Conv2d))][:-1]
        with torch.no_grad():
            for module in body:
                if module.bias is not None:
                    module.bias.fill_(-severity)

    setup.prepare = prepare


def narrow(setup: Setup, severity: float) -> None:
    setup.shape.width, setup.shape.depth = int(severity), 1


# Resuming


def state_lost(setup: Setup, severity: float) -> None:
    setup.resume_at, setup.resume_loses_state = setup.steps // 2, True
    setup.schedule = "constant"
    setup.lr *= severity
    setup.warmup = 0.0
    setup.onset = setup.resume_at + 1


# The machine: what it does to the clock and the memory is simulated, the training is real.


def clock(setup: Setup, edit: Callable[[int, Record, torch.Generator], Record]) -> None:
    generator = torch.Generator().manual_seed(setup.seed)

    def with_clock(step: int, record: Record) -> Record:
        jitter = torch.rand(1, generator=generator).item()
        record |= {
            "step_time": 0.5 * (1 + 0.05 * jitter),
            "data_time": 0.01 * (1 + jitter),
            "memory": 20.0 + 0.05 * jitter,
        }
        return edit(step, record, generator)

    setup.edit = with_clock


def slow_loader(setup: Setup, severity: float) -> None:
    def edit(step: int, record: Record, generator: torch.Generator) -> Record:
        del step
        wait = severity * (0.5 + torch.rand(1, generator=generator).item())
        return record | {"data_time": wait, "step_time": record["step_time"] + wait}

    clock(setup, edit)


def leak(setup: Setup, severity: float) -> None:
    clock(setup, lambda step, record, generator: record | {"memory": record["memory"] + severity * step})


def slower_and_slower(setup: Setup, severity: float) -> None:
    clock(
        setup,
        lambda step, record, generator: (
            record | {"step_time": record["step_time"] * (1 + severity * step / setup.steps)}
        ),
    )


def straggler(setup: Setup, severity: float) -> None:
    def edit(step: int, record: Record, generator: torch.Generator) -> Record:
        slow = torch.rand(1, generator=generator).item() < 0.04
        return record | {"step_time": record["step_time"] * (severity if slow else 1)}

    clock(setup, edit)


# Evaluation


def constant_metric(setup: Setup, severity: float) -> None:
    setup.edit = lambda step, record: record | ({"eval_accuracy": severity} if "eval_accuracy" in record else {})


FAULTS = {
    fault.id: fault
    for fault in (
        Fault("bad_batch", "bad_batch", bad_batch, (3, 10, 30), also=("bad_data_pocket",)),
        Fault("bad_data_pocket", "bad_data_pocket", bad_data_pocket, (2, 5), also=("bad_batch",)),
        Fault("label_noise", "label_noise", label_noise, (0.5, 0.8), CLASSIFIED, ("no_signal", "too_little_capacity", "train_eval_mismatch")),
        Fault("shuffled_labels", "no_signal", shuffled_labels, (1,), ALL, ("label_noise", "lr_too_low", "double_softmax")),
        Fault("zeroed_inputs", "no_signal", zeroed_inputs, (1,), ("tabular", "images", "regression", "sequences"), ("label_noise", "params_not_training", "too_little_capacity")),
        Fault("unshuffled", "unshuffled_data", unshuffled, (8, 16), ("tabular", "images", "sequences"), ("bad_data_pocket",)),
        Fault("overfitting", "overfitting", few_examples, (1, 2, 4), ("tabular", "images", "gpt", "regression"), ("duplicated_data",)),
        Fault("evaluation_shifted", "train_eval_mismatch", evaluation_shifted, (3, 8), ("tabular", "images", "pixels", "sequences", "gpt"), ("eval_mode_bug",)),
        Fault("batchnorm_never_settles", "eval_mode_bug", batchnorm_never_settles, (0.0, 0.001), ("images", "pixels"), ("train_eval_mismatch",)),
        Fault("masked_zero", "all_labels_masked", masked, (1,), ("sft", "gpt"), ("params_not_training",)),
        Fault("masked_nan", "all_labels_masked", masked, (2,), ("sft", "gpt"), ("invalid_math",)),
        Fault("unshifted", "label_shift_error", unshifted, (1,), ("gpt", "sft"), ("train_eval_leakage", "duplicated_data")),
        Fault("double_softmax", "double_softmax", double_softmax, (1,), CLASSIFIED, ("too_little_capacity", "wrong_loss", "lr_too_low")),
        Fault("wrong_sign", "wrong_loss", wrong_sign, (1,), ALL),
        Fault("unsafe_log", "invalid_math", unsafe_log, (60, 300), ("tabular", "images", "sequences", "pixels"), ("exploding_gradients", "fp16_overflow")),
        Fault("unsafe_root", "invalid_math", unsafe_root, (0.3, 0.6), VECTORS, ("bad_batch", "fp16_overflow", "exploding_gradients")),
        Fault("summed", "grad_accum_scaling", summed_over_accumulation, (4, 16), ("gpt", "sft", "images", "sequences")),
        Fault("rate_high", "lr_too_high", rate_times, (30, 100, 400), ALL, ("exploding_gradients", "insufficient_warmup")),
        Fault("sgd_rate_high", "lr_too_high", sgd_rate_times, (20, 100), ("tabular", "regression", "images", "diffusion"), ("exploding_gradients",)),
        Fault("rate_low", "lr_too_low", rate_times, (0.002, 0.0005), ALL, ("params_not_training",)),
        Fault("no_warmup", "insufficient_warmup", no_warmup, (15, 40), ("gpt", "sft"), ("lr_too_high",)),
        Fault("schedule_ends_early", "lr_schedule_bug", schedule_ends_early, (0.15, 0.4), ALL, ("lr_too_low",)),
        Fault("schedule_restarts", "lr_schedule_bug", schedule_restarts, (3, 10), ALL, ("lr_too_high", "resume_state_lost")),
        Fault("frozen", "params_not_training", frozen, (1,), ALL, ("no_signal",)),
        Fault("not_in_optimizer", "params_not_training", not_in_optimizer, (1,), ALL, ("lr_too_low",)),
        Fault("never_zeroed", "missing_zero_grad", never_zeroed, (1, 3), ("tabular", "images", "sequences", "regression"), ("lr_too_high", "exploding_gradients")),
        Fault("clipped_tight", "clip_too_tight", clipped_tight, (0.001, 0.01), ALL, ("lr_too_low",)),
        Fault("exploding", "exploding_gradients", exploding, (1, 4), ("tabular", "regression", "images", "sequences"), ("lr_too_high", "bad_init")),
        Fault("decay", "weight_decay_too_high", decay, (30, 100), ("tabular", "images", "sequences", "gpt"), ("too_little_capacity", "lr_too_low")),
        Fault("tiny_batch", "batch_too_small", tiny_batch, (1, 2), ("tabular", "images", "gpt", "sequences"), ("label_noise",)),
        Fault("rounded_weights", "low_precision_update", rounded_weights, (0.05, 0.01), ("tabular", "gpt", "images", "sequences"), ("lr_too_low", "params_not_training")),
        Fault("half_precision", "fp16_overflow", half_precision, (0.0, 0.4), ALL, ("exploding_gradients",)),
        Fault("large_head", "bad_init", large_head, (30, 100), CLASSIFIED),
        Fault("deep_sigmoid", "vanishing_gradients", deep_sigmoid, (6, 12), ("tabular", "regression", "sequences", "images"), ("lr_too_low", "no_signal", "bad_init", "dead_units")),
        Fault("dead_relu", "dead_units", dead_relu, (5, 20), ("tabular", "regression", "sequences", "images"), ("vanishing_gradients", "no_signal", "params_not_training")),
        Fault("narrow", "too_little_capacity", narrow, (2, 4), ("gpt", "images", "sequences", "tabular"), ("label_noise", "lr_too_low")),
        Fault("state_lost", "resume_state_lost", state_lost, (3, 8), ("gpt", "images", "tabular", "sft"), ("resume_data_replayed", "lr_too_high")),
        Fault("slow_loader", "dataloader_bottleneck", slow_loader, (0.5, 2.0), ALL),
        Fault("leak", "memory_leak", leak, (0.01, 0.1), ALL),
        Fault("slower_and_slower", "throughput_degradation", slower_and_slower, (1.0, 4.0), ALL, ("memory_leak",)),
        Fault("straggler", "hardware_fault", straggler, (4.0, 12.0), ALL, ("dataloader_bottleneck", "throughput_degradation")),
        Fault("constant_metric", "metric_bug", constant_metric, (0.0, 0.25), ("tabular", "images", "sequences", "sft"), ("class_imbalance",)),
    )
}  # fmt: skip


# Healthy runs that look odd


def as_usual(setup: Setup, severity: float) -> None:
    del setup, severity


def one_cycle(setup: Setup, severity: float) -> None:
    setup.warmup, setup.lr, setup.schedule = severity, setup.lr * 2, "linear"


def warmup_stable_decay(setup: Setup, severity: float) -> None:
    del severity
    setup.schedule = "wsd"


def constant_rate(setup: Setup, severity: float) -> None:
    setup.schedule, setup.warmup, setup.lr = "constant", 0.0, setup.lr * severity


def small_batch(setup: Setup, severity: float) -> None:
    setup.batch = int(severity)


def long_after_it_is_done(setup: Setup, severity: float) -> None:
    setup.steps = int(setup.steps * severity)


def dropout(setup: Setup, severity: float) -> None:
    setup.shape.dropout = severity


def hard_examples(setup: Setup, severity: float) -> None:
    def spoil(step: int, batch: Batch, generator: torch.Generator) -> Batch:
        del step
        hard = torch.rand(1, generator=generator).item() < 0.05
        return label_noised(batch, generator, setup, severity if hard else 0.0)

    setup.spoil = spoil


def label_noised(batch: Batch, generator: torch.Generator, setup: Setup, share: float) -> Batch:
    """Return the batch with a share of its targets drawn at random."""
    wrong = torch.rand(batch.targets.shape, generator=generator) < share
    other = randomised(batch, generator, setup.task.classes).targets
    return Batch(batch.inputs, torch.where(wrong, other, batch.targets), batch.mask)


def short(setup: Setup, severity: float) -> None:
    setup.steps = int(severity)
    setup.eval_every = max(5, setup.steps // 4)


def epochs(setup: Setup, severity: float) -> None:
    setup.examples = int(setup.batch * severity)


def with_clock(setup: Setup, severity: float) -> None:
    del severity
    clock(setup, lambda step, record, generator: record)


HEALTHY = {
    fault.id: fault
    for fault in (
        Fault("as_usual", "healthy", as_usual, (1,)),
        Fault("one_cycle", "healthy", one_cycle, (0.3, 0.45)),
        Fault("warmup_stable_decay", "healthy", warmup_stable_decay, (1,)),
        Fault("constant_rate", "healthy", constant_rate, (0.5, 1)),
        Fault("small_batch", "healthy", small_batch, (8, 12)),
        Fault("long_after_it_is_done", "healthy", long_after_it_is_done, (2,), ("tabular", "sequences", "diffusion", "pixels")),
        Fault("dropout", "healthy", dropout, (0.1, 0.2)),
        Fault("hard_examples", "healthy", hard_examples, (0.3,)),
        Fault("short", "healthy", short, (60, 120)),
        Fault("epochs", "healthy", epochs, (60, 100)),
        Fault("with_clock", "healthy", with_clock, (1,)),
    )
}  # fmt: skip
