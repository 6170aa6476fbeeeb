"""Is a setting unusual by itself? Of several the least usual is told."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.optimizers import Family, family_of
from mldebug_mcp.measure.usual import USUAL
from mldebug_mcp.symptoms.readings import ask_in_turn, reading
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure

TINY = 1e-12
"""Epsilon. Chosen: usual are 1e-8 to 1e-6, and 1e-10 in some language models; splatting takes 1e-15."""
LONG_MEMORY = 0.9999
"""A second moment that remembers 10,000 steps. Chosen: usual are .95 to .999."""
NAMED = ("adam", "opti")
"""Parts of the key of an epsilon that is the optimizer's: normalisation layers and policies have others."""
FAR_BELOW = 2.0
"""How far below the range, as a factor. Chosen: clearly outside."""
LENGTH_NORMALISED = ("simpo", "orpo", "cpo")
"""Losses whose beta is on another scale."""
SMALL = 4.0
"""Rows of an update. Chosen: its noise is half of what one row has, and no vocabulary of sizes goes below."""


def _given(run: Run, name: str, what: str) -> float:
    """Return a setting; raise CannotTell where it is not given."""
    number = run.setting(name)
    if number is None:
        raise CannotTell(f"{what} is not in the configuration")
    return number


def _require(kinds: tuple[str, ...], run: Run) -> None:
    if run.kind not in kinds:
        raise CannotTell(f"judged in runs of kind {' or '.join(kinds)} only")


def _require_adam(run: Run) -> None:
    family = family_of(run)
    if family not in (Family.ADAM, None) or (family is None and run.facts.optimizer.name):
        raise CannotTell("the optimizer is not of the Adam family")


def adam_epsilon_tiny(run: Run) -> Evidence | None:
    """Adam's epsilon is 1e-12 or less, so that weights with hardly any gradient move as far as all others.

    Not this when: it is 1e-10 or more; the epsilon is that of a normalisation layer.
    """
    _require_adam(run)
    epsilon = run.facts.optimizer.epsilon
    if epsilon is None:
        raise CannotTell("Adam's epsilon is not in the configuration")
    key = run.settings["adam_epsilon"].key.lower()
    if not any(part in key for part in NAMED):
        raise CannotTell(f"it is not known what {key[:40]} is an epsilon of")
    said = f"Adam's epsilon is {figure(epsilon)}; {USUAL['adam_epsilon'][0]} are usual"
    return Evidence(said, values={"epsilon": epsilon}) if 0 <= epsilon <= TINY else None


def adam_betas_odd(run: Run) -> Evidence | None:
    """Adam's beta1 is not below the root of beta2, or beta2 remembers 10,000 steps.

    Below the root Adam converges, above it need not (Zhang et al. 2022). Not this when: beta1 is 0 or 0.5.
    """
    _require_adam(run)
    first, second = run.facts.optimizer.betas
    if second is None:
        raise CannotTell("Adam's betas are not in the configuration")
    if not 0 < second < 1 or not (second >= LONG_MEMORY or (first or 0.0) ** 2 >= second):
        return None
    values = {**({} if first is None else {"beta1": first}), "beta2": second}
    told = " and ".join(f"{name} {figure(number)}" for name, number in values.items())
    usual = f"{USUAL['adam_beta1'][0]} and {USUAL['adam_beta2'][0]}"
    return Evidence(f"Adam has {told}; usual are {usual}", values=values)


def discount_above_one(run: Run) -> Evidence | None:
    """The discount of future rewards is above 1, so that values grow with each backup.

    Not this when: it is 1, as in episodes that end.
    """
    _require(("rl", "ppo"), run)
    discount = _given(run, "gamma", "the discount")
    return Evidence(f"the discount is {figure(discount)}", values={"gamma": discount}) if discount > 1 else None


def entropy_bonus_negative(run: Run) -> Evidence | None:
    """The coefficient of the entropy bonus is below zero: the policy is rewarded for being sure.

    Not this when: it is zero or above.
    """
    _require(("rl", "ppo"), run)
    bonus = _given(run, "ent_coef", "the entropy bonus")
    said = f"the entropy bonus has the coefficient {figure(bonus)}"
    return Evidence(said, values={"ent_coef": bonus}) if bonus < 0 else None


def beta_low(run: Run) -> Evidence | None:
    """Preference optimisation holds the policy to the reference by a beta far below the usual range.

    Not this when: the loss is one whose beta is on another scale (SimPO, CPO, ORPO); beta is not in the configuration.
    """
    _require(("preference",), run)
    beta, loss = _given(run, "beta", "beta"), str(run.config.get("loss_type", "")).lower()
    if any(name in loss for name in LENGTH_NORMALISED):
        raise CannotTell(f"the usual range of beta is not known for the loss {loss[:20]}")
    usual = USUAL["beta"][0]
    if beta >= usual.low / FAR_BELOW:
        return None
    return Evidence(
        f"beta is {figure(beta)}; usual are {usual}",
        values={"beta": beta, "usual_low": usual.low, "usual_high": usual.high},
    )


def batch_small(run: Run) -> Evidence | None:
    """The effective batch (per device, times accumulation, times devices) is at most four samples.

    Not this when: samples are long packed sequences; it runs on more devices than the configuration names.
    """
    effective = run.facts.effective_batch
    if effective is None:
        raise CannotTell("the batch size is not in the configuration")
    packed = run.config.get("packing") is True or run.config.get("sample_packing") is True
    if effective > SMALL or packed:
        return None
    return Evidence(f"the effective batch is {figure(effective)} samples", values={"effective_batch": effective})


ask_in_turn(
    "settings",
    reading(adam_epsilon_tiny, background=0.005, as_chosen=True),
    reading(adam_betas_odd, background=0.005, as_chosen=True),
    reading(discount_above_one, background=0.001, as_chosen=True),
    reading(entropy_bonus_negative, background=0.004, as_chosen=True),
    reading(beta_low, sources=("smol_playbook", "remote_gpu_trainer"), background=0.008, as_chosen=True),
    reading(batch_small, sources=("mccandlish_2018",), background=0.1, as_chosen=True),
    whole_run=True,
)
