"""In which format of numbers does training compute, as far as its range matters?"""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.text import shorten

FP8_KEYS = ("fp8_format", "fp8_recipe", "recipe")
FP8_NAMES = ("fp8", "float8", "e4m3")
"""Settings that only 8-bit training has, and names of its formats."""
FP8_METRICS = ("fp8", "float8", "amax")
"""Parts of the names of metrics that only 8-bit training has: largest values and the scales made from them."""
TRAINED_IN_BF16 = ("t5", "mt5", "gemma", "ul2", "umt5", "byt5", "flan")
"""Families whose activations leave the range of fp16: trained in bf16 on TPUs, and known to overflow."""


@question(
    Outcome(
        "trains_in_fp16",
        """Training runs in half precision (fp16), which holds no number above 65504.

        By itself this is not a fault, but overflow needs it. Not this when: it runs in bf16, fp8 or fp32, or fp16 is
        explicitly off; unknown where the configuration does not say.
        """,
        background=0.15,
        sources=("bekman_mle",),
        as_chosen=True,
    ),
    Outcome(
        "fp16_of_bf16_model",
        """Training runs in half precision (fp16), and the model is of a family that was trained in bf16.

        Numbers above 65504, which bf16 holds, are infinite in fp16. Not this when: the model is of another family, of
        which most fit into fp16.
        """,
        background=0.01,
        of="trains_in_fp16",
        as_chosen=True,
    ),
    Outcome(
        "trains_in_fp8",
        """Training computes in 8-bit floats (fp8), whose scales are made from the data.

        By itself this is not a fault, but a scale of zero needs it. Not this when: it runs in bf16, fp16 or fp32;
        unknown where the configuration does not name the precision.
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
        family = _of_bf16_model(run)
        return {"trains_in_fp16": half, **({} if family is None else {"fp16_of_bf16_model": family})}
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


def _of_bf16_model(run: Run) -> Evidence | CannotTell | None:
    model = run.settings.text("model_name_or_path", "model", "model_type")
    if not model:
        return CannotTell("the configuration does not name the model")
    words = model.replace("/", "-").replace("_", "-").split("-")
    if not any(word.startswith(TRAINED_IN_BF16) for word in words):
        return None
    return Evidence(f"the configuration asks for half precision, and the model is {shorten(model, 60)}")
