"""Clients defer tools and find them by keywords: what users ask must lead to the right tool."""

from __future__ import annotations

import math
import re
from collections import Counter

import pytest
from mcp import Client

from mldebug_mcp.server import INSTRUCTIONS, make_server
from tests.server.questions import LATER, OTHERS, QUESTIONS

# The usual English stop words.
STOP = frozenset(
    re.findall(
        r"[a-z]+",
        "i me my we our you your it its they them their what which who this that these those am is are was were be "
        "been being have has had do does did doing a an the and but if or because as until while of at by for with "
        "about against between into through during before after above below to from up down in out on off over "
        "under again further then once here there when where why how all any both each few more most other some "
        "such no nor not only own same so than too very s t can will just don should now ",
    )
)


def words(text: str) -> list[str]:
    return [word for word in re.findall(r"[a-z0-9]+", text.lower()) if word not in STOP]


class KeywordSearch:
    """BM25 with the usual constants over name, description and arguments: no stemming, no synonyms."""

    def __init__(self, tools: dict[str, str]) -> None:
        self.tools = {name: Counter(words(f"{name} {text}")) for name, text in tools.items()}
        self.mean = sum(bag.total() for bag in self.tools.values()) / len(self.tools)
        self.seen = Counter(word for bag in self.tools.values() for word in bag)

    def weight(self, word: str) -> float:
        return math.log(1 + (len(self.tools) - self.seen[word] + 0.5) / (self.seen[word] + 0.5))

    def best(self, question: str) -> list[str]:
        def score(name: str) -> float:
            bag = self.tools[name]
            length = 1.2 * (0.25 + 0.75 * bag.total() / self.mean)
            return sum(self.weight(word) * bag[word] * 2.2 / (bag[word] + length) for word in words(question))

        return sorted(self.tools, key=score, reverse=True)


@pytest.fixture
async def descriptions() -> dict[str, str]:
    """What a client sees of our tools: names, descriptions, names of arguments."""
    async with Client(make_server()) as client:
        tools = (await client.list_tools()).tools
    return {tool.name: f"{tool.description} {' '.join(tool.input_schema['properties'])}" for tool in tools}


def pairs(questions: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(tool, question) for tool, asked in questions.items() for question in asked]


@pytest.mark.anyio
async def test_what_users_ask_finds_the_right_tool_first(descriptions: dict[str, str]) -> None:
    asked = pairs(QUESTIONS)
    assert len(asked) >= 60
    assert {tool for tool, _ in asked} == set(descriptions)
    search = KeywordSearch(descriptions | OTHERS)
    assert [
        (tool, question, search.best(question)[:3]) for tool, question in asked if search.best(question)[0] != tool
    ] == []


@pytest.mark.anyio
async def test_other_questions_find_the_right_tool_among_the_first_three(descriptions: dict[str, str]) -> None:
    search = KeywordSearch(descriptions | OTHERS)
    missed = [(tool, question) for tool, question in pairs(LATER) if tool not in search.best(question)[:3]]
    assert len(missed) <= 0.05 * len(pairs(LATER)), missed


@pytest.mark.anyio
async def test_a_description_says_first_what_it_is_for_and_is_not_cut(descriptions: dict[str, str]) -> None:
    for tool, text in descriptions.items():
        assert len(text) <= 4096, tool
        first = text.split("\n")[0]
        assert len(first) <= 120, tool
        assert first.endswith((".", "?")), tool
        assert "Use it" in text, tool
    assert len(INSTRUCTIONS) <= 4096
    assert [tool for tool in descriptions if tool not in INSTRUCTIONS] == []
