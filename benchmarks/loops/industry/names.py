"""What the teams call the columns."""

from __future__ import annotations

from benchmarks.loops.industry.trace import Row, Trace

_NAMES: dict[str, dict[str, str]] = {
    "plain": {"gnorm": "grad_norm", "sec": "step_time_s", "mem": "gpu_mem_gb", "rss": "host_gb", "util": "gpu_util"},
    "ads": {
        "step": "global_step", "loss": "trn_nll", "val_loss": "val_nll", "lr": "step_lr", "gnorm": "gnorm",
        "val_auc": "clicks_auc", "val_calibration": "pcoc", "sec": "sec_per_iter", "data_sec": "feed_sec",
        "mem": "gpu_gb", "rss": "host_rss_gb", "util": "sm_util", "samples": "examples",
    },
    "slash": {
        "step": "step", "loss": "train/loss", "val_loss": "val/loss", "lr": "opt/lr", "gnorm": "opt/grad_norm",
        "sec": "perf/step_s", "data_sec": "perf/data_s", "mem": "perf/gpu_alloc_gb", "rss": "perf/rss_gb",
        "util": "perf/gpu_util_pct", "samples": "samples_seen", "entropy": "policy/entropy", "kl": "policy/kl",
        "reward": "rollout/reward",
    },
    "hf": {"val_loss": "eval_loss", "lr": "learning_rate", "gnorm": "grad_norm", "samples": "num_input_samples"},
    "lightning": {"loss": "train_loss_step", "lr": "lr-Adam", "gnorm": "grad_2.0_norm_total", "mem": "gpu_mem"},
    "short": {
        "step": "it", "epoch": "ep", "loss": "L", "val_loss": "Lval", "gnorm": "|g|", "sec": "s/it",
        "samples": "n_seen", "val_acc": "acc", "mem": "mem",
    },
    "dev": {
        "step": "iteration", "loss": "tr_loss", "val_loss": "dev_loss", "gnorm": "g_norm", "val_acc": "dev_acc",
        "val_f1": "dev_f1", "sec": "batch_secs", "mem": "vram_gib", "rss": "ram_gib",
    },
    "objective": {
        "step": "update", "loss": "objective", "val_loss": "holdout_objective", "gnorm": "gradient_l2", "lr": "eta",
        "samples": "rows_seen", "val_acc": "holdout_accuracy", "val_f1": "holdout_f1", "val_auc": "holdout_auc",
    },
}  # fmt: skip


def named(trace: Trace, names: str, drop: tuple[str, ...]) -> list[Row]:
    """Return the rows under a team's names, without the columns that it does not log."""
    table = _NAMES[names]
    if not any("samples" in row for row in trace.rows):
        drop = tuple(name for name in drop if name != "step")
    return [{table.get(name, name): value for name, value in row.items() if name not in drop} for row in trace.rows]


def axis_of(rows: list[Row], names: str) -> str:
    """Return the column that counts: steps, else samples, else epochs."""
    table = _NAMES[names]
    known = {name for row in rows for name in row}
    axes = [table.get(name, name) for name in ("step", "samples", "epoch")]
    return next((name for name in axes if name in known), "epoch")
