"""The words that names of metrics are made of; the words themselves stand in `words.json`.

Each word stands there once, with what it means: usually itself in its plain form, sometimes several words. A name
with a word that is not there is of a quantity only where the quantity has parts (`Loss` and `box_loss`). New words
go into the `synonyms` of the file, a new quantity into its `quantities`; a name that means otherwise than its
words into `IDIOMS`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from mldebug_mcp.logs.names.quantities import Quantity as Q  # noqa: N817 - tables of them

# The words of names, from the data file beside this module, and how its lists are written down.

Groups = Mapping[str, str]

_FILE = json.loads(Path(__file__).with_name("words.json").read_text(encoding="utf-8"))
METRICS: Groups = _FILE["metrics"]["lists"]
"""Lists of words that say one thing of a metric: name of the list → its words."""
METRIC_GROUPS: Mapping[str, Groups] = _FILE["metrics"]["groups"]
"""Tables of words of metrics: name of the table → meaning → the words that have it."""
OTHER_LANGUAGES: Mapping[str, Groups] = _FILE["languages"]["groups"]
COMPOUND_ENDINGS: str = _FILE["languages"]["compounded"]
SETTING_LISTS: Groups = _FILE["settings"]["lists"]
SETTING_SYNONYMS: Groups = _FILE["settings"]["synonyms"]
SETTINGS: Mapping[str, Groups] = _FILE["settings"]["settings"]
"""Topic → canonical name of a setting → the kind of its value, and the phrases that name it."""


def all_of(words: str) -> frozenset[str]:
    """Return the words of a list."""
    return frozenset(words.split())


def grouped(groups: Groups) -> dict[str, str]:
    """Return word → meaning, of groups such as {"mean": "avg average"}; a meaning of one word is a word too."""
    found: dict[str, str] = {}
    for meaning, words in groups.items():
        found.update(dict.fromkeys(words.split(), meaning))
        if " " not in meaning:
            found.setdefault(meaning, meaning)
    return found


def phrases_in(groups: Groups) -> dict[frozenset[str], str]:
    """Return the words of each phrase → meaning, of groups such as {"loss": "loss, cross entropy loss"}."""
    return {frozenset(phrase.split()): meaning for meaning, phrases in groups.items() for phrase in phrases.split(", ")}


# Words of metrics in other languages than English, with the English words that they mean.
#
# Latin letters stand here without their accents, as names are read without them. Russian words are inflected: of those
# the beginning stands here that all their forms share.

STEMS = grouped(OTHER_LANGUAGES["stems"])
"""Beginning of a Russian word → what it means."""

COMPOUNDED = tuple(COMPOUND_ENDINGS.split())
"""Words at whose beginning others may stand in one word, whatever these are: `Rekonstruktionsverlust`, 均衡损失."""
MOST_OF_AN_ENDING = 6
"""Letters by which a Russian word may be longer than its stem; chosen by hand."""
MOST_OF_A_STEM = max(map(len, STEMS))
LEAST_INFLECTED = 3
"""Letters of a stem from which on it may have an ending: a shorter one is an abbreviation that stands alone."""


# The words that names of metrics are made of; the words themselves stand in `words.json`.

PHASES = grouped(METRIC_GROUPS["phases"]) | grouped(OTHER_LANGUAGES["phases"])
TESTS = frozenset({"test", "te", "tst"})
"""Phases of evaluation that are of the test set."""
OWN_SETS = {
    **dict.fromkeys(("fit", "seen"), "train"),
    **dict.fromkeys(("kept-out", "check", "tune", "hidden"), "eval"),
}
"""Words of one's own for the rows that are trained on and for others: one alone may mean anything."""
JUDGED = all_of(METRICS["judged"])
"""Words for who or what counts the success of a model, or that it had it: the share is one of right answers."""
MISJUDGED = all_of(METRICS["misjudged"])
"""Words with which such a share is one of wrong answers, or none."""
PARTS_OF_A_MODEL = all_of(METRICS["parts_of_a_model"])
"""Words that name a part of a model and nothing else, below what is measured of it."""
STATISTICS = grouped(METRIC_GROUPS["statistics"]) | {
    percentile: percentile for percentile in ("p05", "p10", "p25", "p75", "p90", "p95", "p99")
}
STATISTICS |= grouped(OTHER_LANGUAGES["statistics"])

SECONDS = {
    "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0,
    "ms": 1e-3, "msec": 1e-3, "msecs": 1e-3, "millis": 1e-3, "millisecond": 1e-3, "milliseconds": 1e-3,
    "us": 1e-6, "µs": 1e-6, "usec": 1e-6, "microseconds": 1e-6, "ns": 1e-9, "nanoseconds": 1e-9,
    "min": 60.0, "mins": 60.0, "minute": 60.0, "minutes": 60.0,
    "h": 3600.0, "hr": 3600.0, "hrs": 3600.0, "hour": 3600.0, "hours": 3600.0,
}  # fmt: skip
GIB = {
    "b": 2.0**-30, "byte": 2.0**-30, "bytes": 2.0**-30, "kb": 2.0**-20, "kib": 2.0**-20, "mb": 2.0**-10,
    "mib": 2.0**-10, "megabytes": 2.0**-10, "gb": 1.0, "gib": 1.0, "g": 1.0, "gigabytes": 1.0, "tb": 2.0**10,
    "tib": 2.0**10,
}  # fmt: skip
"""Loggers write MB and GB and divide by powers of 1024, as `torch.cuda` and `nvidia-smi` do: all are binary."""
SHARES = {"%": 0.01, "pct": 0.01, "percent": 0.01, "percentage": 0.01}
THOUSANDS = {
    "k": 1e3, "m": 1e6, "million": 1e6, "millions": 1e6, "thousand": 1e3, "b": 1e9, "billion": 1e9,
    "billions": 1e9, "万": 1e4,
}  # fmt: skip
UNITS = SECONDS.keys() | GIB.keys() | SHARES.keys() | THOUSANDS.keys()
SHORT_UNITS = frozenset({"s", "b", "h", "g", "k", "m", "min", "us"})
"""... that are other words elsewhere: they count as units only at the end of a name."""

NAMESPACES = all_of(METRICS["namespaces"])
"""Where a metric stands, which says nothing of what it is."""
SOFT = all_of(METRICS["soft"])
"""Words that a name may have besides those of its quantity and still be that of the whole."""
SPOILERS = all_of(METRICS["spoilers"])
"""Words that make a setting, or something else, of a name that would be that of a part."""

SYNONYMS = grouped(OTHER_LANGUAGES["synonyms"]) | grouped(METRIC_GROUPS["synonyms"])
"""Word → what it means: one word or several."""

PHRASES = {tuple(phrase.split()): meaning for phrase, meaning in METRIC_GROUPS["phrases"].items()}
"""Words that stand one after another → those that they mean."""
AXIS = all_of(METRICS["axis"])
"""Words after which a name says what it is drawn over: "lm loss vs samples"."""
PLACES = all_of(METRICS["places"])
"""Words of quantities under which loggers also gather related measurements: `throughput/mfu`."""

NEGATED = all_of(METRICS["negated"])
"""Words for what is maximised: Kaldi's objective function is a log-probability per frame, minus a loss."""
SET_ASIDE = ("summary/", "epoch_mean/")
"""Where the readers put averages over a run or an epoch: they are no series of it, whatever their names say."""
EMPTY = NAMESPACES | {"per", "of", "in", "the", "this", "to", "from"}
"""Words that say nothing, but for those that are part of a quantity too."""


# Which words together are which quantity, and what else a name of each quantity may hold.

MEANINGS = {words: Q(name) for words, name in phrases_in(METRIC_GROUPS["quantities"]).items()}
"""Words, in any order → the quantity."""
TIMED = {words: Q(name) for words, name in phrases_in(METRIC_GROUPS["timed"]).items()}
"""... where a unit of time says that it is a duration: `fetch_ms`, "ms per step"."""
ALONE = {words: Q(name) for words, name in phrases_in(METRIC_GROUPS["alone"]).items()}
"""... and what words mean where a name holds nothing else: more of them are something else."""
IN_BYTES = all_of(METRICS["in_bytes"])
"""The names of memory where only the unit tells that it is one: `alloc GB`."""
SHARES_OF = {words: Q(name) for words, name in phrases_in(METRIC_GROUPS["shared"]).items()}
"""What a share is of where only the sign tells that it is one: `gpu%`."""
NAMED_LOSSES = all_of(METRICS["named_losses"])
"""What losses are called that stand without the word, by what they compute."""
METHODS = all_of(METRICS["methods"])
"""... and by the method that they are of, whose other names begin with it: `dino_momentum`."""
OF_A_LOSS_TOO = all_of(METRICS["of_a_loss_too"])
"""Words of other quantities that may say of what a loss is that is called by its name: `gen_mlm`."""
PARTS_OF_A_LOSS = all_of(METRICS["parts_of_a_loss"])
"""... and what their parts are called; nothing else may stand in the name."""
RATES = {word: Q(name) for name, words in METRIC_GROUPS["rates"].items() for word in words.split()}
"""... and what is counted per second."""
WITH_PARTS = frozenset({
    Q.LOSS, Q.ACCURACY, Q.PERPLEXITY, Q.REWARD, Q.GRADIENT_NORM, Q.WEIGHT_NORM, Q.KL, Q.ENTROPY, Q.CLIP_FRACTION,
    Q.UPDATE_RATIO, Q.UPDATE_NORM, Q.APPROXIMATE_KL, Q.FLOPS_UTILISATION,
    Q.COMPLETION_LENGTH, Q.VALUE, Q.TOKENS_PER_SECOND, Q.SAMPLES_PER_SECOND, Q.STEPS_PER_SECOND,
    *(quantity for quantity in Q if quantity.higher_is_better or quantity.lower_is_better),
})  # fmt: skip
"""Quantities that have parts, named by any word: `box_loss`, the F1 of a class, the norm of a layer."""
INDEXED = frozenset({
    Q.LEARNING_RATE, Q.REWARD, Q.VALUE_LOSS, Q.ACCURACY, Q.GRADIENT_NORM, Q.DEVICE_MEMORY, Q.DEVICE_UTILISATION,
    Q.TEMPERATURE, Q.POWER, Q.OUTPUT_ON_GENERATED, Q.VALUE,
})  # fmt: skip
"""... and those whose name may hold a number: of a group of parameters, of a GPU, of episodes that are averaged."""
WHOLE_INDICES = {
    Q.VALUE_LOSS: "1", Q.VALUE: "1", Q.ACCURACY: "1", Q.OUTPUT_ON_GENERATED: "1",
    **dict.fromkeys((Q.DEVICE_MEMORY, Q.DEVICE_UTILISATION, Q.TEMPERATURE, Q.POWER), "0"),
}  # fmt: skip
"""The one number that does not make a part of it: the first critic, top-1, GPU 0."""
NOT_IN_A_LOSS = frozenset({
    Q.LEARNING_RATE, Q.ENTROPY, Q.APPROXIMATE_KL, Q.CLIP_FRACTION, Q.EXPLAINED_VARIANCE, Q.LOSS_SCALE, Q.GRADIENT_NORM,
})  # fmt: skip
"""Quantities that `loss/` in front is only the place of."""

OTHERS = {Q(name): all_of(words) for name, words in METRIC_GROUPS["others"].items()}
"""Words that make a quantity another one that goes by the same name: the entropy of a router is not a policy's."""
BY_MODULE = frozenset({Q.GRADIENT_NORM, Q.WEIGHT_NORM, Q.UPDATE_RATIO, Q.UPDATE_NORM})
"""Quantities that are logged for each module or parameter of a model, by its path in it."""
OF_ROLLOUTS = frozenset({Q.REWARD, Q.SCORE, Q.KL, Q.ADVANTAGE, Q.GROUPS_WITHOUT_SPREAD})
"""Quantities that verl logs under `critic/` and that are none of the critic's own."""

CONCEPTS = frozenset(word for words in MEANINGS for word in words)
"""The words that quantities are made of."""
COUNTED = frozenset({Q.TOKENS_SEEN, Q.SAMPLES_SEEN, *RATES.values()})
"""Quantities that may be given in thousands."""


# Names that mean otherwise than their words say, in the framework that writes them.

_IDIOMS: tuple[tuple[Q | None, str, float, str], ...] = (
    # Stable-Baselines3 logs minus the mean entropy (ppo.py: entropy_loss = -mean(entropy)), others the entropy.
    (Q.ENTROPY, "", -1.0, "train/entropy_loss"),
    (Q.ENTROPY, "", 1.0, "actor/entropy_loss mean_entropy_loss loss_ent"),
    (Q.KL, "", 1.0, "actor/kl_loss mean_kl_loss loss_kl"),
    (Q.APPROXIMATE_KL, "", 1.0, "ppo_kl actor/ppo_kl train/ppo_kl"),
    # TRL's PPO trainer: "val" is the value function, and its returns are targets of that, beside the scores.
    (Q.EXPLAINED_VARIANCE, "", 1.0, "ppo/val/var_explained ev_tdlam_before"),
    (Q.POLICY_RATIO, "", 1.0, "val/ratio"),
    (None, "", 1.0, "val/clipfrac val/clipfrac_avg ppo/returns/mean"),
    # A mean beside a loss may be that of a reward model; TRL's spread is that within the groups of one prompt.
    (None, "", 1.0, "reward_mean"),
    (Q.REWARD_SPREAD, "", 1.0, "reward_std train/reward_std env/reward_std"),
    (Q.REWARD_SPREAD, "", 1.0, "group_std in_group_std within_group_std intra_group_std"),
    (Q.REWARD, "", 1.0, "ppo/mean_scores objective/scores critic/rewards/mean evaluation/averagereturn avgr meanrew"),
    (Q.REWARD, "eval", 1.0, "evaluation"),
    (Q.EPISODE_LENGTH, "", 1.0, "evaluation/average_episode_length avgs meanlen episode_t"),
    (Q.EXPLORATION, "", 1.0, "charts/epsilon"),
    (Q.POLICY_LOSS, "", 1.0, "losses/a_loss"),
    (Q.VALUE_LOSS, "", 1.0, "losses/c_loss cri_loss"),
    (Q.GENERATOR_LOSS, "", 1.0, "l_g_gan"),  # BasicSR
    # K-means of scikit-learn minimises its inertia.
    (Q.LOSS, "", 1.0, "actor/loss l_pix train_nll train/ce_loss inertia mean_batch_inertia"),
    (Q.LOSS, "", 1.0, "ltrain ltrn trl tr_l trn_l train_l l_tr l_trn l_train"),
    (Q.LOSS, "train", 1.0, "train_loss_step/weighted_sum"),  # NequIP; that of validation weighs other measures
    (Q.LOSS, "eval", 1.0, "lval lvalid ltest ldev tel te_l tst_l test_l va_l val_l ho_l dev_l"),
    (Q.LOSS, "eval", 1.0, "l_va l_val l_test l_dev l_ho"),
    (Q.LOSS, "train", 1.0, "traindeviance"),  # R's gbm
    (Q.LOSS, "eval", 1.0, "validdeviance"),
    (Q.LOSS, "", 1.0, "l2_trn"),  # DeePMD-kit, before 2.0
    (Q.LOSS, "eval", 1.0, "valid_loss/mse clip_val_loss l2_tst"),
    (Q.ACCURACY, "", 1.0, "token_acc"),  # ms-swift has no other
    (Q.ACCURACY, "eval", 1.0, "eval_token_acc metrics/accuracy_top1"),  # Ultralytics measures it on the validation set
    (Q.GRADIENT_NORM, "", 1.0, "norm"),
    (Q.LEARNING_RATE, "", 1.0, "l.r. l_r x/lr0"),
    (Q.LOSS_SCALE, "", 1.0, "fp16_loss_scalar amp_scale scaler_scale scaler/scale scaler"),
    # Weights & Biases counts its calls (`_step`), OpenPCDet accumulates (`acc_iter`); fairseq names the updates of
    # training where it was validated, and counts epochs beside its updates. MaxText, ms-swift.
    (Q.STEP, "", 1.0, "t_env total_t _step acc_iter valid_num_updates update completed_step"),
    (Q.STEP, "", 1.0, "global_step/max_steps upd up. #_batch"),
    (None, "", 1.0, "time/iterations time/episodes"),  # Stable-Baselines3 counts rollouts
    (None, "", 1.0, "acc_step acc_steps"),  # of accumulation
    (None, "", 1.0, "moves_dice rolls_dice dice_roll dice_rolls dice_sum dice_total"),  # of a game, no overlap of masks
    (None, "", 1.0, "current_pass"),  # Vowpal Wabbit counts how often it went over the data
    (Q.EPOCH, "", 1.0, "num_epoch n_epoch ep ep."),  # of an agent an episode: `guesses`
    (Q.SAMPLES_SEEN, "", 1.0, "example_counter sen. nimg n_img"),
    (Q.TOKENS_SEEN, "", 1.0, "trained_tokens"),  # MLX
    (Q.TOKENS_SEEN, "", 1e9, "gtokens gtok btokens btok"),
    (Q.TOKENS_SEEN, "", 1e6, "mtokens mtok"),
    (Q.TOKENS_PER_SECOND, "", 1e3, "kt/s ktok/s ktok_s ktps ktokens/s"),
    (Q.STEPS_PER_SECOND, "", 1.0, "throughput/device/bps"),  # OLMo: batches
    (Q.EPOCH_TIME, "", 60.0, "m/ep m/epoch"),
    (Q.STEP_TIME, "", 1.0, "s/b sec/b dt updt_s step_avg"),
    (Q.STEP_TIME, "", 1.0, "time_metrics/end_to_end(s) throughput/duration"),  # torchtitan, Levanter
    (Q.STEP_TIME, "", 1e-3, "ms/b"),
    # Megatron's and DeepSpeed's timers count milliseconds.
    (Q.FORWARD_TIME, "", 1e-3, "forward_compute fwd_microstep"),
    (Q.BACKWARD_TIME, "", 1e-3, "backward_compute bwd_microstep"),
    (Q.DATA_TIME, "", 1e-3, "batch_generator"),
    (Q.OPTIMIZER_TIME, "", 1e-3, "step_microstep"),
    (Q.TIME_LEFT, "", 1.0, "estimated_time"),  # scikit-learn's gradient boosting, before 0.15
    (Q.ELAPSED, "", 1.0, "_runtime train_time training_time training_duration"),
    (Q.HOST_UTILISATION, "", 1.0, "system.cpu"),  # Weights & Biases, in per cent
    (None, "", 1.0, "system.memory"),
)
"""Quantity (None: it has no role), phase, factor, and the names, in lower case with underscores."""
IDIOMS = {name: (quantity, phase, factor) for quantity, phase, factor, names in _IDIOMS for name in names.split()}
"""Name → quantity, phase, factor."""
