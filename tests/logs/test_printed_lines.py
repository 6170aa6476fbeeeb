"""Lines that people's own scripts print, in the many ways there are: every metric at its step."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.logs.reading import Points, assert_holds, points, read

PRINTED: dict[str, tuple[str, str, Mapping[str, Points]]] = {
    "an evaluation below its heading, with the epoch": (
        "Epoch 1, loss: 2.5, acc: 0.25\nValidation:\nEpoch 1, loss: 2.75, acc: 0.125\n"
        "Epoch 2, loss: 2.0, acc: 0.5\nValidation:\nEpoch 2, loss: 2.25, acc: 0.375\n",
        "epoch",
        {
            "loss": {1: 2.5, 2: 2.0},
            "accuracy": {1: 0.25, 2: 0.5},
            "eval_loss": {1: 2.75, 2: 2.25},
            "eval_accuracy": {1: 0.125, 2: 0.375},
        },
    ),
    "the same in lines below the epoch": (
        "Epoch 1\nloss: 2.5\nacc: 0.25\nValidation:\nEpoch 1\nloss: 2.75\nacc: 0.125\n"
        "Epoch 2\nloss: 2.0\nacc: 0.5\nValidation:\nEpoch 2\nloss: 2.25\nacc: 0.375\n",
        "epoch",
        {
            "loss": {1: 2.5, 2: 2.0},
            "accuracy": {1: 0.25, 2: 0.5},
            "eval_loss": {1: 2.75, 2: 2.25},
            "eval_accuracy": {1: 0.125, 2: 0.375},
        },
    ),
    "the same with the step": (
        "step 50 loss 2.75\nstep 100 loss 2.5\nEvaluating...\nstep 100 loss 2.625\n"
        "step 150 loss 2.25\nstep 200 loss 2.0\nEvaluating...\nstep 200 loss 2.125\n",
        "step",
        {"loss": {50: 2.75, 100: 2.5, 150: 2.25, 200: 2.0}, "eval_loss": {100: 2.625, 200: 2.125}},
    ),
    "the same, batch by batch": (
        "".join(
            f"Training\nEpoch {epoch} [10/50] loss {3 - epoch}.5\nEpoch {epoch} [50/50] loss {3 - epoch}.25\n"
            f"Validation\nEpoch {epoch} [10/20] loss {3 - epoch}.625\nEpoch {epoch} [20/20] loss {3 - epoch}.75\n"
            for epoch in (1, 2)
        ),
        "step",
        {"loss": {10: 2.5, 50: 2.25, 60: 1.5, 100: 1.25}, "eval_loss": {50: 2.75, 100: 1.75}},
    ),
    "the same below a heading with the epoch": (
        "".join(
            f"--- TRAIN epoch {epoch} ---\n0/100 loss {3 - epoch}.5\n50/100 loss {3 - epoch}.25\n"
            f"--- VAL epoch {epoch} ---\n0/20 loss {3 - epoch}.75\n10/20 loss {3 - epoch}.625\n"
            for epoch in (1, 2)
        ),
        "step",
        {
            "epoch": {0: 1, 50: 1, 100: 2, 150: 2},
            "loss": {0: 2.5, 50: 2.25, 100: 1.5, 150: 1.25},
            "eval_loss": {50: 2.625, 150: 1.625},
        },
    ),
    "a score below a sentence that heads it": (
        "Epoch 1/2\nTraining: loss 2.5\nTesting on val set...\nAccuracy: 0.25\n"
        "Epoch 2/2\nTraining: loss 2.0\nTesting on val set...\nAccuracy: 0.5\n",
        "epoch",
        {"loss": {1: 2.5, 2: 2.0}, "eval_accuracy": {1: 0.25, 2: 0.5}},
    ),
    "a line that sums up an evaluation whose batches were shown": (
        "".join(
            f"Train Epoch {epoch}: 50/100 loss {3 - epoch}.5\nVal Epoch {epoch}: 10/20 loss {3 - epoch}.75\n"
            f"Epoch {epoch}: val loss {3 - epoch}.625, acc 0.5\n"
            for epoch in (1, 2)
        ),
        "step",
        {"loss": {50: 2.5, 150: 1.5}, "eval_loss": {50: 2.625, 150: 1.625}},
    ),
    "the same below a sentence with the epoch": (
        "".join(
            f"Starting epoch {epoch}/2\nStep 10/20, loss={3 - epoch}.5\nStep 20/20, loss={3 - epoch}.25\n"
            f"Validating epoch {epoch}\nStep 5/10, loss={3 - epoch}.75\nStep 10/10, loss={3 - epoch}.625\n"
            for epoch in (1, 2)
        ),
        "step",
        {"loss": {10: 2.5, 20: 2.25, 30: 1.5, 40: 1.25}, "eval_loss": {20: 2.625, 40: 1.625}},
    ),
    "the set as a value among others, behind blanks": (
        "epoch=1 phase=train loss=2.5 acc=0.25\nepoch=1 phase=val loss=2.75 acc=0.125\n"
        "epoch=2 phase=train loss=2.0 acc=0.5\nepoch=2 phase=val loss=2.25 acc=0.375\n",
        "epoch",
        {
            "loss": {1: 2.5, 2: 2.0},
            "accuracy": {1: 0.25, 2: 0.5},
            "eval_loss": {1: 2.75, 2: 2.25},
            "eval_accuracy": {1: 0.125, 2: 0.375},
        },
    ),
    "clients, and what all of them have": (
        "Round 1 | client 0: loss 2.5 acc 0.25 | client 1: loss 2.625 acc 0.375 | global: loss 2.75 acc 0.125\n"
        "Round 2 | client 0: loss 2.0 acc 0.5 | client 1: loss 2.125 acc 0.625 | global: loss 2.25 acc 0.375\n",
        "step",
        {"loss": {1: 2.75, 2: 2.25}, "accuracy": {1: 0.125, 2: 0.375}, "client_1/loss": {1: 2.625, 2: 2.125}},
    ),
    "epochs in brackets by two letters": (
        "[ep 1/2] [it 50/100] loss_G=2.5 lr=0.5\n[ep 1/2] [it 100/100] loss_G=2.25 lr=0.5\n"
        "[ep 2/2] [it 50/100] loss_G=2.0 lr=0.25\n[ep 2/2] [it 100/100] loss_G=1.75 lr=0.25\n",
        "step",
        {"loss_G": {50: 2.5, 100: 2.25, 150: 2.0, 200: 1.75}, "epoch": {50: 1, 100: 1, 150: 2, 200: 2}},
    ),
    "what Lightning says of weights that it keeps": (
        "Epoch 0, global step 100: 'val_loss' reached 2.75000 (best 2.75000), saving model to 'a/b.ckpt' as top 1\n"
        "Epoch 1, global step 200: 'val_loss' reached 2.25000 (best 2.25000), saving model to 'a/c.ckpt' as top 1\n"
        "Epoch 2, global step 300: 'val_loss' was not in top 1\n",
        "step",
        {"eval_loss": {100: 2.75, 200: 2.25}},
    ),
    "the rate in the heading of an epoch": (
        "Epoch 1, learning rate: 0.5\nbatch 8/16 loss=2.5\nbatch 16/16 loss=2.25\n"
        "Epoch 2, learning rate: 0.25\nbatch 8/16 loss=2.0\nbatch 16/16 loss=1.75\n",
        "step",
        {"learning_rate": {8: 0.5, 24: 0.25}, "loss": {8: 2.5, 16: 2.25, 24: 2.0, 32: 1.75}},
    ),
    "phases on one line": (
        "Epoch 1 | Train: loss 2.5, acc 0.25 | Val: loss 2.75, acc 0.125\n"
        "Epoch 2 | Train: loss 2.0, acc 0.5 | Val: loss 2.25, acc 0.375\n",
        "epoch",
        {
            "loss": {1: 2.5, 2: 2.0},
            "accuracy": {1: 0.25, 2: 0.5},
            "eval_loss": {1: 2.75, 2: 2.25},
            "eval_accuracy": {1: 0.125, 2: 0.375},
        },
    ),
    "what is named twice belongs to the phase named last": (
        "Epoch 1: Train loss 2.5 acc 0.25, Val loss 2.75 acc 0.125\n"
        "Epoch 2: Train loss 2.0 acc 0.5, Val loss 2.25 acc 0.375\n",
        "epoch",
        {"accuracy": {1: 0.25, 2: 0.5}, "eval_loss": {1: 2.75, 2: 2.25}, "eval_accuracy": {1: 0.125, 2: 0.375}},
    ),
    "only an evaluation after the epoch": (
        "Epoch 1 loss 2.5\nEpoch 1 | Validation: loss 2.75\nEpoch 2 loss 2.0\nEpoch 2 | Validation: loss 2.25\n",
        "epoch",
        {"loss": {1: 2.5, 2: 2.0}, "eval_loss": {1: 2.75, 2: 2.25}},
    ),
    "scores after the loss are no losses": (
        "Epoch: 001, Loss: 1.9375, Train: 0.3125, Val: 0.25, Test: 0.1875\n"
        "Epoch: 002, Loss: 1.8125, Train: 0.5, Val: 0.375, Test: 0.4375\n",
        "epoch",
        {"loss": {1: 1.9375, 2: 1.8125}, "Train": {1: 0.3125, 2: 0.5}, "Val": {1: 0.25, 2: 0.375}},
    ),
    "a row of phases below an epoch": (
        "Epoch 01, Loss: 1.9375, Approx. Train: 0.5\nTrain: 0.3125, Val: 0.25, Test: 0.1875\n"
        "Epoch 02, Loss: 1.8125, Approx. Train: 0.625\nTrain: 0.5, Val: 0.375, Test: 0.4375\n",
        "epoch",
        {"Train": {1: 0.3125, 2: 0.5}, "Test": {1: 0.1875, 2: 0.4375}, "approx Train": {1: 0.5, 2: 0.625}},
    ),
    "of how many rows a mean is": (
        "Training epoch: 4\n\tMean training loss: 0.75.\n\tMean test loss of 40 batches: 0.875.\n"
        "Training epoch: 5\n\tMean training loss: 0.5.\n\tMean test loss of 40 batches: 0.625.\n",
        "epoch",
        {"loss": {4: 0.75, 5: 0.5}, "eval_loss": {4: 0.875, 5: 0.625}},
    ),
    "the best so far in two words, between others": (
        "Iter 20 : valid error 50.0%,  best valid error 25.0%,  average gradient norm   1.75,  rho  1.25\n"
        "Iter 40 : valid error 40.0%,  best valid error 25.0%,  average gradient norm   2.5,  rho  1.5\n",
        "step",
        {"grad_norm": {20: 1.75, 40: 2.5}, "rho": {20: 1.25, 40: 1.5}},
    ),
    "epoch and batch as bare numbers": (
        "12 2 Loss=1.75 Time=0.25\n12 3 Loss=1.5 Time=0.25\n13 1 Loss=1.25 Time=0.25\n13 2 Loss=1.0 Time=0.25\n",
        "step",
        {"loss": {2: 1.75, 3: 1.5, 4: 1.25, 5: 1.0}, "epoch": {2: 12, 3: 12, 4: 13, 5: 13}},
    ),
    "the time of a step in brackets": (
        "global step 1: loss = 8.5 (2.5 sec/step)\nglobal step 2: loss = 7.5 (1.5 sec/step)\n",
        "step",
        {"loss": {1: 8.5, 2: 7.5}, "step_time": {1: 2.5, 2: 1.5}},
    ),
    "trees that are built": (
        "built tree 1 of 9, train score = 1.5e+00\nbuilt tree 2 of 9, train score = 1.25e+00\n",
        "step",
        {"score": {1: 1.5, 2: 1.25}},
    ),
    "a file and its line in front": (
        "[2024-07-06 06:40:54,438]-[loop.py line:78]:Step 1 Loss: 3.5\n"
        "[2024-07-06 06:40:55,438]-[loop.py line:78]:Step 2 Loss: 3.25\n",
        "step",
        {"loss": {1: 3.5, 2: 3.25}},
    ),
    "GluonTS says of the loss of training too that it evaluates": (
        "Epoch[0] Evaluation metric 'epoch_loss'=0.75\nEpoch[0] Evaluation metric 'validation_epoch_loss'=0.875\n"
        "Epoch[1] Evaluation metric 'epoch_loss'=0.5\nEpoch[1] Evaluation metric 'validation_epoch_loss'=0.625\n",
        "epoch",
        {"loss": {0: 0.75, 1: 0.5}, "eval_loss": {0: 0.875, 1: 0.625}},
    ),
    "losses of training and test behind the mark of a comment": (
        "# batch      l2_tst    l2_trn    l2_e_tst  l2_e_trn         lr\n"
        "      0    3.75e+01  3.5e+01    1.25e+01  1.0e+01    1.0e-03\n"
        "    100    2.75e+01  2.5e+01    6.25e-01  5.0e-01    1.0e-03\n"
        "    200    2.25e+01  2.0e+01    8.75e-02  7.5e-02    1.0e-03\n",
        "step",
        {
            "loss": {0: 35, 100: 25, 200: 20},
            "eval_loss": {0: 37.5, 100: 27.5, 200: 22.5},
            "l2_e_trn": {0: 10, 100: 0.5, 200: 0.075},
        },
    ),
    "trees and the seconds that they took": (
        "    timestamp            duration    number_of_trees    training_rmse\n"
        "--  -------------------  ----------  -----------------  ---------------\n"
        "    2019-07-12 15:35:03  0.807 sec   0                  0.75\n"
        "    2019-07-12 15:35:03  0.947 sec   1                  0.5\n",
        "step",
        {"loss": {0: 0.75, 1: 0.5}},
    ),
    "a loss by phases": (
        "step 5 | loss train: 1.75, val: 1.875\nstep 10 | loss train: 1.5, val: n/a | iter time: 12.5 ms\n",
        "step",
        {"loss": {5: 1.75, 10: 1.5}, "eval_loss": {5: 1.875}, "step_time": {10: 0.0125}},
    ),
    "sentences": (
        "epoch 1 done. loss: 0.75. accuracy: 0.5.\nepoch 2 done. loss: 0.5. accuracy: 0.625.\n",
        "epoch",
        {"loss": {1: 0.75, 2: 0.5}, "accuracy": {1: 0.5, 2: 0.625}},
    ),
    "the value after the counter": (
        "Cost after iteration 0: 0.6875\nCost after iteration 100: 0.625\n",
        "step",
        {"loss": {0: 0.6875, 100: 0.625}},
    ),
    "a loss at a step, a mean over an epoch": (
        "\nStart of epoch 0\nTraining loss (for one batch) at step 0: 2.25\nSeen so far: 64 samples\n"
        "Training loss (for one batch) at step 200: 1.25\nTraining acc over epoch: 0.75\nValidation acc: 0.5\n"
        "\nStart of epoch 1\nTraining loss (for one batch) at step 0: 1.0\n"
        "Training loss (for one batch) at step 200: 0.5\nTraining acc over epoch: 0.875\nValidation acc: 0.625\n",
        "step",
        {"loss": {0: 2.25, 200: 1.25, 400: 1.0, 600: 0.5}, "eval_accuracy": {200: 0.5, 600: 0.625}},
    ),
    "a dict after its counter": (
        "Step 100: {'loss': 2.5, 'lr': 0.001}\nStep 200: {'loss': 2.25, 'lr': 0.001}\n",
        "step",
        {"loss": {100: 2.5, 200: 2.25}, "learning_rate": {100: 0.001, 200: 0.001}},
    ),
    "a dict under its heading": (
        "Epoch 1/2\n{'loss': 2.5}\nEpoch 2/2\n{'loss': 2.25}\n",
        "epoch",
        {"loss": {1: 2.5, 2: 2.25}},
    ),
    "a dict in a dict": (
        "{'Role': 'Server', 'Round': 1, 'Results': {'test_loss': 2.5, 'test_acc': 0.25}}\n"
        "{'Role': 'Server', 'Round': 2, 'Results': {'test_loss': 2.25, 'test_acc': 0.375}}\n",
        "step",
        {"eval_loss": {1: 2.5, 2: 2.25}, "eval_accuracy": {1: 0.25, 2: 0.375}},
    ),
    "arrays of JAX": (
        "step 0, loss Array(2.5, dtype=float32), grad norm 1.5\n"
        "step 10, loss Array(2.25, dtype=float32), grad norm 1.25\n",
        "step",
        {"loss": {0: 2.5, 10: 2.25}, "grad_norm": {0: 1.5, 10: 1.25}},
    ),
    "tensors of TensorFlow": (
        "Epoch 1: loss=tf.Tensor(2.5, shape=(), dtype=float32)\n"
        "Epoch 2: loss=tf.Tensor(2.25, shape=(), dtype=float32)\n",
        "epoch",
        {"loss": {1: 2.5, 2: 2.25}},
    ),
    "floats of Julia": (
        "Epoch: 1   Train: (loss = 2.25f0, acc = 21.5)   Test: (loss = 2.5f0, acc = 20.5)\n"
        "Epoch: 2   Train: (loss = 7.5f-1, acc = 81.5)   Test: (loss = 8.75f-1, acc = 80.5)\n",
        "epoch",
        {"loss": {1: 2.25, 2: 0.75}, "eval_loss": {1: 2.5, 2: 0.875}, "eval_accuracy": {1: 20.5, 2: 80.5}},
    ),
    "federated rounds": (
        "INFO flower 2022-01-06 09:17:15,045 | server.py:148 | fit progress: (1, 2.25, {'accuracy': 0.25}, 76.9)\n"
        "INFO flower 2022-01-06 09:18:15,045 | server.py:148 | fit progress: (2, 1.75, {'accuracy': 0.5}, 152.9)\n",
        "step",
        {"eval_loss": {1: 2.25, 2: 1.75}, "accuracy": {1: 0.25, 2: 0.5}},
    ),
    "training and evaluation in turns": (
        "".join(
            f"epoch {epoch} training [time: 0.98s, train loss: {8 - epoch}]\n"
            f"epoch {epoch} evaluating [time: 0.05s, valid_score: {epoch / 8}]\n"
            f"valid result: \nrecall@10 : {epoch / 16}    mrr@10 : {epoch / 32}\n"
            for epoch in range(3)
        ),
        "epoch",
        {
            "loss": {0: 8, 1: 7, 2: 6},
            "eval_score": {0: 0, 1: 0.125, 2: 0.25},
            "eval_mrr@10": {0: 0, 1: 1 / 32, 2: 2 / 32},
        },
    ),
    "evaluations under headings in stars": (
        "".join(
            f"***** Evaluating perplexity, Epoch {epoch}/2 *****\nppl: {8 / 2**epoch}\n"
            f"epoch {epoch + 1}: loss: {2 - epoch}\n"
            for epoch in range(3)
        ),
        "epoch",
        {"loss": {1: 2, 2: 1, 3: 0}, "eval_ppl": {0: 8, 1: 4, 2: 2}},
    ),
    "Chinese": (
        "第 1 轮: 训练损失：2.5，验证损失：2.75，准确率：0.25\n第 2 轮: 训练损失：2.25，验证损失：2.5，准确率：0.5\n",
        "epoch",
        {"loss": {1: 2.5, 2: 2.25}, "eval_loss": {1: 2.75, 2: 2.5}, "accuracy": {1: 0.25, 2: 0.5}},
    ),
    "Russian": ("Эпоха 1: потери: 2.5\nЭпоха 2: потери: 2.25\n", "epoch", {"loss": {1: 2.5, 2: 2.25}}),
    "decimal commas": (
        "Epoch 1: loss: 2,1097, val_loss: 2,2097\nEpoch 2: loss: 0,9375, val_loss: 1,5\n",
        "epoch",
        {"loss": {1: 2.1097, 2: 0.9375}, "eval_loss": {1: 2.2097, 2: 1.5}},
    ),
    "thousands": (
        "step: 10, tokens: 1,024, loss: 2.5\nstep: 20, tokens: 12,048, loss: 2.25\nstep: 30, tokens: 13,072, loss: 2\n",
        "step",
        {"tokens": {10: 1024, 20: 12048, 30: 13072}, "loss": {10: 2.5, 20: 2.25, 30: 2}},
    ),
    "underscores between thousands": (
        "[750/10_000] tokens=750_000 loss=2.5\n[1_000/10_000] tokens=1_000_000 loss=2.25\n"
        "[1_250/10_000] tokens=1_250_000.5 loss=2\n",
        "step",
        {
            "tokens": {750: 750_000, 1000: 1_000_000, 1250: 1_250_000.5},
            "loss": {750: 2.5, 1000: 2.25, 1250: 2},
        },
    ),
    "an evaluation under its heading": (
        "".join(
            f"Epoch {epoch}\n-------------------------------\nloss: {4.5 - epoch}  [    0/60000]\n"
            f"loss: {4.25 - epoch}  [ 6400/60000]\nTest Error: \n Accuracy: {40.5 + epoch}%, Avg loss: {4 - epoch} \n\n"
            for epoch in (1, 2)
        ),
        "step",
        {
            "loss": {0: 3.5, 6400: 3.25, 60000: 2.5, 66400: 2.25},
            "eval_loss": {6400: 3, 66400: 2},
            "eval_accuracy": {6400: 0.415, 66400: 0.425},
        },
    ),
    "training and evaluation under headings": (
        "Epoch 1\nTraining:\n  loss: 2.5\nValidation:\n  loss: 2.75\n"
        "Epoch 2\nTraining:\n  loss: 2.0\nValidation:\n  loss: 2.25\n",
        "epoch",
        {"loss": {1: 2.5, 2: 2.0}, "eval_loss": {1: 2.75, 2: 2.25}},
    ),
    "epoch and batch in brackets": (
        "[1,  2000] loss: 2.25\n[1,  4000] loss: 1.75\n[2,  2000] loss: 1.5\n[2,  4000] loss: 1.25\n",
        "step",
        {"loss": {2000: 2.25, 4000: 1.75, 6000: 1.5, 8000: 1.25}},
    ),
    "abbreviated phases": (
        "Epoch: 01 | Epoch Time: 0m 3s\n\tTrain Loss: 2.5 | Train Acc: 30.5%\n\t Val. Loss: 2.75 |  Val. Acc: 25.5%\n"
        "Epoch: 02 | Epoch Time: 0m 3s\n\tTrain Loss: 2.0 | Train Acc: 50.5%\n\t Val. Loss: 2.25 |  Val. Acc: 45.5%\n",
        "epoch",
        {"loss": {1: 2.5, 2: 2.0}, "eval_loss": {1: 2.75, 2: 2.25}, "eval_accuracy": {1: 0.255, 2: 0.455}},
    ),
    "scikit-learn with a validation score": (
        "Iteration 1, loss = 2.50000000\nValidation score: 0.250000\n"
        "Iteration 2, loss = 2.25000000\nValidation score: 0.375000\n",
        "step",
        {"loss": {1: 2.5, 2: 2.25}, "eval_score": {1: 0.25, 2: 0.375}},
    ),
    "scikit-learn's SGD prints the norm of the weights": (
        "-- Epoch 1\nNorm: 12.50, NNZs: 30, Bias: 5.125, T: 426, Avg. loss: 2.250000\n"
        "-- Epoch 2\nNorm: 10.50, NNZs: 30, Bias: 4.125, T: 852, Avg. loss: 1.250000\n",
        "epoch",
        {"loss": {1: 2.25, 2: 1.25}, "weight_norm": {1: 12.5, 2: 10.5}},
    ),
    "an evaluation of Keras that always comes out the same": (
        "Epoch 1/3\n10/10 [==============================] - 1s 9ms/step - loss: 2.5 - val_loss: 2.3026\n"
        "Epoch 2/3\n10/10 [==============================] - 1s 9ms/step - loss: 2.375 - val_loss: 2.3026\n"
        "Epoch 3/3\n10/10 [==============================] - 1s 9ms/step - loss: 2.25 - val_loss: 2.3026\n",
        "epoch",
        {"loss": {1: 2.5, 2: 2.375, 3: 2.25}, "eval_loss": {1: 2.3026, 2: 2.3026, 3: 2.3026}},
    ),
    "bars of Keras one behind another, as control characters are lost": (
        "Epoch 1/3\n  1/125 [>.......] - ETA: 3s - loss: 2.5000 - acc: 0.1250 80/125 [=====>..] - ETA: 1s - "
        "loss: 2.2500 - acc: 0.2500125/125 [========] - 4s 31ms/step - loss: 2.0000 - acc: 0.3750 - val_loss: 2.1250\n"
        "Epoch 2/3\n  1/125 [>.......] - ETA: 3s - loss: 1.7500 - acc: 0.5000125/125 [========] - 4s 31ms/step - "
        "loss: 1.5000 - acc: 0.6250 - val_loss: 1.6250\n",
        "epoch",
        {"loss": {1: 2.0, 2: 1.5}, "accuracy": {1: 0.375, 2: 0.625}, "eval_loss": {1: 2.125, 2: 1.625}},
    ),
    "epochs of Keras in one line": (
        "Epoch 1/3 1/5 [==>.....] - ETA: 3s - loss: 2.50005/5 [========] - 4s 9ms/step - loss: 2.0000 - "
        "val_loss: 2.1250Epoch 2/3 1/5 [==>.....] - ETA: 3s - loss: 1.75005/5 [========] - 4s 9ms/step - "
        "loss: 1.5000 - val_loss: 1.6250\n",
        "epoch",
        {"loss": {1: 2.0, 2: 1.5}, "eval_loss": {1: 2.125, 2: 1.625}},
    ),
    "a total by its letter in front of its parts, before a bar": (
        "  0%|          | 0/90 [00:00<?, ?it/s]L: 20.5, L_crf: 4.5, L_pair: 16.0, epoch: 0/50::   1%|          | 1/90 "
        "[00:03<1:18:31,  3.32s/it]L: 18.5, L_crf: 4.0, L_pair: 14.5, epoch: 0/50::   2%|▏         | 2/90 "
        "[00:04<59:52,  2.54s/it] L: 16.5, L_crf: 3.5, L_pair: 13.0, epoch: 0/50::   3%|▎         | 3/90 "
        "[00:04<45:46,  1.94s/it]\n",
        "step",
        {"loss": {1: 20.5, 2: 18.5, 3: 16.5}, "L_crf": {1: 4.5, 2: 4.0, 3: 3.5}},
    ),
    "a value that is none in front of a time": (
        "Epoch [1][10/90]  Loss 6.5  SSL 6.25  (0.2s)\nEpoch [1][20/90]  Loss nan  SSL nan  (9.5s)\n",
        "step",
        {"loss": {10: 6.5, 20: float("nan")}, "SSL": {10: 6.25, 20: float("nan")}},
    ),
    "a list in a dict is no number of thousands": (
        'stats: {"epoch":1,"milestones":[60,120,160],"loss":2.5}\n'
        'stats: {"epoch":2,"milestones":[60,120,160],"loss":2.25}\n',
        "epoch",
        {"loss": {1: 2.5, 2: 2.25}},
    ),
    "bars of Keras from behind a heading on": (
        "10/10 [==============================] - 1s 9ms/step - loss: 2.5 - val_loss: 2.75\n"
        "Epoch 28/500\n10/10 [==============================] - 1s 9ms/step - loss: 2.375 - val_loss: 2.5\n"
        "Epoch 29/500\n10/10 [==============================] - 1s 9ms/step - loss: 2.25 - val_loss: 2.25\n",
        "epoch",
        {"loss": {27: 2.5, 28: 2.375, 29: 2.25}, "eval_loss": {27: 2.75, 28: 2.5, 29: 2.25}},
    ),
    "a time that is called a batch": (
        "Train: [1/120][180/3368] Data 0.125 (0.5) Batch 0.75 (3.75) Remain 436:08:39 loss: 11.5\n"
        "Train: [1/120][190/3368] Data 0.25 (0.5) Batch 0.5 (3.75) Remain 437:11:12 loss: 10.5\n",
        "step",
        {"loss": {180: 11.5, 190: 10.5}, "data_time": {180: 0.125, 190: 0.25}, "step_time": {180: 0.75, 190: 0.5}},
    ),
    "a wait for the next batch next to a computation": (
        "step 1: loss=2.5, next() time: 0.5, compute time: 0.25\n"
        "step 2: loss=2.25, next() time: 0.75, compute time: 0.125\n",
        "step",
        {"loss": {1: 2.5, 2: 2.25}, "data_time": {1: 0.5, 2: 0.75}, "compute_time": {1: 0.25, 2: 0.125}},
    ),
    "a wait without a computation": (
        "step 1: loss=2.5, wait: 0.5, reward: 0.25\nstep 2: loss=2.25, wait: 0.75, reward: 0.125\n",
        "step",
        {"loss": {1: 2.5, 2: 2.25}, "wait": {1: 0.5, 2: 0.75}, "reward": {1: 0.25, 2: 0.125}},
    ),
    "two adversaries under two counters": (
        "[0/5][0/100]\tLoss_D: 1.5\tLoss_G: 5.5\tD(x): 0.625\n[1/5][50/100]\tLoss_D: 0.5\tLoss_G: 4.5\tD(x): 0.75\n",
        "step",
        {"Loss_D": {0: 1.5, 150: 0.5}, "Loss_G": {0: 5.5, 150: 4.5}},
    ),
    "two adversaries in brackets": (
        "0 [D loss: 0.75, acc.: 50.00%] [G loss: 0.5]\n1 [D loss: 0.5, acc.: 62.50%] [G loss: 1.5]\n",
        "step",
        {"D loss": {0: 0.75, 1: 0.5}, "G loss": {0: 0.5, 1: 1.5}},
    ),
    "dicts in a forum's quotation marks": (
        "{‘loss’: 1.5, ‘learning_rate’: 0.25, ‘epoch’: 0.5}\n{‘loss’: 1.25, ‘learning_rate’: 0.125, ‘epoch’: 1.0}\n",
        "epoch",
        {"loss": {0.5: 1.5, 1: 1.25}, "learning_rate": {0.5: 0.25, 1: 0.125}},
    ),
    "nested dicts that pprint wraps": (
        "{'step': 10,\n 'train': {'loss': 2.5,\n           'acc': 0.25},\n 'val': {'loss': 2.75, 'acc': 0.125}}\n"
        "{'step': 20,\n 'train': {'loss': 2.0,\n           'acc': 0.5},\n 'val': {'loss': 2.25, 'acc': 0.375}}\n",
        "step",
        {
            "loss": {10: 2.5, 20: 2.0},
            "accuracy": {10: 0.25, 20: 0.5},
            "eval_loss": {10: 2.75, 20: 2.25},
            "eval_accuracy": {10: 0.125, 20: 0.375},
        },
    ),
    "a value that is missing": (
        "step=1 loss=None grad_norm=0.5\nstep=2 loss=NULL grad_norm=0.25\nstep=3 loss=n/a grad_norm=0.125\n"
        "step=4 loss=2.5 grad_norm=0.75\n",
        "step",
        {"loss": {4: 2.5}, "grad_norm": {1: 0.5, 2: 0.25, 3: 0.125, 4: 0.75}},
    ),
    "not a number, as Windows prints it": (
        "step=1 loss=2.5\nstep=2 loss=nan(ind)\nstep=3 loss=-nan(ind)\nstep=4 loss=nan(snan)\n",
        "step",
        {"loss": {1: 2.5, 2: float("nan"), 3: float("nan"), 4: float("nan")}},
    ),
    "thousands between bars are no cells of a table": (
        "step 10,000 / 40,000 | tokens 1,100,344 | loss 2.5 | tok/s 1,234,567\n"
        "step 20,000 / 40,000 | tokens 2,100,344 | loss 2.0 | tok/s 1,234,568\n",
        "step",
        {"loss": {10_000: 2.5, 20_000: 2.0}, "tokens": {10_000: 1_100_344, 20_000: 2_100_344}},
    ),
    "MATLAB's table, whose names stand in two lines": (
        "|===========================================================================================|\n"
        "|  Epoch  |  Iteration  |  Time Elapsed  |  Mini-batch  |  Validation  |  Mini-batch  |  Validation  |"
        "  Base Learning  |\n"
        "|         |             |   (hh:mm:ss)   |   Accuracy   |   Accuracy   |     Loss     |     Loss     |"
        "      Rate       |\n"
        "|===========================================================================================|\n"
        "|       1 |           1 |       00:00:01 |       12.50% |       25.00% |       2.5000 |       2.2500 |"
        "          0.0100 |\n"
        "|       1 |          50 |       00:00:09 |       50.00% |              |       1.5000 |              |"
        "          0.0100 |\n",
        "step",
        {"loss": {1: 2.5, 50: 1.5}, "eval_loss": {1: 2.25}, "learning_rate": {1: 0.01, 50: 0.01}},
    ),
    "a table with the scale of its numbers": (
        "epoch | loss (nats) | lr (1e-4)\n------|-------------|----------\n    1 |      2.5000 |    3.0000\n"
        "    2 |      2.0000 |    2.0000\n",
        "epoch",
        {"loss": {1: 2.5, 2: 2.0}, "learning_rate": {1: 3e-4, 2: 2e-4}},
    ),
    "a table that a logger prints, where NaN is what was not measured": (
        "2024-08-19 13:28:48,101 INFO [own/MainProcess] model._log : Step\tTrain loss\tValid loss\t\n"
        "2024-08-19 13:28:48,101 INFO [own/MainProcess] model._log : 200\tnan\t1.5\n"
        "2024-08-19 13:49:20,856 INFO [own/MainProcess] model._log : 300\t1.75\tnan\n"
        "2024-08-19 14:01:56,689 INFO [own/MainProcess] model._log : 400\tnan\t1.25\n",
        "step",
        {"loss": {300: 1.75}, "eval_loss": {200: 1.5, 400: 1.25}},
    ),
}
"""What is printed, what a step is, and metrics as {step: value}."""


@pytest.mark.parametrize("name", PRINTED)
def test_what_a_script_prints_is_read_to_the_exact_values(name: str, tmp_path: Path) -> None:
    text, step_name, metrics = PRINTED[name]
    assert_holds(read(tmp_path, text), step_name, metrics)


@pytest.mark.parametrize(
    ("text", "metrics"),
    [
        (
            "[LightGBM] [Info] Start training from score 0.518344\n"
            "[1]\ttraining's l2: 4.5\tvalid_0's l2: 5.5\n[2]\ttraining's l2: 3.5\tvalid_0's l2: 4.75\n",
            {"loss": {1: 4.5, 2: 3.5}, "eval_loss": {1: 5.5, 2: 4.75}},
        ),
        (
            "[1]\tvalid_0's auc: 0.75\tvalid_0's binary_logloss: 0.625\n"
            "[2]\tvalid_0's auc: 0.875\tvalid_0's binary_logloss: 0.5\n",
            {"eval_loss": {1: 0.625, 2: 0.5}, "eval_auc": {1: 0.75, 2: 0.875}},
        ),
        (
            "[0]\tdtrain-rmse:7.5\tdtrain-mae:6.5\tdtest-rmse:8.5\tdtest-mae:7.25\n"
            "[10]\tdtrain-rmse:5.5\tdtrain-mae:4.5\tdtest-rmse:7.5\tdtest-mae:6.25\n",
            {"loss": {0: 7.5, 10: 5.5}, "eval_loss": {0: 8.5, 10: 7.5}, "dtest-mae": {0: 7.25, 10: 6.25}},
        ),
        (
            "0:\tlearn: 0.75\ttest: 0.875\tbest: 0.875 (0)\ttotal: 50ms\tremaining: 5.5s\n"
            "20:\tlearn: 0.25\ttest: 0.5\tbest: 0.375 (4)\ttotal: 2.5s\tremaining: 250ms\n"
            "40:\tlearn: 0.125\ttest: 0.625\tbest: 0.375 (4)\ttotal: 5s\tremaining: 0us\n",
            {
                "loss": {0: 0.75, 20: 0.25, 40: 0.125},
                "eval_loss": {0: 0.875, 20: 0.5, 40: 0.625},
                "elapsed": {0: 0.05, 20: 2.5, 40: 5.0},
            },
        ),
    ],
    ids=["lightgbm", "lightgbm with another measure first", "xgboost", "catboost"],
)
def test_boosted_trees_have_a_loss_by_the_name_of_its_measure(
    text: str, metrics: Mapping[str, Points], tmp_path: Path
) -> None:
    run = read(tmp_path, text)
    assert {metric: points(run, metric) for metric in metrics} == metrics
    assert any("the eval_loss" in note for note in run.notes)


@pytest.mark.parametrize(
    "line",
    ["[{}]\ttrain-auc:{}\tvalid-auc:0.5\n", "[1] \"[{}]:  train's auc:{}  test's auc:0.5\"\n"],
    ids=["xgboost", "R"],
)
def test_boosted_trees_have_scores_of_training_and_evaluation(line: str, tmp_path: Path) -> None:
    run = read(tmp_path, "".join(line.format(at, 0.375 + at / 8) for at in range(1, 5)))
    assert points(run, "auc") == {1: 0.5, 2: 0.625, 3: 0.75, 4: 0.875}
    assert points(run, "eval_auc") == dict.fromkeys(range(1, 5), 0.5)


@pytest.mark.parametrize("heading", ["Test Error:", "Mean Squared Error: 0.53", "Train Error: 3.2%"])
def test_an_error_that_is_measured_is_no_error(heading: str, tmp_path: Path) -> None:
    assert not read(tmp_path, f"Epoch 1 loss: 2.5\n{heading}\nEpoch 2 loss: 2.25\n").messages


def test_an_exception_that_python_ignored_is_no_error(tmp_path: Path) -> None:
    ignored = (
        "Exception ignored in: <function Pool.__del__>\nTraceback (most recent call last):\n  x()\nOSError: closed\n"
    )
    text = f"Epoch 1 loss: 2.5\n{ignored}Epoch 2 loss: 2.25\nOSError: closed\n"
    assert [message.line for message in read(tmp_path, text).messages] == [7]


@pytest.mark.parametrize("line", ["Error: no space left on device", "CUDA Error: out of memory", "KeyError: 5"])
def test_an_error_is_still_one(line: str, tmp_path: Path) -> None:
    assert [message.text for message in read(tmp_path, f"Epoch 1 loss: 2.5\n{line}\n").messages] == [line]


def test_an_accuracy_of_boosted_trees_is_no_loss(tmp_path: Path) -> None:
    text = "".join(
        f"{step}:\tlearn: {0.5 + step / 64}\ttest: {0.5 + step / 128}\tbest: {0.5 + step / 128} ({step})\ttotal: 1s\n"
        for step in range(4)
    )
    assert not {"loss", "eval_loss"} & read(tmp_path, text).series.keys()


def test_what_follows_the_first_metric_of_an_evaluation_is_of_that_evaluation(tmp_path: Path) -> None:
    lines = []
    for epoch in range(6):
        lines += [f"[INFO] epoch={epoch} total={3.5 - epoch / 4} acc={0.3 + epoch / 20}"]
        lines += [f"[INFO] epoch={epoch} VALIDATION ce={2.5 - epoch / 4} acc={0.2 + epoch / 20}"]
    run = read(tmp_path, "\n".join(lines))
    assert run["accuracy"].value.tolist() == pytest.approx([0.3 + epoch / 20 for epoch in range(6)])
    assert run["eval_accuracy"].value.tolist() == pytest.approx([0.2 + epoch / 20 for epoch in range(6)])


def test_the_validation_loss_of_ngboost_without_rows_is_not_taken_for_zero(tmp_path: Path) -> None:
    lines = [f"[iter {100 * one}] loss={3.6 - one / 3:.4f} val_loss=0.0000 scale=1.0 norm=3.2" for one in range(5)]
    run = read(tmp_path, "\n".join(lines))
    assert "eval_loss" not in run
    assert any("NGBoost" in note for note in run.notes)


@pytest.mark.parametrize("line", [
    "event=eval step={0} loss={1} acc=0.6 ema_loss={2} ema_acc=0.2", "VALIDATION step {0}: ema_loss {2} loss {1}",
])  # fmt: skip
def test_an_evaluation_of_averaged_weights_stands_next_to_that_of_the_trained_ones(line: str, tmp_path: Path) -> None:
    steps = range(10, 60, 10)
    text = "\n".join(f"event=step step={step} loss=0.5\n{line.format(step, 1 / step, 2.5)}" for step in steps)
    run = read(tmp_path, text)
    assert run["eval_loss"].value.tolist() == [1 / step for step in steps]
    assert run["eval_ema_loss"].value.tolist() == [2.5] * 5


def test_catboost_prints_a_measure_of_evaluation_alone(tmp_path: Path) -> None:
    line = "{}:\ttest: 0.{}\tbest: 0.{} ({})\ttotal: 50ms\tremaining: 5.5s\n"
    run = read(tmp_path, "".join(line.format(at, value, value, at) for at, value in enumerate((5, 625, 75))))
    assert points(run, "eval_score") == {0: 0.5, 1: 0.625, 2: 0.75}
    assert points(run, "elapsed") == dict.fromkeys(range(3), 0.05)


def test_a_score_that_catboost_learns_is_no_loss(tmp_path: Path) -> None:
    line = "{}:\tlearn: 0.{}\ttest: 0.5\tbest: 0.{} ({})\ttotal: 50ms\tremaining: 5.5s\n"
    run = read(tmp_path, "".join(line.format(at, value, value, at) for at, value in enumerate((5, 625, 75))))
    assert points(run, "score") == {0: 0.5, 1: 0.625, 2: 0.75}
    assert "loss" not in run


def test_the_time_that_catboost_has_left_is_no_learning_rate(tmp_path: Path) -> None:
    line = "{}:\tlearn: 0.{}\ttest: 0.{}\tbest: 0.{} (0)\ttotal: 4ms\tremaining: {}ms\n"
    run = read(tmp_path, "".join(line.format(at, 90 - at, 95 - at, 95 - at, 200 - 9 * at) for at in range(20)))
    assert "learning_rate" not in run
    assert points(run, "eta_s")[10] == 0.11


def test_the_rankings_of_lightgcn_belong_to_the_epoch_above(tmp_path: Path) -> None:
    text = "".join(
        f"EPOCH[{epoch}/40] loss0.{epoch}-|Sample:9.75|\n"
        + ("[TEST]\n{'recall': array([0.125]), 'ndcg': array([0.0625])}\n" if epoch % 2 else "")
        for epoch in range(1, 5)
    )
    metrics: dict[str, Points] = {
        "loss": {at: at / 10 for at in range(1, 5)},
        "recall": {1: 0.125, 3: 0.125},
        "ndcg": {1: 0.0625, 3: 0.0625},
    }
    assert_holds(read(tmp_path, text), "epoch", metrics)


@pytest.mark.parametrize("date", ["Tue 05 Nov 2024 10:01:11", "Tue Nov  5 10:01:11 2024", "Tue, 05 Nov 2024 10:01:11"])
def test_a_date_in_words_is_no_metric(date: str, tmp_path: Path) -> None:
    text = "".join(f"{date} INFO  epoch {at} training [time: 1.5s, train loss: {at}.5]\n" for at in range(3))
    run = read(tmp_path, text)
    assert points(run, "loss") == {0: 0.5, 1: 1.5, 2: 2.5}
    assert set(run.series) == {"loss", "time"}


def test_deepxde_lists_the_parts_of_its_losses(tmp_path: Path) -> None:
    text = (
        "Step      Train loss              Test loss               Test metric\n"
        "0         [1.50e+00, 2.50e-01]    [2.50e+00, 2.50e-01]    [9.00e-01]\n"
        "1000      [1.00e+00, 2.50e-01]    [2.00e+00, 2.50e-01]    []\n"
    )
    metrics: dict[str, Points] = {"loss": {0: 1.75, 1000: 1.25}, "eval_loss": {0: 2.75, 1000: 2.25}}
    metrics["Test metric"] = {0: 0.9}
    assert_holds(read(tmp_path, text), "step", metrics)


def test_r2_of_the_validation_set_is_of_evaluation(tmp_path: Path) -> None:
    text = "".join(f"Epoch {at} | MSE {9 - at}.5 | val MSE {10 - at}.5 | val R2 -0.{at}\n" for at in range(1, 5))
    assert points(read(tmp_path, text), "eval_r2") == {1: -0.1, 2: -0.2, 3: -0.3, 4: -0.4}


@pytest.mark.parametrize(
    ("start", "slope", "named"),
    [
        (2.3, -0.25, {"loss", "eval_loss"}),
        (2.3, 0.0, {"loss", "eval_loss"}),
        (0.2, 0.1, {"train", "val"}),  # shares
        (12.5, 5.0, {"train", "val"}),  # percentages
    ],
)
def test_what_goes_down_or_rests_in_training_and_validation_is_a_loss(
    start: float, slope: float, named: set[str], tmp_path: Path
) -> None:
    text = "".join(
        f"Epoch {at}: train {start + slope * at} held-out {start + 0.1 + slope * at}\n" for at in range(1, 8)
    )
    text = text if "loss" in named else text.replace("held-out", "val")
    assert set(read(tmp_path, text).series) == named


@pytest.mark.parametrize(
    "line",
    [
        "[{}]\ttrain-{}:0.5{}\tval-{}:0.75\n",
        "[{}]\ttraining's {}: 0.5{}\tvalid_1's {}: 0.75\n",
        "13129.7s | 202 | [{}]\ttrain's {}: 0.5{}\tval's {}: 0.75\n",
        "13.7s\t202\t[{}]\ttrain's {}: 0.5{}\tval's {}: 0.75\n",
    ],
    ids=["xgboost", "lightgbm", "a column of Kaggle", "a line of Kaggle"],
)
@pytest.mark.parametrize("measure", ["logloss", "rmspe", "l2"])
def test_what_trains_boosted_trees_is_known_by_its_lines(line: str, measure: str, tmp_path: Path) -> None:
    run = read(tmp_path, "".join(line.format(at, measure, at, measure) for at in range(1, 5)))
    assert run.kind == "boosting"
    assert points(run, "loss") == {1: 0.51, 2: 0.52, 3: 0.53, 4: 0.54}
    assert points(run, "eval_loss") == dict.fromkeys(range(1, 5), 0.75)


@pytest.mark.parametrize(
    "line", ["epoch {} train-rmse: 0.5 val-rmse: 0.7\n", "step {} train/rmse: 0.5 val/rmse: 0.7\n"]
)
def test_a_network_with_names_like_theirs_is_none(line: str, tmp_path: Path) -> None:
    assert read(tmp_path, "".join(line.format(at) for at in range(1, 5))).kind == "unknown"


def test_forecasters_call_it_vali(tmp_path: Path) -> None:
    text = "".join(
        f"Epoch: {at}, Steps: 281 | Train Loss: 0.6{at} Vali Loss: 0.7{at} Test Loss: 0.3{at}\n"
        f"Validation loss decreased (0.9{at} --> 0.7{at}).  Saving model ...\n"
        for at in range(1, 5)
    )
    run = read(tmp_path, text)
    assert set(run.series) - {"epoch", "step"} == {"loss", "eval_loss", "Test Loss"}
    assert run["eval_loss"].value.tolist() == [0.71, 0.72, 0.73, 0.74]


@pytest.mark.parametrize("name", ["training error", "train error", "Training Error"])
def test_an_error_of_training_is_the_loss_where_nothing_else_is(name: str, tmp_path: Path) -> None:
    alone = read(tmp_path, "".join(f"iterations: {at}, {name}: 0.0{9 - at}\n" for at in range(1, 5)))
    assert points(alone, "loss") == {1: 0.08, 2: 0.07, 3: 0.06, 4: 0.05}
    lines = (f"epoch {at} loss: 1.{at} {name}: 0.0{9 - at} accuracy: 0.9{at}\n" for at in range(1, 5))
    beside = read(tmp_path, "".join(lines))
    assert points(beside, "loss") == {1: 1.1, 2: 1.2, 3: 1.3, 4: 1.4}


def test_a_diagnostic_of_compiled_code_is_an_error_and_no_metric(tmp_path: Path) -> None:
    message = "/src/engine/PairManager.cpp (1048) : invalid parameter : raise pairsCapacity to 4096"
    run = read(tmp_path, "".join(f"iteration {at} reward 2.{at}\n" for at in range(1, 5)) + message + "\n")
    assert list(run.series) == ["reward"]
    assert [error.text for error in run.messages] == [message]


@pytest.mark.parametrize(
    ("end", "last"),
    [("2.", None), ("2.3", None), ("2.34", 2.34), ("2", None), ("2.34\n", 2.34), ("2.3\n", 2.3)],
)
def test_a_number_in_which_a_log_breaks_off_is_left_out(end: str, last: float | None, tmp_path: Path) -> None:
    above = {step: round(2.61 - step / 11, 2) for step in range(1, 8)}
    lines = "".join(f"step {step} lr {0.1 / step} loss {value:.2f}\nsaved\n" for step, value in above.items())
    run = read(tmp_path, f"{lines}step 8 lr 0.025 loss {end}")
    assert points(run, "loss") == above | ({} if last is None else {8: last})
    assert ("breaks off" in " ".join(run.notes)) == (last is None)


def test_a_short_number_at_the_end_is_kept_where_numbers_are_of_any_length(tmp_path: Path) -> None:
    run = read(tmp_path, "".join(f"step {step} loss {4 - step / 1000}\n" for step in range(1, 101))[:-1])
    assert points(run, "loss")[100] == 3.9


BELOW = {
    "a sentence that names a metric of the record": "Note: learning rate = 0.1 and loss = 2.0 in the paper",
    "a value that is expected": "expected loss: 2.302",
    "a value to compare with": "baseline val_loss: 0.1, ours is lower",
    "a condition": "stops when val_loss: 0.1",
    "counts of files": "Saved 3 files: total=12 size=44",
    "settings": "batch_size=64 learning_rate=0.5 patience=3",
    "a warning": "UserWarning: lr_scheduler: patience=3 factor=0.5",
}


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("line", BELOW.values(), ids=BELOW)
def test_a_line_below_a_record_that_measures_nothing_adds_nothing_to_it(tmp_path: Path, line: str, every: int) -> None:
    lines = [f"Epoch {epoch}: train_loss={3 / epoch:.4f} lr=0.001" for epoch in range(1, 10)]
    said = [f"{record}\n{line}" if epoch % every == 0 else record for epoch, record in enumerate(lines)]
    run = read(tmp_path, "\n".join(said) + "\n")
    assert run.series.keys() == {"loss", "learning_rate"}
    assert run["loss"].value.tolist() == pytest.approx([3 / epoch for epoch in range(1, 10)], abs=1e-4)
    assert {*run["learning_rate"].value.tolist()} == {0.001}


@pytest.mark.parametrize("line", ["val_loss: 0.31", "  Validation loss = 0.31", "val_loss: 0.31, val_acc: 0.8"])
def test_a_metric_that_comes_below_its_epoch_is_of_that_epoch(tmp_path: Path, line: str) -> None:
    lines = [f"Epoch {epoch}: train_loss={3 / epoch:.4f}\n{line}" for epoch in range(1, 10)]
    assert points(read(tmp_path, "\n".join(lines) + "\n"), "eval_loss") == dict.fromkeys(range(1, 10), 0.31)


GROUPS = {
    "Epoch 1, batch {step}, loss[loss=0.71, simple_loss=0.65, over 19000.00 frames. ], tot_loss[loss=0.60, "
    "simple_loss=0.59, over 37500000.00 frames. ], batch size: 130, lr: 2.73e-02": {
        "loss": 0.71,
        "simple_loss": 0.65,
        "tot_loss/loss": 0.60,
        "tot_loss/simple_loss": 0.59,
        "batch size": 130,
        "learning_rate": 0.0273,
    },
    "step {step} train(loss=0.5, acc=0.6) val(loss=0.7, acc=0.55)": {
        "loss": 0.5,
        "accuracy": 0.6,
        "eval_loss": 0.7,
        "eval_accuracy": 0.55,
    },
    "step {step} actor[loss: 0.1, entropy: 0.2] critic[loss: 0.3]": {
        "loss": 0.1,
        "entropy": 0.2,
        "value_loss": 0.3,
    },
}


@pytest.mark.parametrize(("line", "expected"), GROUPS.items())
def test_members_of_groups_that_share_a_name_are_columns_of_their_own(
    tmp_path: Path, line: str, expected: Mapping[str, float]
) -> None:
    run = read(tmp_path, "".join(f"{line.format(step=step)}\n" for step in range(10, 110, 10)))
    for name, value in expected.items():
        assert points(run, name) == dict.fromkeys(range(10, 110, 10), value), name


PHASES = {
    "a dict of each phase in a line": "Epoch {at}: train={{'loss': {loss}, 'acc': 0.5}} val={{'loss': {other}}}",
    "a dict of each phase on a line": "epoch {at} train: {{'loss': {loss}}}\nepoch {at} val: {{'loss': {other}}}",
    "nested dicts": "{{'epoch': {at}, 'train': {{'loss': {loss}}}, 'val': {{'loss': {other}}}}}",
    "numbers of NumPy": "epoch {at} train={{'loss': np.float64({loss})}} val={{'loss': np.float64({other})}}",
    "two phases behind a name": "Epoch {at}/20 - loss (train/val): {loss} / {other} - lr: 0.001",
    "the evaluation in brackets": "Epoch {at} | loss: {loss} (val: {other}) | lr: 0.001",
}


@pytest.mark.parametrize("form", PHASES.values(), ids=PHASES)
def test_each_phase_has_the_loss_that_is_printed_for_it(tmp_path: Path, form: str) -> None:
    lines = [form.format(at=at, loss=3 / at, other=3.5 / at) for at in range(1, 13)]
    run = read(tmp_path, "\n".join(lines) + "\n")
    assert points(run, "loss") == pytest.approx({at: 3 / at for at in range(1, 13)})
    assert points(run, "eval_loss") == pytest.approx({at: 3.5 / at for at in range(1, 13)})


def test_two_values_behind_one_name_are_both_kept(tmp_path: Path) -> None:
    lines = [
        f"[0/5][{at}/300]\tLoss_D: 1.2\tD(G(z)): {at / 100:.2f} / {at / 50:.2f}\tmem: 3.5 / 80.0 GB\n"
        for at in range(0, 300, 10)
    ]
    run = read(tmp_path, "".join(lines))
    assert points(run, "D(G(z))") == pytest.approx({at: at / 100 for at in range(0, 300, 10)})
    assert points(run, "D(G(z))_2") == pytest.approx({at: at / 50 for at in range(0, 300, 10)})
    assert "mem_2" not in run


def test_batches_of_a_validation_are_no_steps(tmp_path: Path) -> None:
    lines = [
        f"Epoch {epoch} | batch {batch}/4 | loss {epoch + batch / 10}\n"
        + f"Epoch {epoch} | val batch {batch}/4 | val loss {2 * epoch}\n" * (batch == 4)
        for epoch in range(1, 5)
        for batch in range(1, 5)
    ]
    run = read(tmp_path, "".join(lines))
    assert points(run, "loss") == {4 * (e - 1) + b: e + b / 10 for e in range(1, 5) for b in range(1, 5)}
    assert points(run, "eval_loss") == {4 * epoch: 2 * epoch for epoch in range(1, 5)}


@pytest.mark.parametrize(
    ("form", "step_name"),
    [("#{at:04d} loss → {loss}", "step"), ("Epoch {at}: loss 9.5 -> {loss}", "epoch")],
    ids=["a counter behind a number sign", "what it was before"],
)
def test_an_arrow_leads_to_the_value(tmp_path: Path, form: str, step_name: str) -> None:
    run = read(tmp_path, "".join(f"{form.format(at=at, loss=3 / at)}\n" for at in range(1, 13)))
    assert_holds(run, step_name, {"loss": {at: 3 / at for at in range(1, 13)}})


def test_a_percent_sign_in_a_table_is_read_as_in_a_line(tmp_path: Path) -> None:
    rows = [f"{at:>5}   {3 / at:>10.4f}   {50 + at:>6.2f}%\n" for at in range(1, 13)]
    run = read(tmp_path, "Epoch   Train Loss   Val Acc\n-------------------------\n" + "".join(rows))
    assert points(run, "eval_accuracy") == pytest.approx({at: 0.5 + at / 100 for at in range(1, 13)})


def test_pairs_of_a_library_at_the_level_of_debugging_are_no_metrics(tmp_path: Path) -> None:
    noise = 'DEBUG urllib3: https://host:443 "GET /api/{0} HTTP/1.1" 200 {0} retry=0 took=0.12s id={0:x}\n'
    lines = [noise.format(number) for number in range(3000)]
    lines += [f"epoch {epoch} loss {3 - epoch / 50:.2f}\n{noise.format(epoch)}" for epoch in range(100)]
    run = read(tmp_path, "".join(lines))
    assert_holds(run, "epoch", {"loss": {epoch: 3 - epoch / 50 for epoch in range(100)}})
    assert set(run.series) == {"loss"}


def test_a_metric_at_the_level_of_debugging_is_read(tmp_path: Path) -> None:
    run = read(tmp_path, "".join(f"DEBUG trainer: loss={3 - at / 50:.2f} took=0.5s\n" for at in range(50)))
    assert run["loss"].value.tolist() == pytest.approx([3 - at / 50 for at in range(50)])
    assert run["took"].value.tolist() == [0.5] * 50


def test_a_setting_that_is_a_sentence_makes_no_record_of_the_settings(tmp_path: Path) -> None:
    head = '{"learning_rate": 5e-4, "buffer_size": 2000, "gamma": 0.9, "batch_size": 32, "reward": "1.0 at the end"}\n'
    run = read(tmp_path, head + "".join(f"Episode {at} return {at / 8}\n" for at in range(1, 13)))
    assert_holds(run, "episode", {"reward": {at: at / 8 for at in range(1, 13)}})
    assert run.setting("learning_rate") == 5e-4
    quoted = "".join(f'{{"step": {at}, "reward": "{at / 8}", "speed": "2.5 tokens per second"}}\n' for at in range(12))
    assert points(read(tmp_path, f"start\n{quoted}"), "speed") == dict.fromkeys(range(12), 2.5)
