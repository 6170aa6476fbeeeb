"""What the name of a metric says: its canonical name, and whether it is a loss, of evaluation, of training at all.

The names that are known stand in `spellings`. What is here tells by rules of the others, such as that `val/x` is
`eval_x`.
"""

from __future__ import annotations

import re
from functools import lru_cache

from mldebug_mcp.logs.spellings import FACTORS, SPELLINGS

COUNTERS = ("step", "epoch", "episode")
"""Where a run is, the finest first."""
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_CANONICAL = {spelling: name for name, spellings in SPELLINGS.items() for spelling in spellings}
_RANK = {spelling: rank for spellings in SPELLINGS.values() for rank, spelling in enumerate(spellings)}
"""Where two spellings of one metric stand in one log, the lower rank is the metric and the other keeps its own name."""

_MEAN_REWARD = re.compile(
    r"(?:(?:mean|avg\.?|average|moving|running)_)+(?:(?:last_)?\d+_)?(?:(?:episod(?:e|ic)|ep)_)?"
    r"(?:reward|return)s?(?:_\d+)?"
    r"|(?:episod(?:e|ic)|ep)_(?:reward|return)s?_(?:mean|avg)(?:_\d+)?"
)
"""A mean over episodes, with or without their number: `mean_100_episode_reward`."""
_EVALUATION = re.compile(r"(?P<sure>(?:eval|vali?|validat(?:ion|e))[/_.])|(?P<maybe>(?:valid|dev|test)[/_])(?=.)")
_INSIDE = re.compile(
    r"(?:ray/tune/)?(?:(?:train|training)/|(?:info/)?learners?/[^/]+/(?:learner_stats/)?|env_runners/|sampler_results/)(?=.)"
)
"""Where a metric stands says nothing of what it is: RLlib's learner of a policy, and those that play."""
_TRAINING = re.compile(r"train_(?=.)")
# "loss_val", "Loss (val)", "loss (batch)"
_SUFFIX = re.compile(
    r"(?P<rest>.+)_(?:(?P<eval>vali?|valid|validation|test|\((?:val|valid|validation|eval|test)\))"
    r"|train|\((?:train|training|batch|avg|mean)\))"
)
_LEARNING_RATE = re.compile(
    r"(?:train/)?(?:(?:current_)?lr|learning_rate)[-_/](?:\d+|[a-z]*adam\w*|sgd\w*|lion|adafactor|muon|rmsprop|pg\d+|group_?\d+|scheduler)"
    r"(?:/(?:pg|group|param_group)_?\d+)?"
)
_PATTERNS = ((_LEARNING_RATE, "learning_rate"), (_MEAN_REWARD, "reward"))
# The "val" of these is a value function's: TRL's PPO trainer.
_VALUE_FUNCTION = frozenset({"val/ratio", "val/ratio_var", "val/clipfrac", "val/clipfrac_avg", "val/num_eos_tokens"})
_TELLING_WORDS = re.compile(
    r"(?<![a-z])[am]?acc(?![a-z])|accuracy|cross-?_?entropy|reward|perplexity|(?<![a-z])ppl(?![a-z])"
    r"|(?<![a-z])bp[bc](?![a-z])|'s_|psnr|ssim|lpips|return|(?<![a-z])nll(?![a-z])|(?<![a-z])kl(?![a-z])"
    r"|(?<![a-z])(?:mse|mae|rmse|m?dice|m?iou|m?ap|auc|bleu|rouge\w*|wer|cer|f1|elbo|score|recall|ndcg|mrr)(?![a-z])"
    r"|(?<![a-z])(?:r(?:2|\^2|²|_?squared)|smape|mape|rmsle|auroc|auprc|pinball)(?![a-z])",
)
# Losses of pix2pix and CycleGAN, and of BasicSR.
_OF_GANS = re.compile(
    r"[dg]_(?:a|b|gan\w*|l1|real|fake|feat|vgg)|(?:cycle|idt)_[ab]|l_(?:[gd]_)?(?:pix|percep|fea|gan|real|fake|style)\w*"
)
_SHORT_PART = re.compile(
    r"_(?:cls|box|reg|obj)|^(?:obj|cls|box|conf|dfl|iou|giou|kl|rec|recon|ce|dice)$|_(?:kl|ce|dice)$"
)
"""What detectors, segmenters and autoencoders call the parts of their loss, beside a loss."""
_SETTING_WORDS = re.compile(
    r"weight|alpha|gamma|beta|coef|type|steps|scale|threshold|epsilon|lambda|_fn\b|time$"
    r"|\.(?:whl|metadata|py|json|txt|gz|bin|pt|safetensors)$"  # a file that is fetched
)
_NOT_TELLING = frozenset(
    {*COUNTERS, "learning_rate", "step_time", "data_time", "memory", "num_tokens", "loss_scale",
     "skipped_iterations", "nan_iterations", "elapsed", "timestamp"}
)  # fmt: skip


def normal(name: str) -> str:
    """Return a spelling as the table has it: lower case, spaces and hyphens as underscores."""
    if name.islower() and " " not in name and "-" not in name:
        return name
    joined = re.sub(r"[\s\-]+", "_", name.strip().lower())
    return joined.replace("._", "_").replace("_/_", "/")  # "Val. Loss", "Loss / Policy loss"


@lru_cache(maxsize=4096)
def canonical(name: str) -> str:
    """Return the canonical name of a metric, or its own name if the table does not know it.

    `val/f1` and `validation_f1` become `eval_f1`, and so do `valid_`, `test_` and `dev_` before a metric that is known
    (`valid_action` is a share of valid actions); `train/x` becomes `x`, and so does `train_x` where x is known.
    """
    spelling = normal(name)
    if spelling in _CANONICAL:
        return _CANONICAL[spelling]
    if spelling in _VALUE_FUNCTION:
        return spelling
    evaluation = _EVALUATION.match(spelling)
    if evaluation and len(spelling) > evaluation.end():
        rest = spelling[evaluation.end() :]
        if evaluation["sure"] or evaluation["maybe"].endswith("/") or rest in _CANONICAL or is_telling(rest):
            known = canonical(rest)
            if known.startswith("eval_"):  # "test val_loss"
                return known
            return _CANONICAL.get(f"eval_{known}", f"eval_{known}") if rest in _CANONICAL else f"eval_{rest}"
    for pattern, known in _PATTERNS:
        if pattern.fullmatch(spelling):
            return known
    return _without_phase(spelling) or _in_words(name) or name.strip()


def _in_words(name: str) -> str | None:
    """Return the name of a metric that is written in camel case ("ValLoss"), None if the table does not know it."""
    words = _HUMP.sub("_", name)
    known = canonical(words) if words != name else ""
    return known if known in SPELLINGS else None


def _without_phase(spelling: str) -> str | None:
    """Return the name of a metric whose phase or place stands in it, None if there is none."""
    suffix = _SUFFIX.fullmatch(spelling)
    if suffix and (suffix["rest"] in _CANONICAL or is_telling(suffix["rest"])):
        return canonical(f"eval_{suffix['rest']}" if suffix["eval"] else suffix["rest"])
    inside = _INSIDE.match(spelling) or _TRAINING.match(spelling)
    if inside is None:
        return None
    rest = spelling[inside.end() :]
    if inside.re is _TRAINING and rest not in _CANONICAL:
        return None
    known = _CANONICAL.get(rest, rest)
    return spelling if known in COUNTERS else known


def is_known(name: str) -> bool:
    """Say whether the table knows a metric by this name."""
    return canonical(name) in SPELLINGS


@lru_cache(maxsize=4096)
def is_telling(name: str) -> bool:
    """Say whether a name is one that only training or evaluation prints: a loss, an accuracy, a reward."""
    known = canonical(name)
    if known in SPELLINGS:
        return known not in _NOT_TELLING
    lowered = known.lower()
    if is_loss(known):
        return _SETTING_WORDS.search(lowered) is None
    return _TELLING_WORDS.search(lowered) is not None and _SETTING_WORDS.search(lowered) is None


@lru_cache(maxsize=4096)
def is_loss(name: str) -> bool:
    """Say whether a name is that of a loss or of a part of one."""
    lowered = name.lower()
    return "loss" in lowered or _OF_GANS.fullmatch(lowered) is not None


def is_part_of_loss(name: str) -> bool:
    """Say whether a name is that of a training loss or of a part of one that goes without the word: `rpn_cls`, `kl`."""
    return is_training_loss(name) or (not is_evaluation(name) and _SHORT_PART.search(name.lower()) is not None)


def is_training_loss(name: str) -> bool:
    """Say whether a name is that of a loss of training or of a part of one."""
    return is_loss(name) and not is_evaluation(name) and "loss_scale" not in name.lower()


def is_evaluation(name: str) -> bool:
    """Say whether a metric is one of evaluation."""
    return canonical(name).startswith("eval_")


@lru_cache(maxsize=4096)
def factor(name: str) -> float:
    """Return what a spelling's numbers are multiplied by to be the canonical metric."""
    return FACTORS.get(normal(name), 1.0)


def rank(name: str) -> int:
    """Return how close a spelling is to its canonical name; 0 is closest."""
    return _RANK.get(normal(name), len(_CANONICAL))


def of_evaluation(name: str) -> str:
    """Return the name of a metric in a record of the Trainer's `evaluate`, where some trainers forget the prefix."""
    measured = is_telling(name) or name.startswith("completions/")
    return f"eval_{name}" if measured and not name.startswith("eval_") else name
