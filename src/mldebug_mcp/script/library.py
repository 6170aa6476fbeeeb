"""What the names of PyTorch and its kin do: which make optimizers, which cut the gradient, which only wrap a model."""

from __future__ import annotations

import ast
import re

DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

OPTIMIZERS = re.compile(
    r"(?:^|\.)(?:SGD|Adam\w*|RMSprop|Adagrad|Adadelta|Adafactor|Lion\w*|NAdam|RAdam|LBFGS|Muon|LAMB|Lamb|Rprop|ASGD|SparseAdam)$"
)
SCHEDULES = re.compile(r"(?:^|\.)(?:\w*LR|CosineAnnealing\w*|get_\w*schedule\w*|get_scheduler|ReduceLROnPlateau)$")
LENGTHS = {
    "CosineAnnealingLR": (("T_max", 1),), "StepLR": (("step_size", 1),), "MultiStepLR": (("milestones", 1),),
    "OneCycleLR": (("total_steps", 2),), "PolynomialLR": (("total_iters", 1),), "LinearLR": (("total_iters", 3),),
    "ConstantLR": (("total_iters", 2),), "CosineAnnealingWarmRestarts": (("T_0", 1),), "LambdaLR": (("lr_lambda", 1),),
    "SequentialLR": (("milestones", 2),), "get_scheduler": (("num_warmup_steps", 2), ("num_training_steps", 3)),
    "": (("num_warmup_steps", 1), ("num_training_steps", 2)),
}  # fmt: skip
"""The arguments of schedules that say how long these are, with their places; "" stands for those of Transformers."""
LOADER = re.compile(r"loader|(?:^|_)dl$", re.IGNORECASE)
"""Names of loaders."""
EVALUATES = re.compile(r"(?:^|[._])(?:eval\w*|valid\w*|val|test\w*|infer\w*|predict\w*)(?:$|_)", re.IGNORECASE)
HELD_OUT = re.compile(rf"{EVALUATES.pattern}|(?:^|[._])(?:dev|held\w*|holdout)(?:$|_)|^(?:vl|va|te)$", re.IGNORECASE)
TRAINS = re.compile(r"train|^(?:tr|tl)$|^fit_", re.IGNORECASE)
"""Names of functions that evaluate, of held-out rows, and of those of training."""
NO_GRADIENTS = re.compile(r"(?:no_grad|inference_mode)$")
HAS_PARAMETERS = re.compile(
    r"(?:^|\.)nn\.(?:Linear|Bilinear|Conv\w+|Embedding\w*|LSTM|GRU|RNN|\w*Cell|Transformer\w*|MultiheadAttention|\w*Norm\w*)$"
)
HAS_NO_WEIGHTS = re.compile(r"(?:^|\.)(?:Sigmoid|Tanh|ReLU|Softplus|GELU|SiLU|ELU|Identity|Dropout)$")
"""Layers that leave the shape as it is."""
HAS_MODES = re.compile(r"(?:^|\.)nn\.(?:\w*Dropout\d?d?|\w*BatchNorm\d?d?|Transformer\w*(?:Layer|coder)|Transformer)$")
"""Layers that behave differently in training and evaluation."""

NUMBERS = ("item", "tolist", "numpy", "float")
"""Methods and functions that make plain numbers of a tensor."""
CUT = (*NUMBERS, "detach")
"""Methods after which a value has no gradient."""
WITHOUT_GRADIENT = {
    *CUT, "argmax", "argmin", "argsort", "int", "long", "bool", "byte", "len", "eq", "ne", "gt", "lt", "size", "dim",
    "numel", "nonzero", "round", "sign", "bincount", "str",
}  # fmt: skip
"""Methods and functions whose result has no gradient whatever they are given."""
CUTTING_METHODS = (WITHOUT_GRADIENT - {"float"}) | {"sample"}
"""Methods of a tensor whose result has no gradient."""
RESULTS = {
    "softmax": "softmax", "sigmoid": "sigmoid", "Softmax": "softmax", "Sigmoid": "sigmoid", "log_prob": "log_prob",
    "Linear": "logits", "Conv1d": "logits", "Conv2d": "logits",
}  # fmt: skip
"""What a loss asks after: the activation or probability that a function, method or layer gives, by its name."""
RESHAPES = {
    "view", "reshape", "flatten", "squeeze", "unsqueeze", "float", "contiguous", "transpose", "permute", "to", "cuda",
    "cpu", "clone",
}  # fmt: skip
"""Functions and methods that leave all values as they are, and move them alone."""
SAME_VALUES = (
    "view", "reshape", "flatten", "squeeze", "unsqueeze", "float", "contiguous", "transpose", "permute", "to", "cuda",
    "cpu", "clone", "stack", "cat", "concat", "exp", "sum", "mean", "clamp", "min", "minimum", "neg",
)  # fmt: skip
"""Methods and functions after which a value still is the result of the activation or distribution before."""
ELEMENTWISE = {
    "float", "double", "to", "cuda", "cpu", "detach", "clone", "clamp", "exp", "log", "sigmoid", "tanh", "relu",
    "softplus", "abs", "square", "pow", "neg", "contiguous", "log1p", "expm1",
}  # fmt: skip
"""Functions and methods after which a tensor has the shape of their first argument."""
COMPARES_PLACES = ("softmax", "log_softmax", "logsumexp", "max", "amax", "argmax")
"""Functions and methods to which minus infinity means that a place is left out."""
PLAIN_ATTRIBUTES = ("data", "shape", "grad", "device", "dtype", "indices", "size", "ndim")

WRAPPERS = (
    "DataParallel", "DistributedDataParallel", "DDP", "compile", "script", "unwrap_model",
    "extract_model_from_parallel",
)  # fmt: skip
"""What gives a model back as it is, with something around it."""
PREPARES = (
    "prepare", "setup", "prepare_model", "setup_module", "setup_optimizers", "initialize", "prepare_data_loader",
)  # fmt: skip
"""Methods of frameworks that give back what they are given."""
SAME_MODEL = {
    "to", "cuda", "cpu", "float", "half", "double", "bfloat16", "share_memory", "compile", "type", "requires_grad_",
    "train", "eval", "apply", "to_empty", "xpu",
}  # fmt: skip
"""Methods of a model that give it back."""
PASSES_ON = {
    "list", "tuple", "set", "iter", "reversed", "sorted", "tqdm", "trange", "track", "chain", "cycle", "islice",
    "deque",
}  # fmt: skip
"""Functions that give the items that they are given."""
LOOKS_ONLY = {
    "print", "len", "isinstance", "type", "id", "str", "repr", "hasattr", "callable", "is_tensor", "save", "summary",
    "info", "debug", "warning", "log", "watch", "int", "float", "bool", "sum", "max", "min", "issubclass", "vars",
    "summon_full_params",
}  # fmt: skip
"""Functions that leave what they are given as it is."""
BATCH_SAMPLER = "torch.utils.data.BatchSampler"
"""What a loader makes of its sampler. Source: `torch.utils.data.DataLoader`."""
CLASSES_OF = {
    "model": ("Module",), "loss": ("Module",), "optimizer": ("Optimizer",),
    "schedule": ("LRScheduler", "_LRScheduler"),
}  # fmt: skip
"""The classes of PyTorch that every object of a kind is an instance of."""
COMPUTES = re.compile(r"^(?:torch|einops|math|torchvision\.ops|torchmetrics|jax|jnp|optax)\b")
"""Libraries whose functions compute on tensors, and let the gradient through."""


def usual_name(name: str) -> str:
    """Return the library that a name stands for in most scripts, where no import says it; empty for others."""
    usual = {
        "torch": "torch",
        "nn": "torch.nn",
        "F": "torch.nn.functional",
        "optim": "torch.optim",
        "np": "numpy",
        "jnp": "jax.numpy",
    }
    if name in usual:
        return usual[name]
    return name if (name[:1].isupper() and not name.isupper()) or name in ("DDP", "SGD", "FSDP") else ""
