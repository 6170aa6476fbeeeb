"""The mistakes of each domain are covered: by a cause of the playbook, a menu or an error message."""

from __future__ import annotations

import re

import pytest

from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.knowledge.errors import known_errors

# What goes wrong → the entry that covers it, and words that its text has to hold.
COVERED = [
    ("padding side per phase", "train_eval_mismatch", r"padding side"),
    ("loss over prompt and padding", "prompt_not_masked", r"padding"),
    ("padding token unset", "no_pad_token", r"padding token"),
    ("packing leaks attention", "train_eval_mismatch", r"pack"),
    ("context beyond the trained positions", "train_eval_mismatch", r"rope_scaling"),
    ("logit drift and z-loss", "logit_drift", r"z-loss"),
    ("perplexity from a wrong mask or stride", "metric_bug", r"perplexity"),
    ("columns do not fit the trainer", "tokenizer_mismatch", r"prompt, chosen, rejected"),
    ("DPO margin flat or both fall", "dpo_collapse", r"beta 0\.1"),
    ("gated model refused", "gated_repo", r"licence"),
    ("normalisation differs", "train_eval_mismatch", r"BGR"),
    ("augmentation at evaluation", "eval_mode_bug", r"augmentation"),
    ("mAP zero while the loss falls", "metric_bug", r"box"),
    ("nothing survives NMS, anchors do not fit", "metric_bug", r"NMS[\s\S]*anchors"),
    ("mIoU zero from the ignore index", "metric_bug", r"ignore index"),
    ("only the majority class", "class_imbalance", r"majority"),
    ("BatchNorm with a tiny batch", "batch_too_small", r"SyncBatchNorm"),
    ("low loss, bad samples", "metric_bug", r"does not measure samples"),
    ("raw instead of EMA weights", "metric_bug", r"EMA"),
    ("wrong latent scaling", "train_eval_mismatch", r"scaling_factor"),
    ("schedule or prediction type differs", "train_eval_mismatch", r"prediction_type"),
    ("condition never dropped", "train_eval_mismatch", r"drop the condition"),
    ("sampler does not match", "train_eval_mismatch", r"reference sampler"),
    ("uniform timestep weighting", "wrong_loss", r"SNR|timestep"),
    ("reward collapses, output degenerates", "kl_blowup", r"KL"),
    ("KL to the reference blows up", "kl_blowup", r"reference"),
    ("rewards or advantages not normalised", "value_instability", r"normali[sz]"),
    ("replay buffer not saved", "resume_state_lost", r"replay buffer"),
    ("non-stationarity taken for a bug", "healthy", r"value loss\s+that never reaches zero"),
    ("one seed is no result", "healthy", r"seeds"),
    ("wrong freeze schedule", "params_not_training", r"projector|tower"),
    ("random projector, language model unfrozen", "params_not_training", r"random projector"),
    ("one learning rate for all towers", "lr_too_high", r"projector 1e-3"),
    ("truncation removes image tokens", "image_token_mismatch", r"placeholders"),
    ("answers from text priors", "no_signal", r"language prior"),
]  # fmt: skip


def written(entry: str) -> str:
    """Return all that is written on a cause, or of an error its cause and fix."""
    cause = catalogue().causes.get(entry)
    if cause is None:
        error = known_errors()[entry]
        return f"{error.cause} {error.fix}"
    checks = [f"{step.action} {step.confirms} {step.refutes}" for step in cause.next_steps]
    return " ".join([cause.markdown, *checks, cause.disagreement])


@pytest.mark.parametrize(("mistake", "entry", "words"), COVERED, ids=[case[0] for case in COVERED])
def test_a_mistake_is_covered(mistake: str, entry: str, words: str) -> None:
    text = " ".join(written(entry).split())
    assert re.search(words, text), f"{entry} says nothing on: {mistake}"


def test_both_sides_stand_where_sources_disagree() -> None:
    causes = catalogue().causes
    sides = {
        "logit_drift": ("1e-4", "1e-5"),
        "dpo_collapse": ("raise beta", "lower beta"),
        "tokenizer_mismatch": ("For:", "Against:"),
        "adam_instability": ("Against:", "For:"),
    }
    for cause, words in sides.items():
        said = causes[cause].disagreement
        assert all(word in said for word in words)
        assert said.count("](evidence/") >= 2 or cause == "logit_drift"
