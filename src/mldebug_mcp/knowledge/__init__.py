"""The knowledge files at the root (PLAYBOOK.md, SKILL.md, evidence/) → a catalogue that programs can ask."""

from __future__ import annotations

from mldebug_mcp.knowledge.catalogue import Catalogue, catalogue
from mldebug_mcp.knowledge.entries import Cause, Menu, Quote, Source

__all__ = ["Catalogue", "Cause", "Menu", "Quote", "Source", "catalogue"]
