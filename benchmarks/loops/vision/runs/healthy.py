"""Healthy runs, many with a turn that could be taken for a fault."""

from benchmarks.loops.vision.config import Config
from benchmarks.loops.vision.faults.data import bad_targets, easy_first, held_out, noisy_labels, slow_fetch
from benchmarks.loops.vision.faults.models import layer_norms, pretrained, zero_share
from benchmarks.loops.vision.faults.updates import interrupted, resume
from benchmarks.loops.vision.run import Run

STEP = ("loss", "lr")
NORM = ("loss", "lr", "grad_norm")
RL = ("policy_loss", "value_loss", "entropy", "ep_rew_mean", "ep_len_mean")


def healthy(
    config: Config,
    style: str,
    fact: str,
    settings: str = "",
    *faults: object,
    columns: tuple[str, ...] = NORM,
    also: tuple[str, ...] = (),
) -> Run:
    """A run with nothing wrong; `also` names what a harmless turn in it could be called as well."""
    return Run("healthy", config, style, fact, settings, columns, faults, also)  # type: ignore[arg-type]


RUNS = [
    # Plain runs of each task.
    healthy(Config("shapes", epochs=8, lr=3e-3), "metriclogger", "falls smoothly, val follows", "args"),
    healthy(
        Config("shapes", epochs=8, optimizer="sgd", lr=0.05, schedule="cosine", weight_decay=5e-4),
        "tensorboard",
        "cosine tail",
        "yaml",
    ),
    healthy(Config("shapes", epochs=6, lr=2e-3, data={"classes": 10}), "csv_epochs", "few records, all falling"),
    healthy(Config("shapes", epochs=8, lr=2e-3, model={"dropout": 0.4}), "keras", "dropout: val better than train"),
    healthy(Config("segmentation", epochs=5, lr=3e-3), "logging", "IoU rises, loss falls", "json"),
    healthy(
        Config("segmentation", epochs=4, lr=5e-3, schedule="linear"), "tqdm", "linear decay to zero at the end", "cmd"
    ),
    healthy(
        Config("boxes", epochs=8, lr=2e-3, schedule="step"),
        "wandb",
        "two drops of the rate, loss steps down with it",
        "yaml",
    ),
    healthy(Config("boxes", epochs=6, lr=3e-3), "history", "six records, all falling", "json"),
    healthy(
        Config("vae", epochs=10, lr=1e-3), "mlflow", "ELBO settles far above zero as it must", "yaml", columns=("loss",)
    ),
    healthy(
        Config("vae", epochs=8, lr=2e-3, model={"code": 4}),
        "prints",
        "loss of about 40 nats is the floor",
        columns=("loss",),
    ),
    healthy(
        Config("denoiser", epochs=10, batch_size=64, lr=2e-3),
        "csv_steps",
        "noise of the random times, plateau because it is done",
        "args",
    ),
    healthy(
        Config("denoiser", epochs=8, batch_size=16, lr=1e-3, log_every=5),
        "loguru",
        "very noisy loss of a small batch",
        "yaml",
    ),
    healthy(Config("forecast", epochs=12, lr=3e-3), "lightning", "MSE falls to the noise floor", "yaml"),
    healthy(
        Config("forecast", epochs=15, lr=2e-3, model={"cell": "tcn", "hidden": 16}, schedule="cosine"),
        "rich",
        "cosine tail",
        "",
    ),
    healthy(
        Config("speech", epochs=14, lr=5e-3, batch_size=32), "logging", "CTC plateau of blanks, then learns", "args"
    ),
    healthy(
        Config("speech", epochs=13, lr=8e-3, batch_size=32, warmup_steps=40, schedule="linear", grad_clip=5.0),
        "jsonl",
        "warm-up; CTC plateau",
        "json",
    ),
    healthy(Config("tagging", epochs=12, lr=8e-3), "tqdm", "loss near chance for a while, then falls", "args"),
    healthy(Config("tagging", epochs=12, lr=5e-3, batch_size=16), "csv_steps", "plain", ""),
    healthy(Config("charlm", epochs=8, lr=1e-2), "loguru", "loss settles near ln 3", "yaml"),
    healthy(
        Config(
            "charlm",
            epochs=12,
            lr=5e-3,
            optimizer="adamw",
            weight_decay=0.01,
            warmup_steps=30,
            schedule="cosine",
            grad_clip=1.0,
            model={"cell": "transformer"},
            data={"letters": 8, "choices": 2},
        ),
        "jsonl",
        "warm-up, cosine, norm below the clip",
        "hydra",
    ),
    healthy(Config("regression", epochs=15, lr=3e-3), "prints", "R2 rises", "cmd"),
    healthy(
        Config("regression", epochs=15, optimizer="sgd", lr=0.02, batch_size=16),
        "csv_epochs",
        "SGD noise at epoch means",
        "json",
    ),
    healthy(Config("fraud", epochs=10, lr=2e-3), "rich", "recall is moderate and grows", "json"),
    healthy(
        Config("fraud", epochs=10, lr=1e-3, data={"share": 0.35}), "history", "plateau because classes overlap", ""
    ),
    healthy(
        Config("contrastive", epochs=8, lr=2e-3, batch_size=48), "tensorboard", "loss from ln(2n) downward", "args"
    ),
    healthy(
        Config("contrastive", epochs=6, lr=3e-3, batch_size=64, schedule="cosine"),
        "loguru",
        "short run with a cosine",
        "",
    ),
    healthy(
        Config("graph", epochs=100, batch_size=1, lr=1e-2, weight_decay=5e-4, log_every=1),
        "prints",
        "one step an epoch, val accuracy noisy",
        "args",
    ),
    healthy(
        Config("graph", epochs=120, batch_size=1, lr=2e-2, log_every=1, model={"hidden": 32}),
        "csv_epochs",
        "dropout: val above train accuracy",
        "",
    ),
    healthy(
        Config("gan", epochs=10, batch_size=64, lr=1e-3, betas=(0.5, 0.999)),
        "logging",
        "both losses hover, modes found",
        "args",
        columns=("d_loss", "g_loss"),
    ),
    healthy(
        Config("gridworld", epochs=16, batch_size=16, lr=5e-3, log_every=5),
        "csv_steps",
        "reward rises with noise",
        "yaml",
        columns=RL,
    ),
    healthy(
        Config("gridworld", epochs=16, batch_size=12, lr=4e-3, log_every=5),
        "tensorboard",
        "entropy falls slowly as reward rises",
        "",
        columns=RL,
    ),
    # Turns that look like faults.
    healthy(
        Config("regression", epochs=12, lr=2e-3, batch_size=4, log_every=40),
        "jsonl",
        "batch of four: loss varies widely, mean falls",
        "args",
    ),
    healthy(
        Config("shapes", epochs=4, lr=5e-4, batch_size=4, log_every=20),
        "tqdm",
        "batch of four: loss varies widely, val falls",
        "",
    ),
    healthy(
        Config("shapes", epochs=10, lr=2e-3),
        "csv_steps",
        "one spike of a harmless batch, back within a few steps",
        "json",
        bad_targets(200, 0.0),
        also=("bad_batch",),
    ),
    healthy(
        Config("forecast", epochs=14, lr=2e-3),
        "metriclogger",
        "one spike of a harmless batch",
        "yaml",
        bad_targets(150, 3.0),
        also=("bad_batch",),
    ),
    healthy(Config("charlm", epochs=8, lr=1e-2), "logging", "restart with full state: no jump", "args", resume(4)),
    healthy(Config("shapes", epochs=10, lr=2e-3), "lightning", "restart with full state: no jump", "yaml", resume(5)),
    healthy(
        Config("memory", epochs=4, lr=3e-4, batch_size=16, data={"n_train": 2400}),
        "csv_steps",
        "resume goes on behind the last batch",
        "json",
        interrupted(90, replay=False),
    ),
    healthy(
        Config("boxes", epochs=10, lr=2e-3),
        "loguru",
        "curriculum: easy rows first, then all",
        "hydra",
        easy_first(4),
    ),
    healthy(
        Config("regression", epochs=16, lr=3e-3), "tensorboard", "curriculum: easy rows first", "yaml", easy_first(5)
    ),
    healthy(
        Config("shapes", epochs=8, lr=3e-4), "keras", "fine-tuning: starts low and stays low", "args", pretrained(3)
    ),
    healthy(Config("charlm", epochs=5, lr=1e-3), "wandb", "fine-tuning: starts near its floor", "", pretrained(8)),
    healthy(
        Config("shapes", epochs=10, lr=1e-3, data={"classes": 10, "noise": 0.6, "n_train": 1920}),
        "jsonl",
        "hard task: near chance for the first epochs",
        "yaml",
    ),
    healthy(
        Config("fraud", epochs=12, lr=1e-3),
        "csv_epochs",
        "a tenth of noise in the labels as life has it; plateau is the floor",
        "json",
        noisy_labels(0.1, everywhere=True),
    ),
    healthy(Config("vae", epochs=8, lr=1e-3), "rich", "val and test agree", "json", held_out, columns=("loss",)),
    healthy(
        Config("regression", epochs=12, lr=3e-3),
        "logging",
        "a few slow fetches from a cold cache",
        "args",
        slow_fetch(0.05, every=200),
        columns=("loss", "time", "data"),
    ),
    healthy(
        Config("regression", epochs=12, lr=2e-3, model={"depth": 3}),
        "csv_steps",
        "gradients of first and last layer alike, units alive",
        "",
        zero_share,
        layer_norms,
        columns=("loss", "grad_first", "grad_last", "dead_frac"),
    ),
]
