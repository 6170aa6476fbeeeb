"""Which missing metric would decide most, and how to log it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from mldebug_mcp.checks import Symptom, symptoms
from mldebug_mcp.checks.check import not_logged_by
from mldebug_mcp.checks.policies import TEXT_POLICIES
from mldebug_mcp.core.lazy import dataclass
from mldebug_mcp.judge.causes import learner_of
from mldebug_mcp.judge.next_steps import Likelihood, Worth
from mldebug_mcp.logs import Run
from mldebug_mcp.logs.settings.settings import POLICIES
from mldebug_mcp.models import Finding, Hypothesis, MetricToLog, State

# How to log a metric: the one table of what a run can be told to log, for which kinds of run, and how.
#
# The names of settings are those that the documentation of Transformers, TRL, Megatron-LM and PyTorch gives.


@dataclass(frozen=True, slots=True)
class Loggable:
    """How to log a metric, and the kinds of run that have it (none: all).

    Args:
        how: In any loop.
        trainer: With the Transformers Trainer, TRL and what is built on them, where that is another way.
        megatron: With Megatron-LM and its derivatives, likewise.
        kinds: The kinds of run.
        judges: Symptoms that cannot be judged without it though they do not list it among their needs.
    """

    how: str
    trainer: str = ""
    megatron: str = ""
    kinds: Collection[str] = ()
    judges: tuple[str, ...] = ()

    def for_run(self, run: Run) -> str:
        """Return how to log it with the framework that wrote a log, as far as that shows."""
        if "megatron" in run.formats:
            return self.megatron or self.how
        is_of_trainer = "hf_trainer_state" in run.formats or "train_runtime" in run or "total_flos" in run
        is_of_trl = run.kind in ("grpo", "preference", "sft") and "epoch" in run
        return (self.trainer if is_of_trainer or is_of_trl else "") or self.how


LOGGABLE: Mapping[str, Loggable] = {
    "loss": Loggable(
        "log loss.item() at every optimizer step", trainer="logging_steps=1 logs the training loss at every step"
    ),
    "grad_norm": Loggable(
        "log what torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm) returns: the norm before "
        "clipping (max_norm=inf clips nothing)",
        trainer="Transformers logs grad_norm by default since 4.38: update, and set logging_steps=1",
        megatron="it stands on the iteration line as `grad norm` where clip_grad is above 0",
    ),
    "learning_rate": Loggable(
        "log scheduler.get_last_lr()[0], or optimizer.param_groups[0]['lr'], at every step",
        trainer="the Trainer logs learning_rate with the loss: keep its log_history (trainer_state.json)",
    ),
    "eval_loss": Loggable(
        "measure the loss on held-out data every so often, in model.eval() and without gradients",
        trainer="pass an eval_dataset and set eval_strategy='steps' with eval_steps (before 4.41 it was called "
        "evaluation_strategy)",
        megatron="set --eval-interval and --eval-iters",
        judges=(
            "eval_gap_grows",
            "eval_never_improves",
            "eval_bad_from_start",
            "eval_nonfinite",
            "eval_metric_flickers",
        ),
    ),
    "eval_accuracy": Loggable(
        "log a metric of quality on held-out data next to the evaluation loss",
        trainer="pass compute_metrics to the Trainer",
        kinds=("supervised", "sft"),
        judges=("eval_metric_constant",),
    ),
    "loss_scale": Loggable(
        "log scaler.get_scale() after scaler.update()",
        trainer="in a callback log accelerator.scaler.get_scale(); DeepSpeed prints its loss scale itself",
        megatron="it stands on the iteration line as `loss scale` in fp16 runs",
        judges=("steps_skipped", "scale_falls_with_loss", "loss_scale_falls"),
    ),
    "step_time": Loggable(
        "log the wall time of each step, measured after torch.cuda.synchronize()",
        trainer="in a callback log the time between on_step_begin and on_step_end",
        megatron="it stands on the iteration line as `elapsed time per iteration (ms)`: keep these lines",
    ),
    "data_time": Loggable("log the time that next(iterator) of the data loader takes, apart from the time of the step"),
    "memory": Loggable(
        "log torch.cuda.max_memory_allocated() and torch.cuda.max_memory_reserved() at every logging step",
        megatron="set --log-memory-to-tensorboard",
    ),
    "reward": Loggable("log the mean reward of each batch or episode", kinds=POLICIES),
    "entropy": Loggable(
        "log the mean entropy of the policy's distribution over actions or tokens",
        trainer="GRPOTrainer of a recent TRL logs entropy by itself: update",
        kinds=TEXT_POLICIES,
    ),
    "kl": Loggable(
        "log the mean KL divergence of the policy from its reference",
        trainer="GRPOTrainer logs kl only where beta is above 0: a small beta (0.001) makes it visible",
        kinds=TEXT_POLICIES,
    ),
    "approx_kl": Loggable(
        "log the mean of (ratio - 1) - log(ratio) between new and old policy at each update", kinds=("ppo",)
    ),
    "clip_ratio": Loggable(
        "log the share of samples whose probability ratio lies outside the clipping range",
        trainer="GRPOTrainer logs clip_ratio/region_mean; it moves only with num_iterations above 1",
        kinds=POLICIES,
    ),
    "frac_reward_zero_std": Loggable(
        "log the standard deviation of the reward within each group, and the share of groups where it is 0",
        trainer="GRPOTrainer logs frac_reward_zero_std and reward_std; log_completions=True shows the answers "
        "behind them",
        kinds=("grpo",),
    ),
    "completion_length": Loggable(
        "log the mean length of the completions in tokens, and some of the completions",
        trainer="GRPOTrainer logs completions/mean_length; log_completions=True shows the answers themselves",
        kinds=TEXT_POLICIES,
    ),
    "completions/clipped_ratio": Loggable(
        "log the share of completions that reach the length limit without an end token",
        trainer="GRPOTrainer logs completions/clipped_ratio; log_completions=True shows the answers themselves",
        kinds=TEXT_POLICIES,
    ),
    "sampling/importance_sampling_ratio/min": Loggable(
        "log the smallest ratio of the probabilities of the sampled tokens: trainer over sampler",
        trainer="GRPOTrainer with use_vllm logs it where vllm_importance_sampling_correction is on",
        kinds=("grpo",),
    ),
    "value_loss": Loggable("log the loss of the value function apart from that of the policy", kinds=("ppo", "rl")),
    "rewards/chosen": Loggable(
        "log beta times the log-ratio of policy to reference, for chosen and for rejected answers",
        trainer="DPOTrainer logs rewards/chosen and rewards/rejected: keep its log_history (trainer_state.json)",
        kinds=("preference",),
        judges=("dpo_logps_fall",),
    ),
    "rewards/margins": Loggable(
        "log the mean of the implicit reward of the chosen answer minus that of the rejected one", kinds=("preference",)
    ),
    "rewards/accuracies": Loggable(
        "log the share of pairs whose chosen answer has the higher implicit reward", kinds=("preference",)
    ),
}
"""By canonical name. A metric that is not listed is never asked for."""

SETTINGS: Mapping[str, tuple[str, ...]] = {
    "learning_rate": ("lr_high", "lr_low"),
    "max_grad_norm": ("grad_clip_saturated",),
    "weight_decay": ("weight_decay_high",),
    "per_device_train_batch_size": ("batch_small",),
    "bf16": ("trains_in_fp16",),
    "num_labels": ("loss_at_chance", "initial_loss_low"),
    "max_steps": ("log_stops",),
}
"""Settings, and the symptoms that cannot be judged without them."""
CONFIGURATION = "configuration"
"""Stands for all settings where a run has none."""
GIVE_SETTING = "put the configuration (JSON or YAML) next to the log, or name it (--config FILE, config=)"
WITHOUT_A_NETWORK: Mapping[str, Mapping[str, str]] = {
    "boosting": {
        "eval_loss": "give the training an evaluation set (`evals`, `eval_set` or `valid_sets`)",
        "loss": "give the training its own rows as a second evaluation set",
        "configuration": GIVE_SETTING,
    },
    "linear": {
        "eval_loss": "print the loss on held-out rows after each `partial_fit`",
        "loss": "set `verbose=1`",
        "configuration": GIVE_SETTING,
    },
    "clusters": {"loss": "set `verbose=1`, which prints the inertia", "configuration": GIVE_SETTING},
}
"""What a learner that is not a neural network can be set to log, and how."""


def how_to_log(metric: str, run: Run) -> str | None:
    """Return how to make a run log a metric, or None if its kind of run has no such metric."""
    others = WITHOUT_A_NETWORK.get(learner_of(run))
    if others is not None:
        return others.get(metric)
    if metric == CONFIGURATION or (metric in SETTINGS and metric not in LOGGABLE):
        return GIVE_SETTING
    loggable = LOGGABLE.get(metric)
    if loggable is None or (loggable.kinds and run.kind not in loggable.kinds):
        return None
    return loggable.for_run(run)


# Which missing metric would have decided it? The one whose symptoms split the leading hypotheses best.
#
# Only findings that are unknown because something was not logged count, and only where there is doubt: a symptom that
# cannot be judged for another reason, such as the kind of run, would not be judged with more metrics either.


MIN_DOUBT_PROBABILITY = 0.15
"""Probability of a second hypothesis that is doubt ...; chosen: of a healthy run with a loss alone it has 0.1."""
MIN_JUDGED_SYMPTOMS = 6
"""... or where nothing is seen and fewer symptoms than this could be judged: the hypotheses are those of any run."""
OF_RESOURCES = ("step_time", "data_wait_high", "memory_grows")
"""Questions about pace and memory."""
LEAST_STEPS = 5
"""... or the log has fewer steps than this, too few to show a course; chosen by hand."""
_OF_THE_END = frozenset({"log_stops"})
"""Symptoms of how far the log goes, which say nothing on how the training went."""
MIN_SEPARATED_PROBABILITY = 0.05
"""Probability from which on hypotheses are to be separated."""
MOST_LEADING = 8
"""The first hypotheses that are, for a run that could hardly be judged."""
LEAST_BITS = 0.03
"""What tells less is not worth the asking."""
MAX_METRICS = 4
MAX_SPLITS = 4
"""Causes listed that a metric would tell from the others."""
LEAST_MOVE = 0.02
"""A hypothesis whose probability moves by less on average is not listed as split off."""


def what_to_log(
    run: Run, findings: Sequence[Finding], hypotheses: Sequence[Hypothesis], likelihood: Likelihood
) -> list[MetricToLog]:
    """Return the missing metrics that would split the leading hypotheses best, best first; none without doubt.

    Where hardly anything of training can be judged, its pace and memory are not asked for.
    """
    if hypotheses[1].probability < MIN_DOUBT_PROBABILITY and not hardly_judged(findings, run):
        return []
    leading = {
        hypothesis.cause: hypothesis.probability
        for hypothesis in hypotheses
        if hypothesis.probability >= MIN_SEPARATED_PROBABILITY
    }
    if len(leading) == 1:
        leading = {hypothesis.cause: hypothesis.probability for hypothesis in hypotheses[:MOST_LEADING]}
    wanted = metrics_that_split(leading, run, findings, likelihood)
    if hardly_judged(findings, run):
        missing, known = _missing(run, findings), symptoms()
        wanted = [
            metric_to_log
            for metric_to_log in wanted
            if not all(known[name].question.id in OF_RESOURCES for name in missing[metric_to_log.metric])
        ]
    return wanted[:MAX_METRICS]


def hardly_judged(findings: Sequence[Finding], run: Run) -> bool:
    """Say whether nothing is seen in a log, but for where it ends, because hardly anything of training could be judged.

    What is judged of pace and memory does not count: it says nothing of what was learnt.
    """
    known = symptoms()
    judged = [finding for finding in findings if finding.state is not State.UNKNOWN]
    asked = [known[finding.symptom].question.id for finding in judged if finding.symptom in known]
    of_training = sum(question not in OF_RESOURCES for question in asked)
    steps = max((len(series) for series in run.series.values()), default=0)
    present = {finding.symptom for finding in judged if finding.state is State.PRESENT}
    return (of_training < MIN_JUDGED_SYMPTOMS or steps < LEAST_STEPS) and present <= _OF_THE_END


def metrics_that_split(
    shares: Mapping[str, float], run: Run, findings: Sequence[Finding], likelihood: Likelihood
) -> list[MetricToLog]:
    """Return the missing metrics that would tell these causes apart, best first."""
    wanted = []
    for metric, unknown in _missing(run, findings).items():
        how = how_to_log(metric, run)
        worth = likelihood.worth(shares, unknown)
        if how is not None and worth.bits >= LEAST_BITS:
            wanted.append(
                MetricToLog.model_construct(
                    metric=str(metric), splits=_split(list(shares), worth), bits=worth.bits, how=how
                )
            )
    return sorted(wanted, key=lambda metric_to_log: -metric_to_log.bits)


def _missing(run: Run, findings: Sequence[Finding]) -> dict[str, list[str]]:
    """Return the metrics and settings that were not logged, each with the symptoms that it alone keeps unknown."""
    states = {finding.symptom: finding.state for finding in findings}
    unknown = [
        symptom
        for symptom in symptoms().values()
        if states.get(symptom.id) is State.UNKNOWN and run.kind not in symptom.question.not_for
    ]
    missing: dict[str, list[str]] = {}
    for symptom in unknown:
        metric = _lacks(symptom, run)
        if metric is not None:
            missing.setdefault(metric, []).append(symptom.id)
    if states.get("trains_in_fp16") is State.ABSENT:
        missing.pop("loss_scale", None)  # other precisions have none
    return missing


def _lacks(symptom: Symptom, run: Run) -> str | None:
    """Return the one metric or setting without which a symptom is unknown, or None if it lacks none or several."""
    groups = not_logged_by(symptom, run)
    lacking = [next((metric for metric in group if metric in LOGGABLE), group[0]) for group in groups]
    name = symptom.id
    lacking += [metric for metric, loggable in LOGGABLE.items() if name in loggable.judges and metric not in run]
    settings = [key for key, judges in SETTINGS.items() if name in judges and key not in run.config]
    if settings and not (set(settings) & set(run.series)):
        lacking.append(settings[0] if run.config else CONFIGURATION)
    if not lacking and symptom.points > 1:
        metric = symptom.needs[0]
        stretch = run.last_step - run.first_step + 1
        if len(run[metric].finite) < symptom.points <= stretch:
            return metric
    return lacking[0] if len(lacking) == 1 else None


def _split(causes: Sequence[str], worth: Worth) -> list[str]:
    order = np.argsort(-worth.moves)[:MAX_SPLITS]
    return [causes[at] for at in order if worth.moves[at] >= LEAST_MOVE]
