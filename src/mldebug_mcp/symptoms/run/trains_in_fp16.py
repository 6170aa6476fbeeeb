"""The configuration asks for half precision (fp16)."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom

HALF = frozenset({"fp16", "float16", "half", "16", "16-mixed", "fp16-mixed", "torch.float16"})
OTHER = frozenset(
    {
        "no",
        "bf16",
        "bfloat16",
        "bf16-mixed",
        "torch.bfloat16",
        "fp32",
        "float32",
        "32",
        "32-true",
        "tf32",
        "torch.float32",
    }
)
KEYS = ("fp16", "mixed_precision", "precision", "dtype", "torch_dtype", "compute_type", "amp_dtype")


@symptom(needs=(), sources=("bekman_mle",), whole_run=True, background=0.15, as_chosen=True)
def trains_in_fp16(run: Run) -> Evidence | None:
    """Training runs in half precision (fp16), which holds no number above 65504.

    Not this when: it runs in bf16 or fp32; unknown where the configuration does not say. By itself this is not a
    fault, but overflow needs it.
    """
    for key in KEYS:
        value = run.config.get(key)
        if value is True and key == "fp16":
            return Evidence("the configuration sets fp16", values={"fp16": 1})
        if isinstance(value, str) and value.lower() in HALF:
            return Evidence(f"the configuration sets {key} to half precision", values={"fp16": 1})
        if value is not None and str(value).lower() in OTHER:
            return None
    if run.config.get("bf16") is True or run.config.get("fp16") is False:
        return None
    raise CannotTell("the configuration does not name the precision")
