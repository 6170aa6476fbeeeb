"""Draw the icon of the plugin and of the bundle, a loss curve with its spike: `python packaging/icon.py`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

ICON = Path(__file__).parent.parent / ".claude-plugin" / "icon.png"

if __name__ == "__main__":
    step = np.linspace(0, 1, 200)
    loss = np.exp(-4 * step) + 0.75 * np.exp(-(((step - 0.62) / 0.025) ** 2))
    figure = Figure(figsize=(5.12, 5.12), dpi=100, facecolor="#10243e")
    axes = figure.add_axes((0.1, 0.12, 0.8, 0.76))
    axes.plot(step, loss, color="#ffb454", linewidth=22, solid_capstyle="round", solid_joinstyle="round")
    axes.set_axis_off()
    figure.savefig(ICON, metadata={"Software": None})
