"""Is it true what is stated of rollouts without a gradient, and of the step at which an entropy runs out?

    python -m benchmarks.rollouts [RUNS]

Each run trains a table of logits over the answers to some prompts by group-relative policy gradients, as GRPO does, and
logs what TRL's trainer logs. A prompt has one right answer. How likely it is at first differs from run to run, so that
in some most groups are all right and in others all wrong. What each group held is known, and so is the step at which
the entropy comes down to a tenth of its start. The log is cut at a part of the way there.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.faults.figures import table
from mldebug_mcp.api import read_run
from mldebug_mcp.checks.policies import ENTROPY_GONE
from mldebug_mcp.judge.derived_facts import RUNS_OUT, WASTED, entropy_runs_out, rollouts_without_gradient
from mldebug_mcp.logs import Run

GROUP, PROMPTS, ANSWERS, STEPS = 8, 64, 12, 400
CUTS = (0.5, 0.75)
"""Parts of the way to the end of the entropy at which a log is cut."""


@dataclass(frozen=True)
class Trained:
    """A run: its log, and of each step the share of groups that were all right and all wrong, shape (steps,)."""

    records: list[dict[str, float]]
    right: NDArray[np.float64]
    wrong: NDArray[np.float64]


def train(seed: int) -> Trained:
    """Train a policy and log it; runs differ in how likely right answers are at first, and in the learning rate."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 0.3, (PROMPTS, ANSWERS))
    logits[:, 0] += rng.uniform(-3, 4) + rng.normal(0, 1.5, PROMPTS)
    rate, batch, tokens = rng.uniform(0.05, 0.6), 16, 0.0
    records, right, wrong = [], [], []
    for step in range(1, STEPS + 1):
        asked = rng.choice(PROMPTS, batch, replace=False)
        chance = np.exp(logits[asked] - logits[asked].max(1, keepdims=True))
        chance /= chance.sum(1, keepdims=True)
        answers = (rng.random((batch, GROUP, 1)) > chance.cumsum(1)[:, None, :-1]).sum(2)
        reward = (answers == 0).astype(float)
        spread = reward.std(1, ddof=1)
        gain = (reward - reward.mean(1, keepdims=True)) / (spread[:, None] + 1e-4)
        hot = np.eye(ANSWERS)[answers]
        logits[asked] += rate * (gain[..., None] * (hot - chance[:, None])).mean(1)
        tokens += float(answers.size * rng.integers(150, 250))
        right.append(float((reward.min(1) == 1).mean()))
        wrong.append(float((reward.max(1) == 0).mean()))
        records.append(
            {
                "step": step,
                "reward": float(reward.mean()),
                "reward_std": float(spread.mean()),
                "frac_reward_zero_std": right[-1] + wrong[-1],
                "entropy": float(-(chance * np.log(chance)).sum(1).mean()),
                "num_tokens": tokens,
            }
        )
    return Trained(records, np.array(right), np.array(wrong))


def _read(records: list[dict[str, float]]) -> Run:
    return read_run(records, settings={"algorithm": "grpo", "num_generations": GROUP})


def of_rollouts(trained: Trained) -> dict[str, bool] | None:
    """Return whether each statement on the rollouts is true; None where nothing is stated."""
    run = _read(trained.records)
    fact = rollouts_without_gradient(run)
    if fact is None:
        return None
    right, wrong = float(trained.right.mean()), float(trained.wrong.mean())
    found = {f"the share ({WASTED})": abs(fact.values["share"] - right - wrong) < 1e-6}
    if "all_right_low" in fact.values:
        low, high = fact.values["all_right_low"], fact.values["all_right_high"]
        found["the share that is all right lies between the bounds"] = low - 1e-9 <= right <= high + 1e-9
    for kind, mine, other in (("easy", right, wrong), ("hard", wrong, right)):
        if f"most of them are too {kind}" in fact.text.lower():
            found[f"most are too {kind}"] = mine > other
    return found


def of_entropy(trained: Trained) -> list[tuple[float, float, bool]]:
    """Return of each cut: which, the error over the steps that are left, and whether the interval holds the end."""
    entropy = np.array([record["entropy"] for record in trained.records])
    smooth = np.convolve(entropy, np.ones(9) / 9, "valid")
    gone = np.flatnonzero(smooth <= ENTROPY_GONE * entropy[:5].mean())
    if not len(gone) or gone[0] < 100:
        return []
    end, found = float(gone[0] + 5), []
    for cut in CUTS:
        run = _read(trained.records[: int(cut * end)])
        fact = entropy_runs_out(run)
        if fact is not None:
            left = end * (1 - cut)
            holds = fact.values["low"] <= end <= fact.values["high"]
            found.append((cut, abs(fact.values["step"] - end) / left, holds))
    return found


def main() -> None:
    """Train, and print how often each statement is true."""
    about = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("benchmarks.rollouts", description=__doc__, formatter_class=about)
    parser.add_argument("runs", nargs="?", type=int, default=200, help="how many runs (default: 200)")
    runs = [train(seed) for seed in range(parser.parse_args().runs)]
    stated = [found for found in map(of_rollouts, runs) if found is not None]
    names = list(dict.fromkeys(name for found in stated for name in found))
    rows = [
        {
            "statement": name,
            "made": sum(name in found for found in stated),
            "true": sum(found.get(name, False) for found in stated),
        }
        for name in names
    ]
    print(table([{name: str(cell) for name, cell in row.items()} for row in rows]))
    ends = [one for run in runs for one in of_entropy(run)]
    rows = []
    for cut in CUTS:
        errors = [error for at, error, _ in ends if at == cut]
        holds = [held for at, _, held in ends if at == cut]
        middle = f"{np.median(errors):.2f}" if errors else ""
        named = {"stated": len(errors), "median error, of the steps left": middle, "in the interval": sum(holds)}
        rows.append({f"cut ({RUNS_OUT})": cut} | named)
    print(table([{name: str(cell) for name, cell in row.items()} for row in rows]))


if __name__ == "__main__":
    main()
