"""How does the training loss go: up, and back, nowhere, or slowly?"""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.forms import NO_PROGRESS
from mldebug_mcp.symptoms.levels import loss_resting, loss_rising, loss_slow
from mldebug_mcp.symptoms.readings import first_of, outcome_of, reading
from mldebug_mcp.symptoms.registry import Answers, Evidence, question
from mldebug_mcp.symptoms.telling import told

LOSS = ("loss",)
READINGS = (
    reading(
        loss_rising.loss_divergence,
        sources=("bekman_mle",),
        background=0.01,
        follows=("accuracy_below_chance", "loss_falls_back", "loss_pattern_by_epoch"),
        instead=("logits_grow",),
    ),
    reading(loss_rising.loss_hump, background=0.004, follows=("loss_spike_single",)),
    reading(
        loss_resting.loss_constant,
        needs=LOSS,
        points=loss_resting.SAME,
        background=0.002,
        follows=("loss_at_clip", "loss_negative", "loss_zero"),
        instead=NO_PROGRESS,
    ),
    reading(loss_rising.loss_rises, sources=("small_scale_proxies",), background=0.003, follows=("loss_above_start",)),
    reading(
        loss_slow.loss_slow,
        needs=LOSS,
        sources=("axolotl_stability",),
        points=loss_slow.EPOCHS,
        settled=True,
        not_for=("preference",),
        background=0.01,
        follows=("loss_epoch_steps", "eval_learns_nothing"),
        instead=NO_PROGRESS,
    ),
    reading(
        loss_resting.loss_plateau,
        needs=LOSS,
        sources=("axolotl_stability", "karpathy_recipe"),
        points=6,
        settled=True,
        background=0.006,
        follows=("dpo_margin_flat", "loss_at_clip"),
        instead=NO_PROGRESS,
    ),
    reading(
        loss_resting.loss_stall,
        needs=LOSS,
        sources=("axolotl_stability", "karpathy_recipe"),
        points=20,
        settled=True,
        not_for=("diffusion",),
        background=0.02,
        follows=("loss_at_unigram",),
        instead=NO_PROGRESS,
    ),
)
"""How each outcome is seen, of how many values, and how often a healthy run shows it. Chosen: the fit counts the
backgrounds anew."""
OF_RISE = "loss_divergence"


@question(
    *(one.outcome for one in READINGS),
    outcome_of(loss_rising.divergence_after_decay, 0.4, of=OF_RISE, as_chosen=True),
    outcome_of(loss_rising.divergence_with_calm_gradient, 0.2, of=OF_RISE, as_chosen=True),
    needs=LOSS,
    not_for=("grpo", "ppo", "rl"),
)
def loss_course(run: Run) -> Answers:
    """Say how the training loss goes, and of one that rises for good what it rises with."""
    answers = first_of(run, READINGS)
    rise = answers.get(OF_RISE)
    if not isinstance(rise, Evidence):
        return answers
    onset = rise.steps[0]
    beside = told(
        {
            "divergence_after_decay": lambda: loss_rising.divergence_after_decay(run, onset),
            "divergence_with_calm_gradient": lambda: loss_rising.divergence_with_calm_gradient(run, onset),
        }
    )
    return {**answers, **beside}
