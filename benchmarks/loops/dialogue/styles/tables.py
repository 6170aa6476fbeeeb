"""Tables with a row for each step, in CSV, TSV and on the terminal."""

from __future__ import annotations

from pathlib import Path

from benchmarks.loops.dialogue.core import Record
from benchmarks.loops.dialogue.styles.common import num, save, stamp, yaml_of
from benchmarks.loops.dialogue.styles.names import GERMAN, SB3, long, pick


def excel(rec: Record, folder: Path) -> None:
    """Semicolons and decimal commas, in German."""
    keys = rec.keys("train")
    evals = rec.keys("eval")

    def comma(value: float) -> str:
        return f"{value:.6g}".replace(".", ",")

    out = [";".join(["Schritt"] + [pick(GERMAN, k) for k in keys] + ["Val_" + pick(GERMAN, k) for k in evals])]
    for r in rec.rows:
        if r.kind == "event":
            continue
        train, held = (r.values, {}) if r.kind == "train" else ({}, r.values)
        cells = [comma(train[k]) if k in train else "" for k in keys]
        cells += [comma(held[k]) if k in held else "" for k in evals]
        out.append(";".join([str(r.step), *cells]))
    save(folder, "verlauf.csv", "\n".join(out) + "\n")
    notes = [r.text for r in rec.of("event")]
    save(folder, "notiz.txt", "\n".join([f"{k}: {v}" for k, v in rec.config.items()] + notes) + "\n")


def tsv(rec: Record, folder: Path) -> None:
    """Tabs under a header in comments; evaluation in a file of its own."""
    for kind, name in (("train", "progress.tsv"), ("eval", "heldout.tsv")):
        keys = rec.keys(kind)
        if not keys:
            continue
        out = [f"# started {stamp(rec, rec.rows[0])}"] + [f"# {k}={v}" for k, v in rec.config.items()]
        out.append("#updates\twall_s\t" + "\t".join(long(k) for k in keys))
        out += [
            f"{r.step}\t{r.seconds:.1f}\t" + "\t".join(f"{r.values.get(k, float('nan')):.5g}" for k in keys)
            for r in rec.of(kind)
        ]
        out += [f"# {r.text}" for r in rec.of("event") if kind == "train"]
        save(folder, name, "\n".join(out) + "\n")


def sb3(rec: Record, folder: Path) -> None:
    """Boxes of values in groups, with times."""
    out = [f"{k}: {v}" for k, v in rec.config.items()] + ["Using cpu device"]
    for index, r in enumerate(r for r in rec.rows):
        if r.kind == "event":
            out.append(r.text)
            continue
        groups: dict[str, list[str]] = {
            "time": [f"|    {'iterations':<20} | {index:<12} |", f"|    {'total_timesteps':<20} | {r.step:<12} |"]
        }
        for k, v in r.values.items():
            group, _, name = pick(SB3, k).rpartition("/")
            group = "eval" if r.kind == "eval" else group or "train"
            groups.setdefault(group, []).append(f"|    {name:<20} | {num(v, 3):<12} |")
        rule = "-" * 42
        out += (
            [rule] + [line for g in sorted(groups) for line in [f"| {g + '/':<23} | {'':<12} |"] + groups[g]] + [rule]
        )
    save(folder, "console.txt", "\n".join(out) + "\n")


def spacy(rec: Record, folder: Path) -> None:
    """Columns under a ruler, scores in percent."""
    keys, evals = [k for k in rec.keys("train") if k not in ("lr", "epoch")], rec.keys("eval")
    heads = ["E", "#"] + [long(k).upper()[:13] for k in keys] + [("DEV_" + long(k)).upper()[:14] for k in evals]
    out = ["ℹ Using CPU", "=========================== Training pipeline ==========================="]
    out += ["  ".join(f"{h:<14}" for h in heads), "  ".join("-" * 14 for _ in heads)]
    last: dict[str, float] = {}
    for r in rec.rows:
        if r.kind == "event":
            out.append(r.text)
        elif r.kind == "eval":
            last = r.values
        else:
            cells = [str(int(r.epoch)), str(r.step)] + [num(r.values.get(k, float("nan")), 3) for k in keys]
            cells += [num(last[k], 3) if k in last else "" for k in evals]
            out.append("  ".join(f"{c:<14}" for c in cells))
    save(folder, "train.log", "\n".join(out) + "\n")
    save(folder, "config.cfg", "[training]\n" + "".join(f"{k} = {v}\n" for k, v in rec.config.items()))


def csv_long(rec: Record, folder: Path) -> None:
    """One row per value: step, split, metric, value."""
    out = ["step,split,metric,value"]
    for r in rec.rows:
        if r.kind != "event":
            out += [
                f"{r.step},{'train' if r.kind == 'train' else 'valid'},{long(k)},{v:.6g}" for k, v in r.values.items()
            ]
    save(folder, "metrics.csv", "\n".join(out) + "\n")
    save(folder, "config.yaml", yaml_of(rec.config))
    texts = [r.text for r in rec.of("event")]
    if texts:
        save(folder, "messages.log", "\n".join(texts) + "\n")


def cleanrl(rec: Record, folder: Path) -> None:
    """Charts and losses in one CSV, with a short terminal log."""
    keys = rec.keys("train")
    charts = ("ep_rew", "ep_len", "lr", "reward", "length", "success", "eps")

    def group(key: str) -> str:
        return ("charts/" if key in charts else "losses/") + long(key)

    out = ["global_step," + ",".join(group(k) for k in keys)]
    out += [f"{r.step}," + ",".join(f"{r.values.get(k, float('nan')):.6g}" for k in keys) for r in rec.of("train")]
    save(folder, "runs/scalars.csv", "\n".join(out) + "\n")
    lines = [f"|{k}|{v}|" for k, v in rec.config.items()]
    lines += [
        r.text
        if r.kind == "event"
        else f"eval global_step={r.step}, " + ", ".join(f"{long(k)}={v:.4g}" for k, v in r.values.items())
        for r in rec.rows
        if r.kind != "train"
    ]
    save(folder, "stdout.txt", "\n".join(lines) + "\n")
