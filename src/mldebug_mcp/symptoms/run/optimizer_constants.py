"""Are the constants of Adam such that its steps are of the size of the rate?"""

from __future__ import annotations

import math

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.optimizers import Family, family_of
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.measure.usual import USUAL
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.text import figure

(BETA_1,), (BETA_2,), (EPSILON,) = USUAL["adam_beta1"], USUAL["adam_beta2"], USUAL["adam_epsilon"]
"""What is usual. Source: the defaults of torch.optim.Adam; small_scale_proxies for epsilon."""
TINY = 1e-12
"""Epsilon. Chosen: usual are 1e-8 to 1e-6, and 1e-10 in some language models; splatting takes 1e-15."""
LARGE = 1e-3
"""Epsilon where the gradient is not known. Chosen: a thousand times the largest usual one."""
OUTWEIGHS = 3.0
"""Times the gradient of a typical weight. Chosen: the step is then at most a quarter of the rate."""
LONG_MEMORY = 0.9999
"""A second moment that remembers 10,000 steps. Chosen: usual are .95 to .999."""
NAMED = ("adam", "opti")
"""Parts of the key of an epsilon that is the optimizer's: normalisation layers and policies have others."""


@question(
    Outcome(
        "adam_epsilon_tiny",
        """Adam's epsilon is 1e-12 or less, so that weights with hardly any gradient move as far as all others.

        Not this when: it is 1e-10 or more; the epsilon is that of a normalisation layer.
        """,
        background=0.005,
        as_chosen=True,
    ),
    Outcome(
        "adam_epsilon_large",
        """Adam's epsilon is as large as the gradient of a typical weight, so that its steps are far below the rate.

        That gradient is the norm over the root of the number of parameters; where these are not known, 1e-3 counts as
        large. Not this when: it is a policy that is trained, for which larger values are usual.
        """,
        background=0.01,
        as_chosen=True,
    ),
    Outcome(
        "adam_betas_odd",
        """Adam's beta1 is not below the root of beta2, or beta2 remembers 10,000 steps.

        Below the root Adam converges, above it need not (Zhang et al. 2022). Not this when: beta1 is 0 or 0.5, as in
        adversarial training.
        """,
        background=0.005,
        as_chosen=True,
    ),
    whole_run=True,
)
def optimizer_constants(run: Run) -> Answers:
    """Judge epsilon, beside the gradient where it is logged, and the betas."""
    if family_of(run) not in (Family.ADAM, None) or (family_of(run) is None and run.facts.optimizer.name):
        raise CannotTell("the optimizer is not of the Adam family")
    epsilon = _epsilon(run)
    if isinstance(epsilon, CannotTell):
        said: dict[str, Evidence | CannotTell] = dict.fromkeys(("adam_epsilon_tiny", "adam_epsilon_large"), epsilon)
        return {**said, **_of_betas(run)} if not _is_odd(run) else _of_betas(run)
    if epsilon <= TINY:
        summary = f"Adam's epsilon is {figure(epsilon)}; {EPSILON} are usual"
        return {"adam_epsilon_tiny": Evidence(summary, values={"epsilon": epsilon})}
    large = _too_large(run, epsilon)
    return {"adam_epsilon_large": large} if large is not None else _of_betas(run)


def _epsilon(run: Run) -> float | CannotTell:
    epsilon = run.facts.optimizer.epsilon
    if epsilon is None or epsilon < 0:
        return CannotTell("Adam's epsilon is not in the configuration")
    key = run.settings["adam_epsilon"].key.lower()
    if not any(part in key for part in NAMED):
        return CannotTell(f"it is not known what {key[:40]} is an epsilon of")
    return epsilon


def _too_large(run: Run, epsilon: float) -> Evidence | None:
    if run.kind in ("rl", "ppo", "grpo"):
        return None
    gradient = _typical_gradient(run)
    if gradient is None:
        summary = f"Adam's epsilon is {figure(epsilon)}; {EPSILON} are usual"
        return Evidence(summary, values={"epsilon": epsilon}) if epsilon >= LARGE else None
    if epsilon < OUTWEIGHS * gradient:
        return None
    return Evidence(
        f"Adam's epsilon is {figure(epsilon)}, {figure(epsilon / gradient)} times the gradient of a typical weight, "
        f"{figure(gradient)}",
        values={"epsilon": epsilon, "gradient": gradient},
    )


def _typical_gradient(run: Run) -> float | None:
    """Return the gradient of a typical weight: the norm over the root of the number of parameters."""
    norm, parameters = next(run.with_role(Quantity.GRADIENT_NORM, phase="train"), None), run.setting("parameters")
    if norm is None or parameters is None or parameters < 1 or not (norm.finite.value > 0).any():
        return None
    return median(norm.finite.value[norm.finite.value > 0]) / math.sqrt(parameters)


def _is_odd(run: Run) -> bool:
    first, second = run.facts.optimizer.betas
    if second is None or not 0 < second < 1:
        return False
    return second >= LONG_MEMORY or (first is not None and first**2 >= second)


def _of_betas(run: Run) -> Answers:
    first, second = run.facts.optimizer.betas
    if second is None:
        return {"adam_betas_odd": CannotTell("Adam's betas are not in the configuration")}
    if not _is_odd(run):
        return {}
    values = {"beta2": second, **({} if first is None else {"beta1": first})}
    told = " and ".join(f"{name} {figure(number)}" for name, number in sorted(values.items()))
    return {"adam_betas_odd": Evidence(f"Adam has {told}; usual are {BETA_1} and {BETA_2}", values=values)}
