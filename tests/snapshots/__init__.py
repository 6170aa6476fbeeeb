"""Answers of each kind as they stand, to agents, in the terminal, as pages: `python -m tests.snapshots` renews them."""
