"""Every framework's printed records, each written from its print statements, read to the exact values."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.logs.reading import Points, assert_holds

from mldebug_mcp.logs import read_run

SAMPLES = Path(__file__).parent / "samples"
NAN = float("nan")

FORMATS: dict[str, tuple[str, int, dict[str, Points]]] = {
    "composer": ("step", 2, {"loss": {1: 10.9736, 2: 10.9}, "learning_rate": {1: 0.0001}}),
    "darknet": (
        "step",
        2,
        {"loss": {1: 1245.123, 2: 1240.5}, "learning_rate": {1: 0, 2: 0}, "step_time": {1: 3.5, 2: 3.4}},
    ),
    "deepspeed_overflow": (
        "step",
        2,
        {"loss_scale": {10: 32768}, "skipped_iterations": {10: 1, 20: 1}, "learning_rate": {10: 5e-05, 20: 4.9e-05}},
    ),
    "deepspeed_pipeline": ("step", 2, {"loss": {10: 3.4567, 20: 3.1567}, "step_time": {10: 0.512, 20: 0.512}}),
    "detectron2": (
        "step",
        2,
        {
            "loss": {19: 76.49, 39: 71.43},
            "data_time": {19: 0.0212, 39: 0.0112},
            "learning_rate": {19: 9.5e-05, 39: 9.4e-05},
            "step_time": {19: 0.4312, 39: 0.43},
        },
    ),
    "diffusers": ("step", 2, {"learning_rate": {10: 1e-05, 11: 1e-05}, "loss": {10: 0.0312, 11: 0.0512}}),
    "epoch_and_step": ("step", 3, {"loss": {100: 0.3512, 200: 0.2512, 700: 0.1512}}),
    "epoch_block": (
        "epoch",
        2,
        {
            "learning_rate": {1: 9.98e-05, 2: 9.9e-05},
            "loss": {1: 7.308, 2: 6.2874},
            "eval_loss": {1: 6.5195, 2: 6.1203},
            "eval_perplexity": {1: 678.23, 2: 454.99},
        },
    ),
    "fairseq": (
        "step",
        3,
        {
            "loss": {100: 15.231, 200: 13.231},
            "learning_rate": {100: 1.25e-05, 200: 2.5e-05},
            "grad_norm": {100: 3.456, 200: 2.456},
            "loss_scale": {100: 128, 200: 128},
            "eval_loss": {1104: 9.5},
        },
    ),
    "fairseq_json": (
        "step",
        3,
        {
            "loss": {362: 11.049, 724: 9.049},
            "learning_rate": {362: 9.05909e-05, 724: 0.000181},
            "grad_norm": {362: 1.682, 724: 1.482},
            "loss_scale": {362: 20, 724: 20},
            "eval_loss": {362: 9.812},
        },
    ),
    "fastai": (
        "epoch",
        2,
        {"loss": {0: 0.691234, 1: 0.551234}, "eval_loss": {0: 0.65, 1: 0.54}, "eval_accuracy": {0: 0.61, 1: 0.71}},
    ),
    "imagenet": ("step", 2, {"loss": {1: 7.0912, 11: 7.01}, "accuracy": {1: 0, 11: 0.39}, "eval_accuracy": {11: 10.5}}),
    "keras": (
        "epoch",
        2,
        {
            "accuracy": {1: 0.8712, 2: 0.9402},
            "loss": {1: 0.4512, 2: 0.2011},
            "eval_accuracy": {1: 0.95, 2: 0.9611},
            "eval_loss": {1: 0.17, 2: 0.1301},
        },
    ),
    "kohya": ("step", 2, {"loss": {1: 0.123, 2: 0.113}}),
    "lerobot": (
        "step",
        4,
        {
            "loss": {600: 2.215, 800: 1.771, 1000: 1.467, 1200: 1.226},
            "grad_norm": {600: 49.836, 800: 43.494, 1000: 38.686, 1200: 34.825},
            "learning_rate": {600: 1e-05, 800: 1e-05, 1000: 1e-05, 1200: 1e-05},
            "step_time": {600: 0.504, 800: 0.501, 1000: 0.501, 1200: 0.502},
            "data_time": {600: 0.083, 800: 0.01, 1000: 0.084, 1200: 0.01},
        },
    ),
    "lightning": ("step", 3, {"loss": {50: 0.512, 100: 0.412, 150: 0.312}, "eval_loss": {100: 0.5}}),
    "litgpt": ("step", 2, {"loss": {16: 1.7, 32: 1.6}, "step_time": {16: 0.3001, 32: 0.3011}, "eval_loss": {32: 1.65}}),
    "llm_c": (
        "step",
        2,
        {
            "loss": {1: 11.009, 2: 10.957},
            "grad_norm": {1: 15.34, 2: 14.34},
            "learning_rate": {1: 1e-06, 2: 2e-06},
            "eval_loss": {2: 10.5},
        },
    ),
    "llm_c_main": (
        "step",
        3,
        {
            "eval_loss": {0: 10.9876},
            "loss": {1: 10.98, 2: 10.5},
            "learning_rate": {1: 1e-06, 2: 2e-06},
            "grad_norm": {1: 12.3, 2: 11.3},
        },
    ),
    "megatron_rank": (
        "step",
        2,
        {
            "step_time": {10: 1.2345, 20: 1.2345},
            "learning_rate": {10: 6e-05, 20: 6e-05},
            "loss": {10: 10.12345},
            "loss_scale": {10: 4096, 20: 2048},
            "grad_norm": {10: 2.123},
            "skipped_iterations": {10: 0, 20: 10},
        },
    ),
    "mmcv": (
        "step",
        4,
        {
            "learning_rate": {50: 0.001978, 100: 0.003978, 7380: 0.003978},
            "data_time": {50: 0.05, 100: 0.05, 7380: 0.05},
            "accuracy": {50: 80.5, 100: 81.5, 7380: 81.5},
            "loss": {50: 2.9, 100: 2.5, 7380: 2.1},
            "grad_norm": {50: 9.1, 100: 8.1, 7380: 8.1},
            "eval_bbox_map": {7380: 0.102},
            "step_time": {50: 0.52, 100: 0.52, 7380: 0.52},
        },
    ),
    "mmengine": (
        "step",
        2,
        {
            "learning_rate": {50: 0.0019, 100: 0.0029},
            "data_time": {50: 0.01, 100: 0.01},
            "loss": {50: 2.9, 100: 2.4},
            "eval_coco/bbox_map": {100: 0.11},
            "step_time": {50: 0.5, 100: 0.5},
        },
    ),
    "mnist": (
        "step",
        3,
        {
            "loss": {0: 2.300039, 640: 2.21347, 60000: 0.100039},
            "eval_loss": {640: 0.0503},
            "eval_accuracy": {640: 0.9833},
        },
    ),
    "modded_nanogpt": ("step", 3, {"eval_loss": {0: 10.8258, 125: 4.6}, "elapsed": {0: 0, 1: 0.2, 125: 19}}),
    "nanochat": (
        "step",
        2,
        {
            "loss": {0: 11.090355, 1: 10.5},
            "grad_norm": {0: 2.1, 1: 2.2},
            "step_time": {0: 0.90012, 1: 0.48},
            "eval_bpb": {0: 3.3012},
        },
    ),
    "nanogpt": (
        "step",
        3,
        {
            "train loss": {0: 10.9876, 20: 8.1},
            "eval_loss": {0: 10.9912, 20: 8.2},
            "loss": {0: 10.9885, 10: 9.5, 20: 8.05},
            "step_time": {0: 28.03155, 10: 0.5001, 20: 0.501},
        },
    ),
    "neox": (
        "step",
        2,  # DeepSpeed's line and Megatron's
        {
            "step_time": {10: 1.234},
            "learning_rate": {10: 2.8e-07},
            "loss": {10: 10.8123},
            "loss_scale": {10: 65536},
            "skipped_iterations": {10: 0},
        },
    ),
    "olmo": (
        "step",
        2,
        {"grad_norm": {1: 16.6, 2: 15.6}, "loss": {1: 11.41, 2: 11.01}, "perplexity": {1: 90213, 2: 60213}},
    ),
    "pix2pix": (
        "step",
        3,
        {"G_GAN": {100: 1.512, 200: 1.412, 300: 1.312}, "D_real": {100: 0.512, 200: 0.412, 300: 0.312}},
    ),
    "pytorch_transfer_tutorial": (
        "epoch",
        2,
        {
            "loss": {0: 0.5512, 1: 0.4512},
            "accuracy": {0: 0.7123, 1: 0.7923},
            "eval_loss": {0: 0.2501, 1: 0.2201},
            "eval_accuracy": {0: 0.902, 1: 0.912},
        },
    ),
    "rsl_rl": (
        "step",
        2,
        {
            "value_loss": {0: 0.1234, 1: 0.1134},
            "policy_loss": {0: -0.0012, 1: -0.0022},
            "reward": {0: -1.21, 1: -1.01},
            "steps/s": {0: 90000},
            "collection_time": {0: 0.8},
            "Mean action noise std": {0: 1.0},
        },
    ),
    "spinning_up": (
        "step",
        2,
        {
            "reward": {4000: 21.5, 8000: 25.5},
            "policy_loss": {4000: -2.1e-08},
            "value_loss": {4000: 312, 8000: 300},
            "entropy": {4000: 0.685},
        },
    ),
    "stable_baselines3": (
        "step",
        2,
        {
            "reward": {2048: 21.9, 4096: 26.1},
            "approx_kl": {4096: 0.008511288},
            "entropy": {4096: 0.686},
            "loss": {4096: 5.42},
        },
    ),
    "timm": (
        "step",
        2,
        {
            "loss": {0: 6.945, 50: 6.911},
            "learning_rate": {0: 1e-06, 50: 1e-06},
            "eval_loss": {50: 6.88},
            "eval_accuracy": {50: 0.21},
        },
    ),
    "torchtitan": ("step", 2, {"loss": {1: 12.2513, 10: 10.1}, "grad_norm": {1: 3.9, 10: 2.9}}),
    "torchtune": (
        "step",
        2,
        {"loss": {1: 1.5123, 2: 1.4123}, "learning_rate": {1: 2e-05, 2: 2e-05}, "grad_norm": {1: 3.2, 2: 3.1}},
    ),
    "torchtune_bar": ("step", 2, {"loss": {3: 1.94, 4: 1.84}}),
    "trainer_notebook": ("step", 2, {"loss": {500: 1.2345, 1000: 1.0345}, "eval_loss": {500: 1.1, 1000: 0.9}}),
    "trainer_stdout": (
        "step",
        5,
        {
            "loss": {10: 2.5012, 20: 2.0012, 30: NAN},
            "grad_norm": {10: 1.25, 20: 1.15, 30: NAN},
            "learning_rate": {10: 5e-05, 20: 2.5e-05, 30: 1.25e-05},
            "eval_loss": {20: 1.9},
        },
    ),
    "verl": (
        "step",
        2,
        {
            "entropy": {1: 0.433, 2: 0.421},
            "policy_loss": {1: -0.005, 2: -0.004},
            "approx_kl": {1: 0.0001, 2: 0.0002},
            "clip_ratio": {1: 0.002, 2: 0.003},
            "grad_norm": {1: 0.512, 2: 0.498},
            "learning_rate": {1: 1e-06, 2: 1e-06},
            "reward": {1: 0.24, 2: 0.3},
            "completion_length": {1: 210.5, 2: 214.25},
            "step_time": {1: 31.5, 2: 30.5},
        },
    ),
    "xgboost": ("step", 2, {"loss": {0: 0.69, 1: 0.66}, "eval_loss": {0: 0.691, 1: 0.67}}),
    "yolo": ("epoch", 4, {"box_loss": {1: 1.234, 2: 1.134}, "eval_map50": {1: 0.611, 2: 0.621}}),
}
"""Sample → what a step is, how many records there are, and metrics as {step: value}."""


@pytest.mark.parametrize("name", FORMATS)
def test_a_frameworks_text_is_read_to_the_exact_values(name: str) -> None:
    step_name, records, metrics = FORMATS[name]
    run = read_run(SAMPLES / f"{name}.log")
    assert run.records == records
    assert_holds(run, step_name, metrics)


def test_every_sample_has_its_values() -> None:
    assert {path.stem for path in SAMPLES.glob("*.log")} == set(FORMATS)


@pytest.mark.parametrize(
    ("name", "framework"),
    [("nanogpt", "nanogpt"), ("torchtitan", "torchtitan"), ("verl", "verl"), ("mmcv", "mmcv"), ("llm_c", "llm.c")],
)
def test_a_framework_is_named_by_its_lines(name: str, framework: str) -> None:
    assert framework in read_run(SAMPLES / f"{name}.log").formats


def test_the_closing_summary_of_the_trainer_is_no_step() -> None:
    run = read_run(SAMPLES / "trainer_stdout.log")
    assert run["summary/train_loss"].value.tolist() == [2.2]
    assert run["loss"].step.tolist() == [10, 20, 30]


def test_a_step_skipped_for_overflow_is_told_but_no_record() -> None:
    run = read_run(SAMPLES / "deepspeed_overflow.log")
    assert run.records == 2
    assert run["overflow"].value.tolist() == [1.0]
    assert run["loss_scale"].value.tolist() == [32768.0]


def test_a_step_that_apex_skips_tells_the_loss_scale(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    skip = "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to {}\n"
    log.write_text(
        f"step 10 loss 2.5 lr 0.001\n{skip.format('16384.0.')}step 20 loss 2.25 lr 0.001\n{skip.format('5e-05')}"
    )
    run = read_run(log)
    assert run["loss"].value.tolist() == [2.5, 2.25]
    assert run["loss_scale"].value.tolist() == [16384.0, 5e-05]


@pytest.mark.parametrize(
    ("scales", "steps"),
    [
        ([512, 256, 128, 64, 32, 16, 8, 4, 2, 1], list(range(11, 21))),
        ([4, 2, 1], [13, 15, 18]),
        ([16, 8, 4, 2, 1] * 5, list(range(11, 21))),
    ],
    ids=["each step", "some steps", "several lines a step"],
)
def test_a_loss_scale_stands_at_the_steps_where_it_holds(tmp_path: Path, scales: list[int], steps: list[int]) -> None:
    log = tmp_path / "train.log"
    skips = [
        f"[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {2 * scale}, reducing to {scale}\n"
        for scale in scales
    ]
    log.write_text(f"step=10, loss=2.5\n{''.join(skips)}step=20, loss=2.25\nstep=30, loss=2.0\n")
    run = read_run(log)
    assert run["loss"].step.tolist() == [10, 20, 30]
    assert run["loss_scale"].step.tolist() == steps
    assert run["loss_scale"].value[-1] == 1
    if len(scales) == len(steps):
        assert run["loss_scale"].value.tolist() == scales


@pytest.mark.parametrize(
    "line",
    [
        "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 6.103515625e-05, reducing to {}",
        "NOTE: gradient overflow detected, ignoring gradient, setting loss scale to: {}",
        "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to {}",
    ],
)
def test_a_loss_scale_far_below_one_is_read_as_it_is_written(tmp_path: Path, line: str) -> None:
    log = tmp_path / "train.log"
    log.write_text(f"step=10, loss=2.5\n{line.format('3.0517578125e-05')}\nstep=20, loss=2.25\nstep=30, loss=2.0\n")
    run = read_run(log)
    assert run["loss"].step.tolist() == [10, 20, 30]
    assert set(run["loss_scale"].value.tolist()) == {3.0517578125e-05}


def test_the_mean_over_an_epoch_is_not_the_loss_of_a_step() -> None:
    run = read_run(SAMPLES / "fairseq.log")
    assert run["epoch_mean/loss"].value.tolist() == [11.2]
    assert any("bits" in note for note in run.notes)


def test_lightgbms_best_iteration_said_once_more_is_no_record(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    rows = [
        f"[{n}]\ttrain's binary_logloss: {0.6 - n / 500:.4f}\tvalid's binary_logloss: {0.6 - n / 900:.4f}"
        for n in range(5, 130, 5)
    ]
    path.write_text("\n".join([*rows, "Early stopping, best iteration is:", rows[20]]) + "\n")
    run = read_run(path)
    assert run.records == len(rows)
    assert len(run.segments) == 1


def test_bars_of_keras_without_headings_are_an_epoch_each(tmp_path: Path) -> None:
    bar = "[==============================]"
    lines = [f"500/500 {bar} - 9s 18ms/step - loss: {loss} - val_loss: {loss + 1}" for loss in (1.5, 1.25, 1.0)]
    (tmp_path / "fit.log").write_text("\n".join(lines))
    run = read_run(tmp_path / "fit.log")
    assert run["loss"].value.tolist() == [1.5, 1.25, 1.0]
    assert run["eval_loss"].value.tolist() == [2.5, 2.25, 2.0]


@pytest.mark.parametrize("before", ["", "begin\n"])
def test_dicts_printed_over_several_lines_are_a_record_each(tmp_path: Path, before: str) -> None:
    records = [
        f"{{\n    'loss': {loss},\n    'grad_norm': nan,\n    'epoch': {epoch}\n}}\n"
        for loss, epoch in ((2.5, 0.1), (2.0, 0.2), (1.5, 0.3))
    ]
    (tmp_path / "run.txt").write_text(before + "".join(records))
    run = read_run(tmp_path / "run.txt")
    assert dict(zip(run["loss"].step, run["loss"].value, strict=True)) == {0.1: 2.5, 0.2: 2.0, 0.3: 1.5}


def test_lines_that_count_samples_within_an_epoch_are_noted_with_what_a_step_is_there(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    lines = [
        f"Train Epoch: {epoch} [{at}/6000 ({at // 60}%)]\tLoss: {3 - epoch / 10 - at / 60000:.6f}\n"
        for epoch in (1, 2, 3)
        for at in range(0, 6000, 640)
    ]
    path.write_text("".join(lines))
    run = read_run(path)
    assert run.last_step == 17760
    assert any("step 17760 is 5760 of 6000 in epoch 3" in note for note in run.notes)
    path.write_text("".join(lines[:10]))
    assert not any("in epoch" in note for note in read_run(path).notes)
