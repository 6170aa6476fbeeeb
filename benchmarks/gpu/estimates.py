"""What `estimate` says of eight trainings of Transformers' models, compared with the peak that torch counts."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.gpu.recorded import peak_of
from benchmarks.gpu.running import Clock, Outcome, Skip, Told, run_case
from mldebug_mcp.memory.estimate import estimate_memory
from mldebug_mcp.memory.formulas import WORKSPACE

STEPS = 2
"""The second makes the peak: the optimizer's state is there from the first on."""
LLAMA = {
    "model_type": "llama",
    "hidden_size": 2048,
    "intermediate_size": 5632,
    "num_hidden_layers": 6,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 32_000,
    "max_position_embeddings": 16_384,
    "tie_word_embeddings": False,
}
GPT2 = {"model_type": "gpt2", "n_embd": 1024, "n_layer": 6, "n_head": 16, "vocab_size": 50_257, "n_positions": 1024}
GPT2_WITHOUT_DROPOUT = GPT2 | dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)


@dataclass(frozen=True, slots=True)
class Configuration:
    """A model and how it is trained.

    Args:
        name: What it is called.
        model: Its `config.json`.
        settings: Arguments of `estimate_memory`.
    """

    name: str
    model: Mapping[str, Any]
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def precision(self) -> str:
        """Of `estimate_memory`."""
        return str(self.settings["precision"])

    @property
    def dtype(self) -> torch.dtype:
        """Of the parameters."""
        return torch.bfloat16 if self.precision == "bf16" else torch.float32


FUSED = {"optimizer": "adamw_fused"}
"""As Transformers' Trainer takes it: in one kernel."""
CONFIGURATIONS = (
    Configuration("full_fp32", GPT2_WITHOUT_DROPOUT, {**FUSED, "precision": "fp32", "batch_size": 4, "length": 512}),
    Configuration("full_mixed", GPT2_WITHOUT_DROPOUT, {**FUSED, "precision": "mixed", "batch_size": 8, "length": 512}),
    Configuration("full_bf16", LLAMA, {**FUSED, "precision": "bf16", "batch_size": 4, "length": 1024}),
    Configuration(
        "checkpointing", LLAMA, {**FUSED, "precision": "bf16", "batch_size": 8, "length": 1024, "checkpointing": "full"}
    ),
    Configuration("lora", LLAMA, {**FUSED, "precision": "bf16", "batch_size": 4, "length": 1024, "lora_rank": 16}),
    Configuration(
        "eight_bit_optimizer", LLAMA, {"precision": "bf16", "batch_size": 1, "length": 512, "optimizer": "adamw_8bit"}
    ),
    Configuration("long_context", LLAMA, {**FUSED, "precision": "bf16", "batch_size": 1, "length": 8192}),
    Configuration(
        "large_vocabulary",
        LLAMA | {"vocab_size": 128_256, "num_hidden_layers": 4},
        {**FUSED, "precision": "bf16", "batch_size": 4, "length": 1024},
    ),
)


class Adapted(nn.Module):
    """A frozen linear layer with a trained one of low rank beside it (Hu et al. 2021, arXiv 2106.09685)."""

    def __init__(self, base: nn.Linear, rank: int) -> None:
        super().__init__()
        self.base = base
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)

    def forward(self, values: Tensor) -> Tensor:
        """Return what both give."""
        whole: Tensor = self.base(values) + self.up(self.down(values))
        return whole


def train(configuration: Configuration, device: torch.device) -> None:
    """Train for a few steps.

    Raises:
        Skip: a library that it takes is missing.
    """
    settings = configuration.settings
    model = build(configuration, device)
    if settings.get("checkpointing") == "full":
        # Its name in later versions of Transformers, and the one before.
        getattr(model, "activation_checkpointing_enable", model.gradient_checkpointing_enable)()
    optimizer = make_optimizer(model, settings.get("optimizer", "adamw"), device)
    shape = (settings["batch_size"], settings["length"])
    generator = torch.Generator().manual_seed(0)
    for _ in range(STEPS):
        ids = torch.randint(0, int(configuration.model["vocab_size"]), shape, generator=generator)
        ids = ids.to(device)
        with _computing(configuration, device):
            loss = model(input_ids=ids, labels=ids, use_cache=False).loss
        torch.autograd.backward(loss)
        del loss
        optimizer.step()
        optimizer.zero_grad()


def build(configuration: Configuration, device: torch.device) -> Any:  # noqa: ANN401 - a model of Transformers
    """Return a model with random weights, on a device."""
    try:
        from transformers import AutoConfig, AutoModelForCausalLM
    except ImportError:
        raise Skip("needs transformers") from None
    torch.manual_seed(0)
    described = AutoConfig.for_model(**configuration.model)
    rank = configuration.settings.get("lora_rank")
    with device:
        model = AutoModelForCausalLM.from_config(described, dtype=configuration.dtype, attn_implementation="sdpa")
        if rank is not None:
            model.requires_grad_(False)
            adapt(model.model.layers, rank, configuration.dtype)
    return model.train()


def adapt(module: nn.Module, rank: int, dtype: torch.dtype) -> None:
    """Put adapters beside all linear layers of a module."""
    for name, child in module.named_children():
        if isinstance(child, nn.Linear):
            usual = torch.get_default_dtype()
            torch.set_default_dtype(dtype)
            setattr(module, name, Adapted(child, rank))
            torch.set_default_dtype(usual)
        else:
            adapt(child, rank, dtype)


def make_optimizer(model: nn.Module, name: str, device: torch.device) -> torch.optim.Optimizer:
    """Return AdamW as Transformers' Trainer takes it, in one kernel, or that of 8 bits."""
    trained = [one for one in model.parameters() if one.requires_grad]
    if name.startswith("adamw") and name != "adamw_8bit":
        return torch.optim.AdamW(trained, 1e-5, fused=name == "adamw_fused")
    if device.type != "cuda":
        raise Skip("bitsandbytes computes on a GPU")
    try:
        import bitsandbytes
    except ImportError:
        raise Skip("needs bitsandbytes") from None
    made: torch.optim.Optimizer = bitsandbytes.optim.AdamW8bit(trained, lr=1e-5)
    return made


def _computing(configuration: Configuration, device: torch.device) -> AbstractContextManager[object]:
    if configuration.precision == "mixed":
        if device.type != "cuda":
            raise Skip("autocast for a CPU computes other operations in 32 bits than autocast for a GPU")
        return torch.autocast(device.type, torch.bfloat16)
    return nullcontext()


PART = "estimates"
ALLOWED = 0.10
"""Of the measured peak, by which an estimate may be off."""


def run(clock: Clock, folder: Path, names: list[str] | None = None, *, dry: bool) -> Iterator[Outcome]:
    """Train each configuration for a few steps and compare; without a GPU the allocations are counted."""
    measure = _simulated_peak if dry else measured_peak
    for one in CONFIGURATIONS:
        if names is None or one.name in names:
            yield run_case(PART, one.name, clock, partial(_compared, one, folder, measure))


def _compared(configuration: Configuration, folder: Path, measure: Callable[[Configuration], int]) -> Told:
    file = folder / f"{configuration.name}.config.json"
    file.write_text(json.dumps(dict(configuration.model)), encoding="utf-8")
    estimate = estimate_memory(file, **configuration.settings)
    peak = measure(configuration)
    error = estimate.total_bytes / peak - 1
    figures: dict[str, str | int] = {
        "estimate_mib": round(estimate.total_bytes / 2**20),
        "measured_mib": round(peak / 2**20),
        "error": f"{error:+.1%}",
    }
    return Told(abs(error) <= ALLOWED, figures, "" if abs(error) <= ALLOWED else f"off by more than {ALLOWED:.0%}")


def measured_peak(configuration: Configuration) -> int:
    """Return the most bytes that tensors held on the GPU in a training, over what they held before."""
    device = torch.device("cuda", 0)
    # The statistics exist only once CUDA is initialised, which the first tensor does.
    torch.zeros(1, device=device)
    gc.collect()
    # The estimate counts what cuBLAS takes, so that each training begins without it.
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    train(configuration, device)
    torch.cuda.synchronize(device)
    return torch.cuda.max_memory_allocated(device) - before


def _simulated_peak(configuration: Configuration) -> int:
    # No cuBLAS is at work, so that what it takes is added.
    return peak_of(lambda device: train(configuration, device)) + WORKSPACE
