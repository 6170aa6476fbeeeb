"""How the scores of evaluation stand beside the same scores of training."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.fresh_gap import FIRST_PASS
from mldebug_mcp.measure.score_pairs import ScorePair, score_pairs
from mldebug_mcp.measure.statistics import median, median_of_three
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.symptoms.ways import first_seen
from mldebug_mcp.text import figure

LEAST, SIGMAS = 3, 5.0
"""Evaluations, and standard deviations of one gap that any difference has. Chosen: fewer show no course."""
LEARNT, NO_GAIN, HALF = 0.5, 0.04, 0.5
"""Training has come to the first share and evaluation gains no more than the second, and has at most half of it.
Chosen: so does a model that serves no held-out row."""
EARLY_PASS = 0.8
"""Of a pass: an evaluation later than this may stand at its end. Chosen: by hand."""
AT_ONCE, KEPT = 0.2, 0.6
"""The gap at an evaluation in the first pass, and the least share of it at every later one. Chosen: by hand."""
LOST, LEAST_TO_FALL = 0.05, 6
"""Of a score that evaluation loses again, by medians of three; over so many evaluations. Chosen: by hand."""
CLOSE, WIDE, KNOWN, WITHIN = 0.25, 0.3, 0.9, 0.08
"""The gap at first as a share of the later one; the later one, where training has come to the third number and rows are
known by heart; or, where nothing can be known yet as the whole log lies in the first pass. Chosen: by hand."""
ABOVE, HEAVY_DROPOUT = 0.1, 0.3
"""By so much evaluation is the better one; a dropout that costs training more. Chosen: augmentation costs less."""
MIXED = ("mixup", "mixup_alpha", "cutmix", "cutmix_alpha", "randaugment", "auto_augment", "aa", "random_erasing")
"""Settings under which training is scored on harder inputs than evaluation."""
_LOSS_SAYS_SO = ("eval_gap_grows", "eval_gap_wide", "eval_gap_at_zero", "eval_above_start")

STANDS = Outcome(
    "eval_score_stands",
    """A score of evaluation gains nothing while the same score of training rises far above it.

    Not this when: evaluation was good at once; training has not come above one half; it had by the first evaluation,
    which stands after the first pass over the data.""",
    background=0.003,
    follows=("eval_learns_nothing", "eval_metric_constant", "eval_metric_zero"),
)
BEFORE_TWICE = Outcome(
    "eval_score_stands_at_once",
    """Training has left the score of evaluation far behind by the end of its first pass over the data.

    Not this when: training comes up only as rows are seen again; how many passes were made is not known.""",
    background=0.3,
    as_chosen=True,
    of="eval_score_stands",
)
FALLS = Outcome(
    "eval_score_falls",
    """A score of evaluation ends well below its best, for good, while the same score of training does not fall.

    Not this when: it scatters; training falls as well; by no more than a few of few rows.""",
    background=0.01,
    follows=("eval_gap_grows",),
)
AT_FIRST = Outcome(
    "eval_score_far_below",
    """A score of evaluation is far below that of training within the first pass over the data, and stays there.

    Not this when: the gap grows with the passes, which is memorisation; it closes, as when batch normalisation settles;
    how many passes were made is not known.""",
    background=0.01,
    follows=("eval_bad_from_start",),
)
GROWS = Outcome(
    "eval_score_gap_grows",
    """A score of training leaves that of evaluation behind, to which it was close at first, by 0.3 and near its best.

    Within the first pass over the data 0.08 is enough. Not this when: the gap was there at once; rows were seen again
    and training is still on its way.""",
    background=0.06,
    follows=_LOSS_SAYS_SO,
)
EARLY = Outcome(
    "eval_score_gap_in_first_pass",
    """The scores of training and evaluation come apart before the data were seen once.

    Not this when: the gap opens after the first pass; how many passes were made is not known.""",
    background=0.05,
    as_chosen=True,
    of="eval_score_gap_grows",
    follows=("eval_gap_in_first_pass",),
)
BEYOND = Outcome(
    "eval_score_above_train",
    """A score of evaluation is far above that of training, at all later evaluations.

    Not this when: inputs are mixed, or dropout is high, as configured; the training score is the mean of an epoch of
    fast progress.""",
    background=0.04,
    follows=("eval_below_train", "train_lags_eval"),
)


@question(
    STANDS,
    BEFORE_TWICE,
    FALLS,
    AT_FIRST,
    GROWS,
    EARLY,
    BEYOND,
    not_for=("grpo", "ppo", "rl", "boosting"),
    whole_run=True,
)
def eval_score_gap(run: Run) -> Answers:
    """Compare accuracies, F1, AUC and the like, the first that both training and evaluation log."""
    pair = next((one for one in score_pairs(run) if len(one) >= LEAST), None)
    if pair is None:
        raise CannotTell(f"no score is logged for training and at {LEAST} evaluations")
    said = _Said(run, pair)
    judges = {STANDS.id: _stands, FALLS.id: _falls, AT_FIRST.id: _far_below, GROWS.id: _grows, BEYOND.id: _above}
    answers = first_seen({outcome: partial(judge, said) for outcome, judge in judges.items()})
    seen, grown = answers.get(STANDS.id), answers.get(GROWS.id)
    if isinstance(seen, Evidence):
        return {**answers, **_at_once(said)}
    return {**answers, **_in_first_pass(said, grown)} if isinstance(grown, Evidence) else answers


@dataclass(frozen=True, slots=True)
class _Said:
    """A pair of scores and the run that it is of."""

    run: Run
    pair: ScorePair

    def evidence(self, what: str, at: int) -> Evidence:
        """Return what is seen, from an evaluation on, with both scores there and at the end."""
        pair = self.pair
        passes = "" if pair.passes is None else f" (pass {figure(float(pair.passes[at]))})"
        return Evidence(
            f"{pair.evaluated} {what}: at {self.run.step_name} {figure(float(pair.steps[at]))}{passes} it is "
            f"{figure(float(pair.evaluation[at]))} beside {figure(float(pair.train[at]))} in training, over the later "
            f"half of {len(pair)} evaluations {figure(median(pair.evaluation[pair.later]))} beside "
            f"{figure(median(pair.train[pair.later]))}",
            steps=(float(pair.steps[at]),),
            values={
                "first_gap": float(pair.gap[0]),
                "gap": median(pair.gap[pair.later]),
                "noise": pair.noise,
                "evaluations": float(len(pair)),
            },
        )


def _stands(said: _Said) -> Evidence | None:
    pair = said.pair
    trained, reached = median(pair.train[pair.later]), median(pair.evaluation[pair.later])
    gained = median(pair.evaluation[pair.later]) - float(pair.evaluation[0])
    if trained < LEARNT or reached > HALF * trained or gained > NO_GAIN:
        return None
    if pair.passes is not None and float(pair.passes[0]) > FIRST_PASS and float(pair.train[0]) >= LEARNT:
        raise CannotTell(
            f"the first evaluation stands at pass {figure(float(pair.passes[0]))}: rows may be known by then"
        )
    if trained - reached < SIGMAS * pair.noise or float(median_of_three(pair.evaluation).max()) > HALF * trained:
        return None
    return said.evidence("gains nothing", 0)


def _at_once(said: _Said) -> Answers:
    pair = said.pair
    if pair.passes is None or not bool(np.any(pair.passes <= FIRST_PASS)):
        return {BEFORE_TWICE.id: CannotTell("no evaluation is known to stand within the first pass over the data")}
    last = int(np.flatnonzero(pair.passes <= FIRST_PASS)[-1])
    if pair.gap[last] < max(AT_ONCE, SIGMAS * pair.noise):
        return {}
    return {BEFORE_TWICE.id: said.evidence("is left behind within the first pass", last)}


def _falls(said: _Said) -> Evidence | None:
    pair = said.pair
    if len(pair) < LEAST_TO_FALL:
        return None
    smooth = median_of_three(pair.evaluation)
    best = int(np.argmax(smooth[1:-1])) + 1
    end = median(pair.evaluation[-3:])
    lost = float(smooth[best]) - end
    if lost < max(LOST, SIGMAS * pair.noise) or median(pair.train[-3:]) < float(pair.train[best]) - lost / 4:
        return None
    return said.evidence(f"falls by {figure(lost)} from its best", best)


def _far_below(said: _Said) -> Evidence | None:
    pair = said.pair
    if pair.passes is None:
        raise CannotTell("how many passes over the data were made is not known")
    early = pair.passes <= FIRST_PASS
    if not early.any():
        raise CannotTell(f"the first evaluation stands at pass {figure(float(pair.passes[0]))}: rows were seen twice")
    least = max(AT_ONCE, SIGMAS * pair.noise)
    first = float(pair.gap[0])
    if float(pair.gap[early].min()) < least or float(pair.gap.min()) < KEPT * first:
        return None
    if median(pair.gap[pair.later]) > first / KEPT:  # what grows so is another matter
        return None
    return said.evidence("is far below that of training from the first evaluation on", 0)


def _grows(said: _Said) -> Evidence | None:
    pair = said.pair
    late = median(pair.gap[pair.later])
    within = pair.passes is not None and float(pair.passes[-1]) <= FIRST_PASS
    if float(pair.gap[0]) > CLOSE * late or late < max(WITHIN if within else WIDE, SIGMAS * pair.noise):
        return None
    if not within and median(pair.train[pair.later]) < KNOWN:
        return None
    return said.evidence("is left behind", int(np.argmax(pair.gap >= late / 2)))


def _in_first_pass(said: _Said, grown: Evidence) -> Answers:
    passes = said.pair.passes
    if passes is None:
        return {EARLY.id: CannotTell("how many passes over the data were made is not known")}
    at = float(passes[int(np.searchsorted(said.pair.steps, grown.steps[0]))])
    return {EARLY.id: grown} if at <= EARLY_PASS else {}


def _above(said: _Said) -> Evidence | None:
    pair, run = said.pair, said.run
    if any(run.setting(name) for name in MIXED) or (run.setting("dropout") or 0.0) > HEAVY_DROPOUT:
        raise CannotTell("training is scored on inputs that are mixed or dropped, as configured")
    least = max(ABOVE, SIGMAS * pair.noise)
    if float((-pair.gap[pair.later]).min()) < least:
        return None
    return said.evidence("is above that of training", len(pair) // 2)
