"""The reader of the knowledge files keeps their text as it stands, by blocks that know their line."""

from __future__ import annotations

from mldebug_mcp.knowledge.playbook import Block, parse_blocks


def test_items_know_their_depth_and_their_number() -> None:
    blocks = parse_blocks("1. Check it\n   again (seconds)\n   - confirms: yes\n   - refutes: no\n2. Stop\n\nAn end.\n")
    assert [(block.kind, block.text, block.level, block.number) for block in blocks] == [
        ("item", "Check it again (seconds)", 1, 1),
        ("item", "confirms: yes", 2, None),
        ("item", "refutes: no", 2, None),
        ("item", "Stop", 1, 2),
        ("paragraph", "An end.", 0, None),
    ]


def test_a_number_at_the_start_of_a_line_inside_a_paragraph_begins_no_list() -> None:
    assert [block.text for block in parse_blocks("It came out in\n2023. Then it\n- spread\n")] == [
        "It came out in 2023. Then it",
        "spread",
    ]


def test_a_quote_keeps_its_lines_and_a_table_is_no_block() -> None:
    text = "> one *word*\n> two\nlazy\n\n| a | b |\n| - | - |\n| 1\\|2 | `x` |\n"
    assert parse_blocks(text) == [
        Block("quote", 1, "one *word*\ntwo\nlazy"),
    ]


def test_what_stands_in_code_begins_no_block() -> None:
    assert parse_blocks("```markdown\n# Title\n\n- item\n```\nAfter\n") == [
        Block("code", 1, "# Title\n\n- item\n"),
        Block("paragraph", 6, "After"),
    ]
