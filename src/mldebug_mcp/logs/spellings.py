"""The one table of metric names: canonical name ← spellings.

Canonical names are those of the Hugging Face Trainer (`loss`, `eval_loss`, `grad_norm`, `learning_rate`, `epoch`,
`step`) and of TRL for preference optimisation and RL. To teach the readers a new spelling, add it here; nothing else
needs to change. It is written as `names.normal` makes it: lower case, runs of spaces and hyphens as one underscore.
"""

from __future__ import annotations

SPELLINGS: dict[str, tuple[str, ...]] = {
    "step": (
        "step", "global_step", "train/global_step", "trainer/global_step", "_step", "global_steps", "current_steps",
        "iteration", "iter", "iters", "num_updates", "nupdates", "update", "train_steps", "training_step", "train_step",
        "optimizer_step", "steps", "batch_idx", "train_iter", "train_num_updates", "valid_num_updates", "trainer_step",
        "timesteps",
        "total_timesteps", "time/total_timesteps", "timestepssofar", "totalenvinteracts", "misc/total_timesteps",
        "total_env_steps", "num_timesteps", "time_steps", "itr", "global_step/max_steps", "t_env", "total_t",
        "totalenvsteps", "num_env_steps_sampled_lifetime", "timesteps_total", "num_env_steps_sampled",
        "training_iteration", "round", "server_round", "communication_round", "frame", "frames", "num_frames",
        "total_frames", "env_steps", "env_step",
        "progress/kimg", "acc_iter",
    ),
    "epoch": ("epoch", "train/epoch", "epochs", "current_epoch", "progress/epoch", "num_epoch", "epch", "train_epoch"),
    "episode": ("episode", "episodes", "i_episode", "episode_num", "episode_number", "num_episodes"),
    "episode_length": (
        "rollout/ep_len_mean", "ep_len_mean", "episode_length", "eplenmean", "eplen", "ep_len", "mean_episode_length",
        "episode_len_mean", "mean_ep_length", "ep_length_mean", "average_episode_length", "episode/length",
        "episode_lengths", "charts/episodic_length", "episodic_length", "env_runners/episode_len_mean", "episode_steps",
        "evaluation/average_episode_length", "episode_t", "environment/episode_length", "metrics/averageepisodelength",
        "train/mean_episode_length", "avgs", "meanlen",
    ),
    "loss": (
        "loss", "train/loss", "main/loss", "train_avg_loss", "train_loss", "training_loss", "loss/train", "lm_loss",
        "train_loss_step", "loss_step",
        "tr_loss", "total_loss", "loss/total", "train/total_loss", "train/lm_loss", "train/ce_loss", "lm_loss_value",
        "train/loss_step", "actor/loss", "train_loss_epoch", "train/loss_epoch", "loss_epoch", "loss:sum",
        "loss/global_avg_loss", "loss_metrics/global_avg_loss", "metrics/train/loss", "losses/total_loss",
        "loss/train/total", "train_loss/train/total", "train/crossentropyloss", "train_nll", "average_loss", "avg_loss",
        "avr_loss", "loss/average", "training/loss", "step_loss", "trl", "ppo/loss/total", "mean_loss", "loss/current",
        "reduced_train_loss", "epoch_loss", "train_total_loss", "train_epoch_loss", "l_pix", "loss/loss",
        "cost", "train_cost", "cross_entropy_loss", "tot_loss", "loss_total", "total_loss_avg", "overall_loss",
        "xent", "objf", "current_batch_average_objf", "glb_avg_objf", "cur_avg_objf", "lossvalue",
        "embedding_loss", "gpt_loss", "train/gpt_loss", "preference_loss", "train/preference_loss",
        "损失", "训练损失", "損失", "訓練損失", "손실", "потери", "pérdida", "perte", "verlust", "perda",
    ),
    "eval_loss": (
        "eval_loss", "eval/loss", "val_loss", "validation_loss", "valid_loss", "vali_loss", "val/loss", "valid/loss",
        "validation/loss", "loss/val", "loss/valid", "loss/eval", "test_avg_loss", "test_loss", "test/loss", "dev_loss",
        "lm_loss_validation", "eval/lm_loss", "eval_lm_loss", "eval_average_loss", "tel", "eval_lm_loss_value",
        "eval_total_loss", "eval_avg_loss", "cv_loss", "holdout_loss", "loss/test",
        "test_set_loss", "validation_set_loss", "val_set_loss", "valid_set_loss", "dev_set_loss", "eval_set_loss",
        "eval_loss_total", "val_loss_epoch", "validation_loss_epoch", "metrics/eval/loss", "eval_epoch_loss", "te_loss",
        "eval_embedding_loss", "valid_loss/mse", "eval_gpt_loss", "eval/eval_gpt_loss",
        "验证损失", "测试损失", "検証損失", "검증_손실",
        "clip_val_loss", "val_avg_objf",
    ),
    "grad_norm": (
        "grad_norm", "train/grad_norm", "gradient_norm", "global_grad_norm", "grad_norm/total", "gnorm", "grads/norm",
        "norm", "train/grad_norm_step", "grad_norm_total", "total_grad_norm", "grad/norm", "optimizer/grad_norm",
        "grad_2.0_norm_total", "train/global_gradient_norm", "actor/grad_norm",
        "l2_norm/grad/global", "grdn", "train_gnorm", "optim/total_grad_norm", "global_gradient_norm",
        "train_grad_norm", "grad_norm_step", "grad_gnorm", "gradients_default_optimizer_global_norm", "grad/param_norm",
    ),
    "learning_rate": (
        "learning_rate", "lr", "train/learning_rate", "train/lr", "lr/group0", "lr_group0", "optim/lr", "lr/pg0",
        "lr_adamw", "cur_lr_avg", "lr_adam", "optimizer/lr", "actor/lr", "optim/learning_rate_group0", "lr_abs",
        "train_lr",
        "optim/lr_(group_0)", "x/lr0", "actor_lr", "cur_lr", "ppo/learning_rate", "charts/learning_rate", "base_lr",
        "学习率", "学習率", "info/last_lr", "loss/learning_rate", "policy/learning_rate", "current_lr",
    ),
    "loss_scale": ("loss_scale", "train/loss_scale", "grad_scale", "scaler_scale", "loss_scaler", "train/loss_scaler",
        "train_loss_scale", "amp_scaler", "fp16_grad_scale"),
    "skipped_iterations": ("number_of_skipped_iterations", "skipped_iterations", "skipped"),
    "nan_iterations": ("number_of_nan_iterations", "nan_iterations"),
    "accuracy": (
        "accuracy", "acc", "accu", "train/accuracy", "main/accuracy", "train_accuracy", "train_acc", "train/acc",
        "train_acc_epoch",
        "train_acc_step", "acc@1", "top1_acc", "train_top1", "token_acc", "binary_accuracy", "categorical_accuracy",
        "sparse_categorical_accuracy", "准确率", "训练准确率", "正解率", "정확도", "точность",
        "acc1", "train_acc1", "tr_acc", "prec@1", "top1", "accuracy_top_1", "accuracy/top1",
    ),
    "eval_accuracy": (
        "eval_accuracy", "eval/accuracy", "val_accuracy", "val_acc", "val_accu", "valid_acc", "validation_accuracy",
        "test_acc", "test_accuracy", "val/accuracy", "eval_acc",
        "eval_acc@1", "eval_top1", "eval_token_acc", "val_binary_accuracy", "val_categorical_accuracy",
        "val_sparse_categorical_accuracy", "验证准确率", "测试准确率",
        "eval_acc1", "te_acc", "test_acc1", "val_acc1", "valid_acc1", "eval_prec@1",
        "val_top1", "test_top1", "eval_accuracy_top_1", "eval_accuracy/top1", "metrics/accuracy_top1",
    ),
    "mean_token_accuracy": ("mean_token_accuracy", "train/mean_token_accuracy"),
    "entropy": (
        "entropy", "train/entropy", "policy_entropy", "actor/entropy", "policy/entropy_avg", "ppo/policy/entropy",
        "losses/entropy", "loss/policy_entropy", "loss_ent", "actor/entropy_loss", "objective/entropy",
        "policy/entropy", "train/entropy_loss", "mean_entropy_loss", "mean_entropy", "loss/entropy", "meanentropy",
    ),
    "entropy_loss": ("entropy_loss",),
    "kl": (
        "kl", "train/kl", "objective/kl", "actor/kl_loss", "policy/kl", "mean_kl", "kl_div", "loss_kl", "mean_kl_loss",
    ),
    "approx_kl": (
        "approx_kl", "train/approx_kl", "losses/approx_kl", "approxkl", "policy/approxkl_avg", "actor/ppo_kl",
        "approx_kl_mean", "loss/approxkl", "ppo/policy/approxkl",
    ),
    "reward": (
        "reward", "train/reward", "rollout/ep_rew_mean", "ep_rew_mean", "eprewmean", "averageepret", "episode_reward",
        "mean_reward", "charts/episodic_return", "episodic_return", "env/reward_mean", "objective/scores",
        "average_undiscounted_return_per_training_episode",
        "critic/rewards/mean", "ep_reward_mean", "train/episode_reward", "ppo/mean_scores", "env_reward_mean",
        "average_episode_return", "mean_episode_rewards", "episode_return", "ep_ret", "return", "mean_episode_reward",
        "train/mean_reward", "average_return", "mean_total_reward", "episode_reward_mean", "episode_return_mean",
        "average_episode_rewards", "average_episode_reward", "avg_reward", "average_reward", "return_mean",
        "episode_rewards", "episode_returns", "rewards", "returns", "episode/score", "evaluation/averagereturn",
        "mean/median_reward", "environment/cumulative_reward",
        "reward/total_reward_(mean)", "metrics/averagereturn", "rewards/step", "reward/reward",
        "rollout/return_mean", "rew", "avgr", "meanrew",
        "奖励", "平均奖励", "总奖励", "報酬", "平均報酬", "보상", "награда", "recompensa",
    ),
    "eval_reward": (
        "eval_reward", "evaluation", "eval_return", "average_undiscounted_return_per_evaluation_episode",
        "eval/episode_reward", "eval/mean_reward", "test_reward", "test/reward", "eval/avg_reward",
    ),
    "reward_std": ("reward_std", "train/reward_std", "env/reward_std"),
    "frac_reward_zero_std": ("frac_reward_zero_std", "train/frac_reward_zero_std"),
    "completion_length": (
        "completions/mean_length", "completion_length", "train/completions/mean_length", "response_length/mean",
        "train/completion_length", "response_length",
    ),
    "completions/clipped_ratio": (
        "completions/clipped_ratio", "train/completions/clipped_ratio", "response_length/clip_ratio",
    ),
    "clip_ratio": (
        "clip_ratio/region_mean", "clip_ratio", "train/clip_ratio", "train/clip_fraction", "clip_fraction",
        "losses/clipfrac", "policy/clipfrac_avg", "actor/pg_clipfrac", "train/clip_ratio/region_mean", "clipfrac",
        "loss/clipfrac", "ppo/policy/clipfrac",
    ),
    "policy_ratio": ("val/ratio",),
    "value_loss": (
        "value_loss", "train/value_loss", "losses/value_loss", "loss/value_avg", "critic/vf_loss", "lossv", "lossq",
        "train/critic_loss", "critic_loss", "vf_loss", "loss_vf_loss", "loss/value_loss", "ppo/loss/value", "q_loss",
        "value_function_loss", "mean_value_loss", "value_loss_avg", "losses/c_loss", "loss/value_function",
        "losses/qf_loss", "losses/qf1_loss", "losses/td_loss", "qf_loss", "qf1_loss", "td_loss", "loss/critic_loss",
        "loss/critic", "loss/critic1", "loss/vf", "critic_1_loss", "critic1_loss",
    ),
    "policy_loss": (
        "policy_gradient_loss", "train/policy_gradient_loss", "losses/policy_loss", "actor/pg_loss", "losspi",
        "policy_loss", "train/actor_loss", "loss/policy_avg", "loss_pol_surr", "loss/policy_loss", "ppo/loss/policy",
        "mu_loss", "surrogate_loss", "actor_loss", "mean_surrogate_loss", "losses/a_loss", "policy_loss_avg",
        "loss/surrogate", "losses/actor_loss", "loss/actor", "loss/actor_loss",
    ),
    "explained_variance": ("explained_variance", "train/explained_variance", "losses/explained_variance",
        "ev_tdlam_before", "vf_explained_var", "misc/explained_variance", "ppo/val/var_explained", "explained_var"),
    "rewards/chosen": ("rewards/chosen", "train/rewards/chosen", "chosen_reward", "chosen_rewards", "rewards_chosen"),
    "rewards/rejected": (
        "rewards/rejected", "train/rewards/rejected", "rejected_reward", "reject_reward", "rejected_rewards",
        "rewards_rejected",
    ),
    "rewards/margins": ("rewards/margins", "train/rewards/margins"),
    "rewards/accuracies": ("rewards/accuracies", "train/rewards/accuracies"),
    "logps/chosen": ("logps/chosen", "train/logps/chosen"),
    "logps/rejected": ("logps/rejected", "train/logps/rejected"),
    "num_tokens": ("num_tokens", "train/num_tokens", "num_input_tokens_seen", "tokens_seen", "consumed_tokens"),
    "step_time": (
        "step_time", "iter_time", "time_per_step", "elapsed_time_per_iteration_(ms)", "dt", "step_time_ms",
        "train/step_time", "batch_time", "time/step", "timing_s/step", "updt_s", "step_time_(s)", "iter_time_(s)",
        "elapsed_time_per_iteration_(s)", "time_per_iteration", "perf/time_per_step", "step_avg", "time_this_iter_s",
        "ms/batch",
        "elapsed_time_per_iteration_ms", "train_step_timing_in_s", "per_step_time",
        "batch_(t)", "batch_cost", "avg_batch_cost", "iter_time_ms", "batch_time_ms", "time_per_step_ms", "ms_per_step",
        "ms_per_iter", "ms/step", "step_ms", "time_per_iter", "time_per_batch", "sec_per_step", "seconds_per_step",
        "s_per_step", "step_time_s", "step_time_sec", "step_duration", "iteration_time", "iteration_time_ms",
    ),
    "data_time": (
        "data_time", "data_wait", "train/data_time", "time/data", "data_loading_time", "data_s", "timing_s/data",
        "data_(t)", "data_cost", "reader_cost", "avg_reader_cost",
    ),
    "elapsed": (
        "elapsed", "_runtime", "time/time_elapsed", "timeelapsed", "time_elapsed", "wall_time", "elapsed_time",
        "time_total_s", "wall", "train_wall", "total_time", "train_time", "walltime", "train_train_wall",
    ),
    "timestamp": ("timestamp", "_timestamp", "unix_time", "time/unix"),
    "memory": (
        "memory", "gpu_mem", "memory/max_reserved(gib)", "max_memory_allocated", "gpu_memory", "memory_gb",
        "peak_memory", "mem", "system/gpu.0.memoryallocated", "memory/max_active(gib)",
        "memory/max_active_(gib)", "memory/max_allocated_(gib)", "memory/max_alloc", "memory/max_reserved",
        "memory/device_reserved_(gib)", "max_mem", "gpu_mem_gb", "gpu_memory_gb", "peak_memory_gb",
    ),
}  # fmt: skip
"""Where a record has several spellings of one metric, the earlier one wins."""

FACTORS: dict[str, float] = {
    "train/entropy_loss": -1.0,  # Stable-Baselines3 logs minus the mean entropy (ppo.py: entropy_loss = -mean(entropy))
    "elapsed_time_per_iteration_(ms)": 1e-3,
    "step_time_ms": 1e-3,
    "elapsed_time_per_iteration_ms": 1e-3,
    "ms/batch": 1e-3,
    "iter_time_ms": 1e-3,
    "batch_time_ms": 1e-3,
    "time_per_step_ms": 1e-3,
    "ms_per_step": 1e-3,
    "ms_per_iter": 1e-3,
    "ms/step": 1e-3,
    "step_ms": 1e-3,
    "iteration_time_ms": 1e-3,
    "objf": -1.0,  # Kaldi maximises its objective function, a log-probability per frame
    "current_batch_average_objf": -1.0,
    "glb_avg_objf": -1.0,
    "cur_avg_objf": -1.0,
    "val_avg_objf": -1.0,
}
"""Spellings whose numbers are the canonical metric times a factor: times are in seconds."""

DISCRIMINATOR_LOSSES = frozenset({
    "d_loss", "loss_d", "discriminator_loss", "disc_loss", "dloss", "lossd", "errd", "train/d_loss", "loss/d", "d/loss",
    "discriminator/loss", "loss/discriminator", "loss_discriminator", "loss/d/loss", "train/discriminator_loss",
    "train/disc_loss",
})  # fmt: skip
GENERATOR_LOSSES = frozenset({
    "g_loss", "loss_g", "generator_loss", "gen_loss", "gloss", "lossg", "errg", "train/g_loss", "loss/g", "g/loss",
    "generator/loss", "loss/generator", "loss_generator", "loss/g/loss", "train/generator_loss", "train/gen_loss",
})  # fmt: skip
"""What the losses of a GAN's two networks are called. They keep their own names: no trainer gives them others."""

OUTPUTS_ON_REAL = frozenset({"d(x)", "d_x", "dx", "d_real", "d_real_prob", "d_real_score", "real_score", "prob_real"})
OUTPUTS_ON_GENERATED = frozenset({
    "d(g(z))", "d_g_z", "d_g_z1", "d_gz", "dgz", "d_fake", "d_fake_prob", "d_fake_score", "fake_score", "prob_fake",
})  # fmt: skip
"""What a discriminator's mean output is called; some call its loss so."""
