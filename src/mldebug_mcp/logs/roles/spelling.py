"""How names are written: accents, alphabets, symbols of mathematics and abbreviations with marks → plain words."""

from __future__ import annotations

import re
import unicodedata

_AT = re.compile(r"(?<=[a-z0-9])[_ -]at[_ -](?=\d)", re.IGNORECASE)
_OF_RANKS = {
    "r": "recall", "p": "precision", "h": "hit", "hr": "hit", "b": "bleu", "n": "ndcg", "f": "f1",
    "knn": "knn_accuracy",
}  # fmt: skip
_AT_RANK = re.compile(rf"(?<![^\W_])({'|'.join(sorted(_OF_RANKS, key=len, reverse=True))})(?=@\.?\d)", re.IGNORECASE)
"""What is measured over the first k: `R@10`, `hr@20`."""
_RANKED = re.compile(
    r"(?:recall|precision|hits?|ndcg|map|ap|mrr|acc\w*|top|pass|f1|hr|[rp])[_ -]at[_ -]\d", re.IGNORECASE
)
_BARS = re.compile(r"[|‖]+([^|‖]+)[|‖]+(2|_2|²)?")
_IN_BARS = {
    **dict.fromkeys(("g", "grad", "grads", "gradient", "gradients", "∇", "∇l", "∇θ", "∇w", "dl"), "grad_norm"),
    **dict.fromkeys(("w", "θ", "theta", "params", "param", "weights", "p", "q"), "weight_norm"),
}
"""The norm of what, by the symbol between the bars."""
_OF_PAIRS = re.compile(r"(?<![^\W_])(logp|logps|logprob|logprobs|rew|reward)_?([+-])$", re.IGNORECASE)
_AVERAGE_PRECISION = re.compile(r"average[_ ]?precision", re.IGNORECASE)
_LISTED = re.compile(r"(?<![^/])\d+\.(?=[A-Za-z])")
"""The number of an item before its name, as `2.Workers/6.Learning_rate` has it."""


def plain(name: str) -> str:
    """Return a name with what signs in it mean written out: `|θ|` is weight_norm, `recall_at_10` recall@10."""
    if name.isalpha() and name.isascii():
        return name
    if (bars := _BARS.fullmatch(name.strip())) is not None:
        return _IN_BARS.get(bars[1].strip().lower(), name)
    if _RANKED.search(name) is not None:
        name = _AT.sub("@", name)
    if "@" in name:
        name = _AT_RANK.sub(lambda match: _OF_RANKS[match[1].lower()], name)
    if name[-1] in "+-":
        name = _OF_PAIRS.sub(lambda match: f"{match[1]}_{'chosen' if match[2] == '+' else 'rejected'}", name)
    if name[0].isdecimal() or "/" in name:
        name = _LISTED.sub("", name)
    return _AVERAGE_PRECISION.sub("map", name)


def folded(text: str) -> str:
    """Return a text with Latin letters without their accents: `Época` is Epoca; other letters stay as they are."""
    if text.isascii():
        return text
    return "".join(map(_bare, unicodedata.normalize("NFC", text)))


def _bare(letter: str) -> str:
    base = unicodedata.normalize("NFD", letter)[0]
    return base if base.isascii() and base.isalpha() else letter
