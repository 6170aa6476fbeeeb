"""Logs of agents: episodes, rewards by their many names, and steps that are not steps of the environment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.logs.reading import Points, assert_holds, points, read

from mldebug_mcp.logs.names.metrics import canonical

AGENTS: dict[str, tuple[str, str, Mapping[str, Points]]] = {
    "reinforce": (
        "Episode 10\tLast reward: 21.00\tAverage reward: 15.50\n"
        "Episode 20\tLast reward: 11.00\tAverage reward: 16.50\n",
        "episode",
        {"reward": {10: 15.5, 20: 16.5}, "Last reward": {10: 21, 20: 11}},
    ),
    "scores": (
        "episode: 0/100, score: 21, e: 1.0\nepisode: 1/100, score: 18, e: 0.98\nepisode: 2/100, score: 30, e: 0.97\n",
        "episode",
        {"reward": {0: 21, 1: 18, 2: 30}},
    ),
    "scores drawn over one another": (
        "\rEpisode 99\tAverage Score: 20.50\rEpisode 100\tAverage Score: 21.50\rEpisode 100\tAverage Score: 21.50\n"
        "\rEpisode 101\tAverage Score: 22.50",
        "episode",
        {"reward": {99: 20.5, 100: 21.5, 101: 22.5}},
    ),
    "lengths of episodes": (
        "Ep 1 | Reward: 21.0 | Steps: 21\nEp 2 | Reward: 11.0 | Steps: 11\nEp 3 | Reward: 31.0 | Steps: 31\n",
        "episode",
        {"reward": {1: 21, 2: 11, 3: 31}, "episode_length": {1: 21, 2: 11, 3: 31}},
    ),
    "steps that start again with each episode": (
        "Episode 1, step 10, loss 0.5, reward 1.5\nEpisode 1, step 20, loss 0.25, reward 2.5\n"
        "Episode 2, step 10, loss 0.75, reward 3.5\nEpisode 2, step 20, loss 0.125, reward 4.5\n",
        "step",
        {"loss": {10: 0.5, 20: 0.25, 30: 0.75, 40: 0.125}, "reward": {10: 1.5, 20: 2.5, 30: 3.5, 40: 4.5}},
    ),
    "elegantrl, whose numbers of fixed width touch": (
        "################################################################################\n"
        "ID     Step    maxR |    avgR   stdR   avgS  stdS |    expR   objC   etc.\n"
        "1  1.60e+03-1267.50 |-1267.50  329.5    200     0 |   -2.67   0.88   0.56   1.00\n"
        "1  8.48e+04 -171.75 | -182.25   63.5    200     0 |   -0.30   0.32 -30.75   0.64\n"
        "| UsedTime:     132 |\n",
        "step",
        {
            "reward": {1600: -1267.5, 84800: -182.25},
            "episode_length": {1600: 200, 84800: 200},
            "objC": {1600: 0.88, 84800: 0.32},
        },
    ),
    "ding, whose table stands under its iteration": (
        "[03-08 20:18:16] INFO     [RANK0]: === Training Iteration 200 Result ===          base_learner.py:338\n"
        "[03-08 20:18:16] INFO                                                             learner_hook.py:224\n"
        "                +-------+------------+----------------+----------------+\n"
        "                | Name  | cur_lr_avg | total_loss_avg | policy_loss_avg |\n"
        "                +-------+------------+----------------+----------------+\n"
        "                | Value | 0.000500   | 1.250000       | 3.500000       |\n"
        "                +-------+------------+----------------+----------------+\n"
        "[03-08 20:19:16] INFO     [RANK0]: === Training Iteration 300 Result ===          base_learner.py:338\n"
        "                +-------+------------+----------------+----------------+\n"
        "                | Name  | cur_lr_avg | total_loss_avg | policy_loss_avg |\n"
        "                +-------+------------+----------------+----------------+\n"
        "                | Value | 0.000250   | 0.750000       | 2.500000       |\n"
        "                +-------+------------+----------------+----------------+\n",
        "step",
        {
            "learning_rate": {200: 5e-4, 300: 2.5e-4},
            "loss": {200: 1.25, 300: 0.75},
            "policy_loss": {200: 3.5, 300: 2.5},
        },
    ),
    "a name, a tab and a number to a line": (
        "Iteration: \t 18\nLoss:     \t 0.5\nMeanRew: \t -728.5 +- 126.25\nMeanEntropy \t 0.75\n-----------------\n"
        "Iteration: \t 19\nLoss:     \t 0.25\nMeanRew: \t -726.5 +- 129.25\nMeanEntropy \t 0.5\n-----------------\n",
        "step",
        {"loss": {18: 0.5, 19: 0.25}, "reward": {18: -728.5, 19: -726.5}, "entropy": {18: 0.75, 19: 0.5}},
    ),
    "keras-rl": (
        "    17/50000: episode: 1, duration: 0.1s, episode steps:  17, steps per second: 170, episode reward: 17.000, "
        "mean reward: 1.000 [1.000, 1.000], loss: 0.500000, mean_q: 0.250000\n"
        "    40/50000: episode: 2, duration: 0.1s, episode steps:  23, steps per second: 180, episode reward: 23.000, "
        "mean reward: 1.000 [1.000, 1.000], loss: 0.250000, mean_q: 0.750000\n",
        "step",
        {"reward": {17: 17, 40: 23}, "loss": {17: 0.5, 40: 0.25}, "episode_length": {17: 17, 40: 23}},
    ),
    "ML-Agents": (
        "[INFO] 3DBall. Step: 12000. Time Elapsed: 22.5 s. Mean Reward: 1.250. Std of Reward: 0.750. Training.\n"
        "[INFO] 3DBall. Step: 24000. Time Elapsed: 44.5 s. No episode was completed since last summary. Training.\n"
        "[INFO] 3DBall. Step: 36000. Time Elapsed: 66.5 s. Mean Reward: 2.250. Std of Reward: 1.500. Training.\n",
        "step",
        {"reward": {12000: 1.25, 36000: 2.25}, "elapsed": {12000: 22.5, 36000: 66.5}},
    ),
    "evaluations between boxes": (
        "".join(
            (f"Eval num_timesteps={step - 48}, episode_reward=9.50 +/- 1.00\n" if step == 2048 else "")
            + f"----------------------------\n| rollout/           |       |\n|    ep_rew_mean     | {step / 64:5} |\n"
            f"| time/              |       |\n|    total_timesteps | {step:5} |\n----------------------------\n"
            for step in (1024, 2048, 3072)
        ),
        "step",
        {"reward": {1024: 16, 2048: 32, 3072: 48}, "eval_reward": {2000: 9.5}},
    ),
    "PyMARL": (
        "".join(
            f"[INFO 09:12:59] my_main t_env: {step} / 2050000\n"
            f"[INFO 09:12:59] my_main Recent Stats | t_env: {step:>10} | Episode: {step // 50:>8}\n"
            f"battle_won_mean:           0.2500\tep_length_mean:           {step / 1024:.4f}\n"
            f"loss:                      0.5000\treturn_mean:              {step / 4096:.4f}\n\n"
            for step in (20480, 40960)
        ),
        "step",
        {"reward": {20480: 5, 40960: 10}, "episode_length": {20480: 20, 40960: 40}, "loss": {20480: 0.5, 40960: 0.5}},
    ),
    "what a name says aside": (
        "Step   10000 | Avg Reward (last 10):  28.50 | noise=0.25 | Episodes: 16\n  -> saved (avg reward: 28.50)\n"
        "Step   20000 | Avg Reward (last 10):  24.25 | noise=0.125 | Episodes: 33\n",
        "step",
        {"reward": {10000: 28.5, 20000: 24.25}, "noise": {10000: 0.25, 20000: 0.125}},
    ),
    "steps of how many": (
        "[2023-05-27T23:46:50] T = 2500 / 10000 | env: maze | Avg. reward: -22.5 | Avg. Q: -14.75\n"
        "[2023-05-27T23:48:34] T = 5000 / 10000 | env: maze | Avg. reward: -4.75 | Avg. Q: -5.25\n",
        "step",
        {"reward": {2500: -22.5, 5000: -4.75}},
    ),
    "TD3": (
        "Total T: 200 Episode Num: 1 Episode T: 200 Reward: -12.500\n---------------------------------------\n"
        "Evaluation over 10 episodes: -8.250\n---------------------------------------\n"
        "Total T: 300 Episode Num: 2 Episode T: 100 Reward: -7.500\n",
        "step",
        {"reward": {200: -12.5, 300: -7.5}, "eval_reward": {200: -8.25}, "episode_length": {200: 200, 300: 100}},
    ),
    "PPO with means and medians": (
        "Updates 1, num timesteps 2048, FPS 1201 \n Last 10 training episodes: mean/median reward 30.5/29.0, "
        "min/max reward 1.0/50.0\n\nUpdates 2, num timesteps 4096, FPS 1200 \n Last 10 training episodes: "
        "mean/median reward 35.5/34.0, min/max reward 2.0/60.0\n",
        "step",
        {"reward": {1: 30.5, 2: 35.5}},
    ),
    "a mean over the last episodes": (
        "Episode 100: avg reward over last 100 episodes = 20.5\n"
        "Episode 200: avg reward over last 100 episodes = 30.5\n",
        "episode",
        {"reward": {100: 20.5, 200: 30.5}},
    ),
    "returns by a letter": (
        "INFO:pfrl.experiments.train_agent:outdir:results/1 step:29 episode:0 R:29.0\n"
        "INFO:pfrl.experiments.train_agent:outdir:results/1 step:41 episode:1 R:12.0\n"
        "INFO:pfrl.experiments.train_agent:outdir:results/1 step:64 episode:2 R:23.0\n",
        "step",
        {"reward": {29: 29, 41: 12, 64: 23}},
    ),
    "MAPPO": (
        "\n Map 3m Algo mappo Exp check updates 0/312 episodes, total num timesteps 3200/1000000, FPS 305.\n\n"
        "average episode rewards is 1.5\n"
        "\n Map 3m Algo mappo Exp check updates 5/312 episodes, total num timesteps 19200/1000000, FPS 306.\n\n"
        "average episode rewards is 2.5\n",
        "step",
        {"reward": {0: 1.5, 5: 2.5}},
    ),
}
"""What is printed, what a step is, and metrics as {step: value}."""


@pytest.mark.parametrize("name", AGENTS)
def test_what_an_agent_prints_is_read_to_the_exact_values(name: str, tmp_path: Path) -> None:
    text, step_name, metrics = AGENTS[name]
    run = read(tmp_path, text)
    assert run.kind == "rl"
    assert_holds(run, step_name, metrics)


def test_what_rllib_nests_has_its_plain_names(tmp_path: Path) -> None:
    rows = [
        {
            "episode_reward_mean": 16.0 * number,
            "sampler_results": {"episode_reward_mean": 16.0 * number, "episode_reward_max": 200.0},
            "episode_reward_max": 200.0,
            "info": {
                "learner": {"default_policy": {"learner_stats": {"entropy": 0.5, "vf_loss": 8.0, "cur_lr": 1e-4}}}
            },
            "timesteps_total": 4000 * number,
            "training_iteration": number,
        }
        for number in (1, 2, 3)
    ]
    run = read(tmp_path, "".join(json.dumps(row) + "\n" for row in rows), "result.json")
    assert (run.kind, run.step_name) == ("rl", "step")
    assert points(run, "reward") == {4000: 16, 8000: 32, 12000: 48}
    assert points(run, "entropy") == points(run, "entropy") == {4000: 0.5, 8000: 0.5, 12000: 0.5}
    assert set(run.series) > {"value_loss", "learning_rate", "episode_reward_max", "training_iteration"}


@pytest.mark.parametrize(
    "name", ["mean 100 episode reward", "avg_reward_100", "Mean Reward", "episode_return_mean", "running_reward"]
)
def test_a_mean_over_episodes_is_the_reward(name: str, tmp_path: Path) -> None:
    run = read(tmp_path, f"frame,{name},loss\n640,1.5,0.5\n1280,2.5,0.25\n", "progress.csv")
    assert (run.kind, points(run, "reward")) == ("rl", {640: 1.5, 1280: 2.5})


@pytest.mark.parametrize("name", ["episode_reward_max", "reward_mean", "reward signal mean"])
def test_other_rewards_keep_their_names(name: str, tmp_path: Path) -> None:
    run = read(tmp_path, f"step,{name},loss\n1,1.5,0.5\n2,2.5,0.25\n", "progress.csv")
    assert name in run


def test_a_mean_of_rewards_is_the_reward_beside_what_only_agents_log(tmp_path: Path) -> None:
    run = read(tmp_path, "step,reward_mean,value_loss\n1,1.5,0.5\n2,2.5,0.25\n", "progress.csv")
    assert points(run, "reward") == {1: 1.5, 2: 2.5}


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("Reward / Total reward (mean)", "reward"),
        ("Loss / Value loss", "value_loss"),
        ("losses/a_loss", "policy_loss"),
        ("losses/actor_loss", "policy_loss"),
        ("losses/qf1_loss", "value_loss"),
        ("losses/td_loss", "value_loss"),
        ("Loss/value_function", "value_loss"),
        ("Train/mean_episode_length", "episode_length"),
        ("Environment/Cumulative Reward", "reward"),
        ("Policy/Learning Rate", "learning_rate"),
        ("ray/tune/info/learner/default_policy/learner_stats/entropy", "entropy"),
        ("learners/default_policy/vf_loss", "value_loss"),
        ("env_runners/episode_return_mean", "reward"),
        ("Metrics/AverageReturn", "reward"),
    ],
)
def test_the_tags_of_libraries_have_their_plain_names(name: str, known: str) -> None:
    assert canonical(name) == known


def test_a_model_of_the_reward_makes_no_language_model(tmp_path: Path) -> None:
    rows = [{"step": step, "train/return": step / 8, "reward_std": 0.25, "actor_loss": 0.5} for step in (500, 1000)]
    run = read(tmp_path, "".join(json.dumps(row) + "\n" for row in rows), "metrics.jsonl")
    assert run.kind == "rl"
    assert points(run, "reward") == {500: 62.5, 1000: 125}


@pytest.mark.parametrize(("header", "is_reward"), [
    ("step,score_mean,score_std,entropy,len_mean", True), ("step,mean_score,std_score,kl,avg_len", True),
    ("step,score/mean,score/std,entropy,length", True),
    ("step,score_mean,accuracy,entropy,length", False),  # no spread: of whatever is scored
    ("step,score_mean,score_std,loss,length", False),  # no policy
    ("step,score_mean,score_std,entropy,reward", False),
])  # fmt: skip
def test_a_mean_score_with_its_spread_is_the_reward_of_a_policy(header: str, is_reward: bool, tmp_path: Path) -> None:
    run = read(
        tmp_path, header + "\n" + "".join(f"{at},{at / 20},0.3,{2 - at / 20},3\n" for at in range(1, 13)), "a.csv"
    )
    assert (points(run, "reward").get(12) == 0.6 if "reward" in run else False) is is_reward
    assert ("completion_length" in run) is is_reward
