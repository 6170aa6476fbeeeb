"""Half precision for a model whose weights were trained in bf16."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import shorten

TRAINED_IN_BF16 = ("t5", "mt5", "gemma", "ul2", "umt5", "byt5", "flan")
"""Families whose activations leave the range of fp16: trained in bf16 on TPUs, and known to overflow."""


@symptom(whole_run=True, background=0.01, as_chosen=True)
def fp16_of_bf16_model(run: Run) -> Evidence | None:
    """Training runs in half precision (fp16), and the model is of a family that was trained in bf16.

    Numbers above 65504, which bf16 holds, are infinite in fp16. Not this when: it runs in bf16 or fp32; the model is of
    another family, of which most fit into fp16. Unknown where precision or model are not in the configuration.
    """
    precision, model = run.facts.precision, run.settings.text("model_name_or_path", "model", "model_type")
    if precision is None or not model:
        raise CannotTell("the configuration does not name both the precision and the model")
    words = model.replace("/", "-").replace("_", "-").split("-")
    if precision != "fp16" or not any(word.startswith(TRAINED_IN_BF16) for word in words):
        return None
    return Evidence(f"the configuration asks for half precision, and the model is {shorten(model, 60)}")
