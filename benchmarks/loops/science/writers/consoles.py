"""Logs that are what a script prints."""

from __future__ import annotations

from benchmarks.loops.science.journal import Entry
from benchmarks.loops.science.writers.page import Page, short


def prints(page: Page) -> None:
    """A line of an f-string every few steps, and one that begins with stars for evaluation."""
    lines = list(page.head)
    for entry in page.entries():
        shown = " | ".join(f"{name} {short(value)}" for name, value in entry.values.items())
        if entry.kind == "note":
            lines.append(entry.text)
        else:
            start = "  *** eval" if entry.kind == "eval" else f"[{entry.step:>5d}/{page.last_step}]"
            lines.append(f"{start} {shown}")
    page.write("out.txt", lines)


def epoch_prints(page: Page) -> None:
    """A line an epoch, training and evaluation side by side."""
    lines, epochs = list(page.head), page.epochs()
    for epoch in epochs:
        trained = ", ".join(f"{name}={short(value)}" for name, value in epoch.train.items())
        held = ", ".join(f"{name}={short(value)}" for name, value in epoch.held.items())
        lines += epoch.notes
        tail = f" || val: {held}" if held else ""
        if trained:
            lines.append(
                f"Epoch {epoch.number + 1:03d}/{len(epochs):03d} ({epoch.seconds:.1f}s) train: {trained}{tail}"
            )
    page.write("train.out", lines)


def keras_console(page: Page) -> None:
    """The two lines an epoch that Keras prints with `verbose=2`."""
    lines, epochs = list(page.head), page.epochs()
    for epoch in epochs:
        shown = [f"{name}: {short(value)}" for name, value in epoch.train.items()]
        held = {name if name.startswith("train_") else f"val_{name}": value for name, value in epoch.held.items()}
        shown += [f"{name}: {short(value)}" for name, value in held.items()]
        lines += epoch.notes
        lines += [f"Epoch {epoch.number + 1}/{len(epochs)}", f"{epoch.seconds:.0f}s - " + " - ".join(shown)]
    page.write("console.log", lines)


def logging_lines(page: Page) -> None:
    """Lines of the logging module with a time stamp and a level."""
    lines = [f"2025-03-03 09:12:39,804 INFO trainer: {line}" for line in page.head]
    for entry in page.entries():
        moment = page.clock(entry)
        stamp = f"{moment:%Y-%m-%d %H:%M:%S},{moment.microsecond // 1000:03d}"
        if entry.kind == "note":
            level = "ERROR" if "Error" in entry.text else "INFO"
            lines.append(f"{stamp} {level} trainer: {entry.text}")
            continue
        what = "valid" if entry.kind == "eval" else "train"
        shown = " ".join(f"{name}={value:.5g}" for name, value in entry.values.items())
        lines.append(f"{stamp} INFO trainer: {what} epoch={entry.epoch} step={entry.step} {shown}")
    page.write("experiment.log", lines)


def logfmt(page: Page) -> None:
    """`key:value` pairs, separated by blanks."""
    lines = list(page.head)
    for entry in page.entries():
        prefix = "val_" if entry.kind == "eval" else ""
        shown = " ".join(f"{prefix}{name}:{value:.6g}" for name, value in entry.values.items())
        lines.append(entry.text if entry.kind == "note" else f"step:{entry.step}/{page.last_step} {shown}")
    page.write("log.txt", lines)


def tqdm_lines(page: Page) -> None:
    """The bar of tqdm as it lies in a redirected console, one state a line."""
    lines, total = list(page.head), page.last_step
    for entry in page.entries():
        if entry.kind == "note":
            lines.append(entry.text)
        elif entry.kind == "eval":
            lines.append("eval: " + ", ".join(f"{name}={short(value)}" for name, value in entry.values.items()))
        else:
            lines.append(_bar(entry, total))
    page.write("nohup.out", lines)


def _bar(entry: Entry, total: int) -> str:
    share = entry.step / max(total, 1)
    bar = "█" * int(10 * share) + " " * (10 - int(10 * share))
    spent, left = entry.at, entry.at / share - entry.at
    times = f"{int(spent) // 60:02d}:{int(spent) % 60:02d}<{int(left) // 60:02d}:{int(left) % 60:02d}"
    shown = ", ".join(f"{name}={value:.4g}" for name, value in entry.values.items())
    pace = f"{entry.step / max(spent, 1e-3):.2f}it/s"
    return f"Training: {100 * share:3.0f}%|{bar}| {entry.step}/{total} [{times}, {pace}, {shown}]"


def table(page: Page) -> None:
    """Columns under one heading, a row a record of training, the last evaluation in its own columns."""
    entries = list(page.entries())
    trained = next(list(e.values) for e in entries if e.kind == "train")
    held = next((list(e.values) for e in entries if e.kind == "eval"), [])
    latest: dict[str, float] = {}
    heading = "".join(f"{name:>14}" for name in ["step", *trained, *(f"test_{name}" for name in held)])
    lines = [*page.head, heading]
    for entry in entries:
        if entry.kind == "note":
            lines.append(entry.text)
        elif entry.kind == "eval":
            latest = entry.values
        else:
            cells = [entry.values[name] for name in trained]
            shown = [f"{value:.4e}" for value in cells] + [f"{latest[n]:.4e}" if n in latest else "-" for n in held]
            lines.append(f"{entry.step:>14d}" + "".join(f"{cell:>14}" for cell in shown))
    page.write("history.dat", lines)


def boxes(page: Page) -> None:
    """Boxes of dashes, a name and a value a line, as loggers of reinforcement learning print."""
    lines = list(page.head)
    for entry in page.entries():
        lines += ["-" * 40, *(f"| {name:<20} | {value:<13.5g} |" for name, value in _boxed(entry).items())]
    page.write("progress.txt", [*lines, "-" * 40])


def _boxed(entry: Entry) -> dict[str, float]:
    rollout = {"return": "rollout/ep_rew_mean", "success": "rollout/success_rate"}
    return {"time/total_timesteps": entry.step} | {rollout.get(n, f"train/{n}"): v for n, v in entry.values.items()}
