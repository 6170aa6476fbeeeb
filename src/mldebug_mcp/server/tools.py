"""The tools: one function per verb of the library, with the words that the model reads."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from mldebug_mcp.models import Diagnosis, Explanation, SearchResult
from mldebug_mcp.server.strict import answers

Detail = Annotated[
    Literal["concise", "full"],
    Field(description="concise: what is seen and what leads; full: every symptom with its state and every cause"),
]


@answers
def diagnose_run(
    path: Annotated[
        str, Field(description="A training log (trainer_state.json, .jsonl, .csv, .tsv, .log, .txt) or a run folder")
    ],
    config: Annotated[
        str | None, Field(description="The training configuration (JSON or YAML), if it is not beside the log")
    ] = None,
    detail: Detail = "concise",
) -> Diagnosis:
    """Find out what is wrong with a training run from its log: why did my loss spike, diverge, go to NaN, not learn?

    Reads the losses, gradient norms, learning rates and other metrics of a log file or run folder, judges each known
    symptom (loss spike, divergence, plateau, not learning, overfitting ...: present, absent, or unknown because it
    was not logged), and ranks the causes with honest probabilities that sum to 1, among them `healthy` and `unknown`.
    Each hypothesis says which finding speaks for and against it and how to fix it; `next_steps` are the cheapest
    checks that tell the hypotheses apart. NaN and infinity are written as the strings "nan", "inf" and "-inf".
    """
    from mldebug_mcp.diagnose import diagnose_run as diagnose
    from mldebug_mcp.report.concise import concise

    answer = diagnose(path, config)
    return answer if detail == "full" else concise(answer)


@answers
def search_folklore(
    query: Annotated[
        str, Field(description="A question or keywords, such as 'loss spikes after warmup' or 'reward stays at zero'")
    ],
    domain: Annotated[
        str | None, Field(description="Only this domain: general, llm, rl, vision, diffusion, vlm, distributed, memory")
    ] = None,
    topic: Annotated[
        str | None, Field(description="Only this topic, such as loss_spike, learning_rate, nan_inf, chat_template")
    ] = None,
    limit: Annotated[int, Field(description="How many quotes at most", ge=1, le=20)] = 5,
) -> SearchResult:
    """Search what experienced practitioners wrote about debugging training: verbatim quotes with their sources.

    Karpathy, Bekman, Schulman, OPT, PaLM, Axolotl and others, with author, title, URL and place. Use it for advice on
    a problem, or to back a hypothesis with a source. Quote the text as it stands, with its source, or not at all.
    """
    from mldebug_mcp.knowledge.search import search_folklore as search

    return search(query, domain, topic, limit)


@answers
def explain(
    id: Annotated[str, Field(description="An id from an answer, such as loss_spike, lr_too_high or a quote's id")],  # noqa: A002
) -> Explanation:
    """Explain an id from another answer, whole.

    A symptom (how it is judged), a cause (what goes wrong, symptoms, next steps, fix), a quote, or a source.
    """
    from mldebug_mcp.diagnose.explain import explain as look_up

    return look_up(id)


TOOLS = (diagnose_run, search_folklore, explain)
"""In the order in which clients list them."""
