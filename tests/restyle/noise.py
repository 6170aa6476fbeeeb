"""What a log holds beside its records: prefixes of loggers, lines that say nothing, restarts and ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

_START = datetime(2025, 3, 14, 9, 26, 53, 589000, tzinfo=UTC)


def clock(seconds: float) -> datetime:
    """The time of day so many seconds after the start."""
    return _START + timedelta(seconds=seconds)


def _milliseconds(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S},{time.microsecond // 1000:03d}"


PREFIXES: Mapping[str, Callable[[datetime], str]] = {
    "": lambda _: "",
    "logging": lambda time: f"{_milliseconds(time)} - INFO - ",
    "logging_named": lambda time: f"{_milliseconds(time)} - __main__ - INFO - ",
    "brackets": lambda time: f"[{time:%Y-%m-%d %H:%M:%S}] [INFO] [train.py:188:log_metrics] ",
    "rank": lambda time: f"[rank0]: [{time:%Y-%m-%d %H:%M:%S}] ",
    "basic": lambda _: "INFO:root:",
    "glog": lambda time: f"I{time:%m%d %H:%M:%S.%f} 140223 train.py:88] ",
    "loguru": lambda time: f"{time:%Y-%m-%d %H:%M:%S}.{time.microsecond // 1000:03d} | INFO     | __main__:train:88 - ",
    "iso": lambda time: f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond:06d}Z ",
    "ray": lambda _: "(TrainWorker pid=48213) ",
}
BANNER = (
    "Using device: cuda:0 (NVIDIA A100-SXM4-40GB)",
    "Downloading tokenizer.json: 100%|##########| 2.11M/2.11M [00:00<00:00, 14.2MB/s]",
    "/opt/conda/lib/python3.11/site-packages/torch/utils/data/dataloader.py:558: UserWarning: This DataLoader will "
    "create 8 worker processes in total. Our suggested max number of worker in current system is 4.",
    "  warnings.warn(_create_warning_msg(",
    "number of parameters: 124.44M",
)
BETWEEN = (
    "WARNING:urllib3.connectionpool:Retrying (Retry(total=2, connect=None, read=None, redirect=None, status=None)) "
    "after connection broken by 'NewConnectionError': /api/v1/metrics",
    "FutureWarning: `torch.cuda.amp.autocast(args...)` is deprecated. Use `torch.amp.autocast('cuda', args...)`.",
    "Saving model checkpoint to out/checkpoint-{step}",
    "wandb: Network error (ConnectionError), entering retry loop.",
    "Token indices sequence length is longer than the specified maximum sequence length for this model (1031 > 1024).",
)
COMMAND = "$ python train.py"
RESUMED = "Resuming from checkpoint out/checkpoint-{step} (step {step})"
FINISHED = "Training finished."
