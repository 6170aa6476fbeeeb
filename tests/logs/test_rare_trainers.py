"""Lines of trainers that few people know: of speech, recommendation, games, physics and trees."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.logs.reading import Points, assert_holds, points, read

RARE: dict[str, tuple[str, str, Mapping[str, Points]]] = {
    "Sample Factory's pace is one of steps, and its reward a pair": (
        "[2022-01-09 05:20:22,264][184052] Fps is (10 sec: 4096.0, 60 sec: 4000.0, 300 sec: 3900.0). Total num frames: "
        "8192. Throughput: 0: 1024.0. Samples: 253808. Policy #0 lag: (min: 0.0, avg: 1.2, max: 3.0)\n"
        "[2022-01-09 05:20:22,264][184052] Avg episode reward: [(0, '4.25')]\n"
        "[2022-01-09 05:20:27,264][184052] Fps is (10 sec: 4112.0, 60 sec: 4000.0, 300 sec: 3900.0). Total num frames: "
        "16384. Throughput: 0: 1040.0. Samples: 313808. Policy #0 lag: (min: 0.0, avg: 1.3, max: 3.0)\n"
        "[2022-01-09 05:20:27,264][184052] Avg episode reward: [(0, '4.5')]\n",
        "step",
        {"reward": {8192: 4.25, 16384: 4.5}, "fps": {8192: 4096, 16384: 4112}},
    ),
    "the score of DL4J is its loss": (
        "06:38:16.402 [main] INFO org.dl4j.listeners.ScoreIterationListener - Score at iteration 0 is 1.5\n"
        "06:39:50.616 [main] INFO org.dl4j.listeners.ScoreIterationListener - Score at iteration 100 is 1.25\n",
        "step",
        {"loss": {0: 1.5, 100: 1.25}},
    ),
    "Trax names the phase in each line": (
        "Step      1: train CrossEntropyLoss |  0.75\nStep      1: eval  CrossEntropyLoss |  0.625\n"
        "Step      1: eval          Accuracy |  0.5\nStep    500: train CrossEntropyLoss |  0.5\n"
        "Step    500: eval  CrossEntropyLoss |  0.375\nStep    500: eval          Accuracy |  0.75\n",
        "step",
        {"loss": {1: 0.75, 500: 0.5}, "eval_loss": {1: 0.625, 500: 0.375}, "eval_accuracy": {1: 0.5, 500: 0.75}},
    ),
    "MatConvNet's pace stands in front of its objective": (
        "train: epoch 01:   1/ 20: 120.5 (120.5) Hz objective: 2.5 top1err: 0.875 top5err: 0.5\n"
        "train: epoch 01:  20/ 20: 140.5 (130.5) Hz objective: 2.0 top1err: 0.75 top5err: 0.25\n"
        "val: epoch 01:   5/  5: 330.5 (320.5) Hz objective: 1.75 top1err: 0.625 top5err: 0.125\n"
        "train: epoch 02:  20/ 20: 140.5 (130.5) Hz objective: 1.5 top1err: 0.5 top5err: 0.125\n",
        "step",
        {
            "loss": {1: 2.5, 20: 2.0, 40: 1.5},
            "eval_loss": {20: 1.75},
            "samples_per_second": {1: 120.5, 20: 130.5, 40: 130.5},
        },
    ),
    "MALLET tells a log-likelihood": (
        "<10> LL/token: -9.5\n<20> LL/token: -8.75\n\n0\t0.25\tyear actors drama\n\n<30> LL/token: -8.5\n",
        "step",
        {"loss": {10: 9.5, 20: 8.75, 30: 8.5}},
    ),
    "OpenNLP counts in front of dots": (
        "  1:  ... loglikelihood=-1250.5\t0.25\n  2:  ... loglikelihood=-650.5\t0.5\n",
        "step",
        {"loss": {1: 1250.5, 2: 650.5}, "accuracy": {1: 0.25, 2: 0.5}},
    ),
    "DeepFaceLab names nothing": (
        "[15:53:49][#123401][0640ms][0.5][0.375]\n[16:08:49][#124812][0630ms][0.25][0.125]\n",
        "step",
        {
            "loss_src": {123401: 0.5, 124812: 0.25},
            "loss_dst": {123401: 0.375, 124812: 0.125},
            "step_time": {123401: 0.64, 124812: 0.63},
        },
    ),
    "faceswap counts in brackets": (
        "[15:53:49] [#00123] face_A: 0.5, face_B: 0.375\n[15:53:50] [#00124] face_A: 0.25, face_B: 0.125\n",
        "step",
        {"loss_A": {123: 0.5, 124: 0.25}, "loss_B": {123: 0.375, 124: 0.125}},
    ),
    "Spark's value and its gradient's norm": (
        "20/12/01 10:00:00 INFO LBFGS: Val and Grad Norm: 0.625 (rel: 0.125) 0.25\n"
        "20/12/01 10:00:01 INFO LBFGS: Val and Grad Norm: 0.5 (rel: 0.25) 0.125\n",
        "record",
        {"loss": {1: 0.625, 2: 0.5}, "grad_norm": {1: 0.25, 2: 0.125}},
    ),
    "the deviance of R's gbm": (
        "Iter   TrainDeviance   ValidDeviance   StepSize   Improve\n"
        "     1        1.2500          1.3750     0.1000    0.0625\n"
        "     2        1.1250          1.2500     0.1000    0.0312\n",
        "step",
        {"loss": {1: 1.25, 2: 1.125}, "eval_loss": {1: 1.375, 2: 1.25}},
    ),
    "a row of Ludwig's box for each set": (
        "Epoch   4\n╒═════════╤════════╤════════════╕\n"
        "│ rating  │   loss │   accuracy │\n╞═════════╪════════╪════════════╡\n"
        "│ train   │ 1.1250 │     0.5000 │\n├─────────┼────────┼────────────┤\n│ vali    │ 1.2500 │     0.2500 │\n"
        "╘═════════╧════════╧════════════╛\nEpoch   5\n╒═════════╤════════╤════════════╕\n"
        "│ rating  │   loss │   accuracy │\n╞═════════╪════════╪════════════╡\n│ train   │ 1.0000 │     0.7500 │\n"
        "├─────────┼────────┼────────────┤\n│ vali    │ 1.5000 │     0.5000 │\n╘═════════╧════════╧════════════╛\n",
        "epoch",
        {"loss": {4: 1.125, 5: 1}, "eval_loss": {4: 1.25, 5: 1.5}},
    ),
    "Vowpal Wabbit marks what it held out": (
        "average    since         example     example  current  current  current  current\n"
        "loss       last          counter      weight    label  predict features     pass\n"
        "1.500000   1.500000            1         1.0   1.0000   0.0000        1        0\n"
        "1.250000   1.000000            2         2.0  -1.0000   0.3934        1        0\n"
        "0.750000   0.750000            4         4.0   1.0000   0.2857        1        1 h\n"
        "0.625000   0.500000            8         8.0  -1.0000   0.3600        1        2 h\n",
        "sample",
        {"loss": {1: 1.5, 2: 1.25}, "eval_loss": {4: 0.75, 8: 0.625}},
    ),
    "a heading that ends in a semicolon": (
        "Epoch 0;\nParameters norm: 106.5\nTraining loss: 1.5\nGradient norm: 0.25\n"
        "Epoch 1;\nParameters norm: 105.5\nTraining loss: 1.25\nGradient norm: 0.125\n",
        "epoch",
        {"loss": {0: 1.5, 1: 1.25}, "Parameters norm": {0: 106.5, 1: 105.5}, "grad_norm": {0: 0.25, 1: 0.125}},
    ),
    "a tag, its value and the step": (
        "global_step=192, episodic_return=-128.5\nlosses/q1_loss 65.25 200\nlosses/alpha [0.5] 200\n"
        "global_step=392, episodic_return=-64.5\nlosses/q1_loss 32.25 400\nlosses/alpha [0.25] 400\n",
        "step",
        {"losses/q1_loss": {200: 65.25, 400: 32.25}, "reward": {192: -128.5, 392: -64.5}},
    ),
    "a test beside a validation": (
        "Epoch: 1 Train loss: 2.0\nEpoch: 1 Val loss: 2.25\nEpoch: 1 Test loss: 2.5\n"
        "Epoch: 2 Train loss: 1.0\nEpoch: 2 Val loss: 1.25\nEpoch: 2 Test loss: 1.5\n",
        "epoch",
        {"loss": {1: 2, 2: 1}, "eval_loss": {1: 2.25, 2: 1.25}},
    ),
    "what the GPU costs is memory": (
        "****Train Epoch 1: averaged Loss: 1.5, GPU cost: 3.5 GB, train time: 45.0 s\n"
        "****Train Epoch 2: averaged Loss: 1.25, GPU cost: 3.5 GB, train time: 45.0 s\n",
        "epoch",
        {"loss": {1: 1.5, 2: 1.25}},
    ),
    "the end of an epoch ends it": (
        "2021-01-25 08:22:05,322 P8 INFO ************ Epoch=11 end ************\n"
        "2021-01-25 08:26:58,270 P8 INFO [Metrics] NDCG(k=20): 0.25\n"
        "2021-01-25 08:26:58,290 P8 INFO Train loss: 0.5\n"
        "2021-01-25 08:27:05,322 P8 INFO ************ Epoch=12 end ************\n"
        "2021-01-25 08:28:58,270 P8 INFO [Metrics] NDCG(k=20): 0.375\n"
        "2021-01-25 08:28:58,290 P8 INFO Train loss: 0.25\n"
        "2021-01-25 08:29:05,322 P8 INFO ************ Epoch=13 end ************\n",
        "epoch",
        {"loss": {12: 0.5, 13: 0.25}},
    ),
    "the batch of the data beside the step": (
        "Train: Rank: 0, epoch: 1, step: 5310, batch : 1559/1876, lr: 0.5, batch size: 64, train_loss: 16.5\n"
        "Train: Rank: 0, epoch: 1, step: 5311, batch : 1560/1876, lr: 0.5, batch size: 64, train_loss: 15.5\n",
        "step",
        {"loss": {5310: 16.5, 5311: 15.5}},
    ),
    "all that stands behind testing is of the test": (
        "===> Epoch 131 Complete: Avg. Loss: 0.5 time: 666.5\n===> Epoch 131: testing psnr = 34.25, ssim = 0.75\n"
        "===> Epoch 132 Complete: Avg. Loss: 0.25 time: 669.5\n===> Epoch 132: testing psnr = 34.5, ssim = 0.875\n",
        "epoch",
        {"loss": {131: 0.5, 132: 0.25}, "eval_psnr": {131: 34.25, 132: 34.5}, "eval_ssim": {131: 0.75, 132: 0.875}},
    ),
    "a bar over all epochs counts the steps": (
        "Epoch 38/65, Steps:  57%|###   | 5750/10000 [18:09<12:43,  5.57it/s, lr=0.5, step_loss=0.5]\n"
        "Epoch 39/65, Steps:  60%|###   | 6000/10000 [18:54<09:16,  7.19it/s, lr=0.5, step_loss=0.75]\n"
        "Epoch 41/65, Steps:  62%|###   | 6250/10000 [19:45<09:34,  6.53it/s, lr=0.5, step_loss=0.25]\n"
        "Epoch 43/65, Steps:  65%|###   | 6500/10000 [20:31<10:54,  5.35it/s, lr=0.5, step_loss=0.125]\n",
        "step",
        {"loss": {5750: 0.5, 6000: 0.75, 6250: 0.25, 6500: 0.125}},
    ),
    "the bar of the next epoch is another one": (
        "speechbrain.utils.epoch_loop - Going into epoch 1\n"
        "100%|######| 190/190 [03:08<00:00,  1.01it/s, train_loss=0.75]\n"
        "100%|######| 137/137 [01:43<00:00,  1.33it/s]\n"
        "speechbrain.utils.epoch_loop - Going into epoch 2\n"
        "100%|######| 190/190 [03:08<00:00,  1.01it/s, train_loss=0.5]\n"
        "100%|######| 137/137 [01:43<00:00,  1.33it/s]\n",
        "step",
        {"loss": {190: 0.75, 380: 0.5}},
    ),
    "DeepXDE's rows without their header": (
        "27000     [2.00e+00, 6.25e+00]    [1.50e+00, 0.00e+00]    []  \n"
        "28000     [1.00e+00, 6.00e+00]    [1.25e+00, 0.00e+00]    []  \n"
        "29000     [0.50e+00, 5.50e+00]    [1.00e+00, 0.00e+00]    []  \n",
        "step",
        {"loss": {27000: 8.25, 28000: 7, 29000: 6}, "eval_loss": {27000: 1.5, 28000: 1.25, 29000: 1}},
    ),
    "spaCy's losses of a component": (
        "Losses {'ner': 117.5}\nLosses {'ner': 9.5}\nLosses {'ner': 5.25}\n",
        "record",
        {"loss": {1: 117.5, 2: 9.5, 3: 5.25}},
    ),
    "lines that are marked as code": (
        "`[gpu01:0/2] 2020-07-19 08:49:04,080 (trainer:464) INFO: 1epoch:train:1-682batch: loss=123.5, lr_0=0.5`\n"
        "`[gpu01:0/2] 2020-07-19 08:54:09,601 (trainer:464) INFO: 1epoch:train:683-1364batch: loss=68.5, lr_0=0.25` \n",
        "step",
        {"loss": {682: 123.5, 1364: 68.5}, "learning_rate": {682: 0.5, 1364: 0.25}},
    ),
}


@pytest.mark.parametrize(("text", "axis", "expected"), RARE.values(), ids=RARE.keys())
def test_lines_of_rare_trainers_are_read(tmp_path: Path, text: str, axis: str, expected: Mapping[str, Points]) -> None:
    assert_holds(read(tmp_path, text), axis, expected)


CV = "2026-05-09 04:10:57,296 DEBUG CV Batch {}/{} loss {} acc {} history loss {}\n"


def test_evaluations_of_wenet_are_known_by_the_mean_of_their_last_line(tmp_path: Path) -> None:
    text = "".join(CV.format(at, 10 * step, 8 - at, 25 * at, 4 - at) for at in (1, 2, 3) for step in (1, 2, 3))
    run = read(tmp_path, text)
    assert run["eval_loss"].value.tolist() == [3, 2, 1]
    assert any("no line of the last batch ends 3 evaluations" in note for note in run.notes)


def test_lines_of_validation_beside_those_of_training_are_no_training(tmp_path: Path) -> None:
    train = "2023-01-30 18:47:07,107 DEBUG TRAIN Batch {}/{} loss {} lr 0.5 rank 0\n"
    text = "".join(
        "".join(train.format(at, 100 * step, 4 / (at + step)) for step in (1, 2, 3))
        + "".join(CV.format(at, 100 * step, 9, 50, 2.5 - at / 2) for step in (1, 2))
        for at in (1, 2, 3)
    )
    run = read(tmp_path, text)
    assert run["loss"].value.tolist() == pytest.approx([4 / (at + step) for at in (1, 2, 3) for step in (1, 2, 3)])
    assert run["eval_loss"].value.tolist() == [2, 1.5, 1]


def test_evaluations_at_the_same_batch_of_each_epoch_go_on(tmp_path: Path) -> None:
    line = "2024-02-20 19:34:31,381 P3047876 INFO "
    evaluation = (
        f"{line}Train loss: {{}}\n{line}Evaluation @epoch {{}} - batch 3668: \n{line}[Metrics] AUC: {{}}\n"
        f"{line}******** Epoch={{}} end ********\n"
    )
    began = f"{line}Start training: 3668 batches/epoch\n{line}******** Epoch=1 start ********\n"
    run = read(tmp_path, began + "".join(evaluation.format(1 / at, at, 0.5 + at / 8, at) for at in (1, 2)))
    assert run["eval_auc"].step.tolist() == [3668, 7336]
    assert run["eval_auc"].value.tolist() == [0.625, 0.75]


def test_probabilities_of_kaldi_become_losses(tmp_path: Path) -> None:
    line = (
        "exp/chain/log/compute_prob_{}.{}.log:LOG (nnet3-chain-compute-prob[5.1]:PrintTotalStats():"
        "nnet-chain-diagnostics.cc:170) Overall log-probability for 'output' is {} per frame, over 18375 frames.\n"
    )
    run = read(tmp_path, "".join(line.format("valid", at, -1 / at) for at in (100, 200, 400)))
    assert run["eval_loss"].step.tolist() == [100, 200, 400]
    assert run["eval_loss"].value.tolist() == [1 / 100, 1 / 200, 1 / 400]


def test_a_history_in_ordered_dictionaries_is_read(tmp_path: Path) -> None:
    history = "{'Train': OrderedDict([('rmse', [4.5, 3.5, 2.5, 1.5])]), 'Valid': OrderedDict([('rmse', [5, 4, 3, 2])])}"
    text = f"{{'booster': <xgboost.core.Booster object at 0x7fc0>, 'history': {history}}}\n"
    run = read(tmp_path, text)
    assert run["eval_loss"].value.tolist() == [5, 4, 3, 2]


def test_the_best_round_is_no_second_attempt(tmp_path: Path) -> None:
    rounds = [f"[{at}]\ttrain-auc:{0.5 + at / 16}\teval-auc:{0.5 + at / 32}" for at in range(8)]
    text = "\n".join([*rounds, "Stopping. Best iteration:", rounds[5]]) + "\n"
    run = read(tmp_path, text)
    assert len(run.attempts) == 1
    assert run["auc"].step.tolist() == list(range(8))


def test_sets_of_lightgbm_with_names_of_ones_own_are_of_evaluation(tmp_path: Path) -> None:
    run = read(tmp_path, "[1]\ttrn's l2: 2.5\tholdout's l2: 3.5\n[2]\ttrn's l2: 1.5\tholdout's l2: 2.5\n")
    assert run["loss"].value.tolist() == [2.5, 1.5]
    assert run["eval_loss"].value.tolist() == [3.5, 2.5]


def test_the_least_of_a_generation_is_no_clock(tmp_path: Path) -> None:
    """Source: `tools.Logbook` of DEAP 1.4."""
    run = read(
        tmp_path, "gen\tnevals\tavg\tmin\tmax\n0\t300\t49.5\t36\t64\n1\t181\t53.5\t42\t66\n2\t170\t57.5\t45\t69\n"
    )
    assert run["min"].value.tolist() == [36, 42, 45]


def test_what_gbm_prints_without_rows_held_out_is_no_evaluation(tmp_path: Path) -> None:
    rows = "".join(f"{at:6d} {1.5 - at / 64:15.4f} {'nan':>15} {0.1:10.4f} {0.01:9.4f}\n" for at in range(1, 9))
    run = read(tmp_path, f"Iter   TrainDeviance   ValidDeviance   StepSize   Improve\n{rows}")
    assert "eval_loss" not in run
    assert any("gbm held out no rows" in note for note in run.notes)


def test_the_norm_of_an_error_is_no_error_rate(tmp_path: Path) -> None:
    block = "***** Iteration #{0} *****\nLoss: {1}\nFeature norm: {0}.5\nError norm: {2}\n\n"
    run = read(tmp_path, "".join(block.format(at, 900.5 - at, 120.5 - at) for at in range(1, 5)))
    assert run["Error norm"].role is None


def test_batches_of_darts_stand_in_their_epoch(tmp_path: Path) -> None:
    """Source: `train.py` and `utils.py` of DARTS."""
    epoch = (
        "01/31 12:00:05 AM epoch {0} lr 2.500000e-02\n"
        "01/31 12:00:10 AM train 000 {1:e} 12.500000 50.000000\n01/31 12:01:10 AM train 050 {2:e} 25.000000 75.000000\n"
        "01/31 12:02:20 AM train_acc 31.250000\n01/31 12:02:25 AM valid 000 1.500000e+00 37.500000 87.500000\n"
        "01/31 12:02:40 AM valid_acc {3:f}\n"
    )
    run = read(tmp_path, "".join(epoch.format(at, 2.5 - at, 2.25 - at, 25 + 25 * at) for at in (0, 1)))
    assert points(run, "loss") == {0: 2.5, 50: 2.25, 100: 1.5, 150: 1.25}
    assert points(run, "eval_accuracy") == {50: 25, 150: 50}


def test_lines_of_edsr_count_batches(tmp_path: Path) -> None:
    """Source: `loss/__init__.py` and `trainer.py` of EDSR-PyTorch 1.2."""
    epoch = (
        "[Epoch {0}]\tLearning rate: 1.00e-4\n[8/16]\t[L1: {1}][VGG: 0.5]\t35.2+12.4s\n"
        "[16/16]\t[L1: {2}][VGG: 0.25]\t33.2+0.4s\n\nEvaluation:\n[Set5 x2]\tPSNR: 3{0}.5 (Best: 32.5 @epoch 2)\n"
    )
    run = read(tmp_path, epoch.format(1, 12.5, 8.5) + epoch.format(2, 5.5, 4.5))
    assert points(run, "L1_loss") == {8: 12.5, 16: 8.5, 24: 5.5, 32: 4.5}
    assert points(run, "eval_psnr") == {16: 31.5, 32: 32.5}


def test_batches_of_east_stand_in_their_epoch(tmp_path: Path) -> None:
    """Source: `train.py` of songdejia/EAST and its children."""
    line = "Epoch is [{}/9], mini-batch is [{}/2], time consumption is 0.5, batch_loss is {}\n"
    run = read(tmp_path, "".join(line.format(at, of, 3 - at - of / 4) for at in (1, 2) for of in (1, 2)))
    assert points(run, "loss") == {1: 1.75, 2: 1.5, 3: 0.75, 4: 0.5}


def test_a_bar_of_srgan_evaluates(tmp_path: Path) -> None:
    """Source: `train.py` of leftthomas/SRGAN."""
    drawn = (
        "[{0}/9] Loss_D: 0.5 Loss_G: 0.25: 100%|██████████| 260/260 [02:20<00:00,  1.85it/s]\n"
        "[converting LR images to SR images] PSNR: 2{0}.5 dB SSIM: 0.{0}: 100%|██████████| 50/50 [00:20<00:00]\n"
    )
    run = read(tmp_path, drawn.format(1) + drawn.format(2))
    assert points(run, "eval_psnr") == {1: 21.5, 2: 22.5}
    assert points(run, "eval_ssim") == {1: 0.1, 2: 0.2}


def test_evaluations_of_open_clip_stand_behind_the_epochs_that_are_over(tmp_path: Path) -> None:
    """Source: `training/train.py` and `training/main.py` of open_clip 2.20."""
    epoch = (
        "2023-01-31,00:01:10 | INFO | Train Epoch: {0} [ 256/1024 (25%)] LR: 0.5 Loss: {1}.5 ({1}.5)\n"
        "2023-01-31,00:02:10 | INFO | Train Epoch: {0} [1024/1024 (100%)] LR: 0.5 Loss: {1}.0 ({1}.5)\n"
        "2023-01-31,00:03:10 | INFO | Eval Epoch: {2} clip_val_loss: {1}.2500\tepoch: {2}.0000\tnum_samples: 64.0000\n"
    )
    run = read(tmp_path, epoch.format(0, 5, 1) + epoch.format(1, 4, 2))
    assert points(run, "loss") == {256: 5.5, 1024: 5, 1280: 4.5, 2048: 4}
    assert points(run, "eval_loss") == {1024: 5.25, 2048: 4.25}


def test_accuracies_of_pycil_are_told_apart(tmp_path: Path) -> None:
    """Source: `models/der.py` of PyCIL."""
    line = (
        "2023-01-31 00:00:{0}0,000 [der.py] => Task 0, Epoch {0}/3 => Loss 1.5, Train_accy {0}5.50, Test_accy {0}0.25\n"
    )
    run = read(tmp_path, "".join(map(line.format, (1, 2, 3))))
    assert points(run, "accuracy") == {1: 15.5, 2: 25.5, 3: 35.5}
    assert points(run, "eval_accuracy") == {1: 10.25, 2: 20.25, 3: 30.25}


def test_shares_of_the_examples_of_ogb_are_accuracies(tmp_path: Path) -> None:
    """Source: `examples/nodeproppred/arxiv/gnn.py` of OGB."""
    line = "Run: 01, Epoch: {0:02d}, Loss: 1.5, Train: {0}5.00%, Valid: {0}2.50% Test: {0}1.00%\n"
    run = read(tmp_path, "".join(map(line.format, (1, 2, 3))))
    assert points(run, "eval_accuracy") == pytest.approx({1: 0.125, 2: 0.225, 3: 0.325})
