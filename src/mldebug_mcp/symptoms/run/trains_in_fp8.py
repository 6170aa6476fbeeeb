"""The configuration asks for 8-bit floats (fp8)."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom

KEYS = ("fp8_format", "fp8_recipe", "recipe")
"""Settings that only 8-bit training has, and names of its formats."""
NAMES = ("fp8", "float8", "e4m3")
LOGGED = ("fp8", "float8", "amax")
"""Parts of the names of metrics that only 8-bit training has: largest values and the scales made from them."""


@symptom(needs=(), sources=("axolotl_stability",), whole_run=True, background=0.03, as_chosen=True)
def trains_in_fp8(run: Run) -> Evidence | None:
    """Training computes in 8-bit floats (fp8), whose scales are made from the data.

    Not this when: it runs in bf16, fp16 or fp32; unknown where the configuration does not name the precision. By itself
    this is not a fault, but a scale of zero needs it.
    """
    precision = run.facts.precision
    named = next((key for key in KEYS if any(name in run.settings.text(key) for name in NAMES)), None)
    if precision == "fp8" or named is not None:
        return Evidence(f"the configuration asks for {named or 'fp8'}", values={"fp8": 1})
    logged = next((name for name in sorted(run.series) if any(part in name.lower() for part in LOGGED)), None)
    if logged is not None:
        return Evidence(f"the log holds {logged}", values={"fp8": 1})
    if precision not in (None, "not fp16") or run.settings.flag("fp8") is False:
        return None
    raise CannotTell("the configuration does not name the precision")
