"""Lines that trainers of language, translation and speech models print, each written after its print statement."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.logs.reading import Points, assert_holds, read

NAN = float("nan")

PRINTED: dict[str, tuple[str, str, dict[str, Points]]] = {
    "marian": (
        """
[2021-01-01 10:00:00] Ep. 1 : Up. 1000 : Sen. 64,000 : Cost 6.51200000 : Time 31.20s : 9000.10 words/s
[2021-01-01 10:01:00] Ep. 1 : Up. 2000 : Sen. 128,000 : Cost 5.25000000 : Time 30.10s : 9100.10 words/s
[2021-01-01 10:01:10] [valid] Ep. 1 : Up. 2000 : perplexity : 150.5 : new best
[2021-01-01 10:02:10] Ep. 2 : Up. 3000 : Sen. 64,000 : Cost 4.75000000 : Time 30.00s : 9200.10 words/s
""",
        "step",
        {"loss": {1000: 6.512, 2000: 5.25, 3000: 4.75}, "eval_perplexity": {2000: 150.5}},
    ),
    "opennmt_py": (
        """
Epoch  2,    50/  200; acc:  10.25; ppl:  90.25; xent:   4.50; 500 src tok/s; 510 tgt tok/s;     55 s elapsed
Epoch  2,   100/  200; acc:  12.25; ppl:   nan; xent:   nan; 500 src tok/s; 510 tgt tok/s;     60 s elapsed
Epoch  3,    50/  200; acc:  14.25; ppl:  60.25; xent:   4.10; 500 src tok/s; 510 tgt tok/s;     65 s elapsed
""",
        "step",
        {"loss": {250: 4.5, 300: NAN, 450: 4.1}, "accuracy": {250: 10.25, 300: 12.25, 450: 14.25}},
    ),
    "word_language_model": (
        """
| epoch   1 |   200/  500 batches | lr 20.00 | ms/batch 110.00 | loss  6.50 | ppl   665.14
| epoch   1 |   400/  500 batches | lr 20.00 | ms/batch 100.00 | loss  6.00 | ppl   403.43
-----------------------------------------------------------------------------------------
| end of epoch   1 | time: 60.00s | valid loss  5.75 | valid ppl   314.19
-----------------------------------------------------------------------------------------
| epoch   2 |   200/  500 batches | lr 5.00 | ms/batch 100.00 | loss  5.50 | ppl   244.69
""",
        "step",
        {
            "loss": {200: 6.5, 400: 6.0, 700: 5.5},
            "eval_loss": {400: 5.75},
            "step_time": {200: 0.11, 400: 0.1, 700: 0.1},
        },
    ),
    "minimind": (
        """
Epoch:[0/19](0/600) loss:8.750 lr:0.00020000 epoch_Time:40.0min:
Epoch:[0/19](300/600) loss:5.500 lr:0.00019000 epoch_Time:20.0min:
Epoch:[1/19](0/600) loss:4.500 lr:0.00018000 epoch_Time:40.0min:
""",
        "step",
        {"loss": {0: 8.75, 300: 5.5, 600: 4.5}, "learning_rate": {0: 2e-4, 300: 1.9e-4, 600: 1.8e-4}},
    ),
    "llama2.c": (
        """
step 0: train loss 10.5000, val loss 10.6000
0 | loss 10.5500 | lr 0.000000e+00 | 900.50ms | mfu -100.00%
10 | loss 9.2500 | lr 5.000000e-06 | 90.50ms | mfu 20.00%
20 | loss 8.7500 | lr 1.000000e-05 | 90.50ms | mfu 20.00%
""",
        "step",
        {"loss": {0: 10.55, 10: 9.25, 20: 8.75}, "eval_loss": {0: 10.6}},
    ),
    "char_rnn": (
        "31/900 (epoch 0.103), train_loss = 3.51234567, grad/param norm = 2.5000e-01, time/batch = 0.10s\t\n"
        "32/900 (epoch 0.107), train_loss = 3.41234567, grad/param norm = 1.5000e-01, time/batch = 0.10s\t\n",
        "step",
        {"loss": {31: 3.51234567, 32: 3.41234567}, "grad_norm": {31: 0.25, 32: 0.15}},
    ),
    "espnet2": (
        """
[gpu01:0/2] 2020-07-19 08:49:04,080 (trainer:464) INFO: 1epoch:train:1-50batch: loss=90.5, lr_0=1e-06
[gpu01:0/2] 2020-07-19 08:50:04,080 (trainer:464) INFO: 1epoch:train:51-100batch: loss=70.5, lr_0=2e-06
[gpu01:0/2] 2020-07-19 08:51:04,080 (trainer:243) INFO: 1epoch results: [train] loss=80.5, [valid] loss=60.5, [plot] n=0
[gpu01:0/2] 2020-07-19 08:52:04,080 (trainer:464) INFO: 2epoch:train:1-50batch: loss=50.5, lr_0=3e-06
""",
        "step",
        {
            "loss": {50: 90.5, 100: 80.5, 150: 50.5},
            "eval_loss": {100: 60.5},
            "learning_rate": {50: 1e-6, 100: 2e-6, 150: 3e-6},
        },
    ),
    "coqui": (
        """
   --> TIME: 2024-03-18 13:31:34 -- STEP: 25/100 -- GLOBAL_STEP: 1025
     | > loss: 3.50  (3.75)
     | > amp_scaler: 16384.0  (16384.0)
     | > grad_norm: tensor(10.5, device='cuda:0')
     | > current_lr: 2.5e-07

   --> TIME: 2024-03-18 13:32:34 -- STEP: 50/100 -- GLOBAL_STEP: 1050
     | > loss: 3.25  (3.50)
     | > amp_scaler: 16384.0  (16384.0)
     | > grad_norm: tensor(9.5, device='cuda:0')
     | > current_lr: 2.5e-07
""",
        "step",
        {
            "loss": {1025: 3.5, 1050: 3.25},
            "grad_norm": {1025: 10.5, 1050: 9.5},
            "learning_rate": {1025: 2.5e-7, 1050: 2.5e-7},
            "loss_scale": {1025: 16384, 1050: 16384},
        },
    ),
    "vits": (
        """
INFO:my_voice:Train Epoch: 3 [22%]
INFO:my_voice:[2.5, 2.25, 4.5, 30.5, 1.25, 2.125, 400, 0.00019975]
INFO:my_voice:Train Epoch: 3 [48%]
INFO:my_voice:[nan, 2.75, 4.25, 29.5, 1.5, 2.25, 600, 0.00019975]
""",
        "step",
        {
            "loss_disc": {400: 2.5, 600: NAN},
            "loss_mel": {400: 30.5, 600: 29.5},
            "learning_rate": {400: 0.00019975, 600: 0.00019975},
        },
    ),
    "rvc": (
        """
INFO:My-Voice:Train Epoch: 2 [1%]
INFO:My-Voice:[200, 9.99875e-05]
INFO:My-Voice:loss_disc=3.5, loss_gen=3.25, loss_fm=10.5,loss_mel=21.5, loss_kl=1.25
INFO:My-Voice:====> Epoch: 2 [2023-06-11 10:25:02] | (1:32:56.852602)
INFO:My-Voice:Train Epoch: 3 [1%]
INFO:My-Voice:[400, 9.9975e-05]
INFO:My-Voice:loss_disc=3.25, loss_gen=4.25, loss_fm=15.5,loss_mel=20.5, loss_kl=1.5
""",
        "step",
        {"loss_disc": {200: 3.5, 400: 3.25}, "loss_mel": {200: 21.5, 400: 20.5}},
    ),
    "tacotron2": (
        """
Epoch: 0
Train loss 0 48.250000 Grad Norm 13.500000 5.71s/it
Validation loss 0: 37.500000
Train loss 1 35.250000 Grad Norm 25.500000 3.79s/it
Train loss 2 16.250000 Grad Norm 17.500000 3.99s/it
""",
        "step",
        {"loss": {0: 48.25, 1: 35.25, 2: 16.25}, "eval_loss": {0: 37.5}, "grad_norm": {0: 13.5, 1: 25.5, 2: 17.5}},
    ),
    "nanotron": (
        """
10/17/2025 16:31:56 [INFO|DP=0|PP=0|TP=0]: iteration: 998 / 2000 | consumed_tokens: 999K | lm_loss: 2.5 | lr: 1e-05
10/17/2025 16:31:56 [INFO|DP=0|PP=0|TP=0]: iteration: 999 / 2000 | consumed_tokens: 1.01M | lm_loss: 2.25 | lr: 1e-05
""",
        "step",
        {"loss": {998: 2.5, 999: 2.25}, "num_tokens": {998: 999e3, 999: 1.01e6}},
    ),
    "fairseq_hydra": (
        """
[2021-07-06 06:58:09,462][train_inner][INFO] - {"update": 0.002, "loss": "6.5", "num_updates": "200", "gnorm": "3.5"}
[2021-07-06 06:58:09,462][train_inner][INFO] - {"update": 0.003, "loss": "5.5", "num_updates": "400", "gnorm": "4.5"}
[2021-07-06 06:59:27,229][fairseq.trainer][INFO] - NOTE: overflow detected, setting loss scale to: 32.0
""",
        "step",
        {"loss": {200: 6.5, 400: 5.5}, "grad_norm": {200: 3.5, 400: 4.5}, "loss_scale": {400: 32}},
    ),
    "fairseq_0.9": (
        """
| epoch 001:    100 / 400 loss=9.5, ppl=724.1, num_updates=100, lr=1e-05, gnorm=1.5
| epoch 001 | loss 9.25 | ppl 608.9 | num_updates 400 | lr 4e-05 | gnorm 1.25
| epoch 001 | valid on 'valid' subset | valid_loss 8.5 | valid_ppl 362.0 | num_updates 400 | best 8.5
""",
        "step",
        {"loss": {100: 9.5, 400: 9.25}, "eval_loss": {400: 8.5}},
    ),
    "fairseq_0.5": (
        """
| epoch 001  1000 / 2000 loss=3.17 (3.50), wps=959, bsz=32, lr=0.001, clip=100%, gnorm=2.7
| epoch 001 | valid on 'valid' subset  100 / 200 loss=3.25
| epoch 001 | valid on 'valid' subset | valid loss 3.75 | valid ppl 12.94
| epoch 002  1000 / 2000 loss=2.20 (3.25), wps=960, bsz=32, lr=0.001, clip=100%, gnorm=2.6
""",
        "step",
        {"loss": {1000: 3.17, 3000: 2.2}, "eval_loss": {1000: 3.75}},
    ),
    "icefall": (
        """
INFO [a:1] (0/4) Epoch 1, batch 50, loss[loss=5.25, over 123.00 frames. ], tot_loss[loss=5.5, over 234.00 frames. ]
INFO [a:2] (0/4) Epoch 1, validation: loss=5.125, simple_loss=6.75, over 1639044.00 frames.
INFO [a:1] (0/4) Epoch 1, batch 100, loss[loss=5.0, over 123.00 frames. ], tot_loss[loss=5.25, over 234.00 frames. ]
""",
        "step",
        {"loss": {50: 5.25, 100: 5.0}, "eval_loss": {50: 5.125}, "eval_simple_loss": {50: 6.75}},
    ),
    "kaldi": (
        """
LOG (nnet3-train:nnet-training.cc:121) Average objective function for 'out' for minibatches 0-9 is -4.5 over 9 frames.
LOG (nnet3-train:nnet-training.cc:121) Average objective function for 'out' for minibatches 10-19 is -3.5 over 9 frames.
""",
        "step",
        {"loss": {0: 4.5, 10: 3.5}},
    ),
    "bigdl": (
        "2017-08-20 16:11:38 INFO  Distri$:295 - [Epoch 64 92/99][Iteration 457] Train 1792 in 4.3seconds. "
        "Throughput is 408.4 records/second. Loss is 1.25. Current learning rate is 0.046.\n"
        "2017-08-20 16:11:46 INFO  Distri$:295 - [Epoch 64 92/99][Iteration 459] Train 1792 in 4.3seconds. "
        "Throughput is 447.2 records/second. Loss is Infinity. Current learning rate is 0.045.\n",
        "step",
        {"loss": {457: 1.25, 459: float("inf")}, "learning_rate": {457: 0.046, 459: 0.045}},
    ),
    "composer": (
        """
[batch=3/10]:
         Train time/batch: 2
         Train time/sample: 512
         Train time/batch_in_epoch: 2
         Train time/sample_in_epoch: 512
         Train time/token: 1024
         Train memory/allocated_mem: 1.4586
         Train memory/alloc_retries: 0
         Train loss/train/total: 11.5
         Train metrics/train/LanguageCrossEntropy: 11.5
         Train time/train: 0.0073
         Train time/val: 0.0000
         Train time/total: 0.0073
         Train wall_clock/train: 3.5
         Train lr-DecoupledAdamW/group0: 0.0006
""",
        "step",
        {"loss": {3: 11.5}, "learning_rate": {3: 0.0006}},
    ),
    "qualified": (
        "Downloading cut_cross_entropy-25.1.1-py3-none-any.whl (22 kB)\n"
        "step 10: loss (train): 2.50, loss (val): 2.75, acc (top1): 0.25, f1 (higher is better) : 0.50\n"
        "step 20: loss (train): 2.25, loss (val): 2.50, acc (top1): 0.30, f1 (higher is better) : 0.55\n",
        "step",
        {
            "loss": {10: 2.5, 20: 2.25},
            "eval_loss": {10: 2.75, 20: 2.5},
            "accuracy": {10: 0.25, 20: 0.3},
            "f1": {10: 0.5, 20: 0.55},
        },
    ),
    "perplexity_alone": (
        "Epoch 1 ; Iter 50/100 ; LR 1.0000 ; Target tokens/s 1265 ; PPL 1000.0 ;\n"
        "Epoch 1 ; Iter 100/100 ; LR 1.0000 ; Target tokens/s 1296 ; PPL 100.0 ;\n"
        "Validation perplexity: 10.0\n",
        "step",
        {"loss": {50: 6.907755, 100: 4.605170}, "eval_loss": {100: 2.302585}},
    ),
    "steps_and_losses_alone": (
        "10 2.50\n20 2.25\n30 2.125\nSaving the model\n40 nan\n",
        "step",
        {"loss": {10: 2.5, 20: 2.25, 30: 2.125, 40: NAN}},
    ),
}
"""What was printed → what a step is, and metrics as {step: value}."""


@pytest.mark.parametrize("name", PRINTED)
def test_what_a_trainer_prints_is_read_to_the_exact_values(name: str, tmp_path: Path) -> None:
    text, step_name, metrics = PRINTED[name]
    assert_holds(read(tmp_path, text), step_name, metrics)


def test_what_stands_before_a_message_is_no_metric(tmp_path: Path) -> None:
    for name in ("espnet2", "nanotron"):
        assert not {"gpu01", "trainer", "DP", "PP", "TP"} & set(read(tmp_path, PRINTED[name][0]).series)


def test_how_many_frames_a_mean_is_over_is_no_metric(tmp_path: Path) -> None:
    assert not [name for name in read(tmp_path, PRINTED["icefall"][0]).series if "over" in name]


def test_lists_without_names_are_told_to_be_guessed(tmp_path: Path) -> None:
    assert any("guessed" in note for note in read(tmp_path, PRINTED["vits"][0]).notes)


@pytest.mark.parametrize(
    "line", ["step 1000, best loss 0.5", "best loss so far: 0.25", "val_loss did not improve from 0.4"]
)
def test_what_is_said_of_the_best_record_is_no_record(line: str, tmp_path: Path) -> None:
    run = read(
        tmp_path, "".join(f"step {step}: loss {5 - step / 1000:.3f}\n{line}\n" for step in range(100, 1100, 100))
    )
    assert run["loss"].value.tolist() == pytest.approx([5 - step / 1000 for step in range(100, 1100, 100)])


def test_what_stands_before_the_best_value_in_a_line_is_read(tmp_path: Path) -> None:
    run = read(
        tmp_path, "".join(f"step {step}: val_loss {5 - step / 100} (best {4 - step})\n" for step in (10, 20, 30))
    )
    assert run["eval_loss"].value.tolist() == pytest.approx([4.9, 4.8, 4.7])


def test_what_something_cost_in_time_is_no_loss(tmp_path: Path) -> None:
    run = read(tmp_path, "step 1: acc: 0.50, cost: 1.5s\nstep 2: acc: 0.75, cost: 1.25s\n")
    assert "loss" not in run
    assert run["accuracy"].value.tolist() == [0.5, 0.75]


def test_an_event_on_the_line_of_a_bar_has_the_step_of_the_bar(tmp_path: Path) -> None:
    scales = [2.0**power for power in range(6, 2, -1)]
    run = read(
        tmp_path,
        "".join(
            f" 14%|#4        | {377 + index}/2724 [13:58:09<86:18:35, 132.44s/it][2023-06-07 22:16:00,018] [INFO] "
            f"OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {2 * scale}, reducing to {scale}\n"
            for index, scale in enumerate(scales)
        ),
    )
    assert run["loss_scale"].step.tolist() == [377, 378, 379, 380]
    assert run["loss_scale"].value.tolist() == scales


def test_the_counter_of_the_whole_run_counts_and_not_that_of_an_inner_loop(tmp_path: Path) -> None:
    line = "train | inner iter: {}/ 8 | global iter: {}/ 500 | tot_loss: {} | lr: 1e-06\n"
    run = read(tmp_path, line.format(7, 13, 2.5) + line.format(1, 14, 2.25))
    assert (run["loss"].step.tolist(), run["loss"].value.tolist()) == ([13, 14], [2.5, 2.25])


def test_how_many_batches_an_epoch_has_is_no_epoch(tmp_path: Path) -> None:
    run = read(tmp_path, "1 epoch = 2640 batches\n" + "".join(f"step {step}, loss: {5 - step}\n" for step in range(3)))
    assert "epoch" not in run
    assert run["loss"].value.tolist() == [5, 4, 3]


def test_carriage_returns_that_were_made_visible_part_lines(tmp_path: Path) -> None:
    bar = "^M  4%|#         | {}/100 [11:37<5:10:26,  1.87it/s]"
    printed = "^M{{'loss': {}, 'learning_rate': 0.0003, 'epoch': {}}}\n"
    drawn = (bar.format(step) + printed.format(4 - step / 10, step / 50) + bar.format(step) for step in range(1, 9))
    run = read(tmp_path, "".join(drawn))
    assert run["loss"].step.tolist() == list(range(1, 9))


def test_batches_of_epochs_are_counted_on_however_many_lines_there_are(tmp_path: Path) -> None:
    line = "Epoch [{}][{}/50] lr: 1.0e-03, time: 0.5, data_time: 0.1, loss: {:.3f}\n"
    run = read(
        tmp_path,
        "".join(
            line.format(epoch, batch, 5 - epoch - batch / 100) + ("saving\n" if batch == 30 else "")
            for epoch in range(1, 5)
            for batch in range(1, 51)
        ),
    )
    assert run["loss"].step.tolist() == list(range(1, 201))
    assert run["loss"].value.tolist() == pytest.approx([5 - e - b / 100 for e in range(1, 5) for b in range(1, 51)])


def test_a_phase_named_after_a_plain_loss_is_not_its_loss(tmp_path: Path) -> None:
    run = read(
        tmp_path, "Epoch: 001, Loss: 1.94, Train: 0.14, Val: 0.19\nEpoch: 002, Loss: 1.90, Train: 0.16, Val: 0.20\n"
    )
    assert "eval_loss" not in run
    assert run["loss"].value.tolist() == [1.94, 1.9]


def test_steps_that_log_times_alone_are_records_from_the_first_evaluation_on(tmp_path: Path) -> None:
    timed = "step:{0}/9 train_time:{0}00ms step_avg:{0}.50ms\n"
    evaluated = "step:{}/9 val_loss:{} train_time:0ms step_avg:1ms\n"
    text = evaluated.format(0, 10.5) + "".join(map(timed.format, range(1, 5))) + evaluated.format(4, 4.5)
    run = read(tmp_path, text + "".join(map(timed.format, range(5, 10))))
    assert run["elapsed"].step.tolist() == [*range(10)]
    assert run["eval_loss"].step.tolist() == [0, 4]
