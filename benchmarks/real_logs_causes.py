"""Print how often real logs are diagnosed right: `python -m benchmarks.real_logs_causes DIR`.

DIR holds an `index.jsonl`: one object per log with its `file` (relative to DIR) and `known_problem`: `healthy`,
`unknown` (which is left out), or a word of `CAUSES`. A problem counts as named if one of the causes that its word
allows stands among the first three and a finding speaks for it; a healthy log is right if called healthy or unknown.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mldebug_mcp.diagnose import diagnose_run
from mldebug_mcp.errors import InputError
from mldebug_mcp.models import Diagnosis, State

PLACES = 3
FEW = 3
"""A course needs more records than this; a log with fewer counts among those that show one if it holds an error."""

_NONFINITE = (
    "invalid_math", "fp16_overflow", "fp8_zero_scale", "exploding_gradients", "lr_too_high", "insufficient_warmup",
    "bad_batch", "bad_init", "adam_instability",
)  # fmt: skip
_JUMPED = (
    "lr_too_high", "insufficient_warmup", "adam_instability", "exploding_gradients", "logit_drift", "bad_batch",
    "bad_data_pocket", "hardware_fault",
)  # fmt: skip
_STUCK = (
    "no_signal", "params_not_training", "lr_too_low", "lr_too_high", "vanishing_gradients", "dead_units", "wrong_loss",
    "double_softmax", "label_noise", "too_little_capacity", "class_imbalance",
)  # fmt: skip

CAUSES: Mapping[str, tuple[str, ...]] = {
    "overfitting": ("overfitting", "duplicated_data"),
    "isolated_nan_grad_norm": ("healthy", *_NONFINITE),  # a skipped step, harmless by itself
    "plateau_no_learning": _STUCK,
    "no_learning_chance_level": _STUCK,
    "completions_truncated": ("completion_limit_low", "length_exploitation", "tokenizer_mismatch"),
    "loss_spike": _JUMPED,
    "loss_spike_divergence": _JUMPED,
    "dataloader_shm_bus_error": ("out_of_memory", "hardware_fault"),
    "hardware_gpu_fault": ("hardware_fault",),
    "crash_traceback": ("unknown", "metric_bug"),
    "config_error": ("unknown",),
    "encoding_crash": ("unknown",),
    "device_side_assert": ("tokenizer_mismatch", "label_shift_error", "metric_bug"),
    "cuda_oom": ("out_of_memory",),
    "cuda_oom_fragmentation": ("fragmentation",),
    "loss_rising_after_resume": ("resume_state_lost", "resume_data_replayed", "lr_schedule_bug"),
    "loss_jump_after_resume": ("resume_state_lost", "resume_data_replayed", "tokenizer_mismatch"),
    "gan_discriminator_dominates": ("adversarial_imbalance", "unknown", "wrong_loss"),
    "explained_variance_nan": ("healthy", "batch_too_small", "value_instability"),  # of a tiny rollout: no fault
    "kl_spike_entropy_collapse": ("kl_blowup", "entropy_collapse", "lr_too_high"),
    "kl_negative": ("tokenizer_mismatch", "kl_blowup", "off_policy_staleness", "reward_hacking"),
    "lr_too_low": ("lr_too_low",),
    "nan_loss": _NONFINITE,
    "val_loss_nan": (*_NONFINITE, "metric_bug", "eval_mode_bug"),
    "nan_grad_norm": (*_NONFINITE, "all_labels_masked"),
    "nan_weights_fp16_underflow": ("fp16_overflow", "low_precision_update", "adam_instability"),
    "fp16_overflow": ("fp16_overflow",),
    "fp16_overflow_startup": ("fp16_overflow", "healthy"),  # a scaler that begins too high, by design
    "fp16_unscale_error": ("fp16_overflow",),
    "zero_loss_all_labels_masked": ("all_labels_masked", "tokenizer_mismatch"),
    "nccl_timeout": ("hang", "hardware_fault"),
    "loss_scaled_by_grad_accum": ("grad_accum_scaling",),
    "grpo_zero_reward_variance": ("no_reward_variance", "reward_broken", "entropy_collapse"),
}
"""Which causes a word for a problem allows: those that practitioners name for it. `unknown` where none of ours does."""


@dataclass(frozen=True)
class Judged:
    """A labelled log and what is said of it."""

    file: str
    problem: str
    diagnosis: Diagnosis | None
    refused: str = ""

    @property
    def right(self) -> bool:
        """Whether the answer is right, as the head of this file says."""
        if self.diagnosis is None:
            return False
        causes = [one.cause for one in self.diagnosis.hypotheses]
        if self.problem == "healthy":
            return causes[0] in ("healthy", "unknown")
        return any(
            one.cause in CAUSES[self.problem] and (one.because or one.cause in ("healthy", "unknown"))
            for one in self.diagnosis.hypotheses[:PLACES]
        )

    @property
    def has_course(self) -> bool:
        """Whether the log is more than an excerpt of a few numbers: it has a course, or an error message."""
        messages = ("error_message", "ends_in_error")
        return self.diagnosis is not None and (
            self.diagnosis.run.records > FEW
            or any(one.state is State.PRESENT for one in self.diagnosis.findings if one.symptom in messages)
        )


def judge(folder: Path) -> list[Judged]:
    """Diagnose every labelled log of a folder."""
    entries = [json.loads(line) for line in (folder / "index.jsonl").read_text(encoding="utf-8").splitlines()]
    return [_judged(folder, entry["file"], entry["known_problem"]) for entry in entries if _labelled(entry)]


def _labelled(entry: Mapping[str, object]) -> bool:
    if entry["known_problem"] not in (*CAUSES, "healthy", "unknown"):
        print(f"{entry['file']} is left out: {entry['known_problem']!r} is not in CAUSES")
    return entry["known_problem"] in (*CAUSES, "healthy")


def _judged(folder: Path, file: str, problem: str) -> Judged:
    try:
        return Judged(file, problem, diagnose_run(folder / file))
    except InputError as error:
        return Judged(file, problem, None, str(error).replace(str(folder), "."))


def report(ones: list[Judged]) -> str:
    """Return the two shares and a table of the misses."""
    faulty, healthy = ([one for one in ones if (one.problem == "healthy") is healthy] for healthy in (False, True))
    lines = [
        _share("problems named among the first three", faulty),
        _share(f"... of logs of more than {FEW} records or with an error", [one for one in faulty if one.has_course]),
        _share("healthy logs not accused", healthy),
        "",
    ]
    lines += ["| log | problem | records | called | seen |", "| --- | --- | --- | --- | --- |"]
    return "\n".join([*lines, *(_row(one) for one in ones if not one.right)])


def _share(what: str, ones: list[Judged]) -> str:
    read = [one for one in ones if one.diagnosis is not None]
    right = sum(one.right for one in read)
    return f"{what}: {right} of {len(read)} ({right / max(1, len(read)):.3f}); {len(ones) - len(read)} refused"


def _row(one: Judged) -> str:
    name = Path(one.file).name
    if one.diagnosis is None:
        return f"| {name} | {one.problem} | refused | {one.refused[:160]} | |"
    called = ", ".join(f"{h.cause} {h.probability:.2f}" for h in one.diagnosis.hypotheses[:PLACES])
    seen = ", ".join(finding.symptom for finding in one.diagnosis.findings if finding.state is State.PRESENT)
    return f"| {name} | {one.problem} | {one.diagnosis.run.records} | {called} | {seen} |"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(report(judge(Path(sys.argv[1]))))
