"""The configuration asks for 8-bit floats (fp8)."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom

KEYS = ("fp8", "mixed_precision", "precision", "compute_type", "dtype", "fp8_format", "fp8_recipe", "recipe")
NAMES = ("fp8", "float8", "e4m3", "transformer-engine")
LOGGED = ("fp8", "float8", "amax")
"""Parts of the names of metrics that only 8-bit training has: largest values and the scales made from them."""


@symptom(needs=(), sources=("axolotl_stability",), whole_run=True, background=0.03, as_chosen=True)
def trains_in_fp8(run: Run) -> Evidence | None:
    """Training computes in 8-bit floats (fp8), whose scales are made from the data.

    Not this when: it runs in bf16, fp16 or fp32; unknown where the configuration does not name the precision. By itself
    this is not a fault, but a scale of zero needs it.
    """
    given = {key: run.config[key] for key in KEYS if run.config.get(key) is not None}
    for key, value in given.items():
        if (key == "fp8" and value is True) or any(name in str(value).lower() for name in NAMES):
            return Evidence(f"the configuration sets {key} to fp8", values={"fp8": 1})
    logged = next((name for name in sorted(run.series) if any(part in name.lower() for part in LOGGED)), None)
    if logged is not None:
        return Evidence(f"the log holds {logged}", values={"fp8": 1})
    if given or run.config.get("bf16") is True or run.config.get("fp16") is True:
        return None
    raise CannotTell("the configuration does not name the precision")
