"""The words that names of metrics are made of.

Each word stands here once, with what it means: usually itself in its plain form, sometimes several words. What is not
here is not understood, and a name with such a word is of a quantity only where the quantity has parts (`Loss` and
`box_loss`). To teach the readers a new word, add it to `SYNONYMS`; to teach them
a new quantity, to `MEANINGS` in `meanings`.
"""

from __future__ import annotations


def _all(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _words(*groups: str) -> dict[str, str]:
    """Return word → meaning, of groups such as "mean: avg average"."""
    found = {}
    for group in groups:
        meaning, _, words = group.strip().partition(":")
        found.update(dict.fromkeys(words.split(), meaning))
        if " " not in meaning:
            found.setdefault(meaning, meaning)
    return found


PHASES = _words(
    "train: training tr trn 训练 訓練 학습",
    "eval: evaluation evaluate evaluating val vali valid validation validate test testing dev holdout heldout cv te "
    "验证 测试 検証 검증",
)
PARTS_OF_A_MODEL = frozenset(
    {"layer", "layers", "block", "blocks", "stem", "head", "trunk", "backbone", "encoder", "decoder", "embed",
     "embedding", "embeddings", "attn", "attention", "mlp", "conv", "fc", "linear", "weight", "bias", "input", "output"}
)  # fmt: skip
"""Words that name a part of a model and nothing else, below what is measured of it."""
STATISTICS = _words(
    "mean: avg average averaged avr 平均",
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
THOUSANDS = {"k": 1e3, "m": 1e6, "million": 1e6, "millions": 1e6, "thousand": 1e3}
UNITS = SECONDS.keys() | GIB.keys() | SHARES.keys() | THOUSANDS.keys()
SHORT_UNITS = frozenset({"s", "b", "h", "g", "k", "m", "min", "us"})
"""... that are other words elsewhere: they count as units only at the end of a name."""

NAMESPACES = _all("""
    perf performance performances profile profiler profiling system sys metrics metric charts chart stats stat
    statistics info log logs logger logging monitor monitoring main misc progress rollout rollouts hardware
    telemetry board tb tensorboard wandb trainer global glb globals general common default overall learner learners
    runners sampler objective ppo results result state status history output outputs diagnostics ray tune debug
    internal dict meter meters tracker resource resources dynamics scheduler
""")
"""Where a metric stands, which says nothing of what it is."""
SOFT = _all("""
    step steps batch epoch base set total global current model lm gpt env environment num number optimizer group
    param_group default embedding preference this region used usage use process proc reduced cumulative main overall
    gpu cuda device active allocated reserved cached torch l2 func metric sofar so far abs binary categorical sparse
    coarse mean_of world sampled lifetime undiscounted adam full watts celsius
""")
"""Words that a name may have besides those of its quantity and still be that of the whole."""
SPOILERS = _all("""
    thresh tol tolerance dim
    weight coefficient scale decay type limit threshold alpha beta gamma lambda warmup target clip budget patience
    schedule factor mult multiplier enabled interval every freq frequency ratio size window range path file dir mode
    name seed version epsilon improvement delta cap final initial start end init warm at annealing before after
    until left remaining smoothing reduction
""")
"""Words that make a setting, or something else, of a name that would be that of a part."""

SYNONYMS = _words(
    *"""
    loss: losses xent objf 损失 損失 손실 потери pérdida perte verlust perda
    v loss: lossv
    q loss: lossq
    policy loss: losspi
    d loss: lossd dloss
    g loss: lossg gloss
    d err: errd
    g err: errg
    cost: costs
    accuracies: accs
    accuracy: acc accu prec 准确率 正解率 정확도 точность genauigkeit précision exactitud
    perplexity: ppl ppx
    cross entropy: crossentropy
    ce: xe
    logloss loss: logloss mlogloss
    gradient: grad grads gradients
    norm: norms
    gradient norm: gnorm gradnorm grdn
    learning:
    rate:
    learning rate: lr lrs lernrate 学习率 学習率
    weight: weights wt param params parameter parameters
    coefficient: coef coeff
    scale: scaler scaling
    step: iteration iter itr minibatch schritt étape paso passo шаг 步 步数 ステップ 스텝
    steps: iterations iters its it
    time steps: timestep timesteps
    update:
    remaining: remain
    updates: nupdates
    time: timing timings duration durations
    elapsed:
    wall: walltime
    timestamp: unix
    runtime:
    eta:
    data: dataset
    data load: dataloader dataloading dataload
    load: loading loader
    fetch: fetching
    wait: waiting waits
    reader:
    fp16: bf16 amp
    forward: fwd
    backward: bwd
    optimizer: opt optim
    adam: adamw adafactor lion sgd muon rmsprop adagrad lamb decoupledadamw
    batch: batches
    batch size: bsz
    epoch: epochs epch epoche époque época эпоха 轮次 エポック 에폭
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
    reward: rewards rew ret return returns 奖励 報酬 보상 награда recompensa
    total: tot 总 cumulative
    current: cur curr
    score: scores
    completion: completions response responses
    prompt: prompts query queries
    clip: clipped
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
    samples: sample examples example images image imgs img sequences sequence seqs rows sentences
    seen:
    consumed: processed
    input:
    num: number
    throughput: speed
    tokens per second: tps wps
    steps per second: ups sps
    frame per second: fps
    samples per second: ips
    flops: tflops tflop flop flos gflops gflop
    mfu: hfu
    memory: mem memories
    gpu memory: vram
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
    prob:
    f1: fscore
    auc: auroc aucroc roc prauc aucpr auprc
    precision:
    recall:
    map: ap
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
    r2: rsquared r²
    squared: square
    r:
    correlation: pearson pearsonr spearman spearmanr matthews kendalltau srcc plcc corr mcc
    success: win pass solve
    wer: cer uer ter
    mae:
    l1:
    mse:
    l2:
    rmse: rmsle
    mape: smape
    fid: fid50k fid10k fid5k
    lpips:
    elbo:
    bpb: bpc bpd
    error: errors
    nll loss: nll
    top:
    """.strip().splitlines()
)
"""Word → what it means: one word or several."""

PHRASES = {
    ("io", "u"): "iou",
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
EMPTY = NAMESPACES | {"per", "of", "in", "the", "this", "to"}
"""Words that say nothing, but for those that are part of a quantity too."""
