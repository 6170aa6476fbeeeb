"""Matplotlib's `Figure`, imported without a trace: by itself it writes its list of fonts below the user's home."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

from mldebug_mcp.errors import MissingExtraError
from mldebug_mcp.temporary import temporary_folder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FOLDER = "MPLCONFIGDIR"


def figure_class() -> type[Figure]:
    """Return the class; its caches go to a folder that is gone again, unless the user has named one.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    named = os.environ.get(_FOLDER)
    with temporary_folder("mldebug-fonts-") as folder:
        os.environ[_FOLDER] = named or folder
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise MissingExtraError("matplotlib", "plot") from None
        finally:
            os.environ[_FOLDER] = named or ""
            if named is None:
                del os.environ[_FOLDER]
    return type("Figure", (Figure,), {"_repr_png_": _png})


def _png(picture: Figure) -> bytes:
    """Return the picture as a notebook shows it: by itself it does so only where pyplot made it."""
    content = io.BytesIO()
    picture.savefig(content, format="png")
    return content.getvalue()
