"""Lines of trainers that are seldom seen today: records of two lines, counts of three, durations written as text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.logs.reading import Points, assert_holds, read

from mldebug_mcp.logs.names import Quantity, role_of

FRAGMENTS: dict[str, tuple[str, str, Mapping[str, Points]]] = {
    "the month and the day before a clock, and the place in the code": (
        "".join(
            f"[0911 05:{at}7:08 @base.py:25] Epoch {at} (global_step {at}00) finished, time:9.5 seconds.\n"
            f"[0911 05:{at}7:08 @monitor.py:4] cls_losses/box_loss: {at}.25\n"
            f"[0911 05:{at}7:08 @monitor.py:4] cls_losses/level3/recall_th0.5: 0.{at}\n"
            for at in (1, 2)
        ),
        "step",
        {"cls_losses/box_loss": {100: 1.25, 200: 2.25}, "cls_losses/level3/recall_th0.5": {100: 0.1, 200: 0.2}},
    ),
    "a record of two lines, the second with the epoch": (
        "".join(
            f"--\nTraining Step: {at}  | total loss: {at}.75 | time: 6.5s\n"
            f"| Adam | epoch: 00{at} | loss: {at}.25 - acc: 0.{at} | val_loss: {at}.5 -- iter: 9/9\n"
            for at in (1, 2, 3)
        ),
        "step",
        {
            "loss": {1: 1.25, 2: 2.25, 3: 3.25},
            "eval_loss": {1: 1.5, 2: 2.5, 3: 3.5},
            "total loss": {1: 1.75, 2: 2.75, 3: 3.75},
        },
    ),
    "the letter of a level before a sentence": (
        "".join(
            f"I Training of Epoch {at} - loss: {at}.25\nI Validation of Epoch {at} - loss: {at}.5\n" for at in (1, 2, 3)
        ),
        "epoch",
        {"loss": {1: 1.25, 2: 2.25, 3: 3.25}, "eval_loss": {1: 1.5, 2: 2.5, 3: 3.5}},
    ),
    "counts of three things have no end": (
        "".join(
            f"At iteration {at}09/{at}50/{at}52, Mean rms={at}.5%, delta=8.25%, char train=9.5%\n" for at in (2, 3, 4)
        ),
        "step",
        {"Mean rms": {209: 2.5, 309: 3.5, 409: 4.5}, "char train": {209: 9.5, 309: 9.5, 409: 9.5}},
    ),
    "an epoch and a batch in one bracket": (
        "".join(f"2023/04/05 06:07:0{at} 0.5 b/s,lr:0.25,[2/4:{at}/40] ==> loss:{at}.5\n" for at in (5, 6)),
        "step",
        {"loss": {45: 5.5, 46: 6.5}, "learning_rate": {45: 0.25, 46: 0.25}},
    ),
    "a loss and its parts": (
        "".join(f"Epoch {at} [5.5s]: train==[{at}.75={at}.50 + 0.25]\n" for at in (1, 2, 3)),
        "epoch",
        {"loss": {1: 1.75, 2: 2.75, 3: 3.75}, "loss_2": {1: 0.25, 2: 0.25, 3: 0.25}},
    ),
    "what a rate is set to, and a speed in seconds": (
        "".join(
            f"\titers: 20, epoch: {at} | loss: {at}.25\n\tspeed: 0.{at}s/iter; left time: 44.5s\n"
            f"Epoch: {at}, Steps: 40 | Train Loss: {at}.5 Vali Loss: {at}.75\nUpdating learning rate to {at}e-05\n"
            for at in (1, 2)
        ),
        "step",
        {"learning_rate": {40: 1e-5, 80: 2e-5}, "step_time": {20: 0.1, 60: 0.2}, "eval_loss": {40: 1.75, 80: 2.75}},
    ),
    "an epoch, a batch and a duration as texts": (
        "".join(
            f'[07/08 09:1{epoch}:0{at}] logging.py: 9: json_stats: {{"_type": "train_iter", "epoch": "{epoch}/4", '
            f'"eta": "1 day, 2:03:0{at}", "iter": "{at}/8", "loss": {epoch}.{at}, "gpu_mem": "4.5G"}}\n'
            for epoch in (1, 2)
            for at in (4, 8)
        )
        + '[07/08 09:19:00] logging.py: 9: json_stats: {"_type": "val_epoch", "epoch": "2/4", "top1_err": 30.5}\n',
        "step",
        {
            "loss": {4: 1.4, 8: 1.8, 12: 2.4, 16: 2.8},
            "eta": {4: 93784, 8: 93788, 12: 93784, 16: 93788},
            "eval_top1_err": {16: 30.5},
        },
    ),
    "lines of unknown names below a record": (
        "".join(
            f"[session 1][epoch  1][iter {at}/160] loss: {at}.25, lr: 1.00e-03\n\t\t\tfg/bg=(7/9), time cost: 5.25\n"
            f"\t\t\trpn_cls: 0.{at}, rpn_box: 0.5, rcnn_box 0.75\n"
            for at in range(10, 60, 10)
        ),
        "step",
        {
            "loss": {at: at + 0.25 for at in range(10, 60, 10)},
            "rpn_cls": {at: at / 100 for at in range(10, 60, 10)},
            "rcnn_box": dict.fromkeys(range(10, 60, 10), 0.75),
        },
    ),
    "drawings without line ends, cut off by the terminal": (
        "".join(
            f"Step: {at}. Epoch: 5/9. Iteration: {at - 90}/99. Cls loss: {at}.25. Reg loss: 0.5. Total loss: {at}.7"
            for at in (95, 96, 97)
        )
        + "5\n",
        "step",
        {"Cls loss": {95: 95.25, 96: 96.25, 97: 97.25}, "loss": {97: 97.75}},
    ),
    "a batch of an epoch in words, and scores on a set": (
        "".join(
            f"0/40 of epoch {at}/4 class : {at}.25 - acc class : 7.5 [bs:16]\n"
            f"Accuracies on val: class : 8{at}.5\nAccuracies on test: class : 7{at}.5\n"
            for at in (1, 2)
        ),
        "step",
        {
            "acc class": {0: 7.5, 40: 7.5},
            "eval_accuracy_class": {0: 81.5, 40: 82.5},
            "eval_test_accuracy_class": {0: 71.5, 40: 72.5},
        },
    ),
    "two statistics in one name": (
        "".join(
            f"Updates {at}, num timesteps {at}00, FPS 55\n"
            f" Last 10 training episodes: mean/median reward {at}.5/{at}.25, min/max reward -{at}.5/{at}.75\n\n"
            for at in (7, 8, 9)
        ),
        "step",
        {
            "reward": {7: 7.5, 8: 8.5, 9: 9.5},
            "median_reward": {7: 7.25, 8: 8.25, 9: 9.25},
            "min_reward": {7: -7.5, 8: -8.5, 9: -9.5},
        },
    ),
    "a time of a step that creeps, and a margin that is set": (
        "".join(
            f"step {at}: loss: 2.5, time: 0.25000{at} (20 iters) Margin: 0.5, eta: 0:0{9 - at}:00\n" for at in (1, 2, 3)
        ),
        "step",
        {"step_time": {1: 0.250001, 2: 0.250002, 3: 0.250003}, "Margin": {1: 0.5, 2: 0.5, 3: 0.5}},
    ),
    "lines of one step, some with names that nobody knows": (
        "".join(
            f"train_seq_len: {at}.25  step:{at}\ntrain_loss: {at}.5  step:{at}\ntrain_lamb: {at}.75  step:{at}\n"
            for at in (2, 3, 4)
        ),
        "step",
        {
            "loss": {2: 2.5, 3: 3.5, 4: 4.5},
            "train_seq_len": {2: 2.25, 3: 3.25, 4: 4.25},
            "train_lamb": {2: 2.75, 3: 3.75, 4: 4.75},
        },
    ),
    "records of unknown names around one that is known": (
        "".join(
            f"At iteration {at}0/{at}5/{at}7, Mean rms={at}.5%, delta=8.25%, char train=9.5%, skip ratio=0.25%,  "
            + ("Eval Char error rate=7.5, Word error rate=6.5 " * (at == 4))
            + "wrote checkpoint.\n"
            for at in (2, 3, 4, 5, 6)
        ),
        "step",
        {"Mean rms": {10 * at: at + 0.5 for at in (2, 3, 4, 5, 6)}, "Word error rate": {40: 6.5}},
    ),
    "a loss called by what comes out": (
        "***EPOCH 0***\n" + "".join(f"Step 000000{at}0 L_out=  nan Acc=0.{at} --- 44.5 ms/batch\n" for at in (5, 6, 7)),
        "step",
        {"loss": dict.fromkeys((50, 60, 70), float("nan")), "accuracy": {50: 0.5, 60: 0.6, 70: 0.7}},
    ),
    "days and hours before a line": (
        "".join(
            f"[03d04h05m{at}6s][HUGECTR][INFO]: Iter: {at}00 Time(100 iters): 5.5s Loss: 0.{at}5 lr:9.25\n"
            f"[03d04h05m{at}7s][HUGECTR][INFO]: Evaluation, AUC: 0.7{at}\n"
            for at in (1, 2)
        ),
        "step",
        {"loss": {100: 0.15, 200: 0.25}, "eval_auc": {100: 0.71, 200: 0.72}},
    ),
    "a log that begins within an epoch": (
        "".join(f"batch {at} loss {at}.5\n" for at in (3, 4, 5))
        + "Epoch: 12\n"
        + "".join(f"batch {at} loss {at}.25\n" for at in (0, 1, 2)),
        "step",
        {"loss": {3: 3.5, 4: 4.5, 5: 5.5, 6: 0.25, 7: 1.25, 8: 2.25}},
    ),
}


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_each_number_is_read_at_its_step_and_under_its_name(tmp_path: Path, fragment: str) -> None:
    text, step_name, metrics = FRAGMENTS[fragment]
    run = read(tmp_path, text)
    assert_holds(run, step_name, metrics)
    assert not run.settings
    assert run.planned.get("step", 0) in (0, 160)
    assert len(run.attempts) <= 1


@pytest.mark.parametrize(
    ("name", "quantity"),
    [
        ("cost_time", None),
        ("rpn_losses/level3/label_metrics/precision_th0.2", Quantity.PRECISION),
        ("rpn_losses/level3/num_valid_anchor", None),
        ("rpn_losses/box_loss", Quantity.LOSS),
        ("mAP@0.5IOU", Quantity.AVERAGE_PRECISION),
    ],
)
def test_a_place_or_a_threshold_in_a_name_is_not_what_is_measured(name: str, quantity: Quantity | None) -> None:
    role = role_of(name)
    assert (role and role.quantity) == quantity
