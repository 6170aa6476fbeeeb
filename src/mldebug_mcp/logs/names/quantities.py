"""What a metric can measure: the closed list of quantities, and what is known of each beyond its name."""

from __future__ import annotations

from enum import StrEnum


class Quantity(StrEnum):
    """What a column holds. The value is the name that a series of it has, or would have."""

    LOSS = "loss"
    ACCURACY = "accuracy"
    TOKEN_ACCURACY = "mean_token_accuracy"  # noqa: S105 - no password
    PERPLEXITY = "perplexity"
    BITS = "bits"
    GRADIENT_NORM = "grad_norm"
    WEIGHT_NORM = "weight_norm"
    UPDATE_RATIO = "update_ratio"
    UPDATE_NORM = "update_norm"
    CHANGED_WEIGHTS = "changed_weights"
    LEARNING_RATE = "learning_rate"
    LOSS_SCALE = "loss_scale"
    SKIPPED_STEPS = "skipped_iterations"
    NAN_STEPS = "nan_iterations"

    STEP = "step"
    EPOCH = "epoch"
    EPISODE = "episode"
    TOKENS_SEEN = "num_tokens"
    SAMPLES_SEEN = "num_samples"
    BATCH_SIZE = "batch_size"
    LOSS_TOKENS = "loss_tokens"
    BATCH_TOKENS = "batch_tokens"

    STEP_TIME = "step_time"
    DATA_TIME = "data_time"
    FORWARD_TIME = "forward_time"
    BACKWARD_TIME = "backward_time"
    OPTIMIZER_TIME = "optimizer_time"
    EPOCH_TIME = "epoch_time"
    RUNTIME = "runtime"
    ELAPSED = "elapsed"
    TIMESTAMP = "timestamp"
    TIME_LEFT = "eta"
    TOKENS_PER_SECOND = "tokens_per_second"
    SAMPLES_PER_SECOND = "samples_per_second"
    STEPS_PER_SECOND = "steps_per_second"
    THROUGHPUT = "throughput"
    FLOPS = "flops"
    FLOPS_UTILISATION = "mfu"
    DEVICE_MEMORY = "memory"
    HOST_MEMORY = "host_memory"
    DEVICE_UTILISATION = "gpu_utilisation"
    HOST_UTILISATION = "cpu_utilisation"
    TEMPERATURE = "temperature"
    POWER = "power"

    REWARD = "reward"
    REWARD_SPREAD = "reward_std"
    GROUPS_WITHOUT_SPREAD = "frac_reward_zero_std"
    VALUE_LOSS = "value_loss"
    POLICY_LOSS = "policy_loss"
    VALUE = "value"
    ENTROPY = "entropy"
    ENTROPY_LOSS = "entropy_loss"
    KL = "kl"
    APPROXIMATE_KL = "approx_kl"
    CLIP_FRACTION = "clip_ratio"
    POLICY_RATIO = "policy_ratio"
    EXPLAINED_VARIANCE = "explained_variance"
    ADVANTAGE = "advantage"
    POLICY_AGE = "policy_age"
    EFFECTIVE_SAMPLES = "effective_samples"
    EXPLORATION = "exploration_rate"
    EPISODE_LENGTH = "episode_length"
    COMPLETION_LENGTH = "completion_length"
    PROMPT_LENGTH = "prompt_length"
    CLIPPED_COMPLETIONS = "completions/clipped_ratio"

    REWARD_CHOSEN = "rewards/chosen"
    REWARD_REJECTED = "rewards/rejected"
    REWARD_MARGIN = "rewards/margins"
    REWARD_ACCURACY = "rewards/accuracies"
    LOGPS_CHOSEN = "logps/chosen"
    LOGPS_REJECTED = "logps/rejected"
    LOGITS_CHOSEN = "logits/chosen"
    LOGITS_REJECTED = "logits/rejected"
    MARGIN = "margin"

    DISCRIMINATOR_LOSS = "discriminator_loss"
    GENERATOR_LOSS = "generator_loss"
    OUTPUT_ON_REAL = "output_on_real"
    OUTPUT_ON_GENERATED = "output_on_generated"

    F1 = "f1"
    AUC = "auc"
    PRECISION = "precision"
    RECALL = "recall"
    AVERAGE_PRECISION = "map"
    IOU = "iou"
    DICE = "dice"
    NDCG = "ndcg"
    MRR = "mrr"
    HIT_RATE = "hit_rate"
    BLEU = "bleu"
    CHRF = "chrf"
    ROUGE = "rouge"
    METEOR = "meteor"
    PSNR = "psnr"
    SSIM = "ssim"
    R2 = "r2"
    CORRELATION = "correlation"
    SUCCESS_RATE = "success_rate"
    SCORE = "score"
    EVIDENCE_BOUND = "elbo"

    ERROR_RATE = "error_rate"
    WORD_ERROR_RATE = "wer"
    ABSOLUTE_ERROR = "mae"
    SQUARED_ERROR = "mse"
    ROOT_SQUARED_ERROR = "rmse"
    PERCENTAGE_ERROR = "mape"
    FID = "fid"
    LPIPS = "lpips"
    RANK = "mean_rank"

    @property
    def is_named(self) -> bool:
        """Whether a column of it is renamed; the others keep the name that they were logged with."""
        return self in _NAMED

    @property
    def is_counter(self) -> bool:
        """Whether it says where a run is."""
        return self in COUNTERS

    @property
    def is_duration(self) -> bool:
        """Whether it is measured in seconds."""
        return self in _DURATIONS

    @property
    def is_memory(self) -> bool:
        """Whether it is measured in GiB."""
        return self in _MEMORIES

    @property
    def is_share(self) -> bool:
        """Whether it is a share of one that may be given in per cent."""
        return self in _SHARES

    @property
    def higher_is_better(self) -> bool:
        """Whether it measures quality and a higher value is better."""
        return self in HIGHER_IS_BETTER

    @property
    def lower_is_better(self) -> bool:
        """Whether it measures errors and a lower value is better; a loss is none of them."""
        return self in LOWER_IS_BETTER

    @property
    def is_result(self) -> bool:
        """Whether only training or evaluation can tell it: no setting, clock, counter or measure of a machine."""
        return self in _RESULTS


def _quantities_between(first: Quantity, last: Quantity) -> frozenset[Quantity]:
    """Return the quantities of the list above from one to another, both included."""
    every = list(Quantity)
    return frozenset(every[every.index(first) : every.index(last) + 1])


COUNTERS = frozenset({Quantity.STEP, Quantity.EPOCH, Quantity.EPISODE})
AMOUNTS = frozenset({Quantity.TOKENS_SEEN, Quantity.SAMPLES_SEEN})
CLOCKS = frozenset({Quantity.ELAPSED, Quantity.TIMESTAMP})
PLACES = COUNTERS | AMOUNTS | CLOCKS
"""What says where a run is, whatever is measured there."""
HIGHER_IS_BETTER = _quantities_between(Quantity.F1, Quantity.EVIDENCE_BOUND) | {
    Quantity.ACCURACY,
    Quantity.TOKEN_ACCURACY,
}
LOWER_IS_BETTER = _quantities_between(Quantity.ERROR_RATE, Quantity.RANK)
PAIRS = _quantities_between(Quantity.REWARD_CHOSEN, Quantity.LOGPS_REJECTED)
"""What training on preferences logs of pairs of answers."""
THROUGHPUTS = _quantities_between(Quantity.TOKENS_PER_SECOND, Quantity.THROUGHPUT)
LOSSES = frozenset({
    Quantity.LOSS, Quantity.VALUE_LOSS, Quantity.POLICY_LOSS, Quantity.ENTROPY_LOSS, Quantity.DISCRIMINATOR_LOSS,
    Quantity.GENERATOR_LOSS,
})  # fmt: skip

_DURATIONS = _quantities_between(Quantity.STEP_TIME, Quantity.TIME_LEFT) - {Quantity.TIMESTAMP}
_MEMORIES = frozenset({Quantity.DEVICE_MEMORY, Quantity.HOST_MEMORY})
UTILISATIONS = frozenset({Quantity.FLOPS_UTILISATION, Quantity.DEVICE_UTILISATION, Quantity.HOST_UTILISATION})
_SHARES = (
    _quantities_between(Quantity.F1, Quantity.HIT_RATE)
    | UTILISATIONS
    | {
        Quantity.ACCURACY, Quantity.TOKEN_ACCURACY, Quantity.REWARD_ACCURACY, Quantity.CLIP_FRACTION,
        Quantity.CLIPPED_COMPLETIONS, Quantity.GROUPS_WITHOUT_SPREAD, Quantity.SUCCESS_RATE, Quantity.ERROR_RATE,
        Quantity.WORD_ERROR_RATE, Quantity.CHANGED_WEIGHTS,
    }
)  # fmt: skip
_NAMED = (
    _quantities_between(Quantity.GRADIENT_NORM, Quantity.TOKENS_SEEN)
    | _quantities_between(Quantity.REWARD, Quantity.POLICY_LOSS)
    | _quantities_between(Quantity.ENTROPY, Quantity.EXPLAINED_VARIANCE)
    | PAIRS
    | _MEMORIES
    | {
        Quantity.LOSS, Quantity.ACCURACY, Quantity.TOKEN_ACCURACY, Quantity.STEP_TIME, Quantity.DATA_TIME,
        Quantity.ELAPSED, Quantity.TIMESTAMP, Quantity.EPISODE_LENGTH, Quantity.COMPLETION_LENGTH,
        Quantity.CLIPPED_COMPLETIONS,
    }
) - {Quantity.WEIGHT_NORM, Quantity.UPDATE_RATIO, Quantity.UPDATE_NORM, Quantity.CHANGED_WEIGHTS}  # fmt: skip
OF_UPDATES = _quantities_between(Quantity.GRADIENT_NORM, Quantity.NAN_STEPS)
"""What only an update has: no evaluation makes one."""
_ALSO_SETTINGS = frozenset({
    Quantity.PRECISION, Quantity.ERROR_RATE, Quantity.SUCCESS_RATE, Quantity.HIT_RATE, Quantity.CORRELATION,
    Quantity.RANK, Quantity.METEOR, Quantity.VALUE, Quantity.PROMPT_LENGTH,
})  # fmt: skip
"""Quantities whose words stand in the names of settings too: `ignore_value`, `mixed_precision`."""
_RESULTS = (
    HIGHER_IS_BETTER
    | LOWER_IS_BETTER
    | LOSSES
    | PAIRS
    | _quantities_between(Quantity.REWARD, Quantity.EXPLAINED_VARIANCE)
    | _quantities_between(Quantity.EPISODE_LENGTH, Quantity.CLIPPED_COMPLETIONS)
    | {Quantity.PERPLEXITY, Quantity.BITS, Quantity.GRADIENT_NORM}
) - _ALSO_SETTINGS
