"""Logs as training scripts print them, in many shapes: a loss that falls, with noise, always the same."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import exp
from pathlib import Path

Number = Callable[[int, random.Random], object]

TOTAL = 10_000_000
PASS = 1000
"""Steps of an epoch."""


def _loss(step: int, draw: random.Random) -> float:
    return 2 + 8 * exp(-step / 20_000) + draw.gauss(0, 0.02)


def _clock(step: int) -> str:
    minutes, seconds = divmod(step // 7, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours % 24:02d}:{minutes:02d}:{seconds:02d}"


def _bar(at: int, total: int) -> str:
    """Return a bar of tqdm without what stands behind its pace."""
    done = at * 80 // total
    drawn = "█" * (done // 8) + (" ▏▎▍▌▋▊▉"[done % 8] if done % 8 else "")
    times = f"{_clock(at)}<{_clock(total - at)}, {at / 12 % 60:05.2f}it/s"
    return f"{at * 100 // total:3d}%|{drawn:<10}| {at}/{total} [{times}"


NUMBERS: Mapping[str, Number] = {
    "step": lambda step, _: step,
    "total": lambda *_: TOTAL,
    "epoch": lambda step, _: (step - 1) // PASS,
    "batch": lambda step, _: (step - 1) % PASS + 1,
    "passes": lambda step, _: step / PASS,
    "samples": lambda step, _: step * 1024,
    "clock": lambda step, _: _clock(step),
    "day": lambda step, _: 1 + step // 90_000 % 28,
    "part": lambda step, _: step % 1000,
    "bar": lambda step, _: _bar(step, TOTAL),
    "short_bar": lambda step, _: _bar(step % 100_000, 100_000),
    "pass_bar": lambda step, _: _bar((step - 1) % PASS + 1, PASS),
    "loss": _loss,
    "eval_loss": lambda step, draw: _loss(step, draw) + 0.1,
    "pass_loss": lambda step, _: 2.5 + 100 / (step // PASS + 9),
    "rate": lambda step, _: 1e-4 * (1 - step / TOTAL),
    "norm": lambda _, draw: draw.lognormvariate(0, 0.2),
    "share": lambda _, draw: draw.random(),
    "percent": lambda _, draw: 99 * draw.random(),
    "speed": lambda _, draw: draw.gauss(9e4, 99),
    "milliseconds": lambda _, draw: draw.gauss(250, 9),
    "key": lambda _, draw: draw.getrandbits(64),
    "shard": lambda _, draw: draw.randrange(9999),
    "rule": lambda *_: "-" * 42,
}
"""What templates print, by name: a step and a source of randomness → the number or text."""
TRAINED = "{{'loss': {loss:.4f}, 'grad_norm': {norm}, 'learning_rate': {rate}, 'epoch': {passes:.2f}}}\n"
EVALUATED = "{{'eval_loss': {eval_loss}, 'eval_runtime': 12.5, 'epoch': {passes:.2f}}}\n"
NANOGPT = "iter {step}: loss {loss:.4f}, time {milliseconds:.2f}ms, mfu {percent:.2f}%\n"
LIGHTNING = "\rEpoch {epoch}: {pass_bar}, v_num=0, train_loss={loss:.3f}, val_loss={pass_loss:.3f}]"
METRICS = "\r{bar}]\nstep {step}: loss {loss:.4f}\nstep {step}: accuracy {share:.4f}\n"
RECORD = "step {step} loss {loss:.4f}\n"
TEMPLATES: Mapping[str, Mapping[int, str]] = {
    "printed dicts": {100: EVALUATED, 1: TRAINED},
    "bars and dicts": {
        1000: f"\r{{short_bar}}]\n{EVALUATED}",
        10: f"\r{{short_bar}}]\n{TRAINED}",
        1: "\r{short_bar}]",
    },
    "bars with metrics": {1: "\r{bar}, loss={loss:.3f}, lr={rate:.2e}]"},
    "Lightning's bar": {PASS: f"{LIGHTNING}\n", 1: LIGHTNING},
    "stamped Iter [i/N]": {
        1: "2024-05-{day:02d} {clock},{part:03d} - train - INFO - Iter [{step}/{total}] lr: {rate:.3e} "
        "loss: {loss:.4f} grad_norm: {norm:.3f}\n"
    },
    "key=value": {1: "step={step} loss={loss:.4f} lr={rate:.2e} acc={share:.3f}\n"},
    "key: value, ...": {
        100: "step: {step}, val_loss: {eval_loss:.4f}, val_acc: {share:.3f}\n",
        1: "epoch: {epoch}, step: {step}, loss: {loss:.4f}, tokens/s: {speed:,.0f}\n",
    },
    "Megatron": {
        1: " iteration {step:8d}/{total:8d} | consumed samples: {samples:12d} | elapsed time per iteration (ms): "
        "{milliseconds:.1f} | learning rate: {rate:.3E} | global batch size:  1024 | lm loss: {loss:.6E} | "
        "loss scale: 65536.0 | grad norm: {norm:.3f} | number of skipped iterations:   0 |\n"
    },
    "pipes": {
        1: "| epoch {epoch:3d} | {batch:5d}/ 1000 batches | lr 5.00 | ms/batch {milliseconds:5.2f} | "
        "loss {loss:5.2f} | ppl {percent:8.2f}\n"
    },
    "nanoGPT": {100: f"step {{step}}: train loss {{loss:.4f}}, val loss {{eval_loss:.4f}}\n{NANOGPT}", 1: NANOGPT},
    "fairseq": {
        1: "2024-05-01 {clock} | INFO | train_inner | epoch {epoch:03d}: {batch:6d} / 1000 loss={loss:.3f}, "
        "ppl={percent:.2f}, wps={speed:.1f}, ups=5.92, wpb=3584.9, bsz=134.7, num_updates={step}, lr={rate:.6g}, "
        "gnorm={norm:.3f}, train_wall=17, gb_free=9.6, wall={part}\n"
    },
    "colours": {
        1: "\x1b[31mstep: {step:2d}  \x1b[32mloss: {loss:7.4f}  \x1b[38;2;180;60;0mgrad_norm: {norm:7.4f}  "
        "\x1b[33mmemory: 47.5GiB(50.1%)  \x1b[34mtps: {speed:,.0f}\x1b[39m\n"
    },
    "ImageNet": {
        1: "Epoch: [{epoch}][{batch:4d}/1000]\tTime  0.31 ( 0.35)\tData  0.00 ( 0.02)\t"
        "Loss {loss:.4e} ({eval_loss:.4e})\tAcc@1 {percent:6.2f} ( 40.10)\tAcc@5  99.00 ( 70.10)\n"
    },
    "logging module": {
        5: "INFO:trainer:step {step} loss {loss:.4f}\n",
        1: "INFO:data.loader:fetched shard {step} of {total} in {share:.3f} s ({percent:.1f} MB/s)\n",
    },
    "noise": {1000: RECORD, 1: "[{clock}] worker{day} fetched shard-{shard:05d}.tar from the bucket, retry 0\n"},
    "no two alike": {
        20: RECORD,
        1: "2024-05-01 {clock} loader: fetched s3://bucket/{key:016x}/part-{shard:08x}.parquet ({percent:.1f} MB) in "
        "{share:.2f} s\n",
    },
    "a line per metric": {3: f"{METRICS}step {{step}}: grad_norm {{norm:.4f}}\n", 1: METRICS},
    "boxes": {
        1: "{rule}\n| rollout/                |              |\n|    ep_rew_mean          | {percent:<12.3g} |\n"
        "| time/                   |              |\n|    total_timesteps      | {samples:<12d} |\n"
        "| train/                  |              |\n|    loss                 | {loss:<12.4f} |\n"
        "|    value_loss           | {norm:<12.4f} |\n{rule}\n"
    },
}
"""What is printed at a step, by the name of the shape: of its templates the first whose number divides the step."""


def _shown_first(step: int, draw: random.Random) -> str:
    """A loop over a bar that shows each loss: tqdm counts on seldom, so that many losses stand by one count."""
    counted, told = step // 7 * 7, f", loss={_loss(step, draw):.4f}]"
    shown = f"\r{_bar(counted - 7 * (step == counted), TOTAL)}{told}"
    return f"{shown}\r{_bar(counted, TOTAL)}{told}" if step == counted else shown


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


def _table(step: int, draw: random.Random) -> str:
    """fastai: names once, then a row for each record."""
    head = "epoch     train_loss  valid_loss  accuracy  time    \n" if step == 1 else ""
    loss = _loss(step, draw)
    return f"{head}{step - 1:<10d}{loss:<12.6f}{loss + 0.1:<12.6f}{draw.random():<10.6f}00:12   \n"


WRITTEN: Mapping[str, Callable[[int, random.Random], str]] = {
    "bars with metrics ahead of the count": _shown_first, "Keras": _keras, "ranks": _ranks, "printed tables": _table,
}  # fmt: skip
"""Shapes that no template of one step gives."""
SHAPES = (*TEMPLATES, *WRITTEN)


class _Drawn(dict[str, object]):
    """The numbers of a step, each drawn when a template first asks for it."""

    def __init__(self, step: int, draw: random.Random) -> None:
        super().__init__()
        self._step, self._draw = step, draw

    def __missing__(self, name: str) -> object:
        return self.setdefault(name, NUMBERS[name](self._step, self._draw))


def pieces(shape: str) -> Iterator[str]:
    """Yield what a run prints, step by step, without end."""
    draw, step = random.Random(shape), 0  # noqa: S311 - no secret
    while True:
        step += 1
        if shape in WRITTEN:
            yield WRITTEN[shape](step, draw)
        else:
            template = next(template for every, template in TEMPLATES[shape].items() if step % every == 0)
            yield template.format_map(_Drawn(step, draw))


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
