"""The configuration accumulates gradients over micro-batches."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure


@symptom(needs=(), sources=("hf_gradacc_blog",), whole_run=True, background=0.6, as_chosen=True)
def accumulates_gradients(run: Run) -> Evidence | None:
    """Gradients are accumulated over two micro-batches or more before each update.

    By itself this is not a fault: most large runs do. Not this when: the configured number is 1; unknown where it is
    not in the configuration.
    """
    number = run.setting("gradient_accumulation_steps")
    if number is None:
        raise CannotTell("the number of micro-batches per update is not in the configuration")
    if number < 2:
        return None
    return Evidence(f"gradients are accumulated over {figure(number)} micro-batches", values={"number": number})
