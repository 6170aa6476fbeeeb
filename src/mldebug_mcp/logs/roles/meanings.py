"""Which words together are which quantity, and what else a name of each quantity may hold."""

from __future__ import annotations

from mldebug_mcp.logs.roles.quantities import Quantity as Q  # noqa: N817 - tables of them
from mldebug_mcp.logs.roles.word_lists import all_of as words_of

MEANINGS: dict[frozenset[str], Q] = {
    frozenset(expression.split()): quantity
    for quantity, expressions in {
        Q.LOSS: "loss, cross entropy loss, cost",
        Q.ACCURACY: "accuracy, accuracies, top, top accuracy",
        Q.TOKEN_ACCURACY: "token accuracy",
        Q.PERPLEXITY: "perplexity, lm perplexity loss",
        Q.BITS: "bpb, bits dim, bits byte, bits char, bits token",
        Q.GRADIENT_NORM: "gradient norm, gradient weight norm, policy gradient norm, l2 gradient norm, l2 gradient",
        Q.WEIGHT_NORM: "weight norm",
        Q.UPDATE_RATIO: "update fraction, update weight fraction",
        Q.LEARNING_RATE: "learning rate, policy learning rate, learning rate pg",
        Q.LOSS_SCALE: "loss scale, gradient scale, fp16 scale, fp16 gradient scale",
        Q.SKIPPED_STEPS: "skipped, num skipped, skipped steps, num skipped steps, skipped step",
        Q.NAN_STEPS: "nan steps, num nan steps",
        Q.STEP: "step, steps, time steps, total time steps, num updates, updates, batch index, round, "
        "server round, communication round, frame, num frame, total frame, env step, env steps, total env steps, "
        "total env interacts, num env steps, kimg, optimizer step, num steps sampled, num env steps sampled, "
        "num env steps sampled lifetime, num time steps",
        Q.EPOCH: "epoch",
        Q.EPISODE: "episode, num episode, total episode, index episode",
        Q.TOKENS_SEEN: "num tokens, n tokens, n tokens seen, tokens seen, consumed tokens, num tokens seen, "
        "num input tokens seen, total tokens",
        Q.SAMPLES_SEEN: "consumed samples, samples seen, num samples seen, total samples, num samples",
        Q.BATCH_SIZE: "batch size",
        Q.STEP_TIME: "step time, batch time, step elapsed time, batch cost, batch t, step t, update time",
        Q.DATA_TIME: "data time, data wait, data wait time, data load, data load time, data fetch, data fetch time, "
        "fetch time, fetch batch time, reader cost, reader time, data t, data cost, "
        "batch wait time, load time, rank data time, load t",
        Q.FORWARD_TIME: "forward time, forward t, forward elapsed time",
        Q.BACKWARD_TIME: "backward time, backward t, backward elapsed time",
        Q.OPTIMIZER_TIME: "optimizer time, optimizer step time, optimizer t",
        Q.EPOCH_TIME: "epoch time",
        Q.RUNTIME: "runtime",
        Q.ELAPSED: "elapsed, elapsed time, wall, wall time, total time",
        Q.TIMESTAMP: "timestamp, timestamp time",
        Q.TIME_LEFT: "eta, eta time, remaining time, time left, remaining estimate time",
        Q.THROUGHPUT: "throughput",
        Q.FLOPS: "flops, total flops, throughput flops",
        Q.FLOPS_UTILISATION: "mfu",
        Q.DEVICE_MEMORY: "memory, gpu memory, memory reserved, memory allocated, memory active, gpu memory reserved, "
        "gpu memory allocated, gpu memory active, gpu memory utilisation",
        Q.HOST_MEMORY: "host memory, host memory utilisation",
        Q.DEVICE_UTILISATION: "gpu utilisation, utilisation",
        Q.HOST_UTILISATION: "host utilisation",
        Q.TEMPERATURE: "temperature c, temperature, gpu temperature",
        Q.POWER: "power w, power, gpu power",
        Q.REWARD: "reward, reward score, episode reward, ep reward, episode score",
        Q.GROUPS_WITHOUT_SPREAD: "fraction reward zero",
        Q.VALUE_LOSS: "value loss, value function loss, q loss, qf loss, value qf loss, v loss, td loss, value q loss",
        Q.VALUE: "value, q value, qf value, v value",
        Q.POLICY_LOSS: "policy loss, policy gradient loss, surrogate loss, policy surrogate loss, mu loss, pg loss, "
        "policy pg loss",
        Q.ENTROPY: "entropy, policy entropy, approx entropy",
        Q.ENTROPY_LOSS: "entropy loss",
        Q.KL: "kl, kl div, policy kl, kl ref, kl reference, kl π ref",
        Q.APPROXIMATE_KL: "approx kl, policy approx kl",
        Q.CLIP_FRACTION: "clip fraction, policy clip fraction, pg clip fraction, policy pg clip fraction",
        Q.EXPLAINED_VARIANCE: "explained, value explained",
        Q.ADVANTAGE: "advantage, policy advantage",
        Q.EXPLORATION: "exploration rate",
        Q.EPISODE_LENGTH: "episode length, ep length, episode steps",
        Q.COMPLETION_LENGTH: "completion length, completion length tokens, generator tokens samples",
        Q.PROMPT_LENGTH: "prompt length, prompt length tokens",
        Q.CLIPPED_COMPLETIONS: "truncated fraction, completion truncated fraction, completion clip fraction, "
        "completion length clip fraction",
        Q.REWARD_CHOSEN: "reward chosen",
        Q.REWARD_REJECTED: "reward rejected",
        Q.REWARD_MARGIN: "reward margin",
        Q.REWARD_ACCURACY: "reward accuracies, preference accuracy",
        Q.LOGPS_CHOSEN: "logps chosen, logps w",
        Q.LOGPS_REJECTED: "logps rejected, logps l",
        Q.LOGITS_CHOSEN: "logits chosen",
        Q.LOGITS_REJECTED: "logits rejected",
        Q.MARGIN: "margin",
        Q.DISCRIMINATOR_LOSS: "d loss, discriminator loss, d err",
        Q.GENERATOR_LOSS: "g loss, generator loss, g err",
        Q.OUTPUT_ON_REAL: "real samples score, d x, d real, d real prob, d real score, real score, real prob",
        Q.OUTPUT_ON_GENERATED: "fake samples score, d g z, d fake, d fake prob, d fake score, fake score, fake prob",
        Q.F1: "ents f, f1, f1 score",
        Q.AUC: "auc, auc score",
        Q.PRECISION: "precision, ents p",
        Q.RECALL: "recall, ents r",
        Q.AVERAGE_PRECISION: "map",
        Q.IOU: "iou, iou score",
        Q.DICE: "dice, dice score, dice coefficient",
        Q.NDCG: "ndcg",
        Q.MRR: "mrr",
        Q.HIT_RATE: "hit, hit rate, hit fraction",
        Q.BLEU: "bleu, bleu score",
        Q.CHRF: "chrf",
        Q.ROUGE: "rouge",
        Q.METEOR: "meteor",
        Q.PSNR: "psnr",
        Q.SSIM: "ssim",
        Q.R2: "r2, r2 score, r squared, r squared score",
        Q.CORRELATION: "correlation",
        Q.SUCCESS_RATE: "success rate, success",
        Q.SCORE: "score",
        Q.EVIDENCE_BOUND: "elbo",
        Q.ERROR_RATE: "error rate, error",
        Q.WORD_ERROR_RATE: "wer",
        Q.ABSOLUTE_ERROR: "mae",
        Q.SQUARED_ERROR: "mse",
        Q.ROOT_SQUARED_ERROR: "rmse",
        Q.PERCENTAGE_ERROR: "mape",
        Q.FID: "fid",
        Q.LPIPS: "lpips",
        Q.RANK: "mr",
    }.items()
    for expression in expressions.split(", ")
}
"""Words, in any order → the quantity."""
TIMED: dict[frozenset[str], Q] = {
    frozenset(expression.split()): quantity
    for quantity, expressions in {
        Q.STEP_TIME: "step, steps, batch",
        Q.DATA_TIME: "wait, data, fetch, load, loading, data loading, data load, data fetch, data wait, reader",
        Q.FORWARD_TIME: "forward",
        Q.BACKWARD_TIME: "backward",
        Q.OPTIMIZER_TIME: "optimizer, optimizer step",
        Q.EPOCH_TIME: "epoch, ep",
    }.items()
    for expression in expressions.split(", ")
}
"""... where a unit of time says that it is a duration: `fetch_ms`, "ms per step"."""
ALONE: dict[frozenset[str], Q] = {
    frozenset(expression.split()): quantity
    for quantity, expressions in {
        Q.GRADIENT_NORM: "gradient",
        Q.ERROR_RATE: "err, err rate, top err, class err",
        Q.CORRELATION: "rank ic",
        Q.SUCCESS_RATE: "solve",
        Q.WEIGHT_NORM: "embedding norm, emb norm, theta norm",
        Q.LOSS: "sampled softmax, neg log p, negative log likelihood, neg log likelihood",
        Q.POLICY_RATIO: "is fraction, importance fraction, importance weight",
        Q.TIME_LEFT: "remaining",
        Q.REWARD: "fitness",
    }.items()
    for expression in expressions.split(", ")
}
"""... and what words mean where nothing else stands beside them in a name: more of them are something else."""
IN_BYTES = frozenset({"allocated", "reserved", "active", "cached", "gpu", "peak"})
"""What memory is said to be where only the unit tells that it is one: `alloc GB`."""
SHARED: dict[frozenset[str], Q] = {
    frozenset({"gpu"}): Q.DEVICE_UTILISATION,
    frozenset({"host"}): Q.HOST_UTILISATION,
    frozenset({"truncated"}): Q.CLIPPED_COMPLETIONS,
}
"""What a share is of where only the sign tells that it is one: `gpu%`."""
NAMED_LOSSES = words_of("""
    ce xe bce mlm clm infonce nce ntxent dpo simpo kto orpo ipo bpr ctc rnnt focal giou diou ciou
    nelbo listnet listmle lambdarank ranknet tweedie pinball
    triplet hinge huber wql aam arcface xentropy crossent
""")
"""What losses are called that stand without the word, by what they compute."""
METHODS = frozenset({"byol", "swav", "simclr", "moco", "dino", "ibot", "vicreg"})
"""... and by the method that they are of, whose other names begin with it: `dino_momentum`."""
OF_A_LOSS_TOO = frozenset(
    {"generator", "discriminator", "d", "g", "real", "fake", "policy", "tokens", "token", "loss", "total"}
)
"""Words of other quantities that may say of what a loss is that is called by its name: `gen_mlm`."""
PARTS_OF_A_LOSS = words_of("""
    aux commit commitment codebook rec recon reconstruction lb balance sop nsp koleo rtd kd lm box
    obj cls reg dfl cons consistency sup percep perceptual pix style tv smooth
""")
"""... and what their parts are called; nothing else may stand in the name."""
RATES: dict[str, Q] = {
    "token": Q.TOKENS_PER_SECOND, "tokens": Q.TOKENS_PER_SECOND, "samples": Q.SAMPLES_PER_SECOND,
    "step": Q.STEPS_PER_SECOND, "steps": Q.STEPS_PER_SECOND, "updates": Q.STEPS_PER_SECOND,
    "batch": Q.STEPS_PER_SECOND, "frame": Q.STEPS_PER_SECOND, "prompt": Q.SAMPLES_PER_SECOND,
}  # fmt: skip
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

OTHERS: dict[Q, frozenset[str]] = {
    Q.ENTROPY: words_of("""
    attn attention router routing gate gating moe expert experts pool predictive prior posterior
    post proto protos prototype codebook code codes samples teacher arm arms cluster clusters
    assignment assignments
"""),
    Q.PERPLEXITY: words_of("""
    codebook code codes vq generator samples cluster clusters neg negative log
"""),
    Q.KL: frozenset({"active", "mismatch"}),
    Q.CLIP_FRACTION: frozenset({"prompt", "length", "gradient", "norm"}),
    Q.ACCURACY: frozenset({"prob", "gate", "router"}),
    Q.REWARD: frozenset(["int", "intrinsic", "imag", "imagined", "regret"]),
    Q.HIT_RATE: frozenset({"modes", "mode", "cache"}),
    Q.LPIPS: frozenset({"div", "diversity"}),
    Q.SCORE: frozenset({"time", "rank"}),
    Q.ERROR_RATE: frozenset({"td", "bellman", "relative", "rel"}),
}
"""Words beside which a quantity is another one that goes by the same name: the entropy of a router is no policy's."""
BY_MODULE = frozenset({Q.GRADIENT_NORM, Q.WEIGHT_NORM, Q.UPDATE_RATIO})
"""Quantities that are logged for each module or parameter of a model, by its path in it."""
OF_ROLLOUTS = frozenset({Q.REWARD, Q.SCORE, Q.KL, Q.ADVANTAGE})
"""Quantities that verl logs under `critic/` and that are none of the critic's own."""

CONCEPTS = frozenset(word for words in MEANINGS for word in words)
"""The words that quantities are made of."""
COUNTED = frozenset({Q.TOKENS_SEEN, Q.SAMPLES_SEEN, *RATES.values()})
"""Quantities that may be given in thousands."""
