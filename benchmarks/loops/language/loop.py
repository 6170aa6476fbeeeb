"""The training loop of all supervised tasks, with the places where its mistakes can be planted."""

import math
import resource
import time
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from benchmarks.loops.language.settings import Plant, Settings
from benchmarks.loops.language.task import Batch, Record, Task
from benchmarks.loops.language.writers import Writer


def rate(s: Settings, step: int, fault: str = "") -> float:
    """The learning rate of a step; a fault of the schedule bends it."""
    steps, warmup = s.steps, s.warmup
    if fault == "micro":
        step = step * 4
    if fault == "short":
        steps = s.steps * 2 // 5
    if fault == "restart":
        step %= s.steps // 3
    if fault == "endless_warmup":
        warmup = s.steps * 50
    if fault == "no_decay_units":
        return float(s.lr * 0.97**step)
    if step < warmup:
        return s.lr * (step + 1) / warmup
    part = min(1.0, (step - warmup) / max(1, steps - warmup))
    floor = 0.0 if fault == "short" else s.min_lr_ratio
    shapes = {
        "constant": 1.0,
        "linear": 1 - part,
        "cosine": (1 + math.cos(math.pi * part)) / 2,
        "wsd": min(1.0, (1 - part) / 0.2),
    }
    return s.lr * (floor + (1 - floor) * shapes[s.schedule])


def groups(model: nn.Module, frozen: str) -> list[nn.Parameter]:
    """The parameters that the optimizer gets: "all" frozen leaves it one that does not matter."""
    if frozen == "all":
        return [nn.Parameter(torch.zeros(1))]
    return [p for name, p in model.named_parameters() if p.requires_grad and not (frozen and frozen in name)]


def optimizer_of(model: nn.Module, s: Settings, plant: Plant) -> torch.optim.Optimizer:
    """The optimizer that the settings name."""
    params = groups(model, plant.frozen)
    if s.optimizer == "sgd":
        return torch.optim.SGD(params, lr=s.lr, momentum=s.beta1, weight_decay=s.weight_decay)
    return torch.optim.AdamW(params, lr=s.lr, betas=(s.beta1, s.beta2), eps=s.eps, weight_decay=s.weight_decay)


def scaler_of(s: Settings, plant: Plant) -> torch.amp.GradScaler:
    """A loss scaler, switched on for half precision alone."""
    return torch.amp.GradScaler("cpu", enabled=s.dtype == "float16", init_scale=plant.start_scale, growth_interval=40)


@dataclass
class State:
    """What changes while a run goes on."""

    task: Task
    s: Settings
    plant: Plant
    optimizer: torch.optim.Optimizer
    scaler: torch.amp.GradScaler
    data_index: int = 0
    rate_offset: int = 0
    kept: list[Tensor] = field(default_factory=list)
    skipped: int = 0


def forward(state: State, batch: Batch) -> tuple[Tensor, Record]:
    """Loss of a batch in the precision of the run."""
    if state.s.dtype == "float32" or state.plant.bf16_weights:
        return state.task.loss(batch)
    with torch.autocast("cpu", dtype=getattr(torch, state.s.dtype)):
        return state.task.loss(batch)


def micro_step(state: State, step: int, record: Record) -> Tensor:
    """One micro-batch: data, forward, backward. Returns the detached loss."""
    start = time.perf_counter()
    if state.plant.stall:
        time.sleep(state.plant.stall * (0.6 + 0.8 * ((step * 7919) % 10) / 10))
    batch = state.task.batch(state.data_index)
    if step in state.plant.bad_steps:
        batch = state.task.spoil(batch)
    state.data_index += 1
    record["data_s"] = record.get("data_s", 0.0) + time.perf_counter() - start
    loss, extra = forward(state, batch)
    if state.plant.negate:
        loss = -loss
    share = 1 if state.plant.accum_sum else state.s.accum
    if loss.requires_grad:
        state.scaler.scale(loss / share).backward()  # type: ignore[no-untyped-call]
    record.update(extra)
    return loss.detach() / share


def grads_norm(state: State) -> float:
    """Global norm of the gradients before clipping; clips where the settings say so."""
    params = [p for p in state.task.model.parameters() if p.grad is not None]
    if not params:
        return 0.0
    limit = state.s.clip or float("inf")
    return float(torch.nn.utils.clip_grad_norm_(params, limit))


def update(state: State, record: Record) -> None:
    """Unscale, clip and step."""
    scale = state.scaler.get_scale()
    if state.scaler.is_enabled():
        state.scaler.unscale_(state.optimizer)
    record["grad_norm"] = grads_norm(state)
    if not state.plant.never_step:
        state.scaler.step(state.optimizer)
        state.scaler.update()
    if state.scaler.is_enabled():
        state.skipped += state.scaler.get_scale() < scale
        record["loss_scale"], record["skipped"] = state.scaler.get_scale(), float(state.skipped)


def one_step(state: State, step: int) -> Record:
    """An optimizer step and what can be logged of it."""
    s, plant, record = state.s, state.plant, {"step": float(step)}
    start = time.perf_counter()
    record["lr"] = rate(s, step - state.rate_offset, plant.schedule)
    for group in state.optimizer.param_groups:
        group["lr"] = record["lr"]
    if not plant.keep_grads:
        state.task.model.zero_grad()
    losses = [micro_step(state, step, record) for _ in range(s.accum)]
    record["loss"] = float(torch.stack(losses).sum())
    if plant.flip_bit == step and step:
        flip(state.task.model)
    update(state, record)
    if plant.leak:
        state.kept.append(torch.ones(plant.leak * 2**18))
    if plant.slow:
        time.sleep(plant.slow * step)
    record["step_s"] = time.perf_counter() - start
    record["rss_mb"] = memory_mb()
    if state.task.epoch_batches:
        record["epoch"] = state.data_index / state.task.epoch_batches
    return record


def flip(model: nn.Module) -> None:
    """Flip the highest exponent bit of one weight, as a faulty memory cell does."""
    weight = max(model.parameters(), key=lambda p: p.numel()).detach().view(-1)
    bits = weight[7:8].view(torch.int32)
    bits ^= 1 << 30


def memory_mb() -> float:
    """Resident memory of this process in MiB; the peak where the system has no such file."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - not a path of ours
            return int(file.read().split()[1]) * resource.getpagesize() / 2**20
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def evaluate(state: State) -> Record:
    """Metrics of the held-out data, in evaluation mode unless that was forgotten."""
    state.task.model.train(state.plant.eval_in_train_mode)
    with torch.no_grad():
        metrics = state.task.evaluate()
    state.task.model.train()
    return metrics


def resume(state: State, step: int, log: Writer) -> None:
    """Start again from the last checkpoint, without what the run forgets to restore."""
    weights = {name: value.clone() for name, value in state.task.model.state_dict().items()}
    saved, lose = state.optimizer.state_dict(), state.plant.lose
    state.optimizer = optimizer_of(state.task.model, state.s, state.plant)
    state.task.model.load_state_dict(weights)
    if "optimizer" not in lose:
        state.optimizer.load_state_dict(saved)
    if "schedule" in lose:
        state.rate_offset = step
    if "data" in lose:
        state.data_index = 0
    log.resumed(step)


def train(task: Task, s: Settings, log: Writer, plant: Plant | None = None) -> None:
    """Train the task by its settings and write the log; the plant holds what is wrong."""
    plant = plant or Plant()
    if plant.bf16_weights:
        task.model.to(torch.bfloat16)
    task.model.train()
    state = State(task, s, plant, optimizer_of(task.model, s, plant), scaler_of(s, plant))
    log.start(s, task)
    for step in range(s.steps):
        if s.eval_every and step % s.eval_every == 0 and (step or log.evaluates_at_start):
            log.evaluated(step, evaluate(state))
        if plant.resume and step == plant.resume:
            resume(state, step, log)
        record = one_step(state, step)
        if step % s.log_every == 0 or step == s.steps - 1:
            log.trained(record)
    if s.eval_every:
        log.evaluated(s.steps, evaluate(state))
    log.close()
