"""Logs of frameworks that cannot be run here, written after their own writers: every metric at its step."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from tests.logs.reading import Points, assert_holds

from mldebug_mcp.logs import read_run

SAMPLES = Path(__file__).parent / "samples" / "written"

FORMATS: dict[str, tuple[str, int, dict[str, Points]]] = {
    "axolotl.log": (
        "step",
        5,
        {
            "loss": {10: 2.357, 20: 2.107, 30: 2.007},
            "grad_norm": {10: 1.91, 20: 1.71, 30: 1.61},
            "learning_rate": {10: 2e-05, 20: 1.5e-05, 30: 1e-05},
            "eval_loss": {20: 2.05},
        },
    ),
    "unsloth.log": (
        "epoch",
        4,
        {"loss": {0.01: 2.149, 0.02: 1.5362, 0.03: 1.4647}, "learning_rate": {0.01: 2e-4, 0.02: 1.9e-4, 0.03: 1.8e-4}},
    ),
    "unsloth_notebook.log": ("step", 3, {"loss": {1: 2.0402, 2: 1.9968, 3: 2.047}}),
    "megatron_deepspeed.log": (
        "step",
        3,
        {
            "loss": {6990: 6.444662, 7000: 6.4, 7010: 6.35},
            "grad_norm": {6990: 98258.265, 7000: 9825.265, 7010: 21.978},
            "eval_loss": {7000: 7.1742},
            "num_tokens": {6990: 1374289920, 7000: 1376256000, 7010: 1378222080},
            "step_time": {6990: 18.7061, 7000: 18.7061, 7010: 18.7061},
            "nan_iterations": {6990: 0, 7000: 0, 7010: 0},
        },
    ),
    "improved_diffusion.log": (
        "step",
        3,
        {"loss": {0: 0.312, 10: 0.112, 20: 0.0912}, "grad_norm": {0: 0.0842, 10: 0.0642, 20: 0.0542}},
    ),
    "improved_diffusion_progress.csv": (
        "step",
        3,
        {"loss": {0: 0.312, 10: 0.112, 20: 0.0912}, "loss_q0": {0: 0.612, 10: 0.412}, "loss_q1": {10: 0.2, 20: 0.15}},
    ),
    "cleanrl.log": ("step", 4, {"reward": {31: 31, 52: 21, 80: 28, 120: 40}}),
    "openai_baselines.log": (
        "step",
        3,
        {
            "reward": {2048: 21.5, 4096: 22.5, 6144: 23.5},
            "value_loss": {2048: 122.5, 4096: 122.5, 6144: 122.5},
            "kl": {2048: 1.05e-05, 4096: 1.05e-05, 6144: 1.05e-05},
            "elapsed": {2048: 2.5, 4096: 3.5, 6144: 4.5},
        },
    ),
    "spinning_up_progress.txt": (
        "step",
        2,
        {"reward": {4000: 21.5, 8000: 25.5}, "value_loss": {4000: 312, 8000: 300}, "kl": {4000: 0.0081, 8000: 0.0091}},
    ),
    "trl_ppo.log": (
        "epoch",
        3,
        {
            "reward": {0.064: 1.25, 0.128: 1.5, 0.192: 1.75},
            "kl": {0.064: 0.5, 0.128: 0.75, 0.192: 1.25},
            "value_loss": {0.064: 0.25, 0.128: 0.25, 0.192: 0.25},
            "policy_ratio": {0.064: 1.001, 0.128: 1.001, 0.192: 1.001},
            "learning_rate": {0.064: 3e-06, 0.128: 3e-06, 0.192: 3e-06},
        },
    ),
    "llama_factory.jsonl": (
        "step",
        5,
        {
            "loss": {10: 2.5, 20: 2.25, 30: 2.125},
            "learning_rate": {10: 5e-05, 20: 5e-05, 30: 5e-05},
            "epoch": {10: 0.1, 20: 0.2, 30: 0.3, 300: 3.0},
            "eval_loss": {30: 2.0},
        },
    ),
    "detectron2_metrics.json": (
        "step",
        3,
        {
            "loss": {19: 2.25, 39: 1.75, 59: 1.5},
            "learning_rate": {19: 1e-4, 39: 2e-4, 59: 3e-4},
            "bbox/AP": {59: 11.5},
            "bbox/APs": {59: math.nan},
            "step_time": {19: 0.4312, 39: 0.43, 59: 0.43},
        },
    ),
    "yolov5_results.csv": (
        "epoch",
        2,
        {
            "box_loss": {0: 0.07348, 1: 0.06348},
            "eval_box_loss": {0: 0.05201, 1: 0.04201},
            "metrics/mAP_0.5:0.95": {0: 0.070484, 1: 0.080484},
            "learning_rate": {0: 0.0033307, 1: 0.0063307},
            "loss": {0: 0.125735, 1: 0.113735},
            "eval_loss": {0: 0.079592, 1: 0.067592},
        },
    ),
    "wandb_history.csv": (
        "step",
        4,
        {"loss": {10: 2.5, 20: 2.25, 30: 2.0}, "eval_loss": {20: 2.375}, "epoch": {10: 0.1, 20: 0.2, 30: 0.3}},
    ),
    "wandb-summary.json": ("step", 1, {"loss": {60: 2.5}, "eval_loss": {60: 2.25}, "elapsed": {60: 120.5}}),
}
"""Sample → what a step is, how many records there are, and metrics as {step: value}."""


@pytest.mark.parametrize("name", FORMATS)
def test_a_written_log_is_read_to_the_exact_values(name: str) -> None:
    step_name, records, metrics = FORMATS[name]
    run = read_run(SAMPLES / name)
    assert run.records == records
    assert_holds(run, step_name, metrics)


def test_every_written_sample_has_its_values() -> None:
    assert {path.name for path in SAMPLES.iterdir()} == set(FORMATS)


def test_the_banner_of_unsloth_is_no_record() -> None:
    assert set(read_run(SAMPLES / "unsloth.log").series) >= {"loss", "grad_norm", "learning_rate"}
    assert not any("Num" in name or "Total" in name for name in read_run(SAMPLES / "unsloth.log").series)


def test_a_ppo_of_trl_is_known_by_its_metrics() -> None:
    assert read_run(SAMPLES / "trl_ppo.log").kind == "ppo"
