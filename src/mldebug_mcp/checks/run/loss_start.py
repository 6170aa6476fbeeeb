"""On what scale is the loss, where does it start, and do the first steps make it worse?"""

from __future__ import annotations

import math
import re

import numpy as np

from mldebug_mcp.checks.check import CannotTell, Evidence, ask_in_turn, finite_loss, known, outcome_of
from mldebug_mcp.checks.curve import (
    at_common_steps,
    blocks,
    finite_of,
    first_finite,
    mad,
    median_of_three,
    noise,
    positive,
    relative_noise,
    start_level,
)
from mldebug_mcp.checks.evaluation import (
    ACCURACIES,
    as_shares,
    beside_training,
    evaluation_stands,
    harder_in_training,
    measured_term,
    mixes_labels,
    refuse_new_terms,
    refuse_sums_of_epochs,
)
from mldebug_mcp.checks.learning_rate import rate_of
from mldebug_mcp.checks.progress import (
    CROSS_ENTROPY,
    LANGUAGE_MODELS,
    MAX_LN_VOCABULARY,
    MAX_STARTING_PASSES,
    is_late,
    uniform_loss,
)
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import figure, ratio
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.run import Run, Series

# The loss is a multiple of what it should be.


NEAR_KNOWN = 0.15
"""How near a first loss comes to a multiple of the known micro-batches. Chosen: the more choice, the nearer."""
NEAR_GUESSED = 0.04
"""The same of a usual number of micro-batches. Chosen: the more there are to choose from, the nearer."""
OUTWEIGHED = 1 / 3
"""Share of a loss that what evaluation measures has at least, where it is what training is for. Chosen: by hand."""
NEAR_ROWS = 0.08
"""How near to a uniform guess the first loss of a row comes where rows are summed. Chosen: a new head is so near."""
NEAR_EVALUATION = 0.25
"""How near the quotient to the evaluation loss must come. Chosen: noise, dropout and known rows move it so far."""
MAX_QUOTIENT_SIGMAS = 3.0
"""Standard deviations of its logarithm within which it comes. Chosen: noise, dropout and known rows move it so far."""
NEAR_STEADY = 0.155
"""How near it must come at least, where the quotients agree. Chosen: noise, dropout and known rows move it so far."""
LOSS_SCALE_SUSPICIOUS_FAR = 2.5
"""Quotient above which regularisation is unlikely. Chosen: dropout adds less than a factor of two."""
MAX_QUOTIENT_LOG_RANGE = 0.5
"""Logarithms by which the quotients of a run differ. Chosen: by hand."""
GUESSES = (4, 8, 16, 32, 64, 128)
"""Usual numbers of micro-batches. Chosen: a quotient of 2 may have other reasons."""
MAX_MICRO_BATCHES = 4096
"""Micro-batches of one step, at most. Chosen: no run accumulates more."""
LEAST_RECORDS = 3
"""Records at which a loss is a whole multiple of the logarithm of the perplexity. Chosen: by hand."""
MAX_MULTIPLE_ERROR_SHARE = 0.01
"""How near to a multiple the loss is. Chosen: both have three digits; bits are 1.44 times as many as nats."""
LOSS_SCALE_SUSPICIOUS_ABOVE = 1.1
"""Times ln(vocabulary) above which only a sum can lie. Chosen: heads add a tenth."""
LEAST_LN = 8.0
"""Nats that ln(vocabulary) then counts as at least. Chosen: by hand."""
PLAUSIBLE = (0.3, 4.5)
"""Nats per token of a trained language model on new text. Chosen: generously."""


def loss_scale_suspicious(run: Run) -> Evidence | None:
    """The training loss is a whole multiple of the evaluation loss, of a uniform guess, or of its ln(perplexity).

    Not this when: it is not a usual or configured number of micro-batches; each epoch has one record, maybe a sum;
    training answers are wrong as much more often, or dropout or augmentation makes them harder.
    """
    finite_loss(run)  # refuses a run without one
    refuse_sums_of_epochs(run)
    if (term := measured_term(run)) is not None:
        raise CannotTell(f"evaluation measures {term.name} alone, a term of the training loss")
    accumulated = run.setting("gradient_accumulation_steps")
    accumulated = accumulated if accumulated is not None and 2 <= accumulated <= MAX_MICRO_BATCHES else None
    answers = [_against_its_logarithm(run), _against_evaluation(run, accumulated), _at_start(run, accumulated)]
    summed = _summed_over_rows(run)
    if summed is not None:
        return summed
    if all(answer is None for answer in answers):
        raise CannotTell("there is neither an evaluation loss nor a known first loss to compare with")
    if answers[1] is False and answers[0] is None:
        # An evaluation on the same scale says more than a first loss that happens to be a multiple.
        return None
    return next((answer for answer in answers if isinstance(answer, Evidence)), None)


def _against_its_logarithm(run: Run) -> Evidence | None:
    """Compare a loss with the logarithm of the perplexity at the same records; None where they agree or none is."""
    for phase, name in (("train", "loss"), ("eval", "eval_loss")):
        perplexity = next(run.with_role(Quantity.PERPLEXITY, phase=phase), None)
        if perplexity is None or name not in run:
            continue
        steps, level, power = at_common_steps(run[name], perplexity)
        keep = np.isfinite(level) & np.isfinite(power) & (level > 0) & (power > 1)
        if int(keep.sum()) < LEAST_RECORDS:
            continue
        step, level, logarithm = float(steps[keep][0]), level[keep], np.log(power[keep])
        times = median(level / logarithm)
        multiple = max(times, 1 / times)
        number = round(multiple)
        if (
            number < GUESSES[0]
            or abs(multiple / number - 1) > MAX_MULTIPLE_ERROR_SHARE
            or np.ptp(level / logarithm) > MAX_MULTIPLE_ERROR_SHARE * times
        ):
            continue
        return Evidence(
            f"{name} is {figure(times)} times the logarithm of {perplexity.name} at {len(level)} records "
            f"({figure(level[0])} against {figure(logarithm[0])} at {run.place(step)})",
            steps=(step,),
            values={"factor": times, "number": float(number)},
        )
    return None


def _against_evaluation(run: Run, accumulated: float | None) -> Evidence | bool | None:
    """Compare with the evaluation loss; False if on the same scale, None if unknown."""
    if "eval_loss" not in run or (accumulated is None and mixes_labels(run)):
        return None
    steps, train, evaluation = beside_training(run["loss"].finite, run["eval_loss"])
    keep = (train > 0) & (evaluation > 0)
    if not keep.any():
        return None
    # The earlier half: later on memorised rows lower the training loss alone.
    keep &= np.cumsum(keep) <= max(LEAST_RECORDS, (int(keep.sum()) + 1) // 2)
    quotient = train[keep] / evaluation[keep]
    factor = median(quotient)
    far = accumulated is None or accumulated > LOSS_SCALE_SUSPICIOUS_FAR
    near = float(np.clip(MAX_QUOTIENT_SIGMAS * mad(np.log(quotient)), NEAR_STEADY, NEAR_EVALUATION))
    number = _micro_batches(factor, accumulated, *((near, near) if far else (NEAR_KNOWN, NEAR_GUESSED)))
    if (
        number is None
        and accumulated is not None
        and accumulated > LOSS_SCALE_SUSPICIOUS_FAR
        and np.ptp(np.log(quotient)) < MAX_QUOTIENT_LOG_RANGE
    ):
        number = _micro_batches(1 / factor, accumulated, NEAR_GUESSED, 0.0)  # divided once too often
    steady = (
        len(quotient) >= LEAST_RECORDS
        and float(np.ptp(np.log(quotient))) < MAX_QUOTIENT_LOG_RANGE
        and float(quotient.min()) > LOSS_SCALE_SUSPICIOUS_FAR
    )
    if number is None or (accumulated is None and (not steady or _is_wrong_more_often(run))):
        return False
    if accumulated is None and harder_in_training(run):
        return None  # training may be that much harder
    return Evidence(
        f"the training loss is {ratio(factor)} times the evaluation loss (median of {len(quotient)}; "
        f"{figure(train[keep][0])} against {figure(evaluation[keep][0])} at "
        f"{run.place(steps[keep][0])}){_configured(accumulated)}",
        steps=(float(steps[keep][0]),),
        values={"factor": factor, "number": number},
    )


def _is_wrong_more_often(run: Run) -> bool:
    """Say whether training answers are wrong as many times more often as its loss is higher, which that explains."""
    if "accuracy" not in run or "eval_accuracy" not in run:
        return False
    _, train, evaluation = beside_training(run["accuracy"].finite, run["eval_accuracy"])
    wrong, wrong_later = 1 - as_shares(train), 1 - as_shares(evaluation)
    keep = wrong_later > 0
    return bool(keep.any()) and median(wrong[keep] / wrong_later[keep]) > LOSS_SCALE_SUSPICIOUS_FAR


def _at_start(run: Run, accumulated: float | None) -> Evidence | bool | None:
    """Compare the first loss with that of a uniform guess; False if on its scale, None if unknown."""
    loss = run["loss"].finite
    first, step = float(loss.value[0]), float(loss.step[0])
    if _begins_late(run) or first <= 0:
        return None
    uniform = uniform_loss(run)
    number: float | None
    if run.kind == "sft" and uniform is None:
        uniform = MAX_LN_VOCABULARY
    if uniform is None:
        return None
    level = start_level(loss.value)
    far = min(first, level) > LOSS_SCALE_SUSPICIOUS_ABOVE * max(uniform, LEAST_LN)
    above = run.kind in LANGUAGE_MODELS and accumulated is not None and far
    if run.kind == "sft" and above and accumulated is not None:
        # A trained model's first loss is not known, but it lies in a band; above ln(vocabulary) only a sum can lie.
        number = accumulated if PLAUSIBLE[0] <= level / accumulated <= PLAUSIBLE[1] else None
    else:
        number = accumulated if accumulated and abs(first / uniform / accumulated - 1) < NEAR_KNOWN else None
    if number is None:
        return False
    return Evidence(
        f"the first loss is {figure(first)} at {run.place(step)}, {ratio(first / uniform)} times the "
        f"{figure(uniform)} = ln({math.exp(uniform):,.0f}) of a uniform guess; divided by {figure(number)} it is "
        f"{figure(first / number)}{_configured(accumulated)}",
        steps=(step,),
        values={"first": first, "uniform_guess": uniform, "number": number},
    )


def _summed_over_rows(run: Run) -> Evidence | None:
    """Compare the first loss with a uniform guess times the rows of a batch: a sum where a mean is meant."""
    loss, rows = run["loss"].finite, run.setting("per_device_train_batch_size")
    uniform = uniform_loss(run) or (math.log(2) if any(run.with_role(Quantity.AUC, phase="eval")) else None)
    first, step = float(loss.value[0]), float(loss.step[0])
    if (
        uniform is None
        or rows is None
        or rows < GUESSES[0]
        or _begins_late(run)
        or abs(first / (uniform * rows) - 1) > NEAR_ROWS
    ):
        return None
    return Evidence(
        f"the first loss is {figure(first)} at {run.place(step)}; divided by the {figure(rows)} rows of a "
        f"batch it is {figure(first / rows)}, and a uniform guess has {figure(uniform)}",
        steps=(step,),
        values={"first": first, "uniform_guess": uniform, "number": rows},
    )


def terms_outweigh(run: Run) -> Evidence | None:
    """What evaluation measures is less than a third of the training loss: the other terms of it are trained on instead.

    Not this when: evaluation measures the whole loss; or no term of training stands where it does.
    """
    term = known(measured_term(run), "no term of the training loss is what evaluation measures")
    whole = run["loss"].finite
    part, total = median(term.value), median(whole.value)
    share = part / abs(total) if total else math.inf
    if share > OUTWEIGHED:
        return None
    return Evidence(
        f"{term.name}, which evaluation measures, is {share:.0%} of the training loss (medians: {figure(part)} and "
        f"{figure(total)})",
        steps=(float(whole.step[0]),),
        values={"share": share},
    )


def _micro_batches(factor: float, accumulated: float | None, near_known: float, near_guessed: float) -> float | None:
    """Return the number of micro-batches that a quotient is near to, or None."""
    if accumulated is not None:
        return accumulated if abs(factor / accumulated - 1) < near_known else None
    return next((float(guess) for guess in GUESSES if abs(factor / guess - 1) < near_guessed), None)


def _configured(accumulated: float | None) -> str:
    return "" if accumulated is None else f"; gradient_accumulation_steps is {figure(accumulated)}"


# On what scale is the loss, and where does it begin?


LOSS_START_FACTOR = 1.6
"""Times ln(n) that a healthy first loss has at most. Chosen: usual initialisations."""
MAX_EXTRA_START_NATS = 0.5
"""Nats more that it may have. Chosen: usual initialisations."""
FACTOR_OF_TOKENS = 1.35
"""... of a language model from scratch. Chosen: its last layer is drawn small; a second head adds up to 0.3."""
FOR_A_MOMENT = 2.5
"""Times the loss of a guess to which first steps may raise a healthy one. Chosen: a sum of losses raises it further."""
TIMES_MEAN = 10.0
"""Times the loss of always answering the mean, at the first evaluation. Chosen: a usual initialisation answers near
zero, which targets that are scaled have for their mean."""
MAX_UNIGRAM_LOSS_SHARE = 0.6
"""Of ln(vocabulary). Chosen: what the frequencies of tokens give."""
MIN_RECORDS_ABOVE_GUESS = 5
"""Records. Chosen: a loss that stays above any guess in so many is hardly a cross-entropy."""
LEAST_GUESSED = 1e-3
"""Accuracy below which it does not tell a count of classes. Chosen: a thousand are as many as most classifiers have."""
MOST_GUESSED = 0.6
"""Accuracy above which answers are no guesses. Chosen: two classes are guessed with half."""
LOSS_START_EARLY = 0.02
"""Share of the run that is its start. Chosen: losses fall fast."""
AT_ONCE = 0.005
"""The same where learning shows. Chosen: losses fall fast."""
LOSS_START_FIRST_STEPS = 10
"""Steps that are the start of a run. Chosen: losses fall fast."""


def _begins_late(run: Run) -> bool:
    """Say whether the first loss is logged when losses have fallen."""
    return bool(run["loss"].finite.step[0] > max(LOSS_START_FIRST_STEPS, LOSS_START_EARLY * run.last_step))


def is_past_start(run: Run, step: float) -> bool:
    """Say whether learning shows at a step: its record is of weights that have moved since the run began."""
    return is_late(run, step, AT_ONCE, LOSS_START_FIRST_STEPS)


NEAR_AS_PART = 0.1
"""Share by which a part of the loss is off a guess at first. Chosen: new weights and the first steps move it so far."""
NEAR_SUM = 0.01
"""How near the sum of its parts is to a loss. Chosen: the digits of logs leave less."""
MIN_FIRST_LOSS_SHARE = 0.5
"""Of ln(classes). Chosen: half of it takes training."""
LANGUAGE = {"pretraining": 0.7, "sft": 0.1}
"""Nats per token. Chosen: none predicts fresh text better than about 0.7; chat fine-tuning runs at 0.5 to 2."""


def initial_loss_high(run: Run) -> Evidence | None:
    """The first training loss lies far above ln(classes or tokens), or, of a model that comes trained, above unigrams.

    An R² at first tells the same of a regression: the loss is 1 - R² times that of always answering the mean.

    Not this when: the loss is a sum (`loss_scale_suspicious`), or is not a cross-entropy, as one that stays so high;
    the first record comes after some steps, which may have raised it, and the next is below a guess.
    """
    loss = finite_loss(run)
    if _begins_late(run):
        raise CannotTell(f"the first loss is logged at {run.place(loss.step[0])}, too late to speak of the start")
    if any(mark in name.lower() for name in run.series for mark in ("ctc", "edit_dis")):
        raise CannotTell("a CTC loss, as where edit distances are measured, is a sum over the sequence: no scale")
    refuse_sums_of_epochs(run)
    explained = first_finite(run.with_role(Quantity.R2))
    return _above_guess(run) if explained is None else _above_mean(run, explained)


def _above_mean(run: Run, explained: Series) -> Evidence | None:
    times = 1 - float(explained.value[0])
    comparison = f"{explained.name} is {figure(1 - times)} at first: {ratio(times)} times the loss of the mean"
    return _evidence(run, comparison, factor=times) if times > TIMES_MEAN else None


def _above_guess(run: Run) -> Evidence | None:
    uniform = uniform_loss(run)
    loss = part_of_guess(run, uniform)
    if loss is None:
        raise CannotTell("the outputs of a teacher are learnt as well, and their term has another scale")
    known = uniform is not None or run.setting("vocab_size") is not None
    if uniform is None:
        # An accuracy makes it a classifier, and none has more classes than a vocabulary has tokens.
        if run.kind not in LANGUAGE_MODELS and not any(name in run for name in ACCURACIES):
            raise CannotTell("the number of classes or tokens is not known")
        vocabulary = run.setting("vocab_size")
        uniform = math.log(vocabulary) if vocabulary is not None and vocabulary >= 2 else MAX_LN_VOCABULARY
        tokens = run.kind in LANGUAGE_MODELS or any("ppl" in name or "perplexity" in name for name in run.series)
        if (
            not tokens
            and len(loss) >= MIN_RECORDS_ABOVE_GUESS
            and float(loss.value.min()) > LOSS_START_FACTOR * uniform + MAX_EXTRA_START_NATS
        ):
            if (beyond := _beyond_a_sum(run)) is not None:
                return beyond
            raise CannotTell("the loss stays far above that of any guess: it may be that of a regression")
    first = float(loss.value[0])
    if run.kind == "sft" and run.setting("vocab_size") is None and MAX_UNIGRAM_LOSS_SHARE * uniform < first < uniform:
        if isinstance(loss_scale_suspicious(run), Evidence):
            return None
        most = f"the frequencies of tokens alone give at most {figure(MAX_UNIGRAM_LOSS_SHARE * uniform)}"
        comparison = f"{most}, and a trained model starts far below"
        return _evidence(run, comparison, uniform_guess=uniform, factor=first / uniform)
    is_new = run.kind == "pretraining" and run.facts.tokens is not None
    if first < (FACTOR_OF_TOKENS if is_new else LOSS_START_FACTOR) * uniform + MAX_EXTRA_START_NATS:
        return None
    if loss.step[0] > 1 and len(loss) > 1 and first < FOR_A_MOMENT * uniform and loss.value[1] < uniform:
        raise CannotTell("the loss is below that of a guess at the second record; what it was at step 1 is not logged")
    most = f"a uniform guess has at most {figure(uniform)}, even over the largest vocabularies"
    return _evidence(run, _guess(uniform) if known else most, loss, uniform_guess=uniform, factor=first / uniform)


_OF_A_TEACHER = regex(
    r"(?:^|[/_.])(?:teachers?|kd|distil(?:l(?:ation)?)?)(?:$|[/_.])", re.IGNORECASE, needs=("teacher", "kd", "distil")
)
"""What metrics and settings of a distillation are called."""


def part_of_guess(run: Run, uniform: float | None) -> Series | None:
    """Return the training loss, or the part of it that a guess has the loss of: its cross-entropy.

    That is the part which is named so or begins near a guess; else the largest, where the loss is the sum of its parts.
    A term for a teacher, for boxes or for routing comes on top, whatever its scale. None where only a sum with that of
    a teacher is logged.
    """
    loss = run["loss"].finite
    step, whole = float(loss.step[0]), float(loss.value[0])
    terms = [series.finite for series in run.with_role(Quantity.LOSS, phase="train", parts=True)]
    parts = [(value, term) for term in terms if term.name != loss.name and (value := term.at(step)) is not None]
    for value, term in parts:
        near = uniform is not None and abs(value / uniform - 1) < NEAR_AS_PART
        if near or CROSS_ENTROPY.search(term.logged_as or term.name):
            return term
    if any(_OF_A_TEACHER.search(name) for name in (*run.series, *run.settings)):
        return None
    is_sum = len(parts) > 1 and abs(sum(value for value, _ in parts) - whole) < NEAR_SUM * abs(whole)
    return max(parts, key=lambda part: part[0])[1] if is_sum else loss


def _beyond_a_sum(run: Run) -> Evidence | None:
    """Compare a first loss with that of guesses as often right, were it a sum over the rows of a batch.

    A model that is right with probability a by chance guesses among about 1/a classes, and its loss is -ln a per row.
    """
    rows = run.facts.effective_batch
    logged = [run[name].finite for name in ACCURACIES if name in run and len(run[name].finite)]
    if rows is None or rows < GUESSES[0] or not logged:
        return None
    share = float(as_shares(min(logged, key=lambda right: float(right.step[0])).value)[0])
    guess = -math.log(max(share, LEAST_GUESSED))
    first = float(run["loss"].finite.value[0])
    if share > MOST_GUESSED or first / rows < LOSS_START_FACTOR * guess + MAX_EXTRA_START_NATS:
        return None
    per_row = f"as a sum over the {figure(rows)} rows of a batch it is {figure(first / rows)} per row"
    comparison = (
        f"even {per_row}, and an answer that is right as often by chance has {figure(guess)} = -ln({figure(share)})"
    )
    return _evidence(run, comparison, uniform_guess=guess, factor=first / rows / guess)


def _guess(uniform: float) -> str:
    return f"a uniform guess has {figure(uniform)} = ln({math.exp(uniform):,.0f})"


def _evidence(run: Run, comparison: str, part: Series | None = None, **values: float) -> Evidence:
    loss = run["loss"].finite if part is None else part
    step, first = float(loss.step[0]), float(loss.value[0])
    name = "loss" if loss.name == run["loss"].name else loss.name
    what, where, rate = f"first {name}", run.place(step), rate_of(run)
    if run.step_name == "epoch" and step.is_integer():  # a mean, to which training may have come within the epoch
        what = f"mean {name} of the first epoch"
        at = rate.at(step) if rate is not None else None
        where += f", where the learning rate is {figure(at)}" if at is not None else ""
    summary = f"the {what} is {figure(first)} at {where}; {comparison}"
    return Evidence(summary, steps=(step,), values={"first": first, **values})


def initial_loss_low(run: Run) -> Evidence | None:
    """The first training loss lies far below what a model can have before it has seen the data.

    Not this when: the model comes trained on this task; the first record is a mean over many steps, or zero.
    """
    loss = finite_loss(run)
    step, first = float(loss.step[0]), float(loss.value[0])
    if run.step_name == "epoch" or is_past_start(run, step):
        raise CannotTell(f"the first loss is logged at {run.place(step)}, too late to speak of the start")
    bound, comparison = _least_first_loss(run)
    if first >= bound or first <= 0:
        return None
    return _evidence(run, comparison, bound=bound)


def _least_first_loss(run: Run) -> tuple[float, str]:
    """Return the least credible first loss, and what it is compared with."""
    if run.kind in LANGUAGE:
        bound = LANGUAGE[run.kind]
        return bound, f"before training on them, {run.kind} data give a language model more than {figure(bound)}"
    uniform = known(uniform_loss(run) if run.facts.classes is not None else None, "the number of classes is not known")
    return MIN_FIRST_LOSS_SHARE * uniform, _guess(uniform)


ask_in_turn(
    "loss_start",
    outcome_of(
        loss_scale_suspicious,
        0.005,
        "hf_gradacc_blog",
        "karpathy_recipe",
        needs=("loss",),
        instead=("train_far_above_eval",),
    ),
    outcome_of(initial_loss_high, 0.006, "karpathy_recipe", "cs231n_nn3", needs=("loss",), not_for=("preference",)),
    outcome_of(
        initial_loss_low,
        0.01,
        "karpathy_recipe",
        "axolotl_stability",
        "opt_175b_logbook",
        needs=("loss",),
        not_for=("preference",),
    ),
    needs=("loss",),
    not_for=("grpo", "ppo", "rl", "diffusion"),
)


# Do the first steps make the training loss worse than it was?


LOSS_BEGINNING_FACTOR = 1.25
"""Times the first record that two records of the beginning reach. Chosen: noise goes less far."""
FACTOR_OF_ONE = 1.4
"""Times the first record that a single one reaches in a short log. Chosen: noise goes less far."""
MIN_LEAP_SIGMAS = 8.0
"""Standard deviations of the later noise, as it is. Fitted: 2 in 1000 simulated healthy runs."""
SIGMAS_ON_LOG = 6.0
"""Standard deviations of the later noise on the logarithm. Fitted: 2 in 1000 simulated healthy runs."""
ABOVE_ALL = 1.15
"""Times everything after the first third. Chosen: by hand."""
HIGH_START = 1.5
"""Times the later level that the first record is, which is enough as well. Chosen: else it is low."""
MIN_LONG_LOG_RECORDS = 100
"""Records of a log from which on two must be high at the start. Chosen: by hand."""
MIN_RECORDS_ABOVE_START = 25
"""Records in which the loss is compared with its start. Chosen: of fewer, the start is a large part."""
LEAST_WINDOW = 6
"""The fewest records that are the beginning of a log. Chosen: by hand."""
MOST_WINDOW = 39
"""The most records that are the beginning of a log. Chosen: by hand."""
NEARLY_ZERO = 1e-4
"""Loss that is as good as zero. Chosen: no real data are fitted so well in a tenth of a run, or in a warmup."""
MIN_WARMUP_RISE_SHARE = 0.25
"""Share of the lowest loss by which it rises. Chosen: batches move it less."""
RISE_SIGMAS = 6.0
"""Standard deviations of the noise by which it rises. Chosen: batches move it less."""
MIN_WARMUP_RATE_RATIO = 1.5
"""Times the rate at the lowest loss that it has at the end. Chosen: by hand."""
LEAST_OF_WARMUP = 8
"""Records of the warmup. Chosen: fewer show no course."""
WARMUP_END_RECORDS = 3
"""Records that are the end of the warmup. Chosen: fewer show no course."""
MIN_HIGH_LOSS_RATIO = 1.4
"""Times the first level. Chosen: an untrained model guesses; far worse is wrong."""
LEAST_HIGH = 3
"""Records that lie there. Chosen: by hand."""
MAX_START_NOISE_SHARE = 0.15
"""Share to within which twice as many records agree. Chosen: else their level is not known."""
START_LEVEL_RECORDS = 5
"""Records that are the first. Chosen: by hand."""
MIN_LATE_START_SHARE = 0.2
"""Share of the steps after which a log begins trained. Chosen: by hand."""
LATE_LOG_STRETCHES = 8
"""Stretches that such a log is cut into. Chosen: single batches are no trend."""
MIN_HIGH_STRETCH_RATIO = 1.15
"""Times the start that one of them lies at. Chosen: single batches are no trend."""
LOSS_BEGINNING_FAR = 6.0
"""Standard deviations that a record is away, or times that the first ones are quieter. Chosen: noise is one level."""
MIN_EPOCHS_FOR_COURSE = 6
"""Means over epochs from which a course is judged. Chosen: means have little noise."""
LOSS_BEGINNING_ABOVE = 1.05
"""Times the first mean that the later ones lie at. Chosen: means have little noise."""
MIN_DONE_ACCURACY = 0.85
"""An accuracy with nothing left to gain. Chosen: by hand."""


def loss_jumps_at_start(run: Run) -> Evidence | None:
    """The training loss leaps far above its first record within the first records, and comes down from there.

    Not this when: the first record is low by noise; the loss climbs over a longer stretch (`loss_hump`).
    """
    loss = run["loss"].finite
    values, count = loss.value, len(loss)
    first, later = float(values[0]), values[count // 3 :]
    beginning = values[1 : 1 + min(MOST_WINDOW, max(LEAST_WINDOW, count // 12))]
    top = float(beginning.max())
    # On the logarithm, the noise of a loss near zero is larger than that of the level where the leap is.
    spread = min(relative_noise(later), relative_noise(values[: count // 3])) if positive(values) else 0.0
    if first <= 0 or top - first < MIN_LEAP_SIGMAS * noise(later) or top < first * (1 + SIGMAS_ON_LOG * spread):
        return None
    # Where records further on lie as high, one record alone is a batch.
    place, further = 1 + int(beginning.argmax()), values[1 + len(beginning) : count // 3]
    if len(further) and values[place + 1] < (first + top) / 2 and top < FACTOR_OF_ONE * further.max():
        return None
    high = np.flatnonzero(beginning > LOSS_BEGINNING_FACTOR * first)
    above_all = len(high) >= 2 and np.sort(beginning)[-2] > ABOVE_ALL * later.max()
    enough = len(high) >= (1 if count < MIN_LONG_LOG_RECORDS else 2)
    from_high = enough and top > FACTOR_OF_ONE * first > FACTOR_OF_ONE * HIGH_START * median(later)
    if not above_all and not from_high:
        return None
    at = float(loss.step[1 + int(beginning.argmax())])
    rate = run["learning_rate"].at(at) if "learning_rate" in run else None
    rate_clause = f"; the learning rate there is {figure(rate)}" if rate is not None else ""
    return Evidence(
        f"loss leaps from {figure(first)} at {run.place(loss.step[0])} to {figure(top)} at "
        f"{run.place(at)} and comes down from there{rate_clause}",
        steps=(float(loss.step[1 + int(high[0])]),),
        values={"first": first, "highest": top, "factor": top / first, "records": float(len(high))},
    )


def loss_rises_in_warmup(run: Run) -> Evidence | None:
    """The training loss falls while the learning rate is small, and climbs as warmup takes the rate to its peak.

    Not this when: the run has no warmup, or it is too short to see; the climb is within the noise.
    """
    rate, loss = run["learning_rate"].finite, run["loss"].finite
    top = int(np.argmax(rate.value))
    warmup = loss.between(float(rate.step[0]), float(rate.step[top]))
    if rate.value[0] > rate.value[top] / MIN_WARMUP_RATE_RATIO or len(warmup) < LEAST_OF_WARMUP:
        raise CannotTell(f"no warmup of {LEAST_OF_WARMUP} records or more is logged")
    level = median_of_three(warmup.value)
    low, end = int(np.argmin(level[:-WARMUP_END_RECORDS])), median(warmup.value[-WARMUP_END_RECORDS:])
    lowest = float(level[low])
    at_low, at_end = (rate.at(float(warmup.step[at])) or 0.0 for at in (low, -1))
    small = end - lowest < max(MIN_WARMUP_RISE_SHARE * abs(lowest), RISE_SIGMAS * noise(warmup.value))
    if small or lowest <= NEARLY_ZERO or at_end < MIN_WARMUP_RATE_RATIO * at_low:
        return None
    onset = float(warmup.step[low])
    return Evidence(
        f"loss rises from about {figure(lowest)} around {run.place(onset)}, where the learning rate is "
        f"{figure(at_low)}, to about {figure(end)} up to {run.place(warmup.step[-1])}, where warmup has taken it to "
        f"{figure(at_end)}",
        steps=(onset,),
        values={"lowest": lowest, "end": end, "rate_at_lowest": at_low, "rate_at_end": at_end},
    )


def loss_above_start(run: Run) -> Evidence | None:
    """Several records of the training loss lie far above the first ones, or no later epoch is as low as the first.

    Not this when: the first records vary widely; single batches stand out; the log begins trained; accuracy rises.
    """
    refuse_new_terms(run)
    loss = run["loss"].finite
    whole = run.step_name == "epoch" and bool(np.all(np.diff(loss.step) == 1))
    if whole or run.kind == "boosting":
        return _above_first_epoch(run, loss)
    start = median(loss.value[:START_LEVEL_RECORDS])
    if len(loss) < MIN_RECORDS_ABOVE_START or start <= 0:
        raise CannotTell(f"loss has {len(loss)} finite values here; {MIN_RECORDS_ABOVE_START} are needed")
    # A falling start is not noise: the noise is what is left of a straight line.
    if (
        noise(loss.value[: 2 * START_LEVEL_RECORDS]) > MAX_START_NOISE_SHARE * start
        or float(np.ptp(loss.value[:START_LEVEL_RECORDS])) > start
    ):
        raise CannotTell("the first records of the loss vary too widely to be a level")
    high = np.flatnonzero(loss.value[START_LEVEL_RECORDS:] > MIN_HIGH_LOSS_RATIO * start) + START_LEVEL_RECORDS
    if len(high) < LEAST_HIGH:
        return None
    if evaluation_stands(run):
        raise CannotTell("the evaluation loss stands still, so what rises here is noise of the batches")
    if not _stays_high(loss.value, start):
        return None
    if (
        is_late(run, float(loss.step[0]), MIN_LATE_START_SHARE, 0)
        and float(blocks(loss.value, LATE_LOG_STRETCHES).level.max()) < MIN_HIGH_STRETCH_RATIO * start
    ):
        raise CannotTell(f"the log begins at {run.place(loss.step[0])}: its start is not a beginning")
    onset = float(loss.step[high[0]])
    return Evidence(
        f"{len(high)} of {len(loss)} records of the loss lie above {figure(MIN_HIGH_LOSS_RATIO * start)}, up to "
        f"{figure(loss.value.max())}, from {run.place(onset)} on; the first ones are around {figure(start)}",
        steps=(onset,),
        values={"start": start, "highest": float(loss.value.max()), "records": float(len(high))},
    )


def _stays_high(values: Floats, start: float) -> bool:
    """Say whether a stretch is high, and not single batches or records that scatter around one level."""
    level = float(blocks(values).level.max())
    edges = np.flatnonzero(np.diff(values > MIN_HIGH_LOSS_RATIO * start, prepend=False, append=False))
    if level < MIN_HIGH_STRETCH_RATIO * start and int((edges[1::2] - edges[::2]).max(initial=0)) < LEAST_HIGH:
        return False
    far = float(values.max()) >= median(values) + LOSS_BEGINNING_FAR * mad(values)
    return (
        far
        or level >= MIN_HIGH_LOSS_RATIO * start
        or noise(values) >= LOSS_BEGINNING_FAR * float(np.std(values[:START_LEVEL_RECORDS], ddof=1))
    )


def _above_first_epoch(run: Run, loss: Series) -> Evidence | None:
    """Compare the means of all later epochs or rounds with the first, in which the model was still untrained."""
    if len(loss) < MIN_EPOCHS_FOR_COURSE or loss.step[0] > MAX_STARTING_PASSES:
        raise CannotTell(f"the log begins at {run.place(loss.step[0])}, or has few records")
    first, later = float(loss.value[0]), loss.value[1:]
    if first <= 0 or float(later.min()) < first or median(later) < LOSS_BEGINNING_ABOVE * first:
        return None
    right = as_shares(finite_of(run, "accuracy").value)
    if len(right) and (right[-1] > MIN_DONE_ACCURACY or right[-1] > 2 * right[0]):
        return None
    accuracy_clause = f"; accuracy goes from {figure(right[0])} to {figure(right[-1])}" if len(right) else ""
    return Evidence(
        f"loss is {figure(first)} in {run.place(loss.step[0])}, and between "
        f"{figure(later.min())} and {figure(later.max())} in all {len(later)} records after it{accuracy_clause}",
        steps=(float(loss.step[1]),),
        values={"first": first, "lowest": float(later.min()), "median": median(later)},
    )


ask_in_turn(
    "loss_beginning",
    outcome_of(
        loss_jumps_at_start,
        0.004,
        "axolotl_stability",
        needs=("loss",),
        points=20,
        follows=("loss_hump", "loss_nonfinite"),
    ),
    outcome_of(
        loss_rises_in_warmup,
        0.005,
        needs=("loss", "learning_rate"),
        points=12,
        not_for=("preference",),
        follows=("loss_divergence", "loss_drops_to_zero", "loss_nonfinite", "loss_zero"),
    ),
    outcome_of(
        loss_above_start,
        0.01,
        "karpathy_recipe",
        needs=("loss",),
        points=MIN_EPOCHS_FOR_COURSE,
        instead=("loss_divergence", "loss_hump"),
        follows=("loss_pattern_by_epoch", "loss_spike_single", "loss_rises"),
    ),
    needs=("loss",),
    not_for=("grpo", "ppo", "rl"),
)
