"""What a measurement raises that cannot be made."""

from __future__ import annotations


class CannotTell(Exception):  # noqa: N818 - an answer, not an error
    """Raised where the metrics are there, or ought to be, but cannot be judged. The message says why."""
