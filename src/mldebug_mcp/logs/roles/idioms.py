"""Names that mean otherwise than their words say, in the framework that writes them."""

from __future__ import annotations

from mldebug_mcp.logs.roles.quantities import Quantity as Q  # noqa: N817 - a table of them

IDIOMS: dict[str, tuple[Q | None, str, float]] = {
    # Stable-Baselines3 logs minus the mean entropy (ppo.py: entropy_loss = -mean(entropy)), others the entropy.
    "train/entropy_loss": (Q.ENTROPY, "", -1.0),
    "actor/entropy_loss": (Q.ENTROPY, "", 1.0),
    "mean_entropy_loss": (Q.ENTROPY, "", 1.0),
    "loss_ent": (Q.ENTROPY, "", 1.0),
    "actor/kl_loss": (Q.KL, "", 1.0),
    "mean_kl_loss": (Q.KL, "", 1.0),
    "loss_kl": (Q.KL, "", 1.0),
    "actor/ppo_kl": (Q.APPROXIMATE_KL, "", 1.0),
    "actor/loss": (Q.LOSS, "", 1.0),
    "losses/a_loss": (Q.POLICY_LOSS, "", 1.0),
    "losses/c_loss": (Q.VALUE_LOSS, "", 1.0),
    "ev_tdlam_before": (Q.EXPLAINED_VARIANCE, "", 1.0),
    # TRL's PPO trainer: "val" is the value function.
    "ppo/val/var_explained": (Q.EXPLAINED_VARIANCE, "", 1.0),
    "val/ratio": (Q.POLICY_RATIO, "", 1.0),
    "val/ratio_var": (None, "", 1.0),
    "val/clipfrac": (None, "", 1.0),
    "val/clipfrac_avg": (None, "", 1.0),
    "val/num_eos_tokens": (None, "", 1.0),
    "ppo/returns/mean": (None, "", 1.0),  # targets of the value function, beside the scores
    # A mean beside a loss may be that of a reward model; TRL's spread is that within the groups of one prompt.
    "reward_mean": (None, "", 1.0),
    "reward_std": (Q.REWARD_SPREAD, "", 1.0),
    "train/reward_std": (Q.REWARD_SPREAD, "", 1.0),
    "env/reward_std": (Q.REWARD_SPREAD, "", 1.0),
    **dict.fromkeys(
        ("group_std", "reward_group_std", "rewards/group_std", "critic/rewards/group_std", "reward/group_std"),
        (Q.REWARD_SPREAD, "", 1.0),
    ),
    **dict.fromkeys(
        ("zero_std_frac", "frac_zero_std", "rewards/zero_std_frac", "critic/rewards/zero_std_frac"),
        (Q.GROUPS_WITHOUT_SPREAD, "", 1.0),
    ),
    **dict.fromkeys(("amp_scale", "scaler_scale", "scaler/scale"), (Q.LOSS_SCALE, "", 1.0)),
    "ppo/mean_scores": (Q.REWARD, "", 1.0),
    "objective/scores": (Q.REWARD, "", 1.0),
    "critic/rewards/mean": (Q.REWARD, "", 1.0),
    "evaluation/averagereturn": (Q.REWARD, "", 1.0),
    "evaluation/average_episode_length": (Q.EPISODE_LENGTH, "", 1.0),
    "evaluation": (Q.REWARD, "eval", 1.0),
    "avgr": (Q.REWARD, "", 1.0),
    "meanrew": (Q.REWARD, "", 1.0),
    "avgs": (Q.EPISODE_LENGTH, "", 1.0),
    "meanlen": (Q.EPISODE_LENGTH, "", 1.0),
    "episode_t": (Q.EPISODE_LENGTH, "", 1.0),
    "t_env": (Q.STEP, "", 1.0),
    "total_t": (Q.STEP, "", 1.0),
    "_step": (Q.STEP, "", 1.0),  # Weights & Biases counts its calls
    "acc_iter": (Q.STEP, "", 1.0),  # OpenPCDet: accumulated
    "valid_num_updates": (Q.STEP, "", 1.0),  # fairseq: of training, where it was validated
    "global_step/max_steps": (Q.STEP, "", 1.0),  # ms-swift
    "update": (Q.STEP, "", 1.0),  # fairseq: in epochs, beside num_updates
    **dict.fromkeys(("num_epoch", "n_epoch"), (Q.EPOCH, "", 1.0)),
    "completed_step": (Q.STEP, "", 1.0),  # MaxText
    "time/iterations": (None, "", 1.0),  # Stable-Baselines3 counts rollouts
    "time/episodes": (None, "", 1.0),
    **dict.fromkeys(("ltrain", "ltrn"), (Q.LOSS, "", 1.0)),
    **dict.fromkeys(("lval", "lvalid", "ltest", "ldev"), (Q.LOSS, "eval", 1.0)),
    **dict.fromkeys(("trl", "tr_l", "trn_l", "train_l", "l_tr", "l_trn", "l_train"), (Q.LOSS, "", 1.0)),
    **dict.fromkeys(
        (
            "tel",
            "te_l",
            "tst_l",
            "test_l",
            "va_l",
            "val_l",
            "ho_l",
            "dev_l",
            "l_va",
            "l_val",
            "l_test",
            "l_dev",
            "l_ho",
        ),
        (Q.LOSS, "eval", 1.0),
    ),
    "l_pix": (Q.LOSS, "", 1.0),
    "train_nll": (Q.LOSS, "", 1.0),
    "train/ce_loss": (Q.LOSS, "", 1.0),
    "valid_loss/mse": (Q.LOSS, "eval", 1.0),
    "clip_val_loss": (Q.LOSS, "eval", 1.0),
    "norm": (Q.GRADIENT_NORM, "", 1.0),
    "scaler_scale": (Q.LOSS_SCALE, "", 1.0),
    **dict.fromkeys(("l.r.", "l_r"), (Q.LEARNING_RATE, "", 1.0)),
    **dict.fromkeys(("ep", "ep."), (Q.EPOCH, "", 1.0)),  # of an agent an episode: `conventions.abbreviations`
    **dict.fromkeys(("upd", "up."), (Q.STEP, "", 1.0)),
    **dict.fromkeys(("sen.", "nimg", "n_img"), (Q.SAMPLES_SEEN, "", 1.0)),
    **dict.fromkeys(("gtokens", "gtok", "btokens", "btok"), (Q.TOKENS_SEEN, "", 1e9)),
    **dict.fromkeys(("mtokens", "mtok"), (Q.TOKENS_SEEN, "", 1e6)),
    **dict.fromkeys(("kt/s", "ktok/s", "ktok_s", "ktps", "ktokens/s"), (Q.TOKENS_PER_SECOND, "", 1e3)),
    **dict.fromkeys(("m/ep", "m/epoch"), (Q.EPOCH_TIME, "", 60.0)),
    **dict.fromkeys(("s/b", "sec/b"), (Q.STEP_TIME, "", 1.0)),
    "ms/b": (Q.STEP_TIME, "", 1e-3),
    # Megatron's and DeepSpeed's timers count milliseconds.
    **dict.fromkeys(("forward_compute", "fwd_microstep"), (Q.FORWARD_TIME, "", 1e-3)),
    **dict.fromkeys(("backward_compute", "bwd_microstep"), (Q.BACKWARD_TIME, "", 1e-3)),
    "batch_generator": (Q.DATA_TIME, "", 1e-3),
    "step_microstep": (Q.OPTIMIZER_TIME, "", 1e-3),
    "acc_step": (None, "", 1.0),  # of accumulation
    "acc_steps": (None, "", 1.0),
    "l_g_gan": (Q.GENERATOR_LOSS, "", 1.0),  # BasicSR
    "x/lr0": (Q.LEARNING_RATE, "", 1.0),
    "token_acc": (Q.ACCURACY, "", 1.0),  # ms-swift has no other
    "eval_token_acc": (Q.ACCURACY, "eval", 1.0),
    "metrics/accuracy_top1": (Q.ACCURACY, "eval", 1.0),  # Ultralytics measures it on the validation set
    "time_metrics/end_to_end(s)": (Q.STEP_TIME, "", 1.0),  # torchtitan
    "throughput/duration": (Q.STEP_TIME, "", 1.0),  # Levanter
    "throughput/device/bps": (Q.STEPS_PER_SECOND, "", 1.0),  # OLMo: batches
    "charts/epsilon": (Q.EXPLORATION, "", 1.0),
    "dt": (Q.STEP_TIME, "", 1.0),
    "updt_s": (Q.STEP_TIME, "", 1.0),
    "step_avg": (Q.STEP_TIME, "", 1.0),
    "system.cpu": (Q.HOST_UTILISATION, "", 1.0),  # Weights & Biases, in per cent
    "system.memory": (None, "", 1.0),
    "_runtime": (Q.ELAPSED, "", 1.0),
    **dict.fromkeys(("train_time", "training_time", "training_duration"), (Q.ELAPSED, "", 1.0)),
}
"""Name, in lower case with underscores → quantity (None: it has no role), phase, factor."""
