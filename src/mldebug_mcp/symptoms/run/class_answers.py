"""What the answers of a classifier are like, as its accuracy, recalls and means over classes tell."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.levels.accuracy_stands_still import accuracy_stands_still
from mldebug_mcp.symptoms.levels.minority_missed import minority_missed
from mldebug_mcp.symptoms.levels.one_answer_for_all import one_answer_for_all
from mldebug_mcp.symptoms.readings import first_of, reading
from mldebug_mcp.symptoms.registry import Answers, question

READINGS = (
    reading(minority_missed, sources=("focal_loss_2017",), background=0.01),
    reading(one_answer_for_all, background=0.003, not_for=("pretraining", "sft"), follows=("loss_nonfinite",)),
    reading(
        accuracy_stands_still,
        needs=("accuracy", "loss"),
        sources=("remote_gpu_trainer",),
        points=8,
        background=0.003,
        follows=("loss_zero", "loss_constant", "loss_plateau"),
    ),
)
"""How each outcome is seen, of how many values, and how often a healthy run shows it. Chosen: the fit counts the
backgrounds anew."""


@question(*(one.outcome for one in READINGS), not_for=("grpo", "ppo", "rl", "preference"), whole_run=True)
def class_answers(run: Run) -> Answers:
    """Are the answers those of a guess, of one class for all, or without the rare classes?"""
    return first_of(run, READINGS)
