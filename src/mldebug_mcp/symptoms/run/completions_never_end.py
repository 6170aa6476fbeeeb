"""No completion ends by itself, from the first record on."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import Evidence, symptom
from mldebug_mcp.symptoms.statistics import median
from mldebug_mcp.text import figure

ALL = 0.99
SHARE = 0.95
"""Of the records, the first among them. Under a limit that is merely low some answers are short enough. By hand."""


@symptom(
    needs=("completions/clipped_ratio",),
    sources=("axolotl_faq",),
    points=5,
    background=0.05,
    as_chosen=True,
)
def completions_never_end(run: Run) -> Evidence | None:
    """All completions run to the length limit, in nearly every record from the first on: none ends with an end token.

    Not this when: a few end earlier, as some do under a limit that is merely low; it comes about in training.
    """
    share = run["completions/clipped_ratio"].finite
    if share.value[0] < ALL or float((share.value >= ALL).mean()) < SHARE:
        return None
    return Evidence(
        f"{median(share.value):.0%} of the completions run to the limit in all but "
        f"{figure(int((share.value < ALL).sum()))} of {len(share)} records, the first among them",
        steps=(float(share.step[0]),),
        values={"records": len(share)},
    )
