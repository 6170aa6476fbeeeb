"""The same runs, diagnosed by other tools, and which of our causes an answer of theirs counts as.

The mappings are generous to them. A finding counts as naming every cause that its heading describes or that its text
lists as possible, remedies included; the tool need not say which of these it is.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.corpus.labels import Label, read_labels
from benchmarks.faults.figures import Rows, share
from mldebug_mcp.judge import diagnose
from mldebug_mcp.logs import Run, read_run

PACKAGES = ("runmedic==0.1.1", "runwise==0.4.0")
SECONDS = 60

RUNMEDIC: Mapping[str, tuple[str, ...]] = {
    "non_finite": (
        "lr_too_high", "exploding_gradients", "insufficient_warmup", "lr_schedule_bug", "bad_batch", "invalid_math",
        "bad_init", "fp16_overflow", "fp8_zero_scale", "logit_drift", "no_signal",
    ),
    "divergence": (
        "lr_too_high", "lr_schedule_bug", "adam_instability", "weight_decay_too_high", "unshuffled_data",
        "bad_data_pocket", "exploding_gradients", "resume_state_lost",
    ),
    "loss_spikes": (
        "bad_batch", "bad_data_pocket", "label_noise", "lr_too_high", "insufficient_warmup", "exploding_gradients",
        "adam_instability",
    ),
    "no_learning": (
        "lr_schedule_bug", "params_not_training", "lr_too_low", "no_signal", "missing_zero_grad", "label_shift_error",
        "vanishing_gradients", "dead_units", "wrong_loss", "double_softmax", "class_imbalance", "all_labels_masked",
    ),
    "overfitting": ("overfitting", "duplicated_data", "too_little_capacity"),
    "val_below_train": ("train_eval_leakage", "train_eval_mismatch", "eval_mode_bug", "duplicated_data"),
    "grad_spikes": ("lr_too_high", "insufficient_warmup", "exploding_gradients", "logit_drift", "bad_batch"),
    "constant_lr_plateau": ("lr_schedule_bug", "lr_too_high"),
    "input_bound": ("dataloader_bottleneck", "batch_too_small"),
    "slow_steps": ("dataloader_bottleneck", "throughput_degradation", "hardware_fault", "fragmentation"),
    "slowdown": ("throughput_degradation", "memory_leak", "hardware_fault"),
    "memory_growth": ("memory_leak", "fragmentation"),
    "log:cuda_oom": ("out_of_memory", "fragmentation", "memory_leak"),
    "log:dataloader_killed": ("out_of_memory",),
    "log:amp_overflow": ("fp16_overflow", "lr_too_high", "exploding_gradients"),
    "log:anomaly_nan": ("exploding_gradients", "invalid_math", "fp16_overflow"),
    "log:nccl_timeout": ("hang", "hardware_fault"),
}  # fmt: skip
"""By the id of a check of runmedic; other messages of a log that it knows name none of our causes."""

RUNWISE: Mapping[str, tuple[str, ...]] = {
    "nan": RUNMEDIC["non_finite"],
    "spike": RUNMEDIC["loss_spikes"],
    "overfit": RUNMEDIC["overfitting"],
    "plateau": (*RUNMEDIC["no_learning"], *RUNMEDIC["constant_lr_plateau"], "too_little_capacity", "label_noise"),
    "gradient": ("exploding_gradients", "vanishing_gradients", "dead_units", *RUNMEDIC["grad_spikes"]),
    "system": RUNMEDIC["slowdown"],
}
"""By the type of an anomaly of runwise, which lists no causes: those of runmedic's finding of that name, and more."""

_RUNWISE_NAMES = {"loss": "loss", "eval_loss": "val_loss", "grad_norm": "grad_norm"}
_RUNWISE = """
import json, sys
from runwise.anomalies import detect_anomalies
rows = json.load(sys.stdin)
print(json.dumps([one.type for one in detect_anomalies(rows)]))
"""


@dataclass(frozen=True)
class Said:
    """What a tool says of a run.

    Args:
        findings: For each of its findings, in its order, the causes that it counts as.
        alarm: Whether it says that something is wrong; a remark that it marks as information is no alarm.
    """

    findings: tuple[tuple[str, ...], ...]
    alarm: bool


def runmedic(python: Path, _: Run, log: Path) -> Said | None:
    """Return what runmedic says of a log, None if it cannot read it. Its own reader is used."""
    done = _call([str(python), "-m", "runmedic", "diagnose", "--json", str(log)])
    runs = json.loads(done) if done.strip() else []
    if not runs or not any(one["series"] for one in runs):
        return None
    found = [finding for one in runs for finding in one["findings"]]
    alarm = any(one["severity"] in ("warning", "critical") for one in found)
    return Said(tuple(RUNMEDIC.get(one["check"], ()) for one in found), alarm)


def runwise(python: Path, run: Run, _: Path) -> Said | None:
    """Return what runwise's detector says of a run, None if it fails.

    It looks for anomalies in folders of W&B only, so that it is handed what our reader read, under the names that it
    looks for.
    """
    rows: dict[float, dict[str, float]] = {}
    for ours, theirs in _RUNWISE_NAMES.items():
        for step, value in zip(run[ours].step, run[ours].value, strict=True) if ours in run else ():
            rows.setdefault(float(step), {"step": float(step)})[theirs] = float(value)
    if "step_time" in run:
        durations = run["step_time"]
        for step, rate in zip(durations.step, 1 / np.maximum(durations.value, 1e-9), strict=True):
            rows.setdefault(float(step), {"step": float(step)})["steps_per_sec"] = float(rate)
    done = _call([str(python), "-c", _RUNWISE], json.dumps([rows[step] for step in sorted(rows)]))
    if not done.strip():
        return None
    kinds = json.loads(done)
    return Said(tuple(RUNWISE.get(kind, ()) for kind in kinds), alarm=bool(kinds))


TOOLS: Mapping[str, Callable[[Path, Run, Path], Said | None]] = {"runmedic": runmedic, "runwise": runwise}


def lacking(python: Path, tool: str) -> bool:
    """Say whether a tool is not installed for this interpreter."""
    return not _call([str(python), "-c", f"import importlib.metadata as m; print(m.version({tool!r}))"]).strip()


def _call(command: list[str], text: str = "") -> str:
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


OURS = "mldebug-mcp"
LOGS = ("trainer_state.json", "log.jsonl", "metrics.csv", "train.log")
HOW = (
    f"To have them: python -m venv tools && tools/bin/pip install {' '.join(PACKAGES)}, then pass "
    "--tools tools/bin/python."
)


@dataclass(frozen=True)
class Case:
    """A run of which a tool said something, or which it could not read."""

    label: Label
    said: Said | None

    def named(self, findings: int | None) -> bool:
        """Whether the injected cause, or one that justifies the same, is named by the first of its findings, or any."""
        wanted = {self.label.cause, *self.label.also}
        return self.said is not None and any(wanted & set(causes) for causes in self.said.findings[:findings])


def judge(folder: Path, python: Path, sample: int | None, seed: int) -> dict[str, list[Case]]:
    """Return what each tool says, ours first, of the test part: all of it, or a sample."""
    cases = sorted(_test_part(folder).items())
    if sample is not None and sample < len(cases):
        chosen = np.random.default_rng(seed).permutation(len(cases))[:sample]
        cases = [cases[at] for at in sorted(chosen)]
    tools = {name: tool for name, tool in TOOLS.items() if not lacking(python, name)}
    for name in sorted(TOOLS.keys() - tools):
        print(f"{name} is left out: {python} cannot import it. {HOW}")
    judged: dict[str, list[Case]] = {name: [] for name in (OURS, *tools)}
    for name, label in cases:
        log = next(folder / name / file for file in LOGS if (folder / name / file).exists())
        run = read_run(folder / name)
        judged[OURS].append(Case(label, _ours(run)))
        for tool, ask in tools.items():
            judged[tool].append(Case(label, ask(python, run, log)))
    return judged


def compare(judged: Mapping[str, Sequence[Case]]) -> Rows:
    """Return one row per tool.

    A cause counts as named if any finding names it, or among our first three; as named first, if the first finding of
    a tool names it (and perhaps others), or if we rank it first.
    """
    return [_row(tool, ones) for tool, ones in judged.items()]


def by_cause(judged: Mapping[str, Sequence[Case]]) -> Rows:
    """Return one row per injected cause: how often each tool names it."""
    causes = sorted({one.label.cause for ones in judged.values() for one in ones} - {"healthy"})
    rows = []
    for cause in causes:
        of_tools = {tool: [one for one in ones if one.label.cause == cause] for tool, ones in judged.items()}
        named = {tool: share([one.named(None) for one in ones]) for tool, ones in of_tools.items()}
        rows.append({"injected cause": cause, "runs": f"{len(of_tools[OURS])}", **named})
    return rows


def _test_part(folder: Path) -> dict[str, Label]:
    return {name: label for name, label in read_labels(folder).items() if label.shows and not label.tuning}


def _ours(run: Run) -> Said:
    causes = [one.cause for one in diagnose(run).hypotheses[:3]]
    return Said(tuple((cause,) for cause in causes), alarm=causes[0] not in ("healthy", "unknown"))


def _row(tool: str, ones: Sequence[Case]) -> dict[str, str]:
    read = [one for one in ones if one.said is not None]
    faulty = [one for one in read if one.label.cause != "healthy"]
    alarms = [one.said.alarm for one in read if one.label.cause == "healthy" and one.said is not None]
    return {
        "": tool,
        "faulty runs": f"{len(faulty)}",
        "cause named": share([one.named(None) for one in faulty]),
        "named first": share([one.named(1) for one in faulty]),
        "healthy runs": f"{len(alarms)}",
        "false alarms": share(alarms),
        "cannot read": f"{len(ones) - len(read)}",
    }
