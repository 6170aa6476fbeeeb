"""Prompts count in the loss: the configuration says so, or all labels do."""

from __future__ import annotations

import re

from mldebug_mcp.logs.roles.words import pieces_of
from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import counted

SETTINGS = {"completion_only_loss": False, "train_on_inputs": True, "train_on_prompt": True, "train_on_source": True}
"""Settings of TRL, Axolotl, LLaMA-Factory and QLoRA, and the value with which prompts are trained on."""
ALL, LEAST = 0.999, 3
"""Share of the labels that count, and records of it. Chosen: rows of which all is answered are rare."""
_COUNTED = re.compile(
    r"(?:train_)?(?:loss|labels?|targets?|supervised|trained|trainable|unmasked)_(?:(?:tokens?|labels?)_)?"
    r"(?:frac(?:tion)?|share|ratio|pct)"
)


@symptom(
    needs=(),
    sources=("axolotl_stability",),
    not_for=("pretraining", "preference", "grpo", "ppo", "rl", "diffusion"),
    whole_run=True,
    background=0.08,
)
def prompt_in_loss(run: Run) -> Evidence | None:
    """A fine-tune counts prompt tokens in the loss: its configuration says so, or all labels that there are count.

    Not this when: only completions count; unknown where neither such a setting nor the share of labels is given,
    because defaults differ. With short prompts and long answers it does little harm.
    """
    shares = [one.finite for name, one in run.series.items() if _COUNTED.fullmatch("_".join(pieces_of(name)))]
    share = next((one for one in shares if len(one) >= LEAST and float(one.value.max()) <= 1), None)
    if share is not None:
        if float(share.value.min()) < ALL:
            return None
        said = f"{share.name} is 1 at all of {counted(len(share), 'record')}: prompts, padding and answers count alike"
        return Evidence(said, steps=(float(share.step[0]),), values={"share": float(share.value.min())})
    given = {name: run.config[name] for name in SETTINGS if run.config.get(name) is not None}
    if not given:
        raise CannotTell("the configuration does not say which tokens count in the loss")
    for name, value in given.items():
        if value is SETTINGS[name] or str(value).lower() == str(SETTINGS[name]).lower():
            return Evidence(f"the configuration sets {name} to {str(value).lower()}", values={"prompts_count": 1})
    return None
