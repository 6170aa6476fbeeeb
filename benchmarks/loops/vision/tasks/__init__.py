"""The tasks by name."""

from collections.abc import Callable

from benchmarks.loops.vision.config import Config
from benchmarks.loops.vision.task import Task
from benchmarks.loops.vision.tasks.generation import denoiser, vae
from benchmarks.loops.vision.tasks.images import boxes, contrastive, segmentation, shapes
from benchmarks.loops.vision.tasks.sequences import charlm, forecast, speech, tagging
from benchmarks.loops.vision.tasks.tables import fraud, graph, memory, regression

TASKS: dict[str, Callable[[Config], Task]] = {
    "shapes": shapes,
    "segmentation": segmentation,
    "boxes": boxes,
    "contrastive": contrastive,
    "vae": vae,
    "denoiser": denoiser,
    "forecast": forecast,
    "speech": speech,
    "tagging": tagging,
    "charlm": charlm,
    "regression": regression,
    "fraud": fraud,
    "memory": memory,
    "graph": graph,
}
