"""On what scale is the loss, and where does it begin?"""

from __future__ import annotations

import math

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.beginning import is_late
from mldebug_mcp.measure.evaluation import refuse_sums_of_epochs
from mldebug_mcp.measure.quality import ACCURACIES
from mldebug_mcp.measure.scale import LANGUAGE_MODELS, MAX_LN_VOCABULARY, uniform_loss
from mldebug_mcp.symptoms.levels.loss_scale_suspicious import loss_scale_suspicious
from mldebug_mcp.symptoms.readings import ask_in_turn, reading
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure

FACTOR, MARGIN = 1.6, 0.5
"""Times ln(n), and nats more, that a sound first loss has at most. Chosen: usual initialisations."""
FACTOR_OF_TOKENS = 1.35
"""... of a language model from scratch. Chosen: its last layer is drawn small; a second head adds up to 0.3."""
TIMES_MEAN = 10.0
"""Times the loss of always answering the mean, at the first evaluation. Chosen: a usual initialisation answers near
zero, which targets that are scaled have for their mean."""
UNIGRAM = 0.6
"""Of ln(vocabulary). Chosen: what the frequencies of tokens give."""
STAYS = 5
"""Records. Chosen: a loss that stays above any guess in so many is hardly a cross-entropy."""
EARLY, AT_ONCE, FIRST_STEPS = 0.02, 0.005, 10
"""Share of the run, and steps, that are its start; less of it where learning shows. Chosen: losses fall fast."""
BELOW = 0.5
"""Of ln(classes). Chosen: half of it takes training."""
LANGUAGE = {"pretraining": 0.7, "sft": 0.1}
"""Nats per token. Chosen: none predicts fresh text better than about 0.7; chat fine-tuning runs at 0.5 to 2."""


def initial_loss_high(run: Run) -> Evidence | None:
    """The first training loss lies far above ln(classes or tokens), or, of a model that comes trained, above unigrams.

    An R² at first tells the same of a regression: the loss is 1 - R² times that of always answering the mean.

    Not this when: the loss is a sum (`loss_scale_suspicious`), or is no cross-entropy, as one that stays so high.
    """
    loss = run["loss"].finite
    if not len(loss):
        raise CannotTell("no finite loss")
    if loss.step[0] > max(FIRST_STEPS, EARLY * run.last_step):
        raise CannotTell(f"the first loss is logged at {run.place(loss.step[0])}, too late to speak of the start")
    if any("ctc" in name.lower() for name in run.series):
        raise CannotTell("a CTC loss is a sum over the sequence: it has no scale")
    refuse_sums_of_epochs(run)
    explained = next((one.finite for one in run.with_role(Quantity.R2) if len(one.finite)), None)
    return _above_guess(run) if explained is None else _above_mean(run, explained)


def _above_mean(run: Run, explained: Series) -> Evidence | None:
    times = 1 - float(explained.value[0])
    beside = f"{explained.name} is {figure(1 - times)} at first: {figure(times)} times the loss of the mean"
    return _evidence(run, beside, factor=times) if times > TIMES_MEAN else None


def _above_guess(run: Run) -> Evidence | None:
    loss, uniform = run["loss"].finite, uniform_loss(run)
    if uniform is None:
        # An accuracy makes it a classifier, and none has more classes than a vocabulary has tokens.
        if run.kind not in LANGUAGE_MODELS and not any(name in run for name in ACCURACIES):
            raise CannotTell("the number of classes or tokens is not known")
        vocabulary = run.setting("vocab_size")
        uniform = math.log(vocabulary) if vocabulary is not None and vocabulary >= 2 else MAX_LN_VOCABULARY
        tokens = run.kind in LANGUAGE_MODELS or any("ppl" in name or "perplexity" in name for name in run.series)
        if not tokens and len(loss) >= STAYS and float(loss.value.min()) > FACTOR * uniform + MARGIN:
            raise CannotTell("the loss stays far above that of any guess: it may be that of a regression")
    first = float(loss.value[0])
    if run.kind == "sft" and run.setting("vocab_size") is None and UNIGRAM * uniform < first < uniform:
        if isinstance(loss_scale_suspicious(run), Evidence):
            return None
        most = f"the frequencies of tokens alone give at most {figure(UNIGRAM * uniform)}"
        beside = f"{most}, and a trained model starts far below"
        return _evidence(run, beside, uniform_guess=uniform, factor=first / uniform)
    is_new = run.kind == "pretraining" and run.facts.tokens is not None
    if first < (FACTOR_OF_TOKENS if is_new else FACTOR) * uniform + MARGIN:
        return None
    return _evidence(run, _guess(uniform), uniform_guess=uniform, factor=first / uniform)


def _guess(uniform: float) -> str:
    return f"a uniform guess has {figure(uniform)} = ln({math.exp(uniform):,.0f})"


def _evidence(run: Run, beside: str, **values: float) -> Evidence:
    loss = run["loss"].finite
    step, first = float(loss.step[0]), float(loss.value[0])
    said = f"the first loss is {figure(first)} at {run.place(step)}; {beside}"
    return Evidence(said, steps=(step,), values={"first": first, **values})


def initial_loss_low(run: Run) -> Evidence | None:
    """The first training loss lies far below what a model can have before it has seen the data.

    Not this when: the model comes trained on this task; the first record is a mean over many steps, or zero.
    """
    loss = run["loss"].finite
    if not len(loss):
        raise CannotTell("no finite loss")
    step, first = float(loss.step[0]), float(loss.value[0])
    if run.step_name == "epoch" or is_late(run, step, AT_ONCE, FIRST_STEPS):
        raise CannotTell(f"the first loss is logged at {run.place(step)}, too late to speak of the start")
    bound, beside = _least(run)
    if first >= bound or first <= 0:
        return None
    return _evidence(run, beside, bound=bound)


def _least(run: Run) -> tuple[float, str]:
    """Return the least credible first loss, and what it is compared with."""
    if run.kind in LANGUAGE:
        bound = LANGUAGE[run.kind]
        return bound, f"before training on them, {run.kind} data give a language model more than {figure(bound)}"
    uniform = uniform_loss(run) if run.facts.classes is not None else None
    if uniform is None:
        raise CannotTell("the number of classes is not known")
    return BELOW * uniform, _guess(uniform)


ask_in_turn(
    "loss_start",
    reading(
        loss_scale_suspicious,
        needs=("loss",),
        sources=("hf_gradacc_blog", "karpathy_recipe"),
        background=0.005,
        instead=("train_far_above_eval",),
    ),
    reading(
        initial_loss_high,
        needs=("loss",),
        sources=("karpathy_recipe", "cs231n_nn3"),
        not_for=("preference",),
        background=0.006,
    ),
    reading(
        initial_loss_low,
        needs=("loss",),
        sources=("karpathy_recipe", "axolotl_stability", "opt_175b_logbook"),
        not_for=("preference",),
        background=0.01,
    ),
    needs=("loss",),
    not_for=("grpo", "ppo", "rl", "diffusion"),
)
