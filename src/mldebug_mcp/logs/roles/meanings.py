"""Which words together are which quantity, and what else a name of each quantity may hold."""

from __future__ import annotations

from mldebug_mcp.logs.roles.quantities import Quantity as Q  # noqa: N817 - tables of them
from mldebug_mcp.logs.roles.word_lists import METRIC_GROUPS, METRICS, all_of, phrases_in

MEANINGS = {words: Q(name) for words, name in phrases_in(METRIC_GROUPS["quantities"]).items()}
"""Words, in any order → the quantity."""
TIMED = {words: Q(name) for words, name in phrases_in(METRIC_GROUPS["timed"]).items()}
"""... where a unit of time says that it is a duration: `fetch_ms`, "ms per step"."""
ALONE = {words: Q(name) for words, name in phrases_in(METRIC_GROUPS["alone"]).items()}
"""... and what words mean where nothing else stands beside them in a name: more of them are something else."""
IN_BYTES = all_of(METRICS["in_bytes"])
"""What memory is said to be where only the unit tells that it is one: `alloc GB`."""
SHARED = {words: Q(name) for words, name in phrases_in(METRIC_GROUPS["shared"]).items()}
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
    Q.UPDATE_RATIO, Q.APPROXIMATE_KL, Q.FLOPS_UTILISATION,
    Q.COMPLETION_LENGTH, Q.VALUE, Q.TOKENS_PER_SECOND, Q.SAMPLES_PER_SECOND, Q.STEPS_PER_SECOND,
    *(one for one in Q if one.higher_is_better or one.lower_is_better),
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
"""Words beside which a quantity is another one that goes by the same name: the entropy of a router is no policy's."""
BY_MODULE = frozenset({Q.GRADIENT_NORM, Q.WEIGHT_NORM, Q.UPDATE_RATIO})
"""Quantities that are logged for each module or parameter of a model, by its path in it."""
OF_ROLLOUTS = frozenset({Q.REWARD, Q.SCORE, Q.KL, Q.ADVANTAGE})
"""Quantities that verl logs under `critic/` and that are none of the critic's own."""

CONCEPTS = frozenset(word for words in MEANINGS for word in words)
"""The words that quantities are made of."""
COUNTED = frozenset({Q.TOKENS_SEEN, Q.SAMPLES_SEEN, *RATES.values()})
"""Quantities that may be given in thousands."""
