"""Lines on a terminal, as hand-made loops print them."""

from __future__ import annotations

from pathlib import Path

from benchmarks.loops.dialogue.core import Record, Row
from benchmarks.loops.dialogue.styles.common import dice, num, save, stamp, yaml_of
from benchmarks.loops.dialogue.styles.names import SHORT, long, pick


def plain(rec: Record, folder: Path) -> None:
    """`step 100 | loss 2.31 | lr 1e-3`, with a YAML config."""
    out = []
    for r in rec.rows:
        if r.kind == "event":
            out.append(r.text)
        elif r.kind == "train":
            out.append(f"step {r.step:>5} | " + " | ".join(f"{long(k)} {num(v)}" for k, v in r.values.items()))
        else:
            out.append(f"  >> eval @ {r.step}: " + ", ".join(f"{long(k)}={num(v)}" for k, v in r.values.items()))
    save(folder, "train.log", "\n".join(out) + "\n")
    save(folder, "config.yaml", yaml_of(rec.config))


def bars(rec: Record, folder: Path) -> None:
    """A progress bar with a postfix, redrawn by carriage returns."""
    out = []
    for r in rec.rows:
        if r.kind == "event":
            out.append("\n" + r.text + "\n")
        elif r.kind == "train":
            part = min(r.step / max(rec.total, 1), 1.0)
            bar = "█" * int(part * 20) + " " * (20 - int(part * 20))
            took = f"{int(r.seconds) // 60:02d}:{int(r.seconds) % 60:02d}"
            speed = r.step / max(r.seconds, 0.1)
            post = ", ".join(f"{pick(SHORT, k)}={num(v, 3)}" for k, v in r.values.items())
            out.append(
                f"\rTraining: {part * 100:3.0f}%|{bar}| {r.step}/{rec.total} [{took}<?, {speed:.2f}it/s, {post}]"
            )
        else:
            out.append("\nvalidation: " + " ".join(f"{long(k)}={num(v, 3)}" for k, v in r.values.items()) + "\n")
    save(folder, "output.txt", "".join(out) + "\n")


def logger(rec: Record, folder: Path) -> None:
    """Lines of the logging module; the config is printed first."""

    def s(row: Row) -> str:
        return stamp(rec, row, "%Y-%m-%d %H:%M:%S") + f",{int(row.seconds * 1000) % 1000:03d}"

    first = rec.rows[0]
    out = [f"{s(first)} - __main__ - INFO - {k} = {v}" for k, v in rec.config.items()]
    for r in rec.rows:
        if r.kind == "event":
            out.append(f"{s(r)} - __main__ - {'ERROR' if 'Error' in r.text else 'INFO'} - {r.text}")
        elif r.kind == "train":
            body = "  ".join(f"{long(k)}: {num(v)}" for k, v in r.values.items())
            out.append(f"{s(r)} - trainer - INFO - [ep {r.epoch:.2f}] iter {r.step}  {body}")
        else:
            body = "  ".join(f"{long(k)}: {num(v)}" for k, v in r.values.items())
            out.append(f"{s(r)} - evaluator - INFO - ***** dev results after {r.step} updates ***** {body}")
    save(folder, "run.log", "\n".join(out) + "\n")


def nano(rec: Record, folder: Path) -> None:
    """The wording of a well-known small GPT trainer."""
    out = [f"Overriding: {k} = {v}" for k, v in rec.config.items()] + ["number of parameters: 0.06M"]
    last = 0.0
    for r in rec.rows:
        values = dict(r.values)
        if r.kind == "event":
            out.append(r.text)
        elif r.kind == "train":
            took, last = (r.seconds - last) * 10, r.seconds
            loss = values.pop("loss", float("nan"))
            rest = "".join(f", {long(k)} {num(v)}" for k, v in values.items())
            out.append(f"iter {r.step}: loss {loss:.4f}, time {took:.2f}ms{rest}")
        else:
            loss = values.pop("loss", float("nan"))
            before = [x for x in rec.of("train") if x.step <= r.step]
            train = before[-1].values.get("loss", float("nan")) if before else float("nan")
            rest = "".join(f", {long(k)} {num(v)}" for k, v in values.items())
            out.append(f"step {r.step}: train loss {train:.4f}, val loss {loss:.4f}{rest}")
    save(folder, "log.txt", "\n".join(out) + "\n")


def colour(rec: Record, folder: Path) -> None:
    """Lines with colour codes and the place in the code."""
    green, cyan, off = "\x1b[32m", "\x1b[36m", "\x1b[0m"
    out = []
    for r in rec.rows:
        head = f"{green}{stamp(rec, r)}.{int(r.seconds * 1000) % 1000:03d}{off} | "
        if r.kind == "event":
            out.append(head + f"\x1b[1mWARNING {off} | {cyan}src.main{off}:{cyan}run{off}:141 - {r.text}")
        else:
            place = "train_step" if r.kind == "train" else "validate"
            body = " ".join(f"\x1b[33m{pick(SHORT, k)}{off}={num(v)}" for k, v in r.values.items())
            out.append(
                head + f"\x1b[1mINFO    {off} | {cyan}src.loop{off}:{cyan}{place}{off}:88 - {r.step}/{rec.total} {body}"
            )
    save(folder, "stderr.log", "\n".join(out) + "\n")
    save(
        folder,
        "config.toml",
        "[train]\n"
        + "".join(
            f"{k} = {v}\n" if isinstance(v, (int, float)) and not isinstance(v, bool) else f'{k} = "{v}"\n'
            for k, v in rec.config.items()
        ),
    )


def terse(rec: Record, folder: Path) -> None:
    """Very short lines below a dump of the environment."""
    out = (
        ["HOME=/home/user", "CUDA_VISIBLE_DEVICES=0"]
        + [f"{k.upper()}={v}" for k, v in rec.config.items()]
        + ["+ python train.py"]
    )
    for r in rec.rows:
        if r.kind == "event":
            out.append(r.text)
        else:
            mark = "it" if r.kind == "train" else "VAL it"
            out.append(f"{mark}={r.step} " + " ".join(f"{pick(SHORT, k)}={v:.4g}" for k, v in r.values.items()))
    save(folder, "nohup.out", "\n".join(out) + "\n")


def meters(rec: Record, folder: Path) -> None:
    """A printed Namespace, then current and average values side by side."""
    names = ", ".join(f"{k}={v!r}" for k, v in rec.config.items())
    out, seen = [f"Namespace({names})"], dict[str, tuple[float, int]]()
    for r in rec.rows:
        if r.kind == "event":
            out.append(r.text)
            continue
        if r.kind == "eval":
            out.append(f" * Test: [{r.step}]  " + "  ".join(f"{long(k)} {v:.3f}" for k, v in r.values.items()))
            seen = {}
            continue
        parts = []
        for k, v in r.values.items():
            total, count = seen.get(k, (0.0, 0))
            seen[k] = (total + v, count + 1)
            parts.append(f"{long(k)}: {num(v, 3)} ({num(seen[k][0] / seen[k][1], 3)})" if k != "lr" else f"lr: {v:.3e}")
        out.append(
            f"Train: {int(r.epoch)} [{r.step:>5}/{rec.total} ({100 * r.step / rec.total:>3.0f}%)]  " + "  ".join(parts)
        )
    save(folder, "train_output.log", "\n".join(out) + "\n")


def logfmt(rec: Record, folder: Path) -> None:
    """Pairs of key and value, as services log."""
    out = [
        f'ts={stamp(rec, rec.rows[0], "%Y-%m-%dT%H:%M:%SZ")} level=info msg="config" '
        + " ".join(f"{k}={v}" for k, v in rec.config.items())
    ]
    for r in rec.rows:
        ts = stamp(rec, r, "%Y-%m-%dT%H:%M:%SZ")
        if r.kind == "event":
            text = r.text.replace('"', "'").replace("\n", " \\n ")
            out.append(f'ts={ts} level={"error" if "Error" in text else "info"} msg="{text}" step={r.step}')
        else:
            body = " ".join(f"{long(k)}={v:.5g}" for k, v in r.values.items())
            out.append(f'ts={ts} level=info msg="{"train" if r.kind == "train" else "eval"}" step={r.step} {body}')
    save(folder, "app.log", "\n".join(out) + "\n")


def slurm(rec: Record, folder: Path) -> None:
    """Output and error files of a batch system."""
    job = dice(rec).randint(100000, 999999)
    settings = " ".join(f"--{k} {v}" for k, v in rec.config.items())
    out, err = [f"Job {job} on node gpu{job % 40:02d}", f"args: {settings}"], list[str]()
    for r in rec.rows:
        if r.kind == "event":
            (err if "Error" in r.text else out).append(r.text)
        elif r.kind == "train":
            out.append(
                f"[{stamp(rec, r, '%H:%M:%S')}] update={r.step} "
                + ", ".join(f"{long(k)}: {num(v)}" for k, v in r.values.items())
            )
        else:
            out.append(
                f"[{stamp(rec, r, '%H:%M:%S')}] dev: " + ", ".join(f"{long(k)}: {num(v)}" for k, v in r.values.items())
            )
    save(folder, f"slurm-{job}.out", "\n".join(out) + "\n")
    save(folder, f"slurm-{job}.err", "\n".join(err) + ("\n" if err else ""))
