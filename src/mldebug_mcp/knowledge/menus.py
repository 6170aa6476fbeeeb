"""The menus of PLAYBOOK.md: what to think of, by situation. The head of that file describes the grammar."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mldebug_mcp.knowledge.entries import Menu, MenuItem
from mldebug_mcp.knowledge.markdown import Block
from mldebug_mcp.knowledge.playbook import LINK, Section, fail

MENUS = "Menus"
"""The part of the file that holds the menus."""

_FIRST = "**First:**"
_CAUSE = re.compile(r"\[(\w+)\]\(#(\w+)\)")


def read_menus(sections: Sequence[Section]) -> list[Menu]:
    """Return the menus in file order; raises CatalogueError where a section breaks the grammar."""
    return [_menu(section) for section in sections]


def _menu(section: Section) -> Menu:
    paragraphs = [block.text for block in section.blocks if block.kind == "paragraph"]
    items = tuple(_item(block) for block in section.blocks if block.kind == "item")
    if len(paragraphs) != 2 or not paragraphs[1].startswith(_FIRST) or not items:
        fail(section.heading, f"{section.heading.text}: a menu is a paragraph, `{_FIRST}` and a list")
    return Menu(
        id=section.heading.text,
        summary=paragraphs[0],
        first=paragraphs[1].removeprefix(_FIRST).strip(),
        items=items,
        quotes=tuple(dict.fromkeys(match["quote"] for match in LINK.finditer(section.markdown))),
        markdown=section.markdown,
    )


def _item(block: Block) -> MenuItem:
    seen, colon, links = block.text.partition(": [")
    causes = tuple(match[1] for match in _CAUSE.finditer("[" + links) if match[1] == match[2])
    if not colon or not causes:
        fail(block, "an item of a menu is what is seen, a colon, and links to causes")
    return MenuItem(seen=seen, causes=causes)
