"""What the catalogue holds: sources with their quotes, and causes."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from mldebug_mcp.models import Citation, NextStep
from mldebug_mcp.models.base import Frozen


class Entry(Frozen):
    """Base of the catalogue's entries."""


class Source(Entry):
    """Something that somebody published, from `evidence/<id>.md`."""

    id: str
    title: str
    authors: str
    year: str
    url: str
    licence: str
    kind: str
    regime: str = Field("", description="What was trained: kind of run, size, precision; empty where it is about all.")
    accessed: str = ""
    notes: str = ""


Grade = Literal["primary", "compared", "secondary copy", "transcribed"]
"""How sure the wording is, surest first; evidence/README.md says what each means."""


class Quote(Entry):
    """A passage of a source, verbatim."""

    id: str
    source: Source
    text: str
    locator: str = Field(min_length=1)
    topics: tuple[str, ...]
    domains: tuple[str, ...]
    situations: tuple[str, ...]
    generality: int = Field(
        ge=1, le=5, description="1 holds for almost any training run, 5 for one setting of one tool."
    )
    verified_against: str
    grade: Grade
    sha256: str

    def cite(self) -> Citation:
        """Return the quote as answers carry it."""
        return Citation(
            id=self.id,
            text=self.text,
            source=self.source.id,
            author=self.source.authors,
            title=self.source.title,
            year=self.source.year,
            regime=self.source.regime,
            url=self.source.url,
            locator=self.locator,
        )


class Frequency(StrEnum):
    """How often a run with a cause shows a symptom, in words; `share` is the number that the ranking starts from."""

    ALWAYS = "always"
    USUALLY = "usually"
    OFTEN = "often"
    SOMETIMES = "sometimes"
    RARELY = "rarely"

    @property
    def share(self) -> float:
        """The share of runs with the cause that show the symptom."""
        return {"always": 0.95, "usually": 0.75, "often": 0.5, "sometimes": 0.25, "rarely": 0.08}[self.value]


class Effect(Entry):
    """A symptom that a cause produces."""

    symptom: str
    frequency: Frequency
    quotes: tuple[str, ...] = Field(description="Ids of the quotes that say so; empty where it was only counted.")


class Cause(Entry):
    """A section of PLAYBOOK.md."""

    id: str
    summary: str = Field(description="What goes wrong: the first paragraph, as Markdown.")
    prior: dict[str, float] = Field(description="How many of 1000 runs have it, by kind of run; `any` is the default.")
    mistaken_for: tuple[str, ...]
    effects: tuple[Effect, ...]
    shows: str = Field(description="Its strongest outcomes, in words.")
    against: str = Field(description="What rules it out.")
    next_steps: tuple[NextStep, ...]
    fix: str
    disagreement: str = ""
    on_cause: tuple[str, ...] = Field((), description="Ids of the quotes on the cause as a whole or its fix.")
    contrary: tuple[str, ...] = Field((), description="Ids of the quotes on what contradicts it.")
    disagreeing: tuple[str, ...] = Field((), description="Ids of the quotes that `Disagreement` sets side by side.")
    quotes: tuple[str, ...] = Field(description="Ids of all quotes that the section cites, in order.")
    markdown: str = Field(description="The section as it stands in the file.")

    def prior_for(self, kind: str) -> float:
        """Return the prior weight for a kind of run."""
        return self.prior.get(kind, self.prior["any"])


class MenuItem(Entry):
    """What is seen in a situation, and the causes to think of."""

    seen: str
    causes: tuple[str, ...]


class Menu(Entry):
    """A section of PLAYBOOK.md by situation."""

    id: str
    summary: str = Field(description="The situation, as Markdown.")
    first: str = Field(description="The first check, as Markdown.")
    items: tuple[MenuItem, ...]
    quotes: tuple[str, ...] = Field(description="Ids of all quotes that the section cites, in order.")
    markdown: str = Field(description="The section as it stands in the file.")

    @property
    def causes(self) -> tuple[str, ...]:
        """All causes that the menu leads to, in order."""
        return tuple(dict.fromkeys(cause for item in self.items for cause in item.causes))
