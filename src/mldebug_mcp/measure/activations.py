"""What a log tells of activations: the logits, by their maximum or log Z, and how far apart embeddings are."""

from __future__ import annotations

import re

from mldebug_mcp.logs.roles.lexicon import PHASES
from mldebug_mcp.logs.roles.words import pieces_of
from mldebug_mcp.logs.run import Run, Series

_LOGITS = re.compile(r"(?:.*_)?(?:log_?z|z_loss|(?:max_)?(?:attn_|attention_)?logits?(?:_(?:max|norm|mean|abs_?max))?)")
_LOG_Z = re.compile(r"log_?z")
"""The one of them that no answer needs to grow, as a constant in all logits leaves the answer as it is."""
_NOT = re.compile(r"chosen|rejected|scale|eval")
_SPREAD = re.compile(
    r"(?:.*[_/])?(?:feat(?:ure)?s?|emb(?:edding)?s?|repr(?:esentation)?s?|proj(?:ection)?s?|outputs?|z\d?|latent)"
    r"[_/]std(?:_mean|_avg)?",
    re.IGNORECASE,
)
_APART = re.compile(
    r"(?:.*_)?(?:neg(?:ative)?s?_(?:cos(?:ine)?_)?sim(?:ilarity)?|(?:cos(?:ine)?_)?sim(?:ilarity)?_neg)"
)
"""What is measured of pairs that do not belong together."""


def logits_of(run: Run) -> list[Series]:
    """Return what is logged of the logits while training, by whatever name."""
    named = {name: _in_words(name) for name in run.series}
    return [run[name] for name, said in named.items() if _LOGITS.fullmatch(said) and not _NOT.search(said)]


def is_log_z(logits: Series) -> bool:
    """Say whether it is the log Z of the logits."""
    return _LOG_Z.search(_in_words(logits.name)) is not None


def spreads_of(run: Run) -> list[Series]:
    """Return the standard deviations of embeddings that are logged, without what is not finite."""
    return [one.finite for name, one in run.series.items() if _SPREAD.fullmatch(name)]


def likeness_of_others(run: Run) -> list[Series]:
    """Return the cosines of embeddings of different things that are logged, without what is not finite."""
    return [one.finite for name, one in run.series.items() if _APART.fullmatch(_in_words(name))]


def _in_words(name: str) -> str:
    """Return the words of a name in one spelling, without the phase: `TrainLogits/Max` is logits_max."""
    return "_".join(piece for piece in pieces_of(name) if PHASES.get(piece) != "train")
