"""Rollouts that teach nothing."""

from __future__ import annotations

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.symptoms.batch.registry import BatchEvidence, batch_check


@batch_check(
    severity="error",
    why="The policy gradient is the advantage times a gradient: with zeros everywhere nothing is learnt from it.",
    fix=(
        "Look at the rewards: the same for all completions of a prompt make every advantage of its group zero. Call "
        "the reward function by hand on a right and a wrong answer; take prompts that are solved sometimes."
    ),
    fixes={"TRL": "watch frac_reward_zero_std; num_generations above 1."},
    quotes=("reddit_reward_variance", "trl_frac_zero_std", "axolotl_reward_standalone"),
)
def advantages_zero(batch: Batch) -> BatchEvidence | None:
    """The advantages of all rows are exactly zero.

    Not this when: some group has others; the rows are fewer than four.
    """
    told = next((problem for problem in batch.problems if problem.check == "advantages_zero"), None)
    return None if told is None else BatchEvidence(told.summary)
