"""What a cause needs to be possible at all, and its fix without what the settings of the run have already."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mldebug_mcp.checks.curve import end_level, start_level
from mldebug_mcp.checks.evaluation import auc_of, is_of_a_guess, last_share
from mldebug_mcp.checks.gradients import moved_while_infinite, outlived
from mldebug_mcp.checks.policies import (
    MIN_DIVERGENCE_RECORDS,
    TEXT_POLICIES,
    divergences,
    kept_rise,
    rewards_of,
)
from mldebug_mcp.checks.progress import passes_at
from mldebug_mcp.checks.reference_settings import USUAL
from mldebug_mcp.checks.run.resources import (
    MEMORY_GROWS_LEAST_RECORDS,
    MIN_GROWTH_STRAIGHTNESS,
    growth_of,
    lasting_growth,
)
from mldebug_mcp.core.lazy import dataclass, regex
from mldebug_mcp.core.text import capitalised, figure, percent
from mldebug_mcp.judge.columns.policies import falls_at_intervals
from mldebug_mcp.judge.ranking import CauseEvidence
from mldebug_mcp.knowledge.catalogue import LEARNERS, advice_for
from mldebug_mcp.logs import Run
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.settings.settings import formats_kept_in
from mldebug_mcp.models import Finding, Hypothesis, NextStep, State

# What learns: most runs train a neural network, and advice for one is wrong for trees, linear models and clusters.


_SIGNS: Mapping[str, tuple[frozenset[str], re.Pattern[str]]] = {
    "boosting": (
        frozenset({"max depth"}),
        regex(r"(?i)xgb|lightgbm|\blgbm|catboost|gradient_?boost|\bgbdt\b", needs=("xgb", "gbm", "boost", "gbdt")),
    ),
    "linear": (
        frozenset({"NNZs"}),
        regex(r"(?i)\bsgd_?(?:classifier|regressor)|linear_?sv[cr]\b", needs=("sgd", "linear")),
    ),
    "clusters": (frozenset({"inertia", "ewa inertia", "mean batch inertia"}), regex(r"(?i)k-?_?means", needs="means")),
}
"""By learner: metrics that only it logs, and names of its models."""
_NAME_MODELS = ("model", "model_type", "model_name", "estimator", "classifier", "regressor", "algorithm", "booster")


def learner_of(run: Run) -> str:
    """Return what learns, as `knowledge.advice` knows it; empty for a neural network."""
    if run.kind in LEARNERS:
        return run.kind
    named = " ".join(str(run.settings[name].value) for name in _NAME_MODELS if name in run.settings)
    found = (
        learner for learner, (logged, words) in _SIGNS.items() if logged & run.series.keys() or words.search(named)
    )
    return next(found, "")


# What a cause needs to be possible at all, and what the settings and facts of a run say of that.
#
# A cause that needs half precision is out where the configuration says fp32, whatever the curves look like. What a run
# does not say rules nothing out.


EXCLUDING_BITS = 7.0
"""Bits against a cause that cannot be: a hundred to one, because a setting may be overridden where nobody sees it."""
UNLIKELY_BITS = 3.0
"""Bits against a cause that a setting makes unlikely: eight to one. Both chosen by hand."""
UNSEEN_SIGN_BITS = 5.0
"""Bits against a cause whose one sign is not logged, thirty to one: where it is to be feared, it is. Chosen by hand."""
_WHOLE = regex(r"\b(?:em|exact)$")
"""How the part of a score ends that asks whether an answer matches from end to end."""
MOSTLY_MATCHED = 0.9
"""Share of answers that match from end to end. Chosen: one in ten is wrong."""
ONE_PASS = 1.05
"""Passes over the data up to which no row comes a second time; loaders round up."""
LOST_LOSS_RECORDS = 3
"""Last records of a loss that is lost for good; chosen by hand: a single one may be skipped."""
CLIP_THAT_BOUNDS = 10.0
"""Largest norm of a clipped gradient that bounds an update. Chosen: ten times what is usual."""
RECORDS_BEFORE = 5
"""Records of the gradient norm before it is lost that have to be ordinary. Chosen."""
MAX_ORDINARY_MAGNITUDE = 1e6
"""Losses and norms below this are far from what float32 cannot hold, 3e38, also when they are squared. Chosen."""
MIN_OVERSHOOT_PRODUCT = 2.0
"""Product of learning rate and decay from which a step overshoots zero, so that decay alone diverges."""
MIN_OUTGROWN_LOSS_RATIO = 100.0
"""Times its first value that no loss of a model without weights has. Chosen by hand, far above that of bad guesses."""
FACTOR_OF_FIX = 2.0
"""Times the highest usual rate from which a fix names that rate. Chosen: till then a factor of 2 leads below it."""
AT_THE_START = 0.1
"""Share of a log within which trouble leaves no checkpoint from before it."""
FIRST_STEPS = 10
"""Steps within which a run begins."""
MOST_EQUAL = 0.5
"""Share of groups with equal rewards up to which a step has a gradient. Chosen: half of them still give one."""
SAME_REWARDS = 1e-3
"""Standard deviation of rewards below which they are as good as equal. Chosen: rewards are mostly of the order of 1."""
MIN_MEMORY_GROWTH_SHARE = 0.5
"""Share of its first level by which memory grows. Chosen: fragments and longer batches take less."""
GROWS_ON = 2.0
"""Times its value that a divergence grows over the last quarter of the log without end. Chosen: it doubles."""
MAX_IDLE_GAIN_SHARE = 0.1
"""Share of its rise that a reward gains meanwhile, at most, where it earns no more. Chosen by hand."""
LONG_WARMUP = 0.05
"""Share of the plan from which a warm-up is not short: usual are 0.01 to 0.1."""


@dataclass(frozen=True, slots=True)
class Need:
    """What shows, in words, that a run lacks what a cause needs; and the bits against the cause where it does."""

    lacks: Callable[[Run], str | None]
    bits: float = EXCLUDING_BITS


_LENGTHS = regex(r"len|(?<!distinct_)(?<!unique_)(?:char|word|token)s?(?![^\W_])", re.IGNORECASE)
"""What the name of a metric holds that may be a length of what a policy writes: no count of distinct tokens."""


def _no_length(run: Run) -> str | None:
    """All 14 runs of the data set that earn by length log one."""
    logged = run.kind not in TEXT_POLICIES or any(map(_LENGTHS.search, run.series))
    return None if logged else "it shows in the length of what is written, and no length is logged"


_RECURRENT = regex(r"\b(?:gru|b?i?lstm|rnn)\b", re.IGNORECASE, needs=("gru", "lstm", "rnn"))
"""What a model is called that reads a sequence token by token."""


def _recurrent(run: Run) -> str | None:
    model = run.settings.text("model", "model_type")
    return f"it needs a mask, and the model is {model}" if _RECURRENT.search(model) else None


def _no_fp16(run: Run) -> str | None:
    precision = run.facts.precision
    return None if precision in {None, "fp16"} else f"it needs fp16, and the precision is {precision}"


def _fp16_unnamed(run: Run) -> str | None:
    """A configuration that names the optimizer would mostly name half precision, and its log the loss scale."""
    shown = run.facts.precision is not None or next(run.with_role(Quantity.LOSS_SCALE, Quantity.SKIPPED_STEPS), None)
    named = run.facts.optimizer.name is not None
    return "it needs fp16, which the configuration does not name" if named and not shown else None


def _no_fp8(run: Run) -> str | None:
    precision = run.facts.precision
    return None if precision in {None, "fp8", "not fp16"} else f"it needs fp8, and the precision is {precision}"


def _fp32(run: Run) -> str | None:
    # Averaged weights or the state of the optimizer may be kept in a lower one.
    kept_lower = any(name != "fp32" for _, name in formats_kept_in(run.settings))
    is_single = run.facts.precision == "fp32" and not kept_lower
    return "it needs low precision, and the precision is fp32" if is_single else None


def _no_accumulation(run: Run) -> str | None:
    counts = [run.setting(name) for name in ("gradient_accumulation_steps", "world_size")]
    once = counts[0] == 1 and counts[1] in {None, 1}
    return "it needs gradients of several parts, and one batch makes an update" if once else None


def _no_adam(run: Run) -> str | None:
    name = (run.facts.optimizer.name or "").lower()
    return f"it needs Adam, and the optimizer is {name}" if "sgd" in name else None


def _no_clipping(run: Run) -> str | None:
    return "it needs a clipping of gradients, which is off" if run.facts.clip == math.inf else None


def _clipped_as_usual(run: Run) -> str | None:
    clip = run.facts.clip
    usual = clip is not None and USUAL["max_grad_norm"][0].low <= clip < math.inf
    return f"gradients are clipped at {figure(clip)}, as is usual" if usual and clip else None


def _clipping_bounds_updates(run: Run) -> str | None:
    """Say that clipping bounds each update, which a gradient that explodes needs to be without."""
    clip = run.facts.clip
    bounds = clip is not None and 0 < clip <= CLIP_THAT_BOUNDS
    return f"gradients are clipped at {figure(clip)}, which bounds each update" if bounds and clip else None


def _infinite_and_without_effect(run: Run) -> str | None:
    """Say that gradients are infinite to the end and move nothing: what explodes ruins the loss."""
    stands_still = moved_while_infinite(run) == 0
    return "each grad_norm up to the last is infinite, and the loss stands still and finite" if stands_still else None


def _backward_alone_fails(run: Run) -> str | None:
    """Say that the gradient of an ordinary loss is NaN, after ordinary ones, in a precision without overflow.

    Updates that are too large make the weights or the loss huge first: what no number of the record before is near
    cannot overflow in the backward pass, unless the precision is fp16.
    """
    if not all(name in run for name in ("loss", "grad_norm")) or not _holds_large_numbers(run):
        return None
    loss, norm = run["loss"], run["grad_norm"]
    lost = np.flatnonzero(np.isnan(norm.value))
    if not len(lost) or not lost[0]:
        return None
    at = int(lost[0])
    losses = loss.value[loss.step == norm.step[at]]
    before = norm.value[max(0, at - RECORDS_BEFORE) : at]
    ordinary = len(losses) and np.isfinite(losses).all() and (np.abs(losses) < MAX_ORDINARY_MAGNITUDE).all()
    if not ordinary or not np.isfinite(before).all() or (before >= MAX_ORDINARY_MAGNITUDE).any():
        return None
    return (
        f"grad_norm is NaN at {run.place(norm.step[at])} with a loss of {figure(losses[0])}, after "
        f"{figure(before[-1])} one record before: a backward pass of ordinary numbers fails"
    )


def _holds_large_numbers(run: Run) -> bool:
    """Say whether a run computes in a precision that overflows at 1e38 only, as far as it says."""
    scaled = next(run.with_role(Quantity.LOSS_SCALE, Quantity.SKIPPED_STEPS), None) is not None
    if run.facts.precision is None:
        return _fp16_unnamed(run) is not None
    return run.facts.precision in {"fp32", "bf16", "not fp16"} and not scaled


def _no_decay(run: Run) -> str | None:
    return "it needs weight decay, which is 0" if run.facts.optimizer.weight_decay == 0 else None


def _outgrows_decay(run: Run) -> str | None:
    """Say that the loss grows far beyond its beginning, where decay only shrinks weights: below 2 it never flips them.

    A model whose weights shrink to nothing has the loss of a constant answer, which an untrained model has too.
    """
    decay, rate = run.facts.optimizer.weight_decay, run.facts.schedule.peak
    loss = run["loss"].finite.value if "loss" in run else np.empty(0)
    if (
        len(loss) < LOST_LOSS_RECORDS
        or loss[0] <= 0
        or (decay is not None and rate is not None and decay * rate >= MIN_OVERSHOOT_PRODUCT)
    ):
        return None
    times = float(loss[-1]) / float(loss[0])
    grows = f"the loss ends at {figure(times)} times its beginning, and decay alone only shrinks weights"
    return grows if times >= MIN_OUTGROWN_LOSS_RATIO else None


def _shuffled(run: Run) -> str | None:
    return "the data are shuffled, by the configuration" if run.settings.flag("shuffle") else None


def warmed_up(run: Run) -> str | None:
    """Return how long the warm-up is, where it is not short."""
    steps, plan = run.facts.schedule.warmup_steps, run.facts.plan
    long = steps is not None and plan is not None and LONG_WARMUP * plan <= steps < plan
    return f"the warm-up takes {figure(steps)} of {figure(plan)} steps" if long and steps and plan else None


def _one_pass(run: Run) -> str | None:
    made = passes_at(run, np.array([run.last_step]))
    if made is None or not 0 < (passes := float(made[0])) <= ONE_PASS:
        return None
    return f"it needs rows that come again, and the data were passed {figure(passes)} times"


def _ranks_nothing(run: Run) -> str | None:
    """Say that scores rank rows no better than a guess: where one class is rare they still do."""
    auc = auc_of(run)
    if auc is None or not is_of_a_guess(auc):
        return None
    return f"{auc.name} is {figure(auc.value[-1])}, that of a guess, whatever the threshold"


def _rewards_rise(run: Run) -> str | None:
    found = kept_rise(run)
    return None if found is None else f"the reward rises from {figure(found[0])} to {figure(found[1])} and stays"


def kl_runs_on(run: Run) -> str | None:
    """Say that the policy goes ever farther from where it was, and earns no more for it.

    Not this where it falls back at intervals, as old samples make it do.
    """
    rewards = None if any(falls_at_intervals(run)) else rewards_of(run)
    for divergence in divergences(run):
        kl = divergence.series
        if rewards is None or len(kl) < MIN_DIVERGENCE_RECORDS or end_level(kl.value) <= divergence.limit:
            continue
        since = float(kl.step[-(len(kl) // 4) - 1])
        before, end = float(kl.where(kl.step <= since).value[-1]), end_level(kl.value)
        late = rewards.value[rewards.step >= since]
        first, last = start_level(rewards.value), end_level(rewards.value)
        gains = last - start_level(late) if len(late) else 0.0
        if gains <= MAX_IDLE_GAIN_SHARE * abs(last - first) and end >= GROWS_ON * max(before, 0.0):
            return (
                f"{kl.name} goes from {figure(before)} to {figure(end)} over the last quarter of its records, "
                f"and the reward gains {figure(gains)}"
            )
    return None


def _rewards_rise_with_kl(run: Run) -> str | None:
    return None if kl_runs_on(run) else _rewards_rise(run)


def _groups_differ(run: Run) -> str | None:
    """Say that most groups hold rewards that differ throughout, so that they have advantages."""
    equal = run["frac_reward_zero_std"].finite.value if "frac_reward_zero_std" in run else np.empty(0)
    if not len(equal) or float(equal.max()) > MOST_EQUAL:
        return None
    return f"at most {percent(float(equal.max()))} of the groups have equal rewards"


def _rewards_differ(run: Run) -> str | None:
    spread = run["reward_std"].finite.value if "reward_std" in run else np.empty(0)
    least = float(spread.min()) if len(spread) else 0.0
    return f"the rewards differ: reward_std is at least {figure(least)}" if least > SAME_REWARDS else None


def _fills_memory_evenly(run: Run) -> str | None:
    """Say that memory grows evenly to the end, where a step that needs too much fails among the first."""
    for series in run.with_role(Quantity.DEVICE_MEMORY, parts=True):
        memory = series.finite
        growth = growth_of(memory)
        if growth is None or lasting_growth(memory) is None:
            continue
        if (
            len(memory) >= MEMORY_GROWS_LEAST_RECORDS
            and growth.share >= MIN_MEMORY_GROWTH_SHARE
            and growth.straightness >= MIN_GROWTH_STRAIGHTNESS
        ):
            return f"{memory.name} grows evenly from {figure(memory.value[0])} to {figure(memory.value[-1])} at the end"
    return None


def _answers_whole(run: Run) -> str | None:
    """Say that nearly all answers are right from end to end: a model that saw them in training could not write them."""
    scores = run.with_role(Quantity.ACCURACY, Quantity.SUCCESS_RATE, phase="eval", parts=True)
    whole = (
        series.finite
        for series in scores
        if series.role and (_WHOLE.search(series.role.part) or series.role.quantity is Quantity.SUCCESS_RATE)
    )
    found = next((series for series in whole if last_share(series) >= MOSTLY_MATCHED), None)
    if found is None:
        return None
    return f"{found.name} is {figure(found.value[-1])} at the end: whole answers are right"


def _ends_not_finite(run: Run) -> str | None:
    if "loss" not in run:
        return None
    last = run["loss"].value[-LOST_LOSS_RECORDS:]
    lost = len(last) == LOST_LOSS_RECORDS and not np.isfinite(last).any()
    return "the loss is not finite at the end, which it does not lead to" if lost else None


def _lost_at_once(run: Run) -> str | None:
    """Say that the loss or its gradient is not finite in the first step, whose weights no update has touched."""
    named = [run[name] for name in ("loss", "grad_norm") if name in run and len(run[name])]
    lost = [series for series in named if series.step[0] <= 1 and not np.isfinite(series.value[0])]
    alone = run.step_name == "step" and all(len(series) < 2 or series.step[1] > series.step[0] for series in lost)
    return f"{lost[0].name} is not finite before any update was made" if lost and alone else None


def _outlives_its_loss(run: Run) -> str | None:
    """Say that the model goes on behind the record from which no loss is finite: no update has ruined it."""
    found = outlived(run)
    if found is None:
        return None
    return f"grad_norm is finite in all {len(found[1])} records from {run.place(found[0].step)} on"


NO_WAY_TO_NAN = (
    "lr_too_low", "too_little_capacity", "overfitting", "duplicated_data", "unshuffled_data", "label_noise",
    "no_signal",
    "class_imbalance", "train_eval_leakage", "train_eval_mismatch", "eval_mode_bug", "metric_bug", "prompt_not_masked",
    "params_not_training", "clip_too_tight", "batch_too_small", "dataloader_bottleneck", "throughput_degradation",
    "memory_leak", "length_grouped_batches", "too_few_epochs", "weight_decay_too_high", "vanishing_gradients",
)  # fmt: skip
"""Causes that make a loss high, flat or misleading, and no number that is not finite."""
_FINITE = Need(_ends_not_finite)
OF_NETWORKS_ALONE = (
    "insufficient_warmup", "clip_too_tight", "weight_decay_too_high", "adam_instability", "vanishing_gradients",
    "dead_units", "bad_init", "missing_zero_grad", "grad_accum_scaling", "fp16_overflow", "fp8_zero_scale",
    "low_precision_update", "logit_drift", "double_softmax", "eval_mode_bug", "rows_mixed", "causal_mask_missing",
    "label_shift_error", "tokenizer_mismatch", "prompt_not_masked", "all_labels_masked", "length_grouped_batches",
    "representation_collapse", "dataloader_bottleneck", "adversarial_imbalance",
)  # fmt: skip
"""Causes that trees, linear models and clusters cannot have: they have no layers, no clipping and no collator."""
_LEARNER_NAMES = {"boosting": "boosted trees", "linear": "a linear model", "clusters": "clusters"}


def _no_network(run: Run) -> str | None:
    learner = _LEARNER_NAMES.get(learner_of(run))
    return f"it is a fault of neural networks, and {learner} are trained" if learner else None


_BY_UPDATES = ("lr_too_high", "insufficient_warmup", "missing_zero_grad", "adam_instability", "logit_drift",
               "grad_accum_scaling", "value_instability", "exploding_gradients")  # fmt: skip
"""Causes that ruin a model by updates of it, after some steps."""
_OF_SETTINGS: Mapping[str, tuple[Need, ...]] = {
    "fp16_overflow": (Need(_no_fp16), Need(_fp16_unnamed, UNLIKELY_BITS)),
    "fp8_zero_scale": (Need(_no_fp8),),
    "low_precision_update": (Need(_fp32),),
    "grad_accum_scaling": (Need(_no_accumulation),),
    "adam_instability": (Need(_no_adam),),
    "clip_too_tight": (Need(_no_clipping), Need(_clipped_as_usual, UNLIKELY_BITS)),
    "weight_decay_too_high": (Need(_no_decay), Need(_outgrows_decay)),
    "unshuffled_data": (Need(_shuffled, UNLIKELY_BITS),),
    "insufficient_warmup": (Need(warmed_up, UNLIKELY_BITS), Need(_rewards_rise, UNLIKELY_BITS)),
    "lr_too_high": (Need(_rewards_rise, UNLIKELY_BITS),),
    "out_of_memory": (Need(_fills_memory_evenly, UNLIKELY_BITS),),
    "kl_blowup": (Need(_rewards_rise_with_kl, UNLIKELY_BITS),),
    "overfitting": (Need(_one_pass, UNLIKELY_BITS),),
    "exploding_gradients": (
        Need(_clipping_bounds_updates, UNLIKELY_BITS),
        Need(_infinite_and_without_effect, UNLIKELY_BITS),
    ),
    "class_imbalance": (Need(_ranks_nothing, UNLIKELY_BITS),),
    "no_reward_variance": (Need(_groups_differ), Need(_rewards_differ, UNLIKELY_BITS)),
    "reward_broken": (Need(_groups_differ), Need(_rewards_differ, UNLIKELY_BITS)),
    "exploration_failure": (Need(_groups_differ), Need(_rewards_differ, UNLIKELY_BITS)),
    "length_exploitation": (Need(_no_length, UNSEEN_SIGN_BITS),),
    "label_shift_error": (Need(_answers_whole, UNLIKELY_BITS),),
    "causal_mask_missing": (Need(_answers_whole, UNLIKELY_BITS), Need(_recurrent, UNLIKELY_BITS)),
}
NEEDS: Mapping[str, tuple[Need, ...]] = {
    cause: (
        *_OF_SETTINGS.get(cause, ()),
        *((_FINITE,) if cause in NO_WAY_TO_NAN else ()),
        *((Need(_no_network),) if cause in OF_NETWORKS_ALONE else ()),
        *(
            (Need(_lost_at_once, UNLIKELY_BITS), Need(_backward_alone_fails, UNLIKELY_BITS))
            if cause in _BY_UPDATES
            else ()
        ),
        *((Need(_outlives_its_loss),) if cause in _BY_UPDATES else ()),
    )
    for cause in dict.fromkeys((*_OF_SETTINGS, *NO_WAY_TO_NAN, *_BY_UPDATES, *OF_NETWORKS_ALONE))
}
"""What each cause needs; those that are not listed need nothing that a run could lack."""


def evidence_from_needs(run: Run) -> list[CauseEvidence]:
    """Return what contradicts causes because the run lacks what they need; what many need is asked once."""
    lacking = {lacks: lacks(run) for lacks in {need.lacks for needs in NEEDS.values() for need in needs}}
    return [
        CauseEvidence(cause, -need.bits, lack, "log")
        for cause, needs in NEEDS.items()
        for need in needs
        if (lack := lacking[need.lacks]) is not None
    ]


def _clipped(run: Run) -> str | None:
    clip = run.facts.clip
    works = clip is not None and 0 < clip <= USUAL["max_grad_norm"][0].marked[1]
    return f"gradients are clipped at {figure(clip)} already" if works and clip is not None else None


_ADVICE: tuple[tuple[re.Pattern[str], Callable[[Run], str | None]], ...] = (
    (regex(r"(?i:keep |use )?(?i:clip gradients|clip by global norm|gradient clipping|clipping)"), _clipped),
    (
        regex(r"(?i:(?:lengthen|longer) warm-?up|warm up over)"),
        lambda run: f"{warm_up} already" if (warm_up := warmed_up(run)) else None,
    ),
    (regex(r"`shuffle=True`"), lambda run: "shuffle is on already" if run.settings.flag("shuffle") else None),
    (
        regex(r"(?i:(?:use )?bf16 (?:where|instead))"),
        lambda run: "it computes in bf16 already" if run.facts.precision == "bf16" else None,
    ),
)
"""How advice begins in the fixes of PLAYBOOK.md, and what shows, in words, that a run does so already."""
_OF_IMAGES = regex(
    r"vlm|vision|llava|image|pixel|-vl\b|mm_projector",
    needs=("vlm", "vision", "llava", "image", "pixel", "-vl", "mm_projector"),
)
_OF_ADAPTERS = regex(r"(?i)lora|\bpeft")
_SENTENCES = regex(r"(?<=[.!?])\s+(?=[A-Z`])")
_SETTING = regex(r"(?i:set |with |by )?\(?`(\w+)=([^`]+)`")
"""A setting that a fix names with its value."""
_PIECES = regex(r"((?:; |, |(?<=[.)]) )(?:and |or |then )?)")
_SCOPES = ("In ", "For ", "With ")
"""How a sentence begins that names the trainings for which it holds."""
_GOES_ON = ("which ", "that ", "as ")
"""How a piece begins that is about the one before."""


def _kinds(*kinds: str) -> Callable[[Run], bool]:
    return lambda run: run.kind in kinds


def _shows_images(run: Run) -> bool:
    """Say whether the settings name a model that reads images and text."""
    named = " ".join(f"{name} {value}" for name, value in run.settings.flat.items()).lower()
    return run.kind in ("sft", "pretraining", "preference", "grpo") and bool(_OF_IMAGES.search(named))


_OF_OTHERS = (
    (regex(r"\bVLM|\btowers?\b|\bprojector\b|\bimage tokens\b"), _shows_images),
    (regex(r"\b(?:online |[Ii]n )RL\b|\bIn RL\b|policy objective|`VecNormalize`"), _kinds("rl", "ppo", "grpo")),
    (regex(r"\bGRPO\b"), _kinds("grpo")),
    (regex(r"\bIn diffusion\b"), _kinds("diffusion")),
    (regex(r"[Pp]reference (?:training|data)"), _kinds("preference")),
    (regex(r"\bBLOOM|\bOPT-|layer-wise for language"), _kinds("pretraining", "sft")),
)
"""Words of a sentence that is for other trainings than a run, and what says that the run is one of those."""


def with_fitting_fixes(run: Run, hypotheses: Sequence[Hypothesis], findings: Sequence[Finding]) -> list[Hypothesis]:
    """Return the hypotheses, their fixes as this run needs them, without what its settings have already."""
    learner = learner_of(run)
    return [
        of_learner(hypothesis, learner)
        if hypothesis.fix and advice_for(hypothesis.cause, learner)
        else hypothesis.model_copy(
            update={"fix": of_these_findings(run, of_this_kind(run, fitting(run, hypothesis.fix)), findings)}
        )
        if hypothesis.fix
        else hypothesis
        for hypothesis in hypotheses
    ]


def of_learner(hypothesis: Hypothesis, learner: str) -> Hypothesis:
    """Return a hypothesis with the fix and the check of a learner that has its own."""
    advice = advice_for(hypothesis.cause, learner)
    if advice is None or not hypothesis.fix:
        return hypothesis
    check_fields = {name: getattr(advice, name) for name in ("action", "cost", "confirms", "refutes")}
    check = NextStep.model_validate({"id": f"{hypothesis.cause}.1", **check_fields})
    return hypothesis.model_copy(update={"fix": advice.fix, "next_steps": [check]})


_BY_A_FACTOR = "Lower the peak by a factor of 2 to 5"
_GO_BACK = "restart from a checkpoint before the trouble"
_RECOVERED = "A single spike that recovered needs no restart."


def of_these_findings(run: Run, fix: str, findings: Sequence[Finding]) -> str:
    """Return a fix with what is seen of the run.

    That is how far its learning rate is above the usual, whether it fails from the start, and whether its loss is lost
    for good.
    """
    present = [finding for finding in findings if finding.state is State.PRESENT]
    high = next(
        (finding for finding in present if finding.symptom == "lr_high" and finding.values["factor"] > FACTOR_OF_FIX),
        None,
    )
    if high is not None:
        fix = fix.replace(_BY_A_FACTOR, f"Lower the peak to {figure(high.values['usual_high'])} or below")
    lost = next(
        (finding.steps[0] for finding in present if finding.symptom == "loss_nonfinite" and finding.steps), None
    )
    if lost is not None and _ends_not_finite(run) and outlived(run) is None:
        fix = fix.replace(_RECOVERED, f"Restart from a checkpoint before {run.place(lost)}: the loss does not recover.")
    early = run.first_step + AT_THE_START * (run.last_step - run.first_step)
    began = [finding.steps[0] for finding in present if finding.steps and finding.symptom.startswith("loss_")]
    from_the_start = begins_at_the_start(run) and bool(began) and min(began) <= early
    return fix.replace(_GO_BACK, "start again") if from_the_start else fix


def begins_at_the_start(run: Run) -> bool:
    """Say whether a log begins with the first steps of its run."""
    return run.first_step <= FIRST_STEPS and not run.resumes


def of_this_kind(run: Run, fix: str) -> str:
    """Return a fix without the sentences that are for trainings of another kind; a fix of those alone is kept.

    Of a sentence that lists several measures only those go that are for other trainings.
    """
    others = _OF_OTHERS[:1] if run.kind == "unknown" else _OF_OTHERS  # its settings tell whether it reads images
    kept = [
        _without_adapters(sentence) if _has_no_adapters(run) else sentence
        for whole in _SENTENCES.split(fix)
        if (sentence := _for_this_run(run, whole, others))
    ]
    return " ".join(kept) or fix


def _for_this_run(run: Run, sentence: str, others: Sequence[tuple[re.Pattern[str], Callable[[Run], bool]]]) -> str:
    """Return a sentence without the measures between semicolons that are for other trainings; "" where all are.

    What the sentence begins with, such as "In RL", holds for all of it.
    """
    measures = sentence.split("; ")
    kept = [measure for measure in measures if all(fits(run) or not words.search(measure) for words, fits in others)]
    if not kept or (sentence.startswith(_SCOPES) and measures[0] not in kept):
        return ""
    if len(kept) == len(measures):
        return "; ".join(kept)
    rest = _sentence("; ".join(kept))
    return rest if rest.endswith(sentence[-1]) else rest + sentence[-1]


def _has_no_adapters(run: Run) -> bool:
    """Say whether a run trains no LoRA: it is of a kind that rarely does, and no setting names it."""
    named = " ".join(f"{name} {value}" for name, value in run.settings.flat.items())
    return run.kind in ("supervised", "boosting") and not _OF_ADAPTERS.search(named)


def _without_adapters(sentence: str) -> str:
    """Return a sentence without the items of its lists that are about LoRA; one of those alone is kept."""
    pieces = _PIECES.split(sentence)
    kept = [
        part
        for text, between in zip(pieces[::2], ["", *pieces[1::2]], strict=True)
        if not _OF_ADAPTERS.search(text)
        for part in (between, text)
    ]
    if len(kept) in (0, len(pieces) + 1):
        return sentence
    rest = _sentence("".join(kept[1:]))
    return rest if rest.endswith(sentence[-1]) else rest + sentence[-1]


def fitting(run: Run, fix: str) -> str:
    """Return a fix without what is done already, which is named behind it.

    A fix that is done whole is kept, with the remark: whether it works is then what to look at.
    """
    pieces = _PIECES.split(fix)
    kept: list[str] = []
    done: list[str] = []
    dropped = False
    for text, between in zip(pieces[::2], ["", *pieces[1::2]], strict=True):
        if dropped and text.startswith(_GOES_ON):
            continue
        why = _reason_in_place(run, text)
        dropped = why is not None
        if why is not None:
            done.append(why)
        elif kept and kept[-1].endswith("."):
            kept += [" ", _sentence(text)]
        else:
            kept += [between, text]
    if not done:
        return fix
    remark = "; ".join(dict.fromkeys(done))
    remark = f"{capitalised(remark)}."
    return f"{_sentence(''.join(kept[1:]))} {remark}" if kept else f"{remark} {_sentence(fix)}"


def _reason_in_place(run: Run, text: str) -> str | None:
    for words, in_place in _ADVICE:
        if words.match(text):
            return in_place(run)
    named = _SETTING.match(text)
    if named is None:
        return None
    name, value = named.groups()
    there = run.settings.flat.get(name)
    return f"{name} is {value} already" if there is not None and _has_value(there, value) else None


def _has_value(there: object, wanted: str) -> bool:
    try:
        return math.isclose(float(str(there)), float(wanted))
    except ValueError:
        return str(there).strip("\"'").lower() == wanted.strip("\"'").lower()


def _sentence(text: str) -> str:
    return capitalised(re.sub(r"^(?:and|or|then) ", "", text, flags=re.IGNORECASE))
