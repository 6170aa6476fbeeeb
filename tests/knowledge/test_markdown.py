"""The reader of the knowledge files finds the blocks that a general Markdown parser finds."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from mldebug_mcp.files import knowledge_folder
from mldebug_mcp.knowledge.markdown import Block, parse_blocks

FOLDER = knowledge_folder()
FILES = [FOLDER / "PLAYBOOK.md", FOLDER / "SKILL.md", *FOLDER.glob("evidence/*.md"), *FOLDER.glob("references/*.md")]


def outside_quotes(tokens: list[Token]) -> list[Token]:
    depths = accumulate((token.type == "blockquote_open") - (token.type == "blockquote_close") for token in tokens)
    return [token for token, depth in zip(tokens, depths, strict=True) if depth == (token.type == "blockquote_open")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_blocks_of_a_file_are_those_of_a_general_parser(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tokens = outside_quotes(
        MarkdownIt("commonmark")
        .enable("table")
        .disable(["code", "hr", "html_block", "lheading", "reference"])
        .parse(text)
    )
    blocks = parse_blocks(text)

    def lines(kind: str) -> list[int]:
        return [token.map[0] + 1 for token in tokens if token.type == kind and token.map is not None]

    def found(kind: str) -> list[int]:
        return [block.line for block in blocks if block.kind == kind]

    assert found("heading") == lines("heading_open")
    assert found("quote") == lines("blockquote_open")
    assert found("item") == lines("list_item_open")
    assert found("code") == lines("fence")
    cells = [tokens[at + 1].content for at, token in enumerate(tokens) if token.type == "td_open"]
    assert [cell for block in blocks for cell in block.cells] == cells
    paragraphs = {
        token.map[0] + 1: " ".join(tokens[at + 1].content.split())
        for at, token in enumerate(tokens)
        if token.type == "paragraph_open" and token.map is not None
    }
    for block in blocks:
        if block.kind in ("paragraph", "item"):
            assert block.text == paragraphs[block.line]


def test_items_know_their_depth_and_whether_they_are_numbered() -> None:
    blocks = parse_blocks("1. Check it\n   again (seconds)\n   - confirms: yes\n   - refutes: no\n2. Stop\n\nAn end.\n")
    assert [(block.kind, block.text, block.level, block.ordered) for block in blocks] == [
        ("item", "Check it again (seconds)", 1, True),
        ("item", "confirms: yes", 2, False),
        ("item", "refutes: no", 2, False),
        ("item", "Stop", 1, True),
        ("paragraph", "An end.", 0, False),
    ]


def test_a_number_at_the_start_of_a_line_inside_a_paragraph_begins_no_list() -> None:
    assert [block.text for block in parse_blocks("It came out in\n2023. Then it\n- spread\n")] == [
        "It came out in 2023. Then it",
        "spread",
    ]


def test_a_quote_keeps_its_lines_and_rows_keep_bars_that_are_escaped() -> None:
    text = "> one *word*\n> two\nlazy\n\n| a | b |\n| - | - |\n| 1\\|2 | `x` |\n"
    assert parse_blocks(text) == [
        Block("quote", 1, "one *word*\ntwo\nlazy"),
        Block("row", 7, "1|2 | `x`", cells=["1|2", "`x`"]),
    ]


def test_what_stands_in_code_begins_no_block() -> None:
    assert parse_blocks("```markdown\n# Title\n\n- item\n```\nAfter\n") == [
        Block("code", 1, "# Title\n\n- item\n"),
        Block("paragraph", 6, "After"),
    ]
