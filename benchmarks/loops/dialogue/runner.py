"""Trains one run."""

from __future__ import annotations

import dataclasses
import random
import time
from typing import Any

import torch

from benchmarks.loops.dialogue import config
from benchmarks.loops.dialogue.core import Knobs, Record
from benchmarks.loops.dialogue.loop import fit
from benchmarks.loops.dialogue.plan.spec import Spec
from benchmarks.loops.dialogue.styles import EPOCHED
from benchmarks.loops.dialogue.task import Task
from benchmarks.loops.dialogue.tasks import control, dqn, embed, lm, multi, prefer, sft, tags, tokens_rl, translate

SUPERVISED: dict[str, tuple[Any, Any]] = {
    "lm": (lm.LmTask, lm.LmOptions),
    "sft": (sft.SftTask, sft.SftOptions),
    "prefer": (prefer.PreferTask, prefer.PreferOptions),
    "embed": (embed.EmbedTask, embed.EmbedOptions),
    "tags": (tags.TagTask, tags.TagOptions),
    "translate": (translate.TransTask, translate.TransOptions),
    "multi": (multi.MultiTask, multi.MultiOptions),
}
POLICY: dict[str, tuple[Any, Any]] = {
    "tokens": (tokens_rl, tokens_rl.RlOptions),
    "dqn": (dqn, dqn.DqnOptions),
    "control": (control, control.ControlOptions),
}
DROPPABLE = ("gnorm", "lr", "ppl", "emb_std", "precision", "recall")


def train(spec: Spec, seed: int) -> Record:
    """Train one run."""
    rng = random.Random(seed)  # noqa: S311 - what a log shows, not a secret
    torch.manual_seed(seed)
    rec = (_policy if spec.task in POLICY else _supervised)(spec, seed, rng)
    names = set(rec.keys("train")) | set(rec.keys("eval"))
    gone = {k for k in DROPPABLE if k not in spec.need and rng.random() < 0.35} | set(spec.hide)
    rec.keep_only(names - gone)
    if not rec.rows:
        rec.event(0, "no output")
    return rec


def _policy(spec: Spec, seed: int, rng: random.Random) -> Record:
    module, options = POLICY[spec.task]
    o = options(**spec.o)
    settings = dataclasses.asdict(o)
    total = settings.get("steps", settings.get("iters", 1))
    rec = Record(config.of_policy(spec, settings, rng), total, seed=seed)
    module.train(o, seed, rec)
    if spec.task == "control":
        rec.total = rec.rows[-1].step
    return rec


def _supervised(spec: Spec, seed: int, rng: random.Random) -> Record:
    maker, options = SUPERVISED[spec.task]
    knobs = Knobs(**spec.k)
    if spec.style in EPOCHED and not spec.k.get("eval_every"):
        knobs.eval_every = max(5, knobs.steps // 10)
    settings = config.of_loop(spec, rng)
    rec = Record(settings, knobs.steps, seed=seed, time_scale=rng.choice([20.0, 60.0, 200.0]))
    task: Task = maker(options(**spec.o), seed, knobs.batch)
    rec.started = time.perf_counter()
    fit(task, knobs, rec)
    if spec.final:
        fresh: Task = maker(options(**{**spec.o, "leak": False}), seed + 1, knobs.batch)
        fresh.model = task.model.eval()
        with torch.no_grad():
            values = ", ".join(f"{k} {v:.4f}" for k, v in fresh.evaluate().items())
        rec.event(knobs.steps, f"final test (new data collected last week): {values}")
    return rec
