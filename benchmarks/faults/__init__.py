"""How often the diagnosis is right, on the trained runs of `benchmarks.corpus`, and what is fitted on them.

    python -m benchmarks.faults report       diagnose all runs and print the tables
    python -m benchmarks.faults fit          count and fit on the tuning part; the package reads what it writes
    python -m benchmarks.faults traits       fit the likeness of traits, on the runs of other authors
    python -m benchmarks.faults compare      ask other tools about the same runs

Runs of our own are split by task into a tuning and a test part: numbers are fitted on one and reported on the other.
Runs of each author are left out of the fit in turn (`loops`), and the same run is written in other styles
(`invariance`). `young` cuts healthy runs short, and `ablate` takes each question away.

- sets.py: which runs a command reads; restyle.py with recorded.py and deciding.py: the same runs in other styles
- report.py: how often the diagnosis is right
- fit.py with counts.py, trust.py and likeness.py, and traits.py: what is fitted
- compare.py: what other tools answer; figures.py: the figures that the pages show
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # processes work side by side; numpy reads it when it is imported
