"""The same run under the names of another library has the same causes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.restyle.stories import STORIES
from tests.restyle.story import Quantity, Story

from mldebug_mcp import diagnose_run

MOST_MOVED = 0.05
SPELLINGS: dict[Quantity, str] = {
    ("train", "loss"): "loss train/loss train_loss training_loss Loss/train lm_loss loss_train trainer/loss tr_loss "
    "loss_metrics/global_avg_loss",
    ("eval", "loss"): "eval_loss eval/loss val_loss validation_loss Loss/val val/loss loss_val dev_loss valid_loss "
    "validation_metrics/loss",
    ("train", "accuracy"): "accuracy train/acc train_acc acc training_accuracy Acc/train acc_train top1",
    ("eval", "accuracy"): "eval_accuracy eval/acc val_acc validation_accuracy Acc/val val/acc1 acc_val dev_acc",
    ("eval", "perplexity"): "eval_perplexity eval/ppl val_ppl validation_perplexity valid_ppl val/perplexity ppl_val",
    ("train", "gradient_norm"): "grad_norm train/grad_norm gnorm global_grad_norm optim/grad_norm grad_norm_preclip "
    "total_grad_norm gradient_norm grads/global_norm grad_l2_norm",
    ("train", "learning_rate"): "learning_rate train/lr lr lr-AdamW optim/lr lr_group0 current_lr opt/lr last_lr",
    ("train", "loss_scale"): "loss_scale grad_scale amp_scale scaler_scale train/loss_scale",
    ("train", "step_time"): "step_time train/step_time iter_time time_per_step perf/step_s batch_time s/it",
    ("train", "data_wait"): "data_time perf/data_wait dataload_s data_load_time t_data time/data wait_s",
    ("train", "throughput"): "tokens_per_second perf/tok_s tok/s tokens_per_sec throughput(tps) tgs tokens/s",
    ("train", "device_memory"): "memory_bytes gpu_mem_bytes mem-allocated-bytes peak_memory_bytes vram_bytes",
    ("train", "host_memory"): "rss_bytes host_mem_bytes ram_bytes cpu_mem_bytes host/rss_bytes",
    ("train", "reward"): "reward train/reward rew mean_reward return ep_ret episode_reward reward_mean "
    "critic/rewards/mean rollout/ep_rew_mean",
    ("train", "reward_std"): "reward_std group_reward_std within_group_reward_std rewards/group_std group_std",
    ("train", "kl"): "kl objective/kl kl_ref ref_kl mean_kl kl_div kl_penalty per_token_kl actor/kl_loss",
    ("train", "entropy"): "entropy policy/entropy ent policy_entropy mean_entropy actor/entropy token_entropy",
    ("train", "value_loss"): "value_loss critic_loss vf_loss loss/value critic/vf_loss v_loss losses/value_loss",
    ("train", "policy_loss"): "policy_loss pg_loss loss/policy actor/pg_loss pi_loss losses/policy_loss actor_loss",
    ("train", "clip_fraction"): "clip_ratio clip_frac clipfrac clip_fraction actor/pg_clipfrac losses/clipfrac",
    ("train", "explained_variance"): "explained_variance ev explained_var vf_explained_var critic/vf_explained_var",
    ("train", "completion_length"): "completion_length comp_len gen_len resp_len response_length/mean "
    "completions/mean_length response_len out_len tokens_per_completion answer_len",
    ("train", "reward_margin"): "rewards/margins reward_margin train/rewards/margins margin_reward reward_margins",
    ("train", "pair_accuracy"): "rewards/accuracies pref_acc train/rewards/accuracies preference_accuracy dpo_acc",
}
"""What libraries and loops of one's own call a quantity, in the units of the stories."""
RENAMINGS = range(10)
"""More would give no quantity another spelling: the longest list has ten."""


def _probabilities(story: Story, renaming: int, folder: Path) -> dict[str, float]:
    """Diagnose a run that logs each quantity under one of its spellings, another one in each renaming."""
    folder.mkdir()
    rows: dict[int, dict[str, float]] = {}
    for place, (quantity, curve) in enumerate(story.curves.items()):
        spellings = SPELLINGS[quantity].split()
        name = spellings[(renaming * (place % 3 + 1)) % len(spellings)]
        for step, value in curve.items():
            rows.setdefault(step, {"step": step})[name] = value
    (folder / "metrics.jsonl").write_text("".join(json.dumps(rows[step]) + "\n" for step in sorted(rows)))
    (folder / "config.json").write_text(json.dumps({key: value for key, value in story.settings.items() if value}))
    return {one.cause: one.probability for one in diagnose_run(folder).hypotheses}


@pytest.mark.parametrize("name", ["healthy_language_model", "overfitting", "memory_climbs", "proximal_policy"])
def test_metrics_under_other_names_move_no_cause(name: str, tmp_path: Path) -> None:
    assert _moved(name, tmp_path) == {}


@pytest.mark.parametrize("name", ["group_policy", "preference_pairs"])
def test_metrics_of_answers_under_other_names_move_no_cause(name: str, tmp_path: Path) -> None:
    assert _moved(name, tmp_path) == {}


def _moved(name: str, folder: Path) -> dict[tuple[int, str], float]:
    """Return by how much each renaming moves each cause, where it is more than it may."""
    story = STORIES[name]()
    plain = _probabilities(story, 0, folder / "0")
    moved: dict[tuple[int, str], float] = {}
    for renaming in RENAMINGS[1:]:
        renamed = _probabilities(story, renaming, folder / str(renaming))
        by = {cause: round(renamed.get(cause, 0.0) - plain.get(cause, 0.0), 3) for cause in {*plain, *renamed}}
        moved |= {(renaming, cause): one for cause, one in by.items() if abs(one) > MOST_MOVED}
    return moved
