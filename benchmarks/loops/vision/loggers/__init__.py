"""The manners of logging by name."""

from collections.abc import Callable
from pathlib import Path

from benchmarks.loops.vision.loggers.base import Logger
from benchmarks.loops.vision.loggers.files import CsvEpochs, CsvSteps, History, JsonLines, LightningCsv
from benchmarks.loops.vision.loggers.text import Keras, Loguru, MetricLines, Prints, PythonLogging, RichConsole, Tqdm
from benchmarks.loops.vision.loggers.trackers import MLflow, TensorBoard, Wandb

STYLES: dict[str, Callable[[Path], Logger]] = {
    "logging": PythonLogging,
    "loguru": Loguru,
    "tqdm": Tqdm,
    "rich": RichConsole,
    "prints": Prints,
    "metriclogger": MetricLines,
    "keras": Keras,
    "csv_steps": CsvSteps,
    "csv_epochs": CsvEpochs,
    "jsonl": JsonLines,
    "history": History,
    "lightning": LightningCsv,
    "tensorboard": TensorBoard,
    "mlflow": MLflow,
    "wandb": Wandb,
}
