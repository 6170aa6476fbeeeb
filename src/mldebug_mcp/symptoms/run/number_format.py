"""In which format of numbers does training compute, as far as its range matters?"""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question

FP8_KEYS = ("fp8_format", "fp8_recipe", "recipe")
FP8_NAMES = ("fp8", "float8", "e4m3")
"""Settings that only 8-bit training has, and names of its formats."""
FP8_METRICS = ("fp8", "float8", "amax")
"""Parts of the names of metrics that only 8-bit training has: largest values and the scales made from them."""


@question(
    Outcome(
        "trains_in_fp16",
        """Training runs in half precision (fp16), which holds no number above 65504.

        By itself no fault, but overflow needs it. Not this when: it runs in another precision, or fp16 is off.
        """,
        background=0.15,
        sources=("bekman_mle",),
        as_chosen=True,
    ),
    Outcome(
        "trains_in_fp8",
        """Training computes in 8-bit floats (fp8), whose scales are made from the data.

        By itself no fault, but a scale of zero needs it. Not this when: it runs in another precision.
        """,
        background=0.03,
        sources=("axolotl_stability",),
        as_chosen=True,
    ),
    whole_run=True,
)
def number_format(run: Run) -> Answers:
    """Look for 8-bit floats in settings and metrics, then at the precision."""
    precision = run.facts.precision
    unnamed = CannotTell("the configuration does not name the precision")
    if (said := _fp8(run, precision)) is not None:
        other = unnamed if precision is None else Evidence(f"the precision is {precision}", present=False)
        return {"trains_in_fp8": said, "trains_in_fp16": other}
    if precision == "fp16":
        half = Evidence("the configuration asks for half precision", values={"fp16": 1})
        return {"trains_in_fp16": half}
    told = precision not in (None, "not fp16") or run.settings.flag("fp8") is False
    return {
        **({"trains_in_fp16": unnamed} if precision is None else {}),
        **({} if told else {"trains_in_fp8": unnamed}),
    }


def _fp8(run: Run, precision: str | None) -> Evidence | None:
    named = next((key for key in FP8_KEYS if any(name in run.settings.text(key) for name in FP8_NAMES)), None)
    if precision == "fp8" or named is not None:
        return Evidence(f"the configuration asks for {named or 'fp8'}", values={"fp8": 1})
    logged = next((name for name in sorted(run.series) if any(part in name.lower() for part in FP8_METRICS)), None)
    return None if logged is None else Evidence(f"the log holds {logged}", values={"fp8": 1})
