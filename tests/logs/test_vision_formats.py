"""What trainers of vision models print: detectors, segmenters, GANs, and the loops of reference scripts."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.logs.reading import Points, assert_holds, points, read

SWIN = "[2021-05-02 10:00:{:02d} swin_base](main.py 226): INFO Train: [1/300][{}/100]  eta 0:01:00 lr 0.000100"
LOGURU = "2022-03-01 10:00:{:02d} | INFO     | yolox.core.trainer:254 - epoch: 1/300, iter: {}/100, mem: 900Mb,"
DINO = "I20250119 10:05:{:02d} 90 dinov2 helpers.py:102] Training  [ {}/5000]  eta: 1:00:00  lr: 0.0010 (0.0010)"

PRINTED: dict[str, tuple[str, str, Mapping[str, Points]]] = {
    "a process manager in front of the lines hides nothing": (
        "0|yolo     | 7: 5.5, 6.5 avg, 0.001000 rate, 3.99 seconds, 64 images\n",
        "step",
        {"loss": {7: 5.5}},
    ),
    "the time of a batch is no step": (
        "".join(
            f"2023-06-29,15:44:4{at} | INFO | Train Epoch: 0 [ {640 * at}/9600 (7%)] Loss: {2 - at / 10} (2.0) "
            f"Data (t): 0.125 Batch (t): {at}.250, 175.4/s LR: 0.00050 Logit Scale: 14.2\n"
            for at in (1, 2)
        ),
        "step",
        {
            "loss": {640: 1.9, 1280: 1.8},
            "learning_rate": {640: 0.0005, 1280: 0.0005},
            "data_time": {640: 0.125, 1280: 0.125},
            "step_time": {640: 1.25, 1280: 2.25},
        },
    ),
    "names and values are quoted": (
        "2020-12-22 08:05:21-INFO: iter: 1, lr: 0.02, 'loss_cls': '0.5', 'loss': '1.1'\n"
        "2020-12-22 08:05:22-INFO: iter: 2, lr: 0.02, 'loss_cls': '0.5', 'loss': '1.2'\n",
        "step",
        {"loss": {1: 1.1, 2: 1.2}, "loss_cls": {1: 0.5, 2: 0.5}},
    ),
    "a metric printed class by class is read as their mean": (
        "Epoch 0\nCurrent learning rate: 0.01\ntrain_loss 0.5\nval_loss 0.6\nPseudo dice [0.25, nan, 0.5]\n"
        "Epoch 1\nCurrent learning rate: 0.01\ntrain_loss 0.4\nval_loss 0.55\nPseudo dice [0.75, nan, 0.5]\n",
        "epoch",
        {"mean Pseudo dice": {0: 0.375, 1: 0.625}, "loss": {0: 0.5, 1: 0.4}, "learning_rate": {0: 0.01, 1: 0.01}},
    ),
    "the losses of a GAN are records beside its validation": (
        "19-08-09 08:25:25.996 - INFO: <epoch:  1, iter:  1,000> psnr: 2.5000e+01\n"
        "19-08-09 08:25:26.996 - INFO: <epoch:  1, iter:  1,100, lr:2.500e-05> l_g_pix: 1.5e-03 l_d_real: 1.0e-05\n",
        "step",
        {"psnr": {1000: 25}, "l_g_pix": {1100: 0.0015}},
    ),
    "rows of COCO's evaluation are scores of the epoch, and sizes without an object are none": (
        "Epoch: [0]  [ 5/10]  eta: 0:00:04  lr: 0.001000  loss: 8.5 (9.0)\n"
        " Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 0.125\n"
        " Average Precision  (AP) @[ IoU=0.50      | area=   all | maxDets=100 ] = 0.250\n"
        " Average Precision  (AP) @[ IoU=0.50:0.95 | area= small | maxDets=100 ] = -1.000\n"
        " Average Recall     (AR) @[ IoU=0.50:0.95 | area=   all | maxDets= 10 ] = 0.375\n"
        " Average Recall     (AR) @[ IoU=0.50:0.95 | area= large | maxDets=100 ] = 0.500\n"
        "Epoch: [1]  [ 5/10]  eta: 0:00:04  lr: 0.001000  loss: 7.5 (8.0)\n",
        "step",
        {
            "loss": {5: 8.5, 15: 7.5},
            "eval_ap": {5: 0.125},
            "eval_ap50": {5: 0.25},
            "eval_average_recall_10": {5: 0.375},
            "eval_average_recall_large": {5: 0.5},
        },
    ),
    "scores that Caffe numbers belong to the iteration of the test": (
        "I1224 16:55:25.943426 31888 solver.cpp:106] Iteration 100, Testing net\n"
        "I1224 16:56:24.839272 31888 solver.cpp:142] Test score #0: 0.125\n"
        "I1224 16:56:24.839352 31888 solver.cpp:142] Test score #1: 1.75\n"
        "I1224 17:08:05.139917 31888 solver.cpp:237] Iteration 200, lr = 0.01\n"
        "I1224 17:08:05.140704 31888 solver.cpp:87] Iteration 200, loss = 0.5\n"
        "I1224 17:08:05.140821 31888 solver.cpp:106] Iteration 200, Testing net\n"
        "I1224 17:09:12.241538 31888 solver.cpp:142] Test score #0: 0.25\n"
        "I1224 17:09:12.241590 31888 solver.cpp:142] Test score #1: 1.5\n",
        "step",
        {"eval_score_0": {100: 0.125, 200: 0.25}, "eval_score_1": {100: 1.75, 200: 1.5}, "loss": {200: 0.5}},
    ),
    "a terminal breaks a line between a name and its number": (
        "- INFO - epoch: 1/9, iter: 10/20, total_loss: 5.5, conf_loss: 2.0, cls_loss:\n1.25, lr: 4.0e-04, size: 640\n"
        "- INFO - epoch: 1/9, iter: 20/20, total_loss: 4.5, conf_loss: 1.5, cls_loss:\n0.75, lr: 5.0e-04, size: 640\n",
        "step",
        {"loss": {10: 5.5, 20: 4.5}, "cls_loss": {10: 1.25, 20: 0.75}, "learning_rate": {10: 4e-4, 20: 5e-4}},
    ),
    "each metric of MXNet has a line of its own": (
        "Epoch[1] Batch [20]\tSpeed: 6.5 samples/sec\tTrain-CrossEntropy=0.75\n"
        "Epoch[1] Batch [20]\tSpeed: 6.5 samples/sec\tTrain-Offset=1.5\n"
        "Epoch[1] Batch [40]\tSpeed: 6.5 samples/sec\tTrain-CrossEntropy=0.5\n"
        "Epoch[1] Batch [40]\tSpeed: 6.5 samples/sec\tTrain-Offset=1.25\n",
        "step",
        {"Train-CrossEntropy": {20: 0.75, 40: 0.5}, "Train-Offset": {20: 1.5, 40: 1.25}},
    ),
    "an option in brackets and a rate that is now another one": (
        "epoch:  3\n2019-12-22 18:23:23.210800: train loss : -0.75\n"
        "2019-12-22 18:23:30.078278: val loss (train=False): -0.5\n"
        "2019-12-22 18:23:31.195909: lr is now (scheduler) 0.003\n"
        "epoch:  4\n2019-12-22 18:24:23.210800: train loss : -0.8\n"
        "2019-12-22 18:24:30.078278: val loss (train=False): -0.6\n"
        "2019-12-22 18:24:31.195909: lr is now (scheduler) 0.002\n",
        "epoch",
        {"loss": {3: -0.75, 4: -0.8}, "eval_loss": {3: -0.5, 4: -0.6}, "learning_rate": {3: 0.003, 4: 0.002}},
    ),
    "a value and its part in brackets are two metrics": (
        "INFO: [a..][epoch: 1, iter: 100, lr:(1.000e-04,)] [eta: 1:00:00, time (data): 0.365 (0.002)] l_pix: 0.5\n",
        "step",
        {"step_time": {100: 0.365}, "data_time": {100: 0.002}, "loss": {100: 0.5}},
    ),
    "evaluations named in the middle of a line are told from training": (
        "Training progress:  50%|#####     | 500/1000 [00:10<00:10, 50.00it/s, Loss=0.0500000]\n"
        "[ITER 500] Evaluating test: L1 0.0500 PSNR 20.5 [11/07 13:58:39]\n"
        "[ITER 500] Evaluating train: L1 0.0400 PSNR 22.5 [11/07 13:58:40]\n"
        "Training progress: 100%|##########| 1000/1000 [00:20<00:00, 50.00it/s, Loss=0.0250000]\n",
        "step",
        {"loss": {500: 0.05, 1000: 0.025}, "eval_psnr": {500: 20.5}, "PSNR": {500: 22.5}},
    ),
    "a bar of one's own is read with its count": (
        "Training [>         ] 100/1000, loss_G=1.1, lr_G=1.0e-04  1.4 step/sec\n"
        "Training [>>        ] 200/1000, loss_G=1.2, lr_G=1.0e-04  1.4 step/sec\n",
        "step",
        {"loss_G": {100: 1.1, 200: 1.2}},
    ),
    "the batches of an evaluation are no step": (
        "2023-06-21 05:51:50,921 - mmseg - INFO - Iter [4000/9000]\tlr: 1e-3, time: 0.2, loss: 1.5\n"
        "2023-06-21 05:52:50,921 - mmseg - INFO - Iter(val) [500]\taAcc: 0.75, mIoU: 0.25\n"
        "2023-06-21 05:53:50,921 - mmseg - INFO - Iter [4050/9000]\tlr: 1e-3, time: 0.2, loss: 1.25\n",
        "step",
        {"loss": {4000: 1.5, 4050: 1.25}, "eval_miou": {4000: 0.25}},
    ),
    "the batches of an evaluation by its long name are no step": (
        "Iter [4000/9000]\tlr: 1e-3, time: 0.2, loss: 1.5\n"
        "Iter(validation) [4/4]\taAcc: 0.75, mIoU: 0.25\n"
        "Iter [4050/9000]\tlr: 1e-3, time: 0.2, loss: 1.25\n",
        "step",
        {"loss": {4000: 1.5, 4050: 1.25}, "eval_miou": {4000: 0.25}},
    ),
    "the same metrics twice in a line are of training and of evaluation": (
        "2019-09-06-05-36: epoch: 4 |loss 0.9 | hm_loss 0.7 | time 33.7 | \n"
        "2019-09-06-06-10: epoch: 5 |loss 0.8 | hm_loss 0.6 | time 33.9 | loss 1.1 | hm_loss 0.9 | time 19.5 | \n",
        "epoch",
        {"loss": {4: 0.9, 5: 0.8}, "eval_loss": {5: 1.1}, "eval_hm_loss": {5: 0.9}},
    ),
    "a heading between two bars is that of the second": (
        "epoch 1/3\nsteps: 33%|###   | 10/30 [00:10<00:20, 1.0it/s, avr_loss=0.1]\n"
        "epoch 2/3\nsteps: 33%|###   | 20/30 [00:10<00:20, 1.0it/s, avr_loss=0.2]\n"
        "epoch 3/3\nsteps: 33%|###   | 30/30 [00:10<00:20, 1.0it/s, avr_loss=0.3]\n",
        "step",
        {"epoch": {10: 1, 20: 2, 30: 3}, "loss": {10: 0.1, 20: 0.2, 30: 0.3}},
    ),
    "a rate on a line of its own belongs to its step": (
        "I0914 09:42:51.54  6584 solver.cpp:228] Iteration 100, loss = 0.1\n"
        "I0914 09:42:51.54  6584 sgd_solver.cpp:106] Iteration 100, lr = 0.01\n"
        "I0914 09:42:52.54  6584 solver.cpp:228] Iteration 200, loss = 0.2\n"
        "I0914 09:42:52.54  6584 sgd_solver.cpp:106] Iteration 200, lr = 0.01\n",
        "step",
        {"loss": {100: 0.1, 200: 0.2}, "learning_rate": {100: 0.01, 200: 0.01}},
    ),
    "an epoch of testing in brackets is an evaluation": (
        "[Info][Train  Epoch 1/9]\t[loss 2.1]\n[Info][Test   Epoch 1/9]\t[loss 3.1]\n"
        "[Info][Train  Epoch 2/9]\t[loss 2.2]\n[Info][Test   Epoch 2/9]\t[loss 3.2]\n",
        "epoch",
        {"loss": {1: 2.1, 2: 2.2}, "eval_loss": {1: 3.1, 2: 3.2}},
    ),
    "a record behind a bar keeps its own counter": (
        "train:   0%|          | 0/271 [00:00<?, ?it/s]"
        "2022-10-23 04:01:41,901   INFO  epoch: 22/120, acc_iter=601, cur_iter=1/271, loss=3.1, lr=0.001\n"
        "2022-10-23 04:01:42,901   INFO  epoch: 22/120, acc_iter=602, cur_iter=2/271, loss=3.2, lr=0.001\n"
        "2022-10-23 04:01:43,901   INFO  epoch: 22/120, acc_iter=603, cur_iter=3/271, loss=3.3, lr=0.001\n",
        "step",
        {"loss": {601: 3.1, 602: 3.2, 603: 3.3}, "epoch": {601: 22, 602: 22, 603: 22}},
    ),
    "the cross-entropy of MXNet is its loss at the last of a range of batches": (
        "".join(
            f"INFO:root:Epoch[{at}] Batch [0-20]\tSpeed: 1215.31 samples/sec\taccuracy=0.2\tcross-entropy=2.{at}5\n"
            f"INFO:root:Epoch[{at}] Batch [20-40]\tSpeed: 1195.31 samples/sec\taccuracy=0.2\tcross-entropy=2.{at}4\n"
            f"INFO:root:Epoch[{at}] Train-cross-entropy=2.{at}0\nINFO:root:Epoch[{at}] Time cost=12.3\n"
            f"INFO:root:Epoch[{at}] Validation-cross-entropy=3.{at}\n"
            for at in (0, 1)
        ),
        "step",
        {"loss": {20: 2.05, 40: 2.04, 60: 2.15, 80: 2.14}, "eval_loss": {40: 3.0, 80: 3.1}},
    ),
    "a validation loss of a test is an evaluation loss": (
        "epoch: 0, test val_loss: 2.0\nepoch: 0, train loss: 1.0\n"
        "epoch: 1, test val_loss: 2.1\nepoch: 1, train loss: 1.1\n",
        "epoch",
        {"eval_loss": {0: 2.0, 1: 2.1}, "loss": {0: 1.0, 1: 1.1}},
    ),
}
"""What is printed, what a step is, and metrics as {step: value}."""


@pytest.mark.parametrize("name", PRINTED)
def test_what_a_vision_trainer_prints_is_read_to_the_exact_values(name: str, tmp_path: Path) -> None:
    text, step_name, metrics = PRINTED[name]
    assert_holds(read(tmp_path, text), step_name, metrics)


@pytest.mark.parametrize(("prefix", "loss"), [(SWIN, "loss"), (LOGURU, "total_loss:"), (DINO, "total_loss:")])
def test_the_place_in_the_source_that_logged_a_line_is_no_metric(tmp_path: Path, prefix: str, loss: str) -> None:
    lines = [f"{prefix.format(at, 10 * at)} {loss} {6 - at / 10:.4f}" for at in range(1, 6)]
    run = read(tmp_path, "\n".join(lines))
    assert points(run, "loss") == {10 * at: pytest.approx(6 - at / 10) for at in range(1, 6)}
    assert not {name for name in run.series if "main" in name or "trainer" in name or "helpers" in name}


@pytest.mark.parametrize("word", ["nan", "inf"])
def test_a_loss_that_stops_training_between_two_records_is_read(tmp_path: Path, word: str) -> None:
    lines = [f"Epoch: [0]  [{at}/90]  eta: 0:01:00  lr: 0.01  loss: {3 - at / 100} (2.9)" for at in (0, 10, 20)]
    stop = f"Loss is {word}, stopping training"
    run = read(tmp_path, "\n".join([*lines, stop, stop]))
    assert run["loss"].step.tolist() == [0, 10, 20, 21]
    assert run["loss"].value[:3].tolist() == [3, 2.9, 2.8]
    assert not math.isfinite(run["loss"].value[3])
    assert any("between two records" in note for note in run.notes)


def test_the_step_at_which_detectron2_gives_up_is_read(tmp_path: Path) -> None:
    lines = [
        f"[11/01 19:16:1{at} d2.utils.events]: eta: 1:00:00  iter: {at}  total_loss: 1.{at}  lr: 0.001" for at in (1, 3)
    ]
    run = read(tmp_path, "\n".join([*lines, "FloatingPointError: Loss became infinite or NaN at iteration=4!"]))
    assert run["loss"].step.tolist() == [1, 3, 4]
    assert math.isnan(run["loss"].value[2])
    assert not run.messages


def test_a_bar_with_commas_behind_it_is_no_table(tmp_path: Path) -> None:
    lines = [f"{at}/9 [>.............] - ETA: 12:52 - loss: 0.{at}(683, 1024, 3)" for at in (1, 2, 3)]
    run = read(tmp_path, "\n".join(lines))
    assert run.formats[:1] == ("text",)
    assert run["loss"].value.tolist() == [0.3]


def test_the_first_epoch_of_timm_is_epoch_0(tmp_path: Path) -> None:
    lines = [f"Train: 1 [ {at}/100 ( {at}%)]  Loss:  6.{at} (6.9)  Time: 0.1s,  9.9/s  LR: 1e-4" for at in (0, 50)]
    assert read(tmp_path, "\n".join(lines))["loss"].step.tolist() == [100, 150]


@pytest.mark.parametrize(
    ("waits", "named"), [((1.5, 0.0), True), ((3.0, 0.0), False), ((3.0, *[1.5] * 29), True), ((3.0, 1.5) * 15, False)]
)
def test_time_and_data_of_a_step_are_known_by_one_hardly_ever_exceeding_the_other(
    tmp_path: Path, waits: Sequence[float], named: bool
) -> None:
    lines = [
        f"Epoch: [0]  [{at}/90]  loss: 2.{at} (2.9)  time: 2.{at}  data: {wait}"
        for at, wait in enumerate(waits, start=1)
    ]
    run = read(tmp_path, "\n".join(lines))
    assert ("data_time" in run.series) is named
    assert ("step_time" in run.series) is named


def test_data_beside_the_time_of_a_step_is_the_wait_for_it_in_its_own_unit(tmp_path: Path) -> None:
    lines = [f"step={at} loss=2.{at} data={at + 20}.5ms step_time=42.0ms" for at in range(1, 9)]
    run = read(tmp_path, "\n".join(lines))
    assert run["data_time"].value.tolist() == pytest.approx([(at + 20.5) / 1000 for at in range(1, 9)])
    assert run["step_time"].value.tolist() == pytest.approx([0.042] * 8)


def test_num_mean_and_std_of_a_metric_are_its_mean(tmp_path: Path) -> None:
    lines = [
        json.dumps({
            "Loss/loss": {"num": 8, "mean": 0.5 / tick, "std": 0.1},
            "Progress/kimg": {"num": 1, "mean": 4.0 * tick, "std": 0.0},
        })
        for tick in (1, 2)
    ]  # fmt: skip
    run = read(tmp_path, "\n".join(lines), "stats.jsonl")
    assert points(run, "loss") == {4: 0.5, 8: 0.25}
    assert set(run.series) == {"loss"}


ULTRALYTICS = "epoch,train/box_loss,train/cls_loss,val/box_loss,val/cls_loss,metrics/mAP50(B),lr/pg0,lr/pg1,lr/pg2\n"


def test_the_sum_of_a_detectors_losses_is_its_loss(tmp_path: Path) -> None:
    rows = "1,1.5,2.5,1.25,2.0,0.1,0.01,0.01,0.01\n2,1.0,2.0,1.25,1.5,0.2,0.02,0.02,0.02\n"
    run = read(tmp_path, ULTRALYTICS + rows, "results.csv")
    assert points(run, "loss") == {1: 4, 2: 3}
    assert points(run, "eval_loss") == {1: 3.25, 2: 2.75}
    assert points(run, "box_loss") == {1: 1.5, 2: 1}


def test_the_warmup_of_biases_is_not_the_learning_rate(tmp_path: Path) -> None:
    rows = "1,1.5,2.5,1.25,2.0,0.1,0.07,0.001,0.001\n2,1.0,2.0,1.25,1.5,0.2,0.03,0.002,0.002\n"
    run = read(tmp_path, ULTRALYTICS + rows, "results.csv")
    assert points(run, "learning_rate") == {1: 0.001, 2: 0.002}
    assert points(run, "lr/pg0") == {1: 0.07, 2: 0.03}


@pytest.mark.parametrize("name", ["acc1", "Prec@1", "accuracy/top1"])
def test_top_1_by_any_name_is_the_accuracy(tmp_path: Path, name: str) -> None:
    run = read(tmp_path, f"epoch,train_loss,{name},test_acc1\n0,2.5,10.5,9.5\n1,2.0,20.5,19.5\n", "log.csv")
    assert points(run, "accuracy") == {0: 10.5, 1: 20.5}
    assert points(run, "eval_accuracy") == {0: 9.5, 1: 19.5}


YOLOV5 = """
     Epoch   gpu_mem       box       obj       cls    labels  img_size
      {0}/9     2.64G       {1}       0.25       0.5         4       416: 100%|##########| 7/7 [00:15<00:00,  2.27s/it]
               Class     Images     Labels          P          R     mAP@.5 mAP@.5:.95: 100%|#####| 1/1 [00:01<00:00]
                 all         14          3       0.75        0.5       0.25      0.125
"""


def test_the_table_of_yolov5_is_read_with_its_losses(tmp_path: Path) -> None:
    run = read(tmp_path, YOLOV5.format(0, 0.5) + YOLOV5.format(1, 0.25))
    assert points(run, "box_loss") == {0: 0.5, 1: 0.25}
    assert points(run, "loss") == {0: 1.25, 1: 1}
    assert run["eval_map@.5"].value.tolist() == [0.25, 0.25]
    assert not {"eval_labels", "eval_images"} & run.series.keys()


def test_a_detector_whose_losses_are_nan_is_read_as_such(tmp_path: Path) -> None:
    run = read(tmp_path, YOLOV5.format(0, "nan"))
    assert math.isnan(run["loss"].value[0])


@pytest.mark.parametrize(
    ("printed", "metric"),
    [("loss_val", "eval_loss"), ("Loss (val)", "eval_loss"), ("loss (batch)", "loss"), ("acc_train", "accuracy")],
)
def test_a_phase_behind_a_name_is_that_of_the_metric(tmp_path: Path, printed: str, metric: str) -> None:
    run = read(tmp_path, "\n".join(f"step {at}: {printed}: 0.{at}" for at in (1, 2, 3)))
    assert points(run, metric) == {1: 0.1, 2: 0.2, 3: 0.3}


def test_an_evaluation_under_way_is_told_from_training_by_its_counter(tmp_path: Path) -> None:
    bar = "ctdet/own |####      | {}: [{}][{}/2]|Tot: 0:00:00 |ETA: 0:00:00 |loss {} |hm_loss {} |Data 0.1s(0.1s)"
    lines = [bar.format("train", 1, 0, 2.5, 2.0), bar.format("train", 1, 1, 2.25, 1.75)]
    run = read(tmp_path, "\n".join([*lines, bar.format("val", 1, 0, 9.0, 8.0), bar.format("val", 1, 1, 3.0, 2.5)]))
    assert run["loss"].value.tolist() == [2.5, 2.25]
    assert run["eval_loss"].value.tolist() == [3.0]


def test_the_last_line_of_an_evaluation_stands_for_it_where_none_shows_its_last_batch(tmp_path: Path) -> None:
    train, test = "Epoch [{0}][{1}/20] loss 1.{0}{1:02}", "Test [{1}/30] loss 2.{0}{1:02}"
    epochs = [
        [train.format(at, batch) for batch in (0, 10)] + [test.format(at, 0), test.format(at, 20)] for at in (0, 1)
    ]
    run = read(tmp_path, "\n".join(itertools.chain(*epochs)))
    assert run["loss"].value.tolist() == [1.0, 1.01, 1.1, 1.11]
    assert run["eval_loss"].value.tolist() == [2.02, 2.12]
    assert any("20 of 30" in note for note in run.notes)


def test_a_line_of_averages_tells_what_an_evaluation_gave_that_shows_no_last_batch(tmp_path: Path) -> None:
    lines = ["Epoch [0][0/20] loss 1.5", "Test [0/30] loss 9.0", "Test [20/30] loss 8.0", "Test: loss 2.5"]
    run = read(tmp_path, "\n".join([*lines, "Epoch [1][0/20] loss 1.25"]))
    assert run["eval_loss"].value.tolist() == [2.5]


def test_the_results_of_yolov7_are_read_without_a_header(tmp_path: Path) -> None:
    row = (
        "     {}/9     13.6G   0.{}   0.25    0.5   0.75      17     640    0.1    0.2    0.3   0.4   0.5  0.6    0.7\n"
    )
    run = read(tmp_path, row.format(0, 5) + row.format(1, 4), "results.txt")
    assert points(run, "box_loss") == {0: 0.5, 1: 0.4}
    assert points(run, "loss") == {0: 0.75, 1: 0.75}
    assert points(run, "eval_map50") == {0: 0.3, 1: 0.3}
    assert any("guessed" in note for note in run.notes)


def test_the_two_tables_of_a_detector_are_read_where_buffering_mixes_them(tmp_path: Path) -> None:
    train = (
        "   {0}/9     55.1G   0.5   0.25   0.25    1.{0}        26      640: 100%|####| 5/5 [12:51<00:00,  2.62s/it]\n"
    )
    head = "     Epoch   gpu_mem       box       obj       cls     total    labels  img_size\n"
    classes = "    Class  Images  Labels      P       R   mAP@.5  mAP@.5:.95: 100%|####| 5/5 [01:15<00:00,  1.52s/it]\n"
    every = "      all     787    2054   0.{}   0.5   0.25   0.125\n"
    text = "".join(head + (every.format(at) if at else "") + train.format(at) + classes for at in range(4))
    run = read(tmp_path, text)
    assert run["loss"].value.tolist() == [1.0, 1.1, 1.2, 1.3]
    assert run["eval_p"].value.tolist() == [0.1, 0.2, 0.3]


def test_an_epoch_with_its_share_is_a_counter(tmp_path: Path) -> None:
    line = "2023-01-05 16:34:37,748   INFO  Train:    1/3 ( 33%) [ {}/300 (  0%)]  Loss: 5.{} (5.1)  LR: 1.000e-04"
    run = read(tmp_path, "\n".join(line.format(at, at) for at in (1, 2, 3)))
    assert run["loss"].value.tolist() == [5.1, 5.2, 5.3]
    assert np.diff(run["loss"].step).tolist() == [1, 1]


def test_a_cross_entropy_beside_a_loss_is_no_evaluation_loss(tmp_path: Path) -> None:
    line = "step: {0}00 loss: 9.{0}\nstep: {0}00 valid_cross-entropy: 20{0}.5\n"
    run = read(tmp_path, "".join(line.format(at) for at in (1, 2, 3)))
    assert points(run, "loss") == {100: 9.1, 200: 9.2, 300: 9.3}
    assert "eval_loss" not in run


def test_the_batches_of_an_evaluation_of_averaged_weights_are_no_metric(tmp_path: Path) -> None:
    lines = [f"Epoch: [{at}]  [10/20]  loss: 1.{at} (1.5)\nTest: EMA  [0/5]  loss: 2.{9 - at} (2.5)" for at in range(8)]
    run = read(tmp_path, "\n".join(lines))
    assert set(run.series) == {"epoch", "loss", "eval_loss"}
