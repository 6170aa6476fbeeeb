"""Logs as training scripts print them, in many shapes: a loss that falls, with noise, always the same."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from math import exp
from pathlib import Path

Shape = Callable[[int, random.Random], str]
"""A step and a source of randomness → what is printed at this step, with its line ends."""

TOTAL = 10_000_000
EVERY = 100
"""Steps between evaluations."""


def _loss(step: int, draw: random.Random) -> float:
    return 2 + 8 * exp(-step / 20_000) + draw.gauss(0, 0.02)


def _clock(step: int) -> str:
    minutes, seconds = divmod(step // 7, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours % 24:02d}:{minutes:02d}:{seconds:02d}"


def _trainer(step: int, draw: random.Random) -> str:
    if step % EVERY == 0:
        return f"{{'eval_loss': {_loss(step, draw)}, 'eval_runtime': 12.5, 'epoch': {step / 1000:.2f}}}\n"
    return (
        f"{{'loss': {_loss(step, draw):.4f}, 'grad_norm': {draw.lognormvariate(0, 0.2)}, "
        f"'learning_rate': {5e-5 * (1 - step / TOTAL)}, 'epoch': {step / 1000:.2f}}}\n"
    )


def _bar(at: int, total: int, behind: str = "", head: str = "") -> str:
    done = at * 80 // total
    drawn = "█" * (done // 8) + (" ▏▎▍▌▋▊▉"[done % 8] if done % 8 else "")
    rate = f"{at / 12 % 60:05.2f}it/s"
    return (
        f"{head}{at * 100 // total:3d}%|{drawn:<10}| {at}/{total} [{_clock(at)}<{_clock(total - at)}, {rate}{behind}]"
    )


def _bars(step: int, draw: random.Random) -> str:
    """The Trainer: its bar, redrawn in place, and a dict every tenth step."""
    told = "\n" + _trainer(step // 10 + 1, draw) if step % 10 == 9 else ""
    return f"\r{_bar(step % 100_000, 100_000)}{told}"


def _postfix(step: int, draw: random.Random) -> str:
    return "\r" + _bar(step, TOTAL, f", loss={_loss(step, draw):.3f}, lr={1e-4 * (1 - step / TOTAL):.2e}")


def _shown_first(step: int, draw: random.Random) -> str:
    """A loop over a bar that shows each loss: tqdm counts on seldom, so that many losses stand by one count."""
    counted = step // 7 * 7
    told = f", loss={_loss(step, draw):.4f}"
    shown = f"\r{_bar(counted - 7 * (step == counted), TOTAL, told)}"
    return f"{shown}\r{_bar(counted, TOTAL, told)}" if step == counted else shown


def _lightning(step: int, draw: random.Random) -> str:
    at = step % 1000 + 1
    end = "\n" if at == 1000 else ""
    told = f", v_num=0, train_loss={_loss(step, draw):.3f}, val_loss={2.5 + 100 / (step // 1000 + 9):.3f}"
    return f"\r{_bar(at, 1000, told, f'Epoch {step // 1000}: ')}{end}"


def _stamped(step: int, draw: random.Random) -> str:
    return (
        f"2024-05-{1 + step // 90_000 % 28:02d} {_clock(step)},{step % 1000:03d} - train - INFO - "
        f"Iter [{step}/{TOTAL}] lr: {1e-4:.3e} loss: {_loss(step, draw):.4f} "
        f"grad_norm: {draw.lognormvariate(0, 0.2):.3f}\n"
    )


def _equals(step: int, draw: random.Random) -> str:
    return f"step={step} loss={_loss(step, draw):.4f} lr={3e-4 * (1 - step / TOTAL):.2e} acc={draw.random():.3f}\n"


def _commas(step: int, draw: random.Random) -> str:
    if step % EVERY == 0:
        return f"step: {step}, val_loss: {_loss(step, draw):.4f}, val_acc: {draw.random():.3f}\n"
    return f"epoch: {step // 1000}, step: {step}, loss: {_loss(step, draw):.4f}, tokens/s: {draw.gauss(9e4, 99):,.0f}\n"


def _megatron(step: int, draw: random.Random) -> str:
    loss = _loss(step, draw)
    return (
        f" iteration {step:8d}/{TOTAL:8d} | consumed samples: {step * 1024:12d} | elapsed time per iteration (ms): "
        f"{22000 + loss:.1f} | learning rate: {1e-4:.3E} | global batch size: {1024:5d} | lm loss: {loss:.6E} | "
        f"loss scale: 65536.0 | grad norm: {loss / 3:.3f} | number of skipped iterations: {0:3d} |\n"
    )


def _pipes(step: int, draw: random.Random) -> str:
    at = step % 1000
    return (
        f"| epoch {step // 1000 + 1:3d} | {at:5d}/ 1000 batches | lr 5.00 | ms/batch {draw.gauss(12, 1):5.2f} | "
        f"loss {_loss(step, draw):5.2f} | ppl {exp(_loss(step, draw)):8.2f}\n"
    )


def _nanogpt(step: int, draw: random.Random) -> str:
    told = f"iter {step}: loss {_loss(step, draw):.4f}, time {draw.gauss(250, 9):.2f}ms, mfu {draw.gauss(40, 1):.2f}%\n"
    if step % EVERY:
        return told
    return f"step {step}: train loss {_loss(step, draw):.4f}, val loss {_loss(step, draw) + 0.1:.4f}\n{told}"


def _fairseq(step: int, draw: random.Random) -> str:
    return (
        f"2024-05-01 {_clock(step)} | INFO | train_inner | epoch {step // 1000 + 1:03d}: {step % 1000:6d} / 1000 "
        f"loss={_loss(step, draw):.3f}, ppl={2 ** _loss(step, draw):.2f}, wps={draw.gauss(21000, 99):.1f}, ups=5.92, "
        f"wpb=3584.9, bsz=134.7, num_updates={step}, lr={5e-4:.6g}, gnorm={draw.lognormvariate(0, 0.2):.3f}, "
        f"train_wall=17, gb_free=9.6, wall={step // 6}\n"
    )


def _keras(step: int, draw: random.Random) -> str:
    at, loss = step % 100 + 1, _loss(step, draw)
    done = "=" * (at * 29 // 100)
    head = f"Epoch {step // 100 + 1}/{TOTAL}\n" if at == 1 else ""
    if at == 100:
        return f"\r100/100 [{'=' * 30}] - 2s 20ms/step - loss: {loss:.4f} - val_loss: {loss + 0.1:.4f}\n"
    return f"{head}\r{at:3d}/100 [{done}>{'.' * (29 - len(done))}] - ETA: {100 - at}s - loss: {loss:.4f}"


def _ranks(step: int, draw: random.Random) -> str:
    return "".join(
        f"[rank{rank}]: step {step} | loss {_loss(step, draw):.4f} | grad_norm {draw.lognormvariate(0, 0.2):.4f} | "
        f"mem {70 + draw.random():.2f}GiB\n"
        for rank in range(4)
    )


def _coloured(step: int, draw: random.Random) -> str:
    return (
        f"\x1b[31mstep: {step:2d}  \x1b[32mloss: {_loss(step, draw):7.4f}  \x1b[38;2;180;60;0mgrad_norm: "
        f"{draw.lognormvariate(0, 0.2):7.4f}  \x1b[33mmemory: 47.5GiB(50.1%)  "
        f"\x1b[34mtps: {draw.gauss(8e3, 9):,.0f}\x1b[39m\n"
    )


def _imagenet(step: int, draw: random.Random) -> str:
    loss = _loss(step, draw)
    return (
        f"Epoch: [{step // 5000}][{step % 5000:4d}/5005]\tTime  0.31 ( 0.35)\tData  0.00 ( 0.02)\t"
        f"Loss {loss:.4e} ({loss + 0.1:.4e})\tAcc@1 {draw.random() * 99:6.2f} ( 40.10)\tAcc@5 {99.0:6.2f} ( 70.10)\n"
    )


def _module(step: int, draw: random.Random) -> str:
    """Lines of the logging module with numbers of all kinds, and a record every fifth line."""
    if step % 5 == 0:
        return f"INFO:trainer:step {step} loss {_loss(step, draw):.4f}\n"
    return f"INFO:data.loader:fetched shard {step} of {TOTAL} in {draw.random():.3f} s ({draw.gauss(30, 1):.1f} MB/s)\n"


def _noise(step: int, draw: random.Random) -> str:
    """Lines that say nothing, but for a record every thousandth line."""
    if step % 1000 == 0:
        return f"step {step} loss {_loss(step, draw):.4f}\n"
    shard = f"shard-{draw.randrange(9999):05d}.tar"
    return f"[{_clock(step)}] worker{draw.randrange(64)} fetched {shard} from the bucket, retry 0\n"


def _never_alike(step: int, draw: random.Random) -> str:
    """Lines with identifiers, so that no two have one skeleton, and a record every twentieth line."""
    if step % 20 == 0:
        return f"step {step} loss {_loss(step, draw):.4f}\n"
    return (
        f"2024-05-01 {_clock(step)} loader: fetched s3://bucket/{draw.getrandbits(64):016x}/"
        f"part-{draw.getrandbits(32):08x}.parquet ({draw.gauss(30, 1):.1f} MB) in {draw.random():.2f} s\n"
    )


def _box(step: int, draw: random.Random) -> str:
    """Stable-Baselines3."""
    rule = "-" * 42 + "\n"
    return (
        f"{rule}| rollout/                |              |\n|    ep_rew_mean          | {draw.gauss(90, 9):<12.3g} |\n"
        f"| time/                   |              |\n|    total_timesteps      | {step * 2048:<12d} |\n"
        f"| train/                  |              |\n|    loss                 | {_loss(step, draw):<12.4f} |\n"
        f"|    value_loss           | {draw.lognormvariate(0, 0.2):<12.4f} |\n{rule}"
    )


def _table(step: int, draw: random.Random) -> str:
    """fastai: names once, then a row for each record."""
    head = "epoch     train_loss  valid_loss  accuracy  time    \n" if step == 1 else ""
    loss = _loss(step, draw)
    return f"{head}{step - 1:<10d}{loss:<12.6f}{loss + 0.1:<12.6f}{draw.random():<10.6f}00:12   \n"


def _metric_lines(step: int, draw: random.Random) -> str:
    """A line for each metric of a step, and a bar above them."""
    told = f"step {step}: {{}} {{:.4f}}\n"
    return "".join(
        (
            f"\r{_bar(step, TOTAL)}\n",
            told.format("loss", _loss(step, draw)),
            told.format("accuracy", draw.random()),
            told.format("grad_norm", draw.lognormvariate(0, 0.2)) if step % 3 == 0 else "",
        )
    )


SHAPES: dict[str, Shape] = {
    "printed dicts": _trainer,
    "bars and dicts": _bars,
    "bars with metrics": _postfix,
    "bars with metrics ahead of the count": _shown_first,
    "Lightning's bar": _lightning,
    "stamped Iter [i/N]": _stamped,
    "key=value": _equals,
    "key: value, ...": _commas,
    "Megatron": _megatron,
    "pipes": _pipes,
    "nanoGPT": _nanogpt,
    "fairseq": _fairseq,
    "Keras": _keras,
    "ranks": _ranks,
    "colours": _coloured,
    "ImageNet": _imagenet,
    "logging module": _module,
    "noise": _noise,
    "no two alike": _never_alike,
    "a line per metric": _metric_lines,
    "boxes": _box,
    "printed tables": _table,
}


def pieces(shape: str) -> Iterator[str]:
    """Yield what a run prints, step by step, without end."""
    draw, step = random.Random(shape), 0  # noqa: S311 - no secret
    while True:
        step += 1
        yield SHAPES[shape](step, draw)


def write_text(path: Path, texts: Iterable[str], size: int) -> Path:
    """Write texts, one behind the other, until they are about `size` bytes."""
    written = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        for text in texts:
            file.write(text)
            written += len(text.encode())
            if written >= size:
                break
        file.write("\n")
    return path
