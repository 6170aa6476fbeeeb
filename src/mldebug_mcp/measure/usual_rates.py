"""How a run is tuned (with adapters or in full), and the learning rates that are usual for that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mldebug_mcp.logs.kinds import scores_pairs
from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.model_size import begins_untrained, is_small
from mldebug_mcp.measure.optimizers import Family, family_of
from mldebug_mcp.measure.unknown import CannotTell
from mldebug_mcp.text import figure

GENEROUS_ABOVE, GENEROUS_BELOW = 5.0, 10.0
"""How far outside a usual range a rate must lie, as a factor. Source: axolotl_stability, which changes it by 2 to 5."""


@dataclass(frozen=True, slots=True)
class Range:
    """Usual peak learning rates, and what they are usual for.

    Args:
        low: The lowest.
        high: The highest.
        usual_for: What they are usual for.
        source: Where they are from: a source of evidence, whose default they are, or that they were chosen.
        wide: They are for so many things that a rate between them may yet be too high or too low.
    """

    low: float
    high: float
    usual_for: str
    source: str
    wide: bool = False


FULL, ADAPTERS = "full", "adapters"
TENFOLD = "chosen: ten times the rate in full, as in preference optimisation"
_POLICY = {
    FULL: Range(5e-7, 5e-6, "RL on a language model in full", "remote_gpu_trainer"),
    ADAPTERS: Range(5e-6, 5e-5, "RL on a language model with LoRA", TENFOLD),
}
"""Usual rates of a language model that is a policy. Source: with each."""
RATES: Mapping[tuple[str, str], Range] = {
    ("sft", FULL): Range(1e-5, 5e-5, "full fine-tuning", "axolotl_stability"),
    ("sft", ADAPTERS): Range(1e-4, 3e-4, "fine-tuning with LoRA", "axolotl_stability"),
    ("preference", FULL): Range(5e-7, 1e-5, "preference optimisation in full", "remote_gpu_trainer; smol_playbook"),
    ("preference", ADAPTERS): Range(5e-6, 6e-5, "preference optimisation with LoRA", "trl_docs"),
    **{(kind, how): rates for kind in ("grpo", "ppo") for how, rates in _POLICY.items()},
    ("pretraining", FULL): Range(1e-5, 3e-3, "training with Adam", "karpathy_recipe"),
    ("supervised", FULL): Range(3e-6, 3e-3, "training with Adam", "karpathy_recipe"),
    ("rl", FULL): Range(1e-5, 1e-2, "agents with a network, trained with Adam", "chosen", wide=True),
}
"""Usual rates of an Adam optimizer by kind of run and tuning.

Source: with each. karpathy_recipe calls 3e-4 a forgiving baseline for Adam; thirty times either way was chosen by hand.
smol_playbook takes a twentieth to a fifth of the rate of SFT for preferences. For agents frameworks' defaults are 1e-4
to 1e-3, and small examples take 1e-2."""
_TRAINER = Range(1e-6, 3e-2, "anything that the Trainer's AdamW trains", "chosen", wide=True)
"""Any use of the Trainer. Chosen: prompt tuning takes 3e-2, which is more than all else does."""
_OF_A_NETWORK = ("loss", "policy_loss", "value_loss", "entropy", "grad_norm")
"""What an agent logs whose values or policy are a network: those of a table are learnt at rates up to 1."""
RATES_OF_FAMILY = {
    Family.SGD: Range(1e-6, 2.0, "training with SGD", "chosen", wide=True),
    Family.LION: Range(1e-6, 3e-3, "training with Lion", "chosen", wide=True),
    Family.MUON: Range(1e-4, 0.1, "training with Muon", "chosen", wide=True),
    Family.ADAFACTOR: Range(1e-6, 3e-2, "training with Adafactor", "chosen", wide=True),
    Family.RMSPROP: Range(1e-6, 0.3, "training with RMSprop", "chosen", wide=True),
    Family.ADAGRAD: Range(1e-6, 1.0, "training with Adagrad or Sophia", "chosen", wide=True),
}
"""Usual rates of other optimizers. Chosen: wide, for SGD multiplies a gradient of unknown scale."""


OF_MOMENTUM, OF_ROWS = 4.0, 256
"""Highest usual rate of SGD, summed over all steps that a momentum repeats, up to so many rows. Chosen: four times that
of the linear scaling rule."""


def tuning(run: Run) -> str | None:
    """Return ADAPTERS or FULL, or None if the configuration does not tell."""
    config = run.config
    words = " ".join(str(config.get(key, "")).lower() for key in ("adapter", "finetuning_type", "peft_type", "tuner"))
    rank = run.setting("lora_r")
    if "lora" in words or (rank is not None and rank > 0) or config.get("use_peft") is True:
        return ADAPTERS
    if "full" in words or config.get("use_peft") is False or run.kind in ("pretraining", "supervised", "rl"):
        return FULL
    return None


def usual_rates(run: Run) -> tuple[Range, ...]:
    """Return the ranges that may hold for a run: one, or both if it is not known whether adapters are trained.

    Raises CannotTell if no source gives a range for this kind of run or optimizer.
    """
    family = family_of(run)
    if family is Family.SELF_SET:
        raise CannotTell("the optimizer sets its own learning rate")
    if run.kind in ("pretraining", "supervised") and family is None:
        raise CannotTell("the usual learning rates depend on the optimizer, which is not in the configuration")
    if run.kind == "rl" and not any(name in run for name in _OF_A_NETWORK):
        raise CannotTell("it is not known whether the agent has a network: a table is learnt at other rates")
    if family is not None and family is not Family.ADAM:
        return (_of_momentum(run) or RATES_OF_FAMILY[family],)
    if run.kind == "unknown":
        if run.facts.optimizer.name is None and family is Family.ADAM:
            return (_TRAINER,)
        if family is None:
            raise CannotTell("no usual learning rate is known for this kind of run and optimizer")
        return tuple(RATES[one] for one in (("sft", FULL), ("sft", ADAPTERS), ("pretraining", FULL)))
    if scores_pairs(run):
        return (RATES["supervised", FULL],)  # the lower rates of preference optimisation are for policies
    return _of_kind(run, tuning(run))


def _of_momentum(run: Run) -> Range | None:
    """Return the rates of SGD for a momentum and a batch that are known; None where they are not.

    The linear scaling rule: a rate of 0.1 for 256 rows at a momentum of 0.9 grows with the rows (Goyal et al. 2017,
    arXiv 1706.02677); the steps of a momentum m add up to 1 / (1 - m) times the rate.
    """
    momentum, rows = run.facts.optimizer.momentum, run.facts.effective_batch
    if family_of(run) is not Family.SGD or momentum is None or not 0 <= momentum < 1 or rows is None:
        return None
    whole = RATES_OF_FAMILY[Family.SGD]
    high = OF_MOMENTUM * (1 - momentum) * max(1.0, rows / OF_ROWS)
    return replace(whole, high=min(high, whole.high) if momentum else whole.high)


def _of_kind(run: Run, how: str | None) -> tuple[Range, ...]:
    if how is not ADAPTERS and (is_small(run) or begins_untrained(run)):
        return (RATES["pretraining", FULL],)
    ranges = [RATES[run.kind, one] for one in (FULL, ADAPTERS) if (run.kind, one) in RATES and how in (one, None)]
    if not ranges:
        raise CannotTell("no usual learning rate is known for this kind of run")
    return tuple(ranges)


def refuse_wide(ranges: tuple[Range, ...], rate: float) -> None:
    """Raise CannotTell if a rate within the usual range may be wrong all the same."""
    if any(one.wide for one in ranges):
        raise CannotTell(f"{figure(rate)} is a usual rate for {ranges[0].usual_for}, of which there are too many kinds")


def peak_rate(run: Run) -> tuple[float, float]:
    """Return the peak learning rate, from the configuration or the log, and the step of the log's peak.

    Raises CannotTell if neither has one.
    """
    configured = run.setting("learning_rate")
    rate = run["learning_rate"].finite if "learning_rate" in run else None
    if rate is not None and len(rate):
        at = int(rate.value.argmax())
        return max(configured or 0.0, float(rate.value[at])), float(rate.step[at])
    if configured is None:
        raise CannotTell("not logged: learning_rate, nor is it in the configuration")
    return configured, run.first_step
