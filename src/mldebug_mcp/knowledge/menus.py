"""The menus of PLAYBOOK.md: what to think of, by situation.

A menu stands under `## menu_id`: a paragraph on the situation, `**First:**` the first check, and a list of what is
seen, a colon, and ids of causes. references/causes.md may have further quotes on it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mldebug_mcp.knowledge.entries import Menu, MenuItem
from mldebug_mcp.knowledge.markdown import Block
from mldebug_mcp.knowledge.playbook import MORE, Section, cited, fail

MENUS = "Menus"
"""The part of the files that holds the menus."""

_FIRST = "**First:**"
_ITEM = re.compile(r"(?P<seen>.+): (?P<causes>\w+(?:, \w+)*)")


def read_menus(sections: Sequence[Section], further: Sequence[Section] = ()) -> list[Menu]:
    """Return the menus in file order; raises CatalogueError where a section breaks the grammar."""
    by_id = {section.id: section for section in further}
    return [_menu(section, by_id.get(section.id)) for section in sections]


def _menu(section: Section, further: Section | None) -> Menu:
    paragraphs = [block.text for block in section.blocks if block.kind == "paragraph"]
    items = tuple(_item(section, block) for block in section.blocks if block.kind == "item")
    if len(paragraphs) != 2 or not paragraphs[1].startswith(_FIRST) or not items:
        fail(section, section.heading, f"{section.id}: a menu is a paragraph, `{_FIRST}` and a list")
    if further is not None:
        further.labelled((MORE,))
    return Menu(
        id=section.id,
        summary=paragraphs[0],
        first=paragraphs[1].removeprefix(_FIRST).strip(),
        items=items,
        quotes=tuple(dict.fromkeys((*cited(section), *(cited(further) if further else ())))),
        markdown=section.markdown,
    )


def _item(section: Section, block: Block) -> MenuItem:
    item = _ITEM.fullmatch(block.text)
    if item is None:
        fail(section, block, "an item of a menu is what is seen, a colon, and ids of causes")
    return MenuItem(seen=item["seen"], causes=tuple(item["causes"].split(", ")))
