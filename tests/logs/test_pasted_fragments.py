"""Fragments of logs as they stand in threads: a few records, of one epoch, of several ranks, broken by a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.logs.reading import Points, assert_holds, read

from mldebug_mcp import diagnose_run
from mldebug_mcp.logs.names import Quantity, role_of

_BAR = "█████     "
_PARTS = "| loss 2.5 | nll_loss 2.25 | ppl 4.76 | wps 24271 | ups 7 | wpb 3586.843 | lr 0.000316 | gnorm"
_VERL = "(TaskRunner pid=7) step:{0} - actor/entropy_loss:0.25 - actor/kl_loss:0.125 - actor/pg_loss:0.5 - response_len"

FRAGMENTS: dict[str, tuple[str, str, Mapping[str, Points]]] = {
    "an epoch is named where it ends": (
        "".join(
            "".join(f"Step: {at}/40, Loss: {4.5 - epoch - at / 80}\n" for at in (20, 40)) + f"Epoch {epoch} finished.\n"
            for epoch in (1, 2, 3)
        ),
        "step",
        {"loss": {20: 3.25, 40: 3.0, 60: 2.25, 80: 2.0, 100: 1.25, 120: 1.0}},
    ),
    "an epoch ends while steps of the run go on": (
        "".join(f"Step: {at}/90, Loss: {9.0 - at}\n" + f"End of epoch {at // 2}\n" * (at % 2) for at in range(1, 7)),
        "step",
        {"loss": {1: 8.0, 2: 7.0, 3: 6.0, 4: 5.0, 5: 4.0, 6: 3.0}},
    ),
    "evaluations alone count the steps of a run they do not reach the end of": (
        "".join(f"[{at}/900] valid loss: {at}.5 accuracy: 47.5, norm_ED: 6.25\n" for at in (72, 74, 76)),
        "step",
        {"eval_loss": {72: 72.5, 74: 74.5, 76: 76.5}},
    ),
    "... with other lines between": (
        "".join(f"[{at}/900] valid loss: {at}.5 accuracy: 47.5\nbest score: 12.5\n" for at in (2, 4, 6)),
        "step",
        {"eval_loss": {2: 2.5, 4: 4.5, 6: 6.5}},
    ),
    "MXNet for R names the epoch in brackets, where it ends": (
        "".join(
            "".join(f"Batch [{at}] Speed: 26130.5 samples/sec Train-accuracy=0.{epoch}{at}\n" for at in (20, 40, 60))
            + f"[{epoch}] Train-accuracy=0.{epoch}7\n[{epoch}] Validation-accuracy=0.{epoch}25\n"
            for epoch in (1, 2)
        ),
        "step",
        {
            "accuracy": {20: 0.12, 40: 0.14, 60: 0.17, 80: 0.22, 100: 0.24, 120: 0.27},
            "eval_accuracy": {60: 0.125, 120: 0.225},
        },
    ),
    "a list that is as wide as the terminal goes on in the next line, in whatever names": (
        "".join(
            f"---- Step {at} ----\nepisode/score {at}.5 / train/model_loss_mean 2.5 / stats/entropy 1.5 /\n"
            f"train/action_mag {at}.25 / train/adv_mean -0.5 /\ntrain/policy_entropy_mean 2.1 / policy_fps {at}\n\n"
            for at in (10, 20)
        ),
        "step",
        {"action_mag": {10: 10.25, 20: 20.25}, "policy_fps": {10: 10, 20: 20}, "reward": {10: 10.5, 20: 20.5}},
    ),
    "an epoch that ended before the fragment": (
        "Epoch 30 finished.\nStep: 7/90, Loss: 2.5\nStep: 8/90, Loss: 2.25\n",
        "step",
        {"loss": {7: 2.5, 8: 2.25}},
    ),
    "an evaluation behind the end of an epoch is of that epoch": (
        "".join(
            f"Step: 20/20, Loss: {3.0 - epoch}\nEpoch {epoch} completed.\nval loss: {4.0 - epoch}\n" for epoch in (1, 2)
        ),
        "step",
        {"loss": {20: 2.0, 40: 1.0}, "eval_loss": {20: 3.0, 40: 2.0}},
    ),
    "of how many rows a mean is, with a full stop": (
        "".join(
            f"Epoch 1, batch {at}, loss[loss=0.5, cut_loss={at}.25, over 532.00 frames.], tot_loss[loss=0.75, "
            f"cut_loss=9.5, over 31213.18 frames.], batch size: 18, lr: 3.00e-03\n"
            for at in (5, 6)
        ),
        "step",
        {"cut_loss": {5: 5.25, 6: 6.25}, "tot_loss/cut_loss": {5: 9.5, 6: 9.5}},
    ),
    "the rank behind the place in the code": (
        "".join(
            f"2024-02-03 21:05:2{at},8{rank}1 INFO [train.py:908] ({rank}/4) Epoch 1, batch {at}, loss[loss={rank}.5, "
            f"over 24.00 frames.], tot_loss[loss={rank}.75, over 46.00 frames.], lr: 2.41e-03\n"
            for at in (5, 6)
            for rank in (1, 0, 3)
        ),
        "step",
        {"loss": {5: 1.5, 6: 1.5}, "loss/rank_0": {5: 0.5, 6: 0.5}, "tot_loss/loss/rank_3": {5: 3.75, 6: 3.75}},
    ),
    "a record behind a bar": (
        f"Iter 10: Train loss 3.5, It/sec 0.25\n  1%|{_BAR}| 10/900 [00:32<53:42,  3.25s/it, Loss=3.5]"
        "Iter 20: Train loss 3.25, It/sec 0.5\n",
        "step",
        {"loss": {10: 3.5, 20: 3.25}, "It/sec": {10: 0.25, 20: 0.5}},
    ),
    "drawings of one bar without line ends, each cut off": (
        "".join(
            f"| epoch 014:  {at}%| | {at}/35 [00:0{at}<00:36,  1.0s/it, loss=1{at}.5, lr=0.00025, cl"
            for at in (1, 2, 3)
        )
        + "\n",
        "step",
        {"loss": {456: 11.5, 457: 12.5, 458: 13.5}},
    ),
    "a line that a terminal broke within a number": (
        f"| epoch 009 {_PARTS} 0.61 | num_updates 90\n"
        f"| epoch 010 {_PARTS} 0.5\n8 | clip 0.5 | num_updates 100 | wall 1692\n"
        f"| epoch 011 {_PARTS} 0.625\n | clip 0.25 | num_updates 110 | wall 1860\n",
        "step",
        {
            "grad_norm": {90: 0.61, 100: 0.58, 110: 0.625},
            "clip": {100: 0.5, 110: 0.25},
            "elapsed": {100: 1692, 110: 1860},
        },
    ),
    "a line that a terminal broke within a name": (
        "".join(
            f"{_VERL.format(at)}\ngth/mean:33{at}.5 - response_length/max:1024.0 - timing_s/gen:29.5\n" for at in (8, 9)
        ),
        "step",
        {"completion_length": {8: 338.5, 9: 339.5}, "entropy": {8: 0.25, 9: 0.25}},
    ),
    "the mean over the last episodes, and the length of each": (
        "".join(
            f"Average return in last 50 consecutive episodes: -11{at}.5 steps: {steps} Episode return: -10{at}.25\n"
            for at, steps in enumerate((99, 67, 286, 72, 73, 112, 101))
        ),
        "record",
        {
            "reward": {at + 1: -100.25 - at for at in range(7)},
            "episode_length": dict(enumerate((99, 67, 286, 72, 73, 112, 101), start=1)),
        },
    ),
    "identifiers and numbers between commas": (
        "Iter 10: Train loss 0.5, KL 0.25, r1_count_xml mean 0.281, r1_int_reward_func std 0.5, Trained Tokens 970\n"
        "Iter 20: Train loss 0.25, KL 0.5, r1_count_xml mean 0.375, r1_int_reward_func std 0.25, Trained Tokens 1940\n",
        "step",
        {"r1_count_xml mean": {10: 0.281, 20: 0.375}, "num_tokens": {10: 970, 20: 1940}},
    ),
    "paces behind one another": (
        "Epoch[0] Batch [50]\tSpeed: 71.5 samples/sec 1971.5 tokens/sec 1.25 updates/sec\tperplexity=29.5\n"
        "Epoch[0] Batch [100]\tSpeed: 57.5 samples/sec 1958.5 tokens/sec 1.5 updates/sec\tperplexity=29.25\n",
        "step",
        {
            "tokens/sec": {50: 1971.5, 100: 1958.5},
            "updates/sec": {50: 1.25, 100: 1.5},
            "perplexity": {50: 29.5, 100: 29.25},
        },
    ),
    "a time behind an evaluation that there was not yet": (
        "".join(
            f"iter {at} | step {at}: loss train (curr): 1.5, val (prev val iter): None | iter time: 29{at}.5 ms\n"
            for at in (1, 2)
        ),
        "step",
        {"step_time": {1: 0.2915, 2: 0.2925}},
    ),
    "the loss of a letter, next to its mean over an epoch": (
        "".join(f"Epoch: [1]  [{at}/60]  lr: 0.000026  closs: 1.{at} (1.5)  time: 4.5\n" for at in (10, 20, 30))
        + "Averaged stats: lr: 0.000026  closs: 1.9 (1.8)\n",
        "step",
        {"loss": {10: 1.1, 20: 1.2, 30: 1.3}},
    ),
    "one record of counters": (
        "[batch=366/480]:\n  Train time/batch: 365\n  Train time/sample: 934\n  Train time/token: 3827\n"
        "  Train loss/train/total: 1.5\n",
        "step",
        {"loss": {366: 1.5}, "num_tokens": {366: 3827}, "num_samples": {366: 934}, "batches_done": {366: 365}},
    ),
    "iterations of a table": (
        "Itn.  NER Loss  NER P.  NER R.  NER F.\n0     2.500     4.500   7.500   5.882\n"
        "1     2.250     4.250   8.500   6.125\n2     2.000     4.750   9.500   7.250\n",
        "step",
        {"loss": {0: 2.5, 1: 2.25, 2: 2.0}, "eval_ner_f1": {0: 5.882, 1: 6.125, 2: 7.25}},
    ),
    "seconds that a pace is worked out of": (
        "".join(
            f"completed step: {at}, seconds: {seconds}, Tokens/s/device: {800 / seconds}, loss: 2.5\n"
            for at, seconds in ((1, 0.5), (2, 10.0), (3, 12.5))
        ),
        "step",
        {"step_time": {1: 0.5, 2: 10.0, 3: 12.5}},
    ),
    "an elapsed time of each record": (
        "".join(
            f"Iteration: {at}\nLoss: 0.5\nElapsed time {time} seconds\n"
            for at, time in enumerate((106.5, 98.5, 100.5, 99.5))
        ),
        "step",
        {"step_time": dict(enumerate((106.5, 98.5, 100.5, 99.5)))},
    ),
    "the cost of a constraint and the lengths of episodes": (
        "".join(
            f"step {at}: mean reward: 4.5, mean cost: 0.25, policy loss: 0.5, value loss: 2.5, n/ep: 7, len: 20{at}\n"
            for at in (1, 2)
        ),
        "step",
        {"constraint": {1: 0.25, 2: 0.25}, "episode_length": {1: 201, 2: 202}},
    ),
    "the updates of a record, and all of them": (
        "".join(
            f"[ time:{at}.0s total_exs:2{at}4 epochs:0.0{at} ] {{'exs': 11, 'mean_loss': {at}.5, 'updates': {19 - at}, "
            f"'lr': 0.007, 'clip': 1.0, 'total_train_updates': {151 + 20 * at}}}\n"
            for at in (1, 2)
        ),
        "step",
        {"loss": {171: 1.5, 191: 2.5}, "learning_rate": {171: 0.007, 191: 0.007}},
    ),
    "one row of a table that was wrapped": (
        "05:41:07 | time:123604s total_exs:65720 epochs:1.00 time_left:0s\n    clip  exs  fp16_loss_scalar    lr  \\\n"
        "       0    4            131072 5e-05   \n    ltps  mean_loss  total_train_updates  \\\n   47.01       0.25"
        "               535   \n    train_accuracy   ups  \n           0.75 2.974\n",
        "step",
        {"loss": {535: 0.25}, "accuracy": {535: 0.75}, "loss_scale": {535: 131072}, "ups": {535: 2.974}},
    ),
    "returns of an evaluation in a table": (
        "steps\tepisodes\telapsed\tmean\tmedian\tstdev\tmax\tmin\taverage_v\n"
        "100\t5\t38.5\t-15.5\t-17.5\t4.5\t-7.5\t-18.5\t-2.5\n200\t10\t85.5\t-14.5\t-17.5\t3.5\t-9.5\t-18.5\t-4.5\n",
        "step",
        {"eval_reward": {100: -15.5, 200: -14.5}},
    ),
}


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_each_number_of_a_fragment_is_read_at_its_step_and_under_its_name(tmp_path: Path, fragment: str) -> None:
    text, step_name, metrics = FRAGMENTS[fragment]
    run = read(tmp_path, text)
    assert_holds(run, step_name, metrics)
    assert not run.settings
    if "constraint" in metrics:
        assert "loss" not in run
    assert run.planned.get("step", 0) in (0, 90, 480, 900)


@pytest.mark.parametrize(
    ("name", "quantity"), [("f-score", Quantity.F1), ("time_cost", None), ("train_closs", Quantity.LOSS)]
)
def test_a_word_in_two_parts_means_what_it_means_in_one(name: str, quantity: Quantity | None) -> None:
    role = role_of(name)
    assert (role and role.quantity) == quantity


def _state(folder: Path, text: str, symptom: str = "eval_bad_from_start") -> str:
    (folder / "train.log").write_text(text)
    return next(finding.state for finding in diagnose_run(folder / "train.log").findings if finding.symptom == symptom)


def test_the_line_of_an_evaluator_is_of_evaluation_and_a_clock_parts_no_curve(tmp_path: Path) -> None:
    text = "".join(
        f"[Actor] Actor Steps = {at}00 | Episode Return = {at}.5 | Time Elapsed = {at}.25\n"
        f"[Evaluator] Actor Steps = {at}00 | Episode Return = -{at}.5 | Time Elapsed = {at}.5\n"
        f"[Learner] Actor Steps = {at}00 | Critic Loss = 0.{at} | Time Elapsed = {at}.75\n"
        for at in (1, 2, 3)
    )
    expected: dict[str, Points] = {
        "reward": {100: 1.5, 200: 2.5, 300: 3.5},
        "eval_reward": {100: -1.5, 200: -2.5, 300: -3.5},
    }
    assert_holds(read(tmp_path, text), "step", {**expected, "value_loss": {100: 0.1, 200: 0.2, 300: 0.3}})


def test_a_critic_that_is_lost_together_with_the_policy_is_not_the_cause(tmp_path: Path) -> None:
    for policy, state in (("0.5", "present"), ("inf", "unknown")):
        text = f"step: 1|act_loss: 0.5|cri_loss: 3.5\nstep: 2|act_loss: {policy}|cri_loss: inf\n"
        assert _state(tmp_path, text, "value_loss_high") == state


def test_a_loss_that_evaluation_sums_is_not_far_above_that_of_training(tmp_path: Path) -> None:
    lines = [f"step {at} loss {6.5 - at / 400}" for at in range(100, 600, 100)]
    far = [*lines, "step 500 val loss 131.5"]
    assert _state(tmp_path, "\n".join(far)) == "present"
    assert _state(tmp_path, "\n".join([*far, "step 500 val perplexity 187.5"])) == "unknown"


def test_the_first_evaluation_of_a_log_that_begins_in_a_late_epoch_is_not_the_first(tmp_path: Path) -> None:
    for epoch, state in ((1, "present"), (50, "unknown")):
        lines = [f"epoch {epoch} step {at} loss 0.05" for at in range(100, 600, 100)]
        text = "\n".join([*lines, f"epoch {epoch} step 500 val loss 5.5"])
        assert _state(tmp_path, text) == state


def test_a_loss_that_is_gone_at_the_next_step_is_not_that_of_a_model_that_sees_what_it_predicts(tmp_path: Path) -> None:
    for steps, state in (((1, 2, 3), "unknown"), ((1, 90, 180), "present")):
        values = zip(steps, (10.75, 1.5e-6, 1e-6), strict=True)
        text = "".join(f"epoch 0 iter {at}: train loss {value}\n" for at, value in values)
        text = f"number of parameters: 0.11M, vocab 50304, tokens 154830\n{text}"
        assert _state(tmp_path, text, "loss_too_low") == state
