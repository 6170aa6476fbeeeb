"""Which settings are usual.

It knows the ranges of runs that went well, by family of optimizer, kind of tuning and size of the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from mldebug_mcp.checks.check import CannotTell
from mldebug_mcp.checks.curve import counted_up, finite_of
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.lazy import dataclass, replace
from mldebug_mcp.core.text import figure
from mldebug_mcp.logs.kinds import scores_pairs
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.run import Run

# What is usual for a setting: the range that runs which went well are trained with.


POLICIES = ("grpo", "ppo")
LANGUAGE = ("pretraining", "sft", "preference", "grpo", "ppo")


@dataclass(frozen=True, slots=True)
class Usual:
    """A range of a setting.

    Args:
        low, high: Its ends, included.
        marked: The ends beyond which a value is marked as unusual; generous, as recipes that worked go beyond.
        source: Where the range is from: a source of evidence, whose default it is; "chosen" where we widened it.
        range_in_words: The range in words, where its ends do not give it.
        kinds: The kinds of run that it holds for; () for all.
    """

    low: float
    high: float
    marked: tuple[float, float]
    source: str
    range_in_words: str = ""
    kinds: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.range_in_words or f"{figure(self.low)} to {figure(self.high)}"


ADAM = "default of torch.optim.Adam"
AGENTS = "default of PPO in Stable-Baselines3"
NO_UPPER_BOUND = 1e9
"""As good as no upper end. Chosen: nothing that is set is larger."""
USUAL: Mapping[str, tuple[Usual, ...]] = {
    "adam_beta1": (Usual(0.9, 0.9, (0.5, 0.95), ADAM, "0.9"),),
    "adam_beta2": (Usual(0.95, 0.999, (0.9, 0.9999), f"{ADAM}; chosen"),),
    "adam_epsilon": (Usual(1e-10, 1e-6, (1e-10, 1e-4), f"small_scale_proxies; {ADAM}", "1e-10 to 1e-6"),),
    "momentum": (Usual(0.9, 0.9, (0.0, 0.99), "chosen", "0.9"),),
    "weight_decay": (Usual(0.0, 0.1, (0.0, 0.3), "axolotl_stability"),),
    "max_grad_norm": (Usual(0.5, 1.0, (0.1, 100.0), "axolotl_stability; chosen", "0.5 to 1; 0 or null for none"),),
    "warmup_ratio": (Usual(0.0, 0.1, (0.0, 0.2), "axolotl_stability"),),
    "label_smoothing_factor": (Usual(0.0, 0.1, (0.0, 0.2), "chosen"),),
    "dropout": (Usual(0.0, 0.3, (0.0, 0.5), "chosen"),),
    "init_scale": (Usual(0.005, 0.02, (1e-3, 0.1), "chosen", "about 0.02", LANGUAGE),),
    "gamma": (Usual(0.99, 0.99, (0.9, 0.9999), AGENTS, "0.99", ("rl",)),),
    "gae_lambda": (Usual(0.95, 0.95, (0.8, 1.0), AGENTS, "0.95"),),
    "ent_coef": (Usual(0.0, 0.01, (0.0, 0.05), AGENTS),),
    "vf_coef": (Usual(0.5, 0.5, (0.1, 1.0), AGENTS, "0.5"),),
    "clip_range": (Usual(0.2, 0.2, (0.05, 0.4), "trl_docs", "0.2"),),
    "temperature": (Usual(0.7, 1.0, (0.5, 1.3), "axolotl_stability; chosen", kinds=POLICIES),),
    "top_k": (Usual(20, NO_UPPER_BOUND, (10, NO_UPPER_BOUND), "chosen", "none, or 20 and more", POLICIES),),
    "top_p": (Usual(0.9, 1.0, (0.8, 1.0), "chosen", kinds=POLICIES),),
    "num_generations": (Usual(4, 64, (4, 1e4), "axolotl_stability; chosen", kinds=POLICIES),),
    "beta": (
        Usual(0.01, 0.5, (0.01, 1.0), "smol_playbook", kinds=("preference",)),
        Usual(0.0, 0.1, (0.0, 0.2), "trl_docs; chosen", kinds=POLICIES),
    ),
    "lora_r": (Usual(8, 128, (4, 512), "axolotl_stability; chosen"),),
    "lora_dropout": (Usual(0.0, 0.1, (0.0, 0.3), "axolotl_stability; chosen"),),
    "effective_batch": (Usual(8, NO_UPPER_BOUND, (4, NO_UPPER_BOUND), "chosen", "8 and more"),),
    "hidden_size": (Usual(8, NO_UPPER_BOUND, (4, NO_UPPER_BOUND), "chosen", "8 and more"),),
    "buffer_size": (Usual(10_000, NO_UPPER_BOUND, (1000, NO_UPPER_BOUND), "chosen", "10,000 and more", ("rl",)),),
}
"""What is usual, by the canonical name of a setting; learning rates stand in `usual_rates`.

Source: with each. Chosen: the ends beyond which a value is marked, by what published recipes use."""
OF_PLAN = 0.25
"""Share of the plan that a warm-up takes at most. Chosen: published ones take up to a tenth."""
WHOLE_PASS = 20.0
"""Passes over the data from which a language model counts as seeing it often. Chosen: fine-tuning takes up to five."""


def usual_for(run: Run, name: str) -> Usual | None:
    """Return what is usual for a setting of this run, None if nothing is known of it."""
    return next((usual for usual in USUAL.get(name, ()) if not usual.kinds or run.kind in usual.kinds), None)


def usual_instead(run: Run, name: str, value: float) -> str:
    """Return what is usual for a setting of this run, "" if its value is, or if nothing is known of it."""
    usual = usual_for(run, name)
    if usual is not None:
        off = name in {"max_grad_norm", "top_k"} and value <= 0
        return "" if off or usual.marked[0] <= value <= usual.marked[1] else str(usual)
    plan = run.facts.plan
    if name == "warmup_steps" and plan and value > OF_PLAN * plan:
        return f"up to a tenth of the plan of {figure(plan)} steps"
    if name == "planned_passes" and run.kind in LANGUAGE and value > WHOLE_PASS:
        return "1 to 5"
    return ""


# Is the model so small, or so new, that it is trained like one from scratch?


MIN_TUNED_PARAMETERS = 2e7
"""Parameters below which rates are those of a new model. Chosen: the smallest published models to tune have 1e8."""
MIN_TUNED_WIDTH = 384
"""Width below which they are, where parameters are unknown. Chosen: the smallest published models to tune have 576."""
MIN_TUNED_STEP_SECONDS = 0.025
"""Seconds of an optimizer's step. Chosen: one of 1e8 parameters takes 6e8 operations for a token; as much memory
is read and written for its optimizer as takes a fast device a hundredth of a second."""
FLOPS_PER_PARAMETER_TOKEN = 6
"""Operations of training for each parameter and token. Source: Kaplan et al. 2020, arXiv 2001.08361."""
TOTAL_FLOPS = "total_flos"
"""Floating-point operations that the Trainer sums up at the end of a run."""
STEPS_A_SECOND = "train_steps_per_second"
"""Steps a second that the Trainer sums up at the end of a run."""
MAX_UNTRAINED_ACCURACY = 0.15
"""Share of tokens right at the first record of an untrained model. Chosen: a pretrained one has 0.3 at least."""
MIN_UNTRAINED_ENTROPY_NATS = 2.2
"""Nats of entropy at that record. Chosen: a pretrained one has seldom more than 1.5."""


def is_small(run: Run) -> bool:
    """Say whether parameters, width, operations or pace tell of a model that nobody tunes who wants its answers."""
    parameters = run.setting("parameters") or _by_operations(run)
    if parameters is not None:
        return parameters < MIN_TUNED_PARAMETERS
    width, seconds = run.setting("hidden_size"), _step_seconds(run)
    return (width is not None and width < MIN_TUNED_WIDTH) or (seconds is not None and seconds < MIN_TUNED_STEP_SECONDS)


def _by_operations(run: Run) -> float | None:
    flops = _summed_up(run, TOTAL_FLOPS)
    tokens = next(run.with_role(Quantity.TOKENS_SEEN, phase="train"), None)
    if flops is None or tokens is None or not len(tokens.finite):
        return None
    total = counted_up(tokens.finite.value)
    token_count = float((tokens.finite.value if total is None else total)[-1])
    return flops / (FLOPS_PER_PARAMETER_TOKEN * token_count) if token_count > 0 else None


def _step_seconds(run: Run) -> float | None:
    for quantity in (Quantity.STEP_TIME, Quantity.STEPS_PER_SECOND):
        pace = next(run.with_role(quantity, phase="train"), None)
        if pace is not None and len(pace.finite) and (typical := median(pace.finite.value)) > 0:
            return typical if quantity is Quantity.STEP_TIME else 1 / typical
    rate = _summed_up(run, STEPS_A_SECOND)
    return None if rate is None else 1 / rate


def _summed_up(run: Run, name: str) -> float | None:
    """Return the last value of what is summed up under a name, if it is positive."""
    found = next((series.finite for key, series in run.series.items() if key.rpartition("/")[2] == name), None)
    return float(found.value[-1]) if found is not None and len(found) and float(found.value[-1]) > 0 else None


def begins_untrained(run: Run) -> bool:
    """Say whether a language model begins with the answers of one that has learnt nothing: like a guess, or evenly."""
    for quantity in (Quantity.TOKEN_ACCURACY, Quantity.ENTROPY):
        first = next(run.with_role(quantity, phase="train"), None)
        if first is not None and len(first.finite):
            value = float(first.finite.value[0])
            return (
                0 < value < MAX_UNTRAINED_ACCURACY
                if quantity is Quantity.TOKEN_ACCURACY
                else value > MIN_UNTRAINED_ENTROPY_NATS
            )
    return False


# Which family an optimizer is of: how far one step goes at a learning rate follows from it.


class Family(StrEnum):
    """Optimizers whose steps scale alike.

    ADAM moves each weight by about the rate, whatever the gradient's size; LION by exactly the rate; MUON each matrix
    by the rate; SGD by rate times gradient; SELF_SET finds its own rate.
    """

    ADAM = "Adam"
    SGD = "SGD"
    LION = "Lion"
    MUON = "Muon"
    ADAFACTOR = "Adafactor"
    RMSPROP = "RMSprop"
    ADAGRAD = "Adagrad"
    SELF_SET = "an optimizer that sets its own rate"


_NAMED = (
    (("prodigy", "dadapt", "d adapt", "schedulefree prodigy"), Family.SELF_SET),
    (("muon",), Family.MUON),
    (("lion",), Family.LION),
    (("adafactor",), Family.ADAFACTOR),
    (("rmsprop",), Family.RMSPROP),
    (("adagrad", "sophia"), Family.ADAGRAD),
    (("adam", "lamb"), Family.ADAM),
    (("sgd", "momentum"), Family.SGD),
)
TRAINERS = frozenset({"hf_trainer_state", "transformers"})
"""Formats of the Trainer, whose default is AdamW: its logs need not name it."""
_ADAM_BY_DEFAULT = TRAINERS | {"megatron"}
"""Formats of all that have Adam by default. Source: Megatron-LM's `--optimizer`."""


def family_of(run: Run) -> Family | None:
    """Return the family of a run's optimizer, None where neither its name, a second beta nor the trainer tells."""
    name = (run.facts.optimizer.name or "").lower()
    for parts, family in _NAMED:
        if any(part in name for part in parts):
            return family
    by_default = not _ADAM_BY_DEFAULT.isdisjoint(run.formats) or run.facts.optimizer.betas[1] is not None
    return Family.ADAM if not name and by_default else None


# How a run is tuned (with adapters or in full), and the learning rates that are usual for that.


GENEROUS_ABOVE = 5.0
"""How far above a usual range a rate must lie, as a factor. Source: axolotl_stability, which changes it by 2 to 5."""
GENEROUS_BELOW = 10.0
"""How far below a usual range a rate must lie, as a factor. Source: axolotl_stability, which changes it by 2 to 5."""


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


FULL = "full"
ADAPTERS = "adapters"
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
_OF_ADAM = replace(_TRAINER, usual_for="anything that Adam trains")
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
OF_MOMENTUM = 4.0
"""Highest usual rate of SGD, summed over steps of a momentum. Chosen: four times that of the linear scaling rule."""
OF_ROWS = 256
"""Rows of a batch up to which it holds. Chosen: as in the linear scaling rule."""


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
            return (_TRAINER if not TRAINERS.isdisjoint(run.formats) else _OF_ADAM,)
        if family is None:
            raise CannotTell("no usual learning rate is known for this kind of run and optimizer")
        return tuple(RATES[key] for key in (("sft", FULL), ("sft", ADAPTERS), ("pretraining", FULL)))
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
    ranges = [RATES[run.kind, text] for text in (FULL, ADAPTERS) if (run.kind, text) in RATES and how in (text, None)]
    if not ranges:
        raise CannotTell("no usual learning rate is known for this kind of run")
    return tuple(ranges)


def refuse_wide(ranges: tuple[Range, ...], rate: float) -> None:
    """Raise CannotTell if a rate within the usual range may be wrong all the same."""
    if any(usual_range.wide for usual_range in ranges):
        raise CannotTell(f"{figure(rate)} is a usual rate for {ranges[0].usual_for}, but too many kinds exist")


def peak_rate(run: Run) -> tuple[float, float]:
    """Return the peak learning rate, from the configuration or the log, and the step of the log's peak.

    Raises CannotTell if neither has one.
    """
    configured = run.setting("learning_rate")
    rate = finite_of(run, "learning_rate")
    if len(rate):
        at = int(rate.value.argmax())
        return max(configured or 0.0, float(rate.value[at])), float(rate.step[at])
    if configured is None:
        raise CannotTell("not logged: learning_rate, nor is it in the configuration")
    return configured, run.first_step
