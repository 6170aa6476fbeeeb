"""How far a run was to go, by the counters of its log: "Epoch 3/10" in every way in which it is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.logs.reading import read

from mldebug_mcp.logs.kinds import plan_of

SPELLINGS = [
    "Epoch {epoch}/10: loss={loss:.4f}",
    "Epoch [{epoch}/10] loss: {loss:.4f}",
    "Epoch: [{epoch}/10] loss {loss:.4f}",
    "Epoch ({epoch}/10) loss: {loss:.4f}",
    "Epoch {epoch:02d}/10 | train loss {loss:.4f}",
    "Epoch - {epoch}/10 - loss: {loss:.4f}",
    "Epoch #{epoch}/10: loss {loss:.4f}",
    "epoch {epoch} of 10 - loss {loss:.4f}",
    "Epoch {epoch} (of 10): loss {loss:.4f}",
    "Epoch {epoch} out of 10: loss {loss:.4f}",
    "epoch={epoch}/10 loss={loss:.4f}",
    "[{epoch}/10] loss: {loss:.4f}",
    "[Epoch {epoch}/10] [Batch 30/30] [D loss: {loss:.4f}] [G loss: {loss:.4f}]",
    "Epoch [{epoch}/10], Step [100/100], Loss: {loss:.4f}",
    "[{before}/10][49/50]\tLoss_D: {loss:.4f}\tLoss_G: {loss:.4f}",
    "Epoch {epoch}/10\n----------\ntrain Loss: {loss:.4f} Acc: 0.5\nval Loss: {loss:.4f} Acc: 0.5\n",
    "Epoch {epoch}/10\n100/100 - 1s - loss: {loss:.4f} - val_loss: {loss:.4f}",
    "Epoch {epoch}/10\n100/100 [==============================] - 1s 10ms/step - loss: {loss:.4f}",
    "Epoch {epoch}/10\nstep 10/30 loss {loss:.4f}\nstep 20/30 loss {loss:.4f}\nstep 30/30 loss {loss:.4f}",
    "Epoch {epoch}/10\nbatch 10: loss {loss:.4f}\nbatch 20: loss {loss:.4f}\nbatch 30: loss {loss:.4f}",
    "Epoch {before}/9: 100%|████| 50/50 [00:01<00:00, 50.00it/s, v_num=0, train_loss={loss:.3f}]",
    "Epoch {epoch}/10: 100%|████| 50/50 [00:01<00:00, 50.00it/s, loss={loss:.3f}]",
    "epochs:  {epoch}0%|███       | {epoch}/10 [00:01<00:00, 50.00it/s, loss={loss:.3f}]",
    "step {epoch}0/100: loss={loss:.4f}",
    "step {epoch}0 of 100 loss={loss:.4f}",
    "{epoch}0/100 | loss={loss:.4f}",
    "Iter [{epoch}0/100] loss: {loss:.4f}",
    "Episode {epoch}/10: reward: {loss:.4f}",
    "2026-01-02 10:00:00 INFO trainer: Epoch {epoch}/10 loss {loss:.4f}",
]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_log_that_counts_to_its_end_tells_how_much_of_it_is_done(tmp_path: Path, spelling: str) -> None:
    lines = [spelling.format(epoch=epoch, before=epoch - 1, loss=3 / epoch) for epoch in range(1, 11)]
    stopped, whole = (read(tmp_path, "\n".join(lines[:count]) + "\n") for count in (3, 10))
    assert (stopped.ending.how, whole.ending.how) == ("open", "finished")
    plan = plan_of(stopped)
    assert plan is not None
    assert plan.reached / plan.planned == pytest.approx(0.2 if plan.from_zero else 0.3, abs=0.003)


def test_a_run_that_is_killed_within_its_last_epoch_is_not_finished(tmp_path: Path) -> None:
    lines = [f"Epoch {epoch}/4\n" + "".join(f"batch {at}: loss 1.{at}\n" for at in range(8)) for epoch in range(1, 5)]
    assert read(tmp_path, "".join(lines)).ending.how == "finished"
    killed = read(tmp_path, "".join(lines[:3]) + "Epoch 4/4\nbatch 0: loss 1.0\nbatch 1: loss 1.1\n")
    plan = plan_of(killed)
    assert plan is not None
    assert (killed.ending.how, plan.reached) == ("open", 3.25)


def test_batches_of_an_epoch_are_no_plan_of_the_run(tmp_path: Path) -> None:
    lines = [f"step {step}/5 loss: {2 - epoch / 10:.2f}" for epoch in range(4) for step in range(1, 6)]
    assert read(tmp_path, "\n".join(lines) + "\n").ending.how == "open"


def test_a_configured_plan_comes_before_the_counters_of_the_log(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"num_train_epochs": 20}', encoding="utf-8")
    lines = [f"Epoch {epoch}/10: loss={3 / epoch:.4f}" for epoch in range(1, 11)]
    plan = plan_of(read(tmp_path, "\n".join(lines) + "\n"))
    assert plan is not None
    assert plan.planned == 20


def test_rows_above_the_first_metric_and_the_plan_of_a_heading_are_those_of_its_block(tmp_path: Path) -> None:
    block = "  Learning iteration {0}/1500\n   action noise: {1}\n   Mean reward: {1}\n   Total timesteps: {2}\n\n"
    run = read(tmp_path, "".join(block.format(step, 1.5 + step, 98304 * (step + 1)) for step in range(40)))
    assert run.planned == {"step": 1500}
    assert run["action noise"].value.tolist() == [1.5 + step for step in range(40)]
    assert run["reward"].step.tolist() == [*range(40)]


def test_the_steps_that_torchtitan_names_in_a_sentence_are_the_plan(tmp_path: Path) -> None:
    head = (
        "[titan] 2026-03-02 10:12:10,100 - root - INFO - Training starts at step 1, with local batch size 2, global "
        "batch size 64, gradient accumulation steps 1, sequence length 8192, total steps 1000 (warmup 200)\n"
    )
    line = "[titan] 2026-03-02 10:{0:02}:01,123 - root - INFO - step: {0}0  loss: {1}  grad_norm:  1.2  tps: 5,568\n"
    run = read(tmp_path, head + "".join(line.format(at, 9 - at / 9) for at in range(1, 42)))
    plan = plan_of(run)
    assert plan is not None
    assert (plan.reached, plan.planned) == (410, 1000)
    assert run.setting("warmup_steps") == 200
    assert run.setting("per_device_train_batch_size") == 2
    assert run.setting("sequence_length") == 8192


def test_a_part_of_the_last_epoch_does_not_show_that_the_run_finished(tmp_path: Path) -> None:
    line = "epoch: [{}/{}], global_step: {}, lr: 0.001, loss: {}\n"
    last = read(tmp_path, "".join(line.format(2, 2, 100 + at, 9 - at / 9) for at in range(5)))
    assert (plan_of(last), last.ending.how) == (None, "open")
    early = plan_of(read(tmp_path, "".join(line.format(30, 500, 100 + at, 9 - at / 9) for at in range(5))))
    assert early is not None
    assert (early.reached, early.planned) == (30, 500)
