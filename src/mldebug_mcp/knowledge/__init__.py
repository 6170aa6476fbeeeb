"""The knowledge files (PLAYBOOK.md, references/causes.md, evidence/, tables) → a catalogue that programs can ask."""

from __future__ import annotations

from mldebug_mcp.knowledge.catalogue import Catalogue, Cause, Menu, Quote, Source
from mldebug_mcp.knowledge.prepared import catalogue

__all__ = ["Catalogue", "Cause", "Menu", "Quote", "Source", "catalogue"]
