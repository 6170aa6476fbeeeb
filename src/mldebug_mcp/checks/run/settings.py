"""Which settings are unusual by themselves?"""

from __future__ import annotations

import re

import numpy as np

from mldebug_mcp.checks.check import (
    Answers,
    CannotTell,
    Evidence,
    Outcome,
    ask_in_turn,
    by_outcome,
    first_seen,
    known,
    outcome_of,
    question,
    symptom,
    with_attribute,
)
from mldebug_mcp.checks.curve import aligned, end_level, finite_of, positive
from mldebug_mcp.checks.evaluation import beside_training
from mldebug_mcp.checks.learning_rate import peak_of, still_rising
from mldebug_mcp.checks.policies import TEXT_POLICIES, kept_rise
from mldebug_mcp.checks.reference_settings import (
    GENEROUS_ABOVE,
    GENEROUS_BELOW,
    Family,
    Range,
    family_of,
    peak_rate,
    refuse_wide,
    usual_rates,
)
from mldebug_mcp.checks.reference_settings import USUAL as REFERENCE_SETTINGS_USUAL
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import counted, figure
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.names.words import pieces_of
from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.logs.settings.settings import POLICIES

# Is a setting unusual by itself? Of several the least usual is told.


MAX_TINY_EPSILON = 1e-12
"""Epsilon. Chosen: usual are 1e-8 to 1e-6, and 1e-10 in some language models; splatting takes 1e-15."""
LONG_MEMORY = 0.9999
"""A second moment that remembers 10,000 steps. Chosen: usual are .95 to .999."""
NAMED = ("adam", "opti")
"""Parts of the key of an epsilon that is the optimizer's: normalisation layers and policies have others."""
BARE = ("eps", "epsilon")
"""... or the whole key, where Adam is the optimizer: no other epsilon is so small and not zero."""
FAR_BELOW = 2.0
"""How far below the range, as a factor. Chosen: clearly outside."""
LENGTH_NORMALISED = ("simpo", "orpo", "cpo")
"""Losses whose beta is on another scale."""
MAX_SMALL_BATCH_ROWS = 4.0
"""Rows of an update. Chosen: its noise is half of what one row has, and no vocabulary of sizes goes below."""


def _required_setting(run: Run, name: str, what: str) -> float:
    """Return a setting; raise CannotTell where it is not given."""
    return known(run.setting(name), f"{what} is not in the configuration")


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
    epsilon = known(run.facts.optimizer.epsilon, "Adam's epsilon is not in the configuration")
    key = run.settings["adam_epsilon"].key.lower()
    is_named = any(part in key for part in NAMED)
    if not is_named and not (family_of(run) is Family.ADAM and key in BARE and epsilon > 0):
        raise CannotTell(f"it is not known what {key[:40]} is an epsilon of")
    summary = f"Adam's epsilon is {figure(epsilon)}; {REFERENCE_SETTINGS_USUAL['adam_epsilon'][0]} are usual"
    return Evidence(summary, values={"epsilon": epsilon}) if 0 <= epsilon <= MAX_TINY_EPSILON else None


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
    betas = " and ".join(f"{name} {figure(number)}" for name, number in values.items())
    usual = f"{REFERENCE_SETTINGS_USUAL['adam_beta1'][0]} and {REFERENCE_SETTINGS_USUAL['adam_beta2'][0]}"
    return Evidence(f"Adam has {betas}; usual are {usual}", values=values)


def discount_above_one(run: Run) -> Evidence | None:
    """The discount of future rewards is above 1, so that values grow with each backup.

    Not this when: it is 1, as in episodes that end.
    """
    _require(("rl", "ppo"), run)
    discount = _required_setting(run, "gamma", "the discount")
    return Evidence(f"the discount is {figure(discount)}", values={"gamma": discount}) if discount > 1 else None


def entropy_bonus_negative(run: Run) -> Evidence | None:
    """The coefficient of the entropy bonus is below zero: the policy is rewarded for being sure.

    Not this when: it is zero or above.
    """
    _require(("rl", "ppo"), run)
    bonus = _required_setting(run, "ent_coef", "the entropy bonus")
    summary = f"the entropy bonus has the coefficient {figure(bonus)}"
    return Evidence(summary, values={"ent_coef": bonus}) if bonus < 0 else None


def beta_low(run: Run) -> Evidence | None:
    """Preference optimisation holds the policy to the reference by a beta far below the usual range.

    Not this when: the loss is one whose beta is on another scale (SimPO, CPO, ORPO); beta is not in the configuration.
    """
    _require(("preference",), run)
    beta, loss = _required_setting(run, "beta", "beta"), str(run.config.get("loss_type", "")).lower()
    if any(name in loss for name in LENGTH_NORMALISED):
        raise CannotTell(f"the usual range of beta is not known for the loss {loss[:20]}")
    usual = REFERENCE_SETTINGS_USUAL["beta"][0]
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
    effective = known(run.facts.effective_batch, "the batch size is not in the configuration")
    packed = run.config.get("packing") is True or run.config.get("sample_packing") is True
    if effective > MAX_SMALL_BATCH_ROWS or packed:
        return None
    return Evidence(f"the effective batch is {figure(effective)} samples", values={"effective_batch": effective})


ask_in_turn(
    "settings",
    outcome_of(adam_epsilon_tiny, 0.005, as_chosen=True),
    outcome_of(adam_betas_odd, 0.005, as_chosen=True),
    outcome_of(discount_above_one, 0.001, as_chosen=True),
    outcome_of(entropy_bonus_negative, 0.004, as_chosen=True),
    outcome_of(beta_low, 0.008, "smol_playbook", "remote_gpu_trainer", as_chosen=True),
    outcome_of(batch_small, 0.1, "mccandlish_2018", as_chosen=True),
    whole=True,
)


# Is the peak learning rate one at which such runs learn?


MIN_EXTREME_RATE_RATIO = 15.0
"""Times the upper end of what is usual. Chosen: three times the margin that makes a rate high."""
LARGEST_OF_ALL = 30.0
"""The largest peak rate that is usual for any optimizer. Source: that of LARS (You et al., 2017)."""
MIN_TIMES_LARGEST = 10.0
"""Times that rate, from which on a rate is too high for a run of any kind. Chosen: ten times is not tuning."""
SMALLEST_MODELS = 3e-3
"""... and above this. Chosen: a model of a few layers, trained from scratch, takes it."""
LEAST_LEARNING = 12
"""Values of a loss that tell whether it learns nearly all there is. Chosen: six for each half."""
LEARNT, STAYS_LEARNT = 0.1, 0.5
"""Shares of its start at which such a loss ends, and above which it never lies in its later half. Chosen: by hand."""
MOST_OF_SECOND = 3.0
"""Times its second value that the first one is at most. Chosen: by hand."""
NEAR_BEST = 1.1
"""Times its lowest at which evaluation ends then at most. Chosen: noise between two evaluations."""
_SOURCES = ("axolotl_stability", "remote_gpu_trainer", "trl_docs", "smol_playbook", "karpathy_recipe")


def lr_high(run: Run, peak: float, step: float) -> Evidence | None:
    """The peak learning rate lies several times above the range that is usual for this kind of run and tuning.

    Not this when: the optimizer is of a family whose rates have other scales; LoRA is trained, whose are ten times; a
    policy learns and keeps what it has learnt, as those do that are small.
    """
    if peak >= MIN_TIMES_LARGEST * LARGEST_OF_ALL:
        return Evidence(
            f"{_peak_in_words(run, peak, step)}; no optimizer usually takes more than {figure(LARGEST_OF_ALL)}",
            steps=(step,),
            values={"peak": peak, "usual_high": LARGEST_OF_ALL, "factor": peak / LARGEST_OF_ALL},
        )
    ranges = usual_rates(run)
    high = [usual_range for usual_range in ranges if peak > GENEROUS_ABOVE * usual_range.high]
    if high and run.kind in TEXT_POLICIES and kept_rise(run) is not None:
        raise CannotTell("the rate would be far too high for a large policy, and this one learns at it")
    if high and run.kind not in POLICIES and _learns_nearly_all(run):
        raise CannotTell("the rate would be far too high for many a run, and this one learns nearly all at it")
    return _outside(run, ranges, high, peak, step)


def _learns_nearly_all(run: Run) -> bool:
    """Say whether the loss comes down to a small part of its start and stays there, and evaluation ends at its best."""
    loss = finite_of(run, "loss").value
    held_out = run["eval_loss"].value if "eval_loss" in run else np.empty(0)
    if len(loss) < LEAST_LEARNING or not positive(loss) or len(loss) < len(run["loss"]):
        return False
    start, later = float(loss[0]), loss[len(loss) // 2 :]
    if start > MOST_OF_SECOND * float(loss[1]):
        return False  # what the first updates blew up says nothing of where it began
    falls = end_level(loss) <= LEARNT * start and float(later.max()) <= STAYS_LEARNT * start
    return falls and (not len(held_out) or float(held_out[-1]) <= NEAR_BEST * float(np.nanmin(held_out)))


def _peak_in_words(run: Run, peak: float, step: float) -> str:
    there = finite_of(run, "learning_rate").at(step)
    if there is None or there < peak:
        return f"learning_rate is set to {figure(peak)}"
    return f"learning_rate peaks at {figure(peak)} at {run.place(step)}"


def lr_extreme(high: Evidence) -> Evidence | None:
    """The peak learning rate lies more than an order of magnitude above the range that is usual for such a run.

    Not this when: it is a few times above the range, as for small models (`lr_high` alone); the usual range is not
    known.
    """
    return high if high.values["factor"] > MIN_EXTREME_RATE_RATIO and high.values["peak"] > SMALLEST_MODELS else None


def lr_low(run: Run, peak: float, step: float) -> Evidence | None:
    """The peak learning rate lies far below the range that is usual for this kind of run and tuning.

    Not this when: the log ends within the warmup; the optimizer is of a family whose rates have other scales.
    """
    ranges = usual_rates(run)
    if run.setting("learning_rate") is None and still_rising(run):
        raise CannotTell("the log may end within the warmup of the learning rate, whose peak is not configured")
    low = [usual_range for usual_range in ranges if 0 < peak < usual_range.low / GENEROUS_BELOW]
    return _outside(run, ranges, low, peak, step)


def _outside(run: Run, ranges: tuple[Range, ...], left: list[Range], peak: float, step: float) -> Evidence | None:
    """Compare the peak with the farthest of the usual ranges that it leaves; CannotTell if not all."""
    if not left:
        refuse_wide(ranges, peak)
        return None
    above = peak > left[0].high
    near, far = (left[0], ranges[-1]) if above else (left[-1], ranges[0])
    if len(left) < len(ranges):
        raise CannotTell(
            f"the peak, {figure(peak)}, is far {'above' if above else 'below'} what is usual for {near.usual_for}, "
            f"but not for {far.usual_for}; the configuration does not tell which it is"
        )
    factor = peak / (far.high if above else far.low)
    return Evidence(
        f"{_peak_in_words(run, peak, step)}; usual for {far.usual_for} are {figure(far.low)} to {figure(far.high)}",
        steps=(step,),
        values={"peak": peak, "usual_low": far.low, "usual_high": far.high, "factor": factor},
    )


@question(
    outcome_of(lr_high, 0.05, *_SOURCES, as_chosen=True),
    outcome_of(lr_extreme, 0.02, *_SOURCES, of="lr_high", as_chosen=True),
    outcome_of(lr_low, 0.02, *_SOURCES, as_chosen=True),
    not_for=("diffusion",),
)
def rate_level(run: Run) -> Answers:
    """Compare the peak rate with the ranges that are usual for such a run, on both sides."""
    answers = first_seen(by_outcome((lr_high, lr_low), run, *peak_rate(run)))
    return with_attribute(answers, "lr_high", lr_extreme)


# Does the configured regularisation outweigh the data?


(USUAL,) = REFERENCE_SETTINGS_USUAL["weight_decay"]
"""What is usual for weight decay. Source: axolotl_stability."""
MIN_HIGH_DECAY_RATIO = 2.0
"""Times the usual. Chosen: the least that is clearly above."""
PER_STEP = {Family.LION: 0.02, Family.MUON: 0.1}
"""The share of itself that a weight may lose in a step, of families that take more. Chosen: several times the usual."""
LEAST_PER_STEP = 0.005
"""... and of all others. Chosen: so a weight forgets what it learnt 200 steps ago; usual are 1e-6 to 1e-3."""
LEAST_DECAY = 0.02
"""A decay of SGD below this is usual whatever the rate. Chosen: where the product is large the rate is."""
OUTWEIGHS = Outcome(
    "weight_decay_outweighs",
    """At its highest rate, a step takes so much of each weight that what was learnt 200 steps ago is forgotten.

    Not this when: the optimizer takes larger values by design (Lion, Muon); decay itself is usual.""",
    background=0.003,
    sources=("axolotl_stability",),
    as_chosen=True,
)
HIGH = Outcome(
    "weight_decay_high",
    """The configured weight decay is twice what is usual.

    Not this when: the optimizer takes larger values by design (Lion, Muon); it outweighs a step, which says more.""",
    background=0.02,
    sources=("axolotl_stability",),
    as_chosen=True,
    instead=(OUTWEIGHS.id,),
)


@question(OUTWEIGHS, HIGH, whole=True, not_for=("diffusion",))
def regularisation(run: Run) -> Answers:
    """Judge the configured weight decay by what it takes in a step, else on its own."""
    decay = known(run.facts.optimizer.weight_decay, "weight_decay is not in the configuration")
    family, peak = family_of(run), _peak(run)
    values, summary = {"weight_decay": decay}, f"weight_decay is {figure(decay)}; {USUAL} is usual"
    if peak is not None:
        per_step = values["per_step"] = decay * peak
        summary += f"; at a rate of {figure(peak)} a weight loses {figure(per_step)} of itself in a step"
        least = LEAST_PER_STEP if family is None else PER_STEP.get(family, LEAST_PER_STEP)
        unusual = decay > USUAL.high or (family is Family.SGD and decay >= LEAST_DECAY)
        if per_step >= least and unusual:
            return {OUTWEIGHS.id: Evidence(summary, values=values)}
    is_high = decay >= MIN_HIGH_DECAY_RATIO * USUAL.high and family not in PER_STEP
    return {HIGH.id: Evidence(summary, values=values)} if is_high else {}


def _peak(run: Run) -> float | None:
    logged = peak_of(run)
    return run.facts.schedule.peak or (None if logged is None else logged.value)


# Prompts count in the loss: the configuration says so, or all labels do.


SETTINGS = {"completion_only_loss": False, "train_on_inputs": True, "train_on_prompt": True, "train_on_source": True}
"""Settings of TRL, Axolotl, LLaMA-Factory and QLoRA, and the value with which prompts are trained on."""
MIN_ALL_LABELS_SHARE = 0.999
"""Share of the labels that count. Chosen: rows whose every token is an answer are rare."""
MIN_LABEL_RECORDS = 3
"""Records of that share. Chosen: by hand."""
END_TOKENS = 2
"""Tokens that an answer has beyond its own: those of its template's end. Chosen: an end of turn and a line break."""
_COUNTED = regex(
    r"(?:train_)?(?:loss|labels?|targets?|supervised|trained|trainable|unmasked)_(?:(?:tokens?|labels?)_)?"
    r"(?:frac(?:tion)?|share|ratio|pct)",
    needs=("frac", "share", "ratio", "pct"),
)
_TOKENS = regex(r"(?:train_)?(?:num_|n_)?(?:all_|total_|input_)?tokens(?:_per_record)?", needs="tokens")


@symptom(
    needs=(),
    sources=("axolotl_stability",),
    not_for=("pretraining", "preference", "grpo", "ppo", "rl", "diffusion"),
    whole=True,
    background=0.08,
)
def prompt_in_loss(run: Run) -> Evidence | None:
    """A fine-tune counts prompt tokens in the loss: its configuration says so, or more labels count than answers have.

    Not this when: only completions count; unknown where neither such a setting nor the share of labels is given,
    because defaults differ. With short prompts and long answers it does little harm.
    """
    if (counts := prompts_counted(run)) is not None:
        return counts
    shares = _called(run, _COUNTED)
    share = next(
        (series for series in shares if len(series) >= MIN_LABEL_RECORDS and float(series.value.max()) <= 1), None
    )
    if share is not None:
        if float(share.value.min()) < MIN_ALL_LABELS_SHARE:
            return None
        summary = (
            f"{share.name} is 1 at all of {counted(len(share), 'record')}: prompts, padding and answers count alike"
        )
        return Evidence(summary, steps=(float(share.step[0]),), values={"share": float(share.value.min())})
    given = {name: run.config[name] for name in SETTINGS if run.config.get(name) is not None}
    if not given:
        raise CannotTell("the configuration does not say which tokens count in the loss")
    for name, value in given.items():
        if value is SETTINGS[name] or str(value).lower() == str(SETTINGS[name]).lower():
            return Evidence(f"the configuration sets {name} to {str(value).lower()}", values={"prompts_count": 1})
    return None


_COUNTED_PER_ROW = regex(
    r"(?P<held_out>(?:eval|val|valid|validation|dev|test)_)?(?:train_)?(?:mean_|avg_)?(?:num_|n_)?"
    r"(?:loss|labels?|targets?|supervised|trained|trainable|unmasked)_tokens_per_"
    r"(?:seq|sequence|row|sample|example)",
    needs="_tokens_per_",
)
_LENGTH_OF_ANSWERS = regex(
    r"(?:mean_|avg_)?(?:completion|answer|response)s?_(?:tokens|len(?:gth)?)", re.IGNORECASE, needs=("_tokens", "_len")
)
_LENGTH_OF_ROWS = regex(
    r"(?:mean_|avg_)?(?:seq(?:uence)?|row|sample|example)s?_(?:tokens|len(?:gth)?)", needs=("_tokens", "_len")
)
NEARLY_WHOLE = 0.9
"""Share of a row's tokens that count where all do. Chosen: the first of each row does not, and rows are sampled."""


def _more_than_answers_count(run: Run) -> Evidence | None:
    """Return that more tokens of a row count in the loss than its answer has; None where the log does not show that."""
    counts = {held_out: _counted_per_row(run, held_out=held_out) for held_out in (False, True)}
    evaluated = counts[True] or _counted_in_evaluation(run)
    per_row = counts[False] or _counted_in_training(run, evaluated)
    if per_row is None or len(per_row) < MIN_LABEL_RECORDS:
        return None
    lengths = [
        (setting.key, run.setting(name))
        for name, setting in run.settings.items()
        if _LENGTH_OF_ANSWERS.fullmatch(setting.key.rpartition("/")[2])
    ]
    logged = [series for series in run.with_role(Quantity.COMPLETION_LENGTH) if len(series.finite)]
    lengths += [
        (series.logged_as or series.name, _of_each_row(run, float(series.finite.value.max()))) for series in logged
    ]
    if evaluated is not None and len(evaluated):
        lengths.append((evaluated.name, float(evaluated.value.max())))
    least = float(per_row.value.min())
    name, length = next(((name, length) for name, length in lengths if length), ("", 0.0))
    if not length or least <= length + END_TOKENS:
        return None
    in_evaluation = (
        {series.logged_as or series.name for series in logged if series.role and series.role.phase == "eval"}
        if _ends_far_above_evaluation(run)
        else set[str]()
    )
    if evaluated is not None:
        in_evaluation.add(evaluated.name)
    summary = (
        f"{per_row.name} is {figure(least)} or more in all {counted(len(per_row), 'record')}, and {name} is "
        f"{figure(length)}: tokens of the prompt count in the loss too"
    )
    values = {"counted": least, "answer": length, "by_evaluation": float(name in in_evaluation)}
    return Evidence(summary, steps=(float(per_row.step[0]),), values=values)


def _of_each_row(run: Run, tokens: float) -> float:
    """Return tokens of each row: where there are more than a row has, they are those of a batch."""
    rows, length = run.facts.effective_batch, _length_of_rows(run)
    return tokens / rows if rows and length and tokens > length else tokens


def _ends_far_above_evaluation(run: Run) -> bool:
    """Say whether the training loss ends far above that of evaluation, as where prompts count in training alone."""
    if "loss" not in run or "eval_loss" not in run:
        return False
    _, train, evaluation = beside_training(run["loss"].finite, run["eval_loss"])
    return bool(len(train)) and float(train[-1]) > LOSSES_APART * float(evaluation[-1]) > 0


def _counted_per_row(run: Run, *, held_out: bool) -> Series | None:
    """Return how many tokens of each row count, of training or of evaluation; None where it is not logged."""
    found = ((series, _COUNTED_PER_ROW.fullmatch("_".join(pieces_of(series.name)))) for series in run.series.values())
    return next((series.finite for series, match in found if match and bool(match["held_out"]) is held_out), None)


def _counted_in_training(run: Run, evaluated: Series | None) -> Series | None:
    """Return the tokens of each row that count in the loss of a batch; None where they may be a sum over batches.

    They are none where rows have hardly more, or where evaluation counts others and rows have as many.
    """
    per_row, length = _counted_of_each_row(run, "train", run.facts.effective_batch), _length_of_rows(run)
    if per_row is None or not length or (count := median(per_row.value)) > length:
        return None
    times = count / median(evaluated.value) if evaluated is not None and median(evaluated.value) > 0 else 0.0
    is_sum = abs(times / (run.setting("logging_steps") or 1) - 1) < 1 - NEARLY_WHOLE
    return per_row if count >= NEARLY_WHOLE * length or (times > 1 and not is_sum) else None


def _length_of_rows(run: Run) -> float | None:
    rows = next(iter(_called(run, _LENGTH_OF_ROWS)), None)
    return median(rows.value) if rows is not None and len(rows) else run.setting("sequence_length")


_LABELS_SEEN = regex(
    r"(?:train_)?(?:num_|n_|total_|cumulative_)?(?:loss|labels?|targets?|supervised|trained|trainable|unmasked|completion|"
    r"answer|response)_tokens?_(?:seen|total|so_far|cumulative)|(?:total|cumulative)_(?:loss|labels?|targets?)_tokens?",
    needs="_token",
)
"""Counts of the tokens that have counted in the loss since the start."""
SAME_COUNT = 0.01
"""Share of the rows by which the tokens that are left out may be off one for each row. Chosen: a last batch is less."""


def _all_tokens_seen_count(run: Run) -> Evidence | None:
    """Return that all tokens since the start but the first of each row have counted; None where that is not shown."""
    trained = next((series for series in _called(run, _LABELS_SEEN) if len(series) >= MIN_LABEL_RECORDS), None)
    every = next((series.finite for series in run.with_role(Quantity.TOKENS_SEEN, phase="train")), None)
    rows = run.facts.effective_batch
    if trained is None or every is None or trained.name == every.name or not rows or run.step_name != "step":
        return None
    steps, total, count = aligned(every, trained)
    left_out, expected = np.diff(total - count), rows * np.diff(steps)
    if len(steps) < MIN_LABEL_RECORDS or (left_out < 0).any() or (np.diff(count) <= 0).any():
        return None
    if left_out.any() and (np.abs(left_out - expected) > SAME_COUNT * expected).any():
        return None
    return _firsts_left_out(run, trained, every, -1)


LOSSES_APART = 1.5
"""Times that one of the losses is the other at every evaluation, where they count other tokens. Chosen: by hand."""


def _counted_in_evaluation(run: Run) -> Series | None:
    """Return how many tokens of each row count in evaluation, if it takes as many rows at once as training, or all.

    Where the settings do not say that, the losses do: they are apart from the first evaluation on. All rows are taken
    where rows have fewer tokens than a batch would have for each.
    """
    if "loss" not in run or "eval_loss" not in run:
        return None
    _, train, evaluation = beside_training(run["loss"].finite, run["eval_loss"])
    if not len(train):
        return None
    is_apart = bool((evaluation > LOSSES_APART * train).all() or (train > LOSSES_APART * evaluation).all())
    rows, length = run.setting("per_device_eval_batch_size"), _length_of_rows(run)
    of_batch = _counted_of_each_row(run, "eval", run.facts.effective_batch)
    if is_apart and of_batch is not None and length and float(of_batch.value.min()) > length:
        return _counted_of_each_row(run, "eval", run.setting("eval_rows"))
    is_alike = is_apart if rows is None else rows == run.facts.effective_batch
    return of_batch if is_alike else None


def _counted_of_each_row(run: Run, phase: str, rows: float | None) -> Series | None:
    """Return the tokens that count in the loss over so many rows, None where either is not known."""
    counts = next(run.with_role(Quantity.LOSS_TOKENS, phase=phase), None)
    if counts is None or not len(counts.finite) or not rows:
        return None
    return Series(f"{counts.name} of each row", counts.finite.step, counts.finite.value / rows)


def prompts_counted(run: Run) -> Evidence | None:
    """Return that all tokens count in the loss, or more of a row than its answer has; None where no column says so."""
    return (
        _all_tokens_count(run) or _all_tokens_seen_count(run) or _padding_counts(run) or _more_than_answers_count(run)
    )


def _called(run: Run, names: re.Pattern[str]) -> list[Series]:
    return [series.finite for name, series in run.series.items() if names.fullmatch("_".join(pieces_of(name)))]


_WITHOUT_PADDING = regex(
    r"(?:train_)?(?:num_|n_)?(?:(?:non_?pad(?:ded|ding)?|not_pad(?:ded|ding)?|unpadded|real|attended)_tokens?|"
    r"tokens?_(?:without|no|non)_pad(?:ding)?)",
    needs="token",
)
"""Counts of the tokens of a batch that are no padding."""
MORE_COUNT = 1.1
"""Times as many tokens as rows have without padding. Chosen: an end of each row, which padding may be, is less."""


def _padding_counts(run: Run) -> Evidence | None:
    """Return that more tokens count in the loss than are no padding; None where the log does not show that."""
    trained = next((series.finite for series in run.with_role(Quantity.LOSS_TOKENS, phase="train")), None)
    real = next(iter(_called(run, _WITHOUT_PADDING)), None)
    if trained is None or real is None:
        return None
    steps, count, without = aligned(trained, real)
    if len(steps) < MIN_LABEL_RECORDS or not (count > MORE_COUNT * without + (run.facts.effective_batch or 0)).all():
        return None
    summary = (
        f"{trained.name} is {figure(count[0])} where {real.name} is {figure(without[0])}, and more in all "
        f"{counted(len(steps), 'record')}: padding counts in the loss too"
    )
    values = {"counted": float(count[0]), "without_padding": float(without[0])}
    return Evidence(summary, steps=(float(steps[0]),), values=values)


def _all_tokens_count(run: Run) -> Evidence | None:
    """Return that each record trains on all tokens but the first of each row; None where the log does not show that.

    The first token of a row is predicted by nothing, so that the tokens that count are fewer by the rows of a step.
    """
    counted_tokens = run.with_role(Quantity.LOSS_TOKENS, phase="train")
    batch_tokens = [*run.with_role(Quantity.BATCH_TOKENS, phase="train"), *_called(run, _TOKENS)]
    trained, every = (next((series.finite for series in of), None) for of in (counted_tokens, batch_tokens))
    return None if trained is None or every is None else _without_mask(run, trained, every)


def places_counted(run: Run) -> Evidence | None:
    """Return that each record trains on all places of rows of the configured length, prompts and padding included."""
    rows, length = run.facts.effective_batch, _length_of_rows(run)
    trained = next((series.finite for series in run.with_role(Quantity.LOSS_TOKENS, phase="train")), None)
    if trained is None or not rows or not length:
        return None
    every = Series(
        f"places in {figure(rows)} rows of {figure(length)}", trained.step, np.full(len(trained), rows * length)
    )
    return _without_mask(run, trained, every)


def _without_mask(run: Run, trained: Series, every: Series) -> Evidence | None:
    """Return that each record trains on all of some tokens, or on all but the first of each row."""
    rows = run.facts.effective_batch
    if len(trained) < MIN_LABEL_RECORDS:
        return None
    steps, total, count = aligned(every, trained)
    left_out = total - count
    expected = (0.0,) if rows is None else (0.0, rows)
    if not len(steps) or not any(bool((left_out == number).all()) for number in expected):
        return None
    return _firsts_left_out(run, trained, every, 0)


def _firsts_left_out(run: Run, trained: Series, every: Series, at: int) -> Evidence:
    steps, total, count = aligned(every, trained)
    return Evidence(
        f"{trained.name} is {figure(count[at])} of {figure(total[at])} {every.name} at {run.place(steps[at])}, and in "
        f"all {counted(len(steps), 'record')} no more than the first token of each row is left out: prompts count too",
        steps=(float(steps[0]),),
        values={"share": float((count / total).min())},
    )
