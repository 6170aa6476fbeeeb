"""Text that was decoded with the wrong encoding: its bytes are UTF-8 and were read as Latin-1 or Windows-1252."""

from __future__ import annotations

import re

_BYTES = {
    bytes([byte]).decode("cp1252"): byte for byte in range(128, 256) if byte not in (0x81, 0x8D, 0x8F, 0x90, 0x9D)
}
_BYTES |= {chr(byte): byte for byte in range(128, 256)}
"""The byte of a character in either encoding."""


def _any_of(first: int, last: int) -> str:
    return "[" + re.escape("".join(one for one, byte in _BYTES.items() if first <= byte <= last)) + "]"


_GOES_ON = _any_of(0x80, 0xBF)
_SEQUENCE = re.compile(
    rf"{_any_of(0xC2, 0xDF)}{_GOES_ON}|{_any_of(0xE0, 0xEF)}{_GOES_ON}{{2}}|{_any_of(0xF0, 0xF4)}{_GOES_ON}{{3}}"
)
"""Two to four characters that are the bytes of one character in UTF-8."""
SURE = re.compile(rf"[ÃÂ]{_GOES_ON}|â[€\x80]{_GOES_ON}|ð[Ÿ\x9f]{_GOES_ON}{{2}}|\N{{REPLACEMENT CHARACTER}}{{2}}")
"""Sequences that no language writes: accented letters, quotation marks and emoji read wrongly, and lost characters."""
SEVERAL = 3
"""Other sequences have to recur: an accented letter may stand before a sign, as in "fini…”". Chosen by hand."""


def is_garbled(text: str) -> bool:
    """Return whether a text shows characters that come from reading UTF-8 with another encoding."""
    if text.isascii():
        return False
    if SURE.search(text):
        return True
    return sum(1 for _ in zip(_SEQUENCE.finditer(text), range(SEVERAL), strict=False)) == SEVERAL
