"""Lines as people paste them from terminals and threads: cut, wrapped, marked, and of frameworks with habits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.logs.reading import Points, assert_holds, read

from mldebug_mcp.logs import read_run

PASTED: dict[str, tuple[str, str, Mapping[str, Points]]] = {
    "names in camel case": (
        "Epoch 0, Loss: 0.5, ValLoss: 0.625, TrainAcc: 0.25\nEpoch 1, Loss: 0.25, ValLoss: 0.375, TrainAcc: 0.5\n",
        "epoch",
        {"loss": {0: 0.5, 1: 0.25}, "eval_loss": {0: 0.625, 1: 0.375}, "accuracy": {0: 0.25, 1: 0.5}},
    ),
    "the best so far before what this epoch brought": (
        "epoch 7 best test acc: 0.9375, train loss: 1.25; train acc: 0.5 val acc: 0.75\n"
        "epoch 8 best test acc: 0.9375, train loss: 1.125; train acc: 0.625 val acc: 0.875\n",
        "epoch",
        {"loss": {7: 1.25, 8: 1.125}, "accuracy": {7: 0.5, 8: 0.625}, "eval_accuracy": {7: 0.75, 8: 0.875}},
    ),
    "the best so far between what this record brought": (
        "iter 4/320 loss 0.75 best dice 0.25 lr 1e-03 iter_time 12.5 ms 1307.5 img/s rss 381 MiB\n"
        "iter 8/320 loss 0.5 best dice 0.25 lr 2e-03 iter_time 15.5 ms 1207.5 img/s rss 382 MiB\n",
        "step",
        {
            "loss": {4: 0.75, 8: 0.5},
            "learning_rate": {4: 0.001, 8: 0.002},
            "step_time": {4: 0.0125, 8: 0.0155},
        },
    ),
    "the best so far with the epoch that it is of": (
        "epoch 3 loss 0.75 best acc 0.5 at epoch 2\nepoch 4 loss 0.5 best acc 0.625 at epoch 4\n",
        "epoch",
        {"loss": {3: 0.75, 4: 0.5}},
    ),
    "units behind their numbers": (
        "Epoch[0] Batch [50]\tSpeed: 187.5 samples/sec 8556.5 tokens/sec 1.5 updates/sec\tperplexity=38.5\n"
        "Epoch[0] Batch [100]\tSpeed: 188.5 samples/sec 8499.5 tokens/sec 1.5 updates/sec\tperplexity=**36.5**\n",
        "step",
        {"Speed": {50: 187.5, 100: 188.5}, "perplexity": {50: 38.5, 100: 36.5}},
    ),
    "WeNet's batches, of two processes": (
        "2023-01-30 18:47:07,107 DEBUG TRAIN Batch 4/100 loss 12.5 loss_att 10.5 lr 0.0005 rank 0\n"
        "2023-01-30 18:47:07,109 DEBUG TRAIN Batch 4/100 loss 99.5 loss_att 98.5 lr 0.0005 rank 1\n"
        "2023-01-30 18:48:07,107 DEBUG TRAIN Batch 4/200 loss 11.5 loss_att 9.5 lr 0.0005 rank 0\n"
        "2023-01-30 18:49:07,107 DEBUG CV Batch 4/0 loss 28.5 loss_att 24.5 history loss 27.5 rank 0\n",
        "step",
        {"loss": {100: 12.5, 200: 11.5}, "learning_rate": {100: 0.0005, 200: 0.0005}},
    ),
    "ESPnet's times": (
        "7epoch results: [train] iter_time=0.125, forward_time=0.25, loss=15.5, backward_time=0.25, train_time=0.75, "
        "time=3 hours, 11 minutes and 16.5 seconds, total_count=52, [valid] loss=9.5, time=24.5 seconds\n"
        "8epoch results: [train] iter_time=0.25, forward_time=0.25, loss=14.5, backward_time=0.25, train_time=0.875, "
        "time=3 hours, 14 minutes and 26.5 seconds, total_count=60, [valid] loss=8.5, time=30.5 seconds\n",
        "epoch",
        {
            "data_time": {7: 0.125, 8: 0.25},
            "step_time": {7: 0.75, 8: 0.875},
            "time": {7: 11476.5, 8: 11666.5},
            "eval_loss": {7: 9.5, 8: 8.5},
        },
    ),
    "a bar that the terminal cut, and thresholds with a colon": (
        "     Epoch  iou_loss  dfl_loss  cls_loss\n"
        "     43/99       0.5      0.25     1.125: 100%|██████████| 106/106 [00:16<00:00,\n"
        "     Epoch  iou_loss  dfl_loss  cls_loss\n"
        "     44/99     0.375      0.25       1.0: 100%|██████████| 106/106 [00:15<00:00,\n"
        "Epoch: 44 | mAP@0.5: 0.625 | mAP@0.50:0.95: 0.375\n",
        "epoch",
        {"iou_loss": {43: 0.5, 44: 0.375}, "loss": {43: 1.875, 44: 1.625}, "mAP50-95": {44: 0.375}},
    ),
    "spaCy's table": (
        "E    #       LOSS TOK2VEC  LOSS NER  ENTS_F  ENTS_P  ENTS_R  SCORE \n"
        "---  ------  ------------  --------  ------  ------  ------  ------\n"
        "  0       0         10.50     50.25    0.00    0.00    0.00    0.00\n"
        "  1     200         20.50     40.25   62.50   75.00   50.00    0.63\n",
        "step",
        {"epoch": {0: 0, 200: 1}, "loss": {0: 50.25, 200: 40.25}, "eval_score": {0: 0, 200: 0.63}},
    ),
    "a logging format with the process behind the line": (
        "2020-10-26 13:24:36.%f train.py:215[276] INFO Train epoch: 17 [200/400]\tAccuracy: 50.25%\tLoss: 0.75\n"
        "2020-10-26 13:29:54.%f train.py:215[276] INFO Train epoch: 17 [400/400]\tAccuracy: 50.5%\tLoss: 0.625\n"
        "2020-10-26 13:30:38.%f train.py:254[276] INFO Test set: Loss: 0.875, Accuracy: 49.75%)\n",
        "step",
        {"loss": {6600: 0.75, 6800: 0.625}, "eval_loss": {6800: 0.875}, "eval_accuracy": {6800: 0.4975}},
    ),
    "a measure of CatBoost that is best high": (
        "34:     learn: 0.9375   test: 0.75      best: 0.875 (1)  total: 17.5s    remaining: 1h 39m 38s\n"
        "35:     learn: 0.9375   test: 0.78125   best: 0.875 (1)  total: 17.9s    remaining: 1h 39m 21s\n"
        "36:     learn: 0.9375   test: 0.78125   best: 0.875 (1)  total: 18.5s    remaining: 1h 39m 48s\n"
        "37:     learn: 0.9375   test: 0.8125    best: 0.875 (1)  total: 19s      remaining: 1h 39m 37s\n",
        "step",
        {
            "score": {34: 0.9375, 35: 0.9375, 36: 0.9375, 37: 0.9375},
            "eval_score": {34: 0.75, 35: 0.78125, 36: 0.78125, 37: 0.8125},
        },
    ),
    "a loss of CatBoost before 2018, which runs into the time": (
        "0:      learn 0.625passed: 17.5 sec      total: 3m 13s   remaining: 3h 42m 6s\n"
        "1:      learn 0.5passed: 17 sec        total: 3m 30s   remaining: 1h 59m 20s\n"
        "2:      learn 0.375passed: 17.5 sec      total: 3m 47s   remaining: 1h 24m 42s\n",
        "step",
        {"loss": {0: 0.625, 1: 0.5, 2: 0.375}, "step_time": {0: 17.5, 1: 17, 2: 17.5}},
    ),
    "a score of CatBoost on the rows that it trains on": (
        "0:      learn: 0.5      total: 17.5s    remaining: 1h 39m 38s\n"
        "1:      learn: 0.625    total: 18.5s    remaining: 1h 39m 21s\n"
        "2:      learn: 0.75     total: 19.5s    remaining: 1h 39m 48s\n",
        "step",
        {"score": {0: 0.5, 1: 0.625, 2: 0.75}},
    ),
    "a place in the data beside a share of right answers": (
        "cb: iter=    70 sample=72/5608 right=25/100 loss=4.5 |--->\n"
        "cb: iter=    71 sample=73/5608 right=50/100 loss=4.25 |--->\n"
        "cb: iter=    72 sample=74/5608 right=75/100 loss=4.0 |--->\n",
        "step",
        {
            "sample": {70: 72, 71: 73, 72: 74},
            "right": {70: 0.25, 71: 0.5, 72: 0.75},
            "loss": {70: 4.5, 71: 4.25, 72: 4},
        },
    ),
    "the mean of an epoch beside the loss of one batch": (
        "Epoch [1] Batch [0/50] Loss: 2.5 Acc@1: 62%\nEpoch [1] Train Loss: 2.0, Train Acc@1: 50.5%, Val Acc@1: 40%\n"
        "Epoch [2] Batch [0/50] Loss: 1.5 Acc@1: 75%\nEpoch [2] Train Loss: 1.0, Train Acc@1: 60.5%, Val Acc@1: 45%\n",
        "step",
        {"loss": {0: 2.0, 50: 1.0}, "Loss": {0: 2.5, 50: 1.5}, "accuracy": {0: 0.505, 50: 0.605}},
    ),
    "a verb for evaluation": (
        "[250] train loss: 0.5\n[250] validate loss: 0.75\n[251] train loss: 0.25\n[251] validate loss: 0.625\n",
        "step",
        {"loss": {250: 0.5, 251: 0.25}, "eval_loss": {250: 0.75, 251: 0.625}},
    ),
    "records whose line breaks were lost": (
        "t: 5 [2021/06/30 12:24:47] root INFO: epoch: [1/9], iter: 10, lr: 0.001000, loss: 2.5, samples: 51, ips: 46.5 "
        "[2021/06/30 12:26:40] root INFO: epoch: [1/9], iter: 20, lr: 0.001000, loss: 2.25, samples: 51, ips: 60.5 "
        "[2021/06/30 12:28:22] root INFO: epoch: [1/9], iter: 30, lr: 0.001000, loss: 2.0, samples: 51, ips: 70.5\n",
        "step",
        {"loss": {10: 2.5, 20: 2.25, 30: 2.0}, "ips": {10: 46.5, 20: 60.5, 30: 70.5}},
    ),
    "Chainer's table, which leaves out what was not logged": (
        "epoch       iteration   main/loss   lr          fast/main/loss  validation/main/loss\n"
        "3           100         3.5         0.0005                      3.25\n"
        "7           200         3.0         0.0005      2.5\n",
        "step",
        {"loss": {100: 3.5, 200: 3.0}, "eval_loss": {100: 3.25}, "learning_rate": {100: 0.0005, 200: 0.0005}},
    ),
    "a table aligned at the right, in which two numbers touch and one is missing": (
        "   step   loss     kl  g_norm        lr\n"
        "      2    0.5    0.1    0.25  0.006000\n"
        "      4    0.4      14.00e-05  0.006000\n"
        "      6    0.3           0.20  0.006000\n"
        "      8    0.2    0.1    0.15  0.006000\n",
        "step",
        {
            "loss": {2: 0.5, 4: 0.4, 6: 0.3, 8: 0.2},
            "kl": {2: 0.1, 4: 1.0, 8: 0.1},
            "grad_norm": {2: 0.25, 4: 4.0e-05, 6: 0.2, 8: 0.15},
            "learning_rate": {2: 0.006, 4: 0.006, 6: 0.006, 8: 0.006},
        },
    ),
    "an evaluation that two processes print": (
        "".join(f"2021-12-05 1{n}:00:32 INFO Epoch {n} CV info cv_loss {2 - n / 8}\n" * 2 for n in range(9)),
        "epoch",
        {"eval_loss": {n: 2 - n / 8 for n in range(9)}},
    ),
    "how far down a ranking is looked": (
        "epoch 1 [Metrics] F1(k=20): 0.125 - NDCG(k=20): 0.25\nepoch 2 [Metrics] F1(k=20): 0.25 - NDCG(k=20): 0.5\n",
        "epoch",
        {"F1@20": {1: 0.125, 2: 0.25}, "NDCG@20": {1: 0.25, 2: 0.5}},
    ),
    "a learner and an actor that count apart": (
        "[Actor] Episode Length = 764 | Episode Return = -21.0 | Episodes = 2 | Steps = 1528\n"
        "[Learner] Loss = 0.5 | Steps = 70\n[Learner] Loss = 0.25 | Steps = 87\n"
        "[Actor] Episode Length = 876 | Episode Return = -20.0 | Episodes = 3 | Steps = 2404\n"
        "[Learner] Loss = 0.125 | Steps = 190\n",
        "step",
        {"loss": {70: 0.5, 87: 0.25, 190: 0.125}, "reward": {1528: -21.0, 2404: -20.0}},
    ),
    "an objective that is maximised": (
        "Process 8300/9272(89.5%) glb avg objf: -0.5 over 47.0 frames, cur avg objf: -0.25 over 64 frames, "
        "val avg objf: -0.75 over 18.0 frames, epoch 4\n"
        "Process 8300/9272(89.5%) glb avg objf: -0.375 over 47.0 frames, cur avg objf: -0.125 over 64 frames, "
        "val avg objf: -0.625 over 18.0 frames, epoch 5\n",
        "epoch",
        {"loss": {4: 0.5, 5: 0.375}, "eval_loss": {4: 0.75, 5: 0.625}},
    ),
    "an epoch in two letters": (
        "ep=00 tr=['train'] loss=2.5 err=0.5 valid=dev loss=1.5 err=0.375 time(s)=276\n"
        "ep=01 tr=['train'] loss=2.0 err=0.375 valid=dev loss=1.25 err=0.25 time(s)=275\n",
        "epoch",
        {"loss": {0: 2.5, 1: 2.0}, "eval_loss": {0: 1.5, 1: 1.25}},
    ),
    "of two spellings, the one that is told at each step": (
        "Train Epoch: 1 [100/300] Loss: 2.5\nTrain Epoch: 1 [200/300] Loss: 2.25\nTrain Epoch: 1 [300/300] Loss: 2.0\n"
        "    loss           : 2.375\n",
        "step",
        {"loss": {100: 2.5, 200: 2.25, 300: 2.0}},
    ),
    "one record over two lines, without a step": (
        "completions/mean_length: 192   completions/clipped_ratio: 1   mean_terminated_length: 0\n"
        "reward: 0   reward_std: 0   frac_reward_zero_std: 1   loss: 0   grad_norm: 0\n",
        "record",
        {"completion_length": {1: 192.0}, "completions/clipped_ratio": {1: 1.0}, "reward": {1: 0.0}, "loss": {1: 0.0}},
    ),
    "records over two lines that take turns, without a step, and an evaluation below one": (
        "loss: 2.5 grad_norm: 0.5\nreward: 0.125 reward_std: 0.25\n"
        "loss: 2.25 grad_norm: 0.75\nreward: 0.25 reward_std: 0.375\neval_loss: 2.125 eval_accuracy: 0.5\n"
        "loss: 2.0 grad_norm: 0.625\nreward: 0.375 reward_std: 0.5\n",
        "record",
        {
            "loss": {1: 2.5, 2: 2.25, 3: 2.0},
            "reward": {1: 0.125, 2: 0.25, 3: 0.375},
            "reward_std": {1: 0.25, 2: 0.375, 3: 0.5},
            "eval_loss": {2: 2.125},
        },
    ),
    "a table of Markdown without sides": (
        "Step | Training Loss | reward | reward_std | completions / mean_length | kl\n-- | -- | -- | -- | -- | --\n"
        "4 | 0.25 | 1.5 | 0.75 | 180.5 | nan\n5 | 0.125 | 1.75 | 0.5 | 190.5 | No Log\n",
        "step",
        {"loss": {4: 0.25, 5: 0.125}, "reward_std": {4: 0.75, 5: 0.5}, "completion_length": {4: 180.5, 5: 190.5}},
    ),
    "a dict that lost its braces": (
        "'loss': 0.5, 'grad_norm': 0.25, 'epoch': 0.01, 'global_step/max_steps': '7/420', 'memory(GiB)': 21.5}\n",
        "step",
        {"loss": {7: 0.5}, "grad_norm": {7: 0.25}, "memory": {7: 21.5}},
    ),
    "carriage returns that a collector of logs wrote in octal": (
        "`[1,mpirank:0,algo-2]<stdout>:#015Epoch 0:  50% 1/2 [00:00<00:00,  6.5it/s, loss=2.5, v_num=0]\n"
        "[1,mpirank:0,algo-2]<stdout>:#015      #033[A\n"
        "[1,mpirank:0,algo-2]<stdout>:#015Epoch 0: 100% 2/2 [00:00<00:00, 12.5it/s, loss=2.25, v_num=0, val_acc=0.5]\n"
        "[1,mpirank:0,algo-2]<stdout>:\n",
        "step",
        {"loss": {1: 2.5, 2: 2.25}, "eval_accuracy": {2: 0.5}},
    ),
    "a step and a value between dots": (
        "...\n810 2.5\n820 2.25\n830 2.125\nSaving the model\n840 2.5\n850 2.75\n...\n",
        "step",
        {"loss": {810: 2.5, 820: 2.25, 830: 2.125, 840: 2.5, 850: 2.75}},
    ),
    "a mean reward in French": (
        "Episode 20/80 | Reward moyen (50 ep): 8.5\nEpisode 40/80 | Reward moyen (50 ep): 9.5\n"
        "Episode 60/80 | Reward moyen (50 ep): 9.25\nEpisode 80/80 | Reward moyen (50 ep): 9.75\n",
        "episode",
        {"reward": {20: 8.5, 40: 9.5, 60: 9.25, 80: 9.75}},
    ),
    "first steps that were skipped and have no loss": (
        " iteration 5/ 900 | learning rate: 0.000E+00 | loss scale: 65536.0 | number of skipped iterations: 5 |\n"
        " iteration 10/ 900 | learning rate: 2.5E-05 | lm loss: 9.5 | loss scale: 2048.0 | "
        "number of skipped iterations: 2 |\n",
        "step",
        {"loss": {10: 9.5}, "skipped_iterations": {5: 5, 10: 2}, "loss_scale": {5: 65536, 10: 2048}},
    ),
    "what verl logs of its critic and its times": (
        "step:3 - critic/vf_loss:0.5 - critic/score/mean:0.25 - critic/rewards/mean:0.125 - critic/returns/mean:0.75 - "
        "mfu/critic:0.0625 - timing_s/gen:12.5 - actor/grad_norm:1.5\n",
        "step",
        {"reward": {3: 0.125}, "value_loss": {3: 0.5}, "mfu/critic": {3: 0.0625}, "timing_s/gen": {3: 12.5}},
    ),
    "episodes per second of TRL's PPO": (
        "{'eps': 1, 'objective/kl': 4.5, 'objective/scores': 0.5, 'loss/policy_avg': 0.25, 'val/ratio': 1.0, "
        "'episode': 64, 'epoch': 0.5}\n",
        "epoch",
        {"reward": {0.5: 0.5}, "eps": {0.5: 1}},
    ),
    "results of Tune whose step stands last, with the state of the trials between them": (
        "".join(
            f"Result for SAC_Pendulum_7f3a1_00000:\n  custom_metrics: {{}}\n  episode_reward_mean: {reward}\n"
            f"  hist_stats:\n    episode_lengths:\n    - 200\n  num_env_steps_sampled: {step}\n  \n"
            "== Status ==\nMemory usage on this node: 5.1/7.7 GiB\n\n"
            for step, reward in ((500, -900), (1000, -700), (1500, -300))
        ),
        "step",
        {"reward": {500: -900, 1000: -700, 1500: -300}},
    ),
    "indented results of which only the headings are lost": (
        "".join(f"  episode_reward_mean: {5 * at}\n  training_iteration: {at}\n  \n" for at in range(1, 5)),
        "step",
        {"reward": {1: 5, 2: 10, 3: 15, 4: 20}},
    ),
    "a carriage return in octal behind each line": (
        "2023-02-03T04:05:06.789Z Step 8, loss: 1.5#033[0m, val_loss: 1.75#015\n"
        "2023-02-03T04:05:16.789Z Step 16, loss: 1.25#033[0m, val_loss: 1.5#015\n"
        "2023-02-03T04:05:26.789Z Step 24, loss: 1.0#033[0m, val_loss: 1.25 #015\n",
        "step",
        {"loss": {8: 1.5, 16: 1.25, 24: 1.0}, "eval_loss": {8: 1.75, 16: 1.5, 24: 1.25}},
    ),
    "a carriage return in octal behind each dict": (
        "{'loss': 1.5, 'epoch': 0.25}#015\n{'loss': 1.25, 'epoch': 0.5}#015\n",
        "epoch",
        {"loss": {0.25: 1.5, 0.5: 1.25}},
    ),
    "drawings behind which a carriage return stands in octal": (
        "Epoch 0:  25%|██   | 1/4 [00:01<00:03, 1.0it/s, loss=2.5]#015"
        "Epoch 0:  50%|███  | 2/4 [00:02<00:02, 1.0it/s, loss=2.25]#015\n",
        "step",
        {"loss": {1: 2.5, 2: 2.25}},
    ),
    "colours in octal": (
        "#033[36mStep 30#033[0m loss: 1.5\n#033[36mStep 60#033[0m loss: 1.25\n",
        "step",
        {"loss": {30: 1.5, 60: 1.25}},
    ),
    "an epoch behind a number sign that is no carriage return": (
        "Epoch #014: loss 1.5\nEpoch #015: loss 1.25\nEpoch #016: loss 1.0\n",
        "epoch",
        {"loss": {14: 1.5, 15: 1.25, 16: 1.0}},
    ),
    "dicts that lost their closing braces": (
        "{'loss': 1.5, 'epoch': 0.5\n{'loss': 1.25, 'epoch': 1.0,\n{'loss': 1.0, 'epoch': 1.5}\n",
        "epoch",
        {"loss": {0.5: 1.5, 1.0: 1.25, 1.5: 1.0}},
    ),
    "dicts behind a step that lost their closing braces": (
        "step 5: {'loss': 1.5, 'lr': 0.25\nsaving\nstep 10: {'loss': 1.25, 'lr': 0.5\n",
        "step",
        {"loss": {5: 1.5, 10: 1.25}, "learning_rate": {5: 0.25, 10: 0.5}},
    ),
    "JSON that lost its closing braces": (
        '{"step": 5, "loss": 1.5\n{"step": 10, "loss": 1.25\n',
        "step",
        {"loss": {5: 1.5, 10: 1.25}},
    ),
    "dicts that lost their opening braces and quotation marks": (
        "loss': 1.5, 'grad_norm': 0.5, 'epoch': 0.5}\nloss': '1.25', 'grad_norm': '0.25', 'epoch': '1.0'\n",
        "epoch",
        {"loss": {0.5: 1.5, 1.0: 1.25}, "grad_norm": {0.5: 0.5, 1.0: 0.25}},
    ),
    "figures of an evaluation below the records of the Trainer": (
        "{'loss': 1.5, 'epoch': 1.0}\n{'loss': 1.25, 'epoch': 2.0}\n***** eval metrics *****\n"
        "  epoch        =        2.0\n  eval_loss    =     1.375\n  eval_runtime = 0:00:12.50\n",
        "epoch",
        {"loss": {1: 1.5, 2: 1.25}, "eval_loss": {2: 1.375}},
    ),
    "figures of an evaluation at each epoch": (
        "***** eval metrics *****\n  epoch = 1.0\n  eval_loss = 1.5\n"
        "***** eval metrics *****\n  epoch = 2.0\n  eval_loss = 1.25\n",
        "epoch",
        {"eval_loss": {1: 1.5, 2: 1.25}},
    ),
}


@pytest.mark.parametrize(("text", "step_name", "metrics"), PASTED.values(), ids=PASTED)
def test_what_is_pasted_is_read(tmp_path: Path, text: str, step_name: str, metrics: Mapping[str, Points]) -> None:
    run = read(tmp_path, text)

    assert_holds(run, step_name, metrics)


def test_a_log_that_begins_inside_of_a_box_names_its_metrics_alike(tmp_path: Path) -> None:
    box = (
        "---------------------------------\n| rollout/           |          |\n|    ep_rew_mean     | {}      |\n"
        "| time/              |          |\n|    total_timesteps | {}     |\n| train/             |          |\n"
        "|    loss            | {}     |\n|    value_loss      | {}     |\n---------------------------------\n"
    )
    cut = "|    loss            | 0.5      |\n|    value_loss      | 0.75     |\n---------------------------------\n"
    run = read(tmp_path, cut + box.format(-20, 2000, 0.25, 0.5) + box.format(-10, 4000, 0.125, 0.25))

    assert run["value_loss"].value.tolist()[-2:] == [0.5, 0.25]
    assert run["loss"].value.tolist()[-2:] == [0.25, 0.125]


def test_neither_a_unit_nor_an_option_of_a_command_is_a_metric(tmp_path: Path) -> None:
    run = read(
        tmp_path,
        "step 1: Speed: 187.5 samples/sec 8556.5 tokens/sec loss=2.5 run with --dropout 0.5\n"
        "step 2: Speed: 188.5 samples/sec 8499.5 tokens/sec loss=2.25 run with --dropout 0.5\n",
    )

    assert set(run.series) == {"Speed", "loss"}


def test_a_sentence_of_a_best_epoch_is_no_record_of_it(tmp_path: Path) -> None:
    run = read(
        tmp_path,
        "Epoch 1: loss: 2.5, val_loss: 2.75\nEpoch 2: loss: 2.0, val_loss: 2.25\n"
        "Epoch 3: best val_loss: 1.25, test acc: 0.875\n",
    )

    assert run["eval_loss"].value.tolist() == [2.75, 2.25]
    assert "eval_accuracy" not in run


def test_tags_with_time_step_and_value_of_each_point_are_read_as_tensorboard_gives_them(tmp_path: Path) -> None:
    tags = {
        "train/loss": [[1.7e9 + at, 10 * at, 2.5 - 0.25 * at] for at in range(1, 5)],
        "val/acc": [[1.7e9 + at, 20 * at, 0.25 * at] for at in range(1, 4)],
    }
    (tmp_path / "scalars.json").write_text(json.dumps(tags))
    run = read_run(tmp_path)
    assert_holds(
        run, "step", {"loss": {10: 2.25, 20: 2.0, 30: 1.75, 40: 1.5}, "eval_accuracy": {20: 0.25, 40: 0.5, 60: 0.75}}
    )


def test_boxes_and_ranges_in_a_document_are_no_curves(tmp_path: Path) -> None:
    document = {"box": [[0, 1, 4], [1, 2, 5], [2, 3, 6]], "loss": [2.5, 2.0, 1.5], "span": [[0, 1], [1, 2]]}
    (tmp_path / "history.json").write_text(json.dumps(document))
    assert "box" not in read_run(tmp_path).series


def test_an_option_of_a_command_that_goes_on_is_a_setting_without_its_beginning(tmp_path: Path) -> None:
    run = read(tmp_path, "    --precision 16 \\\n    --gpus 2 \\\nEpoch 0 | Batch 0/80 | Train Loss nan\n")
    assert run.facts.precision == "fp16"


def test_means_over_episodes_are_said_to_be_nan_for_want_of_an_ended_one(tmp_path: Path) -> None:
    run = read(tmp_path, "episode_len_mean: .nan\nepisode_reward_mean: .nan\nepisodes_total: 0\n")
    assert any("no episode has ended" in note for note in run.notes)


def test_of_several_trials_of_tune_the_first_is_read_and_the_others_are_counted(tmp_path: Path) -> None:
    result = "Result for PPO_{}:\n  episode_reward_mean: {}\n  training_iteration: {}\n  \n"
    run = read(tmp_path, "".join(result.format("a", at, at) + result.format("b", 9, at) for at in range(1, 4)))
    assert run["reward"].value.tolist() == [1, 2, 3]
    assert any("3 result(s) of other trials" in note for note in run.notes)


def test_means_over_the_run_are_no_losses_of_a_step(tmp_path: Path) -> None:
    records = "{'loss': 1.5, 'epoch': 1.0}\n{'loss': 1.25, 'epoch': 2.0}\n"
    run = read(tmp_path, f"{records}***** train metrics *****\n  epoch = 2.0\n  train_loss = 1.375\n")
    assert run["loss"].value.tolist() == [1.5, 1.25]
    assert run["summary/train_loss"].value.tolist() == [1.375]
