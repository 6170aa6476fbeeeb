"""The words that names of metrics are made of.

Each word stands here once, with what it means: usually itself in its plain form, sometimes several words. What is not
here is not understood, and a name with such a word is of a quantity only where the quantity has parts (`Loss` and
`box_loss`). To teach the readers a new word, add it to `SYNONYMS`; to teach them
a new quantity, to `MEANINGS` in `meanings`.
"""

from __future__ import annotations

from mldebug_mcp.logs.roles import languages
from mldebug_mcp.logs.roles.word_lists import all_of, grouped

PHASES = grouped(
    "train: training tr trn",
    "eval: evaluation evaluate evaluating val vali valid validation validate va test testing tst dev holdout heldout "
    "ho oof ood cv te probe probing zeroshot",
)
PHASES |= languages.PHASES
PARTS_OF_A_MODEL = frozenset(
    {"layer", "layers", "block", "blocks", "stem", "head", "trunk", "backbone", "encoder", "decoder", "embed",
     "embedding", "embeddings", "attn", "attention", "mlp", "conv", "fc", "linear", "weight", "bias", "input", "output"}
)  # fmt: skip
"""Words that name a part of a model and nothing else, below what is measured of it."""
STATISTICS = grouped(
    "mean: avg average averaged avr",
    "median:",
    "max: maximum peak inf",
    "min: minimum",
    "std: stddev stdev",
    "var: variance",
    "sum:",
    "count:",
    "last: latest",
    "best:",
    "ema: smoothed smooth running moving",
    "p50: p05 p10 p25 p75 p90 p95 p99",
) | {one: one for one in ("p05", "p10", "p25", "p75", "p90", "p95", "p99")}
STATISTICS |= languages.STATISTICS

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

NAMESPACES = all_of("""
    perf performance performances profile profiler profiling system sys metrics metric charts chart stats stat
    statistics info log logs logger logging monitor monitoring main misc progress rollout rollouts hardware
    telemetry board tb tensorboard wandb trainer global glb globals general common default overall learner learners
    runners sampler objective ppo results result state status history output outputs diagnostics ray tune debug
    internal dict meter meters tracker resource resources dynamics scheduler
""")
"""Where a metric stands, which says nothing of what it is."""
SOFT = all_of("""
    step steps batch epoch base set total global current model lm gpt env environment num number optimizer group
    param_group default embedding preference this region used usage use process proc reduced cumulative main overall
    gpu cuda device active allocated reserved cached torch l2 func metric sofar so far abs binary categorical sparse
    coarse mean_of world sampled lifetime undiscounted adam full watts celsius unclipped
""")
"""Words that a name may have besides those of its quantity and still be that of the whole."""
SPOILERS = all_of("""
    thresh tol tolerance dim
    weight coefficient scale decay type limit threshold alpha beta gamma lambda warmup target clip budget patience
    schedule factor mult multiplier enabled interval every freq frequency ratio size window range path file dir mode
    name seed version epsilon improvement delta cap final initial start end init warm at annealing before after
    until left remaining smoothing reduction mismatch non momentum sign signs agree agreement δ recovered
""")
"""Words that make a setting, or something else, of a name that would be that of a part."""

SYNONYMS = grouped(
    *"""
    loss: losses xent objf
    v loss: lossv
    q loss: lossq
    policy loss: losspi
    d loss: lossd dloss
    g loss: lossg gloss
    d err: errd
    g err: errg
    cost: costs
    accuracies: accs
    accuracy: acc accu prec
    perplexity: ppl ppx pppl
    cross entropy: crossentropy
    ce: xe
    logloss loss: logloss mlogloss
    gradient: grad grads gradients
    norm: norms
    gradient norm: gn gnorm gradnorm grdn
    learning:
    rate:
    learning rate: lr lrs lrate
    weight: weights wt param params parameter parameters
    coefficient: coef coeff
    scale: scaler scaling
    step: iteration iter itr minibatch
    steps: iterations iters its it
    time steps: timestep timesteps
    update: upd
    remaining: remain
    updates: nupdates
    time: timing timings duration durations
    elapsed: passed
    wall: walltime
    timestamp: unix
    runtime:
    eta:
    data: dataset
    data load: dataloader dataloading dataload
    load: loading loader
    fetch: fetching
    wait: waiting waits stall
    reader:
    fp16: bf16 amp
    forward: fwd
    backward: bwd
    optimizer: opt optim
    adam: adamw adafactor lion sgd muon rmsprop adagrad lamb decoupledadamw
    adam: decoupledsgdw decoupledlionw sgdw lionw radam nadam
    batch: batches
    batch size: bsz
    epoch: epochs epch
    ep:
    episode: episodes episodic
    round: rounds
    server:
    communication:
    frame: frames
    index: idx i
    kimg:
    env: environment
    interacts:
    length: len lengths
    reward: rewards rew ret return returns
    total: tot 总 cumulative
    current: cur curr
    score: scores cider spice comet bertscore bleurt pickscore kappa qwk
    completion: completions response responses
    prompt: prompts query queries
    clip: clipped clipping
    truncated: trunc truncation
    fraction: frac ratio
    zero:
    value: vf critic values vals vpred
    q:
    qf:
    v:
    td:
    function:
    policy: actor pi pol
    surrogate: surr
    mu:
    pg:
    entropy: ent
    kl: kld
    div: divergence
    approx:
    explained:
    advantage: adv advantages
    exploration:
    chosen:
    rejected: reject
    margin: margins
    logps: logp logprob logprobs
    logits: logit
    token: tok
    tokens: toks words
    samples: sample examples example ex images image imgs img sequences sequence seqs seq rows sentences sentence sent
    seen:
    consumed: processed
    input:
    num: number
    throughput: speed
    tokens per second: tps wps tgs
    steps per second: ups sps
    frame per second: fps
    samples per second: ips qps
    flops: tflops tflop flop flos gflops gflop
    mfu: hfu
    memory: mem memories
    gpu memory: vram hbm
    allocated: alloc
    gpu: cuda device
    host memory: ram rss
    host: cpu
    utilisation: util utilization
    temperature: temp
    power:
    skipped: skip
    nan:
    discriminator: disc
    generator: gen
    d:
    g:
    err:
    real:
    fake:
    x:
    z:
    d x: dx
    g z: gz
    d g z: dgz
    prob: probability
    f1: fscore idf1 macrof1 microf1
    auc: auroc aucroc roc prauc aucpr auprc mauc gauc
    precision: ppv
    recall: sens sensitivity tpr
    map: ap lwlrap averageprecision
    small map: aps
    medium map: apm
    large map: apl
    iou: miou fwiou giou jaccard
    dice: mdice
    ndcg: dcg
    mrr:
    hit: hits hr pck
    bleu: sacrebleu
    chrf:
    rouge: rouge1 rouge2 rougel rougelsum
    meteor:
    psnr:
    ssim:
    r2: rsquared r² nse
    squared: square
    r:
    correlation: pearson pearsonr pearsons spearman spearmanr spearmanrho matthews kendall kendalltau srcc plcc pcc corr
    correlation: corrcoef mcc ρ
    success: win pass solve solved
    wer: cer uer ter
    mae:
    l1:
    mse:
    l2:
    rmse: rmsle nrmse
    mape: smape wape
    fid: fid50k fid10k fid5k
    lpips:
    elbo:
    bpb: bpc bpd
    error: errors merror
    error rate: eer
    nll loss: nll
    top:
    """.strip().splitlines()
)
SYNONYMS |= {word: meaning for word, meaning in languages.SYNONYMS.items() if word not in SYNONYMS}
"""Word → what it means: one word or several."""

PHRASES = {
    ("io", "u"): "iou",
    ("held", "out"): "eval",
    ("in", "domain"): "eval",
    ("out", "domain"): "eval",
    ("out", "of", "domain"): "eval",
    ("out", "of", "fold"): "eval",
    ("out", "of", "distribution"): "eval",
    ("zero", "shot"): "eval",
    ("0", "shot"): "eval",
    ("rate", "train"): "learning rate",
    ("rate", "d", "learning"): "learning rate",
    ("exact", "match"): "em",
    ("rollout", "correlation"): "mismatch",
    ("system", "memory", "usage"): "host memory",
    ("absolute", "error"): "mae",
    ("absolute", "percentage", "error"): "mape",
    ("squared", "error"): "mse",
    ("root", "mean", "squared", "error"): "rmse",
    ("kullback", "leibler", "div"): "kl",
}
"""Words that stand one after another → those that they mean."""
AXIS = frozenset({"vs", "versus"})
"""Words after which a name says what it is drawn over: "lm loss vs samples"."""
PLACES = frozenset({"loss", "time", "learning", "throughput", "tokens", "samples"})
"""Words of quantities under which loggers also gather what is measured beside them: `throughput/mfu`."""

NEGATED = frozenset({"objf"})
"""Words for what is maximised: Kaldi's objective function is a log-probability per frame, minus a loss."""
SET_ASIDE = ("summary/", "epoch_mean/")
"""Where the readers put averages over a run or an epoch: they are no series of it, whatever their names say."""
EMPTY = NAMESPACES | {"per", "of", "in", "the", "this", "to", "from"}
"""Words that say nothing, but for those that are part of a quantity too."""
