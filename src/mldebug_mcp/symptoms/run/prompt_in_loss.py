"""The configuration counts prompts in the loss."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom

SETTINGS = {"completion_only_loss": False, "train_on_inputs": True, "train_on_prompt": True, "train_on_source": True}
"""Settings of TRL, Axolotl, LLaMA-Factory and QLoRA, and the value with which prompts are trained on."""


@symptom(
    needs=(),
    sources=("axolotl_stability",),
    not_for=("pretraining", "preference", "grpo", "ppo", "rl", "diffusion"),
    whole_run=True,
    background=0.08,
)
def prompt_in_loss(run: Run) -> Evidence | None:
    """The configuration of a fine-tune counts prompt tokens in the loss.

    Not this when: only completions count; unknown where no such setting is given, because defaults differ. With short
    prompts and long answers it does little harm.
    """
    given = {name: run.config[name] for name in SETTINGS if run.config.get(name) is not None}
    if not given:
        raise CannotTell("the configuration does not say which tokens count in the loss")
    for name, value in given.items():
        if value is SETTINGS[name] or str(value).lower() == str(SETTINGS[name]).lower():
            return Evidence(f"the configuration sets {name} to {str(value).lower()}", values={"prompts_count": 1})
    return None
