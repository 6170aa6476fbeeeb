"""PLAYBOOK.md → its sections, and from those the causes. The head of that file describes the grammar."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Literal, NoReturn, cast

from mldebug_mcp.errors import CatalogueError
from mldebug_mcp.knowledge.entries import Cause, Effect, Frequency
from mldebug_mcp.knowledge.markdown import Block, parse_blocks
from mldebug_mcp.models import NextStep

FILE = "PLAYBOOK.md"

LINK = re.compile(r"\]\(evidence/(?P<source>\w+)\.md#(?P<quote>\w+)\)")
"""A citation: a link to a quote's record."""
_LABEL = re.compile(r"\*\*(Against|Next steps|Fix|Disagreement):\*\*\s*")
_COST = re.compile(r"\s*\((seconds|minutes|hours)\)\s*$")
_STEP_FIELDS = ("confirms", "refutes", "call")
CAUSES = "Causes"
"""The part of the file that holds the causes."""


@dataclass(slots=True)
class _Draft:
    heading: Block
    summary: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    labelled: dict[str, str] = field(default_factory=dict)
    effects: list[Effect] = field(default_factory=list)
    steps: list[dict[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the file: what stands under one second-level heading."""

    heading: Block
    blocks: Sequence[Block]
    markdown: str


def read_sections(path: Path) -> dict[str, list[Section]]:
    """Return the sections of the file by the first-level heading that they stand under."""
    text = path.read_text(encoding="utf-8")
    lines, blocks = text.splitlines(), parse_blocks(text)
    tops = [index for index, block in enumerate(blocks) if block.kind == "heading" and block.level <= 2]
    parts: dict[str, list[Section]] = {}
    part: list[Section] = []
    for start, end in pairwise([*tops, len(blocks)]):
        heading = blocks[start]
        if heading.level == 1:
            part = parts.setdefault(heading.text, [])
            continue
        last_line = blocks[end].line - 1 if end < len(blocks) else len(lines)
        part.append(Section(heading, blocks[start + 1 : end], "\n".join(lines[heading.line - 1 : last_line]).strip()))
    return parts


def read_causes(sections: Sequence[Section]) -> list[Cause]:
    """Return the causes in file order; raises CatalogueError where a section breaks the grammar."""
    return [_cause(section) for section in sections]


def _cause(section: Section) -> Cause:
    draft = _Draft(section.heading)
    for block in section.blocks:
        _take(draft, block)
    cause = draft.heading.text
    for name in ("Against", "Fix"):
        if not draft.labelled.get(name):
            fail(draft.heading, f"{cause}: `**{name}:**` is missing")
    if not draft.summary or not draft.steps:
        fail(draft.heading, f"{cause}: the first paragraph or `**Next steps:**` is missing")
    return Cause(
        id=cause,
        summary=draft.summary,
        prior=_prior(draft),
        mistaken_for=tuple(filter(None, map(str.strip, draft.fields.get("mistaken for", "").split(",")))),
        effects=tuple(draft.effects),
        against=draft.labelled["Against"],
        next_steps=tuple(_next_step(draft, number, step) for number, step in enumerate(draft.steps, start=1)),
        fix=draft.labelled["Fix"],
        disagreement=draft.labelled.get("Disagreement", ""),
        disagreeing=_cited(draft.labelled.get("Disagreement", "")),
        quotes=_cited(section.markdown),
        markdown=section.markdown,
    )


def _cited(markdown: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(match["quote"] for match in LINK.finditer(markdown)))


def _take(draft: _Draft, block: Block) -> None:
    match block.kind:
        case "paragraph" if label := _LABEL.match(block.text):
            draft.labelled[label[1]] = block.text[label.end() :].strip()
        case "paragraph" if not draft.summary:
            draft.summary = block.text
        case "row":
            draft.effects.append(_effect(block))
        case "item" if block.ordered and block.level == 1:
            draft.steps.append({"action": block.text})
        case "item":
            name, colon, value = block.text.partition(":")
            into = draft.steps[-1] if draft.steps else draft.fields
            if not colon or name not in (_STEP_FIELDS if draft.steps else ("prior", "mistaken for")):
                fail(block, f"{draft.heading.text}: {name!r} is not a field here")
            into[name] = value.strip()
        case _:
            fail(block, f"{draft.heading.text}: a {block.kind} does not belong here")


def _effect(row: Block) -> Effect:
    if len(row.cells) != 3:
        fail(row, "a row has three cells: symptom, how often, source")
    symptom, word, source = row.cells
    quotes = tuple(match["quote"] for match in LINK.finditer(source))
    if word not in map(str, Frequency):
        fail(row, f"{word!r} does not say how often; use {', '.join(Frequency)}")
    if not quotes and source != "guess":
        fail(row, f"{symptom}: cite a quote, or write `guess`")
    return Effect(symptom=symptom, frequency=Frequency(word), quotes=quotes)


def _prior(draft: _Draft) -> dict[str, float]:
    prior: dict[str, float] = {}
    for part in draft.fields.get("prior", "").split(","):
        kind, _, weight = part.strip().partition(" ")
        try:
            prior[kind] = float(weight)
        except ValueError:
            fail(draft.heading, f"{draft.heading.text}: `- prior:` is `any N, kind N`, not {part.strip()!r}")
    if prior.get("any", 0) <= 0 or min(prior.values()) <= 0:
        fail(draft.heading, f"{draft.heading.text}: `- prior:` needs `any N` with N > 0")
    return prior


def _next_step(draft: _Draft, number: int, step: Mapping[str, str]) -> NextStep:
    cost = _COST.search(step["action"])
    if cost is None or not step.get("confirms") or not step.get("refutes"):
        fail(
            draft.heading,
            f"{draft.heading.text}: a next step ends in its cost and has `- confirms:` and `- refutes:`",
        )
    return NextStep(
        id=f"{draft.heading.text}.{number}",
        action=plain(_COST.sub("", step["action"])),
        cost=cast("Literal['seconds', 'minutes', 'hours']", cost[1]),
        confirms=plain(step["confirms"]),
        refutes=plain(step["refutes"]),
        call=step["call"].strip("`") if "call" in step else None,
        for_causes=[draft.heading.text],
    )


def plain(markdown: str) -> str:
    """Return a line of Markdown without the targets of its links."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", markdown)


def fail(block: Block, problem: str) -> NoReturn:
    """Raise a CatalogueError that names the line of a block."""
    raise CatalogueError(FILE, block.line, problem)
