"""The settings that are known: canonical name, kind of value, and the phrases that name them.

Canonical names are those of Transformers' TrainingArguments and TRL's configurations where these have one. Only
base words and true synonyms are listed: order, case, separators, plurals, abbreviations (`SYNONYMS`) and words that say
nothing (`FILLERS`) are the grammar's. A phrase with "=" in front is so general that it holds only where nothing around
it speaks of something else; one with "?" is, besides, believed only where no other key names the setting.
"""

from __future__ import annotations

from typing import NamedTuple

NUMBER, FLAG, TEXT, LIST, ANY = "number", "flag", "text", "list", "any"


class Known(NamedTuple):
    """A setting that is known: the kind of its value, and the phrases that name it besides its own name."""

    kind: str
    phrases: tuple[str, ...] = ()


SYNONYMS: dict[str, tuple[str, ...]] = {
    "lr": ("learning", "rate"), "lrs": ("learning", "rate"), "learningrate": ("learning", "rate"),
    "wd": ("weight", "decay"), "weightdecay": ("weight", "decay"),
    "bs": ("batch", "size"), "bsz": ("batch", "size"), "batchsize": ("batch", "size"),
    "mbs": ("micro", "batch", "size"), "gbs": ("global", "batch", "size"), "microbatch": ("micro", "batch"),
    "gradient": ("grad",), "optim": ("optimizer",), "optimiser": ("optimizer",), "opt": ("optimizer",),
    "optimization": ("optimizer",), "sched": ("scheduler",), "schedule": ("scheduler",), "scheduling": ("scheduler",),
    "iter": ("step",), "iteration": ("step",), "itr": ("step",), "update": ("step",), "batches": ("batch",),
    "timestep": ("time", "step"),
    "ep": ("epoch",), "accum": ("accumulation",), "accumulate": ("accumulation",), "acc": ("accumulation",),
    "gradacc": ("grad", "accumulation"),
    "clipping": ("clip",), "clipped": ("clip",), "gradclip": ("grad", "clip"),
    "warm": ("warmup",), "up": ("warmup",),
    "fraction": ("ratio",), "frac": ("ratio",), "proportion": ("ratio",), "portion": ("ratio",), "pct": ("ratio",),
    "percent": ("ratio",), "percentage": ("ratio",),
    "maximum": ("max",), "minimum": ("min",), "seq": ("sequence",), "len": ("length",), "ctx": ("context",),
    "vocabulary": ("vocab",), "dict": ("vocab",), "gpu": ("device",), "init": ("initial",), "start": ("initial",),
    "example": ("row",), "record": ("row",), "pair": ("row",), "sequences": ("row",), "image": ("row",),
    "prompts": ("row",), "training": ("train",), "val": ("eval",), "valid": ("eval",), "validation": ("eval",),
    "evaluation": ("eval",), "test": ("eval",), "temp": ("temperature",), "coefficient": ("coef",), "coeff": ("coef",),
    "generations": ("generation",), "arch": ("architecture",), "emb": ("embd",), "embed": ("embd",),
    "embedding": ("embd",), "dim": ("size",), "dimension": ("size",), "heads": ("head",), "layers": ("layer",),
    "algo": ("algorithm",), "env": ("environment",), "rl": ("rl",), "ckpt": ("checkpoint",),
    "log": ("logging",), "every": ("interval",), "freq": ("interval",), "frequency": ("interval",),
    "parameter": ("param",), "logprob": ("log", "prob"), "logits": ("logit",), "cliprange": ("clip", "range"),
    "clipnorm": ("clip", "norm"), "seed": ("seed",), "bfloat16": ("bf16",), "float16": ("fp16",),
}  # fmt: skip
"""Abbreviations and other words for the same, each with the words that stand for it."""

PLURALS_OF_THEIR_OWN = frozenset({"eps", "betas", "batches", "sequences", "prompts", "lrs"})
"""Words that mean something else without their s."""

FILLERS = frozenset(
    {"num", "n", "nb", "number", "of", "the", "arg", "config", "configuration", "cfg", "hp", "to", "for", "in", "value"}
)
"""Words that say nothing."""

NEUTRAL = FILLERS | {
    "train", "trainer", "param", "hparam", "hyper", "hyperparam", "setting", "option", "run", "experiment", "exp",
    "main", "base", "default", "optimizer", "model", "learner", "solver", "general", "common", "data",
    "dataset", "dataloader", "loader", "initial", "class", "path", "kwarg", "user", "job", "task", "actor", "policy",
    "hydra", "lightning", "module", "algorithm", "dpo", "grpo", "sft", "ppo", "rlhf",
}  # fmt: skip
"""Words around a key that leave it what it is."""

FOREIGN = frozenset(
    {"eval", "reward", "ref", "reference", "teacher", "critic", "disc", "discriminator", "ema", "vae", "logging",
         "logger",
     "wandb", "checkpoint", "save", "callback", "inference", "predict", "generation", "hpo", "sweep", "search"}
)  # fmt: skip
"""Words of a part below which nothing is a setting of the training itself."""

OWN = frozenset({"actor", "policy", "student", "train", "generator"})
"""... unless one of these stands with them: verl's `actor_rollout_ref`."""

PHRASES: dict[str, Known] = {
    # --- optimisation
    "learning_rate": Known(
        NUMBER,
        ("max learning rate", "peak learning rate", "base learning rate", "initial learning rate", "lr0",
         "learning rate initial"),
    ),
    "min_learning_rate": Known(NUMBER, ("min lr", "final lr", "end lr", "eta min", "lr end", "min lr")),
    "warmup_steps": Known(NUMBER, ("warmup", "learning rate warmup steps", "scheduler warmup steps",
                                   "warmup train steps")),
    "warmup_ratio": Known(NUMBER, ("learning rate warmup ratio", "pct start", "scheduler warmup ratio")),
    "warmup_epochs": Known(NUMBER, ("learning rate warmup epochs",)),
    "warmup_samples": Known(NUMBER, ("learning rate warmup samples",)),
    "warmup_tokens": Known(NUMBER),
    "max_steps": Known(
        NUMBER,
        ("train steps", "total steps", "total train steps", "max train steps", "total optimizer steps", "stop step",
         "=steps", "optimizer steps"),
    ),
    "num_train_epochs": Known(NUMBER, ("=epochs", "max epochs", "total epochs", "max train epochs", "epoch count")),
    "total_timesteps": Known(NUMBER, ("max timesteps", "total env steps", "total environment steps")),
    "steps_per_epoch": Known(NUMBER, ("steps per epoch", "batches per epoch", "iters per epoch",
         "max steps per epoch")),
    "max_grad_norm": Known(
        NUMBER,
        ("grad clip", "grad clip val", "grad clip norm", "max norm", "clip norm", "clip grad max norm", "grad max norm",
         "global clip norm", "grad norm clip", "clip grad norm max", "global grad clip", "grad clip threshold",
         "clip value", "?clip"),
    ),
    "weight_decay": Known(NUMBER),
    "optim": Known(
        TEXT, ("optimizer", "optimizer type", "optimizer name", "optimizer target", "optimizer class",
         "optimizer class path",
               "optimizer algorithm"),
    ),
    "momentum": Known(NUMBER, ("sgd momentum",)),
    "betas": Known(LIST, ("adam betas",)),
    "adam_beta1": Known(NUMBER, ("beta1", "optimizer beta1")),
    "adam_beta2": Known(NUMBER, ("beta2", "optimizer beta2")),
    "adam_epsilon": Known(NUMBER, ("adam eps", "=eps", "optimizer eps", "optimizer epsilon")),
    "lr_scheduler_type": Known(
        TEXT,
        ("learning rate scheduler", "=scheduler", "learning rate decay style", "scheduler type", "scheduler name",
         "scheduler target", "scheduler class path", "learning rate scheduler name", "learning rate policy",
         "learning rate decay type", "scheduler class"),
    ),
    "lr_decay_steps": Known(NUMBER, ("learning rate decay steps",)),
    "label_smoothing_factor": Known(NUMBER, ("label smoothing", "label smoothing epsilon", "=smoothing")),
    "dropout": Known(NUMBER, ("dropout rate", "dropout prob", "drop rate", "hidden dropout prob", "hidden dropout")),
    "loss_type": Known(TEXT, ("loss function", "loss fn", "loss name", "criterion", "=loss", "loss target")),
    "init_scale": Known(NUMBER, ("initial scale", "initializer range", "initial std", "initial method std")),
    "ema_decay": Known(NUMBER, ("ema decay",)),
    # --- precision
    "fp16": Known(FLAG, ("fp16 enabled", "use fp16", "half", "half precision")),
    "bf16": Known(FLAG, ("bf16 enabled", "use bf16")),
    "fp8": Known(FLAG, ("fp8 enabled", "use fp8")),
    "tf32": Known(FLAG, ("allow tf32", "use tf32")),
    "amp": Known(FLAG, ("use amp", "amp enabled", "mixed precision enabled")),
    "mixed_precision": Known(ANY, ("use mixed precision",)),
    "precision": Known(ANY, ("train precision", "trainer precision")),
    "dtype": Known(TEXT, ("train dtype", "param dtype")),
    "torch_dtype": Known(TEXT, ("model dtype",)),
    "amp_dtype": Known(TEXT, ("autocast dtype",)),
    "compute_type": Known(TEXT, ("compute dtype",)),
    "initial_loss_scale": Known(NUMBER, ("initial loss scale", "loss scale initial")),
    "loss_scale": Known(NUMBER, ("static loss scale",)),
    "hysteresis": Known(NUMBER, ("loss scale hysteresis",)),
    # --- batches
    "per_device_train_batch_size": Known(
        NUMBER,
        ("micro batch size", "device batch size", "per device batch size", "=batch size", "?train batch size",
         "train micro batch size per device", "micro batch size per device",
         "instantaneous batch size per device",
         "local batch size", "samples per device", "batch size per device", "train batch size per device",
         "per device micro batch size"),
    ),
    "per_device_eval_batch_size": Known(NUMBER, ("eval batch size", "per device eval batch size")),
    "global_batch_size": Known(NUMBER, ("effective batch size", "total batch size", "total train batch size",
                                        "global train batch size")),
    "gradient_accumulation_steps": Known(
        NUMBER, ("grad accumulation", "accumulation steps", "accumulate grad batches", "grad accumulation interval",
                 "=accumulation"),
    ),
    "world_size": Known(NUMBER, ("gpus", "devices", "processes", "data parallel size", "dp size", "device count",
                                 "process count")),
    "zero_stage": Known(NUMBER, ("zero optimization stage",)),
    "local_rank": Known(NUMBER),
    "num_workers": Known(NUMBER, ("dataloader workers",)),
    "nnodes": Known(NUMBER, ("nodes",)),
    "nproc_per_node": Known(NUMBER, ("nproc per node", "devices per node", "gpus per node")),
    # --- data and model
    "vocab_size": Known(NUMBER, ("padded vocab size", "model vocab size", "vocab", "tokenizer vocab size")),
    "num_labels": Known(NUMBER, ("labels", "classes", "=nc", "class", "output classes")),
    "train_rows": Known(
        NUMBER,
        ("train examples", "train images", "train pairs", "train size", "dataset size", "dataset examples",
         "dataset prompts",
         "train prompts", "=examples", "train dataset size", "dataset samples", "train data size", "train set size",
         "dataset length", "total examples", "data size"),
    ),
    "eval_rows": Known(NUMBER, ("eval examples", "eval size")),
    "train_tokens": Known(NUMBER, ("dataset tokens",)),
    "sequence_length": Known(
        NUMBER,
        ("block size", "max sequence length", "max length", "context length", "context size", "context window",
         "n ctx", "model max length", "sequence size"),
    ),
    "hidden_size": Known(NUMBER, ("embd", "embd size", "d model", "hidden units", "=hidden", "?dim", "?width")),
    "channels": Known(ANY),
    "net_arch": Known(ANY),
    "max_position_embeddings": Known(NUMBER),
    "attention_dropout": Known(NUMBER, ("attention probs dropout prob", "attention dropout prob")),
    "num_layers": Known(NUMBER, ("layer", "hidden layers", "depth", "layer count")),
    "num_heads": Known(NUMBER, ("head", "attention heads")),
    "parameters": Known(NUMBER, ("params", "trainable parameters", "total params", "model params", "param count")),
    "model_name_or_path": Known(TEXT, ("base model", "model name", "model id", "model path",
         "pretrained model name or path",
                                       "pretrained model")),
    "model": Known(TEXT, ("architecture", "model architecture", "model target", "model class", "model class path")),
    "model_type": Known(TEXT),
    "dataset": Known(TEXT, ("dataset name", "dataset path", "data", "data path")),
    "tokenizer": Known(TEXT, ("tokenizer name", "tokenizer type", "tokenizer name or path")),
    "shuffle": Known(FLAG, ("shuffle data", "shuffle train", "data shuffle", "train shuffle")),
    "packing": Known(FLAG, ("sample packing", "sequence packing")),
    "task": Known(TEXT, ("task type", "=task name", "objective", "problem type")),
    "framework": Known(TEXT),
    "seed": Known(NUMBER, ("random seed", "manual seed", "global seed")),
    # --- preference, policies
    "beta": Known(NUMBER, ("dpo beta", "kl coef", "initial kl coef", "kl loss coef", "kl beta", "=beta",
         "kl penalty coef")),
    "num_generations": Known(NUMBER, ("samples per prompt", "group size", "generations per prompt",
         "rollouts per prompt",
                                      "rollout n")),
    "max_completion_length": Known(NUMBER, ("max new tokens", "response length", "max response length",
         "completion length")),
    "max_prompt_length": Known(NUMBER, ("prompt length",)),
    "temperature": Known(NUMBER, ("sample temperature", "sampling temperature")),
    "top_k": Known(NUMBER),
    "top_p": Known(NUMBER),
    "min_p": Known(NUMBER),
    "clip_range": Known(NUMBER, ("clip eps", "eps clip", "clip param", "clip ratio", "clip coef")),
    "exploration_fraction": Known(NUMBER), "exploration_initial_eps": Known(NUMBER, ("epsilon start", "eps initial")),
    "exploration_final_eps": Known(NUMBER, ("epsilon end", "final epsilon", "epsilon final", "eps end")),
    "learning_starts": Known(NUMBER), "train_freq": Known(NUMBER), "target_update_interval": Known(NUMBER),

    "gamma": Known(NUMBER, ("discount", "discount factor")),
    "gae_lambda": Known(NUMBER, ("lam", "gae lam")),
    "ent_coef": Known(NUMBER, ("entropy coef", "entropy coeff", "entropy loss coef")),
    "vf_coef": Known(NUMBER, ("value loss coef", "value coef", "vf loss coef")),
    "n_steps": Known(NUMBER, ("rollout steps", "rollout length", "steps per environment")),
    "n_envs": Known(NUMBER, ("environments",)),
    "environment": Known(TEXT, ("env id", "env name", "gym id", "environment name")),
    "algorithm": Known(TEXT, ("rl algorithm", "algorithm name")),
    "buffer_size": Known(NUMBER, ("replay buffer size", "replay size", "memory size")),
    "scale_rewards": Known(ANY),
    "completion_only_loss": Known(FLAG),
    "assistant_only_loss": Known(FLAG),
    # --- adapters
    "lora_r": Known(NUMBER, ("lora rank", "peft r", "adapter r", "peft rank", "lora size", "adapter rank")),
    "lora_alpha": Known(NUMBER, ("peft alpha",)),
    "lora_dropout": Known(NUMBER),
    "peft_type": Known(TEXT, ("adapter type",)),
    "activation": Known(TEXT, ("activation function", "hidden act", "activation fn")),
    "batch_norm": Known(FLAG, ("use batch norm",)),
    "normalize_targets": Known(FLAG),
    # --- how often
    "eval_strategy": Known(TEXT, ("evaluation strategy",)),
    "logging_nan_inf_filter": Known(FLAG),
    "logging_steps": Known(NUMBER, ("log interval", "logging interval", "log every", "log every steps",
         "print interval")),
    "eval_steps": Known(NUMBER, ("eval interval", "eval every", "eval every steps", "check val every steps")),
    "save_steps": Known(NUMBER, ("save interval", "save every", "checkpoint interval", "save every steps")),
}  # fmt: skip
